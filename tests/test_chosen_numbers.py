"""Python's numbers that a choice gives: in a program and in a batch they meet others as they do outside of these."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from each import Each

import adjoint as ad
from adjoint import errors

CHOICES = {"integers": (1, 3), "floats": (1.1, 2.2), "complex numbers": (1 + 2j, 2j)}
DTYPES = (np.float32, np.int8, np.complex64, *[pytest.param(d, marks=pytest.mark.slow) for d in ("f2", "f8", "i4")])
OPERATIONS: dict[str, Callable[[Any, Any], Any]] = {
    "n * x": lambda n, x: n * x,
    "x * n": lambda n, x: x * n,
    "x + n": lambda n, x: x + n,
    "n - x": lambda n, x: n - x,
    "x / n": lambda n, x: x / n,
    "n / x": lambda n, x: n / (x + 3),
    "x**n": lambda n, x: (abs(x) + 1) ** n,
    "n**x": lambda n, x: n**x,
    "x // n": lambda n, x: x // n,
    "x % n": lambda n, x: x % n,
    "x > n": lambda n, x: x > n,
    "-n * x": lambda n, x: -n * x,
    "abs(n) * x": lambda n, x: abs(n) * x,
    "(n * 2 + 1) * x": lambda n, x: (n * 2 + 1) * x,
    "where": lambda n, x: ad.where(x == 2, x, n),
    "stack": lambda n, x: ad.stack([x, n * x]),
    "maximum": lambda n, x: ad.maximum(x, n),
    "sin(n) * x": lambda n, x: ad.sin(n) * x,
    "np.multiply": lambda n, x: np.multiply(x, n),
    "beside a scalar of NumPy's": lambda n, x: np.float32(2) * n * x,
    "beside an array of NumPy's": lambda n, x: np.ones(2, np.float32) * n + x,
    "in another choice": lambda n, x: ad.cond(x == 2, lambda: n, lambda: 2) * x,
    "an operand of another choice": lambda n, x: ad.cond(x == 2, lambda n: n, lambda n: 2 * n, n) * x,
}


def outcome(f: Callable[[], Any]) -> Any:
    try:
        return np.asarray(f().numpy())
    except errors.AdjointError as error:
        return type(error)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("kind", CHOICES)
def test_they_adapt_as_pythons_numbers_do(kind: str, dtype: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ADJOINT_COMPILE", "replay")  # types are those of the graph
    first, second = CHOICES[kind]
    x = ad.tensor(np.array(2, dtype))
    rtol = 1e-2 if x.dtype is ad.float16 else 1e-6
    with Each() as each, warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # of powers that overflow, in all ways
        for name, operation in OPERATIONS.items():
            f = lambda p, x, use=operation: use(ad.cond(p, lambda: first, lambda: second), x)
            compiled, batched = ad.compile(f), ad.vmap(f, in_axes=(0, None))
            for p in (True, False):
                with each(f"{name} {p}"):
                    wanted = outcome(lambda f=f, p=p: f(ad.tensor(p), x))
                    for found in (
                        outcome(lambda g=compiled, p=p: g(ad.tensor(p), x)),
                        outcome(lambda g=batched, p=p: g(ad.tensor([p, not p]), x)[0]),
                    ):
                        if isinstance(wanted, type) or isinstance(found, type):
                            assert found is wanted
                        else:
                            assert found.dtype == wanted.dtype
                            np.testing.assert_allclose(found, wanted, rtol=rtol)


@pytest.mark.parametrize("kind", ["integers", "floats"])
def test_gradients_through_them(kind: str) -> None:
    first, second = CHOICES[kind]
    f = lambda p, x: (ad.cond(p, lambda: first, lambda: second) * ad.sin(x)).sum()
    x = np.array([0.3, 1.2], np.float32)
    for p, factor in ((True, first), (False, second)):
        for g in (ad.compile(ad.grad(f, 1)), ad.grad(ad.compile(f), 1), ad.grad(f, 1)):
            found = g(np.array(p), x)
            assert found.dtype == np.float32
            np.testing.assert_allclose(found, factor * np.cos(x), rtol=1e-6)
    each = ad.vmap(ad.grad(f, 1), in_axes=(0, None))(np.array([True, False]), x)
    np.testing.assert_allclose(each, [first * np.cos(x), second * np.cos(x)], rtol=1e-6)
