"""What writes to elements: each chunk takes its part."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from adjoint.backend import Array
from adjoint.backends.dask.blocks import gathered, spec_of
from adjoint.backends.dask.indexing import counted, index, only_line
from adjoint.backends.dask.tasks import Added
from adjoint.primitives import TABLE, Key, index_shape, result_spec, slices

if TYPE_CHECKING:
    from adjoint.backends.dask import Dask


def _index_set(B: Dask, x: Array, value: Array, *arrays: Array, key: Key) -> Array:
    spec = [spec_of(a) for a in (x, value, *arrays)]
    result_spec(TABLE["index_set"], spec, {"key": key})
    if arrays:
        return gathered(B, TABLE["index_set"], [x, value, *arrays], {"key": key})
    return _assigned(B, x, value, key)


def _assigned(B: Dask, x: Array, value: Any, key: Key) -> Array:
    """A value at a key without arrays; each chunk takes its part."""
    shape = index_shape(x.shape, key=key)
    if 0 in shape:
        return x
    if hasattr(value, "chunks"):
        value = B.broadcast_to(value, shape=shape)
        value = value[(*[0 if entry is None else slice(None) for entry in key if not isinstance(entry, int)], ...)]
    out = B.da.Array(x.dask, x.name, x.chunks, meta=x._meta)
    out[tuple([entry for entry in slices(key) if entry is not None])] = value
    return out


def _index_add(B: Dask, x: Array, value: Array, *arrays: Array, key: Key) -> Array:
    spec = [spec_of(a) for a in (x, value, *arrays)]
    result_spec(TABLE["index_add"], spec, {"key": key})
    if not arrays:
        return _assigned(B, x, B.add(index(B, x, key=key), value), key)
    axis = only_line(key, arrays)
    if axis is None:
        return gathered(B, TABLE["index_add"], [x, value, *arrays], {"key": key})
    places = counted(B, arrays[0], x.shape[axis])
    shape = index_shape(x.shape, arrays[0].shape, key=key)
    value = B.broadcast_to(B.multiply(value, B.full(shape=(), value=1, dtype=x.dtype)), shape=shape)
    k, n = places.ndim, x.ndim
    rows = B.da.arange(x.shape[axis], chunks=(x.chunks[axis],))
    inner, outer = tuple(range(k)), tuple(range(k, k + n))
    named = (*outer[:axis], *inner, *outer[axis + 1 :])
    chunks = {**dict(zip(inner, places.chunks, strict=True)), **dict(zip(outer, x.chunks, strict=True))}
    value = B.beside(value, named, chunks)
    parts = B.blockwise(
        Added(axis),
        (*inner, *outer),
        [(value, named), (places, inner), (rows, (k + axis,))],
        x.dtype,
        terms=inner,
    )
    return B.add(x, B.sum(parts, axis=inner, keepdims=False) if inner else parts)


def _joining(name: str, join: str) -> Callable[..., Array]:
    def run(B: Dask, x: Array, value: Array, *arrays: Array, key: Key) -> Array:
        if arrays:
            return gathered(B, TABLE[name], [x, value, *arrays], {"key": key})
        return _assigned(B, x, getattr(B, join)(index(B, x, key=key), value), key)

    return run


IMPLEMENTATIONS: dict[str, Callable[..., Any]] = {
    "index_set": _index_set,
    "index_add": _index_add,
    "index_multiply": _joining("index_multiply", "multiply"),
    "index_max": _joining("index_max", "maximum"),
    "index_min": _joining("index_min", "minimum"),
}
