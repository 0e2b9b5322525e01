"""The error function and its relatives, over any array namespace. DLMF is the NIST Digital Library, dlmf.nist.gov."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from adjoint.backends.special.common import horner, kernel

# erf(x) / x as a polynomial in x^2 on [0, 1], and erfc(x) exp(x^2) as one in u = 4.8 / (1 + x / 2) - 2.2
# on [1, 6]: Chebyshev interpolants computed with mpmath at 40 digits. Together within 2.3e-16 of erf,
# relative, in double precision (a test measures it).
_NEAR = (
    1.1283791670955126, -0.37612638903183754, 0.1128379167095512, -0.026866170645129854,
    0.005223977625423455, -0.0008548327021945428, 0.00012055332903350668, -1.4925647581008593e-05,
    1.6462045711013017e-06, -1.6364645854816264e-07, 1.4792435426961338e-08, -1.2164764337217734e-09,
    8.709755232828248e-11, -4.232037676451257e-12,
)  # fmt: skip
_FAR = (
    0.2214295402299318, 0.16189356804102498, 0.03856057042518243, 0.00558881628183956,
    0.0001971391777277114, -8.079220426206841e-05, -7.340517934856549e-06, 1.9795618120654537e-06,
    1.6349935234814868e-07, -7.005316596004799e-08, -5.885338391253864e-10, 2.6239460235609193e-09,
    -2.688335835065745e-10, -7.351064003566237e-11, 2.2281133503204706e-11, -2.338699702983191e-13,
    -1.020017624256245e-12, 1.9545318063454017e-13, 1.9546357875126025e-14, -1.1221499888965448e-14,
)  # fmt: skip

# Chebyshev interpolants too: (1 + 2 x) erfcx(x) in (x - 4) / (x + 4); erfinv(y) / y in 4 y^2 - 1 for y^2 <= 1/2; and
# with w = sqrt(-log(q)), erfcinv(q) / w on [1, 2.5], on [2.5, 6], and in 1 / w on [6, 28]. Each within 3e-16.
_ERFCX = (
    1.2329951186255526, -0.1396211168405625, 0.015379652102620042, 0.06809705425469036, -0.10103906603632504,
    0.09373283499843951, -0.0663303658116485, 0.03716751553591141, -0.01619773406595253, 0.005031969992810925,
    -0.0007577732195352293, -0.0001992567764579197, 0.00015062130746391778, -2.4398942309069806e-05,
    -1.1220753452725425e-05, 5.709201212226352e-06, 2.909062968371427e-07, -8.249127434964572e-07,
    7.89343963476142e-08, 1.1009041560728304e-07, -2.1917128684776733e-08, -1.470518755238763e-08,
    3.979908209935334e-09, 1.7887492189077536e-09, -5.47796315403793e-10, -1.37212432109558e-10,
    4.335744696880128e-11,
)  # fmt: skip
_CENTRAL = (
    0.9538725524089398, 0.079356133281505, 0.014279546913458714, 0.003199803818341361, 0.0007961062321382959,
    0.0002105729072276597, 5.797855574482759e-05, 1.6422459963599015e-05, 4.750674885989179e-06,
    1.3967997783421678e-06, 4.160359109206963e-07, 1.2523798606449105e-07, 3.802787164057699e-08,
    1.1611245186722313e-08, 3.573974302096937e-09, 1.1334024950305973e-09, 3.526252878148954e-10,
    8.847010664997789e-11, 2.7649441040233926e-11, 1.8313708009714823e-11, 5.792363912266083e-12,
)  # fmt: skip
_TAIL1 = (
    0.8034233975277592, 0.10455258831329525, -0.04200716239683906, 0.014500302467731136, -0.004372844171930532,
    0.0011113831454837438, -0.00020384711912126532, 2.3723622093696087e-06, 2.1324624676264157e-05,
    -1.3396560820949866e-05, 5.818433208419457e-06, -2.0398535088286774e-06, 5.774022733054697e-07,
    -1.1306535607516731e-07, -4.371006305665049e-10, 1.3803841590068365e-08, -8.996851125419662e-09,
    4.858854265481203e-09, -1.9374801511579042e-09, 2.8084489147841893e-10, 4.3596490167934376e-11,
)  # fmt: skip
_TAIL2 = (
    0.9433088113157079, 0.035614455597153996, -0.017496620036295252, 0.007779000157474794, -0.003264956500061788,
    0.001316118372458151, -0.0005136452699994094, 0.0001947910179168186, -7.185477899952677e-05,
    2.5755392315054053e-05, -8.941422361562518e-06, 2.988159605682876e-06, -9.502840258120962e-07,
    2.8063737272345545e-07, -7.362057926357078e-08, 1.6024682124996418e-08, -9.139634707024208e-10,
    -3.0640493382148726e-09, 1.8692559434379693e-09, 6.165694819405852e-11, 6.982009228252047e-11,
    -4.676742644243551e-10, 1.851800446258787e-10,
)  # fmt: skip
_TAIL3 = (
    0.9852824999988672, -0.015778364943956857, -0.003004502125739172, 0.00044486030966367165, -7.396864351329923e-05,
    1.9280666651402276e-05, -6.302461355384757e-06, 2.3304774326582863e-06, -9.410247871432269e-07,
    4.054996802358973e-07, -1.8353037105331233e-07, 8.621012868185087e-08, -4.180898834072983e-08,
    2.122878668803002e-08, -1.0822253760732869e-08, 4.468173006318778e-09, -2.2840430795770613e-09,
    3.3129909536233464e-09, -1.875481191011225e-09, -1.6712309305038248e-09, 1.0022190097231183e-09,
    1.800920935246323e-09, -1.056231474879725e-09, -7.455814620350284e-10, 4.3954350783235494e-10,
    1.9587091938885762e-10, -1.1480518813365524e-10,
)  # fmt: skip

_ROOT_HALF = math.sqrt(0.5)


def erf(xp: Any, x: Any) -> Any:
    """The error function of a real floating array of the namespace `xp`."""
    size = xp.abs(x)
    one = xp.ones_like(x)
    near = x * horner(_NEAR, xp.where(size < 1.0, size, one) ** 2)
    middle = xp.where(size < 1.0, one, xp.where(size > 6.0, 6.0 * one, size))
    tail = xp.exp(-middle * middle) * horner(_FAR, 4.8 / (1.0 + middle / 2.0) - 2.2)
    return xp.where(size < 1.0, near, xp.sign(x) * (1.0 - tail))


def _square(xp: Any, x: Any) -> tuple[Any, Any]:
    """x^2 for 0 <= x <= 30 as a sum of two numbers, the first exact: the exponential of both loses no digits."""
    high = xp.round(x * 2.0**20) / 2.0**20
    return high * high, (x - high) * (x + high)


def _scaled(xp: Any, x: Any) -> Any:
    """exp(x^2) erfc(x) for x >= 0; from 1e5 on by the first two terms of DLMF 7.12.1."""
    bounded = xp.minimum(x, 1e5 * xp.ones_like(x))
    near = horner(_ERFCX, (bounded - 4.0) / (bounded + 4.0)) / (1.0 + 2.0 * x)
    far = xp.maximum(x, 1e5 * xp.ones_like(x))
    return xp.where(x < 1e5, near, (1.0 - 0.5 / far / far) / far * (1.0 / math.sqrt(math.pi)))


@kernel
def erfc(xp: Any, x: Any) -> Any:
    """1 - erf(x), by DLMF 7.4.1 where x is negative."""
    size = xp.minimum(xp.abs(x), 30.0 * xp.ones_like(x))
    high, low = _square(xp, size)
    tail = xp.exp(-high) * xp.exp(-low) * _scaled(xp, size)
    return xp.where(x < 0.0, 2.0 - tail, tail)


@kernel
def erfcx(xp: Any, x: Any) -> Any:
    size = xp.abs(x)
    high, low = _square(xp, xp.minimum(size, 30.0 * xp.ones_like(x)))
    tail = _scaled(xp, size)
    return xp.where(x < 0.0, 2.0 * xp.exp(high) * xp.exp(low) - tail, tail)


def _inverse(xp: Any, y: Any, q: Any) -> Any:
    """The x whose erf is y, where q = 1 - |y| is known exactly."""
    one = xp.ones_like(y)
    inside = xp.abs(y) <= _ROOT_HALF
    square = xp.where(inside, y * y, 0.0 * one)
    w = xp.sqrt(-xp.log(xp.where(inside, 0.25 * one, q)))
    near = horner(_TAIL1, (xp.minimum(w, 2.5 * one) - 1.75) / 0.75)
    middle = horner(_TAIL2, (xp.minimum(w, 6.0 * one) - 4.25) / 1.75)
    low, high = 1 / 28, 1 / 6
    inverse = 1.0 / xp.minimum(xp.maximum(w, 6.0 * one), 28.0 * one)
    far = horner(_TAIL3, (2.0 * inverse - (low + high)) / (high - low))
    tail = w * xp.where(w < 2.5, near, xp.where(w < 6.0, middle, far))
    return xp.where(inside, y * horner(_CENTRAL, 4.0 * square - 1.0), xp.sign(y) * tail)


@kernel
def erfinv(xp: Any, y: Any) -> Any:
    return _inverse(xp, y, 1.0 - xp.abs(y))


@kernel
def erfcinv(xp: Any, y: Any) -> Any:
    return _inverse(xp, 1.0 - y, xp.where(y <= 1.0, y, 2.0 - y))


@kernel
def log_ndtr(xp: Any, x: Any) -> Any:
    """The logarithm of the normal distribution function: that of erfcx in the left tail, of 1 - erfc on the right."""
    t = x * _ROOT_HALF
    left = xp.where(t < 0.0, t, xp.zeros_like(t))
    right = xp.where(t < 0.0, xp.zeros_like(t), t)
    tail = xp.log(0.5 * erfcx(xp, -left)) - 0.5 * x * x
    return xp.where(x < 0.0, tail, xp.log1p(-0.5 * erfc(xp, right)))


# --- derivatives ---------------------------------------------------------------------------------

# t = exp(v - exp(-v)) for equally spaced v, and dt: the double exponential rule for the integral from 0 to infinity of
# what falls as exp(-t) or faster (H. Takahasi and M. Mori, 1974)
_STEP = 0.09375
_NODES = tuple(
    (t, _STEP * t * (1.0 + math.exp(-v)))
    for v in (_STEP * k for k in range(-38, 50))
    for t in [math.exp(v - math.exp(-v))]
)


def _moments(xp: Any, z: Any, orders: Sequence[int]) -> tuple[Any, list[Any]]:
    """A scale s, and the integrals of t^n exp(-(s t)^2 / 2 - z s t) from 0 to infinity, for z >= 0.

    The scale makes all z alike: the integrand falls as exp(-t^2 / 2) for z = 0 and as exp(-t) for large z.
    """
    bounded = xp.minimum(z, 1e9 * xp.ones_like(z))
    near = 2.0 / (bounded + xp.sqrt(bounded * bounded + 4.0))
    square, linear = 0.5 * near * near, bounded * near
    totals = [xp.zeros_like(z) for _ in orders]
    for t, dt in _NODES:
        weight = xp.exp(-t * (linear + t * square))
        totals = [total + weight * (dt * t**n) for total, n in zip(totals, orders, strict=True)]
    return xp.where(z < 1e9, near, 1.0 / xp.maximum(z, 1e9 * xp.ones_like(z))), totals


@kernel
def ierfcx(xp: Any, x: Any, *, order: int) -> Any:
    """exp(x^2) times the repeated integral of erfc, of an order from 1 on.

    Of positive x by DLMF 7.18.2, where nothing cancels; of negative x by recurrence, 7.18.7, where nothing does either.
    """
    zero = xp.zeros_like(x)
    scale, (total,) = _moments(xp, math.sqrt(2.0) * xp.where(x < 0.0, zero, x), [order])
    right = total * (2.0 / (math.sqrt(math.pi) * math.factorial(order)))
    for _ in range(order + 1):
        right = right * (scale * _ROOT_HALF)
    x = xp.where(x < 0.0, x, zero)
    before, left = 2.0 / math.sqrt(math.pi) * xp.ones_like(x), erfcx(xp, x)
    for n in range(1, order + 1):
        before, left = left, (0.5 * before - x * left) / n
    return xp.where(x < 0.0, left, right)


@kernel
def log_ndtr_derivative(xp: Any, x: Any, *, order: int) -> Any:
    """The derivative of log_ndtr of an order from 1 on.

    The first, h, is the density over the distribution function. Of positive x the others are polynomials in x and h,
    since h' = -h (x + h). Of negative x these cancel; but log_ndtr(x) + x^2 / 2 is, but for a constant, the logarithm
    of the integral of exp(x s - s^2 / 2) over positive s, whose derivatives are the cumulants of s.
    """
    slope = math.sqrt(2.0 / math.pi) / erfcx(xp, -_ROOT_HALF * x)
    if order == 1:
        return slope
    zero = xp.zeros_like(x)
    right = xp.minimum(xp.where(x < 0.0, zero, x), 40.0 * xp.ones_like(x))  # from 39 on the density is 0
    terms = {(0, 1): 1.0}  # powers of x and h
    for _ in range(1, order):
        following: dict[tuple[int, int], float] = {}
        for (i, j), c in terms.items():
            for key, part in (((i - 1, j), i * c), ((i + 1, j), -j * c), ((i, j + 1), -j * c)):
                following[key] = following.get(key, 0.0) + part
        terms = {key: c for key, c in following.items() if c}
    positive = zero
    for (i, j), c in terms.items():
        positive = positive + c * right**i * slope**j
    scale, totals = _moments(xp, xp.where(x < 0.0, -x, zero), range(order + 1))
    moments = [total / totals[0] for total in totals]
    cumulants = [zero]
    for n in range(1, order + 1):
        rest = zero
        for k in range(1, n):
            rest = rest + math.comb(n - 1, k - 1) * cumulants[k] * moments[n - k]
        cumulants.append(moments[n] - rest)
    negative = cumulants[order]
    for _ in range(order):
        negative = negative * scale
    return xp.where(x < 0.0, negative - 1.0 if order == 2 else negative, positive)
