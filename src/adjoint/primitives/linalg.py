"""Linear algebra: stacks of matrices."""

from __future__ import annotations

from adjoint import errors
from adjoint.primitives.table import LINALG, Shape, broadcast_shapes, declare, same_dtype


def _square(shape: Shape) -> None:
    if len(shape) < 2 or shape[-1] != shape[-2]:
        raise errors.NotSquareError(f"expected square matrices, shape (..., n, n); received {shape}")


def _square_same(shape: Shape) -> Shape:
    _square(shape)
    return shape


def _det_shape(shape: Shape) -> Shape:
    _square(shape)
    return shape[:-2]


def _solve_shape(a: Shape, b: Shape) -> Shape:
    _square(a)
    if len(b) < 2 or b[-2] != a[-1]:
        raise errors.ShapeError(f"solve: a right-hand side of shape {b} does not fit matrices of shape {a}")
    return (*broadcast_shapes(a[:-2], b[:-2]), *b[-2:])


declare("inv cholesky cofactor", LINALG, "x", shape=_square_same, dtype=same_dtype)
declare("det", LINALG, "x", shape=_det_shape, dtype=same_dtype)
declare("solve", LINALG, "a b", shape=_solve_shape, dtype=same_dtype)
