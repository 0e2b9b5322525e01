"""Borders around tensors."""

from __future__ import annotations

from collections.abc import Callable
from types import FunctionType
from typing import Any

import numpy as np

from adjoint import dtypes, errors
from adjoint.functions.arguments import as_axis, as_choice, as_constant, as_tensor, check_shape, computed, is_integer
from adjoint.functions.creation import made, places_beside
from adjoint.functions.elementwise import where
from adjoint.functions.reduction import max as largest
from adjoint.functions.reduction import mean
from adjoint.functions.reduction import min as least
from adjoint.functions.shape import flip
from adjoint.functions.statistics import median
from adjoint.operands import cast, constant_like, refuse_fractions, run
from adjoint.primitives.sizes import stands
from adjoint.tensor import Operand, Tensor
from adjoint.variables import B

Side = tuple[Any, Any]


def pad(
    x: Operand[B],
    /,
    pad_width: Any,
    mode: str = "constant",
    *,
    value: complex = 0,
    end_values: Any = 0,
    stat_length: Any = None,
    reflect_type: str = "even",
) -> Tensor[B]:
    """A border around the tensor: of a constant value, or of what the elements say.

    Parameters
    ----------
    x
        Of any shape and dtype.
    pad_width
        One width for all sides, a pair (before, after) for all axes, a pair for each axis, or a dict of these by axis,
        in which axes that are left out get none.
    mode
        That of NumPy: "constant" takes `value`, "edge" repeats the outermost element, "reflect" goes back from it,
        "symmetric" goes back and begins with it again, "wrap" goes on at the other end, "linear_ramp" goes straight to
        `end_values`, "maximum", "minimum", "mean" and "median" repeat what these are along the axis, "empty" leaves
        open what there is (zeros). Axes are padded in their order, corners with what was padded before.
    value
        The number of "constant".
    end_values
        The outermost number of "linear_ramp", given as `pad_width` is.
    stat_length
        From how many elements next to the border "maximum" and its like are taken, given as `pad_width` is; None for
        all along the axis.
    reflect_type
        "even", or with "reflect" and "symmetric" also "odd": twice the outermost element less what is reflected.

    Returns
    -------
    A tensor of the dtype of x; what is made of integers is rounded as NumPy does, halves to even, ramps down. The
    gradient adds up what an element became.

    Raises
    ------
    ArgumentError, ShapeError
        Any other form or mode, also a function, or negative widths; a border of elements where there are none.
    DtypeError
        A value that the dtype of x does not hold, such as a float beside integers.

    Examples
    --------
    >>> import adjoint as ad
    >>> ad.pad(ad.tensor([1.0, 2.0]), (1, 2)).tolist()
    [0.0, 1.0, 2.0, 0.0, 0.0]
    >>> ad.pad(ad.tensor([1.0, 2.0, 3.0]), 2, mode="reflect").tolist()
    [3.0, 2.0, 1.0, 2.0, 3.0, 2.0, 1.0]
    >>> ad.pad(ad.tensor([4.0, 2.0]), 2, mode="linear_ramp").tolist()
    [0.0, 2.0, 4.0, 2.0, 1.0, 0.0]
    """
    x = as_tensor(x, "pad")
    as_choice(mode, "pad", "mode", ("constant", *_REPEATED, "linear_ramp", *_STATISTICS, "empty"))
    odd = as_choice(reflect_type, "pad", "reflect_type", ("even", "odd")) == "odd"
    given = pairs(pad_width, x.ndim, "pad_width", _is_width)
    border = [(a if stands(a) else int(a), b if stands(b) else int(b)) for a, b in given]
    check_shape(tuple([n + a + b for n, (a, b) in zip(x.shape, border, strict=True)]), "pad")
    if mode in ("constant", "empty"):
        value = value if mode == "constant" else 0
        refuse_fractions(value, x.dtype, "pad")
        fill = as_constant(value, x.dtype, "pad")
        return run("pad", (x,), widths=tuple(border), value=fill)  # type: ignore[no-any-return]
    ends = pairs(end_values, x.ndim, "end_values", _is_number) if mode == "linear_ramp" else border
    lengths = pairs(stat_length, x.ndim, "stat_length", _is_length) if mode in _STATISTICS else border
    out: Tensor[Any] = x
    for axis, widths in enumerate(border):
        if not any(widths):
            continue
        n = x.shape[axis]
        if not n:
            raise errors.ShapeError(f"pad: mode {mode!r} has no elements to take along axis {axis} of {x.shape}")
        if mode == "linear_ramp":
            sides = _ramps(out, axis, widths, ends[axis])
        elif mode in _STATISTICS:
            sides = _statistics(out, axis, widths, lengths[axis], mode)
        elif odd and mode in ("reflect", "symmetric") and n > 1:
            sides = _turned(out, axis, widths, mode)
        else:
            out = out[(*[slice(None)] * axis, _repeated(out, n, widths, mode))]
            continue
        out = run("concat", (sides[0], out, sides[1]), axis=axis)
    return out


_REPEATED = ("edge", "reflect", "symmetric", "wrap")
_STATISTICS: dict[str, Callable[..., Any]] = {"maximum": largest, "minimum": least, "mean": mean, "median": median}


def pairs(value: Any, ndim: int, what: str, valid: Callable[[Any], bool]) -> list[Side]:
    """One pair for each axis: of one for all sides, a pair, a pair for each axis, or a dict of these by axis."""
    if isinstance(value, dict):
        found = {as_axis(axis, ndim, "pad"): pairs(each, 1, what, valid)[0] for axis, each in value.items()}
        rest = None if valid is _is_length else 0
        return [found.get(axis, (rest, rest)) for axis in range(ndim)]
    later = _has_later(value)
    try:
        given = np.broadcast_to(np.asarray(_boxed(value) if later else value, dtype=object), (ndim, 2)).tolist()
    except ValueError:
        given = None
    if given is not None and later:
        given = [[each() if each.__class__ is FunctionType else each for each in pair] for pair in given]
    if given is None or not all(valid(each) for pair in given for each in pair):
        raise errors.ArgumentError(
            f"pad: {what} is {_WANTED[what]}, a pair, or a pair for each of {ndim} axes; received {errors.shown(value)}"
        )
    return [(before, after) for before, after in given]


_WANTED = {
    "pad_width": "a non-negative integer",
    "end_values": "a number",
    "stat_length": "a positive integer or None",
    "value": "a number",
}


def _has_later(value: Any) -> bool:
    if isinstance(value, (list, tuple)):
        return any([_has_later(each) for each in value])
    return stands(value)


def _boxed(value: Any) -> Any:
    """Numbers that stand for others out of NumPy's sight, which would ask for them."""
    if isinstance(value, (list, tuple)):
        return [_boxed(each) for each in value]
    return (lambda: value) if stands(value) else value


def _is_width(value: Any) -> bool:
    return is_integer(value) and value >= 0


def _is_length(value: Any) -> bool:
    return value is None or (_is_width(value) and value > 0)


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float, complex, np.number)) and not isinstance(value, bool)


def _repeated(x: Tensor[Any], n: Any, widths: Side, mode: str) -> Any:
    """The places that a line of n elements is made of, with a border in which they come again."""
    if not any(map(stands, (n, *widths))):
        return computed("pad", np.pad, computed("pad", np.arange, n), widths, mode=mode)
    places = places_beside(x, n + widths[1], -widths[0], of=[n])
    if mode == "edge":
        return np.clip(places, 0, n - 1)
    if mode == "wrap":
        return places % n
    again = mode == "symmetric"
    period = 2 * n if again else max(2 * (n - 1), 1)
    places = places % period
    return where(places < n, places, period - again - places)


def _part(x: Tensor[Any], axis: int, start: int, stop: int) -> Tensor[Any]:
    return run("index", (x,), key=(*[slice(None)] * axis, slice(start, stop, 1)))  # type: ignore[no-any-return]


def _along(values: Any, axis: int, x: Tensor[Any]) -> Tensor[Any]:
    """Numbers for the places along an axis, beside x in its dtype."""
    shape = [-1 if i == axis else 1 for i in range(x.ndim)]
    return cast(constant_like(values.reshape(shape), x, "pad"), x.dtype)


def _spread(x: Tensor[Any], axis: int, width: int) -> Tensor[Any]:
    """One slice as often as the border is wide."""
    shape = tuple(width if i == axis else n for i, n in enumerate(x.shape))
    return run("broadcast_to", (x,), shape=shape)  # type: ignore[no-any-return]


def _ramps(x: Tensor[Any], axis: int, widths: Side, ends: Side) -> list[Tensor[Any]]:
    """From the end to the edge, the edge itself left out; of integers the exact values rounded down."""
    n = x.shape[axis]
    sides = []
    for edge, width, end in zip((_part(x, axis, 0, 1), _part(x, axis, n - 1, n)), widths, ends, strict=True):
        end = made(x.device, "full", shape=(), value=as_constant(end, x.dtype, "pad"), dtype=x.dtype)
        steps = np.arange(width)
        if x.dtype.kind in dtypes.INEXACT:
            side = end + (edge - end) * _along(steps / np.maximum(width, 1), axis, x)
        else:
            end, edge = cast(end, dtypes.int64), cast(edge, dtypes.int64)
            rise = run("floor_divide", ((edge - end) * _along(steps, axis, edge), np.maximum(width, 1).item()))
            side = cast(end + rise, x.dtype)
        sides.append(side)
    return [sides[0], flip(sides[1], axis=axis)]


def _statistics(x: Tensor[Any], axis: int, widths: Side, lengths: Side, mode: str) -> list[Tensor[Any]]:
    n, statistic = x.shape[axis], _STATISTICS[mode]
    before, after = (n if length is None or length > n else int(length) for length in lengths)
    sides = []
    for part, width in zip((_part(x, axis, 0, before), _part(x, axis, n - after, n)), widths, strict=True):
        whole = x.dtype.kind in "biu" and mode in ("mean", "median")
        wide = cast(part, x.device.leaf.widest(dtypes.float64)) if whole else part
        one = statistic(wide, axis, keepdims=True)
        sides.append(_spread(cast(run("round", (one,)), x.dtype) if whole else one, axis, width))
    return sides


def _turned(x: Tensor[Any], axis: int, widths: Side, mode: str) -> list[Tensor[Any]]:
    """Odd reflections at both ends: what is one period on is larger by twice the difference of the ends."""
    n, again = x.shape[axis], mode == "symmetric"
    period = 2 * n if again else 2 * (n - 1)
    first, last = _part(x, axis, 0, 1), _part(x, axis, n - 1, n)
    sides = []
    for places in (places_beside(x, 0, -widths[0], of=[n]), places_beside(x, n + widths[1], n)):
        turns, place = places // period, places % period
        back = place >= n - (not again)  # less what is reflected at the last element
        picked = x[(*[slice(None)] * axis, np.where(back, period - again - place, place))]
        total = where(_along(back, axis, x) != 0, -picked, picked)
        for end, times in ((last, 2 * (turns + back)), (first, -2 * turns)):
            factor = _along(times, axis, x)
            total = total + where(factor == 0, 0, end) * factor  # which may be infinite
        sides.append(total)
    return sides
