"""Windows that move over the last axes of arrays.

`kernel`, `stride`, `padding` and `dilation` have an entry for each of those axes: how many elements a window has, the
steps between windows, the pair of widths of what is put around, and the steps between a window's elements.
"""

from __future__ import annotations

from typing import Any

from adjoint import errors
from adjoint.primitives.convolution import conv_size
from adjoint.primitives.table import INDEXING, Shape, declare, same_dtype


def window_shape(shape: Shape, *_: Any, kernel: Shape, stride: Shape, padding: Any, dilation: Shape) -> Shape:
    """Leading axes, then how many windows there are along each of the last ones."""
    axes = len(kernel)
    counts = tuple(map(conv_size, shape[len(shape) - axes :], kernel, stride, padding, dilation))
    if len(shape) < axes or min(counts) < 1:
        raise errors.ShapeError(
            f"a window of {kernel} with dilation {dilation} does not fit {shape[len(shape) - axes :]}, "
            f"padded by {padding}"
        )
    return (*shape[: len(shape) - axes], *counts)


def _spread_shape(g: Shape, *, size: Shape, kernel: Shape, **_: Any) -> Shape:
    return (*g[: len(g) - len(kernel)], *size)


_WINDOWS = "kernel stride padding dilation"
declare("max_pool", INDEXING, "x", _WINDOWS, shape=window_shape, dtype=same_dtype)
declare("max_pool_pullback", INDEXING, "g x", _WINDOWS, shape=lambda g, x, **_: x, dtype=same_dtype)
declare("window_sum", INDEXING, "x", _WINDOWS, shape=window_shape, dtype=same_dtype)
declare("window_spread", INDEXING, "g", _WINDOWS + " size", shape=_spread_shape, dtype=same_dtype)
