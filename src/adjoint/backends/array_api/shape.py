"""What moves elements as they are."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from adjoint.backend import Array
from adjoint.backends.array_api.scatter import at_set


def _expand_dims(xp: Any, x: Array, *, axis: tuple[int, ...]) -> Array:
    for i in sorted(axis):
        x = xp.expand_dims(x, axis=i)
    return x


def pad(xp: Any, x: Array, *, widths: tuple[tuple[int, int], ...], value: Any) -> Array:
    shape = tuple([n + before + after for n, (before, after) in zip(x.shape, widths, strict=True)])
    inside = tuple([slice(before, before + n) for n, (before, _) in zip(x.shape, widths, strict=True)])
    return at_set(xp.full(shape, value, dtype=x.dtype), inside, x)


# called with the namespace
IMPLEMENTATIONS: dict[str, Callable[..., Any]] = {
    "expand_dims": _expand_dims,
    "concat": lambda xp, *xs, axis: xp.concat(xs, axis=axis),
    "pad": pad,
}
