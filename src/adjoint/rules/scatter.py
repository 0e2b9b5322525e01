"""Values put at places: set, added, multiplied or compared."""

from __future__ import annotations

import math
from typing import Any

from adjoint.primitives import ARRAY, INDEX, index_shape
from adjoint.rules.indexing import added_to, assign_batched, zeros_of
from adjoint.rules.records import Composed, Custom, Linear, Record
from adjoint.rules.reduction import hits
from adjoint.rules.sparsity import moved


def _shares(B: Any, x: Any, value: Any, arrays: Any, out: Any, key: Any, dtype: Any) -> tuple[Any, Any, Any]:
    """Whether an element stayed, whether a value got its place, as numbers, and how many did: ties share equally."""
    kept = B.astype(hits(B, x, out), dtype=dtype)
    hit = B.astype(hits(B, value, B.index(out, *arrays, key=key)), dtype=dtype)
    return kept, hit, B.index_add(kept, hit, *arrays, key=key)


def _index_extreme(B: Any, g: Any, wanted: Any, x: Any, value: Any, arrays: Any, out: Any, key: Any) -> tuple[Any, ...]:
    kept, hit, count = _shares(B, x, value, arrays, out, key, B.dtype_of(g))
    share = B.divide(g, count)
    answers = {0: lambda: B.multiply(kept, share), 1: lambda: B.multiply(hit, B.index(share, *arrays, key=key))}
    return tuple([answers[i]() for i in wanted])


def _index_extreme_forward(B: Any, tangents: Any, x: Any, value: Any, arrays: Any, out: Any, key: Any) -> Any:
    dtype = B.dtype_of(out)
    kept, hit, count = _shares(B, x, value, arrays, out, key, dtype)
    moved, added = tangents[:2]
    total = B.full(shape=tuple(x.shape), value=0, dtype=dtype) if moved is None else B.multiply(kept, moved)
    if added is not None:
        total = B.index_add(total, B.multiply(hit, added), *arrays, key=key)
    return B.divide(total, count)


def _writers(B: Any, x: Any, value: Any, arrays: Any, key: Any) -> tuple[Any, Any, Any]:
    """The values written, flat and by place, their places in the flat `x`, and the order that makes them so."""
    target = index_shape(tuple(x.shape), *[tuple(a.shape) for a in arrays], key=key)
    count = math.prod(target)
    numbers = B.reshape(B.arange(start=0, stop=math.prod(x.shape), step=1, dtype=INDEX), shape=tuple(x.shape))
    places = B.reshape(B.index(numbers, *arrays, key=key), shape=(count,))
    values = B.reshape(B.broadcast_to(value, shape=target), shape=(count,))
    order = B.argsort(places, axis=0, descending=False)
    return B.index(values, order, key=(ARRAY,)), B.index(places, order, key=(ARRAY,)), order


def _products_before(B: Any, values: Any, places: Any) -> Any:
    """For each writer, in the order of places, the product of those before it at its place; one for the first."""
    n, step = values.shape[0], 1

    def before(x: Any, step: int, value: Any) -> Any:
        return B.pad(B.index(x, key=(slice(0, n - step, 1),)), widths=((step, 0),), value=value)

    total = B.where(B.equal(places, before(places, 1, -1)), before(values, 1, 1), 1)
    while step < n:
        total = B.multiply(total, B.where(B.equal(places, before(places, step, -1)), before(total, step, 1), 1))
        step *= 2
    return total


def _index_multiply_definition(B: Any, x: Any, value: Any, *arrays: Any, key: Any) -> Any:
    values, places, _ = _writers(B, x, value, arrays, key)
    if not values.shape[0]:
        return x
    products = B.multiply(_products_before(B, values, places), values)
    following = B.pad(B.index(places, key=(slice(1, places.shape[0], 1),)), widths=((0, 1),), value=-1)
    last = B.not_equal(places, following)
    size = (math.prod(x.shape),)
    total = B.full(shape=size, value=0, dtype=B.dtype_of(x))
    total = B.index_add(total, B.where(last, products, 0), places, key=(ARRAY,))
    named = B.full(shape=size, value=False, dtype=B.dtype_of(last))
    named = B.index_set(named, B.full(shape=(), value=True, dtype=B.dtype_of(last)), places, key=(ARRAY,))
    return B.multiply(x, B.reshape(B.where(named, total, 1), shape=tuple(x.shape)))


def _index_multiply(B: Any, g: Any, wanted: Any, x: Any, value: Any, arrays: Any, key: Any) -> tuple[Any, ...]:
    """For each factor the product of all others at its place; nothing is divided, so that zeros need no care."""
    answers = []
    for i in wanted:
        if i == 0:
            ones = B.full(shape=tuple(x.shape), value=1, dtype=B.dtype_of(x))
            answers.append(B.multiply(g, B.index_multiply(ones, value, *arrays, key=key)))
        else:
            answers.append(_factors_pulled(B, B.multiply(g, x), x, value, arrays, key))
    return tuple(answers)


def _factors_pulled(B: Any, g: Any, x: Any, value: Any, arrays: Any, key: Any) -> Any:
    values, places, order = _writers(B, x, value, arrays, key)
    before = _products_before(B, values, places)
    after = B.flip(_products_before(B, B.flip(values, axis=(0,)), B.flip(places, axis=(0,))), axis=(0,))
    others = B.multiply(before, after)
    back = B.index(others, B.argsort(order, axis=0, descending=False), key=(ARRAY,))
    read = B.index(g, *arrays, key=key)
    return B.multiply(read, B.reshape(back, shape=tuple(read.shape)))


_extreme = Custom(
    pullback=_index_extreme, pushforward=_index_extreme_forward, batching=assign_batched, sparsity=added_to
)


def _read(B: Any, g: Any, arrays: Any, key: Any) -> Any:
    """What was written at the places; where one was written twice, only the last write counts."""
    return B.index(g, *arrays, key=key)


def _erase(B: Any, g: Any, arrays: Any, key: Any) -> Any:
    return B.index_set(g, zeros_of(B, g, ()), *arrays, key=key)


def _written(B: Any, g: Any, x_shape: Any, value_shape: Any, arrays: Any, key: Any) -> Any:
    """The cotangent of an assigned value; a place written twice shows only its last writer."""
    target = index_shape(x_shape, *[a.shape for a in arrays], key=key)
    read = B.index(g, *arrays, key=key)
    if any(n != 1 for a in arrays for n in a.shape):  # a single place is written once
        # number the writers, let them write their numbers, and see who is still there
        count = 1
        for n in target:
            count *= n
        number = B.reshape(B.arange(start=0, stop=count, step=1, dtype=INDEX), shape=target)
        board = B.full(shape=x_shape, value=0, dtype=INDEX)
        last = B.index(B.index_set(board, number, *arrays, key=key), *arrays, key=key)
        read = B.where(B.equal(last, number), read, 0.0)
    return read


RECORDS: dict[str, Record] = {
    "index_max": _extreme,
    "index_min": _extreme,
    "index_multiply": Composed(
        _index_multiply_definition, pullback=_index_multiply, batching=assign_batched, sparsity=added_to
    ),
    "index_set": Linear(x=_erase, value=_written, batching=assign_batched, sparsity=moved),
    "index_add": Linear(x=lambda B, g: g, value=_read, batching=assign_batched, sparsity=added_to),
}
