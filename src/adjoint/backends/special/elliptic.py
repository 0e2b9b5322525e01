"""Legendre's elliptic integrals and their derivatives by the parameter, on NumPy's arrays. Numbers are DLMF's.

Derivatives by the parameter go under the integral, 19.2.8, with sin^2 = 1 / (1 + t) and t = exp(u): what is summed has
one sign, and the trapezoidal rule converges exponentially.
"""

from __future__ import annotations

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

    def integrand(u: Array) -> Array:
        t = low * np.exp(u)
        outer = (1.0 + t) ** (-0.5 if kind == 1 else -1.5)
        return np.exp(0.5 * u) * outer * (q + t) ** ((-0.5 if kind == 1 else 0.5) - order)

    out = 0.5 * _rising(kind, order) * np.sqrt(low) * trapezoid(integrand, -80.0 + 0.0 * q, stop, _STEP)
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
