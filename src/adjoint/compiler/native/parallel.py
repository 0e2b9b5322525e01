"""A kernel whose loop is cut into parts, which several threads take.

A part has some rows, or some columns where there are no rows. How many parts there are follows from shapes alone. Each
has a sum of its own, and these are added in order: so results are the same whoever computed which part.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from adjoint.compiler.graph import Equation
from adjoint.compiler.native import reductions
from adjoint.compiler.native.elementary import CALLED
from adjoint.compiler.native.kernels import Kernel, split_of
from adjoint.compiler.native.loops import FAILED, Nest
from adjoint.compiler.native.memory import Indices
from adjoint.compiler.native.pool import DECLARED
from adjoint.compiler.native.symbolic import SIZES, with_sizes
from adjoint.compiler.native.text import Builder, Loop, Vector, element_type
from adjoint.compiler.sizes import is_size, larger, smaller

_WORTH = 1 << 17  # nanoseconds times eight: a loop that takes less is not shared
_PART = 1 << 15  # ... of a part
_PARTS = 32
_PARTS_OF_SUMS = 8  # of which each has an array for sums over rows
_ROWS = 8  # of a part that has such sums, at least
_COLUMNS = 256  # at least, where these are cut: two vectors of any type
_CALLED = 8  # an elementary function, in operations
_ON_STACK = 1 << 16  # bytes that a part may have there


def shared(kernel: Kernel) -> bool:
    """Whether it is worth to have several threads run a kernel, and these can: places that are named are no parts.

    Of a size that stands for several it may be, and the number of parts says how it is.
    """
    if any(e.name == "scatter" for e in kernel.equations) or not _may_be(_cost(kernel), _WORTH):
        return False
    rows = math.prod(kernel.domain[: split_of(kernel)])
    if any(kernel.kind[x] == "late" and len(over) < len(kernel.domain) for x, over in kernel.reduced.items()):
        return _may_be(rows, 2 * _ROWS)
    return _may_be(rows, 2) or ("row" not in kernel.kind.values() and _may_be(math.prod(kernel.domain), _COLUMNS))


def _may_be(n: int, least: int) -> bool:
    return is_size(n) or n >= least


def _cost(kernel: Kernel) -> int:
    """About eight times the nanoseconds that it takes: those of memory, and those of operations."""
    size = math.prod(kernel.domain)
    wide = [x.dtype.itemsize for x, how in kernel.read.items() if how[2]]
    wide += [x.dtype.itemsize for x in kernel.stored if kernel.kind[x] == "full"]
    widest = max([x.dtype.itemsize for x in kernel.kind])
    operations = sum([_CALLED if e.name in CALLED else 1 for e in kernel.equations])
    found: int = size * (sum(wide) + operations * widest) // 8
    return found


def parts_of_kernel(kernel: Kernel, count: int, sums: bool) -> int:
    """Into how many parts so many rows, or vectors of columns, are cut at most. There may be sums over rows."""
    return _parts(_cost(kernel), smaller(count // _ROWS, _PARTS_OF_SUMS) if sums else count)


def parts_of(count: int, work: int) -> int:
    """Into how many parts a loop of so many steps and multiplications is cut."""
    if not _may_be(count, 2) or not _may_be(work, _WORTH):
        return 1
    return _parts(work, count)


def _parts(cost: int, most: int) -> int:
    """Parts of what is worth sharing, else one."""
    found: int = larger(smaller(smaller(cost // _PART, cost // _WORTH * _PARTS), smaller(most, _PARTS)), 1)
    return found


def cut(count: int, parts: int, turns: int = 1) -> tuple[int, int]:
    """How many of so many steps a part has, whole turns, and how many parts there are then. There is always one."""
    length = larger(-(-count // (parts * turns)) * turns, 1)
    return length, larger(-(-count // length), 1)


def is_divided(parts: int) -> bool:
    """Whether there are parts: of a number that follows from sizes there may be."""
    return _may_be(parts, 2)


def begun(b: Builder, sizes: Sequence[int], parts: int) -> tuple[list[Loop], list[str], int]:
    """Loops over axes, their counters, and how many parts there are: of several one loop counts all steps of a part."""
    loops, counters, whole = [], [], math.prod(sizes)
    if not is_divided(parts):
        for size in sizes:
            loops.append(b.begin(size))
            counters.append(loops[-1].counter)
        return loops, counters, 1
    length, parts = cut(whole, parts)
    start = b(f"mul nuw nsw i64 %part, {length}")
    stop = b.call("llvm.umin.i64", "i64", [b(f"add nuw nsw i64 {start}, {length}"), str(whole)])
    loops.append(b.begin(stop, first=start))
    left = loops[0].counter
    for size in reversed(sizes):
        counters.insert(0, b(f"urem i64 {left}, {size}"))
        left = b(f"udiv i64 {left}, {size}")
    return loops, counters, parts


def divided(nest: Nest) -> str:
    """The text of the function that computes a part, of which `%part` is the number; what follows is another one."""
    body = with_sizes(nest.b.lines, nest.plan.sizes, lambda: nest._pointer(SIZES))
    loads = []
    for i in range(len(nest.buffers)):
        loads.append(f"  %a{i} = getelementptr ptr, ptr %data, i64 {i}")
        loads.append(f"  %b{i} = load ptr, ptr %a{i}, align 8")
    lines, called = "\n".join([*loads, *body]), nest.b.called
    nest.b = Builder()
    nest.b.called.update(called)
    return f"define internal void @{nest.name}_part(ptr %data, i64 %part) #0 {{\nentry:\n{lines}\n  ret void\n}}"


def close(nest: Nest, parts: int) -> None:
    """End the text of a nest: of several parts each is computed by a function of its own."""
    if not is_divided(parts):
        return nest._close()
    text = divided(nest)
    call_parts(nest, parts)
    nest._close()
    nest.texts.insert(0, text)


def call_parts(nest: Nest, parts: int) -> None:
    """Have all parts computed, one alone without asking others."""
    b = nest.b
    data = b(f"alloca [{len(nest.buffers)} x ptr], align 8")
    for i in range(len(nest.buffers)):
        b.do(f"store ptr %b{i}, ptr {b(f'getelementptr ptr, ptr {data}, i64 {i}')}, align 8")
    b.called["adjoint_parallel"] = DECLARED
    together = f"call void @adjoint_parallel(ptr @{nest.name}_part, ptr {data}, i64 {parts})"
    if not is_size(parts):
        return b.do(together)
    alone = f"call void @{nest.name}_part(ptr {data}, i64 0)"
    return b.where(f"eq i64 {parts}, 1", lambda: b.do(alone), lambda: b.do(together))


class Shared(Nest):
    """The text of a function that computes a part, and of one that has all parts computed and joins their sums."""

    most: int
    parts: int

    def _write(self) -> None:
        self._here: dict[int, str] = {}  # memory that one part sees, by what it is in the place of
        runs = self._row_axes()
        totals, sums = self._reductions("total"), self._reductions("rows")
        vectors = self.columns // self.lanes
        count = math.prod([size for size, _ in runs]) if runs else vectors
        length = self._cut(count, sums, self.turns)
        buffers = self._before(sums)
        first, end = self._bounds(length * (1 if runs else self.lanes), count * (1 if runs else self.lanes))
        state = {id(e): reductions.started(e) for e in totals}
        rest = self.rest
        if runs:
            state = self._rows(runs, totals, state, first, end)
        else:
            self.span, self.rest = (first, end), 0
            state = self._row_passes(state, [[]])
        kept = self._keep(totals, [state[id(e)] for e in totals])
        self._after()
        text = divided(self)
        self.row, self.wide, self._here = Vector(self.b, 1), Vector(self.b, self.lanes), {}
        call_parts(self, self.parts)
        state = dict(zip(map(id, totals), self._added(totals, kept), strict=True))
        if not runs and (is_size(rest) or rest):
            self.span, self.rest = ("0", 0), rest
            state = self._row_passes(state, [[]])
        self._save_totals(totals, state)
        for e, buffer in zip(sums, buffers, strict=True):
            self._join_rows(e, buffer)
        self._close()
        self.texts.insert(0, text)

    def _cut(self, count: int, sums: Sequence[Equation], turns: int = 1) -> int:
        """Have so many rows or vectors cut into parts, of which this is the length."""
        length, self.parts = cut(count, parts_of_kernel(self.kernel, count, bool(sums)), turns)
        self.most = self.parts  # for which there is memory
        if is_size(self.parts):
            self.most = _PARTS_OF_SUMS if sums else _PARTS
        return length

    def shown(self) -> list[str]:
        name, size, names = super().shown()[0].split(": ")
        return [f"{name}: {size} in {self.parts} parts: {names}"]

    def _pointer(self, buffer: Any) -> str:
        return self._here.get(id(buffer)) or super()._pointer(buffer)

    # --- a part ---

    def _before(self, sums: Sequence[Equation]) -> list[Any]:
        """Memory of this part, and the arrays in which other parts than the first one have their sums over rows."""
        b, buffers = self.b, []
        room = sum([math.prod([n, t.itemsize]) for n, t in self._scratch()])
        for scratch in self._scratch():
            size, dtype = scratch
            if not is_size(room) and room <= _ON_STACK:
                self._here[id(scratch)] = b(f"alloca [{size * dtype.itemsize} x i8], align 64")
            else:
                whole = self._pointer(self._kept_memory((self.most * size, dtype)))
                self._here[id(scratch)] = self._moved_by(whole, "%part", size * dtype.itemsize)
        for e in sums:
            out: Any = e.results[0]
            size = math.prod(out.shape)
            buffers.append(self._kept_memory(((self.most - 1) * size, out.dtype)))
            first, other = self._pointer(out), self._pointer(buffers[-1])
            mine = self._moved_by(other, b("sub i64 %part, 1"), size * out.dtype.itemsize)
            self._here[id(out)] = b(f"select i1 {b('icmp eq i64 %part, 0')}, ptr {first}, ptr {mine}")
            self._cleared(e)
        if any(e.name == "gather" for e in self.kernel.equations):
            self._failed = self._pointer(FAILED)
            self._here[id(FAILED)] = b("alloca i8, align 1")
            b.do(f"store i8 0, ptr {self._here[id(FAILED)]}, align 1")
        return buffers

    def _scratch(self) -> list[Any]:
        return [where for where in self.kept.values() if where.__class__ is tuple]

    def _kept_memory(self, buffer: Any) -> Any:
        """The same; it is known by its identity."""
        super()._pointer(buffer)
        return buffer

    def _moved_by(self, pointer: str, count: str, size: int) -> str:
        return self.b(f"getelementptr i8, ptr {pointer}, i64 {self.b(f'mul nsw i64 {count}, {size}')}")

    def _bounds(self, length: int, whole: int) -> tuple[str, str]:
        b = self.b
        first = b(f"mul nuw nsw i64 %part, {length}")
        end = b(f"add nuw nsw i64 {first}, {length}")
        return first, b(f"select i1 {b(f'icmp ult i64 {end}, {whole}')}, i64 {end}, i64 {whole}")

    def _rows(
        self, runs: list[tuple[int, int]], totals: list[Equation], state: dict[int, list[str]], first: str, end: str
    ) -> dict[int, list[str]]:
        """All rows are counted as one, so that as few as there are can be shared."""
        b, count = self.b, math.prod([size for size, _ in runs])

        def indices(row: str) -> Indices:
            inner, found = count, []
            for k, (size, axes) in enumerate(runs):
                inner //= size
                index = b(f"udiv i64 {row}, {inner}") if inner > 1 else row
                found.append((b(f"urem i64 {index}, {size}") if k else index, axes))
            return found

        return self._in_turns(totals, state, first, end, count, indices)

    def _keep(self, totals: list[Equation], state: list[list[str]]) -> list[list[Any]]:
        """Leave a part's sums for those who add them up."""
        found = []
        for e, values in zip(totals, state, strict=True):
            dtype = e.operands[0].dtype
            found.append([self._kept_memory((self.most * self.carried, dtype)) for _ in values])
            for x, buffer in zip(values, found[-1], strict=True):
                at = self.b(f"mul nuw nsw i64 %part, {self.carried}")
                self._save(Vector(self.b, self.carried), x, self._pointer(buffer), dtype, at, self.carried)
        return found

    def _after(self) -> None:
        if id(FAILED) in self._here:
            fails = self.b(f"load i8, ptr {self._here[id(FAILED)]}, align 1")
            self.b.do(f"atomicrmw or ptr {self._failed}, i8 {fails} monotonic")

    # --- all of them ---

    def _added(self, totals: list[Equation], kept: list[list[Any]]) -> list[list[str]]:
        """The sums of all parts, in order."""
        state = [reductions.started(e) for e in totals]
        if not totals:
            return state
        b, v = self.b, Vector(self.b, self.carried)
        loop = b.begin(self.parts, 1, reductions.carried(totals, state, self.carried))
        names = iter([name for _, _, name in loop.carried])
        at = b(f"mul nuw nsw i64 {loop.counter}, {v.lanes}")
        for k, (e, buffers) in enumerate(zip(totals, kept, strict=True)):
            dtype = e.operands[0].dtype
            before = [next(names) for _ in buffers]
            parts = [self._load(v, self._pointer(x), dtype, at, 1, v.lanes) for x in buffers]
            after = self._reduced(v, e, before, parts[0], v.lanes)
            if len(parts) == 2:
                after[1] = v.two("fadd", element_type(dtype), after[1], parts[1])
            state[k] = after
        b.end(loop, [x for values in state for x in values])
        return state

    def _join_rows(self, e: Equation, buffer: Any) -> None:
        """Add what the other parts have to what the first one has, in order."""
        out: Any = e.results[0]
        b, v, size = self.b, self.wide, math.prod(out.shape)
        whole, rest = size // self.lanes * self.lanes, size % self.lanes
        others = b.begin(self.parts - 1, may_skip=is_size(self.parts) or self.parts == 1)
        part = self._moved_by(self._pointer(buffer), others.counter, size * out.dtype.itemsize)

        def add(index: str, live: int) -> None:
            x, y = (self._load(v, place, out.dtype, index, 1, live) for place in (self._pointer(out), part))
            self._save(v, reductions.combined(v, e, x, y), self._pointer(out), out.dtype, index, live)

        if whole:
            loop = b.begin(whole, self.lanes)
            add(loop.counter, self.lanes)
            b.end(loop)
        if rest:
            add(str(whole), rest)
        b.end(others)
