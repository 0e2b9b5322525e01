"""Several threads that call one compiled function: it is recorded once, and each gets its own results."""

from __future__ import annotations

import sys
import threading
import traceback
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import adjoint as ad
from adjoint.compiler import compiled, turns

X = np.linspace(0.5, 2.0, 12).reshape(3, 4)
SLOPE = np.exp(X) * (np.sin(X) + np.cos(X))
THREADS = 6


@pytest.fixture(params=["replay", "1"], autouse=True)
def how(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """With machine code and without, and threads that take turns often."""
    if request.param == "1":
        pytest.importorskip("llvmlite")
    monkeypatch.setenv("ADJOINT_COMPILE", request.param)
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        yield
    finally:
        sys.setswitchinterval(before)


def together(run: Callable[[int], None]) -> None:
    """Have threads run this, which all begin at once; warnings are errors there, too."""
    failed: list[str] = []
    barrier = threading.Barrier(THREADS)

    def body(k: int) -> None:
        try:
            barrier.wait(60)
            run(k)
        except BaseException:
            failed.append(traceback.format_exc())

    threads = [threading.Thread(target=body, args=(k,)) for k in range(THREADS)]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(120)
    assert not failed, failed[0]
    assert not any(thread.is_alive() for thread in threads)


runs: list[Any] = []


def counted(f: Callable[..., Any]) -> Callable[..., Any]:
    def body(x: Any, count: Any = runs.append, many: int = 40) -> Any:
        count(None)
        y = x
        for _ in range(many):  # long enough for others to come
            y = ad.sin(y) * 0.5
        return f(x) + 0.0 * y.sum()

    return body


def _energy(x: Any) -> Any:
    return (ad.sin(x) * ad.exp(x)).sum()


CALLS: dict[str, Callable[[Any], Any]] = {
    "arrays": lambda f: f(X),
    "tensors": lambda f: f(ad.tensor(X)).numpy(),
    "gradients of leaves": lambda f: f(w := ad.tensor(X).require_grad()).backward()[w].numpy(),
    "gradients": lambda f: ad.grad(f)(X),
    "pushforwards": lambda f: ad.jvp(f, (X,), (X,))[1],
    "batches": lambda f: ad.vmap(f)(X),
    "lowered": lambda f: str(f.lower(X)) and 0.0,
}


@pytest.mark.parametrize("name", CALLS)
def test_a_function_is_recorded_once(name: str) -> None:
    call = CALLS[name]
    alone = ad.compile(counted(_energy))
    del runs[:]
    expected = call(alone)
    once, recordings = len(runs), alone._recordings
    f = ad.compile(counted(_energy))
    del runs[:]
    together(lambda _: np.testing.assert_allclose(call(f), expected, rtol=1e-12))
    assert (len(runs), f._recordings) == (once, recordings)


def test_all_kinds_of_calls_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiled, "OFTEN", 100)  # there are as many kinds
    f, several = ad.compile(_energy), list(CALLS)
    expected = {name: call(ad.compile(_energy)) for name, call in CALLS.items()}
    level = ad.Profiled(ad.NumPy())

    def run(k: int) -> None:
        for turn in range(3 * len(several)):
            name = several[(k + turn) % len(several)]
            np.testing.assert_allclose(CALLS[name](f), expected[name], rtol=1e-12)
            np.testing.assert_allclose(f(ad.tensor(X, device=level)).numpy(), expected["arrays"], rtol=1e-12)

    together(run)


def test_sizes_donated_arguments_checks_and_random_numbers_at_once() -> None:
    sized = ad.compile(lambda x: ad.exp(x) * 2.0)
    over = ad.compile(lambda x, g: x - 0.5 * ad.exp(g), donate=0)
    picked = ad.compile(lambda x, i: ad.exp(x)[i] * 2.0)
    drawn = ad.compile(lambda x: x * 0.0 + ad.random.normal(x.shape))
    seen: list[float] = []

    def run(k: int) -> None:
        for turn in range(12):
            n = 2 + (k + turn) % 3
            np.testing.assert_allclose(sized(X[:n, :n]), np.exp(X[:n, :n]) * 2.0)
            x = ad.tensor(X)
            np.testing.assert_allclose(over(x, ad.tensor(X)).numpy(), X - 0.5 * np.exp(X))
            with pytest.raises(ad.errors.EndedError):
                x.numpy()
            np.testing.assert_allclose(picked(X, np.array([0, 2])), np.exp(X)[[0, 2]] * 2.0)
            with pytest.raises(IndexError, match="index 7 is out of range"):
                picked(X, np.array([7, 0]))
            seen.append(float(drawn(X)[0, 0]))

    together(run)
    assert len(set(seen)) == len(seen) == 12 * THREADS


def test_a_function_that_waits_for_a_thread_that_records_another_one_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(turns, "_PATIENCE", 0.05)
    inner = ad.compile(lambda x: x * 2.0)
    found: list[Any] = []

    def outer(x: Any, note: Any = found.append) -> Any:
        thread = threading.Thread(target=lambda: note(inner(X)))
        thread.start()
        thread.join(60)
        return x + 1.0

    np.testing.assert_allclose(ad.compile(outer)(X), X + 1.0)
    np.testing.assert_allclose(found[0], X * 2.0)
