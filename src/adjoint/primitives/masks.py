"""Primitives that keep functions away from single elements: a leaf that sees that there are none has nothing to do."""

from __future__ import annotations

from adjoint.primitives.table import (
    ELEMENTWISE,
    INDEXING,
    STRUCTURAL,
    Shape,
    bool_dtype,
    broadcast,
    declare,
    dtype_given,
    same_dtype,
    same_shape,
)


def _one_hot_shape(indices: Shape, *, count: int, **_: object) -> Shape:
    return (*indices, count)


# y, and a value where x is the target: `value` and `target` are numbers
declare("replace_where_equal", ELEMENTWISE, "y x", "target value", shape=broadcast, dtype=same_dtype)
# y, and pole + 1 where x is zero and log(y - pole) is not finite: that of what replaces it is 0
declare("inside_log", ELEMENTWISE, "y x", "pole", shape=broadcast, dtype=same_dtype)
declare("inside_log_pullback", ELEMENTWISE, "g y x", "pole", shape=broadcast, dtype=same_dtype)
# log(x + shift), for a shift of 0 or 1, and no less than a bound, where the derivative is zero
declare("bounded_log", ELEMENTWISE, "x", "shift least", shape=same_shape, dtype=same_dtype)
declare("bounded_log_pullback", ELEMENTWISE, "g x y", "shift least", shape=broadcast, dtype=same_dtype)
# x, and no less than a bound; the derivative is 1 everywhere
declare("raise_to", ELEMENTWISE, "x", "least", shape=same_shape, dtype=same_dtype)
# whether elements are among those of a line
declare("isin", INDEXING, "x values", shape=lambda x, values: x, dtype=bool_dtype)
declare("one_hot", STRUCTURAL, "indices", "count dtype", shape=_one_hot_shape, dtype=dtype_given)
