"""Logistic functions and entropies."""

from __future__ import annotations

from typing import Any

from adjoint.functions.arguments import as_tensor, real
from adjoint.functions.creation import astype
from adjoint.functions.elementwise import exp, where
from adjoint.functions.logic import less
from adjoint.operands import run
from adjoint.special.arguments import Numbers, one, reals
from adjoint.tensor import Operand, Tensor
from adjoint.variables import B


def expit(x: Operand[B], /) -> Tensor[B]:
    """The logistic function 1 / (1 + exp(-x)) of real or complex x, without overflow."""
    x = as_tensor(x, "expit")
    return _complex_expit(x) if x.dtype.kind == "c" else one("expit", x, "expit")


def _complex_expit(z: Tensor[Any]) -> Tensor[Any]:
    falling = less(z.real, 0.0)
    power = exp(where(falling, z, -z))
    return where(falling, power, 1.0) / (power + 1.0)


def log_expit(x: Operand[B], /) -> Tensor[B]:
    """The logarithm of `expit`, also where that is 0 or 1 in floating point."""
    return -run("softplus", (-real(x, "log_expit"),))  # type: ignore[no-any-return]


def logit(p: Operand[B], /) -> Tensor[B]:
    """log(p / (1 - p)), the inverse of `expit`; infinite at 0 and 1, nan outside.

    >>> import adjoint as ad
    >>> ad.special.logit(ad.tensor([0.0, 0.5])).tolist()
    [-inf, 0.0]
    """
    return one("logit", p, "logit")


def xlogy(x: Operand[B], y: Numbers, /) -> Tensor[B]:
    """x log(y), and 0 for x = 0 whatever y is.

    The gradient is log(y) and x / y, and 0 to both where the value is 0 by convention: x = 0 with y <= 0 or infinite.

    >>> import adjoint as ad
    >>> ad.special.xlogy(ad.tensor([0.0, 2.0]), ad.tensor([0.0, 1.0])).tolist()
    [0.0, 0.0]
    """
    a, b = reals("xlogy", x, y)
    return _from_above(a, a * run("log", (run("inside_log", (b, a), pole=0.0),)))  # type: ignore[no-any-return]


def _from_above(x: Any, product: Any) -> Any:
    """A product with x, where x is 0 without the sign of the other factor."""
    return product + astype(where(x == 0.0, 0.0, -0.0), product.dtype)


def xlog1py(x: Operand[B], y: Numbers, /) -> Tensor[B]:
    """x log(1 + y), accurate for small y, and 0 for x = 0 whatever y is; the gradient is as for `xlogy`."""
    a, b = reals("xlog1py", x, y)
    return _from_above(a, a * run("log1p", (run("inside_log", (b, a), pole=-1.0),)))  # type: ignore[no-any-return]


def entr(x: Operand[B], /) -> Tensor[B]:
    """-x log(x), 0 at 0 with an infinite derivative, and -inf for negative x."""
    return one("entr", x, "entr")


def rel_entr(x: Operand[B], y: Numbers, /) -> Tensor[B]:
    """x log(x / y); 0 at x = 0 for y >= 0, and infinite elsewhere."""
    return run("rel_entr", reals("rel_entr", x, y))  # type: ignore[no-any-return]


def kl_div(x: Operand[B], y: Numbers, /) -> Tensor[B]:
    """x log(x / y) - x + y, without cancellation where x is near y; y at x = 0, infinite for negative numbers.

    >>> import adjoint as ad
    >>> ad.special.kl_div(ad.tensor(1.0 + 2**-20, dtype=ad.float64), 1.0).item()
    4.547472063262434e-13
    """
    return run("kl_div", reals("kl_div", x, y))  # type: ignore[no-any-return]
