"""Elementwise primitives on NumPy, fused where that saves a pass."""

from __future__ import annotations

import math
import operator

import numpy as np

from adjoint import errors
from adjoint.backend import Array, Implementation
from adjoint.backends import complex_numbers, special
from adjoint.primitives import DType

_BLOCK = 16384  # elements: a few such blocks stay in a core's second-level cache
_BYTES = 1 << 18  # of each array in a block of many passes


def _in_blocks(kernel: Implementation) -> Implementation:
    """An elementwise kernel of many passes (a polynomial), run block by block to stay in the cache."""

    def run(*arrays: Array) -> Array:
        first = arrays[0]
        step = _BYTES // first.itemsize
        if first.size <= step or not all(
            a.shape == first.shape and (a.ndim == 1 or a.flags.c_contiguous) for a in arrays
        ):
            return kernel(*arrays)
        flat = [a.reshape(-1) for a in arrays]
        out = np.empty(first.size, first.dtype)
        for start in range(0, first.size, step):
            block = slice(start, start + step)
            out[block] = kernel(*[a[block] for a in flat])
        return out.reshape(first.shape)

    return run


def _expit(x: Array) -> Array:
    with np.errstate(over="ignore"):  # exp(-x) may be infinite: its reciprocal is the right zero
        t = np.exp(np.negative(x))
    if t.ndim == 0:
        return 1 / (1 + t)
    np.add(t, 1, out=t)
    return np.divide(1, t, out=t)


def _expm1(x: Array) -> Array:
    """Beside infinite and nan real parts NumPy's makes parts nan that exp makes zero; at -0 the standard has 0."""
    out = np.expm1(x)
    if out.dtype.kind != "c":
        return out
    if not (finite := np.isfinite(x.real)).all():
        out = np.where(finite, out, np.exp(x) - 1)
    out = np.asarray(out)
    real = np.real(out)
    np.add(real, 0.0, out=real)
    return out


def _log1p(x: Array) -> Array:
    """NumPy's loses the real part of small complex numbers."""
    out = np.log1p(x)
    if out.dtype.kind == "c" and (small := np.abs(x) < 0.5).any():
        out = np.asarray(out)
        with np.errstate(all="ignore"):
            np.copyto(np.real(out), complex_numbers.log1p_size(np, np.real(x), np.imag(x)), where=small)
    return out


def _tangent(name: str, at: str, zero: str) -> Implementation:
    """tanh of infinite real parts, tan of imaginary ones: the standard's zero has the sign of the other part."""
    function = getattr(np, name)

    def run(x: Array) -> Array:
        out = function(x)
        if out.dtype.kind != "c" or not (infinite := np.isinf(getattr(x, at))).any():
            return out
        out = np.asarray(out)
        np.copyto(getattr(out, zero), np.copysign(0.0, getattr(x, zero)), where=infinite)
        return out

    return run


def _sign(x: Array) -> Array:
    """NumPy overlooks a nan beside an infinite part."""
    out = np.sign(x)
    if out.dtype.kind != "c" or not (missing := np.isnan(x)).any():
        return out
    return np.where(missing, out.dtype.type(complex(math.nan, math.nan)), out)


def _as_beside(number: int | float, other: Array) -> Array:
    """Python's number in the dtype of floats that it meets, where it may be infinite."""
    if not isinstance(other, np.ndarray | np.generic) or other.dtype.kind != "f" or isinstance(number, np.generic):
        return number
    with np.errstate(over="ignore"):
        return other.dtype.type(number)


def _floor_divide(x: Array, y: Array) -> Array:
    """NumPy follows Python beside infinities (inf // 2 is nan), the standard follows the quotient."""
    if isinstance(y, (int, float)):  # which may be infinite in the dtype of the other
        y = _as_beside(y, x)
    elif isinstance(x, (int, float)):
        x = _as_beside(x, y)
    left, right = np.isinf(x), np.isinf(y)
    if not np.count_nonzero(left) and not np.count_nonzero(right):  # faster than any() on few elements
        return np.floor_divide(x, y)
    quotient = np.divide(x, y)
    with np.errstate(all="ignore"):
        return np.where(np.logical_or(left, right), quotient, np.floor_divide(x, y))


def _pow(x: Array, y: Array) -> Array:
    """NumPy takes the square root for exponents 0.5 that broadcast, which differs from the power at -0 and -inf.

    Cubes and their like are products, within two units in the last place: powers of negative numbers take NumPy 60 ns.
    """
    dtype: DType = getattr(x, "dtype", np.dtype(bool))  # of Python's numbers none
    is_wide = dtype.kind == "f" and dtype.itemsize >= 4
    exponent = y.item() if is_wide and isinstance(y, np.ndarray) and not y.ndim and y.dtype == dtype else y
    if is_wide and exponent.__class__ in (int, float) and exponent in (3, 4, -2):
        base = np.reciprocal(x) if exponent < 0 else x
        square = np.square(base)
        return square if exponent < 0 else square * (x if exponent == 3 else square)
    try:
        out = np.power(x, y)
    except ValueError:
        raise errors.ArgumentError(
            f"pow: integers to negative powers are no integers, received {np.result_type(x)} to the power of "
            f"{errors.shown(y)}; convert one with astype(ad.float64)"
        ) from None
    if out.dtype.kind != "f" or not np.count_nonzero(np.equal(y, 0.5)):
        return out
    rooted = np.logical_and(np.equal(y, 0.5), np.logical_or(np.isneginf(x), np.equal(x, 0)))
    return np.where(rooted, np.abs(x).astype(out.dtype), out) if rooted.any() else out


def _round(x: Array) -> Array:
    return np.rint(x) if x.dtype.kind in "fc" else x  # rint makes integers floats


@_in_blocks
def _softplus(x: Array) -> Array:
    """np.logaddexp takes 50 ns for an element, these passes 2."""
    if x.dtype.itemsize < 4 or x.ndim == 0:  # rounded once, which counts in half precision
        return np.logaddexp(x, x.dtype.type(0))
    t = np.abs(x)
    np.negative(t, out=t)
    np.exp(t, out=t)
    np.log1p(t, out=t)
    return np.add(t, np.maximum(x, 0), out=t)


def _tanh_pullback(g: Array, out: Array) -> Array:
    t = np.square(out)
    if t.ndim == 0 or g.shape != t.shape:
        return g * (1 - t)
    np.subtract(1, t, out=t)
    return np.multiply(t, g, out=t)


@_in_blocks
def _expit_pullback(g: Array, x: Array) -> Array:
    """g over exp(x) + 2 + exp(-x): nothing cancels, and what overflows is the right zero."""
    with np.errstate(over="ignore", divide="ignore"):
        t = np.exp(x)
        if t.ndim == 0 or g.shape != t.shape:
            return g / (t + 2 + 1 / t)
        other = np.divide(1, t)
        np.add(t, 2, out=t)
        np.add(t, other, out=t)
        return np.divide(g, t, out=t)


@_in_blocks
def _relu_pullback(g: Array, out: Array) -> Array:
    return kept(g, np.logical_not(np.less_equal(out, 0)))


def kept(g: Array, mask: Array) -> Array:
    """g where the mask is true, else zero: np.where, but for large arrays by their bits.

    np.where branches for each element, and waits where nobody can tell which way: 16 times as long.
    """
    if g.dtype.kind != "f" or mask.size < 1024:
        return np.where(mask, g, g.dtype.type(0))
    whole = _WHOLE.get(g.dtype.itemsize) or np.dtype(f"i{g.dtype.itemsize}")
    bits = mask.astype(whole)
    np.negative(bits, out=bits)
    return np.bitwise_and(bits, g.view(whole), out=bits if g.shape == bits.shape else None).view(g.dtype)


_WHOLE: dict[int, DType] = {4: np.dtype(np.int32), 8: np.dtype(np.int64)}


def _where(condition: Array, x: Array, y: Array) -> Array:
    """np.where, but by bits where that would wait for branches that nobody can tell: a quarter of the time or less."""
    if condition.__class__ is np.ndarray and condition.size >= 4096 and _one(x, condition) and _one(y, condition):
        left, right = (v[(0,) * v.ndim] if np.ndim(v) else v for v in (x, y))
        pair = np.where((True, False), left, right)  # of the dtype that where gives
        return np.take(pair, np.logical_not(condition).view(np.int8))
    whole = _whole(condition, x, y)
    if whole is None:
        return np.where(condition, x, y)
    dtype = (x if isinstance(x, np.ndarray) else y).dtype
    truth = condition.reshape(-1).view(np.int8)
    bits: list[Array] = [(v.reshape(-1) if np.ndim(v) else np.asarray(v, dtype)).view(whole) for v in (x, y)]
    left, right = bits
    out = np.empty(truth.size, whole)
    for start in range(0, truth.size, _BLOCK):
        block = slice(start, start + _BLOCK)
        mask = np.negative(truth[block], dtype=whole)
        if left.ndim == 0 and not left:
            np.bitwise_and(np.invert(mask, out=mask), right[block], out=out[block])
        elif right.ndim == 0 and not right:
            np.bitwise_and(mask, left[block], out=out[block])
        else:
            first, last = (v[block] if v.ndim else v for v in bits)
            part = np.bitwise_xor(first, last, out=out[block])
            np.bitwise_and(part, mask, out=part)
            np.bitwise_xor(part, last, out=part)
    return out.view(dtype).reshape(condition.shape)


def _one(x: Array, condition: Array) -> bool:
    """Whether it is one number, which may be broadcast to the shape of the condition."""
    return not np.ndim(x) or (x.shape == condition.shape and not any(x.strides))


def _whole(condition: Array, x: Array, y: Array) -> DType | None:
    """The integers of the size of the elements; None where np.where is as good: few elements, or few turns."""
    if condition.__class__ is not np.ndarray or condition.size < 4096 or not condition.flags.c_contiguous:
        return None
    arrays = [v for v in (x, y) if isinstance(v, np.ndarray) and v.ndim]
    if not arrays or any(a.shape != condition.shape or not a.flags.c_contiguous for a in arrays):
        return None
    line = condition.reshape(-1)
    turns = np.count_nonzero(np.not_equal(line[1:], line[:-1]))
    return _WHOLE.get(int(arrays[0].dtype.itemsize)) if turns > line.size // 32 else None


# atanh(erf(x)) / x in single precision as a polynomial in x^2, whose tanh NumPy has in vectors: fitted on [0, 4] to
# values of mpmath so that the largest relative error of erf is least, within 2.5e-7 (a test measures it). Beyond 4,
# where erf rounds to one, it stays above its value there. Those of the normal distribution function,
# (1 + erf(x / sqrt(2))) / 2, are of x / sqrt(2).
_ERF = (
    1.1283792472003698, 0.10276986374282839, -0.00019528659550821915, -0.0006148403941903705, 8.459784911104706e-05,
    -4.794951382391331e-06, 2.7618945466649975e-08, 5.419689901282395e-09,
)  # fmt: skip
_NORMAL = tuple([c * 0.5 ** (k + 0.5) for k, c in enumerate(_ERF)])


def _odd(x: Array, square: Array, coefficients: tuple[float, ...]) -> Array:
    """tanh of x times a polynomial in x^2, of x in single precision."""
    with np.errstate(over="ignore"):  # of what is infinite it is one
        total = np.multiply(square, coefficients[-1])
        for coefficient in coefficients[-2:0:-1]:
            np.add(total, coefficient, out=total)
            np.multiply(total, square, out=total)
        np.add(total, coefficients[0], out=total)
        np.multiply(total, x, out=total)
    return np.tanh(total, out=total)


def _squared(x: Array) -> Array:
    with np.errstate(over="ignore"):
        return np.square(x)


@_in_blocks
def _erf(x: Array) -> Array:
    return _odd(x, _squared(x), _ERF) if x.dtype == np.float32 and x.ndim else special.erf(np, x)


def _normal_cdf(x: Array) -> Array:
    return 0.5 * (1 + special.erf(np, x * math.sqrt(0.5)))


@_in_blocks
def _gelu(x: Array) -> Array:
    if x.dtype != np.float32 or not x.ndim:
        return x * _normal_cdf(x)
    half = _squared(x)
    total = _odd(x, half, _NORMAL)
    np.add(total, 1, out=total)
    np.multiply(x, 0.5, out=half)
    return np.multiply(total, half, out=total)


@_in_blocks
def _gelu_pullback(g: Array, x: Array) -> Array:
    square = _squared(x)
    bounded = x if square.max(initial=0) < np.inf else np.clip(x, -1e4, 1e4)  # not infinity times zero
    if x.dtype != np.float32 or not x.ndim:
        return g * (np.exp(-0.5 * square) * (1 / math.sqrt(2 * math.pi)) * bounded + _normal_cdf(x))
    slope = _odd(x, square, _NORMAL)
    np.multiply(slope, 0.5, out=slope)
    np.add(slope, 0.5, out=slope)
    np.multiply(square, -0.5, out=square)
    np.exp(square, out=square)
    np.multiply(square, 1 / math.sqrt(2 * math.pi), out=square)
    np.multiply(square, bounded, out=square)
    np.add(slope, square, out=slope)
    return np.multiply(slope, g, out=slope) if g.shape == x.shape else slope * g


def _relu(x: Array) -> Array:
    return np.clip(x, 0, np.inf) if x.size > 4096 else np.maximum(x, 0)  # NumPy's clip is the faster loop


def _leaky_relu(x: Array, *, slope: float) -> Array:
    if slope == 0 or not slope <= 1:
        return _where(np.greater(x, 0), x, np.multiply(x, slope))
    return np.maximum(x, np.multiply(x, slope))


def _hardswish(x: Array) -> Array:
    t = np.clip(x, -3, np.inf)  # no infinite one to be multiplied with zero
    factor = np.clip(t + 3, 0, 6)
    factor /= 6
    return np.multiply(t, factor)


def _softshrink(x: Array, *, bound: float) -> Array:
    return np.subtract(x, np.clip(x, -bound, bound))


def _elu(x: Array, *, alpha: float, rate: float) -> Array:
    below = np.expm1(np.minimum(x, 0) if rate == 1 else np.minimum(x, 0) * rate)
    return np.maximum(x, 0) + (below if alpha == 1 else below * alpha)


def _huber(x: Array, *, delta: float) -> Array:
    size = np.abs(x)
    near = np.minimum(size, delta)
    return near * (size - 0.5 * near)


def _logistic_loss(x: Array, target: Array) -> Array:
    """As in the record, where (x > 0) - target is the factor."""
    rest = np.log1p(np.exp(np.negative(np.abs(x))))
    factor = np.subtract(np.greater(x, 0), target, dtype=x.dtype)
    product = np.multiply(factor, x)
    if not np.isfinite(product).all():  # an infinite x of which nothing is lost
        product = _absorbing_multiply(factor, x)
    return product + rest


def _silu(x: Array) -> Array:
    return x * _expit(x)


def _silu_pullback(g: Array, x: Array) -> Array:
    s = _expit(x)
    return g * (s * (1 + np.clip(x, -1e4, 1e4) * (1 - s)))  # not infinity times zero


def _absorbing_multiply(x: Array, y: Array) -> Array:
    with np.errstate(invalid="ignore", over="ignore"):
        product = np.multiply(x, y)
    absorbed = np.logical_or(np.equal(x, 0), np.equal(y, 0))
    return _where(absorbed, product.dtype.type(0), product)


def _astype(x: Array, *, dtype: DType) -> Array:
    if x.dtype.kind == "c" and dtype.kind not in "cb":
        x = x.real
    return x.astype(dtype)


def _add_into(x: Array, y: Array) -> Array:
    if x.__class__ is not np.ndarray or not x.ndim:
        return x + y
    return np.add(x, y, x)  # faster than by name


IMPLEMENTATIONS: dict[str, Implementation] = {
    **{
        name: getattr(np, name)
        for name in (
            "negative floor ceil trunc square sqrt exp log log2 log10 sin cos sinh cosh conj "
            "bitwise_and bitwise_or bitwise_xor bitwise_invert bitwise_left_shift bitwise_right_shift logical_not "
            "isnan isinf isfinite signbit cbrt gcd lcm add subtract multiply divide remainder maximum minimum "
            "logaddexp hypot copysign nextafter "
            "equal not_equal less less_equal greater greater_equal logical_and logical_or logical_xor acos asin atan "
            "acosh asinh atanh atan2 abs"
        ).split()
    },
    "floor_divide": _floor_divide,
    "pow": _pow,
    "round": _round,
    "sign": _sign,
    "expm1": _expm1,
    "log1p": _log1p,
    "tanh": _tangent("tanh", "real", "imag"),
    "tan": _tangent("tan", "imag", "real"),
    "real": np.real,
    "imag": np.imag,
    "expit": _expit,
    "erf": _erf,
    "relu": _relu,
    "hinge": _relu,
    "hardswish": _hardswish,
    "softshrink": _softshrink,
    "elu": _elu,
    "huber": _huber,
    "logistic_loss": _logistic_loss,
    "hardtanh": lambda x, *, low, high: np.clip(x, low, high),
    "leaky_relu": _leaky_relu,
    "softplus": _softplus,
    "silu": _silu,
    "gelu": _gelu,
    "tanh_pullback": _tanh_pullback,
    "expit_pullback": _expit_pullback,
    "relu_pullback": _relu_pullback,
    "silu_pullback": _silu_pullback,
    "gelu_pullback": _gelu_pullback,
    "absorbing_multiply": _absorbing_multiply,
    "where": _where,
    "clip": np.clip,
    "astype": _astype,
    "fmod": np.fmod,
    "ldexp": np.ldexp,
    "mantissa": lambda x: np.frexp(x)[0],
    "binary_exponent": lambda x: np.frexp(x)[1],
}

INTO: dict[str, Implementation] = {"add": _add_into}


def _sqrt_of_number(x: np.float64) -> np.float64:
    return np.float64(math.sqrt(x)) if x >= 0 else np.sqrt(x)  # which tells of what has none


# of numpy.float64s, where a ufunc takes ten times as long
NUMBERS: dict[str, Implementation] = {
    "add": operator.add,
    "subtract": operator.sub,
    "multiply": operator.mul,
    "divide": operator.truediv,
    "negative": operator.neg,
    "square": lambda x: x * x,
    "sqrt": _sqrt_of_number,
    "less": operator.lt,
    "less_equal": operator.le,
    "greater": operator.gt,
    "greater_equal": operator.ge,
    "equal": operator.eq,
    "not_equal": operator.ne,
}
