"""Functions of complex numbers that adjoint has for real ones, in terms of others, as PyTorch has them."""

from __future__ import annotations

import math
from typing import Any

import adjoint as ad
from adjoint import nn


def silu(z: Any) -> Any:
    return z * nn.sigmoid(z)


def sinc(z: Any) -> Any:
    """sin(pi z) / (pi z), and near zero its series, whose slope there is no 0 / 0."""
    near = ad.abs(z) < 1e-4
    turned = math.pi * ad.where(near, 1.0, z)
    square = (math.pi * ad.where(near, z, 0.0)) ** 2
    return ad.where(near, 1.0 - square / 6.0 + square * square / 120.0, ad.sin(turned) / turned)


def logaddexp(x: Any, y: Any) -> Any:
    """The logarithm of a sum of exponentials, of which that with the larger real part is taken out."""
    first = ad.real(x) >= ad.real(y)
    large, less = ad.where(first, x, y), ad.where(first, y, x)
    same = ad.isinf(ad.real(large)) & (ad.real(large) == ad.real(less))  # whose difference is no number
    return large + ad.where(same, 0.0, ad.log1p(ad.exp(ad.where(same, 0.0, less - large))))


def logcumsumexp(z: Any, axis: int) -> Any:
    if not z.shape[axis]:
        return z * 1.0
    parts = [*ad.unstack(z, axis=axis)]
    for i in range(1, len(parts)):
        parts[i] = logaddexp(parts[i - 1], parts[i])
    return ad.stack(parts, axis=axis)


def rms_norm(z: Any, shape: tuple[int, ...], weight: Any, eps: float | None) -> Any:
    """As of real numbers, with the mean of the squares, which is complex."""
    eps = float(ad.finfo(z.dtype).eps) if eps is None else eps
    axes = tuple(range(z.ndim - len(shape), z.ndim))
    out = z / ad.sqrt(ad.mean(z * z, axis=axes, keepdims=True) + eps)
    return out if weight is None else out * weight


def triplet_margin_loss(
    anchor: Any, positive: Any, negative: Any, *, margin: float, p: float, eps: float, swap: bool, reduction: str
) -> Any:
    """As of real numbers, with absolute values of complex ones."""

    def far(x: Any, y: Any) -> Any:
        return ad.linalg.vector_norm(x - y + eps, axis=-1, ord=p)

    away = far(anchor, negative)
    if swap:
        away = ad.minimum(away, far(positive, negative))
    lost = nn.relu(margin + far(anchor, positive) - away)
    return lost if reduction == "none" else ad.sum(lost) if reduction == "sum" else ad.mean(lost)
