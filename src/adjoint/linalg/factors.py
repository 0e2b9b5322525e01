"""Factors of matrices: Cholesky, QR, LU, eigenvalues and singular values.

Vectors are defined up to a sign or a phase, and within the space of equal values up to a rotation. Derivatives are
right for functions that do not depend on that choice; docs/conventions.md says what they are where values are equal.
"""

from __future__ import annotations

from typing import Any, Literal, NamedTuple, overload

from adjoint import dtypes, errors
from adjoint.functions.arguments import as_choice, as_flag, as_integer, as_tensors, matrices_of, square
from adjoint.operands import run
from adjoint.primitives import broadcast_shapes
from adjoint.tensor import Operand, Tensor, wrap
from adjoint.variables import B


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


class LUFactorResult(NamedTuple):
    """L without the ones of its diagonal below U, and the order of rows: row i of L U is row order[i] of the matrix."""

    LU: Tensor[Any]
    order: Tensor[Any]


class SVDLowRankResult(NamedTuple):
    """Left vectors in columns, singular values in falling order, right vectors in columns."""

    U: Tensor[Any]
    S: Tensor[Any]
    V: Tensor[Any]


def adjoint(x: Tensor[Any]) -> Tensor[Any]:
    """The conjugate transposes."""
    return run("conj", (x.mT,)) if x.dtype.kind == "c" else x.mT


def by_lower(x: Any, name: str) -> Tensor[Any]:
    """The Hermitian matrices of which these are the lower triangles."""
    x = square(x, name)
    half = (run("tril", (x,), k=0) + run("tril", (x,), k=-1)) * 0.5  # of which the diagonal's real part is left
    return half + adjoint(half)  # type: ignore[no-any-return]


def _lower(x: Any, triangle: Any, name: str) -> Tensor[Any]:
    """Hermitian matrices of which one triangle is given, by their lower ones."""
    x = square(x, name)
    return x if as_choice(triangle, name, "UPLO", ("L", "U", "l", "u")) in "Ll" else adjoint(x)


def cholesky(x: Operand[B], /, *, upper: bool = False) -> Tensor[B]:
    """The lower triangular L with x = L L^H of positive definite matrices, or L^H if `upper`.

    Only the Hermitian part of x counts, and its lower triangle is read. The gradient is Hermitian.
    Raises NotSquareError for other than square matrices, SingularError where one is not positive definite.

    >>> import adjoint as ad
    >>> ad.linalg.cholesky(ad.tensor([[4.0, 2.0], [2.0, 2.0]])).tolist()
    [[2.0, 0.0], [1.0, 1.0]]
    """
    lower = run("cholesky", (square(x, "cholesky"),))
    return adjoint(lower) if as_flag(upper, "cholesky", "upper") else lower


@overload
def qr(x: Operand[B], /, mode: Literal["reduced", "complete"] = "reduced") -> QRResult: ...
@overload
def qr(x: Operand[B], /, mode: Literal["r"]) -> Tensor[B]: ...
@overload
def qr(x: Operand[B], /, mode: str) -> Any: ...
def qr(x: Operand[B], /, mode: str = "reduced") -> Any:
    """x = Q R, with Q of as many columns as x has rows or columns ("reduced", the fewer), or square ("complete").

    R alone, a tensor, for the mode "r".

    The diagonal of R is real, and as LAPACK leaves it, of either sign. Gradients need a first min(m, n) columns that
    are independent, else `backward` raises BackwardError; what completes Q turns as little as it can.
    Raises ShapeError for fewer than two axes, ArgumentError for another mode.

    >>> import adjoint as ad
    >>> q, r = ad.linalg.qr(ad.tensor([[3.0, 1.0], [4.0, 2.0]]))
    >>> ad.linalg.matmul(q, r).round().tolist()
    [[3.0, 1.0], [4.0, 2.0]]
    """
    x = matrices_of(x, "qr")
    as_choice(mode, "qr", "mode", ("reduced", "complete", "r"))
    found = QRResult(*run("qr", (x,), complete=mode == "complete"))
    return found.R if mode == "r" else found


def eigh(x: Operand[B], /, UPLO: str = "L") -> EighResult:
    """The eigenvalues of Hermitian (or real symmetric) matrices, rising, and their orthonormal vectors in columns.

    Only the Hermitian part of x counts; its lower triangle is read, or the upper one for UPLO="U". The gradient is
    Hermitian. Raises NotSquareError for other than square matrices, ArgumentError for another UPLO.

    >>> import adjoint as ad
    >>> ad.linalg.eigh(ad.tensor([[2.0, 0.0], [0.0, 1.0]])).eigenvalues.tolist()
    [1.0, 2.0]
    """
    return EighResult(*run("eigh", (_lower(x, UPLO, "eigh"),)))


def eigvalsh(x: Operand[B], /, UPLO: str = "L") -> Tensor[B]:
    """The eigenvalues of Hermitian matrices, rising. Reads, gradient and errors as `eigh`.

    >>> import adjoint as ad
    >>> ad.linalg.eigvalsh(ad.tensor([[0.0, 2.0], [2.0, 0.0]])).tolist()
    [-2.0, 2.0]
    """
    return run("eigvalsh", (_lower(x, UPLO, "eigvalsh"),))  # type: ignore[no-any-return]


def eig(x: Operand[B], /) -> EigResult:
    """The eigenvalues of square matrices, in LAPACK's order, and vectors of length one in columns; both complex.

    Gradients need as many independent vectors as there are values. Raises NotSquareError for other than square
    matrices, SingularError where nan or inf stand among the elements.

    >>> import adjoint as ad
    >>> ad.linalg.eig(ad.tensor([[0.0, -1.0], [1.0, 0.0]])).eigenvalues.tolist()
    [1j, -1j]
    """
    return EigResult(*run("eig", (square(x, "eig"),)))


def eigvals(x: Operand[B], /) -> Tensor[B]:
    """The complex eigenvalues of square matrices, in LAPACK's order. Gradient and errors as `eig`.

    >>> import adjoint as ad
    >>> ad.linalg.eigvals(ad.tensor([[3.0, 0.0], [0.0, 4.0]])).tolist()
    [(3+0j), (4+0j)]
    """
    return run("eigvals", (square(x, "eigvals"),))  # type: ignore[no-any-return]


def svd(x: Operand[B], /, full_matrices: bool = True) -> SVDResult:
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


def svdvals(x: Operand[B], /) -> Tensor[B]:
    """The singular values, falling. Errors as `svd`.

    >>> import adjoint as ad
    >>> ad.linalg.svdvals(ad.tensor([[3.0, 0.0], [0.0, -4.0]])).tolist()
    [4.0, 3.0]
    """
    return run("svdvals", (matrices_of(x, "svdvals"),))  # type: ignore[no-any-return]


def lu(x: Operand[B], /) -> LUResult:
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


def lu_factor(x: Operand[B], /) -> LUFactorResult:
    """The factors of `lu` of square matrices in one matrix, with the order of rows, for `lu_solve`.

    The order is the permutation itself, of shape (..., n), and not LAPACK's list of swaps. Gradients are those of `lu`.
    Raises NotSquareError for other than square matrices.

    >>> import adjoint as ad
    >>> factor = ad.linalg.lu_factor(ad.tensor([[1.0, 2.0], [2.0, 2.0]]))
    >>> factor.LU.tolist(), factor.order.tolist()
    ([[2.0, 2.0], [0.5, 1.0]], [1, 0])
    """
    order, lower, upper = run("lu", (square(x, "lu_factor"),))
    return LUFactorResult(run("tril", (lower,), k=-1) + upper, order)


def svd_lowrank(x: Operand[B], /, q: int = 6, niter: int = 2, M: Any = None) -> SVDLowRankResult:
    """The q largest singular values of x - M, or what is near to them, and their vectors, from random products.

    N. Halko, P. Martinsson and J. Tropp, Finding structure with randomness (2011), algorithms 4.4 and 5.1, as
    PyTorch's: `niter` products with x x^H make small values smaller. Right to all digits where the rank is at most q.
    Gradients are those of what is computed, and need a rank of at least q. Raises ShapeError for fewer than two axes,
    ArgumentError for a q of less than one or more than rows or columns, or a niter below zero or above 1000.

    >>> import adjoint as ad
    >>> ad.linalg.svd_lowrank(ad.tensor([[3.0, 0.0], [0.0, 4.0]]), q=2).S.round(3).tolist()
    [4.0, 3.0]
    """
    name = "svd_lowrank"
    x = matrices_of(x, name, M)
    if M is not None:
        x = matrices_of(x - as_tensors([x, M], name)[1], name)
    m, n = x.shape[-2:]
    q, niter = as_integer(q, name, "q", 1), as_integer(niter, name, "niter", 0)
    if niter > 1000:  # some are enough
        raise errors.ArgumentError(f"{name}: niter is at most 1000, received {niter}")
    if q > min(m, n):
        raise errors.ArgumentError(f"{name}: q is at most {min(m, n)} for matrices of shape {x.shape}, received {q}")
    device, dtype = x.device, x.real.dtype
    draw = wrap(device.random_normal(key=device.next_key(), shape=(n, q), dtype=dtype), device)
    basis, _ = run("qr", (run("matmul", (x, run("astype", (draw,), dtype=x.dtype))),), complete=False)
    turned = adjoint(x)
    for _ in range(niter):
        other, _ = run("qr", (run("matmul", (turned, basis)),), complete=False)
        basis, _ = run("qr", (run("matmul", (x, other)),), complete=False)
    u, s, vh = run("svd", (run("matmul", (adjoint(basis), x)),), full_matrices=False)
    return SVDLowRankResult(run("matmul", (basis, u)), s, adjoint(vh))


def householder_product(h: Operand[B], tau: Any, /) -> Tensor[B]:
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
