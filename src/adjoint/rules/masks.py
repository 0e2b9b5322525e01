"""Derivatives of what keeps functions away from single elements, and definitions for leaves that do not look."""

from __future__ import annotations

import math
from typing import Any

from adjoint.rules.records import Composed, NotDifferentiable, Record
from adjoint.rules.reduction import along_labels
from adjoint.rules.sparsity import by_definition


def _replace_where_equal(B: Any, y: Any, x: Any, *, target: float, value: float) -> Any:
    return B.where(B.equal(x, target), value, y)


def _outside(B: Any, x: Any, y: Any, pole: float) -> Any:
    """Where x is zero and the logarithm not finite; it stays a nan where y is one."""
    inside = B.logical_or(B.logical_and(B.greater(y, pole), B.isfinite(y)), B.isnan(y))
    return B.logical_and(B.equal(x, 0), B.logical_not(inside))


def _inside_log(B: Any, y: Any, x: Any, *, pole: float) -> Any:
    return B.where(_outside(B, x, y, pole), pole + 1.0, y)


def _inside_log_pullback(B: Any, g: Any, y: Any, x: Any, *, pole: float) -> Any:
    return B.where(_outside(B, x, y, pole), 0.0, g)


def _bounded_log(B: Any, x: Any, *, shift: int, least: float) -> Any:
    at_pole = B.equal(x, float(-shift))
    inside = B.where(at_pole, 0.5, x)
    found = B.log1p(inside) if shift else B.log(inside)
    return B.where(B.logical_or(at_pole, B.less(found, least)), least, found)


def _bounded_log_pullback(B: Any, g: Any, x: Any, y: Any, *, shift: int, least: float) -> Any:
    bounded = B.less_equal(y, least)
    return B.divide(B.where(bounded, 0.0, g), B.where(bounded, 1.0, B.add(x, shift) if shift else x))


def _one_hot(B: Any, indices: Any, *, count: int, dtype: Any) -> Any:
    line = B.arange(start=0, stop=count, step=1, dtype=B.dtype_of(indices))
    return B.astype(B.equal(B.expand_dims(indices, axis=(len(indices.shape),)), line), dtype=dtype)


def _isin(B: Any, x: Any, values: Any) -> Any:
    return B.reshape(_among(B, B.reshape(x, shape=(math.prod(x.shape),)), values), shape=tuple(x.shape))


def _among(B: Any, x: Any, values: Any) -> Any:
    """Whether elements of lines are among those of lines beside them."""
    size, axis = values.shape[-1], len(values.shape) - 1
    if not size:
        return B.full(shape=tuple(x.shape), value=False, dtype=B.dtype_of(B.equal(x, x)))
    ordered = B.sort(values, axis=axis, descending=False)
    place = B.searchsorted(ordered, x, side="left")
    place = B.where(B.less(place, size), place, 0)
    return B.equal(B.take_along_axis(ordered, place, axis=axis), x)


def _isin_batched(B: Any, _: Any, values: list[Any], flags: list[bool], parameters: dict[str, Any]) -> Any:
    x, line = values
    if not flags[1]:
        return B.isin(x, line)
    count, shape = line.shape[0], tuple(x.shape)[flags[0] :]
    flat = B.reshape(x, shape=(count if flags[0] else 1, math.prod(shape)))
    lines = flat if flags[0] else B.broadcast_to(flat, shape=(count, math.prod(shape)))
    return B.reshape(_among(B, lines, line), shape=(count, *shape))


def _labels(B: Any, labels: Any, ignore: int) -> Any:
    return B.replace_where_equal(labels, labels, target=ignore, value=0)


def _labelled_cross_entropy(B: Any, x: Any, labels: Any, *, ignore: int) -> Any:
    losses = B.softmax_cross_entropy(x, _labels(B, labels, ignore))
    return B.replace_where_equal(losses, labels, target=ignore, value=0.0)


def _labelled_cross_entropy_pullback(B: Any, g: Any, x: Any, labels: Any, *, ignore: int) -> Any:
    kept = B.replace_where_equal(g, labels, target=ignore, value=0.0)
    return B.softmax_cross_entropy_pullback(kept, x, _labels(B, labels, ignore))


def _count(B: Any, labels: Any, axis: tuple[int, ...], ignore: int, dtype: Any) -> Any:
    counted = B.astype(B.not_equal(labels, ignore), dtype=dtype)
    return B.sum(counted, axis=axis, keepdims=True)


def _labelled_mean(B: Any, x: Any, labels: Any, *, axis: tuple[int, ...], ignore: int) -> Any:
    total = B.sum(B.replace_where_equal(x, labels, target=ignore, value=0.0), axis=axis, keepdims=True)
    return B.squeeze(B.divide(total, _count(B, labels, axis, ignore, B.dtype_of(x))), axis=axis)


def _labelled_mean_pullback(B: Any, g: Any, labels: Any, *, axis: tuple[int, ...], ignore: int) -> Any:
    share = B.divide(B.expand_dims(g, axis=axis), _count(B, labels, axis, ignore, B.dtype_of(g)))
    whole = B.broadcast_to(share, shape=tuple(labels.shape))
    return B.replace_where_equal(whole, labels, target=ignore, value=0.0)


RECORDS: dict[str, Record] = {
    "replace_where_equal": Composed(
        _replace_where_equal, y=lambda B, g, x, target: B.replace_where_equal(g, x, target=target, value=0.0)
    ),
    "inside_log": Composed(_inside_log, y=lambda B, g, y, x, pole: B.inside_log_pullback(g, y, x, pole=pole)),
    "inside_log_pullback": Composed(
        _inside_log_pullback, g=lambda B, g, y, x, pole: B.inside_log_pullback(g, y, x, pole=pole)
    ),
    "bounded_log": Composed(
        _bounded_log,
        x=lambda B, g, x, out, shift, least: B.bounded_log_pullback(g, x, out, shift=shift, least=least),
    ),
    "bounded_log_pullback": Composed(_bounded_log_pullback),
    "raise_to": Composed(lambda B, x, *, least: B.where(B.less(x, least), least, x), x=lambda B, g: g),
    "labelled_cross_entropy": Composed(
        _labelled_cross_entropy,
        x=lambda B, g, x, labels, ignore: B.labelled_cross_entropy_pullback(g, x, labels, ignore=ignore),
        pushforward=lambda B, tangents, x, labels, ignore: along_labels(
            B, tangents[0], lambda g: B.labelled_cross_entropy_pullback(g, x, labels, ignore=ignore), labels
        ),
        sparsity=by_definition,
    ),
    "labelled_cross_entropy_pullback": Composed(_labelled_cross_entropy_pullback, sparsity=by_definition),
    "labelled_mean": Composed(
        _labelled_mean,
        x=lambda B, g, labels, axis, ignore: B.labelled_mean_pullback(g, labels, axis=axis, ignore=ignore),
        sparsity=by_definition,
    ),
    "labelled_mean_pullback": Composed(_labelled_mean_pullback, sparsity=by_definition),
    "isin": NotDifferentiable(_isin, batching=_isin_batched),
    "one_hot": NotDifferentiable(_one_hot),
}
