"""Convolutions."""

from __future__ import annotations

import numpy as np

from adjoint.backend import Array, Implementation
from adjoint.backends import convolution


def _convolve(a: Array, v: Array, *, full: bool) -> Array:
    if a.ndim == 1 and v.ndim == 1:
        return np.convolve(a, v, "full" if full else "valid")
    padded = a
    if full:
        border = v.shape[-1] - 1
        padded = np.pad(a, [(0, 0)] * (a.ndim - 1) + [(border, border)])
    windows = np.lib.stride_tricks.sliding_window_view(padded, v.shape[-1], axis=-1)
    out = np.einsum("...km,...m->...k", windows, v[..., ::-1])
    if full and v.dtype.kind in "fc" and not np.isfinite(v).all():  # these times the zeros of the border are nan
        a, v = (np.broadcast_to(x, (*out.shape[:-1], x.shape[-1])) for x in (a, v))
        for i in np.argwhere(~np.isfinite(v).all(-1)):
            out[tuple(i)] = np.convolve(a[tuple(i)], v[tuple(i)])
    return out


IMPLEMENTATIONS: dict[str, Implementation] = {
    "convolve": _convolve,
    "conv": lambda x, weight, **how: convolution.conv(np, x, weight, **how),
    "conv_input": lambda g, weight, **how: convolution.conv_input(np, g, weight, **how),
    "conv_weight": lambda x, g, **how: convolution.conv_weight(np, x, g, **how),
}
