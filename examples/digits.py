"""Learn to read handwritten digits, with a small convolutional network.

Of scikit-learn's 1,797 scans of 8x8 pixels it learns from 1,437, each moved by up to a pixel whenever it is seen, and
reads 99% of the other 360 right, after some fifteen seconds. Draws how it learnt and what it got wrong; `--report` also
writes a page about the training. Ctrl-C stops early, with what was learnt so far; Ctrl-C twice ends everything. With
`--checkpoints` the same command goes on where it was stopped or killed, and ends with the same numbers.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from command_line import Parser, Stop, at_least, save

import adjoint as ad

BATCH, RATE, TESTED = 32, 3e-3, 360

Array = np.ndarray
Batch = tuple[Array, Array]  # images, (batch, 1, 8, 8), and labels


# --- the data and the network ---


def load() -> tuple[Any, Batch]:
    """The scans to learn from, and those to test with, which are always the same."""
    from sklearn.datasets import load_digits

    scans = load_digits()
    images = (scans.images[:, None] / 16).astype("float32")
    learnt, tested = ad.data.split((images, scans.target), (len(images) - TESTED, TESTED), seed=0)
    return learnt, tested.take(np.arange(TESTED))


def moved(batch: Batch, rng: np.random.Generator) -> Batch:
    """Each image by up to a pixel up, down and sideways, so that none is learnt by heart."""
    images, labels = batch
    padded = np.pad(images, ((0, 0), (0, 0), (1, 1), (1, 1)))
    rows, columns = rng.integers(0, 3, (2, len(images)))
    return np.stack([x[:, r : r + 8, c : c + 8] for x, r, c in zip(padded, rows, columns, strict=True)]), labels


class Network(ad.nn.Module):
    """Three convolutions, with half of the rows and columns after two of them, and a score for each digit."""

    first: ad.nn.Conv2d
    second: ad.nn.Conv2d
    third: ad.nn.Conv2d
    last: ad.nn.Linear

    def __init__(self) -> None:
        self.first = ad.nn.Conv2d(1, 16, 3, padding=1)
        self.second = ad.nn.Conv2d(16, 32, 3, padding=1)
        self.third = ad.nn.Conv2d(32, 64, 3, padding=1)
        self.last = ad.nn.Linear(64 * 4 * 4, 10)

    def __call__(self, images: ad.Tensor[Any]) -> ad.Tensor[Any]:
        x = ad.nn.relu(self.second(ad.nn.relu(self.first(images))))
        x = ad.nn.relu(self.third(ad.nn.max_pool2d(x, 2)))
        return self.last(ad.nn.dropout(x.reshape((len(x), -1)), 0.5, self.training))


class CtrlC(ad.train.Callback):
    """Ends the training after the step in which it was asked for."""

    def __init__(self, stop: Stop) -> None:
        self.ctrl_c = stop

    def step(self, run: ad.train.Run) -> None:
        if self.ctrl_c.asked:
            run.stop("Ctrl-C")


def teacher(train: ad.data.DataLoader, options: argparse.Namespace, stop: Stop) -> ad.train.Learner:
    """A new network and the loop that trains it, at a rate that falls to zero along half a cosine."""
    ad.random.seed(options.seed)
    callbacks: list[ad.train.Callback] = [ad.train.Progress(), CtrlC(stop)]
    if options.report:
        callbacks.append(ad.train.Report(options.report, title="Handwritten digits"))
    optimizer = ad.optim.Adam(lr=ad.optim.cosine(RATE, options.epochs * len(train)))
    metrics = [ad.train.Accuracy(), ad.train.ConfusionMatrix()]
    return ad.train.Learner(Network(), ad.nn.cross_entropy, optimizer, metrics, callbacks, seed=options.seed)


# --- what people see ---


def draw(path: Path, history: ad.train.History, steps: int, test: Batch, scores: Array) -> None:
    """Loss and errors over the training, and test images with what was read in them: the wrong ones first, in red."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(13, 6.4), layout="constrained")
    left, right = figure.subfigures(1, 2, width_ratios=(1, 1.25))
    above, below = left.subplots(2, 1, sharex=True)
    above.semilogy(np.array(history.steps["step"]) / steps, history.steps["loss"], alpha=0.3, linewidth=0.8)
    epochs = np.arange(1, len(history) + 1)
    if len(history):
        above.semilogy(epochs - 0.5, history["loss"], color="tab:blue", label="training, each step and each epoch")
        above.semilogy(epochs, history["valid_loss"], color="tab:orange", label="test")
        above.legend()
        for column, label in (("accuracy", "training: moved images, with dropout"), ("valid_accuracy", "test")):
            below.plot(epochs, 100 * (1 - np.array(history[column])), label=label)
        below.legend()
    above.set(ylabel="cross entropy", title="Loss")
    below.set(xlabel="epoch", ylabel="%", ylim=(0, 10), title="Digits read wrong")
    for axes in (above, below):
        axes.grid(alpha=0.3)

    images, labels = test
    answers = scores.argmax(axis=1)
    order = np.argsort(answers == labels, kind="stable")[:80]
    wrong = int((answers != labels).sum())
    marked = "none wrong" if not wrong else f"{wrong} wrong, in red: what was read, then what it is"
    right.suptitle(f"Test images: {1 - wrong / TESTED:.1%} of {TESTED} read right; {marked}")
    for cell, i in zip(right.subplots(8, 10).flat, order, strict=True):
        failed = answers[i] != labels[i]
        cell.imshow(images[i, 0], cmap="gray_r", vmin=0, vmax=1)
        title = f"{answers[i]}, not {labels[i]}" if failed else str(answers[i])
        cell.set_title(title, fontsize=9, pad=2, color="tab:red" if failed else "black")
        cell.set(xticks=[], yticks=[])
        for spine in cell.spines.values():
            spine.set(color="tab:red" if failed else "lightgray", linewidth=2.5 if failed else 0.8)
    save(figure, path)


# --- the command line ---


def _device(text: str) -> ad.Backend:
    try:
        return ad.device(text)
    except ad.errors.AdjointError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def main(arguments: Sequence[str] | None = None) -> None:
    parser = Parser("digits.py", __doc__)
    parser.add_argument("--epochs", type=at_least(1), default=30, help="times through the training images (30)")
    parser.add_seed("the weights, the order and the moves")
    device = os.environ.get("ADJOINT_DEVICE") or "numpy"
    parser.add_argument("--device", type=_device, default=device, help="by its name: numpy, torch:cpu, cupy:0, jax")
    parser.add_argument("--report", type=Path, help="a page about the training to write, such as digits.html")
    parser.add_argument("--checkpoints", type=Path, help="a folder of checkpoints to go on from, and to keep them in")
    parser.add_out()
    options = parser.parse_args(arguments)

    with Stop("digits.py", presses=2) as stop:
        ad.set_default_device(options.device)
        learnt, test = load()
        train = ad.data.DataLoader(learnt, BATCH, shuffle=True, seed=options.seed, batch_transform=moved)
        learner = teacher(train, options, stop)
        _, history = learner.fit(train, test, options.epochs, checkpoints=options.checkpoints)
        if stop.asked:
            print(f"stopped after {learner.run.step / len(train):.1f} of {options.epochs} epochs")
        found = learner.evaluate(test)
        print(f"test loss: {found['loss']:.4f}")
        print(f"test accuracy: {found['accuracy']:.2%} of {TESTED} images", flush=True)
        draw(options.out, history, len(train), test, learner.predict(test))


if __name__ == "__main__":
    try:
        try:
            main(sys.argv[1:])
        finally:
            print(end="", flush=True)  # now, where it can still be said that it fails
    except ad.errors.FileError as error:  # of a checkpoint
        sys.exit(f"digits.py: {error}")
    except OSError as error:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # for what Python would still write at its exit
        sys.exit(f"digits.py: cannot write: {error.strerror or error}")
