"""Two years of airline passengers, forecast by an LSTM.

Networks of one LSTM layer read twelve months' changes of the logarithm of passengers, and learn to tell the next one.
From 1949 to 1958 they forecast 1959 and 1960 month by month, each from its own forecasts. Their mean has 40 to 50% less
error than repeating 1958. It does not beat a simple rule, last year's months times the mean growth: ten years
of months are few for a network. Takes about ten seconds.

Numbers: international airline passengers in thousands, G. Box and G. Jenkins, Time series analysis (1976), series G.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from command_line import Parser, Stop, progress, save

import adjoint as ad

PASSENGERS = np.array([
    [112, 118, 132, 129, 121, 135, 148, 148, 136, 119, 104, 118],
    [115, 126, 141, 135, 125, 149, 170, 170, 158, 133, 114, 140],
    [145, 150, 178, 163, 172, 178, 199, 199, 184, 162, 146, 166],
    [171, 180, 193, 181, 183, 218, 230, 242, 209, 191, 172, 194],
    [196, 196, 236, 235, 229, 243, 264, 272, 237, 211, 180, 201],
    [204, 188, 235, 227, 234, 264, 302, 293, 259, 229, 203, 229],
    [242, 233, 267, 269, 270, 315, 364, 347, 312, 274, 237, 278],
    [284, 277, 317, 313, 318, 374, 413, 405, 355, 306, 271, 306],
    [315, 301, 356, 348, 355, 422, 465, 467, 404, 347, 305, 336],
    [340, 318, 362, 348, 363, 435, 491, 505, 404, 359, 310, 337],
    [360, 342, 406, 396, 420, 472, 548, 559, 463, 407, 362, 405],
    [417, 391, 419, 461, 472, 535, 622, 606, 508, 461, 390, 432],
], dtype=float).ravel()  # fmt: skip
FIRST, YEAR, AHEAD = 1949, 12, 24
NETWORKS, EPOCHS = 5, 150

Array = np.ndarray


class Network(ad.nn.Module):
    """The next change from those before, (batch, months, 1)."""

    lstm: ad.nn.LSTM
    last: ad.nn.Linear

    def __init__(self, size: int) -> None:
        self.lstm = ad.nn.LSTM(1, size, batch_first=True)
        self.last = ad.nn.Linear(size, 1)

    def __call__(self, x: ad.Tensor[Any]) -> ad.Tensor[Any]:
        outputs, _ = self.lstm(x)
        return self.last(outputs[:, -1:])


def train(changes: Array, seed: int) -> ad.train.Learner:
    """A network that has learnt the changes, of shape (months, 1)."""
    loader = ad.data.DataLoader(ad.data.windows(changes, YEAR, horizon=1), 32, shuffle=True, seed=seed)
    optimizer = ad.optim.Adam(lr=ad.optim.cosine(0.01, EPOCHS * len(loader)))
    learner = ad.train.Learner(Network(16), ad.nn.mse_loss, optimizer, clip=1.0, seed=seed)
    learner.fit(loader, epochs=EPOCHS)
    return learner


def forecast(known: Array, months: int, seed: int) -> tuple[Array, list[float]]:
    """Passengers of the next months by a network, and its losses."""
    changes = np.diff(np.log(known))
    scale = changes.std()
    series = (changes / scale).astype("float32")[:, None]
    learner = train(series, seed)
    for _ in range(months):
        series = np.concatenate([series, learner.predict(series[None, -YEAR:])[0]])
    return known[-1] * np.exp(np.cumsum(series[-months:, 0].astype(float) * scale)), learner.run.history["loss"]


def simple(known: Array, months: int) -> tuple[Array, Array]:
    """The last year again; and the last year, grown by the mean growth of all years."""
    again = np.resize(known[-YEAR:], months)
    growth = np.log(known[YEAR:] / known[:-YEAR]).mean()
    return again, again * np.exp(growth * (1 + np.arange(months) // YEAR))


def rmse(prediction: Array) -> float:
    return ad.train.RMSE().compute(prediction, PASSENGERS[-AHEAD:])


def draw(path: Path, forecasts: dict[str, Array], each: Array, losses: list[list[float]]) -> None:
    """The forecasts with the truth, and how the networks learnt."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(14, 5), layout="constrained")
    left, right = figure.subplots(1, 2, width_ratios=(2.2, 1))
    time = FIRST + np.arange(len(PASSENGERS)) / YEAR
    left.plot(time, PASSENGERS, color="black", linewidth=1.2, label="passengers")
    left.axvline(time[-AHEAD] - 0.5 / YEAR, color="gray", linestyle=":", label="known until here")
    left.plot(time[-AHEAD:], each.T, color="tab:orange", linewidth=0.7, alpha=0.5)
    for (name, values), style in zip(forecasts.items(), ("o-", "--", ":"), strict=True):
        color = "tab:orange" if style == "o-" else "tab:blue"
        label = f"{name}, error {rmse(values):.0f}"
        left.plot(time[-AHEAD:], values, style, color=color, markersize=4, label=label)
    left.set(xlim=(1954, 1961.2), xlabel="year", ylabel="passengers a month (thousands)", title="Airline passengers")
    left.legend(loc="upper left")

    right.semilogy(range(1, EPOCHS + 1), np.transpose(losses), color="tab:orange", linewidth=0.8)
    right.set(xlabel="epoch", ylabel="mean squared error (of scaled changes)", title=f"Learning, {len(each)} networks")
    right.grid(alpha=0.3, which="both")
    save(figure, path)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = Parser("airline.py", __doc__)
    parser.add_seed("the weights and the order")
    parser.add_out()
    options = parser.parse_args(arguments)

    with Stop("airline.py"):
        ad.random.seed(options.seed)
        known = PASSENGERS[:-AHEAD]
        first = NETWORKS * options.seed
        found = [forecast(known, AHEAD, first + k) for k in progress(NETWORKS, "training")]
        each = np.array([values for values, _ in found])
        again, grown = simple(known, AHEAD)
        forecasts = {"LSTM, mean of networks": each.mean(0), "1958 again": again, "1958, with mean growth": grown}
        for name, values in forecasts.items():
            print(f"{name:>24}: root of the mean squared error {rmse(values):6.2f} thousand")
        draw(options.out, forecasts, each, [losses for _, losses in found])


if __name__ == "__main__":
    main(sys.argv[1:])
