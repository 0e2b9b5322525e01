"""Derivatives of windows that move over the last axes of arrays.

Sums over windows, and windows filled with one value and added up, are transposes of each other.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from typing import Any

from adjoint.primitives import ARRAY, INDEX
from adjoint.rules.records import Composed, Record
from adjoint.rules.shape import crop


def _padded(B: Any, x: Any, padding: Any, value: Any) -> Any:
    if not any(map(any, padding)):
        return x
    return B.pad(x, widths=((0, 0),) * (len(x.shape) - len(padding)) + tuple(padding), value=value)


def places(kernel: Any, stride: Any, dilation: Any, counts: Any) -> Iterator[tuple[Any, ...]]:
    """For each place in a window the key of the elements that all windows have there."""
    for place in itertools.product(*map(range, kernel)):
        yield tuple(
            [
                slice(i * d, i * d + s * (n - 1) + 1, s)
                for i, s, d, n in zip(place, stride, dilation, counts, strict=True)
            ]
        )


def _leading(x: Any, axes: int) -> tuple[Any, ...]:
    return (slice(None),) * (len(x.shape) - axes)


def _window_sum_definition(B: Any, x: Any, *, kernel: Any, stride: Any, padding: Any, dilation: Any) -> Any:
    counts = _counts(x, kernel, stride, padding, dilation)
    before, x = _leading(x, len(kernel)), _padded(B, x, padding, 0)
    total = None
    for key in places(kernel, stride, dilation, counts):
        part = B.index(x, key=(*before, *key))
        total = part if total is None else B.add(total, part)
    return total


def _window_spread_definition(
    B: Any, g: Any, *, kernel: Any, stride: Any, padding: Any, dilation: Any, size: Any
) -> Any:
    lead, counts = tuple(g.shape[: len(g.shape) - len(kernel)]), g.shape[len(g.shape) - len(kernel) :]
    wide = (*lead, *[n + sum(p) for n, p in zip(size, padding, strict=True)])
    out = B.full(shape=wide, value=0, dtype=B.dtype_of(g))
    before = _leading(g, len(kernel))
    for key in places(kernel, stride, dilation, counts):
        out = B.index_add(out, g, key=(*before, *key))
    return crop(B, out, (*lead, *size), ((0, 0),) * len(lead) + tuple(padding))


def _counts(x: Any, kernel: Any, stride: Any, padding: Any, dilation: Any) -> Any:
    shape = x.shape[len(x.shape) - len(kernel) :]
    return tuple(
        (n + sum(p) - d * (k - 1) - 1) // s + 1
        for n, k, s, p, d in zip(shape, kernel, stride, padding, dilation, strict=True)
    )


def _windows(B: Any, x: Any, kernel: Any, stride: Any, padding: Any, dilation: Any) -> tuple[Any, Any, Any]:
    """The padded array with its last axes made one; where in that each window's elements are; and the windows.

    Places are (windows, elements of a window).
    """
    axes = len(kernel)
    counts = _counts(x, kernel, stride, padding, dilation)
    x = _padded(B, x, padding, -math.inf)
    lead, sizes = tuple(x.shape[: len(x.shape) - axes]), x.shape[len(x.shape) - axes :]
    corners, inside = _grid(B, counts, stride, sizes), _grid(B, kernel, dilation, sizes)
    places = B.add(B.expand_dims(corners, axis=(1,)), B.expand_dims(inside, axis=(0,)))
    flat = B.reshape(x, shape=(*lead, math.prod(sizes)))
    return flat, places, B.index(flat, places, key=(*[slice(None)] * len(lead), ARRAY))


def _grid(B: Any, counts: Any, steps: Any, sizes: Any) -> Any:
    """The flat places of a grid's points in an array of these sizes, in order."""
    total = None
    for i, (n, step) in enumerate(zip(counts, steps, strict=True)):
        line = B.multiply(B.arange(start=0, stop=n, step=1, dtype=INDEX), step * math.prod(sizes[i + 1 :]))
        line = B.reshape(line, shape=tuple(n if j == i else 1 for j in range(len(counts))))
        total = line if total is None else B.add(total, line)
    return B.reshape(total, shape=(math.prod(counts),))


def _best(B: Any, windows: Any, places: Any) -> Any:
    """Where each window has its largest element, the first of equal ones: (..., windows)."""
    chosen = B.argmax(windows, axis=len(windows.shape) - 1, keepdims=False)
    count, size = places.shape
    starts = B.multiply(B.arange(start=0, stop=count, step=1, dtype=INDEX), size)
    return B.index(B.reshape(places, shape=(count * size,)), B.add(chosen, starts), key=(ARRAY,))


def _max_pool_definition(B: Any, x: Any, *, kernel: Any, stride: Any, padding: Any, dilation: Any) -> Any:
    counts = _counts(x, kernel, stride, padding, dilation)
    flat, places, windows = _windows(B, x, kernel, stride, padding, dilation)
    last = len(flat.shape) - 1
    picked = B.take_along_axis(flat, _best(B, windows, places), axis=last)
    return B.reshape(picked, shape=(*flat.shape[:last], *counts))


def _max_pool_pullback_definition(
    B: Any, g: Any, x: Any, *, kernel: Any, stride: Any, padding: Any, dilation: Any
) -> Any:
    flat, places, windows = _windows(B, B.detach(x), kernel, stride, padding, dilation)
    best = _best(B, windows, places)
    lead, count = tuple(flat.shape[:-1]), math.prod(flat.shape[:-1])
    rows = B.reshape(B.arange(start=0, stop=count, step=1, dtype=INDEX), shape=(count, 1))
    zeros = B.full(shape=(count, flat.shape[-1]), value=0, dtype=B.dtype_of(g))
    shape = (count, places.shape[0])
    spread = B.index_add(zeros, B.reshape(g, shape=shape), rows, B.reshape(best, shape=shape), key=(ARRAY, ARRAY))
    sizes = tuple(x.shape[len(lead) :])
    wide = tuple(n + sum(p) for n, p in zip(sizes, padding, strict=True))
    return crop(B, B.reshape(spread, shape=(*lead, *wide)), (*lead, *sizes), ((0, 0),) * len(lead) + tuple(padding))


def _how(kernel: Any, stride: Any, padding: Any, dilation: Any) -> dict[str, Any]:
    return {"kernel": kernel, "stride": stride, "padding": padding, "dilation": dilation}


RECORDS: dict[str, Record] = {
    "max_pool": Composed(
        _max_pool_definition,
        x=lambda B, g, x, kernel, stride, padding, dilation: B.max_pool_pullback(
            g, x, **_how(kernel, stride, padding, dilation)
        ),
    ),
    "max_pool_pullback": Composed(_max_pool_pullback_definition),
    "window_sum": Composed(
        _window_sum_definition,
        x=lambda B, g, x_shape, kernel, stride, padding, dilation: B.window_spread(
            g, size=tuple(x_shape[len(x_shape) - len(kernel) :]), **_how(kernel, stride, padding, dilation)
        ),
        pushforward=lambda B, tangents, kernel, stride, padding, dilation: B.window_sum(
            tangents[0], **_how(kernel, stride, padding, dilation)
        ),
    ),
    "window_spread": Composed(
        _window_spread_definition,
        g=lambda B, c, kernel, stride, padding, dilation: B.window_sum(c, **_how(kernel, stride, padding, dilation)),
        pushforward=lambda B, tangents, kernel, stride, padding, dilation, size: B.window_spread(
            tangents[0], size=size, **_how(kernel, stride, padding, dilation)
        ),
    ),
}
