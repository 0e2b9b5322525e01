"""Elementwise functions made of others: choices, interpolation, comparisons up to a tolerance."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, TypeVar

import numpy as np

from adjoint import dtypes, errors
from adjoint.backend import Backend
from adjoint.functions.arguments import as_flag, as_number, as_tensor, as_tensors, inexact
from adjoint.functions.creation import made
from adjoint.functions.elementwise import where
from adjoint.functions.reductions import all as every
from adjoint.operands import cast, operand, run
from adjoint.primitives import TABLE
from adjoint.tensor import Tensor

B = TypeVar("B", bound=Backend)


def _together(values: Sequence[Any], name: str) -> list[Tensor[Any]]:
    """Tensors of one floating dtype."""
    return [inexact(x, name) for x in as_tensors(values, name)]


# --- choices ---


def select(conditions: Sequence[Any], choices: Sequence[Any], default: Any = 0, /) -> Tensor[Any]:
    """For each element that of the first choice whose condition holds, the default where none does.

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
    *values, out = as_tensors([*choices, default], "select")
    for condition, value in zip(reversed(conditions), reversed(values), strict=True):
        out = where(operand(condition, out, "select"), value, out)
    return out


def piecewise(x: Tensor[B], conditions: Sequence[Any], functions: Sequence[Any], /, *args: Any) -> Tensor[B]:
    """Functions of x, each where its condition holds; where several do the last one counts.

    A function may be a number. One more function than conditions is for where none holds, else zero. Each is called
    with all of x, and then its values are chosen: where a function is not finite outside its piece, its gradient there
    may be nan, which `Autodiff(strong_zero=True)` prevents. The result has the dtype of x. Raises ArgumentError for
    another number of functions.

    >>> import adjoint as ad
    >>> x = ad.tensor([-2.0, 3.0])
    >>> ad.piecewise(x, [x < 0, x >= 0], [lambda t: -t, lambda t: 10 * t]).tolist()
    [2.0, 30.0]
    """
    x = as_tensor(x, "piecewise")
    for given in (conditions, functions):
        if not isinstance(given, (list, tuple)):
            raise errors.ArgumentTypeError(
                f"piecewise: conditions and functions are in lists, received {errors.shown(given)}"
            )
    conditions, functions = list(conditions), list(functions)
    if len(functions) - len(conditions) not in (0, 1):
        raise errors.ArgumentError(f"piecewise: {len(functions)} functions for {len(conditions)} conditions")
    values = [f(x, *args) if callable(f) else f for f in functions]
    out = values.pop() if len(values) > len(conditions) else 0
    out = run("broadcast_to", (_cast(out, x),), shape=x.shape)
    for condition, value in zip(conditions, values, strict=True):
        out = where(operand(condition, x, "piecewise"), _cast(value, x), out)
    return out


def _cast(value: Any, x: Tensor[Any]) -> Tensor[Any]:
    return cast(operand(value, x, "piecewise"), x.dtype)


# --- arithmetic ---


def lerp(x: Tensor[B], y: Any, weight: Any, /) -> Tensor[B]:
    """x + weight (y - x): x at weight 0, y at weight 1. Operands broadcast; gradients flow to all.

    >>> import adjoint as ad
    >>> ad.lerp(ad.tensor([0.0, 10.0]), ad.tensor([4.0, 20.0]), 0.25).tolist()
    [1.0, 12.5]
    """
    x, y, weight = _together([x, y, weight], "lerp")
    return x + weight * (y - x)  # type: ignore[no-any-return]


def fmod(x: Any, y: Any, /) -> Any:
    """The remainder of x / y with the sign of x: x - trunc(x / y) y, without its rounding errors.

    `remainder` has the sign of y. The gradient is 1 for x and minus trunc(x / y) for y.
    """
    x, y = as_tensors([x, y], "fmod")
    TABLE["fmod"].promoted(x.dtype)
    return run("fmod", (x, y))


def ldexp(x: Tensor[B], exponent: Any, /) -> Tensor[B]:
    """x times two to the power of integers; exact, also where that power overflows.

    Raises DtypeError for other exponents than integers, or complex x.
    """
    first = x if isinstance(x, Tensor) or not isinstance(exponent, Tensor) else operand(x, exponent, "ldexp")
    x = inexact(first, "ldexp")
    exponent = operand(exponent, x, "ldexp")
    if x.dtype.kind == "c" or exponent.dtype.kind not in "iu":
        raise errors.DtypeError(f"ldexp: expected a real x and integers, received {x.dtype} and {exponent.dtype}")
    return run("ldexp", (x, cast(exponent, dtypes.int64)))  # type: ignore[no-any-return]


def frexp(x: Tensor[B], /) -> tuple[Tensor[B], Tensor[B]]:
    """A mantissa of a size from a half to less than one, and the power of two (int32) that it is to be multiplied with.

    Zeros, infinities and nan are themselves, with an exponent of 0. Raises DtypeError for complex x.

    >>> import adjoint as ad
    >>> mantissa, exponent = ad.frexp(ad.tensor([6.0, 0.25]))
    >>> mantissa.tolist(), exponent.tolist()
    ([0.75, 0.5], [3, -1])
    """
    x = inexact(x, "frexp")
    if x.dtype.kind == "c":
        raise errors.DtypeError(f"frexp: expected real numbers, received {x.dtype}")
    return run("mantissa", (x,)), run("binary_exponent", (x,))


def exp2(x: Tensor[B], /) -> Tensor[B]:
    """Two to the power of x."""
    return 2.0 ** inexact(x, "exp2")


def angle(z: Tensor[B], /) -> Tensor[B]:
    """The angle of complex numbers, from -pi to pi: 0 or pi for real ones, to which no gradient flows."""
    z = inexact(z, "angle")
    if z.dtype.kind == "c":
        return run("atan2", (z.imag, z.real))  # type: ignore[no-any-return]
    return run("atan2", (made(z.device, "full", shape=(), value=0, dtype=z.dtype), z))  # type: ignore[no-any-return]


def fmax(x: Any, y: Any, /) -> Any:
    """The larger of two elements, of which a nan does not count; ties share the gradient.

    >>> import adjoint as ad
    >>> ad.fmax(ad.tensor([1.0, ad.nan]), 2.0).tolist()
    [2.0, 2.0]
    """
    return _beside_nan("maximum", "fmax", x, y)


def fmin(x: Any, y: Any, /) -> Any:
    """The smaller of two elements, of which a nan does not count; ties share the gradient."""
    return _beside_nan("minimum", "fmin", x, y)


def _beside_nan(primitive: str, name: str, x: Any, y: Any) -> Any:
    x, y = as_tensors([x, y], name)
    if x.dtype.kind in "bc":
        raise errors.DtypeError(f"{name}: expected real numbers, received {x.dtype}")
    if x.dtype.kind != "f":
        return run(primitive, (x, y))
    return run(primitive, (where(x != x, y, x), where(y != y, x, y)))


def deg2rad(x: Tensor[B], /) -> Tensor[B]:
    """Degrees as radians."""
    return inexact(x, "deg2rad") * (math.pi / 180)


def rad2deg(x: Tensor[B], /) -> Tensor[B]:
    """Radians as degrees."""
    return inexact(x, "rad2deg") * (180 / math.pi)


def heaviside(x: Tensor[B], h0: Any, /) -> Tensor[B]:
    """0 for negative x, 1 for positive, and h0 at zero, to which the gradient flows there."""
    x, h0 = _together([x, h0], "heaviside")
    if x.dtype.kind == "c":
        raise errors.DtypeError(f"heaviside: expected real numbers, received {x.dtype}")
    return where(x == 0, h0, run("maximum", (run("sign", (x,)), 0.0)))


def nan_to_num(x: Tensor[B], /, *, nan: float = 0.0, posinf: float | None = None, neginf: float | None = None) -> Any:
    """Numbers in the place of nan and of the infinities: the largest of the dtype if None. No gradient goes there.

    >>> import adjoint as ad
    >>> ad.nan_to_num(ad.tensor([1.0, ad.nan, ad.inf]), posinf=9.0).tolist()
    [1.0, 0.0, 9.0]
    """
    x = as_tensor(x, "nan_to_num")
    if x.dtype.kind == "c":
        parts = [nan_to_num(part, nan=nan, posinf=posinf, neginf=neginf) for part in (x.real, x.imag)]
        real, imag = (cast(part, x.dtype) for part in parts)
        return real + imag * 1j
    if x.dtype.kind != "f":
        return x + 0 if x.dtype.kind in "iu" else x
    top = float(np.finfo(x.dtype).max)
    chosen = (nan, top if posinf is None else posinf, -top if neginf is None else neginf)
    values = [as_number(v, "nan_to_num", "a value") for v in chosen]
    out = where(x != x, values[0], x)
    return where(x == math.inf, values[1], where(x == -math.inf, values[2], out))


# --- comparisons ---


def isclose(x: Tensor[B], y: Any, /, *, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False) -> Tensor[B]:
    """Whether |x - y| <= atol + rtol |y|, or both are the same infinity, or with `equal_nan` both nan."""
    x, y = _together([x, y], "isclose")
    rtol, atol = (as_number(v, "isclose", "a tolerance") for v in (rtol, atol))
    finite = run("isfinite", (y,))
    close = (abs(x - y) <= atol + rtol * abs(y)) & finite | (x == y)
    return close | ((x != x) & (y != y)) if as_flag(equal_nan, "isclose", "equal_nan") else close  # type: ignore[no-any-return]


def allclose(x: Tensor[B], y: Any, /, *, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False) -> Tensor[B]:
    """Whether all elements are close: a 0-d boolean. As `isclose`."""
    return every(isclose(x, y, rtol=rtol, atol=atol, equal_nan=equal_nan))


def array_equal(x: Tensor[B], y: Any, /, *, equal_nan: bool = False) -> Tensor[B]:
    """Whether shapes and all elements are equal: a 0-d boolean."""
    x, y = as_tensors([x, y], "array_equal")
    if x.shape != y.shape:
        return operand(False, x, "array_equal")
    equal = x == y
    return every(equal | ((x != x) & (y != y)) if as_flag(equal_nan, "array_equal", "equal_nan") else equal)
