"""`torch.optim.swa_utils`: averages of the weights of a model. P. Izmailov et al. (2018)."""

from __future__ import annotations

import copy
import math
from typing import Any

from adjoint.torch import creation
from adjoint.torch.nn import LAYERS
from adjoint.torch.nn.module import Module
from adjoint.torch.optim.lr_scheduler import LRScheduler
from adjoint.torch.state import no_grad


def _decay(decay: float) -> float:
    if not 0.0 <= decay <= 1.0:
        raise ValueError(f"Invalid decay value {decay} provided. Please provide a value in [0,1] range.")
    return decay


def get_swa_avg_fn() -> Any:
    """The mean of all models, as `avg_fn(average, current, count)`."""

    @no_grad()
    def averaged(average: Any, current: Any, count: Any) -> Any:
        return average + (current - average) / (count + 1)

    return averaged


def get_ema_avg_fn(decay: float = 0.999) -> Any:
    """The exponential moving average, as `avg_fn(average, current, count)`."""
    _decay(decay)

    @no_grad()
    def averaged(average: Any, current: Any, count: Any) -> Any:
        return decay * average + (1 - decay) * current

    return averaged


def _of_lists(avg_fn: Any) -> Any:
    def averaged(averages: Any, currents: Any, count: Any) -> None:
        for average, current in zip(averages, currents, strict=True):
            average.copy_(avg_fn(average, current, count))

    return averaged


def get_swa_multi_avg_fn() -> Any:
    """`get_swa_avg_fn` of lists, which are written to."""
    return _of_lists(get_swa_avg_fn())


def get_ema_multi_avg_fn(decay: float = 0.999) -> Any:
    """`get_ema_avg_fn` of lists, which are written to."""
    return _of_lists(get_ema_avg_fn(decay))


class AveragedModel(Module):
    """A model with the average of the weights of another: their mean, or what `avg_fn` says.

    >>> import adjoint.torch as torch
    >>> model = torch.nn.Linear(1, 1)
    >>> average = torch.optim.swa_utils.AveragedModel(model)
    >>> for value in (1.0, 2.0, 6.0):
    ...     _ = torch.nn.init.constant_(model.weight, value)
    ...     average.update_parameters(model)
    >>> average.module.weight.item(), average.n_averaged.item()
    (3.0, 3)
    """

    def __init__(
        self, model: Any, device: Any = None, avg_fn: Any = None, multi_avg_fn: Any = None, use_buffers: bool = False
    ) -> None:
        super().__init__()
        if avg_fn is not None and multi_avg_fn is not None:
            raise AssertionError("Only one of avg_fn and multi_avg_fn should be provided")
        self.module: Any = copy.deepcopy(model)
        self.register_buffer("n_averaged", creation.tensor(0, device=device))
        self.avg_fn, self.multi_avg_fn, self.use_buffers = avg_fn, multi_avg_fn, use_buffers

    def forward(self, *args: Any, **options: Any) -> Any:
        return self.module(*args, **options)

    @no_grad()
    def update_parameters(self, model: Any) -> None:
        """Take the weights of a model into the average; its buffers, too, or as they are without `use_buffers`."""
        mine, others = list(self.module.parameters()), list(model.parameters())
        buffers = list(zip(self.module.buffers(), model.buffers(), strict=True))
        if self.use_buffers:
            mine += [own for own, _ in buffers]
            others += [given for _, given in buffers]
        else:
            for own, given in buffers:
                own.detach().copy_(given.detach())
        averages, currents = [x.detach() for x in mine], [x.detach() for x in others]
        if not int(self.n_averaged):
            for average, current in zip(averages, currents, strict=True):
                average.copy_(current)
        else:
            update = self.multi_avg_fn or _of_lists(self.avg_fn or get_swa_avg_fn())
            update(averages, currents, self.n_averaged)
        self.n_averaged += 1


@no_grad()
def update_bn(loader: Any, model: Any, device: Any = None) -> None:
    """Make the statistics of batch normalisations those of the data, one pass over which is made.

    A batch is a tensor, or a list or tuple whose first entry is one.
    """
    layers: list[Any] = [
        m for m in model.modules() if isinstance(m, tuple([LAYERS[f"BatchNorm{n}d"] for n in (1, 2, 3)]))
    ]
    if not layers:
        return
    momenta, training = [layer.momentum for layer in layers], model.training
    model.train()
    for layer in layers:
        layer.reset_running_stats()
        layer.momentum = None  # the mean of all batches
    for batch in loader:
        x = batch[0] if isinstance(batch, (list, tuple)) else batch
        model(x if device is None else x.to(device))
    for layer, momentum in zip(layers, momenta, strict=True):
        layer.momentum = momentum
    model.train(training)


class SWALR(LRScheduler):
    """Rates that go from where they are to `swa_lr` in some epochs, along a line or a half wave of a cosine."""

    def __init__(
        self, optimizer: Any, swa_lr: Any, anneal_epochs: int = 10, anneal_strategy: str = "cos", last_epoch: int = -1
    ) -> None:
        groups = optimizer.param_groups
        rates = list(swa_lr) if isinstance(swa_lr, (list, tuple)) else [swa_lr] * len(groups)
        if len(rates) != len(groups):
            raise ValueError(
                f"swa_lr must have the same length as optimizer.param_groups. swa_lr has {len(rates)} values, "
                f"param_groups has {len(groups)}."
            )
        for group, rate in zip(groups, rates, strict=True):
            group["swa_lr"] = rate
        if anneal_strategy not in ("cos", "linear"):
            raise ValueError(f"anneal_strategy must be one of 'cos' or 'linear', instead got {anneal_strategy}")
        if not isinstance(anneal_epochs, int) or anneal_epochs < 0:
            raise ValueError(f"anneal_epochs must be equal or greater than 0, got {anneal_epochs}")
        self._anneal_strategy, self.anneal_epochs = anneal_strategy, anneal_epochs
        super().__init__(optimizer, last_epoch)

    def _share(self, step: int) -> float:
        """How far the rates have come after some steps: 0 to 1."""
        t = max(0.0, min(1.0, step / max(1, self.anneal_epochs)))
        return (1 - math.cos(math.pi * t)) / 2 if self._anneal_strategy == "cos" else t

    def get_lr(self) -> list[Any]:
        """The next rates, from those that are set."""
        self._warn_outside_of_step()
        step = max(self._step_count - 1, 1 if self.anneal_epochs == 0 else 0)
        before, now = self._share(step - 1), self._share(step)
        found = []
        for group in self.optimizer.param_groups:
            goal = group["swa_lr"]
            start = goal if before == 1 else (group["lr"] - before * goal) / (1 - before)
            found.append(goal * now + start * (1 - now))
        return found
