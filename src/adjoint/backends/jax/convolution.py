"""Convolutions, whose transposes JAX finds."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from adjoint.backend import Array
from adjoint.primitives import Shape

if TYPE_CHECKING:
    from adjoint.backends.jax import JAX


def _fitted(
    size: Shape, kernel: Shape, counts: Shape, stride: Shape, padding: Any, dilation: Shape
) -> list[tuple[int, int]]:
    """The padding with which there are just so many places: what they do not reach is cut off."""
    return [
        (before, (count - 1) * s + d * (k - 1) + 1 - n - before)
        for n, k, count, s, (before, _), d in zip(size, kernel, counts, stride, padding, dilation, strict=True)
    ]


def _conv(B: JAX, x: Array, weight: Array, *, stride: Shape, padding: Any, dilation: Shape, groups: int) -> Array:
    return B.jax.lax.conv_general_dilated(x, weight, stride, padding, rhs_dilation=dilation, feature_group_count=groups)


def _transposed(B: JAX, f: Callable[[Array], Array], g: Array, shape: Shape) -> Array:
    """The transpose of a linear function of an array of this shape, at g."""
    (out,) = B.jax.linear_transpose(f, B.jax.ShapeDtypeStruct(shape, g.dtype))(g)
    return out


def _conv_input(
    B: JAX, g: Array, weight: Array, *, stride: Shape, padding: Any, dilation: Shape, groups: int, size: Shape
) -> Array:
    padding = _fitted(size, weight.shape[2:], g.shape[2:], stride, padding, dilation)
    how = {"stride": stride, "padding": padding, "dilation": dilation, "groups": groups}
    return _transposed(B, lambda x: _conv(B, x, weight, **how), g, (g.shape[0], weight.shape[1] * groups, *size))


def _conv_weight(
    B: JAX, x: Array, g: Array, *, stride: Shape, padding: Any, dilation: Shape, groups: int, size: Shape
) -> Array:
    padding = _fitted(x.shape[2:], size, g.shape[2:], stride, padding, dilation)
    how = {"stride": stride, "padding": padding, "dilation": dilation, "groups": groups}
    return _transposed(B, lambda w: _conv(B, x, w, **how), g, (g.shape[1], x.shape[1] // groups, *size))


def _convolve(B: JAX, a: Array, v: Array, *, full: bool) -> Array:
    """A group of channels for each line of the stacks."""
    stack = np.broadcast_shapes(a.shape[:-1], v.shape[:-1])
    if not math.prod(stack):
        n, m = a.shape[-1], v.shape[-1]
        return B.xp.zeros((*stack, n + m - 1 if full else n - m + 1), dtype=a.dtype)
    a, v = (B.xp.broadcast_to(x, (*stack, x.shape[-1])).reshape(math.prod(stack), x.shape[-1]) for x in (a, v))
    around = v.shape[-1] - 1 if full else 0
    out = B.jax.lax.conv_general_dilated(
        a[None], v[:, None, ::-1], (1,), [(around, around)], feature_group_count=a.shape[0]
    )
    return out.reshape(*stack, out.shape[-1])


IMPLEMENTATIONS: dict[str, Callable[..., Any]] = {
    "conv": _conv,
    "conv_input": _conv_input,
    "conv_weight": _conv_weight,
    "convolve": _convolve,
}
