"""Neural style: paint one image in the manner of another.

A layer of filters looks at both images. Which filters answer where is what an image shows; which ones answer together,
wherever that is, is its manner: the Gram matrix (Gatys, Ecker and Bethge, 2016). An image is sought with what the
first one shows and the manner of the second, by gradients to its pixels. The filters are random ones of three
sizes, which know textures nearly as well as trained ones (Ustyuzhaninov and others, 2017). The picture shows all three.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import scipy.optimize
from command_line import Parser, Stop, at_least, save

import adjoint as ad

WIDTHS, FILTERS = (3, 7, 11), 24  # of the filters, in pixels; how many of each
CONTENT = 0.02  # how much what is shown counts beside the manner

Array = np.ndarray


def content(size: int) -> Array:
    """A hill with a sun, in colours: (3, size, size)."""
    y, x = np.mgrid[0:size, 0:size] / size
    image = np.stack([0.45 + 0.3 * y, 0.65 + 0.2 * y, np.full_like(x, 0.95)])
    image[:, y > 0.62 + 0.16 * np.sin(7 * x)] = np.array([[0.25], [0.5], [0.2]])
    image[:, (x - 0.7) ** 2 + (y - 0.25) ** 2 < 0.02] = np.array([[1.0], [0.85], [0.3]])
    return image


def manner(size: int, seed: int) -> Array:
    """Strokes of a brush that go round in whirls, in four colours."""
    rng = np.random.default_rng(seed)
    y, x = np.mgrid[0:size, 0:size] / size
    colours = np.array([[0.1, 0.15, 0.45], [0.2, 0.45, 0.75], [0.95, 0.8, 0.25], [0.9, 0.93, 0.85]])
    angle = np.zeros_like(x)
    for centre_x, centre_y, sign in rng.uniform(-0.2, 1.2, (5, 3)):
        angle += np.sign(sign - 0.5) * np.hypot(x - centre_x, y - centre_y)
    stripes = np.sin(40 * angle + 4 * np.sin(9 * x) * np.cos(8 * y))
    shade = np.clip((stripes + 1) / 2 * 3, 0, 2.999)
    k, part = shade.astype(int), (shade % 1)[..., None]
    return np.moveaxis((1 - part) * colours[k] + part * colours[k + 1], -1, 0)


def filters(seed: int) -> list[Array]:
    """Random ones with mean zero, (filters, 3, width, width)."""
    rng = np.random.default_rng(seed)
    found = [rng.normal(size=(FILTERS, 3, width, width)) for width in WIDTHS]
    found = [f - f.mean(axis=(2, 3), keepdims=True) for f in found]
    return [f / np.linalg.norm(f.reshape(FILTERS, -1), axis=1)[:, None, None, None] for f in found]


def answers(image: Any, seed: int) -> list[Any]:
    """Of the filters of each width, (filters, rows, columns)."""
    return [ad.nn.relu(ad.nn.conv2d(image[None], f)[0]) for f in filters(seed)]


def gram(answer: Any) -> Any:
    """How strongly each two filters answer together, on average over places."""
    flat = answer.reshape(FILTERS, -1)
    return flat @ flat.T / flat.shape[1]


def distances(image: Any, shown: Any, wanted: Any, seed: int) -> tuple[Any, Any]:
    """From what should be shown, and from the manner; relative to the size of either."""
    found = answers(image, seed)
    one = sum([((a - b) ** 2).mean() / (b**2).mean() for a, b in zip(found, shown, strict=True)])
    other = sum([((gram(a) - g) ** 2).sum() / (g**2).sum() for a, g in zip(found, wanted, strict=True)])
    return one / len(WIDTHS), other / len(WIDTHS)


def paint(image: Array, example: Array, iterations: int, seed: int) -> tuple[Array, float, float]:
    """The painted image, and its distances from what is shown and from the manner."""
    shown = [np.asarray(a) for a in answers(ad.tensor(image), seed)]
    wanted = [np.asarray(gram(a)) for a in answers(ad.tensor(example), seed)]

    def loss(flat: Any) -> Any:
        one, other = distances(flat.reshape(image.shape), shown, wanted, seed)
        return CONTENT * one + other

    noise = np.random.default_rng(seed).uniform(size=image.size)  # to have something to make strokes of
    found = scipy.optimize.minimize(
        ad.compile(ad.value_and_grad(loss)), 0.7 * image.ravel() + 0.3 * noise, jac=True, method="L-BFGS-B",
        bounds=[(0.0, 1.0)] * image.size, options={"maxiter": iterations},
    ).x.reshape(image.shape)  # fmt: skip
    one, other = distances(ad.tensor(found), shown, wanted, seed)
    return found, float(one), float(other)


def draw(path: Path, images: dict[str, Array]) -> None:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(12, 4.4), layout="constrained")
    for axes, (title, image) in zip(figure.subplots(1, 3), images.items(), strict=True):
        axes.imshow(np.moveaxis(image, 0, -1))
        axes.set(title=title, xticks=[], yticks=[])
    save(figure, path)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = Parser("style.py", __doc__)
    parser.add_argument("--iterations", type=at_least(1), default=120, help="of the search (120)")
    parser.add_argument("--size", type=at_least(16), default=64, help="pixels of a side (64)")
    parser.add_seed("the filters and the example of the manner")
    parser.add_out()
    options = parser.parse_args(arguments)

    with Stop("style.py"):
        image, example = content(options.size), manner(options.size, options.seed)
        painted, one, other = paint(image, example, options.iterations, options.seed)
        shown = [np.asarray(a) for a in answers(ad.tensor(image), options.seed)]
        wanted = [np.asarray(gram(a)) for a in answers(ad.tensor(example), options.seed)]
        _, before = distances(ad.tensor(image), shown, wanted, options.seed)
        print(f"distance from the manner: {other:.3f}, {float(before):.2f} before")
        print(f"distance from what is shown: {one:.2f}")
        draw(options.out, {"what is shown": image, "the manner": example, "painted": painted})


if __name__ == "__main__":
    main(sys.argv[1:])
