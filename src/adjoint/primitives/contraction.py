"""Products and convolutions."""

from __future__ import annotations

from adjoint import errors
from adjoint.primitives.table import CONTRACTION, Shape, broadcast_shapes, declare, same_dtype


def _matmul_shape(x: Shape, y: Shape) -> Shape:
    if len(x) < 2 or len(y) < 2 or x[-1] != y[-2]:
        raise errors.ShapeError(
            f"matmul: shapes {x} and {y} do not fit; the last axis of the left one and the last but one of the "
            "right one must be equal"
        )
    return (*broadcast_shapes(x[:-2], y[:-2]), x[-2], y[-1])


declare("matmul", CONTRACTION, "x y", shape=_matmul_shape, dtype=same_dtype)
