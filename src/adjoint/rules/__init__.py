"""The derivative record of every primitive, by kind of primitive."""

from adjoint.rules import contraction, elementwise, indexing, linalg, reduction, structural
from adjoint.rules.records import (
    Bilinear,
    Composed,
    Custom,
    Elementwise,
    Linear,
    NotDifferentiable,
    Record,
    names_of,
)

RECORDS: dict[str, Record] = {
    **elementwise.RECORDS,
    **reduction.RECORDS,
    **structural.RECORDS,
    **indexing.RECORDS,
    **contraction.RECORDS,
    **linalg.RECORDS,
}

__all__ = [
    "RECORDS",
    "Bilinear",
    "Composed",
    "Custom",
    "Elementwise",
    "Linear",
    "NotDifferentiable",
    "Record",
    "names_of",
]
