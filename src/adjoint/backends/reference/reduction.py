"""Reductions of lists of Python numbers, and what runs along a line of them."""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from adjoint import errors
from adjoint.backends.reference.places import Line, Values, broadcast, groups
from adjoint.backends.reference.scalars import Number
from adjoint.primitives import broadcast_shapes

if TYPE_CHECKING:
    from adjoint.backends.reference import Reference


def _reduction(function: Callable[[Reference, Line], Number]) -> Callable[..., Line]:
    """A primitive that makes one number of those along its axes."""

    def run(B: Reference, x: Values, *, axis: Any, keepdims: bool) -> Line:
        axes = tuple(range(len(x.shape))) if axis is None else axis if isinstance(axis, tuple) else (axis,)
        return [function(B, [x.values[p] for p in group]) for group in groups(x.shape, tuple(sorted(axes)))]

    return run


def linewise(function: Callable[..., Line]) -> Callable[..., Line]:
    """A primitive that makes a line of each line along its axes."""

    def run(B: Reference, *arrays: Values, axis: Any, **parameters: Any) -> Line:
        shape = broadcast_shapes(*[a.shape for a in arrays])
        arrays = tuple([broadcast(a, shape) for a in arrays])
        values: Line = [0] * math.prod(shape)
        for group in groups(shape, axis if isinstance(axis, tuple) else (axis,)):
            line = function(B, *[[a.values[p] for p in group] for a in arrays], **parameters)
            for p, value in zip(group, line, strict=True):
                values[p] = value
        return values

    return run


def _largest(B: Reference, line: Line) -> Number:
    return functools.reduce(B.scalars.maximum, line)


def _smallest(B: Reference, line: Line) -> Number:
    return functools.reduce(B.scalars.minimum, line)


def _first_of(B: Reference, line: Line, best: Number) -> int:
    return next(i for i, value in enumerate(line) if value == best or B.scalars.isnan(value))


def _logsumexp(B: Reference, line: Line) -> Number:
    f = B.scalars.functions
    top = _largest(B, line) if line else -B.scalars.inf
    shift = top if B.scalars.isfinite(top) else 0
    return f["log"](sum([f["exp"](v - shift) for v in line], B.scalars.real_type(0))) + shift


def _softmax(B: Reference, line: Line) -> Line:
    return [B.scalars.functions["exp"](v) for v in _log_softmax(B, line)]


def _softmax_pullback(B: Reference, g: Line, out: Line) -> Line:
    inner = sum(a * b for a, b in zip(g, out, strict=True))
    return [b * (a - inner) for a, b in zip(g, out, strict=True)]


def _log_softmax(B: Reference, line: Line) -> Line:
    if not line:
        return line
    top = _largest(B, line)
    shifted = [v - top for v in line]  # so that no large total rounds the logarithm of a sum away
    total = _logsumexp(B, shifted)
    return [v - total for v in shifted]


def _log_softmax_pullback(B: Reference, g: Line, out: Line) -> Line:
    total = sum(g)
    return [a - B.scalars.functions["exp"](b) * total for a, b in zip(g, out, strict=True)]


def _vector_norm(B: Reference, line: Line) -> Number:
    parts = [part for v in line for part in (v.real, v.imag)]
    if B.digits is None:
        return math.nan if any(p != p for p in parts) else math.hypot(*parts)  # which is inf of inf and nan
    return B.scalars.functions["sqrt"](sum([part**2 for part in parts], B.scalars.real_type(0)))


def _softmax_cross_entropy(B: Reference, x: Values, labels: Values) -> Line:
    lines = groups(x.shape, (len(x.shape) - 1,))
    out = []
    for line, label in zip(lines, labels.values, strict=True):
        if not 0 <= label < len(line):
            raise errors.OutOfRangeError(f"cross entropy: target {label}, but the logits have {len(line)} classes")
        out.append(-_log_softmax(B, [x.values[p] for p in line])[label])
    return out


IMPLEMENTATIONS: dict[str, Callable[..., Any]] = {
    "sum": _reduction(lambda B, line: sum(line)),
    "prod": _reduction(lambda B, line: math.prod(line)),
    "max": _reduction(_largest),
    "min": _reduction(_smallest),
    "any": _reduction(lambda B, line: any(line)),
    "all": _reduction(lambda B, line: all(line)),
    "argmax": _reduction(lambda B, line: _first_of(B, line, _largest(B, line))),
    "argmin": _reduction(lambda B, line: _first_of(B, line, _smallest(B, line))),
    "logsumexp": _reduction(_logsumexp),
    "vector_norm": _reduction(_vector_norm),
    "cumulative_sum": linewise(lambda B, line: list(itertools.accumulate(line))),
    "cumulative_prod": linewise(lambda B, line: list(itertools.accumulate(line, lambda x, y: x * y))),
    "logcumsumexp": linewise(lambda B, line: list(itertools.accumulate(line, B.scalars.logaddexp))),
    "softmax": linewise(_softmax),
    "softmax_pullback": linewise(_softmax_pullback),
    "log_softmax": linewise(_log_softmax),
    "log_softmax_pullback": linewise(_log_softmax_pullback),
    "softmax_cross_entropy": _softmax_cross_entropy,
}
