"""Batching: how a primitive runs for all examples at once, where its kind does not say it, and what such rules share.

    rule(B, primitive, values, flags, parameters)

gives the result with the axis of examples in front, a tuple of them where there are several. `flags` says which
values have that axis; at least one has. A value without it is the same for every example, or a Python scalar.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from adjoint.primitives import Primitive, Spec, result_spec

BatchingRule = Callable[[Any, Primitive, list[Any], list[bool], dict[str, Any]], Any]


def rank_of(value: Any, batched: bool) -> int:
    return (len(value.shape) if hasattr(value, "shape") else 0) - batched


def aligned(B: Any, value: Any, batched: bool, rank: int, tail: int = 0) -> Any:
    """A batched array of one example's rank `rank`: ones go between the examples' axis and the others.

    The last `tail` axes do not count.
    """
    missing = rank - (rank_of(value, batched) - tail)
    if not batched or missing <= 0:
        return value
    return B.reshape(value, shape=(value.shape[0], *[1] * missing, *value.shape[1:]))


def with_axis(B: Any, value: Any, batched: bool, size: int) -> Any:
    """The array with an axis of examples, whether or not they differ."""
    if batched:
        return value
    shape = tuple(value.shape)
    return B.broadcast_to(B.expand_dims(value, axis=(0,)), shape=(size, *shape))


def count_of(values: Sequence[Any], flags: Sequence[bool]) -> int:
    return next(v.shape[0] for v, batched in zip(values, flags, strict=True) if batched)  # type: ignore[no-any-return]


def all_with_axis(B: Any, values: Sequence[Any], flags: Sequence[bool]) -> list[Any]:
    size = count_of(values, flags)
    return [with_axis(B, v, batched, size) for v, batched in zip(values, flags, strict=True)]


def _shifted(parameters: dict[str, Any]) -> dict[str, Any]:
    """The parameters of a call for all examples: axes count one more."""
    shifted = dict(parameters)
    if "axis" in shifted:
        axis = shifted["axis"]  # those that count from the end stay, users' primitives may be given such
        shifted["axis"] = axis + (axis >= 0) if isinstance(axis, int) else tuple(i + (i >= 0) for i in axis)
    return shifted


def along_axes(B: Any, primitive: Primitive, values: list[Any], flags: list[bool], parameters: dict[str, Any]) -> Any:
    """What works along given axes, and needs all its operands with the axis of examples."""
    arrays = values if all(flags) else all_with_axis(B, values, flags)
    return B[primitive](*arrays, **_shifted(parameters))


def in_stacks(B: Any, primitive: Primitive, values: list[Any], flags: list[bool], parameters: dict[str, Any]) -> Any:
    """Linear algebra: whatever stands before the matrices is a stack already."""
    rank = max(rank_of(v, batched) - 2 for v, batched in zip(values, flags, strict=True))
    arrays = [aligned(B, v, batched, rank, 2) for v, batched in zip(values, flags, strict=True)]
    return B[primitive](*arrays, **parameters)


def each_alone(B: Any, primitive: Primitive, values: list[Any], flags: list[bool], parameters: dict[str, Any]) -> Any:
    """What is right for every primitive of one result: one example after the other."""
    size = count_of(values, flags)
    if not size:
        specs = [
            Spec(s, B.dtype_of(v)) if hasattr(v, "shape") else v
            for v, s in zip(values, one_of(values, flags), strict=True)
        ]
        blank = result_spec(primitive, specs, parameters)
        return B.full(shape=(0, *blank.shape), value=0, dtype=blank.dtype)
    answers = []
    for i in range(size):
        operands = [
            B.index(v, key=(i, *[slice(0, n, 1) for n in v.shape[1:]])) if batched else v
            for v, batched in zip(values, flags, strict=True)
        ]
        answers.append(B.expand_dims(B[primitive](*operands, **parameters), axis=(0,)))
    return B.concat(*answers, axis=0)


def one_of(values: Sequence[Any], flags: Sequence[bool]) -> list[tuple[int, ...]]:
    """The shapes of one example; numbers have none."""
    return [tuple(getattr(v, "shape", ()))[batched:] for v, batched in zip(values, flags, strict=True)]
