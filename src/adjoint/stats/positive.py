"""Continuous distributions of what is made of normal and of gamma distributed numbers, under SciPy's names.

Each states its standard form; `families` has the rest.
"""

from __future__ import annotations

import math
from typing import Any

from adjoint.functions.elementwise import exp, expm1, log, log1p, logaddexp, sqrt, where
from adjoint.functions.elementwise import maximum as larger
from adjoint.functions.logic import equal, greater, greater_equal, less, logical_and, logical_not
from adjoint.irrational import log_2_beside
from adjoint.special import (
    betainccinv,
    betaincinv,
    betaln,
    erf,
    erfc,
    erfcinv,
    erfinv,
    gammainc,
    gammaincc,
    gammainccinv,
    gammaincinv,
    gammaln,
    hyp0f1,
    i0e,
    ive,
    log_ndtr,
    ndtr,
    ndtri,
    xlogy,
)
from adjoint.special.arguments import constant
from adjoint.special.incomplete import beta_share
from adjoint.stats.continuous import gamma, log_mass, log_of_tails, power_of
from adjoint.stats.families import (
    Continuous,
    Density,
    Number,
    exp_or_nothing,
    log_2_over_pi,
    log_of_rest,
    log_root,
)
from adjoint.stats.inversion import inverted, normal_quantile

# --- of normal numbers ---


class chi(Continuous):
    """The length of a vector of df normal numbers: 2^(1 - df / 2) z^(df - 1) exp(-z^2 / 2) / gamma(df / 2)."""

    shapes: tuple[str, ...] = ("df",)
    low: float = 0.0
    reach: float = 1e150
    steep = True

    def _end(self, high: bool, *shapes: Number) -> tuple[Number, Number]:
        (df,) = shapes
        return df, 0.0 * df + 0.5 * log_2_over_pi(shapes[0])

    def _logpdf(self, z: Number, df: Number) -> Number:
        return (1.0 - 0.5 * df) * log_2_beside(z) + xlogy(df - 1.0, z) - 0.5 * z * z - gammaln(0.5 * df)

    def _cdf(self, z: Number, df: Number) -> Number:
        return gammainc(0.5 * df, 0.5 * z * z)

    def _sf(self, z: Number, df: Number) -> Number:
        return gammaincc(0.5 * df, 0.5 * z * z)

    def _ppf(self, q: Number, df: Number) -> Number:
        return sqrt(2.0 * gammaincinv(0.5 * df, q))

    def _isf(self, q: Number, df: Number) -> Number:
        return sqrt(2.0 * gammainccinv(0.5 * df, q))


class rayleigh(Continuous):
    """The length of a vector of two normal numbers: z exp(-z^2 / 2) for z > 0."""

    low: float = 0.0
    open_low: bool = True
    reach: float = 1e150

    def _logpdf(self, z: Number) -> Number:
        return log(z) - 0.5 * z * z

    def _cdf(self, z: Number) -> Number:
        return -expm1(-0.5 * z * z)

    def _sf(self, z: Number) -> Number:
        return exp(-0.5 * z * z)

    def _logcdf(self, z: Number) -> Number:
        return log_of_rest(0.5 * z * z)

    def _logsf(self, z: Number) -> Number:
        return -0.5 * z * z

    def _ppf(self, q: Number) -> Number:
        return sqrt(-2.0 * log1p(-q))

    def _isf(self, q: Number) -> Number:
        return sqrt(-2.0 * log(q))


class maxwell(Continuous):
    """The length of a vector of three normal numbers: sqrt(2 / pi) z^2 exp(-z^2 / 2) for z > 0."""

    low: float = 0.0
    open_low: bool = True
    reach: float = 1e150

    def _logpdf(self, z: Number) -> Number:
        return 0.5 * log_2_over_pi(z) + 2.0 * log(z) - 0.5 * z * z

    def _cdf(self, z: Number) -> Number:
        return gammainc(1.5, 0.5 * z * z)

    def _sf(self, z: Number) -> Number:
        return gammaincc(1.5, 0.5 * z * z)

    def _ppf(self, q: Number) -> Number:
        return sqrt(2.0 * gammaincinv(1.5, q))

    def _isf(self, q: Number) -> Number:
        return sqrt(2.0 * gammainccinv(1.5, q))


class nakagami(Continuous):
    """The root of a gamma distributed number of mean 1: 2 nu^nu z^(2 nu - 1) exp(-nu z^2) / gamma(nu)."""

    shapes: tuple[str, ...] = ("nu",)
    low: float = 0.0
    reach: float = 1e150
    steep = True

    def _end(self, high: bool, *shapes: Number) -> tuple[Number, Number]:
        (nu,) = shapes
        return 2.0 * nu, 0.0 * nu + 0.5 * log_2_over_pi(shapes[0])

    def _logpdf(self, z: Number, nu: Number) -> Number:
        return log_2_beside(z) + xlogy(nu, nu) + xlogy(2.0 * nu - 1.0, z) - nu * z * z - gammaln(nu)

    def _cdf(self, z: Number, nu: Number) -> Number:
        return gammainc(nu, nu * z * z)

    def _sf(self, z: Number, nu: Number) -> Number:
        return gammaincc(nu, nu * z * z)

    def _ppf(self, q: Number, nu: Number) -> Number:
        return sqrt(gammaincinv(nu, q) / nu)

    def _isf(self, q: Number, nu: Number) -> Number:
        return sqrt(gammainccinv(nu, q) / nu)


class foldnorm(Continuous):
    """The absolute value of a normal number of mean c and deviation 1."""

    shapes: tuple[str, ...] = ("c",)
    low: float = 0.0
    reach: float = 1e150

    def valid(self, *shapes: Number) -> Any:
        return greater_equal(shapes[0], 0.0)

    def _logpdf(self, z: Number, c: Number) -> Number:
        return -0.5 * (z - c) ** 2 + log1p(exp(-2.0 * c * z)) - log_root(z)

    def _cdf(self, z: Number, c: Number) -> Number:
        return exp_or_nothing(self._logcdf(z, c))

    def _sf(self, z: Number, c: Number) -> Number:
        return ndtr(c - z) + ndtr(-z - c)

    def _logcdf(self, z: Number, c: Number) -> Number:
        """Near 0, where both ends of the mass are one, by the series of the integral of exp(-t^2 / 2) cosh(c t)."""
        digits, size = z.device.leaf.digits, z * (1.0 + c)
        near = less(size, 0.03125 if digits is None else 2.0 ** -(digits // 2))
        t, d = where(near, z * z, 0.0), where(near, c * c, 0.0)
        more = (d - 1.0) * t / 6.0 + (d * d - 6.0 * d + 3.0) * t * t / 120.0
        more = more + (d * d * d - 15.0 * d * d + 45.0 * d - 15.0) * t**3 / 5040.0
        some, away = logical_and(near, greater(z, 0.0)), where(near, 1.0, z)
        first = log_2_over_pi(z) * 0.5 - 0.5 * c * c + log(where(some, z, 1.0)) + log1p(more)
        return where(near, where(some, first, -math.inf), log_mass(-away - c, away - c))

    def _logsf(self, z: Number, c: Number) -> Number:
        share = self._cdf(z, c)
        near = less(share, 0.5)
        return where(near, log1p(-where(near, share, 0.0)), logaddexp(log_ndtr(c - z), log_ndtr(-z - c)))

    def _bounds(self, q: Number, p: Number, c: Number) -> tuple[Number, Number]:
        """By the probability of z - c alone, the largest density, and that of a number whose size is c more."""
        least = larger(c + normal_quantile(q, p), q)
        return least, c + where(less(q, p), erfinv(where(less(q, p), q, 0.5)), erfcinv(where(less(q, p), 0.5, p))) * 1.5

    def _ppf(self, q: Number, c: Number) -> Number:
        return inverted(self, q, 1.0 - q, self._bounds, c)

    def _isf(self, q: Number, c: Number) -> Number:
        return inverted(self, 1.0 - q, q, self._bounds, c)


class rice(Density):
    """The length of a vector of two normal numbers whose mean has length b: z exp(-(z^2 + b^2) / 2) I_0(z b)."""

    shapes: tuple[str, ...] = ("b",)
    low: float = 0.0
    open_low: bool = True
    reach: float = 1e150

    def valid(self, *shapes: Number) -> Any:
        return greater_equal(shapes[0], 0.0)

    def _logpdf(self, z: Number, b: Number) -> Number:
        return log(z) - 0.5 * (z - b) ** 2 + log(i0e(z * b))


class invgauss(Continuous):
    """The inverse normal distribution of mean mu: exp(-(z - mu)^2 / (2 z mu^2)) / sqrt(2 pi z^3) for z > 0."""

    shapes: tuple[str, ...] = ("mu",)
    low: float = 0.0
    open_low: bool = True

    def _logpdf(self, z: Number, mu: Number) -> Number:
        return -log_root(z) - 1.5 * log(z) - 0.5 * (z / mu - 1.0) ** 2 / z

    def _cdf(self, z: Number, mu: Number) -> Number:
        return exp(self._logcdf(z, mu))

    def _sf(self, z: Number, mu: Number) -> Number:
        return exp_or_nothing(self._logsf(z, mu))

    def _logcdf(self, z: Number, mu: Number) -> Number:
        root = sqrt(z)
        return logaddexp(log_ndtr((z / mu - 1.0) / root), 2.0 / mu + log_ndtr(-(z / mu + 1.0) / root))

    def _logsf(self, z: Number, mu: Number) -> Number:
        root = sqrt(z)
        above = log_ndtr((1.0 - z / mu) / root)
        return above + log_of_rest(above - 2.0 / mu - log_ndtr(-(z / mu + 1.0) / root))

    def _bounds(self, q: Number, p: Number, mu: Number) -> tuple[Number, Number]:
        """Where the first of the two terms has all of the probability, and where it has half of it."""

        def place(n: Number) -> Number:
            """The z with (z / mu - 1) / sqrt(z) = n, without cancellation."""
            rises = greater(n, 0.0)
            side = where(rises, n, -n) + sqrt(n * n + 4.0 / mu)
            return where(rises, 0.5 * mu * side, 2.0 / side) ** 2

        return place(ndtri(0.5 * q)), place(normal_quantile(q, p))

    def _ppf(self, q: Number, mu: Number) -> Number:
        return inverted(self, q, 1.0 - q, self._bounds, mu)

    def _isf(self, q: Number, mu: Number) -> Number:
        return inverted(self, 1.0 - q, q, self._bounds, mu)


class levy(Continuous):
    """The inverse of the square of a normal number: exp(-1 / (2 z)) / sqrt(2 pi z^3) for z > 0."""

    low: float = 0.0
    open_low: bool = True

    def _logpdf(self, z: Number) -> Number:
        return -log_root(z) - 1.5 * log(z) - 0.5 / z

    def _cdf(self, z: Number) -> Number:
        return erfc(sqrt(0.5 / z))

    def _sf(self, z: Number) -> Number:
        return erf(sqrt(0.5 / z))

    def _logcdf(self, z: Number) -> Number:
        return log_of_tails(sqrt(1.0 / z))

    def _ppf(self, q: Number) -> Number:
        return 0.5 / erfcinv(q) ** 2

    def _isf(self, q: Number) -> Number:
        return 0.5 / erfinv(q) ** 2


class fatiguelife(Continuous):
    """The lifetime of Z. Birnbaum and S. Saunders: (sqrt(z) - 1 / sqrt(z)) / c is normal."""

    shapes: tuple[str, ...] = ("c",)
    low: float = 0.0
    open_low: bool = True

    def _logpdf(self, z: Number, c: Number) -> Number:
        return log1p(z) - log(c) - log_2_beside(z) - log_root(z) - 1.5 * log(z) - 0.5 * ((z - 1.0) / c) ** 2 / z

    def _cdf(self, z: Number, c: Number) -> Number:
        return ndtr((z - 1.0) / (c * sqrt(z)))

    def _sf(self, z: Number, c: Number) -> Number:
        return ndtr((1.0 - z) / (c * sqrt(z)))

    def _logcdf(self, z: Number, c: Number) -> Number:
        return log_ndtr((z - 1.0) / (c * sqrt(z)))

    def _logsf(self, z: Number, c: Number) -> Number:
        return log_ndtr((1.0 - z) / (c * sqrt(z)))

    def _ppf(self, q: Number, c: Number) -> Number:
        return _root_of(c * ndtri(q))

    def _isf(self, q: Number, c: Number) -> Number:
        return _root_of(-c * ndtri(q))


def _root_of(y: Number) -> Number:
    """The z with sqrt(z) - 1 / sqrt(z) = y, without cancellation."""
    size = 0.5 * (where(less(y, 0.0), -y, y) + sqrt(y * y + 4.0))
    return where(less(y, 0.0), size**-2, size**2)


# --- of gamma distributed numbers ---


class erlang(gamma):
    """The gamma distribution, of whole shapes as a rule: the sum of a exponential numbers."""


class gengamma(Continuous):
    """A power 1 / c of a gamma distributed number: |c| z^(c a - 1) exp(-z^c) / gamma(a); c may be negative."""

    shapes: tuple[str, ...] = ("a", "c")
    low: float = 0.0
    steep = True

    def valid(self, *shapes: Number) -> Any:
        return logical_and(greater(shapes[0], 0.0), logical_not(equal(shapes[1], 0.0)))

    def _end(self, high: bool, *shapes: Number) -> tuple[Number, Number]:
        a, c = shapes
        rises = greater(c, 0.0)
        return where(rises, a * c, 2.0), log(where(rises, c, 1.0)) - gammaln(a)

    def _logpdf(self, z: Number, a: Number, c: Number) -> Number:
        return log(where(less(c, 0.0), -c, c)) + xlogy(c * a - 1.0, z) - power_of(z, c) - gammaln(a)

    def _cdf(self, z: Number, a: Number, c: Number) -> Number:
        return where(greater(c, 0.0), gammainc(a, power_of(z, c)), gammaincc(a, power_of(z, c)))

    def _sf(self, z: Number, a: Number, c: Number) -> Number:
        return where(greater(c, 0.0), gammaincc(a, power_of(z, c)), gammainc(a, power_of(z, c)))

    def _ppf(self, q: Number, a: Number, c: Number) -> Number:
        return exp(log(where(greater(c, 0.0), gammaincinv(a, q), gammainccinv(a, q))) / c)

    def _isf(self, q: Number, a: Number, c: Number) -> Number:
        return exp(log(where(greater(c, 0.0), gammainccinv(a, q), gammaincinv(a, q))) / c)


class ncx2(Density):
    """The sum of squares of df normal numbers of variance 1, whose means' squares have the sum nc, which may be 0.

    By 0F1, or where that may overflow by a Bessel function: needs SciPy, and has no derivative by df. Where the Bessel
    function is too small for a number, the density is 0.
    """

    shapes: tuple[str, ...] = ("df", "nc")
    low: float = 0.0
    open_low: bool = True

    def valid(self, *shapes: Number) -> Any:
        df, nc = shapes
        return logical_and(greater(df, 0.0), greater_equal(nc, 0.0))

    def _logpdf(self, z: Number, df: Number, nc: Number) -> Number:
        constant(df, "stats.ncx2", "df")
        df = df.detach()
        near, order = less(z * nc, 250_000.0), 0.5 * df - 1.0
        series = hyp0f1(0.5 * df, 0.25 * z * where(near, nc, 0.0))
        first = xlogy(order, 0.5 * z) - gammaln(0.5 * df) - log_2_beside(z) - 0.5 * (z + nc) + log(series)
        mean = where(near, 1.0, nc)
        bessel = ive(order, sqrt(where(near, 1.0, z) * mean))
        some = greater(bessel, 0.0)
        second = 0.5 * order * (log(z) - log(mean)) - 0.5 * (sqrt(z) - sqrt(mean)) ** 2 - log_2_beside(z)
        return where(near, first, where(some, second + log(where(some, bessel, 1.0)), -math.inf))


class betaprime(Continuous):
    """The ratio of two gamma distributed numbers: z^(a - 1) (1 + z)^(-a - b) / B(a, b)."""

    shapes: tuple[str, ...] = ("a", "b")
    low: float = 0.0
    steep = True

    def _end(self, high: bool, *shapes: Number) -> tuple[Number, Number]:
        a, b = shapes
        return a, log(b)

    def _logpdf(self, z: Number, a: Number, b: Number) -> Number:
        return xlogy(a - 1.0, z) - (a + b) * log1p(z) - betaln(a, b)

    def _cdf(self, z: Number, a: Number, b: Number) -> Number:
        return beta_share(a, b, z / (1.0 + z), 1.0 / (1.0 + z))

    def _sf(self, z: Number, a: Number, b: Number) -> Number:
        return beta_share(b, a, 1.0 / (1.0 + z), z / (1.0 + z))

    def _ppf(self, q: Number, a: Number, b: Number) -> Number:
        return betaincinv(a, b, q) / betainccinv(b, a, q)

    def _isf(self, q: Number, a: Number, b: Number) -> Number:
        return betainccinv(a, b, q) / betaincinv(b, a, q)
