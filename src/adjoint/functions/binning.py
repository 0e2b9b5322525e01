"""Where values stand among sorted ones: searching, interpolation, histograms."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal

import numpy as np

from adjoint import dtypes, errors
from adjoint.functions.arguments import (
    as_flag,
    as_number,
    as_ordered,
    as_size,
    as_tensor,
    as_tensors,
    inexact,
    is_array,
    is_integer,
    is_numeric,
    items,
    own_values,
)
from adjoint.functions.creation import made
from adjoint.functions.elementwise import where
from adjoint.functions.reduction import max, min, sum
from adjoint.functions.shape import flip, reshape
from adjoint.functions.sorting import searchsorted
from adjoint.operands import cast, deferred_check, is_weak, operand, run
from adjoint.primitives import ARRAY
from adjoint.tensor import Operand, Tensor
from adjoint.variables import B


def _real_line(value: Any, name: str, what: str) -> Tensor[Any]:
    x = as_tensor(value, name)
    if x.ndim != 1 or x.dtype.kind == "c":
        raise errors.ShapeError(f"{name}: {what} are a real vector, received {x.dtype} of shape {x.shape}")
    return x


def digitize(x: Operand[B], bins: Any, /, right: bool = False) -> Tensor[B]:
    """The number of the interval each value is in, between increasing or decreasing bounds; int64.

    Interval i has bins[i - 1] <= x < bins[i], or with `right` bins[i - 1] < x <= bins[i]; for decreasing bounds it is
    the other way round. Raises ShapeError for other bounds than a real vector.
    """
    bins, x = as_tensors([bins, x], "digitize")
    bins = _real_line(bins, "digitize", "bounds")
    side: Literal["left", "right"] = "left" if as_flag(right, "digitize", "right") else "right"
    up = searchsorted(bins, x, side=side)
    if bins.size < 2:
        return up
    down = bins.size - searchsorted(flip(bins), x, side=side)
    return where(bins[0] <= bins[-1], up, down)


def interp(
    x: Operand[B], xp: Any, fp: Any, /, left: Any = None, right: Any = None, period: float | None = None
) -> Tensor[B]:
    """The piecewise linear function through the points (xp, fp), at x.

    Parameters
    ----------
    x
        Where to evaluate it; of any shape.
    xp, fp
        The coordinates of the points: two vectors of one size, `xp` real and increasing, `fp` real or complex.
    left, right
        The values beyond the first and the last point; those of these points if None.
    period
        Let the points and x have this period; `left` and `right` have no meaning then, and xp need not be sorted.

    Returns
    -------
    A tensor of the shape of x. Gradients flow to x, xp and fp; at a point that of the interval on its right.

    Raises
    ------
    ShapeError, ArgumentError
        Points that are no two vectors of one size, none of them, a period of zero.

    Examples
    --------
    >>> import adjoint as ad
    >>> x = ad.tensor(1.5).require_grad()
    >>> y = ad.interp(x, [1.0, 2.0, 3.0], [10.0, 20.0, 0.0])
    >>> y.item(), y.backward()[x].item()
    (15.0, 10.0)
    """
    fp = inexact(fp, "interp", x, xp)
    x, xp = (inexact(v, "interp") for v in as_tensors([x, as_tensor(xp, "interp", fp)], "interp"))
    if x.dtype.kind == "c" or xp.ndim != 1 or fp.shape != xp.shape or not xp.size:
        raise errors.ShapeError(
            f"interp: expected real x, and points as two vectors of one size, of at least one element; received "
            f"{x.dtype}, shapes {xp.shape} and {fp.shape}"
        )
    left, right = (v if v is None or is_weak(v) else operand(v, fp, "interp") for v in (left, right))
    if period is not None:
        x, xp, fp, left, right = _periodic(x, xp, fp, period)
    zero, width = xp[:1] * 0, xp[1:] - xp[:-1]
    slope = (fp[1:] - fp[:-1]) / where(width == 0, 1.0, width)
    before = fp[:1] if left is None else fp[:1] * 0 + left
    # of each interval, also of those before the first point and behind the last: where it begins, value and slope
    tables = [
        run("concat", as_tensors(parts, "interp"), axis=0)
        for parts in ((xp[:1], xp), (before, fp), (cast(zero, fp.dtype), slope, cast(zero, fp.dtype)))
    ]
    interval = searchsorted(xp, x, side="right")
    start, value, rise = (run("index", (table, interval), key=(ARRAY,)) for table in tables)
    out = value + rise * (run("clip", (x, xp[0], xp[-1])) - start)
    return out if right is None else where(x > xp[-1], right, out)


def _periodic(x: Tensor[Any], xp: Tensor[Any], fp: Tensor[Any], period: Any) -> Any:
    """The points in one period, sorted, with the last one before them and the first one after."""
    period = abs(as_number(period, "interp", "period"))
    if not period:
        raise errors.ArgumentError("interp: a period is not zero")
    x, xp = x % period, xp % period
    order = run("argsort", (xp,), axis=0, descending=False)
    xp, fp = (run("index", (line, order), key=(ARRAY,)) for line in (xp, fp))
    xp = run("concat", (xp[-1:] - period, xp, xp[:1] + period), axis=0)
    return x, xp, run("concat", (fp[-1:], fp, fp[:1]), axis=0), None, None


def histogram(
    x: Operand[B], /, bins: Any = 10, range: Sequence[float] | None = None, density: bool = False, weights: Any = None
) -> tuple[Tensor[B], Tensor[B]]:
    """How many values lie in each of several intervals, and the bounds of the intervals.

    Parameters
    ----------
    x
        Real values of any shape.
    bins
        The number of intervals of one width, or one of NumPy's rules for it, such as "auto", or a vector of increasing
        bounds. An interval has its lower bound, and the last one both.
    range
        The outer bounds of `bins` intervals, numbers or tensors; the extreme values if None. What is outside does not
        count.
    weights
        What each value counts for, of the shape of x: then the sums of these, and gradients flow to them.
    density
        Divide by the whole and by the widths, so that the integral is one.

    Returns
    -------
    The counts, int64 without weights, and the bounds, one more. Gradients flow to bounds, and through them to `range`
    or the extreme values of x; a density has those of the widths. Counts jump, and have none.

    Raises
    ------
    ArgumentError, ShapeError, DtypeError
        No intervals, or bounds that are not increasing or not finite; weights of another shape; complex x.

    Examples
    --------
    >>> import adjoint as ad
    >>> counts, bounds = ad.histogram(ad.tensor([0.0, 0.2, 1.0]), 2)
    >>> counts.tolist(), bounds.tolist()
    ([2, 1], [0.0, 0.5, 1.0])
    """
    x, edges, even = _binned(x, bins, range, weights)
    if weights is not None:
        weights = operand(weights, x, "histogram")
        if weights.size != x.size:
            raise errors.ShapeError(f"histogram: weights of shape {weights.shape} for {x.size} values")
        weights = reshape(weights, -1)
    fixed = x.detach(), edges.detach()  # counts jump: their derivative is 0 wherever they have one
    counts = _counted(*fixed) if weights is None else _weighed(*fixed, weights, even)
    if as_flag(density, "histogram", "density"):
        widths = cast(edges[1:] - edges[:-1], dtypes.summing(x.dtype))
        counts = cast(counts / widths / sum(counts), dtypes.promote(counts.dtype, x.dtype))
    return counts, edges


def _binned(x: Any, bins: Any, range: Any, weights: Any) -> tuple[Tensor[Any], Tensor[Any], bool]:
    """The values as a line and the bounds, of one dtype, and whether the intervals have one width."""
    ends = () if range is None else items(range) or (range,)
    x = as_ordered(x, "histogram", weights, bins, *ends)
    x = reshape(inexact(x, "histogram"), -1)
    if isinstance(bins, str):
        bins = _number_of_bins(x, bins, range, ends, weights)
    even = is_integer(bins)
    if even:
        edges = _bounds(x, as_size(bins, "histogram", "bins"), range, ends)
    else:
        edges = _given(_floating(operand(bins, x, "histogram"), x))
    dtype = dtypes.promote(x.dtype, edges.dtype)
    return cast(x, dtype), cast(edges, dtype), even


def _number_of_bins(x: Tensor[Any], rule: str, range: Any, ends: tuple[Any, ...], weights: Any) -> int:
    """By one of NumPy's rules, which look at the values."""
    if rule not in _RULES or weights is not None:
        raise errors.ArgumentError(
            f"histogram: bins is a number, a vector of bounds or, without weights, one of {', '.join(_RULES)}; "
            f"received {errors.shown(rule)}"
        )
    low, high = own_values(_bounds(x, 1, range, ends).detach(), "histogram")
    return len(np.histogram_bin_edges(own_values(x.detach(), "histogram"), rule, (low, high))) - 1


_RULES = ("auto", "doane", "fd", "rice", "scott", "sqrt", "stone", "sturges")


def _given(bounds: Tensor[Any]) -> Tensor[Any]:
    edges = _real_line(bounds, "histogram", "bounds")
    wrong: Callable[[Any], Exception] = lambda _: errors.ArgumentError(
        "histogram: expected at least two bounds, which increase"
    )
    if edges.size < 2:
        raise wrong(edges)
    return deferred_check(edges, lambda values: (values[..., 1:] >= values[..., :-1]).all(), wrong)


def _bounds(x: Tensor[Any], count: int, range: Any, ends: tuple[Any, ...]) -> Tensor[Any]:
    """The bounds of intervals of one width; those of a range may be tensors, and differentiable."""
    if not count:
        raise errors.ArgumentError("histogram: expected at least one interval, received bins=0")
    shown = errors.shown(range)
    wrong: Callable[[Any], Exception] = lambda _: errors.ArgumentError(
        f"histogram: range is two finite bounds, the lower one first; received {shown}"
    )
    if range is not None:
        if len(ends) != 2:
            raise wrong(ends)
        low, high = [_end(v, x) for v in ends]
        dtype = dtypes.promote(low.dtype, high.dtype)
        line = run("concat", tuple(reshape(cast(v, dtype), 1) for v in (low, high)), axis=0)
        in_order: Callable[[Any], Any] = lambda values: (
            np.isfinite(values).all() & (values[..., 0] <= values[..., 1]).all()
        )
        line = deferred_check(line, in_order, wrong)
        low, high = line[0], line[1]
        x = cast(x, dtypes.promote(x.dtype, dtype))
        low, high = cast(low, x.dtype), cast(high, x.dtype)
    elif x.size:
        infinite: Callable[[Any], Exception] = lambda _: errors.ArgumentError(
            "histogram: the values are not all finite, so give range="
        )
        finite: Callable[[Any], Any] = lambda values: np.isfinite(values).all()
        low, high = [deferred_check(v, finite, infinite) for v in (min(x), max(x))]
    else:
        low, high = [_end(v, x) for v in (0.0, 1.0)]
    low, high = where(low == high, low - 0.5, low), where(low == high, high + 0.5, high)
    steps = made(x.device, "arange", start=0, stop=count + 1, step=1, dtype=x.dtype)
    return where(steps == count, high, low + steps * ((high - low) / count))


def _end(value: Any, x: Tensor[Any]) -> Tensor[Any]:
    """One end of a range: a number has the dtype of the values, an array has its own."""
    if not is_array(value) or not is_numeric(value) or isinstance(value, np.generic):
        return operand(np.asarray(as_number(value, "histogram", "a bound"), x.dtype), x, "histogram")
    if value.ndim or value.dtype.kind == "c":
        raise errors.ShapeError(f"histogram: a bound is a real number, received {value.dtype} of shape {value.shape}")
    return _floating(operand(value, x, "histogram"), x)


def _floating(bounds: Tensor[Any], x: Tensor[Any]) -> Tensor[Any]:
    return bounds if bounds.dtype.kind in dtypes.INEXACT else cast(bounds, x.dtype)


def _counted(x: Tensor[Any], edges: Tensor[Any]) -> Tensor[Any]:
    """Differences of how many sorted values lie before each bound; to the last one its equals belong."""
    ordered = run("sort", (x,), axis=0, descending=False)
    before = searchsorted(ordered, edges[:-1], side="left")
    until = searchsorted(ordered, edges[-1:], side="right")
    before = run("concat", (before, until), axis=0)
    return before[1:] - before[:-1]  # type: ignore[no-any-return]


def _weighed(x: Tensor[Any], edges: Tensor[Any], weights: Tensor[Any], even: bool) -> Tensor[Any]:
    """The sums of weights at the intervals' numbers."""
    count = edges.size - 1
    inside = (x >= edges[0]) & (x <= edges[-1])
    if even:  # a quotient says where, up to rounding, and comparisons with the bounds correct it
        places = where(inside, (x - edges[0]) * (count / (edges[-1] - edges[0])), 0.0)
        places = run("clip", (cast(places, dtypes.int64), 0, count - 1))
        key = (ARRAY,)
        lower, upper = (run("index", (line, places), key=key) for line in (edges[:-1], edges[1:]))
        places = places - cast(x < lower, dtypes.int64) + cast(x >= upper, dtypes.int64)
    else:
        places = searchsorted(edges, x, side="right") - 1
    places = run("clip", (places, 0, count - 1))
    zeros = made(weights.device, "full", shape=(count,), value=0, dtype=weights.dtype)
    return run("index_add", (zeros, where(inside, weights, 0), places), key=(ARRAY,))  # type: ignore[no-any-return]
