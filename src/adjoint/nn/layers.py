"""Linear layers, embeddings and dropout."""

from __future__ import annotations

from typing import TypeVar

from adjoint import errors
from adjoint.backend import Backend
from adjoint.functions.products import matmul
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
