"""Calls of the functions that the array API standard names beyond the first ones."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import adjoint as ad
from functions.core import pair
from functions.draw import Call, Draw


def _diff(d: Draw) -> Call:
    shape = d.shape(1)
    axis, n = d.axis(shape) % len(shape), d.pick(1, 0, 2)
    ends = (*shape[:axis], d.pick(1, 2), *shape[axis + 1 :])
    return d.pick(
        (lambda a: ad.diff(a, axis=axis, n=n), d.either(shape)),
        (lambda a, b: ad.diff(a, axis=axis, n=n, prepend=b), d.either(shape), d.either(ends)),
        (lambda a, b: ad.diff(a, axis=axis, n=n, prepend=b, append=a), d.real(shape), d.real(ends)),
    )


FUNCTIONS: dict[str, Callable[[Draw], Call]] = {
    "copysign": lambda d: pair(ad.copysign, d, d.real, d.real),
    "nextafter": lambda d: pair(ad.nextafter, d, lambda s: d.between(s, 0.3, 0.9), lambda s: d.between(s, 1.2, 2.0)),
    "diff": _diff,
}

PLAIN: dict[str, Any] = {
    "signbit": np.signbit,
    "count_nonzero": np.count_nonzero,
    "isin": np.isin,
}

OTHER = set(
    "__array_namespace_info__ broadcast_shapes can_cast finfo iinfo isdtype result_type searchsorted unique_all "
    "unique_counts unique_inverse unique_values".split()
)
