"""Averages of the models that training goes through, which are often better than the last one.

>>> import adjoint as ad
>>> model = ad.nn.Linear(1, 1, bias=False).map(ad.zeros_like)
>>> average = ad.optim.SWA()
>>> state = average.init(model)
>>> for k in range(3):
...     state = average.update(state, model.map(lambda w: w + k))
>>> average.model(state, model).weight.item()
1.0
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from typing import Any, NamedTuple, TypeVar

from adjoint import errors
from adjoint.functions.arguments import called
from adjoint.module.base import Module
from adjoint.module.fields import each_module, rebuilt
from adjoint.optim.base import Rate, chosen, parameters, with_parameters
from adjoint.optim.fused import Done, Job, Slots, updated
from adjoint.optim.settings import Settings, or_schedule, setting, share
from adjoint.tensor import Tensor

M = TypeVar("M", bound=Module)
T = TypeVar("T")


class AverageState(NamedTuple):
    """An average so far: of how many models, and its parameters by path."""

    count: Any
    values: dict[str, Tensor[Any]]


@dataclasses.dataclass(frozen=True, kw_only=True)
class Average(Settings):
    """An average of models. What it remembers is a state, a pytree; nothing is kept in it.

    The average has the structure, shapes and dtypes of the model. A subclass says with which weight a model comes in,
    after so many of them. Buffers are not averaged.
    """

    def weight(self, count: Any) -> Any:
        """The weight of the next model, beside 1 less it of the average; 1 at first."""
        raise NotImplementedError

    def init(self, model: Any) -> AverageState:
        """The state before the first model, of which the shapes are."""
        # times 1, as arrays of its own: a step that donates writes over the model's
        return AverageState(0, {path: x * 1.0 for path, x in parameters(model).items()})

    def update(self, state: AverageState, model: Any) -> AverageState:
        """The state after one more model. Raises ArgumentError or ShapeError if the state is of another one."""
        now = parameters(model)
        jobs = [Job(x, y, {}) for x, y in zip(_known(state, now), now.values(), strict=True)]
        weight = self.weight(state.count)

        def moved(x: Tensor[Any], y: Tensor[Any], slots: Slots) -> Done:
            return x + weight * (y - x), slots

        return AverageState(state.count + 1, dict(zip(now, [x for x, _ in updated(moved, jobs)], strict=True)))

    def model(self, state: AverageState, model: T) -> T:
        """The model with the averages for parameters; leaves of `require_grad` are leaves again. Raises as `update`."""
        now = parameters(model)
        return with_parameters(model, dict(zip(now, _known(state, now), strict=True)))


@dataclasses.dataclass(frozen=True, kw_only=True)
class EMA(Average):
    """The exponential moving average: average = decay average + (1 - decay) model, from the first model on.

    `decay` is a number from 0 to 1, or a function of how many models there were. B. Polyak, A. Juditsky (1992) on why
    averages are good; the values are those of PyTorch's `swa_utils.get_ema_multi_avg_fn`.
    """

    decay: Rate = setting(0.999, or_schedule(share))

    def weight(self, count: Any) -> Any:
        now = called("EMA: decay", "decay(count)", self.decay, count) if callable(self.decay) else self.decay
        if not isinstance(now, Tensor):
            now = share(now, "EMA", "decay")  # a schedule may give anything
        return chosen(count == 0, 1.0, 1 - now)


@dataclasses.dataclass(frozen=True, kw_only=True)
class SWA(Average):
    """The mean of all models: stochastic weight averaging. P. Izmailov et al. (2018), algorithm 1.

    Call `update` at the end of an epoch of the last quarter or so, at a rate that stays high. A model with batch
    normalisation then needs `batch_statistics`.
    """

    def weight(self, count: Any) -> Any:
        return 1 / (count + 1)


def batch_statistics(model: M, batches: Iterable[Any]) -> M:
    """The model with running statistics of batch normalisation that are means over these batches of inputs.

    Its structure and shapes stay. An average of models has seen no batch itself. P. Izmailov et al. (2018), section
    3.2; PyTorch's `update_bn`. Raises ArgumentError if there are no batches.

    >>> import adjoint as ad
    >>> model = ad.optim.batch_statistics(ad.nn.BatchNorm(1), [ad.tensor([[1.0], [3.0]]), ad.tensor([[5.0], [7.0]])])
    >>> model.running_mean.tolist(), model.running_var.tolist()
    ([4.0], [2.0])
    """

    if not isinstance(model, Module):
        raise errors.ArgumentTypeError(
            f"batch_statistics: the model is an ad.nn.Module, received {errors.shown(model)}"
        )
    if not hasattr(batches, "__iter__"):
        raise errors.ArgumentTypeError(
            f"batch_statistics: batches are an iterable of inputs, received {errors.shown(batches)}"
        )
    state, count = model.state(), 0
    for batch in batches:
        count += 1
        _, state = _with_momentum(model, 1 / count).apply(batch, state)
    if not count:
        raise errors.ArgumentError(
            "batch_statistics: there are no batches; a generator gives its batches once, a list again"
        )
    return model.with_state(state)


def _with_momentum(model: M, momentum: float) -> M:
    """The model in training, with this weight of a batch in all its batch normalisations."""

    def changed(part: Any, children: list[Any], _: str) -> Any:
        if {"running_mean", "momentum"} <= set(part._fields):
            children = [momentum if n == "momentum" else x for n, x in zip(part._fields, children, strict=True)]
        return rebuilt(type(part), children, part._frozen, True)

    return each_module(model, changed)  # type: ignore[no-any-return]


def _known(state: AverageState, now: dict[str, Tensor[Any]]) -> list[Tensor[Any]]:
    """The averages of these parameters. Raises ArgumentError where there is none, ShapeError for other shapes."""
    if not isinstance(state, AverageState):
        raise errors.ArgumentTypeError(
            f"the state of an average is what init(model) or the last update gave, received {errors.shown(state)}"
        )
    for path, x in now.items():
        if path not in state.values:
            raise errors.ArgumentError(f"the state of an average knows nothing of {path}; init(model) makes a new one")
        if state.values[path].shape != x.shape:
            raise errors.ShapeError(
                f"the state of an average has shape {state.values[path].shape} at {path}, and the model {x.shape}; "
                "init(model) makes a new one"
            )
    return [state.values[path] for path in now]
