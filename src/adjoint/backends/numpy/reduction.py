"""Reductions and running totals on NumPy."""

from __future__ import annotations

import numpy as np

from adjoint import errors
from adjoint.backend import Array, Implementation


def _sum(x: Array, *, axis: tuple[int, ...], keepdims: bool) -> Array:
    return np.add.reduce(x, axis=axis, keepdims=keepdims, dtype=x.dtype)  # type: ignore[call-overload]


def _prod(x: Array, *, axis: tuple[int, ...], keepdims: bool) -> Array:
    return np.multiply.reduce(x, axis=axis, keepdims=keepdims, dtype=x.dtype)  # type: ignore[call-overload]


def _cumulative_sum(x: Array, *, axis: int) -> Array:
    return np.cumsum(x, axis=axis, dtype=x.dtype)


def _cumulative_prod(x: Array, *, axis: int) -> Array:
    return np.cumprod(x, axis=axis, dtype=x.dtype)


def _logsumexp(x: Array, *, axis: tuple[int, ...], keepdims: bool) -> Array:
    top = np.maximum.reduce(x, axis=axis, keepdims=True, initial=-np.inf)
    top = np.where(np.isfinite(top), top, x.dtype.type(0))
    with np.errstate(divide="ignore"):  # the logarithm of an empty sum is -inf
        out = np.log(np.add.reduce(np.exp(x - top), axis=axis, keepdims=True)) + top
    return out if keepdims else out.reshape([n for i, n in enumerate(x.shape) if i not in axis])


def _softmax(x: Array, *, axis: int) -> Array:
    t = np.subtract(x, np.maximum.reduce(x, axis=axis, keepdims=True))
    np.exp(t, out=t)
    return np.divide(t, np.add.reduce(t, axis=axis, keepdims=True), out=t)


def _softmax_pullback(g: Array, out: Array, *, axis: int) -> Array:
    t = np.multiply(g, out)
    inner = np.add.reduce(t, axis=axis, keepdims=True)
    np.subtract(g, inner, out=t)
    return np.multiply(t, out, out=t)


def _log_softmax(x: Array, *, axis: int) -> Array:
    t = np.subtract(x, np.maximum.reduce(x, axis=axis, keepdims=True))
    return np.subtract(t, np.log(np.add.reduce(np.exp(t), axis=axis, keepdims=True)), out=t)


def _log_softmax_pullback(g: Array, out: Array, *, axis: int) -> Array:
    t = np.exp(out)
    np.multiply(t, np.add.reduce(g, axis=axis, keepdims=True), out=t)
    return np.subtract(g, t, out=t)


# sums of squares from which on none has lost digits, and none is infinite
_SAFE = {np.dtype(t): (float(np.finfo(t).tiny / np.finfo(t).eps), float(np.finfo(t).max)) for t in ("f4", "f8")}


def _vector_norm(x: Array, *, axis: tuple[int, ...], keepdims: bool) -> Array:
    if x.dtype.kind == "f" and x.dtype.itemsize > 2 and len(axis) == x.ndim > 0 and x.flags.c_contiguous:
        with np.errstate(over="ignore"):
            total = np.dot(line := x.reshape(-1), line)
        least, most = _SAFE[total.dtype]
        out = np.sqrt(total) if least <= total <= most else _scaled_norm(x, axis, False)
        return out.reshape((1,) * x.ndim) if keepdims else out
    with np.errstate(over="ignore"):
        if x.dtype.kind == "f" and x.dtype.itemsize > 2 and axis == (x.ndim - 1,) and x.flags.c_contiguous:
            totals = np.vecdot(x, x)
            totals = totals[..., None] if keepdims else totals
        else:
            squares = np.square(x) if x.dtype.kind != "c" else np.square(x.real) + np.square(x.imag)
            totals = np.add.reduce(squares, axis=axis, keepdims=keepdims)  # type: ignore[call-overload]
    if totals.size and x.dtype.itemsize > 2:
        least, most = _SAFE[totals.dtype]
        ends = totals.reshape(-1).tolist() if totals.size <= 32 else (totals.min(), totals.max())  # the faster way
        if not (least <= min(ends) and max(ends) <= most):
            return _scaled_norm(x, axis, keepdims)
    return np.sqrt(totals)


def _scaled_norm(x: Array, axis: tuple[int, ...], keepdims: bool) -> Array:
    """Of elements over the largest of them, whose squares neither overflow nor vanish."""
    size = np.abs(x)
    top = np.maximum.reduce(size, axis=axis, keepdims=True, initial=0)
    top = np.where(np.isfinite(top) & (top > 0), top, size.dtype.type(1))
    with np.errstate(under="ignore"):
        total = np.add.reduce(np.square(size / top), axis=axis, keepdims=True)
        out = np.sqrt(total) * top
    return out if keepdims else out.reshape([n for i, n in enumerate(x.shape) if i not in axis])


def _at_labels(x: Array, labels: Array) -> tuple[Array, tuple[Array, Array]]:
    """The logits as rows, and the key of each row's label."""
    rows = x if x.ndim == 2 else x.reshape(labels.size, x.shape[-1])
    return rows, (np.arange(len(rows)), labels.reshape(-1))


def no_class(labels: Array, classes: int) -> errors.OutOfRangeError:
    return errors.OutOfRangeError(
        f"cross entropy: targets from {labels.min()} to {labels.max()}, but the logits have {classes} classes, from 0"
    )


def _softmax_cross_entropy(x: Array, labels: Array) -> Array:
    t = np.subtract(x, np.maximum.reduce(x, axis=-1, keepdims=True))
    rows, key = _at_labels(t, labels)
    if np.minimum.reduce(labels, axis=None, initial=0) < 0:  # a negative one would count from the end
        raise no_class(labels, x.shape[-1])
    try:
        picked = rows[key]
    except IndexError:
        raise no_class(labels, x.shape[-1]) from None
    np.exp(t, out=t)
    losses = np.log(np.add.reduce(t, axis=-1))
    return np.subtract(losses, picked.reshape(losses.shape))


def _softmax_cross_entropy_pullback(g: Array, x: Array, labels: Array) -> Array:
    t = _softmax(x, axis=x.ndim - 1)
    rows, key = _at_labels(t, labels)
    rows[key] -= 1
    t = rows.reshape(t.shape)  # of a transposed t the rows are a copy
    return np.multiply(t, g[..., None], out=t)


def _running(extreme: np.ufunc) -> Implementation:
    """The extreme up to each place, and the last place it may have come from."""

    def run(x: Array, *, axis: int) -> tuple[Array, Array]:
        out = extreme.accumulate(x, axis=axis)
        hits = np.equal(x, out)
        if x.dtype.kind == "f":
            hits |= np.isnan(x)
        lines = np.moveaxis(hits, axis, -1)
        places = np.flatnonzero(lines)  # the first element of each line is one, so that no run goes on into the next
        counts = np.diff(places, append=lines.size)
        if lines.ndim > 1 and lines.size:
            places %= lines.shape[-1]
        return out, np.moveaxis(np.repeat(places, counts).reshape(lines.shape), -1, axis)

    return run


IMPLEMENTATIONS: dict[str, Implementation] = {
    "sum": _sum,
    "prod": _prod,
    "max": lambda x, *, axis, keepdims: np.maximum.reduce(x, axis=axis, keepdims=keepdims),
    "min": lambda x, *, axis, keepdims: np.minimum.reduce(x, axis=axis, keepdims=keepdims),
    "any": lambda x, *, axis, keepdims: np.any(x, axis=axis, keepdims=keepdims),
    "all": lambda x, *, axis, keepdims: np.all(x, axis=axis, keepdims=keepdims),
    "argmax": lambda x, *, axis, keepdims: np.argmax(x, axis=axis, keepdims=keepdims),
    "argmin": lambda x, *, axis, keepdims: np.argmin(x, axis=axis, keepdims=keepdims),
    "cumulative_sum": _cumulative_sum,
    "cumulative_prod": _cumulative_prod,
    "logsumexp": _logsumexp,
    "logcumsumexp": lambda x, *, axis: np.logaddexp.accumulate(x, axis=axis),
    "softmax": _softmax,
    "softmax_pullback": _softmax_pullback,
    "log_softmax": _log_softmax,
    "log_softmax_pullback": _log_softmax_pullback,
    "vector_norm": _vector_norm,
    "softmax_cross_entropy": _softmax_cross_entropy,
    "softmax_cross_entropy_pullback": _softmax_cross_entropy_pullback,
    "cummax": _running(np.maximum),
    "cummin": _running(np.minimum),
    "nanmax": lambda x, *, axis, keepdims: np.fmax.reduce(x, axis=axis, keepdims=keepdims),
    "nanmin": lambda x, *, axis, keepdims: np.fmin.reduce(x, axis=axis, keepdims=keepdims),
}
