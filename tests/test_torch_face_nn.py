"""`adjoint.torch.nn` beside PyTorch's: layers, functions, modules, first values."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
import torch_layers
import torch_models
import torch_modules
from each import Each

import adjoint.torch as ours


def _state(theirs: Any, text: str) -> dict[str, Any]:
    """Values for a layer's parameters and buffers, which both libraries get."""
    layer = eval(text, {"torch": theirs, **vars(theirs.nn)}).double()
    r = np.random.default_rng(len(text))
    found = {}
    for name, x in layer.state_dict().items():
        value = x.numpy().copy()
        if name.endswith("running_var"):
            value = np.abs(r.standard_normal(value.shape)) + 0.5
        elif (value.dtype.kind == "f" and not name.endswith("weight")) or value.ndim == 1:
            value = r.standard_normal(value.shape)
        found[name] = value
    return found


def compare_layer(theirs: Any, text: str, spec: str, training: bool, seed: int = 0) -> None:
    given = torch_layers.arrays(spec, seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        state = _state(theirs, text)
        wanted = torch_layers.run(theirs, text, spec, given, state, training)
        found = torch_layers.run(ours, text, spec, given, state, training)
    assert found["text"] == wanted["text"]
    assert found["names"] == wanted["names"]
    assert found["start"] == wanted["start"]
    for part in ("values", "gradients"):
        assert len(found[part]) == len(wanted[part]), part
        for a, b in zip(found[part], wanted[part], strict=True):
            assert (a is None) == (b is None), part
            if a is not None:
                # PyTorch's hardsigmoid divides by 6 in single precision
                tolerance = 1e-7 if text == "Hardsigmoid()" else 1e-9
                np.testing.assert_allclose(a, b, rtol=tolerance, atol=tolerance / 10, err_msg=part)
                assert a.dtype == b.dtype
    for name, value in wanted["state"].items():
        np.testing.assert_allclose(found["state"][name], value, rtol=1e-9, atol=1e-12, err_msg=name)


@pytest.mark.peers
def test_layers_are_those_of_pytorch_in_text_names_values_gradients_and_state() -> None:
    theirs = pytest.importorskip("torch")
    with Each() as each:
        for text, spec in torch_layers.ROWS[::8]:  # the others are slow
            with each(text.strip()):
                compare_layer(theirs, text.strip(), spec, True)


@pytest.mark.slow
@pytest.mark.peers
@pytest.mark.parametrize("training", [True, False])
def test_all_layers_are_those_of_pytorch(training: bool) -> None:
    theirs = pytest.importorskip("torch")
    with Each() as each:
        for text, spec in torch_layers.ROWS:
            with each(text.strip()):
                compare_layer(theirs, text.strip(), spec, training, int(training))


def test_every_layer_has_a_case() -> None:
    named = {text.strip().partition("(")[0] for text, _ in torch_layers.ROWS}
    assert set(ours.nn.LAYERS) - named == {"RNNBase", "RNNCellBase"}


@pytest.mark.peers
@pytest.mark.parametrize("name", torch_modules.ALL)
def test_programs_of_modules_print_what_they_print_under_pytorch(name: str) -> None:
    theirs = pytest.importorskip("torch")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert torch_modules.printed(name, ours) == torch_modules.printed(name, theirs)


@pytest.mark.slow
@pytest.mark.peers
@pytest.mark.parametrize("name", torch_models.ALL)
def test_models_of_examples_train_as_they_do_under_pytorch(name: str) -> None:
    theirs = pytest.importorskip("torch")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert torch_models.printed(name, ours) == torch_models.printed(name, theirs)


def test_models_of_examples_run_without_pytorch() -> None:
    for name in ("mlp", "gpt"):
        assert len(torch_models.printed(name, ours)) > 4
