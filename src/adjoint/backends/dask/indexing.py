"""What picks elements. Places in arrays are checked by tasks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from adjoint.backend import Array
from adjoint.backends.dask.blocks import Labels, by_labels, gathered, source_of
from adjoint.backends.dask.creation import full
from adjoint.backends.dask.tasks import Joined, Places, Taken
from adjoint.primitives import ARRAY, TABLE, Key, index_shape, slices

if TYPE_CHECKING:
    from adjoint.backends.dask import Dask


def only_line(key: Key, arrays: Sequence[Array]) -> int | None:
    """The axis of a key's only array, if it takes all of the others."""
    alone = len(arrays) == 1 and all(entry is ARRAY or entry == slice(None) for entry in key)
    return next(i for i, entry in enumerate(key) if entry is ARRAY) if alone else None


def index(B: Dask, x: Array, *arrays: Array, key: Key) -> Array:
    shape = index_shape(x.shape, *[a.shape for a in arrays], key=key)
    source = source_of(x)
    if source.size == 1 and source is not x and not arrays:
        return B.spread(source.reshape(()), shape)
    if 0 in shape and not arrays:
        return full(B, shape=shape, value=0, dtype=x.dtype)
    if not arrays:
        return x[slices(key)]
    axis = only_line(key, arrays)
    if axis is None:
        return gathered(B, TABLE["index"], [x, *arrays], {"key": key})
    k, n = arrays[0].ndim, x.ndim
    inner, outer = tuple(range(k)), tuple(range(k, k + n))
    named = (*outer[:axis], *inner, *outer[axis + 1 :])
    if x.numblocks[axis] == 1:
        labels: list[Labels] = [(*outer[:axis], None, *outer[axis + 1 :]), inner]
        return by_labels(B, TABLE["index"], [x, arrays[0]], {"key": key}, labels, lambda _: named)
    places = counted(B, arrays[0], x.shape[axis])
    rows = B.da.arange(x.shape[axis], chunks=(x.chunks[axis],))
    found = B.blockwise(
        Taken(axis), (*inner, *outer), [(x, outer), (places, inner), (rows, (k + axis,))], np.dtype(object)
    )
    return B.blockwise(Joined(axis), named, [(places, inner), (found, (*inner, *outer))], x.dtype)


def counted(B: Dask, places: Array, size: int) -> Array:
    """Places from the front, checked when their task runs."""
    labels = tuple(range(places.ndim))
    return B.blockwise(Places(size), labels, [(places, labels)], places.dtype)


IMPLEMENTATIONS: dict[str, Callable[..., Any]] = {
    "index": index,
}
