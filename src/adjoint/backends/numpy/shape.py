"""Shapes and the order of axes on NumPy: views where that is possible."""

from __future__ import annotations

from typing import Any

import numpy as np

from adjoint.backend import Array, Implementation
from adjoint.primitives import Shape


def like(x: Array, shape: Any) -> Array:
    """An array of another shape whose axes lie in memory in the order of x's."""
    order = sorted(range(x.ndim), key=lambda i: -abs(x.strides[i]))
    made = np.empty([shape[i] for i in order], x.dtype)
    return made.transpose(sorted(range(x.ndim), key=order.__getitem__))


def laid(x: Array, other: Array) -> Array:
    """The array with its axes in memory in the order of another one's, so that one pass goes through both in order."""
    out = like(other, x.shape)
    if out.strides == x.strides:
        return x
    out[...] = x
    return out


def _expand_dims(x: Array, *, axis: tuple[int, ...]) -> Array:
    sizes = list(x.shape)
    for i in axis:  # in order, so that each place is one of the result
        sizes.insert(i, 1)
    return x.reshape(sizes)


def _broadcast_to(x: Array, *, shape: tuple[int, ...]) -> Array:
    """A view with strides of zero: what np.broadcast_to makes, without its iterator."""
    if x.__class__ is not np.ndarray:  # a scalar, whose buffer is read-only
        return np.ndarray(shape, x.dtype, x, 0, (0,) * len(shape))
    extra = len(shape) - x.ndim
    if extra < 0 or not x.flags.c_contiguous or 0 in shape:
        return np.broadcast_to(x, shape)
    strides = [0] * extra
    for n, m, step in zip(x.shape, shape[extra:], x.strides, strict=True):
        if n != m and n != 1:
            return np.broadcast_to(x, shape)  # raises
        strides.append(step if n == m else 0)
    view: Array = np.ndarray(shape, x.dtype, x, 0, strides)
    view.flags.writeable = False
    return view


def _concat(*xs: Array, axis: int) -> Array:
    return np.concatenate(xs, axis=axis)


def _roll(x: Array, *, shift: int, axis: int) -> Array:
    """A fifth of the time of np.roll, where the array is short."""
    out = into = np.empty(x.shape, x.dtype)
    if axis:
        x, into = x.swapaxes(0, axis), out.swapaxes(0, axis)
    into[shift:] = x[:-shift]
    into[:shift] = x[-shift:]
    return out


def _pad(x: Array, *, widths: tuple[tuple[int, int], ...], value: Any) -> Array:
    shape = [n + before + after for n, (before, after) in zip(x.shape, widths, strict=True)]
    out = np.full(shape, value, dtype=x.dtype)
    out[tuple(slice(before, before + n) for n, (before, _) in zip(x.shape, widths, strict=True))] = x
    return out


def _reshape(x: Array, *, shape: Shape) -> Array:
    """NumPy copies a last axis that is broadcast element by element."""
    if x.ndim and x.shape[-1] > 1 and not x.strides[-1] and shape[-1:] != x.shape[-1:]:
        return np.repeat(x[..., 0], x.shape[-1]).reshape(shape)
    return x.reshape(shape)


def _windows(x: Array, *, axis: int, size: int) -> Array:
    return np.lib.stride_tricks.sliding_window_view(x, size, axis=axis)  # a view


IMPLEMENTATIONS: dict[str, Implementation] = {
    "reshape": _reshape,
    "broadcast_to": _broadcast_to,
    "permute_dims": lambda x, *, axes: x.transpose(axes),
    "expand_dims": _expand_dims,
    "squeeze": lambda x, *, axis: np.squeeze(x, axis),
    "concat": _concat,
    "flip": lambda x, *, axis: np.flip(x, axis),
    "roll": _roll,
    "pad": _pad,
    "tril": np.tril,
    "triu": np.triu,
    "windows": _windows,
}
