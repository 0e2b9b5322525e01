"""Products of matrices and of stacks of them: as loops, by tiles, and as calls of BLAS."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from adjoint.compiler.graph import Value
from adjoint.compiler.native.elements import EMITTERS, constant, operand_dtypes
from adjoint.compiler.native.gemm import After, block_of, has_parts, is_across, part_of, product
from adjoint.compiler.native.kernels import Product
from adjoint.compiler.native.loops import Nest
from adjoint.compiler.native.machine import integer_bits, vector_bytes
from adjoint.compiler.native.parallel import begun, close, is_divided, parts_of
from adjoint.compiler.native.plan import Plan
from adjoint.compiler.native.text import Builder, Vector, memory_type, number
from adjoint.compiler.native.views import Layout, contiguous, merged, transposed
from adjoint.compiler.sizes import is_size
from adjoint.primitives import Shape


class Called(Nest):
    """The text of a product's function that calls BLAS: once, or for each matrix of a stack."""

    b: Builder
    buffers: list[Any]
    dtype: Any
    name: str
    plan: Plan
    step: Product
    type: str
    x: Layout
    y: Layout

    def __init__(self, plan: Plan, step: Product, name: str) -> None:
        self.plan, self.name = plan, name
        self.b, self.buffers = Builder(), []
        self.dtype, self.type, self.step = step.out.dtype, memory_type(step.out.dtype), step
        self.x, self.y = step.x, step.y
        x, y, out = _stack(step.x, step.out.shape), _stack(step.y, step.out.shape), contiguous(step.out.shape)
        beside = list(step.beside.values())
        if not any(y.strides[:-2]) and (one := self._as_one(x)) is not None:
            x, y, out = one, Layout(y.shape[-2:], y.offset, y.strides[-2:]), contiguous((one.shape[0], y.shape[-1]))
            beside = [_rows_as_one(z) for z in beside]
        arrays = x, y, *[out] * len(step.stored), *beside
        pointers = [self._pointer(self._root(a)) for a in (*step.operands, *step.stored, *step.beside)]
        offsets, sizes = [str(z.offset) for z in arrays], out.shape[:-2]
        self.beside: list[Layout] = beside
        self.count: int = math.prod(sizes)  # of matrices
        loops, counters, self.parts = begun(self.b, sizes, self._parts_of_stack(step.work))
        for axis, counter in enumerate(counters):
            moves = [self.b(f"mul nsw i64 {counter}, {z.strides[axis]}") for z in arrays]
            offsets = [self.b(f"add nsw i64 {old}, {move}") for old, move in zip(offsets, moves, strict=True)]
        places = zip(pointers, offsets, strict=True)
        self._call(x, y, *[self.b(f"getelementptr {self.type}, ptr {p}, i64 {offset}") for p, offset in places])
        for loop in reversed(loops):
            self.b.end(loop)
        close(self, self.parts)

    def _parts_of_stack(self, work: int) -> int:
        """Into how many parts a stack is cut."""
        return 1

    def over(self) -> list[tuple[Value, Value]]:
        return []

    def shown(self) -> list[str]:
        return [f"{self.name}: BLAS: {_product(self.x, self.y)}"]

    @property
    def written(self) -> list[Value]:
        return list(self.step.stored)

    def _as_one(self, x: Layout) -> Layout | None:
        """All matrices of a stack, one under the other, if they lie so."""
        lines = [(n, s) for n, s in zip(x.shape[:-1], x.strides[:-1], strict=True) if n != 1]
        runs = merged([n for n, _ in lines], [s for _, s in lines])
        rows, columns = math.prod(x.shape[:-1]), x.shape[-1]
        if len(runs) > 1:
            return None
        one = Layout((rows, columns), x.offset, (runs[0][1] if runs else 1, x.strides[-1]))
        return one if self._reads(one) else None

    def _reads(self, x: Layout) -> bool:
        return transposed(x) is not None

    def _call(self, x: Layout, y: Layout, x_place: str, y_place: str, *places: str) -> None:
        (rows, summed), columns, (out,) = x.shape[-2:], y.shape[-1], places
        one, zero = (f"{self.type} {number(value, self.dtype)}" for value in (1, 0))
        along = [z.strides[axis] if summed > 1 else 1 for z, axis in ((x, -1), (y, -2))]  # of vectors
        if columns == 1 and rows == 1:
            found = self._blas("dot", [summed, f"ptr {x_place}", along[0], f"ptr {y_place}", along[1]], self.type)
            self.b.do(f"store {self.type} {found}, ptr {out}, align {self.dtype.itemsize}")
            return
        if columns == 1:
            given = [*_matrix(x), one, f"ptr {x_place}", _lead(x), f"ptr {y_place}", along[1]]
        elif rows == 1:  # of the transposes
            flipped = Layout(y.shape[:-2] + y.shape[:-3:-1], y.offset, y.strides[:-2] + y.strides[:-3:-1])
            given = [*_matrix(flipped), one, f"ptr {y_place}", _lead(flipped), f"ptr {x_place}", along[0]]
        else:
            given = [_flag(x), _flag(y), rows, columns, summed, one, f"ptr {x_place}", _lead(x)]
            given += [f"ptr {y_place}", _lead(y)]
        vector = 1 in (rows, columns)
        whole = [_ROW_MAJOR, *given, zero, f"ptr {out}", 1 if vector else columns]
        self._blas("gemv" if vector else "gemm", whole)

    def _blas(self, function: str, given: Sequence[Any], type_: str = "void") -> str:
        """A call of a function of BLAS; numbers are its integers."""
        operands = [x if isinstance(x, str) else f"i{integer_bits()} {x}" for x in given]
        name = f"adjoint_{'s' if self.dtype.itemsize == 4 else 'd'}{function}"
        self.b.called[name] = f"declare {type_} @{name}({', '.join(x.split(' ')[0] for x in operands)})"
        call = f"call {type_} @{name}({', '.join(operands)})"
        if type_ != "void":
            return self.b(call)
        self.b.do(call)
        return ""


def _product(x: Layout, y: Layout) -> str:
    return " @ ".join([str(tuple(z.shape)) for z in (x, y)])


_ROW_MAJOR = "i32 101"  # of cblas.h


def _flag(x: Layout) -> str:
    return "i32 112" if transposed(x) else "i32 111"


def _matrix(x: Layout) -> list[Any]:
    """The flag of a matrix for a product with a vector, and its sizes in memory."""
    return [_flag(x), *(x.shape[:-3:-1] if transposed(x) else x.shape[-2:])]


def _lead(x: Layout) -> int:
    """How far the lines of a matrix are apart in memory."""
    (rows, columns), (down, right) = x.shape[-2:], x.strides[-2:]
    if transposed(x):
        return right if columns > 1 else rows
    return down if rows > 1 else columns


def _stack(x: Layout, shape: Shape) -> Layout:
    """The matrices of an operand, as many as the result has."""
    own = [0 if n == 1 else s for n, s in zip(x.shape[:-2], x.strides[:-2], strict=True)]
    missing = len(shape) - len(x.shape)
    return Layout((*shape[:-2], *x.shape[-2:]), x.offset, (*[0] * missing, *own, *x.strides[-2:]))


def _rows_as_one(x: Layout) -> Layout:
    """The rows of all matrices of a stack, one under the other."""
    runs = merged(list(x.shape[:-1]), list(x.strides[:-1]))
    return Layout((math.prod(x.shape[:-1]), x.shape[-1]), x.offset, (runs[0][1], x.strides[-1]))


class Tiled(Called):
    """The text of a product's function that computes it tile by tile: threads share matrices, or blocks of one."""

    def shown(self) -> list[str]:
        parts = f"in {self.parts} parts: " if is_divided(self.parts) else ""
        then = ", ".join(["", *[e.name for e in self.step.follows]])
        return [f"{self.name}: {parts}{_product(self.x, self.y)}{then}"]

    def _reads(self, x: Layout) -> bool:
        return True

    def over(self) -> list[tuple[Value, Value]]:
        """Of a sum that is made at once, what follows may be written over what a tile reads for it."""
        if has_parts(self.x, self.y):
            return []
        like = contiguous(self.step.out.shape)
        roots = [self._root(x) for x in (*self.step.operands, *self.step.beside)]
        fit = [self._root(x) for x, layout in self.step.beside.items() if layout == like]
        size = math.prod(like.shape)
        fit = [x for x in fit if roots.count(x) == 1 and x.const is None and math.prod(x.shape) == size]
        return [(out, x) for out in self.step.stored for x in fit]

    def _after(self) -> After | None:
        """What tiles compute before they are written."""
        import hashlib  # as in machine.py

        step = self.step
        if not step.follows:
            return None
        at = {x: i for i, x in enumerate(step.beside)}
        numbers = {step.out: 0, **{e.results[0]: i for i, e in enumerate(step.follows, 1)}}

        def named(x: Any) -> Any:
            fixed = constant(x)
            if fixed is not None:
                return repr(fixed)
            return ("beside", at[x]) if x in at else numbers[step.roots[x]]

        def made(v: Vector, total: str, read: Sequence[str]) -> list[str]:
            known: dict[Any, str] = {step.out: total}
            for e in step.follows:
                wanted: Any = operand_dtypes(e)
                operands = []
                for x, dtype in zip(e.operands, wanted, strict=True):
                    fixed = constant(x)
                    if fixed is not None:
                        operands.append(v.constant(fixed, dtype))
                    else:
                        operands.append(read[at[x]] if x in at else known[step.roots[x]])
                known[e.results[0]] = EMITTERS[e.name](v, wanted[-1], operands, e)
            return [known[x] for x in step.stored]

        text = [(e.name, e.parameters, [named(x) for x in e.operands]) for e in step.follows]
        strides = [(None if is_size(z.strides[-2]) else z.strides[-2], z.strides[-1]) for z in self.beside]
        key = hashlib.sha256(repr((text, strides, [numbers[x] for x in step.stored])).encode()).hexdigest()[:16]
        return After(key, strides, len(step.stored), made)

    def _parts_of_stack(self, work: int) -> int:
        return parts_of(self.count, work)

    def _call(self, x: Layout, y: Layout, x_place: str, y_place: str, *places: str) -> None:
        x, y = (Layout(z.shape[-2:], 0, z.strides[-2:]) for z in (x, y))
        rows, columns = x.shape[0], y.shape[1]
        block = block_of(x, y, self.dtype.itemsize)
        after = self._after()
        if self.count > 1 or block is None:
            return product(self.b, self.dtype, x, y, [x_place, y_place, *places], after=after)
        b, across = self.b, -(-columns // block.columns)
        self.parts = -(-rows // block.rows) * across
        row = b(f"mul nuw nsw i64 {b(f'udiv i64 %part, {across}')}, {block.rows}")
        column = b(f"mul nuw nsw i64 {b(f'urem i64 %part, {across}')}, {block.columns}")
        strides = [(columns, 1)] * len(self.step.stored) + [layout.strides[-2:] for layout in self.beside]
        blocks = [self._block_at(x_place, (row, x.strides[0])), self._block_at(y_place, (column, y.strides[1]))]
        for place, (down, right) in zip(places, strides, strict=True):
            blocks.append(self._block_at(place, (row, down), (column, right)))
        part, turn, done = part_of(x, y), is_across(x, y), b.name()
        for here, height in _sizes(b, row, block.rows, rows):
            for there, width in _sizes(b, column, block.columns, columns):
                mine, other = b.name(), b.name()
                b.do(f"br i1 {b(f'and i1 {here}, {there}')}, label %{mine}, label %{other}")
                b.label(mine)
                of_x, of_y = Layout((height, x.shape[1]), 0, x.strides), Layout((y.shape[0], width), 0, y.strides)
                product(b, self.dtype, of_x, of_y, blocks, lead=columns, part=part, across=turn, after=after)
                b.do(f"br label %{done}")
                b.label(other)
        b.do(f"br label %{done}")
        b.label(done)
        return None

    def _block_at(self, place: str, *steps: tuple[str, int]) -> str:
        for index, stride in steps:
            far = self.b(f"mul nsw i64 {index}, {stride}")
            place = self.b(f"getelementptr {self.type}, ptr {place}, i64 {far}")
        return place


def _sizes(b: Builder, first: str, size: int, whole: int) -> list[tuple[str, Any]]:
    """The sizes that a block may have, each with whether the one that begins there has it."""
    if is_size(whole):
        left = b(f"sub i64 {whole}, {first}")
        return [("true", b.call("llvm.umin.i64", "i64", [str(size), left]))]
    last = (whole - 1) // size * size
    if whole - last == size:
        return [("true", size)]
    return [(b(f"icmp ult i64 {first}, {last}"), size), (b(f"icmp eq i64 {first}, {last}"), whole - last)]


class Multiplied(Nest):
    """The text of a product's function: vectors run over columns of the result, or over what is summed."""

    b: Builder
    buffers: list[Any]
    dtype: Any
    name: str
    plan: Plan
    row: Vector
    summed: int
    type: str
    wide: Vector
    x: Layout
    y: Layout

    def __init__(self, plan: Plan, step: Product, name: str) -> None:
        self.plan, self.name = plan, name
        self.b, self.buffers = Builder(), []
        self.dtype, self.type = step.out.dtype, memory_type(step.out.dtype)
        self.written_to: Any = step.out
        rows, self.summed, columns = step.x.shape[0], step.x.shape[1], step.y.shape[1]
        self.x, self.y = step.x, step.y
        most = vector_bytes() // self.dtype.itemsize
        along = self.summed > 1 and columns < min(most, self.summed) and self.x.strides[1] == self.y.strides[0] == 1
        self.lanes: Any = min(most, 1 << ((self.summed if along else columns) - 1).bit_length())
        self.row, self.wide = Vector(self.b, 1), Vector(self.b, self.lanes)
        x, y, out = (self._pointer(self._root(a)) for a in (*step.operands, step.out))
        outer = self.b.begin(rows)
        x = self._at(x, self.x.offset, (outer.counter, self.x.strides[0]))
        out = self._at(out, 0, (outer.counter, columns))
        if along:
            inner = self.b.begin(columns)
            self._dot(
                x, self._at(y, self.y.offset, (inner.counter, self.y.strides[1])), self._at(out, 0, (inner.counter, 1))
            )
            self.b.end(inner)
        else:
            whole, rest = columns // self.lanes * self.lanes, columns % self.lanes
            if whole:
                inner = self.b.begin(whole, self.lanes)
                self._columns_from(x, y, out, inner.counter, self.lanes)
                self.b.end(inner)
            if rest:
                self._columns_from(x, y, out, str(whole), rest)
        self.b.end(outer)
        self._close()

    def over(self) -> list[tuple[Value, Value]]:
        return []

    def shown(self) -> list[str]:
        return [f"{self.name}: {_product(self.x, self.y)}"]

    @property
    def written(self) -> list[Value]:
        return [self.written_to]

    def _at(self, pointer: str, offset: int, *steps: tuple[str, int]) -> str:
        total = str(offset)
        for index, stride in steps:
            total = self.b(f"add nsw i64 {total}, {self.b(f'mul nsw i64 {index}, {stride}')}")
        return self.b(f"getelementptr {self.type}, ptr {pointer}, i64 {total}")

    def _added(self, v: Vector, total: str, x: str, y: str) -> str:
        return v.two("fadd", self.type, total, v.two("fmul", self.type, x, y))

    def _columns_from(self, x: str, y: str, out: str, index: str, live: int) -> None:
        v = self.wide
        loop = self.b.begin(self.summed, 1, [(v.type(self.type), "zeroinitializer")])
        one = self.b(
            f"load {self.type}, ptr {self._at(x, 0, (loop.counter, self.x.strides[1]))}, align {self.dtype.itemsize}"
        )
        line = self._at(y, self.y.offset, (loop.counter, self.y.strides[0]))
        column = self._load(v, line, self.dtype, index, self.y.strides[1] if self.lanes > 1 else 0, live)
        total = self._added(v, loop.carried[0][2], v.spread(one, self.type), column)
        self.b.end(loop, [total])
        self._save(v, total, out, self.dtype, index, live)

    def _dot(self, x: str, y: str, out: str) -> None:
        v, whole, rest = self.wide, self.summed // self.lanes * self.lanes, self.summed % self.lanes
        total = "zeroinitializer"
        if whole:
            loop = self.b.begin(whole, self.lanes, [(v.type(self.type), total)])
            parts = [self._load(v, p, self.dtype, loop.counter, 1, self.lanes) for p in (x, y)]
            total = self._added(v, loop.carried[0][2], *parts)
            self.b.end(loop, [total])
        if rest:
            parts = [self._load(v, p, self.dtype, str(whole), 1, rest) for p in (x, y)]
            total = self._added(v, total, *parts)
        found: Any = self._halved(total)
        self._save(self.row, found, out, self.dtype, "0", 1)

    def _halved(self, total: str) -> str:
        lanes = self.lanes
        while lanes > 1:
            lanes //= 2
            old = f"<{2 * lanes} x {self.type}>"
            low, high = (
                self.b(
                    f"shufflevector {old} {total}, {old} poison, <{lanes} x i32> "
                    f"<{', '.join(f'i32 {start + i}' for i in range(lanes))}>"
                )
                for start in (0, lanes)
            )
            total = Vector(self.b, lanes).two("fadd", self.type, low, high)
        return total


PRODUCTS: dict[str, type[Called] | type[Multiplied]] = {"blas": Called, "loops": Multiplied, "tiles": Tiled}
