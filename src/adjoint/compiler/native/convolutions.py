"""Convolutions as products without a matrix of patches: the places of a kernel are where rows of it begin.

In memory channels come first and examples last, as on the NumPy leaf. So what a place of the kernel meets in a row of
an image lies together for all columns and examples, if the stride is 1. A row of the result is a product of the
weights, (out, places), and of these lines, (places, columns x examples). The gradient of the weights is the product of
a row of the cotangent with the same lines as columns, added up over all rows.
"""

from __future__ import annotations

import math
from typing import Any

from adjoint.compiler.graph import Value
from adjoint.compiler.native.gemm import clear, product
from adjoint.compiler.native.kernels import Convolution
from adjoint.compiler.native.loops import Nest
from adjoint.compiler.native.machine import vector_bytes
from adjoint.compiler.native.parallel import begun, close, is_divided, parts_of
from adjoint.compiler.native.plan import Plan
from adjoint.compiler.native.text import Builder, memory_type
from adjoint.compiler.native.views import Layout
from adjoint.compiler.sizes import has_sizes


class Convolved(Nest):
    """The text of a convolution's function, or of the gradient of its weights."""

    b: Builder
    buffers: list[Any]
    dtype: Any
    name: str
    plan: Plan
    type: str

    def __init__(self, plan: Plan, step: Convolution, name: str) -> None:
        self.plan, self.name = plan, name
        self.b, self.buffers = Builder(), []
        self.dtype, self.type, self.written_to = step.out.dtype, memory_type(step.out.dtype), step.out
        b, lines = self.b, step.lines
        self.lines, self.out_channels, self.weighs = lines, step.rows, step.weighs
        images, other, out = (self._pointer(self._root(a)) for a in (*step.operands, step.out))
        first = [*map(str, step.offsets)]
        sizes = [axis.size for axis in lines.axes]
        parts = 1 if step.weighs else parts_of(math.prod(sizes), step.work)
        if step.weighs:
            clear(b, out, math.prod(step.out.shape) * self.dtype.itemsize)
        places = self._places() if has_sizes(lines.moves) else lines.places
        loops, counters, parts = begun(b, sizes, parts)  # a line of the result is one thread's
        for axis, counter in zip(lines.axes, counters, strict=True):
            moves = [b(f"mul nsw i64 {counter}, {far}") for far in axis[1:]]
            first = [b(f"add nsw i64 {old}, {move}") for old, move in zip(first, moves, strict=True)]
        images, other, out = (
            b(f"getelementptr {self.type}, ptr {p}, i64 {offset}")
            for p, offset in zip((images, other, out), first, strict=True)
        )
        count = lines.number
        if step.weighs:
            x, y = Layout((step.rows, lines.run), 0, (step.apart, 1)), Layout((lines.run, count), 0, (1, 0))
            product(b, self.dtype, x, y, [other, images, out], places, adds=True)
        else:
            x, y = Layout((step.rows, count), 0, (count, 1)), Layout((count, lines.run), 0, (0, 1))
            product(b, self.dtype, x, y, [other, images, out], places, lead=step.apart)
        for loop in reversed(loops):
            b.end(loop)
        self.parts: int = parts
        close(self, parts)

    def _places(self) -> str:
        """Where lines begin, in memory: with sizes that stand for several."""
        b, lines = self.b, self.lines
        room = lines.number + vector_bytes() // self.dtype.itemsize  # a square may look at so many more
        places = b(f"alloca [{room} x i64], align 64")
        clear(b, places, room * 8)
        loops, number, far = [], "0", "0"
        for n, move in zip(lines.kernel, lines.moves, strict=True):
            loops.append(b.begin(n))
            at = loops[-1].counter
            number = b(f"add nuw nsw i64 {b(f'mul nuw nsw i64 {number}, {n}')}, {at}")
            far = b(f"add nsw i64 {far}, {b(f'mul nsw i64 {at}, {move}')}")
        b.do(f"store i64 {far}, ptr {b(f'getelementptr i64, ptr {places}, i64 {number}')}, align 8")
        for loop in reversed(loops):
            b.end(loop)
        return places

    def shown(self) -> list[str]:
        lines, parts = self.lines, f" in {self.parts} parts" if is_divided(self.parts) else ""
        what = "gradient of weights" if self.weighs else "convolution"
        loops = " x ".join([str(axis.size) for axis in lines.axes])
        return [f"{self.name}: {what}{parts}: {loops} products of {self.out_channels} x {lines.number} x {lines.run}"]

    def over(self) -> list[tuple[Value, Value]]:
        return []

    @property
    def written(self) -> list[Value]:
        return [self.written_to]
