"""Loaders beside steps: how long twenty steps of a millisecond take that wait for their batches."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np

import adjoint as ad
from benchmarks.cases import Case, Run, normal

STEPS, STEP, BATCH = 20, 1e-3, 32
RECORDS = 100_000
(X,) = normal((RECORDS, 32))
Y = np.arange(RECORDS)


class Pairs:
    """Records that are read one by one."""

    def __len__(self) -> int:
        return RECORDS

    def __getitem__(self, index: int) -> tuple[Any, Any]:
        return X[index], Y[index]


def _endless(loader: Iterable[Any]) -> Iterator[Any]:
    while True:
        yield from loader


def _run(loader: Iterable[Any]) -> Run:
    """Steps that keep one core busy for as long as they last."""
    batches = _endless(loader)

    def run() -> None:
        for _ in range(STEPS):
            next(batches)
            end = time.perf_counter() + STEP
            while time.perf_counter() < end:
                pass

    return run


def _loaders(workers: int, source: Callable[[], Any], theirs: Callable[[], Any]) -> dict[str, Callable[[], Run]]:
    def torch() -> Run:
        from torch.utils.data import DataLoader

        return _run(DataLoader(theirs(), BATCH, shuffle=True, num_workers=workers, persistent_workers=workers > 0))

    def ours() -> Run:
        return _run(ad.data.DataLoader(source(), BATCH, shuffle=True, workers=workers))

    return {"adjoint": ours, "PyTorch": torch}


def _tensors() -> Any:
    from torch import from_numpy
    from torch.utils.data import TensorDataset

    return TensorDataset(from_numpy(X), from_numpy(Y))


CASES = [
    Case("20 steps of 1 ms, batches of arrays, no workers", _loaders(0, lambda: (X, Y), _tensors), threads=1),
    Case("20 steps of 1 ms, batches of arrays, 2 workers", _loaders(2, lambda: (X, Y), _tensors), threads=1),
    Case("20 steps of 1 ms, batches of records, 2 workers", _loaders(2, Pairs, Pairs), threads=1),
]
