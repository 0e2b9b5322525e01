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


def _linear_shape(x: Shape, weight: Shape, bias: Shape) -> Shape:
    if len(x) < 2 or len(weight) != 2 or x[-1] != weight[1] or bias != weight[:1]:
        raise errors.ShapeError(
            f"linear: x is (..., rows, inputs), weight (outputs, inputs) and bias (outputs,), received {x}, {weight} "
            f"and {bias}"
        )
    return (*x[:-1], weight[0])


declare("matmul", CONTRACTION, "x y", shape=_matmul_shape, dtype=same_dtype)
declare("linear", CONTRACTION, "x weight bias", shape=_linear_shape, dtype=same_dtype)  # x @ weight.mT + bias
