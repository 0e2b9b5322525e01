"""Leaf backends: the ones that compute."""

from adjoint import errors
from adjoint.backend import Implementation, Leaf
from adjoint.primitives import Primitive
from adjoint.rules import RECORDS, Composed


def composed(leaf: Leaf, primitive: Primitive) -> Implementation:
    """An implementation that a user gave, or one from the primitive's definition in other primitives.

    Raises UnsupportedPrimitiveError where there is none.
    """
    for key in (leaf.name, *type(leaf).__mro__):
        if key in primitive.implementations:
            return primitive.implementations[key]
    record = RECORDS.get(primitive.name)
    if not isinstance(record, Composed):
        raise errors.UnsupportedPrimitiveError(f"{leaf.name} cannot run the primitive {primitive.name!r}")
    definition = record.definition
    return lambda *operands, **parameters: definition(leaf, *operands, **parameters)
