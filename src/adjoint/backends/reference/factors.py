"""Factors of single matrices by the textbook, over Python's or mpmath's numbers: what the primitives mean.

Jacobi's rotations: G. Golub and C. Van Loan, Matrix Computations (2013), sections 8.5 and 8.6. Householder's
reflections are signed as LAPACK signs them.
"""

from __future__ import annotations

from collections.abc import Callable

from adjoint import errors
from adjoint.backends.reference.scalars import Number, Scalars

Line = list[Number]
Matrix = list[Line]

_SWEEPS = 100  # rotations converge quadratically: a dozen do, at any precision


def adjoint(a: Matrix, columns: int) -> Matrix:
    """The conjugate transpose of a matrix with so many columns."""
    return [[row[j].conjugate() for row in a] for j in range(columns)]


def times(a: Matrix, b: Matrix) -> Matrix:
    return [[sum(x * row[j] for x, row in zip(line, b, strict=True)) for j in range(len(b[0]))] for line in a]


def identity(n: int) -> Matrix:
    return [[int(i == j) for j in range(n)] for i in range(n)]


def _dot(x: Line, y: Line) -> Number:
    return sum(a.conjugate() * b for a, b in zip(x, y, strict=True))


def _rotate(lines: list[Line], p: int, q: int, c: Number, s: Number, phase: Number) -> None:
    """Two lines turned against each other."""
    x, y = lines[p], lines[q]
    lines[p] = [c * a - s * phase.conjugate() * b for a, b in zip(x, y, strict=True)]
    lines[q] = [s * phase * a + c * b for a, b in zip(x, y, strict=True)]


def _rotation(B: Scalars, alpha: Number, beta: Number, gamma: Number) -> tuple[Number, Number, Number]:
    """Cosine, sine and phase of the turn that makes [[alpha, gamma], [conj(gamma), beta]] diagonal."""
    zeta = (beta - alpha) / (2 * abs(gamma))
    t = (1 if zeta >= 0 else -1) / (abs(zeta) + B.functions["sqrt"](1 + zeta * zeta))
    c = 1 / B.functions["sqrt"](1 + t * t)
    return c, c * t, gamma / abs(gamma)


def _orthogonal(B: Scalars, columns: list[Line], epsilon: Number) -> tuple[list[Line], list[Line]]:
    """Hestenes: columns turned until they are orthogonal, and the turns, as columns too."""
    n = len(columns)
    lines, turns = [list(line) for line in columns], identity(n)
    for _ in range(_SWEEPS):
        done = True
        for p in range(n):
            for q in range(p + 1, n):
                alpha, beta = (_dot(lines[i], lines[i]).real for i in (p, q))
                gamma = _dot(lines[p], lines[q])
                if abs(gamma) <= epsilon * B.functions["sqrt"](alpha * beta):
                    continue
                done = False
                rotation = _rotation(B, alpha, beta, gamma)
                _rotate(lines, p, q, *rotation)
                _rotate(turns, p, q, *rotation)
        if done:
            break
    return lines, turns


def _completed(B: Scalars, found: list[Line], n: int) -> list[Line]:
    """An orthonormal basis that begins with these vectors, by Gram and Schmidt, twice."""
    basis = list(found)
    while len(basis) < n:
        best: tuple[Number, Line] | None = None
        for start in identity(n):
            line: Line = list(start)
            for _ in range(2):
                for known in basis:
                    along = _dot(known, line)
                    line = [x - along * y for x, y in zip(line, known, strict=True)]
            size = B.functions["sqrt"](_dot(line, line).real)
            if best is None or size > best[0]:
                best = size, line
        assert best is not None
        basis.append([x / best[0] for x in best[1]])
    return basis


def svd(B: Scalars, a: Matrix, rows: int, columns: int, *, full: bool) -> tuple[Matrix, Line, Matrix]:
    """U, the singular values and V^H."""
    if rows < columns:
        v, s, uh = svd(B, adjoint(a, columns), columns, rows, full=full)
        return adjoint(uh, rows), s, adjoint(v, len(v[0]) if v else 0)
    lines, turns = _orthogonal(B, [[row[j] for row in a] for j in range(columns)], B.epsilon)
    sizes = [B.functions["sqrt"](_dot(line, line).real) for line in lines]
    order = sorted(range(columns), key=lambda j: sizes[j], reverse=True)
    s = [sizes[j] for j in order]
    left = [[x / sizes[j] for x in lines[j]] for j in order if sizes[j] > 0]
    left = _completed(B, left, rows if full else columns)
    u = [[line[i] for line in left] for i in range(rows)]
    return u, s, [[x.conjugate() for x in turns[j]] for j in order]


def eigh(B: Scalars, a: Matrix) -> tuple[Line, Matrix]:
    """The eigenvalues in rising order, and the vectors in columns; of a the lower triangle is read.

    The turns that make the columns of a definite matrix orthogonal are its eigenvectors, so it is made definite.
    """
    n = len(a)
    full = [[a[i][j] if i > j else a[j][i].conjugate() if i < j else a[i][i].real for j in range(n)] for i in range(n)]
    shift = 2 * max([sum(abs(x) for x in row) for row in full], default=0)
    moved = [[x + shift * (i == j) for j, x in enumerate(row)] for i, row in enumerate(full)]
    _, turns = _orthogonal(B, [[row[j] for row in moved] for j in range(n)], B.epsilon)
    values = [_dot(v, [sum(x * y for x, y in zip(row, v, strict=True)) for row in full]).real for v in turns]
    order = sorted(range(n), key=values.__getitem__)
    return [values[j] for j in order], [[turns[j][i] for j in order] for i in range(n)]


def eig(
    B: Scalars, a: Matrix, minor: Callable[[Matrix, int, int], Matrix], determinant: Callable[[Matrix], Number]
) -> tuple[Line, Matrix]:
    """Roots of the characteristic polynomial, by Durand and Kerner; vectors are columns of the adjugate of a - w.

    For eigenvalues that differ: of equal ones the adjugate may be zero.
    """
    n = len(a)

    def shifted(w: Number) -> Matrix:
        return [[x - w * (i == j) for j, x in enumerate(row)] for i, row in enumerate(a)]

    size = max([sum(abs(x) for x in row) for row in a], default=0)
    roots = [size * B.complex_type(0.4, 0.9) ** (k + 1) for k in range(n)]
    for _ in range(50 * _SWEEPS):
        moved = 0
        for i, root in enumerate(roots):
            rest = (-1) ** n
            for j, other in enumerate(roots):
                rest = rest if i == j else rest * (root - other)
            step = determinant(shifted(root)) / rest
            roots[i] = root - step
            moved = max(moved, abs(step))
        if moved <= 4 * B.epsilon * size:
            break
    vectors = []
    for root in roots:
        matrix = shifted(root)
        columns = [[(-1) ** (i + j) * determinant(minor(matrix, j, i)) for i in range(n)] for j in range(n)]
        line = max(columns, key=lambda v: _dot(v, v).real)
        length = B.functions["sqrt"](_dot(line, line).real)
        if not length > 0:
            raise errors.SingularError("eig: the reference finds vectors of eigenvalues that differ only")
        vectors.append([x / length for x in line])
    return roots, [[v[i] for v in vectors] for i in range(n)]


def qr(B: Scalars, a: Matrix, rows: int, columns: int, *, complete: bool) -> tuple[Matrix, Matrix]:
    """Householder's reflections, column by column."""
    r, q = [list(line) for line in a], identity(rows)
    for j in range(min(rows, columns)):
        alpha = r[j][j]
        size = B.functions["sqrt"](sum([abs(r[i][j]) ** 2 for i in range(j, rows)], B.real_type(0)))
        if not any(r[i][j] != 0 for i in range(j + 1, rows)) and alpha.imag == 0:
            continue
        beta = -size if alpha.real >= 0 else size
        tau = (beta - alpha) / beta
        v = [0] * j + [1] + [r[i][j] / (alpha - beta) for i in range(j + 1, rows)]
        for c in range(columns):  # (1 - conj(tau) v v^H) r
            along = tau.conjugate() * _dot(v, [row[c] for row in r])
            for i in range(rows):
                r[i][c] = r[i][c] - along * v[i]
        for row in q:  # q (1 - tau v v^H)
            along = tau * sum(x * y for x, y in zip(row, v, strict=True))
            row[:] = [x - along * y.conjugate() for x, y in zip(row, v, strict=True)]
    k = rows if complete else min(rows, columns)
    upper = [[x if i <= c else 0 for c, x in enumerate(r[i])] for i in range(k)]
    return [row[:k] for row in q], upper


def lu(a: Matrix, columns: int) -> tuple[list[int], Matrix, Matrix]:
    """Gauss with partial pivoting: the order of rows, and the factors of a in that order."""
    rows = len(a)
    work, order = [list(line) for line in a], list(range(rows))
    k = min(rows, columns)
    for j in range(k):
        best = max(range(j, rows), key=lambda i: abs(work[i][j].real) + abs(work[i][j].imag))
        work[j], work[best] = work[best], work[j]
        order[j], order[best] = order[best], order[j]
        for i in range(j + 1, rows):
            factor = work[i][j] / work[j][j] if work[j][j] != 0 else work[i][j]
            work[i] = [*work[i][:j], factor, *[x - factor * y for x, y in zip(work[i], work[j], strict=True)][j + 1 :]]
    lower = [[work[i][j] if j < i else int(i == j) for j in range(k)] for i in range(rows)]
    return order, lower, [[work[i][j] if j >= i else 0 for j in range(columns)] for i in range(k)]


def expm(B: Scalars, a: Matrix) -> Matrix:
    """The exponential series of the matrix halved until it is small, squared as often."""
    n = len(a)
    size, halvings = max([sum(abs(x) for x in row) for row in a], default=0), 0
    while size > 0.5:
        size, halvings = size / 2, halvings + 1
    small = [[x / 2**halvings for x in row] for row in a]
    total, term, k = identity(n), identity(n), 0
    while any(x != 0 for row in term for x in row) and (k == 0 or _largest(term) > B.epsilon * _largest(total) / 8):
        k += 1
        term = [[x / k for x in row] for row in times(term, small)]
        total = combined(total, term, 1)
    for _ in range(halvings):
        total = times(total, total)
    return total


def sqrtm(B: Scalars, a: Matrix, inverse: Callable[[Matrix], Matrix]) -> Matrix:
    """Denman and Beavers's iteration: the mean of each of two matrices and of the other one's inverse."""
    root, other = a, identity(len(a))
    for _ in range(_SWEEPS):
        next_root, other = _mean(root, inverse(other)), _mean(other, inverse(root))
        moved, root = _largest(combined(next_root, root, -1)), next_root
        if moved <= 64 * len(a) * B.epsilon * _largest(root):
            return root
    raise errors.SingularError("sqrtm: an eigenvalue is zero or negative")


def logm(B: Scalars, a: Matrix, inverse: Callable[[Matrix], Matrix]) -> Matrix:
    """Twice the series of the inverse hyperbolic tangent, of the square roots that are near the identity."""
    ones, roots = identity(len(a)), 0
    while _largest(combined(a, ones, -1)) > 0.25 / len(a):
        a, roots = sqrtm(B, a, inverse), roots + 1
    power = times(combined(a, ones, -1), inverse(combined(a, ones, 1)))
    square, total, k = times(power, power), power, 1
    while _largest(power) > B.epsilon * _largest(total) / 8:
        power, k = times(power, square), k + 2
        total = combined(total, power, 1 / B.real_type(k))
    return [[x * 2 ** (roots + 1) for x in row] for row in total]


def combined(a: Matrix, b: Matrix, scale: Number) -> Matrix:
    """a + scale b."""
    return [[x + scale * y for x, y in zip(*pair, strict=True)] for pair in zip(a, b, strict=True)]


def _mean(a: Matrix, b: Matrix) -> Matrix:
    return [[x / 2 for x in row] for row in combined(a, b, 1)]


def _largest(a: Matrix) -> Number:
    return max(abs(x) for row in a for x in row)
