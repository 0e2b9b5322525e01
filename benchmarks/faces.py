"""`adjoint.torch` beside PyTorch: one text for both libraries."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from benchmarks.cases import Case, Run


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


def _both(program: Callable[[Any], Run]) -> dict[str, Callable[[], Run]]:
    def ours() -> Run:
        import adjoint.torch as torch

        return program(torch)

    def theirs() -> Run:
        import torch

        return program(torch)

    return {"adjoint": ours, "PyTorch": theirs}


CASES = [
    Case("adjoint.torch: chain of 1,000 operations and its gradient", _both(_forward_and_backward), threads=1),
    Case("adjoint.torch: chain of 1,000 operations under no_grad", _both(_no_grad), threads=1),
    Case("adjoint.torch: 1,000 operations in place", _both(_in_place), threads=1),
    Case("adjoint.torch: y[i] for 100 places", _both(_reads), threads=1),
    Case("adjoint.torch: y[i] = v for 100 places", _both(_writes), threads=1),
]
