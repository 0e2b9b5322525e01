"""Greeks: how the price of an option changes with the market.

A bank that sells a call must know how its price depends on the stock, the volatility, the rate and the time. These
derivatives are the Greeks: delta, gamma, vega, rho, theta. Here they are gradients of the formula of Black and
Scholes, for all strikes at once, and of a simulation of an Asian call, for which there is no formula. The picture
shows them by the price of the stock.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from command_line import Parser, Stop, at_least, save

import adjoint as ad

STRIKE, VOLATILITY, RATE, YEARS = 100.0, 0.2, 0.03, 1.0
STEPS = 50  # of a path, whose mean the Asian call pays on

Array = np.ndarray


def call(stock: Any, volatility: Any, rate: Any, years: Any) -> Any:
    """The price of a European call (Black and Scholes, 1973)."""
    spread = volatility * ad.sqrt(years)
    d1 = (ad.log(stock / STRIKE) + (rate + volatility**2 / 2) * years) / spread
    return stock * ad.special.ndtr(d1) - STRIKE * ad.exp(-rate * years) * ad.special.ndtr(d1 - spread)


def greeks(stocks: Array) -> dict[str, Array]:
    """Of the European call, for each price of the stock."""
    market = np.array([VOLATILITY, RATE, YEARS])  # in double precision, which Python's numbers are not in a batch
    batched = (0, None, None, None)
    delta, vega, rho, theta = ad.vmap(ad.grad(call, argnums=(0, 1, 2, 3)), in_axes=batched)(stocks, *market)
    gamma = ad.vmap(ad.grad(ad.grad(call)), in_axes=batched)(stocks, *market)
    return {"delta": delta, "gamma": gamma, "vega": vega, "rho": rho, "theta": -theta}


def asian(stock: Any, volatility: Any, draws: Array) -> Any:
    """The price of a call on the mean of the path, by simulation: draws are paths of normal numbers."""
    dt = YEARS / draws.shape[1]
    logs = ad.cumulative_sum((RATE - volatility**2 / 2) * dt + volatility * np.sqrt(dt) * draws, axis=1)
    means = (stock * ad.exp(logs)).mean(axis=1)
    return np.exp(-RATE * YEARS) * ad.nn.relu(means - STRIKE).mean()


def simulated(stocks: Array, draws: Array) -> tuple[Array, Array]:
    """Delta and vega of the Asian call."""
    slopes = [ad.grad(asian, argnums=(0, 1))(stock, VOLATILITY, draws) for stock in stocks]
    delta, vega = np.array(slopes).T
    return delta, vega


def draw(path: Path, stocks: Array, exact: dict[str, Array], few: Array, delta: Array, vega: Array) -> None:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(13, 7), layout="constrained")
    grid = figure.subplots(2, 3)
    grid[0, 0].plot(stocks, np.asarray(call(stocks, VOLATILITY, RATE, YEARS)))
    grid[0, 0].set(title="price", xlabel="price of the stock")
    for axes, (name, values) in zip(grid.flat[1:], exact.items(), strict=True):
        axes.plot(stocks, values, label="European call")
        axes.set(title=name, xlabel="price of the stock")
    for axes, values in ((grid[0, 1], delta), (grid[1, 0], vega)):
        axes.plot(few, values, "o", label="Asian call, simulated")
    grid[0, 1].legend()
    save(figure, path)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = Parser("greeks.py", __doc__)
    parser.add_argument("--paths", type=at_least(10), default=20_000, help="of the simulation (20,000)")
    parser.add_seed("the paths")
    parser.add_out()
    options = parser.parse_args(arguments)

    with Stop("greeks.py"):
        stocks, few = np.linspace(60, 140, 161), np.linspace(60, 140, 9)
        exact = greeks(stocks)
        delta, vega = simulated(few, np.random.default_rng(options.seed).normal(size=(options.paths, STEPS)))
        print("at 100: " + ", ".join(f"{name} {values[80]:.4f}" for name, values in exact.items()))
        print(f"Asian call at 100: delta {delta[4]:.4f}, vega {vega[4]:.4f}")
        draw(options.out, stocks, exact, few, delta, vega)


if __name__ == "__main__":
    main(sys.argv[1:])
