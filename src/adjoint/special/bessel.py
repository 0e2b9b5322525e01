"""Bessel functions, and sinc, the spherical one of order 0. Numbers of formulas are DLMF's."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from adjoint.functions import elementwise
from adjoint.functions.arguments import as_tensor
from adjoint.operands import available_dtype, cast, is_weak, run
from adjoint.primitives import TABLE
from adjoint.special.arguments import Numbers, constant, one, reals, whole
from adjoint.tensor import Operand, Tensor
from adjoint.variables import B


def _of_order(name: str, function: str, v: Any, x: Any) -> Tensor[Any]:
    """A function of real order, by which no derivative is known."""
    v, x = reals(function, v, x)
    constant(v, function, "the order v")
    return run(name, (v, x), order=0)  # type: ignore[no-any-return]


def _of_fixed_order(name: str, function: str, v: float, x: Any, **parameters: Any) -> Tensor[Any]:
    tensor = as_tensor(x, function)
    tensor = cast(tensor, available_dtype(TABLE[name].promoted(tensor.dtype, function), [tensor]))
    return run(name, (v, tensor), **parameters)  # type: ignore[no-any-return]


# --- of the first and second kind ---


def j0(x: Operand[B], /) -> Tensor[B]:
    """The Bessel function of the first kind of order 0.

    This and the functions below of names with j, y, k, iv and ive have SciPy's values and need it; their derivatives
    of any order in x are exact too. Raises MissingLibraryError where SciPy is not installed.

    >>> import adjoint as ad
    >>> x = ad.tensor(2.0, dtype=ad.float64).require_grad()
    >>> y = ad.special.j0(x)
    >>> round(y.item(), 8), round(y.backward()[x].item(), 8)
    (0.22389078, -0.57672481)
    """
    return _of_fixed_order("bessel_j", "j0", 0.0, x, order=0)


def j1(x: Operand[B], /) -> Tensor[B]:
    """The Bessel function of the first kind of order 1.

    >>> import adjoint as ad
    >>> ad.grad(ad.special.j1)(0.0).item()
    0.5
    """
    return _of_fixed_order("bessel_j", "j1", 1.0, x, order=0)


def jv(v: Numbers, x: Operand[B], /) -> Tensor[B]:
    """The Bessel function of the first kind of real order v; nan for negative x, unless v is whole.

    Derivatives go to x. Raises TrackedError where one by v is asked for.

    >>> import adjoint as ad
    >>> round(ad.special.jv(0.5, ad.tensor(2.0)).item(), 5)
    0.51302
    """
    return _of_order("bessel_j", "jv", v, x)


jn = jv


def y0(x: Operand[B], /) -> Tensor[B]:
    """The Bessel function of the second kind of order 0: -inf at 0, nan for negative x.

    >>> import adjoint as ad
    >>> round(ad.special.y0(ad.tensor(2.0)).item(), 5)
    0.51038
    """
    return _of_fixed_order("bessel_y", "y0", 0.0, x, order=0)


def y1(x: Operand[B], /) -> Tensor[B]:
    """The Bessel function of the second kind of order 1: -inf at 0, nan for negative x."""
    return _of_fixed_order("bessel_y", "y1", 1.0, x, order=0)


def yv(v: Numbers, x: Operand[B], /) -> Tensor[B]:
    """The Bessel function of the second kind of real order v; nan for negative x.

    Derivatives go to x. Raises TrackedError where one by v is asked for.
    """
    return _of_order("bessel_y", "yv", v, x)


def yn(n: int | Numbers, x: Operand[B], /) -> Tensor[B]:
    """The Bessel function of the second kind of whole orders n. Raises ArgumentError for others."""
    return _of_order("bessel_y", "yn", whole(n, "yn"), x)


# --- modified ---


def k0(x: Operand[B], /) -> Tensor[B]:
    """The modified Bessel function of the second kind of order 0: inf at 0, nan for negative x.

    >>> import adjoint as ad
    >>> round(ad.special.k0(ad.tensor(2.0)).item(), 5)
    0.11389
    """
    return _of_fixed_order("bessel_k", "k0", 0.0, x, order=(0, 0), scaled=False)


def k0e(x: Operand[B], /) -> Tensor[B]:
    """exp(x) k0(x), which does not underflow."""
    return _of_fixed_order("bessel_k", "k0e", 0.0, x, order=(0, 0), scaled=True)


def k1(x: Operand[B], /) -> Tensor[B]:
    """The modified Bessel function of the second kind of order 1: inf at 0, nan for negative x."""
    return _of_fixed_order("bessel_k", "k1", 1.0, x, order=(0, 0), scaled=False)


def k1e(x: Operand[B], /) -> Tensor[B]:
    """exp(x) k1(x), which does not underflow."""
    return _of_fixed_order("bessel_k", "k1e", 1.0, x, order=(0, 0), scaled=True)


def kv(v: Numbers, x: Operand[B], /) -> Tensor[B]:
    """The modified Bessel function of the second kind of real order v, as in Matérn's covariance.

    Derivatives of any order go to both: those by v are integrals, 10.32.9, under which they are taken.

    >>> import adjoint as ad
    >>> v = ad.tensor(1.5, dtype=ad.float64).require_grad()
    >>> y = ad.special.kv(v, 2.0)
    >>> round(y.item(), 8), round(y.backward()[v].item(), 8)
    (0.17990666, 0.10756345)
    """
    return run("bessel_k", reals("kv", v, x), order=(0, 0), scaled=False)  # type: ignore[no-any-return]


def kve(v: Numbers, x: Operand[B], /) -> Tensor[B]:
    """exp(x) kv(v, x), which does not underflow."""
    return run("bessel_k", reals("kve", v, x), order=(0, 0), scaled=True)  # type: ignore[no-any-return]


def kn(n: int | Numbers, x: Operand[B], /) -> Tensor[B]:
    """The modified Bessel function of the second kind of whole orders n. Raises ArgumentError for others."""
    return kv(whole(n, "kn"), x)


def iv(v: Numbers, x: Operand[B], /) -> Tensor[B]:
    """The modified Bessel function of the first kind of real order v; nan for negative x, unless v is whole.

    Derivatives go to x. Raises TrackedError where one by v is asked for.
    """
    if is_weak(v) and v in (0, 1):
        return i1(x) if v else i0(x)
    return _of_order("bessel_iv", "iv", v, x)


def ive(v: Numbers, x: Operand[B], /) -> Tensor[B]:
    """exp(-|x|) iv(v, x), which does not overflow."""
    if is_weak(v) and v in (0, 1):
        return i1e(x) if v else i0e(x)
    return _of_order("bessel_ive", "ive", v, x)


def i0(x: Operand[B], /) -> Tensor[B]:
    """The modified Bessel function of the first kind of order 0.

    >>> import adjoint as ad
    >>> ad.special.i0(ad.tensor(0.0)).item()
    1.0
    """
    return one("bessel_i", x, "i0", order=0, scaled=False, reduced=False)


def i0e(x: Operand[B], /) -> Tensor[B]:
    """exp(-|x|) i0(x), which does not overflow."""
    return one("bessel_i", x, "i0e", order=0, scaled=True, reduced=False)


def i1(x: Operand[B], /) -> Tensor[B]:
    """The modified Bessel function of the first kind of order 1."""
    return one("bessel_i", x, "i1", order=1, scaled=False, reduced=False)


def i1e(x: Operand[B], /) -> Tensor[B]:
    """exp(-|x|) i1(x), which does not overflow."""
    return one("bessel_i", x, "i1e", order=1, scaled=True, reduced=False)


def sinc(x: Operand[B], /) -> Tensor[B]:
    """sin(pi x) / (pi x), normalised as NumPy's: 1 at 0, and exactly 0 at other integers.

    Derivatives of any order are right at 0 too, up to the 28th of complex x.

    >>> import adjoint as ad
    >>> ad.special.sinc(ad.tensor([0.0, 1.0])).tolist()
    [1.0, 0.0]
    >>> round(ad.special.sinc(ad.tensor(1j, dtype=ad.complex128)).item().real, 6)  # sinh(pi) / pi
    3.676078
    """
    x = as_tensor(x, "sinc")
    return _complex_sinc(x) if x.dtype.kind == "c" else one("sinc", x, "sinc", order=0)


def _complex_sinc(x: Tensor[Any]) -> Tensor[Any]:
    z = math.pi * x
    near = elementwise.abs(z) < 2.0
    square = elementwise.where(near, z, 0.0) ** 2
    series: Any = 1.0
    for k in range(28, 0, -2):
        series = 1.0 - square / (k * (k + 1)) * series
    distant = elementwise.where(near, 1.0, z)
    return elementwise.where(near, series, elementwise.sin(distant) / distant)


# --- of the third kind ---


def hankel1(v: Numbers, x: Operand[B], /) -> Tensor[B]:
    """Hankel's function of the first kind of real numbers x and real order v: jv + i yv, a complex number.

    Of negative x it is the value above the cut, 10.11.5. Derivatives go to x. Raises TrackedError where one by v is
    asked for.

    >>> import adjoint as ad
    >>> y = ad.special.hankel1(0, ad.tensor(1.0)).item()
    >>> round(y.real, 5), round(y.imag, 5)
    (0.7652, 0.08826)
    """
    return _hankel("hankel1", v, x, 1)


def hankel2(v: Numbers, x: Operand[B], /) -> Tensor[B]:
    """Hankel's function of the second kind: jv - i yv, for positive x the conjugate of the first one.

    >>> import adjoint as ad
    >>> y = ad.special.hankel2(0.0, ad.tensor(1.0)).item()
    >>> round(y.real, 5), round(y.imag, 5)
    (0.7652, -0.08826)
    """
    return _hankel("hankel2", v, x, -1)


def _hankel(function: str, v: Any, x: Any, sign: int) -> Tensor[Any]:
    v, x = reals(function, v, x)
    size = abs(x)
    first, second = jv(v, size), 1j * yv(v, size)
    half = v - 2.0 * elementwise.round(v / 2.0)  # the order up to a whole turn
    c, s = elementwise.cos(np.pi * half), np.pi * half * sinc(half)  # of pi v, and 0 at whole v
    if sign > 0:
        behind = -(c - 1j * s) * (first - second)
    else:
        behind = 2.0 * c * (first - second) + (c + 1j * s) * (first + second)
    return elementwise.where(x < 0.0, behind, first + sign * second)
