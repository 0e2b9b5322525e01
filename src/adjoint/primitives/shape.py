"""Primitives that move elements and compute nothing."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from adjoint import errors
from adjoint.primitives.table import STRUCTURAL, Shape, declare, same_dtype, same_shape


def _reshape_shape(old: Shape, *, shape: Shape) -> Shape:
    if math.prod(old) != math.prod(shape):
        raise errors.ShapeError(
            f"reshape: {math.prod(old)} elements of shape {old} do not fill shape {shape} of {math.prod(shape)}"
        )
    return shape


def _broadcast_to_shape(old: Shape, *, shape: Shape) -> Shape:
    if len(old) > len(shape) or any(n not in (1, m) for n, m in zip(old[::-1], shape[::-1], strict=False)):
        raise errors.ShapeError(f"broadcast_to: shape {old} does not broadcast to {shape}")
    return shape


def _expand_shape(shape: Shape, *, axis: tuple[int, ...]) -> Shape:
    sizes = iter(shape)
    return tuple(1 if i in axis else next(sizes) for i in range(len(shape) + len(axis)))


def _squeeze_shape(shape: Shape, *, axis: tuple[int, ...]) -> Shape:
    for i in axis:
        if shape[i] != 1:
            raise errors.ShapeError(f"squeeze: axis {i} of shape {shape} has size {shape[i]}, not 1")
    return tuple(n for i, n in enumerate(shape) if i not in axis)


def _concat_shape(*shapes: Shape, axis: int) -> Shape:
    first = shapes[0]
    for shape in shapes:
        if len(shape) != len(first) or any(
            n != m for i, (n, m) in enumerate(zip(shape, first, strict=True)) if i != axis
        ):
            raise errors.ShapeError(
                f"concat along axis {axis}: shapes {first} and {shape} differ elsewhere; all other axes must agree"
            )
    return (*first[:axis], sum(shape[axis] for shape in shapes), *first[axis + 1 :])


def _pad_shape(shape: Shape, *, widths: Sequence[tuple[int, int]], value: Any) -> Shape:
    return tuple(n + before + after for n, (before, after) in zip(shape, widths, strict=True))


declare("reshape", STRUCTURAL, "x", "shape", shape=_reshape_shape, dtype=same_dtype)
declare("broadcast_to", STRUCTURAL, "x", "shape", shape=_broadcast_to_shape, dtype=same_dtype)
declare("permute_dims", STRUCTURAL, "x", "axes", shape=lambda s, *, axes: tuple(s[i] for i in axes), dtype=same_dtype)
declare("expand_dims", STRUCTURAL, "x", "axis", shape=_expand_shape, dtype=same_dtype)
declare("squeeze", STRUCTURAL, "x", "axis", shape=_squeeze_shape, dtype=same_dtype)
declare("concat", STRUCTURAL, "*xs", "axis", shape=_concat_shape, dtype=same_dtype)
declare("flip", STRUCTURAL, "x", "axis", shape=same_shape, dtype=same_dtype)
declare("roll", STRUCTURAL, "x", "shift axis", shape=same_shape, dtype=same_dtype)  # by less than the axis' size
declare("pad", STRUCTURAL, "x", "widths value", shape=_pad_shape, dtype=same_dtype)
declare("tril triu", STRUCTURAL, "x", "k", shape=same_shape, dtype=same_dtype)


def _windows_shape(shape: Shape, *, axis: int, size: int) -> Shape:
    if not 1 <= size <= shape[axis]:
        raise errors.ShapeError(
            f"windows of {size} elements do not fit axis {axis} of shape {shape}, which has {shape[axis]}"
        )
    return (*shape[:axis], shape[axis] - size + 1, *shape[axis + 1 :], size)


# all runs of so many elements along an axis, which become a new last axis
declare("windows", STRUCTURAL, "x", "axis size", shape=_windows_shape, dtype=same_dtype)
