"""How primitives are run block by block: axes that stay in chunks have labels, the others are made whole."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from adjoint.backend import Array
from adjoint.backends.dask.tasks import Part, Task
from adjoint.primitives import Primitive, Spec, result_spec

if TYPE_CHECKING:
    from adjoint.backends.dask import Dask


_FRESH = 10_000  # labels from here on are of one array alone
Labels = tuple[int | None, ...]  # an axis's number among those that stay in chunks, None for one that is needed whole
Operands = Sequence[Any]
Parameters = dict[str, Any]


def source_of(x: Array) -> Array:
    """What an array was broadcast from, or itself."""
    return x.spread_of if hasattr(x, "spread_of") else x


def spec_of(x: Any) -> Any:
    return Spec(tuple(x.shape), x.dtype) if hasattr(x, "chunks") else x


def elementwise(B: Dask, primitive: Primitive, operands: Operands, parameters: Parameters) -> Array:
    """Block by block. What was broadcast is broadcast again by each task, or by nobody until it has to be."""
    spec = result_spec(primitive, [spec_of(x) for x in operands], parameters)
    sources = [source_of(x) for x in operands]
    ndim = max([x.ndim for x in sources if hasattr(x, "chunks")])
    pairs = [(x, tuple(range(ndim - x.ndim, ndim)) if hasattr(x, "chunks") else None) for x in sources]
    return B.spread(B.blockwise(Task(primitive, parameters), tuple(range(ndim)), pairs, spec.dtype), spec.shape)


def by_labels(
    B: Dask, primitive: Primitive, operands: Operands, parameters: Parameters, labels: Sequence[Labels], out: Any
) -> Any:
    """Blocks of the results from blocks of the operands, by the labels of their axes.

    `out` gives the labels of a result. Axes without one are made whole, which costs the memory of one block that spans
    them.
    """
    specs = result_spec(primitive, [spec_of(x) for x in operands], parameters)
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


def gathered(B: Dask, primitive: Primitive, operands: Operands, parameters: Parameters) -> Any:
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
    out = by_labels(B, primitive, operands, parameters, labels, lambda shape: (None,) * len(shape))
    if isinstance(out, tuple):
        return tuple([x.rechunk(B.divided(x.shape, x.dtype)) for x in out])
    return out.rechunk(B.divided(out.shape, out.dtype))


def _along(B: Dask, primitive: Primitive, operands: Operands, parameters: Parameters) -> Any:
    """What works along axes: those are made whole, the others stay in chunks."""
    axis = parameters["axis"]
    axes = axis if isinstance(axis, tuple) else (axis,)
    labels = [tuple([None if i in axes else i for i in range(x.ndim)]) for x in operands]
    first = labels[0]
    return by_labels(B, primitive, operands, parameters, labels, lambda s: first + (None,) * (len(s) - len(first)))


def _last(*whole: int) -> Any:
    """What works on the last axes, so many of each operand; leading ones stay in chunks."""

    def way(B: Dask, primitive: Primitive, operands: Operands, parameters: Parameters) -> Any:
        ndims = [getattr(x, "ndim", 0) for x in operands]
        counts = [min(n, whole[min(i, len(whole) - 1)]) for i, n in enumerate(ndims)]
        lead = max([n - k for n, k in zip(ndims, counts, strict=True)])
        labels = [(*range(lead - n + k, lead), *[None] * k) for n, k in zip(ndims, counts, strict=True)]
        return by_labels(
            B, primitive, operands, parameters, labels, lambda s: (*range(lead), *[None] * (len(s) - lead))
        )

    return way


stacked: Any = _last(2)


def _windowed(B: Dask, primitive: Primitive, operands: Operands, parameters: Parameters) -> Any:
    return _last(len(parameters["kernel"]))(B, primitive, operands, parameters)


def _searchsorted(B: Dask, primitive: Primitive, operands: Operands, parameters: Parameters) -> Any:
    return _last(1, 0 if operands[0].ndim == 1 else 1)(B, primitive, operands, parameters)


def _conv(B: Dask, primitive: Primitive, operands: Operands, parameters: Parameters) -> Any:
    """Examples stay in chunks."""
    x, weight = operands
    labels: list[Labels] = [(0, *[None] * (x.ndim - 1)), (None,) * weight.ndim]
    return by_labels(B, primitive, operands, parameters, labels, lambda s: (0, *[None] * (len(s) - 1)))


BLOCKWISE: dict[str, Callable[..., Any]] = {
    **dict.fromkeys(
        "fft rfft hfft sort argsort topk cummax cummin logcumsumexp windows take_along_axis".split(), _along
    ),
    **dict.fromkeys("attention attention_pullback".split(), stacked),
    **dict.fromkeys("max_pool max_pool_pullback window_sum window_spread".split(), _windowed),
    **dict.fromkeys("conv conv_input".split(), _conv),
    "convolve": _last(1),
    "searchsorted": _searchsorted,
    "softmax_cross_entropy": _last(1, 0),
    "softmax_cross_entropy_pullback": _last(0, 1, 0),
}
