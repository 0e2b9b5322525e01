"""The base of distributions: shapes of batches and events, checks of parameters and samples, and expansion."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Sequence
from numbers import Number
from typing import Any, ClassVar

import adjoint as ad
import adjoint.torch as torch
from adjoint.random_keys import seeded
from adjoint.torch.calls import call
from adjoint.torch.creation import tensor
from adjoint.torch.distributions import constraints
from adjoint.torch.generators import source
from adjoint.torch.lifted import all_true, is_batched

Size = torch.Size
LOG_2 = math.log(2)
LOG_2_PI = math.log(2 * math.pi)
EULER = 0.57721566490153286060


class Distribution:
    """Numbers of a distribution, their densities and moments: a batch of `batch_shape`, each event of `event_shape`.

    Parameters that are not valid raise ValueError, and so do values outside of the support in `log_prob`, unless
    `validate_args` is false.

    >>> import adjoint.torch as torch
    >>> normal = torch.distributions.Normal(torch.zeros(2), 1.0)
    >>> normal.log_prob(torch.tensor([0.0, 1.0]))
    tensor([-0.9189, -1.4189])
    """

    has_rsample: bool = False
    has_enumerate_support: bool = False
    arg_constraints: ClassVar[dict[str, Any]] = {}
    _shows_parameters: ClassVar[bool] = True  # PyTorch prints none where another distribution has them
    _validate_args: bool = __debug__

    @staticmethod
    def set_default_validate_args(value: bool) -> None:
        """Whether distributions check their parameters and samples, unless they are told."""
        if value not in (True, False):
            raise ValueError
        Distribution._validate_args = value

    def __init__(
        self,
        batch_shape: Sequence[int] = (),
        event_shape: Sequence[int] = (),
        validate_args: bool | None = None,
    ) -> None:
        self._batch_shape, self._event_shape = Size(batch_shape), Size(event_shape)
        if validate_args is not None:
            self._validate_args = validate_args
        if self._validate_args:
            self._check_parameters()

    def _check_parameters(self) -> None:
        for name, constraint in self.arg_constraints.items():
            if constraints.is_dependent(constraint):
                continue
            if name not in self.__dict__ and isinstance(getattr(type(self), name, None), lazy_property):
                continue  # what follows from another parameter is not checked twice
            value = getattr(self, name)
            if not all_true(constraint.check(value)):
                raise ValueError(
                    f"Expected parameter {name} ({type(value).__name__} of shape {tuple(value.shape)}) of distribution "
                    f"{self!r} to satisfy the constraint {constraint!r}, but found invalid values:\n{_shown(value)}"
                )

    @property
    def batch_shape(self) -> Any:
        return self._batch_shape

    @property
    def event_shape(self) -> Any:
        return self._event_shape

    @property
    def support(self) -> Any:
        raise NotImplementedError

    @property
    def mean(self) -> Any:
        raise NotImplementedError

    @property
    def mode(self) -> Any:
        raise NotImplementedError(f"{type(self)} does not implement mode")

    @property
    def variance(self) -> Any:
        raise NotImplementedError

    @property
    def stddev(self) -> Any:
        return self.variance.sqrt()

    def expand(self, batch_shape: Sequence[int], _instance: Any = None) -> Any:
        """The distribution with parameters that are broadcast to a larger batch."""
        raise NotImplementedError

    def _expanded_as(self, new: Any, batch_shape: Sequence[int], event_shape: Sequence[int]) -> Any:
        """`new`, whose parameters are set, with these shapes: nothing is checked once more."""
        Distribution.__init__(new, batch_shape, event_shape, validate_args=False)
        new._validate_args = self._validate_args
        return new

    def sample(self, sample_shape: Sequence[int] = ()) -> Any:
        """Numbers of shape `sample_shape + batch_shape + event_shape`, without gradients."""
        with torch.no_grad():
            return self.rsample(sample_shape)

    def rsample(self, sample_shape: Sequence[int] = ()) -> Any:
        """Numbers through which gradients flow to the parameters."""
        raise NotImplementedError

    def sample_n(self, n: int) -> Any:
        warnings.warn("sample_n will be deprecated. Use .sample((n,)) instead", UserWarning, stacklevel=2)
        return self.sample((n,))

    def log_prob(self, value: Any) -> Any:
        """The logarithm of the density, or of the probability, of values."""
        raise NotImplementedError

    def cdf(self, value: Any) -> Any:
        """The probability of what is not above a value."""
        raise NotImplementedError

    def icdf(self, value: Any) -> Any:
        """The quantile: the inverse of `cdf`."""
        raise NotImplementedError

    def enumerate_support(self, expand: bool = True) -> Any:
        """All values there are, along the first axis."""
        raise NotImplementedError

    def entropy(self) -> Any:
        raise NotImplementedError

    def perplexity(self) -> Any:
        return torch.exp(self.entropy())

    def _extended_shape(self, sample_shape: Sequence[int] = ()) -> Any:
        return Size((*sample_shape, *self._batch_shape, *self._event_shape))

    def _validate_sample(self, value: Any) -> None:
        if not isinstance(value, torch.Tensor):
            raise ValueError("The value argument to log_prob must be a Tensor")
        events = len(self._event_shape)
        if value.shape[value.dim() - events :] != self._event_shape:
            raise ValueError(
                f"The right-most size of value must match event_shape: {value.size()} vs {self._event_shape}."
            )
        expected = (*self._batch_shape, *self._event_shape)
        for given, wanted in zip(reversed(value.shape), reversed(expected), strict=False):
            if given != 1 and wanted != 1 and given != wanted:
                raise ValueError(
                    f"Value is not broadcastable with batch_shape+event_shape: {value.size()} vs {Size(expected)}."
                )
        try:
            support = self.support
        except NotImplementedError:
            warnings.warn(
                f"{type(self)} does not define `support` to enable sample validation. Please initialize the "
                "distribution with `validate_args=False` to turn off validation.",
                stacklevel=3,
            )
            return
        if not all_true(support.check(value)):
            raise ValueError(
                f"Expected value argument ({type(value).__name__} of shape {tuple(value.shape)}) to be within the "
                f"support ({support!r}) of the distribution {self!r}, but found invalid values:\n{_shown(value)}"
            )

    def __repr__(self) -> str:
        shown = [
            f"{name}: {_shown(value) if value.numel() == 1 else value.size()}"
            for name in self.arg_constraints
            if self._shows_parameters and isinstance(value := self.__dict__.get(name), torch.Tensor)
        ]
        return f"{type(self).__name__}({', '.join(shown)})"


def _shown(value: Any) -> Any:
    """A tensor as messages show it; inside of vmap it is no single number."""
    return repr(value) if is_batched(value) else value


class Family(Distribution):
    """A distribution whose parameters broadcast; `_events` are the axes that a parameter has for an event.

    What users may give in its place (`logits` for `probs`) stays what was given, and the other one follows from it.
    """

    _parameters: tuple[str, ...] = ()

    def _set(self, validate_args: bool | None, event_shape: Sequence[int] = (), **parameters: Any) -> None:
        names = list(parameters)
        values = broadcast_all(*parameters.values())
        for name, value in zip(names, values, strict=True):
            setattr(self, name, value)
        self._parameters = tuple(names)
        shape = Size() if all(isinstance(v, Number) for v in parameters.values()) else values[0].size()
        super().__init__(shape, event_shape, validate_args)

    def expand(self, batch_shape: Sequence[int], _instance: Any = None) -> Any:
        new = type(self).__new__(type(self)) if _instance is None else _instance
        rank = len(self._batch_shape)
        for name in self._parameters:
            value = getattr(self, name)
            setattr(new, name, value.expand((*batch_shape, *value.shape[rank:])))
        self._expand_rest(new, Size(batch_shape))
        new._parameters = self._parameters
        return self._expanded_as(new, batch_shape, self._event_shape)

    def _expand_rest(self, new: Any, batch_shape: Any) -> None:
        """What else an expanded distribution keeps."""

    def _checked(self, value: Any) -> Any:
        if self._validate_args:
            self._validate_sample(value)
        return value

    @property
    def _first(self) -> Any:
        return getattr(self, self._parameters[0])


class Centred(Distribution):
    """A distribution about `loc`, which is its mean and its mode."""

    loc: Any

    @property
    def mean(self) -> Any:
        return self.loc

    @property
    def mode(self) -> Any:
        return self.loc


class ExponentialFamily(Distribution):
    """The base of exponential families."""


class lazy_property:  # as PyTorch names it
    """A property that is computed once, with gradients, and kept."""

    def __init__(self, wrapped: Callable[[Any], Any]) -> None:
        self.wrapped = wrapped
        self.__doc__ = wrapped.__doc__

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        if instance is None:
            return self
        with torch.enable_grad():
            value = self.wrapped(instance)
        setattr(instance, self.wrapped.__name__, value)
        return value


class Binary(Family):
    """A family of chances: `probs`, or their log odds `logits`."""

    arg_constraints: ClassVar[dict[str, Any]] = {"probs": constraints.unit_interval, "logits": constraints.real}

    def _set_either(self, validate_args: bool | None, probs: Any, logits: Any, **more: Any) -> None:
        either(type(self).__name__, probs, logits)
        self._set(validate_args, **more, **({"logits": logits} if probs is None else {"probs": probs}))

    @property
    def _param(self) -> Any:
        return self.__dict__["probs"] if "probs" in self._parameters else self.__dict__["logits"]

    @property
    def param_shape(self) -> Any:
        return self._param.size()

    @lazy_property
    def logits(self) -> Any:
        return probs_to_logits(self.probs, is_binary=True)

    @lazy_property
    def probs(self) -> Any:
        return logits_to_probs(self.logits, is_binary=True)


def broadcast_all(*values: Any) -> tuple[Any, ...]:
    """Tensors and numbers, broadcast; numbers have the dtype of the tensors, or the default one."""
    if not all(isinstance(v, (torch.Tensor, Number)) for v in values):
        raise ValueError("Input arguments must all be instances of Number, torch.Tensor or objects implementing "
                         "__torch_function__.")  # fmt: skip
    first = next((v for v in values if isinstance(v, torch.Tensor)), None)
    options = {} if first is None else {"dtype": first.dtype, "device": first.device}
    if first is None:
        options = {"dtype": torch.get_default_dtype()}
    tensors = [v if isinstance(v, torch.Tensor) else tensor(v, **options) for v in values]
    return tuple(torch.broadcast_tensors(*tensors))


def drawn(function: Any, made: str, shape: Sequence[int], *parameters: Any) -> Any:
    """Numbers of one of `ad.random`'s functions, which gradients follow; the key is of the face's generator."""
    key = int(source(None, apart=True).integers(0, 2**62))  # numbers of examples in vmap follow from one
    shape = tuple(shape)

    def draw(*arrays: Any) -> Any:
        with seeded(key):
            return function(*arrays, shape)

    return call(draw, made, *parameters)


def gamma_numbers(concentration: Any, shape: Sequence[int]) -> Any:
    """Numbers of the standard gamma distribution, which are never 0."""
    drawn_ = drawn(lambda a, size: ad.random.gamma(a, size), "StandardGamma", shape, concentration.expand(shape))
    return drawn_.clamp(min=torch.finfo(drawn_.dtype).tiny)


def logits_to_probs(logits: Any, is_binary: bool = False) -> Any:
    """The chances of logits: log odds of two, or logarithms of chances along the last axis."""
    return torch.sigmoid(logits) if is_binary else torch.softmax(logits, -1)


def probs_to_logits(probs: Any, is_binary: bool = False) -> Any:
    """The logits of chances, which are kept away from 0 and 1 by the dtype's precision."""
    inside = clamp_probs(probs)
    return torch.log(inside) - torch.log1p(-inside) if is_binary else torch.log(inside)


def clamp_probs(probs: Any) -> Any:
    eps = torch.finfo(probs.dtype).eps
    return probs.clamp(min=eps, max=1 - eps)


def uniform(shape: Sequence[int], like: Any) -> Any:
    """Numbers above 0 and below 1."""
    made = torch.rand(tuple(shape), dtype=like.dtype, device=like.device)
    return made.clamp(min=torch.finfo(like.dtype).tiny)


def either(name: str, probs: Any, logits: Any) -> None:
    """Raises ValueError unless one of the two is given."""
    if (probs is None) == (logits is None):
        raise ValueError("Either `probs` or `logits` must be specified, but not both.")
