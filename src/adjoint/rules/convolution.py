"""Convolutions."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from adjoint.primitives import Primitive, Shape
from adjoint.rules.batching import BatchingRule, all_with_axis, count_of, in_stacks, one_of
from adjoint.rules.records import Bilinear, Record
from adjoint.rules.sparsity import Call, Pattern, along, matrix, numbered, rows_at, union


def _flip(B: Any, x: Any) -> Any:
    return B.flip(x, axis=(len(x.shape) - 1,))


def _convolve_v(B: Any, g: Any, a: Any, full: bool) -> Any:
    return B.convolve(g, _flip(B, a), full=False) if full else B.convolve(_flip(B, a), g, full=False)


def _convolve_sparsity(call: Call) -> Pattern:
    """Each element depends on as many of an operand as fit, counted back from its place."""
    full, out = call.parameters["full"], numbered(call.shape)
    sizes = [call.shape_of(i)[-1] for i in range(2)]
    place = np.arange(call.shape[-1]) + (0 if full else sizes[1] - 1)
    parts = []
    for i, pattern in enumerate(call.patterns):
        if pattern is not None:
            shape = (*call.shape[:-1], sizes[i])
            steps = place[:, None] - np.arange(sizes[i])  # which element of the other operand stands beside one of this
            there, element = np.nonzero((steps >= 0) & (steps < sizes[1 - i]))
            seen = matrix(out[..., there], numbered(shape)[..., element], (out.size, math.prod(shape)))
            parts.append(seen @ along(pattern, call.shape_of(i), (), shape))
    return union(parts)


def _conv(stride: Any, padding: Any, dilation: Any, groups: Any) -> dict[str, Any]:
    return {"stride": stride, "padding": padding, "dilation": dilation, "groups": groups}


def _merged(B: Any, x: Any, axis: int) -> Any:
    """The axis of examples taken into another axis, counted without it; examples count slowest."""
    rest = [i for i in range(1, len(x.shape)) if i != axis + 1]
    order = sorted([*rest, axis + 1])
    order.insert(order.index(axis + 1), 0)
    shape = list(x.shape[1:])
    shape[axis] *= x.shape[0]
    return B.reshape(B.permute_dims(x, axes=tuple(order)), shape=tuple(shape))


def _split(B: Any, x: Any, axis: int, size: int) -> Any:
    """The inverse of `_merged`."""
    shape = list(x.shape)
    shape[axis : axis + 1] = [size, shape[axis] // size]
    out = B.reshape(x, shape=tuple(shape))
    order = [axis, *[i for i in range(len(shape)) if i != axis]]
    return B.permute_dims(out, axes=tuple(order))


def _convolution(x: int, y: int, out: int, *, shared: bool) -> BatchingRule:
    """Other images for each example are more images; other kernels are more groups of channels.

    `x`, `y` and `out` are the axes of the operands and of the result that count the channels which groups divide;
    `shared` says that the second operand is a kernel, which all examples may share.
    """

    def rule(B: Any, primitive: Primitive, values: list[Any], flags: list[bool], parameters: dict[str, Any]) -> Any:
        run, size = B[primitive], count_of(values, flags)
        if size == 0:
            one = primitive.shape(*one_of(values, flags), **parameters)
            return B.full(shape=(0, *one), value=0, dtype=B.dtype_of(values[0]))
        if shared and flags == [True, False]:
            return _split(B, run(_merged(B, values[0], 0), values[1], **parameters), 0, size)
        merged = [_merged(B, v, axis) for v, axis in zip(all_with_axis(B, values, flags), (x, y), strict=True)]
        return _split(B, run(*merged, **{**parameters, "groups": parameters["groups"] * size}), out, size)

    return rule


def _seen(image: Shape, weight: Shape, out: Shape, parameters: dict[str, Any]) -> Pattern:
    """Which elements of images each element of a convolution sees: (out elements, image elements)."""
    groups, axes = parameters["groups"], len(image) - 2
    shape = (*out, *weight[1:])  # example, channel of the result, places, channel in the group, offsets
    example, made, *rest = np.ogrid[tuple(map(slice, shape))]
    channel = rest[axes] + made // max(1, out[1] // groups) * weight[1]
    inside = np.ones(shape, dtype=np.bool_)
    seen = example * image[1] + channel
    for i, size in enumerate(image[2:]):
        at = rest[i] * parameters["stride"][i] + rest[axes + 1 + i] * parameters["dilation"][i]
        at = at - parameters["padding"][i][0]
        inside &= (at >= 0) & (at < size)
        seen = seen * size + at
    made_by = np.broadcast_to(numbered(out)[(..., *[None] * (axes + 1))], shape)
    return matrix(made_by[inside], np.broadcast_to(seen, shape)[inside], (math.prod(out), math.prod(image)))


def _conv_sparsity(call: Call) -> Pattern:
    """Windows of the images, and all of the kernel that makes a channel."""
    x, weight = call.patterns
    parts = []
    if x is not None:
        parts.append(_seen(call.shape_of(0), call.shape_of(1), call.shape, call.parameters) @ x)
    if weight is not None:
        made, *rest = call.shape_of(1)
        ones = [1] * len(rest)
        kernels = along(weight, (made, *rest), range(1, len(rest) + 1), (made, *ones))
        parts.append(along(kernels, (made, *ones[1:]), (), call.shape))
    return union(parts)


def _conv_input_sparsity(call: Call) -> Pattern:
    """The transpose of what a convolution sees, and all the kernels of a channel's group."""
    g, weight = call.patterns
    parts = []
    if g is not None:
        parts.append(_seen(call.shape, call.shape_of(1), call.shape_of(0), call.parameters).T.tocsr() @ g)
    if weight is not None:
        groups, (made, size, *kernel) = call.parameters["groups"], call.shape_of(1)
        others = (1, *range(3, 3 + len(kernel)))
        channels = along(weight, (groups, made // groups, size, *kernel), others, (groups * size,))
        parts.append(along(channels, (groups * size, *[1] * len(kernel)), (), call.shape))
    return union(parts)


def _conv_weight_sparsity(call: Call) -> Pattern:
    """Of a kernel, its channel of all images and its channel of all results."""
    x, g = call.patterns
    groups, (made, size, *kernel) = call.parameters["groups"], call.shape
    others, ones = (0, *range(2, 2 + len(kernel))), [1] * len(kernel)
    parts = []
    if x is not None:
        channels = along(x, call.shape_of(0), others, (groups * size,))
        spread = np.broadcast_to(numbered((groups, 1, size)), (groups, made // groups, size))
        parts.append(along(rows_at(channels, spread, spread.shape), (made, size, *ones), (), call.shape))
    if g is not None:
        results = along(g, call.shape_of(1), others, (made,))
        parts.append(along(results, (made, 1, *ones), (), call.shape))
    return union(parts)


RECORDS: dict[str, Record] = {
    "convolve": Bilinear(
        a=lambda B, g, v, full: B.convolve(g, _flip(B, v), full=not full),
        v=_convolve_v,
        batching=in_stacks,
        sparsity=_convolve_sparsity,
        operations=lambda operands, result, _: 2 * min(math.prod(operands[0]), math.prod(result)) * operands[1][-1],
    ),
    "conv": Bilinear(
        x=lambda B, g, weight, x_shape, stride, padding, dilation, groups: B.conv_input(
            g, weight, size=tuple(x_shape[2:]), **_conv(stride, padding, dilation, groups)
        ),
        weight=lambda B, g, x, weight_shape, stride, padding, dilation, groups: B.conv_weight(
            x, g, size=tuple(weight_shape[2:]), **_conv(stride, padding, dilation, groups)
        ),
        batching=_convolution(1, 0, 1, shared=True),
        sparsity=_conv_sparsity,
        operations=lambda operands, result, _: 2 * math.prod(result) * math.prod(operands[1][1:]),
    ),
    "conv_input": Bilinear(
        g=lambda B, g, weight, stride, padding, dilation, groups: B.conv(
            g, weight, **_conv(stride, padding, dilation, groups)
        ),
        weight=lambda B, c, g, weight_shape, stride, padding, dilation, groups: B.conv_weight(
            c, g, size=tuple(weight_shape[2:]), **_conv(stride, padding, dilation, groups)
        ),
        batching=_convolution(1, 0, 1, shared=True),
        sparsity=_conv_input_sparsity,
        operations=lambda operands, result, _: 2 * math.prod(operands[0]) * math.prod(operands[1][1:]),
    ),
    "conv_weight": Bilinear(
        x=lambda B, c, g, x_shape, stride, padding, dilation, groups: B.conv_input(
            g, c, size=tuple(x_shape[2:]), **_conv(stride, padding, dilation, groups)
        ),
        g=lambda B, c, x, stride, padding, dilation, groups: B.conv(x, c, **_conv(stride, padding, dilation, groups)),
        batching=_convolution(1, 1, 0, shared=False),
        sparsity=_conv_weight_sparsity,
        operations=lambda operands, result, _: 2 * math.prod(operands[1]) * math.prod(result[1:]),
    ),
}
