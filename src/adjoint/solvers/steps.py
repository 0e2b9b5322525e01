"""Steps of solvers of differential equations: how long they are, how many there are, and what lies at which time."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Generator
from typing import Any, NamedTuple, Protocol

import numpy as np

from adjoint import errors
from adjoint.functions.shape import concat
from adjoint.operands import common_backend, concrete_values, lift_to
from adjoint.tensor import Tensor, wrap
from adjoint.transforms.carries import with_examples_of

Vector = Tensor[Any]
Slope = Callable[[Vector, Vector], Vector]  # of the state and the time


@dataclasses.dataclass(frozen=True)
class Control:
    """How steps are chosen. The error is that of the part, of these sizes, where it is largest; None is one part.

    Where `nodes` are given steps go from one to the next, whatever their errors.
    """

    rtol: float
    atol: float
    mxstep: float
    hmax: float
    method: str = "RK45"
    name: str = "odeint"  # of the function that was called
    parts: tuple[int, ...] | None = None
    nodes: tuple[float, ...] | None = None


class Step(NamedTuple):
    """A step of length h that was good enough, and the state after it."""

    before: float
    h: float
    now: float
    after: Vector
    between: Callable[[np.ndarray[Any, Any]], Vector] | None = None  # the states at parts of it, from 0 to 1, as rows


class Method(Protocol):
    """A method on its way through some times."""

    start: Vector

    def steps(self) -> Generator[Step | None, float | None, None]:
        """Its steps, None for one that was too long.

        Without `between` they end at each of the times. What is sent is the length of a shorter one in the place of
        the last.
        """
        ...


def values_of(x: Vector) -> np.ndarray[Any, Any]:
    """The values of a vector; of a batch, those of all examples."""
    return concrete_values(x, "odeint")


def constant(value: Any, like: Vector) -> Vector:
    return wrap(like.device.from_numpy(np.asarray(value, dtype=like.dtype), copy=False), like.device)


def started(f: Slope, y: Vector, begin: float, control: Control) -> tuple[Vector, Vector]:
    """The state and its slope where the solution starts, on one backend, each example with a copy of its own."""
    k = f(y, constant(begin, y))
    device = common_backend(y, k)
    y, k = (wrap(lift_to(x, device), device) for x in (y, k))
    if not np.isfinite(values_of(k)).all():
        raise errors.ConvergenceError(f"{control.name}: the derivative is not finite at the start, t = {begin:.6g}")
    return with_examples_of(y, k), k


def states_at(method: Method, times: np.ndarray[Any, Any], control: Control, ends: list[float] | None = None) -> Vector:
    """The states at times that are constants, of shape (times, states). The ends of steps are appended to `ends`."""
    rows, i = [method.start.reshape((1, -1))], 1
    while i < len(times) and times[i] == times[0]:
        rows.append(rows[0])
        i += 1
    if i == len(times):
        return concat(rows)
    now, count = float(times[0]), 0
    for step in method.steps():
        count += 1
        if count > control.mxstep:
            raise too_many(count - 1, now, times[i], control)
        if step is None:
            continue
        now, last = step.now, i
        if ends is not None:
            ends.append(now)
        while last < len(times) and (times[last] - now) * step.h < 0:
            last += 1
        if last > i and step.between is not None:
            rows.append(step.between((times[i:last] - step.before) / step.h))
        while last < len(times) and times[last] == now:
            rows.append(step.after.reshape((1, -1)))
            last += 1
        if last > i:
            i, count = last, 0
        if i == len(times):
            break
    return concat(rows)


def too_many(count: int, now: float, wanted: float, control: Control) -> errors.ConvergenceError:
    stiff = " a stiff equation wants method='Radau';" if control.method == "RK45" else ""
    return errors.ConvergenceError(
        f"{control.name}: {count} steps lead to t = {now:.6g} and not to {wanted:.6g};{stiff} allow more with mxstep, "
        "or ask for less with rtol and atol",
        iterations=count,
    )


def too_short(now: float, count: int, control: Control) -> errors.ConvergenceError:
    return errors.ConvergenceError(
        f"{control.name}: the step at t = {now:.6g} became too short: the derivative is not finite, or the solution "
        "has a singularity there",
        iterations=count,
    )


def norm(x: np.ndarray[Any, Any], control: Control) -> Any:
    """The root mean square of the part where it is largest; of a batch, per example."""
    squares = x * x
    if control.parts is None:
        return np.sqrt(squares.mean(axis=-1))
    starts = np.cumsum((0, *control.parts[:-1]))
    return np.sqrt((np.add.reduceat(squares, starts, axis=-1) / control.parts).max(axis=-1))


def first_step(f: Slope, y: Vector, k: Vector, begin: float, end: float, control: Control) -> float:
    """The first step; Hairer, Norsett, Wanner (1993), page 169."""
    y, k = y.detach(), k.detach()
    sign = math.copysign(1.0, end - begin)
    longest = min(abs(end - begin), control.hmax)
    if not longest:
        return 0.0
    allowed = control.atol + control.rtol * np.abs(values_of(y))
    size, speed = norm(values_of(y) / allowed, control), norm(values_of(k) / allowed, control)
    small = (size < 1e-5) | (speed < 1e-5)
    guess = float(np.min(np.where(small, 1e-6, 0.01 * size / np.where(small, 1.0, speed)), initial=longest))
    other = f(y + sign * guess * k, constant(begin + sign * guess, y))
    change = norm((values_of(other) - values_of(k)) / allowed, control) / guess
    if not np.isfinite(change).all():
        return sign * guess
    fastest = float(np.max(np.maximum(speed, change), initial=0.0))
    step = max(1e-6, guess * 1e-3) if fastest <= 1e-15 else (0.01 / fastest) ** 0.2
    return sign * min(100 * guess, step, longest)
