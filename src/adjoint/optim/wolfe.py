"""A line search: how far to go along a direction. J. Nocedal, S. Wright (2006), algorithms 3.5 and 3.6.

The next length to try is the minimum of a cubic, and the tests for too little progress are those of M. Schmidt's
minFunc, as in PyTorch's L-BFGS, so that both try the same lengths.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np


class Point(NamedTuple):
    """A point on the line: how far it is, and the function, its gradient and its derivative along the line there."""

    length: np.float64
    loss: np.float64
    gradient: Any
    slope: np.float64


def strong_wolfe(
    at: Callable[[np.float64], Point], start: Point, first: float, *, most: int, change: float, c1: float, c2: float
) -> tuple[Point, int]:
    """A point with enough descent (by c1) and a slope flat enough (by c2), and how many points were tried.

    `first` is the length to try first. It ends after `most` more points, or when an interval is shorter than `change`,
    with the lowest point it has.
    """

    def too_high(point: Point) -> bool:
        return bool(point.loss > start.loss + c1 * point.length * start.slope)

    def flat(point: Point) -> bool:
        return bool(abs(point.slope) <= -c2 * start.slope)

    # go on until there is an interval with such a point in it
    before, point, tried = start, at(np.float64(first)), 0
    while tried < most:
        if too_high(point) or (tried > 1 and point.loss >= before.loss):
            break
        if flat(point):
            return point, tried + 1
        if point.slope >= 0:
            break
        step = point.length - before.length
        length = _lowest_of_cubic(before, point, point.length + 0.01 * step, 10 * point.length)
        before, point, tried = point, at(length), tried + 1
    ends = [before if tried < most else start, point]

    # make it smaller
    low = 0 if ends[0].loss <= ends[1].loss else 1
    stuck = False
    while tried < most and not abs(ends[1].length - ends[0].length) < change:
        left, right = sorted([end.length for end in ends])
        length, stuck = _inside(_lowest_of_cubic(ends[0], ends[1], left, right), left, right, stuck)
        point, tried = at(length), tried + 1
        if too_high(point) or point.loss >= ends[low].loss:
            ends[1 - low] = point
            low = 0 if ends[0].loss <= ends[1].loss else 1
            continue
        if flat(point):
            return point, tried + 1
        if point.slope * (ends[1 - low].length - ends[low].length) >= 0:
            ends[1 - low] = ends[low]
        ends[low] = point
    return ends[low], tried + 1


def _lowest_of_cubic(x: Point, y: Point, least: np.float64, most: np.float64) -> np.float64:
    """Where the cubic with these values and slopes is lowest, within bounds; their middle if it has no minimum."""
    if x.length > y.length:
        x, y = y, x
    with np.errstate(all="ignore"):  # of points that are equal, or not finite
        d = x.slope + y.slope - 3 * (x.loss - y.loss) / (x.length - y.length)
        square = d * d - x.slope * y.slope
        if not square >= 0:
            return (least + most) / 2
        root = np.sqrt(square)
        found: np.float64 = y.length - (y.length - x.length) * ((y.slope + root - d) / (y.slope - x.slope + 2 * root))
    return min(max(found, least), most)


def _inside(length: np.float64, left: np.float64, right: np.float64, stuck: bool) -> tuple[np.float64, bool]:
    """The length to try in an interval: away from its ends, if it was near one the last time too, or is one.

    Also whether it is near one.
    """
    margin = 0.1 * (right - left)
    if not min(right - length, length - left) < margin:
        return length, False
    if not (stuck or length >= right or length <= left):
        return length, True
    return (right - margin if abs(length - right) < abs(length - left) else left + margin), False
