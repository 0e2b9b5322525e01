"""Which backend tensors are made on, backends by name, and backends as values."""

from __future__ import annotations

import contextvars
import os
import pickle
import sys
import threading
from collections.abc import Iterator
from copy import copy, deepcopy
from typing import Any

import numpy as np
import processes
import pytest
from conftest import LIMIT, joined

import adjoint as ad
from adjoint import errors


@pytest.fixture
def fresh_process() -> Iterator[None]:
    """The process's default is put back after the test."""
    before = ad.default_device()
    yield
    ad.set_default_device(before)


def test_the_default_is_autodiff_over_numpy() -> None:
    assert ad.default_device() is ad.Autodiff(ad.NumPy())
    assert ad.tensor([1.0]).device is ad.Autodiff(ad.NumPy())


def test_with_use_device_is_of_this_context_alone(fresh_process: None) -> None:
    before = ad.default_device()
    seen = []
    with ad.use_device("numpy") as device:
        assert device is ad.NumPy()
        assert ad.default_device() is ad.NumPy()
        with ad.use_device(ad.Reference()):
            assert ad.zeros(2).device is ad.Reference()
        assert ad.zeros(2).device is ad.NumPy()
        thread = threading.Thread(target=lambda: seen.append(ad.default_device()))
        thread.start()
        joined(thread)
    assert ad.default_device() is before
    assert seen == [before]


def test_the_default_of_the_process_is_seen_by_every_thread(fresh_process: None) -> None:
    wanted, seen = threading.Event(), []

    def look() -> None:
        assert wanted.wait(LIMIT)
        seen.append(ad.zeros(1).device)

    earlier = threading.Thread(target=look)
    earlier.start()
    ad.set_default_device("numpy")
    assert ad.default_device() is ad.NumPy()
    wanted.set()
    later = threading.Thread(target=look)
    later.start()
    joined(earlier)
    joined(later)
    assert seen == [ad.NumPy(), ad.NumPy()]
    with ad.use_device("reference"):
        assert ad.default_device() is ad.Reference()
        ad.set_default_device(ad.Autodiff(ad.Reference()))
        assert ad.default_device() is ad.Reference()
    assert ad.default_device() is ad.Autodiff(ad.Reference())


def test_threads_that_set_the_default_leave_one_of_theirs(fresh_process: None) -> None:
    names = ["numpy", "reference", "autodiff[strong_zero]<numpy>", "autodiff<reference>"]

    def work(name: str) -> None:
        for _ in range(300):
            ad.set_default_device(name)
            assert ad.default_device().name in names

    threads = [threading.Thread(target=work, args=(name,)) for name in names]
    for thread in threads:
        thread.start()
    for thread in threads:
        joined(thread)
    assert ad.default_device().name in names


def test_a_level_is_no_default_of_the_process() -> None:
    before = ad.default_device()

    def f(x: ad.Tensor[ad.Backend]) -> ad.Tensor[ad.Backend]:
        for level in (x.device, ad.Autodiff(x.device)):
            with pytest.raises(errors.DeviceError, match="use_device"):
                ad.set_default_device(level)
        with ad.use_device(ad.Autodiff(x.device)) as level:
            assert ad.zeros(1).device is level
        return x * 2

    ad.grad(f)(1.0)
    assert ad.default_device() is before


def test_use_device_without_with_says_that_it_changed_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    before, seen = ad.default_device(), []
    monkeypatch.setattr(sys, "unraisablehook", lambda what: seen.append(what.exc_value))
    ad.use_device("numpy")
    assert ad.default_device() is before
    (error,) = seen
    assert isinstance(error, errors.DeviceError)
    assert "ad.set_default_device('numpy')" in str(error)
    assert "test_devices.py" in str(error)  # where
    assert 'ad.use_device("numpy")' in str(error)
    with ad.use_device("numpy"):
        pass
    with pytest.raises(errors.DeviceError):
        ad.use_device("nothing")
    assert len(seen) == 1


def test_a_use_device_object_can_be_used_again(fresh_process: None) -> None:
    before = ad.default_device()
    reference = ad.use_device("reference")
    with reference:
        assert ad.default_device() is ad.Reference()
        with reference:
            assert ad.default_device() is ad.Reference()
        assert ad.default_device() is ad.Reference()
    assert ad.default_device() is before
    assert repr(reference) == "use_device('reference')"


def test_threads_that_enter_and_leave_do_not_change_the_process(fresh_process: None) -> None:
    before = ad.default_device()

    def work(name: str) -> None:
        for _ in range(300):
            with ad.use_device(name):
                assert ad.default_device() is ad.device(name)

    names = ["numpy", "reference", "autodiff[strong_zero]<numpy>", "autodiff<reference>"]
    threads = [threading.Thread(target=work, args=(name,)) for name in names]
    for thread in threads:
        thread.start()
    for thread in threads:
        joined(thread)
    assert ad.default_device() is before


def test_contexts_are_independent() -> None:
    def inside() -> None:
        context = ad.use_device("numpy")
        context.__enter__()  # never left

    before = ad.default_device()
    contextvars.copy_context().run(inside)
    assert ad.default_device() is before


@pytest.mark.parametrize(
    "device",
    [
        ad.NumPy(), ad.Reference(), ad.Autodiff(ad.NumPy()), ad.Autodiff(ad.Autodiff(ad.NumPy())),
        ad.Autodiff(ad.NumPy(), strong_zero=True), ad.Autodiff(ad.Reference(), "balanced"),
        ad.Autodiff(ad.NumPy(), checkpointing="balanced", strong_zero=True), ad.Reference(digits=30),
        ad.Batched(ad.NumPy(), 3, "split"), ad.Checked(ad.NumPy(), shapes=False), ad.Profiled(ad.NumPy(), 3),
        ad.Profiled(ad.NumPy(), 0), ad.Taylor(ad.Tangent(ad.Dependence(ad.NumPy())), order=4),
    ],
    ids=str,
)  # fmt: skip
def test_backends_are_values(device: ad.Autodiff[ad.NumPy]) -> None:
    assert ad.device(device.name) is device
    assert ad.device(device.name.upper()) is device
    assert ad.device(device) is device
    assert repr(device) == device.name
    for again in (pickle.loads(pickle.dumps(device)), copy(device), deepcopy(device)):
        assert again is device
    assert type(device)(*device.configuration()) is device
    assert len({device, ad.device(device.name)}) == 1


def test_options_of_names_are_those_of_the_constructor() -> None:
    assert ad.Checked(ad.NumPy(), finite=False).name == "checked[finite=0]<numpy>"
    assert ad.device("checked[finite=0, shapes=1]<numpy>") is ad.Checked(ad.NumPy(), finite=False)
    assert ad.device("autodiff[strong_zero=0]<numpy>") is ad.Autodiff(ad.NumPy())
    assert ad.device("profiled<numpy>") is ad.device("profiled<numpy>")
    with pytest.raises(errors.DeviceError, match="its options are checkpointing, strong_zero"):
        ad.device("autodiff[strong]<numpy>")
    with pytest.raises(errors.DeviceError, match="it has none"):
        ad.device("tangent[order=2]<numpy>")


def test_array_libraries_by_name() -> None:
    strict = ad.ArrayAPI(pytest.importorskip("array_api_strict"))
    for device in (strict, ad.Autodiff(strict), ad.Autodiff(ad.Autodiff(strict, strong_zero=True), "balanced")):
        assert "array_api[array_api_strict]" in device.name
        assert ad.device(device.name) is device
        assert ad.zeros(2, device=device.name).device is device
    assert ad.device(" Array_API[array_api_strict] ") is strict
    assert ad.ArrayAPI(np).name == "array_api[numpy]"
    assert ad.device("autodiff<array_api[numpy]>").leaf is ad.ArrayAPI(np)
    assert ad.device("array_api[numpy]") is not ad.NumPy()


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("array_api[no_such_library.sub]", r"register_namespace\('no_such_library.sub'"),
        ("autodiff<array_api[no_such_library]>", "no_such_library"),
        ("array_api[math]", "imports no module but"),
        ("array_api[a-b]", "imports no module but"),
        ("array_api[]", r"array_api\[module\]"),
        ("array_api", r"array_api\[module\]"),
        ("array_api[numpy]<numpy>", "no device is called"),
    ],
)
def test_array_libraries_that_cannot_be_had(name: str, said: str) -> None:
    with pytest.raises(errors.DeviceError, match=said):
        ad.device(name)


def test_a_name_imports_no_module_that_is_not_known() -> None:
    code = """
import sys, adjoint as ad
for name in ("this", "antigravity", "os.path"):
    try:
        ad.device(f"array_api[{name}]")
    except ad.errors.DeviceError:
        pass
print("this" in sys.modules, "antigravity" in sys.modules)
"""
    found = processes.python(code)
    assert found.stdout.split() == ["False", "False"]


def test_namespaces_are_registered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("adjoint.devices._registered", {})
    strict = pytest.importorskip("array_api_strict")
    ad.register_namespace("mine.strict", strict)
    ad.register_namespace("mine.strict", strict)
    assert ad.device("autodiff<array_api[mine.strict]>").leaf is ad.ArrayAPI(strict)
    for name, module, error in (
        ("mine.strict", np, errors.DeviceError),  # another one has it
        ("numpy", strict, errors.DeviceError),
        ("a]b", strict, errors.DeviceError),
        ("sys", sys, errors.DeviceError),  # which has no arrays
        (3, strict, errors.ArgumentTypeError),
        ("x", "numpy", errors.ArgumentTypeError),
    ):
        with pytest.raises(error):
            ad.register_namespace(name, module)  # type: ignore[arg-type]
    with pytest.raises(errors.DeviceError):
        ad.device("array_api[sys]")


@pytest.mark.parametrize(
    "name",
    [
        "autodiff<" * 20000 + "numpy" + ">" * 20000, "reference[digits=" + "9" * 5000 + "]", "x" * 10**6,
        "array_api[" + "x" * 10**6 + "]", "torch:" + "x" * 10**6, "batched[size=-1]<numpy>", "batched[size=1.5]<numpy>",
        "profiled[number=-3]<numpy>", "taylor[order=-1]<numpy>", "reference[digits=-2]", "reference[digits=0]",
        f"batched[randomness={'x' * 900}]<numpy>", f"autodiff[checkpointing={'x' * 900}]<numpy>",
    ],
    ids=lambda name: name[:30],
)  # fmt: skip
def test_names_are_input(name: str) -> None:
    with pytest.raises(errors.AdjointError) as caught:
        ad.device(name)
    assert len(str(caught.value)) < 1500


def test_chunks_are_positive() -> None:
    pytest.importorskip("dask.array")
    for chunks in (-3, 0, True):
        with pytest.raises(errors.DeviceError):
            ad.Dask(chunks)
    with pytest.raises(errors.DeviceError):
        ad.device("dask[chunks=-3]")


def test_a_chain_has_no_thousands_of_decorators() -> None:
    def nested(decorator: Any, count: int) -> Any:
        device = ad.NumPy()
        for _ in range(count):
            device = decorator(device)
        return device

    for decorator in (ad.Autodiff, ad.Tangent, ad.Batched, ad.Checked):
        with pytest.raises(errors.DeviceError, match="a chain has at most 100 decorators"):
            nested(decorator, 20_000)
    deepest = nested(ad.Autodiff, 100)
    x = ad.tensor(3.0, device=deepest).require_grad()
    assert (x * x).backward()[x].numpy() == 6.0
    assert len(list(deepest.chain())) == 101
    assert repr(deepest).count("<") == 100


def test_chains() -> None:
    device = ad.Autodiff(ad.Autodiff(ad.NumPy(), strong_zero=True))
    assert list(device.chain()) == [device, device.inner, ad.NumPy()]
    assert device.leaf is ad.NumPy()
    over = device.inner.over(ad.Reference())
    assert over is ad.Autodiff(ad.Reference(), strong_zero=True)


@pytest.mark.parametrize(
    "name",
    ["", "gpu", "autodiff", "autodiff<>", "autodiff<gpu>", "numpy<numpy>", "autodiff[x]<numpy>", "autodiff<numpy"],
)
def test_unknown_names(name: str) -> None:
    with pytest.raises(errors.DeviceError):
        ad.device(name)


def test_the_environment_names_the_default() -> None:
    code = "import adjoint as ad; print(ad.default_device(), ad.zeros(1).device.strong_zero)"
    environment = {**os.environ, "ADJOINT_DEVICE": "autodiff[strong_zero]<numpy>"}
    found = processes.python(code, env=environment)
    assert found.stdout.split() == ["autodiff[strong_zero]<numpy>", "True"]
    environment["ADJOINT_DEVICE"] = "autodiff[strong_zero]<array_api[numpy]>"
    found = processes.python(code, env=environment)
    assert found.stdout.split() == ["autodiff[strong_zero]<array_api[numpy]>", "True"]
    environment["ADJOINT_DEVICE"] = "nonsense"
    failed = processes.python(code, check=False, env=environment)
    assert "no device is called 'nonsense'" in failed.stderr
    environment["ADJOINT_DEVICE"] = "taylor[order=-1]<numpy>"
    failed = processes.python(code, check=False, env=environment)
    assert "DeviceError: the environment variable ADJOINT_DEVICE: Taylor: the order" in failed.stderr


def test_every_creation_function_takes_a_device() -> None:
    device = ad.Reference()
    for x in (
        ad.tensor([1.0], device=device),
        ad.asarray([1.0], device=device),
        ad.from_dlpack(np.ones(2), device=device),
        *[f(2, device=device) for f in (ad.zeros, ad.ones, ad.empty, ad.eye, ad.arange)],
        ad.full(2, 3.0, device=device),
        ad.linspace(0, 1, 3, device=device),
        *[f(ad.ones(2), device=device) for f in (ad.zeros_like, ad.ones_like, ad.empty_like)],
        ad.full_like(ad.ones(2), 3, device=device),
        *[
            f(2, device=device)
            for f in (ad.random.uniform, ad.random.normal, ad.random.integers, ad.random.permutation)
        ],
        ad.random.bernoulli(0.5, 2, device=device),
    ):
        assert x.device is device


def test_likes_stay_on_the_device_of_their_model() -> None:
    x = ad.ones(2, dtype=ad.float64, device="reference")
    for y in (ad.zeros_like(x), ad.ones_like(x), ad.full_like(x, 2), ad.empty_like(x)):
        assert y.device is x.device
        assert y.dtype is ad.float64
        assert not y.is_tracked()
    assert ad.zeros_like(x, dtype=ad.int64, device="numpy").dtype is ad.int64


def test_functions_of_values_stay_where_their_tensor_is() -> None:
    """Arrays and scalars that meet a tensor go to its backend, not to the default one."""
    x = ad.ones(2, dtype=ad.float64, device="reference")
    values = np.array([1.0, 2.0])
    for y in (
        x + values, values + x, x @ values, values @ x, ad.maximum(x, values), ad.concat([x, values]),
        ad.where(x > 0, x, values), ad.matmul(values, x), x[np.array([0, 1])], ad.take(x, [0]),
        ad.nn.mse_loss(x, values), ad.einsum("i,i", x, values), ad.stack([values, x]), ad.outer(values, x),
        ad.linalg.solve(ad.eye(2, dtype=ad.float64, device="reference"), values),
    ):  # fmt: skip
        assert y.device is x.device
