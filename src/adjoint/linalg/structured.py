"""Matrices made of blocks or of diagonals that are alike."""

from __future__ import annotations

from typing import Any

import numpy as np

from adjoint import errors
from adjoint.functions.arguments import as_tensor, as_tensors
from adjoint.functions.creation import places_beside
from adjoint.functions.padding import pad
from adjoint.functions.shape import broadcast_to, concat, flip, reshape
from adjoint.operands import constant_like, run
from adjoint.primitives import ARRAY, broadcast_shapes
from adjoint.tensor import Operand, Tensor
from adjoint.variables import B


def block_diag(*arrays: Any) -> Tensor[Any]:
    """The matrices one after the other along the diagonal, and zeros elsewhere; vectors count as rows, numbers as 1 x
    1.

    Stacks broadcast. Without any it has no elements. Raises ShapeError for stacks that do not.

    >>> import adjoint as ad
    >>> ad.linalg.block_diag(ad.tensor([[1.0, 2.0]]), ad.tensor([[3.0]])).tolist()
    [[1.0, 2.0, 0.0], [0.0, 0.0, 3.0]]
    """
    blocks = as_tensors(arrays or [np.zeros((0, 0))], "block_diag")
    blocks = [reshape(x, (1,) * (2 - x.ndim) + x.shape) for x in blocks]
    try:
        stack = broadcast_shapes(*[x.shape[:-2] for x in blocks])
    except errors.ShapeError as error:
        raise errors.ShapeError(f"block_diag: {error}") from None
    columns, before, rows = sum(x.shape[-1] for x in blocks), 0, []
    for x in blocks:
        sides = [(0, 0)] * (x.ndim - 1) + [(before, columns - before - x.shape[-1])]
        rows.append(broadcast_to(pad(x, sides), (*stack, x.shape[-2], columns)))
        before += x.shape[-1]
    return concat(rows, axis=-2)


def toeplitz(c: Operand[B], r: Any = None, /) -> Tensor[B]:
    """The matrix with the first column c, the first row r, and the same element all along each diagonal.

    r is the conjugate of c if None, and its first element is not read. Of shapes (..., m) and (..., n) a stack of m x
    n. Raises ShapeError for 0-d tensors and for stacks that do not broadcast.

    >>> import adjoint as ad
    >>> ad.linalg.toeplitz(ad.tensor([1.0, 2.0]), ad.tensor([1.0, 3.0, 4.0])).tolist()
    [[1.0, 3.0, 4.0], [2.0, 1.0, 3.0]]
    """
    column, row = as_tensors([c, c if r is None else r], "toeplitz")
    if not column.ndim or not row.ndim:
        raise errors.ShapeError(f"toeplitz: expected vectors, received shapes {column.shape} and {row.shape}")
    if r is None and row.dtype.kind == "c":
        row = run("conj", (row,))
    m, n = column.shape[-1], row.shape[-1]
    try:
        stack = broadcast_shapes(column.shape[:-1], row.shape[:-1])
    except errors.ShapeError as error:
        raise errors.ShapeError(f"toeplitz: {error}") from None
    parts = [broadcast_to(x, (*stack, x.shape[-1])) for x in (flip(column, axis=-1), row[..., 1:])]
    return _spread(
        concat(parts, axis=-1), places_beside(column, -1, m - 1, -1)[:, None] + places_beside(column, n), "toeplitz"
    )


def circulant(c: Operand[B], /) -> Tensor[B]:
    """The square matrix with the first column c, each further one turned down by one place; a stack for (..., n).

    Raises ShapeError for a 0-d tensor.

    >>> import adjoint as ad
    >>> ad.linalg.circulant(ad.tensor([1.0, 2.0, 3.0])).tolist()
    [[1.0, 3.0, 2.0], [2.0, 1.0, 3.0], [3.0, 2.0, 1.0]]
    """
    x = as_tensor(c, "circulant")
    if not x.ndim:
        raise errors.ShapeError("circulant: expected a vector, received a 0-d tensor")
    places = places_beside(x, x.shape[-1])
    return _spread(x, places[:, None] - places, "circulant")  # those below zero count from the end


def _spread(x: Tensor[Any], places: Any, name: str) -> Tensor[Any]:
    """The elements at places along the last axis."""
    key = (*[slice(None)] * (x.ndim - 1), ARRAY)
    return run("index", (x, constant_like(places, x, name)), key=key)  # type: ignore[no-any-return]
