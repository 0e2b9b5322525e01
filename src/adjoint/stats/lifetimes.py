"""Continuous distributions of lifetimes, incomes and floods, made of powers and exponentials, under SciPy's names.

Each states its standard form; `families` has the rest.
"""

from __future__ import annotations

import math
from typing import Any

from adjoint.functions.elementwise import atan2, atanh, exp, expm1, log, log1p, tanh, where
from adjoint.functions.logic import less
from adjoint.irrational import log_2_beside, pi_beside
from adjoint.special import expit, log_expit, logit, sinc, xlogy
from adjoint.stats.continuous import exp_minus, log1p_square, power_of
from adjoint.stats.families import (
    Continuous,
    Number,
    exp_or_nothing,
    expm1_ratio,
    log1p_ratio,
    log_2_over_pi,
    log_of_rest,
)


class halfcauchy(Continuous):
    """The absolute value of a Cauchy distributed number: 2 / (pi (1 + z^2)) for z >= 0."""

    low: float = 0.0

    def _logpdf(self, z: Number) -> Number:
        return log_2_over_pi(z) - log1p_square(z)

    def _cdf(self, z: Number) -> Number:
        return atan2(z, 1.0 + 0.0 * z) * (2.0 / pi_beside(z))

    def _sf(self, z: Number) -> Number:
        return atan2(1.0 + 0.0 * z, z) * (2.0 / pi_beside(z))

    def _ppf(self, q: Number) -> Number:
        """tan(pi q / 2), of sines as sinc, which reduces its argument exactly."""
        return q * sinc(0.5 * q) / ((1.0 - q) * sinc(0.5 * (1.0 - q)))

    def _isf(self, q: Number) -> Number:
        return (1.0 - q) * sinc(0.5 * (1.0 - q)) / (q * sinc(0.5 * q))


class halflogistic(Continuous):
    """The absolute value of a logistic number: 2 expit(z) expit(-z) for z >= 0."""

    low: float = 0.0

    def _logpdf(self, z: Number) -> Number:
        return log_2_beside(z) + log_expit(z) + log_expit(-z)

    def _cdf(self, z: Number) -> Number:
        return tanh(0.5 * z)

    def _sf(self, z: Number) -> Number:
        return 2.0 * expit(-z)

    def _logcdf(self, z: Number) -> Number:
        return log_of_rest(z) + log_expit(z)

    def _logsf(self, z: Number) -> Number:
        return log_2_beside(z) + log_expit(-z)

    def _ppf(self, q: Number) -> Number:
        return 2.0 * atanh(q)

    def _isf(self, q: Number) -> Number:
        return -logit(0.5 * q)


class genpareto(Continuous):
    """What is above a high threshold: (1 + c z)^(-1 - 1 / c) for z >= 0, exp(-z) for c = 0; below -1 / c for c < 0."""

    shapes: tuple[str, ...] = ("c",)
    low: float = 0.0
    open_high = True

    def valid(self, *shapes: Number) -> Any:
        return less(shapes[0] * shapes[0], math.inf)

    def support(self, *shapes: Number) -> tuple[Any, Any]:
        (c,) = shapes
        bounded = less(c, 0.0)
        return 0.0, where(bounded, -1.0 / where(bounded, c, -1.0), math.inf)

    def middle(self, *shapes: Number) -> Any:
        (c,) = shapes
        return (1.0 / (2.0 + c * c)).detach()

    def _logpdf(self, z: Number, c: Number) -> Number:
        return -(1.0 + c) * z * log1p_ratio(c * z)

    def _cdf(self, z: Number, c: Number) -> Number:
        return -expm1(-z * log1p_ratio(c * z))

    def _sf(self, z: Number, c: Number) -> Number:
        return exp(-z * log1p_ratio(c * z))

    def _logcdf(self, z: Number, c: Number) -> Number:
        return log_of_rest(z * log1p_ratio(c * z))

    def _logsf(self, z: Number, c: Number) -> Number:
        return -z * log1p_ratio(c * z)

    def _ppf(self, q: Number, c: Number) -> Number:
        y = -log1p(-q)
        return y * expm1_ratio(c * y)

    def _isf(self, q: Number, c: Number) -> Number:
        y = -log(q)
        return y * expm1_ratio(c * y)


class fisk(Continuous):
    """The log-logistic distribution: log(z) is logistic of scale 1 / c."""

    shapes: tuple[str, ...] = ("c",)
    low: float = 0.0
    steep = True

    def _end(self, high: bool, *shapes: Number) -> tuple[Number, Number]:
        (c,) = shapes
        return c, 0.0 * c

    def _logpdf(self, z: Number, c: Number) -> Number:
        y = c * log(z)
        return log(c) - log(z) + log_expit(y) + log_expit(-y)

    def _cdf(self, z: Number, c: Number) -> Number:
        return expit(c * log(z))

    def _sf(self, z: Number, c: Number) -> Number:
        return expit(-c * log(z))

    def _logcdf(self, z: Number, c: Number) -> Number:
        return log_expit(c * log(z))

    def _logsf(self, z: Number, c: Number) -> Number:
        return log_expit(-c * log(z))

    def _ppf(self, q: Number, c: Number) -> Number:
        return exp(logit(q) / c)

    def _isf(self, q: Number, c: Number) -> Number:
        return exp(-logit(q) / c)


class burr12(Continuous):
    """Burr's distribution of type XII: c d z^(c - 1) / (1 + z^c)^(d + 1)."""

    shapes: tuple[str, ...] = ("c", "d")
    low: float = 0.0
    steep = True

    def _end(self, high: bool, *shapes: Number) -> tuple[Number, Number]:
        c, d = shapes
        return c, log(d)

    def _logpdf(self, z: Number, c: Number, d: Number) -> Number:
        y = c * log(z)
        return log(c) + log(d) - log(z) + log_expit(y) + d * log_expit(-y)

    def _cdf(self, z: Number, c: Number, d: Number) -> Number:
        return -expm1(self._logsf(z, c, d))

    def _sf(self, z: Number, c: Number, d: Number) -> Number:
        return exp(self._logsf(z, c, d))

    def _logcdf(self, z: Number, c: Number, d: Number) -> Number:
        return log_of_rest(-self._logsf(z, c, d))

    def _logsf(self, z: Number, c: Number, d: Number) -> Number:
        return d * log_expit(-c * log(z))

    def _ppf(self, q: Number, c: Number, d: Number) -> Number:
        return exp(log(expm1(-log1p(-q) / d)) / c)

    def _isf(self, q: Number, c: Number, d: Number) -> Number:
        return exp(log(expm1(-log(q) / d)) / c)


class burr(Continuous):
    """Burr's distribution of type III, Dagum's: c d z^(-c - 1) / (1 + z^-c)^(d + 1)."""

    shapes: tuple[str, ...] = ("c", "d")
    low: float = 0.0
    steep = True

    def _end(self, high: bool, *shapes: Number) -> tuple[Number, Number]:
        c, d = shapes
        return c * d, 0.0 * c * d

    def _logpdf(self, z: Number, c: Number, d: Number) -> Number:
        y = c * log(z)
        return log(c) + log(d) - log(z) + log_expit(-y) + d * log_expit(y)

    def _cdf(self, z: Number, c: Number, d: Number) -> Number:
        return exp(self._logcdf(z, c, d))

    def _sf(self, z: Number, c: Number, d: Number) -> Number:
        return -expm1(self._logcdf(z, c, d))

    def _logcdf(self, z: Number, c: Number, d: Number) -> Number:
        return d * log_expit(c * log(z))

    def _logsf(self, z: Number, c: Number, d: Number) -> Number:
        return log_of_rest(-self._logcdf(z, c, d))

    def _ppf(self, q: Number, c: Number, d: Number) -> Number:
        return exp(-log(expm1(-log(q) / d)) / c)

    def _isf(self, q: Number, c: Number, d: Number) -> Number:
        return exp(-log(expm1(-log1p(-q) / d)) / c)


class exponweib(Continuous):
    """The power a of Weibull's distribution function: (1 - exp(-z^c))^a."""

    shapes: tuple[str, ...] = ("a", "c")
    low: float = 0.0
    steep = True

    def _end(self, high: bool, *shapes: Number) -> tuple[Number, Number]:
        a, c = shapes
        return a * c, 0.0 * a * c

    def _logpdf(self, z: Number, a: Number, c: Number) -> Number:
        w = power_of(z, c)
        return log(a) + log(c) + (a - 1.0) * log_of_rest(w) - w + xlogy(c - 1.0, z)

    def _cdf(self, z: Number, a: Number, c: Number) -> Number:
        return exp_or_nothing(a * log_of_rest(power_of(z, c)))

    def _sf(self, z: Number, a: Number, c: Number) -> Number:
        return -expm1(a * log_of_rest(power_of(z, c)))

    def _logcdf(self, z: Number, a: Number, c: Number) -> Number:
        return a * log_of_rest(power_of(z, c))

    def _ppf(self, q: Number, a: Number, c: Number) -> Number:
        return exp(log(-log1p(-exp(log(q) / a))) / c)

    def _isf(self, q: Number, a: Number, c: Number) -> Number:
        return exp(log(-log(-expm1(log1p(-q) / a))) / c)


class invweibull(Continuous):
    """The inverse of a Weibull distributed number, Frechet's: c z^(-c - 1) exp(-z^-c) for z > 0."""

    shapes: tuple[str, ...] = ("c",)
    low: float = 0.0
    open_low: bool = True

    def _logpdf(self, z: Number, c: Number) -> Number:
        y = c * log(z)
        return log(c) - y - log(z) - exp_minus(y)

    def _cdf(self, z: Number, c: Number) -> Number:
        return exp(-exp_minus(c * log(z)))

    def _sf(self, z: Number, c: Number) -> Number:
        return -expm1(-exp_minus(c * log(z)))

    def _logcdf(self, z: Number, c: Number) -> Number:
        return -exp_minus(c * log(z))

    def _ppf(self, q: Number, c: Number) -> Number:
        return exp(-log(-log(q)) / c)

    def _isf(self, q: Number, c: Number) -> Number:
        return exp(-log(-log1p(-q)) / c)


class gompertz(Continuous):
    """A hazard that grows as exp(z): c exp(z) exp(-c (exp(z) - 1)) for z >= 0."""

    shapes: tuple[str, ...] = ("c",)
    low: float = 0.0
    reach: float = 690.0  # exp of which overflows

    def _logpdf(self, z: Number, c: Number) -> Number:
        return log(c) + z - c * expm1(z)

    def _cdf(self, z: Number, c: Number) -> Number:
        return -expm1(-c * expm1(z))

    def _sf(self, z: Number, c: Number) -> Number:
        return exp(-c * expm1(z))

    def _logcdf(self, z: Number, c: Number) -> Number:
        return log_of_rest(c * expm1(z))

    def _logsf(self, z: Number, c: Number) -> Number:
        return -c * expm1(z)

    def _ppf(self, q: Number, c: Number) -> Number:
        return log1p(-log1p(-q) / c)

    def _isf(self, q: Number, c: Number) -> Number:
        return log1p(-log(q) / c)
