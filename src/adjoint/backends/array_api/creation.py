"""What is made of numbers, and random numbers."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from adjoint.backend import Array
from adjoint.backends.numpy import random
from adjoint.primitives import DType, Shape

if TYPE_CHECKING:
    from adjoint.backends.array_api import ArrayAPI


def _full(B: ArrayAPI, *, shape: Shape, value: Any, dtype: DType) -> Array:
    return B.xp.full(shape, value, dtype=B.dtype(dtype))


def _arange(B: ArrayAPI, *, start: float, stop: float, step: float, dtype: DType) -> Array:
    return B.xp.arange(start, stop, step, dtype=B.dtype(dtype))


def _linspace(B: ArrayAPI, *, start: complex, stop: complex, num: int, endpoint: bool, dtype: DType) -> Array:
    return B.xp.linspace(start, stop, num, endpoint=endpoint, dtype=B.dtype(dtype))


def _eye(B: ArrayAPI, *, rows: int, columns: int, k: int, dtype: DType) -> Array:
    return B.xp.eye(rows, columns, k=k, dtype=B.dtype(dtype))


def _random(function: Callable[..., Any]) -> Callable[..., Array]:
    """The numbers that the NumPy leaf draws, so that a key means the same everywhere."""

    def run(B: ArrayAPI, *operands: Array, **parameters: Any) -> Array:
        return B.from_numpy(function(*map(B.to_numpy, operands), **parameters), copy=False)

    return run


# called with the backend, for its dtypes
TYPED: dict[str, Callable[..., Any]] = {
    "full": _full,
    "arange": _arange,
    "linspace": _linspace,
    "eye": _eye,
    **{name: _random(run) for name, run in random.IMPLEMENTATIONS.items()},
}
