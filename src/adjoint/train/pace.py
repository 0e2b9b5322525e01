"""How fast a training is, and how much of it is left."""

from __future__ import annotations

import math
import time
from collections import deque
from collections.abc import Callable

from adjoint.train.run import Run


class Pace:
    """The speed of a run and the time that is left, by the latter half of what it has done since `start`.

    That half is long enough not to flicker, and follows a machine that gets slower. Validation is part of it.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._start = clock()
        self._marks = deque([(self._start, 0, 0)])  # times, steps and examples

    def start(self, run: Run) -> None:
        """Begin to count."""
        self._start = self._clock()
        self._marks = deque([(self._start, run.step, run.examples)])

    def mark(self, run: Run) -> None:
        """Look at the clock: at every step, or as often as wanted."""
        now = self._clock()
        elapsed = now - self._start
        if len(self._marks) > 1 and now - self._marks[-2][0] < max(0.2, elapsed / 200):
            self._marks.pop()  # the last one moves on
        self._marks.append((now, run.step, run.examples))
        while len(self._marks) > 2 and self._marks[1][0] <= self._start + elapsed / 2:
            self._marks.popleft()

    def _per_second(self, column: int) -> float:
        first, last = self._marks[0], self._marks[-1]
        return (last[column] - first[column]) / (last[0] - first[0]) if last[0] > first[0] else math.nan

    @property
    def steps(self) -> float:
        """Steps per second; nan before the first."""
        return self._per_second(1)

    @property
    def examples(self) -> float:
        """Examples per second; nan before the first."""
        return self._per_second(2)

    def left(self, run: Run) -> float:
        """Seconds to the end; nan where nobody can know."""
        whole, speed = total(run), self.steps
        return (whole - run.step) / speed if whole is not None and speed > 0 else math.nan


def total(run: Run) -> int | None:
    """Steps of the whole run, from an epoch's if the loader has no length; None where nobody knows."""
    if run.steps_per_epoch is not None:
        return run.epochs * run.steps_per_epoch
    return round(run.epochs * run.history.rows[-1]["step"] / run.epoch) if run.epoch and run.history.rows else None
