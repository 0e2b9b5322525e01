"""Activations: elementwise functions between the layers of a network, and gates."""

from __future__ import annotations

from typing import Any, Never

from adjoint import errors, random, special
from adjoint.functions.arguments import (
    as_axis,
    as_choice,
    as_flag,
    as_number,
    as_positive,
    explained,
    inexact,
    keyword_error,
    real,
)
from adjoint.functions.elementwise import abs as size_of
from adjoint.functions.elementwise import log, tanh, where
from adjoint.functions.ranges import arange
from adjoint.functions.reduction import argmax
from adjoint.functions.shape import reshape
from adjoint.irrational import irrational, pi_beside
from adjoint.operands import operand, run
from adjoint.tensor import Operand, Tensor
from adjoint.variables import B


def relu(x: Operand[B], /) -> Tensor[B]:
    """max(x, 0); its derivative at 0 is 0.

    >>> import adjoint as ad
    >>> ad.nn.relu(ad.tensor([-1.0, 2.0])).tolist()
    [0.0, 2.0]
    """
    return run("relu", (real(x, "relu"),))  # type: ignore[no-any-return]


def relu6(x: Operand[B], /) -> Tensor[B]:
    """min(max(x, 0), 6); the derivative at 0 and 6 is 0."""
    return hardtanh(real(x, "relu6"), 0.0, 6.0)


def leaky_relu(x: Operand[B], negative_slope: float = 0.01) -> Tensor[B]:
    """x where it is positive, else x times a slope."""
    x, slope = real(x, "leaky_relu"), as_number(negative_slope, "leaky_relu", "negative_slope")
    return run("leaky_relu", (x,), slope=slope)  # type: ignore[no-any-return]


def prelu(x: Operand[B], weight: Operand[B]) -> Tensor[B]:
    """x where it is positive, else x times a slope that is learnt.

    `weight` has one element, or one for each channel: axis 1 of x. Raises ShapeError where it has another shape.
    """
    x = real(x, "prelu", weight)
    weight = real(operand(weight, x, "prelu"), "prelu")
    channels = x.shape[1] if x.ndim > 1 else 1
    if weight.size != 1 and weight.shape != (channels,):
        raise errors.ShapeError(f"prelu: x of shape {x.shape} needs one slope or {channels}, received {weight.shape}")
    slope = reshape(weight, (-1, *[1] * (x.ndim - 2)) if weight.size != 1 else ())
    return where(x > 0, x, x * slope)


def rrelu(x: Operand[B], lower: float = 1 / 8, upper: float = 1 / 3, training: bool = False) -> Tensor[B]:
    """`leaky_relu` with slopes drawn evenly from lower to upper in training, with their mean otherwise.

    Raises ArgumentError for a lower bound above the upper one.
    """
    x = real(x, "rrelu")
    low, high = as_number(lower, "rrelu", "lower"), as_number(upper, "rrelu", "upper")
    if low > high:
        raise errors.ArgumentError(f"rrelu: lower is at most upper, received {low} and {high}")
    if not as_flag(training, "rrelu", "training"):
        return leaky_relu(x, (low + high) / 2)
    slope = random.uniform(x.shape, low=low, high=high, dtype=x.dtype, device=x.device)
    return where(x > 0, x, x * slope)


def elu(x: Operand[B], alpha: float = 1.0) -> Tensor[B]:
    """x where it is positive, else alpha (exp(x) - 1). D.-A. Clevert et al. (2015)."""
    x = real(x, "elu")
    return _elu(x, as_number(alpha, "elu", "alpha"), 1.0)


def celu(x: Operand[B], alpha: float = 1.0) -> Tensor[B]:
    """x where it is positive, else alpha (exp(x / alpha) - 1). J. Barron (2017). Raises ArgumentError for alpha 0."""
    x, alpha = real(x, "celu"), as_number(alpha, "celu", "alpha")
    if alpha == 0:
        raise errors.ArgumentError("celu: alpha is not zero")
    return _elu(x, alpha, 1 / alpha)


def selu(x: Operand[B], /) -> Tensor[B]:
    """`elu` scaled so that mean 0 and variance 1 stay. G. Klambauer et al., Self-Normalizing Neural Networks (2017)."""
    return _elu(real(x, "selu"), 1.6732632423543772, 1.0) * 1.0507009873554805


def _elu(x: Tensor[Any], alpha: float, rate: float) -> Tensor[Any]:
    return run("elu", (x,), alpha=alpha, rate=rate)  # type: ignore[no-any-return]


def sigmoid(x: Operand[B], /) -> Tensor[B]:
    """1 / (1 + exp(-x)), without overflow; of complex x too."""
    return special.expit(inexact(x, "sigmoid"))


def softplus_below(x: Tensor[Any], beta: float, threshold: float) -> Any:
    """`softplus`, and x itself where beta x is above a threshold, as in PyTorch."""
    return where(x * beta > threshold, x, softplus(x, beta))


def logsigmoid(x: Operand[B], /) -> Tensor[B]:
    """The logarithm of `sigmoid`, accurate also where that underflows."""
    return -softplus(-real(x, "logsigmoid"))


def silu(x: Operand[B], /) -> Tensor[B]:
    """x * sigmoid(x); of complex x too."""
    x = inexact(x, "silu")
    return x * sigmoid(x) if x.dtype.kind == "c" else run("silu", (x,))


def mish(x: Operand[B], /) -> Tensor[B]:
    """x * tanh(softplus(x)). D. Misra (2019)."""
    x = real(x, "mish")
    return x * tanh(softplus(x))


def gelu(x: Operand[B], /, approximate: str = "none") -> Tensor[B]:
    """x times the standard normal distribution function at x, exact. D. Hendrycks, K. Gimpel (2016).

    With approximate="tanh" their equation with a hyperbolic tangent. Raises ArgumentError for other names.
    """
    x = real(x, "gelu")
    if as_choice(approximate, "gelu", "approximate", ("none", "tanh")) == "none":
        return run("gelu", (x,))  # type: ignore[no-any-return]
    return x * 0.5 * (tanh((x + x * x * x * 0.044715) * irrational("sqrt", 2 / pi_beside(x), x)) + 1)


def softplus(x: Operand[B], /, beta: float = 1.0) -> Tensor[B]:
    """log(1 + exp(beta x)) / beta, without overflow, and exact everywhere."""
    x, beta = real(x, "softplus"), as_number(beta, "softplus", "beta")
    if beta == 1:
        return run("softplus", (x,))  # type: ignore[no-any-return]
    return run("softplus", (x * beta,)) / beta  # type: ignore[no-any-return]


def hardtanh(x: Operand[B], min_val: float = -1.0, max_val: float = 1.0) -> Tensor[B]:
    """x between two bounds; the derivative at the bounds is 0. Raises ArgumentError unless the first is smaller."""
    x = real(x, "hardtanh")
    low, high = as_number(min_val, "hardtanh", "min_val"), as_number(max_val, "hardtanh", "max_val")
    if not low < high:
        raise errors.ArgumentError(f"hardtanh: min_val is less than max_val, received {low} and {high}")
    return run("hardtanh", (x,), low=low, high=high)  # type: ignore[no-any-return]


def hardsigmoid(x: Operand[B], /) -> Tensor[B]:
    """x / 6 + 1 / 2 between 0 and 1; the derivative at -3 and 3 is 0."""
    x = real(x, "hardsigmoid")
    return run("hardtanh", (x,), low=-3.0, high=3.0) / 6 + 0.5  # type: ignore[no-any-return]


def hardswish(x: Operand[B], /) -> Tensor[B]:
    """x times `hardsigmoid`. A. Howard et al., Searching for MobileNetV3 (2019)."""
    x = real(x, "hardswish")
    return run("hardswish", (x,))  # type: ignore[no-any-return]


def hardshrink(x: Operand[B], lambd: float = 0.5) -> Tensor[B]:
    """x, but 0 from -lambd to lambd."""
    x, bound = real(x, "hardshrink"), as_number(lambd, "hardshrink", "lambd")
    return where((x >= -bound) & (x <= bound), 0.0, x)


def softshrink(x: Operand[B], lambd: float = 0.5) -> Tensor[B]:
    """x moved towards 0 by lambd, and 0 from -lambd to lambd. Raises ArgumentError for a negative lambd."""
    x, bound = real(x, "softshrink"), as_positive(lambd, "softshrink", "lambd", zero=True)
    return run("softshrink", (x,), bound=bound)  # type: ignore[no-any-return]


def tanhshrink(x: Operand[B], /) -> Tensor[B]:
    """x - tanh(x)."""
    x = inexact(x, "tanhshrink")
    return x - tanh(x)


def threshold(x: Operand[B], threshold: float, value: float) -> Tensor[B]:
    """x where it is above a threshold, else the value.

    The result has the shape of x.
    """
    x, bound = real(x, "threshold"), as_number(threshold, "threshold", "threshold")
    return where(x <= bound, as_number(value, "threshold", "value"), x)


def softsign(x: Operand[B], /) -> Tensor[B]:
    """x / (1 + |x|)."""
    x = inexact(x, "softsign")
    return x / (size_of(x) + 1)


@explained
def glu(x: Operand[B], axis: int = -1, **unknown: Never) -> Tensor[B]:
    """The first half along an axis times the sigmoid of the second. Y. Dauphin et al. (2016).

    The result has the shape of x with half as many elements along that axis. Raises ShapeError for an axis of odd size,
    AxisError for one that is not there.
    """
    if unknown:
        raise keyword_error(glu, unknown)
    x = real(x, "glu")
    place = as_axis(axis, x.ndim, "glu")
    half, odd = divmod(x.shape[place], 2)
    if odd:
        raise errors.ShapeError(f"glu: axis {axis} of shape {x.shape} has an odd size, and is to be halved")
    before = (slice(None),) * place
    return x[(*before, slice(0, half))] * sigmoid(x[(*before, slice(half, None))])


@explained
def softmax(x: Operand[B], axis: int = -1, **unknown: Never) -> Tensor[B]:
    """exp(x) over its sum along an axis. Raises AxisError for one that is not there.

    >>> import adjoint as ad
    >>> ad.nn.softmax(ad.tensor([0.0, 0.0])).tolist()
    [0.5, 0.5]
    """
    if unknown:
        raise keyword_error(softmax, unknown)
    return special.softmax(x, axis)


@explained
def softmin(x: Operand[B], axis: int = -1, **unknown: Never) -> Tensor[B]:
    """`softmax` of -x."""
    if unknown:
        raise keyword_error(softmin, unknown)
    return special.softmax(-real(x, "softmin"), axis)


@explained
def log_softmax(x: Operand[B], axis: int = -1, **unknown: Never) -> Tensor[B]:
    """The logarithm of `softmax`, accurate also where that underflows."""
    if unknown:
        raise keyword_error(log_softmax, unknown)
    return special.log_softmax(x, axis)


@explained
def gumbel_softmax(x: Operand[B], tau: float = 1.0, hard: bool = False, axis: int = -1, **unknown: Never) -> Tensor[B]:
    """A random choice among logits along an axis, made differentiable: softmax((x + Gumbel noise) / tau).

    With `hard` the value is one at the largest and zero elsewhere, and the gradient that of the softmax. E. Jang et
    al., Categorical Reparameterization with Gumbel-Softmax (2016). `ad.random.seed` starts the sequence of the noise.
    Raises ArgumentError unless tau is positive, AxisError for an axis that is not there.
    """
    if unknown:
        raise keyword_error(gumbel_softmax, unknown)
    x, tau = real(x, "gumbel_softmax"), as_positive(tau, "gumbel_softmax", "tau")
    place, hard = as_axis(axis, x.ndim, "gumbel_softmax"), as_flag(hard, "gumbel_softmax", "hard")
    noise = -log(-log(random.uniform(x.shape, low=1e-30, dtype=x.dtype, device=x.device)))
    soft = special.softmax((x + noise) / tau, place)
    if not hard:
        return soft
    best = argmax(soft.detach(), axis=place, keepdims=True)
    line = reshape(arange(x.shape[place], device=x.device), (-1, *[1] * (x.ndim - place - 1)))
    return where(best == line, 1 - soft.detach(), -soft.detach()) + soft
