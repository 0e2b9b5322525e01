"""Normalisation with a scale and a shift."""

from __future__ import annotations

from adjoint import errors
from adjoint.primitives.table import REDUCTION, Shape, broadcast_shapes, declare, same_dtype, same_shape


def _normalize_shape(x: Shape, weight: Shape, bias: Shape, *, axis: tuple[int, ...], epsilon: float) -> Shape:
    for given in (weight, bias):
        if len(given) != len(x) or broadcast_shapes(given, x) != x:
            raise errors.ShapeError(f"normalize: a scale or shift of shape {given} does not broadcast to {x}")
    return x


# mean 0 and variance 1 along axes, then scaled and shifted; scale and shift have as many axes as x
declare("normalize", REDUCTION, "x weight bias", "axis epsilon", shape=_normalize_shape, dtype=same_dtype)
declare(
    "normalize_pullback",
    REDUCTION,
    "g x weight bias",
    "axis epsilon",
    results=3,
    shape=lambda g, x, weight, bias, **_: [x, weight, bias],
    dtype=lambda *dtypes, **_: [same_dtype(*dtypes)] * 3,
)


declare("standardize", REDUCTION, "x", "axis epsilon", shape=same_shape, dtype=same_dtype)
