"""Continuous distributions of all numbers, skewed, heavy or of extremes, under SciPy's names.

Each states its standard form; `families` has the rest.
"""

from __future__ import annotations

import math
from typing import Any

from adjoint.functions.elementwise import abs as absolute
from adjoint.functions.elementwise import asinh, atan, exp, expm1, log, log1p, sinh, where
from adjoint.functions.logic import equal, greater, greater_equal, less, logical_and
from adjoint.irrational import irrational, pi_beside
from adjoint.special import (
    erf,
    erfc,
    erfcinv,
    erfinv,
    gammainc,
    gammaincc,
    gammainccinv,
    gammaincinv,
    gammaln,
    log_expit,
    log_ndtr,
    ndtr,
    ndtri,
    sinc,
)
from adjoint.stats.continuous import exp_minus, gumbel_r, log1p_square, log_of_tails, power_of, weibull_min
from adjoint.stats.families import (
    Continuous,
    Density,
    Number,
    expm1_ratio,
    log1p_ratio,
    log1p_rest,
    log_2_over_pi,
    log_of_rest,
    log_of_share,
    log_root,
    stirling,
)

# --- of extremes ---


class Mirrored(Continuous):
    """A distribution of -z, where z has the distribution `of`."""

    of: Continuous

    def _logpdf(self, z: Number, *shapes: Number) -> Number:
        return self.of._logpdf(-z, *shapes)

    def _cdf(self, z: Number, *shapes: Number) -> Number:
        return self.of._sf(-z, *shapes)

    def _sf(self, z: Number, *shapes: Number) -> Number:
        return self.of._cdf(-z, *shapes)

    def _logcdf(self, z: Number, *shapes: Number) -> Number:
        return self.of._logsf(-z, *shapes)

    def _logsf(self, z: Number, *shapes: Number) -> Number:
        return self.of._logcdf(-z, *shapes)

    def _ppf(self, q: Number, *shapes: Number) -> Number:
        return -self.of._isf(q, *shapes)

    def _isf(self, q: Number, *shapes: Number) -> Number:
        return -self.of._ppf(q, *shapes)


class gumbel_l(Mirrored):
    """The Gumbel distribution of minima: exp(z - exp(z))."""

    of: Continuous = gumbel_r()


class weibull_max(Mirrored):
    """Weibull's distribution of maxima below 0: c (-z)^(c - 1) exp(-(-z)^c) for z <= 0."""

    of: Continuous = weibull_min()
    shapes: tuple[str, ...] = ("c",)
    high: float = 0.0
    point: float = -0.5
    steep = True

    def _end(self, high: bool, *shapes: Number) -> tuple[Number, Number]:
        (c,) = shapes
        return c, 0.0 * c


class genextreme(Continuous):
    """The distribution of maxima: exp(-(1 - c z)^(1 / c)) where 1 - c z is positive, Gumbel's for c = 0."""

    shapes: tuple[str, ...] = ("c",)
    open_low = True
    open_high = True

    def valid(self, *shapes: Number) -> Any:
        return less(shapes[0] * shapes[0], math.inf)

    def support(self, *shapes: Number) -> tuple[Any, Any]:
        (c,) = shapes
        some = where(equal(c, 0.0), 1.0, c)
        return where(less(c, 0.0), 1.0 / some, -math.inf), where(greater(c, 0.0), 1.0 / some, math.inf)

    def middle(self, *shapes: Number) -> Any:
        return (0.0 * shapes[0]).detach()

    def _turned(self, z: Number, c: Number) -> Number:
        """-log(1 - c z) / c, which has Gumbel's distribution."""
        return z * log1p_ratio(-c * z)

    def _logpdf(self, z: Number, c: Number) -> Number:
        y = self._turned(z, c)
        return (c - 1.0) * y - exp_minus(y)

    def _cdf(self, z: Number, c: Number) -> Number:
        return exp(-exp_minus(self._turned(z, c)))

    def _sf(self, z: Number, c: Number) -> Number:
        return -expm1(-exp_minus(self._turned(z, c)))

    def _logcdf(self, z: Number, c: Number) -> Number:
        return -exp_minus(self._turned(z, c))

    def _logsf(self, z: Number, c: Number) -> Number:
        return gumbel_r()._logsf(self._turned(z, c))

    def _ppf(self, q: Number, c: Number) -> Number:
        y = -log(-log(q))
        return y * expm1_ratio(-c * y)

    def _isf(self, q: Number, c: Number) -> Number:
        y = -log(-log1p(-q))
        return y * expm1_ratio(-c * y)


# --- skewed ---


class genlogistic(Continuous):
    """A power c of the logistic distribution function: expit(z)^c."""

    shapes: tuple[str, ...] = ("c",)

    def _logpdf(self, z: Number, c: Number) -> Number:
        return log(c) + log_expit(-z) + c * log_expit(z)

    def _cdf(self, z: Number, c: Number) -> Number:
        return exp(c * log_expit(z))

    def _sf(self, z: Number, c: Number) -> Number:
        return -expm1(c * log_expit(z))

    def _logcdf(self, z: Number, c: Number) -> Number:
        return c * log_expit(z)

    def _logsf(self, z: Number, c: Number) -> Number:
        return log_of_rest(-c * log_expit(z))

    def _ppf(self, q: Number, c: Number) -> Number:
        return -log(expm1(-log(q) / c))

    def _isf(self, q: Number, c: Number) -> Number:
        return -log(expm1(-log1p(-q) / c))


class exponnorm(Density):
    """The sum of a normal number and an exponential one of mean K."""

    shapes: tuple[str, ...] = ("K",)
    reach: float = 1e150

    def _logpdf(self, z: Number, K: Number) -> Number:
        rate = 1.0 / K
        return -log(K) + rate * (0.5 * rate - z) + log_ndtr(z - rate)


class loggamma(Continuous):
    """The logarithm of a gamma distributed number: exp(c z - exp(z)) / gamma(c)."""

    shapes: tuple[str, ...] = ("c",)

    def _logpdf(self, z: Number, c: Number) -> Number:
        return c * z - exp_minus(-z) - gammaln(c)

    def _low(self, z: Number, c: Number) -> tuple[Any, Number, Number]:
        """Whether exp(z) is nothing beside 1; exp(z) elsewhere; and the logarithm of the probability there."""
        low = less(z, -37.0)
        return low, exp(where(low, 0.0, where(greater(z, 690.0), 690.0, z))), c * where(low, z, 0.0) - gammaln(c + 1.0)

    def _cdf(self, z: Number, c: Number) -> Number:
        low, size, share = self._low(z, c)
        return where(low, exp(where(low, share, 0.0)), gammainc(c, size))

    def _sf(self, z: Number, c: Number) -> Number:
        low, size, share = self._low(z, c)
        return where(low, -expm1(where(low, share, -1.0)), gammaincc(c, size))

    def _logcdf(self, z: Number, c: Number) -> Number:
        low, size, share = self._low(z, c)
        return where(low, share, log_of_share(gammainc(c, size), gammaincc(c, size)))

    def _ppf(self, q: Number, c: Number) -> Number:
        start = (log(q) + gammaln(c + 1.0)) / c  # where exp(z) is nothing beside 1
        low = less(start, -37.0)
        return where(low, start, log(gammaincinv(where(low, 1.0, c), where(low, 0.5, q))))

    def _isf(self, q: Number, c: Number) -> Number:
        start = (log1p(-q) + gammaln(c + 1.0)) / c
        low = less(start, -37.0)
        return where(low, start, log(gammainccinv(where(low, 1.0, c), where(low, 0.5, q))))


class pearson3(Density):
    """K. Pearson's distribution of type III: a gamma distributed number, moved and stretched to mean 0 and variance 1.

    Its skewness is `skew`, of either sign; without skew it is normal. With a = 4 / skew^2 and w = skew z / 2 the
    gamma function goes into Stirling's remainder of a, so that nothing cancels as the skew vanishes.
    """

    shapes: tuple[str, ...] = ("skew",)
    open_low = True
    open_high = True
    reach: float = 1e150

    def valid(self, *shapes: Number) -> Any:
        return less(shapes[0] * shapes[0], math.inf)

    def support(self, *shapes: Number) -> tuple[Any, Any]:
        (skew,) = shapes
        end = -2.0 / where(equal(skew, 0.0), 1.0, skew)
        return where(greater(skew, 0.0), end, -math.inf), where(less(skew, 0.0), end, math.inf)

    def middle(self, *shapes: Number) -> Any:
        return (0.0 * shapes[0]).detach()

    def _logpdf(self, z: Number, skew: Number) -> Number:
        w = 0.5 * skew * z
        return -log_root(z) - stirling(0.25 * skew * skew) - z * z * log1p_rest(w) - log1p(w)


class moyal(Continuous):
    """L. Landau's distribution, as J. Moyal approximated it: exp(-(z + exp(-z)) / 2) / sqrt(2 pi)."""

    def _logpdf(self, z: Number) -> Number:
        return -0.5 * (z + exp_minus(z)) - log_root(z)

    def _cdf(self, z: Number) -> Number:
        return erfc(irrational("sqrt", 0.5, z) * exp_minus(0.5 * z))

    def _sf(self, z: Number) -> Number:
        return erf(irrational("sqrt", 0.5, z) * exp_minus(0.5 * z))

    def _logcdf(self, z: Number) -> Number:
        return log_of_tails(exp_minus(0.5 * z))

    def _ppf(self, q: Number) -> Number:
        return -2.0 * log(irrational("sqrt", 2.0, q) * erfcinv(q))

    def _isf(self, q: Number) -> Number:
        return -2.0 * log(irrational("sqrt", 2.0, q) * erfinv(q))


class johnsonsu(Continuous):
    """N. Johnson's unbounded distribution: a + b asinh(z) is normal."""

    shapes: tuple[str, ...] = ("a", "b")

    def valid(self, *shapes: Number) -> Any:
        a, b = shapes
        return logical_and(greater(b, 0.0), less(a * a, math.inf))

    def _logpdf(self, z: Number, a: Number, b: Number) -> Number:
        return log(b) - 0.5 * log1p_square(z) - 0.5 * (a + b * asinh(z)) ** 2 - log_root(z)

    def _cdf(self, z: Number, a: Number, b: Number) -> Number:
        return ndtr(a + b * asinh(z))

    def _sf(self, z: Number, a: Number, b: Number) -> Number:
        return ndtr(-a - b * asinh(z))

    def _logcdf(self, z: Number, a: Number, b: Number) -> Number:
        return log_ndtr(a + b * asinh(z))

    def _logsf(self, z: Number, a: Number, b: Number) -> Number:
        return log_ndtr(-a - b * asinh(z))

    def _ppf(self, q: Number, a: Number, b: Number) -> Number:
        return sinh((ndtri(q) - a) / b)

    def _isf(self, q: Number, a: Number, b: Number) -> Number:
        return sinh((-ndtri(q) - a) / b)


class laplace_asymmetric(Continuous):
    """The Laplace distribution of rates kappa above 0 and 1 / kappa below: exp(-kappa z), exp(z / kappa)."""

    shapes: tuple[str, ...] = ("kappa",)

    def _logpdf(self, z: Number, kappa: Number) -> Number:
        rate = where(less(z, 0.0), -1.0 / kappa, kappa)
        return -rate * z - log(kappa + 1.0 / kappa)

    def _cdf(self, z: Number, kappa: Number) -> Number:
        return _laplace_share(-z, 1.0 / kappa)

    def _sf(self, z: Number, kappa: Number) -> Number:
        return _laplace_share(z, kappa)

    def _ppf(self, q: Number, kappa: Number) -> Number:
        return -_laplace_quantile(q, 1.0 / kappa)

    def _isf(self, q: Number, kappa: Number) -> Number:
        return _laplace_quantile(q, kappa)


def _laplace_share(z: Number, kappa: Number) -> Number:
    """The probability of numbers above z."""
    above = greater_equal(z, 0.0)
    square = kappa * kappa
    right = exp(-kappa * where(above, z, 0.0)) / (1.0 + square)
    return where(above, right, 1.0 - square / (1.0 + square) * exp(where(above, 0.0, z) / kappa))


def _laplace_quantile(q: Number, kappa: Number) -> Number:
    """The number above which the probability is q."""
    square = kappa * kappa
    above = less(q * (1.0 + square), 1.0)
    right = -log(q * (1.0 + square)) / kappa
    return where(above, right, kappa * log((1.0 - where(above, 0.0, q)) * (1.0 + 1.0 / square)))


# --- symmetric ---


class gennorm(Continuous):
    """The generalised normal distribution: beta exp(-|z|^beta) / (2 gamma(1 / beta))."""

    shapes: tuple[str, ...] = ("beta",)
    symmetric = True

    def _logpdf(self, z: Number, beta: Number) -> Number:
        return log(0.5 * beta) - gammaln(1.0 / beta) - _size(z, beta)

    def _cdf(self, z: Number, beta: Number) -> Number:
        size, below, middle = _size(z, beta), less(z, 0.0), equal(z, 0.0)
        density = exp(log(0.5 * beta) - gammaln(1.0 / beta))
        first = 0.5 + z * density * (1.0 - size / (beta + 1.0))
        away = where(middle, 1.0, size)
        share = where(below, 0.5 * gammaincc(1.0 / beta, away), 0.5 + 0.5 * gammainc(1.0 / beta, away))
        return where(middle, where(middle, first, 0.5), share)

    def _ppf(self, q: Number, beta: Number) -> Number:
        below = less(q, 0.5)
        share = where(below, 2.0 * q, 2.0 - 2.0 * q)
        middle = equal(q, 0.5)
        size = exp(log(gammainccinv(1.0 / beta, where(middle, 0.5, share))) / beta)
        return where(middle, 0.0, where(below, -size, size))


def _size(z: Number, beta: Number) -> Number:
    """|z|^beta; at 0 it has no derivatives but 0, unless it is the square."""
    none = equal(z, 0.0)
    return where(none, where(equal(beta, 2.0), z * z, 0.0), power_of(absolute(where(none, 1.0, z)), beta))


class hypsecant(Continuous):
    """The hyperbolic secant: 1 / (pi cosh(z))."""

    symmetric = True

    def _logpdf(self, z: Number) -> Number:
        size = absolute(z)
        return log_2_over_pi(z) - size - log1p(exp(-2.0 * size))

    def _cdf(self, z: Number) -> Number:
        below = less(z, 0.0)
        share = atan(exp(-absolute(z))) * (2.0 / pi_beside(z))
        return where(below, share, 1.0 - share)

    def _ppf(self, q: Number) -> Number:
        """log(tan(pi q / 2)), of sines as sinc."""
        return log(q * sinc(0.5 * q)) - log((1.0 - q) * sinc(0.5 * (1.0 - q)))
