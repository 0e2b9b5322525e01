"""Sizes that stand for several integers: what shape rules and keys do with them, who know nothing else of them.

`ad.compile` records graphs for any size. There a size is an object whose class is `int` to `isinstance`, and whose
operators give such objects again; who needs the number gets it, and the graph then serves for this size alone.
"""

from __future__ import annotations

import math
import operator
from typing import Any

LATER: set[type] = set()  # classes of numbers that stand for others, which are looked at when those are known


def stands(n: Any) -> bool:
    """Whether it is such a size, or a number made of one."""
    return type(n) in LATER


def square_root(n: Any) -> Any:
    """The root of a number; of such a size one that stands for as many numbers."""
    return n.sqrt() if type(n) in LATER else math.sqrt(n)


def as_recorded(n: Any) -> Any:
    """The number of such a size in the recording, for what changes no result: estimates of work, say."""
    return n if type(n) in (int, float) else getattr(n, "value", n)


class Places:
    """A range whose bounds are sizes that stand for several integers; to `isinstance` it is a range."""

    size: Any
    start: Any
    step: Any
    stop: Any

    __slots__ = ("size", "start", "step", "stop")

    def __init__(self, start: Any, stop: Any, step: Any, size: Any) -> None:
        self.start, self.stop, self.step, self.size = start, stop, step, size

    @property
    def __class__(self) -> Any:
        return range

    @__class__.setter
    def __class__(self, value: Any) -> None:
        raise TypeError("places have the class of a range")

    def known(self) -> range:
        return range(self.start, self.stop, self.step)

    def __bool__(self) -> bool:
        return bool(self.size > 0)

    def __len__(self) -> int:
        return int(self.size)

    def __iter__(self) -> Any:
        return iter(self.known())

    def __getitem__(self, key: Any) -> Any:
        return self.known()[key]

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, range):
            return False
        return bool(self.start == other.start and self.stop == other.stop and self.step == other.step)

    def __hash__(self) -> int:
        return hash((self.start, self.stop, self.step))


def places_along(entry: slice, size: Any) -> Any:
    """The places of a slice along an axis."""
    start, stop, step = entry.start, entry.stop, entry.step
    known = (start is None or type(start) is int) and (stop is None or type(stop) is int)
    if known and type(size) is int and (step is None or type(step) is int):
        return range(size)[entry]
    start, stop, step = [n if n is None or isinstance(n, int) else operator.index(n) for n in (start, stop, step)]
    step = 1 if step is None else step
    if step < 0 and start is None and stop is None:
        return Places(size - 1, -1, step, -(-size // -step))
    if step == 0:
        return range(size)[entry]  # raises
    first, last = (0, size) if step > 0 else (-1, size - 1)

    def inside(place: Any, default: Any) -> Any:
        if place is None:
            return default
        if place < 0:
            place = place + size
        return first if place < 0 else min(place, last)

    start, stop = (inside(start, 0), inside(stop, size)) if step > 0 else (inside(start, last), inside(stop, -1))
    there = start < stop if step > 0 else stop < start
    return Places(start, stop, step, -((start - stop) // step)) if there else range(0)


def count_of(places: Any) -> int:
    """How many places there are, without asking which number a size is."""
    return places.size if type(places) is Places else len(places)
