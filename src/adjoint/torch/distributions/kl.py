"""Kullback and Leibler's divergences: `kl_divergence(p, q)`, by the classes of p and q."""

from __future__ import annotations

import itertools
import math
import warnings
from collections.abc import Callable
from typing import Any

import adjoint.torch as torch
from adjoint.torch.distributions import continuous, discrete, multivariate, positive
from adjoint.torch.distributions.composed import Independent, TransformedDistribution
from adjoint.torch.distributions.distribution import EULER, LOG_2_PI, Distribution
from adjoint.torch.distributions.transform import sum_rightmost

_RULES: dict[tuple[type, type], Callable[[Any, Any], Any]] = {}


def register_kl(type_p: type, type_q: type) -> Callable[[Any], Any]:
    """A decorator: the function gives the divergence of two distributions of these classes, or classes below them."""
    for given in (type_p, type_q):
        if not (isinstance(given, type) and issubclass(given, Distribution)):
            raise TypeError(f"Expected type_{'p' if given is type_p else 'q'} to be a Distribution subclass but got "
                            f"{given}")  # fmt: skip

    def decorator(function: Any) -> Any:
        _RULES[type_p, type_q] = function
        return function

    return decorator


def _rule(p: type, q: type) -> Callable[[Any, Any], Any] | None:
    """The rule of the nearest classes: p's come first, and those of q if they differ say so."""
    found: list[Any] = [pair for pair in _RULES if issubclass(p, pair[0]) and issubclass(q, pair[1])]
    if not found:
        return None

    def near(pair: Any) -> tuple[int, int]:
        return p.__mro__.index(pair[0]), q.__mro__.index(pair[1])

    by_p, by_q = min(found, key=near), min(found, key=lambda pair: near(pair)[::-1])
    if _RULES[by_p] is not _RULES[by_q]:
        names = [f"{a.__name__}, {b.__name__}" for a, b in (by_p, by_q)]
        warnings.warn(
            f"Ambiguous kl_divergence({p.__name__}, {q.__name__}). Please register_kl({names[0]}) or ({names[1]})",
            RuntimeWarning,
            stacklevel=3,
        )
    return _RULES[by_p]


def kl_divergence(p: Distribution, q: Distribution) -> Any:
    """The mean of log p - log q of numbers of p, for each of the batch. Raises NotImplementedError for unknown pairs.

    >>> import adjoint.torch as torch
    >>> D = torch.distributions
    >>> D.kl_divergence(D.Normal(0.0, 1.0), D.Normal(1.0, 1.0))
    tensor(0.5000)
    """
    rule = _rule(type(p), type(q))
    if rule is None:
        raise NotImplementedError(
            f"No KL(p || q) is implemented for p type {type(p).__name__} and q type {type(q).__name__}"
        )
    return rule(p, q)


# --- of one family ---------------------------------------------------------------------------------------


def _own(family: type) -> Callable[[Any], Any]:
    return register_kl(family, family)


def _log_beta(d: Any) -> Any:
    return d._log_norm()


@_own(discrete.Bernoulli)
def _bernoulli(p: Any, q: Any) -> Any:
    found = torch.where(p.probs == 0, 0.0, torch.where(q.probs == 0, math.inf, torch.xlogy(p.probs, p.probs / q.probs)))
    r, s = 1 - p.probs, 1 - q.probs
    return found + torch.where(p.probs == 1, 0.0, torch.where(q.probs == 1, math.inf, torch.xlogy(r, r / s)))


@_own(discrete.Binomial)
def _binomial(p: Any, q: Any) -> Any:
    if bool((p.total_count < q.total_count).any()):
        raise NotImplementedError("KL between Binomials where q.total_count > p.total_count is not implemented")
    found = p.total_count * (p.probs * (p.logits - q.logits) + (-p.probs).log1p() - (-q.probs).log1p())
    return torch.where(p.total_count > q.total_count, math.inf, found)


@_own(discrete.Categorical)
def _categorical(p: Any, q: Any) -> Any:
    terms = p.probs * (p.logits - q.logits)
    terms = torch.where((q.probs == 0).expand_as(terms), math.inf, terms)
    return torch.where((p.probs == 0).expand_as(terms), 0.0, terms).sum(-1)


@_own(discrete.OneHotCategorical)
def _one_hot(p: Any, q: Any) -> Any:
    return _categorical(p._categorical, q._categorical)


@_own(discrete.Geometric)
def _geometric(p: Any, q: Any) -> Any:
    return -p.entropy() - torch.log1p(-q.probs) / p.probs - q.logits


@_own(discrete.Poisson)
def _poisson(p: Any, q: Any) -> Any:
    return p.rate * (p.rate.log() - q.rate.log()) - (p.rate - q.rate)


@_own(positive.Beta)
def _beta(p: Any, q: Any) -> Any:
    a, b, c, d = p.concentration1, p.concentration0, q.concentration1, q.concentration0
    found = _log_beta(q) - _log_beta(p) + (a - c) * a.digamma() + (b - d) * b.digamma()
    return found + (c + d - a - b) * (a + b).digamma()


@_own(positive.Dirichlet)
def _dirichlet(p: Any, q: Any) -> Any:
    a, b = p.concentration, q.concentration
    norms = a.sum(-1).lgamma() - b.sum(-1).lgamma() - (a.lgamma() - b.lgamma()).sum(-1)
    return norms + ((a - b) * (a.digamma() - a.sum(-1, True).digamma())).sum(-1)


@_own(positive.Exponential)
def _exponential(p: Any, q: Any) -> Any:
    ratio = q.rate / p.rate
    return -ratio.log() + ratio - 1


@_own(positive.Gamma)
def _gamma(p: Any, q: Any) -> Any:
    a, c = p.concentration, q.concentration
    return (
        c * (p.rate / q.rate).log() + c.lgamma() - a.lgamma() + (a - c) * a.digamma() + (q.rate - p.rate) * a / p.rate
    )


@_own(positive.InverseGamma)
def _inverse_gamma(p: Any, q: Any) -> Any:
    return _gamma(p, q)


@_own(positive.Weibull)
def _weibull(p: Any, q: Any) -> Any:
    # C. Bauckhage, Computing the Kullback-Leibler divergence between two Weibull distributions (2013)
    j, k, ratio = p.concentration, q.concentration, p.scale / q.scale
    logs = j.log() - k.log() - k * ratio.log() - EULER * (1 - k / j)
    return logs + ratio**k * (k / j + 1).lgamma().exp() - 1


@_own(multivariate.Wishart)
def _wishart(p: Any, q: Any) -> Any:
    n, m, size = p.df, q.df, p.event_shape[-1]
    inner = torch.linalg.solve_triangular(q.scale_tril, p.scale_tril, upper=False)
    log_det = 2 * inner.diagonal(dim1=-2, dim2=-1).log().sum(-1)
    places = torch.arange(size, dtype=n.dtype, device=n.device)
    slope = torch.digamma(n.unsqueeze(-1) / 2 - places / 2).sum(-1)
    norms = torch.mvlgamma(m / 2, size) - torch.mvlgamma(n / 2, size)
    return -m / 2 * log_det + n / 2 * (inner.pow(2).sum((-2, -1)) - size) + norms + (n - m) / 2 * slope


@_own(positive.Pareto)
def _pareto(p: Any, q: Any) -> Any:
    scales, alphas = p.scale / q.scale, q.alpha / p.alpha
    found = q.alpha * scales.log() - alphas.log() + alphas - 1
    return torch.where(p.scale < q.scale, math.inf, found)


@_own(continuous.Normal)
def _normal(p: Any, q: Any) -> Any:
    ratio, off = (p.scale / q.scale).pow(2), ((p.loc - q.loc) / q.scale).pow(2)
    return 0.5 * (ratio + off - 1 - ratio.log())


@_own(continuous.HalfNormal)
@_own(continuous.HalfCauchy)
def _half(p: Any, q: Any) -> Any:
    return kl_divergence(p.base_dist, q.base_dist)


@_own(continuous.Laplace)
def _laplace(p: Any, q: Any) -> Any:
    ratio, off = p.scale / q.scale, (p.loc - q.loc).abs()
    return -ratio.log() + off / q.scale + ratio * torch.exp(-off / p.scale) - 1


@_own(continuous.Gumbel)
def _gumbel(p: Any, q: Any) -> Any:
    ratio = p.scale / q.scale
    off = (q.loc - p.loc) / q.scale
    return -ratio.log() - off + ratio * EULER + torch.exp(off + (1 + ratio).lgamma()) - (1 + EULER)


@_own(continuous.Cauchy)
def _cauchy(p: Any, q: Any) -> Any:
    # F. Chyzak and F. Nielsen, A closed-form formula for the divergence between Cauchy distributions (2019)
    both = ((p.scale + q.scale).pow(2) + (p.loc - q.loc).pow(2)).log()
    return both - (4 * p.scale * q.scale).log()


@_own(continuous.Uniform)
def _uniform(p: Any, q: Any) -> Any:
    found = ((q.high - q.low) / (p.high - p.low)).log()
    return torch.where((q.low > p.low) | (q.high < p.high), math.inf, found)


def _covariances(p: Any, q: Any) -> Any:
    """Of normal distributions of vectors, by the factor of q's covariance."""
    factor, off = q.scale_tril, q.loc - p.loc
    n = p.loc.shape[-1]
    diagonals = [d.scale_tril.diagonal(dim1=-2, dim2=-1).log().sum(-1) for d in (q, p)]
    shape = torch.broadcast_shapes(factor.shape, p.scale_tril.shape)
    inner = torch.linalg.solve_triangular(factor.expand(shape), p.scale_tril.expand(shape), upper=False)
    spread = inner.pow(2).sum((-2, -1))
    return diagonals[0] - diagonals[1] + 0.5 * (spread + multivariate.squared_distance(factor, off) - n)


_VECTORS = (multivariate.MultivariateNormal, multivariate.LowRankMultivariateNormal)
for _normals in itertools.product(_VECTORS, _VECTORS):
    register_kl(*_normals)(_covariances)


@_own(TransformedDistribution)
def _transformed(p: Any, q: Any) -> Any:
    if p.transforms != q.transforms or p.event_shape != q.event_shape:
        raise NotImplementedError
    more = len(p.event_shape) - len(p.base_dist.event_shape)
    return sum_rightmost(kl_divergence(p.base_dist, q.base_dist), more)


@_own(Independent)
def _independent(p: Any, q: Any) -> Any:
    if p.reinterpreted_batch_ndims != q.reinterpreted_batch_ndims:
        raise NotImplementedError
    return sum_rightmost(kl_divergence(p.base_dist, q.base_dist), p.reinterpreted_batch_ndims)


# --- of two families: minus p's entropy, minus the mean of q's log density over p ------------------------


def _mean_log(p: Any) -> Any:
    """The mean of log x."""
    if isinstance(p, positive.Beta):
        return p.concentration1.digamma() - (p.concentration1 + p.concentration0).digamma()
    if isinstance(p, positive.Gamma):
        return p.concentration.digamma() - p.rate.log()
    if isinstance(p, positive.Exponential):
        return -EULER - p.rate.log()
    if isinstance(p, positive.Pareto):
        return p.scale.log() + p.alpha.reciprocal()
    return (torch.xlogy(p.high, p.high) - torch.xlogy(p.low, p.low)) / (p.high - p.low) - 1  # a uniform one


def _mean_exp(p: Any, t: Any) -> Any:
    """The mean of exp(t x), for t below 0."""
    if isinstance(p, continuous.Normal):
        return torch.exp(p.loc * t + 0.5 * (p.scale * t).pow(2))
    if isinstance(p, positive.Gamma):
        return (p.rate / (p.rate - t)).pow(p.concentration)
    if isinstance(p, positive.Exponential):
        return p.rate / (p.rate - t)
    return (torch.exp(t * p.high) - torch.exp(t * p.low)) / (t * (p.high - p.low))  # of a uniform one


def _in_exponential(p: Any, q: Any) -> Any:
    return q.rate.log() - q.rate * p.mean


def _in_gamma(p: Any, q: Any) -> Any:
    a = q.concentration
    return a * q.rate.log() - a.lgamma() + (a - 1) * _mean_log(p) - q.rate * p.mean


def _in_normal(p: Any, q: Any) -> Any:
    spread = p.variance + (p.mean - q.loc).pow(2)
    return -spread / (2 * q.scale.pow(2)) - q.scale.log() - 0.5 * LOG_2_PI


def _in_gumbel(p: Any, q: Any) -> Any:
    z = (p.mean - q.loc) / q.scale
    return -z - torch.exp(q.loc / q.scale) * _mean_exp(p, -1 / q.scale) - q.scale.log()


def _in_laplace(p: Any, q: Any) -> Any:
    """Of a normal p, whose distance from a point has a mean that is known."""
    off = p.loc - q.loc
    z = off / p.scale
    distance = p.scale * math.sqrt(2 / math.pi) * torch.exp(-0.5 * z**2) + off * torch.erf(z / math.sqrt(2))
    return -(2 * q.scale).log() - distance / q.scale


def _in_bernoulli(p: Any, q: Any) -> Any:
    """Of continuous ones."""
    return p.mean * q.logits + torch.log1p(-q.probs) + q._log_norm()


def _in_uniform(p: Any, q: Any) -> Any:
    return -(q.high - q.low).log()


def _in_beta(p: Any, q: Any) -> Any:
    """Of a uniform p."""
    turned = continuous.Uniform(1 - p.high, 1 - p.low, validate_args=False)
    logs = (q.concentration1 - 1) * _mean_log(p) + (q.concentration0 - 1) * _mean_log(turned)
    return logs - _log_beta(q)


def _in_pareto(p: Any, q: Any) -> Any:
    return q.alpha.log() + q.alpha * q.scale.log() - (q.alpha + 1) * _mean_log(p)


def _cross(inside: Callable[[Any, Any], Any], outside: Callable[[Any, Any], Any] | None) -> Callable[[Any, Any], Any]:
    def rule(p: Any, q: Any) -> Any:
        found = -p.entropy() - inside(p, q)
        return found if outside is None else torch.where(outside(p, q), math.inf, found)

    return rule


def _with_moment(inside: Callable[[Any, Any], Any], order: int) -> Callable[[Any, Any], Any]:
    """Of a Pareto p whose moment of an order exists: where it does not, the divergence is infinite and flat."""

    def found(p: Any, q: Any) -> Any:
        alpha = torch.where(p.alpha > order, p.alpha, order + 1.0)
        return inside(positive.Pareto(p.scale, alpha, validate_args=False), q)

    return found


def _infinite(p: Any, q: Any) -> Any:
    like = p._first + torch.zeros_like(q._first)
    return torch.full_like(like, math.inf)


def _unit(p: Any, q: Any) -> Any:
    """Where 0 to 1 is not inside of q."""
    return (q.low > 0) | (q.high < 1)


_B, _CB, _E, _G = positive.Beta, positive.ContinuousBernoulli, positive.Exponential, positive.Gamma
_GU, _L, _N = continuous.Gumbel, continuous.Laplace, continuous.Normal
_P, _U = positive.Pareto, continuous.Uniform
_PAIRS: dict[tuple[Any, Any], tuple[Any, Any]] = {
    (_B, _CB): (_in_bernoulli, None), (_B, _E): (_in_exponential, None), (_B, _G): (_in_gamma, None),
    (_B, _N): (_in_normal, None), (_B, _U): (_in_uniform, _unit),
    (_CB, _CB): (_in_bernoulli, None), (_CB, _E): (_in_exponential, None), (_CB, _N): (_in_normal, None),
    (_CB, _U): (_in_uniform, _unit),
    (_E, _G): (_in_gamma, None), (_E, _GU): (_in_gumbel, None), (_E, _N): (_in_normal, None),
    (_G, _E): (_in_exponential, None), (_G, _GU): (_in_gumbel, None), (_G, _N): (_in_normal, None),
    (_GU, _N): (_in_normal, None), (_L, _N): (_in_normal, None), (_N, _GU): (_in_gumbel, None),
    (_N, _L): (_in_laplace, None),
    (_P, _E): (_with_moment(_in_exponential, 1), lambda p, q: p.alpha <= 1),
    (_P, _G): (_with_moment(_in_gamma, 1), lambda p, q: p.alpha <= 1),
    (_P, _N): (_with_moment(_in_normal, 2), lambda p, q: p.alpha <= 2),
    (_U, _B): (_in_beta, lambda p, q: (p.high > 1) | (p.low < 0)),
    (_U, _CB): (_in_bernoulli, lambda p, q: (p.high > 1) | (p.low < 0)),
    (_U, _E): (_in_exponential, lambda p, q: p.low < 0), (_U, _G): (_in_gamma, lambda p, q: p.low < 0),
    (_U, _GU): (_in_gumbel, None), (_U, _N): (_in_normal, None),
    (_U, _P): (_in_pareto, lambda p, q: p.low < q.scale),
}  # fmt: skip
for _pair, (_inside, _outside) in _PAIRS.items():
    register_kl(*_pair)(_cross(_inside, _outside))

_OUTSIDE: dict[Any, tuple[Any, ...]] = {  # what p may be that q cannot
    _B: (_P,), _CB: (_P,), _E: (_B, _CB, _P, _U), _G: (_B, _CB, _P, _U), _P: (_B, _CB, _U),
    _GU: (_B, _CB, _E, _G, _P, _U), _L: (_B, _CB, _E, _G, _P, _U), _N: (_B, _CB, _E, _G, _P, _U),
    discrete.Poisson: (discrete.Bernoulli, discrete.Binomial),
}  # fmt: skip
for _p, _others in _OUTSIDE.items():
    for _q in _others:
        register_kl(_p, _q)(_infinite)


@register_kl(discrete.Bernoulli, discrete.Poisson)
def _bernoulli_poisson(p: Any, q: Any) -> Any:
    return -p.entropy() - (p.probs * q.rate.log() - q.rate)


__all__ = ["kl_divergence", "register_kl"]
