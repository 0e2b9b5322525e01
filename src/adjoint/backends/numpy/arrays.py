"""Running extremes, places joined, windows, convolution and searching on NumPy."""

from __future__ import annotations

import numpy as np

from adjoint.backend import Array, Implementation
from adjoint.backends.numpy.indexing import joining


def _running(extreme: np.ufunc) -> Implementation:
    """The extreme up to each place, and the last place it may have come from."""

    def run(x: Array, *, axis: int) -> tuple[Array, Array]:
        out = extreme.accumulate(x, axis=axis)
        hits = np.equal(x, out)
        if x.dtype.kind == "f":
            hits |= np.isnan(x)
        lines = np.moveaxis(hits, axis, -1)
        places = np.flatnonzero(lines)  # the first element of each line is one, so that no run goes on into the next
        counts = np.diff(places, append=lines.size)
        if lines.ndim > 1 and lines.size:
            places %= lines.shape[-1]
        return out, np.moveaxis(np.repeat(places, counts).reshape(lines.shape), -1, axis)

    return run


def _windows(x: Array, *, axis: int, size: int) -> Array:
    return np.lib.stride_tricks.sliding_window_view(x, size, axis=axis)  # a view


def _convolve(a: Array, v: Array, *, full: bool) -> Array:
    if a.ndim == 1 and v.ndim == 1:
        return np.convolve(a, v, "full" if full else "valid")
    if full:
        border = v.shape[-1] - 1
        a = np.pad(a, [(0, 0)] * (a.ndim - 1) + [(border, border)])
    windows = np.lib.stride_tricks.sliding_window_view(a, v.shape[-1], axis=-1)
    return np.einsum("...km,...m->...k", windows, v[..., ::-1])


IMPLEMENTATIONS: dict[str, Implementation] = {
    "cummax": _running(np.maximum),
    "cummin": _running(np.minimum),
    "nanmax": lambda x, *, axis, keepdims: np.fmax.reduce(x, axis=axis, keepdims=keepdims),
    "nanmin": lambda x, *, axis, keepdims: np.fmin.reduce(x, axis=axis, keepdims=keepdims),
    "fmod": np.fmod,
    "ldexp": np.ldexp,
    "mantissa": lambda x: np.frexp(x)[0],
    "binary_exponent": lambda x: np.frexp(x)[1],
    "index_multiply": joining(np.multiply),
    "index_max": joining(np.maximum),
    "index_min": joining(np.minimum),
    "windows": _windows,
    "convolve": _convolve,
}
