"""Functions of single elements that the standard lacks, or has for fewer dtypes."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from adjoint.backend import Array
from adjoint.backends import complex_numbers, special
from adjoint.primitives import DType

if TYPE_CHECKING:
    from adjoint.backends.array_api import ArrayAPI


def _kind(xp: Any, x: Array, kind: str) -> bool:
    return xp.isdtype(x.dtype, kind)  # type: ignore[no-any-return]


def as_arrays(xp: Any, *operands: Array) -> list[Array]:
    """Operands as arrays; Python scalars take the dtype of the first array."""
    python = (bool, int, float, complex)  # not what only inherits from these, such as NumPy's numbers, which are arrays
    dtype = next(x.dtype for x in operands if x.__class__ not in python)
    return [xp.asarray(x, dtype=dtype) if x.__class__ in python else x for x in operands]


def _truth(xp: Any, x: Array) -> Array:
    if isinstance(x, (int, float, complex)):
        return bool(x)
    return x if x.dtype == xp.bool else x != 0


def _logical(name: str) -> Callable[..., Array]:
    """A logical function, which the standard has for bools alone."""

    def run(xp: Any, *operands: Array) -> Array:
        return getattr(xp, name)(*[_truth(xp, x) for x in operands])

    return run


def real(xp: Any, x: Array) -> Array:
    return xp.real(x) if _kind(xp, x, "complex floating") else x


def _imag(xp: Any, x: Array) -> Array:
    return xp.imag(x) if _kind(xp, x, "complex floating") else xp.zeros_like(x)


def _conj(xp: Any, x: Array) -> Array:
    return xp.conj(x) if _kind(xp, x, "complex floating") else x


def where(xp: Any, condition: Array, x: Array, y: Array) -> Array:
    return xp.where(condition, *as_arrays(xp, x, y))


def _clip(xp: Any, x: Array, low: Array, high: Array) -> Array:
    x, low, high = as_arrays(xp, x, low, high)
    return xp.minimum(xp.maximum(x, low), high)


def _absorbing_multiply(xp: Any, x: Array, y: Array) -> Array:
    x, y = as_arrays(xp, x, y)
    zero = xp.zeros((), dtype=x.dtype)
    return xp.where(y == 0, zero, x) * xp.where(x == 0, zero, y)


def floor_divide(xp: Any, x: Array, y: Array) -> Array:
    """Many libraries follow Python beside infinities (inf // 2 is nan), the standard follows the quotient."""
    x, y = as_arrays(xp, x, y)
    out = xp.floor_divide(x, y)
    if not _kind(xp, out, "real floating"):
        return out
    return xp.where(xp.logical_or(xp.isinf(x), xp.isinf(y)), xp.divide(x, y), out)


def _log1p(xp: Any, x: Array) -> Array:
    """As NumPy, libraries lose the real part of small complex numbers."""
    out = xp.log1p(x)
    if not _kind(xp, x, "complex floating"):
        return out
    size = complex_numbers.log1p_size(xp, xp.real(x), xp.imag(x))
    return xp.where(xp.abs(x) < 0.5, (out - xp.real(out)) - -size, out)  # a sum would lose the sign of -0 beside it


def _expit(xp: Any, x: Array) -> Array:
    if _kind(xp, x, "complex floating"):
        return 1.0 / (1.0 + xp.exp(-x))
    t = xp.exp(-xp.abs(x))  # never overflows
    return xp.where(x >= 0.0, xp.ones_like(t), t) / (1.0 + t)


def _cbrt(xp: Any, x: Array) -> Array:
    """The power by a third, which is rounded, and a step of Newton's."""
    size = xp.abs(x)
    none = (size == 0.0) | ~xp.isfinite(size)
    safe = xp.where(none, xp.ones_like(size), size)
    root = safe ** (1 / 3)
    root = root - (root - safe / (root * root)) / 3.0
    return xp.copysign(xp.where(none, size, root), x)


def astype(B: ArrayAPI, x: Array, *, dtype: DType) -> Array:
    if dtype.kind == "b":
        return _truth(B.xp, x)
    return B.xp.astype(x if dtype.kind == "c" else real(B.xp, x), B.dtype(dtype))


def _binary_exponent(xp: Any, x: Array) -> Array:
    """The logarithm says it up to one; numbers that are too small for that are made larger first."""
    size = xp.abs(x)
    none = (size == 0.0) | ~xp.isfinite(size)
    size = xp.where(none, xp.ones_like(size), size)
    small = size < 2.0**-100
    size = xp.where(small, size, xp.zeros_like(size)) * 2.0**64 * 2.0**64 + xp.where(small, xp.zeros_like(size), size)
    power = xp.floor(xp.log2(size)) + 1.0
    mantissa = size * 0.5 ** (power // 2.0) * 0.5 ** (power - power // 2.0)
    power = power + xp.astype(mantissa >= 1.0, x.dtype) - xp.astype(mantissa < 0.5, x.dtype)
    power = xp.where(small, power - 128.0, power)
    return xp.astype(xp.where(none, xp.zeros_like(power), power), xp.int32)


# called with the namespace
IMPLEMENTATIONS: dict[str, Callable[..., Any]] = {
    "logical_not": _logical("logical_not"),
    "logical_and": _logical("logical_and"),
    "logical_or": _logical("logical_or"),
    "logical_xor": _logical("logical_xor"),
    "real": real,
    "imag": _imag,
    "conj": _conj,
    "where": where,
    "clip": _clip,
    "floor_divide": floor_divide,
    "absorbing_multiply": _absorbing_multiply,
    "cbrt": _cbrt,
    "log1p": _log1p,
    "expit": _expit,
    "binary_exponent": _binary_exponent,
    "erf": special.erf,
    **special.KERNELS,
    "relu": lambda xp, x: xp.maximum(x, 0),
    "softplus": lambda xp, x: xp.logaddexp(x, 0.0),
    "relu_pullback": lambda xp, g, out: xp.where(out <= 0, xp.zeros_like(out), g),
}

# called with the backend, for its dtypes
TYPED: dict[str, Callable[..., Any]] = {
    "astype": astype,
}
