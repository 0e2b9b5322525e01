"""Small trainings: a network, its batches, the loop written out, and what notes what is called."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import adjoint as ad

RNG = np.random.default_rng(0)
X = RNG.normal(size=(35, 3)).astype("float32")
Y = (X @ np.array([[1.0], [-2.0], [0.5]], "float32")).astype("float32")


def pairs(size: int = 8, x: Any = X, y: Any = Y) -> list[Any]:
    return [(x[i : i + size], y[i : i + size]) for i in range(0, len(x), size)]


def network(dtype: str = "float32") -> Any:
    ad.random.seed(1)
    make = lambda *sizes: ad.nn.Linear(*sizes, dtype=dtype)
    return ad.nn.Sequential(make(3, 5), ad.tanh, make(5, 1))


def learner(model: Any = None, optimizer: Any = None, **options: Any) -> ad.train.Learner:
    model = network() if model is None else model
    return ad.train.Learner(model, ad.nn.mse_loss, optimizer or ad.optim.Adam(lr=0.01), **options)


def same(x: Any, y: Any) -> bool:
    a, b = x.record(), y.record()
    return a.keys() == b.keys() and all(a[path].tobytes() == b[path].tobytes() for path in a)


def close(x: Any, y: Any, rtol: float = 1e-5) -> None:
    a, b = x.record(), y.record()
    assert a.keys() == b.keys()
    for path in a:
        np.testing.assert_allclose(a[path], b[path], rtol=rtol, atol=rtol * 0.1, err_msg=path)


def by_hand(model: Any, batches: Any, optimizer: Any, epochs: int, change: Any = lambda g: g) -> Any:
    """The loop written out."""
    state = optimizer.init(model)
    for _ in range(epochs):
        for x, y in batches:
            grads = ad.grad(lambda m, x=x, y=y: ad.nn.mse_loss(m(ad.asarray(x)), y))(model)
            grads = change(ad.optim.GradientsParams.from_grads(grads, model))
            model, state = optimizer.step(model, grads, state)
    return model


class Error:
    """A metric: the mean of absolute errors."""

    name = "error"

    def init(self) -> dict[str, Any]:
        return {"sum": 0.0, "count": 0}

    def update(self, state: dict[str, Any], prediction: Any, target: Any) -> dict[str, Any]:
        gap = abs(prediction.numpy() - target.numpy())
        return {"sum": state["sum"] + float(gap.sum()), "count": state["count"] + gap.size}

    def value(self, state: dict[str, Any]) -> float:
        return state["sum"] / state["count"]  # type: ignore[no-any-return]


class Note(ad.train.Callback):
    """Which of its methods were called, and what they do beside."""

    def __init__(self, do: Callable[[str, Any], None] = lambda *_: None) -> None:
        self.calls: list[str] = []
        self.do = do

    def _note(self, name: str, run: Any) -> None:
        self.calls.append(f"{name} {run.step}")
        self.do(name, run)

    def start(self, run: Any) -> None:
        self._note("start", run)

    def step(self, run: Any) -> None:
        self._note("step", run)

    def epoch(self, run: Any) -> None:
        self._note("epoch", run)

    def end(self, run: Any) -> None:
        self._note("end", run)


def lossy(f: Any) -> Any:
    """A model with a function between its layers."""
    ad.random.seed(1)
    return ad.nn.Sequential(ad.nn.Linear(3, 5), ad.nn.Sequential(ad.nn.Lambda(f), ad.nn.Identity()), ad.nn.Linear(5, 1))
