"""What nodes of the face are called, beside PyTorch's, for every function of the table."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
import torch_functions
import torch_functions_later  # noqa: F401  # further cases
from each import Each

import adjoint.torch as ours


def names(t: Any, case: Any, dtype: str) -> list[str | None]:
    function, makers, _ = case
    r = np.random.default_rng(0)
    arguments = []
    for maker in makers:
        value = np.asarray(maker(r))
        x = t.tensor(value.tolist(), dtype=getattr(t, dtype) if value.dtype.kind == "f" else None)
        arguments.append(x.requires_grad_() if value.dtype.kind == "f" else x)
    found = function(t, *arguments)
    parts = found if isinstance(found, (tuple, list)) else [found]
    return [type(x.grad_fn).__name__ for x in parts if isinstance(x, t.Tensor) and x.requires_grad]


@pytest.mark.peers
def test_nodes_have_the_names_that_they_have_in_pytorch() -> None:
    torch = pytest.importorskip("torch")
    counted = 0
    with Each() as each, warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        for name, cases in torch_functions.CASES.items():
            for case in cases:
                for kind, dtype in {"f": "float64", "c": "complex128"}.items():
                    if kind in case[2]:
                        with each(f"{name} {dtype}"):
                            try:
                                expected = names(torch, case, dtype)
                            except (RuntimeError, TypeError):  # which takes no such numbers
                                continue
                            assert names(ours, case, dtype) == expected
                            counted += 1
    assert counted > 500


@pytest.mark.peers
def test_nodes_have_the_edges_that_they_have_in_pytorch() -> None:
    def program(t: Any) -> list[Any]:
        x, b = t.ones(2, 2, requires_grad=True), t.ones(2, 2)
        found = (
            x @ x, x * x, x @ b, b @ x, 1 - x, 2 / x, t.cat([x, b]), t.stack([b, x]), x - b, b - x, x + x, x**2,
            t.where(x > 0, b, x), x.log1p(), x % 2, t.fft.rfft(x), t.addmm(b, x, x), x.max(0)[0], t.minimum(x, x),
            t.add(x, x, alpha=2), t.deg2rad(x), x.select_scatter(x[0], 0, 0), x.index_add(0, t.tensor([0]), x[:1]),
            x.masked_fill(b > 0, 1.0), x.index_fill(0, t.tensor([0]), 2.0), x.index_fill(0, t.tensor([0]), x.sum()),
            (x * 1).copy_(x), (x * 1).copy_(b), (x * 1).fill_(2.0), (x * 1).fill_(x.sum()), (x * 1).zero_(), x.diag(),
            x.diagonal(), x.as_strided((2,), (2,)), x.unfold(0, 2, 1), (x * 1).t_(), (x * 1).unsqueeze_(0),
            (x * 1).transpose_(0, 1), (x * 1).squeeze_(), (x * 1).squeeze_(0), (x * 1).squeeze_((0, 1)),
            t.div(x, x, rounding_mode="trunc"), x.div(2, rounding_mode="floor"), x.unsafe_split(1)[1],
            *[v for v in t.broadcast_tensors(x * 1, x[0]) if v.grad_fn], (x * 1).squeeze_(0).mul_(2),
        )  # fmt: skip
        nodes = [y.grad_fn for y in found]
        names = [n.name() for n in nodes]
        return names + [(type(n).__name__, [(type(f).__name__, i) for f, i in n.next_functions]) for n in nodes]

    assert program(ours) == program(pytest.importorskip("torch"))


TRANSFORMS = "fft ifft rfft irfft hfft ihfft fft2 ifft2 rfft2 irfft2 hfft2 ihfft2 fftn ifftn rfftn irfftn hfftn ihfftn"


@pytest.mark.peers
def test_special_functions_and_transforms_have_the_nodes_of_pytorch() -> None:
    theirs = pytest.importorskip("torch")
    special = [name for name in dir(ours.special) if callable(getattr(theirs.special, name, None))]

    def named(t: Any) -> dict[Any, str]:
        found = {}
        for name in (name for name in special if name[0].islower()):
            for count in (1, 2):
                try:
                    out = getattr(t.special, name)(*[t.full((3,), 0.5).requires_grad_()] * count)
                except (TypeError, RuntimeError):
                    continue
                found[name, count] = out.grad_fn.name() if out.requires_grad else ""
        for name in TRANSFORMS.split():
            for dtype in (t.float32, t.complex64):
                try:
                    out = getattr(t.fft, name)(t.ones(4, 4, dtype=dtype).requires_grad_())
                except RuntimeError:
                    continue
                found[name, str(dtype)] = out.grad_fn.name()
        return found

    here = named(ours)
    there = {key: name for key, name in named(theirs).items() if name and key[0] != "round"}  # as of two arguments
    assert {key: here.get(key) for key in there} == there
    assert len(there) > 50
