"""Hypergeometric functions, Airy's and Struve's, and integrals of elementary ones. Numbers of formulas are DLMF's."""

from __future__ import annotations

from typing import Any

from adjoint.operands import run
from adjoint.special.arguments import Numbers, constant, one, reals
from adjoint.tensor import Operand, Tensor
from adjoint.variables import B


def _of_parameters(name: str, function: str, parameters: dict[str, Any], x: Any, **how: Any) -> Tensor[Any]:
    """A function of real parameters, by which no derivative is known."""
    *given, x = reals(function, *parameters.values(), x)
    for what, value in zip(parameters, given, strict=True):
        constant(value, function, f"the parameter {what}")
    return run(name, (*given, x), **how)  # type: ignore[no-any-return]


def hyp0f1(v: Numbers, z: Operand[B], /) -> Tensor[B]:
    """The confluent hypergeometric limit function 0F1, DLMF 16.2.1.

    Values of these functions are SciPy's. Derivatives of any order go to z, and are as accurate as SciPy's
    values of neighbouring parameters. Raises TrackedError where one by a parameter is asked for, MissingLibraryError
    where SciPy is not installed.

    >>> import adjoint as ad
    >>> round(ad.special.hyp0f1(1.0, ad.tensor(2.0)).item(), 5)
    4.25235
    """
    return _of_parameters("hyp0f1", "hyp0f1", {"v": v}, z, order=0)


def hyp1f1(a: Numbers, b: Numbers, x: Operand[B], /) -> Tensor[B]:
    """Kummer's confluent hypergeometric function 1F1, DLMF 13.2.2.

    It is nan for a, b or x beyond some 1e8 whose value is not simple, as infinity: SciPy may count up to them.

    >>> import adjoint as ad
    >>> x = ad.tensor(2.0, dtype=ad.float64).require_grad()
    >>> y = ad.special.hyp1f1(1.5, 2.5, x)
    >>> round(y.item(), 8), round(y.backward()[x].item(), 8)
    (3.76845165, 2.71545333)
    """
    return _of_parameters("hyp1f1", "hyp1f1", {"a": a, "b": b}, x, order=0)


def hyp2f1(a: Numbers, b: Numbers, c: Numbers, z: Operand[B], /) -> Tensor[B]:
    """Gauss's hypergeometric function 2F1, DLMF 15.2.1, of real z. Shapes broadcast.

    >>> import adjoint as ad
    >>> round(ad.grad(lambda z: ad.special.hyp2f1(1.0, 1.0, 2.0, z))(0.5).item(), 8)  # of -log(1 - z) / z
    1.22741128
    """
    return _of_parameters("hyp2f1", "hyp2f1", {"a": a, "b": b, "c": c}, z, order=0)


def struve(v: Numbers, x: Operand[B], /) -> Tensor[B]:
    """Struve's function H of real order v, DLMF 11.2.1; nan for negative x, unless v is whole.

    Derivatives go to x. Raises TrackedError where one by v is asked for.

    >>> import adjoint as ad
    >>> x = ad.tensor(2.0, dtype=ad.float64).require_grad()
    >>> y = ad.special.struve(0.5, x)
    >>> round(y.item(), 5), round(y.backward()[x].item(), 5)
    (0.79898, 0.31327)
    """
    return _of_parameters("struve", "struve", {"v": v}, x, order=0, modified=False)


def modstruve(v: Numbers, x: Operand[B], /) -> Tensor[B]:
    """Struve's modified function L of real order v, DLMF 11.2.2; nan for negative x, unless v is whole.

    Derivatives go to x. Raises TrackedError where one by v is asked for.

    >>> import adjoint as ad
    >>> round(ad.special.modstruve(0.5, ad.tensor(2.0)).item(), 5)
    1.5584
    """
    return _of_parameters("struve", "modstruve", {"v": v}, x, order=0, modified=True)


def airy(z: Operand[B], /) -> tuple[Tensor[B], Tensor[B], Tensor[B], Tensor[B]]:
    """Airy's functions of real numbers: Ai, its derivative, Bi, and its derivative, DLMF 9.2.

    >>> import adjoint as ad
    >>> [round(y.item(), 5) for y in ad.special.airy(ad.tensor(1.0))]
    [0.13529, -0.15915, 1.20742, 0.93244]
    """
    a, b, c, d = [one("airy", z, "airy", kind=kind) for kind in range(4)]
    return a, b, c, d


def sici(x: Operand[B], /) -> tuple[Tensor[B], Tensor[B]]:
    """The sine integral, and the cosine integral, DLMF 6.2.9 and 6.2.11: the second one is nan for negative x.

    >>> import adjoint as ad
    >>> [round(y.item(), 5) for y in ad.special.sici(ad.tensor(1.0))]
    [0.94608, 0.3374]
    """
    return one("trigonometric_integral", x, "sici", kind="si"), one("trigonometric_integral", x, "sici", kind="ci")


def shichi(x: Operand[B], /) -> tuple[Tensor[B], Tensor[B]]:
    """The hyperbolic sine integral, and the hyperbolic cosine integral, DLMF 6.2.15 and 6.2.16; for negative x the
    second one is that of -x, as in SciPy.

    >>> import adjoint as ad
    >>> [round(y.item(), 5) for y in ad.special.shichi(ad.tensor(1.0))]
    [1.05725, 0.83787]
    """
    return (
        one("trigonometric_integral", x, "shichi", kind="shi"),
        one("trigonometric_integral", x, "shichi", kind="chi"),
    )


def fresnel(z: Operand[B], /) -> tuple[Tensor[B], Tensor[B]]:
    """Fresnel's integrals S and C, DLMF 7.2.7 and 7.2.8, of real numbers.

    >>> import adjoint as ad
    >>> [round(y.item(), 5) for y in ad.special.fresnel(ad.tensor(1.0))]
    [0.43826, 0.77989]
    """
    return one("fresnel", z, "fresnel", kind="s"), one("fresnel", z, "fresnel", kind="c")


def spence(z: Operand[B], /) -> Tensor[B]:
    """Spence's function, the dilogarithm of 1 - z, DLMF 25.12.2; nan for negative z.

    >>> import adjoint as ad
    >>> ad.special.spence(ad.tensor(1.0)).item(), ad.grad(ad.special.spence)(1.0).item()
    (0.0, -1.0)
    """
    return one("spence", z, "spence", order=0)


def owens_t(h: Operand[B], a: Numbers, /) -> Tensor[B]:
    """Owen's T function: the probability that one normal number is above h, and another between 0 and a times it.

    >>> import adjoint as ad
    >>> round(ad.special.owens_t(ad.tensor(0.5), 0.8).item(), 5)
    0.09262
    """
    return run("owens_t", reals("owens_t", h, a))  # type: ignore[no-any-return]


def erfi(x: Operand[B], /) -> Tensor[B]:
    """The imaginary error function, -i erf(i x), of real numbers; infinite beyond 26.6.

    >>> import adjoint as ad
    >>> round(ad.special.erfi(ad.tensor(1.0)).item(), 5)
    1.65043
    """
    return one("erfi", x, "erfi")


def exprel(x: Operand[B], /) -> Tensor[B]:
    """(exp(x) - 1) / x, which is 1 at 0; derivatives of any order are right there, too.

    >>> import adjoint as ad
    >>> ad.special.exprel(ad.tensor(0.0)).item(), ad.grad(ad.special.exprel)(0.0).item()
    (1.0, 0.5)
    """
    return one("exponential_mean", x, "exprel", order=0, symmetric=False)


def wrightomega(z: Operand[B], /) -> Tensor[B]:
    """Wright's omega function, w + log(w) = z: `lambertw` of exp(z), which does not overflow.

    >>> import adjoint as ad
    >>> ad.special.wrightomega(ad.tensor(1.0)).item()
    1.0
    """
    return one("wrightomega", z, "wrightomega", order=0)
