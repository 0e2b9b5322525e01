"""Reductions; cross entropy, whose labels are looked at where they have values."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from adjoint.backend import Array
from adjoint.backends.array_api import reduction
from adjoint.backends.jax.indexing import values_of
from adjoint.dtypes import INEXACT

if TYPE_CHECKING:
    from adjoint.backends.jax import JAX


def _cross_entropy(B: JAX, x: Array, labels: Array) -> Array:
    xp, classes = B.xp, x.shape[-1]
    values = values_of(B, labels)
    if values is not None and values.size and not (values.min() >= 0 and values.max() < classes):
        raise reduction.labels_error(np, values, classes)
    if classes:
        x = x - xp.max(x, axis=-1, keepdims=True)
    picked = xp.take_along_axis(x, xp.expand_dims(labels, axis=-1), axis=-1)
    return reduction.logsumexp(xp, x, axis=(x.ndim - 1,), keepdims=False) - xp.squeeze(picked, axis=-1)


def _truth(name: str) -> Callable[..., Any]:
    """JAX's own looks at the real part of a complex number alone: `jnp.any(jnp.asarray([3j]))` is False."""

    def reduced(B: JAX, x: Array, *, axis: Any, keepdims: bool) -> Array:
        return getattr(B.xp, name)(x != 0 if x.dtype.kind == "c" else x, axis=axis, keepdims=keepdims)

    return reduced


def _total(name: str) -> Callable[..., Any]:
    """JAX sums half precision in single precision, unless a dtype is named; integers it would make wider ones."""

    def reduced(B: JAX, x: Array, *, axis: Any, keepdims: bool) -> Array:
        dtype = None if x.dtype.kind in INEXACT else x.dtype
        return getattr(B.xp, name)(x, axis=axis, keepdims=keepdims, dtype=dtype)

    return reduced


IMPLEMENTATIONS: dict[str, Callable[..., Any]] = {
    "all": _truth("all"),
    "any": _truth("any"),
    "sum": _total("sum"),
    "prod": _total("prod"),
    "logcumsumexp": lambda B, x, *, axis: B.jax.lax.cumlogsumexp(x, axis),
    "softmax_cross_entropy": _cross_entropy,
}
