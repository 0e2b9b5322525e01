"""Primitives that pick, place, sort and search, and what index keys are."""

from __future__ import annotations

from typing import Any

from adjoint import errors
from adjoint.primitives.sizes import count_of, places_along, stands
from adjoint.primitives.table import (
    INDEXING,
    Shape,
    broadcast_shapes,
    declare,
    index_dtype,
    same_dtype,
    unspecified_shape,
)


class _Slot:
    """Stands in an index key where an integer array goes; there is one."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "ARRAY"

    def __reduce__(self) -> str:
        return "ARRAY"


ARRAY = _Slot()
Key = tuple[Any, ...]  # of int, range or slice with int bounds, None, ARRAY; as long as the array needs


def slices(key: Key) -> Key:
    """The key as libraries read it, with slices for ranges.

    Keys of users have ranges: slices are containers to Python's garbage collector, and graphs keep keys.
    """
    if len(key) != 1:
        return tuple([slices((entry,))[0] if entry.__class__ is range else entry for entry in key])
    places: Any = key[0]
    if places.__class__ is not range:
        return key
    stop = places.stop  # a size that stands for several is never below the front
    return (slice(places.start, stop if stands(stop) or stop >= 0 else None, places.step),)  # None is down to the front


def index_shape(shape: Shape, *arrays: Shape, key: Key) -> Shape:
    """The shape of `x[key]`, where the ARRAYs in `key` are integer arrays of the given shapes.

    NumPy's rule: array and integer entries broadcast together; their axes stand where the first of
    them stood if they are adjacent, else in front. Without arrays, integers merely drop their axis.
    """
    sizes = iter(shape)
    advanced = any(entry is ARRAY for entry in key)
    common = broadcast_shapes(*arrays)
    result: list[int] = []
    runs: list[int] = []  # how many basic axes precede each array-like entry
    for entry in key:
        if entry is None:
            result.append(1)
        elif isinstance(entry, (range, slice)):
            size = next(sizes)
            if isinstance(entry, slice):
                entry = places_along(entry, size)
            result.append(count_of(entry))
        else:
            next(sizes)
            if advanced:
                runs.append(len(result))
    result.extend(sizes)
    if advanced:
        at = runs[0] if adjacent(key) else 0
        result[at:at] = common
    return tuple(result)


def adjacent(key: Key) -> bool:
    """Whether the array and integer entries of an index key stand side by side."""
    places = [i for i, entry in enumerate(key) if entry is ARRAY or isinstance(entry, int)]
    return not places or places == list(range(places[0], places[-1] + 1))


def _index_shape(shape: Shape, *arrays: Shape, key: Key) -> Shape:
    return index_shape(shape, *arrays, key=key)


def index_set_shape(shape: Shape, value: Shape, *arrays: Shape, key: Key) -> Shape:
    target = index_shape(shape, *arrays, key=key)
    try:
        fits = broadcast_shapes(value, target) == target
    except errors.ShapeError:
        fits = False
    if not fits:
        raise errors.ShapeError(f"a value of shape {value} does not broadcast to the indexed shape {target}")
    return shape


def _take_along(shape: Shape, indices: Shape, *, axis: int) -> Shape:
    if len(shape) != len(indices):
        raise errors.ShapeError(
            f"take_along_axis: indices of shape {indices} need as many axes as the array of shape {shape}"
        )
    others = broadcast_shapes(
        tuple(1 if i == axis else n for i, n in enumerate(shape)),
        tuple(1 if i == axis else n for i, n in enumerate(indices)),
    )
    return (*others[:axis], indices[axis], *others[axis + 1 :])


declare("index", INDEXING, "x *arrays", "key", shape=_index_shape, dtype=same_dtype)
declare("take_along_axis", INDEXING, "x indices", "axis", shape=_take_along, dtype=same_dtype)
declare("nonzero", INDEXING, "x", shape=unspecified_shape, dtype=index_dtype, dynamic=True)
