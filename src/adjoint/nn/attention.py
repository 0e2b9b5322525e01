"""Scaled dot product attention."""

from __future__ import annotations

import math
from typing import Any

from adjoint import dtypes, errors
from adjoint.functions.arguments import as_flag, as_number, as_tensors, real
from adjoint.functions.contraction import matmul
from adjoint.functions.creation import made, ones
from adjoint.functions.elementwise import where
from adjoint.functions.shape import broadcast_to, repeat, tril
from adjoint.nn.layers import dropout
from adjoint.operands import cast, operand, run
from adjoint.primitives import broadcast_shapes
from adjoint.primitives.sizes import square_root, stands
from adjoint.tensor import Operand, Tensor
from adjoint.variables import B

NAME = "scaled_dot_product_attention"


def scaled_dot_product_attention(
    query: Operand[B],
    key: Operand[B],
    value: Operand[B],
    attn_mask: Any = None,
    *,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> Tensor[B]:
    """softmax(query @ key.mT * scale + mask) @ value. A. Vaswani et al., Attention Is All You Need (2017).

    Without dropout the scores are worked off in blocks, forward and backward: memory grows with the number of queries
    and of keys, not with their product, unless a mask of numbers needs a gradient.

    Parameters
    ----------
    query, key, value
        (..., L, E), (..., S, E) and (..., S, V); leading axes broadcast.
    attn_mask
        Broadcasts to (..., L, S): booleans, true where a query sees a key, or numbers that are added to the scores.
    dropout_p
        The probability with which a weight is dropped; the others grow to make up for it.
    is_causal
        Query i sees keys up to i only; not together with a mask.
    scale
        1 / sqrt(E) unless given.
    enable_gqa
        Several heads of queries share one of keys and values: axis -3 of key and value divides the query's.

    Returns
    -------
    (..., L, V), of the dtype that the three promote to. A query that sees no key gets zeros.

    Raises
    ------
    ShapeError, ArgumentError, DtypeError
        Shapes that do not fit; a mask and is_causal together; complex numbers.

    Examples
    --------
    >>> import adjoint as ad
    >>> x = ad.tensor([[1.0, 0.0], [0.0, 1.0]])
    >>> ad.nn.scaled_dot_product_attention(x, x, x, is_causal=True)[0].tolist()
    [1.0, 0.0]
    """
    given = query, key, value
    q, k, v = as_tensors([real(x, NAME, *given, attn_mask) for x in given], NAME)
    is_causal, dropout_p = as_flag(is_causal, NAME, "is_causal"), as_number(dropout_p, NAME, "dropout_p")
    if min(x.ndim for x in (q, k, v)) < 2:
        raise errors.ShapeError(f"{NAME}: expected (..., length, features), received {q.shape}, {k.shape}, {v.shape}")
    if as_flag(enable_gqa, NAME, "enable_gqa"):
        k, v = (_shared(q, x) for x in (k, v))
    try:
        lead = broadcast_shapes(q.shape[:-2], k.shape[:-2], v.shape[:-2])
    except errors.ShapeError as error:
        raise errors.ShapeError(f"{NAME}: leading axes: {error}") from None
    if q.shape[-1] != k.shape[-1] or k.shape[-2] != v.shape[-2]:
        raise errors.ShapeError(
            f"{NAME}: expected a query (..., L, E), a key (..., S, E) and a value (..., S, V); received {q.shape}, "
            f"{k.shape} and {v.shape}"
        )
    if not k.shape[-2]:
        return made(q.device, "full", shape=(*lead, q.shape[-2], v.shape[-1]), value=0, dtype=q.dtype)
    dtype, wide = q.dtype, dtypes.summing(q.dtype)
    q, k, v = (cast(x if x.shape[:-2] == lead else broadcast_to(x, (*lead, *x.shape[-2:])), wide) for x in (q, k, v))
    factor = 1 / square_root(max(1, q.shape[-1])) if scale is None else as_number(scale, NAME, "scale")
    factor = factor if stands(factor) else float(factor)
    bias = [] if attn_mask is None else [_bias(attn_mask, q, (*lead, q.shape[-2], k.shape[-2]), is_causal)]
    if dropout_p:
        return cast(_dropped(q, k, v, bias, dropout_p, is_causal, factor), dtype)
    return cast(run("attention", (q, k, v, *bias), scale=factor, causal=is_causal), dtype)


def _shared(q: Tensor[Any], x: Tensor[Any]) -> Tensor[Any]:
    """Heads of keys or values, each as often as there are queries' heads for it."""
    if min(q.ndim, x.ndim) < 3 or not x.shape[-3] or q.shape[-3] % x.shape[-3]:
        raise errors.ShapeError(
            f"{NAME}: with enable_gqa the heads of keys and values divide those of queries; received {x.shape} for "
            f"queries {q.shape}"
        )
    return repeat(x, q.shape[-3] // x.shape[-3], axis=x.ndim - 3)


def _bias(mask: Any, q: Tensor[Any], scores: tuple[int, ...], causal: bool) -> Tensor[Any]:
    """The mask as numbers to add, with as many axes as the scores."""
    if causal:
        raise errors.ArgumentError(f"{NAME}: attn_mask and is_causal exclude each other; combine the masks first")
    mask = operand(mask, q, NAME)
    try:
        fits = broadcast_shapes(mask.shape, scores) == scores
    except errors.ShapeError:
        fits = False
    if not fits:
        raise errors.ShapeError(f"{NAME}: a mask of shape {mask.shape} does not broadcast to the scores {scores}")
    if mask.dtype.kind == "b":
        mask = where(mask, 0.0, -math.inf)
    elif mask.dtype.kind not in dtypes.FLOATING:
        raise errors.DtypeError(f"{NAME}: a mask is of booleans or real floating numbers, received {mask.dtype}")
    return cast(mask, q.dtype).reshape((1,) * (len(scores) - mask.ndim) + mask.shape)


def _dropped(
    q: Tensor[Any], k: Tensor[Any], v: Tensor[Any], bias: list[Tensor[Any]], p: float, causal: bool, factor: float
) -> Tensor[Any]:
    """All weights at once, some of them dropped."""
    scores = matmul(q * factor, k.mT)
    for given in bias:
        scores = scores + given
    if causal:
        scores = where(tril(ones(scores.shape[-2:], device=q.device)) == 1, scores, -math.inf)
    seen = (scores.detach() > -math.inf).any(axis=-1, keepdims=True)
    weights = run("softmax", (where(seen, scores, 0.0),), axis=scores.ndim - 1)
    return matmul(dropout(where(seen, weights, 0.0), p), v)
