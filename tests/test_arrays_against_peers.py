"""Gradients of array functions are those of PyTorch and JAX, in float64."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from conftest import peer

import adjoint as ad

torch = peer("torch")
jax = peer("jax")
jnp = jax.numpy
pytestmark = pytest.mark.peers

_rng = np.random.default_rng(11)


def normal(*shape: int) -> Any:
    return np.asarray(_rng.standard_normal(shape))


A, B, LINE, KNOTS = normal(4, 5), normal(4, 5), normal(9), np.sort(normal(6))
TIED = _rng.integers(0, 3, (4, 5)) * 1.0
ZEROS = np.where(_rng.uniform(size=(4, 5)) < 0.4, 0.0, A)
HOLED = np.where(_rng.uniform(size=(4, 5)) < 0.3, np.nan, A)
PLACES = _rng.integers(0, 4, (3, 5))
SEGMENTS = np.array([2, 0, 2, 2])


def gradients(f: Callable[..., Any], args: tuple[Any, ...], weights: Any) -> list[Any]:
    leaves = [ad.tensor(x).require_grad() for x in args]
    grads = (f(*leaves) * weights).sum().backward()
    return [grads[x].numpy() for x in leaves]


# ours, theirs, arguments
TORCH: dict[str, tuple[Callable[..., Any], Callable[..., Any], tuple[Any, ...]]] = {
    "cummax": (lambda x: ad.cummax(x, axis=1)[0], lambda x: torch.cummax(x, 1)[0], (A,)),
    "cummax, ties": (lambda x: ad.cummax(x, axis=1)[0], lambda x: torch.cummax(x, 1)[0], (TIED,)),
    "cummin, ties": (lambda x: ad.cummin(x, axis=0)[0], lambda x: torch.cummin(x, 0)[0], (TIED,)),
    **{
        f"quantile, {method}": (
            lambda x, method=method: ad.quantile(x, [0.1, 0.3, 0.5], axis=1, method=method),
            lambda x, method=method: torch.quantile(
                x, torch.tensor([0.1, 0.3, 0.5], dtype=torch.float64), dim=1, interpolation=method
            ),
            (A,),
        )
        for method in ("linear", "lower", "higher", "midpoint", "nearest")
    },
    "nanquantile": (
        lambda x: ad.nanquantile(x, 0.3, axis=1),
        lambda x: torch.nanquantile(x, 0.3, dim=1),
        (HOLED,),
    ),
    "nansum": (lambda x: ad.nansum(x, axis=0), lambda x: torch.nansum(x, 0), (HOLED,)),
    "nanmean": (lambda x: ad.nanmean(x, axis=1), lambda x: torch.nanmean(x, 1), (HOLED,)),
    **{
        f"put_along_axis, {mode}, {kind}": (
            lambda x, v, mode=mode: ad.put_along_axis(x, PLACES, v, axis=0, mode=mode),
            lambda x, v, reduce=reduce: x.scatter_reduce(0, torch.tensor(PLACES), v, reduce),
            args,
        )
        for mode, reduce in (("add", "sum"), ("multiply", "prod"), ("max", "amax"), ("min", "amin"))
        for kind, args in {"distinct": (A, B[:3]), "ties": (TIED, TIED[1:]), "zeros": (ZEROS, ZEROS[:3])}.items()
    },
    "gradient": (
        lambda x: ad.gradient(x, axis=1, edge_order=2),
        lambda x: torch.gradient(x, dim=1, edge_order=2)[0],
        (A,),
    ),
    "gradient, uneven": (
        lambda x: ad.gradient(x, KNOTS[:5], axis=1),
        lambda x: torch.gradient(x, spacing=(torch.tensor(KNOTS[:5]),), dim=1)[0],
        (A,),
    ),
    "trapezoid": (lambda y, x: ad.trapezoid(y, x), lambda y, x: torch.trapezoid(y, x), (A, B)),
    "cumulative_trapezoid": (ad.cumulative_trapezoid, torch.cumulative_trapezoid, (A, B)),
    "diag": (lambda x: ad.diag(x, k=1), lambda x: torch.diag(x, 1), (LINE,)),
    "diagonal": (lambda x: ad.diagonal(x, -1), lambda x: torch.diagonal(x, -1), (A,)),
    "cov": (ad.cov, torch.cov, (A,)),
    "cov, weights": (
        lambda x, w: ad.cov(x, aweights=w, fweights=[1, 2, 1, 1, 3]),
        lambda x, w: torch.cov(x, aweights=w, fweights=torch.tensor([1, 2, 1, 1, 3])),
        (A, abs(normal(5))),
    ),
    "corrcoef": (ad.corrcoef, torch.corrcoef, (A,)),
    "lerp": (ad.lerp, torch.lerp, (A, B, normal(5))),
    "fmod": (ad.fmod, torch.fmod, (A * 5, B)),
    "windows": (lambda x: ad.sliding_window_view(x, 3)[::2], lambda x: x.unfold(0, 3, 2), (LINE,)),
    "rot90": (lambda x: ad.rot90(x), lambda x: torch.rot90(x), (A,)),
    "nan_to_num": (ad.nan_to_num, torch.nan_to_num, (HOLED,)),
    "correlate": (
        ad.correlate,
        lambda a, v: torch.nn.functional.conv1d(a[None, None], v[None, None])[0, 0],
        (LINE, LINE[:3]),
    ),
}


@pytest.mark.parametrize("name", TORCH)
def test_gradients_are_torchs(name: str) -> None:
    f, g, args = TORCH[name]
    tensors = [torch.tensor(x, requires_grad=True) for x in args]
    out = g(*tensors)
    weights = normal(*out.shape)
    (out * torch.tensor(weights)).sum().backward()
    ours = f(*[ad.tensor(x) for x in args])
    np.testing.assert_allclose(ours.numpy(), out.detach().numpy(), rtol=1e-12, atol=1e-13)
    for x, y in zip(gradients(f, args, weights), tensors, strict=True):
        np.testing.assert_allclose(x, y.grad.numpy(), rtol=1e-10, atol=1e-11)


_SEGMENTS = {name: getattr(jax.ops, name) for name in ("segment_sum", "segment_max", "segment_min")}
JAX: dict[str, tuple[Callable[..., Any], Callable[..., Any], tuple[Any, ...]]] = {
    "interp": (ad.interp, lambda *a: jnp.interp(*a), (A, KNOTS, LINE[:6])),
    "interp, period": (
        lambda x, xp, fp: ad.interp(x, xp, fp, period=5.0),
        lambda x, xp, fp: jnp.interp(x, xp, fp, period=5.0),
        (A, KNOTS, LINE[:6]),
    ),
    **{
        f"{name}, {mode}": (
            lambda a, v, name=name, mode=mode: getattr(ad, name)(a, v, mode=mode),
            lambda a, v, name=name, mode=mode: getattr(jnp, name)(a, v, mode=mode),
            args,
        )
        for name in ("convolve", "correlate")
        for mode in ("full", "same", "valid")
        for args in ((LINE, KNOTS[:4]), (LINE[:3], KNOTS))
    },
    **{
        name: (
            lambda x, name=name: getattr(ad, name)(x, SEGMENTS, 3)[::2],
            lambda x, f=f: f(x, SEGMENTS, 3)[::2],
            (A,),
        )
        for name, f in _SEGMENTS.items()
    },
    **{
        f"scatter, {mode}": (
            lambda x, v, mode=mode: ad.scatter(x, ([[0], [2]], [1, 1, 3]), v, mode=mode),
            lambda x, v, how=how: getattr(x.at[np.array([[0], [2]]), np.array([1, 1, 3])], how)(v),
            (A, B[:2, :3]),
        )
        for mode, how in (("add", "add"), ("max", "max"), ("min", "min"))
    },
    "polyval": (ad.polyval, lambda p, x: jnp.polyval(p, x), (KNOTS, A)),
    "median": (lambda x: ad.median(x, axis=0), lambda x: jnp.median(x, axis=0), (A,)),
    "nanmedian": (lambda x: ad.nanmedian(x, axis=1), lambda x: jnp.nanmedian(x, axis=1), (HOLED,)),
    "nanstd": (lambda x: ad.nanstd(x, axis=1), lambda x: jnp.nanstd(x, axis=1), (HOLED,)),
    "nanvar": (lambda x: ad.nanvar(x, axis=1, correction=1), lambda x: jnp.nanvar(x, axis=1, ddof=1), (HOLED,)),
    "nanprod": (lambda x: ad.nanprod(x, axis=1), lambda x: jnp.nanprod(x, axis=1), (HOLED,)),
    "nanmax": (lambda x: ad.nanmax(x, axis=1), lambda x: jnp.nanmax(x, axis=1), (HOLED,)),
    "unwrap": (ad.unwrap, lambda x: jnp.unwrap(x), (A * 6,)),
    "histogram": (
        lambda w: ad.histogram(LINE, 4, weights=w)[0],
        lambda w: jnp.histogram(LINE, 4, weights=w)[0],
        (normal(9),),
    ),
    "average": (
        lambda x, w: ad.average(x, axis=1, weights=w),
        lambda x, w: jnp.average(x, axis=1, weights=w),
        (A, abs(B)),
    ),
    "select": (
        lambda x, y: ad.select([x > 0, x > -1], [x * y, y * y], 2.0),
        lambda x, y: jnp.select([x > 0, x > -1], [x * y, y * y], 2.0),
        (A, B),
    ),
    "block": (lambda x, y: ad.block([[x, y], [y, x]]), lambda x, y: jnp.block([[x, y], [y, x]]), (A, B)),
    "insert": (
        lambda x, v: ad.insert(x, 2, v, axis=1),
        lambda x, v: jnp.insert(x, 2, v, axis=1),
        (A, normal(4)),
    ),
    "ptp": (lambda x: ad.ptp(x, axis=1), lambda x: jnp.ptp(x, axis=1), (A,)),
}


@pytest.mark.parametrize("name", JAX)
def test_gradients_are_jaxs(name: str) -> None:
    f, g, args = JAX[name]
    with jax.enable_x64(True):
        values, pull = jax.vjp(g, *[jnp.asarray(x) for x in args])
        weights = normal(*values.shape)
        theirs = [np.asarray(x) for x in pull(jnp.asarray(weights))]
        values = np.asarray(values)
    np.testing.assert_allclose(f(*[ad.tensor(x) for x in args]).numpy(), values, rtol=1e-12, atol=1e-13)
    for x, y in zip(gradients(f, args, weights), theirs, strict=True):
        np.testing.assert_allclose(x, y, rtol=1e-10, atol=1e-11)
