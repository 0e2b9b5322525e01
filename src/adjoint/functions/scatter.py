"""Values put at places: set, added, multiplied or compared; sums over segments; counts."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Never

import numpy as np

from adjoint import dtypes, errors
from adjoint.functions.arguments import (
    as_axis,
    as_choice,
    as_flag,
    as_integer,
    as_size,
    as_tensor,
    as_tensors,
    check_shape,
    explained,
    inexact,
    keyword_error,
    own_values,
)
from adjoint.functions.creation import made, places_beside
from adjoint.functions.elementwise import where
from adjoint.functions.indexing import as_key, as_places
from adjoint.functions.reduction import cumulative_sum
from adjoint.functions.shape import broadcast_to, moveaxis, reshape
from adjoint.operands import cast, concrete_values, constant_like, deferred_check, operand, run
from adjoint.primitives import ARRAY, index_shape
from adjoint.tensor import Operand, Tensor, same
from adjoint.variables import B

_MODES = {
    "set": "index_set",
    "add": "index_add",
    "multiply": "index_multiply",
    "max": "index_max",
    "min": "index_min",
    "mean": "index_add",
}
# what joins nothing to the values
_NEUTRAL: dict[str, Callable[[Any], Any]] = {
    "add": lambda dtype: 0,
    "multiply": lambda dtype: 1,
    "max": lambda dtype: dtypes.limits(dtype)[0],
    "min": lambda dtype: dtypes.limits(dtype)[1],
    "mean": lambda dtype: 0,
}


def _refuse_mode(mode: Any, x: Tensor[Any], name: str) -> None:
    as_choice(mode, name, "mode", tuple(_MODES))
    if (mode in ("max", "min") and x.dtype.kind == "c") or (mode != "set" and x.dtype.kind == "b"):
        raise errors.DtypeError(f"{name}: {mode!r} does not go with {x.dtype}; convert it with astype")


def scatter(x: Operand[B], key: Any, values: Any, /, *, mode: str = "set", include_self: bool = True) -> Tensor[B]:
    """x with the elements at a key replaced by values, or joined with them.

    `key` is whatever x[key] takes, and `values` broadcast to its shape. With "add", "multiply", "max", "min" and "mean"
    a place that is named more than once gets all its values; with "set" the last one. What x has there is joined with
    them, and is one of those whose mean is taken, unless `include_self` is false. Gradients flow to both; what ties for
    an extreme shares them equally, and those of products are right with zeros among the factors. Means of integers are
    rounded down.

    Raises ArgumentError for another mode, DtypeError for an order of complex numbers or arithmetic of booleans,
    ShapeError for values that do not broadcast, and the errors of indexing.

    >>> import adjoint as ad
    >>> ad.scatter(ad.zeros(3), [0, 0, 2], ad.tensor([1.0, 2.0, 3.0]), mode="add").tolist()
    [3.0, 0.0, 3.0]
    """
    x, values = as_tensors([x, values], "scatter", *(key if isinstance(key, tuple) else (key,)))
    _refuse_mode(mode, x, "scatter")
    normal, arrays = as_key(x, key)
    target = index_shape(x.shape, *[a.shape for a in arrays], key=normal)
    shape = values.shape
    while len(shape) > len(target) and shape[0] == 1:  # NumPy lets a value have leading ones
        shape = shape[1:]
    values = values if shape == values.shape else reshape(values, shape)
    return _written(mode, x, values, arrays, normal, as_flag(include_self, "scatter", "include_self"))


@explained
def put_along_axis(
    x: Operand[B],
    indices: Any,
    values: Any,
    /,
    axis: int = -1,
    *,
    mode: str = "set",
    include_self: bool = True,
    **unknown: Never,
) -> Tensor[B]:
    """x with elements along an axis replaced by values, or joined with them: the inverse of `take_along_axis`.

    `indices` broadcast with x along other axes, `values` to the indices. Modes, `include_self`, gradients and errors
    are those of `scatter`.

    >>> import adjoint as ad
    >>> x = ad.tensor([[1.0, 5.0], [4.0, 2.0]])
    >>> ad.put_along_axis(x, ad.argmax(x, axis=1, keepdims=True), 0.0, axis=1).tolist()
    [[1.0, 0.0], [0.0, 2.0]]
    """
    if unknown:
        raise keyword_error(put_along_axis, unknown)
    x, values = as_tensors([x, values], "put_along_axis", indices)
    _refuse_mode(mode, x, "put_along_axis")
    place = as_axis(axis, x.ndim, "put_along_axis")
    indices = operand(indices, x, "put_along_axis")
    if indices.dtype.kind not in "iu" or indices.ndim != x.ndim:
        raise errors.OutOfRangeError(
            f"put_along_axis: expected integers of {x.ndim} axes, received {indices.dtype} of shape {indices.shape}"
        )
    indices = as_places(cast(indices, dtypes.int64), x.shape[place], place, x.shape)
    # in the flat tensor: an element's place is that of its line's first, and a step of the axis for each index
    step = math.prod(x.shape[place + 1 :])
    long = x.shape[place] * step
    blocks = places_beside(x, math.prod(x.shape[:place]), of=[long])[:, None] * long
    starts = (blocks + places_beside(x, step)).reshape([1 if i == place else n for i, n in enumerate(x.shape)])
    places = operand(starts, x, "put_along_axis") + (indices if step == 1 else indices * step)
    try:
        values = values if values.shape == places.shape else broadcast_to(values, places.shape)
    except errors.ShapeError:
        raise errors.ShapeError(
            f"put_along_axis: values of shape {values.shape} do not broadcast to places of shape {places.shape}"
        ) from None
    line, values, places = [run("reshape", (t,), shape=(math.prod(t.shape),)) for t in (x, values, places)]
    own = as_flag(include_self, "put_along_axis", "include_self")
    return run("reshape", (_written(mode, line, values, [places], (ARRAY,), own),), shape=x.shape)  # type: ignore[no-any-return]


def _written(mode: str, x: Tensor[Any], values: Tensor[Any], arrays: Any, key: Any, own: bool) -> Tensor[Any]:
    """x with values joined at a key, with what is there or without it."""
    if mode != "mean" and (own or mode == "set"):
        return run(_MODES[mode], (x, values, *arrays), key=key)  # type: ignore[no-any-return]
    one = made(x.device, "full", shape=(), value=1, dtype=dtypes.int64)
    none = made(x.device, "full", shape=x.shape, value=0, dtype=dtypes.int64)
    times = run("index_add", (none, one, *arrays), key=key)
    if not own:
        x = where(times == 0, x, made(x.device, "full", shape=(), value=_NEUTRAL[mode](x.dtype), dtype=x.dtype))
    out = run(_MODES[mode], (x, values, *arrays), key=key)
    if mode != "mean":
        return out  # type: ignore[no-any-return]
    count = cast(times + 1 if own else run("maximum", (times, 1)), x.dtype)
    return out / count if x.dtype.kind in dtypes.INEXACT else out // count  # type: ignore[no-any-return]


def masked_scatter(x: Operand[B], mask: Any, source: Any, /) -> Tensor[B]:
    """x with the elements at true places of a mask replaced by those of a source, in order; the mask broadcasts to x.

    In PyTorch's words; x[mask] = source is NumPy's. Raises DtypeError for a mask that is not boolean or another kind of
    source, ShapeError for a mask that does not broadcast, OutOfRangeError for fewer elements than places.

    >>> import adjoint as ad
    >>> ad.masked_scatter(ad.zeros(3), [True, False, True], ad.tensor([5.0, 6.0])).tolist()
    [5.0, 0.0, 6.0]
    """
    x, source = as_tensors([x, source], "masked_scatter", mask)
    mask = operand(mask, x, "masked_scatter")
    if mask.dtype.kind != "b":
        raise errors.DtypeError(f"masked_scatter: a mask is boolean, received {mask.dtype}")
    try:
        mask = broadcast_to(mask, x.shape)
    except errors.ShapeError:
        raise errors.ShapeError(
            f"masked_scatter: a mask of shape {mask.shape} does not broadcast to x of shape {x.shape}"
        ) from None
    flat, count = reshape(mask, -1), source.size
    number = cumulative_sum(flat)
    number = deferred_check(
        number,
        lambda values: values.max() <= count,
        lambda values: errors.OutOfRangeError(
            f"masked_scatter: {count} elements in the source for up to {values.max()} places"
        ),
    )
    if not count or not x.size:
        return same(x)
    places = run("clip", (number - 1, 0, count - 1))
    picked = run("index", (reshape(source, -1), places), key=(ARRAY,))
    return where(mask, reshape(picked, x.shape), x)


# --- segments ---


def _segments(x: Any, segments: Any, num_segments: Any, axis: int, name: str) -> tuple[Tensor[Any], Tensor[Any], int]:
    """The tensor with its axis in front, the segment of each part of it, and how many segments there are."""
    x = as_tensor(x, name, segments)
    place = as_axis(axis, x.ndim, name)
    x = moveaxis(x, place, 0) if place else x
    segments = operand(segments, x, name)
    if segments.dtype.kind not in "iu" or segments.shape != x.shape[:1]:
        raise errors.ShapeError(
            f"{name}: expected an integer for each of {x.shape[0]} parts, received {segments.dtype} of shape "
            f"{segments.shape}"
        )
    count = None if num_segments is None else as_size(num_segments, name, "num_segments")
    return x, *_counted(segments, count, name, "num_segments")


def _above(values: np.ndarray[Any, Any]) -> int:
    """One more than the largest number."""
    return int(values.max()) + 1 if values.size else 0


def _counted(numbers: Tensor[Any], count: int | None, name: str, says: str) -> tuple[Tensor[Any], int]:
    """Numbers from 0, and one more than the largest, or as many as an argument `says`."""
    size = _above(own_values(numbers, name, f"say how many there are, {says}=")) if count is None else count
    numbers = deferred_check(
        numbers,
        lambda values: (values.min() >= 0) & (values.max() < size),
        lambda values: errors.OutOfRangeError(
            f"{name}: expected numbers from 0{'' if count is None else f' to {count - 1}'}, received some from "
            f"{values.min()} to {values.max()}"
        ),
    )
    return cast(numbers, dtypes.int64), size


def _joined(name: str, mode: str, x: Any, segments: Any, num_segments: Any, axis: int) -> Any:
    x, segments, count = _segments(x, segments, num_segments, axis, name)
    _refuse_mode(mode, x, name)
    value = _NEUTRAL[mode](x.dtype)
    initial = made(x.device, "full", shape=(count, *x.shape[1:]), value=value, dtype=x.dtype)
    out, place = run(_MODES[mode], (initial, x, segments), key=(ARRAY,)), as_axis(axis, x.ndim, name)
    return moveaxis(out, 0, place) if place else out


def segment_sum(x: Operand[B], segments: Any, /, num_segments: int | None = None, *, axis: int = 0) -> Tensor[B]:
    """The sums of the parts along an axis that belong to one segment; zero for an empty segment.

    The result has the shape of x with `num_segments` along that axis; `segments` is a vector with the number of the
    segment of each part, in any order. Inside `vmap` and other transforms `num_segments` says how many there are;
    elsewhere it may be left out. Raises ShapeError unless there is an integer for each part, OutOfRangeError for
    numbers below 0 or too large, DtypeError for booleans.

    >>> import adjoint as ad
    >>> ad.segment_sum(ad.tensor([1.0, 2.0, 3.0]), [0, 2, 0]).tolist()
    [4.0, 0.0, 2.0]
    """
    return _joined("segment_sum", "add", x, segments, num_segments, axis)  # type: ignore[no-any-return]


def segment_prod(x: Operand[B], segments: Any, /, num_segments: int | None = None, *, axis: int = 0) -> Tensor[B]:
    """The products of the parts of each segment, one for an empty segment. Arguments as `segment_sum`."""
    return _joined("segment_prod", "multiply", x, segments, num_segments, axis)  # type: ignore[no-any-return]


def segment_max(x: Operand[B], segments: Any, /, num_segments: int | None = None, *, axis: int = 0) -> Tensor[B]:
    """The largest of each segment; -inf, or the least integer, for an empty segment. Ties share the gradient.

    Arguments as `segment_sum`.
    """
    return _joined("segment_max", "max", x, segments, num_segments, axis)  # type: ignore[no-any-return]


def segment_min(x: Operand[B], segments: Any, /, num_segments: int | None = None, *, axis: int = 0) -> Tensor[B]:
    """The smallest of each segment; inf, or the largest integer, for an empty segment. Ties share the gradient.

    Arguments as `segment_sum`.
    """
    return _joined("segment_min", "min", x, segments, num_segments, axis)  # type: ignore[no-any-return]


def segment_mean(x: Operand[B], segments: Any, /, num_segments: int | None = None, *, axis: int = 0) -> Tensor[B]:
    """The means of the parts of each segment, zero for an empty segment. Arguments as `segment_sum`."""
    x = inexact(x, "segment_mean", segments)
    _, segments, count = _segments(x, segments, num_segments, axis, "segment_mean")
    total = segment_sum(x, segments, count, axis=axis)
    sizes = run("maximum", (_counts(segments, count), 1))
    place = as_axis(axis, x.ndim, "segment_mean")
    shape = tuple(count if i == place else 1 for i in range(x.ndim))
    return total / reshape(cast(sizes, total.dtype), shape)


# --- counts ---


def _counts(numbers: Tensor[Any], count: int, weights: Tensor[Any] | None = None) -> Tensor[Any]:
    """How often each number occurs, or the sum of the weights where it does."""
    if weights is None:
        weights = operand(np.ones((), dtype=np.int64), numbers, "bincount")
    initial = made(weights.device, "full", shape=(count,), value=0, dtype=weights.dtype)
    return run("index_add", (initial, weights, numbers), key=(ARRAY,))  # type: ignore[no-any-return]


def bincount(x: Operand[B], /, weights: Any = None, minlength: int = 0, *, length: int | None = None) -> Tensor[B]:
    """How often each number from 0 occurs in a vector of integers, or the sums of the weights of its occurrences.

    There are as many counts as the largest number needs, and at least `minlength`; or `length`, which transforms such
    as `vmap` need. Sums of weights are of double precision, as NumPy's, and gradients flow to the weights; counts are
    int64 and have none. Raises OutOfRangeError for numbers below 0 or not below `length`, ShapeError for weights of
    another shape.

    >>> import adjoint as ad
    >>> ad.bincount(ad.tensor([0, 2, 2]), ad.tensor([0.5, 1.0, 2.0])).tolist()
    [0.5, 0.0, 3.0]
    """
    x = as_tensor(x, "bincount", weights)
    if x.ndim != 1 or (x.dtype.kind not in "iu" and x.size):
        raise errors.ShapeError(f"bincount: expected a vector of integers, received {x.dtype} of shape {x.shape}")
    numbers, count = _counted(
        x, None if length is None else as_size(length, "bincount", "length"), "bincount", "length"
    )
    if length is None:
        count = max(count, as_size(minlength, "bincount", "minlength"))
    if weights is not None:
        if isinstance(weights, (list, tuple)):
            weights = constant_like(dtypes.values_of(weights, dtypes.float64, "bincount"), x, "bincount")
        weights = operand(weights, x, "bincount")
        weights = cast(weights, weights.device.leaf.widest(dtypes.promote(weights.dtype, dtypes.float64)))
        if weights.shape != x.shape:
            raise errors.ShapeError(f"bincount: weights of shape {weights.shape} for numbers of shape {x.shape}")
    return _counts(numbers, count, weights)


def one_hot(indices: Any, num_classes: int = -1, *, dtype: Any = None, axis: int = -1) -> Tensor[Any]:
    """A new axis with one at the place that each index names, and zeros elsewhere.

    Indices of shape (a, b) give (a, b, num_classes), or with the classes on another `axis`. The number of classes is
    one more than the largest index unless given; the dtype is int64 unless given. Raises DtypeError for other than
    integers, OutOfRangeError for negative ones, or no less than the number of classes.

    >>> import adjoint as ad
    >>> ad.one_hot(ad.tensor([1, 0]), 3).tolist()
    [[0, 1, 0], [1, 0, 0]]
    """
    indices, count = as_tensor(indices, "one_hot"), as_integer(num_classes, "one_hot", "num_classes")
    if indices.dtype.kind not in "iu":
        raise errors.DtypeError(f"one_hot: indices are integers, received {indices.dtype}")
    if count == -1:
        count = _above(concrete_values(indices, "one_hot", "say how many classes there are, num_classes="))
    indices = deferred_check(
        indices,
        lambda values: (values.min() >= 0) & (values.max() < count),
        lambda values: errors.OutOfRangeError(
            f"one_hot: indices from {values.min()} to {values.max()}, but there are {count} classes, from 0"
        ),
    )
    place = as_axis(axis, indices.ndim + 1, "one_hot")
    dtype = dtypes.int64 if dtype is None else dtypes.as_dtype(dtype)
    check_shape((*indices.shape, as_size(count, "one_hot", "num_classes")), "one_hot")
    out = run("one_hot", (cast(indices, dtypes.int64),), count=count, dtype=dtype)
    return out if place == indices.ndim else moveaxis(out, -1, place)


# --- running extremes ---
