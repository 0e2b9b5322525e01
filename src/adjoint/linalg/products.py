"""Products of matrices, inverses, determinants, and the parts of a matrix."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple, Never, overload

from adjoint import errors
from adjoint.functions.arguments import as_integer, as_tensor, as_tensors, explained, keyword_error, square
from adjoint.functions.contraction import matmul
from adjoint.functions.reduction import sum as total
from adjoint.functions.shape import diagonal as diagonal_of
from adjoint.functions.shape import moveaxis, reshape, stack, unstack
from adjoint.operands import run
from adjoint.primitives import broadcast_shapes
from adjoint.tensor import Operand, Tensor
from adjoint.variables import B


class SlogdetResult(NamedTuple):
    """The sign of the determinant, or its phase, and the logarithm of its absolute value."""

    sign: Tensor[Any]
    logabsdet: Tensor[Any]


def inv(x: Operand[B], /) -> Tensor[B]:
    """The inverses. Raises NotSquareError for other than square matrices, SingularError for a singular one.

    >>> import adjoint as ad
    >>> ad.linalg.inv(ad.tensor([[2.0, 0.0], [0.0, 4.0]])).tolist()
    [[0.5, 0.0], [0.0, 0.25]]
    """
    return run("inv", (square(x, "inv"),))  # type: ignore[no-any-return]


def logdet(x: Operand[B], /) -> Tensor[B]:
    """The logarithms of determinants: nan for a negative one, -inf of a singular matrix; complex for complex x.

    As PyTorch's `logdet`. Of a singular matrix `backward` raises BackwardError. Raises NotSquareError for other than
    square matrices.

    >>> import adjoint as ad
    >>> ad.linalg.logdet(ad.eye(3)).item()
    0.0
    """
    sign, size = slogdet(x)
    if sign.dtype.kind == "c":
        return size + run("log", (sign,))  # type: ignore[no-any-return]
    return run("where", (sign < 0, math.nan, size))  # type: ignore[no-any-return]


def det(x: Operand[B], /) -> Tensor[B]:
    """The determinants; the first and second derivatives are right also for singular matrices.

    Raises NotSquareError for other than square matrices.
    """
    return run("det", (square(x, "det"),))  # type: ignore[no-any-return]


def slogdet(x: Operand[B], /) -> SlogdetResult:
    """The sign (or phase) of the determinants and the logarithm of their size, which does not overflow.

    Of a singular matrix they are 0 and -inf, and `backward` raises BackwardError. Raises NotSquareError for other
    than square matrices.

    >>> import adjoint as ad
    >>> ad.linalg.slogdet(ad.tensor([[0.0, 1.0], [1.0, 0.0]])).sign.item()
    -1.0
    """
    return SlogdetResult(*run("slogdet", (square(x, "slogdet"),)))


@overload
def multi_dot(arrays: Sequence[Tensor[B]], /) -> Tensor[B]: ...
@overload
def multi_dot(arrays: Sequence[Operand[Any]], /) -> Tensor[Any]: ...
def multi_dot(arrays: Sequence[Operand[Any]], /) -> Tensor[Any]:
    """The product of two or more matrices, in the order of fewest multiplications; the first and last may be vectors.

    Stacks broadcast. Raises ArgumentError for fewer than two, ShapeError where sizes do not fit.
    The order is that of T. Cormen et al., Introduction to Algorithms (2009), section 15.2.

    >>> import adjoint as ad
    >>> ad.linalg.multi_dot([ad.eye(2), ad.tensor([[1.0], [2.0]]), ad.tensor([3.0])]).tolist()
    [3.0, 6.0]
    """
    if not isinstance(arrays, (list, tuple)) or len(arrays) < 2:
        raise errors.ArgumentError(
            f"multi_dot: expected a list of two or more matrices, received {errors.shown(arrays)}"
        )
    tensors = as_tensors(arrays, "multi_dot")
    for i, x in enumerate(tensors):
        if x.ndim < (1 if i in (0, len(tensors) - 1) else 2):
            raise errors.ShapeError(f"multi_dot: expected matrices, or vectors at the ends; number {i} is {x.shape}")
    sizes = [1 if tensors[0].ndim == 1 else tensors[0].shape[-2]]
    sizes += [x.shape[-1 if x.ndim == 1 and i == 0 else -2 if x.ndim > 1 else 0] for i, x in enumerate(tensors)][1:]
    sizes.append(1 if tensors[-1].ndim == 1 else tensors[-1].shape[-1])
    return _multiplied(tensors, _splits(sizes), 0, len(tensors) - 1)


def _splits(sizes: list[int]) -> dict[tuple[int, int], int]:
    """Behind which factor each run of factors is best cut in two."""
    count = len(sizes) - 1
    costs: dict[tuple[int, int], int] = {(i, i): 0 for i in range(count)}
    splits: dict[tuple[int, int], int] = {}
    for length in range(1, count):
        for i in range(count - length):
            j = i + length
            found = [(costs[i, k] + costs[k + 1, j] + sizes[i] * sizes[k + 1] * sizes[j + 1], k) for k in range(i, j)]
            costs[i, j], splits[i, j] = min(found)
    return splits


def _multiplied(tensors: list[Tensor[Any]], splits: dict[tuple[int, int], int], i: int, j: int) -> Tensor[Any]:
    if i == j:
        return tensors[i]
    k = splits[i, j]
    return matmul(_multiplied(tensors, splits, i, k), _multiplied(tensors, splits, k + 1, j))


def kron(x: Operand[B], y: Any, /) -> Tensor[B]:
    """The Kronecker product: every element of x times all of y, in blocks, over all axes.

    >>> import adjoint as ad
    >>> ad.linalg.kron(ad.tensor([1.0, 10.0]), ad.tensor([1.0, 2.0])).tolist()
    [1.0, 2.0, 10.0, 20.0]
    """
    x, y = as_tensors([x, y], "kron")
    ndim = max(x.ndim, y.ndim)
    shapes = [(1,) * (ndim - t.ndim) + t.shape for t in (x, y)]
    left = reshape(x, [n for size in shapes[0] for n in (size, 1)])
    right = reshape(y, [n for size in shapes[1] for n in (1, size)])
    return reshape(left * right, [a * b for a, b in zip(*shapes, strict=True)])


@explained
def cross(x: Operand[B], y: Any, /, *, axis: int = -1, **unknown: Never) -> Tensor[B]:
    """The cross products of vectors of three elements along an axis, which counts from the end; the rest broadcasts.

    Raises ShapeError where the axis has another size or the others do not broadcast, AxisError for one that is not
    there.

    >>> import adjoint as ad
    >>> ad.linalg.cross(ad.tensor([1.0, 0.0, 0.0]), ad.tensor([0.0, 1.0, 0.0])).tolist()
    [0.0, 0.0, 1.0]
    """
    if unknown:
        raise keyword_error(cross, unknown)
    x, y = as_tensors([x, y], "cross")
    place = as_integer(axis, "cross", "axis")
    if place >= 0:  # of the longer operand
        place -= max(x.ndim, y.ndim)
    for t in (x, y):
        if not -t.ndim <= place < 0:
            raise errors.AxisError(f"cross: axis {axis} is out of range for a tensor of {t.ndim} axes")
        if t.shape[place] != 3:
            raise errors.ShapeError(f"cross: axis {axis} has 3 elements; received shapes {x.shape} and {y.shape}")
    try:
        broadcast_shapes(x.shape, y.shape)
    except errors.ShapeError as error:
        raise errors.ShapeError(f"cross: {error}") from None
    (x0, x1, x2), (y0, y1, y2) = (unstack(t, axis=place) for t in (x, y))
    parts = stack([x1 * y2 - x2 * y1, x2 * y0 - x0 * y2, x0 * y1 - x1 * y0])
    return moveaxis(parts, 0, place)


def diagonal(x: Operand[B], /, *, offset: int = 0) -> Tensor[B]:
    """The diagonals of matrices, or those `offset` places above, along the last axis.

    Raises ShapeError for fewer than two axes.

    >>> import adjoint as ad
    >>> ad.linalg.diagonal(ad.tensor([[1.0, 2.0], [3.0, 4.0]]), offset=1).tolist()
    [2.0]
    """
    x, k = as_tensor(x, "diagonal"), as_integer(offset, "diagonal", "offset")
    if x.ndim < 2:
        raise errors.ShapeError(f"diagonal: expected matrices, shape (..., m, n); received {x.shape}")
    return diagonal_of(x, k, -2, -1)


def trace(x: Operand[B], /, *, offset: int = 0, dtype: Any = None) -> Tensor[B]:
    """The sums of the diagonals of matrices, of the dtype that `sum` gives. Errors as `diagonal`.

    >>> import adjoint as ad
    >>> ad.linalg.trace(ad.tensor([[1.0, 2.0], [3.0, 4.0]])).item()
    5.0
    """
    return total(diagonal(x, offset=offset), axis=-1, dtype=dtype)
