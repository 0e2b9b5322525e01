"""Transformers: layers of attention and networks at each step, and stacks of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar, NamedTuple

from adjoint import errors
from adjoint.functions.arguments import as_flag, as_layers, check_callable
from adjoint.module.base import Module
from adjoint.nn.activations import relu
from adjoint.nn.layers import dropout
from adjoint.nn.modules.attention import Cache, MultiHeadAttention
from adjoint.nn.modules.linear import Key, Linear
from adjoint.nn.modules.normalization import LayerNorm
from adjoint.tensor import Tensor


class TransformerEncoderLayer(Module):
    """Attention among the steps, then a network of two layers at each, both residual and normalised.

    x and the result are (..., steps, d_model). Normalisation comes after the sums, as in A. Vaswani et al. (2017), or
    with `norm_first` before what is added. With a `cache`, as `empty_cache` gives one for sequences such as x, it gives
    also the next cache.

    >>> import adjoint as ad
    >>> ad.nn.TransformerEncoderLayer(8, 2, 16)(ad.ones((3, 5, 8))).shape
    (3, 5, 8)
    """

    attention: MultiHeadAttention
    first: Linear
    second: Linear
    norm1: LayerNorm
    norm2: LayerNorm
    activation: Callable[..., Any]
    dropout: float
    norm_first: bool

    def __init__(
        self, d_model: int, nhead: int, dim_feedforward: int = 2048, dropout: float = 0.1,
        activation: Callable[..., Any] = relu, *, norm_first: bool = False, bias: bool = True, rotary: bool = False,
        dtype: Any = None, device: Any = None,
    ) -> None:  # fmt: skip
        check_callable("TransformerEncoderLayer", activation, "activation")
        made = {"dtype": dtype, "device": device}
        self.attention = MultiHeadAttention(d_model, nhead, bias=bias, dropout=dropout, rotary=rotary, **made)
        self.first = Linear(d_model, dim_feedforward, bias, **made)
        self.second = Linear(dim_feedforward, d_model, bias, **made)
        self.norm1, self.norm2 = LayerNorm(d_model, bias=bias, **made), LayerNorm(d_model, bias=bias, **made)
        self.activation, self.dropout = activation, self.attention.dropout
        self.norm_first = as_flag(norm_first, type(self).__name__, "norm_first")

    def __call__(
        self, x: Tensor[Any], *, mask: Any = None, is_causal: bool = False, cache: Cache | None = None, key: Key = None
    ) -> Any:
        if self.norm_first:
            found, after = self._gathered(self.norm1(x), mask, is_causal, cache)
            x = x + found
            x = x + self._think(self.norm2(x))
        else:
            found, after = self._gathered(x, mask, is_causal, cache)
            x = self.norm1(x + found)
            x = self.norm2(x + self._think(x))
        return x if cache is None else (x, after)

    def empty_cache(self, x: Tensor[Any]) -> Any:
        """What is known before the first step of sequences such as x, (batch, steps, d_model)."""
        return self.attention.empty_cache(x)

    def _gathered(self, x: Tensor[Any], mask: Any, is_causal: bool, cache: Cache | None) -> tuple[Tensor[Any], Any]:
        """What each step gathers from the others, and the next cache or None."""
        found = self.attention(x, mask=mask, is_causal=is_causal, cache=cache)
        out, after = (found, None) if cache is None else found
        return self._drop(out), after

    def _think(self, x: Tensor[Any]) -> Tensor[Any]:
        return self._drop(self.second(self._drop(self.activation(self.first(x)))))

    def _drop(self, x: Tensor[Any]) -> Tensor[Any]:
        return dropout(x, self.dropout, self.training)


class DecoderCache(NamedTuple):
    """What a decoder's layer knows of earlier steps, and the keys and values of the sequence that it looks at."""

    steps: Cache
    memory: Cache


class TransformerDecoderLayer(TransformerEncoderLayer):
    """`TransformerEncoderLayer` that looks at another sequence in between, `memory`; a cache has that sequence too.

    x and the result are (..., steps, d_model), `memory` is (..., its steps, d_model).

    >>> import adjoint as ad
    >>> ad.nn.TransformerDecoderLayer(8, 2, 16)(ad.ones((3, 5, 8)), ad.ones((3, 7, 8))).shape
    (3, 5, 8)
    """

    across: MultiHeadAttention
    norm3: LayerNorm

    def __init__(
        self, d_model: int, nhead: int, dim_feedforward: int = 2048, dropout: float = 0.1,
        activation: Callable[..., Any] = relu, *, norm_first: bool = False, bias: bool = True, rotary: bool = False,
        dtype: Any = None, device: Any = None,
    ) -> None:  # fmt: skip
        made = {"dtype": dtype, "device": device}
        how: dict[str, Any] = {"norm_first": norm_first, "bias": bias, "rotary": rotary, **made}
        super().__init__(d_model, nhead, dim_feedforward, dropout, activation, **how)
        self.across = MultiHeadAttention(d_model, nhead, bias=bias, dropout=dropout, **made)
        self.norm3 = LayerNorm(d_model, bias=bias, **made)

    def __call__(  # type: ignore[override]
        self, x: Tensor[Any], memory: Tensor[Any] | None, *, mask: Any = None, memory_mask: Any = None,
        is_causal: bool = False, cache: DecoderCache | None = None, key: Key = None,
    ) -> Any:  # fmt: skip
        if not isinstance(cache, (DecoderCache, type(None))):
            raise errors.ArgumentTypeError(
                "TransformerDecoderLayer: the cache is what empty_cache(x, memory) or the last call gave, received "
                f"{errors.shown(cache)}"
            )
        if memory is None and cache is None:
            raise errors.ArgumentTypeError(
                "TransformerDecoderLayer: memory is the sequence to look at, received None without a cache that has it"
            )
        known = None if cache is None else cache.steps

        def look(x: Tensor[Any]) -> Tensor[Any]:
            return self._drop(self.across(x, memory if cache is None else cache.memory, mask=memory_mask))

        if self.norm_first:
            found, after = self._gathered(self.norm1(x), mask, is_causal, known)
            x = x + found
            x = x + look(self.norm2(x))
            x = x + self._think(self.norm3(x))
        else:
            found, after = self._gathered(x, mask, is_causal, known)
            x = self.norm1(x + found)
            x = self.norm2(x + look(x))
            x = self.norm3(x + self._think(x))
        return x if cache is None else (x, DecoderCache(after, cache.memory))

    def empty_cache(self, x: Tensor[Any], memory: Tensor[Any]) -> DecoderCache:  # type: ignore[override]
        """What is known before the first step of sequences such as x: the other sequence."""
        return DecoderCache(self.attention.empty_cache(x), self.across.cached(memory))


class _Stack(Module):
    """Layers one after the other, and a norm of what the last one gives."""

    layers: tuple[Any, ...]
    norm: LayerNorm | None
    layer: ClassVar[type[TransformerEncoderLayer]]

    def __init__(
        self, d_model: int, nhead: int, num_layers: int, dim_feedforward: int = 2048, dropout: float = 0.1,
        activation: Callable[..., Any] = relu, *, norm: bool | None = None, norm_first: bool = False, bias: bool = True,
        rotary: bool = False, dtype: Any = None, device: Any = None,
    ) -> None:  # fmt: skip
        name = type(self).__name__
        made: dict[str, Any] = {"bias": bias, "dtype": dtype, "device": device}
        how = {"norm_first": norm_first, "rotary": rotary, **made}
        self.layers = tuple(
            self.layer(d_model, nhead, dim_feedforward, dropout, activation, **how)
            for _ in range(as_layers(num_layers, name))
        )
        last = norm_first if norm is None else as_flag(norm, name, "norm")
        self.norm = LayerNorm(d_model, **made) if last else None

    def __call__(self, x: Tensor[Any], *memory: Any, cache: Any = None, key: Key = None, **how: Any) -> Any:
        if cache is None:
            for layer in self.layers:
                x = layer(x, *memory, **how)
            return x if self.norm is None else self.norm(x)
        if not isinstance(cache, tuple) or len(cache) != len(self.layers):
            raise errors.ArgumentTypeError(
                f"{type(self).__name__}: the cache is what empty_cache or the last call gave, received "
                f"{errors.shown(cache)}"
            )
        found = []
        for layer, known in zip(self.layers, cache, strict=True):
            x, after = layer(x, *memory, cache=known, **how)
            found.append(after)
        return x if self.norm is None else self.norm(x), tuple(found)

    def empty_cache(self, x: Tensor[Any], *memory: Tensor[Any]) -> tuple[Any, ...]:
        """What the layers know before the first step of sequences such as x, (batch, steps, d_model).

        With a cache they give also the next one: so a sequence is made a few steps at a time, with `is_causal`.
        """
        return tuple([layer.empty_cache(x, *memory) for layer in self.layers])


class TransformerEncoder(_Stack, init=False):
    """`num_layers` of `TransformerEncoderLayer`, each with weights of its own; it is called as they are.

    A last norm follows if `norm`, or where it is None, with `norm_first`. With a cache each step is computed once:

    >>> import adjoint as ad
    >>> model, x = ad.nn.TransformerEncoder(8, 2, 3, 16).train(False), ad.random.normal((3, 5, 8))
    >>> whole, cache, steps = model(x, is_causal=True), model.empty_cache(x), []
    >>> for k in range(5):
    ...     step, cache = model(x[:, k : k + 1], is_causal=True, cache=cache)
    ...     steps.append(step)
    >>> bool(ad.allclose(ad.concat(steps, axis=1), whole, atol=1e-5))
    True
    """

    layer = TransformerEncoderLayer


class TransformerDecoder(_Stack, init=False):
    """`num_layers` of `TransformerDecoderLayer`; the rest is as in `TransformerEncoder`.

    A cache, `empty_cache(x, memory)`, has the memory too: then None may stand in its place.

    >>> import adjoint as ad
    >>> ad.nn.TransformerDecoder(8, 2, 3, 16)(ad.ones((3, 5, 8)), ad.ones((3, 7, 8))).shape
    (3, 5, 8)
    """

    layer = TransformerDecoderLayer


class Transformer(Module):
    """An encoder of one sequence, and a decoder of another that looks at it, both with a last norm, as PyTorch's.

    A. Vaswani et al. (2017). Embeddings, positions and what reads the result are the user's.

    >>> import adjoint as ad
    >>> model = ad.nn.Transformer(8, 2, 1, 1, 16)
    >>> model(ad.ones((3, 7, 8)), ad.ones((3, 5, 8)), is_causal=True).shape
    (3, 5, 8)
    """

    encoder: TransformerEncoder
    decoder: TransformerDecoder

    def __init__(
        self, d_model: int = 512, nhead: int = 8, num_encoder_layers: int = 6, num_decoder_layers: int = 6,
        dim_feedforward: int = 2048, dropout: float = 0.1, activation: Callable[..., Any] = relu, *,
        norm_first: bool = False, bias: bool = True, rotary: bool = False, dtype: Any = None, device: Any = None,
    ) -> None:  # fmt: skip
        sizes = (dim_feedforward, dropout, activation)
        how: dict[str, Any] = {"norm_first": norm_first, "bias": bias, "dtype": dtype, "device": device}
        how |= {"norm": True, "rotary": rotary}
        self.encoder = TransformerEncoder(d_model, nhead, num_encoder_layers, *sizes, **how)
        self.decoder = TransformerDecoder(d_model, nhead, num_decoder_layers, *sizes, **how)

    def __call__(
        self, source: Tensor[Any], target: Tensor[Any], *, source_mask: Any = None, mask: Any = None,
        memory_mask: Any = None, is_causal: bool = False, key: Key = None,
    ) -> Tensor[Any]:  # fmt: skip
        """What each step of the target gathers, of its shape. `mask` and `is_causal` are the target's."""
        memory = self.encoder(source, mask=source_mask)
        found: Tensor[Any] = self.decoder(target, memory, mask=mask, memory_mask=memory_mask, is_causal=is_causal)
        return found
