"""Convolutions and windows in a plan: channels first and examples last in memory, as on the NumPy leaf."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from adjoint.compiler.graph import Equation, Value
from adjoint.compiler.native.kernels import Convolution
from adjoint.compiler.native.machine import vector_bytes
from adjoint.compiler.native.patches import direct, lines
from adjoint.compiler.native.views import Layout, contiguous
from adjoint.compiler.sizes import is_size
from adjoint.primitives import DType, Shape, conv_size

if TYPE_CHECKING:
    from adjoint.compiler.native.plan import Plan

_PLACES, _SIZES = 1 << 14, ("stride", "padding", "dilation")  # of a kernel
_WINDOW = 16  # places of a window


def take_conv(plan: Plan, e: Equation) -> bool:
    """As products without a matrix of patches; the result has channels first and examples last."""
    x, weight = e.operands
    how = {key: e.parameters[key] for key in ("stride", "padding", "dilation", "groups")}
    return _take_patches(plan, e, x, weight, weight.shape[0], weight.shape[2:], how)


def take_conv_input(plan: Plan, e: Equation) -> bool:
    """The convolution of the cotangent with the turned kernels, if each place was met."""
    (g, weight), groups, dilation = e.operands, e.parameters["groups"], e.parameters["dilation"]
    if weight.__class__ is not Value or weight.const is not None:
        return False
    (_, per_group, *kernel), axes = weight.shape, len(weight.shape) - 2
    if any(s != 1 for s in e.parameters["stride"]):
        return _take_input_in_phases(plan, e)
    around = [d * (k - 1) for d, k in zip(dilation, kernel, strict=True)]
    padding = tuple([(a - p, a - q) for a, (p, q) in zip(around, e.parameters["padding"], strict=True)])
    if any(p < 0 for pair in padding for p in pair):
        return False
    turned = _turned(plan, weight, groups, [range(n - 1, -1, -1) for n in kernel])
    how = {"stride": (1,) * axes, "padding": padding, "dilation": dilation, "groups": groups}
    return _take_patches(plan, e, g, turned, groups * per_group, tuple(kernel), how)


def _turned(plan: Plan, weight: Value, groups: int, places: Sequence[range]) -> Value:
    """Kernels as those from their results to their images, with these of their places."""
    (out, per_group, *kernel), axes = weight.shape, len(places)
    parts = Value((groups, out // groups, per_group, *kernel), weight.dtype)
    turned = Value((groups, per_group, out // groups, *kernel), weight.dtype)
    found = Value((*turned.shape[:3], *map(len, places)), weight.dtype)
    key = (*[range(n) for n in turned.shape[:3]], *places)
    for taken in (
        Equation("reshape", [weight], {"shape": parts.shape}, [parts]),
        Equation("permute_dims", [parts], {"axes": (0, 2, 1, *range(3, 3 + axes))}, [turned]),
        Equation("index", [turned], {"key": key}, [found]),
    ):
        if not plan._take_view(taken):  # of kernels that lie in another way
            (whole,) = plan._whole([weight])
            return _turned(plan, whole, groups, places)
    return found


class _Phase(NamedTuple):
    """Elements of an axis whose places have one rest of the stride: which they are, and what of a kernel meets them.

    `before` and `after` are how many zeros there have to be around the cotangent, which may be fewer than none.
    """

    first: int
    elements: int
    places: range
    before: int
    after: int


def _phases(size: int, count: int, kernel: int, stride: int, padding: int) -> list[_Phase]:
    """Those of an axis of images that any place of a kernel meets."""
    found = []
    for first in range(min(stride, size)):
        whole, rest = divmod(first + padding, stride)
        places = range(rest, kernel, stride)[::-1]
        elements = -(-(size - first) // stride)
        if places:
            found.append(_Phase(first, elements, places, len(places) - 1 - whole, elements + whole - count))
    return found


def _take_input_in_phases(plan: Plan, e: Equation) -> bool:
    """With a stride, every so many-th element of the images is met by every so many-th place of the kernels.

    So each part of them is a convolution of the cotangent, with a part of the kernels and a stride of 1 (V. Dumoulin,
    F. Visin, A guide to convolution arithmetic for deep learning, 2016, section 4).
    """
    (g, weight), how = e.operands, e.parameters
    if any(z.__class__ is not Value or z.const is not None for z in (g, weight)) or g.dtype != weight.dtype:
        return False
    per_group, groups, counts, stride = weight.shape[1], how["groups"], g.shape[2:], how["stride"]
    if any(d != 1 for d in how["dilation"]) or any(map(is_size, (*counts, *how["size"]))):
        return False
    sizes = zip(how["size"], counts, weight.shape[2:], stride, [before for before, _ in how["padding"]], strict=True)
    phases = [_phases(*axis) for axis in sizes]
    if not all(phases):
        return False
    padding = tuple([(max(0, *[p.before for p in axis]), max(0, *[p.after for p in axis])) for axis in phases])
    padded = (g.shape[1], *[n + sum(p) for n, p in zip(counts, padding, strict=True)], g.shape[0])
    shape = (groups * per_group, *how["size"], g.shape[0])
    given, made, ones = contiguous(padded), contiguous(shape), (1,) * len(counts)
    parts = []
    for part in itertools.product(*phases):
        starts = [before - p.before for (before, _), p in zip(padding, part, strict=True)]
        there = [p.elements + len(p.places) - 1 for p in part]
        images = Layout((padded[0], *there, padded[-1]), _far(starts, given), given.strides)
        steps = [s * far for s, far in zip(stride, made.strides[1:-1], strict=True)]
        counted = (shape[0], *[p.elements for p in part], shape[-1])
        result = Layout(counted, _far([p.first for p in part], made), (made.strides[0], *steps, 1))
        kernel = tuple([len(p.places) for p in part])
        found = lines(images, kernel, result, ones, ones, groups, per_group, False)
        if not direct(found, g.dtype) or found.number > _PLACES:
            return False
        parts.append((part, images, result, found))
    whole = _padded(plan, g, padded, padding) if any(map(sum, padding)) else _examples_last(plan, g)
    (whole,) = plan._whole([whole])
    base = Value(shape, g.dtype)
    if len(parts) < math.prod([min(s, n) for s, n in zip(stride, how["size"], strict=True)]):  # what nothing meets
        plan._take_part(_zero(g.dtype), base, made)
    for part, images, result, found in parts:
        (inner,) = plan._whole([_turned(plan, weight, groups, [p.places for p in part])])
        plan.parts.setdefault(base, []).append(len(plan.steps))
        plan.place[base] = len(plan.steps)
        layouts, apart = [images, plan._layout(inner)], made.strides[0]
        plan.steps.append(Convolution(base, (whole, inner), layouts, found, per_group, apart, False, result.offset))
    return _ordered(plan, e, base)


def _far(places: Sequence[int], layout: Layout) -> int:
    """How far these places along the sizes of images are from the first one."""
    return sum([i * s for i, s in zip(places, layout.strides[1:-1], strict=True)])


def take_conv_weight(plan: Plan, e: Equation) -> bool:
    x, g = e.operands
    how = {key: e.parameters[key] for key in ("stride", "padding", "dilation", "groups")}
    return _take_patches(plan, e, x, g, g.shape[1], e.parameters["size"], how, weighs=True)


def _take_patches(
    plan: Plan,
    e: Equation,
    x: Any,
    other: Any,
    channels: int,
    kernel: Shape,
    how: dict[str, Any],
    weighs: bool = False,
) -> bool:
    """A convolution of images with weights to so many channels, or, which weighs, with their cotangent."""
    (out,), groups = e.results, how["groups"]
    if any(z.__class__ is not Value or z.const is not None for z in (x, other)) or x.dtype != other.dtype:
        return False
    padding = how["padding"]
    counts = other.shape[2:] if weighs else tuple(map(conv_size, x.shape[2:], kernel, *[how[key] for key in _SIZES]))
    if any(p < 0 for pair in padding for p in pair) or x.shape[1] // groups * math.prod(kernel) > _PLACES:
        return False
    padded = (x.shape[1], *[n + sum(p) for n, p in zip(x.shape[2:], padding, strict=True)], x.shape[0])
    whole = contiguous((channels, *counts, x.shape[0]))
    inner = _within_padded(plan, other) if weighs else None
    result = whole if inner is None else plan._layout(inner)
    found = lines(
        contiguous(padded), kernel, result, how["stride"], how["dilation"], groups, channels // groups, weighs
    )
    if not direct(found, x.dtype):
        return False
    images = _padded(plan, x, padded, padding) if any(map(sum, padding)) else _examples_last(plan, x)
    (images,) = plan._whole([images])
    if inner is None:
        (inner,) = plan._whole([_examples_last(plan, other) if weighs else other])
    order = (*range(1, len(out.shape)), 0)  # type: ignore[union-attr]
    base: Any = out if weighs else Value(tuple([out.shape[i] for i in order]), out.dtype)  # type: ignore[union-attr]
    plan.place[base] = len(plan.steps)
    layouts, apart = [plan._layout(z) for z in (images, inner)], result.strides[0]
    plan.steps.append(Convolution(base, (images, inner), layouts, found, channels // groups, apart, weighs))
    if not weighs:
        plan._order_as(base, out, order)  # type: ignore[arg-type]
    return True


def _examples_last(plan: Plan, x: Value) -> Value:
    """The same with its first axis last, as it may lie in memory."""
    order = (*range(1, len(x.shape)), 0)
    if plan.order.get(x) == order:
        return plan.source[x][1]
    turned = Value(tuple([x.shape[i] for i in order]), x.dtype)
    if not plan._take_view(Equation("permute_dims", [x], {"axes": order}, [turned])):
        raise AssertionError(x.shape)  # transposes are always views
    return turned


def _padded(plan: Plan, x: Value, shape: Shape, padding: Sequence[tuple[int, int]]) -> Value:
    """The same with its first axis last and zeros around, made once."""
    found = plan.padded.get((x, padding))
    if found is None:
        found, whole = Value(shape, x.dtype), contiguous(shape)
        start = _far([before for before, _ in padding], whole)
        images = _examples_last(plan, x)
        step = plan._take_part(_zero(x.dtype), found, whole)
        plan._take_part(images, found, Layout(tuple(images.shape), start, whole.strides), after=step)
        plan.padded[x, padding] = found
    return found


def _within_padded(plan: Plan, x: Value) -> Value | None:
    """The same with its first axis last, where it lies with zeros around; None if it is not there."""
    for (images, padding), found in plan.padded.items():
        if images is x:
            whole = contiguous(found.shape)
            there = Value((*x.shape[1:], x.shape[0]), x.dtype)
            layout = Layout(there.shape, _far([before for before, _ in padding], whole), whole.strides)
            plan.layout[there], plan.root[there] = layout, found
            return there
    return None


def _zero(dtype: DType) -> Value:
    return Value((), dtype, np.zeros((), dtype))


# --- windows ---


def take_max_pool(plan: Plan, e: Equation) -> bool:
    found = _windows(plan, e, e.operands[0])
    if found is None:
        return False
    x, places, counts = found
    return _ordered(plan, e, _folded(plan, x, places, counts, "maximum", e))


def take_window_sum(plan: Plan, e: Equation) -> bool:
    found = _windows(plan, e, e.operands[0])
    if found is None:
        return False
    x, places, counts = found
    return _ordered(plan, e, _folded(plan, x, places, counts, "add", e))


def take_max_pool_pullback(plan: Plan, e: Equation) -> bool:
    """The cotangent goes to the first of the largest elements of a window, or the first nan; windows do not overlap."""
    g, found = e.operands[0], _windows(plan, e, e.operands[1])
    if found is None or g.__class__ is not Value or g.const is not None or not _apart(e):
        return False
    base, places, counts = found
    top = _folded(plan, base, places, counts, "maximum", e)
    g, left, parts = _examples_last(plan, g), None, []

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
    return _ordered(plan, e, _spread(plan, base.shape, parts, counts, e))


def take_window_spread(plan: Plan, e: Equation) -> bool:
    """What each element of a window gets; windows do not overlap."""
    g, (out,) = e.operands[0], e.results
    if g.__class__ is not Value or g.const is not None or not _apart(e) or not _wide(plan, g, e):
        return False
    base = _examples_last(plan, g)
    shape = (*out.shape[1:], out.shape[0])  # type: ignore[union-attr]
    value = Value(base.shape, g.dtype)
    plan._take_native(Equation("add", [base, 0.0], {}, [value], backward=e.backward, line=e.line))
    places = itertools.product(*map(range, e.parameters["kernel"]))
    counts = g.shape[2:]
    return _ordered(plan, e, _spread(plan, shape, [(place, value) for place in places], counts, e))


def _wide(plan: Plan, x: Any, e: Equation) -> bool:
    """Whether windows of images are taken for several examples at once, or in a loop, that Python would run without."""
    order = (*range(1, len(x.shape)), 0)
    few: bool = math.prod(e.parameters["kernel"]) <= _WINDOW
    if plan.inner:
        return few
    many = is_size(x.shape[0]) or x.shape[0] * x.dtype.itemsize >= vector_bytes()
    return few and many and plan.order.get(x) == order


def _windows(plan: Plan, e: Equation, x: Any) -> tuple[Value, Shape, Shape] | None:
    """Images with examples last, places of a window, and how many windows there are."""
    kernel, how = e.parameters["kernel"], e.parameters
    if x.__class__ is not Value or any(map(any, how["padding"])) or len(x.shape) != len(kernel) + 2:
        return None
    if x.dtype.kind != "f" or not _wide(plan, x, e):
        return None
    counts = tuple(map(conv_size, x.shape[2:], kernel, how["stride"], how["padding"], how["dilation"]))
    return _examples_last(plan, x), tuple(kernel), counts


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
    step = -1 if filled else plan._take_part(_zero(value.dtype), out, whole)
    for place, part in parts:
        keys = _key(place, counts, e)
        start = _far([k.start for k in keys], whole)
        strides = [k.step * s for k, s in zip(keys, whole.strides[1:-1], strict=True)]
        layout = Layout(tuple(part.shape), start, (whole.strides[0], *strides, 1))
        plan._take_part(part, out, layout, after=step)
    return out


def _ordered(plan: Plan, e: Equation, base: Value) -> bool:
    """The result is what has its first axis last in memory."""
    (out,) = e.results
    plan._order_as(base, out, (*range(1, len(out.shape)), 0))  # type: ignore[arg-type, union-attr]
    return True
