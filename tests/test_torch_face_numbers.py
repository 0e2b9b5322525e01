"""Numbers that are tracked tensors: a function of `adjoint.torch` has the right gradient for them, or raises."""

from __future__ import annotations

import random
import warnings
from typing import Any

import numpy as np
import pytest
import torch_hostile
from each import Each

import adjoint.torch as torch

STEP = 1e-4
PLACES = "torch Tensor nn.functional linalg fft special".split()
# what is made to lose the history, and numbers that are drawn, which PyTorch gives the gradient zero
WITHOUT = "torch.tensor Tensor.new_tensor torch.detach torch.detach_ torch.detach_copy Tensor.set_ torch.normal".split()
REFUSALS = (TypeError, ValueError, RuntimeError, IndexError, NotImplementedError, BufferError)


def _found(value: Any) -> list[Any]:
    if isinstance(value, torch.Tensor):
        return [value]
    return [x for v in value for x in _found(v)] if isinstance(value, (list, tuple)) else []


def _sum(call: torch_hostile.Call, place: int | str, number: Any) -> tuple[Any, list[Any]]:
    """A number that follows from all results of a call, and those results."""
    torch.manual_seed(0)
    args, options = call.arguments(torch, {})
    if isinstance(place, int):
        args[place] = number
    else:
        options[place] = number
    results = [x for x in _found(call.run(torch, args, options)) if x.dtype.is_floating_point or x.dtype.is_complex]
    return sum([(x.abs() ** 2).sum() for x in results], torch.zeros((), dtype=torch.float64)), results


def _check(call: torch_hostile.Call, place: int | str, value: float) -> bool:
    x = torch.tensor(value, dtype=torch.float64, requires_grad=True)
    try:
        total, _ = _sum(call, place, x)
    except REFUSALS:
        return False
    got = 0.0
    if total.requires_grad:
        (slope,) = torch.autograd.grad(total, x, allow_unused=True)
        got = 0.0 if slope is None else slope.item()
    near = []
    for number in (value + STEP, value - STEP):
        try:
            near.append(_sum(call, place, torch.tensor(number, dtype=torch.float64))[0].item())
        except REFUSALS:
            return False  # a step, or the end of what it takes
    expected = (near[0] - near[1]) / (2 * STEP)
    if np.isfinite(expected) and np.isfinite(got):
        assert abs(got - expected) <= 1e-3 * max(1.0, abs(expected)), f"gradient {got}, differences {expected}"
    return True


@pytest.mark.slow
@pytest.mark.parametrize("place", PLACES)
def test_a_tracked_number_has_its_gradient_or_is_refused(place: str) -> None:
    taken = tried = 0
    with Each() as each, warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        for call in torch_hostile.calls(torch):
            if call.place != place or call.function in WITHOUT:
                continue
            for where in call.places():
                tried += 1
                with each(call.function, call.source, where):
                    taken += _check(call, where, random.Random(f"{call.function} {where}").uniform(0.3, 0.7))
    assert tried > 20
    assert taken > (3 if place in ("torch", "Tensor", "nn.functional") else -1)
