"""Rates as functions of the number of steps done, which is 0 at the first. Numbers, or what they are compiled to.

>>> import adjoint as ad
>>> rate = ad.optim.joined([ad.optim.linear(0.0, 0.1, 5), ad.optim.cosine(0.1, 10)], [5])
>>> [round(rate(step), 3) for step in (0, 2, 5, 10, 15)]
[0.0, 0.04, 0.1, 0.05, 0.0]
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from adjoint import errors
from adjoint.functions.arguments import as_flag, as_integer, as_number, check_callable, is_array, items
from adjoint.functions.elementwise import cos, floor, maximum, minimum
from adjoint.optim.base import chosen
from adjoint.optim.settings import Settings, fraction, integer, not_negative, number, one_of, setting
from adjoint.tensor import Tensor

Schedule = Callable[[Any], Any]


def constant(rate: float) -> Schedule:
    """The same rate at every step."""
    rate = number(rate, "constant", "the rate")
    return lambda step: rate


def linear(start: float, end: float, steps: int) -> Schedule:
    """From one rate to another in equal parts, and that one from then on. Raises ArgumentError unless steps > 0."""
    return polynomial(start, end, steps, 1.0)


def polynomial(start: float, end: float, steps: int, power: float = 1.0) -> Schedule:
    """end + (start - end) (1 - t / steps)^power, and `end` from then on."""
    start, end, power = [number(v, "polynomial", "a rate or power") for v in (start, end, power)]
    count = _count(steps, "polynomial")
    return lambda step: end + (start - end) * (1 - _least(step, count) / count) ** power


def exponential(start: float, factor: float) -> Schedule:
    """start factor^t."""
    start, factor = [number(v, "exponential", "a rate or factor") for v in (start, factor)]
    return lambda step: start * factor**step


def stairs(start: float, every: int | Sequence[int], factor: float = 0.1) -> Schedule:
    """start, times a factor after every `every` steps, or at each step of an increasing list of them.

    PyTorch's StepLR and MultiStepLR. Raises ArgumentError for steps below 1, or in another order.

    >>> import adjoint as ad
    >>> rate = ad.optim.stairs(1.0, [2, 3], 0.5)
    >>> [rate(step) for step in range(5)]
    [1.0, 1.0, 0.5, 0.25, 0.25]
    """
    start, factor = [number(v, "stairs", "a rate or factor") for v in (start, factor)]
    if (given := items(every)) is None:
        count = _count(every, "stairs")
        return lambda step: start * factor ** _floor(step / count)
    at = [_count(step, "stairs") for step in given]
    if at != sorted(set(at)):
        raise errors.ArgumentError(f"stairs: the steps are in increasing order, received {errors.shown(at)}")
    return lambda step: start * factor ** sum([chosen(step >= begin, 1, 0) for begin in at])


def cosine(start: float, steps: int, end: float = 0.0, *, restarts: bool = False) -> Schedule:
    """From `start` to `end` along half a cosine. I. Loshchilov, F. Hutter (2017). With `restarts` again and again."""
    start, end = [number(v, "cosine", "a rate") for v in (start, end)]
    count, restarts = _count(steps, "cosine"), as_flag(restarts, "cosine", "restarts")

    def rate(step: Any) -> Any:
        t = step % count if restarts else _least(step, count)
        return end + (start - end) * (1 + _cos(math.pi * t / count)) / 2

    return rate


def noam(width: int, warmup: int, factor: float = 1.0) -> Schedule:
    """factor width^-1/2 min(t^-1/2, t warmup^-3/2) with t from 1. A. Vaswani et al. (2017), section 5.3."""
    size, count, factor = _count(width, "noam"), _count(warmup, "noam"), number(factor, "noam", "factor")
    return lambda step: factor * size**-0.5 * _least((step + 1) ** -0.5, (step + 1) * count**-1.5)


def one_cycle(peak: float, steps: int, *, rising: float = 0.3, first: float = 25.0, last: float = 1e4) -> Schedule:
    """From peak / first up to the peak in a part of the steps, then down to peak / (first last), along cosines.

    L. Smith, N. Topin (2018). Defaults are those of PyTorch's OneCycleLR.
    """
    peak, rising, first, last = [number(v, "one_cycle", "an argument") for v in (peak, rising, first, last)]
    count = _count(steps, "one_cycle")
    if not 0 < rising < 1:
        raise errors.ArgumentError(f"one_cycle: rising is a part of the steps, between 0 and 1, received {rising}")
    turn = rising * count - 1
    if turn <= 0:
        raise errors.ArgumentError(
            f"one_cycle: the rate rises for more than one step, and {rising} of {count} steps are not more; give more "
            f"steps, or a larger rising"
        )
    start, end = peak / first, peak / first / last

    def rate(step: Any) -> Any:
        up = start + (peak - start) * (1 - _cos(math.pi * step / turn)) / 2
        t = (_least(step, count - 1) - turn) / (count - 1 - turn)
        return chosen(step <= turn, up, end + (peak - end) * (1 + _cos(math.pi * t)) / 2)

    return rate


class PlateauState(NamedTuple):
    """The present rate, the best value so far, how many since were no better, and how many more do not count."""

    rate: float
    best: float
    bad: int
    waiting: int


@dataclasses.dataclass(frozen=True, kw_only=True)
class Plateau(Settings):
    """A rate that falls when a value, such as the loss on other data, stops improving.

    It is multiplied by `factor`, down to `min_lr`, after more than `patience` values that are no better than the best
    by `threshold`, a part of its size (`threshold_mode="rel"`) or a number ("abs"). Then `cooldown` values are not
    counted. With `mode="max"` larger values are better. Names and values are those of PyTorch's ReduceLROnPlateau.

    Raises ArgumentError for a factor of 1 or more, another mode, or numbers below 0.

    Examples
    --------
    >>> import adjoint as ad
    >>> plateau = ad.optim.Plateau(patience=1)
    >>> state = plateau.init(0.1)
    >>> for loss in (3.0, 2.0, 2.0, 2.0):
    ...     state = plateau.update(state, loss)  # and then optimizer.step(..., lr=state.rate)
    >>> round(state.rate, 3), state.best
    (0.01, 2.0)
    """

    mode: str = setting("min", one_of("min", "max"))
    factor: float = setting(0.1, fraction)
    patience: int = setting(10, integer(0))
    threshold: float = setting(1e-4, not_negative)
    threshold_mode: str = setting("rel", one_of("rel", "abs"))
    cooldown: int = setting(0, integer(0))
    min_lr: float = setting(0.0, not_negative)
    eps: float = setting(1e-8, not_negative)

    def init(self, rate: float) -> PlateauState:
        """The state at a first rate."""
        not_negative(rate, "Plateau.init", "the rate")
        return PlateauState(rate, math.inf if self.mode == "min" else -math.inf, 0, 0)

    def update(self, state: PlateauState, value: Any) -> PlateauState:
        """The state after one more value, a number or a tensor of one; nan is no better than anything.

        Raises ArgumentTypeError for a value that is no number, and for what is no state.
        """
        if not isinstance(state, PlateauState):
            raise errors.ArgumentTypeError(
                f"Plateau.update: the state is what init(rate) or the last update gave, received {errors.shown(state)}"
            )
        value = as_number(value.item() if is_array(value) and value.size == 1 else value, "Plateau.update", "the value")
        rate, best, bad, waiting = state
        best, bad = (value, 0) if self._is_better(value, best) else (best, bad + 1)
        if waiting:
            waiting, bad = waiting - 1, 0
        if bad > self.patience:
            lower = max(rate * self.factor, self.min_lr)
            rate, bad, waiting = lower if rate - lower > self.eps else rate, 0, self.cooldown
        return PlateauState(rate, best, bad, waiting)

    def _is_better(self, value: float, best: float) -> bool:
        margin = self.threshold * (abs(best) if self.threshold_mode == "rel" else 1.0) if math.isfinite(best) else 0.0
        return value < best - margin if self.mode == "min" else value > best + margin


def joined(schedules: Sequence[Schedule], boundaries: Sequence[int]) -> Schedule:
    """One schedule after the other; each starts from step 0 at its boundary.

    Raises ArgumentError unless there is a boundary between each two, in order.
    """
    given, between = items(schedules), items(boundaries)
    if given is None or between is None:
        wrong = schedules if given is None else boundaries
        raise errors.ArgumentTypeError(
            f"joined: schedules and boundaries are two lists, received {errors.shown(wrong)} for one"
        )
    if not given:
        raise errors.ArgumentError("joined: there is no schedule")
    for schedule in given:
        check_callable("joined", schedule, "a schedule")
    ends = [as_integer(b, "joined", "a boundary") for b in between]
    if len(ends) != len(schedules) - 1 or ends != sorted(set(ends)) or (ends and ends[0] <= 0):
        raise errors.ArgumentError(
            f"joined: between {len(schedules)} schedules there is one boundary less, each larger than the one before "
            f"and than 0; received {ends}"
        )

    def rate(step: Any) -> Any:
        found = schedules[0](step)
        for begin, schedule in zip(ends, schedules[1:], strict=True):
            found = chosen(step < begin, found, schedule(_most(step - begin, 0)))
        return found

    return rate


def warmup(schedule: Schedule, steps: int) -> Schedule:
    """From 0 up to where another schedule starts, in equal parts; then that schedule."""
    check_callable("warmup", schedule, "a schedule")
    count = _count(steps, "warmup")
    return joined([linear(0.0, schedule(0), count), schedule], [count])


def _count(value: Any, name: str) -> int:
    return as_integer(value, name, "the number of steps", 1)


# Of Python's numbers these are Python's own; of tensors, as in a step that is compiled, tensors.


def _least(x: Any, y: Any) -> Any:
    return minimum(x, y) if isinstance(x, Tensor) else min(x, y)


def _most(x: Any, y: Any) -> Any:
    return maximum(x, y) if isinstance(x, Tensor) else max(x, y)


def _cos(x: Any) -> Any:
    return cos(x) if isinstance(x, Tensor) else math.cos(x)


def _floor(x: Any) -> Any:
    return floor(x) if isinstance(x, Tensor) else math.floor(x)
