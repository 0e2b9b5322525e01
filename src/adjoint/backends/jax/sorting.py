"""What looks for places in an order."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from adjoint.backend import Array

if TYPE_CHECKING:
    from adjoint.backends.jax import JAX


def _searchsorted(B: JAX, x: Array, values: Array, *, side: str) -> Array:
    """In several lines beside each other, too."""
    search = functools.partial(B.xp.searchsorted, side=side)
    if x.ndim > 1:
        search = B.xp.vectorize(search, signature="(n),(m)->(m)")
    return B.xp.astype(search(x, values), B.xp.int64)


IMPLEMENTATIONS: dict[str, Callable[..., Any]] = {
    "searchsorted": _searchsorted,
}
