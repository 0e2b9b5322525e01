"""Losses of numbers that the functions of these names in `ad.nn` refuse: complex ones, and integers as integers.

Faces of libraries that take such numbers call them, with operands that they have checked.
"""

from __future__ import annotations

from typing import Any

from adjoint.functions.elementwise import abs as size_of
from adjoint.functions.elementwise import exp, log, log1p
from adjoint.nn.activations import logsigmoid
from adjoint.nn.classification import of_labels
from adjoint.nn.losses import of_counts, of_distances, of_normals
from adjoint.nn.reduction import reduced
from adjoint.operands import run
from adjoint.tensor import Tensor


def _weighted(losses: Tensor[Any], weight: Any) -> Any:
    return losses if weight is None else losses * weight


def l1_losses(x: Tensor[Any], target: Tensor[Any], weight: Any = None) -> Any:
    """The size of differences of integers, which are integers; a weight multiplies them."""
    return _weighted(size_of(x - target), weight)


def hinge_embedding_losses(x: Tensor[Any], target: Tensor[Any], *, margin: Any) -> Tensor[Any]:
    """Of integers, with a margin that is one, and of complex targets."""
    return of_distances(x, target, margin)


def binary_cross_entropy_with_logits(
    x: Tensor[Any], target: Tensor[Any], *, weight: Any, pos_weight: Any, reduction: str
) -> Tensor[Any]:
    """Of complex targets, which are no probabilities."""
    factor = 1 if pos_weight is None else (pos_weight - 1) * target + 1
    losses = (1 - target) * x - factor * logsigmoid(x)
    return reduced(_weighted(losses, weight), reduction, "binary_cross_entropy_with_logits")


def poisson_nll_loss(
    x: Tensor[Any], target: Tensor[Any], *, log_input: bool, full: bool, eps: float, reduction: str
) -> Tensor[Any]:
    """Of complex numbers."""
    return reduced(of_counts(x, target, log_input, full, eps), reduction, "poisson_nll_loss")


def gaussian_nll_loss(
    x: Tensor[Any], target: Tensor[Any], var: Tensor[Any], *, full: bool, eps: float, reduction: str
) -> Tensor[Any]:
    """Of complex numbers with real variances."""
    variance = run("raise_to", (var,), least=eps)
    return reduced(of_normals(x - target, variance, log(variance), full), reduction, "gaussian_nll_loss")


def soft_margin_loss(x: Tensor[Any], target: Tensor[Any], *, reduction: str) -> Tensor[Any]:
    """Of complex numbers."""
    return reduced(log1p(exp(-target * x)), reduction, "soft_margin_loss")


def multilabel_soft_margin_loss(x: Tensor[Any], target: Tensor[Any], *, weight: Any, reduction: str) -> Tensor[Any]:
    """Of complex targets; the mean over classes counts those of x."""
    losses = _weighted(of_labels(x, target), weight).sum(axis=x.ndim - 1) / x.shape[-1]
    return reduced(losses, reduction, "multilabel_soft_margin_loss")
