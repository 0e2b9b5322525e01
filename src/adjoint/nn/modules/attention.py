"""Attention, and where things stand in a sequence."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from adjoint import dtypes, errors
from adjoint.functions.arguments import (
    as_flag,
    as_integer,
    as_positive,
    as_probability,
    as_size,
    as_tensor,
    check_shape,
    inexact,
    real,
)
from adjoint.functions.elementwise import cos, exp, sin, where
from adjoint.functions.parts import split
from adjoint.functions.ranges import arange
from adjoint.functions.shape import concat, moveaxis, reshape, stack
from adjoint.irrational import irrational
from adjoint.module.base import Module
from adjoint.nn.attention import scaled_dot_product_attention
from adjoint.nn.modules.linear import Key, Linear
from adjoint.operands import operand
from adjoint.random import normal
from adjoint.tensor import Operand, Tensor


class Cache(NamedTuple):
    """The keys and values of the steps so far, (batch, heads, steps, size): attention goes on from there."""

    keys: Tensor[Any]
    values: Tensor[Any]


def sinusoids(steps: int, width: int, base: float = 10000.0, *, dtype: Any = None, device: Any = None) -> Tensor[Any]:
    """Sines and cosines of positions at falling frequencies, (steps, width). A. Vaswani et al. (2017), section 3.5.

    Of the default dtype unless one is given. Raises ArgumentError for an odd width.

    >>> import adjoint as ad
    >>> ad.nn.sinusoids(2, 4).round(2).tolist()[0]
    [0.0, 1.0, 0.0, 1.0]
    """
    shape = check_shape((as_size(steps, "sinusoids", "steps"), as_size(width, "sinusoids", "the width")), "sinusoids")
    angles = _angles(arange(shape[0], device=device), shape[1], base, "sinusoids")
    found = reshape(stack([sin(angles), cos(angles)], axis=-1), shape)
    return found.astype(dtypes.default_dtype() if dtype is None else dtype)


def rotary(x: Tensor[Any], positions: Any = None, base: float = 10000.0) -> Tensor[Any]:
    """x with pairs of numbers turned by angles that grow with the position. J. Su et al. (2021).

    x is (..., steps, size); numbers i and i + size / 2 are a pair. Products of turned vectors depend on how far apart
    they are alone. Positions are 0, 1, ... unless given. Raises ArgumentError for an odd size.

    >>> import adjoint as ad
    >>> ad.nn.rotary(ad.ones((2, 2))).round(2).tolist()[0]
    [1.0, 1.0]
    """
    x = inexact(x, "rotary", positions)
    if x.ndim < 2:
        raise errors.ShapeError(f"rotary: x is (..., steps, size), received {x.shape}")
    steps = arange(x.shape[-2], device=x.device) if positions is None else real(positions, "rotary", x)
    angles = _angles(steps, x.shape[-1], base, "rotary").astype(x.dtype)
    first, second = split(x, 2, axis=-1)
    return concat([first * cos(angles) - second * sin(angles), second * cos(angles) + first * sin(angles)], axis=-1)


def _angles(positions: Tensor[Any], width: int, base: float, name: str) -> Tensor[Any]:
    if as_integer(width, name, "the width", 1) % 2:
        raise errors.ArgumentError(f"{name}: the width is even, received {width}")
    base = float(as_positive(base, name, "base"))
    wide = positions.device.leaf.widest(dtypes.float64)  # XLA may have no more than 32 bits
    positions = positions.astype(wide)
    falling = irrational("log", base, positions) / -width
    rates = exp(arange(0, width, 2, dtype=wide, device=positions.device) * falling)
    return positions[..., None] * rates


class MultiHeadAttention(Module):
    """Attention of several heads between the steps of a sequence, or to those of another. A. Vaswani et al. (2017).

    >>> import adjoint as ad
    >>> attention = ad.nn.MultiHeadAttention(8, num_heads=2)
    >>> attention(ad.ones((3, 5, 8)), is_causal=True).shape
    (3, 5, 8)
    """

    queries: Linear
    keys: Linear
    values: Linear
    out: Linear
    num_heads: int
    num_kv_heads: int
    dropout: float
    rotary: bool

    def __init__(
        self, embed_dim: int, num_heads: int, *, num_kv_heads: int | None = None, bias: bool = True,
        dropout: float = 0.0, rotary: bool = False, context_dim: int | None = None, dtype: Any = None,
        device: Any = None,
    ) -> None:  # fmt: skip
        width = as_integer(embed_dim, "MultiHeadAttention", "embed_dim", 1)
        heads = as_integer(num_heads, "MultiHeadAttention", "num_heads", 1)
        groups = heads if num_kv_heads is None else as_integer(num_kv_heads, "MultiHeadAttention", "num_kv_heads", 1)
        if width % heads or heads % groups:
            raise errors.ArgumentError(
                f"MultiHeadAttention: embed_dim is a multiple of num_heads, and that of num_kv_heads, received "
                f"{width}, {heads} and {groups}"
            )
        size = width // heads
        made = {"dtype": dtype, "device": device}
        source = width if context_dim is None else context_dim
        self.queries = Linear(width, width, bias, **made)
        self.keys = Linear(source, groups * size, bias, **made)
        self.values = Linear(source, groups * size, bias, **made)
        self.out = Linear(width, width, bias, **made)
        self.num_heads, self.num_kv_heads = heads, groups
        self.dropout = as_probability(dropout, "MultiHeadAttention", "dropout")
        self.rotary = as_flag(rotary, "MultiHeadAttention", "rotary")

    def __call__(
        self, x: Operand[Any], context: Any = None, *, mask: Any = None, is_causal: bool = False,
        cache: Cache | None = None, key: Key = None,
    ) -> Any:  # fmt: skip
        """What each step of x gathers, of the shape of x; with a cache also the next cache.

        Raises ShapeError for an x without steps, ArgumentTypeError for what is no cache.

        Parameters
        ----------
        x
            (batch, steps, embed_dim), or without batch.
        context
            What keys and values are made of, (batch, other steps, context_dim); x if None. Or these, as `cached` gives
            them.
        mask
            Booleans that say which steps a step may look at, or numbers that are added to its scores; it broadcasts to
            (batch, heads, steps, other steps).
        is_causal
            Each step looks at itself and those before it; with a cache, at those in it too.
        cache
            Keys and values of earlier steps; `empty_cache` starts one.
        """
        x = as_tensor(x, "MultiHeadAttention")
        if x.ndim < 2:
            raise errors.ShapeError(f"MultiHeadAttention: x is (batch, steps, embed_dim), received {x.shape}")
        if not isinstance(cache, (Cache, type(None))):
            raise errors.ArgumentTypeError(
                f"MultiHeadAttention: the cache is what empty_cache(x) or the last call gave, received "
                f"{errors.shown(cache)}"
            )
        query = self._heads(self.queries(x), self.num_heads)
        keys, values = context if isinstance(context, Cache) else self.cached(x if context is None else context)
        before = 0 if cache is None else cache.keys.shape[-2]
        if self.rotary:
            query, keys = (
                rotary(part, arange(before, before + part.shape[-2], device=part.device)) for part in (query, keys)
            )
        if cache is not None:
            keys, values = (concat([old, new], axis=-2) for old, new in zip(cache, (keys, values), strict=True))
        if is_causal and (before or mask is not None):
            rows = arange(before, before + x.shape[-2], device=x.device)[:, None]
            seen, is_causal = rows >= arange(keys.shape[-2], device=x.device), False
            given = None if mask is None else operand(mask, x, "MultiHeadAttention")
            if given is None or given.dtype.kind == "b":
                mask = seen if given is None else given & seen
            else:
                mask = where(seen, given, -math.inf)
        out = scaled_dot_product_attention(
            query, keys, values, mask, dropout_p=self.dropout if self.training else 0.0,
            is_causal=is_causal, enable_gqa=self.num_kv_heads < self.num_heads,
        )  # fmt: skip
        out = self.out(reshape(moveaxis(out, -3, -2), x.shape))
        return out if cache is None else (out, Cache(keys, values))

    def cached(self, context: Any) -> Cache:
        """The keys and values of a context, to be given in its place: a decoder needs them at each step."""
        return Cache(*[self._heads(f(context), self.num_kv_heads) for f in (self.keys, self.values)])

    def empty_cache(self, x: Tensor[Any]) -> Cache:
        """A cache before the first step of sequences such as x, (batch, steps, embed_dim)."""
        x = as_tensor(x, "empty_cache")
        if x.ndim < 2:
            raise errors.ShapeError(f"empty_cache: x is (batch, steps, embed_dim), received {x.shape}")
        start = self._heads(self.keys(x[..., :0, :]), self.num_kv_heads)
        return Cache(start, start)

    def _heads(self, x: Tensor[Any], heads: int) -> Tensor[Any]:
        return moveaxis(reshape(x, (*x.shape[:-1], heads, x.shape[-1] // heads)), -2, -3)


class PositionalEmbedding(Module):
    """x plus a learnt vector for each position: x is (batch, steps, width), with at most `steps` of them.

    With `start` the first step is at that position, as of a sequence that is made one step at a time.

    >>> import adjoint as ad
    >>> ad.nn.PositionalEmbedding(10, 4)(ad.ones((2, 3, 4)), start=2).shape
    (2, 3, 4)
    """

    weight: Tensor[Any]

    def __init__(self, steps: int, width: int, *, dtype: Any = None, device: Any = None) -> None:
        shape = tuple(as_integer(n, "PositionalEmbedding", "a size", 1) for n in (steps, width))
        self.weight = normal(shape, std=0.02, dtype=dtype, device=device)

    def __call__(self, x: Operand[Any], *, start: int = 0, key: Key = None) -> Tensor[Any]:
        x, start = as_tensor(x, "PositionalEmbedding"), as_integer(start, "PositionalEmbedding", "start", 0)
        if x.ndim < 2:
            raise errors.ShapeError(f"PositionalEmbedding: x is (..., steps, width), received {x.shape}")
        stop = start + x.shape[-2]
        if stop > self.weight.shape[0]:
            raise errors.ShapeError(
                f"PositionalEmbedding: x has {stop} steps, and there are vectors for {self.weight.shape[0]}"
            )
        return x + self.weight[start:stop]


class PositionalEncoding(Module):
    """x plus `ad.nn.sinusoids` of the positions, from `start` on.

    x is (..., steps, width).
    """

    base: float = 10000.0

    def __call__(self, x: Operand[Any], *, start: int = 0, key: Key = None) -> Tensor[Any]:
        x, start = as_tensor(x, "PositionalEncoding"), as_integer(start, "PositionalEncoding", "start", 0)
        if x.ndim < 2:
            raise errors.ShapeError(f"PositionalEncoding: x is (..., steps, width), received {x.shape}")
        found = sinusoids(start + x.shape[-2], x.shape[-1], self.base, dtype=x.dtype, device=x.device)
        return x + (found[start:] if start else found)
