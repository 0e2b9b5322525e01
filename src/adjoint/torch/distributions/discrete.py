"""Distributions of whole numbers, of classes, and their relaxations."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, ClassVar

import adjoint.torch as torch
from adjoint.torch.creation import tensor
from adjoint.torch.distributions import constraints
from adjoint.torch.distributions.distribution import (
    Binary,
    ExponentialFamily,
    Family,
    broadcast_all,
    either,
    gamma_numbers,
    lazy_property,
    logits_to_probs,
    probs_to_logits,
    uniform,
)
from adjoint.torch.generators import drawn_by
from adjoint.torch.lifted import all_true


class Bernoulli(Binary, ExponentialFamily):
    """0 or 1, of which 1 has the chance `probs`."""

    support: Any = constraints.boolean
    has_enumerate_support = True

    def __init__(self, probs: Any = None, logits: Any = None, validate_args: bool | None = None) -> None:
        self._set_either(validate_args, probs, logits)

    @property
    def mean(self) -> Any:
        return self.probs

    @property
    def mode(self) -> Any:
        return torch.where(self.probs == 0.5, math.nan, (self.probs >= 0.5).to(self.probs.dtype))

    @property
    def variance(self) -> Any:
        return self.probs * (1 - self.probs)

    def sample(self, sample_shape: Sequence[int] = ()) -> Any:
        with torch.no_grad():
            return torch.bernoulli(self.probs.expand(self._extended_shape(sample_shape)))

    def log_prob(self, value: Any) -> Any:
        logits, value = torch.broadcast_tensors(self.logits, self._checked(value))
        return -torch.nn.functional.binary_cross_entropy_with_logits(logits, value, reduction="none")

    def entropy(self) -> Any:
        return torch.nn.functional.binary_cross_entropy_with_logits(self.logits, self.probs, reduction="none")

    def enumerate_support(self, expand: bool = True) -> Any:
        return _enumerated(self, 2, expand)


class Geometric(Binary):
    """How many attempts fail before the first that succeeds, each with the chance `probs`."""

    support: Any = constraints.nonnegative_integer

    def __init__(self, probs: Any = None, logits: Any = None, validate_args: bool | None = None) -> None:
        self._set_either(validate_args, probs, logits)
        if self._validate_args and probs is not None and not all_true(self.probs > 0):
            raise ValueError(
                f"Expected parameter probs ({type(self.probs).__name__} of shape {tuple(self.probs.shape)}) of "
                f"distribution {self!r} to be positive but found invalid values:\n{self.probs}"
            )

    @property
    def mean(self) -> Any:
        return 1.0 / self.probs - 1.0

    @property
    def mode(self) -> Any:
        return torch.zeros_like(self.probs)

    @property
    def variance(self) -> Any:
        return (1.0 / self.probs - 1.0) / self.probs

    def sample(self, sample_shape: Sequence[int] = ()) -> Any:
        with torch.no_grad():
            u = uniform(self._extended_shape(sample_shape), self.probs)
            return (u.log() / torch.log1p(-self.probs)).floor()

    def log_prob(self, value: Any) -> Any:
        p, value = torch.broadcast_tensors(self.probs, self._checked(value))
        p = torch.where((p == 1) & (value == 0), 0.0, p)
        return value * torch.log1p(-p) + self.probs.log()

    def entropy(self) -> Any:
        return torch.nn.functional.binary_cross_entropy_with_logits(
            self.logits, self.probs, reduction="none"
        ) / self.probs  # fmt: skip


class Binomial(Binary):
    """How many of `total_count` attempts succeed, each with the chance `probs`."""

    arg_constraints: ClassVar[dict[str, Any]] = {
        "total_count": constraints.nonnegative_integer,
        **Binary.arg_constraints,
    }
    has_enumerate_support = True
    total_count: Any

    def __init__(
        self, total_count: Any = 1, probs: Any = None, logits: Any = None, validate_args: bool | None = None
    ) -> None:
        self._set_either(validate_args, probs, logits, total_count=total_count)
        self.total_count = self.total_count.type_as(self._param)
        if not self._batch_shape and self._param.dim():
            self._batch_shape = self._param.size()

    @constraints.dependent_property(is_discrete=True, event_dim=0)
    def support(self) -> Any:  # pyright: ignore[reportIncompatibleMethodOverride]
        return constraints.integer_interval(0, self.total_count)

    @property
    def mean(self) -> Any:
        return self.total_count * self.probs

    @property
    def mode(self) -> Any:
        return ((self.total_count + 1) * self.probs).floor().clamp(max=self.total_count)

    @property
    def variance(self) -> Any:
        return self.total_count * self.probs * (1 - self.probs)

    def sample(self, sample_shape: Sequence[int] = ()) -> Any:
        shape = self._extended_shape(sample_shape)
        with torch.no_grad():
            return torch.binomial(self.total_count.expand(shape), self.probs.expand(shape))

    def log_prob(self, value: Any) -> Any:
        value, n, logits = self._checked(value), self.total_count, self.logits
        ways = torch.lgamma(n + 1) - torch.lgamma(value + 1) - torch.lgamma(n - value + 1)
        return ways + value * logits + n * torch.nn.functional.logsigmoid(-logits)

    def entropy(self) -> Any:
        n = int(self.total_count.max())
        if not bool((self.total_count == n).all()):
            raise NotImplementedError("Inhomogeneous total count not supported by `entropy`.")
        chances = self.log_prob(self.enumerate_support(False))
        return -(torch.exp(chances) * chances).sum(0)

    def enumerate_support(self, expand: bool = True) -> Any:
        n = int(self.total_count.max())
        if not bool((self.total_count == n).all()):
            raise NotImplementedError("Inhomogeneous total count not supported by `enumerate_support`.")
        return _enumerated(self, 1 + n, expand)


class NegativeBinomial(Binary):
    """How many attempts succeed, with the chance `probs`, before `total_count` fail."""

    arg_constraints: ClassVar[dict[str, Any]] = {
        "total_count": constraints.greater_than_eq(0), "probs": constraints.half_open_interval(0.0, 1.0),
        "logits": constraints.real,
    }  # fmt: skip
    support: Any = constraints.nonnegative_integer
    total_count: Any

    def __init__(
        self, total_count: Any, probs: Any = None, logits: Any = None, validate_args: bool | None = None
    ) -> None:
        self._set_either(validate_args, probs, logits, total_count=total_count)
        self.total_count = self.total_count.type_as(self._param)

    @property
    def mean(self) -> Any:
        return self.total_count * torch.exp(self.logits)

    @property
    def mode(self) -> Any:
        return ((self.total_count - 1) * self.logits.exp()).floor().clamp(min=0.0)

    @property
    def variance(self) -> Any:
        return self.mean / torch.sigmoid(-self.logits)

    def sample(self, sample_shape: Sequence[int] = ()) -> Any:
        shape = self._extended_shape(sample_shape)
        with torch.no_grad():
            none = self.total_count == 0
            rate = gamma_numbers(torch.where(none, 1.0, self.total_count), shape) * torch.exp(self.logits)
            return torch.poisson(torch.where(none, 0.0, rate))

    def log_prob(self, value: Any) -> Any:
        n, value, logs = self.total_count, self._checked(value), torch.nn.functional.logsigmoid
        chances = n * logs(-self.logits) + value * logs(self.logits)
        norm = -torch.lgamma(n + value) + torch.lgamma(1.0 + value) + torch.lgamma(n)
        return chances - torch.where(n + value == 0.0, 0.0, norm)


class Poisson(Family, ExponentialFamily):
    """Counts of mean `rate`."""

    arg_constraints: ClassVar[dict[str, Any]] = {"rate": constraints.nonnegative}
    support: Any = constraints.nonnegative_integer
    rate: Any

    def __init__(self, rate: Any, validate_args: bool | None = None) -> None:
        self._set(validate_args, rate=rate)

    @property
    def mean(self) -> Any:
        return self.rate

    @property
    def mode(self) -> Any:
        return self.rate.floor()

    @property
    def variance(self) -> Any:
        return self.rate

    def sample(self, sample_shape: Sequence[int] = ()) -> Any:
        with torch.no_grad():
            return torch.poisson(self.rate.expand(self._extended_shape(sample_shape)))

    def log_prob(self, value: Any) -> Any:
        rate, value = broadcast_all(self.rate, self._checked(value))
        return value.xlogy(rate) - rate - (value + 1).lgamma()


class Categorical(Family):
    """A class, from 0 on: the last axis has the chances `probs`, or `logits`, their logarithms up to a constant."""

    arg_constraints: ClassVar[dict[str, Any]] = {"probs": constraints.simplex, "logits": constraints.real_vector}
    has_enumerate_support = True

    def __init__(self, probs: Any = None, logits: Any = None, validate_args: bool | None = None) -> None:
        either("Categorical", probs, logits)
        name, given = ("logits", logits) if probs is None else ("probs", probs)
        if given.dim() < 1:
            raise ValueError(f"`{name}` parameter must be at least one-dimensional.")
        if probs is not None:
            self.probs = probs / probs.sum(-1, keepdim=True)
        else:
            self.logits = logits - logits.logsumexp(dim=-1, keepdim=True)
        self._parameters = (name,)
        self._num_events = given.size(-1)
        super().__init__(given.size()[:-1], (), validate_args)

    def _expand_rest(self, new: Any, batch_shape: Any) -> None:
        new._num_events = self._num_events

    @constraints.dependent_property(is_discrete=True, event_dim=0)
    def support(self) -> Any:  # pyright: ignore[reportIncompatibleMethodOverride]
        return constraints.integer_interval(0, self._num_events - 1)

    @lazy_property
    def logits(self) -> Any:
        return probs_to_logits(self.probs)

    @lazy_property
    def probs(self) -> Any:
        return logits_to_probs(self.logits)

    @property
    def _param(self) -> Any:
        return self._first

    @property
    def param_shape(self) -> Any:
        return self._first.size()

    @property
    def mean(self) -> Any:
        return torch.full(tuple(self._batch_shape), math.nan, dtype=self.probs.dtype, device=self.probs.device)

    @property
    def variance(self) -> Any:
        return self.mean

    @property
    def mode(self) -> Any:
        return self.probs.argmax(dim=-1)

    def sample(self, sample_shape: Sequence[int] = ()) -> Any:
        shape = self._extended_shape(sample_shape)
        with torch.no_grad():
            chances = self.probs.reshape(-1, self._num_events)
            drawn = torch.multinomial(chances, math.prod(sample_shape), True)
            return drawn.T.reshape(tuple(shape))

    def log_prob(self, value: Any) -> Any:
        value = self._checked(value).long().unsqueeze(-1)
        value, logits = torch.broadcast_tensors(value, self.logits)
        return logits.gather(-1, value[..., :1]).squeeze(-1)

    def entropy(self) -> Any:
        logits = self.logits.clamp(min=torch.finfo(self.logits.dtype).min)
        return -(logits * self.probs).sum(-1)

    def enumerate_support(self, expand: bool = True) -> Any:
        return _enumerated(self, self._num_events, expand, torch.int64)


class OfClasses(Family):
    """A distribution of vectors that have a place for each class of a `Categorical`, of which the chances are."""

    _shows_parameters = False
    arg_constraints: ClassVar[dict[str, Any]] = Categorical.arg_constraints

    def _set_classes(self, validate_args: bool | None, probs: Any, logits: Any) -> None:
        self._categorical = Categorical(probs, logits)
        super().__init__(self._categorical.batch_shape, self.param_shape[-1:], validate_args)

    def _expand_rest(self, new: Any, batch_shape: Any) -> None:
        new._categorical = self._categorical.expand(batch_shape)

    @property
    def _param(self) -> Any:
        return self._categorical._param

    @property
    def probs(self) -> Any:
        return self._categorical.probs

    @property
    def logits(self) -> Any:
        return self._categorical.logits

    @property
    def param_shape(self) -> Any:
        return self._categorical.param_shape


class OneHotCategorical(OfClasses):
    """A class as a vector that is 1 at its place and 0 elsewhere."""

    support: Any = constraints.one_hot
    has_enumerate_support = True

    def __init__(self, probs: Any = None, logits: Any = None, validate_args: bool | None = None) -> None:
        self._set_classes(validate_args, probs, logits)

    @property
    def mean(self) -> Any:
        return self.probs

    @property
    def mode(self) -> Any:
        found = torch.nn.functional.one_hot(self.probs.argmax(dim=-1), self.probs.shape[-1])
        return found.to(self.probs.dtype)

    @property
    def variance(self) -> Any:
        return self.probs * (1 - self.probs)

    def sample(self, sample_shape: Sequence[int] = ()) -> Any:
        found = self._categorical.sample(sample_shape)
        return torch.nn.functional.one_hot(found, self._event_shape[0]).to(self.probs.dtype)

    def log_prob(self, value: Any) -> Any:
        return self._categorical.log_prob(self._checked(value).max(-1)[1])

    def entropy(self) -> Any:
        return self._categorical.entropy()

    def enumerate_support(self, expand: bool = True) -> Any:
        n = self.event_shape[0]
        values = torch.eye(n, dtype=self.probs.dtype, device=self.probs.device)
        values = values.view((n, *[1] * len(self.batch_shape), n))
        return values.expand((n, *self.batch_shape, n)) if expand else values


class OneHotCategoricalStraightThrough(OneHotCategorical):
    """Classes whose gradients are those of the chances (Y. Bengio and others, 2013)."""

    has_rsample = True

    def rsample(self, sample_shape: Sequence[int] = ()) -> Any:
        probs = self.probs
        return self.sample(sample_shape) + (probs - probs.detach())


class Multinomial(OfClasses):
    """How often each class comes in `total_count` draws."""

    def __init__(
        self, total_count: int = 1, probs: Any = None, logits: Any = None, validate_args: bool | None = None
    ) -> None:
        if not isinstance(total_count, int):
            raise NotImplementedError("inhomogeneous total_count is not supported")
        self.total_count = total_count
        self._set_classes(validate_args, probs, logits)

    def _expand_rest(self, new: Any, batch_shape: Any) -> None:
        super()._expand_rest(new, batch_shape)
        new.total_count = self.total_count

    @constraints.dependent_property(is_discrete=True, event_dim=1)
    def support(self) -> Any:  # pyright: ignore[reportIncompatibleMethodOverride]
        return constraints.multinomial(self.total_count)

    @property
    def mean(self) -> Any:
        return self.probs * self.total_count

    @property
    def variance(self) -> Any:
        return self.total_count * self.probs * (1 - self.probs)

    def sample(self, sample_shape: Sequence[int] = ()) -> Any:
        with torch.no_grad():
            probs = self.probs.expand(self._extended_shape(sample_shape))
            draw = lambda source, p: source.multinomial(self.total_count, p / p.sum(-1, keepdims=True))
            return drawn_by(draw, None, probs.double()).to(probs.dtype)

    def log_prob(self, value: Any) -> Any:
        logits, value = torch.broadcast_tensors(self.logits, self._checked(value))
        powers = torch.where((value == 0) & (logits == -math.inf), 0.0, logits) * value
        return torch.lgamma(value.sum(-1) + 1) - torch.lgamma(value + 1).sum(-1) + powers.sum(-1)

    def entropy(self) -> Any:
        n = tensor(self.total_count)
        counts = self._binomial.enumerate_support(expand=False)[1:]
        chances = torch.exp(self._binomial.log_prob(counts))
        weighted = (chances * torch.lgamma(counts + 1)).sum([0, -1])
        return self.total_count * self._categorical.entropy() - torch.lgamma(n + 1) + weighted

    @property
    def _binomial(self) -> Any:
        return Binomial(total_count=self.total_count, probs=self.probs)


def _enumerated(d: Any, count: int, expand: bool, dtype: Any = None) -> Any:
    """The numbers from 0 up to a count, along a new first axis."""
    values = torch.arange(count, dtype=dtype or d._param.dtype, device=d._param.device)
    values = values.view((-1, *[1] * len(d._batch_shape)))
    return values.expand((-1, *d._batch_shape)) if expand else values


__all__ = [
    "Bernoulli", "Binomial", "Categorical", "Geometric", "Multinomial", "NegativeBinomial", "OneHotCategorical",
    "OneHotCategoricalStraightThrough", "Poisson",
]  # fmt: skip
