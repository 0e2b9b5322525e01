"""Ignition: the last balance of a reaction that heats itself, with sparse Jacobians.

A reaction in a square vessel makes heat, and more of it where it is hot; the walls take heat away. In the Bratu
problem, the Laplacian of u + p exp(u) = 0, there is a steady temperature u only up to some strength p of the reaction:
beyond, the vessel explodes. Newton's method follows the curve of all balances around that point. Each step solves a
system with the sparse Jacobian, which `ad.sparse_jacobian` makes of a few products. The last p is known: 6.808124423
(Mohsen, A simple solution of the Bratu problem, 2014). The picture shows the pattern, the curve, and the temperature.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from command_line import Parser, Stop, at_least, check, save
from scipy.optimize import minimize_scalar
from scipy.sparse.linalg import spsolve

import adjoint as ad

PUBLISHED = 6.808124423

Array = np.ndarray


def equations(v: Any, top: float) -> Any:
    """Zero for a balance of temperature `top` in the middle. v has the temperatures, row by row, and p at its end."""
    n = int(np.sqrt(v.shape[0] - 1))
    u = ad.pad(v[:-1].reshape((n, n)), (1, 1))
    laplacian = u[2:, 1:-1] + u[:-2, 1:-1] + u[1:-1, 2:] + u[1:-1, :-2] - 4 * u[1:-1, 1:-1]
    heat = (n + 1) ** 2 * laplacian + v[-1] * ad.exp(u[1:-1, 1:-1])
    return ad.concat([heat.reshape(-1), u[n // 2 + 1, n // 2 + 1].reshape(1) - top])


class Vessel:
    """A grid of n x n points, n odd, and the pattern of the Jacobian there, which is found once."""

    def __init__(self, n: int) -> None:
        self.start = np.append(np.zeros(n * n), 1.0)
        self.pattern = ad.sparse_jacobian(equations)(self.start, 0.0)
        self.jacobian = ad.sparse_jacobian(equations, pattern=self.pattern)

    def balance(self, top: float, v: Array) -> tuple[Array, list[float]]:
        """Newton's method from v: the balance, and the largest change of each step."""
        changes = []
        while not changes or changes[-1] > 1e-9:
            step = spsolve(self.jacobian(v, top).tocsc(), np.asarray(equations(v, top)))
            v = v - step
            changes.append(float(np.abs(step).max()))
        return v, changes

    def last(self) -> tuple[Array, float]:
        """The balance of the largest p, and p."""
        v = self.balance(1.4, self.balance(0.7, self.start)[0])[0]
        found = minimize_scalar(lambda top: -self.balance(top, v)[0][-1], (1.3, 1.4, 1.5), tol=1e-6)
        v = self.balance(found.x, v)[0]
        return v, float(v[-1])


class Branch(NamedTuple):
    """The temperatures in the middle, and p for each."""

    tops: Array
    strengths: Array


def follow(vessel: Vessel, count: int) -> Branch:
    """Balances on both sides of the last one, each found from the one before."""
    tops, v, found = np.linspace(0.0, 6.0, count), vessel.start, []
    for top in tops:
        v = vessel.balance(top, v)[0]
        found.append(v[-1])
    return Branch(tops, np.array(found))


def draw(path: Path, vessel: Vessel, branch: Branch, changes: list[float], v: Array, last: float) -> None:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(13, 7.6), layout="constrained")
    (pattern, curve), (speed, heat) = figure.subplots(2, 2)
    small = Vessel(9).pattern
    ad.plot.spy(small, ax=pattern)
    pattern.set(title=f"Jacobian of a grid of 9 x 9: {small.nnz} of {small.shape[0]}² entries")
    curve.plot(branch.strengths, branch.tops)
    curve.axvline(PUBLISHED, color="gray", linestyle="--", linewidth=1, label=f"published: {PUBLISHED:.4f}")
    curve.plot(last, v[:-1].max(), "o", color="tab:red", label="the last balance")
    curve.set(xlabel="strength p", ylabel="temperature in the middle", title="All balances")
    curve.legend(loc="center left")
    speed.semilogy(range(1, len(changes) + 1), changes, "o-")
    speed.set(xlabel="step", ylabel="largest change", title="Newton's method: right digits double")
    n = int(np.sqrt(len(v) - 1))
    image = heat.imshow(np.pad(v[:-1].reshape(n, n), 1), extent=(0, 1, 0, 1), cmap="inferno")
    heat.set(title="The last balance: temperature")
    figure.colorbar(image)
    for axes in (curve, speed):
        axes.grid(alpha=0.3)
    save(figure, path)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = Parser("ignition.py", __doc__)
    parser.add_argument(
        "--points", type=at_least(4), default=32, help="a side has so many intervals, and then twice as many (32)"
    )
    parser.add_out()
    options = parser.parse_args(arguments)

    with Stop("ignition.py"):
        coarse, fine = Vessel(options.points - 1), Vessel(2 * options.points - 1)
        rows, columns = fine.pattern.shape
        print(f"Jacobian: {rows} x {columns}, {fine.pattern.nnz} entries ({fine.pattern.nnz / rows / columns:.2%})")
        first, (v, second) = coarse.last()[1], fine.last()
        best = second + (second - first) / 3  # errors fall with the square of the distance of points
        print(f"last balance: p = {first:.6f} and {second:.6f} on two grids, extrapolated {best:.6f}")
        check(f"the published {PUBLISHED}", abs(best - PUBLISHED), 1e-5 * (32 / options.points) ** 4)
        changes = fine.balance(1.0, fine.start)[1]
        print("Newton's changes:", " ".join([f"{change:.0e}" for change in changes]))
        draw(options.out, fine, follow(coarse, 41), changes, v, second)


if __name__ == "__main__":
    main(sys.argv[1:])
