"""Elementwise primitives that have to know dtypes: all others are functions of single numbers."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from adjoint.backends.reference.places import Line, Values, broadcast
from adjoint.backends.reference.scalars import rounded
from adjoint.primitives import broadcast_shapes

if TYPE_CHECKING:
    from adjoint.backends.reference import Reference


def _nextafter(B: Reference, x: Values, y: Values) -> Line:
    """One step of the nominal dtype, on numbers that may be more precise than it: the slope stays one."""
    shape = broadcast_shapes(x.shape, y.shape)
    left, right = (broadcast(a, shape).values for a in (x, y))
    start, end = rounded(left, x.dtype), rounded(right, x.dtype)
    after = np.nextafter(start, end)
    steps = zip(left, start.tolist(), after.tolist(), strict=True)
    return [v + (b - a) if math.isfinite(a) and math.isfinite(b) and (a or b) else b for v, a, b in steps]


IMPLEMENTATIONS: dict[str, Callable[..., Any]] = {
    "nextafter": _nextafter,
    "astype": lambda B, x, *, dtype: [B.scalars.cast(v, dtype) for v in x.values],
}
