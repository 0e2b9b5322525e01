"""Normalisation on NumPy: in blocks of rows that stay in the cache, where a row is what is normalised together."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from adjoint.backend import Array, Implementation
from adjoint.backends.numpy.shape import like

_BLOCK = 1 << 17  # elements


class _Rows:
    """The axes that are normalised along last, in one array and in those that broadcast to it."""

    def __init__(self, x: Array, axis: tuple[int, ...]) -> None:
        lead = [i for i in range(x.ndim) if i not in axis]
        lead.sort(key=lambda i: -abs(x.strides[i]))  # as they lie in memory
        inner = sorted(axis, key=lambda i: -abs(x.strides[i]))
        self.order = (*lead, *inner)
        self.size = math.prod(x.shape[i] for i in axis)
        self.axes = tuple(range(len(lead), x.ndim))
        self.ones, self.one = np.ones(self.size, x.dtype), np.ones((1,), x.dtype)
        self.first = x.shape[lead[0]] if lead else 1
        self.step = max(1, _BLOCK * self.first // max(1, x.size)) if lead else 1

    def moved(self, x: Array) -> Array:
        return x.transpose(self.order) if len(self.axes) < x.ndim else x.transpose(self.order)[None]

    def blocks(self) -> Iterator[slice]:
        for start in range(0, self.first, self.step):
            yield slice(start, start + self.step)

    def centred(self, x: Array, epsilon: float, out: Array | None) -> tuple[Array, Array]:
        """A block minus its rows' means, contiguous; and one over their standard deviations, with axes of size one."""
        kept = (*x.shape[: x.ndim - len(self.axes)], *[1] * len(self.axes))
        rows = x.reshape(-1, self.size)
        mean = np.matmul(rows, self.ones) / self.size
        t = np.subtract(x, mean.reshape(kept), out=out, order="C")
        flat = t.reshape(-1, self.size)
        with np.errstate(over="ignore"):
            variance = np.vecdot(flat, flat) / self.size
        over = 1 / np.sqrt(variance + epsilon)
        if not over.all():
            over = _over_large(flat, over, epsilon)
        return t, over.reshape(kept)

    def mean(self, x: Array, kept: Array) -> Array:
        """The mean of each row of a contiguous block, with the axes of `kept`."""
        return (np.matmul(x.reshape(-1, self.size), self.ones) / self.size).reshape(kept.shape)


def _over_large(rows: Array, over: Array, epsilon: float) -> Array:
    """One over the deviations of centred rows, also where their squares overflow."""
    top = np.maximum.reduce(np.abs(rows), axis=1, keepdims=True, initial=0)
    large = np.logical_and(over == 0, np.isfinite(top[:, 0]))
    parts = rows[large] / top[large]
    size = np.sqrt(np.vecdot(parts, parts) / rows.shape[1] + epsilon / top[large, 0] / top[large, 0])
    over[large] = 1 / top[large, 0] / size
    return over


def _block(x: Array, block: slice) -> Array:
    """A block of an array that broadcasts to the one that has it."""
    return x if x.shape[0] == 1 else x[block]


def _flat(out: Array) -> Array | None:
    """The place of a result, if it is contiguous: passes that write where they read are the fastest."""
    return out if out.flags.c_contiguous else None


def _normalize(x: Array, weight: Array, bias: Array, *, axis: tuple[int, ...], epsilon: float) -> Array:
    out, rows = like(x, x.shape), _Rows(x, axis)
    values, scale, shift, made = (rows.moved(a) for a in (x, weight, bias, out))
    for block in rows.blocks():
        part = made[block]
        t, over = rows.centred(values[block], epsilon, _flat(part))
        factor = _block(scale, block)
        if math.prod([factor.shape[i] for i in rows.axes]) == 1:  # one for each row
            np.multiply(t, over * factor, out=t)
        else:
            np.multiply(t, over, out=t)
            np.multiply(t, factor, out=t)
        np.add(t, _block(shift, block), out=part)
    return out


def _normalize_pullback(
    g: Array, x: Array, weight: Array, bias: Array, *, axis: tuple[int, ...], epsilon: float
) -> tuple[Array, ...]:
    out, rows = like(x, x.shape), _Rows(x, axis)
    to_weight, to_bias = np.zeros(weight.shape, x.dtype), np.zeros(bias.shape, x.dtype)
    given, values, scale, made, to_scale, to_shift = (rows.moved(a) for a in (g, x, weight, out, to_weight, to_bias))
    for block in rows.blocks():
        part = made[block]
        t, over = rows.centred(values[block], epsilon, None)
        g = np.ascontiguousarray(given[block])
        _add_sums(_block(to_shift, block), g, rows.one)
        scaled = np.multiply(g, t, out=_flat(part))
        _add_sums(_block(to_scale, block), scaled, over)
        np.multiply(g, _block(scale, block), out=scaled)
        flat, around = scaled.reshape(-1, rows.size), t.reshape(-1, rows.size)
        slope = (np.vecdot(flat, around) / rows.size).reshape(over.shape) * over * over
        mean = rows.mean(scaled, over)
        np.multiply(t, slope, out=t)
        np.subtract(scaled, t, out=scaled)
        np.subtract(scaled, mean, out=scaled)
        np.multiply(scaled, over, out=part)
    return out, to_weight, to_bias


def _add_sums(total: Array, x: Array, factors: Array) -> None:
    """Adds the sums of factors (one for each row) x over the axes that a block has and the total has not."""
    split = next((i for i, n in enumerate(total.shape) if n != 1), x.ndim)
    columns = math.prod(x.shape[split:])
    if total.shape[split:] == x.shape[split:] and factors.size in (1, x.size // max(1, columns)):
        flat = x.reshape(-1, columns) if columns else x.reshape(0, 0)
        vector = np.broadcast_to(factors.reshape(-1), flat.shape[:1])
        total += np.matmul(np.ascontiguousarray(vector), flat).reshape(total.shape)  # a vector times a matrix
    else:
        axes = tuple(i for i, (n, m) in enumerate(zip(x.shape, total.shape, strict=True)) if m == 1 != n)
        total += np.add.reduce(x * factors, axis=axes, keepdims=True)


def _standardize(x: Array, *, axis: tuple[int, ...], epsilon: float) -> Array:
    count = math.prod(x.shape[i] for i in axis)
    t = x - np.add.reduce(x, axis=axis, keepdims=True) / count
    with np.errstate(over="ignore"):
        variance = np.add.reduce(np.square(t), axis=axis, keepdims=True) / count
    deviation = np.sqrt(variance + epsilon)
    if not np.isfinite(deviation).all():
        top = np.maximum.reduce(np.abs(t), axis=axis, keepdims=True, initial=0)
        top = np.where(np.isinf(deviation) & np.isfinite(top), top, x.dtype.type(1))
        parts = np.add.reduce(np.square(t / top), axis=axis, keepdims=True) / count
        deviation = np.sqrt(parts + epsilon / top / top) * top
    return np.divide(t, deviation, out=t)


IMPLEMENTATIONS: dict[str, Implementation] = {
    "normalize": _normalize,
    "normalize_pullback": _normalize_pullback,
    "standardize": _standardize,
}
