"""Derivatives of special functions; numbers of formulas are those of the NIST Digital Library, dlmf.nist.gov."""

from __future__ import annotations

import math
from typing import Any

from adjoint.rules.elementwise import constant, gauss, pi, safe_divide
from adjoint.rules.records import Elementwise, Record, Rule


def _inverse_gauss(B: Any, g: Any, out: Any) -> Any:
    return B.multiply(g, B.multiply(B.exp(B.square(out)), B.multiply(B.sqrt(pi(B, out)), 0.5)))


def polygamma(B: Any, n: int, x: Any) -> Any:
    """The derivative of digamma of an order, 5.15.1."""
    if n == 0:
        return B.digamma(x)
    return B.multiply(B.zeta(n + 1.0, x, order=0), float((-1) ** (n + 1) * math.factorial(n)))


def _after(B: Any, s: Any) -> Any:
    return s + 1.0 if isinstance(s, (int, float)) else B.add(s, 1.0)


def _zeta_q(B: Any, g: Any, s: Any, q: Any, order: Any) -> Any:
    """-s zeta(s + 1, q), 25.11.17, and its derivatives by s."""
    slope = B.multiply(B.zeta(_after(B, s), q, order=order), s)
    if order:
        slope = B.add(slope, B.multiply(B.zeta(_after(B, s), q, order=order - 1), float(order)))
    return B.negative(B.multiply(g, slope))


# --- incomplete functions: densities times polynomials in the derivatives of their logarithms ----


def _scores(B: Any, a: Any, x: Any, count: int) -> list[Any]:
    """The derivatives by a of log(x^(a - 1) exp(-x) / gamma(a)), from the first on."""
    first = B.subtract(B.log(x), B.digamma(a))
    return [first, *[B.negative(polygamma(B, n, a)) for n in range(1, count)]]


def _gammainc_x(B: Any, g: Any, a: Any, x: Any, order: Any) -> Any:
    density = B.gamma_density(a, x)
    if order:
        scores = _scores(B, a, x, order)
        density = B.multiply(density, _bell(B, {(i + 1, 0): s for i, s in enumerate(scores)}, order, 0))
    return B.multiply(g, density)


def _density_x(B: Any, g: Any, a: Any, x: Any, out: Any) -> Any:
    return B.multiply(g, B.multiply(out, B.subtract(B.divide(B.subtract(a, 1.0), x), 1.0)))


def _beta_scores(B: Any, a: Any, b: Any, x: Any, i: int, j: int) -> dict[tuple[int, int], Any]:
    """The derivatives by a and b of log(x^(a - 1) (1 - x)^(b - 1) / B(a, b))."""
    found = {}
    for k in range(i + 1):
        for n in range(j + 1):
            if k + n:
                score = polygamma(B, k + n - 1, B.add(a, b))
                if not n:
                    score = B.subtract(score, polygamma(B, k - 1, a))
                if not k:
                    score = B.subtract(score, polygamma(B, n - 1, b))
                if k + n == 1:
                    score = B.add(score, B.log(x) if k else B.log1p(B.negative(x)))
                found[k, n] = score
    return found


def _betainc_x(B: Any, g: Any, a: Any, b: Any, x: Any, order: Any) -> Any:
    density, (i, j) = B.beta_density(a, b, x), order
    if i + j:
        density = B.multiply(density, _bell(B, _beta_scores(B, a, b, x, i, j), i, j))
    return B.multiply(g, density)


def _bell(B: Any, scores: dict[tuple[int, int], Any], i: int, j: int) -> Any:
    """The derivative of exp(f) of orders i and j over exp(f), from those of f: complete Bell polynomials."""
    known: dict[tuple[int, int], Any] = {(0, 0): 1.0}

    def at(m: int, n: int) -> Any:
        if (m, n) not in known:
            first = (1, 0) if m else (0, 1)
            rest, total = (m - first[0], n - first[1]), None
            for k in range(rest[0] + 1):
                for l in range(rest[1] + 1):
                    ways = float(math.comb(rest[0], k) * math.comb(rest[1], l))
                    part = B.multiply(scores[first[0] + k, first[1] + l], at(rest[0] - k, rest[1] - l))
                    part = part if ways == 1.0 else B.multiply(part, ways)
                    total = part if total is None else B.add(total, part)
            known[m, n] = total
        return known[m, n]

    return at(i, j)


def _beta_density(B: Any, g: Any, a: Any, b: Any, x: Any, out: Any, k: int, n: int) -> Any:
    return B.multiply(g, B.multiply(out, _beta_scores(B, a, b, x, k, n)[k, n]))


def _beta_density_x(B: Any, g: Any, a: Any, b: Any, x: Any, out: Any) -> Any:
    slope = B.divide(B.subtract(a, 1.0), x)
    return B.multiply(g, B.multiply(out, B.subtract(slope, B.divide(B.subtract(b, 1.0), B.subtract(1.0, x)))))


# --- Bessel functions ----------------------------------------------------------------------------


def _bessel_i(B: Any, g: Any, x: Any, order: Any, scaled: Any, reduced: Any) -> Any:
    """Over x to the order, the derivative is x times the next one, 10.29.4."""
    if scaled:
        return _bessel_ie(B, g, x, order)
    following = B.bessel_i(x, order=order + 1, scaled=False, reduced=True)
    if reduced or not order:
        slope = B.multiply(following, x)
    else:
        mine = B.bessel_i(x, order=order, scaled=False, reduced=True)
        slope = B.add(B.multiply(mine, float(order)), B.multiply(following, B.square(x)))
        slope = slope if order == 1 else B.multiply(slope, B.pow(x, order - 1))
    return B.multiply(g, slope)


def _bessel_ie(B: Any, g: Any, x: Any, order: Any) -> Any:
    """Of orders 0 and 1. With J(x) = exp(-x) I_0(x), exp(-x) I_1(x) is J + J', 10.29.3: nothing cancels for large x."""
    first = B.i0e_derivative(x, order=1)
    if not order:
        return B.multiply(g, B.multiply(B.sign(x), first))
    return B.multiply(g, B.add(first, B.i0e_derivative(x, order=2)))


def _gauss_of_complex(B: Any, g: Any, z: Any) -> Any:
    """g times 2 exp(-z^2) / sqrt(pi), 7.10.1."""
    return B.multiply(g, B.divide(B.exp(B.negative(B.square(z))), B.multiply(B.sqrt(pi(B, z)), 0.5)))


def _cylinder(name: str) -> Elementwise:
    """A Bessel function of real order, of which no derivative by the order is known here."""
    return Elementwise(x=lambda B, g, v, x, order: B.multiply(g, B[name](v, x, order=order + 1)))


# --- exponential integrals and inverse functions -------------------------------------------------


def _expi(B: Any, g: Any, x: Any) -> Any:
    """exp(x) / x, 6.2.5, which is a generalised exponential integral."""
    return B.negative(B.multiply(g, B.expn(B.negative(x), order=0)))


def _lambertw(B: Any, g: Any, x: Any, out: Any) -> Any:
    """1 / (x + exp(W)), 4.13.4, which needs no division by x = 0."""
    return B.divide(g, B.add(x, B.exp(out)))


def _wave_slope(B: Any, phi: Any, m: Any, kind: Any, order: Any) -> Any:
    """The integrand (1 - m sin^2)^(-1/2), 19.2.8, or its reciprocal, or its derivative of an order by m."""
    square = B.square(B.sin(phi))
    depth = B.subtract(1.0, B.multiply(m, square))
    first = 0.5 if kind == 1 else -0.5
    slope = B.pow(depth, -first - order)
    for k in range(order):
        slope = B.multiply(slope, B.multiply(square, first + k))
    return slope


def _carlson(i: int) -> Rule:
    """The derivative by the i-th operand raises its order."""

    def rule(B: Any, g: Any, x: Any, y: Any, z: Any, p: Any, kind: Any, order: Any) -> Any:
        raised = tuple(n + (k == i) for k, n in enumerate(order))
        return B.multiply(g, B.carlson(x, y, z, p, kind=kind, order=raised))

    return rule


SN, CN, DN, AMPLITUDE = range(4)


def _jacobi(B: Any, u: Any, m: Any, kind: int) -> Any:
    """The derivative of sn, cn, dn by the amplitude, or 1: that is to be multiplied."""
    if kind == SN:
        return B.jacobi_elliptic(u, m, kind=CN)
    if kind == CN:
        return B.negative(B.jacobi_elliptic(u, m, kind=SN))
    wave = B.multiply(B.jacobi_elliptic(u, m, kind=SN), B.jacobi_elliptic(u, m, kind=CN))
    return B.negative(B.divide(B.multiply(m, wave), B.jacobi_elliptic(u, m, kind=DN)))


def _jacobi_u(B: Any, g: Any, u: Any, m: Any, kind: Any) -> Any:
    """22.13.1 to 22.13.3; of the amplitude it is dn, 22.16.3."""
    if kind == DN:
        wave = B.multiply(B.jacobi_elliptic(u, m, kind=SN), B.jacobi_elliptic(u, m, kind=CN))
        return B.negative(B.multiply(g, B.multiply(m, wave)))
    slope = B.multiply(g, B.jacobi_elliptic(u, m, kind=DN))
    return slope if kind == AMPLITUDE else B.multiply(slope, _jacobi(B, u, m, kind))


def _jacobi_m(B: Any, g: Any, u: Any, m: Any, kind: Any) -> Any:
    """The amplitude is where the integral of the first kind is u: what m adds to that, the amplitude takes away."""
    ahead = B.elliptic_incomplete(B.jacobi_elliptic(u, m, kind=AMPLITUDE), m, kind=1, order=1)
    if kind != DN:
        slope = B.negative(B.multiply(_jacobi_u(B, 1.0, u, m, kind), ahead))
        return B.multiply(g, slope)
    square = B.square(B.jacobi_elliptic(u, m, kind=SN))
    direct = B.divide(square, B.multiply(B.jacobi_elliptic(u, m, kind=DN), 2.0))
    return B.negative(B.multiply(g, B.add(direct, B.multiply(_jacobi_u(B, 1.0, u, m, DN), ahead))))


def _airy(B: Any, g: Any, x: Any, kind: Any) -> Any:
    """9.2.1: the second derivative is x times the function."""
    following = B.airy(x, kind=kind + 1) if kind % 2 == 0 else B.multiply(x, B.airy(x, kind=kind - 1))
    return B.multiply(g, following)


def _trigonometric_integral(B: Any, g: Any, x: Any, kind: Any) -> Any:
    """sin(x) / x and its like, 6.2.9 to 6.2.16."""
    if kind == "si":
        return B.multiply(g, B.sinc(B.divide(x, pi(B, x)), order=0))
    if kind == "shi":
        return B.multiply(g, B.exponential_mean(x, order=0, symmetric=True))
    return B.divide(B.multiply(g, B.cos(x) if kind == "ci" else B.cosh(x)), x)


def _fresnel(B: Any, g: Any, x: Any, kind: Any) -> Any:
    """7.2.7 and 7.2.8."""
    angle = B.multiply(B.square(x), B.multiply(pi(B, x), 0.5))
    return B.multiply(g, B.sin(angle) if kind == "s" else B.cos(angle))


def _erfi(B: Any, g: Any, x: Any) -> Any:
    """2 exp(x^2) / sqrt(pi)."""
    return B.multiply(g, B.divide(B.exp(B.square(x)), B.multiply(B.sqrt(pi(B, x)), 0.5)))


def _owens_h(B: Any, g: Any, h: Any, a: Any) -> Any:
    """Of the integral over t from 0 to a of exp(-h^2 (1 + t^2) / 2) / (1 + t^2), over 2 pi."""
    bell = B.exp(B.multiply(B.square(h), -0.5))
    front = B.multiply(B.sqrt(B.multiply(pi(B, h), 2.0)), 2.0)
    inner = B.erf(B.multiply(B.multiply(a, h), constant(B, "sqrt", 0.5, h)))
    return B.negative(B.multiply(g, B.divide(B.multiply(bell, inner), front)))


def _owens_a(B: Any, g: Any, h: Any, a: Any) -> Any:
    width = B.add(B.square(a), 1.0)
    bell = B.exp(B.multiply(B.multiply(B.square(h), width), -0.5))
    return B.multiply(g, B.divide(bell, B.multiply(width, B.multiply(pi(B, h), 2.0))))


def _quantile(B: Any, g: Any, out: Any, density: Any, slope: Any) -> Any:
    """By the implicit function theorem; at the ends of the interval, which stay there, 0."""
    inside = B.logical_and(B.greater(out, 0.0), B.greater(density, 0.0))
    return B.where(inside, B.negative(B.divide(B.multiply(g, slope), B.where(inside, density, 1.0))), 0.0)


def _beta_quantile_y(B: Any, g: Any, a: Any, b: Any, out: Any) -> Any:
    return B.divide(g, B.beta_density(a, b, out))


def _beta_quantile_from_above_y(B: Any, g: Any, a: Any, b: Any, out: Any) -> Any:
    return B.negative(_beta_quantile_y(B, g, a, b, out))


def _student_mass(B: Any, df: Any, t: Any) -> Any:
    """The density of Student's t distribution."""
    half = B.multiply(df, 0.5)
    log = B.multiply(B.add(half, 0.5), B.log1p(B.divide(B.square(t), df)))
    front = B.add(B.betaln(half, 0.5), B.multiply(B.log(df), 0.5))
    return B.exp(B.negative(B.add(log, front)))


def _digamma_step(B: Any, g: Any, x: Any, by: Any) -> Any:
    """digamma(x + by) - digamma(x), which are close where x is large: there by the difference of their series."""
    if B.leaf.digits is not None:  # more of them than the difference loses, and than the series has
        return B.subtract(B.digamma(B.add(x, by)), B.digamma(x))
    kind = B.dtype_of(g)
    x, by = (B.full(shape=(), value=v, dtype=kind) if isinstance(v, (int, float)) else v for v in (x, by))
    large = B.logical_and(B.greater_equal(x, 64.0), B.greater(by, 0.0))
    low, step = B.where(large, x, 64.0), B.where(large, by, 1.0)
    total, part = B.log1p(B.divide(step, low)), B.divide(step, B.add(low, step))  # part is 1 - low / high
    # 1 / low^n - 1 / high^n = (1 - (low / high)^n) / low^n
    ratio = B.divide(low, B.add(low, step))
    square = B.square(B.divide(1.0, low))
    two = B.multiply(part, B.add(1.0, ratio))
    four = B.multiply(two, B.add(1.0, B.square(ratio)))
    six = B.multiply(two, B.add(B.add(1.0, B.square(ratio)), B.square(B.square(ratio))))
    inner = B.add(B.multiply(four, -1 / 120), B.multiply(B.multiply(square, six), 1 / 252))
    inner = B.add(B.multiply(two, 1 / 12), B.multiply(square, inner))
    series = B.add(total, B.add(B.divide(B.multiply(part, 0.5), low), B.multiply(square, inner)))
    return B.where(large, series, B.subtract(B.digamma(B.add(x, by)), B.digamma(x)))


def _student_quantile(B: Any, g: Any, df: Any, out: Any) -> Any:
    density = _student_mass(B, df, out)
    inside = B.greater(density, 0.0)
    t = B.where(inside, out, 0.0)
    slope = _student_df(B, 1.0, df, t, 0)
    return B.where(inside, B.negative(B.divide(B.multiply(g, slope), B.where(inside, density, 1.0))), 0.0)


def _student_t(B: Any, g: Any, df: Any, t: Any, order: Any) -> Any:
    """The density, and its derivatives by b = df / 2 where t^2 / df stays, as for betainc."""
    density = _student_mass(B, df, t)
    if order:
        b = B.multiply(df, 0.5)
        scores = {
            (k, 0): B.subtract(polygamma(B, k - 1, B.add(b, 0.5)), polygamma(B, k - 1, b)) for k in range(1, order + 1)
        }
        scores[1, 0] = B.subtract(scores[1, 0], B.log1p(B.divide(B.square(t), df)))
        density = B.multiply(density, _bell(B, scores, order, 0))
    return B.multiply(g, density)


def _student_df(B: Any, g: Any, df: Any, t: Any, order: Any) -> Any:
    """By b = df / 2, and by t / sqrt(df) where that stays."""
    along = B.divide(_student_t(B, t, df, t, order), B.multiply(df, 2.0))
    return B.multiply(g, B.subtract(B.multiply(B.stdtr(df, t, order=order + 1), 0.5), along))


# --- entropies -----------------------------------------------------------------------------------


def _log_ratio(B: Any, x: Any, y: Any) -> Any:
    return B.log(B.divide(x, B.where(B.equal(y, 0.0), 1.0, y)))


def _kl_div_y(B: Any, g: Any, x: Any, y: Any) -> Any:
    """1 - x / y in the form that has all digits, and whose derivatives have them, too: y - x is exact for x near y."""
    near = B.less(y, B.multiply(x, 2.0))
    far = B.subtract(1.0, safe_divide(B, x, y))
    return B.multiply(g, B.where(near, safe_divide(B, B.subtract(y, x), y), far))


RECORDS: dict[str, Record] = {
    "erfc": Elementwise(x=lambda B, g, x: B.negative(gauss(B, g, x))),
    # 7.18.5: the derivatives of erfcx are multiples of exp(x^2) times the repeated integrals of erfc
    "erfcx": Elementwise(x=lambda B, g, x: B.multiply(g, B.multiply(B.ierfcx(x, order=1), -2.0))),
    "ierfcx": Elementwise(
        x=lambda B, g, x, order: B.multiply(g, B.multiply(B.ierfcx(x, order=order + 1), -2.0 * (order + 1)))
    ),
    "erfinv": Elementwise(x=_inverse_gauss),
    "erfcinv": Elementwise(x=lambda B, g, out: B.negative(_inverse_gauss(B, g, out))),
    "log_ndtr": Elementwise(x=lambda B, g, x: B.multiply(g, B.log_ndtr_derivative(x, order=1))),
    "log_ndtr_derivative": Elementwise(
        x=lambda B, g, x, order: B.multiply(g, B.log_ndtr_derivative(x, order=order + 1))
    ),
    "gamma": Elementwise(x=lambda B, g, x, out: B.multiply(g, B.multiply(out, B.digamma(x)))),
    # of numbers from 1/2 on: elsewhere digamma is infinite where this is 0
    "rgamma": Elementwise(x=lambda B, g, x, out: B.negative(B.multiply(g, B.multiply(out, B.digamma(x))))),
    "gammaln": Elementwise(x=lambda B, g, x: B.multiply(g, B.digamma(x))),
    "digamma": Elementwise(x=lambda B, g, x: B.multiply(g, B.zeta(2.0, x, order=0))),
    "betaln": Elementwise(
        a=lambda B, g, a, b: B.negative(B.multiply(g, _digamma_step(B, g, a, b))),
        b=lambda B, g, a, b: B.negative(B.multiply(g, _digamma_step(B, g, b, a))),
    ),
    "zeta": Elementwise(s=lambda B, g, s, q, order: B.multiply(g, B.zeta(s, q, order=order + 1)), q=_zeta_q),
    "gammainc": Elementwise(
        a=lambda B, g, a, x, order: B.multiply(g, B.gammainc(a, x, order=order + 1)),
        x=_gammainc_x,
    ),
    "gammaincc": Elementwise(
        a=lambda B, g, a, x: B.negative(B.multiply(g, B.gammainc(a, x, order=1))),
        x=lambda B, g, a, x: B.negative(B.multiply(g, B.gamma_density(a, x))),
    ),
    "gamma_density": Elementwise(
        a=lambda B, g, a, x, out: B.multiply(g, B.multiply(out, _scores(B, a, x, 1)[0])), x=_density_x
    ),
    "betainc": Elementwise(
        a=lambda B, g, a, b, x, order: B.multiply(g, B.betainc(a, b, x, order=(order[0] + 1, order[1]))),
        b=lambda B, g, a, b, x, order: B.multiply(g, B.betainc(a, b, x, order=(order[0], order[1] + 1))),
        x=_betainc_x,
    ),
    "beta_density": Elementwise(
        a=lambda B, g, a, b, x, out: _beta_density(B, g, a, b, x, out, 1, 0),
        b=lambda B, g, a, b, x, out: _beta_density(B, g, a, b, x, out, 0, 1),
        x=_beta_density_x,
    ),
    "bessel_i": Elementwise(x=_bessel_i),
    "i0e_derivative": Elementwise(
        x=lambda B, g, x, order: B.multiply(g, B.multiply(B.sign(x), B.i0e_derivative(x, order=order + 1)))
    ),
    "bessel_j": _cylinder("bessel_j"),
    "bessel_y": _cylinder("bessel_y"),
    "bessel_iv": _cylinder("bessel_iv"),
    "bessel_ive": _cylinder("bessel_ive"),
    "bessel_k": Elementwise(
        v=lambda B, g, v, x, order, scaled: B.multiply(
            g, B.bessel_k(v, x, order=(order[0] + 1, order[1]), scaled=scaled)
        ),
        x=lambda B, g, v, x, order, scaled: B.multiply(
            g, B.bessel_k(v, x, order=(order[0], order[1] + 1), scaled=scaled)
        ),
    ),
    "expi": Elementwise(x=_expi),
    # 8.19.13
    "expn": Elementwise(x=lambda B, g, x, order: B.negative(B.multiply(g, B.expn(x, order=order - 1)))),
    "lambertw": Elementwise(x=_lambertw),
    "dawsn": Elementwise(x=lambda B, g, x, order: B.multiply(g, B.dawsn(x, order=order + 1))),
    "wofz": Elementwise(z=lambda B, g, z, order: B.multiply(g, B.wofz(z, order=order + 1))),
    "erf_complex": Elementwise(z=_gauss_of_complex),
    "erfc_complex": Elementwise(z=lambda B, g, z: B.negative(_gauss_of_complex(B, g, z))),
    "elliptic_complete": Elementwise(
        p=lambda B, g, p, kind, order: B.negative(B.multiply(g, B.elliptic_complete(p, kind=kind, order=order + 1)))
    ),
    "elliptic_incomplete": Elementwise(
        phi=lambda B, g, phi, m, kind, order: B.multiply(g, _wave_slope(B, phi, m, kind, order)),
        m=lambda B, g, phi, m, kind, order: B.multiply(g, B.elliptic_incomplete(phi, m, kind=kind, order=order + 1)),
    ),
    "carlson": Elementwise(x=_carlson(0), y=_carlson(1), z=_carlson(2), p=_carlson(3)),
    "jacobi_elliptic": Elementwise(u=_jacobi_u, m=_jacobi_m),
    "hyp0f1": Elementwise(x=lambda B, g, b, x, order: B.multiply(g, B.hyp0f1(b, x, order=order + 1))),
    "hyp1f1": Elementwise(x=lambda B, g, a, b, x, order: B.multiply(g, B.hyp1f1(a, b, x, order=order + 1))),
    "hyp2f1": Elementwise(x=lambda B, g, a, b, c, x, order: B.multiply(g, B.hyp2f1(a, b, c, x, order=order + 1))),
    "struve": Elementwise(
        x=lambda B, g, v, x, order, modified: B.multiply(g, B.struve(v, x, order=order + 1, modified=modified))
    ),
    "airy": Elementwise(x=_airy),
    "trigonometric_integral": Elementwise(x=_trigonometric_integral),
    "exponential_mean": Elementwise(
        x=lambda B, g, x, order, symmetric: B.multiply(g, B.exponential_mean(x, order=order + 1, symmetric=symmetric))
    ),
    "fresnel": Elementwise(x=_fresnel),
    "spence": Elementwise(x=lambda B, g, x, order: B.multiply(g, B.spence(x, order=order + 1))),
    "owens_t": Elementwise(h=_owens_h, a=_owens_a),
    "erfi": Elementwise(x=_erfi),
    "wrightomega": Elementwise(x=lambda B, g, x, order: B.multiply(g, B.wrightomega(x, order=order + 1))),
    "gammaincinv": Elementwise(
        a=lambda B, g, a, out: _quantile(B, g, out, B.gamma_density(a, out), B.gammainc(a, out, order=1)),
        y=lambda B, g, a, out: B.divide(g, B.gamma_density(a, out)),
    ),
    "gammainccinv": Elementwise(
        a=lambda B, g, a, out: _quantile(B, g, out, B.gamma_density(a, out), B.gammainc(a, out, order=1)),
        y=lambda B, g, a, out: B.negative(B.divide(g, B.gamma_density(a, out))),
    ),
    **{
        name: Elementwise(
            a=lambda B, g, a, b, out: _quantile(
                B, g, out, B.beta_density(a, b, out), B.betainc(a, b, out, order=(1, 0))
            ),
            b=lambda B, g, a, b, out: _quantile(
                B, g, out, B.beta_density(a, b, out), B.betainc(a, b, out, order=(0, 1))
            ),
            y=rule,
        )
        for name, rule in (("betaincinv", _beta_quantile_y), ("betainccinv", _beta_quantile_from_above_y))
    },
    "stdtr": Elementwise(df=_student_df, t=_student_t),
    "stdtrit": Elementwise(
        df=lambda B, g, df, out: _student_quantile(B, g, df, out),
        p=lambda B, g, df, out: B.divide(g, _student_mass(B, df, out)),
    ),
    "sinc": Elementwise(x=lambda B, g, x, order: B.multiply(g, B.sinc(x, order=order + 1))),
    "entr": Elementwise(x=lambda B, g, x: B.negative(B.multiply(g, B.add(B.log(x), 1.0)))),
    "rel_entr": Elementwise(
        x=lambda B, g, x, y: B.multiply(g, B.add(_log_ratio(B, x, y), 1.0)),
        y=lambda B, g, x, y: B.negative(B.multiply(g, safe_divide(B, x, y))),
    ),
    "kl_div": Elementwise(
        x=lambda B, g, x, y: B.multiply(g, _log_ratio(B, x, y)),
        y=_kl_div_y,
    ),
    # in two parts, because the product x (1 - x) would make infinities of both signs in further derivatives near 0
    "logit": Elementwise(x=lambda B, g, x: B.add(B.divide(g, x), B.divide(g, B.subtract(1.0, x)))),
}
