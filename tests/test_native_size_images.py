"""Convolutions and pools of machine code for any size: beside eager, for images of many sizes and numbers."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest
from test_native_sizes import native as native
from test_native_sizes import no_further_than_eager, variants

import adjoint as ad

pytest.importorskip("llvmlite")

NUMBERS, SIZES = [2, 3, 5, 8, 15, 16, 17, 31, 33, 40], [9, 10, 12, 15, 17, 21]


def _program(rng: random.Random) -> tuple[Any, Any]:
    """A function of images, weights and a bias, and what makes these for a number of images and their sizes."""
    axes, groups = rng.choice([1, 2, 2, 2, 3]), rng.choice([1, 1, 2, 3])
    channels, out = groups * rng.choice([1, 2, 5]), groups * rng.choice([1, 2, 3, 4, 7, 16])
    how = {"stride": rng.choice([1, 1, 2]), "dilation": rng.choice([1, 1, 2]), "padding": rng.choice([0, 1, 2])}
    kernel = [rng.choice([1, 2, 3]) for _ in range(axes)]
    pool, way = rng.choice(["", "", "max_pool", "avg_pool"]), rng.choice(["value", "gradient", "gradient", "vmap"])

    def f(x: Any, w: Any, b: Any) -> Any:
        y = getattr(ad.nn, f"conv{axes}d")(x, w, b, groups=groups, **how)
        return getattr(ad.nn, f"{pool}{axes}d")(ad.nn.relu(y), 2) if pool else y

    def arrays(n: int, sizes: list[int], normal: Any) -> list[Any]:
        lead = (3,) if way == "vmap" else ()
        shapes = [(*lead, n, channels, *sizes[:axes]), (out, channels // groups, *kernel), (out,)]
        return [normal(size=shape) for shape in shapes]

    if way == "gradient":
        return ad.value_and_grad(lambda *a: ad.tanh(f(*a)).sum() / a[0].shape[0], argnums=(0, 1, 2)), arrays
    return ad.vmap(f, in_axes=(0, None, None)) if way == "vmap" else f, arrays


@pytest.mark.parametrize("seed", [*range(30), *[pytest.param(seed, marks=pytest.mark.slow) for seed in range(30, 150)]])
def test_convolutions_of_many_sizes(seed: int) -> None:
    rng = random.Random(seed)
    f, arrays = _program(rng)
    g, dtype = ad.compile(f), rng.choice([np.float32, np.float64])
    changes, same, before = rng.choice(["number", "height", "all"]), rng.choice(SIZES), ad.get_num_threads()
    try:
        for call in range(5):
            ad.set_num_threads(rng.choice([1, 2]))
            n, size = rng.choice(NUMBERS), rng.choice(SIZES)
            sizes = {"number": [same] * 3, "height": [size, same, same], "all": [size] * 3}[changes]
            wide = arrays(6 if changes == "height" else n, sizes, np.random.default_rng(call).normal)
            no_further_than_eager(g, f, wide, dtype, f"{n} {sizes}")
    finally:
        ad.set_num_threads(before)


def test_a_network_for_images_has_no_step_of_numpy() -> None:
    rng = np.random.default_rng(0)
    kernels = [rng.normal(size=shape) / 3 for shape in ((4, 2, 3, 3), (5, 4, 3, 3))]

    def loss(kernels: Any, x: Any) -> Any:
        for kernel in kernels:
            x = ad.nn.max_pool2d(ad.nn.relu(ad.nn.conv2d(x, kernel, padding=1)), 2)
        return (x**2).sum() / x.shape[0]

    f = ad.value_and_grad(loss, argnums=(0, 1))
    g = ad.compile(f)
    for n in (3, 5, 16, 17, 32, 2, 33):
        x = rng.normal(size=(n, 2, 8, 8))
        for found, expected in zip(*[ad.tree.leaves(h(kernels, x)) for h in (g, f)], strict=True):
            np.testing.assert_allclose(found, expected, rtol=1e-11, atol=1e-13)
    assert max(variants(g)) == 1
    programs = [p for general in g._general.values() for p in general.programs]
    made = [code for program in programs for code in program.replay._variants or ()]
    assert all(sum("convolution" in line for line in code.kernels) == 4 for code in made)
    assert all(sum("gradient of weights" in line for line in code.kernels) == 2 for code in made)
    assert not any(name in code.source for code in made for name in ("conv", "pool"))
