"""Derivatives of linear algebra.

Formulas: M. Giles, Collected matrix derivative results for forward and reverse mode algorithmic
differentiation (2008), sections 2.2, 2.3; I. Murray, Differentiation of the Cholesky decomposition
(2016), section 3.1. Written without conjugates: `T` below is the plain transpose.
"""

from __future__ import annotations

from typing import Any

from adjoint.rules.records import Composed, Custom, Record


def _T(B: Any, x: Any) -> Any:
    n = len(x.shape)
    return B.permute_dims(x, axes=(*range(n - 2), n - 1, n - 2))


def _solve(B: Any, g: Any, wanted: tuple[int, ...], a: Any, out: Any) -> tuple[Any, ...]:
    """b gets A^-T g, and A gets -(A^-T g) x^T: one solve serves both."""
    right = B.solve(_T(B, a), g)
    answers = {0: lambda: B.negative(B.matmul(right, _T(B, out))), 1: lambda: right}
    return tuple(answers[i]() for i in wanted)


def _inv(B: Any, g: Any, out: Any) -> Any:
    turned = _T(B, out)
    return B.negative(B.matmul(B.matmul(turned, g), turned))


def _solve_forward(B: Any, tangents: Any, a: Any, out: Any) -> Any:
    """A^-1 (b' - A' x)."""
    turned, right = tangents
    if turned is not None:
        moved = B.matmul(turned, out)
        right = B.negative(moved) if right is None else B.subtract(right, moved)
    return B.solve(a, right)


def _inv_forward(B: Any, tangents: Any, out: Any) -> Any:
    return B.negative(B.matmul(B.matmul(out, tangents[0]), out))


def _det_forward(B: Any, tangents: Any, x: Any) -> Any:
    n = len(x.shape)
    return B.sum(B.multiply(B.cofactor(x), tangents[0]), axis=(n - 2, n - 1), keepdims=False)


def _det(B: Any, g: Any, x: Any) -> Any:
    """The cofactors: right also where the matrix is singular."""
    n = len(x.shape)
    return B.multiply(B.expand_dims(g, axis=(n - 2, n - 1)), B.cofactor(x))


def _cofactor_definition(B: Any, x: Any) -> Any:
    """det(A) A^-T, where A has an inverse; leaves also know the limit where it has none."""
    n = len(x.shape)
    return B.multiply(B.expand_dims(B.det(x), axis=(n - 2, n - 1)), _T(B, B.inv(x)))


def _cholesky(B: Any, g: Any, out: Any) -> Any:
    """L^-T Phi(L^T g) L^-1, symmetrised; Phi takes the lower triangle with half the diagonal.

    For complex A = L L^H the plain-transpose convention puts conjugates on L.
    """
    if B.dtype_of(out).kind == "c":
        lower = B.conj(out)
        g = B.conj(g)
        return B.conj(_cholesky_hermitian(B, g, B.conj(lower)))
    return _cholesky_hermitian(B, g, out)


def _cholesky_hermitian(B: Any, g: Any, lower: Any) -> Any:
    complex_ = B.dtype_of(lower).kind == "c"
    adjoint = _T(B, B.conj(lower)) if complex_ else _T(B, lower)
    inner = B.tril(B.matmul(adjoint, g), k=0)
    strict = B.tril(inner, k=-1)
    diagonal = B.subtract(inner, strict)
    if complex_:  # the diagonal of L is real
        dtype = B.dtype_of(lower)
        diagonal = B.astype(B.real(diagonal), dtype=dtype)
    phi = B.add(strict, B.multiply(diagonal, 0.5))
    left = B.solve(adjoint, phi)  # L^-H Phi
    flipped = _T(B, B.conj(left)) if complex_ else _T(B, left)
    half = B.solve(adjoint, flipped)  # L^-H (L^-H Phi)^H = (L^-H Phi L^-1)^H
    other = _T(B, B.conj(half)) if complex_ else _T(B, half)
    return B.multiply(B.add(half, other), 0.5)


def _cholesky_forward(B: Any, tangents: Any, out: Any) -> Any:
    """L Phi(L^-1 A' L^-H), with A' made Hermitian as the pullback makes it."""
    (t,) = tangents
    complex_ = B.dtype_of(out).kind == "c"

    def H(x: Any) -> Any:
        return _T(B, B.conj(x)) if complex_ else _T(B, x)

    t = B.multiply(B.add(t, H(t)), 0.5)
    inner = B.solve(out, H(B.solve(out, t)))  # L^-1 (L^-1 A')^H = (L^-1 A' L^-H)^H, which is itself
    lower = B.tril(inner, k=0)
    strict = B.tril(inner, k=-1)
    return B.matmul(out, B.add(strict, B.multiply(B.subtract(lower, strict), 0.5)))


RECORDS: dict[str, Record] = {
    "solve": Custom(pullback=_solve, pushforward=_solve_forward),
    "inv": Custom(x=_inv, pushforward=_inv_forward),
    "det": Custom(x=_det, pushforward=_det_forward),
    "cofactor": Composed(_cofactor_definition),
    "cholesky": Custom(x=_cholesky, pushforward=_cholesky_forward),
}
