"""Fourier transforms by XLA."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from adjoint.backend import Array
from adjoint.backends.array_api import fft

if TYPE_CHECKING:
    from adjoint.backends.jax import JAX


def _fft(B: JAX, x: Array, *, axis: tuple[int, ...], inverse: bool, norm: str) -> Array:
    """XLA transforms up to three axes at once."""
    for start in range(0, len(axis), 3):
        x = fft.fft(B.xp, x, axis=axis[start : start + 3], inverse=inverse, norm=norm)
    return x


IMPLEMENTATIONS: dict[str, Callable[..., Any]] = {
    "fft": _fft,
}
