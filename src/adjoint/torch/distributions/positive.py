"""Distributions of positive numbers and of shares."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, ClassVar

import adjoint as ad
import adjoint.torch as torch
from adjoint.torch.creation import tensor
from adjoint.torch.distributions import constraints
from adjoint.torch.distributions.distribution import (
    EULER,
    Binary,
    ExponentialFamily,
    Family,
    clamp_probs,
    drawn,
    gamma_numbers,
    lazy_property,
    logits_to_probs,
    uniform,
)

POSITIVE = constraints.positive


class Gamma(Family, ExponentialFamily):
    """The gamma distribution of shape `concentration` and mean `concentration / rate`."""

    arg_constraints: ClassVar[dict[str, Any]] = {"concentration": POSITIVE, "rate": POSITIVE}
    support: Any = constraints.nonnegative
    has_rsample = True
    concentration: Any
    rate: Any

    def __init__(self, concentration: Any, rate: Any, validate_args: bool | None = None) -> None:
        self._set(validate_args, concentration=concentration, rate=rate)

    @property
    def mean(self) -> Any:
        return self.concentration / self.rate

    @property
    def mode(self) -> Any:
        return ((self.concentration - 1) / self.rate).clamp(min=0)

    @property
    def variance(self) -> Any:
        return self.concentration / self.rate.pow(2)

    def rsample(self, sample_shape: Sequence[int] = ()) -> Any:
        return gamma_numbers(self.concentration, self._extended_shape(sample_shape)) / self.rate

    def log_prob(self, value: Any) -> Any:
        value, a, rate = torch.as_tensor(self._checked(value)), self.concentration, self.rate
        return torch.xlogy(a, rate) + torch.xlogy(a - 1, value) - rate * value - torch.lgamma(a)

    def cdf(self, value: Any) -> Any:
        return torch.special.gammainc(self.concentration, self.rate * self._checked(value))

    def entropy(self) -> Any:
        a = self.concentration
        return a - torch.log(self.rate) + torch.lgamma(a) + (1.0 - a) * torch.digamma(a)


class Chi2(Gamma):
    """The chi-squared distribution: sums of squares of `df` normal numbers."""

    arg_constraints: ClassVar[dict[str, Any]] = {"df": POSITIVE}

    def __init__(self, df: Any, validate_args: bool | None = None) -> None:
        df = df if isinstance(df, torch.Tensor) else tensor(float(df))
        super().__init__(0.5 * df, torch.full_like(df, 0.5), validate_args)

    @property
    def df(self) -> Any:
        return self.concentration * 2


class InverseGamma(Family):
    """The reciprocals of numbers of a gamma distribution."""

    _shows_parameters = False
    arg_constraints: ClassVar[dict[str, Any]] = {"concentration": POSITIVE, "rate": POSITIVE}
    support: Any = POSITIVE
    has_rsample = True
    concentration: Any
    rate: Any

    def __init__(self, concentration: Any, rate: Any, validate_args: bool | None = None) -> None:
        self._set(validate_args, concentration=concentration, rate=rate)

    @property
    def mean(self) -> Any:
        a = self.concentration
        return torch.where(a > 1, self.rate / torch.where(a > 1, a - 1, 1.0), math.inf)

    @property
    def mode(self) -> Any:
        return self.rate / (self.concentration + 1)

    @property
    def variance(self) -> Any:
        a = torch.where(self.concentration > 2, self.concentration, 3.0)
        found = self.rate.square() / ((a - 1).square() * (a - 2))
        return torch.where(self.concentration > 2, found, math.inf)

    def rsample(self, sample_shape: Sequence[int] = ()) -> Any:
        return self.rate / gamma_numbers(self.concentration, self._extended_shape(sample_shape))

    def log_prob(self, value: Any) -> Any:
        value, a, rate = self._checked(value), self.concentration, self.rate
        return torch.xlogy(a, rate) - (a + 1) * torch.log(value) - rate / value - torch.lgamma(a)

    def cdf(self, value: Any) -> Any:
        return torch.special.gammaincc(self.concentration, self.rate / self._checked(value))

    def entropy(self) -> Any:
        a = self.concentration
        return a + self.rate.log() + a.lgamma() - (1 + a) * a.digamma()


class Exponential(Family, ExponentialFamily):
    """The exponential distribution of mean `1 / rate`."""

    arg_constraints: ClassVar[dict[str, Any]] = {"rate": POSITIVE}
    support: Any = constraints.nonnegative
    has_rsample = True
    rate: Any

    def __init__(self, rate: Any, validate_args: bool | None = None) -> None:
        self._set(validate_args, rate=rate)

    @property
    def mean(self) -> Any:
        return self.rate.reciprocal()

    @property
    def mode(self) -> Any:
        return torch.zeros_like(self.rate)

    @property
    def stddev(self) -> Any:
        return self.rate.reciprocal()

    @property
    def variance(self) -> Any:
        return self.rate.pow(-2)

    def rsample(self, sample_shape: Sequence[int] = ()) -> Any:
        return -torch.log(uniform(self._extended_shape(sample_shape), self.rate)) / self.rate

    def log_prob(self, value: Any) -> Any:
        return self.rate.log() - self.rate * self._checked(value)

    def cdf(self, value: Any) -> Any:
        return 1 - torch.exp(-self.rate * self._checked(value))

    def icdf(self, value: Any) -> Any:
        return -torch.log1p(-value) / self.rate

    def entropy(self) -> Any:
        return 1.0 - torch.log(self.rate)


class Weibull(Family):
    """The Weibull distribution: a power of exponential numbers."""

    arg_constraints: ClassVar[dict[str, Any]] = {"scale": POSITIVE, "concentration": POSITIVE}
    support: Any = POSITIVE
    has_rsample = True
    scale: Any
    concentration: Any

    def __init__(self, scale: Any, concentration: Any, validate_args: bool | None = None) -> None:
        self._set(validate_args, scale=scale, concentration=concentration)

    @property
    def _power(self) -> Any:
        return self.concentration.reciprocal()

    @property
    def mean(self) -> Any:
        return self.scale * torch.exp(torch.lgamma(1 + self._power))

    @property
    def mode(self) -> Any:
        k = self.concentration
        return self.scale * ((k - 1) / k).clamp(min=0) ** k.reciprocal()

    @property
    def variance(self) -> Any:
        p = self._power
        return self.scale.pow(2) * (torch.exp(torch.lgamma(1 + 2 * p)) - torch.exp(2 * torch.lgamma(1 + p)))

    def rsample(self, sample_shape: Sequence[int] = ()) -> Any:
        return self.scale * (-torch.log(uniform(self._extended_shape(sample_shape), self.scale))) ** self._power

    def log_prob(self, value: Any) -> Any:
        z, k = self._checked(value) / self.scale, self.concentration
        return k.log() - self.scale.log() + (k - 1) * z.log() - z**k

    def cdf(self, value: Any) -> Any:
        return -torch.expm1(-((self._checked(value) / self.scale) ** self.concentration))

    def icdf(self, value: Any) -> Any:
        return self.scale * (-torch.log1p(-value)) ** self._power

    def entropy(self) -> Any:
        return EULER * (1 - self._power) + torch.log(self.scale * self._power) + 1


class Pareto(Family):
    """Pareto's distribution from `scale` on, with the power `alpha`."""

    arg_constraints: ClassVar[dict[str, Any]] = {"alpha": POSITIVE, "scale": POSITIVE}
    has_rsample = True
    scale: Any
    alpha: Any

    def __init__(self, scale: Any, alpha: Any, validate_args: bool | None = None) -> None:
        self._set(validate_args, scale=scale, alpha=alpha)

    @constraints.dependent_property(is_discrete=False, event_dim=0)
    def support(self) -> Any:  # pyright: ignore[reportIncompatibleMethodOverride]
        return constraints.greater_than_eq(self.scale)

    @property
    def mean(self) -> Any:
        a = torch.where(self.alpha > 1, self.alpha, 2.0)
        return torch.where(self.alpha > 1, a * self.scale / (a - 1), math.inf)

    @property
    def mode(self) -> Any:
        return self.scale

    @property
    def variance(self) -> Any:
        a = torch.where(self.alpha > 2, self.alpha, 3.0)
        return torch.where(self.alpha > 2, self.scale.pow(2) * a / ((a - 1).pow(2) * (a - 2)), math.inf)

    def rsample(self, sample_shape: Sequence[int] = ()) -> Any:
        return self.scale * uniform(self._extended_shape(sample_shape), self.scale) ** -self.alpha.reciprocal()

    def log_prob(self, value: Any) -> Any:
        a = self.alpha
        return a.log() + a * self.scale.log() - (a + 1) * self._checked(value).log()

    def cdf(self, value: Any) -> Any:
        return 1 - (self.scale / self._checked(value)) ** self.alpha

    def icdf(self, value: Any) -> Any:
        return self.scale * (1 - value) ** -self.alpha.reciprocal()

    def entropy(self) -> Any:
        return (self.scale / self.alpha).log() + (1 + self.alpha.reciprocal())


class GeneralizedPareto(Family):
    """The distribution of what is above a high threshold `loc`; it ends where `concentration` is negative."""

    arg_constraints: ClassVar[dict[str, Any]] = {
        "loc": constraints.real, "scale": POSITIVE, "concentration": constraints.real
    }  # fmt: skip
    has_rsample = True
    loc: Any
    scale: Any
    concentration: Any

    def __init__(self, loc: Any, scale: Any, concentration: Any, validate_args: bool | None = None) -> None:
        self._set(validate_args, loc=loc, scale=scale, concentration=concentration)

    @constraints.dependent_property(is_discrete=False, event_dim=0)
    def support(self) -> Any:  # pyright: ignore[reportIncompatibleMethodOverride]
        end = torch.where(self.concentration < 0, self.loc - self.scale / self._other, math.inf)
        return constraints.interval(self.loc, end)

    @property
    def _flat(self) -> Any:
        return torch.isclose(self.concentration, torch.zeros_like(self.concentration))

    @property
    def _other(self) -> Any:
        return torch.where(self._flat, 1.0, self.concentration)

    @property
    def mean(self) -> Any:
        c = torch.where(self.concentration < 1, self.concentration, 0.0)
        return torch.where(self.concentration < 1, self.loc + self.scale / (1 - c), math.nan)

    @property
    def mode(self) -> Any:
        return self.loc

    @property
    def variance(self) -> Any:
        c = torch.where(self.concentration < 0.5, self.concentration, 0.0)
        return torch.where(self.concentration < 0.5, self.scale**2 / ((1 - c) ** 2 * (1 - 2 * c)), math.nan)

    def rsample(self, sample_shape: Sequence[int] = ()) -> Any:
        return self.icdf(uniform(self._extended_shape(sample_shape), self.loc))

    def log_survival_function(self, value: Any) -> Any:
        """The logarithm of the probability of what is above a value."""
        z = (self._checked(value) - self.loc) / self.scale
        near = -z + self.concentration * z**2 / 2  # Taylor's series, for the slope at a concentration of 0
        return torch.where(self._flat, near, -torch.log1p(self._other * z) / self._other)

    def log_prob(self, value: Any) -> Any:
        z = (self._checked(value) - self.loc) / self.scale
        powers = -(1 + self._other.reciprocal()) * torch.log1p(self._other * z)
        near = -z + self.concentration * (z**2 / 2 - z)
        return torch.where(self._flat, near, powers) - self.scale.log()

    def cdf(self, value: Any) -> Any:
        return -torch.expm1(self.log_survival_function(value))

    def log_cdf(self, value: Any) -> Any:
        """The logarithm of `cdf`."""
        return self.cdf(value).log()

    def icdf(self, value: Any) -> Any:
        left = torch.log1p(-value)
        near = -left + self.concentration * left**2 / 2
        return self.loc + self.scale * torch.where(self._flat, near, torch.expm1(-self._other * left) / self._other)

    def entropy(self) -> Any:
        return self.scale.log() + self.concentration + 1


class FisherSnedecor(Family):
    """Fisher's and Snedecor's distribution: the ratio of two means of squares."""

    arg_constraints: ClassVar[dict[str, Any]] = {"df1": POSITIVE, "df2": POSITIVE}
    support: Any = POSITIVE
    has_rsample = True
    df1: Any
    df2: Any

    def __init__(self, df1: Any, df2: Any, validate_args: bool | None = None) -> None:
        self._set(validate_args, df1=df1, df2=df2)

    @property
    def mean(self) -> Any:
        m = torch.where(self.df2 > 2, self.df2, math.nan)
        return m / (m - 2)

    @property
    def mode(self) -> Any:
        found = (self.df1 - 2) / self.df1 * self.df2 / (self.df2 + 2)
        return torch.where(self.df1 > 2, found, math.nan)

    @property
    def variance(self) -> Any:
        n, m = self.df1, torch.where(self.df2 > 4, self.df2, math.nan)
        return 2 * m.pow(2) * (n + m - 2) / (n * (m - 2).pow(2) * (m - 4))

    def rsample(self, sample_shape: Sequence[int] = ()) -> Any:
        shape = self._extended_shape(sample_shape)
        first, second = (gamma_numbers(0.5 * df, shape) / df for df in (self.df1, self.df2))
        return first / second

    def log_prob(self, value: Any) -> Any:
        a, b, value = self.df1 * 0.5, self.df2 * 0.5, self._checked(value)
        ratio = self.df1 / self.df2
        constant = (a + b).lgamma() - a.lgamma() - b.lgamma()
        return constant + a * ratio.log() + (a - 1) * value.log() - (a + b) * torch.log1p(ratio * value)


class Beta(Family, ExponentialFamily):
    """The beta distribution of shares between 0 and 1."""

    _shows_parameters = False
    arg_constraints: ClassVar[dict[str, Any]] = {"concentration1": POSITIVE, "concentration0": POSITIVE}
    support: Any = constraints.unit_interval
    has_rsample = True
    concentration1: Any
    concentration0: Any

    def __init__(self, concentration1: Any, concentration0: Any, validate_args: bool | None = None) -> None:
        self._set(validate_args, concentration1=concentration1, concentration0=concentration0)

    @property
    def _sum(self) -> Any:
        return self.concentration1 + self.concentration0

    @property
    def mean(self) -> Any:
        return self.concentration1 / self._sum

    @property
    def mode(self) -> Any:
        both = torch.stack([self.concentration1, self.concentration0], -1)
        return Dirichlet(both, validate_args=False).mode[..., 0]

    @property
    def variance(self) -> Any:
        return self.concentration1 * self.concentration0 / (self._sum.pow(2) * (self._sum + 1))

    def rsample(self, sample_shape: Sequence[int] = ()) -> Any:
        shape = self._extended_shape(sample_shape)
        parts = self.concentration1.expand(shape), self.concentration0.expand(shape)
        return drawn(lambda a, b, size: ad.random.beta(a, b, size), "Beta", shape, *parts)

    def log_prob(self, value: Any) -> Any:
        self._checked(value)
        a, b = self.concentration1, self.concentration0
        return torch.xlogy(a - 1, value) + torch.special.xlog1py(b - 1, -value) - self._log_norm()

    def _log_norm(self) -> Any:
        return self.concentration1.lgamma() + self.concentration0.lgamma() - self._sum.lgamma()

    def entropy(self) -> Any:
        a, b, both = self.concentration1, self.concentration0, self._sum
        return (
            self._log_norm() - (a - 1) * a.digamma() - (b - 1) * b.digamma() + (both - 2) * both.digamma()
        )  # fmt: skip


class Dirichlet(Family, ExponentialFamily):
    """Dirichlet's distribution of shares that sum to one along the last axis."""

    arg_constraints: ClassVar[dict[str, Any]] = {"concentration": constraints.independent(POSITIVE, 1)}
    support: Any = constraints.simplex
    has_rsample = True
    concentration: Any

    def __init__(self, concentration: Any, validate_args: bool | None = None) -> None:
        if concentration.dim() < 1:
            raise ValueError("`concentration` parameter must be at least one-dimensional.")
        self.concentration = concentration
        self._parameters = ("concentration",)
        super().__init__(concentration.shape[:-1], concentration.shape[-1:], validate_args)

    @property
    def mean(self) -> Any:
        return self.concentration / self.concentration.sum(-1, True)

    @property
    def mode(self) -> Any:
        above = (self.concentration - 1).clamp(min=0.0)
        mode = above / above.sum(-1, True)
        flat = (self.concentration < 1).all(dim=-1)
        largest = torch.nn.functional.one_hot(self.concentration.argmax(dim=-1), self.concentration.shape[-1])
        return torch.where(flat.unsqueeze(-1), largest.to(mode.dtype), mode)

    @property
    def variance(self) -> Any:
        total = self.concentration.sum(-1, True)
        return self.concentration * (total - self.concentration) / (total.pow(2) * (total + 1))

    def rsample(self, sample_shape: Sequence[int] = ()) -> Any:
        shape = self._extended_shape(sample_shape)
        draw = lambda a, size: ad.random.dirichlet(a, size[:-1])
        return drawn(draw, "Dirichlet", shape, self.concentration.expand(shape))

    def log_prob(self, value: Any) -> Any:
        a = self.concentration
        terms = torch.xlogy(a - 1.0, self._checked(value)).sum(-1)
        return terms + torch.lgamma(a.sum(-1)) - torch.lgamma(a).sum(-1)

    def entropy(self) -> Any:
        a, k = self.concentration, self.concentration.size(-1)
        total = a.sum(-1)
        norm = torch.lgamma(a).sum(-1) - torch.lgamma(total)
        return norm - (k - total) * torch.digamma(total) - ((a - 1.0) * torch.digamma(a)).sum(-1)


class ContinuousBernoulli(Binary, ExponentialFamily):
    """Numbers between 0 and 1 with the density p^x (1 - p)^(1 - x), normalised.

    Of G. Loaiza-Ganem and J. P. Cunningham, The continuous Bernoulli: fixing a pervasive error in variational
    autoencoders (2019). Near 1/2 Taylor series of the constants stand in for differences that cancel.
    """

    support: Any = constraints.unit_interval
    has_rsample = True

    def __init__(
        self, probs: Any = None, logits: Any = None, lims: tuple[float, float] = (0.499, 0.501),
        validate_args: bool | None = None,
    ) -> None:  # fmt: skip
        self._lims = lims
        self._set_either(validate_args, probs, logits)
        if probs is not None:
            self.probs = clamp_probs(self.probs)

    def _expand_rest(self, new: Any, batch_shape: Any) -> None:
        new._lims = self._lims

    @lazy_property
    def probs(self) -> Any:  # pyright: ignore[reportIncompatibleVariableOverride]
        return clamp_probs(logits_to_probs(self.logits, is_binary=True))

    def _apart(self) -> tuple[Any, Any, Any]:
        """Where the chance is away from 1/2, such chances with others in the place of the rest, and the distance."""
        apart = (self.probs <= self._lims[0]) | (self.probs > self._lims[1])
        return apart, torch.where(apart, self.probs, self._lims[0]), self.probs - 0.5

    def _log_norm(self) -> Any:
        apart, p, x = self._apart()
        found = torch.log(torch.abs(torch.log1p(-p) - torch.log(p))) - torch.where(
            p <= 0.5,
            torch.log1p(-2.0 * torch.where(p <= 0.5, p, 0.0)),
            torch.log(2.0 * torch.where(p >= 0.5, p, 1.0) - 1),
        )
        return torch.where(apart, found, math.log(2.0) + (4.0 / 3.0 + 104.0 / 45.0 * x**2) * x**2)

    @property
    def mean(self) -> Any:
        apart, p, x = self._apart()
        found = p / (2.0 * p - 1.0) + 1.0 / (torch.log1p(-p) - torch.log(p))
        return torch.where(apart, found, 0.5 + (1.0 / 3.0 + 16.0 / 45.0 * x**2) * x)

    @property
    def variance(self) -> Any:
        apart, p, x = self._apart()
        found = p * (p - 1.0) / (1.0 - 2.0 * p).pow(2) + 1.0 / (torch.log1p(-p) - torch.log(p)).pow(2)
        return torch.where(apart, found, 1.0 / 12.0 - (1.0 / 15.0 - 128.0 / 945.0 * x**2) * x**2)

    @property
    def stddev(self) -> Any:
        return torch.sqrt(self.variance)

    def rsample(self, sample_shape: Sequence[int] = ()) -> Any:
        return self.icdf(uniform(self._extended_shape(sample_shape), self.probs))

    def log_prob(self, value: Any) -> Any:
        logits, value = torch.broadcast_tensors(self.logits, self._checked(value))
        loss = torch.nn.functional.binary_cross_entropy_with_logits(logits, value, reduction="none")
        return self._log_norm() - loss

    def cdf(self, value: Any) -> Any:
        value = self._checked(value)
        apart, p, _ = self._apart()
        powers = (p**value * (1.0 - p) ** (1.0 - value) + p - 1.0) / (2.0 * p - 1.0)
        found = torch.where(apart, powers, value)
        return torch.where(value <= 0.0, 0.0, torch.where(value >= 1.0, 1.0, found))

    def icdf(self, value: Any) -> Any:
        apart, p, _ = self._apart()
        found = (torch.log1p(-p + value * (2.0 * p - 1.0)) - torch.log1p(-p)) / (torch.log(p) - torch.log1p(-p))
        return torch.where(apart, found, value)

    def entropy(self) -> Any:
        less, more = torch.log1p(-self.probs), torch.log(self.probs)
        return self.mean * (less - more) - self._log_norm() - less


__all__ = [
    "Beta", "Chi2", "ContinuousBernoulli", "Dirichlet", "Exponential", "FisherSnedecor", "Gamma", "GeneralizedPareto",
    "InverseGamma", "Pareto", "Weibull",
]  # fmt: skip
