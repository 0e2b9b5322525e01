"""The derivative record of every primitive, by kind of primitive."""

from adjoint import errors
from adjoint.primitives import Primitive
from adjoint.rules import (
    arrays,
    attention,
    contraction,
    elementwise,
    factors,
    fourier,
    indexing,
    linalg,
    masks,
    normalization,
    random,
    reduction,
    special,
    structural,
    windows,
)
from adjoint.rules.records import (
    Bilinear,
    Composed,
    Custom,
    Elementwise,
    Linear,
    NotDifferentiable,
    Record,
    Rule,
    names_of,
)

RECORDS: dict[str, Record] = {
    **elementwise.RECORDS,
    **reduction.RECORDS,
    **structural.RECORDS,
    **indexing.RECORDS,
    **contraction.RECORDS,
    **linalg.RECORDS,
    **special.RECORDS,
    **random.RECORDS,
    **arrays.RECORDS,
    **factors.RECORDS,
    **fourier.RECORDS,
    **windows.RECORDS,
    **attention.RECORDS,
    **normalization.RECORDS,
    **masks.RECORDS,
}


def record_of(primitive: Primitive) -> Record:
    """The record of a primitive; raises UnsupportedPrimitiveError where there is none."""
    record = RECORDS.get(primitive.name)
    if record is None:
        raise errors.UnsupportedPrimitiveError(
            f"{primitive.name} has no derivative record; give it one in adjoint.rules"
        )
    return record


__all__ = [
    "RECORDS",
    "Bilinear",
    "Composed",
    "Custom",
    "Elementwise",
    "Linear",
    "NotDifferentiable",
    "Record",
    "Rule",
    "names_of",
    "record_of",
]
