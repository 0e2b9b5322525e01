"""Functions of complex numbers where libraries leave the array API standard: at infinities, nan and signed zeros.

A repair takes the parts of the argument, x and y, and those of a library's result, and gives the parts of the
standard's result. What is finite and not zero it hands on. It is called with a namespace, and branches on no value.
https://data-apis.org/array-api/latest/API_specification/elementwise_functions.html
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from adjoint.backend import Array

Parts = tuple[Array, Array]
Repair = Callable[[Any, Array, Array, Array, Array], Parts]


def log1p_size(xp: Any, x: Array, y: Array) -> Array:
    """The real part of log1p of small numbers, of which none is lost in 1 + x: 2 log |1 + z| is log1p(2 x + |z|^2)."""
    return 0.5 * xp.log1p(x * (2.0 + x) + y * y)


def _size(xp: Any, x: Array, y: Array, re: Array, im: Array) -> Parts:
    """Sizes and their logarithms are infinite where a part is, also beside a nan."""
    return xp.where(xp.isinf(x) | xp.isinf(y), math.inf, re), im


def _exponential(least: float) -> Repair:
    """exp and expm1: where the angle is lost, the size is the least, or infinite."""

    def repair(xp: Any, x: Array, y: Array, re: Array, im: Array) -> Parts:
        lost = xp.isinf(x) & ~xp.isfinite(y)
        infinite = lost & (x > 0)
        re = xp.where(infinite, math.inf, xp.where(lost, least, re))
        return re, xp.where(infinite, math.nan, xp.where(lost, 0.0, xp.where(y == 0, y, im)))

    return repair


def _odd(large: bool) -> Repair:
    """sinh, whose real part is `large` beside a lost angle where x is, and tanh: zero only where x is.

    Beside an infinite x the imaginary part of tanh is a zero of y's sign, and not of that of sin(2 y), as in C.
    """

    def repair(xp: Any, x: Array, y: Array, re: Array, im: Array) -> Parts:
        infinite = xp.isinf(x)
        lost = ((x == 0) | infinite if large else x == 0) & ~xp.isfinite(y)
        im = im if large else xp.where(infinite, xp.copysign(0.0 * im, y), im)
        return xp.where(lost, x, re), xp.where(lost, math.nan, xp.where(y == 0, y, im))

    return repair


def _cosh(xp: Any, x: Array, y: Array, re: Array, im: Array) -> Parts:
    none, lost = x == 0, ~xp.isfinite(y)
    infinite = xp.isinf(x) & lost
    im = xp.where(y == 0, xp.where(xp.signbit(x), -y, y), im)
    re = xp.where(none & lost, math.nan, xp.where(infinite, math.inf, re))
    return re, xp.where(none & lost, 0.0, xp.where(infinite, math.nan, im))


def _sqrt(xp: Any, x: Array, y: Array, re: Array, im: Array) -> Parts:
    infinite = xp.isinf(y)
    im = xp.where(infinite | (x == -math.inf), math.inf, im)
    return xp.where(infinite | (x == math.inf), math.inf, re), xp.copysign(im, y)


def _acos(xp: Any, x: Array, y: Array, re: Array, im: Array) -> Parts:
    return xp.where((x == 0) & xp.isnan(y), math.pi / 2, re), xp.copysign(im, -y)


def _acosh(xp: Any, x: Array, y: Array, re: Array, im: Array) -> Parts:
    return re, xp.copysign(xp.where((x == 0) & xp.isnan(y), math.pi / 2, im), y)


def _asinh(xp: Any, x: Array, y: Array, re: Array, im: Array) -> Parts:
    return xp.copysign(re, x), xp.where(y == 0, y, im)


def _atanh(xp: Any, x: Array, y: Array, re: Array, im: Array) -> Parts:
    beside = xp.isnan(y)
    re = xp.where((x == 0) & beside, x, re)
    return re, xp.where(beside | (xp.isnan(x) & ~xp.isinf(y)), math.nan, im)


def _sign(xp: Any, x: Array, y: Array, re: Array, im: Array) -> Parts:
    """Parts have the signs of the argument's; of zero they are zeros without a sign."""
    none = (x == 0) & (y == 0)
    return xp.where(none, 0.0, xp.copysign(re, x)), xp.where(none, 0.0, xp.copysign(im, y))


def _turned(repair: Repair) -> Repair:
    """A circular function from the hyperbolic one: sin z is -i sinh(i z)."""

    def turned(xp: Any, x: Array, y: Array, re: Array, im: Array) -> Parts:
        re, im = repair(xp, -y, x, -im, re)
        return im, -re

    return turned


REPAIRS: dict[str, Repair] = {
    **dict.fromkeys("abs log log1p log2 log10".split(), _size),
    "exp": _exponential(0.0),
    "expm1": _exponential(-1.0),
    "sinh": _odd(True),
    "cosh": _cosh,
    "tanh": _odd(False),
    "sin": _turned(_odd(True)),
    "cos": lambda xp, x, y, re, im: _cosh(xp, -y, x, re, im),
    "tan": _turned(_odd(False)),
    "sqrt": _sqrt,
    "acos": _acos,
    "acosh": _acosh,
    "asin": _turned(_asinh),
    "asinh": _asinh,
    "atan": _turned(_atanh),
    "atanh": _atanh,
    "sign": _sign,
}
