"""Products and convolutions on NumPy."""

from __future__ import annotations

import math

import numpy as np

from adjoint.backend import Array, Implementation

_BLOCK = 1 << 18  # elements of a result: a megabyte, or two


def _matmul(x: Array, y: Array) -> Array:
    """Stacks of outer products, as per-example gradients are, are multiplications, which BLAS is not asked for.

    Stacks of inner products it is asked for one by one, without what a matrix product takes to begin. A stack times
    one matrix is one product.
    """
    if x.ndim == 2:
        return np.matmul(x, y)
    if x.shape[-1] == y.shape[-2] == 1:
        return np.multiply(x, y)
    if x.shape[-2] == y.shape[-1] == 1 and x.dtype.kind == "f" and x.dtype.itemsize > 2:
        return np.vecdot(x[..., 0, :], y[..., 0])[..., None, None]
    if y.ndim == 2 and x.size and x.flags.c_contiguous:
        return np.matmul(x.reshape(-1, x.shape[-1]), y).reshape(*x.shape[:-1], y.shape[1])
    return np.matmul(x, y)


def _linear(x: Array, weight: Array, bias: Array) -> Array:
    """In blocks of rows, whose products are still in the cache when the bias is added to them."""
    count, width = math.prod(x.shape[:-1]), len(weight)
    weight = weight.T
    if count * width <= _BLOCK:
        out = _matmul(x, weight)
        return np.add(out, bias, out=out)
    rows, out, step = x.reshape(count, x.shape[-1]), np.empty((count, width), x.dtype), max(1, _BLOCK // width)
    for start in range(0, count, step):
        block = slice(start, start + step)
        part = np.matmul(rows[block], weight, out=out[block])
        np.add(part, bias, out=part)
    return out.reshape(*x.shape[:-1], width)


IMPLEMENTATIONS: dict[str, Implementation] = {
    "matmul": _matmul,
    "linear": _linear,
}
