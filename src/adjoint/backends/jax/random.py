"""Random numbers: those that the NumPy leaf draws."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from adjoint.backend import Array
from adjoint.backends.numpy import random

if TYPE_CHECKING:
    from adjoint.backends.jax import JAX


def _random(name: str) -> Callable[..., Array]:
    """The numbers that the NumPy leaf draws; by traced operands when the compiled function runs."""
    draw = random.IMPLEMENTATIONS[name]

    def run(B: JAX, *operands: Array, **parameters: Any) -> Array:
        if not B.traced(*operands):
            return B.from_numpy(draw(*map(B.to_numpy, operands), **parameters), copy=False)
        dtype = B.dtype(parameters["dtype"]) if "dtype" in parameters else operands[0].dtype
        result = B.jax.ShapeDtypeStruct(parameters["shape"], dtype)
        return B.jax.pure_callback(
            lambda *values: draw(*map(np.asarray, values), **parameters).astype(dtype, copy=False),
            result,
            *operands,
            vmap_method="sequential",
        )

    return run


IMPLEMENTATIONS = {name: _random(name) for name in random.IMPLEMENTATIONS}
