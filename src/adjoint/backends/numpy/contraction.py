"""Products and convolutions on NumPy."""

from __future__ import annotations

import numpy as np

from adjoint.backend import Array, Implementation


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


IMPLEMENTATIONS: dict[str, Implementation] = {
    "matmul": _matmul,
}
