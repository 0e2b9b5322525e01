"""Derivatives of normalisation with a scale and a shift.

S. Ioffe, C. Szegedy, Batch Normalization (2015), section 3.
"""

from __future__ import annotations

import math
from typing import Any

from adjoint.rules.records import Composed, Record
from adjoint.rules.shape import unbroadcast
from adjoint.rules.sparsity import by_definition


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


def _row_mean(B: Any, x: Any, axis: Any) -> Any:
    return B.divide(B.sum(x, axis=axis, keepdims=True), math.prod(x.shape[i] for i in axis))


def _standardize_definition(B: Any, x: Any, *, axis: Any, epsilon: float) -> Any:
    centred = B.subtract(x, _row_mean(B, x, axis))
    return B.divide(centred, B.sqrt(B.add(_row_mean(B, B.square(centred), axis), epsilon)))


def _standardize(B: Any, g: Any, x: Any, out: Any, axis: Any, epsilon: float) -> Any:
    """Ioffe and Szegedy, Batch Normalization (2015), section 3, with mean and variance folded in."""
    centred = B.subtract(x, _row_mean(B, x, axis))
    deviation = B.sqrt(B.add(_row_mean(B, B.square(centred), axis), epsilon))
    slope = B.multiply(out, _row_mean(B, B.multiply(g, out), axis))
    return B.divide(B.subtract(B.subtract(g, _row_mean(B, g, axis)), slope), deviation)


RECORDS: dict[str, Record] = {
    "normalize": Composed(_normalize_definition, pullback=_normalize, sparsity=by_definition),
    "normalize_pullback": Composed(_normalize_pullback_definition, sparsity=by_definition),
    "standardize": Composed(
        _standardize_definition,
        x=_standardize,
        pushforward=lambda B, tangents, x, out, axis, epsilon: _standardize(  # symmetric
            B, tangents[0], x, out, axis, epsilon
        ),
    ),
}
