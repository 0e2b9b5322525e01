"""Arrays from nothing, and random numbers: those that the NumPy leaf draws."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from adjoint.backends.numpy import random
from adjoint.backends.reference.places import Line, Values, places
from adjoint.backends.reference.scalars import Number
from adjoint.primitives import DType, Shape

if TYPE_CHECKING:
    from adjoint.backends.reference import Reference


def _full(B: Reference, *, shape: Shape, value: Number, dtype: DType) -> Line:
    return [value] * math.prod(shape)


def _arange(B: Reference, *, start: Number, stop: Number, step: Number, dtype: DType) -> Line:
    count = max(0, math.ceil((stop - start) / step))
    first, difference = B.scalars.convert(start, dtype), B.scalars.convert(step, dtype)
    return [first + i * difference for i in range(count)]


def _linspace(B: Reference, *, start: Number, stop: Number, num: int, endpoint: bool, dtype: DType) -> Line:
    first, last = B.scalars.convert(start, dtype), B.scalars.convert(stop, dtype)
    steps = num - 1 if endpoint else num
    return [first + (last - first) * i / steps if i else first for i in range(num)]


def _eye(B: Reference, *, rows: int, columns: int, k: int, dtype: DType) -> Line:
    return [int(j - i == k) for i, j in places((rows, columns))]


def _random(function: Callable[..., Any]) -> Callable[..., Line]:
    """The numbers that the NumPy leaf draws."""

    def run(B: Reference, *operands: Values, **parameters: Any) -> Line:
        return function(*map(B.to_numpy, operands), **parameters).reshape(-1).tolist()  # type: ignore[no-any-return]

    return run


IMPLEMENTATIONS: dict[str, Callable[..., Any]] = {
    "full": _full,
    "arange": _arange,
    "linspace": _linspace,
    "eye": _eye,
    **{name: _random(run) for name, run in random.IMPLEMENTATIONS.items()},
}
