"""Activations: one table of those that have settings and `inplace` alone, and the others."""

from __future__ import annotations

import inspect
import math
import warnings
from typing import Any

import numpy as np

from adjoint.nn.activations import softplus_below
from adjoint.torch import overriding
from adjoint.torch.arguments import Number, Truth, guarded
from adjoint.torch.calls import call, check_size, into, number, number_of, without_slope, write
from adjoint.torch.creation import full_like
from adjoint.torch.nn.functional.shared import drawing, real, tensor
from adjoint.torch.operators import FUNCTIONS, refuse_truths
from adjoint.torch.tensor import Tensor, axis_of

# name, adjoint's function, name of the node, settings
_TABLE = """
celu          celu         Celu          alpha=1.0
elu           elu          Elu           alpha=1.0
hardsigmoid   hardsigmoid  Hardsigmoid
hardswish     hardswish    Hardswish
hardtanh      hardtanh     Hardtanh      min_val=-1.0 max_val=1.0
leaky_relu    leaky_relu   LeakyRelu     negative_slope=0.01
mish          mish         Mish
relu6         relu6        Hardtanh
selu          selu         Elu
silu          silu         Silu
"""

# ... and without `inplace`
_OTHERS = """
gelu          gelu         Gelu          approximate='none'
hardshrink    hardshrink   Hardshrink    lambd=0.5
logsigmoid    logsigmoid   LogSigmoid
softshrink    softshrink   Softshrink    lambd=0.5
softsign      softsign     Div
tanhshrink    tanhshrink   Sub
"""

ALL: dict[str, Any] = {}
_ONE = inspect.Parameter.POSITIONAL_OR_KEYWORD


def _operand(input: Any, name: str) -> Tensor:
    """What an activation is of. Raises for types that PyTorch does not compute."""
    x = tensor(input, name)
    if name in ("hardtanh", "relu6") and x._dtype.kind == "b":
        raise RuntimeError("Bool inputs not supported for hardtanh")
    if name == "tanhshrink":
        refuse_truths(x, 1.0)
    if name in ("softsign", "tanhshrink") and x._dtype.kind != "b":
        return x
    if name == "silu" and x._dtype.kind == "c":
        return x
    return real(x, name, integers=name in ("hardtanh", "relu6"))


def _bounded(x: Tensor, low: Any, high: Any) -> Any:
    """Integers between two numbers, which are cut to integers. Raises RuntimeError for bounds that are none of x's."""
    bounds = [int(number(b, np.dtype("int64"))) for b in (low, high)]
    if x._dtype.kind == "u" and min(bounds) < 0:
        raise RuntimeError("cannot do hardtanh on an unsigned type with negative limits")
    return FUNCTIONS["clamp"](x, *[int(number(b, x._dtype)) for b in bounds])


def _declare(row: str, writes: bool) -> None:
    name, core, made, *settings = row.split()
    defaults = {key: eval(value) for key, _, value in [s.partition("=") for s in settings]}
    names = [*defaults, "inplace"] if writes else [*defaults]
    core = f"nn.{core}"

    def spelled(input: Tensor, *args: Any, **given: Any) -> Any:
        if input.__class__ is not Tensor:
            found = overriding.overridden(spelled, (input, *args), given)
            if found is not NotImplemented:
                return found
        if len(args) > len(names) or not given.keys() <= set(names[len(args) :]):
            raise TypeError(f"{name}() takes input and {names}, received {args} and {given}")
        given.update(zip(names, args, strict=False))
        inplace = bool(given.pop("inplace", False))
        for key, value in given.items():
            found = number_of(value, name, key)
            given[key] = float(found) if isinstance(found, bool) else found
        bounds = [given.get("min_val", -1.0), given.get("max_val", 1.0)] if name == "hardtanh" else []
        low, high = bounds or (0, 6)  # of relu6
        if bounds and low > high:
            raise ValueError("min_val cannot be greater than max_val")
        x = _operand(input, name)

        def apply(x: Any) -> Any:
            if x._dtype.kind in "iu":  # of these PyTorch computes hardtanh and relu6 alone
                return _bounded(x, low, high)
            for bound in bounds:
                number(bound, x._dtype)
            if bounds and not low < high:  # one number, which is no interval, or nan
                return without_slope(made, full_like(x, low if low == high else math.nan), x)
            return call(core, made, x, **given)

        return write(x, apply) if inplace else apply(x)

    spelled.__name__ = spelled.__qualname__ = name
    known = [inspect.Parameter(n, _ONE, default=defaults.get(n, False)) for n in names]
    spelled.__signature__ = inspect.Signature([inspect.Parameter("input", _ONE), *known])  # type: ignore[attr-defined]
    ALL[name] = spelled
    if writes and name not in ("hardsigmoid", "hardswish", "mish", "silu", "relu6"):
        in_place: Any = lambda input, *args, **given: spelled(input, *args, **given, inplace=True)
        parameters = list(spelled.__signature__.parameters.values())  # type: ignore[attr-defined]
        in_place.__signature__ = inspect.Signature(parameters[:-1])
        ALL[name + "_"] = in_place


for _row in _TABLE.strip().splitlines():
    _declare(_row, True)
for _row in _OTHERS.strip().splitlines():
    _declare(_row, False)


def relu(input: Tensor, inplace: bool = False) -> Any:
    """max(x, 0)"""
    if input.__class__ is not Tensor:
        found = overriding.overridden(relu, (input,), {"inplace": inplace})
        if found is not NotImplemented:
            return found
    return tensor(input, "relu").relu_() if inplace else FUNCTIONS["relu"](input)


def relu_(input: Tensor) -> Any:
    return relu(tensor(input, "relu_"), True)


def sigmoid(input: Tensor) -> Any:
    return FUNCTIONS["sigmoid"](input if overriding.overrides(type(input)) else tensor(input, "sigmoid"))


def tanh(input: Tensor) -> Any:
    return FUNCTIONS["tanh"](input if overriding.overrides(type(input)) else tensor(input, "tanh"))


def glu(input: Tensor, dim: int = -1) -> Any:
    """The first half times the sigmoid of the second. Raises RuntimeError where the size is odd."""
    axis = axis_of(dim, real(input, "glu").ndim)
    if input.ndim and input.shape[axis] % 2:
        raise RuntimeError(f"Halving dimension must be even, but dimension {axis} is size {input.shape[axis]}")
    return call("nn.glu", "Glu", input, axis=axis)


def softplus(input: Tensor, beta: float = 1.0, threshold: float = 20.0) -> Any:
    """log(1 + exp(beta x)) / beta, and x where beta x is above the threshold."""
    return call(softplus_below, "Softplus", real(input, "softplus"), beta, threshold)


def threshold(input: Tensor, threshold: Number, value: Number, inplace: bool = False) -> Any:
    """x where it is above the threshold, else a value."""
    real(input, "threshold", integers=True)
    for setting in (threshold, value):
        check_size(setting)

    def apply(x: Any) -> Any:
        if x._dtype.kind in "iu":
            least, other = [int(number(n, x._dtype)) for n in (threshold, value)]
            return FUNCTIONS["where"](x > least, x, other)
        return call("nn.threshold", "Threshold", x, *[number(n, x._dtype).item() for n in (threshold, value)])

    return write(input, apply) if inplace else apply(input)


def threshold_(input: Tensor, threshold: Number, value: Number) -> Any:
    return _threshold(input, threshold, value, True)


_threshold = threshold


def prelu(input: Tensor, weight: Tensor) -> Any:
    """x, or weight times x where it is negative: one weight, or one for each channel, which is axis 1."""
    if weight.numel() != 1:
        channels = input.shape[1] if input.ndim > 1 else 1
        if weight.numel() != channels:
            raise RuntimeError(
                f"Mismatch of parameter numbers and input channel size. Found parameter numbers = {weight.numel()} and "
                f"channel size = {channels}."
            )
    return call("nn.prelu", "PreluKernel", real(input, "prelu"), weight)


def rrelu(
    input: Tensor, lower: float = 1.0 / 8, upper: float = 1.0 / 3, training: bool = False, inplace: bool = False
) -> Any:
    """As leaky_relu, with slopes drawn between two bounds in training, and their mean otherwise."""
    real(input, "rrelu")

    def apply(x: Any) -> Any:
        return drawing("nn.rrelu", "RreluWithNoise", x, lower, upper, training)

    return write(input, apply) if inplace else apply(input)


def rrelu_(input: Tensor, lower: float = 1.0 / 8, upper: float = 1.0 / 3, training: bool = False) -> Any:
    return rrelu(input, lower, upper, training, True)


def _axis(name: str, dim: int | None, x: Tensor) -> int:
    """The axis of a softmax, which PyTorch guesses where none is given."""
    if dim is not None:
        return dim
    warnings.warn(
        f"Implicit dimension choice for {name} has been deprecated. Change the call to include dim=X as an argument.",
        UserWarning,
        stacklevel=3,
    )
    return 0 if x.ndim in (0, 1, 3) else 1


def softmax(input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype: Any = None) -> Any:
    return FUNCTIONS["softmax"](input, _axis("softmax", dim, tensor(input, "softmax")), dtype=dtype)


def log_softmax(input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype: Any = None) -> Any:
    return FUNCTIONS["log_softmax"](input, _axis("log_softmax", dim, tensor(input, "log_softmax")), dtype=dtype)


def softmin(input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype: Any = None) -> Any:
    return FUNCTIONS["softmax"](FUNCTIONS["neg"](input), _axis("softmin", dim, tensor(input, "softmin")), dtype=dtype)


def gumbel_softmax(logits: Tensor, tau: float = 1, hard: Truth = False, eps: Any = 1e-10, dim: int = -1) -> Any:
    """Draws from a categorical distribution, smooth in its logits; with `hard` that is the backward pass alone."""
    axis = axis_of(dim, tensor(logits, "gumbel_softmax").ndim)
    return drawing("nn.gumbel_softmax", "Softmax", logits, tau, hard, axis)


def normalize(input: Tensor, p: float = 2.0, dim: int = 1, eps: float = 1e-12, out: Any = None) -> Any:
    """x over its p-norm along an axis, or over eps where that is more."""
    axis = axis_of(dim, tensor(input, "normalize").ndim)
    if not input.ndim:
        return into(out, normalize(input.reshape(1), p, 0, eps).reshape(()))
    return into(out, call("nn.normalize", "Div", input, p, axis, eps))


ALL.update({f.__name__: f for f in (relu, relu_, sigmoid, tanh)})
for _f in (
    glu, softplus, threshold, threshold_, prelu, rrelu, rrelu_, softmax, log_softmax, softmin, gumbel_softmax,
    normalize,
):  # fmt: skip
    ALL[_f.__name__] = guarded(_f)
