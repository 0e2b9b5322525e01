"""`torch.linalg`: adjoint's linear algebra under PyTorch's names."""

from __future__ import annotations

from typing import Any, NamedTuple

import adjoint as ad
from adjoint.torch.calls import call
from adjoint.torch.reductions import axes_of
from adjoint.torch.tensor import Tensor


def _plain(name: str, function: Any, made: str | None = None) -> Any:
    def spelled(*tensors: Any, **options: Any) -> Any:
        return call(function, made or f"Linalg{name.capitalize()}", *tensors, **options)

    spelled.__name__ = spelled.__qualname__ = name
    return spelled


det = _plain("det", "linalg.det")
inv = _plain("inv", "linalg.inv", "LinalgInvEx")
solve = _plain("solve", "linalg.solve", "LinalgSolveEx")
cholesky = _plain("cholesky", "linalg.cholesky", "LinalgCholeskyEx")
eigvalsh = _plain("eigvalsh", "linalg.eigvalsh", "LinalgEigh")
svdvals = _plain("svdvals", "linalg.svdvals", "LinalgSvd")
pinv = _plain("pinv", "linalg.pinv")
matrix_exp = _plain("matrix_exp", "linalg.expm")


class SlogDet(NamedTuple):
    sign: Tensor
    logabsdet: Tensor


class Eigh(NamedTuple):
    eigenvalues: Tensor
    eigenvectors: Tensor


class QR(NamedTuple):
    Q: Tensor
    R: Tensor


class SVD(NamedTuple):
    U: Tensor
    S: Tensor
    Vh: Tensor


def slogdet(A: Tensor) -> SlogDet:
    return SlogDet(*call(lambda a: tuple(ad.linalg.slogdet(a)), "LinalgSlogdet", A))


def eigh(A: Tensor) -> Eigh:
    return Eigh(*call(lambda a: tuple(ad.linalg.eigh(a)), "LinalgEigh", A))


def qr(A: Tensor, mode: str = "reduced") -> QR:
    return QR(*call(lambda a: tuple(ad.linalg.qr(a, mode=mode)), "LinalgQr", A))


def svd(A: Tensor, full_matrices: bool = True) -> SVD:
    return SVD(*call(lambda a: tuple(ad.linalg.svd(a, full_matrices=full_matrices)), "LinalgSvd", A))


def vector_norm(x: Tensor, ord: Any = 2, dim: Any = None, keepdim: bool = False) -> Any:
    axes = axes_of(dim, x.ndim)
    return call(lambda a: ad.linalg.vector_norm(a, ord=ord, axis=axes, keepdims=keepdim), "LinalgVectorNorm", x)


def matrix_norm(A: Tensor, ord: Any = "fro", dim: Any = (-2, -1), keepdim: bool = False) -> Any:
    if axes_of(tuple(dim), A.ndim) != (A.ndim - 2, A.ndim - 1):
        raise NotImplementedError("adjoint.torch: matrix_norm of other axes than the last two is not there")
    return call(lambda a: ad.linalg.matrix_norm(a, ord=ord, keepdims=keepdim), "LinalgMatrixNorm", A)


def norm(A: Tensor, ord: Any = None, dim: Any = None, keepdim: bool = False) -> Any:
    """Of all elements without `ord`, of a vector or a matrix with it."""
    if ord is None or isinstance(dim, int) or (dim is None and A.ndim == 1) or (dim is not None and len(dim) == 1):
        return vector_norm(A, 2 if ord is None else ord, dim, keepdim)
    return matrix_norm(A, ord, (-2, -1) if dim is None else dim, keepdim)


def matrix_power(A: Tensor, n: int) -> Any:
    return call(lambda a: ad.linalg.matrix_power(a, n), "LinalgMatrixPower", A)


def multi_dot(tensors: Any) -> Any:
    return call(lambda *xs: ad.linalg.multi_dot(xs), "LinalgMultiDot", *tensors)


def cross(input: Tensor, other: Tensor, *, dim: int = -1) -> Any:
    return call(lambda a, b: ad.linalg.cross(a, b, axis=dim), "LinalgCross", input, other)


def solve_triangular(A: Tensor, B: Tensor, *, upper: bool, left: bool = True, unitriangular: bool = False) -> Any:
    if not left:
        raise NotImplementedError("adjoint.torch: solve_triangular has no left=False")
    options = {"upper": upper, "unitriangular": unitriangular}
    return call("linalg.solve_triangular", "LinalgSolveTriangular", A, B, **options)


def vecdot(x: Tensor, y: Tensor, *, dim: int = -1) -> Any:
    return call(lambda a, b: ad.vecdot(a, b, axis=dim), "Sum", x, y)
