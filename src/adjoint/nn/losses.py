"""Losses of predictions against numbers: how far they are from what they should be."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from adjoint import dtypes, errors
from adjoint.functions.arguments import as_flag, as_number, as_positive, as_tensors, inexact, real
from adjoint.functions.elementwise import abs as size_of
from adjoint.functions.elementwise import divide, exp, log, square, where
from adjoint.irrational import irrational, log_pi_beside, pi_beside
from adjoint.nn.reduction import reduced
from adjoint.operands import cast, deferred_check, operand, run
from adjoint.primitives import broadcast_shapes
from adjoint.tensor import Operand, Tensor
from adjoint.variables import B


def both(
    x: Any, target: Any, name: str, *beside: Any, read: Callable[..., Tensor[Any]] = real
) -> tuple[Tensor[Any], Tensor[Any]]:
    """Predictions and targets of one shape, in one dtype that `read` takes. Raises ShapeError where shapes differ."""
    x = read(x, name, target, *beside)
    target = read(operand(target, x, name), name)
    if target.shape != x.shape:
        raise errors.ShapeError(f"{name}: x has shape {x.shape}, the target {target.shape}; broadcast them first")
    dtype = dtypes.promote(x.dtype, target.dtype)
    return cast(x, dtype), cast(target, dtype)


def _difference(x: Any, target: Any, name: str, *beside: Any) -> Tensor[Any]:
    """x - target, real: squares of complex numbers are no losses. Raises DtypeError for those."""
    x, target = both(x, target, name, *beside, read=inexact)
    if x.dtype.kind == "c":
        raise errors.DtypeError(
            f"{name}: expected real values, received {x.dtype}; of the sizes of differences it is "
            f"{name}(ad.abs(x - target), ad.zeros({x.shape}))"
        )
    return x - target  # type: ignore[no-any-return]


def above(x: Tensor[Any]) -> Tensor[Any]:
    """max(x, 0), with derivative 1 at 0."""
    return run("hinge", (x,))  # type: ignore[no-any-return]


def mse_loss(x: Operand[B], target: Any, *, reduction: str = "mean", weight: Any = None) -> Tensor[B]:
    """The squared difference, averaged, summed or as it is.

    `weight` multiplies the losses, whose mean then is over the weights. Raises ShapeError unless shapes are equal.
    """
    return _mean_by_weight(square(_difference(x, target, "mse_loss", weight)), weight, reduction, "mse_loss")


def l1_loss(x: Operand[B], target: Any, *, reduction: str = "mean", weight: Any = None) -> Tensor[B]:
    """The size of the difference, also of complex numbers, averaged, summed or as it is.

    `weight` multiplies the losses, whose mean then is over the weights. Raises ShapeError unless shapes are equal.
    """
    x, target = both(x, target, "l1_loss", weight, read=inexact)
    return _mean_by_weight(size_of(x - target), weight, reduction, "l1_loss")


def _mean_by_weight(losses: Tensor[Any], weight: Any, reduction: str, name: str) -> Tensor[Any]:
    if weight is None:
        return reduced(losses, reduction, name)
    factors = _of_shape(weight, losses, name)
    total = losses * factors
    return divide(total.sum(), factors.sum()) if reduction == "mean" else reduced(total, reduction, name)


def _of_shape(weight: Any, losses: Tensor[Any], name: str) -> Tensor[Any]:
    factors = real(operand(weight, losses, name), name)
    if factors.shape != losses.shape:
        raise errors.ShapeError(f"{name}: a weight has the losses' shape {losses.shape}, received {factors.shape}")
    return factors


def huber_loss(
    x: Operand[B], target: Any, *, reduction: str = "mean", delta: float = 1.0, weight: Any = None
) -> Tensor[B]:
    """Half the squared difference d up to |d| = delta, and delta (|d| - delta / 2) beyond. P. Huber (1964).

    `weight` multiplies the losses; their mean is over their number, as in PyTorch.
    Raises ShapeError unless shapes are equal, ArgumentError unless delta is positive.
    """
    difference = _difference(x, target, "huber_loss", weight)
    losses = run("huber", (difference,), delta=as_positive(delta, "huber_loss", "delta"))
    if weight is not None:
        losses = losses * _of_shape(weight, losses, "huber_loss")
    return reduced(losses, reduction, "huber_loss")


def smooth_l1_loss(x: Operand[B], target: Any, *, reduction: str = "mean", beta: float = 1.0) -> Tensor[B]:
    """`huber_loss` over its delta, here beta; with beta 0 the `l1_loss`, also of complex numbers.

    R. Girshick, Fast R-CNN (2015).

    Raises ShapeError unless shapes are equal, ArgumentError for a negative beta.
    """
    beta = as_positive(beta, "smooth_l1_loss", "beta", zero=True)
    if not beta:
        x, target = both(x, target, "smooth_l1_loss", read=inexact)
        return reduced(size_of(x - target), reduction, "smooth_l1_loss")
    difference = _difference(x, target, "smooth_l1_loss")
    if beta > 1:  # the same, where neither the square nor the product of beta and a difference may be infinite
        root = math.sqrt(beta)
        losses = run("huber", (difference / root,), delta=root)
    else:
        losses = run("huber", (difference,), delta=beta) / beta
    return reduced(losses, reduction, "smooth_l1_loss")


def binary_cross_entropy(x: Operand[B], target: Any, *, weight: Any = None, reduction: str = "mean") -> Tensor[B]:
    """-target log(x) - (1 - target) log(1 - x) of probabilities, each logarithm at least -100.

    `weight` multiplies the losses. Where x is 0 or 1 the bound holds, and has no gradient.
    Raises ShapeError unless shapes are equal.
    """
    name = "binary_cross_entropy"
    x, target = both(x, target, name, weight)
    likely = run("bounded_log", (x,), shift=0, least=-100.0)
    unlikely = run("bounded_log", (-x,), shift=1, least=-100.0)
    losses = -(target * likely + (1 - target) * unlikely)
    return reduced(_weighted(losses, weight, name), reduction, name)


def _weighted(losses: Tensor[Any], weight: Any, name: str) -> Tensor[Any]:
    return losses if weight is None else losses * real(operand(weight, losses, name), name)


def binary_cross_entropy_with_logits(
    logits: Operand[B], target: Any, *, weight: Any = None, pos_weight: Any = None, reduction: str = "mean"
) -> Tensor[B]:
    """-target log(p) - (1 - target) log(1 - p) with p = sigmoid(logits), without overflow or cancellation.

    Targets are between 0 and 1, of the logits' shape. `weight` multiplies the losses, `pos_weight` their first part;
    both broadcast. Raises ShapeError where shapes do not fit. An infinite logit loses nothing where the target agrees
    with it, and is infinitely wrong elsewhere.
    """
    name = "binary_cross_entropy_with_logits"
    x = real(logits, name, target, weight, pos_weight)
    target = real(operand(target, x, name), name)
    if target.shape != x.shape:
        raise errors.ShapeError(f"{name}: logits have shape {x.shape}, targets {target.shape}")
    x, target = as_tensors([x, target], name)
    if pos_weight is None:
        return reduced(_weighted(run("logistic_loss", (x, target)), weight, name), reduction, name)
    positive = x > 0
    rest = run("softplus", (where(positive, -x, x),))
    factor = target * real(operand(pos_weight, x, name), name)
    # factor log(1 + exp(-x)) + (1 - target) log(1 + exp(x))
    linear = run("absorbing_multiply", (where(positive, 1 - target, -factor), x))
    return reduced(_weighted(linear + rest * (factor + 1 - target), weight, name), reduction, name)


def poisson_nll_loss(
    x: Operand[B],
    target: Any,
    *,
    log_input: bool = True,
    full: bool = False,
    eps: float = 1e-8,
    reduction: str = "mean",
) -> Tensor[B]:
    """exp(x) - target x, or x - target log(x + eps) without `log_input`: counts of rate exp(x), or x.

    `full` adds Stirling's approximation of log(target!) where the target is above 1.
    Raises ShapeError unless shapes are equal.
    """
    x, target = both(x, target, "poisson_nll_loss")
    log_input = as_flag(log_input, "poisson_nll_loss", "log_input")
    full, eps = as_flag(full, "poisson_nll_loss", "full"), as_number(eps, "poisson_nll_loss", "eps")
    losses = of_counts(x, target, log_input, full, eps)
    return reduced(losses, reduction, "poisson_nll_loss")


def of_counts(x: Tensor[Any], target: Tensor[Any], log_input: bool, full: bool, eps: Any) -> Tensor[Any]:
    """The losses of `poisson_nll_loss`, also of complex x; of complex targets those that are not full."""
    losses = exp(x) - target * x if log_input else x - target * log(x + eps)
    if not full:
        return losses
    large = where(target > 1, target, 1.0)
    stirling = large * log(large) - large + log(large * (2 * pi_beside(large))) * 0.5
    return losses + where(target > 1, stirling, 0.0)


def gaussian_nll_loss(
    x: Operand[B], target: Any, var: Any, *, full: bool = False, eps: float = 1e-6, reduction: str = "mean"
) -> Tensor[B]:
    """(log(var) + (x - target)^2 / var) / 2: normal numbers of mean x and a variance of at least eps.

    The variance broadcasts, and gets its gradient also where it is raised to eps. `full` adds log(2 pi) / 2.
    Raises ShapeError where shapes do not fit, ArgumentError unless eps is positive, and for a negative variance.
    """
    name = "gaussian_nll_loss"
    x, target = both(x, target, name, var)
    eps, full = as_positive(eps, name, "eps"), as_flag(full, name, "full")
    given = as_number(var, name, "var") if isinstance(var, (int, float)) else real(operand(var, x, name), name)
    shape = given.shape if isinstance(given, Tensor) else ()
    try:
        fits = broadcast_shapes(shape, x.shape) == x.shape
    except errors.ShapeError:
        fits = False
    if not fits:
        raise errors.ShapeError(f"{name}: a variance of shape {shape} does not broadcast to x of shape {x.shape}")
    wrong: Callable[[Any], Exception] = lambda values: errors.ArgumentError(
        f"{name}: a variance is not negative, received {np.min(values)}"
    )
    if isinstance(given, Tensor):
        given = deferred_check(given, lambda values: ~(values.min() < 0), wrong)
    elif given < 0:
        raise wrong(given)
    variance: Any = run("raise_to", (given,), least=eps) if isinstance(given, Tensor) else max(given, eps)
    logarithm = log(variance) if isinstance(variance, Tensor) else irrational("log", variance, x)
    return reduced(of_normals(x - target, variance, logarithm, full), reduction, name)


def of_normals(difference: Tensor[Any], variance: Any, logarithm: Any, full: bool) -> Tensor[Any]:
    """The losses of `gaussian_nll_loss`, also of complex differences; with the logarithm of the variance."""
    losses: Tensor[Any] = (square(difference) / variance + logarithm) * 0.5
    return losses + 0.5 * log_pi_beside(losses, 2.0) if full else losses


def kl_div(x: Operand[B], target: Any, *, reduction: str = "mean", log_target: bool = False) -> Tensor[B]:
    """target (log(target) - x): how far probabilities are from those whose logarithms are x.

    With `log_target` the target is logarithms too. Where a target is 0 so is the loss. "batchmean" divides the sum by
    the first axis' size, "mean" by the number of elements. Raises ShapeError unless shapes are equal.
    """
    x, target = both(x, target, "kl_div")
    if as_flag(log_target, "kl_div", "log_target"):
        none = target == -math.inf
        losses = where(none, 0.0, exp(target) * (where(none, 0.0, target) - x))
    else:
        inside = run("replace_where_equal", (target, target), target=0, value=1.0)
        losses = run("replace_where_equal", (target * (log(inside) - x), target), target=0, value=0.0)
    if isinstance(reduction, str) and reduction == "batchmean":
        return divide(losses.sum(), max(1, x.shape[0] if x.ndim else 1))
    return reduced(losses, reduction, "kl_div")


def soft_margin_loss(x: Operand[B], target: Any, *, reduction: str = "mean") -> Tensor[B]:
    """log(1 + exp(-target x)) for targets 1 and -1. Raises ShapeError unless shapes are equal."""
    x, target = both(x, target, "soft_margin_loss")
    return reduced(run("softplus", (-(target * x),)), reduction, "soft_margin_loss")


def hinge_embedding_loss(x: Operand[B], target: Any, *, margin: float = 1.0, reduction: str = "mean") -> Tensor[B]:
    """x where the target is 1, max(0, margin - x) where it is -1. Raises ShapeError unless shapes are equal."""
    x, target = both(x, target, "hinge_embedding_loss")
    losses = of_distances(x, target, as_number(margin, "hinge_embedding_loss", "margin"))
    return reduced(losses, reduction, "hinge_embedding_loss")


def of_distances(x: Tensor[Any], target: Tensor[Any], margin: Any) -> Tensor[Any]:
    """The losses of `hinge_embedding_loss`, also of integers, which they are then, and of complex targets."""
    return where(target != 1, above(margin - x), 0) + where(target != -1, x, 0)
