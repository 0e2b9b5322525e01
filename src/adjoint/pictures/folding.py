"""Which boxes of a large graph stand together as one: turns of a loop, repeated layers, lines, and what is left."""

from __future__ import annotations

import dataclasses
import itertools
import re
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from adjoint.pictures.boxes import Box, Inside

SMALL = 40  # graphs of up to so many boxes are shown whole
MOST = 120  # boxes of a view
_DIGITS = re.compile(r"\d+")
_LEAST = 6  # boxes that are worth a repetition


@dataclasses.dataclass(eq=False)
class Group:
    """Boxes in a row that stand together: `parts` are boxes and groups.

    `times` is how often what is in it is repeated; its parts are then the repetitions.
    """

    number: int
    parts: list[Part]
    times: int = 0
    first: int = 0  # the numbers of its boxes: from the first to the one before the last
    last: int = 0
    name: str = ""  # of the inside of a loop or a choice


Part = Box | Group


def folded(boxes: Sequence[Box], inside: Sequence[Inside] = ()) -> Group:
    """All boxes as a tree of groups, none of which has more than `MOST` parts; boxes are in order and numbered so.

    What is read before the next is made stands in a row, as in the program, so that a graph of groups has no cycles.
    """
    return _folded(boxes, list(inside), itertools.count())


def _folded(boxes: Sequence[Box], inside: list[Inside], counter: itertools.count[int]) -> Group:
    parts: list[Part] = []
    waiting = list(boxes)
    while waiting:
        if inside and waiting[0].number == inside[0].first:
            first, last, name = inside[0]
            count = sum(x.last <= last for x in inside)  # it, and those in it
            group = _folded(waiting[: last - first], inside[1:count], counter)
            group.name = name
            parts.append(group)
            waiting, inside = waiting[last - first :], inside[count:]
        else:
            parts.append(waiting.pop(0))
    if len(parts) > SMALL:
        kinds: dict[Any, int] = {}
        ids = np.array([kinds.setdefault(_likeness(part), len(kinds)) for part in parts])
        parts = _by_line(_repeated(parts, ids, counter), counter)
    return _group(_chunked(parts, counter), counter)


def _likeness(part: Part) -> Any:
    """What repetitions of a box have in common: its line, or else its shape and its name without numbers."""
    if isinstance(part, Group):
        return part.name, part.last - part.first
    where = (part.line.file, part.line.line) if part.line else (part.shape, _DIGITS.sub("", part.label))
    return part.kind, part.name, where


def _group(parts: list[Part], counter: itertools.count[int], times: int = 0) -> Group:
    first, last = parts[0], parts[-1]
    start = first.number if isinstance(first, Box) else first.first
    stop = last.number + 1 if isinstance(last, Box) else last.last
    return Group(next(counter), parts, times, start, stop)


# --- repetitions -----------------------------------------------------------------------------------


def _repeated(parts: list[Part], ids: np.ndarray[Any, Any], counter: itertools.count[int]) -> list[Part]:
    """The parts with what is repeated in a row as one group, also within each repetition."""
    found = _longest(ids)
    if found is None:
        return parts
    start, period, times = found
    stop = start + period * times
    before = _repeated(parts[:start], ids[:start], counter)
    after = _repeated(parts[stop:], ids[stop:], counter)
    if period == 1:
        return [*before, _group(_chunked(parts[start:stop], counter), counter, times), *after]
    turns: list[Part] = []
    for at in range(start, stop, period):
        inside = _chunked(_repeated(parts[at : at + period], ids[at : at + period], counter), counter)
        turns.append(_group(inside, counter))
    return [*before, _group(_chunked(turns, counter), counter, times), *after]


def _longest(ids: np.ndarray[Any, Any]) -> tuple[int, int, int] | None:
    """Where the longest repetition starts, its period and how many times it comes; of several the shortest period."""
    best, found = _LEAST - 1, None
    for period in range(1, len(ids) // 2 + 1):
        if not all(_meets(ids, period, period * k // 6) for k in range(6)):
            continue
        same = np.concatenate([[0], ids[:-period] == ids[period:], [0]])
        edges = np.flatnonzero(np.diff(same))
        if not len(edges):
            continue
        lengths = edges[1::2] - edges[::2]
        k = int(lengths.argmax())
        times = int(lengths[k]) // period + 1
        if times > 1 and times * period > best:
            best, found = times * period, (int(edges[2 * k]), period, times)
        if best > len(ids) - period:
            break
    return found


def _meets(ids: np.ndarray[Any, Any], period: int, place: int) -> bool:
    """Whether any number is met again a period later, of those at this place of a period: a repetition has some."""
    return bool((ids[place:-period:period] == ids[place + period :: period]).any())


# --- lines, and what is left -------------------------------------------------------------------------


def _by_line(parts: list[Part], counter: itertools.count[int]) -> list[Part]:
    """Where there are too many parts: neighbours of one source line, and then of one file, as groups."""
    keys: list[Callable[[Part], Any]] = [
        lambda part: (part.line.file, part.line.line) if isinstance(part, Box) and part.line else None,
        lambda part: part.line.file if isinstance(part, Box) and part.line else None,
    ]
    for key in keys:
        if len(parts) <= MOST:
            break
        joined: list[Part] = []
        for where, run in itertools.groupby(parts, key):
            row = list(run)
            joined += row if where is None or len(row) == 1 else [_group(_chunked(row, counter), counter)]
        parts = joined
    return parts


def _chunked(parts: list[Part], counter: itertools.count[int]) -> list[Part]:
    """The parts, cut into equal groups where they are more than a view has."""
    while len(parts) > MOST:
        pieces = min(MOST, -(-len(parts) // MOST))
        bounds = np.linspace(0, len(parts), pieces + 1).astype(int).tolist()
        parts = [_group(parts[a:b], counter) for a, b in itertools.pairwise(bounds)]
        if any(len(part.parts) > MOST for part in parts if isinstance(part, Group)):
            for part in parts:
                assert isinstance(part, Group)
                part.parts = _chunked(part.parts, counter)
    return parts
