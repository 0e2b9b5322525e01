"""The gamma function and its relatives, and the zeta function. Numbers of formulas are DLMF's."""

from __future__ import annotations

import math
from typing import Any

from adjoint import dtypes
from adjoint.functions.arguments import as_integer, check_shape, computed, real
from adjoint.functions.creation import asarray, places_beside
from adjoint.functions.elementwise import exp, floor, where
from adjoint.functions.logic import greater, isfinite, less
from adjoint.irrational import log_pi_beside, pi_beside
from adjoint.operands import cast, constant_like, run
from adjoint.special.arguments import Numbers, of_order, one, reals, wide
from adjoint.special.bessel import sinc
from adjoint.tensor import Operand, Tensor
from adjoint.variables import B


def gamma(x: Operand[B], /) -> Tensor[B]:
    """The gamma function; infinite at 0, with its sign, and nan at negative integers.

    >>> import adjoint as ad
    >>> ad.special.gamma(ad.tensor([5.0, 1.0], dtype=ad.float64)).tolist()
    [24.0, 1.0]
    """
    return one("gamma", x, "gamma")


def rgamma(x: Operand[B], /) -> Tensor[B]:
    """1 / gamma(x), which is 0 at the poles of gamma, with derivatives of any order there too.

    >>> import adjoint as ad
    >>> ad.special.rgamma(ad.tensor([0.0, 5.0], dtype=ad.float64)).numpy().round(6).tolist()
    [0.0, 0.041667]
    >>> ad.grad(ad.special.rgamma)(0.0).item()
    1.0
    """
    given = real(x, "rgamma")
    tensor = wide(given)
    below = less(tensor, 0.5)
    reflected = where(below & isfinite(tensor), tensor, 0.0)
    low = less(reflected, -160.0)  # 5.5.1 eight times, before factors and their derivatives overflow
    rising = math.prod([where(low, reflected + float(k), 1.0) for k in range(8)])
    reflected = where(low, reflected + 8.0, reflected)
    far = less(reflected, -170.6)  # the factor overflows: zeros stay, and their derivatives are infinite
    nearest = round(reflected)
    rest = reflected - nearest
    sine = (1.0 - 2.0 * (nearest % 2.0)) * sinc(rest) * rest  # of pi x, over pi: 0 at the poles
    other = sine * where(far, 1e308, gamma(1.0 - where(far, 0.0, reflected)))  # 5.5.3
    other = where(far, other * 1e308, other) * rising
    direct = run("rgamma", (where(below | greater(tensor, 1e3), 1e3, tensor),))
    return cast(where(below, other, direct), given.dtype)


def multigammaln(a: Operand[B], d: int, /) -> Tensor[B]:
    """The logarithm of the gamma function of d x d positive definite matrices; nan for a <= (d - 1) / 2.

    Raises ArgumentTypeError, ArgumentError if d is no positive integer. Source: R. J. Muirhead, Aspects of
    Multivariate Statistical Theory (1982), 2.1.12.

    >>> import adjoint as ad
    >>> round(ad.special.multigammaln(ad.tensor(3.0), 2).item(), 5)
    1.55019
    """
    d = as_integer(d, "multigammaln", "d", 1)
    given = real(a, "multigammaln")
    inside = greater(wide(given), (d - 1) / 2)
    tensor = where(inside, wide(given), 1.0 * d)
    check_shape((*tensor.shape, d), "multigammaln")
    halves = constant_like(
        computed("multigammaln", places_beside, tensor, d, dtype=dtypes.float64) / 2, tensor, "multigammaln"
    )
    terms = gammaln(run("expand_dims", (tensor,), axis=(tensor.ndim,)) - halves)
    log_pi = log_pi_beside(tensor)
    total = d * (d - 1) / 4 * log_pi + run("sum", (terms,), axis=(tensor.ndim,), keepdims=False)
    return cast(where(inside, total, math.nan), given.dtype)


def gammaln(x: Operand[B], /) -> Tensor[B]:
    """The logarithm of the absolute value of the gamma function; infinite at its poles.

    >>> import adjoint as ad
    >>> x = ad.tensor(100.0).require_grad()
    >>> y = ad.special.gammaln(x)
    >>> round(y.item(), 3), round(y.backward()[x].item(), 3)
    (359.134, 4.6)
    """
    return one("gammaln", x, "gammaln")


def loggamma(x: Operand[B], /) -> Tensor[B]:
    """The logarithm of the gamma function of positive x, as SciPy's of real numbers; nan for negative x."""
    tensor = real(x, "loggamma")
    negative = less(tensor, 0)
    return where(negative, math.nan, gammaln(where(negative, 1.0, tensor)))


def digamma(x: Operand[B], /) -> Tensor[B]:
    """The derivative of `gammaln`; at 0 infinite, of the opposite sign, and nan at negative integers.

    >>> import adjoint as ad
    >>> round(ad.special.digamma(ad.tensor(1.0)).item(), 5)
    -0.57722
    """
    return one("digamma", x, "digamma")


psi = digamma


def polygamma(n: int | Numbers, x: Operand[B], /) -> Tensor[B]:
    """The derivative of `digamma` of an order n, which may be an array of integers.

    The derivative is with respect to x alone. It loops over the orders that are different, for all of x at once.
    Raises ArgumentError for a negative or fractional order.

    >>> import adjoint as ad
    >>> round(ad.special.polygamma(1, ad.tensor(1.0)).item(), 5)
    1.64493
    """
    return of_order("polygamma", n, _polygamma, real(x, "polygamma", n))  # type: ignore[no-any-return]


def _polygamma(n: int, x: Tensor[Any]) -> Tensor[Any]:
    """5.15.1."""
    if n == 0:
        return digamma(x)
    order = asarray(n + 1.0, dtype=x.device.leaf.widest(dtypes.float64), device=x.device)
    sums = run("zeta", (order, wide(x)), order=0)
    # n! in parts, because it may overflow where its product with a small sum does not
    parts = int(math.lgamma(n + 1.0) // 700) + 1
    part = math.gamma(n + 1.0) if parts == 1 else math.exp(math.lgamma(n + 1.0) / parts)
    value = sums * ((-1.0) ** (n + 1) * part)
    for _ in range(min(parts, 3) - 1):  # three of them make any sum but zero infinite
        value = value * part
    return cast(value, x.dtype)


def zeta(x: Operand[B], /, q: Numbers = None) -> Tensor[B]:
    """The Hurwitz zeta function, the sum of (q + k)^-x over k from 0, for x > 1; without q Riemann's, of any real x.

    Infinite at x = 1 and for q = 0, -1, ...; nan for x < 1 beside q, and for negative q unless x is whole. Derivatives
    of any order go to both, but not to x where q is negative.

    >>> import adjoint as ad
    >>> round(ad.special.zeta(ad.tensor(2.0)).item(), 5), round(ad.special.zeta(ad.tensor(2.0), 2.0).item(), 5)
    (1.64493, 0.64493)
    """
    if q is not None:
        s, q = reals("zeta", x, q)
        below = less(s, 1.0)
        return where(below, math.nan, run("zeta", (where(below, 2.0, s), q), order=0))
    dtype = real(x, "zeta").dtype
    s = wide(real(x, "zeta"))
    one = asarray(1.0, dtype=s.dtype, device=s.device)
    negative = less(s, 0.0)
    direct = run("zeta", (where(negative, 2.0, s), one), order=0)
    below = where(negative, s, -2.5)
    other = run("zeta", (1.0 - below, one), order=0)
    # 25.4.1, with sin(pi s / 2) as a sinc, which is exactly zero at the trivial zeros
    wave = sinc(below * 0.5) * below
    reflected = (2 * pi_beside(s)) ** below * wave * gamma(1.0 - below) * other * 0.5
    return cast(where(negative, reflected, direct), dtype)


def betaln(a: Operand[B], b: Numbers, /) -> Tensor[B]:
    """The logarithm of the absolute value of the beta function, accurate for large and small arguments.

    >>> import adjoint as ad
    >>> round(ad.special.betaln(ad.tensor(1e8, dtype=ad.float64), 1.0).item(), 8)
    -18.42068074
    """
    return run("betaln", reals("betaln", a, b))  # type: ignore[no-any-return]


def beta(a: Operand[B], b: Numbers, /) -> Tensor[B]:
    """The beta function gamma(a) gamma(b) / gamma(a + b)."""
    a, b = reals("beta", a, b)
    dtype = a.dtype
    a, b = wide(a), wide(b)
    value = _gamma_sign(a) * _gamma_sign(b) * _gamma_sign(a + b) * exp(run("betaln", (a, b)))
    return cast(value, dtype)


def _gamma_sign(x: Tensor[Any]) -> Tensor[Any]:
    below = floor(x.detach())  # constant between its jumps, which are at the poles
    return where(less(below, 0), 1.0 - 2.0 * (below - 2.0 * floor(below * 0.5)), 1.0)
