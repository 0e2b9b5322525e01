"""Derivatives of indexing, assignment and sorting.

Reading and writing places are transposes of each other: `index` against `index_add`.
"""

from __future__ import annotations

from typing import Any

from adjoint.primitives import ARRAY, INDEX, index_shape
from adjoint.rules.records import Composed, Custom, Linear, NotDifferentiable, Record


def _zeros(B: Any, g: Any, shape: Any) -> Any:
    return B.full(shape=shape, value=0, dtype=B.dtype_of(g))


def _index(B: Any, g: Any, x_shape: Any, arrays: Any, key: Any) -> Any:
    return B.index_add(_zeros(B, g, x_shape), g, *arrays, key=key)


def _index_into(B: Any, sink: Any, g: Any, x_shape: Any, arrays: Any, key: Any) -> Any:
    return B.index_add_into(sink, g, *arrays, key=key)


def _read(B: Any, g: Any, arrays: Any, key: Any) -> Any:
    """What was written at the places; where one was written twice, only the last write counts."""
    return B.index(g, *arrays, key=key)


def _erase(B: Any, g: Any, arrays: Any, key: Any) -> Any:
    return B.index_set(g, _zeros(B, g, ()), *arrays, key=key)


def _written(B: Any, g: Any, x_shape: Any, value_shape: Any, arrays: Any, key: Any) -> Any:
    """The cotangent of an assigned value; a place written twice shows only its last writer."""
    target = index_shape(x_shape, *[a.shape for a in arrays], key=key)
    read = B.index(g, *arrays, key=key)
    if arrays:
        # number the writers, let them write their numbers, and see who is still there
        count = 1
        for n in target:
            count *= n
        number = B.reshape(B.arange(start=0, stop=count, step=1, dtype=INDEX), shape=target)
        board = B.full(shape=x_shape, value=0, dtype=INDEX)
        last = B.index(B.index_set(board, number, *arrays, key=key), *arrays, key=key)
        read = B.where(B.equal(last, number), read, 0.0)
    return read


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
    zeros = _zeros(B, g, spread)
    return B.index_add(zeros, g, *_grid(B, spread, indices, axis), key=(ARRAY,) * len(spread))


def _sort_definition(B: Any, x: Any, *, axis: int, descending: bool) -> Any:
    """Of all the largest: their places come with them."""
    values, _ = B.topk(x, k=x.shape[axis], axis=axis, largest=descending)
    return values


def picked(B: Any, g: Any, wanted: Any, x_shape: Any, outs: Any, axis: int) -> tuple[Any, ...]:
    """Only the values carry a cotangent; it goes back to where they came from."""
    values, _ = g
    return (None if values is None else _take_along_axis(B, values, x_shape, outs[1], axis),)


def picked_forward(B: Any, tangents: Any, outs: Any, axis: int) -> tuple[Any, None]:
    return B.take_along_axis(tangents[0], outs[1], axis=axis), None


_none = NotDifferentiable()
_index_record = Linear(x=_index)
_index_record.accumulate = _index_into

RECORDS: dict[str, Record] = {
    "index": _index_record,
    "index_set": Linear(x=_erase, value=_written),
    "index_add": Linear(x=lambda B, g: g, value=_read),
    "take_along_axis": Linear(x=_take_along_axis),
    "sort": Composed(_sort_definition),
    "topk": Custom(pullback=picked, pushforward=picked_forward),
    "argsort": _none,
    "nonzero": _none,
    "searchsorted": _none,
}
