"""Values put at places: set, added, multiplied or compared."""

from __future__ import annotations

import numpy as np

from adjoint.backend import Array, Implementation
from adjoint.backends.numpy.indexing import combined, filled, joining
from adjoint.primitives import Key, slices


def _index_set(x: Array, value: Array, *arrays: Array, key: Key) -> Array:
    return _index_set_into(np.array(x), value, *arrays, key=key)


def _index_set_into(x: Array, value: Array, *arrays: Array, key: Key) -> Array:
    x = _writeable(x)
    x[filled(key, arrays) if arrays else slices(key)] = value
    return x


def _index_add(x: Array, value: Array, *arrays: Array, key: Key) -> Array:
    return _index_add_into(np.array(x), value, *arrays, key=key)


def _index_add_into(x: Array, value: Array, *arrays: Array, key: Key) -> Array:
    x = _writeable(x)
    if arrays:
        return combined(np.add, x, value, arrays, key)
    key = slices(key)
    view = x[key]
    if view.__class__ is np.ndarray:
        np.add(view, value, out=view)
    else:  # a single element
        x[key] = view + value
    return x


def _writeable(x: Array) -> Array:
    """NumPy's functions give scalars for arrays without axes, and what is written into a view of one is lost."""
    return x if x.__class__ is np.ndarray else np.array(x)


IMPLEMENTATIONS: dict[str, Implementation] = {
    "index_multiply": joining(np.multiply),
    "index_max": joining(np.maximum),
    "index_min": joining(np.minimum),
    "index_set": _index_set,
    "index_add": _index_add,
}


INTO: dict[str, Implementation] = {
    "index_set": _index_set_into,
    "index_add": _index_add_into,
}
