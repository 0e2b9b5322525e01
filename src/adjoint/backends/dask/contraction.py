"""Sums of products over chunks."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from adjoint.backend import Array
from adjoint.backends.dask.blocks import spec_of
from adjoint.backends.dask.tasks import Stacked
from adjoint.primitives import TABLE, result_spec

if TYPE_CHECKING:
    from adjoint.backends.dask import Dask


def _conv_weight(B: Dask, x: Array, g: Array, **how: Any) -> Array:
    """A sum over examples, of each chunk of them and then of the chunks."""
    spec = result_spec(TABLE["conv_weight"], [spec_of(x), spec_of(g)], how)
    n = x.ndim
    g = B.beside(g, (0, *[None] * (n - 1)), {0: x.chunks[0]})
    x, g = (a.rechunk(dict.fromkeys(range(1, n), -1)) for a in (x, g))
    pairs = [(x, tuple(range(n))), (g, (0, *range(n, 2 * n - 1)))]
    named = tuple(range(2 * n, 3 * n))
    new = dict(zip(named, spec.shape, strict=True))
    task = Stacked(TABLE["conv_weight"], how)
    parts = B.blockwise(task, (0, *named), pairs, spec.dtype, new_axes=new, terms=(0,))
    return B.sum(parts, axis=(0,), keepdims=False)


def _matmul(B: Dask, x: Array, y: Array) -> Array:
    result_spec(TABLE["matmul"], [spec_of(x), spec_of(y)], {})
    shared = {0: y.chunks[-2]} if not hasattr(y, "spread_of") else {}
    x = B.beside(x, (*[-1] * (x.ndim - 1), 0), shared)
    y = B.beside(y, (*[-1] * (y.ndim - 2), 0, -1), {0: x.chunks[-1]})
    out = B.da.matmul(x, y)
    return out if out.dtype == x.dtype else out.astype(x.dtype)  # Dask adds up short integers in long ones


IMPLEMENTATIONS: dict[str, Callable[..., Any]] = {
    "matmul": _matmul,
    "conv_weight": _conv_weight,
}
