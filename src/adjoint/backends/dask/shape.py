"""What moves elements as they are."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from adjoint.backend import Array
from adjoint.backends.dask.blocks import source_of, spec_of
from adjoint.backends.dask.creation import full
from adjoint.primitives import TABLE, Shape, result_spec

if TYPE_CHECKING:
    from adjoint.backends.dask import Dask


def _structural(name: str, run: Callable[..., Array]) -> Callable[..., Array]:
    """What moves elements; one element that was broadcast it leaves alone, and nothing at all needs no tasks."""

    def way(B: Dask, x: Array, **parameters: Any) -> Array:
        shape = result_spec(TABLE[name], [spec_of(x)], parameters).shape
        source = source_of(x)
        if source.size == 1 and source is not x:
            return B.spread(source.reshape(()), shape)
        if 0 in shape:
            return full(B, shape=shape, value=0, dtype=x.dtype)
        return run(B, x, **parameters)

    return way


def _reshape(B: Dask, x: Array, *, shape: Shape) -> Array:
    try:
        return B.da.reshape(x, shape)
    except NotImplementedError:  # Dask merges neighbouring axes, or splits one
        return B.da.reshape(B.da.reshape(x, (x.size,)), shape)


def _broadcast_to(B: Dask, x: Array, *, shape: Shape) -> Array:
    result_spec(TABLE["broadcast_to"], [spec_of(x)], {"shape": shape})
    return B.spread(x, tuple(shape))


def _pad(B: Dask, x: Array, *, widths: Any, value: Any) -> Array:
    for axis, (before, after) in enumerate(widths):
        ends = [
            full(B, shape=(*x.shape[:axis], n, *x.shape[axis + 1 :]), value=value, dtype=x.dtype)
            for n in (before, after)
        ]
        x = _concat(B, ends[0], x, ends[1], axis=axis)
    return x


def _concat(B: Dask, *xs: Array, axis: int) -> Array:
    result_spec(TABLE["concat"], [spec_of(x) for x in xs], {"axis": axis})
    filled = [x for x in xs if x.shape[axis]] or list(xs[:1])
    return B.da.concatenate(filled, axis=axis) if len(filled) > 1 else filled[0]


def _triangle(name: str) -> Callable[..., Array]:
    def run(B: Dask, x: Array, *, k: int) -> Array:
        rows, columns = (B.da.arange(n, chunks=(c,)) for n, c in zip(x.shape[-2:], x.chunks[-2:], strict=True))
        kept = getattr(B, name)(columns, B.add(B.expand_dims(rows, axis=(1,)), k))
        return B.where(kept, x, x.dtype.type(0).item())  # a zero of its kind

    return run


IMPLEMENTATIONS: dict[str, Callable[..., Any]] = {
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
}
