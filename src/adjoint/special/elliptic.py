"""Elliptic integrals of Legendre, of the parameter m = k^2, and Carlson; Jacobi's functions. Numbers are DLMF's."""

from __future__ import annotations

from typing import Any

from adjoint.functions import elementwise
from adjoint.functions.arguments import real
from adjoint.operands import cast, run
from adjoint.special.arguments import Numbers, reals, wide
from adjoint.tensor import Operand, Tensor
from adjoint.variables import B


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


# --- Carlson's symmetric integrals, and Jacobi's functions ---


def _carlson(function: str, *numbers: Any, kind: str) -> Tensor[Any]:
    given = reals(function, *numbers)
    return run("carlson", (*given, *[1.0] * (4 - len(given))), kind=kind, order=(0, 0, 0, 0))  # type: ignore[no-any-return]


def elliprf(x: Operand[B], y: Numbers, z: Numbers, /) -> Tensor[B]:
    """Carlson's symmetric elliptic integral of the first kind, DLMF 19.16.1, of real numbers from 0 on.

    Derivatives of Carlson's integrals go to all operands, and are integrals of positive numbers. They are nan where an
    operand is negative.

    >>> import adjoint as ad
    >>> x = ad.tensor(1.0, dtype=ad.float64).require_grad()
    >>> y = ad.special.elliprf(x, 2.0, 3.0)
    >>> round(y.item(), 8), round(y.backward()[x].item(), 8)
    (0.72694594, -0.09318537)
    """
    return _carlson("elliprf", x, y, z, kind="rf")


def elliprd(x: Operand[B], y: Numbers, z: Numbers, /) -> Tensor[B]:
    """Carlson's symmetric elliptic integral of the second kind, DLMF 19.16.5.

    >>> import adjoint as ad
    >>> round(ad.special.elliprd(ad.tensor(1.0), 2.0, 3.0).item(), 5)
    0.29046
    """
    return _carlson("elliprd", x, y, z, kind="rd")


def elliprg(x: Operand[B], y: Numbers, z: Numbers, /) -> Tensor[B]:
    """Carlson's completely symmetric elliptic integral of the second kind, DLMF 19.16.3.

    >>> import adjoint as ad
    >>> round(ad.special.elliprg(ad.tensor(1.0), 2.0, 3.0).item(), 5)
    1.40185
    """
    return _carlson("elliprg", x, y, z, kind="rg")


def elliprj(x: Operand[B], y: Numbers, z: Numbers, p: Numbers, /) -> Tensor[B]:
    """Carlson's symmetric elliptic integral of the third kind, DLMF 19.16.2; principal values for negative p.
    Shapes broadcast.

    >>> import adjoint as ad
    >>> round(ad.special.elliprj(ad.tensor(1.0), 2.0, 3.0, 4.0).item(), 5)
    0.23985
    """
    return _carlson("elliprj", x, y, z, p, kind="rj")


def elliprc(x: Operand[B], y: Numbers, /) -> Tensor[B]:
    """Carlson's degenerate elliptic integral, DLMF 19.16.6: `elliprf` of x, y and y; principal values for negative y.

    >>> import adjoint as ad
    >>> round(ad.special.elliprc(ad.tensor(0.0), 1.0).item(), 5)     # pi / 2
    1.5708
    """
    x, y = reals("elliprc", x, y)
    negative = y < 0.0
    above = elementwise.where(negative, x - y, x)  # 19.2.20
    factor = elementwise.sqrt(elementwise.where(negative, x / elementwise.where(negative, above, 1.0), 1.0))
    return factor * elliprf(above, abs(y), abs(y))


def ellipj(u: Operand[B], m: Numbers, /) -> tuple[Tensor[B], Tensor[B], Tensor[B], Tensor[B]]:
    """Jacobi's elliptic functions sn, cn and dn, and the amplitude, of the parameter m from 0 to 1; DLMF 22.2.

    Derivatives of any order go to both.

    >>> import adjoint as ad
    >>> [round(y.item(), 5) for y in ad.special.ellipj(ad.tensor(1.0), 0.5)]
    [0.803, 0.59598, 0.82316, 0.93232]
    """
    given = reals("ellipj", u, m)
    sn, cn, dn, amplitude = [run("jacobi_elliptic", given, kind=kind) for kind in range(4)]
    return sn, cn, dn, amplitude
