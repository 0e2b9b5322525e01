"""Scaled dot product attention."""

from __future__ import annotations

from adjoint import errors
from adjoint.primitives.table import CONTRACTION, Shape, broadcast_shapes, declare, same_dtype


def _attention_shape(q: Shape, k: Shape, v: Shape, *bias: Shape, scale: float, causal: bool) -> Shape:
    n = len(q) - 2  # leading axes, which are the same
    if n < 0 or not (q[:n] == k[:-2] == v[:-2] and q[n + 1 :] == k[n + 1 :] and k[n] == v[n] > 0):
        raise errors.ShapeError(
            f"attention: expected a query (..., L, E), a key (..., S, E) and a value (..., S, V); received "
            f"{q}, {k} and {v}"
        )
    whole = (*q[: n + 1], k[n])
    for given in bias:
        if len(given) != len(whole) or broadcast_shapes(given, whole) != whole:
            raise errors.ShapeError(f"attention: a bias of shape {given} does not broadcast to scores {whole}")
    return (*q[: n + 1], v[n + 1])


# softmax(scale q k^T + bias) v, where a causal one lets query i see keys up to i; a query that sees none gets zeros
declare("attention", CONTRACTION, "q k v *bias", "scale causal", shape=_attention_shape, dtype=same_dtype)
declare(
    "attention_pullback",
    CONTRACTION,
    "g q k v y *bias",
    "scale causal",
    results=3,
    shape=lambda g, q, k, v, out, *bias, **_: [q, k, v],
    dtype=lambda *dtypes, **_: [same_dtype(*dtypes)] * 3,
)
