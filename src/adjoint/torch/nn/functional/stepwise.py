"""Losses of complex numbers and of integers, which adjoint's functions do not take: PyTorch's own steps, one by one."""

from __future__ import annotations

import math
from typing import Any

from adjoint.torch.operators import FUNCTIONS


def reduced(loss: Any, reduction: str) -> Any:
    """The loss as it is, its mean or its sum."""
    return loss if reduction == "none" else getattr(loss, reduction)()


def _log_sigmoid(x: Any) -> Any:
    return FUNCTIONS["log"](FUNCTIONS["sigmoid"](x))


def l1_loss(input: Any, target: Any, weight: Any, reduction: str) -> Any:
    """The size of differences of integers, which are integers."""
    loss = (input - target).abs()
    return reduced(loss if weight is None else loss * weight, reduction)


def binary_cross_entropy_with_logits(input: Any, target: Any, weight: Any, reduction: str, pos_weight: Any) -> Any:
    """Of targets that are no probabilities."""
    factor = 1 if pos_weight is None else (pos_weight - 1) * target + 1
    loss = (1 - target) * input - factor * _log_sigmoid(input)
    return reduced(loss if weight is None else loss * weight, reduction)


def poisson_nll_loss(input: Any, target: Any, log_input: bool, eps: float, reduction: str) -> Any:
    """Of complex numbers."""
    loss = input.exp() - target * input if log_input else input - target * (input + eps).log()
    return reduced(loss, reduction)


def gaussian_nll_loss(input: Any, target: Any, var: Any, full: bool, eps: float, reduction: str) -> Any:
    """Of complex numbers with real variances."""
    var = var.clamp(min=eps)
    loss = 0.5 * (var.log() + (input - target) ** 2 / var)
    return reduced(loss + 0.5 * math.log(2 * math.pi) if full else loss, reduction)


def soft_margin_loss(input: Any, target: Any, reduction: str) -> Any:
    """Of complex numbers."""
    return reduced((-target * input).exp().log1p(), reduction)


def hinge_embedding_loss(input: Any, target: Any, margin: float, reduction: str) -> Any:
    """Of integers, which the loss is, too, and of complex targets."""
    lacking = (margin - input).to(dtype=input._dtype).clamp_min(0)
    zero, where = input.new_zeros(()), FUNCTIONS["where"]
    return reduced(where(target != 1, lacking, zero) + where(target != -1, input, zero), reduction)


def multilabel_soft_margin_loss(input: Any, target: Any, weight: Any, reduction: str) -> Any:
    """Of complex targets."""
    loss = -(target * _log_sigmoid(input) + (1 - target) * _log_sigmoid(-input))
    return reduced((loss if weight is None else loss * weight).mean(-1), reduction)
