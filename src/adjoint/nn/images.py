"""Images: borders, patches, other sizes, and samples at any place."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from adjoint import dtypes, errors
from adjoint.functions.arguments import (
    ELEMENTS,
    Sizes,
    as_choice,
    as_flag,
    as_number,
    as_tensors,
    check_shape,
    computed,
    integers,
    real,
    sizes,
)
from adjoint.functions.creation import asarray, is_double, made, ones_like, places_beside
from adjoint.functions.elementwise import clip, floor, where
from adjoint.functions.elementwise import round as nearest_integer
from adjoint.functions.logic import isfinite
from adjoint.functions.padding import pad as padded_by_constant
from adjoint.functions.ranges import arange
from adjoint.functions.shape import broadcast_to, moveaxis, permute_dims, repeat, reshape, stack
from adjoint.nn.pooling import adaptive_average
from adjoint.operands import cast, constant_like, run
from adjoint.primitives import conv_size
from adjoint.primitives.sizes import stands
from adjoint.tensor import Operand, Tensor
from adjoint.variables import B


def pad(x: Operand[B], widths: Sequence[int], mode: str = "constant", value: complex = 0) -> Tensor[B]:
    """A border around the last axes.

    Shape (batch, b) becomes (batch, b + 3) for widths (1, 2).

    Parameters
    ----------
    x
        Any tensor.
    widths
        (before, after) of the last axis, then of the one before it, and so on, one after the other. Negative ones take
        off.
    mode
        "constant" fills with `value`; "reflect" with the mirrored elements, without the one at the border; "replicate"
        with the one at the border; "circular" with those at the other end.

    Raises
    ------
    ArgumentError, ShapeError
        Widths that do not pair up, of more axes than there are; a mode that there is not; a border that is wider than
        there are elements to fill it with.

    Examples
    --------
    >>> import adjoint as ad
    >>> ad.nn.pad(ad.tensor([1.0, 2.0, 3.0]), (1, 2), "reflect").tolist()
    [2.0, 1.0, 2.0, 3.0, 2.0, 1.0]
    """
    given = integers(widths, "pad", "widths")
    (x,) = as_tensors([x], "pad")
    if len(given) % 2 or len(given) > 2 * x.ndim:
        raise errors.ArgumentError(f"pad: widths are pairs for the last of {x.ndim} axes, received {given}")
    as_choice(mode, "pad", "mode", ("constant", "reflect", "replicate", "circular"))
    for i in range(len(given) // 2):
        axis, (before, after) = x.ndim - 1 - i, given[2 * i : 2 * i + 2]
        n = x.shape[axis]
        if n + before + after < 0 or max(-before, -after) > n:
            raise errors.ShapeError(f"pad: widths {(before, after)} take more off axis {axis} than its {n} elements")
        if mode == "constant":
            if min(before, after) < 0:
                x = x[(*[slice(None)] * axis, slice(max(0, -before), n - max(0, -after)))]
            pairs = [(max(0, before), max(0, after)) if j == axis else (0, 0) for j in range(x.ndim)]
            x = padded_by_constant(x, pairs, value=value) if any(map(any, pairs)) else x
        elif before or after:
            x = x[(*[slice(None)] * axis, _bordered(n, before, after, mode, axis))]
    return x


def _bordered(n: int, before: int, after: int, mode: str, axis: int) -> np.ndarray[Any, Any]:
    """Where the elements of an axis with its border come from."""
    most = {"reflect": n - 1, "circular": n + min(0, before, after), "replicate": max(before, after) if n else 0}[mode]
    if max(before, after) > max(0, most):
        raise errors.ShapeError(
            f"pad: mode {mode!r} has {max(0, most)} elements for a border of {max(before, after)}, along axis {axis}"
        )
    places = np.arange(-before, n + after)
    if mode == "replicate":
        return np.clip(places, 0, n - 1)
    if mode == "circular":  # of what is left after taking off
        first, left = max(0, -before), n + min(0, before) + min(0, after)
        return first + np.arange(-max(0, before), left + max(0, after)) % max(1, left)
    return np.asarray(np.where(places < 0, -places, np.where(places >= n, 2 * (n - 1) - places, places)))


# --- patches -------------------------------------------------------------------------------------


def _patch_parameters(
    name: str, kernel_size: Any, dilation: Any, padding: Any, stride: Any
) -> tuple[tuple[int, ...], ...]:
    each = ((kernel_size, "kernel_size", 1), (dilation, "dilation", 1), (padding, "padding", 0), (stride, "stride", 1))
    return tuple([sizes(value, 2, name, what, least) for value, what, least in each])


def unfold(
    x: Operand[B], kernel_size: Sizes, *, dilation: Sizes = 1, padding: Sizes = 0, stride: Sizes = 1
) -> Tensor[B]:
    """The patches of images under a window, as columns.

    (batch, channels, height, width), or one image without batch, to (batch, channels x window, patches): channels
    slowest, then the window's rows. Parameters are those of `conv2d`. Raises ShapeError for a window that does not fit.

    >>> import adjoint as ad
    >>> ad.nn.unfold(ad.reshape(ad.arange(4.0), (1, 1, 1, 4)), (1, 2)).tolist()
    [[[0.0, 1.0, 2.0], [1.0, 2.0, 3.0]]]
    """
    kernel, steps, border, stride = _patch_parameters("unfold", kernel_size, dilation, padding, stride)
    y: Tensor[Any]
    (y,) = as_tensors([x], "unfold")
    if y.ndim not in (3, 4):
        raise errors.ShapeError(f"unfold: expected (batch, channels, height, width), received {y.shape}")
    lead = y.shape[:-2]
    pairs = [(0, 0)] * len(lead) + [(p, p) for p in border]
    counts = [conv_size(y.shape[i - 2], kernel[i], stride[i], (border[i], border[i]), steps[i]) for i in range(2)]
    if min(counts) < 1:
        raise errors.ShapeError(
            f"unfold: a window of {kernel} does not fit images of {y.shape[-2:]} padded by {border}"
        )
    y = padded_by_constant(y, pairs) if any(border) else y
    for axis, (k, d, s) in enumerate(zip(kernel, steps, stride, strict=True)):
        place = len(lead) + axis
        y = run("windows", (y,), axis=place, size=d * (k - 1) + 1)[(*[slice(None)] * place, slice(None, None, s))]
        y = y[..., ::d] if d > 1 else y
    n = len(lead)  # from (..., rows, columns, kernel, kernel)
    patches = permute_dims(y, (*range(n), n + 2, n + 3, n, n + 1))
    return reshape(patches, (*lead[:-1], lead[-1] * math.prod(kernel), math.prod(counts)))


def fold(
    x: Operand[B],
    output_size: Sizes,
    kernel_size: Sizes,
    *,
    dilation: Sizes = 1,
    padding: Sizes = 0,
    stride: Sizes = 1,
) -> Tensor[B]:
    """Images of a size, added up from patches: the transpose of `unfold` with the same parameters.

    (batch, channels x window, patches), or without batch, to (batch, channels, height, width). Raises ShapeError where
    the number of patches is not that of the size.
    """
    kernel, steps, border, stride = _patch_parameters("fold", kernel_size, dilation, padding, stride)
    size = sizes(output_size, 2, "fold", "output_size", 1)
    (x,) = as_tensors([x], "fold")
    counts = [conv_size(size[i], kernel[i], stride[i], (border[i], border[i]), steps[i]) for i in range(2)]
    window = math.prod(kernel)
    if x.ndim not in (2, 3) or x.shape[-2] % window or min(counts) < 1 or x.shape[-1] != math.prod(counts):
        raise errors.ShapeError(
            f"fold: images of {size} have {counts[0]} x {counts[1]} windows of {kernel}; expected (batch, channels x "
            f"{window}, {math.prod(counts)}), received {x.shape}"
        )
    lead = (*x.shape[:-2], x.shape[-2] // window)
    patches = reshape(x, (math.prod(lead), *kernel, *counts))
    # patches as channels of a transposed convolution with kernels that have a one each
    kernels = np.eye(window).reshape(window, 1, *kernel)
    out = run(
        "conv_input",
        (reshape(patches, (math.prod(lead), window, *counts)), asarray(kernels, dtype=x.dtype, device=x.device)),
        stride=stride,
        padding=tuple([(p, p) for p in border]),
        dilation=steps,
        groups=1,
        size=size,
    )
    return reshape(out, (*lead, *size))


def pixel_shuffle(x: Operand[B], upscale_factor: int) -> Tensor[B]:
    """(..., channels r^2, height, width) to (..., channels, height r, width r). W. Shi et al. (2016).

    Raises ShapeError where r^2 does not divide the channels.
    """
    r = sizes(upscale_factor, 1, "pixel_shuffle", "upscale_factor", 1)[0]
    (x,) = as_tensors([x], "pixel_shuffle")
    if x.ndim < 3 or x.shape[-3] % r**2:
        raise errors.ShapeError(f"pixel_shuffle: expected (..., channels x {r**2}, height, width), received {x.shape}")
    *lead, c, h, w = x.shape
    n = len(lead)
    split = reshape(x, (*lead, c // r**2, r, r, h, w))
    moved = permute_dims(split, (*range(n), n, n + 3, n + 1, n + 4, n + 2))
    return reshape(moved, (*lead, c // r**2, h * r, w * r))


def pixel_unshuffle(x: Operand[B], downscale_factor: int) -> Tensor[B]:
    """The inverse of `pixel_shuffle`. Raises ShapeError where r does not divide height and width."""
    r = sizes(downscale_factor, 1, "pixel_unshuffle", "downscale_factor", 1)[0]
    (x,) = as_tensors([x], "pixel_unshuffle")
    if x.ndim < 3 or x.shape[-1] % r or x.shape[-2] % r:
        raise errors.ShapeError(f"pixel_unshuffle: {r} does not divide height and width, received {x.shape}")
    *lead, c, h, w = x.shape
    n = len(lead)
    split = reshape(x, (*lead, c, h // r, r, w // r, r))
    moved = permute_dims(split, (*range(n), n, n + 2, n + 4, n + 1, n + 3))
    return reshape(moved, (*lead, c * r**2, h // r, w // r))


def channel_shuffle(x: Operand[B], groups: int) -> Tensor[B]:
    """Channels of groups in turn: (batch, channels, ...), the first of each group, then the second ones.

    X. Zhang et al., ShuffleNet (2017). Raises ShapeError where the number of groups does not divide the channels.

    >>> import adjoint as ad
    >>> ad.nn.channel_shuffle(ad.tensor([[1.0, 2.0, 3.0, 4.0]]), 2).tolist()
    [[1.0, 3.0, 2.0, 4.0]]
    """
    number = sizes(groups, 1, "channel_shuffle", "groups", 1)[0]
    (x,) = as_tensors([x], "channel_shuffle")
    if x.ndim < 2 or x.shape[1] % number:
        raise errors.ShapeError(
            f"channel_shuffle: expected (batch, channels, ...) with channels that {number} divides, received {x.shape}"
        )
    split = reshape(x, (x.shape[0], number, x.shape[1] // number, *x.shape[2:]))
    return reshape(moveaxis(split, 1, 2), x.shape)


# --- other sizes ---------------------------------------------------------------------------------

_MODES = {
    "nearest": (1, 2, 3), "nearest-exact": (1, 2, 3), "linear": (1,), "bilinear": (2,), "bicubic": (2,),
    "trilinear": (3,), "area": (1, 2, 3),
}  # fmt: skip


def interpolate(
    x: Operand[B],
    size: Any = None,
    scale_factor: Any = None,
    mode: str = "nearest",
    align_corners: bool | None = None,
    recompute_scale_factor: bool | None = None,
    antialias: bool = False,
) -> Tensor[B]:
    """Signals, images or volumes (batch, channels, ...) in another size.

    Parameters
    ----------
    size, scale_factor
        One of them: the new size, or the factor by which sizes grow (rounded down); one number or one for each axis.
    mode
        "nearest", "nearest-exact", "area" (means, as `adaptive_avg_pool2d`); "linear" for signals, "bilinear" or
        "bicubic" for images, "trilinear" for volumes. Cubic: R. Keys (1981), with a = -0.75.
    align_corners
        Whether the centres of the first and last elements stay where they are, not the borders; of linear and cubic
        modes.
    recompute_scale_factor
        Scale by the ratio of the sizes, not by the factor given.
    antialias
        Make images smaller by kernels as wide as the steps between new elements, "bilinear" or "bicubic" ones (these
        with a = -0.5), so that none is left out.

    Raises
    ------
    ArgumentError, ShapeError
        Both or none of size and factor, a mode that does not fit the axes, sizes below 1.

    Examples
    --------
    >>> import adjoint as ad
    >>> ad.nn.interpolate(ad.tensor([[[1.0, 3.0]]]), 4, mode="linear").tolist()
    [[[1.0, 1.5, 2.5, 3.0]]]
    """
    name = "interpolate"
    x = real(x, name)
    axes = x.ndim - 2
    if axes not in (1, 2, 3):
        raise errors.ShapeError(f"{name}: expected (batch, channels, ...) with one to three axes, received {x.shape}")
    if not isinstance(mode, str) or mode not in _MODES or axes not in _MODES[mode]:
        raise errors.ArgumentError(
            f"{name}: mode is one of {', '.join(m for m, n in _MODES.items() if axes in n)} for x of shape {x.shape}, "
            f"received {errors.shown(mode)}"
        )
    antialias = as_flag(antialias, name, "antialias")
    if recompute_scale_factor is not None:
        recompute_scale_factor = as_flag(recompute_scale_factor, name, "recompute_scale_factor")
    corners = align_corners is not None and as_flag(align_corners, name, "align_corners")
    smooth = mode.endswith(("linear", "cubic"))
    if align_corners is not None and not smooth:
        raise errors.ArgumentError(f"{name}: align_corners is for linear and cubic modes, not for {mode!r}")
    if antialias and mode not in ("bilinear", "bicubic"):
        raise errors.ArgumentError(f"{name}: antialias is for the modes 'bilinear' and 'bicubic', not for {mode!r}")
    if (size is None) == (scale_factor is None):
        raise errors.ArgumentError(f"{name}: give either size or scale_factor")
    factors: list[float | None] = [None] * axes
    if size is not None:
        wanted = sizes(size, axes, name, "size", 1)
    else:
        each = list(scale_factor) if isinstance(scale_factor, (tuple, list)) else [scale_factor] * axes
        factors = [float(as_number(f, name, "scale_factor")) for f in each]
        if len(factors) != axes or not all(f is not None and 0 < f <= ELEMENTS for f in factors):
            raise errors.ArgumentError(
                f"{name}: scale_factor is a positive number or {axes} of them, received {errors.shown(scale_factor)}"
            )
        wanted = tuple([_times(n, f) for n, f in zip(x.shape[2:], factors, strict=True) if f is not None])
        if min(wanted) < 1:
            raise errors.ShapeError(f"{name}: sizes {x.shape[2:]} times {factors} leave {wanted}; sizes are at least 1")
        factors = [None] * axes if recompute_scale_factor else factors
    if min(x.shape[2:]) < 1:
        raise errors.ShapeError(f"{name}: x of shape {x.shape} has no elements to take values from")
    check_shape((*x.shape[:2], *wanted), name)
    if mode == "area":
        return adaptive_average(name, x, wanted)
    out: Tensor[Any] = x
    for i, (m, factor) in enumerate(zip(wanted, factors, strict=True)):
        if mode == "nearest" and factor is not None and factor >= 1 and math.frexp(factor)[0] == 0.5:
            out = repeat(out, int(factor), axis=2 + i)  # a power of two: places are exact, whatever the size is
            continue
        taps = _wide_taps if antialias else _taps
        places, weights = computed(name, taps, x, x.shape[2 + i], m, factor, mode, corners)
        key = (slice(None),) * (2 + i)
        if weights is None:
            n = x.shape[2 + i]
            often = isinstance(places, np.ndarray) and not m % n and np.array_equal(places, np.arange(m) // (m // n))
            out = repeat(out, m // n, axis=2 + i) if often else out[(*key, places)]
            continue
        total: Any = None
        tail = (1,) * (axes - i - 1)
        for place, weight in zip(places, weights, strict=True):
            part = out[(*key, place)] * asarray(weight.reshape(-1, *tail), dtype=x.dtype, device=x.device)
            total = part if total is None else total + part
        out = total
    return out


def _times(n: int, factor: float) -> int:
    """A size times a factor, rounded down."""
    return n * int(factor) if factor.is_integer() else math.floor(n * factor)


def _taps(x: Tensor[Any], n: int, m: int, factor: float | None, mode: str, corners: bool) -> tuple[Any, Any]:
    """Of each of m elements over n the places that it is made of, and their weights; for nearest ones the place."""
    line, ratio = places_beside(x, m, of=[n], dtype=dtypes.float64), n / m if factor is None else 1 / factor
    if mode == "nearest":
        is_later = stands(ratio) and isinstance(line, Tensor)
        single: Any = asarray(ratio, dtype="float32", device=x.device) if is_later else np.float32(ratio)
        return np.minimum(np.floor(line * single.astype(np.float64)).astype(np.int64), n - 1), None
    if mode == "nearest-exact":
        return np.minimum(np.floor((line + 0.5) * ratio).astype(np.int64), n - 1), None
    at = line * ((n - 1) / (m - 1) if m > 1 else 0.0) if corners else (line + 0.5) * ratio - 0.5
    if mode == "bicubic":
        first = np.floor(at)
        t = at - first
        places = [np.clip(first.astype(np.int64) + k, 0, n - 1) for k in range(-1, 3)]
        return places, [_cubic(t + 1), _cubic(t), _cubic(1 - t), _cubic(2 - t)]
    at = np.maximum(at, 0)
    first = np.minimum(np.floor(at).astype(np.int64), n - 1)
    t = at - first
    return [first, np.minimum(first + 1, n - 1)], [1 - t, t]


def _wide_taps(x: Tensor[Any], n: int, m: int, factor: float | None, mode: str, corners: bool) -> tuple[Any, Any]:
    """`_taps` of a kernel that is as wide as the steps are, if those are wider than 1."""
    ratio = n / m if factor is None else 1 / factor
    if corners:
        ratio = (n - 1) / (m - 1) if m > 1 else 0.0
    scale = max(1.0, ratio)
    half = scale * (2 if mode == "bicubic" else 1)
    centre = ratio * (np.arange(m) + 0.5)
    first = np.maximum((centre - half + 0.5).astype(np.int64), 0)
    stop = np.minimum((centre + half + 0.5).astype(np.int64), n)
    places = first + np.arange(int((stop - first).max()))[:, None]  # (taps, m)
    away = np.abs(places + 0.5 - centre) / scale
    near = np.maximum(1 - away, 0) if mode == "bilinear" else np.where(away < 2, _cubic(np.minimum(away, 2), -0.5), 0)
    weights = np.where(places < stop, near, 0.0)
    return np.minimum(places, n - 1), weights / weights.sum(axis=0)


def _cubic(t: Any, a: float = -0.75) -> Any:
    """Keys' kernel at a distance, from 0 to 2."""
    near = ((a + 2) * t - (a + 3)) * t * t + 1
    far = ((a * t - 5 * a) * t + 8 * a) * t - 4 * a
    if isinstance(t, Tensor):
        return where(t <= 1, near, far)
    return np.where(t <= 1, near, far)


# --- samples at any place ------------------------------------------------------------------------


def affine_grid(theta: Operand[B], size: Sequence[int], align_corners: bool = False) -> Tensor[B]:
    """Where `grid_sample` looks for images that are moved by affine maps. M. Jaderberg et al. (2015).

    theta is (batch, 2, 3) for images of size (batch, channels, height, width), or (batch, 3, 4) for volumes; the grid
    is (batch, height, width, 2). Raises ShapeError for other shapes.
    """
    theta, shape = real(theta, "affine_grid"), integers(size, "affine_grid", "size")
    axes = len(shape) - 2
    if axes not in (2, 3) or theta.shape != (shape[0], axes, axes + 1):
        raise errors.ShapeError(
            f"affine_grid: expected theta (batch, 2, 3) for a size of 4 numbers, or (batch, 3, 4) for one of 5; "
            f"received {theta.shape} and {errors.shown(shape)}"
        )
    lines = []
    if min(shape, default=0) < 1:
        raise errors.ShapeError(f"affine_grid: sizes are at least 1, received {shape}")
    check_shape((axes + 1, *shape[2:]), "affine_grid")
    corners = as_flag(align_corners, "affine_grid", "align_corners")
    for n in shape[2:]:
        line = computed("affine_grid", _spaced, theta, n) if n > 1 else np.zeros(1)
        lines.append(line if corners else line * (n - 1) / n)
    if any(map(stands, shape)):
        spread = [line.reshape([-1 if k == i else 1 for k in range(axes)]) for i, line in enumerate(lines)]
        spread = [broadcast_to(constant_like(line, theta, "affine_grid"), shape[2:]) for line in spread]
        grid: Any = stack([*spread[::-1], ones_like(spread[0])], axis=-1)
        grid = cast(reshape(grid, (math.prod(shape[2:]), axes + 1)), theta.dtype)
    else:
        sides = np.meshgrid(*lines, indexing="ij")[::-1]
        grid = np.stack([*sides, np.ones(shape[2:])], axis=-1).reshape(-1, axes + 1)
    out = asarray(grid, dtype=theta.dtype, device=theta.device) @ theta.mT
    return reshape(out, (shape[0], *shape[2:], axes))


def _spaced(like: Tensor[Any], n: int) -> Any:
    """n numbers from -1 to 1."""
    if not stands(n) or not is_double(like.device):
        return np.linspace(-1, 1, n)
    return made(like.device, "linspace", start=-1.0, stop=1.0, num=n, endpoint=True, dtype=dtypes.float64)


def grid_sample(
    x: Operand[B],
    grid: Operand[B],
    mode: str = "bilinear",
    padding_mode: str = "zeros",
    align_corners: bool = False,
) -> Tensor[B]:
    """Images, or volumes, sampled at places of a grid.

    Parameters
    ----------
    x
        (batch, channels, height, width), or (batch, channels, depth, height, width)
    grid
        (batch, rows, columns, 2), or with 3 for volumes: x, y (and z) of each sample, from -1 to 1 across the image.
    mode
        "bilinear", "nearest", or for images "bicubic".
    padding_mode
        What is beyond: "zeros", the "border", or its "reflection".
    align_corners
        Whether -1 and 1 are the centres of the first and last elements, not their outer borders.

    Returns
    -------
    (batch, channels, rows, columns); differentiable in x and grid, in the grid where the mode is not "nearest".

    Raises
    ------
    ShapeError, ArgumentError
        Shapes that do not fit; modes that there are not.

    Examples
    --------
    >>> import adjoint as ad
    >>> middle = ad.zeros((1, 1, 1, 2))
    >>> ad.nn.grid_sample(ad.tensor([[[[1.0, 3.0], [5.0, 7.0]]]]), middle).tolist()
    [[[[4.0]]]]
    """
    name = "grid_sample"
    x, grid = as_tensors([real(v, name, x, grid) for v in (x, grid)], name)
    axes = x.ndim - 2
    if axes not in (2, 3) or grid.ndim != x.ndim or grid.shape[-1] != axes or grid.shape[0] != x.shape[0]:
        raise errors.ShapeError(
            f"{name}: expected x (batch, channels, height, width) and grid (batch, rows, columns, 2), or one axis more "
            f"and 3; received {x.shape} and {grid.shape}"
        )
    align_corners = as_flag(align_corners, name, "align_corners")
    as_choice(mode, name, "mode", ("bilinear", "nearest", "bicubic") if axes == 2 else ("bilinear", "nearest"))
    as_choice(padding_mode, name, "padding_mode", ("zeros", "border", "reflection"))
    if min(x.shape[2:]) < 1:
        raise errors.ShapeError(f"{name}: x of shape {x.shape} has no elements to sample")
    at = []
    for i, n in enumerate(x.shape[2:]):
        g = grid[..., axes - 1 - i]
        at.append((g + 1) * ((n - 1) / 2) if align_corners else ((g + 1) * n - 1) * 0.5)
    if mode != "bicubic":  # whose taps are moved inside one by one
        at = [_inside(g, n, padding_mode, align_corners) for g, n in zip(at, x.shape[2:], strict=True)]
    taps = [_sample_taps(g, mode) for g in at]  # per axis: (place, weight) pairs
    if mode == "bicubic":
        taps = [
            [(nearest_integer(_inside(g, n, padding_mode, align_corners)), factor) for g, factor in line]
            for line, n in zip(taps, x.shape[2:], strict=True)
        ]
    return _sampled(x, taps)


def bilinear(x: Tensor[Any], at: Sequence[Tensor[Any]]) -> Tensor[Any]:
    """Images (batch, channels, ...) between their elements, at places (batch, ...) in each axis; zeros are beyond."""
    return _sampled(x, [_sample_taps(g, "bilinear") for g in at])


def _sampled(x: Tensor[Any], taps: list[list[tuple[Any, Any]]]) -> Tensor[Any]:
    """Sums of elements at whole places with weights, zeros for those outside: (batch, channels, ...)."""
    rows = reshape(arange(x.shape[0], device=x.device), (-1, *[1] * (taps[0][0][0].ndim - 1)))
    values = moveaxis(x, 1, -1)
    total: Any = None
    for chosen in itertools.product(*taps):
        places: list[Any] = []
        known: Any = None
        weight: Any = None
        for (place, factor), n in zip(chosen, x.shape[2:], strict=True):
            valid = (place >= 0) & (place <= n - 1)
            known = valid if known is None else known & valid
            places.append(clip(where(place == place, place, -1.0), 0, n - 1).astype(np.int64))  # nan is outside
            if factor is not None:
                weight = factor if weight is None else weight * factor
        picked = values[(rows, *places)]
        picked = where(known.reshape((*known.shape, 1)), picked, 0.0)
        if weight is not None:
            picked = picked * weight.reshape((*weight.shape, 1))
        total = picked if total is None else total + picked
    return moveaxis(total, -1, 1)


def _inside(g: Tensor[Any], n: int, padding_mode: str, corners: bool) -> Tensor[Any]:
    """Places moved into the image, as the padding says."""
    if padding_mode == "zeros":
        return g
    if padding_mode == "reflection":
        g = where(isfinite(g), g, 0.0)  # as PyTorch has it; a border takes in infinite places
        low, span = (0.0, float(n - 1)) if corners else (-0.5, float(n))
        if span == 0:
            return g * 0.0
        away = where(g < low, low - g, g - low)
        turns = floor(away.detach() / span)  # constant between its jumps, as all floors here
        rest = away - turns * span
        g = where(turns % 2 == 0, rest + low, span - rest + low)
    return where(g > 0, where(g >= n - 1, float(n - 1), g), 0.0)  # 0 also for nan


def _sample_taps(g: Tensor[Any], mode: str) -> list[tuple[Any, Any]]:
    """The places along one axis that a sample is made of, as floating numbers, with their weights."""
    if mode == "nearest":
        return [(nearest_integer(g.detach()), None)]
    first = floor(g.detach())
    t = g - first
    if mode == "bilinear":
        return [(first, 1 - t), (first + 1, t)]
    return [(first - 1, _cubic(t + 1)), (first, _cubic(t)), (first + 1, _cubic(1 - t)), (first + 2, _cubic(2 - t))]
