"""Statistics, orders and running extremes, integrals and differences."""

from __future__ import annotations

from typing import Any

import numpy as np

import adjoint as ad
from adjoint import conventions
from adjoint.torch import creation, return_types
from adjoint.torch.arguments import Number, public
from adjoint.torch.calls import (
    KNOWN,
    NUMBERS,
    beside_tensors,
    call,
    check_size,
    without_slope,
    without_values,
)
from adjoint.torch.dtypes import of_numpy, result_dtype
from adjoint.torch.functions import floating_of, to
from adjoint.torch.lifted import is_batched
from adjoint.torch.operators import FUNCTIONS
from adjoint.torch.reductions import alone, axes_of, picked, refuse_no_place
from adjoint.torch.tensor import Tensor, axis_of, beside, looked, next_number


@public("cov")
def cov(input: Tensor, *, correction: int = 1, fweights: Tensor | None = None, aweights: Tensor | None = None) -> Any:
    """The covariances of rows, which are variables; columns are observations.

    >>> import adjoint.torch as torch
    >>> torch.cov(torch.tensor([[0.0, 1.0, 2.0], [2.0, 1.0, 0.0]]))
    tensor([[ 1., -1.],
            [-1.,  1.]])
    """
    shape = tuple(input.shape)
    if len(shape) > 2:
        raise RuntimeError(
            f"cov(): expected input to have two or fewer dimensions but got an input with {len(shape)} dimensions"
        )
    count = shape[-1] if shape else 1
    for name, weights, kinds, what in (
        ("fweights", fweights, "iu", "integral"), ("aweights", aweights, "f", "floating point"),
    ):  # fmt: skip
        if weights is None:
            continue
        if weights.ndim > 1:
            raise RuntimeError(
                f"cov(): expected {name} to have one or fewer dimensions but got {name} with {weights.ndim} dimensions"
            )
        if weights._dtype.kind not in kinds:
            raise RuntimeError(
                f"cov(): expected {name} to have {what} dtype but got {name} with {weights.dtype.class_name} dtype"
            )
        if weights.numel() != count:
            raise RuntimeError(
                f"cov(): expected {name} to have the same numel as there are observations in the input but got "
                f"{weights.numel()} != {count}"
            )
        if (looked(weights) < 0).any():
            raise RuntimeError(f"cov(): {name} cannot be negative")
    return call("cov", "Squeeze", _of_integers(input), correction=correction, fweights=fweights, aweights=aweights)


@public("corrcoef")
def corrcoef(input: Tensor) -> Any:
    """The correlations of rows."""
    return call("corrcoef", "ClampBackward1", _of_integers(input))


def _of_integers(x: Tensor) -> Tensor:
    """Integers in the default type; truths as they are, which are refused."""
    return floating_of(x) if x._dtype.kind in "iu" else x


@public("histc", out=True)
def histc(input: Tensor, bins: int = 100, min: Number = 0, max: Number = 0) -> Tensor:
    """How many elements are in each of so many bins between two bounds, by default those of the elements."""
    if input._dtype.kind != "f":
        raise NotImplementedError(f"\"histogram_cpu\" not implemented for '{input.dtype.class_name}'")
    if bins <= 0:
        raise RuntimeError(f"torch.histogram(): bins must be > 0, but got {bins} for dimension 0")
    if not is_batched(input):
        array = looked(input)
        bounds = (array.min(), array.max()) if min == max and array.size else (min, max)
        if not np.isfinite(bounds).all():
            raise RuntimeError(f"torch.histc: range of [{bounds[0]}, {bounds[1]}] is not finite")
    if min > max:
        raise RuntimeError("torch.histc: max must be larger than min")
    return call(conventions.histc, None, input.detach(), bins, min, max)  # type: ignore[no-any-return]


def _two(bounds: Any) -> Any:
    """Two numbers. Raises TypeError for something else, RuntimeError for more of them, or fewer."""
    if not isinstance(bounds, (tuple, list)) or not all([isinstance(n, (*NUMBERS, np.number)) for n in bounds]):
        raise TypeError(f"histogram(): argument 'range' must be tuple of floats, not {type(bounds).__name__}")
    if len(bounds) != 2:
        raise RuntimeError(f"torch.histogramdd: range should have 2 elements, but got {len(bounds)}")
    return tuple(bounds)


@public("histogram", out=True)
def histogram(
    input: Tensor, bins: Any, *, range: Any = None, weight: Tensor | None = None, density: bool = False
) -> Any:
    """How many elements are in each bin, or their weights, and the edges."""
    if range is not None:
        range = _two(range)
    half = input._dtype.itemsize < 4 and not isinstance(bins, Tensor) and range is None
    if input._dtype.kind != "f" or half:
        raise NotImplementedError(f"\"histogramdd\" not implemented for '{input.dtype.class_name}'")
    bounds = bins
    if not isinstance(bins, Tensor):  # edges that are rounded as PyTorch's, to which elements are compared
        low, high = np.histogram_bin_edges(looked(input), 1, range).tolist()
        bounds = creation.linspace(low, high, bins + 1, dtype=input.dtype, device=input.device)
        if input.requires_grad:  # they follow the extreme elements
            free = call(lambda x: ad.histogram(x, bins, range)[1], None, input)
            bounds = bounds + (free - free.detach())
    found, edges = call("histogram", "Histogram", input, bounds, density=density, weights=weight)
    return return_types.histogram(to(found, dtype=input._dtype), edges)


def _quantile(name: str) -> None:
    def spelled(
        input: Tensor,
        q: Tensor | float,
        dim: int | None = None,
        keepdim: bool = False,
        *,
        interpolation: str = "linear",
    ) -> Any:
        if input._dtype.kind != "f":
            raise RuntimeError(f"{name}() input tensor must be either float or double dtype")
        if not input.numel():
            raise RuntimeError(f"{name}() input tensor must be non-empty")
        if isinstance(q, Tensor) and q._dtype is not input._dtype:
            raise RuntimeError(f"{name}() q tensor must be same dtype as the input tensor")
        at = looked(q) if isinstance(q, Tensor) else q
        if not np.all((np.asarray(at) >= 0) & (np.asarray(at) <= 1)):
            raise RuntimeError(f"{name}() q must be in the range [0, 1] but got {at}")
        axis = None if dim is None or not input.ndim else axis_of(dim, input.ndim)
        options: dict[str, Any] = {"axis": axis, "keepdims": keepdim}
        if isinstance(q, Tensor) and q.requires_grad and interpolation == "linear":  # there is a slope between elements
            options["skip"] = name == "nanquantile"
            return call(conventions.quantile_by_place, "SqueezeBackward4", input, q, at, **options)
        return call(name, "SqueezeBackward4", input, at, **options, method=interpolation)

    public(name, out=True)(spelled)


_quantile("quantile")
_quantile("nanquantile")


@public("nanmedian", out=True)
def nanmedian(input: Tensor, dim: int | None = None, keepdim: bool = False) -> Any:
    """The middle element of those that are not nan, of an even number the lower one."""
    if dim is None:
        flat = FUNCTIONS["reshape"](input, -1)
        if not flat.numel():
            return FUNCTIONS["median"](flat)
        if is_batched(flat) or flat._dtype.kind != "f":
            return nanmedian(flat, 0).values
        return call(conventions.shared_by_equals, "Nanmedian", flat, nanmedian(flat.detach(), 0).values.item())
    if not input.ndim:
        return alone(input, "NanmedianBackward1")
    axis = axis_of(dim, input.ndim)
    refuse_no_place("nanmedian", input, axis)
    places = call(conventions.nanmedian_places, None, input, axis)
    return picked(input, places, dim, keepdim, "NanmedianBackward1")


@public("mode", out=True)
def mode(input: Tensor, dim: int = -1, keepdim: bool = False) -> Any:
    """The most frequent element along an axis, of several the least, and its last place."""
    if not input.ndim:
        return alone(input, "Mode")
    axis = axis_of(dim, input.ndim)
    refuse_no_place("mode", input, axis)
    return picked(input, call("mode", None, input.detach(), axis=axis)[1], dim, keepdim, "Mode")


def _running(name: str) -> None:
    def spelled(input: Tensor, dim: int) -> Any:
        axis = axis_of(dim, input.ndim)
        if not input.ndim:
            return getattr(return_types, name)(FUNCTIONS["clone"](input), beside(input, np.zeros((), np.int64)))
        if input._dtype.kind == "b":
            found, places = spelled(input.byte(), dim)
            return getattr(return_types, name)(found.bool(), places)
        if input._dtype.kind == "c":  # without elements
            places = of_numpy(np.dtype("int64"))
            return getattr(return_types, name)(FUNCTIONS["clone"](input), FUNCTIONS["zeros_like"](input, dtype=places))
        return getattr(return_types, name)(*call(name, name.capitalize(), input, axis=axis))

    public(name, out=True)(spelled)


_running("cummax")
_running("cummin")


@public("msort", out=True)
def msort(input: Tensor) -> Any:
    """The elements in order along the first axis."""
    return FUNCTIONS["sort"](input, 0).values


@public("unique_consecutive")
def unique_consecutive(
    input: Tensor, return_inverse: bool = False, return_counts: bool = False, dim: int | None = None
) -> Any:
    """One element of each run of equal ones."""
    return call("unique_consecutive", "UniqueConsecutive", input, return_inverse, return_counts, axis=dim)


@public("bucketize", method=False, out=True)
def bucketize(input: Any, boundaries: Tensor, *, out_int32: bool = False, right: bool = False) -> Any:
    """The number of the bin that each element is in, between boundaries in order."""
    if boundaries.ndim != 1:
        raise RuntimeError(f"boundaries tensor must be 1 dimension, but got dim({boundaries.ndim})")
    found = FUNCTIONS["searchsorted"](boundaries, input, right=right)
    return found.int() if out_int32 else found


@public("isin", method=False, out=True)
def isin(elements: Any, test_elements: Any, *, assume_unique: bool = False, invert: bool = False) -> Tensor:
    """Whether each element is among others."""
    for what, x in (("elements", elements), ("test_elements", test_elements)):
        if not isinstance(x, KNOWN):
            raise TypeError(f"isin(): argument '{what}' must be Tensor or Number, not {type(x).__name__}")
        check_size(x)
        if (kind := x._dtype if isinstance(x, Tensor) else result_dtype((x,))).kind in "bc":
            raise RuntimeError(f"Unsupported input type encountered for isin(): {of_numpy(kind).class_name}")
    kind = result_dtype((elements, test_elements))
    one, other = (x if isinstance(x, Tensor) else beside_tensors(x, kind) for x in (elements, test_elements))
    return call("isin", None, one, other, invert=invert)  # type: ignore[no-any-return]


@public("renorm", in_place=True, out=True)
def renorm(input: Tensor, p: float, dim: int, maxnorm: float) -> Any:
    """Each slice along an axis scaled to a norm of at most `maxnorm`."""
    for number in (p, maxnorm):
        check_size(number)
    return call(lambda x: ad.renorm(x, p, axis_of(dim, input.ndim), maxnorm), "Renorm", input)


@public("cdist", method=False)
def cdist(x1: Tensor, x2: Tensor, p: float = 2.0, compute_mode: Any = None) -> Any:
    """The distances of all pairs of rows."""
    if compute_mode not in (
        None, 0, 1, 2, "use_mm_for_euclid_dist_if_necessary", "use_mm_for_euclid_dist", "donot_use_mm_for_euclid_dist",
    ):  # fmt: skip
        raise ValueError(f"{compute_mode} is not a valid value for compute_mode")
    for what, x in (("X1", x1), ("X2", x2)):
        if x._dtype.kind != "f":
            raise RuntimeError(f"cdist only supports floating-point dtypes, {what} got: {x.dtype.class_name}")
        if x.ndim < 2:
            raise RuntimeError(f"cdist only supports at least 2D tensors, {what} got: {x.ndim}D")
    if x1.shape[-1] != x2.shape[-1]:
        raise RuntimeError(f"X1 and X2 must have the same number of columns. X1: {x1.shape[-1]} X2: {x2.shape[-1]}")
    found = call(lambda a, b: ad.cdist(a, b, p), "Cdist", x1, x2)
    return found if p else without_slope("Cdist", found, x1, x2)


# --- integrals and differences ----------------------------------------------------------------------------


def _points(y: Tensor, x: Any, dim: int) -> tuple[Tensor, Any]:
    """Samples and their points, which broadcast along all axes but that of the integral."""
    y = _of_integers(y)
    if x is None or not 1 < x.ndim <= y.ndim or x.shape == y.shape:
        return y, x
    wide = FUNCTIONS["reshape"](x, (*[1] * (y.ndim - x.ndim), *x.shape))
    if wide.shape[dim] != y.shape[dim]:
        raise RuntimeError(f"trapezoid: {wide.shape[dim]} points along dimension {dim} for {y.shape[dim]} samples")
    return FUNCTIONS["broadcast_tensors"](y, wide)  # type: ignore[no-any-return]


@public("trapezoid", "trapz", method=False)
def trapezoid(y: Tensor, x: Tensor | None = None, *, dx: Number = 1, dim: int = -1) -> Any:
    """The integral along an axis by trapezoids."""
    if not y.shape[axis_of(dim, y.ndim)]:
        return FUNCTIONS["sum"](y, dim, dtype=y.dtype)
    start = next_number()
    made = "MulBackward1" if x is None else "DivBackward1"
    found = call("trapezoid", made, *_points(y, x, dim), dx=dx, axis=dim)
    return found if x is not None else without_values(found, start)


@public("cumulative_trapezoid", method=False)
def cumulative_trapezoid(y: Tensor, x: Tensor | None = None, *, dx: Number = 1, dim: int = -1) -> Any:
    """The integral up to each point."""
    start = next_number()
    made = "CumsumBackward0" if x is None else "DivBackward1"
    found = call("cumulative_trapezoid", made, *_points(y, x, dim), dx=dx, axis=dim)
    return found if x is not None else without_values(found, start)


@public("gradient", method=False)
def gradient(input: Tensor, *, spacing: Any = 1, dim: Any = None, edge_order: int = 1) -> Any:
    """Differences over distances along each axis, central ones inside."""
    axes = tuple(range(input.ndim)) if dim is None else axes_of(dim, input.ndim)
    spacing = 1 if spacing is None else spacing
    if isinstance(spacing, (tuple, list)) and len(spacing) != len(axes):
        raise RuntimeError(
            "torch.gradient expected spacing to be unspecified, a scalar or it's spacing and dim arguments to have the "
            f"same length, but got a spacing argument of length {len(spacing)} and a dim argument of length "
            f"{len(axes)}."
        )
    if edge_order not in (1, 2):
        raise RuntimeError("torch.gradient only supports edge_order=1 and edge_order=2.")
    if any([input.shape[axis] < edge_order + 1 for axis in axes]):
        raise RuntimeError("torch.gradient expected each dimension size to be at least edge_order+1")
    steps = spacing if isinstance(spacing, (tuple, list)) else [spacing] * len(axes)

    def found(x: Any, *given: Any) -> Any:
        out = ad.gradient(x, *given, axis=tuple(axes), edge_order=edge_order)
        return tuple(out) if isinstance(out, (tuple, list)) else (out,)

    start = next_number()
    out = call(found, "Cat", floating_of(input), *steps)
    return out if any([isinstance(step, Tensor) for step in steps]) else without_values(out, start)
