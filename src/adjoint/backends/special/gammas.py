"""The gamma function, its logarithm and derivatives, and the zeta function, over any array namespace."""

from __future__ import annotations

import math
from typing import Any

from adjoint.backends.special.common import anywhere, horner, kernel

# Chebyshev interpolants computed with mpmath at 60 digits: log(gamma(x)) / ((x - 1) (x - 2)) in x - 2 on [1, 3],
# gamma(x) in 2 x - 5 on [2, 3], and digamma(x) / (x - root) in 2 x - 3 on [1, 2], each within 5e-16, relative.
_LNGAMMA = (
    0.42278433509846713, -0.10031730167435392, 0.03296500062115574, -0.012384192193371238, 0.004998641164703528,
    -0.002108130833958805, 0.0009153769220696921, -0.00040570739742046497, 0.00018255264185594036,
    -8.30951276372239e-05, 3.8168863787885225e-05, -1.766166422556033e-05, 8.222342452139818e-06,
    -3.847396648270243e-06, 1.8074775340912791e-06, -8.526588188526563e-07, 4.0551922127948146e-07,
    -1.9252286332850674e-07, 8.75360413423732e-08, -4.17254430301382e-08, 2.615457216445561e-08,
    -1.2569945435720683e-08, -6.830399052794191e-10, 3.613371593815743e-10, 4.885761922683655e-09,
    -2.372580625023415e-09, -1.3764318718154119e-09, 6.705737026247826e-10, 4.226016675377439e-10,
    -2.0542420991550905e-10,
)  # fmt: skip
_GAMMA = (
    1.329340388179137, 0.46736726081304275, 0.1636396444953342, 0.03173390585514297, 0.0068545771251349846,
    0.0008862743935868174, 0.0001623813035302355, 1.255781630359203e-05, 2.9471645624078416e-06,
    7.698733132057326e-09, 5.989256720464963e-08, -6.250638688617285e-09, 1.7709351083641292e-09,
    -3.1278701519239715e-10, 6.610055434151668e-11, -1.2749381203874657e-11, 2.5712964846175904e-12,
    -6.341884673822122e-13, 1.2699606500558757e-13,
)  # fmt: skip
_PSI = (
    0.9510558760318328, -0.2118137106407303, 0.060135621060196744, -0.018550615381735115, 0.005936795278305649,
    -0.0019350666648590097, 0.0006368880303257201, -0.00021074841140458636, 6.995018873950506e-05,
    -2.325824239445257e-05, 7.741232223504057e-06, -2.57809436305308e-06, 8.589127353033379e-07,
    -2.86315275846934e-07, 9.542050972688906e-08, -3.163020268955334e-08, 1.0542687624027994e-08,
    -3.7075072647122386e-09, 1.2358072433984831e-09, -2.7619635330317715e-10, 9.206434499177992e-11,
    -8.498137230186096e-11, 2.832706668021759e-11,
)  # fmt: skip
_ROOT = (1.4616321449683622, 9.549995429965697e-17)  # of digamma, as a sum

# Bernoulli numbers B_2k: over 2k (2k - 1) as in DLMF 5.11.1, over -2k as in 5.11.2, over (2k)! as in 25.11.43
_STIRLING = (
    0.08333333333333333, -0.002777777777777778, 0.0007936507936507937, -0.0005952380952380953, 0.0008417508417508417,
    -0.0019175269175269176, 0.00641025641025641, -0.029550653594771242, 0.17964437236883057, -1.3924322169059011,
)  # fmt: skip
_PSI_ASYM = (
    -0.08333333333333333, 0.008333333333333333, -0.003968253968253968, 0.004166666666666667, -0.007575757575757576,
    0.021092796092796094, -0.08333333333333333, 0.4432598039215686, -3.0539543302701198, 26.456212121212122,
)  # fmt: skip
_EM = (
    0.08333333333333333, -0.001388888888888889, 3.306878306878307e-05, -8.267195767195768e-07, 2.08767569878681e-08,
    -5.284190138687493e-10, 1.3382536530684679e-11, -3.3896802963225827e-13, 8.586062056277845e-15,
    -2.174868698558062e-16, 5.5090028283602295e-18, -1.3954464685812522e-19,
)  # fmt: skip


def _pole(xp: Any, x: Any) -> Any:
    return (x <= 0.0) & (xp.floor(x) == x)


def sin_pi(xp: Any, x: Any) -> Any:
    """sin(pi x), exact at integers: the argument is reduced before it is multiplied."""
    whole = xp.round(x)
    odd = whole - 2.0 * xp.floor(0.5 * whole)
    return (1.0 - 2.0 * odd) * xp.sin(math.pi * (x - whole)) + 0.0  # no negative zeros


def correction(xp: Any, x: Any) -> Any:
    """What Stirling's formula lacks: log(gamma(x)) - (x - 1/2) log(x) + x - log(2 pi) / 2, for x >= 8."""
    inverse = 1.0 / x
    return inverse * horner(_STIRLING, inverse * inverse)


def _lower(xp: Any, x: Any) -> tuple[Any, Any]:
    """For x below 8 a number of [1, 3] and the product of those passed on the way down in steps of one."""
    z, product = x, xp.ones_like(x)
    for _ in range(5):
        above = z > 3.0
        z = xp.where(above, z - 1.0, z)
        product = xp.where(above, product * z, product)
    return z, product


def _gammaln(xp: Any, x: Any) -> Any:
    """Of positive numbers."""
    one = xp.ones_like(x)
    large = xp.where(x >= 8.0, x, 8.0 * one)
    # of infinity x log(x) - x would be nan
    stirling = (large - 0.5) * (xp.log(large) - 1.0) + (0.5 * math.log(2 * math.pi) - 0.5) + correction(xp, large)
    z, product = _lower(xp, xp.where(x < 8.0, xp.where(x < 1.0, one, x), one))
    middle = (z - 1.0) * (z - 2.0) * horner(_LNGAMMA, z - 2.0) + xp.log(product)
    small = xp.where(x < 1.0, x, one)
    near = small * (small - 1.0) * horner(_LNGAMMA, small - 1.0) - xp.log(small)
    return xp.where(x < 1.0, near, xp.where(x < 8.0, middle, stirling))


@kernel
def gammaln(xp: Any, x: Any) -> Any:
    """log|gamma(x)|, for negative x by DLMF 5.5.3."""
    one = xp.ones_like(x)
    negative = x < 0.0
    direct = _gammaln(xp, xp.abs(x))
    reflected = math.log(math.pi) - xp.log(xp.abs(x)) - xp.log(xp.abs(sin_pi(xp, x))) - direct
    out = xp.where(_pole(xp, x) | (x == math.inf), math.inf * one, xp.where(negative, reflected, direct))
    return xp.where(x == -math.inf, -math.inf * one, out)


def _gamma(xp: Any, x: Any) -> Any:
    """Of positive numbers; the power in two factors, so that it overflows where the result does."""
    one = xp.ones_like(x)
    large = xp.minimum(xp.where(x >= 8.0, x, 8.0 * one), 200.0 * one)
    root = large ** (0.5 * large - 0.25)
    stirling = math.sqrt(2 * math.pi) * root * xp.exp(-large) * root * xp.exp(correction(xp, large))
    z, product = _lower(xp, xp.where(x < 8.0, xp.where(x < 1.0, x + 2.0, x), 2.0 * one))
    step = z < 2.0
    middle = horner(_GAMMA, 2.0 * xp.where(step, z + 1.0, z) - 5.0) * product
    middle = xp.where(step, middle / z, middle)
    return xp.where(x < 1.0, middle / (x * (x + 1.0)), xp.where(x < 8.0, middle, stirling))


@kernel
def gamma(xp: Any, x: Any) -> Any:
    """The gamma function, for negative x by DLMF 5.5.3; nan at negative integers, infinite with the sign of zeros."""
    one = xp.ones_like(x)
    negative = x < 0.0
    direct = _gamma(xp, xp.abs(x))
    reflected = (-math.pi / direct) / x / sin_pi(xp, xp.where(negative, x, 0.5 * one))
    out = xp.where(negative, xp.where(_pole(xp, x) | (x == -math.inf), math.nan * one, reflected), direct)
    return xp.where(xp.abs(x) < 1e-17, 1.0 / x, xp.where(x == math.inf, math.inf * one, out))


@kernel
def rgamma(xp: Any, x: Any) -> Any:
    """1 over the gamma function, which is 0 at its poles."""
    return xp.where(_pole(xp, x), xp.zeros_like(x), 1.0 / gamma(xp, x))


@kernel
def digamma(xp: Any, x: Any) -> Any:
    """The derivative of log(gamma(x)); for negative x by DLMF 5.5.4. nan at negative integers."""
    one = xp.ones_like(x)
    negative = x < 0.0
    y = xp.abs(x)
    large = xp.where(y >= 8.0, y, 8.0 * one)
    inverse = 1.0 / large
    square = inverse * inverse
    asymptotic = xp.log(large) - 0.5 * inverse + square * horner(_PSI_ASYM, square)
    z, total = xp.where(y < 8.0, y, one), 0.0 * one
    low = z < 1.0
    total = xp.where(low, -1.0 / xp.where(low, z, one), total)
    z = xp.where(low, z + 1.0, z)
    for _ in range(6):
        above = z > 2.0
        z = xp.where(above, z - 1.0, z)
        total = xp.where(above, total + 1.0 / z, total)
    middle = ((z - _ROOT[0]) - _ROOT[1]) * horner(_PSI, 2.0 * z - 3.0) + total
    direct = xp.where(y < 8.0, middle, asymptotic)
    fraction = x - xp.round(x)
    reflected = direct + 1.0 / y - math.pi / xp.tan(math.pi * xp.where(fraction == 0.0, 0.5 * one, fraction))
    out = xp.where(negative, xp.where((fraction == 0.0) | (x == -math.inf), math.nan * one, reflected), direct)
    return xp.where(xp.abs(x) < 1e-17, -1.0 / x, out)


@kernel
def betaln(xp: Any, a: Any, b: Any) -> Any:
    """log|B(a, b)|. Large arguments by Stirling's formula, with its leading terms cancelled by hand."""
    for _ in range(2):  # at poles of both gamma functions that cancel, B(a, b) = +-B(1 - a - b, b)
        cancelled = _pole(xp, a) & (b >= 1.0) & (xp.floor(b) == b) & (a + b < 1.0)
        a, b = b, xp.where(cancelled, 1.0 - a - b, a)
    plain = gammaln(xp, a) + gammaln(xp, b) - gammaln(xp, a + b)
    plain = xp.where(_pole(xp, a) | _pole(xp, b), math.inf * xp.ones_like(a), plain)
    small, large = xp.minimum(a, b), xp.maximum(a, b)
    one = xp.ones_like(a)
    far = (large >= 8.0) & (small > 0.0) & (large < math.inf)
    m, n = xp.where(far, small, one), xp.where(far, large, 8.0 * one)
    change = correction(xp, n) - correction(xp, m + n)
    one_large = _gammaln(xp, m) + m - (m + n - 0.5) * xp.log1p(m / n) - m * xp.log(n) + change
    both = far & (small >= 8.0)
    m = xp.where(both, m, 8.0 * one)
    two_large = (
        (0.5 * math.log(2 * math.pi) + correction(xp, m) + correction(xp, n) - correction(xp, m + n))
        - (m - 0.5) * xp.log1p(n / m) - n * xp.log1p(m / n) - 0.5 * xp.log(n)
    )  # fmt: skip
    out = xp.where(both, two_large, xp.where(far, one_large, plain))
    endless = (large == math.inf) & (small > 0.0)
    return xp.where(endless, xp.where(small == math.inf, math.nan * one, -math.inf * one), out)


def _hurwitz(xp: Any, s: Any, q: Any, order: int) -> Any:
    """The derivative of an order by s of the sum of (q + k)^-s, for q > 0: Euler and Maclaurin, DLMF 25.11.43.

    The remainder behind the first 10 terms is a power of a = q + 10 times a function of s, both as series in s.
    """
    one = xp.ones_like(s)
    total = 0.0 * one
    for k in range(10):
        base = q + float(k)
        term = base ** (-s)
        total = total + (term if order == 0 else xp.where(term == 0.0, term, term * (-xp.log(base)) ** order))
    a = q + 10.0
    known = xp.minimum(s, 1e4 * one)  # beyond, the remainder is nothing
    series = [(-1.0) ** i / (known - 1.0) ** (i + 1) for i in range(order + 1)]
    series[0] = series[0] + 0.5 / a
    rising = [known] + [one] * (order > 0) + [0.0 * one] * (order - 1)
    power = 1.0 / (a * a)
    for j, coefficient in enumerate(_EM):
        if j:
            for step in (2 * j - 1.0, 2.0 * j):
                rising = [rising[i] * (known + step) + (rising[i - 1] if i else 0.0) for i in range(order + 1)]
            power = power / (a * a)
        series = [value + coefficient * power * r for value, r in zip(series, rising, strict=True)]
    decay = [(-xp.log(a)) ** i / math.factorial(i) for i in range(order + 1)]
    rest = 0.0 * one
    for i in range(order + 1):
        rest = rest + series[i] * decay[order - i]
    scale = a ** (1.0 - s) * math.factorial(order)
    return total + xp.where(scale == 0.0, scale, scale * rest)


@kernel
def zeta(xp: Any, s: Any, q: Any, *, order: int) -> Any:
    """The Hurwitz zeta function, or its derivative of an order by s.

    For negative q and whole s the terms below zero are a difference of two sums upward: no loop over them.
    """
    one = xp.ones_like(s)
    fraction = q - xp.floor(q)
    out = _hurwitz(xp, s, xp.where(q > 0.0, q, xp.where(fraction == 0.0, one, fraction)), order)
    out = xp.where(q == math.inf, 0.0 * one, out)
    if anywhere(xp, q <= 0.0):
        below = (q < 0.0) & (xp.floor(q) != q)
        whole = (xp.floor(s) == s) & (s < math.inf) & (order == 0)
        sign = 1.0 - 2.0 * (s - 2.0 * xp.floor(0.5 * s))
        down = xp.where(below, xp.ceil(q) - q, one), xp.where(below, 1.0 - q, one)
        lower = sign * (_hurwitz(xp, s, down[0], order) - _hurwitz(xp, s, down[1], order))
        out = xp.where(below, xp.where(whole, out + lower, math.nan * one), out)
        pole = (q <= 0.0) & (xp.floor(q) == q)
        out = xp.where(pole, math.inf * one if order == 0 else math.nan * one, out)
    if order == 0:
        out = xp.where(s == 1.0, math.inf * one, out)
    return out
