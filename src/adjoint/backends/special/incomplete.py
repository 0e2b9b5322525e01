"""The incomplete gamma and beta functions and their derivatives by all parameters, over any array namespace.

Both are integrals of a density, here over z = log t outward from the end x, to the side where less of the density is.
The double exponential rule of H. Takahasi and M. Mori, Double exponential formulas for numerical integration (1974),
in the form v = L exp(y - exp(-y)) for integrands that decay exponentially, has the same points y for all elements, and
suits any mixture of scales. Derivatives by the parameters go under the integral (as in J. Moore, Algorithm AS 187:
derivatives of the incomplete gamma integral, 1982): the density is multiplied by polynomials in its score.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from adjoint.backends.special.common import excess, kernel, log_ratio, small_excess, while_loop
from adjoint.backends.special.error import erfc
from adjoint.backends.special.gammas import betaln, correction, digamma, gamma, zeta

_STEP = 0.12
_START = -3.7  # exp(-exp(3.7)) is nothing
_ELEMENTS = 8192
_FARTHEST = 1e300  # in scales: parameters next to the smallest number would reach for infinity
_TINY = 1e-300
_EULER, _SECOND = 0.5772156649015329, math.pi**2 / 12.0  # log gamma(1 + a) = -_EULER a + _SECOND a^2 - ...


def _polygamma(xp: Any, n: int, x: Any) -> Any:
    """DLMF 5.15.1."""
    return digamma(xp, x) if n == 0 else (-1.0) ** (n + 1) * math.factorial(n) * zeta(xp, n + 1.0, x, order=0)


def _outward(xp: Any, reach: Any, scale: Any, integrand: Callable[[Any], Any]) -> Any:
    """The integral from 0 to infinity of what is nothing from `reach` on, and smooth on `scale` and below."""
    if 0 in scale.shape:
        return scale
    end = (xp.log(xp.max(xp.minimum(reach / scale, _FARTHEST * xp.ones_like(scale)))) - _START) / _STEP + 1.0
    at_once = max(1, min(128, _ELEMENTS // math.prod(scale.shape)))  # points of a small array go together
    steps = xp.reshape(xp.arange(at_once, dtype=xp.float64), (-1, *[1] * len(scale.shape)))

    def more(state: tuple[Any, Any]) -> tuple[Any, Any]:
        start, total = state
        y = _START + (start + steps) * _STEP
        decay = xp.exp(-y)
        place = xp.exp(y - decay)
        return start + at_once, total + xp.sum(place * (1.0 + decay) * integrand(place * scale), axis=0)

    start = xp.zeros((), dtype=xp.float64)
    _, total = while_loop(xp, lambda state: state[0] <= end, more, (start, 0.0 * scale))
    return _STEP * (scale * total)


# --- gamma ---------------------------------------------------------------------------------------


def _gamma_mass(xp: Any, a: Any, x: Any) -> Any:
    """x^a exp(-x) / gamma(a): from a = 8 on by Stirling's formula, relative to the largest at x = a."""
    one = xp.ones_like(a)
    low, high = xp.where(a < 8.0, a, one), xp.where(a < 8.0, 8.0 * one, a)
    bounded = xp.minimum(x, 1e3 * one)  # beyond, the exponential is zero
    small = bounded**low * xp.exp(-bounded) * low / gamma(xp, low + 1.0)
    peak = xp.sqrt(high / (2.0 * math.pi)) * xp.exp(-correction(xp, high))
    return xp.where(a < 8.0, small, peak * xp.exp(-high * excess(xp, log_ratio(xp, x, high))))


@kernel
def gamma_density(xp: Any, a: Any, x: Any) -> Any:
    """x^(a - 1) exp(-x) / gamma(a)."""
    one = xp.ones_like(a)
    inside = (x > 0.0) & (x < math.inf) & (a > 0.0)
    point = xp.where(inside, x, one)
    out = _gamma_mass(xp, xp.where(inside, a, one), point) / point
    start = xp.where(a > 1.0, 0.0 * one, xp.where(a == 1.0, one, math.inf * one))
    return xp.where(inside, out, xp.where((x == 0.0) & (a > 0.0), start, 0.0 * one))


def _gamma_side(xp: Any, a: Any, x: Any, left: Any, order: int) -> Any:
    """The derivative of an order by a of the integral of the density from 0 to x, or from x on."""
    one = xp.ones_like(a)
    # t = x exp(z), where z = -v on the left and log(1 + v) on the right: the density, times dz / dv, changes by
    # exp(power z - x (exp(z) - 1)), and where both parts are large they nearly cancel for small z
    power = xp.where(left, a, a - 1.0)
    slope = xp.where(left, a - x, x - a + 1.0)
    size = xp.where(left, a, x)
    reach = 1.5 * xp.sqrt(90.0 / size) + 90.0 / size
    convex = (left | (a >= 1.0)) & (slope > 0.0)
    reach = xp.minimum(reach, xp.where(convex, 90.0 / xp.where(convex, slope, one), reach))
    scores = [xp.log(x) - digamma(xp, a)] + [-_polygamma(xp, j, a) for j in range(1, order)] if order else []

    def integrand(v: Any) -> Any:
        z = xp.where(left, -v, xp.log1p(v))
        near, rest = small_excess(xp, z)
        growth = xp.where(left, xp.expm1(-v), v)
        weight = xp.exp(xp.where(near, (power - x) * z - x * rest, power * z - x * growth))
        return weight * _weight([scores[0] + z, *scores[1:]], order) if order else weight

    return _gamma_mass(xp, a, x) * _outward(xp, reach, xp.minimum(reach / 200.0, one), integrand)


def _weight(scores: list[Any], order: int) -> Any:
    """The derivative of exp(f) of an order, over exp(f), from the derivatives of f: complete Bell polynomials."""
    known: list[Any] = [1.0]
    for k in range(order):
        total = scores[0] * known[k]
        for j in range(1, k + 1):
            total = total + math.comb(k, j) * scores[j] * known[k - j]
        known.append(total)
    return known[order]


def _gamma_inside(xp: Any, a: Any, x: Any) -> tuple[Any, Any, Any]:
    inside = (a > 0.0) & (a < math.inf) & (x > 0.0) & (x < math.inf)
    one = xp.ones_like(a)
    return inside, xp.where(inside, a, one), xp.where(inside, x, one)


@kernel
def gammainc(xp: Any, a: Any, x: Any, *, order: int) -> Any:
    """The regularised lower incomplete gamma function, DLMF 8.2.4, or its derivative of an order by a."""
    inside, shape, point = _gamma_inside(xp, a, x)
    one = xp.ones_like(a)
    tiny = inside & (shape < _TINY)  # it is 1 there, and the integral would go on to 1 / a
    if not order:
        shape = xp.where(tiny, one, shape)
    left = point <= xp.maximum(shape, one)
    if order:  # with a near 0, on the left the parts of the score would cancel
        left = left & ((shape >= 1.0) | (shape * (2.0 - xp.log(point)) >= 1.0))
    part = _gamma_side(xp, shape, point, left, order)
    out = xp.where(left, part, (0.0 if order else 1.0) - part)
    if order:
        ends = xp.where((a > 0.0) & (x >= 0.0), 0.0 * one, math.nan * one)
    else:
        out = xp.where(tiny, one, out)
        ends = _gamma_ends(xp, a, x)
    return xp.where(inside, out, ends)


@kernel
def gammaincc(xp: Any, a: Any, x: Any) -> Any:
    """1 - gammainc(a, x), without cancellation."""
    inside, shape, point = _gamma_inside(xp, a, x)
    one = xp.ones_like(a)
    tiny = (point < _TINY) & (shape < 1.0)  # the first term of DLMF 8.7.1 is all there, x^a / gamma(a + 1)
    bounded = xp.where(tiny, shape, one)
    near = bounded < 1e-5
    log_gamma = xp.where(
        near, bounded * (_SECOND * bounded - _EULER), xp.log(gamma(xp, 1.0 + xp.where(near, one, bounded)))
    )
    first = -xp.expm1(bounded * xp.log(point) - log_gamma)
    point = xp.where(tiny, one, point)
    left = (point < shape) & (shape >= 1.0)
    part = xp.where(tiny, first, _gamma_side(xp, shape, point, left, 0))
    return xp.where(inside, xp.where(left, 1.0 - part, part), 1.0 - _gamma_ends(xp, a, x))


def _gamma_ends(xp: Any, a: Any, x: Any) -> Any:
    """The lower function where a or x is 0 or infinite; nan where either is negative, or both are 0 or infinite."""
    one = xp.ones_like(a)
    low, high = (a == 0.0) | (x == math.inf), (x == 0.0) | (a == math.inf)
    out = xp.where(low, one, 0.0 * one)
    return xp.where((a < 0.0) | (x < 0.0) | (low & high), math.nan * one, out)


# --- beta ----------------------------------------------------------------------------------------


def _beta_mass(xp: Any, a: Any, b: Any, x: Any, y: Any) -> Any:
    """x^a y^b / B(a, b) with y = 1 - x; where a and b are large, relative to the largest, as for gamma."""
    one = xp.ones_like(a)
    large = xp.minimum(a, b) >= 8.0
    m, n = xp.where(large, a, 8.0 * one), xp.where(large, b, 8.0 * one)
    total = m + n
    distance = n * x - m * y  # (x - m / total) * total
    change = correction(xp, m) + correction(xp, n) - correction(xp, total)
    peak = xp.sqrt(m / total * n / (2.0 * math.pi)) * xp.exp(-change)
    fall = m * excess(xp, _log_near(xp, x * total / m, distance / m))
    fall = fall + n * excess(xp, _log_near(xp, y * total / n, -distance / n))
    log_y = xp.where(x < 0.5, xp.log1p(-x), xp.log(y))
    small = xp.exp(a * xp.log(x) + b * log_y - betaln(xp, a, b))
    return xp.where(large, peak * xp.exp(-fall), small)


def _log_near(xp: Any, ratio: Any, excess_of_one: Any) -> Any:
    near = (ratio > 0.5) & (ratio < 2.0)
    return xp.where(near, xp.log1p(xp.where(near, excess_of_one, 0.0 * ratio)), xp.log(ratio))


@kernel
def beta_density(xp: Any, a: Any, b: Any, x: Any) -> Any:
    """x^(a - 1) (1 - x)^(b - 1) / B(a, b)."""
    one = xp.ones_like(a)
    inside = (x > 0.0) & (x < 1.0) & (a > 0.0) & (b > 0.0)
    half = 0.5 * one
    point, rest = xp.where(inside, x, half), xp.where(inside, 1.0 - x, half)
    out = _beta_mass(xp, xp.where(inside, a, one), xp.where(inside, b, one), point, rest) / point / rest
    exponent = xp.where(x == 0.0, a, b)
    other = xp.where(x == 0.0, b, a)
    end = xp.where(exponent > 1.0, 0.0 * one, xp.where(exponent == 1.0, other, math.inf * one))
    return xp.where(inside, out, xp.where((x == 0.0) | (x == 1.0), end, 0.0 * one))


@kernel
def betainc(xp: Any, a: Any, b: Any, x: Any, *, order: tuple[int, int]) -> Any:
    """The regularised incomplete beta function, DLMF 8.17.2, or its derivative of orders by a and by b."""
    one = xp.ones_like(a)
    i, j = order
    inside = (a > 0.0) & (b > 0.0) & (a < math.inf) & (b < math.inf) & (x > 0.0) & (x < 1.0)
    m, n = xp.where(inside, a, one), xp.where(inside, b, one)
    point, rest = xp.where(inside, x, 0.5 * one), xp.where(inside, 1.0 - x, 0.5 * one)
    left = point * n <= m * rest
    if i + j == 0:
        left = left | (n <= 1.0)
    if i:  # as for gamma
        left = left & ((m >= 1.0) | (m * (2.0 - xp.log(point)) >= 1.0))
    if j:
        left = left | ((n < 1.0) & (n * (2.0 - xp.log(rest)) < 1.0))
    part = _beta_left(
        xp,
        xp.where(left, m, n),
        xp.where(left, n, m),
        xp.where(left, point, rest),
        xp.where(left, rest, point),
        left,
        order,
    )
    if i + j == 0:  # rounding may pass 1 where a and b are too large for the points to resolve the peak
        part = xp.minimum(part, one)
    out = xp.where(left, part, (0.0 if i + j else 1.0) - part)
    if i + j:
        ends = xp.where((a > 0.0) & (b > 0.0) & (x >= 0.0) & (x <= 1.0), 0.0 * one, math.nan * one)
    else:
        low, high = (a == 0.0) | (b == math.inf), (b == 0.0) | (a == math.inf)
        ends = xp.where((x == 1.0) | low & (x > 0.0), one, 0.0 * one)
        wrong = (a < 0.0) | (b < 0.0) | (x < 0.0) | (x > 1.0) | (low & high)
        ends = xp.where(wrong, math.nan * one, ends)
    return xp.where(inside, out, ends)


def _beta_left(xp: Any, a: Any, b: Any, x: Any, y: Any, straight: Any, order: tuple[int, int]) -> Any:
    """The integral of the density's derivative from 0 to x = 1 - y.

    Where not `straight`, a and b have changed places, and so do the orders.
    """
    one = xp.ones_like(a)
    odds = x / y
    # t = x exp(-v): the density changes by exp(-a v + (b - 1) log(1 + odds (1 - exp(-v))))
    slope = a - (b - 1.0) * odds
    reach = 1.5 * xp.sqrt(90.0 / a) + 90.0 / a
    convex = (b >= 1.0) & (slope > 0.0)
    reach = xp.minimum(reach, xp.where(convex, 90.0 / xp.where(convex, slope, one), reach))
    scale = xp.minimum(xp.minimum(reach / 200.0, one), 1.0 / odds)
    i, j = order
    scores: dict[tuple[int, int], Any] = {}
    if i + j:
        total = digamma(xp, a + b)
        here = xp.log(x) - digamma(xp, a) + total, xp.log(y) - digamma(xp, b) + total
        scores = {**_beta_constants(xp, a, b, straight, i + j), (1, 0): here[0], (0, 1): here[1]}

    def integrand(v: Any) -> Any:
        other = xp.log1p(-odds * xp.expm1(-v))
        weight = xp.exp(-a * v + (b - 1.0) * other)
        if i + j == 0:
            return weight
        mine, others = scores[1, 0] - v, scores[0, 1] + other
        turned = {(1, 0): xp.where(straight, mine, others), (0, 1): xp.where(straight, others, mine)}
        return weight * _weight_of_two({**scores, **turned}, i, j)

    return _beta_mass(xp, a, b, x, y) / y * _outward(xp, reach, scale, integrand)


def _beta_constants(xp: Any, a: Any, b: Any, straight: Any, order: int) -> dict[tuple[int, int], Any]:
    """The derivatives of the logarithm of the density by the parameters, from the second order on."""
    found = {}
    for n in range(2, order + 1):
        total, of_a, of_b = (_polygamma(xp, n - 1, v) for v in (a + b, a, b))
        for k in range(n + 1):
            found[k, n - k] = total
        found[n, 0] = total - xp.where(straight, of_a, of_b)
        found[0, n] = total - xp.where(straight, of_b, of_a)
    return found


def _weight_of_two(scores: dict[tuple[int, int], Any], i: int, j: int) -> Any:
    """`_weight` for two variables."""
    known: dict[tuple[int, int], Any] = {}

    def at(m: int, n: int) -> Any:
        if m == n == 0:
            return 1.0
        if (m, n) not in known:
            first, total = (1, 0) if m else (0, 1), 0.0
            rest = (m - first[0], n - first[1])
            for k in range(rest[0] + 1):
                for l in range(rest[1] + 1):
                    ways = math.comb(rest[0], k) * math.comb(rest[1], l)
                    total = total + ways * scores[first[0] + k, first[1] + l] * at(rest[0] - k, rest[1] - l)
            known[m, n] = total
        return known[m, n]

    return at(i, j)


# --- Student's distribution ----------------------------------------------------------------------


@kernel
def stdtr(xp: Any, df: Any, t: Any, *, order: int) -> Any:
    """Student's distribution function 1/2 + sign(t) I_y(1/2, b) / 2, b = df / 2 and y = t^2 / (df + t^2).

    Of an order above 0 the derivative of I_y by b, for the same y. In the tails I_1-y(b, 1/2) / 2 is 1 minus that.
    """
    one = xp.ones_like(t)
    inside = (df > 0.0) & (df < math.inf) & (xp.abs(t) < math.inf)
    shape, size = xp.where(inside, df, one), xp.where(inside, xp.abs(t), one)
    ratio = size / xp.sqrt(shape)
    near = ratio < 1.0
    small = xp.where(near, ratio, one)
    share = small * small / (1.0 + small * small)
    sign = xp.where(t < 0.0, -one, one)
    half = 0.5 * one
    if order:
        large = xp.where(near, one, ratio)
        middle = betainc(xp, half, 0.5 * shape, share, order=(0, order))
        rest = 1.0 / large / large
        tail = -betainc(xp, 0.5 * shape, half, rest / (1.0 + rest), order=(order, 0))
        out = 0.5 * sign * xp.where(near, middle, tail)
        return xp.where(inside, out, xp.where(df > 0.0, 0.0 * one, math.nan * one))
    middle = 0.5 + 0.5 * sign * betainc(xp, half, 0.5 * shape, share, order=(0, 0))
    rest = 1.0 / xp.where(near, one, ratio) ** 2
    tail = 0.5 * betainc(xp, 0.5 * shape, half, rest / (1.0 + rest), order=(0, 0))
    out = xp.where(near, middle, xp.where(t < 0.0, tail, 1.0 - tail))
    ends = xp.where(xp.abs(t) == math.inf, 0.5 + 0.5 * sign, 0.5 * erfc(xp, -math.sqrt(0.5) * t))
    return xp.where(inside, out, xp.where(df > 0.0, ends, math.nan * one))
