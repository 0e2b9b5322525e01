"""What nodes of the face are called, beside PyTorch's, for every function of the table."""

from __future__ import annotations

import itertools
import warnings
from typing import Any

import numpy as np
import pytest
import torch_functions
import torch_functions_later  # noqa: F401  # further cases
import torch_samples
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


@pytest.mark.peers
def test_writes_have_the_nodes_edges_gradients_and_versions_of_pytorch() -> None:
    def key_of(t: Any, key: Any) -> Any:
        return t.tensor(key.tolist()) if isinstance(key, np.ndarray) else key

    def program(t: Any) -> list[Any]:
        x = t.tensor([[1.0, 2.0], [3.0, 4.0]], dtype=t.float64, requires_grad=True)
        z, c = t.ones(2, dtype=t.float64, requires_grad=True), t.tensor(3.0)
        every = slice(None)
        keys = (
            every, ..., (), None, True, False, 0, slice(0, 1), (every, every), (every, 0), [0], (0, 0), (..., 0),
            slice(0, 9), (every, None), (every, [0]), np.array([True, False]), np.array(True), np.array(False),
        )  # fmt: skip
        values: list[Any] = [3.0, c, t.ones(2).double(), t.ones(1).double(), z[0], z.float()[0], t.tensor(3)]
        writes: list[Any] = [
            lambda y, key=key, value=value: y.__setitem__(key_of(t, key), value)
            for key, value in itertools.product(keys, values)
        ]
        writes += [
            lambda y: y.fill_(3.0), lambda y: y.fill_(c), lambda y: y.fill_(z[0]), lambda y: y.copy_(c),
            lambda y: y.mul_(2), lambda y: y.copy_(z), lambda y: y.copy_(z.float()), lambda y: y.mul_(z),
            lambda y: y.add_(z), lambda y: y.exp_(), lambda y: y.addcmul_(z, z), lambda y: y.masked_fill_(z > 0, 1.0),
            lambda y: y.zero_(), lambda y: y.normal_(), lambda y: y.uniform_(), lambda y: y.random_(),
            lambda y: y.random_(5), lambda y: y.random_(2, 5), lambda y: y.bernoulli_(),
            lambda y: y.bernoulli_(t.full(y.shape, 0.5)),
            lambda y: y.exponential_(), lambda y: y.cauchy_(), lambda y: y.log_normal_(), lambda y: y.geometric_(0.5),
            lambda y: y.ge_(2), lambda y: y.fill_diagonal_(3.0), lambda y: y.put_(t.tensor([0]), c.double()),
            lambda y: y.scatter_(0, t.zeros(1, 2).long(), 2.0),
        ]  # fmt: skip
        starts = (
            lambda: x * 2, lambda: (x * 2)[0], lambda: (x * 2).t(), lambda: x.sum() * 2,
            lambda: t.ones(2, 2, dtype=t.float64), lambda: t.ones(2, 2).double()[0], lambda: t.ones(()).double(),
        )  # fmt: skip
        found: list[Any] = []
        for (i, make), (j, write) in itertools.product(enumerate(starts), enumerate(writes)):
            y = make()
            try:
                write(y)
            except (RuntimeError, IndexError) as error:
                found.append((i, j, type(error).__name__, str(error)[:25]))
                continue
            for at in (y, y if y._base is None else y._base):
                nodes = at.grad_fn and [at.grad_fn.name(), *[(n and n.name(), k) for n, k in at.grad_fn.next_functions]]
                found.append((i, j, nodes, at._version, at.requires_grad))
            if y.requires_grad:
                grads = t.autograd.grad(y.sum(), (x, z), allow_unused=True, create_graph=True)
                found.append((i, j, [g if g is None else (g.tolist(), g.requires_grad) for g in grads]))
        return found

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        theirs, here = program(pytest.importorskip("torch")), program(ours)
    assert [(a, b) for a, b in zip(theirs, here, strict=True) if a != b] == []


# operations whose nodes have other names than PyTorch's, and why; so have some of tensors without axes, which functions
# give back as they are
_OTHER_NODES = {
    "PyTorch makes them of other steps": (
        "cartesian_prod", "cdist", "corrcoef", "nn.functional.cross_entropy", "nn.functional.normalize", "pca_lowrank",
        "nn.functional.feature_alpha_dropout.with_train", "svd_lowrank", "fft.ihfft2", "fft.ihfftn", "linalg.vecdot",
        "linalg.matrix_power", "linalg.matrix_norm", "nn.functional.dropout3d", "repeat_interleave", "diff", "double",
        "nn.functional.scaled_dot_product_attention", "nn.functional.pad.circular", "nn.functional.dropout2d", "to",
    ),
    "nothing is done where no axis or place is named": ("flip", "gather"),
    "a number by its name": ("acosh", "asinh", "atanh", "conj_physical", "copysign", "round.decimals_0", "sort",
                             "__rsub__", "squeeze_copy", "as_strided", "as_strided.partial_views", "take_along_dim"),
}  # fmt: skip


@pytest.mark.peers
@pytest.mark.slow
def test_operations_have_the_nodes_of_pytorch_on_its_sample_inputs() -> None:
    torch = pytest.importorskip("torch")

    def nodes(t: Any, made: Any) -> list[Any]:
        return [x.grad_fn and type(x.grad_fn).__name__ for x in torch_samples.leaves(made, t.Tensor)]

    others = {name for names in _OTHER_NODES.values() for name in names} | {*torch_samples.KNOWN}
    others.add("nn.functional.batch_norm.without_cudnn")
    counted = 0
    with Each() as each, warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        for name, info in torch_samples.operations().items():
            if name in others or not torch_samples.here(name, info) or not info.supports_autograd:
                continue
            dtype = "float64" if info.supports_dtype(torch.float64, "cpu") else "float32"
            for variant, (theirs, here) in torch_samples.variants(name, info).items():
                for one, other in torch_samples.samples(info, dtype, 3) if None not in (theirs, here) else ():
                    if any([not x.ndim for x in torch_samples.leaves(one.input, torch.Tensor)]):
                        continue
                    runs = torch_samples._runs, variant == "in place"
                    try:
                        made = runs[0](theirs, one, runs[1], info.gradcheck_wrapper)()
                    except Exception:  # what PyTorch refuses in its own samples
                        continue
                    with each(f"{name} {variant}"):
                        wrapper = torch_samples._rebound(info.gradcheck_wrapper)
                        assert nodes(ours, runs[0](here, other, runs[1], wrapper)()) == nodes(torch, made)
                        counted += 1
    assert counted > 1500
