"""Calls of every primitive, as data: the conformance suite runs them, and so do derivative checks."""

from cases import arrays, core, linalg, masks, networks, random, special, standard
from cases.values import Case

CASES: dict[str, list[Case]] = {
    **core.CASES,
    **standard.CASES,
    **arrays.CASES,
    **linalg.CASES,
    **networks.CASES,
    **special.CASES,
    **random.CASES,
    **masks.CASES,
}

__all__ = ["CASES", "Case"]
