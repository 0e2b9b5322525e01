"""Linear layers, embeddings and dropout."""

from __future__ import annotations

from typing import Any, TypeVar

from adjoint import errors
from adjoint.backend import Backend
from adjoint.functions.creation import as_number
from adjoint.functions.elementwise import where
from adjoint.functions.products import matmul
from adjoint.nn.arguments import real
from adjoint.random import bernoulli
from adjoint.tensor import Tensor

B = TypeVar("B", bound=Backend)


def linear(x: Tensor[B], weight: Tensor[B], bias: Tensor[B] | None = None) -> Tensor[B]:
    """x @ weight.mT + bias: x (..., inputs), weight (outputs, inputs), bias (outputs,).

    Raises ShapeError where sizes do not fit.
    """
    if weight.ndim != 2:
        raise errors.ShapeError(f"linear: weight is (outputs, inputs), received shape {weight.shape}")
    if not x.ndim or x.shape[-1] != weight.shape[1] or (bias is not None and bias.shape != weight.shape[:1]):
        raise errors.ShapeError(
            f"linear: x is (..., inputs), weight (outputs, inputs) and bias (outputs,); received {x.shape}, "
            f"{weight.shape} and {None if bias is None else bias.shape}"
        )
    out = matmul(x, weight.mT)
    return out if bias is None else out + bias


def dropout(x: Tensor[B], p: float = 0.5, training: bool = True) -> Tensor[B]:
    """Zeros in place of elements, each with probability p, and the others divided by 1 - p. Unchanged if not training.

    Which ones `ad.random` draws: `ad.random.seed` starts the sequence. Raises ArgumentError unless p is from 0 to 1,
    DtypeError for integers.

    >>> import adjoint as ad
    >>> ad.nn.dropout(ad.ones(2), 0.5, training=False).tolist()
    [1.0, 1.0]
    """
    x, p = real(x, "dropout"), as_number(p, "dropout", "p")
    if not 0 <= p <= 1:
        raise errors.ArgumentError(f"dropout: p is a probability, received {errors.shown(p)}")
    return _dropped(x, x.shape, p) if training and p > 0 else x


def _dropped(x: Tensor[Any], shape: tuple[int, ...], p: float) -> Tensor[Any]:
    """With elements dropped as a random mask of a shape says, which broadcasts."""
    keep = bernoulli(1 - p, shape, device=x.device)
    return where(keep, x / (1 - p) if p < 1 else x, 0.0)
