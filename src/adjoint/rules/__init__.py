"""The derivative record of every primitive, by kind of primitive."""

from adjoint import errors
from adjoint.primitives import Primitive
from adjoint.rules import (
    attention,
    contraction,
    convolution,
    elementwise,
    factors,
    fft,
    indexing,
    linalg,
    masks,
    normalization,
    pooling,
    random,
    recurrence,
    reduction,
    scatter,
    shape,
    sorting,
    special,
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
    **convolution.RECORDS,
    **sorting.RECORDS,
    **scatter.RECORDS,
    **elementwise.RECORDS,
    **reduction.RECORDS,
    **shape.RECORDS,
    **indexing.RECORDS,
    **contraction.RECORDS,
    **linalg.RECORDS,
    **special.RECORDS,
    **random.RECORDS,
    **factors.RECORDS,
    **fft.RECORDS,
    **pooling.RECORDS,
    **attention.RECORDS,
    **recurrence.RECORDS,
    **normalization.RECORDS,
    **masks.RECORDS,
}


def record_of(primitive: Primitive) -> Record:
    """The record of a primitive; raises UnsupportedPrimitiveError where there is none."""
    record: Record | None = primitive.record or RECORDS.get(primitive.name)
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
