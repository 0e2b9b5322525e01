"""`torch.nn.init`: first values of parameters, written over them without history."""

from __future__ import annotations

import math
import warnings
from typing import Any

import numpy as np

import adjoint as ad
from adjoint.torch import creation, generators
from adjoint.torch.arguments import guarded
from adjoint.torch.calls import call
from adjoint.torch.nn.functional.shared import drawing
from adjoint.torch.state import no_grad
from adjoint.torch.tensor import Tensor
from adjoint.torch.tensor import constant as of_array

_GAINS = {"tanh": 5.0 / 3, "relu": math.sqrt(2.0), "selu": 3.0 / 4}


def calculate_gain(nonlinearity: str, param: Any = None) -> float:
    """By how much weights before a nonlinearity are larger, so that variances stay.

    >>> import adjoint.torch as torch
    >>> torch.nn.init.calculate_gain("relu") == 2**0.5
    True
    """
    linear = ["linear", "sigmoid", *[f"conv{t}{n}d" for t in ("", "_transpose") for n in (1, 2, 3)]]
    if not isinstance(nonlinearity, str):
        raise ValueError(f"Unsupported nonlinearity {nonlinearity}")
    if nonlinearity in linear:
        return 1.0
    if nonlinearity == "leaky_relu":
        if param is not None and (isinstance(param, bool) or not isinstance(param, (int, float))):
            raise ValueError(f"negative_slope {param} not a valid number")
        return math.sqrt(2.0 / (1 + (0.01 if param is None else param) ** 2))
    if nonlinearity not in _GAINS:
        raise ValueError(f"Unsupported nonlinearity {nonlinearity}")
    return _GAINS[nonlinearity]


def _calculate_fan_in_and_fan_out(tensor: Tensor) -> tuple[int, int]:
    if tensor.ndim < 2:
        raise ValueError("Fan in and fan out can not be computed for tensor with fewer than 2 dimensions")
    field = math.prod(tensor.shape[2:])
    return tensor.shape[1] * field, tensor.shape[0] * field


def _filled(tensor: Any, made: Any) -> Any:
    with no_grad():
        return tensor.copy_(made)


@guarded
def uniform_(tensor: Tensor, a: float = 0.0, b: float = 1.0, generator: Any = None) -> Any:
    """Fill with numbers between two bounds."""
    with no_grad():
        return tensor.uniform_(a, b, generator=generator)


@guarded
def normal_(tensor: Tensor, mean: float = 0.0, std: float = 1.0, generator: Any = None) -> Any:
    """Fill with normal numbers."""
    with no_grad():
        return tensor.normal_(mean, std, generator=generator)


@guarded
def trunc_normal_(
    tensor: Tensor, mean: float = 0.0, std: float = 1.0, a: float = -2.0, b: float = 2.0, generator: Any = None
) -> Any:
    """Fill with normal numbers that are drawn until they lie between a and b."""
    shape = tuple(tensor.shape)
    made = drawing(lambda: ad.nn.init.truncated_normal(shape, mean, std, a, b), None, generator=generator)
    return _filled(tensor, made)


@guarded
def constant_(tensor: Tensor, val: float) -> Any:
    """Fill with a value."""
    with no_grad():
        return tensor.fill_(val)


@guarded
def ones_(tensor: Tensor) -> Any:
    return constant_(tensor, 1.0)


@guarded
def zeros_(tensor: Tensor) -> Any:
    return constant_(tensor, 0.0)


@guarded
def eye_(tensor: Tensor) -> Any:
    """Fill a matrix with the identity."""
    if tensor.ndim != 2:
        raise ValueError("Only tensors with 2 dimensions are supported")
    return _filled(tensor, creation.eye(*tensor.shape))


@guarded
def dirac_(tensor: Tensor, groups: int = 1) -> Any:
    """Fill a convolution's weight so that channels stay what they are, as far as there are as many."""
    if tensor.ndim not in (3, 4, 5):
        raise ValueError("Only tensors with 3, 4, or 5 dimensions are supported")
    shape = tuple(tensor.shape)
    if shape[0] % groups:
        raise ValueError("dim 0 must be divisible by groups")
    made = np.zeros(shape)
    outputs = shape[0] // groups
    centre = tuple([n // 2 for n in shape[2:]])
    for group in range(groups):
        for channel in range(min(outputs, shape[1])):
            made[(group * outputs + channel, channel, *centre)] = 1.0
    return _filled(tensor, of_array(made))


@guarded
def xavier_uniform_(tensor: Tensor, gain: float = 1.0, generator: Any = None) -> Any:
    """Fill with numbers of variance 2 gain^2 / (fan_in + fan_out). X. Glorot, Y. Bengio (2010)."""
    bound = gain * math.sqrt(6.0 / sum(_calculate_fan_in_and_fan_out(tensor)))
    return uniform_(tensor, -bound, bound, generator)


@guarded
def xavier_normal_(tensor: Tensor, gain: float = 1.0, generator: Any = None) -> Any:
    """The same, of normal numbers."""
    return normal_(tensor, 0.0, gain * math.sqrt(2.0 / sum(_calculate_fan_in_and_fan_out(tensor))), generator)


def _kaiming_std(tensor: Any, a: Any, mode: Any, nonlinearity: Any) -> float:
    mode = mode.lower()
    if mode not in ("fan_in", "fan_out"):
        raise ValueError(f"Mode {mode} not supported, please use one of ['fan_in', 'fan_out']")
    fan = _calculate_fan_in_and_fan_out(tensor)[mode == "fan_out"]
    return calculate_gain(nonlinearity, a) / math.sqrt(fan)


@guarded
def kaiming_uniform_(
    tensor: Tensor, a: Any = 0, mode: Any = "fan_in", nonlinearity: Any = "leaky_relu", generator: Any = None
) -> Any:
    """Fill with numbers of variance gain^2 / fan. K. He et al. (2015)."""
    if 0 in tensor.shape:
        warnings.warn("Initializing zero-element tensors is a no-op", stacklevel=2)
        return tensor
    bound = math.sqrt(3.0) * _kaiming_std(tensor, a, mode, nonlinearity)
    return uniform_(tensor, -bound, bound, generator)


@guarded
def kaiming_normal_(
    tensor: Tensor, a: Any = 0, mode: Any = "fan_in", nonlinearity: Any = "leaky_relu", generator: Any = None
) -> Any:
    """The same, of normal numbers."""
    if 0 in tensor.shape:
        warnings.warn("Initializing zero-element tensors is a no-op", stacklevel=2)
        return tensor
    return normal_(tensor, 0.0, _kaiming_std(tensor, a, mode, nonlinearity), generator)


@guarded
def orthogonal_(tensor: Tensor, gain: float = 1, generator: Any = None) -> Any:
    """Fill with an orthogonal matrix, or with its rows or columns. A. Saxe et al. (2014)."""
    if tensor.ndim < 2:
        raise ValueError("Only tensors with 2 or more dimensions are supported")
    if not tensor.numel():
        return tensor
    rows = tensor.shape[0]
    shape = rows, tensor.numel() // rows
    made = drawing(lambda: ad.nn.init.orthogonal(shape, gain), None, generator=generator)
    return _filled(tensor, call("reshape", None, made, tuple(tensor.shape)))


@guarded
def sparse_(tensor: Tensor, sparsity: float, std: float = 0.01, generator: Any = None) -> Any:
    """Fill with normal numbers, and with zeros in a part of each column. J. Martens (2010)."""
    if tensor.ndim != 2:
        raise ValueError("Only tensors with 2 dimensions are supported")
    rows, columns = tensor.shape
    source = generators.source(generator)
    made = source.normal(0.0, std, (rows, columns))
    for column in range(columns):
        made[source.permutation(rows)[: math.ceil(sparsity * rows)], column] = 0.0
    return _filled(tensor, of_array(made))


def _renamed(function: Any) -> Any:
    """The function by its name of years ago, which warns."""
    now = function.__name__

    def old(*args: Any, **options: Any) -> Any:
        warnings.warn(
            f"`nn.init.{now[:-1]}` is now deprecated in favor of `nn.init.{now}`.", FutureWarning, stacklevel=2
        )
        return function(*args, **options)

    old.__name__ = old.__qualname__ = now[:-1]
    return old


uniform, normal, constant, eye, dirac = map(_renamed, (uniform_, normal_, constant_, eye_, dirac_))
xavier_uniform, xavier_normal = map(_renamed, (xavier_uniform_, xavier_normal_))
kaiming_uniform, kaiming_normal = map(_renamed, (kaiming_uniform_, kaiming_normal_))
orthogonal, sparse = map(_renamed, (orthogonal_, sparse_))
