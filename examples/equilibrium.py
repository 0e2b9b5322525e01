"""An implicit layer: a network of one layer, applied until nothing changes.

A deep equilibrium model (Bai, Kolter, Koltun, 2019) has one layer z = tanh(W z + U x + b), and its answer is the z that
the layer leaves as it is. `ad.implicit.fixed_point` finds it, and differentiates by what holds there. The gradient
needs no memory for the steps of the search. Plain backpropagation through more and more layers comes near to it, which
is the comparison here. The network learns to tell two spirals apart.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from command_line import Parser, Stop, at_least, check, progress, save

import adjoint as ad

HIDDEN, POINTS = 24, 200
DEEP = 40  # layers of the comparison

Array = np.ndarray


class Net(NamedTuple):
    """The weights of the layer, and of what reads the answer."""

    inner: Any
    outer: Any
    bias: Any
    last: Any


def spirals(count: int, seed: int) -> tuple[Array, Array]:
    """Points on two arms, and the arm: -1 or 1."""
    rng = np.random.default_rng(seed)
    turn, arm = np.sqrt(rng.uniform(0.04, 1, count)) * 2.2 * np.pi, rng.choice([-1.0, 1.0], count)
    place = np.stack([turn * np.cos(turn), turn * np.sin(turn)], axis=1) / 7
    return arm[:, None] * place + rng.normal(scale=0.02, size=place.shape), arm


def start(seed: int) -> Net:
    rng = np.random.default_rng(seed)
    shapes = {"inner": (HIDDEN, HIDDEN), "outer": (2, HIDDEN), "bias": (HIDDEN,), "last": (HIDDEN,)}
    sizes = {"inner": 1.0, "outer": 3.0, "bias": 1.0, "last": 0.3}
    return Net(**{name: ad.tensor(sizes[name] * rng.normal(size=shape)) for name, shape in shapes.items()})


def layer(z: Any, net: Net, x: Any) -> Any:
    """The columns of W have at most 0.9 as sum of sizes: so every layer brings z nearer to the only answer."""
    inner = net.inner * (0.9 / ad.maximum(ad.abs(net.inner).sum(axis=0), 0.9))
    return ad.tanh(z @ inner + x @ net.outer + net.bias)


def answer(net: Net, x: Any) -> Any:
    """The z that the layer leaves as it is, for every point."""
    return ad.implicit.fixed_point(layer, np.zeros((len(x), HIDDEN)), net, x, linear_solver="gmres")


def deep(net: Net, x: Any, layers: int) -> Any:
    """As many layers, one after the other, with the same weights."""
    z: Any = np.zeros((len(x), HIDDEN))
    for _ in range(layers):
        z = layer(z, net, x)
    return z


def loss(net: Net, z: Any, y: Array) -> Any:
    """Of the arms that z is read as."""
    return ad.nn.softplus(-y * (z @ net.last)).mean()


def train(net: Net, x: Array, y: Array, steps: int) -> tuple[Net, list[float]]:
    """Adam, with gradients of the answer."""
    optimizer = ad.optim.Adam(lr=0.03)
    state, losses = optimizer.init(net), []
    slope = ad.value_and_grad(lambda net: loss(net, answer(net, x), y))
    for _ in progress(steps, "training"):
        value, grads = slope(net)
        net, state = optimizer.step(net, grads, state)
        losses.append(float(value))
    return net, losses


def distances(net: Net, x: Array, y: Array, layers: Sequence[int]) -> list[float]:
    """How far backpropagation through so many layers is from the gradient of the answer, relative to its size."""
    exact = ad.grad(lambda net: loss(net, answer(net, x), y))(net)
    size = np.sqrt(sum([float((g**2).sum()) for g in exact]))
    found = []
    for count in layers:
        slope = ad.grad(lambda net, count=count: loss(net, deep(net, x, count), y))(net)
        found.append(
            float(np.sqrt(sum([float(((g - h) ** 2).sum()) for g, h in zip(slope, exact, strict=True)])) / size)
        )
    return found


def draw(
    path: Path, net: Net, x: Array, y: Array, losses: list[float], layers: Sequence[int], far: list[float]
) -> None:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(14, 4.6), layout="constrained")
    curve, plane, gradient = figure.subplots(1, 3)
    curve.semilogy(losses)
    curve.set(xlabel="step", ylabel="loss", title="Training")
    side = np.linspace(-1.1, 1.1, 60)
    points = np.stack(np.meshgrid(side, side), axis=-1).reshape(-1, 2)
    scores = (answer(net, points) @ net.last).numpy().reshape(60, 60)
    plane.contourf(side, side, scores, levels=[-1e9, 0, 1e9], colors=["#c9ddf2", "#f7d9b5"])
    for arm, colour in ((-1, "tab:blue"), (1, "tab:orange")):
        plane.plot(*x[y == arm].T, ".", color=colour)
    plane.set(aspect="equal", xticks=(-1, 0, 1), yticks=(-1, 0, 1), title="Two spirals, and what is read")
    gradient.semilogy(layers, far, "o-")
    gradient.set(xlabel="layers", ylabel="distance, relative", title="Gradient of so many layers, from the answer's")
    for axes in (curve, gradient):
        axes.grid(alpha=0.3)
    save(figure, path)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = Parser("equilibrium.py", __doc__)
    parser.add_argument("--steps", type=at_least(1), default=200, help="of training (200)")
    parser.add_seed("the points and the weights")
    parser.add_out()
    options = parser.parse_args(arguments)

    with Stop("equilibrium.py"):
        x, y = spirals(POINTS, options.seed)
        net, losses = train(start(options.seed), x, y, options.steps)
        new, arms = spirals(2000, options.seed + 1)
        right = np.mean(np.sign((answer(net, new) @ net.last).numpy()) == arms)
        print(f"loss: {losses[0]:.3f} at first, {losses[-1]:.4f} at the end; {right:.1%} of 2,000 new points are right")
        layers = [1, 2, 4, 8, 12, 16, 20, 24, 32, DEEP]
        far = distances(net, x, y, layers)
        print("layers:  ", " ".join([f"{count:7}" for count in layers]))
        print("distance:", " ".join([f"{distance:7.0e}" for distance in far]))
        check(f"backpropagation through {DEEP} layers", far[-1], 1e-6)
        draw(options.out, net, x, y, losses, layers, far)


if __name__ == "__main__":
    main(sys.argv[1:])
