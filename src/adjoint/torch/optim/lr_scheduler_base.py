"""What all schedulers of rates have: they count steps, and give the groups of an optimizer their rates."""

from __future__ import annotations

import warnings
from typing import Any

from adjoint.torch.optim.optimizer import Optimizer
from adjoint.torch.tensor import Tensor

EPOCH_DEPRECATION_WARNING = (
    "The epoch parameter in `scheduler.step()` is deprecated; write `scheduler.step()`. With an epoch the rates are "
    "those of the schedule's formula, where it has one, and do not follow from the last ones."
)


def is_optimizer(optimizer: Any, kind: type[Exception] = TypeError) -> None:
    if not isinstance(optimizer, Optimizer):
        raise kind(f"{type(optimizer).__name__} is not an Optimizer")


class LRScheduler:
    """The base of schedulers: `get_lr` says the next rates, `step` sets them.

    >>> import adjoint.torch as torch
    >>> optimizer = torch.optim.SGD([torch.ones(1, requires_grad=True)], lr=1.0)
    >>> scheduler = torch.optim.lr_scheduler.StepLR(optimizer, step_size=2)
    >>> for _ in range(2):
    ...     optimizer.step()
    ...     scheduler.step()
    >>> scheduler.get_last_lr()
    [0.1]
    """

    def __init__(self, optimizer: Any, last_epoch: int = -1) -> None:
        is_optimizer(optimizer)
        self.optimizer = optimizer
        for i, group in enumerate(optimizer.param_groups):
            if last_epoch == -1:
                group.setdefault("initial_lr", copied(group["lr"]))
            elif "initial_lr" not in group:
                raise KeyError(
                    f"param 'initial_lr' is not specified in param_groups[{i}] when resuming scheduler with "
                    "last_epoch >= 0"
                )
        self.base_lrs: list[Any] = [copied(group["initial_lr"]) for group in optimizer.param_groups]
        self.last_epoch: int = last_epoch
        self._is_initial = False
        self._get_lr_called_within_step = False
        self._last_lr = self._rates()
        optimizer._watch_steps()
        self._initial_step()

    def _initial_step(self) -> None:
        self._is_initial, self._step_count = True, 0
        try:
            self.step()
        finally:
            self._is_initial = False

    def get_lr(self) -> list[Any]:
        """The next rates, from those that are set: subclasses say them."""
        raise NotImplementedError

    def get_last_lr(self) -> list[Any]:
        """The rates that were set last."""
        return self._last_lr

    def step(self, epoch: Any = None) -> None:
        """Set the next rates."""
        if self._step_count == 1:
            self._check_order()
        self._step_count += 1
        if epoch is not None:
            warnings.warn(EPOCH_DEPRECATION_WARNING, UserWarning, stacklevel=2)
        self._update_lr(epoch)

    def _update_lr(self, epoch: Any = None) -> None:
        """Set the rates of the next epoch, or of this one, without counting a step."""
        self.last_epoch = self.last_epoch + 1 if epoch is None else epoch
        closed: Any = None if epoch is None else getattr(self, "_get_closed_form_lr", None)
        self._set(self._within(closed or self.get_lr))

    def _check_order(self) -> None:
        """A warning where the first rate would never be used."""
        optimizer, wrong = self.optimizer, ""
        if vars(optimizer).get("step") is not getattr(optimizer, "_step_known", None):
            wrong = (
                "Seems like `optimizer.step()` has been overridden after learning rate scheduler initialization: make "
                "the scheduler after that, or it cannot see whether the optimizer steps first."
            )
        elif not getattr(optimizer, "_opt_called", True):
            wrong = (
                "Detected call of `lr_scheduler.step()` before `optimizer.step()`. In PyTorch's order the optimizer "
                "steps first; else the first rate of the schedule is never used."
            )
        if wrong:
            warnings.warn(wrong, UserWarning, stacklevel=3)

    def _warn_outside_of_step(self) -> None:
        if not self._get_lr_called_within_step:
            warnings.warn(
                "To get the last learning rate computed by the scheduler, please use `get_last_lr()`.",
                UserWarning,
                stacklevel=3,
            )

    def _within(self, formula: Any) -> Any:
        self._get_lr_called_within_step = True
        try:
            return formula()
        finally:
            self._get_lr_called_within_step = False

    def _set(self, rates: Any) -> None:
        for group, rate in zip(self.optimizer.param_groups, rates, strict=True):
            give(group, rate)
        self._last_lr = self._rates()

    def _rates(self) -> list[Any]:
        return [copied(group["lr"]) for group in self.optimizer.param_groups]

    def state_dict(self) -> dict[str, Any]:
        """All but the optimizer."""
        return {name: value for name, value in self.__dict__.items() if name not in ("optimizer", *self._left_out)}

    _left_out: tuple[str, ...] = ()

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take what `state_dict` gave."""
        self.__dict__.update(state_dict)


def give(group: dict[str, Any], rate: Any) -> None:
    """Another rate for a group; a tensor that is its rate stays the same object."""
    if isinstance(group["lr"], Tensor):
        group["lr"].fill_(float(rate))
    else:
        group["lr"] = rate


def copied(rate: Any) -> Any:
    return rate.detach().clone() if isinstance(rate, Tensor) else rate


def per_group(value: Any, optimizer: Any, name: str) -> list[Any]:
    count = len(optimizer.param_groups)
    if not isinstance(value, (list, tuple)):
        return [value] * count
    if len(value) != count:
        if name == "min_lrs":
            raise ValueError(f"expected {count} min_lrs, got {len(value)}")
        raise ValueError(f"{name} must have the same length as optimizer.param_groups. {name} has {len(value)} values, "
                         f"param_groups has {count}.")  # fmt: skip
    return list(value)
