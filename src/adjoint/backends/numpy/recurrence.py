"""Recurrent networks on NumPy: all steps in one loop, over memory that is there already.

The steps go in front of the leading axes. Backward, what does not wait for later steps is made for several at once.
"""

from __future__ import annotations

import math

import numpy as np

from adjoint.backend import Array, Implementation

_BLOCK = 1 << 16  # elements of gates: they and what is made of them stay in the cache


def _lstm(x: Array, weight: Array, h: Array, c: Array) -> Array:
    lead, n = x.ndim - 3, weight.shape[-1]
    inputs, turned = np.moveaxis(x, lead, 0), weight.swapaxes(-1, -2).copy()
    made = np.empty((len(inputs), 2, *h.shape), x.dtype)
    gates, new = np.empty(inputs.shape[1:], x.dtype), np.empty(h.shape, x.dtype)
    ahead, forget, last = gates[..., :n], gates[..., n : 2 * n], gates[..., 3 * n :]
    with np.errstate(over="ignore"):  # exp(-x) may be infinite: its reciprocal is the right zero
        for given, (after, cell) in zip(inputs, made, strict=True):
            np.matmul(h, turned, out=gates)
            np.add(gates, given, out=gates)
            np.tanh(gates[..., 2 * n : 3 * n], out=new)
            np.negative(gates, out=gates)
            np.exp(gates, out=gates)
            np.add(gates, 1, out=gates)
            np.divide(1, gates, out=gates)
            np.multiply(forget, c, out=cell)
            np.multiply(new, ahead, out=new)
            np.add(cell, new, out=cell)
            np.tanh(cell, out=after)
            np.multiply(after, last, out=after)
            h, c = after, cell
    return np.moveaxis(made, (0, 1), (lead, lead + 1))


def _lstm_pullback(g: Array, x: Array, weight: Array, h: Array, c: Array, out: Array) -> tuple[Array, ...]:
    lead, n = x.ndim - 3, weight.shape[-1]
    inputs, turned = np.moveaxis(x, lead, 0), weight.swapaxes(-1, -2).copy()
    states, slopes = (np.moveaxis(part, (lead, lead + 1), (0, 1)) for part in (out, g))
    steps, ends = len(inputs), states[:, 1]
    before, cells = (np.concatenate([first[None], states[:-1, k]]) for k, first in enumerate((h, c)))
    pulled = np.empty(inputs.shape, x.dtype)
    to_h, to_c = np.zeros(h.shape, x.dtype), np.zeros(c.shape, x.dtype)
    largest = math.floor(math.log(np.finfo(x.dtype).max))  # its power is finite
    size = max(1, _BLOCK // max(1, pulled[0].size))
    for stop in range(steps, 0, -size):
        block = slice(max(0, stop - size), stop)
        gates = np.matmul(before[block], turned)
        np.add(gates, inputs[block], out=gates)
        new, end = np.tanh(gates[..., 2 * n : 3 * n]), np.tanh(ends[block])
        np.negative(gates, out=gates)
        powers = np.exp(np.minimum(gates, largest, out=gates))
        np.divide(1, np.add(powers, 1, out=gates), out=gates)
        part = pulled[block]  # first the factors of the cotangents of cells, and of outputs for the last gate
        np.multiply(gates, powers, out=part)  # 1 - gates would lose its digits
        np.multiply(part, gates, out=part)
        part[..., :n] *= new
        part[..., n : 2 * n] *= cells[block]
        part[..., 3 * n :] *= end
        np.multiply(1 - np.square(new), gates[..., :n], out=part[..., 2 * n : 3 * n])
        through = (1 - np.square(end)) * gates[..., 3 * n :]
        for t in reversed(range(len(part))):
            np.add(to_h, slopes[block.start + t, 0], out=to_h)
            np.add(to_c, slopes[block.start + t, 1], out=to_c)
            np.add(to_c, np.multiply(to_h, through[t], out=through[t]), out=to_c)
            by_gate = part[t].reshape(*h.shape[:-1], 4, n)
            np.multiply(by_gate[..., :3, :], to_c[..., None, :], out=by_gate[..., :3, :])
            np.multiply(by_gate[..., 3, :], to_h, out=by_gate[..., 3, :])
            np.matmul(part[t], weight, out=to_h)
            np.multiply(to_c, gates[t, ..., n : 2 * n], out=to_c)
    rows = (*h.shape[:lead], steps * h.shape[-2])
    left, right = (np.moveaxis(part, 0, lead).reshape(*rows, part.shape[-1]) for part in (pulled, before))
    return np.moveaxis(pulled, 0, lead), np.matmul(left.swapaxes(-1, -2), right), to_h, to_c


IMPLEMENTATIONS: dict[str, Implementation] = {"lstm": _lstm, "lstm_pullback": _lstm_pullback}
