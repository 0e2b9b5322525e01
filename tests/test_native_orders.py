"""What is computed of transposed arrays lies as they do: loops go through memory from front to back."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from test_native import native as native
from test_native import same

import adjoint as ad

pytest.importorskip("llvmlite")

FOLLOWED = {  # of an array of shape (5, 6, 7): results whose axes lie as those of the turned operand
    "number": lambda x: ad.permute_dims(x, (2, 0, 1)) * 2.5,
    "itself": lambda x: ad.sqrt(ad.permute_dims(x, (1, 0, 2))) * ad.permute_dims(x, (1, 0, 2)),
    "row": lambda x: ad.permute_dims(x, (2, 1, 0)) + x[:, 0, 0],
    "column": lambda x: ad.permute_dims(x, (0, 2, 1)) * ad.expand_dims(x[:, :, 0], axis=1),
    "largest": lambda x: (t := ad.permute_dims(x, (2, 0, 1))) - ad.max(t, axis=0, keepdims=True),
}
OTHER = {  # ... and what lies as its axes follow
    "there and back": lambda x: ad.permute_dims(ad.permute_dims(x, (2, 0, 1)) + 1, (1, 2, 0)) * x,
    "both": lambda x: (ad.permute_dims(x, (2, 1, 0)) + 1) + ad.reshape(x, (7, 6, 5)),
    "reshaped": lambda x: ad.reshape(ad.permute_dims(x, (2, 1, 0)) + 1, (-1,)),
    "sum": lambda x: ad.sum(ad.permute_dims(x, (2, 0, 1)), axis=1),
    "sums that stay": lambda x: (
        x - ad.permute_dims(ad.sum(ad.permute_dims(x, (2, 1, 0)), axis=1, keepdims=True), (2, 1, 0))
    ),
    "two orders": lambda x: ad.sum(ad.permute_dims(x, (2, 1, 0)), axis=2) * x[0].T,
    "product": lambda x: (x[0].T + 1) @ x[0],
    "loop": lambda x: ad.fori_loop(0, 3, lambda i, c: ad.permute_dims(c, (1, 0)) * 0.5, x[0, :, :6]),
}


def lies_in_order(x: Any) -> bool:
    return bool(np.asarray(x).flags.c_contiguous)


def test_results_follow_a_transposed_operand() -> None:
    x = np.random.default_rng(0).integers(1, 9, (5, 6, 7)).astype(float)  # whose sums are exact
    functions = {**FOLLOWED, **OTHER}
    f = lambda x: [run(x) for run in functions.values()]
    found = ad.compile(f)(x)
    same([*map(ad.asarray, found)], f(ad.asarray(x)))
    assert [lies_in_order(y) for y in found] == [name in OTHER for name in functions]


@pytest.mark.parametrize(("f", "kernels"), [(lambda x: x.T + 1 + x, 1), (lambda x: (ad.exp(x.T) * 2).sum(1), 1)])
def test_no_array_is_written_for_the_order_alone(f: Any, kernels: int) -> None:
    x = np.random.default_rng(0).normal(size=(30, 30))
    assert len(ad.compile(f).lower(x).kernels) == kernels


def test_gradients_of_transposes() -> None:
    x = np.random.default_rng(0).normal(size=(20, 30))
    f = ad.grad(lambda x: (ad.tanh(x.T) ** 2 * x.T).sum())
    np.testing.assert_allclose(ad.compile(f)(x), (t := np.tanh(x)) ** 2 + 2 * t * (1 - t * t) * x, rtol=1e-12)


@pytest.mark.parametrize("dtype", ["complex64", "complex128", "float16", "bool", "uint8"])
def test_numbers_meet_transposes_of_every_dtype(dtype: str) -> None:
    x = np.arange(6).reshape(2, 3).astype(dtype)
    for f in (lambda x: x.T + 1, lambda x: x.T * 2, lambda x: ad.where(x.T == 0, x.T, 3), lambda x: x[:0].T + 1):
        expected, found = f(ad.asarray(x)).numpy(), ad.compile(f)(x)
        assert found.dtype == expected.dtype
        np.testing.assert_array_equal(found, expected)
