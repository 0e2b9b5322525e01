"""Values put at places: set, added, multiplied or compared."""

from __future__ import annotations

from adjoint.primitives.indexing import Key, index_set_shape
from adjoint.primitives.table import INDEXING, Shape, declare, same_dtype


def _joined_shape(shape: Shape, value: Shape, *arrays: Shape, key: Key) -> Shape:
    return index_set_shape(shape, value, *arrays, key=key)


# as index_add, with another way to join what is there and the value
declare("index_multiply index_max index_min", INDEXING, "x value *arrays", "key", shape=_joined_shape, dtype=same_dtype)


declare("index_set index_add", INDEXING, "x value *arrays", "key", shape=index_set_shape, dtype=same_dtype)
