"""Special functions: how accurate they are, beside mpmath and SciPy; their values at singular points; gradients."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import peer
from each import Each

import adjoint as ad

mpmath, scipy = peer("mpmath"), peer("scipy.special")
S = ad.special
RNG = np.random.default_rng(20240601)

Array = np.ndarray[Any, Any]


# what docs/special.md promises
PAGE = (Path(__file__).parent.parent / "docs" / "special.md").read_text()
BOUNDS = {name: float(bound) for name, bound in re.findall(r"^\| `(\w+)` \| ([0-9.e-]+) \|", PAGE, re.MULTILINE)}


GAMMA_TINY = [5e-324, 1e-310, 1e-20, 1.1e-5, 9e-6, 0.3, 1.0]


def test_incomplete_gamma_functions_of_the_smallest_numbers() -> None:
    with mpmath.workdps(340):
        for a in GAMMA_TINY:
            for x in (5e-324, 1e-310, 9e-301, 0.5):
                shape, point = (ad.tensor(v, dtype=ad.float64) for v in (a, x))
                s, t = mpmath.mpf(a), mpmath.mpf(x)
                lower = t**s / mpmath.gamma(s + 1) * mpmath.hyp1f1(s, s + 1, -t)  # DLMF 8.5.1
                found = ad.special.gammainc(shape, point).item(), ad.special.gammaincc(shape, point).item()
                expected = float(lower), float(1 - lower)
                np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-322, err_msg=f"{a} {x}")


def test_every_promise_is_measured() -> None:
    assert set(BOUNDS) == set(EXACT)


def spread(low: float, high: float, count: int = 60) -> Array:
    """Positive numbers of all sizes between two."""
    return np.exp(RNG.uniform(math.log(low), math.log(high), count))


def uniform(low: float, high: float, count: int = 60) -> Array:
    return RNG.uniform(low, high, count)


def values(f: Callable[..., Any], *points: Array) -> Array:
    return np.asarray(f(*[ad.asarray(p, device="numpy") for p in points]).numpy())


def gradient(f: Callable[..., Any], *points: float) -> list[float]:
    tensors = [ad.tensor(p, dtype=ad.float64).require_grad() for p in points]
    grads = f(*tensors).backward()
    return [grads[x].item() for x in tensors]


def relative(ours: Array, exact: list[Any]) -> float:
    """The largest relative error; where the exact value is below the normal numbers, that of the smallest of these."""
    errors = [
        abs(mpmath.mpf(float(x)) - y) / max(abs(y), mpmath.mpf(2) ** -1022) for x, y in zip(ours, exact, strict=True)
    ]
    return float(max(errors))


def m(x: Any) -> Any:
    return mpmath.mpf(float(x))


def _log_ndtr(x: Any) -> Any:
    return mpmath.log(mpmath.erfc(-m(x) / mpmath.sqrt(2)) / 2)


def _erfcx(x: Any) -> Any:
    x = m(x)
    if x < 1e6:
        return mpmath.erfc(x) * mpmath.exp(x * x)
    return (1 - 1 / (2 * x * x) + 3 / (4 * x**4)) / (x * mpmath.sqrt(mpmath.pi))


def _erfcinv(y: Any) -> Any:
    """By Newton's method from SciPy's value: mpmath's own works with 1 - y."""
    y, x = m(y), m(scipy.erfcinv(float(y)))
    for _ in range(4):
        x += (mpmath.erfc(x) - y) * mpmath.sqrt(mpmath.pi) / 2 * mpmath.exp(x * x)
    return x


def _ndtri(y: Any) -> Any:
    return -mpmath.sqrt(2) * _erfcinv(2 * y)


def _gamma(x: Any) -> Any:
    return mpmath.gamma(m(x))


def _sinc(x: Any) -> Any:
    return mpmath.sinc(mpmath.pi * m(x))


def _hurwitz(s: Any, q: Any) -> Any:
    """Euler and Maclaurin with many terms, since mpmath's own loses digits."""
    s, q, n = m(s), m(q), 40
    a = q + n
    total = mpmath.fsum((q + k) ** -s for k in range(n)) + a ** (1 - s) / (s - 1) + a**-s / 2
    for j in range(1, 25):
        total += mpmath.bernoulli(2 * j) / mpmath.factorial(2 * j) * mpmath.rf(s, 2 * j - 1) * a ** (1 - s - 2 * j)
    return total


def _near(a: Array) -> Array:
    """Where distributions of shape a and mean a have their mass, and far out."""
    return np.concatenate([a * np.exp(RNG.normal(size=a.size) * np.minimum(2.0, 3.0 / np.sqrt(a)))])


_A, _P, _Q = spread(1e-3, 1e3), spread(0.02, 400.0), spread(0.02, 400.0)
_X = np.clip(np.where(RNG.uniform(size=60) < 0.7, RNG.beta(_P, _Q), uniform(0, 1)), 1e-6, 1 - 1e-6)
_ALL = spread(1e-300, 1e300)
_FACTORS = np.concatenate([spread(1e-9, 1e9), spread(0.1, 10.0)])
_NUMBERS = np.concatenate([spread(1e-300, 1e300), spread(0.1, 10.0)])

# name: (points, mpmath's function of them)
EXACT: dict[str, tuple[tuple[Array, ...], Callable[..., Any]]] = {
    "erf": ((np.concatenate([uniform(-6, 6), spread(1e-300, 1)]),), lambda x: mpmath.erf(m(x))),
    "erfc": ((np.concatenate([uniform(-6, 26.5), spread(1e-300, 1)]),), lambda x: mpmath.erfc(m(x))),
    "erfcx": ((np.concatenate([uniform(-26, 50), spread(50, 1e300)]),), _erfcx),
    "erfinv": ((np.concatenate([uniform(-1, 1), 1 - spread(1e-15, 0.3)]),), lambda y: mpmath.erfinv(m(y))),
    "erfcinv": ((np.concatenate([uniform(0, 2), spread(1e-300, 0.3)]),), _erfcinv),
    "ndtr": ((uniform(-37, 8),), lambda x: mpmath.erfc(-m(x) / mpmath.sqrt(2)) / 2),
    "log_ndtr": ((np.concatenate([uniform(-40, 8), -spread(1, 90)]),), _log_ndtr),
    "ndtri": ((np.concatenate([uniform(0, 0.49), spread(1e-300, 0.3)]),), _ndtri),
    "gamma": ((np.concatenate([uniform(0, 171), spread(1e-300, 1), -uniform(0, 170), -spread(1e-300, 1)]),), _gamma),
    "gammaln": ((np.concatenate([_ALL, uniform(0, 10)]),), lambda x: mpmath.loggamma(m(x))),
    "digamma": ((np.concatenate([_ALL, uniform(0, 10)]),), lambda x: mpmath.digamma(m(x))),
    "betaln": ((spread(1e-5, 1e7), spread(1e-5, 1e7)), lambda a, b: mpmath.log(mpmath.beta(m(a), m(b)))),
    "beta": ((spread(1e-5, 300), spread(1e-5, 300)), lambda a, b: mpmath.beta(m(a), m(b))),
    "zeta": ((1 + spread(1e-3, 50), spread(1e-3, 1e4)), _hurwitz),
    "gammainc": ((_A, _near(_A)), lambda a, x: mpmath.gammainc(m(a), 0, m(x), regularized=True)),
    "gammaincc": ((_A, _near(_A)), lambda a, x: mpmath.gammainc(m(a), m(x), mpmath.inf, regularized=True)),
    "betainc": ((_P, _Q, _X), lambda a, b, x: mpmath.betainc(m(a), m(b), 0, m(x), regularized=True)),
    "i0": ((uniform(-700, 700),), lambda x: mpmath.besseli(0, m(x))),
    "i1": ((np.concatenate([uniform(-20, 20), spread(1e-300, 700)]),), lambda x: mpmath.besseli(1, m(x))),
    "i0e": ((spread(1e-5, 1e4),), lambda x: mpmath.besseli(0, m(x)) * mpmath.exp(-m(x))),
    "i1e": ((spread(1e-5, 1e4),), lambda x: mpmath.besseli(1, m(x)) * mpmath.exp(-m(x))),
    "sinc": ((np.concatenate([uniform(-20, 20), spread(1e-9, 100)]),), _sinc),
    "expit": ((uniform(-700, 40),), lambda x: 1 / (1 + mpmath.exp(-m(x)))),
    "log_expit": ((uniform(-700, 700),), lambda x: -mpmath.log1p(mpmath.exp(-m(x)))),
    "logit": ((np.concatenate([uniform(0, 1), spread(1e-300, 0.3)]),), lambda p: mpmath.log(m(p) / (1 - m(p)))),
    "entr": ((spread(1e-300, 1e300),), lambda x: -m(x) * mpmath.log(m(x))),
    "rel_entr": ((spread(1e-9, 1e9), spread(1e-9, 1e9)), lambda x, y: m(x) * mpmath.log(m(x) / m(y))),
    "kl_div": (
        (x := spread(1e-9, 1e9), x * np.exp(RNG.normal(size=60) * RNG.choice([1e-8, 1e-3, 1.0, 10.0], 60))),
        lambda x, y: m(x) * mpmath.log(m(x) / m(y)) - m(x) + m(y),
    ),
    "xlogy": ((_FACTORS, _NUMBERS), lambda x, y: m(x) * mpmath.log(m(y))),
    "xlog1py": ((_FACTORS, _NUMBERS), lambda x, y: m(x) * mpmath.log1p(m(y))),
}  # fmt: skip


@pytest.mark.parametrize("name", EXACT)
def test_relative_errors_in_double_precision(name: str) -> None:
    points, exact = EXACT[name]
    with mpmath.workdps(50):
        error = relative(values(getattr(S, name), *points), [exact(*p) for p in zip(*points, strict=True)])
    assert error <= BOUNDS[name], error


def test_kl_div_of_numbers_far_apart_keeps_the_digits_of_its_derivatives() -> None:
    y = np.array([3.0, 9e4, 1e-5, 2.5, 7.0])
    x = y * [1.0, 1e-8, 1e-15, 1e8, 0.5]
    f = S.kl_div
    for exact in (1 - x / y, x / y**2, -2 * x / y**3):
        f = ad.grad(f, 1)
        np.testing.assert_allclose(ad.vmap(f)(x, y), exact, rtol=4e-15, atol=0)


# computed in their own precision, for speed: each is a few operations
QUICK = {"erf", "expit", "log_expit", "xlogy", "xlog1py"}


@pytest.mark.parametrize("dtype", [np.float32, np.float16])
@pytest.mark.parametrize("name", EXACT)
def test_narrow_dtypes_are_the_rounded_double(name: str, dtype: Any) -> None:
    """To a unit in the last place; what is not computed in double precision, to four."""
    with np.errstate(over="ignore"):
        points = [p.astype(dtype) for p in EXACT[name][0]]
    inside = np.all([np.isfinite(p) & (np.abs(p) > 1e-30) for p in points], axis=0)
    points = [p[inside] for p in points]
    with np.errstate(all="ignore"):
        wide = values(getattr(S, name), *[p.astype(np.float64) for p in points])
        exact = wide.astype(dtype)
        ours = values(getattr(S, name), *points)
    kept = np.isfinite(exact) & (np.abs(exact) > np.finfo(dtype).smallest_normal)
    assert ours.dtype == dtype
    assert kept.any()
    np.testing.assert_array_max_ulp(ours[kept], exact[kept], maxulp=4 if name in QUICK else 1)


# where SciPy, by what it documents, has another opinion: at infinity it has no limit of these
LIMITS = {"i0": "inf", "i1": "inf", "sinc": "inf"}
SINGULAR = np.asarray([0.0, -0.0, 1.0, 2.0, -1.0, -2.0, -2.5, 0.5, 800.0, -800.0, np.inf, -np.inf, np.nan])
ONE = (
    "erf erfc erfcx erfinv erfcinv ndtr log_ndtr ndtri gamma gammaln loggamma digamma i0 i0e i1 i1e sinc expit "
    "log_expit logit entr zeta"
)
TWO = "xlogy xlog1py rel_entr kl_div gammainc gammaincc"


def theirs(name: str) -> Any:
    return np.sinc if name == "sinc" else getattr(scipy, name)


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
@pytest.mark.parametrize("name", ["rel_entr", "kl_div", "entr", "logit", "sinc", "i0"])
def test_large_arrays_with_odd_elements_among_others(name: str, dtype: Any) -> None:
    """NumPy takes formulas for most elements, block by block, and other ways for the rest."""
    odd = np.array([0.0, -0.0, -1.0, 1.0, 0.5, 2.0, math.inf, -math.inf, math.nan, 1e-300, 1e-310, 1e300])
    usual = np.concatenate([uniform(0, 1, 40_000), spread(1e-4, 1e4, 5_000)])
    with np.errstate(all="ignore"):
        x = np.concatenate([odd, usual, odd]).astype(dtype)
        y = np.concatenate([odd[::-1], usual * uniform(0.6, 1.6, usual.size), odd]).astype(dtype)
        points = [x, y] if name in TWO.split() else [x[np.abs(x) < 100] if name == "i0" else x]
        mine = values(getattr(S, name), *points)
        exact = theirs(name)(*[p.astype(np.float64) for p in points])
        exact = np.where(np.isinf(x), 0.0, exact) if name == "sinc" else exact
        exact = exact.astype(dtype)
    assert mine.dtype == dtype
    relative = 1e-12 if dtype == np.float64 else 2 * np.finfo(dtype).eps
    absolute = {"sinc": 1e-15, "kl_div": 4e-12}.get(name, 0.0)  # what theirs lose
    np.testing.assert_allclose(mine, exact, rtol=relative, atol=absolute)


@pytest.mark.parametrize("name", ONE.split())
def test_singular_points_of_one_number_are_as_in_scipy(name: str) -> None:
    points = SINGULAR[np.isfinite(SINGULAR)] if name in LIMITS else SINGULAR
    if name == "zeta":  # reflected, without a limit at -inf; SciPy gives nan there as well
        points = points[points > -700]
    with np.errstate(all="ignore"):
        np.testing.assert_allclose(
            values(getattr(S, name), points), theirs(name)(points), rtol=1e-12, atol=1e-16 * (name == "sinc")
        )


# those of names that need SciPy, where SciPy has no limit at infinity
HOSTED = "j0 j1 y0 y1 k0 k1 k0e k1e expi exp1 rgamma dawsn ellipk ellipkm1 ellipe"
ORDERED = "jv yv kv kve iv ive"


@pytest.mark.parametrize("name", HOSTED.split())
def test_singular_points_of_functions_that_scipy_computes(name: str) -> None:
    points = SINGULAR[np.isfinite(SINGULAR)] if name in ("j0", "j1", "y0", "y1") else SINGULAR
    with np.errstate(all="ignore"):
        np.testing.assert_allclose(
            values(getattr(S, name), points), getattr(scipy, name)(points), rtol=1e-12, atol=1e-15
        )


@pytest.mark.parametrize("name", ORDERED.split())
def test_bessel_functions_of_any_order_are_as_in_scipy(name: str) -> None:
    v, x = np.meshgrid([0.0, 0.5, 1.0, 2.0, 3.5, 20.0, -1.0, -0.5, -2.5, np.nan], [0.3, 2.0, 11.0, 40.0, -1.5, np.nan])
    ours, exact = values(getattr(S, name), v, x), getattr(scipy, name)(v, x)
    np.testing.assert_allclose(ours, exact, rtol=2e-12, atol=1e-14)
    v, x = v[:4, :7], x[:4, :7]
    slope = ad.vjp(lambda x: getattr(S, name)(v, x), x)[1](np.ones(x.shape))[0]
    if name.endswith("e"):  # exp(-x) I(x) and exp(x) K(x)
        sign = -1.0 if name == "ive" else 1.0
        whole = getattr(scipy, name[:2] + "p")(v, x) * np.exp(sign * x) + sign * exact[:4, :7]
    else:
        whole = getattr(scipy, name + "p")(v, x)
    np.testing.assert_allclose(slope, whole, rtol=1e-9, atol=1e-13)


@pytest.mark.parametrize("name", ["hankel1", "hankel2"])
def test_hankel_functions_of_negative_numbers_are_as_in_scipy(name: str) -> None:
    x = np.array([-20.0, -2.5, -0.7, -0.01])
    for order in (0, 1, 2, 3, -1, 1.5, -1.5, 0.3, 7.2, -3.7):
        ours = getattr(ad.special, name)(order, ad.asarray(x)).numpy()
        np.testing.assert_allclose(ours, getattr(scipy, name)(order, x), rtol=1e-12)


def test_carlsons_degenerate_integral_of_negative_numbers_is_as_in_scipy() -> None:
    x, y = np.array([3.0, 1.0, 0.0, 5.0]), np.array([-0.5, -1.0, -2.0, -7.0])
    np.testing.assert_allclose(ad.special.elliprc(ad.asarray(x), y).numpy(), scipy.elliprc(x, y), rtol=1e-14)


def test_derivatives_of_the_elliptic_integral_up_to_where_they_overflow() -> None:
    """Parts of the second were infinite below 1e-123, those of the third below 1e-88."""
    x = np.array([1e-90, 1e-95, 1e-101, 1e-120, 1e-130, 1e-150])
    second = lambda x: ad.grad(lambda x: ad.grad(lambda x: S.ellipkm1(x).sum())(x).sum())(x)
    np.testing.assert_allclose(second(x), 0.5 / x**2, rtol=1e-13)  # as of log(16 / x) / 2
    np.testing.assert_allclose(ad.grad(lambda x: second(x).sum())(x[:3]), -1.0 / x[:3] ** 3, rtol=1e-13)


def test_bessel_functions_near_and_at_zero() -> None:
    x = np.asarray([0.0, 1e-200, 1e-120, 1e-9])
    for f in (S.jv, S.iv):
        for v in (2.5, 1.5, -0.5, 2.0, -2.0):
            with mpmath.workdps(30):
                first = [mpmath.mpf(t) ** abs(v) / 2 ** abs(v) / mpmath.gamma(abs(v) + 1) for t in x]
                first = (
                    [mpmath.mpf(0.5) ** v * m(t) ** v / mpmath.gamma(v + 1) for t in x[1:]] if v == -0.5 else first[1:]
                )
            exact = np.asarray([float(y) for y in first])
            np.testing.assert_allclose(values(lambda t, f=f, v=v: f(v, t), x[1:]), exact, rtol=1e-13)
    assert gradient(lambda x: S.jv(0.5, x), 0.0) == [math.inf]
    assert gradient(lambda x: S.jv(1.5, x), 0.0) == [0.0]
    assert gradient(lambda x: S.jv(-0.5, x), 0.0) == [-math.inf]
    assert gradient(lambda x: S.iv(1.0, x), 0.0) == [0.5]
    assert gradient(S.y0, 0.0) == [math.inf]
    assert gradient(S.k1, 0.0) == [-math.inf]
    for v, signs in ((100.0, (1.0, -1.0)), (150.5, (1.0, -1.0)), (-101.0, (-1.0, 1.0))):  # neighbours are infinite
        slope = ad.grad(lambda x, v=v: S.yv(v, x))
        x = np.asarray(1e-3)
        assert [slope(x), ad.grad(slope)(x)] == [s * math.inf for s in signs]


@pytest.mark.parametrize("name", ["yn", "kn"])
def test_whole_orders_of_batches_and_programs(name: str) -> None:
    f, orders = getattr(S, name), np.arange(4.0)
    exact = getattr(scipy, name)(orders, 2.0)
    np.testing.assert_allclose(ad.vmap(lambda n: f(n, 2.0))(orders), exact, rtol=1e-12)
    np.testing.assert_allclose(ad.compile(lambda n: f(n, np.asarray(2.0)))(orders), exact, rtol=1e-12)
    for wrong in (ad.vmap(lambda n: f(n, 2.0)), ad.compile(lambda n: f(n, np.asarray(2.0)))):
        with pytest.raises(ad.errors.ArgumentError, match="orders are whole numbers"):
            wrong(orders + 0.5)


@pytest.mark.parametrize("name", ["polygamma", "expn"])
def test_orders_may_have_no_values_yet(name: str) -> None:
    """In a program that runs later the function is a step of it, with all derivatives and in batches."""
    f, orders, x = getattr(S, name), np.asarray([1, 3, 1]), np.asarray([0.7, 1.5, 2.5])
    functions = {
        "values": f,
        "one order": lambda n, x: f(n[1], x),
        "gradient": ad.grad(lambda n, x: (f(n, x) ** 2).sum(), 1),
        "second": lambda n, x: ad.hessian(lambda x: f(n, x).sum())(x),
        "forward": lambda n, x: ad.jvp(lambda x: f(n, x), (x,), (x,)),
        "batch": lambda n, x: ad.vmap(ad.grad(f, 1))(n, x),
        "step": lambda n, x: ad.scan(lambda c, y: (c + f(n, y).sum(), None), 0.0, x)[0],
        "floats": lambda n, x: f(n * 1.0, x[:, None]),
    }
    for what, g in functions.items():
        found, expected = ad.compile(g)(orders, x), g(ad.asarray(orders), ad.asarray(x))
        for one, other in zip(ad.tree.leaves(found), ad.tree.leaves(expected), strict=True):
            np.testing.assert_allclose(one, other.numpy(), rtol=1e-13, err_msg=what)
    with pytest.raises(ad.errors.ArgumentError, match=f"{name}: orders are whole numbers from 0"):
        ad.compile(f)(orders + 0.5, x)
    with pytest.raises(ad.errors.TrackedError, match="orders are whole numbers|no derivative by the order"):
        ad.compile(ad.grad(lambda n: f(n, ad.asarray(x)).sum()))(orders * 1.0)


@pytest.mark.parametrize("name", ["polygamma", "expn"])
def test_orders_may_be_examples_of_a_batch(name: str) -> None:
    """Each has its own, also by the way out that the error of a tracked one names."""
    f, orders, x = getattr(S, name), np.asarray([1, 3, 1]), np.asarray([0.7, 1.5, 2.5])
    exact = getattr(scipy, name)(orders, x)
    slope = -scipy.expn(orders - 1, x) if name == "expn" else scipy.polygamma(orders + 1, x)
    for way in (lambda n: n, lambda n: n.detach()):
        g = lambda n, x, way=way: f(way(n), x)
        np.testing.assert_allclose(ad.vmap(g)(orders, x), exact, rtol=1e-12)
        np.testing.assert_allclose(
            ad.vmap(g, (0, None))(orders, x), getattr(scipy, name)(orders[:, None], x), rtol=1e-12
        )
        np.testing.assert_allclose(ad.vmap(ad.grad(g, 1))(orders, x), slope, rtol=1e-12)
        np.testing.assert_allclose(ad.grad(lambda x, g=g: ad.vmap(g)(orders, x).sum())(x), slope, rtol=1e-12)
    with pytest.raises(ad.errors.TrackedError, match="orders are whole numbers|no derivative by the order"):
        ad.vmap(ad.grad(lambda n, x: f(n, x)))(orders * 1.0, x)


@pytest.mark.parametrize("name", TWO.split())
def test_singular_points_of_two_numbers_are_as_in_scipy(name: str) -> None:
    x, y = (np.ravel(v) for v in np.meshgrid(SINGULAR, SINGULAR))
    with np.errstate(all="ignore"):
        np.testing.assert_allclose(values(getattr(S, name), x, y), theirs(name)(x, y), rtol=1e-12)


def test_singular_points_of_the_beta_functions_are_as_in_scipy() -> None:
    grid = SINGULAR[np.abs(SINGULAR) < 100]
    x, y = (np.ravel(v) for v in np.meshgrid(grid, grid))
    np.testing.assert_allclose(values(S.betaln, x, y), scipy.betaln(x, y), rtol=1e-12, atol=1e-15)
    points = np.meshgrid(SINGULAR, SINGULAR, SINGULAR)
    np.testing.assert_allclose(values(S.betainc, *points), scipy.betainc(*points), rtol=1e-12)
    finite = np.asarray([0.5, 1.5, -0.5, -1.5, 3.0])
    x, y = (np.ravel(v) for v in np.meshgrid(finite, finite + 0.2))
    np.testing.assert_allclose(values(S.beta, x, y), scipy.beta(x, y), rtol=1e-13)


def test_zeta_of_two_numbers() -> None:
    s, q = (
        np.asarray([1.0, 0.5, 2.0, 2.0, 3.0, 2.5, 4.0, np.nan]),
        np.asarray([2.0, 2.0, -1.0, -1.5, -20.3, -1.5, np.inf, 1.0]),
    )
    with np.errstate(all="ignore"):
        np.testing.assert_allclose(values(S.zeta, s, q), scipy.zeta(s, q), rtol=1e-13)
    assert S.zeta(2.0, q=2.0).item() == S.zeta(2.0, 2.0).item()
    far = values(S.zeta, np.asarray([2.0]), np.asarray([-1e9 - 0.25]))  # no loop over a thousand million terms
    np.testing.assert_allclose(far, math.pi**2 / math.sin(math.pi * 0.25) ** 2, rtol=1e-7)


def test_riemann_zeta_of_all_real_numbers() -> None:
    points = np.concatenate([uniform(-30, 0), uniform(0, 0.99), uniform(1.01, 40)])
    with mpmath.workdps(40):
        assert relative(values(S.zeta, points), [mpmath.zeta(m(x)) for x in points]) <= 5e-13
    assert values(S.zeta, np.asarray([-2.0, -4.0])).tolist() == [0.0, 0.0]


@pytest.mark.parametrize("n", [0, 1, 2, 3, 7])
def test_polygamma(n: int) -> None:
    points = np.concatenate([spread(1e-3, 1e6), -uniform(0.1, 20)])
    ours = values(lambda x: S.polygamma(n, x), points)
    with mpmath.workdps(40):
        exact = np.asarray([float(mpmath.psi(n, m(x))) for x in points])
    np.testing.assert_allclose(ours, exact, rtol=2e-13, atol=1e-13 * (n > 0) + 1e-14)
    orders = np.asarray([0, 1, 2, 3])
    np.testing.assert_allclose(
        values(lambda x: S.polygamma(orders, x), np.asarray(0.7)), scipy.polygamma(orders, 0.7), rtol=1e-13
    )


def test_polygamma_of_orders_whose_factorial_overflows() -> None:
    points = np.asarray([30.0, 40.0, 50.0])
    for n in (170, 171, 180):
        with mpmath.workdps(40):
            exact = np.asarray([float(mpmath.psi(n, m(x))) for x in points])
        np.testing.assert_allclose(values(lambda x, n=n: S.polygamma(n, x), points), exact, rtol=1e-12)
    with np.errstate(over="ignore"):
        assert S.polygamma(400, ad.tensor(1.0)).item() == -math.inf
    assert S.polygamma(50, ad.tensor(50.0)).item() == float(np.float32(scipy.polygamma(50, 50.0)))


@pytest.mark.parametrize("name", ["gamma", "gammaln", "digamma"])
def test_negative_numbers_near_zero(name: str) -> None:
    points = -np.concatenate([spread(1e-300, 1), [1e-308, 1e-20, 1e-16]])
    exact = {
        "gamma": mpmath.gamma,
        "gammaln": lambda x: mpmath.log(abs(mpmath.gamma(x))),
        "digamma": mpmath.digamma,
    }[name]
    with mpmath.workdps(50):
        assert relative(values(getattr(S, name), points), [exact(m(x)) for x in points]) <= 2e-15
        far = points[points < -1e-100]
        trigamma = values(lambda x: S.polygamma(1, x), far)
        assert relative(trigamma, [mpmath.psi(1, m(x)) for x in far]) <= 2e-15


@pytest.mark.parametrize("bad", [-1, 0.5, [0, -2], "1", [[1], [2, 3]]])
def test_orders_of_polygamma_are_whole_numbers(bad: Any) -> None:
    with pytest.raises(ad.errors.ArgumentError, match="whole numbers"):
        S.polygamma(bad, ad.tensor(1.0))


# --- conventions ---


def test_gradients_at_singular_points() -> None:
    zero, one = 0.0, 1.0
    assert gradient(S.xlogy, zero, zero) == [0.0, 0.0]
    assert gradient(S.xlogy, zero, 2.0) == [math.log(2.0), 0.0]
    assert gradient(S.xlogy, zero, -1.0) == [0.0, 0.0]
    assert gradient(S.xlog1py, zero, -1.0) == [0.0, 0.0]
    assert gradient(S.entr, zero) == [math.inf]
    assert gradient(S.rel_entr, zero, one) == [-math.inf, 0.0]
    assert gradient(S.kl_div, one, one) == [0.0, 0.0]
    assert gradient(S.sinc, zero) == [0.0]
    assert gradient(S.i1, zero) == [0.5]
    np.testing.assert_allclose(ad.grad(ad.grad(S.sinc))(0.0), -(math.pi**2) / 3, rtol=1e-15)
    np.testing.assert_allclose(ad.grad(ad.grad(ad.grad(S.i1)))(0.0), 0.375, rtol=1e-15)
    strict = ad.Autodiff(ad.NumPy(), strong_zero=True)
    x = ad.tensor([0.0, 0.5], device=strict).require_grad()
    entropy = ad.where(x > 0, S.entr(x), 0.0).sum()
    np.testing.assert_allclose(entropy.backward()[x].numpy(), [0.0, math.log(2) - 1], rtol=1e-6)


def test_sums_of_signed_exponentials() -> None:
    a, b = RNG.normal(size=(2, 3, 4)) * 3, RNG.normal(size=(2, 3, 4))
    for axis in (None, 0, (0, 2), -1):
        for keepdims in (False, True):
            ours = S.logsumexp(ad.tensor(a), axis, ad.tensor(b), keepdims, True)
            for x, y in zip(ours, scipy.logsumexp(a, axis, b, keepdims, True), strict=True):
                np.testing.assert_allclose(x.numpy(), y, rtol=1e-12)
    x = ad.tensor([1.0, math.inf]).require_grad()
    out = S.logsumexp(x, b=ad.tensor([2.0, 0.0]))  # what does not count may be infinite
    np.testing.assert_allclose(out.item(), 1 + math.log(2), rtol=1e-6)
    assert out.backward()[x].tolist() == [1.0, 0.0]
    assert math.isnan(S.logsumexp(ad.tensor([0.0]), b=-1.0).item())
    assert S.logsumexp(ad.ones((0,)), b=2.0).item() == -math.inf


def test_softmax_of_all_elements_and_of_several_axes() -> None:
    x = RNG.normal(size=(2, 3, 4))
    for axis in (None, 0, (0, 2), (2, 1), -1):
        np.testing.assert_allclose(S.softmax(ad.tensor(x), axis).numpy(), scipy.softmax(x, axis), rtol=1e-13)
        np.testing.assert_allclose(S.log_softmax(ad.tensor(x), axis).numpy(), scipy.log_softmax(x, axis), rtol=1e-12)
    assert S.softmax(ad.tensor(3.0)).item() == 1.0


def test_dtypes() -> None:
    assert S.gammaln(ad.tensor([1, 2])).dtype is ad.float32
    assert S.gammaln(ad.tensor([1.0], dtype=ad.float16)).dtype is ad.float16
    assert S.betainc(2, ad.tensor([3.0], dtype=ad.float64), 0.5).dtype is ad.float64
    assert S.xlogy(ad.tensor([1, 2]), 3).dtype is ad.float32
    for f in (S.gammaln, S.i0, S.entr, lambda z: S.gammainc(z, 1.0), lambda z: S.logsumexp(z, b=1.0)):
        with pytest.raises(ad.errors.DtypeError, match="real"):
            f(ad.tensor([1j]))


def test_large_arrays_are_computed_in_blocks() -> None:
    x = RNG.uniform(0.1, 20, (3, 7001))
    np.testing.assert_array_equal(values(S.gammaln, x), np.concatenate([values(S.gammaln, row)[None] for row in x]))
    ours = values(S.gammainc, x[:, :1], x)
    np.testing.assert_allclose(ours, scipy.gammainc(x[:, :1], x), rtol=1e-13)


def test_functions_made_of_others_have_the_digits_of_the_reference() -> None:
    mp = mpmath.mp.clone()
    mp.dps = 60
    leaf = ad.Reference(digits=50)

    def value(f: Any, *numbers: float) -> Any:
        return f(*[ad.tensor(x, dtype=ad.float64, device=leaf) for x in numbers])._array.values[0]

    def voigt(x: float, sigma: float, gamma: float) -> Any:
        z = (x + mp.mpc(0, gamma)) / (sigma * mp.sqrt(2))
        return (mp.exp(-z * z) * mp.erfc(-1j * z)).real / (sigma * mp.sqrt(2 * mp.pi))

    found = [
        *[(value(ad.special.ndtr, x), mp.ncdf(x)) for x in (-12.25, -1.75, 0.375, 4.5)],
        *[(value(ad.special.ndtri, y), mp.sqrt(2) * mp.erfinv(2 * mp.mpf(y) - 1)) for y in (2.0**-20, 0.375, 0.75)],
        (value(ad.special.voigt_profile, 2.5, 1.25, 0.75), voigt(2.5, 1.25, 0.75)),
        (value(ad.special.zeta, -2.5), mp.zeta(-2.5)),
        (
            value(lambda a: ad.special.multigammaln(a, 3), 3.25),
            1.5 * mp.log(mp.pi) + mp.fsum(mp.loggamma(3.25 - mp.mpf(j) / 2) for j in range(3)),
        ),
    ]
    assert max(abs(mp.mpf(x) / y - 1) for x, y in found) < mp.mpf(10) ** -48


def test_hyp0f1_of_one_overflows_to_infinity() -> None:
    """Where SciPy's expansion divides by zero, and says 0."""
    x = np.array([1.0, 1e3, 1e6, 1e300])
    with np.errstate(over="ignore"):
        found = ad.special.hyp0f1(1.0, x)
        slope = ad.vmap(ad.grad(lambda v: ad.special.hyp0f1(1.0, v)))(x[:2])
    np.testing.assert_allclose(found, [float(mpmath.hyp0f1(1, 1)), float(mpmath.hyp0f1(1, 1000)), np.inf, np.inf])
    np.testing.assert_allclose(slope, [float(mpmath.hyp0f1(2, 1)), float(mpmath.hyp0f1(2, 1000))])


def test_elliptic_integrals_of_carlson_at_the_ends_of_float64() -> None:
    """Of operands up to 600 decades apart, for which mpmath needs many digits."""
    cases = [
        ("rf", (1e-300, 2e-300, 3e300)), ("rf", (3e307, 6e307, 9e307)), ("rd", (1.0, 2e300, 3e-300)),
        ("rj", (1e150, 2e150, 3e150, 4e150)), ("rj", (1e-300, 2e-300, 3.0, 4.0)), ("rj", (1.0, 2.0, 3.0, 4e-300)),
        ("rg", (1e100, 2e300, 3e300)),
    ]  # fmt: skip
    with mpmath.workdps(330), Each() as each:
        for kind, numbers in cases:
            ours, theirs = getattr(ad.special, f"ellip{kind}"), getattr(mpmath, f"ellip{kind}")
            given, exact = [np.float64(v) for v in numbers], [m(v) for v in numbers]
            with each((kind, numbers)):
                np.testing.assert_allclose(ours(*given).item(), float(theirs(*exact)), rtol=1e-12)
            for by, x in enumerate(exact):
                with each((kind, numbers, by)):
                    step = x * mpmath.mpf(10) ** -50
                    ends = [theirs(*[*exact[:by], x + h, *exact[by + 1 :]]) for h in (step, -step)]
                    found = float(ad.grad(ours, by)(*given))
                    np.testing.assert_allclose(found, float((ends[0] - ends[1]) / (2 * step)), rtol=1e-12)


def test_yv_beyond_what_scipy_computes_is_nan_and_not_0() -> None:
    """Y_1000(3e9) is 1.18e-5 by mpmath, where SciPy has -0."""
    pytest.importorskip("scipy")
    assert np.isnan(S.yv(1e3, np.float64(3e9)).item())
    assert np.isnan(ad.grad(lambda x: S.yv(1e3, x))(np.float64(3e9)))
    np.testing.assert_allclose(S.yv(0.5, np.float64(3e9)).item(), 2.340824965e-06, rtol=1e-9)  # mpmath's
    assert S.yv(1e3, np.float64(np.inf)).item() == 0.0
