"""What an option of `Autodiff` changes in derivatives: nothing but how they are made."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import adjoint as ad

KEEP = ad.Autodiff(ad.NumPy())
BALANCED = ad.Autodiff(ad.NumPy(), checkpointing="balanced")
STRONG = ad.Autodiff(ad.NumPy(), strong_zero=True)
Function = Callable[..., Any]


def weights(like: Any) -> Any:
    """Fixed numbers of all sizes and both signs."""
    values = np.cos(1.0 + np.arange(like.size)).reshape(like.shape)
    return (
        (values + 1j * np.sin(1.0 + np.arange(like.size)).reshape(like.shape)).astype(like.dtype, copy=False)
        if (like.dtype.kind == "c")
        else values.astype(like.dtype, copy=False)
    )


def pulled(f: Function, level: ad.Autodiff[Any]) -> Function:
    """The gradients of a weighed sum of f's floating results, taken on the level over the arguments' own backend."""

    def gradients(*tensors: Any) -> list[Any]:
        upper = level.over(tensors[0].device)
        leaves = [ad.from_inner(x, upper).require_grad() for x in tensors]
        with ad.use_device(upper):
            out = f(*leaves)
        total = [x * 0 for x in tensors]
        for result in out if isinstance(out, (tuple, list)) else (out,):
            if result.is_tracked():
                cotangent = ad.asarray(weights(result), device=upper.inner)
                for i, g in enumerate(map(result.backward(cotangent, retain_graph=True).get, leaves)):
                    total[i] = total[i] if g is None else total[i] + g
        return total

    return gradients


def derivatives(f: Function, values: Sequence[Any], level: ad.Autodiff[Any], order: int = 2) -> list[Any]:
    """Gradients; for order two those of the gradients as well, and how the gradients change along a direction."""
    points = [ad.asarray(x, device=level.inner) for x in values]
    once = pulled(f, level)
    found = [*once(*points)]
    if order > 1:
        found += pulled(once, level)(*points)
        found += ad.jvp(once, tuple(points), tuple(ad.asarray(weights(x), device=level.inner) for x in values))[1]
    return [x.numpy() for x in found]


def assert_equal_but_rounding(ours: Any, theirs: Any, label: str) -> None:
    size = np.max(np.abs(theirs), initial=0.0)
    np.testing.assert_allclose(ours, theirs, rtol=1e-11, atol=1e-13 + 1e-12 * size, err_msg=label)


def assert_same_under_options(
    f: Function, values: Sequence[Any], order: int = 2, levels: Sequence[ad.Autodiff[Any]] = (BALANCED, STRONG)
) -> None:
    """Balanced checkpointing and strong zeros give the same numbers, but for what rounding and BLAS make of them."""
    kept = derivatives(f, values, KEEP, order)
    for level in levels:
        for ours, theirs in zip(derivatives(f, values, level, order), kept, strict=True):
            assert_equal_but_rounding(ours, theirs, level.name)
