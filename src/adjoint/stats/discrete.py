"""Distributions of whole numbers, under SciPy's names."""

from __future__ import annotations

from typing import Any

from adjoint.functions.elementwise import exp, expm1, log, log1p, where
from adjoint.functions.logic import equal, greater, greater_equal, less, less_equal, logical_and
from adjoint.special import betainc, betaln, gammainc, gammaincc, gammaln, xlog1py, xlogy
from adjoint.stats.families import Discrete, Number


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
