"""Remainders and quotients rounded down, to the last bit: a remainder is a floating-point number.

Multiples of c = 2^k |y| are taken from |x|, as many as a significand has bits for at once, with the largest k first. If
c is not above r, then r and q c are multiples of the last place of c, and so is r - q c, which fma gives without error.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from adjoint.compiler.native.elementary.code import Code, Value


def _exponent(c: Code, x: Value) -> Value:
    """floor(log2(x)) of positive numbers; of zero less than that of all others."""
    form = c.format
    tiny = x < form.normal
    bits = c.pattern(c.select(tiny, x * 2.0**form.bits, x))
    offset = 2.0**form.stored + form.bias
    exponent = c.number((bits >> form.stored) | form.bits_of(2.0**form.stored))
    return exponent - c.select(tiny, offset + form.bits, offset)


def _rest(c: Code, x: Value, y: Value, quotient: Value) -> Value:
    """x modulo y of numbers that are not negative, with x / y rounded: it may be one too large, but not too small."""
    rest = c.fma(-c.intrinsic("trunc", quotient), y, x)
    rest = c.select(rest < 0.0, rest + y, rest)
    return c.select(x < y, x, rest)  # of an infinite y too


def fmod(c: Code, x: Value, y: Value) -> Value:
    size, by = abs(x), abs(y)
    quotient = size / by
    far = ~(quotient < 2.0**c.format.bits) & (size < math.inf) & (by > 0.0) & (by < math.inf)

    def far_rest() -> Sequence[Value]:
        least = c.select(far, by, 1.0)

        def step(state: Sequence[Value]) -> tuple[Sequence[Value], Value]:
            (left,) = state
            more = _exponent(c, left) - _exponent(c, least) - (c.format.bits - 2.0)
            multiple = c.scaled(least, c.clipped(more, 0.0, None))
            return [_rest(c, left, multiple, left / multiple)], more > 0.0

        (left,) = c.repeated([c.select(far, size, 0.0)], step)
        return [c.select(far, left, usual)]

    usual = _rest(c, size, by, quotient)
    (rest,) = c.seldom(far, [usual], far_rest)
    return c.copysign(rest, x)


def remainder(c: Code, x: Value, y: Value) -> Value:
    """With the sign of y."""
    rest = fmod(c, x, y)
    moved = c.select((y < 0.0) ^ (rest < 0.0), rest + y, rest)
    return c.select(rest.equals(0.0), c.copysign(rest, y), moved)


def floor_divide(c: Code, x: Value, y: Value) -> Value:
    """As CPython and NumPy have it, (x - remainder) / y; by zero, and where one is infinite, the quotient."""
    rest, quotient = fmod(c, x, y), x / y
    whole = (x - rest) / y
    below = ((y < 0.0) ^ (rest < 0.0)) & ~rest.equals(0.0)
    whole = c.select(below, whole - 1.0, whole)
    floor = c.intrinsic("floor", whole)
    floor = c.select(whole - floor > 0.5, floor + 1.0, floor)
    floor = c.select(whole.equals(0.0), c.copysign(0.0, quotient), floor)
    plain = y.equals(0.0) | abs(x).equals(math.inf) | abs(y).equals(math.inf)
    return c.select(plain, quotient, floor)
