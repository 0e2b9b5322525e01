"""What moves elements and computes nothing, and what picks, places and sorts them."""

from __future__ import annotations

import bisect
import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from adjoint import errors
from adjoint.backends.reference.places import Line, Values, broadcast, flat, gather, groups, places
from adjoint.backends.reference.reduction import linewise
from adjoint.backends.reference.scalars import Number, Scalars
from adjoint.primitives import ARRAY, INDEX, Key, Shape, adjacent, broadcast_shapes, index_shape, slices

if TYPE_CHECKING:
    from adjoint.backends.reference import Reference


# --- structure ---


def _same_values(B: Reference, x: Values, **_: Any) -> Line:
    return x.values


def _permute_dims(B: Reference, x: Values, *, axes: tuple[int, ...]) -> Line:
    return gather(x, tuple(x.shape[i] for i in axes), lambda place: [place[axes.index(i)] for i in range(len(axes))])


def _flip(B: Reference, x: Values, *, axis: tuple[int, ...]) -> Line:
    return gather(x, x.shape, lambda place: [x.shape[i] - 1 - p if i in axis else p for i, p in enumerate(place)])


def _concat(B: Reference, *xs: Values, axis: int) -> Line:
    shape = (*xs[0].shape[:axis], sum(x.shape[axis] for x in xs), *xs[0].shape[axis + 1 :])
    out = []
    for place in places(shape):
        at, which = place[axis], 0
        while at >= xs[which].shape[axis]:
            at -= xs[which].shape[axis]
            which += 1
        out.append(xs[which].values[flat(xs[which].shape, (*place[:axis], at, *place[axis + 1 :]))])
    return out


def _pad(B: Reference, x: Values, *, widths: tuple[tuple[int, int], ...], value: Number) -> Line:
    out = []
    for place in places([n + before + after for n, (before, after) in zip(x.shape, widths, strict=True)]):
        source = [i - before for i, (before, _) in zip(place, widths, strict=True)]
        inside = all(0 <= i < n for i, n in zip(source, x.shape, strict=True))
        out.append(x.values[flat(x.shape, source)] if inside else value)
    return out


def _triangle(keep: Callable[[int, int], bool]) -> Callable[..., Line]:
    """The elements whose column minus row is kept; zeros elsewhere."""

    def run(B: Reference, x: Values, *, k: int) -> Line:
        return [v if keep(p[-1] - p[-2], k) else 0 for v, p in zip(x.values, places(x.shape), strict=True)]

    return run


# --- indexing ---


def _indexed(x: Values, arrays: tuple[Values, ...], key: Key) -> tuple[Shape, list[int]]:
    """The shape of `x[key]`, and for each of its elements the list position in `x` it comes from."""
    shape = index_shape(x.shape, *[a.shape for a in arrays], key=key)
    common = broadcast_shapes(*[a.shape for a in arrays])
    entries = [*slices(key), *[slice(None)] * (len(x.shape) - sum(entry is not None for entry in key))]
    # the axes of the arrays stand where the first array or integer stood, or in front
    block = 0
    if arrays and adjacent(key):
        first = next(i for i, entry in enumerate(key) if entry is ARRAY or isinstance(entry, int))
        block = first  # every entry before it gives one axis
    positions = []
    for place in places(shape):
        shared = place[block : block + len(common)]
        rest = iter(place[:block] + place[block + len(common) :])
        pending = iter(arrays)
        sizes = iter(x.shape)
        source = []
        for entry in entries:
            if entry is None:
                next(rest)
                continue
            size = next(sizes)
            if isinstance(entry, slice):
                source.append(range(*entry.indices(size))[next(rest)])
                continue
            if entry is ARRAY:
                entry = broadcast(next(pending), common).values[flat(common, shared)]
            if not -size <= entry < size:
                raise errors.OutOfRangeError(f"index {entry} is out of range for an axis of size {size}")
            source.append(entry % size)
        positions.append(flat(x.shape, source))
    return shape, positions


def _index(B: Reference, x: Values, *arrays: Values, key: Key) -> Line:
    return [x.values[p] for p in _indexed(x, arrays, key)[1]]


def _index_set(B: Reference, x: Values, value: Values, *arrays: Values, key: Key) -> Line:
    shape, positions = _indexed(x, arrays, key)
    values = list(x.values)
    for p, v in zip(positions, broadcast(value, shape).values, strict=True):
        values[p] = v  # where one place is written twice, the last writer wins
    return values


def _joining(join: Callable[[Scalars, Number, Number], Number]) -> Callable[..., Line]:
    """Elements at a key joined with a value, once for each time that a place is named."""

    def run(B: Reference, x: Values, value: Values, *arrays: Values, key: Key) -> Line:
        shape, positions = _indexed(x, arrays, key)
        values = list(x.values)
        for p, v in zip(positions, broadcast(value, shape).values, strict=True):
            values[p] = join(B.scalars, values[p], v)
        return values

    return run


def _take_along_axis(B: Reference, x: Values, indices: Values, *, axis: int) -> Line:
    others = broadcast_shapes(*[(*a.shape[:axis], 1, *a.shape[axis + 1 :]) for a in (x, indices)])
    x = broadcast(x, (*others[:axis], x.shape[axis], *others[axis + 1 :]))
    indices = broadcast(indices, (*others[:axis], indices.shape[axis], *others[axis + 1 :]))
    numbers = iter(indices.values)
    return gather(x, indices.shape, lambda place: (*place[:axis], next(numbers) % x.shape[axis], *place[axis + 1 :]))


def _order(B: Reference, line: Line, *, descending: bool) -> Line:
    """The places of the sorted line; equal elements keep their order."""
    return sorted(range(len(line)), key=lambda i: B.scalars.order(line[i]), reverse=descending)


def _sort(B: Reference, line: Line, *, descending: bool) -> Line:
    return [line[i] for i in _order(B, line, descending=descending)]


def _topk(B: Reference, x: Values, *, k: int, axis: int, largest: bool) -> tuple[Line, Line]:
    short = (*x.shape[:axis], k, *x.shape[axis + 1 :])
    values: Line = [0] * math.prod(short)
    places: Line = [0] * math.prod(short)
    for source, target in zip(groups(x.shape, (axis,)), groups(short, (axis,)), strict=False):
        line = [x.values[p] for p in source]
        for p, i in zip(target, _order(B, line, descending=largest), strict=False):
            values[p], places[p] = line[i], i
    return values, places


def _searchsorted(B: Reference, x: Values, values: Values, *, side: str) -> Line:
    find = bisect.bisect_left if side == "left" else bisect.bisect_right
    lines = [[x.values[p] for p in group] for group in groups(x.shape, (len(x.shape) - 1,))]
    return [
        find(line, B.scalars.order(values.values[p]), key=B.scalars.order)
        for line, group in zip(lines, groups(values.shape, (len(x.shape) - 1,)), strict=True)
        for p in group
    ]


def _nonzero(B: Reference, x: Values) -> Values:
    found = [place for place, v in zip(places(x.shape), x.values, strict=True) if v != 0]
    values = [place[i] for i in range(len(x.shape)) for place in found]
    return B.make((len(x.shape), len(found)), values, INDEX)


IMPLEMENTATIONS: dict[str, Callable[..., Any]] = {
    "reshape": _same_values,
    "expand_dims": _same_values,
    "squeeze": _same_values,
    "broadcast_to": lambda B, x, *, shape: broadcast(x, shape).values,
    "permute_dims": _permute_dims,
    "flip": _flip,
    "concat": _concat,
    "pad": _pad,
    "tril": _triangle(lambda diagonal, k: diagonal <= k),
    "triu": _triangle(lambda diagonal, k: diagonal >= k),
    "index": _index,
    "index_set": _index_set,
    "index_add": _joining(lambda scalars, x, y: x + y),
    "index_multiply": _joining(lambda scalars, x, y: x * y),
    "index_max": _joining(Scalars.maximum),
    "index_min": _joining(Scalars.minimum),
    "take_along_axis": _take_along_axis,
    "sort": linewise(_sort),
    "argsort": linewise(_order),
    "topk": _topk,
    "nonzero": _nonzero,
    "searchsorted": _searchsorted,
}
