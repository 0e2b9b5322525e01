"""Hypergeometric functions, and integrals whose derivatives of any order are computed here. Numbers are DLMF's."""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np

from adjoint.backends.special.hosted import hosted, scipy_special

Array = Any


@hosted
def hyp0f1(b: Array, x: Array, *, order: int) -> Array:
    """The derivative of an order: the function of a parameter as much larger, 16.3.1."""
    special = scipy_special()
    divides = (b + order == 1) & (x > 0)  # SciPy's expansion by zero, where I0 overflows: it says 0
    found = special.hyp0f1(np.where(divides, 2.0, b + order), x)
    return np.where(divides, special.i0(2 * np.sqrt(np.abs(x))), found) / special.poch(b, order)


@hosted
def hyp1f1(a: Array, b: Array, x: Array, *, order: int) -> Array:
    """Likewise, 13.3.16."""
    special = scipy_special()
    factor = special.poch(a, order) / special.poch(b, order)
    return np.where((factor == 0.0) & ~np.isnan(x), 0.0, factor * _kummer(a + order, b + order, x))


def _kummer(a: Array, b: Array, x: Array) -> Array:
    """SciPy's 1F1, which is wrong for large a and negative x, and counts up to x, for hours, beyond a size.

    The bounds were found by trying. Beyond the size it is a limit, or nan.
    """
    special = scipy_special()
    turned = (x < 0) & (x > -300) & (a > 30)
    a, x = np.where(turned, b - a, a), np.where(turned, -x, x)  # 13.2.39
    sizes = np.abs(a) + np.abs(b)
    beyond = (x > 1e6) & (sizes * (1 + np.abs(a)) < x / 10) & ~_is_pole(a) & ~_is_pole(b)  # as exp(x), 13.7.1
    falls = (x < -1e6) & (sizes < -x / 10) & _is_pole(b - a)  # a polynomial times exp(x), 13.2.39
    small = (np.abs(b) < 1e6) & (np.abs(x) < 300)
    known = (sizes + np.abs(x) < 1e8) | ((sizes < 1e6) & (((x < 0) & (b > 0)) | _is_pole(a))) | small
    found = special.hyp1f1(np.where(known & ~falls, a, np.nan), b, x)
    found = np.where(beyond, np.inf * special.gammasgn(a) * special.gammasgn(b), np.where(falls, 0.0, found))
    return np.where(turned, found * np.exp(-x), found)


def _is_pole(x: Array) -> Array:
    """Of the gamma function."""
    return (x <= 0) & (x == np.floor(x))


@hosted
def hyp2f1(a: Array, b: Array, c: Array, x: Array, *, order: int) -> Array:
    """Likewise, 15.5.2."""
    special = scipy_special()
    factor = special.poch(a, order) * special.poch(b, order) / special.poch(c, order)
    known = ~np.isnan(x)  # for nan and a large parameter SciPy calls itself until the stack is full
    return np.where(known, special.hyp2f1(a + order, b + order, c + order, np.where(known, x, 0.0)) * factor, np.nan)


@hosted
def struve(v: Array, x: Array, *, order: int, modified: bool) -> Array:
    """Derivatives are those of the series near 0, 11.2.1, and follow from lower orders v elsewhere, 11.4.27."""
    special = scipy_special()
    f, sign = (special.modstruve, 1.0) if modified else (special.struve, -1.0)
    if not order:
        return f(v, x)
    near = np.abs(x) < 4.0
    far = np.where(near, 4.0, x)

    @functools.cache
    def at(down: int, k: int) -> Array:
        if not k:
            return f(v - down, far)
        parts = [math.comb(k - 1, j) * at(down, k - 1 - j) * math.factorial(j) / (-far) ** (j + 1) for j in range(k)]
        return at(down + 1, k - 1) + (v - down) * sum(parts)

    half = np.where(near, x, 0.0)
    terms = [
        sign**k * _power(v + (2 * k + 1), half, order) * special.rgamma(v + (k + 1.5)) / math.gamma(k + 1.5)
        for k in range(24)
    ]
    return np.where(near, sum(terms[::-1]), at(0, order))


def _power(power: Array, x: Array, order: int) -> Array:
    """The derivative of (x / 2)^power, of an order."""
    falls = 1.0 + 0.0 * power
    for k in range(order):
        falls = falls * (power - k)
    return np.where(falls == 0.0, 0.0 * x, falls * (0.5 * x) ** (power - order) / 2.0**order)


@hosted
def airy(x: Array, *, kind: int) -> Array:
    """Ai and its derivative, Bi and its derivative: beyond what SciPy computes, their limits."""
    with_limits = np.where(x == math.inf, 1.0, x)
    out = scipy_special().airy(with_limits)[kind]
    limit = (0.0, -0.0, math.inf, math.inf)[kind]
    return np.where(x == math.inf, limit, out)


@hosted
def trigonometric_integral(x: Array, *, kind: str) -> Array:
    special = scipy_special()
    first, second = special.sici(x) if kind in ("si", "ci") else special.shichi(x)
    return first if kind in ("si", "shi") else second


@hosted
def exponential_mean(x: Array, *, order: int, symmetric: bool) -> Array:
    """The integral of t^order exp(x t) for t from 0 to 1; or half of that from -1 to 1."""
    if not symmetric:
        return _mean(x, order)
    small = np.abs(x) < 2.0
    y, first = np.where(small, x, 0.0), order % 2  # every other term of the series
    terms = [y**k / (math.factorial(k) * (order + k + 1)) for k in range(first, 24, 2)]
    sign = -1.0 if order % 2 else 1.0
    return np.where(small, sum(terms[::-1]), 0.5 * (_mean(x, order) + sign * _mean(-x, order)))


def _mean(x: Array, n: int) -> Array:
    special = scipy_special()
    small = np.abs(x) < 1.0
    y = np.where(small, x, 0.0)
    series = sum([y**k / (math.factorial(k) * (n + k + 1)) for k in range(22)][::-1])
    # 8.2.1, of positive numbers
    z = np.where(x < 0.0, -x, 1.0)
    left = math.factorial(n) * special.gammainc(n + 1.0, z) * z ** -(n + 1.0)
    # by parts from order 0 on where that is stable, before that term by term
    z = np.where(x > 0.0, x, 1.0)
    right = np.expm1(z) / z
    for k in range(1, n + 1):
        right = np.where(np.isinf(right), right, (np.exp(z) - k * right) / z)
    near = (x < 2.0 * n + 2.0) & (x > 0.0)
    z = np.where(near, x, 0.0)
    term, positive = np.ones_like(z), np.zeros_like(z)
    for k in range(60 + 8 * n):
        positive = positive + term / (n + k + 1)
        term = term * z / (k + 1)
    right = np.where(near, positive, right)
    out = np.where(small, series, np.where(x < 0.0, left, right))
    return np.where(x == -math.inf, 0.0, np.where(x == math.inf, math.inf, np.where(np.isnan(x), x, out)))


@hosted
def fresnel(x: Array, *, kind: str) -> Array:
    first, second = scipy_special().fresnel(x)
    return first if kind == "s" else second


@hosted
def spence(x: Array, *, order: int) -> Array:
    """The slope is -log(1 + u) / u with u = x - 1: a series near 0, and further out from lower orders."""
    if not order:
        return scipy_special().spence(x)
    u, n = x - 1.0, order - 1
    small = np.abs(u) < 0.5
    y = np.where(small, u, 0.0)
    series = 0.0 * y
    for k in reversed(range(70)):
        series = series * y + (-1.0) ** (k + n) * math.prod(range(k + 1, k + n + 1)) / (k + n + 1)
    far = np.where(small, 1.0, u)
    found = np.log(np.where(small, 2.0, x)) / far
    for k in range(1, n + 1):
        log = (-1.0) ** (k - 1) * math.factorial(k - 1) / np.where(small, 2.0, x) ** k
        found = (log - k * found) / far
    return -np.where(small, series, np.where(x == math.inf, 0.0, found))


@hosted
def owens_t(h: Array, a: Array) -> Array:
    return scipy_special().owens_t(h, a)


@hosted
def erfi(x: Array) -> Array:
    return scipy_special().erfi(x)


@hosted
def wrightomega(x: Array, *, order: int) -> Array:
    """Derivatives are polynomials of 1 / (1 + w), with Euler's numbers of the second order."""
    out = scipy_special().wrightomega(x)
    if not order:
        return out
    rest = 1.0 / (1.0 + out)
    share = np.where(out == math.inf, 1.0, out * rest)
    return sum([c * share ** (k + 1) * rest ** (2 * order - 2 - k) for k, c in enumerate(omega_coefficients(order))])


def omega_coefficients(order: int) -> list[int]:
    """Of w^(k + 1) / (1 + w)^(2 order - 1) in a derivative of w, which follow from w' = w / (1 + w)."""
    found = [1]
    for n in range(1, order):
        ahead, behind = [*found, 0], [0, *found]
        found = [(k + 1) * ahead[k] + (k + 1 - 2 * n) * behind[k] for k in range(n + 1)]
    return found
