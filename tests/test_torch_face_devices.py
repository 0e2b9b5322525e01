"""Devices of `adjoint.torch`: the same programs on every leaf, and what PyTorch says of devices."""

from __future__ import annotations

import copy
import io
import warnings
from typing import Any

import numpy as np
import pytest
import torch_models
from each import Each
from torch_programs import TOLERATED, difference, program

import adjoint as ad
import adjoint.torch as torch
from adjoint.torch import devices

AWAY = "reference"  # what needs no other library


@pytest.fixture
def gpu(monkeypatch: pytest.MonkeyPatch) -> Any:
    """A machine on which "cuda:0" is there: another leaf stands for the GPU's."""
    monkeypatch.setattr(devices, "_on_gpu", lambda index: ad.ArrayAPI(pytest.importorskip("array_api_strict")))
    monkeypatch.setattr(devices, "in_use", {})
    monkeypatch.setattr(devices, "_KINDS", {})


@pytest.fixture
def enable_x64(device: str) -> Any:
    """Double precision on JAX."""
    if device != "jax":
        yield
        return
    jax = pytest.importorskip("jax")
    with jax.enable_x64(True):
        yield


# --- what a device is -----------------------------------------------------------------------------------


def test_devices_have_types_and_numbers() -> None:
    assert repr(torch.device("cuda:1")) == "device(type='cuda', index=1)"
    assert torch.device("cuda", 1) == torch.device("cuda:1") == torch.device(1)
    assert torch.device("cpu") != torch.device("jax")
    assert str(torch.device("jax")) == "jax"
    assert copy.deepcopy(torch.device(AWAY)) == torch.device(AWAY)
    for wrong, error, phrase in (
        ("nowhere", RuntimeError, "Expected one of cpu, cuda"),
        ("autodiff<numpy>", RuntimeError, "without decorators"),
        ("mps", RuntimeError, "no device 'mps'"),
        (1.5, TypeError, "must be str"),
    ):
        with pytest.raises(error, match=phrase):
            torch.device(wrong)
    with pytest.raises(RuntimeError, match="index was passed"):
        torch.device("cuda:1", 0)


@pytest.mark.slow
def test_tensors_are_made_on_devices_and_stay_there() -> None:
    x = torch.tensor([[1.0, 2.0], [3.0, 4.0]], device=AWAY)
    made = [
        x, x + 1, x @ x, x.sum(), x[0], x.T, x.to(torch.float64), x.clone(), x.detach(), x.argmax(0), x.sort(1).values,
        torch.zeros_like(x), x.new_ones(2), torch.rand_like(x), x > 2, x.nonzero(), x.long(), torch.stack([x, x]),
        *[getattr(torch, name)(2, device=AWAY) for name in "zeros ones empty rand randn eye arange".split()],
        torch.full((2,), 3.0, device=AWAY), torch.linspace(0, 1, 3, device=AWAY), torch.randperm(3, device=AWAY),
        torch.as_tensor([1, 2], device=AWAY), torch.Tensor(2).to(AWAY), torch.where(x > 2, x, 0.0), x.unique(),
    ]  # fmt: skip
    assert {str(y.device) for y in made} == {AWAY}
    assert not x.is_cpu
    assert not x.is_cuda
    assert x.cpu().is_cpu
    assert x.to("cpu").tolist() == [[1.0, 2.0], [3.0, 4.0]]
    assert x.to(AWAY) is x
    assert (x.get_device(), x.cpu().get_device()) == (-1, -1)
    assert repr(x[0]) == f"tensor([1., 2.], device='{AWAY}')"
    assert repr(x.double().requires_grad_()).endswith(f"device='{AWAY}', dtype=torch.float64, requires_grad=True)")
    assert x.item.__self__[1, 1].item() == 4.0


def test_a_default_device_is_that_of_new_tensors_alone() -> None:
    here = torch.ones(2)
    with torch.device(AWAY):
        assert str(torch.zeros(2).device) == str(torch.tensor([1]).device) == str(torch.get_default_device()) == AWAY
        assert torch.zeros(2, device="cpu").is_cpu
        assert torch.zeros_like(here).is_cpu
        with torch.device("cpu"):
            assert torch.zeros(2).is_cpu
    torch.set_default_device(AWAY)
    try:
        assert not torch.nn.Linear(2, 3).weight.is_cpu
    finally:
        torch.set_default_device(None)
    assert torch.zeros(2).is_cpu


@pytest.mark.slow
def test_operands_of_two_devices_are_refused_as_in_pytorch() -> None:
    x, y = torch.ones(2, device=AWAY), torch.ones(2)
    two = f"same device, but found at least two devices, ({AWAY} and cpu|cpu and {AWAY})"
    for run in (
        lambda: x + y, lambda: y * x, lambda: torch.cat([x, y]), lambda: x @ y, lambda: x.add_(y), lambda: x == y,
        lambda: torch.equal(x, y), lambda: torch.where(x > 0, x, y), lambda: torch.nn.functional.mse_loss(x, y),
        lambda: y.mul_(x), lambda: torch.dot(y, x),
    ):  # fmt: skip
        with pytest.raises(RuntimeError, match=two):
            run()
    with pytest.raises(RuntimeError, match="indices should be either on cpu"):
        y[torch.tensor([0], device=AWAY)]
    assert x[torch.tensor([0])].tolist() == [1.0]
    assert (x + torch.tensor(2.0)).tolist() == [3.0, 3.0]  # a number of the CPU goes anywhere
    with pytest.raises(TypeError, match="Use Tensor.cpu"):
        x.numpy()
    with pytest.raises(TypeError, match="Use Tensor.cpu"):
        np.asarray(x)
    assert x.numpy(force=True).tolist() == [1.0, 1.0]
    leaf = torch.ones(2, requires_grad=True)
    with pytest.raises(RuntimeError, match="on the same device"):
        leaf.grad = x


def test_gradients_go_from_device_to_device() -> None:
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    y = x.to(AWAY)
    assert y.grad_fn.name() == "ToCopyBackward0"
    z = (y**3).sum().cpu() * x.sum()
    (first,) = torch.autograd.grad(z, x, create_graph=True)
    assert first.tolist() == [18.0, 45.0]  # 3 x^2 (x0 + x1) + x0^3 + x1^3
    second = torch.autograd.grad(first.sum(), x, retain_graph=True)[0]
    assert second.tolist() == [39.0, 75.0]  # 6 x (x0 + x1) + 3 (x0^2 + x1^2) + 6 x^2
    z.backward()
    assert x.grad.is_cpu
    assert x.grad.tolist() == [18.0, 45.0]
    w = torch.tensor([1.0, 2.0], device=AWAY, requires_grad=True)
    (w * x.detach().to(AWAY)).sum().backward()
    assert repr(w.grad) == f"tensor([1., 2.], device='{AWAY}')"
    total = (w * 2).sum().cpu()
    total.backward(retain_graph=True)
    total.backward()
    assert w.grad.tolist() == [5.0, 6.0]


def test_views_and_copies_between_devices_share_nothing() -> None:
    x = torch.ones(3)
    y = x.to(AWAY)
    x[0] = 5.0
    y[1:].mul_(2.0)
    assert (x.tolist(), y.tolist()) == ([5.0, 1.0, 1.0], [1.0, 2.0, 2.0])
    x.copy_(y)
    y.copy_(x * 2)
    assert (x.is_cpu, y.is_cpu) == (True, False)
    assert (x.tolist(), y.tolist()) == ([1.0, 2.0, 2.0], [2.0, 4.0, 4.0])
    base = torch.arange(6.0, device=AWAY).reshape(2, 3)
    assert (base.T.stride(), base.T.is_contiguous(), base.T[1].storage_offset()) == ((1, 3), False, 1)
    base.T.diagonal().fill_(9.0)
    assert base.tolist() == [[9.0, 1.0, 2.0], [3.0, 9.0, 5.0]]


@pytest.mark.slow
def test_modules_and_optimizers_move() -> None:
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.BatchNorm1d(3))
    first = model[0].weight
    optimizer = torch.optim.Adam(model.to(AWAY).parameters(), lr=0.1)
    assert model[0].weight is first
    assert {str(x.device) for x in (*model.parameters(), *model.buffers())} == {AWAY}
    x = torch.randn(4, 2, device=AWAY)
    for _ in range(2):
        optimizer.zero_grad()
        model(x).square().sum().backward()
        optimizer.step()
    assert {str(s["exp_avg"].device) for s in optimizer.state.values()} == {AWAY}
    state = copy.deepcopy(optimizer.state_dict())
    other = torch.optim.Adam(copy.deepcopy(model).cpu().parameters(), lr=0.1)
    other.load_state_dict(state)
    assert all(s["exp_avg"].is_cpu for s in other.state.values())
    assert model.cpu()[0].weight.is_cpu
    lazy = torch.nn.LazyLinear(3, device=AWAY)
    assert str(lazy(x).device) == AWAY


def test_files_say_where_tensors_were() -> None:
    file = io.BytesIO()
    x = torch.arange(4.0, device=AWAY)
    torch.save({"x": x, "part": x[1:], "w": torch.nn.Parameter(x)}, file)
    read = lambda where=None: torch.load(io.BytesIO(file.getvalue()), map_location=where)
    found = read()
    found["part"][0] = 7.0
    assert repr(found["x"]) == f"tensor([0., 7., 2., 3.], device='{AWAY}')"
    assert found["w"].requires_grad
    for where in ("cpu", torch.device("cpu"), {AWAY: "cpu"}, lambda storage, location: storage):
        assert read(where)["x"].is_cpu
    assert not read(lambda storage, location: None)["x"].is_cpu
    again = copy.deepcopy(x.requires_grad_())
    assert (again.requires_grad, str(again.device)) == (True, AWAY)


def test_hooks_functions_and_dual_numbers_on_devices() -> None:
    from adjoint.torch.autograd import forward_ad

    class Double(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return 2 * ctx.saved_tensors[0] * g

    x = torch.tensor([1.0, 3.0], device=AWAY, requires_grad=True)
    seen: list[Any] = []
    y = Double.apply(x)
    y.register_hook(seen.append)
    (first,) = torch.autograd.grad((y * y).sum(), x, create_graph=True)
    assert first.tolist() == [4.0, 108.0]
    assert str(seen[0].device) == AWAY
    assert torch.autograd.grad(first.sum(), x)[0].tolist() == [12.0, 108.0]
    assert torch.autograd.grad((x * 2), x, torch.eye(2, device=AWAY), is_grads_batched=True)[0].tolist() == [
        [2.0, 0.0], [0.0, 2.0],
    ]  # fmt: skip
    with forward_ad.dual_level():
        dual = forward_ad.make_dual(x.detach(), torch.ones(2, device=AWAY))
        assert repr(forward_ad.unpack_dual(dual**2).tangent) == f"tensor([2., 6.], device='{AWAY}')"
    slopes = torch.func.vmap(torch.func.grad(lambda a: a**3))(x.detach())
    assert repr(slopes) == f"tensor([ 3., 27.], device='{AWAY}')"
    with torch.autograd.graph.save_on_cpu():
        z = x.exp()
    z.sum().backward()
    assert torch.allclose(x.grad, z.detach())
    out = (x * 1.0).exp()
    out.mul_(2.0)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        out.sum().backward()


@pytest.mark.slow
def test_cuda_is_a_library_on_a_gpu(gpu: Any) -> None:
    x = torch.ones(2, device="cuda")
    assert repr(x) == "tensor([1., 1.], device='cuda:0')"
    assert x.is_cuda
    assert (x.get_device(), x.device.index) == (0, 0)
    assert torch.ones(2).cuda().device == x.device == torch.device("cuda:0")
    assert x.cuda() is x
    assert torch.nn.Linear(2, 2).cuda().weight.is_cuda


def test_without_a_gpu_cuda_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    def absent(name: str) -> Any:
        raise ad.errors.DeviceError(f"no {name}")

    monkeypatch.setattr(devices.devices, "device", absent)
    monkeypatch.setattr(devices, "in_use", {})
    for run in (lambda: torch.ones(2, device="cuda"), lambda: torch.ones(2).cuda(), lambda: torch.nn.ReLU().cuda()):
        with pytest.raises(RuntimeError, match="No CUDA GPUs are available to device 'cuda:0': no cupy:0; no torch"):
            run()
    torch.device("cuda")  # which names one
    assert torch.cuda.device_count() >= int(torch.cuda.is_available())


def test_random_numbers_of_a_seed_are_the_same_on_all_devices() -> None:
    drawn = []
    for device in ("cpu", AWAY):
        torch.manual_seed(3)
        x = torch.randn(3, device=device)
        dropped = torch.nn.functional.dropout(torch.ones(4, device=device))
        drawn.append([x.tolist(), x.normal_().tolist(), dropped.tolist()])
    assert drawn[0] == drawn[1]
    generator = torch.Generator(device=AWAY).manual_seed(1)
    assert str(generator.device) == AWAY
    assert torch.rand(2, generator=generator, device=AWAY).shape == (2,)


# --- the same programs on every leaf --------------------------------------------------------------------

# Results of other leaves lie in their own order, so that `view` of them, and what `reshape` shares, may differ
OTHERS = {"torch": 500, "array_api_strict": 250, "reference": 250, "dask": 12, "jax": 4}


def _compared(device: str, seeds: Any) -> int:
    theirs = pytest.importorskip("torch")
    same = 0
    with Each() as each, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for seed in seeds:
            with each(seed):
                differs = difference(program(theirs, seed), program(torch, seed, device))
                same += differs is None
                assert differs is None or differs in TOLERATED, differs
    return same


@pytest.mark.peers
def test_random_programs_of_views_and_writes_on_another_device() -> None:
    assert _compared(AWAY, range(6)) == 6


@pytest.mark.slow
@pytest.mark.peers
@pytest.mark.parametrize("device", OTHERS)
def test_random_programs_of_views_and_writes_on_every_leaf(device: str, enable_x64: Any) -> None:
    count = OTHERS[device]
    assert _compared(device, range(10_000, 10_000 + count)) >= 0.9 * count


MODELS = {
    "torch": torch_models.ALL,
    "array_api_strict": ["mlp", "cnn", "gan", "vae", "gpt", "super_resolution", "style"],
    "dask": ["vae"],
    "jax": ["reinforce"],
}


@pytest.mark.slow
@pytest.mark.peers
@pytest.mark.parametrize("device", MODELS)
def test_models_of_examples_train_on_every_leaf(device: str, enable_x64: Any) -> None:
    theirs = pytest.importorskip("torch")
    with Each() as each, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name in MODELS[device]:
            with each(name):
                assert torch_models.printed(name, torch, device) == torch_models.printed(name, theirs)


def test_lists_that_are_deep_or_contain_themselves_are_refused_beside_devices(gpu: None) -> None:
    x = torch.ones(3, device="cuda")
    deep: Any = 1.0
    for _ in range(2000):
        deep = [deep]
    itself: list[Any] = []
    itself.append(itself)
    for value in (deep, itself):
        with pytest.raises(ValueError, match="too many dimensions, or a list that contains itself"):
            torch.nn.functional.hardshrink(x, lambd=value)
