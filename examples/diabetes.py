"""Ridge regression on scikit-learn's diabetes data, trained like a network, against scikit-learn's closed form.

Predicts how far diabetes went in a year from ten measurements of 442 patients. A linear layer is trained by L-BFGS for
many strengths of the penalty; its coefficients are those of `sklearn.linear_model.Ridge` to eight digits. Draws the
coefficients and R2 over the penalty, and predictions for the patients it never saw. Takes about five seconds.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from command_line import Parser, Stop, save

import adjoint as ad

ALPHAS = np.logspace(-2, 4, 25)
SHOWN = 12  # of them, in the plot of predictions: 10
TESTED = 88

Array = np.ndarray


class Data(NamedTuple):
    """Standardised measurements, (patients, 10), and what came a year later, (patients, 1)."""

    x: Array
    y: Array


def load(seed: int) -> tuple[Data, Data, list[str]]:
    """Patients to learn from, those to test with, and what was measured."""
    from sklearn.datasets import load_diabetes

    bunch = load_diabetes(scaled=False)
    order = np.random.default_rng(seed).permutation(len(bunch.target))
    learnt = bunch.data[order[TESTED:]]
    x, y = ((bunch.data - learnt.mean(0)) / learnt.std(0))[order], bunch.target[order, None]
    return Data(x[TESTED:], y[TESTED:]), Data(x[:TESTED], y[:TESTED]), list(bunch.feature_names)


def fit(data: Data, alpha: float) -> ad.nn.Linear:
    """The layer that minimises the sum of squared errors plus alpha times that of squared coefficients."""

    def forward(model: Any, batch: Any, key: int) -> Any:
        x, y = batch
        prediction = model(x)
        penalty = alpha / len(x) * (model.weight**2).sum()
        return ad.nn.mse_loss(prediction, y) + penalty, prediction, y

    start = ad.nn.Linear(data.x.shape[1], 1, dtype=ad.float64)
    optimizer = ad.optim.LBFGS(max_iter=100, tolerance_grad=1e-10, tolerance_change=1e-14)
    model, _ = ad.train.Learner(start, None, optimizer, forward=forward).fit(data, epochs=3)
    return model


def scikit_learns(data: Data, alpha: float) -> tuple[Array, float]:
    """The same coefficients and intercept from the normal equations."""
    from sklearn.linear_model import Ridge

    ridge = Ridge(alpha).fit(data.x, data.y[:, 0])
    return ridge.coef_, ridge.intercept_


def r2(model: ad.nn.Linear, data: Data) -> float:
    """The part of the variance that is explained."""
    return float(ad.train.R2().compute(model(data.x), data.y))


def draw(path: Path, names: list[str], models: list[Any], train: Data, test: Data) -> None:
    """Coefficients over the penalty, R2 over the penalty, and predictions against the truth."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(15, 5), layout="constrained")
    left, middle, right = figure.subplots(1, 3, width_ratios=(1.3, 1, 1))
    ours = np.array([model.weight.numpy()[0] for model in models])
    theirs = np.array([scikit_learns(train, alpha)[0] for alpha in ALPHAS])
    for i, name in enumerate(names):
        (line,) = left.semilogx(ALPHAS, ours[:, i], label=name)
        left.plot(ALPHAS[::2], theirs[::2, i], "o", color=line.get_color(), fillstyle="none", markersize=6)
    left.axhline(0, color="gray", linewidth=0.8)
    left.set(xlabel="alpha, strength of the penalty", title="Coefficients: adjoint (lines), scikit-learn (circles)")
    left.legend(ncols=2, fontsize=8, loc="upper right")

    scores = [[r2(model, data) for model in models] for data in (train, test)]
    for score, label in zip(scores, ("learnt from", "unseen"), strict=True):
        middle.semilogx(ALPHAS, score, label=label)
    middle.axvline(ALPHAS[SHOWN], color="gray", linestyle="--", linewidth=0.8)
    middle.set(xlabel="alpha", ylabel="R2", title="Variance that is explained")
    middle.legend()

    predicted = models[SHOWN](test.x).numpy()
    right.plot(test.y, predicted, "o", color="tab:orange", alpha=0.7)
    right.axline((150, 150), slope=1, color="gray", linestyle="--")
    right.set(
        xlabel="progression after a year", ylabel="predicted", title=f"Unseen patients, alpha = {ALPHAS[SHOWN]:.3g}"
    )
    save(figure, path)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = Parser("diabetes.py", __doc__)
    parser.add_seed("the split and the first weights")
    parser.add_out()
    options = parser.parse_args(arguments)

    with Stop("diabetes.py"):
        ad.random.seed(options.seed)
        train, test, names = load(options.seed)
        models = [fit(train, alpha) for alpha in ALPHAS]
        print(f"{'alpha':>10}{'R2, learnt from':>18}{'unseen':>10}{'largest difference to scikit-learn':>37}")
        for alpha, model in list(zip(ALPHAS, models, strict=True))[::4]:
            off = np.abs(model.weight.numpy()[0] - scikit_learns(train, alpha)[0]).max()
            print(f"{alpha:10.3g}{r2(model, train):18.4f}{r2(model, test):10.4f}{off:37.1e}")
        draw(options.out, names, models, train, test)


if __name__ == "__main__":
    main(sys.argv[1:])
