"""PyTorch's own sample inputs, modules and settings of optimizers, under both libraries: a part of each."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
import torch_module_samples
import torch_samples
from each import Each

import adjoint.torch as ours

pytestmark = [pytest.mark.slow, pytest.mark.peers]
DTYPES = ("float64", "complex128", "float32", "int64", "bool")


@pytest.mark.parametrize(("device", "count", "dtypes"), [("cpu", 2, DTYPES), ("torch", 1, DTYPES[:1])])
def test_functions_agree_on_sample_inputs_of_pytorch(
    device: str, count: int, dtypes: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    torch = pytest.importorskip("torch")
    monkeypatch.setattr(torch_samples, "DEVICE", [device])
    counted = 0
    with Each() as each, warnings.catch_warnings(), np.errstate(all="ignore"), ours.device(device):
        warnings.simplefilter("ignore")
        found = {k: v for k, v in torch_samples.operations().items() if torch_samples.here(k, v)}
        for i, (name, info) in enumerate(found.items()):
            known = [dtype for dtype in dtypes if info.supports_dtype(getattr(torch, dtype), "cpu")]
            if known and name not in torch_samples.KNOWN:
                with each(name):
                    run, wrong = torch_samples.compared(name, info, count, (known[i % len(known)],))
                    counted += run
                    assert [line for line in wrong if ": no " not in line] == []
    assert counted > 500 * count


def test_inputs_that_pytorch_refuses_are_refused() -> None:
    pytest.importorskip("torch")
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        count, same_type, same, _ = torch_samples.all_refused()
    assert same_type >= 0.97 * count
    assert same >= 0.69 * count


def test_modules_agree_on_samples_of_pytorch() -> None:
    pytest.importorskip("torch")
    counted = 0
    with Each() as each, warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        for name, info in [*torch_module_samples.module_infos().items()][::3]:
            if name not in torch_module_samples.KNOWN:
                with each(name):
                    count, wrong = torch_module_samples.compare_module(name, info, 4)
                    counted += count
                    assert [line for line in wrong if "not there" not in line] == []
    assert counted > 100


def test_optimizers_agree_on_settings_of_pytorch() -> None:
    pytest.importorskip("torch")
    with Each() as each:
        for name, info in torch_module_samples.optimizer_infos().items():
            if name not in torch_module_samples.KNOWN:
                with each(name):
                    _, wrong = torch_module_samples.compare_optimizer(name, info)
                    assert [line for line in wrong if "not there" not in line] == []
