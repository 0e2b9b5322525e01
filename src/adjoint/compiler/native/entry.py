"""What Python calls: a function of arrays that runs kernels one after the other, in one piece of memory."""

from __future__ import annotations

from collections.abc import Callable, Container, Sequence
from typing import Any

from adjoint.compiler.graph import Value
from adjoint.compiler.native.arena import HEAP, ON_STACK
from adjoint.compiler.native.blocks import Block
from adjoint.compiler.native.calls import Call
from adjoint.compiler.native.kernels import Host, Step, between_hosts
from adjoint.compiler.native.loops import FAILED
from adjoint.compiler.native.machine import AXES, DATA, DTYPE, FLAGS, SHAPE, TYPE, WANTED
from adjoint.compiler.native.plan import Plan
from adjoint.compiler.native.symbolic import DECLARED, SIZES
from adjoint.compiler.native.text import INLINE, Builder
from adjoint.compiler.sizes import is_size

_ALONE = 1 << 14  # elements that are computed, from which on other threads of Python may run


class Region(Call):
    """Kernels that follow each other without a step of Python's between."""

    called: dict[str, str]
    text: str

    def __init__(
        self,
        plan: Plan,
        first: int,
        last: int,
        name: str,
        wanted: set[Any],
        donated: Container[Any] = (),
        number: int = 0,  # of the first kernel
    ) -> None:
        self.name = f"{name}_from_{number}" if number else name
        steps = plan.steps[first:last]
        self.steps: list[Step] = steps
        block = Block(plan, steps, name, wanted, donated, number)
        self.inputs, self.outputs, self.memory, self.over = block.inputs, block.outputs, block.memory, block.over
        self.checks = block.checks
        self.sizes = plan.sizes
        self.allocates: bool = is_size(self.memory) or self.memory > ON_STACK
        self.called = block.called
        self.shares = "adjoint_parallel" in self.called
        self.kernels = [line for nest in block.nests for line in nest.shown()]
        work = sum(s.work for s in steps if not isinstance(s, Host))
        self.text = "\n".join([*block.texts, self._entry(block, work)])

    def _entry(self, block: Block, work: int) -> str:
        b = Builder()
        pointers: dict[int, str] = {}
        memory = stack = "null"
        if is_size(self.memory) or 0 < self.memory <= ON_STACK:
            memory = stack = b(f"alloca [{ON_STACK if self.allocates else self.memory} x i8], align 64")
        failed = b("alloca i8, align 1") if self.checks else ""
        arrays = len(self.inputs) + len(self.outputs)
        sizes = self.sizes.values if self.sizes is not None else ()
        self._check(b, b(f"icmp eq i64 %count, {arrays + len(sizes)}"))
        given = [b(f"call i64 @PyLong_AsSsize_t(ptr {self._argument(b, arrays + i)})") for i in range(len(sizes))]
        begin, pointers[id(SIZES)] = len(b.lines), "%" + b.name()
        for i, x in enumerate((*self.inputs, *self.outputs)):
            array = self._argument(b, i)
            self._check_array(b, array, x)
            pointers[id(x)] = self._field(b, array, DATA, "ptr")
        if failed:
            b.do(f"store i8 0, ptr {failed}, align 1")
            pointers[id(FAILED)] = failed
        if self.shares:
            self._begin_workers(b)
        if self.allocates:
            memory = self._allocated(b, stack)
        thread = b("call ptr @PyEval_SaveThread()") if is_size(work) or work >= _ALONE else ""
        block.calls(b, pointers, memory)
        if thread:
            b.do(f"call void @PyEval_RestoreThread(ptr {thread})")
        if self.allocates:
            b.do(f"call void @keep(ptr {memory}, ptr {stack})")
        if failed:
            held, interrupted, raised = b.name(), b.name(), b.name()
            fails = b(f"load i8, ptr {failed}, align 1")
            b.do(f"br i1 {b(f'icmp eq i8 {fails}, 0')}, label %{held}, label %{interrupted}")
            b.label(interrupted)  # or not: then what is raised says that a check does not hold
            error = b("call ptr @PyErr_Occurred()")
            b.do(f"br i1 {b(f'icmp eq ptr {error}, null')}, label %refused, label %{raised}")
            b.label("refused")
            b.do("call void @PyErr_SetNone(ptr @adjoint_not_held)")
            b.do(f"br label %{raised}")
            b.label(raised)
            b.do("ret ptr null")
            b.label(held)
        b.do(f"ret ptr {b('call ptr @PyBool_FromLong(i64 1)')}")
        b.label("unlike")
        b.do(f"ret ptr {b('call ptr @PyBool_FromLong(i64 0)')}")
        if self.sizes is not None:
            place, text = pointers[id(SIZES)], "\n".join([*block.texts, *b.lines])
            computed = self.sizes.computed(text, given, place)
            b.lines[begin:begin] = computed
            names = {name for name in DECLARED if any([f"@{name}(" in line for line in computed])}
            self.called = {**self.called, **{name: DECLARED[name] for name in names}}
            b.lines.insert(0, f"  {place} = alloca [{max(1, len(self.sizes.names))} x i64], align 8")
        lines = "\n".join(b.lines)
        return f"define ptr @{self.name}(ptr %self, ptr %arguments, i64 %count) #0 {{\nentry:\n{lines}\n}}"

    def _allocated(self, b: Builder, stack: str) -> str:
        """Memory for what only the kernels see."""
        missing, found = b.name(), b.name()
        memory = b(f"call ptr @allocate(i64 {self.memory}, ptr {stack})")
        b.do(f"br i1 {b(f'icmp eq ptr {memory}, null')}, label %{missing}, label %{found}")
        b.label(missing)
        b.do(f"ret ptr {b('call ptr @PyErr_NoMemory()')}")
        b.label(found)
        return memory

    def _begin_workers(self, b: Builder) -> None:
        """Have Python begin them where there are none yet, or no more."""
        starts, goes, found = b.name(), b.name(), b.name()
        ready = b("load atomic i64, ptr @adjoint_pool monotonic, align 8")
        b.do(f"br i1 {b(f'icmp eq i64 {ready}, 0')}, label %{starts}, label %{goes}")
        b.label(starts)
        none = b("call ptr @PyObject_CallNoArgs(ptr @adjoint_begin)")
        b.do(f"br i1 {b(f'icmp eq ptr {none}, null')}, label %{found}_error, label %{found}")
        b.label(f"{found}_error")
        b.do("ret ptr null")
        b.label(found)
        b.do(f"call void @Py_DecRef(ptr {none})")
        b.do(f"br label %{goes}")
        b.label(goes)

    def _argument(self, b: Builder, i: int) -> str:
        return b(f"load ptr, ptr {b(f'getelementptr ptr, ptr %arguments, i64 {i}')}, align 8")

    def _field(self, b: Builder, array: str, place: int, type_: str) -> str:
        return b(f"load {type_}, ptr {b(f'getelementptr i8, ptr {array}, i64 {place}')}, align 4")

    def _check(self, b: Builder, holds: str) -> None:
        after = b.name()
        b.do(f"br i1 {holds}, label %{after}, label %unlike")
        b.label(after)

    def _check_array(self, b: Builder, array: str, x: Value) -> None:
        """That it is an array of NumPy's own class, and in dtype, shape and memory what the loops were written for."""
        self._check(b, b(f"icmp eq ptr {self._field(b, array, TYPE, 'ptr')}, @adjoint_array"))
        dtype = self._field(b, array, DTYPE, "ptr")
        flags = b(f"and i32 {self._field(b, array, FLAGS, 'i32')}, {WANTED}")
        axes = self._field(b, array, AXES, "i32")
        self._check(b, b(f"icmp eq ptr {dtype}, @adjoint_{x.dtype.name}"))
        self._check(b, b(f"icmp eq i32 {flags}, {WANTED}"))
        self._check(b, b(f"icmp eq i32 {axes}, {len(x.shape)}"))
        if x.shape:
            sizes = self._field(b, array, SHAPE, "ptr")
            for axis, n in enumerate(x.shape):
                size = b(f"load i64, ptr {b(f'getelementptr i64, ptr {sizes}, i64 {axis}')}, align 8")
                self._check(b, b(f"icmp eq i64 {size}, {n}"))


def regions(
    plan: Plan, wanted: set[Any], name: Callable[[], str], donated: Container[Any] = (), apart: bool = False
) -> dict[int, Region]:
    """The regions of a plan, by the step that each begins with. Results may be written over donated inputs.

    `apart` makes a region of each kernel; kernels have the names that they have otherwise.
    """
    found = {}
    for steps in between_hosts(plan.steps):
        together = name()
        for i in steps if apart else steps[:1]:
            last = i + 1 if apart else steps.stop
            found[i] = Region(plan, i, last, together, wanted, donated, i - steps.start)
    return found


# With a frame pointer LLVM can have the stack begin at a multiple of 64: else vectors that there is no register for lie
# across two lines of the cache.
HEADER = """declare ptr @PyBool_FromLong(i64)
declare ptr @PyEval_SaveThread()
declare void @PyEval_RestoreThread(ptr)
declare i32 @PyGILState_Ensure()
declare void @PyGILState_Release(i32)
declare i32 @PyErr_CheckSignals()
declare ptr @PyErr_Occurred()
declare i64 @PyLong_AsSsize_t(ptr)
declare void @PyErr_SetNone(ptr)
@adjoint_not_held = external global i8
attributes #0 = { nounwind "prefer-vector-width"="512" "frame-pointer"="all" }
attributes #1 = { nounwind alwaysinline "prefer-vector-width"="512" }
attributes #2 = { nounwind alwaysinline "prefer-vector-width"="512" }
"""

WORKERS = """@adjoint_pool = external global i8
@adjoint_begin = external global i8
declare ptr @PyObject_CallNoArgs(ptr)
declare void @Py_DecRef(ptr)"""


_INLINED = 4000  # lines that elementary functions may take in their callers: LLVM's time grows with their square


def module(parts: Sequence[Region]) -> str:
    """The text of regions that are compiled together."""
    dtypes = {x.dtype.name for r in parts for x in (*r.inputs, *r.outputs)}
    outside = ["@adjoint_array = external global i8", *[f"@adjoint_{n} = external global i8" for n in sorted(dtypes)]]
    declared = {key: text for r in parts for key, text in r.called.items()}
    if any(r.shares for r in parts):
        outside.append(WORKERS)
    if any(r.allocates for r in parts):
        outside.append(HEAP)
    text = "\n".join([*[declared[key] for key in sorted(declared)], *[r.text for r in parts], ""])
    inlined = [(key, lines) for key, lines in declared.items() if INLINE in lines]
    if sum([(text.count(f"@{key}(") - 1) * lines.count("\n") for key, lines in inlined]) > _INLINED:
        text = text.replace(INLINE, ") #0 {")
    return "\n".join([HEADER, *outside, text])
