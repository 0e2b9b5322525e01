"""Special functions: derivatives by parameters, quantiles, branches, complex arguments, other libraries."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from conftest import peer
from test_special import RNG, S, gradient, m, mpmath, scipy, spread, uniform, values

import adjoint as ad


@pytest.mark.parametrize(
    ("a", "x"),
    [(0.05, 0.3), (0.3, 0.01), (0.3, 1e-9), (1.0, 1.0), (3.0, 2.0), (3.0, 20.0), (40.0, 30.0), (500.0, 550.0),
     (5e3, 4.9e3)],
)  # fmt: skip
def test_derivatives_of_gammainc_by_its_shape(a: float, x: float) -> None:
    with mpmath.workdps(40):
        psi = mpmath.digamma(m(a))
        density = lambda t: mpmath.exp((m(a) - 1) * mpmath.log(t) - t - mpmath.loggamma(m(a))) * (mpmath.log(t) - psi)
        s = mpmath.sqrt(m(a))
        if x < a and a > 1:  # the shorter side
            ends = [mpmath.mpf(0), *[m(x) - k * s for k in (12, 8, 5, 3, 2, 1) if m(x) > k * s], m(x)]
            exact = mpmath.quad(density, ends)
        else:
            exact = -mpmath.quad(
                density, [m(x) + k * s for k in (0, 0.5, 1, 2, 3, 5, 8, 12, 20)] + [m(x) + 40 * s + 200, mpmath.inf]
            )
    ours = gradient(S.gammainc, a, x)
    assert abs(ours[0] / float(exact) - 1) < 1e-12
    with mpmath.workdps(40):
        density = mpmath.exp((m(a) - 1) * mpmath.log(m(x)) - m(x) - mpmath.loggamma(m(a)))
    assert abs(ours[1] / float(density) - 1) < 1e-13
    np.testing.assert_allclose(gradient(S.gammaincc, a, x), -np.asarray(ours), rtol=1e-14)


@pytest.mark.parametrize(
    ("a", "b", "x"),
    [(0.1, 0.2, 0.3), (0.05, 3.0, 0.001), (3.0, 0.05, 0.999), (1.0, 1.0, 0.5), (2.0, 5.0, 0.2),
     (30.0, 4.0, 0.8), (300.0, 200.0, 0.62)],
)  # fmt: skip
def test_derivatives_of_betainc_by_its_parameters(a: float, b: float, x: float) -> None:
    with mpmath.workdps(40):
        f = lambda s, t: mpmath.betainc(s, t, 0, m(x), regularized=True)
        exact = [float(mpmath.diff(f, (m(a), m(b)), order)) for order in ((1, 0), (0, 1), (1, 1))]
    ours = gradient(S.betainc, a, b, x)
    np.testing.assert_allclose(ours[:2], exact[:2], rtol=1e-11)
    mixed = ad.grad(lambda t: ad.grad(lambda s: S.betainc(s, t, x))(a))(b)
    np.testing.assert_allclose(mixed, exact[2], rtol=1e-10, atol=1e-15)


@pytest.mark.parametrize(
    "name", ["erfinv", "gammaln", "digamma", "i0e", "i1e", "log_ndtr", "ndtri", "logit", "sinc", "i1"]
)
def test_gradients_equal_those_of_jax(name: str) -> None:
    jax = peer("jax")
    with jax.enable_x64(True):
        f = jax.numpy.sinc if name == "sinc" else getattr(jax.scipy.special, name)
        for x in (0.2, 0.7):
            theirs = float(jax.grad(f)(x))
            np.testing.assert_allclose(gradient(getattr(S, name), x), theirs, rtol=1e-12)
            if name not in ("gammaln", "digamma", "i1e", "i1"):
                second = ad.grad(ad.grad(getattr(S, name)))(x)
                np.testing.assert_allclose(second, float(jax.grad(jax.grad(f))(x)), rtol=1e-10)


@pytest.mark.parametrize(("v", "x"), [(0.5, 0.01), (2.5, 3.0), (-1.5, 0.4)])
def test_derivatives_of_kv_by_its_order(v: float, x: float) -> None:
    ours = gradient(S.kv, v, x)
    scaled = gradient(S.kve, v, x)
    with mpmath.workdps(30):
        exact = [mpmath.diff(mpmath.besselk, (m(v), m(x)), order) for order in ((1, 0), (0, 1), (2, 0), (1, 1))]
        assert abs(scaled[0] - mpmath.exp(m(x)) * exact[0]) <= 1e-13 * abs(scaled[0])
    np.testing.assert_allclose(ours, [float(y) for y in exact[:2]], rtol=1e-13)
    second = ad.hessian(lambda p: S.kv(p[0], p[1]))(np.asarray([v, x]))
    np.testing.assert_allclose(second[0], [float(y) for y in exact[2:]], rtol=1e-12)


QUANTILES: dict[str, tuple[Callable[..., Any], list[tuple[float, ...]]]] = {
    "gammaincinv": (S.gammainc, [(0.3, 0.2), (2.0, 0.9), (40.0, 1e-5)]),
    "gammainccinv": (S.gammaincc, [(0.3, 0.2), (2.0, 1e-9), (40.0, 0.7)]),
    "betaincinv": (S.betainc, [(0.3, 0.4, 0.2), (2.0, 5.0, 0.9), (30.0, 20.0, 1e-5)]),
    "betainccinv": (S.betaincc, [(0.3, 0.4, 0.2), (2.0, 5.0, 1e-9), (30.0, 20.0, 0.7)]),
    "stdtrit": (S.stdtr, [(0.7, 0.2), (3.0, 0.5), (3.0, 0.975), (200.0, 0.1)]),
    "chdtri": (S.chdtrc, [(0.6, 0.2), (4.0, 1e-9), (80.0, 0.7)]),
}


@pytest.mark.parametrize("name", QUANTILES)
def test_quantiles_and_their_derivatives(name: str) -> None:
    """Of f(p, q(p, y)) = y: the slope of q by y is one over that of f, and by p nothing changes, to second order."""
    f, points = QUANTILES[name]
    q = getattr(S, name)
    for point in points:
        numbers = np.asarray(point)
        np.testing.assert_allclose(q(*point).item(), getattr(scipy, name)(*point), rtol=1e-6)
        np.testing.assert_allclose(
            q(*map(ad.asarray, numbers)).item(), getattr(scipy, name)(*point), rtol=1e-12, atol=1e-15
        )
        quantile = lambda p: q(*[p[i] for i in range(p.size)])
        kept = lambda p, quantile=quantile: f(*[p[i] for i in range(p.size - 1)], quantile(p))
        np.testing.assert_allclose(kept(ad.asarray(numbers)).item(), point[-1], rtol=1e-12)
        slopes = np.eye(len(point))[-1]
        np.testing.assert_allclose(ad.grad(kept)(numbers), slopes, rtol=1e-10, atol=1e-10 * point[-1])
        scale = np.abs(ad.grad(quantile)(numbers)).max() / numbers.min()
        np.testing.assert_allclose(ad.hessian(kept)(numbers), 0.0, atol=1e-9 * max(scale, 1.0))


def test_quantiles_at_the_ends() -> None:
    assert gradient(lambda a, y: S.gammaincinv(a, y), 2.0, 0.0) == [0.0, math.inf]
    assert gradient(lambda a, y: S.gammaincinv(a, y), 2.0, 1.0) == [0.0, math.inf]
    assert gradient(S.betaincinv, 2.0, 3.0, 0.0) == [0.0, 0.0, math.inf]
    assert S.stdtrit(3.0, np.asarray([0.0, 1.0])).tolist() == [-math.inf, math.inf]
    assert math.isnan(S.gammaincinv(2.0, 1.5).item())


def test_student_distribution_at_zero_and_far_out() -> None:
    for df in (0.5, 3.0, 50.0):
        h = ad.hessian(lambda p: S.stdtr(p[0], p[1]))(np.asarray([df, 0.0]))
        with mpmath.workdps(30):
            density = lambda v: mpmath.gamma((v + 1) / 2) / mpmath.gamma(v / 2) / mpmath.sqrt(v * mpmath.pi)
            exact = [float(density(m(df))), float(mpmath.diff(density, m(df)))]
        np.testing.assert_allclose(gradient(S.stdtr, df, 0.0), [0.0, exact[0]], rtol=1e-12, atol=1e-14)
        np.testing.assert_allclose(h, [[0.0, exact[1]], [exact[1], 0.0]], rtol=1e-11, atol=1e-14)
    t = np.asarray([-1e8, -30.0, -1.0, 0.3, 1.0, 2.0, 40.0, math.inf, -math.inf, math.nan])
    for v in (0.5, 3.0, 50.0, math.inf, -1.0):
        np.testing.assert_allclose(values(lambda t, v=v: S.stdtr(v, t), t), scipy.stdtr(v, t), rtol=1e-12)


def test_complex_error_functions() -> None:
    z = RNG.normal(size=20) * 3 + 1j * RNG.normal(size=20)
    for name in ("erf", "erfc", "wofz"):
        f, exact = getattr(S, name), getattr(scipy, name)
        np.testing.assert_allclose(values(f, z), exact(z), rtol=1e-13)
        slope = ad.jvp(f, (z,), (np.ones(20) + 0j,))[1]
        with mpmath.workdps(30):
            w = lambda t: mpmath.exp(-t * t) * mpmath.erfc(-1j * t)
            theirs = [mpmath.diff(w if name == "wofz" else getattr(mpmath, name), mpmath.mpc(t)) for t in z]
        np.testing.assert_allclose(slope, [complex(y) for y in theirs], rtol=1e-11)
    x, sigma, gamma = spread(0.01, 30), spread(0.1, 3), spread(0.1, 3)
    np.testing.assert_allclose(
        values(S.voigt_profile, x, sigma, gamma), scipy.voigt_profile(x, sigma, gamma), rtol=1e-12
    )


def test_branches_of_lambert() -> None:
    least = -math.exp(-1.0)
    x = np.asarray([least, -0.3, -1e-300, 0.0, 1.0, 1e300, math.inf, -1.0])
    np.testing.assert_allclose(values(S.lambertw, x), [-1.0, *scipy.lambertw(x[1:-2]).real, math.inf, math.nan])
    np.testing.assert_allclose(
        values(lambda t: S.lambertw(t, -1), x[:5]), [-1.0, *scipy.lambertw(x[1:3], -1).real, -math.inf, math.nan]
    )
    z = RNG.normal(size=10) + 1j * RNG.normal(size=10)
    for k in (-2, 0, 3):
        w = values(lambda t, k=k: S.lambertw(t, k), z)
        np.testing.assert_allclose(w, scipy.lambertw(z, k), rtol=1e-13)
        np.testing.assert_allclose(ad.jvp(lambda t, k=k: S.lambertw(t, k), (z,), (z * 0 + 1,))[1], w / z / (1 + w))
    # near the branch point, for k = -1 too, over three derivatives
    for k, t in ((0, least + 1e-4), (-1, least + 1e-4), (-1, -1e-30)):
        f: Callable[..., Any] = lambda x, k=k: S.lambertw(x, k)
        for order in range(4):
            with mpmath.workdps(60):
                exact = mpmath.diff(
                    lambda x, k=k: mpmath.lambertw(x, k).real, m(t), order, h=m(t) * mpmath.mpf(10) ** -12
                )
            np.testing.assert_allclose(float(f(t) if order else f(ad.asarray(np.float64(t)))), float(exact), rtol=1e-7)
            f = ad.grad(f)


@pytest.mark.slow  # JAX compiles each
def test_functions_of_other_libraries() -> None:
    torch, jax = peer("torch"), peer("jax")
    x = uniform(0.2, 8.0)
    with torch.no_grad():  # theirs of the first kinds are made for single precision
        for ours, theirs, absolute in (
            ("j0", "bessel_j0", 1e-6), ("j1", "bessel_j1", 1e-6), ("y0", "bessel_y0", 1e-6), ("y1", "bessel_y1", 1e-6),
            ("k0", "modified_bessel_k0", 1e-15), ("k1e", "scaled_modified_bessel_k1", 1e-15),
        ):  # fmt: skip
            exact = getattr(torch.special, theirs)(torch.from_numpy(x)).numpy()
            np.testing.assert_allclose(values(getattr(S, ours), x), exact, rtol=1e-12, atol=absolute)
    leaf = torch.from_numpy(x + 1).requires_grad_()
    (slope,) = torch.autograd.grad(torch.special.multigammaln(leaf, 3).sum(), leaf)
    np.testing.assert_allclose(ad.grad(lambda t: S.multigammaln(t, 3).sum())(x + 1), slope.numpy(), rtol=1e-12)
    with jax.enable_x64(True):
        theirs = jax.scipy.special
        for f, g in (
            (S.expi, theirs.expi),
            (S.exp1, theirs.exp1),
            (lambda t: S.expn(3, t), lambda t: theirs.expn(3, t)),
        ):
            slope = jax.grad(lambda t, g=g: g(t).sum())(jax.numpy.asarray(x))
            np.testing.assert_allclose(ad.grad(lambda t, f=f: f(t).sum())(x), np.asarray(slope), rtol=1e-10)
        # SciPy's functions in a compiled function, with derivatives
        leaf = ad.JAX()
        slopes = jax.jit(lambda t: ad.grad(lambda u: S.jv(2.5, u).sum())(ad.asarray(t, device=leaf))._array)(x)
        np.testing.assert_allclose(np.asarray(slopes), scipy.jvp(2.5, x), rtol=1e-12)


def test_scipy_is_asked_for_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    from adjoint.backends.special import hosted

    hosted.scipy_special.cache_clear()
    monkeypatch.setitem(sys.modules, "scipy.special", None)
    try:
        with pytest.raises(ad.errors.MissingLibraryError, match=r"adjoint\[scipy\]"):
            S.j0(1.0)
    finally:
        hosted.scipy_special.cache_clear()


def test_orders_without_derivatives_are_refused_where_they_are_tracked() -> None:
    for f in (S.jv, S.yv, S.iv, S.ive, S.expn, S.yn):
        with pytest.raises(ad.errors.TrackedError, match="order"):
            ad.grad(lambda v, f=f: f(v, 2.0))(2.0)
        with pytest.raises(ad.errors.TrackedError, match="order"):
            ad.jvp(lambda v, f=f: f(v, 2.0), (2.0,), (1.0,))
    v = np.asarray([0.5, 1.5])
    np.testing.assert_allclose(ad.vmap(lambda v: S.jv(v, 2.0))(v), scipy.jv(v, 2.0), rtol=1e-14)
    np.testing.assert_allclose(ad.vmap(lambda v: ad.grad(lambda x: S.jv(v, x))(2.0))(v), scipy.jvp(v, 2.0), rtol=1e-13)


@pytest.mark.parametrize(
    ("a", "b", "x", "value", "slope"),
    [
        (0.5, 1.5, 2.0**62, math.inf, math.inf),  # SciPy alone counts up to these
        (0.5, 1.5, math.inf, math.inf, math.inf),
        (-0.5, 1.5, 1e30, -math.inf, -math.inf),
        (-1.5, -0.5, 1e10, -math.inf, -math.inf),
        (0.5, 0.5, -(2.0**63), 0.0, 0.0),
        (2.5, 0.5, -math.inf, 0.0, 0.0),
        (0.0, 1.5, 1e10, 1.0, 0.0),
        (-2.0, 0.5, 1e10, 4 / 3 * 1e20, 8 / 3 * 1e10),  # polynomials
        (1e9, 1.5, 1e9, math.nan, math.nan),  # neither is far from the other
    ],
)
def test_kummers_function_ends_far_out(a: float, b: float, x: float, value: float, slope: float) -> None:
    f = lambda x: S.hyp1f1(a, b, x)
    np.testing.assert_allclose([f(x).item(), ad.grad(f)(x).item()], [value, slope], rtol=1e-8)


def test_kummers_function_is_continued_to_where_it_is_far_out() -> None:
    for a, b, x in [(0.5, 1.5, 700.0), (-0.5, 1.5, 700.0), (-1.5, -0.5, 700.0), (2.5, 0.5, -700.0), (0.5, 0.5, -700.0)]:
        near, far = [S.hyp1f1(a, b, np.float64(x * s)).item() for s in (1.0, 1e6)]
        assert math.copysign(1.0, near) == math.copysign(1.0, far)
        assert (abs(far) > abs(near)) is (abs(near) > 1.0)


# (a, b, x) beside mpmath's values; of some SciPy's own are wrong, or take hours
KUMMER = [
    (100.0, 0.5, -1.0),
    (300.0, 20.25, -1.0),
    (1e4, 0.5, -1.0),
    (1e4, 0.5, -100.0),
    (40.0, 60.5, -12.5),
    (31.0, 1.0, -290.0),
]


@pytest.mark.parametrize(("a", "b", "x"), KUMMER)
def test_kummers_function_of_large_parameters(a: float, b: float, x: float) -> None:
    with mpmath.workdps(60):
        exact = [mpmath.exp(m(x)) * mpmath.hyp1f1(m(b) - m(a), m(b), -m(x), maxterms=10**6)]
        exact += [m(a) / m(b) * mpmath.exp(m(x)) * mpmath.hyp1f1(m(b) - m(a), m(b) + 1, -m(x), maxterms=10**6)]
    np.testing.assert_allclose(S.hyp1f1(a, b, ad.tensor(x, dtype=ad.float64)).numpy(), float(exact[0]), rtol=3e-12)
    np.testing.assert_allclose(ad.grad(lambda x: S.hyp1f1(a, b, x))(x), float(exact[1]), rtol=3e-12)


def test_hypergeometric_functions_of_any_numbers_come() -> None:
    """SciPy counts up to x in some, and calls itself without end in others."""
    for a, b, x, expected in [
        (0.5, 1.0, math.inf, math.inf),
        (0.5, 1.0, 1e20, math.inf),
        (-0.5, 1.0, 1e300, -math.inf),
        (0.5, -0.5, 1e20, -math.inf),
        (0.5, 1e10, 1e20, math.inf),
        (-1.0, 0.5, 1e20, -2e20),
        (2.0, 3.0, -1e12, 2e-24),
        (1e10, -2.5, -1e20, math.nan),
        (1e-9, -0.5, -1e10, math.nan),
        (1e9, 200.0, 1e9, math.nan),
        (-1e10, -1e20, -1e20, math.nan),
        (0.5, 1.0, math.nan, math.nan),
    ]:
        with np.errstate(all="ignore"):
            np.testing.assert_allclose(S.hyp1f1(a, b, ad.tensor(x, dtype=ad.float64)).numpy(), expected, rtol=1e-14)
    for a in (0.5, 1e20):
        assert np.isnan(S.hyp2f1(a, 0.5, a, ad.tensor(math.nan)).numpy())
