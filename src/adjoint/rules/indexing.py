"""Derivatives of indexing, assignment and sorting.

Reading and writing places are transposes of each other: `index` against `index_add`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from adjoint import errors
from adjoint.primitives import ARRAY, INDEX, Primitive, adjacent, index_shape
from adjoint.rules.batching import aligned, count_of, rank_of, with_axis
from adjoint.rules.records import Linear, NotDifferentiable, Record
from adjoint.rules.sparsity import Call, Pattern, matrix, moved, numbered


def zeros_of(B: Any, g: Any, shape: Any) -> Any:
    return B.full(shape=shape, value=0, dtype=B.dtype_of(g))


def _index(B: Any, g: Any, x_shape: Any, arrays: Any, key: Any) -> Any:
    return B.index_add(zeros_of(B, g, x_shape), g, *arrays, key=key)


def _index_into(B: Any, sink: Any, g: Any, x_shape: Any, arrays: Any, key: Any) -> Any:
    return B.index_add_into(sink, g, *arrays, key=key)


def _grid(B: Any, shape: Any, indices: Any, axis: int) -> list[Any]:
    """Integer arrays that point at every place that `indices` names along an axis."""
    grid = []
    for i, n in enumerate(shape):
        if i == axis:
            grid.append(indices)
        else:
            place = B.arange(start=0, stop=n, step=1, dtype=INDEX)
            grid.append(B.reshape(place, shape=tuple(n if j == i else 1 for j in range(len(shape)))))
    return grid


def _take_along_axis(B: Any, g: Any, x_shape: Any, indices: Any, axis: int) -> Any:
    spread = tuple(n if i == axis else max(n, m) for i, (n, m) in enumerate(zip(x_shape, g.shape, strict=True)))
    zeros = zeros_of(B, g, spread)
    return B.index_add(zeros, g, *_grid(B, spread, indices, axis), key=(ARRAY,) * len(spread))


def places_pullback(B: Any, g: Any, wanted: Any, x_shape: Any, outs: Any, axis: int) -> tuple[Any, ...]:
    """Only the values carry a cotangent; it goes back to where they came from."""
    values, _ = g
    return (None if values is None else _take_along_axis(B, values, x_shape, outs[1], axis),)


def places_forward(B: Any, tangents: Any, outs: Any, axis: int) -> tuple[Any, None]:
    return B.take_along_axis(tangents[0], outs[1], axis=axis), None


# --- batches ---


def _index_batched(
    B: Any, primitive: Primitive, values: list[Any], flags: list[bool], parameters: dict[str, Any]
) -> Any:
    key, arrays, order = _batched_key(B, values[0], flags[0], values[1:], flags[1:], parameters["key"])
    return _reordered(B, B.index(values[0], *arrays, key=key), order)


def assign_batched(
    B: Any, primitive: Primitive, values: list[Any], flags: list[bool], parameters: dict[str, Any]
) -> Any:
    """The value's axes stand where those of the indexed part do."""
    size = count_of(values, flags)
    x = with_axis(B, values[0], flags[0], size)
    target = index_shape(
        tuple(x.shape)[1:],
        *[tuple(a.shape)[f:] for a, f in zip(values[2:], flags[2:], strict=True)],
        key=parameters["key"],
    )
    key, arrays, order = _batched_key(B, x, True, values[2:], flags[2:], parameters["key"])
    value = values[1]
    if hasattr(value, "shape"):
        value = aligned(B, with_axis(B, value, flags[1], size), True, len(target))
        value = _reordered(B, value, tuple(sorted(range(len(order)), key=order.__getitem__)))
    return B[primitive](x, value, *arrays, key=key)


def _batched_key(
    B: Any, x: Any, x_batched: bool, arrays: Sequence[Any], flags: Sequence[bool], key: Any
) -> tuple[Any, list[Any], tuple[int, ...]]:
    """The key that indexes all examples at once, its arrays, and the order of axes it gives.

    The last is a permutation, empty where nothing moves: axis i of the wanted result (examples first) is axis order[i]
    of what the key gives. NumPy puts the axes of index arrays in front where the arrays are not side by side.
    """
    if not arrays:  # basic keys move no axes
        return (slice(0, x.shape[0], 1), *key), [], ()
    ranks = [rank_of(a, f) for a, f in zip(arrays, flags, strict=True)]
    common = max(ranks, default=0)
    wanted = _axes(key, common, rank_of(x, x_batched))
    if not any(flags):
        new = (slice(0, x.shape[0], 1), *key)
        given = _axes(new, common, len(x.shape), examples=0)
        return new, list(arrays), _order(wanted, given)
    size = count_of([x, *arrays], [x_batched, *flags])
    indices = [aligned(B, a, f, common) for a, f in zip(arrays, flags, strict=True)]
    if not x_batched:  # the examples are the first of the common axes
        given = _axes(key, common, len(x.shape), leading=True)
        return key, indices, _order(wanted, given)
    count = B.reshape(B.arange(start=0, stop=size, step=1, dtype=INDEX), shape=(size, *[1] * common))
    given = _axes((ARRAY, *key), common, len(x.shape), leading=True)
    return (ARRAY, *key), [count, *indices], _order(wanted, given)


def _axes(key: Any, common: int, rank: int, *, examples: int | None = None, leading: bool = False) -> list[Any]:
    """Names for the axes that a key gives: "examples", ("common", i), and ("axis", n) for basic ones.

    `examples` is the entry of the key that stands for the examples; `leading` says that they are
    the first of the common axes.
    """
    names: list[Any] = []
    at: int | None = None
    advanced = any(entry is ARRAY for entry in key)
    basic = 0
    used = 0
    for i, entry in enumerate(key):
        if entry is None:
            names.append(("axis", basic))
            basic += 1
        elif isinstance(entry, (range, slice)):
            used += 1
            if i == examples:
                names.append("examples")
            else:
                names.append(("axis", basic))
                basic += 1
        else:
            used += 1
            if advanced and at is None:
                at = len(names)
    names += [("axis", basic + i) for i in range(rank - used)]
    if advanced:
        block: list[Any] = ["examples"] * leading + [("common", i) for i in range(common)]
        place = at if adjacent(key) and at is not None else 0
        names[place:place] = block
    return names


def _order(wanted: list[Any], given: list[Any]) -> tuple[int, ...]:
    return tuple(given.index(name) for name in ["examples", *wanted])


def _reordered(B: Any, x: Any, order: tuple[int, ...]) -> Any:
    return x if order == tuple(range(len(order))) else B.permute_dims(x, axes=order)


def _nonzero_batched(
    B: Any, primitive: Primitive, values: list[Any], flags: list[bool], parameters: dict[str, Any]
) -> Any:
    raise errors.ShapeError(
        "inside vmap the places of non-zero elements differ in number from example to example, so boolean masks cannot "
        "pick elements; use ad.where(mask, x, other)"
    )


# --- sparsity ---


def added_to(call: Call) -> Pattern:
    """What was there stays, and the values join it at their places."""
    x, value, *arrays = call.values
    kept, added = call.patterns[:2]
    if added is None:
        return kept
    inner, shape = call.inner, call.shape_of(1)
    places = inner.concrete_values(
        inner.index(inner.from_numpy(numbered(call.shape), copy=True), *arrays, **call.parameters)
    )
    numbers = np.broadcast_to(numbered(shape), places.shape)
    spread = matrix(places, numbers, (math.prod(call.shape), math.prod(shape))) @ added
    return spread if kept is None else kept + spread


RECORDS: dict[str, Record] = {
    "index": Linear(x=_index, accumulate=_index_into, batching=_index_batched, sparsity=moved),
    "take_along_axis": Linear(x=_take_along_axis, sparsity=moved),
    "nonzero": NotDifferentiable(batching=_nonzero_batched),
}
