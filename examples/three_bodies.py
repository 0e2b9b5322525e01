"""Three bodies on a figure eight: a periodic orbit, found by its derivatives.

Three equal masses can chase each other on one curve shaped like an 8 (Chenciner and Montgomery, 2000). Only the right
velocity at the start closes the curve. It is sought from a rough guess: least squares by the gap after one period,
with the Jacobian of the gap through the solver of the differential equation. The picture shows the orbit of the guess
and the one that was found.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from command_line import Parser, Stop, save

import adjoint as ad

PLACES = np.array([[0.97000436, -0.24308753], [-0.97000436, 0.24308753], [0.0, 0.0]])
PUBLISHED = np.array([-0.93240737, -0.86473146])  # the third body's velocity (Simo's digits)
PERIOD = 6.32591398

Array = np.ndarray


class Orbit(NamedTuple):
    velocity: Array
    gap: float
    path: Array  # times, bodies, coordinates


def rates(y: Any, t: Any) -> Any:
    """Newton's law, with masses and the constant of gravity 1."""
    places, speeds = y
    apart = places[None] - places[:, None]
    cubed = ((apart**2).sum(axis=-1) + np.eye(3)) ** 1.5  # 1 for a body and itself, where apart is 0
    return speeds, (apart / cubed[..., None]).sum(axis=1)


def flight(velocity: Any, times: Array) -> Any:
    """Places and speeds at some times; the three velocities sum to zero."""
    speeds = ad.stack([-velocity / 2, -velocity / 2, velocity])
    return ad.odeint(rates, (PLACES, speeds), times, rtol=1e-10, atol=1e-10)


def gap(velocity: Any) -> Any:
    """How far all bodies are, after a period, from where they began."""
    places, speeds = flight(velocity, np.array([0.0, PERIOD]))
    return ad.concat([ad.reshape(places[-1] - PLACES, (-1,)), speeds[-1, 2] - velocity])


def orbit(velocity: Array) -> Orbit:
    path, _ = flight(velocity, np.linspace(0, PERIOD, 200))
    return Orbit(velocity, float(np.linalg.norm(np.asarray(gap(velocity)))), np.asarray(path))


def find(guess: Array) -> Array:
    return np.asarray(ad.scipy.least_squares(gap, guess, xtol=1e-12, ftol=1e-12, gtol=1e-12).x)


def draw(path: Path, orbits: dict[str, Orbit]) -> None:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(12, 4), layout="constrained")
    for axes, (title, found) in zip(figure.subplots(1, 2), orbits.items(), strict=True):
        for body in range(3):
            (line,) = axes.plot(*found.path[:, body].T)
            axes.plot(*found.path[-1, body], "o", color=line.get_color())
        axes.set(title=f"{title}: gap {found.gap:.1e}", aspect="equal")
    save(figure, path)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = Parser("three_bodies.py", __doc__)
    parser.add_seed("the guess")
    parser.add_out()
    options = parser.parse_args(arguments)

    with Stop("three_bodies.py"):
        guess = PUBLISHED + 0.1 * np.random.default_rng(options.seed).normal(size=2)
        first, found = orbit(guess), orbit(find(guess))
        print(f"velocity of the third body: {found.velocity[0]:.6f}, {found.velocity[1]:.6f}")
        print(f"off the published one by {np.abs(found.velocity - PUBLISHED).max():.0e}; the gap is {found.gap:.0e}")
        draw(options.out, {"guess": first, "found": found})


if __name__ == "__main__":
    main(sys.argv[1:])
