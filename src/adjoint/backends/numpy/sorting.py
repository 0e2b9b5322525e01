"""Sorting and searching on NumPy.

NumPy sorts numbers with vector instructions, and finds a stable order of them without: that is ten times slower. So the
order is found by sorting numbers, too.
"""

from __future__ import annotations

from typing import Literal

import numpy as np

from adjoint.backend import Array, Implementation

_SMALL = 1024  # elements: below, NumPy's own stable order is as fast
COUNTED = 2048  # comparisons of each element with its line: up to here machine code sorts so, and equal ones keep order


def _sort(x: Array, *, axis: int, descending: bool) -> Array:
    out = np.sort(x, axis=axis)
    return np.flip(out, axis=axis) if descending else out


def _argsort(x: Array, *, axis: int, descending: bool) -> Array:
    """Equal elements, and nans, keep their order; nans are the largest."""
    if x.size < _SMALL or (x.dtype.itemsize < 4 and x.dtype.kind != "f"):  # short integers it sorts by digits
        return _plain(x, axis, descending)
    lines = np.moveaxis(x, axis, -1)
    if x.dtype.itemsize <= 4 and lines.shape[-1] < 2**31:
        order = _by_keys(_ranked(lines), descending)
    elif descending:
        order = np.flip(lines.shape[-1] - 1 - _by_ties(np.flip(lines, axis=-1)), axis=-1)
    else:
        order = _by_ties(lines)
    return np.moveaxis(order, -1, axis)


def _plain(x: Array, axis: int, descending: bool) -> Array:
    if not descending:
        return np.argsort(x, axis=axis, kind="stable").astype(np.int64, copy=False)
    backwards = np.argsort(np.flip(x, axis=axis), axis=axis, kind="stable")
    return np.flip(x.shape[axis] - 1 - backwards, axis=axis)


def _ranked(x: Array) -> Array:
    """Integers of 32 bits, as int64, in the order of the elements.

    Floating numbers of one sign are in the order of their bits, negative ones in the reverse: IEEE 754, 5.10.
    """
    if x.dtype.kind != "f":
        return np.subtract(x, 2**31 if x.dtype.kind == "u" else 0, dtype=np.int64)
    x = x.astype(np.float32) + np.float32(0)  # of two zeros none is less: adding zero takes the sign away
    bits = x.view(np.int32)
    ranks = bits ^ ((bits >> 31) & 0x7FFFFFFF)
    ranks[np.isnan(x)] = 0x7FFFFFFF
    return ranks.astype(np.int64)


def _by_keys(ranks: Array, descending: bool) -> Array:
    """Each element's rank and its place in one integer, sorted: ties are in the order of their places."""
    if descending:
        np.invert(ranks, out=ranks)
    ranks <<= 32
    ranks |= np.arange(ranks.shape[-1])
    ranks.sort(axis=-1)
    ranks &= 0xFFFFFFFF
    return ranks


def _by_ties(x: Array) -> Array:
    """Some order, and then that of the places within each run of equal elements."""
    order = np.argsort(x, axis=-1).astype(np.int64, copy=False)
    values = np.take_along_axis(x, order, axis=-1)
    former, latter = values[..., :-1], values[..., 1:]
    tied = former == latter
    if x.dtype.kind == "f":
        tied |= np.isnan(former)  # then all that follow are
    if tied.any():
        runs = np.zeros(x.shape, dtype=np.int64)
        np.cumsum(~tied, axis=-1, out=runs[..., 1:])
        runs *= x.shape[-1]
        order += runs
        order.sort(axis=-1)
        order -= runs
    return order


def _topk(x: Array, *, k: int, axis: int, largest: bool) -> tuple[Array, Array]:
    n = x.shape[axis]
    if k == n or x.size * n <= COUNTED:
        order = _argsort(x, axis=axis, descending=largest)
        order = order if k == n else order[(*[slice(None)] * axis, slice(0, k))]
        return np.take_along_axis(x, order, axis=axis), order
    if k == 0:
        places = np.zeros([0 if i == axis else m for i, m in enumerate(x.shape)], dtype=np.int64)
    elif largest:
        places = np.take(np.argpartition(x, n - k, axis=axis), np.arange(n - k, n), axis=axis)
    else:
        places = np.take(np.argpartition(x, k - 1, axis=axis), np.arange(k), axis=axis)
    values = np.take_along_axis(x, places, axis=axis)
    order = _argsort(values, axis=axis, descending=largest)
    return np.take_along_axis(values, order, axis=axis), np.take_along_axis(places, order, axis=axis)


def _rank(x: Array) -> Array:
    """The place that each element has once its line is sorted; equal elements keep their order."""
    return np.argsort(np.argsort(x, axis=-1, stable=True), axis=-1, stable=True)


def _searchsorted_lines(x: Array, values: Array, *, side: str) -> Array:
    """Where each line of `values` goes in the line of `x` beside it: its rank among both, less that among its own."""
    if side == "left":  # values first: they come before what equals them
        ranks = _rank(np.concatenate([values, x], axis=-1))[..., : values.shape[-1]]
    else:
        ranks = _rank(np.concatenate([x, values], axis=-1))[..., x.shape[-1] :]
    return (ranks - _rank(values)).astype(np.int64, copy=False)


def _searchsorted(x: Array, values: Array, *, side: Literal["left", "right"]) -> Array:
    if x.ndim == 1:
        return np.asarray(np.searchsorted(x, values, side=side)).astype(np.int64, copy=False)
    return _searchsorted_lines(x, values, side=side)


IMPLEMENTATIONS: dict[str, Implementation] = {
    "sort": _sort,
    "argsort": _argsort,
    "topk": _topk,
    "searchsorted": _searchsorted,
}
