"""Special functions, under SciPy's names and with its signatures, of real numbers.

All work element by element or along axes, operands broadcast, and integers get the default dtype. Values are computed
in double precision and rounded to the dtype of the operands; `docs/special.md` lists how accurate they are. Numbers of
formulas are those of the NIST Digital Library of Mathematical Functions, dlmf.nist.gov.
"""

from __future__ import annotations

import math
from typing import Any, TypeVar

import numpy as np

from adjoint import dtypes, errors
from adjoint.backend import Backend
from adjoint.functions.arguments import as_axes, as_axis, as_flag, as_tensor, real
from adjoint.functions.creation import asarray
from adjoint.functions.elementwise import abs as absolute
from adjoint.functions.elementwise import exp, floor, log, where
from adjoint.functions.elementwise import sign as sign_of
from adjoint.functions.logic import equal, isfinite, less
from adjoint.functions.reduction import max as largest
from adjoint.functions.reduction import sum as total_of
from adjoint.operands import cast, concrete_values, is_weak, known, operand, run
from adjoint.primitives import TABLE
from adjoint.tensor import Axis, Tensor

B = TypeVar("B", bound=Backend)
Numbers = Any  # a tensor, a Python number, or a NumPy array

__all__ = [
    "beta",
    "betainc",
    "betaln",
    "digamma",
    "entr",
    "erf",
    "erfc",
    "erfcinv",
    "erfcx",
    "erfinv",
    "expit",
    "gamma",
    "gammainc",
    "gammaincc",
    "gammaln",
    "i0",
    "i0e",
    "i1",
    "i1e",
    "kl_div",
    "log_expit",
    "log_ndtr",
    "log_softmax",
    "loggamma",
    "logit",
    "logsumexp",
    "ndtr",
    "ndtri",
    "polygamma",
    "psi",
    "rel_entr",
    "sinc",
    "softmax",
    "xlog1py",
    "xlogy",
    "zeta",
]


def __dir__() -> list[str]:
    return __all__


def _reals(name: str, *values: object) -> list[Tensor[Any]]:
    """Operands as tensors of one real floating dtype; Python's numbers take that of the tensors."""
    first = next((v for v in values if isinstance(v, Tensor)), None)
    given = [v if is_weak(v) else as_tensor(v, name) if first is None else operand(v, first, name) for v in values]
    tensors = [v for v in given if isinstance(v, Tensor)]
    if not tensors:
        return [real(v, name) for v in given]
    dtype = tensors[0].dtype
    for v in given:
        dtype = dtypes.promote(dtype, v.dtype) if isinstance(v, Tensor) else dtypes.promote_scalar(dtype, v)
    dtype = known(dtypes.floating(dtype), tensors)
    if dtype.kind == "c":
        raise errors.DtypeError(f"{name}: expected real values, received {dtype}")
    device = tensors[0].device
    return [cast(v, dtype) if isinstance(v, Tensor) else asarray(v, dtype=dtype, device=device) for v in given]


def _wide(x: Tensor[Any]) -> Tensor[Any]:
    """In double precision, for what is composed of several functions: rounded once, at the end."""
    return cast(x, x.device.leaf.widest(dtypes.float64))


def _one(name: str, x: Any, function: str, **parameters: Any) -> Tensor[Any]:
    tensor = as_tensor(x, function)
    return run(name, (cast(tensor, known(TABLE[name].promoted(tensor.dtype, function), [tensor])),), **parameters)  # type: ignore[no-any-return]


# --- the error function and the normal distribution ---


def erf(x: Tensor[B], /) -> Tensor[B]:
    """The error function of real x: 2 / sqrt(pi) times the integral of exp(-t^2) from 0 to x.

    >>> import adjoint as ad
    >>> round(ad.special.erf(ad.tensor(1.0)).item(), 5)
    0.8427
    """
    return _one("erf", x, "erf")


def erfc(x: Tensor[B], /) -> Tensor[B]:
    """1 - erf(x), accurate also where that is small.

    >>> import adjoint as ad
    >>> ad.special.erfc(ad.tensor(20.0, dtype=ad.float64)).item()
    5.395865611607901e-176
    """
    return _one("erfc", x, "erfc")


def erfcx(x: Tensor[B], /) -> Tensor[B]:
    """exp(x^2) erfc(x), which falls as slowly as 1 / x."""
    return _one("erfcx", x, "erfcx")


def erfinv(y: Tensor[B], /) -> Tensor[B]:
    """The inverse of `erf` on [-1, 1], infinite at the ends; nan outside."""
    return _one("erfinv", y, "erfinv")


def erfcinv(y: Tensor[B], /) -> Tensor[B]:
    """The inverse of `erfc` on [0, 2], accurate also for small y; nan outside."""
    return _one("erfcinv", y, "erfcinv")


def ndtr(x: Tensor[B], /) -> Tensor[B]:
    """The distribution function of the standard normal distribution.

    >>> import adjoint as ad
    >>> ad.special.ndtr(ad.tensor(0.0)).item()
    0.5
    """
    tensor = real(x, "ndtr")
    return cast(erfc(_wide(tensor) * -math.sqrt(0.5)) * 0.5, tensor.dtype)


def log_ndtr(x: Tensor[B], /) -> Tensor[B]:
    """The logarithm of `ndtr`, also where that is zero in floating point.

    >>> import adjoint as ad
    >>> round(ad.special.log_ndtr(ad.tensor(-100.0, dtype=ad.float64)).item(), 3)
    -5005.524
    """
    return _one("log_ndtr", x, "log_ndtr")


def ndtri(y: Tensor[B], /) -> Tensor[B]:
    """The inverse of `ndtr`: the quantiles of the standard normal distribution; nan outside [0, 1]."""
    tensor = real(y, "ndtri")
    return cast(erfcinv(_wide(tensor) * 2.0) * -math.sqrt(2.0), tensor.dtype)


# --- the gamma function and its relatives ---


def gamma(x: Tensor[B], /) -> Tensor[B]:
    """The gamma function; infinite at 0, with its sign, and nan at negative integers.

    >>> import adjoint as ad
    >>> ad.special.gamma(ad.tensor([5.0, 1.0], dtype=ad.float64)).tolist()
    [24.0, 1.0]
    """
    return _one("gamma", x, "gamma")


def gammaln(x: Tensor[B], /) -> Tensor[B]:
    """The logarithm of the absolute value of the gamma function; infinite at its poles.

    >>> import adjoint as ad
    >>> x = ad.tensor(100.0).require_grad()
    >>> y = ad.special.gammaln(x)
    >>> round(y.item(), 3), round(y.backward()[x].item(), 3)
    (359.134, 4.6)
    """
    return _one("gammaln", x, "gammaln")


def loggamma(x: Tensor[B], /) -> Tensor[B]:
    """The logarithm of the gamma function of positive x, as SciPy's of real numbers; nan for negative x."""
    tensor = real(x, "loggamma")
    negative = less(tensor, 0)
    return where(negative, math.nan, gammaln(where(negative, 1.0, tensor)))


def digamma(x: Tensor[B], /) -> Tensor[B]:
    """The derivative of `gammaln`; at 0 infinite, against its sign, and nan at negative integers.

    >>> import adjoint as ad
    >>> round(ad.special.digamma(ad.tensor(1.0)).item(), 5)
    -0.57722
    """
    return _one("digamma", x, "digamma")


psi = digamma


_HIGHEST = 1_000_000  # order: its factorial is multiplied with in parts


def polygamma(n: int | Numbers, x: Tensor[B], /) -> Tensor[B]:
    """The derivative of `digamma` of an order n, which may be an array of integers of known values.

    The derivative is with respect to x alone. It loops over the orders that are different, for all of x at once.
    Raises ArgumentError for a negative or fractional order, or one above a million.

    >>> import adjoint as ad
    >>> round(ad.special.polygamma(1, ad.tensor(1.0)).item(), 5)
    1.64493
    """
    try:
        orders = concrete_values(n, "polygamma: a tensor of orders")
    except errors.ShapeError:
        raise errors.ArgumentError(f"polygamma: orders are whole numbers, received {errors.shown(n)}") from None
    valid = orders.dtype.kind in "iuf" and ((orders >= 0) & (orders <= _HIGHEST) & (orders == np.floor(orders))).all()
    if not valid:
        raise errors.ArgumentError(
            f"polygamma: orders are whole numbers from 0 to {_HIGHEST}, received {errors.shown(n)}"
        )
    tensor = real(x, "polygamma")
    if orders.ndim == 0:
        return _polygamma(int(orders), tensor)
    out = tensor * 0.0
    for order in np.unique(orders):
        chosen = asarray(orders == order, device=tensor.device)
        out = where(chosen, _polygamma(int(order), tensor), out)
    return out


def _polygamma(n: int, x: Tensor[Any]) -> Tensor[Any]:
    """5.15.1."""
    if n == 0:
        return digamma(x)
    order = asarray(n + 1.0, dtype=x.device.leaf.widest(dtypes.float64), device=x.device)
    sums = run("zeta", (order, _wide(x)), order=0)
    # n! in parts, because it may overflow where its product with a small sum does not
    parts = int(math.lgamma(n + 1.0) // 700) + 1
    part = math.gamma(n + 1.0) if parts == 1 else math.exp(math.lgamma(n + 1.0) / parts)
    value = sums * ((-1.0) ** (n + 1) * part)
    for _ in range(min(parts, 3) - 1):  # three of them make any sum but zero infinite
        value = value * part
    return cast(value, x.dtype)


def zeta(x: Tensor[B], /, q: Numbers = None) -> Tensor[B]:
    """The Hurwitz zeta function, the sum of (q + k)^-x over k from 0, for x > 1; without q Riemann's, of any real x.

    Infinite at x = 1 and for q = 0, -1, ...; nan for x < 1 beside q, and for negative q unless x is whole. Derivatives
    of any order go to both, but not to x where q is negative.

    >>> import adjoint as ad
    >>> round(ad.special.zeta(ad.tensor(2.0)).item(), 5), round(ad.special.zeta(ad.tensor(2.0), 2.0).item(), 5)
    (1.64493, 0.64493)
    """
    if q is not None:
        s, q = _reals("zeta", x, q)
        below = less(s, 1.0)
        return where(below, math.nan, run("zeta", (where(below, 2.0, s), q), order=0))
    dtype = real(x, "zeta").dtype
    s = _wide(real(x, "zeta"))
    one = asarray(1.0, dtype=s.dtype, device=s.device)
    negative = less(s, 0.0)
    direct = run("zeta", (where(negative, 2.0, s), one), order=0)
    below = where(negative, s, -2.5)
    other = run("zeta", (1.0 - below, one), order=0)
    # 25.4.1, with sin(pi s / 2) as a sinc, which is exactly zero at the trivial zeros
    wave = sinc(below * 0.5) * below
    reflected = (2 * math.pi) ** below * wave * gamma(1.0 - below) * other * 0.5
    return cast(where(negative, reflected, direct), dtype)


def betaln(a: Tensor[B], b: Numbers, /) -> Tensor[B]:
    """The logarithm of the absolute value of the beta function, accurate for large and small arguments.

    >>> import adjoint as ad
    >>> round(ad.special.betaln(ad.tensor(1e8, dtype=ad.float64), 1.0).item(), 8)
    -18.42068074
    """
    return run("betaln", _reals("betaln", a, b))  # type: ignore[no-any-return]


def beta(a: Tensor[B], b: Numbers, /) -> Tensor[B]:
    """The beta function gamma(a) gamma(b) / gamma(a + b)."""
    a, b = _reals("beta", a, b)
    dtype = a.dtype
    a, b = _wide(a), _wide(b)
    value = _gamma_sign(a) * _gamma_sign(b) * _gamma_sign(a + b) * exp(run("betaln", (a, b)))
    return cast(value, dtype)


def _gamma_sign(x: Tensor[Any]) -> Tensor[Any]:
    below = floor(x.detach())
    return where(less(below, 0), 1.0 - 2.0 * (below - 2.0 * floor(below * 0.5)), 1.0)


def gammainc(a: Tensor[B], x: Numbers, /) -> Tensor[B]:
    """The regularised lower incomplete gamma function, which is the distribution function of the gamma distribution.

    Derivatives of any order go to both. nan for negative arguments.

    >>> import adjoint as ad
    >>> a = ad.tensor(2.0, dtype=ad.float64).require_grad()
    >>> y = ad.special.gammainc(a, 1.0)
    >>> round(y.item(), 8), round(y.backward()[a].item(), 8)
    (0.26424112, -0.27619605)
    """
    return run("gammainc", _reals("gammainc", a, x), order=0)  # type: ignore[no-any-return]


def gammaincc(a: Tensor[B], x: Numbers, /) -> Tensor[B]:
    """The regularised upper incomplete gamma function, 1 - gammainc(a, x), accurate also where that is small."""
    return run("gammaincc", _reals("gammaincc", a, x))  # type: ignore[no-any-return]


def betainc(a: Tensor[B], b: Numbers, x: Numbers, /) -> Tensor[B]:
    """The regularised incomplete beta function, which is the distribution function of the beta distribution.

    Derivatives of any order go to all three. nan for negative parameters and for x outside [0, 1].

    >>> import adjoint as ad
    >>> round(ad.special.betainc(ad.tensor(2.0), 3.0, 0.5).item(), 4)
    0.6875
    """
    return run("betainc", _reals("betainc", a, b, x), order=(0, 0))  # type: ignore[no-any-return]


# --- Bessel functions, sinc ---


def i0(x: Tensor[B], /) -> Tensor[B]:
    """The modified Bessel function of the first kind of order 0.

    >>> import adjoint as ad
    >>> ad.special.i0(ad.tensor(0.0)).item()
    1.0
    """
    return _one("bessel_i", x, "i0", order=0, scaled=False, reduced=False)


def i0e(x: Tensor[B], /) -> Tensor[B]:
    """exp(-|x|) i0(x), which does not overflow."""
    return _one("bessel_i", x, "i0e", order=0, scaled=True, reduced=False)


def i1(x: Tensor[B], /) -> Tensor[B]:
    """The modified Bessel function of the first kind of order 1."""
    return _one("bessel_i", x, "i1", order=1, scaled=False, reduced=False)


def i1e(x: Tensor[B], /) -> Tensor[B]:
    """exp(-|x|) i1(x), which does not overflow."""
    return _one("bessel_i", x, "i1e", order=1, scaled=True, reduced=False)


def sinc(x: Tensor[B], /) -> Tensor[B]:
    """sin(pi x) / (pi x), normalised as NumPy's: 1 at 0, and exactly 0 at other integers.

    Derivatives of any order are right at 0 too.

    >>> import adjoint as ad
    >>> ad.special.sinc(ad.tensor([0.0, 1.0])).tolist()
    [1.0, 0.0]
    """
    return _one("sinc", x, "sinc", order=0)


# --- logistic functions, entropies ---


def expit(x: Tensor[B], /) -> Tensor[B]:
    """The logistic function 1 / (1 + exp(-x)) of real x, without overflow."""
    return _one("expit", x, "expit")


def log_expit(x: Tensor[B], /) -> Tensor[B]:
    """The logarithm of `expit`, also where that is 0 or 1 in floating point."""
    return -run("softplus", (-real(x, "log_expit"),))  # type: ignore[no-any-return]


def logit(p: Tensor[B], /) -> Tensor[B]:
    """log(p / (1 - p)), the inverse of `expit`; infinite at 0 and 1, nan outside.

    >>> import adjoint as ad
    >>> ad.special.logit(ad.tensor([0.0, 0.5])).tolist()
    [-inf, 0.0]
    """
    return _one("logit", p, "logit")


def xlogy(x: Tensor[B], y: Numbers, /) -> Tensor[B]:
    """x log(y), and 0 for x = 0 whatever y is.

    The gradient is log(y) and x / y, and 0 to both where the value is 0 by convention: x = 0 with y <= 0 or infinite.

    >>> import adjoint as ad
    >>> ad.special.xlogy(ad.tensor([0.0, 2.0]), ad.tensor([0.0, 1.0])).tolist()
    [0.0, 0.0]
    """
    a, b = _reals("xlogy", x, y)
    return a * run("log", (run("inside_log", (b, a), pole=0.0),))  # type: ignore[no-any-return]


def xlog1py(x: Tensor[B], y: Numbers, /) -> Tensor[B]:
    """x log(1 + y), accurate for small y, and 0 for x = 0 whatever y is; the gradient is as for `xlogy`."""
    a, b = _reals("xlog1py", x, y)
    return a * run("log1p", (run("inside_log", (b, a), pole=-1.0),))  # type: ignore[no-any-return]


def entr(x: Tensor[B], /) -> Tensor[B]:
    """-x log(x), 0 at 0 with an infinite derivative, and -inf for negative x."""
    return _one("entr", x, "entr")


def rel_entr(x: Tensor[B], y: Numbers, /) -> Tensor[B]:
    """x log(x / y); 0 at x = 0 for y >= 0, and infinite elsewhere."""
    return run("rel_entr", _reals("rel_entr", x, y))  # type: ignore[no-any-return]


def kl_div(x: Tensor[B], y: Numbers, /) -> Tensor[B]:
    """x log(x / y) - x + y, without cancellation where x is near y; y at x = 0, infinite for negative numbers.

    >>> import adjoint as ad
    >>> ad.special.kl_div(ad.tensor(1.0 + 2**-20, dtype=ad.float64), 1.0).item()
    4.547472063262434e-13
    """
    return run("kl_div", _reals("kl_div", x, y))  # type: ignore[no-any-return]


# --- along axes ---


def logsumexp(
    a: Tensor[B],
    /,
    axis: Axis = None,
    b: Numbers = None,
    keepdims: bool = False,
    return_sign: bool = False,
) -> Any:
    """log(sum(b exp(a))) along axes, or all, without overflow; -inf where there is nothing to sum.

    `b` are factors, 1 if None; elements whose factor is 0 do not count. A negative sum has no real logarithm, so nan;
    with `return_sign` the result is a pair, the logarithm of the sum's absolute value and the sum's sign.

    Raises DtypeError for complex operands, AxisError for an axis that is not there.

    >>> import adjoint as ad
    >>> value, sign = ad.special.logsumexp(ad.tensor([1000.0, 1000.0]), b=ad.tensor([1.0, -2.0]), return_sign=True)
    >>> value.item(), sign.item()
    (1000.0, -1.0)
    """
    name = "logsumexp"
    keepdims, return_sign = as_flag(keepdims, name), as_flag(return_sign, name, "return_sign")
    if b is None and not return_sign:
        x = real(a, name)
        axes = as_axes(axis, x.ndim, name)
        return cast(run(name, (cast(x, dtypes.summing(x.dtype)),), axis=axes, keepdims=keepdims), x.dtype)
    x, factor = _reals(name, a, 1.0 if b is None else b)
    dtype = x.dtype
    x, factor = (cast(v, dtypes.summing(dtype)) for v in (x, factor))
    axes = as_axes(axis, max(x.ndim, factor.ndim), name)
    counted = where(equal(factor, 0.0), -math.inf, x + factor * 0.0)
    top: Any = 0.0
    if 0 not in counted.shape:
        top = largest(counted.detach(), axis=axes, keepdims=True)
        top = where(isfinite(top), top, 0.0)
    parts = factor * exp(where(equal(factor, 0.0), 0.0, x) - top)
    total = total_of(parts, axis=axes, keepdims=True)
    size = absolute(total) if return_sign else total
    positive = size > 0.0
    value = where(positive, log(where(positive, size, 1.0)) + top, where(equal(size, 0.0), -math.inf, math.nan))
    sign = sign_of(total)
    if not keepdims:
        kept = [n for i, n in enumerate(value.shape) if i not in axes]
        value, sign = value.reshape(kept), sign.reshape(kept)
    return (cast(value, dtype), cast(sign, dtype)) if return_sign else cast(value, dtype)


def softmax(x: Tensor[B], /, axis: int | tuple[int, ...] | None = None) -> Tensor[B]:
    """exp(x) over its sum along axes, of all elements if None, as in SciPy."""
    return _along("softmax", x, axis)


def log_softmax(x: Tensor[B], /, axis: int | tuple[int, ...] | None = None) -> Tensor[B]:
    """The logarithm of `softmax`, accurate also where that underflows."""
    return _along("log_softmax", x, axis)


def _along(name: str, x: Tensor[B], axis: Any) -> Tensor[B]:
    x = real(x, name)
    if axis is None or isinstance(axis, (tuple, list)):
        axes = as_axes(axis, x.ndim, name)
        if len(axes) != 1:  # the axes become one, at the end
            rest = [i for i in range(x.ndim) if i not in axes]
            order = [*rest, *axes]
            moved = _permuted(x, order)
            flat = moved.reshape([*[x.shape[i] for i in rest], math.prod(x.shape[i] for i in axes)])
            back = [order.index(i) for i in range(x.ndim)]
            return _permuted(_along(name, flat, -1).reshape(moved.shape), back)
        axis = axes[0]
    if not x.ndim:
        raise errors.AxisError(f"{name}: a 0-d tensor has no axis")
    place = as_axis(axis, x.ndim, name)
    if not x.shape[place]:
        return x
    return cast(run(name, (cast(x, dtypes.summing(x.dtype)),), axis=place), x.dtype)


def _permuted(x: Tensor[Any], order: list[int]) -> Tensor[Any]:
    return run("permute_dims", (x,), axes=tuple(order))  # type: ignore[no-any-return]
