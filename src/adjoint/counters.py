"""Bounds of what steps of a loop compute of their numbers, and whether arrays compute it as Python does.

Python's integers have as many digits as they need, and its divisions by zero are errors. Where an array would give
something else, the steps are to run one by one, with Python's numbers.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

from adjoint import errors

Bounds = tuple[Any, Any]  # the least and the largest, integers or floats

_INTEGERS = 1 << 63  # the first one that 64 bits do not hold
_EXACT = 1 << 53  # up to which floats hold each integer


def _corners(run: Callable[[Any, Any], Any]) -> Callable[[Bounds, Bounds], Bounds]:
    """The bounds of what is largest and least at bounds of its operands."""

    def bounds(x: Bounds, y: Bounds) -> Bounds:
        found = [run(a, b) for a in x for b in y]
        return min(found), max(found)

    return bounds


def _quotient(x: Bounds, y: Bounds) -> Bounds:
    _refuse_zero(y)
    if any([abs(v) > _EXACT for v in (*x, *y)]):
        raise ArithmeticError("an integer of so many digits is divided")
    return _corners(operator.truediv)(x, y)


def _floored(x: Bounds, y: Bounds) -> Bounds:
    _refuse_zero(y)
    return _corners(operator.floordiv)(x, y)


def _remainder(x: Bounds, y: Bounds) -> Bounds:
    _refuse_zero(y)
    return min(y[0], 0), max(y[1], 0)


def _power(x: Bounds, y: Bounds) -> Bounds:
    whole = all([isinstance(v, int) for v in (*x, *y)])
    if (whole or x[0] <= 0 <= x[1]) and y[0] < 0:
        raise ArithmeticError("a negative power")
    if x[0] < 0 and not all([isinstance(v, int) for v in y]):
        raise ArithmeticError("a root of a negative number")
    largest = max(map(abs, x))
    if whole and y[1] * (int(largest).bit_length() - 1) > 64:
        raise ArithmeticError("a power of too many digits")
    high = max([abs(v) ** k for v in x for k in y])
    return (-high if x[0] < 0 else high * 0), high


def _shifted(x: Bounds, y: Bounds) -> Bounds:
    if y[0] < 0 or y[1] > 63:
        raise ArithmeticError("a shift by so much")
    return _corners(operator.lshift)(x, y)


def _unshifted(x: Bounds, y: Bounds) -> Bounds:
    if y[0] < 0 or y[1] > 63:
        raise ArithmeticError("a shift by so much")
    return _corners(operator.rshift)(x, y)


def _of_bits(x: Bounds, y: Bounds) -> Bounds:
    digits = max([abs(v).bit_length() for v in (*x, *y)])
    return -(1 << digits), (1 << digits) - 1


def _refuse_zero(y: Bounds) -> None:
    if y[0] <= 0 <= y[1]:
        raise ArithmeticError("a division by what may be zero")


def _compared(x: Bounds, y: Bounds) -> Bounds:
    if any([isinstance(v, float) for v in (*x, *y)]) and any([abs(v) > _EXACT for v in (*x, *y) if isinstance(v, int)]):
        raise ArithmeticError("an integer of so many digits is compared")
    return 0, 1


_BOUNDS: dict[str, Callable[..., Bounds]] = {
    "add": lambda x, y: (x[0] + y[0], x[1] + y[1]),
    "subtract": lambda x, y: (x[0] - y[1], x[1] - y[0]),
    "multiply": _corners(operator.mul),
    "divide": _quotient,
    "floor_divide": _floored,
    "remainder": _remainder,
    "pow": _power,
    "bitwise_left_shift": _shifted,
    "bitwise_right_shift": _unshifted,
    "bitwise_and": _of_bits,
    "bitwise_or": _of_bits,
    "bitwise_xor": _of_bits,
    "negative": lambda x: (-x[1], -x[0]),
    "abs": lambda x: (0 if x[0] <= 0 <= x[1] else min(map(abs, x)), max(map(abs, x))),
    "bitwise_invert": lambda x: (~x[1], ~x[0]),
    **dict.fromkeys(("less", "less_equal", "greater", "greater_equal", "equal", "not_equal"), _compared),
}


DIVIDING = ("divide", "floor_divide", "remainder")


def bounds_of(name: str, *operands: Bounds) -> Bounds | None:
    """The bounds of a primitive's result, of operands with these; None for what is none of Python's operators.

    Raises TrackedError where an array would give something else than Python.
    """
    run = _BOUNDS.get(name)
    if run is None:
        return None
    try:
        low, high = run(*operands)
        if isinstance(low, int) and isinstance(high, int) and not -_INTEGERS <= low <= high < _INTEGERS:
            raise ArithmeticError("an integer of too many digits")
    except (ArithmeticError, TypeError) as error:
        raise errors.TrackedError(
            f"{name}: the number of a step is computed with as an array, and Python's number may be another one: "
            f"{error}; make it a float before, as in i * 1.0"
        ) from None
    return low, high
