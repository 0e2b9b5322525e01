"""Differentiable rendering: find the circles that make a picture.

A renderer paints circles of some place, radius and grey over one another. Their edges are soft, so the picture has a
gradient by all of these numbers, and a search can run it backwards: from a picture to the circles. The picture shows
the target, where the search starts, and what it ends with.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from command_line import Parser, Stop, at_least, progress, save

import adjoint as ad

SIZE, CIRCLES = 48, 4
TARGET = np.array([[0.3, 0.3, 0.2, 0.9], [0.7, 0.35, 0.12, 0.6], [0.6, 0.72, 0.18, 0.75], [0.25, 0.75, 0.1, 0.4]])

Array = np.ndarray


def render(circles: Any, softness: float) -> Any:
    """An image of circles, one per row: x, y, radius and grey. Later ones hide earlier ones."""
    y, x = np.mgrid[0:SIZE, 0:SIZE] / SIZE
    image = ad.zeros((SIZE, SIZE), dtype=ad.float64)
    for n in range(CIRCLES):
        away = ad.sqrt((x - circles[n, 0]) ** 2 + (y - circles[n, 1]) ** 2 + 1e-9)
        cover = ad.nn.sigmoid((circles[n, 2] - away) / softness)
        image = image + cover * (circles[n, 3] - image)
    return image


def loss(circles: Any, target: Array, softness: Any) -> Any:
    return ((render(circles, softness) - target) ** 2).mean()


def search(start: Array, target: Array, iterations: int) -> tuple[Array, list[float]]:
    """Adam, with edges that are blurred at first: then a circle feels a target that it does not touch."""
    circles: Any = {"circles": ad.tensor(start)}
    optimizer = ad.optim.Adam(lr=ad.optim.cosine(0.01, iterations))
    state, losses = optimizer.init(circles), []
    slope = ad.compile(ad.value_and_grad(lambda tree, softness: loss(tree["circles"], target, softness)))
    for k in progress(iterations, "moving circles"):
        softness = np.float64(max(0.02, 0.06 * (1 - 1.5 * k / iterations)))
        value, g = slope(circles, softness)
        circles, state = optimizer.step(circles, g, state)
        losses.append(float(value))
    return circles["circles"].numpy(), losses


def draw(path: Path, images: dict[str, Array], losses: list[float]) -> None:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(14, 3.8), layout="constrained")
    *shown, curve = figure.subplots(1, 4)
    for axes, (title, image) in zip(shown, images.items(), strict=True):
        axes.imshow(image, cmap="gray", vmin=0, vmax=1)
        axes.set(title=title, xticks=[], yticks=[])
    curve.semilogy(losses)
    curve.set(xlabel="iteration", title="squared error of a pixel")
    save(figure, path)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = Parser("circles.py", __doc__)
    parser.add_argument("--iterations", type=at_least(1), default=300, help="of the search (300)")
    parser.add_seed("the circles at the start")
    parser.add_out()
    options = parser.parse_args(arguments)

    with Stop("circles.py"):
        rng = np.random.default_rng(options.seed)
        start = TARGET + rng.normal(size=TARGET.shape) * [0.07, 0.07, 0.03, 0.1]
        target = np.asarray(render(TARGET, 0.02))
        found, losses = search(start, target, options.iterations)
        off, before = (np.abs(circles - TARGET)[:, :3].max() for circles in (found, start))
        print(f"error of a pixel: {np.sqrt(losses[-1]):.4f}")
        print(f"largest error of a place or radius: {off:.4f}, {before:.4f} at the start")
        images = {"target": target, "start": render(start, 0.02), "found": render(found, 0.02)}
        draw(options.out, {title: np.asarray(image) for title, image in images.items()}, losses)


if __name__ == "__main__":
    main(sys.argv[1:])
