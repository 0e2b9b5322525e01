"""Loops, branches and places that arrays name in machine code for any size, beside the function as it is."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from test_native_sizes import native as native
from test_native_sizes import variants

import adjoint as ad

pytest.importorskip("llvmlite")

SIZES = [2, 3, 5, 7, 8, 15, 16, 17, 31, 32, 33, 64, 65, 100, 129, 257]
FUNCTIONS: dict[str, Callable[..., Any]] = {  # of x (n, k), w (k, k), h (k,), integers i (n,), e (4, n, k)
    "along rows": lambda x, w, h, i, e: ad.scan(lambda s, z: (ad.tanh(s @ w + z.sum()), s.sum()), h, x),
    "in reverse": lambda x, w, h, i, e: ad.scan(lambda s, z: (ad.tanh(s @ w) * z[0], z * s.mean()), h, x, reverse=True),
    "of a batch": lambda x, w, h, i, e: ad.scan(lambda s, z: (ad.tanh(s @ w + z), (s * s).sum(axis=1)), x, e)[0],
    "of large parts": lambda x, w, h, i, e: ad.scan(lambda s, z: (s * 0.9 + z.mean(), s[0]), ad.tile(x, (9, 9)), e)[0],
    "counted": lambda x, w, h, i, e: ad.fori_loop(0, 5, lambda k, s: ad.tanh(s @ w) + x, x),
    "as often as rows": lambda x, w, h, i, e: ad.fori_loop(0, x.shape[0], lambda k, s: ad.tanh(s @ w) + k, h),
    "while": lambda x, w, h, i, e: ad.while_loop(lambda s: abs(s).sum() > 0.1 * x.shape[0], lambda s: s * 0.5, x),
    "a choice": lambda x, w, h, i, e: ad.cond(x.sum() > 0, lambda s: s @ w, lambda s: -s, x),
    "loops in a loop": lambda x, w, h, i, e: ad.scan(
        lambda s, z: (ad.fori_loop(0, 3, lambda k, u: ad.tanh(u + z.mean()), s), s.sum()), h, x
    ),
    "rows of a table": lambda x, w, h, i, e: (ad.tanh(w[i]).sum(axis=1), w[i] * x),
    "rows of what changes": lambda x, w, h, i, e: x[i] * 2,
    "numbers at places": lambda x, w, h, i, e: x[:, 0][i] + x[i, 1],
    "along an axis": lambda x, w, h, i, e: ad.take_along_axis(x, (i % x.shape[1])[:, None], axis=1),
    "labels": lambda x, w, h, i, e: ad.nn.cross_entropy(x @ w, i % x.shape[1]),
    "first and last": lambda x, w, h, i, e: (x[1:] + x[:-1], x[0], x[-1]),
}


def _in_way(f: Callable[..., Any], way: str) -> Callable[..., Any]:
    if way == "gradient":

        def total(x: Any, w: Any, h: Any, i: Any, e: Any) -> Any:
            outs = ad.tree.leaves(f(x, w, h, i, e))
            return sum([ad.tanh(z).sum() for z in outs]) / x.shape[0] + 0 * (h.sum() + w.sum() + e.sum())

        return ad.value_and_grad(total, argnums=(0, 1, 2, 4))
    if way == "vmap":
        return ad.vmap(f, in_axes=(0, None, None, None, None))
    if way == "jvp":
        return lambda x, w, h, i, e: ad.jvp(lambda u: f(u, w, h, i, e), (x,), (x * 0.5,))
    return f


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "way"),
    [
        (name, way)
        for name in FUNCTIONS
        for way in ("value", "gradient", "vmap", "jvp")
        if (name, way) != ("while", "gradient")  # its number of steps has no bound
    ],
)
def test_loops_and_places_of_many_sizes(name: str, way: str) -> None:
    f, rng = _in_way(FUNCTIONS[name], way), random.Random(f"{name} {way}")
    before = ad.get_num_threads()
    try:
        for dtype in (np.float32, np.float64):
            k, g = rng.choice([2, 3, 8, 16, 17, 33]), ad.compile(f)
            for n in rng.sample(SIZES, 5):
                ad.set_num_threads(rng.choice([1, 2]))
                made = np.random.default_rng(n)
                arrays = [0.3 * made.normal(size=shape) for shape in ((n, k), (k, k), (k,), (4, n, k))]
                if way == "vmap":
                    arrays[0] = 0.3 * made.normal(size=(3, n, k))
                i = made.integers(-min(n, k), min(n, k), size=n)
                results = []
                for run, kind in ((g, dtype), (f, dtype), (f, float)):
                    x, w, h, e = (array.astype(kind) for array in arrays)
                    results.append(run(x, w, h, i, e))
                for found, *others in zip(*map(ad.tree.leaves, results), strict=True):
                    eager, exact = map(np.asarray, others)
                    assert (found.shape, found.dtype) == (eager.shape, eager.dtype)
                    atol = 4 * np.abs(eager - exact).max() + 512 * np.finfo(dtype).eps * max(1.0, np.abs(exact).max())
                    np.testing.assert_allclose(found, exact, rtol=0, atol=atol, err_msg=f"{n} {k} {dtype}")
            assert variants(g)
            assert min(variants(g)) > 0
    finally:
        ad.set_num_threads(before)


@pytest.mark.parametrize("mode", ["add", "set", "max", "multiply"])
def test_places_are_written_in_order_of_any_size(mode: str) -> None:
    """Also where a place is named twice, and after the last whole vector."""
    write = lambda x, i, v: ad.scatter(x, i, v, mode=mode)
    g = ad.compile(write)
    for n in [*range(2, 40), 200]:
        rng = np.random.default_rng(n)
        x, i, v = rng.normal(size=11), rng.integers(-11, 11, size=n), rng.normal(size=n)
        np.testing.assert_allclose(g(x, i, v), write(ad.tensor(x), i, v).numpy(), rtol=1e-13)
    assert max(variants(g)) > 0


def test_places_out_of_range_of_any_size() -> None:
    g = ad.compile(lambda x, i: x[i] * 2)
    for n in (30, 31, 32, 47):
        x = np.arange(float(n))
        np.testing.assert_array_equal(g(x, np.arange(n)), 2 * x)
        for place in (n, -n - 1):
            with pytest.raises(ad.errors.AdjointError):
                g(x, np.array([*range(n - 1), place]))
