"""Derivatives of normalisation with a scale and a shift.

S. Ioffe, C. Szegedy, Batch Normalization (2015), section 3.
"""

from __future__ import annotations

import math
from typing import Any

from adjoint.rules.records import Composed, Record
from adjoint.rules.sparsity import by_definition
from adjoint.rules.structural import unbroadcast


def _mean(B: Any, x: Any, axis: Any) -> Any:
    return B.divide(B.sum(x, axis=axis, keepdims=True), math.prod(x.shape[i] for i in axis))


def _normalize_definition(B: Any, x: Any, weight: Any, bias: Any, *, axis: Any, epsilon: float) -> Any:
    return B.add(B.multiply(B.standardize(x, axis=axis, epsilon=epsilon), weight), bias)


def _normalize_pullback_definition(
    B: Any, g: Any, x: Any, weight: Any, bias: Any, *, axis: Any, epsilon: float
) -> tuple[Any, ...]:
    centred = B.subtract(x, _mean(B, x, axis))
    deviation = B.sqrt(B.add(_mean(B, B.square(centred), axis), epsilon))
    normal = B.divide(centred, deviation)
    scaled = B.multiply(g, weight)
    slope = B.multiply(normal, _mean(B, B.multiply(scaled, normal), axis))
    to_x = B.divide(B.subtract(B.subtract(scaled, _mean(B, scaled, axis)), slope), deviation)
    shapes = tuple(weight.shape), tuple(bias.shape)
    return to_x, unbroadcast(B, B.multiply(g, normal), shapes[0]), unbroadcast(B, g, shapes[1])


def _normalize(
    B: Any, g: Any, wanted: tuple[int, ...], x: Any, weight: Any, bias: Any, axis: Any, epsilon: float
) -> tuple[Any, ...]:
    pulled = B.normalize_pullback(g, x, weight, bias, axis=axis, epsilon=epsilon)
    return tuple([pulled[i] for i in wanted])


RECORDS: dict[str, Record] = {
    "normalize": Composed(_normalize_definition, pullback=_normalize, sparsity=by_definition),
    "normalize_pullback": Composed(_normalize_pullback_definition, sparsity=by_definition),
}
