"""How sure may a network be? Calibration of a tumour classifier, before and after temperature scaling.

Small networks learn to tell malignant from benign tumours by 30 measurements, long enough to be too sure: of five
folds each is judged by the network that never saw it. One number, the temperature by which logits are divided, is then
fitted for each fold to the other four. It leaves the accuracy, 97%, as it is, and halves the cross entropy. Draws how
often predictions of each probability were true. Takes about ten seconds.

C. Guo et al., On calibration of modern neural networks (2017). Data: scikit-learn's breast cancer data, Wisconsin.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from command_line import Parser, Stop, progress, save

import adjoint as ad

FOLDS, EPOCHS, BINS = 5, 100, 5

Array = np.ndarray


def load(seed: int) -> tuple[Array, Array, Array]:
    """Measurements (569, 30), labels 0 (malignant) and 1 (benign), (569, 1), and the fold of each."""
    from sklearn.datasets import load_breast_cancer

    x, y = load_breast_cancer(return_X_y=True)
    folds = np.random.default_rng(seed).permutation(len(y)) % FOLDS
    return x.astype("float32"), y[:, None].astype("float32"), folds


def unseen_logits(x: Array, y: Array, folds: Array, seed: int) -> Array:
    """The logit of each example, from a network that learnt from the other folds."""
    logits = np.zeros_like(y)
    for fold in progress(FOLDS, "training"):
        learnt = folds != fold
        z = (x - x[learnt].mean(0)) / x[learnt].std(0)
        model = ad.nn.Sequential(ad.nn.Linear(30, 64), ad.nn.relu, ad.nn.Linear(64, 1))
        loader = ad.data.DataLoader((z[learnt], y[learnt]), 32, shuffle=True, seed=seed)
        learner = ad.train.Learner(model, ad.nn.binary_cross_entropy_with_logits, ad.optim.Adam(lr=3e-3), seed=seed)
        learner.fit(loader, epochs=EPOCHS)
        logits[~learnt] = learner.predict(z[~learnt])
    return logits


class Temperature(ad.nn.Module):
    """Logits divided by exp(log), which is positive."""

    log: ad.Tensor[Any]

    def __call__(self, logits: ad.Tensor[Any]) -> ad.Tensor[Any]:
        return logits * ad.exp(-self.log)


def cooled(logits: Array, y: Array, folds: Array) -> tuple[Array, list[float]]:
    """The logits divided by temperatures, and these: of each fold the one that is best for the others."""
    out, found = np.zeros_like(logits), []
    for fold in range(FOLDS):
        others = folds != fold
        loss = ad.nn.binary_cross_entropy_with_logits
        learner = ad.train.Learner(Temperature(ad.zeros(())), loss, ad.optim.LBFGS(line_search_fn="strong_wolfe"))
        model, _ = learner.fit((logits[others], y[others]))
        out[~others] = learner.predict(logits[~others])
        found.append(float(np.exp(model.log.item())))
    return out, found


def judged(logits: Array, y: Array) -> dict[str, float]:
    """Accuracy, cross entropy and calibration error."""
    return {
        "accuracy": ad.train.Accuracy(logits=True).compute(logits, y),
        "cross entropy": ad.nn.binary_cross_entropy_with_logits(ad.asarray(logits), y).item(),
        "calibration error": ad.train.CalibrationError(BINS, logits=True).compute(logits, y),
    }


def draw(path: Path, both: dict[str, Array], y: Array) -> None:
    """Probabilities against how often they were true, and how many examples have which probability."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(13, 5.2), layout="constrained")
    left, right = figure.subplots(1, 2)
    left.plot([0, 1], [0, 1], "--", color="gray", label="as sure as it is right")
    for (name, logits), color in zip(both.items(), ("tab:red", "tab:blue"), strict=True):
        mean, true, count = ad.train.Calibration(BINS, logits=True).compute(logits, y).T
        smooth = (true * count + 1) / (count + 2)  # Laplace's, as all or none of a few says little
        spread = np.sqrt(smooth * (1 - smooth) / count)
        error = judged(logits, y)["calibration error"]
        left.errorbar(mean, true, spread, fmt="o-", capsize=3, color=color, label=f"{name}, mean distance {error:.3f}")
        above = color == "tab:red"
        for x, part, number in zip(mean, true, count, strict=True):
            offset = {"xytext": (-18, 6) if above else (7, -12), "textcoords": "offset points", "color": color}
            left.annotate(f"{number:.0f}", (x, part), fontsize=8, **offset)
        doubt = np.minimum(1 / (1 + np.exp(np.minimum(np.abs(logits.astype(float)), 700))), 0.5)
        right.hist(doubt.clip(1e-12), np.logspace(-12, np.log10(0.5), 40), color=color, alpha=0.5, label=name)
    wrong = float(1 - judged(logits, y)["accuracy"])
    right.axvline(wrong, color="black", linestyle="--", label=f"errors that were made: {wrong:.1%}")
    left.set(
        xlabel="probability that was given to benign",
        ylabel="part that was benign",
        title="Calibration, with numbers of tumours",
        xlim=(-0.06, 1.06),
        ylim=(-0.06, 1.06),
    )
    right.set(
        xscale="log",
        xlabel="probability of an error, as predicted (or less)",
        ylabel="tumours",
        title="How sure it was",
    )
    left.legend(loc="lower right")
    right.legend(loc="upper center")
    save(figure, path)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = Parser("breast_cancer.py", __doc__)
    parser.add_seed("the folds, the weights and the order")
    parser.add_out()
    options = parser.parse_args(arguments)

    with Stop("breast_cancer.py"):
        ad.random.seed(options.seed)
        x, y, folds = load(options.seed)
        logits = unseen_logits(x, y, folds, options.seed)
        scaled, temperatures = cooled(logits, y, folds)
        both = {"as trained": logits, "with temperature": scaled}
        for name, found in both.items():
            print(f"{name:>16}: " + ", ".join(f"{key} {value:.4f}" for key, value in judged(found, y).items()))
        print("temperatures:", ", ".join(f"{t:.2f}" for t in temperatures))
        draw(options.out, both, y)


if __name__ == "__main__":
    main(sys.argv[1:])
