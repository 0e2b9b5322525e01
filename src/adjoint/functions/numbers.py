"""Numbers by their digits and by their divisors."""

from __future__ import annotations

from typing import Any

from adjoint import dtypes, errors
from adjoint.functions.arguments import inexact
from adjoint.functions.elementwise import Numbers, elementwise_primitive
from adjoint.operands import cast, operand, run
from adjoint.tensor import Operand, Tensor
from adjoint.variables import B


def ldexp(x: Operand[B], exponent: Any, /) -> Tensor[B]:
    """x times two to the power of integers; exact, also where that power overflows.

    Raises DtypeError for other exponents than integers, or complex x.
    """
    first = x if isinstance(x, Tensor) or not isinstance(exponent, Tensor) else operand(x, exponent, "ldexp")
    x = inexact(first, "ldexp")
    exponent = operand(exponent, x, "ldexp")
    if x.dtype.kind == "c" or exponent.dtype.kind not in "iu":
        raise errors.DtypeError(f"ldexp: expected a real x and integers, received {x.dtype} and {exponent.dtype}")
    return run("ldexp", (x, cast(exponent, dtypes.int64)))  # type: ignore[no-any-return]


def frexp(x: Operand[B], /) -> tuple[Tensor[B], Tensor[B]]:
    """The mantissa m, with 1/2 <= |m| < 1, and the exponent e (int32) of x = m 2^e.

    Zeros, infinities and nan are themselves, with an exponent of 0. Raises DtypeError for complex x.

    >>> import adjoint as ad
    >>> mantissa, exponent = ad.frexp(ad.tensor([6.0, 0.25]))
    >>> mantissa.tolist(), exponent.tolist()
    ([0.75, 0.5], [3, -1])
    """
    x = inexact(x, "frexp")
    if x.dtype.kind == "c":
        raise errors.DtypeError(f"frexp: expected real numbers, received {x.dtype}; take abs, real or imag")
    return run("mantissa", (x,)), run("binary_exponent", (x,))


@elementwise_primitive
def gcd(x: Operand[B], y: Numbers, /) -> Tensor[B]:
    """The greatest common divisor of integers, never negative; 0 for two zeros. Raises DtypeError for other numbers.

    >>> import adjoint as ad
    >>> ad.gcd(ad.tensor([12, -4, 0]), 18).tolist()
    [6, 2, 18]
    """
    ...


@elementwise_primitive
def lcm(x: Operand[B], y: Numbers, /) -> Tensor[B]:
    """The least common multiple of integers, never negative; 0 if one is 0. Raises DtypeError for other numbers.

    >>> import adjoint as ad
    >>> ad.lcm(ad.tensor([4, -6, 0]), 6).tolist()
    [12, 6, 0]
    """
    ...
