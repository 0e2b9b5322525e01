"""Newton's method with exact Hessians, on a logistic regression.

Learns to tell malignant from benign tumours by the 30 measurements of scikit-learn's breast cancer data. Newton's
method doubles the number of right digits with every iteration, gradient descent crawls: the picture shows both, and
the coefficients with the standard errors that the same Hessian gives.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from command_line import Parser, Stop, save

import adjoint as ad

RIDGE = 1.0
TESTED = 114
STEPS = 1000  # of gradient descent

Array = np.ndarray


class Data(NamedTuple):
    """Standardised measurements, with a column of ones; labels -1 (malignant) and 1 (benign)."""

    x: Array
    y: Array


def load(seed: int) -> tuple[Data, Data, list[str]]:
    """Those to learn from, those to test with, and what was measured."""
    from sklearn.datasets import load_breast_cancer

    bunch = load_breast_cancer()
    order = np.random.default_rng(seed).permutation(len(bunch.target))
    learnt = bunch.data[order[TESTED:]]
    x = np.column_stack([(bunch.data - learnt.mean(0)) / learnt.std(0), np.ones(len(bunch.target))])[order]
    y = (2.0 * bunch.target - 1)[order]
    return Data(x[TESTED:], y[TESTED:]), Data(x[:TESTED], y[:TESTED]), list(bunch.feature_names)


def loss(w: ad.Tensor, data: Data) -> ad.Tensor:
    """What is minimised: minus the log-likelihood, and a ridge on all coefficients but the last, the intercept."""
    return ad.nn.softplus(-data.y * (data.x @ w)).sum() + RIDGE / 2 * (w[:-1] ** 2).sum()


def newton(data: Data) -> list[Array]:
    """All iterates from zero on, until the gradient is as good as zero. From there, this loss needs no damping."""
    gradient, hessian = ad.grad(loss), ad.hessian(loss)
    w = np.zeros(data.x.shape[1])
    iterates, g = [w], gradient(w, data)
    end = 1e-12 * np.linalg.norm(g)
    while np.linalg.norm(g) > end:
        w = w - np.linalg.solve(hessian(w, data), g)
        g = gradient(w, data)
        iterates.append(w)
    return iterates


def descent(data: Data, steps: int) -> list[Array]:
    """All iterates of gradient descent, in steps of 1 / L: the curvature is nowhere above L."""
    gradient = ad.grad(loss)
    curvature = np.linalg.eigvalsh(data.x.T @ data.x / 4)[-1] + RIDGE
    iterates = [np.zeros(data.x.shape[1])]
    for _ in range(steps):
        iterates.append(iterates[-1] - gradient(iterates[-1], data) / curvature)
    return iterates


def slopes(iterates: Sequence[Array], data: Data) -> list[float]:
    """The norm of the gradient at each."""
    gradient: Callable[..., Array] = ad.grad(loss)
    return [float(np.linalg.norm(gradient(w, data))) for w in iterates]


def order(iterates: Sequence[Array], data: Data) -> float:
    """Of convergence: 2 where the right digits double, 1 where their number grows by the same each time."""
    found = slopes(iterates, data)
    a, b, c = np.log([slope for slope in found if slope > 1e-13 * found[0]][-3:])  # smaller ones are rounding errors
    return float((c - b) / (b - a))


def standard_errors(w: Array, data: Data) -> Array:
    """Of the coefficients: the posterior's normal approximation at its mode has the covariance 1 / Hessian."""
    return np.sqrt(np.diag(np.linalg.inv(ad.hessian(loss)(w, data))))


def accuracy(w: Array, data: Data) -> float:
    return float(np.mean(np.sign(data.x @ w) == data.y))


def draw(path: Path, names: list[str], data: Data, exact: list[Array], slow: list[Array], theirs: Array) -> None:
    """How the two methods converge, how Newton's errors are squared, and the coefficients."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(15, 5.6), layout="constrained")
    left, middle, right = figure.subplots(1, 3, width_ratios=(1, 1, 1.25))
    for iterates, label, style in ((slow, "gradient descent", "-"), (exact, "Newton", "o-")):
        left.loglog(range(1, len(iterates) + 1), slopes(iterates, data), style, label=label)
    left.set(xlabel="gradients taken", ylabel="norm of the gradient", title="Newton and gradient descent")
    left.legend()

    errors = [float(np.linalg.norm(w - exact[-1])) for w in exact[:-1]]
    ends = np.array([errors[-2], 1.0])
    middle.loglog(errors[:-1], errors[1:], "o-", color="tab:orange", label="Newton")
    middle.loglog(ends, errors[-1] * (ends / errors[-2]) ** 2, "--", color="gray", label="slope 2")
    middle.set(xlabel="distance from the solution", ylabel="distance one iteration later", title="Errors are squared")
    middle.legend()

    rows = np.arange(len(names))[::-1]
    spread = 2 * standard_errors(exact[-1], data)
    right.axvline(0, color="gray", linewidth=0.8)
    right.errorbar(
        exact[-1][:-1], rows, xerr=spread[:-1], fmt="o", color="tab:orange", label="Newton, ± 2 standard errors"
    )
    right.plot(theirs[:-1], rows, "o", color="black", fillstyle="none", markersize=9, label="scikit-learn")
    right.set(
        yticks=rows,
        ylim=(-1, len(names) + 2),  # with room for the legend
        xlabel="log odds of being benign, per standard deviation",
        title=f"Coefficients, from {len(data.y)} tumours",
    )
    right.set_yticklabels(names, fontsize=8)
    right.legend(loc="upper center", ncols=2)
    for axes in (left, middle, right):
        axes.grid(alpha=0.3)
    save(figure, path)


def scikit_learns(data: Data) -> Array:
    """The same fit by scikit-learn: coefficients and, at last, the intercept."""
    from sklearn.linear_model import LogisticRegression

    model = LogisticRegression(C=1 / RIDGE, solver="newton-cholesky", tol=1e-10).fit(data.x[:, :-1], data.y)
    return np.append(model.coef_[0], model.intercept_)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = Parser("newton.py", __doc__)
    parser.add_seed("the split in training and test data")
    parser.add_out()
    options = parser.parse_args(arguments)

    with Stop("newton.py"):
        data, test, names = load(options.seed)
        exact, slow, theirs = newton(data), descent(data, STEPS), scikit_learns(data)
        print("iteration       loss   norm of gradient")
        for i, (w, slope) in enumerate(zip(exact, slopes(exact, data), strict=True)):
            print(f"{i:9} {loss(ad.tensor(w), data).item():10.4f} {slope:18.1e}")
        print(f"gradient descent: {slopes(slow[-1:], data)[0]:.1e} after {STEPS} iterations")
        print(f"order of convergence: {order(exact, data):.2f}, of gradient descent {order(slow, data):.2f}")
        print(f"largest difference from scikit-learn: {np.abs(exact[-1] - theirs).max():.0e}")
        print(f"test accuracy: {accuracy(exact[-1], test):.1%} of {TESTED}")
        draw(options.out, names, data, exact, slow, theirs)


if __name__ == "__main__":
    main(sys.argv[1:])
