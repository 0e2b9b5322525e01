"""Convolutions with weights. Arguments and initial values are PyTorch's."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, ClassVar

from adjoint import errors
from adjoint.functions.arguments import as_flag, as_integer
from adjoint.module.base import Module
from adjoint.nn import convolution as functions
from adjoint.nn.modules.linear import Key, within
from adjoint.tensor import Operand, Tensor

Sizes = int | tuple[int, ...]


class _Convolution(Module):
    """Weight, bias and settings of a convolution, which the function takes by the names of the fields."""

    weight: Tensor[Any]
    bias: Tensor[Any] | None
    axes: ClassVar[int]
    convolve: ClassVar[Callable[..., Any]]
    transposed: ClassVar[bool] = False  # the weight has inputs before outputs

    def _start(
        self, in_channels: int, out_channels: int, kernel_size: Sizes, groups: int, bias: bool, dtype: Any, device: Any
    ) -> int:
        """Draw weight and bias; the number of groups."""
        name = type(self).__name__
        inputs, outputs, parts = _channels(name, in_channels, out_channels, groups)
        first, second = (inputs, outputs) if self.transposed else (outputs, inputs)
        shape = (first, second // parts, *_kernel(name, kernel_size, self.axes))
        fan = math.prod(shape[1:])
        self.weight = within(fan, shape, dtype, device)
        self.bias = within(fan, (outputs,), dtype, device) if as_flag(bias, name, "bias") else None
        return parts

    def __call__(self, x: Operand[Any], *, key: Key = None) -> Tensor[Any]:
        how = {name: getattr(self, name) for name in self._fields[2:]}
        return type(self).convolve(x, self.weight, self.bias, **how)  # type: ignore[no-any-return]


class _Conv(_Convolution):
    stride: Sizes
    padding: Sizes | str
    dilation: Sizes
    groups: int

    def __init__(
        self, in_channels: int, out_channels: int, kernel_size: Sizes, stride: Sizes = 1, padding: Sizes | str = 0,
        dilation: Sizes = 1, groups: int = 1, bias: bool = True, *, dtype: Any = None, device: Any = None,
    ) -> None:  # fmt: skip
        self.groups = self._start(in_channels, out_channels, kernel_size, groups, bias, dtype, device)
        self.stride, self.padding, self.dilation = stride, padding, dilation


class Conv1d(_Conv, init=False):
    """`ad.nn.conv1d` of (batch, in_channels, length), with a weight (out_channels, in_channels / groups, size).

    Weight and bias start uniform within 1 / sqrt(in_channels / groups * size).

    >>> import adjoint as ad
    >>> ad.nn.Conv1d(2, 5, 3, padding=1)(ad.ones((4, 2, 8))).shape
    (4, 5, 8)
    """

    axes: ClassVar[int] = 1
    convolve: ClassVar[Callable[..., Any]] = staticmethod(functions.conv1d)


class Conv2d(_Conv, init=False):
    """`Conv1d` of images (batch, in_channels, height, width).

    >>> import adjoint as ad
    >>> ad.nn.Conv2d(1, 4, 3, stride=2)(ad.ones((2, 1, 9, 9))).shape
    (2, 4, 4, 4)
    """

    axes: ClassVar[int] = 2
    convolve: ClassVar[Callable[..., Any]] = staticmethod(functions.conv2d)


class Conv3d(_Conv, init=False):
    """`Conv1d` of volumes (batch, in_channels, depth, height, width)."""

    axes: ClassVar[int] = 3
    convolve: ClassVar[Callable[..., Any]] = staticmethod(functions.conv3d)


class _ConvTranspose(_Convolution):
    stride: Sizes
    padding: Sizes
    output_padding: Sizes
    groups: int
    dilation: Sizes
    transposed = True

    def __init__(
        self, in_channels: int, out_channels: int, kernel_size: Sizes, stride: Sizes = 1, padding: Sizes = 0,
        output_padding: Sizes = 0, groups: int = 1, bias: bool = True, dilation: Sizes = 1, *, dtype: Any = None,
        device: Any = None,
    ) -> None:  # fmt: skip
        self.groups = self._start(in_channels, out_channels, kernel_size, groups, bias, dtype, device)
        self.stride, self.padding, self.output_padding, self.dilation = stride, padding, output_padding, dilation


class ConvTranspose1d(_ConvTranspose, init=False):
    """`ad.nn.conv_transpose1d`, with a weight (in_channels, out_channels / groups, size).

    Weight and bias start uniform within 1 / sqrt(out_channels / groups * size).

    >>> import adjoint as ad
    >>> ad.nn.ConvTranspose1d(2, 5, 2, stride=2)(ad.ones((4, 2, 8))).shape
    (4, 5, 16)
    """

    axes: ClassVar[int] = 1
    convolve: ClassVar[Callable[..., Any]] = staticmethod(functions.conv_transpose1d)


class ConvTranspose2d(_ConvTranspose, init=False):
    """`ConvTranspose1d` of images."""

    axes: ClassVar[int] = 2
    convolve: ClassVar[Callable[..., Any]] = staticmethod(functions.conv_transpose2d)


class ConvTranspose3d(_ConvTranspose, init=False):
    """`ConvTranspose1d` of volumes."""

    axes: ClassVar[int] = 3
    convolve: ClassVar[Callable[..., Any]] = staticmethod(functions.conv_transpose3d)


class DeformConv2d(_Convolution):
    """`ad.nn.deform_conv2d`, whose offsets and mask are given with x, as in torchvision; another layer makes them.

    >>> import adjoint as ad
    >>> offset = ad.nn.Conv2d(3, 2 * 3 * 3, 3)
    >>> x = ad.ones((1, 3, 8, 8))
    >>> ad.nn.DeformConv2d(3, 5, 3)(x, offset(x)).shape
    (1, 5, 6, 6)
    """

    stride: Sizes
    padding: Sizes
    dilation: Sizes
    axes: ClassVar[int] = 2
    convolve: ClassVar[Callable[..., Any]] = staticmethod(functions.deform_conv2d)

    def __init__(
        self, in_channels: int, out_channels: int, kernel_size: Sizes, stride: Sizes = 1, padding: Sizes = 0,
        dilation: Sizes = 1, groups: int = 1, bias: bool = True, *, dtype: Any = None, device: Any = None,
    ) -> None:  # fmt: skip
        self._start(in_channels, out_channels, kernel_size, groups, bias, dtype, device)
        self.stride, self.padding, self.dilation = stride, padding, dilation

    def __call__(  # type: ignore[override]
        self, x: Operand[Any], offset: Operand[Any], mask: Operand[Any] | None = None, *, key: Key = None
    ) -> Tensor[Any]:
        how = {"stride": self.stride, "padding": self.padding, "dilation": self.dilation, "mask": mask}
        return functions.deform_conv2d(x, offset, self.weight, self.bias, **how)  # type: ignore[arg-type]


def _channels(name: str, inputs: Any, outputs: Any, groups: Any) -> tuple[int, int, int]:
    found = [as_integer(n, name, what, 1) for n, what in ((inputs, "in_channels"), (outputs, "out_channels"))]
    parts = as_integer(groups, name, "groups", 1)
    if found[0] % parts or found[1] % parts:
        raise errors.ArgumentError(f"{name}: {found[0]} and {found[1]} channels do not fall into {parts} equal groups")
    return found[0], found[1], parts


def _kernel(name: str, size: Any, axes: int) -> tuple[int, ...]:
    sizes = tuple(size) if isinstance(size, (tuple, list)) else (size,) * axes
    if len(sizes) != axes:
        raise errors.ArgumentError(f"{name}: kernel_size is one size or {axes}, received {errors.shown(size)}")
    return tuple(as_integer(n, name, "a kernel size", 1) for n in sizes)
