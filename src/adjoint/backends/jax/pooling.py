"""What windows over images give, and its transposes."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from adjoint.backend import Array
from adjoint.backends.jax.shape import pad
from adjoint.primitives import Shape
from adjoint.rules.pooling import places

if TYPE_CHECKING:
    from adjoint.backends.jax import JAX


def _folded(
    B: JAX, x: Array, start: Any, join: Any, kernel: Shape, stride: Shape, padding: Any, dilation: Shape
) -> Array:
    lead = (1,) * (x.ndim - len(kernel))
    return B.jax.lax.reduce_window(
        x,
        np.asarray(start, dtype=x.dtype),
        join,
        (*lead, *kernel),
        (*lead, *stride),
        [*[(0, 0)] * len(lead), *padding],
        window_dilation=(*lead, *dilation),
    )


def _max_pool(B: JAX, x: Array, *, kernel: Shape, stride: Shape, padding: Any, dilation: Shape) -> Array:
    return _folded(B, x, -math.inf, B.jax.lax.max, kernel, stride, padding, dilation)


def _max_pool_pullback(
    B: JAX, g: Array, x: Array, *, kernel: Shape, stride: Shape, padding: Any, dilation: Shape
) -> Array:
    """Place by place of the windows, to the first of equal elements."""
    lax, xp = B.jax.lax, B.xp
    lead = x.ndim - len(kernel)
    best = _max_pool(B, x, kernel=kernel, stride=stride, padding=padding, dilation=dilation)
    wide = pad(B, x, widths=((0, 0),) * lead + tuple(padding), value=-math.inf)
    none = xp.zeros((), dtype=g.dtype)
    left, pulled = xp.ones(best.shape, dtype=bool), None
    for key in places(kernel, stride, dilation, best.shape[lead:]):
        part = wide[(..., *key)]
        hit = left & ((part == best) | xp.isnan(part))
        left = left & ~hit
        around = [(0, 0, 0)] * lead + [
            (entry.start, n - entry.stop, s - 1) for entry, n, s in zip(key, wide.shape[lead:], stride, strict=True)
        ]
        part = lax.pad(xp.where(hit, g, none), none, around)
        pulled = part if pulled is None else pulled + part
    assert pulled is not None
    return pulled[(..., *[slice(a, a + n) for (a, _), n in zip(padding, x.shape[lead:], strict=True)])]


def _window_sum(B: JAX, x: Array, *, kernel: Shape, stride: Shape, padding: Any, dilation: Shape) -> Array:
    return _folded(B, x, 0, B.jax.lax.add, kernel, stride, padding, dilation)


def _window_spread(
    B: JAX, g: Array, *, kernel: Shape, stride: Shape, padding: Any, dilation: Shape, size: Shape
) -> Array:
    """A sum over windows of the elements with zeros between them."""
    lead = g.ndim - len(kernel)
    around = [(0, 0, 0)] * lead
    for n, count, k, s, (before, _), d in zip(size, g.shape[lead:], kernel, stride, padding, dilation, strict=True):
        reach = d * (k - 1)
        around.append((reach - before, n - 1 - (count - 1) * s + before, s - 1))
    wide = B.jax.lax.pad(g, np.zeros((), dtype=g.dtype), around)
    ones = (1,) * len(kernel)
    return _folded(B, wide, 0, B.jax.lax.add, kernel, ones, [(0, 0)] * len(kernel), dilation)


IMPLEMENTATIONS: dict[str, Callable[..., Any]] = {
    "max_pool": _max_pool,
    "max_pool_pullback": _max_pool_pullback,
    "window_sum": _window_sum,
    "window_spread": _window_spread,
}
