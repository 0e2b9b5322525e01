"""Pooling: the largest element, the mean or a norm of what is under a window."""

from __future__ import annotations

import functools
import math
import operator
from typing import Any, Literal, overload

import numpy as np

from adjoint import dtypes, errors
from adjoint.functions.arguments import Sizes, as_flag, as_number, as_positive, check_shape, computed, images, sizes
from adjoint.functions.creation import asarray, made, places_beside
from adjoint.functions.elementwise import sqrt, where
from adjoint.functions.indexing import take_along_axis
from adjoint.functions.reduction import argmax
from adjoint.functions.scatter import put_along_axis
from adjoint.functions.shape import reshape
from adjoint.irrational import quotient_beside
from adjoint.operands import cast, constant_like, deferred_check, operand, run
from adjoint.primitives import Shape, window_shape
from adjoint.primitives.sizes import stands
from adjoint.tensor import Operand, Tensor
from adjoint.variables import B


@overload
def max_pool1d(
    x: Operand[B], kernel_size: Sizes, stride: Sizes | None = None, *, padding: Sizes = 0, dilation: Sizes = 1,
    ceil_mode: bool = False, return_indices: Literal[False] = False,
) -> Tensor[B]: ...  # fmt: skip
@overload
def max_pool1d(
    x: Operand[B], kernel_size: Sizes, stride: Sizes | None = None, *, padding: Sizes = 0, dilation: Sizes = 1,
    ceil_mode: bool = False, return_indices: Literal[True],
) -> tuple[Tensor[B], Tensor[B]]: ...  # fmt: skip
def max_pool1d(
    x: Operand[B],
    kernel_size: Sizes,
    stride: Sizes | None = None,
    *,
    padding: Sizes = 0,
    dilation: Sizes = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> Any:
    """`max_pool2d` of signals (batch, channels, length)."""
    return _max_pool("max_pool1d", 1, x, kernel_size, stride, padding, dilation, ceil_mode, return_indices)


@overload
def max_pool2d(
    x: Operand[B], kernel_size: Sizes, stride: Sizes | None = None, *, padding: Sizes = 0, dilation: Sizes = 1,
    ceil_mode: bool = False, return_indices: Literal[False] = False,
) -> Tensor[B]: ...  # fmt: skip
@overload
def max_pool2d(
    x: Operand[B], kernel_size: Sizes, stride: Sizes | None = None, *, padding: Sizes = 0, dilation: Sizes = 1,
    ceil_mode: bool = False, return_indices: Literal[True],
) -> tuple[Tensor[B], Tensor[B]]: ...  # fmt: skip
def max_pool2d(
    x: Operand[B],
    kernel_size: Sizes,
    stride: Sizes | None = None,
    *,
    padding: Sizes = 0,
    dilation: Sizes = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> Any:
    """The largest element under a window that moves over (batch, channels, height, width), or over one image.

    Of equal elements the first gets the gradient.

    Parameters
    ----------
    x
        (batch, channels, height, width) or (channels, height, width)
    kernel_size, stride, padding, dilation
        One number or (vertical, horizontal): the window's size; the steps between windows, the window's size unless
        given; what counts as minus infinity on each side; the steps between elements of a window.
    ceil_mode
        Windows may reach over the border behind, if they start inside.
    return_indices
        Give also where in its flattened image each one is.

    Returns
    -------
    (batch, channels, rows, columns), of x's dtype, integers made the default dtype; int64 indices of the same shape.

    Raises
    ------
    ShapeError, ArgumentError
        A window that does not fit; numbers out of range, padding of more than half a window among them.

    Examples
    --------
    >>> import adjoint as ad
    >>> ad.nn.max_pool2d(ad.tensor([[[[1.0, 2.0, 0.0], [5.0, 3.0, 1.0]]]]), (2, 1)).tolist()
    [[[[5.0, 3.0, 1.0]]]]
    """
    return _max_pool("max_pool2d", 2, x, kernel_size, stride, padding, dilation, ceil_mode, return_indices)


@overload
def max_pool3d(
    x: Operand[B], kernel_size: Sizes, stride: Sizes | None = None, *, padding: Sizes = 0, dilation: Sizes = 1,
    ceil_mode: bool = False, return_indices: Literal[False] = False,
) -> Tensor[B]: ...  # fmt: skip
@overload
def max_pool3d(
    x: Operand[B], kernel_size: Sizes, stride: Sizes | None = None, *, padding: Sizes = 0, dilation: Sizes = 1,
    ceil_mode: bool = False, return_indices: Literal[True],
) -> tuple[Tensor[B], Tensor[B]]: ...  # fmt: skip
def max_pool3d(
    x: Operand[B],
    kernel_size: Sizes,
    stride: Sizes | None = None,
    *,
    padding: Sizes = 0,
    dilation: Sizes = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> Any:
    """`max_pool2d` of volumes (batch, channels, depth, height, width)."""
    return _max_pool("max_pool3d", 3, x, kernel_size, stride, padding, dilation, ceil_mode, return_indices)


def avg_pool1d(
    x: Operand[B],
    kernel_size: Sizes,
    stride: Sizes | None = None,
    *,
    padding: Sizes = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
) -> Tensor[B]:
    """`avg_pool2d` of signals (batch, channels, length)."""
    return _avg_pool("avg_pool1d", 1, x, kernel_size, stride, padding, ceil_mode, count_include_pad, None)


def avg_pool2d(
    x: Operand[B],
    kernel_size: Sizes,
    stride: Sizes | None = None,
    *,
    padding: Sizes = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor_override: int | None = None,
) -> Tensor[B]:
    """The mean of what is under a window that moves over (batch, channels, height, width), or over one image.

    Parameters
    ----------
    x
        (batch, channels, height, width) or (channels, height, width)
    kernel_size, stride, padding, ceil_mode
        As in `max_pool2d`; padding counts as zeros.
    count_include_pad
        Whether zeros around count among the elements; what lies beyond them with `ceil_mode` never does.
    divisor_override
        Divide by this number instead.

    Returns
    -------
    (batch, channels, rows, columns), of x's dtype, integers made the default dtype.

    Raises
    ------
    ShapeError, ArgumentError
        As `max_pool2d`; a divisor of zero.

    Examples
    --------
    >>> import adjoint as ad
    >>> ad.nn.avg_pool2d(ad.tensor([[[[1.0, 2.0, 0.0], [5.0, 4.0, 1.0]]]]), 2).tolist()
    [[[[3.0]]]]
    """
    return _avg_pool("avg_pool2d", 2, x, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override)


def avg_pool3d(
    x: Operand[B],
    kernel_size: Sizes,
    stride: Sizes | None = None,
    *,
    padding: Sizes = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor_override: int | None = None,
) -> Tensor[B]:
    """`avg_pool2d` of volumes (batch, channels, depth, height, width)."""
    return _avg_pool("avg_pool3d", 3, x, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override)


def lp_pool1d(
    x: Operand[B], norm_type: float, kernel_size: Sizes, stride: Sizes | None = None, *, ceil_mode: bool = False
) -> Tensor[B]:
    """`lp_pool2d` of signals (batch, channels, length)."""
    return _lp_pool("lp_pool1d", 1, x, norm_type, kernel_size, stride, ceil_mode)


def lp_pool2d(
    x: Operand[B], norm_type: float, kernel_size: Sizes, stride: Sizes | None = None, *, ceil_mode: bool = False
) -> Tensor[B]:
    """(sum of x^p)^(1/p) over a window that moves over (batch, channels, height, width), with p = `norm_type`.

    No absolute values are taken, as in PyTorch: an odd p gives nan where the sum is negative. The gradient is 0 where
    the sum is. With `ceil_mode` a window that reaches over the border counts as if the rest were like it.
    Raises ShapeError and ArgumentError as `max_pool2d`.

    >>> import adjoint as ad
    >>> ad.nn.lp_pool2d(ad.tensor([[[[3.0, 4.0]]]]), 2, (1, 2)).tolist()
    [[[[5.0]]]]
    """
    return _lp_pool("lp_pool2d", 2, x, norm_type, kernel_size, stride, ceil_mode)


def lp_pool3d(
    x: Operand[B], norm_type: float, kernel_size: Sizes, stride: Sizes | None = None, *, ceil_mode: bool = False
) -> Tensor[B]:
    """`lp_pool2d` of volumes (batch, channels, depth, height, width)."""
    return _lp_pool("lp_pool3d", 3, x, norm_type, kernel_size, stride, ceil_mode)


def adaptive_avg_pool1d(x: Operand[B], output_size: Any) -> Tensor[B]:
    """`adaptive_avg_pool2d` of signals (batch, channels, length)."""
    return _adaptive_avg("adaptive_avg_pool1d", 1, x, output_size)


def adaptive_avg_pool2d(x: Operand[B], output_size: Any) -> Tensor[B]:
    """Means of a number of windows: place i of m over an axis of n elements has those from i n / m to (i + 1) n / m.

    The first is rounded down, the last up, so that windows may overlap. `output_size` is one number or
    (rows, columns), with None for an axis that stays. Raises ShapeError for x of other axes than
    (batch, channels, height, width), with or without batch, ArgumentError for sizes below 1.

    >>> import adjoint as ad
    >>> ad.nn.adaptive_avg_pool2d(ad.tensor([[[[1.0, 2.0, 3.0]]]]), (1, 2)).tolist()
    [[[[1.5, 2.5]]]]
    """
    return _adaptive_avg("adaptive_avg_pool2d", 2, x, output_size)


def adaptive_avg_pool3d(x: Operand[B], output_size: Any) -> Tensor[B]:
    """`adaptive_avg_pool2d` of volumes (batch, channels, depth, height, width)."""
    return _adaptive_avg("adaptive_avg_pool3d", 3, x, output_size)


def adaptive_max_pool1d(x: Operand[B], output_size: Any, *, return_indices: bool = False) -> Any:
    """`adaptive_max_pool2d` of signals (batch, channels, length)."""
    return _adaptive_max("adaptive_max_pool1d", 1, x, output_size, return_indices)


def adaptive_max_pool2d(x: Operand[B], output_size: Any, *, return_indices: bool = False) -> Any:
    """The largest elements of the windows of `adaptive_avg_pool2d`, the first of equal ones.

    Images (batch, channels, height, width) give (batch, channels, rows, columns). With `return_indices` also where in
    its flattened image each one is, int64. Raises as `adaptive_avg_pool2d`.

    >>> import adjoint as ad
    >>> ad.nn.adaptive_max_pool2d(ad.tensor([[[[1.0, 2.0, 3.0]]]]), (1, 2)).tolist()
    [[[[2.0, 3.0]]]]
    """
    return _adaptive_max("adaptive_max_pool2d", 2, x, output_size, return_indices)


def adaptive_max_pool3d(x: Operand[B], output_size: Any, *, return_indices: bool = False) -> Any:
    """`adaptive_max_pool2d` of volumes (batch, channels, depth, height, width)."""
    return _adaptive_max("adaptive_max_pool3d", 3, x, output_size, return_indices)


def max_unpool1d(
    x: Operand[B], indices: Any, kernel_size: Sizes, stride: Sizes | None = None, padding: Sizes = 0,
    output_size: Any = None,
) -> Tensor[B]:  # fmt: skip
    """`max_unpool2d` of signals (batch, channels, length)."""
    return _max_unpool("max_unpool1d", 1, x, indices, kernel_size, stride, padding, output_size)


def max_unpool2d(
    x: Operand[B], indices: Any, kernel_size: Sizes, stride: Sizes | None = None, padding: Sizes = 0,
    output_size: Any = None,
) -> Tensor[B]:  # fmt: skip
    """Images with elements back where `max_pool2d` found them, and zeros elsewhere.

    Parameters
    ----------
    x
        (batch, channels, height, width), or one image without batch: what the pool gave.
    indices
        Integers of that shape: the second result of `max_pool2d` with `return_indices`.
    kernel_size, stride, padding
        Those of the pool.
    output_size
        The images' size, or their shape; (height - 1) stride - 2 padding + kernel height, if None.

    Raises
    ------
    ShapeError, DtypeError, OutOfRangeError, ArgumentError
        Shapes that do not fit; indices that are no integers, or beyond the image; numbers out of range.

    Examples
    --------
    >>> import adjoint as ad
    >>> x, where = ad.nn.max_pool1d(ad.tensor([[1.0, 4.0, 3.0, 2.0]]), 2, return_indices=True)
    >>> ad.nn.max_unpool1d(x, where, 2).tolist()
    [[0.0, 4.0, 3.0, 0.0]]
    """
    return _max_unpool("max_unpool2d", 2, x, indices, kernel_size, stride, padding, output_size)


def max_unpool3d(
    x: Operand[B], indices: Any, kernel_size: Sizes, stride: Sizes | None = None, padding: Sizes = 0,
    output_size: Any = None,
) -> Tensor[B]:  # fmt: skip
    """`max_unpool2d` of volumes (batch, channels, depth, height, width)."""
    return _max_unpool("max_unpool3d", 3, x, indices, kernel_size, stride, padding, output_size)


def _max_unpool(
    name: str, axes: int, x: Any, indices: Any, kernel: Any, stride: Any, padding: Any, output_size: Any
) -> Tensor[Any]:
    x = images(name, axes, x, indices)
    places = operand(indices, x, name)
    if places.dtype.kind not in "iu":
        raise errors.DtypeError(f"{name}: indices are integers, received {places.dtype}")
    if places.shape != x.shape:
        raise errors.ShapeError(f"{name}: indices have x's shape {x.shape}, received {places.shape}")
    kernel = sizes(kernel, axes, name, "kernel_size", 1)
    stride = kernel if stride is None else sizes(stride, axes, name, "stride", 1)
    border = sizes(padding, axes, name, "padding", 0)
    lead = x.shape[: x.ndim - axes]
    if output_size is None:
        given = zip(x.shape[len(lead) :], stride, border, kernel, strict=True)
        wanted = tuple([(n - 1) * s - 2 * p + k for n, s, p, k in given])
    else:
        if isinstance(output_size, (tuple, list)) and tuple(output_size[: -axes or None]) in (lead, lead[-1:]):
            output_size = output_size[-axes:] if len(output_size) > axes else output_size
        wanted = sizes(output_size, axes, name, "output_size", 1)
    places = deferred_check(
        places,
        lambda values: (values.min() >= 0) & (values.max() < math.prod(wanted)),
        lambda values: errors.OutOfRangeError(
            f"{name}: indices from {values.min()} to {values.max()} in images of {wanted}; give their output_size"
        ),
    )
    flat = made(x.device, "full", shape=(*lead, math.prod(wanted)), value=0, dtype=x.dtype)
    count = math.prod(x.shape[len(lead) :])
    line, at = reshape(x, (*lead, count)), reshape(places, (*lead, count))
    return reshape(put_along_axis(flat, at, line, axis=-1), (*lead, *wanted))


# --- windows -------------------------------------------------------------------------------------


def _windows(
    name: str, axes: int, x: Tensor[Any], kernel: Any, stride: Any, padding: Any, dilation: Any, ceil_mode: bool
) -> dict[str, Any]:
    """The parameters of window primitives; windows over the border behind are padding there."""
    kernel = sizes(kernel, axes, name, "kernel_size", 1)
    stride = kernel if stride is None else sizes(stride, axes, name, "stride", 1)
    border, dilation = sizes(padding, axes, name, "padding", 0), sizes(dilation, axes, name, "dilation", 1)
    ceil_mode = as_flag(ceil_mode, name, "ceil_mode")
    if any(2 * p > d * (k - 1) + 1 for p, k, d in zip(border, kernel, dilation, strict=True)):
        raise errors.ArgumentError(f"{name}: padding {border} is more than half of the window {kernel}")
    pads = []
    for n, k, s, p, d in zip(x.shape[x.ndim - axes :], kernel, stride, border, dilation, strict=True):
        after, extent = p, d * (k - 1) + 1
        if ceil_mode and n + 2 * p >= extent:
            count = -((extent - n - 2 * p) // s) + 1
            if (count - 1) * s >= n + p:  # the last one would start behind the border
                count -= 1
            after = max(p, (count - 1) * s + extent - n - p)
        pads.append((p, after))
    how = {"kernel": kernel, "stride": stride, "padding": tuple(pads), "dilation": dilation}
    try:
        window_shape(x.shape, **how)
    except errors.ShapeError as error:
        raise errors.ShapeError(f"{name}: {error}") from None
    return how


def _max_pool(
    name: str, axes: int, x: Any, kernel: Any, stride: Any, padding: Any, dilation: Any, ceil_mode: bool, indices: bool
) -> Any:
    x, indices = images(name, axes, x), as_flag(indices, name, "return_indices")
    how = _windows(name, axes, x, kernel, stride, padding, dilation, ceil_mode)
    out = run("max_pool", (x,), **how)
    if not indices:
        return out
    return out, _max_places(name, x.detach(), out.shape[x.ndim - axes :], how)


def _max_places(name: str, x: Tensor[Any], counts: Any, how: dict[str, Any]) -> Tensor[Any]:
    """Where in its flattened image the largest element of each window is."""
    lines, given = [], [how[what] for what in ("kernel", "stride", "dilation", "padding")]
    for n, count, k, s, d, (p, _) in zip(x.shape[x.ndim - len(counts) :], counts, *given, strict=True):
        line = (places_beside(x, count, of=[n]) * s - p)[:, None] + np.arange(k) * d
        start = line[:, :1]
        first = start % d  # at or behind the front
        first = np.where((start < 0) & (first < n) & (first <= line[:, -1:]), first, start)
        inside = (line >= 0) & (line < n)
        lines.append(np.clip(np.where(inside, line, first), 0, n - 1))  # another element in the border's place
    return reshape(computed(name, _largest_of, x, lines), (*x.shape[: x.ndim - len(counts)], *counts))


def _largest_of(x: Tensor[Any], lines: list[Any]) -> Tensor[Any]:
    """Where in flattened images the first largest element of each window is.

    `lines` has the places of windows along each axis, (windows, elements), some of them perhaps twice.
    """
    shape = x.shape[x.ndim - len(lines) :]
    if any(map(stands, shape)):
        lines = [constant_like(line, x, "max_pool") for line in lines]
    places = lines[0]
    for n, line in zip(shape[1:], lines[1:], strict=True):
        wide = places[:, None, :, None] * n + line[:, None, :]
        places = wide.reshape(places.shape[0] * line.shape[0], places.shape[1] * line.shape[1])
    # places are integers
    flat = reshape(x.detach(), (*x.shape[: x.ndim - len(lines)], math.prod(shape)))
    best = argmax(flat[..., places], axis=-1)
    starts = places_beside(x, places.shape[0], of=[places.shape[1]]) * places.shape[1]
    return asarray(places.reshape(-1), device=x.device)[best + asarray(starts, device=x.device)]


def _avg_pool(
    name: str,
    axes: int,
    x: Any,
    kernel: Any,
    stride: Any,
    padding: Any,
    ceil_mode: bool,
    zeros: bool,
    divisor: Any,
) -> Tensor[Any]:
    x, zeros = images(name, axes, x), as_flag(zeros, name, "count_include_pad")
    how = _windows(name, axes, x, kernel, stride, padding, 1, ceil_mode)
    total: Tensor[Any] = run("window_sum", (cast(x, dtypes.summing(x.dtype)),), **how)
    if divisor is not None:
        divisor = as_number(divisor, name, "divisor_override")
        if divisor == 0:
            raise errors.ArgumentError(f"{name}: divisor_override is not zero")
        return cast(total / divisor, x.dtype)
    border = sizes(padding, axes, name, "padding", 0)
    counts = _element_counts(x, total.shape, how, border if zeros else None)
    return cast(total / _constant(counts, total), x.dtype)


def _element_counts(x: Tensor[Any], out: Shape, how: dict[str, Any], border: Any) -> Any:
    """How many elements each window has, of the image or of it with its border; one number where all are equal."""
    axes, shape = len(how["kernel"]), x.shape
    shape, out = shape[-axes:], out[-axes:]
    if any(map(stands, (*shape, *out))):
        return _counts_beside(x, shape, out, how, border)
    return _counts(shape, out, how["kernel"], how["stride"], how["padding"], border)


def _counts_beside(x: Tensor[Any], shape: Shape, out: Shape, how: dict[str, Any], border: Any) -> Any:
    """The same for sizes that stand for several: as a tensor, but where no window goes over what counts."""
    lines, inside = [], True
    for i, (n, count, k, s, (p, _)) in enumerate(
        zip(shape, out, how["kernel"], how["stride"], how["padding"], strict=True)
    ):
        first, stop = (0, n) if border is None else (-p, n + border[i])
        inside = inside and first <= -p and (count - 1) * s - p + k <= stop
        start = places_beside(x, count, of=[n]) * s - p
        line = np.minimum(start + k, stop) - np.maximum(start, first)
        lines.append(constant_like(line, x, "pool").reshape((-1,) + (1,) * (len(shape) - i - 1)))
    return float(math.prod(how["kernel"])) if inside else functools.reduce(operator.mul, lines)


@functools.lru_cache(512)
def _counts(shape: Shape, out: Shape, kernel: Shape, stride: Shape, padding: Any, border: Any) -> Any:
    found = np.ones((), np.int64)
    for i, (n, count) in enumerate(zip(shape, out, strict=True)):
        start = np.arange(count) * stride[i] - padding[i][0]
        stop = start + kernel[i]
        if border is None:
            start, stop = np.maximum(start, 0), np.minimum(stop, n)
        else:
            stop = np.minimum(stop, n + border[i])
        found = np.multiply.outer(found, stop - start)
    return float(found.flat[0]) if found.size and (found == found.flat[0]).all() else found


def _constant(counts: Any, like: Tensor[Any]) -> Any:
    """Counts on the device and in the dtype of a tensor."""
    if isinstance(counts, float):
        return counts
    return cast(constant_like(counts, like, "pool"), like.dtype)


def _lp_pool(name: str, axes: int, x: Any, norm_type: Any, kernel: Any, stride: Any, ceil_mode: bool) -> Tensor[Any]:
    x, p = images(name, axes, x), as_positive(norm_type, name, "norm_type")
    if math.isinf(p):
        raise errors.ArgumentError(f"{name}: norm_type is finite, received {p}; the largest are in max_pool")
    how = _windows(name, axes, x, kernel, stride, 0, 1, ceil_mode)
    total: Tensor[Any] = run("window_sum", (cast(x, dtypes.summing(x.dtype)) ** p,), **how)
    counts = _element_counts(x, total.shape, how, None)
    size = math.prod(how["kernel"])
    if not isinstance(counts, float) or counts != size:
        total = total * (size / _constant(counts, total))
    root = _root(run("replace_where_equal", (total, total), target=0, value=1.0), p)
    return cast(run("replace_where_equal", (root, total), target=0, value=0.0), x.dtype)


def _root(x: Tensor[Any], p: float) -> Tensor[Any]:
    return sqrt(x) if p == 2 else x ** quotient_beside(1.0, p, x)


# --- windows of as many places as are wanted -----------------------------------------------------


def _adaptive(name: str, axes: int, x: Tensor[Any], output_size: Any) -> tuple[int, ...]:
    shape = x.shape[x.ndim - axes :]
    if isinstance(output_size, (tuple, list)) and len(output_size) == axes:
        output_size = [n if m is None else m for n, m in zip(shape, output_size, strict=True)]
    wanted = sizes(shape if output_size is None else output_size, axes, name, "output_size", 1)
    if 0 in shape:
        raise errors.ShapeError(f"{name}: x of shape {x.shape} has no elements to pool")
    check_shape((*x.shape[: x.ndim - axes], *wanted), name)
    return wanted


def _borders(x: Tensor[Any], n: int, m: int) -> tuple[Any, Any, int]:
    """Where each of m windows over n elements of x starts and stops, and how long the longest is."""
    places = places_beside(x, m, of=[n])
    rest = n % m
    longest = n // m + (0 if rest == 0 else 1 if m % rest == 0 else 2)
    return places * n // m, -(-(places + 1) * n // m), longest


def _adaptive_avg(name: str, axes: int, x: Any, output_size: Any) -> Tensor[Any]:
    x = images(name, axes, x)
    return adaptive_average(name, x, _adaptive(name, axes, x, output_size))


def adaptive_average(name: str, x: Tensor[Any], wanted: tuple[int, ...]) -> Tensor[Any]:
    """Means of so many windows along each of the last axes."""
    axes, out = len(wanted), cast(x, dtypes.summing(x.dtype))
    for i, m in enumerate(wanted):
        axis = x.ndim - axes + i
        n = x.shape[axis]
        if n % m == 0:
            if n > m:
                out = reshape(out, (*out.shape[:axis], m, n // m, *out.shape[axis + 1 :])).mean(axis=axis + 1)
            continue
        starts, stops, longest = computed(name, _borders, x, n, m)
        places = starts[:, None] + places_beside(x, longest)  # windows are as long as the longest, or one less
        inside = places < stops[:, None]
        windows = out[(*[slice(None)] * axis, np.minimum(places, stops[:, None] - 1))]
        ones = (1,) * (x.ndim - axis - 1)
        mask = asarray(inside.reshape(*inside.shape, *ones), device=x.device)
        counts = (stops - starts).astype(out.dtype).reshape(m, *ones)
        out = where(mask, windows, 0.0).sum(axis=axis + 1) / asarray(counts, device=x.device)
    return cast(out, x.dtype)


def _adaptive_max(name: str, axes: int, x: Any, output_size: Any, indices: bool) -> Any:
    x, indices = images(name, axes, x), as_flag(indices, name, "return_indices")
    wanted, shape = _adaptive(name, axes, x, output_size), x.shape[x.ndim - axes :]
    lines = []
    for n, m in zip(shape, wanted, strict=True):
        starts, stops, longest = computed(name, _borders, x, n, m)
        lines.append(np.minimum(starts[:, None] + places_beside(x, longest), stops[:, None] - 1))
    found = computed(name, _largest_of, x, lines)
    flat = reshape(x, (*x.shape[: x.ndim - axes], math.prod(shape)))
    out = reshape(take_along_axis(flat, found, axis=-1), (*x.shape[: x.ndim - axes], *wanted))
    return (out, reshape(found, out.shape)) if indices else out
