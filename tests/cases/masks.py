"""Calls of what keeps functions away from single elements; where some are replaced, integers say which."""

from __future__ import annotations

import numpy as np

import adjoint as ad
from cases.values import SHAPES, Case, between, positive, real

_SOME = np.asarray([[0, 1, 2], [3, 0, 1]])
_inside = between(0.8, 2.0)
_low = between(0.2, 0.5)  # whose logarithm is below -1/2


def _mixed() -> np.ndarray[tuple[int, ...], np.dtype[np.float64]]:
    return np.concatenate([_low(1, 3), _inside(1, 3)])


CASES: dict[str, list[Case]] = {
    "replace_where_equal": [
        Case((real(*y), x), {"target": target, "value": value})
        for y, x in [((2, 3), _SOME), ((3,), _SOME), ((2, 3), _SOME[0]), ((), _SOME), ((2, 3), _SOME + 1)]
        for target, value in ((0, 1.0), (1, 0.0), (-100, 0.0))
    ]
    + [Case((real(*shape), real(*shape)), {"target": 0, "value": 1.0}) for shape in SHAPES]
    + [Case((_SOME, _SOME), {"target": 1, "value": 0})],
    "inside_log": [
        Case((real(*y), x), {"pole": pole})
        for y, x in [((2, 3), _SOME), ((3,), _SOME), ((2, 3), _SOME[0]), ((2, 3), _SOME + 1)]
        for pole in (0.0, -1.0)
    ]
    + [Case((real(*shape), real(*shape)), {"pole": 0.0}) for shape in SHAPES],
    "inside_log_pullback": [
        Case((real(*g), real(*g), x), {"pole": pole})
        for g, x in [((2, 3), _SOME), ((2, 3), _SOME[0]), ((2, 3), _SOME + 1)]
        for pole in (0.0, -1.0)
    ],
    "bounded_log": [
        Case((x,), {"shift": shift, "least": least})
        for shift in (0, 1)
        for x, least in [*[(positive(*shape), -100.0) for shape in SHAPES], (_mixed() - shift, -0.5)]
    ],
    "bounded_log_pullback": [
        Case((real(*x.shape), x, np.asarray(np.log(x + shift))), {"shift": shift, "least": least})
        for shift in (0, 1)
        for x, least in [*[(positive(*shape), -100.0) for shape in SHAPES], (_mixed() - shift, -0.5)]
    ],
    "labelled_cross_entropy": [Case((real(4, 3), np.asarray([2, 0, 2, 1])), {"ignore": ignore}) for ignore in (-100, 2)]
    + [
        Case((real(3), np.asarray(1)), {"ignore": -1}),
        Case((real(2, 2, 3), np.asarray([[2, 0], [1, 1]])), {"ignore": 0}),
    ],
    "labelled_cross_entropy_pullback": [
        Case((real(4), real(4, 3), np.asarray([2, 0, 2, 1])), {"ignore": ignore}) for ignore in (-100, 2)
    ]
    + [Case((real(2, 2), real(2, 2, 3), np.asarray([[2, 0], [1, 1]])), {"ignore": 0})],
    "labelled_mean": [
        Case((real(*labels.shape), labels), {"axis": axis, "ignore": ignore})
        for labels, axis in [(_SOME, (0, 1)), (_SOME, (1,)), (np.asarray([2, 0]), (0,)), (np.asarray(1), ())]
        for ignore in (-100, 0)
    ],
    "labelled_mean_pullback": [
        Case((real(*g), labels), {"axis": axis, "ignore": ignore})
        for g, labels, axis in [((), _SOME, (0, 1)), ((2,), _SOME, (1,)), ((), np.asarray([2, 0]), (0,))]
        for ignore in (-100, 0)
    ],
    "raise_to": [Case((positive(*shape),), {"least": 0.1}) for shape in SHAPES],
    "isin": [
        Case((x, line))
        for x in (_SOME, np.asarray(3), np.zeros((0, 2), np.int64))
        for line in (np.asarray([1, 3]), np.asarray([7]), np.zeros(0, np.int64))
    ]
    + [Case((np.asarray([[0.5, np.nan], [2.0, 1.0]]), np.asarray([2.0, np.nan, 0.5])))],
    "one_hot": [
        Case((x,), {"count": 4, "dtype": dtype})
        for x in (_SOME, np.asarray(3), np.zeros((0, 2), np.int64))
        for dtype in (ad.int64, ad.float32, ad.bool)
    ],
}
