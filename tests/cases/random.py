"""Cases of random numbers whose parameters are operands."""

from __future__ import annotations

import numpy as np

from adjoint import dtypes
from cases.values import Case, between, natural, positive

_SHAPES: list[tuple[tuple[int, ...], tuple[int, ...]]] = [((), ()), ((3,), (2, 3)), ((2, 1), (2, 3)), ((0,), (0,))]
_KEY = (7, 3)
_share = between(0.1, 0.9)

CASES: dict[str, list[Case]] = {
    "random_loggamma": [Case((positive(*own),), {"key": _KEY, "shape": shape}) for own, shape in _SHAPES],
    "random_poisson": [
        Case((positive(*own),), {"key": _KEY, "shape": shape, "dtype": dtype})
        for dtype in (dtypes.int64, dtypes.float32)
        for own, shape in _SHAPES
    ],
    "random_binomial": [
        Case((np.asarray(10.0 * natural(*own)), _share(*own)), {"key": _KEY, "shape": shape, "dtype": dtypes.int64})
        for own, shape in _SHAPES
    ],
}
