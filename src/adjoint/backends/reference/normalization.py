"""Mean zero, variance one, along axes."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from adjoint.backends.reference.places import Line
from adjoint.backends.reference.reduction import linewise

if TYPE_CHECKING:
    from adjoint.backends.reference import Reference


def _standardize(B: Reference, line: Line, *, epsilon: float) -> Line:
    mean = sum(line) / len(line) if line else 0
    variance = sum([(v - mean) ** 2 for v in line]) / len(line) if line else 0
    deviation = B.scalars.functions["sqrt"](variance + B.scalars.real_type(epsilon))
    return [B.scalars.divide(v - mean, deviation) for v in line]


IMPLEMENTATIONS: dict[str, Callable[..., Any]] = {
    "standardize": linewise(_standardize),
}
