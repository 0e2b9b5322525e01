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


# numbers that a loop carries, and which are those of a plain loop: twelve times the first
LOOPS: dict[str, Callable[[Any, Any], Any]] = {
    "fori_loop": lambda n, x: ad.fori_loop(0, 2, lambda i, c: c * 2, n * 3),
    "fori_loop of a bound": lambda n, x: ad.fori_loop(0, ad.astype(x, "i4"), lambda i, c: c * 2, n * 3),
    "while_loop": lambda n, x: ad.while_loop(lambda s: s[0] < x, lambda s: (s[0] + 1, s[1] * 2), (0, n * 3))[1],
    "while_loop with max_steps": lambda n, x: ad.while_loop(
        lambda s: s[0] < x, lambda s: (s[0] + 1, s[1] * 2), (0, n * 3), max_steps=4
    )[1],
    "scan": lambda n, x: ad.scan(lambda c, _: (c * 2, ()), n * 3, length=2)[0],
    "scan in chunks": lambda n, x: ad.scan(lambda c, _: (c * 2, ()), n * 3, length=2, checkpoint_every=1)[0],
    "beside an array": lambda n, x: ad.scan(lambda c, _: ((c[0] * 2, c[1] * x), ()), (n * 3, 1), length=2)[0][0],
    "that turn": lambda n, x: ad.fori_loop(0, 4, lambda i, c: (c[1], c[0] * 2), (n * 3, n * 3))[0],
    "that widen": lambda n, x: ad.fori_loop(0, 2, lambda i, c: c + n * 6, 0),
    "in a choice": lambda n, x: ad.fori_loop(0, 2, lambda i, c: ad.cond(x > 0, lambda: c * 2, lambda: c), n * 3),
    "of a choice": lambda n, x: ad.fori_loop(0, 2, lambda i, c: c * 2, ad.cond(x > 0, lambda: n * 3, lambda: n)),
    "of a loop": lambda n, x: ad.fori_loop(0, 1, lambda i, c: ad.fori_loop(0, 2, lambda i, c: c * 2, c), n * 3),
    "that took no step": lambda n, x: ad.while_loop(lambda c: x < 0, lambda c: c + c, n * 12),
}
WAYS: dict[str, Callable[[Callable[[Any], Any], Any], Any]] = {
    "vmap": lambda f, x: ad.vmap(f)(ad.stack([x, x]))[1],
    "compile": lambda f, x: ad.compile(f)(x),
    "compiled vmap": lambda f, x: ad.compile(ad.vmap(f))(ad.stack([x, x]))[1],
    "jvp": lambda f, x: ad.jvp(f, (x,), (ad.ones_like(x),))[0],
    "gradient": lambda f, x: ad.value_and_grad(f)(x)[0],
    "gradient of vmap": lambda f, x: ad.vmap(ad.value_and_grad(f))(ad.stack([x, x]))[0][1],
    "compiled gradient": lambda f, x: ad.compile(ad.value_and_grad(f))(x)[0],
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("kind", CHOICES)
def test_loops_carry_them_in_full_precision(kind: str, way: str) -> None:
    n = CHOICES[kind][0]
    unknown = {"while_loop", "fori_loop of a bound"} if way == "compiled gradient" else set()  # lengths: forward alone
    with Each() as each:
        for dtype in ("f4", "f8"):
            x = ad.tensor(np.array(2, dtype))
            for name in LOOPS.keys() - unknown:
                with each(f"{name} {dtype}"):
                    f = lambda x, loop=LOOPS[name]: ad.real(loop(n, x) * x)
                    found = WAYS[way](f, x)
                    if way == "compile":  # outside of transforms loops of numbers give float64, compiled or not
                        wanted = f(x)
                        assert found.dtype == wanted.dtype
                        np.testing.assert_allclose(found.numpy(), wanted.numpy(), rtol=2 * np.finfo(dtype).eps)
                        continue
                    assert found.dtype == x.dtype
                    np.testing.assert_allclose(found.numpy(), np.real(n * 12 * 2.0), rtol=2 * np.finfo(dtype).eps)


@pytest.mark.parametrize(
    "name", sorted(LOOPS.keys() - {"fori_loop of a bound"})
)  # astype gives a tensor, which looks the same
def test_loops_of_arrays_have_the_types_that_they_have_as_they_are(name: str) -> None:
    with Each() as each:
        for n in (1.1, 3):
            for x in (np.float32(2), np.float64(2), np.array(2.0, np.float32), np.array(2)):
                with each(f"{n} {x.dtype}"):
                    f = lambda x, n=n: LOOPS[name](n, x)
                    if name in ("in a choice", "of a choice"):  # these compute with what a branch gave
                        f = lambda x, n=n: ad.asarray(LOOPS[name](n, x)).astype(float)
                    found, wanted = ad.compile(f)(x), f(x)
                    assert np.asarray(found).dtype == np.asarray(wanted).dtype
                    np.testing.assert_allclose(np.asarray(found), np.asarray(wanted), rtol=3e-7)
