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
from adjoint.stats import continuous, discrete, intervals, lifetimes, positive, skewed
from adjoint.stats.multivariate import (
    dirichlet,
    dirichlet_multinomial,
    invwishart,
    matrix_normal,
    multinomial,
    multivariate_normal,
    multivariate_t,
    wishart,
)

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
chi: positive.chi = positive.chi()
rayleigh: positive.rayleigh = positive.rayleigh()
maxwell: positive.maxwell = positive.maxwell()
nakagami: positive.nakagami = positive.nakagami()
foldnorm: positive.foldnorm = positive.foldnorm()
rice: positive.rice = positive.rice()
invgauss: positive.invgauss = positive.invgauss()
levy: positive.levy = positive.levy()
fatiguelife: positive.fatiguelife = positive.fatiguelife()
erlang: positive.erlang = positive.erlang()
gengamma: positive.gengamma = positive.gengamma()
betaprime: positive.betaprime = positive.betaprime()
ncx2: positive.ncx2 = positive.ncx2()
halfcauchy: lifetimes.halfcauchy = lifetimes.halfcauchy()
halflogistic: lifetimes.halflogistic = lifetimes.halflogistic()
lomax: continuous.lomax = continuous.lomax()
genpareto: lifetimes.genpareto = lifetimes.genpareto()
fisk: lifetimes.fisk = lifetimes.fisk()
burr: lifetimes.burr = lifetimes.burr()
burr12: lifetimes.burr12 = lifetimes.burr12()
exponweib: lifetimes.exponweib = lifetimes.exponweib()
invweibull: lifetimes.invweibull = lifetimes.invweibull()
gompertz: lifetimes.gompertz = lifetimes.gompertz()
gumbel_l: skewed.gumbel_l = skewed.gumbel_l()
weibull_max: skewed.weibull_max = skewed.weibull_max()
genextreme: skewed.genextreme = skewed.genextreme()
genlogistic: skewed.genlogistic = skewed.genlogistic()
exponnorm: skewed.exponnorm = skewed.exponnorm()
loggamma: skewed.loggamma = skewed.loggamma()
moyal: skewed.moyal = skewed.moyal()
pearson3: skewed.pearson3 = skewed.pearson3()
johnsonsu: skewed.johnsonsu = skewed.johnsonsu()
laplace_asymmetric: skewed.laplace_asymmetric = skewed.laplace_asymmetric()
gennorm: skewed.gennorm = skewed.gennorm()
hypsecant: skewed.hypsecant = skewed.hypsecant()
arcsine: intervals.arcsine = intervals.arcsine()
powerlaw: intervals.powerlaw = intervals.powerlaw()
triang: intervals.triang = intervals.triang()
loguniform: intervals.loguniform = intervals.loguniform()
reciprocal: intervals.reciprocal = intervals.reciprocal()
johnsonsb: intervals.johnsonsb = intervals.johnsonsb()
truncexpon: intervals.truncexpon = intervals.truncexpon()
wrapcauchy: intervals.wrapcauchy = intervals.wrapcauchy()
vonmises_line: intervals.vonmises_line = intervals.vonmises_line()
randint: discrete.randint = discrete.randint()
betabinom: discrete.betabinom = discrete.betabinom()
betanbinom: discrete.betanbinom = discrete.betanbinom()
hypergeom: discrete.hypergeom = discrete.hypergeom()
logser: discrete.logser = discrete.logser()
zipf: discrete.zipf = discrete.zipf()
dlaplace: discrete.dlaplace = discrete.dlaplace()
skellam: discrete.skellam = discrete.skellam()

__all__ = [
    "arcsine", "bernoulli", "beta", "betabinom", "betanbinom", "betaprime", "binom", "burr", "burr12", "cauchy", "chi",
    "chi2", "dirichlet", "dirichlet_multinomial", "dlaplace", "erlang", "expon", "exponnorm", "exponweib", "f",
    "fatiguelife", "fisk", "foldnorm", "gamma", "genextreme", "gengamma", "genlogistic", "gennorm", "genpareto", "geom",
    "gompertz", "gumbel_l", "gumbel_r", "halfcauchy", "halflogistic", "halfnorm", "hypergeom", "hypsecant", "invgamma",
    "invgauss", "invweibull", "invwishart", "johnsonsb", "johnsonsu", "laplace", "laplace_asymmetric", "levy",
    "loggamma", "logistic", "lognorm", "logser", "loguniform", "lomax", "matrix_normal", "maxwell", "moyal",
    "multinomial", "multivariate_normal", "multivariate_t", "nakagami", "nbinom", "ncx2", "norm", "pareto", "pearson3",
    "poisson", "powerlaw", "randint", "rayleigh", "reciprocal", "rice", "skellam", "skewnorm", "t", "triang",
    "truncexpon", "truncnorm", "uniform", "vonmises", "vonmises_line", "weibull_max", "weibull_min", "wishart",
    "wrapcauchy", "zipf",
]  # fmt: skip


def __dir__() -> list[str]:
    return __all__


globals()["__getattr__"] = refusing(__name__)  # unseen by type checkers, which refuse other names themselves
