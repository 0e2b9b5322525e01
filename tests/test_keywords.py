"""Keywords that functions do not have: those of PyTorch's functions, and misspelt ones."""

from __future__ import annotations

import inspect
import operator
import re
from collections.abc import Callable
from typing import Any

import pytest
from conftest import peer
from each import Each
from test_function_derivatives import public_functions

import adjoint as ad
from adjoint.counterparts import PARAMETERS

SPEAK_OF_DIM = {"nn.cross_entropy", "nn.nll_loss"}  # that of other functions
THEIRS = {  # where it has another name
    "concat": "cat",
    "cumulative_prod": "cumprod",
    "cumulative_sum": "cumsum",
    "linalg.cross": "cross",
    "permute_dims": "permute",
    "put_along_axis": "scatter",
    "special.logsumexp": "logsumexp",
    "take": "index_select",
    "take_along_axis": "gather",
    "unstack": "unbind",
}


def by_keyword() -> dict[str, Callable[..., Any]]:
    """Public functions with axes or `keepdims` that may be given by keyword."""
    found = {name: operator.attrgetter(name)(ad) for name in public_functions()}
    return {name: f for name, f in found.items() if inspect.isfunction(f) and _keywords(f) & {"axis", "axes", "axis1"}}


def _keywords(f: Callable[..., Any]) -> set[str]:
    return {p.name for p in inspect.signature(f).parameters.values() if p.kind is not p.POSITIONAL_ONLY}


def _needed(f: Callable[..., Any]) -> int:
    return sum(p.default is p.empty for p in inspect.signature(f).parameters.values())


@pytest.mark.peers
def test_functions_that_have_dim_in_pytorch_say_what_it_is() -> None:
    torch, told = peer("torch"), 0
    with Each() as each:
        for name, f in sorted(by_keyword().items()):
            topic, _, last = name.rpartition(".")
            place = {"nn": torch.nn.functional, "": torch}.get(topic) or getattr(torch, topic, torch)
            theirs = getattr(place, THEIRS.get(name, last), None)
            words = (
                set(re.findall(r"\b(?:dim[012s]?|keepdim)\b(?==|,|\)| \()", str(theirs.__doc__))) if theirs else set()
            )
            if not words & PARAMETERS.keys() or name in SPEAK_OF_DIM:
                continue
            told += 1
            for word in words & PARAMETERS.keys():
                meant = [ours for ours in PARAMETERS[word] if ours in _keywords(f)]
                with each(name, word):
                    if meant:
                        with pytest.raises(
                            ad.errors.ArgumentTypeError, match=f"^{last}: .* {word}; write {meant[0]}=1$"
                        ):
                            f(*[ad.ones((2, 2))] * _needed(f), **{word: 1})
    assert told > 70


def test_a_signature_shows_what_may_be_given() -> None:
    """`**unknown` is nothing that may be given; what says so has it all the same."""
    hidden = 0
    for f in by_keyword().values():
        kinds = [p.kind for p in inspect.signature(f).parameters.values()]
        assert inspect.Parameter.VAR_KEYWORD not in kinds
        hidden += bool(f.__code__.co_flags & inspect.CO_VARKEYWORDS)
    assert hidden > 70


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda x: x.sum(dim=0), "sum: no parameter is called dim; write axis=0"),
        (lambda x: x.sum(keepdmis=True), "sum: no parameter is called keepdmis; write keepdims=True"),
        (lambda x: ad.tensordot(x, x, dims=1), "tensordot: no parameter is called dims; write axes=1"),
        (lambda x: ad.sum(x, colour=1), "sum: no parameter is called colour; its parameters are axis, dtype, keepdims"),
        (lambda x: ad.max(x, out=x), "max: no parameter is called out: use y = ..., or y[...] = ...: tensors are"),
        (
            lambda x: ad.zeros(3, requires_grad=True),
            "zeros: no parameter is called requires_grad: use x = x.require_grad()",
        ),
        (lambda x: ad.tensor([1.0], dtpye=ad.float64), "tensor: no parameter is called dtpye; write dtype="),
        (lambda x: ad.grad(lambda y: ad.sum(y, dim=0))(x), "sum: no parameter is called dim; write axis=0"),
    ],
)
def test_what_is_said(call: Any, text: str) -> None:
    with pytest.raises(TypeError, match=re.escape(text)) as caught:
        call(ad.ones(3))
    assert isinstance(caught.value, ad.errors.ArgumentTypeError)
