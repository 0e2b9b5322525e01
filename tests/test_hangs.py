"""Sizes that no machine has and lists that contain themselves: an answer or an error, at once."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import numpy.ma  # which has lists searched for masks
import pytest

import adjoint as ad
from adjoint import errors

HUGE = 10**20
ITSELF: list[Any] = []
ITSELF.append(ITSELF)
BESIDE: list[Any] = [1.0]
BESIDE.append(BESIDE)


@pytest.fixture(autouse=True)
def at_once() -> Iterator[None]:
    """A call that takes seconds fails."""

    def stop(number: int, frame: Any) -> None:
        raise TimeoutError

    if not hasattr(signal, "setitimer"):
        yield
        return
    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, 10)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


X = ad.arange(5.0)
NONE = ad.zeros((0,))

ANSWERED: dict[str, tuple[Callable[[], Any], list[Any]]] = {
    "diff": (lambda: ad.diff(X, n=HUGE), []),
    "diff of rows": (lambda: ad.diff(ad.ones((2, 3)), n=HUGE), [[], []]),
    "diff of nothing": (lambda: ad.diff(NONE, n=HUGE), []),
    "polyder": (lambda: ad.polyder(X, HUGE), []),
    "parts without elements": (lambda: [part.size for part in ad.array_split(NONE, 1000)], [0] * 1000),
}

REFUSED: dict[str, tuple[Callable[[], Any], type[Exception]]] = {
    "array_split": (lambda: ad.array_split(X, 10**8), errors.ArgumentError),
    "array_split, huge": (lambda: ad.array_split(X, HUGE), errors.ArgumentError),
    "split": (lambda: ad.split(NONE, 10**12), errors.ArgumentError),
    "unstack": (lambda: ad.unstack(ad.zeros((10**12, 0))), errors.ArgumentError),
    "polyint": (lambda: ad.polyint(X, 10**9), errors.ArgumentError),
    "tensor": (lambda: ad.tensor(ITSELF), errors.AdjointError),
    "tensor, beside": (lambda: ad.tensor(BESIDE), errors.AdjointError),
    "asarray": (lambda: ad.asarray(ITSELF), errors.AdjointError),
    "asarray, beside": (lambda: ad.asarray([X, BESIDE]), errors.AdjointError),
    "add": (lambda: X + ITSELF, errors.AdjointError),
    "stack": (lambda: ad.stack([ITSELF]), errors.AdjointError),
    "index": (lambda: X[ITSELF], errors.AdjointError),
    "where": (lambda: ad.where(ITSELF, X, X), errors.AdjointError),
    "NumPy's": (lambda: np.add(X, ITSELF), errors.AdjointError),
    "grad": (lambda: ad.grad(lambda x: 1.0)(ITSELF), errors.ArgumentError),
    "tree": (lambda: ad.tree.flatten(ITSELF), errors.ArgumentError),
}


@pytest.mark.parametrize("name", ANSWERED)
def test_an_answer_at_once(name: str) -> None:
    call, wanted = ANSWERED[name]
    found = call()
    assert (found.tolist() if isinstance(found, ad.Tensor) else found) == wanted


@pytest.mark.parametrize("name", REFUSED)
def test_an_error_at_once(name: str) -> None:
    call, error = REFUSED[name]
    with pytest.raises(error) as caught:
        call()
    assert len(str(caught.value)) < 1000
