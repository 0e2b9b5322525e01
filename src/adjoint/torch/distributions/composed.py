"""Distributions made of others: transformed ones, mixtures, and batches that are taken for events."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import adjoint.torch as torch
from adjoint.torch.distributions import constraints, transforms
from adjoint.torch.distributions.continuous import Normal, Uniform
from adjoint.torch.distributions.discrete import Categorical
from adjoint.torch.distributions.distribution import Distribution, broadcast_all
from adjoint.torch.distributions.transform import Transform, sum_rightmost


class Independent(Distribution):
    """A distribution whose last batch axes are axes of an event: probabilities multiply along them."""

    arg_constraints: ClassVar[dict[str, Any]] = {}
    base_dist: Distribution

    def __init__(
        self, base_distribution: Distribution, reinterpreted_batch_ndims: int, validate_args: bool | None = None
    ) -> None:
        rank = len(base_distribution.batch_shape)
        if reinterpreted_batch_ndims > rank:
            raise ValueError(
                "Expected reinterpreted_batch_ndims <= len(base_distribution.batch_shape), actual "
                f"{reinterpreted_batch_ndims} vs {rank}"
            )
        shape = (*base_distribution.batch_shape, *base_distribution.event_shape)
        at = rank - reinterpreted_batch_ndims
        self.base_dist, self.reinterpreted_batch_ndims = base_distribution, reinterpreted_batch_ndims
        super().__init__(shape[:at], shape[at:], validate_args)

    def expand(self, batch_shape: Sequence[int], _instance: Any = None) -> Any:
        new = type(self).__new__(type(self)) if _instance is None else _instance
        own = self.event_shape[: self.reinterpreted_batch_ndims]
        new.base_dist = self.base_dist.expand((*batch_shape, *own))
        new.reinterpreted_batch_ndims = self.reinterpreted_batch_ndims
        return self._expanded_as(new, batch_shape, self.event_shape)

    @property
    def has_rsample(self) -> bool:  # type: ignore[override]
        return self.base_dist.has_rsample

    @property
    def has_enumerate_support(self) -> bool:  # type: ignore[override]
        return False if self.reinterpreted_batch_ndims > 0 else self.base_dist.has_enumerate_support

    @constraints.dependent_property
    def support(self) -> Any:
        found, n = self.base_dist.support, self.reinterpreted_batch_ndims
        return constraints.independent(found, n) if n else found

    @property
    def mean(self) -> Any:
        return self.base_dist.mean

    @property
    def mode(self) -> Any:
        return self.base_dist.mode

    @property
    def variance(self) -> Any:
        return self.base_dist.variance

    def sample(self, sample_shape: Sequence[int] = ()) -> Any:
        return self.base_dist.sample(sample_shape)

    def rsample(self, sample_shape: Sequence[int] = ()) -> Any:
        return self.base_dist.rsample(sample_shape)

    def log_prob(self, value: Any) -> Any:
        return sum_rightmost(self.base_dist.log_prob(value), self.reinterpreted_batch_ndims)

    def entropy(self) -> Any:
        return sum_rightmost(self.base_dist.entropy(), self.reinterpreted_batch_ndims)

    def enumerate_support(self, expand: bool = True) -> Any:
        if self.reinterpreted_batch_ndims > 0:
            raise NotImplementedError("Enumeration over cartesian product is not implemented")
        return self.base_dist.enumerate_support(expand=expand)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.base_dist}, {self.reinterpreted_batch_ndims})"


class TransformedDistribution(Distribution):
    """Numbers of a distribution after transforms, with their density."""

    arg_constraints: ClassVar[dict[str, Any]] = {}

    def __init__(self, base_distribution: Distribution, transforms: Any, validate_args: bool | None = None) -> None:
        listed = [transforms] if isinstance(transforms, Transform) else transforms
        if not isinstance(listed, list) or not all(isinstance(t, Transform) for t in listed):
            raise ValueError(f"transforms must be a Transform or list, but was {transforms}")
        self.transforms = listed
        shape = (*base_distribution.batch_shape, *base_distribution.event_shape)
        base_rank = len(base_distribution.event_shape)
        whole = _composed(listed)
        if len(shape) < whole.domain.event_dim:
            raise ValueError(
                f"base_distribution needs to have shape with size at least {whole.domain.event_dim}, but got {shape}."
            )
        forward = tuple(whole.forward_shape(shape))
        wide = tuple(whole.inverse_shape(forward))
        if wide != shape:
            base_distribution = base_distribution.expand(wide[: len(wide) - base_rank])
        more = whole.domain.event_dim - base_rank
        if more > 0:
            base_distribution = Independent(base_distribution, more)
        self.base_dist = base_distribution
        rank = whole.codomain.event_dim + max(base_rank - whole.domain.event_dim, 0)
        at = len(forward) - rank
        super().__init__(forward[:at], forward[at:], validate_args)

    def expand(self, batch_shape: Sequence[int], _instance: Any = None) -> Any:
        new = type(self).__new__(type(self)) if _instance is None else _instance
        shape = _composed(self.transforms).inverse_shape((*batch_shape, *self.event_shape))
        rank = len(self.base_dist.event_shape)
        new.base_dist = self.base_dist.expand(shape[: len(shape) - rank])
        new.transforms = self.transforms
        return self._expanded_as(new, batch_shape, self.event_shape)

    @property
    def has_rsample(self) -> bool:  # type: ignore[override]
        return self.base_dist.has_rsample

    @constraints.dependent_property(is_discrete=False)
    def support(self) -> Any:  # pyright: ignore[reportIncompatibleMethodOverride]
        if not self.transforms:
            return self.base_dist.support
        found = self.transforms[-1].codomain
        more = len(self.event_shape) - found.event_dim
        return constraints.independent(found, more) if more > 0 else found

    def sample(self, sample_shape: Sequence[int] = ()) -> Any:
        with torch.no_grad():
            return self._after(self.base_dist.sample(sample_shape))

    def rsample(self, sample_shape: Sequence[int] = ()) -> Any:
        return self._after(self.base_dist.rsample(sample_shape))

    def _after(self, x: Any) -> Any:
        for transform in self.transforms:
            x = transform(x)
        return x

    def log_prob(self, value: Any) -> Any:
        if self._validate_args:
            self._validate_sample(value)
        rank, found, y = len(self.event_shape), 0.0, value
        for transform in reversed(self.transforms):
            x = transform.inv(y)
            rank += transform.domain.event_dim - transform.codomain.event_dim
            found = found - sum_rightmost(transform.log_abs_det_jacobian(x, y), rank - transform.domain.event_dim)
            y = x
        return found + sum_rightmost(self.base_dist.log_prob(y), rank - len(self.base_dist.event_shape))

    def _monotone(self, value: Any) -> Any:
        """A probability where the transforms turn the order around, one minus it."""
        sign: Any = 1
        for transform in self.transforms:
            sign = sign * transform.sign
        return value if isinstance(sign, int) and sign == 1 else sign * (value - 0.5) + 0.5

    def cdf(self, value: Any) -> Any:
        for transform in self.transforms[::-1]:
            value = transform.inv(value)
        if self._validate_args:
            self.base_dist._validate_sample(value)
        return self._monotone(self.base_dist.cdf(value))

    def icdf(self, value: Any) -> Any:
        return self._after(self.base_dist.icdf(self._monotone(value)))


def _composed(listed: list[Transform]) -> Any:
    return transforms.ComposeTransform(listed)


class LogNormal(TransformedDistribution):
    """Numbers whose logarithms are normal, of mean `loc` and standard deviation `scale`."""

    arg_constraints: ClassVar[dict[str, Any]] = {"loc": constraints.real, "scale": constraints.positive}
    support: Any = constraints.positive
    has_rsample = True  # pyright: ignore[reportAssignmentType, reportIncompatibleMethodOverride]
    base_dist: Any

    def __init__(self, loc: Any, scale: Any, validate_args: bool | None = None) -> None:
        super().__init__(Normal(loc, scale, validate_args), transforms.ExpTransform(), validate_args)

    @property
    def loc(self) -> Any:
        return self.base_dist.loc

    @property
    def scale(self) -> Any:
        return self.base_dist.scale

    @property
    def mean(self) -> Any:
        return (self.loc + self.scale.pow(2) / 2).exp()

    @property
    def mode(self) -> Any:
        return (self.loc - self.scale.square()).exp()

    @property
    def variance(self) -> Any:
        squared = self.scale.pow(2)
        return squared.expm1() * (2 * self.loc + squared).exp()

    def entropy(self) -> Any:
        return self.base_dist.entropy() + self.loc


class LogisticNormal(TransformedDistribution):
    """Shares of one by breaking sticks at places whose log odds are normal."""

    arg_constraints: ClassVar[dict[str, Any]] = {"loc": constraints.real, "scale": constraints.positive}
    support: Any = constraints.simplex
    has_rsample = True  # pyright: ignore[reportAssignmentType, reportIncompatibleMethodOverride]
    base_dist: Any

    def __init__(self, loc: Any, scale: Any, validate_args: bool | None = None) -> None:
        base: Any = Normal(loc, scale, validate_args)
        if not base.batch_shape:
            base = base.expand([1])
        super().__init__(base, transforms.StickBreakingTransform(), validate_args)

    @property
    def loc(self) -> Any:
        return self.base_dist.base_dist.loc

    @property
    def scale(self) -> Any:
        return self.base_dist.base_dist.scale


class Kumaraswamy(TransformedDistribution):
    """Kumaraswamy's distribution of shares between 0 and 1, which is like a beta distribution."""

    arg_constraints: ClassVar[dict[str, Any]] = {
        "concentration1": constraints.positive, "concentration0": constraints.positive
    }  # fmt: skip
    support: Any = constraints.unit_interval
    has_rsample = True  # pyright: ignore[reportAssignmentType, reportIncompatibleMethodOverride]

    def __init__(self, concentration1: Any, concentration0: Any, validate_args: bool | None = None) -> None:
        self.concentration1, self.concentration0 = broadcast_all(concentration1, concentration0)
        base = Uniform(torch.zeros_like(self.concentration0), torch.ones_like(self.concentration0), validate_args)
        less, power = transforms.AffineTransform(loc=1.0, scale=-1.0), transforms.PowerTransform
        steps = [power(self.concentration0.reciprocal()), less, power(self.concentration1.reciprocal())]
        super().__init__(base, steps, validate_args)

    def expand(self, batch_shape: Sequence[int], _instance: Any = None) -> Any:
        new = type(self).__new__(type(self)) if _instance is None else _instance
        new.concentration1 = self.concentration1.expand(tuple(batch_shape))
        new.concentration0 = self.concentration0.expand(tuple(batch_shape))
        return super().expand(batch_shape, _instance=new)

    def _moment(self, n: int) -> Any:
        a, b = self.concentration1, self.concentration0
        one = 1 + n / a
        return torch.exp(torch.log(b) + torch.lgamma(one) + torch.lgamma(b) - torch.lgamma(one + b))

    @property
    def mean(self) -> Any:
        return self._moment(1)

    @property
    def mode(self) -> Any:
        a, b = self.concentration1, self.concentration0
        found = ((a - 1).log() - (a * b - 1).log()) / a
        return torch.where((a < 1) | (b < 1), torch.nan, found.exp())

    @property
    def variance(self) -> Any:
        return self._moment(2) - self._moment(1).pow(2)

    def entropy(self) -> Any:
        a, b = self.concentration1, self.concentration0
        harmonic = torch.digamma(b + 1) + 0.57721566490153286060
        return (1 - b.reciprocal()) + (1 - a.reciprocal()) * harmonic - torch.log(a) - torch.log(b)


class MixtureSameFamily(Distribution):
    """A component by the chances of a `Categorical`, then a number of it: the last batch axis has the components."""

    arg_constraints: ClassVar[dict[str, Any]] = {}
    has_rsample = False

    def __init__(
        self, mixture_distribution: Categorical, component_distribution: Distribution,
        validate_args: bool | None = None,
    ) -> None:  # fmt: skip
        self._mixture_distribution, self._component_distribution = mixture_distribution, component_distribution
        if not isinstance(mixture_distribution, Categorical):
            raise ValueError(" The Mixture distribution needs to be an  instance of torch.distributions.Categorical")
        if not isinstance(component_distribution, Distribution):
            raise ValueError("The Component distribution need to be an instance of torch.distributions.Distribution")
        batch = component_distribution.batch_shape[:-1]
        for size, wanted in zip(reversed(mixture_distribution.batch_shape), reversed(batch), strict=False):
            if size != 1 and wanted != 1 and size != wanted:
                raise ValueError(
                    f"`mixture_distribution.batch_shape` ({mixture_distribution.batch_shape}) is not compatible with "
                    f"`component_distribution.batch_shape`({batch})"
                )
        components, parts = mixture_distribution.logits.shape[-1], component_distribution.batch_shape[-1]
        if components != parts:
            raise ValueError(
                f"`mixture_distribution component` ({components}) does not equal "
                f"`component_distribution.batch_shape[-1]` ({parts})"
            )
        self._num_component = components
        event = component_distribution.event_shape
        self._event_ndims = len(event)
        super().__init__(batch, event, validate_args)

    def expand(self, batch_shape: Sequence[int], _instance: Any = None) -> Any:
        component = self._component_distribution.expand((*batch_shape, self._num_component))
        new = type(self).__new__(type(self)) if _instance is None else _instance
        new._component_distribution, new._num_component = component, self._num_component
        new._mixture_distribution = self._mixture_distribution.expand(batch_shape)
        new._event_ndims = self._event_ndims
        return self._expanded_as(new, batch_shape, component.event_shape)

    @constraints.dependent_property
    def support(self) -> Any:
        return self._component_distribution.support

    @property
    def mixture_distribution(self) -> Categorical:
        return self._mixture_distribution

    @property
    def component_distribution(self) -> Distribution:
        return self._component_distribution

    @property
    def _shares(self) -> Any:
        probs = self.mixture_distribution.probs
        return probs.reshape((*probs.shape, *[1] * self._event_ndims))

    @property
    def _axis(self) -> int:
        return -1 - self._event_ndims

    @property
    def mean(self) -> Any:
        return torch.sum(self._shares * self.component_distribution.mean, dim=self._axis)

    @property
    def variance(self) -> Any:
        within = torch.sum(self._shares * self.component_distribution.variance, dim=self._axis)
        off = self.component_distribution.mean - self.mean.unsqueeze(self._axis)
        return within + torch.sum(self._shares * off.pow(2.0), dim=self._axis)

    def cdf(self, x: Any) -> Any:  # pyright: ignore[reportIncompatibleMethodOverride]
        found = self.component_distribution.cdf(x.unsqueeze(self._axis))
        return torch.sum(found * self.mixture_distribution.probs, dim=-1)

    def log_prob(self, x: Any) -> Any:  # pyright: ignore[reportIncompatibleMethodOverride]
        if self._validate_args:
            self._validate_sample(x)
        parts = self.component_distribution.log_prob(x.unsqueeze(self._axis))
        return torch.logsumexp(parts + torch.log_softmax(self.mixture_distribution.logits, dim=-1), dim=-1)

    def sample(self, sample_shape: Sequence[int] = ()) -> Any:
        with torch.no_grad():
            which = self.mixture_distribution.sample(sample_shape)
            parts = self.component_distribution.sample(sample_shape)
            axis = len(sample_shape) + len(self.batch_shape)
            index = which.reshape((*which.shape, *[1] * (self._event_ndims + 1)))
            index = index.expand((*which.shape, 1, *self.event_shape))
            return torch.gather(parts, axis, index).squeeze(axis)

    def __repr__(self) -> str:
        return f"MixtureSameFamily(\n  {self.mixture_distribution},\n  {self.component_distribution})"


__all__ = [
    "Independent", "Kumaraswamy", "LogNormal", "LogisticNormal", "MixtureSameFamily",     "TransformedDistribution",
]  # fmt: skip
