"""Products of matrices as loops around a tile of the result that stays in registers.

The tile is some rows of the result by a few vectors of columns. For each summed index, the vectors of one row of `y`
are read once, and each is multiplied with one number of each row of `x` and added to its place in the tile. So two
reads serve many multiplications. The columns of `y` that a tile needs are a panel, which all tiles of these columns
read. If its rows do not lie as vectors, or lie far apart and are read very often, it is first copied to where they
follow each other: the second cache has time enough to give a tile its two vectors at a time. Long sums are made in
parts, so that a panel stays in the caches near to the processor; long sums of few numbers in shorter parts, so that
they are about as exact as BLAS's.

This is the scheme of Goto and van de Geijn (Anatomy of high-performance matrix multiplication, 2008) and of BLIS (Van
Zee and van de Geijn, 2015), with copies of `x` only where its rows lie across, and the processor is faster than its
caches: very large matrices, which need them always, go to BLAS, if its vectors are as long as the processor's. Threads
share the blocks of a large product. BLAS's own threads wait for each other, and so for a core that another program has;
those who share blocks do not.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from adjoint.compiler.native.machine import adds_products, blas_is_narrow, multiplies_twice, registers, vector_bytes
from adjoint.compiler.native.symbolic import coarse
from adjoint.compiler.native.text import Builder, Vector, memory_type
from adjoint.compiler.native.views import Layout
from adjoint.compiler.sizes import is_size
from adjoint.primitives import DType

_SUMMED = 256  # rows of a panel: as many as the nearest cache has room for
_EXACT, _CHEAP = 32, 1_000_000  # rows of a panel where there are so few multiplications
_APART = 4000  # bytes between rows of `y`, from which on each is on a page of memory of its own
_OFTEN = 20  # tiles that read a panel, from which on a copy of such rows pays
_SOON = 8  # the same of any rows, for a processor that multiplies twice: vectors on two lines of its cache are too slow
_PANELS = 4  # that read the same rows of `x` across, from which on a copy of these pays there
_DOTS = 3  # rows of the result, up to which sums are made along what is summed, of columns at places
_TURNED = 16  # rows of the result, from which on turning `y` pays
_FEW, _MOST = 1 << 14, 1 << 26  # multiplications: cheap in any case; of ours
_BLOCK = 1 << 20  # multiplications of a block that a thread computes, at least
_BLOCKS, _ENOUGH = 32, 8  # blocks at most; and where more of them read more often
_ROOM = 1 << 20  # bytes of `x` that panels read one after the other: what the second cache has room for
_TILES = 4  # of a block's columns, where `x` is read across
_ROWS = 128  # that a block has at least, and a product of any number of rows or columns is thought to have
_WIDE = 8  # vectors of a tile at most
_SIZES = ("rows", "summed", "columns", "x_down", "x_right", "y_down", "y_right", "lead")  # that a function may be given


class Shape(NamedTuple):
    """How a tile is cut out of a product: rows, and vectors of columns, of which the last one may be partly there.

    `vectors` is how many there are, where columns are the name of a number.
    """

    rows: int
    columns: Any
    vectors: int = 0


class After(NamedTuple):
    """What is computed with a vector of the product before it is written.

    `read` has the strides of arrays along rows and columns, of which the latter is 1 or 0, and the former None where
    rows lie as those of the product do. `written` is how many arrays are written, which lie like that. `made` gives
    what is written to each of these, of a vector of the product and one of each array that is read. Whoever has the
    same `key` computes the same.
    """

    key: str
    read: Sequence[tuple[int | None, int]]
    written: int
    made: Callable[[Vector, str, Sequence[str]], Sequence[str]]

    def arguments(self) -> list[str]:
        """The names of pointers to arrays, those that are written first; where parts of sums lie is the first one."""
        return [f"%w{i}" for i in range(1, self.written)] + [f"%r{i}" for i in range(len(self.read))]


def product(
    b: Builder,
    dtype: DType,
    x: Layout,
    y: Layout,
    pointers: Sequence[str],
    places: Sequence[int] | str = (),
    lead: Any = 0,
    adds: bool = False,
    part: int = 0,
    across: bool | None = None,
    after: After | None = None,
) -> None:
    """Call the product of two matrices, with pointers to the first elements of both and of the result.

    `places` are where the rows of `y` begin, or the columns, where their stride is 0; a string points to them. `lead`
    is how far the rows of the result are apart, if they do not follow each other. `adds` has it added to what is
    there. `part` is how many products are summed before they are added to the others, and `across` whether all panels
    are read with the same rows, where that does not follow from the sizes. What comes `after` has pointers to more
    arrays, and the first that it writes is in the place of the product. Sizes and strides that are no numbers, but
    stand for several or are names, are arguments of the function. Equal products of a module are one function.
    """
    lead = lead or y.shape[1]
    across = is_across(x, y) if across is None else across
    name = _Matrices(b, dtype, x, y, places, lead, adds, part or part_of(x, y), across, after).name
    given = [f"ptr {p}" for p in (*pointers, *[places] * isinstance(places, str))]
    given += [f"i64 {n}" for n in (*x.shape, y.shape[1], *x.strides, *y.strides, lead) if not _is_known(n)]
    b.do(f"call void @{name}({', '.join(given)})")


def _is_known(n: Any) -> bool:
    """Whether a size is a number: others stand for several, or are names in what is written."""
    return type(n) is int


def _about(n: Any) -> int:
    """A number, or about what others are."""
    return n if _is_known(n) else _ROWS


def part_of(x: Layout, y: Layout) -> int:
    """How many products of a long sum are summed before they are added to the others."""
    area, summed = _about(x.shape[-2]) * _about(y.shape[-1]), x.shape[-1]
    if not _is_known(summed):
        return _SUMMED if area * _SUMMED > _CHEAP else _EXACT
    return min(summed, _SUMMED if area * summed > _CHEAP else _EXACT)


def has_parts(x: Layout, y: Layout) -> bool:
    """Whether it may be that not all products of a sum are summed at once."""
    return not _is_known(x.shape[-1]) or part_of(x, y) < x.shape[-1]


def block_of(x: Layout, y: Layout, itemsize: int) -> Shape | None:
    """How many rows and columns of a product one thread computes at a time; None where one thread computes all."""
    rows, columns = x.shape[-2], y.shape[-1]
    work: Any = coarse(rows * x.shape[-1] * columns)
    if work < 2 * _BLOCK:
        return None
    tile = tile_shape(rows, columns, vector_bytes() // itemsize)
    if not (_is_known(rows) and _is_known(columns)):
        wide = tile.columns * (1 if _is_known(columns) else _TILES)
        high = max(_ROWS, _BLOCK // (_about(x.shape[-1]) * wide))
        high = -(-high // tile.rows) * tile.rows
        return Shape(min(rows, high) if _is_known(rows) else high, wide)
    count = _BLOCKS if is_size(work) else min(_BLOCKS, work // _BLOCK)
    tall, wide = -(-rows // tile.rows), -(-columns // tile.columns)
    if is_across(x, y):
        down = min(count, tall)
        across = max(1, min(count // down, wide // _TILES))
    else:
        near = max(1, _ROOM // (part_of(x, y) * itemsize * tile.rows))  # tiles
        low = -(-tall // near)
        across = min(max(1, count // low), wide)
        down = max(low, min(count // across, -(-_ENOUGH // across), tall))
    block = Shape(min(rows, -(-tall // down) * tile.rows), min(columns, -(-wide // across) * tile.columns))
    return block if (block.rows, block.columns) != (rows, columns) else None


def is_across(x: Layout, y: Layout) -> bool:
    """Whether each number of a row of `x` lies on another line of memory, and all panels are better read with it.

    Then all of `y` is read with each tile's rows, for which a fast processor waits if it is the larger matrix.
    """
    down, right = x.strides[-2:]
    if multiplies_twice() and _about(y.shape[-1]) > _about(x.shape[-2]):
        return False
    return _is_one(down) and not _is_one(right) and right != 0 and _is_one(y.strides[-1])


def _is_one(n: Any) -> bool:
    return _is_known(n) and n == 1


def serves_any(x: Layout, y: Layout) -> bool:
    """Whether these loops are faster than BLAS for sizes that stand for several."""
    work: Any = x.shape[-2] * x.shape[-1] * y.shape[-1]
    return not is_vector(x, y) and (blas_is_narrow() or bool(coarse(work) <= _MOST))


def is_vector(x: Layout, y: Layout) -> bool:
    """Whether a product is numbers, each the sum of what two lines in memory give."""
    return _is_one(y.shape[-1]) or (_is_one(x.shape[-2]) and not _is_one(y.strides[-1]))


def pays(x: Layout, y: Layout) -> bool:
    """Whether these loops are faster than BLAS, as far as was measured with OpenBLAS.

    They take half its time where its vectors are half as long: it knows few of AMD's processors with AVX-512.
    """
    rows, columns = x.shape[-2], y.shape[-1]
    work = rows * x.shape[-1] * columns
    if is_vector(x, y) or (work > _MOST and not blas_is_narrow()):
        return False
    return work <= _FEW or y.strides[-1] == 1 or rows >= _TURNED


class _Text:
    """What the functions here share: a dtype, vectors of it, and addresses."""

    def __init__(self, dtype: DType) -> None:
        self.b, self.dtype, self.type = Builder(), dtype, memory_type(dtype)
        self.lanes = vector_bytes() // dtype.itemsize

    def at(self, pointer: str, *parts: tuple[int | str, int | str], offset: int = 0) -> str:
        """The address so many elements on: each index times its stride, of which either may be a name."""
        total = offset + sum([int(i) * int(s) for i, s in parts if _is_known(s) and not _is_name(i)])
        found = str(total)
        for index, stride in parts:
            if (_is_name(index) or not _is_known(stride)) and stride != 0 and index not in (0, "0"):
                part = index if stride == 1 else self.b(f"mul nsw i64 {index}, {stride}")
                found = self.b(f"add nsw i64 {found}, {part}") if found != "0" else str(part)
        return pointer if found == "0" else self.b(f"getelementptr {self.type}, ptr {pointer}, i64 {found}")

    def vectors(self, shape: Shape) -> list[Any]:
        """How many lanes of each vector of a tile are there."""
        columns, lanes = shape.columns, self.lanes
        if _is_known(columns):
            return [min(lanes, columns - first) for first in range(0, columns, lanes)]
        firsts = range(0, shape.vectors * lanes, lanes)
        left = [self.b.call("llvm.usub.sat.i64", "i64", [columns, str(first)]) for first in firsts]
        return [self.b.call("llvm.umin.i64", "i64", [n, str(lanes)]) for n in left]

    def load(self, v: Vector, place: str, live: int | str) -> str:
        t = v.type(self.type)
        if live == v.lanes:
            return self.b(f"load {t}, ptr {place}, align {self.dtype.itemsize}")
        name = f"llvm.masked.load.v{v.lanes}f{8 * self.dtype.itemsize}.p0"
        self.b.called[name] = f"declare {t} @{name}(ptr, i32, {v.type('i1')}, {t})"
        return self.b(
            f"call {t} @{name}(ptr {place}, i32 {self.dtype.itemsize}, {self._mask(v, live)}, {t} zeroinitializer)"
        )

    def store(self, v: Vector, x: str, place: str, live: int | str) -> None:
        t = v.type(self.type)
        if live == v.lanes:
            self.b.do(f"store {t} {x}, ptr {place}, align {self.dtype.itemsize}")
            return
        name = f"llvm.masked.store.v{v.lanes}f{8 * self.dtype.itemsize}.p0"
        self.b.called[name] = f"declare void @{name}({t}, ptr, i32, {v.type('i1')})"
        self.b.do(f"call void @{name}({t} {x}, ptr {place}, i32 {self.dtype.itemsize}, {self._mask(v, live)})")

    def _mask(self, v: Vector, live: int | str) -> str:
        if not isinstance(live, str):
            return f"{v.type('i1')} <{', '.join(f'i1 {int(lane < live)}' for lane in range(v.lanes))}>"
        numbers = f"<{', '.join(f'i32 {lane}' for lane in range(v.lanes))}>"
        count = v.spread(self.b(f"trunc i64 {live} to i32"), "i32")
        holds = self.b(f"icmp ult {v.type('i32')} {numbers}, {count}")
        return f"{v.type('i1')} {holds}"

    def closed(self, name: str, arguments: str) -> str:
        lines = "\n".join(self.b.lines)
        return f"define internal void @{name}({arguments}) #0 {{\nentry:\n{lines}\n  ret void\n}}"


def clear(b: Builder, pointer: str, size: int) -> None:
    """Zeros in so many bytes."""
    b.called["llvm.memset.p0.i64"] = "declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)"
    b.do(f"call void @llvm.memset.p0.i64(ptr {pointer}, i8 0, i64 {size}, i1 false)")


def _added(v: Vector, element: str, x: str, y: str, total: str) -> str:
    """The product added to a total, with one rounding where the processor can."""
    if adds_products():
        return v.call("fma", element, x, y, total)
    return v.two("fadd", element, total, v.two("fmul", element, x, y))


def _places(b: Builder, places: Any, lanes: int) -> str:
    """The name of a list of places, with as many more as a square may look at."""
    import hashlib  # as in machine.py

    content = ", ".join(f"i64 {p}" for p in (*places, *[0] * lanes))
    name = f"@places_{hashlib.sha256(content.encode()).hexdigest()[:16]}"
    b.called[name] = f"{name} = internal constant [{len(places) + lanes} x i64] [{content}]"
    return name


def _is_name(n: Any) -> bool:
    """Whether an index is a value of what is written, not a number."""
    return isinstance(n, str) and n.startswith("%")


class _Matrices(_Text):
    """The function of a whole product: panels of columns, parts of the sum, and tiles."""

    def __init__(
        self,
        caller: Builder,
        dtype: DType,
        x: Layout,
        y: Layout,
        places: Sequence[int] | str,
        lead: Any,
        adds: bool,
        part: int,
        across: bool,
        after: After | None,
    ) -> None:
        super().__init__(dtype)
        self.part, self.across, self.after = part, across, after
        sizes = dict(zip(_SIZES, (*x.shape, y.shape[1], *x.strides, *y.strides, lead), strict=True))
        known: list[Any] = [n if _is_known(n) else f"%{name}" for name, n in sizes.items()]
        self.rows, self.summed, self.columns, *_, self.lead = known
        self.x, self.y = Layout((known[0], known[1]), 0, tuple(known[3:5])), Layout((), 0, tuple(known[5:7]))
        self.rows_placed, self.columns_placed = bool(places) and y.strides[0] == 0, bool(places) and y.strides[1] == 0
        is_given, self.places = isinstance(places, str), "%places" if places else ""
        if places and not is_given:
            self.places = _places(caller, places, self.lanes)
        shape, strides = (
            "_".join([str(n) if _is_known(n) else "n" for n in numbers]).replace("-", "m")
            for numbers in (known[:3], known[3:])
        )
        kind = f"{self.places[1:]}{'_adds' * adds}{'_across' * across}{_key(after)}"
        self.name = f"product_f{8 * dtype.itemsize}_{shape}_{part}_{strides}_{kind}"
        if self.name in caller.called:
            return
        if self.columns_placed and adds and _is_known(self.rows) and self.rows <= _DOTS:
            self._dots()
        else:
            self._panels(adds)
        caller.called.update(self.b.called)
        given = [f"i64 {n}" for n in known if not _is_known(n)]
        arguments = ["ptr noalias %x, ptr noalias %y", _others(after), *["ptr noalias %places"] * is_given, *given]
        caller.called[self.name] = self.closed(self.name, ", ".join(arguments))

    def _panels(self, adds: bool) -> None:
        """By tiles: of one panel after the other, or of the same rows."""
        self.tile = tile_shape(self.rows, self.columns, self.lanes)
        rows = _about(self.rows)
        self.copies = not _is_one(self.y.strides[1]) or (not self.rows_placed and self._copy_pays(rows))
        if self.copies:
            size = -(-self.part // self.lanes) * self.lanes  # whole squares
            size *= -(-self.tile.columns // self.lanes) * self.lanes
            self.panel = self.b(f"alloca [{size} x {self.type}], align 64")
        self.packed = ""
        if self.across and not self.copies:
            if multiplies_twice() and _about(self.columns) >= _PANELS * self.tile.columns:
                size = self.part * self._apart
                self.packed = self.b(f"alloca [{size} x {self.type}], align 64")
            self._sums(
                adds,
                lambda start, count: self._down(lambda row, rows: self._rows(start, count, row, rows)),
            )
        elif _is_known(self.summed) and rows * self.summed * self.dtype.itemsize > _ROOM:
            # all panels with what is near of `x`
            self._sums(
                adds,
                lambda start, count: self._in_steps(
                    self.columns,
                    self.tile.columns,
                    lambda first, columns: self._columns(start, count, first, columns),
                ),
            )
        else:
            self._in_steps(
                self.columns,
                self.tile.columns,
                lambda first, columns: self._sums(
                    adds, lambda start, count: self._columns(start, count, first, columns)
                ),
            )

    def _copy_pays(self, rows: int) -> bool:
        """Whether tiles of so many rows read a panel from a copy, though its rows lie as vectors."""
        if multiplies_twice():
            return rows >= _SOON * self.tile.rows and not self.across
        apart = self.y.strides[0]
        far = not _is_known(apart) or apart * self.dtype.itemsize >= _APART
        several = not _is_known(self.columns) or self.columns > self.tile.columns
        return rows >= _OFTEN * self.tile.rows and far and several

    def _sums(self, adds: bool, body: Callable[[str, Any], None]) -> None:
        """Parts of the sum, of which the first is written and others are added, or all are; one is the last."""
        if not _is_known(self.summed):
            one, more = (lambda: self._one_part(adds, body)), (lambda: self._more_parts(adds, body))
            return self.b.where(f"ule i64 {self.summed}, {self.part}", one, more)
        self.adds, self.ends = adds, self.part == self.summed
        if not adds:
            body("0", self.part)
        first = 0 if adds else self.part
        if self.after is None or first == self.summed:
            self.adds = True
            return self._in_steps(self.summed, self.part, body, first=first)
        last = (self.summed - 1) // self.part * self.part
        self.adds = True
        if first < last:
            self._in_steps(last, self.part, body, first=first)
        self.ends = True
        return body(str(last), self.summed - last)

    def _one_part(self, adds: bool, body: Callable[[str, Any], None]) -> None:
        self.adds, self.ends = adds, True
        body("0", self.summed)

    def _more_parts(self, adds: bool, body: Callable[[str, Any], None]) -> None:
        """The first part, those between, of which there may be none, and the last."""
        b, part = self.b, self.part
        self.adds, self.ends = adds, False
        body("0", part)
        self.adds = True
        before = b(f"udiv i64 {b(f'sub i64 {self.summed}, 1')}, {part}")
        last = b(f"mul nuw nsw i64 {before}, {part}")
        self.b.where(f"ult i64 {part}, {last}", lambda: self._whole_steps(last, part, body, first=part))
        self.ends = True
        body(last, b(f"sub i64 {self.summed}, {last}"))

    def _down(self, body: Callable[[str, int], None]) -> None:
        """Tiles of all rows; of any number what is left are tiles of half as many rows, of half of these, and so on."""
        b, step, rows = self.b, self.tile.rows, self.rows
        if _is_known(rows):
            return self._in_steps(rows, step, body)
        rest = b(f"urem i64 {rows}, {step}")
        whole = b(f"sub i64 {rows}, {rest}")
        self.b.where(f"ne i64 {whole}, 0", lambda: self._whole_steps(whole, step, body))
        while step := step // 2:
            row = b(f"sub i64 {rows}, {b(f'and i64 {rest}, {2 * step - 1}')}")
            self.b.where(f"ne i64 {b(f'and i64 {rest}, {step}')}, 0", functools.partial(body, row, step))
        return None

    def _whole_steps(self, total: int | str, step: int, body: Callable[[str, int], None], first: int = 0) -> None:
        loop = self.b.begin(total, step, first=str(first))
        body(loop.counter, step)
        self.b.end(loop)

    def _in_steps(self, total: Any, step: int, body: Callable[[str, Any], None], first: int = 0) -> None:
        """A loop over so many with steps of this size, and what is left."""
        if not _is_known(total):
            left = self.b(f"urem i64 {total}, {step}")
            whole = self.b(f"sub i64 {total}, {left}")
            self.b.where(f"ne i64 {whole}, 0", lambda: self._whole_steps(whole, step, body))
            return self.b.where(f"ne i64 {left}, 0", lambda: body(whole, left))
        rest = (total - first) % step
        if total - rest > first:
            self._whole_steps(total - rest, step, body, first)
        if rest:
            body(str(total - rest), rest)
        return None

    def _dots(self) -> None:
        """Of few rows: along what is summed, with a vector of sums for each place of a row and some columns."""
        self._in_steps(self.columns, min(self.columns, 12 // self.rows), self._sums_along)

    def _sums_along(self, first: str, columns: int) -> None:
        b, v, t = self.b, Vector(self.b, self.lanes), self.type
        there = self.b(f"getelementptr i64, ptr {self.places}, i64 {first}")
        lines = []
        for k in range(columns):
            far = b(f"load i64, ptr {b(f'getelementptr i64, ptr {there}, i64 {k}')}, align 8")
            lines.append(self.at("%y", (far, 1)))
        pairs = [(i, k) for i in range(self.rows) for k in range(columns)]
        totals = ["zeroinitializer"] * len(pairs)

        def added(index: str, live: Any, before: list[str]) -> list[str]:
            xs = [self.load(v, self.at("%x", (index, 1), (i, self.x.strides[0])), live) for i in range(self.rows)]
            ys = [self.load(v, self.at(line, (index, 1)), live) for line in lines]
            return [_added(v, t, xs[i], ys[k], total) for (i, k), total in zip(pairs, before, strict=True)]

        is_known = _is_known(self.summed)
        rest = self.summed % self.lanes if is_known else 0
        whole = self.summed - rest if is_known else self.summed  # of any number the last vector may be partly there
        if whole != 0:
            loop = b.begin(whole, self.lanes, [(v.type(t), total) for total in totals])
            live = self.lanes if is_known else b(f"sub i64 {whole}, {loop.counter}")
            totals = added(loop.counter, live, [name for _, _, name in loop.carried])
            b.end(loop, totals)
        if rest:
            totals = added(str(whole), rest, totals)
        name = f"llvm.vector.reduce.fadd.v{self.lanes}f{8 * self.dtype.itemsize}"
        b.called[name] = f"declare {t} @{name}({t}, {v.type(t)})"
        for (i, k), total in zip(pairs, totals, strict=True):
            place = self.at("%out", (first, 1), (i, self.lead), offset=k)
            old = b(f"load {t}, ptr {place}, align {self.dtype.itemsize}")
            new = b(f"call reassoc {t} @{name}({t} 0.0, {v.type(t)} {total})")
            b.do(f"store {t} {b(f'fadd {t} {old}, {new}')}, ptr {place}, align {self.dtype.itemsize}")

    def _columns(self, start: str, count: Any, first: str, columns: Any) -> None:
        """So many summed rows of a panel, for all rows of the result."""
        y, apart = self.at("%y", (start, self.y.strides[0]), (first, self.y.strides[1])), self.y.strides[0]
        if self.copies:
            y, apart = self.panel, self._copy(y, columns, count, first)
        x = self.at("%x", (start, self.x.strides[1]))

        def tile(row: str, rows: int) -> None:
            there = self.at(x, (row, self.x.strides[0]))
            self._tile(there, self.x.strides, y, apart, (row, first), self._shape(columns, rows), start, count)

        self._down(tile)

    def _shape(self, columns: Any, rows: int = 1) -> Shape:
        """A tile of so many columns of those that a whole one has."""
        return Shape(rows, columns, -(-self.tile.columns // self.lanes))

    def _rows(self, start: str, count: Any, row: str, rows: int) -> None:
        """So many summed columns of some rows of `x`, for all columns of the result."""
        x, of_x = self.at("%x", (start, self.x.strides[1]), (row, self.x.strides[0])), self.x.strides
        if self.packed:
            x, of_x = self.packed, self._pack(x, count, rows)
        y = self.at("%y", (start, self.y.strides[0]))

        def tile(first: str, columns: Any) -> None:
            there = self.at(y, (first, 1))
            self._tile(x, of_x, there, self.y.strides[0], (row, first), self._shape(columns, rows), start, count)

        self._in_steps(self.columns, self.tile.columns, tile)

    @property
    def _apart(self) -> int:
        """How far summed columns are apart in a copy of some rows of `x`."""
        return -(-self.tile.rows // self.lanes) * self.lanes

    def _pack(self, x: str, count: Any, rows: int) -> tuple[int, int]:
        """Copy some rows of `x`, their summed columns one after the other (packing); gives the strides of the copy."""
        v = Vector(self.b, self.lanes)
        loop = self.b.begin(count)
        for first in range(0, rows, self.lanes):
            place = self.at(x, (loop.counter, self.x.strides[1]), offset=first)
            found = self.load(v, place, min(self.lanes, rows - first))
            self.store(v, found, self.at(self.packed, (loop.counter, self._apart), offset=first), v.lanes)
        self.b.end(loop)
        return 1, self._apart

    def _tile(
        self,
        x: str,
        of_x: tuple[Any, ...],
        y: str,
        of_y: Any,
        place: tuple[str, str],
        shape: Shape,
        start: str,
        count: Any,
    ) -> None:
        row, column = place
        places = "null"
        if self.rows_placed:
            places = self.b(f"getelementptr i64, ptr {self.places}, i64 {start}")
        after = self.after if self.ends else None
        how = self.copies, self.adds, self.rows_placed, after
        name = _Tile(self.b, self.dtype, shape, of_x, of_y, self.lead, *how).name
        given = [self.at("%out", (row, self.lead), (column, 1))]
        if after is not None:
            strides = [(None, 1)] * (after.written - 1) + list(after.read)
            for pointer, (down, right) in zip(after.arguments(), strides, strict=True):
                given.append(self.at(pointer, (row, self.lead if down is None else down), (column, right)))
        sizes = [f"i64 {n}" for n in (shape.columns, *of_x, of_y, self.lead) if not _is_known(n)]
        others = ", ".join([*[f"ptr {p}" for p in given], *sizes])
        self.b.do(f"call void @{name}(ptr {x}, ptr {y}, i64 {count}, ptr {places}, {others})")

    def _copy(self, y: str, columns: Any, count: Any, first: str) -> int:
        """The panel, its rows one after the other, in whole vectors: what is not there is zero.

        Gives how far its rows are apart.
        """
        vectors = self.vectors(self._shape(columns))
        apart = len(vectors) * self.lanes
        v = Vector(self.b, self.lanes)
        down, right = self.y.strides
        if _is_one(right):
            loop = self.b.begin(count)
            for k, live in enumerate(vectors):
                found = self.load(v, self.at(y, (loop.counter, down), offset=k * self.lanes), live)
                self.store(v, found, self.at(self.panel, (loop.counter, apart), offset=k * self.lanes), v.lanes)
            self.b.end(loop)
            return apart
        if _is_one(down):
            self._in_steps(count, self.lanes, lambda row, rows: self._turn(y, vectors, first, row, rows))
            return apart
        loop = self.b.begin(count)
        for k, live in enumerate(vectors):
            found = "zeroinitializer"
            for lane in range(live if _is_known(live) else self.lanes):
                column: Any = k * self.lanes + lane
                if not _is_known(live):  # what is not there is the last one that is
                    end = self.b(f"sub i64 {columns}, 1")
                    column = self.b.call("llvm.umin.i64", "i64", [str(column), end])
                place = self.at(y, (loop.counter, down), (column, right))
                one = self.b(f"load {self.type}, ptr {place}, align {self.dtype.itemsize}")
                found = self.b(f"insertelement {v.type(self.type)} {found}, {self.type} {one}, i64 {lane}")
            self.store(v, found, self.at(self.panel, (loop.counter, apart), offset=k * self.lanes), v.lanes)
        self.b.end(loop)
        return apart

    def _turn(self, y: str, vectors: Sequence[Any], first: str, row: str, rows: Any) -> None:
        """Some rows of the panel, from the columns in which they lie."""
        apart, right = len(vectors) * self.lanes, self.y.strides[1]
        for k, live in enumerate(vectors):
            place = self.at(y, (row, 1), (k * self.lanes, right))
            to = self.at(self.panel, (row, apart), offset=k * self.lanes)
            apart_there = f"i64 {right}"
            if self.columns_placed:
                at = self.b(f"add nsw i64 {first}, {k * self.lanes}")
                apart_there = f"ptr {self.b(f'getelementptr i64, ptr {self.places}, i64 {at}')}"
            given = f"ptr {place}, {apart_there}, i64 {live}, i64 {rows}, ptr {to}, i64 {apart}"
            name = _Turned(self.b, self.dtype, self.columns_placed, live == rows == self.lanes).name
            self.b.do(f"call void @{name}({given})")


class _Turned(_Text):
    """The function that copies a square of numbers, its columns as rows, of which some are there: others are zero.

    Lines of the square are read as vectors. Then halves change places between lines, halves of halves, and so on.
    """

    def __init__(self, caller: Builder, dtype: DType, placed: bool, whole: bool) -> None:
        super().__init__(dtype)
        self.name = f"turned_f{8 * dtype.itemsize}{'_placed' * placed}{'_whole' * whole}"
        if self.name in caller.called:
            return
        b, v = self.b, Vector(self.b, self.lanes)
        t, lanes, half = v.type(self.type), v.lanes, v.lanes // 2
        numbers = f"<{', '.join(f'i64 {lane}' for lane in range(lanes))}>"
        name = f"llvm.masked.load.v{lanes}f{8 * dtype.itemsize}.p0"
        b.called[name] = f"declare {t} @{name}(ptr, i32, {v.type('i1')}, {t})"
        lines = []
        for line in range(lanes):
            if placed:
                far = b(f"load i64, ptr {b(f'getelementptr i64, ptr %apart, i64 {line}')}, align 8")
            else:
                far = b(f"mul nsw i64 %apart, {line}")
            place = b(f"getelementptr {self.type}, ptr %from, i64 {far}")
            if whole:
                lines.append(self.load(v, place, lanes))
                continue
            there = b(f"select i1 {b(f'icmp ult i64 {line}, %lines')}, i64 %count, i64 0")
            mask = b(f"icmp ult {v.type('i64')} {numbers}, {v.spread(there, 'i64')}")
            given = f"ptr {place}, i32 {dtype.itemsize}, {v.type('i1')} {mask}, {t} zeroinitializer"
            lines.append(b(f"call {t} @{name}({given})"))
        while half:
            made = list(lines)
            for i in [i for i in range(lanes) if not i & half]:
                first = [lane if not lane & half else lanes + lane - half for lane in range(lanes)]
                second = [lane + half if not lane & half else lanes + lane for lane in range(lanes)]
                for line, picks in ((i, first), (i + half, second)):
                    places = ", ".join(f"i32 {p}" for p in picks)
                    made[line] = b(f"shufflevector {t} {lines[i]}, {t} {lines[i + half]}, <{lanes} x i32> <{places}>")
            lines, half = made, half // 2
        for row, found in enumerate(lines):
            place = b(f"getelementptr {self.type}, ptr %to, i64 {b(f'mul nsw i64 %wide, {row}')}")
            self.store(v, found, place, lanes)
        caller.called.update(b.called)
        apart = "ptr noalias %apart" if placed else "i64 %apart"
        arguments = f"ptr noalias %from, {apart}, i64 %lines, i64 %count, ptr noalias %to, i64 %wide"
        caller.called[self.name] = self.closed(self.name, arguments)


class _Tile(_Text):
    """The function of a tile: a sum over so many products is written to the result, or added to it."""

    def __init__(
        self,
        caller: Builder,
        dtype: DType,
        shape: Shape,
        of_x: tuple[Any, ...],
        of_y: Any,
        lead: Any,
        filled: bool,
        adds: bool,
        placed: bool,
        after: After | None,
    ) -> None:
        super().__init__(dtype)
        sizes = dict(zip((*_SIZES[2:6], _SIZES[7]), (shape.columns, *of_x, of_y, lead), strict=True))
        known: list[Any] = [n if _is_known(n) else f"%{name}" for name, n in sizes.items()]
        columns, down, right, of_y, lead = known
        numbers = "_".join([str(n) if _is_known(n) else "n" for n in known]).replace("-", "m")
        kind = "_filled" * filled + "_adds" * adds + "_placed" * placed + _key(after)
        self.name = f"tile_f{8 * dtype.itemsize}_{shape.rows}_{shape.vectors}_{numbers}{kind}"
        if self.name in caller.called:
            return
        b, v, vectors = self.b, Vector(self.b, self.lanes), self.vectors(shape._replace(columns=columns))
        self.v, self.live = v, vectors
        places = [(i, k) for i in range(shape.rows) for k in range(len(vectors))]
        loop = b.begin("%count", 1, [(v.type(self.type), "zeroinitializer")] * len(places))
        if placed:
            far = b(f"load i64, ptr {b(f'getelementptr i64, ptr %places, i64 {loop.counter}')}, align 8")
            line = self.at("%y", (far, 1))
        else:
            line = self.at("%y", (loop.counter, of_y))
        row = [
            self.load(v, self.at(line, offset=k * self.lanes), v.lanes if filled else live)
            for k, live in enumerate(vectors)
        ]
        there = self.at("%x", (loop.counter, right))
        totals, spread = [], ""
        for (i, k), (_, _, total) in zip(places, loop.carried, strict=True):
            if k == 0:
                place = self.at(there, (i, down))
                spread = v.spread(b(f"load {self.type}, ptr {place}, align {dtype.itemsize}"), self.type)
            totals.append(_added(v, self.type, spread, row[k], total))
        b.end(loop, totals)
        to = [self.at("%out", (i, lead), offset=k * self.lanes) for i, k in places]
        if adds:  # all are read before the first is written: reads wait for a masked write beside them
            before = [self.load(v, place, vectors[k]) for (_, k), place in zip(places, to, strict=True)]
            totals = [v.two("fadd", self.type, x, y) for x, y in zip(before, totals, strict=True)]
        if after is not None:
            totals = self._followed(after, places, totals, lead)
        for (_, k), total, place in zip(places, totals, to, strict=True):
            self.store(v, total, place, vectors[k])
        caller.called.update(b.called)
        arguments = ["ptr noalias %x, ptr noalias %y, i64 %count, ptr noalias %places", _others(after)]
        arguments += [f"i64 {n}" for n in known if not _is_known(n)]
        caller.called[self.name] = self.closed(self.name, ", ".join(arguments))

    def _followed(
        self, after: After, places: Sequence[tuple[int, int]], totals: Sequence[str], lead: int | str
    ) -> list[str]:
        """What is written in the place of the product; what is written elsewhere is."""
        v, known, found = self.v, dict[tuple[int, int, int], str](), []
        for (i, k), total in zip(places, totals, strict=True):
            read = []
            for r, (down, right) in enumerate(after.read):
                key = r, i * (down != 0), k * right
                if key not in known:
                    place = self.at(f"%r{r}", (i, lead if down is None else down), offset=k * self.lanes * right)
                    if right:
                        known[key] = self.load(v, place, self.live[k])
                    else:
                        one = self.b(f"load {self.type}, ptr {place}, align {self.dtype.itemsize}")
                        known[key] = v.spread(one, self.type)
                read.append(known[key])
            first, *others = after.made(v, total, read)
            for w, x in enumerate(others, 1):
                self.store(v, x, self.at(f"%w{w}", (i, lead), offset=k * self.lanes), self.live[k])
            found.append(first)
        return found


def _key(after: After | None) -> str:
    return "" if after is None else f"_then_{after.key}"


def _others(after: After | None) -> str:
    """Parameters: where the product is written, and what comes after reads and writes, which may be the same memory."""
    if after is None:
        return "ptr noalias %out"
    return ", ".join(f"ptr {p}" for p in ("%out", *after.arguments()))


def tile_shape(rows: Any, columns: Any, lanes: int) -> Shape:
    """The largest tile for whose numbers there are registers, beside a row of `y` and one number of `x`."""
    room = registers() * 3 // 4
    most = columns if _is_known(columns) else _WIDE * lanes
    vectors = -(-most // lanes)
    if not _is_known(rows):
        wide = min(vectors, 2)
        return Shape(1 << (room // wide).bit_length() - 1, min(most, wide * lanes))
    wide = min(vectors, max(2, min(_WIDE, room // rows)))
    tall = min(rows, room // wide)
    even = [n for n in range(tall, tall * 2 // 3, -1) if rows % n == 0]
    return Shape(even[0] if even else -(-rows // -(-rows // tall)), min(most, wide * lanes))
