"""Legendre's elliptic integrals and their derivatives by the parameter, on NumPy's arrays. Numbers are DLMF's.

Derivatives by the parameter go under the integral, 19.2.8, with sin^2 = 1 / (1 + t) and t = exp(u): what is summed has
one sign, and the trapezoidal rule converges exponentially.
"""

from __future__ import annotations

import functools
import math
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
    """Or its derivative, of an order for each operand: what is integrated has one sign."""
    numbers = (x, y, z, p) if kind == "rj" else (x, y, z)
    if not any(order):
        return getattr(scipy_special(), f"ellip{kind}")(*numbers)
    front, weight, powers = _CARLSON[kind]
    front *= math.prod(-(b + k) for b, n in zip(powers, order, strict=True) for k in range(n))
    if not front:
        return 0.0 * x
    raised = [b + n for b, n in zip(powers, order, strict=True)][: len(numbers)]
    inside = functools.reduce(np.logical_and, [(v >= 0.0) & (v < math.inf) for v in numbers])
    steep = sum([np.where(v == 0.0, b, 0.0) for v, b in zip(numbers, raised, strict=True)]) >= weight + 1
    inside &= ~steep
    values = [np.where(inside, v, 1.0) for v in numbers]
    scale = functools.reduce(np.maximum, values)
    values = [v / scale for v in values]
    lowest = functools.reduce(np.minimum, [np.where(v == 0.0, 1.0, v) for v in values])
    fall = sum(raised) - weight - 1

    def integrand(u: Array) -> Array:
        t = np.exp(u)
        return math.prod([(t + v) ** -b for v, b in zip(values, raised, strict=True)], start=t ** (weight + 1))

    zero = functools.reduce(np.logical_or, [v == 0.0 for v in values])
    start = np.log(lowest) - np.where(zero, 80.0, 40.0)
    out = front * scale**-fall * trapezoid(integrand, start, 0.0 * start + 40.0 / fall, _STEP)
    beyond = functools.reduce(np.logical_or, [(v < 0.0) | np.isnan(v) for v in numbers])
    edge = np.where(steep, math.copysign(math.inf, front), 0.0)
    return np.where(inside, out, np.where(beyond, math.nan, edge))


@hosted
def jacobi_elliptic(u: Array, m: Array, *, kind: int) -> Array:
    """sn, cn, dn, and the amplitude."""
    return scipy_special().ellipj(u, m)[kind]
