"""Cases of the primitives of neural networks: windows, attention, normalisations."""

from __future__ import annotations

from typing import Any

from adjoint.primitives import window_shape
from cases.values import Case, distinct, real

# shape, kernel, stride, padding, dilation
_WINDOWS: list[tuple[Any, ...]] = [
    ((3,), (1,), (1,), ((0, 0),), (1,)),
    ((5,), (2,), (2,), ((0, 0),), (1,)),  # the last element is in no window
    ((5,), (2,), (2,), ((0, 1),), (1,)),
    ((2, 6), (3,), (1,), ((1, 1),), (2,)),
    ((2, 3, 4), (2, 2), (2, 2), ((0, 0), (0, 0)), (1, 1)),
    ((2, 4, 4), (3, 2), (1, 2), ((1, 1), (0, 0)), (1, 1)),
    ((1, 2, 3, 5), (1, 3), (1, 2), ((0, 0), (1, 2)), (1, 1)),
    ((3, 5), (1, 1), (2, 3), ((0, 0), (0, 0)), (1, 1)),
    ((2, 2, 3), (2, 1, 2), (1, 1, 1), ((0, 1), (0, 0), (1, 0)), (1, 1, 1)),
    ((0, 4), (2,), (1,), ((0, 0),), (1,)),
]


def _windows(name: str) -> list[Case]:
    cases = []
    for shape, kernel, stride, padding, dilation in _WINDOWS:
        how = {"kernel": kernel, "stride": stride, "padding": padding, "dilation": dilation}
        out = window_shape(shape, **how)
        match name:
            case "window_sum":
                cases.append(Case((real(*shape),), how))
            case "window_spread":
                cases.append(Case((real(*out),), {**how, "size": shape[len(shape) - len(kernel) :]}))
            case "max_pool":
                cases.append(Case((distinct(*shape),), how))
            case _:
                cases.append(Case((real(*out), distinct(*shape)), how))
    return cases


CASES: dict[str, list[Case]] = {
    name: _windows(name) for name in ("max_pool", "max_pool_pullback", "window_sum", "window_spread")
}
