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
    lu_factor,
    qr,
    svd,
    svd_lowrank,
    svdvals,
)
from adjoint.linalg.norms import cond, matrix_norm, matrix_rank, norm, vector_norm
from adjoint.linalg.powers import expm, logm, matrix_power, sqrtm
from adjoint.linalg.products import cross, det, diagonal, inv, kron, logdet, multi_dot, slogdet, trace
from adjoint.linalg.solving import (
    cholesky_solve,
    lstsq,
    lu_solve,
    pinv,
    solve,
    solve_banded,
    solve_sylvester,
    solve_triangular,
    solveh_banded,
)
from adjoint.linalg.structured import block_diag, circulant, toeplitz
from adjoint.renamed import refusing

__all__ = [
    "block_diag", "cholesky", "cholesky_solve", "circulant", "cond", "cross", "det", "diagonal", "eig", "eigh",
    "eigvals", "eigvalsh", "expm", "householder_product", "inv", "kron", "logdet", "logm", "lstsq", "lu", "lu_factor",
    "lu_solve", "matmul", "matrix_norm", "matrix_power", "matrix_rank", "matrix_transpose", "multi_dot", "norm",
    "outer", "pinv", "qr", "slogdet", "solve", "solve_banded", "solve_sylvester", "solve_triangular", "solveh_banded",
    "sqrtm", "svd", "svd_lowrank", "svdvals", "tensordot", "toeplitz", "trace", "vecdot", "vector_norm",
]  # fmt: skip


def __dir__() -> list[str]:
    return __all__


globals()["__getattr__"] = refusing(__name__)  # unseen by type checkers, which refuse other names themselves
