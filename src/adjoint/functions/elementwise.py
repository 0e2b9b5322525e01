"""Elementwise functions. Operands broadcast and promote; integers become float32 where values are real."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any, TypeVar

from adjoint import dtypes, errors
from adjoint.backend import Backend
from adjoint.functions.arguments import as_tensor, as_tensors, inexact
from adjoint.operands import assigning, binary, cast, fitting, infix, is_weak, operand, run, unary
from adjoint.primitives import TABLE
from adjoint.tensor import Tensor, same

B = TypeVar("B", bound=Backend)
F = TypeVar("F", bound=Callable[..., Any])
Numbers = Any  # a tensor, a Python scalar, or a NumPy array


def _primitive(function: F) -> F:
    """The body of a function that is the elementwise primitive of its name, with promotion."""
    name = function.__name__

    def one(x: Any, /) -> Any:
        return unary(name, as_tensor(x, name))

    def two(x: Any, y: Any, /) -> Any:
        if not isinstance(x, Tensor) and not isinstance(y, Tensor):
            x = as_tensor(x, name)
        out = binary(name, x, y)
        if out is NotImplemented:
            other = y if isinstance(x, Tensor) else x
            raise errors.DtypeError(f"{name}: expected a tensor, an array or a number, received {errors.shown(other)}")
        return out

    body: Any = one if len(TABLE[name].operands) == 1 else two
    body.__name__ = body.__qualname__ = name
    body.__doc__, body.__module__ = function.__doc__, function.__module__
    body.__annotations__ = function.__annotations__
    return body  # type: ignore[no-any-return]


# --- arithmetic ---


@_primitive
def add(x: Tensor[B], y: Numbers, /) -> Tensor[B]:
    """x + y."""
    ...


@_primitive
def subtract(x: Tensor[B], y: Numbers, /) -> Tensor[B]:
    """x - y."""
    ...


@_primitive
def multiply(x: Tensor[B], y: Numbers, /) -> Tensor[B]:
    """x * y."""
    ...


@_primitive
def divide(x: Tensor[B], y: Numbers, /) -> Tensor[B]:
    """x / y; integers give float32."""
    ...


@_primitive
def floor_divide(x: Tensor[B], y: Numbers, /) -> Tensor[B]:
    """The largest integer not above x / y; its derivative is zero."""
    ...


@_primitive
def remainder(x: Tensor[B], y: Numbers, /) -> Tensor[B]:
    """x - floor(x / y) * y, with the sign of y."""
    ...


@_primitive
def pow(x: Tensor[B], y: Numbers, /) -> Tensor[B]:
    """x to the power of y. The derivative of x**0 is 0, also at 0."""
    ...


def _power(x: Tensor[Any], exponent: Any) -> Any:
    if exponent.__class__ in (int, float) and exponent == 2 and x.dtype.kind in "fc":
        return unary("square", x)
    return binary("pow", x, exponent)


OPERATORS = {"__pow__": _power, "__rpow__": infix("pow", reflected=True), "__ipow__": assigning("pow")}


@_primitive
def atan2(x: Tensor[B], y: Numbers, /) -> Tensor[B]:
    """The angle of the point (y, x): the arc tangent of x / y in the right quadrant, in radians."""
    ...


@_primitive
def hypot(x: Tensor[B], y: Numbers, /) -> Tensor[B]:
    """The length of the vector (x, y), sqrt(x^2 + y^2) without overflow; the gradient at the origin is 0."""
    ...


@_primitive
def copysign(x: Tensor[B], y: Numbers, /) -> Tensor[B]:
    """The size of x with the sign of y, also of a zero. Its derivative is 0 for y, and for x at 0."""
    ...


@_primitive
def nextafter(x: Tensor[B], y: Numbers, /) -> Tensor[B]:
    """The number next to x towards y among those of the dtype. It moves with x: the derivative is 1, for y it is 0."""
    ...


@_primitive
def logaddexp(x: Tensor[B], y: Numbers, /) -> Tensor[B]:
    """log(exp(x) + exp(y)) without overflow."""
    ...


@_primitive
def maximum(x: Tensor[B], y: Numbers, /) -> Tensor[B]:
    """The larger of x and y; ties share the gradient equally."""
    ...


@_primitive
def minimum(x: Tensor[B], y: Numbers, /) -> Tensor[B]:
    """The smaller of x and y; ties share the gradient equally."""
    ...


@_primitive
def negative(x: Tensor[B], /) -> Tensor[B]:
    """-x."""
    ...


def positive(x: Tensor[B], /) -> Tensor[B]:
    """+x: the tensor itself."""
    return same(as_tensor(x, "positive"))


def reciprocal(x: Tensor[B], /) -> Tensor[B]:
    """1 / x."""
    return binary("divide", 1.0, inexact(x, "reciprocal"))  # type: ignore[no-any-return]


@_primitive
def abs(x: Tensor[B], /) -> Tensor[B]:
    """The absolute value, real also for complex x; its derivative at 0 is 0."""
    ...


@_primitive
def sign(x: Tensor[B], /) -> Tensor[B]:
    """-1, 0 or 1 by the sign of x; x / abs(x) for complex x."""
    ...


@_primitive
def floor(x: Tensor[B], /) -> Tensor[B]:
    """Rounded down; the derivative is zero."""
    ...


@_primitive
def ceil(x: Tensor[B], /) -> Tensor[B]:
    """Rounded up; the derivative is zero."""
    ...


@_primitive
def trunc(x: Tensor[B], /) -> Tensor[B]:
    """Rounded towards zero; the derivative is zero."""
    ...


@_primitive
def round(x: Tensor[B], /) -> Tensor[B]:
    """Rounded to the nearest integer, halves to even; the derivative is zero."""
    ...


@_primitive
def square(x: Tensor[B], /) -> Tensor[B]:
    """x * x."""
    ...


def clip(x: Tensor[B], /, min: Numbers = None, max: Numbers = None) -> Tensor[B]:
    """x held between `min` and `max`, either of which may be None.

    The gradient passes at the bounds. Bounds broadcast with x but do not widen its dtype.

    Raises DtypeError for complex x or bounds of a wider dtype, RangeError where a result would not fit in x's.

    >>> import adjoint as ad
    >>> ad.clip(ad.tensor([-1.0, 0.5, 2.0]), 0, 1).tolist()
    [0.0, 0.5, 1.0]
    """
    x = as_tensor(x, "clip")
    TABLE["clip"].promoted(x.dtype)
    if min is None and max is None:
        return same(x)
    info: Any = dtypes.limits(x.dtype)
    bounds = []
    for bound, none, beyond in ((min, info[0], operator.lt), (max, info[1], operator.gt)):
        if bound is None:
            bounds.append(none)
        elif is_weak(bound):
            if isinstance(bound, complex):
                raise errors.DtypeError(f"clip: complex numbers have no order, received the bound {bound}")
            if isinstance(bound, float) and x.dtype.kind != "f":
                return clip(cast(x, dtypes.default_float), min, max)
            bounds.append(none if beyond(bound, none) else fitting(bound, x.dtype, "clip"))
        else:
            (_, bound) = as_tensors([x, bound], "clip")
            if bound.dtype is not x.dtype:
                raise errors.DtypeError(
                    f"clip: a bound of {bound.dtype} would widen {x.dtype}; convert one with astype"
                )
            bounds.append(bound)
    return run("clip", (x, *bounds))  # type: ignore[no-any-return]


def where(condition: Tensor[B], x: Numbers, y: Numbers, /) -> Tensor[B]:
    """Elements of x where the condition holds, of y elsewhere.

    The gradient flows to what was chosen. Raises DtypeError unless the condition is boolean.

    >>> import adjoint as ad
    >>> x = ad.tensor([-1.0, 2.0])
    >>> ad.where(x > 0, x, 0.0).tolist()
    [0.0, 2.0]
    """
    condition = as_tensor(condition, "where")
    if condition.dtype is not dtypes.bool:
        raise errors.DtypeError(f"where: the condition must be boolean, received {condition.dtype}; write x != 0")
    if isinstance(x, Tensor) and is_weak(y):
        x = cast(x, dtypes.promote_scalar(x.dtype, y))
        y = fitting(y, x.dtype, "where")
    elif isinstance(y, Tensor) and is_weak(x):
        y = cast(y, dtypes.promote_scalar(y.dtype, x))
        x = fitting(x, y.dtype, "where")
    elif is_weak(x) and is_weak(y):
        x = cast(as_tensors([condition, x], "where")[1], _scalar_dtype(x, y))
    else:
        x, y = (operand(v, condition, "where") for v in (x, y))
        x, y = as_tensors([x, y], "where")
    return run("where", (condition, x, y))  # type: ignore[no-any-return]


def _scalar_dtype(x: complex, y: complex) -> dtypes.DType:
    return dtypes.promote_scalar(dtypes.promote_scalar(dtypes.bool, x), y)


# --- exponentials, logarithms, roots ---


@_primitive
def sqrt(x: Tensor[B], /) -> Tensor[B]:
    """The square root."""
    ...


@_primitive
def exp(x: Tensor[B], /) -> Tensor[B]:
    """e to the power of x."""
    ...


@_primitive
def expm1(x: Tensor[B], /) -> Tensor[B]:
    """exp(x) - 1, accurate for small x."""
    ...


@_primitive
def log(x: Tensor[B], /) -> Tensor[B]:
    """The natural logarithm."""
    ...


@_primitive
def log1p(x: Tensor[B], /) -> Tensor[B]:
    """log(1 + x), accurate for small x."""
    ...


@_primitive
def log2(x: Tensor[B], /) -> Tensor[B]:
    """The logarithm to base 2."""
    ...


@_primitive
def log10(x: Tensor[B], /) -> Tensor[B]:
    """The logarithm to base 10."""
    ...


# --- trigonometric and hyperbolic; angles in radians ---


@_primitive
def sin(x: Tensor[B], /) -> Tensor[B]:
    """The sine.

    >>> import adjoint as ad
    >>> ad.sin(ad.tensor([0.0])).tolist()
    [0.0]
    """
    ...


@_primitive
def cos(x: Tensor[B], /) -> Tensor[B]:
    """The cosine."""
    ...


@_primitive
def tan(x: Tensor[B], /) -> Tensor[B]:
    """The tangent."""
    ...


@_primitive
def asin(x: Tensor[B], /) -> Tensor[B]:
    """The arc sine."""
    ...


@_primitive
def acos(x: Tensor[B], /) -> Tensor[B]:
    """The arc cosine."""
    ...


@_primitive
def atan(x: Tensor[B], /) -> Tensor[B]:
    """The arc tangent."""
    ...


@_primitive
def sinh(x: Tensor[B], /) -> Tensor[B]:
    """The hyperbolic sine."""
    ...


@_primitive
def cosh(x: Tensor[B], /) -> Tensor[B]:
    """The hyperbolic cosine."""
    ...


@_primitive
def tanh(x: Tensor[B], /) -> Tensor[B]:
    """The hyperbolic tangent."""
    ...


@_primitive
def asinh(x: Tensor[B], /) -> Tensor[B]:
    """The inverse hyperbolic sine."""
    ...


@_primitive
def acosh(x: Tensor[B], /) -> Tensor[B]:
    """The inverse hyperbolic cosine."""
    ...


@_primitive
def atanh(x: Tensor[B], /) -> Tensor[B]:
    """The inverse hyperbolic tangent."""
    ...


# --- complex numbers ---


@_primitive
def conj(x: Tensor[B], /) -> Tensor[B]:
    """The complex conjugate."""
    ...


@_primitive
def real(x: Tensor[B], /) -> Tensor[B]:
    """The real part; of real numbers they themselves."""
    ...


@_primitive
def imag(x: Tensor[B], /) -> Tensor[B]:
    """The imaginary part. Raises DtypeError for a real tensor."""
    ...


# --- comparisons and logic: boolean, without derivatives ---


@_primitive
def equal(x: Tensor[B], y: Numbers, /) -> Tensor[B]:
    """x == y."""
    ...


@_primitive
def not_equal(x: Tensor[B], y: Numbers, /) -> Tensor[B]:
    """x != y."""
    ...


@_primitive
def less(x: Tensor[B], y: Numbers, /) -> Tensor[B]:
    """x < y."""
    ...


@_primitive
def less_equal(x: Tensor[B], y: Numbers, /) -> Tensor[B]:
    """x <= y."""
    ...


@_primitive
def greater(x: Tensor[B], y: Numbers, /) -> Tensor[B]:
    """x > y."""
    ...


@_primitive
def greater_equal(x: Tensor[B], y: Numbers, /) -> Tensor[B]:
    """x >= y."""
    ...


@_primitive
def logical_and(x: Tensor[B], y: Numbers, /) -> Tensor[B]:
    """Whether both are true."""
    ...


@_primitive
def logical_or(x: Tensor[B], y: Numbers, /) -> Tensor[B]:
    """Whether one or both are true."""
    ...


@_primitive
def logical_xor(x: Tensor[B], y: Numbers, /) -> Tensor[B]:
    """Whether one and only one is true."""
    ...


@_primitive
def logical_not(x: Tensor[B], /) -> Tensor[B]:
    """Whether it is false."""
    ...


@_primitive
def isnan(x: Tensor[B], /) -> Tensor[B]:
    """Whether it is not a number."""
    ...


@_primitive
def isinf(x: Tensor[B], /) -> Tensor[B]:
    """Whether it is infinite."""
    ...


@_primitive
def signbit(x: Tensor[B], /) -> Tensor[B]:
    """Whether the sign is minus, which it is for -0 too."""
    ...


@_primitive
def isfinite(x: Tensor[B], /) -> Tensor[B]:
    """Whether it is neither infinite nor nan."""
    ...


@_primitive
def bitwise_and(x: Tensor[B], y: Numbers, /) -> Tensor[B]:
    """x & y, of integers or booleans."""
    ...


@_primitive
def bitwise_or(x: Tensor[B], y: Numbers, /) -> Tensor[B]:
    """x | y, of integers or booleans."""
    ...


@_primitive
def bitwise_xor(x: Tensor[B], y: Numbers, /) -> Tensor[B]:
    """x ^ y, of integers or booleans."""
    ...


@_primitive
def bitwise_left_shift(x: Tensor[B], y: Numbers, /) -> Tensor[B]:
    """x << y, of integers."""
    ...


@_primitive
def bitwise_right_shift(x: Tensor[B], y: Numbers, /) -> Tensor[B]:
    """x >> y, of integers."""
    ...


@_primitive
def bitwise_invert(x: Tensor[B], /) -> Tensor[B]:
    """~x, of integers or booleans."""
    ...
