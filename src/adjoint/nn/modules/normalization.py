"""Normalisations with weights. Arguments and initial values are PyTorch's."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from adjoint import errors
from adjoint.functions.arguments import as_flag, as_integer, integers
from adjoint.functions.creation import ones, zeros
from adjoint.module.base import Buffer, Module, check_state
from adjoint.nn import normalization as functions
from adjoint.nn.modules.linear import Key
from adjoint.tensor import Operand, Tensor


class BatchNorm(Module):
    """`ad.nn.batch_norm` of (batch, channels, ...): by the batch's statistics while training, then by the running ones.

    `apply` gives the running statistics, moved by `momentum`. For signals, images and volumes alike.

    >>> import adjoint as ad
    >>> layer = ad.nn.BatchNorm(2)
    >>> y, state = layer.apply(ad.ones((4, 2, 3)), layer.state())
    >>> y.shape, state.running_mean.tolist()
    ((4, 2, 3), [0.10000000149011612, 0.10000000149011612])
    """

    weight: Tensor[Any] | None
    bias: Tensor[Any] | None
    running_mean: Buffer
    running_var: Buffer
    eps: float
    momentum: float

    def __init__(
        self, num_features: int, eps: float = 1e-5, momentum: float = 0.1, affine: bool = True, *, dtype: Any = None,
        device: Any = None,
    ) -> None:  # fmt: skip
        size = as_integer(num_features, "BatchNorm", "num_features", 0)
        affine = as_flag(affine, "BatchNorm", "affine")
        self.weight = ones(size, dtype=dtype, device=device) if affine else None
        self.bias = zeros(size, dtype=dtype, device=device) if affine else None
        self.running_mean = zeros(size, dtype=dtype, device=device)
        self.running_var = ones(size, dtype=dtype, device=device)
        self.eps, self.momentum = eps, momentum

    def __call__(self, x: Operand[Any], *, key: Key = None) -> Tensor[Any]:
        return self._normalized(x, self)

    def apply(self, x: Tensor[Any], state: Any, *, key: Key = None) -> tuple[Tensor[Any], Any]:
        check_state(self, state)
        out = self._normalized(x, state)
        if not self.training:
            return out, state
        mean, var = functions.running_statistics(x, state.running_mean, state.running_var, self.momentum)
        return out, state.at("running_mean").set(mean).at("running_var").set(var)

    def _normalized(self, x: Operand[Any], state: Any) -> Tensor[Any]:
        mean, var = state.running_mean, state.running_var
        return functions.batch_norm(x, mean, var, self.weight, self.bias, training=self.training, eps=self.eps)


class LayerNorm(Module):
    """`ad.nn.layer_norm` over the last axes, which have the shape `normalized_shape`.

    >>> import adjoint as ad
    >>> ad.nn.LayerNorm(3)(ad.tensor([[1.0, 2.0, 3.0]])).round(3).tolist()
    [[-1.225000023841858, 0.0, 1.225000023841858]]
    """

    weight: Tensor[Any] | None
    bias: Tensor[Any] | None
    normalized_shape: tuple[int, ...]
    eps: float

    def __init__(
        self, normalized_shape: int | Sequence[int], eps: float = 1e-5, elementwise_affine: bool = True,
        bias: bool = True, *, dtype: Any = None, device: Any = None,
    ) -> None:  # fmt: skip
        shape = integers(normalized_shape, "LayerNorm", "the sizes in normalized_shape")
        elementwise_affine = as_flag(elementwise_affine, "LayerNorm", "elementwise_affine")
        bias = as_flag(bias, "LayerNorm", "bias") and elementwise_affine
        self.weight = ones(shape, dtype=dtype, device=device) if elementwise_affine else None
        self.bias = zeros(shape, dtype=dtype, device=device) if bias else None
        self.normalized_shape, self.eps = shape, eps

    def __call__(self, x: Operand[Any], *, key: Key = None) -> Tensor[Any]:
        return functions.layer_norm(x, self.normalized_shape, self.weight, self.bias, self.eps)


class RMSNorm(Module):
    """`ad.nn.rms_norm` over the last axes, which have the shape `normalized_shape`."""

    weight: Tensor[Any] | None
    normalized_shape: tuple[int, ...]
    eps: float | None

    def __init__(
        self, normalized_shape: int | Sequence[int], eps: float | None = None, elementwise_affine: bool = True, *,
        dtype: Any = None, device: Any = None,
    ) -> None:  # fmt: skip
        shape = integers(normalized_shape, "RMSNorm", "the sizes in normalized_shape")
        elementwise_affine = as_flag(elementwise_affine, "RMSNorm", "elementwise_affine")
        self.weight = ones(shape, dtype=dtype, device=device) if elementwise_affine else None
        self.normalized_shape, self.eps = shape, eps

    def __call__(self, x: Operand[Any], *, key: Key = None) -> Tensor[Any]:
        return functions.rms_norm(x, self.normalized_shape, self.weight, self.eps)


class GroupNorm(Module):
    """`ad.nn.group_norm` of (batch, num_channels, ...), by groups of channels.

    >>> import adjoint as ad
    >>> ad.nn.GroupNorm(2, 4)(ad.ones((3, 4, 5))).shape
    (3, 4, 5)
    """

    weight: Tensor[Any] | None
    bias: Tensor[Any] | None
    num_groups: int
    eps: float

    def __init__(
        self, num_groups: int, num_channels: int, eps: float = 1e-5, affine: bool = True, *, dtype: Any = None,
        device: Any = None,
    ) -> None:  # fmt: skip
        groups, channels = (as_integer(n, "GroupNorm", "a number", 1) for n in (num_groups, num_channels))
        if channels % groups:
            raise errors.ArgumentError(f"GroupNorm: {channels} channels do not fall into {groups} equal groups")
        affine = as_flag(affine, "GroupNorm", "affine")
        self.weight = ones(channels, dtype=dtype, device=device) if affine else None
        self.bias = zeros(channels, dtype=dtype, device=device) if affine else None
        self.num_groups, self.eps = groups, eps

    def __call__(self, x: Operand[Any], *, key: Key = None) -> Tensor[Any]:
        return functions.group_norm(x, self.num_groups, self.weight, self.bias, self.eps)


class InstanceNorm(Module):
    """`ad.nn.instance_norm` of (batch, channels, ...): each channel of each example by its own statistics.

    With `track_running_stats` these are used while training alone, and then the running ones, which `apply` gives,
    moved by `momentum` towards the means over the batch.

    >>> import adjoint as ad
    >>> ad.nn.InstanceNorm(4)(ad.ones((3, 4, 5))).shape
    (3, 4, 5)
    """

    weight: Tensor[Any] | None
    bias: Tensor[Any] | None
    running_mean: Buffer
    running_var: Buffer
    eps: float
    momentum: float

    def __init__(
        self, num_features: int, eps: float = 1e-5, affine: bool = False, *, momentum: float = 0.1,
        track_running_stats: bool = False, dtype: Any = None, device: Any = None,
    ) -> None:  # fmt: skip
        size = as_integer(num_features, "InstanceNorm", "num_features", 0)
        affine = as_flag(affine, "InstanceNorm", "affine")
        self.weight = ones(size, dtype=dtype, device=device) if affine else None
        self.bias = zeros(size, dtype=dtype, device=device) if affine else None
        start: list[Any] = [None, None]
        if as_flag(track_running_stats, "InstanceNorm", "track_running_stats"):
            start = [kind(size, dtype=dtype, device=device) for kind in (zeros, ones)]
        self.running_mean, self.running_var = start
        self.eps, self.momentum = eps, momentum

    def __call__(self, x: Operand[Any], *, key: Key = None) -> Tensor[Any]:
        return self._normalized(x, self)

    def apply(self, x: Tensor[Any], state: Any, *, key: Key = None) -> tuple[Tensor[Any], Any]:
        check_state(self, state)
        out = self._normalized(x, state)
        if not self.training or state.running_mean is None:
            return out, state
        before = state.running_mean, state.running_var
        mean, var = functions.running_statistics(x, *before, self.momentum, of_batch=False)
        return out, state.at("running_mean").set(mean).at("running_var").set(var)

    def _normalized(self, x: Operand[Any], state: Any) -> Tensor[Any]:
        mean, var = state.running_mean, state.running_var
        own = self.training or mean is None
        how: dict[str, Any] = {"weight": self.weight, "bias": self.bias, "use_input_stats": own, "eps": self.eps}
        return functions.instance_norm(x, running_mean=mean, running_var=var, **how)
