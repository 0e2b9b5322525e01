"""The number of a step of `fori_loop`: in a program it is a tensor, and still counts as Python's integer."""

from __future__ import annotations

import copy
import math
import numbers
from typing import Any

import numpy as np
import pytest
from test_compile import counted

import adjoint as ad
from adjoint import errors

X = np.arange(1.0, 8.0, dtype=np.float32)
TABLE = np.arange(8, dtype=np.float32)
STEPS = 30


def _matched(i: Any, c: Any) -> Any:
    match i:
        case 0:
            return c + 5
        case int():
            return c + 1
        case _:
            return c + 100


LOOPS: dict[str, Any] = {  # which are loops of the program
    "number": lambda i, c: c + i,
    "float": lambda i, c: c + (i * 1.0) / 7,
    "power": lambda i, c: c * 0.9**i,
    "square": lambda i, c: c + i**2 - i * (i + 1) // 2 + i % 3,
    "bits": lambda i, c: c + ((i & 5) | (i ^ 3)) + (~i >> 1) + (i << 3),
    "sign": lambda i, c: c + abs(i - 3) - -i,
    "class": lambda i, c: c + isinstance(i, int),
    "class of what follows": lambda i, c: c + isinstance(i * 0.5, float) + isinstance(i + 1, int),
    "abstract class": lambda i, c: c + isinstance(i, numbers.Integral),
    "comparison": lambda i, c: ad.where(i > 2, c, c + 1),
    "index": lambda i, c: c + ad.asarray(TABLE)[i % 7],
    "full": lambda i, c: c + ad.full((7,), i) * ad.full((1,), i * 0.5),
    "full_like": lambda i, c: c + ad.full_like(c, i) + ad.full_like(ad.ones(7, dtype=ad.int8), i),
    "roll": lambda i, c: ad.roll(c, i) + ad.roll(c.reshape((7, 1)), -2 * i, axis=0).reshape(7),
    "linspace": lambda i, c: c + ad.linspace(0, i, 7) + ad.linspace(i * 0.5, 9, 7, False) + ad.linspace(i, -i, 1),
    "choice": lambda i, c: ad.cond(i > 2, lambda c: c + i, lambda c: c, c),
    "loop inside": lambda i, c: ad.fori_loop(0, 3, lambda j, d: d + i * j, c),
}
APART: dict[str, Any] = {  # whose steps run one by one
    "float()": lambda i, c: c + float(i),
    "index of an array": lambda i, c: c + TABLE[i % 7],
    "np.full": lambda i, c: c + np.full(7, i),
    "math": lambda i, c: c + math.sin(i) + math.floor(i / 3),
    "question": lambda i, c: c + 1 if i % 2 else c * 2,
    "range": lambda i, c: c + sum(range(i % 3)),
    "text": lambda i, c: c + int(str(i)) + len(f"{i + 1}") + len(f"{i:3d}"),
    "representation": lambda i, c: c + len(repr(i)) + len(str((i,))),
    "percent": lambda i, c: c + len("%d" % i),  # noqa: UP031
    "key": lambda i, c: c + {"w0": 1.0, "w1": 2.0}.get(f"w{i}", 3.0),
    "hash": lambda i, c: c + {0: 1.0, 1: 2.0}.get(i, 0.0),
    "type": lambda i, c: c + (type(i) is int),
    "match": _matched,
    "repeated": lambda i, c: c + len([1] * i) + len(i * "ab"),
    "method": lambda i, c: c + i.bit_length(),
    "rounded": lambda i, c: c + round(i * 0.37, 1),
    "modulus": lambda i, c: c + pow(i, 2, 5),
    "negative power": lambda i, c: c + 2**-i + (i + 1) ** -1,
    "many digits": lambda i, c: c + (i * 2**60 * 8) * 1e-20,
    "product of many digits": lambda i, c: c + (i + 2**40) * (i + 2**40) * 1e-20,
    "power of many digits": lambda i, c: c + 10**i * 1e-30,
    "root of a negative number": lambda i, c: c + abs((i - 3) ** 0.5),
    "quotient across zero": lambda i, c: c + 1 / (i - 2.5),
    "copy": lambda i, c: c + copy.deepcopy([i])[0] + int(i),
}


@pytest.mark.parametrize("name", [*LOOPS, *APART])
def test_the_number_of_a_step_counts_as_pythons(name: str) -> None:
    """Many were other numbers silently: of too many digits, texts, `isinstance`, lists that are repeated."""
    step = {**LOOPS, **APART}[name]
    for first in (0, -3) if name in LOOPS and name != "index" else (0,):
        f = ad.compile(lambda x, first=first: ad.fori_loop(first, first + STEPS, step, x))
        expected = ad.fori_loop(first, first + STEPS, step, X)
        found = f(X)
        assert found.dtype == expected.dtype
        np.testing.assert_allclose(found, expected, rtol=2e-5)
    lines = str(f.lower(X)).count("\n")
    assert (lines < STEPS) == (name in LOOPS), lines


@pytest.mark.parametrize("step", [lambda i, c: c + 1 / i, lambda i, c: c + 1 // i, lambda i, c: c + 5 % i])
def test_divisions_by_the_number_of_the_first_step(step: Any) -> None:
    """They gave an infinity, or zero."""
    with pytest.raises(ZeroDivisionError):
        ad.fori_loop(0, 4, step, X)
    with pytest.raises(ZeroDivisionError):
        ad.compile(lambda x: ad.fori_loop(0, 4, step, x))(X)
    found = ad.compile(lambda x: ad.fori_loop(1, 4, step, x))(X)
    np.testing.assert_allclose(found, ad.fori_loop(1, 4, step, X), rtol=1e-6)


def test_derivatives_of_what_is_made_of_numbers_of_steps() -> None:
    def f(x: Any) -> Any:
        step = lambda i, c: c * ad.roll(c, i) + ad.full((4,), i) * c + ad.linspace(0, i, 4) * c
        return (ad.fori_loop(0, 4, step, x) ** 2).sum()

    x = np.array([0.1, 0.2, 0.3, 0.4])
    for transform in (ad.grad, ad.hessian):
        np.testing.assert_allclose(ad.compile(transform(f))(x), transform(f)(x), rtol=1e-12)


def test_values_that_the_program_computes_fill_arrays() -> None:
    """They were refused."""
    f = lambda x: (ad.full((3,), x[0]), ad.full_like(x, x.sum(), dtype=ad.int32), ad.full((), x[1], dtype=ad.float32))
    for x in (ad.tensor([1.5, 2.5]), ad.tensor([1, 2])):
        for found, expected in zip(ad.compile(f)(x), f(x), strict=True):
            assert found.dtype == expected.dtype
            np.testing.assert_array_equal(found.numpy(), expected.numpy())


def noted(seen: list[Any], x: Any) -> Any:
    return ad.scan(lambda c, _: (c + 1, seen.append(1)), x, None, 1200)[0]


@pytest.mark.parametrize(
    ("f", "text"),
    [
        (lambda x: ad.fori_loop(0, 1200, lambda i, c: c + float(i), x), r"fori_loop: 1200 .*float.* asked.*i \* 1.0"),
        (lambda x: ad.fori_loop(0, 1200, lambda i, c: c + (type(i) is int), x), "fori_loop: 1200 .*calls type"),
        (lambda x: noted([], x), "scan: .*outside of it"),
    ],
)
def test_many_steps_that_are_recorded_one_by_one(f: Any, text: str) -> None:
    """A warning says why, and where, before it takes long."""
    with pytest.warns(RuntimeWarning, match=f"(?s){text}") as caught:
        ad.compile(f)(np.ones(1))
    assert len(caught) == 1
    assert caught[0].filename == __file__


def test_an_error_of_a_step_is_raised_at_once() -> None:
    with pytest.raises(errors.ShapeError, match="broadcast"):
        ad.compile(lambda x: ad.fori_loop(0, 10**6, lambda i, c: c + ad.ones(5), x))(X)
    with pytest.raises(KeyError):
        ad.compile(lambda x: ad.fori_loop(0, 10**6, lambda i, c: c + {}["missing"], x))(X)


def test_numbers_of_the_arguments_beside_numbers_of_steps() -> None:
    """They are traced together, and exact."""
    step: dict[str, Any] = {
        "product": lambda i, c, n: c + i * n,
        "power": lambda i, c, n: c + n * i**2,
        "quotient": lambda i, c, n: c + i / n,
        "whole quotient": lambda i, c, n: c + (i + 2) // n,
    }
    for f in step.values():
        plain = lambda x, n, f=f: ad.fori_loop(0, 20, lambda i, c: f(i, c, n), x)
        compiled, runs = counted(plain)
        for n in (3, 4, 5, 6):
            np.testing.assert_allclose(compiled(X, n), plain(X, n), rtol=1e-5)
        assert len(runs) == 2
        for n in (2**40, 2**62, -(2**62), 0):
            try:
                expected = plain(X, n)
            except ZeroDivisionError:
                with pytest.raises(ZeroDivisionError):
                    compiled(X, n)
                continue
            np.testing.assert_allclose(compiled(X, n), expected, rtol=1e-5)


def test_a_loop_that_does_not_end_says_how_many_steps_were_allowed() -> None:
    """It said how many were left where the first ones were recorded one by one."""
    f = lambda x: ad.while_loop(lambda s: s[0] < 1000, lambda s: (s[0] + 1, s[1] * x), (0, x), max_steps=100)
    for g in (f, ad.compile(f)):
        with pytest.raises(errors.ConvergenceError, match="max_steps=100;"):
            g(ad.tensor(1.0))
