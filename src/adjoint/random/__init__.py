"""Random tensors. Numbers follow from a key of seed and counter, the same on every backend.

A sequence of keys belongs to a leaf backend, so that levels over one leaf draw on: `ad.random.seed(n)` starts that of
the default device's leaf anew, `ad.random.seed(n, device)` another's.
Numbers of continuous distributions follow their parameters differentiably; those of discrete ones are constants.
"""

from adjoint.random.basic import bernoulli, integers, normal, permutation, seed, uniform
from adjoint.random.continuous import (
    beta,
    cauchy,
    chisquare,
    dirichlet,
    exponential,
    gamma,
    gumbel,
    laplace,
    logistic,
    lognormal,
    multivariate_normal,
    student_t,
    truncated_normal,
    weibull,
)
from adjoint.random.discrete import binomial, categorical, choice, geometric, poisson, rademacher, shuffle
from adjoint.renamed import refusing

__all__ = [
    "bernoulli",
    "beta",
    "binomial",
    "categorical",
    "cauchy",
    "chisquare",
    "choice",
    "dirichlet",
    "exponential",
    "gamma",
    "geometric",
    "gumbel",
    "integers",
    "laplace",
    "logistic",
    "lognormal",
    "multivariate_normal",
    "normal",
    "permutation",
    "poisson",
    "rademacher",
    "seed",
    "shuffle",
    "student_t",
    "truncated_normal",
    "uniform",
    "weibull",
]


def __dir__() -> list[str]:
    return __all__


globals()["__getattr__"] = refusing(__name__)  # unseen by type checkers, which refuse other names themselves
