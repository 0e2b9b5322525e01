"""SciPy's optimizers with exact derivatives, on a logistic regression.

Tells malignant from benign tumours by the 30 measurements of scikit-learn's breast cancer data. `ad.scipy.minimize`
hands L-BFGS-B the gradient and Newton-CG also products with the Hessian. The picture shows how fast each comes to the
least loss, with SciPy's finite differences as a third, and the coefficients beside scikit-learn's own solution.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import scipy.optimize
from command_line import Parser, Stop, save
from newton import RIDGE, TESTED, Array, Data, accuracy, load, scikit_learns

import adjoint as ad

METHODS = {"L-BFGS-B": {"maxiter": 1000, "ftol": 1e-14, "gtol": 1e-8}, "Newton-CG": {"xtol": 1e-10}}

Parameters = dict[str, Any]


class Fit(NamedTuple):
    """A search: the loss after each iteration, where it ended, and what it cost."""

    name: str
    losses: list[float]
    coefficients: Array
    evaluations: int


def start(data: Data) -> Parameters:
    return {"weights": np.zeros(data.x.shape[1] - 1), "intercept": 0.0}


def loss(p: Parameters, data: Data) -> Any:
    """Minus the log-likelihood, and a ridge on the weights."""
    margin = data.y * (data.x[:, :-1] @ p["weights"] + p["intercept"])
    return ad.nn.softplus(-margin).sum() + RIDGE / 2 * (p["weights"] ** 2).sum()


def joined(p: Parameters) -> Array:
    return np.append(p["weights"], p["intercept"])


def fit(data: Data, method: str) -> Fit:
    """By `ad.scipy.minimize`: the parameters are a dictionary, on the way in and on the way out."""
    losses = [plain(joined(start(data)), data)]

    def seen(p: Parameters) -> None:
        losses.append(plain(joined(p), data))

    found = ad.scipy.minimize(loss, start(data), (data,), method=method, options=METHODS[method], callback=seen)
    return Fit(method, losses, joined(found.x), found.nfev + found.get("nhev", 0))


def by_differences(data: Data) -> Fit:
    """L-BFGS-B in SciPy alone, which has no gradient and makes one of 31 differences."""
    w0 = joined(start(data))
    losses = [plain(w0, data)]

    def seen(w: Array) -> None:
        losses.append(plain(w, data))

    options = METHODS["L-BFGS-B"] | {"maxfun": 10**6}
    found = scipy.optimize.minimize(plain, w0, (data,), method="L-BFGS-B", options=options, callback=seen)
    return Fit("L-BFGS-B, differences", losses, found.x, found.nfev)


def plain(w: Array, data: Data) -> float:
    """The loss in NumPy."""
    return float(np.logaddexp(0, -data.y * (data.x @ w)).sum() + RIDGE / 2 * (w[:-1] ** 2).sum())


def draw(path: Path, names: list[str], fits: Sequence[Fit], theirs: Array, data: Data) -> None:
    """The loss above the least one, and the coefficients."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(13, 5.6), layout="constrained")
    left, right = figure.subplots(1, 2)
    least = min(plain(theirs, data), *[min(fit.losses) for fit in fits])
    for fit in fits:
        above = np.maximum(np.array(fit.losses) - least, 1e-13)
        left.semilogy(above, "o-", markersize=3, label=f"{fit.name}, {fit.evaluations} evaluations")
    left.set(
        xlabel="iterations", ylabel="loss above the least", title="Exact derivatives and differences", ylim=(None, 1e5)
    )
    left.legend(loc="upper right")

    rows = np.arange(len(names))[::-1]
    right.axvline(0, color="gray", linewidth=0.8)
    right.plot(theirs[:-1], rows, "o", color="black", fillstyle="none", markersize=10, label="scikit-learn")
    for fit, marker in zip(fits[:2], "x+", strict=True):
        right.plot(fit.coefficients[:-1], rows, marker, markersize=7, label=fit.name)
    right.set(
        yticks=rows,
        ylim=(-1, len(names) + 2),
        xlabel="log odds of being benign, per standard deviation",
        title=f"Coefficients, from {len(data.y)} tumours",
    )
    right.set_yticklabels(names, fontsize=8)
    right.legend(loc="upper center", ncols=3)
    for axes in (left, right):
        axes.grid(alpha=0.3)
    save(figure, path)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = Parser("logistic.py", __doc__)
    parser.add_seed("the split in training and test data")
    parser.add_out()
    options = parser.parse_args(arguments)

    with Stop("logistic.py"):
        data, test, names = load(options.seed)
        theirs = scikit_learns(data)
        fits = [*[fit(data, method) for method in METHODS], by_differences(data)]
        print(f"{'method':24}{'iterations':>12}{'evaluations':>13}{'loss':>12}   from scikit-learn")
        for f in fits:
            away = np.abs(f.coefficients - theirs).max()
            print(f"{f.name:24}{len(f.losses) - 1:12}{f.evaluations:13}{f.losses[-1]:12.6f}   {away:.0e}")
        print(f"test accuracy: {accuracy(fits[0].coefficients, test):.1%} of {TESTED}")
        draw(options.out, names, fits, theirs, data)


if __name__ == "__main__":
    main(sys.argv[1:])
