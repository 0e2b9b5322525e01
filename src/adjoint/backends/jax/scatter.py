"""What writes to elements: JAX makes a new array."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from adjoint.backend import Array
from adjoint.backends.jax.indexing import filled_key
from adjoint.primitives import Key, Shape, index_shape, slices

if TYPE_CHECKING:
    from adjoint.backends.jax import JAX


def _block(shape: Shape, key: Key) -> tuple[Shape, Shape] | None:
    """Where the block starts that a key without arrays picks, and its sizes; None where it has steps."""
    entries = iter([entry for entry in slices(key) if entry is not None])
    starts, sizes = [], []
    for n in shape:
        entry = next(entries, slice(None))
        chosen = range(*entry.indices(n)) if isinstance(entry, slice) else range(entry % n, entry % n + 1)
        if chosen.step != 1:
            return None
        starts.append(chosen.start)
        sizes.append(len(chosen))
    return tuple(starts), tuple(sizes)


def _joining(name: str) -> Callable[..., Array]:
    """Elements at a key joined with a value; `set` takes the last value of a place that is named twice."""

    def run(B: JAX, x: Array, value: Array, *arrays: Array, key: Key) -> Array:
        if not arrays:
            block = _block(x.shape, key)
            if block is None:
                return getattr(x.at[slices(key)], name)(value)
            starts, sizes = block
            value = B.xp.broadcast_to(B.xp.asarray(value, dtype=x.dtype), index_shape(x.shape, key=key)).reshape(sizes)
            if name != "set":
                here = B.jax.lax.slice(x, starts, [a + n for a, n in zip(starts, sizes, strict=True)])
                value = getattr(B.xp, name)(here, value)
            return B.jax.lax.dynamic_update_slice(x, value, starts)
        filled = filled_key(B, x.shape, arrays, key)
        if name != "set":
            how = {"maximum": "max", "minimum": "min"}.get(name, name)
            return getattr(x.at[filled], how)(value)
        target = index_shape(x.shape, *[a.shape for a in arrays], key=key)
        count = math.prod(target)
        if not count:
            return x
        numbers = B.jax.numpy.arange(count).reshape(target)
        latest = B.jax.numpy.full(x.shape, -1, dtype=numbers.dtype).at[filled].max(numbers)
        values = B.xp.broadcast_to(B.xp.asarray(value, dtype=x.dtype), target).reshape(count)
        return B.xp.where(latest < 0, x, values[latest])

    return run


IMPLEMENTATIONS: dict[str, Callable[..., Any]] = {
    "index_set": _joining("set"),
    "index_add": _joining("add"),
    "index_multiply": _joining("multiply"),
    "index_max": _joining("maximum"),
    "index_min": _joining("minimum"),
}
