"""Elementwise primitives on single numbers, with IEEE results where Python would raise.

Python's numbers with `math` and `cmath`, or mpmath's with any number of digits. Each function is the
definition of the primitive of its name; `reference` maps it over arrays.
"""

from __future__ import annotations

import cmath
import math
import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from adjoint import errors
from adjoint.backends.complex_numbers import REPAIRS
from adjoint.backends.reference.exact import special_floats, special_numbers
from adjoint.primitives import DType

Number = Any  # bool, int, and the real and complex numbers of one `Scalars`

# where a function of a real number is infinite: (argument, its value's sign)
_POLES: dict[str, dict[int, int]] = {
    "log": {0: -1},
    "log2": {0: -1},
    "log10": {0: -1},
    "log1p": {-1: -1},
    "atanh": {1: 1, -1: -1},
}


class Scalars:
    """Real and complex numbers of a precision, and the elementwise primitives on them."""

    complex_type: type[complex]
    inf: Any
    nan: Any
    real_type: type[float]

    def __init__(self, digits: int | None) -> None:
        self._real: Any
        self._complex: Any
        if digits is None:
            self._real, self._complex = math, cmath
            self.real_type, self.complex_type = float, complex
        else:
            self._real = self._complex = _context(digits)
            self.real_type, self.complex_type = self._real.mpf, self._real.mpc
        self.inf, self.nan = self.real_type("inf"), self.real_type("nan")
        self.pi: Any = +self._real.pi  # mpmath's is a constant of no precision of its own
        self.epsilon: Any = self.real_type(2.0**-52) if digits is None else self.real_type(10) ** (1 - digits)
        self.functions: dict[str, Callable[..., Number]] = {
            **{name: self._smooth(name) for name in _SMOOTH},
            **{name: getattr(self, name) for name in _OWN},
            **_PLAIN,
            **(special_floats() if digits is None else special_numbers(self._real)),
        }

    def convert(self, value: Number, dtype: DType) -> Number:
        """A number as one of a dtype's kind: integers wrap, floating numbers are not rounded."""
        match dtype.kind:
            case "b":
                return bool(value)
            case "i" | "u":
                bits = 8 * dtype.itemsize
                offset = 1 << (bits - 1) if dtype.kind == "i" else 0
                return (int(value) + offset) % (1 << bits) - offset
            case "f":
                return self.real_type(value)
        return self.complex_type(value)

    def cast(self, value: Number, dtype: DType) -> Number:
        """`astype`: complex to real takes the real part, real to integer truncates; nan and inf become 0."""
        if dtype.kind in "iuf":
            value = value.real
        if dtype.kind in "iu" and not self.isfinite(value):
            return 0
        return self.convert(value, dtype)

    def order(self, x: Number) -> tuple[Any, ...]:
        """A sort key: nan comes last, complex numbers go by their real parts first."""
        return (1, 0, 0) if self.isnan(x) else (0, x.real, x.imag)

    # --- functions of the libraries ---

    def _smooth(self, name: str) -> Callable[[Number], Number]:
        """A function of `math` and `cmath` or of mpmath, with infinity and nan instead of exceptions."""
        real = getattr(self._real, name, None) or getattr(self, "_" + name)
        other = getattr(self._complex, name, None) or getattr(self, "_" + name, None)
        poles = _POLES.get(name, {})

        def function(x: Number) -> Number:
            if isinstance(x, self.complex_type):
                try:
                    out = other(x)  # type: ignore[misc]
                except (ValueError, OverflowError, ZeroDivisionError):
                    out = self._pole(name, x) if x in poles else self.complex_type(self.nan, self.nan)
                return out if self.isfinite(x) else self._repaired(name, x, out)
            if self.isnan(x):
                return x
            if x in poles:
                return poles[x] * self.inf
            try:
                out = real(x)
            except OverflowError:
                return -self.inf if name == "sinh" and x < 0 else self.inf
            except ValueError:  # outside the domain
                return self.nan
            return self.nan if isinstance(out, self.complex_type) else out

        return function

    def _pole(self, name: str, x: Number) -> Number:
        """Where a function of a complex number is infinite: all but atanh are logarithms, and keep the angle."""
        size, log = _POLES[name][x.real] * self.inf, self._real.log
        if name == "atanh":
            return self.complex_type(size, x.imag)
        angle = self._real.atan2(x.imag, 1 + x.real if name == "log1p" else x.real)
        return self.complex_type(size, angle / log({"log2": 2, "log10": 10}[name]) if name[3:].isdigit() else angle)

    def _repaired(self, name: str, x: Number, out: Number) -> Number:
        re, im = REPAIRS[name](np, *[np.float64(v) for v in (x.real, x.imag, out.real, out.imag)])
        return self.complex_type(float(re), float(im))

    def _log2(self, x: Number) -> Number:
        out, base = self._complex.log(x), self._real.log(2)
        return out / base if isinstance(out, self.real_type) else self.complex_type(out.real / base, out.imag / base)

    # what cmath lacks, by parts

    def _log1p(self, x: complex) -> complex:
        a, b = x.real, x.imag
        size = math.log1p(a * (2 + a) + b * b) / 2 if abs(x) < 0.5 else cmath.log(1 + x).real
        return complex(size, math.atan2(b, 1 + a))

    def _expm1(self, x: complex) -> complex:
        a, b = x.real, x.imag
        if not math.isfinite(a):
            return cmath.exp(x) - 1
        return complex(math.expm1(a) * math.cos(b) - 2 * math.sin(b / 2) ** 2 + 0.0, math.exp(a) * math.sin(b))

    # --- rounding and parts ---

    def _whole(self, x: Number, function: Callable[[Number], Number]) -> Number:
        if isinstance(x, self.complex_type):
            return self.complex_type(self._whole(x.real, function), self._whole(x.imag, function))
        if not self.isfinite(x):
            return x
        return self.copysign(self.real_type(function(x)), x) if isinstance(x, self.real_type) else function(x)

    def floor(self, x: Number) -> Number:
        return self._whole(x, self._real.floor)

    def ceil(self, x: Number) -> Number:
        return self._whole(x, self._real.ceil)

    def trunc(self, x: Number) -> Number:
        return self._whole(x, int)

    def round(self, x: Number) -> Number:
        return self._whole(x, getattr(self._real, "nint", round))  # both: halves to even

    def sign(self, x: Number) -> Number:
        if isinstance(x, self.complex_type):
            if self.isnan(x):
                return self.complex_type(self.nan, self.nan)
            return self.complex_type(x.real / abs(x), x.imag / abs(x)) if x else self.complex_type(0)
        return x if self.isnan(x) else (x > 0) - (x < 0)

    def isnan(self, x: Number) -> bool:
        return any(self._real.isnan(part) for part in (x.real, x.imag))

    def isinf(self, x: Number) -> bool:
        return any(part in (self.inf, -self.inf) for part in (x.real, x.imag))

    def isfinite(self, x: Number) -> bool:
        return not self.isnan(x) and not self.isinf(x)

    # --- arithmetic ---

    def divide(self, x: Number, y: Number) -> Number:
        if y != 0:
            return x / y
        if isinstance(y, self.complex_type):
            return self.complex_type(self.nan, self.nan)
        if x == 0 or self.isnan(x):
            return self.nan
        return self.inf if (x > 0) == (math.copysign(1, y) > 0) else -self.inf

    def floor_divide(self, x: Number, y: Number) -> Number:
        if isinstance(x, int):
            return x // y if y else 0
        if y == 0 or self.isinf(x) or self.isinf(y):
            return self.divide(x, y)
        return x // y if isinstance(x, float) else self.floor(x / y)

    def remainder(self, x: Number, y: Number) -> Number:
        if isinstance(x, int):
            return x % y if y else 0
        return x % y if y != 0 else self.nan

    def pow(self, x: Number, y: Number) -> Number:
        if isinstance(x, int):
            if y < 0:
                raise errors.ArgumentError("pow: integers to negative integer powers are no integers")
            return x**y
        if y == 0 or x == 1:
            return 1
        try:
            out = x**y
        except ZeroDivisionError:  # 0 to a negative power
            out = self.nan if isinstance(x, self.complex_type) else self._huge(x, y, zero=True)
        except OverflowError:
            out = self.nan if isinstance(x, self.complex_type) else self._huge(x, y, zero=False)
        if isinstance(out, self.complex_type) and not isinstance(x, self.complex_type):
            return self.nan  # a root of a negative number
        return out

    def _huge(self, x: Number, y: Number, *, zero: bool) -> Number:
        """Infinity, with the sign of x where y is odd."""
        negative = math.copysign(1, x) < 0 if zero else x < 0
        return -self.inf if negative and y % 2 == 1 else self.inf

    def absorbing_multiply(self, x: Number, y: Number) -> Number:
        return 0 if x == 0 or y == 0 else x * y

    def maximum(self, x: Number, y: Number) -> Number:
        """nan if either is."""
        return x if self.order(x) >= self.order(y) else y

    def minimum(self, x: Number, y: Number) -> Number:
        """nan if either is."""
        if self.isnan(x) or self.isnan(y):
            return x if self.isnan(x) else y
        return x if self.order(x) <= self.order(y) else y

    def clip(self, x: Number, low: Number, high: Number) -> Number:
        return self.minimum(self.maximum(x, low), high)

    def cbrt(self, x: Number) -> Number:
        root = self._real.cbrt(abs(x)) if self.isfinite(x) else abs(x)
        return self.copysign(root, x)

    def gcd(self, x: int, y: int) -> int:
        return math.gcd(x, y)

    def lcm(self, x: int, y: int) -> int:
        return math.lcm(x, y)

    def atan2(self, x: Number, y: Number) -> Number:
        return self._real.atan2(x, y)

    def hypot(self, x: Number, y: Number) -> Number:
        if self.isinf(x) or self.isinf(y):
            return self.inf  # also beside a nan
        return math.hypot(x, y) if self._real is math else self._real.hypot(x, y)

    def signbit(self, x: Number) -> bool:
        return math.copysign(1, x) < 0  # mpmath has no negative zero

    def copysign(self, x: Number, y: Number) -> Number:
        return x if self.signbit(x) == self.signbit(y) else -x

    def logaddexp(self, x: Number, y: Number) -> Number:
        if x == y:
            return x + self._real.log(2)  # also where both are infinite
        return self.maximum(x, y) + self.functions["log1p"](self.functions["exp"](-abs(x - y)))

    def less(self, x: Number, y: Number) -> bool:
        return not (self.isnan(x) or self.isnan(y)) and self.order(x) < self.order(y)

    def less_equal(self, x: Number, y: Number) -> bool:
        return not (self.isnan(x) or self.isnan(y)) and self.order(x) <= self.order(y)

    def greater(self, x: Number, y: Number) -> bool:
        return self.less(y, x)

    def greater_equal(self, x: Number, y: Number) -> bool:
        return self.less_equal(y, x)

    def binary_exponent(self, x: Number) -> int:
        return int(self._real.frexp(x)[1]) if self.isfinite(x) else 0

    # --- activations ---

    def expit(self, x: Number) -> Number:
        return self.divide(1, 1 + self.functions["exp"](-x))

    def relu(self, x: Number) -> Number:
        return self.maximum(x, 0)

    def softplus(self, x: Number) -> Number:
        return self.logaddexp(x, self.real_type(0))

    def silu(self, x: Number) -> Number:
        return x * self.expit(x)

    def gelu(self, x: Number) -> Number:
        return x * self._normal_cdf(x)

    def _normal_cdf(self, x: Number) -> Number:
        return (1 + self.functions["erf"](x / self._real.sqrt(2))) / 2

    def expit_pullback(self, g: Number, x: Number) -> Number:
        return g * self.expit(x) * self.expit(-x)

    def silu_pullback(self, g: Number, x: Number) -> Number:
        s = self.expit(x)
        return g * s * (1 + x * (1 - s))

    def gelu_pullback(self, g: Number, x: Number) -> Number:
        density = self.functions["exp"](-x * x / 2) / self._real.sqrt(2 * self._real.pi)
        return g * (self._normal_cdf(x) + x * density)


# functions of math, cmath and mpmath by their own names
_SMOOTH = (
    "sqrt exp expm1 log log1p log2 log10 sin cos tan asin acos atan sinh cosh tanh asinh acosh atanh erf"
).split()

# methods above
_OWN = (
    "floor ceil trunc round sign isnan isinf isfinite divide floor_divide remainder pow absorbing_multiply maximum "
    "minimum clip cbrt gcd lcm atan2 hypot signbit copysign binary_exponent logaddexp less less_equal greater "
    "greater_equal expit relu softplus silu gelu expit_pullback silu_pullback gelu_pullback"
).split()

# what any numbers can do
_PLAIN: dict[str, Callable[..., Number]] = {
    "negative": operator.neg,
    "square": lambda x: x * x,
    "abs": abs,
    "conj": lambda x: x.conjugate(),
    "real": lambda x: x.real,
    "imag": lambda x: x.imag,
    "add": operator.add,
    "subtract": operator.sub,
    "multiply": operator.mul,
    "bitwise_and": operator.and_,
    "bitwise_or": operator.or_,
    "bitwise_xor": operator.xor,
    "bitwise_invert": lambda x: not x if isinstance(x, bool) else ~x,
    "bitwise_left_shift": operator.lshift,
    "bitwise_right_shift": operator.rshift,
    "equal": operator.eq,
    "not_equal": operator.ne,
    "logical_not": operator.not_,
    "logical_and": lambda x, y: bool(x) and bool(y),
    "logical_or": lambda x, y: bool(x) or bool(y),
    "logical_xor": lambda x, y: bool(x) != bool(y),
    "where": lambda condition, x, y: x if condition else y,
    "tanh_pullback": lambda g, out: g * (1 - out * out),
    "relu_pullback": lambda g, out: 0 * out if out <= 0 else g,
}


def _context(digits: int) -> Any:
    """An mpmath of its own, so that nobody else's precision changes."""
    try:
        import mpmath
    except ModuleNotFoundError:
        raise errors.DeviceError("Reference(digits=...) computes with mpmath: pip install mpmath") from None
    context = mpmath.MPContext()
    context.dps = digits
    return context


def rounded(values: list[Number], dtype: DType) -> np.ndarray[Any, Any]:
    """Numbers as a flat NumPy array of a dtype."""
    plain: list[Any] = values
    if dtype.kind in "fc":
        plain = [complex(v) if dtype.kind == "c" else float(v) for v in values]
    with np.errstate(over="ignore", under="ignore"):
        return np.array(plain, dtype=dtype)
