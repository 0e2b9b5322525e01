"""Deblur a photograph: undo a known blur by gradient descent on the image.

A camera that was out of focus gives an average of neighbouring pixels, and noise. To divide by the blur would blow
the noise up. So the image is sought that, blurred again, looks like the photograph, and whose edges are few: the
total variation is small (Rudin, Osher and Fatemi, 1992). Its pixels are the unknowns. The picture shows the original,
the photograph, and what was found.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from command_line import Parser, Stop, at_least, progress, save

import adjoint as ad

NOISE, WEIGHT = 0.02, 0.004
WIDTH = 1.5  # of the blur, in pixels

Array = np.ndarray


def original(size: int) -> Array:
    """A disc, a frame and stripes, in grey."""
    y, x = np.mgrid[0:size, 0:size] / size
    image = np.full((size, size), 0.15)
    image[(x > 0.55) & (x < 0.9) & (y > 0.1) & (y < 0.45)] = 0.9
    image[(x > 0.63) & (x < 0.82) & (y > 0.18) & (y < 0.37)] = 0.4
    image[(x - 0.28) ** 2 + (y - 0.3) ** 2 < 0.035] = 0.75
    image[(y > 0.6) & (y < 0.9) & (np.floor(12 * x) % 2 == 0)] = 1.0
    return image


def kernel() -> Array:
    at = np.arange(-4, 5)
    line = np.exp(-0.5 * (at / WIDTH) ** 2)
    line /= line.sum()
    return line[:, None] * line


def blur(image: Any) -> Any:
    padded = ad.pad(image, 4, mode="edge")
    return ad.nn.conv2d(padded[None, None], kernel()[None, None])[0, 0]


def variation(image: Any) -> Any:
    """How much neighbours differ; rounded off where they are equal, so that it has a gradient there."""
    down, right = ad.diff(image, axis=0)[:, :-1], ad.diff(image, axis=1)[:-1]
    return ad.sqrt(down**2 + right**2 + 1e-6).sum()


def loss(image: Any, photograph: Array) -> Any:
    return ((blur(image) - photograph) ** 2).sum() / 2 + WEIGHT * variation(image)


def restore(photograph: Array, iterations: int) -> Array:
    """By Nesterov's accelerated descent."""
    image = ahead = photograph
    slope = ad.compile(ad.grad(loss))
    for k in progress(iterations, "deblurring"):
        moved = ahead - 0.5 * slope(ahead, photograph)
        image, ahead = moved, moved + k / (k + 3) * (moved - image)
    return image


def error(image: Array, exact: Array) -> float:
    return float(np.sqrt(((image - exact) ** 2).mean()))


def draw(path: Path, images: dict[str, Array]) -> None:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(12, 4.4), layout="constrained")
    for axes, (title, image) in zip(figure.subplots(1, 3), images.items(), strict=True):
        axes.imshow(image, cmap="gray", vmin=0, vmax=1)
        axes.set(title=title, xticks=[], yticks=[])
    save(figure, path)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = Parser("deblur.py", __doc__)
    parser.add_argument("--iterations", type=at_least(1), default=300, help="of the descent (300)")
    parser.add_argument("--size", type=at_least(16), default=96, help="of the image, in pixels (96)")
    parser.add_seed("the noise")
    parser.add_out()
    options = parser.parse_args(arguments)

    with Stop("deblur.py"):
        exact = original(options.size)
        rng = np.random.default_rng(options.seed)
        photograph = np.asarray(blur(exact)) + NOISE * rng.normal(size=exact.shape)
        found = restore(photograph, options.iterations)
        print(f"error of a pixel: {error(photograph, exact):.4f} in the photograph, {error(found, exact):.4f} restored")
        draw(options.out, {"original": exact, "photograph": photograph, "restored": found})


if __name__ == "__main__":
    main(sys.argv[1:])
