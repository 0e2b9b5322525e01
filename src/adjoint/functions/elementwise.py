"""Elementwise functions. Operands broadcast and promote; integers get the default dtype where values are real."""

from __future__ import annotations

import builtins
import math
import operator
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy as np

from adjoint import dtypes, errors
from adjoint.functions.arguments import as_floating, as_integer, as_number, as_tensor, as_tensors, inexact
from adjoint.functions.creation import made
from adjoint.operands import (
    adapted,
    available_dtype,
    binary,
    cast,
    fitting,
    held,
    is_weak,
    operand,
    run,
    unary_of,
)
from adjoint.operators import assigning, infix
from adjoint.primitives import TABLE
from adjoint.tensor import Number, Operand, Tensor, same
from adjoint.variables import B

F = TypeVar("F", bound=Callable[..., Any])
Numbers = Any  # a tensor, a Python scalar, or a NumPy array


def elementwise_primitive(function: F) -> F:
    """The body of a function that is the elementwise primitive of its name, with promotion."""
    name = function.__name__
    body: Any
    if len(TABLE[name].operands) == 1:
        run_one = unary_of(name)

        def one(x: Any, /) -> Any:
            return run_one(x if x.__class__ is Tensor else as_tensor(x, name))

        body = one
    else:

        def two(x: Any, y: Any, /) -> Any:
            return _of_two(name, x, y)

        body = two
    body.__name__ = body.__qualname__ = name
    body.__doc__, body.__module__ = function.__doc__, function.__module__
    body.__annotations__ = function.__annotations__
    return body  # type: ignore[no-any-return]


def _of_two(name: str, x: Any, y: Any) -> Any:
    if not isinstance(x, Tensor) and not isinstance(y, Tensor):
        if hasattr(y, "dtype") and not hasattr(x, "dtype"):  # numbers take an array's dtype, also in front of it
            y = as_tensor(y, name)
        else:
            x = as_tensor(x, name)
    out = binary(name, x, y)
    if out is NotImplemented:
        other = y if isinstance(x, Tensor) else x
        raise errors.DtypeError(f"{name}: expected a tensor, an array or a number, received {errors.shown(other)}")
    return out


# --- arithmetic ---


@elementwise_primitive
def add(x: Operand[B], y: Numbers, /) -> Tensor[B]:
    """x + y."""
    ...


@elementwise_primitive
def subtract(x: Operand[B], y: Numbers, /) -> Tensor[B]:
    """x - y."""
    ...


@elementwise_primitive
def multiply(x: Operand[B], y: Numbers, /) -> Tensor[B]:
    """x * y."""
    ...


@elementwise_primitive
def divide(x: Operand[B], y: Numbers, /) -> Tensor[B]:
    """x / y; integers give the default dtype."""
    ...


@elementwise_primitive
def floor_divide(x: Operand[B], y: Numbers, /) -> Tensor[B]:
    """The largest integer not above x / y; its derivative is zero."""
    ...


@elementwise_primitive
def remainder(x: Operand[B], y: Numbers, /) -> Tensor[B]:
    """x - floor(x / y) * y, with the sign of y."""
    ...


@elementwise_primitive
def pow(x: Operand[B], y: Numbers, /) -> Tensor[B]:
    """x to the power of y. The derivative of x**0 is 0, also at 0."""
    ...


def _power(x: Tensor[Any], exponent: Any, modulus: Any = None) -> Any:
    if modulus is not None:
        raise errors.ArgumentTypeError("pow: a tensor's power goes without a modulus; write x**n % m")
    if exponent.__class__ in (int, float) and exponent == 2 and x._dtype.kind in dtypes.INEXACT:
        return run("square", (x,))
    return binary("pow", x, exponent)


OPERATORS = {"__pow__": _power, "__rpow__": infix("pow", reflected=True), "__ipow__": assigning("pow")}


@elementwise_primitive
def atan2(x: Operand[B], y: Numbers, /) -> Tensor[B]:
    """The angle of the point (y, x): the arc tangent of x / y in the right quadrant, in radians."""
    ...


@elementwise_primitive
def hypot(x: Operand[B], y: Numbers, /) -> Tensor[B]:
    """The length of the vector (x, y), sqrt(x^2 + y^2) without overflow; the gradient at the origin is 0."""
    ...


@elementwise_primitive
def copysign(x: Operand[B], y: Numbers, /) -> Tensor[B]:
    """The size of x with the sign of y, also of a zero. Its derivative is 0 for y, and for x at 0."""
    ...


@elementwise_primitive
def nextafter(x: Operand[B], y: Numbers, /) -> Tensor[B]:
    """The number next to x towards y among those of the dtype. It moves with x: the derivative is 1, for y it is 0."""
    ...


def logaddexp(x: Operand[B], y: Numbers, /) -> Tensor[B]:
    """log(exp(x) + exp(y)) without overflow.

    Of complex numbers it is that operand with the larger real part, of equal ones x, and the principal logarithm of
    the sum over its exponential.

    >>> import adjoint as ad
    >>> ad.logaddexp(ad.tensor([1000.0]), 1000.0).tolist()
    [1000.6931762695312]
    >>> ad.logaddexp(ad.tensor(1000 + 1j, dtype=ad.complex128), 1000).item().imag
    0.5
    """
    if any([isinstance(v, complex) or getattr(getattr(v, "dtype", None), "kind", None) == "c" for v in (x, y)]):
        return _complex_logaddexp(*as_floating([x, y], "logaddexp"))  # type: ignore[no-any-return]
    return _of_two("logaddexp", x, y)  # type: ignore[no-any-return]


def _complex_logaddexp(x: Tensor[Any], y: Tensor[Any]) -> Any:
    first = run("greater_equal", (x.real, y.real))
    large, less = where(first, x, y), where(first, y, x)
    same = unary_of("isinf")(large.real) & (large.real == less.real)  # whose difference is no number
    power = exp(where(same, 0.0, less) - where(same, 0.0, large))
    return large + where(same, 0.0, log1p(power))


@elementwise_primitive
def maximum(x: Operand[B], y: Numbers, /) -> Tensor[B]:
    """The larger of x and y; ties share the gradient equally."""
    ...


@elementwise_primitive
def minimum(x: Operand[B], y: Numbers, /) -> Tensor[B]:
    """The smaller of x and y; ties share the gradient equally."""
    ...


@elementwise_primitive
def negative(x: Operand[B], /) -> Tensor[B]:
    """-x."""
    ...


def positive(x: Operand[B], /) -> Tensor[B]:
    """+x: the tensor itself."""
    return same(as_tensor(x, "positive"))


def reciprocal(x: Operand[B], /) -> Tensor[B]:
    """1 / x."""
    return binary("divide", 1.0, inexact(x, "reciprocal"))  # type: ignore[no-any-return]


@elementwise_primitive
def abs(x: Operand[B], /) -> Tensor[B]:
    """The absolute value, real also for complex x; its derivative at 0 is 0."""
    ...


@elementwise_primitive
def sign(x: Operand[B], /) -> Tensor[B]:
    """-1, 0 or 1 by the sign of x; x / abs(x) for complex x."""
    ...


@elementwise_primitive
def floor(x: Operand[B], /) -> Tensor[B]:
    """x rounded down; the derivative is zero."""
    ...


@elementwise_primitive
def ceil(x: Operand[B], /) -> Tensor[B]:
    """x rounded up; the derivative is zero."""
    ...


@elementwise_primitive
def trunc(x: Operand[B], /) -> Tensor[B]:
    """x rounded towards zero; the derivative is zero."""
    ...


def round(x: Operand[B], /, decimals: int = 0) -> Tensor[B]:
    """x rounded to a number of decimals (-1: to tens), halves to even; the derivative is zero."""
    x = as_tensor(x, "round")
    if decimals.__class__ is int and not decimals:
        return unary_of("round")(x)
    digits = as_integer(decimals, "round", "decimals")
    whole = x.dtype.kind in "iu"
    if not digits or (whole and digits > 0):
        return unary_of("round")(x)
    if whole:
        return _rounded_to_zeros(x, -digits)
    x = inexact(x, "round")
    largest = float(dtypes.finfo(x.dtype).max)
    scale = 10.0 ** builtins.min(builtins.abs(digits), int(math.log10(largest)))
    if digits < 0:
        return unary_of("round")(x / scale) * scale
    few = run("abs", (x,)) < largest / scale  # the others have no decimals, and would overflow
    return where(few, unary_of("round")(where(few, x, 0.0) * scale) / scale, x.detach())


def _rounded_to_zeros(x: Tensor[Any], zeros: int) -> Tensor[Any]:
    """Integers rounded to so many zeros at their end, exactly."""
    largest = int(np.iinfo(x.dtype).max)
    if zeros > 20 or 10**zeros > largest:  # which has up to 20 digits
        return x.detach() * 0
    scale = 10**zeros
    tens, part = x // scale, x % scale
    up = (part > scale - part) | ((part == scale - part) & (tens % 2 == 1))
    return (tens + cast(up, x.dtype)) * scale  # type: ignore[no-any-return]


@elementwise_primitive
def square(x: Operand[B], /) -> Tensor[B]:
    """x * x."""
    ...


def clip(x: Operand[B], /, min: Numbers = None, max: Numbers = None) -> Tensor[B]:
    """x held between `min` and `max`, either of which may be None.

    The gradient passes at the bounds. Bounds broadcast with x but do not widen its dtype.

    Raises DtypeError for complex x or bounds of a wider dtype, RangeError where a result would not fit in x's.

    >>> import adjoint as ad
    >>> ad.clip(ad.tensor([-1.0, 0.5, 2.0]), 0, 1).tolist()
    [0.0, 0.5, 1.0]
    """
    x = as_tensor(x, "clip", min, max)
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
            if isinstance(bound, float) and x.dtype.kind not in dtypes.FLOATING:
                return clip(inexact(x, "clip"), min, max)
            bounds.append(none if beyond(bound, none) else fitting(bound, x.dtype, "clip"))
        else:
            (_, bound) = as_tensors([x, bound], "clip")
            if bound.dtype is not x.dtype:
                raise errors.DtypeError(
                    f"clip: a bound of {bound.dtype} would widen {x.dtype}; convert one with astype"
                )
            bounds.append(bound)
    return run("clip", (x, *bounds))  # type: ignore[no-any-return]


def where(condition: Operand[B], x: Numbers, y: Numbers, /) -> Tensor[B]:
    """Elements of x where the condition holds, of y elsewhere.

    The three broadcast to the result's shape. The gradient flows to what was chosen. Raises DtypeError unless the
    condition is boolean.

    >>> import adjoint as ad
    >>> x = ad.tensor([-1.0, 2.0])
    >>> ad.where(x > 0, x, 0.0).tolist()
    [0.0, 2.0]
    """
    condition = as_tensor(condition, "where", x, y)
    if condition.dtype is not dtypes.bool:
        raise errors.DtypeError(f"where: the condition must be boolean, received {condition.dtype}; write x != 0")
    if x.__class__ is Number or y.__class__ is Number:
        x, y = adapted([x, y], "where")
    if isinstance(x, Tensor) and is_weak(y):
        x = cast(x, available_dtype(dtypes.promote_scalar(x.dtype, y), [x]))
        y = fitting(y, x.dtype, "where")
    elif isinstance(y, Tensor) and is_weak(x):
        y = cast(y, available_dtype(dtypes.promote_scalar(y.dtype, x), [y]))
        x = fitting(x, y.dtype, "where")
    elif is_weak(x) and is_weak(y):
        x = cast(as_tensors([condition, x], "where")[1], available_dtype(_scalar_dtype(x, y), [condition]))
    else:
        x, y = as_tensors([x, y], "where", condition)
    return run("where", (condition, x, y))  # type: ignore[no-any-return]


def _scalar_dtype(x: complex, y: complex) -> dtypes.DType:
    return dtypes.promote_scalar(dtypes.promote_scalar(dtypes.bool, x), y)


# --- exponentials, logarithms, roots ---


@elementwise_primitive
def sqrt(x: Operand[B], /) -> Tensor[B]:
    """The square root."""
    ...


@elementwise_primitive
def cbrt(x: Operand[B], /) -> Tensor[B]:
    """The cube root, of negative numbers too; its derivative at 0 is infinite.

    >>> import adjoint as ad
    >>> ad.cbrt(ad.tensor([0.125, -8.0])).tolist()
    [0.5, -2.0]
    """
    ...


def rsqrt(x: Operand[B], /) -> Tensor[B]:
    """1 / sqrt(x).

    >>> import adjoint as ad
    >>> ad.rsqrt(ad.tensor([4.0, 0.25])).tolist()
    [0.5, 2.0]
    """
    return binary("divide", 1.0, unary_of("sqrt")(inexact(x, "rsqrt")))  # type: ignore[no-any-return]


@elementwise_primitive
def exp(x: Operand[B], /) -> Tensor[B]:
    """e to the power of x."""
    ...


@elementwise_primitive
def expm1(x: Operand[B], /) -> Tensor[B]:
    """exp(x) - 1, accurate for small x."""
    ...


@elementwise_primitive
def log(x: Operand[B], /) -> Tensor[B]:
    """The natural logarithm."""
    ...


@elementwise_primitive
def log1p(x: Operand[B], /) -> Tensor[B]:
    """log(1 + x), accurate for small x."""
    ...


@elementwise_primitive
def log2(x: Operand[B], /) -> Tensor[B]:
    """The logarithm to base 2."""
    ...


@elementwise_primitive
def log10(x: Operand[B], /) -> Tensor[B]:
    """The logarithm to base 10."""
    ...


# --- trigonometric and hyperbolic; angles in radians ---


@elementwise_primitive
def sin(x: Operand[B], /) -> Tensor[B]:
    """The sine.

    >>> import adjoint as ad
    >>> ad.sin(ad.tensor([0.0])).tolist()
    [0.0]
    """
    ...


@elementwise_primitive
def cos(x: Operand[B], /) -> Tensor[B]:
    """The cosine."""
    ...


@elementwise_primitive
def tan(x: Operand[B], /) -> Tensor[B]:
    """The tangent."""
    ...


@elementwise_primitive
def asin(x: Operand[B], /) -> Tensor[B]:
    """The arc sine."""
    ...


@elementwise_primitive
def acos(x: Operand[B], /) -> Tensor[B]:
    """The arc cosine."""
    ...


@elementwise_primitive
def atan(x: Operand[B], /) -> Tensor[B]:
    """The arc tangent."""
    ...


@elementwise_primitive
def sinh(x: Operand[B], /) -> Tensor[B]:
    """The hyperbolic sine."""
    ...


@elementwise_primitive
def cosh(x: Operand[B], /) -> Tensor[B]:
    """The hyperbolic cosine."""
    ...


@elementwise_primitive
def tanh(x: Operand[B], /) -> Tensor[B]:
    """The hyperbolic tangent."""
    ...


@elementwise_primitive
def asinh(x: Operand[B], /) -> Tensor[B]:
    """The inverse hyperbolic sine."""
    ...


@elementwise_primitive
def acosh(x: Operand[B], /) -> Tensor[B]:
    """The inverse hyperbolic cosine."""
    ...


@elementwise_primitive
def atanh(x: Operand[B], /) -> Tensor[B]:
    """The inverse hyperbolic tangent."""
    ...


# --- complex numbers ---


@elementwise_primitive
def conj(x: Operand[B], /) -> Tensor[B]:
    """The complex conjugate."""
    ...


@elementwise_primitive
def real(x: Operand[B], /) -> Tensor[B]:
    """The real part; real numbers stay as they are."""
    ...


def imag(x: Operand[B], /) -> Tensor[B]:
    """The imaginary part. For real numbers it is zeros of the same dtype, as in NumPy, without a gradient.

    >>> import adjoint as ad
    >>> ad.tensor([1.0, 2.0]).imag.tolist(), ad.tensor([1 + 2j]).imag.tolist()
    ([0.0, 0.0], [2.0])
    """
    x = as_tensor(x, "imag")
    if x.dtype.kind == "c":
        return run("imag", (x,))  # type: ignore[no-any-return]
    return made(x.device, "full", shape=x.shape, value=0, dtype=x.dtype)


# --- from several elements ---


def select(conditions: Sequence[Any], choices: Sequence[Any], /, default: Any = 0) -> Tensor[Any]:
    """For each element the first of the choices whose condition holds, or the default if none does.

    Everything broadcasts, and the gradient flows to what was chosen. Raises ArgumentError unless there are as many
    conditions as choices, at least one, DtypeError for conditions that are not boolean.

    >>> import adjoint as ad
    >>> x = ad.tensor([-2.0, 0.5, 3.0])
    >>> ad.select([x < 0, x > 1], [-x, x * x]).tolist()
    [2.0, 0.0, 9.0]
    """
    for given in (conditions, choices):
        if not isinstance(given, (list, tuple)):
            raise errors.ArgumentTypeError(
                f"select: conditions and choices are lists of tensors, received {errors.shown(given)}"
            )
    if len(conditions) != len(choices) or not len(choices):
        raise errors.ArgumentError(f"select: {len(conditions)} conditions for {len(choices)} choices")
    *values, out = as_tensors([*choices, default], "select", *conditions)
    for condition, value in zip(reversed(conditions), reversed(values), strict=True):
        out = where(operand(condition, out, "select"), value, out)
    return out


def piecewise(x: Operand[B], conditions: Sequence[Any], functions: Sequence[Any], /, *args: Any) -> Tensor[B]:
    """Functions of x, each where its condition holds; where several do the last one counts.

    Each condition broadcasts to x, whose shape the result has. A function may be a number. One more function than
    conditions is for where none holds, else zero. Each is called with all of x, and then its values are chosen: where a
    function is not finite outside its piece, its gradient there may be nan, which `Autodiff(strong_zero=True)`
    prevents. The result has the dtype of x. Raises ArgumentError for another number of functions, DtypeError for values
    that the dtype does not hold, such as floats where x is integers.

    >>> import adjoint as ad
    >>> x = ad.tensor([-2.0, 3.0])
    >>> ad.piecewise(x, [x < 0, x >= 0], [lambda t: -t, lambda t: 10 * t]).tolist()
    [2.0, 30.0]
    """
    for given in (conditions, functions):
        if not isinstance(given, (list, tuple)):
            raise errors.ArgumentTypeError(
                f"piecewise: conditions and functions are in lists, received {errors.shown(given)}"
            )
    x = as_tensor(x, "piecewise", *conditions)
    conditions, functions = list(conditions), list(functions)
    if len(functions) - len(conditions) not in (0, 1):
        raise errors.ArgumentError(f"piecewise: {len(functions)} functions for {len(conditions)} conditions")
    values = [f(x, *args) if callable(f) else f for f in functions]
    out = values.pop() if len(values) > len(conditions) else 0
    out = run("broadcast_to", (held(out, x, "piecewise"),), shape=x.shape)
    for condition, value in zip(conditions, values, strict=True):
        out = where(operand(condition, x, "piecewise"), held(value, x, "piecewise"), out)
    return out


def lerp(x: Operand[B], y: Any, weight: Any, /) -> Tensor[B]:
    """x + weight (y - x): x at weight 0, y at weight 1. Operands broadcast; gradients flow to all.

    >>> import adjoint as ad
    >>> ad.lerp(ad.tensor([0.0, 10.0]), ad.tensor([4.0, 20.0]), 0.25).tolist()
    [1.0, 12.5]
    """
    x, y, weight = as_floating([x, y, weight], "lerp")
    return x + weight * (y - x)  # type: ignore[no-any-return]


def fmod(x: Operand[B], y: Numbers, /) -> Tensor[B]:
    """The remainder of x / y with the sign of x: x - trunc(x / y) y, without its rounding errors.

    `remainder` has the sign of y. The gradient is 1 for x and minus trunc(x / y) for y.
    """
    x, y = as_tensors([x, y], "fmod")
    TABLE["fmod"].promoted(x.dtype)
    return run("fmod", (x, y))  # type: ignore[no-any-return]


def exp2(x: Operand[B], /) -> Tensor[B]:
    """Two to the power of x."""
    return 2.0 ** inexact(x, "exp2")


def angle(z: Operand[B], /) -> Tensor[B]:
    """The angle of complex numbers, from -pi to pi: 0 or pi for real ones, to which no gradient flows."""
    z = inexact(z, "angle")
    if z.dtype.kind == "c":
        return run("atan2", (z.imag, z.real))  # type: ignore[no-any-return]
    return run("atan2", (made(z.device, "full", shape=(), value=0, dtype=z.dtype), z))  # type: ignore[no-any-return]


def fmax(x: Operand[B], y: Numbers, /) -> Tensor[B]:
    """The larger of x and y, where a nan does not count; ties share the gradient.

    >>> import adjoint as ad
    >>> ad.fmax(ad.tensor([1.0, ad.nan]), 2.0).tolist()
    [2.0, 2.0]
    """
    return _beside_nan("maximum", "fmax", x, y)  # type: ignore[no-any-return]


def fmin(x: Operand[B], y: Numbers, /) -> Tensor[B]:
    """The smaller of x and y, where a nan does not count; ties share the gradient."""
    return _beside_nan("minimum", "fmin", x, y)  # type: ignore[no-any-return]


def _beside_nan(primitive: str, name: str, x: Any, y: Any) -> Any:
    x, y = as_tensors([x, y], name)
    if x.dtype.kind in "bc":
        raise errors.DtypeError(f"{name}: expected real numbers, received {x.dtype}; take abs, real or imag")
    if x.dtype.kind not in dtypes.FLOATING:
        return run(primitive, (x, y))
    return run(primitive, (where(x != x, y, x), where(y != y, x, y)))


def deg2rad(x: Operand[B], /) -> Tensor[B]:
    """Degrees as radians."""
    from adjoint.irrational import pi_beside  # few programs need it

    x = inexact(x, "deg2rad")
    return x * (pi_beside(x) / 180)  # type: ignore[no-any-return]


def rad2deg(x: Operand[B], /) -> Tensor[B]:
    """Radians as degrees."""
    from adjoint.irrational import pi_beside  # few programs need it

    x = inexact(x, "rad2deg")
    return x * (180 / pi_beside(x))  # type: ignore[no-any-return]


def heaviside(x: Operand[B], h0: Any, /) -> Tensor[B]:
    """0 for negative x, 1 for positive, and h0 at zero, to which the gradient flows there."""
    x, h0 = as_floating([x, h0], "heaviside")
    if x.dtype.kind == "c":
        raise errors.DtypeError(f"heaviside: expected real numbers, received {x.dtype}; take abs, real or imag")
    return where(x == 0, h0, run("maximum", (run("sign", (x,)), 0.0)))


def nan_to_num(
    x: Operand[B], /, *, nan: float = 0.0, posinf: float | None = None, neginf: float | None = None
) -> Tensor[B]:
    """x with numbers in place of nan and infinities (None: the largest of the dtype). No gradient flows to these.

    >>> import adjoint as ad
    >>> ad.nan_to_num(ad.tensor([1.0, ad.nan, ad.inf]), posinf=9.0).tolist()
    [1.0, 0.0, 9.0]
    """
    x = as_tensor(x, "nan_to_num")
    if x.dtype.kind == "c":
        parts = [nan_to_num(part, nan=nan, posinf=posinf, neginf=neginf) for part in (x.real, x.imag)]
        real, imag = (cast(part, x.dtype) for part in parts)
        return real + imag * 1j
    if x.dtype.kind not in dtypes.FLOATING:
        return x + 0 if x.dtype.kind in "iu" else x
    top = float(dtypes.finfo(x.dtype).max)
    chosen = (nan, top if posinf is None else posinf, -top if neginf is None else neginf)
    values = [as_number(v, "nan_to_num", "a value") for v in chosen]
    out = where(x != x, values[0], x)
    return where(x == math.inf, values[1], where(x == -math.inf, values[2], out))
