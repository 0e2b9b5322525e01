"""What moves elements as they are."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from adjoint.backend import Array

if TYPE_CHECKING:
    from adjoint.backends.jax import JAX


def pad(B: JAX, x: Array, *, widths: tuple[tuple[int, int], ...], value: Any) -> Array:
    return B.jax.lax.pad(x, B.xp.asarray(value, dtype=x.dtype), [(before, after, 0) for before, after in widths])


IMPLEMENTATIONS: dict[str, Callable[..., Any]] = {
    "pad": pad,
}
