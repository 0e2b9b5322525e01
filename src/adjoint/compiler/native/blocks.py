"""Kernels one after the other, and loops of them, in one piece of memory."""

from __future__ import annotations

from collections.abc import Container, Sequence
from typing import Any

import numpy as np

from adjoint.compiler.graph import Value
from adjoint.compiler.native.across import Across, crosses
from adjoint.compiler.native.convolutions import Convolved
from adjoint.compiler.native.kernels import (
    MOVED,
    Check,
    Choice,
    Convolution,
    Kernel,
    Loop,
    Product,
    Step,
    While,
    bytes_of,
)
from adjoint.compiler.native.loops import FAILED, Nest
from adjoint.compiler.native.parallel import Shared, shared
from adjoint.compiler.native.plan import Plan
from adjoint.compiler.native.products import PRODUCTS
from adjoint.compiler.native.symbolic import SIZES, with_sizes
from adjoint.compiler.native.text import Builder, memory_type
from adjoint.compiler.native.transposes import Transposed, transposes
from adjoint.compiler.sizes import is_size
from adjoint.primitives.sizes import as_recorded

_BYTE = np.dtype(np.uint8)
_COPY = "llvm.memcpy.p0.p0.i64"
_ON_STACK = 1 << 12  # bytes of memory of a loop
_HOSTED = 1 << 16  # bytes from which on a temporary array is put where an output will be
_WRITTEN = 2500  # lines of a function across rows: LLVM's time grows with their square
_ORDERED = 300  # arrays for which a second order of places is tried: its time grows with their square


class Block:
    """Steps of a plan as functions, in order: what they read, what they write, and places of what only they see."""

    memory: int
    places: dict[int, int]

    def __init__(
        self,
        plan: Plan,
        steps: Sequence[Step],
        name: str,
        wanted: set[Any],
        donated: Container[Any] = (),
        number: int = 0,
    ) -> None:
        self.nests: list[Nest | Controlled] = []
        for i, step in enumerate(steps, number):
            inner = f"{name}_{i}"
            if isinstance(step, Kernel):
                self.nests.append(_nest(plan, step, inner))
            elif isinstance(step, Product):
                self.nests.append(PRODUCTS[step.way](plan, step, inner))
            elif isinstance(step, Convolution):
                self.nests.append(Convolved(plan, step, inner))
            elif isinstance(step, Loop):
                self.nests.append(Repeated(plan, step, inner))
            elif isinstance(step, Choice):
                self.nests.append(Chosen(plan, step, inner))
            elif isinstance(step, While):
                self.nests.append(Conditional(plan, step, inner))
            elif isinstance(step, Check):
                self.nests.append(Checked(plan, step, inner))
        given = set(plan.memory.values())  # inputs that are written to
        written = list(dict.fromkeys(x for n in self.nests for x in n.written if x not in given))
        self.outputs: list[Value | Any] = [x for x in written if x in wanted]
        self.inputs: list[Value] = list(
            dict.fromkeys(x for n in self.nests for x in n.buffers if isinstance(x, Value) and x not in written)
        )
        self.over: dict[Value, list[Value]] = {}  # inputs that an output may be written over
        self.hosted: dict[int, Value] = {}  # what lies in the memory of an output until that is computed
        later: set[int] = set()
        hosts: set[Value] = set()
        for n in reversed(self.nests):
            pairs = [(out, x) for out, x in n.over() if out in self.outputs and id(x) not in later]
            for out, x in pairs:
                if x in self.inputs:
                    self.over.setdefault(out, []).append(x)
            for out, x in pairs:
                mine = x in written and x not in wanted and id(x) not in self.hosted
                if mine and out not in hosts and not any(y in donated for y in self.over.get(out, ())):
                    self.hosted[id(x)] = out
                    hosts.add(out)
                    self.over.pop(out, None)
            later.update(id(x) for x in n.buffers)
        if plan.sizes is None:
            self._host(plan, written, wanted, donated, hosts)
        left = [x for x in written if x not in wanted and id(x) not in self.hosted]
        self.places, self.memory = shared_places(self.nests, left)
        self.texts: list[str] = [text for n in self.nests for text in n.texts]
        self.called: dict[str, str] = {key: text for n in self.nests for key, text in n.called.items()}

        self.checks: bool = any(x is FAILED for n in self.nests for x in n.buffers)

    def _host(
        self, plan: Plan, written: list[Any], wanted: set[Any], donated: Container[Any], hosts: set[Value]
    ) -> None:
        """Have what is large lie in an output that is computed after its last use, if that is not much larger."""
        lives: dict[Any, tuple[int, int]] = {}
        for i, n in enumerate(self.nests):
            for x in n.buffers:
                if x.__class__ is Value:
                    lives[x] = lives.get(x, (i, i))[0], i
        free = [
            x
            for x in self.outputs
            if x not in hosts and x not in plan.parts and not any(y in donated for y in self.over.get(x, ()))
        ]
        for x in written:
            if x in wanted or id(x) in self.hosted or bytes_of(x) < _HOSTED:
                continue
            for out in free:
                if lives[x][1] < lives[out][0] and bytes_of(x) <= bytes_of(out) <= 2 * bytes_of(x):
                    self.hosted[id(x)] = out
                    self.over.pop(out, None)
                    free.remove(out)
                    break

    def calls(self, b: Builder, pointers: dict[int, str], memory: str) -> None:
        """Call all functions; `pointers` are those of inputs and outputs."""
        found = {**pointers, **{key: pointers[id(out)] for key, out in self.hosted.items()}}
        for key, place in self.places.items():
            found[key] = b(f"getelementptr i8, ptr {memory}, i64 {place}")
        for n in self.nests:
            b.do(f"call void @{n.name}({', '.join(f'ptr {found[id(x)]}' for x in n.buffers)})")


class Controlled:
    """A function that calls blocks, and memory that only it sees."""

    b: Builder
    current: list[str]
    name: str
    plan: Plan
    results: list[str]

    def __init__(self, plan: Plan, name: str, operands: Sequence[Any], results: Sequence[Any]) -> None:
        self.plan, self.name, self.b = plan, name, Builder()
        self.written: list[Any] = [x for x in results if x not in plan.memory]
        self.buffers: list[Any] = []
        self.current = [self._pointer(plan.root.get(x, x)) for x in operands]
        self.results = [self._pointer(plan.root.get(x, x)) for x in results]

    def _inner(self, plan: Plan, name: str) -> tuple[Block, dict[int, str], str]:
        """A block, pointers that it is given in any case, and its memory."""
        block = Block(plan, plan.steps, self.name + name, set(plan.graph.outputs))
        given = {id(x): self._pointer(x) for x in block.inputs if x.const is not None}
        for x in (FAILED, SIZES):
            if any(y is x for n in block.nests for y in n.buffers):
                given[id(x)] = self._pointer(x)
        return block, given, self._room(block.memory) if block.memory else ""

    def _close(self, blocks: Sequence[Block]) -> None:
        lines = "\n".join(with_sizes(self.b.lines, self.plan.sizes, lambda: self._pointer(SIZES)))
        arguments = ", ".join(f"ptr %b{i}" for i in range(len(self.buffers)))
        text = f"define internal void @{self.name}({arguments}) #0 {{\nentry:\n{lines}\n  ret void\n}}"
        self.texts: list[str] = [*[text for block in blocks for text in block.texts], text]
        self.called: dict[str, str] = {_COPY: f"declare void @{_COPY}(ptr, ptr, i64, i1)", **self.b.called}
        for block in blocks:
            self.called.update(block.called)
        self._blocks = blocks

    def shown(self) -> list[str]:
        inner = [f"  {line}" for block in self._blocks for n in block.nests for line in n.shown()]
        return [f"{self.name}: {type(self).__name__.lower()}", *inner]

    def over(self) -> list[tuple[Value, Value]]:
        return []

    def _room(self, size: int) -> str:
        """Memory that only this function sees: on the stack if it is small."""
        if not is_size(size) and size <= _ON_STACK:
            return self.b(f"alloca [{size} x i8], align 64")
        return self._pointer((size, _BYTE))

    def _copy(self, to: str, source: str, size: int) -> None:
        if to == source:
            return
        self.b.do(f"call void @{_COPY}(ptr {to}, ptr {source}, i64 {size}, i1 false)")

    def _pointer(self, buffer: Any) -> str:
        for i, x in enumerate(self.buffers):
            if x is buffer:
                return f"%b{i}"
        self.buffers.append(buffer)
        return f"%b{len(self.buffers) - 1}"


class Repeated(Controlled):
    """A scan: the step's functions in a loop, with carried arrays in two places by turns."""

    name: str

    def __init__(self, plan: Plan, step: Loop, name: str) -> None:
        e, graph = step.equation, step.step.graph
        super().__init__(plan, name, step.operands, e.results)
        b, current, results = self.b, self.current, self.results
        n, m, length = (e.parameters[key] for key in ("count", "rows", "length"))
        sizes = [bytes_of(x) for x in graph.outputs[:n]]
        stays = [x in step.step.memory for x in graph.outputs[:n]]  # where it is, and each step writes to it
        swaps = [as_recorded(size) > MOVED and not stay for size, stay in zip(sizes, stays, strict=True)]
        places = [[] if stays[k] else [self._room(sizes[k]) for _ in (0, 1)] for k in range(n)]
        block, constants, arena = self._inner(step.step, "s")
        for k, size in enumerate(sizes):
            if not swaps[k]:
                self._copy(results[k] if stays[k] else places[k][0], current[k], size)
        carried = [("ptr", p) for k in range(n) if swaps[k] for p in (current[k], *places[k])]
        loop = b.begin(length, 1, carried)
        turning = iter([x for _, _, x in loop.carried])
        turns = [
            [results[k]] * 2 if stays[k] else [next(turning) for _ in range(3)] if swaps[k] else places[k]
            for k in range(n)
        ]  # of each carried array where it is, where its next value is written, and where the one after that
        index = b(f"sub i64 {length - 1}, {loop.counter}") if e.parameters["reverse"] else loop.counter
        given = dict(constants)
        for k, x in enumerate(graph.inputs):
            if k < n:
                given[id(x)] = turns[k][0]
            elif k < n + m:
                given[id(x)] = _row(b, current[k], index, x)
            else:
                given[id(x)] = current[k]
        for k, x in enumerate(graph.outputs):
            given[id(x)] = turns[k][1] if k < n else _row(b, results[k], index, x)
        block.calls(b, given, arena)
        for k, size in enumerate(sizes):
            if not swaps[k]:
                self._copy(turns[k][0], turns[k][1], size)
        b.end(loop, [x for k in range(n) if swaps[k] for x in (turns[k][1], turns[k][2], turns[k][1])])
        for k, size in enumerate(sizes):
            self._copy(results[k], turns[k][1], size)
        self._close([block])


class Chosen(Controlled):
    """The function that a number says, which writes the results."""

    def __init__(self, plan: Plan, step: Choice, name: str) -> None:
        super().__init__(plan, name, step.operands, step.equation.results)
        b = self.b
        parts = [self._inner(case, f"c{k}") for k, case in enumerate(step.cases)]
        index = step.operands[0]
        t = memory_type(index.dtype)
        which = b(f"load {t}, ptr {self.current[0]}, align {index.dtype.itemsize}")
        labels, after = [b.name() for _ in parts], b.name()
        cases = " ".join(f"{t} {k}, label %{label}" for k, label in enumerate(labels))
        b.do(f"switch {t} {which}, label %{labels[-1]} [ {cases} ]")
        for (block, given, arena), case, label in zip(parts, step.cases, labels, strict=True):
            b.label(label)
            pointers = [*self.current[1:], *self.results]
            names = [*case.graph.inputs, *case.graph.outputs]
            block.calls(b, {**given, **{id(x): p for x, p in zip(names, pointers, strict=True)}}, arena)
            b.do(f"br label %{after}")
        b.label(after)
        self._close([block for block, _, _ in parts])


class Conditional(Controlled):
    """A loop that goes on as long as its condition holds. Now and then it asks whether somebody interrupts it."""

    def __init__(self, plan: Plan, step: While, name: str) -> None:
        super().__init__(plan, name, step.operands, step.equation.results)
        b, n = self.b, step.equation.parameters["count"]
        goes, goes_given, goes_arena = self._inner(step.goes, "c")
        block, given, arena = self._inner(step.step, "s")
        failed, truth = self._pointer(FAILED), self._room(1)
        sizes = [bytes_of(x) for x in step.step.graph.outputs]
        following = [  # where a step writes; what stays where it is it writes to there
            result if x in step.step.memory else self._room(size)
            for x, result, size in zip(step.step.graph.outputs, self.results, sizes, strict=True)
        ]
        for k, size in enumerate(sizes):
            self._copy(self.results[k], self.current[k], size)
        pointers = [*self.results, *self.current[n:]]
        turn = b.name(), b.name(), b.name(), b.name(), b.name()
        head, body, more, asks, after = turn
        before = b.block
        count, next_count = "%" + b.name(), "%" + b.name()
        b.do(f"br label %{head}")
        b.label(head)
        b.lines.append(f"  {count} = phi i64 [ 0, %{before} ], [ {next_count}, %{more} ], [ {next_count}, %{asks} ]")
        of_goes = dict(zip(map(id, step.goes.graph.inputs), pointers, strict=True))
        goes.calls(b, {**goes_given, **of_goes, id(step.goes.graph.outputs[0]): truth}, goes_arena)
        there = b(f"icmp ne i8 {b(f'load i8, ptr {truth}, align 1')}, 0")
        b.do(f"br i1 {there}, label %{body}, label %{after}")
        b.label(body)
        of_step = dict(zip(map(id, step.step.graph.inputs), pointers, strict=True))
        made = dict(zip(map(id, step.step.graph.outputs), following, strict=True))
        block.calls(b, {**given, **of_step, **made}, arena)
        for k, size in enumerate(sizes):
            self._copy(self.results[k], following[k], size)
        b.lines.append(f"  {next_count} = add i64 {count}, 1")
        broken = b(f"icmp ne i8 {b(f'load i8, ptr {failed}, align 1')}, 0")
        b.do(f"br i1 {broken}, label %{after}, label %{more}")
        b.label(more)
        often = (1 << max(0, 22 - as_recorded(step.turn).bit_length())) - 1
        rarely = b(f"icmp eq i64 {b(f'and i64 {next_count}, {often}')}, {often}")
        b.do(f"br i1 {rarely}, label %{asks}, label %{head}")
        b.label(asks)
        state = b("call i32 @PyGILState_Ensure()")
        found = b("call i32 @PyErr_CheckSignals()")
        b.do(f"call void @PyGILState_Release(i32 {state})")
        stops = b(f"zext i1 {b(f'icmp ne i32 {found}, 0')} to i8")
        b.do(f"store i8 {stops}, ptr {failed}, align 1")
        goes_on = b(f"icmp eq i8 {stops}, 0")
        b.do(f"br i1 {goes_on}, label %{head}, label %{after}")
        b.label(after)
        self._close([goes, block])


class Checked(Controlled):
    """Notes where something does not hold."""

    def __init__(self, plan: Plan, step: Check, name: str) -> None:
        super().__init__(plan, name, [step.holds], [])
        b, failed = self.b, self._pointer(FAILED)
        fails = b(f"xor i8 {b(f'load i8, ptr {self.current[0]}, align 1')}, 1")
        before = b(f"load i8, ptr {failed}, align 1")
        b.do(f"store i8 {b(f'or i8 {fails}, {before}')}, ptr {failed}, align 1")
        self._close([])


def _row(b: Builder, pointer: str, index: str, x: Any) -> str:
    """The part of a stack that belongs to a step."""
    start = b(f"mul nsw i64 {index}, {bytes_of(x)}")
    return b(f"getelementptr i8, ptr {pointer}, i64 {start}")


def _nest(plan: Plan, kernel: Kernel, name: str) -> Nest:
    """A kernel's loops: in squares if it transposes, across rows if that is not too long to be written out."""
    if transposes(kernel) is not None:
        return Transposed(plan, kernel, name)
    if crosses(kernel):
        across = Across(plan, kernel, name)
        if all(text.count("\n") <= _WRITTEN for text in across.texts):
            return across
    return (Shared if shared(kernel) else Nest)(plan, kernel, name)


def shared_places(nests: Sequence[Any], temporary: Sequence[Value]) -> tuple[dict[int, int], int]:
    """Places in one piece of memory, shared by what is not needed at the same time, and the size of all."""
    wanted = {id(x) for x in temporary}
    lives: dict[int, tuple[int, int]] = {}  # the first and the last step that has it
    sizes: dict[int, int] = {}
    over: dict[int, list[int]] = {}  # what may have one place, one after the other
    for i, nest in enumerate(nests):
        for out, x in nest.over():
            over.setdefault(id(out), []).append(id(x))
            over.setdefault(id(x), []).append(id(out))
        for x in nest.buffers:
            if x is FAILED or x is SIZES:
                continue
            if isinstance(x, Value):
                if id(x) not in wanted:
                    continue
                size = bytes_of(x)
            else:
                count, dtype = x
                size = _aligned(count * dtype.itemsize)  # whole vectors may be kept there
            lives[id(x)] = lives.get(id(x), (i, i))[0], i
            sizes[id(x)] = size
    if any(map(is_size, sizes.values())):
        return _slots(lives, sizes, over)
    early = sorted(sizes, key=lambda k: (lives[k][0], -sizes[k]))
    found = _packed(early, lives, sizes, over, by_time=True)
    if 2 < len(sizes) < _ORDERED:
        large = sorted(sizes, key=lambda k: (-sizes[k], lives[k][0]))
        found = min(found, _packed(large, lives, sizes, over), key=lambda packed: packed[1])
    return found


def _slots(
    lives: dict[int, tuple[int, int]], sizes: dict[int, Any], over: dict[int, list[int]]
) -> tuple[dict[int, Any], Any]:
    """One place after the other, each for those of one size: which of two sizes is larger is not asked."""
    places: dict[int, Any] = {}
    last: dict[str, dict[Any, int]] = {}  # by the text of a size, which had a place last
    end: Any = 0
    for key in sorted(sizes, key=lambda k: lives[k][0]):
        first, slots = lives[key][0], last.setdefault(str(sizes[key]), {})
        free = [k for k in slots.values() if lives[k][1] < first or (lives[k][1] == first and k in over.get(key, ()))]
        if free:
            places[key] = places[free[-1]]
        else:
            places[key], end = end, end + _aligned(sizes[key])
        slots[str(places[key])] = key
    return places, end


def _packed(
    order: Sequence[int],
    lives: dict[int, tuple[int, int]],
    sizes: dict[int, int],
    over: dict[int, list[int]],
    by_time: bool = False,
) -> tuple[dict[int, int], int]:
    """Each at the first place that is free while it is needed, or where what it is written over lies, or later will."""
    places: dict[int, int] = {}
    earlier: list[int] = []
    for key in order:
        first, last = lives[key]
        near = [k for k in earlier if lives[k][0] <= last and first <= lives[k][1]]
        taken = sorted([(places[k], places[k] + sizes[k], k) for k in near])
        at = 0
        for begin, end, _ in taken:
            if at + sizes[key] <= begin:
                break
            at = max(at, _aligned(end))
        for k in over.get(key, ()):
            ends = k in places and sizes[k] == sizes[key] and (lives[k][1] == first or lives[k][0] == last)
            if ends and not any(other != k and b < places[k] + sizes[k] and places[k] < e for b, e, other in taken):
                at = places[k]
                break
        places[key] = at
        earlier = [*(near if by_time else earlier), key]  # the others end before what comes now begins
    return places, max([places[k] + sizes[k] for k in places], default=0)


def _aligned(size: int) -> int:
    return -(-size // 64) * 64
