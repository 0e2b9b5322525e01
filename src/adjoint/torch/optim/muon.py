"""`Muon`: steps of matrices by the nearest orthogonal matrix to their momentum."""

from __future__ import annotations

import functools
import math
from typing import Any

import adjoint as ad
from adjoint import conventions
from adjoint.torch.calls import call
from adjoint.torch.optim.optimizer import Optimizer
from adjoint.torch.state import grad_mode
from adjoint.torch.tensor import Tensor

_RATIOS = {
    "original": lambda rows, columns: math.sqrt(max(1, rows / columns)),
    "match_rms_adamw": lambda rows, columns: 0.2 * math.sqrt(max(rows, columns)),
}


class Muon(Optimizer):
    """PyTorch's Muon around the iteration of `ad.optim.Muon`, in the type of the parameters. K. Jordan et al. (2024).

    The momentum m = b m + (1 - b) g is not divided by what is missing of its weights in the first steps, as in
    `ad.optim.Muon`. PyTorch computes the iteration in bfloat16.

    >>> import adjoint.torch as torch
    >>> w = torch.zeros(2, 2, requires_grad=True)
    >>> (w * torch.tensor([[0.0, 3.0], [-1.0, 0.0]])).sum().backward()
    >>> coefficients = 2.0, -1.5, 0.5  # of an iteration that converges
    >>> torch.optim.Muon([w], lr=1.0, ns_coefficients=coefficients, ns_steps=20).step()
    >>> w.detach().round(decimals=3) + 0.0
    tensor([[ 0., -1.],
            [ 1.,  0.]])
    """

    def __init__(
        self, params: Any, lr: float = 1e-3, weight_decay: float = 0.1, momentum: float = 0.95, nesterov: bool = True,
        ns_coefficients: tuple[float, float, float] = (3.4445, -4.7750, 2.0315), eps: float = 1e-7, ns_steps: int = 5,
        adjust_lr_fn: str | None = None,
    ) -> None:  # fmt: skip
        for what, value in (("Learning rate", lr), ("momentum", momentum), ("weight decay", weight_decay)):
            if value < 0:
                raise ValueError(f"{what} should be >= 0 but is: {value}")
        if adjust_lr_fn not in (None, *_RATIOS):
            raise ValueError(f"Adjust learning rate function {adjust_lr_fn} is not supported")
        super().__init__(params, {
            "lr": lr, "weight_decay": weight_decay, "momentum": momentum, "nesterov": nesterov,
            "ns_coefficients": ns_coefficients, "eps": eps, "ns_steps": ns_steps, "adjust_lr_fn": adjust_lr_fn,
        })  # fmt: skip

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Optimize further matrices, with settings of their own or the defaults."""
        super().add_param_group(param_group)
        for x in self.param_groups[-1]["params"]:
            if x.ndim != 2:
                raise ValueError(f"Muon only supports 2D parameters whereas we found a parameter with size: {x.size()}")

    def _step(self) -> None:
        with grad_mode(False):
            for group in self.param_groups:
                for x in group["params"]:
                    if x.grad is not None:
                        self._change(x, group)

    def _change(self, x: Any, group: dict[str, Any]) -> None:
        state, b, lr = self.state[x], group["momentum"], float(group["lr"])
        if not state:
            state["momentum_buffer"] = x.detach().clone().zero_()
        m = state["momentum_buffer"].lerp_(x.grad, 1 - b)
        direction = x.grad.lerp(m, b) if group["nesterov"] else m
        ratio = _RATIOS[group["adjust_lr_fn"] or "original"](*x.shape)
        x.mul_(1 - lr * group["weight_decay"])
        x.sub_(_orthogonal(direction, group), alpha=lr * ratio)


def _orthogonal(direction: Tensor, group: dict[str, Any]) -> Any:
    rule = _rule(tuple(group["ns_coefficients"]), group["ns_steps"])
    return call(lambda d: rule.orthogonal(conventions.unit(d, group["eps"])), None, direction)


@functools.lru_cache(32)
def _rule(coefficients: tuple[float, float, float], steps: int) -> Any:
    # what is given has a length of one, or of zero, which stays
    return ad.optim.Muon(ns_coefficients=coefficients, ns_steps=steps, eps=1e-30)
