"""Linear algebra over stacks of matrices: the last two axes are the matrices.

The functions of the array API standard's extension, and beyond them what NumPy, SciPy and PyTorch have. What calls
LAPACK knows float32, float64 and complex numbers of these; integers get the default dtype.
"""

from __future__ import annotations

from adjoint.functions.contraction import matmul, outer, tensordot, vecdot
from adjoint.functions.shape import matrix_transpose
from adjoint.linalg.factors import (
    cholesky,
    eig,
    eigh,
    eigvals,
    eigvalsh,
    householder_product,
    lu,
    qr,
    svd,
    svdvals,
)
from adjoint.linalg.norms import cond, matrix_norm, matrix_rank, norm, vector_norm
from adjoint.linalg.products import (
    cross,
    det,
    diagonal,
    expm,
    inv,
    kron,
    matrix_power,
    multi_dot,
    slogdet,
    trace,
)
from adjoint.linalg.solving import cholesky_solve, lstsq, pinv, solve, solve_triangular

__all__ = [
    "cholesky", "cholesky_solve", "cond", "cross", "det", "diagonal", "eig", "eigh", "eigvals", "eigvalsh", "expm",
    "householder_product", "inv", "kron", "lstsq", "lu", "matmul", "matrix_norm", "matrix_power", "matrix_rank",
    "matrix_transpose", "multi_dot", "norm", "outer", "pinv", "qr", "slogdet", "solve", "solve_triangular", "svd",
    "svdvals", "tensordot", "trace", "vecdot", "vector_norm",
]  # fmt: skip


def __dir__() -> list[str]:
    return __all__
