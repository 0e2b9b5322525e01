"""Products and convolutions."""

from __future__ import annotations

from adjoint import errors
from adjoint.primitives.table import CONTRACTION, Shape, broadcast_shapes, declare, same_dtype


def _matmul_shape(x: Shape, y: Shape) -> Shape:
    if len(x) < 2 or len(y) < 2 or x[-1] != y[-2]:
        raise errors.ShapeError(
            f"matmul: shapes {x} and {y} do not fit; the last axis of the left one and the last but one of the "
            "right one must be equal"
        )
    return (*broadcast_shapes(x[:-2], y[:-2]), x[-2], y[-1])


def conv_size(size: int, kernel: int, stride: int, padding: int, dilation: int) -> int:
    """How many places a kernel has along one axis of a convolution."""
    return (size + 2 * padding - dilation * (kernel - 1) - 1) // stride + 1


def _conv2d_shape(
    x: Shape,
    weight: Shape,
    *,
    stride: tuple[int, int],
    padding: tuple[int, int],
    dilation: tuple[int, int],
    groups: int,
) -> Shape:
    if len(x) != 4 or len(weight) != 4:
        raise errors.ShapeError(
            f"conv2d: expected x (batch, channels, height, width) and weight (out, channels / groups, height, "
            f"width), received {x} and {weight}"
        )
    if x[1] != weight[1] * groups or weight[0] % groups:
        raise errors.ShapeError(
            f"conv2d: {x[1]} input channels and weight {weight} do not fit {groups} groups: weight.shape[1] must "
            f"be channels / groups and weight.shape[0] divisible by groups"
        )
    sizes = tuple(conv_size(x[2 + i], weight[2 + i], stride[i], padding[i], dilation[i]) for i in range(2))
    if min(sizes) < 1:
        raise errors.ShapeError(f"conv2d: a kernel of {weight[2:]} does not fit images of {x[2:]} padded by {padding}")
    return (x[0], weight[0], *sizes)


_CONV = "stride padding dilation groups"
declare("matmul", CONTRACTION, "x y", shape=_matmul_shape, dtype=same_dtype)
declare("conv2d", CONTRACTION, "x weight", _CONV, shape=_conv2d_shape, dtype=same_dtype)
declare(
    "conv2d_input",
    CONTRACTION,
    "g weight",
    _CONV + " size",
    shape=lambda g, weight, *, size, groups, **_: (g[0], weight[1] * groups, *size),
    dtype=same_dtype,
)
declare(
    "conv2d_weight",
    CONTRACTION,
    "x g",
    _CONV + " size",
    shape=lambda x, g, *, size, groups, **_: (g[1], x[1] // groups, *size),
    dtype=same_dtype,
)
