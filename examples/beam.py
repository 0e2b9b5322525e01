"""Topology optimisation: the stiffest beam of half of the material.

A beam is held at its left end, and a force pulls down at the middle of the right one. Where should there be material,
if it may fill half of the space? Each square of a grid gets a density. A system of linear equations with few diagonals
says how the squares move. The work of the force is what is minimised, by its gradient through these equations
(Bendsoe and Sigmund, Topology Optimization, 2003). The picture shows designs along the way, and the work.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from command_line import Parser, Stop, at_least, progress, save

import adjoint as ad

WIDTH, HEIGHT = 48, 24  # squares
VOLUME = 0.5  # the part of the space that is filled
POWER, VOID = 3, 1e-6  # half-dense material is not worth its weight; none is nearly as soft as air
RADIUS = 1.5  # over which densities are averaged, so that there are no checkerboards
POISSON = 0.3

Array = np.ndarray


def stiffness() -> Array:
    """The (8, 8) stiffness of a square with bilinear displacements under plane stress, Young's modulus 1."""
    elasticity = np.array([[1, POISSON, 0], [POISSON, 1, 0], [0, 0, (1 - POISSON) / 2]]) / (1 - POISSON**2)
    corners = np.array([[-1, -1], [1, -1], [1, 1], [-1, 1]])
    total = np.zeros((8, 8))
    for x, y in corners / np.sqrt(3):  # Gauss's points
        by_x, by_y = corners[:, 0] * (1 + corners[:, 1] * y) / 2, corners[:, 1] * (1 + corners[:, 0] * x) / 2
        strain = np.zeros((3, 8))
        strain[0, 0::2], strain[1, 1::2], strain[2, 0::2], strain[2, 1::2] = by_x, by_y, by_y, by_x
        total += strain.T @ elasticity @ strain / 4
    return total


def unknowns() -> Array:
    """(squares, 8): the numbers of the unknowns of each square's corners, counted upwards, column by column."""
    column, row = np.divmod(np.arange(WIDTH * HEIGHT), HEIGHT)
    corner = column * (HEIGHT + 1) + row
    nodes = np.stack([corner, corner + HEIGHT + 1, corner + HEIGHT + 2, corner + 1], axis=1)
    return np.stack([2 * nodes, 2 * nodes + 1], axis=-1).reshape(-1, 8)


def cone() -> Array:
    at = np.arange(-1, 2)
    weights = np.maximum(0, RADIUS - np.hypot(at[:, None], at))
    return weights / weights.sum()


class Beam:
    """What does not change with the design: where entries of the matrix are, and the force."""

    def __init__(self) -> None:
        held = 2 * (HEIGHT + 1)  # the unknowns of the left end, which does not move
        self.size = 2 * (WIDTH + 1) * (HEIGHT + 1) - held
        i, j = np.broadcast_arrays(unknowns()[:, :, None] - held, unknowns()[:, None, :] - held)
        kept = (i >= j) & (j >= 0)  # a triangle, without what is held
        self.square = np.nonzero(kept)[0]
        self.diagonal, self.column = (i - j)[kept], j[kept]
        self.entries = np.broadcast_to(stiffness(), i.shape)[kept]
        self.force = np.zeros(self.size)
        self.force[-(HEIGHT + 1)] = -1.0  # down, at the middle of the right end

    def filtered(self, density: Any) -> Any:
        padded = ad.pad(density, 1, mode="edge")
        return ad.nn.conv2d(padded[None, None], cone()[None, None])[0, 0]

    def work(self, density: Any) -> Any:
        """Of the force: twice the energy in the beam."""
        young = VOID + (1 - VOID) * self.filtered(density) ** POWER
        diagonals = ad.zeros((2 * HEIGHT + 6, self.size), dtype=ad.float64)
        values = self.entries * young.ravel()[self.square]
        band = ad.scatter(diagonals, (self.diagonal, self.column), values, mode="add")
        return ad.linalg.solveh_banded(band, self.force, lower=True) @ self.force


def improved(density: Array, slope: Array) -> Array:
    """A step by the criterion of an optimum: material goes to where it saves most, and its sum stays."""
    low, high = 0.0, 1e9
    while high - low > 1e-6 * (high + low):
        price = (low + high) / 2
        moved = density * np.sqrt(np.maximum(-slope, 0) / price)
        moved = np.clip(moved, np.maximum(0.001, density - 0.2), np.minimum(1, density + 0.2))
        low, high = (price, high) if moved.mean() > VOLUME else (low, price)
    return moved


def search(iterations: int) -> tuple[list[Array], list[float]]:
    """The designs and their works, from a uniform one on."""
    beam, density = Beam(), np.full((WIDTH, HEIGHT), VOLUME)
    slope = ad.compile(ad.value_and_grad(beam.work))
    designs, works = [density], []
    for _ in progress(iterations, "designing"):
        work, g = slope(density)
        works.append(float(work))
        density = improved(density, np.asarray(g))
        designs.append(density)
    works.append(float(beam.work(density)))
    return designs, works


def draw(path: Path, designs: list[Array], works: list[float]) -> None:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(11, 5.2), layout="constrained")
    axes = figure.subplots(2, 2).ravel()
    last = len(designs) - 1
    for shown, k in zip(axes, (min(3, last), min(12, last), last), strict=False):
        shown.imshow(designs[k].T, cmap="gray_r", vmin=0, vmax=1, origin="lower")
        shown.set(title=f"after {k} steps", xticks=[], yticks=[])
    axes[3].semilogy(works)
    axes[3].set(xlabel="step", title="work of the force")
    save(figure, path)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = Parser("beam.py", __doc__)
    parser.add_argument("--iterations", type=at_least(1), default=40, help="of the search (40)")
    parser.add_out()
    options = parser.parse_args(arguments)

    with Stop("beam.py"):
        designs, works = search(options.iterations)
        grey = 4 * (designs[-1] * (1 - designs[-1])).mean()
        print(f"work of the force: {works[-1]:.1f}, of material spread evenly {works[0]:.1f}")
        print(f"volume: {designs[-1].mean():.3f}; grey: {grey:.2f}, evenly 1")
        draw(options.out, designs, works)


if __name__ == "__main__":
    main(sys.argv[1:])
