"""Comparisons, logic and bits."""

from __future__ import annotations

from typing import Any

from adjoint.functions.arguments import as_flag, as_floating, as_number, as_tensors
from adjoint.functions.elementwise import Numbers, elementwise_primitive
from adjoint.functions.reduction import all as every
from adjoint.operands import operand, run
from adjoint.tensor import Operand, Tensor
from adjoint.variables import B


def isclose(x: Operand[B], y: Any, /, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False) -> Tensor[B]:
    """Whether |x - y| <= atol + rtol |y|, or both are the same infinity, or with `equal_nan` both nan."""
    x, y = as_floating([x, y], "isclose")
    rtol, atol = (as_number(v, "isclose", "a tolerance") for v in (rtol, atol))
    finite = run("isfinite", (y,))
    close = (abs(x - y) <= atol + rtol * abs(y)) & finite | (x == y)
    return close | ((x != x) & (y != y)) if as_flag(equal_nan, "isclose", "equal_nan") else close  # type: ignore[no-any-return]


def allclose(x: Operand[B], y: Any, /, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False) -> Tensor[B]:
    """Whether all elements are close: a 0-d boolean. As `isclose`."""
    return every(isclose(x, y, rtol=rtol, atol=atol, equal_nan=equal_nan))


def array_equal(x: Operand[B], y: Any, /, equal_nan: bool = False) -> Tensor[B]:
    """Whether shapes and all elements are equal: a 0-d boolean."""
    x, y = as_tensors([x, y], "array_equal")
    if x.shape != y.shape:
        return operand(False, x, "array_equal")
    equal = x == y
    return every(equal | ((x != x) & (y != y)) if as_flag(equal_nan, "array_equal", "equal_nan") else equal)


@elementwise_primitive
def equal(x: Operand[B], y: Numbers, /) -> Tensor[B]:
    """x == y."""
    ...


@elementwise_primitive
def not_equal(x: Operand[B], y: Numbers, /) -> Tensor[B]:
    """x != y."""
    ...


@elementwise_primitive
def less(x: Operand[B], y: Numbers, /) -> Tensor[B]:
    """x < y."""
    ...


@elementwise_primitive
def less_equal(x: Operand[B], y: Numbers, /) -> Tensor[B]:
    """x <= y."""
    ...


@elementwise_primitive
def greater(x: Operand[B], y: Numbers, /) -> Tensor[B]:
    """x > y."""
    ...


@elementwise_primitive
def greater_equal(x: Operand[B], y: Numbers, /) -> Tensor[B]:
    """x >= y."""
    ...


@elementwise_primitive
def logical_and(x: Operand[B], y: Numbers, /) -> Tensor[B]:
    """Whether both are true."""
    ...


@elementwise_primitive
def logical_or(x: Operand[B], y: Numbers, /) -> Tensor[B]:
    """Whether one or both are true."""
    ...


@elementwise_primitive
def logical_xor(x: Operand[B], y: Numbers, /) -> Tensor[B]:
    """Whether one and only one is true."""
    ...


@elementwise_primitive
def logical_not(x: Operand[B], /) -> Tensor[B]:
    """Whether each element is false."""
    ...


@elementwise_primitive
def isnan(x: Operand[B], /) -> Tensor[B]:
    """Whether each element is nan."""
    ...


@elementwise_primitive
def isinf(x: Operand[B], /) -> Tensor[B]:
    """Whether each element is infinite."""
    ...


@elementwise_primitive
def signbit(x: Operand[B], /) -> Tensor[B]:
    """Whether the sign is minus, which it is for -0 too."""
    ...


@elementwise_primitive
def isfinite(x: Operand[B], /) -> Tensor[B]:
    """Whether each element is neither infinite nor nan."""
    ...


@elementwise_primitive
def bitwise_and(x: Operand[B], y: Numbers, /) -> Tensor[B]:
    """x & y, of integers or booleans."""
    ...


@elementwise_primitive
def bitwise_or(x: Operand[B], y: Numbers, /) -> Tensor[B]:
    """x | y, of integers or booleans."""
    ...


@elementwise_primitive
def bitwise_xor(x: Operand[B], y: Numbers, /) -> Tensor[B]:
    """x ^ y, of integers or booleans."""
    ...


@elementwise_primitive
def bitwise_left_shift(x: Operand[B], y: Numbers, /) -> Tensor[B]:
    """x << y, of integers."""
    ...


@elementwise_primitive
def bitwise_right_shift(x: Operand[B], y: Numbers, /) -> Tensor[B]:
    """x >> y, of integers."""
    ...


@elementwise_primitive
def bitwise_invert(x: Operand[B], /) -> Tensor[B]:
    """~x, of integers or booleans."""
    ...
