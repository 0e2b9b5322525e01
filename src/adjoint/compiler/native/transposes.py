"""Copies of arrays that are read along one axis and written along another.

Squares of as many rows as a vector has numbers are transposed in registers. So a line that comes from memory is used at
once. A loop along either axis would take one number of it, and come back for the next one.
"""

from __future__ import annotations

import math

from adjoint.compiler.graph import Value
from adjoint.compiler.native.kernels import Kernel
from adjoint.compiler.native.loops import Nest
from adjoint.compiler.native.machine import vector_bytes
from adjoint.compiler.native.parallel import begun, close, is_divided, parts_of_kernel
from adjoint.compiler.native.text import Vector, memory_type
from adjoint.compiler.native.views import contiguous
from adjoint.compiler.sizes import is_size
from adjoint.primitives import DType
from adjoint.primitives.sizes import as_recorded

_LEAST = 4  # elements of an axis, from which on squares are worth while
_ELEMENTS = 1024


def transposes(kernel: Kernel) -> tuple[int, int] | None:
    """The axes along which a kernel reads and writes, if all that it does is to copy, and these are two."""
    if len(kernel.equations) != 1 or len(kernel.read) != 1 or kernel.equations[0].name != "real":
        return None
    (x, (_, read, _)), (out,) = next(iter(kernel.read.items())), kernel.equations[0].results
    if not isinstance(out, Value) or x.dtype != out.dtype or x.dtype.itemsize not in (4, 8) or x.dtype.kind == "c":
        return None
    _, layout = kernel.target.get(out, (out, contiguous(out.shape)))
    written = kernel.strides(layout, kernel.axes[out])
    along = [_along(kernel, strides) for strides in (read, written)]
    if (
        -1 in along
        or along[0] == along[1]
        or written[along[1]] < 0
        or as_recorded(math.prod(kernel.domain)) < _ELEMENTS
    ):
        return None
    return along[0], along[1]


def _along(kernel: Kernel, strides: tuple[int, ...]) -> int:
    """The axis whose elements lie one after the other; -1 if there is none that is long."""
    long = [is_size(n) or n >= _LEAST for n in kernel.domain]
    return next((i for i, s in enumerate(strides) if not is_size(s) and abs(s) == 1 and long[i]), -1)


class Transposed(Nest):
    """The text of such a copy's function."""

    def _write(self) -> None:
        b, kernel, axes = self.b, self.kernel, transposes(self.kernel)
        assert axes is not None
        (x,), (out,) = kernel.read, kernel.equations[0].results
        assert isinstance(out, Value)
        (source, first, read, dtype), (target, start, written, _) = self._access(x), self._access(out)
        self.lanes = vector_bytes() // dtype.itemsize
        self.wide = Vector(b, self.lanes)
        (a, c), sizes, t = axes, kernel.domain, memory_type(dtype)
        others = [i for i in range(len(sizes)) if i not in axes]
        blocks = -(-sizes[a] // self.lanes)
        count = math.prod([sizes[i] for i in others]) * blocks
        pointers = self._pointer(source), self._pointer(target)
        loops, counters, self.parts = begun(
            b, [*[sizes[i] for i in others], blocks], parts_of_kernel(kernel, count, False)
        )
        places = [str(first), str(start)]
        for i, counter in zip(others, counters, strict=False):
            for k, strides in enumerate((read, written)):
                if is_size(strides[i]) or strides[i]:
                    places[k] = b(f"add nsw i64 {places[k]}, {b(f'mul nsw i64 {counter}, {strides[i]}')}")
        row = b(f"mul nuw nsw i64 {counters[-1]}, {self.lanes}")
        backwards = read[a] < 0  # then a line is read from its end, and its lanes are in the other order
        columns = b.begin(sizes[c], self.lanes)
        column = columns.counter
        corners = [
            b(f"add nsw i64 {place}, {b(f'add nsw i64 {near}, {far}')}")
            for place, near, far in (
                (places[0], self._reversed(row) if backwards else row, b(f"mul nsw i64 {column}, {read[c]}")),
                (places[1], column, b(f"mul nsw i64 {row}, {written[a]}")),
            )
        ]
        ends = zip(pointers, corners, (read[c], written[a]), strict=True)
        lines = [
            [self._line(t, pointer, corner, apart, i) for i in range(self.lanes)] for pointer, corner, apart in ends
        ]
        live = [
            b(f"trunc i64 {b.call('llvm.umin.i64', 'i64', [b(f'sub nsw i64 {n}, {i}'), str(self.lanes)])} to i32")
            for n, i in ((sizes[a], row), (sizes[c], column))
        ]
        self._square(lines, live, dtype, backwards)
        b.end(columns)
        for loop in reversed(loops):
            b.end(loop)
        close(self, self.parts)

    def _square(self, lines: list[list[str]], live: list[str], dtype: DType, backwards: bool) -> None:
        """Lines that are read and lines that are written: all of them, or as many numbers of as many as are there."""
        b, whole, of_lanes = self.b, self.wide.type(memory_type(dtype)), self.wide.type("i1")

        def written(found: list[str]) -> list[str]:
            return self._transposed(whole, [self._backwards(whole, x) for x in found] if backwards else found)

        def full() -> None:
            found = [b(f"load {whole}, ptr {line}, align {dtype.itemsize}") for line in lines[0]]
            for line, y in zip(lines[1], written(found), strict=True):
                b.do(f"store {whole} {y}, ptr {line}, align {dtype.itemsize}")

        def partly() -> None:
            reads, writes = (self._masks(near, far) for near, far in (live, live[::-1]))
            if backwards:
                reads = [f"{of_lanes} {self._backwards(of_lanes, mask.removeprefix(of_lanes))}" for mask in reads]
            each = zip(lines[0], reads, strict=True)
            found = [self._masked(self.wide, "load", line, dtype, 0, mask=mask) for line, mask in each]
            for line, y, mask in zip(lines[1], written(found), writes, strict=True):
                self._masked(self.wide, "store", line, dtype, 0, y, mask)

        b.where(f"eq i32 {b(f'add nuw nsw i32 {live[0]}, {live[1]}')}, {2 * self.lanes}", full, partly)

    def _reversed(self, row: str) -> str:
        """Where the lanes of a line that is read backwards begin."""
        return self.b(f"sub nsw i64 {-(self.lanes - 1)}, {row}")

    def _backwards(self, whole: str, x: str) -> str:
        places = ", ".join(f"i32 {i}" for i in reversed(range(self.lanes)))
        return self.b(f"shufflevector {whole} {x}, {whole} poison, <{self.lanes} x i32> <{places}>")

    def _line(self, t: str, pointer: str, corner: str, apart: int, i: int) -> str:
        """Where a line of a square begins."""
        far = self.b(f"mul nsw i64 {i}, {apart}")
        return self.b(f"getelementptr {t}, ptr {pointer}, i64 {self.b(f'add nsw i64 {corner}, {far}')}")

    def _masks(self, near: str, far: str) -> list[str]:
        """Of the lines of a square, where so many numbers of so many lines are there."""
        b = self.b
        counts = [b(f"select i1 {b(f'icmp sgt i32 {far}, {i}')}, i32 {near}, i32 0") for i in range(self.lanes)]
        return [self._lanes_before(count) for count in counts]

    def _transposed(self, whole: str, rows: list[str]) -> list[str]:
        """Columns of a square. Each turn interleaves rows of both halves, which moves a bit of the places."""
        half = len(rows) // 2
        for _ in range(half.bit_length()):
            pairs = zip(rows[:half], rows[half:], strict=True)
            rows = [self._interleaved(whole, x, y, part) for x, y in pairs for part in (0, half)]
        return rows

    def _interleaved(self, whole: str, x: str, y: str, first: int) -> str:
        places = ", ".join(f"i32 {first + i}, i32 {first + i + self.lanes}" for i in range(self.lanes // 2))
        return self.b(f"shufflevector {whole} {x}, {whole} {y}, <{self.lanes} x i32> <{places}>")

    def shown(self) -> list[str]:
        name, size, names = super().shown()[0].split(": ")
        parts = f" in {self.parts} parts" if is_divided(self.parts) else ""
        return [f"{name}: {size}{parts} transposed: {names}"]
