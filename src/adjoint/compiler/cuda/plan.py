"""The plan of a graph for a GPU: kernels that have CUDA source, products of cuBLAS, and what CuPy's functions run."""

from __future__ import annotations

import math
from typing import Any

from adjoint.compiler.cuda import elements
from adjoint.compiler.graph import Equation, Graph, Value
from adjoint.compiler.native import assignments, lines, matrices
from adjoint.compiler.native.kernels import Product
from adjoint.compiler.native.lowering import lowered
from adjoint.compiler.native.plan import Plan
from adjoint.compiler.native.views import Layout, merged, transposed

_BLAS = 1 << 31  # sizes and distances that its integers are too small for
# what a processor does one after the other, or in small loops, and CuPy has functions for
_WHOLE = lines.LOWERED.keys() | matrices.LOWERED.keys()


class CudaPlan(Plan):
    """Loops, choices, lookups at places of arrays and convolutions stay CuPy's; so do checks, which look at values."""

    def __init__(self, graph: Graph) -> None:
        super().__init__(lowered(graph, checks=False, whole=_WHOLE), checks=False)

    def _supported(self, e: Equation) -> bool:
        return elements.supported(e)

    def _order_of_result(self, e: Equation) -> None:
        return None

    def _along_lines(self, e: Equation) -> Equation:
        """As it is: threads beside each other read lines across together, and the cache has them for the next."""
        return e

    def _take_product(self, e: Equation) -> bool:
        x, y = e.operands
        if not (x.__class__ is y.__class__ is Value) or x.dtype != y.dtype or x.dtype.kind != "f":
            return False
        out: Any = e.results[0]
        if min(len(x.shape), len(y.shape)) < 2 or max(*x.shape, *y.shape, math.prod(out.shape[:-2])) >= _BLAS:
            return False
        stack = out.shape[:-2]
        both = []
        for z in (x, y):
            z = z if matrix(self._layout(z), stack) else self._copied(z)
            both.append(z if matrix(self._layout(z), stack) else self._spread(z, stack))
        self.place[out] = len(self.steps)
        self.steps.append(Product(out, both, self._layout(both[0]), self._layout(both[1]), "cublas"))
        return True

    def _spread(self, x: Value, stack: tuple[int, ...]) -> Value:
        """A matrix of its own for each of the stack."""
        x = x if x.const is None else self._copied(x)
        spread = Value((*stack, *x.shape[-2:]), x.dtype)
        self._take_view(Equation("broadcast_to", [x], {"shape": spread.shape}, [spread]))
        return self._copied(spread)


Matrix = tuple[int, int, bool, int]  # place, distance of its lines, whether these are columns, distance of matrices


def matrix(x: Layout, stack: tuple[int, ...]) -> Matrix | None:
    """How a matrix lies that there is one of for each of the stack; None where cuBLAS does not read it so."""
    turned = transposed(x)
    extra = len(stack) - len(x.shape) + 2
    steps = [0] * extra + [0 if n == 1 else s for n, s in zip(x.shape[:-2], x.strides[:-2], strict=True)]
    runs = merged([n for n in stack if n != 1], [s for n, s in zip(stack, steps, strict=True) if n != 1])
    if turned is None or len(runs) > 1 or any(s < 0 for _, s in runs):
        return None
    rows, columns = x.shape[-2:]
    down, right = x.strides[-2:]
    line = (max(right, rows) if columns > 1 else rows) if turned else (max(down, columns) if rows > 1 else columns)
    return None if line >= _BLAS else (x.offset, line, turned, runs[0][1] if runs else 0)


CudaPlan.taken = {
    "concat": Plan._take_concat,
    "index_add": assignments.take_assignment,
    "index_set": assignments.take_assignment,
    "matmul": CudaPlan._take_product,
}
