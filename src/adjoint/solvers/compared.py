"""Derivatives of a solution that two grids of steps agree on.

Steps are chosen for the solution. Its derivatives may change faster than it, or where it does not change at all, and
errors of theirs may grow where its own do not. So each derivative is computed twice: on the steps of the solution and
on ones that are twice as long. While the two differ by more than is allowed, it is computed on shorter steps. This is
L. Richardson's comparison (1911), of derivatives.
"""

from __future__ import annotations

import contextlib
import dataclasses
import itertools
import math
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from adjoint import errors
from adjoint.dtypes import INEXACT, finfo
from adjoint.functions import reduction
from adjoint.functions.elementwise import abs, maximum, where
from adjoint.solvers.steps import Control, Vector, values_of
from adjoint.transforms.forward import jvp
from adjoint.transforms.levels import CustomRules, Tensors, same_zeros
from adjoint.transforms.recomputed import Flat, Recomputed
from adjoint.transforms.reverse import vjp

_GAIN = 4.0  # how many times the error falls from level to level: 32 times of order 5, 5 times at a kink of func
_NEAR = 8.0  # how many times what is allowed is worth a second comparison, which takes half the steps of another level
_FACTOR = 32  # how many times the steps of the solution all levels may have together ...
_STEPS = 10_000  # ... or so many, if these are more
_RESOLUTION = 1e3  # the smallest tolerance of a comparison, in units of rounding


class Grids:
    """The steps of a solution as it was found (level 0) and shorter ones (1, 2, ...).

    Level ~i has the steps of level i by twos. `find` gives the ends of the steps that another tolerance chooses.
    """

    control: Control
    found: dict[int, tuple[float, ...]]
    stops: frozenset[float]

    def __init__(self, control: Control, stops: Sequence[float]) -> None:
        self.control, self.stops = control, frozenset(stops)
        self.found = {}
        self._now: threading.local = threading.local()

    @contextlib.contextmanager
    def at(self, level: int) -> Iterator[None]:
        """In this block steps are those of a level."""
        before = getattr(self._now, "level", None)
        self._now.level = level
        try:
            yield
        finally:
            self._now.level = before

    def keep(self, ends: Sequence[float]) -> None:
        """These are the steps of the solution."""
        self.found = {0: tuple(ends)} if len(ends) > 1 else {}

    def current(self, find: Callable[[Control], Sequence[float]], eps: float) -> Control:
        """How steps are chosen now: those of the solution by their errors, others are known."""
        level = getattr(self._now, "level", None)
        if level is None or not self.found:
            return self.control
        joined = level < 0
        level = ~level if joined else level
        # the stages of an implicit step are as exact as the step
        part, smallest = 32.0**-level, 100 * eps if level else 0.0
        rtol, atol = (max(part * x, min(x, smallest)) for x in (self.control.rtol, self.control.atol))
        control = dataclasses.replace(self.control, rtol=rtol, atol=atol)
        if level not in self.found:
            last = max(known for known in self.found if known < level)
            self.found[level] = _as_short(tuple(find(control)), self.found[last], 2.0 ** (last - level))
        return dataclasses.replace(control, nodes=self._joined(level) if joined else self.found[level])

    def may_join(self, level: int) -> bool:
        """Whether every step has a neighbour to be joined with."""
        return all(len(part) > 2 for part in self._parts(level))

    def joins_to_others(self, level: int) -> bool:
        """Whether the steps of level ~level are not those of the level before."""
        return level > 0 and self._joined(level) != self.found.get(level - 1)

    def count(self, level: int) -> int:
        return len(self.found.get(level, ())) - 1

    def _parts(self, level: int) -> list[tuple[float, ...]]:
        """The nodes from one stop to the next."""
        nodes = self.found[level]
        ends = [i for i, node in enumerate(nodes) if node in self.stops or i in (0, len(nodes) - 1)]
        return [nodes[i : j + 1] for i, j in itertools.pairwise(ends)]

    def _joined(self, level: int) -> tuple[float, ...]:
        """Two steps as one; the first three, which are short, where there is an odd number."""
        nodes = [self.found[level][0]]
        for part in self._parts(level):
            nodes += part[2 + (len(part) - 1) % 2 :: 2]
        return tuple(nodes)


def _as_short(nodes: tuple[float, ...], others: tuple[float, ...], part: float) -> tuple[float, ...]:
    """The nodes, and more where the steps of others times a part are shorter."""
    lengths, sign = np.abs(np.diff(others)), math.copysign(1.0, others[-1] - others[0])
    inner = sign * np.array(others[1:-1])
    result = [nodes[0]]
    for a, b in itertools.pairwise(nodes):
        wanted = part * lengths[np.searchsorted(inner, sign * (a + b) / 2)]
        count = max(1, round(sign * (b - a) / wanted))
        result += [a + i / count * (b - a) for i in range(1, count)] + [b]
    return tuple(result)


class Compared(Recomputed):
    """A function whose derivatives, of any order, are computed on two grids.

    `f` runs on the current grid. It gives results, and for each of them the error that is allowed. A depth of 0 is the
    function itself, which runs on the steps of the solution, others are derivatives.
    """

    depth: int
    grids: Grids
    # with zeros: each derivative has an allowed error beside it, of all that is there
    forward_by, backward_of, push_of = CustomRules.forward_by, CustomRules.backward_of, CustomRules.push_of

    def __init__(self, name: str, f: Flat, active: Sequence[bool], grids: Grids, depth: int = 0) -> None:
        super().__init__(name, f, active)
        self.grids, self.depth = grids, depth

    def plain(self, xs: Tensors) -> Tensors:
        found = self._agreed(xs) if self.depth else super().plain(xs)
        return found[: len(found) // 2]

    def forward(self, xs: Tensors) -> tuple[Tensors, Tensors]:
        return self.on(xs), xs

    def push(self, xs: Tensors, tangents: Tensors) -> tuple[Tensors, Tensors]:
        return self.on(xs), self.like(self.pushed, self.active * 2, 1).on([*xs, *tangents])

    def like(self, f: Flat, active: Sequence[bool], deeper: int = 0) -> Compared:
        return Compared(self.name, f, active, self.grids, self.depth + deeper)

    def pulled(self, both: Tensors) -> Tensors:
        """The cotangents of the arguments, from those and the cotangents of the results."""
        xs, cotangents = both[: len(self.active)], both[len(self.active) :]
        active, f = self._of_active(xs)
        _, pull, allowed = vjp(_with_errors(f), *active, has_aux=True)
        found = iter(pull(cotangents))
        results = [next(found) if self._moves(i, x) else same_zeros(x) for i, x in enumerate(xs)]
        off: Any = 0.0
        for c, error in zip(cotangents, allowed, strict=True):
            off = off + reduction.sum(abs(c.detach()) * error)
        return [*results, *[self._allowed(g, _size(x), off) for g, x in zip(results, xs, strict=True)]]

    def pushed(self, both: Tensors) -> Tensors:
        """The tangents of the results, from the arguments and theirs."""
        xs, tangents = both[: len(self.active)], both[len(self.active) :]
        active, f = self._of_active(xs)
        along = [t for i, t in enumerate(tangents) if self._moves(i, t)]
        _, moved, allowed = jvp(_with_errors(f), tuple(active), tuple(along), has_aux=True)
        change: Any = 0.0
        for t, x in zip(along, active, strict=True):
            change = maximum(reduction.max(abs(t.detach()) / _size(x)), change) if x.size else change
        return [*moved, *[self._allowed(t, 1.0, error * change) for t, error in zip(moved, allowed, strict=True)]]

    def _allowed(self, derivative: Vector, size: Any, change: Vector) -> Vector:
        """How wrong a derivative may be that says what changes of this size do, where errors of steps do `change`.

        A solution that is right up to a tolerance has derivatives that are so up to its root, where func has a kink.
        """
        if derivative.dtype.kind not in INEXACT or not derivative.size:
            return same_zeros(derivative)
        resolved = _RESOLUTION * float(finfo(derivative.dtype).eps)
        part = math.sqrt(max(self.grids.control.rtol, resolved))
        largest: Vector = reduction.max(abs(derivative.detach()) * size)
        return (part * largest + change) / size  # type: ignore[no-any-return]

    def _agreed(self, xs: Tensors) -> Tensors:
        """The results on the first grid whose results are close to those on the one that is less fine."""
        grids, level, spent = self.grids, 0, 0
        if not grids.found:
            return super().plain(xs)
        before = self._joined(level, xs)
        most = max(_FACTOR * grids.count(0), _STEPS)
        while True:
            found = self._on_grid(level, xs)
            failed = found if isinstance(found, errors.ConvergenceError) else None
            if not isinstance(found, errors.ConvergenceError):
                off = _apart(before, found)
                if 1 < off <= _NEAR and grids.joins_to_others(level):
                    off = _apart(self._joined(level, xs), found)
                if off <= 1:
                    return found
            count = grids.count(level)
            spent += count
            if (level and failed) or spent + 2 * count > most:
                last = max(grids.found)  # of a level that failed there may be no steps
                raise errors.ConvergenceError(
                    f"{self.name}: the derivative of the solution was not found: up to {grids.count(last)} steps it "
                    "still changes with their number; it needs shorter steps (allow more with mxstep, or ask for less "
                    f"with rtol and atol; at most {most} steps are tried, those of all grids together), or the "
                    "solution is chaotic, and has none that could be found",
                    iterations=grids.count(last),
                ) from failed
            before, level = found, level + 1

    def _joined(self, level: int, xs: Tensors) -> Tensors | errors.ConvergenceError | None:
        return self._on_grid(~level, xs) if self.grids.may_join(level) else None

    def _on_grid(self, level: int, xs: Tensors) -> Tensors | errors.ConvergenceError:
        try:
            with self.grids.at(level):
                return super().plain(xs)
        except errors.ConvergenceError as error:
            return error


def _with_errors(f: Callable[..., Tensors]) -> Callable[..., tuple[Tensors, Tensors]]:
    """The results of f, and the errors that are allowed beside them."""

    def run(*active: Vector) -> tuple[Tensors, Tensors]:
        found = f(*active)
        half = len(found) // 2
        return found[:half], [x.detach() for x in found[half:]]

    return run


def _size(x: Vector) -> Any:
    """What a change of x is measured by, entry by entry: by the largest where one is zero."""
    if not x.size:
        return 1.0
    size = abs(x.detach())
    most = reduction.max(size)
    return where(size > 0, size, where(most > 0, most, 1.0))


def _apart(coarse: Tensors | errors.ConvergenceError | None, fine: Tensors) -> float:
    """How wrong the finer results may be, as a multiple of what is allowed; nothing is said of what is not finite."""
    half = len(fine) // 2
    if not all(np.isfinite(values_of(x)).all() for x in fine[:half]):
        return 0.0
    if coarse is None or isinstance(coarse, errors.ConvergenceError):
        return math.inf
    worst = 0.0
    for x, y, allowed in zip(coarse, fine[:half], fine[half:], strict=False):
        if y.dtype.kind in INEXACT and y.size:
            off = values_of(abs(x - y) / (_GAIN * allowed + float(finfo(y.dtype).tiny)))
            worst = np.maximum(worst, np.max(off, initial=0.0))
    return float(worst) if worst == worst else math.inf
