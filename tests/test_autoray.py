"""`adjoint.autoray`: autoray's functions on tensors have NumPy's values and spelling, and gradients."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import adjoint as ad
from adjoint import autoray as adapter

autoray = pytest.importorskip("autoray", reason="needs autoray: pip install autoray")
adapter.register()
do = autoray.do

_rng = np.random.default_rng(0)
X, Y = _rng.normal(size=(2, 3, 4))
SQUARE = X @ X.T + np.eye(3)

CALLS: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "names of NumPy's alone": (
        lambda x, y: do("concatenate", [do("transpose", x), do("transpose", y)], axis=1),
        (X, Y),
    ),
    "options of NumPy's": (lambda x: do("pad", x, ((1, 0), (0, 2)), "constant", constant_values=2.0), (X,)),
    "axis of lists": (lambda x, y: do("einsum", x, [0, 1], y, [2, 1], [0, 2]), (X, Y)),
    "reductions": (lambda x: do("std", x, axis=0, ddof=1), (X,)),
    "products": (lambda x, y: do("tensordot", x, y, axes=[[0, 1], [0, 1]]), (X, Y)),
    "complex": (lambda x, y: do("abs", do("complex", x, y)), (X, Y)),
    "linear algebra": (lambda a, x: do("linalg.solve", a, x), (SQUARE, X)),
    "SciPy's": (lambda a, x: do("scipy.linalg.solve_triangular", a, x, lower=True), (SQUARE, X)),
    "SciPy's exponential": (lambda a: do("scipy.linalg.expm", a), (SQUARE,)),
    "a thin decomposition": (lambda x: do("linalg.svd", x)[1], (X,)),
    "spectra": (lambda x: do("abs", do("fft.fft", x)), (X,)),
}


@pytest.mark.parametrize("name", CALLS)
def test_values_and_gradients(name: str) -> None:
    f, args = CALLS[name]
    out = f(*map(ad.asarray, args))
    assert isinstance(out, ad.Tensor)
    np.testing.assert_allclose(out.numpy(), f(*args), rtol=1e-12, atol=1e-12)
    ad.testing.check_grads(f, args, order=2)


@pytest.mark.parametrize("name", ["array", "asarray"])
def test_arrays_become_tensors(name: str) -> None:
    made = do(name, X, like="adjoint")
    assert isinstance(made, ad.Tensor)
    assert autoray.infer_backend(made) == "adjoint"
    assert isinstance(autoray.to_numpy(made), np.ndarray)
    np.testing.assert_array_equal(autoray.to_numpy(made), X)


def test_what_is_made_is_like_a_tensor() -> None:
    like = ad.zeros(2, dtype=ad.float64, device="reference")
    for name, args in {"zeros": ((2, 3),), "ones": (3,), "eye": (2,), "identity": (2,)}.items():
        made = do(name, *args, like=like)
        assert isinstance(made, ad.Tensor), name
        assert made.dtype == ad.float64, name
        np.testing.assert_array_equal(made.numpy(), getattr(np, name)(*args), err_msg=name)


def test_numbers_of_chance_take_numpys_arguments() -> None:
    ad.random.seed(3)
    low = do("random.uniform", 2.0, 3.0, size=(4, 5), like="adjoint")
    assert low.shape == (4, 5)
    assert ((low >= 2) & (low < 3)).all()
    assert do("random.normal", size=3, like="adjoint").shape == (3,)
    assert do("random.normal", 100.0, 0.01, like="adjoint").shape == ()
    first, second = (do("random.default_rng", seed, like="adjoint") for seed in (1, 1))
    drawn = first.normal(size=(2, 3))
    assert isinstance(drawn, ad.Tensor)
    assert drawn.dtype == ad.default_dtype()
    np.testing.assert_array_equal(drawn.numpy(), second.normal(size=(2, 3)).numpy())
    assert first.integers(0, 9, size=4).dtype == ad.int64


def test_devices() -> None:
    x = ad.asarray(X)
    assert autoray.to_device(x, None) is x
    assert autoray.to_device(x, "cpu") is x
    moved = autoray.to_device(x, "reference")
    assert moved.device is ad.Autodiff(ad.Reference())
    np.testing.assert_array_equal(autoray.to_device(moved, "cpu").numpy(), X)
    assert autoray.to_device(moved, "cpu").device is x.device


def test_without_autoray(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "autoray", None)
    with pytest.raises(ad.errors.MissingLibraryError, match="pip install autoray"):
        adapter.register()
