"""Losses: how far predictions are from what they should be."""

from __future__ import annotations

from typing import Any, TypeVar

from adjoint import dtypes, errors
from adjoint.backend import Backend
from adjoint.functions.creation import as_tensors
from adjoint.functions.elementwise import square, where
from adjoint.functions.manipulation import moveaxis
from adjoint.nn.arguments import real, reduced
from adjoint.tensor import Tensor, cast, operand, run

B = TypeVar("B", bound=Backend)


def cross_entropy(logits: Tensor[B], target: Any, *, reduction: str = "mean") -> Tensor[B]:
    """The negative log-probability of class numbers under softmax(logits).

    Parameters
    ----------
    logits
        (classes,), (batch, classes), or (batch, classes, ...) with more axes behind the classes.
    target
        Integers below the number of classes: the shape of the logits without their class axis.
    reduction
        "mean", "sum" or "none".

    Raises
    ------
    ShapeError, DtypeError, OutOfRangeError
        Shapes that do not fit; targets that are not integers, or no class.

    Examples
    --------
    >>> import adjoint as ad
    >>> loss = ad.nn.cross_entropy(ad.tensor([[0.0, 0.0]]), ad.tensor([1]))
    >>> round(loss.item(), 4)
    0.6931
    """
    x = real(logits, "cross_entropy")
    labels = operand(target, x, "cross_entropy")
    if labels.dtype.kind not in "iu":
        raise errors.DtypeError(f"cross_entropy: targets are integers, received {labels.dtype}")
    if not x.ndim:
        raise errors.ShapeError("cross_entropy: 0-d logits have no class axis")
    if x.ndim > 2:
        x = moveaxis(x, 1, -1)
    if x.shape[:-1] != labels.shape:
        raise errors.ShapeError(
            f"cross_entropy: logits {logits.shape} need targets of shape {x.shape[:-1]}, received {labels.shape}"
        )
    losses = run("softmax_cross_entropy", (cast(x, dtypes.summing(x.dtype)), cast(labels, dtypes.int64)))
    return reduced(cast(losses, x.dtype), reduction, "cross_entropy")


def binary_cross_entropy_with_logits(logits: Tensor[B], target: Any, *, reduction: str = "mean") -> Tensor[B]:
    """-target log(p) - (1 - target) log(1 - p) with p = sigmoid(logits), without overflow or cancellation.

    Targets are between 0 and 1, of the logits' shape. Raises ShapeError where they are not. An infinite logit loses
    nothing where the target agrees with it, and is infinitely wrong elsewhere.
    """
    x = real(logits, "binary_cross_entropy_with_logits")
    target = operand(target, x, "binary_cross_entropy_with_logits")
    if target.shape != x.shape:
        raise errors.ShapeError(
            f"binary_cross_entropy_with_logits: logits have shape {x.shape}, targets {target.shape}"
        )
    x, target = as_tensors([x, target], "binary_cross_entropy_with_logits")
    # (1 - target) x + log(1 + exp(-x)) for x > 0 and -target x + log(1 + exp(x)) else: no large terms cancel
    above = x > 0
    rest = run("softplus", (where(above, -x, x),))
    linear = run("absorbing_multiply", (where(above, 1 - target, -target), x))
    return reduced(linear + rest, reduction, "binary_cross_entropy_with_logits")


def mse_loss(x: Tensor[B], target: Any, *, reduction: str = "mean") -> Tensor[B]:
    """The squared difference, averaged, summed or as it is. Raises ShapeError unless shapes are equal."""
    x = real(x, "mse_loss")
    target = operand(target, x, "mse_loss")
    if target.shape != x.shape:
        raise errors.ShapeError(f"mse_loss: x has shape {x.shape}, the target {target.shape}; broadcast them first")
    return reduced(square(x - target), reduction, "mse_loss")
