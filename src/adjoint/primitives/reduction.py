"""Primitives along axes: reductions, running totals, normalisations."""

from __future__ import annotations

from typing import Any

from adjoint import errors
from adjoint.primitives.table import (
    INDEX,
    REDUCTION,
    Shape,
    bool_dtype,
    broadcast_shapes,
    declare,
    index_dtype,
    real_part_dtype,
    same_dtype,
    same_shape,
)


def _reduced(shape: Shape, *_: Any, axis: tuple[int, ...], keepdims: bool = False) -> Shape:
    if keepdims:
        return tuple(1 if i in axis else n for i, n in enumerate(shape))
    return tuple(n for i, n in enumerate(shape) if i not in axis)


def extremum_shape(shape: Shape, *, axis: tuple[int, ...], keepdims: bool = False) -> Shape:
    if any(shape[i] == 0 for i in axis):
        raise errors.ShapeError(
            f"an empty axis has no maximum or minimum: shape {shape}, axis {axis}; give at least one element"
        )
    return _reduced(shape, axis=axis, keepdims=keepdims)


def _arg_shape(shape: Shape, *, axis: int | None, keepdims: bool) -> Shape:
    axes = tuple(range(len(shape))) if axis is None else (axis,)
    return extremum_shape(shape, axis=axes, keepdims=keepdims)


def _cross_entropy_shape(x: Shape, labels: Shape) -> Shape:
    if not x or x[:-1] != labels:
        raise errors.ShapeError(
            f"cross entropy: logits of shape {x} need integer targets of shape {x[:-1]}; received {labels}"
        )
    return labels


def _labelled_shape(x: Shape, labels: Shape, **_: object) -> Shape:
    return _cross_entropy_shape(x, labels)


def _labelled_mean_shape(x: Shape, labels: Shape, *, axis: tuple[int, ...], **_: object) -> Shape:
    return tuple([n for i, n in enumerate(broadcast_shapes(x, labels)) if i not in axis])


declare("sum prod logsumexp", REDUCTION, "x", "axis keepdims", shape=_reduced, dtype=same_dtype)
declare("vector_norm", REDUCTION, "x", "axis keepdims", shape=_reduced, dtype=real_part_dtype)
declare("max min", REDUCTION, "x", "axis keepdims", shape=extremum_shape, dtype=same_dtype)
declare("any all", REDUCTION, "x", "axis keepdims", shape=_reduced, dtype=bool_dtype)
declare("argmax argmin", REDUCTION, "x", "axis keepdims", shape=_arg_shape, dtype=index_dtype)
declare(
    "cumulative_sum cumulative_prod logcumsumexp softmax log_softmax",
    REDUCTION,
    "x",
    "axis",
    shape=same_shape,
    dtype=same_dtype,
)
declare("softmax_pullback log_softmax_pullback", REDUCTION, "g y", "axis", shape=same_shape, dtype=same_dtype)
declare("softmax_cross_entropy", REDUCTION, "x labels", shape=_cross_entropy_shape, dtype=same_dtype)
# ... of which one, to be ignored, gives the loss 0; the mean of losses over the labels that are not to be ignored
declare("labelled_cross_entropy", REDUCTION, "x labels", "ignore", shape=_labelled_shape, dtype=same_dtype)
declare(
    "labelled_cross_entropy_pullback",
    REDUCTION,
    "g x labels",
    "ignore",
    shape=lambda g, x, labels, **_: x,
    dtype=same_dtype,
)
declare(
    "labelled_mean_pullback",
    REDUCTION,
    "g labels",
    "axis ignore",
    shape=lambda g, labels, **_: labels,
    dtype=same_dtype,
)
declare("labelled_mean", REDUCTION, "x labels", "axis ignore", shape=_labelled_mean_shape, dtype=same_dtype)
declare("softmax_cross_entropy_pullback", REDUCTION, "g x labels", shape=lambda g, x, labels: x, dtype=same_dtype)


# the extreme up to each place, and the place of it, the last of equal ones
declare(
    "cummax cummin", REDUCTION, "x", "axis", results=2, shape=lambda s, **_: [s, s], dtype=lambda d, **_: [d, INDEX]
)


# of the elements that are not nan; nan where there are none
declare("nanmax nanmin", REDUCTION, "x", "axis keepdims", shape=extremum_shape, dtype=same_dtype)
