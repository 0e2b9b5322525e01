"""Fourier transforms: all are linear, and each is a transpose of another.

The matrix of powers of a root of unity is symmetric. Of the real transforms the transposes are those of real-linear
maps, for the pairing Re(sum g_k t_k): half a spectrum counts the coefficients between its ends once, where the whole
one has them twice.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from adjoint.rules.records import Linear, Record


def _inside(B: Any, g: Any, axis: int, size: int, factor: float) -> Any:
    """The coefficients of half a spectrum with those between the ends multiplied: they stand for two."""
    count = size // 2 + 1
    places = B.arange(start=0, stop=count, step=1, dtype=np.dtype(np.int64))
    once = B.equal(places, 0)
    if size % 2 == 0:
        once = B.logical_or(once, B.equal(places, count - 1))
    once = B.reshape(once, shape=(count, *[1] * (len(g.shape) - 1 - axis)))
    return B.where(once, g, B.multiply(g, factor))


def _rfft(B: Any, g: Any, x_shape: Any, axis: int, inverse: bool, norm: str) -> Any:
    size = x_shape[axis]
    return B.hfft(_inside(B, g, axis, size, 0.5), axis=axis, size=size, inverse=inverse, norm=norm)


def _hfft(B: Any, g: Any, axis: int, size: int, inverse: bool, norm: str) -> Any:
    return _inside(B, B.rfft(g, axis=axis, inverse=inverse, norm=norm), axis, size, 2.0)


def _operations(each: float) -> Any:
    """So many for each number and halving; of half a spectrum and its real numbers, the whole ones."""

    def rule(operands: Any, result: Any, parameters: Any) -> float:
        whole, axis = max(operands[0], result), parameters["axis"]
        levels = sum([math.log2(whole[i]) for i in ((axis,) if isinstance(axis, int) else axis)])
        return float(each * math.prod(whole) * levels)

    return rule


RECORDS: dict[str, Record] = {
    "fft": Linear(
        x=lambda B, g, axis, inverse, norm: B.fft(g, axis=axis, inverse=inverse, norm=norm), operations=_operations(5)
    ),
    "rfft": Linear(x=_rfft, operations=_operations(2.5)),
    "hfft": Linear(x=_hfft, operations=_operations(2.5)),
}
