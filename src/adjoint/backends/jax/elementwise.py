"""Functions of single elements, also of bits."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from adjoint.backend import Array
from adjoint.backends.array_api import elementwise
from adjoint.primitives import DType
from adjoint.rules import RECORDS

if TYPE_CHECKING:
    from adjoint.backends.jax import JAX


def _astype(B: JAX, x: Array, *, dtype: DType) -> Array:
    """Constants keep their values, also while JAX traces."""
    with contextlib.nullcontext() if B.traced(x) else B.jax.ensure_compile_time_eval():
        return elementwise.astype(B, x, dtype=dtype)


def _of_constants(name: str) -> Callable[..., Array]:
    """The definition, whose result has values if the operands have: labels and places stay known."""
    definition: Any = RECORDS[name].definition  # type: ignore[attr-defined]

    def run(B: JAX, *operands: Array, **parameters: Any) -> Array:
        with contextlib.nullcontext() if B.traced(*operands) else B.jax.ensure_compile_time_eval():
            return definition(B, *operands, **parameters)

    return run


def _whole(name: str) -> Callable[..., Array]:
    """Of integers, where what is divided by zero is zero."""

    def run(B: JAX, x: Array, y: Array) -> Array:
        xp = B.xp
        dtype = next(v.dtype for v in (x, y) if hasattr(v, "dtype"))
        if dtype.kind not in "iu":
            return xp.remainder(x, y) if name == "remainder" else elementwise.floor_divide(xp, x, y)
        none = xp.equal(y, 0)
        out = getattr(xp, name)(x, xp.where(none, xp.ones((), dtype=dtype), y))
        return xp.where(none, xp.zeros((), dtype=dtype), out)

    return run


def _by_name(name: str) -> Callable[..., Array]:
    """A function of jax.numpy's beyond the standard."""
    return lambda B, *operands: getattr(B.xp, name)(*operands)


def _expit(B: JAX, x: Array) -> Array:
    return B.jax.lax.logistic(x)


def _erf(B: JAX, x: Array) -> Array:
    return B.jax.lax.erf(x)


def _relu_pullback(B: JAX, g: Array, out: Array) -> Array:
    return B.xp.where(out <= 0, B.xp.zeros((), dtype=out.dtype), g)


def _binary_exponent(B: JAX, x: Array) -> Array:
    """From the bits, because XLA takes subnormal numbers for zeros, and joins factors that overflow together."""
    lax, xp = B.jax.lax, B.xp
    kind, digits, bias = {2: ("uint16", 10, 15), 4: ("uint32", 23, 127), 8: ("uint64", 52, 1023)}[x.dtype.itemsize]
    word = lax.bitcast_convert_type(x, kind)
    power = xp.astype((word >> digits) & (2 * bias + 1), xp.int32)
    fraction = word & ((1 << digits) - 1)
    length = 8 * x.dtype.itemsize - xp.astype(lax.clz(fraction), xp.int32)
    out = xp.where(power == 0, length - digits, power) + 1 - bias
    return xp.where((power == 2 * bias + 1) | ((power == 0) & (fraction == 0)), 0, out)


IMPLEMENTATIONS: dict[str, Callable[..., Any]] = {
    "astype": _astype,
    "replace_where_equal": _of_constants("replace_where_equal"),
    "floor_divide": _whole("floor_divide"),
    "remainder": _whole("remainder"),
    "binary_exponent": _binary_exponent,
    **{name: _by_name(name) for name in ("cbrt", "gcd", "lcm")},
    "expit": _expit,
    "erf": _erf,
    "relu_pullback": _relu_pullback,
}
