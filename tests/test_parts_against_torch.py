"""Parts, orders and distances: values and gradients are PyTorch's, in float64."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from conftest import peer
from each import Each

import adjoint as ad

torch = peer("torch")
pytestmark = pytest.mark.peers

_rng = np.random.default_rng(17)
NAN, INF = np.nan, np.inf


def normal(*shape: int) -> Any:
    return np.asarray(_rng.standard_normal(shape))


def ints(*shape: int) -> Any:
    return _rng.integers(-3, 4, shape)


A, N, C, CUBE, LINE, EMPTY = (
    normal(3, 4),
    ints(3, 4),
    normal(3, 4) * 1j + 1,
    normal(2, 3, 4),
    normal(7),
    np.zeros((0, 3)),
)
HOLED = np.array([0.0, 2.0, NAN, 1.0, 2.0, 2.0, NAN])
TIED = ints(4, 6)

# ours, PyTorch's, arguments that may be differentiated
TORCHS: dict[str, tuple[Callable[..., Any], str, list[Any]]] = {
    **{
        f"chunk, {n}": (lambda x, n=n: ad.chunk(x, n, axis=1), f"lambda x: torch.chunk(x, {n}, 1)", [A, EMPTY])
        for n in (1, 2, 3, 9)
    },
    "split_with_sizes": (
        lambda x: ad.split_with_sizes(x, (1, 0, 3), axis=-1), "lambda x: torch.split(x, [1, 0, 3], -1)", [A, CUBE]
    ),
    "narrow": (lambda x: ad.narrow(x, 1, -3, 2), "lambda x: torch.narrow(x, 1, -3, 2)", [A, CUBE]),
    "unflatten": (lambda x: ad.unflatten(x, -1, (2, -1)), "lambda x: x.unflatten(-1, (2, -1))", [A, CUBE]),
    **{
        f"diag_embed, {k}, {axes}": (
            lambda x, k=k, axes=axes: ad.diag_embed(x, k, *axes), f"lambda x: torch.diag_embed(x, {k}, *{axes})",
            [A, CUBE, LINE, EMPTY],
        )
        for k in (0, 1, -2) for axes in ((-2, -1), (0, 1), (-1, 0))
    },
    "cartesian_prod": (
        ad.cartesian_prod, "torch.cartesian_prod", [(LINE, LINE[:2], LINE[:3]), (LINE[:1],), (LINE, LINE[:0])]
    ),
    **{
        f"combinations, {r}, {again}": (
            lambda x, r=r, again=again: ad.combinations(x, r, again),
            f"lambda x: torch.combinations(x, {r}, {again})", [LINE, LINE[:2]],
        )
        for r in (1, 2, 3) for again in (False, True)
    },
    **{
        f"kthvalue, {k}, {keep}": (
            lambda x, k=k, keep=keep: ad.kthvalue(x, k, axis=1, keepdims=keep),
            f"lambda x: torch.kthvalue(x, {k}, 1, {keep})", [A, CUBE],
        )
        for k in (1, 3) for keep in (False, True)
    },
    "kthvalue, nan": (lambda x: ad.kthvalue(x, 7)[0], "lambda x: torch.kthvalue(x, 7)[0]", [HOLED]),
    "mode": (lambda x: ad.mode(x, axis=1), "lambda x: torch.mode(x, 1)", [TIED * 1.0, A]),
    "mode, kept": (lambda x: ad.mode(x, axis=0, keepdims=True), "lambda x: torch.mode(x, 0, True)", [TIED * 1.0]),
    "max": (lambda x: ad.max(x, axis=1, return_indices=True), "lambda x: torch.max(x, 1)", [A, TIED * 1.0, CUBE]),
    "min, kept": (lambda x: ad.min(x, axis=-1, keepdims=True, return_indices=True), "lambda x: torch.min(x, -1, True)",
        [A, HOLED, TIED * 1.0]),
    **{
        f"{f}, {axis}": (
            lambda x, f=f, axis=axis: getattr(ad, f)(x, axis, correction=1),
            f"lambda x: torch.{f}(x, dim={axis}, correction=1)", [A, C, CUBE],
        )
        for f in ("var_mean", "std_mean") for axis in (None, 0, (0, 1))
    },
    "masked_scatter": (
        lambda x, v: ad.masked_scatter(x, A > 0, v), "lambda x, v: x.masked_scatter(torch.tensor(A > 0), v)",
        [(A, CUBE)],
    ),
    "addmm": (
        lambda c, x, y: ad.addmm(c, x, y, beta=0.5, alpha=2),
        "lambda c, x, y: torch.addmm(c, x, y, beta=0.5, alpha=2)", [(normal(3, 3), A, A.T), (LINE[:3], A, A.T)],
    ),
    **{
        f"cdist, {p}": (lambda x, y, p=p: ad.cdist(x, y, p), f"lambda x, y: torch.cdist(x, y, {p})",
            [(A, normal(5, 4)), (CUBE, normal(2, 1, 4)), (A, normal(0, 4))])
        for p in (1.0, 2.0, 3.5, INF)
    },
    **{
        f"renorm, {p}": (
            lambda x, p=p: ad.renorm(x, p, 1, 1.5), f"lambda x: torch.renorm(x, {p}, 1, 1.5)", [A, CUBE, C],
        )
        for p in (1.0, 2.0, 3.0)
    },
    "logcumsumexp": (lambda x: ad.logcumsumexp(x, axis=1), "lambda x: torch.logcumsumexp(x, 1)",
        [A, A * 300, CUBE, EMPTY]),
    "rsqrt": (ad.rsqrt, "torch.rsqrt", [abs(A), np.array([INF, 1e-300])]),
    **{
        f"put_along_axis, {mode}, {own}": (
            lambda x, v, mode=mode, own=own: ad.put_along_axis(x, PLACES, v, axis=0, mode=mode, include_self=own),
            f"lambda x, v: x.scatter_reduce(0, torch.tensor(PLACES), v, '{reduce}', include_self={own})",
            # what ties for an extreme without itself gets too little there
            [(A, normal(5, 4)), (TIED[:3, :4] * 1.0, TIED[:, :4].repeat(2, 0)[:5] * 1.0)][: 2 if own else 1],
        )
        for mode, reduce in (("add", "sum"), ("multiply", "prod"), ("max", "amax"), ("min", "amin"), ("mean", "mean"))
        for own in (True, False)
    },
}  # fmt: skip
PLACES = np.asarray([[0, 0, 2, 2], [0, 2, 2, 2], [1, 0, 0, 2], [0, 0, 0, 2], [0, 2, 0, 2]])


@pytest.mark.parametrize("name", TORCHS)
def test_values_and_gradients_are_torchs(name: str) -> None:
    f, text, calls = TORCHS[name]
    g = eval(text, {"torch": torch, "nan": NAN, "inf": INF, "A": A, "PLACES": PLACES})
    for args in [args if isinstance(args, tuple) else (args,) for args in calls]:
        leaves = [ad.asarray(x).require_grad() for x in args]
        theirs = [torch.tensor(x, requires_grad=True) for x in args]
        out, other = f(*leaves), g(*theirs)
        out, other = ((x,) if not isinstance(x, (tuple, list)) else tuple(x) for x in (out, other))
        assert len(out) == len(other)
        weights = [normal(*x.shape) for x in out]
        for x, y in zip(out, other, strict=True):
            assert x.shape == tuple(y.shape)
            np.testing.assert_allclose(x.numpy(), y.detach().numpy(), rtol=1e-12, atol=1e-13)
        loss = sum((x * w).sum() for x, w in zip(out, weights, strict=True) if x.dtype.kind in "fc")
        total = sum((x * torch.tensor(w)).sum() for x, w in zip(other, weights, strict=True) if x.requires_grad)
        grads = loss.backward()
        for x, y in zip(leaves, torch.autograd.grad(total.real, theirs), strict=True):
            np.testing.assert_allclose(grads[x].numpy(), y.numpy(), rtol=1e-9, atol=1e-11)


def test_consecutive_ones_are_torchs() -> None:
    with Each() as each:
        for x, axis in itertools.product((TIED, TIED // 3, TIED * 1.0, TIED[0]), (None, 0, 1, -1)):
            with each(x.shape, axis):
                if axis == 1 and x.ndim == 1:
                    continue
                theirs = torch.unique_consecutive(torch.tensor(x), return_inverse=True, return_counts=True, dim=axis)
                ours = ad.unique_consecutive(ad.asarray(x), return_inverse=True, return_counts=True, axis=axis)
                for a, b in zip(ours, theirs, strict=True):
                    np.testing.assert_array_equal(a.numpy(), b.numpy())


def test_lines_are_searched_as_torch_does() -> None:
    lines, values = np.sort(normal(2, 3, 6), axis=-1), normal(2, 3, 4)
    order = np.asarray(_rng.permuted(np.tile(np.arange(6), (2, 3, 1)), axis=-1))
    mixed = np.empty_like(lines)
    np.put_along_axis(mixed, order, lines, -1)
    for side in ("left", "right"):
        theirs = torch.searchsorted(torch.tensor(lines), torch.tensor(values), side=side).numpy()
        np.testing.assert_array_equal(ad.searchsorted(lines, values, side).numpy(), theirs)
        np.testing.assert_array_equal(ad.searchsorted(mixed, values, side, order).numpy(), theirs)
        batched = ad.vmap(lambda x, v, side=side: ad.searchsorted(x, v, side))(lines, values)
        np.testing.assert_array_equal(batched, theirs)
        shared = ad.vmap(lambda v, side=side: ad.searchsorted(lines[0], v, side))(values)
        np.testing.assert_array_equal(
            shared, torch.searchsorted(torch.tensor(lines[:1].repeat(2, 0)), torch.tensor(values), side=side)
        )


def test_means_of_integers_are_rounded_down() -> None:
    x, v = N[0].copy(), N[1:].reshape(-1)
    places = _rng.integers(0, 3, v.shape)
    for own in (True, False):
        theirs = torch.tensor(x).scatter_reduce(0, torch.tensor(places), torch.tensor(v), "mean", include_self=own)
        assert ad.scatter(x, (places,), v, mode="mean", include_self=own).tolist() == theirs.tolist()
