"""Array libraries as devices: their names, their arrays coming in and going out, and what is missing said kindly."""

from __future__ import annotations

import pickle
import sys
from typing import Any

import numpy as np
import pytest
from conftest import peer

import adjoint as ad
from adjoint import errors

# --- what is not there ---


@pytest.mark.parametrize(
    ("name", "module", "extra"),
    [("torch", "torch", "torch"), ("autodiff<torch:cpu>", "torch", "torch"), ("cupy:0", "cupy", "cupy")],
)
def test_a_library_that_is_missing_says_what_to_install(
    name: str, module: str, extra: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(errors.DeviceError, match=rf"pip install 'adjoint\[{extra}\]'"):
        ad.device(name)


def test_names_that_mean_no_device() -> None:
    for name in ("numpy:0", "autodiff:0<numpy>", "torch:", "torch<numpy>"):
        with pytest.raises(errors.DeviceError):
            ad.device(name)


# --- PyTorch ---


@pytest.fixture
def torch() -> Any:
    return peer("torch")


def test_names_of_torch(torch: Any) -> None:
    assert ad.device("torch") is ad.device("torch:cpu") is ad.Torch() is ad.Torch("cpu")
    assert ad.device("autodiff<torch:cpu>") is ad.Autodiff(ad.Torch())
    assert ad.device(ad.Torch().name) is ad.Torch()
    assert pickle.loads(pickle.dumps(ad.Torch())) is ad.Torch()
    for name in ("torch:nowhere", "torch:7", "torch:cuda:99"):
        with pytest.raises(errors.DeviceError, match="no device"):
            ad.device(name)


def test_tensors_of_torch_come_in_without_a_copy(torch: Any) -> None:
    values = torch.arange(4.0)
    x = ad.asarray(values, device="autodiff<torch>")
    values[0] = 5.0
    assert x.tolist() == [5.0, 1.0, 2.0, 3.0]
    for own in (ad.tensor(values, device="torch"), ad.asarray(values, device="torch", copy=True)):
        values[0] = 6.0
        assert own.tolist()[0] == 5.0
        values[0] = 5.0
    assert ad.asarray(values, dtype=ad.int64, device="torch").dtype == ad.int64


def test_tensors_that_torch_tracks(torch: Any) -> None:
    weight = torch.ones(2, requires_grad=True)
    assert ad.asarray(weight, device="torch").tolist() == [1.0, 1.0]  # a parameter is a value
    with pytest.raises(errors.TrackedError, match=r"detach\(\)"):
        ad.asarray(weight * 2, device="torch")


def test_torch_keeps_no_graph_of_its_own(torch: Any) -> None:
    x = ad.asarray(torch.ones(3, requires_grad=True), device="autodiff<torch>").require_grad()
    y = (ad.exp(x) * 2).sum()
    assert y.inner()._array.grad_fn is None
    np.testing.assert_allclose(y.backward()[x].numpy(), np.full(3, 2 * np.e), rtol=1e-6)


def test_numbers_from_a_seed_are_the_same_as_on_numpy(torch: Any) -> None:
    drawn = []
    for name in ("numpy", "torch"):
        ad.random.seed(3, device=name)
        drawn.append([ad.random.normal((3, 2), device=name).numpy(), ad.random.permutation(5, device=name).numpy()])
    for ours, theirs in zip(*drawn, strict=True):
        np.testing.assert_array_equal(ours, theirs)


def test_errors_are_typed_as_on_numpy(torch: Any) -> None:
    x = ad.ones((2, 3), device="autodiff<torch>")
    with pytest.raises(errors.ShapeError):
        x + ad.ones((4,), device="autodiff<torch>")
    with pytest.raises(errors.OutOfRangeError):
        x[5]
    with pytest.raises(errors.OutOfRangeError):
        ad.take(x, ad.tensor([7], device="autodiff<torch>"), axis=1)
    with pytest.raises(errors.SingularError):
        ad.linalg.inv(ad.zeros((2, 2), device="autodiff<torch>"))
    with pytest.raises(errors.DeviceError):
        x + ad.ones((2, 3), device="autodiff<numpy>").require_grad()
