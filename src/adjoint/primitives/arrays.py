"""Primitives of array functions beyond the standard: running extremes, places joined, windows, convolution."""

from __future__ import annotations

import numpy as np

from adjoint import errors
from adjoint.dtypes import floating
from adjoint.primitives.indexing import Key, index_set_shape
from adjoint.primitives.reduction import extremum_shape
from adjoint.primitives.table import (
    CONTRACTION,
    ELEMENTWISE,
    INDEX,
    INDEXING,
    ORDERED,
    REAL,
    REDUCTION,
    STRUCTURAL,
    Shape,
    broadcast,
    broadcast_shapes,
    declare,
    same_dtype,
    same_shape,
)

INT32 = np.dtype(np.int32)


def _joined_shape(shape: Shape, value: Shape, *arrays: Shape, key: Key) -> Shape:
    return index_set_shape(shape, value, *arrays, key=key)


def _windows_shape(shape: Shape, *, axis: int, size: int) -> Shape:
    if not 1 <= size <= shape[axis]:
        raise errors.ShapeError(
            f"windows of {size} elements do not fit axis {axis} of shape {shape}, which has {shape[axis]}"
        )
    return (*shape[:axis], shape[axis] - size + 1, *shape[axis + 1 :], size)


def _convolve_shape(a: Shape, v: Shape, *, full: bool) -> Shape:
    if not a or not v or not a[-1] or not v[-1]:
        raise errors.ShapeError(f"convolve: expected at least one element along an axis, received shapes {a} and {v}")
    n, m = a[-1], v[-1]
    if not full and n < m:
        raise errors.ShapeError(f"convolve: without a border {m} elements do not fit into {n}")
    return (*broadcast_shapes(a[:-1], v[:-1]), n + m - 1 if full else n - m + 1)


# as index_add, with another way to join what is there and the value
declare("index_multiply index_max index_min", INDEXING, "x value *arrays", "key", shape=_joined_shape, dtype=same_dtype)
# the extreme up to each place, and the place of it, the last of equal ones
declare(
    "cummax cummin", REDUCTION, "x", "axis", results=2, shape=lambda s, **_: [s, s], dtype=lambda d, **_: [d, INDEX]
)
# of the elements that are not nan; nan where there are none
declare("nanmax nanmin", REDUCTION, "x", "axis keepdims", shape=extremum_shape, dtype=same_dtype)
# the remainder with the sign of x
declare("fmod", ELEMENTWISE, "x y", shape=broadcast, dtype=same_dtype, accepts=ORDERED)
# x times two to the power of an integer, and the power that leaves a mantissa from a half to one
declare("ldexp", ELEMENTWISE, "x exponent", shape=broadcast, dtype=same_dtype)
declare("mantissa", ELEMENTWISE, "x", shape=same_shape, dtype=same_dtype, accepts=REAL, promotes=floating)
declare("binary_exponent", ELEMENTWISE, "x", shape=same_shape, dtype=lambda *_: INT32, accepts=REAL, promotes=floating)
# all runs of so many elements along an axis, which become a new last axis
declare("windows", STRUCTURAL, "x", "axis size", shape=_windows_shape, dtype=same_dtype)
# sums of a[k - j] v[j] along the last axes: where one of them is inside, or all of the shorter v
declare("convolve", CONTRACTION, "a v", "full", shape=_convolve_shape, dtype=same_dtype)
