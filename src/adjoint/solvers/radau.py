"""Stiff equations: the method Radau IIA of order 5, of E. Hairer and G. Wanner.

Solving Ordinary Differential Equations II (1996), sections IV.5 and IV.8. A step is the collocation by a polynomial of
degree 3: its three stages z solve z = h (A x I) f(y + z), by Newton's method with the Jacobian of an earlier step. The
eigenvectors of A make one real system and one complex one of that. Only values are searched for; derivatives of a
step are those of the equation of its stages.

Steps end at all times that are asked for: within a long step the polynomial may be far from a solution that the stiff
part of the equation keeps its ends, and the estimated error, close to.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Generator
from typing import Any

import numpy as np

from adjoint import errors
from adjoint.backend import Backend, Decorator
from adjoint.devices import running_on
from adjoint.dtypes import finfo
from adjoint.functions.shape import concat, stack
from adjoint.operands import common_backend, lift_to
from adjoint.solvers.linear import LinearSolver, Matrix
from adjoint.solvers.steps import Control, Step, Vector, constant, first_step, norm, started, too_short, values_of
from adjoint.solvers.theorem import Known, Systems
from adjoint.solvers.vectors import applied, lifted_result
from adjoint.tensor import wrap
from adjoint.transforms.carries import with_examples_of
from adjoint.transforms.levels import Tensors

Values = np.ndarray[Any, Any]
Solve = Callable[[Values], Values]

NODES = np.array([(4 - math.sqrt(6)) / 10, (4 + math.sqrt(6)) / 10, 1.0])
A = NODES[:, None] ** np.arange(1, 4) / np.arange(1, 4) @ np.linalg.inv(NODES[:, None] ** np.arange(3))
# the polynomial through the stages: what powers 1 to 3 have of each
DENSE = np.linalg.inv(NODES[:, None] ** np.arange(1, 4))
_VALUES, _VECTORS = np.linalg.eig(np.linalg.inv(A))
_ORDER = np.argsort(-np.imag(_VALUES))[[1, 0]]  # the real one, and one of the pair
REAL, COMPLEX = float(np.real(_VALUES[_ORDER[0]])), complex(_VALUES[_ORDER[1]])
_TO = np.linalg.inv(_VECTORS)[_ORDER]  # from stages to the real and one of the complex eigenvectors
_FROM = _VECTORS[:, _ORDER] * [1.0, 2.0]  # and the real part of what goes back
# The error: the difference to a formula of order 3 with the slope at the start, which has the weight 1 / REAL.
ERROR = REAL * (
    (np.linalg.solve(NODES ** np.arange(3)[:, None], 1 / np.arange(1, 4) - [1 / REAL, 0, 0]) - A[2]) @ np.linalg.inv(A)
)
_ITERATIONS = 6
_MANY = 30  # of a step whose length is given: it cannot be shorter
_CLOSE = 1e-3  # how far from the solution of their equation stages may be, as a part of the error that is allowed


class Radau:
    """Its steps. `slope` is a function of the state, the time and theta, by which alone it has derivatives."""

    control: Control
    device: Backend
    k: Vector
    low: Vector
    start: Vector
    theta: Tensors
    times: Values

    def __init__(
        self,
        slope: Callable[[Vector, Vector, Tensors], Vector],
        theta: Tensors,
        y: Vector,
        times: Values,
        control: Control,
    ) -> None:
        self.slope, self.theta, self.times, self.control = slope, theta, times, control
        self.plain: list[Vector] = [_peeled(x) for x in theta]
        low = _peeled(y)
        self.device = common_backend(low, *self.plain)
        self.low, self.k = started(self.f, wrap(lift_to(low, self.device), self.device), float(times[0]), control)
        self.start = with_examples_of(y, self.k)
        self.linear: LinearSolver = LinearSolver(control.name, None)
        self.systems: Systems = Systems(control.name, None, float(finfo(y.dtype).eps) ** (2 / 3))

    def f(self, y: Vector, s: Vector) -> Vector:
        """The slope, without derivatives by theta."""
        if y.device is not self.device:  # the level of its Jacobian
            return self.slope(y, s, self.plain)
        with running_on(self.device):
            return with_examples_of(lifted_result(self.slope(y, s, self.plain), self.device, self.control.name), y)

    def tensor(self, values: Values) -> Vector:
        """Values of states, those of all examples of a batch, without derivatives."""
        low = self.low
        leaf = low.device.leaf
        values = np.ascontiguousarray(values, dtype=low.dtype)
        return wrap(low.device.with_primal(low._array, lambda _: leaf.from_numpy(values, copy=True)), low.device)

    def slopes(self, y: Values, s: float) -> Values:
        return values_of(self.f(self.tensor(y), constant(s, self.low)))

    def jacobian(self, y: Values, s: float) -> Matrix:
        return self.linear.matrix(lambda y: self.f(y, constant(s, y)), self.tensor(y))

    def steps(self) -> Generator[Step | None, float | None, None]:
        return self._along(self.control.nodes) if self.control.nodes is not None else self._chosen()

    def _along(self, nodes: tuple[float, ...]) -> Generator[Step | None, float | None, None]:
        """Steps from one of these times to the next."""
        y, v = self.start, values_of(self.low)
        matrix: Matrix | None = None
        solves: tuple[Solve, Solve] | None = None
        factored = 0.0
        guess = np.zeros((*v.shape[:-1], 3, v.shape[-1]))
        before: tuple[Values, float] | None = None
        for now, ahead in itertools.pairwise(nodes):
            h = ahead - now
            if now + h == now:
                raise too_short(now, 0, self.control)
            if before is not None:
                guess = _between(before[0], 1 + NODES * h / before[1]) - before[0][..., 2:, :]
            allowed = self.control.atol + self.control.rtol * np.abs(v)
            found = None
            for fresh in (matrix is None, True):
                if matrix is None or fresh:
                    matrix, solves = self.jacobian(v, now), None
                if solves is None or abs(h / factored - 1) > 1e-3:
                    solves, factored = _systems(matrix, h), h
                most = _MANY if fresh else _ITERATIONS
                found = solves and self._stages(v, now, h, guess, solves, allowed, most)
                if found is not None or fresh:
                    break
            if found is None:
                raise too_short(now, 0, self.control)  # or too long: this is the cause of what the caller reads
            z, iterations, rate = found
            y = y + self._tracked(z, y, now, h)[2 * v.shape[-1] :]
            yield Step(now, h, ahead, y)
            v, before = v + z[..., 2, :], (z, h)
            if iterations > 2 and rate > 1e-3:
                matrix = None

    def _chosen(self) -> Generator[Step | None, float | None, None]:
        """Steps that are as long as their errors let them be."""
        control = self.control
        now, *stops = np.unique(self.times).tolist()[:: -1 if self.times[0] > self.times[-1] else 1]
        y, v, k = self.start, values_of(self.low), values_of(self.k)
        h = first_step(self.f, self.low, self.k, now, stops[-1], control)
        matrix, fresh = self.jacobian(v, now), True
        solves: tuple[Solve, Solve] | None = None
        count, first, asked, factored = 0, True, False, h
        guess = np.zeros((*v.shape[:-1], 3, v.shape[-1]))
        before: tuple[Values, float] | None = None  # the stages of the last step, and its length
        while stops:
            count += 1
            free, stop = h, stops[0]
            clipped = not asked and abs(h) >= 0.999 * abs(stop - now)
            if clipped:
                h = stop - now
            if now + h == now:
                raise too_short(now, count, control)
            if before is not None:
                guess = _between(before[0], 1 + NODES * h / before[1]) - before[0][..., 2:, :]
            if solves is None or abs(h / factored - 1) > 1e-3:
                solves, factored = _systems(matrix, h), h
            allowed = control.atol + control.rtol * np.abs(v)
            found = solves and self._stages(v, now, h, guess, solves, allowed)
            if solves is None or found is None:
                if fresh:
                    h = h / 2
                else:
                    matrix, fresh, solves = self.jacobian(v, now), True, None
                asked = False
                yield None
                continue
            z, iterations, rate = found
            after = v + z[..., 2, :]
            allowed = control.atol + control.rtol * np.maximum(np.abs(v), np.abs(after))
            part = np.einsum("i,...in->...n", ERROR / h, z)
            off = solves[0](k + part)
            error = _largest(off / allowed, control)
            if first and error > 1:
                error = _largest(solves[0](self.slopes(v + off, now) + part) / allowed, control)
            safety = 0.9 * (2 * _ITERATIONS + 1) / (2 * _ITERATIONS + iterations)
            longer = safety * error**-0.25 if 0 < error < math.inf else math.inf if error == 0 else 0.0
            if not error <= 1:  # or it is nan
                h, first, asked = h * max(0.2, longer), True, False
                yield None
                continue
            ahead = stop if h == stop - now else now + h
            stages = self._tracked(z, y, now, h)
            y_after = y + stages[2 * v.shape[-1] :]
            shorter = yield Step(now, h, ahead, y_after)
            asked = shorter is not None
            if shorter is not None:  # it is taken back
                h, first = shorter, True
                continue
            now, first = ahead, False
            stops = stops[1:] if now == stop else stops
            y, v, before, k = y_after, after, (z, h), self.slopes(after, now)
            fresh = iterations > 2 and rate > 1e-3
            if fresh:
                matrix, solves = self.jacobian(v, now), None
            if solves is None or not 1 <= longer < 1.2:  # else the factors serve again
                h = h * min(10.0, longer)
            if clipped:
                h = max(h, free, key=abs)
            h = math.copysign(min(abs(h), control.hmax), h)

    def _stages(
        self,
        v: Values,
        now: float,
        h: float,
        z: Values,
        solves: tuple[Solve, Solve],
        allowed: Values,
        most: int = _ITERATIONS,
    ) -> tuple[Values, int, float] | None:
        """The stages, after how many iterations, and how fast they converge; None if they do not, IV.8."""
        w = _TO @ z
        rounding = 10 * float(finfo(self.low.dtype).eps) * _largest(v / allowed, self.control)
        last = rate = math.inf
        for i in range(most):
            slopes = np.stack([self.slopes(v + z[..., j, :], now + NODES[j] * h) for j in range(3)], axis=-2)
            if not np.isfinite(slopes).all():
                return None
            wrong = _TO @ slopes - w * (np.array([[REAL], [COMPLEX]]) / h)
            change = np.stack([solves[0](wrong[..., 0, :].real), solves[1](wrong[..., 1, :])], axis=-2)
            moved = (_FROM @ change).real
            size = max(_largest(moved[..., j, :] / allowed, self.control) for j in range(3))
            if not math.isfinite(size):
                return None
            w, z = w + change, z + moved
            if i:
                rate = size / last
            if size <= rounding or (rate < 1 and rate / (1 - rate) * size < _CLOSE):
                return z, i + 1, rate if i else 0.0
            if i and (rate >= 1 or rate ** (most - 1 - i) / (1 - rate) * size > _CLOSE):
                return None
            last = size
        return None

    def _tracked(self, z: Values, y: Vector, now: float, h: float) -> Vector:
        """The stages as one vector, with the derivatives that their equation gives them by y and theta."""
        known = concat([self.tensor(z[..., j, :]) for j in range(3)])

        def equation(z: Vector, xs: Tensors) -> Vector:
            y, *theta = xs
            n = y.shape[0]
            slopes = [self.slope(y + z[j * n : (j + 1) * n], constant(now + NODES[j] * h, y), theta) for j in range(3)]
            return z - (constant(h * A, y) @ stack(slopes)).reshape((3 * n,))

        return applied(Known(self.systems, equation), [known, y, *self.theta])


def _peeled(x: Vector) -> Vector:
    """The values of a tensor, below the levels that differentiate, as far as no batch is above these."""
    array, device = x.detach()._array, x.device
    while isinstance(device, Decorator) and device.differentiates and not device.is_active(array):
        array, device = device.unwrap(array), device.inner
    return wrap(array, device)


def _systems(matrix: Matrix, h: float) -> tuple[Solve, Solve] | None:
    """Those of Newton's method for a step of this length; None where one has no solution."""
    try:
        return matrix.shifted(REAL / h), matrix.shifted(COMPLEX / h)
    except errors.SingularError:
        return None


def _largest(x: Values, control: Control) -> float:
    """The norm; of a batch, that of the example where it is largest."""
    return float(np.max(norm(x, control), initial=0.0))


def _between(z: Values, passed: Values) -> Values:
    """The polynomial of a step at parts of it, less the state at its start."""
    return passed[:, None] ** np.arange(1, 4) @ DENSE @ z
