"""Sorting on the NumPy leaf: its stable orders are NumPy's, for all dtypes, ties, nans and signed zeros."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from conftest import peer

import adjoint as ad
from adjoint.backends.numpy import NumPy
from adjoint.primitives import ARRAY

SHAPES: list[tuple[tuple[int, ...], int]] = [
    ((3000,), 0),
    ((40, 50), 0),
    ((40, 50), 1),
    ((3, 300, 4), 1),
    ((0, 2000), 1),
]


def values(dtype: str, shape: tuple[int, ...], spread: int) -> Any:
    rng = np.random.default_rng(spread)
    if dtype == "uint32":
        return rng.integers(0, 2**32, shape, dtype=np.uint32)
    x = rng.integers(-spread, spread, shape)
    if not dtype.startswith("float"):
        return x.astype(dtype)
    x = np.asarray(x / 7)
    for special in (np.nan, -np.nan, -0.0, 0.0, np.inf, -np.inf):
        x = np.where(rng.uniform(size=shape) < 0.05, special, x)
    return x.astype(dtype)


@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.parametrize("spread", [5000, 40, 2])
@pytest.mark.parametrize(("shape", "axis"), SHAPES)
@pytest.mark.parametrize("dtype", "float16 float32 float64 int8 uint8 int16 int32 uint32 int64 bool".split())
def test_orders_are_stable(dtype: str, shape: tuple[int, ...], axis: int, spread: int, descending: bool) -> None:
    x = values(dtype, shape, spread)
    if descending:
        backwards = np.argsort(np.flip(x, axis=axis), axis=axis, kind="stable")
        expected = np.flip(shape[axis] - 1 - backwards, axis=axis)
    else:
        expected = np.argsort(x, axis=axis, kind="stable")
    B: Any = NumPy()
    order = B.argsort(x, axis=axis, descending=descending)
    assert order.dtype == np.int64
    np.testing.assert_array_equal(order, expected)
    best, places = B.topk(x, k=shape[axis], axis=axis, largest=descending)
    np.testing.assert_array_equal(places, expected)
    np.testing.assert_array_equal(best, B.sort(x, axis=axis, descending=descending))


@pytest.mark.parametrize("key", ["one axis", "two axes", "rows", "rows of a matrix"])
def test_many_additions_at_places(key: str) -> None:
    """More than a thousand elements, of which many are named more than once."""
    rng = np.random.default_rng(0)
    shape, arrays = {
        "one axis": ((500,), [(3000,)]),
        "two axes": ((30, 40), [(60, 1), (1, 50)]),
        "rows": ((20, 5, 6), [(90,)]),
        "rows of a matrix": ((20, 5, 6), [(90, 2), (2,)]),
    }[key]
    x = rng.standard_normal(shape)
    places = tuple(rng.integers(0, n, s) for n, s in zip(shape, arrays, strict=False))
    value = rng.standard_normal(x[places].shape)
    expected = x.copy()
    np.add.at(expected, places, value)
    B: Any = NumPy()
    np.testing.assert_allclose(B.index_add(x, value, *places, key=(ARRAY,) * len(places)), expected, rtol=1e-12)
    backwards = tuple(p - n for p, n in zip(places, shape, strict=False))
    np.testing.assert_allclose(B.index_add(x, value, *backwards, key=(ARRAY,) * len(places)), expected, rtol=1e-12)


@pytest.mark.peers
@pytest.mark.parametrize("descending", [False, True])
def test_the_gradient_of_sort_is_torchs(descending: bool) -> None:
    torch = peer("torch")
    x = np.random.default_rng(0).integers(-300, 300, (2000,)) / 7
    w = np.random.default_rng(1).standard_normal(2000)
    leaf = ad.tensor(x).require_grad()
    ours = (ad.sort(leaf, descending=descending) * w).sum().backward()[leaf].numpy()
    t = torch.tensor(x, requires_grad=True)
    (torch.sort(t, descending=descending, stable=True)[0] * torch.tensor(w)).sum().backward()
    np.testing.assert_allclose(ours, t.grad.numpy(), rtol=1e-12)
