"""`adjoint.torch`: subclasses of `Tensor`, and `__torch_function__`."""

from __future__ import annotations

import warnings

import pytest
import torch_subclasses

import adjoint.torch as ours


@pytest.mark.peers
@pytest.mark.parametrize("name", torch_subclasses.PROGRAMS)
def test_programs_print_what_they_print_under_pytorch(name: str) -> None:
    theirs = pytest.importorskip("torch")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert torch_subclasses.printed(name, ours) == torch_subclasses.printed(name, theirs)


def test_a_parameter_of_a_subclass_is_refused() -> None:
    class Own(ours.Tensor):
        pass

    with pytest.raises(NotImplementedError, match="a Parameter of a Own, .* make a subclass of nn.Parameter"):
        ours.nn.Parameter(Own([1.0]))
