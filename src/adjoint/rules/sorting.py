"""Orders, and places in them."""

from __future__ import annotations

import math
from typing import Any

from adjoint.primitives import Primitive
from adjoint.rules.batching import along_axes
from adjoint.rules.indexing import places_forward, places_pullback
from adjoint.rules.records import Composed, Custom, NotDifferentiable, Record
from adjoint.rules.sparsity import joined_along, reduced_axes


def _sort_definition(B: Any, x: Any, *, axis: int, descending: bool) -> Any:
    """Of all the largest: their places come with them."""
    values, _ = B.topk(x, k=x.shape[axis], axis=axis, largest=descending)
    return values


def _searchsorted_batched(
    B: Any, primitive: Primitive, values: list[Any], flags: list[bool], parameters: dict[str, Any]
) -> Any:
    """What all examples search for in one line is one search."""
    x, wanted = values
    if flags == [False, True] and len(x.shape) == 1:
        flat = B.reshape(wanted, shape=(math.prod(wanted.shape),))
        return B.reshape(B.searchsorted(x, flat, **parameters), shape=tuple(wanted.shape))
    return along_axes(B, primitive, values, flags, parameters)


RECORDS: dict[str, Record] = {
    "sort": Composed(_sort_definition, sparsity=joined_along(reduced_axes)),
    "topk": Custom(pullback=places_pullback, pushforward=places_forward, sparsity=joined_along(reduced_axes)),
    "argsort": NotDifferentiable(),
    "searchsorted": NotDifferentiable(batching=_searchsorted_batched),
}
