"""`python -m benchmarks.new_sizes`: what a call costs whose size comes for the first time, beside machine code for it.

In one process, with one thread: for each of some sizes, half of them below and half above the size that is named, the
first call; and then calls of the same function by turns with one that was compiled for that size alone, with other
numbers each time. The median of calls counts, and of sizes. The function as it is runs after them.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence
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


PROGRAMS = [
    ("expression", _expression, (100, 10_000, 1_000_000)),
    ("layer_norm, rows of 512", _layer_norm, (64, 256, 1_024)),
    ("MLP 64-32-10", _network, (64, 128, 512)),
    ("recurrent network, steps", _recurrent, (64, 128)),
    ("attention, 4 x 64 x 32", _attention, (32,)),
    ("rows of a table", _table, (128, 1_024)),
    ("conv net", _images, (32,)),
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

    np.seterr(all="ignore")
    ad.set_num_threads(1)
    for name, make, sizes in PROGRAMS:
        f, values = make(ad)
        for size in sizes:
            first, new, known, eager = (x * 1e3 for x in measured(f, values, size))
            print(
                f"{name}, {size:,}: {new:.3g} ms, {new / known:.1f} of {known:.3g} ms; "
                f"first {first:.3g} ms, uncompiled {eager:.3g} ms"
            )


if __name__ == "__main__":
    main()
