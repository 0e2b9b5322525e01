"""A Gaussian process: how a curve goes between the points that were measured.

The kernel has three numbers: how high the curve is, how fast it changes, and how noisy the measurements are. They are
those that make the data most likely, found by L-BFGS with the gradient of the likelihood. The picture shows the curve
that the process expects, two standard deviations around it, and the curve that the points were drawn from.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from command_line import Parser, Stop, at_least, save

import adjoint as ad

NOISE = 0.1
START = np.log([1.0, 0.3, 0.3])  # logarithms of height, length and noise

Array = np.ndarray


class Fit(NamedTuple):
    height: float
    length: float
    noise: float
    likelihood: float


def truth(x: Any) -> Any:
    return np.sin(3 * x) + 0.5 * x


def measure(points: int, seed: int) -> tuple[Array, Array]:
    rng = np.random.default_rng(seed)
    x = np.sort(np.concatenate([rng.uniform(-3, -0.5, points // 2), rng.uniform(0.7, 3, points - points // 2)]))
    return x, truth(x) + NOISE * rng.normal(size=points)


def kernel(p: Any, a: Array, b: Array) -> Any:
    return ad.exp(2 * p[0] - 0.5 * ((a[:, None] - b) * ad.exp(-p[1])) ** 2)


def loss(p: Any, x: Array, y: Array) -> Any:
    """Minus the logarithm of the likelihood (Rasmussen and Williams, Gaussian Processes, 2.30)."""
    factor = ad.linalg.cholesky(kernel(p, x, x) + ad.exp(2 * p[2]) * np.eye(len(x)))
    white = ad.linalg.solve_triangular(factor, y, upper=False)
    return 0.5 * (white**2).sum() + ad.log(ad.linalg.diagonal(factor)).sum() + 0.5 * len(x) * np.log(2 * np.pi)


def fit(x: Array, y: Array) -> Fit:
    found = ad.scipy.minimize(loss, START, (x, y), method="L-BFGS-B")
    height, length, noise = map(float, np.exp(found.x))
    return Fit(height, length, noise, -float(found.fun))


def predict(found: Fit, x: Array, y: Array, at: Array) -> tuple[Array, Array]:
    """The mean of the curve and its standard deviation."""
    p = np.log(found[:3])
    covariance = np.asarray(kernel(p, x, x)) + found.noise**2 * np.eye(len(x))
    across = np.asarray(kernel(p, at, x))
    solved = np.linalg.solve(covariance, across.T)
    variance = found.height**2 - (across * solved.T).sum(axis=1)
    return solved.T @ y, np.sqrt(np.maximum(variance, 0))


def draw(path: Path, found: Fit, x: Array, y: Array) -> None:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10, 5), layout="constrained")
    axes = figure.subplots()
    at = np.linspace(-3.5, 3.5, 300)
    mean, spread = predict(found, x, y, at)
    axes.fill_between(at, mean - 2 * spread, mean + 2 * spread, alpha=0.25, label="two standard deviations")
    axes.plot(at, mean, label="expected")
    axes.plot(at, truth(at), "k:", label="truth")
    axes.plot(x, y, "o", color="black", markersize=4, label="measured")
    axes.set(xlabel="x", ylabel="y", title=f"length {found.length:.2f}, noise {found.noise:.3f}")
    axes.legend(ncols=2)
    save(figure, path)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = Parser("gaussian_process.py", __doc__)
    parser.add_argument("--points", type=at_least(4), default=40, help="that are measured (40)")
    parser.add_seed("the points and the noise")
    parser.add_out()
    options = parser.parse_args(arguments)

    with Stop("gaussian_process.py"):
        x, y = measure(options.points, options.seed)
        found = fit(x, y)
        print(f"height {found.height:.2f}, length {found.length:.2f}, noise {found.noise:.3f}, in truth {NOISE}")
        print(f"log-likelihood {found.likelihood:.1f}, {-float(loss(START, x, y)):.1f} before the fit")
        draw(options.out, found, x, y)


if __name__ == "__main__":
    main(sys.argv[1:])
