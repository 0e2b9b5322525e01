"""Modified Bessel functions of low order, and sinc, over any array namespace."""

from __future__ import annotations

import functools
import math
from typing import Any

from adjoint.backends.special.common import either, horner, kernel
from adjoint.backends.special.gammas import sin_pi

# sqrt(x) exp(-x) I_0(x), and the same of I_1, in 16 / x - 1 for x >= 8: Chebyshev interpolants computed with mpmath at
# 40 digits, within 2e-16.
_I0 = (
    0.4021765094450081, 0.003360551983667854, 0.00013621607439232746, 1.1143033791556743e-05, 1.4838475473607391e-06,
    2.973598432479169e-07, 8.87225351128584e-08, 3.932602459703109e-08, 2.1545177650836005e-08, 7.553516470355896e-09,
    -6.729724111923548e-09, -1.3404241991980871e-08, -5.4685974495866e-09, 7.540601378890834e-09,
    7.58022133915272e-09, -3.4857887470034955e-09, -6.188265090497361e-09, 1.497880830187091e-09,
    3.881151253996067e-09, -5.562201990080394e-10, -1.7789375042917173e-09, 1.4672236659214398e-10,
    5.181936971288284e-10, -1.9216763724933513e-11, -7.06893851181878e-11,
)  # fmt: skip
_I1 = (
    0.38939845902587233, -0.009749577193235728, -0.00021923576383430274, -1.5038547201176271e-05,
    -1.8349101134666435e-06, -3.483855609009937e-07, -1.0001323461066435e-07, -4.312935369971356e-08,
    -2.337059627111857e-08, -8.426622829598154e-09, 6.715795128085017e-09, 1.4029693589852716e-08,
    6.040877342160988e-09, -7.630751970065577e-09, -8.044231276166508e-09, 3.406636130196794e-09,
    6.4870195719816896e-09, -1.4171698018664596e-09, -4.047785403711858e-09, 5.146498826087142e-10,
    1.8513716745511988e-09, -1.342266320082222e-10, -5.388285995923524e-10, 1.7502497778701306e-11,
    7.347992441734663e-11,
)  # fmt: skip


@kernel
def bessel_i(xp: Any, x: Any, *, order: int, scaled: bool, reduced: bool) -> Any:
    """The modified Bessel function of the first kind, DLMF 10.25.2; times exp(-|x|), and over x to the order.

    Below 8 by its power series; from there by recurrence (DLMF 10.29.1) from the orders 0 and 1.
    """
    size = xp.abs(x)
    near = functools.partial(_near, xp, order, scaled, reduced)
    out = either(xp, size < 8.0, near, functools.partial(_far, xp, order, scaled, reduced), size, 8.0)
    return xp.where(x < 0.0, -out, out) if order % 2 and not reduced else out


def _near(xp: Any, order: int, scaled: bool, reduced: bool, x: Any) -> Any:
    """For x from 0 to 8."""
    terms = [0.5**order / math.factorial(order)]
    for k in range(1, 26):  # the last one is below 1e-20 of the sum
        terms.append(terms[-1] / (k * (k + order)))
    near = horner(tuple(terms), 0.25 * x * x)
    if order and not reduced:
        near = near * x**order
    return near * xp.exp(-x) if scaled else near


def _far(xp: Any, order: int, scaled: bool, reduced: bool, x: Any) -> Any:
    """For x from 8."""
    u = 16.0 / x - 1.0
    far = horner(_I1 if order else _I0, u)
    if order > 1:
        below = horner(_I0, u)
        for n in range(1, order):
            below, far = far, below - (2.0 * n / x) * far
    far = far / xp.sqrt(x)
    if order and reduced:
        far = far / x**order
    if not scaled:  # in two factors, so that it overflows where the result does
        half = xp.exp(0.5 * x)
        far = far * half * half
    return xp.where(x == math.inf, (0.0 if scaled else math.inf) * xp.ones_like(x), far)


# 1 - cos of 48 angles between 0 and pi
_DEPTHS = tuple(1.0 - math.cos(math.pi * (j + 0.5) / 48) for j in range(48))
_STEP = 0.375
_POINTS = tuple(_STEP * (j + 0.5) for j in range(24))


@kernel
def i0e_derivative(xp: Any, x: Any, *, order: int) -> Any:
    """The derivative of exp(-x) I_0(x) of an order from 1 on, for x = |x|.

    By DLMF 10.32.1 it is, but for the sign, the mean of (1 - cos t)^order exp(-x (1 - cos t)): nothing cancels;
    from 40 on with u^2 = x (1 - cos t). The trapezoidal rule converges exponentially in both.
    """
    size, zero = xp.abs(x), xp.zeros_like(x)
    inside = size < 40.0
    small = xp.where(inside, size, zero)
    near = zero
    for depth in _DEPTHS:
        near = near + depth**order * xp.exp(-depth * small)
    large = xp.where(inside, 40.0 + zero, size)
    far = zero
    for u in _POINTS:
        far = far + u ** (2 * order) * math.exp(-u * u) / xp.sqrt(1.0 - 0.5 * u * u / large)
    far = far * (_STEP * math.sqrt(2.0) / math.pi) / xp.sqrt(large)
    for _ in range(order):
        far = far / large
    out = xp.where(inside, near / 48, far)
    return -out if order % 2 else out


@kernel
def sinc(xp: Any, x: Any, *, order: int) -> Any:
    """sin(z) / z of z = pi x, or its derivative by x of an order.

    Derivatives near 0 by the series; elsewhere by recurrence, from z f = sin(z) differentiated.
    """
    one = xp.ones_like(x)
    if order == 0:  # the quotient is accurate, also near 0
        z = math.pi * xp.where((x == 0.0) | (xp.abs(x) == math.inf), one, x)
        quotient = sin_pi(xp, xp.where(xp.abs(x) == math.inf, one, x)) / z
        return xp.where(x == 0.0, one, xp.where(xp.abs(x) == math.inf, 0.0 * one, quotient))
    near = math.pi * xp.abs(x) < 1.0 + 0.5 * order
    z = math.pi * xp.where(near, x, 0.0 * one)
    first = (order + 1) // 2
    terms = [(-1.0) ** k / ((2 * k + 1) * math.factorial(2 * k - order)) for k in range(first, first + 14 + order)]
    series = horner(tuple(terms), z * z)
    series = series * z if order % 2 else series
    distant = xp.where(near | (xp.abs(x) == math.inf), one, x)
    sine, cosine = sin_pi(xp, distant), sin_pi(xp, 0.5 - xp.abs(distant - 2.0 * xp.round(0.5 * distant)))
    z = math.pi * distant
    far = sine / z
    for n in range(1, order + 1):
        wave = (sine, cosine, -sine, -cosine)[n % 4]
        far = (wave - n * far) / z
    out = xp.where(near, series, xp.where(xp.abs(x) == math.inf, 0.0 * one, far))
    return out * math.pi**order
