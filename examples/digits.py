"""Learn to read handwritten digits, with plain tensors and `backward()`.

Trains a network of one hidden layer on scikit-learn's 1,797 scans of 8x8 pixels, prints how many
digits it reads right among those it never saw, and draws what it learnt. Ctrl-C stops the training
early; the report and the picture then show what was learnt so far. Ctrl-C twice ends everything.
"""

from __future__ import annotations

import argparse
import math
import os
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from command_line import Parser, Stop, at_least, save

import adjoint as ad

HIDDEN = 128
BATCH = 32
RATE, MOMENTUM = 0.1, 0.9
NOISE = 0.2  # on the training images, so that none is learnt by heart
TESTED = 360

Params = list[ad.Tensor[Any]]
Digits = tuple[ad.Tensor[Any], ad.Tensor[Any]]  # images and labels


# --- the data and the network ---


def load(device: ad.Autodiff[Any]) -> tuple[Digits, Digits]:
    """The scans in random order, split in those to learn from and those to test with.

    They need no gradients, so they live on the backend below the Autodiff; where they meet a tracked
    tensor they are lifted.
    """
    from sklearn.datasets import load_digits

    scans = load_digits()
    order = ad.random.permutation(len(scans.target), device=device.inner)
    images = ad.tensor(scans.data / 16, dtype=ad.float32, device=device.inner)[order]
    labels = ad.tensor(scans.target, dtype=ad.int64, device=device.inner)[order]
    return (images[TESTED:], labels[TESTED:]), (images[:TESTED], labels[:TESTED])


def initial(pixels: int, classes: int) -> Params:
    """Random weights, scaled as in K. He et al., Delving deep into rectifiers (2015), and zero biases."""
    weights = [
        ad.random.normal((pixels, HIDDEN), std=math.sqrt(2 / pixels)),
        ad.zeros(HIDDEN),
        ad.random.normal((HIDDEN, classes), std=math.sqrt(1 / HIDDEN)),
        ad.zeros(classes),
    ]
    return [w.require_grad() for w in weights]


def network(params: Params, images: ad.Tensor[Any]) -> ad.Tensor[Any]:
    """A score for each class."""
    w1, b1, w2, b2 = params
    return ad.nn.relu(images @ w1 + b1) @ w2 + b2


def read(params: Params, images: ad.Tensor[Any]) -> ad.Tensor[Any]:
    """The digits that the network sees. Runs below the Autodiff, where nothing is recorded."""
    return network([w.inner() for w in params], images).argmax(axis=1)


def train(params: Params, digits: Digits, epochs: int) -> Iterator[tuple[Params, float, float]]:
    """Gradient descent with momentum; gives parameters, loss and accuracy after every batch."""
    images, labels = digits
    steps = epochs * math.ceil(len(labels) / BATCH)
    velocities: list[Any] = [0.0] * len(params)
    step = 0
    for _ in range(epochs):
        order = ad.random.permutation(len(labels), device=images.device)
        for start in range(0, len(labels), BATCH):
            batch = order[start : start + BATCH]
            noisy = images[batch] + ad.random.normal((len(batch), images.shape[1]), std=NOISE, device=images.device)
            scores = network(params, noisy)
            loss = ad.nn.cross_entropy(scores, labels[batch])
            grads = loss.backward()  # a value: nothing was written into the parameters

            rate = RATE * (1 + math.cos(math.pi * step / steps)) / 2
            velocities = [MOMENTUM * v + grads[w] for v, w in zip(velocities, params, strict=True)]
            params = [w.with_value(w.inner() - rate * v) for w, v in zip(params, velocities, strict=True)]
            step += 1
            right = scores.inner().argmax(axis=1) == labels[batch]
            yield params, loss.item(), right.astype(ad.float32).mean().item()


# --- what people see ---


def learn(params: Params, digits: Digits, epochs: int, stop: Stop) -> tuple[Params, list[float]]:
    """Train under a live progress bar; gives the parameters and the loss of every batch."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

    columns = [
        TextColumn("training"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("loss {task.fields[loss]:.4f}  accuracy {task.fields[accuracy]:.1%}"),
    ]
    batches = math.ceil(len(digits[1]) / BATCH)
    losses: list[float] = []
    smooth = {"loss": math.log(10), "accuracy": 0.1}
    with Progress(*columns, console=Console(stderr=True)) as progress:
        task = progress.add_task("", total=epochs * batches, **smooth)
        for learnt, loss, accuracy in train(params, digits, epochs):
            params = learnt
            losses.append(loss)
            weight = max(1 / len(losses), 1 / batches)  # the average of about one epoch
            for name, value in (("loss", loss), ("accuracy", accuracy)):
                smooth[name] += weight * (value - smooth[name])
            progress.update(task, advance=1, **smooth)
            if stop.asked:
                break
    return params, losses


def draw(path: Path, losses: Sequence[float], test: Digits, seen: ad.Tensor[Any], batches: int) -> None:
    """The loss curve, and test images with what was read in them: the wrong ones first, in red."""
    from matplotlib.figure import Figure

    rows, columns = 8, 10
    images, labels = test[0].numpy().reshape(-1, 8, 8), test[1].tolist()
    answers = seen.tolist()
    wrong = [i for i, (label, answer) in enumerate(zip(labels, answers, strict=True)) if label != answer]
    shown = (wrong + [i for i in range(len(labels)) if labels[i] == answers[i]])[: rows * columns]

    figure = Figure(figsize=(13, 6.4), layout="constrained")
    left, right = figure.subfigures(1, 2, width_ratios=(1, 1.25))
    axes = left.subplots()
    epochs = [i / batches for i in range(1, len(losses) + 1)]
    averages = [sum(losses[i : i + batches]) / len(losses[i : i + batches]) for i in range(0, len(losses), batches)]
    middles = [min(i + batches / 2, len(losses)) / batches for i in range(0, len(losses), batches)]
    axes.semilogy(epochs, losses, color="tab:blue", alpha=0.25, linewidth=0.8, label="each batch")
    axes.semilogy(middles, averages, color="tab:blue", linewidth=2, label="average over an epoch")
    axes.set(xlabel="epoch", ylabel="cross entropy", title="Loss on the training images")
    axes.grid(alpha=0.3, which="both")
    axes.legend()

    accuracy = 1 - len(wrong) / len(labels)
    marked = "none wrong" if not wrong else f"{len(wrong)} wrong, in red: what was read, then what it is"
    right.suptitle(f"Test images: {accuracy:.1%} of {len(labels)} read right; {marked}")
    for cell, i in zip(right.subplots(rows, columns).flat, shown, strict=True):
        cell.imshow(images[i], cmap="gray_r", vmin=0, vmax=1)
        is_wrong = labels[i] != answers[i]
        title = f"{answers[i]}, not {labels[i]}" if is_wrong else str(answers[i])
        cell.set_title(title, fontsize=9, pad=2, color="tab:red" if is_wrong else "black")
        cell.set(xticks=[], yticks=[])
        for spine in cell.spines.values():
            spine.set(color="tab:red" if is_wrong else "lightgray", linewidth=2.5 if is_wrong else 0.8)
    save(figure, path)


# --- the command line ---


def _device(text: str) -> ad.Autodiff[Any]:
    try:
        device = ad.device(text)
    except ad.errors.AdjointError as error:
        raise argparse.ArgumentTypeError(str(error)) from None
    if device is device.leaf:  # what computes is named alone: gradients come on top
        return ad.Autodiff(device)
    if not isinstance(device, ad.Autodiff):
        raise argparse.ArgumentTypeError(f"{device} computes without gradients; train on autodiff<{device}>")
    return device


def main(arguments: Sequence[str] | None = None) -> None:
    parser = Parser("digits.py", __doc__)
    parser.add_argument("--epochs", type=at_least(1), default=100, help="times through the training images (100)")
    parser.add_seed("the split, the weights and the noise")
    parser.add_argument(
        "--device",
        type=_device,
        default=os.environ.get("ADJOINT_DEVICE") or "autodiff<numpy>",
        help="by its name: numpy, torch:cpu, cupy:0, jax, autodiff<...>",
    )
    parser.add_out()
    options = parser.parse_args(arguments)

    with Stop("digits.py", presses=2) as stop:
        run(options, stop)


def run(options: argparse.Namespace, stop: Stop) -> None:
    ad.set_default_device(options.device)
    ad.random.seed(options.seed)
    training, test = load(options.device)
    params = initial(training[0].shape[1], 10)
    params, losses = learn(params, training, options.epochs, stop)
    seen = read(params, test[0])

    batches = math.ceil(len(training[1]) / BATCH)
    if stop.asked:
        print(f"stopped after {len(losses) / batches:.1f} of {options.epochs} epochs")
    accuracy = (seen == test[1]).astype(ad.float32).mean().item()
    print(f"loss of the last epoch: {sum(losses[-batches:]) / min(batches, len(losses)):.4f}")
    print(f"test accuracy: {accuracy:.2%} of {TESTED} images")
    draw(options.out, losses, test, seen, batches)


if __name__ == "__main__":
    try:
        try:
            main(sys.argv[1:])
        finally:
            print(end="", flush=True)  # now, where it can still be said that it fails
    except OSError as error:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # for what Python would still write at its exit
        sys.exit(f"digits.py: cannot write: {error.strerror or error}")
