"""Logistic regression on data that no process could hold, by full-batch gradient descent.

The data are a graph of tasks that draw them, 2 GB in chunks of 40 MB. Each step computes the loss and the gradient in
one run over all chunks, by processes of 600 MB each.
"""

from __future__ import annotations

import argparse
from typing import Any

import dask.array as da
import numpy as np
from distributed import Client, LocalCluster

import adjoint as ad

COLUMNS = 50


def draw(rows: int, chunk: int) -> tuple[Any, Any]:
    """Points, and which of two classes each is of: by chance, as a logistic model says."""
    rng = da.random.default_rng(0)
    data = rng.normal(size=(rows, COLUMNS), chunks=(chunk, COLUMNS))
    chances = 1 / (1 + da.exp(-data @ np.linspace(-1, 1, COLUMNS)))
    return data, (rng.random(rows, chunks=chunk) < chances).astype("f8")


def loss(w: Any, x: Any, y: Any) -> Any:
    """The mean of minus the log-likelihoods."""
    logits = x @ w
    return (ad.nn.softplus(logits) - y * logits).mean()


def descend(x: Any, y: Any, steps: int, rate: float) -> tuple[list[float], Any]:
    """The losses before each step, and where the last one ends."""
    w = ad.zeros(COLUMNS, dtype=ad.float64, device=x.device).require_grad()
    losses = []
    for _ in range(steps):
        value = loss(w, x, y)
        value, slope = ad.compute((value, value.backward()[w]))
        losses.append(float(value))
        w = w.with_value(w.numpy() - rate * slope)
    return losses, w.numpy()


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=5_000_000)
    parser.add_argument("--chunk", type=int, default=100_000, help="rows that are worked on together")
    parser.add_argument("--steps", type=int, default=5)
    parser.add_argument("--workers", type=int, default=2)
    given = parser.parse_args(arguments)
    with (
        LocalCluster(
            n_workers=given.workers, threads_per_worker=1, memory_limit="600MB", dashboard_address=":0"
        ) as cluster,
        Client(cluster),
    ):
        data, labels = draw(given.rows, given.chunk)
        x, y = (ad.asarray(a, device="autodiff<dask>") for a in (data, labels))
        print(f"{data.nbytes / 1e9:.1f} GB in {data.npartitions} chunks")
        losses, w = descend(x, y, given.steps, 2.0)
    for step, value in enumerate(losses):
        print(f"step {step}: loss {value:.4f}")
    print(f"farthest from the truth: {np.abs(w - np.linspace(-1, 1, COLUMNS)).max():.3f}")


if __name__ == "__main__":
    main()
