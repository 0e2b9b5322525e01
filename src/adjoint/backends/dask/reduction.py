"""Reductions: of each chunk, then of what chunks gave."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from adjoint.backend import Array
from adjoint.backends.dask.blocks import Operands, Parameters, gathered, spec_of
from adjoint.backends.dask.tasks import Task
from adjoint.primitives import TABLE, Primitive, result_spec
from adjoint.rules import RECORDS

if TYPE_CHECKING:
    from adjoint.backends.dask import Dask


def reduced(B: Dask, primitive: Primitive, operands: Operands, parameters: Parameters) -> Array:
    """Of each chunk, then of these results, a few at a time."""
    (x,), axis, keepdims = operands, parameters["axis"], parameters["keepdims"]
    spec = result_spec(primitive, [spec_of(x)], parameters)
    if not axis:
        return B.blockwise(Task(primitive, parameters), tuple(range(x.ndim)), [(x, tuple(range(x.ndim)))], spec.dtype)
    task, meta = Task(primitive, {}), np.empty((0,) * len(spec.shape), spec.dtype)
    name = f"{primitive.name}-{os.urandom(16).hex()}"
    return B.da.reduction(x, task, task, axis=axis, keepdims=keepdims, dtype=spec.dtype, meta=meta, name=name)


def _place_of(name: str) -> Callable[..., Array]:
    def run(B: Dask, x: Array, *, axis: int | None, keepdims: bool) -> Array:
        if not x.ndim or not x.size:
            return gathered(B, TABLE[name], [x], {"axis": axis, "keepdims": keepdims})
        if axis is None and x.ndim > 1:  # of equal ones the first by rows, where Dask has the first by chunks
            out = getattr(B.da, name)(B.reshape(x, shape=(x.size,)), axis=0)
            return out.reshape((1,) * x.ndim) if keepdims else out
        return getattr(B.da, name)(x, axis=axis, keepdims=keepdims)

    return run


def _cumulative(name: str) -> Callable[..., Array]:
    return lambda B, x, *, axis: getattr(B.da, name)(x, axis=axis, dtype=x.dtype)


def _logsumexp(B: Dask, x: Array, *, axis: tuple[int, ...], keepdims: bool) -> Array:
    if any(x.shape[i] == 0 for i in axis):
        return gathered(B, TABLE["logsumexp"], [x], {"axis": axis, "keepdims": keepdims})
    return RECORDS["logsumexp"].definition(B, x, axis=axis, keepdims=keepdims)  # type: ignore[attr-defined]


IMPLEMENTATIONS: dict[str, Callable[..., Any]] = {
    "argmax": _place_of("argmax"),
    "argmin": _place_of("argmin"),
    "cumulative_sum": _cumulative("cumsum"),
    "cumulative_prod": _cumulative("cumprod"),
    "logsumexp": _logsumexp,
}
