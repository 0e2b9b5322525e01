"""Distributions: statistics, with fixed seeds, against SciPy's; derivatives by parameters; what they refuse."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from conftest import peer

import adjoint as ad

stats = peer("scipy.stats")
R = ad.random
N = 20_000
ENOUGH = 1e-3  # with fixed seeds nothing is left to chance


@pytest.fixture(autouse=True)
def _seeded() -> None:
    ad.random.seed(1)


CONTINUOUS: dict[str, tuple[Callable[..., Any], Any]] = {
    "normal": (lambda **k: R.normal(N, mean=1.0, std=2.0, **k), stats.norm(1, 2)),
    "uniform": (lambda **k: R.uniform(N, low=-1.0, high=3.0, **k), stats.uniform(-1, 4)),
    "exponential": (lambda **k: R.exponential(N, scale=2.0, **k), stats.expon(scale=2)),
    "cauchy": (lambda **k: R.cauchy(N, loc=1.0, scale=2.0, **k), stats.cauchy(1, 2)),
    "gumbel": (lambda **k: R.gumbel(N, loc=-1.0, scale=0.5, **k), stats.gumbel_r(-1, 0.5)),
    "laplace": (lambda **k: R.laplace(N, loc=1.0, scale=3.0, **k), stats.laplace(1, 3)),
    "logistic": (lambda **k: R.logistic(N, loc=1.0, scale=3.0, **k), stats.logistic(1, 3)),
    "lognormal": (lambda **k: R.lognormal(N, mean=0.5, std=0.7, **k), stats.lognorm(0.7, scale=math.exp(0.5))),
    "weibull": (lambda **k: R.weibull(1.7, N, scale=2.0, **k), stats.weibull_min(1.7, scale=2)),
    "gamma 0.2": (lambda **k: R.gamma(0.2, N, **k), stats.gamma(0.2)),
    "gamma 1": (lambda **k: R.gamma(1.0, N, **k), stats.gamma(1)),
    "gamma 7": (lambda **k: R.gamma(7.0, N, scale=3.0, **k), stats.gamma(7, scale=3)),
    "gamma 1e4": (lambda **k: R.gamma(1e4, N, **k), stats.gamma(1e4)),
    "chisquare": (lambda **k: R.chisquare(3.0, N, **k), stats.chi2(3)),
    "beta": (lambda **k: R.beta(0.5, 2.0, N, **k), stats.beta(0.5, 2)),
    "beta, large": (lambda **k: R.beta(200.0, 300.0, N, **k), stats.beta(200, 300)),
    "student_t": (lambda **k: R.student_t(3.0, N, loc=1.0, scale=2.0, **k), stats.t(3, 1, 2)),
    "truncated_normal": (
        lambda **k: R.truncated_normal(0.0, 3.0, N, mean=1.0, std=2.0, **k), stats.truncnorm(-0.5, 1, 1, 2),
    ),
    "truncated_normal, one bound": (lambda **k: R.truncated_normal(1.0, math.inf, N, **k), stats.truncnorm(1, np.inf)),
    "truncated_normal, far out": (lambda **k: R.truncated_normal(-12.0, -9.0, N, **k), stats.truncnorm(-12, -9)),
    "truncated_normal, beyond the far": (
        lambda **k: R.truncated_normal(50.0, 51.0, N, dtype=ad.float64).astype(k["dtype"]) - 50.0,
        stats.truncnorm(50, 51, loc=-50),
    ),
    "dirichlet": (lambda **k: R.dirichlet([1.0, 2.0, 3.0], N, **k)[:, 1], stats.beta(2, 4)),
    "dirichlet, small": (lambda **k: R.dirichlet([0.05, 1.0], N, **k)[:, 0], stats.beta(0.05, 1)),
}  # fmt: skip


@pytest.mark.parametrize("dtype", [ad.float32, ad.float64])
@pytest.mark.parametrize("name", CONTINUOUS)
def test_continuous_distributions(name: str, dtype: Any) -> None:
    draw, expected = CONTINUOUS[name]
    if name == "dirichlet, small" and dtype is ad.float32:
        pytest.skip("too many of these numbers underflow")
    x = draw(dtype=dtype)
    assert (x.shape, x.dtype) == ((N,), dtype)
    assert np.isfinite(x.numpy()).all()
    assert stats.kstest(x.numpy().astype(np.float64), expected.cdf).pvalue > ENOUGH


THREE = stats.rv_discrete(values=([0, 1, 2], [0.2, 0.3, 0.5]))
DISCRETE: dict[str, tuple[Callable[[], Any], Any]] = {
    "poisson": (lambda: R.poisson(3.0, N), stats.poisson(3)),
    "binomial": (lambda: R.binomial(10, 0.3, N), stats.binom(10, 0.3)),
    "geometric": (lambda: R.geometric(0.25, N), stats.geom(0.25)),
    "rademacher": (lambda: R.rademacher(N), stats.rv_discrete(values=([-1, 1], [0.5, 0.5]))),
    "categorical": (lambda: R.categorical(np.log([0.2, 0.3, 0.5]), N), THREE),
    "choice": (lambda: R.choice(4, N), stats.randint(0, 4)),
    "choice, weighted": (lambda: R.choice(3, N, p=[0.2, 0.3, 0.5]), THREE),
}  # fmt: skip


@pytest.mark.parametrize("name", DISCRETE)
def test_discrete_distributions(name: str) -> None:
    draw, expected = DISCRETE[name]
    x = draw()
    assert (x.shape, x.dtype) == ((N,), ad.int64)
    assert not x.is_tracked()
    found, counts = np.unique(x.numpy(), return_counts=True)
    probabilities = expected.pmf(found)
    usual = probabilities * N > 5
    assert (probabilities > 0).all()
    rest = N - counts[usual].sum()
    wanted = probabilities[usual] * N
    assert stats.chisquare([*counts[usual], rest + 5], [*wanted, N - wanted.sum() + 5]).pvalue > ENOUGH


def test_choices_without_replacement() -> None:
    for how in ({}, {"p": [0.1, 0.2, 0.3, 0.4]}):
        seen = np.asarray([R.choice(4, 2, replace=False, **how).numpy() for _ in range(2000)])
        assert (seen[:, 0] != seen[:, 1]).all()
        p = np.asarray(how.get("p", [0.25] * 4))
        assert stats.chisquare(np.bincount(seen[:, 0], minlength=4), 2000 * p).pvalue > ENOUGH
        second = sum(p[i] * p / (1 - p[i]) * (np.arange(4) != i) for i in range(4))
        assert stats.chisquare(np.bincount(seen[:, 1], minlength=4), 2000 * second).pvalue > ENOUGH
    x = ad.tensor([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
    assert sorted(R.choice(x, 3, replace=False).tolist()) == x.tolist()
    assert R.choice(x, (2, 2), axis=1).shape == (3, 2, 2)
    assert set(R.choice(x, 50, p=[0.0, 1.0, 0.0])[:, 0].tolist()) == {3.0}
    assert R.choice(0, 0).shape == (0,)


def test_shuffle() -> None:
    x = ad.tensor(np.arange(12.0).reshape(3, 4)).require_grad()
    rows, columns = R.shuffle(x), R.shuffle(x, axis=1)
    assert sorted(rows.tolist()) == x.tolist()
    assert sorted(columns.mT.tolist()) == x.mT.tolist()
    assert (rows * ad.tensor([[1.0], [2.0], [3.0]])).sum().backward()[x].numpy().sum() == 24.0


def test_multivariate_normal() -> None:
    cov = np.asarray([[2.0, 0.6], [0.6, 0.5]])
    x = R.multivariate_normal([1.0, -1.0], cov, N, dtype=ad.float64).numpy()
    np.testing.assert_allclose(x.mean(0), [1, -1], atol=0.03)
    np.testing.assert_allclose(np.cov(x.T), cov, atol=0.05)
    white = np.linalg.solve(np.linalg.cholesky(cov), (x - [1, -1]).T)
    for part in white:
        assert stats.kstest(part, stats.norm.cdf).pvalue > ENOUGH
    assert R.multivariate_normal(np.zeros((3, 1, 2)), np.stack([cov] * 4)).shape == (3, 4, 2)


# --- shapes, dtypes, devices ---


def test_shapes_follow_the_parameters() -> None:
    a = ad.tensor([1.0, 2.0, 3.0])
    assert R.gamma(a).shape == (3,)
    assert R.gamma(a, (2, 3)).shape == (2, 3)
    assert R.gamma(2.0).shape == ()
    assert R.gamma(a, scale=ad.ones((4, 1))).shape == (4, 3)
    assert R.beta(a, 2.0, (5, 3)).shape == (5, 3)
    assert R.normal().shape == R.cauchy().shape == R.exponential().shape == ()
    assert R.cauchy(loc=a).shape == (3,)
    assert len(set(R.cauchy(loc=ad.zeros(3)).tolist())) == 3  # one number for each parameter
    assert R.dirichlet(ad.ones((2, 4))).shape == (2, 4)
    assert R.categorical(ad.zeros((2, 3, 4)), axis=1).shape == (2, 4)
    assert R.categorical(ad.zeros((2, 3, 4)), (5, 2, 4), axis=1).shape == (5, 2, 4)
    assert R.poisson(ad.zeros((0, 2))).shape == (0, 2)
    with pytest.raises(ad.errors.ShapeError, match="do not broadcast to numbers of shape"):
        R.gamma(a, (3, 2))
    with pytest.raises(ad.errors.ShapeError):
        R.categorical(ad.zeros((2, 3)), (4,))


def test_dtypes_follow_the_parameters() -> None:
    for draw in (
        R.gamma,
        R.chisquare,
        R.weibull,
        lambda p, **k: R.beta(p, 1.0, **k),
        lambda p, **k: R.cauchy(loc=p, **k),
    ):
        assert draw(2).dtype is ad.float32
        assert draw(ad.tensor(2)).dtype is ad.float32
        assert draw(ad.tensor(2.0, dtype=ad.float64)).dtype is ad.float64
        assert draw(ad.tensor(2.0, dtype=ad.float16)).dtype is ad.float16
        assert draw(2, dtype=ad.float64).dtype is ad.float64
        with pytest.raises(ad.errors.DtypeError, match="real floating"):
            draw(2, dtype=ad.int32)
    assert R.poisson(3.0, dtype=ad.float32).dtype is ad.float32
    assert R.rademacher(3, dtype=ad.int8).dtype is ad.int8


EVERYWHERE: list[Callable[[], Any]] = [
    lambda: R.gamma([0.5, 3.0], (4, 2)), lambda: R.beta(2.0, 3.0, 4), lambda: R.student_t(3.0, 4),
    lambda: R.poisson(4.0, 5),
    lambda: R.binomial(9, 0.5, 5), lambda: R.truncated_normal(-1.0, 1.0, 4), lambda: R.categorical([0.0, 1.0, 2.0], 6),
    lambda: R.choice(7, 3, replace=False), lambda: R.dirichlet([1.0, 2.0], 3), lambda: R.gumbel(3),
    lambda: R.multivariate_normal([0.0, 0.0], [[1.0, 0.5], [0.5, 1.0]], 3),
]  # fmt: skip


@pytest.mark.parametrize(
    "device", ["autodiff<numpy>", "autodiff<autodiff<numpy>>", "reference", "array_api[array_api_strict]"]
)
def test_every_level_and_leaf_draws_the_same_numbers(device: str) -> None:
    if "strict" in device:
        pytest.importorskip("array_api_strict")
    found = []
    for name in ("numpy", device):
        with ad.use_device(name):
            ad.random.seed(11)
            found.append([f() for f in EVERYWHERE])
    for x, y in zip(*found, strict=True):
        assert y.device is ad.device(device)
        np.testing.assert_allclose(x.numpy(), y.numpy(), rtol=2e-6)
        assert x.dtype == y.dtype


def test_parameters_of_another_device_say_where() -> None:
    x = R.gamma(ad.tensor(2.0, device="reference"))
    assert x.device is ad.device("reference")
    assert R.poisson(ad.tensor(2.0, device="numpy")).device is ad.device("numpy")


# --- derivatives ---


def quantile_slope(make: Callable[[float], Any], at: float, x: float) -> float:
    """How a number moves with a parameter where its place in the distribution stays, by differences of quantiles."""
    place, upper = make(at).cdf(x), make(at).sf(x)
    h = 1e-4 * at
    move = lambda p: make(p).ppf(place) if place < 0.5 else make(p).isf(upper)
    return float((8 * (move(at + h) - move(at - h)) - (move(at + 2 * h) - move(at - 2 * h))) / (12 * h))


@pytest.mark.parametrize("a", [0.05, 0.3, 1.0, 4.0, 30.0, 1000.0])
def test_gamma_numbers_move_along_their_quantile(a: float) -> None:
    shape = ad.tensor(a, dtype=ad.float64).require_grad()
    x = R.gamma(shape, 6)
    for i in range(6):
        ours = x[i].backward(retain_graph=True)[shape].item()
        np.testing.assert_allclose(ours, quantile_slope(stats.gamma, a, x[i].item()), rtol=1e-6)


def test_tiny_gamma_numbers_have_derivatives() -> None:
    """Numbers of shape 0.001 are mostly zero in double precision; their logarithms, and shares of them, are not."""
    a = ad.tensor([1e-3, 2e-3, 1e-3], dtype=ad.float64).require_grad()
    x = R.dirichlet(a, 50)
    np.testing.assert_allclose(x.numpy().sum(-1), 1.0)
    weights = np.random.default_rng(0).normal(size=(50, 3))
    assert np.isfinite((x * weights).sum().backward()[a].numpy()).all()
    assert R.gamma(a).numpy().min() >= 0


def test_second_derivatives_of_gamma_numbers() -> None:
    def f(a: Any) -> Any:
        ad.random.seed(5)
        return R.gamma(a)

    for a in (0.4, 3.0, 20.0):
        x = float(f(np.asarray(a)).item())
        place, h = stats.gamma(a).cdf(x), 1e-3 * a
        second = (stats.gamma(a + h).ppf(place) - 2 * x + stats.gamma(a - h).ppf(place)) / h**2
        np.testing.assert_allclose(ad.grad(ad.grad(f))(a), second, rtol=1e-3, atol=1e-5)


def test_forward_mode_equals_reverse_mode() -> None:
    def f(a: Any, b: Any) -> Any:
        ad.random.seed(5)
        return R.beta(a, b, 4).sum() + R.dirichlet(ad.stack([a, b]))[0] + R.student_t(a, 3).sum()

    _, forward = ad.jvp(f, (1.5, 0.7), (1.0, -2.0))
    a, b = ad.grad(f, (0, 1))(1.5, 0.7)
    np.testing.assert_allclose(forward, a - 2 * b, rtol=1e-10)


# name: (f of a parameter, the parameter, d E[f] / d parameter, how far an average may be off)
EXPECTATIONS: dict[str, tuple[Callable[[Any], Any], float, float, float]] = {
    "gamma, mean": (lambda a: R.gamma(a, N), 2.5, 1.0, 0.02),
    "gamma, second moment": (lambda a: R.gamma(a, N) ** 2, 2.5, 6.0, 0.15),
    "gamma, small": (lambda a: R.gamma(a, N), 0.1, 1.0, 0.1),
    "chisquare": (lambda a: R.chisquare(a, N), 4.0, 1.0, 0.02),
    "beta, mean by a": (lambda a: R.beta(a, 2.0, N), 3.0, 2.0 / 25.0, 0.002),
    "beta, mean by b": (lambda b: R.beta(3.0, b, N), 2.0, -3.0 / 25.0, 0.002),
    "dirichlet": (lambda a: R.dirichlet(ad.stack([a, a * 0 + 1.0, a * 0 + 2.0]), N)[:, 0], 3.0, 3.0 / 36.0, 0.002),
    "student_t, second moment": (lambda v: R.student_t(v, N) ** 2, 9.0, -2.0 / 49.0, 0.02),
    "exponential": (lambda s: R.exponential(N, scale=s) ** 2, 2.0, 8.0, 0.4),
    "truncated_normal by a bound": (
        lambda b: R.truncated_normal(b, math.inf, N), 0.5,
        (h := stats.norm.pdf(0.5) / stats.norm.sf(0.5)) * (h - 0.5), 0.01,
    ),
    "weibull": (lambda k: R.weibull(k, N) ** 2, 2.0, -0.5 * (1 - np.euler_gamma), 0.05),
    "multivariate_normal": (
        lambda r: R.multivariate_normal([0.0, 0.0], r * np.eye(2)[::-1] + np.diag([2.0, 1.0]), N).prod(axis=1),
        0.5, 1.0, 0.05,
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", EXPECTATIONS)
def test_gradients_of_expectations(name: str) -> None:
    f, at, expected, tolerance = EXPECTATIONS[name]
    found = ad.grad(lambda p: f(p).mean())(np.asarray(at))
    assert abs(found - expected) < tolerance


def test_discrete_numbers_have_no_gradient() -> None:
    rate = ad.tensor(3.0).require_grad()
    for x in (
        R.poisson(rate, dtype=ad.float32),
        R.binomial(5, rate / 4, dtype=ad.float32),
        R.geometric(rate / 4),
        R.categorical(ad.stack([rate, rate])),
    ):
        assert not x.is_tracked()
    loss = R.poisson(rate, dtype=ad.float32) * rate
    assert loss.backward()[rate].item() == loss.item() / 3.0


# --- under transforms ---


def test_examples_draw_numbers_of_their_own() -> None:
    a = np.asarray([1.0, 1.0, 5.0])
    x = ad.vmap(lambda p: R.gamma(p, 1000), randomness="split")(a)
    assert x.shape == (3, 1000)
    np.testing.assert_allclose(x.mean(1), a, rtol=0.15)
    assert not (x[0] == x[1]).any()
    shared = ad.vmap(lambda p: R.gamma(2.0, 3) * p, randomness="shared")(a)
    np.testing.assert_array_equal(shared[0], shared[1])
    constant = ad.vmap(lambda p: R.poisson(9.0, 20) + p, randomness="split")(a)
    assert len({tuple(row) for row in constant.tolist()}) == 3
    outer = ad.tensor(2.0)
    inside = ad.vmap(lambda p: R.gamma(outer, 4) + p * 0, randomness="split")(a)
    assert len({tuple(row) for row in np.asarray(inside).tolist()}) == 3
    with pytest.raises(ad.errors.ArgumentError, match="cannot share one draw"):
        ad.vmap(lambda p: R.gamma(p), randomness="shared")(a)
    slopes = ad.vmap(ad.grad(lambda p: R.gamma(p, 500).mean()), randomness="split")(a)
    np.testing.assert_allclose(slopes, 1.0, atol=0.15)


def test_checkpoints_draw_the_same_numbers_again() -> None:
    a = ad.tensor([0.5, 2.0], dtype=ad.float64).require_grad()
    found = []
    for wrapped in (False, True):
        ad.random.seed(3)
        f = lambda x: (R.gamma(x, (3, 2)) * R.beta(x, 1.0)).sum() ** 2
        found.append((ad.checkpoint(f) if wrapped else f)(a).backward()[a].tolist())
    assert found[0] == found[1]


def test_counts_of_trials_stay_in_their_dtype() -> None:
    for dtype in (ad.int8, ad.int32, ad.int64):
        found = R.geometric(1e-30, 5, dtype=dtype).numpy()
        assert found.dtype == dtype
        assert (found == np.iinfo(dtype).max).all()
    assert R.geometric(1e-30, dtype=ad.float64).item() > 1e25


@pytest.mark.parametrize(("low", "high"), [(-51.0, -50.0), (50.0, 51.0), (-math.inf, -60.0), (37.1, 37.3)])
def test_numbers_of_far_tails_follow_the_bounds(low: float, high: float) -> None:
    def mean(bounds: Any) -> Any:
        ad.random.seed(5)
        return R.truncated_normal(bounds[0], bounds[1], 50).mean()

    bounds = np.array([low, high])
    slope = ad.grad(mean)(bounds)
    for i in np.flatnonzero(np.isfinite(bounds)):
        step = 1e-4 * (np.arange(2) == i)
        difference = mean(ad.asarray(bounds + step)).item() - mean(ad.asarray(bounds - step)).item()
        assert slope[i] == pytest.approx(difference / 2e-4, rel=1e-4, abs=1e-8)
    assert np.isfinite(slope).all()


# --- what they refuse ---

REFUSED: dict[str, tuple[Callable[[], Any], str]] = {
    "scale": (lambda: R.exponential(3, scale=-1.0), "exponential: scale must not be negative, received -1"),
    "tensor of scales": (lambda: R.laplace(scale=ad.tensor([1.0, -2.0])), "laplace: scale must not be negative"),
    "nan": (lambda: R.cauchy(loc=math.nan), "cauchy: loc must be numbers, received nan"),
    "gamma": (lambda: R.gamma(0.0), "gamma: concentration must be positive, received 0"),
    "beta": (lambda: R.beta(1.0, -1.0), "beta: b must be positive"),
    "dirichlet": (lambda: R.dirichlet([1.0, 0.0]), "dirichlet: concentration must be positive"),
    "student_t": (lambda: R.student_t(-3.0), "student_t: df must be positive"),
    "poisson": (lambda: R.poisson(-0.5), "poisson: rate must not be negative"),
    "binomial, n": (lambda: R.binomial(2.5, 0.5), "binomial: n must be whole numbers from 0"),
    "binomial, p": (lambda: R.binomial(2, 1.5), "binomial: p must be between 0 and 1"),
    "geometric": (lambda: R.geometric(0.0), "geometric: p must be above 0"),
    "bounds": (lambda: R.truncated_normal(1.0, 1.0), "each lower bound must be below"),
    "probabilities": (lambda: R.choice(3, p=[0.5, 0.4, 0.3]), "choice: probabilities must sum to one"),
    "negative probabilities": (lambda: R.choice(2, p=[1.5, -0.5]), "choice: p must be between 0 and 1"),
    "too many": (lambda: R.choice(3, 4, replace=False), "4 choices of 3 without replacement"),
    "too many of what is possible": (lambda: R.choice(3, 2, replace=False, p=[0.0, 1.0, 0.0]), "2 choices without"),
    "nothing": (lambda: R.choice(0, 1), "nothing to choose from"),
    "tensor of deviations": (lambda: R.normal(2, std=ad.tensor([1.0, -2.0])), "normal: the standard deviation"),
    "tensor of probabilities": (lambda: R.bernoulli(ad.tensor([0.5, 1.5])), "bernoulli: a probability .* received 1.5"),
    "no class": (lambda: R.categorical([[0.0, 1.0], [-math.inf, -math.inf]]), "categorical: logits that are all -inf"),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_bad_parameters(name: str) -> None:
    call, message = REFUSED[name]
    with pytest.raises(ad.errors.ArgumentError, match=message):
        call()


def test_what_are_no_parameters() -> None:
    with pytest.raises(ad.errors.ArgumentTypeError, match="gamma: concentration is a number or a tensor"):
        R.gamma("2")
    with pytest.raises(ad.errors.ArgumentTypeError, match="shuffle: expected a tensor"):
        R.shuffle([1, 2])  # type: ignore[arg-type]
    with pytest.raises(ad.errors.ArgumentTypeError, match="choice"):
        R.choice([1, 2])
    for what in ([1, 2], np.arange(2), 2.5, None, True):
        with pytest.raises(ad.errors.ArgumentTypeError, match="permutation: expected a tensor or an int"):
            R.permutation(what)  # type: ignore[call-overload]
    with pytest.raises(ad.errors.ShapeError, match="beta: the parameters' shapes"):
        R.beta([1.0, 2.0], [1.0, 2.0, 3.0])
    with pytest.raises(ad.errors.ShapeError, match="3 to choose from"):
        R.choice(3, p=[0.5, 0.5])
    with pytest.raises(ad.errors.ShapeError, match="0-d"):
        R.shuffle(ad.tensor(1.0))
    with pytest.raises(ad.errors.ShapeError, match="last axis"):
        R.dirichlet(2.0)
    with pytest.raises(ad.errors.ShapeError, match="covariance"):
        R.multivariate_normal([0.0, 1.0], [[1.0]])
    with pytest.raises(ad.errors.SingularError, match="positive definite"):
        R.multivariate_normal([0.0, 1.0], [[1.0, 2.0], [2.0, 1.0]])
    with pytest.raises(ad.errors.AxisError):
        R.categorical(0.0)
