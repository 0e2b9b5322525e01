"""Layers as modules, with PyTorch's names, arguments and initial values."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from adjoint.functions.arguments import check_callable
from adjoint.functions.creation import ones, zeros
from adjoint.module import Buffer, Module
from adjoint.nn.layers import dropout, linear
from adjoint.nn.normalization import batch_norm, running_statistics
from adjoint.random import uniform
from adjoint.tensor import Tensor


class Linear(Module):
    """`x @ weight.mT + bias`, for x of shape (..., in_features).

    weight (out_features, in_features) and bias (out_features,) are uniform within 1 / sqrt(in_features).

    >>> import adjoint as ad
    >>> ad.nn.Linear(3, 2)(ad.ones((5, 3))).shape
    (5, 2)
    """

    weight: Tensor[Any]
    bias: Tensor[Any] | None

    def __init__(
        self, in_features: int, out_features: int, bias: bool = True, *, dtype: Any = None, device: Any = None
    ):
        bound = 1 / math.sqrt(in_features) if in_features else 0.0
        shapes = (out_features, in_features), (out_features,)
        self.weight = uniform(shapes[0], low=-bound, high=bound, dtype=dtype, device=device)
        self.bias = uniform(shapes[1], low=-bound, high=bound, dtype=dtype, device=device) if bias else None

    def __call__(self, x: Tensor[Any], *, key: int | None = None) -> Tensor[Any]:
        return linear(x, self.weight, self.bias)


class Lambda(Module):
    """A function as a module: `Lambda(ad.nn.relu)`."""

    function: Callable[..., Any]

    def __call__(self, x: Any, *, key: int | None = None) -> Any:
        return self.function(x)


class Sequential(Module):
    """Modules and functions, each applied to what the one before gives.

    >>> import adjoint as ad
    >>> model = ad.nn.Sequential(ad.nn.Linear(3, 8), ad.nn.relu, ad.nn.Linear(8, 1))
    >>> model(ad.ones((2, 3))).shape
    (2, 1)
    """

    layers: tuple[Any, ...]

    def __init__(self, *layers: Any) -> None:
        for layer in layers:
            check_callable("Sequential", layer, "a layer")
        self.layers = layers

    def __call__(self, x: Any, *, key: int | None = None) -> Any:
        for layer in self.layers:
            x = layer(x, key=key) if isinstance(layer, Module) else layer(x)
        return x

    def apply(self, x: Any, state: Any, key: int | None = None) -> tuple[Any, Any]:
        after = []
        for layer, before in zip(self.layers, state.layers, strict=True):
            x, new = layer.apply(x, before, key) if isinstance(layer, Module) else (layer(x), before)
            after.append(new)
        return x, state.at("layers").set(tuple(after))


class Dropout(Module):
    """`ad.nn.dropout` while the module is `training`."""

    p: float = 0.5

    def __call__(self, x: Tensor[Any], *, key: int | None = None) -> Tensor[Any]:
        return dropout(x, self.p, self.training)


class BatchNorm(Module):
    """`ad.nn.batch_norm` of (batch, channels, ...): by the batch's statistics while training, then by the running ones.

    `apply` gives the running statistics moved by `momentum`.
    """

    weight: Tensor[Any]
    bias: Tensor[Any]
    running_mean: Buffer
    running_var: Buffer
    eps: float
    momentum: float

    def __init__(
        self, num_features: int, eps: float = 1e-5, momentum: float = 0.1, *, dtype: Any = None, device: Any = None
    ):
        self.weight = ones(num_features, dtype=dtype, device=device)
        self.bias = zeros(num_features, dtype=dtype, device=device)
        self.running_mean = zeros(num_features, dtype=dtype, device=device)
        self.running_var = ones(num_features, dtype=dtype, device=device)
        self.eps, self.momentum = eps, momentum

    def __call__(self, x: Tensor[Any], *, key: int | None = None) -> Tensor[Any]:
        return self._normalized(x, self)

    def apply(self, x: Tensor[Any], state: Any, key: int | None = None) -> tuple[Tensor[Any], Any]:
        out = self._normalized(x, state)
        if not self.training:
            return out, state
        mean, var = running_statistics(x, state.running_mean, state.running_var, self.momentum)
        return out, state.at("running_mean").set(mean).at("running_var").set(var)

    def _normalized(self, x: Tensor[Any], state: Any) -> Tensor[Any]:
        mean, var = state.running_mean, state.running_var
        return batch_norm(x, mean, var, self.weight, self.bias, training=self.training, eps=self.eps)
