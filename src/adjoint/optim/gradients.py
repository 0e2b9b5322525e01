"""Gradients by the paths of a model's parameters: sums, multiples, and limits to their size."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from adjoint import errors
from adjoint.functions.arguments import as_positive, check_callable
from adjoint.functions.elementwise import clip, maximum, sqrt
from adjoint.functions.reduction import sum as total
from adjoint.optim.base import gradients_by_path
from adjoint.tensor import Tensor


class GradientsParams(Mapping[str, Tensor[Any]]):
    """Gradients of a model, by the paths of its parameters. You can pickle it, and send it to any thread or device.

    Each gradient has the shape of its parameter.

    >>> import adjoint as ad
    >>> model = ad.nn.Linear(2, 1).require_grad()
    >>> grads = model(ad.ones((1, 2))).sum().backward()
    >>> found = ad.optim.GradientsParams.from_grads(grads, model)
    >>> found["weight"].tolist(), (found + found * 2)["bias"].tolist()
    ([[1.0, 1.0]], [3.0])
    >>> round(found.clip_by_global_norm(1.0).global_norm().item(), 4)
    1.0
    """

    def __init__(self, gradients: Mapping[str, Tensor[Any]]) -> None:
        """Raises ArgumentTypeError for what is no mapping from paths to tensors."""
        if not isinstance(gradients, Mapping):
            raise errors.ArgumentTypeError(
                f"GradientsParams: gradients are a mapping from paths, received {errors.shown(gradients)}; from_grads "
                "takes what backward() or a transform gave"
            )
        self._gradients = dict(gradients)
        for path, g in self._gradients.items():
            if not isinstance(path, str) or not isinstance(g, Tensor):
                raise errors.ArgumentTypeError(
                    f"GradientsParams: a path has a tensor, received {errors.shown(path)}: {errors.shown(g)}"
                )

    @classmethod
    def from_grads(cls, grads: Any, model: Any) -> GradientsParams:
        """The gradients that `backward` or a transform gave, of this very model. Raises ArgumentError for none."""
        return cls(gradients_by_path(grads, model))

    def __getitem__(self, path: str) -> Tensor[Any]:
        if path not in self._gradients:
            raise errors.NoGradientError(
                f"no gradient at {errors.shown(path)}; there are {errors.shown(', '.join(self))}"
            )
        return self._gradients[path]

    def __iter__(self) -> Iterator[str]:
        return iter(self._gradients)

    def __len__(self) -> int:
        return len(self._gradients)

    def __repr__(self) -> str:
        return f"GradientsParams({len(self)} gradients: {errors.shown(', '.join(self))})"

    def map(self, f: Callable[[Tensor[Any]], Tensor[Any]]) -> GradientsParams:
        """f of each gradient."""
        check_callable("GradientsParams.map", f)
        return GradientsParams({path: f(g) for path, g in self._gradients.items()})

    def __add__(self, other: Any) -> GradientsParams:
        """Sums where both have a gradient, and the one there is elsewhere."""
        if not isinstance(other, Mapping):
            return NotImplemented
        both = {path: g + other[path] if path in other else g for path, g in self._gradients.items()}
        return GradientsParams({**both, **{path: g for path, g in other.items() if path not in both}})

    def __radd__(self, other: Any) -> GradientsParams:
        return self if isinstance(other, int) and other == 0 else NotImplemented  # for Python's sum

    def __mul__(self, factor: Any) -> GradientsParams:
        return self.map(lambda g: g * factor)

    __rmul__ = __mul__

    def __truediv__(self, divisor: Any) -> GradientsParams:
        return self.map(lambda g: g / divisor)

    def to_device(self, device: Any) -> GradientsParams:
        """The gradients on another device."""
        return self.map(lambda g: g.to_device(device))

    def global_norm(self) -> Tensor[Any]:
        """The root of the sum of all squares. Raises ArgumentError if there are none."""
        if not self:
            raise errors.ArgumentError("global_norm: there are no gradients")
        squares = [total(abs(g) ** 2) for g in self._gradients.values()]
        return sqrt(sum(squares[1:], squares[0]))

    def clip_by_value(self, limit: float) -> GradientsParams:
        """Each number between -limit and limit."""
        bound = as_positive(limit, "clip_by_value", "the limit")
        return self.map(lambda g: clip(g, -bound, bound))

    def clip_by_norm(self, limit: float) -> GradientsParams:
        """Each gradient scaled down to a norm of at most `limit`."""
        bound = as_positive(limit, "clip_by_norm", "the limit")
        return self.map(lambda g: g * _scale(sqrt(total(abs(g) ** 2)), bound))

    def clip_by_global_norm(self, limit: float) -> GradientsParams:
        """All gradients scaled by one factor, so that `global_norm` is at most `limit`. R. Pascanu et al. (2013)."""
        return self * _scale(self.global_norm(), as_positive(limit, "clip_by_global_norm", "the limit"))


class GradientsAccumulator:
    """Adds up the gradients of several batches, for a step as of one large batch.

    The sums have the shapes of the parameters.

    >>> import adjoint as ad
    >>> accumulator = ad.optim.GradientsAccumulator()
    >>> for _ in range(4):
    ...     accumulator.accumulate({"weight": ad.ones(2)})
    >>> accumulator.count, accumulator.mean()["weight"].tolist(), accumulator.count
    (4, [1.0, 1.0], 0)
    """

    def __init__(self) -> None:
        self.count = 0
        self._sum = GradientsParams({})

    def accumulate(self, grads: Any, model: Any = None) -> None:
        """Add the gradients of one batch: by paths, or those of a model. Raises ArgumentTypeError for others."""
        if model is None and not isinstance(grads, Mapping):
            raise errors.ArgumentTypeError(
                "accumulate: gradients are a mapping from paths, or with model= what backward() gave; received "
                f"{errors.shown(grads)}"
            )
        self._sum = self._sum + (grads if model is None else GradientsParams.from_grads(grads, model))
        self.count += 1

    def mean(self) -> GradientsParams:
        """The mean over the batches since the last call. Raises ArgumentError if there were none."""
        if not self.count:
            raise errors.ArgumentError("GradientsAccumulator: nothing was accumulated since the last mean()")
        found, self._sum, self.count = self._sum / self.count, GradientsParams({}), 0
        return found


def _scale(norm: Tensor[Any], limit: float) -> Tensor[Any]:
    """What brings a norm down to the limit: 1 for one that is smaller."""
    return limit / maximum(norm, limit)
