"""Numbers of double precision run by Python's operators: results and derivatives are those of arrays, to the bit."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import adjoint as ad

VALUES = [0.0, -0.0, 1.5, -0.75, 3.0, np.inf, -np.inf, np.nan, 5e-324, 1e308]
FUNCTIONS: dict[str, Callable[..., Any]] = {
    "add": lambda x, y: x + y,
    "subtract": lambda x, y: x - y,
    "multiply": lambda x, y: x * y,
    "divide": lambda x, y: x / y,
    "number on the right": lambda x, y: (x * 3.0 - 2 + 0.0) / 7 * y,
    "number on the left": lambda x, y: 2.0 / (3 - x) + -0.0 * y,
    "numpy's number": lambda x, y: np.float64(0.3) * x / np.float64(3.0) - np.float64(2.0) + np.float64(0.0) * y,
    "unary": lambda x, y: ad.exp(-x) * ad.tanh(y) + ad.sin(x) * ad.cos(x * y) - ad.tan(y),
    "roots": lambda x, y: ad.sqrt(x * x + 1.0) / ad.log(ad.square(y) + 2.0),
    "roots of any sign": lambda x, y: ad.sqrt(x) - ad.square(y) * ad.sqrt(y),
    "compared": lambda x, y: ad.where(x < y, x * y, x / 3.0),
    "compared otherwise": lambda x, y: (
        ad.where(x <= y, 2.0, 3.0) * x + ad.where(x > y, 5.0, 7.0) * y + ad.where(x >= 1.5, 11.0, 13.0)
    ),
    "squares": lambda x, y: x * x * (y * y) / (x * x + y) + ad.square(x - y),
    "angles": lambda x, y: ad.cos(x * x) / ad.sin(y) + ad.log(2.0 / (x * x + 1.0)) * ad.tan(y * 0.25),
    "the same": lambda x, y: ad.where(x == y, 2.0, 3.0) * x + ad.where(y != -0.75, 5.0, 7.0) * y,
}
pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")


def first(mode: str, f: Callable[..., Any]) -> Callable[..., Any]:
    if mode == "reverse":
        return lambda x, y: ad.grad(lambda x, y: f(x, y).sum(), (0, 1))(x, y)
    one: Callable[[Any], Any] = lambda x: x * 0.0 + 1.0
    return lambda x, y: (ad.jvp(f, (x, y), (one(x), one(x)))[1], ad.jvp(lambda x: f(x, y), (x,), (one(x),))[1])


def second(outer: str, inner: str, f: Callable[..., Any]) -> Callable[..., Any]:
    return first(outer, lambda x, y: sum(first(inner, f)(x, y)))


def bits(x: Any) -> bytes:
    x = np.asarray(x)
    return np.where(np.isnan(x), np.nan, x).tobytes()  # whatever the sign of a nan


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("modes", [("forward",), ("reverse",), *itertools.product(("forward", "reverse"), repeat=2)])
def test_derivatives_are_those_of_arrays(name: str, modes: tuple[str, ...]) -> None:
    f = FUNCTIONS[name]
    derivative = first(*modes, f) if len(modes) == 1 else second(*modes, f)
    for x, y in itertools.product(VALUES, repeat=2):
        found = derivative(np.float64(x), np.float64(y))
        wanted = derivative(np.array([x, x]), np.array([y, y]))
        for one, many in zip(found, wanted, strict=True):
            assert bits(one) == bits(many[0]), (x, y, one, many)


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("modes", [*itertools.product(("forward", "reverse"), repeat=3)])
def test_third_derivatives_are_those_of_arrays(name: str, modes: tuple[str, ...]) -> None:
    derivative = first(modes[0], lambda x, y: sum(second(*modes[1:], FUNCTIONS[name])(x, y)))
    for x, y in itertools.product((1.5, -0.75, 3.0), repeat=2):
        found, wanted = derivative(np.float64(x), np.float64(y)), derivative(np.array([x]), np.array([y]))
        for one, many in zip(found, wanted, strict=True):
            np.testing.assert_allclose(one, many[0], rtol=1e-13, atol=1e-13)


def test_a_derivative_of_several_primitives_is_one_node() -> None:
    """Its name is that of the last primitive; its parents are those of all."""
    found: dict[str, Any] = {}

    def slopes(x: Any) -> Any:
        found["forward"] = ad.jvp(ad.sqrt, (x,), (ad.sin(x),))[1].grad_fn
        found["constant"] = ad.jvp(lambda y: 2.0 / y, (x,), (1.0,))[1].grad_fn
        found["square"] = ad.jvp(lambda y: y * y, (x,), (ad.sin(x),))[1].grad_fn
        found["reverse"] = ad.grad(lambda y: ad.square(y * y))(x).grad_fn
        found["array"] = ad.jvp(ad.sqrt, (x * np.ones(2),), (x * np.ones(2),))[1].grad_fn
        return x * 1.0

    ad.grad(slopes)(np.float64(2.0))
    names = {key: (node.name, [parent.name for parent in node.parents]) for key, node in found.items()}
    assert names == {
        "forward": ("divide", ["sin", "sqrt"]),
        "constant": ("negative", ["divide", "leaf"]),
        "square": ("add", ["sin", "leaf"]),
        "reverse": ("add", ["multiply", "leaf"]),
        "array": ("divide", ["multiply", "sqrt"]),
    }


@pytest.mark.parametrize("name", FUNCTIONS)
def test_values_of_tensors_are_those_of_arrays(name: str) -> None:
    for device in (ad.NumPy(), ad.Autodiff(ad.NumPy()), ad.Tangent(ad.NumPy())):
        make = lambda x, device=device: ad.tensor(x, device=device, dtype=ad.float64)
        for x, y in itertools.product(VALUES, repeat=2):
            single = FUNCTIONS[name](make([x])[0], make([y])[0])  # NumPy's numbers, not arrays without axes
            assert bits(single.detach().numpy()) == bits(FUNCTIONS[name](make([x]), make([y])).detach().numpy()[0])


@pytest.mark.filterwarnings("error::RuntimeWarning")
def test_integers_still_wrap_in_silence() -> None:
    x = ad.tensor([2**62, 2**62 - 1], dtype=ad.int64).sum()
    assert int(x * 4 + 3) == -1
    assert int((x + x).detach()) == -2


def test_a_number_of_another_precision_is_none_of_these() -> None:
    x = ad.tensor(1.5, dtype=ad.float32).require_grad()
    assert (x * np.float64(2.0)).dtype == ad.float64  # NumPy's promotes, as it does among arrays
    gradient = (x * 0.1 + x / 3).backward()[x]
    assert gradient.dtype == ad.float32


@pytest.mark.parametrize("mode", ["forward", "reverse"])
def test_numbers_meet_arrays(mode: str) -> None:
    """sum((x sum(w)) w / x + (w - x) x) = sum(w)^2 + x sum(w) - 3 x^2 for three weights."""
    w = np.array([1.0, -2.0, 0.5])
    f = lambda x: ((x * w).sum() * (w / x) + (w - x) * x).sum()
    at = np.float64(1.25)
    found = ad.grad(f)(at) if mode == "reverse" else ad.jvp(f, (at,), (np.float64(1.0),))[1]
    assert found == pytest.approx(w.sum() - 6 * at, rel=1e-12)
