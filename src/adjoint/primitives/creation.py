"""Arrays out of nothing, and random numbers."""

from __future__ import annotations

import math

from adjoint.primitives.table import CREATION, declare, dtype_given, shape_given

declare("full", CREATION, "", "shape value dtype", shape=shape_given, dtype=dtype_given)
declare(
    "arange",
    CREATION,
    "",
    "start stop step dtype",
    shape=lambda *, start, stop, step, **_: (max(0, math.ceil((stop - start) / step)),),
    dtype=dtype_given,
)
declare("linspace", CREATION, "", "start stop num endpoint dtype", shape=lambda *, num, **_: (num,), dtype=dtype_given)
declare(
    "eye", CREATION, "", "rows columns k dtype", shape=lambda *, rows, columns, **_: (rows, columns), dtype=dtype_given
)
