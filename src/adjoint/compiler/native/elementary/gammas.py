"""The logarithm of the gamma function and its derivative.

From 3 on by Stirling's formula (DLMF 5.11.1 and 5.11.2), whose correction is a polynomial of 1 / x^2; on 1 to 3 a
polynomial times its zeros, so that no digit is lost near these; below 1 from x + 1, and below 0 by reflection (5.5.3
and 5.5.4).
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from adjoint.compiler.native.elementary.code import Code, Value
from adjoint.compiler.native.elementary.exponential import precise_log

_FAR = 3.0  # from where on Stirling's formula is used


def _whole(c: Code, x: Value) -> tuple[Value, Value]:
    """The distance of x >= 0 from the nearest integer, and whether it is one."""
    rest = x - c.intrinsic("rint", x)
    return rest, rest.equals(0.0)


def _product(c: Code, x: Value, high: Value, low: Value) -> tuple[Value, Value]:
    """x times a sum, as a sum; where it overflows without nans."""
    product = x * high
    rest = c.fma(x, low, c.fma(x, high, -product))
    return product, c.select(abs(product) < math.inf, rest, 0.0)


def _sum(c: Code, *terms: tuple[Value, Value]) -> tuple[Value, Value]:
    high, low = terms[0]
    for other, rest in terms[1:]:
        high, error = c.two_sum(high, other)
        low = low + (error + rest)
    return high, c.select(abs(high) < math.inf, low, 0.0)


def _with_first(c: Code, name: str, u: Value) -> tuple[Value, Value]:
    """A polynomial as a sum of two, the first of which is nearly its first coefficient."""
    first, *others = c.table(name)
    square = u * u
    part = u * c.fma(c.horner(others[1::2], square), u, c.horner(others[::2], square))
    return c.fast_two_sum(first, part)


def _leading(c: Code, name: str, z: Value, count: int) -> tuple[Value, Value]:
    """A polynomial whose first so many sums, each with the coefficient larger than the rest, are sums of two."""
    coefficients = c.table(name)
    high, low = c.horner(coefficients[count:], z), c.lift(0.0)
    for first in reversed(coefficients[:count]):
        product, error = c.two_product(z, high)
        high, rest = c.fast_two_sum(first, product)
        low = c.fma(z, low, error) + rest
    return high, low


def _places(c: Code, x: Value) -> tuple[Value, Value, Value, Value]:
    """Of x > 0 whether it is far, or below 1; its distance from 2, or if below 1 from 1; and if far 1 / x."""
    far, low = ~(x < _FAR), x < 1.0
    u = c.select(low, x - 1.0, x - 2.0)
    inverse = 1.0 / c.select(far, x, _FAR)
    return far, low, c.select(far, 0.0, u), inverse


def _gammaln(c: Code, x: Value) -> tuple[Value, Value, Value, Value, Value]:
    """Of x > 0 a factor, log(x) as a sum, and a sum: the factor times that logarithm, plus the sum."""
    far, low, u, inverse = _places(c, x)
    log, log_rest = precise_log(c, x)
    correction = inverse * c.polynomial("stirling", inverse * inverse)
    constant, constant_rest = c.table("STIRLING")
    # from 3 on (x - 1/2) (log(x) - 1) + log(2 pi) / 2 - 1/2 + a correction
    factor = c.select(far, x - 0.5, c.select(low, -1.0, 0.0))
    # near 1 and 2 their distances, one of which is u, times a polynomial
    p, p_rest = _with_first(c, "gammaln", u)
    zeros, zeros_rest = c.two_product(u, u + 1.0)
    # u + 1 has no error from 1 on, and below 1 it is x itself, which u has lost
    own, own_rest = c.two_product(u, x)
    zeros, zeros_rest = c.select(low, own, zeros), c.select(low, own_rest, zeros_rest)
    near, near_rest = c.two_product(zeros, p)
    near_rest = near_rest + c.fma(zeros, p_rest, zeros_rest * p)
    high = c.select(far, constant, near)
    rest = c.select(far, constant_rest + correction, near_rest)
    return factor, log, log_rest, high, rest


def gammaln(c: Code, x: Value) -> Value:
    size = abs(x)
    factor, log, log_rest, high, rest = _gammaln(c, size)
    one = c.select(~(size < _FAR), 1.0, 0.0)
    less, less_rest = c.two_sum(log, -one)
    term = _product(c, factor, less, less_rest + log_rest)
    total, low = _sum(c, term, (high, rest))
    usual = total + low

    def reflected() -> Sequence[Value]:
        """log(gamma(-x)) = -log(gamma(x)) - log(x) - log(|sin(pi x)| / pi) of x > 0"""
        r, whole = _whole(c, size)
        distance = c.select(whole, 0.5, abs(r))
        square = distance * distance
        sine, sine_rest = c.fast_two_sum(1.0, square * c.polynomial("sine_over", square))
        s, s_rest = c.two_product(distance, sine)
        last, last_rest = precise_log(c, s)
        last_rest = last_rest + c.fma(distance, sine_rest, s_rest) / s
        value, value_rest = _sum(c, term, (log, log_rest), (high, rest), (last, last_rest))
        return [c.select(x < 0.0, c.select(whole, math.inf, -(value + value_rest)), usual)]

    (found,) = c.seldom(x < 0.0, [usual], reflected)
    found = c.select(size.equals(0.0), math.inf, c.select(size.equals(math.inf), x, found))
    return c.select(x.is_nan(), x, found)


def _digamma(c: Code, x: Value) -> tuple[Value, Value]:
    """Of x > 0, as a sum."""
    far, low, u, inverse = _places(c, x)
    log, log_rest = precise_log(c, x)
    square = inverse * inverse
    # log(x) - 1 / (2 x) - a correction
    half = 0.5 * inverse
    half_rest = half * c.fma(-inverse, x, 1.0)
    above, above_rest = c.two_sum(log, -half)
    above_rest = above_rest + log_rest - (half_rest + square * c.polynomial("digamma_far", square))
    # the distance of x, or if that is below 1 of x + 1, from the root times a polynomial
    p, p_rest = _with_first(c, "digamma", u)
    root, root_rest = c.table("DIGAMMA_ROOT")
    distance, error = c.two_sum(c.select(low, 1.0 - root, -root), x)
    error = error - root_rest
    product, product_rest = c.two_product(distance, p)
    product_rest = product_rest + c.fma(distance, p_rest, error * p)
    # less 1 / x below 1
    over = 1.0 / c.select(low, x, 1.0)
    over_rest = c.select(over < math.inf, over * c.fma(-over, x, 1.0), 0.0)
    below, below_rest = c.two_sum(-over, product)
    below_rest = c.select(abs(below) < math.inf, below_rest + (product_rest - over_rest), 0.0)
    high = c.select(far, above, c.select(low, below, product))
    return high, c.select(far, above_rest, c.select(low, below_rest, product_rest))


def digamma(c: Code, x: Value) -> Value:
    size = abs(x)
    high, rest = _digamma(c, size)
    usual = high + rest

    def reflected() -> Sequence[Value]:
        """digamma(|x|) + 1 / |x| - pi / tan(pi x)"""
        r, whole = _whole(c, x)
        r = c.select(whole, 0.5, r)
        near = abs(r)
        left = 0.5 - near
        square, other = near * near, left * left
        over = 1.0 / near
        slope, slope_rest = _leading(c, "cotangent", square, 1)
        bent, bent_rest = c.two_product(near, slope)
        steep, steep_rest = c.fast_two_sum(over, bent)
        steep_rest = steep_rest + (c.fma(near, slope_rest, bent_rest) + over * c.fma(-over, near, 1.0))
        slope, slope_rest = _leading(c, "tangent", other, 2)
        flat, flat_rest = c.two_product(left, slope)
        flat_rest = c.fma(left, slope_rest, flat_rest)
        steeper = near < 0.25
        cotangent, error = c.select(steeper, steep, flat), c.select(steeper, steep_rest, flat_rest)
        above = r > 0.0
        cotangent, error = c.select(above, -cotangent, cotangent), c.select(above, -error, error)
        inverse = 1.0 / size
        value, value_rest = _sum(c, (inverse, inverse * c.fma(-inverse, size, 1.0)), (high, rest), (cotangent, error))
        value = value + value_rest
        tiny = size < 0.25 * c.format.epsilon  # where 1 / x is all of it
        return [c.select(x < 0.0, c.select(whole, math.nan, c.select(tiny, inverse, value)), usual)]

    (found,) = c.seldom(x < 0.0, [usual], reflected)
    found = c.select(size.equals(0.0), c.copysign(math.inf, -x), found)
    found = c.select(x.equals(math.inf), math.inf, found)
    return c.select(x.is_nan(), x, found)
