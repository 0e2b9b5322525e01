"""Scaled dot product attention on NumPy, in blocks that stay in the cache: no matrix of all scores is ever there.

Blocks are laid out (heads, keys, queries), so that what is done for each query runs along the memory.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from adjoint.backend import Array, Implementation

_BLOCK = 1 << 17  # scores: half a megabyte, or one
_CAUSAL = 64  # queries at a time where most see few keys
_SMALL = 40.0  # exp of what is not larger needs no shift: sums and products stay far from overflow


def _stacks(*arrays: Array) -> list[Array]:
    """With one axis of heads in front."""
    return [x.reshape(math.prod(x.shape[:-2]), *x.shape[-2:]) for x in arrays]


class _Scores:
    """What the scores of blocks are made of."""

    def __init__(self, q: Array, k: Array, bias: tuple[Array, ...], scale: float, causal: bool) -> None:
        lead = q.shape[:-2]
        self.queries, self.keys = q.shape[-2], k.shape[-2]
        q, self.k = _stacks(q, k)
        self.q = q * q.dtype.type(scale)
        self.bias: Array | None = None
        if bias:
            shape = (self.queries, self.keys)
            alone = math.prod(bias[0].shape[:-2]) == 1
            whole = np.broadcast_to(bias[0], (*(bias[0].shape[:-2] if alone else lead), *shape))
            self.bias = whole.reshape(-1, *shape).swapaxes(1, 2)
        self.causal = causal
        self.shifted = bool(bias) or not self._bound() <= _SMALL  # also for nan

    def _bound(self) -> float:
        """No score is larger: A. Cauchy's inequality."""
        longest = [np.sqrt(np.vecdot(x, x).max(initial=0)) for x in (self.q, self.k)]
        return float(longest[0] * longest[1])

    def blocks(self) -> Iterator[tuple[slice, slice]]:
        """Heads and queries that are worked on together."""
        heads = max(1, _BLOCK // max(1, self.queries * self.keys))
        rows = max(16, _BLOCK // max(1, self.keys))
        if self.causal and rows > _CAUSAL:  # the keys ahead of all of them are left out
            rows = _CAUSAL
            heads = max(1, _BLOCK // max(1, rows * self.keys))
        for head in range(0, len(self.q), heads):
            for row in range(0, self.queries, rows):
                yield slice(head, head + heads), slice(row, min(row + rows, self.queries))

    def seen(self, rows: slice) -> slice:
        """The keys that some of these queries see."""
        return slice(0, min(self.keys, rows.stop) if self.causal else self.keys)

    def powers(self, heads: slice, rows: slice) -> tuple[Array, Array]:
        """exp of the scores, shifted where they are large: (heads, keys, queries); and their sums, one for zero."""
        seen = self.seen(rows)
        scores = np.matmul(self.k[heads, seen], self.q[heads, rows].swapaxes(1, 2))
        if self.bias is not None:
            bias = self.bias if len(self.bias) == 1 else self.bias[heads]
            np.add(scores, bias[:, seen, rows], out=scores)
        if self.causal:
            ahead = np.arange(rows.start, seen.stop)[:, None] > np.arange(rows.start, rows.stop)
            scores[:, rows.start :] += np.where(ahead, scores.dtype.type(-np.inf), 0)
        if self.shifted:
            top = np.maximum.reduce(scores, axis=1, keepdims=True)
            np.subtract(scores, np.where(np.isneginf(top), top.dtype.type(0), top), out=scores)
        np.exp(scores, out=scores)
        total = np.matmul(np.ones(seen.stop, scores.dtype), scores)
        total[total == 0] = 1
        return scores, total


def _attention(q: Array, k: Array, v: Array, *bias: Array, scale: float, causal: bool) -> Array:
    made = np.empty((*q.shape[:-1], v.shape[-1]), q.dtype)
    out, value = _stacks(made, v)
    scores = _Scores(q, k, bias, scale, causal)
    for heads, rows in scores.blocks():
        powers, total = scores.powers(heads, rows)
        np.matmul(powers.swapaxes(1, 2), value[heads, scores.seen(rows)], out=out[heads, rows])
        np.divide(out[heads, rows], total[..., None], out=out[heads, rows])
    return made


def _attention_pullback(
    g: Array, q: Array, k: Array, v: Array, out: Array, *bias: Array, scale: float, causal: bool
) -> tuple[Array, ...]:
    if not q.size:
        return tuple([np.zeros(x.shape, x.dtype) for x in (q, k, v)])
    made = tuple([np.zeros(x.shape, x.dtype) for x in (q, k, v)])
    (to_q, to_k, to_v), (g, value, out) = _stacks(*made), _stacks(g, v, out)
    scores = _Scores(q, k, bias, scale, causal)
    for heads, rows in scores.blocks():
        (powers, total), seen = scores.powers(heads, rows), scores.seen(rows)
        share = g[heads, rows] / total[..., None]
        mean = np.vecdot(share, out[heads, rows])
        _add_product(to_v[heads, seen], powers, share, rows.start)
        pulled = np.matmul(value[heads, seen], share.swapaxes(1, 2))
        np.subtract(pulled, mean[:, None, :], out=pulled)
        np.multiply(pulled, powers, out=pulled)
        np.matmul(pulled.swapaxes(1, 2), scores.k[heads, seen], out=to_q[heads, rows])
        _add_product(to_k[heads, seen], pulled, scores.q[heads, rows], rows.start)
    np.multiply(made[0], q.dtype.type(scale), out=made[0])
    return made


def _add_product(total: Array, x: Array, y: Array, row: int) -> None:
    if row:
        np.add(total, np.matmul(x, y), out=total)
    else:  # the first queries
        np.matmul(x, y, out=total)


IMPLEMENTATIONS: dict[str, Implementation] = {"attention": _attention, "attention_pullback": _attention_pullback}
