"""Differences, integrals, convolutions and polynomials of sampled functions."""

from __future__ import annotations

import math
from typing import Any, Never

from adjoint import dtypes, errors
from adjoint.functions.arguments import (
    as_axis,
    as_flag,
    as_integer,
    as_number,
    as_tensor,
    as_tensors,
    as_wide,
    axes_in_order,
    explained,
    inexact,
    keyword_error,
)
from adjoint.functions.creation import made
from adjoint.functions.elementwise import where
from adjoint.functions.reduction import sum
from adjoint.functions.shape import broadcast_to, concat, expand_dims, flip, reshape
from adjoint.operands import is_weak, operand, run
from adjoint.tensor import Axis, Operand, Tensor
from adjoint.variables import B


def _cut(x: Tensor[Any], axis: int, start: int | None, stop: int | None) -> Tensor[Any]:
    return x[(*[slice(None)] * axis, slice(start, stop))]


def _along(line: Tensor[Any], axis: int, ndim: int) -> Tensor[Any]:
    return reshape(line, tuple(-1 if i == axis else 1 for i in range(ndim)))


@explained
def gradient(f: Operand[B], /, *spacings: Any, axis: Axis = None, edge_order: int = 1, **unknown: Never) -> Any:
    """The derivatives of sampled values along axes, by central differences inside and one-sided ones at the ends.

    Parameters
    ----------
    f
        The samples. Integers give the default dtype.
    spacings
        The distance of samples: none for 1, one number for all axes, or for each axis a number or the vector of its
        samples' coordinates. Gradients flow to these too.
    axis
        The axes, all if None.
    edge_order
        1 or 2: the order of accuracy at the ends.

    Returns
    -------
    A tensor of the shape of f for one axis, else a tuple with one for each.

    Raises
    ------
    ArgumentError, ShapeError, AxisError
        Spacings that do not fit, another edge order; too few samples for it.

    Examples
    --------
    >>> import adjoint as ad
    >>> ad.gradient(ad.tensor([1.0, 2.0, 4.0, 7.0])).tolist()
    [1.0, 1.5, 2.5, 3.0]
    """
    if unknown:
        raise keyword_error(gradient, unknown)
    f = inexact(f, "gradient", *spacings)
    axes = axes_in_order(axis, f.ndim, "gradient")
    if as_integer(edge_order, "gradient", "edge_order") not in (1, 2):
        raise errors.ArgumentError(f"gradient: edge_order is 1 or 2, received {errors.shown(edge_order)}")
    given = list(spacings) or [1.0]
    if len(given) == 1 and (
        is_weak(given[0])
        or not (given[0].ndim if isinstance(given[0], Tensor) else dtypes.array_of(given[0], "gradient").ndim)
    ):
        given *= len(axes)
    if len(given) != len(axes):
        raise errors.ArgumentError(f"gradient: {len(given)} spacings for {len(axes)} axes")
    out = [_gradient(f, h, i, edge_order) for h, i in zip(given, axes, strict=True)]
    return out[0] if len(out) == 1 else tuple(out)


def _gradient(f: Tensor[Any], spacing: Any, axis: int, order: int) -> Tensor[Any]:
    n = f.shape[axis]
    if n < order + 1:
        raise errors.ShapeError(f"gradient: {n} samples along axis {axis}, expected at least {order + 1}")

    def at(start: int, stop: int | None = None) -> Tensor[Any]:
        return _cut(f, axis, start, stop if stop is not None else (start + 1) or None)

    if is_weak(spacing):
        h: Any = spacing
    else:
        h = operand(spacing, f, "gradient")
        if h.ndim > 1 or (h.ndim == 1 and h.size != n):
            raise errors.ShapeError(f"gradient: coordinates of shape {h.shape} for {n} samples along axis {axis}")
        if h.ndim == 1:
            return _uneven(f, h[1:] - h[:-1], axis, order, at)
    inner = (_cut(f, axis, 2, None) - _cut(f, axis, None, n - 2)) / (2 * h)
    if order == 1:
        first, last = (at(1) - at(0)) / h, (at(-1) - at(-2)) / h
    else:
        first = (-1.5 * at(0) + 2 * at(1) - 0.5 * at(2)) / h
        last = (1.5 * at(-1) - 2 * at(-2) + 0.5 * at(-3)) / h
    return concat([first, inner, last], axis=axis)


def _uneven(f: Tensor[Any], h: Tensor[Any], axis: int, order: int, at: Any) -> Tensor[Any]:
    """A. Quarteroni, R. Sacco and F. Saleri, Numerical Mathematics (2007), 10.10: from Taylor's formula."""
    n = f.shape[axis]
    slope = (_cut(f, axis, 1, None) - _cut(f, axis, None, n - 1)) / _along(h, axis, f.ndim)
    first, last = _cut(slope, axis, 0, 1), _cut(slope, axis, n - 2, None)
    if n == 2:
        return concat([first, last], axis=axis)
    share = _along(h[:-1] / (h[:-1] + h[1:]), axis, f.ndim)
    left, right = _cut(slope, axis, None, n - 2), _cut(slope, axis, 1, None)
    inner = left + (right - left) * share
    if order == 2:  # the derivative at the end of the parabola through three points
        bend = _cut(slope, axis, 1, 2) - first
        first = first - bend * (h[0] / (h[0] + h[1]))
        bend = last - _cut(slope, axis, n - 3, n - 2)
        last = last + bend * (h[-1] / (h[-1] + h[-2]))
    return concat([first, inner, last], axis=axis)


def _panels(name: str, y: Any, x: Any, dx: Any, axis: Any) -> tuple[Tensor[Any], int]:
    """The integrals between neighbouring samples: twice."""
    y = inexact(y, name, x, dx)
    place = as_axis(axis, y.ndim, name)
    widths = dx
    if x is not None:
        x = operand(x, y, name)
        if x.ndim == 1 and x.size == y.shape[place]:
            widths = _along(x[1:] - x[:-1], place, y.ndim)
        elif x.shape == y.shape:
            widths = _cut(x, place, 1, None) - _cut(x, place, None, -1)
        else:
            raise errors.ShapeError(f"{name}: coordinates of shape {x.shape} for samples of shape {y.shape}")
    elif not is_weak(dx):
        widths = operand(dx, y, name)
    return (_cut(y, place, 1, None) + _cut(y, place, None, -1)) * widths, place


@explained
def trapezoid(y: Operand[B], x: Any = None, /, dx: Any = 1.0, axis: int = -1, **unknown: Never) -> Tensor[B]:
    """The integral of samples along an axis by the trapezoidal rule.

    `x` has the samples' coordinates, as a vector or for all of them; without it they are `dx` apart. Gradients flow to
    all three. Raises ShapeError for coordinates that do not fit, AxisError for an axis that is not there.

    >>> import adjoint as ad
    >>> ad.trapezoid(ad.tensor([1.0, 2.0, 3.0]), [4.0, 6.0, 8.0]).item()
    8.0
    """
    if unknown:
        raise keyword_error(trapezoid, unknown)
    panels, place = _panels("trapezoid", y, x, dx, axis)
    return sum(panels, place) * 0.5


@explained
def cumulative_trapezoid(
    y: Operand[B], x: Any = None, /, *, dx: Any = 1.0, axis: int = -1, initial: float | None = None, **unknown: Never
) -> Tensor[B]:
    """The integrals up to each sample but the first; `initial` is the value at that one, if given. As `trapezoid`."""
    if unknown:
        raise keyword_error(cumulative_trapezoid, unknown)
    panels, place = _panels("cumulative_trapezoid", y, x, dx, axis)
    out = run("cumulative_sum", (panels,), axis=place) * 0.5
    if initial is None:
        return out  # type: ignore[no-any-return]
    value = as_number(initial, "cumulative_trapezoid", "initial")
    shape = tuple(1 if i == place else n for i, n in enumerate(out.shape))
    return concat([made(out.device, "full", shape=shape, value=value, dtype=out.dtype), out], axis=place)


# --- convolution ---


# --- polynomials, phases ---


def polyval(p: Any, x: Operand[B], /) -> Tensor[B]:
    """The polynomial with coefficients p, that of the highest power first, at x, by Horner's rule.

    It loops over the coefficients, for all of x at once. Gradients flow to both.
    Raises ShapeError for coefficients that are no vector.

    >>> import adjoint as ad
    >>> ad.polyval(ad.tensor([3.0, 0.0, 1.0]), ad.tensor([1.0, 2.0])).tolist()
    [4.0, 13.0]
    """
    number = is_weak(x)
    p, x = as_tensors([p, x], "polyval")
    if number:  # an integer is an int64, as NumPy reads it
        p, x = as_wide(p), as_wide(x)
    if p.ndim != 1:
        raise errors.ShapeError(f"polyval: coefficients are a vector, received shape {p.shape}")
    if not p.size:
        return x * 0
    out = broadcast_to(p[0], x.shape)
    for i in range(1, p.size):
        out = out * x + p[i]
    return out


def vander(x: Operand[B], n: int | None = None, /, increasing: bool = False) -> Tensor[B]:
    """The powers of a vector's elements as columns, the highest first, or last if `increasing`; n of them.

    As many as elements if n is None; of integers int64. Raises ShapeError for other than a vector, or a negative n.
    """
    x = as_tensor(x, "vander")
    count = x.size if n is None and x.ndim == 1 else as_integer(n, "vander", "n") if n is not None else 0
    if x.ndim != 1 or count < 0:
        raise errors.ShapeError(f"vander: expected a vector and n from 0, received shape {x.shape} and {n}")
    x = as_wide(x)
    factors = run("broadcast_to", (expand_dims(x, 1),), shape=(x.size, max(0, count - 1)))
    powers = run("cumulative_prod", (factors,), axis=1)
    ones = made(x.device, "full", shape=(x.size, min(count, 1)), value=1, dtype=x.dtype)
    out = concat([ones, powers], axis=1)
    return out if as_flag(increasing, "vander", "increasing") else flip(out, axis=1)


def unwrap(p: Operand[B], /, discont: float | None = None, axis: int = -1, *, period: float = 2 * math.pi) -> Tensor[B]:
    """Phases along an axis without jumps: wherever neighbours differ by more than half a period, periods are added.

    `discont`, if larger than half a period, is the least jump that is one. The gradient is that of p.
    """
    p = inexact(p, "unwrap")
    place = as_axis(axis, p.ndim, "unwrap")
    whole = as_number(period, "unwrap", "period")
    least = whole / 2 if discont is None else max(whole / 2, as_number(discont, "unwrap", "discont"))
    step = _cut(p, place, 1, None) - _cut(p, place, None, -1)
    half = whole / 2
    wrapped = (step + half) % whole - half
    wrapped = where((wrapped == -half) & (step > 0), half, wrapped)
    # a multiple of the period, constant between its jumps
    fix = where(abs(step) < least, 0.0, wrapped - step).detach()
    widths = tuple((1, 0) if i == place else (0, 0) for i in range(p.ndim))
    return p + run("pad", (run("cumulative_sum", (fix,), axis=place),), widths=widths, value=0)  # type: ignore[no-any-return]
