"""`ad.train.Learner` and `ad.train.data_parallel` on other devices, and on several at once."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from conftest import peer
from training import X, Y, close, learner, network, pairs

import adjoint as ad
from adjoint import errors


def test_several_devices_are_one() -> None:
    x, y = X.astype("float64"), Y.astype("float64")
    devices = [ad.Profiled(ad.NumPy()) for _ in range(3)]
    found, history = learner(network("float64"), devices=devices).fit(pairs(8, x, y), epochs=3)
    wanted, expected = learner(network("float64")).fit(pairs(8, x, y), epochs=3)
    close(found, wanted, 1e-10)
    np.testing.assert_allclose(history["loss"], expected["loss"], rtol=1e-12)
    assert all("tanh" in str(device.profile()) for device in devices)  # each has worked
    assert found.layers[0].weight.device is wanted.layers[0].weight.device


@pytest.mark.peers
def test_devices_of_several_libraries() -> None:
    peer("torch")
    loss = lambda model, batch: ad.nn.mse_loss(model(batch["x"]), batch["y"])
    model = network("float64")
    batch = {"x": X.astype("float64"), "y": Y.astype("float64"), "name": "a", "scale": np.array(2.0)}
    value, grads = ad.train.data_parallel(loss, ["numpy", "torch", "reference"])(model, batch)
    wanted, slopes = ad.value_and_grad(loss)(model, {k: batch[k] for k in "xy"})
    assert value.item() == pytest.approx(wanted.item(), rel=1e-12)
    for path, g in grads.items():
        np.testing.assert_allclose(g.numpy(), slopes.at(path).get().numpy(), rtol=1e-10)
        assert g.device is ad.NumPy()


@pytest.mark.parametrize(
    "device",
    [
        "reference",
        "checked<numpy>",
        pytest.param("torch", marks=pytest.mark.peers),
        pytest.param("jax", marks=[pytest.mark.peers, pytest.mark.slow]),
        pytest.param("dask", marks=[pytest.mark.peers, pytest.mark.slow]),
    ],
)
def test_models_on_other_devices(device: str, tmp_path: Any) -> None:
    if (library := device.partition("<")[0]) in ("torch", "jax", "dask"):
        peer(library)
    wanted, history = learner(clip=1.0).fit(pairs()[:3], pairs()[:1], epochs=2)
    for epochs in (1, 2):  # the second goes on from a file
        model = network().to_device(device)
        found, others = learner(model, clip=1.0).fit(pairs()[:3], pairs()[:1], epochs, checkpoints=tmp_path)
    close(found, wanted, 1e-4)
    np.testing.assert_allclose(others["valid_loss"], history["valid_loss"], rtol=1e-4)
    assert found.layers[0].weight.device is model.layers[0].weight.device


@pytest.mark.parametrize("devices", [["reference"], ["reference", "reference"]])
def test_gradients_come_to_where_the_model_is(devices: list[str]) -> None:
    model = ad.nn.Linear(3, 1).to_device(ad.NumPy())
    f = lambda model, batch: ad.nn.mse_loss(model(batch[0]), batch[1])
    value, grads = ad.train.data_parallel(f, devices)(model, (X[:4], Y[:4]))
    assert {value.device, *[g.device for g in grads.values()]} == {ad.NumPy()}


def test_parts_of_a_batch() -> None:
    loss = lambda model, batch: (ad.nn.mse_loss(model(batch[0]), batch[1]), len(batch[0]))
    value, _ = ad.train.data_parallel(loss, ["numpy"] * 4, has_aux=True)(network(), (X[:3], Y[:3]))
    assert value[1] == [1, 1, 1]  # none is empty
    with pytest.raises(errors.ArgumentError, match=r"arrays of lengths \[3, 4\]"):
        ad.train.data_parallel(loss, ["numpy"] * 2, has_aux=True)(network(), (X[:3], Y[:4]))
    with pytest.raises(errors.ArgumentError, match=r"devices are a sequence .* received \[\]"):
        ad.train.data_parallel(loss, [])
    with pytest.raises(errors.DeviceError):
        ad.train.data_parallel(loss, ["abacus"])
    noise = lambda model, batch: (model(batch[0]) * ad.random.normal(batch[1].shape)).sum()
    run = ad.train.data_parallel(noise, ["numpy"] * 2)
    losses = []
    for _ in range(3):
        ad.random.seed(5)
        losses.append(run(network(), (X[:8], Y[:8]))[0].item())
    assert losses[0] == losses[1] == losses[2]
