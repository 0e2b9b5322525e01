"""Legendre's elliptic integrals and their derivatives by the parameter, on NumPy's arrays. Numbers are DLMF's.

Derivatives by the parameter go under the integral, 19.2.8, with sin^2 = 1 / (1 + t) and t = exp(u): what is summed has
one sign, and the trapezoidal rule converges exponentially.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from adjoint.backends.special.hosted import hosted, scipy_special, trapezoid

Array = Any
_STEP = 0.35


def _rising(kind: int, order: int) -> float:
    """What differentiating (1 - m sin^2)^(-1/2), of the first kind, or its reciprocal puts in front."""
    first = 0.5 if kind == 1 else -0.5
    return math.prod(first + k for k in range(order))


@hosted
def elliptic_complete(p: Array, *, kind: int, order: int) -> Array:
    """Of the complementary parameter p = 1 - m, or the derivative of an order by m."""
    special = scipy_special()
    if not order:
        out = special.ellipkm1(p) if kind == 1 else special.ellipe(1.0 - p)
        if kind == 1:
            return np.where(p == math.inf, 0.0, out)
        return np.where(p == math.inf, math.inf, out)
    inside = (p > 0.0) & (p < math.inf)
    q = np.where(inside, p, 1.0)
    low = np.minimum(q, 1.0)
    stop = np.abs(np.log(q)) + 80.0 / (1 + 2 * order)
    power = (-0.5 if kind == 1 else 0.5) - order
    front = q ** np.where(q < 1.0, power + 0.5, power)  # of sqrt(low) * (q + t)^power, which may overflow before

    def integrand(u: Array) -> Array:
        t = low * np.exp(u)
        outer = (1.0 + t) ** (-0.5 if kind == 1 else -1.5)
        return np.exp(0.5 * u) * outer * (1.0 + t / q) ** power

    out = 0.5 * _rising(kind, order) * front * trapezoid(integrand, -80.0 + 0.0 * q, stop, _STEP)
    sign = math.copysign(1.0, _rising(kind, order))
    return np.where(inside, out, np.where(p == 0.0, sign * math.inf, np.where(p == math.inf, 0.0 * sign, math.nan)))


@hosted
def elliptic_incomplete(phi: Array, m: Array, *, kind: int, order: int) -> Array:
    """Or its derivative of an order by m, by Carlson's symmetric integral, 19.25.5, beside whole periods."""
    special = scipy_special()
    if not order:
        return (special.ellipkinc if kind == 1 else special.ellipeinc)(phi, m)
    finite = np.isfinite(phi) & (m <= 1.0) & (m > -math.inf)
    angle, p = np.where(finite, phi, 0.0), np.where(finite, 1.0 - m, 1.0)
    turns = np.rint(angle / math.pi)
    sine = np.sin(angle) * np.where(np.mod(turns, 2.0) == 1.0, -1.0, 1.0)
    s, c2 = np.abs(sine), np.cos(angle) ** 2
    delta = c2 + p * s * s  # 1 - m sin^2
    start = np.log(np.minimum(np.maximum(np.minimum(c2, delta), 1e-40), 1.0)) - 45.0
    stop = np.log(np.maximum(delta, 1.0)) + 80.0 / (1 + 2 * order)

    def integrand(u: Array) -> Array:
        t = np.exp(u)
        outer = (t + 1.0) ** (-0.5 if kind == 1 else -1.5)
        return t * outer * (t + c2) ** -0.5 * (t + delta) ** ((-0.5 if kind == 1 else 0.5) - order)

    part = 0.5 * _rising(kind, order) * trapezoid(integrand, start, stop, _STEP)
    part = np.where(s == 0.0, 0.0, sine * s ** (2 * order) * part)
    whole = np.where(turns == 0.0, 0.0, 2.0 * turns * elliptic_complete(p, kind=kind, order=order))
    return np.where(finite, part + whole, math.nan)


# --- Carlson's integrals and Jacobi's functions -------------------------------------------------

# c times the integral of t^w times the product of (t + z)^-b over t > 0, with c, w and b for each operand, 19.16;
# that of the last one diverges, and its derivatives do not
_CARLSON: dict[str, tuple[float, int, tuple[float, ...]]] = {
    "rf": (0.5, 0, (0.5, 0.5, 0.5, 0.0)),
    "rd": (1.5, 0, (0.5, 0.5, 1.5, 0.0)),
    "rj": (1.5, 0, (0.5, 0.5, 0.5, 1.0)),
    "rg": (-0.25, 1, (0.5, 0.5, 0.5, 0.0)),
}


@hosted
def carlson(x: Array, y: Array, z: Array, p: Array, *, kind: str, order: tuple[int, ...]) -> Array:
    """Or its derivative, of an order for each operand: what is integrated has one sign.

    Values are SciPy's, of operands around 1, as the functions are homogeneous; elliprg is that of the largest ones. Its
    elliprj multiplies differences, and so is integrated, as derivatives are, where operands are 30 decades apart.
    """
    numbers = (x, y, z, p) if kind == "rj" else (x, y, z)
    if any(order):
        return _carlson_integral(kind, numbers, order)
    known = [np.where((v != 0.0) & (np.abs(v) < math.inf), v, 1.0) for v in numbers]
    sizes = [np.where(v == 0.0, 0, np.frexp(k)[1]) for v, k in zip(numbers, known, strict=True)]
    low, high = functools.reduce(np.minimum, sizes), functools.reduce(np.maximum, sizes)
    shift = (high if kind == "rg" else (low + high) // 2) // 2 * 2  # even: its square root is a power of two
    degree = {"rf": -1, "rg": 1}.get(kind, -3)
    found = getattr(scipy_special(), f"ellip{kind}")(*[np.ldexp(v, -shift) for v in numbers])
    out = np.ldexp(found, degree * shift // 2)
    apart = (high - low > 100) & (numbers[-1] > 0.0)
    if kind != "rj" or not np.any(apart):
        return out
    return np.where(apart, _carlson_integral(kind, [np.where(apart, v, 1.0) for v in numbers], order), out)


def _power(v: Array, power: float) -> tuple[Array, Array]:
    """A power that is half of an integer, as a factor near 1 and an exponent of 2."""
    mantissa, exponent = np.frexp(v)
    odd = exponent % 2
    return np.ldexp(mantissa, -odd) ** power, power * (exponent + odd)


def _carlson_integral(kind: str, numbers: Sequence[Array], order: tuple[int, ...]) -> Array:
    """By factors and exponents of 2, as products of powers may be beyond all numbers where the integral is not."""
    front, weight, powers = _CARLSON[kind]
    front *= math.prod(-(b + k) for b, n in zip(powers, order, strict=True) for k in range(n))
    if not front:
        return 0.0 * numbers[0]
    raised = [b + n for b, n in zip(powers, order, strict=True)][: len(numbers)]
    inside = functools.reduce(np.logical_and, [(v >= 0.0) & (v < math.inf) for v in numbers])
    steep = sum([np.where(v == 0.0, b, 0.0) for v, b in zip(numbers, raised, strict=True)]) >= weight + 1
    inside &= ~steep
    fall = sum(raised) - weight - 1
    beyond_all = 40.0 / fall
    values = [np.where(inside, v, 1.0) for v in numbers]
    top = int(1020 - beyond_all / math.log(2.0)) // 2 * 2  # as large as can be, and the smallest is above 0 then
    shift = top - functools.reduce(np.maximum, [np.frexp(v)[1] for v in values])
    shift -= shift % 2
    values = [np.ldexp(v, shift) for v in values]
    highest = functools.reduce(np.maximum, values)
    lowest = functools.reduce(np.minimum, [np.where(v == 0.0, highest, v) for v in values])

    def scaled(t: Array) -> tuple[Array, Array]:
        factors = [_power(t, weight + 1), *[_power(t + v, -b) for v, b in zip(values, raised, strict=True)]]
        return math.prod([f for f, _ in factors], start=1.0), sum([e for _, e in factors])

    # of what is integrated a logarithm is nearly straight between those of the values
    most = functools.reduce(np.maximum, [scaled(np.where(v == 0.0, lowest, v))[1] for v in values])

    def integrand(u: Array) -> Array:
        factor, exponent = scaled(np.exp(u))
        return np.ldexp(factor, np.maximum(exponent - most, -2000.0).astype(np.int32))

    zero = functools.reduce(np.logical_or, [v == 0.0 for v in values])
    start = np.log(lowest) - np.where(zero, 80.0, 40.0)
    found = front * trapezoid(integrand, start, np.log(highest) + beyond_all, _STEP)
    out = np.ldexp(found, (most + shift * fall).astype(np.int32))
    beyond = functools.reduce(np.logical_or, [(v < 0.0) | np.isnan(v) for v in numbers])
    edge = np.where(steep, math.copysign(math.inf, front), 0.0)
    return np.where(inside, out, np.where(beyond, math.nan, edge))


@hosted
def jacobi_elliptic(u: Array, m: Array, *, kind: int) -> Array:
    """sn, cn, dn, and the amplitude."""
    return scipy_special().ellipj(u, m)[kind]
