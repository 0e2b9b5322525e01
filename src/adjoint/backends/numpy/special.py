"""Special functions on NumPy: the kernels of all array libraries, block by block to stay in the cache."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from adjoint.backend import Array, Implementation
from adjoint.backends.special import KERNELS

_BLOCK = 4096  # elements: the kernels hold about ten arrays at a time


def _on_numpy(kernel: Implementation) -> Implementation:
    def run(*operands: Any, **parameters: Any) -> Array:
        with np.errstate(all="ignore"):  # of branches that are not chosen
            arrays = list(np.broadcast_arrays(*operands)) if len(operands) > 1 else list(operands)
            if arrays[0].size <= 2 * _BLOCK:
                return kernel(np, *operands, **parameters)
            shape, dtype = arrays[0].shape, next(x.dtype for x in operands if isinstance(x, (np.ndarray, np.generic)))
            flat, out = [x.reshape(-1) for x in arrays], np.empty(arrays[0].size, dtype)
            for start in range(0, out.size, _BLOCK):
                block = slice(start, start + _BLOCK)
                out[block] = kernel(np, *[x[block] for x in flat], **parameters)
            return out.reshape(shape)

    return functools.wraps(kernel)(run)


IMPLEMENTATIONS: dict[str, Implementation] = {name: _on_numpy(kernel) for name, kernel in KERNELS.items()}
