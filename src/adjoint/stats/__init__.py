"""Densities, distribution functions and quantiles, under SciPy's names, with gradients to all parameters.

`ad.stats.norm.logpdf(x, loc=0, scale=1)`, as in `jax.scipy.stats`: distributions have methods `logpdf`, `pdf`, `cdf`,
`logcdf`, `sf`, `logsf`, `ppf` and `isf`, those of whole numbers `logpmf` and `pmf`. Arguments broadcast, and their
order is SciPy's. All is computed in double precision and rounded to the dtype of the operands.
`ad.random` draws numbers.

>>> import adjoint as ad
>>> x = ad.tensor([1.0, -2.0], dtype=ad.float64)
>>> scale = ad.tensor(2.0, dtype=ad.float64).require_grad()
>>> y = ad.stats.t.logpdf(x, 3.0, scale=scale).sum()
>>> round(y.item(), 6), round(y.backward()[scale].item(), 6)
(-4.123522, -0.346154)
"""

from __future__ import annotations

from adjoint.renamed import refusing
from adjoint.stats import continuous, discrete
from adjoint.stats.multivariate import dirichlet, multinomial, multivariate_normal

norm: continuous.norm = continuous.norm()
halfnorm: continuous.halfnorm = continuous.halfnorm()
lognorm: continuous.lognorm = continuous.lognorm()
skewnorm: continuous.skewnorm = continuous.skewnorm()
truncnorm: continuous.truncnorm = continuous.truncnorm()
t: continuous.t = continuous.t()
cauchy: continuous.cauchy = continuous.cauchy()
laplace: continuous.laplace = continuous.laplace()
logistic: continuous.logistic = continuous.logistic()
gumbel_r: continuous.gumbel_r = continuous.gumbel_r()
uniform: continuous.uniform = continuous.uniform()
expon: continuous.expon = continuous.expon()
pareto: continuous.pareto = continuous.pareto()
weibull_min: continuous.weibull_min = continuous.weibull_min()
gamma: continuous.gamma = continuous.gamma()
chi2: continuous.chi2 = continuous.chi2()
invgamma: continuous.invgamma = continuous.invgamma()
beta: continuous.beta = continuous.beta()
f: continuous.f = continuous.f()
vonmises: continuous.vonmises = continuous.vonmises()
poisson: discrete.poisson = discrete.poisson()
bernoulli: discrete.bernoulli = discrete.bernoulli()
binom: discrete.binom = discrete.binom()
geom: discrete.geom = discrete.geom()
nbinom: discrete.nbinom = discrete.nbinom()

__all__ = [
    "bernoulli", "beta", "binom", "cauchy", "chi2", "dirichlet", "expon", "f", "gamma", "geom", "gumbel_r", "halfnorm",
    "invgamma", "laplace", "logistic", "lognorm", "multinomial", "multivariate_normal", "nbinom", "norm", "pareto",
    "poisson", "skewnorm", "t", "truncnorm", "uniform", "vonmises", "weibull_min",
]  # fmt: skip


def __dir__() -> list[str]:
    return __all__


globals()["__getattr__"] = refusing(__name__)  # unseen by type checkers, which refuse other names themselves
