"""Stacks of matrices, in primitives: what the rules of linear algebra are written in."""

from __future__ import annotations

from typing import Any

import numpy as np


def T(B: Any, x: Any) -> Any:
    """The plain transpose."""
    n = len(x.shape)
    return B.permute_dims(x, axes=(*range(n - 2), n - 1, n - 2))


def C(B: Any, x: Any) -> Any:
    """The complex conjugate."""
    return B.conj(x) if B.dtype_of(x).kind == "c" else x


def H(B: Any, x: Any) -> Any:
    """The conjugate transpose."""
    return T(B, C(B, x))


def real(B: Any, x: Any) -> Any:
    return B.real(x) if B.dtype_of(x).kind == "c" else x


def cast(B: Any, x: Any, like: Any) -> Any:
    """A real array in the dtype of another one, to multiply it with."""
    dtype = B.dtype_of(like)
    return x if B.dtype_of(x) == dtype else B.astype(x, dtype=dtype)


def product(B: Any, *factors: Any) -> Any:
    """The matrix product, from the left."""
    total = factors[0]
    for factor in factors[1:]:
        total = B.matmul(total, factor)
    return total


def columns(B: Any, x: Any, scale: Any) -> Any:
    """x diag(scale)."""
    return B.multiply(x, cast(B, B.expand_dims(scale, axis=(len(scale.shape) - 1,)), x))


def rows(B: Any, scale: Any, x: Any) -> Any:
    """diag(scale) x."""
    return B.multiply(cast(B, B.expand_dims(scale, axis=(len(scale.shape),)), x), x)


def part(B: Any, x: Any, *, rows: slice = slice(None), columns: slice = slice(None)) -> Any:
    """A block of each matrix."""
    return B.index(x, key=(*[slice(None)] * (len(x.shape) - 2), rows, columns))


def join(B: Any, x: Any, y: Any, axis: int) -> Any:
    """Blocks side by side (axis -1), or one above the other (-2)."""
    return B.concat(x, y, axis=len(x.shape) + axis)


def skew(B: Any, x: Any) -> Any:
    return B.multiply(B.subtract(x, H(B, x)), 0.5)


def hermitian(B: Any, x: Any) -> Any:
    return B.multiply(B.add(x, H(B, x)), 0.5)


def diagonal(B: Any, x: Any) -> Any:
    """The diagonals of square matrices."""
    n = len(x.shape)
    ones = B.eye(rows=x.shape[-1], columns=x.shape[-1], k=0, dtype=np.dtype(np.bool_))
    return B.sum(B.where(ones, x, 0.0), axis=(n - 1,), keepdims=False)


def with_diagonal(B: Any, x: Any, values: Any) -> Any:
    """Square matrices whose diagonals are replaced; None is zero."""
    ones = B.eye(rows=x.shape[-1], columns=x.shape[-1], k=0, dtype=np.dtype(np.bool_))
    if values is None:
        return B.where(ones, 0.0, x)
    return B.where(ones, cast(B, B.expand_dims(values, axis=(len(values.shape),)), x), x)
