"""Arrays out of nothing, on NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np

from adjoint.backend import Array, Implementation
from adjoint.primitives import DType


def _full(*, shape: tuple[int, ...], value: Any, dtype: DType) -> Array:
    # zeros come untouched from the operating system, and cost only where they are used
    if value.__class__ is int and value == 0:
        return np.zeros(shape, dtype=dtype)
    out = np.empty(shape, dtype)  # as np.full does, at a third of the time for few elements
    out.fill(value)
    return out


IMPLEMENTATIONS: dict[str, Implementation] = {
    "full": _full,
    "arange": lambda *, start, stop, step, dtype: np.arange(start, stop, step, dtype=dtype),
    "linspace": lambda *, start, stop, num, endpoint, dtype: np.linspace(start, stop, num, endpoint, dtype=dtype),
    "eye": lambda *, rows, columns, k, dtype: np.eye(rows, columns, k, dtype=dtype),
}
