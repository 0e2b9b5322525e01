"""Fractional max pooling: as many windows as are wanted, at places that are drawn."""

from __future__ import annotations

import math
from typing import Any, Literal, overload

from adjoint import dtypes, errors
from adjoint.functions.arguments import Sizes, as_flag, as_number, check_shape, images, items, sizes
from adjoint.functions.creation import asarray, places_beside
from adjoint.functions.elementwise import floor
from adjoint.functions.indexing import take_along_axis
from adjoint.functions.reduction import argmax
from adjoint.functions.shape import broadcast_to, concat, reshape
from adjoint.random import uniform
from adjoint.tensor import Operand, Tensor
from adjoint.variables import B


@overload
def fractional_max_pool2d(
    x: Operand[B], kernel_size: Sizes, output_size: Sizes | None = None, *, output_ratio: Any = None,
    return_indices: Literal[False] = False,
) -> Tensor[B]: ...  # fmt: skip
@overload
def fractional_max_pool2d(
    x: Operand[B], kernel_size: Sizes, output_size: Sizes | None = None, *, output_ratio: Any = None,
    return_indices: Literal[True],
) -> tuple[Tensor[B], Tensor[B]]: ...  # fmt: skip
def fractional_max_pool2d(
    x: Operand[B],
    kernel_size: Sizes,
    output_size: Sizes | None = None,
    *,
    output_ratio: Any = None,
    return_indices: bool = False,
) -> Any:
    """The largest element under each of a number of windows, whose places are drawn. B. Graham (2014).

    Along an axis of n elements window i of m begins at floor(a (i + u)) - floor(a u), the last one at n - k, with
    a = (n - k) / (m - 1) for windows of k elements. u is uniform in [0, 1), one number for each axis of each image and
    channel, drawn as `ad.random` draws. Of equal elements the first gets the gradient.

    Parameters
    ----------
    x
        (batch, channels, height, width) or (channels, height, width)
    kernel_size
        One number or (vertical, horizontal): the windows' size.
    output_size
        How many windows there are: one number or (rows, columns).
    output_ratio
        In its place, a number between 0 and 1 or two: as a part of the image's size, rounded down.
    return_indices
        Give also where in its flattened image each element is.

    Returns
    -------
    (batch, channels, rows, columns), of x's dtype, integers made the default dtype; int64 indices of the same shape.

    Raises
    ------
    ShapeError, ArgumentError
        x has other axes; windows do not fit; output_size and output_ratio are both given, or none of them, or are out
        of range.

    Examples
    --------
    >>> import adjoint as ad
    >>> x = ad.arange(49.0).reshape((1, 7, 7))
    >>> ad.nn.fractional_max_pool2d(x, 2, (1, 1)).tolist()  # one window is the last
    [[[48.0]]]
    >>> ad.nn.fractional_max_pool2d(x, 2, output_ratio=0.7).shape
    (1, 4, 4)
    """
    return _fractional("fractional_max_pool2d", 2, x, kernel_size, output_size, output_ratio, return_indices)


@overload
def fractional_max_pool3d(
    x: Operand[B], kernel_size: Sizes, output_size: Sizes | None = None, *, output_ratio: Any = None,
    return_indices: Literal[False] = False,
) -> Tensor[B]: ...  # fmt: skip
@overload
def fractional_max_pool3d(
    x: Operand[B], kernel_size: Sizes, output_size: Sizes | None = None, *, output_ratio: Any = None,
    return_indices: Literal[True],
) -> tuple[Tensor[B], Tensor[B]]: ...  # fmt: skip
def fractional_max_pool3d(
    x: Operand[B],
    kernel_size: Sizes,
    output_size: Sizes | None = None,
    *,
    output_ratio: Any = None,
    return_indices: bool = False,
) -> Any:
    """`fractional_max_pool2d` of volumes.

    x is (batch, channels, depth, height, width) or (channels, depth, height, width). Sizes and ratios are one number or
    (depth, vertical, horizontal). Gives (batch, channels, planes, rows, columns). It raises what that raises.

    >>> import adjoint as ad
    >>> ad.nn.fractional_max_pool3d(ad.ones((2, 5, 6, 7)), 2, (2, 3, 3)).shape
    (2, 2, 3, 3)
    """
    return _fractional("fractional_max_pool3d", 3, x, kernel_size, output_size, output_ratio, return_indices)


def _fractional(
    name: str, axes: int, given: Any, kernel_size: Any, output_size: Any, output_ratio: Any, indices: Any
) -> Any:
    x, indices = images(name, axes, given), as_flag(indices, name, "return_indices")
    lead, shape = x.shape[: x.ndim - axes], x.shape[x.ndim - axes :]
    kernel = sizes(kernel_size, axes, name, "kernel_size", 1)
    wanted = _wanted(name, shape, output_size, output_ratio)
    for n, k, m in zip(shape, kernel, wanted, strict=True):
        if k + m - 1 > n:
            raise errors.ShapeError(
                f"{name}: {m} windows of {k} elements, which begin at {m} places, do not fit into {n}; take at most "
                f"{max(n - k + 1, 0)}"
            )
    check_shape((*lead, *wanted, *kernel), name)
    drawn = uniform((*lead, axes), dtype=dtypes.summing(x.dtype), device=x.device)
    places: Any = None
    for i, (n, k, m) in enumerate(zip(shape, kernel, wanted, strict=True)):
        line = _starts(drawn[..., i : i + 1], n, k, m)[..., None] + asarray(
            places_beside(x, k, of=[n]), device=x.device
        )
        wide = line if places is None else places[..., :, None, :, None] * n + line[..., None, :, None, :]
        places = reshape(wide, (*lead, math.prod(wanted[: i + 1]), math.prod(kernel[: i + 1])))
    flat, count = reshape(x, (*lead, math.prod(shape))), math.prod(wanted)
    windows = take_along_axis(flat.detach(), reshape(places, (*lead, count * math.prod(kernel))), axis=-1)
    best = argmax(reshape(windows, places.shape), axis=-1, keepdims=True)
    found = take_along_axis(places, best, axis=-1)[..., 0]
    out = reshape(take_along_axis(flat, found, axis=-1), (*lead, *wanted))
    return (out, reshape(found, out.shape)) if indices else out


def _wanted(name: str, shape: tuple[int, ...], output_size: Any, output_ratio: Any) -> tuple[int, ...]:
    """The number of windows along each axis."""
    if (output_size is None) == (output_ratio is None):
        raise errors.ArgumentError(f"{name}: give output_size, the number of windows, or output_ratio, a part of x's")
    if output_ratio is None:
        return sizes(output_size, len(shape), name, "output_size", 1)
    parts = items(output_ratio) or (output_ratio,) * len(shape)
    ratios = [as_number(part, name, "output_ratio") for part in parts]
    if len(ratios) != len(shape) or not all(0 < ratio < 1 for ratio in ratios):
        raise errors.ArgumentError(
            f"{name}: output_ratio is a number between 0 and 1 or {len(shape)} of them, received "
            f"{errors.shown(output_ratio)}"
        )
    return sizes(
        [math.floor(n * ratio) for n, ratio in zip(shape, ratios, strict=True)], len(shape), name, "output_size", 1
    )


def _starts(u: Tensor[Any], n: int, k: int, m: int) -> Tensor[Any]:
    """Where windows begin, (..., m), by numbers (..., 1); the paper's equation 2.1."""
    last = broadcast_to(asarray(n - k, dtype="int64", device=u.device), u.shape)
    if m == 1:
        return last
    step = (n - k) / (m - 1)
    begins = floor((asarray(places_beside(u, m - 1), device=u.device) + u) * step) - floor(u * step)
    return concat([begins.astype("int64"), last], axis=-1)
