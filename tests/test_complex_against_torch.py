"""Functions of complex numbers that are mostly met with real ones: values and gradients are PyTorch's."""

from __future__ import annotations

import math
from typing import Any

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
    "tanhshrink": (ad.nn.tanhshrink, F.tanhshrink, 1),
    "softsign": (ad.nn.softsign, F.softsign, 1),
    "rsqrt": (ad.rsqrt, torch.rsqrt, 1),
    "logsumexp": (lambda z: ad.special.logsumexp(z, 1), lambda z: torch.logsumexp(z, 1), 1),
    "logsumexp, kept": (
        lambda z: ad.special.logsumexp(z, (0, 1), keepdims=True), lambda z: torch.logsumexp(z, (0, 1), True), 1
    ),
    "l1_loss": (ad.nn.l1_loss, F.l1_loss, 2),
    "pairwise_distance": (ad.nn.pairwise_distance, F.pairwise_distance, 2),
    "normalize": (ad.nn.normalize, F.normalize, 1),
    "renorm": (lambda z: ad.renorm(z, 2, 0, 1.0), lambda z: torch.renorm(z, 2, 0, 1.0), 1),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_values_and_gradients(name: str) -> None:
    f, g, count = CASES[name]
    args = [cplx(3, 4) for _ in range(count)]
    leaves = [ad.tensor(z).require_grad() for z in args]
    theirs = [torch.tensor(z, requires_grad=True) for z in args]
    out, other = f(*leaves), g(*theirs)
    assert str(out.dtype) == str(other.dtype).removeprefix("torch.")
    np.testing.assert_allclose(out.numpy(), other.detach().numpy(), rtol=1e-12)
    w = cplx(*out.shape) if out.dtype.kind == "c" else _rng.standard_normal(out.shape)
    grads = (out * w).real.sum().backward()
    for z, expected in zip(leaves, torch.autograd.grad((other * torch.tensor(w)).real.sum(), theirs), strict=True):
        np.testing.assert_allclose(grads[z].numpy(), expected.resolve_conj().numpy(), rtol=1e-10, atol=1e-12)
    ad.testing.check_grads(f, tuple(args))


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
