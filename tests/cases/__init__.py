"""Calls of every primitive, as data: the conformance suite runs them, and so do derivative checks."""

from cases import arrays, core, networks, standard
from cases.values import Case

CASES: dict[str, list[Case]] = {**core.CASES, **networks.CASES, **standard.CASES, **arrays.CASES}

__all__ = ["CASES", "Case"]
