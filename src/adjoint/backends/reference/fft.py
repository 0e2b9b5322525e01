"""Fourier transforms by their sums."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from adjoint.backends.reference.places import Line, Values, groups
from adjoint.backends.reference.scalars import Number

if TYPE_CHECKING:
    from adjoint.backends.reference import Reference


def _unit_root(B: Reference, size: int, power: int, inverse: bool) -> Number:
    """exp(-2 pi i power / size), or its conjugate."""
    angle = B.scalars.pi * 2 * (power % size) / size
    cos, sin = B.scalars.functions["cos"](angle), B.scalars.functions["sin"](angle)
    return B.scalars.complex_type(cos, sin if inverse else -sin)


def _divisor(B: Reference, size: int, inverse: bool, norm: str) -> Number:
    if norm == "ortho":
        return B.scalars.functions["sqrt"](B.scalars.real_type(size))
    return size if inverse == (norm == "backward") else 1


def _spectrum(B: Reference, line: Line, count: int, inverse: bool, norm: str) -> Line:
    """The first coefficients of the transform of a line."""
    n = len(line)
    roots = [_unit_root(B, n, k, inverse) for k in range(n)]
    divisor = _divisor(B, n, inverse, norm)
    return [sum(x * roots[j * k % n] for j, x in enumerate(line)) / divisor for k in range(count)]


def _resized(x: Values, axis: int, size: int, function: Callable[[Line], Line]) -> Line:
    """A function of lines along an axis that gives lines of another size."""
    shape = (*x.shape[:axis], size, *x.shape[axis + 1 :])
    out: Line = [0] * math.prod(shape)
    for source, target in zip(groups(x.shape, (axis,)), groups(shape, (axis,)), strict=True):
        for p, value in zip(target, function([x.values[p] for p in source]), strict=True):
            out[p] = value
    return out


def _fft(B: Reference, x: Values, *, axis: tuple[int, ...], inverse: bool, norm: str) -> Line:
    for i in axis:
        size = x.shape[i]
        values = _resized(x, i, size, lambda line: _spectrum(B, line, len(line), inverse, norm))
        x = Values(x.shape, values, x.dtype)
    return x.values


def _rfft(B: Reference, x: Values, *, axis: int, inverse: bool, norm: str) -> Line:
    count = x.shape[axis] // 2 + 1
    return _resized(x, axis, count, lambda line: _spectrum(B, line, count, inverse, norm))


def _hfft(B: Reference, x: Values, *, axis: int, size: int, inverse: bool, norm: str) -> Line:
    """The transform of the whole spectrum, whose other half are the conjugates; it is real."""

    def whole(half: Line) -> Line:
        ends = [0, size // 2] if size % 2 == 0 else [0]
        known = [v.real if k in ends else v for k, v in enumerate(half)]
        line = [known[k] if k < len(known) else known[size - k].conjugate() for k in range(size)]
        return [v.real for v in _spectrum(B, line, size, inverse, norm)]

    return _resized(x, axis, size, whole)


IMPLEMENTATIONS: dict[str, Callable[..., Any]] = {
    "fft": _fft,
    "rfft": _rfft,
    "hfft": _hfft,
}
