"""Exponentials, logarithms and what follows from them.

W. J. Cody and W. Waite, Software Manual for the Elementary Functions, 1980; P. T. P. Tang, 1989 and 1990; J.-M. Muller,
Elementary Functions, 2016.
"""

from __future__ import annotations

import math

import numpy as np

from adjoint.compiler.native.elementary.code import Code, Value

# below the first exp is 0, above the second infinite
_RANGE = {"double": (-746.0, 710.0), "float": (-104.0, 89.0)}
# powers of two as products of a single and of 1 plus what is missing
_POWERS = [2.0 ** (k / 16.0) for k in range(16)]
_ROUNDED = [float(np.float32(x)) for x in _POWERS]
_SIXTEENTHS = _ROUNDED, [x / y - 1.0 for x, y in zip(_POWERS, _ROUNDED, strict=True)]
_ONE = {"double": 40.0, "float": 20.0}  # where tanh of half of it is 1


def reduced(c: Code, x: Value, low: Value | None = None) -> tuple[Value, Value]:
    """n and r with x = n log(2) + r and |r| <= log(2) / 2; `low` is added to x."""
    first, last = c.table("LN2")
    n, _ = c.rounded(x, 1.0 / math.log(2.0))
    r = c.fma(n, -first, x)
    if low is not None:
        r = r + low
    return n, c.fma(n, -last, r)


def exp_reduced(c: Code, r: Value) -> Value:
    """exp(r) - 1, exact enough to be added to 1."""
    return c.fma(r * r, c.polynomial("exp", r), r)


def exp_part(c: Code, r: Value) -> Value:
    """exp(r) - 1 - r"""
    return r * r * c.polynomial("exp", r)


def exp_in_parts(c: Code, x: Value, low: Value) -> tuple[Value, Value, Value]:
    """exp(x + low) = 2^n (high + rest), and n."""
    clipped = c.clipped(x, *_RANGE[c.kind])
    n, r = reduced(c, clipped, low)
    first, last = c.table("LN2")
    error = c.fma(n, -last, (c.fma(n, -first, clipped) - r) + low)
    total, rest = c.fast_two_sum(1.0, r)
    high, more = c.fast_two_sum(total, exp_part(c, r))
    return high, more + (rest + error), n


def exp(c: Code, x: Value, low: Value | None = None, high: bool = True) -> Value:
    """2^n exp(r), for x + low if there is a second part; not `high` says that no x is positive."""
    if c.has_pieces and low is None:
        return _exp_by_sixteenths(c, x, high)
    lowest, highest = _RANGE[c.kind]
    n, r = reduced(c, c.clipped(x, lowest, highest if high else None), low)
    power = 1.0 + exp_reduced(c, r)
    return c.scaled(c.select(x < lowest, 0.0, power), n)  # zeros at once: to round to one takes a processor long


def _exp_by_sixteenths(c: Code, x: Value, high: bool) -> Value:
    """The same with n a multiple of 1 / 16, of which the part behind the point has its power in a table."""
    lowest, highest = _RANGE[c.kind]
    first, last = c.table("LN2")
    clipped = c.clipped(x, None, highest if high else None)
    magic = c.format.magic / 16.0
    shifted = c.fma(clipped, 1.0 / math.log(2.0), magic)
    n = shifted - magic
    r = c.fma(n, -last, c.fma(n, -first, clipped))
    part, rest = (c.picked(table, c.pattern(shifted)) for table in _SIXTEENTHS)
    power = c.fma(part, c.fma(c.horner((1.0, *c.table("exp_near")), r), r, rest), part)
    return c.scaled(c.select(~(x < lowest), power, 0.0), n)  # which takes the integer below n


def half_exp(c: Code, x: Value) -> Value:
    """exp(x) / 2 for x >= 0, which overflows where that does."""
    n, r = reduced(c, c.clipped(x, None, _RANGE[c.kind][1] + 1.0))
    return c.scaled(1.0 + exp_reduced(c, r), n - 1.0)


def expm1(c: Code, x: Value) -> Value:
    """2^n (exp(r) - 1) + (2^n - 1), in halves: 2^n may overflow where the result does not."""
    low = -(c.format.bits + 3) * math.log(2.0)  # where it is -1
    clipped = c.clipped(x, low, _RANGE[c.kind][1])
    n, r = reduced(c, clipped)
    # r has been rounded, which counts where 2^n - 1 cancels most of it
    first, last = c.table("LN2")
    error = c.fma(n, -last, c.fma(n, -first, clipped) - r)
    half = c.power_of_two(c.pattern((n - 1.0) + c.format.magic))
    total, rest = c.two_sum(half - 0.5, half * r)
    y = total + c.fma(half, exp_part(c, r) + error, rest)
    # half of a subnormal number has no last bit
    return c.select(abs(x) < c.format.epsilon / 4, x, y + y)


def _expit_below(c: Code, x: Value) -> Value:
    """expit(-|x|): t / (1 + t) of t = exp(-|x|), which does not overflow.

    The quotient's error is the rest, t - q (1 + t), over 1 + t. Since q is half of t or more, t - q is exact; where an
    estimate puts it a little below, what is rounded away of that is at most a unit in the last place of the result.
    """
    t = exp(c, -abs(x), high=False)
    inverse = c.estimate(1.0 + t)
    quotient = t * inverse
    return c.fma(c.fma(-quotient, t, t - quotient), inverse, quotient)


def expit(c: Code, x: Value) -> Value:
    below = _expit_below(c, x)
    return c.select(x < 0.0, below, 1.0 - below)


def expit_pullback(c: Code, g: Value, x: Value) -> Value:
    """g times expit(x) expit(-x), of which one is below a half, and the other one is 1 less that."""
    below = _expit_below(c, x)
    return g * (below * (1.0 - below))


def tanh(c: Code, x: Value) -> Value:
    """A polynomial up to 0.625, and 1 - 2 / (exp(2 |x|) + 1); or polynomials in pieces."""
    size = abs(x)
    if c.has_pieces:
        return c.copysign(c.in_pieces("tanh_pieces", size, doubles=True), x)
    square = x * x
    near = c.fma(x * square, c.polynomial("tanh", square), x)
    n, r = reduced(c, c.clipped(size + size, None, _ONE[c.kind]))
    far = 1.0 - 2.0 * c.inverse((1.0 + exp_reduced(c, r)) * c.power_of_two(c.pattern(n + c.format.magic)) + 1.0)
    return c.copysign(c.select(size < 0.625, near, far), x)


def sinh(c: Code, x: Value) -> Value:
    size = abs(x)
    square = x * x
    near = c.fma(x * square, c.polynomial("sinh", square), x)
    half = half_exp(c, size)
    return c.select(size < 1.0, near, c.copysign(half - 0.25 / half, x))


def cosh(c: Code, x: Value) -> Value:
    half = half_exp(c, abs(x))
    return half + 0.25 / half


# --- logarithms ----------------------------------------------------------------------------------


class Logarithm:
    """log(x) = e log(2) + f - t, of x = 2^e (1 + f) with 1 + f from sqrt(1/2) to sqrt(2).

    For positive finite x; or for x + low, where low is a rounding error of x and x is no subnormal number.
    """

    f: Value
    s: Value

    def __init__(self, c: Code, x: Value, low: Value | None = None):
        form = c.format
        mantissa = (1 << form.stored) - 1
        offset: Value | float = 2.0**form.stored + form.bias
        if low is None:
            tiny = x < form.normal
            x = c.select(tiny, x * 2.0**form.bits, x)
            offset = c.select(tiny, offset + form.bits, offset)
        root = form.bits_of(math.sqrt(0.5))
        bits = c.pattern(x) + (form.bits_of(1.0) - root)
        # the exponent becomes a number as the last bits of 2^52
        self.e: Value = c.number((bits >> form.stored) | form.bits_of(2.0**form.stored)) - offset
        self.f = f = c.number((bits & mantissa) + root) - 1.0
        self.s = s = f / (f + 2.0)
        square = s * s
        self.t: Value = s * (f - square * c.polynomial("log", square))
        if low is not None:  # low / 2^e / (1 + f), the latter as a polynomial of s: a few digits do
            twice = c.number(((2 * form.bias + 1) << form.stored) - (bits & ~mantissa))  # 2 / 2^e
            self.t = self.t - low * twice * c.horner((0.5, -1.0, 1.0, -1.0, 1.0), s)

    def natural(self, c: Code, extra: Value | float = 0.0) -> Value:
        """log(x 2^extra)"""
        high, low = c.table("LN2")
        e = self.e + extra if isinstance(extra, Value) else self.e
        return c.fma(e, high, self.f - (self.t - e * low))

    def in_parts(self, c: Code) -> tuple[Value, Value]:
        """f - t as a sum of two."""
        high = self.f - self.t
        return high, (self.f - high) - self.t


def ended(c: Code, x: Value, y: Value) -> Value:
    """The logarithm y of x, with those of zero, infinity, nan and negative numbers."""
    y = c.select(x < math.inf, y, x)
    y = c.select(x.equals(0.0), -math.inf, y)
    return c.select(x < 0.0, math.nan, y)


def log(c: Code, x: Value) -> Value:
    return ended(c, x, Logarithm(c, x).natural(c))


def _times(c: Code, parts: tuple[Value, Value], name: str) -> tuple[Value, Value]:
    """The product of two sums, of which the second is a constant."""
    high, low = parts
    first, last = c.table(name)
    product, rest = c.two_product(first, high)
    return product, c.fma(high, last, c.fma(low, first, rest))


def log2(c: Code, x: Value) -> Value:
    parts = Logarithm(c, x)
    product, rest = _times(c, parts.in_parts(c), "LOG2_E")
    total, error = c.fast_two_sum(parts.e, product)
    return ended(c, x, total + (error + rest))


def log10(c: Code, x: Value) -> Value:
    parts = Logarithm(c, x)
    product, rest = _times(c, parts.in_parts(c), "LOG10_E")
    first, last = c.table("LOG10_2")
    whole, part = c.two_product(first, parts.e)
    total, error = c.fast_two_sum(whole, product)
    return ended(c, x, total + (error + (c.fma(parts.e, last, part) + rest)))


def log1p(c: Code, x: Value) -> Value:
    total, low = c.two_sum(1.0, x)
    y = ended(c, total, Logarithm(c, total, low).natural(c))
    return c.select(abs(x) < c.format.epsilon / 4, x, y)


def softplus(c: Code, x: Value) -> Value:
    return _log1p_exp(c, -abs(x), c.lift(0.0)) + c.select(x < 0.0, 0.0, x)


def _log1p_exp(c: Code, x: Value, low: Value) -> Value:
    """log(1 + exp(x + low)) of x <= 0."""
    high, rest, n = exp_in_parts(c, x, low)
    t, t_low = c.scaled(high, n), c.scaled(rest, n)
    total, error = c.fast_two_sum(1.0, t)
    return c.select(t < c.format.epsilon / 4, t, Logarithm(c, total, error + t_low).natural(c))


def logaddexp(c: Code, x: Value, y: Value) -> Value:
    larger, smaller = c.select(x > y, x, y), c.select(x > y, y, x)
    difference, low = c.two_sum(smaller, -larger)
    same = x.equals(y)  # as infinities are, which have no difference
    t = _log1p_exp(c, c.select(same, 0.0, difference), c.select(abs(difference) < c.format.bias, low, 0.0))
    return c.select(x.is_nan(), x, larger) + t


# --- inverse hyperbolic functions: logarithms of sums of two numbers -----------------------------


def _root(c: Code, x: Value, low: Value) -> tuple[Value, Value]:
    """The square root of x + low as a sum."""
    root = c.sqrt(x)
    return root, (c.fma(-root, root, x) + low) / (root + root)


def _log_of_sum(c: Code, x: Value, sign: float) -> Value:
    """log(x + sqrt(x^2 + sign)), for large x log(2 x)."""
    large = x > 2.0 ** (c.format.bits // 2 + 2)
    square, rest = c.two_product(x, x)
    inner, error = c.two_sum(sign, square)
    root, low = _root(c, inner, error + rest)
    total, error = c.two_sum(x, root)
    total, low = c.select(large, x, total), c.select(large, 0.0, error + low)
    return ended(c, total, Logarithm(c, total, low).natural(c, c.select(large, 1.0, 0.0)))


def asinh(c: Code, x: Value) -> Value:
    size = abs(x)
    y = c.copysign(_log_of_sum(c, size, 1.0), x)
    return c.select(size < 2.0 ** -(c.format.bits // 2 + 1), x, y)


def acosh(c: Code, x: Value) -> Value:
    y = c.select(x.equals(1.0), 0.0, _log_of_sum(c, x, -1.0))
    return c.select(x < 1.0, math.nan, y)


def atanh(c: Code, x: Value) -> Value:
    """log((1 + |x|) / (1 - |x|)) / 2"""
    size = abs(x)
    above, more = c.fast_two_sum(1.0, size)
    below, less = c.fast_two_sum(1.0, -size)
    quotient = above / below
    low = (c.fma(-quotient, below, above) + more - quotient * less) / below
    y = c.copysign(0.5 * ended(c, quotient, Logarithm(c, quotient, low).natural(c)), x)
    return c.select(size < 2.0 ** -(c.format.bits // 2 + 1), x, y)


# --- powers --------------------------------------------------------------------------------------


def precise_log(c: Code, x: Value) -> tuple[Value, Value]:
    """log(x) as a sum, within 2^-64 in double precision: 2 atanh(s) with s and its first two terms as sums."""
    parts = Logarithm(c, x)
    f = parts.f
    below, less = c.fast_two_sum(2.0, f)
    s = f / below
    s_low = (c.fma(-s, below, f) - s * less) / below
    square, rest = c.two_product(s, s)
    rest = c.fma(s + s, s_low, rest)
    third, third_low = c.table("TWO_THIRDS")
    g, g_low = c.fast_two_sum(third, square * c.polynomial("log_tail", square))
    product, product_low = c.two_product(square, g)
    product_low = product_low + c.fma(square, g_low + third_low, rest * g)
    term, term_low = c.two_product(s, product)
    term_low = term_low + c.fma(s, product_low, s_low * product)
    total, total_low = c.fast_two_sum(s + s, term)
    total_low = total_low + (term_low + (s_low + s_low))
    first, last = c.table("LN2")
    whole, part = c.two_product(first, parts.e)
    high, low = c.fast_two_sum(whole, total)
    return c.fast_two_sum(high, low + (c.fma(parts.e, last, part) + total_low))


def power(c: Code, x: Value, y: Value) -> Value:
    """exp(y log(|x|)), with the sign of odd powers of negative numbers; special values are those of C99, F.9.4.4."""
    size = abs(x)
    high, low = precise_log(c, size)
    ends = c.select(size.equals(0.0), -math.inf, size)
    special = ends.equals(-math.inf) | size.equals(math.inf) | x.is_nan()
    high, low = c.select(special, ends, high), c.select(special, 0.0, low)
    exponent = high * y
    rest = c.fma(y, high, -exponent)
    rest = c.select(abs(exponent) < 4.0 * c.format.bias, c.fma(y, low, rest), 0.0)
    result = exp(c, exponent, rest)
    whole = c.intrinsic("floor", y).equals(y)
    half = y * 0.5
    odd = whole & ~c.intrinsic("floor", half).equals(half)
    signed = c.select(odd, c.copysign(result, x), result)
    # what is no number: fractional powers of negative numbers, but not of -inf and -0
    invalid = (x < 0.0) & ~whole & ~size.equals(math.inf)
    signed = c.select(invalid, math.nan, signed)
    one = x.equals(1.0) | y.equals(0.0) | (size.equals(1.0) & abs(y).equals(math.inf))
    return c.select(one, 1.0, signed)


def cbrt(c: Code, x: Value) -> Value:
    """By Newton's and Halley's iterations for g^(-1/3), of g = x / 8^k from 2^-1.5 to 2^1.5, which divide nothing."""
    form = c.format
    size = abs(x)
    parts = Logarithm(c, size)
    k, whole = c.rounded(parts.e, 1.0 / 3.0)
    rest = c.pattern(parts.e - 3.0 * k + form.magic)
    g = (1.0 + parts.f) * c.power_of_two(rest)
    t = c.polynomial("cbrt", g)
    for _ in range(1 if c.kind == "float" else 2):
        error = 1.0 - g * t * (t * t)
        t = c.fma(t * error, c.fma(error, 2.0 / 9.0, 1.0 / 3.0), t)
    y = g * (t * t)
    square, low = c.two_product(y, y)
    residual = c.fma(-square, y, g) - low * y
    y = c.fma(residual * (t * t), 1.0 / 3.0, y) * c.power_of_two(whole)
    return c.select(size.equals(0.0) | ~(size < math.inf), x, c.copysign(y, x))


def hypot(c: Code, x: Value, y: Value) -> Value:
    x, y = abs(x), abs(y)
    a, b = c.select(x < y, y, x), c.select(x < y, x, y)
    limit, step = (2.0**500, 600) if c.kind == "double" else (2.0**60, 90)
    large, small = a > limit, a < 1.0 / limit
    scale = c.select(large, 2.0**-step, c.select(small, 2.0**step, 1.0))
    back = c.select(large, 2.0**step, c.select(small, 2.0**-step, 1.0))
    a, b = a * scale, b * scale
    first, low = c.two_product(a, a)
    second, rest = c.two_product(b, b)
    total, error = c.fast_two_sum(first, second)
    root, correction = _root(c, total, error + low + rest)
    result = c.select(total.equals(0.0), 0.0, root + correction) * back
    infinite = x.equals(math.inf) | y.equals(math.inf)
    return c.select(infinite, math.inf, result)
