"""Searching in stacks of sorted lines, for libraries that search in one line at a time."""

from __future__ import annotations

from typing import Any

from adjoint.backend import Array


def _rank(xp: Any, x: Array) -> Array:
    """The place that each element has once its line is sorted; equal elements keep their order."""
    return xp.argsort(xp.argsort(x, axis=-1, stable=True), axis=-1, stable=True)


def searchsorted_lines(xp: Any, x: Array, values: Array, *, side: str) -> Array:
    """Where each line of `values` goes in the line of `x` beside it: its rank among both, less that among its own."""
    if side == "left":  # values first: they come before what equals them
        ranks = _rank(xp, xp.concat([values, x], axis=-1))[..., : values.shape[-1]]
    else:
        ranks = _rank(xp, xp.concat([x, values], axis=-1))[..., x.shape[-1] :]
    return xp.astype(ranks - _rank(xp, values), xp.int64)
