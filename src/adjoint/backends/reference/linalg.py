"""Linear algebra on lists of rows."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from adjoint import errors
from adjoint.backends.reference import factors
from adjoint.backends.reference.places import Line, Matrix, Values, broadcast, matrices, places
from adjoint.backends.reference.scalars import Number
from adjoint.primitives import broadcast_shapes

if TYPE_CHECKING:
    from adjoint.backends.reference import Reference


def _minor(matrix: Matrix, row: int, column: int) -> Matrix:
    return [[v for j, v in enumerate(line) if j != column] for i, line in enumerate(matrix) if i != row]


def _determinant(matrix: Matrix) -> Number:
    """Laplace's expansion along the first row."""
    if not matrix:
        return 1
    return sum((-1) ** j * v * _determinant(_minor(matrix, 0, j)) for j, v in enumerate(matrix[0]))


def _det(B: Reference, x: Values) -> Line:
    return [_determinant(matrix) for matrix in matrices(x)]


def _cofactor(B: Reference, x: Values) -> Line:
    return [
        (-1) ** (i + j) * _determinant(_minor(matrix, i, j)) for matrix in matrices(x) for i, j in places(x.shape[-2:])
    ]


def _eliminate(matrix: Matrix, right: Matrix) -> Matrix:
    """matrix^-1 right by Gauss and Jordan, with partial pivoting."""
    n = len(matrix)
    rows = [[*a, *b] for a, b in zip(matrix, right, strict=True)]
    for i in range(n):
        pivot = max(range(i, n), key=lambda r: abs(rows[r][i]))
        if rows[pivot][i] == 0:
            raise errors.SingularError("singular matrix: it has no inverse")
        rows[i], rows[pivot] = rows[pivot], rows[i]
        rows[i] = [v / rows[i][i] for v in rows[i]]
        for r in range(n):
            if r != i:
                rows[r] = [v - rows[r][i] * w for v, w in zip(rows[r], rows[i], strict=True)]
    return [row[n:] for row in rows]


def _solve(B: Reference, a: Values, b: Values) -> Line:
    batch = broadcast_shapes(a.shape[:-2], b.shape[:-2])
    a, b = (broadcast(x, (*batch, *x.shape[-2:])) for x in (a, b))
    return [v for m, right in zip(matrices(a), matrices(b), strict=True) for row in _eliminate(m, right) for v in row]


def _inverse(matrix: Matrix) -> Matrix:
    return _eliminate(matrix, factors.identity(len(matrix)))


def _inv(B: Reference, x: Values) -> Line:
    return [v for matrix in matrices(x) for row in _inverse(matrix) for v in row]


def _cholesky(B: Reference, x: Values) -> Line:
    """Cholesky and Banachiewicz, row by row; only the lower triangle is read."""
    out: Line = []
    for matrix in matrices(x):
        n = len(matrix)
        lower: Matrix = [[0] * n for _ in range(n)]
        for i in range(n):
            for j in range(i + 1):
                rest = matrix[i][j] - sum(lower[i][k] * lower[j][k].conjugate() for k in range(j))
                if i != j:
                    lower[i][j] = rest / lower[j][j]
                elif rest.real > 0:
                    lower[i][i] = B.scalars.functions["sqrt"](rest.real)
                else:
                    raise errors.SingularError("cholesky: the matrix is not positive definite")
        out.extend(v for row in lower for v in row)
    return out


def _expm(B: Reference, x: Values) -> Line:
    return [v for matrix in matrices(x) for row in factors.expm(B.scalars, matrix) for v in row]


def _iterated(name: str) -> Callable[[Reference, Values], Line]:
    def run(B: Reference, x: Values) -> Line:
        found = [getattr(factors, name)(B.scalars, matrix, _inverse) if matrix else [] for matrix in matrices(x)]
        return [v for matrix in found for row in matrix for v in row]

    return run


def _eigh(B: Reference, x: Values) -> tuple[Line, ...]:
    return _joined([factors.eigh(B.scalars, matrix) for matrix in matrices(x)], 2)


def _eig(B: Reference, x: Values) -> tuple[Line, ...]:
    return _joined([factors.eig(B.scalars, matrix, _minor, _determinant) for matrix in matrices(x)], 2)


def _svd(B: Reference, x: Values, *, full_matrices: bool) -> tuple[Line, ...]:
    size = x.shape[-2:]
    return _joined([factors.svd(B.scalars, matrix, *size, full=full_matrices) for matrix in matrices(x)], 3)


def _qr(B: Reference, x: Values, *, complete: bool) -> tuple[Line, ...]:
    size = x.shape[-2:]
    return _joined([factors.qr(B.scalars, matrix, *size, complete=complete) for matrix in matrices(x)], 2)


def _lu(B: Reference, x: Values) -> tuple[Line, ...]:
    return _joined([factors.lu(matrix, x.shape[-1]) for matrix in matrices(x)], 3)


def _joined(found: list[Any], results: int) -> tuple[Line, ...]:
    """Each result of all matrices as one flat list."""
    return tuple([[v for each in found for v in _flattened(each[i])] for i in range(results)])


def _flattened(part: Any) -> Line:
    return [v for row in part for v in row] if part and isinstance(part[0], list) else part


IMPLEMENTATIONS: dict[str, Callable[..., Any]] = {
    "det": _det,
    "cofactor": _cofactor,
    "inv": _inv,
    "solve": _solve,
    "cholesky": _cholesky,
    "expm": _expm,
    "sqrtm": _iterated("sqrtm"),
    "logm": _iterated("logm"),
    "eigh": _eigh,
    "eig": _eig,
    "svd": _svd,
    "qr": _qr,
    "lu": _lu,
}
