"""`adjoint.quimb`: a backend of quimb's optimizers, whose gradients and Hessian products are right."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import pytest

import adjoint as ad
from adjoint import quimb as adapter

qtn = pytest.importorskip("quimb.tensor", reason="needs quimb: pip install quimb")
adapter.register()


def optimizer(dtype: str, **options: Any) -> Any:
    """Of a product state that comes near another state."""
    state = qtn.MPS_rand_state(4, 2, dtype=dtype, seed=1)
    target = qtn.MPS_rand_state(4, 2, dtype=dtype, seed=2)
    return qtn.TNOptimizer(
        state,
        lambda state, target: -(abs((state.H & target).contract()) ** 2),
        norm_fn=lambda state: state / (state.H & state).contract() ** 0.5,
        loss_constants={"target": target},
        autodiff_backend="adjoint",
        progbar=False,
        **options,
    )


@pytest.mark.parametrize("jit_fn", [False, True])
@pytest.mark.parametrize("dtype", ["float64", "complex128"])
def test_gradients_are_those_of_differences(dtype: str, jit_fn: bool) -> None:
    ours = optimizer(dtype, jit_fn=jit_fn)
    at = ours.vectorizer.vector.copy()
    value, slope = ours.vectorized_value_and_grad(at)
    slope = slope.copy()
    assert value == pytest.approx(ours.vectorized_value(at))
    direction = np.random.default_rng(0).normal(size=at.size)
    step = 1e-6
    difference = (
        (ours.vectorized_value(at + step * direction) - ours.vectorized_value(at - step * direction)) / 2 / step
    )
    assert slope @ direction == pytest.approx(difference, rel=1e-6)

    product = ours.vectorized_hessp(at, direction).copy()
    above = ours.vectorized_value_and_grad(at + step * direction)[1].copy()
    below = ours.vectorized_value_and_grad(at - step * direction)[1].copy()
    np.testing.assert_allclose(product, (above - below) / 2 / step, rtol=1e-5, atol=1e-8)


@pytest.mark.parametrize("device", [None, "cpu", "reference"])
def test_a_state_is_found(device: str | None) -> None:
    ours = optimizer("complex128", device=device)
    ours.optimize(60)
    assert ours.loss == pytest.approx(-(qtn.MPS_rand_state(4, 2, dtype="complex128", seed=2).norm() ** 2), abs=1e-3)


def test_without_quimb(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "quimb.tensor.optimize", None)
    with pytest.raises(ad.errors.MissingLibraryError, match="pip install quimb"):
        adapter.register()
