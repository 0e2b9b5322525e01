"""Fourier transforms of the standard's extension."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from adjoint.backend import Array


def fft(xp: Any, x: Array, *, axis: tuple[int, ...], inverse: bool, norm: str) -> Array:
    return (xp.fft.ifftn if inverse else xp.fft.fftn)(x, axes=axis, norm=norm) if axis else x


def rfft(xp: Any, x: Array, *, axis: int, inverse: bool, norm: str) -> Array:
    return (xp.fft.ihfft if inverse else xp.fft.rfft)(x, axis=axis, norm=norm)


def hfft(xp: Any, x: Array, *, axis: int, size: int, inverse: bool, norm: str) -> Array:
    return (xp.fft.irfft if inverse else xp.fft.hfft)(x, n=size, axis=axis, norm=norm)


# called with the namespace
IMPLEMENTATIONS: dict[str, Callable[..., Any]] = {
    "fft": fft,
    "rfft": rfft,
    "hfft": hfft,
}
