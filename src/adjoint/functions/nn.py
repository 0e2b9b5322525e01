"""Activations, layers and losses as functions of tensors."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, TypeVar

from adjoint import dtypes, errors
from adjoint.backend import Backend
from adjoint.functions.creation import arange, as_number, as_tensor, as_tensors, integers
from adjoint.functions.elementwise import square, where
from adjoint.functions.indexing import take_along_axis
from adjoint.functions.manipulation import moveaxis, pad
from adjoint.functions.products import matmul
from adjoint.functions.reductions import argmax
from adjoint.primitives import TABLE, conv_size
from adjoint.tensor import Tensor, cast, operand, run

B = TypeVar("B", bound=Backend)
Pair = int | tuple[int, int]


def _real(value: Any, name: str) -> Tensor[Any]:
    x = value if value.__class__ is Tensor else as_tensor(value, name)
    kind = x.dtype.kind
    if kind == "c":
        raise errors.DtypeError(f"{name}: expected real values, received {x.dtype}")
    return x if kind == "f" else x.astype(dtypes.float32)


def relu(x: Tensor[B], /) -> Tensor[B]:
    """max(x, 0); its derivative at 0 is 0.

    >>> import adjoint as ad
    >>> ad.nn.relu(ad.tensor([-1.0, 2.0])).tolist()
    [0.0, 2.0]
    """
    return run("relu", (_real(x, "relu"),))  # type: ignore[no-any-return]


def sigmoid(x: Tensor[B], /) -> Tensor[B]:
    """1 / (1 + exp(-x)), without overflow."""
    return run("expit", (_real(x, "sigmoid"),))  # type: ignore[no-any-return]


def silu(x: Tensor[B], /) -> Tensor[B]:
    """x * sigmoid(x)."""
    return run("silu", (_real(x, "silu"),))  # type: ignore[no-any-return]


def gelu(x: Tensor[B], /) -> Tensor[B]:
    """x times the standard normal distribution function at x, exact. D. Hendrycks, K. Gimpel (2016)."""
    return run("gelu", (_real(x, "gelu"),))  # type: ignore[no-any-return]


def softplus(x: Tensor[B], /) -> Tensor[B]:
    """log(1 + exp(x)), without overflow."""
    return run("softplus", (_real(x, "softplus"),))  # type: ignore[no-any-return]


def linear(x: Tensor[B], weight: Tensor[B], bias: Tensor[B] | None = None) -> Tensor[B]:
    """x @ weight.mT + bias: x (..., inputs), weight (outputs, inputs), bias (outputs,).

    Raises ShapeError where sizes do not fit.
    """
    if weight.ndim != 2:
        raise errors.ShapeError(f"linear: weight is (outputs, inputs), received shape {weight.shape}")
    if not x.ndim or x.shape[-1] != weight.shape[1] or (bias is not None and bias.shape != weight.shape[:1]):
        raise errors.ShapeError(
            f"linear: x is (..., inputs), weight (outputs, inputs) and bias (outputs,); received {x.shape}, "
            f"{weight.shape} and {None if bias is None else bias.shape}"
        )
    out = matmul(x, weight.mT)
    return out if bias is None else out + bias


def layer_norm(
    x: Tensor[B],
    normalized_shape: int | Sequence[int],
    weight: Tensor[B] | None = None,
    bias: Tensor[B] | None = None,
    eps: float = 1e-5,
) -> Tensor[B]:
    """x with mean 0 and variance 1 over its last axes, then scaled and shifted. J. Ba et al. (2016).

    `normalized_shape` is the shape of those axes, and of weight and bias. Raises ArgumentTypeError where it is no
    shape, ShapeError where they do not agree.
    """
    x, eps = _real(x, "layer_norm"), as_number(eps, "layer_norm", "eps")
    shape = integers(normalized_shape, "layer_norm", "the sizes in normalized_shape")
    scale, shift = (None if given is None else operand(given, x, "layer_norm") for given in (weight, bias))
    found = {"x's last axes": x.shape[x.ndim - len(shape) :]}
    found |= {name: given.shape for name, given in (("weight", scale), ("bias", shift)) if given is not None}
    for name, sizes in found.items():
        if sizes != shape or not shape:
            raise errors.ShapeError(f"layer_norm: normalized_shape is {shape}, {name} has shape {sizes}")
    axes = tuple(range(x.ndim - len(shape), x.ndim))
    out = cast(run("standardize", (cast(x, dtypes.summing(x.dtype)),), axis=axes, epsilon=eps), x.dtype)
    if scale is not None:
        out = out * scale
    return out if shift is None else out + shift


def _reduced(losses: Tensor[Any], reduction: str, name: str) -> Tensor[Any]:
    if reduction == "none":
        return losses
    if reduction == "sum":
        return losses.sum()
    if reduction == "mean":
        return losses.mean()
    raise errors.ArgumentError(f"{name}: reduction is 'mean', 'sum' or 'none', received {errors.shown(reduction)}")


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
    x = _real(logits, "cross_entropy")
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
    return _reduced(cast(losses, x.dtype), reduction, "cross_entropy")


def binary_cross_entropy_with_logits(logits: Tensor[B], target: Any, *, reduction: str = "mean") -> Tensor[B]:
    """-target log(p) - (1 - target) log(1 - p) with p = sigmoid(logits), without overflow or cancellation.

    Targets are between 0 and 1, of the logits' shape. Raises ShapeError where they are not. An infinite logit loses
    nothing where the target agrees with it, and is infinitely wrong elsewhere.
    """
    x = _real(logits, "binary_cross_entropy_with_logits")
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
    return _reduced(linear + rest, reduction, "binary_cross_entropy_with_logits")


def mse_loss(x: Tensor[B], target: Any, *, reduction: str = "mean") -> Tensor[B]:
    """The squared difference, averaged, summed or as it is. Raises ShapeError unless shapes are equal."""
    x = _real(x, "mse_loss")
    target = operand(target, x, "mse_loss")
    if target.shape != x.shape:
        raise errors.ShapeError(f"mse_loss: x has shape {x.shape}, the target {target.shape}; broadcast them first")
    return _reduced(square(x - target), reduction, "mse_loss")


def _pair(value: Any, name: str, least: int) -> tuple[int, int]:
    pair = (value, value) if isinstance(value, int) else tuple(value)
    if len(pair) != 2 or not all(isinstance(n, int) and n >= least for n in pair):
        raise errors.ArgumentError(
            f"{name} is an integer of at least {least} or two of them, received {errors.shown(value)}"
        )
    return pair[0], pair[1]


def conv2d(
    x: Tensor[B],
    weight: Tensor[B],
    bias: Tensor[B] | None = None,
    *,
    stride: Pair = 1,
    padding: Pair = 0,
    dilation: Pair = 1,
    groups: int = 1,
) -> Tensor[B]:
    """Two-dimensional cross-correlation.

    Parameters
    ----------
    x
        (batch, channels, height, width)
    weight
        (outputs, channels / groups, kernel height, kernel width)
    bias
        (outputs,)
    stride, padding, dilation
        Steps between places, zeros on each side, steps between the kernel's elements: one number or
        (vertical, horizontal).
    groups
        Channels and outputs are split into so many independent convolutions.

    Raises
    ------
    ShapeError, ArgumentError
        Shapes that do not fit; parameters out of range.
    """
    x, weight = as_tensors([_real(x, "conv2d"), _real(weight, "conv2d")], "conv2d")
    how = {
        "stride": _pair(stride, "conv2d: stride", 1),
        "padding": _pair(padding, "conv2d: padding", 0),
        "dilation": _pair(dilation, "conv2d: dilation", 1),
        "groups": groups,
    }
    if not isinstance(groups, int) or groups < 1:
        raise errors.ArgumentError(f"conv2d: groups is a positive integer, received {errors.shown(groups)}")
    TABLE["conv2d"].shape(x.shape, weight.shape, **how)  # raises where they do not fit
    if bias is not None and bias.shape != weight.shape[:1]:
        raise errors.ShapeError(
            f"conv2d: {weight.shape[0]} outputs need a bias of that size, received shape {bias.shape}"
        )
    out = run("conv2d", (x, weight), **how)
    return out if bias is None else out + bias.reshape((-1, 1, 1))  # type: ignore[no-any-return]


def max_pool2d(x: Tensor[B], kernel_size: Pair, stride: Pair | None = None, *, padding: Pair = 0) -> Tensor[B]:
    """The largest element under a window that moves over (batch, channels, height, width).

    The stride is the window's size unless given; padding counts as minus infinity. Of equal elements
    the first gets the gradient. Raises ShapeError or ArgumentError for what does not fit.
    """
    x = _real(x, "max_pool2d")
    if x.ndim != 4:
        raise errors.ShapeError(f"max_pool2d: expected (batch, channels, height, width), received {x.shape}")
    kernel = _pair(kernel_size, "max_pool2d: kernel_size", 1)
    step = kernel if stride is None else _pair(stride, "max_pool2d: stride", 1)
    border = _pair(padding, "max_pool2d: padding", 0)
    if any(2 * p > k for p, k in zip(border, kernel, strict=True)):
        raise errors.ArgumentError(f"max_pool2d: padding {border} is more than half of the window {kernel}")
    n, c, height, width = x.shape
    rows, columns = (conv_size(x.shape[2 + i], kernel[i], step[i], border[i], 1) for i in range(2))
    if min(rows, columns) < 1:
        raise errors.ShapeError(f"max_pool2d: a window of {kernel} does not fit images of {(height, width)}")
    padded = pad(x, ((0, 0), (0, 0), *((p, p) for p in border)), value=-math.inf) if any(border) else x
    wide = padded.shape[3]
    # the place of each window's elements in a flattened padded image
    down = arange(rows, device=x.device) * (step[0] * wide)
    across = arange(columns, device=x.device) * step[1]
    inside = arange(kernel[0], device=x.device).reshape((-1, 1)) * wide + arange(kernel[1], device=x.device)
    corners = down.reshape((-1, 1)) + across
    places = corners.reshape((-1, 1)) + inside.reshape((1, -1))
    flat = padded.reshape((n, c, padded.shape[2] * wide))
    windows = flat.detach()[:, :, places]
    best = argmax(windows, axis=-1)
    offset = inside.reshape(-1)[best]
    picked = take_along_axis(flat, offset + corners.reshape(-1), axis=2)
    return picked.reshape((n, c, rows, columns))
