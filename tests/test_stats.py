"""Distributions beside SciPy's, PyTorch's and JAX's: values with extremes, gradients, what is outside of supports."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from conftest import peer
from each import Each

import adjoint as ad

stats = peer("scipy.stats")
D = ad.stats
Array = np.ndarray[Any, Any]

# typical parameters of each, in their order
CONTINUOUS: dict[str, list[float]] = {
    "norm": [], "halfnorm": [], "lognorm": [0.7], "skewnorm": [1.2], "truncnorm": [-1.0, 2.0], "t": [3.0], "cauchy": [],
    "laplace": [], "logistic": [], "gumbel_r": [], "uniform": [], "expon": [], "pareto": [1.5], "weibull_min": [1.5],
    "gamma": [2.5], "chi2": [3.0], "invgamma": [2.0], "beta": [2.0, 3.0], "f": [3.0, 4.0], "vonmises": [2.0],
    "chi": [2.5], "rayleigh": [], "maxwell": [], "nakagami": [1.4], "foldnorm": [0.8], "rice": [0.8], "invgauss": [0.9],
    "levy": [], "fatiguelife": [0.8], "erlang": [3.0], "gengamma": [1.5, 1.3], "betaprime": [2.0, 3.0],
    "ncx2": [2.5, 1.3], "pearson3": [0.7],
    "halfcauchy": [], "halflogistic": [], "lomax": [1.5], "genpareto": [0.3], "fisk": [1.8], "burr": [2.0, 1.5],
    "burr12": [2.0, 1.5], "exponweib": [1.5, 1.3], "invweibull": [1.5], "gompertz": [0.7], "gumbel_l": [],
    "weibull_max": [1.5], "genextreme": [0.1], "genlogistic": [1.5], "exponnorm": [1.2], "loggamma": [1.5], "moyal": [],
    "johnsonsu": [0.4, 1.3], "laplace_asymmetric": [1.4], "gennorm": [1.7], "hypsecant": [], "arcsine": [],
    "powerlaw": [1.6], "triang": [0.3], "loguniform": [0.5, 3.0], "reciprocal": [0.5, 3.0], "johnsonsb": [0.4, 1.3],
    "truncexpon": [2.5], "wrapcauchy": [0.4], "vonmises_line": [2.0],
}  # fmt: skip
DISCRETE: dict[str, list[float]] = {
    "poisson": [2.5], "bernoulli": [0.3], "binom": [9.0, 0.3], "geom": [0.3], "nbinom": [2.5, 0.4],
    "randint": [-2.0, 6.0], "betabinom": [9.0, 1.3, 2.1], "betanbinom": [3.0, 1.3, 2.1], "hypergeom": [20.0, 7.0, 9.0],
    "logser": [0.6], "zipf": [2.2], "dlaplace": [0.8], "skellam": [1.3, 2.1],
}  # fmt: skip
CONSTANT = {"ncx2": 1}  # parameters without derivatives, the first so many
OF_CONTINUOUS = "logpdf pdf cdf sf logcdf logsf ppf isf".split()
OF_DISCRETE = "logpmf pmf cdf sf logcdf logsf".split()


def methods(name: str) -> list[str]:
    return [m for m in (OF_CONTINUOUS if name in CONTINUOUS else OF_DISCRETE) if hasattr(getattr(D, name), m)]


def call(name: str, method: str, *arrays: Any) -> Array:
    with np.errstate(all="ignore"):
        return np.asarray(getattr(getattr(D, name), method)(*[ad.asarray(x) for x in arrays]).numpy())


def test_all_are_here() -> None:
    vectors = {"multivariate_normal", "multivariate_t", "dirichlet", "multinomial", "dirichlet_multinomial"}
    vectors |= {"wishart", "invwishart", "matrix_normal"}
    assert set(D.__all__) == set(CONTINUOUS) | set(DISCRETE) | vectors
    assert repr(D.norm) == "adjoint.stats.norm"
    assert repr(D.dirichlet) == "adjoint.stats.dirichlet"


# --- values ---


def drawn(name: str, rng: Any, count: int) -> list[Array]:
    """Parameters of many sizes."""
    if name == "truncnorm":
        a = rng.normal(size=count) * 3
        b = a + np.exp(rng.normal(size=count))
        a[::7], b[::5] = -np.inf, np.inf
        return [a, b]
    if name in DISCRETE:
        p = rng.uniform(size=count)
        whole = rng.integers(1, 60, count).astype(float)
        wide = np.exp(rng.normal(size=count) * 2)
        other, some = np.exp(rng.normal(size=count)), rng.integers(1, 60, count).astype(float)
        return {
            "poisson": [wide], "binom": [whole, p], "nbinom": [wide, p], "randint": [-some, whole],
            "zipf": [1.05 + wide], "betabinom": [whole, wide, other], "betanbinom": [whole, wide, other],
            "dlaplace": [wide],
            "hypergeom": [whole + some, whole, some], "skellam": [wide, other],
        }.get(name, [p])  # fmt: skip
    if name in ("triang", "wrapcauchy"):
        return [rng.uniform(size=count) * 0.98]
    if name == "erlang":
        return [rng.integers(1, 60, count).astype(float)]
    if name in FEW_DIGITS:
        return [0.5 + np.exp(rng.normal(size=count) * 0.3) for _ in CONTINUOUS[name]]
    if name == "pearson3":  # of less skew theirs cancels, of more numbers are at the end
        return [rng.uniform(0.3, 1.5, count) * rng.choice([-1.0, 1.0], count)]
    if name in ("genextreme", "genpareto"):
        return [np.where(np.arange(count) % 7, rng.normal(size=count), 0.0)]
    if name in ("loguniform", "reciprocal"):
        return [a := np.exp(rng.normal(size=count)), a * (1.0 + np.exp(rng.normal(size=count)))]
    return [np.exp(rng.normal(size=count) * 1.5) for _ in CONTINUOUS[name]]


def assert_as_in_scipy(ours: Array, theirs: Array, rtol: float) -> None:
    """To a relative error; what is smaller than the spacing of numbers near 1 may be 0 in theirs."""
    tiny = (np.abs(ours) < 1e-16) & (np.abs(theirs) < 1e-16)
    np.testing.assert_allclose(np.where(tiny, 0.0, ours), np.where(tiny, 0.0, theirs), rtol=rtol)


# where SciPy has nan, or less of the tail
BEYOND = {
    *((name, "logsf") for name in ("halfnorm", "truncnorm", "gompertz", "fisk", "burr", "johnsonsu", "foldnorm")),
    *((name, "logcdf") for name in ("pareto", "truncnorm", "foldnorm", "loggamma", "moyal", "johnsonsu", "exponweib")),
    *((name, "logpdf") for name in ("foldnorm", "rice", "moyal", "johnsonsu")),
    *((name, "logpmf") for name in ("dlaplace", "zipf", "skellam")),
    ("pearson3", "logpdf"),
    ("pearson3", "pdf"),  # at an end, which is outside here
}
FEW_DIGITS = {"fisk", "burr", "exponweib"}  # where theirs is 1 minus something


@pytest.mark.parametrize("name", CONTINUOUS)
def test_continuous_distributions_are_scipys(name: str) -> None:
    rng, theirs = np.random.default_rng(3), getattr(stats, name)
    shapes, loc, scale = drawn(name, rng, 200), rng.normal(size=200), np.exp(rng.normal(size=200))
    q = rng.uniform(size=200)
    x = (
        theirs.ppf(q, *shapes, loc, scale)
        if name not in ("vonmises", "skewnorm")
        else loc + scale * rng.normal(size=200)
    )
    x[::11] = (loc + scale * rng.normal(size=200) * 20)[::11]
    x[5], x[6], x[7] = np.inf, -np.inf, np.nan
    x[8::50], x[9::50] = loc[8::50], (loc + scale)[9::50]  # ends of many supports
    scale[12] = -1.0
    q[:4] = [0.0, 1.0, -0.1, np.nan]
    with Each() as each:
        for method in methods(name):
            with each(method), np.errstate(all="ignore"):
                at = q if method in ("ppf", "isf") else x
                ours = call(name, method, at, *shapes, loc, scale)
                exact = getattr(theirs, method)(at, *shapes, loc, scale)
                better = np.isinf(at) & np.isnan(exact) & method.endswith("pdf")
                if (name, method) in BEYOND:
                    better |= np.isinf(exact)
                if name in FEW_DIGITS and method in ("sf", "logsf"):
                    better |= theirs.sf(at, *shapes, loc, scale) < 0.01
                if name in ("betaprime", "powerlaw", "exponweib") and method.endswith("pdf"):  # of limits at the ends
                    better |= at == loc
                if name == "pareto" and method in ("cdf", "logcdf", "logsf"):  # theirs is 1 - z^-b
                    size = shapes[0] * np.log(np.maximum((at - loc) / np.abs(scale), 1.0))
                    share = -np.expm1(-size)
                    log_share = np.where(size > 0.7, np.log1p(-np.exp(-size)), np.log(share))
                    exact = {"cdf": share, "logcdf": log_share, "logsf": -size}[method]
                    better |= (scale <= 0) | np.isnan(at)
                assert not np.isnan(ours[better & (scale > 0) & ~np.isnan(at)]).any()
                assert_as_in_scipy(ours[~better], exact[~better], 1e-11)


@pytest.mark.parametrize("name", DISCRETE)
def test_discrete_distributions_are_scipys(name: str) -> None:
    rng, theirs = np.random.default_rng(3), getattr(stats, name)
    shapes, loc = drawn(name, rng, 200), rng.integers(-2, 3, 200).astype(float)
    k = loc + rng.integers(-1, 20, 200)
    k[::9] += 0.5
    k[3], k[4], k[5] = np.inf, -np.inf, np.nan
    with Each() as each:
        for method in methods(name):
            with each(method), np.errstate(all="ignore"):
                ours, exact = call(name, method, k, *shapes, loc), getattr(theirs, method)(k, *shapes, loc)
                if method in ("logcdf", "logsf"):  # theirs is the logarithm of numbers near 1
                    rest = getattr(theirs, "sf" if method == "logcdf" else "cdf")(k, *shapes, loc)
                    exact = np.where(rest < 0.5, np.log1p(-rest), exact)
                better = np.isinf(k) & np.isnan(exact) | ((name, method) in BEYOND) & np.isinf(exact)
                assert not np.isnan(ours[better]).any()
                assert_as_in_scipy(ours[~better], exact[~better], 1e-11)


def test_tails_keep_their_digits() -> None:
    mpmath = peer("mpmath")
    with mpmath.workdps(40):
        upper = lambda z: mpmath.erfc(z / mpmath.sqrt(2)) / 2
        exact = {
            ("norm", "logsf", 40.0): mpmath.log(upper(40)),
            ("norm", "sf", 20.0): upper(20),
            ("truncnorm", "logpdf", 31.0, 30.0, 32.0): mpmath.log(mpmath.npdf(31) / (upper(30) - upper(32))),
            ("truncnorm", "cdf", 30.01, 30.0, 32.0): (upper(30) - upper(mpmath.mpf(30.01))) / (upper(30) - upper(32)),
            ("cauchy", "sf", 1e20): 1 / (mpmath.pi * mpmath.mpf(1e20)),
            ("gumbel_r", "logsf", 80.0): -mpmath.mpf(80),
            ("expon", "logcdf", 50.0): mpmath.log1p(-mpmath.exp(-50)),
            ("logistic", "logcdf", -900.0): -mpmath.mpf(900),
            ("t", "sf", 1e5, 3.0): mpmath.betainc(1.5, 0.5, 0, 3 / (3 + mpmath.mpf(1e10)), regularized=True) / 2,
            ("t", "logpdf", 1e200, 3.0): mpmath.log(mpmath.mpf(6) * mpmath.sqrt(3) / mpmath.pi) - 4 * mpmath.log(1e200),
            ("halfnorm", "logsf", 1e-8): mpmath.log1p(-mpmath.erf(mpmath.sqrt(0.5) * mpmath.mpf(1e-8))),
            ("levy", "logcdf", 1e12): mpmath.log1p(-mpmath.erf(mpmath.sqrt(0.5 / mpmath.mpf(1e12)))),
            ("moyal", "logcdf", 60.0): mpmath.log1p(-mpmath.erf(mpmath.sqrt(0.5) * mpmath.exp(-30))),
            ("moyal", "logcdf", -6.0): mpmath.log(mpmath.erfc(mpmath.sqrt(0.5) * mpmath.exp(3))),
            ("foldnorm", "logsf", 60.0, 1.5): mpmath.log(upper(58.5) + upper(61.5)),
            ("fisk", "sf", 40.0, 5.5): 1 / (1 + mpmath.mpf(40) ** 5.5),
            ("burr", "logsf", 40.0, 5.5, 0.5): mpmath.log(1 - (1 + mpmath.mpf(40) ** -5.5) ** -0.5),
            ("exponweib", "sf", 3.0, 0.3, 2.5): 1 - (1 - mpmath.exp(-(mpmath.mpf(3) ** 2.5))) ** mpmath.mpf(0.3),
            ("exponweib", "logcdf", 1e-7, 0.3, 2.5): mpmath.mpf(0.3)
            * mpmath.log(-mpmath.expm1(-(mpmath.mpf(1e-7) ** 2.5))),
            ("gompertz", "logsf", 30.0, 0.7): -mpmath.mpf(0.7) * mpmath.expm1(30),
            ("johnsonsu", "logcdf", -25.0, 0.5, 33.0): mpmath.log(upper(33 * mpmath.asinh(25) - 0.5)),
            ("loggamma", "logcdf", -40.0, 21.0): 21 * mpmath.mpf(-40) - mpmath.loggamma(22),
            ("gamma", "logcdf", 200.0, 3.0): mpmath.log1p(-mpmath.gammainc(3, 200, regularized=True)),
        }
        for (name, method, *numbers), wanted in exact.items():
            ours = call(name, method, *map(np.float64, numbers))
            assert abs(float(ours) - float(wanted)) <= 1e-12 * abs(float(wanted)), (name, method)


def test_what_scipy_loses_keeps_its_digits() -> None:
    """Pearson's distribution of little skew, and the noncentral one far out, with slopes: beside mpmath."""
    mpmath = peer("mpmath")

    def pearson(z: Any, skew: Any) -> Any:
        a = 4 / skew**2
        z = mpmath.mpf(z)
        gamma = (a - 1) * mpmath.log(a + 2 * z / skew) - a - 2 * z / skew - mpmath.loggamma(a)
        return mpmath.log(2 / abs(skew)) + gamma

    def ncx2(x: Any, nc: Any, df: float = 2.5) -> Any:
        series = mpmath.log(mpmath.hyp0f1(df / 2, mpmath.mpf(x) * nc / 4))
        return series - (x + nc) / 2 + (df / 2 - 1) * mpmath.log(x / 2) - mpmath.loggamma(df / 2) - mpmath.log(2)

    for f, exact, points in (
        (D.pearson3.logpdf, pearson, [(0.7, 1e-7), (-3.0, 1e-3), (5.0, 0.02), (1.5, -0.44), (0.3, 2.5)]),
        (lambda x, nc: D.ncx2.logpdf(x, 2.5, nc), ncx2, [(1e-6, 1e-9), (0.7, 1.3), (30.0, 40.0), (900.0, 800.0)]),
    ):  # fmt: skip
        for x, shape in points:
            ours = [float(np.asarray(v)) for v in (f(np.float64(x), shape), *ad.grad(f, argnums=(0, 1))(x, shape))]
            with mpmath.workdps(60):
                s, h = mpmath.mpf(shape), mpmath.mpf(10) ** -20
                wanted = [exact(x, s)]
                wanted.append((exact(mpmath.mpf(x) * (1 + h), s) - exact(mpmath.mpf(x) * (1 - h), s)) / (2 * x * h))
                wanted.append((exact(x, s * (1 + h)) - exact(x, s * (1 - h))) / (2 * s * h))
            np.testing.assert_allclose(ours, [float(w) for w in wanted], rtol=2e-12, err_msg=f"{x} {shape}")
    np.testing.assert_allclose(D.pearson3.logpdf(np.float64(0.7), 0.0).numpy(), stats.norm.logpdf(0.7))


def test_quantiles_that_are_found_by_newtons_method() -> None:
    """They invert the distribution function in all of its range, with derivatives to the third."""
    q = np.asarray([1e-150, 1e-9, 0.2, 0.5, 0.9, 1.0 - 1e-12])
    for name, parameters in (("foldnorm", [0.0, 0.8, 40.0]), ("invgauss", [1e-3, 0.9, 60.0]), ("loggamma", [0.3, 7.0])):
        d, theirs = getattr(D, name), getattr(stats, name)
        for c in parameters:
            z, far = d.ppf(q, c).numpy(), d.isf(q, c).numpy()
            np.testing.assert_allclose(d.logcdf(z, c).numpy()[:4], np.log(q[:4]), rtol=1e-11)
            np.testing.assert_allclose(d.logsf(z, c).numpy()[4:], np.log1p(-q[4:]), rtol=1e-11)
            np.testing.assert_allclose(d.logsf(far, c).numpy()[:4], np.log(q[:4]), rtol=1e-9)
            np.testing.assert_allclose(z[2:5], theirs.ppf(q[2:5], c), rtol=1e-9)
        f = ad.grad(ad.grad(lambda c, d=d: d.ppf(0.3, c)))
        h = 1e-4
        third = (np.asarray(f(0.9 + h)) - np.asarray(f(0.9 - h))) / (2 * h)
        np.testing.assert_allclose(np.asarray(ad.grad(f)(0.9)), third, rtol=1e-6)


# --- derivatives ---


@pytest.mark.parametrize("name", [*CONTINUOUS, *DISCRETE])
def test_derivatives(name: str) -> None:
    """Of first and second order by all parameters, in all modes, beside differences."""
    given = CONTINUOUS.get(name) or DISCRETE.get(name) or []
    fixed, shapes = given[: CONSTANT.get(name, 0)], np.asarray(given[CONSTANT.get(name, 0) :])
    point = np.concatenate([shapes, [0.2, 1.7]]) if name in CONTINUOUS else shapes
    with Each() as each:
        for method in methods(name):
            with each(method):
                f = getattr(getattr(D, name), method)
                if name in DISCRETE:
                    g = lambda p, f=f: f(0.0 if name == "bernoulli" else 1.0, *[p[i] for i in range(p.size)])
                    ad.testing.check_grads(g, (point,), order=2 if method == "logpmf" else 1)
                elif method in ("ppf", "isf"):
                    g = lambda q, p, f=f: f(q, *fixed, *[p[i] for i in range(p.size)])
                    ad.testing.check_grads(g, (np.asarray([0.3, 0.8]), point), order=1)
                else:
                    x = np.asarray([2.4, 4.0] if name in ("pareto", "loguniform", "reciprocal") else [0.9, 1.4])
                    x = x - 2.0 * (name == "weibull_max")
                    g = lambda x, p, f=f: f(x, *fixed, *[p[i] for i in range(p.size)])
                    ad.testing.check_grads(g, (x, point), order=2 if method == "logpdf" else 1)


@pytest.mark.parametrize("name", ["norm", "t", "cauchy", "laplace", "gumbel_r", "beta", "gamma", "poisson", "binom"])
def test_gradients_equal_those_of_torch(name: str) -> None:
    torch = peer("torch")
    T = torch.distributions
    made, numbers, x = {
        "norm": (T.Normal, [0.3, 1.7], 0.9),
        "t": (T.StudentT, [2.5, 0.3, 1.7], 0.9),
        "cauchy": (T.Cauchy, [0.3, 1.7], 0.9),
        "laplace": (T.Laplace, [0.3, 1.7], 0.9),
        "gumbel_r": (T.Gumbel, [0.3, 1.7], 0.9),
        "beta": (T.Beta, [0.6, 1.7], 0.3),
        "gamma": (lambda a: T.Gamma(a, torch.ones((), dtype=torch.float64)), [1.7], 0.9),
        "poisson": (T.Poisson, [1.7], 3.0),
        "binom": (lambda p: T.Binomial(7, p), [0.3], 3.0),
    }[name]
    leaves = [torch.tensor(v, dtype=torch.float64, requires_grad=True) for v in numbers]
    value = made(*leaves).log_prob(torch.tensor(x, dtype=torch.float64))
    exact = [float(g) for g in torch.autograd.grad(value, leaves)]
    f = getattr(D, name).logpmf if name in DISCRETE else getattr(D, name).logpdf
    first = [7.0] if name == "binom" else []
    ours = ad.value_and_grad(lambda p: f(x, *first, *[p[i] for i in range(len(numbers))]))(np.asarray(numbers))
    np.testing.assert_allclose(ours[0], value.item(), rtol=1e-13)
    np.testing.assert_allclose(ours[1], exact, rtol=1e-12)


@pytest.mark.slow  # JAX compiles each
@pytest.mark.parametrize("name", ["t", "gamma", "beta", "logistic", "chi2", "pareto"])
def test_hessians_equal_those_of_jax(name: str) -> None:
    jax = peer("jax")
    numbers = np.asarray([2.4, *CONTINUOUS[name], 0.3, 1.7] if name != "beta" else [0.9, 2.0, 3.0, 0.3, 1.7])
    with jax.enable_x64(True):
        theirs = getattr(jax.scipy.stats, name)
        exact = jax.hessian(lambda p: theirs.logpdf(*[p[i] for i in range(numbers.size)]))(numbers)
    ours = ad.hessian(lambda p: getattr(D, name).logpdf(*[p[i] for i in range(numbers.size)]))(numbers)
    np.testing.assert_allclose(ours, exact, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("name", [*CONTINUOUS, *DISCRETE])
def test_no_derivative_is_nan(name: str) -> None:
    """At the ends of supports, beyond them, and at infinity, to second order; outside they are 0."""
    shapes = CONTINUOUS.get(name, DISCRETE.get(name)) or []
    places = [-np.inf, -1e50, -50.0, 0.3 - 1e-9, 0.3, 0.3 + 1e-9, 2.0, 50.0, 1e50, np.inf]
    rest = [*shapes, 0.3, 1.7] if name in CONTINUOUS else [*shapes, 0.0]
    fixed, moved = rest[: CONSTANT.get(name, 0)], rest[CONSTANT.get(name, 0) :]
    points = np.asarray([[x if name in CONTINUOUS else np.floor(x), *moved] for x in places])
    with Each() as each, np.errstate(all="ignore"):
        for method in methods(name):
            if method in ("ppf", "isf"):
                continue
            with each(method):
                f = lambda p, m=method: getattr(getattr(D, name), m)(p[0], *fixed, *[p[i] for i in range(1, p.size)])
                slopes, curves = ad.vmap(lambda p, f=f: (ad.grad(f)(p), ad.hessian(f)(p)))(points)
                assert not np.isnan(slopes).any(), slopes
                assert not np.isnan(curves).any()
                below = points[:, 0] < (stats.__dict__[name].support(*rest)[0])
                assert not slopes[below].any()
                assert not curves[below].any()


# --- vectors ---


def test_vectors_are_scipys() -> None:
    rng = np.random.default_rng(5)
    a = rng.normal(size=(4, 3, 3))
    cov, x, mean = a @ np.swapaxes(a, 1, 2) + np.eye(3), rng.normal(size=(4, 3)), rng.normal(size=3)
    normal, theirs = D.multivariate_normal, stats.multivariate_normal
    A = ad.asarray
    exact = [theirs.logpdf(v, mean, c) for v, c in zip(x, cov, strict=True)]
    np.testing.assert_allclose(normal.logpdf(A(x), A(mean), A(cov)).numpy(), exact, rtol=1e-13)
    for c in (2.0, np.asarray([1.0, 2.0, 3.0]), cov[0]):
        np.testing.assert_allclose(normal.pdf(A(x), A(mean), c).numpy(), theirs.pdf(x, mean, c), rtol=1e-13)
    shares, alpha = rng.dirichlet([0.5, 2.0, 3.0], 5).T, np.asarray([0.5, 2.0, 3.0])
    np.testing.assert_allclose(D.dirichlet.logpdf(A(shares), alpha).numpy(), stats.dirichlet.logpdf(shares, alpha))
    np.testing.assert_allclose(D.dirichlet.pdf(A(shares), alpha).numpy(), stats.dirichlet.pdf(shares, alpha))
    assert D.dirichlet.pdf(A(np.asarray([0.5, 0.2, 0.2])), alpha).item() == 0.0
    single = shares.astype(np.float32)  # which sum to 1 as well as such numbers can
    np.testing.assert_allclose(
        D.dirichlet.logpdf(A(single), alpha).numpy(), stats.dirichlet.logpdf(shares, alpha), 1e-5
    )
    counts, p = rng.multinomial(7, [0.2, 0.3, 0.5], 5), np.asarray([0.2, 0.3, 0.5])
    np.testing.assert_allclose(D.multinomial.logpmf(A(counts), 7, p).numpy(), stats.multinomial.logpmf(counts, 7, p))
    assert D.multinomial.pmf(A(counts), 8, p).tolist() == [0.0] * 5
    assert ad.grad(lambda p: D.multinomial.pmf(counts[0], 8, p))(p).tolist() == [0.0] * 3
    ad.testing.check_grads(lambda x, m, c: normal.logpdf(x, m, c @ c.mT + ad.eye(3)), (x, mean, a))
    ad.testing.check_grads(lambda p: D.multinomial.logpmf(counts, 7.0, p), (p,))
    ad.testing.check_grads(lambda a: D.dirichlet.logpdf(shares, a), (alpha,))


@pytest.mark.parametrize(("dtype", "rtol"), [("float64", 1e-12), ("float32", 1e-5)])
def test_normal_vectors_of_a_covariance_without_an_inverse(dtype: str, rtol: float) -> None:
    rng = np.random.default_rng(5)
    factor = rng.normal(size=(4, 2))
    cov, mean, x = factor @ factor.T, factor @ np.ones(2), rng.normal(size=(3, 2)) @ factor.T
    ours, theirs = D.multivariate_normal, stats.multivariate_normal
    for c in (cov, cov + np.eye(4), np.asarray([1.0, 2.0, 0.5, 3.0]), 2.0):
        full = np.diag(np.broadcast_to(c, (4,))) if np.ndim(c) < 2 else c
        for name in ("logpdf", "pdf"):
            found = getattr(ours, name)(*[np.asarray(v, dtype) for v in (x, mean, c)], allow_singular=True).numpy()
            np.testing.assert_allclose(found, getattr(theirs, name)(x, mean, full, allow_singular=True), rtol=rtol)
    off = x.astype(dtype) + np.asarray([1, -1, 1, 0.5], dtype)
    fixed = mean.astype(dtype), cov.astype(dtype)
    value, slope = ad.value_and_grad(lambda x: ours.logpdf(x, *fixed, allow_singular=True).sum())(off)
    assert value == -np.inf
    assert not slope.any()
    along = rng.normal(size=2) @ factor.T
    change = lambda h: theirs.logpdf(x[0] + h * along, mean, cov, allow_singular=True)
    slope = ad.grad(lambda x: ours.logpdf(x, mean, cov, allow_singular=True))(x[0])
    np.testing.assert_allclose(slope @ along, (change(1e-5) - change(-1e-5)) / 2e-5, rtol=1e-6)


def test_the_entropy_of_normal_vectors() -> None:
    for mean, c in [(0.0, 1.0), (0.0, 2.5), ([1.0, 2.0], 3.0), (0.0, np.diag([1.0, 2.0, 3.0]) + 0.5)]:
        d = max(np.shape(mean) + np.shape(c)[-1:], default=1)
        found = D.multivariate_normal.entropy(np.asarray(mean), np.asarray(c)).item()
        exact = stats.multivariate_normal.entropy(np.zeros(d), c)
        assert found == pytest.approx(exact, rel=1e-13)


def test_matrices_and_heavy_tails_are_scipys() -> None:
    rng = np.random.default_rng(7)
    spread = lambda m: m @ m.mT + ad.eye(3)
    a = rng.normal(size=(4, 3, 3))
    x, scale = a @ np.swapaxes(a, 1, 2) + np.eye(3), a[::-1] @ np.swapaxes(a[::-1], 1, 2) + np.eye(3)
    for name in ("wishart", "invwishart"):
        ours, theirs = getattr(D, name), getattr(stats, name)
        exact = [theirs.logpdf(v, 4.5, s) for v, s in zip(x, scale, strict=True)]
        np.testing.assert_allclose(ours.logpdf(x, 4.5, scale).numpy(), exact, rtol=1e-12)
        np.testing.assert_allclose(ours.pdf(x, 4.5, scale).numpy(), np.exp(exact), rtol=1e-12)
        assert np.isnan(ours.logpdf(x, 2.0, scale).numpy()).all()
        ad.testing.check_grads(
            lambda x, s, df, f=ours: f.logpdf(spread(x), df, spread(s)), (a, a[::-1], np.float64(4.5))
        )
        with pytest.raises(ad.errors.ShapeError, match=f"{name}.logpdf: expected x and scale"):
            ours.logpdf(x, 4.5, np.eye(2))
    v, loc, df = rng.normal(size=(4, 3)), rng.normal(size=3), np.asarray([0.7, 2.0, 30.0, np.inf])
    exact = [np.squeeze(stats.multivariate_t.logpdf(v[i], loc, x[i], df[i])) for i in range(4)]
    np.testing.assert_allclose(D.multivariate_t.logpdf(v, loc, x, df).numpy(), exact, rtol=1e-12)
    np.testing.assert_allclose(D.multivariate_t.pdf(v, loc, x, df).numpy(), np.exp(exact), rtol=1e-12)
    ad.testing.check_grads(lambda v, m, df: D.multivariate_t.logpdf(v, m, x[:3], df), (v[:3], loc, df[:3]))
    slope = ad.grad(lambda df: D.multivariate_t.logpdf(v, loc, x, df).sum())(df)
    assert slope[3] == 0.0
    assert np.isfinite(slope).all()
    alpha, counts = np.asarray([0.6, 2.0, 1.5]), rng.multinomial(7, [0.2, 0.3, 0.5], 5)
    exact = stats.dirichlet_multinomial.logpmf(counts, alpha, 7)
    np.testing.assert_allclose(D.dirichlet_multinomial.logpmf(counts, alpha, 7).numpy(), exact, rtol=1e-12)
    np.testing.assert_allclose(D.dirichlet_multinomial.pmf(counts, alpha, 7).numpy(), np.exp(exact), rtol=1e-12)
    assert D.dirichlet_multinomial.pmf(counts, alpha, 8).tolist() == [0.0] * 5
    ad.testing.check_grads(lambda a: D.dirichlet_multinomial.logpmf(counts, a, 7), (alpha,))
    with pytest.raises(ad.errors.ShapeError, match="dirichlet_multinomial.logpmf: expected counts"):
        D.dirichlet_multinomial.logpmf(counts, alpha[:2], 7)


def test_normal_matrices_are_scipys() -> None:
    rng = np.random.default_rng(11)
    x, mean, a, b = (rng.normal(size=s) for s in ((4, 3, 2), (3, 2), (3, 3), (2, 2)))
    rows, columns = a @ a.T + np.eye(3), b @ b.T + np.eye(2)
    normal, theirs = D.matrix_normal, stats.matrix_normal
    np.testing.assert_allclose(normal.logpdf(x, mean, rows, columns).numpy(), theirs.logpdf(x, mean, rows, columns))
    np.testing.assert_allclose(normal.pdf(x, mean, rows, columns).numpy(), theirs.pdf(x, mean, rows, columns))
    np.testing.assert_allclose(normal.logpdf(x).numpy(), theirs.logpdf(x, np.zeros((3, 2))))
    np.testing.assert_allclose(
        normal.logpdf(x, 0.0, 2.0, np.asarray([1.0, 3.0])).numpy(),
        theirs.logpdf(x, None, 2 * np.eye(3), np.diag([1, 3])),
    )
    spread = lambda m: m @ m.mT + ad.eye(m.shape[-1], dtype=ad.float64)
    ad.testing.check_grads(lambda x, m, a, b: normal.logpdf(x, m, spread(a), spread(b)), (x, mean, a, b))
    for wrong in ((x[0, 0],), (x, 0.0, columns)):
        with pytest.raises(ad.errors.ShapeError, match="matrix_normal"):
            normal.logpdf(*wrong)
    assert repr(normal) == "adjoint.stats.matrix_normal"


def test_shapes_where_formulas_change() -> None:
    """Gumbel's among the distributions of extremes, the exponential among Pareto's, the square among powers."""
    for name in ("genextreme", "genpareto"):
        for method in methods(name):
            f = lambda c, n=name, m=method: getattr(getattr(D, n), m)(0.7, c)
            derivatives = [f, ad.grad(f), ad.hessian(f)]
            for c in (0.0, 0.1 / 0.7, -0.1 / 0.7, 0.1, -0.1):
                at = lambda d, h, c=c: np.asarray(d(np.asarray(c + h)))
                for lower, d in zip(derivatives, derivatives[1:], strict=False):
                    slope = (at(lower, -2e-3) - 8 * at(lower, -1e-3) + 8 * at(lower, 1e-3) - at(lower, 2e-3)) / 12e-3
                    np.testing.assert_allclose(at(d, 0.0), slope, rtol=1e-8)
    f = lambda z: D.gennorm.logpdf(z, 2.0, scale=2.0**0.5)
    np.testing.assert_allclose([ad.grad(f)(0.0), ad.hessian(f)(0.0)], [0.0, -1.0], rtol=1e-15)
    np.testing.assert_allclose(ad.grad(lambda z: D.gennorm.cdf(z, 1.5))(0.0), stats.gennorm.pdf(0, 1.5), rtol=1e-6)
    third = ad.grad(ad.grad(ad.grad(lambda z: D.gennorm.cdf(z, 2.0, scale=2.0**0.5))))
    np.testing.assert_allclose(third(np.asarray(0.0)), -stats.norm.pdf(0.0), rtol=1e-12)


def test_vectors_have_gradients_of_torch() -> None:
    torch = peer("torch")
    rng = np.random.default_rng(6)
    a, x = rng.normal(size=(3, 3)), rng.normal(size=3)
    cov = a @ a.T + np.eye(3)
    leaf = torch.from_numpy(cov).requires_grad_()
    theirs = torch.distributions.MultivariateNormal(torch.zeros(3, dtype=torch.float64), leaf).log_prob(
        torch.from_numpy(x)
    )
    (exact,) = torch.autograd.grad(theirs, leaf)
    ours = ad.grad(lambda c: D.multivariate_normal.logpdf(x, 0.0, c))(cov)
    np.testing.assert_allclose(ours + ours.T, (exact + exact.T).numpy(), rtol=1e-12)


# --- arguments ---


def test_parameters_are_read_as_in_scipy() -> None:
    x = np.asarray([0.5, 2.0])
    np.testing.assert_allclose(D.t.logpdf(x, 3.0, 0.1, 2.0).numpy(), D.t.logpdf(x, scale=2.0, df=3.0, loc=0.1).numpy())
    assert D.norm.logpdf(1).dtype is ad.float32
    assert D.norm.logpdf(ad.tensor([1.0], dtype=ad.float16), 0.0, 2.0).dtype is ad.float16
    assert D.gamma.cdf(x[:, None], np.asarray([1.0, 2.0, 3.0])).shape == (2, 3)
    for call_, word in [
        (lambda: D.t.logpdf(x), "df is missing"),
        (lambda: D.norm.logpdf(x, 0.0, 1.0, 2.0), "received 3"),
        (lambda: D.norm.logpdf(x, 0.0, loc=1.0), "given twice"),
        (lambda: D.norm.logpdf(x, sigma=1.0), "sigma is none"),
    ]:
        with pytest.raises(ad.errors.ArgumentTypeError, match=word):
            call_()
    with pytest.raises(ad.errors.DtypeError, match="stats.norm.pdf"):
        D.norm.pdf(1j)
    for wrong in ((x, 0.0, np.eye(3)), (1.0,)):
        with pytest.raises(ad.errors.ShapeError, match="multivariate_normal"):
            D.multivariate_normal.logpdf(*wrong)
    with pytest.raises(ad.errors.ShapeError, match="dirichlet"):
        D.dirichlet.logpdf(x, np.ones(3))
    assert math.isnan(D.gamma.logpdf(1.0, -1.0).item())


@pytest.mark.parametrize("leaf", ["torch:cpu", pytest.param("jax", marks=pytest.mark.slow), "reference"])
def test_other_leaves(leaf: str) -> None:
    if leaf != "reference":
        peer(leaf.partition(":")[0])
    x = np.asarray([0.4, 0.9], np.float32)
    for name, method in (("t", "cdf"), ("gamma", "logpdf"), ("beta", "sf"), ("truncnorm", "logcdf"), ("f", "ppf")):
        shapes = CONTINUOUS[name]
        ours = getattr(getattr(D, name), method)(ad.asarray(x, device=leaf), *shapes)
        assert ours.device.leaf.name == leaf
        np.testing.assert_allclose(ours.numpy(), getattr(getattr(D, name), method)(x, *shapes).numpy(), rtol=2e-6)
