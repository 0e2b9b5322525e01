"""`torch.linalg`: adjoint's linear algebra under PyTorch's names."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

import adjoint as ad
from adjoint import conventions
from adjoint.torch import creation, return_types
from adjoint.torch.arguments import Sizes, guarded, one_node, same_types, spelled_as, tensors_of, with_out
from adjoint.torch.calls import LinAlgError as LinAlgError
from adjoint.torch.calls import call
from adjoint.torch.dtypes import of_numpy, promote
from adjoint.torch.missing import missing as _missing
from adjoint.torch.operators import FUNCTIONS
from adjoint.torch.reductions import axes_of, norm_of
from adjoint.torch.tensor import Tensor, axis_of, beside, is_lifted, looked, where_is


def _plain(name: str, function: Any, parameters: str = "A: Tensor", made: str | None = None) -> Any:
    def apply(*tensors: Any) -> Any:
        return call(function, made or f"Linalg{name.capitalize()}", *tensors)

    return with_out(spelled_as(name, parameters, apply))


det: Any = _plain("det", "linalg.det")
inv: Any = _plain("inv", "linalg.inv", made="LinalgInvEx")
eigvalsh: Any = _plain("eigvalsh", "linalg.eigvalsh", "input: Tensor, UPLO: str='L'", "LinalgEigh")
eigvals: Any = _plain("eigvals", "linalg.eigvals", "input: Tensor", "LinalgEig")


@with_out
def householder_product(input: Tensor, tau: Tensor) -> Any:
    if input._dtype is not tau._dtype:
        raise RuntimeError(
            f"torch.linalg.householder_product: tau dtype {tau.dtype.class_name} does not match input dtype "
            f"{input.dtype.class_name}"
        )
    return call("linalg.householder_product", "LinalgHouseholderProduct", input, tau)


matrix_exp: Any = _plain(
    "matrix_exp",
    lambda a: (
        ad.astype(ad.linalg.expm(ad.astype(a, np.float32)), a.dtype) if a.dtype.itemsize < 4 else ad.linalg.expm(a)
    ),
    "input: Tensor",
    "LinalgMatrixExp",
)


@with_out
def svdvals(A: Tensor, *, driver: str | None = None) -> Any:
    _refuse_driver("svdvals", driver)
    return call("linalg.svdvals", "LinalgSvd", A)


def _refuse_driver(name: str, driver: str | None) -> None:
    if driver is not None:
        raise RuntimeError(f"torch.linalg.{name}: keyword argument `driver=` is only supported on CUDA inputs")


@with_out
def cholesky(input: Tensor, *, upper: bool = False) -> Any:
    return call("linalg.cholesky", "LinalgCholeskyEx", input, upper=upper)


@with_out
def pinv(
    input: Tensor,
    rcond: Tensor | float | None = None,
    hermitian: bool = False,
    *,
    atol: Tensor | float | None = None,
    rtol: Tensor | float | None = None,
) -> Any:
    """The inverse on what the matrix reaches. `rcond` is an older name of `rtol`."""
    bound = _relative(input, atol, rtol if rcond is None else rcond)
    return call("linalg.pinv", "LinalgPinv", input, rtol=bound, hermitian=hermitian)


@with_out
def matrix_rank(
    input: Tensor,
    tol: Tensor | float | None = None,
    hermitian: bool = False,
    *,
    atol: Tensor | float | None = None,
    rtol: Tensor | float | None = None,
) -> Any:
    """How many singular values are not nearly zero. `tol` is an older name of `atol`, beside which nothing counts."""
    bound = _relative(input, atol, rtol) if tol is None else _relative(input, tol, 0.0)
    return call("linalg.matrix_rank", None, input.detach(), rtol=bound, hermitian=hermitian)


def _relative(A: Tensor, atol: Any, rtol: Any) -> Any:
    """One bound on singular values, in terms of the largest."""
    return rtol if atol is None else call(conventions.relative_bound, None, A.detach(), atol, rtol)


@with_out
@one_node("SqueezeBackward1")
def cond(input: Tensor, p: Any = None) -> Any:
    """The norm of a matrix times that of its inverse."""
    return call(lambda a: ad.linalg.cond(a, p), "Div", input)


@guarded
def diagonal(A: Tensor, *, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Any:
    return FUNCTIONS["diagonal"](A, offset, dim1, dim2)


@with_out
def slogdet(A: Tensor) -> Any:
    return return_types.linalg_slogdet(*call(lambda a: tuple(ad.linalg.slogdet(a)), "LinalgSlogdet", A))


@with_out
def eigh(input: Tensor, UPLO: str = "L") -> Any:
    return return_types.linalg_eigh(*call(lambda a: tuple(ad.linalg.eigh(a, UPLO)), "LinalgEigh", input))


@with_out
def qr(A: Tensor, mode: str = "reduced") -> Any:
    return return_types.linalg_qr(*call(lambda a: tuple(ad.linalg.qr(a, mode=mode)), "LinalgQr", A))


@with_out
def svd(A: Tensor, full_matrices: bool = True, *, driver: str | None = None) -> Any:
    _refuse_driver("svd", driver)
    return return_types.linalg_svd(
        *call(lambda a: tuple(ad.linalg.svd(a, full_matrices=full_matrices)), "LinalgSvd", A)
    )


@with_out
def eig(input: Tensor) -> Any:
    """Complex eigenvalues and eigenvectors of length one; a gradient that depends on their phases is refused."""
    return return_types.linalg_eig(*call(lambda a: tuple(ad.linalg.eig(a)), "LinalgEig", input))


@with_out
def lu(A: Tensor, *, pivot: bool = True) -> Any:
    _refuse_without_pivots(pivot)
    return return_types.linalg_lu(*call(lambda a: tuple(ad.linalg.lu(a)), "LinalgLu", A))


def _refuse_without_pivots(pivot: bool) -> None:
    if not pivot:
        raise NotImplementedError("adjoint.torch: LU decompositions with pivot=False are not there")


@with_out
def lu_factor(A: Tensor, *, pivot: bool = True) -> Any:
    """L and U in one matrix, and the rows that were swapped at each step, counted from 1."""
    _refuse_without_pivots(pivot)
    count = min(A.shape[-2:]) if A.ndim > 1 else 0
    square = A.ndim < 2 or A.shape[-2] == A.shape[-1]
    both, order = call(_square_factors if square else _factors, "LinalgLuFactorEx", A)
    return return_types.linalg_lu_factor(both, _each_row(order, lambda rows: _swaps(rows)[:count], count, np.int32))


def _square_factors(a: Any) -> Any:
    return tuple(ad.linalg.lu_factor(a))


def _factors(a: Any) -> Any:
    """L below the diagonal and U, of matrices that are not square, and the order of rows."""
    order, lower, upper = ad.linalg.lu(a)
    m, n = a.shape[-2:]
    none = [(0, 0)] * (a.ndim - 2)
    lower, upper = (
        ad.pad(part, [*none, (0, m - part.shape[-2]), (0, n - part.shape[-1])]) for part in (ad.tril(lower, -1), upper)
    )
    return lower + upper, (ad.real(order) * np.arange(m)[:, None]).sum(-2).astype(np.int64)


def _each_row(x: Tensor, function: Any, width: int, dtype: Any) -> Tensor:
    """A function of lists along the last axis."""
    front = tuple(x.shape[:-1])
    made = [function(row) for row in looked(x).reshape(math.prod(front), x.shape[-1]).tolist()]
    return beside(x, np.array(made, dtype).reshape(*front, width))


def _swaps(order: list[int]) -> list[int]:
    """The swaps that bring rows into an order."""
    now = list(range(len(order)))
    found = []
    for i, wanted in enumerate(order):
        at = now.index(wanted)
        now[i], now[at] = now[at], now[i]
        found.append(at + 1)
    return found


def _order(swaps: list[int]) -> list[int]:
    """The order that swaps bring rows into."""
    now = list(range(len(swaps)))
    for i, at in enumerate(swaps):
        now[i], now[at - 1] = now[at - 1], now[i]
    return now


def permutations(pivots: Tensor, m: int, like: Tensor) -> Any:
    """The matrices that bring the rows of L U back, from the swaps of m rows: of the type of another tensor."""
    width = pivots.shape[-1]
    order = _each_row(pivots, lambda swaps: _order([*swaps, *range(width + 1, m + 1)]), m, np.int64)
    return creation.eye(m, dtype=like.dtype)[order].mT


def _indefinite(a: Any) -> int:
    """The size of the first leading block without a Cholesky factor, 0 where there is none."""
    low, high = 0, len(a) + 1
    while high - low > 1:  # the block of size `low` has a factor
        size = (low + high) // 2
        try:
            known = bool(np.isfinite(np.linalg.cholesky(a[:size, :size])).all())  # of infinite ones there is no error
        except np.linalg.LinAlgError:
            known = False
        low, high = (size, high) if known else (low, size)
    return high % (len(a) + 1)


def _zero_pivot(a: Any) -> int:
    """The place of the first pivot that is zero, from 1 on; 0 where there is none."""
    _, _, upper = ad.linalg.lu(a)
    zeros = np.flatnonzero(np.diagonal(upper.numpy()) == 0)
    return int(zeros[0]) + 1 if zeros.size else 0


def _infos(A: Tensor, first: Any) -> Tensor:
    stack = looked(A)
    flat = stack.reshape(math.prod(stack.shape[:-2]), *stack.shape[-2:])
    return beside(A, np.array([first(a) for a in flat], np.int32).reshape(stack.shape[:-2]))


def _check(info: Tensor, name: str, why: str) -> None:
    """Raise for the first matrix that failed, where there is one."""
    found = looked(info)
    if found.any():
        i = int(np.flatnonzero(found.reshape(-1))[0])
        which = f"(Batch element {i}): " if info.ndim else ""
        raise LinAlgError(f"{name}: {which}{why.format(k=found.reshape(-1)[i])}")


def _with_info(name: str, function: Any, A: Tensor, first: Any, why: str, check_errors: bool) -> tuple[Any, Tensor]:
    """What a function of stacks gives, nan where there is nothing to give, and where each matrix failed."""
    if where_is(A) is None:  # of other devices not all raise
        try:
            made = function(A)
        except LinAlgError:
            pass
        else:
            if is_lifted(made) or first is not _indefinite or np.isfinite(looked(made)).all():
                return made, creation.zeros(A.shape[:-2], dtype=of_numpy(np.dtype("int32")))
    info = _infos(A, first)
    failed: Any = FUNCTIONS["ne"](info, 0)
    if check_errors:
        _check(info, name, why)
    if not bool(failed.any()):
        return function(A), info
    where = failed[..., None, None]
    made = function(FUNCTIONS["where"](where, creation.eye(A.shape[-1], dtype=A.dtype), A))
    return FUNCTIONS["where"](where if made.ndim >= A.ndim else failed[..., None], float("nan"), made), info


@with_out
def cholesky_ex(input: Tensor, *, upper: bool = False, check_errors: bool = False) -> Any:
    """`cholesky`, and of each matrix the size of the first leading block that is not positive definite, or 0."""
    why = (
        "The factorization could not be completed because the input is not positive-definite (the leading minor of "
        "order {k} is not positive-definite)."
    )
    made = _with_info("linalg.cholesky_ex", lambda a: cholesky(a, upper=upper), input, _indefinite, why, check_errors)
    return return_types.linalg_cholesky_ex(*made)


@with_out
def inv_ex(A: Tensor, *, check_errors: bool = False) -> Any:
    """`inv`, and of each matrix the place of the first pivot that is zero, or 0."""
    why = "The diagonal element {k} is zero, the inversion could not be completed because the input matrix is singular."
    return return_types.linalg_inv_ex(*_with_info("linalg.inv_ex", inv, A, _zero_pivot, why, check_errors))


@with_out
@one_node("LinalgSolveEx")
def solve_ex(A: Tensor, B: Tensor, *, left: bool = True, check_errors: bool = False) -> Any:
    """`solve`, and of each matrix the place of the first pivot that is zero, or 0."""
    why = "The solver failed because the input matrix is singular."
    return return_types.linalg_solve_ex(
        *_with_info("torch.linalg.solve_ex", lambda a: solve(a, B, left=left), A, _zero_pivot, why, check_errors)
    )


@with_out
def lu_factor_ex(A: Tensor, *, pivot: bool = True, check_errors: bool = False) -> Any:
    """`lu_factor`, and of each matrix the place of the first pivot that is zero, or 0."""
    both, pivots = lu_factor(A, pivot=pivot)
    zeros = np.diagonal(looked(both), 0, -2, -1) == 0
    found = np.where(zeros.any(-1), zeros.argmax(-1) + 1, 0) if zeros.shape[-1] else np.zeros(zeros.shape[:-1])
    info = beside(A, found.astype(np.int32))
    if check_errors:
        _check(
            info,
            "torch.linalg.lu_factor_ex",
            "U[{k},{k}] is zero and using it on lu_solve would result in a division by zero.",
        )
    return return_types.linalg_lu_factor_ex(both, pivots, info)


@with_out
@one_node("LinalgLuSolve")
def lu_solve(LU: Tensor, pivots: Tensor, B: Tensor, *, left: bool = True, adjoint: bool = False) -> Any:
    """The X of A X = B from `lu_factor` of A, of X A = B with left=False, of the adjoint of A with `adjoint`."""
    same_types("linalg.lu_solve", LU, B)
    if pivots._dtype != np.dtype("int32"):
        raise RuntimeError("linalg.lu_solve: pivots should be a Tensor of scalar type torch.int32")
    if not left:
        return lu_solve(LU, pivots, B.mH, adjoint=not adjoint).mH
    order = _each_row(pivots, _order, pivots.shape[-1], np.int64)
    trans = 2 if adjoint else 0
    return call(
        lambda both, places, b: ad.linalg.lu_solve((both, places), b, trans=trans), "LinalgLuSolve", LU, order, B
    )


@with_out
@one_node("LinalgLstsq")
def lstsq(input: Tensor, b: Tensor, rcond: Any = None, *, driver: str | None = None) -> Any:
    """The X for which input X - b is shortest. There are residuals, and singular values, where PyTorch's driver
    has them."""
    same_types("torch.linalg.lstsq", input, b)
    if input.ndim < 2 or b.ndim < 1:
        raise RuntimeError("torch.linalg.lstsq: input must have at least 2 dimensions, and other at least 1")
    if driver not in (None, "gels", "gelsy", "gelsd", "gelss"):
        raise RuntimeError(
            "torch.linalg.lstsq: parameter `driver` should be one of (gels, gelsy, gelsd, gelss), got " + str(driver)
        )
    x, rest, rank, singular = call(lambda x, y: tuple(ad.linalg.lstsq(x, y, rtol=rcond)), "LinalgLstsq", input, b)
    m, n = input.shape[-2:]
    if m <= n or driver in (None, "gelsy") or (driver != "gels" and not bool((looked(rank) == n).all())):
        rest = rest.reshape(-1)[:0]
    ranked = driver != "gels"
    known = driver in ("gelsd", "gelss")
    return return_types.linalg_lstsq(
        x, rest, rank if ranked else creation.empty(0, dtype=rank.dtype, device=rank.device),
        singular.detach() if known else creation.empty(0, dtype=singular.dtype, device=singular.device),
    )  # fmt: skip


def _in_type(x: Any, dtype: Any, name: str) -> Any:
    """A tensor in the type that a norm is to be taken in. Raises RuntimeError for one that is narrower, or no such."""
    if dtype is None:
        return x
    if not (dtype.is_floating_point or dtype.is_complex):
        raise RuntimeError(f"{name}: dtype should be floating point or complex, but got {dtype}")
    if dtype.is_complex and not x.is_complex():
        raise RuntimeError(f"{name}: dtype should be real for real inputs, but got {dtype}")
    if promote(x._dtype, dtype.of_numpy) != dtype.of_numpy:
        raise RuntimeError(
            f"{name}: the dtype of the input ({x.dtype}) should be convertible without narrowing to the specified "
            f"dtype ({dtype})"
        )
    return x.to(dtype=dtype)


@with_out
@guarded
def vector_norm(input: Tensor, ord: Any = 2, dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> Any:
    input = _in_type(input, dtype, "linalg.vector_norm")
    return norm_of(input, ord, axes_of(dim, input.ndim), keepdim)


_NORMS = {"fro": "LinalgVectorNormBackward0", "nuc": "SumBackward1"}  # the last step of norms; others are extremes


@with_out
@guarded
def matrix_norm(
    input: Tensor, ord: Any = "fro", dim: Any = (-2, -1), keepdim: bool = False, *, dtype: Any = None
) -> Any:
    A = _in_type(input, dtype, "linalg.matrix_norm")
    axes = axes_of(tuple(dim), A.ndim)

    def norm(a: Any) -> Any:
        found = ad.linalg.matrix_norm(ad.moveaxis(a, axes, (-2, -1)), ord=ord, keepdims=keepdim)
        return ad.moveaxis(found, (-2, -1), axes) if keepdim else found

    made = _NORMS.get(ord, "AminBackward0" if ord.__class__ is not str and ord < 0 else "AmaxBackward0")
    return call(norm, made, A)


@with_out
@guarded
def norm(input: Tensor, ord: Any = None, dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> Any:
    """Of all elements without `ord`, of a vector or a matrix with it."""
    A = _in_type(input, dtype, "linalg.norm")
    if ord is not None and dim is None and A.ndim not in (1, 2):
        raise RuntimeError(
            f"linalg.norm: If dim is not specified but ord is, the input must be 1D or 2D. Got {A.ndim}D."
        )
    if isinstance(ord, str):  # which is of matrices
        if ord not in ("fro", "nuc"):
            raise RuntimeError(f"linalg.matrix_norm: Order {ord} not supported.")
        if A.ndim < 2:
            raise RuntimeError("linalg.matrix_norm: The input tensor A must have at least 2 dimensions.")
    if ord is None or isinstance(dim, int) or (dim is None and A.ndim == 1) or (dim is not None and len(dim) == 1):
        return vector_norm(A, 2 if ord is None else ord, dim, keepdim)
    return matrix_norm(A, ord, (-2, -1) if dim is None else dim, keepdim)


@with_out
@one_node("LinalgSolveEx")
def solve(A: Tensor, B: Tensor, *, left: bool = True) -> Any:
    """X of A X = B, or of X A = B; a vector for each matrix where B has the shape of A without its last axis."""
    same_types("linalg.solve", A, B)
    if tuple(B.shape) == tuple(A.shape)[:-1]:
        return solve(A, B.unsqueeze(-1), left=left).squeeze(-1)
    if not left:
        return solve(A.mT, B.mT).mT
    return call("linalg.solve", "LinalgSolveEx", A, B)


@with_out
@one_node("Mm")
def matrix_power(input: Tensor, n: int) -> Any:
    kind, name = input._dtype.kind, input.dtype.class_name
    if kind in "biu" and n < 0:
        raise RuntimeError(f"linalg.inv: Expected a floating point or complex tensor as input. Got {name}")
    if kind == "b" and n > 1:
        raise NotImplementedError(f"\"addmm_impl_cpu_\" not implemented for '{name}'")
    if not n:  # the identity, which depends on input as PyTorch's does
        return call(lambda a: ad.where(False, a, ad.linalg.matrix_power(a, 0)), "LinalgMatrixPower", input)
    return call(lambda a: ad.linalg.matrix_power(a, n), "LinalgMatrixPower", input)


@with_out
def multi_dot(tensors: Any) -> Any:
    same_types("multi_dot()", *tensors_of(tensors, "linalg_multi_dot"))
    if tensors[0]._dtype.kind == "b":
        raise NotImplementedError("\"addmm_impl_cpu_\" not implemented for 'Bool'")
    return call(lambda *xs: ad.linalg.multi_dot(xs), "View", *tensors)


@with_out
@guarded
def cross(input: Tensor, other: Tensor, *, dim: int = -1) -> Any:
    same_types("linalg.cross", input, other)
    if input.ndim != other.ndim:
        raise RuntimeError("linalg.cross: inputs must have the same number of dimensions.")
    axis = axis_of(dim, input.ndim)
    if input.shape[axis] != 3 or other.shape[axis] != 3:
        raise RuntimeError(
            f"linalg.cross: inputs dimension {dim} must have length 3. Got {input.shape[axis]} and {other.shape[axis]}"
        )
    return call(lambda a, b: ad.linalg.cross(a, b, axis=dim), "LinalgCross", input, other)


@with_out
@one_node("LinalgSolveTriangular")
def solve_triangular(input: Tensor, B: Tensor, *, upper: bool, left: bool = True, unitriangular: bool = False) -> Any:
    if not left:
        return solve_triangular(input.mT, B.mT, upper=not upper, unitriangular=unitriangular).mT
    options = {"upper": upper, "unitriangular": unitriangular}
    return call("linalg.solve_triangular", "LinalgSolveTriangular", input, B, **options)


@with_out
def matmul(input: Tensor, other: Tensor) -> Any:
    return FUNCTIONS["matmul"](input, other)


@with_out
def tensorsolve(input: Tensor, other: Tensor, dims: Sizes = None) -> Any:
    """The X for which the sum of products of input with it over its last axes is other."""
    if dims is not None:
        moved = [axis_of(d, input.ndim) for d in dims]
        input = input.movedim(moved, list(range(input.ndim - len(moved), input.ndim)))
    shape = tuple(input.shape[other.ndim :])
    return solve(input.reshape(other.numel(), -1), other.reshape(-1)).reshape(shape)


@with_out
@one_node("ReshapeAlias")
def tensorinv(input: Tensor, ind: int = 2) -> Any:
    """The inverse in the sense of `tensordot` over the first `ind` axes."""
    if ind <= 0:
        raise RuntimeError("Expected a strictly positive integer for 'ind'")
    first, last = tuple(input.shape[:ind]), tuple(input.shape[ind:])
    return inv(input.reshape(math.prod(first), -1)).reshape(*last, *first)


@guarded
@one_node("Cat")
def vander(x: Tensor, *, N: int | None = None) -> Any:
    """The powers of each element along a last axis, from the zeroth on."""
    x = x if x.ndim else x.reshape(1)
    count = x.shape[-1] if N is None else N
    if count <= 1:
        raise RuntimeError("N must be greater than 1.")
    return x.unsqueeze(-1) ** creation.arange(count)


@with_out
@guarded
@one_node("SumBackward1")
def vecdot(x: Tensor, y: Tensor, *, dim: int = -1) -> Any:
    same_types("linalg.vecdot", x, y)
    return call(lambda a, b: ad.vecdot(a, b, axis=dim), "Sum", x, y)


def __getattr__(name: str) -> Any:
    raise _missing(name, "adjoint.torch.linalg")
