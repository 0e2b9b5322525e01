"""Functions by the conventions of other libraries, where these are not `ad`'s own: what faces call."""

from __future__ import annotations

import itertools
import math
from typing import Any

from adjoint import dtypes, errors
from adjoint.functions.arguments import as_choice, as_tensors
from adjoint.functions.contraction import einsum
from adjoint.functions.creation import asarray
from adjoint.functions.elementwise import abs as size_of
from adjoint.functions.elementwise import clip, copysign, cos, floor, log, maximum, sin, sqrt, trunc, where
from adjoint.functions.indexing import take, take_along_axis
from adjoint.functions.logic import isnan, logical_and, logical_or
from adjoint.functions.padding import pad
from adjoint.functions.reduction import any as any_of
from adjoint.functions.reduction import argmax, cumulative_sum, max, min, sum
from adjoint.functions.scatter import bincount
from adjoint.functions.shape import expand_dims, flip, reshape, sliding_window_view, squeeze
from adjoint.functions.sorting import argsort
from adjoint.functions.statistics import nanquantile, quantile
from adjoint.linalg import svdvals, vector_norm
from adjoint.tensor import Tensor


def fmax_of_first(x: Tensor[Any], y: Tensor[Any]) -> Tensor[Any]:
    """`fmax`, of truths too; of two that are equal the first has the gradient."""
    return logical_or(x, y) if x.dtype.kind == "b" else where((x >= y) | isnan(y), x, y)


def fmin_of_first(x: Tensor[Any], y: Tensor[Any]) -> Tensor[Any]:
    """`fmin`, of truths too; of two that are equal the first has the gradient."""
    return logical_and(x, y) if x.dtype.kind == "b" else where((x <= y) | isnan(y), x, y)


def integer_power(x: Tensor[Any], y: Tensor[Any]) -> Tensor[Any]:
    """x ** y of integers; of a negative exponent the power is rounded to zero, as 1 / x is."""
    positive = x ** maximum(y, 0)
    return where(y < 0, where(size_of(x) == 1, x ** (y % 2), 0), positive)


def fraction(x: Tensor[Any]) -> Any:
    """What is left of x without its integer, of the sign of x."""
    return x - trunc(x)


def polar(r: Tensor[Any], angle: Tensor[Any]) -> Any:
    """The complex numbers of these lengths and angles."""
    return cos(angle) * r + sin(angle) * r * 1j


def add_product(x: Any, a: Any, b: Any, factor: Any) -> Any:
    """x + factor * a * b"""
    return x + a * b * factor if factor != 1 else x + a * b


def add_quotient(x: Any, a: Any, b: Any, factor: Any) -> Any:
    """x + factor * a / b"""
    return x + a / b * factor if factor != 1 else x + a / b


def convolve_along(a: Any, b: Any, axes: Any, dot_axes: Any, mode: Any) -> Tensor[Any]:
    """The convolution along pairs of axes (all if None), summed over pairs of others.

    The axes of the result are the other ones of a, those of b, and those that were convolved.
    """
    a, b = as_tensors([a, b], "convolve")
    as_choice(mode, "convolve", "mode", ("full", "valid", "same"))
    along_a, along_b = [[int(i) for i in each] for each in (axes or (range(a.ndim), range(a.ndim)))]
    dot_a, dot_b = [list(each) for each in dot_axes]
    letters = map(chr, itertools.count(ord("a")))
    of_a, of_b = [next(letters) for _ in range(a.ndim)], [next(letters) for _ in range(b.ndim)]
    for i, j in zip(dot_a, dot_b, strict=True):
        of_b[j] = of_a[i]
    out = [of_a[i] for i in range(a.ndim) if i not in along_a and i not in dot_a]
    out += [of_b[j] for j in range(b.ndim) if j not in along_b and j not in dot_b]
    sizes = [(a.shape[i], b.shape[j]) for i, j in zip(along_a, along_b, strict=True)]
    if mode == "valid" and any(n < m for n, m in sizes):  # the smaller one moves along the larger
        if any(n > m for n, m in sizes):
            raise errors.ShapeError(f"convolve: neither of shapes {a.shape} and {b.shape} lies within the other")
        a, b, of_a, of_b, along_a, along_b = b, a, of_b, of_a, along_b, along_a
        sizes = [(m, n) for n, m in sizes]
    if mode != "valid":
        borders = [(0, 0)] * a.ndim
        for i, (_, m) in zip(along_a, sizes, strict=True):
            after = m - 1 if mode == "full" else (m - 1) // 2
            borders[i] = (m - 1 if mode == "full" else m - 1 - after, after)
        a = pad(a, borders)
    windows = sliding_window_view(a, tuple([m for _, m in sizes]), axis=tuple(along_a)) if sizes else a
    moved = [of_b[j] for j in along_b]
    places = [of_a[i] for i in along_a]
    turned = flip(b, axis=tuple(along_b))
    return einsum(f"{''.join(of_a + moved)},{''.join(of_b)}->{''.join(out + places)}", windows, turned)


# --- elements in order: where PyTorch's choice among equal or middle ones is not ad's ----------------------


def median_places(x: Tensor[Any], axis: int) -> Tensor[Any]:
    """The places of middle elements along an axis, of an even number the lower one; of the first nan if any is."""
    middle = take(argsort(x, axis=axis), (x.shape[axis] - 1) // 2, axis=axis)
    if x.dtype.kind != "f":
        return middle
    unknown = isnan(x)
    return where(any_of(unknown, axis=axis), argmax(unknown.astype(dtypes.uint8), axis=axis), middle)


def nanmedian_places(x: Tensor[Any], axis: int) -> Tensor[Any]:
    """The same of those elements that are not nan; some place where all are."""
    known = sum(x == x, axis=axis, keepdims=True)
    return squeeze(take_along_axis(argsort(x, axis=axis), maximum(known - 1, 0) // 2, axis=axis), axis)  # nan is last


def shared_by_equals(x: Tensor[Any], value: Any) -> Any:
    """An element of x as a value whose gradient all elements equal to it share; nan as one that all nan share."""
    if isinstance(value, float) and value != value:
        unknown = isnan(x)
        return sum(where(unknown, x, 0)) / sum(unknown.astype(x.dtype))
    return max(where(x == value, x, -math.inf))


def shared_by_middle(x: Tensor[Any], value: Tensor[Any]) -> Any:
    """The same of a value that nobody can look at, and which is nan if any element is."""
    return max(where((x == value) | isnan(x), x, -math.inf))


def histc(x: Tensor[Any], bins: int, low: Any, high: Any) -> Tensor[Any]:
    """How many elements are in each of so many bins between two numbers, or between the elements' extremes if equal."""
    flat = reshape(x, -1)
    if low == high and flat.size:
        low, high = min(flat), max(flat)
        alone = low == high
        low, high = where(alone, low - 1, low), where(alone, high + 1, high)
    elif low == high:
        low, high = low - 1, high + 1
    low, high = [asarray(n, dtype=x.dtype, device=x.device) for n in (low, high)]
    inside = (flat >= low) & (flat <= high)
    place = clip(floor((where(inside, flat, low) - low) * bins / (high - low)), 0, bins - 1).astype(dtypes.int64)
    return bincount(where(inside, place, bins), length=bins + 1)[:bins].astype(x.dtype)


def quantile_by_place(x: Tensor[Any], q: Tensor[Any], at: Any, *, skip: bool, axis: Any, keepdims: bool) -> Any:
    """`quantile`, or `nanquantile` to skip nan, at places q of values `at`, by which it has derivatives too."""
    function: Any = nanquantile if skip else quantile
    lower, linear, higher = [
        function(x, at, axis=axis, keepdims=keepdims, method=method) for method in ("lower", "linear", "higher")
    ]
    steps = sum((x == x) | (not skip), axis=axis, keepdims=keepdims) - 1
    slope = (higher - lower) * steps.astype(x.dtype)
    return linear + reshape(q - q.detach(), q.shape + (1,) * (slope.ndim - q.ndim)) * slope


# --- others ------------------------------------------------------------------------------------------------


def gamma_sign(x: Tensor[Any]) -> Tensor[Any]:
    """The sign of the gamma function: that of x at zero, nan at its other poles."""
    whole = floor(x)
    sign = where(x > 0, 1.0, where(x == whole, math.nan, 1.0 - 2.0 * (whole % 2.0)))
    return where(x == 0, copysign(1.0, x), sign).astype(x.dtype).detach()


def relative_bound(a: Tensor[Any], atol: Any, rtol: Any) -> Any:
    """One bound on the singular values of a matrix, in terms of the largest: the larger of two."""
    largest = max(svdvals(a), axis=-1)
    return maximum(atol / where(largest == 0, 1, largest), 0.0 if rtol is None else rtol)


def unit(x: Tensor[Any], eps: float) -> Any:
    """x over its length, or over eps where the length is smaller."""
    return x / maximum(vector_norm(x), eps)


def drawn_again(chances: Tensor[Any], uniform: Tensor[Any]) -> Tensor[Any]:
    """Places with chances in proportion to these numbers, one for each uniform number; a place may come again."""
    shares = cumulative_sum(chances, axis=-1)
    below = expand_dims(shares, -2) <= expand_dims(uniform * shares[..., -1:], -1)
    return clip(sum(below, axis=-1), 0, chances.shape[-1] - 1)


def drawn_once(chances: Tensor[Any], uniform: Tensor[Any], count: int) -> Any:
    """The same without a place twice, of one uniform number for each place.

    They are the places of the largest u^(1/p). P. Efraimidis, P. Spirakis (2006).
    """
    return argsort(log(uniform) / chances, axis=-1, descending=True)[..., :count]


def with_norm(
    weight: Tensor[Any], bias: Any, mean: Any, var: Any, eps: float, gain: Any, shift: Any, axis: int
) -> tuple[Tensor[Any], Tensor[Any]]:
    """Weight and bias of a layer that does what it and a batch normalization after it do. Outputs are along an axis."""
    scale = (1 if gain is None else gain) / sqrt(var + eps)
    rows = reshape(scale, [-1 if i == axis else 1 for i in range(weight.ndim)])
    moved = (-mean if bias is None else bias - mean) * scale
    return weight * rows, moved if shift is None else moved + shift
