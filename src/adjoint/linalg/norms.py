"""Sizes of vectors and matrices, and what follows from singular values: condition and rank."""

from __future__ import annotations

import math
from typing import Any, Never

from adjoint import dtypes, errors
from adjoint.functions.arguments import (
    as_axes,
    as_flag,
    as_number,
    axes_in_order,
    explained,
    inexact,
    is_array,
    keyword_error,
    matrices_of,
    relative,
    square,
)
from adjoint.functions.reduction import max, min, sum
from adjoint.functions.shape import expand_dims, squeeze
from adjoint.irrational import quotient_beside
from adjoint.linalg.factors import by_lower, svdvals
from adjoint.linalg.products import inv
from adjoint.operands import cast, run
from adjoint.tensor import Axis, Operand, Tensor
from adjoint.variables import B


@explained
def vector_norm(
    x: Operand[B], /, *, axis: Axis = None, keepdims: bool = False, ord: float = 2, **unknown: Never
) -> Tensor[B]:
    """The norm of vectors along axes, or of all elements: (sum |x|^ord)^(1/ord); max for inf, count for 0.

    The gradient at the origin is 0. Raises AxisError for an axis that is not there.
    """
    if unknown:
        raise keyword_error(vector_norm, unknown)
    x = inexact(x, "vector_norm")
    axes, keepdims = as_axes(axis, x.ndim, "vector_norm"), as_flag(keepdims, "vector_norm")
    ord = as_number(ord, "vector_norm", "ord")
    wide = dtypes.summing(x.dtype)
    if wide is not x.dtype:  # powers and sums overflow, or round, long before the norm does
        return cast(vector_norm(cast(x, wide), axis=axes, keepdims=keepdims, ord=ord), x.dtype)
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
    powers = _off_zero(size, ord, math.inf if ord < 0 else 0.0)
    return _off_zero(sum(powers, axes, keepdims=keepdims), quotient_beside(1.0, ord, size), 0.0)


def _off_zero(x: Tensor[Any], exponent: Any, at_zero: float) -> Tensor[Any]:
    """x^exponent, and a constant where x is zero."""
    power = run("replace_where_equal", (x, x), target=0, value=1.0) ** exponent
    return run("replace_where_equal", (power, x), target=0, value=at_zero)  # type: ignore[no-any-return]


@explained
def matrix_norm(x: Operand[B], /, *, keepdims: bool = False, ord: float | str = "fro", **unknown: Never) -> Tensor[B]:
    """The norm of matrices: of their elements ("fro"), column sums (1, -1), row sums (inf, -inf), or singular values.

    Of these 2 is the largest, -2 the smallest, and "nuc" the sum. Where singular values are equal, the largest or
    smallest share the gradient; that of a singular value which is zero is 0. Real for complex x.
    Raises ShapeError for what has fewer than two axes, ArgumentError for any other `ord`.

    >>> import adjoint as ad
    >>> ad.linalg.matrix_norm(ad.tensor([[3.0, 0.0], [0.0, 4.0]]), ord="nuc").item()
    7.0
    """
    if unknown:
        raise keyword_error(matrix_norm, unknown)
    x = matrices_of(x, "matrix_norm")
    rows, columns, keepdims = x.ndim - 2, x.ndim - 1, as_flag(keepdims, "matrix_norm")
    if is_array(ord):
        ord = as_number(ord, "matrix_norm", "ord")
    if ord == "fro":
        return vector_norm(x, axis=(rows, columns), keepdims=keepdims)
    if ord in (2, -2, "nuc"):
        values = svdvals(x)
        pick: Any = sum if ord == "nuc" else max if ord == 2 else min
        out: Tensor[B] = pick(values, -1)
        return expand_dims(out, (rows, columns)) if keepdims else out
    if ord not in (1, -1, math.inf, -math.inf):
        raise errors.ArgumentError(
            f"matrix_norm: ord is 'fro', 'nuc', 1, -1, 2, -2, inf or -inf, received {errors.shown(ord)}"
        )
    along, pick_sum = (rows, max if ord == 1 else min) if ord in (1, -1) else (columns, max if ord == math.inf else min)
    sums = sum(run("abs", (x,)), along, keepdims=True)
    out = pick_sum(sums, (rows, columns), keepdims=True)
    return out if keepdims else squeeze(out, (rows, columns))


@explained
def norm(
    x: Operand[B], /, ord: float | str | None = None, axis: Axis = None, keepdims: bool = False, **unknown: Never
) -> Tensor[B]:
    """As NumPy's: of all elements without `ord`, of vectors along one axis, of matrices over two.

    >>> import adjoint as ad
    >>> ad.linalg.norm(ad.tensor([3.0, 4.0])).item()
    5.0
    """
    if unknown:
        raise keyword_error(norm, unknown)
    x = inexact(x, "norm")
    axes, keepdims = as_axes(axis, x.ndim, "norm"), as_flag(keepdims, "norm")
    if ord is None:
        return vector_norm(x, axis=axes, keepdims=keepdims)
    if len(axes) == 1:
        if isinstance(ord, str):
            raise errors.ArgumentError(
                f"norm: ord={errors.shown(ord)} is for matrices, not for vectors along axis {axes[0]}"
            )
        return vector_norm(x, axis=axes, keepdims=keepdims, ord=ord)
    if len(axes) != 2:
        raise errors.ArgumentError(f"norm: ord={errors.shown(ord)} needs one axis or two, received {len(axes)}")
    rows_columns = axes_in_order(axis, x.ndim, "norm")
    rest = [i for i in range(x.ndim) if i not in axes]
    out = matrix_norm(x.permute_dims((*rest, *rows_columns)), ord=ord)
    return expand_dims(out, axes) if keepdims else out


def cond(x: Operand[B], /, p: float | str | None = None) -> Tensor[B]:
    """The condition numbers: by singular values, the largest over the smallest (None or 2) or the other way (-2).

    For other orders, those of `matrix_norm`, the norm times the norm of the inverse. Infinite for a singular matrix, of
    which other orders raise SingularError. Raises NotSquareError for these if matrices are not square.

    >>> import adjoint as ad
    >>> ad.linalg.cond(ad.tensor([[2.0, 0.0], [0.0, 8.0]])).item()
    4.0
    """
    x = matrices_of(x, "cond")
    if is_array(p):
        p = as_number(p, "cond", "p")
    if p is None or p in (2, -2):
        values = svdvals(x)
        if not values.shape[-1]:
            raise errors.ShapeError(f"cond: expected matrices with elements, received shape {x.shape}")
        largest, smallest = values[..., 0], values[..., -1]
        return smallest / largest if p == -2 else largest / smallest
    x = square(x, "cond")
    return matrix_norm(x, ord=p) * matrix_norm(inv(x), ord=p)


def matrix_rank(
    x: Operand[B],
    /,
    tol: float | Tensor[Any] | None = None,
    hermitian: bool = False,
    *,
    rtol: float | Tensor[Any] | None = None,
) -> Tensor[B]:
    """How many singular values exceed `tol`, or `rtol` times the largest; int64, and without a gradient.

    Both are numbers, or tensors of numbers for each matrix; without them `rtol` is the larger of rows and columns times
    the dtype's epsilon. Of `hermitian` matrices the lower triangle is read. Raises ShapeError for what has fewer than
    two axes, ArgumentError for both bounds.

    >>> import adjoint as ad
    >>> ad.linalg.matrix_rank(ad.tensor([[1.0, 2.0], [2.0, 4.0]])).item()
    1
    """
    name = "matrix_rank"
    if tol is not None and rtol is not None:
        raise errors.ArgumentError(f"{name}: tol or rtol, not both")
    x = matrices_of(x, name, tol if rtol is None else rtol)
    x = by_lower(x, name) if as_flag(hermitian, name, "hermitian") else x
    values = svdvals(x)
    if not values.shape[-1]:
        return sum(values, -1).astype(dtypes.int64)
    bound = relative(rtol if tol is None else tol, x, name)
    if isinstance(bound, Tensor):
        bound = squeeze(bound, -1)
    return sum(values > (max(values, -1, keepdims=True) * bound if tol is None else bound), -1)
