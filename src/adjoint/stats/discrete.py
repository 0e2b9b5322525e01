"""Distributions of whole numbers, under SciPy's names."""

from __future__ import annotations

import math
from typing import Any

from adjoint.functions.elementwise import abs as absolute
from adjoint.functions.elementwise import exp, expm1, log, log1p, sqrt, tanh, where
from adjoint.functions.elementwise import maximum as larger
from adjoint.functions.elementwise import minimum as smaller
from adjoint.functions.logic import equal, greater, greater_equal, less, less_equal, logical_and
from adjoint.special import betainc, betaln, gammainc, gammaincc, gammaln, ive, xlog1py, xlogy, zeta
from adjoint.stats.families import Discrete, Mass, Number


def _probability(p: Number) -> Any:
    return logical_and(greater_equal(p, 0.0), less_equal(p, 1.0))


class poisson(Discrete):
    """The Poisson distribution of mean mu, which may be 0."""

    shapes: tuple[str, ...] = ("mu",)

    def valid(self, *shapes: Number) -> Any:
        return greater_equal(shapes[0], 0.0)

    def _logpmf(self, k: Number, mu: Number) -> Number:
        return xlogy(k, mu) - gammaln(k + 1.0) - mu

    def _cdf(self, k: Number, mu: Number) -> Number:
        return gammaincc(k + 1.0, mu)

    def _sf(self, k: Number, mu: Number) -> Number:
        return gammainc(k + 1.0, mu)


class bernoulli(Discrete):
    """1 with probability p, else 0."""

    shapes: tuple[str, ...] = ("p",)
    high: float = 1.0

    def valid(self, *shapes: Number) -> Any:
        return _probability(shapes[0])

    def _logpmf(self, k: Number, p: Number) -> Number:
        return xlogy(k, p) + xlog1py(1.0 - k, -p)

    def _cdf(self, k: Number, p: Number) -> Number:
        return where(equal(k, 1.0), 1.0, 1.0 - p)

    def _sf(self, k: Number, p: Number) -> Number:
        return where(equal(k, 1.0), 0.0, p)


class binom(Discrete):
    """The number of successes among n trials, of probability p each; the gradient goes to n as a real number."""

    shapes: tuple[str, ...] = ("n", "p")

    def valid(self, *shapes: Number) -> Any:
        return logical_and(greater_equal(shapes[0], 0.0), _probability(shapes[1]))

    def support(self, *shapes: Number) -> tuple[Any, Any]:
        return 0.0, shapes[0]

    def _logpmf(self, k: Number, n: Number, p: Number) -> Number:
        return xlogy(k, p) + xlog1py(n - k, -p) - log(n + 1.0) - betaln(n - k + 1.0, k + 1.0)

    def _cdf(self, k: Number, n: Number, p: Number) -> Number:
        inside = less(k, n)
        return where(inside, betainc(where(inside, n - k, 1.0), k + 1.0, 1.0 - p), 1.0)

    def _sf(self, k: Number, n: Number, p: Number) -> Number:
        inside = less(k, n)
        return where(inside, betainc(k + 1.0, where(inside, n - k, 1.0), p), 0.0)


class geom(Discrete):
    """The number of trials up to the first success, of probability p each: 1, 2, ..."""

    shapes: tuple[str, ...] = ("p",)
    low: float = 1.0

    def valid(self, *shapes: Number) -> Any:
        return logical_and(greater(shapes[0], 0.0), less_equal(shapes[0], 1.0))

    def _logpmf(self, k: Number, p: Number) -> Number:
        return xlog1py(k - 1.0, -p) + log(p)

    def _cdf(self, k: Number, p: Number) -> Number:
        sure = equal(p, 1.0)
        return where(sure, 1.0, -expm1(k * log1p(-where(sure, 0.5, p))))

    def _sf(self, k: Number, p: Number) -> Number:
        sure = equal(p, 1.0)
        return where(sure, 0.0, exp(k * log1p(-where(sure, 0.5, p))))


class nbinom(Discrete):
    """The number of failures before the n-th success, of probability p each; n may be any positive number."""

    shapes: tuple[str, ...] = ("n", "p")

    def valid(self, *shapes: Number) -> Any:
        n, p = shapes
        return logical_and(greater(n, 0.0), logical_and(greater(p, 0.0), less_equal(p, 1.0)))

    def _logpmf(self, k: Number, n: Number, p: Number) -> Number:
        return n * log(p) + xlog1py(k, -p) - log(n + k) - betaln(n, k + 1.0)

    def _cdf(self, k: Number, n: Number, p: Number) -> Number:
        return betainc(n, k + 1.0, p)

    def _sf(self, k: Number, n: Number, p: Number) -> Number:
        return betainc(k + 1.0, n, 1.0 - p)


class randint(Discrete):
    """Whole numbers from low to high - 1, each as probable as any other; the gradient goes to the ends as real ones."""

    shapes: tuple[str, ...] = ("low", "high")

    def valid(self, *shapes: Number) -> Any:
        return less(shapes[0], shapes[1])

    def usual(self) -> tuple[float, ...]:
        return (0.0, 1.0)

    def support(self, *shapes: Number) -> tuple[Any, Any]:
        return shapes[0], shapes[1] - 1.0

    def _logpmf(self, k: Number, low: Number, high: Number) -> Number:
        return 0.0 * k - log(high - low)

    def _cdf(self, k: Number, low: Number, high: Number) -> Number:
        return (k - low + 1.0) / (high - low)

    def _sf(self, k: Number, low: Number, high: Number) -> Number:
        return (high - k - 1.0) / (high - low)


class betabinom(Mass):
    """The number of successes among n trials, whose probability is beta distributed, with a and b."""

    shapes: tuple[str, ...] = ("n", "a", "b")

    def valid(self, *shapes: Number) -> Any:
        n, a, b = shapes
        return logical_and(greater_equal(n, 0.0), logical_and(greater(a, 0.0), greater(b, 0.0)))

    def support(self, *shapes: Number) -> tuple[Any, Any]:
        return 0.0, shapes[0]

    def _logpmf(self, k: Number, n: Number, a: Number, b: Number) -> Number:
        return -log(n + 1.0) - betaln(n - k + 1.0, k + 1.0) + betaln(k + a, n - k + b) - betaln(a, b)


class betanbinom(Mass):
    """The number of failures before the n-th success, whose probability is beta distributed, with a and b."""

    shapes: tuple[str, ...] = ("n", "a", "b")

    def _logpmf(self, k: Number, n: Number, a: Number, b: Number) -> Number:
        return -log(n + k) - betaln(n, k + 1.0) + betaln(a + n, b + k) - betaln(a, b)


class hypergeom(Mass):
    """The number of marked ones among N that are drawn of M, n of them marked; the gradient is that of real numbers."""

    shapes: tuple[str, ...] = ("M", "n", "N")

    def valid(self, *shapes: Number) -> Any:
        M, n, N = shapes
        some = logical_and(greater_equal(n, 0.0), greater_equal(N, 0.0))
        return logical_and(some, logical_and(less_equal(n, M), less_equal(N, M)))

    def usual(self) -> tuple[float, ...]:
        return (2.0, 1.0, 1.0)

    def support(self, *shapes: Number) -> tuple[Any, Any]:
        M, n, N = (v.detach() for v in shapes)
        return larger(0.0 * M, N - (M - n)), smaller(n, N)

    def _logpmf(self, k: Number, M: Number, n: Number, N: Number) -> Number:
        return _log_choices(n, k) + _log_choices(M - n, N - k) - _log_choices(M, N)


def _log_choices(n: Number, k: Number) -> Number:
    return -betaln(k + 1.0, n - k + 1.0) - log(n + 1.0)


class logser(Mass):
    """R. Fisher's logarithmic series: -p^k / (k log(1 - p)) for k = 1, 2, ..."""

    shapes: tuple[str, ...] = ("p",)
    low: float = 1.0

    def valid(self, *shapes: Number) -> Any:
        return logical_and(greater(shapes[0], 0.0), less(shapes[0], 1.0))

    def _logpmf(self, k: Number, p: Number) -> Number:
        return k * log(p) - log(k) - log(-log1p(-p))


class zipf(Mass):
    """Zipf's law of words: k^-a / zeta(a) for k = 1, 2, ..."""

    shapes: tuple[str, ...] = ("a",)
    low: float = 1.0

    def valid(self, *shapes: Number) -> Any:
        return greater(shapes[0], 1.0)

    def usual(self) -> tuple[float, ...]:
        return (2.0,)

    def _logpmf(self, k: Number, a: Number) -> Number:
        return -a * log(k) - log(zeta(a, 1.0))


class dlaplace(Mass):
    """The Laplace distribution of whole numbers: tanh(a / 2) exp(-a |k|)."""

    shapes: tuple[str, ...] = ("a",)
    low: float = -math.inf

    def inner(self, low: Any) -> Any:
        return 0.0

    def _logpmf(self, k: Number, a: Number) -> Number:
        return log(tanh(0.5 * a)) - a * absolute(k)


class skellam(Mass):
    """The difference of two Poisson distributed numbers of means mu1 and mu2. Needs SciPy, for `special.ive`.

    Where that is too small for a number, the probability is 0.
    """

    shapes: tuple[str, ...] = ("mu1", "mu2")
    low: float = -math.inf

    def inner(self, low: Any) -> Any:
        return 0.0

    def _logpmf(self, k: Number, mu1: Number, mu2: Number) -> Number:
        first, second = sqrt(mu1), sqrt(mu2)
        order = absolute(k).detach()
        known = less(order, 1e9)  # of which there are values
        bessel = ive(where(known, order, 0.0), 2.0 * first * second)
        some = logical_and(known, greater(bessel, 0.0))
        value = k * (log(first) - log(second)) - (first - second) ** 2 + log(where(some, bessel, 1.0))
        return where(some, value, -math.inf)
