"""Reductions that keep the dtype, and places as int64."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from adjoint import errors
from adjoint.backend import Array
from adjoint.backends.array_api.elementwise import where


def _sum(xp: Any, x: Array, *, axis: tuple[int, ...], keepdims: bool) -> Array:
    return xp.sum(x, axis=axis, keepdims=keepdims, dtype=x.dtype)


def _prod(xp: Any, x: Array, *, axis: tuple[int, ...], keepdims: bool) -> Array:
    return xp.prod(x, axis=axis, keepdims=keepdims, dtype=x.dtype)


def _place_of(name: str) -> Callable[..., Array]:
    def run(xp: Any, x: Array, *, axis: int | None, keepdims: bool) -> Array:
        return xp.astype(getattr(xp, name)(x, axis=axis, keepdims=keepdims), xp.int64, copy=False)

    return run


def logsumexp(xp: Any, x: Array, *, axis: tuple[int, ...], keepdims: bool) -> Array:
    if any(x.shape[i] == 0 for i in axis):
        shape = [1 if i in axis else n for i, n in enumerate(x.shape) if keepdims or i not in axis]
        return xp.full(tuple(shape), -math.inf, dtype=x.dtype)
    top = xp.max(x, axis=axis, keepdims=True)
    top = where(xp, xp.isfinite(top), top, 0.0)
    out = xp.log(xp.sum(xp.exp(x - top), axis=axis, keepdims=True)) + top
    return out if keepdims else xp.squeeze(out, axis=axis)


def labels_error(xp: Any, labels: Array, classes: int) -> errors.OutOfRangeError:
    return errors.OutOfRangeError(
        f"cross entropy: targets from {int(xp.min(labels))} to {int(xp.max(labels))}, but the logits have "
        f"{classes} classes; targets are class numbers from 0"
    )


def _softmax_cross_entropy(xp: Any, x: Array, labels: Array) -> Array:
    classes = x.shape[-1]
    if math.prod(labels.shape) and bool(xp.any((labels < 0) | (labels >= classes))):
        raise labels_error(xp, labels, classes)
    if classes:  # beside a large logit its logsumexp rounds the logarithm of a sum away
        x = x - xp.max(x, axis=-1, keepdims=True)
    picked = xp.take_along_axis(x, xp.expand_dims(labels, axis=-1), axis=-1)
    return logsumexp(xp, x, axis=(x.ndim - 1,), keepdims=False) - xp.squeeze(picked, axis=-1)


# called with the namespace
IMPLEMENTATIONS: dict[str, Callable[..., Any]] = {
    "sum": _sum,
    "prod": _prod,
    "argmax": _place_of("argmax"),
    "argmin": _place_of("argmin"),
    "cumulative_sum": lambda xp, x, *, axis: xp.cumulative_sum(x, axis=axis, dtype=x.dtype),
    "cumulative_prod": lambda xp, x, *, axis: xp.cumulative_prod(x, axis=axis, dtype=x.dtype),
    "logsumexp": logsumexp,
    "softmax_cross_entropy": _softmax_cross_entropy,
}
