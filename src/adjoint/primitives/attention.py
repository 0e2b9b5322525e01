"""Scaled dot product attention."""

from __future__ import annotations

from adjoint import errors
from adjoint.primitives.table import CONTRACTION, Shape, broadcast_shapes, declare, same_dtype


def _attention_shape(q: Shape, k: Shape, v: Shape, *bias: Shape, scale: float, causal: bool) -> Shape:
    lead = q[:-2]
    fits = len(q) > 1 and k[:-2] == lead and v[:-2] == lead and q[-1] == k[-1] and k[-2] == v[-2] > 0
    if not fits:
        raise errors.ShapeError(
            f"attention: expected a query (..., L, E), a key (..., S, E) and a value (..., S, V); received "
            f"{q}, {k} and {v}"
        )
    whole = (*lead, q[-2], k[-2])
    for given in bias:
        if len(given) != len(whole) or broadcast_shapes(given, whole) != whole:
            raise errors.ShapeError(f"attention: a bias of shape {given} does not broadcast to scores {whole}")
    return (*lead, q[-2], v[-1])


# softmax(scale q k^T + bias) v, where a causal one lets query i see keys up to i; a query that sees none gets zeros
declare("attention", CONTRACTION, "q k v *bias", "scale causal", shape=_attention_shape, dtype=same_dtype)
declare(
    "attention_pullback",
    CONTRACTION,
    "g q k v out *bias",
    "scale causal",
    results=3,
    shape=lambda g, q, k, v, out, *bias, **_: [q, k, v],
    dtype=lambda *dtypes, **_: [same_dtype(*dtypes)] * 3,
)
