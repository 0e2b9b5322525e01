"""`adjoint.torch`: subclasses of `Tensor`, and `__torch_function__`."""

from __future__ import annotations

import operator
import warnings
from typing import Any

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


class Asked:
    """No tensor, and asked by functions all the same."""

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return func.__name__


OPERATORS = "eq ne lt le gt ge add sub mul truediv floordiv mod pow matmul and_ or_ xor".split()


@pytest.mark.parametrize("name", OPERATORS)
def test_operators_ask_what_is_no_tensor(name: str) -> None:
    apply = getattr(operator, name)
    for found in (apply(ours.ones(1), Asked()), apply(Asked(), ours.ones(1))):
        assert isinstance(found, str)
        assert found in dir(ours.Tensor)


@pytest.mark.peers
def test_the_two_libraries_do_not_ask_one_another_for_ever() -> None:
    theirs = pytest.importorskip("torch")
    a, b = ours.ones(2), theirs.ones(2)
    for call in (
        lambda: theirs.add(a, 1),
        lambda: theirs.nn.functional.relu(a),
        lambda: b.copy_(a),
        lambda: ours.add(b, 1),
        lambda: ours.cat([b]),
        lambda: a + b,
        lambda: b + a,
    ):
        with pytest.raises(TypeError):
            call()
    assert theirs.tensor(a).tolist() == [1.0, 1.0]
