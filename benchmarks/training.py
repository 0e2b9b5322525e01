"""Training with modules and optimizers, against PyTorch's. Each case is measured with one thread and with two."""

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


def _ours(make: Callable[[], tuple[Any, Any]], loss: Callable[[Any, Any, Any], Any], batches: list[Any]) -> Run:
    """A step of ours for each batch, with the model and the optimizer that `make` gives."""
    model, optimizer = make()
    model = model.require_grad()
    held = [model, optimizer.init(model)]
    pairs = [(ad.tensor(x), ad.tensor(y)) for x, y in batches]

    def run() -> None:
        for x, y in pairs:
            model, state = held
            held[:] = optimizer.step(model, loss(model, x, y).backward(), state)

    return run


def _theirs(make: Callable[[Any], tuple[Any, Any]], loss: Callable[[Any, Any, Any, Any], Any], batches: Any) -> Run:
    """The same with PyTorch; the functions take it first."""
    t = import_torch()
    t.manual_seed(0)
    model, optimizer = make(t)
    pairs = [(t.tensor(x), t.tensor(y)) for x, y in batches]

    def run() -> None:
        for x, y in pairs:
            optimizer.zero_grad()
            loss(t, model, x, y).backward()
            optimizer.step()

    return run


def _digits() -> Makes:
    """An epoch over scikit-learn's scans of digits, in batches of 32."""

    def batches() -> list[Any]:
        from sklearn.datasets import load_digits

        scans = load_digits()
        images, labels = scans.images[:1440, None].astype(np.float32) / 16, scans.target[:1440]
        return [(images[k : k + 32], labels[k : k + 32]) for k in range(0, len(labels), 32)]

    def ours() -> tuple[Any, Any]:
        nn = ad.nn
        first = [nn.Conv2d(1, 16, 3, padding=1), nn.relu, nn.MaxPool2d(2)]
        second = [nn.Conv2d(16, 32, 3, padding=1), nn.relu, nn.MaxPool2d(2)]
        return nn.Sequential(*first, *second, nn.Flatten(), nn.Linear(128, 10)), ad.optim.Adam(donate=True)

    def torch(t: Any) -> tuple[Any, Any]:
        nn = t.nn
        first = [nn.Conv2d(1, 16, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2)]
        second = [nn.Conv2d(16, 32, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2)]
        model = nn.Sequential(*first, *second, nn.Flatten(), nn.Linear(128, 10))
        return model, t.optim.Adam(model.parameters())

    return {
        "adjoint": lambda: _ours(ours, lambda model, x, y: ad.nn.cross_entropy(model(x), y), batches()),
        "PyTorch": lambda: _theirs(torch, lambda t, model, x, y: t.nn.functional.cross_entropy(model(x), y), batches()),
    }


_LETTERS, _WIDTH, _TOKENS = 96, 128, (8, 128)


def _transformer(activation: str) -> Makes:
    """A step of a model of text: what the next letter is, of each of 8 x 128."""
    rng = np.random.default_rng(2)
    batches = [tuple(rng.integers(0, _LETTERS, (2, *_TOKENS)))]

    class Model(ad.nn.Module):
        embedding: ad.nn.Embedding
        encoder: ad.nn.TransformerEncoder
        out: ad.nn.Linear

    def ours() -> tuple[Any, Any]:
        nn, how = ad.nn, {"dropout": 0.0, "activation": getattr(ad.nn, activation), "norm_first": True}
        encoder = nn.TransformerEncoder(_WIDTH, 4, 4, 4 * _WIDTH, norm=False, **how)
        model = Model(nn.Embedding(_LETTERS, _WIDTH), encoder, nn.Linear(_WIDTH, _LETTERS))
        return model, ad.optim.AdamW(donate=True)

    def loss(model: Any, x: Any, y: Any) -> Any:
        found = model.out(model.encoder(model.embedding(x), is_causal=True))
        return ad.nn.cross_entropy(found.reshape((-1, _LETTERS)), y.reshape((-1,)))

    def torch(t: Any) -> tuple[Any, Any]:
        nn, how = t.nn, {"dropout": 0.0, "activation": activation, "norm_first": True, "batch_first": True}
        encoder = nn.TransformerEncoder(
            nn.TransformerEncoderLayer(_WIDTH, 4, 4 * _WIDTH, **how), 4, enable_nested_tensor=False
        )
        parts = {"embedding": nn.Embedding(_LETTERS, _WIDTH), "encoder": encoder, "out": nn.Linear(_WIDTH, _LETTERS)}
        model = nn.ModuleDict(parts)
        return model, t.optim.AdamW(model.parameters())

    def their_loss(t: Any, model: Any, x: Any, y: Any) -> Any:
        mask = t.nn.Transformer.generate_square_subsequent_mask(_TOKENS[1])
        found = model["out"](model["encoder"](model["embedding"](x), mask=mask, is_causal=True))
        return t.nn.functional.cross_entropy(found.flatten(0, 1), y.flatten())

    return {"adjoint": lambda: _ours(ours, loss, batches), "PyTorch": lambda: _theirs(torch, their_loss, batches)}


def _lstm(fused: bool) -> Makes:
    """A step that fits the outputs of 64 units over 100 steps, batch 32, 64 inputs."""
    batches = [tuple(normal((100, 32, 64), (100, 32, 64)))]

    def torch(t: Any) -> tuple[Any, Any]:
        model = t.nn.LSTM(64, 64) if fused else t.nn.LSTMCell(64, 64)
        return model, t.optim.Adam(model.parameters())

    def their_loss(t: Any, model: Any, x: Any, y: Any) -> Any:
        if fused:
            return t.nn.functional.mse_loss(model(x)[0], y)
        state, found = None, []
        for row in x:
            state = model(row, state)
            found.append(state[0])
        return t.nn.functional.mse_loss(t.stack(found), y)

    return {
        "adjoint": lambda: _ours(
            lambda: (ad.nn.LSTM(64, 64), ad.optim.Adam(donate=True)),
            lambda model, x, y: ad.nn.mse_loss(model(x)[0], y),
            batches,
        ),
        "PyTorch": lambda: _theirs(torch, their_loss, batches),
    }


def _cases(threads: int) -> list[Case]:
    where = f"{threads} thread{'s' if threads > 1 else ''}"
    large, small = _mlp((784, 256, 256, 10), 128, "Adam"), _mlp((64, 32, 10), 32, "SGD", lr=0.01)
    rows: list[tuple[str, Makes, dict[str, float]]] = [
        ("Adam's update of one array of 1,000,000", _adam((1_000_000,)), {"PyTorch": 0.6}),
        ("Adam's update of one array, fused=True", _adam((1_000_000,), fused=True), {}),
        ("Adam's update of 64 arrays of 125 x 125", _adam(*[(125, 125)] * 64), {}),
        ("modules: MLP 784-256-256-10, batch 128, Adam step", large, {"PyTorch": 0.9}),
        ("modules: MLP 64-32-10, batch 32, SGD step", small, {"PyTorch": 1.3}),
        ("modules: conv net on digits, epoch, Adam", _digits(), {"PyTorch": 1.2}),
        ("modules: transformer of 4 x 128, 8 x 128 tokens, relu, AdamW step", _transformer("relu"), {"PyTorch": 1.1}),
        ("modules: transformer of 4 x 128, 8 x 128 tokens, gelu, AdamW step", _transformer("gelu"), {"PyTorch": 1.3}),
        ("modules: LSTM of 64, 100 steps, batch 32, Adam step, beside cells", _lstm(False), {"PyTorch": 0.9}),
        ("modules: LSTM of 64, 100 steps, batch 32, Adam step, beside nn.LSTM", _lstm(True), {"PyTorch": 4.0}),
    ]
    few = {"conv net", "transformer", "LSTM"}  # what takes a tenth of a second gets fewer turns
    return [
        Case(f"{name}, {where}", make, targets, threads, 20 if any(word in name for word in few) else 60)
        for name, make, targets in rows
    ]


CASES = [*_cases(1), *_cases(2)]
