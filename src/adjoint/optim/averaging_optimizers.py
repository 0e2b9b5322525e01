"""Optimizers that evaluate at an average of the points they pass: `averaged` gives the model there."""

from __future__ import annotations

import dataclasses
from typing import Any, ClassVar, TypeVar

from adjoint import errors
from adjoint.dtypes import float32
from adjoint.functions.arguments import is_integer, is_number
from adjoint.functions.creation import zeros_like
from adjoint.functions.elementwise import maximum, sqrt, where
from adjoint.module.fields import leaves_of
from adjoint.optim.averaging import EMA, Average, AverageState
from adjoint.optim.base import Optimizer, State, check_state, parameters, with_parameters
from adjoint.optim.closures import ClosureOptimizer
from adjoint.optim.fused import Slots
from adjoint.optim.settings import fraction, in_use, integer, not_negative, rate, setting
from adjoint.tensor import Tensor

M = TypeVar("M")
Stepped = tuple[Tensor[Any], Slots]
_AVERAGE = "averaged_weight"  # beside the slots of another optimizer


@dataclasses.dataclass(frozen=True, kw_only=True)
class AveragingOptimizer(Optimizer):
    """An optimizer with a model to evaluate and keep, `averaged`, beside the one that it trains.

    A subclass says what the average of a parameter is (`average`). Parameters of a group with another optimizer that
    has no average are as they are.
    """

    def average(self, x: Tensor[Any], slots: Slots) -> Tensor[Any]:
        """The average of a parameter, from its value and its slots."""
        raise NotImplementedError

    def averaged(self, model: M, state: State) -> M:
        """The model to evaluate: the one trained, with averages in the place of its parameters.

        Parameters
        ----------
        model, state
            What the last `step` gave. Training goes on from these, not from what this gives.

        Raises
        ------
        ArgumentError
            The state is not of this model.
        """
        check_state(state, "averaged")
        leaves, found = {leaf.path: leaf for leaf in leaves_of(model)}, {}
        for path, x in parameters(model).items():
            if path not in state.slots:
                raise errors.ArgumentError(f"averaged: the state knows nothing of {path}; pass what step() gave")
            rule = self.rule_of(leaves[path])
            found[path] = rule.average(x, state.slots[path]) if isinstance(rule, AveragingOptimizer) else x
        return with_parameters(model, found)


def _as_average(value: Any, name: str, what: str) -> Average:
    if not isinstance(value, Average):
        raise errors.ArgumentTypeError(
            f"{name}: {what} is an average, such as ad.optim.EMA(decay=0.999), received {errors.shown(value)}"
        )
    return value


@dataclasses.dataclass(frozen=True, kw_only=True)
class Averaged(AveragingOptimizer):
    """Steps of another optimizer, with an average of the models in the state: `EMA` of all, or `SWA` of some.

    The model after step start + every comes in first, and then each after `every` more; before, the average is the
    model itself. Rate and parameter groups are those of `optimizer`. A `Learner` validates and gives the average, and
    checkpoints have it; a model with batch normalisation then needs `batch_statistics`. Raises ArgumentTypeError for an
    optimizer that takes no gradients (put `SAM` around this one), or for what is no average; ArgumentError for an
    optimizer that has an average itself, for `every` below 1 and `start` below 0.

    >>> import adjoint as ad
    >>> model = ad.nn.Linear(1, 1, bias=False).at("weight").set(ad.zeros((1, 1)))
    >>> optimizer = ad.optim.Averaged(optimizer=ad.optim.SGD(lr=1.0), by=ad.optim.SWA(), start=1)
    >>> state = optimizer.init(model)
    >>> for gradient in (5.0, -6.0, -2.0):
    ...     model, state = optimizer.step(model, {"weight": ad.full((1, 1), gradient)}, state)
    >>> model.weight.item(), optimizer.averaged(model, state).weight.item()  # of 1 and 3, without -5
    (3.0, 2.0)
    """

    lr: ClassVar[Any] = property(lambda self: self.optimizer.lr)  # type: ignore[misc]
    optimizer: Optimizer
    by: Average = setting(EMA(), _as_average)
    start: int = setting(0, integer(0))
    every: int = setting(1, integer(1))

    def __post_init__(self) -> None:
        if not isinstance(self.optimizer, Optimizer) or isinstance(self.optimizer, ClosureOptimizer):
            raise errors.ArgumentTypeError(
                f"Averaged: optimizer is one that takes gradients, such as ad.optim.SGD(), received "
                f"{errors.shown(self.optimizer)}; SAM goes around: SAM(optimizer=Averaged(...))"
            )
        if isinstance(self.optimizer, AveragingOptimizer):
            raise errors.ArgumentError(
                f"Averaged: {type(self.optimizer).__name__} has an average of its own; use it as it is"
            )
        super().__post_init__()

    def init(self, model: Any) -> State:
        """The state of `optimizer` before the first step, and the model as its average."""
        return self._with(self.optimizer.init(model), self.by.init(model).values)

    def step(self, model: M, grads: Any, state: State, *, lr: Any = None) -> tuple[M, State]:
        """The next model and the next state, with arguments and errors as those of every `Optimizer`."""
        check_state(state)
        old = {path: slots[_AVERAGE] for path, slots in state.slots.items() if _AVERAGE in slots}
        slots = {path: {k: x for k, x in of.items() if k != _AVERAGE} for path, of in state.slots.items()}
        model, made = self.optimizer.step(model, grads, State(state.step, slots), lr=lr)
        passed = made.step - self.start
        if is_integer(passed):
            if passed < self.every:
                return model, self._with(made, self.by.init(model).values)
            if passed % self.every:
                return model, self._with(made, old)
            return model, self._with(made, self._next(passed // self.every - 1, old, model))
        own, new = self.by.init(model).values, self._next(maximum(passed // self.every - 1, 0), old, model)
        for path, x in new.items():  # a step that is compiled, which cannot choose
            new[path] = where(passed < self.every, own[path], where(passed % self.every == 0, x, old[path]))
        return model, self._with(made, new)

    def _next(self, count: Any, old: dict[str, Tensor[Any]], model: Any) -> dict[str, Tensor[Any]]:
        return self.by.update(AverageState(count, old), model).values

    def _with(self, state: State, values: dict[str, Tensor[Any]]) -> State:
        return State(state.step, {path: {**slots, _AVERAGE: values[path]} for path, slots in state.slots.items()})

    def average(self, x: Tensor[Any], slots: Slots) -> Tensor[Any]:
        return slots[_AVERAGE]


@dataclasses.dataclass(frozen=True, kw_only=True)
class ASGD(AveragingOptimizer):
    """Gradient descent, whose averaged iterates converge faster. B. Polyak, A. Juditsky (1992).

    With rate e = lr / (1 + lambd lr (t - 1))^alpha: x = x (1 - lambd e) - e g;  the average is of all x after t0 steps,
    and the last x before. Settings and defaults are PyTorch's. Raises ArgumentError for settings out of range.

    >>> import adjoint as ad
    >>> model = ad.nn.Linear(1, 1, bias=False).at("weight").set(ad.zeros((1, 1)))
    >>> optimizer = ad.optim.ASGD(lr=1.0, lambd=0.0, t0=0)
    >>> state = optimizer.init(model)
    >>> for gradient in (-1.0, -2.0, 1.0):
    ...     model, state = optimizer.step(model, {"weight": ad.full((1, 1), gradient)}, state)
    >>> model.weight.item(), optimizer.averaged(model, state).weight.item()  # of 1, 3 and 2
    (2.0, 2.5)
    """

    lr: Any = setting(1e-2, rate)
    lambd: float = setting(1e-4, not_negative)
    alpha: float = setting(0.75, not_negative)
    t0: float = setting(1e6, not_negative)
    weight_decay: float = setting(0.0, not_negative)

    def begin(self, x: Tensor[Any]) -> Slots:
        return {"average": x}

    def update(self, x: Tensor[Any], g: Tensor[Any], slots: Slots, step: Any, lr: Any) -> Stepped:
        g = g + self.weight_decay * x if in_use(self.weight_decay) else g
        now = lr / (1 + self.lambd * lr * (step - 1)) ** self.alpha
        x = x * (1 - self.lambd * now) - now * g
        count = step - 1 - self.t0
        count = max(count, 1) if is_number(count) else maximum(count, 1)  # a tensor in a step that is compiled
        return x, {"average": slots["average"] + (x - slots["average"]) / count}

    def average(self, x: Tensor[Any], slots: Slots) -> Tensor[Any]:
        return slots["average"]


@dataclasses.dataclass(frozen=True, kw_only=True)
class ScheduleFreeSGD(AveragingOptimizer):
    """Gradient descent that needs no falling rate: it averages instead. A. Defazio et al. (2024).

    The model that is trained is at y, where gradients are taken; z = z - lr (g + weight_decay y);
    x = (1 - c) x + c z with c = w / (sum of all w), w = (the largest rate so far)^weight_lr_power;
    y = b1 x + (1 - b1) z. `averaged` gives the model at x, which is what to evaluate and to keep. x is not stored, but
    found from y and z, so memory is that of momentum. A rate that rises at first (`warmup(constant(lr), steps)`) is
    advised. Defaults are Optax's. Raises ArgumentError for settings out of range.

    >>> import adjoint as ad
    >>> model = ad.nn.Linear(1, 1, bias=False).at("weight").set(ad.ones((1, 1)))
    >>> optimizer = ad.optim.ScheduleFreeSGD(lr=0.5)
    >>> state = optimizer.init(model)
    >>> for _ in range(2):
    ...     model, state = optimizer.step(model, {"weight": ad.ones((1, 1))}, state)
    >>> round(model.weight.item(), 4), round(optimizer.averaged(model, state).weight.item(), 4)  # z is 0
    (0.225, 0.25)
    """

    lr: Any = setting(1.0, rate)
    b1: float = setting(0.9, fraction)
    weight_decay: float = setting(0.0, not_negative)
    weight_lr_power: float = setting(2.0, not_negative)

    def __post_init__(self) -> None:
        super().__post_init__()
        if not in_use(self.b1):
            raise errors.ArgumentError(f"{type(self).__name__}: b1 is more than 0, as x is found from y = b1 x + ...")

    def begin(self, x: Tensor[Any]) -> Slots:
        number = zeros_like(x.sum())
        number = (
            number.astype(float32) if number.dtype.itemsize < 4 else number
        )  # squares of rates are too small for less
        return {"z": x, "rate": number, "weights": number}

    def update(self, x: Tensor[Any], g: Tensor[Any], slots: Slots, step: Any, lr: Any) -> Stepped:
        change, new = self.scaled(g, slots, step)
        new["rate"] = largest = maximum(slots["rate"], lr)
        weight = largest**self.weight_lr_power
        new["weights"] = total = slots["weights"] + weight
        c = (weight / where(total == 0, 1.0, total)).astype(x.dtype)
        new["z"] = z = slots["z"] - lr * (change + self.weight_decay * x)
        average = (1 - c) * self.average(x, slots) + c * z
        return self.b1 * average + (1 - self.b1) * z, new

    def scaled(self, g: Tensor[Any], slots: Slots, step: Any) -> tuple[Tensor[Any], Slots]:
        """The direction of z, and the new slots it needs."""
        return g, {}

    def average(self, x: Tensor[Any], slots: Slots) -> Tensor[Any]:
        return (x - (1 - self.b1) * slots["z"]) / self.b1


@dataclasses.dataclass(frozen=True, kw_only=True)
class ScheduleFreeAdamW(ScheduleFreeSGD):
    """`ScheduleFreeSGD` whose gradients are divided as in `AdamW`, without its momentum. A. Defazio et al. (2024).

    v = b2 v + (1 - b2) g^2, and g / (sqrt(v / (1 - b2^t)) + eps) is in the place of g. Defaults are Optax's.

    >>> import adjoint as ad
    >>> model = ad.nn.Linear(1, 1, bias=False).at("weight").set(ad.ones((1, 1)))
    >>> optimizer = ad.optim.ScheduleFreeAdamW(lr=0.5)
    >>> state = optimizer.init(model)
    >>> for _ in range(2):
    ...     model, state = optimizer.step(model, {"weight": ad.full((1, 1), 9.0)}, state)
    >>> round(optimizer.averaged(model, state).weight.item(), 4)
    0.25
    """

    lr: Any = setting(2.5e-3, rate)
    b2: float = setting(0.999, fraction)
    eps: float = setting(1e-8, not_negative)

    def begin(self, x: Tensor[Any]) -> Slots:
        return {**super().begin(x), "square": zeros_like(x)}

    def scaled(self, g: Tensor[Any], slots: Slots, step: Any) -> tuple[Tensor[Any], Slots]:
        v = self.b2 * slots["square"] + (1 - self.b2) * g * g
        return g / (sqrt(v / (1 - self.b2**step)) + self.eps), {"square": v}
