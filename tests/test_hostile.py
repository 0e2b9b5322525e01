"""Arguments that nobody should pass, to every public function: a result or an error that says what, where and the way
out, at once, and nothing left behind."""

from __future__ import annotations

import random

import pytest
from each import Each
from hostile import CALLS, TOPICS, answered, called, guarded, judged, state
from hostile.values import HOSTILE, returning
from test_function_derivatives import public_functions

import adjoint as ad


def test_every_public_function_is_called() -> None:
    names = {call.name for call in CALLS}
    modules = {f"{n}.{name}" for n in ("debug", "scipy", "tree") for name in dir(getattr(ad, n))}
    without = {"__array_namespace_info__", "default_device", "default_dtype"}  # arguments
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


def _check(topic: str, seed: int, singles: int, pairs: int) -> None:
    """Each argument is replaced by some values, and some pairs of arguments are."""
    choose = random.Random(f"{topic} {seed}")
    with Each() as each, guarded():
        before = state()
        for call in TOPICS[topic]:
            places = call.places()
            chosen = [(place,) for place in places for _ in range(singles)]
            chosen += [tuple(choose.sample(places, 2)) for _ in range(pairs) if len(places) > 1]
            for several in chosen:
                labels = choose.choices(sorted(HOSTILE), k=len(several))
                changed = {place: HOSTILE[label]() for place, label in zip(several, labels, strict=True)}
                for place, value in changed.items():
                    if call.takes_function(place) and (callable(value) or choose.random() < 0.5):
                        changed[place] = returning(value)
                with each(call.name, call.source, *zip(several, labels, strict=True)):
                    error = answered(call, changed)
                    wrong = None if error is None else judged(call, error)
                    assert wrong is None, wrong
                    if call.name.startswith("set_default"):
                        ad.set_default_device("autodiff<numpy>")
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
