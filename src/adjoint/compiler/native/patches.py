"""Where the places of a convolution's kernel meet the images."""

from __future__ import annotations

import itertools
import math
from typing import NamedTuple

from adjoint.compiler.native.machine import vector_bytes
from adjoint.compiler.native.views import Layout
from adjoint.compiler.sizes import is_size
from adjoint.primitives import DType, Shape
from adjoint.primitives.sizes import as_recorded

_SHORT = 1 << 24  # multiplications of vectors that lines do not fill, up to which a matrix of patches takes longer


class Axis(NamedTuple):
    """A loop around products: how often, and how far images, the other operand and the result move in a step."""

    size: int
    images: int
    other: int
    out: int


class Lines(NamedTuple):
    """What a kernel meets: its places, by their numbers and how far one is from the next along each axis, of which the
    first are channels; the length of the line that begins at each; and the loops over lines.
    """

    kernel: Shape
    moves: tuple[int, ...]
    run: int
    axes: tuple[Axis, ...]
    listed: tuple[int, ...] = ()  # where lines begin, if these are not as far from each other along each axis

    @property
    def number(self) -> int:
        """How many places there are."""
        return math.prod(self.kernel)

    @property
    def places(self) -> list[int]:
        """Where lines begin."""
        return [*self.listed] or [
            sum(i * far for i, far in zip(place, self.moves, strict=True))
            for place in itertools.product(*map(range, self.kernel))
        ]


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
    places = (channels, *kernel)
    moves = (images.strides[0], *[d * s for d, s in zip(dilation, sizes, strict=True)])
    axes = [
        Axis(n, a * s, *((step, 0) if weighs else (0, step)))
        for n, a, s, step in zip(counts, stride, sizes, steps, strict=True)
    ]
    run = examples
    while axes and axes[-1].images == run == steps[len(axes) - 1]:  # these lie as one line
        run *= axes.pop().size
    kernels, results = rows * math.prod(places), rows * result.strides[0]
    group = Axis(groups, channels * images.strides[0], *((results, kernels) if weighs else (kernels, results)))
    return Lines(places, moves, run, (group, *axes))


def direct(lines: Lines, dtype: DType) -> bool:
    """Whether lines fill vectors: then their products are faster than one of a matrix of patches, as was measured."""
    return is_size(lines.run) or lines.run >= vector_bytes() // dtype.itemsize


def pays(lines: Lines, rows: int, dtype: DType) -> bool:
    """The same, also of a few short lines for so many rows, with vectors that are partly there."""
    times = rows * lines.number * math.prod([axis.size for axis in lines.axes])  # vectors that are multiplied
    return direct(lines, dtype) or bool(as_recorded(times) * vector_bytes() // dtype.itemsize <= _SHORT)
