"""Convolutions of images, and of vectors as a sum over places."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from adjoint.backend import Array
from adjoint.backends import convolution
from adjoint.backends.array_api.shape import pad


def _convolve(xp: Any, a: Array, v: Array, *, full: bool) -> Array:
    """A sum over the places of the second operand."""
    n, m = a.shape[-1], v.shape[-1]
    if full:
        around = [[(0, 0)] * (max(a.ndim, v.ndim) - 1) + [(j, m - 1 - j)] for j in range(m)]
        return sum(pad(xp, a * v[..., j : j + 1], widths=tuple(around[j]), value=0) for j in range(m))
    return sum(a[..., m - 1 - j : n - j] * v[..., j : j + 1] for j in range(m))


# called with the namespace
IMPLEMENTATIONS: dict[str, Callable[..., Any]] = {
    "convolve": _convolve,
    "conv": convolution.conv,
    "conv_input": convolution.conv_input,
    "conv_weight": convolution.conv_weight,
}
