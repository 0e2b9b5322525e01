"""Two-dimensional convolution and its two transposes, over any array namespace.

Each is one matrix product with the patches laid out as a matrix (im2col): K. Chellapilla, S. Puri,
P. Simard, High Performance Convolutional Neural Networks for Document Processing (2006).
Loops run over the kernel's places and over groups, never over elements.
"""

from __future__ import annotations

from typing import Any

from adjoint.primitives import conv_size

Pair = tuple[int, int]


def _window(i: int, places: int, stride: int, dilation: int) -> slice:
    start = i * dilation
    return slice(start, start + stride * (places - 1) + 1, stride)


def _patches(xp: Any, x: Any, kernel: Pair, stride: Pair, padding: Pair, dilation: Pair) -> Any:
    """(batch, channels, kernel height, kernel width, out height, out width)."""
    n, c, height, width = x.shape
    (kh, kw), (ph, pw) = kernel, padding
    rows = conv_size(height, kh, stride[0], ph, dilation[0])
    columns = conv_size(width, kw, stride[1], pw, dilation[1])
    if ph or pw:
        padded = xp.zeros((n, c, height + 2 * ph, width + 2 * pw), dtype=x.dtype)
        padded[:, :, ph : ph + height, pw : pw + width] = x
        x = padded
    patches = xp.empty((n, c, kh, kw, rows, columns), dtype=x.dtype)
    for i in range(kh):
        down = _window(i, rows, stride[0], dilation[0])
        for j in range(kw):
            patches[:, :, i, j, :, :] = x[:, :, down, _window(j, columns, stride[1], dilation[1])]
    return patches


def conv2d(xp: Any, x: Any, weight: Any, *, stride: Pair, padding: Pair, dilation: Pair, groups: int) -> Any:
    n = x.shape[0]
    o, per_group, kh, kw = weight.shape
    patches = _patches(xp, x, (kh, kw), stride, padding, dilation)
    rows, columns = patches.shape[4:]
    matrix = xp.reshape(patches, (n, groups, per_group * kh * kw, rows * columns))
    kernels = xp.reshape(weight, (1, groups, o // groups, per_group * kh * kw))
    return xp.reshape(xp.matmul(kernels, matrix), (n, o, rows, columns))


def conv2d_input(
    xp: Any, g: Any, weight: Any, *, stride: Pair, padding: Pair, dilation: Pair, groups: int, size: Pair
) -> Any:
    n, o, rows, columns = g.shape
    per_group, kh, kw = weight.shape[1:]
    c = per_group * groups
    kernels = xp.reshape(weight, (1, groups, o // groups, per_group * kh * kw))
    flat = xp.reshape(g, (n, groups, o // groups, rows * columns))
    patches = xp.reshape(xp.matmul(xp.matrix_transpose(kernels), flat), (n, c, kh, kw, rows, columns))
    (ph, pw), (height, width) = padding, size
    x = xp.zeros((n, c, height + 2 * ph, width + 2 * pw), dtype=g.dtype)
    for i in range(kh):
        down = _window(i, rows, stride[0], dilation[0])
        for j in range(kw):
            x[:, :, down, _window(j, columns, stride[1], dilation[1])] += patches[:, :, i, j, :, :]
    return x[:, :, ph : ph + height, pw : pw + width]


def conv2d_weight(
    xp: Any, x: Any, g: Any, *, stride: Pair, padding: Pair, dilation: Pair, groups: int, size: Pair
) -> Any:
    n, c = x.shape[:2]
    o = g.shape[1]
    kh, kw = size
    patches = _patches(xp, x, size, stride, padding, dilation)
    # more places than the kernel needs can fit where the stride did not reach the border
    rows, columns = g.shape[2:]
    patches = patches[:, :, :, :, :rows, :columns]
    matrix = xp.reshape(patches, (n, groups, c // groups * kh * kw, rows * columns))
    flat = xp.reshape(g, (n, groups, o // groups, rows * columns))
    product = xp.sum(xp.matmul(flat, xp.matrix_transpose(matrix)), axis=0)
    return xp.reshape(product, (o, c // groups, kh, kw))
