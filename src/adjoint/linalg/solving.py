"""Linear systems: solved, or solved as well as they can be."""

from __future__ import annotations

from typing import Any, NamedTuple

from adjoint import dtypes, errors
from adjoint.functions.arguments import (
    as_flag,
    as_integer,
    as_tensors,
    inexact,
    matrices_of,
    relative,
    sizes,
    square,
)
from adjoint.functions.contraction import matmul
from adjoint.functions.indexing import take_along_axis
from adjoint.functions.padding import pad
from adjoint.functions.reduction import sum
from adjoint.functions.shape import broadcast_to, concat, expand_dims, squeeze
from adjoint.functions.sorting import argsort
from adjoint.linalg.factors import adjoint, by_lower
from adjoint.operands import operand, run
from adjoint.primitives import broadcast_shapes
from adjoint.tensor import Operand, Tensor
from adjoint.variables import B


class LstsqResult(NamedTuple):
    """The solution, the sums of squares of what it leaves, the rank of a, and its singular values."""

    solution: Tensor[Any]
    residuals: Tensor[Any]
    rank: Tensor[Any]
    singular_values: Tensor[Any]


def _system(a: Any, b: Any, name: str, *beside: Any) -> tuple[Tensor[Any], Tensor[Any], bool]:
    """Matrices and right-hand sides of one dtype; whether these were one vector."""
    a, b = as_tensors([a, b], name, *beside)
    a, b = matrices_of(a, name), inexact(b, name)
    if not b.ndim:
        raise errors.ShapeError(f"{name}: the right-hand side has no axes; expected a vector or matrices")
    if b.shape[-2:][0] != a.shape[-2]:
        raise errors.ShapeError(
            f"{name}: a right-hand side of shape {b.shape} does not fit matrices of shape {a.shape}"
        )
    return (a, expand_dims(b, 1), True) if b.ndim == 1 else (a, b, False)


def solve(a: Operand[B], b: Any, /) -> Tensor[B]:
    """The x of a x = b: for a vector b if it has one axis, else for stacks of matrices.

    Raises NotSquareError for an a of other than square matrices, ShapeError where sizes do not fit,
    SingularError for a singular a.

    >>> import adjoint as ad
    >>> ad.linalg.solve(ad.tensor([[2.0, 0.0], [0.0, 4.0]]), ad.tensor([2.0, 2.0])).tolist()
    [1.0, 0.5]
    """
    square(a, "solve")
    a, b, vector = _system(a, b, "solve")
    out = run("solve", (a, b))
    return squeeze(out, -1) if vector else out


def solve_triangular(a: Operand[B], b: Any, /, *, upper: bool, unitriangular: bool = False) -> Tensor[B]:
    """The x of a x = b for a triangle: of a the other half is not read, nor the diagonal if it is of ones.

    For a vector b if it has one axis, else for stacks of matrices. The gradient of what is not read is 0. Errors as
    `solve`.

    >>> import adjoint as ad
    >>> ad.linalg.solve_triangular(ad.tensor([[2.0, 9.0], [1.0, 1.0]]), ad.tensor([2.0, 3.0]), upper=False).tolist()
    [1.0, 2.0]
    """
    square(a, "solve_triangular")
    a, b, vector = _system(a, b, "solve_triangular")
    upper = as_flag(upper, "solve_triangular", "upper")
    unit = as_flag(unitriangular, "solve_triangular", "unitriangular")
    out = run("solve_triangular", (a, b), upper=upper, unit=unit)
    return squeeze(out, -1) if vector else out


def cholesky_solve(b: Operand[B], factor: Any, /, *, upper: bool = False) -> Tensor[B]:
    """The x of a x = b with a = L L^H, from the factor L, or L^H if `upper`. Errors as `solve`.

    >>> import adjoint as ad
    >>> ad.linalg.cholesky_solve(ad.tensor([4.0, 8.0]), ad.tensor([[2.0, 0.0], [0.0, 4.0]])).tolist()
    [1.0, 0.5]
    """
    square(factor, "cholesky_solve")
    factor, b, vector = _system(factor, b, "cholesky_solve")
    lower = adjoint(factor) if as_flag(upper, "cholesky_solve", "upper") else factor
    half = run("solve_triangular", (lower, b), upper=False, unit=False)
    out = run("solve_triangular", (adjoint(lower), half), upper=True, unit=False)
    return squeeze(out, -1) if vector else out


def lu_solve(lu_and_order: tuple[Tensor[B], Any], b: Any, /, *, trans: int = 0) -> Tensor[B]:
    """The x of a x = b from `lu_factor` of a, once for many b; of a^T x = b for `trans` 1, of a^H x = b for 2.

    For a vector b if it has one axis, else for stacks of matrices. Raises NotSquareError for factors of other than
    square matrices, ShapeError where sizes do not fit, SingularError for a singular a, ArgumentError for another
    `trans`.

    >>> import adjoint as ad
    >>> factor = ad.linalg.lu_factor(ad.tensor([[0.0, 2.0], [4.0, 0.0]]))
    >>> ad.linalg.lu_solve(factor, ad.tensor([2.0, 4.0])).tolist()
    [1.0, 1.0]
    """
    name = "lu_solve"
    if as_integer(trans, name, "trans") not in (0, 1, 2):
        raise errors.ArgumentError(f"{name}: trans is 0, 1 or 2, received {trans}")
    if not isinstance(lu_and_order, (tuple, list)) or len(lu_and_order) != 2:
        raise errors.ArgumentTypeError(f"{name}: expected what lu_factor gives, received {errors.shown(lu_and_order)}")
    both, order = lu_and_order
    square(both, name)
    both, b, vector = _system(both, b, name, order)
    order = operand(order, both, name)
    if order.dtype.kind not in "iu" or order.shape != both.shape[:-1]:
        raise errors.ShapeError(
            f"{name}: expected the order of rows that lu_factor gives, integers of shape {both.shape[:-1]}; received "
            f"{order.dtype} of shape {order.shape}"
        )
    stack = broadcast_shapes(both.shape[:-2], b.shape[:-2])
    b = broadcast_to(b, (*stack, *b.shape[-2:]))
    rows = broadcast_to(order if not trans else argsort(order), (*stack, order.shape[-1]))
    rows = broadcast_to(expand_dims(rows, -1), b.shape)
    if trans:
        turned = adjoint(both) if trans == 2 else both.mT
        half = run("solve_triangular", (turned, b), upper=False, unit=False)
        out = take_along_axis(run("solve_triangular", (turned, half), upper=True, unit=True), rows, axis=-2)
    else:
        half = run("solve_triangular", (both, take_along_axis(b, rows, axis=-2)), upper=False, unit=True)
        out = run("solve_triangular", (both, half), upper=True, unit=False)
    return squeeze(out, -1) if vector else out


def solve_sylvester(a: Operand[B], b: Any, q: Any, /) -> Tensor[B]:
    """The x of a x + x b = q: of shape (..., m, n) for an a of m rows and a b of n.

    On the NumPy leaf with SciPy it takes the time of m^3 + n^3 (Bartels and Stewart); elsewhere one system of m n
    unknowns. With b = a^H it is Lyapunov's equation. Raises NotSquareError for an a or b of other than square
    matrices, ShapeError where sizes do not fit, SingularError where a and -b have an eigenvalue in common.

    >>> import adjoint as ad
    >>> a, b = ad.tensor([[1.0, 1.0], [0.0, 2.0]]), ad.tensor([[1.0]])
    >>> ad.linalg.solve_sylvester(a, b, ad.tensor([[3.0], [3.0]])).tolist()
    [[1.0], [1.0]]
    """
    name = "solve_sylvester"
    a, b, q = (inexact(x, name) for x in as_tensors([a, b, q], name))
    return run(name, (square(a, name), square(b, name), matrices_of(q, name)))  # type: ignore[no-any-return]


def solve_banded(l_and_u: tuple[int, int], ab: Operand[B], b: Any, /) -> Tensor[B]:
    """The x of a x = b for a matrix of few diagonals: l of them below the main one, u above it.

    Row i of ab, of shape (..., l + u + 1, n), is diagonal u - i, each element in its column of a, as SciPy has them;
    what stands outside of a is not read. For a vector b if it has one axis, else for stacks of matrices. On the NumPy
    leaf with SciPy it takes the time of (l + u)^2 n; elsewhere the whole matrix is made. Errors as `solve`.

    >>> import adjoint as ad
    >>> ab = ad.tensor([[0.0, 1.0, 1.0], [4.0, 4.0, 4.0], [1.0, 1.0, 0.0]])
    >>> ad.linalg.solve_banded((1, 1), ab, ad.tensor([5.0, 6.0, 5.0])).tolist()
    [1.0, 1.0, 1.0]
    """
    name = "solve_banded"
    lower, upper = sizes(l_and_u, 2, name, "(l, u)", 0)
    ab, b, vector = _banded(ab, b, name)
    if ab.shape[-2] != lower + upper + 1:
        raise errors.ShapeError(f"{name}: expected {lower} + {upper} + 1 diagonals, received shape {ab.shape}")
    out = run(name, (ab, b), lower=lower, upper=upper)
    return squeeze(out, -1) if vector else out


def solveh_banded(ab: Operand[B], b: Any, /, *, lower: bool = False) -> Tensor[B]:
    """The x of a x = b for a Hermitian matrix of few diagonals: those above are given, or those below if `lower`.

    Rows of ab are as in `solve_banded`: the main diagonal is the last one, or the first if `lower`. Cost and errors as
    `solve_banded`; a need not be definite.

    >>> import adjoint as ad
    >>> ad.linalg.solveh_banded(ad.tensor([[0.0, 1.0, 1.0], [4.0, 4.0, 4.0]]), ad.tensor([5.0, 6.0, 5.0])).tolist()
    [1.0, 1.0, 1.0]
    """
    name = "solveh_banded"
    ab, b, vector = _banded(ab, b, name)
    lower, count, n = as_flag(lower, name, "lower"), ab.shape[-2] - 1, ab.shape[-1]
    other = run("conj", (ab,)) if ab.dtype.kind == "c" else ab
    more = []
    for i in range(1, count + 1):  # the i-th diagonal on the other side, its elements moved to their columns
        k = min(i, n)
        row, space = (other[..., i, : n - k], (k, 0)) if lower else (other[..., count - i, k:], (0, k))
        more.append(expand_dims(pad(row, [(0, 0)] * (row.ndim - 1) + [space]), -2))
    if more:
        ab = concat([*more[::-1], ab] if lower else [ab, *more], axis=-2)
    out = run("solve_banded", (ab, b), lower=count, upper=count)
    return squeeze(out, -1) if vector else out


def _banded(ab: Any, b: Any, name: str) -> tuple[Tensor[Any], Tensor[Any], bool]:
    """Diagonals and right-hand sides of one dtype; whether these were one vector."""
    ab, b = as_tensors([ab, b], name)
    ab, b = matrices_of(ab, name), inexact(b, name)
    if not ab.shape[-2] or b.shape[-2:][:1] != ab.shape[-1:]:
        raise errors.ShapeError(
            f"{name}: a right-hand side of shape {b.shape} does not fit diagonals of shape {ab.shape}"
        )
    return (ab, expand_dims(b, 1), True) if b.ndim == 1 else (ab, b, False)


def pinv(x: Operand[B], /, *, rtol: float | Tensor[Any] | None = None, hermitian: bool = False) -> Tensor[B]:
    """The Moore-Penrose inverses, in which singular values of at most `rtol` times the largest count as zeros.

    `rtol` is a number, or a tensor of numbers for each matrix; the larger of rows and columns times the dtype's
    epsilon if None. Of `hermitian` matrices the lower triangle is read. The gradient is that within the matrices of the
    same rank. Raises ShapeError for fewer than two axes.

    >>> import adjoint as ad
    >>> ad.linalg.pinv(ad.tensor([[2.0, 0.0], [0.0, 0.0]])).tolist()
    [[0.5, 0.0], [0.0, 0.0]]
    """
    x = matrices_of(x, "pinv", rtol)
    x = by_lower(x, "pinv") if as_flag(hermitian, "pinv", "hermitian") else x
    return run("pinv", (x, relative(rtol, x, "pinv")))  # type: ignore[no-any-return]


def lstsq(a: Operand[B], b: Any, /, *, rtol: float | Tensor[Any] | None = None) -> LstsqResult:
    """The shortest x that makes a x - b shortest: for a vector b if it has one axis, else for stacks of matrices.

    `rtol` is that of `pinv`. Residuals are the sums of the squares of a x - b, whatever the rank. The rank is
    int64 and without a gradient; the gradients of the others are those within the matrices of the same rank.
    Raises ShapeError where sizes do not fit.

    >>> import adjoint as ad
    >>> ad.linalg.lstsq(ad.tensor([[1.0], [1.0]]), ad.tensor([2.0, 4.0])).solution.round().tolist()
    [3.0]
    """
    a, b, vector = _system(a, b, "lstsq", rtol)
    bound = relative(rtol, a, "lstsq")
    solution, values = run("lstsq", (a, b, bound))
    rest = b - matmul(a, solution)
    squares = run("square", (rest.real,)) + run("square", (rest.imag,)) if rest.dtype.kind == "c" else rest * rest
    residuals = sum(squares, -2)
    if values.shape[-1]:
        limit = squeeze(bound, -1) if isinstance(bound, Tensor) else bound
        rank = sum(values > values[..., :1] * limit, -1)
    else:
        rank = sum(values, -1).astype(dtypes.int64)
    if vector:
        solution, residuals = squeeze(solution, -1), squeeze(residuals, -1)
    return LstsqResult(solution, residuals, rank, values)
