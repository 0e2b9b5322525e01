"""What the functions of linear algebra take: matrices, in stacks, of floating numbers."""

from __future__ import annotations

import builtins
from typing import Any

import numpy as np

from adjoint import errors
from adjoint.functions.creation import as_number, inexact
from adjoint.functions.manipulation import expand_dims
from adjoint.operands import cast, operand
from adjoint.primitives import real_dtype
from adjoint.tensor import Tensor


def matrices_of(value: Any, name: str) -> Tensor[Any]:
    """An argument as a stack of matrices of a floating dtype; raises ShapeError for fewer than two axes."""
    x = inexact(value, name)
    if x.ndim < 2:
        raise errors.ShapeError(f"{name}: expected matrices, shape (..., m, n); received {x.shape}")
    return x


def square(value: Any, name: str) -> Tensor[Any]:
    """An argument as a stack of square matrices; raises NotSquareError for others."""
    x = inexact(value, name)
    if x.ndim < 2 or x.shape[-1] != x.shape[-2]:
        raise errors.NotSquareError(f"{name}: expected square matrices, shape (..., n, n); received {x.shape}")
    return x


def relative(rtol: Any, x: Tensor[Any], name: str) -> Any:
    """The tolerance for singular values of x: a number, or a tensor of shape (..., 1, 1)."""
    real = real_dtype(x.dtype)
    if rtol is None:
        return builtins.max(x.shape[-2:]) * float(np.finfo(real).eps)
    if isinstance(rtol, (Tensor, np.ndarray)):
        bound = cast(operand(rtol, x, name), real)
        return expand_dims(bound, (bound.ndim, bound.ndim + 1))
    return as_number(rtol, name, "rtol")
