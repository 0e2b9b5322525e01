"""Scaled dot product attention on NumPy, in blocks that stay in the cache: no matrix of all scores is ever there.

Blocks are laid out (batch, heads, keys, queries), so that what is done for each query runs along the memory. Operands
stay as they lie, and results lie as they do: heads are mostly parts of longer rows.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from adjoint.backend import Array, Implementation
from adjoint.backends.numpy.shape import like

_BLOCK = 1 << 16  # scores: a quarter of a megabyte, or half of one
_CAUSAL = 64  # queries at a time where most see few keys
_SMALL = 40.0  # exp of what is not larger needs no shift: sums and products stay far from overflow

Block = tuple[slice, slice, slice]  # of the batch, the heads and the queries


def _stacks(*arrays: Array) -> list[Array]:
    """With two axes in front, and rows that BLAS takes as they are."""
    found = []
    for x in arrays:
        size, (*lead, rows, columns) = x.itemsize, x.shape
        if x.strides[-1] != size or x.strides[-2] < columns * size:
            x = np.ascontiguousarray(x)
        found.append(x.reshape(math.prod(lead[:-1]), lead[-1] if lead else 1, rows, columns))
    return found


class _Scores:
    """What the scores of blocks are made of."""

    def __init__(self, q: Array, k: Array, bias: tuple[Array, ...], scale: float, causal: bool) -> None:
        self.lead, self.queries, self.keys = q.shape[:-2], q.shape[-2], k.shape[-2]
        q, self.k = _stacks(q, k)
        self.q = q * q.dtype.type(scale)
        self.bias: Array | None = None
        if bias:
            shape = (self.queries, self.keys)
            alone = math.prod(bias[0].shape[:-2]) == 1
            (whole,) = _stacks(np.broadcast_to(bias[0], (*((1, 1) if alone else self.lead), *shape)))
            self.bias = whole.swapaxes(2, 3)
        self.causal, self.ones = causal, np.ones(self.keys, q.dtype)
        self.rows = max(16, _BLOCK // max(1, self.keys))
        if causal and self.rows > _CAUSAL:  # the keys ahead of all of them are left out
            self.rows = _CAUSAL
        self.rows = min(self.rows, self.queries)
        if causal:
            place = np.arange(self.rows)
            self.ahead = np.where(place[:, None] > place, q.dtype.type(-np.inf), q.dtype.type(0))
        self.shifted = bool(bias) or not self._bound() <= _SMALL  # also for nan

    def _bound(self) -> float:
        """No score is larger: A. Cauchy's inequality."""
        longest = [np.sqrt(np.vecdot(x, x).max(initial=0)) for x in (self.q, self.k)]
        return float(longest[0] * longest[1])

    def blocks(self) -> Iterator[Block]:
        """What is worked on together. The last queries, which see all keys, come first."""
        batch, heads = self.q.shape[:2]
        many = max(1, _BLOCK // max(1, self.rows * self.keys))
        steps = max(1, many // max(1, heads)), min(many, max(1, heads))
        for first in range(0, batch, steps[0]):
            for head in range(0, heads, steps[1]):
                for row in reversed(range(0, self.queries, max(1, self.rows))):
                    rows = slice(row, min(row + self.rows, self.queries))
                    yield slice(first, first + steps[0]), slice(head, head + steps[1]), rows

    def seen(self, block: Block) -> Block:
        """The keys that some of these queries see."""
        batch, heads, rows = block
        return batch, heads, slice(0, min(self.keys, rows.stop) if self.causal else self.keys)

    def powers(self, block: Block) -> tuple[Array, Array]:
        """exp of the scores, shifted where they are large: (batch, heads, keys, queries); and their sums, 1 for 0."""
        batch, heads, rows = block
        *_, seen = keys = self.seen(block)
        scores = np.matmul(self.k[keys], self.q[block].swapaxes(2, 3))
        if self.bias is not None:
            bias = self.bias if self.bias.shape[:2] == (1, 1) else self.bias[batch, heads]
            np.add(scores, bias[:, :, seen, rows], out=scores)
        if self.causal and seen.stop > rows.start:
            part = scores[:, :, rows.start :]
            np.add(part, self.ahead[: part.shape[2], : part.shape[3]], out=part)
        if self.shifted:
            top = np.maximum.reduce(scores, axis=2, keepdims=True)
            np.subtract(scores, np.where(np.isneginf(top), top.dtype.type(0), top), out=scores)
        np.exp(scores, out=scores)
        total = np.matmul(self.ones[seen], scores)
        total[total == 0] = 1
        return scores, total[..., None]


def _attention(q: Array, k: Array, v: Array, *bias: Array, scale: float, causal: bool) -> Array:
    scores, (value,) = _Scores(q, k, bias, scale, causal), _stacks(v)
    out = like(scores.q, (*scores.q.shape[:-1], v.shape[-1]))
    for block in scores.blocks():
        powers, total = scores.powers(block)
        made = np.matmul(powers.swapaxes(2, 3), value[scores.seen(block)], out=out[block])
        np.divide(made, total, out=made)
    return out.reshape(*q.shape[:-1], v.shape[-1])


def _attention_pullback(
    g: Array, q: Array, k: Array, v: Array, out: Array, *bias: Array, scale: float, causal: bool
) -> tuple[Array, ...]:
    scores, (g, value, out), size = _Scores(q, k, bias, scale, causal), _stacks(g, v, out), v.shape[-1]
    to_q, to_k, to_v = (like(x, x.shape) for x in (scores.q, scores.k, value))
    if not scores.queries or (causal and scores.queries < scores.keys):  # keys that nobody sees
        to_k[...], to_v[...] = 0, 0
    # a last column of ones takes the mean of what is pulled back off in the product
    longer = np.ones((*value.shape[:-1], size + 1), value.dtype)
    longer[..., :size] = value
    for block in scores.blocks():
        (powers, total), seen, last = scores.powers(block), scores.seen(block), block[2].stop == scores.queries
        given = np.empty((*total.shape[:-1], size + 1), g.dtype)
        share = np.divide(g[block], total, out=given[..., :size])
        np.negative(np.vecdot(share, out[block]), out=given[..., size])
        _add_product(to_v[seen], powers, share, last)
        pulled = np.matmul(longer[seen], given.swapaxes(2, 3))
        np.multiply(pulled, powers, out=pulled)
        np.matmul(pulled.swapaxes(2, 3), scores.k[seen], out=to_q[block])
        _add_product(to_k[seen], pulled, scores.q[block], last)
    np.multiply(to_q, q.dtype.type(scale), out=to_q)
    return tuple([made.reshape(x.shape) for made, x in ((to_q, q), (to_k, k), (to_v, v))])


def _add_product(total: Array, x: Array, y: Array, first: bool) -> None:
    """The product, of the first block, and then added."""
    if first:
        np.matmul(x, y, out=total)
    else:
        np.add(total, np.matmul(x, y), out=total)


IMPLEMENTATIONS: dict[str, Implementation] = {"attention": _attention, "attention_pullback": _attention_pullback}
