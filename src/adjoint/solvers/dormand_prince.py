"""The Runge-Kutta pair of orders 5 and 4 of J. Dormand and P. Prince, A family of embedded Runge-Kutta formulae (1980).

Steps are chosen as in E. Hairer, S. Norsett, G. Wanner, Solving Ordinary Differential Equations I (1993), section II.4,
whose table II.5.2 has the coefficients.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Generator
from typing import Any

import numpy as np

from adjoint.operands import run
from adjoint.solvers.steps import (
    Control,
    Slope,
    Step,
    Vector,
    constant,
    first_step,
    norm,
    started,
    too_short,
    values_of,
)
from adjoint.tensor import Tensor
from adjoint.transforms.carries import with_examples_of
from adjoint.transforms.levels import Tensors

NODES = (1 / 5, 3 / 10, 4 / 5, 8 / 9, 1.0)  # when stages 2 to 6 are; 1 is at the start of the step, 7 at its end
# What each slope adds to the states of the stages after it; those of the last stage are the weights of the step.
STAGES = np.array(
    [
        [1 / 5, 0, 0, 0, 0, 0],
        [3 / 40, 9 / 40, 0, 0, 0, 0],
        [44 / 45, -56 / 15, 32 / 9, 0, 0, 0],
        [19372 / 6561, -25360 / 2187, 64448 / 6561, -212 / 729, 0, 0],
        [9017 / 3168, -355 / 33, 46732 / 5247, 49 / 176, -5103 / 18656, 0],
        [35 / 384, 0, 500 / 1113, 125 / 192, -2187 / 6784, 11 / 84],
    ]
)
ERROR = (71 / 57600, 0, -71 / 16695, 71 / 1920, -17253 / 339200, 22 / 525, -1 / 40)
# The interpolant of order 4 of L. Shampine, Some practical Runge-Kutta formulas (1986): powers 1 to 4 per slope.
DENSE = np.array(
    [
        [1, -8048581381 / 2820520608, 8663915743 / 2820520608, -12715105075 / 11282082432],
        [0, 0, 0, 0],
        [0, 131558114200 / 32700410799, -68118460800 / 10900136933, 87487479700 / 32700410799],
        [0, -1754552775 / 470086768, 14199869525 / 1410260304, -10690763975 / 1880347072],
        [0, 127303824393 / 49829197408, -318862633887 / 49829197408, 701980252875 / 199316789632],
        [0, -282668133 / 205662961, 2019193451 / 616988883, -1453857185 / 822651844],
        [0, 40617522 / 29380423, -110615467 / 29380423, 69997945 / 29380423],
    ]
)


class DormandPrince:
    """Its steps, in ordinary operations on tensors: any level may record them. Their lengths are constants."""

    begin: float
    control: Control
    end: float
    k: Vector
    slope: Slope
    start: Vector

    def __init__(self, slope: Slope, y: Vector, times: np.ndarray[Any, Any], control: Control) -> None:
        self.slope, self.control = slope, control
        self.begin, self.end = float(times[0]), float(times[-1])
        self.start, self.k = started(self.f, y, self.begin, control)

    def f(self, y: Vector, s: Vector) -> Vector:  # values are compared example by example
        return with_examples_of(self.slope(y, s), y)

    def steps(self) -> Generator[Step | None, float | None, None]:
        f, end, control = self.f, self.end, self.control
        y, k, now = self.start, self.k, self.begin
        if control.nodes is not None:
            for now, ahead in itertools.pairwise(control.nodes):
                h = ahead - now
                after, slopes = stepped(f, y, k, now, h)
                slopes.append(f(after, constant(ahead, y)))
                yield Step(now, h, ahead, after, functools.partial(_interpolated, y, slopes, h))
                y, k = after, slopes[-1]
            return
        h = first_step(f, y, k, now, end, control)
        count, most, asked = 0, 10.0, False
        while now != end:
            count += 1
            if not asked and abs(h) >= 0.999 * abs(end - now):
                h = end - now
            if now + h == now:
                raise too_short(now, count, control)
            after, slopes = stepped(f, y, k, now, h)
            slopes.append(f(after, constant(now + h, y)))
            error = _error([values_of(x) for x in slopes], h, values_of(y), values_of(after), control)
            longer = 0.9 * error**-0.2 if 0 < error < math.inf else math.inf if error == 0 else 0.0
            if not error <= 1:  # or it is nan
                h, most, asked = h * max(0.2, longer), 1.0, False
                yield None
                continue
            ahead = end if h == end - now else now + h
            shorter = yield Step(now, h, ahead, after, functools.partial(_interpolated, y, slopes, h))
            asked = shorter is not None
            if shorter is not None:  # it is taken back
                h = shorter
                continue
            now, y, k = ahead, after, slopes[-1]
            h, most = math.copysign(min(abs(h) * min(most, max(0.2, longer)), control.hmax), h), 10.0


def stepped(f: Slope, y: Vector, k: Vector, now: Any, h: Any) -> tuple[Vector, Tensors]:
    """The state after a step, and its six slopes; k is the first of them. Time and step may be tensors.

    All stages grow together, by one product and one sum per slope.
    """
    moves = isinstance(h, Tensor)
    weights = STAGES if moves else np.asarray(h * STAGES, dtype=y.dtype)
    stages, slopes = y, [k]
    for j in range(6):
        weight = constant(weights[:, j : j + 1], y)
        part = (h * weight if moves else weight) * slopes[j]
        stages = stages + part
        if j < 5:
            ahead = now + NODES[j] * h
            slopes.append(f(stages[j], ahead if moves else constant(ahead, y)))
    return stages[5], slopes


def _error(slopes: list[Any], h: float, y: Any, after: Any, control: Control) -> float:
    """The estimated error of a step as a multiple of what is allowed; of a batch, of the worst example."""
    error = sum([weight * k for weight, k in zip(ERROR, slopes, strict=True) if weight])
    allowed = control.atol + control.rtol * np.maximum(np.abs(y), np.abs(after))
    return float(np.max(norm(h * error / allowed, control), initial=0.0))


def _interpolated(y: Vector, slopes: Tensors, h: float, passed: np.ndarray[Any, Any]) -> Vector:
    """The states at these parts of a step, as rows."""
    weights = constant(passed[:, None] ** np.arange(1, 5) @ (h * DENSE.T), y)
    return y + weights @ run("reshape", (run("concat", slopes, axis=0),), shape=(7, y.shape[0]))  # type: ignore[no-any-return]
