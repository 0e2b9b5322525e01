"""What lies across the lines of other arrays is copied in squares first: the same elements, whatever axes and sizes."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from test_native import native as native
from test_native_threads import tiny as tiny

import adjoint as ad
from adjoint.compiler.native import transposes, views

pytest.importorskip("llvmlite")

DTYPES = ["float32", "float64", "int32", "int64"]
ORDERS = [axes for n in (2, 3, 4) for axes in itertools.permutations(range(n)) if axes != tuple(range(n))]
PARTS: dict[str, Any] = {
    "whole": lambda x: x,
    "backwards": lambda x: x[..., ::-1],
    "every other": lambda x: x[::2],
    "a part": lambda x: x[1:, ..., 2:],
    "turned": lambda x: x[::-1, ..., 1:-1],
}


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Copies of small arrays, too."""
    monkeypatch.setattr(views, "_LARGE", 16)
    monkeypatch.setattr(views, "_LINE", 4)
    monkeypatch.setattr(transposes, "_ELEMENTS", 16)


@pytest.fixture(params=[16, 32, 64])
def width(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> int:
    """Bytes of a vector, whatever the processor has."""
    monkeypatch.setattr(transposes, "vector_bytes", lambda: request.param)
    return int(request.param)


def kernels(f: Any) -> list[str]:
    """Of all programs of a compiled function, and their code for any size."""
    programs = [p.replay for p in f._programs.values()]
    return [line for r in programs for one in (r, *(r._variants or ())) for line in one.kernels]


@pytest.mark.parametrize("part", PARTS)
@pytest.mark.parametrize("dtype", DTYPES)
def test_all_orders_of_axes(dtype: str, part: str, width: int) -> None:
    rng, turned = np.random.default_rng(0), 0
    for axes in ORDERS:
        shape = [int(n) for n in rng.integers(5, 20 if len(axes) < 4 else 9, len(axes))]
        if rng.random() < 0.3:
            shape[0] = 16 * int(rng.integers(1, 3))
        x = rng.integers(-99, 99, shape).astype(dtype)
        wanted = PARTS[part](x).transpose(axes)
        y = rng.integers(-99, 99, wanted.shape).astype(dtype)
        f = ad.compile(lambda x, y, axes=axes: PARTS[part](x).transpose(axes) + y)
        np.testing.assert_array_equal(f(x, y), wanted + y)
        turned += any("transposed" in line for line in kernels(f))
    assert turned > len(ORDERS) // 3


@pytest.mark.parametrize("dtype", DTYPES)
def test_many_sizes(dtype: str, width: int) -> None:
    def plain(x: Any) -> Any:
        return x + x.T

    def above(x: Any) -> Any:
        return x.mT[:, :, ::-1] * x, x.transpose((1, 2, 0)) + x.sum(axis=0)[..., None]

    for f, shape in ((plain, lambda n: (n, n)), (above, lambda n: (3, n, n)), (above, lambda n: (n, 17, 17))):
        g, rng = ad.compile(f), np.random.default_rng(1)
        for n in (7, 33, 16, 40, 5, 64, 3, 2, 50, 21):
            x = rng.integers(-9, 9, shape(n)).astype(dtype)
            for found, expected in zip(*[ad.tree.leaves(h) for h in (g(x), f(ad.asarray(x)))], strict=True):
                np.testing.assert_array_equal(found, expected.numpy())
        assert any("transposed" in line for line in kernels(g))


def test_threads_share_copies(tiny: None) -> None:
    x, before = np.random.default_rng(2).normal(size=(203, 77)), ad.get_num_threads()
    f = ad.compile(lambda x, y: ad.tanh(x).T * y)
    try:
        for count in (1, 2, 3):
            ad.set_num_threads(count)
            np.testing.assert_allclose(f(x, x.T.copy()), np.tanh(x).T * x.T, rtol=1e-14)
    finally:
        ad.set_num_threads(before)
    assert any("parts transposed" in line for line in kernels(f))


def test_a_copy_is_made_once() -> None:
    f = ad.compile(ad.grad(lambda x, y: (ad.tanh(x.T * y) * x.T).sum(), argnums=(0, 1)))
    x, y = np.random.default_rng(3).normal(size=(2, 40, 40))
    expected = ad.grad(lambda x, y: (ad.tanh(x.T * y) * x.T).sum(), argnums=(0, 1))(ad.asarray(x), ad.asarray(y))
    for found, z in zip(f(x, y), expected, strict=True):
        np.testing.assert_allclose(found, z.numpy(), rtol=1e-12)
    assert sum("transposed" in line for line in kernels(f)) <= 2
