"""Indexing, sorting and searching on NumPy."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from adjoint.backend import Array, Implementation
from adjoint.backends.searching import searchsorted_lines
from adjoint.primitives import ARRAY, Key


def _filled(key: Key, arrays: tuple[Array, ...]) -> Any:
    """The index key with its arrays in their places."""
    if not arrays:
        return key
    rest = iter(arrays)
    return tuple(next(rest) if entry is ARRAY else entry for entry in key)


def _index(x: Array, *arrays: Array, key: Key) -> Array:
    return x[_filled(key, arrays)]


def _index_set(x: Array, value: Array, *arrays: Array, key: Key) -> Array:
    return _index_set_into(np.array(x), value, *arrays, key=key)


def _index_set_into(x: Array, value: Array, *arrays: Array, key: Key) -> Array:
    x[_filled(key, arrays)] = value
    return x


def _index_add(x: Array, value: Array, *arrays: Array, key: Key) -> Array:
    return _index_add_into(np.array(x), value, *arrays, key=key)


def _index_add_into(x: Array, value: Array, *arrays: Array, key: Key) -> Array:
    if arrays:
        np.add.at(x, _filled(key, arrays), value)
        return x
    view = x[key]
    if view.__class__ is np.ndarray:
        np.add(view, value, out=view)
    else:  # a single element
        x[key] = view + value
    return x


def _take_along_axis(x: Array, indices: Array, *, axis: int) -> Array:
    return np.take_along_axis(x, indices, axis=axis)


def _sort(x: Array, *, axis: int, descending: bool) -> Array:
    out = np.sort(x, axis=axis)
    return np.flip(out, axis=axis) if descending else out


def _argsort(x: Array, *, axis: int, descending: bool) -> Array:
    if not descending:
        return np.argsort(x, axis=axis, kind="stable").astype(np.int64, copy=False)
    backwards = np.argsort(np.flip(x, axis=axis), axis=axis, kind="stable")
    return np.flip(x.shape[axis] - 1 - backwards, axis=axis)


def _topk(x: Array, *, k: int, axis: int, largest: bool) -> tuple[Array, Array]:
    n = x.shape[axis]
    if k == 0:
        places = np.zeros([0 if i == axis else m for i, m in enumerate(x.shape)], dtype=np.int64)
    elif largest:
        places = np.take(np.argpartition(x, n - k, axis=axis), np.arange(n - k, n), axis=axis)
    else:
        places = np.take(np.argpartition(x, k - 1, axis=axis), np.arange(k), axis=axis)
    values = np.take_along_axis(x, places, axis=axis)
    order = _argsort(values, axis=axis, descending=largest)
    return np.take_along_axis(values, order, axis=axis), np.take_along_axis(places, order, axis=axis)


def _searchsorted(x: Array, values: Array, *, side: Literal["left", "right"]) -> Array:
    if x.ndim == 1:
        return np.asarray(np.searchsorted(x, values, side=side)).astype(np.int64, copy=False)
    return searchsorted_lines(np, x, values, side=side)


def _nonzero(x: Array) -> Array:
    return np.stack(np.nonzero(x)).astype(np.int64, copy=False)


IMPLEMENTATIONS: dict[str, Implementation] = {
    "index": _index,
    "index_set": _index_set,
    "index_add": _index_add,
    "take_along_axis": _take_along_axis,
    "sort": _sort,
    "argsort": _argsort,
    "topk": _topk,
    "nonzero": _nonzero,
    "searchsorted": _searchsorted,
}

INTO: dict[str, Implementation] = {"index_set": _index_set_into, "index_add": _index_add_into}
