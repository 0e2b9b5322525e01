"""Continuous distributions, under SciPy's names. Each states its standard form; `families` has the rest."""

from __future__ import annotations

import math
from typing import Any

from adjoint.functions.elementwise import abs as absolute
from adjoint.functions.elementwise import atan2, exp, expm1, log, log1p, sin, sqrt, where
from adjoint.functions.elementwise import maximum as larger
from adjoint.functions.elementwise import minimum as smaller
from adjoint.functions.logic import greater, greater_equal, isinf, less, less_equal, logical_not
from adjoint.irrational import irrational, log_2_beside, log_pi_beside, pi_beside
from adjoint.special import (
    betainc,
    betaincc,
    betainccinv,
    betaincinv,
    betaln,
    erf,
    erfc,
    erfcinv,
    erfinv,
    expit,
    gammainc,
    gammaincc,
    gammainccinv,
    gammaincinv,
    gammaln,
    i0e,
    log_expit,
    log_ndtr,
    logit,
    ndtr,
    ndtri,
    sinc,
    stdtr,
    stdtrit,
    xlog1py,
    xlogy,
)
from adjoint.special.incomplete import beta_share
from adjoint.stats.families import Continuous, Density, Number, exp_or_nothing, log_2_over_pi, log_of_rest, log_root


class norm(Continuous):
    """The normal distribution: exp(-z^2 / 2) / sqrt(2 pi)."""

    symmetric = True
    reach: float = 1e150

    def _logpdf(self, z: Number) -> Number:
        return -0.5 * z * z - log_root(z)

    def _cdf(self, z: Number) -> Number:
        return ndtr(z)

    def _logcdf(self, z: Number) -> Number:
        return log_ndtr(z)

    def _ppf(self, q: Number) -> Number:
        return ndtri(q)


def log_of_tails(z: Number) -> Number:
    """The logarithm of the probability of normal numbers beyond -z and z, for z >= 0."""
    near = less(z, 0.5)
    return where(near, log1p(-erf(where(near, z, 0.0) * irrational("sqrt", 0.5, z))), log_ndtr(-z) + log_2_beside(z))


class halfnorm(Continuous):
    """The absolute value of a normal number: sqrt(2 / pi) exp(-z^2 / 2) for z >= 0."""

    low: float = 0.0
    reach: float = 1e150

    def _logpdf(self, z: Number) -> Number:
        return -0.5 * z * z + 0.5 * log_2_over_pi(z)

    def _cdf(self, z: Number) -> Number:
        return erf(z * irrational("sqrt", 0.5, z))

    def _sf(self, z: Number) -> Number:
        return erfc(z * irrational("sqrt", 0.5, z))

    def _logsf(self, z: Number) -> Number:
        return log_of_tails(z)

    def _ppf(self, q: Number) -> Number:
        return erfinv(q) * irrational("sqrt", 2.0, q)

    def _isf(self, q: Number) -> Number:
        return erfcinv(q) * irrational("sqrt", 2.0, q)


class lognorm(Continuous):
    """The exponential of a normal number of deviation s, whose mean is log(scale)."""

    shapes: tuple[str, ...] = ("s",)
    low: float = 0.0
    open_low: bool = True

    def _logpdf(self, z: Number, s: Number) -> Number:
        away = log(z) / s
        return -0.5 * away * away - log(s) - log(z) - log_root(z)

    def _cdf(self, z: Number, s: Number) -> Number:
        return ndtr(log(z) / s)

    def _sf(self, z: Number, s: Number) -> Number:
        return ndtr(-log(z) / s)

    def _logcdf(self, z: Number, s: Number) -> Number:
        return log_ndtr(log(z) / s)

    def _logsf(self, z: Number, s: Number) -> Number:
        return log_ndtr(-log(z) / s)

    def _ppf(self, q: Number, s: Number) -> Number:
        return exp(s * ndtri(q))

    def _isf(self, q: Number, s: Number) -> Number:
        return exp(-s * ndtri(q))


class skewnorm(Density):
    """The skew normal distribution: 2 times the normal density times ndtr(a z) (A. Azzalini, 1985)."""

    shapes: tuple[str, ...] = ("a",)
    reach: float = 1e150

    def valid(self, *shapes: Number) -> Any:
        return logical_not(isinf(shapes[0]))

    def _logpdf(self, z: Number, a: Number) -> Number:
        return log_2_beside(z) - 0.5 * z * z - log_root(z) + log_ndtr(a * z)


class truncnorm(Continuous):
    """The normal distribution between a and b, in units of `scale` from `loc`: either may be infinite."""

    shapes: tuple[str, ...] = ("a", "b")

    def valid(self, *shapes: Number) -> Any:
        return less(shapes[0], shapes[1])

    def usual(self) -> tuple[float, ...]:
        return (-1.0, 1.0)

    def support(self, *shapes: Number) -> tuple[Any, Any]:
        return shapes[0], shapes[1]

    def middle(self, *shapes: Number) -> Any:
        return smaller(larger(0.0 * _reachable(shapes[0]), _reachable(shapes[0])), _reachable(shapes[1])).detach()

    def _logpdf(self, z: Number, a: Number, b: Number) -> Number:
        return -0.5 * z * z - log_root(z) - log_mass(a, b)

    def _logcdf(self, z: Number, a: Number, b: Number) -> Number:
        return _log_of_part(log_mass(a, z), log_mass(z, b), log_mass(a, b))

    def _logsf(self, z: Number, a: Number, b: Number) -> Number:
        return _log_of_part(log_mass(z, b), log_mass(a, z), log_mass(a, b))

    def _cdf(self, z: Number, a: Number, b: Number) -> Number:
        return exp_or_nothing(log_mass(a, z) - log_mass(a, b))

    def _sf(self, z: Number, a: Number, b: Number) -> Number:
        return exp_or_nothing(log_mass(z, b) - log_mass(a, b))

    def _ppf(self, q: Number, a: Number, b: Number) -> Number:
        """In the tail where less is lost; both ends beyond 37 there is nothing to invert."""
        right = greater(a, 0.0)
        low, high = where(right, -b, a), where(right, -a, b)
        share = where(right, 1.0 - q, q)
        z = ndtri(ndtr(low) * (1.0 - share) + ndtr(high) * share)
        return where(right, -z, z)

    def _isf(self, q: Number, a: Number, b: Number) -> Number:
        return -self._ppf(q, -b, -a)


def _log_of_part(part: Number, rest: Number, whole: Number) -> Number:
    """part - whole, and of a part that is nearly the whole log(1 - exp(rest - whole))."""
    most = greater(part - whole, -0.5)
    return where(most, log1p(-exp_or_nothing(where(most, rest, -math.inf) - whole)), part - whole)


def _reachable(end: Number) -> Number:
    """A finite number in the place of an infinite end: beyond 1e9 there is nothing of a normal distribution."""
    return where(isinf(end), where(greater(end, 0.0), 1e9, -1e9), end)


def log_mass(a: Number, b: Number) -> Number:
    """log(ndtr(b) - ndtr(a)) for a <= b: on the side of both where that is no difference of numbers near 1."""
    a, b = _reachable(a), _reachable(b)
    right = greater(a, 0.0)
    low, high = where(right, -b, a), where(right, -a, b)
    tail = less_equal(high, 0.0)
    some = less(low, high)
    outer, inner = where(tail, where(some, low, -2.0), -2.0), where(tail, where(some, high, -1.0), -1.0)
    top = log_ndtr(inner)
    of_tail = top + log_of_rest(top - log_ndtr(outer))
    below, above = where(tail, -1.0, where(some, low, -1.0)), where(tail, 1.0, where(some, high, 1.0))
    return where(some, where(tail, of_tail, log1p(-ndtr(below) - ndtr(-above))), -math.inf)


def log1p_square(z: Number) -> Number:
    """log(1 + z^2), without overflow."""
    far = greater(absolute(z), 1e10)
    return where(far, 2.0 * log(absolute(where(far, z, 1.0))), log1p(where(far, 0.0, z) ** 2))


class t(Continuous):
    """Student's t distribution with df degrees of freedom, which may be infinite."""

    shapes: tuple[str, ...] = ("df",)
    symmetric = True

    def _logpdf(self, z: Number, df: Number) -> Number:
        normal = isinf(df)
        df = where(normal, 1.0, df)
        student = -0.5 * (df + 1.0) * log1p_square(z / sqrt(df)) - 0.5 * log(df) - betaln(0.5 * df, 0.5)
        return where(normal, -0.5 * z * z - log_root(z), student)

    def _cdf(self, z: Number, df: Number) -> Number:
        return stdtr(df, z)

    def _ppf(self, q: Number, df: Number) -> Number:
        return stdtrit(df, q)


class cauchy(Continuous):
    """The Cauchy distribution: 1 / (pi (1 + z^2))."""

    symmetric = True

    def _logpdf(self, z: Number) -> Number:
        return -log_pi_beside(z) - log1p_square(z)

    def _cdf(self, z: Number) -> Number:
        return atan2(1.0 + 0.0 * z, -z) / pi_beside(z)

    def _ppf(self, q: Number) -> Number:
        """-cos(pi q) / sin(pi q), with sines as sinc, which reduces its argument exactly."""
        return (q - 0.5) * sinc(q - 0.5) / (q * sinc(q))


class laplace(Continuous):
    """The Laplace distribution: exp(-|z|) / 2."""

    symmetric = True

    def _logpdf(self, z: Number) -> Number:
        return -absolute(z) - log_2_beside(z)

    def _cdf(self, z: Number) -> Number:
        half = 0.5 * exp(-absolute(z))
        return where(less(z, 0.0), half, 1.0 - half)

    def _logcdf(self, z: Number) -> Number:
        below = less(z, 0.0)
        return where(below, z - log_2_beside(z), log1p(-0.5 * exp(-where(below, 0.0, z))))

    def _ppf(self, q: Number) -> Number:
        below = less(q, 0.5)
        return where(below, log(2.0 * where(below, q, 0.5)), -log(2.0 - 2.0 * where(below, 0.5, q)))


class logistic(Continuous):
    """The logistic distribution, of which `expit` is the distribution function."""

    symmetric = True

    def _logpdf(self, z: Number) -> Number:
        return log_expit(z) + log_expit(-z)

    def _cdf(self, z: Number) -> Number:
        return expit(z)

    def _logcdf(self, z: Number) -> Number:
        return log_expit(z)

    def _ppf(self, q: Number) -> Number:
        return logit(q)


def exp_minus(z: Number) -> Number:
    """exp(-z); where that overflows a constant."""
    far = less(z, -690.0)
    return where(far, math.inf, exp(-where(far, 0.0, z)))


class gumbel_r(Continuous):
    """The Gumbel distribution of maxima: exp(-z - exp(-z))."""

    def _logpdf(self, z: Number) -> Number:
        return -z - exp_minus(z)

    def _cdf(self, z: Number) -> Number:
        return exp(-exp_minus(z))

    def _sf(self, z: Number) -> Number:
        return -expm1(-exp_minus(z))

    def _logcdf(self, z: Number) -> Number:
        return -exp_minus(z)

    def _logsf(self, z: Number) -> Number:
        far = greater(z, 40.0)  # where exp(-z) is nothing beside 1
        return where(far, -z, log_of_rest(exp_minus(where(far, 0.0, z))))

    def _ppf(self, q: Number) -> Number:
        return -log(-log(q))

    def _isf(self, q: Number) -> Number:
        return -log(-log1p(-q))


class uniform(Continuous):
    """The uniform distribution from loc to loc + scale."""

    low: float = 0.0
    high: float = 1.0

    def _logpdf(self, z: Number) -> Number:
        return 0.0 * z

    def _cdf(self, z: Number) -> Number:
        return z

    def _sf(self, z: Number) -> Number:
        return 1.0 - z

    def _ppf(self, q: Number) -> Number:
        return q

    def _isf(self, q: Number) -> Number:
        return 1.0 - q


class expon(Continuous):
    """The exponential distribution: exp(-z) for z >= 0."""

    low: float = 0.0

    def _logpdf(self, z: Number) -> Number:
        return -z

    def _cdf(self, z: Number) -> Number:
        return -expm1(-z)

    def _sf(self, z: Number) -> Number:
        return exp(-z)

    def _logcdf(self, z: Number) -> Number:
        return log_of_rest(z)

    def _logsf(self, z: Number) -> Number:
        return -z

    def _ppf(self, q: Number) -> Number:
        return -log1p(-q)

    def _isf(self, q: Number) -> Number:
        return -log(q)


class pareto(Continuous):
    """The Pareto distribution: b / z^(b + 1) for z >= 1, of which the logarithm is exponential."""

    shapes: tuple[str, ...] = ("b",)
    low: float = 1.0
    point: float = 2.0

    def _log(self, z: Number) -> Number:
        return log(z)

    def _exp(self, y: Number) -> Number:
        return exp(y)

    def _logpdf(self, z: Number, b: Number) -> Number:
        return log(b) - (b + 1.0) * self._log(z)

    def _cdf(self, z: Number, b: Number) -> Number:
        return -expm1(-b * self._log(z))

    def _sf(self, z: Number, b: Number) -> Number:
        return exp(-b * self._log(z))

    def _logcdf(self, z: Number, b: Number) -> Number:
        return log_of_rest(b * self._log(z))

    def _logsf(self, z: Number, b: Number) -> Number:
        return -b * self._log(z)

    def _ppf(self, q: Number, b: Number) -> Number:
        return self._exp(-log1p(-q) / b)

    def _isf(self, q: Number, b: Number) -> Number:
        return self._exp(-log(q) / b)


class lomax(pareto):
    """The Pareto distribution moved to 0: c / (1 + z)^(c + 1) for z >= 0."""

    shapes: tuple[str, ...] = ("c",)
    low: float = 0.0

    def _log(self, z: Number) -> Number:
        return log1p(z)

    def _exp(self, y: Number) -> Number:
        return expm1(y)


class weibull_min(Continuous):
    """The Weibull distribution: c z^(c - 1) exp(-z^c) for z >= 0."""

    shapes: tuple[str, ...] = ("c",)
    low: float = 0.0
    steep = True

    def _end(self, high: bool, *shapes: Number) -> tuple[Number, Number]:
        (c,) = shapes
        return c, 0.0 * c

    def _logpdf(self, z: Number, c: Number) -> Number:
        return log(c) + xlogy(c - 1.0, z) - power_of(z, c)

    def _cdf(self, z: Number, c: Number) -> Number:
        return -expm1(-power_of(z, c))

    def _sf(self, z: Number, c: Number) -> Number:
        return exp(-power_of(z, c))

    def _logcdf(self, z: Number, c: Number) -> Number:
        return log_of_rest(power_of(z, c))

    def _logsf(self, z: Number, c: Number) -> Number:
        return -power_of(z, c)

    def _ppf(self, q: Number, c: Number) -> Number:
        return exp(log(-log1p(-q)) / c)

    def _isf(self, q: Number, c: Number) -> Number:
        return exp(log(-log(q)) / c)


def power_of(z: Number, c: Number) -> Number:
    """z^c; where that overflows a constant."""
    power = c * log(z)
    far = greater(power, 690.0)
    return where(far, math.inf, exp(where(far, 0.0, power)))


class gamma(Continuous):
    """The gamma distribution: z^(a - 1) exp(-z) / gamma(a) for z >= 0."""

    shapes: tuple[str, ...] = ("a",)
    low: float = 0.0
    steep = True

    def _end(self, high: bool, *shapes: Number) -> tuple[Number, Number]:
        (a,) = shapes
        return a, 0.0 * a

    def _logpdf(self, z: Number, a: Number) -> Number:
        return xlogy(a - 1.0, z) - z - gammaln(a)

    def _cdf(self, z: Number, a: Number) -> Number:
        return gammainc(a, z)

    def _sf(self, z: Number, a: Number) -> Number:
        return gammaincc(a, z)

    def _ppf(self, q: Number, a: Number) -> Number:
        return gammaincinv(a, q)

    def _isf(self, q: Number, a: Number) -> Number:
        return gammainccinv(a, q)


class chi2(Continuous):
    """The chi-square distribution with df degrees of freedom: that of gamma with a = df / 2, twice as wide."""

    shapes: tuple[str, ...] = ("df",)
    low: float = 0.0
    steep = True

    def _end(self, high: bool, *shapes: Number) -> tuple[Number, Number]:
        (df,) = shapes
        return 0.5 * df, 0.0 * df - log_2_beside(shapes[0])

    def _logpdf(self, z: Number, df: Number) -> Number:
        a = 0.5 * df
        return xlogy(a - 1.0, z) - 0.5 * z - gammaln(a) - a * log_2_beside(z)

    def _cdf(self, z: Number, df: Number) -> Number:
        return gammainc(0.5 * df, 0.5 * z)

    def _sf(self, z: Number, df: Number) -> Number:
        return gammaincc(0.5 * df, 0.5 * z)

    def _ppf(self, q: Number, df: Number) -> Number:
        return 2.0 * gammaincinv(0.5 * df, q)

    def _isf(self, q: Number, df: Number) -> Number:
        return 2.0 * gammainccinv(0.5 * df, q)


class invgamma(Continuous):
    """The inverse of a gamma distributed number: z^(-a - 1) exp(-1 / z) / gamma(a) for z > 0."""

    shapes: tuple[str, ...] = ("a",)
    low: float = 0.0
    open_low: bool = True

    def _logpdf(self, z: Number, a: Number) -> Number:
        return -(a + 1.0) * log(z) - gammaln(a) - 1.0 / z

    def _cdf(self, z: Number, a: Number) -> Number:
        return gammaincc(a, 1.0 / z)

    def _sf(self, z: Number, a: Number) -> Number:
        return gammainc(a, 1.0 / z)

    def _ppf(self, q: Number, a: Number) -> Number:
        return 1.0 / gammainccinv(a, q)

    def _isf(self, q: Number, a: Number) -> Number:
        return 1.0 / gammaincinv(a, q)


class beta(Continuous):
    """The beta distribution: z^(a - 1) (1 - z)^(b - 1) / B(a, b) for z from 0 to 1."""

    shapes: tuple[str, ...] = ("a", "b")
    low: float = 0.0
    high: float = 1.0
    steep = True

    def _end(self, high: bool, *shapes: Number) -> tuple[Number, Number]:
        a, b = shapes[::-1] if high else shapes
        return a, log(b)

    def _logpdf(self, z: Number, a: Number, b: Number) -> Number:
        return xlogy(a - 1.0, z) + xlog1py(b - 1.0, -z) - betaln(a, b)

    def _cdf(self, z: Number, a: Number, b: Number) -> Number:
        return betainc(a, b, z)

    def _sf(self, z: Number, a: Number, b: Number) -> Number:
        return betaincc(a, b, z)

    def _ppf(self, q: Number, a: Number, b: Number) -> Number:
        return betaincinv(a, b, q)

    def _isf(self, q: Number, a: Number, b: Number) -> Number:
        return betainccinv(a, b, q)


class f(Continuous):
    """The F distribution with dfn and dfd degrees of freedom."""

    shapes: tuple[str, ...] = ("dfn", "dfd")
    low: float = 0.0
    steep = True

    def _end(self, high: bool, *shapes: Number) -> tuple[Number, Number]:
        dfn, _ = shapes
        return 0.5 * dfn, 0.0 * dfn

    def _logpdf(self, z: Number, dfn: Number, dfd: Number) -> Number:
        a, b = 0.5 * dfn, 0.5 * dfd
        ratio = dfn / dfd
        return a * log(ratio) + xlogy(a - 1.0, z) - (a + b) * log1p(ratio * z) - betaln(a, b)

    def _cdf(self, z: Number, dfn: Number, dfd: Number) -> Number:
        return beta_share(0.5 * dfn, 0.5 * dfd, dfn * z / (dfd + dfn * z), dfd / (dfd + dfn * z))

    def _sf(self, z: Number, dfn: Number, dfd: Number) -> Number:
        return beta_share(0.5 * dfd, 0.5 * dfn, dfd / (dfd + dfn * z), dfn * z / (dfd + dfn * z))

    def _ppf(self, q: Number, dfn: Number, dfd: Number) -> Number:
        a, b = 0.5 * dfn, 0.5 * dfd
        return dfd / dfn * betaincinv(a, b, q) / betainccinv(b, a, q)

    def _isf(self, q: Number, dfn: Number, dfd: Number) -> Number:
        a, b = 0.5 * dfn, 0.5 * dfd
        return dfd / dfn * betainccinv(a, b, q) / betaincinv(b, a, q)


class vonmises(Density):
    """The von Mises distribution of angles: exp(kappa cos(z)) / (2 pi I_0(kappa)), periodic, so that all x count."""

    shapes: tuple[str, ...] = ("kappa",)

    def valid(self, *shapes: Number) -> Any:
        return greater_equal(shapes[0], 0.0)

    def _logpdf(self, z: Number, kappa: Number) -> Number:
        half = sin(0.5 * z)
        return -2.0 * kappa * half * half - log(i0e(kappa)) - log_pi_beside(z, 2.0)
