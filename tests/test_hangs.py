"""Sizes that no machine has and lists that contain themselves: an answer or an error, at once."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import numpy.ma  # which has lists searched for masks
import pytest
from conftest import peer

import adjoint as ad
from adjoint import errors

HUGE = 10**20
ITSELF: list[Any] = []
ITSELF.append(ITSELF)
BESIDE: list[Any] = [1.0]
BESIDE.append(BESIDE)
INSIDE: dict[str, Any] = {"x": np.ones(2)}
INSIDE["inside"] = INSIDE


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
MANY = ad.zeros(10**6)

ANSWERED: dict[str, tuple[Callable[[], Any], list[Any]]] = {
    "diff": (lambda: ad.diff(X, n=HUGE), []),
    "diff of rows": (lambda: ad.diff(ad.ones((2, 3)), n=HUGE), [[], []]),
    "diff of nothing": (lambda: ad.diff(NONE, n=HUGE), []),
    "diff of many": (lambda: ad.diff(MANY, n=HUGE), []),
    "diff of many and more": (lambda: ad.diff(X, n=10**6 + 5, prepend=MANY), []),
    "polyder": (lambda: ad.polyder(X, HUGE), []),
    "polyder of many": (lambda: ad.polyder(MANY, 10**6), []),
    "roll": (lambda: ad.roll(X, 10**30), [0, 1, 2, 3, 4]),
    "rot90": (lambda: ad.rot90(ad.eye(2), 10**30), [[1, 0], [0, 1]]),
    "tril": (lambda: ad.tril(ad.eye(2), k=HUGE), [[1, 0], [0, 1]]),
    "tri": (lambda: ad.tri(2, k=-HUGE), [[0, 0], [0, 0]]),
    "tril_indices": (lambda: [i.tolist() for i in ad.tril_indices(1, k=HUGE)], [[0], [0]]),
    "matrix_power": (lambda: ad.linalg.matrix_power(ad.eye(2), 10**9), [[1, 0], [0, 1]]),
    "round": (lambda: ad.round(X, HUGE), [0, 1, 2, 3, 4]),
    "round to zeros": (lambda: ad.round(X, -HUGE), [0] * 5),
    "round of integers": (lambda: ad.round(ad.arange(3), -HUGE), [0] * 3),
    "a list of numbers in a loop": (
        lambda: ad.fori_loop(0, 2, lambda i, xs: [2 * x for x in xs], [1] * 5000),
        [4] * 5000,
    ),
    "gammainc": (lambda: ad.special.gammainc(ad.tensor(5e-324, dtype=ad.float64), 0.5), 1.0),
    "parts without elements": (lambda: [part.size for part in ad.array_split(NONE, 1000)], [0] * 1000),
}

REFUSED: dict[str, tuple[Callable[[], Any], type[Exception]]] = {
    "array_split": (lambda: ad.array_split(X, 10**8), errors.ArgumentError),
    "array_split, huge": (lambda: ad.array_split(X, HUGE), errors.ArgumentError),
    "split": (lambda: ad.split(NONE, 10**12), errors.ArgumentError),
    "unstack": (lambda: ad.unstack(ad.zeros((10**12, 0))), errors.ArgumentError),
    "linspace": (lambda: ad.linspace(0, 1, 10**15), errors.OutOfMemoryError),
    "linspace, huge": (lambda: ad.linspace(0, 1, HUGE), errors.ShapeError),
    "arange": (lambda: ad.arange(0.0, 1.0, 5e-324), errors.ShapeError),
    "vander": (lambda: ad.vander(X, 10**15), errors.OutOfMemoryError),
    "tri, huge": (lambda: ad.tri(10**8), errors.OutOfMemoryError),
    "tile": (lambda: ad.tile(X, [10**9] * 3), errors.ShapeError),
    "tile of many axes": (lambda: ad.tile(X, (1,) * 65), errors.ShapeError),
    "zeros": (lambda: ad.zeros(10**30), errors.ShapeError),
    "ones": (lambda: ad.ones(10**15), errors.OutOfMemoryError),
    "random": (lambda: ad.random.normal(10**15), errors.OutOfMemoryError),
    "repeat": (lambda: ad.repeat(X, [10**18] * 5), errors.ShapeError),
    "pad": (lambda: ad.pad(X, 2**62), errors.ShapeError),
    "one_hot": (lambda: ad.one_hot([1], 10**15), errors.OutOfMemoryError),
    "jacobian": (lambda: ad.jacobian(lambda x: x)(np.zeros(10**8)), errors.OutOfMemoryError),
    "indices of many axes": (lambda: ad.indices((1,) * 64), errors.ShapeError),
    "digits": (lambda: ad.Reference(digits=10**9), errors.DeviceError),
    "orders": (lambda: ad.special.polygamma(1e308, X), errors.ArgumentError),
    "order": (lambda: ad.testing.check_grads(ad.sin, np.ones(2), order=10**6), errors.ArgumentError),
    "an integer of many digits": (lambda: X + 10**5000, errors.RangeError),
    "an axis of many digits": (lambda: ad.sum(X, axis=10**5000), errors.AxisError),
    "polyint": (lambda: ad.polyint(X, 10**9), errors.ArgumentError),
    "layers of a recurrent network": (lambda: ad.nn.LSTM(1, 1, 10**9), errors.ArgumentError),
    "layers, huge": (lambda: ad.nn.GRU(1, 1, HUGE), errors.ArgumentError),
    "layers of a transformer": (lambda: ad.nn.TransformerEncoder(2, 1, 10**9, 2), errors.ArgumentError),
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
    "optimizer": (lambda: ad.optim.SGD(lr=0.1).init(ITSELF), errors.ArgumentError),  # type: ignore[arg-type]
    "optimizer, beside": (lambda: ad.optim.Adam().init({"w": X, "more": BESIDE}), errors.ArgumentError),  # type: ignore[arg-type]
    "loader": (lambda: ad.data.DataLoader((np.ones(2), INSIDE), 2), errors.ArgumentError),
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


@pytest.mark.parametrize("leaf", ["torch:cpu", "autodiff<torch:cpu>", "jax", "array_api[array_api_strict]"])
def test_a_library_without_enough_memory(leaf: str) -> None:
    peer("torch" if "torch" in leaf else "jax" if leaf == "jax" else "array_api_strict")
    calls: list[Any] = [lambda: ad.zeros(2**45, device=leaf), lambda: ad.eye(2**25, device=leaf)]
    x = ad.ones(2**23, device=leaf)
    calls += [lambda: ad.outer(x, x).sum().item(), lambda: ad.outer(x, x).numpy()]  # JAX says so only then
    for call in calls:
        with pytest.raises(errors.OutOfMemoryError, match="ask for fewer elements"):
            call()
