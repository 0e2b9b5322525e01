"""Fourier transforms on NumPy, which keep the precision of their operand."""

from __future__ import annotations

import numpy as np

from adjoint.backend import Array, Implementation


def _fft(x: Array, *, axis: tuple[int, ...], inverse: bool, norm: str) -> Array:
    if len(axis) == 1:
        return (np.fft.ifft if inverse else np.fft.fft)(x, axis=axis[0], norm=norm)  # type: ignore[arg-type]
    return (np.fft.ifftn if inverse else np.fft.fftn)(x, axes=axis, norm=norm)  # type: ignore[arg-type]


def _rfft(x: Array, *, axis: int, inverse: bool, norm: str) -> Array:
    return (np.fft.ihfft if inverse else np.fft.rfft)(x, axis=axis, norm=norm)  # type: ignore[arg-type]


def _hfft(x: Array, *, axis: int, size: int, inverse: bool, norm: str) -> Array:
    return (np.fft.irfft if inverse else np.fft.hfft)(x, size, axis=axis, norm=norm)  # type: ignore[arg-type]


IMPLEMENTATIONS: dict[str, Implementation] = {"fft": _fft, "rfft": _rfft, "hfft": _hfft}
