"""`adjoint.torch.autograd` against PyTorch: programs that print the same under both."""

from __future__ import annotations

import gc
import weakref
from typing import Any

import pytest
import torch_autograd
from each import Each

import adjoint.torch as ours


@pytest.mark.peers
def test_programs_print_what_they_print_under_pytorch() -> None:
    theirs = pytest.importorskip("torch")
    with Each() as each:
        for name in torch_autograd.PROGRAMS:
            with each(name):
                expected = torch_autograd.printed(name, theirs)
                assert expected
                assert torch_autograd.printed(name, ours) == expected


def test_a_function_leaves_nothing_for_the_garbage_collector() -> None:
    class Double(ours.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            out = x * 2
            ctx.save_for_backward(x, out)
            return out

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return g * 2

    gc.disable()
    try:
        x = ours.ones(3, requires_grad=True)
        y = Double.apply(x)
        node = weakref.ref(y._array.node)
        y.sum().backward()
        del y
        assert node() is None
    finally:
        gc.enable()
