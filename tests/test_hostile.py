"""Arguments that nobody should pass, to every public function: a result or an error that says what, where and the way
out, at once, and nothing left behind."""

from __future__ import annotations

import contextlib
import itertools
import os
import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from conftest import peer
from each import Each
from hostile import CALLS, TOPICS, answered, called, guarded, judged, state
from hostile.values import HOSTILE, NAMES, returning
from test_function_derivatives import public_functions

import adjoint as ad


def test_every_public_function_is_called() -> None:
    names = {call.name for call in CALLS}
    modules = {f"{n}.{name}" for n in ("debug", "scipy", "tree") for name in dir(getattr(ad, n))}
    without = {"__array_namespace_info__", "default_device", "default_dtype", "get_num_threads"}  # arguments
    assert (public_functions() | modules) - names == without
    methods = {f"Tensor.{name}" for name in vars(ad.Tensor) if not name.startswith("_")}
    refused = {f"Tensor.{name}" for name in ("partition", "resize", "sort")}  # whatever the arguments
    assert {name for name in methods if callable(called(name))} - names == refused


@pytest.mark.parametrize("topic", TOPICS)
def test_valid_calls(topic: str) -> None:
    with Each() as each, guarded():
        for call in TOPICS[topic]:
            with each(call):
                found = answered(call, {})
                assert found is None or "pip install" in str(found)  # all else is here


def _makes(label: str) -> bool:
    """Whether there is such a value on the default device: not every library has float16."""
    try:
        HOSTILE[label]()
    except ad.errors.AdjointError:
        return False
    return True


def _check(topic: str, seed: int, singles: int, pairs: int, device: str = "autodiff<numpy>", every: int = 1) -> None:
    """Each argument is replaced by some values, and some pairs of arguments are: all such calls, or one of so many."""
    numbers = itertools.count()
    choose = random.Random(f"{topic} {seed}")
    with Each() as each, guarded():
        before, known = state(), [label for label in sorted(HOSTILE) if _makes(label)]
        for call in TOPICS[topic]:
            places = call.places()
            chosen = [(place,) for place in places for _ in range(singles)]
            chosen += [tuple(choose.sample(places, 2)) for _ in range(pairs) if len(places) > 1]
            for several in chosen:
                if next(numbers) % every:
                    continue
                labels = choose.choices(known, k=len(several))
                changed = {place: HOSTILE[label]() for place, label in zip(several, labels, strict=True)}
                for place, value in changed.items():
                    if call.takes_function(place) and (callable(value) or choose.random() < 0.5):
                        changed[place] = returning(value)
                with each(call.name, call.source, *zip(several, labels, strict=True)):
                    error = answered(call, changed)
                    wrong = None if error is None else judged(call, error)
                    assert wrong is None, wrong
                    if call.name.startswith("set_default"):
                        ad.set_default_device(device)
                        ad.set_default_dtype("float32")
                    assert state() == before


@pytest.mark.parametrize("topic", TOPICS)
def test_a_result_or_an_error(topic: str, capsys: pytest.CaptureFixture[str]) -> None:
    _check(topic, 0, 2, 1)


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1, 2])
@pytest.mark.parametrize("topic", TOPICS)
def test_a_result_or_an_error_of_many_calls(topic: str, seed: int, capsys: pytest.CaptureFixture[str]) -> None:
    _check(topic, seed, 12, 24)


# --- on other leaves, and inside of transforms ---


def _inside(transform: Callable[..., Any], *args: Any) -> Callable[[Callable[[], None]], None]:
    """Calls whose tensors a transform follows."""

    def run(calls: Callable[[], None]) -> None:
        def body(one: Any) -> Any:
            made = dict(NAMES)
            try:
                for name, make in made.items():
                    NAMES[name] = lambda make=make: _followed(make(), one)
                calls()
            finally:
                NAMES.update(made)
            return one * 1.0

        transform(body)(*args)

    return run


def _followed(value: Any, one: Any) -> Any:
    plain = isinstance(value, ad.Tensor) and value.dtype.kind in "fc" and not value.is_tracked()
    return value * one.astype(value.dtype) if plain else value


CHAINS = {
    "numpy": "numpy",
    "reference": "mpmath",
    "array_api[array_api_strict]": "array_api_strict",
    "autodiff<torch:cpu>": "torch",
    "checked<autodiff<numpy>>": "numpy",
    "autodiff<dask>": "dask",
    "autodiff<jax>": "jax",
}
# JAX compiles for each shape and dtype, which takes a minute and a half for all calls: TEST_HOSTILE=all runs them
EVERY = {"autodiff<jax>": 1 if os.environ.get("TEST_HOSTILE") == "all" else 4}
INSIDE = {
    "grad": _inside(ad.grad, 1.0),
    "jvp": _inside(lambda f: lambda x: ad.jvp(f, (x,), (x,)), 1.0),
    "vmap": _inside(lambda f: ad.vmap(f, randomness="split"), np.ones(2)),
}


@pytest.mark.slow
@pytest.mark.peers
@pytest.mark.parametrize("chain", [*CHAINS, *INSIDE])
@pytest.mark.parametrize("topic", TOPICS)
def test_on_other_chains(topic: str, chain: str, capsys: pytest.CaptureFixture[str]) -> None:
    if chain in INSIDE:
        INSIDE[chain](lambda: _check(topic, 3, 2, 1))
        return
    library, before = peer(CHAINS[chain]), ad.default_device()
    ad.set_default_device(chain)
    try:
        with library.enable_x64(True) if chain == "autodiff<jax>" else contextlib.nullcontext():
            _check(topic, 3, 1, 1, chain, EVERY.get(chain, 1))
    finally:
        ad.set_default_device(before)
