"""Distributions of real numbers with a location and a scale."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, ClassVar

import adjoint.torch as torch
from adjoint.torch.distributions import constraints
from adjoint.torch.distributions.distribution import (
    EULER,
    LOG_2,
    LOG_2_PI,
    Centred,
    ExponentialFamily,
    Family,
    gamma_numbers,
    uniform,
)


class _LocScale(Centred, Family):
    """A standard distribution, moved and stretched: subclasses say the standard one of z = (value - loc) / scale."""

    arg_constraints: ClassVar[dict[str, Any]] = {"loc": constraints.real, "scale": constraints.positive}
    support: Any = constraints.real
    has_rsample = True
    loc: Any
    scale: Any

    def __init__(self, loc: Any, scale: Any, validate_args: bool | None = None) -> None:
        self._set(validate_args, loc=loc, scale=scale)

    def _standard(self, shape: Any) -> Any:
        """Numbers of the standard distribution."""
        raise NotImplementedError

    def _z(self, value: Any) -> Any:
        return (self._checked(value) - self.loc) / self.scale

    def rsample(self, sample_shape: Sequence[int] = ()) -> Any:
        return self.loc + self._standard(self._extended_shape(sample_shape)) * self.scale

    @property
    def variance(self) -> Any:
        return self.stddev.pow(2)


class Normal(_LocScale, ExponentialFamily):  # pyright: ignore[reportIncompatibleMethodOverride]
    """The normal distribution of mean `loc` and standard deviation `scale`."""

    @property
    def stddev(self) -> Any:
        return self.scale

    def _standard(self, shape: Any) -> Any:
        return torch.randn(tuple(shape), dtype=self.loc.dtype, device=self.loc.device)

    def log_prob(self, value: Any) -> Any:
        return -((self._checked(value) - self.loc) ** 2) / (2 * self.scale**2) - self.scale.log() - LOG_2_PI / 2

    def cdf(self, value: Any) -> Any:
        return 0.5 * (1 + torch.erf(self._z(value) / math.sqrt(2)))

    def icdf(self, value: Any) -> Any:
        return self.loc + self.scale * torch.erfinv(2 * value - 1) * math.sqrt(2)

    def entropy(self) -> Any:
        return 0.5 + 0.5 * LOG_2_PI + torch.log(self.scale)


class Laplace(_LocScale):
    """The Laplace distribution: a density that falls exponentially on both sides of `loc`."""

    @property
    def stddev(self) -> Any:
        return math.sqrt(2) * self.scale

    def _standard(self, shape: Any) -> Any:
        u = uniform(shape, self.loc) * 2 - 1
        return -u.sign() * torch.log1p(-u.abs().clamp(max=1 - torch.finfo(u.dtype).eps))

    def log_prob(self, value: Any) -> Any:
        return -torch.log(2 * self.scale) - self._z(value).abs()

    def cdf(self, value: Any) -> Any:
        z = self._z(value)
        return 0.5 - 0.5 * z.sign() * torch.expm1(-z.abs())

    def icdf(self, value: Any) -> Any:
        term = value - 0.5
        return self.loc - self.scale * term.sign() * torch.log1p(-2 * term.abs())

    def entropy(self) -> Any:
        return 1 + torch.log(2 * self.scale)


class Cauchy(_LocScale):
    """The Cauchy distribution, whose mean and variance do not exist."""

    @property
    def mean(self) -> Any:
        return torch.full(tuple(self._batch_shape), math.nan, dtype=self.loc.dtype, device=self.loc.device)

    @property
    def variance(self) -> Any:
        return torch.full(tuple(self._batch_shape), math.inf, dtype=self.loc.dtype, device=self.loc.device)

    def _standard(self, shape: Any) -> Any:
        return torch.tan(math.pi * (uniform(shape, self.loc) - 0.5))

    def log_prob(self, value: Any) -> Any:
        return -math.log(math.pi) - self.scale.log() - (self._z(value) ** 2).log1p()

    def cdf(self, value: Any) -> Any:
        return torch.atan(self._z(value)) / math.pi + 0.5

    def icdf(self, value: Any) -> Any:
        return torch.tan(math.pi * (value - 0.5)) * self.scale + self.loc

    def entropy(self) -> Any:
        return math.log(4 * math.pi) + self.scale.log()


class Gumbel(_LocScale):
    """The Gumbel distribution, of the largest of many numbers."""

    @property
    def mean(self) -> Any:
        return self.loc + self.scale * EULER

    @property
    def stddev(self) -> Any:
        return (math.pi / math.sqrt(6)) * self.scale

    def _standard(self, shape: Any) -> Any:
        return -torch.log(-torch.log(uniform(shape, self.loc)))

    def log_prob(self, value: Any) -> Any:
        z = -self._z(value)
        return z - z.exp() - self.scale.log()

    def cdf(self, value: Any) -> Any:
        return torch.exp(-torch.exp(-self._z(value)))

    def icdf(self, value: Any) -> Any:
        return self.loc - self.scale * torch.log(-torch.log(value))

    def entropy(self) -> Any:
        return self.scale.log() + (1 + EULER)


class StudentT(Family):
    """Student's t distribution with `df` degrees of freedom."""

    arg_constraints: ClassVar[dict[str, Any]] = {
        "df": constraints.positive, "loc": constraints.real, "scale": constraints.positive
    }  # fmt: skip
    support: Any = constraints.real
    has_rsample = True
    df: Any
    loc: Any
    scale: Any

    def __init__(self, df: Any, loc: Any = 0.0, scale: Any = 1.0, validate_args: bool | None = None) -> None:
        self._set(validate_args, df=df, loc=loc, scale=scale)

    @property
    def mean(self) -> Any:
        return torch.where(self.df > 1, self.loc, math.nan)

    @property
    def mode(self) -> Any:
        return self.loc

    @property
    def variance(self) -> Any:
        df = torch.where(self.df > 2, self.df, 3.0)
        known = torch.where(self.df > 2, self.scale**2 * df / (df - 2), math.inf)
        return torch.where(self.df > 1, known, math.nan)

    def rsample(self, sample_shape: Sequence[int] = ()) -> Any:
        shape = self._extended_shape(sample_shape)
        normal = torch.randn(tuple(shape), dtype=self.df.dtype, device=self.df.device)
        return self.loc + self.scale * normal * torch.rsqrt(2 * gamma_numbers(self.df / 2, shape) / self.df)

    def log_prob(self, value: Any) -> Any:
        z = (self._checked(value) - self.loc) / self.scale
        return -0.5 * (self.df + 1) * torch.log1p(z**2 / self.df) - self._norm()

    def _norm(self) -> Any:
        half = 0.5 * self.df
        return (
            self.scale.log() + 0.5 * self.df.log() + 0.5 * math.log(math.pi)
            + torch.lgamma(half) - torch.lgamma(half + 0.5)
        )  # fmt: skip

    def entropy(self) -> Any:
        half = 0.5 * (self.df + 1)
        return half * (torch.digamma(half) - torch.digamma(0.5 * self.df)) + self._norm()


class Uniform(Family):
    """The uniform distribution from `low` up to `high`, which is not among the values."""

    has_rsample = True
    low: Any
    high: Any

    def __init__(self, low: Any, high: Any, validate_args: bool | None = None) -> None:
        self._set(validate_args, low=low, high=high)

    @property
    def arg_constraints(self) -> dict[str, Any]:  # type: ignore[override]
        return {"low": constraints.less_than(self.high), "high": constraints.greater_than(self.low)}

    @constraints.dependent_property(is_discrete=False, event_dim=0)
    def support(self) -> Any:  # pyright: ignore[reportIncompatibleMethodOverride]
        return constraints.interval(self.low, self.high)

    @property
    def mean(self) -> Any:
        return (self.high + self.low) / 2

    @property
    def mode(self) -> Any:
        return math.nan * self.high

    @property
    def stddev(self) -> Any:
        return (self.high - self.low) / 12**0.5

    @property
    def variance(self) -> Any:
        return (self.high - self.low).pow(2) / 12

    def rsample(self, sample_shape: Sequence[int] = ()) -> Any:
        shape = tuple(self._extended_shape(sample_shape))
        return self.low + torch.rand(shape, dtype=self.low.dtype, device=self.low.device) * (self.high - self.low)

    def log_prob(self, value: Any) -> Any:
        self._checked(value)
        inside = self.low.le(value) & self.high.gt(value)
        return torch.log(inside.type_as(self.low)) - torch.log(self.high - self.low)

    def cdf(self, value: Any) -> Any:
        return ((self._checked(value) - self.low) / (self.high - self.low)).clamp(min=0, max=1)

    def icdf(self, value: Any) -> Any:
        return value * (self.high - self.low) + self.low

    def entropy(self) -> Any:
        return torch.log(self.high - self.low)


class VonMises(Centred, Family):
    """The von Mises distribution of angles: `concentration` about `loc`."""

    arg_constraints: ClassVar[dict[str, Any]] = {"loc": constraints.real, "concentration": constraints.positive}
    support: Any = constraints.real
    has_rsample = False
    loc: Any
    concentration: Any

    def __init__(self, loc: Any, concentration: Any, validate_args: bool | None = None) -> None:
        self._set(validate_args, loc=loc, concentration=concentration)

    @property
    def variance(self) -> Any:
        """The circular one."""
        k = self.concentration
        return 1 - torch.special.i1e(k) / torch.special.i0e(k)

    def sample(self, sample_shape: Sequence[int] = ()) -> Any:
        from adjoint.torch.generators import drawn_by

        shape = self._extended_shape(sample_shape)
        with torch.no_grad():
            loc, k = self.loc.expand(shape), self.concentration.expand(shape)
            return drawn_by(lambda source, mu, kappa: source.vonmises(mu, kappa), None, loc, k)

    def log_prob(self, value: Any) -> Any:
        k = self.concentration
        off = torch.cos(self._checked(value) - self.loc) - 1
        return k * off - LOG_2_PI - torch.special.i0e(k).log()


class _Half(Family):
    """The absolute values of numbers whose distribution is symmetric about 0."""

    _shows_parameters = False
    arg_constraints: ClassVar[dict[str, Any]] = {"scale": constraints.positive}
    support: Any = constraints.nonnegative
    has_rsample = True
    scale: Any
    _whole: Any  # of whose numbers these are the absolute values

    def __init__(self, scale: Any, validate_args: bool | None = None) -> None:
        self._set(validate_args, scale=scale)

    @property
    def base_dist(self) -> Any:
        return self._whole(torch.zeros_like(self.scale), self.scale, validate_args=False)

    @property
    def mode(self) -> Any:
        return torch.zeros_like(self.scale)

    def rsample(self, sample_shape: Sequence[int] = ()) -> Any:
        return self.base_dist.rsample(sample_shape).abs()

    def log_prob(self, value: Any) -> Any:
        found = self.base_dist.log_prob(self._checked(value)) + LOG_2
        return torch.where(torch.as_tensor(value) >= 0, found, -math.inf)

    def cdf(self, value: Any) -> Any:
        return 2 * self.base_dist.cdf(self._checked(value)) - 1

    def icdf(self, prob: Any) -> Any:  # pyright: ignore[reportIncompatibleMethodOverride]
        return self.base_dist.icdf((prob + 1) / 2)

    def entropy(self) -> Any:
        return self.base_dist.entropy() - LOG_2


class HalfNormal(_Half):
    """The absolute values of normal numbers of mean 0."""

    _whole = Normal

    @property
    def mean(self) -> Any:
        return self.scale * math.sqrt(2 / math.pi)

    @property
    def variance(self) -> Any:
        return self.scale.pow(2) * (1 - 2 / math.pi)


class HalfCauchy(_Half):
    """The absolute values of numbers of Cauchy's distribution about 0."""

    _whole = Cauchy

    @property
    def mean(self) -> Any:
        return torch.full(tuple(self._batch_shape), math.inf, dtype=self.scale.dtype, device=self.scale.device)

    @property
    def variance(self) -> Any:
        return self.base_dist.variance


__all__ = ["Cauchy", "Gumbel", "HalfCauchy", "HalfNormal", "Laplace", "Normal", "StudentT", "Uniform", "VonMises"]
