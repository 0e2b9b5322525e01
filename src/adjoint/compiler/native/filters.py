"""Convolutions in a plan: which are products without a matrix of patches, and of what."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from adjoint.compiler.graph import Equation, Value
from adjoint.compiler.native.images import examples_last, far, ordered, padded, within_padded, zero
from adjoint.compiler.native.kernels import Convolution
from adjoint.compiler.native.patches import Lines, direct, lines, pays
from adjoint.compiler.native.views import Layout, contiguous
from adjoint.compiler.sizes import has_sizes
from adjoint.primitives import Shape, conv_size

if TYPE_CHECKING:
    from adjoint.compiler.native.plan import Plan

_PLACES, _SIZES = 1 << 14, ("stride", "padding", "dilation")  # of a kernel
_PARTS = 16  # of images by their stride: each has code of its own


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
    if any(d != 1 for d in how["dilation"]) or has_sizes((counts, how["size"])) or math.prod(stride) > _PARTS:
        return False
    sizes = zip(how["size"], counts, weight.shape[2:], stride, [before for before, _ in how["padding"]], strict=True)
    phases = [_phases(*axis) for axis in sizes]
    if not all(phases):
        return False
    padding = tuple([(max(0, *[p.before for p in axis]), max(0, *[p.after for p in axis])) for axis in phases])
    shape_around = (g.shape[1], *[n + sum(p) for n, p in zip(counts, padding, strict=True)], g.shape[0])
    shape = (groups * per_group, *how["size"], g.shape[0])
    given, made, ones = contiguous(shape_around), contiguous(shape), (1,) * len(counts)
    parts = [*itertools.product(*phases)]
    places, images, results = [], [], []
    for part in parts:
        starts = [before - p.before for (before, _), p in zip(padding, part, strict=True)]
        there = [p.elements + len(p.places) - 1 for p in part]
        images.append(Layout((shape_around[0], *there, shape_around[-1]), far(starts, given), given.strides))
        steps = [s * step for s, step in zip(stride, made.strides[1:-1], strict=True)]
        counted = (shape[0], *[p.elements for p in part], shape[-1])
        results.append(Layout(counted, far([p.first for p in part], made), (made.strides[0], *steps, 1)))
        places.append(tuple([len(p.places) for p in part]))

    def found(results: Sequence[Layout]) -> list[Lines]:
        each = zip(images, places, results, strict=True)
        return [lines(x, kernel, result, ones, ones, groups, per_group, False) for x, kernel, result in each]

    products = found(results)
    there_at_once = all(direct(x, g.dtype) for x in products)
    if not there_at_once:  # of few examples each part is made, and then moved to where it belongs
        products = found([contiguous(result.shape) for result in results])
    if not all(pays(x, per_group * len(parts), g.dtype) and x.number <= _PLACES for x in products):
        return False
    whole = padded(plan, g, shape_around, padding) if any(map(sum, padding)) else examples_last(plan, g)
    (whole,) = plan._whole([whole])
    base, step = Value(shape, g.dtype), -1
    if len(parts) < math.prod([min(s, n) for s, n in zip(stride, how["size"], strict=True)]):  # what nothing meets
        step = plan._take_part(zero(g.dtype), base, made)
    for part, x, result, product in zip(parts, images, results, products, strict=True):
        (inner,) = plan._whole([_turned(plan, weight, groups, [p.places for p in part])])
        operands, layouts = (whole, inner), [x, plan._layout(inner)]
        if there_at_once:
            plan.parts.setdefault(base, []).append(len(plan.steps))
            _add(plan, Convolution(base, operands, layouts, product, per_group, made.strides[0], False, result.offset))
        else:
            own = contiguous(result.shape)
            value = Value(own.shape, g.dtype)
            _add(plan, Convolution(value, operands, layouts, product, per_group, own.strides[0], False))
            plan._take_part(value, base, result, after=step)
    return ordered(plan, e, base)


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
    (out,), groups, padding = e.results, how["groups"], how["padding"]
    if any(z.__class__ is not Value or z.const is not None for z in (x, other)) or x.dtype != other.dtype:
        return False
    counts = other.shape[2:] if weighs else tuple(map(conv_size, x.shape[2:], kernel, *[how[key] for key in _SIZES]))
    if any(p < 0 for pair in padding for p in pair) or x.shape[1] // groups * math.prod(kernel) > _PLACES:
        return False
    around = (x.shape[1], *[n + sum(p) for n, p in zip(x.shape[2:], padding, strict=True)], x.shape[0])
    whole = contiguous((channels, *counts, x.shape[0]))
    inner = within_padded(plan, other) if weighs else None
    result, rows = whole if inner is None else plan._layout(inner), channels // groups
    found = lines(contiguous(around), kernel, result, how["stride"], how["dilation"], groups, rows, weighs)
    divided, apart = None, 1 < math.prod(how["stride"]) <= _PARTS and not has_sizes((x.shape, other.shape))
    if apart and not direct(found, x.dtype):
        divided = _Divided(x, padding, how["stride"])
        found = divided.lines(kernel, result, how["dilation"], groups, rows, weighs)
    if not pays(found, rows, x.dtype):
        return False
    if divided is not None:
        images = divided.taken(plan)
    else:
        images = padded(plan, x, around, padding) if any(map(sum, padding)) else examples_last(plan, x)
    (images,) = plan._whole([images])
    if inner is None:
        (inner,) = plan._whole([examples_last(plan, other) if weighs else other])
    base: Any = out if weighs else Value(whole.shape, x.dtype)
    layouts = [plan._layout(z) for z in (images, inner)]
    _add(plan, Convolution(base, (images, inner), layouts, found, rows, result.strides[0], weighs))
    return weighs or ordered(plan, e, base)


def _add(plan: Plan, step: Convolution) -> None:
    plan.place[step.out] = len(plan.steps)
    plan.steps.append(step)


class _Divided:
    """Images with zeros around and, along each axis, elements of one rest by the stride beside each other.

    A place of a kernel then meets what lies together for all columns and examples, which few examples alone do not.
    """

    def __init__(self, x: Value, padding: Sequence[tuple[int, int]], stride: Shape) -> None:
        self.x, self.padding, self.stride = x, padding, stride
        sizes = [n + before + after for n, (before, after) in zip(x.shape[2:], padding, strict=True)]
        counts = [-(-n // s) for n, s in zip(sizes, stride, strict=True)]
        self.whole: Layout = contiguous((x.shape[1], *stride, *counts, x.shape[0]))
        first, *steps, last = self.whole.strides
        self._of_rests, self._along = steps[: len(stride)], steps[len(stride) :]
        self._part = Layout((x.shape[1], *counts, x.shape[0]), 0, (first, *self._along, last))  # of no rests

    def lines(self, kernel: Shape, result: Layout, dilation: Shape, groups: int, rows: int, weighs: bool) -> Lines:
        found = lines(self._part, kernel, result, (1,) * len(kernel), dilation, groups, rows, weighs)
        places = []
        for channel, *place in itertools.product(*map(range, found.kernel)):
            pairs = [divmod(i * d, s) for i, d, s in zip(place, dilation, self.stride, strict=True)]
            start = sum([rest * step for (_, rest), step in zip(pairs, self._of_rests, strict=True)])
            places.append(channel * found.moves[0] + start + far([i for i, _ in pairs], self._part))
        return found._replace(listed=tuple(places))

    def taken(self, plan: Plan) -> Value:
        """The array, made once."""
        key = self.x, self.padding, self.stride
        made = plan.divided.get(key)
        if made is None:
            made = plan.divided[key] = Value(self.whole.shape, self.x.dtype)
            self._fill(plan, made)
        return made

    def _fill(self, plan: Plan, made: Value) -> None:
        base, parts = examples_last(plan, self.x), []
        for rests in itertools.product(*map(range, self.stride)):
            firsts, keys = [], []
            for rest, n, s, (before, _) in zip(rests, self.x.shape[2:], self.stride, self.padding, strict=True):
                firsts.append(max(0, -((rest - before) // s)))  # the first that is no zero
                keys.append(slice(s * firsts[-1] + rest - before, n, s))
            counts = [len(range(n)[key]) for n, key in zip(self.x.shape[2:], keys, strict=True)]
            if all(counts):
                start = sum([rest * step for rest, step in zip(rests, self._of_rests, strict=True)])
                shape = (base.shape[0], *counts, base.shape[-1])
                layout = Layout(shape, start + far(firsts, self._part), self._part.strides)
                parts.append((keys, layout))
        filled = sum([math.prod(layout.shape) for _, layout in parts]) == math.prod(made.shape)
        step = -1 if filled else plan._take_part(zero(made.dtype), made, self.whole)
        for keys, layout in parts:
            view = Value(layout.shape, made.dtype)
            key = (slice(None), *keys, slice(None))
            if not plan._take_view(Equation("index", [base], {"key": key}, [view])):
                raise AssertionError(key)  # slices are always views
            plan._take_part(view, made, layout, after=step)
