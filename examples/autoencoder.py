"""A variational autoencoder: scans of digits are written as two numbers each, and read back.

One network gives for a scan of 8x8 pixels a normal distribution of two numbers z; another gives from z how dark each
pixel is. They are trained together to make the evidence lower bound large, E log p(x | z) - KL(q(z | x) || p(z)), which
is at most log p(x) (D. Kingma and M. Welling, Auto-encoding variational Bayes, 2013). Prints the bound of digits that
were never seen, and what it would be without z; draws the plane of z. Takes fifteen seconds.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from command_line import Parser, Stop, at_least, save

import adjoint as ad

LEVELS = 16  # a pixel is an integer from 0 to 16
CHOICES = ad.tensor([math.log(math.comb(LEVELS, k)) for k in range(LEVELS + 1)])
HIDDEN = 128
SIDE = 14  # of the drawn plane, in digits

Data = tuple[np.ndarray, np.ndarray]


def load(seed: int) -> tuple[Data, Data]:
    """Images and labels to train with, and a fifth of them held out."""
    from sklearn.datasets import load_digits

    scans = load_digits()
    train, test = ad.data.split((scans.data.astype("float32"), scans.target), (0.8, 0.2), seed=seed)
    return train[:], test[:]


class Autoencoder(ad.nn.Module):
    encoder: ad.nn.Module
    decoder: ad.nn.Module

    def __init__(self) -> None:
        self.encoder = layers(64, 4)
        self.decoder = layers(2, 64)

    def encode(self, x: Any) -> tuple[Any, Any]:
        """The mean of z, and the logarithm of its standard deviation."""
        found = self.encoder(x / LEVELS)
        return found[:, :2], found[:, 2:]

    def __call__(self, x: Any) -> Any:
        """The evidence lower bound of each image, with one draw of z."""
        mean, log_std = self.encode(x)
        z = mean + ad.exp(log_std) * ad.random.normal(mean.shape)
        divergence = (ad.exp(2 * log_std) + mean**2 - 1) / 2 - log_std  # from the standard normal distribution
        return log_likelihood(x, self.decoder(z)) - divergence.sum(axis=1)


def layers(inputs: int, outputs: int) -> ad.nn.Module:
    linear, gelu = ad.nn.Linear, ad.nn.gelu
    return ad.nn.Sequential(linear(inputs, HIDDEN), gelu, linear(HIDDEN, HIDDEN), gelu, linear(HIDDEN, outputs))


def log_likelihood(x: Any, logits: Any) -> Any:
    """log p(x | z) of each image. Given z a pixel is binomial: so many of 16 points are dark."""
    points = ad.nn.binary_cross_entropy_with_logits(logits, x / LEVELS, reduction="none")
    return (CHOICES[x.astype(int)] - LEVELS * points).sum(axis=1)


def without_code(train: np.ndarray, test: np.ndarray) -> float:
    """The mean of log p(x) where each pixel is as dark as it is on average."""
    share = (train.sum(0) + 0.5) / (LEVELS * len(train) + 1)
    return float(log_likelihood(ad.asarray(test), ad.log(share / (1 - share)) + ad.zeros(test.shape)).mean())


def fit(train: np.ndarray, test: np.ndarray, epochs: int, seed: int) -> Autoencoder:
    def forward(model: Any, x: Any, key: int) -> tuple[Any, Any, Any]:
        return -model(x).mean(), x, x

    batches = ad.data.DataLoader(train, 64, shuffle=True, seed=seed)
    optimizer = ad.optim.Adam(lr=ad.optim.cosine(3e-3, epochs * len(batches)))
    progress = ad.train.Progress()
    learner = ad.train.Learner(Autoencoder(), None, optimizer, callbacks=[progress], forward=forward, seed=seed)
    model, _ = learner.fit(batches, [test], epochs)
    return model


def held_out(model: Autoencoder, test: np.ndarray, draws: int = 20) -> float:
    """The mean bound of images, by several draws of z for each."""
    return float(np.mean([model(ad.asarray(test)).mean().item() for _ in range(draws)]))


# --- what people see ---


def dark(model: Autoencoder, z: np.ndarray) -> np.ndarray:
    """The images of points of the plane."""
    return ad.nn.sigmoid(model.decoder(ad.asarray(z.astype("float32")))).numpy().reshape(-1, 8, 8)


def mosaic(images: np.ndarray) -> np.ndarray:
    """Images of shape (rows, columns, height, width) as one, with a pixel of white around each."""
    rows, columns, height, width = images.shape
    padded = np.pad(images, ((0, 0), (0, 0), (1, 1), (1, 1)))
    return padded.swapaxes(1, 2).reshape(rows * (height + 2), columns * (width + 2))


def draw(path: Path, model: Autoencoder, test: Data, bound: float) -> None:
    """Where held-out digits are in the plane, what is written there, and some digits beside what is read back."""
    from matplotlib.figure import Figure

    x, labels = test
    z = model.encode(ad.asarray(x))[0].numpy()
    figure = Figure(figsize=(16, 5.6), layout="constrained")
    left, middle, right = figure.subplots(1, 3, width_ratios=(1.1, 1, 1))

    points = left.scatter(*z.T, c=labels, cmap="tab10", vmin=-0.5, vmax=9.5, s=14)
    for digit in range(10):
        place, box = (
            np.median(z[labels == digit], axis=0),
            {"facecolor": "white", "alpha": 0.75, "linewidth": 0, "pad": 1},
        )
        left.text(*place, str(digit), fontsize=17, weight="bold", ha="center", va="center", bbox=box)
    figure.colorbar(points, ax=left, ticks=range(10), shrink=0.8)
    left.set(xlabel="$z_1$", ylabel="$z_2$", title=f"Held-out digits as two numbers (bound: {bound:.1f} nats)")

    at = ad.stats.norm.ppf((np.arange(SIDE) + 0.5) / SIDE).numpy()  # as many digits z between any two lines
    plane = np.stack(np.meshgrid(at, at[::-1]), axis=-1).reshape(-1, 2)
    middle.imshow(mosaic(dark(model, plane).reshape(SIDE, SIDE, 8, 8)), cmap="gray_r", vmin=0, vmax=1)
    ticks = np.arange(0, SIDE, 2)
    middle.set_xticks(10 * ticks + 4.5, [f"{v:.1f}" for v in at[ticks]])
    middle.set_yticks(10 * ticks + 4.5, [f"{v:.1f}" for v in at[::-1][ticks]])
    middle.set(xlabel="$z_1$", ylabel="$z_2$", title="What is written in the plane")

    shown = [int(np.flatnonzero(labels == digit)[i]) for i in range(5) for digit in range(10)]
    pairs = np.stack([x[shown].reshape(5, 10, 8, 8) / LEVELS, dark(model, z[shown]).reshape(5, 10, 8, 8)], axis=1)
    right.imshow(mosaic(pairs.reshape(10, 10, 8, 8)), cmap="gray_r", vmin=0, vmax=1)
    right.hlines(20 * np.arange(1, 5) - 0.5, 0, 99, color="lightgray", linewidth=0.8)
    right.set(xticks=[], yticks=[], title="Held-out digits, each above what is read back")
    save(figure, path)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = Parser("autoencoder.py", __doc__)
    parser.add_argument("--epochs", type=at_least(1), default=150, help="times through the training images (150)")
    parser.add_seed("the split, the weights and the draws")
    parser.add_out()
    options = parser.parse_args(arguments)

    with Stop("autoencoder.py"):
        ad.random.seed(options.seed)
        train, test = load(options.seed)
        model = fit(train[0], test[0], options.epochs, options.seed)
        bound = held_out(model, test[0])
        plain = without_code(train[0], test[0])
        print(f"bound of log p(x), held out: {bound:.1f} nats per digit; log p(x) without z: {plain:.1f}")
        draw(options.out, model, test, bound)


if __name__ == "__main__":
    main(sys.argv[1:])
