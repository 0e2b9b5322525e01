"""What is measured: each case gives one callable per library, all doing the same work on the same numbers."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

import adjoint as ad

Run = Callable[[], Any]


@dataclass
class Case:
    """One row of the table. `targets` are upper bounds of ours / theirs, as promised in the docs."""

    name: str
    make: dict[str, Callable[[], Run]]
    targets: dict[str, float] = field(default_factory=dict)
    threads: int = 2
    repeats: int = 60
    memory: dict[str, Callable[[], Run]] | None = None  # the same without what is not forward and backward
    resident: bool = False  # memory is mostly the graph's objects: measured by `benchmarks.resident`


def import_torch() -> Any:
    import torch

    return torch


def normal(*shapes: tuple[int, ...], seed: int = 0) -> list[np.ndarray[Any, Any]]:
    rng = np.random.default_rng(seed)
    return [rng.standard_normal(shape).astype(np.float32) for shape in shapes]


# --- a chain of 1,000 small elementwise operations -----------------------------------------------


def _links(x: Any, w: Any) -> Any:
    for _ in range(250):
        x = x * w
        x = x + w
        x = x * w
        x = x - w
    return x


def _scalar_links(x: Any, _: Any = None) -> Any:
    for _ in range(250):
        x = x * 1.01
        x = x + 0.1
        x = x * 0.99
        x = x - 0.1
    return x


def _chain(links: Any) -> dict[str, Callable[[], Run]]:
    x0, w0 = (np.abs(v) * 0.1 + 0.9 for v in normal((16,), (16,)))

    def ours() -> Run:
        x, w = ad.tensor(x0).require_grad(), ad.tensor(w0).require_grad()
        return lambda: links(x, w).sum().backward()

    def torch() -> Run:
        t = import_torch()
        x, w = (t.tensor(v, requires_grad=True) for v in (x0, w0))

        def run() -> None:
            links(x, w).sum().backward()
            x.grad = w.grad = None

        return run

    def autograd() -> Run:
        from autograd import grad

        g = grad(lambda x, w: links(x, w).sum(), (0, 1))
        return lambda: g(x0, w0)

    return {
        "adjoint": ours,
        "PyTorch": torch,
        "autograd": autograd,
        **jax_runs(lambda x, w: links(x, w).sum(), (x0, w0)),
    }


def jax_runs(f: Callable[..., Any], values: tuple[Any, ...]) -> dict[str, Callable[[], Run]]:
    """JAX, compiled before it is timed, and operation by operation."""

    def compiled() -> Run:
        import jax

        g = jax.jit(jax.value_and_grad(f, tuple(range(len(values)))))
        arrays = [jax.numpy.asarray(v) for v in values]
        return lambda: jax.block_until_ready(g(*arrays))

    def eager() -> Run:
        import jax

        g = jax.value_and_grad(f, tuple(range(len(values))))
        arrays = [jax.numpy.asarray(v) for v in values]
        return lambda: jax.block_until_ready(g(*arrays))

    return {"JAX jit": compiled, "JAX": eager}


# --- one expression on 1,000,000 elements --------------------------------------------------------


def _expression() -> dict[str, Callable[[], Run]]:
    a0, b0 = normal((1_000_000,), (1_000_000,))

    def ours() -> Run:
        a, b = ad.tensor(a0).require_grad(), ad.tensor(b0).require_grad()

        def run() -> None:
            y = ((ad.tanh(a * b) + ad.nn.sigmoid(a)) * ad.exp(-b * b)).sum()
            y.item(), y.backward()

        return run

    def torch() -> Run:
        t = import_torch()
        a, b = (t.tensor(v, requires_grad=True) for v in (a0, b0))

        def run() -> None:
            y = ((t.tanh(a * b) + t.sigmoid(a)) * t.exp(-b * b)).sum()
            y.item()
            y.backward()
            a.grad = b.grad = None

        return run

    def autograd() -> Run:
        import autograd.numpy as anp
        from autograd import value_and_grad

        def f(ab: Any) -> Any:
            a, b = ab
            return anp.sum((anp.tanh(a * b) + 1 / (1 + anp.exp(-a))) * anp.exp(-b * b))

        g = value_and_grad(f)
        return lambda: g((a0, b0))

    def jax_f(a: Any, b: Any) -> Any:
        import jax
        import jax.numpy as jnp

        return ((jnp.tanh(a * b) + jax.nn.sigmoid(a)) * jnp.exp(-b * b)).sum()

    return {"adjoint": ours, "PyTorch": torch, "autograd": autograd, **jax_runs(jax_f, (a0, b0))}


# --- training steps of two networks --------------------------------------------------------------


def _mlp(sizes: tuple[int, ...], batch: int, step: bool = True) -> dict[str, Callable[[], Run]]:
    rng = np.random.default_rng(1)
    parameters = []
    for n, m in itertools.pairwise(sizes):
        parameters += [(rng.standard_normal((n, m)) / n**0.5).astype(np.float32), np.zeros(m, np.float32)]
    x0 = rng.standard_normal((batch, sizes[0])).astype(np.float32)
    y0 = rng.integers(0, sizes[-1], batch)

    def layers(x: Any, p: Any, relu: Any) -> Any:
        for i in range(0, len(p) - 2, 2):
            x = relu(x @ p[i] + p[i + 1])
        return x @ p[-2] + p[-1]

    def ours() -> Run:
        state = [ad.tensor(p).require_grad() for p in parameters]
        x, y = ad.tensor(x0), ad.tensor(y0)

        def run() -> None:
            loss = ad.nn.cross_entropy(layers(x, state, ad.nn.relu), y)
            loss.item()
            grads = loss.backward()
            if step:
                state[:] = [p.with_value(p.inner() - 0.01 * grads[p]) for p in state]

        return run

    def torch() -> Run:
        t = import_torch()
        state = [t.tensor(p, requires_grad=True) for p in parameters]
        x, y = t.tensor(x0), t.tensor(y0)

        def run() -> None:
            loss = t.nn.functional.cross_entropy(layers(x, state, t.relu), y)
            loss.item()
            loss.backward()
            with t.no_grad():
                for p in state:
                    if step:
                        p -= 0.01 * p.grad
                    p.grad = None

        return run

    def autograd() -> Run:
        import autograd.numpy as anp
        from autograd import value_and_grad

        rows = np.arange(batch)

        def loss(p: Any) -> Any:
            z = layers(x0, p, lambda v: anp.maximum(v, 0))
            z = z - anp.max(z, axis=1, keepdims=True)
            return anp.mean(anp.log(anp.sum(anp.exp(z), axis=1)) - z[rows, y0])

        g, state = value_and_grad(loss), list(parameters)

        def run() -> None:
            _, grads = g(state)
            state[:] = [p - np.float32(0.01) * d for p, d in zip(state, grads, strict=True)]

        return run

    def jax(compiled: bool) -> Run:
        import jax
        import jax.numpy as jnp

        def loss(p: Any, x: Any, y: Any) -> Any:
            z = jax.nn.log_softmax(layers(x, p, jax.nn.relu))
            return -jnp.take_along_axis(z, y[:, None], axis=1).mean()

        def update(p: Any, x: Any, y: Any) -> Any:
            value, grads = jax.value_and_grad(loss)(p, x, y)
            return value, [q - 0.01 * d for q, d in zip(p, grads, strict=True)]

        f = jax.jit(update) if compiled else update
        state, x, y = [jnp.asarray(p) for p in parameters], jnp.asarray(x0), jnp.asarray(y0)

        def run() -> None:
            _, state[:] = jax.block_until_ready(f(state, x, y))

        return run

    return {
        "adjoint": ours,
        "PyTorch": torch,
        "autograd": autograd,
        "JAX jit": lambda: jax(True),
        "JAX": lambda: jax(False),
    }


# --- a hundred slices of a large tensor ----------------------------------------------------------


def _slices() -> dict[str, Callable[[], Run]]:
    (x0,) = normal((1_000_000,))

    def total(x: Any) -> Any:
        out = (x[0:100] * 1.0).sum()
        for i in range(1, 100):
            out = out + (x[i * 100 : (i + 1) * 100] * float(i)).sum()
        return out

    def ours() -> Run:
        x = ad.tensor(x0).require_grad()
        return lambda: total(x).backward()

    def torch() -> Run:
        x = import_torch().tensor(x0, requires_grad=True)

        def run() -> None:
            total(x).backward()
            x.grad = None

        return run

    def autograd() -> Run:
        from autograd import grad

        g = grad(total)
        return lambda: g(x0)

    return {"adjoint": ours, "PyTorch": torch, "autograd": autograd, **jax_runs(total, (x0,))}


_EXPRESSION = _expression()

CASES = [
    Case("chain of 1,000 small operations, tensors", _chain(_links), {"PyTorch": 0.7, "autograd": 0.4}, resident=True),
    Case("chain of 1,000 small operations, Python scalars", _chain(_scalar_links), {"PyTorch": 0.45, "autograd": 0.4}),
    Case(
        "sum((tanh(a*b)+sigmoid(a))*exp(-b*b)), 1,000,000 elements",
        _EXPRESSION,
        {"PyTorch": 1.0, "autograd": 0.8},
        threads=1,
        memory=_EXPRESSION,
    ),
    Case(
        "MLP 784-256-256-10, batch 128, SGD step",
        _mlp((784, 256, 256, 10), 128),
        {"PyTorch": 1.1},
        memory=_mlp((784, 256, 256, 10), 128, step=False),
    ),
    Case("MLP 64-32-10, batch 32, SGD step", _mlp((64, 32, 10), 32), {"PyTorch": 0.7}),
    Case("gradient through 100 slices of 1,000,000 elements", _slices(), {"PyTorch": 0.1}),
]
