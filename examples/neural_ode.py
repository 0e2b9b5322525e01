"""A neural differential equation: lynxes and hares, without knowing that one eats the other.

The rates at which both populations change are a small network of both, dz/dt = f(z), where z are the logarithms. It is
fitted to the pelts of 1900 to 1915: first to differences between years, then to the record, by gradients of the
solution with the adjoint equation (R. Chen et al., Neural ordinary differential equations, 2018). Prints the error of
the years that it was fitted to and of the five that follow, beside the equations of Lotka and Volterra, which
lynx_hare.py fits, and beside simple guesses; draws the curves and what the network has found. Takes half a minute.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import lynx_hare
import numpy as np
from command_line import Parser, Stop, progress, save
from lynx_hare import PELTS, YEARS

import adjoint as ad

FITTED = 16  # years; the others are to be foretold
LOGS = np.log(PELTS)
MIDDLE, SPREAD = LOGS[:FITTED].mean(0), LOGS[:FITTED].std(0)
RECORD = (LOGS - MIDDLE) / SPREAD  # what the network sees
PENALTY = 1e-3  # of the squares of weights

Array = np.ndarray


class Populations(ad.nn.Module):
    """Where they start, and the rates of change at any state."""

    start: ad.Tensor
    rates: ad.nn.Module

    def __init__(self) -> None:
        self.start = ad.tensor(RECORD[0])
        self.rates = ad.nn.Sequential(ad.nn.Linear(2, 12), ad.tanh, ad.nn.Linear(12, 2))

    def __call__(self, years: Array, gradient: str = "adjoint", tolerance: float = 1e-4) -> ad.Tensor:
        """The states in these years, of shape (years, 2)."""
        return ad.odeint(
            lambda z, t, rates: rates(z), self.start, years - YEARS[0], self.rates,
            rtol=tolerance, atol=tolerance, gradient=gradient,
        )  # fmt: skip


def penalty(model: Populations) -> ad.Tensor:
    return PENALTY * sum((w**2).sum() for w in model.rates.named_parameters().values())


def to_differences(model: Populations) -> ad.Tensor:
    """A loss that needs no solution, and so is a quick start."""
    z = RECORD[:FITTED]
    return ((model.rates(ad.tensor(z)) - np.gradient(z, axis=0)) ** 2).mean() + penalty(model)


def to_record(model: Populations, count: int = FITTED, **options: Any) -> ad.Tensor:
    """The loss over the first years of the record."""
    return ((model(YEARS[:count], **options) - RECORD[:count]) ** 2).mean() + penalty(model)


def descend(model: Populations, loss: Callable[[Populations], ad.Tensor], steps: int, what: str) -> Populations:
    optimizer = ad.optim.Adam(lr=ad.optim.cosine(0.03, steps))
    state = optimizer.init(model)
    for _ in progress(steps, what):
        model, state = optimizer.step(model, ad.grad(loss)(model), state)
    return model


def fit() -> Populations:
    """Half of the years come first: over a long time a wrong start goes anywhere, and its gradients say little."""
    model = descend(Populations(), to_differences, 300, "differences")
    model = descend(model, lambda model: to_record(model, FITTED // 2), 50, "half of the record")
    return descend(model, to_record, 150, "the record")


def foretold(model: Populations, years: Array) -> Array:
    """The logarithms of pelts."""
    return model.valid()(years).numpy() * SPREAD + MIDDLE


def guesses() -> dict[str, Array]:
    """What else the logarithms of all years might be: by the mechanism, and by rules of thumb."""
    pelts = PELTS[:FITTED]
    q = lynx_hare.fit(pelts[None], lynx_hare.first_guess(pelts), "Lotka and Volterra").q[0]
    before = LOGS[: FITTED - 1]
    return {
        "Lotka, Volterra": lynx_hare.solution(ad.tensor(q), YEARS).numpy(),
        "the mean": np.broadcast_to(MIDDLE, LOGS.shape),
        "the last year": np.concatenate([LOGS[:1], before, np.tile(LOGS[FITTED - 1], (len(LOGS) - FITTED, 1))]),
    }


def errors(logs: Array) -> tuple[float, float]:
    """The root mean squares of errors in the years that were fitted, and in those after."""
    squares = (logs - LOGS) ** 2
    return float(np.sqrt(squares[:FITTED].mean())), float(np.sqrt(squares[FITTED:].mean()))


# --- what people see ---


def draw(path: Path, model: Populations, mechanism: Array) -> None:
    """Both populations over the years, and in the plane of both the rates that the network has found."""
    from matplotlib.figure import Figure

    years = np.linspace(YEARS[0], YEARS[-1], 401)
    logs = foretold(model, years)
    figure = Figure(figsize=(14, 5.2), layout="constrained")
    left, right = figure.subplots(1, 2, width_ratios=(1.25, 1))
    for i, (name, color) in enumerate((("hares", "tab:blue"), ("lynxes", "tab:red"))):
        left.plot(years, np.exp(logs[:, i]), color=color, label=f"{name}, network")
        left.plot(YEARS, np.exp(mechanism[:, i]), ":", color=color, label=f"{name}, Lotka and Volterra")
        left.plot(YEARS, PELTS[:, i], "o", color=color, markersize=4, label=f"{name}, recorded")
    left.axvspan(YEARS[FITTED - 1], YEARS[-1], color="lightgray", alpha=0.5, zorder=0, label="foretold")
    left.set(xlabel="year", ylabel="pelts (thousands)", yscale="log", title="Fitted to 1915, and from there foretold")
    left.set_xticks(YEARS[::4])
    left.set_yticks([5, 10, 20, 50, 100], ["5", "10", "20", "50", "100"])
    left.minorticks_off()
    left.set_ylim(3, 200)
    left.legend(ncols=3, fontsize=8, loc="upper left")

    axes = [np.linspace(low - 0.25, high + 0.25, 30) for low, high in zip(LOGS.min(0), LOGS.max(0), strict=True)]
    plane = np.stack(np.meshgrid(*axes), axis=-1)
    rates = model.valid().rates(ad.tensor((plane - MIDDLE) / SPREAD)).numpy() * SPREAD
    speed = np.linalg.norm(rates, axis=-1)
    right.streamplot(*axes, rates[..., 0], rates[..., 1], color=speed, cmap="Greys", density=1.1, linewidth=0.8)
    right.plot(*logs[years <= YEARS[FITTED - 1]].T, color="tab:green", label="fitted")
    right.plot(*logs[years >= YEARS[FITTED - 1]].T, "--", color="tab:green", label="foretold")
    right.plot(*LOGS.T, "o", color="black", markersize=3, label="recorded")
    for place, set_ticks in enumerate((right.set_xticks, right.set_yticks)):
        marks = [m for m in (5, 10, 20, 50) if axes[place][0] < np.log(m) < axes[place][-1]]
        set_ticks(np.log(marks), [str(m) for m in marks])
    right.set(xlabel="hares (thousands of pelts)", ylabel="lynxes (thousands of pelts)", title="What the network found")
    right.legend(loc="upper left")
    save(figure, path)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = Parser("neural_ode.py", __doc__)
    parser.add_seed("the weights")
    parser.add_out()
    options = parser.parse_args(arguments)

    with Stop("neural_ode.py"), ad.use_dtype(ad.float64):
        ad.random.seed(options.seed)
        others = guesses()
        model = fit()
        print(f"{'errors of logarithms':22}{'1900 to 1915':>14}{'1916 to 1920':>14}")
        for name, logs in ({"network": foretold(model, YEARS)} | others).items():
            fitted, later = errors(logs)
            print(f"{name:22}{fitted:14.3f}{later:14.3f}")
        draw(options.out, model, others["Lotka, Volterra"])


if __name__ == "__main__":
    main(sys.argv[1:])
