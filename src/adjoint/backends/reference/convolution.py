"""Convolutions."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from adjoint.backends.reference.places import Line, Values, broadcast, flat, places
from adjoint.primitives import TABLE, Shape, broadcast_shapes

if TYPE_CHECKING:
    from adjoint.backends.reference import Reference


def _taps(
    x: Shape, weight: Shape, out: Shape, *, stride: Any, padding: Any, dilation: Any, groups: int
) -> Iterator[tuple[int, int, int]]:
    """What a convolution multiplies: list positions in x, in the weight, and in the result that gets the product."""
    for n, o, *place in places(out):
        for c, *offset in places(weight[1:]):
            channel = o // (weight[0] // groups) * weight[1] + c
            at = [
                i * s + j * d - p for i, j, s, d, (p, _) in zip(place, offset, stride, dilation, padding, strict=True)
            ]
            if all(0 <= i < size for i, size in zip(at, x[2:], strict=True)):
                yield (flat(x, (n, channel, *at)), flat(weight, (o, c, *offset)), flat(out, (n, o, *place)))


def _conv(B: Reference, x: Values, weight: Values, **how: Any) -> Line:
    shape = TABLE["conv"].shape(x.shape, weight.shape, **how)
    out: Line = [0] * math.prod(shape)
    for a, b, c in _taps(x.shape, weight.shape, shape, **how):
        out[c] += x.values[a] * weight.values[b]
    return out


def _conv_input(B: Reference, g: Values, weight: Values, *, size: Shape, groups: int, **how: Any) -> Line:
    shape = (g.shape[0], weight.shape[1] * groups, *size)
    x: Line = [0] * math.prod(shape)
    for a, b, c in _taps(shape, weight.shape, g.shape, groups=groups, **how):
        x[a] += g.values[c] * weight.values[b]
    return x


def _conv_weight(B: Reference, x: Values, g: Values, *, size: Shape, groups: int, **how: Any) -> Line:
    shape = (g.shape[1], x.shape[1] // groups, *size)
    weight: Line = [0] * math.prod(shape)
    for a, b, c in _taps(x.shape, shape, g.shape, groups=groups, **how):
        weight[b] += x.values[a] * g.values[c]
    return weight


def _convolve(B: Reference, a: Values, v: Values, *, full: bool) -> Line:
    batch = broadcast_shapes(a.shape[:-1], v.shape[:-1])
    n, m = a.shape[-1], v.shape[-1]
    a, v = broadcast(a, (*batch, n)), broadcast(v, (*batch, m))
    places = range(n + m - 1) if full else range(m - 1, n)
    out = []
    for number in range(math.prod(batch)):
        left, right = a.values[number * n : (number + 1) * n], v.values[number * m : (number + 1) * m]
        out += [sum(left[k - j] * right[j] for j in range(m) if 0 <= k - j < n) for k in places]
    return out


IMPLEMENTATIONS: dict[str, Callable[..., Any]] = {
    "convolve": _convolve,
    "conv": _conv,
    "conv_input": _conv_input,
    "conv_weight": _conv_weight,
}
