"""Distances of vectors, and their lengths kept below a bound."""

from __future__ import annotations

from typing import Any

from adjoint import errors
from adjoint.functions.arguments import as_axis, as_positive, as_tensors, inexact
from adjoint.functions.elementwise import where
from adjoint.functions.shape import expand_dims
from adjoint.linalg.norms import vector_norm
from adjoint.operands import operand
from adjoint.primitives import broadcast_shapes
from adjoint.tensor import Operand, Tensor
from adjoint.variables import B


def cdist(x: Operand[B], y: Any, /, p: float = 2.0) -> Tensor[B]:
    """The p-norms of the differences of all pairs of a row of x and a row of y.

    x is (..., n, features), y (..., m, features), the result (..., n, m); leading axes broadcast. Differences are taken
    one by one, in the memory of n m features: no digits are lost where rows are near each other, and the distance of
    equal ones is 0, with derivative 0. Raises ShapeError for shapes that do not fit, ArgumentError for a negative p.

    >>> import adjoint as ad
    >>> ad.cdist(ad.tensor([[0.0, 0.0], [3.0, 0.0]]), ad.tensor([[3.0, 4.0]])).tolist()
    [[5.0], [4.0]]
    """
    x = inexact(x, "cdist", y)
    x, y = as_tensors([x, inexact(operand(y, x, "cdist"), "cdist")], "cdist")
    order = as_positive(p, "cdist", "p", zero=True)
    if x.ndim < 2 or y.ndim < 2 or x.shape[-1] != y.shape[-1]:
        raise errors.ShapeError(
            f"cdist: expected (..., n, features) and (..., m, features), received {x.shape} and {y.shape}"
        )
    try:
        broadcast_shapes(x.shape[:-2], y.shape[:-2])
    except errors.ShapeError as error:
        raise errors.ShapeError(f"cdist: {error}") from None
    return vector_norm(expand_dims(x, -2) - expand_dims(y, -3), axis=-1, ord=order)


def renorm(x: Operand[B], p: float, axis: int, maxnorm: float, /) -> Tensor[B]:
    """x with each slice along an axis shortened to a p-norm of `maxnorm`, where it is longer.

    The result has the shape of x. Raises ShapeError for fewer than two axes, AxisError for an axis that is not there,
    ArgumentError for a p that is not positive or a negative bound.

    >>> import adjoint as ad
    >>> ad.renorm(ad.tensor([[3.0, 4.0], [0.0, 1.0]]), 2, 0, 1.0).round(4).tolist()
    [[0.6000000238418579, 0.800000011920929], [0.0, 1.0]]
    """
    x = inexact(x, "renorm")
    order, bound = as_positive(p, "renorm", "p"), as_positive(maxnorm, "renorm", "maxnorm", zero=True)
    if x.ndim < 2:
        raise errors.ShapeError(f"renorm: expected at least two axes, received shape {x.shape}")
    place = as_axis(axis, x.ndim, "renorm")
    size = vector_norm(x, axis=tuple(i for i in range(x.ndim) if i != place), keepdims=True, ord=order)
    long = size > bound
    return x * where(long, bound / (where(long, size, 1.0) + 1e-7), 1.0)  # 1e-7 as PyTorch has it
