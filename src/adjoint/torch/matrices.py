"""Linear algebra under the names that it has beside `torch.linalg`."""

from __future__ import annotations

from typing import Any

import adjoint as ad
from adjoint.torch import creation, linalg, return_types
from adjoint.torch.arguments import check_places, guarded, public, same_types, spelled_as, tensors_of
from adjoint.torch.calls import call, into
from adjoint.torch.functions import to
from adjoint.torch.operators import FUNCTIONS, METHODS
from adjoint.torch.reductions import axes_of, norm_of
from adjoint.torch.tensor import Tensor

for _name in ("det", "matrix_exp", "matrix_power"):
    _function = getattr(linalg, _name).__wrapped__
    public(_name, out=_name == "matrix_power")(
        spelled_as(_name, "input: Tensor, n" if _name == "matrix_power" else "input: Tensor", _function)
    )


@public("slogdet", out=True)
def slogdet(input: Tensor) -> Any:
    return return_types.slogdet(linalg.slogdet(input))


@public("inverse", out=True)
def inverse(input: Tensor) -> Any:
    return linalg.inv(input)


@public("chain_matmul", method=False, out=True)
def chain_matmul(*matrices: Tensor) -> Any:
    matrices = tensors_of(matrices, "chain_matmul")
    return matrices[0].clone() if len(matrices) == 1 else linalg.multi_dot(matrices)


@public("orgqr", out=True)
def orgqr(input: Tensor, input2: Tensor) -> Any:
    """`linalg.householder_product` by its older name."""
    return linalg.householder_product(input, input2)


@public("logdet")
def logdet(input: Tensor) -> Any:
    """The logarithm of the determinant, nan where it is negative."""
    return call("linalg.logdet", "Log", input)


@public("pinverse")
def pinverse(input: Tensor, rcond: float = 1e-15) -> Any:
    return linalg.pinv(input, rtol=rcond)


@public("cholesky", out=True)
def cholesky(input: Tensor, upper: bool = False) -> Any:
    """The triangular factor of a positive definite matrix."""
    return linalg.cholesky(input, upper=upper)


@public("cholesky_solve", out=True)
def cholesky_solve(input: Tensor, input2: Tensor, upper: bool = False) -> Any:
    """The solution of a system whose matrix has this triangular factor."""
    same_types("cholesky_solve", input, input2)
    return call(lambda b, factor: ad.linalg.cholesky_solve(b, factor, upper=upper), "CholeskySolve", input, input2)


@public("cholesky_inverse", out=True)
def cholesky_inverse(input: Tensor, upper: bool = False) -> Any:
    """The inverse of the matrix that has this triangular factor."""

    one = creation.eye(input.shape[-1], dtype=input.dtype).expand(input.shape)
    return cholesky_solve(one, input, upper)


@public("cross", out=True)
def cross(input: Tensor, other: Tensor, dim: int | None = None) -> Any:
    """The cross product along an axis of size 3, by default the first one."""
    if dim is None:
        dim = next((i for i, n in enumerate(input.shape) if n == 3), None)
        if dim is None:
            raise RuntimeError("no dimension of size 3 in input")
    return linalg.cross(input, other, dim=dim)


@public("qr", out=True)
def qr(input: Tensor, some: bool = True) -> Any:
    return return_types.qr(linalg.qr(input, "reduced" if some else "complete"))


@public("svd", out=True)
def svd(input: Tensor, some: bool = True, compute_uv: bool = True) -> Any:
    """The singular value decomposition with right vectors in columns."""
    if not compute_uv:
        raise NotImplementedError("adjoint.torch: svd(compute_uv=False) is not there; write linalg.svdvals")
    u, s, vh = linalg.svd(input, full_matrices=not some)
    return return_types.svd(u, s, vh.mH)


@public("svd_lowrank", method=False)
def svd_lowrank(A: Tensor, q: int | None = 6, niter: int | None = 2, M: Tensor | None = None) -> Any:
    """The q largest singular values of A - M, from random products: U, S and V."""
    q = min(6 if q is None else q, *A.shape[-2:])
    given = (A,) if M is None else (A, M)
    count = 2 if niter is None else niter
    return call(lambda a, *m: tuple(ad.linalg.svd_lowrank(a, q, count, *m)), "LinalgSvd", *given)


@public("pca_lowrank", method=False)
def pca_lowrank(A: Tensor, q: int | None = None, center: bool = True, niter: int = 2) -> Any:
    """The first q principal components of rows, from random products: `svd_lowrank` of A less its means."""
    q = min(6, *A.shape[-2:]) if q is None else q
    if not 0 <= q <= min(A.shape[-2:]):
        raise ValueError(f"q(={q}) must be non-negative integer and not greater than min(m, n)={min(A.shape[-2:])}")
    if niter < 0:
        raise ValueError(f"niter(={niter}) must be non-negative integer")
    return svd_lowrank(A - A.mean(-2, keepdim=True) if center else A, q, niter)


@public("lu")
def lu(A: Tensor, pivot: bool = True, get_infos: bool = False) -> Any:
    """`linalg.lu_factor` by its older name; with `get_infos` a third result says which matrices are singular."""
    both, pivots, info = linalg.lu_factor_ex(A, pivot=pivot)
    return (both, pivots, info) if get_infos else (both, pivots)


@public("lu_unpack", method=False, out=True)
def lu_unpack(LU_data: Any, LU_pivots: Tensor, unpack_data: bool = True, unpack_pivots: bool = True) -> Any:
    """The permutation and both factors, from `linalg.lu_factor`; an empty tensor for what is not wanted."""
    m, n = LU_data.shape[-2:]
    k = min(m, n)
    none = creation.empty(0, dtype=LU_data.dtype)
    P = linalg.permutations(LU_pivots, m, LU_data) if unpack_pivots else none
    if not unpack_data:
        return return_types.lu_unpack(P, none, none)
    one = creation.eye(m, k, dtype=LU_data.dtype)
    return return_types.lu_unpack(P, LU_data[..., :k].tril(-1) + one, LU_data[..., :k, :].triu())


@public("lu_solve", out=True)
def lu_solve(input: Tensor, LU_data: Tensor, LU_pivots: Tensor) -> Any:
    return linalg.lu_solve(LU_data, LU_pivots, input)


@public("inner", out=True)
def inner(input: Tensor, other: Tensor) -> Any:
    """The sums of products along the last axes."""
    if not input.ndim or not other.ndim:
        return FUNCTIONS["mul"](input, other)
    if input._dtype is not other._dtype:
        raise RuntimeError("both inputs should have same dtype")
    return call(lambda x, y: ad.tensordot(x, y, axes=([-1], [-1])), "View", input, other)


@public("norm")
def norm(
    input: Tensor, p: Any = "fro", dim: Any = None, keepdim: bool = False, out: Any = None, dtype: Any = None
) -> Any:
    if out is not None:
        found = norm(input, p, dim, keepdim, None, dtype)
        check_places(out, found, (), exact=True)
        return into(out, found, (input,))
    x = to(input, dtype=dtype) if dtype is not None else input
    if x._dtype.kind not in "fc":
        raise RuntimeError(
            f"linalg.vector_norm: Expected a floating point or complex tensor as input. Got {x.dtype.class_name}"
        )
    if p == "nuc":
        return linalg.matrix_norm(x, "nuc", (-2, -1) if dim is None else dim, keepdim)
    return norm_of(x, 2 if p in ("fro", None) else p, axes_of(dim, x.ndim), keepdim)


def _norm(self: Tensor, p: Any = "fro", dim: Any = None, keepdim: bool = False, dtype: Any = None) -> Any:
    return norm(self, p, dim, keepdim, dtype=dtype)


METHODS["norm"] = guarded(_norm)
