"""Derivatives of running extremes, of places joined, of windows and of convolution."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from adjoint.primitives import ARRAY, INDEX, index_shape
from adjoint.rules.batching import in_stacks
from adjoint.rules.indexing import added_to, assign_batched, picked, picked_forward
from adjoint.rules.records import Bilinear, Composed, Custom, NotDifferentiable, Record
from adjoint.rules.reduction import up_to_it
from adjoint.rules.sparsity import Call, Pattern, along, matrix, numbered, union

# --- running extremes: a cotangent goes to the place that the value came from ---


def _shifted(B: Any, join: Any, x: Any, step: int, axis: int) -> Any:
    """Each element joined with the one `step` places before."""
    before, n = (slice(None),) * axis, x.shape[axis]
    joined = join(B.index(x, key=(*before, slice(step, n, 1))), B.index(x, key=(*before, slice(0, n - step, 1))))
    return B.concat(B.index(x, key=(*before, slice(0, step, 1))), joined, axis=axis)


def _running(B: Any, join: Any, x: Any, axis: int) -> Any:
    """Spans that double in each step: W. Hillis and G. Steele, Data parallel algorithms (1986)."""
    step = 1
    while step < x.shape[axis]:
        x = _shifted(B, join, x, step, axis)
        step *= 2
    return x


def _running_extreme(name: str) -> Any:
    def definition(B: Any, x: Any, *, axis: int) -> tuple[Any, Any]:
        values, n = _running(B, getattr(B, name), x, axis), x.shape[axis]
        number = B.arange(start=0, stop=n, step=1, dtype=INDEX)
        number = B.reshape(number, shape=tuple(n if i == axis else 1 for i in range(len(x.shape))))
        return values, _running(B, B.maximum, B.where(_hits(B, x, values), number, 0), axis)

    return definition


def _hits(B: Any, x: Any, out: Any) -> Any:
    """Where an extreme may have come from; nans are extreme."""
    return B.logical_or(B.equal(x, out), B.isnan(x))


# --- without nans ---


def _nan_extreme(name: str, beyond: float) -> Any:
    def definition(B: Any, x: Any, *, axis: Any, keepdims: bool) -> Any:
        missing = B.isnan(x)
        out = getattr(B, name)(B.where(missing, beyond, x), axis=axis, keepdims=keepdims)
        return B.where(B.all(missing, axis=axis, keepdims=keepdims), math.nan, out)

    return definition


# --- remainders ---


def _fmod_definition(B: Any, x: Any, y: Any) -> Any:
    """The remainder of the sizes is exact."""
    size = B.remainder(B.abs(x) if hasattr(x, "shape") else abs(x), B.abs(y) if hasattr(y, "shape") else abs(y))
    return B.where(B.less(x, 0), B.negative(size), size) if hasattr(x, "shape") else B.negative(size) if x < 0 else size


# --- powers of two ---


def _ldexp_definition(B: Any, x: Any, exponent: Any) -> Any:
    """In two steps, since the power may be beyond what the product is."""
    half = B.floor_divide(exponent, 2)
    for part in (half, B.subtract(exponent, half)):
        x = B.multiply(x, B.pow(2.0, B.astype(part, dtype=B.dtype_of(x))))
    return x


def _unscaled(B: Any, g: Any, x: Any) -> Any:
    return B.ldexp(g, B.negative(B.astype(B.binary_exponent(x), dtype=INDEX)))


# --- places joined ---


def _shares(B: Any, x: Any, value: Any, arrays: Any, out: Any, key: Any, dtype: Any) -> tuple[Any, Any, Any]:
    """Whether an element stayed, whether a value got its place, as numbers, and how many did: ties share equally."""
    kept = B.astype(_hits(B, x, out), dtype=dtype)
    hit = B.astype(_hits(B, value, B.index(out, *arrays, key=key)), dtype=dtype)
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


# --- windows ---


def _windows_definition(B: Any, x: Any, *, axis: int, size: int) -> Any:
    count = x.shape[axis] - size + 1
    first = B.reshape(B.arange(start=0, stop=count, step=1, dtype=INDEX), shape=(count, 1))
    places = B.add(first, B.arange(start=0, stop=size, step=1, dtype=INDEX))
    out = B.index(x, places, key=(*[slice(None)] * axis, ARRAY))
    last = len(out.shape) - 1
    return B.permute_dims(out, axes=(*[i for i in range(last + 1) if i != axis + 1], axis + 1))


def _windows(B: Any, g: Any, x_shape: Any, axis: int, size: int) -> Any:
    return _add_windows(B, B.full(shape=x_shape, value=0, dtype=B.dtype_of(g)), g, axis, size)


def _add_windows(B: Any, sink: Any, g: Any, axis: int, size: int) -> Any:
    """Places of windows one after the other, or windows, of which there may be fewer."""
    count, before = g.shape[axis], (slice(None),) * axis
    if size <= count:
        for j in range(size):
            part = B.index(g, key=(*[slice(None)] * (len(g.shape) - 1), j))
            sink = B.index_add_into(sink, part, key=(*before, slice(j, j + count, 1)))
        return sink
    for i in range(count):
        part = B.index(g, key=(*before, i))
        order = (*range(axis), len(part.shape) - 1, *range(axis, len(part.shape) - 1))
        sink = B.index_add_into(sink, B.permute_dims(part, axes=order), key=(*before, slice(i, i + size, 1)))
    return sink


# --- convolution: the three are each other's transposes ---


def _flip(B: Any, x: Any) -> Any:
    return B.flip(x, axis=(len(x.shape) - 1,))


def _convolve_v(B: Any, g: Any, a: Any, full: bool) -> Any:
    return B.convolve(g, _flip(B, a), full=False) if full else B.convolve(_flip(B, a), g, full=False)


def _convolve_sparsity(call: Call) -> Pattern:
    """Each element depends on as many of an operand as fit, counted back from its place."""
    full, out = call.parameters["full"], numbered(call.shape)
    sizes = [call.shape_of(i)[-1] for i in range(2)]
    place = np.arange(call.shape[-1]) + (0 if full else sizes[1] - 1)
    parts = []
    for i, pattern in enumerate(call.patterns):
        if pattern is not None:
            shape = (*call.shape[:-1], sizes[i])
            steps = place[:, None] - np.arange(sizes[i])  # which element of the other operand stands beside one of this
            there, element = np.nonzero((steps >= 0) & (steps < sizes[1 - i]))
            seen = matrix(out[..., there], numbered(shape)[..., element], (out.size, math.prod(shape)))
            parts.append(seen @ along(pattern, call.shape_of(i), (), shape))
    return union(parts)


_extreme = Custom(
    pullback=_index_extreme, pushforward=_index_extreme_forward, batching=assign_batched, sparsity=added_to
)

RECORDS: dict[str, Record] = {
    "cummax": Composed(_running_extreme("maximum"), pullback=picked, pushforward=picked_forward, sparsity=up_to_it),
    "cummin": Composed(_running_extreme("minimum"), pullback=picked, pushforward=picked_forward, sparsity=up_to_it),
    "nanmax": Composed(_nan_extreme("max", -math.inf)),
    "nanmin": Composed(_nan_extreme("min", math.inf)),
    "fmod": Composed(
        _fmod_definition, x=lambda B, g: g, y=lambda B, g, x, y: B.negative(B.multiply(g, B.trunc(B.divide(x, y))))
    ),
    "ldexp": Composed(_ldexp_definition, x=lambda B, g, exponent: B.ldexp(g, exponent)),
    "mantissa": Composed(lambda B, x: _unscaled(B, x, x), x=_unscaled),
    "binary_exponent": NotDifferentiable(),
    "index_max": _extreme,
    "index_min": _extreme,
    "index_multiply": Composed(
        _index_multiply_definition, pullback=_index_multiply, batching=assign_batched, sparsity=added_to
    ),
    "windows": Composed(
        _windows_definition,
        x=_windows,
        accumulate=lambda B, sink, g, x_shape, axis, size: _add_windows(B, sink, g, axis, size),
        pushforward=lambda B, tangents, axis, size: B.windows(tangents[0], axis=axis, size=size),
    ),
    "convolve": Bilinear(
        a=lambda B, g, v, full: B.convolve(g, _flip(B, v), full=not full),
        v=_convolve_v,
        batching=in_stacks,
        sparsity=_convolve_sparsity,
        operations=lambda operands, result, _: 2 * min(math.prod(operands[0]), math.prod(result)) * operands[1][-1],
    ),
}
