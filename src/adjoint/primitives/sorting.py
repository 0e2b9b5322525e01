"""Orders, and places in them."""

from __future__ import annotations

from adjoint import errors
from adjoint.primitives.table import INDEX, INDEXING, Shape, declare, index_dtype, same_dtype, same_shape


def _topk_shape(shape: Shape, *, k: int, axis: int, largest: bool) -> list[Shape]:
    return [(*shape[:axis], k, *shape[axis + 1 :])] * 2


def _searchsorted_shape(x: Shape, values: Shape, *, side: str) -> Shape:
    if not x or x[:-1] != values[:-1]:
        raise errors.ShapeError(
            f"searchsorted: sorted lines of shape {x} and values of shape {values} must agree but for the last axis"
        )
    return values


declare("sort", INDEXING, "x", "axis descending", shape=same_shape, dtype=same_dtype)


declare("argsort", INDEXING, "x", "axis descending", shape=same_shape, dtype=index_dtype)


declare("topk", INDEXING, "x", "k axis largest", results=2, shape=_topk_shape, dtype=lambda d, **_: [d, INDEX])


declare("searchsorted", INDEXING, "x values", "side", shape=_searchsorted_shape, dtype=index_dtype)
