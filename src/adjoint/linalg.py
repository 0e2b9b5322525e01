"""Linear algebra over stacks of matrices: the last two axes are the matrices."""

from __future__ import annotations

import math
from typing import Any, TypeVar

from adjoint import dtypes, errors
from adjoint.backend import Backend
from adjoint.functions.creation import as_tensors, inexact, integers
from adjoint.functions.manipulation import expand_dims, squeeze
from adjoint.functions.products import matmul, outer, tensordot, vecdot
from adjoint.functions.reductions import as_axes, as_axis, as_flag, max, min, sum
from adjoint.tensor import Axis, Tensor, cast, run

B = TypeVar("B", bound=Backend)

__all__ = [
    "cholesky", "det", "inv", "matmul", "matrix_norm", "matrix_transpose", "norm", "outer", "solve", "tensordot",
    "vecdot", "vector_norm",
]  # fmt: skip


def _square(value: Any, name: str) -> Tensor[Any]:
    x = inexact(value, name)
    if x.ndim < 2 or x.shape[-1] != x.shape[-2]:
        raise errors.NotSquareError(f"{name}: expected square matrices, shape (..., n, n); received {x.shape}")
    return x


def matrix_transpose(x: Tensor[B], /) -> Tensor[B]:
    """The transposes of a stack of matrices."""
    return x.mT


def inv(x: Tensor[B], /) -> Tensor[B]:
    """The inverses. Raises NotSquareError for other than square matrices, SingularError for a singular one.

    >>> import adjoint as ad
    >>> ad.linalg.inv(ad.tensor([[2.0, 0.0], [0.0, 4.0]])).tolist()
    [[0.5, 0.0], [0.0, 0.25]]
    """
    return run("inv", (_square(x, "inv"),))  # type: ignore[no-any-return]


def det(x: Tensor[B], /) -> Tensor[B]:
    """The determinants; the gradient is right also for singular matrices.

    Raises NotSquareError for other than square matrices.
    """
    return run("det", (_square(x, "det"),))  # type: ignore[no-any-return]


def cholesky(x: Tensor[B], /, *, upper: bool = False) -> Tensor[B]:
    """The lower triangular L with x = L L^H of positive definite matrices, or L^H if `upper`.

    Only the Hermitian part of x counts, and its lower triangle is read. The gradient is Hermitian.
    Raises NotSquareError for other than square matrices, SingularError where one is not positive definite.
    """
    lower = run("cholesky", (_square(x, "cholesky"),))
    if not upper:
        return lower  # type: ignore[no-any-return]
    turned = lower.mT
    return run("conj", (turned,)) if turned.dtype.kind == "c" else turned  # type: ignore[no-any-return]


def solve(a: Tensor[B], b: Any, /) -> Tensor[B]:
    """The x of a x = b: for a vector b if it has one axis, else for stacks of matrices.

    Raises NotSquareError for an a of other than square matrices, ShapeError where sizes do not fit,
    SingularError for a singular a.

    >>> import adjoint as ad
    >>> ad.linalg.solve(ad.tensor([[2.0, 0.0], [0.0, 4.0]]), ad.tensor([2.0, 2.0])).tolist()
    [1.0, 0.5]
    """
    a, b = as_tensors([a, b], "solve")
    a, b = _square(a, "solve"), inexact(b, "solve")
    if not b.ndim:
        raise errors.ShapeError("solve: the right-hand side has no axes; expected a vector or matrices")
    if b.shape[-2:][0] != a.shape[-1]:
        raise errors.ShapeError(f"solve: a right-hand side of shape {b.shape} does not fit matrices of shape {a.shape}")
    if b.ndim == 1:
        return squeeze(run("solve", (a, expand_dims(b, 1))), -1)
    return run("solve", (a, b))  # type: ignore[no-any-return]


def vector_norm(x: Tensor[B], /, *, axis: Axis = None, keepdims: bool = False, ord: float = 2) -> Tensor[B]:
    """The norm of vectors along axes, or of all elements: (sum |x|^ord)^(1/ord); max for inf, count for 0.

    The gradient at the origin is 0. Raises AxisError for an axis that is not there.
    """
    x = inexact(x, "vector_norm")
    axes, keepdims = as_axes(axis, x.ndim, "vector_norm"), as_flag(keepdims, "vector_norm")
    if isinstance(ord, bool) or not isinstance(ord, (int, float)):
        raise errors.ArgumentTypeError(f"vector_norm: ord is a number, received {errors.shown(ord)}")
    if x.dtype is dtypes.float16:  # powers and sums overflow long before the norm does
        wide = vector_norm(cast(x, dtypes.float32), axis=axes, keepdims=keepdims, ord=ord)
        return cast(wide, dtypes.float16)
    if ord == 2:
        return run("vector_norm", (x,), axis=axes, keepdims=keepdims)  # type: ignore[no-any-return]
    size = run("abs", (x,))
    if ord == math.inf:
        return max(size, axes, keepdims=keepdims)
    if ord == -math.inf:
        return min(size, axes, keepdims=keepdims)
    if ord == 0:
        return sum((size != 0).astype(size.dtype), axes, keepdims=keepdims)
    if ord == 1:
        return sum(size, axes, keepdims=keepdims)
    # powers of zeros and the root of zero have infinite slopes; the norm's derivative is taken as 0 there
    none = size == 0
    powers = run("where", (none, math.inf if ord < 0 else 0.0, run("where", (none, 1.0, size)) ** ord))
    total = sum(powers, axes, keepdims=keepdims)
    empty = total == 0
    return run("where", (empty, total, run("where", (empty, 1.0, total)) ** (1 / ord)))  # type: ignore[no-any-return]


def matrix_norm(x: Tensor[B], /, *, keepdims: bool = False, ord: float | str = "fro") -> Tensor[B]:
    """The norm of matrices: "fro" (Frobenius), 1 and -1 (column sums), inf and -inf (row sums).

    Raises UnsupportedPrimitive for 2, -2 and "nuc", which need singular values.
    """
    x = inexact(x, "matrix_norm")
    if x.ndim < 2:
        raise errors.ShapeError(f"matrix_norm: expected matrices, received shape {x.shape}")
    rows, columns, keepdims = x.ndim - 2, x.ndim - 1, as_flag(keepdims, "matrix_norm")
    if ord == "fro":
        return vector_norm(x, axis=(rows, columns), keepdims=keepdims)
    if ord in (2, -2, "nuc"):
        raise errors.UnsupportedPrimitive(
            f"matrix_norm: ord={ord!r} needs singular values, which adjoint does not have yet; 'fro', 1, -1, inf and "
            "-inf need none, and without a gradient there is numpy.linalg.norm(x.numpy(), ord)"
        )
    if ord not in (1, -1, math.inf, -math.inf):
        raise errors.ArgumentError(f"matrix_norm: ord is 'fro', 1, -1, inf or -inf, received {errors.shown(ord)}")
    along, pick = (rows, max if ord == 1 else min) if ord in (1, -1) else (columns, max if ord == math.inf else min)
    sums = sum(run("abs", (x,)), along, keepdims=True)
    out = pick(sums, (rows, columns), keepdims=True)
    return out if keepdims else squeeze(out, (rows, columns))


def norm(x: Tensor[B], /, ord: float | str | None = None, *, axis: Axis = None, keepdims: bool = False) -> Tensor[B]:
    """As NumPy's: of all elements without `ord`, of vectors along one axis, of matrices over two.

    >>> import adjoint as ad
    >>> ad.linalg.norm(ad.tensor([3.0, 4.0])).item()
    5.0
    """
    x = inexact(x, "norm")
    axes, keepdims = as_axes(axis, x.ndim, "norm"), as_flag(keepdims, "norm")
    if ord is None:
        return vector_norm(x, axis=axes, keepdims=keepdims)
    if len(axes) == 1:
        if isinstance(ord, str):
            raise errors.ArgumentError(f"norm: ord={ord!r} is for matrices, not for vectors along axis {axes[0]}")
        return vector_norm(x, axis=axes, keepdims=keepdims, ord=ord)
    if len(axes) != 2:
        raise errors.ArgumentError(f"norm: ord={ord!r} needs one axis or two, received {len(axes)}")
    rows_columns = axes if axis is None else [as_axis(i, x.ndim, "norm") for i in integers(axis, "norm", "axes")]
    rest = [i for i in range(x.ndim) if i not in axes]
    out = matrix_norm(x.permute_dims((*rest, *rows_columns)), ord=ord)
    return expand_dims(out, axes) if keepdims else out
