"""Operands of cases, and cases of many primitives at once.

Values stay away from points where a function is singular, jumps or has a kink, and compared values
are well apart, so that a numerical derivative makes sense in every floating operand.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Case:
    """One call: operands in order, NumPy arrays or Python scalars, and the parameters by name."""

    operands: tuple[Any, ...] = ()
    parameters: dict[str, Any] = field(default_factory=dict)

    def __str__(self) -> str:
        operands = [f"{x.dtype}{list(x.shape)}" if isinstance(x, np.ndarray) else repr(x) for x in self.operands]
        return ",".join(operands + [f"{name}={value}" for name, value in self.parameters.items()])


_rng = np.random.default_rng(20240229)


# --- operands ---


def between(low: float, high: float) -> Callable[..., Array]:
    """A maker of uniform values of a shape."""
    return lambda *shape: np.asarray(_rng.uniform(low, high, shape))


def either_sign(low: float, high: float) -> Callable[..., Array]:
    """A maker of values whose sizes are uniform."""
    return lambda *shape: np.asarray(_rng.uniform(low, high, shape) * _rng.choice([-1.0, 1.0], shape))


real = either_sign(0.3, 2.0)
positive = between(0.3, 2.5)
unit = either_sign(0.1, 0.8)


def cplx(*shape: int) -> Array:
    return np.asarray(real(*shape) + 1j * real(*shape))


def off_integers(*shape: int) -> Array:
    """Values away from integers and halves."""
    return np.asarray(_rng.integers(-3, 3, shape) + _rng.uniform(0.1, 0.4, shape))


def distinct(*shape: int) -> Array:
    """Values at least 0.2 apart, in no order, none near zero."""
    count = int(np.prod(shape))
    values = 0.3 * (np.arange(count) - count // 2) + 0.1
    return np.asarray(_rng.permutation(values).reshape(shape) + _rng.uniform(-0.05, 0.05, shape))


def grid(offset: float) -> Callable[..., Array]:
    """A maker of multiples of 0.6 plus an offset: those of two offsets never tie."""
    return lambda *shape: np.asarray(0.6 * _rng.integers(-3, 3, shape) + offset)


def ints(*shape: int) -> Array:
    return np.asarray(_rng.integers(-5, 6, shape))


def wholes(*shape: int) -> Array:
    """Small whole numbers as floats, from 1."""
    return natural(*shape).astype(np.float64)


def shuffled(*shape: int) -> Array:
    """The integers from 0, in no order."""
    return np.asarray(_rng.permutation(int(np.prod(shape))).reshape(shape))


def natural(*shape: int) -> Array:
    return np.asarray(_rng.integers(1, 5, shape))


def bools(*shape: int) -> Array:
    return np.asarray(_rng.integers(0, 2, shape, dtype=np.int64) == 1)


# --- cases of many primitives ---

SHAPES: list[tuple[int, ...]] = [(), (0,), (1,), (3,), (2, 3)]
PAIRS: list[tuple[tuple[int, ...], tuple[int, ...]]] = [
    ((), ()), ((3,), (3,)), ((2, 3), (3,)), ((), (2, 2)), ((2, 1), (1, 3)), ((1,), (2, 2)), ((0, 3), (1, 3)),
    ((1, 2, 1), (3, 1, 2)),
]  # fmt: skip


def unary(*makers: Callable[..., Array]) -> list[Case]:
    return [Case((make(*shape),)) for make in makers for shape in SHAPES]


def binary(left: Callable[..., Array], right: Callable[..., Array], *scalars: Any) -> list[Case]:
    """Broadcasting patterns, and each scalar on either side."""
    cases = [Case((left(*x), right(*y))) for x, y in PAIRS]
    cases += [Case((left(2, 2), scalar)) for scalar in scalars]
    return cases + [Case((scalar, right(3))) for scalar in scalars]


AXES: list[tuple[tuple[int, ...], tuple[int, ...]]] = [
    ((), ()), ((3,), (0,)), ((1,), (0,)), ((2, 3), (0,)), ((2, 3), (1,)), ((2, 3), (0, 1)), ((2, 3), ()),
    ((2, 3, 2), (0, 2)), ((0, 3), (1,)),
]  # fmt: skip
EMPTY_AXES: list[tuple[tuple[int, ...], tuple[int, ...]]] = [((0,), (0,)), ((2, 0), (1,))]


def reductions(make: Callable[..., Array], axes: Any = None) -> list[Case]:
    return [
        Case((make(*shape),), {"axis": axis, "keepdims": keepdims})
        for shape, axis in axes or [*AXES, *EMPTY_AXES]
        for keepdims in (False, True)
    ]


LINES: list[tuple[tuple[int, ...], int]] = [
    ((3,), 0),
    ((1,), 0),
    ((2, 3), 0),
    ((2, 3), 1),
    ((0, 3), 1),
    ((2, 2, 2), 1),
]


def lines(*makers: Callable[..., Array], **parameters: Any) -> list[Case]:
    return [Case(tuple([make(*shape) for make in makers]), {"axis": axis, **parameters}) for shape, axis in LINES]


# --- matrices ---


def regular(make: Callable[..., Array]) -> Callable[..., Array]:
    """A maker of square matrices with a good condition number."""

    def matrices(*shape: int) -> Array:
        return 0.5 * make(*shape) + 2.5 * np.eye(shape[-1]) if shape[-1] else make(*shape)

    return matrices


def definite(make: Callable[..., Array]) -> Callable[..., Array]:
    """A maker of symmetric or Hermitian positive definite matrices."""

    def matrices(*shape: int) -> Array:
        a = make(*shape)
        return np.asarray(np.matmul(a, np.conj(np.swapaxes(a, -1, -2))) + np.eye(shape[-1]))

    return matrices


SQUARES = [(1, 1), (2, 2), (3, 3), (2, 2, 2), (0, 2, 2), (0, 0)]


def squares(*makers: Callable[..., Array]) -> list[Case]:
    return [Case((make(*shape),)) for make in makers for shape in SQUARES]
