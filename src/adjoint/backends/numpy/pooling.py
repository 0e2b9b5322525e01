"""Windows that move over the last axes, on NumPy: one axis at a time where that is possible."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from adjoint.backend import Array, Implementation
from adjoint.backends.numpy.elementwise import kept
from adjoint.backends.numpy.shape import laid, like
from adjoint.primitives import Shape, conv_size
from adjoint.rules.pooling import places

Padding = tuple[tuple[int, int], ...]


def _padded(x: Array, padding: Padding, value: float) -> Array:
    if not any(map(any, padding)):
        return x
    lead = x.ndim - len(padding)
    out = like(x, [*x.shape[:lead], *[n + sum(p) for n, p in zip(x.shape[lead:], padding, strict=True)]])
    out.fill(value)
    out[_inside(x.shape[lead:], padding)] = x
    return out


def _inside(sizes: Shape, padding: Padding) -> tuple[Any, ...]:
    return (..., *[slice(before, before + n) for n, (before, _) in zip(sizes, padding, strict=True)])


def _along(axis: int, place: int, stride: int, dilation: int, count: int) -> tuple[Any, ...]:
    """The key of the elements that all windows have at a place along a negative axis."""
    start = place * dilation
    return (..., slice(start, start + stride * (count - 1) + 1, stride), *[slice(None)] * (-axis - 1))


def _folded(combine: Any, x: Array, kernel: Shape, stride: Shape, dilation: Shape) -> Array:
    """Elements of windows combined, along one axis after the other."""
    for i, (k, s, d) in enumerate(zip(kernel, stride, dilation, strict=True)):
        if k == s == 1:
            continue
        axis = i - len(kernel)
        count = conv_size(x.shape[axis], k, s, (0, 0), d)
        first = x[_along(axis, 0, s, d, count)]
        total = first.copy(order="K") if k == 1 else combine(first, x[_along(axis, 1, s, d, count)])
        for place in range(2, k):
            combine(total, x[_along(axis, place, s, d, count)], out=total)
        x = total
    return x


def _max_pool(x: Array, *, kernel: Shape, stride: Shape, padding: Padding, dilation: Shape) -> Array:
    return _folded(np.maximum, _padded(x, padding, -math.inf), kernel, stride, dilation)


def _max_pool_pullback(g: Array, x: Array, *, kernel: Shape, stride: Shape, padding: Padding, dilation: Shape) -> Array:
    wide, g = _padded(x, padding, -math.inf), laid(g, x)
    out = _folded(np.maximum, wide, kernel, stride, dilation)
    pulled = like(wide, wide.shape)
    apart = all(s >= d * (k - 1) + 1 for k, s, d in zip(kernel, stride, dilation, strict=True))
    if not (apart and kernel == stride):  # else all that is written is written once, but behind the last windows
        pulled.fill(0)
    counts = out.shape[out.ndim - len(kernel) :]
    for i, (n, s) in enumerate(zip(counts, stride, strict=True)):
        pulled[(..., slice(n * s, None), *[slice(None)] * (len(kernel) - i - 1))] = 0
    left = None  # windows whose largest element has not come yet
    spoiled = np.isnan(out).any()
    for key in places(kernel, stride, dilation, counts):
        hit = np.equal(wide[(..., *key)], out)
        if spoiled:
            hit |= np.isnan(wide[(..., *key)])
        if left is None:
            left = np.logical_not(hit)
        else:
            np.logical_and(hit, left, out=hit)
            np.logical_xor(left, hit, out=left)
        part = pulled[(..., *key)]
        if apart:
            part[...] = kept(g, hit)
        else:
            np.add(part, kept(g, hit), out=part)
    return pulled[_inside(x.shape[x.ndim - len(kernel) :], padding)]


def _window_sum(x: Array, *, kernel: Shape, stride: Shape, padding: Padding, dilation: Shape) -> Array:
    return _folded(np.add, _padded(x, padding, 0), kernel, stride, dilation)


def _window_spread(g: Array, *, kernel: Shape, stride: Shape, padding: Padding, dilation: Shape, size: Shape) -> Array:
    for i, (k, s, d) in enumerate(zip(kernel, stride, dilation, strict=True)):
        axis, n = i - len(kernel), size[i] + sum(padding[i])
        if k == s == 1 and g.shape[axis] == n:
            continue
        shape = list(g.shape)
        shape[axis] = n
        wide = like(g, shape)
        wide.fill(0)
        for place in range(k):
            part = wide[_along(axis, place, s, d, g.shape[axis])]
            np.add(part, g, out=part)
        g = wide
    return g[_inside(size, padding)]


IMPLEMENTATIONS: dict[str, Implementation] = {
    "max_pool": _max_pool,
    "max_pool_pullback": _max_pool_pullback,
    "window_sum": _window_sum,
    "window_spread": _window_spread,
}
