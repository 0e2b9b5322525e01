"""Gradients of slices, which machine code joins into one array."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from each import Each

import adjoint as ad

pytest.importorskip("llvmlite")


@pytest.fixture(autouse=True)
def native(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ADJOINT_COMPILE", raising=False)


def weighed(*pieces: Any) -> Any:
    """A number that depends on each piece in its own way."""
    return sum([(ad.sin(p) * (k + 1.5)).sum() for k, p in enumerate(pieces)])


JOINED: dict[str, Callable[[Any], Any]] = {
    "all columns": lambda x: weighed(x[:, :60], x[:, 60:90], x[:, 90:]),
    "all rows": lambda x: weighed(x[:30], x[30:]),
    "with gaps": lambda x: weighed(x[:, 3:50], x[:, 60:61], x[:, 70:-2]),
    "in any order": lambda x: weighed(x[:, 90:], x[:, :40], x[:, 40:90]),
    "one": lambda x: weighed(x[:, 5:90]),
    "rows by number": lambda x: weighed(x[3], x[0], x[-1]),
    "shapes of more axes": lambda x: weighed(*[x.reshape((8, 10, 120))[..., k * 40 : k * 40 + 40] for k in range(3)]),
}
OTHERS: dict[str, Callable[[Any], Any]] = {
    "overlaps": lambda x: weighed(x[:, :70], x[:, 60:]),
    "corners": lambda x: weighed(x[:40, :60], x[40:, 60:]),
    "steps": lambda x: weighed(x[:, ::2], x[:, 1::2]),
    "too many": lambda x: weighed(*[x[:, k : k + 2] for k in range(0, 100, 3)]),
}


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_gradients_of_slices(dtype: str) -> None:
    x = np.random.default_rng(0).normal(size=(80, 120)).astype(dtype)
    for name, f in {**JOINED, **OTHERS}.items():
        with Each() as each, each(name):
            gradient = ad.compile(ad.grad(f))
            expected = ad.grad(f)(ad.asarray(x)).numpy()
            np.testing.assert_allclose(gradient(x), expected, rtol=1e-5 if dtype == "float32" else 1e-13, atol=1e-7)
            assert ("key=" in gradient.lower(x).source) == (name in OTHERS)  # a call of NumPy's leaf


def test_a_slice_that_is_all_of_an_array() -> None:
    """The one row of a matrix is all of it, and so it overlaps each of its columns."""

    def assigned(v: Any) -> Any:
        y = ad.zeros((1, 3), dtype=ad.float64)
        y[:, 0] = v[0]
        y[0] = v[1]
        return y

    v = np.array([1.0, 2.0])
    np.testing.assert_array_equal(ad.compile(assigned)(v), [[2.0, 2.0, 2.0]])
    x = np.array([[1.0, 2.0, 3.0]])
    for f in (
        lambda x: weighed(x[0], x[:, 0]),
        lambda x: weighed(x[:, 0], x[0]),
        lambda x: weighed(x[:, 1:], x[0], x[:1], x[...]),
    ):
        expected = ad.grad(f)(ad.asarray(x)).numpy()
        np.testing.assert_allclose(ad.compile(ad.grad(f))(x), expected, rtol=1e-14)


def test_what_is_assigned_keeps_signs_of_zeros() -> None:
    """0 + -0 is 0 where it is added, and -0 where it is assigned."""
    x = np.full((70, 70), -0.0)

    def added(x: Any) -> Any:
        return ad.grad(lambda y: (y[:, :70] * x).sum() + (y[:, 70:] * x).sum())(ad.ones((70, 140), dtype=x.dtype))

    def assigned(x: Any) -> Any:
        y = ad.zeros((70, 140), dtype=x.dtype)
        y[:, :70] = x
        y[:, 70:] = x
        return y

    for f in (added, assigned):
        np.testing.assert_array_equal(np.signbit(ad.compile(f)(x)), np.signbit(f(ad.asarray(x)).numpy()))


@pytest.mark.parametrize("dtype", ["int32", "uint8", "bool", "complex64"])
def test_slices_of_other_types(dtype: str) -> None:
    def f(x: Any) -> Any:
        y = ad.zeros((70, 140), dtype=x.dtype)
        y[:, :70] = x
        y[:, 70:140] = x[::-1]
        return y

    x = (np.random.default_rng(2).normal(size=(70, 70)) * 9).astype("int8").astype(dtype)
    np.testing.assert_array_equal(ad.compile(f)(x), f(ad.asarray(x)).numpy())


def test_a_step_of_a_loop_is_machine_code() -> None:
    """The gradient of a cell with gates that are slices of one product is one function."""
    n = 16

    def f(w: Any, xs: Any) -> Any:
        def step(h: Any, x: Any) -> Any:
            z = x + h @ w
            return ad.tanh(z[:, :n]) * ad.nn.sigmoid(z[:, n : 2 * n]) + z[:, 2 * n :], None

        return (ad.scan(step, ad.zeros((300, n), dtype=xs.dtype), xs)[0] ** 2).sum()

    rng = np.random.default_rng(1)
    w, xs = rng.normal(size=(n, 3 * n)) * 0.1, rng.normal(size=(5, 300, 3 * n))
    gradient = ad.compile(ad.grad(f))
    np.testing.assert_allclose(gradient(w, xs), ad.grad(f)(ad.asarray(w), xs).numpy(), rtol=1e-11)
    assert sum("repeated" in line for line in gradient.lower(w, xs).kernels) == 2
