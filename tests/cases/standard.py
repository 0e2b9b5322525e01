"""Cases of the primitives that the array API standard names and the first functions did not need."""

from __future__ import annotations

import numpy as np

from cases.values import Array, Case, between, binary, either_sign, ints, lines, natural, real, unary


def wide(*shape: int) -> Array:
    """Fibonacci numbers, of which Euclid's algorithm takes the most steps."""
    numbers = np.asarray([7540113804746346429, 4660046610375530309, 2880067194370816120])
    return np.asarray(numbers[(ints(*shape) + natural(*shape)) % 3])


_LINE = np.asarray([-1.0, 0.5, 0.5, 2.0])
_LINES = np.asarray([[-1.0, 0.5, 0.5, 2.0], [0.1, 0.2, 0.3, 0.4]])

CASES: dict[str, list[Case]] = {
    "hypot": binary(real, real, 2.0),
    "copysign": binary(real, real, 2.0, -1.5, 0.0),
    "nextafter": binary(either_sign(0.3, 0.9), either_sign(1.2, 2.0), 1.5, -3),
    "signbit": unary(real),
    "cbrt": unary(real, between(1e-3, 1e5)),
    "gcd": [*binary(ints, natural, 6, -4), *binary(wide, wide)],
    "lcm": binary(ints, natural, 6, -4),
    "logcumsumexp": lines(real),
    "searchsorted": [
        Case((line, wanted), {"side": side})
        for line, wanted in [
            (_LINE, np.asarray([0.5, -3.0, 2.0, 2.5, np.nan])),
            (_LINE, np.zeros(0)),
            (np.zeros(0), np.asarray([1.0])),
            (np.asarray([2, 2, 2]), np.asarray([2, 0, 3])),
            (_LINES, np.asarray([[0.5, 0.3, 9.0], [0.3, -1.0, 0.35]])),
            (np.asarray([0.5, np.inf, np.nan]), np.asarray([0.0, 2.0, np.inf, np.nan])),
            (np.asarray([[1.0, np.nan], [np.nan, np.nan]]), np.asarray([[2.0, np.nan], [-np.inf, np.inf]])),
            (np.zeros((0, 3)), np.zeros((0, 2))),
        ]
        for side in ("left", "right")
    ],
}
