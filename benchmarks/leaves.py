"""What our gradients cost over another library's arrays, against that library's own: the same training step."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import adjoint as ad
from benchmarks.cases import Case, Run

SIZES = (784, 256, 256, 10)
RATE = 0.1


def _numbers() -> tuple[list[np.ndarray[Any, Any]], np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """Weights and biases in turn, a batch of 128, and its labels."""
    rng = np.random.default_rng(0)
    parameters = []
    for rows, columns in zip(SIZES, SIZES[1:], strict=False):
        parameters += [rng.standard_normal((rows, columns)) / np.sqrt(rows), np.zeros(columns)]
    examples = rng.standard_normal((128, SIZES[0])).astype(np.float32)
    return [p.astype(np.float32) for p in parameters], examples, rng.integers(0, SIZES[-1], 128)


def _logits(relu: Callable[[Any], Any], p: Any, x: Any) -> Any:
    for i in range(0, len(p) - 2, 2):
        x = relu(x @ p[i] + p[i + 1])
    return x @ p[-2] + p[-1]


def _step(p: list[Any], x: Any, labels: Any) -> tuple[list[Any], Any]:
    """One step of ours, on the leaf of its arguments: new leaf tensors, and the loss."""
    loss = ad.nn.cross_entropy(_logits(ad.nn.relu, p, x), labels)
    grads = loss.backward()
    return [w.with_value(w.inner() - RATE * grads[w]) for w in p], loss.detach()


def _ours(leaf: Any) -> tuple[list[Any], Any, Any]:
    level, (parameters, x, labels) = ad.Autodiff(leaf), _numbers()
    return (
        [ad.tensor(p, device=level).require_grad() for p in parameters],
        *[ad.tensor(v, device=level) for v in (x, labels)],
    )


def _over_torch() -> dict[str, Callable[[], Run]]:
    def ours() -> Run:
        p, x, labels = _ours(ad.Torch())

        def run() -> None:
            p[:] = _step(p, x, labels)[0]

        return run

    def torch() -> Run:
        import torch as t

        parameters, x, labels = _numbers()
        p = [t.tensor(v, requires_grad=True) for v in parameters]
        batch = t.tensor(x), t.tensor(labels)

        def run() -> None:
            loss = t.nn.functional.cross_entropy(_logits(t.relu, p, batch[0]), batch[1])
            loss.backward()
            with t.no_grad():
                for w in p:
                    w -= RATE * w.grad
                    w.grad = None

        return run

    return {"adjoint": ours, "PyTorch": torch}


def _over_jax() -> dict[str, Callable[[], Run]]:
    def repeated(step: Any, p: Any, *batch: Any) -> Run:
        import jax

        state = [p]

        def run() -> None:
            state[0], loss = step(state[0], *batch)
            jax.block_until_ready((state[0], loss))

        return run

    def ours() -> Run:
        import jax

        return repeated(jax.jit(_step), *_ours(ad.JAX()))

    def native() -> Run:
        import jax

        def loss(p: Any, x: Any, labels: Any) -> Any:
            rows = jax.nn.log_softmax(_logits(jax.nn.relu, p, x))
            return -jax.numpy.take_along_axis(rows, labels[:, None], axis=-1).mean()

        def step(p: Any, x: Any, labels: Any) -> Any:
            value, grads = jax.value_and_grad(loss)(p, x, labels)
            return [w - RATE * g for w, g in zip(p, grads, strict=True)], value

        parameters, x, labels = _numbers()
        return repeated(jax.jit(step), *jax.tree.map(jax.numpy.asarray, (parameters, x, labels)))

    return {"adjoint": ours, "JAX jit": native}


CASES = [
    Case("over PyTorch's tensors: MLP 784-256-256-10, batch 128, SGD step", _over_torch(), {"PyTorch": 1.3}),
    Case("under jax.jit: MLP 784-256-256-10, batch 128, SGD step", _over_jax(), {"JAX jit": 1.1}),
]
