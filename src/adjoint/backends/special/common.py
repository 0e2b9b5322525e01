"""What the kernels of special functions share."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

Kernel = Callable[..., Any]


def kernel(function: Kernel) -> Kernel:
    """A function of broadcast float64 arrays, for real floating arrays and Python scalars: computed in double.

    All branches are computed and one is chosen, so that what is not chosen may overflow or be nan. What is nan in an
    operand is nan in the result.
    """

    @functools.wraps(function)
    def run(xp: Any, *operands: Any, **parameters: Any) -> Any:
        dtype = next(x.dtype for x in operands if hasattr(x, "dtype"))
        arrays = [xp.asarray(x, dtype=xp.float64) for x in operands]
        if len(arrays) > 1:
            arrays = list(xp.broadcast_arrays(*arrays))
        out = function(xp, *arrays, **parameters)
        for x in arrays:
            out = xp.where(xp.isnan(x), x, out)
        return xp.asarray(out, dtype=dtype)

    return run


def either(xp: Any, condition: Any, first: Any, second: Any, x: Any, neutral: float) -> Any:
    """first(x) where the condition holds, else second(x); both are defined at the neutral number.

    NumPy computes for each element the one it needs, where all libraries could only compute both.
    """
    if xp is not np:
        filled = xp.full_like(x, neutral)
        return xp.where(condition, first(xp.where(condition, x, filled)), second(xp.where(condition, filled, x)))
    count = np.count_nonzero(condition)
    if count == x.size or not count:
        return first(x) if count else second(x)
    out = np.empty_like(x)
    for f, chosen in ((first, condition), (second, np.logical_not(condition))):
        places = np.nonzero(chosen)
        out[places] = f(x[places])
    return out


def anywhere(xp: Any, condition: Any) -> bool:
    """Whether a condition holds for some element; True for a library that traces, where nobody knows."""
    return hasattr(xp, "traced_loop") or bool(xp.any(condition))


def while_loop(xp: Any, condition: Callable[[Any], Any], body: Callable[[Any], Any], state: Any) -> Any:
    """The state after the last pass through the body, by the library's own loop where it traces functions."""
    if hasattr(xp, "traced_loop"):
        return xp.traced_loop(condition, body, state)
    while condition(state):
        state = body(state)
    return state


def horner(coefficients: tuple[float, ...], x: Any) -> Any:
    """The polynomial in x, the coefficients from the constant one on."""
    total = x * coefficients[-1] + coefficients[-2]
    for coefficient in coefficients[-3::-1]:
        total *= x
        total += coefficient
    return total


# exp(s) - 1 - s over s^2, for |s| <= 1/4: Taylor coefficients
_EXCESS = tuple(functools.reduce(lambda product, i: product / i, range(1, k + 1), 1.0) for k in range(2, 14))


def excess(xp: Any, s: Any) -> Any:
    """exp(s) - 1 - s, without cancellation."""
    near, small = small_excess(xp, s)
    return xp.where(near, small, xp.expm1(s) - s)


def small_excess(xp: Any, s: Any) -> tuple[Any, Any]:
    """Whether |s| <= 1/4, and exp(s) - 1 - s where it is."""
    near = xp.abs(s) <= 0.25
    s = xp.where(near, s, xp.zeros_like(s))
    return near, s * s * horner(_EXCESS, s)


def log_ratio(xp: Any, x: Any, y: Any) -> Any:
    """log(x / y), accurate also where the ratio is near 1."""
    ratio = x / y
    near = (ratio > 0.5) & (ratio < 2.0)
    return xp.where(near, xp.log1p(xp.where(near, (x - y) / y, 0.0 * ratio)), xp.log(ratio))
