"""Small matrices as their elements, each of which is one value for a whole stack: so a factorization is one loop.

By Gauss with partial pivoting and by Cholesky (G. H. Golub and C. F. Van Loan, Matrix Computations, 2013, 3.4 and 4.2).
A matrix that is singular fails a check, and NumPy is asked, who raises the error.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

from adjoint import errors
from adjoint.compiler.graph import Value
from adjoint.primitives import TABLE

_STEPS = 300  # multiplications, up to which all are written down

Row = list[Any]


def _fits(B: Any, a: Any, columns: int) -> bool:
    if not B.may_check or a.__class__ is not Value or a.const is not None or a.dtype.kind != "f":
        return False
    n = a.shape[-1]
    return bool(n * n * (n + columns) <= _STEPS)


def _elements(B: Any, a: Any) -> list[Row]:
    whole = (slice(None),) * (len(a.shape) - 2)
    return [[B.index(a, key=(*whole, i, j)) for j in range(a.shape[-1])] for i in range(a.shape[-2])]


def _matrix(B: Any, rows: list[Row]) -> Any:
    last = len(rows[0][0].shape)

    def stack(parts: list[Any], axis: int) -> Any:
        parts = [B.expand_dims(x, axis=(axis,)) for x in parts]
        return parts[0] if len(parts) == 1 else B.concat(*parts, axis=axis)

    return stack([stack(row, last) for row in rows], last)


def _check(B: Any, name: str, holds: list[Any], a: Any) -> None:
    what, advice = TABLE[name].failure
    error = lambda _: errors.SingularError(f"{name}: {what}; {advice}")
    B.check(functools.reduce(B.logical_and, holds), a, error)


def _check_pivots(B: Any, name: str, pivots: list[Any], a: Any) -> None:
    _check(B, name, [B.not_equal(x, 0.0) for x in pivots], a)


def _eliminated(B: Any, rows: list[Row]) -> tuple[list[Any], Any]:
    """Make the first columns of the rows an upper triangle; gives its diagonal, and whether an odd number changed."""
    odd: Any = None
    pivots = []
    for k in range(len(rows)):
        for i in range(k + 1, len(rows)):
            larger = B.greater(B.abs(rows[i][k]), B.abs(rows[k][k]))
            pairs = list(zip(rows[k][k:], rows[i][k:], strict=True))
            rows[k][k:] = [B.where(larger, y, x) for x, y in pairs]
            rows[i][k:] = [B.where(larger, x, y) for x, y in pairs]
            odd = larger if odd is None else B.logical_xor(odd, larger)
        pivot = rows[k][k]
        pivots.append(pivot)
        safe = B.where(B.equal(pivot, 0.0), 1.0, pivot)  # where it is zero, so is the column below
        for i in range(k + 1, len(rows)):
            factor = B.divide(rows[i][k], safe)
            rows[i][k + 1 :] = [
                B.subtract(x, B.multiply(factor, y)) for x, y in zip(rows[i][k + 1 :], rows[k][k + 1 :], strict=True)
            ]
    return pivots, odd


def _substituted(B: Any, rows: list[Row], pivots: list[Any]) -> list[Row]:
    """What the columns behind a triangle are multiplied with its inverse."""
    n = len(rows)
    found: list[Row] = [row[n:] for row in rows]
    for i in reversed(range(n)):
        for j in range(i + 1, n):
            found[i] = [B.subtract(x, B.multiply(rows[i][j], y)) for x, y in zip(found[i], found[j], strict=True)]
        found[i] = [B.divide(x, pivots[i]) for x in found[i]]
    return found


def _solve(B: Any, a: Any, b: Any) -> Any:
    if not _fits(B, a, b.shape[-1]) or not _fits(B, b, 0) or a.dtype != b.dtype or a.shape[:-2] != b.shape[:-2]:
        return None
    rows = [[*x, *y] for x, y in zip(_elements(B, a), _elements(B, b), strict=True)]
    pivots, _ = _eliminated(B, rows)
    _check_pivots(B, "solve", pivots, a)
    return _matrix(B, _substituted(B, rows, pivots))


def _solve_triangular(B: Any, a: Any, b: Any, *, upper: bool, unit: bool) -> Any:
    if not _fits(B, a, b.shape[-1]) or not _fits(B, b, 0) or a.dtype != b.dtype or a.shape[:-2] != b.shape[:-2]:
        return None
    left, right = _elements(B, a), _elements(B, b)
    if not upper:  # reversed rows and columns make it an upper one
        left, right = [row[::-1] for row in left[::-1]], right[::-1]
    pivots = [B.full(shape=a.shape[:-2], value=1.0, dtype=a.dtype) if unit else row[i] for i, row in enumerate(left)]
    if not unit:
        _check_pivots(B, "solve_triangular", pivots, a)
    found = _substituted(B, [[*x, *y] for x, y in zip(left, right, strict=True)], pivots)
    return _matrix(B, found if upper else found[::-1])


def _inv(B: Any, a: Any) -> Any:
    if not _fits(B, a, a.shape[-1]):
        return None
    n, like = a.shape[-1], a.shape[:-2]
    one, zero = (B.full(shape=like, value=x, dtype=a.dtype) for x in (1.0, 0.0))
    rows = [[*row, *[one if i == j else zero for j in range(n)]] for i, row in enumerate(_elements(B, a))]
    pivots, _ = _eliminated(B, rows)
    _check_pivots(B, "inv", pivots, a)
    return _matrix(B, _substituted(B, rows, pivots))


def _slogdet(B: Any, a: Any) -> Any:
    if not _fits(B, a, 0):
        return None
    pivots, odd = _eliminated(B, _elements(B, a))
    sign = functools.reduce(B.multiply, [B.sign(x) for x in pivots])
    size = functools.reduce(B.add, [B.log(B.abs(x)) for x in pivots])
    if odd is not None:
        sign = B.where(odd, B.negative(sign), sign)
    # of a singular matrix no product with infinities
    return B.add(sign, 0.0), B.where(B.equal(sign, 0.0), -math.inf, size)


def _det(B: Any, a: Any) -> Any:
    found = _slogdet(B, a)
    return None if found is None else B.multiply(found[0], B.exp(found[1]))


def _cofactor(B: Any, a: Any) -> Any:
    """Of matrices of two and three rows, whose minors are products or differences of two."""
    n = a.shape[-1]
    if n not in (2, 3) or not _fits(B, a, 0):
        return None
    x = _elements(B, a)
    if n == 2:
        return _matrix(B, [[x[1][1], B.negative(x[1][0])], [B.negative(x[0][1]), x[0][0]]])
    after: Callable[[int], tuple[int, int]] = lambda i: ((i + 1) % 3, (i + 2) % 3)

    def minor(i: int, j: int) -> Any:
        (p, q), (r, s) = after(i), after(j)
        return B.subtract(B.multiply(x[p][r], x[q][s]), B.multiply(x[p][s], x[q][r]))

    return _matrix(B, [[minor(i, j) for j in range(3)] for i in range(3)])


def _cholesky(B: Any, a: Any) -> Any:
    """Column by column, of the lower triangle."""
    if not _fits(B, a, 0):
        return None
    n, rows = a.shape[-1], _elements(B, a)
    zero = B.full(shape=a.shape[:-2], value=0.0, dtype=a.dtype)
    holds = []
    for k in range(n):
        holds.append(B.greater(rows[k][k], 0.0))
        pivot = rows[k][k] = B.sqrt(rows[k][k])
        for i in range(k + 1, n):
            rows[i][k] = B.divide(rows[i][k], pivot)
            rows[k][i] = zero
        for i in range(k + 1, n):
            for j in range(k + 1, i + 1):
                rows[i][j] = B.subtract(rows[i][j], B.multiply(rows[i][k], rows[j][k]))
    _check(B, "cholesky", holds, a)
    return _matrix(B, rows)


LOWERED: dict[str, Callable[..., Any]] = {
    "solve": _solve,
    "solve_triangular": _solve_triangular,
    "inv": _inv,
    "slogdet": _slogdet,
    "det": _det,
    "cholesky": _cholesky,
    "cofactor": _cofactor,
}
