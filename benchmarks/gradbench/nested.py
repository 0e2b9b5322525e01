"""particle, saddle: minima by gradient descent of functions that take derivatives themselves, of single numbers.

The first letter of a size is the mode of the outer derivative, the second that of the inner one, f forward, r reverse.
J. Siskind, B. Pearlmutter, Using programming language theory to make automatic differentiation sound and efficient,
2008.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.gradbench.libraries import Function, Library, Problem, Run

Point = tuple[Any, ...]
STEPS = 1000  # of a loop that reverse mode goes through: more than there are


def _derivative(lib: Library, mode: str) -> Function:
    """The value and the gradient of a function of n numbers, in a mode."""

    def reverse(f: Function, n: int) -> Function:
        return lib.value_and_grad(f, tuple(range(n)))  # type: ignore[no-any-return]

    def forward(f: Function, n: int) -> Function:
        def derivative(*x: Any) -> tuple[Any, Point]:
            value, slopes = None, []
            for k in range(n):  # by one number, with the others as constants
                value, slope = lib.jvp(lambda a, k=k: f(*x[:k], a, *x[k + 1 :]), (x[k],), (one,))
                slopes.append(slope)
            return value, tuple(slopes)

        return derivative

    one = lib.array(np.float64(1.0))
    return reverse if mode == "r" else forward


def _short(x: Point) -> Any:
    """Whether a vector is no longer than 1e-5."""
    square = x[0] * x[0]
    for y in x[1:]:
        square = square + y * y
    return square <= 1e-10


def _argmin(lib: Library, gradient: Function, f: Function, x: Point, mode: str = "f") -> Point:
    """Steps along the gradient, twice as long after ten good ones and half as long after a bad one."""
    derivative = gradient(f, len(x))
    if lib.while_loop is not None:
        return _argmin_by_loop(lib, derivative, x, mode)
    (fx, gx), eta, good = derivative(*x), 1e-5, 0
    while not _short(gx):
        if good == 10:
            eta, good = 2 * eta, 0
            continue
        move = tuple([eta * b for b in gx])
        if _short(move):
            break
        new = tuple([a - b for a, b in zip(x, move, strict=True)])
        value, slope = derivative(*new)
        if value < fx:
            x, fx, gx, good = new, value, slope, good + 1
        else:
            eta, good = eta / 2, 0
    return x


def _argmin_by_loop(lib: Library, derivative: Function, x: Point, mode: str) -> Point:
    """The same without Python's own choices, for libraries that trace."""
    xp = lib.xp

    def step(state: Any) -> Any:
        x, fx, gx, eta, good, _ = state
        move = tuple([eta * b for b in gx])
        new = tuple([a - b for a, b in zip(x, move, strict=True)])
        value, slope = derivative(*new)
        tired = good >= 10.0
        stop = xp.logical_or(_short(gx), xp.logical_and(xp.logical_not(tired), _short(move)))
        better = value < fx
        moves = xp.logical_and(better, xp.logical_not(xp.logical_or(stop, tired)))
        eta = xp.where(stop, eta, xp.where(tired, 2 * eta, xp.where(better, eta, eta / 2)))
        good = xp.where(moves, good + 1.0, good * 0.0)
        pairs = (new, x), (slope, gx)
        point, slopes = ([xp.where(moves, a, b) for a, b in zip(*pair, strict=True)] for pair in pairs)
        return tuple(point), xp.where(moves, value, fx), tuple(slopes), eta, good, xp.logical_not(stop)

    fx, gx = derivative(*x)
    start = (x, fx, gx, fx * 0.0 + 1e-5, fx * 0.0, xp.isfinite(fx))
    return _until(lib, lambda state: state[-1], step, start, mode)[0]  # type: ignore[no-any-return]


def _saddle(lib: Library, data: tuple[str, Point]) -> Run:
    """min over x of max over y of (x_1^2 + x_2^2) - (y_1^2 + y_2^2), both by descent from one start."""
    (outer, inner), start = [_derivative(lib, mode) for mode in data[0]], data[1]

    def objective(a: Any, b: Any, c: Any, d: Any) -> Any:
        return (a * a + b * b) - (c * c + d * d)

    def best(*start: Any) -> Point:
        def largest(a: Any, b: Any) -> Any:
            return objective(a, b, *_argmin(lib, inner, lambda c, d: -objective(a, b, c, d), start, data[0][0]))

        a, b = _argmin(lib, outer, largest, start)
        return a, b, *_argmin(lib, outer, lambda c, d: -objective(a, b, c, d), start)

    run, given = lib.compiled(best), [lib.array(np.float64(x)) for x in start]
    return lambda: run(*given)


def _particle(lib: Library, data: tuple[str, Point]) -> Run:
    """The charge at (10, 10 - w) that lets a particle, pushed by it and by one at (10, 0), cross the origin.

    Places are seen from the second charge, and a step of 0.1 is the unit of time, so that a step adds what it is given.
    """
    (outer, inner), start = [_derivative(lib, mode) for mode in data[0]], data[1]
    xp, dt = lib.xp, 0.1
    charge = dt * dt

    def crossing(w: Any) -> Any:
        height = 10.0 - w

        def potential(x: Any, y: Any) -> Any:
            square, up = x * x, y - height
            return charge / xp.sqrt(square + up * up) + charge / xp.sqrt(square + y * y)

        push = inner(potential, 2)

        def moved(state: Point) -> Point:
            x, y, u, v = state
            _, (du, dv) = push(x, y)
            return x + u, y + v, u - du, v - dv

        zero = w * 0.0
        x, y, u, v = _until(
            lib, lambda s: s[1] + s[3] > 0, moved, (zero - 10.0, zero + 8.0, zero + 0.75 * dt, zero), data[0][0]
        )
        return (10.0 + x - y / v * u) ** 2

    run, given = lib.compiled(lambda *w: _argmin(lib, outer, crossing, w)), [lib.array(np.float64(x)) for x in start]
    return lambda: run(*given)


def _until(lib: Library, going: Function, step: Function, state: Any, mode: str) -> Any:
    """A loop that a derivative in this mode goes through."""
    if lib.bounded_loop is not None and mode == "r":
        return lib.bounded_loop(going, step, state, STEPS)
    if lib.while_loop is not None:
        return lib.while_loop(going, step, state)
    while going(state):
        state = step(state)
    return state


MODES = ("ff", "fr", "rf", "rr")
# JAX has no reverse mode through a loop whose length is not known; operation by operation it takes a minute or more
WITHOUT: tuple[tuple[str, str], ...] = (("JAX", "rf"), ("JAX", "rr"))
WITHOUT += tuple([("PyTorch", m) for m in MODES])
PROBLEMS = [
    Problem("particle", {m: (m,) for m in MODES}, lambda m: (m, (0.0,)), _particle, WITHOUT),
    Problem("saddle", {m: (m,) for m in MODES}, lambda m: (m, (1.0, 1.0)), _saddle, WITHOUT),
]
