"""Powers that lose no digits near the logarithm: the transformation of G. Box and D. Cox (1964)."""

from __future__ import annotations

from typing import Any

from adjoint.functions.elementwise import exp, expm1, log, log1p, where
from adjoint.operands import cast, run
from adjoint.special.arguments import Numbers, reals, wide
from adjoint.special.hypergeometric import exprel
from adjoint.tensor import Operand, Tensor
from adjoint.variables import B


def boxcox(x: Operand[B], lmbda: Numbers, /) -> Tensor[B]:
    """(x^lmbda - 1) / lmbda, which is log(x) for lmbda = 0: derivatives of any order are right there, too.

    This and the next three need SciPy. Raises MissingLibraryError where it is not installed.

    >>> import adjoint as ad
    >>> lmbda = ad.tensor(0.0, dtype=ad.float64).require_grad()
    >>> y = ad.special.boxcox(2.0, lmbda)
    >>> round(y.item(), 8), round(y.backward()[lmbda].item(), 8)     # log(2), log(2)^2 / 2
    (0.69314718, 0.24022651)
    """
    given, power = reals("boxcox", x, lmbda)
    return _transformed(wide(given), 0.0, wide(power), given.dtype)


def boxcox1p(x: Operand[B], lmbda: Numbers, /) -> Tensor[B]:
    """`boxcox` of 1 + x, accurate for small x.

    >>> import adjoint as ad
    >>> ad.special.boxcox1p(ad.tensor(1e-20), 2.0).item()
    9.999999682655225e-21
    """
    given, power = reals("boxcox1p", x, lmbda)
    return _transformed(wide(given), -1.0, wide(power), given.dtype)


def _transformed(x: Tensor[Any], zero: float, power: Tensor[Any], dtype: Any) -> Tensor[Any]:
    """Where the logarithm is infinite, the power itself."""
    ends = (x == zero) & (power > 0.0)
    inside = where(ends, 1.0, x)
    size = log1p(inside) if zero else log(inside)
    edge = where(ends, power, 1.0)
    return cast(where(ends, ((where(ends, x, zero) - zero) ** edge - 1.0) / edge, size * exprel(power * size)), dtype)


def inv_boxcox(y: Operand[B], lmbda: Numbers, /) -> Tensor[B]:
    """The inverse of `boxcox`: (1 + lmbda y)^(1 / lmbda), which is exp(y) for lmbda = 0.

    >>> import adjoint as ad
    >>> round(ad.special.inv_boxcox(ad.tensor(1.5), 2.0).item(), 6)
    2.0
    """
    given, power = reals("inv_boxcox", y, lmbda)
    return cast(exp(_exponent(wide(given), wide(power))), given.dtype)


def inv_boxcox1p(y: Operand[B], lmbda: Numbers, /) -> Tensor[B]:
    """The inverse of `boxcox1p`: `inv_boxcox` less 1, accurate where that is small.

    >>> import adjoint as ad
    >>> y = ad.special.boxcox1p(ad.tensor(1e-6), 0.5)
    >>> round(ad.special.inv_boxcox1p(y, 0.5).item(), 12)
    1e-06
    """
    given, power = reals("inv_boxcox1p", y, lmbda)
    return cast(expm1(_exponent(wide(given), wide(power))), given.dtype)


def _exponent(y: Tensor[Any], power: Tensor[Any]) -> Tensor[Any]:
    """log(1 + lmbda y) / lmbda by the slope of `spence`, which is smooth at 0."""
    return -y * run("spence", (1.0 + power * y,), order=1)  # type: ignore[no-any-return]
