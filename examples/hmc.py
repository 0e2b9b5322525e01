"""Hamiltonian Monte Carlo: all chains in one batch, on a Bayesian linear regression.

Draws the coefficients of scikit-learn's diabetes data (442 patients, 10 measurements) from their posterior, once under
normal noise, where the posterior is known in closed form, and once under Student's, which outliers disturb less. The
picture shows the chains and the posterior beside the least-squares estimate.

S. Duane et al., Hybrid Monte Carlo, Phys. Lett. B 195 (1987); R. Neal, MCMC using Hamiltonian dynamics, Handbook of
Markov Chain Monte Carlo (2011), chapter 5.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from command_line import Parser, Stop, at_least, progress, save

import adjoint as ad

CHAINS = 8
WARM_UP = 50  # draws of each chain that do not count
STEP, LEAPS = 0.5, 3  # together about a quarter of a turn, after which draws have forgotten the last one
FREEDOM = 4.0  # degrees of freedom of Student's noise

Array = np.ndarray
Density = Callable[[ad.Tensor], ad.Tensor]


class Data(NamedTuple):
    x: Array  # a column of ones, then standardised measurements
    y: Array
    names: list[str]


class Draws(NamedTuple):
    """Of one density: of shape (chains, warm-up and draws, parameters), and the share of accepted proposals."""

    all: Array
    accepted: float

    @property
    def values(self) -> Array:
        return self.all[:, WARM_UP:]

    def pooled(self) -> Array:
        return self.values.reshape(-1, self.all.shape[-1])


def load() -> Data:
    from sklearn.datasets import load_diabetes

    bunch = load_diabetes(scaled=False)
    x = (bunch.data - bunch.data.mean(0)) / bunch.data.std(0)
    return Data(np.column_stack([np.ones(len(x)), x]), bunch.target, ["intercept", *bunch.feature_names])


# --- two posteriors: parameters are the coefficients and the logarithm of the noise's scale, under a flat prior ---


def normal(data: Data) -> Density:
    def log_density(p: ad.Tensor) -> ad.Tensor:
        residuals = (data.y - data.x @ p[:-1]) * ad.exp(-p[-1])
        return -(residuals**2).sum() / 2 - len(data.y) * p[-1]

    return log_density


def student(data: Data) -> Density:
    def log_density(p: ad.Tensor) -> ad.Tensor:
        residuals = (data.y - data.x @ p[:-1]) * ad.exp(-p[-1])
        return -(FREEDOM + 1) / 2 * ad.log1p(residuals**2 / FREEDOM).sum() - len(data.y) * p[-1]

    return log_density


def closed_form(data: Data) -> tuple[Array, Array]:
    """Mean and covariance of the coefficients under normal noise.

    Student's distribution around the least-squares estimate; Gelman et al., Bayesian Data Analysis (2013), 14.2.
    """
    estimate, (squares,), rank, _ = np.linalg.lstsq(data.x, data.y)
    freedom = len(data.y) - rank
    return estimate, squares / (freedom - 2) * np.linalg.inv(data.x.T @ data.x)


# --- sampling ---


def around_mode(log_density: Density, start: Array) -> tuple[Array, Array]:
    """The mode, by Newton's method, and a factor of the covariance that the Hessian there stands for."""
    gradient, hessian = ad.grad(log_density), ad.hessian(log_density)
    mode = start
    for _ in range(20):
        mode = mode - np.linalg.solve(hessian(mode), gradient(mode))
    return mode, np.linalg.cholesky(np.linalg.inv(-hessian(mode)))


def sample(log_density: Density, start: Array, draws: int, rng: np.random.Generator, what: str) -> Draws:
    """Chains from wide around the mode, in coordinates in which the density is about a standard normal one (5.4.1)."""
    mode, factor = around_mode(log_density, start)

    def standardised(z: ad.Tensor) -> ad.Tensor:
        return log_density(mode + factor @ z)

    both = ad.vmap(ad.value_and_grad(standardised))
    z = 2 * rng.standard_normal((CHAINS, len(mode)))
    values, slopes = both(z)
    kept = np.empty((CHAINS, WARM_UP + draws, len(mode)))
    accepted = 0
    for i in progress(WARM_UP + draws, f"sampling, {what}"):
        momentum = rng.standard_normal(z.shape)
        energy = (momentum**2).sum(1) / 2 - values
        step = STEP * rng.uniform(0.8, 1.2)  # so that no trajectory closes on itself (5.4.2)
        moved, slope = z, slopes
        for _ in range(LEAPS):
            momentum = momentum + step / 2 * slope
            moved = moved + step * momentum
            value, slope = both(moved)
            momentum = momentum + step / 2 * slope
        gain = energy - ((momentum**2).sum(1) / 2 - value)
        taken = np.log(rng.random(CHAINS)) < gain
        z, slopes = (np.where(taken[:, None], new, old) for new, old in ((moved, z), (slope, slopes)))
        values = np.where(taken, value, values)
        kept[:, i] = z
        accepted += taken.sum()
    return Draws(mode + kept @ factor.T, accepted / kept[..., 0].size)


def diagnose(chains: Array) -> tuple[float, float]:
    """R-hat and the effective number of draws, of one parameter; shape (chains, draws).

    R-hat of halves of chains and the sums of Geyer's pairs, as in Vehtari et al., Rank-normalization, folding, and
    localization, Bayesian Analysis 16 (2021).
    """
    half = chains.shape[1] // 2
    x = np.concatenate([chains[:, :half], chains[:, -half:]])
    within = x.var(1, ddof=1).mean()
    total = within * (half - 1) / half + x.mean(1).var(ddof=1)
    centred = x - x.mean(1, keepdims=True)
    covariance = np.fft.irfft(np.abs(np.fft.rfft(centred, 2 * half)) ** 2)[:, :half].mean(0) / (half - 1)
    correlation = 1 - (within - covariance) / total
    pairs = correlation[: half // 2 * 2].reshape(-1, 2).sum(1)
    positive = pairs[: np.argmax(np.append(pairs, -1) < 0)]
    return math.sqrt(total / within), x.size / (2 * np.minimum.accumulate(positive).sum() - 1)


# --- what people see ---


def report(name: str, draws: Draws) -> None:
    found = [diagnose(draws.values[:, :, i]) for i in range(draws.values.shape[-1])]
    print(f"{name} noise: {draws.accepted:.1%} accepted, largest R-hat {max(r for r, _ in found):.4f}, ", end="")
    print(f"at least {min(n for _, n in found):.0f} effective of {len(draws.pooled())} draws")


def table(data: Data, under: dict[str, Draws]) -> None:
    estimate, covariance = closed_form(data)
    columns = {"least squares": (estimate, np.sqrt(np.diag(covariance)))}
    for name, draws in under.items():
        columns[f"{name} noise"] = draws.pooled().mean(0), draws.pooled().std(0)
    print(f"{'':10}" + "".join(f"{name:>20}" for name in columns))
    for i, name in enumerate(data.names):
        print(f"{name:10}" + "".join(f"{mean[i]:12.2f} ± {std[i]:5.2f}" for mean, std in columns.values()))


def draw(path: Path, data: Data, under: dict[str, Draws]) -> None:
    """Chains of one coefficient and of the scale, and the posterior of every coefficient."""
    from matplotlib.figure import Figure

    estimate, covariance = closed_form(data)
    figure = Figure(figsize=(15, 6.2), layout="constrained")
    left, right = figure.subfigures(1, 2, width_ratios=(1, 1.8))
    left.suptitle(f"{CHAINS} chains under normal noise: warm-up and first draws")
    upper, lower = left.subplots(2, 1, sharex=True)
    bmi = data.names.index("bmi")
    for chain in under["normal"].all[:, : WARM_UP + 150]:
        numbers = np.arange(len(chain)) - WARM_UP
        upper.plot(numbers, chain[:, bmi], linewidth=0.7)
        lower.plot(numbers, np.exp(chain[:, -1]), linewidth=0.7)
    for axes in (upper, lower):
        axes.axvspan(-WARM_UP, 0, color="lightgray", alpha=0.5)
    upper.axhline(estimate[bmi], color="black", linestyle="--", label="least squares")
    upper.set(ylabel="coefficient of bmi")
    upper.legend(loc="upper right")
    lower.set(xlabel="draw", ylabel="scale of the noise")

    right.suptitle("Posterior: increase of disease progression per standard deviation of each measurement")
    for i, axes in enumerate(right.subplots(2, 5).flat, 1):
        for (name, draws), how in zip(under.items(), ({"alpha": 0.4}, {"histtype": "step"}), strict=True):
            axes.hist(draws.pooled()[:, i], 50, density=True, label=f"draws, {name} noise", **how)
        spread = math.sqrt(covariance[i, i])
        around = estimate[i] + spread * np.linspace(-4, 4, 100)
        # of 431 degrees of freedom, so as good as normal
        density = np.exp(-((around - estimate[i]) ** 2) / (2 * spread**2)) / (spread * math.sqrt(2 * math.pi))
        axes.plot(around, density, color="tab:blue", label="closed form, normal noise")
        axes.axvline(estimate[i], color="black", linestyle="--", linewidth=1, label="least squares")
        axes.set(title=data.names[i], yticks=[])
    right.legend(*axes.get_legend_handles_labels(), loc="outside lower center", ncols=4)
    save(figure, path)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = Parser("hmc.py", __doc__)
    parser.add_argument("--draws", type=at_least(10), default=1000, help=f"of each of {CHAINS} chains (1000)")
    parser.add_seed("the draws")
    parser.add_out()
    options = parser.parse_args(arguments)

    with Stop("hmc.py"):
        data, under = load(), {}
        estimate, _ = closed_form(data)
        start = np.append(estimate, math.log(np.std(data.y - data.x @ estimate)))
        rng = np.random.default_rng(options.seed)
        for name, posterior in (("normal", normal), ("Student", student)):
            under[name] = sample(posterior(data), start, options.draws, rng, f"{name} noise")
            report(name, under[name])
        table(data, under)
        draw(options.out, data, under)


if __name__ == "__main__":
    main(sys.argv[1:])
