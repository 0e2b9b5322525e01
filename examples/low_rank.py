"""Adaptation by few numbers: a network that reads digits learns to read them lying on their sides.

A network is trained on 8x8 scans of digits. Turned by a quarter it reads them no better than by chance. Three ways to
teach it: all weights are trained further, or the last layer alone, or `ad.nn.LowRank` adds to each weight a product of
two narrow matrices and trains these (E. Hu et al., LoRA, 2021), so that the old network can be had back by leaving them
out. Prints how many turned digits that were never seen each reads, and how many numbers were trained; draws both.
Takes fifteen seconds.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from command_line import Parser, Stop, progress, save

import adjoint as ad

HIDDEN = 128
RANKS = (1, 2, 4, 8)
SHOWN = 4  # the rank of which readings are drawn

Data = tuple[np.ndarray, np.ndarray]


class Way(NamedTuple):
    """A way to adapt: how many numbers were trained, and the model."""

    trained: int
    model: Any


def load(seed: int) -> tuple[Data, Data]:
    """Scans and labels to learn from, and a fifth of them to test with."""
    from sklearn.datasets import load_digits

    scans = load_digits()
    train, test = ad.data.split(((scans.images / 16).astype("float32"), scans.target), (0.8, 0.2), seed=seed)
    return train[:], test[:]


def turned(data: Data) -> Data:
    return np.rot90(data[0], axes=(1, 2)), data[1]


def network() -> ad.nn.Module:
    linear, relu = ad.nn.Linear, ad.nn.relu
    return ad.nn.Sequential(ad.nn.Flatten(), linear(64, HIDDEN), relu, linear(HIDDEN, HIDDEN), relu, linear(HIDDEN, 10))


def fit(model: Any, data: Data, rate: float, epochs: int, seed: int) -> Any:
    """The model after training; what is frozen in it stays."""
    batches = ad.data.DataLoader(data, 32, shuffle=True, seed=seed)
    optimizer = ad.optim.AdamW(lr=ad.optim.cosine(rate, epochs * len(batches)))
    return ad.train.Learner(model, ad.nn.cross_entropy, optimizer, seed=seed).fit(batches, epochs=epochs)[0]


def read(model: Any, data: Data) -> np.ndarray:
    """The digits that it sees."""
    return model.valid()(ad.asarray(data[0])).argmax(axis=1).numpy()


def accuracy(model: Any, data: Data) -> float:
    return float((read(model, data) == data[1]).mean())


def adapted(model: Any, data: Data, seed: int) -> dict[str, Way]:
    """All ways to adapt the model to the data."""
    starts = {"all weights": model, "the last layer": model.freeze("layers.1", "layers.3")}
    starts |= {f"rank {rank}": ad.nn.LowRank(model, rank, key=seed) for rank in RANKS}
    found = {}
    for _, (name, start) in zip(progress(len(starts), "adapting"), starts.items(), strict=True):
        rate = 3e-3 if start is model else 1e-2
        found[name] = Way(start.summary(data[0].shape).trained, fit(start, data, rate, 20, seed))
    return found


# --- what people see ---


def draw(path: Path, model: Any, ways: dict[str, Way], test: Data) -> None:
    """How many turned digits are read by how many trained numbers, and what is read before and after."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(14, 5.2), layout="constrained")
    left, right = figure.subfigures(1, 2, width_ratios=(1, 1.15))
    axes = left.subplots()
    right_ones = {name: accuracy(way.model, test) for name, way in ways.items()}
    line = [f"rank {rank}" for rank in RANKS]
    axes.plot([ways[name].trained for name in line], [right_ones[name] for name in line], color="tab:blue", zorder=1)
    for name, way in ways.items():
        color = "tab:blue" if name in line else "tab:orange"
        axes.plot(way.trained, right_ones[name], "o", color=color)
        axes.annotate(name, (way.trained, right_ones[name]), (5, -14), textcoords="offset points")
    axes.axhline(accuracy(model, test), color="gray", linestyle="--", label="before")
    axes.set(
        xscale="log",
        xlim=(400, 70_000),
        ylim=(0, 1.02),
        xlabel="numbers that were trained",
        ylabel="turned digits read right",
    )
    axes.set_title("A few numbers do most of it")
    axes.grid(alpha=0.3)
    axes.legend(loc="lower right")

    before, after = read(model, test), read(ways[f"rank {SHOWN}"].model, test)
    right.suptitle(f"What is read in turned digits: before, and with rank {SHOWN} (wrong in red)")
    for i, cell in enumerate(right.subplots(5, 12).flat):
        cell.imshow(test[0][i], cmap="gray_r", vmin=0, vmax=1)
        for x, said in ((0.2, before[i]), (0.8, after[i])):
            color = "black" if said == test[1][i] else "tab:red"
            cell.text(x, 1.06, str(said), color=color, ha="center", transform=cell.transAxes)
        cell.set(xticks=[], yticks=[])
    save(figure, path)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = Parser("low_rank.py", __doc__)
    parser.add_seed("the split and the weights")
    parser.add_out()
    options = parser.parse_args(arguments)

    with Stop("low_rank.py"):
        ad.random.seed(options.seed)
        train, test = load(options.seed)
        model = fit(network(), train, 3e-3, 30, options.seed)
        upright, lying = accuracy(model, test), accuracy(model, turned(test))
        print(f"trained upright: {upright:.1%} of upright digits are read, {lying:.1%} of turned ones")
        ways = adapted(model, turned(train), options.seed)
        for name, way in ways.items():
            print(
                f"{name:15}{way.trained:7,} numbers trained, {accuracy(way.model, turned(test)):.1%} of turned digits"
            )
        draw(options.out, model, ways, turned(test))


if __name__ == "__main__":
    main(sys.argv[1:])
