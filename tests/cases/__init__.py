"""Calls of every primitive, as data: the conformance suite runs them, and so do derivative checks."""

from cases import core, random, special
from cases.values import Case

CASES: dict[str, list[Case]] = {**core.CASES, **special.CASES, **random.CASES}

__all__ = ["CASES", "Case"]
