"""Random tensors: reproducible, of the promised distributions, and differentiable in their parameters."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import adjoint as ad

N = 40_000


def draws() -> list[Any]:
    """One of each kind."""
    return [
        ad.random.uniform((2, 3)), ad.random.normal(4, dtype=ad.float64), ad.random.integers(-3, 9, 5),
        ad.random.bernoulli(0.3, (2, 2)), ad.random.permutation(6), ad.random.uniform(), ad.random.normal((0, 2)),
    ]  # fmt: skip


def test_a_seed_starts_the_sequence_anew(device: Any) -> None:
    ad.random.seed(7)
    first = [x.tolist() for x in draws()]
    again = [x.tolist() for x in draws()]
    assert first[0] != again[0]
    ad.random.seed(7)
    assert [x.tolist() for x in draws()] == first
    device.seed(7)
    assert [x.tolist() for x in draws()] == first
    ad.random.seed(8)
    assert ad.random.uniform((2, 3)).tolist() != first[0]


def test_every_level_and_leaf_draws_the_same_numbers() -> None:
    found = []
    for name in ("numpy", "autodiff<numpy>", "autodiff<autodiff<numpy>>", "reference"):
        with ad.use_device(name):
            ad.random.seed(11)
            found.append([x.numpy() for x in draws()])
    for others in found[1:]:
        for x, y in zip(found[0], others, strict=True):
            np.testing.assert_allclose(x, y, rtol=1e-6)
            assert x.dtype == y.dtype


def test_the_sequence_belongs_to_the_leaf() -> None:
    """Levels over one leaf share its sequence, so that no two draws are the same by accident."""
    ad.NumPy().seed(3)
    a = ad.random.uniform(4, device="numpy")
    b = ad.random.uniform(4, device="autodiff<numpy>")
    ad.NumPy().seed(3)
    assert a.tolist() == ad.random.uniform(4, device="autodiff<numpy>").tolist()
    assert b.tolist() == ad.random.uniform(4, device="numpy").tolist()
    assert a.tolist() != b.tolist()


def test_a_seed_is_of_one_leaf() -> None:
    ad.random.seed(3)
    ad.random.seed(3, "reference")
    first = ad.random.uniform(4, device="reference").tolist()
    ad.random.seed(3, ad.NumPy())
    assert ad.random.uniform(4, device="autodiff<reference>").tolist() != first  # where it was
    ad.random.seed(3, device="autodiff<reference>")
    assert ad.random.uniform(4, device="reference").tolist() == first
    with pytest.raises(ad.errors.DeviceError, match="'abacus'"):
        ad.random.seed(3, "abacus")


@pytest.mark.parametrize("dtype", [ad.float16, ad.float32, ad.float64])
@pytest.mark.parametrize("device", ["numpy", "reference"])
def test_uniform_numbers_are_below_one(dtype: Any, device: str) -> None:
    ad.random.seed(0, device)
    x = ad.random.uniform(N, dtype=dtype, device=device).numpy().astype(np.float64)
    assert x.min() >= 0
    assert x.max() < 1
    assert abs(x.mean() - 0.5) < 0.005
    assert abs(x.var() - 1 / 12) < 0.005


def test_without_a_seed_sequences_differ() -> None:
    class Other(ad.NumPy):
        pass

    class Another(ad.NumPy):
        pass

    assert ad.random.uniform(4, device=Other()).tolist() != ad.random.uniform(4, device=Another()).tolist()


def test_draws_are_constants(device: Any) -> None:
    for x in draws():
        assert not x.is_tracked()
        assert x.device is device


def test_dtypes_and_shapes() -> None:
    assert ad.random.uniform().shape == ()
    assert ad.random.uniform(3).dtype is ad.float32
    for dtype in (ad.float16, ad.float32, ad.float64):
        assert ad.random.uniform((2, 3), dtype=dtype).dtype is dtype
        assert ad.random.normal((2, 3), dtype=dtype).dtype is dtype
    for dtype in (ad.int8, ad.uint8, ad.int64):
        assert ad.random.integers(0, 100, (2,), dtype=dtype).dtype is dtype
    assert ad.random.bernoulli(0.5, 3).dtype is ad.bool
    assert ad.random.bernoulli(ad.full((2, 3), 0.5)).shape == (2, 3)
    assert ad.random.permutation(5).dtype is ad.int64


def test_uniform() -> None:
    ad.random.seed(0)
    x = ad.random.uniform(N, low=-1.0, high=3.0, dtype=ad.float64).numpy()
    assert -1 <= x.min() < -0.99
    assert 2.99 < x.max() < 3
    assert abs(x.mean() - 1) < 0.03
    assert abs(x.var() - 16 / 12) < 0.03
    bounds = ad.random.uniform((3, 2), low=ad.tensor([0.0, 10.0]), high=ad.tensor([1.0, 11.0])).numpy()
    assert (bounds[:, 0] < 1).all()
    assert (bounds[:, 1] >= 10).all()


def test_normal() -> None:
    ad.random.seed(0)
    x = ad.random.normal(N, mean=2.0, std=0.5, dtype=ad.float64).numpy()
    assert abs(x.mean() - 2) < 0.02
    assert abs(x.std() - 0.5) < 0.01
    standard = (x - 2) / 0.5
    assert abs((standard**3).mean()) < 0.1
    assert abs((standard**4).mean() - 3) < 0.2


def test_numbers_are_drawn_beside_their_parameters() -> None:
    bound = ad.tensor([1.0, 2.0], device="reference")
    for draw in (
        lambda: ad.random.uniform(2, low=bound),
        lambda: ad.random.uniform(2, high=bound),
        lambda: ad.random.normal(2, mean=bound),
        lambda: ad.random.normal(2, std=bound),
        lambda: ad.random.gamma(bound),
    ):
        assert draw().device is bound.device


def test_integers() -> None:
    ad.random.seed(0)
    x = ad.random.integers(-2, 4, N).numpy()
    counts = np.bincount(x + 2, minlength=6)
    assert counts.sum() == N
    assert (abs(counts - N / 6) < 5 * math.sqrt(N / 6)).all()
    assert set(ad.random.integers(2, shape=100).tolist()) == {0, 1}
    assert ad.random.integers(-128, 128, 4, dtype=ad.int8).dtype is ad.int8


def test_bernoulli() -> None:
    ad.random.seed(0)
    x = ad.random.bernoulli(0.25, N).numpy()
    assert abs(x.mean() - 0.25) < 0.02
    assert not ad.random.bernoulli(0.0, 100).any()
    assert ad.random.bernoulli(1.0, 100).all()
    p = ad.tensor([0.0, 1.0, 0.5]).require_grad()
    mask = ad.random.bernoulli(p)
    assert mask.tolist()[:2] == [False, True]
    assert not mask.is_tracked()


def test_bounds_that_are_integers_of_few_bits() -> None:
    low, high = np.array([-128], np.int8), np.array([127], np.int8)
    for bounds in ((low, high), (ad.tensor(low), ad.tensor(high)), (-128, high), (low, 127.0)):
        drawn = ad.random.uniform(2000, low=bounds[0], high=bounds[1])
        assert (-128 <= drawn.min().item() < -120, 120 < drawn.max().item() < 127) == (True, True)


def test_permutation() -> None:
    ad.random.seed(0)
    assert sorted(ad.random.permutation(50).tolist()) == list(range(50))
    assert ad.random.permutation(0).shape == (0,)
    x = ad.tensor([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]).require_grad()
    rows = ad.random.permutation(x)
    assert sorted(rows.tolist()) == x.tolist()
    assert (rows * ad.tensor([[1.0], [2.0], [3.0]])).sum().backward()[x].numpy().sum() == 12.0


def test_gradients_flow_to_parameters(device: Any) -> None:
    mean, std = ad.tensor([1.0, 2.0]).require_grad(), ad.tensor(0.5).require_grad()
    ad.random.seed(4)
    grads = ad.random.normal(2, mean=mean, std=std).sum().backward()
    ad.random.seed(4)
    noise = ad.random.normal(2)
    assert grads[mean].tolist() == [1.0, 1.0]
    np.testing.assert_allclose(grads[std].item(), noise.numpy().sum(), rtol=1e-6)


@pytest.mark.parametrize("seed", [0, 1, 2**31, 2**64, 2**128 - 1, np.int64(5)])
def test_any_integer_is_a_seed(seed: int) -> None:
    ad.random.seed(seed)
    first = ad.random.uniform(3).tolist()
    ad.random.seed(seed)
    assert ad.random.uniform(3).tolist() == first


@pytest.mark.parametrize("randomness", ["error", "split", "shared"])
def test_pullbacks_and_derivatives_of_a_batch_know_what_was_drawn(randomness: str) -> None:
    def f(x: Any) -> Any:
        each = ad.vmap(lambda x: x * ad.random.normal(()), randomness="split")
        return each(x) * ad.random.normal((2,))

    x, unit = np.array([1.0, 2.0]), np.eye(2)
    value, pullback = ad.vjp(f, x)
    np.testing.assert_allclose(ad.vmap(pullback, randomness=randomness)(unit)[0], np.diag(value / x), rtol=1e-6)
    slope = ad.vmap(ad.grad(lambda c: (pullback(c)[0] * c).sum()), randomness=randomness)
    np.testing.assert_allclose(slope(unit), 2 * np.diag(value / x), rtol=1e-6)
    value, along = ad.linearize(f, x)
    np.testing.assert_allclose(ad.vmap(along, randomness=randomness)(unit), np.diag(value / x), rtol=1e-6)
    both = ad.vmap(lambda u: ad.vmap(along)(u), randomness=randomness)(np.stack([unit, 2 * unit]))
    np.testing.assert_allclose(both[1], 2 * np.diag(value / x), rtol=1e-6)
