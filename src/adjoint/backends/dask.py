"""The leaf backend over Dask's arrays: a graph of tasks over chunks, which runs when values are asked for.

What a primitive does to chunks follows from its kind. Tasks run the NumPy leaf's implementations, so values, data types
and promotion are NumPy's. What has no way chunk by chunk is one task over whole operands: so nothing is missing.
"""

from __future__ import annotations

import itertools
import math
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from adjoint import dtypes, errors
from adjoint.backend import Array, Backend, Implementation, LeafBackend
from adjoint.backends import composed, needed, numpy
from adjoint.backends.numpy import NumPy
from adjoint.backends.tasks import Added, Joined, Part, Picked, Places, Stacked, Task, Verified
from adjoint.concrete import Fault, Lazy, Test
from adjoint.primitives import (
    ARRAY,
    ELEMENTWISE,
    INDEX,
    LINALG,
    TABLE,
    DType,
    Key,
    Primitive,
    Shape,
    Spec,
    index_shape,
    result_spec,
    slices,
)
from adjoint.rules import RECORDS

_FRESH = 10_000  # labels from here on are of one array alone
Labels = tuple[int | None, ...]  # an axis's number among those that stay in chunks, None for one that is needed whole


class Dask(Lazy, LeafBackend):
    """Dask's arrays, in chunks: `"auto"`, a number of elements along each axis, or bytes such as `"64MiB"`.

    Chunks are those of what is made here; Dask's own arrays come in with theirs. Forward and backward only build a
    graph of tasks. `compute()`, `numpy()`, `item()` and `bool()` run it, on Dask's current scheduler or cluster.

    Needs `pip install 'adjoint[dask]'`. Raises DeviceError where Dask is not installed, or for other chunks.

    >>> import adjoint as ad
    >>> x = ad.ones(5, device=ad.Dask(chunks=2))  # doctest: +SKIP
    >>> x.sum()  # doctest: +SKIP
    Tensor(shape=(), chunks=(), dtype=float32, device=dask[chunks=2])
    """

    def __init__(self, chunks: int | str = "auto") -> None:
        super().__init__()
        self.da = needed("dask.array", "dask")
        self.dask = needed("dask", "dask")
        self.chunks = chunks.lower() if isinstance(chunks, str) else chunks  # "64MiB" as names have it
        try:
            if isinstance(chunks, bool) or not isinstance(chunks, (int, str)) or chunks in (0, -1):
                raise ValueError("expected a positive integer or a string")
            self.divided((8,), np.dtype("f4"))
        except (ValueError, TypeError) as error:
            raise errors.DeviceError(
                f"Dask: chunks are 'auto', a number of elements, or bytes such as '64MiB'; received {chunks!r}: {error}"
            ) from error

    def configuration(self) -> tuple[Any, ...]:
        return (self.chunks,)

    # --- between arrays and the outside ---

    @classmethod
    def of(cls, value: Any) -> Dask | None:
        array = sys.modules.get("dask.array")
        return cls() if array is not None and isinstance(value, array.Array) else None

    def dtype_of(self, array: Array) -> DType:
        return array.dtype  # type: ignore[no-any-return]

    def from_numpy(self, values: np.ndarray[Any, Any], *, copy: bool) -> Array:
        values = np.array(values) if copy else np.asarray(values)
        return self.da.from_array(values, chunks=self.divided(values.shape, values.dtype), name=False)

    def from_native(self, value: Any) -> Array | None:
        if not isinstance(value, self.da.Array):
            return None
        if any(math.isnan(n) for n in value.shape):
            raise errors.ShapeError(
                f"asarray: a Dask array of unknown shape {value.shape}; its compute_chunk_sizes() finds it"
            )
        dtypes.refuse_masked(value._meta, "asarray")
        if not isinstance(value._meta, (np.ndarray, np.generic)):
            kind = type(value._meta)
            raise errors.DtypeError(
                f"asarray: a Dask array whose chunks are {kind.__module__}.{kind.__name__}, and tasks here are NumPy's "
                "functions; make them NumPy's arrays first, with map_blocks"
            )
        if value.dtype.kind not in "biufc":
            raise errors.DtypeError(f"asarray: a Dask array of {value.dtype}; convert it to numbers first")
        dtype = dtypes.as_dtype(value.dtype)
        if not value.dtype.isnative:
            value = value.astype(dtype)
        if any(0 in sizes and len(sizes) > 1 for sizes in value.chunks):  # a filter leaves some: they have no maximum
            value = value.rechunk(tuple([tuple([n for n in sizes if n]) or (0,) for sizes in value.chunks]))
        meta = np.empty((0,) * value.ndim, dtype)
        return self.da.Array(value.dask, value.name, value.chunks, meta=meta)  # of its own: theirs may be assigned to

    def transfer(self, array: Array, source: Backend) -> Array:
        """Of Dask's own chunks others are made, without computing; `"auto"` leaves them as they are."""
        if not isinstance(source, Dask):
            return super().transfer(array, source)
        return array if self.chunks == "auto" else array.rechunk(self.divided(array.shape, array.dtype))

    def to_numpy(self, array: Array) -> np.ndarray[Any, Any]:
        return self.computed([array])[0]

    def computed(self, arrays: Sequence[Array]) -> list[np.ndarray[Any, Any]]:
        return [np.asarray(values) for values in self.dask.compute(*arrays)]

    def persisted(self, arrays: Sequence[Array]) -> list[Array]:
        return list(self.dask.persist(*arrays))

    def is_concrete(self, array: Array) -> bool:
        return False

    def checked(self, array: Array, test: Test, error: Fault) -> Array:
        labels = tuple(range(array.ndim))
        return self.blockwise(Verified(test, error), labels, [(array, labels)], array.dtype)

    def summary(self, array: Array) -> str:
        return f"shape={tuple(array.shape)}, chunks={_shown(array.chunks)}"

    # --- arrays of tasks ---

    def divided(self, shape: Shape, dtype: DType, known: Sequence[Any] | None = None) -> tuple[tuple[int, ...], ...]:
        """The chunks of an array that is made here; `known` are those that are given, None for other axes."""
        chunks = tuple([self.chunks if c is None else c for c in (known or [None] * len(shape))])
        return self.da.core.normalize_chunks(chunks, shape=shape, dtype=dtype)  # type: ignore[no-any-return]

    def blockwise(
        self,
        run: Callable[..., Any],
        labels: Labels,
        operands: Sequence[tuple[Any, Labels | None]],
        dtype: Any,
        *,
        new_axes: Mapping[int, int] | None = None,
        terms: Sequence[int] = (),
    ) -> Array:
        """An array whose blocks are `run` of the operands' blocks; axes of one label go together.

        `new_axes` are the sizes of axes that only the result has; those in `terms` have one element for each block.
        """
        pairs = [part for pair in operands for part in pair]
        chunks, arrays = self.da.core.unify_chunks(*pairs, warn=False)
        pairs[::2] = arrays
        chunks = {a: (1,) * len(chunks[a]) if a in terms else chunks[a] for a in labels if a in chunks}
        meta = np.empty((0,) * len(labels), dtype)
        name = f"{run}-{os.urandom(16).hex()}"
        return self.da.blockwise(
            run, labels, *pairs, name=name, meta=meta, dtype=dtype, new_axes=new_axes, adjust_chunks=chunks,
            align_arrays=False,
        )  # fmt: skip

    def spread(self, x: Array, shape: Shape, chunks: Sequence[Any] | None = None) -> Array:
        """`x` broadcast to a shape. What follows may take `x` in its place, whose chunks are no matter then."""
        x = _source(x)
        if tuple(x.shape) == shape:
            return x
        old = (*[None] * (len(shape) - x.ndim), *[c if n > 1 else None for n, c in zip(x.shape, x.chunks, strict=True)])
        wanted = [c or w for c, w in zip(old, chunks or [None] * len(shape), strict=True)]
        out = self.da.broadcast_to(x, shape, chunks=self.divided(shape, x.dtype, wanted))
        out.spread_of = x
        return out

    def beside(self, x: Array, labels: Labels, chunks: Mapping[Any, Any]) -> Array:
        """What was broadcast, in the chunks of what it meets."""
        if not hasattr(x, "spread_of"):
            return x
        return self.spread(x, x.shape, [chunks.get(a) if n > 1 else None for a, n in zip(labels, x.shape, strict=True)])

    # --- primitives ---

    def implement(self, primitive: Primitive) -> Implementation:
        name, given = primitive.name, primitive.implementations
        if given.keys() & {self.name, Dask, LeafBackend} or (NumPy not in given and name not in numpy.IMPLEMENTATIONS):
            return composed(self, primitive)
        if name in _OWN:
            own = _OWN[name]
            return lambda *operands, **parameters: own(self, *operands, **parameters)
        if name in _DEFINED:
            definition = RECORDS[name].definition  # type: ignore[attr-defined]
            return lambda *operands, **parameters: definition(self, *operands, **parameters)
        if primitive.kind is ELEMENTWISE:
            way = _elementwise
        elif name in _REDUCED:
            way = _reduced
        elif primitive.kind is LINALG and not given:
            way = _stacked
        else:
            way = _WAYS.get(name, _gathered)
        return lambda *operands, **parameters: way(self, primitive, operands, parameters)


def _source(x: Array) -> Array:
    """What an array was broadcast from, or itself."""
    return x.spread_of if hasattr(x, "spread_of") else x


Operands = Sequence[Any]
Parameters = dict[str, Any]


def _spec(x: Any) -> Any:
    return Spec(tuple(x.shape), x.dtype) if hasattr(x, "chunks") else x


def _elementwise(B: Dask, primitive: Primitive, operands: Operands, parameters: Parameters) -> Array:
    """Block by block. What was broadcast is broadcast again by each task, or by nobody until it has to be."""
    spec = result_spec(primitive, [_spec(x) for x in operands], parameters)
    sources = [_source(x) for x in operands]
    ndim = max([x.ndim for x in sources if hasattr(x, "chunks")])
    pairs = [(x, tuple(range(ndim - x.ndim, ndim)) if hasattr(x, "chunks") else None) for x in sources]
    return B.spread(B.blockwise(Task(primitive, parameters), tuple(range(ndim)), pairs, spec.dtype), spec.shape)


def _labelled(
    B: Dask, primitive: Primitive, operands: Operands, parameters: Parameters, labels: Sequence[Labels], out: Any
) -> Any:
    """Blocks of the results from blocks of the operands, by the labels of their axes.

    `out` gives the labels of a result. Axes without one are made whole, which costs the memory of one block that spans
    them.
    """
    specs = result_spec(primitive, [_spec(x) for x in operands], parameters)
    known: dict[int | None, Any] = {}
    for x, named in zip(operands, labels, strict=True):
        if hasattr(x, "chunks") and not hasattr(x, "spread_of"):
            known.update({a: c for a, c, n in zip(named, x.chunks, x.shape, strict=True) if a is not None and n > 1})
    fresh = itertools.count(_FRESH)
    pairs: list[tuple[Any, Any]] = []
    for x, named in zip(operands, labels, strict=True):
        if not hasattr(x, "chunks"):
            pairs.append((x, None))
            continue
        x = B.beside(x, named, known).rechunk({i: -1 for i, a in enumerate(named) if a is None})
        pairs.append((x, tuple([next(fresh) if a is None else a for a in named])))
    task = Task(primitive, parameters)

    def placed(run: Any, spec: Spec, parts: Sequence[Any]) -> Array:
        named = tuple([next(fresh) if a is None else a for a in out(spec.shape)])
        new = {a: n for a, n in zip(named, spec.shape, strict=True) if a >= _FRESH}
        return B.blockwise(run, named, parts, spec.dtype, new_axes=new)

    if isinstance(specs, Spec):
        return placed(task, specs, pairs)
    common = tuple(sorted({a for _, named in pairs for a in named or () if a < _FRESH}))
    results = B.blockwise(task, common, pairs, np.dtype(object))
    return tuple([placed(Part(i), spec, [(results, common)]) for i, spec in enumerate(specs)])


def _gathered(B: Dask, primitive: Primitive, operands: Operands, parameters: Parameters) -> Any:
    """One task over whole operands, whose results are cut into chunks."""
    if primitive.dynamic:  # only values tell its shape
        arrays = iter(B.computed([x for x in operands if hasattr(x, "chunks")]))
        found = Task(primitive, parameters)(*[next(arrays) if hasattr(x, "chunks") else x for x in operands])
        return B.from_numpy(found, copy=False)
    if not operands:
        spec = result_spec(primitive, [], parameters)
        task = B.dask.delayed(Task(primitive, parameters), pure=False)()
        out = B.da.from_delayed(task, spec.shape, meta=np.empty((0,) * len(spec.shape), spec.dtype))
        return out.rechunk(B.divided(*spec))
    labels = [(None,) * getattr(x, "ndim", 0) for x in operands]
    out = _labelled(B, primitive, operands, parameters, labels, lambda shape: (None,) * len(shape))
    if isinstance(out, tuple):
        return tuple([x.rechunk(B.divided(x.shape, x.dtype)) for x in out])
    return out.rechunk(B.divided(out.shape, out.dtype))


def _along(B: Dask, primitive: Primitive, operands: Operands, parameters: Parameters) -> Any:
    """What works along axes: those are made whole, the others stay in chunks."""
    axis = parameters["axis"]
    axes = axis if isinstance(axis, tuple) else (axis,)
    labels = [tuple([None if i in axes else i for i in range(x.ndim)]) for x in operands]
    first = labels[0]
    return _labelled(B, primitive, operands, parameters, labels, lambda s: first + (None,) * (len(s) - len(first)))


def _last(*whole: int) -> Any:
    """What works on the last axes, so many of each operand; leading ones stay in chunks."""

    def way(B: Dask, primitive: Primitive, operands: Operands, parameters: Parameters) -> Any:
        ndims = [getattr(x, "ndim", 0) for x in operands]
        counts = [min(n, whole[min(i, len(whole) - 1)]) for i, n in enumerate(ndims)]
        lead = max([n - k for n, k in zip(ndims, counts, strict=True)])
        labels = [(*range(lead - n + k, lead), *[None] * k) for n, k in zip(ndims, counts, strict=True)]
        return _labelled(
            B, primitive, operands, parameters, labels, lambda s: (*range(lead), *[None] * (len(s) - lead))
        )

    return way


_stacked = _last(2)


def _windowed(B: Dask, primitive: Primitive, operands: Operands, parameters: Parameters) -> Any:
    return _last(len(parameters["kernel"]))(B, primitive, operands, parameters)


def _searchsorted(B: Dask, primitive: Primitive, operands: Operands, parameters: Parameters) -> Any:
    return _last(1, 0 if operands[0].ndim == 1 else 1)(B, primitive, operands, parameters)


def _conv(B: Dask, primitive: Primitive, operands: Operands, parameters: Parameters) -> Any:
    """Examples stay in chunks."""
    x, weight = operands
    labels: list[Labels] = [(0, *[None] * (x.ndim - 1)), (None,) * weight.ndim]
    return _labelled(B, primitive, operands, parameters, labels, lambda s: (0, *[None] * (len(s) - 1)))


# --- reductions ----------------------------------------------------------------------------------


def _reduced(B: Dask, primitive: Primitive, operands: Operands, parameters: Parameters) -> Array:
    """Of each chunk, then of these results, a few at a time."""
    (x,), axis, keepdims = operands, parameters["axis"], parameters["keepdims"]
    spec = result_spec(primitive, [_spec(x)], parameters)
    if not axis:
        return B.blockwise(Task(primitive, parameters), tuple(range(x.ndim)), [(x, tuple(range(x.ndim)))], spec.dtype)
    task, meta = Task(primitive, {}), np.empty((0,) * len(spec.shape), spec.dtype)
    name = f"{primitive.name}-{os.urandom(16).hex()}"
    return B.da.reduction(x, task, task, axis=axis, keepdims=keepdims, dtype=spec.dtype, meta=meta, name=name)


def _place_of(name: str) -> Callable[..., Array]:
    def run(B: Dask, x: Array, *, axis: int | None, keepdims: bool) -> Array:
        if not x.ndim or not x.size:
            return _gathered(B, TABLE[name], [x], {"axis": axis, "keepdims": keepdims})
        return getattr(B.da, name)(x, axis=axis, keepdims=keepdims)

    return run


def _cumulative(name: str) -> Callable[..., Array]:
    return lambda B, x, *, axis: getattr(B.da, name)(x, axis=axis, dtype=x.dtype)


def _logsumexp(B: Dask, x: Array, *, axis: tuple[int, ...], keepdims: bool) -> Array:
    if any(x.shape[i] == 0 for i in axis):
        return _gathered(B, TABLE["logsumexp"], [x], {"axis": axis, "keepdims": keepdims})
    return RECORDS["logsumexp"].definition(B, x, axis=axis, keepdims=keepdims)  # type: ignore[attr-defined]


def _conv_weight(B: Dask, x: Array, g: Array, **how: Any) -> Array:
    """A sum over examples, of each chunk of them and then of the chunks."""
    spec = result_spec(TABLE["conv_weight"], [_spec(x), _spec(g)], how)
    n = x.ndim
    g = B.beside(g, (0, *[None] * (n - 1)), {0: x.chunks[0]})
    x, g = (a.rechunk(dict.fromkeys(range(1, n), -1)) for a in (x, g))
    pairs = [(x, tuple(range(n))), (g, (0, *range(n, 2 * n - 1)))]
    named = tuple(range(2 * n, 3 * n))
    new = dict(zip(named, spec.shape, strict=True))
    task = Stacked(TABLE["conv_weight"], how)
    parts = B.blockwise(task, (0, *named), pairs, spec.dtype, new_axes=new, terms=(0,))
    return B.sum(parts, axis=(0,), keepdims=False)


def _matmul(B: Dask, x: Array, y: Array) -> Array:
    result_spec(TABLE["matmul"], [_spec(x), _spec(y)], {})
    shared = {0: y.chunks[-2]} if not hasattr(y, "spread_of") else {}
    x = B.beside(x, (*[-1] * (x.ndim - 1), 0), shared)
    y = B.beside(y, (*[-1] * (y.ndim - 2), 0, -1), {0: x.chunks[-1]})
    out = B.da.matmul(x, y)
    return out if out.dtype == x.dtype else out.astype(x.dtype)  # Dask adds up short integers in long ones


# --- structure -----------------------------------------------------------------------------------


def _structural(name: str, run: Callable[..., Array]) -> Callable[..., Array]:
    """What moves elements; one element that was broadcast it leaves alone, and nothing at all needs no tasks."""

    def way(B: Dask, x: Array, **parameters: Any) -> Array:
        shape = result_spec(TABLE[name], [_spec(x)], parameters).shape
        source = _source(x)
        if source.size == 1 and source is not x:
            return B.spread(source.reshape(()), shape)
        if 0 in shape:
            return _full(B, shape=shape, value=0, dtype=x.dtype)
        return run(B, x, **parameters)

    return way


def _reshape(B: Dask, x: Array, *, shape: Shape) -> Array:
    try:
        return B.da.reshape(x, shape)
    except NotImplementedError:  # Dask merges neighbouring axes, or splits one
        return B.da.reshape(B.da.reshape(x, (x.size,)), shape)


def _broadcast_to(B: Dask, x: Array, *, shape: Shape) -> Array:
    result_spec(TABLE["broadcast_to"], [_spec(x)], {"shape": shape})
    return B.spread(x, tuple(shape))


def _pad(B: Dask, x: Array, *, widths: Any, value: Any) -> Array:
    for axis, (before, after) in enumerate(widths):
        ends = [
            _full(B, shape=(*x.shape[:axis], n, *x.shape[axis + 1 :]), value=value, dtype=x.dtype)
            for n in (before, after)
        ]
        x = _concat(B, ends[0], x, ends[1], axis=axis)
    return x


def _concat(B: Dask, *xs: Array, axis: int) -> Array:
    result_spec(TABLE["concat"], [_spec(x) for x in xs], {"axis": axis})
    filled = [x for x in xs if x.shape[axis]] or list(xs[:1])
    return B.da.concatenate(filled, axis=axis) if len(filled) > 1 else filled[0]


def _triangle(name: str) -> Callable[..., Array]:
    def run(B: Dask, x: Array, *, k: int) -> Array:
        rows, columns = (B.da.arange(n, chunks=(c,)) for n, c in zip(x.shape[-2:], x.chunks[-2:], strict=True))
        kept = getattr(B, name)(columns, B.add(B.expand_dims(rows, axis=(1,)), k))
        return B.where(kept, x, 0)

    return run


# --- indexing ------------------------------------------------------------------------------------


def _line(key: Key, arrays: Sequence[Array]) -> int | None:
    """The axis of a key's only array, if it takes all of the others."""
    alone = len(arrays) == 1 and all(entry is ARRAY or entry == slice(None) for entry in key)
    return next(i for i, entry in enumerate(key) if entry is ARRAY) if alone else None


def _index(B: Dask, x: Array, *arrays: Array, key: Key) -> Array:
    shape = index_shape(x.shape, *[a.shape for a in arrays], key=key)
    source = _source(x)
    if source.size == 1 and source is not x and not arrays:
        return B.spread(source.reshape(()), shape)
    if 0 in shape and not arrays:
        return _full(B, shape=shape, value=0, dtype=x.dtype)
    if not arrays:
        return x[slices(key)]
    axis = _line(key, arrays)
    if axis is None:
        return _gathered(B, TABLE["index"], [x, *arrays], {"key": key})
    k, n = arrays[0].ndim, x.ndim
    inner, outer = tuple(range(k)), tuple(range(k, k + n))
    named = (*outer[:axis], *inner, *outer[axis + 1 :])
    if x.numblocks[axis] == 1:
        labels: list[Labels] = [(*outer[:axis], None, *outer[axis + 1 :]), inner]
        return _labelled(B, TABLE["index"], [x, arrays[0]], {"key": key}, labels, lambda _: named)
    places = _counted(B, arrays[0], x.shape[axis])
    rows = B.da.arange(x.shape[axis], chunks=(x.chunks[axis],))
    found = B.blockwise(
        Picked(axis), (*inner, *outer), [(x, outer), (places, inner), (rows, (k + axis,))], np.dtype(object)
    )
    return B.blockwise(Joined(axis), named, [(places, inner), (found, (*inner, *outer))], x.dtype)


def _counted(B: Dask, places: Array, size: int) -> Array:
    """Places from the front, checked when their task runs."""
    labels = tuple(range(places.ndim))
    return B.blockwise(Places(size), labels, [(places, labels)], places.dtype)


def _index_set(B: Dask, x: Array, value: Array, *arrays: Array, key: Key) -> Array:
    spec = [_spec(a) for a in (x, value, *arrays)]
    result_spec(TABLE["index_set"], spec, {"key": key})
    if arrays:
        return _gathered(B, TABLE["index_set"], [x, value, *arrays], {"key": key})
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
    spec = [_spec(a) for a in (x, value, *arrays)]
    result_spec(TABLE["index_add"], spec, {"key": key})
    if not arrays:
        return _assigned(B, x, B.add(_index(B, x, key=key), value), key)
    axis = _line(key, arrays)
    if axis is None:
        return _gathered(B, TABLE["index_add"], [x, value, *arrays], {"key": key})
    places = _counted(B, arrays[0], x.shape[axis])
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
            return _gathered(B, TABLE[name], [x, value, *arrays], {"key": key})
        return _assigned(B, x, getattr(B, join)(_index(B, x, key=key), value), key)

    return run


# --- creation ------------------------------------------------------------------------------------


def _full(B: Dask, *, shape: Shape, value: Any, dtype: DType) -> Array:
    """One number, which what follows broadcasts."""
    return B.spread(B.from_numpy(np.full((), value, dtype), copy=False), tuple(shape))


def _arange(B: Dask, *, start: float, stop: float, step: float, dtype: DType) -> Array:
    (n,) = TABLE["arange"].shape(start=start, stop=stop, step=step)
    if dtype.kind not in "iu" or not n:
        return _gathered(B, TABLE["arange"], [], {"start": start, "stop": stop, "step": step, "dtype": dtype})
    return B.da.arange(start, stop, step, chunks=B.divided((n,), dtype), dtype=dtype)


def _eye(B: Dask, *, rows: int, columns: int, k: int, dtype: DType) -> Array:
    i, j = (B.arange(start=0, stop=n, step=1, dtype=INDEX) for n in (rows, columns))
    return B.astype(B.equal(j, B.add(B.expand_dims(i, axis=(1,)), k)), dtype=dtype)


# reductions that repeat: of a chunk, and of what chunks gave
_REDUCED = frozenset("sum prod max min any all nanmax nanmin".split())
# whose definition in other primitives leaves chunks as they are
_DEFINED = frozenset(
    "softmax softmax_pullback log_softmax log_softmax_pullback vector_norm standardize normalize "
    "normalize_pullback isin one_hot labelled_cross_entropy "
    "labelled_cross_entropy_pullback labelled_mean labelled_mean_pullback".split()
)
_WAYS: dict[str, Callable[..., Any]] = {
    **dict.fromkeys("fft rfft hfft sort argsort topk cummax cummin windows take_along_axis".split(), _along),
    **dict.fromkeys("attention attention_pullback".split(), _stacked),
    **dict.fromkeys("max_pool max_pool_pullback window_sum window_spread".split(), _windowed),
    **dict.fromkeys("conv conv_input".split(), _conv),
    "convolve": _last(1),
    "searchsorted": _searchsorted,
    "softmax_cross_entropy": _last(1, 0),
    "softmax_cross_entropy_pullback": _last(0, 1, 0),
}
_OWN: dict[str, Callable[..., Any]] = {
    "reshape": _structural("reshape", _reshape),
    "broadcast_to": _broadcast_to,
    "permute_dims": _structural("permute_dims", lambda B, x, *, axes: B.da.transpose(x, axes)),
    "expand_dims": _structural("expand_dims", lambda B, x, *, axis: B.da.expand_dims(x, axis)),
    "squeeze": _structural("squeeze", lambda B, x, *, axis: B.da.squeeze(x, axis)),
    "flip": _structural("flip", lambda B, x, *, axis: B.da.flip(x, axis)),
    "concat": _concat,
    "pad": _pad,
    "tril": _triangle("less_equal"),
    "triu": _triangle("greater_equal"),
    "argmax": _place_of("argmax"),
    "argmin": _place_of("argmin"),
    "cumulative_sum": _cumulative("cumsum"),
    "cumulative_prod": _cumulative("cumprod"),
    "logsumexp": _logsumexp,
    "matmul": _matmul,
    "conv_weight": _conv_weight,
    "index": _index,
    "index_set": _index_set,
    "index_add": _index_add,
    "index_multiply": _joining("index_multiply", "multiply"),
    "index_max": _joining("index_max", "maximum"),
    "index_min": _joining("index_min", "minimum"),
    "full": _full,
    "arange": _arange,
    "eye": _eye,
}


def _shown(chunks: tuple[tuple[int, ...], ...]) -> str:
    """Chunks as their sizes along each axis; of many equal ones the first, and the last."""
    parts = []
    for sizes in chunks:
        if len(sizes) > 4 and len(set(sizes[:-1])) == 1:
            parts.append(f"({sizes[0]}, ..., {sizes[-1]})")
        else:
            parts.append(str(tuple(int(n) for n in sizes)))
    return f"({', '.join(parts)}{',' if len(parts) == 1 else ''})"
