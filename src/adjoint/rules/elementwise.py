"""Derivatives of elementwise primitives.

Conventions at singular points are PyTorch's; docs/conventions.md lists them. Formulas are those of
any table of derivatives, e.g. Abramowitz and Stegun, Handbook of Mathematical Functions (1964),
chapters 4 and 7.
"""

from __future__ import annotations

import cmath
import math
from typing import Any

from adjoint.dtypes import FLOATING, INEXACT, finfo
from adjoint.primitives import INDEX
from adjoint.primitives.sizes import LATER
from adjoint.rules.records import Bilinear, Composed, Custom, Elementwise, Linear, NotDifferentiable, Record
from adjoint.rules.taylor import leibniz, quotient


def _scalar(x: Any) -> bool:
    return isinstance(x, (int, float, complex))


def constant(B: Any, name: str, value: complex, like: Any) -> Any:
    """A primitive at a number, as precise as the backend is: a constant of it."""
    return getattr(B, name)(B.full(shape=(), value=value, dtype=B.dtype_of(like)))


def pi(B: Any, like: Any) -> Any:
    return B.multiply(constant(B, "atan", 1.0, like), 4.0)


def _zero(B: Any, g: Any) -> Any:
    """Zero times `g`, but zero also where `g` is not finite."""
    return B.full(shape=tuple(g.shape), value=0, dtype=B.dtype_of(g))


def _pow_x(B: Any, g: Any, x: Any, y: Any) -> Any:
    """y * x ** (y - 1), and 0 for y = 0 also where x has no reciprocal, there at any order."""
    y = _of_later(B, y, x)
    if _scalar(y):
        return _zero(B, g) if y == 0 else B.multiply(g, B.multiply(B.pow(x, y - 1), y))
    size = B.abs(x)
    invertible = B.logical_and(B.isfinite(size), B.greater_equal(size, finfo(B.dtype_of(x)).tiny.item()))
    flat = B.logical_and(B.equal(y, 0), B.logical_not(invertible))
    slope = B.multiply(y, B.pow(x, B.subtract(B.where(flat, 1.0, y), 1.0)))
    return B.multiply(g, B.where(flat, 0.0, slope))


def _pow_y(B: Any, g: Any, x: Any, y: Any, out: Any) -> Any:
    """x ** y * log(x), and 0 for x = 0 with y >= 0, where x ** y is flat."""
    x = _of_later(B, x, y)
    if _scalar(x):
        if x == 0:
            exponent = _real(B, y)
            if B.dtype_of(g).kind != "c":  # as of arrays, at any order
                return B.multiply(g, B.multiply(out, B.where(B.greater_equal(exponent, 0), 0.0, _poles(B, out))))
            pole = _poles(B, g)
            below = B.where(B.less(exponent, 0), pole, math.nan)
            return B.multiply(g, B.where(B.greater_equal(exponent, 0), 0.0, below))
        return B.multiply(g, B.multiply(out, _log(B, x, y)))
    flat = B.logical_and(B.equal(x, 0), B.greater_equal(_real(B, y), 0))
    slope = B.multiply(out, B.log(B.where(flat, 1.0, x)))
    return B.multiply(g, B.where(flat, 0.0, slope))


def _poles(B: Any, like: Any) -> Any:
    return B.full(shape=(), value=-math.inf, dtype=B.dtype_of(like))


def _of_later(B: Any, x: Any, like: Any) -> Any:
    """A number that stands for others as an array, so that nobody asks how it compares."""
    return B.full(shape=(), value=x, dtype=B.dtype_of(like)) if x.__class__ in LATER else x


def _log(B: Any, x: complex, like: Any) -> Any:
    """The logarithm of a scalar; among real numbers, negative ones have none."""
    if B.leaf.digits is not None:
        return constant(B, "log", x, like)
    if B.dtype_of(like).kind == "c":
        return cmath.log(x)
    return math.log(x) if not isinstance(x, complex) and x > 0 else math.nan


def _real(B: Any, y: Any) -> Any:
    return B.real(y) if B.dtype_of(y).kind == "c" else y


def _share(B: Any, g: Any, mine: Any, other: Any, better: Any) -> Any:
    """None of `g` where the other one is better, half where they tie, all elsewhere, also beside a nan."""
    return B.where(better(other, mine), 0.0, B.where(B.equal(mine, other), B.multiply(g, 0.5), g))


def safe_divide(B: Any, x: Any, size: Any) -> Any:
    """x / size, and 0 where the size is 0: masked twice, so that all further derivatives are 0 there too."""
    origin = B.equal(size, 0.0)
    return B.where(origin, 0.0, B.divide(x, B.where(origin, 1.0, size)))


def _abs(B: Any, g: Any, x: Any, out: Any) -> Any:
    """sign(x); for complex x the real-linear pullback conj(x) / |x|."""
    if B.dtype_of(x).kind != "c":
        return B.multiply(g, B.sign(x))
    return B.multiply(B.astype(g, dtype=B.dtype_of(x)), _turn(B, x, out))


def _turn(B: Any, x: Any, out: Any) -> Any:
    """conj(x) / |x|, of numbers at most 1, where 1 / |x| and its derivatives leave the range."""
    return safe_divide(B, B.conj(x), B.astype(out, dtype=B.dtype_of(x)))


def _abs_forward(B: Any, tangents: Any, x: Any, out: Any) -> Any:
    """sign(x) times the tangent; for complex x the part of it along x."""
    (t,) = tangents
    if B.dtype_of(x).kind != "c":
        return B.multiply(t, B.sign(x))
    return B.real(B.multiply(_turn(B, x, out), t))


def _copysign(B: Any, g: Any, x: Any, out: Any) -> Any:
    """1 where x keeps its sign and -1 where it turns, also beside infinities; 0 at 0, as for abs."""
    turned = B.not_equal(B.signbit(x), B.signbit(out))
    return B.where(B.equal(x, 0), 0.0, B.where(turned, B.negative(g), g))


def _astype(B: Any, g: Any, x_dtype: Any) -> Any:
    """The transpose casts back; to a real dtype only the real part carries."""
    if x_dtype.kind not in INEXACT:
        return None
    if x_dtype.kind in FLOATING and B.dtype_of(g).kind == "c":
        g = B.real(g)
    return B.astype(g, dtype=x_dtype)


def _times_i(B: Any, g: Any, factor: complex, x_dtype: Any) -> Any:
    g = B.astype(g, dtype=x_dtype)
    return B.multiply(g, factor) if x_dtype.kind == "c" else None


def _imag(B: Any, g: Any, x_dtype: Any) -> Any:
    return _times_i(B, g, -1j, x_dtype)


def _between(B: Any, x: Any, low: Any, high: Any) -> Any:
    return B.logical_and(B.greater_equal(x, low), B.less_equal(x, high))


def _above(B: Any, x: Any, low: Any, high: Any) -> Any:
    """Where clip gives the upper bound and nothing else: there is no room between the bounds, or x is above."""
    crossed = B.logical_and(B.greater_equal(low, high), B.logical_not(_between(B, x, low, high)))
    return B.logical_or(B.greater(x, high), crossed)


def _bounded(B: Any, x: Any) -> Any:
    """x where exp(-x^2) is not 0 in any dtype, so that its products with powers of x are 0 elsewhere and not nan."""
    return B.clip(x, -1e4, 1e4)


def gauss(B: Any, g: Any, x: Any) -> Any:
    """g times 2 exp(-x^2) / sqrt(pi), DLMF 7.10.1."""
    x = _bounded(B, x)
    return B.multiply(g, B.divide(B.exp(B.negative(B.square(x))), B.multiply(B.sqrt(pi(B, x)), 0.5)))


def _falling(B: Any, slope: Any, g: Any, x: Any, far: Any) -> Any:
    """A slope times g, and 0 where x is far, at infinity: there quotients of infinities would be nan."""
    return B.where(far, 0.0, slope(g, B.where(far, 2.0, x)))


def _atan(B: Any, g: Any, x: Any) -> Any:
    """g / (x^2 + 1), of real x as two quotients by a length: no square overflows, also in further derivatives."""
    if B.dtype_of(x).kind == "c":
        return B.divide(g, B.add(B.square(x), 1.0))

    def slope(g: Any, x: Any) -> Any:
        size = B.hypot(x, 1.0)
        return B.divide(B.divide(g, size), size)

    return _falling(B, slope, g, x, B.isinf(x))


def _asinh(B: Any, g: Any, x: Any) -> Any:
    """g / sqrt(x^2 + 1), of real x without overflow."""
    if B.dtype_of(x).kind == "c":
        return B.divide(g, _root(B, B.multiply(x, 1j)))
    return _falling(B, lambda g, x: B.divide(g, B.hypot(x, 1.0)), g, x, B.isinf(x))


def _acosh(B: Any, g: Any, x: Any) -> Any:
    def slope(g: Any, x: Any) -> Any:
        return B.divide(B.divide(g, B.sqrt(B.subtract(x, 1.0))), B.sqrt(B.add(x, 1.0)))  # also where x is 1

    return slope(g, x) if B.dtype_of(x).kind == "c" else _falling(B, slope, g, x, B.equal(x, math.inf))


def _root(B: Any, x: Any) -> Any:
    """sqrt(1 - x^2), of complex x as a product, which does not overflow."""
    if B.dtype_of(x).kind == "c":
        return B.multiply(B.sqrt(B.subtract(1.0, x)), B.sqrt(B.add(x, 1.0)))
    return B.sqrt(_one_minus_square(B, x))


def _one_minus_square(B: Any, x: Any) -> Any:
    """1 - x^2. A product keeps its digits near 1 and -1; the difference has the better derivative near 0, and there."""
    size, product = B.abs(x), B.multiply(B.subtract(1.0, x), B.add(x, 1.0))
    near = B.logical_and(B.greater(size, 0.5), B.not_equal(size, 1.0))
    return B.where(near, product, B.subtract(1.0, B.square(x)))


def _half_normal(B: Any, x: Any) -> Any:
    """The standard normal distribution's density."""
    x = _bounded(B, x)
    return B.divide(B.exp(B.multiply(B.square(x), -0.5)), B.sqrt(B.multiply(pi(B, x), 2.0)))


def _normal_cdf(B: Any, x: Any) -> Any:
    return B.multiply(B.add(B.erf(B.multiply(x, constant(B, "sqrt", 0.5, x))), 1.0), 0.5)


def _expit_taylor(B: Any, terms: Any, out: Any) -> Any:
    """y' = y z x' with z = expit(-x), which is 1 - y: the coefficients of z are those of y with the other sign."""
    x, k = terms[0], len(out)
    if not k:
        return B.expit(x[0])
    rest = [B.expit(B.negative(x[0])), *[None if y is None else B.negative(y) for y in out[1:]]]
    slope = [leibniz(B, B.multiply, out.__getitem__, rest.__getitem__, m, range(m + 1)) for m in range(k)]
    return leibniz(B, B.multiply, slope.__getitem__, lambda m: x[m + 1], k - 1, range(k))


def _silu_pullback(B: Any, g: Any, x: Any) -> Any:
    rest = B.multiply(_bounded(B, x), B.expit(B.negative(x)))  # 1 - expit(x) would lose its digits
    return B.multiply(g, B.multiply(B.expit(x), B.add(rest, 1.0)))


def _gelu_pullback(B: Any, g: Any, x: Any) -> Any:
    return B.multiply(g, B.add(_normal_cdf(B, x), B.multiply(_bounded(B, x), _half_normal(B, x))))


def _hardswish(B: Any, x: Any) -> Any:
    """x times x / 6 + 1 / 2 between 0 and 1, of infinite x too."""
    inside = B.divide(B.multiply(x, B.add(x, 3.0)), 6.0)
    return B.where(B.less_equal(x, -3), 0.0, B.where(B.greater_equal(x, 3), x, inside))


def _hardswish_slope(B: Any, x: Any) -> Any:
    """Of the part that x is in alone: the others are infinite where x is."""
    inside = B.add(B.divide(x, 3.0), 0.5)
    return B.where(B.less_equal(x, -3), 0.0, B.where(B.greater_equal(x, 3), 1.0, inside))


def _softshrink(B: Any, x: Any, bound: float) -> Any:
    inside = B.where(B.less(x, -bound), B.add(x, bound), B.multiply(x, 0.0))
    return B.where(B.greater(x, bound), B.subtract(x, bound), inside)


def _elu(B: Any, x: Any, alpha: float, rate: float) -> Any:
    """x where it is positive, else alpha (exp(rate x) - 1)."""
    above = B.greater(x, 0)
    below = B.where(above, 0.0, x)  # no overflow where it is not taken
    below = B.expm1(below if rate == 1 else B.multiply(below, rate))
    return B.where(above, x, below if alpha == 1 else B.multiply(below, alpha))


def _huber(B: Any, x: Any, delta: float) -> Any:
    """x^2 / 2 up to |x| = delta, and delta (|x| - delta / 2) beyond."""
    size = B.abs(x)
    beyond = B.multiply(B.subtract(size, 0.5 * delta), delta)
    return B.where(B.less(size, delta), B.multiply(B.square(x), 0.5), beyond)


def _logistic_loss(B: Any, x: Any, target: Any) -> Any:
    """(1 - target) x + log(1 + exp(-x)) for x > 0, and -target x + log(1 + exp(x)) else: no large terms cancel."""
    positive = B.greater(x, 0)
    rest = B.softplus(B.where(positive, B.negative(x), x))
    factor = B.where(positive, B.subtract(1.0, target), B.negative(target))
    return B.add(B.absorbing_multiply(factor, x), rest)


def _sign(B: Any, g: Any, x: Any, out: Any) -> Any:
    """0, but x / |x| of complex x turns: (g - conj(out) Re(g out)) / |x|, and 0 at the origin."""
    dtype = B.dtype_of(x)
    if dtype.kind != "c":
        return _zero(B, g)
    radial = B.multiply(B.conj(out), B.astype(B.real(B.multiply(g, out)), dtype=dtype))
    return safe_divide(B, B.subtract(g, radial), B.astype(B.abs(x), dtype=dtype))


def _sign_forward(B: Any, tangents: Any, x: Any, out: Any) -> Any:
    """0; of complex x the part of the tangent that turns it, over |x|."""
    (t,) = tangents
    dtype = B.dtype_of(x)
    if dtype.kind != "c":
        return _zero(B, t)
    radial = B.multiply(out, B.astype(B.real(B.multiply(B.conj(out), t)), dtype=dtype))
    return safe_divide(B, B.subtract(t, radial), B.astype(B.abs(x), dtype=dtype))


_none = NotDifferentiable()
_flat = Elementwise(x=_zero)
_flat_both = Elementwise(x=_zero, y=_zero)


def _fmod_definition(B: Any, x: Any, y: Any) -> Any:
    """The remainder of the sizes is exact."""
    size = B.remainder(B.abs(x) if hasattr(x, "shape") else abs(x), B.abs(y) if hasattr(y, "shape") else abs(y))
    return B.where(B.less(x, 0), B.negative(size), size) if hasattr(x, "shape") else B.negative(size) if x < 0 else size


def _ldexp_definition(B: Any, x: Any, exponent: Any) -> Any:
    """In two steps, since the power may be beyond what the product is."""
    half = B.floor_divide(exponent, 2)
    for part in (half, B.subtract(exponent, half)):
        x = B.multiply(x, B.pow(2.0, B.astype(part, dtype=B.dtype_of(x))))
    return x


def _gcd_definition(B: Any, x: Any, y: Any) -> Any:
    """Euclid's algorithm, with as many steps as numbers of this size can need: Fibonacci numbers do."""
    dtype = B.dtype_of(x if hasattr(x, "shape") else y)
    x, y = (B.abs(v) if hasattr(v, "shape") else B.full(shape=(), value=abs(v), dtype=dtype) for v in (x, y))
    for _ in range(int(1.45 * 8 * dtype.itemsize) + 2):
        done = B.equal(y, 0)
        x, y = B.where(done, x, y), B.where(done, y, B.remainder(x, B.where(done, 1, y)))
    return x


def _lcm_definition(B: Any, x: Any, y: Any) -> Any:
    common = B.gcd(x, y)
    parts = B.floor_divide(x, B.where(B.equal(common, 0), 1, common))
    return B.abs(B.multiply(parts, y))


def _unscaled(B: Any, g: Any, x: Any) -> Any:
    return B.ldexp(g, B.negative(B.astype(B.binary_exponent(x), dtype=INDEX)))


RECORDS: dict[str, Record] = {
    # linear
    "negative": Linear(x=lambda B, g: B.negative(g)),
    "add": Linear(x=lambda B, g: g, y=lambda B, g: g),
    "subtract": Linear(x=lambda B, g: g, y=lambda B, g: B.negative(g)),
    "where": Linear(
        x=lambda B, g, condition: B.where(condition, g, 0.0),
        y=lambda B, g, condition: B.where(condition, 0.0, g),
    ),
    "astype": Linear(x=_astype),
    "real": Linear(x=lambda B, g, x_dtype: B.astype(g, dtype=x_dtype)),
    "imag": Linear(x=_imag),
    "conj": Linear(x=lambda B, g: B.conj(g)),
    # bilinear
    "multiply": Bilinear(x=lambda B, g, y: B.multiply(g, y), y=lambda B, g, x: B.multiply(g, x)),
    "absorbing_multiply": Bilinear(
        x=lambda B, g, y: B.absorbing_multiply(g, y),
        y=lambda B, g, x: B.absorbing_multiply(g, x),
        strong_zero=True,
    ),
    # arithmetic
    "divide": Elementwise(
        x=lambda B, g, y: B.divide(g, y),
        y=lambda B, g, y, out: B.negative(B.divide(B.multiply(g, out), y)),
        taylor=lambda B, terms, out: quotient(B, B.multiply, B.divide, terms[0], terms[1], out),
    ),
    "remainder": Elementwise(x=lambda B, g: g, y=lambda B, g, x, y: B.negative(B.multiply(g, B.floor_divide(x, y)))),
    "pow": Elementwise(x=_pow_x, y=_pow_y),
    "square": Elementwise(x=lambda B, g, x: B.multiply(B.multiply(g, x), 2.0)),
    "sqrt": Elementwise(x=lambda B, g, out: B.divide(B.multiply(g, 0.5), out)),
    "cbrt": Elementwise(x=lambda B, g, out: B.divide(B.divide(g, out), B.multiply(out, 3.0))),
    "abs": Elementwise(x=_abs, pushforward=_abs_forward),  # g is real, tangents need not be
    "maximum": Elementwise(
        x=lambda B, g, x, y: _share(B, g, x, y, B.greater), y=lambda B, g, x, y: _share(B, g, y, x, B.greater)
    ),
    "minimum": Elementwise(
        x=lambda B, g, x, y: _share(B, g, x, y, B.less), y=lambda B, g, x, y: _share(B, g, y, x, B.less)
    ),
    "copysign": Elementwise(x=_copysign, y=lambda B, g: _zero(B, g)),
    "nextafter": Elementwise(x=lambda B, g: g, y=lambda B, g: _zero(B, g)),
    "clip": Elementwise(
        x=lambda B, g, x, low, high: B.where(_between(B, x, low, high), g, 0.0),
        low=lambda B, g, x, low, high: B.where(B.logical_and(B.less(x, low), B.less(low, high)), g, 0.0),
        high=lambda B, g, x, low, high: B.where(_above(B, x, low, high), g, 0.0),
    ),
    # exponentials and logarithms
    "exp": Elementwise(x=lambda B, g, out: B.multiply(g, out)),
    "expm1": Elementwise(x=lambda B, g, x: B.multiply(g, B.exp(x))),  # exp(x) is small where the result rounds to -1
    "log": Elementwise(x=lambda B, g, x: B.divide(g, x)),
    "log1p": Elementwise(x=lambda B, g, x: B.divide(g, B.add(x, 1.0))),
    "log2": Elementwise(x=lambda B, g, x: B.divide(g, B.multiply(x, constant(B, "log", 2.0, x)))),
    "log10": Elementwise(x=lambda B, g, x: B.divide(g, B.multiply(x, constant(B, "log", 10.0, x)))),
    "logaddexp": Elementwise(
        x=lambda B, g, x, y: B.multiply(g, B.expit(_difference(B, x, y))),
        y=lambda B, g, x, y: B.multiply(g, B.expit(_difference(B, y, x))),
    ),
    # trigonometric and hyperbolic
    "sin": Elementwise(x=lambda B, g, x: B.multiply(g, B.cos(x))),
    "cos": Elementwise(x=lambda B, g, x: B.negative(B.multiply(g, B.sin(x)))),
    "tan": Elementwise(x=lambda B, g, out: B.multiply(g, B.add(B.square(out), 1.0))),
    "asin": Elementwise(x=lambda B, g, x: B.divide(g, _root(B, x))),
    "acos": Elementwise(x=lambda B, g, x: B.negative(B.divide(g, _root(B, x)))),
    "atan": Elementwise(x=_atan),
    "atan2": Elementwise(
        x=lambda B, g, x, y: B.multiply(g, _atan2_slope(B, y, x)),
        y=lambda B, g, x, y: B.negative(B.multiply(g, _atan2_slope(B, x, y))),
    ),
    "hypot": Elementwise(
        x=lambda B, g, x, out: B.multiply(g, safe_divide(B, x, out)),
        y=lambda B, g, y, out: B.multiply(g, safe_divide(B, y, out)),
    ),
    "sinh": Elementwise(x=lambda B, g, x: B.multiply(g, B.cosh(x))),
    "cosh": Elementwise(x=lambda B, g, x: B.multiply(g, B.sinh(x))),
    "asinh": Elementwise(x=_asinh),
    "acosh": Elementwise(x=_acosh),
    "atanh": Elementwise(x=lambda B, g, x: B.divide(g, _one_minus_square(B, x))),
    "tanh": Elementwise(x=lambda B, g, out: B.tanh_pullback(g, out)),
    "tanh_pullback": Composed(lambda B, g, y: B.multiply(g, B.subtract(1.0, B.square(y)))),
    # special functions and activations
    "erf": Elementwise(x=gauss),
    "expit": Elementwise(x=lambda B, g, x: B.expit_pullback(g, x), taylor=_expit_taylor),
    # not p (1 - p) of the result p, which is 0 where that rounds to 1
    "expit_pullback": Composed(lambda B, g, x: B.multiply(g, B.multiply(B.expit(x), B.expit(B.negative(x))))),
    "relu": Elementwise(x=lambda B, g, out: B.relu_pullback(g, out)),
    "relu_pullback": Linear(g=lambda B, c, y: B.relu_pullback(c, y)),
    "hardtanh": Composed(
        lambda B, x, low, high: B.where(B.less_equal(x, low), low, B.where(B.greater_equal(x, high), high, x)),
        x=lambda B, g, x, low, high: B.where(B.logical_or(B.less_equal(x, low), B.greater_equal(x, high)), 0.0, g),
    ),
    "leaky_relu": Composed(
        lambda B, x, slope: B.where(B.greater(x, 0), x, B.multiply(x, slope)),
        x=lambda B, g, x, slope: B.where(B.greater(x, 0), g, B.multiply(g, slope)),
    ),
    "softplus": Elementwise(x=lambda B, g, x: B.multiply(g, B.expit(x))),
    "silu": Composed(lambda B, x: B.multiply(x, B.expit(x)), x=lambda B, g, x: B.silu_pullback(g, x)),
    "silu_pullback": Composed(_silu_pullback),
    "gelu": Composed(lambda B, x: B.multiply(x, _normal_cdf(B, x)), x=lambda B, g, x: B.gelu_pullback(g, x)),
    "gelu_pullback": Composed(_gelu_pullback),
    "hardswish": Composed(_hardswish, x=lambda B, g, x: B.multiply(g, _hardswish_slope(B, x))),
    "hinge": Composed(lambda B, x: B.where(B.less(x, 0), 0.0, x)),
    "softshrink": Composed(_softshrink),
    "elu": Composed(_elu),
    "huber": Composed(  # no product of a zero with the square of what is infinite
        _huber, x=lambda B, g, x, delta: B.multiply(g, B.hardtanh(x, low=-delta, high=delta))
    ),
    "logistic_loss": Composed(_logistic_loss),
    # piecewise constant: the derivative is zero wherever there is one
    "sign": Custom(x=_sign, pushforward=_sign_forward),  # real-linear for complex x: no multiple of g
    **dict.fromkeys("floor ceil trunc round".split(), _flat),
    "floor_divide": _flat_both,
    # bools and integers
    **dict.fromkeys(
        "logical_not isnan isinf isfinite signbit equal not_equal less less_equal greater greater_equal logical_and "
        "logical_or logical_xor bitwise_and bitwise_or bitwise_xor bitwise_left_shift bitwise_right_shift "
        "bitwise_invert".split(),
        _none,
    ),
    "fmod": Composed(
        _fmod_definition, x=lambda B, g: g, y=lambda B, g, x, y: B.negative(B.multiply(g, B.trunc(B.divide(x, y))))
    ),
    "ldexp": Composed(_ldexp_definition, x=lambda B, g, exponent: B.ldexp(g, exponent)),
    "mantissa": Composed(lambda B, x: _unscaled(B, x, x), x=_unscaled),
    "binary_exponent": NotDifferentiable(),
    "gcd": NotDifferentiable(_gcd_definition),
    "lcm": NotDifferentiable(_lcm_definition),
}


def _difference(B: Any, x: Any, y: Any) -> Any:
    return B.subtract(x, y)


def _atan2_slope(B: Any, x: Any, y: Any) -> Any:
    """x / (x^2 + y^2), and 0 at the origin, where either may be a Python scalar; no squares, which may be 0 or inf."""
    size = B.hypot(x, y)
    return safe_divide(B, safe_divide(B, x, size), size)
