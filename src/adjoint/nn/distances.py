"""Distances and similarities of vectors, and losses made of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Never

import numpy as np

from adjoint import dtypes, errors, linalg
from adjoint.dtypes import summing
from adjoint.functions.arguments import (
    as_axis,
    as_flag,
    as_number,
    as_positive,
    as_tensors,
    called,
    check_callable,
    check_shape,
    computed,
    explained,
    inexact,
    keyword_error,
    real,
)
from adjoint.functions.contraction import vecdot
from adjoint.functions.creation import is_double, places_beside
from adjoint.functions.elementwise import divide, floor, minimum, sqrt, where
from adjoint.functions.indexing import triu_indices
from adjoint.functions.shape import broadcast_to
from adjoint.nn.losses import above, both
from adjoint.nn.reduction import reduced
from adjoint.operands import cast, operand
from adjoint.primitives import broadcast_shapes
from adjoint.primitives.sizes import stands
from adjoint.tensor import Operand, Tensor
from adjoint.variables import B


def _pair(
    x: Any, y: Any, name: str, *beside: Any, read: Callable[..., Tensor[Any]] = real
) -> tuple[Tensor[Any], Tensor[Any]]:
    x = read(x, name, y, *beside)
    x, y = as_tensors([x, read(operand(y, x, name), name)], name)
    try:
        broadcast_shapes(x.shape, y.shape)
    except errors.ShapeError as error:
        raise errors.ShapeError(f"{name}: {error}") from None
    return x, y


def _raised(x: Tensor[Any], least: float) -> Tensor[Any]:
    """max(x, least), where x passes the gradient at the bound."""
    return where(x < least, least, x)


@explained
def normalize(x: Operand[B], p: float = 2.0, axis: int = 1, eps: float = 1e-12, **unknown: Never) -> Tensor[B]:
    """x, also complex, over its p-norm along an axis, or over eps where the norm is smaller.

    Raises AxisError for an axis that is not there.

    >>> import adjoint as ad
    >>> [round(v, 6) for v in ad.nn.normalize(ad.tensor([3.0, 4.0]), axis=0).tolist()]
    [0.6, 0.8]
    """
    if unknown:
        raise keyword_error(normalize, unknown)
    x, eps = inexact(x, "normalize"), as_number(eps, "normalize", "eps")
    place = as_axis(axis, x.ndim, "normalize")
    size = linalg.vector_norm(x, axis=place, keepdims=True, ord=as_number(p, "normalize", "p"))
    return x / _raised(size, eps)


@explained
def cosine_similarity(x1: Operand[B], x2: Any, axis: int = 1, eps: float = 1e-8, **unknown: Never) -> Tensor[B]:
    """The cosine of the angle between vectors along an axis; lengths are at least eps.

    Raises ShapeError where shapes do not broadcast, AxisError for an axis that is not there.
    """
    if unknown:
        raise keyword_error(cosine_similarity, unknown)
    name = "cosine_similarity"
    x1, x2 = _pair(x1, x2, name)
    rank = max(x1.ndim, x2.ndim)
    place = as_axis(axis, rank, name) - rank
    eps = as_number(eps, name, "eps")
    shape, dtype = broadcast_shapes(x1.shape, x2.shape), x1.dtype
    x1, x2 = (broadcast_to(cast(x, summing(dtype)), shape) for x in (x1, x2))
    # each over its length before the product, which overflows before the cosine does
    units = [divide(x, _raised(linalg.vector_norm(x, axis=place, keepdims=True), eps)) for x in (x1, x2)]
    return cast(vecdot(units[0], units[1], axis=place), dtype)


def pairwise_distance(x1: Operand[B], x2: Any, p: float = 2.0, eps: float = 1e-6, keepdims: bool = False) -> Tensor[B]:
    """The p-norm of x1 - x2 + eps, also of complex numbers, over the last axis.

    Raises ShapeError where shapes do not broadcast.
    """
    name = "pairwise_distance"
    x1, x2 = _pair(x1, x2, name, read=inexact)
    difference = x1 - x2 + as_number(eps, name, "eps")
    return linalg.vector_norm(difference, axis=-1, keepdims=keepdims, ord=as_number(p, name, "p"))


def pdist(x: Operand[B], p: float = 2.0) -> Tensor[B]:
    """The p-norms of the differences of all pairs of rows, n (n - 1) / 2: of the first with the others, and so on.

    x is (n, features). Raises ShapeError for other axes, ArgumentError for a negative p.

    >>> import adjoint as ad
    >>> ad.nn.pdist(ad.tensor([[0.0, 0.0], [3.0, 4.0], [0.0, 1.0]])).tolist()
    [5.0, 1.0, 4.242640495300293]
    """
    x, p = real(x, "pdist"), as_positive(p, "pdist", "p", zero=True)
    if x.ndim != 2:
        raise errors.ShapeError(f"pdist: expected (n, features), received {x.shape}")
    check_shape((x.shape[0], x.shape[0]), "pdist")
    n = x.shape[0]
    if not stands(n):
        places: Any = computed("pdist", np.triu_indices, n, 1)
    else:
        places = _pairs(x) if is_double(x._device) else triu_indices(n, 1)
    first, second = places
    return linalg.vector_norm(x[first] - x[second], axis=-1, ord=p)


def _pairs(x: Tensor[Any]) -> tuple[Tensor[Any], Tensor[Any]]:
    """Both places of all pairs of n rows, by their number, without a list: n is another one in other calls.

    i (2 n - 1 - i) / 2 pairs come before those of the first place i, whose root is exact: squares are below 2**53.
    """
    n = x.shape[0]
    k = places_beside(x, n * (n - 1) // 2)
    root = floor(sqrt((4 * n * (n - 1) - 7 - 8 * k).astype(dtypes.float64))).astype(k.dtype)
    first = n - 2 - ((root - 1) >> 1)
    return first, k + first + 1 - ((first * (2 * n - 1 - first)) >> 1)


def cosine_embedding_loss(
    x1: Operand[B], x2: Any, target: Any, *, margin: float = 0.0, reduction: str = "mean"
) -> Tensor[B]:
    """1 - cosine where the target is 1, max(0, cosine - margin) where it is -1.

    x1 and x2 are (batch, features) or (features,), targets (batch,) or (). Raises ShapeError for others.
    """
    name = "cosine_embedding_loss"
    x1, x2 = _pair(x1, x2, name, target)
    target = operand(target, x1, name)
    if x1.shape != x2.shape or x1.ndim not in (1, 2) or target.shape != x1.shape[:-1]:
        raise errors.ShapeError(
            f"{name}: expected x1 and x2 (batch, features) and targets (batch,), received {x1.shape}, {x2.shape} and "
            f"{target.shape}"
        )
    least = 1e-12  # is added to the squared lengths, as PyTorch does
    cosine = vecdot(x1, x2) / sqrt((vecdot(x1, x1) + least) * (vecdot(x2, x2) + least))
    apart = above(cosine - as_number(margin, name, "margin"))
    losses = where(target == 1, 1 - cosine, 0.0) + where(target == -1, apart, 0.0)
    return reduced(losses, reduction, name)


def margin_ranking_loss(
    x1: Operand[B], x2: Any, target: Any, *, margin: float = 0.0, reduction: str = "mean"
) -> Tensor[B]:
    """max(0, margin - target (x1 - x2)): x1 should be larger where the target is 1, smaller where it is -1.

    Raises ShapeError where shapes do not broadcast.
    """
    name = "margin_ranking_loss"
    x1, x2 = _pair(x1, x2, name, target)
    x1, target = _pair(x1, target, name)
    losses = above(as_number(margin, name, "margin") - target * (x1 - x2))
    return reduced(losses, reduction, name)


def triplet_margin_loss(
    anchor: Operand[B],
    positive: Any,
    negative: Any,
    *,
    margin: float = 1.0,
    p: float = 2.0,
    eps: float = 1e-6,
    swap: bool = False,
    reduction: str = "mean",
) -> Tensor[B]:
    """max(0, d(anchor, positive) - d(anchor, negative) + margin), d the `pairwise_distance`, also of complex numbers.

    With `swap` the negative is compared with the nearer one of anchor and positive. V. Balntas et al. (2016).
    Raises ShapeError unless all three have one shape.
    """

    def distance(x: Any, y: Any) -> Any:
        return pairwise_distance(x, y, p, eps)

    return _triplet("triplet_margin_loss", anchor, positive, negative, distance, margin, swap, reduction)


def triplet_margin_with_distance_loss(
    anchor: Operand[B],
    positive: Any,
    negative: Any,
    *,
    distance_function: Callable[[Any, Any], Any] | None = None,
    margin: float = 1.0,
    swap: bool = False,
    reduction: str = "mean",
) -> Tensor[B]:
    """`triplet_margin_loss` with your own distance, a function of two tensors."""
    return _triplet(
        "triplet_margin_with_distance_loss",
        anchor,
        positive,
        negative,
        pairwise_distance if distance_function is None else distance_function,
        margin,
        swap,
        reduction,
    )


def _triplet(
    name: str,
    anchor: Any,
    positive: Any,
    negative: Any,
    distance: Callable[[Any, Any], Any],
    margin: float,
    swap: bool,
    reduction: str,
) -> Tensor[Any]:
    anchor, positive = both(anchor, positive, name, negative, read=inexact)
    anchor, negative = both(anchor, negative, name, read=inexact)
    check_callable(name, distance, "distance_function")
    form = "distance_function(x, y)"
    near, far = (real(called(name, form, distance, anchor, other), name) for other in (positive, negative))
    if as_flag(swap, name, "swap"):
        far = minimum(far, real(called(name, form, distance, positive, negative), name))
    return reduced(above(near - far + as_number(margin, name, "margin")), reduction, name)
