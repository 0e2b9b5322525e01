"""Images in a plan, with channels first and examples last in memory, as on the NumPy leaf; and windows of them."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from adjoint.compiler.graph import Equation, Value
from adjoint.compiler.native.views import Layout, contiguous
from adjoint.primitives import DType, Shape, conv_size

if TYPE_CHECKING:
    from adjoint.compiler.native.plan import Plan

_WINDOW = 16  # places of a window


def examples_last(plan: Plan, x: Value) -> Value:
    """The same with its first axis last, as it may lie in memory."""
    order = (*range(1, len(x.shape)), 0)
    if plan.order.get(x) == order:
        return plan.source[x][1]
    turned = Value(tuple([x.shape[i] for i in order]), x.dtype)
    if not plan._take_view(Equation("permute_dims", [x], {"axes": order}, [turned])):
        raise AssertionError(x.shape)  # transposes are always views
    return turned


def padded(plan: Plan, x: Value, shape: Shape, padding: Sequence[tuple[int, int]]) -> Value:
    """The same with its first axis last and zeros around, made once."""
    found = plan.padded.get((x, padding))
    if found is None:
        found, whole = Value(shape, x.dtype), contiguous(shape)
        start = far([before for before, _ in padding], whole)
        images = examples_last(plan, x)
        step = plan._take_part(zero(x.dtype), found, whole)
        plan._take_part(images, found, Layout(tuple(images.shape), start, whole.strides), after=step)
        plan.padded[x, padding] = found
    return found


def within_padded(plan: Plan, x: Value) -> Value | None:
    """The same with its first axis last, where it lies with zeros around; None if it is not there."""
    for (images, padding), found in plan.padded.items():
        if images is x:
            whole = contiguous(found.shape)
            there = Value((*x.shape[1:], x.shape[0]), x.dtype)
            layout = Layout(there.shape, far([before for before, _ in padding], whole), whole.strides)
            plan.layout[there], plan.root[there] = layout, found
            return there
    return None


def zero(dtype: DType) -> Value:
    return Value((), dtype, np.zeros((), dtype))


def far(places: Sequence[int], layout: Layout) -> int:
    """How far these places along the sizes of images are from the first one."""
    return sum([i * s for i, s in zip(places, layout.strides[1:-1], strict=True)])


# --- windows ---


def take_max_pool(plan: Plan, e: Equation) -> bool:
    found = _windows(plan, e, e.operands[0])
    if found is None:
        return False
    x, places, counts = found
    return ordered(plan, e, _folded(plan, x, places, counts, "maximum", e))


def take_window_sum(plan: Plan, e: Equation) -> bool:
    found = _windows(plan, e, e.operands[0])
    if found is None:
        return False
    x, places, counts = found
    return ordered(plan, e, _folded(plan, x, places, counts, "add", e))


def take_max_pool_pullback(plan: Plan, e: Equation) -> bool:
    """The cotangent goes to the first of the largest elements of a window, or the first nan; windows do not overlap."""
    g, found = e.operands[0], _windows(plan, e, e.operands[1])
    if found is None or g.__class__ is not Value or g.const is not None or not _apart(e):
        return False
    base, places, counts = found
    top = _folded(plan, base, places, counts, "maximum", e)
    g, left, parts = examples_last(plan, g), None, []

    def made(name: str, operands: Sequence[Any], dtype: Any, **parameters: Any) -> Value:
        value = Value(top.shape, np.dtype(dtype))
        plan._take_native(Equation(name, list(operands), parameters, [value], backward=e.backward, line=e.line))
        return value

    for place in itertools.product(*map(range, places)):
        there = _met(plan, base, place, counts, e)
        hit = made("logical_or", [made("equal", [there, top], bool), made("isnan", [there], bool)], bool)
        first = hit if left is None else made("logical_and", [hit, left], bool)
        missed = made("logical_not", [hit], bool)
        left = missed if left is None else made("logical_and", [left, missed], bool)
        parts.append((place, made("where", [first, g, 0.0], g.dtype)))
    return ordered(plan, e, _spread(plan, base.shape, parts, counts, e))


def take_window_spread(plan: Plan, e: Equation) -> bool:
    """What each element of a window gets; windows do not overlap."""
    g, (out,) = e.operands[0], e.results
    if g.__class__ is not Value or g.const is not None or not _apart(e) or not _is_small(e):
        return False
    base = examples_last(plan, g)
    shape = (*out.shape[1:], out.shape[0])  # type: ignore[union-attr]
    value = Value(base.shape, g.dtype)
    plan._take_native(Equation("add", [base, 0.0], {}, [value], backward=e.backward, line=e.line))
    places = itertools.product(*map(range, e.parameters["kernel"]))
    counts = g.shape[2:]
    return ordered(plan, e, _spread(plan, shape, [(place, value) for place in places], counts, e))


def _is_small(e: Equation) -> bool:
    """Whether windows have few places: for each there is an equation."""
    return bool(math.prod(e.parameters["kernel"]) <= _WINDOW)


def _windows(plan: Plan, e: Equation, x: Any) -> tuple[Value, Shape, Shape] | None:
    """Images with examples last, places of a window, and how many windows there are."""
    kernel, how = e.parameters["kernel"], e.parameters
    if x.__class__ is not Value or any(map(any, how["padding"])) or len(x.shape) != len(kernel) + 2:
        return None
    if x.dtype.kind != "f" or not _is_small(e):
        return None
    counts = tuple(map(conv_size, x.shape[2:], kernel, how["stride"], how["padding"], how["dilation"]))
    return examples_last(plan, x), tuple(kernel), counts


def _apart(e: Equation) -> bool:
    """Whether windows do not overlap, without a border."""
    how = e.parameters
    sizes = zip(how["kernel"], how["stride"], how["dilation"], strict=True)
    return not any(map(any, how["padding"])) and all(s >= d * (k - 1) + 1 for k, s, d in sizes)


def _key(place: Sequence[int], counts: Shape, e: Equation) -> tuple[slice, ...]:
    """Where all windows have their element of this place, along the axes of the images."""
    steps = zip(place, counts, e.parameters["stride"], e.parameters["dilation"], strict=True)
    return tuple([slice(i * d, i * d + s * (n - 1) + 1, s) for i, n, s, d in steps])


def _met(plan: Plan, base: Value, place: Sequence[int], counts: Shape, e: Equation) -> Value:
    channels, examples = base.shape[0], base.shape[-1]
    view = Value((channels, *counts, examples), base.dtype)
    key = (slice(None), *_key(place, counts, e), slice(None))
    if not plan._take_view(Equation("index", [base], {"key": key}, [view])):
        raise AssertionError(key)  # slices are always views
    return view


def _folded(plan: Plan, base: Value, places: Shape, counts: Shape, name: str, e: Equation) -> Value:
    """Elements of windows combined, along one axis after the other, as the NumPy leaf does."""

    def along(axis: int, later: tuple[int, ...]) -> Value:
        if axis < 0:
            return _met(plan, base, later, counts, e)
        total = along(axis - 1, (0, *later))
        for place in range(1, places[axis]):
            value, following = along(axis - 1, (place, *later)), Value(total.shape, total.dtype)
            plan._take_native(Equation(name, [total, value], {}, [following], backward=e.backward, line=e.line))
            total = following
        return total

    found = along(len(places) - 1, ())
    if math.prod(places) == 1:
        return plan._copied(found)
    return found


def _spread(
    plan: Plan, shape: Shape, parts: Sequence[tuple[Sequence[int], Value]], counts: Shape, e: Equation
) -> Value:
    """An array with these values at their places of all windows, and zeros elsewhere."""
    value = parts[0][1]
    out, whole = Value(shape, value.dtype), contiguous(shape)
    filled = len(parts) * math.prod(value.shape) == math.prod(shape)
    step = -1 if filled else plan._take_part(zero(value.dtype), out, whole)
    for place, part in parts:
        keys = _key(place, counts, e)
        start = far([k.start for k in keys], whole)
        strides = [k.step * s for k, s in zip(keys, whole.strides[1:-1], strict=True)]
        layout = Layout(tuple(part.shape), start, (whole.strides[0], *strides, 1))
        plan._take_part(part, out, layout, after=step)
    return out


def ordered(plan: Plan, e: Equation, base: Value) -> bool:
    """The result is what has its first axis last in memory."""
    (out,) = e.results
    plan._order_as(base, out, (*range(1, len(out.shape)), 0))  # type: ignore[arg-type, union-attr]
    return True
