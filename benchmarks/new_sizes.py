"""`python -m benchmarks.new_sizes`: what a call costs whose size comes for the first time, beside machine code for it.

In one process, with one thread: for each of some sizes, half of them below and half above the size that is named, the
first call; and then calls of the same function by turns with one that was compiled for that size alone, with other
numbers each time. The median of calls counts, and of sizes. The function as it is runs after them.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from benchmarks.cases import normal

SIZES, TURNS = 16, 15
Function = Callable[..., Any]


def _expression(ad: Any) -> tuple[Function, Function]:
    f = ad.grad(lambda x: (ad.sin(x) * ad.exp(-x * x) + x**2 / (1 + x * x)).sum())
    return f, lambda n: normal((n,))


def _layer_norm(ad: Any) -> tuple[Function, Function]:
    f = ad.grad(lambda x: (ad.nn.layer_norm(x, (512,)) ** 3).sum())
    return f, lambda n: normal((n, 512))


def _network(ad: Any) -> tuple[Function, Function]:
    weights = normal((64, 32), (32,), (32, 10), (10,))

    def loss(weights: Any, x: Any, labels: Any) -> Any:
        a, b, c, d = weights
        return -(ad.nn.log_softmax(ad.nn.relu(x @ a + b) @ c + d, axis=-1) * labels).sum() / x.shape[0]

    return ad.value_and_grad(loss), lambda n: [weights, *normal((n, 64), (n, 10))]


def _recurrent(ad: Any) -> tuple[Function, Function]:
    """Sequences of any length."""
    weights = normal((16, 32), (32, 32))

    def loss(weights: Any, xs: Any) -> Any:
        w, u = weights
        step: Function = lambda state, x: (ad.tanh(x @ w + state @ u / 8), None)
        return (ad.scan(step, ad.zeros((8, 32), dtype=ad.float32), xs)[0] ** 2).sum()

    return ad.value_and_grad(loss), lambda n: [weights, *normal((n, 8, 16))]


def _attention(ad: Any) -> tuple[Function, Function]:
    """Batches of any size."""
    loss: Function = lambda q, k, v: (ad.nn.scaled_dot_product_attention(q, k, v) ** 2).sum()
    return ad.value_and_grad(loss, argnums=(0, 1, 2)), lambda n: normal(*[(n, 4, 64, 32)] * 3)


def _table(ad: Any) -> tuple[Function, Function]:
    """The gradient of rows of a table, at any number of places."""
    f = ad.grad(lambda table, places: (ad.tanh(table[places]) ** 2).sum())
    (table,) = normal((1_000, 64))
    return f, lambda n: [table, np.arange(n) * 7 % 1_000]


def _images(ad: Any) -> tuple[Function, Function]:
    """Batches of images of any size, convolved, pooled and summed up."""
    kernels = normal((16, 1, 3, 3), (32, 16, 3, 3))

    def loss(kernels: Any, x: Any) -> Any:
        for kernel in kernels:
            x = ad.nn.max_pool2d(ad.nn.relu(ad.nn.conv2d(x, kernel, padding=1)), 2)
        return (x**2).sum() / x.shape[0]

    return ad.value_and_grad(loss), lambda n: [kernels, *normal((n, 1, 28, 28))]


def _lengths(ad: Any, causal: bool = False) -> tuple[Function, Function]:
    """Sequences of any length, each of whose places sees all others, or those before it."""
    how = {"is_causal": causal}
    loss: Function = lambda q, k, v: (ad.nn.scaled_dot_product_attention(q, k, v, **how) ** 2).sum()
    return ad.value_and_grad(loss, argnums=(0, 1, 2)), lambda n: normal(*[(8, 4, n, 32)] * 3)


def _distances(ad: Any) -> tuple[Function, Function]:
    """Of all pairs of points."""
    return ad.grad(lambda x: ad.exp(-((x[:, None] - x) ** 2).sum(axis=-1)).sum()), lambda n: normal((n, 3))


def _kernel_matrix(ad: Any) -> tuple[Function, Function]:
    return ad.grad(lambda x: ad.tanh(x @ x.T).sum()), lambda n: normal((n, 40))


def _columns(ad: Any) -> tuple[Function, Function]:
    (w,) = normal((64, 64))
    return ad.value_and_grad(lambda w, x: (ad.tanh(w @ x) ** 2).sum()), lambda n: [w, *normal((64, n))]


def _logistic(ad: Any) -> tuple[Function, Function]:
    f = ad.hessian(lambda w, x, y: ad.log1p(ad.exp(-y * (x @ w))).mean())
    return f, lambda n: normal((16,), (n, 16), (n,))


def _standardized(ad: Any) -> tuple[Function, Function]:
    f = ad.grad(lambda x: (((x - x.mean(axis=0)) / ad.sqrt(x.var(axis=0) + 1e-5)) ** 3).sum())
    return f, lambda n: normal((n, 64))


def _running_sum(ad: Any) -> tuple[Function, Function]:
    return ad.grad(lambda x: (ad.cumulative_sum(x) ** 2).sum()), lambda n: normal((n,))


def _filtered(ad: Any) -> tuple[Function, Function]:
    (taps,) = normal((9,))
    return ad.grad(lambda x: (ad.convolve(x, taps, mode="same") ** 2).sum()), lambda n: normal((n,))


def _sorted(ad: Any) -> tuple[Function, Function]:
    return ad.grad(lambda x: (ad.sort(x) * ad.arange(x.shape[0])).sum()), lambda n: normal((n,))


PROGRAMS: Sequence[tuple[str, Function, Sequence[int]]] = [
    ("expression", _expression, (100, 10_000, 1_000_000)),
    ("layer_norm, rows of 512", _layer_norm, (64, 256, 1_024)),
    ("MLP 64-32-10", _network, (64, 128, 512)),
    ("recurrent network, steps", _recurrent, (64, 128)),
    ("attention, 4 x 64 x 32", _attention, (32,)),
    ("attention, sequences of 8 x 4 x 32", _lengths, (64, 200)),
    ("... causal", partial(_lengths, causal=True), (64, 200)),
    ("rows of a table", _table, (128, 1_024)),
    ("conv net", _images, (32,)),
    ("distances of points", _distances, (100,)),
    ("kernel matrix", _kernel_matrix, (100, 300)),
    ("columns of a product", _columns, (100, 1_000)),
    ("logistic regression, Hessian", _logistic, (200, 2_000)),
    ("standardized columns", _standardized, (200,)),
    ("cumulative sum", _running_sum, (1_000,)),
    ("convolution with 9 taps", _filtered, (100, 10_000)),
    ("sort", _sorted, (100, 10_000)),
]


def measured(f: Function, values: Function, size: int) -> tuple[float, float, float, float]:
    """Seconds of a new size's first call, of others, of code that was made for that size alone, and of f as it is."""
    import adjoint as ad

    general, far = ad.compile(f), SIZES // 2 + 1
    for size_before in (size + far, size - far):  # from the second on a size is a symbol
        general(*values(size_before))
    found: list[Sequence[float]] = []
    for n in [size + sign * step for step in range(1, SIZES // 2 + 1) for sign in (1, -1)]:
        special = ad.compile(f, dynamic=False)
        special(*values(n))
        first = _seconds(general, values(n))
        calls = [[_seconds(g, values(n)) for g in (general, special)] for _ in range(TURNS)]
        found.append([first, *_medians(calls)])
    first, general_seconds, special_seconds = _medians(found)
    return first, general_seconds, special_seconds, min([_seconds(f, values(size)) for _ in range(TURNS)])


def _medians(rows: Sequence[Sequence[float]]) -> list[float]:
    return [statistics.median(column) for column in zip(*rows, strict=True)]


def _seconds(f: Function, values: Sequence[Any]) -> float:
    start = time.perf_counter()
    f(*values)
    return time.perf_counter() - start


def main() -> None:
    import adjoint as ad

    parser = argparse.ArgumentParser(prog="python -m benchmarks.new_sizes", description=__doc__)
    parser.add_argument("words", nargs="*", help="programs with one of these in their names; by default all")
    words = parser.parse_args().words
    np.seterr(all="ignore")
    ad.set_num_threads(1)
    for name, make, sizes in PROGRAMS:
        if words and not any(word in name for word in words):
            continue
        f, values = make(ad)
        for size in sizes:
            first, new, known, eager = (x * 1e3 for x in measured(f, values, size))
            print(
                f"{name}, {size:,}: {new:.3g} ms, {new / known:.2f} of {known:.3g} ms; "
                f"first {first:.3g} ms, uncompiled {eager:.3g} ms"
            )


if __name__ == "__main__":
    main()
