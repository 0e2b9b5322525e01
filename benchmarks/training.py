"""Training with modules and optimizers, against PyTorch's."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np

import adjoint as ad
from benchmarks.cases import Case, Run, import_torch, normal

Makes = dict[str, Callable[[], Run]]


def _mlp(sizes: tuple[int, ...], batch: int, name: str, **settings: Any) -> Makes:
    """A step of linear layers: forward, backward, update. Ours writes over its last model, as PyTorch does."""
    rng = np.random.default_rng(1)
    pairs = list(itertools.pairwise(sizes))
    weights = [(rng.standard_normal((m, n)) / n**0.5).astype(np.float32) for n, m in pairs]
    x0, y0 = rng.standard_normal((batch, sizes[0])).astype(np.float32), rng.integers(0, sizes[-1], batch)

    def ours() -> Run:
        parts: list[Any] = []
        for (n, m), w in zip(pairs, weights, strict=True):
            parts += [ad.nn.relu] if parts else []
            layer = ad.nn.Linear(n, m)
            parts.append(layer.at("weight").set(ad.tensor(w)).at("bias").set(ad.zeros(m)))
        model = ad.nn.Sequential(*parts).require_grad()
        optimizer = getattr(ad.optim, name)(donate=True, **settings)
        held = [model, optimizer.init(model)]
        x, y = ad.tensor(x0), ad.tensor(y0)

        def run() -> None:
            model, state = held
            grads = ad.nn.cross_entropy(model(x), y).backward()
            held[:] = optimizer.step(model, grads, state)

        return run

    def torch() -> Run:
        t = import_torch()
        parts: list[Any] = []
        for (n, m), w in zip(pairs, weights, strict=True):
            parts += [t.nn.ReLU()] if parts else []
            layer = t.nn.Linear(n, m)
            with t.no_grad():
                layer.weight.copy_(t.from_numpy(w.copy()))
                layer.bias.zero_()
            parts.append(layer)
        model = t.nn.Sequential(*parts)
        optimizer = getattr(t.optim, name)(model.parameters(), **settings)
        x, y = t.tensor(x0), t.tensor(y0)

        def run() -> None:
            optimizer.zero_grad()
            t.nn.functional.cross_entropy(model(x), y).backward()
            optimizer.step()

        return run

    return {"adjoint": ours, "PyTorch": torch}


class _Arrays(ad.nn.Module):
    parts: tuple[ad.Tensor[Any], ...]


def _adam(*shapes: tuple[int, ...], **theirs: Any) -> Makes:
    """Adam's update alone, of parameters of these shapes."""
    values, slopes = normal(*shapes), normal(*shapes, seed=1)

    def ours() -> Run:
        model = _Arrays(tuple(map(ad.tensor, values)))
        grads = {f"parts.{k}": ad.tensor(g) for k, g in enumerate(slopes)}
        optimizer = ad.optim.Adam(donate=True)
        held = [model, optimizer.init(model)]

        def run() -> None:
            model, state = held
            held[:] = optimizer.step(model, grads, state)

        return run

    def torch() -> Run:
        t = import_torch()
        parameters = [t.nn.Parameter(t.tensor(v)) for v in values]
        for p, g in zip(parameters, slopes, strict=True):
            p.grad = t.tensor(g)
        return t.optim.Adam(parameters, **theirs).step  # type: ignore[no-any-return]

    return {"adjoint": ours, "PyTorch": torch}


def _cases(threads: int) -> list[Case]:
    where = f"{threads} thread{'s' if threads > 1 else ''}"
    large, small = _mlp((784, 256, 256, 10), 128, "Adam"), _mlp((64, 32, 10), 32, "SGD", lr=0.01)
    rows: list[tuple[str, Makes, dict[str, float]]] = [
        ("Adam's update of one array of 1,000,000", _adam((1_000_000,)), {"PyTorch": 0.6}),
        ("Adam's update of one array, fused=True", _adam((1_000_000,), fused=True), {}),
        ("Adam's update of 64 arrays of 125 x 125", _adam(*[(125, 125)] * 64), {}),
        ("modules: MLP 784-256-256-10, batch 128, Adam step", large, {"PyTorch": 0.9}),
        ("modules: MLP 64-32-10, batch 32, SGD step", small, {"PyTorch": 1.3}),
    ]
    return [Case(f"{name}, {where}", make, targets, threads=threads) for name, make, targets in rows]


CASES = [*_cases(1), *_cases(2)]
