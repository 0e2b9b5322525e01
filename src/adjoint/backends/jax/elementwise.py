"""Functions of single elements, also of bits."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from adjoint.backend import Array
from adjoint.backends import complex_numbers
from adjoint.backends.array_api import elementwise
from adjoint.dtypes import FLOATING
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
            return _real(B.jax, name)(x, y)
        none = xp.equal(y, 0)
        out = getattr(xp, name)(x, xp.where(none, xp.ones((), dtype=dtype), y))
        return xp.where(none, xp.zeros((), dtype=dtype), out)

    return run


def _by_name(name: str) -> Callable[..., Array]:
    """A function of jax.numpy's beyond the standard."""
    return lambda B, *operands: getattr(B.xp, name)(*operands)


@functools.cache
def _real(jax: Any, name: str) -> Callable[..., Array]:
    """Of real numbers, with the signs of zeros that the standard has."""
    xp = jax.numpy

    def remainder(x: Array, y: Array) -> Array:
        return xp.copysign(xp.remainder(x, y), y)

    def floor_divide(x: Array, y: Array) -> Array:
        out, quotient = elementwise.floor_divide(xp, x, y), xp.divide(x, y)
        return xp.where(xp.equal(x, 0), quotient, xp.where(xp.equal(out, 0), xp.copysign(out, quotient), out))

    def sign(x: Array) -> Array:
        return xp.where(x == 0, 0.0, xp.sign(x)) if x.dtype.kind in FLOATING else xp.sign(x)

    return jax.jit({"remainder": remainder, "floor_divide": floor_divide, "sign": sign}[name])  # type: ignore[no-any-return]


def _in_complex(name: str) -> Callable[..., Array]:
    """A function whose complex results are repaired where they are not the standard's."""

    def run(B: JAX, x: Array) -> Array:
        if x.dtype.kind == "c":
            return _repaired(B.jax, name)(x)
        return _real(B.jax, name)(x) if name == "sign" else getattr(B.xp, name)(x)

    return run


@functools.cache
def _repaired(jax: Any, name: str) -> Callable[[Array], Array]:
    """Compiled as one, and with JAX's own derivative for those who take it."""
    xp, repair = jax.numpy, complex_numbers.REPAIRS[name]
    native = _HYPERBOLIC[name](jax) if name in _HYPERBOLIC else getattr(xp, name)

    @jax.custom_jvp  # type: ignore[untyped-decorator]
    def repaired(z: Array) -> Array:
        out = native(z)
        re, im = repair(xp, z.real, z.imag, out.real, out.imag)
        return re if name == "abs" else jax.lax.complex(re, im)

    repaired.defjvp(lambda primals, tangents: (repaired(*primals), jax.jvp(native, primals, tangents)[1]))
    return jax.jit(repaired)  # type: ignore[no-any-return]


def _turned(jax: Any, z: Array) -> Array:
    """i z, also where z is infinite."""
    return jax.lax.complex(-z.imag, z.real)


# as circular functions of what is turned: XLA's own lose all digits of small parts
_HYPERBOLIC: dict[str, Callable[[Any], Callable[[Array], Array]]] = {
    "sinh": lambda jax: lambda z: -_turned(jax, jax.numpy.sin(_turned(jax, z))),
    "cosh": lambda jax: lambda z: jax.numpy.cos(_turned(jax, z)),
}


def _expit(B: JAX, x: Array) -> Array:
    return B.jax.lax.logistic(x)


def _erf(B: JAX, x: Array) -> Array:
    return B.jax.lax.erf(x)


def _relu_pullback(B: JAX, g: Array, out: Array) -> Array:
    return B.xp.where(out <= 0, B.xp.zeros((), dtype=out.dtype), g)


def _binary_exponent(B: JAX, x: Array) -> Array:
    """From the bits, because XLA takes subnormal numbers for zeros, and joins factors that overflow together."""
    lax, xp = B.jax.lax, B.xp
    kind, digits, bias = _BITS[x.dtype.kind, x.dtype.itemsize]
    word = lax.bitcast_convert_type(x, kind)
    power = xp.astype((word >> digits) & (2 * bias + 1), xp.int32)
    fraction = word & ((1 << digits) - 1)
    length = 8 * x.dtype.itemsize - xp.astype(lax.clz(fraction), xp.int32)
    out = xp.where(power == 0, length - digits, power) + 1 - bias
    return xp.where((power == 2 * bias + 1) | ((power == 0) & (fraction == 0)), 0, out)


# of a floating dtype: integers of its size, the digits of its fraction, the bias of its exponent
_BITS = {
    ("f", 2): ("uint16", 10, 15),
    ("V", 2): ("uint16", 7, 127),
    ("f", 4): ("uint32", 23, 127),
    ("f", 8): ("uint64", 52, 1023),
}

IMPLEMENTATIONS: dict[str, Callable[..., Any]] = {
    "astype": _astype,
    "replace_where_equal": _of_constants("replace_where_equal"),
    "floor_divide": _whole("floor_divide"),
    "remainder": _whole("remainder"),
    **{name: _in_complex(name) for name in complex_numbers.REPAIRS},
    "binary_exponent": _binary_exponent,
    **{name: _by_name(name) for name in ("cbrt", "gcd", "lcm")},
    "expit": _expit,
    "erf": _erf,
    "relu_pullback": _relu_pullback,
}
