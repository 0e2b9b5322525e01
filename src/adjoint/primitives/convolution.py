"""Convolutions."""

from __future__ import annotations

import functools

from adjoint import errors
from adjoint.primitives.table import CONTRACTION, Shape, broadcast_shapes, declare, same_dtype


def _convolve_shape(a: Shape, v: Shape, *, full: bool) -> Shape:
    if not a or not v or not a[-1] or not v[-1]:
        raise errors.ShapeError(f"convolve: expected at least one element along an axis, received shapes {a} and {v}")
    n, m = a[-1], v[-1]
    if not full and n < m:
        raise errors.ShapeError(f"convolve: without a border {m} elements do not fit into {n}")
    return (*broadcast_shapes(a[:-1], v[:-1]), n + m - 1 if full else n - m + 1)


# sums of a[k - j] v[j] along the last axes: where one of them is inside, or all of the shorter v
declare("convolve", CONTRACTION, "a v", "full", shape=_convolve_shape, dtype=same_dtype)


Pair = tuple[int, int]


def conv_size(size: int, kernel: int, stride: int, padding: Pair, dilation: int) -> int:
    """How many places a kernel has along one axis that is padded by so much before and after."""
    return (size + sum(padding) - dilation * (kernel - 1) - 1) // stride + 1


def conv_shape(
    x: Shape,
    weight: Shape,
    *,
    stride: Shape,
    padding: tuple[Pair, ...],
    dilation: Shape,
    groups: int,
    name: str = "conv",
    least: int = 1,
) -> Shape:
    """The shape of a convolution's result; raises, by the name of the function, where operands do not fit.

    An image with no place for the kernel does not, but in the derivative of a transpose of nothing: `least` is 0.
    """
    axes = len(stride)
    if len(x) != axes + 2 or len(weight) != axes + 2:
        each = ", ".join(("depth", "height", "width")[-axes:]) if axes <= 3 else f"{axes} sizes"
        raise errors.ShapeError(
            f"{name}: expected x (batch, channels, {each}) and weight (out, channels / groups, {each}), received "
            f"{x} and {weight}"
        )
    if x[1] != weight[1] * groups or weight[0] % groups:
        raise errors.ShapeError(
            f"{name}: {x[1]} input channels and weight {weight} do not fit {groups} groups: weight.shape[1] must "
            f"be channels / groups and weight.shape[0] divisible by groups"
        )
    sizes = tuple(map(conv_size, x[2:], weight[2:], stride, padding, dilation))
    if min(sizes) < least:
        raise errors.ShapeError(f"{name}: a kernel of {weight[2:]} does not fit images of {x[2:]} padded by {padding}")
    return (x[0], weight[0], *sizes)


_CONV = "stride padding dilation groups"  # padding is a pair (before, after) for each axis of the images


declare("conv", CONTRACTION, "x weight", _CONV, shape=functools.partial(conv_shape, least=0), dtype=same_dtype)


declare(
    "conv_input",
    CONTRACTION,
    "g weight",
    _CONV + " size",
    shape=lambda g, weight, *, size, groups, **_: (g[0], weight[1] * groups, *size),
    dtype=same_dtype,
)


declare(
    "conv_weight",
    CONTRACTION,
    "x g",
    _CONV + " size",
    shape=lambda x, g, *, size, groups, **_: (g[1], x[1] // groups, *size),
    dtype=same_dtype,
)
