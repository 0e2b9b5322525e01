"""Bessel functions of real order and their derivatives of any order, on NumPy's arrays. Numbers are DLMF's."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from adjoint.backends.special.hosted import hosted, scipy_special, trapezoid

Array = Any


_FAR = 1e6  # from where SciPy's functions of scaled values lose digits, or give nan


def _neighbours(values: Any, low: tuple[Any, Any], v: Array, x: Array, order: int, sign: float) -> Array:
    """A derivative from functions of the orders around v, 10.6.7 and 10.29.5.

    `low` are those of the orders 0 and 1, which are faster; where all v are one of these, orders below 0 have the
    values of those above, 10.4.1 and 10.27.1 to 3.
    """
    factors: dict[Any, float] = {}
    first = 0.0 if not np.any(v) else 1.0 if np.all(v == 1.0) else None
    for k in range(order + 1):
        place, factor = -order + 2 * k, sign**k * math.comb(order, k)
        if first is not None:
            place += int(first)
            place, factor = abs(place), factor * (sign**place if place < 0 else 1.0)
        factors[place] = factors.get(place, 0.0) + factor
    total = 0.0 * x
    for place, factor in factors.items():
        if first is None:
            total = total + factor * values(v + place, x)
        elif factor:
            total = total + factor * (low[place](x) if place < 2 else values(np.full_like(x, place), x))
    overflown = np.isnan(total) & np.isfinite(v) & np.isfinite(x)
    if order and overflown.any():  # infinities of both signs: that of the largest order is larger
        outer = np.where(v < 0.0, values(v - order, x), sign**order * values(v + order, x))
        total = np.where(overflown & np.isinf(outer), outer, total)
    return total / 2.0**order


def _near_zero(v: Array, order: int) -> Array:
    """The derivative of (x / 2)^v / gamma(v + 1) at 0 from the right: the first term, 10.2.2 and 10.25.2."""
    special = scipy_special()
    whole, power = v == np.floor(v), v - order
    rises = np.ones_like(v)
    for k in range(order):
        rises = rises * (v - k)
    out = np.where(power > 0.0, 0.0, np.where(power == 0.0, 0.5**v, rises * special.rgamma(v + 1.0) * math.inf))
    return np.where(whole, math.nan, out)


def _first_kind(
    function: Any, low: tuple[Any, Any], v: Array, x: Array, order: int, sign: float, rate: float = 0.0
) -> Array:
    special = scipy_special()

    def values(v: Array, x: Array) -> Array:
        """Near 0 the first term, 10.2.2 and 10.25.2, where SciPy's functions underflow too early."""
        out, small = function(v, x), np.abs(x) < 1e-8
        if not small.any():
            return out
        size: Array = np.where(v == np.floor(v), np.abs(v), v)
        first = (0.5 * np.where(small, x, 0.0)) ** size * special.rgamma(size + 1.0) * np.exp(-rate * np.abs(x))
        turned = np.where((v < 0.0) & (v != size), sign**size, 1.0)  # 10.4.1 and 10.27.1
        return np.where(small & (x != 0.0), turned * first, out)

    out = _neighbours(values, low, v, x, order, sign)
    origin = (x == 0.0) & (v != np.floor(v))
    return np.where(origin, _near_zero(v, order), out) if origin.any() else out


@hosted
def bessel_j(v: Array, x: Array, *, order: int) -> Array:
    special = scipy_special()
    out = _first_kind(special.jv, (special.j0, special.j1), v, x, order, -1.0)
    return np.where(np.isinf(x) & ((x > 0.0) | (v == np.floor(v))), 0.0 * v, out)


@hosted
def bessel_y(v: Array, x: Array, *, order: int) -> Array:
    special = scipy_special()

    def values(v: Array, x: Array) -> Array:
        """SciPy's give up with 0 for large orders beyond 2^31, which is no value of the function at any number."""
        out = special.yv(v, x)
        return np.where((out == 0.0) & np.isfinite(x), math.nan, out)

    out = _neighbours(values, (special.y0, special.y1), v, x, order, -1.0)
    if order:
        out = np.where((x == 0.0) & (v >= 0.0), -((-1.0) ** order) * math.inf, out)
    return np.where(x == math.inf, 0.0 * v, out)


@hosted
def bessel_iv(v: Array, x: Array, *, order: int) -> Array:
    special = scipy_special()
    out = _first_kind(special.iv, (special.i0, special.i1), v, x, order, 1.0)
    whole = v == np.floor(v)
    odd = np.mod(v + order, 2.0) == 1.0
    out = np.where(x == math.inf, math.inf + 0.0 * v, out)
    return np.where((x == -math.inf) & whole, np.where(odd, -math.inf, math.inf) + 0.0 * v, out)


@hosted
def bessel_ive(v: Array, x: Array, *, order: int) -> Array:
    """exp(-|x|) I_v(x), and its derivatives: far out by Hankel's expansion, 10.40.1, term by term."""
    special = scipy_special()
    size = np.abs(x)
    sign = np.where(x < 0.0, -1.0, 1.0)
    near = 0.0 * x
    for k in range(order + 1):  # by Leibniz, from the right of 0 and from the left
        part = _first_kind(special.ive, (special.i0e, special.i1e), v, x, k, 1.0, 1.0)
        near = near + math.comb(order, k) * (-sign) ** (order - k) * part
    far = size > 18.0 + 0.5 * v * v
    z = np.where(far, size, 100.0)
    term = 1.0 / np.sqrt(2.0 * math.pi * z)
    power = np.full_like(z, -0.5)
    for k in range(order):
        term = term * (power - k) / z
    total = term
    for k in range(1, 40):
        ratio = -(4.0 * v * v - (2 * k - 1.0) ** 2) / (8.0 * k * z)
        term = term * ratio * ((k + order - 0.5) / (k - 0.5))
        total = total + term
    whole = v == np.floor(v)
    odd = np.mod(v + order, 2.0) == 1.0
    mirrored = np.where(x > 0.0, total, np.where(whole, np.where(odd, -total, total), math.nan))
    return np.where(np.isinf(x) & ((x > 0.0) | whole), 0.0 * v, np.where(far, mirrored, near))


@hosted
def bessel_k(v: Array, x: Array, *, order: tuple[int, int], scaled: bool) -> Array:
    """K_v(x), or exp(x) K_v(x), or its derivative of orders by v and by x."""
    special = scipy_special()
    by_v, by_x = order
    inside = (x > 0.0) & (x < math.inf)
    if not by_v and not (scaled and (by_x or np.any(x > _FAR))):
        values, *low = (special.kve, special.k0e, special.k1e) if scaled else (special.kv, special.k0, special.k1)
        out = (-1.0) ** by_x * _neighbours(values, (low[0], low[1]), v, x, by_x, 1.0)
    else:
        known = inside & np.isfinite(v)
        point, size = np.where(known, x, 1.0), np.where(known, np.abs(v), 1.0)
        out = _integral(size, point, by_v, by_x, scaled) * np.where(v < 0.0, (-1.0) ** by_v, 1.0)
        out = np.where(known, out, np.where(np.isinf(v), math.inf, math.nan))
    ends = np.where(x == 0.0, (-1.0) ** by_x * math.inf, np.where(x == math.inf, 0.0, math.nan))
    if by_v:
        ends = np.where(x == 0.0, np.sign(v) ** by_v * math.inf, ends)
    return np.where(inside | np.isnan(v), out, np.where(np.isnan(x), x, ends))


def _integral(v: Array, x: Array, by_v: int, by_x: int, scaled: bool) -> Array:
    """The integral of cosh(v t) exp(-x cosh(t)), 10.32.9, differentiated under it: what is summed has one sign."""
    radius = np.hypot(x, v)
    stop = np.arcsinh(v / x) + 2.0 * np.arcsinh(np.sqrt((30.0 + 5.0 * (by_v + by_x)) / radius))
    step = 0.3 / np.maximum(2.0, np.sqrt(radius + by_x))

    def integrand(t: Array) -> Array:
        depth = 2.0 * np.sinh(0.5 * t) ** 2  # cosh(t) - 1
        back = np.exp(-2.0 * v * t)
        weight = np.exp(v * t - x * depth - (0.0 if scaled else x)) * 0.5 * (1.0 - back if by_v % 2 else 1.0 + back)
        return t**by_v * (depth if scaled else 1.0 + depth) ** by_x * weight

    return (-1.0) ** by_x * trapezoid(integrand, 0.0 * x, stop, step)
