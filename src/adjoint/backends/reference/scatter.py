"""Values put at places: set, added, multiplied or compared."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from adjoint.backends.reference.indexing import indexed
from adjoint.backends.reference.places import Line, Values, broadcast
from adjoint.backends.reference.scalars import Number, Scalars
from adjoint.primitives import Key

if TYPE_CHECKING:
    from adjoint.backends.reference import Reference


def _index_set(B: Reference, x: Values, value: Values, *arrays: Values, key: Key) -> Line:
    shape, positions = indexed(x, arrays, key)
    values = list(x.values)
    for p, v in zip(positions, broadcast(value, shape).values, strict=True):
        values[p] = v  # where one place is written twice, the last writer wins
    return values


def _joining(join: Callable[[Scalars, Number, Number], Number]) -> Callable[..., Line]:
    """Elements at a key joined with a value, once for each time that a place is named."""

    def run(B: Reference, x: Values, value: Values, *arrays: Values, key: Key) -> Line:
        shape, positions = indexed(x, arrays, key)
        values = list(x.values)
        for p, v in zip(positions, broadcast(value, shape).values, strict=True):
            values[p] = join(B.scalars, values[p], v)
        return values

    return run


IMPLEMENTATIONS: dict[str, Callable[..., Any]] = {
    "index_set": _index_set,
    "index_add": _joining(lambda scalars, x, y: x + y),
    "index_multiply": _joining(lambda scalars, x, y: x * y),
    "index_max": _joining(Scalars.maximum),
    "index_min": _joining(Scalars.minimum),
}
