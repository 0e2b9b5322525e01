"""What the face gives a gradient to, what shares memory, and what is a leaf: as PyTorch, one result at a time."""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import torch_samples
from each import Each

import adjoint.torch as ours

# what PyTorch gives the wrong gradient or none at all, or what its samples and ours do not have in common
OTHER = {
    "linspace.tensor_overload": "tracked ends are refused: PyTorch gives them no gradient",
    "histogram": "whose counts jump, and depend on weights and on edges alone",
    "nn.functional.dropout3d": "with p=0, which is another tensor on the same memory there",
    "cartesian_prod": "of one vector, which is itself there",
    "nn.functional.local_response_norm": "of nothing, which is itself there",
}
OTHER |= {  # these have derivatives here and none there
    f"special.{name}": "Bessel functions"
    for name in (
        "bessel_j0 bessel_j1 bessel_y0 bessel_y1 modified_bessel_i0 modified_bessel_i1 modified_bessel_k0 "
        "modified_bessel_k1 scaled_modified_bessel_k0 scaled_modified_bessel_k1"
    ).split()
}


def differences(name: str, info: Any, count: int) -> Iterator[str]:
    """For each result whether it requires a gradient, and is made by a node, where all that can require one does."""
    import torch

    found = list(itertools.islice(info.sample_inputs("cpu", torch.float64, requires_grad=False), count))
    for sample in found:
        for x in torch_samples.leaves((sample.input, sample.args, sample.kwargs), torch.Tensor):
            if x.is_floating_point() and x.is_leaf and x.layout == torch.strided:
                x.requires_grad_()
        try:
            given = torch_samples.translated([sample.input, sample.args, sample.kwargs])
        except (NotImplementedError, AttributeError):
            continue
        for variant, (theirs, here) in torch_samples.variants(name, info).items():
            if theirs is None or here is None or (variant == "in place" and not isinstance(sample.input, torch.Tensor)):
                continue

            def tracked(t: Any, function: Any, x: Any, args: Any, options: Any, variant: str = variant) -> Any:
                made = function(x.clone() if variant == "in place" else x, *args, **options)
                return [(bool(y.requires_grad), y.grad_fn is not None) for y in torch_samples.leaves(made, t.Tensor)]

            try:
                expected = tracked(torch, theirs, sample.input, sample.args, sample.kwargs)
            except (RuntimeError, TypeError, IndexError):
                continue
            got = tracked(ours, here, *given)
            if got != expected:
                yield f"{name} {variant}: PyTorch {expected}, here {got}"


@pytest.mark.slow
@pytest.mark.peers
def test_what_requires_a_gradient_in_pytorch_requires_one_here() -> None:
    torch = pytest.importorskip("torch")
    counted = 0
    with Each() as each, warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        for name, info in torch_samples.operations().items():
            known = name in torch_samples.KNOWN or name in OTHER or not torch_samples.here(name, info)
            if not known and info.supports_dtype(torch.float64, "cpu"):
                with each(name):
                    assert [*differences(name, info, 12)] == []
                counted += 1
    assert counted > 400


def same(program: Any) -> None:
    """A program gives the same under both libraries."""
    torch = pytest.importorskip("torch")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert program(ours) == program(torch)


def leaf(t: Any, values: Any) -> Any:
    return t.tensor(values, dtype=t.float64, requires_grad=True)


def test_what_is_found_once_has_the_gradient_of_what_is_found_first() -> None:
    x = leaf(ours, [3.0, 1.0, 3.0, 2.0, 1.0])
    weights = ours.tensor([10.0, 20.0, 30.0], dtype=ours.float64)
    for found, expected in (
        (ours.unique(x), [30.0, 10.0, 0.0, 20.0, 0.0]),
        (ours.unique(x, return_inverse=True, return_counts=True, dim=0)[0], [30.0, 10.0, 0.0, 20.0, 0.0]),
        (x.unique_consecutive()[:3], [10.0, 20.0, 30.0, 0.0, 0.0]),
        (x.unique_consecutive(return_counts=True, dim=0)[0][:3], [10.0, 20.0, 30.0, 0.0, 0.0]),
    ):
        (got,) = ours.autograd.grad((found * weights).sum(), x)
        assert got.tolist() == expected


@pytest.mark.peers
def test_values_of_unique_are_those_of_pytorch() -> None:
    def program(t: Any) -> Any:
        out = []
        for values in ([3.0, 1.0, 3.0], [float("nan"), 1.0, float("nan")], [0.0, -0.0, 2.0], []):
            x = t.tensor(values, dtype=t.float64)
            for found in (t.unique(x, True, True, True), t.unique_consecutive(x, True, True)):
                out.append([str(part.tolist()) for part in found])
        x = t.tensor([[3, 1], [3, 1], [0, 2]])
        out += [[part.tolist() for part in t.unique(x, True, True, True, dim=d)] for d in (0, 1, None)]
        return [*out, t.unique(x > 1).tolist()]

    same(program)


@pytest.mark.peers
def test_weights_of_counts_have_gradients() -> None:
    torch = pytest.importorskip("torch")
    weights, places = leaf(ours, [1.0, 2.0, 3.0]), ours.tensor([0, 2, 2])
    count = ours.bincount(places, weights, 4)
    assert count.tolist() == [1.0, 0.0, 5.0, 0.0]
    (got,) = ours.autograd.grad((count * ours.tensor([1.0, 2.0, 3.0, 4.0])).sum(), weights)
    assert got.tolist() == [1.0, 3.0, 3.0]
    x = leaf(ours, [0.5, 2.5, 2.0])
    for density in (False, True):

        def sum_of(w: Any, t: Any = ours, density: bool = density) -> Any:
            where = t.tensor([0.5, 2.5, 2.0], dtype=t.float64)
            hist, edges = t.histogram(where, 2, weight=w, density=density)
            return (hist * t.tensor([2.0, 3.0], dtype=t.float64)).sum() + edges.sum()

        assert ours.autograd.gradcheck(sum_of, [weights])
        found = sum_of(torch.tensor(weights.tolist(), dtype=torch.float64), torch)
        assert abs(sum_of(weights).item() - found.item()) < 1e-12
        hist, edges = ours.histogram(x, 2, density=density)
        assert hist.requires_grad is density
        (got,) = ours.autograd.grad(edges.sum(), x)
        assert got.tolist() == [1.5, 1.5, 0.0]


@pytest.mark.peers
def test_coordinates_of_a_gradient_have_one() -> None:
    def program(t: Any) -> Any:
        x = leaf(t, [1.0, 2.0, 4.0, 3.0])
        at, step = leaf(t, [0.0, 1.0, 3.0, 3.5]), 0.5
        (one,) = t.gradient(x, spacing=(at,))
        two = t.gradient(x, spacing=step)[0]
        found = t.autograd.grad((one * t.arange(4)).sum() + two.sum(), (x, at))
        return [[round(v, 10) for v in g.tolist()] for g in found]

    same(program)


@pytest.mark.peers
def test_what_is_drawn_does_not_follow_its_parameters() -> None:
    def program(t: Any) -> Any:
        out = []
        x, y = leaf(t, [3.0, 1.0]), leaf(t, [0.5, 0.25])
        for made in (
            t.normal(x, y), t.normal(x, 1.0), t.normal(x.half(), y.half()), t.normal(0.0, y), t.poisson(x),
            t.bernoulli(y), (x * 1).bernoulli_(y),
        ):  # fmt: skip
            found = t.autograd.grad(made.sum(), (x, y), allow_unused=True)
            out.append(
                (made.shape, str(made.dtype), made.requires_grad, [g is not None and bool(g.any()) for g in found])
            )
        return out

    same(program)


@pytest.mark.peers
def test_norms_of_order_zero_have_the_gradient_zero() -> None:
    def program(t: Any) -> Any:
        x, y = leaf(t, [[0.0, 2.0], [3.0, 4.0]]), leaf(t, [[0.0, 1.0], [0.0, 5.0]])
        out = []
        for made in (
            t.norm(x, 0), t.norm(x, 0, 1), t.linalg.vector_norm(x, 0, 0, True), t.linalg.norm(x, 0, 0),
            t.cdist(x, y, 0.0), t.nn.functional.pdist(x, 0.0),
        ):  # fmt: skip
            (g,) = t.autograd.grad(made.sum(), x, allow_unused=t is not ours)
            out.append((made.tolist(), made.requires_grad, g is not None and bool(g.any())))
        return out

    same(program)


@pytest.mark.peers
def test_truths_in_the_place_of_numbers_keep_the_history() -> None:
    torch = pytest.importorskip("torch")
    names = "eq_ ne_ lt_ le_ gt_ ge_ logical_and_ logical_or_ logical_xor_ logical_not_".split()
    for name in names:
        for t in (ours, torch):
            x = leaf(t, [0.0, 2.0])
            y = x * 2
            getattr(y, name)(*([] if "not" in name else [t.ones(2, dtype=t.float64)]))
            assert y.requires_grad
            if t is ours or "logical" not in name:  # PyTorch passes the gradient on
                assert t.autograd.grad(y.sum(), x)[0].tolist() == [0.0, 0.0]
        with ours.no_grad():
            x = leaf(ours, [0.0, 2.0])
            assert getattr(x, name)(*([] if "not" in name else [1.0 if name[1] in "qetn" else x])) is x


@pytest.mark.peers
def test_a_number_that_is_a_tracked_tensor_is_refused() -> None:
    def program(t: Any) -> Any:
        x, out = leaf(t, 3.0), []
        for call in (
            lambda: t.full((2,), x), lambda: t.full_like(x, x), lambda: t.ones(2).new_full((2,), x),
        ):  # fmt: skip
            with pytest.raises(TypeError) as error:
                call()
            out.append(str(error.value).splitlines()[0])
        return [*out, t.full((2,), x.detach()).tolist()]

    same(program)


def test_ends_of_ranges_that_are_tracked_are_refused() -> None:
    x = leaf(ours, 3.0)
    for call in (lambda: ours.linspace(0.0, x, 3), lambda: ours.logspace(x, 4.0, 3)):
        with pytest.raises(TypeError, match="no gradient"):
            call()
        with ours.no_grad():
            assert not call().requires_grad
    assert ours.linspace(0.0, x.detach(), 3).tolist() == [0.0, 1.5, 3.0]


@pytest.mark.peers
def test_results_are_no_leaves_and_are_not_the_operand() -> None:
    def program(t: Any) -> Any:
        out = []
        for make in (
            lambda x: t.rot90(x, 4), lambda x: t.roll(x[:0], 0, 0),
            lambda x: t.nn.functional.adaptive_avg_pool2d(x[None], (None, None)), lambda x: t.softmax(x[:0], 0),
            lambda x: x.to("cpu", t.float64, True, True), lambda x: x.to(x, False, True),
        ):  # fmt: skip
            x = leaf(t, [[1.0, 2.0], [3.0, 4.0]])
            y = make(x)
            out.append((y is x, y.is_leaf, y.grad_fn is None))
            if y.numel():  # else it is what softmax saved
                y.mul_(2)
            out.append((x.tolist(), t.autograd.grad(y.sum(), x)[0].tolist()))
        return out

    same(program)


@pytest.mark.peers
def test_what_shares_memory_in_pytorch_shares_it_here() -> None:
    def program(t: Any) -> Any:
        out = []
        for make in (
            lambda x: t.atleast_1d(x), lambda x: t.atleast_2d(x), lambda x: t.atleast_3d(x), lambda x: t.ravel(x),
            lambda x: t.ravel(x.t()), lambda x: t.atleast_2d(x[0], x[0, 0])[0], lambda x: t.atleast_3d([x[0], x])[1],
            lambda x: t.meshgrid(x[0], x[1], indexing="ij")[0][:, 0], lambda x: x.double(),
            lambda x: t.meshgrid(x[0], x[1], indexing="xy")[1][:, 1], lambda x: x.to(t.float64, copy=True),
        ):  # fmt: skip
            x = leaf(t, [[1.0, 2.0], [3.0, 4.0]]) * 1
            y = make(x)
            x.mul_(2)
            out.append((tuple(y.shape), y.tolist(), x.tolist()))
        x = t.ones(2, 3, 2, 2)
        x.float(memory_format=t.channels_last).mul_(2)
        return [*out, x.sum().item()]

    same(program)


@pytest.mark.peers
def test_integers_and_tensors_without_axes_are_as_in_pytorch() -> None:
    def program(t: Any) -> Any:
        f, out = t.nn.functional, []
        whole = t.arange(-3, 9)
        for x in (
            f.relu6(whole),
            f.hardtanh(whole, -2, 4),
            f.threshold(whole, 1, 7),
            f.hardtanh(whole * 1.0, 2.0, 2.0),
        ):
            out.append((str(x.dtype), x.tolist()))
        x, y = leaf(t, 3.0), leaf(t, -2.0)
        zero = t.tensor(0)
        for made in (
            f.normalize(x, dim=0), f.cosine_similarity(x, y, dim=0), x.unfold(0, 1, 1), f.multi_margin_loss(x, zero),
            f.multilabel_margin_loss(x, zero), f.hardtanh(x, 2.0, 2.0),
        ):  # fmt: skip
            found = t.autograd.grad(made.sum(), (x, y), allow_unused=True)
            out.append((made.tolist(), [0.0 if g is None else g.item() for g in found]))
        return out

    same(program)


@pytest.mark.peers
def test_gradients_of_bags_are_divided_by_frequencies() -> None:
    torch = pytest.importorskip("torch")

    def rows_of(t: Any, bags: bool) -> Any:
        table, places = leaf(t, [[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]), t.tensor([[0, 2, 2], [1, 0, 2]])
        # PyTorch's bags divide by the frequencies of other rows, its embedding does not
        f, weights = t.nn.functional, t.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]], dtype=t.float64)
        if bags:
            made = f.embedding_bag(places, table, scale_grad_by_freq=True, mode="sum", per_sample_weights=weights)
            mean = f.embedding_bag(places, table, scale_grad_by_freq=True, mode="mean")
        else:
            made = (f.embedding(places, table, scale_grad_by_freq=True) * weights[..., None]).sum(1)
            mean = f.embedding(places, table, scale_grad_by_freq=True).mean(1)
        (found,) = t.autograd.grad((made**2).sum() + mean.sum(), table)
        return np.array([*made.tolist(), *mean.tolist(), *found.tolist()])

    np.testing.assert_allclose(rows_of(ours, True), rows_of(torch, False), rtol=1e-12)
