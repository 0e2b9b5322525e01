"""Compiled functions give what they give without: every public function and transform, module and optimizer."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from functions import FUNCTIONS, PLAIN, Draw
from hypothesis import given, settings
from hypothesis import strategies as st
from test_recording import (
    LOOKING,
    MODULES,
    NEEDS_VALUES,
    OPTIMIZERS,
    RATES,
    ROWS,
    SETTINGS,
    TRANSFORMS,
    X,
    derivatives,
    on,
    sum_of_squares,
    trained,
)

import adjoint as ad
from adjoint import errors
from adjoint import tree as trees
from adjoint.compiler.graph import evaluate, verify
from adjoint.random_keys import Replay, replayed

# What asks for values that a compiled function has not got, with the reason.
ASKS = {
    **NEEDS_VALUES,
}


def alike(found: Any, expected: Any, rtol: float = 1e-10) -> None:
    """Assert that two trees of results are of the same kinds, and the same but for the order of rounding."""
    xs, structure = trees.flatten(found)
    ys, wanted = trees.flatten(expected)
    assert structure == wanted, (structure, wanted)
    for x, y in zip(xs, ys, strict=True):
        assert type(x) is type(y), (type(x), type(y), x, y)
        if isinstance(x, ad.Tensor):
            assert x.device is y.device
            x, y = x.detach().numpy(), y.detach().numpy()
        assert (np.shape(x), np.asarray(x).dtype) == (np.shape(y), np.asarray(y).dtype)
        np.testing.assert_allclose(x, y, rtol=rtol, atol=1e-12)


def compared(f: Any, args: Any, *, asks: bool = False, times: int = 2) -> None:
    """Run f as it is and compiled, on tensors of the default device."""
    keys = Replay()
    keys.keys = [(0, i) for i in range(100)]
    xs = [ad.asarray(x) if isinstance(x, (np.ndarray, np.generic)) else x for x in args]
    if not any(isinstance(x, ad.Tensor) for x in xs):
        return
    with np.errstate(all="ignore"):
        with replayed(keys):
            expected = f(*xs)
        compiled = ad.compile(lambda *xs: f(*xs))
        try:
            for _ in range(times):
                with replayed(keys):
                    found = compiled(*xs)
                alike(found, expected)
            lowered = compiled.lower(*xs)
        except errors.TrackedError:
            assert asks
            return
        for graph in (lowered.recorded, lowered.graph):
            verify(graph)
        arrays = [x.detach().numpy() for x in xs if isinstance(x, ad.Tensor)]
        with replayed(keys):
            plain = evaluate(lowered.recorded, arrays, ad.NumPy())
        with replayed(keys):
            small = evaluate(lowered.graph, arrays, ad.NumPy())
        for x, y in zip(plain, small, strict=True):
            np.testing.assert_array_equal(x, y)


@pytest.mark.parametrize("name", FUNCTIONS)
@settings(max_examples=3)
@given(data=st.data())
def test_every_function_and_its_derivatives(name: str, data: Any) -> None:
    f, *args = FUNCTIONS[name](Draw(data))
    compared(f, args, asks=name in ASKS)
    compared(derivatives(f), args, asks=name in ASKS)


@pytest.mark.parametrize("name", PLAIN)
def test_every_function_without_derivatives(name: str) -> None:
    rng, f = np.random.default_rng(0), getattr(ad, name)
    for shape in ((3,), (2, 3)):
        x, y = (rng.integers(0, 3, shape) for _ in range(2))
        two = name.startswith(("bitwise_", "logical_", "equal", "not_", "less", "greater"))
        two = (two and name not in ("bitwise_invert", "logical_not")) or name == "isin"
        compared(f, [x, y][: 1 + two], asks=name in ASKS)


@pytest.mark.parametrize("name", TRANSFORMS)
def test_every_transform(name: str) -> None:
    compared(TRANSFORMS[name], [X])


@pytest.mark.parametrize("name", LOOKING)
def test_control_flow(name: str) -> None:
    compared(LOOKING[name], [X], asks="odeint" in name or name in ("root", "linear_transpose"))


@pytest.mark.parametrize("name", MODULES)
def test_modules(name: str) -> None:
    make, *args = MODULES[name]
    model = make()

    def slopes(*xs: Any) -> Any:
        return trees.leaves(ad.grad(lambda model: sum_of_squares(model(*xs)))(on(model, xs[0])))

    compared(slopes if trees.leaves(model) else lambda *xs: trees.leaves(model(*xs)), args)


@pytest.mark.parametrize("kind", OPTIMIZERS, ids=lambda kind: kind.__name__)
def test_optimizers(kind: Any) -> None:
    compared(lambda x: trained(kind(lr=0.1, **SETTINGS.get(kind.__name__, {})), x), [ROWS], asks=kind is ad.optim.SOAP)


@pytest.mark.parametrize("name", RATES)
def test_rates(name: str) -> None:
    compared(lambda x: trained(ad.optim.SGD(lr=RATES[name]), x), [ROWS])
