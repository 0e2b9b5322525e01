"""Strong zeros: what a mask leaves out has no gradient, however infinite its derivative is there."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import adjoint as ad

PLAIN = ad.Autodiff(ad.NumPy())
STRONG = {
    "strong": ad.Autodiff(ad.NumPy(), strong_zero=True),
    "strong, balanced": ad.Autodiff(ad.NumPy(), checkpointing="balanced", strong_zero=True),
}

# a function of positive x that is singular at zero, and nan or infinite below it
FUNCTIONS: dict[str, Callable[[Any], Any]] = {
    "sqrt": lambda x: x.sqrt(),
    "log": lambda x: x.log(),
    "log2": lambda x: ad.log2(x),
    "log10": lambda x: ad.log10(x),
    "log1p": lambda x: ad.log1p(x - 1),
    "x log x": lambda x: x * x.log(),
    "log x * x": lambda x: x.log() * x,
    "reciprocal": lambda x: 1 / x,
    "divide": lambda x: (x + 1) / x,
    "divide by a square": lambda x: x / (x * x),
    "scalar power": lambda x: x**0.5,
    "negative power": lambda x: x**-2,
    "power": lambda x: x**x,
    "power of a power": lambda x: (x**1.5) ** 0.3,
    "asin": lambda x: ad.asin(1 - x),
    "acos": lambda x: ad.acos(1 - x),
    "acosh": lambda x: ad.acosh(1 + x),
    "atanh": lambda x: ad.atanh(1 - x),
    "atan2": lambda x: ad.atan2(x, x) * x.sqrt(),
    "sqrt of sqrt": lambda x: x.sqrt().sqrt(),
    "log of sqrt": lambda x: x.sqrt().log(),
    "tan of log": lambda x: ad.tan(x.log() * 0.1),
    "exp of reciprocal": lambda x: (-1 / x).exp(),
    "sqrt over x": lambda x: x.sqrt() / x,
    "logaddexp of logs": lambda x: ad.logaddexp(x.log(), 2 * x.log()),
    "abs of log": lambda x: abs(x.log()),
    "softplus of log": lambda x: ad.nn.softplus(x.log()),
    "gelu of log": lambda x: ad.nn.gelu(x.log()),
    "tanh of log": lambda x: x.log().tanh(),
    "maximum of log": lambda x: ad.maximum(x.log(), -x),
    "remainder": lambda x: ad.remainder(x.log(), 3.0),
}
POINTS = np.array([0.0, 0.5, -1.0, 1.3, 0.0])
MASK = POINTS > 0


def derivatives(f: Any, points: Any, device: Any, order: int) -> list[Any]:
    """Derivatives of an elementwise function at points, one level for each order."""
    leaves = [ad.asarray(points, device=device).require_grad()]
    for _ in range(order - 1):
        leaves.append(ad.from_inner(leaves[-1], device.over(leaves[-1].device)).require_grad())
    with np.errstate(all="ignore"):
        value = f(leaves[-1])
        found = []
        for x in leaves[::-1]:
            value = value.sum().backward()[x] if value.is_tracked() else x.inner() * 0
            found.append(value.numpy())
    return found


@pytest.mark.parametrize("device", STRONG)
@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("order", [1, 2, 3])
def test_masked_singularities_have_no_gradient(name: str, device: str, order: int) -> None:
    f = FUNCTIONS[name]
    found = derivatives(lambda x: ad.where(x > 0, f(x), 0.0), POINTS, STRONG[device], order)
    expected = derivatives(f, POINTS[MASK], PLAIN, order)
    for ours, theirs in zip(found, expected, strict=True):
        np.testing.assert_array_equal(ours[~MASK], 0.0)
        np.testing.assert_allclose(ours[MASK], theirs, rtol=1e-10, atol=1e-12)


def test_without_strong_zero_the_gradient_is_nan() -> None:
    """As in PyTorch, JAX and HIPS autograd; docs say so."""
    (gradient,) = derivatives(lambda x: ad.where(x > 0, x.sqrt(), 0.0), np.array([0.0, 4.0]), PLAIN, 1)
    assert math.isnan(gradient[0])
    assert gradient[1] == 0.25


@pytest.mark.parametrize("device", STRONG)
def test_unmasked_infinities_stay(device: str) -> None:
    (gradient,) = derivatives(lambda x: x.sqrt(), np.array([0.0, 4.0]), STRONG[device], 1)
    assert gradient.tolist() == [math.inf, 0.25]
    (gradient,) = derivatives(lambda x: x.log() * 2, np.array([0.0]), STRONG[device], 1)
    assert gradient.tolist() == [math.inf]


@pytest.mark.parametrize("device", STRONG)
def test_zero_factors_absorb_infinite_derivatives(device: str) -> None:
    (gradient,) = derivatives(lambda x: x.sqrt() * 0, np.array([0.0]), STRONG[device], 1)
    assert gradient.tolist() == [0.0]


@pytest.mark.parametrize("device", STRONG)
def test_broadcast_operands(device: str) -> None:
    x = ad.tensor([[0.0], [2.0]], dtype=ad.float64, device=STRONG[device]).require_grad()
    y = ad.tensor([0.0, 3.0], dtype=ad.float64, device=STRONG[device]).require_grad()
    with np.errstate(all="ignore"):
        out = ad.where(y > 0, x / y, 0.0) + ad.where(x > 0, y * x.log(), 0.0)
    grads = out.sum().backward()
    np.testing.assert_allclose(grads[x].numpy(), [[1 / 3], [1 / 3 + 1.5]])
    np.testing.assert_allclose(grads[y].numpy(), [math.log(2), -2 / 9 + math.log(2)])


@pytest.mark.parametrize("device", STRONG)
def test_complex_values(device: str) -> None:
    z = ad.tensor([0j, 1 + 2j], dtype=ad.complex128, device=STRONG[device]).require_grad()
    with np.errstate(all="ignore"):
        out = ad.where(z == 0, 0.0, z.log() * z)
    gradient = out.sum().backward([1.0][0])[z].numpy()
    assert gradient[0] == 0
    np.testing.assert_allclose(gradient[1], np.conj(np.log(1 + 2j) + 1))


@pytest.mark.parametrize("device", STRONG)
def test_single_precision_keeps_its_dtype(device: str) -> None:
    x = ad.tensor([0.0, 4.0], device=STRONG[device]).require_grad()
    gradient = ad.where(x > 0, x.sqrt(), 0.0).sum().backward()[x]
    assert gradient.dtype is ad.float32
    assert gradient.tolist() == [0.0, 0.25]
