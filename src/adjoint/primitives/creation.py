"""Arrays out of nothing, and random numbers."""

from __future__ import annotations

import math

from adjoint.primitives.table import CREATION, declare, dtype_given, shape_given


def _count(start: float, stop: float, step: float) -> int:
    """How many numbers there are in a range."""
    if isinstance(start, int) and isinstance(stop, int) and isinstance(step, int):
        return max(0, -((start - stop) // step))
    return max(0, math.ceil((stop - start) / step))


declare("full", CREATION, "", "shape value dtype", shape=shape_given, dtype=dtype_given)
declare(
    "arange",
    CREATION,
    "",
    "start stop step dtype",
    shape=lambda *, start, stop, step, **_: (_count(start, stop, step),),
    dtype=dtype_given,
)
declare("linspace", CREATION, "", "start stop num endpoint dtype", shape=lambda *, num, **_: (num,), dtype=dtype_given)
declare(
    "eye", CREATION, "", "rows columns k dtype", shape=lambda *, rows, columns, **_: (rows, columns), dtype=dtype_given
)
