"""The derivative record of every primitive, by kind of primitive."""

from adjoint.rules import contraction, elementwise, indexing, linalg, random, reduction, special, structural
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
}

# Batching rules of primitives whose kind does not give them; `Batched` says what such a rule takes.
BATCHING: dict[str, Rule] = {}

__all__ = [
    "BATCHING",
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
]
