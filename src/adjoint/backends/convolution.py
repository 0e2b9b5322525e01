"""Convolution along any number of axes and its two transposes, over any array namespace.

Each is one matrix product with the patches laid out as a matrix (im2col): K. Chellapilla, S. Puri,
P. Simard, High Performance Convolutional Neural Networks for Document Processing (2006).
In memory the channels come first and the examples last, also of results: so that patches are copied in long runs,
the product is one for all examples, and nothing is transposed between one convolution and the next.
Loops run over the kernel's places, and over parts of large images, never over elements.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from typing import Any

from adjoint.primitives import Shape, conv_size

Padding = tuple[tuple[int, int], ...]

PART = 1 << 22  # elements: so many of a matrix of patches are there at a time


def _examples_last(xp: Any, x: Any) -> Any:
    return xp.permute_dims(x, (*range(1, len(x.shape)), 0))


def _examples_first(xp: Any, x: Any) -> Any:
    last = len(x.shape) - 1
    return xp.permute_dims(x, (last, *range(last)))


def _padded(xp: Any, x: Any, padding: Padding) -> Any:
    """(channels, sizes, examples) with zeros around, in this order in memory."""
    images = _examples_last(xp, x)
    out = xp.zeros(
        (images.shape[0], *[n + sum(p) for n, p in zip(x.shape[2:], padding, strict=True)], x.shape[0]), dtype=x.dtype
    )
    out[_inside(padding, x.shape[2:])] = images
    return out


def _inside(padding: Padding, sizes: Shape) -> tuple[Any, ...]:
    return (slice(None), *[slice(p, p + n) for (p, _), n in zip(padding, sizes, strict=True)], ...)


def _places(kernel: Shape, stride: Shape, dilation: Shape, counts: Shape) -> Iterator[tuple[Shape, tuple[slice, ...]]]:
    """Each place of a kernel, and the elements of the images that it meets."""
    for place in itertools.product(*map(range, kernel)):
        starts = [i * d for i, d in zip(place, dilation, strict=True)]
        yield (
            place,
            tuple([slice(a, a + max(0, s * (n - 1) + 1), s) for a, s, n in zip(starts, stride, counts, strict=True)]),
        )


def _parts(counts: Shape, row: int) -> Iterator[slice]:
    """Parts of the first axis of the places, where one of its rows makes so many elements of patches."""
    step = max(1, PART // max(1, row))
    for start in range(0, counts[0], step):
        yield slice(start, min(counts[0], start + step))


def _patches(xp: Any, images: Any, kernel: Shape, stride: Shape, dilation: Shape, counts: Shape, groups: int) -> Any:
    """(groups, channels of a group x kernel, places x examples)."""
    c, n = images.shape[0], images.shape[-1]
    patches = xp.empty((c, *kernel, *counts, n), dtype=images.dtype)
    for place, met in _places(kernel, stride, dilation, counts):
        patches[(slice(None), *place, ...)] = images[(slice(None), *met, ...)]
    return xp.reshape(patches, (groups, c // groups * math.prod(kernel), math.prod(counts) * n))


def _rows(images: Any, part: slice, kernel: Shape, stride: Shape, dilation: Shape) -> Any:
    """The rows of the images that a part of the places meets."""
    start = part.start * stride[0]
    stop = start + (part.stop - part.start - 1) * stride[0] + dilation[0] * (kernel[0] - 1) + 1
    return images[:, start:stop, ...]


def conv(xp: Any, x: Any, weight: Any, *, stride: Shape, padding: Padding, dilation: Shape, groups: int) -> Any:
    n, (o, per_group), kernel = x.shape[0], weight.shape[:2], tuple(weight.shape[2:])
    counts = tuple(map(conv_size, x.shape[2:], kernel, stride, padding, dilation))
    images = _padded(xp, x, padding)
    kernels = xp.reshape(weight, (groups, o // groups, per_group * math.prod(kernel)))
    out = xp.empty((o, *counts, n), dtype=x.dtype)
    for part in _parts(counts, x.shape[1] * math.prod(kernel) * math.prod(counts[1:]) * n):
        some = (part.stop - part.start, *counts[1:])
        rows = _rows(images, part, kernel, stride, dilation)
        patches = _patches(xp, rows, kernel, stride, dilation, some, groups)
        out[:, part, ...] = xp.reshape(xp.matmul(kernels, patches), (o, *some, n))
    return _examples_first(xp, out)


def conv_input(
    xp: Any, g: Any, weight: Any, *, stride: Shape, padding: Padding, dilation: Shape, groups: int, size: Shape
) -> Any:
    (n, o), counts = g.shape[:2], tuple(g.shape[2:])
    per_group, kernel = weight.shape[1], tuple(weight.shape[2:])
    c = per_group * groups
    turned = xp.matrix_transpose(xp.reshape(weight, (groups, o // groups, per_group * math.prod(kernel))))
    images = xp.zeros((c, *[m + sum(p) for m, p in zip(size, padding, strict=True)], n), dtype=g.dtype)
    g = _examples_last(xp, g)
    for part in _parts(counts, c * math.prod(kernel) * math.prod(counts[1:]) * n):
        some = (part.stop - part.start, *counts[1:])
        matrix = xp.reshape(g[:, part, ...], (groups, o // groups, math.prod(some) * n))
        patches = xp.reshape(xp.matmul(turned, matrix), (c, *kernel, *some, n))
        rows = _rows(images, part, kernel, stride, dilation)
        for place, met in _places(kernel, stride, dilation, some):
            rows[(slice(None), *met, ...)] += patches[(slice(None), *place, ...)]
    return _examples_first(xp, images[_inside(padding, size)])


def conv_weight(
    xp: Any, x: Any, g: Any, *, stride: Shape, padding: Padding, dilation: Shape, groups: int, size: Shape
) -> Any:
    # more places than the kernel needs can fit where the stride did not reach the border: those of g count
    (n, c), o, counts = x.shape[:2], g.shape[1], tuple(g.shape[2:])
    images, g = _padded(xp, x, padding), _examples_last(xp, g)
    total = None
    for part in _parts(counts, c * math.prod(size) * math.prod(counts[1:]) * n):
        some = (part.stop - part.start, *counts[1:])
        rows = _rows(images, part, size, stride, dilation)
        patches = _patches(xp, rows, size, stride, dilation, some, groups)
        matrix = xp.reshape(g[:, part, ...], (groups, o // groups, math.prod(some) * n))
        product = xp.matmul(matrix, xp.matrix_transpose(patches))
        total = product if total is None else total + product
    if total is None:  # no places
        return xp.zeros((o, c // groups, *size), dtype=x.dtype)
    return xp.reshape(total, (o, c // groups, *size))
