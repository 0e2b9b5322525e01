"""What picks elements. An index that is known is checked; a traced one outside reads nan."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from adjoint import errors
from adjoint.backend import Array
from adjoint.primitives import ARRAY, Key, Shape, slices

if TYPE_CHECKING:
    from adjoint.backends.jax import JAX


def filled_key(B: JAX, shape: Shape, arrays: tuple[Array, ...], key: Key) -> tuple[Any, ...]:
    """The key with its arrays in their places. Raises IndexError for an index that is known to be outside."""
    rest, sizes, filled = iter(arrays), iter(shape), []
    for entry in slices(key):
        size = 1 if entry is None else next(sizes)
        if entry is ARRAY:
            entry = next(rest)
            _refuse_outside(B, entry, size)
        filled.append(entry)
    return (*filled, ...)


def values_of(B: JAX, x: Array) -> np.ndarray[Any, Any] | None:
    """The values, to look at; those of a constant also while JAX traces. None where this process has not got them."""
    return None if B.traced(x) or not x.is_fully_addressable else np.asarray(x)


def _refuse_outside(B: JAX, places: Array, size: int) -> None:
    values = values_of(B, places)
    if values is None or not values.size:
        return
    least, most = int(values.min()), int(values.max())
    if least < -size or most >= size:
        raise IndexError(f"index {least if least < -size else most} is out of bounds for an axis of size {size}")


def _index(B: JAX, x: Array, *arrays: Array, key: Key) -> Array:
    if not arrays:
        return x[slices(key)]
    return x.at[filled_key(B, x.shape, arrays, key)].get(mode="fill")  # a traced index outside reads nan


def _take_along_axis(B: JAX, x: Array, indices: Array, *, axis: int) -> Array:
    _refuse_outside(B, indices, x.shape[axis])
    return B.xp.take_along_axis(x, indices, axis=axis)


def _nonzero(B: JAX, x: Array) -> Array:
    if B.traced(x):
        raise errors.UnsupportedPrimitiveError(
            f"{B.name} cannot run the primitive 'nonzero' while JAX traces: how many places there are depends on the "
            "values; boolean masks need it too, and ad.where(mask, x, 0) does not"
        )
    with B.jax.ensure_compile_time_eval():  # of a constant while other arrays are traced
        return B.xp.astype(B.xp.stack(B.xp.nonzero(x)), B.xp.int64)


IMPLEMENTATIONS: dict[str, Callable[..., Any]] = {
    "index": _index,
    "take_along_axis": _take_along_axis,
    "nonzero": _nonzero,
}
