"""Calls of every primitive, as data: the conformance suite runs them, and so do derivative checks."""

from cases import arrays, core, standard
from cases.values import Case

CASES: dict[str, list[Case]] = {**core.CASES, **standard.CASES, **arrays.CASES}

__all__ = ["CASES", "Case"]
