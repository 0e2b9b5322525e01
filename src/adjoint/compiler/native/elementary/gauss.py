"""The error function and its complement, and x times the normal distribution function."""

from __future__ import annotations

from adjoint.compiler.native.elementary.code import Code, Value
from adjoint.compiler.native.elementary.exponential import exp_in_parts

_END = {"double": 6.0, "float": 4.0}  # from there on erf is 1
_MIDDLE = 1.125  # where two polynomials of erf meet
_UNDERFLOW = {"double": 28.0, "float": 11.0}  # of erfc


def _sum(c: Code, name: str, x: Value) -> Value:
    """A polynomial; many coefficients are two sums, which a processor computes side by side."""
    return c.halved(name, x) if c.kind == "double" else c.polynomial(name, x)


def _near(c: Code, x: Value) -> Value:
    """erf(x) - x for |x| <= 1.125."""
    return x * _sum(c, "erf", x * x)


def erf(c: Code, x: Value) -> Value:
    """From 1.125 on, 1 less a polynomial; or polynomials in pieces."""
    if c.has_pieces:
        return c.copysign(c.in_pieces("erf_pieces", abs(x)), x)
    size = c.clipped(abs(x), None, _END[c.kind])
    middle, half = (_END[c.kind] + _MIDDLE) / 2.0, (_END[c.kind] - _MIDDLE) / 2.0
    tail = _sum(c, "erf_tail", c.fma(size, 1.0 / half, -middle / half))
    return c.select(size < _MIDDLE, x + _near(c, x), c.copysign(1.0 - tail, x))


def _scaled(c: Code, size: Value) -> tuple[Value, Value]:
    """exp(x^2) erfc(x) for x >= 3/4, a sum: over x + 4, a polynomial of (x - 4) / (x + 4) up to 4, another from 4."""
    below, low = c.two_sum(4.0, size)
    inverse = 1.0 / below
    rest = inverse * (c.fma(-inverse, below, 1.0) - inverse * low)
    left = size < 4.0
    # (x - 4) / (x + 4) = 1 - 8 / (x + 4), less the middle of each half: so the first coefficient is most of the sum
    u = c.fma(rest, -8.0, c.fma(inverse, -8.0, c.select(left, 1.375, 0.625)))
    pairs = zip(c.table("erfcx_left"), c.table("erfcx_right"), strict=True)
    first, *others = [c.select(left, x, y) for x, y in pairs]
    others_sum = c.horner(others, u)
    p = c.fma(u, others_sum, first)
    p_low = c.fma(u, others_sum, first - p)
    product, error = c.two_product(inverse, p)
    return product, c.fma(inverse, p_low, c.fma(rest, p, error))


def erfc(c: Code, x: Value) -> Value:
    size = c.clipped(abs(x), None, _UNDERFLOW[c.kind])
    square, low = c.two_product(size, size)
    power, more, n = exp_in_parts(c, -square, -low)
    scaled, rest = _scaled(c, size)
    tail = c.scaled(c.fma(power, scaled, c.fma(power, rest, more * scaled)), n)
    far = c.select(x < 0.0, 2.0 - tail, tail)
    return c.select(size < 0.75, 1.0 - (x + _near(c, x)), far)


def gelu(c: Code, x: Value) -> Value:
    """x times the normal distribution function, a half and what is odd: where there are pieces."""
    return x * (0.5 + c.copysign(c.summand_in_pieces("normal_pieces", abs(x), doubles=True), x))
