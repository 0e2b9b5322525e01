"""Indexing on NumPy."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from adjoint.backend import Array, Implementation
from adjoint.primitives import ARRAY, Key, slices

_SMALL = 1024  # elements: below, the detour costs more than it saves


def filled(key: Key, arrays: tuple[Array, ...]) -> Any:
    """The index key with its arrays in their places."""
    rest = iter(arrays)
    return tuple([next(rest) if entry is ARRAY else entry for entry in slices(key)])


def _index(x: Array, *arrays: Array, key: Key) -> Array:
    if not arrays:
        return x[slices(key)]
    if len(arrays) == 1 and key[-1] is ARRAY and all(_whole(e, n) for e, n in zip(key[:-1], x.shape, strict=False)):
        return x.take(arrays[0], len(key) - 1)  # which is faster than the general way
    return x[filled(key, arrays)]


def _whole(entry: Any, size: int) -> bool:
    if entry.__class__ is not slice:
        return bool(entry == range(size))
    return entry.start in (None, 0) and entry.stop in (None, size) and entry.step in (None, 1)


def joining(join: np.ufunc) -> Implementation:
    """Elements at a key joined with a value, in a copy."""
    return lambda x, value, *arrays, key: combined(join, np.array(x), value, arrays, key)


def combined(join: np.ufunc, x: Array, value: Array, arrays: tuple[Array, ...], key: Key) -> Array:
    """The elements at a key joined with a value, once for each time that a place is named; writes into `x`.

    NumPy does it fast for one axis and one array of places only, so the leading axes that all arrays point into are
    made one.
    """
    flat = _flat(x, value, arrays) if arrays and len(arrays) == len(key) and x.ndim > 1 else None
    if flat is None:
        join.at(x, arrays[0] if x.ndim == len(arrays) == len(key) == 1 else filled(key, arrays), value)
    else:
        join.at(x.reshape(-1), *flat)
    return x


def _flat(x: Array, value: Array, arrays: tuple[Array, ...]) -> tuple[Array, Array] | None:
    """Where elements at leading places stand in the flat `x`, and the value for each; None where it is no gain."""
    sizes, inner = x.shape[: len(arrays)], x.shape[len(arrays) :]
    common = np.broadcast_shapes(*[a.shape for a in arrays])
    if math.prod(common) * math.prod(inner) < _SMALL or not x.flags.c_contiguous:
        return None
    places: Array = 0
    for a, n in zip(arrays, sizes, strict=True):
        low = a.min()
        if low < -n or a.max() >= n:
            return None  # an error that NumPy explains
        places = places * n + (np.where(a < 0, a + n, a) if low < 0 else a)
    if inner:
        size = math.prod(inner)
        places = (places * size).reshape(*common, *[1] * len(inner)) + np.arange(size).reshape(inner)
    return places.reshape(-1), np.broadcast_to(value, (*common, *inner)).reshape(-1)


def _take_along_axis(x: Array, indices: Array, *, axis: int) -> Array:
    return np.take_along_axis(x, indices, axis=axis)


def _nonzero(x: Array) -> Array:
    return np.stack(np.nonzero(x)).astype(np.int64, copy=False)


IMPLEMENTATIONS: dict[str, Implementation] = {
    "index": _index,
    "take_along_axis": _take_along_axis,
    "nonzero": _nonzero,
}

INTO: dict[str, Implementation] = {}
