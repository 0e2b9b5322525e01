"""Convolutions."""

from __future__ import annotations

import numpy as np

from adjoint.backend import Array, Implementation
from adjoint.backends import convolution


def _convolve(a: Array, v: Array, *, full: bool) -> Array:
    if a.ndim == 1 and v.ndim == 1:
        return np.convolve(a, v, "full" if full else "valid")
    if full:
        border = v.shape[-1] - 1
        a = np.pad(a, [(0, 0)] * (a.ndim - 1) + [(border, border)])
    windows = np.lib.stride_tricks.sliding_window_view(a, v.shape[-1], axis=-1)
    return np.einsum("...km,...m->...k", windows, v[..., ::-1])


IMPLEMENTATIONS: dict[str, Implementation] = {
    "convolve": _convolve,
    "conv": lambda x, weight, **how: convolution.conv(np, x, weight, **how),
    "conv_input": lambda g, weight, **how: convolution.conv_input(np, g, weight, **how),
    "conv_weight": lambda x, g, **how: convolution.conv_weight(np, x, g, **how),
}
