"""Greeks: how the value of a portfolio of options changes with the market.

A bank holds calls and puts on three stocks, and an option to exchange one stock for another. It must know how their
value depends on each stock, its volatility, the rate, the correlation and the time: the Greeks. All first derivatives
are one gradient of the value, and all second ones are a Hessian, which also says how the stocks' risks meet. They are
compared with the formulas of textbooks, and with the gradient of a simulation of the same portfolio. The pictures show
the profit of a portfolio hedged by its deltas when two stocks move, and what the Hessian says of it.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from command_line import Parser, Stop, at_least, check, save

import adjoint as ad

STOCKS = ("A", "B", "C")
# of which stock, how many (less than 0: sold), strike, years, and 1 for a call, -1 for a put
STOCK, COUNT, STRIKE, YEARS, SIGN = np.array(
    [
        (0, 100, 100.0, 0.5, 1),
        (0, -150, 110.0, 1.0, 1),
        (0, 80, 90.0, 1.0, -1),
        (1, 60, 50.0, 0.25, 1),
        (1, -40, 45.0, 1.0, -1),
        (2, 30, 200.0, 2.0, -1),
        (2, -20, 220.0, 1.0, 1),
    ]
).T
STOCK = STOCK.astype(int)
EXCHANGES, EXCHANGE_YEARS = 200, 1.0  # options to give two of B for one of A

Array = np.ndarray


class Market(NamedTuple):
    """Prices and volatilities of the stocks, the rate, the correlation of A and B, and the years that have gone by."""

    stock: Any
    volatility: Any
    rate: Any
    correlation: Any
    time: Any


TODAY = Market(  # all of it in double precision, which functions of Python's numbers are not
    np.array([100.0, 48.0, 205.0]), np.array([0.2, 0.35, 0.25]), np.float64(0.03), np.float64(0.4), np.float64(0.0)
)


def option(stock: Any, strike: Any, volatility: Any, rate: Any, years: Any, sign: Any) -> Any:
    """The price of a European call or put (Black and Scholes, 1973)."""
    spread = volatility * ad.sqrt(years)
    d = (ad.log(stock / strike) + (rate + volatility**2 / 2) * years) / spread
    kept = strike * ad.exp(-rate * years)
    return sign * (stock * ad.special.ndtr(sign * d) - kept * ad.special.ndtr(sign * (d - spread)))


def value(market: Market) -> Any:
    """Of the portfolio. To exchange stocks is a call on one, whose strike is the other (Margrabe, 1978)."""
    stock, volatility, rate, correlation, time = market
    prices = option(stock[STOCK], STRIKE, volatility[STOCK], rate, YEARS - time, SIGN)
    a, b = volatility[0], volatility[1]
    together = ad.sqrt(a**2 + b**2 - 2 * correlation * a * b)
    exchange = option(stock[0], 2 * stock[1], together, 0.0, EXCHANGE_YEARS - time, 1.0)
    return (COUNT * prices).sum() + EXCHANGES * exchange


def simulated(market: Market, draws: Array) -> Any:
    """The same value as a mean over paths: draws has a row of three normal numbers for each."""
    stock, volatility, rate, correlation, _ = market
    first, second, third = draws.T
    second = correlation * first + ad.sqrt(1 - correlation**2) * second
    walk = ad.stack([first, second, ad.asarray(third)])

    def ends(years: float) -> Any:
        drift = (rate - volatility**2 / 2) * years
        return ad.expand_dims(stock, 1) * ad.exp(ad.expand_dims(drift, 1) + np.sqrt(years) * volatility[:, None] * walk)

    total: Any = 0.0
    for i, count, strike, years, sign in zip(STOCK, COUNT, STRIKE, YEARS, SIGN, strict=True):
        total = total + count * ad.exp(-rate * years) * ad.nn.relu(sign * (ends(years)[i] - strike)).mean()
    a, b, _ = ends(EXCHANGE_YEARS)
    return total + EXCHANGES * ad.exp(-rate * EXCHANGE_YEARS) * ad.nn.relu(a - 2 * b).mean()


def formulas() -> tuple[Array, Array, Array]:
    """Delta, vega, and gamma with its mixed entries, as textbooks have them, by SciPy's normal distribution."""
    from scipy.stats import norm

    delta, vega, gamma = np.zeros(3), np.zeros(3), np.zeros((3, 3))
    for i, count, strike, years, sign in zip(STOCK, COUNT, STRIKE, YEARS, SIGN, strict=True):
        s, v = TODAY.stock[i], TODAY.volatility[i]
        d = (np.log(s / strike) + (TODAY.rate + v**2 / 2) * years) / (v * np.sqrt(years))
        delta[i] += count * sign * norm.cdf(sign * d)
        vega[i] += count * s * norm.pdf(d) * np.sqrt(years)
        gamma[i, i] += count * norm.pdf(d) / (s * v * np.sqrt(years))
    s, t, (v, w, _) = TODAY.stock[0], 2 * TODAY.stock[1], TODAY.volatility
    both = np.sqrt(v**2 + w**2 - 2 * TODAY.correlation * v * w)
    d = np.log(s / t) / both + both / 2
    delta[:2] += EXCHANGES * np.array([norm.cdf(d), -2 * norm.cdf(d - both)])
    vega[:2] += EXCHANGES * s * norm.pdf(d) * np.array([v - TODAY.correlation * w, w - TODAY.correlation * v]) / both
    size = EXCHANGES * norm.pdf(d) / (s * both)
    gamma[:2, :2] += size * np.array([[1, -2 * s / t], [-2 * s / t, 4 * s**2 / t**2]])
    return delta, vega, gamma


def moved(a: Any, b: Any) -> Array:
    """The value where the first two stocks have gone up by the parts a and b."""
    stocks = TODAY.stock * (1 + np.stack([a, b, np.zeros_like(a)], axis=-1))
    return ad.vmap(lambda stock: value(TODAY._replace(stock=stock)))(stocks.reshape(-1, 3)).reshape(a.shape)


def draw(path: Path, greeks: Market, gamma: Array, move: Array) -> None:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(13, 7.6), layout="constrained")
    (bars, table), (exact, guess) = figure.subplots(2, 2)
    places = np.arange(3)
    bars.bar(places - 0.2, greeks.stock * TODAY.stock / 100, 0.4, label="its price rises by 1 %")
    bars.bar(places + 0.2, greeks.volatility / 100, 0.4, label="its volatility rises by 1 point")
    bars.set(xticks=places, ylabel="change of the value", title="Delta and vega")
    bars.set_xticklabels([f"stock {name}" for name in STOCKS])
    bars.axhline(0, color="gray", linewidth=0.8)
    bars.legend()
    limit = np.abs(gamma).max()
    table.imshow(gamma, cmap="RdBu", vmin=-limit, vmax=limit)
    for (i, j), entry in np.ndenumerate(gamma):
        strong = abs(entry) > limit / 2
        table.text(j, i, f"{round(entry, 2) + 0.0:.2f}", ha="center", va="center", color="white" if strong else "black")
    table.set(xticks=places, yticks=places, title="Gamma: second derivatives by the prices")
    table.set_xticklabels(STOCKS)
    table.set_yticklabels(STOCKS)
    a, b = np.meshgrid(move, move)
    steps = np.stack([a, b], axis=-1) * TODAY.stock[:2]
    start = float(value(TODAY))
    profit = moved(a, b) - start - steps @ greeks.stock[:2]
    second = np.einsum("xyi,ij,xyj->xy", steps, gamma[:2, :2], steps) / 2
    limit = np.abs(profit).max()
    for axes, values, title in ((exact, profit, "valued anew"), (guess, second, "by the Hessian")):
        image = axes.contourf(100 * move, 100 * move, values, 20, cmap="RdBu", vmin=-limit, vmax=limit)
        axes.set(xlabel="A moves, %", ylabel="B moves, %", title=f"Profit when hedged by deltas: {title}")
        figure.colorbar(image)
    save(figure, path)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = Parser("greeks.py", __doc__)
    parser.add_argument("--paths", type=at_least(10), default=100_000, help="of the simulation (100,000)")
    parser.add_seed("the paths")
    parser.add_out()
    options = parser.parse_args(arguments)

    with Stop("greeks.py"):
        first, second = ad.grad(value)(TODAY), ad.hessian(value)(TODAY)
        delta, vega, gamma = formulas()
        draws = np.random.default_rng(options.seed).normal(size=(options.paths, 3))
        guess, by_paths = ad.value_and_grad(simulated)(TODAY, np.concatenate([draws, -draws]))
        print(f"value {float(value(TODAY)):.2f}, by simulation {float(guess):.2f}")
        print("                 A          B          C")
        for name, row in (
            ("delta", first.stock),
            ("  simulated", by_paths.stock),
            ("vega", first.volatility),
            ("  simulated", by_paths.volatility),
            ("gamma by A", second.stock.stock[0]),
            ("gamma by B", second.stock.stock[1]),
            ("gamma by C", second.stock.stock[2]),
            ("vanna", np.diag(second.stock.volatility)),
            ("volga", np.diag(second.volatility.volatility)),
        ):
            print(f"{name:11}", *[f"{entry:10.3f}" for entry in row])
        print(f"rho {first.rate:.2f}, theta {first.time:.2f} a year, by the correlation {first.correlation:.2f}")
        for name, found, formula in (
            ("delta", first.stock, delta),
            ("vega", first.volatility, vega),
            ("gamma", second.stock.stock, gamma),
        ):
            check(f"{name} of textbooks", float(np.abs(found - formula).max() / np.abs(formula).max()), 1e-10)
        draw(options.out, first, second.stock.stock, np.linspace(-0.15, 0.15, 31))


if __name__ == "__main__":
    main(sys.argv[1:])
