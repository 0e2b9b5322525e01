"""Functions of complex numbers that are mostly met with real ones: values and gradients are PyTorch's."""

from __future__ import annotations

import math
from typing import Any

import mpmath
import numpy as np
import pytest
from conftest import peer

import adjoint as ad

torch = peer("torch")
F = torch.nn.functional
pytestmark = pytest.mark.peers

_rng = np.random.default_rng(3)


def cplx(*shape: int) -> Any:
    return np.asarray(_rng.standard_normal(shape) + 1j * _rng.standard_normal(shape))


CASES: dict[str, tuple[Any, Any, int]] = {
    "sigmoid": (ad.nn.sigmoid, torch.sigmoid, 1),
    "expit": (ad.special.expit, torch.sigmoid, 1),
    "silu": (ad.nn.silu, F.silu, 1),
    "sinc": (ad.special.sinc, torch.sinc, 1),
    "logaddexp": (ad.logaddexp, torch.logaddexp, 2),
    "logcumsumexp": (lambda z: ad.logcumsumexp(z, axis=0), lambda z: torch.logcumsumexp(z, 0), 1),
    "rms_norm": (lambda z, w: ad.nn.rms_norm(z, 4, w[0]), lambda z, w: F.rms_norm(z, (4,), w[0]), 2),
    "tanhshrink": (ad.nn.tanhshrink, F.tanhshrink, 1),
    "softsign": (ad.nn.softsign, F.softsign, 1),
    "rsqrt": (ad.rsqrt, torch.rsqrt, 1),
    "logsumexp": (lambda z: ad.special.logsumexp(z, 1), lambda z: torch.logsumexp(z, 1), 1),
    "logsumexp, kept": (
        lambda z: ad.special.logsumexp(z, (0, 1), keepdims=True), lambda z: torch.logsumexp(z, (0, 1), True), 1
    ),
    "l1_loss": (ad.nn.l1_loss, F.l1_loss, 2),
    "l1_loss, weighted": (
        lambda x, y: ad.nn.l1_loss(x, y, weight=np.arange(12.0).reshape(3, 4)),
        lambda x, y: F.l1_loss(x, y, weight=torch.arange(12.0, dtype=torch.float64).reshape(3, 4)), 2
    ),
    "smooth_l1_loss": (
        lambda x, y: ad.nn.smooth_l1_loss(x, y, beta=0), lambda x, y: F.smooth_l1_loss(x, y, beta=0.0), 2
    ),
    "triplet_margin_loss": (ad.nn.triplet_margin_loss, F.triplet_margin_loss, 3),
    "triplet_margin_loss, swapped": (
        lambda *xs: ad.nn.triplet_margin_loss(*xs, p=3.0, swap=True, reduction="none"),
        lambda *xs: F.triplet_margin_loss(*xs, p=3.0, swap=True, reduction="none"), 3
    ),
    "triplet_margin_with_distance_loss": (
        lambda *xs: ad.nn.triplet_margin_with_distance_loss(*xs, distance_function=lambda x, y: abs(x - y).sum(-1)),
        lambda *xs: F.triplet_margin_with_distance_loss(*xs, distance_function=lambda x, y: abs(x - y).sum(-1)), 3
    ),
    "pairwise_distance": (ad.nn.pairwise_distance, F.pairwise_distance, 2),
    "normalize": (ad.nn.normalize, F.normalize, 1),
    "renorm": (lambda z: ad.renorm(z, 2, 0, 1.0), lambda z: torch.renorm(z, 2, 0, 1.0), 1),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_values_and_gradients(name: str) -> None:
    f, g, count = CASES[name]
    args = [cplx(3, 4) for _ in range(count)]
    leaves = [ad.tensor(z).require_grad() for z in args]
    theirs = [torch.tensor(z, requires_grad=name != "silu") for z in args]  # which has no derivative there
    out, other = f(*leaves), g(*theirs)
    assert str(out.dtype) == str(other.dtype).removeprefix("torch.")
    np.testing.assert_allclose(out.numpy(), other.detach().numpy(), rtol=1e-12)
    w = cplx(*out.shape) if out.dtype.kind == "c" else _rng.standard_normal(out.shape)
    grads = (out * w).real.sum().backward()
    expected = torch.autograd.grad((other * torch.tensor(w)).real.sum(), theirs) if name != "silu" else ()
    for z, slope in zip(leaves, expected, strict=name != "silu"):
        np.testing.assert_allclose(grads[z].numpy(), slope.resolve_conj().numpy(), rtol=1e-10, atol=1e-12)
    ad.testing.check_grads(f, tuple(args))


ONES = np.ones((3, 4))
# what PyTorch refuses too, or what gives complex numbers there: those are no losses
REFUSED: dict[str, Any] = {
    "mse_loss": (),
    "mse_loss weighted": {"weight": ONES},
    "huber_loss": (),
    "smooth_l1_loss": (),
    "binary_cross_entropy": (),
    "binary_cross_entropy_with_logits": (),
    "poisson_nll_loss": (),
    "gaussian_nll_loss": {"var": ONES},
    "kl_div": {"reduction": "sum"},
    "soft_margin_loss": (),
    "hinge_embedding_loss": (),
    "cosine_similarity": (),
    "cosine_embedding_loss": {"target": ONES[:, 0]},
    "margin_ranking_loss": {"target": ONES},
}


@pytest.mark.parametrize("name", REFUSED)
def test_losses_that_are_not_of_complex_numbers(name: str) -> None:
    function, options = name.split()[0], dict(REFUSED[name])
    given = {key: v if isinstance(v, str) else torch.tensor(v) for key, v in options.items()}
    x, y = (torch.tensor(cplx(3, 4), requires_grad=True) for _ in range(2))
    try:
        theirs = getattr(F, function)(x, y, **given)
    except (NotImplementedError, RuntimeError):
        pass
    else:
        assert theirs.is_complex()
    for one, other in [(cplx(3, 4), cplx(3, 4)), (cplx(3, 4), ONES), (ONES, cplx(3, 4))]:
        with pytest.raises(ad.errors.DtypeError, match=rf"{function}: expected real values, received complex128; "):
            getattr(ad.nn, function)(ad.tensor(one), other, **options)


def test_large_parts_do_not_overflow() -> None:
    z = np.array([1000 + 1j, -1000 + 1j, 1000.0, -1000.0, 0])
    with np.errstate(all="raise", under="ignore"):
        found = ad.special.expit(ad.tensor(z)).numpy()
        total = ad.special.logsumexp(ad.tensor(z[[0, 0, 1]])).item()
    np.testing.assert_allclose(found, [1, 0, 1, 0, 0.5], atol=1e-300)
    np.testing.assert_allclose(total, 1000 + math.log(2) + 1j, rtol=1e-14)
    assert ad.special.logsumexp(ad.zeros((0,), dtype=ad.complex128)).item() == -math.inf
    with pytest.raises(ad.errors.DtypeError):
        ad.special.logsumexp(ad.tensor(z), b=2.0)


def test_logaddexp_of_infinite_and_large_parts() -> None:
    x = np.array([-math.inf, -math.inf, math.inf, 1000 + 2j, -1000 + 2j, 3.0], complex)
    y = np.array([-math.inf, 2 + 1j, 1 + 1j, 1000 - 1j, 1000.0, -math.inf], complex)
    leaves = [ad.tensor(z).require_grad() for z in (x, y)]
    out = ad.logaddexp(*leaves)
    expected = torch.logaddexp(torch.tensor(x), torch.tensor(y)).numpy()
    np.testing.assert_allclose(out.numpy(), expected, rtol=1e-14)
    grads = out.real[1:].sum().backward()
    assert all([np.isfinite(grads[z].numpy()).all() for z in leaves])
    assert ad.logaddexp(ad.tensor(x), 1).shape == ad.logaddexp(1j, ad.tensor(x)).shape == (6,)
    assert ad.logcumsumexp(ad.tensor(x[:0, None]), axis=0).shape == (0, 1)


@pytest.mark.parametrize("z", [0.0, 1e-9j, 0.3 - 0.2j, 0.63, 0.64j, 2.0 + 1.0j, -3.0])
def test_derivatives_of_sinc_of_complex_numbers(z: complex) -> None:
    f: Any = ad.special.sinc
    point = ad.tensor(z, dtype=ad.complex128)
    for order in range(4):
        with mpmath.workdps(40):
            exact = complex(mpmath.diff(lambda w: mpmath.sinc(mpmath.pi * w), mpmath.mpmathify(z), order))
        np.testing.assert_allclose(f(point).item(), exact, rtol=1e-13, atol=1e-15 * 10**order)
        f = lambda w, f=f: ad.jvp(f, (w,), (ad.ones_like(w),))[1]
