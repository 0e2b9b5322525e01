"""PyTorch's distributions: `torch.distributions.Normal(0.0, 1.0).log_prob(x)`.

Samples draw from the same generator as `torch.randn` does. Gradients of `rsample` flow to the parameters, through
gamma distributed numbers by implicit differentiation (M. Figurnov, S. Mohamed and A. Mnih, 2018).
"""

from __future__ import annotations

from adjoint.torch.distributions import (
    composed,
    constraint_registry,
    continuous,
    discrete,
    distribution,
    kl,
    multivariate,
    positive,
    relaxed,
    transforms,
)
from adjoint.torch.distributions import constraints as constraints
from adjoint.torch.missing import rooms as _rooms

_NAMES = {
    name: getattr(module, name)
    for module in (continuous, positive, discrete, multivariate, composed, relaxed, transforms, kl)
    for name in module.__all__
}
_NAMES |= {
    "Distribution": distribution.Distribution, "ExponentialFamily": distribution.ExponentialFamily,
    "biject_to": constraint_registry.biject_to, "transform_to": constraint_registry.transform_to,
}  # fmt: skip
globals().update(_NAMES)
_rooms(
    __name__,
    {
        "bernoulli": ["Bernoulli"], "beta": ["Beta"], "binomial": ["Binomial"], "categorical": ["Categorical"],
        "cauchy": ["Cauchy"], "chi2": ["Chi2"], "continuous_bernoulli": ["ContinuousBernoulli"],
        "dirichlet": ["Dirichlet"], "exp_family": ["ExponentialFamily"], "exponential": ["Exponential"],
        "fishersnedecor": ["FisherSnedecor"], "gamma": ["Gamma"], "generalized_pareto": ["GeneralizedPareto"],
        "geometric": ["Geometric"], "gumbel": ["Gumbel"], "half_cauchy": ["HalfCauchy"],
        "half_normal": ["HalfNormal"], "independent": ["Independent"], "inverse_gamma": ["InverseGamma"],
        "kumaraswamy": ["Kumaraswamy"], "laplace": ["Laplace"], "lkj_cholesky": ["LKJCholesky"],
        "log_normal": ["LogNormal"], "logistic_normal": ["LogisticNormal"],
        "lowrank_multivariate_normal": ["LowRankMultivariateNormal"], "mixture_same_family": ["MixtureSameFamily"],
        "multinomial": ["Multinomial"], "multivariate_normal": ["MultivariateNormal"],
        "negative_binomial": ["NegativeBinomial"], "normal": ["Normal"],
        "one_hot_categorical": ["OneHotCategorical", "OneHotCategoricalStraightThrough"], "pareto": ["Pareto"],
        "poisson": ["Poisson"], "relaxed_bernoulli": ["LogitRelaxedBernoulli", "RelaxedBernoulli"],
        "relaxed_categorical": ["ExpRelaxedCategorical", "RelaxedOneHotCategorical"], "studentT": ["StudentT"],
        "transformed_distribution": ["TransformedDistribution"], "uniform": ["Uniform"],
        "utils": ["broadcast_all", "clamp_probs", "lazy_property", "logits_to_probs", "probs_to_logits"],
        "von_mises": ["VonMises"], "weibull": ["Weibull"], "wishart": ["Wishart"],
    },
    {**vars(distribution), **_NAMES},
)  # fmt: skip
__all__ = sorted(set(_NAMES) - {"ExpRelaxedCategorical", "LogitRelaxedBernoulli"})  # pyright: ignore[reportUnsupportedDunderAll]
