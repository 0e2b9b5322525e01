"""What picks elements."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from adjoint import errors
from adjoint.backends.reference.places import Line, Values, broadcast, flat, gather, places
from adjoint.primitives import ARRAY, INDEX, Key, Shape, adjacent, broadcast_shapes, index_shape, slices

if TYPE_CHECKING:
    from adjoint.backends.reference import Reference


def indexed(x: Values, arrays: tuple[Values, ...], key: Key) -> tuple[Shape, list[int]]:
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
    return [x.values[p] for p in indexed(x, arrays, key)[1]]


def _take_along_axis(B: Reference, x: Values, indices: Values, *, axis: int) -> Line:
    others = broadcast_shapes(*[(*a.shape[:axis], 1, *a.shape[axis + 1 :]) for a in (x, indices)])
    x = broadcast(x, (*others[:axis], x.shape[axis], *others[axis + 1 :]))
    indices = broadcast(indices, (*others[:axis], indices.shape[axis], *others[axis + 1 :]))
    numbers = iter(indices.values)
    return gather(x, indices.shape, lambda place: (*place[:axis], next(numbers) % x.shape[axis], *place[axis + 1 :]))


def _nonzero(B: Reference, x: Values) -> Values:
    found = [place for place, v in zip(places(x.shape), x.values, strict=True) if v != 0]
    values = [place[i] for i in range(len(x.shape)) for place in found]
    return B.make((len(x.shape), len(found)), values, INDEX)


IMPLEMENTATIONS: dict[str, Callable[..., Any]] = {
    "index": _index,
    "take_along_axis": _take_along_axis,
    "nonzero": _nonzero,
}
