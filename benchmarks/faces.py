"""`adjoint.torch` beside PyTorch, and `adjoint.autograd` beside HIPS autograd: one text for both libraries."""

from __future__ import annotations

import importlib
import os
import subprocess
import sys
from collections.abc import Callable
from typing import Any

from benchmarks.cases import Case, Run, normal

PEERS = {"torch": "PyTorch", "autograd": "autograd"}


def _chain(torch: Any) -> Any:
    x = y = torch.ones(3, requires_grad=True)
    for _ in range(250):
        y = y * 1.01
        y = y + x
        y = y - 0.5
        y = y * x
    return y


def _forward_and_backward(torch: Any) -> Run:
    return lambda: _chain(torch).sum().backward()


def _no_grad(torch: Any) -> Run:
    return torch.no_grad()(lambda: _chain(torch))  # type: ignore[no-any-return]


def _in_place(torch: Any) -> Run:
    def run() -> None:
        y = torch.ones(3)
        for _ in range(500):
            y.mul_(1.01)
            y.add_(1.0)

    return run


def _reads(torch: Any) -> Run:
    y = torch.ones(100)

    def run() -> None:
        for i in range(100):
            y[i]

    return run


def _writes(torch: Any) -> Run:
    y = torch.ones(100)

    def run() -> None:
        for i in range(100):
            y[i] = 2.0

    return run


def _sgd_step(torch: Any) -> Run:
    """A step of a network of modules, with batches that are there."""
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(64, 128), torch.nn.ReLU(), torch.nn.Linear(128, 10))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    x, y = torch.from_numpy(normal((32, 64))[0]), torch.arange(32) % 10

    def run() -> None:
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(model(x), y).backward()
        optimizer.step()

    return run


def _gradient_of_chain(autograd: Any) -> Run:
    np = importlib.import_module(f"{autograd.__name__}.numpy")
    (x,) = normal((3,))

    def loss(w: Any) -> Any:
        y = w
        for _ in range(250):
            y = y * 1.01
            y = y + w
            y = y - 0.5
            y = y * w
        return np.sum(y)

    slope = autograd.grad(loss)
    return lambda: slope(x)


def _gradient_of_network(autograd: Any) -> Run:
    np = importlib.import_module(f"{autograd.__name__}.numpy")
    x, *arrays = normal((32, 64), (64, 32), (32,), (32, 10), (10,))

    def loss(params: Any) -> Any:
        w1, b1, w2, b2 = params
        out = np.dot(np.tanh(np.dot(x, w1) + b1), w2) + b2
        return np.mean(np.log(np.sum(np.exp(out), axis=1)) - out[:, 0])

    slope = autograd.grad(loss)
    return lambda: slope(arrays)


def _both(program: Callable[[Any], Run], name: str = "torch") -> dict[str, Callable[[], Run]]:
    return {
        "adjoint": lambda: program(importlib.import_module(f"adjoint.{name}")),
        PEERS[name]: lambda: program(importlib.import_module(name)),
    }


def _imports(name: str) -> dict[str, Callable[[], Run]]:
    """Processes that import a library and end."""

    compiled = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}

    def of(module: str) -> Callable[[], Run]:
        command = [sys.executable, "-c", f"import {module}"]
        return lambda: lambda: subprocess.run(command, check=True, env=compiled)  # type: ignore[return-value]

    return {"adjoint": of(f"adjoint.{name}"), PEERS[name]: of(name)}


def _case(name: str, program: Callable[[Any], Run], target: float) -> Case:
    return Case(f"adjoint.torch: {name}", _both(program), {"PyTorch": target}, threads=1)


CASES = [
    _case("chain of 1,000 operations and its gradient", _forward_and_backward, 0.6),
    _case("chain of 1,000 operations under no_grad", _no_grad, 0.7),
    _case("1,000 operations in place", _in_place, 0.7),
    _case("y[i] for 100 places", _reads, 1.0),
    _case("y[i] = v for 100 places", _writes, 1.0),
    _case("MLP 64-128-10, batch 32, optim.SGD step", _sgd_step, 1.2),
    Case("adjoint.torch: import, with Python's start", _imports("torch"), {"PyTorch": 0.125}, threads=1, repeats=5),
    Case("adjoint.autograd: gradient of a chain of 1,000", _both(_gradient_of_chain, "autograd"), {"autograd": 1.0}, 1),
    Case(
        "adjoint.autograd: gradient of an MLP 64-32-10", _both(_gradient_of_network, "autograd"), {"autograd": 1.0}, 1
    ),
]
