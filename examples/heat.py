"""A physics-informed network for the heat equation, and the diffusivity from noisy readings.

A rod, hot in the middle and held at zero at both ends, cools down: u_t = alpha u_xx from u = sin(pi x) on. A small
network learns u(x, t) from nothing but that equation; then, from 200 noisy readings, it learns u and alpha together.
Both are compared with the exact solution sin(pi x) exp(-alpha pi^2 t).

M. Raissi, P. Perdikaris, G. Karniadakis, Physics-informed neural networks, J. Comput. Phys. 378 (2019).
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from command_line import Parser, Stop, at_least, progress, save

import adjoint as ad

ALPHA = 0.1
HIDDEN = 16
POINTS = 200  # where the equation is to hold
TIMES, READINGS, NOISE = (0.1, 0.3, 0.5, 0.7, 0.9), 40, 0.05  # so many readings at each time

Array = np.ndarray
Layers = tuple[ad.Tensor, ...]


class Readings(NamedTuple):
    x: Array
    t: Array
    u: Array


class Fit(NamedTuple):
    """Of a minimiser: the parameters and the loss, at the start and after each iteration."""

    path: list[Array]
    losses: list[float]


def exact(x: Array, t: Array, alpha: float = ALPHA) -> Array:
    return np.sin(np.pi * x) * np.exp(-alpha * np.pi**2 * t)


# --- the network and the equation, of one point ---

SHAPES = ((2, HIDDEN), (HIDDEN,), (HIDDEN, HIDDEN), (HIDDEN,), (HIDDEN,))


def initial(rng: np.random.Generator) -> Array:
    """Random weights and zero biases, in one vector: what a minimiser works with."""
    first, _, second, _, last = [rng.standard_normal(shape) / np.sqrt(shape[0]) for shape in SHAPES]
    zero = np.zeros(HIDDEN)
    return np.concatenate([x.ravel() for x in (first, zero, second, zero, last)])


def layers(p: ad.Tensor) -> Layers:
    """The vector in parts."""
    ends = np.cumsum([np.prod(shape) for shape in SHAPES])
    return tuple(p[end - np.prod(shape) : end].reshape(shape) for end, shape in zip(ends, SHAPES, strict=True))


def u(net: Layers, x: ad.Tensor, t: ad.Tensor) -> ad.Tensor:
    """The temperature; built so that start and ends are right whatever the network says (Lagaris et al., 1998)."""
    w1, b1, w2, b2, w3 = net
    hidden = ad.tanh(ad.tanh(x * w1[0] + t * w1[1] + b1) @ w2 + b2)
    return ad.sin(np.pi * x) + t * x * (1 - x) * (hidden @ w3)


def residual(net: Layers, alpha: ad.Tensor | float, x: ad.Tensor, t: ad.Tensor) -> ad.Tensor:
    """By how much the equation is missed: u_t - alpha u_xx."""
    u_t = ad.grad(u, argnums=2)
    u_xx = ad.grad(ad.grad(u, argnums=1), argnums=1)
    return u_t(net, x, t) - alpha * u_xx(net, x, t)


# --- of all points: two losses ---

everywhere = ad.vmap(u, in_axes=(None, 0, 0))
residuals = ad.vmap(residual, in_axes=(None, None, 0, 0))


def equation_loss(x: Array, t: Array) -> Callable[[ad.Tensor], ad.Tensor]:
    """Of weights alone: alpha is known."""

    def loss(p: ad.Tensor) -> ad.Tensor:
        return (residuals(layers(p), ALPHA, x, t) ** 2).mean()

    return loss


def readings_loss(x: Array, t: Array, readings: Readings) -> Callable[[ad.Tensor], ad.Tensor]:
    """Of weights and, at last, the logarithm of alpha."""

    def loss(p: ad.Tensor) -> ad.Tensor:
        net = layers(p)
        misfit = everywhere(net, readings.x, readings.t) - readings.u
        return (residuals(net, ad.exp(p[-1]), x, t) ** 2).mean() + (misfit**2).mean()

    return loss


# --- the minimiser ---


def minimise(loss: Callable[[ad.Tensor], ad.Tensor], p: Array, iterations: Iterable[int]) -> Fit:
    """L-BFGS; J. Nocedal and S. Wright, Numerical Optimization (2006), algorithms 3.1 and 7.4."""
    both = ad.value_and_grad(loss)
    value, g = both(p)
    fit = Fit([p], [float(value)])
    pairs: list[tuple[Array, Array]] = []  # steps, and what each changed of the gradient
    for _ in iterations:
        direction = towards(g, pairs)
        slope, step = g @ direction, 1.0 if pairs else 1 / np.linalg.norm(g)
        while True:
            moved = p + step * direction
            value, changed = both(moved)
            if value <= fit.losses[-1] + 1e-4 * step * slope:
                break
            step /= 2
            if step < 1e-10:  # nothing but rounding errors is left
                return fit
        if (moved - p) @ (changed - g) > 0:  # so that the curvature that pairs stand for is positive
            pairs = [*pairs[-29:], (moved - p, changed - g)]
        p, g = moved, changed
        fit.path.append(p)
        fit.losses.append(float(value))
    return fit


def towards(g: Array, pairs: Sequence[tuple[Array, Array]]) -> Array:
    """Minus the gradient, times the inverse Hessian that the pairs stand for."""
    direction, parts = -g, []
    for s, y in reversed(pairs):
        parts.append(s @ direction / (s @ y))
        direction = direction - parts[-1] * y
    if pairs:
        s, y = pairs[-1]
        direction = direction * (s @ y) / (y @ y)
    for (s, y), part in zip(pairs, reversed(parts), strict=True):
        direction = direction + (part - y @ direction / (s @ y)) * s
    return direction


# --- the two problems ---


def solve(rng: np.random.Generator, iterations: int) -> Fit:
    """The temperature, from the equation alone."""
    x, t = rng.random((2, POINTS))
    return minimise(equation_loss(x, t), initial(rng), progress(iterations, "solving"))


def read(rng: np.random.Generator) -> Readings:
    """Noisy readings at random places."""
    t = np.repeat(TIMES, READINGS)
    x = rng.random(t.shape)
    return Readings(x, t, exact(x, t) + NOISE * rng.standard_normal(t.shape))


def identify(rng: np.random.Generator, readings: Readings, iterations: int) -> Fit:
    """The temperature and alpha, from the equation and readings; the first guess of alpha is 1."""
    x, t = rng.random((2, POINTS))
    start = np.append(initial(rng), 0.0)
    return minimise(readings_loss(x, t, readings), start, progress(iterations, "identifying"))


def alphas(fit: Fit) -> list[float]:
    return [float(np.exp(p[-1])) for p in fit.path]


def standard_error(readings: Readings) -> float:
    """Of alpha, if the exact solution were fitted to the readings: how much they say about it."""
    return float(NOISE / np.linalg.norm(np.pi**2 * readings.t * exact(readings.x, readings.t)))


def errors(p: Array) -> Array:
    """What the network is off by, at 41 times (rows) and 41 places."""
    t, x = np.meshgrid(np.linspace(0, 1, 41), np.linspace(0, 1, 41), indexing="ij")
    return (everywhere(layers(p), x.ravel(), t.ravel()) - exact(x.ravel(), t.ravel())).reshape(x.shape)


# --- what people see ---


def draw(path: Path, solved: Fit, found: Fit, readings: Readings) -> None:
    """A row for each problem: the temperature, what it is off by, how it was found."""
    from matplotlib import colormaps
    from matplotlib.figure import Figure

    figure = Figure(figsize=(15, 8), layout="constrained")
    upper, lower = figure.subfigures(2, 1)
    x, shade = np.linspace(0, 1, 101), colormaps["plasma"]

    upper.suptitle(f"Solving u_t = {ALPHA} u_xx")
    profiles, off, losses = upper.subplots(1, 3)
    for t in (0.0, *TIMES):
        curve = everywhere(layers(solved.path[-1]), x, np.full(x.shape, t))
        profiles.plot(x, curve, color=shade(0.9 - 0.9 * t), label=f"t = {t}")
    profiles.plot(x, exact(x, np.array((0.0, *TIMES))[:, None]).T, "k:", label=["exact", *[None] * len(TIMES)])
    profiles.set(xlabel="place x", ylabel="temperature u", title="What the network learnt")
    profiles.legend(loc="lower center", ncols=2, fontsize=9)
    show_errors(upper, off, errors(solved.path[-1]))
    losses.semilogy(solved.losses)
    losses.set(xlabel="iteration", ylabel="mean squared residual of the equation", title="Loss")

    lower.suptitle(f"Finding u and alpha from {len(readings.u)} readings, noise {NOISE}")
    profiles, off, path_of_alpha = lower.subplots(1, 3)
    for t in TIMES:
        curve = everywhere(layers(found.path[-1]), x, np.full(x.shape, t))
        profiles.plot(x, curve, color=shade(0.9 - 0.9 * t), label=f"t = {t}")
        at = readings.t == t
        profiles.plot(readings.x[at], readings.u[at], ".", color=shade(0.9 - 0.9 * t))
    profiles.set(xlabel="place x", ylabel="temperature u", title="Readings and what the network learnt")
    profiles.legend(loc="lower center", ncols=2, fontsize=9)
    show_errors(lower, off, errors(found.path[-1]))
    spread = standard_error(readings)
    path_of_alpha.semilogy(alphas(found)[:101], label="network")
    path_of_alpha.axhline(ALPHA, color="black", linestyle="--", label="exact")
    path_of_alpha.axhspan(ALPHA - spread, ALPHA + spread, color="lightgray", label="± standard error of the readings")
    path_of_alpha.set(xlabel="iteration", ylabel="alpha", title="Diffusivity, the first iterations")
    path_of_alpha.legend()
    for axes in (profiles, losses, path_of_alpha):
        axes.grid(alpha=0.3)
    save(figure, path)


def show_errors(figure: Any, axes: Any, values: Array) -> None:
    limit = np.abs(values).max()
    drawn = axes.imshow(
        values, origin="lower", extent=(0, 1, 0, 1), cmap="RdBu_r", vmin=-limit, vmax=limit, aspect="auto"
    )
    figure.colorbar(drawn, ax=axes)
    axes.set(xlabel="place x", ylabel="time t", title=f"Error, at most {limit:.1e}")


def main(arguments: Sequence[str] | None = None) -> None:
    parser = Parser("heat.py", __doc__)
    parser.add_argument("--iterations", type=at_least(1), default=400, help="of the minimiser, for each fit (400)")
    parser.add_seed("the points, the weights and the noise")
    parser.add_out()
    options = parser.parse_args(arguments)

    with Stop("heat.py"):
        rng = np.random.default_rng(options.seed)
        solved = solve(rng, options.iterations)
        print(f"solved: loss {solved.losses[-1]:.1e}, largest error {np.abs(errors(solved.path[-1])).max():.1e}")
        readings = read(rng)
        found = identify(rng, readings, options.iterations)
        print(f"alpha from readings: {alphas(found)[-1]:.4f} ± {standard_error(readings):.4f}, exactly {ALPHA}")
        print(f"largest error with it: {np.abs(errors(found.path[-1])).max():.1e}")
        draw(options.out, solved, found, readings)


if __name__ == "__main__":
    main(sys.argv[1:])
