"""Products and convolutions on NumPy."""

from __future__ import annotations

import numpy as np

from adjoint.backend import Array, Implementation
from adjoint.backends import convolution


def _matmul(x: Array, y: Array) -> Array:
    """Stacks of outer products, as per-example gradients are, are multiplications, which BLAS is not asked for."""
    if x.shape[-1] == 1 and x.ndim > 2 and y.shape[-2] == 1:
        return np.multiply(x, y)
    return np.matmul(x, y)


IMPLEMENTATIONS: dict[str, Implementation] = {
    "matmul": _matmul,
    "conv": lambda x, weight, **how: convolution.conv(np, x, weight, **how),
    "conv_input": lambda g, weight, **how: convolution.conv_input(np, g, weight, **how),
    "conv_weight": lambda x, g, **how: convolution.conv_weight(np, x, g, **how),
}
