"""Where the elements of views lie: an offset and strides, counted in elements."""

from __future__ import annotations

import math
import operator
from typing import Any, NamedTuple

from adjoint.compiler.graph import Equation, Value
from adjoint.compiler.sizes import has_sizes, is_size
from adjoint.primitives import ARRAY, DType, Shape, adjacent, slices
from adjoint.primitives.sizes import as_recorded, count_of, places_along

VIEWS = frozenset({"reshape", "expand_dims", "squeeze", "permute_dims", "broadcast_to", "index", "windows"})

_LINE, _LARGE = 16, 1 << 14  # elements of a line and of an array that are copied rather than read across


class Layout(NamedTuple):
    """Element (i, j, ...) is at offset + i * strides[0] + j * strides[1] ..."""

    shape: Shape
    offset: int
    strides: tuple[int, ...]


def contiguous(shape: Shape) -> Layout:
    strides, size = [], 1
    for n in reversed(shape):
        strides.append(size)
        size *= n
    return Layout(tuple(shape), 0, tuple(strides[::-1]))


def lies_across(layout: Layout, dtype: DType) -> bool:
    """Whether elements of a large array that lie one after the other are along another axis than the last."""
    axes = [(n, s) for n, s in zip(layout.shape, layout.strides, strict=True) if is_size(n) or n != 1]
    if len(axes) < 2 or dtype.itemsize not in (4, 8) or as_recorded(math.prod(layout.shape)) < _LARGE:
        return False
    lines = [i for i, (n, s) in enumerate(axes) if not is_size(s) and abs(s) == 1 and as_recorded(n) >= _LINE]
    n, s = axes[-1]
    return bool(lines) and len(axes) - 1 not in lines and (is_size(s) or abs(s) > 1) and as_recorded(n) >= _LINE


def is_view(e: Equation) -> bool:
    """Whether the result has the operand's elements, each at a place that is known."""
    if e.name not in VIEWS or len(e.operands) != 1 or e.operands[0].__class__ is not Value:
        return False
    return e.name != "index" or all(entry is None or isinstance(entry, (int, slice, range)) for entry in _key(e))


def _key(e: Equation) -> tuple[Any, ...]:
    return slices(e.parameters["key"])


def view(e: Equation, old: Layout) -> Layout | None:
    """Where elements of the result lie; None where they would have to be copied."""
    out = e.results[0]
    assert isinstance(out, Value)
    shape = tuple(out.shape)
    if e.name == "permute_dims":
        return Layout(shape, old.offset, tuple(old.strides[i] for i in e.parameters["axes"]))
    if e.name == "broadcast_to":
        extra = len(shape) - len(old.shape)
        kept = [0 if n == 1 else s for n, s in zip(old.shape, old.strides, strict=True)]
        return Layout(shape, old.offset, (*[0] * extra, *kept))
    if e.name == "index":
        return _indexed(_key(e), shape, old)
    if e.name == "windows":
        return Layout(shape, old.offset, (*old.strides, old.strides[e.parameters["axis"]]))
    return _reshaped(shape, old)


def _indexed(key: tuple[Any, ...], shape: Shape, old: Layout) -> Layout:
    offset, strides, axis = old.offset, [], 0
    for entry in key:
        if entry is None:
            strides.append(0)
            continue
        n, s = old.shape[axis], old.strides[axis]
        axis += 1
        if isinstance(entry, slice):
            if has_sizes((n, entry)):
                start, step = _begin(entry, n)
            else:
                start, stop, step = entry.indices(n)
                start = start if len(range(start, stop, step)) else 0
            offset += start * s
            strides.append(step * s)
        else:
            offset += (entry if entry >= 0 else entry + n) * s
    return Layout(shape, offset, (*strides, *old.strides[axis:]))


def _begin(entry: slice, n: int) -> tuple[int, int]:
    """Where a slice begins that has all of its places, as those of ranges have, and its step."""
    step = 1 if entry.step is None else entry.step
    if entry.start is None:
        return (0 if step > 0 else n - 1), step
    return (entry.start if entry.start >= 0 else operator.index(n)), step


def picked(old: Layout, key: tuple[Any, ...], common: Shape) -> tuple[Layout, tuple[tuple[int, int], ...], int]:
    """Where elements of `x[key]` lie if its arrays, of this common shape, are zeros.

    Also for each array how many places there are and how far one is from the next, and how many axes follow theirs.
    """
    shape: list[int] = []
    strides: list[int] = []
    places: list[tuple[int, int]] = []
    offset, axis, first = old.offset, 0, -1
    for entry in key:
        if entry is None:
            shape.append(1)
            strides.append(0)
            continue
        n, s = old.shape[axis], old.strides[axis]
        axis += 1
        if isinstance(entry, (range, slice)):
            along = places_along(entry, n) if isinstance(entry, slice) else entry
            shape.append(count_of(along))
            strides.append(along.step * s)
            offset += along.start * s
            continue
        first = len(shape) if first < 0 else first
        if entry is ARRAY:
            places.append((n, s))
        else:
            offset += (entry if entry >= 0 else entry + n) * s
    at = first if adjacent(key) else 0
    shape[at:at], strides[at:at] = common, [0] * len(common)
    layout = Layout((*shape, *old.shape[axis:]), offset, (*strides, *old.strides[axis:]))
    return layout, tuple(places), len(layout.shape) - at - len(common)


def _reshaped(shape: Shape, old: Layout) -> Layout | None:
    """Runs of axes that lie as one axis are split anew."""
    runs = merged([n for n in old.shape if n != 1], [s for n, s in zip(old.shape, old.strides, strict=True) if n != 1])
    strides: list[int] = []
    left = list(shape)
    for size, stride in runs:
        part: list[int] = []
        while math.prod(part) < size:
            part.append(left.pop(0))
        if math.prod(part) != size:
            return None
        inner = contiguous(tuple(part)).strides
        strides += [stride * s for s in inner]
    return Layout(tuple(shape), old.offset, (*strides, *[0] * len(left)))


def merged(sizes: list[int], strides: list[int]) -> list[tuple[int, int]]:
    """Axes, with those joined that lie as one."""
    runs: list[tuple[int, int]] = []
    for n, s in zip(sizes, strides, strict=True):
        if runs and runs[-1][1] == n * s:
            runs[-1] = (runs[-1][0] * n, s)
        else:
            runs.append((n, s))
    return runs


def transposed(x: Layout) -> bool | None:
    """Whether each matrix of a stack lies column by column, not row by row; None if it lies otherwise."""
    (rows, columns), (down, right) = x.shape[-2:], x.strides[-2:]
    if any(s < 0 for s in x.strides):
        return None
    if right == 1 or columns == 1:
        if rows == 1 or down >= columns:
            return False
    if down == 1 or rows == 1:
        if columns == 1 or right >= rows:
            return True
    return None
