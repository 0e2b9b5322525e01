"""Linear systems: solved, or solved as well as they can be."""

from __future__ import annotations

from typing import Any, NamedTuple, TypeVar

from adjoint import dtypes, errors
from adjoint.backend import Backend
from adjoint.functions.arguments import as_flag, as_tensors, inexact, matrices_of, relative, square
from adjoint.functions.contraction import matmul
from adjoint.functions.reduction import sum
from adjoint.functions.shape import expand_dims, squeeze
from adjoint.linalg.factors import adjoint
from adjoint.operands import run
from adjoint.tensor import Tensor

B = TypeVar("B", bound=Backend)


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


def solve(a: Tensor[B], b: Any, /) -> Tensor[B]:
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


def solve_triangular(a: Tensor[B], b: Any, /, *, upper: bool, unitriangular: bool = False) -> Tensor[B]:
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


def cholesky_solve(b: Tensor[B], factor: Any, /, *, upper: bool = False) -> Tensor[B]:
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


def pinv(x: Tensor[B], /, *, rtol: float | Tensor[Any] | None = None) -> Tensor[B]:
    """The Moore-Penrose inverses, in which singular values of at most `rtol` times the largest count as zeros.

    `rtol` is a number, or a tensor of numbers for each matrix; the larger of rows and columns times the dtype's
    epsilon if None. The gradient is that within the matrices of the same rank. Raises ShapeError for fewer than two
    axes.

    >>> import adjoint as ad
    >>> ad.linalg.pinv(ad.tensor([[2.0, 0.0], [0.0, 0.0]])).tolist()
    [[0.5, 0.0], [0.0, 0.0]]
    """
    x = matrices_of(x, "pinv", rtol)
    return run("pinv", (x, relative(rtol, x, "pinv")))  # type: ignore[no-any-return]


def lstsq(a: Tensor[B], b: Any, /, *, rtol: float | Tensor[Any] | None = None) -> LstsqResult:
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
