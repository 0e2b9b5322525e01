"""Orders, and places in them."""

from __future__ import annotations

import bisect
import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from adjoint.backends.reference.places import Line, Values, groups
from adjoint.backends.reference.reduction import linewise

if TYPE_CHECKING:
    from adjoint.backends.reference import Reference


def _order(B: Reference, line: Line, *, descending: bool) -> Line:
    """The places of the sorted line; equal elements keep their order."""
    return sorted(range(len(line)), key=lambda i: B.scalars.order(line[i]), reverse=descending)


def _sort(B: Reference, line: Line, *, descending: bool) -> Line:
    return [line[i] for i in _order(B, line, descending=descending)]


def _topk(B: Reference, x: Values, *, k: int, axis: int, largest: bool) -> tuple[Line, Line]:
    short = (*x.shape[:axis], k, *x.shape[axis + 1 :])
    values: Line = [0] * math.prod(short)
    places: Line = [0] * math.prod(short)
    for source, target in zip(groups(x.shape, (axis,)), groups(short, (axis,)), strict=False):
        line = [x.values[p] for p in source]
        for p, i in zip(target, _order(B, line, descending=largest), strict=False):
            values[p], places[p] = line[i], i
    return values, places


def _searchsorted(B: Reference, x: Values, values: Values, *, side: str) -> Line:
    find = bisect.bisect_left if side == "left" else bisect.bisect_right
    lines = [[x.values[p] for p in group] for group in groups(x.shape, (len(x.shape) - 1,))]
    return [
        find(line, B.scalars.order(values.values[p]), key=B.scalars.order)
        for line, group in zip(lines, groups(values.shape, (len(x.shape) - 1,)), strict=True)
        for p in group
    ]


IMPLEMENTATIONS: dict[str, Callable[..., Any]] = {
    "sort": linewise(_sort),
    "argsort": linewise(_order),
    "topk": _topk,
    "searchsorted": _searchsorted,
}
