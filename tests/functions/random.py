"""Calls of distributions whose numbers follow their parameters smoothly, with a seed of their own each."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import adjoint as ad
from functions.draw import Call, Draw

FUNCTIONS: dict[str, Callable[[Draw], Call]] = {}


def seeded(f: Callable[..., Any]) -> Callable[..., Any]:
    def call(*xs: Any) -> Any:
        xs[0].device.seed(7)
        return f(*xs)

    return call


def _pair(f: Any, names: tuple[str, str], d: Draw) -> Call:
    call = seeded(lambda a, b: f((2, 3), **dict(zip(names, (a, b), strict=True)), dtype=ad.float64))
    return call, d.real((3,)), d.positive((2, 1))


for _name in ("cauchy", "gumbel", "laplace", "logistic"):
    FUNCTIONS[f"random.{_name}"] = lambda d, f=getattr(ad.random, _name): _pair(f, ("loc", "scale"), d)
FUNCTIONS["random.lognormal"] = lambda d: _pair(ad.random.lognormal, ("mean", "std"), d)


def _exponential(d: Draw) -> Call:
    return seeded(lambda a: ad.random.exponential((2, 3), scale=a)), d.positive((3,))


def _weibull(d: Draw) -> Call:
    call = seeded(lambda a, b: ad.random.weibull(a, (2, 3), scale=b))
    return call, d.between((3,), 0.7, 2.5), d.positive((2, 1))


def _truncated_normal(d: Draw) -> Call:
    call = seeded(lambda a, b, m, s: ad.random.truncated_normal(a, b, (2, 3), mean=m, std=s))
    low, high = d.between((3,), -2.0, -0.5), d.between((2, 1), 0.5, 2.0)
    return call, low, high, d.between((), -0.3, 0.3), d.between((), 0.5, 1.5)


def _multivariate_normal(d: Draw) -> Call:
    def draw(mean: Any, factor: Any) -> Any:
        cov = factor @ factor.mT + ad.eye(3, dtype=ad.float64, device=mean.device)
        return ad.random.multivariate_normal(mean, cov, (2,))

    return seeded(draw), d.real((3,)), d.real((3, 3))


def _shuffle(d: Draw) -> Call:
    axis = d.pick(0, 1, -1)
    return seeded(lambda a: ad.random.shuffle(a, axis)), d.either((3, 2))


def _choice(d: Draw) -> Call:
    how = d.pick({}, {"replace": False}, {"p": [0.5, 0.2, 0.3]}, {"p": [0.5, 0.2, 0.3], "replace": False})
    return seeded(lambda a: ad.random.choice(a, (2,), **how)), d.either((3, 2))


FUNCTIONS |= {
    "random.exponential": _exponential,
    "random.weibull": _weibull,
    "random.truncated_normal": _truncated_normal,
    "random.multivariate_normal": _multivariate_normal,
    "random.shuffle": _shuffle,
    "random.choice": _choice,
}

# Their numbers come from rejection, and their derivatives are implicit: differences for one seed are others. So are
# they of discrete distributions, which have none. Both have tests of their own.
OTHER = {
    f"random.{name}"
    for name in "gamma beta chisquare dirichlet student_t binomial categorical geometric poisson rademacher".split()
}
