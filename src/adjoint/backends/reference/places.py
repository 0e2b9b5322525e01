"""Arrays of the reference backend, and where their elements are."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Sequence

from adjoint.backends.reference.scalars import Number
from adjoint.primitives import DType, Shape

Line = list[Number]
Matrix = list[Line]


class Values:
    """An array of the reference backend: Python numbers in row-major order, a shape and a nominal dtype."""

    __slots__ = ("__weakref__", "dtype", "shape", "values")

    def __init__(self, shape: Shape, values: list[Number], dtype: DType) -> None:
        self.shape: Shape = shape
        self.values: list[Number] = values
        self.dtype: DType = dtype

    def __repr__(self) -> str:
        return f"Values({self.shape}, {self.values}, {self.dtype})"


def places(shape: Sequence[int]) -> Iterator[Shape]:
    """All indices of a shape, in row-major order."""
    return itertools.product(*map(range, shape))


def flat(shape: Shape, place: Sequence[int]) -> int:
    """Where the element of an index stands in the list."""
    number = 0
    for size, i in zip(shape, place, strict=True):
        number = number * size + i
    return number


def gather(x: Values, shape: Shape, source: Callable[[Shape], Sequence[int]]) -> Line:
    """For every place of a shape, the element of `x` at `source(place)`."""
    return [x.values[flat(x.shape, source(place))] for place in places(shape)]


def broadcast(x: Values, shape: Shape) -> Values:
    extra = len(shape) - len(x.shape)
    values = gather(x, shape, lambda place: [0 if n == 1 else i for n, i in zip(x.shape, place[extra:], strict=True)])
    return Values(shape, values, x.dtype)


def groups(shape: Shape, axis: tuple[int, ...]) -> list[list[int]]:
    """Per place outside `axis`, the list positions of the elements along it, both in row-major order."""
    kept = [i for i in range(len(shape)) if i not in axis]
    found = []
    for outer in places([shape[i] for i in kept]):
        where = dict(zip(kept, outer, strict=True))
        group = []
        for inner in places([shape[i] for i in axis]):
            where.update(zip(axis, inner, strict=True))
            group.append(flat(shape, [where[i] for i in range(len(shape))]))
        found.append(group)
    return found


def matrices(x: Values) -> Iterator[Matrix]:
    """The matrices along the last two axes, as lists of rows."""
    rows, columns = x.shape[-2:]
    for number in range(math.prod(x.shape[:-2])):
        start = number * rows * columns
        yield [x.values[start + i * columns : start + (i + 1) * columns] for i in range(rows)]
