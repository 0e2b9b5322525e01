"""Products, and short rows, of machine code for any size: beside NumPy, for many sizes of each function."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest
from test_native_sizes import native as native
from test_native_sizes import no_further_than_eager, variants

import adjoint as ad

pytest.importorskip("llvmlite")

SIZES = [2, 3, 5, 7, 8, 15, 16, 17, 24, 31, 32, 33, 47, 64, 65, 100, 127, 129, 255, 257, 300, 513, 1025]
LARGE = [2050, 4097, 9001]  # whose products threads share
FUNCTIONS: dict[str, Any] = {  # of x of (n, k), y of (n, m), u of (k, m), v of (m, k), b of (m,)
    "x @ u": lambda x, y, u, v, b: x @ u,
    "x @ v.T": lambda x, y, u, v, b: x @ v.T,
    "x.T @ y": lambda x, y, u, v, b: x.T @ y,
    "relu(x @ u + b)": lambda x, y, u, v, b: ad.nn.relu(x @ u + b),
    "a step along a gradient": lambda x, y, u, v, b: u - 0.1 * (x.T @ y),
    "a sum of products": lambda x, y, u, v, b: (ad.tanh(x @ u) * y).sum(),
    "a part of the rows": lambda x, y, u, v, b: x[1:] @ u,
    "rows in reverse": lambda x, y, u, v, b: x[::-1] @ u + y,
    "y @ u.T * x": lambda x, y, u, v, b: y @ u.T * x,
    "two in a row": lambda x, y, u, v, b: (x.T @ x, x @ (x.T @ y)),
    "rows as columns": lambda x, y, u, v, b: u.T @ x.T,
    "a mean": lambda x, y, u, v, b: (x @ u + b) / x.shape[0],
    "softmax": lambda x, y, u, v, b: ad.nn.softmax(x @ u + b, axis=-1) * y,
    "layer_norm": lambda x, y, u, v, b: ad.nn.layer_norm(x @ u, (u.shape[1],)),
    "columns beside each other": lambda x, y, u, v, b: ad.concat([x * 2, y], axis=1),
    "every other column": lambda x, y, u, v, b: ad.sin(x[:, ::2]) @ u[::2],
    "a column": lambda x, y, u, v, b: ad.stack([x[:, 0], y[:, -1] * 3], axis=1),
    "sums of columns": lambda x, y, u, v, b: (x.sum(axis=0), (x * x).sum(axis=1), y.max(axis=1)),
}
OF_STACKS = ["x @ u", "x @ v.T", "relu(x @ u + b)", "softmax", "layer_norm", "a mean"]


def _of(name: str, way: str) -> Any:
    f = FUNCTIONS[name]
    if way != "gradient":
        return f
    return ad.value_and_grad(
        lambda *args: sum([ad.tanh(z).sum() for z in ad.tree.leaves(f(*args))]) / args[0].shape[0],
        argnums=(0, 2, 3, 4),
    )


@pytest.mark.parametrize(
    ("name", "way"),
    [
        *[(name, "value") for name in FUNCTIONS],
        *[pytest.param(name, "gradient", marks=pytest.mark.slow) for name in FUNCTIONS],
        *[pytest.param(name, "stack", marks=pytest.mark.slow) for name in OF_STACKS],
    ],
)
def test_products_of_many_sizes(name: str, way: str) -> None:
    rng = random.Random(f"{name} {way}")
    before = ad.get_num_threads()
    try:
        for dtype in (np.float32, np.float64):
            k, m = (rng.choice([1, 2, 3, 8, 10, 16, 17, 33, 48, 64, 100]) for _ in "km")
            f = _of(name, way)
            g = ad.compile(f)
            for n in rng.sample(SIZES, 7) + rng.sample(LARGE, 1):
                ad.set_num_threads(rng.choice([1, 2]))
                normal = np.random.default_rng(n).normal
                lead = (3,) if way == "stack" else ()
                shapes = [(*lead, n, k), (*lead, n, m), (k, m), (m, k), (m,)]
                no_further_than_eager(g, f, [normal(size=shape) for shape in shapes], dtype, f"{n} {k} {m}")
    finally:
        ad.set_num_threads(before)


# products of which more than one number follows from the size n: of functions, and of shapes for n, k and m
SQUARES: dict[str, tuple[Any, Any]] = {
    "a Gram matrix": (lambda x, w: x @ x.T, lambda n, k, m: [(n, k), (k, m)]),
    "what follows": (lambda x, w: ad.nn.relu(x @ x.T + x.sum(axis=1)) * 2, lambda n, k, m: [(n, k), (k, m)]),
    "a matrix beside": (lambda x, w: x @ x.T + x[:, :1] * x[:, 0], lambda n, k, m: [(n, k), (k, m)]),
    "columns": (lambda w, x: ad.tanh(w @ x), lambda n, k, m: [(m, k), (k, n)]),
    "a row beside columns": (lambda w, x: ad.nn.relu(w @ x + x[:1]) * x[0], lambda n, k, m: [(m, k), (k, n)]),
    "columns of transposes": (lambda x, w: x.T @ w.T, lambda n, k, m: [(k, n), (m, k)]),
    "rows and sums": (lambda x, w: (x.T @ x) @ w, lambda n, k, m: [(k, n), (n, m)]),
    "three": (lambda x, y: (x @ y) @ (y.T @ x.T), lambda n, k, m: [(n, k), (k, n)]),
    "of a stack": (lambda x, w: x @ x.mT, lambda n, k, m: [(3, n, k), (k, m)]),
    "attention": (lambda q, w: ad.nn.softmax(q @ q.mT / 3, axis=-1) @ q, lambda n, k, m: [(2, n, k), (k, m)]),
    "two sizes": (lambda x, y: x @ y.T, lambda n, k, m: [(n, k), (n + 5, k)]),
    "an outer product": (lambda x, y: x[:, :1] @ y[:1], lambda n, k, m: [(n, k), (m, n)]),
    "every other row": (lambda x, w: x[::-1] @ x.T[:, ::2], lambda n, k, m: [(n, k), (k, m)]),
}


@pytest.mark.parametrize("way", ["value", pytest.param("gradient", marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", SQUARES)
def test_rows_and_columns_of_many_sizes(name: str, way: str) -> None:
    rng = random.Random(f"{name} {way}")
    f, shapes = SQUARES[name]
    if way == "gradient":
        f = ad.value_and_grad(lambda *args: ad.tanh(SQUARES[name][0](*args) * 0.3).sum(), argnums=(0, 1))
    before = ad.get_num_threads()
    try:
        for dtype in (np.float32, np.float64):
            k, m = rng.choice([1, 2, 3, 8, 17, 33, 64]), rng.choice([1, 2, 5, 16, 31, 64])
            g = ad.compile(f)
            for n in [*rng.sample(SIZES[:-1], 6), 700]:
                ad.set_num_threads(rng.choice([1, 2]))
                wide = [np.random.default_rng(n).normal(size=s) for s in shapes(n, k, m)]
                no_further_than_eager(g, f, wide, dtype, f"{n} {k} {m}")
            assert max(variants(g)) > 0
            assert not any(p.replay._is_fixed for general in g._general.values() for p in general.programs)
    finally:
        ad.set_num_threads(before)


def test_few_pieces_of_code_serve_for_a_network() -> None:
    rng = np.random.default_rng(0)
    weights = [rng.normal(size=shape).astype(np.float32) for shape in ((64, 32), (32,), (32, 10), (10,))]

    def loss(weights: Any, x: Any, labels: Any) -> Any:
        a, b, c, d = weights
        return -(ad.nn.log_softmax(ad.nn.relu(x @ a + b) @ c + d, axis=-1) * labels).sum() / x.shape[0]

    f = ad.value_and_grad(loss)
    g = ad.compile(f)
    for n in [*range(2, 140, 3), *range(140, 5000, 397)]:
        x, labels = (rng.normal(size=(n, k)).astype(np.float32) for k in (64, 10))
        for found, expected in zip(*[ad.tree.leaves(h(weights, x, labels)) for h in (g, f)], strict=True):
            np.testing.assert_allclose(found, expected, rtol=1e-3, atol=1e-4)
    assert 1 <= max(variants(g)) <= 2
    assert not any(p.replay._is_fixed for general in g._general.values() for p in general.programs)


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int8, np.int64, np.bool_])
def test_columns_are_written_of_any_size(dtype: Any) -> None:
    f = lambda x, y: (ad.stack([x, y], axis=1), ad.stack([y, x, y], axis=-1)[:, 1:])
    g = ad.compile(f)
    for n in [*range(2, 70), 500]:
        x, y = (np.random.default_rng(n).integers(-9, 9, size=(2, n)) / 2).astype(dtype)
        for found, expected in zip(g(x, y), f(ad.tensor(x), ad.tensor(y)), strict=True):
            np.testing.assert_array_equal(found, expected.numpy())
    assert max(variants(g)) > 0


def test_an_array_that_is_resized_while_code_is_chosen_is_an_error() -> None:
    f = ad.compile(lambda x: ad.sin(x) * 2)
    for n in (4000, 4001, 4002):
        f(np.ones(n))
    (program,) = [p for general in f._general.values() for p in general.programs]
    chosen = program.replay.for_sizes
    x = np.ones(4003)

    def cut(*sizes: int) -> bool:
        x.resize(3, refcheck=False)
        return True

    chosen[:] = [(cut, run) for _, run in chosen]
    with pytest.raises(ad.errors.ShapeError, match="nobody may resize its arguments meanwhile"):
        f(x)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_products_with_unit_vectors_of_any_size(dtype: Any) -> None:
    """A copy where all numbers are finite, else the product: an infinity times zero is nan."""
    loss = lambda w, x, y: ad.log1p(ad.exp(-y * (x @ w))).mean()
    layer = lambda w, x, y: ad.tanh(x @ w)
    for name, f in {"hessian": ad.hessian(loss), "rows": ad.jacobian(layer)}.items():
        g, rng = ad.compile(f), np.random.default_rng(7)
        for n in (30, 41, 17, 200, 3, 16, 64):
            w, x, y = (rng.normal(size=s).astype(dtype) for s in ((9,), (n, 9), (n,)))
            for special in (0.0, np.inf, np.nan):
                x[n // 2, 4] = special or x[n // 2, 4]
                with np.errstate(all="ignore"):
                    found, expected = g(w, x, y), f(*map(ad.asarray, (w, x, y))).numpy()
                atol = 64 * np.finfo(dtype).eps
                np.testing.assert_allclose(found, expected, rtol=64 * np.finfo(dtype).eps, atol=atol)
        programs = [p for p in g._programs.values() if p.symbols is not None]
        kernels = [line for p in programs for v in p.replay._variants or () for line in v.kernels]
        assert kernels
        assert any("chosen" in line for line in kernels) or name != "hessian"
