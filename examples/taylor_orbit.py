"""Taylor series: the orbit of a comet in steps of twenty derivatives.

Halley's comet goes around the sun on a long ellipse, as Kepler found. A differential equation x' = f(x)
gives all derivatives of x, each from those below: `ad.jet` differentiates f along the curve that is known so far. Their
Taylor series is one long step. Its last terms say how long: far from the sun a step takes years, near it days. Higher
orders need fewer steps for as many right digits. The picture shows the steps, and errors from Kepler's own equation.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from command_line import Parser, Stop, at_least, check, save
from scipy.integrate import solve_ivp

import adjoint as ad

ECCENTRICITY, AXIS = 0.96714, 17.834  # of the ellipse; its longer half, in distances of the earth from the sun
PULL = 4 * math.pi**2  # of the sun, in years and these distances
YEARS = AXIS**1.5  # of a turn
ORDERS, TOLERANCES = (6, 12, 20), (1e-4, 1e-7, 1e-10, 1e-13)

Array = np.ndarray


def motion(x: Any) -> Any:
    """The rates of place and speed."""
    place, speed = x[:2], x[2:]
    return ad.concat([speed, -PULL * place / ad.sum(place * place) ** 1.5])


def plain(t: float, x: Array) -> Array:
    """The same for SciPy, in NumPy."""
    return np.concatenate([x[2:], -PULL * x[:2] / (x[:2] @ x[:2]) ** 1.5])


def series(x: Any, order: int) -> Any:
    """The coefficients of the Taylor series of the solution that starts at x: of 1, t, t^2, ..."""
    found = [x, motion(x)]
    for k in range(1, order):
        rates = ad.jet(motion, (x,), (found[1:],), factorial_scaled=False)[1]  # of x', whose last one is new
        found.append(rates[-1] / (k + 1))
    return ad.stack(found)


class Orbit(NamedTuple):
    """Where steps begin and end, and x there."""

    times: Array
    states: Array


def travel(start: Array, until: float, order: int, tolerance: float, expand: Any = series) -> Orbit:
    """Steps whose last two terms are about the tolerance (Jorba and Zou, 2005), relative to x."""
    t, x, times, states = 0.0, start, [0.0], [start]
    while t < until:
        terms = np.asarray(expand(x, order))
        size = np.abs(terms).max(axis=1)
        radius = min([(size[0] / size[k]) ** (1 / k) for k in (order - 1, order)])
        step = min(radius * tolerance ** (1 / order), until - t)
        t, x = t + step, step ** np.arange(order + 1) @ terms
        times.append(t)
        states.append(x)
    return Orbit(np.array(times), np.array(states))


def kepler(t: Any) -> Array:
    """Place and speed at times t, counted from the far end of the ellipse: Kepler's equation, by bisection."""
    mean = 2 * np.pi * np.asarray(t, float) / YEARS + np.pi
    low, high = mean - 1, mean + 1
    for _ in range(60):
        middle = (low + high) / 2
        below = middle - ECCENTRICITY * np.sin(middle) < mean
        low, high = np.where(below, middle, low), np.where(below, high, middle)
    e, flat = low, math.sqrt(1 - ECCENTRICITY**2)
    rate = 2 * np.pi / YEARS / (1 - ECCENTRICITY * np.cos(e))
    columns = np.cos(e) - ECCENTRICITY, flat * np.sin(e), -np.sin(e) * rate, flat * np.cos(e) * rate
    return AXIS * np.stack(columns, axis=-1)


def error(x: Array, exact: Array) -> float:
    """Of the place, in parts of the ellipse."""
    return float(np.linalg.norm(x[:2] - exact[:2]) / AXIS)


def draw(path: Path, orbit: Orbit, found: dict[str, list[tuple[int, float]]]) -> None:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(13, 6.5), layout="constrained")
    grid = figure.subplot_mosaic([["ellipse", "ellipse"], ["steps", "work"]])
    ellipse, steps, work = (grid[name] for name in ("ellipse", "steps", "work"))
    x, y = kepler(np.linspace(0, YEARS, 2000))[:, :2].T
    ellipse.plot(x, y, color="gray", linewidth=0.8)
    ellipse.plot(*orbit.states[:, :2].T, ".", color="tab:blue", label=f"{len(orbit.times) - 1} steps")
    ellipse.plot(0, 0, "o", color="tab:orange", label="sun")
    ellipse.set(aspect="equal", xlabel="distances of the earth", title="Steps of order 20")
    ellipse.legend(loc="upper left")
    steps.semilogy(orbit.times[:-1], np.diff(orbit.times), ".-")
    steps.set(xlabel="years", ylabel="length of a step, years", title="Long far away, short at the sun")
    for label, values in found.items():
        work.loglog(*zip(*values, strict=True), "o-", label=label)
    work.set(xlabel="steps", ylabel="error at the end", title="Work and error")
    work.legend()
    for axes in (steps, work):
        axes.grid(alpha=0.3)
    save(figure, path)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = Parser("taylor_orbit.py", __doc__)
    parser.add_argument("--turns", type=at_least(1), default=3, help="of the comet (3)")
    parser.add_out()
    options = parser.parse_args(arguments)

    with Stop("taylor_orbit.py"):
        start, until = kepler(0.0), options.turns * YEARS
        found: dict[str, list[tuple[int, float]]] = {}
        expand = ad.compile(series)  # an order is recorded once, and is machine code then
        for order in ORDERS:
            for tolerance in TOLERANCES:
                orbit = travel(start, until, order, tolerance, expand)
                row = len(orbit.times) - 1, error(orbit.states[-1], kepler(until))
                found.setdefault(f"order {order}", []).append(row)
            print(f"order {order:2}: {row[0]:5} steps, error {row[1]:.1e}")
        theirs = []
        for rtol in TOLERANCES:
            runge = solve_ivp(plain, (0, until), start, "DOP853", rtol=rtol, atol=rtol)
            theirs.append((len(runge.t) - 1, error(runge.y[:, -1], kepler(until))))
        print(f"DOP853:   {theirs[-1][0]:5} steps, error {theirs[-1][1]:.1e}")
        found["SciPy's DOP853"] = theirs
        check(f"Kepler's equation after {options.turns} turns", row[1], 1e-9)
        draw(options.out, orbit, found)


if __name__ == "__main__":
    main(sys.argv[1:])
