"""What picks elements. The standard has no keys that mix integer arrays with slices."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from adjoint.backend import Array
from adjoint.primitives import ARRAY, Key, Shape, adjacent, broadcast_shapes, index_shape, slices


def basic(shape: Shape, key: Key) -> tuple[Any, ...]:
    """A key without arrays in the form that the standard promises: all axes named, bounds in range."""
    sizes = iter(shape)
    out: list[Any] = []
    for entry in slices(key):
        if entry is None:
            out.append(None)
            continue
        size = next(sizes)
        if isinstance(entry, slice):
            places = range(*entry.indices(size))
            if not places:
                entry = slice(0, 0, 1)
            else:
                stop = places[-1] + (1 if places.step > 0 else -1)
                entry = slice(places[0], None if stop < 0 else stop, places.step)
        out.append(entry)
    return (*out, *[slice(None)] * len(list(sizes)))


def flat_places(xp: Any, shape: Shape, arrays: tuple[Array, ...], key: Key) -> tuple[Array, Shape]:
    """Where the elements of `x[key]` stand in the flattened `x`, flat, and the shape of `x[key]`.

    The standard has no keys that mix integer arrays with slices; sums of strides say the same.
    """
    target = index_shape(shape, *[a.shape for a in arrays], key=key)
    common = broadcast_shapes(*[a.shape for a in arrays])
    block = next(i for i, entry in enumerate(key) if entry is ARRAY or isinstance(entry, int)) if adjacent(key) else 0
    pending, rest = (iter(arrays), [i for i in range(len(target)) if not block <= i < block + len(common)])
    axes = iter(rest)  # the result's axes that slices and None make
    total = xp.zeros(target, dtype=xp.int64)
    axis = 0
    for entry in [*slices(key), *[slice(None)] * (len(shape) - sum(entry is not None for entry in key))]:
        if entry is None:
            next(axes)
            continue
        size, stride = shape[axis], math.prod(shape[axis + 1 :])
        axis += 1
        if entry is ARRAY:
            places = xp.astype(next(pending), xp.int64)
            places = xp.where(places < 0, places + size, places)
            after = len(target) - block - len(common)
            places = xp.reshape(places, (*places.shape, *(1,) * after))
        elif isinstance(entry, slice):
            chosen, at = range(*entry.indices(size)), next(axes)
            places = xp.arange(chosen.start, chosen.start + len(chosen) * chosen.step, chosen.step, dtype=xp.int64)
            places = xp.reshape(places, (len(chosen), *(1,) * (len(target) - at - 1)))
        else:
            places = xp.asarray(entry % size, dtype=xp.int64)
        total = total + places * stride
    return xp.reshape(total, (-1,)), target


def index(xp: Any, x: Array, *arrays: Array, key: Key) -> Array:
    if not arrays:
        return x[basic(x.shape, key)]
    places, shape = flat_places(xp, x.shape, arrays, key)
    return xp.reshape(xp.take(xp.reshape(x, (-1,)), places, axis=0), shape)


def _nonzero(xp: Any, x: Array) -> Array:
    return xp.astype(xp.stack(xp.nonzero(x)), xp.int64, copy=False)


# called with the namespace
IMPLEMENTATIONS: dict[str, Callable[..., Any]] = {
    "index": index,
    "nonzero": _nonzero,
}
