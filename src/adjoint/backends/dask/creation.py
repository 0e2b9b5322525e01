"""What is made of numbers."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from adjoint.backend import Array
from adjoint.backends.dask.blocks import gathered
from adjoint.primitives import INDEX, TABLE, DType, Shape

if TYPE_CHECKING:
    from adjoint.backends.dask import Dask


def full(B: Dask, *, shape: Shape, value: Any, dtype: DType) -> Array:
    """One number, which what follows broadcasts."""
    return B.spread(B.from_numpy(np.full((), value, dtype), copy=False), tuple(shape))


def _arange(B: Dask, *, start: float, stop: float, step: float, dtype: DType) -> Array:
    (n,) = TABLE["arange"].shape(start=start, stop=stop, step=step)
    if dtype.kind not in "iu" or not n:
        return gathered(B, TABLE["arange"], [], {"start": start, "stop": stop, "step": step, "dtype": dtype})
    return B.da.arange(start, stop, step, chunks=B.divided((n,), dtype), dtype=dtype)


def _eye(B: Dask, *, rows: int, columns: int, k: int, dtype: DType) -> Array:
    i, j = (B.arange(start=0, stop=n, step=1, dtype=INDEX) for n in (rows, columns))
    return B.astype(B.equal(j, B.add(B.expand_dims(i, axis=(1,)), k)), dtype=dtype)


IMPLEMENTATIONS: dict[str, Callable[..., Any]] = {
    "full": full,
    "arange": _arange,
    "eye": _eye,
}
