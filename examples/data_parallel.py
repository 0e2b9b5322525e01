"""A cluster: the gradient of data that no single process holds.

Two worker processes on this machine make their chunks of the data, and compute their part of the loss and of its
gradient; only sums travel. On a real cluster one line changes, the address of the scheduler. The function is logistic
regression, and Newton's method fits it with the exact Hessian, which is a sum over chunks, too. For comparison only,
the data are brought together in the end, and scikit-learn fits them. The picture shows which worker computed when.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from command_line import Parser, Stop, at_least, check, save

import adjoint as ad

CHUNKS, FEATURES, RIDGE = 8, 20, 1.0

Array = np.ndarray


def data(rows: int, seed: int) -> tuple[Any, Any]:
    """Dask arrays: measurements, and labels -1 or 1. No numbers yet, only how each chunk is made."""
    import dask.array as da

    rng = da.random.default_rng(seed)
    x = rng.normal(size=(rows, FEATURES), chunks=(rows // CHUNKS, FEATURES))
    truth = np.cos(np.arange(FEATURES))
    return x, da.sign(x @ truth + rng.logistic(size=rows, chunks=rows // CHUNKS))


def loss(w: Any, x: Any, y: Any) -> Any:
    """What is minimised: minus the log-likelihood, and a ridge."""
    return ad.nn.softplus(-y * (x @ w)).sum() + RIDGE / 2 * (w * w).sum()


def fit(x: Any, y: Any) -> tuple[Array, list[float]]:
    """Newton's method: one pass over the data per step, for gradient and Hessian together."""
    device = ad.device("autodiff<dask>")
    x, y = ad.asarray(x, device=device), ad.asarray(y, device=device)
    gradient, hessian = ad.grad(loss), ad.hessian(loss)
    w, sizes = np.zeros(FEATURES), []
    while not sizes or sizes[-1] > 1e-8 * sizes[0]:
        at = ad.asarray(w, device=device)
        slope, matrix = ad.compute((gradient(at, x, y), hessian(at, x, y)))
        w = w - np.linalg.solve(matrix, slope)
        sizes.append(float(np.linalg.norm(slope)))
    return w, sizes


def spans(tasks: list[dict[str, Any]]) -> list[tuple[str, float, float]]:
    """The worker, begin and end of each piece of work, in seconds from the first."""
    found = [
        (task["worker"], part["start"], part["stop"])
        for task in tasks
        for part in task["startstops"]
        if part["action"] == "compute"
    ]
    first = min([begin for _, begin, _ in found])
    return [(worker, begin - first, end - first) for worker, begin, end in found]


def scikit_learns(x: Array, y: Array) -> Array:
    """The same fit by scikit-learn, of all data at once."""
    from sklearn.linear_model import LogisticRegression

    model = LogisticRegression(C=1 / RIDGE, solver="newton-cholesky", tol=1e-10, fit_intercept=False)
    return model.fit(x, y).coef_[0]


def draw(path: Path, work: list[tuple[str, float, float]], sizes: list[float], w: Array, theirs: Array) -> None:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(13, 6.5), layout="constrained")
    grid = figure.subplot_mosaic([["times", "times"], ["sizes", "weights"]])
    names = sorted({worker for worker, _, _ in work})
    for i, name in enumerate(names):
        bars = [(begin, end - begin) for worker, begin, end in work if worker == name]
        grid["times"].broken_barh(bars, (i - 0.4, 0.8), color=f"C{i}", edgecolor="white", linewidth=0.3)
    rows = range(len(names))
    grid["times"].set(
        yticks=rows, yticklabels=[f"worker {i + 1}" for i in rows], xlabel="seconds", title="Who works when"
    )
    grid["sizes"].semilogy(range(1, len(sizes) + 1), sizes, "o-")
    grid["sizes"].set(xlabel="pass over the data", ylabel="size of the gradient", title="Newton's method")
    grid["weights"].plot(w, "o", label="in chunks")
    grid["weights"].plot(theirs, "o", color="black", fillstyle="none", markersize=9, label="scikit-learn")
    grid["weights"].set(
        xlabel="feature", ylabel="weight", title="The fit", xticks=range(0, FEATURES, 5), ylim=(-1.3, 1.6)
    )
    grid["weights"].legend(loc="upper center", ncols=2)
    for name in ("sizes", "weights"):
        grid[name].grid(alpha=0.3)
    save(figure, path)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = Parser("data_parallel.py", __doc__)
    parser.add_argument("--rows", type=at_least(1000), default=80_000, help="of data (80,000)")
    parser.add_seed("the data")
    parser.add_out()
    options = parser.parse_args(arguments)

    with Stop("data_parallel.py"):
        from distributed import Client, LocalCluster, get_task_stream

        x, y = data(options.rows // CHUNKS * CHUNKS, options.seed)
        with (
            LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0") as cluster,
            Client(cluster) as client,
        ):
            x, y = client.persist((x, y))  # each chunk stays where it was made
            with get_task_stream(client) as tasks:
                w, sizes = fit(x, y)
            work = spans(tasks.data)
            rows = x.compute(), y.compute()
        for i, size in enumerate(sizes, 1):
            print(f"pass {i}: gradient {size:.1e}")
        for i, name in enumerate(sorted({worker for worker, _, _ in work}), 1):
            print(f"worker {i}: {sum([worker == name for worker, _, _ in work])} pieces of work")
        theirs = scikit_learns(*rows)
        check("the fit of scikit-learn", float(np.abs(w - theirs).max()), 1e-7)
        draw(options.out, work, sizes, w, theirs)


if __name__ == "__main__":
    main(sys.argv[1:])
