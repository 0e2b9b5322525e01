"""Derivatives of scaled dot product attention.

A. Vaswani et al., Attention Is All You Need (2017), equation 1; the pullback is that of T. Dao et al., FlashAttention
(2022), appendix B.2: leaves make the weights again, and keep none.
"""

from __future__ import annotations

import math
from typing import Any

from adjoint.rules.batching import along_axes
from adjoint.rules.records import Composed, Record


def _T(B: Any, x: Any) -> Any:
    n = len(x.shape)
    return B.permute_dims(x, axes=(*range(n - 2), n - 1, n - 2))


def _weights(B: Any, q: Any, k: Any, bias: Any, scale: float, causal: bool) -> Any:
    """The softmax of the scores, zeros where all of them are -inf."""
    scores = B.matmul(B.multiply(q, scale), _T(B, k))
    for given in bias:
        scores = B.add(scores, given)
    if causal:
        ones = B.full(shape=tuple(scores.shape[-2:]), value=1, dtype=B.dtype_of(q))
        scores = B.where(B.equal(B.tril(ones, k=0), 1), scores, -math.inf)
    axis = (len(scores.shape) - 1,)
    top = B.detach(B.max(scores, axis=axis, keepdims=True))
    powers = B.exp(B.subtract(scores, B.where(B.isfinite(top), top, 0.0)))
    total = B.sum(powers, axis=axis, keepdims=True)
    return B.divide(powers, B.where(B.equal(total, 0), 1.0, total))


def _attention_definition(B: Any, q: Any, k: Any, v: Any, *bias: Any, scale: float, causal: bool) -> Any:
    return B.matmul(_weights(B, q, k, bias, scale, causal), v)


def _gradients(
    B: Any, g: Any, q: Any, k: Any, v: Any, out: Any, bias: Any, scale: float, causal: bool
) -> tuple[Any, ...]:
    """Those of q, k, v and of the scores."""
    weights = _weights(B, q, k, bias, scale, causal)
    pulled = B.matmul(g, _T(B, v))
    mean = B.sum(B.multiply(g, out), axis=(len(q.shape) - 1,), keepdims=True)
    scores = B.multiply(weights, B.subtract(pulled, mean))
    scaled = B.multiply(scores, scale)
    return B.matmul(scaled, k), B.matmul(_T(B, scaled), q), B.matmul(_T(B, weights), g), scores


def _attention_pullback_definition(
    B: Any, g: Any, q: Any, k: Any, v: Any, out: Any, *bias: Any, scale: float, causal: bool
) -> tuple[Any, ...]:
    return _gradients(B, g, q, k, v, out, bias, scale, causal)[:3]


def _attention(
    B: Any, g: Any, wanted: tuple[int, ...], q: Any, k: Any, v: Any, out: Any, bias: Any, scale: float, causal: bool
) -> tuple[Any, ...]:
    if 3 in wanted:  # the gradients of scores have to be there at once
        pulled = _gradients(B, g, q, k, v, out, bias, scale, causal)
    else:
        pulled = B.attention_pullback(g, q, k, v, out, *bias, scale=scale, causal=causal)
    return tuple([pulled[i] for i in wanted])


def _operations(operands: Any, result: Any, parameters: Any) -> int:
    q, k, v = operands[:3]
    return 2 * math.prod(q[:-1]) * k[-2] * (q[-1] + v[-1])  # type: ignore[no-any-return]


def _pullback_operations(operands: Any, result: Any, parameters: Any) -> int:
    """The scores again, and a product for each operand of a product."""
    q, k, v = operands[1:4]
    return 2 * math.prod(q[:-1]) * k[-2] * (3 * q[-1] + 2 * v[-1])  # type: ignore[no-any-return]


# in batches, the examples are heads
RECORDS: dict[str, Record] = {
    "attention": Composed(_attention_definition, pullback=_attention, batching=along_axes, operations=_operations),
    "attention_pullback": Composed(
        _attention_pullback_definition, batching=along_axes, operations=_pullback_operations
    ),
}
