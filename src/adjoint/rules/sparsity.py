"""Sparsity: which elements of the input the result of a primitive depends on, and what such rules share.

    rule(call) -> pattern

A pattern is a sparse matrix of booleans with a row for each element of an array and a column for each element of the
input: that of its Jacobian. Rules are asked if at least one operand has a pattern. They need SciPy, which is imported
when the first matrix is made.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from adjoint import errors
from adjoint.primitives import Primitive, Shape

Pattern = Any  # a scipy.sparse.csr_array of booleans
Numbers = np.ndarray[Any, np.dtype[np.int64]]


def scipy_sparse() -> Any:
    """SciPy's module of sparse arrays, imported when it is first needed."""
    try:
        from scipy import sparse
    except ModuleNotFoundError:
        raise errors.MissingLibraryError(
            "sparse Jacobians and Hessians are SciPy matrices, and SciPy is not installed: "
            "pip install 'adjoint[sparse]'"
        ) from None
    return sparse


class Call(NamedTuple):
    """One call of a primitive, as rules see it."""

    primitive: Primitive
    values: Sequence[Any]  # the operands: inner arrays, or Python scalars
    patterns: Sequence[Pattern | None]  # theirs, None where nothing goes through
    parameters: dict[str, Any]
    shape: Shape  # of the result
    inner: Any
    through: Callable[[int], bool]  # whether a derivative goes through the operand in a place

    def shape_of(self, i: int) -> Shape:
        return tuple(getattr(self.values[i], "shape", ()))


SparsityRule = Callable[[Call], Pattern]


# --- matrices of booleans ------------------------------------------------------------------------


def matrix(rows: Any, columns: Any, shape: tuple[int, int]) -> Pattern:
    rows, columns = np.broadcast_arrays(rows, columns)
    ones = np.ones(rows.size, dtype=np.bool_)
    return scipy_sparse().csr_array((ones, (rows.reshape(-1), columns.reshape(-1))), shape=shape)


def numbered(shape: Shape) -> Numbers:
    """Each element's number."""
    return np.arange(math.prod(shape), dtype=np.int64).reshape(shape)


def rows_at(pattern: Pattern, numbers: Numbers, shape: Shape) -> Pattern:
    """For each element of the shape the row that its number says; negative numbers stand for none.

    Further axes in front, of examples whose numbers differ, join the rows of all.
    """
    rows, known = np.broadcast_to(numbered(shape), numbers.shape), numbers >= 0
    return matrix(rows[known], numbers[known], (math.prod(shape), pattern.shape[0])) @ pattern


def along(pattern: Pattern, shape: Shape, axes: Sequence[int], out: Shape) -> Pattern:
    """Rows of an array joined along axes, and those repeated as they broadcast to a result."""
    kept = tuple(1 if i in axes else n for i, n in enumerate(shape))
    numbers = numbered(kept)
    if kept != shape:
        pattern = matrix(np.broadcast_to(numbers, shape), numbered(shape), (numbers.size, pattern.shape[0])) @ pattern
    if numbers.size == math.prod(out):  # in the same order
        return pattern
    return rows_at(pattern, np.broadcast_to(numbers, out), out)


def union(patterns: Sequence[Pattern]) -> Pattern:
    total = patterns[0]
    for pattern in patterns[1:]:
        if pattern is not total:
            total = total + pattern
    return total


def whole(patterns: Sequence[Pattern], size: int) -> Pattern:
    """A pattern of that many elements, each of which depends on all of these: right whatever is done with them."""
    columns = np.flatnonzero(sum([pattern.sum(axis=0) for pattern in patterns]))
    return matrix(np.arange(size)[:, None], columns, (size, patterns[0].shape[1]))


# --- rules: what a call's result depends on ------------------------------------------------------


def joined_along(axes_of: Callable[[Call, int], Sequence[int]]) -> SparsityRule:
    """Every operand is joined along axes of its own, and broadcasts to the result."""

    def rule(call: Call) -> Pattern:
        return union(
            [
                along(pattern, call.shape_of(i), axes_of(call, i), call.shape)
                for i, pattern in enumerate(call.patterns)
                if pattern is not None
            ]
        )

    return rule


def everything(call: Call) -> Pattern:
    return whole([pattern for pattern in call.patterns if pattern is not None], math.prod(call.shape))


def reduced_axes(call: Call, i: int) -> Sequence[int]:
    """The axes in the parameters, or the last one."""
    axis = call.parameters.get("axis", len(call.shape_of(i)) - 1)
    return (axis,) if isinstance(axis, int) else axis


def matrices(call: Call, right: int | None = None) -> Pattern:
    """Every element of a result depends on all of its own matrices, of a right-hand side on a column."""
    parts = []
    for i, pattern in enumerate(call.patterns):
        if pattern is None:
            continue
        *stack, rows, columns = call.shape_of(i)
        if i == right:
            parts.append(along(pattern, call.shape_of(i), (len(stack),), call.shape))
            continue
        joined = along(pattern, (*stack, rows * columns), (len(stack),), (*stack, 1))
        ones = len(call.shape) - _stacked(call)
        parts.append(along(joined, (*stack, *[1] * ones), (), call.shape))
    return union(parts)


def solved(call: Call) -> Pattern:
    """Of a system of equations: each column of the right-hand side is on its own."""
    return matrices(call, right=1)


def _stacked(call: Call) -> int:
    """How many axes of the result count matrices: those that the operands have beside rows and columns."""
    return max([len(call.shape_of(i)) - 2 for i in range(len(call.values))])


def moved(call: Call) -> Pattern:
    """The primitive itself, run on the numbers of all elements from one; what it fills in is zero."""
    inner, sparse = call.inner, scipy_sparse()
    arguments, parts, start = [], [], 1
    for i, (value, pattern) in enumerate(zip(call.values, call.patterns, strict=True)):
        if not call.through(i):
            arguments.append(value)  # it says where to
            continue
        shape = call.shape_of(i)
        numbers = numbered(shape) + start if pattern is not None else np.zeros(shape, dtype=np.int64)
        if pattern is not None:
            parts.append(pattern)
            start += numbers.size
        arguments.append(inner.from_numpy(numbers, copy=True))
    parameters = {**call.parameters, "value": 0} if "value" in call.parameters else call.parameters
    sources = inner.concrete_values(inner[call.primitive](*arguments, **parameters))
    stacked = sparse.vstack(parts, format="csr") if len(parts) > 1 else parts[0]
    return rows_at(stacked, sources - 1, call.shape)


def by_definition(call: Call) -> Pattern:
    """Stands for what the definition of a `Composed` record depends on, which the decorator runs instead."""
    raise AssertionError(f"{call.primitive.name} has no definition")
