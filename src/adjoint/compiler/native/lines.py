"""Primitives along lines as what machine code is made of: sums and extremes so far, sorting, searching, convolving."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from adjoint.backends.numpy.sorting import COUNTED
from adjoint.compiler.graph import Equation, Graph, Value
from adjoint.primitives import INDEX, broadcast_shapes

_TERMS = 16  # of which each is one product
_WAITED, _VECTOR = 256, 4  # steps of a function that wait for each other: more are NumPy's, if rows have fewer elements


def _turned(B: Any, x: Any, axes: tuple[int, ...]) -> Any:
    return x if list(axes) == sorted(axes) else B.permute_dims(x, axes=axes)


def _along(B: Any, x: Any, axis: int, starts: list[Any], step: Callable[..., tuple[Any, ...]]) -> tuple[Any, ...]:
    """A loop over an axis: what a step makes of its values so far and the row of x, at all places.

    A step of several values is given the number of the row as well.
    """
    n, order = x.shape[axis], (axis, *[i for i in range(len(x.shape)) if i != axis])
    shape = tuple([x.shape[i] for i in order[1:]])
    before, after = ([Value(shape, start.dtype) for start in starts] for _ in range(2))
    lines, row = [_turned(B, x, order)], [Value(shape, x.dtype)]
    if len(starts) > 1:
        lines.append(B.numbers(n, INDEX))
        row.append(Value((), INDEX))
    inner = B.within()
    made = step(inner, *before, *row)
    graph = Graph([*before, *row], inner.equations, [*made, *made])
    operands = [B.full(shape=shape, value=start, dtype=start.dtype) for start in starts]
    stacks = [Value((n, *shape), start.dtype) for start in starts]
    how = {"count": len(starts), "rows": len(row), "length": n, "reverse": False}
    B.equations.append(Equation("scan", [*operands, *lines], how, [*after, *stacks], [graph]))
    back = tuple([order.index(i) for i in range(len(order))])
    return tuple([_turned(B, y, back) for y in stacks])


def _accumulated(name: str, first: float) -> Callable[..., Any]:
    def rule(B: Any, x: Any, *, axis: int) -> Any:
        start = np.asarray(first).astype(x.dtype)
        return _along(B, x, axis, [start], lambda B, before, row: (getattr(B, name)(before, row),))[0]

    return rule


def _logcumsumexp(B: Any, x: Any, *, axis: int) -> Any:
    def step(B: Any, before: Any, row: Any) -> tuple[Any, ...]:
        return (B.where(B.equal(before, -math.inf), row, B.logaddexp(before, row)),)  # a first -0 stays one

    steps = x.shape[axis]
    if x.dtype.kind != "f" or (steps > _WAITED and math.prod(x.shape) < _VECTOR * steps):
        return None
    return _along(B, x, axis, [np.asarray(-math.inf, x.dtype)], step)[0]


def _running(name: str) -> Callable[..., Any]:
    """The extreme up to each place, and the last place that it may have come from."""

    def rule(B: Any, x: Any, *, axis: int) -> Any:
        if x.dtype.kind == "b":
            return None
        ends = (-math.inf, math.inf) if x.dtype.kind == "f" else (np.iinfo(x.dtype).min, np.iinfo(x.dtype).max)

        def step(B: Any, before: Any, place: Any, row: Any, number: Any) -> tuple[Any, ...]:
            out = getattr(B, name)(before, row)
            hit = B.equal(row, out)
            if x.dtype.kind == "f":
                hit = B.logical_or(hit, B.isnan(row))
            return out, B.where(hit, number, place)

        return _along(B, x, axis, [np.asarray(ends[name == "minimum"], x.dtype), np.asarray(0, INDEX)], step)

    return rule


def _ordered(B: Any, x: Any, axis: int, descending: bool) -> tuple[Any, Any, tuple[int, ...]] | None:
    """Of few and short lines, as the last axis, the elements and the places in order; and the axes back.

    Each element counts those before it, and each place looks for the element with so many. nan is last, or first.
    """
    n, last = x.shape[axis], len(x.shape) - 1
    if math.prod(x.shape) * n > COUNTED or x.dtype.kind == "b" or not B.may_check:
        return None
    order = (*[i for i in range(last + 1) if i != axis], axis)
    lines = _turned(B, x, order)
    one, other = B.expand_dims(lines, axis=(last + 1,)), B.expand_dims(lines, axis=(last,))
    before, same = (B.greater if descending else B.less)(other, one), B.equal(other, one)
    if x.dtype.kind == "f":
        first, second = B.isnan(one), B.isnan(other)
        same = B.logical_or(same, B.logical_and(first, second))
        number, missing = (first, second) if descending else (second, first)
        before = B.logical_or(before, B.logical_and(missing, B.logical_not(number)))
    numbers = np.arange(n)
    earlier = numbers < numbers[:, None]
    before = B.logical_or(before, B.logical_and(same, Value(earlier.shape, earlier.dtype, earlier)))
    rank = B.sum(B.astype(before, dtype=INDEX), axis=(last + 1,), keepdims=False)
    is_there = B.equal(B.expand_dims(rank, axis=(last,)), Value((n, 1), INDEX, numbers[:, None]))
    places = B.sum(B.where(is_there, Value((n,), INDEX, numbers), 0), axis=(last + 1,), keepdims=False)
    return lines, places, tuple([order.index(i) for i in range(last + 1)])


def _argsort(B: Any, x: Any, *, axis: int, descending: bool) -> Any:
    found = _ordered(B, x, axis, descending)
    return None if found is None else _turned(B, found[1], found[2])


def _sort(B: Any, x: Any, *, axis: int, descending: bool) -> Any:
    found = _ordered(B, x, axis, descending)
    if found is None:
        return None
    lines, places, back = found
    return _turned(B, B.take_along_axis(lines, places, axis=len(x.shape) - 1), back)


def _topk(B: Any, x: Any, *, k: int, axis: int, largest: bool) -> Any:
    found = _ordered(B, x, axis, largest)
    if found is None or not k:
        return None
    lines, places, back = found
    places = B.index(places, key=(*[slice(None)] * (len(x.shape) - 1), slice(0, k)))
    values = B.take_along_axis(lines, places, axis=len(x.shape) - 1)
    return _turned(B, values, back), _turned(B, places, back)


def _searchsorted(B: Any, x: Any, values: Any, *, side: str) -> Any:
    """By steps of 2^k elements, each taken if the last of them comes before the value; nan comes last."""
    if x.dtype != values.dtype or x.dtype.kind == "b" or not B.may_check:
        return None
    n, axis = x.shape[-1], len(x.shape) - 1
    place = Value(values.shape, INDEX, np.broadcast_to(INDEX.type(0), values.shape))
    for k in reversed(range(n.bit_length())):
        end = B.add(place, 1 << k)
        last = B.take_along_axis(x, B.minimum(B.subtract(end, 1), n - 1), axis=axis)
        before = B.less(last, values) if side == "left" else B.less_equal(last, values)
        if x.dtype.kind == "f":
            is_nan = B.isnan(values)
            before = B.logical_or(before, is_nan if side == "right" else B.logical_and(is_nan, B.equal(last, last)))
        place = B.where(B.logical_and(B.less_equal(end, n), before), end, place)
    return place


def _convolve(B: Any, a: Any, v: Any, *, full: bool) -> Any:
    """A product with all of a for each element of a short v; of a long v a sum for each place."""
    if not (a.__class__ is v.__class__ is Value) or a.dtype != v.dtype or a.dtype.kind != "f":
        return None
    lead = broadcast_shapes(a.shape[:-1], v.shape[:-1])
    a, v = (B.reshape(x, shape=(1,) * (len(lead) + 1 - len(x.shape)) + x.shape) for x in (a, v))
    n, m, last = a.shape[-1], v.shape[-1], len(lead)
    part: Callable[[int, int], Any] = lambda start, stop: (*[slice(None)] * last, slice(start, stop))
    if m > _TERMS:
        if full:
            return None
        turned = B.expand_dims(B.flip(v, axis=(last,)), axis=(last,))
        return B.sum(B.multiply(B.windows(a, axis=last, size=m), turned), axis=(last + 1,), keepdims=False)
    terms = [B.index(v, key=part(j, j + 1)) for j in range(m)]
    border = min(n, m) - 1

    def of_part(start: int, stop: int) -> Any:
        """These places of all."""
        total = B.full(shape=(*lead, stop - start), value=0, dtype=a.dtype)
        for j, term in enumerate(terms):
            low, high = max(start, j), min(stop, j + n)
            if low < high:
                product = B.multiply(B.index(a, key=part(low - j, high - j)), term)
                whole = low == start and high == stop
                total = (
                    B.add(total, product) if whole else B.index_add(total, product, key=part(low - start, high - start))
                )
        return total

    if not full:
        return of_part(m - 1, n)
    cuts = sorted({0, border, n + m - 1 - border, n + m - 1})  # where there are all terms, and where not
    parts = [of_part(start, stop) for start, stop in zip(cuts, cuts[1:], strict=False)]
    return parts[0] if len(parts) == 1 else B.concat(*parts, axis=last)


LOWERED: dict[str, Callable[..., Any]] = {
    "cumulative_sum": _accumulated("add", -0.0),
    "cumulative_prod": _accumulated("multiply", 1.0),
    "logcumsumexp": _logcumsumexp,
    "convolve": _convolve,
    "searchsorted": _searchsorted,
    "sort": _sort,
    "argsort": _argsort,
    "topk": _topk,
    "cummax": _running("maximum"),
    "cummin": _running("minimum"),
}
