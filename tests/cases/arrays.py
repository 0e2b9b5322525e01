"""Cases of the primitives behind array functions beyond the standard."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from adjoint.primitives import ARRAY
from cases.values import (
    AXES,
    LINES,
    Array,
    Case,
    between,
    binary,
    cplx,
    distinct,
    ints,
    natural,
    off_integers,
    real,
    reductions,
    unary,
    wholes,
)

_ALL = slice(None)
# shape, key, arrays, and the shape of the value
_JOINS: list[tuple[tuple[int, ...], Any, tuple[Any, ...], tuple[int, ...]]] = [
    ((4,), (ARRAY,), ([2, 0, 3],), (3,)),
    ((4,), (ARRAY,), ([1, 1, 0, 1],), (4,)),
    ((4,), (ARRAY,), ([1, 1, 0, 1],), ()),
    ((4,), (ARRAY,), ([],), (0,)),
    ((4,), (slice(1, 3, 1),), (), (2,)),
    ((3, 4), (1,), (), (1,)),
    ((3, 4), (ARRAY,), ([2, 0, 2],), (3, 4)),
    ((3, 4), (ARRAY,), ([2, 0, 2],), (1, 4)),
    ((3, 4), (_ALL, ARRAY), ([3, 1, 3],), (3, 3)),
    ((3, 4), (ARRAY, ARRAY), ([0, 2, 0], [1, 3, 1]), (3,)),
    ((3, 4), (ARRAY, ARRAY), ([0, -1, -3], [1, 3, 1]), (3,)),  # one place by two names
    ((2, 3, 4), (ARRAY, _ALL, ARRAY), ([1, 0, 1], [3, 2, 3]), (3, 3)),
]


def _joins(left: Callable[..., Array], right: Callable[..., Array]) -> list[Case]:
    return [
        Case((left(*shape), right(*value), *[np.asarray(a, dtype=np.int64) for a in arrays]), {"key": key})
        for shape, key, arrays, value in _JOINS
    ]


def _extremes() -> list[Case]:
    cases = []
    for shape, key, arrays, value in _JOINS:
        together = distinct(int(np.prod(shape)) + int(np.prod(value)))
        x, v = together[: int(np.prod(shape))].reshape(shape), together[int(np.prod(shape)) :].reshape(value)
        cases.append(Case((x, v, *[np.asarray(a, dtype=np.int64) for a in arrays]), {"key": key}))
    return cases


_CONVOLUTIONS: list[tuple[tuple[int, ...], tuple[int, ...]]] = [
    ((4,), (2,)), ((3,), (3,)), ((1,), (1,)), ((2, 4), (3,)), ((5,), (2, 2)), ((2, 1, 3), (3, 2)), ((0, 3), (2,)),
]  # fmt: skip

CASES: dict[str, list[Case]] = {
    "nanmax": reductions(distinct, AXES),
    "nanmin": reductions(distinct, AXES),
    "ldexp": binary(real, ints),
    "mantissa": unary(real, between(1e-3, 1e5)),
    "binary_exponent": unary(real, between(1e-3, 1e5)),
    "fmod": [*binary(off_integers, wholes, 2.5), *binary(ints, natural, 3)],
    "cummax": [Case((make(*shape),), {"axis": axis}) for make in (distinct, ints) for shape, axis in LINES],
    "cummin": [Case((make(*shape),), {"axis": axis}) for make in (distinct, ints) for shape, axis in LINES],
    "index_multiply": [*_joins(real, real), *_joins(cplx, cplx)[1::3], *_joins(ints, ints)[::4]],
    "index_max": [*_extremes(), *_joins(ints, ints)[::4]],
    "index_min": [*_extremes(), *_joins(ints, ints)[::4]],
    "windows": [
        Case((make(*shape),), {"axis": axis, "size": size})
        for make in (real, cplx, ints)
        for shape, axis, size in [
            ((4,), 0, 2), ((4,), 0, 4), ((3,), 0, 1), ((5,), 0, 4), ((2, 3), 0, 2), ((2, 4), 1, 3), ((0, 3), 1, 2),
            ((2, 3, 2), 1, 2),
        ]
    ],
    "convolve": [
        Case((make(*a), make(*v)), {"full": full})
        for make in (real, cplx, ints)
        for a, v in _CONVOLUTIONS
        for full in (True, False)
    ] + [Case((real(2), real(3)), {"full": True})],
}  # fmt: skip
