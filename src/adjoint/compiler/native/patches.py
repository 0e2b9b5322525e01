"""Where the places of a convolution's kernel meet the images."""

from __future__ import annotations

import itertools
from typing import NamedTuple

from adjoint.compiler.native.machine import vector_bytes
from adjoint.compiler.native.views import Layout
from adjoint.primitives import DType, Shape


class Axis(NamedTuple):
    """A loop around products: how often, and how far images, the other operand and the result move in a step."""

    size: int
    images: int
    other: int
    out: int


class Lines(NamedTuple):
    """What a kernel meets: where the line of each of its places begins, its length, and the loops over lines."""

    places: tuple[int, ...]
    run: int
    axes: tuple[Axis, ...]


def lines(
    images: Layout,
    kernel: Shape,
    result: Layout,
    stride: Shape,
    dilation: Shape,
    groups: int,
    rows: int,
    weighs: bool,
) -> Lines:
    """Of padded images (channels, sizes, examples) for `rows` out channels of each group.

    The result is (out, counts, examples) and the other operand the weights, or the other way round, which `weighs`.
    """
    counts, steps = result.shape[1:-1], result.strides[1:-1]
    channels, examples = images.shape[0] // groups, images.shape[-1]
    sizes = images.strides[1:-1]
    moves = [d * s for d, s in zip(dilation, sizes, strict=True)]
    places = tuple(
        [
            channel * images.strides[0] + sum(i * m for i, m in zip(place, moves, strict=True))
            for channel in range(channels)
            for place in itertools.product(*map(range, kernel))
        ]
    )
    axes = [
        Axis(n, a * s, step * weighs, step * (not weighs))
        for n, a, s, step in zip(counts, stride, sizes, steps, strict=True)
    ]
    run = examples
    while axes and axes[-1].images == run == steps[len(axes) - 1]:  # these lie as one line
        run *= axes.pop().size
    kernels, results = rows * len(places), rows * result.strides[0]
    group = Axis(groups, channels * images.strides[0], *((results, kernels) if weighs else (kernels, results)))
    return Lines(places, run, (group, *axes))


def direct(lines: Lines, rows: int, weighs: bool, dtype: DType) -> bool:
    """Whether products of lines are faster than one of a matrix of patches, as far as was measured."""
    return lines.run >= vector_bytes() // dtype.itemsize
