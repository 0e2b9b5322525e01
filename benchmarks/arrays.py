"""Sorting, the largest elements and einsum: value and gradient of a weighted sum of what comes out."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import adjoint as ad
from benchmarks.cases import Case, Run, import_torch, jax_runs, normal

SIZE, BEST = 1_000_000, 1000
SUBSCRIPTS = "bij,bjk->bik"


def _weighted(
    ours_f: Callable[..., Any], torch_f: Callable[..., Any], jax_f: Callable[..., Any], *arrays: np.ndarray[Any, Any]
) -> dict[str, Callable[[], Run]]:
    """The gradient of sum(f(...) w), with a w that keeps cotangents apart."""
    (w0,) = normal(ours_f(*[ad.tensor(x) for x in arrays]).shape, seed=1)

    def ours() -> Run:
        leaves, w = [ad.tensor(x).require_grad() for x in arrays], ad.tensor(w0)
        return lambda: (ours_f(*leaves) * w).sum().backward()

    def torch() -> Run:
        t = import_torch()
        leaves, w = [t.tensor(x, requires_grad=True) for x in arrays], t.tensor(w0)

        def run() -> None:
            (torch_f(*leaves) * w).sum().backward()
            for x in leaves:
                x.grad = None

        return run

    return {"adjoint": ours, "PyTorch": torch, **jax_runs(lambda *xs: (jax_f(*xs) * w0).sum(), arrays)}


def _jax_topk(x: Any) -> Any:
    import jax

    return jax.lax.top_k(x, BEST)[0]


def _jax_sort(x: Any) -> Any:
    import jax.numpy as jnp

    return jnp.sort(x)


def _jax_einsum(x: Any, y: Any) -> Any:
    import jax.numpy as jnp

    return jnp.einsum(SUBSCRIPTS, x, y)


CASES = [
    Case(
        "sort of 1,000,000 elements",
        _weighted(ad.sort, lambda x: x.sort()[0], _jax_sort, *normal((SIZE,))),
        {"PyTorch": 1.3},
    ),
    Case(
        "topk of 1,000,000 elements, the largest 1,000",
        _weighted(lambda x: ad.topk(x, BEST)[0], lambda x: x.topk(BEST)[0], _jax_topk, *normal((SIZE,))),
        {"PyTorch": 1.3},
    ),
    Case(
        f'einsum "{SUBSCRIPTS}", 64x128x128',
        _weighted(
            lambda x, y: ad.einsum(SUBSCRIPTS, x, y),
            lambda x, y: import_torch().einsum(SUBSCRIPTS, x, y),
            _jax_einsum,
            *normal((64, 128, 128), (64, 128, 128)),
        ),
        {"PyTorch": 1.1},
    ),
]
