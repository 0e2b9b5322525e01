"""Continuous distributions between two ends, under SciPy's names. Each states its standard form."""

from __future__ import annotations

import math
from typing import Any

from adjoint.functions.elementwise import atan2, cos, exp, expm1, log, log1p, sin, sqrt, where
from adjoint.functions.logic import equal, greater, greater_equal, less, less_equal, logical_and
from adjoint.irrational import log_2_beside, log_pi_beside, pi_beside
from adjoint.special import expit, log_ndtr, logit, ndtr, ndtri, sinc, xlogy
from adjoint.stats.continuous import vonmises
from adjoint.stats.families import Continuous, Number, exp_or_nothing, log_of_rest, log_root


class arcsine(Continuous):
    """The arcsine distribution: 1 / (pi sqrt(z (1 - z)))."""

    low: float = 0.0
    high: float = 1.0
    steep = True

    def _end(self, high: bool, *shapes: Number) -> tuple[Number, Number]:
        return 0.5, 0.0

    def _logpdf(self, z: Number) -> Number:
        return -log_pi_beside(z) - 0.5 * (log(z) + log1p(-z))

    def _cdf(self, z: Number) -> Number:
        return atan2(sqrt(z), sqrt(1.0 - z)) * (2.0 / pi_beside(z))

    def _sf(self, z: Number) -> Number:
        return atan2(sqrt(1.0 - z), sqrt(z)) * (2.0 / pi_beside(z))

    def _ppf(self, q: Number) -> Number:
        return (0.5 * pi_beside(q) * q * sinc(0.5 * q)) ** 2

    def _isf(self, q: Number) -> Number:
        return (0.5 * pi_beside(q) * (1.0 - q) * sinc(0.5 * (1.0 - q))) ** 2


class powerlaw(Continuous):
    """A power: a z^(a - 1) for z from 0 to 1."""

    shapes: tuple[str, ...] = ("a",)
    low: float = 0.0
    high: float = 1.0
    steep = True

    def _end(self, high: bool, *shapes: Number) -> tuple[Number, Number]:
        (a,) = shapes
        return (1.0, log(a)) if high else (a, 0.0 * a)

    def _logpdf(self, z: Number, a: Number) -> Number:
        return log(a) + xlogy(a - 1.0, z)

    def _cdf(self, z: Number, a: Number) -> Number:
        return exp(a * log(z))

    def _sf(self, z: Number, a: Number) -> Number:
        return -expm1(a * log(z))

    def _logcdf(self, z: Number, a: Number) -> Number:
        return a * log(z)

    def _logsf(self, z: Number, a: Number) -> Number:
        return log_of_rest(-a * log(z))

    def _ppf(self, q: Number, a: Number) -> Number:
        return exp(log(q) / a)

    def _isf(self, q: Number, a: Number) -> Number:
        return exp(log1p(-q) / a)


class triang(Continuous):
    """A triangle over 0 to 1 with its top at c."""

    shapes: tuple[str, ...] = ("c",)
    low: float = 0.0
    high: float = 1.0
    steep = True

    def valid(self, *shapes: Number) -> Any:
        return logical_and(greater_equal(shapes[0], 0.0), less_equal(shapes[0], 1.0))

    def usual(self) -> tuple[float, ...]:
        return (0.5,)

    def _end(self, high: bool, *shapes: Number) -> tuple[Number, Number]:
        (c,) = shapes
        return where(equal(c, 1.0 if high else 0.0), 1.0, 2.0), 0.0 * c + log_2_beside(shapes[0])

    def _sides(self, z: Number, c: Number) -> tuple[Any, Number, Number]:
        """Whether z is on the left of the top, and the widths of both sides, 1 where z is on the other."""
        left = less(z, c)
        return left, where(left, c, 1.0), where(left, 1.0, 1.0 - c)

    def _logpdf(self, z: Number, c: Number) -> Number:
        left, rise, fall = self._sides(z, c)
        return log_2_beside(z) + where(left, log(z) - log(rise), log1p(-z) - log(fall))

    def _cdf(self, z: Number, c: Number) -> Number:
        left, rise, fall = self._sides(z, c)
        return where(left, z * z / rise, 1.0 - (1.0 - z) ** 2 / fall)

    def _sf(self, z: Number, c: Number) -> Number:
        left, rise, fall = self._sides(z, c)
        return where(left, 1.0 - z * z / rise, (1.0 - z) ** 2 / fall)

    def _ppf(self, q: Number, c: Number) -> Number:
        left = less(q, c)
        rise, fall = where(left, c, 1.0), where(left, 1.0, 1.0 - c)
        return where(left, sqrt(rise * q), 1.0 - sqrt(fall * (1.0 - q)))

    def _isf(self, q: Number, c: Number) -> Number:
        right = less_equal(q, 1.0 - c)
        rise, fall = where(right, 1.0, c), where(right, 1.0 - c, 1.0)
        return where(right, 1.0 - sqrt(fall * q), sqrt(rise * (1.0 - q)))


class loguniform(Continuous):
    """The exponential of a uniform number: 1 / (z log(b / a)) for z from a to b."""

    shapes: tuple[str, ...] = ("a", "b")

    def valid(self, *shapes: Number) -> Any:
        a, b = shapes
        return logical_and(greater(a, 0.0), logical_and(less(a, b), less(b, math.inf)))

    def usual(self) -> tuple[float, ...]:
        return (1.0, 2.0)

    def support(self, *shapes: Number) -> tuple[Any, Any]:
        return shapes[0], shapes[1]

    def middle(self, *shapes: Number) -> Any:
        a, b = shapes
        return (sqrt(a) * sqrt(b)).detach()

    def _logpdf(self, z: Number, a: Number, b: Number) -> Number:
        return -log(z) - log(log(b / a))

    def _cdf(self, z: Number, a: Number, b: Number) -> Number:
        return log(z / a) / log(b / a)

    def _sf(self, z: Number, a: Number, b: Number) -> Number:
        return log(b / z) / log(b / a)

    def _ppf(self, q: Number, a: Number, b: Number) -> Number:
        return a * exp(q * log(b / a))

    def _isf(self, q: Number, a: Number, b: Number) -> Number:
        return b * exp(-q * log(b / a))


class reciprocal(loguniform):
    """Another name of `loguniform`."""


class johnsonsb(Continuous):
    """N. Johnson's bounded distribution: a + b logit(z) is normal."""

    shapes: tuple[str, ...] = ("a", "b")
    low: float = 0.0
    high: float = 1.0
    open_low: bool = True
    open_high = True

    def valid(self, *shapes: Number) -> Any:
        a, b = shapes
        return logical_and(greater(b, 0.0), less(a * a, math.inf))

    def _logpdf(self, z: Number, a: Number, b: Number) -> Number:
        return log(b) - log(z) - log1p(-z) - 0.5 * (a + b * logit(z)) ** 2 - log_root(z)

    def _cdf(self, z: Number, a: Number, b: Number) -> Number:
        return ndtr(a + b * logit(z))

    def _sf(self, z: Number, a: Number, b: Number) -> Number:
        return ndtr(-a - b * logit(z))

    def _logcdf(self, z: Number, a: Number, b: Number) -> Number:
        return log_ndtr(a + b * logit(z))

    def _logsf(self, z: Number, a: Number, b: Number) -> Number:
        return log_ndtr(-a - b * logit(z))

    def _ppf(self, q: Number, a: Number, b: Number) -> Number:
        return expit((ndtri(q) - a) / b)

    def _isf(self, q: Number, a: Number, b: Number) -> Number:
        return expit((-ndtri(q) - a) / b)


class truncexpon(Continuous):
    """The exponential distribution below b: exp(-z) / (1 - exp(-b))."""

    shapes: tuple[str, ...] = ("b",)
    low: float = 0.0

    def support(self, *shapes: Number) -> tuple[Any, Any]:
        return 0.0, shapes[0]

    def middle(self, *shapes: Number) -> Any:
        return (0.5 * shapes[0]).detach()

    def _logpdf(self, z: Number, b: Number) -> Number:
        return -z - log_of_rest(b)

    def _cdf(self, z: Number, b: Number) -> Number:
        return expm1(-z) / expm1(-b)

    def _sf(self, z: Number, b: Number) -> Number:
        return exp_or_nothing(self._logsf(z, b))

    def _logsf(self, z: Number, b: Number) -> Number:
        return -z + log_of_rest(b - z) - log_of_rest(b)

    def _ppf(self, q: Number, b: Number) -> Number:
        return -log1p(q * expm1(-b))

    def _isf(self, q: Number, b: Number) -> Number:
        return -log(exp(-b) - q * expm1(-b))


# --- of angles ---


class wrapcauchy(Continuous):
    """A Cauchy distributed angle: (1 - c^2) / (2 pi (1 + c^2 - 2 c cos(z))) for z from 0 to 2 pi."""

    shapes: tuple[str, ...] = ("c",)
    point: float = 1.0

    def support(self, *shapes: Number) -> tuple[Any, Any]:
        return 0.0, 2.0 * pi_beside(shapes[0])

    def valid(self, *shapes: Number) -> Any:
        return logical_and(greater(shapes[0], 0.0), less(shapes[0], 1.0))

    def usual(self) -> tuple[float, ...]:
        return (0.5,)

    def _logpdf(self, z: Number, c: Number) -> Number:
        rest = 1.0 - c
        return log(rest) + log1p(c) - log_pi_beside(z, 2.0) - log(rest * rest + 4.0 * c * sin(0.5 * z) ** 2)

    def _cdf(self, z: Number, c: Number) -> Number:
        return atan2((1.0 + c) * sin(0.5 * z), (1.0 - c) * cos(0.5 * z)) / pi_beside(z)

    def _sf(self, z: Number, c: Number) -> Number:
        return atan2((1.0 + c) * sin(0.5 * z), (c - 1.0) * cos(0.5 * z)) / pi_beside(z)

    def _ppf(self, q: Number, c: Number) -> Number:
        return 2.0 * atan2((1.0 - c) * sin(pi_beside(q) * q), (1.0 + c) * cos(pi_beside(q) * q))

    def _isf(self, q: Number, c: Number) -> Number:
        return 2.0 * atan2((1.0 - c) * sin(pi_beside(q) * q), -(1.0 + c) * cos(pi_beside(q) * q))


class vonmises_line(vonmises):
    """The von Mises distribution of angles from -pi to pi alone."""

    def support(self, *shapes: Number) -> tuple[Any, Any]:
        end = pi_beside(shapes[0])
        return -end, end
