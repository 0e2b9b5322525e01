"""Where values stand among sorted ones: searching, interpolation, histograms."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar

import numpy as np

from adjoint import dtypes, errors
from adjoint.backend import Backend
from adjoint.functions.creation import as_number, as_tensor, as_tensors, inexact, made
from adjoint.functions.elementwise import where
from adjoint.functions.manipulation import flip, reshape
from adjoint.functions.reductions import as_flag, max, min, sum
from adjoint.primitives import ARRAY
from adjoint.tensor import Tensor, cast, operand, run

B = TypeVar("B", bound=Backend)


def _real_line(value: Any, name: str, what: str) -> Tensor[Any]:
    x = as_tensor(value, name)
    if x.ndim != 1 or x.dtype.kind == "c":
        raise errors.ShapeError(f"{name}: {what} are a real vector, received {x.dtype} of shape {x.shape}")
    return x


def searchsorted(x: Tensor[B], values: Any, /, *, side: str = "left") -> Tensor[B]:
    """Where in a sorted vector each value would have to be put, before ("left") or behind ("right") equal ones; int64.

    Raises ShapeError for other than a real vector, ArgumentError for another side.
    """
    x, values = as_tensors([x, values], "searchsorted")
    x = _real_line(x, "searchsorted", "sorted elements")
    if side not in ("left", "right"):
        raise errors.ArgumentError(f"searchsorted: side is 'left' or 'right', received {errors.shown(side)}")
    return run("searchsorted", (x, values), side=side)  # type: ignore[no-any-return]


def digitize(x: Tensor[B], bins: Any, /, *, right: bool = False) -> Tensor[B]:
    """The number of the interval each value is in, between increasing or decreasing bounds; int64.

    Interval i has bins[i - 1] <= x < bins[i], or with `right` bins[i - 1] < x <= bins[i]; for decreasing bounds it is
    the other way round. Raises ShapeError for other bounds than a real vector.
    """
    bins, x = as_tensors([bins, x], "digitize")
    bins = _real_line(bins, "digitize", "bounds")
    side = "left" if as_flag(right, "digitize", "right") else "right"
    up = run("searchsorted", (bins, x), side=side)
    if bins.size < 2:
        return up  # type: ignore[no-any-return]
    down = bins.size - run("searchsorted", (flip(bins), x), side=side)
    return where(bins[0] <= bins[-1], up, down)


def interp(x: Any, xp: Any, fp: Any, /, *, left: Any = None, right: Any = None, period: float | None = None) -> Any:
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
    first = next((v for v in (x, xp, fp) if isinstance(v, Tensor)), as_tensor(xp, "interp"))
    fp = inexact(operand(fp, first, "interp"), "interp")
    x, xp = (inexact(v, "interp") for v in as_tensors([x, operand(xp, first, "interp")], "interp"))
    if x.dtype.kind == "c" or xp.ndim != 1 or fp.shape != xp.shape or not xp.size:
        raise errors.ShapeError(
            f"interp: expected real x, and points as two vectors of one size, of at least one element; received "
            f"{x.dtype}, shapes {xp.shape} and {fp.shape}"
        )
    if period is not None:
        x, xp, fp, left, right = _periodic(x, xp, fp, period)
    if xp.size == 1:
        inner: Any = fp[0] + 0 * cast(x, dtypes.promote(x.dtype, fp.dtype))
    else:
        above = run("searchsorted", (xp, x), side="right")
        above = run("clip", (above, 1, xp.size - 1))
        key = (ARRAY,)
        x0, x1 = (run("index", (xp, places), key=key) for places in (above - 1, above))
        f0, f1 = (run("index", (fp, places), key=key) for places in (above - 1, above))
        width = x1 - x0
        inner = f0 + (f1 - f0) * ((x - x0) / where(width == 0, 1.0, width))
    inner = where(x < xp[0], fp[0] if left is None else left, inner)
    return where(x > xp[-1], fp[-1] if right is None else right, inner)


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
    x: Tensor[B], /, bins: Any = 10, *, range: Sequence[float] | None = None, weights: Any = None, density: bool = False
) -> tuple[Tensor[B], Tensor[B]]:
    """How many values lie in each of several intervals, and the bounds of the intervals.

    Parameters
    ----------
    x
        Real values of any shape.
    bins
        The number of intervals of one width, or a vector of increasing bounds. An interval has its lower bound, and
        the last one both.
    range
        The outer bounds of `bins` intervals, the extreme values if None. What is outside does not count.
    weights
        What each value counts for, of the shape of x: then the sums of these, and gradients flow to them.
    density
        Divide by the whole and by the widths, so that the integral is one.

    Returns
    -------
    The counts, int64 without weights, and the bounds, one more. They are constants: counts jump.

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
    x = operand(x, weights, "histogram") if isinstance(weights, Tensor) else as_tensor(x, "histogram")
    if x.dtype.kind == "c":
        raise errors.DtypeError(f"histogram: complex numbers have no order; received {x.dtype}")
    x = reshape(inexact(x, "histogram"), -1).detach()
    if weights is not None:
        weights = operand(weights, x, "histogram")
        if weights.size != x.size:
            raise errors.ShapeError(f"histogram: weights of shape {weights.shape} for {x.size} values")
        weights = reshape(weights, -1)
    if isinstance(bins, (int, np.integer)) and not isinstance(bins, bool):
        count = int(bins)
        edges, places = _even(x, count, range)
    else:
        edges = cast(_real_line(operand(bins, x, "histogram"), "histogram", "bounds").detach(), x.dtype)
        count = edges.size - 1
        if count >= 1 and not bool((edges[1:] >= edges[:-1]).all()):
            raise errors.ArgumentError("histogram: bounds must increase")
        places = run("searchsorted", (edges, x), side="right") - 1 if count >= 1 else x
    if count < 1:
        raise errors.ArgumentError(f"histogram: expected at least one interval, received bins {errors.shown(bins)}")
    inside = (x >= edges[0]) & (x <= edges[-1])
    places = run("clip", (places, 0, count - 1))
    amounts = cast(inside, dtypes.int64) if weights is None else where(inside, weights, 0)
    ground = made(amounts.device, "full", shape=(count,), value=0, dtype=amounts.dtype)
    counts = run("index_add", (ground, amounts, places), key=(ARRAY,))
    if as_flag(density, "histogram", "density"):
        counts = counts / (edges[1:] - edges[:-1]) / sum(counts)
    return counts, edges


def _even(x: Tensor[Any], count: int, range: Any) -> tuple[Tensor[Any], Tensor[Any]]:
    """The bounds of intervals of one width, and the interval of each value, by division and then by comparison."""
    if range is None:
        low, high = (min(x), max(x)) if x.size else (operand(np.zeros((), x.dtype), x, ""), operand(1.0, x, ""))
        low, high = cast(low, x.dtype), cast(high, x.dtype)
        if not np.isfinite(x.device.values_of((high - low)._array)).all():
            raise errors.ArgumentError("histogram: the values are not all finite, so give range=")
    else:
        bounds = [as_number(v, "histogram", "a bound") for v in range]
        if len(bounds) != 2 or not bounds[0] <= bounds[1] or not np.isfinite(bounds).all():
            raise errors.ArgumentError(f"histogram: range is two finite bounds, the lower one first; received {range}")
        low, high = (operand(np.asarray(v, x.dtype), x, "histogram") for v in bounds)
    low, high = where(low == high, low - 0.5, low), where(low == high, high + 0.5, high)
    steps = made(x.device, "arange", start=0, stop=count + 1, step=1, dtype=x.dtype)
    last = operand(np.arange(count + 1) == count, x, "histogram")
    edges = where(last, high, low + steps * ((high - low) / (count or 1)))
    if not count > 0:
        return edges, x
    scaled = (x - low) * (count / (high - low))
    scaled = where(run("isfinite", (scaled,)), run("clip", (scaled, -1.0, count + 1.0)), -1.0)
    places = run("clip", (cast(scaled, dtypes.int64), 0, count - 1))
    lower = run("index", (edges, places), key=(ARRAY,))
    upper = run("index", (edges, places + 1), key=(ARRAY,))
    places = places - cast(x < lower, dtypes.int64)
    return edges, places + cast((x >= upper) & (places < count - 1), dtypes.int64)
