"""Lynxes and hares: the parameters of a differential equation, from the record of the Hudson's Bay Company.

Fits the equations of Lotka and Volterra, du/dt = (alpha - beta v) u for hares and dv/dt = (delta u - gamma) v for
lynxes, to the pelts of 1900 to 1920, with exact derivatives of the solution. Then fits as many simulated records, all
in one batch, which shows how sure the parameters are. They agree with the posterior of B. Carpenter's case study.

Numbers: C. Elton and M. Nicholson, The ten-year cycle in numbers of the lynx in Canada (1942), as tabulated by
J. Mahaffy. Posterior: B. Carpenter, Predator-prey population dynamics: the Lotka-Volterra model in Stan (2018).
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from command_line import Parser, Stop, at_least, progress, save

import adjoint as ad

YEARS = np.arange(1900.0, 1921.0)
HARES = [30, 47.2, 70.2, 77.4, 36.3, 20.6, 18.1, 21.4, 22, 25.4, 27.1, 40.3, 57, 76.6, 52.3, 19.5, 11.2, 7.6, 14.6, 16.2, 24.7]  # fmt: skip  # noqa: E501
LYNXES = [4, 6.1, 9.8, 35.2, 59.4, 41.7, 19, 13, 8.3, 9.1, 7.4, 8, 12.3, 19.5, 45.7, 51.1, 29.7, 15.8, 9.7, 10.1, 8.6]
PELTS = np.column_stack([HARES, LYNXES])  # in thousands

NAMES = ("alpha", "beta", "gamma", "delta")
PUBLISHED = {  # mean and central 80% of the posterior
    "alpha": (0.55, 0.47, 0.63),
    "beta": (0.028, 0.023, 0.033),
    "gamma": (0.80, 0.69, 0.91),
    "delta": (0.024, 0.020, 0.029),
}

Array = np.ndarray


# --- the model: z are the logarithms of hares and lynxes, q those of alpha, beta, gamma, delta and the first z ---


def rates(z: ad.Tensor, t: ad.Tensor, p: ad.Tensor) -> ad.Tensor:
    """dz/dt. The logarithms keep populations positive, and their errors are alike at all sizes."""
    hares, lynxes = ad.exp(z)
    return ad.stack([p[0] - p[1] * lynxes, p[3] * hares - p[2]])


def solution(q: ad.Tensor, years: Array) -> ad.Tensor:
    """The logarithms of both populations, of shape (years, 2)."""
    return ad.odeint(rates, q[4:], years - YEARS[0], ad.exp(q[:4]), rtol=1e-6, atol=1e-6)


def residuals(q: ad.Tensor, pelts: ad.Tensor) -> ad.Tensor:
    """By how much the logarithms are off."""
    return (solution(q, YEARS[: len(pelts)]) - ad.log(pelts)).reshape((-1,))


def first_guess(pelts: Array) -> Array:
    """The equations say how the logarithms grow; so differences between years, regressed on the other species."""
    growth = np.gradient(np.log(pelts), axis=0)
    ones = np.ones(len(pelts))
    (alpha, beta), *_ = np.linalg.lstsq(np.column_stack([ones, -pelts[:, 1]]), growth[:, 0])
    (gamma, delta), *_ = np.linalg.lstsq(np.column_stack([-ones, pelts[:, 0]]), growth[:, 1])
    return np.log([alpha, beta, gamma, delta, *pelts[0]])


# --- least squares ---


class Fit(NamedTuple):
    """Of each record: parameters q, the standard deviation of residuals, and the covariance of q."""

    q: Array
    noise: Array
    covariance: Array


def fit(records: Array, start: Array, what: str) -> Fit:
    """All records, of shape (records, years, 2), in one batch: Gauss-Newton, damped as by D. Marquardt (1963)."""
    off, slopes = ad.vmap(residuals), ad.vmap(ad.jacobian(residuals, mode="forward"))
    q = np.tile(start, (len(records), 1))
    r, damping = off(q, records), np.full(len(records), 1e-2)
    for _ in progress(50, what):
        jacobian = slopes(q, records)
        curvature = jacobian.mT @ jacobian
        damped = curvature * (1 + damping[:, None, None] * np.eye(q.shape[1]))
        step = -np.linalg.solve(damped, jacobian.mT @ r[..., None])[..., 0]
        moved = off(q + step, records)
        better = (moved**2).sum(1) < (r**2).sum(1)
        q, r = np.where(better[:, None], q + step, q), np.where(better[:, None], moved, r)
        damping = np.where(better, damping / 10, damping * 10)
        if np.abs(step).max() < 1e-5:
            break
    noise = np.sqrt((r**2).sum(1) / (r.shape[1] - q.shape[1]))
    return Fit(q, noise, noise[:, None, None] ** 2 * np.linalg.inv(curvature))


def simulated(found: Fit, count: int, rng: np.random.Generator) -> Array:
    """Records that the fitted model would give."""
    curve = solution(ad.tensor(found.q[0]), YEARS).numpy()
    return np.exp(curve + found.noise[0] * rng.standard_normal((count, *curve.shape)))


# --- what people see ---


def intervals(again: Fit) -> Array:
    """The central 80% of the parameters of simulated records."""
    return np.exp(np.quantile(again.q[:, :4], [0.1, 0.9], axis=0))


def report(found: Fit, again: Fit) -> None:
    print(f"{'':7}{'fitted':>15}{'simulated, 80%':>19}{'published':>11}{'its 80%':>15}")
    errors = np.sqrt(np.diag(found.covariance[0]))
    low, high = intervals(again)
    for i, name in enumerate(NAMES):
        value = np.exp(found.q[0, i])
        mean, least, most = PUBLISHED[name]
        print(f"{name:7}{value:6.4f} ± {value * errors[i]:6.4f}", end="")
        print(f"{low[i]:9.3f} to {high[i]:.3f}{mean:11.3f}{least:7.3f} to {most:.3f}")
    print(f"noise  {found.noise[0]:6.4f}{0.25:35.2f}")


def draw(path: Path, found: Fit, again: Fit) -> None:
    """The record and the fit over the years, in the plane of both populations, and the parameters."""
    from matplotlib.figure import Figure

    years = np.linspace(YEARS[0], YEARS[-1], 401)
    curve = np.exp(solution(ad.tensor(found.q[0]), years).numpy())
    low, high = np.exp(np.quantile(ad.vmap(lambda q: solution(q, years))(again.q), [0.1, 0.9], axis=0))

    figure = Figure(figsize=(15, 5), layout="constrained")
    left, middle, right = figure.subfigures(1, 3, width_ratios=(1.3, 1, 1))
    axes = left.subplots()
    for i, (name, color) in enumerate((("hares", "tab:blue"), ("lynxes", "tab:red"))):
        axes.fill_between(years, low[:, i], high[:, i], color=color, alpha=0.2, linewidth=0)
        axes.plot(years, curve[:, i], color=color, label=f"{name}, fitted")
        axes.plot(YEARS, PELTS[:, i], "o", color=color, markersize=4, label=f"{name}, recorded")
    axes.set(xlabel="year", ylabel="pelts (thousands)", title="Pelts, with 80% of the fits to simulated records")
    axes.set_xticks(YEARS[::4])
    axes.legend()

    axes = middle.subplots()
    axes.plot(*PELTS.T, "o-", color="gray", markersize=3, linewidth=0.6, label="recorded")
    axes.plot(*curve.T, color="tab:green", label="fitted")
    alpha, beta, gamma, delta = np.exp(found.q[0, :4])
    axes.plot(gamma / delta, alpha / beta, "k+", markersize=10, label="equilibrium")
    for i in range(0, len(YEARS), 5):
        place = {"xytext": (4, 4 if i else -12), "textcoords": "offset points"}  # above 1900 there is the curve
        axes.annotate(f"{YEARS[i]:.0f}", PELTS[i], fontsize=8, **place)
    axes.set(xlabel="hares (thousands of pelts)", ylabel="lynxes (thousands of pelts)", title="Phase portrait")
    axes.legend()

    right.suptitle("Parameters, per year (and per thousand pelts)")
    for i, (name, axes) in enumerate(zip(NAMES, right.subplots(2, 2).flat, strict=True)):
        mean, least, most = PUBLISHED[name]
        axes.hist(np.exp(again.q[:, i]), 25, color="tab:green", alpha=0.4, label="simulated records")
        axes.axvline(np.exp(found.q[0, i]), color="tab:green", label="fitted")
        axes.axvline(mean, color="black", linestyle="--", label="published")
        axes.axvspan(least, most, color="lightgray", alpha=0.6, zorder=0, label="its 80%")
        axes.set(title=name, yticks=[])
    right.legend(*axes.get_legend_handles_labels(), loc="outside lower center", ncols=4, fontsize=8)
    save(figure, path)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = Parser("lynx_hare.py", __doc__)
    parser.add_argument("--records", type=at_least(2), default=200, help="to simulate (200)")
    parser.add_seed("the simulated records")
    parser.add_out()
    options = parser.parse_args(arguments)

    with Stop("lynx_hare.py"):
        found = fit(PELTS[None], first_guess(PELTS), "fitting")
        rng = np.random.default_rng(options.seed)
        again = fit(simulated(found, options.records, rng), found.q[0], "fitting simulated records")
        report(found, again)
        draw(options.out, found, again)


if __name__ == "__main__":
    main(sys.argv[1:])
