"""What puts elements in order, with places as int64."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from adjoint.backend import Array
from adjoint.backends import needed


def _argsort(xp: Any, x: Array, *, axis: int, descending: bool) -> Array:
    return xp.astype(xp.argsort(x, axis=axis, descending=descending, stable=True), xp.int64, copy=False)


def _topk(xp: Any, x: Array, *, k: int, axis: int, largest: bool) -> tuple[Array, Array]:
    order = _argsort(xp, x, axis=axis, descending=largest)
    places = order[(*[slice(None)] * axis, slice(0, k), ...)]
    return xp.take_along_axis(x, places, axis=axis), places


def _searchsorted(xp: Any, x: Array, values: Array, *, side: str) -> Array:
    if x.ndim == 1:
        return xp.astype(xp.searchsorted(x, values, side=side), xp.int64, copy=False)
    found = needed("array_api_extra", "array-api").searchsorted(x, values, side=side)
    return xp.astype(found, xp.int64, copy=False)


# called with the namespace
IMPLEMENTATIONS: dict[str, Callable[..., Any]] = {
    "argsort": _argsort,
    "topk": _topk,
    "searchsorted": _searchsorted,
}
