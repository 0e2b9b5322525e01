"""Exponential integrals, Lambert's function, Dawson's and Faddeeva's, on NumPy's arrays. Numbers are DLMF's."""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np

from adjoint.backends.special.hosted import hosted, scipy_special

Array = Any


@hosted
def expi(x: Array) -> Array:
    return scipy_special().expi(x)


@hosted
def expn(x: Array, *, order: int) -> Array:
    """The exponential integral E_n, 8.19.3; for n below 1, which its derivatives are, by 8.19.1 and 8.8.10 a sum."""
    if order == 1:
        return scipy_special().exp1(x)
    if order > 1:
        return scipy_special().expn(order, x)
    inverse = 1.0 / np.where(np.isinf(x), 1.0, x)
    term = total = np.ones_like(x)
    for k in range(-order):
        term = term * (-order - k) * inverse
        total = total + term
    half = np.exp(-0.5 * x)  # twice, so that it overflows where the result does
    out = half * (half * inverse * total)
    return np.where(x == math.inf, 0.0, np.where(x == -math.inf, -math.inf, out))


@hosted
def lambertw(x: Array, *, k: int) -> Array:
    """The branch k; of real numbers where it is real, 4.13."""
    if x.dtype.kind == "c":
        return scipy_special().lambertw(x, k)
    branch = -math.exp(-1.0)
    inside = (x >= branch) & ((k == 0) | (x <= 0.0))
    out = scipy_special().lambertw(np.where(inside & (x > branch), x, 0.0), k).real
    out = np.where(x == branch, -1.0, out)
    return np.where(inside, out, math.nan)


# --- Dawson's integral and the Faddeeva function -------------------------------------------------

_SPACING, _LAST, _TERMS = 0.25, 7.0, 48


@functools.cache
def _dawson_series() -> Array:
    """Taylor's coefficients of Dawson's integral at multiples of the spacing, from its series, 7.6.3, in 90 digits."""
    import decimal  # which brings modules that nothing else needs

    rows = []
    with decimal.localcontext() as context:
        context.prec = 90
        for i in range(round(_LAST / _SPACING) + 1):
            x = decimal.Decimal(i) * decimal.Decimal(_SPACING)
            term = value = x
            k = 0
            while abs(term) > decimal.Decimal(10) ** -80:
                k += 1
                term = -term * 2 * x * x / (2 * k + 1)
                value += term
            row = [value, 1 - 2 * x * value]
            for n in range(1, _TERMS + 40):
                row.append(-2 * (x * row[n] + row[n - 1]) / (n + 1))
            rows.append([float(c) for c in row])
    return np.array(rows)


@hosted
def dawsn(x: Array, *, order: int) -> Array:
    """Dawson's integral, or its derivative of an order: by Taylor's series, and far out by 7.12.1 term by term."""
    size, table = np.abs(x), _dawson_series()
    near = size < _LAST
    inside = np.where(near, size, 0.0)
    place = np.rint(inside / _SPACING).astype(int)
    step = inside - _SPACING * place
    out = np.zeros_like(x)
    for n in range(_TERMS - 1, -1, -1):
        out = out * step + table[place, n + order] * math.perm(n + order, order)
    inverse = 1.0 / np.where(near, 10.0, size)
    term = (-1.0) ** order * math.factorial(order) * 0.5 * inverse ** (order + 1)
    far = term
    for k in range(1, 40):
        term = (
            term
            * inverse
            * inverse
            * (0.5 * (2 * k - 1))
            * ((2 * k + order) * (2 * k + order - 1) / (2 * k * (2 * k - 1)))
        )
        far = far + term
    out = np.where(near, out, far)
    return np.where(x < 0.0, (-1.0) ** (order + 1) * out, out)


@hosted
def wofz(z: Array, *, order: int) -> Array:
    """The Faddeeva function exp(-z^2) erfc(-i z), or its derivative of an order.

    By 7.10.2 from its values, and where these cancel, far out in the upper half of the plane, by 7.12.1 term by term.
    """
    value = scipy_special().wofz(z)
    if not order:
        return value
    before, out = value, 2j / math.sqrt(math.pi) - 2.0 * z * value
    for n in range(1, order):
        before, out = out, -2.0 * (z * out + n * before)
    upper = np.where(z.imag < 0.0, -z, z)  # w(-z) = 2 exp(-z^2) - w(z), 7.4.3
    far = np.abs(z) > 7.0
    inverse = 1.0 / np.where(far, upper, 10.0)
    term = (-1.0) ** order * math.factorial(order) * 1j / math.sqrt(math.pi) * inverse ** (order + 1)
    total = term
    for k in range(1, 40):
        term = (
            term
            * inverse
            * inverse
            * (0.5 * (2 * k - 1))
            * ((2 * k + order) * (2 * k + order - 1) / (2 * k * (2 * k - 1)))
        )
        total = total + term
    gauss = np.exp(-(np.where(z.imag < 0.0, z, 0.0) ** 2))
    slopes = [gauss, -2.0 * z * gauss]
    for n in range(1, order):
        slopes.append(-2.0 * (z * slopes[n] + n * slopes[n - 1]))
    reflected = 2.0 * slopes[order] - (-1.0) ** order * total
    return np.where(far, np.where(z.imag < 0.0, reflected, total), out)


@hosted
def erf_complex(z: Array) -> Array:
    return scipy_special().erf(z)


@hosted
def erfc_complex(z: Array) -> Array:
    return scipy_special().erfc(z)
