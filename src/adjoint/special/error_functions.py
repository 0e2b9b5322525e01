"""The error function, the normal distribution, and the plasma dispersion function. Numbers of formulas are DLMF's."""

from __future__ import annotations

from typing import Any

from adjoint.functions.arguments import as_tensor, real
from adjoint.functions.elementwise import real as real_part
from adjoint.irrational import irrational, pi_beside
from adjoint.operands import cast, run
from adjoint.special.arguments import Numbers, one, reals, wide
from adjoint.tensor import Operand, Tensor
from adjoint.variables import B


def erf(x: Operand[B], /) -> Tensor[B]:
    """The error function: 2 / sqrt(pi) times the integral of exp(-t^2) from 0 to x.

    That of complex numbers has SciPy's values. Raises MissingLibraryError for these where SciPy is not installed.

    >>> import adjoint as ad
    >>> round(ad.special.erf(ad.tensor(1.0)).item(), 5)
    0.8427
    """
    return _also_complex("erf", x)


def erfc(x: Operand[B], /) -> Tensor[B]:
    """1 - erf(x), accurate also where that is small.

    >>> import adjoint as ad
    >>> ad.special.erfc(ad.tensor(20.0, dtype=ad.float64)).item()
    5.395865611607901e-176
    """
    return _also_complex("erfc", x)


def _also_complex(name: str, x: Any) -> Tensor[Any]:
    tensor = as_tensor(x, name)
    if tensor.dtype.kind == "c":
        return run(f"{name}_complex", (tensor,))  # type: ignore[no-any-return]
    return one(name, tensor, name)


def erfcx(x: Operand[B], /) -> Tensor[B]:
    """exp(x^2) erfc(x), which falls as slowly as 1 / x."""
    return one("erfcx", x, "erfcx")


def erfinv(y: Operand[B], /) -> Tensor[B]:
    """The inverse of `erf` on [-1, 1], infinite at the ends; nan outside."""
    return one("erfinv", y, "erfinv")


def erfcinv(y: Operand[B], /) -> Tensor[B]:
    """The inverse of `erfc` on [0, 2], accurate also for small y; nan outside."""
    return one("erfcinv", y, "erfcinv")


def ndtr(x: Operand[B], /) -> Tensor[B]:
    """The distribution function of the standard normal distribution.

    >>> import adjoint as ad
    >>> ad.special.ndtr(ad.tensor(0.0)).item()
    0.5
    """
    tensor = real(x, "ndtr")
    return cast(erfc(wide(tensor) * -irrational("sqrt", 0.5, tensor)) * 0.5, tensor.dtype)


def log_ndtr(x: Operand[B], /) -> Tensor[B]:
    """The logarithm of `ndtr`, also where that is zero in floating point.

    >>> import adjoint as ad
    >>> round(ad.special.log_ndtr(ad.tensor(-100.0, dtype=ad.float64)).item(), 3)
    -5005.524
    """
    return one("log_ndtr", x, "log_ndtr")


def ndtri(y: Operand[B], /) -> Tensor[B]:
    """The inverse of `ndtr`: the quantiles of the standard normal distribution; nan outside [0, 1]."""
    tensor = real(y, "ndtri")
    return cast(erfcinv(wide(tensor) * 2.0) * -irrational("sqrt", 2.0, tensor), tensor.dtype)


# --- Dawson's integral and the Faddeeva function ---


def dawsn(x: Operand[B], /) -> Tensor[B]:
    """Dawson's integral of real x: exp(-x^2) times the integral of exp(t^2) from 0 to x.

    >>> import adjoint as ad
    >>> round(ad.special.dawsn(ad.tensor(1.0)).item(), 5)
    0.53808
    """
    return one("dawsn", x, "dawsn", order=0)


def wofz(z: Operand[B], /) -> Tensor[B]:
    """The Faddeeva function exp(-z^2) erfc(-i z) of complex numbers; real ones are made complex.

    Values are SciPy's. Raises MissingLibraryError where SciPy is not installed.

    >>> import adjoint as ad
    >>> round(ad.special.wofz(ad.tensor(1j)).real.item(), 6)
    0.427584
    """
    tensor = as_tensor(z, "wofz")
    if tensor.dtype.kind != "c":
        tensor = real(tensor, "wofz") * 1.0 + 0j
    return run("wofz", (tensor,), order=0)  # type: ignore[no-any-return]


def voigt_profile(x: Operand[B], sigma: Numbers, gamma: Numbers, /) -> Tensor[B]:
    """The density at x of a normal number of deviation sigma plus a Cauchy number of half width gamma.

    Derivatives of any order go to all three. Both widths are positive: with one of them 0 it is the density of
    `ad.stats.cauchy` or `ad.stats.norm`. Source: 7.19.1.

    >>> import adjoint as ad
    >>> round(ad.special.voigt_profile(ad.tensor(2.0), 1.0, 1.0).item(), 6)
    0.090715
    """
    given = reals("voigt_profile", x, sigma, gamma)
    x, sigma, gamma = (wide(v) for v in given)
    scale = sigma * irrational("sqrt", 2.0, x)
    value = real_part(wofz(x / scale + 1j * (gamma / scale))) / (scale * irrational("sqrt", pi_beside(x), x))
    return cast(value, given[0].dtype)
