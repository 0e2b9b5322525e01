"""`torch.optim.lr_scheduler`: rates of the groups of an optimizer, which follow from each other and can be chained."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections import Counter
from typing import Any

from adjoint.torch.optim.lr_scheduler_base import EPOCH_DEPRECATION_WARNING as EPOCH_DEPRECATION_WARNING
from adjoint.torch.optim.lr_scheduler_base import LRScheduler as LRScheduler
from adjoint.torch.optim.lr_scheduler_base import give as _give
from adjoint.torch.optim.lr_scheduler_base import is_optimizer as _is_optimizer
from adjoint.torch.optim.lr_scheduler_base import per_group as _per_group
from adjoint.torch.refusals import WrongKindError as _WrongKindError


class _LRScheduler(LRScheduler):
    """The name that the base had."""


def _check_schedulers(name: str, schedulers: Any, optimizer: Any) -> None:
    """The errors for schedulers that cannot be put together."""
    for i, scheduler in enumerate(schedulers):
        kind = type(scheduler).__name__
        if not hasattr(scheduler, "optimizer"):
            raise TypeError(f"{name} at index {i} should have `optimizer` as its attribute.")
        if isinstance(scheduler, ReduceLROnPlateau):
            raise ValueError(
                f"{name} does not support `ReduceLROnPlateau` scheduler as it requires additional kwargs to be "
                f"specified when calling `step`, but got one at index {i} in the given schedulers sequence."
            )
        if scheduler.optimizer is not optimizer:
            raise ValueError(
                f"{name} expects all schedulers to belong to the same optimizer, but got scheduler {kind} at index {i} "
                f"has {scheduler.optimizer}, which is different from {optimizer}."
            )


def _functions(lr_lambda: Any, optimizer: Any) -> list[Any]:
    count = len(optimizer.param_groups)
    if not isinstance(lr_lambda, (list, tuple)):
        return [lr_lambda] * count
    if len(lr_lambda) != count:
        raise ValueError(f"Expected {count} lr_lambdas, but got {len(lr_lambda)}")
    return list(lr_lambda)


def _state_of(function: Any) -> Any:
    """What a function has to be saved: only objects that can be called have something."""
    return None if function is None or hasattr(function, "__code__") else function.__dict__.copy()


class LambdaLR(LRScheduler):
    """The first rates times a function of the epoch."""

    _left_out = ("lr_lambdas",)

    def __init__(self, optimizer: Any, lr_lambda: Any, last_epoch: int = -1) -> None:
        _is_optimizer(optimizer, _WrongKindError)
        self.lr_lambdas: list[Any] = _functions(lr_lambda, optimizer)
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[Any]:
        self._warn_outside_of_step()
        return [rate * f(self.last_epoch) for f, rate in zip(self.lr_lambdas, self.base_lrs, strict=True)]

    def state_dict(self) -> dict[str, Any]:
        """All but the optimizer, and functions: only objects that can be called have a state."""
        kept = [_state_of(f) for f in self.lr_lambdas]
        return {**super().state_dict(), "lr_lambdas": kept}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take what `state_dict` gave."""
        given = dict(state_dict)
        for f, kept in zip(self.lr_lambdas, given.pop("lr_lambdas"), strict=True):
            if kept is not None:
                f.__dict__.update(kept)
        super().load_state_dict(given)


class MultiplicativeLR(LambdaLR):
    """The last rates times a function of the epoch."""

    def get_lr(self) -> list[Any]:
        self._warn_outside_of_step()
        if self._is_initial:
            return self._rates()
        return [rate * f(self.last_epoch) for f, rate in zip(self.lr_lambdas, self._rates(), strict=True)]


class StepLR(LRScheduler):
    """A factor every so many epochs."""

    gamma: float
    step_size: int

    def __init__(self, optimizer: Any, step_size: int, gamma: float = 0.1, last_epoch: int = -1) -> None:
        self.step_size, self.gamma = step_size, gamma
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[Any]:
        self._warn_outside_of_step()
        if self.last_epoch == 0 or self.last_epoch % self.step_size:
            return self._rates()
        return [rate * self.gamma for rate in self._rates()]

    def _get_closed_form_lr(self) -> list[Any]:
        return [rate * self.gamma ** (self.last_epoch // self.step_size) for rate in self.base_lrs]


class MultiStepLR(LRScheduler):
    """A factor at each milestone."""

    gamma: float

    def __init__(self, optimizer: Any, milestones: Any, gamma: float = 0.1, last_epoch: int = -1) -> None:
        self.milestones: Counter[Any] = Counter(milestones)
        self.gamma = gamma
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[Any]:
        self._warn_outside_of_step()
        if self.last_epoch not in self.milestones:
            return self._rates()
        return [rate * self.gamma ** self.milestones[self.last_epoch] for rate in self._rates()]

    def _get_closed_form_lr(self) -> list[Any]:
        passed = bisect_right(sorted(self.milestones.elements()), self.last_epoch)
        return [rate * self.gamma**passed for rate in self.base_lrs]


class ConstantLR(LRScheduler):
    """A factor up to an epoch, and none from then on."""

    factor: float
    total_iters: int

    def __init__(self, optimizer: Any, factor: float = 1.0 / 3, total_iters: int = 5, last_epoch: int = -1) -> None:
        if not 0 <= factor <= 1.0:
            raise ValueError("Constant multiplicative factor expected to be between 0 and 1.")
        self.factor, self.total_iters = factor, total_iters
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[Any]:
        self._warn_outside_of_step()
        if self.last_epoch == 0:
            return [rate * self.factor for rate in self._rates()]
        if self.last_epoch != self.total_iters:
            return self._rates()
        return [rate * (1.0 / self.factor) for rate in self._rates()]

    def _get_closed_form_lr(self) -> list[Any]:
        late = self.last_epoch >= self.total_iters
        return [rate * (late + (not late) * self.factor) for rate in self.base_lrs]


class LinearLR(LRScheduler):
    """A factor that grows in equal parts from one to another."""

    end_factor: float
    start_factor: float
    total_iters: int

    def __init__(
        self, optimizer: Any, start_factor: float = 1.0 / 3, end_factor: float = 1.0, total_iters: int = 5,
        last_epoch: int = -1,
    ) -> None:  # fmt: skip
        if start_factor > 1.0 or start_factor <= 0:
            raise ValueError("Starting multiplicative factor expected to be greater than 0 and less or equal to 1.")
        if not 0 <= end_factor <= 1.0:
            raise ValueError("Ending multiplicative factor expected to be between 0 and 1.")
        self.start_factor, self.end_factor, self.total_iters = start_factor, end_factor, total_iters
        super().__init__(optimizer, last_epoch)

    def _factor(self, epoch: int) -> float:
        part = (self.end_factor - self.start_factor) * min(self.total_iters, epoch) / self.total_iters
        return self.start_factor + part

    def get_lr(self) -> list[Any]:
        self._warn_outside_of_step()
        if self.last_epoch == 0:
            return [rate * self.start_factor for rate in self._rates()]
        if self._is_initial or self.last_epoch > self.total_iters:
            return self._rates()
        rise = self.end_factor - self.start_factor
        change = 1.0 + rise / (self.total_iters * self.start_factor + (self.last_epoch - 1) * rise)
        return [rate * change for rate in self._rates()]

    def _get_closed_form_lr(self) -> list[Any]:
        return [rate * self._factor(self.last_epoch) for rate in self.base_lrs]


class ExponentialLR(LRScheduler):
    """A factor every epoch."""

    def __init__(self, optimizer: Any, gamma: float, last_epoch: int = -1) -> None:
        self.gamma = gamma
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[Any]:
        self._warn_outside_of_step()
        if self._is_initial:
            return self._rates()
        return [rate * self.gamma for rate in self._rates()]

    def _get_closed_form_lr(self) -> list[Any]:
        return [rate * self.gamma**self.last_epoch for rate in self.base_lrs]


class PolynomialLR(LRScheduler):
    """Down to zero along a power of what is left of the epochs."""

    power: float
    total_iters: int

    def __init__(self, optimizer: Any, total_iters: int = 5, power: float = 1.0, last_epoch: int = -1) -> None:
        self.total_iters, self.power = total_iters, power
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[Any]:
        self._warn_outside_of_step()
        if self._is_initial or self.last_epoch > self.total_iters:
            return self._rates()
        left = 1.0 - self.last_epoch / self.total_iters
        factor = (left / (1.0 - (self.last_epoch - 1) / self.total_iters)) ** self.power
        return [rate * factor for rate in self._rates()]

    def _get_closed_form_lr(self) -> list[Any]:
        left = 1.0 - min(self.total_iters, self.last_epoch) / self.total_iters
        return [rate * left**self.power for rate in self.base_lrs]


class CosineAnnealingLR(LRScheduler):
    """Along a cosine. I. Loshchilov, F. Hutter (2017), without restarts."""

    T_max: int
    eta_min: float

    def __init__(self, optimizer: Any, T_max: int, eta_min: float = 0.0, last_epoch: int = -1) -> None:
        self.T_max, self.eta_min = T_max, eta_min
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[Any]:
        self._warn_outside_of_step()
        t, rates = self.last_epoch, self._rates()
        if self._is_initial:
            return rates
        if (t - 1 - self.T_max) % (2 * self.T_max) == 0:  # where the last rate was the least one
            up = (1 - math.cos(math.pi / self.T_max)) / 2
            return [rate + (base - self.eta_min) * up for base, rate in zip(self.base_lrs, rates, strict=True)]
        change = (1 + math.cos(math.pi * t / self.T_max)) / (1 + math.cos(math.pi * (t - 1) / self.T_max))
        return [change * (rate - self.eta_min) + self.eta_min for rate in rates]

    def _get_closed_form_lr(self) -> list[Any]:
        part = (1 + math.cos(math.pi * self.last_epoch / self.T_max)) / 2
        return [self.eta_min + (rate - self.eta_min) * part for rate in self.base_lrs]


class CosineAnnealingWarmRestarts(LRScheduler):
    """Along cosines, each of them longer by a factor. I. Loshchilov, F. Hutter (2017)."""

    T_mult: int
    eta_min: float

    def __init__(self, optimizer: Any, T_0: int, T_mult: int = 1, eta_min: float = 0.0, last_epoch: int = -1) -> None:
        if T_0 <= 0 or not isinstance(T_0, int):
            raise ValueError(f"Expected positive integer T_0, but got {T_0}")
        if T_mult < 1 or not isinstance(T_mult, int):
            raise ValueError(f"Expected integer T_mult >= 1, but got {T_mult}")
        if not isinstance(eta_min, (float, int)):
            raise ValueError(f"Expected float or int eta_min, but got {eta_min} of type {type(eta_min)}")
        self.T_0, self.T_i, self.T_mult, self.eta_min, self.T_cur = T_0, T_0, T_mult, eta_min, last_epoch
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[Any]:
        self._warn_outside_of_step()
        part = (1 + math.cos(math.pi * self.T_cur / self.T_i)) / 2
        return [self.eta_min + (rate - self.eta_min) * part for rate in self.base_lrs]

    def step(self, epoch: Any = None) -> None:
        """Set the next rates, or those of an epoch, which may be a part of one."""
        if epoch is None and self.last_epoch < 0:
            epoch = 0
        if epoch is None:
            epoch = self.last_epoch + 1
            self.T_cur += 1
            if self.T_cur >= self.T_i:
                self.T_cur -= self.T_i
                self.T_i *= self.T_mult
        else:
            if epoch < 0:
                raise ValueError(f"Expected non-negative epoch, but got {epoch}")
            start, length = 0, self.T_0
            while epoch >= start + length and self.T_mult > 1:
                start, length = start + length, length * self.T_mult
            self.T_cur = epoch % self.T_0 if self.T_mult == 1 else epoch - start
            self.T_i = length
        self.last_epoch: Any = math.floor(epoch)
        self._set(self._within(self.get_lr))


class _WithMomentum(LRScheduler):
    """Schedulers that move the momentum against the rate."""

    use_beta1: bool

    def _check_momentum(self, optimizer: Any) -> None:
        if "momentum" not in optimizer.defaults and "betas" not in optimizer.defaults:
            raise ValueError("optimizer must support momentum or beta1 with `cycle_momentum` option enabled")
        self.use_beta1 = "betas" in optimizer.defaults

    def _set_momentum(self, group: dict[str, Any], value: float) -> None:
        if self.use_beta1:
            group["betas"] = (value, *group["betas"][1:])
        else:
            group["momentum"] = value


class OneCycleLR(_WithMomentum):
    """Up to a rate and down again, the momentum the other way. L. Smith, N. Topin (2018)."""

    def __init__(
        self, optimizer: Any, max_lr: Any, total_steps: Any = None, epochs: Any = None, steps_per_epoch: Any = None,
        pct_start: float = 0.3, anneal_strategy: str = "cos", cycle_momentum: bool = True, base_momentum: Any = 0.85,
        max_momentum: Any = 0.95, div_factor: float = 25.0, final_div_factor: float = 1e4, three_phase: bool = False,
        last_epoch: int = -1,
    ) -> None:  # fmt: skip
        _is_optimizer(optimizer)
        if total_steps is None and (epochs is None or steps_per_epoch is None):
            raise ValueError("You must define either total_steps OR (epochs AND steps_per_epoch)")
        for name, count in (("total_steps", total_steps), ("epochs", epochs), ("steps_per_epoch", steps_per_epoch)):
            if count is not None and (not isinstance(count, int) or count <= 0):
                raise ValueError(f"Expected positive integer {name}, but got {count}")
        if not isinstance(pct_start, float) or not 0 <= pct_start <= 1:
            raise ValueError(f"Expected float between 0 and 1 pct_start, but got {pct_start}")
        if anneal_strategy not in ("cos", "linear"):
            raise ValueError(f"anneal_strategy must be one of 'cos' or 'linear', instead got {anneal_strategy}")
        self.total_steps: Any = epochs * steps_per_epoch if total_steps is None else total_steps
        rise = float(pct_start * self.total_steps) - 1
        phases: list[tuple[float, str, str, str, str]] = [
            (rise, "initial_lr", "max_lr", "max_momentum", "base_momentum")
        ]
        if three_phase:
            phases.append((2 * rise, "max_lr", "initial_lr", "base_momentum", "max_momentum"))
            phases.append((self.total_steps - 1, "initial_lr", "min_lr", "max_momentum", "max_momentum"))
        else:
            phases.append((self.total_steps - 1, "max_lr", "min_lr", "base_momentum", "max_momentum"))
        keys = ("end_step", "start_lr", "end_lr", "start_momentum", "end_momentum")
        self._schedule_phases = [dict(zip(keys, phase, strict=True)) for phase in phases]
        self._anneal_func_type = anneal_strategy
        self.cycle_momentum = cycle_momentum
        if last_epoch == -1:
            for group, peak in zip(optimizer.param_groups, _per_group(max_lr, optimizer, "max_lr"), strict=True):
                group["initial_lr"] = peak / div_factor
                group["max_lr"] = peak
                group["min_lr"] = group["initial_lr"] / final_div_factor
        if cycle_momentum:
            self._check_momentum(optimizer)
            if last_epoch == -1:
                lows = _per_group(base_momentum, optimizer, "base_momentum")
                highs = _per_group(max_momentum, optimizer, "max_momentum")
                for group, low, high in zip(optimizer.param_groups, lows, highs, strict=True):
                    self._set_momentum(group, high)
                    group["max_momentum"], group["base_momentum"] = high, low
        super().__init__(optimizer, last_epoch)

    def _between(self, start: float, end: float, part: float) -> float:
        if self._anneal_func_type == "linear":
            return (end - start) * part + start
        return end + (start - end) / 2.0 * (math.cos(math.pi * part) + 1)

    def get_lr(self) -> list[Any]:
        self._warn_outside_of_step()
        t = self.last_epoch
        if t > self.total_steps:
            raise ValueError(f"Tried to step {t} times. The specified number of total steps is {self.total_steps}")
        found = []
        for group in self.optimizer.param_groups:
            start = 0.0
            for i, phase in enumerate(self._schedule_phases):
                end: Any = phase["end_step"]
                if t <= end or i == len(self._schedule_phases) - 1:
                    part = (t - start) / (end - start)
                    found.append(self._between(group[phase["start_lr"]], group[phase["end_lr"]], part))
                    if self.cycle_momentum:
                        low, high = group[phase["start_momentum"]], group[phase["end_momentum"]]
                        self._set_momentum(group, self._between(low, high, part))
                    break
                start = end
        return found


class CyclicLR(_WithMomentum):
    """Between two rates to and fro. L. Smith (2017)."""

    gamma: float
    mode: str

    def __init__(
        self, optimizer: Any, base_lr: Any, max_lr: Any, step_size_up: int = 2000, step_size_down: Any = None,
        mode: str = "triangular", gamma: float = 1.0, scale_fn: Any = None, scale_mode: str = "cycle",
        cycle_momentum: bool = True, base_momentum: Any = 0.8, max_momentum: Any = 0.9, last_epoch: int = -1,
    ) -> None:  # fmt: skip
        _is_optimizer(optimizer)
        for group, rate in zip(optimizer.param_groups, _per_group(base_lr, optimizer, "base_lr"), strict=True):
            if last_epoch == -1:
                _give(group, rate)
        self.max_lrs: list[Any] = _per_group(max_lr, optimizer, "max_lr")
        down = float(step_size_up if step_size_down is None else step_size_down)
        self.total_size: float = float(step_size_up) + down
        self.step_ratio: float = float(step_size_up) / self.total_size
        if mode not in ("triangular", "triangular2", "exp_range") and scale_fn is None:
            raise ValueError("mode is invalid and scale_fn is None")
        self.mode, self.gamma = mode, gamma
        self._scale_fn_custom = scale_fn
        self.scale_mode: str = scale_mode if scale_fn is not None else "iterations" if mode == "exp_range" else "cycle"
        self.cycle_momentum = cycle_momentum
        if cycle_momentum:
            self._check_momentum(optimizer)
            self.base_momentums: list[Any] = _per_group(base_momentum, optimizer, "base_momentum")
            self.max_momentums: list[Any] = _per_group(max_momentum, optimizer, "max_momentum")
            if last_epoch == -1:
                for group, low, high in zip(
                    optimizer.param_groups, self.base_momentums, self.max_momentums, strict=True
                ):
                    self._set_momentum(group, high)
                    group["max_momentum"], group["base_momentum"] = high, low
        super().__init__(optimizer, last_epoch)
        self.base_lrs: list[Any] = _per_group(base_lr, optimizer, "base_lr")

    def state_dict(self) -> dict[str, Any]:
        """All but the optimizer, and a function of the scale: only an object that can be called has a state."""
        return {**super().state_dict(), "_scale_fn_custom": _state_of(self._scale_fn_custom)}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take what `state_dict` gave."""
        given = dict(state_dict)
        kept = given.pop("_scale_fn_custom", None)
        if kept is not None:
            self._scale_fn_custom.__dict__.update(kept)
        super().load_state_dict(given)

    def scale_fn(self, x: float) -> float:
        """The height of a cycle, or of an iteration."""
        if self._scale_fn_custom is not None:
            return self._scale_fn_custom(x)  # type: ignore[no-any-return]
        heights: dict[str, float] = {"triangular": 1.0, "triangular2": 1 / 2.0 ** (x - 1), "exp_range": self.gamma**x}
        return heights[self.mode]

    def get_lr(self) -> list[Any]:
        self._warn_outside_of_step()
        cycle = math.floor(1 + self.last_epoch / self.total_size)
        x = 1.0 + self.last_epoch / self.total_size - cycle
        part = x / self.step_ratio if x <= self.step_ratio else (x - 1) / (self.step_ratio - 1)
        height = part * self.scale_fn(cycle if self.scale_mode == "cycle" else self.last_epoch)
        if self.cycle_momentum:
            for group, low, high in zip(
                self.optimizer.param_groups, self.base_momentums, self.max_momentums, strict=True
            ):
                self._set_momentum(group, high - (high - low) * height)
        return [low + (high - low) * height for low, high in zip(self.base_lrs, self.max_lrs, strict=True)]


def _undo(scheduler: Any) -> None:
    """Take back the first step of a scheduler, or of those that it is made of."""
    for part in getattr(scheduler, "_schedulers", ()):
        _undo(part)
    if not hasattr(scheduler, "_schedulers"):
        scheduler.last_epoch -= 1


class SequentialLR(LRScheduler):
    """One scheduler after the other, from milestones on."""

    def __init__(self, optimizer: Any, schedulers: Any, milestones: Any, last_epoch: int = -1) -> None:
        if not schedulers:
            raise ValueError("SequentialLR expects at least one scheduler, but got no scheduler.")
        _is_optimizer(optimizer)
        _check_schedulers("SequentialLR", schedulers, optimizer)
        if len(milestones) != len(schedulers) - 1:
            raise ValueError(
                "Sequential Schedulers expects number of schedulers provided to be one more than the number of "
                f"milestone points, but got number of schedulers {len(schedulers)} and the number of milestones to be "
                f"equal to {len(milestones)}"
            )
        self._schedulers, self._milestones = list(schedulers), list(milestones)
        self.last_epoch = last_epoch + 1
        self.optimizer = optimizer
        for group in optimizer.param_groups:  # as if none of the schedulers had been made yet
            group["lr"] = group["initial_lr"]
        for scheduler in self._schedulers:
            _undo(scheduler)
        self._schedulers[0]._initial_step()
        self._last_lr = self._schedulers[0].get_last_lr()

    def step(self) -> None:  # type: ignore[override]
        """Set the next rates."""
        self.last_epoch += 1
        place = bisect_right(self._milestones, self.last_epoch)
        scheduler = self._schedulers[place]
        if place > 0 and self._milestones[place - 1] == self.last_epoch:
            scheduler._update_lr(0)
        else:
            scheduler.step()
        self._last_lr = scheduler.get_last_lr()

    def state_dict(self) -> dict[str, Any]:
        """All but the optimizer, with the states of the schedulers."""
        found = {k: v for k, v in self.__dict__.items() if k not in ("optimizer", "_schedulers")}
        return {**found, "_schedulers": [scheduler.state_dict() for scheduler in self._schedulers]}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take what `state_dict` gave."""
        given = dict(state_dict)
        for scheduler, state in zip(self._schedulers, given.pop("_schedulers"), strict=True):
            scheduler.load_state_dict(state)
        self.__dict__.update(given)


class ChainedScheduler(LRScheduler):
    """Several schedulers at every step, one on the rates of the other."""

    def __init__(self, schedulers: Any, optimizer: Any = None) -> None:
        if not schedulers:
            raise ValueError("ChainedScheduler expects at least one scheduler to be chained, but got no scheduler.")
        self._schedulers = list(schedulers)
        for scheduler in self._schedulers:
            if not isinstance(scheduler, (LRScheduler, ReduceLROnPlateau)):
                raise _WrongKindError(f"ChainedScheduler takes schedulers, not {type(scheduler).__name__}")
        self.optimizer: Any = self._schedulers[0].optimizer if optimizer is None else optimizer
        _check_schedulers("ChainedScheduler", self._schedulers, self.optimizer)
        self._last_lr = self._rates()

    def step(self, epoch: Any = None) -> None:
        """Set the next rates."""
        for scheduler in self._schedulers:
            scheduler.step()
        self._last_lr = self._rates()

    state_dict = SequentialLR.state_dict
    load_state_dict = SequentialLR.load_state_dict


class ReduceLROnPlateau(LRScheduler):
    """A factor when a value, such as the loss on other data, stops to become better."""

    cooldown: int
    cooldown_counter: int
    eps: float
    factor: float
    num_bad_epochs: int
    optimizer: Any
    patience: int
    threshold: float

    def __init__(
        self, optimizer: Any, mode: str = "min", factor: float = 0.1, patience: int = 10, threshold: float = 1e-4,
        threshold_mode: str = "rel", cooldown: int = 0, min_lr: Any = 0, eps: float = 1e-8,
    ) -> None:  # fmt: skip
        if factor >= 1.0:
            raise ValueError("Factor should be < 1.0.")
        _is_optimizer(optimizer)
        if mode not in ("min", "max"):
            raise ValueError(f"mode {mode} is unknown!")
        if threshold_mode not in ("rel", "abs"):
            raise ValueError(f"threshold mode {threshold_mode} is unknown!")
        self.factor, self.optimizer = factor, optimizer
        self.default_min_lr = None if isinstance(min_lr, (list, tuple)) else min_lr
        self.min_lrs: list[Any] = _per_group(min_lr, optimizer, "min_lrs")
        self.patience, self.cooldown, self.eps = patience, cooldown, eps
        self.last_epoch = 0
        self._last_lr = self._rates()
        self.mode_worse: float = math.inf if mode == "min" else -math.inf
        self.mode, self.threshold, self.threshold_mode = mode, threshold, threshold_mode
        self._reset()

    def _reset(self) -> None:
        self.best: Any = self.mode_worse
        self.cooldown_counter = self.num_bad_epochs = 0

    @property
    def in_cooldown(self) -> bool:
        return self.cooldown_counter > 0

    def is_better(self, a: float, best: float) -> bool:
        """Whether a value is better than the best by the threshold."""
        sign = 1 if self.mode == "min" else -1
        if self.threshold_mode == "rel":
            return sign * a < sign * best * (1.0 - sign * self.threshold)
        return sign * a < sign * best - self.threshold

    def step(self, metrics: Any, epoch: Any = None) -> None:  # type: ignore[override]
        """Take one more value, and lower the rates where it is time to."""
        current = float(metrics)
        self.last_epoch: int = self.last_epoch + 1 if epoch is None else epoch
        better = self.is_better(current, self.best)
        self.best = current if better else self.best
        self.num_bad_epochs = 0 if better else self.num_bad_epochs + 1
        if self.in_cooldown:
            self.cooldown_counter -= 1
            self.num_bad_epochs = 0
        if self.num_bad_epochs > self.patience:
            self._reduce()
            self.cooldown_counter, self.num_bad_epochs = self.cooldown, 0
        self._last_lr = self._rates()

    def _reduce(self) -> None:
        rates = [float(rate) for rate in self._rates()]
        if len(self.min_lrs) != len(rates):
            if self.default_min_lr is None:
                raise RuntimeError(
                    f"The number of param groups in the `optimizer` ({len(rates)}) differs from when "
                    f"`ReduceLROnPlateau` was initialized ({len(self.min_lrs)}), and `min_lr` is a list; make the "
                    "scheduler again, with a rate for each group."
                )
            self.min_lrs = [self.default_min_lr] * len(rates)
        lower = [max(rate * self.factor, least) for rate, least in zip(rates, self.min_lrs, strict=True)]
        self._set([new if rate - new > self.eps else rate for rate, new in zip(rates, lower, strict=True)])
