"""`backward(create_graph=True)`: derivatives of derivatives on one level agree with those on nested levels."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from functions import FUNCTIONS, Draw
from hypothesis import given, settings
from hypothesis import strategies as st

import adjoint as ad

Arrays = Sequence[np.ndarray[Any, Any]]
PLAIN = ad.Autodiff(ad.NumPy())
DEVICES = {
    "plain": PLAIN,
    "balanced": ad.Autodiff(ad.NumPy(), checkpointing="balanced"),
    "strong zero": ad.Autodiff(ad.NumPy(), strong_zero=True),
}


def _total(out: Any, weights: list[Any]) -> Any:
    """A real scalar: the sum of the floating results, each times weights that are drawn at the first call."""
    results = [x for x in (out if isinstance(out, (tuple, list)) else [out]) if x.dtype.kind in "fc"]
    if not weights:
        rng = np.random.default_rng(1)
        weights += [rng.standard_normal(x.shape) for x in results]
    return sum(
        [(ad.real(x) * w + (ad.imag(x) * w / 2 if x.dtype.kind == "c" else 0)).sum() for x, w in zip(results, weights)]
    )


def _along(gradients: Sequence[Any], directions: Arrays) -> Any:
    """A real scalar of gradients: not their linear image, so that third derivatives count as well."""
    parts = [ad.real(g) * d + (ad.imag(g) * d if g.dtype.kind == "c" else 0) for g, d in zip(gradients, directions)]
    return sum([(p + p * p / 4).sum() for p in parts])


def recorded(f: Callable[..., Any], args: Arrays, device: Any, order: int) -> list[np.ndarray[Any, Any]]:
    """Derivatives of this order by `backward` on one level."""
    leaves = [ad.asarray(x, device=device).require_grad() for x in args]
    with ad.use_device(device):
        y = _total(f(*leaves), [])
        for n in range(order - 1):
            if not y.is_tracked():
                break
            grads = y.backward(create_graph=True, wrt=leaves)
            assert all(g.device is device for g in grads.values())
            y = _along([grads.get(x, ad.zeros_like(x)) for x in leaves], _directions(args, n))
        found = [x.grad(y.backward(retain_graph=True)) if y.is_tracked() else None for x in leaves]
    return [np.zeros(x.shape, x.dtype) if g is None else g.numpy() for x, g in zip(leaves, found, strict=True)]


def nested(f: Callable[..., Any], args: Arrays, device: Any, order: int) -> list[np.ndarray[Any, Any]]:
    """The same by as many levels."""
    every = tuple(range(len(args)))
    g: Callable[..., Any] = lambda *xs: _total(f(*xs), [])
    for n in range(order - 1):
        g = lambda *xs, g=g, n=n: _along(ad.grad(g, every)(*xs), _directions(args, n))
    with ad.use_device(device):
        return [x.numpy() for x in ad.grad(g, every)(*[ad.asarray(x, device=device) for x in args])]


def _directions(args: Arrays, n: int) -> Arrays:
    rng = np.random.default_rng(10 + n)
    return [rng.standard_normal(np.shape(x)) for x in args]


def agree(f: Callable[..., Any], args: Arrays, device: Any = PLAIN, order: int = 2) -> None:
    found, expected = (how(f, args, device, order) for how in (recorded, nested))
    for one, other in zip(found, expected, strict=True):
        scale = 1 + np.abs(other[np.isfinite(other)]).max(initial=0)
        np.testing.assert_allclose(one, other, rtol=1e-8, atol=1e-10 * scale)


@pytest.mark.parametrize("kind", DEVICES)
@pytest.mark.parametrize("name", FUNCTIONS)
@settings(max_examples=4)
@given(data=st.data())
def test_every_public_function(name: str, kind: str, data: Any) -> None:
    f, *args = FUNCTIONS[name](Draw(data))
    agree(f, args, DEVICES[kind])
