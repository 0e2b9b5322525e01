"""hello, lse, llsq: sums over numbers.  det: expansion by minors.  ode: a chain of equations by Runge and Kutta."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np

from benchmarks.gradbench.libraries import Library, Problem, Run

Data = tuple[Any, ...]


def _hello(lib: Library, data: Data) -> Run:
    double = lib.compiled(lib.grad(lambda x: x * x))
    x = lib.array(np.full((), data[0]))
    return lambda: double(x)


def _lse(lib: Library, data: Data) -> Run:
    """a + log sum exp(x - a), with the largest a."""
    xp = lib.xp

    def lse(x: Any) -> Any:
        largest = xp.max(x)
        return largest + xp.log(xp.sum(xp.exp(x - largest)))

    gradient, x = lib.compiled(lib.grad(lse)), lib.array(data[0])
    return lambda: gradient(x)


def _llsq(lib: Library, data: Data) -> Run:
    """Half the sum of (sign(t) - x_0 - x_1 t - x_2 t^2 ...)^2, at n times t from -1 to 1."""
    x, n = data
    t = np.linspace(-1.0, 1.0, n)
    times, signs = lib.array(t), lib.array(np.sign(t))

    def objective(x: Any, t: Any, s: Any) -> Any:
        value = x[len(x) - 1] * t
        for k in range(len(x) - 2, 0, -1):  # Horner's scheme
            value = (value + x[k]) * t
        return 0.5 * lib.xp.sum((s - value - x[0]) ** 2)

    gradient, x = lib.compiled(lib.grad(objective)), lib.array(x)
    return lambda: gradient(x, times, signs)


def _det(lib: Library, data: Data) -> Run:
    """The determinant from minors of the last rows, each of which is computed once: 2^n of them, not n!."""
    (matrix,) = data
    n = len(matrix)
    plans = []  # for sets of k + 1 columns: those columns, and the places of the sets without one of them
    for k in range(1, n):
        place = {chosen: i for i, chosen in enumerate(itertools.combinations(range(n), k))}
        sets = list(itertools.combinations(range(n), k + 1))
        without = [[place[s[:j] + s[j + 1 :]] for j in range(k + 1)] for s in sets]
        signs = (-1.0) ** np.arange(k + 1)
        plans.append((np.asarray(sets), np.asarray(without), lib.array(signs)))

    def det(a: Any) -> Any:
        minors = a[n - 1]
        for k, (columns, without, signs) in enumerate(plans):
            minors = lib.xp.sum(a[n - 2 - k][columns] * minors[without] * signs, 1)
        return minors[0]

    gradient, a = lib.compiled(lib.grad(det)), lib.array(matrix)
    return lambda: gradient(a)


def _ode(lib: Library, data: Data) -> Run:
    """y_0' = x_0, y_i' = x_i y_(i-1) from 0 to 2 in s steps; the gradient of the last y by x."""
    x, steps = data
    xp, h = lib.xp, 2.0 / steps
    end = lib.array(np.eye(1, len(x) + 1, len(x))[0])  # behind all y there is a 1, which stays as its slope is 0

    def last(x: Any) -> Any:
        x = lib.concat([x, xp.zeros_like(x[:1])])
        parts = [h / k * x for k in (4, 3, 2, 1)]

        def step(y: Any, _: Any) -> Any:
            """The stages in a row, as the equations are linear: 1 + hA (1 + hA/2 (1 + hA/3 (1 + hA/4)))."""
            stage = y
            for part in parts:  # each y changes by what is in front of it; the first one by the 1
                stage = y + part * xp.roll(stage, 1, 0)
            return stage, None

        return lib.scan(step, end, None, steps)[0][-2]

    gradient, x = lib.compiled(lib.grad(last)), lib.array(x)
    return lambda: gradient(x)


def _random(*shape: int) -> np.ndarray[Any, Any]:
    return np.random.default_rng(31337).random(shape)


PROBLEMS = [
    Problem("hello", {"1": (1.0,)}, lambda x: (x,), _hello),
    Problem("lse", {f"{n:,}": (n,) for n in (10**3, 10**4, 10**5, 10**6)}, lambda n: (_random(n),), _lse),
    Problem(
        "llsq",
        {f"{m} x {n:,}": (m, n) for m in (16, 128) for n in (1024, 65536)},
        lambda m, n: (_random(m), n),
        _llsq,
    ),
    Problem("det", {str(n): (n,) for n in (5, 8, 10, 12)}, lambda n: (_random(n, n),), _det),
    Problem(
        "ode",
        {f"{n:,} x {s}": (n, s) for n in (1000, 10000) for s in (10, 100)},
        lambda n, s: (_random(n), s),
        _ode,
    ),
]
