"""A kernel of short rows, such as those of points in space: a vector has one column of several rows.

Where a row has two or three columns, a vector of eight along it would be mostly empty, and its sum would be taken from
one vector. Across rows all lanes are full, and the sum of a row's columns is a sum of vectors. The columns, and row
axes behind the one that vectors go along, are written out one after the other.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any

from adjoint.compiler.graph import Equation, Value
from adjoint.compiler.native import reductions
from adjoint.compiler.native.elementary import CALLED
from adjoint.compiler.native.kernels import REDUCTIONS, Kernel, split_of
from adjoint.compiler.native.machine import has_avx512, vector_bytes
from adjoint.compiler.native.parallel import Shared, call_parts, divided, is_divided, shared
from adjoint.compiler.native.text import Vector, element_type, memory_type
from adjoint.compiler.sizes import is_size
from adjoint.primitives.sizes import as_recorded

_COLUMNS = 16  # of what is written out, at most; twice as many where functions are called, which take turns
_WORK = 600  # operations that are written out, a function counted as `_CALLED`
_CALLED = 8
_FEW = 2048  # elements for whose loop an instruction that gathers is as quick as loads one by one, and shorter
_WOVEN = 4  # vectors that are taken from memory, or go there, as one piece

Place = tuple[int, ...]  # along the axes that are written out; 0 on those that a value does not have
Sum = tuple[Equation, Place]  # a reduction, and where its result is
State = dict[Sum, list[str]]  # what reductions carry along


def _lanes(kernel: Kernel) -> int:
    return max(1, vector_bytes() // max([x.dtype.itemsize for x in kernel.kind]))


def _axis(kernel: Kernel) -> int | None:
    """The axis that vectors go along: the last one of rows that has enough of them, or may have."""
    most = 2 * _COLUMNS if any(e.name in CALLED for e in kernel.equations) else _COLUMNS
    for axis in reversed(range(split_of(kernel))):
        written = math.prod(kernel.domain[axis + 1 :])
        if is_size(written) or written > most:
            break
        if is_size(kernel.domain[axis]) or kernel.domain[axis] >= 2 * _lanes(kernel):
            return axis
    return None


def _is_piece(stride: int) -> bool:
    """Whether rows that are so far apart may be read or written as one piece."""
    return not is_size(stride) and 2 <= stride <= _WOVEN


def crosses(kernel: Kernel) -> bool:
    """Whether vectors of a kernel go across its rows."""
    axis = _axis(kernel)
    if axis is None or any(e.name in ("gather", "scatter") for e in kernel.equations):
        return False
    columns = math.prod(kernel.domain[split_of(kernel) :])
    if not kernel.reduced and "row" not in kernel.kind.values() and (columns > _WOVEN or 2 * columns > _lanes(kernel)):
        return False  # nothing takes longer along the row
    work = sum([_CALLED if e.name in CALLED else 1 for e in kernel.equations])
    if work * math.prod(kernel.domain[axis + 1 :]) > _WORK:
        return False
    for over in kernel.reduced.values():
        before = tuple([a for a in over if a <= axis])
        if axis in before and before not in ((axis,), tuple(range(axis + 1))):
            return False
    return True


class Across(Shared):
    """The text of a kernel's function, with vectors across rows."""

    def _write(self) -> None:
        kernel, axis = self.kernel, _axis(self.kernel)
        assert axis is not None
        self.axis: int = axis
        self.lanes = self.carried = _lanes(kernel)
        self.row, self.wide = Vector(self.b, 1), Vector(self.b, self.lanes)
        self.gathers = has_avx512() and self.lanes > 2 and as_recorded(math.prod(kernel.domain)) <= _FEW
        self.outer: int = math.prod(kernel.domain[:axis])
        self.whole: int = kernel.domain[axis] // self.lanes * self.lanes
        self._left: int = kernel.domain[axis] % self.lanes  # rows that fill no vector
        self._ordered = sorted(kernel.equations, key=lambda e: self.level[e.results[0]])  # type: ignore[index]
        self._here = {}
        self._counters: list[str] = []  # of axes before the one that vectors go along
        self._known: dict[tuple[Value, Place], str] = {}  # of the rows that are computed
        self._place: Place = ()  # that is computed
        count = self.outer if self.outer > 1 else self.whole // self.lanes
        sums = self._reductions("before")
        length, self._is_divided = self._cut(count, sums), shared(kernel) and is_divided(self.parts)
        state = self._starts(self._sums("all"))
        if self._is_divided:
            state = self._in_parts(state, sums, length)
        else:
            self.parts = 1
            for e in sums:
                self._cleared(e)
            state = self._swept(state)
        self._save_sums(state)
        self._close()

    def _orders(self) -> list[list[Equation]]:
        return [self._ordered]

    def _rows_at_once(self) -> int:
        return 1

    def shown(self) -> list[str]:
        """What it computes, for people to read."""
        name, size, names = super().shown()[0].split(": ")
        return [f"{name}: {size.replace(' in 1 parts', '')} across rows: {names}"]

    def _in_parts(self, state: State, sums: Sequence[Equation], length: int) -> State:
        buffers = self._before(sums)
        unit = 1 if self.outer > 1 else self.lanes
        first, end = self._bounds(length * unit, self.outer if self.outer > 1 else self.whole)
        found = self._swept(state, first, end)
        equations = [e for e, _ in state]
        kept = self._keep(equations, list(found.values()))
        text = divided(self)
        self.row, self.wide, self._here = Vector(self.b, 1), Vector(self.b, self.lanes), {}
        call_parts(self, self.parts)
        for e, buffer in zip(sums, buffers, strict=True):
            self._join_rows(e, buffer)
        state = dict(zip(state, self._added(equations, kept), strict=True))
        if self.outer == 1:
            self._counters, self.addresses = [], {}
            state = self._rest(state)
        self.texts = [text]
        return state

    def _close(self) -> None:
        before = self.texts if self._is_divided else []
        super()._close()
        self.texts = [*before, *self.texts]

    # --- reductions ---

    def _how(self, e: Equation) -> str:
        """What a reduction goes over: columns of `each` row, rows `along` the axis or on axes `before` it, or `all`."""
        if e.name not in REDUCTIONS:
            return ""
        axes = self._axes(e)
        if self.axis in axes:
            return "all" if 0 in axes else "along"
        return "each" if min(axes) > self.axis else "before"

    def _axes(self, e: Equation) -> Sequence[int]:
        out: Any = e.results[0]
        return self.kernel.reduced[out]

    def _sums(self, how: str) -> list[Sum]:
        return [(e, place) for e in self._reductions(how) for place in self._places(self.kernel.axes[e.results[0]])]  # type: ignore[index]

    def _starts(self, sums: Sequence[Sum]) -> State:
        return {(e, place): reductions.started(e) for e, place in sums}

    def _carried(self, state: State) -> list[tuple[str, str]]:
        return reductions.carried([e for e, _ in state], list(state.values()), self.lanes)

    def _renamed(self, state: State, names: Sequence[str]) -> State:
        left = iter(names)
        return {key: [next(left) for _ in values] for key, values in state.items()}

    def _save_sums(self, state: State) -> None:
        for (e, place), values in state.items():
            out: Any = e.results[0]
            if out in self.kernel.stored:
                self._save(
                    self.row,
                    reductions.finished(self.b, e, values, self.lanes),
                    self._pointer_at(out, place),
                    out.dtype,
                    "0",
                    1,
                )

    # --- the loops ---

    def _swept(self, state: State, first: str = "0", stop: int | str | None = None) -> State:
        """All rows, or those of a part: some outer ones, or some along the axis where there are no others."""
        b = self.b
        self._counters, self.addresses = [], {}
        if self.outer == 1:
            found = self._along(state, first, self.whole if stop is None else stop)
            return self._rest(found) if stop is None else found
        kept, state = state, {**state, **self._rest_starts()}
        loop = b.begin(self.outer if stop is None else stop, 1, self._carried(state), first)
        left = loop.counter
        for n in reversed(self.kernel.domain[1 : self.axis]):
            self._counters.insert(0, b(f"urem i64 {left}, {n}"))
            left = b(f"udiv i64 {left}, {n}")
        self._counters.insert(0, left)
        along = self._starts(self._sums("along"))
        inner = self._renamed(state, [name for _, _, name in loop.carried])
        inner = self._rest(self._along({**inner, **along}, "0", self.whole))
        self._save_sums({key: inner[key] for key in along})
        found = {key: inner[key] for key in state}
        b.end(loop, [x for values in found.values() for x in values])
        self._counters, self.addresses = [], {}
        self._save_rest({key: values for key, values in found.items() if key not in kept})
        return {key: found[key] for key in kept}

    def _rest_starts(self) -> State:
        """Sums over all outer rows, for the rows that fill no vector: these are carried along, and stored in the end.

        In memory each outer row would wait for what the one before it has stored with a mask.
        """
        if not is_size(self._left) and not self._left:
            return {}
        sums = [(e, place) for e, place in self._sums("before") if {*range(self.axis)} <= {*self._axes(e)}]
        return {(e, place): [reductions.started(e)[0]] for e, place in sums}

    def _save_rest(self, state: State) -> None:
        found: Any = {(e.results[0], place): values[0] for (e, place), values in state.items()}
        self._known = found
        for out in dict.fromkeys([out for out, _ in found]):
            self._store(out, f"{self.whole}", self._left)

    def _along(self, state: State, first: str, stop: int | str, live: int | None = None) -> State:
        """Full vectors of rows along the axis, or one of which so many are there."""
        kernel = self.kernel
        late = [x for x in kernel.stored if kernel.kind[x] == "late" and self.axis not in kernel.axes[x]]
        for x in (*kernel.read, *kernel.stored):  # before the loop, once
            if x not in late:
                self._first(x)
        loop = self.b.begin(stop, self.lanes, self._carried(state), first, is_size(self.whole))
        inner = self._renamed(state, [name for _, _, name in loop.carried])
        found = self._vectors(inner, loop.counter, self.lanes if live is None else live)
        return self._renamed(found, self.b.end(loop, [x for values in found.values() for x in values]))

    def _rest(self, state: State) -> State:
        if is_size(self._left):  # there may be none
            return self._along(state, f"{self.whole}", self.kernel.domain[self.axis], self._left)
        return self._vectors(state, f"{self.whole}", self._left) if self._left else state

    def _vectors(self, state: State, index: str, live: int) -> State:
        """All equations, for so many rows from this one on."""
        state, kernel = dict(state), self.kernel
        self._known = {}
        for e in self._ordered:
            out: Any = e.results[0]
            if e.name in REDUCTIONS:
                self._reduce(e, state, index, live)
                if self._how(e) in ("along", "all") or self._is_carried(e, state, live):
                    continue
            else:
                for place in self._places(kernel.axes[out]):
                    self._place = place
                    self._known[out, place] = self._computed(self.wide, e, {}, index, live)
            if out in kernel.stored:
                self._store(out, index, live)
        return state

    def _reduce(self, e: Equation, state: State, index: str, live: int) -> None:
        out: Any = e.results[0]
        how = self._how(e)
        for place in self._places(range(len(self.kernel.domain))):
            self._place, at = place, self._of(place, out)
            x = self._operand(self.wide, e.operands[0], {}, index, live)
            if how in ("along", "all"):
                state[e, at] = self._reduced(self.wide, e, state[e, at], x, live)
                continue
            carried = self._is_carried(e, state, live)
            if carried:
                self._known[out, at] = state[e, at][0]
            elif how == "before" and (out, at) not in self._known:
                self._fetch(out, at, index, live)
            before = self._known.get((out, at)) or reductions.started(e)[0]
            self._known[out, at] = reductions.combined(self.wide, e, before, x)
            if carried:
                state[e, at] = [self._known[out, at]]

    def _is_carried(self, e: Equation, state: State, live: int) -> bool:
        """Whether its sums for these rows are in no memory."""
        is_rest = is_size(live) or live < self.lanes
        return is_rest and self._how(e) == "before" and any(other is e for other, _ in state)

    # --- places along the axes that are written out ---

    def _places(self, axes: Sequence[int | None]) -> list[Place]:
        """All along those of these axes."""
        first = self.axis + 1
        tail = self.kernel.domain[first:]
        return [*itertools.product(*[range(n) if first + i in axes else (0,) for i, n in enumerate(tail)])]

    def _of(self, place: Place, x: Value) -> Place:
        """The place in a value that has some of the axes."""
        axes = self.kernel.axes[x]
        return tuple([i if self.axis + 1 + k in axes else 0 for k, i in enumerate(place)])

    def _operand(self, v: Vector, x: Value, memo: dict[Value, str], index: str, live: int) -> str:
        if x not in self.kernel.read:
            x = self._root(x)
            return self._known[x, self._of(self._place, x)]
        strides = self._access(x)[2][self.axis + 1 :]
        place = tuple([i if s else 0 for i, s in zip(self._place, strides, strict=True)])
        if (x, place) not in self._known:
            self._fetch(x, place, index, live)
        return self._known[x, place]

    # --- memory ---

    def _first(self, x: Value) -> str:
        """The pointer to the first element of a value in this outer row."""
        found = self.addresses.get(x)
        if found is None:
            buffer, offset, strides, dtype = self._access(x)
            total = str(offset)
            for counter, stride in zip(self._counters, strides, strict=False):
                if stride:
                    total = self.b(f"add nsw i64 {total}, {self.b(f'mul nsw i64 {counter}, {stride}')}")
            found = self.b(f"getelementptr {memory_type(dtype)}, ptr {self._pointer(buffer)}, i64 {total}")
            self.addresses[x] = found
        return found

    def _beside(self, x: Value, place: Place) -> int:
        """How many elements a place is from the first one."""
        strides = self._access(x)[2][self.axis + 1 :]
        return sum([i * s for i, s in zip(place, strides, strict=True)])

    def _pointer_at(self, x: Value, place: Place) -> str:
        return self._moved_elements(x, self._beside(x, place))

    def _moved_elements(self, x: Value, count: int) -> str:
        first = self._first(x)
        return self.b(f"getelementptr {memory_type(x.dtype)}, ptr {first}, i64 {count}") if count else first

    def _fetch(self, x: Value, place: Place, index: str, live: int) -> None:
        """A vector from memory, or all of a piece in which rows lie one after the other."""
        v, stride = self.wide, self._access(x)[2][self.axis]
        if stride == 0:
            found = self._load(self.row, self._pointer_at(x, place), x.dtype, "0", 0, 1)
            self._known[x, place] = self._spread(found, element_type(x.dtype))
        elif not self._in_pieces(live) or (before := self._before_row(x)) is None:
            self._known[x, place] = self._load(v, self._pointer_at(x, place), x.dtype, index, stride, live)
        else:
            t = memory_type(x.dtype)
            whole = f"<{stride * self.lanes} x {t}>"
            at = self.b(f"mul nsw i64 {index}, {stride}")
            start = self.b(f"getelementptr {t}, ptr {self._moved_elements(x, -before)}, i64 {at}")
            if is_size(live):
                masks = self._masks(live, stride)
                places = [self.b(f"getelementptr {t}, ptr {start}, i64 {i * self.lanes}") for i in range(stride)]
                pieces = zip(places, masks, strict=True)
                piece = self._woven(t, [self._masked(v, "load", at, x.dtype, live, mask=mask) for at, mask in pieces])
            else:
                piece = self.b(f"load {whole}, ptr {start}, align {x.dtype.itemsize}")
            for other in self._places([k for k, s in enumerate(self._access(x)[2]) if s]):
                column = before + self._beside(x, other)
                lanes = ", ".join(f"i32 {column + lane * stride}" for lane in range(self.lanes))
                self._known[x, other] = self.b(
                    f"shufflevector {whole} {piece}, {whole} poison, <{self.lanes} x i32> <{lanes}>"
                )

    def _before_row(self, x: Value) -> int | None:
        """Of rows that lie one after the other, how many elements of each are before the first one that is read.

        None where they lie otherwise, or where a vector of whole rows would reach beyond the array.
        """
        buffer, offset, strides, dtype = self._access(x)
        stride, outer = strides[self.axis], strides[: self.axis]
        if not _is_piece(stride) or dtype.kind == "b" or any(s < 0 or s % stride for s in outer):
            return None
        if any(map(is_size, strides[self.axis + 1 :])):
            return None
        before = offset % stride
        columns = [before + self._beside(x, place) for place in self._places(range(len(strides)))]
        end = offset - before + self.whole * stride
        end += sum([(n - 1) * s for n, s in zip(self.kernel.domain, outer, strict=False)])
        return before if 0 <= min(columns) <= max(columns) < stride and end <= math.prod(buffer.shape) else None

    def _store(self, x: Value, index: str, live: int) -> None:
        stride = self._access(x)[2][self.axis]
        places = self._places(self.kernel.axes[x])
        beside: list[Any] = [self._beside(x, place) for place in places]
        woven = self._in_pieces(live) and _is_piece(stride) and not any(map(is_size, beside)) and x.dtype.kind != "b"
        if stride == 0:
            for place in places:
                one = self.b(f"extractelement {self.wide.type(element_type(x.dtype))} {self._known[x, place]}, i64 0")
                found = self.row.spread(one, element_type(x.dtype))
                self._save(self.row, found, self._pointer_at(x, place), x.dtype, "0", 1)
        elif woven and sorted(beside) == [*range(stride)]:
            self._save_woven(x, [self._known[x, places[beside.index(i)]] for i in range(stride)], index, live)
        else:
            for place in places:
                pointer = self._pointer_at(x, place)
                self._save(self.wide, self._known[x, place], pointer, x.dtype, index, live, stride)

    def _save_woven(self, x: Value, parts: list[str], index: str, live: int) -> None:
        """Columns as rows, one after the other."""
        b, t, lanes, count = self.b, memory_type(x.dtype), self.lanes, len(parts)
        row = f"<{count * lanes} x {t}>"
        order = [column * lanes + lane for lane in range(lanes) for column in range(count)]
        found = self._woven(t, parts, order)
        at = b(f"mul nsw i64 {index}, {count}")
        place = b(f"getelementptr {t}, ptr {self._first(x)}, i64 {at}")
        if is_size(live):
            for i, mask in enumerate(self._masks(live, count)):
                of_piece = ", ".join(f"i32 {i * lanes + lane}" for lane in range(lanes))
                piece = b(f"shufflevector {row} {found}, {row} poison, <{lanes} x i32> <{of_piece}>")
                at = b(f"getelementptr {t}, ptr {place}, i64 {i * lanes}")
                self._masked(self.wide, "store", at, x.dtype, live, piece, mask)
        else:
            b.do(f"store {row} {found}, ptr {place}, align {x.dtype.itemsize}")

    def _in_pieces(self, live: int) -> bool:
        """Whether rows may be read and written as one piece: all that a vector has, or as many as sizes say."""
        return is_size(live) or live == self.lanes

    def _masks(self, live: int, stride: int) -> list[str]:
        """Of the vectors that rows of so many elements are, where so many rows are there.

        One mask of all of them LLVM takes apart bit by bit.
        """
        whole = self.b(f"mul i32 {self.b(f'trunc i64 {live} to i32')}, {stride}")
        return [self._lanes_before(self.b(f"sub i32 {whole}, {i * self.lanes}")) for i in range(stride)]

    def _woven(self, t: str, parts: Sequence[str], order: Sequence[int] | None = None) -> str:
        """Vectors one after the other, or their elements in this order."""
        lanes, count = self.lanes, len(parts)
        one, pair = f"<{lanes} x {t}>", f"<{2 * lanes} x {t}>"
        parts = [*parts, *["poison"] * (count % 2)]
        both = ", ".join(f"i32 {i}" for i in range(2 * lanes))
        pairs = [
            self.b(f"shufflevector {one} {first}, {one} {second}, <{2 * lanes} x i32> <{both}>")
            for first, second in zip(parts[::2], parts[1::2], strict=True)
        ]
        places = ", ".join(f"i32 {i}" for i in order or range(count * lanes))
        second = pairs[1] if count > 2 else "poison"
        return self.b(f"shufflevector {pair} {pairs[0]}, {pair} {second}, <{count * lanes} x i32> <{places}>")
