"""What writes to elements."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from adjoint.backend import Array
from adjoint.backends import needed
from adjoint.backends.array_api.elementwise import as_arrays
from adjoint.backends.array_api.indexing import basic, flat_places, index
from adjoint.primitives import Key, index_shape


def at_set(x: Array, key: Any, value: Array) -> Array:
    """An array that nobody else holds with a value at a key, also where a library's arrays never change."""
    return needed("array_api_extra", "array-api").at(x, key).set(value)


def _assigned(xp: Any, x: Array, value: Array, key: Key, *, add: bool) -> Array:
    """A copy of `x` with a value written or added at a key without arrays."""
    out = xp.asarray(x, copy=True)
    if not isinstance(value, (int, float, complex)):
        value = xp.broadcast_to(value, index_shape(x.shape, key=key))
        value = value[(*[0 if entry is None else slice(None) for entry in key if not isinstance(entry, int)], ...)]
    places = tuple(entry for entry in basic(x.shape, key) if entry is not None)
    if add:
        value = (out[places] | value) if out.dtype == xp.bool else out[places] + value
    return at_set(out, places, value)


def index_set(xp: Any, x: Array, value: Array, *arrays: Array, key: Key) -> Array:
    if not arrays:
        return _assigned(xp, x, value, key, add=False)
    flat, values, order, first, last = _writers(xp, x, value, arrays, key)
    if not order.shape[0]:
        return x
    latest = xp.take(order, xp.where(last > first, last - 1, 0), axis=0)
    return xp.reshape(xp.where(last > first, xp.take(values, latest, axis=0), flat), x.shape)


def index_add(xp: Any, x: Array, value: Array, *arrays: Array, key: Key) -> Array:
    if not arrays:
        return _assigned(xp, x, value, key, add=True)
    return _joined(xp, xp.logical_or if x.dtype == xp.bool else xp.add, x, value, arrays, key)


def _joining(name: str) -> Callable[..., Array]:
    """Elements at a key joined with a value by a function of two numbers."""

    def run(xp: Any, x: Array, value: Array, *arrays: Array, key: Key) -> Array:
        join = getattr(xp, name)
        if arrays:
            return _joined(xp, join, x, value, arrays, key)
        part = index(xp, x, key=key)
        return _assigned(xp, x, join(*as_arrays(xp, part, value)), key, add=False)

    return run


def _joined(xp: Any, join: Any, x: Array, value: Array, arrays: tuple[Array, ...], key: Key) -> Array:
    flat, values, order, first, last = _writers(xp, x, value, arrays, key)
    if not order.shape[0]:
        return x
    for rank in range(int(xp.max(last - first))):  # once more for each time that one place is named
        hit = first + rank < last
        joined = xp.take(values, xp.take(order, xp.where(hit, first + rank, 0), axis=0), axis=0)
        flat = xp.where(hit, join(flat, joined), flat)
    return xp.reshape(flat, x.shape)


def _writers(xp: Any, x: Array, value: Array, arrays: tuple[Array, ...], key: Key) -> tuple[Array, ...]:
    """What a scatter needs, which the standard lacks: the writers sorted by place, and each place's run of them.

    Flat `x`, flat values, the writers' numbers by place and then in order, and where the run of each
    place begins and ends in that.
    """
    places, shape = flat_places(xp, x.shape, arrays, key)
    x, value = as_arrays(xp, x, value)
    values = xp.reshape(xp.broadcast_to(value, shape), (-1,))
    order = xp.argsort(places, stable=True)
    ordered = xp.take(places, order, axis=0)
    everywhere = xp.arange(math.prod(x.shape), dtype=xp.int64)
    first, last = (xp.searchsorted(ordered, everywhere, side=side) for side in ("left", "right"))
    return xp.reshape(x, (-1,)), values, order, first, last


# called with the namespace
IMPLEMENTATIONS: dict[str, Callable[..., Any]] = {
    "index_set": index_set,
    "index_add": index_add,
    "index_multiply": _joining("multiply"),
    "index_max": _joining("maximum"),
    "index_min": _joining("minimum"),
}
