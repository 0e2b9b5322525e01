"""What keeps functions away from single elements: values are at hand here, and mostly none is to be replaced."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from adjoint import errors
from adjoint.backends.numpy.elementwise import IMPLEMENTATIONS as _ELEMENTWISE
from adjoint.backends.numpy.reduction import IMPLEMENTATIONS as _REDUCTION
from adjoint.backends.numpy.shape import IMPLEMENTATIONS as _SHAPE
from adjoint.primitives import DType
from adjoint.rules.masks import RECORDS

_where: Any = _ELEMENTWISE["where"]


class _Definitions:
    """The functions that definitions name, without a backend: these modules are what the leaf is made of."""

    def __getattr__(self, name: str) -> Any:
        for functions in (IMPLEMENTATIONS, _ELEMENTWISE, _REDUCTION):
            if name in functions:
                return functions[name]
        raise AttributeError(name)


_B = _Definitions()


def _fills(y: Any, *others: Any) -> bool:
    """Whether y has the shape that it and the others broadcast to."""
    shape = y.shape
    for x in others:  # mostly all have that shape
        if x.shape != shape:
            return bool(shape == np.broadcast_shapes(shape, *[x.shape for x in others]))
    return True


def _replace_where_equal(y: Any, x: Any, *, target: float, value: float) -> Any:
    hit = x == target
    return _where(hit, value, y) if np.count_nonzero(hit) or not _fills(y, x) else y


def _inside_log(y: Any, x: Any, *, pole: float) -> Any:
    if x.all() and _fills(y, x):
        return y
    return _defined("inside_log")(_B, y, x, pole=pole)


def _inside_log_pullback(g: Any, y: Any, x: Any, *, pole: float) -> Any:
    if x.all() and _fills(g, x, y):
        return g
    return _defined("inside_log_pullback")(_B, g, y, x, pole=pole)


def _bounded_log(x: Any, *, shift: int, least: float) -> Any:
    with np.errstate(divide="ignore"):
        out = np.log1p(x) if shift else np.log(x)
    return np.maximum(out, out.dtype.type(least))


def _bounded_log_pullback(g: Any, x: Any, y: Any, *, shift: int, least: float) -> Any:
    if y.size and y.min() > least and (out := g / (x + x.dtype.type(1) if shift else x)).shape == y.shape:
        return out
    return _defined("bounded_log_pullback")(_B, g, x, y, shift=shift, least=least)


def _none_ignored(labels: Any, ignore: int) -> bool:
    return not np.count_nonzero(labels == ignore)


def _labelled_cross_entropy(x: Any, labels: Any, *, ignore: int) -> Any:
    if not 0 <= ignore < x.shape[-1]:
        try:  # a label that is ignored is no class, and looked for where there is one that is none
            return _REDUCTION["softmax_cross_entropy"](x, labels)
        except errors.OutOfRangeError:
            pass
    return _defined("labelled_cross_entropy")(_B, x, labels, ignore=ignore)


def _labelled_cross_entropy_pullback(g: Any, x: Any, labels: Any, *, ignore: int) -> Any:
    outside = not -x.shape[-1] <= ignore < x.shape[-1]  # then it is no index
    if outside or _none_ignored(labels, ignore):
        try:
            return _REDUCTION["softmax_cross_entropy_pullback"](g, x, labels)
        except IndexError:
            pass
    return _defined("labelled_cross_entropy_pullback")(_B, g, x, labels, ignore=ignore)


def _labelled_mean(x: Any, labels: Any, *, axis: tuple[int, ...], ignore: int) -> Any:
    if _none_ignored(labels, ignore):
        return _shared(_REDUCTION["sum"](x, axis=axis, keepdims=False), _count(x, axis))
    counted = labels != ignore
    total = _REDUCTION["sum"](_where(counted, x, 0.0), axis=axis, keepdims=False)
    return np.divide(total, np.add.reduce(counted, axis=axis), dtype=x.dtype)


def _labelled_mean_pullback(g: Any, labels: Any, *, axis: tuple[int, ...], ignore: int) -> Any:
    if _none_ignored(labels, ignore):
        share = _shared(g, _count(labels, axis))
        if share.ndim:
            share = share.reshape([1 if i in axis else n for i, n in enumerate(labels.shape)])
        return _SHAPE["broadcast_to"](share, shape=labels.shape)
    counted = labels != ignore
    share = np.divide(np.expand_dims(g, axis), np.add.reduce(counted, axis=axis, keepdims=True), dtype=g.dtype)
    return _where(counted, np.broadcast_to(share, labels.shape), 0.0)


def _shared(total: Any, count: int) -> Any:
    """A total over how many share it; the mean of nothing is nan, without NumPy's warning."""
    return total / total.dtype.type(count) if count else total * total.dtype.type(math.nan)


def _count(x: Any, axis: tuple[int, ...]) -> int:
    """How many elements a mean along these axes is of."""
    return x.size if len(axis) == x.ndim else math.prod([x.shape[i] for i in axis])


def _isin(x: Any, values: Any) -> Any:
    if not values.size:
        return np.zeros(x.shape, bool)
    if x.dtype.kind in "iu":  # by a table of all between their limits, where that is not large
        low, high = int(values.min()), int(values.max())
        if low >= -(1 << 62) and high <= 1 << 62 and high - low <= 4 * (x.size + values.size):
            table = np.zeros(high - low + 1, bool)
            table[values.astype(np.int64) - low] = True
            inside = (x >= low) & (x <= high)
            return table[np.where(inside, x.astype(np.int64) - low, 0)] & inside
    ordered = np.sort(values)
    place = np.searchsorted(ordered, x)
    return ordered[np.where(place < ordered.size, place, 0)] == x


def _one_hot(indices: Any, *, count: int, dtype: DType) -> Any:
    size = math.prod(indices.shape)
    out = np.zeros((size, count), dtype)
    out[np.arange(size), np.reshape(indices, -1)] = 1
    return out.reshape(*indices.shape, count)


def _defined(name: str) -> Any:
    return RECORDS[name].definition  # type: ignore[attr-defined]


IMPLEMENTATIONS = {
    "replace_where_equal": _replace_where_equal,
    "inside_log": _inside_log,
    "inside_log_pullback": _inside_log_pullback,
    "bounded_log": _bounded_log,
    "bounded_log_pullback": _bounded_log_pullback,
    "raise_to": lambda x, *, least: np.maximum(x, least),
    "labelled_cross_entropy": _labelled_cross_entropy,
    "labelled_cross_entropy_pullback": _labelled_cross_entropy_pullback,
    "labelled_mean": _labelled_mean,
    "labelled_mean_pullback": _labelled_mean_pullback,
    "isin": _isin,
    "one_hot": _one_hot,
}
