"""Continuous numbers that come near to classes as a temperature falls, through which gradients flow.

Of C. J. Maddison, A. Mnih and Y. W. Teh, The concrete distribution (2017), and E. Jang, S. Gu and B. Poole (2017).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, ClassVar

import adjoint.torch as torch
from adjoint.torch.distributions import constraints, transforms
from adjoint.torch.distributions.composed import TransformedDistribution
from adjoint.torch.distributions.discrete import OfClasses
from adjoint.torch.distributions.distribution import Binary, clamp_probs, uniform


class LogitRelaxedBernoulli(Binary):
    """The log odds of `RelaxedBernoulli`'s numbers: logistic ones over the temperature."""

    support: Any = constraints.real
    has_rsample = True

    def __init__(
        self, temperature: Any, probs: Any = None, logits: Any = None, validate_args: bool | None = None
    ) -> None:
        self.temperature = temperature
        self._set_either(validate_args, probs, logits)

    def _expand_rest(self, new: Any, batch_shape: Any) -> None:
        new.temperature = self.temperature

    def rsample(self, sample_shape: Sequence[int] = ()) -> Any:
        u = clamp_probs(uniform(self._extended_shape(sample_shape), self._param))
        return (u.log() - (-u).log1p() + self.logits) / self.temperature

    def log_prob(self, value: Any) -> Any:
        off = self.logits - self._checked(value) * self.temperature
        return torch.as_tensor(self.temperature).log() + off - 2 * off.exp().log1p()


class ExpRelaxedCategorical(OfClasses):
    """The logarithms of `RelaxedOneHotCategorical`'s shares."""

    support: Any = constraints.real_vector  # of which the exponentials sum to one
    has_rsample = True

    def __init__(
        self, temperature: Any, probs: Any = None, logits: Any = None, validate_args: bool | None = None
    ) -> None:
        self.temperature = temperature
        self._set_classes(validate_args, probs, logits)

    def _expand_rest(self, new: Any, batch_shape: Any) -> None:
        super()._expand_rest(new, batch_shape)
        new.temperature = self.temperature

    def rsample(self, sample_shape: Sequence[int] = ()) -> Any:
        u = clamp_probs(uniform(self._extended_shape(sample_shape), self.logits))
        scores = (self.logits - (-(u.log())).log()) / self.temperature
        return scores - scores.logsumexp(dim=-1, keepdim=True)

    def log_prob(self, value: Any) -> Any:
        k = self._event_shape[0]
        logits, value = torch.broadcast_tensors(self.logits, self._checked(value))
        temperature = torch.as_tensor(self.temperature, dtype=logits.dtype)
        score = logits - value * temperature
        score = (score - score.logsumexp(dim=-1, keepdim=True)).sum(-1)
        return score + math.lgamma(k) + temperature.log() * (k - 1)


class _Relaxed(TransformedDistribution):
    """A base with a temperature, after a transform."""

    base_dist: Any
    has_rsample = True  # pyright: ignore[reportAssignmentType, reportIncompatibleMethodOverride]
    _base: Any
    _step: Any

    def __init__(
        self, temperature: Any, probs: Any = None, logits: Any = None, validate_args: bool | None = None
    ) -> None:
        base = self._base(temperature, probs, logits, validate_args=validate_args)
        super().__init__(base, self._step(), validate_args)

    @property
    def temperature(self) -> Any:
        return self.base_dist.temperature

    @property
    def logits(self) -> Any:
        return self.base_dist.logits

    @property
    def probs(self) -> Any:
        return self.base_dist.probs


class RelaxedBernoulli(_Relaxed):
    """Numbers between 0 and 1 that come near to 0 and 1 as the temperature falls, and are differentiable."""

    arg_constraints: ClassVar[dict[str, Any]] = Binary.arg_constraints
    support: Any = constraints.unit_interval
    _base, _step = LogitRelaxedBernoulli, transforms.SigmoidTransform


class RelaxedOneHotCategorical(_Relaxed):
    """Shares that come near to one class as the temperature falls, and are differentiable."""

    arg_constraints: ClassVar[dict[str, Any]] = OfClasses.arg_constraints
    support: Any = constraints.simplex
    _base, _step = ExpRelaxedCategorical, transforms.ExpTransform


__all__ = ["ExpRelaxedCategorical", "LogitRelaxedBernoulli", "RelaxedBernoulli", "RelaxedOneHotCategorical"]
