"""Incomplete gamma and beta functions and their inverses: distribution functions and quantiles."""

from __future__ import annotations

from typing import Any

from adjoint.functions.elementwise import where
from adjoint.functions.logic import less
from adjoint.operands import cast, run
from adjoint.special.arguments import Numbers, reals, wide
from adjoint.tensor import Operand, Tensor
from adjoint.variables import B


def gammainc(a: Operand[B], x: Numbers, /) -> Tensor[B]:
    """The regularised lower incomplete gamma function, which is the distribution function of the gamma distribution.

    Derivatives of any order go to both. nan for negative arguments.

    >>> import adjoint as ad
    >>> a = ad.tensor(2.0, dtype=ad.float64).require_grad()
    >>> y = ad.special.gammainc(a, 1.0)
    >>> round(y.item(), 8), round(y.backward()[a].item(), 8)
    (0.26424112, -0.27619605)
    """
    return run("gammainc", reals("gammainc", a, x), order=0)  # type: ignore[no-any-return]


def gammaincc(a: Operand[B], x: Numbers, /) -> Tensor[B]:
    """The regularised upper incomplete gamma function, 1 - gammainc(a, x), accurate also where that is small."""
    return run("gammaincc", reals("gammaincc", a, x))  # type: ignore[no-any-return]


def betainc(a: Operand[B], b: Numbers, x: Numbers, /) -> Tensor[B]:
    """The regularised incomplete beta function, which is the distribution function of the beta distribution.

    Derivatives of any order go to all three. nan for negative parameters and for x outside [0, 1].

    >>> import adjoint as ad
    >>> round(ad.special.betainc(ad.tensor(2.0), 3.0, 0.5).item(), 4)
    0.6875
    """
    return run("betainc", reals("betainc", a, b, x), order=(0, 0))  # type: ignore[no-any-return]


def betaincc(a: Operand[B], b: Numbers, x: Numbers, /) -> Tensor[B]:
    """1 - betainc(a, b, x), accurate also where that is small."""
    given = reals("betaincc", a, b, x)
    a, b, x = (wide(v) for v in given)
    return cast(beta_share(b, a, 1.0 - x, x), given[0].dtype)


def beta_share(a: Tensor[Any], b: Tensor[Any], x: Tensor[Any], y: Tensor[Any]) -> Tensor[Any]:
    """betainc(a, b, x) of an x near 1 that is known by y = 1 - x too."""
    near = less(x, 0.5)
    rest = run("betainc", (b, a, where(near, 0.5, y)), order=(0, 0))
    from_above = ~near & (less(rest, 0.5) | less(y, 1e-6))
    lower = run("betainc", (a, b, where(from_above, 0.5, x)), order=(0, 0))
    return where(from_above, 1.0 - rest, lower)


# --- inverses ---


def gammaincinv(a: Operand[B], y: Numbers, /) -> Tensor[B]:
    """The inverse of `gammainc` by x: quantiles of the gamma distribution; nan outside [0, 1].

    Values of the inverses are SciPy's; their derivatives of any order are those of implicit functions. Raises
    MissingLibraryError where SciPy is not installed.

    >>> import adjoint as ad
    >>> a = ad.tensor(2.0, dtype=ad.float64).require_grad()
    >>> x = ad.special.gammaincinv(a, 0.5)
    >>> round(x.item(), 8), round(x.backward()[a].item(), 8)
    (1.67834699, 0.99329489)
    """
    return _inverse("gammaincinv", a, y)


def gammainccinv(a: Operand[B], y: Numbers, /) -> Tensor[B]:
    """The inverse of `gammaincc` by x, accurate also for small y."""
    return _inverse("gammainccinv", a, y)


def betaincinv(a: Operand[B], b: Numbers, y: Numbers, /) -> Tensor[B]:
    """The inverse of `betainc` by x: quantiles of the beta distribution; nan outside [0, 1]."""
    return _inverse("betaincinv", a, b, y)


def betainccinv(a: Operand[B], b: Numbers, y: Numbers, /) -> Tensor[B]:
    """The inverse of `betaincc` by x, accurate also for small y."""
    return _inverse("betainccinv", a, b, y)


def _inverse(name: str, *operands: Any) -> Tensor[Any]:
    given = reals(name, *operands)
    return cast(run(name, [wide(x) for x in given]), given[0].dtype)


# --- distribution functions of statistics ---


def chdtr(v: Operand[B], x: Numbers, /) -> Tensor[B]:
    """The distribution function of the chi-square distribution with v degrees of freedom."""
    v, x = reals("chdtr", v, x)
    return gammainc(v * 0.5, x * 0.5)


def chdtrc(v: Operand[B], x: Numbers, /) -> Tensor[B]:
    """1 - chdtr(v, x), accurate also where that is small."""
    v, x = reals("chdtrc", v, x)
    return gammaincc(v * 0.5, x * 0.5)


def chdtri(v: Operand[B], p: Numbers, /) -> Tensor[B]:
    """The inverse of `chdtrc` by x."""
    v, p = reals("chdtri", v, p)
    return gammainccinv(v * 0.5, p) * 2.0


def stdtr(df: Operand[B], t: Numbers, /) -> Tensor[B]:
    """The distribution function of Student's t distribution, with derivatives of any order to both arguments.

    nan for df that is not positive; for infinite df that of the normal distribution.

    >>> import adjoint as ad
    >>> round(ad.special.stdtr(ad.tensor(3.0), 1.0).item(), 6)
    0.804499
    """
    given = reals("stdtr", df, t)
    return cast(run("stdtr", [wide(v) for v in given], order=0), given[0].dtype)


def stdtrit(df: Operand[B], p: Numbers, /) -> Tensor[B]:
    """The inverse of `stdtr` by t: the quantiles of Student's t distribution.

    >>> import adjoint as ad
    >>> round(ad.special.stdtrit(ad.tensor(3.0), 0.975).item(), 5)
    3.18245
    """
    return _inverse("stdtrit", df, p)
