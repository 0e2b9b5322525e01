"""Inverses of the incomplete gamma and beta functions and of Student's distribution function, on NumPy's arrays."""

from __future__ import annotations

from typing import Any

import numpy as np

from adjoint.backends.special.hosted import hosted, scipy_special

Array = Any


@hosted
def gammaincinv(a: Array, y: Array) -> Array:
    return scipy_special().gammaincinv(a, y)


@hosted
def gammainccinv(a: Array, y: Array) -> Array:
    return scipy_special().gammainccinv(a, y)


@hosted
def betaincinv(a: Array, b: Array, y: Array) -> Array:
    return scipy_special().betaincinv(a, b, y)


@hosted
def betainccinv(a: Array, b: Array, y: Array) -> Array:
    return scipy_special().betainccinv(a, b, y)


@hosted
def stdtrit(df: Array, p: Array) -> Array:
    """SciPy's is infinite at p = 0 with the sign of 1."""
    out = scipy_special().stdtrit(df, p)
    return np.where((p == 0.0) & (df > 0.0), -np.inf, np.where((p == 1.0) & (df > 0.0), np.inf, out))
