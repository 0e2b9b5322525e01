"""Factors of matrices: Cholesky, QR, LU, eigenvalues and singular values.

Vectors are defined up to a sign or a phase, and within the space of equal values up to a rotation. Derivatives are
right for functions that do not depend on that choice; docs/conventions.md says what they are where values are equal.
"""

from __future__ import annotations

from typing import Any, NamedTuple, TypeVar

from adjoint import dtypes, errors
from adjoint.backend import Backend
from adjoint.functions.arguments import as_choice, as_flag, as_tensors, matrices_of, square
from adjoint.operands import run
from adjoint.primitives import broadcast_shapes
from adjoint.tensor import Tensor, wrap

B = TypeVar("B", bound=Backend)


class QRResult(NamedTuple):
    """Q with orthonormal columns and R, upper triangular."""

    Q: Tensor[Any]
    R: Tensor[Any]


class EighResult(NamedTuple):
    """Real eigenvalues in rising order, and orthonormal eigenvectors in columns."""

    eigenvalues: Tensor[Any]
    eigenvectors: Tensor[Any]


class EigResult(NamedTuple):
    """Complex eigenvalues in no order, and eigenvectors of length one in columns."""

    eigenvalues: Tensor[Any]
    eigenvectors: Tensor[Any]


class SVDResult(NamedTuple):
    """Left vectors in columns, singular values in falling order, right vectors conjugated in rows."""

    U: Tensor[Any]
    S: Tensor[Any]
    Vh: Tensor[Any]


class LUResult(NamedTuple):
    """A permutation matrix, a lower triangle with ones on the diagonal, and an upper triangle."""

    P: Tensor[Any]
    L: Tensor[Any]
    U: Tensor[Any]


def adjoint(x: Tensor[Any]) -> Tensor[Any]:
    """The conjugate transposes."""
    return run("conj", (x.mT,)) if x.dtype.kind == "c" else x.mT


def cholesky(x: Tensor[B], /, *, upper: bool = False) -> Tensor[B]:
    """The lower triangular L with x = L L^H of positive definite matrices, or L^H if `upper`.

    Only the Hermitian part of x counts, and its lower triangle is read. The gradient is Hermitian.
    Raises NotSquareError for other than square matrices, SingularError where one is not positive definite.

    >>> import adjoint as ad
    >>> ad.linalg.cholesky(ad.tensor([[4.0, 2.0], [2.0, 2.0]])).tolist()
    [[2.0, 0.0], [1.0, 1.0]]
    """
    lower = run("cholesky", (square(x, "cholesky"),))
    return adjoint(lower) if as_flag(upper, "cholesky", "upper") else lower


def qr(x: Tensor[B], /, *, mode: str = "reduced") -> QRResult:
    """x = Q R, with Q of as many columns as x has rows or columns ("reduced", the fewer), or square ("complete").

    The diagonal of R is real, and as LAPACK leaves it, of either sign. Gradients need a first min(m, n) columns that
    are independent, else `backward` raises BackwardError; what completes Q turns as little as it can.
    Raises ShapeError for fewer than two axes, ArgumentError for another mode.

    >>> import adjoint as ad
    >>> q, r = ad.linalg.qr(ad.tensor([[3.0, 1.0], [4.0, 2.0]]))
    >>> ad.linalg.matmul(q, r).round().tolist()
    [[3.0, 1.0], [4.0, 2.0]]
    """
    x = matrices_of(x, "qr")
    as_choice(mode, "qr", "mode", ("reduced", "complete"))
    return QRResult(*run("qr", (x,), complete=mode == "complete"))


def eigh(x: Tensor[B], /) -> EighResult:
    """The eigenvalues of Hermitian (or real symmetric) matrices, rising, and their orthonormal vectors in columns.

    Only the Hermitian part of x counts, and its lower triangle is read. The gradient is Hermitian.
    Raises NotSquareError for other than square matrices.

    >>> import adjoint as ad
    >>> ad.linalg.eigh(ad.tensor([[2.0, 0.0], [0.0, 1.0]])).eigenvalues.tolist()
    [1.0, 2.0]
    """
    return EighResult(*run("eigh", (square(x, "eigh"),)))


def eigvalsh(x: Tensor[B], /) -> Tensor[B]:
    """The eigenvalues of Hermitian matrices, rising. Reads, gradient and errors as `eigh`.

    >>> import adjoint as ad
    >>> ad.linalg.eigvalsh(ad.tensor([[0.0, 2.0], [2.0, 0.0]])).tolist()
    [-2.0, 2.0]
    """
    return run("eigvalsh", (square(x, "eigvalsh"),))  # type: ignore[no-any-return]


def eig(x: Tensor[B], /) -> EigResult:
    """The eigenvalues of square matrices, in LAPACK's order, and vectors of length one in columns; both complex.

    Gradients need as many independent vectors as there are values. Raises NotSquareError for other than square
    matrices, SingularError where nan or inf stand among the elements.

    >>> import adjoint as ad
    >>> ad.linalg.eig(ad.tensor([[0.0, -1.0], [1.0, 0.0]])).eigenvalues.tolist()
    [1j, -1j]
    """
    return EigResult(*run("eig", (square(x, "eig"),)))


def eigvals(x: Tensor[B], /) -> Tensor[B]:
    """The complex eigenvalues of square matrices, in LAPACK's order. Gradient and errors as `eig`.

    >>> import adjoint as ad
    >>> ad.linalg.eigvals(ad.tensor([[3.0, 0.0], [0.0, 4.0]])).tolist()
    [(3+0j), (4+0j)]
    """
    return run("eigvals", (square(x, "eigvals"),))  # type: ignore[no-any-return]


def svd(x: Tensor[B], /, *, full_matrices: bool = True) -> SVDResult:
    """x = U diag(S) Vh: orthonormal vectors, and singular values in falling order.

    U and Vh are square if `full_matrices`, else they have min(m, n) columns and rows. What completes the bases turns
    as little as it can. Raises ShapeError for fewer than two axes, SingularError where nan or inf stand among the
    elements.

    >>> import adjoint as ad
    >>> ad.linalg.svd(ad.tensor([[0.0, 2.0], [1.0, 0.0]])).S.tolist()
    [2.0, 1.0]
    """
    x = matrices_of(x, "svd")
    return SVDResult(*run("svd", (x,), full_matrices=as_flag(full_matrices, "svd", "full_matrices")))


def svdvals(x: Tensor[B], /) -> Tensor[B]:
    """The singular values, falling. Errors as `svd`.

    >>> import adjoint as ad
    >>> ad.linalg.svdvals(ad.tensor([[3.0, 0.0], [0.0, -4.0]])).tolist()
    [4.0, 3.0]
    """
    return run("svdvals", (matrices_of(x, "svdvals"),))  # type: ignore[no-any-return]


def lu(x: Tensor[B], /) -> LUResult:
    """x = P L U by Gaussian elimination with partial pivoting: of shapes (m, m), (m, k) and (k, n), k = min(m, n).

    NumPy has none of LAPACK's, so it loops over the columns, for all matrices and rows at once.
    P is a constant. Gradients need a U without zeros on its diagonal, else `backward` raises BackwardError.
    Raises ShapeError for fewer than two axes.

    >>> import adjoint as ad
    >>> ad.linalg.lu(ad.tensor([[1.0, 2.0], [2.0, 2.0]])).U.tolist()
    [[2.0, 2.0], [0.0, 1.0]]
    """
    x = matrices_of(x, "lu")
    order, lower, upper = run("lu", (x,))
    m = x.shape[-2]
    places = wrap(order.device.arange(start=0, stop=m, step=1, dtype=dtypes.int64), order.device)
    places = run("reshape", (places,), shape=(m, 1))
    where = run("equal", (places, run("expand_dims", (order,), axis=(order.ndim - 1,))))
    return LUResult(run("astype", (where,), dtype=x.dtype), lower, upper)


def householder_product(h: Tensor[B], tau: Any, /) -> Tensor[B]:
    """The first n columns of H_1 H_2 ... H_k, with H_i = 1 - tau_i v_i v_i^H and v_i in the i-th column of h.

    Of a column the elements above the diagonal count as zeros and that on it as one, as LAPACK's `geqrf` leaves them:
    h of shape (..., m, n), tau of shape (..., k), k <= n <= m. Raises ShapeError for other shapes.

    The product is 1 - V T V^H with a triangular T: C. Bischof and C. Van Loan, The WY representation for products of
    Householder matrices (1987), R. Schreiber and C. Van Loan (1989).

    >>> import adjoint as ad
    >>> ad.linalg.householder_product(ad.tensor([[5.0], [1.0]]), ad.tensor([1.0])).tolist()
    [[0.0], [-1.0]]
    """
    h, tau = as_tensors([h, tau], "householder_product")
    h = matrices_of(h, "householder_product")
    m, n = h.shape[-2:]
    k = tau.shape[-1] if tau.ndim else -1
    if not 0 <= k <= n <= m:
        raise errors.ShapeError(
            f"householder_product: expected vectors of shape (..., m, n) and factors (..., k) with k <= n <= m; "
            f"received {h.shape} and {tau.shape}"
        )
    try:
        broadcast_shapes(h.shape[:-2], tau.shape[:-1])
    except errors.ShapeError as error:
        raise errors.ShapeError(f"householder_product: {error}") from None
    tau = run("astype", (tau,), dtype=h.dtype)
    device = h.device

    def eye(rows: int, columns: int) -> Tensor[Any]:
        return wrap(device.eye(rows=rows, columns=columns, k=0, dtype=h.dtype), device)

    v = run("tril", (h[..., :k],), k=-1) + eye(m, k)
    vh = adjoint(v)
    scale = run("expand_dims", (tau,), axis=(tau.ndim,))
    # T = (1 + D S)^-1 D, D = diag(tau) and S what V^H V has above its diagonal: right also where a factor is zero
    triangle = scale * run("triu", (run("matmul", (vh, v)),), k=1)
    inner = run("solve_triangular", (triangle, scale * vh[..., :n]), upper=True, unit=True)
    return eye(m, n) - run("matmul", (v, inner))  # type: ignore[no-any-return]
