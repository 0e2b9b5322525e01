"""`adjoint.torch`: programs of PyTorch's tutorials, and what criteria are called with."""

from __future__ import annotations

import importlib
import inspect
import warnings

import pytest
import torch_recipes

import adjoint.torch as ours


@pytest.mark.peers
@pytest.mark.parametrize("name", torch_recipes.RECIPES)
def test_recipes_show_what_they_show_under_pytorch(name: str) -> None:
    theirs = pytest.importorskip("torch")
    for module in (ours, theirs):
        importlib.import_module(f"{module.__name__}.func")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert torch_recipes.shown(name, ours) == torch_recipes.shown(name, theirs)


@pytest.mark.peers
def test_layers_take_their_inputs_by_pytorchs_names() -> None:
    theirs = pytest.importorskip("torch")
    for name, kind in vars(theirs.nn).items():
        here = getattr(ours.nn, name, None)
        if not isinstance(kind, type) or not issubclass(kind, theirs.nn.Module) or not isinstance(here, type):
            continue
        wanted, found = [inspect.signature(k.forward).parameters for k in (kind, here)]
        if "tensors" in found:  # a criterion, which gives names on to its function
            found = inspect.signature(here._function).parameters
            wanted = {
                "input" if key == "log_input" and name == "PoissonNLLLoss" else key: p for key, p in wanted.items()
            }
        needed = [
            key for key, p in wanted.items() if p.default is p.empty and key != "self" and p.kind.name[:3] != "VAR"
        ]
        assert [key for key in needed if key not in found] == [], name
