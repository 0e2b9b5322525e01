"""Special functions on NumPy: SciPy's, and the kernels of all array libraries, block by block to stay in the cache.

Where a formula is right for most arguments, it runs for all, and the kernel for the elements that it leaves.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from adjoint.backend import Array, Implementation
from adjoint.backends.special import HOSTED, KERNELS
from adjoint.backends.special.common import horner

_BLOCK = 4096  # elements: the kernels hold about ten arrays at a time
_FORMULA_BLOCK = 16384  # the formulas about four


def _on_numpy(kernel: Implementation) -> Implementation:
    def run(*operands: Any, **parameters: Any) -> Array:
        with np.errstate(all="ignore"):  # of branches that are not chosen
            arrays = list(np.broadcast_arrays(*operands)) if len(operands) > 1 else list(operands)
            if arrays[0].size <= 2 * _BLOCK:
                return kernel(np, *operands, **parameters)
            shape, dtype = arrays[0].shape, _dtype(operands)
            flat, out = [x.reshape(-1) for x in arrays], np.empty(arrays[0].size, dtype)
            for start in range(0, out.size, _BLOCK):
                block = slice(start, start + _BLOCK)
                out[block] = kernel(np, *[x[block] for x in flat], **parameters)
            return out.reshape(shape)

    return functools.wraps(kernel)(run)


def _dtype(operands: tuple[Any, ...]) -> Any:
    return next(x.dtype for x in operands if isinstance(x, (np.ndarray, np.generic)))


def _by_formula(name: str, formula: Callable[..., Any], least: float) -> Implementation:
    """The formula of float64 arrays; where an operand is not above the least, or it gives nan or -inf, the kernel."""
    kernel = functools.partial(KERNELS[name], np)

    def run(*operands: Any, **parameters: Any) -> Array:
        dtype = _dtype(operands)
        arrays: list[Array] = [x if isinstance(x, (np.ndarray, np.generic)) else np.asarray(x, dtype) for x in operands]
        if len(arrays) > 1 and any(x.shape != arrays[0].shape for x in arrays):
            arrays = list(np.broadcast_arrays(*arrays))
        shape, flat = arrays[0].shape, [x.reshape(-1) for x in arrays]
        out: Array = np.empty(flat[0].size, dtype)
        if not out.size:
            return out.reshape(shape)
        with np.errstate(all="ignore"):
            for start in range(0, out.size, _FORMULA_BLOCK):
                block = slice(start, start + _FORMULA_BLOCK)
                xs, part = [x[block] for x in flat], out[block]
                if dtype == np.float64:
                    formula(part, *xs)
                else:
                    xs = [x.astype(np.float64) for x in xs]
                    formula(wide := np.empty(part.size), *xs)
                    part[...] = wide
            if not all(np.minimum.reduce(x) > least for x in flat) or not np.minimum.reduce(out) > -math.inf:
                left = np.logical_not(out > -math.inf)
                for x in flat:
                    left |= np.logical_not(x > least)
                out[left] = kernel(*[x[left] for x in flat], **parameters)
        return out.reshape(shape)

    return run


_SIGN = np.int64(-(2**63))


def _log1p_ratio(out: Array, difference: Array) -> None:
    """log1p(|difference| / out) in place of out, with the difference's sign: by bits, copysign goes one by one."""
    np.divide(np.abs(difference), out, out=out)
    np.log1p(out, out=out)
    bits, signs = out.view(np.int64), difference.view(np.int64)
    np.bitwise_or(bits, np.bitwise_and(signs, _SIGN, out=signs), out=bits)


def _rel_entr(out: Array, x: Array, y: Array) -> None:
    """log(x / y) is ±log1p(|x - y| / min(x, y)): no digit is lost, as that ratio is not negative."""
    np.minimum(x, y, out=out)
    _log1p_ratio(out, np.subtract(x, y))
    np.multiply(out, x, out=out)


# atanh(u) = u + u^3 (1/3 + u^2/5 + ...), DLMF 4.38.5
_ATANH = tuple(1.0 / (2 * k + 3) for k in range(12))


def _kl_div(out: Array, x: Array, y: Array) -> None:
    """x log(x / y) - (x - y), and near x = y with u = (x - y) / (x + y): u (x - y) + 2 x (atanh(u) - u)."""
    _rel_entr(out, x, y)
    difference = np.subtract(x, y)
    np.subtract(out, difference, out=out)
    near = np.flatnonzero(out < 0.2 * np.abs(difference))
    if near.size:
        x, y, difference = x[near], y[near], difference[near]
        u = difference / (x + y)
        square = u * u
        tail = horner(_ATANH, square)
        tail *= square
        tail *= x
        tail *= 2.0
        tail += difference
        tail *= u
        out[near] = tail


def _entr(out: Array, x: Array) -> None:
    np.log(x, out=out)
    np.multiply(out, x, out=out)
    np.negative(out, out=out)


def _logit(out: Array, x: Array) -> None:
    """log(x / (1 - x)) = ±log1p(|2 x - 1| / min(x, 1 - x)): no digit is lost."""
    np.subtract(1.0, x, out=out)
    np.minimum(out, x, out=out)
    distance = np.add(x, x)
    np.subtract(distance, 1.0, out=distance)
    _log1p_ratio(out, distance)


# sin(pi r) / (pi r (1 - r^2)) in r^2 on [0, 1]: a minimax polynomial computed with mpmath, within 3e-9
_SINC = (
    0.9999999970553322, -0.6449338547220385, 0.16680587698332563, -0.023932819275094313, 0.0021836312359832014,
    -0.00012283411524128992,
)  # fmt: skip


def _sinc(out: Array, x: Array) -> None:
    """sin(pi x) / (pi x) for single precision, of r = x - 2 n in [-1, 1]."""
    r = np.multiply(x, 0.5)
    np.rint(r, out=r)
    np.multiply(r, -2.0, out=r)
    np.add(r, x, out=r)
    square = np.square(r)
    np.multiply(square, _SINC[-1], out=out)
    for coefficient in _SINC[-2:0:-1]:
        np.add(out, coefficient, out=out)
        np.multiply(out, square, out=out)
    np.add(out, _SINC[0], out=out)
    np.subtract(1.0, square, out=square)
    np.multiply(out, square, out=out)
    np.multiply(out, r, out=out)
    np.divide(out, x, out=out)
    np.add(out, 0.0, out=out)  # no negative zeros


_sinc_of_singles = _by_formula("sinc", _sinc, -math.inf)


def _sinc_or_derivative(x: Array, *, order: int) -> Array:
    if order or x.dtype == np.float64:
        return _sinc_of_doubles(x, order=order)
    return _sinc_of_singles(x, order=order)


_sinc_of_doubles = _on_numpy(KERNELS["sinc"])

IMPLEMENTATIONS: dict[str, Implementation] = {
    **HOSTED,
    **{name: _on_numpy(kernel) for name, kernel in KERNELS.items()},
    "sinc": _sinc_or_derivative,
    "rel_entr": _by_formula("rel_entr", _rel_entr, 0.0),
    "kl_div": _by_formula("kl_div", _kl_div, 0.0),
    "entr": _by_formula("entr", _entr, 0.0),
    "logit": _by_formula("logit", _logit, 0.0),
}
