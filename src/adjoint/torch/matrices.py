"""Linear algebra under the names that it has beside `torch.linalg`."""

from __future__ import annotations

from typing import Any, NamedTuple

import adjoint as ad
from adjoint.torch import creation, linalg
from adjoint.torch.calls import call
from adjoint.torch.functions import public
from adjoint.torch.tensor import Tensor

for _name in ("det", "slogdet", "matrix_exp", "matrix_power"):
    public(_name)(getattr(linalg, _name))
public("inverse", out=True)(lambda input: linalg.inv(input))
public("chain_matmul", method=False, out=True)(lambda *matrices: linalg.multi_dot(matrices))
public("orgqr", out=True)(lambda input, tau: linalg.householder_product(input, tau))


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
    return linalg.qr(input, "reduced" if some else "complete")


class _SVD(NamedTuple):
    U: Tensor
    S: Tensor
    V: Tensor


@public("svd", out=True)
def svd(input: Tensor, some: bool = True, compute_uv: bool = True) -> Any:
    """The singular value decomposition with right vectors in columns."""
    if not compute_uv:
        raise NotImplementedError("adjoint.torch: svd(compute_uv=False) is not there; write linalg.svdvals")
    u, s, vh = linalg.svd(input, full_matrices=not some)
    return _SVD(u, s, vh.mH)


@public("lu_solve", out=True)
def lu_solve(b: Tensor, LU_data: Tensor, LU_pivots: Tensor) -> Any:
    return linalg.lu_solve(LU_data, LU_pivots, b)


@public("inner", out=True)
def inner(input: Any, other: Any) -> Any:
    """The sums of products along the last axes."""
    if not input.ndim or not other.ndim:
        return input * other
    return call(lambda x, y: ad.tensordot(x, y, axes=([-1], [-1])), "View", input, other)
