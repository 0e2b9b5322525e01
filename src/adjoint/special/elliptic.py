"""Legendre's elliptic integrals, of the parameter m = k^2. Numbers of formulas are DLMF's."""

from __future__ import annotations

from typing import TypeVar

from adjoint.backend import Backend
from adjoint.functions.arguments import real
from adjoint.operands import cast, run
from adjoint.special.arguments import Numbers, reals, wide
from adjoint.tensor import Operand, Tensor

B = TypeVar("B", bound=Backend)


def ellipk(m: Operand[B], /) -> Tensor[B]:
    """The complete elliptic integral of the first kind, DLMF 19.2.8; infinite at m = 1, nan beyond.

    Values of elliptic integrals are SciPy's, derivatives of any order integrals. Raises MissingLibraryError where SciPy
    is not installed.

    >>> import adjoint as ad
    >>> m = ad.tensor(0.5, dtype=ad.float64).require_grad()
    >>> y = ad.special.ellipk(m)
    >>> round(y.item(), 8), round(y.backward()[m].item(), 8)
    (1.85407468, 0.84721308)
    """
    given = real(m, "ellipk")
    return cast(ellipkm1(1.0 - wide(given)), given.dtype)


def ellipkm1(p: Operand[B], /) -> Tensor[B]:
    """`ellipk` of m = 1 - p, accurate near m = 1."""
    return run("elliptic_complete", (real(p, "ellipkm1"),), kind=1, order=0)  # type: ignore[no-any-return]


def ellipe(m: Operand[B], /) -> Tensor[B]:
    """The complete elliptic integral of the second kind, DLMF 19.2.8; nan for m > 1.

    >>> import adjoint as ad
    >>> ad.special.ellipe(ad.tensor(1.0)).item()
    1.0
    """
    given = real(m, "ellipe")
    return cast(run("elliptic_complete", (1.0 - wide(given),), kind=2, order=0), given.dtype)


def ellipkinc(phi: Operand[B], m: Numbers, /) -> Tensor[B]:
    """The incomplete elliptic integral of the first kind, DLMF 19.2.4, of the amplitude phi; nan for m > 1.

    Derivatives of any order go to both.

    >>> import adjoint as ad
    >>> round(ad.special.ellipkinc(ad.tensor(1.0), 0.5).item(), 5)
    1.08322
    """
    return run("elliptic_incomplete", reals("ellipkinc", phi, m), kind=1, order=0)  # type: ignore[no-any-return]


def ellipeinc(phi: Operand[B], m: Numbers, /) -> Tensor[B]:
    """The incomplete elliptic integral of the second kind, DLMF 19.2.5, of the amplitude phi; nan for m > 1."""
    return run("elliptic_incomplete", reals("ellipeinc", phi, m), kind=2, order=0)  # type: ignore[no-any-return]
