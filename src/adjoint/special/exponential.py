"""Exponential integrals, and Lambert's function. Numbers of formulas are DLMF's."""

from __future__ import annotations

from adjoint import errors
from adjoint.dtypes import FLOATING
from adjoint.functions.arguments import as_integer, inexact, real
from adjoint.operands import run
from adjoint.special.arguments import Numbers, constant, of_order, one
from adjoint.tensor import Operand, Tensor
from adjoint.variables import B


def expi(x: Operand[B], /) -> Tensor[B]:
    """The exponential integral Ei(x): -inf at 0. Its derivative is exp(x) / x.

    Values of the functions of this kind are SciPy's. Raises MissingLibraryError where SciPy is not installed.

    >>> import adjoint as ad
    >>> round(ad.special.expi(ad.tensor(1.0)).item(), 5)
    1.89512
    """
    return one("expi", x, "expi")


def exp1(x: Operand[B], /) -> Tensor[B]:
    """The exponential integral E_1(x): infinite at 0, nan for negative x."""
    return one("expn", x, "exp1", order=1)


def expn(n: int | Numbers, x: Operand[B], /) -> Tensor[B]:
    """The generalised exponential integral E_n(x) of whole orders n from 0, DLMF 8.19.3; nan for negative x.

    n may be an array. Derivatives of any order go to x. Raises ArgumentError for other orders,
    TrackedError where a derivative by n is asked for.

    >>> import adjoint as ad
    >>> round(ad.special.expn(2, ad.tensor(1.0)).item(), 5)
    0.1485
    """
    constant(n, "expn", "the order n")
    return of_order("expn", n, lambda order, t: run("expn", (t,), order=order), real(x, "expn", n))  # type: ignore[no-any-return]


def lambertw(z: Operand[B], /, k: int = 0) -> Tensor[B]:
    """The branch k of the solution w of w exp(w) = z.

    Of real numbers the branches 0, from -1/e on, and -1, from -1/e to 0, in real numbers; nan elsewhere. Of complex
    numbers, as SciPy has it, any branch. Raises ArgumentError for a branch of real numbers that is not real.

    >>> import adjoint as ad
    >>> x = ad.tensor(1.0, dtype=ad.float64).require_grad()
    >>> w = ad.special.lambertw(x)
    >>> round(w.item(), 8), round(w.backward()[x].item(), 8)
    (0.56714329, 0.36189626)
    """
    tensor = inexact(z, "lambertw")
    k = as_integer(k, "lambertw", "k")
    if tensor.dtype.kind in FLOATING and k not in (0, -1):
        raise errors.ArgumentError(
            f"lambertw: of real numbers the branches 0 and -1 are real, received k={errors.shown(k)}; for others make "
            "the argument complex"
        )
    return run("lambertw", (tensor,), k=k)  # type: ignore[no-any-return]
