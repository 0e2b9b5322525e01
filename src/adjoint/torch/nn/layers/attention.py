"""Attention and transformers, made of the layers before, with PyTorch's parameters; a softmax over many classes."""

from __future__ import annotations

import copy
import math
from typing import Any, NamedTuple

import numpy as np

from adjoint.torch.nn import functional as F
from adjoint.torch.nn import init
from adjoint.torch.nn.containers import ModuleList, Sequential
from adjoint.torch.nn.layers.base import made_of
from adjoint.torch.nn.layers.parametric import LayerNorm, Linear, NonDynamicallyQuantizableLinear
from adjoint.torch.nn.layers.simple import ALL as SIMPLE
from adjoint.torch.nn.module import Module
from adjoint.torch.operators import FUNCTIONS
from adjoint.torch.tensor import Tensor, looked

_F: Any = F.ALL


def _added(mask: Any, like: Tensor) -> Any:
    """A mask as numbers to add: of booleans minus infinity where it is true."""
    if mask is None or mask._dtype.kind != "b":
        return mask
    return FUNCTIONS["zeros"](tuple(mask.shape), dtype=like.dtype).masked_fill(mask, -math.inf)


class MultiheadAttention(Module):
    """Attention of several heads. A. Vaswani et al. (2017).

    >>> import adjoint.torch as torch
    >>> x = torch.ones(5, 2, 4)
    >>> out, weights = torch.nn.MultiheadAttention(4, 2)(x, x, x)
    >>> out.shape, weights.shape
    (torch.Size([5, 2, 4]), torch.Size([2, 5, 5]))
    """

    add_zero_attn: bool
    batch_first: bool
    dropout: float
    embed_dim: int
    head_dim: int
    kdim: Any
    num_heads: int
    vdim: Any

    def __init__(
        self, embed_dim: int, num_heads: int, dropout: float = 0.0, bias: bool = True, add_bias_kv: bool = False,
        add_zero_attn: bool = False, kdim: Any = None, vdim: Any = None, batch_first: bool = False, device: Any = None,
        dtype: Any = None,
    ) -> None:  # fmt: skip
        super().__init__()
        if embed_dim <= 0 or num_heads <= 0:
            raise ValueError(
                "embed_dim and num_heads must be greater than 0, got "
                f"embed_dim={embed_dim} and num_heads={num_heads} instead"
            )
        if embed_dim % num_heads:
            raise AssertionError("embed_dim must be divisible by num_heads")
        self.embed_dim, self.num_heads, self.dropout, self.batch_first = embed_dim, num_heads, dropout, batch_first
        self.kdim, self.vdim = embed_dim if kdim is None else kdim, embed_dim if vdim is None else vdim
        self.head_dim, self.add_zero_attn = embed_dim // num_heads, add_zero_attn
        self._qkv_same_embed_dim = self.kdim == embed_dim == self.vdim
        made = {"dtype": dtype, "device": device}
        if self._qkv_same_embed_dim:
            self.in_proj_weight: Any = made_of(3 * embed_dim, embed_dim, **made)
            for name in ("q_proj_weight", "k_proj_weight", "v_proj_weight"):
                self.register_parameter(name, None)
        else:
            self.q_proj_weight: Any = made_of(embed_dim, embed_dim, **made)
            self.k_proj_weight: Any = made_of(embed_dim, self.kdim, **made)
            self.v_proj_weight: Any = made_of(embed_dim, self.vdim, **made)
            self.register_parameter("in_proj_weight", None)
        self.register_parameter("in_proj_bias", made_of(3 * embed_dim, **made) if bias else None)
        self.out_proj: Any = NonDynamicallyQuantizableLinear(embed_dim, embed_dim, bias=bias, **made)
        self.bias_k: Any = made_of(1, 1, embed_dim, **made) if add_bias_kv else None
        self.bias_v: Any = made_of(1, 1, embed_dim, **made) if add_bias_kv else None
        self._reset_parameters()

    def _reset_parameters(self) -> None:
        for name in ("in_proj_weight", "q_proj_weight", "k_proj_weight", "v_proj_weight"):
            if getattr(self, name) is not None:
                init.xavier_uniform_(getattr(self, name))
        if self.in_proj_bias is not None:
            init.zeros_(self.in_proj_bias)
            init.zeros_(self.out_proj.bias)
        for x in (self.bias_k, self.bias_v):
            if x is not None:
                init.xavier_normal_(x)

    def _projected(self, query: Any, key: Any, value: Any) -> list[Any]:
        weights = (
            self.in_proj_weight.chunk(3)
            if self._qkv_same_embed_dim
            else (self.q_proj_weight, self.k_proj_weight, self.v_proj_weight)
        )
        biases = (None,) * 3 if self.in_proj_bias is None else self.in_proj_bias.chunk(3)
        return [_F["linear"](x, w, b) for x, w, b in zip((query, key, value), weights, biases, strict=True)]

    def forward(
        self, query: Any, key: Any, value: Any, key_padding_mask: Any = None, need_weights: bool = True,
        attn_mask: Any = None, average_attn_weights: bool = True, is_causal: bool = False,
    ) -> Any:  # fmt: skip
        """The results, and the weights, or None without `need_weights`. True in a mask means: not seen."""
        if query.ndim not in (2, 3):
            raise AssertionError(
                f"query should be unbatched 2D or batched 3D tensor but received {query.ndim}-D query tensor"
            )
        if is_causal and attn_mask is None:
            raise RuntimeError("Need attn_mask if specifying the is_causal hint.")
        if query.shape[-1] != self.embed_dim:
            raise AssertionError(f"was expecting embedding dimension of {self.embed_dim}, but got {query.shape[-1]}")
        _check_attention(self, query, key, value, key_padding_mask, attn_mask)
        alone = query.ndim == 2
        if alone:
            query, key, value = [x.unsqueeze(1) for x in (query, key, value)]
            key_padding_mask = None if key_padding_mask is None else key_padding_mask.unsqueeze(0)
        elif self.batch_first:
            query, key, value = [x.transpose(0, 1) for x in (query, key, value)]
        steps, batch, _ = query.shape
        q, k, v = self._projected(query, key, value)
        mask, ignored = _added(attn_mask, q), _added(key_padding_mask, q)
        if mask is not None and mask.ndim == 3:
            mask = mask.reshape(batch, self.num_heads, *mask.shape[1:])
        if self.bias_k is not None:
            k = FUNCTIONS["cat"]([k, self.bias_k.expand(1, batch, self.embed_dim)])
            v = FUNCTIONS["cat"]([v, self.bias_v.expand(1, batch, self.embed_dim)])
            mask, ignored = [None if m is None else _F["pad"](m, (0, 1)) for m in (mask, ignored)]
        q, k, v = [x.reshape(x.shape[0], batch, self.num_heads, self.head_dim).permute(1, 2, 0, 3) for x in (q, k, v)]
        if self.add_zero_attn:
            nothing = FUNCTIONS["zeros"]((batch, self.num_heads, 1, self.head_dim), dtype=k.dtype)
            k, v = [FUNCTIONS["cat"]([x, nothing], 2) for x in (k, v)]
            mask, ignored = [None if m is None else _F["pad"](m, (0, 1)) for m in (mask, ignored)]
        if ignored is not None:
            ignored = ignored.reshape(batch, 1, 1, -1)
            mask = ignored if mask is None else mask + ignored
        drop = self.dropout if self.training else 0.0
        weights = None
        if need_weights:
            scores = (q / math.sqrt(self.head_dim)) @ k.transpose(-2, -1)
            weights = _F["softmax"](scores if mask is None else scores + mask, -1)
            weights = _F["dropout"](weights, drop) if drop else weights
            out = weights @ v
        else:
            out = _F["scaled_dot_product_attention"](q, k, v, mask, drop)
        out = self.out_proj(out.permute(2, 0, 1, 3).reshape(steps, batch, self.embed_dim))
        if weights is not None and average_attn_weights:
            weights = weights.mean(1)
        if alone:
            return out.squeeze(1), None if weights is None else weights.squeeze(0)
        return out.transpose(0, 1) if self.batch_first else out, weights


def _check_attention(self: Any, query: Any, key: Any, value: Any, ignored: Any, mask: Any) -> None:
    """PyTorch's words for operands that do not fit each other."""
    kinds = ("unbatched", 2) if query.ndim == 2 else ("batched", 3)
    if not key.ndim == value.ndim == query.ndim:
        raise AssertionError(
            f"For {kinds[0]} ({kinds[1]}-D) `query`, expected `key` and `value` to be {kinds[1]}-D but found "
            f"{key.ndim}-D and {value.ndim}-D tensors respectively"
        )
    if key.shape[:-1] != value.shape[:-1]:
        raise AssertionError(f"key's sequence and batch dims {key.shape[:-1]} do not match value's {value.shape[:-1]}")
    if self._qkv_same_embed_dim and key.shape != value.shape:
        raise AssertionError(f"key shape {key.shape} does not match value shape {value.shape}")
    steps = key.shape[1 if self.batch_first and key.ndim == 3 else 0]
    if ignored is not None:
        if ignored.ndim != query.ndim - 1:
            raise AssertionError(
                f"For {kinds[0]} ({kinds[1]}-D) `query`, expected `key_padding_mask` to be `None` or {kinds[1] - 1}-D "
                f"but found {ignored.ndim}-D tensor instead"
            )
        if ignored.shape[-1] != steps:
            raise AssertionError(f"Expected key_padded_mask.shape[{ignored.ndim - 1}] to be {steps}, but got "
                                 f"{ignored.shape[-1]}")  # fmt: skip
    for name, given in (("attn_mask", mask), ("key_padding_mask", ignored)):
        if given is not None and given._dtype.kind not in "bf":
            raise AssertionError(f"only bool and floating types of {name} are supported")


def _activation(given: Any) -> Any:
    if not isinstance(given, str):
        return given
    if given not in ("relu", "gelu"):
        raise RuntimeError(f"activation should be relu/gelu, not {given}")
    return _F[given]


class TransformerEncoderLayer(Module):
    """Attention to itself, and a network of two layers."""

    activation: Any
    norm_first: bool

    def __init__(
        self, d_model: int, nhead: int, dim_feedforward: int = 2048, dropout: float = 0.1, activation: Any = "relu",
        layer_norm_eps: float = 1e-5, batch_first: bool = False, norm_first: bool = False, bias: bool = True,
        device: Any = None, dtype: Any = None,
    ) -> None:  # fmt: skip
        super().__init__()
        made = {"dtype": dtype, "device": device}
        self.self_attn: Any = MultiheadAttention(d_model, nhead, dropout, bias=bias, batch_first=batch_first, **made)
        _two_layers(self, d_model, dim_feedforward, dropout, layer_norm_eps, bias, 2, made)
        self.norm_first, self.activation = norm_first, _activation(activation)

    def forward(self, src: Any, src_mask: Any = None, src_key_padding_mask: Any = None, is_causal: bool = False) -> Any:
        x = src
        if self.norm_first:
            x = x + self._sa_block(self.norm1(x), src_mask, src_key_padding_mask, is_causal)
            return x + self._ff_block(self.norm2(x))
        x = self.norm1(x + self._sa_block(x, src_mask, src_key_padding_mask, is_causal))
        return self.norm2(x + self._ff_block(x))

    def _sa_block(self, x: Any, attn_mask: Any, key_padding_mask: Any, is_causal: bool = False) -> Any:
        return self.dropout1(_attended(self.self_attn, x, x, attn_mask, key_padding_mask))

    def _ff_block(self, x: Any) -> Any:
        return self.dropout2(self.linear2(self.dropout(self.activation(self.linear1(x)))))


def _attended(attention: Any, x: Any, memory: Any, mask: Any, ignored: Any) -> Any:
    return attention(x, memory, memory, attn_mask=mask, key_padding_mask=ignored, need_weights=False)[0]


def _two_layers(
    self: Any, width: int, inner: int, dropout: float, eps: float, bias: bool, count: int, made: Any
) -> None:
    """The network of a layer, its norms and dropouts, in PyTorch's order."""
    self.linear1 = Linear(width, inner, bias=bias, **made)
    self.dropout = SIMPLE["Dropout"](dropout)
    self.linear2 = Linear(inner, width, bias=bias, **made)
    for i in range(1, count + 1):
        setattr(self, f"norm{i}", LayerNorm(width, eps=eps, bias=bias, **made))
    for i in range(1, count + 1):
        setattr(self, f"dropout{i}", SIMPLE["Dropout"](dropout))


class TransformerDecoderLayer(Module):
    """Attention to itself and to a memory, and a network of two layers."""

    activation: Any
    norm_first: bool

    def __init__(
        self, d_model: int, nhead: int, dim_feedforward: int = 2048, dropout: float = 0.1, activation: Any = "relu",
        layer_norm_eps: float = 1e-5, batch_first: bool = False, norm_first: bool = False, bias: bool = True,
        device: Any = None, dtype: Any = None,
    ) -> None:  # fmt: skip
        super().__init__()
        made = {"dtype": dtype, "device": device}
        self.self_attn: Any = MultiheadAttention(d_model, nhead, dropout, bias=bias, batch_first=batch_first, **made)
        attention = MultiheadAttention(d_model, nhead, dropout, bias=bias, batch_first=batch_first, **made)
        self.multihead_attn: Any = attention
        _two_layers(self, d_model, dim_feedforward, dropout, layer_norm_eps, bias, 3, made)
        self.norm_first, self.activation = norm_first, _activation(activation)

    def forward(
        self, tgt: Any, memory: Any, tgt_mask: Any = None, memory_mask: Any = None,
        tgt_key_padding_mask: Any = None, memory_key_padding_mask: Any = None, tgt_is_causal: bool = False,
        memory_is_causal: bool = False,
    ) -> Any:  # fmt: skip
        x = tgt
        if self.norm_first:
            x = x + self._sa_block(self.norm1(x), tgt_mask, tgt_key_padding_mask)
            x = x + self._mha_block(self.norm2(x), memory, memory_mask, memory_key_padding_mask)
            return x + self._ff_block(self.norm3(x))
        x = self.norm1(x + self._sa_block(x, tgt_mask, tgt_key_padding_mask))
        x = self.norm2(x + self._mha_block(x, memory, memory_mask, memory_key_padding_mask))
        return self.norm3(x + self._ff_block(x))

    def _sa_block(self, x: Any, mask: Any, ignored: Any) -> Any:
        return self.dropout1(_attended(self.self_attn, x, x, mask, ignored))

    def _mha_block(self, x: Any, memory: Any, mask: Any, ignored: Any) -> Any:
        return self.dropout2(_attended(self.multihead_attn, x, memory, mask, ignored))

    def _ff_block(self, x: Any) -> Any:
        return self.dropout3(self.linear2(self.dropout(self.activation(self.linear1(x)))))


class TransformerEncoder(Module):
    """Copies of a layer, one after the other."""

    norm: Any
    num_layers: int

    def __init__(
        self, encoder_layer: Any, num_layers: int, norm: Any = None, enable_nested_tensor: bool = True,
        mask_check: bool = True,
    ) -> None:  # fmt: skip
        super().__init__()
        self.layers: ModuleList = ModuleList([copy.deepcopy(encoder_layer) for _ in range(num_layers)])
        self.num_layers, self.norm = num_layers, norm

    def forward(self, src: Any, mask: Any = None, src_key_padding_mask: Any = None, is_causal: Any = None) -> Any:
        for layer in self.layers:
            src = layer(src, src_mask=mask, src_key_padding_mask=src_key_padding_mask)
        return src if self.norm is None else self.norm(src)


class TransformerDecoder(Module):
    """Copies of a layer, one after the other."""

    norm: Any
    num_layers: int

    def __init__(self, decoder_layer: Any, num_layers: int, norm: Any = None) -> None:
        super().__init__()
        self.layers: ModuleList = ModuleList([copy.deepcopy(decoder_layer) for _ in range(num_layers)])
        self.num_layers, self.norm = num_layers, norm

    def forward(
        self, tgt: Any, memory: Any, tgt_mask: Any = None, memory_mask: Any = None,
        tgt_key_padding_mask: Any = None, memory_key_padding_mask: Any = None, tgt_is_causal: Any = None,
        memory_is_causal: bool = False,
    ) -> Any:  # fmt: skip
        for layer in self.layers:
            tgt = layer(tgt, memory, tgt_mask, memory_mask, tgt_key_padding_mask, memory_key_padding_mask)
        return tgt if self.norm is None else self.norm(tgt)


class Transformer(Module):
    """Encoder and decoder. A. Vaswani et al. (2017)."""

    batch_first: bool
    d_model: int
    nhead: int

    def __init__(
        self, d_model: int = 512, nhead: int = 8, num_encoder_layers: int = 6, num_decoder_layers: int = 6,
        dim_feedforward: int = 2048, dropout: float = 0.1, activation: Any = "relu", custom_encoder: Any = None,
        custom_decoder: Any = None, layer_norm_eps: float = 1e-5, batch_first: bool = False, norm_first: bool = False,
        bias: bool = True, device: Any = None, dtype: Any = None,
    ) -> None:  # fmt: skip
        super().__init__()
        settings = (d_model, nhead, dim_feedforward, dropout, activation, layer_norm_eps, batch_first, norm_first, bias)
        made = {"dtype": dtype, "device": device}

        def stack(given: Any, kind: type, layer: type, count: int) -> Any:
            norm = LayerNorm(d_model, eps=layer_norm_eps, bias=bias, **made)
            return kind(layer(*settings, **made), count, norm) if given is None else given

        self.encoder: Any = stack(custom_encoder, TransformerEncoder, TransformerEncoderLayer, num_encoder_layers)
        self.decoder: Any = stack(custom_decoder, TransformerDecoder, TransformerDecoderLayer, num_decoder_layers)
        for x in self.parameters():
            if x.ndim > 1:
                init.xavier_uniform_(x)
        self.d_model, self.nhead, self.batch_first = d_model, nhead, batch_first

    def forward(
        self, src: Any, tgt: Any, src_mask: Any = None, tgt_mask: Any = None, memory_mask: Any = None,
        src_key_padding_mask: Any = None, tgt_key_padding_mask: Any = None, memory_key_padding_mask: Any = None,
        src_is_causal: Any = None, tgt_is_causal: Any = None, memory_is_causal: bool = False,
    ) -> Any:  # fmt: skip
        axis = 0 if self.batch_first else 1
        if src.ndim == 3 and src.shape[axis] != tgt.shape[axis]:
            raise RuntimeError("the batch number of src and tgt must be equal")
        if src.shape[-1] != self.d_model or tgt.shape[-1] != self.d_model:
            raise RuntimeError("the feature number of src and tgt must be equal to d_model")
        memory = self.encoder(src, src_mask, src_key_padding_mask)
        return self.decoder(tgt, memory, tgt_mask, memory_mask, tgt_key_padding_mask, memory_key_padding_mask)

    @staticmethod
    def generate_square_subsequent_mask(sz: int, device: Any = None, dtype: Any = None) -> Any:
        """Zeros up to each step, minus infinity behind it."""
        made = np.triu(np.full((sz, sz), -np.inf), 1)
        return FUNCTIONS["tensor"](made, dtype=FUNCTIONS["zeros"](0).dtype if dtype is None else dtype, device=device)


class _Output(NamedTuple):
    output: Any
    loss: Any


class AdaptiveLogSoftmaxWithLoss(Module):
    """A softmax over many classes that are sorted by how frequent they are. E. Grave et al. (2017)."""

    cutoffs: list[Any]
    div_value: float
    head_bias: bool
    in_features: int
    n_classes: int
    n_clusters: int

    def __init__(
        self, in_features: int, n_classes: int, cutoffs: Any, div_value: float = 4.0, head_bias: bool = False,
        device: Any = None, dtype: Any = None,
    ) -> None:  # fmt: skip
        super().__init__()
        ends = list(cutoffs)
        if not ends:
            raise ValueError("cutoffs should be a sequence of length larger than 0")
        if ends != sorted(ends) or min(ends) <= 0 or max(ends) > n_classes - 1 or len(set(ends)) != len(ends):
            raise ValueError(
                "cutoffs should be a sequence of unique, positive integers sorted in an increasing order, where each "
                "value is between 1 and n_classes-1"
            )
        made = {"dtype": dtype, "device": device}
        self.in_features, self.n_classes, self.cutoffs = in_features, n_classes, [*ends, n_classes]
        self.div_value, self.head_bias = div_value, head_bias
        self.shortlist_size, self.n_clusters = self.cutoffs[0], len(ends)
        self.head: Linear = Linear(in_features, self.shortlist_size + self.n_clusters, bias=head_bias, **made)
        self.tail: ModuleList = ModuleList()
        for i in range(self.n_clusters):
            inner = int(in_features // div_value ** (i + 1))
            size = self.cutoffs[i + 1] - self.cutoffs[i]
            inside = Linear(in_features, inner, bias=False, **made), Linear(inner, size, bias=False, **made)
            self.tail.append(Sequential(*inside))

    def forward(self, input_: Any, target_: Any) -> Any:
        """The log-probabilities of the targets, and minus their mean."""
        if target_.ndim not in (0, 1) or input_.ndim != target_.ndim + 1:
            raise RuntimeError("0D or 1D target tensor expected, multi-target not supported")
        if target_.ndim and input_.shape[0] != target_.shape[0]:
            raise RuntimeError("Input and target should have the same size in the batch dimension.")
        labels = target_.reshape(-1)
        if labels.min().item() < 0 or labels.max().item() >= self.n_classes:
            raise RuntimeError(
                f"Target values should be in [0, {self.n_classes - 1}], but values in range "
                f"[{labels.min().item()}, {labels.max().item()}] were found. "
            )
        found = {int(n) for n in np.searchsorted(self.cutoffs[:-1], looked(labels), side="right")}
        rows = self._rows(input_.reshape(-1, self.in_features), found)
        output = rows.gather(1, labels.unsqueeze(1)).squeeze(1)
        return _Output(output if target_.ndim else output.squeeze(0), -output.mean())

    def log_prob(self, input: Any) -> Any:
        """The log-probabilities of all classes."""
        return self._rows(input, set(range(self.n_clusters + 1)))

    def _rows(self, input: Any, wanted: set[int]) -> Any:
        """The log-probabilities of classes, of clusters that nobody asks for zeros: these get no gradient."""
        first = _F["log_softmax"](self.head(input), 1)
        parts = [first[:, : self.shortlist_size]]
        for i, cluster in enumerate(self.tail):
            if i + 1 in wanted:
                place = self.shortlist_size + i
                parts.append(_F["log_softmax"](cluster(input), 1) + first[:, place : place + 1])
            else:
                size = self.cutoffs[i + 1] - self.cutoffs[i]
                parts.append(FUNCTIONS["zeros"]((input.shape[0], size), dtype=input.dtype))
        return FUNCTIONS["cat"](parts, 1)

    def predict(self, input: Any) -> Any:
        """The most probable classes."""
        return self.log_prob(input).argmax(1)
