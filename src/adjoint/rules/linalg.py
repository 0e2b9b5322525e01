"""Derivatives of linear algebra.

Formulas: M. Giles, Collected matrix derivative results for forward and reverse mode algorithmic
differentiation (2008), sections 2.2, 2.3; I. Murray, Differentiation of the Cholesky decomposition
(2016), section 3.1. Written without conjugates: `T` below is the plain transpose.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from adjoint.rules.factors import svd_pullback
from adjoint.rules.matrices import C, H, T, cast, columns, hermitian, join, part, product
from adjoint.rules.records import Composed, Custom, Record
from adjoint.rules.sparsity import solved
from adjoint.rules.taylor import quotient

BOOL = np.dtype(np.bool_)


def _solve(B: Any, g: Any, wanted: tuple[int, ...], a: Any, out: Any) -> tuple[Any, ...]:
    """b gets A^-T g, and A gets -(A^-T g) x^T: one solve serves both."""
    right = B.solve(T(B, a), g)
    answers = {0: lambda: B.negative(B.matmul(right, T(B, out))), 1: lambda: right}
    return tuple(answers[i]() for i in wanted)


def _inv(B: Any, g: Any, out: Any) -> Any:
    turned = T(B, out)
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
    return B.multiply(B.expand_dims(B.det(x), axis=(n - 2, n - 1)), T(B, B.inv(x)))


def _half_diagonal(B: Any, x: Any) -> Any:
    """The lower triangle with half the real part of its diagonal: the diagonal of L is real."""
    n, dtype = x.shape[-1], B.dtype_of(x)
    ones = B.tril(B.full(shape=(n, n), value=1, dtype=dtype), k=0)
    halved = B.multiply(x, B.subtract(ones, B.multiply(B.eye(rows=n, columns=n, k=0, dtype=dtype), 0.5)))
    if dtype.kind != "c":
        return halved
    return B.where(B.eye(rows=n, columns=n, k=0, dtype=BOOL), B.astype(B.real(halved), dtype=dtype), halved)


def _cholesky(B: Any, g: Any, out: Any) -> Any:
    """L^-T Phi(L^T g) conj(L^-1), made Hermitian; Phi takes the lower triangle with half the diagonal."""
    inverse = B.inv(out)
    return hermitian(B, product(B, T(B, inverse), _half_diagonal(B, B.matmul(T(B, out), g)), C(B, inverse)))


def _cholesky_forward(B: Any, tangents: Any, out: Any) -> Any:
    """L Phi(L^-1 A' L^-H), with A' made Hermitian as the pullback makes it."""
    inverse = B.inv(out)
    inner = product(B, inverse, hermitian(B, tangents[0]), H(B, inverse))
    return B.matmul(out, _half_diagonal(B, inner))


def _cofactor_pullback_definition(B: Any, g: Any, x: Any) -> Any:
    """det(A) (tr(A^-1 g) A^-T - (A^-1 g A^-1)^T), where A has an inverse; leaves also know the limit."""
    n, inverse = len(x.shape), B.inv(x)
    moved = B.matmul(inverse, g)
    last = len(moved.shape) - 1  # examples that share x have more axes than it
    ones = B.eye(rows=x.shape[-1], columns=x.shape[-1], k=0, dtype=B.dtype_of(x))
    trace = B.sum(B.multiply(moved, ones), axis=(last - 1, last), keepdims=True)
    rest = B.subtract(B.multiply(inverse, trace), B.matmul(moved, inverse))
    return B.multiply(B.expand_dims(B.det(x), axis=(n - 2, n - 1)), T(B, rest))


def _slogdet_definition(B: Any, x: Any) -> tuple[Any, Any]:
    value = B.det(x)
    return B.sign(value), B.log(B.abs(value))


def _slogdet(B: Any, g: Any, wanted: Any, x: Any, outs: Any) -> tuple[Any]:
    """A^-T times the cotangent of tr(A^-1 dA), whose real part is that of the logarithm, and which turns the sign."""
    sign, size = g
    factor = None if size is None else cast(B, size, outs[0])
    if sign is not None and B.dtype_of(x).kind == "c":
        turned = B.multiply(B.astype(B.imag(B.multiply(sign, outs[0])), dtype=B.dtype_of(x)), 1j)
        factor = turned if factor is None else B.add(factor, turned)
    if factor is None:
        return (None,)
    n = len(x.shape)
    return (B.multiply(B.expand_dims(factor, axis=(n - 2, n - 1)), T(B, B.inv(x))),)


def _slogdet_forward(B: Any, tangents: Any, x: Any, outs: Any) -> tuple[Any, Any]:
    n = len(x.shape)
    trace = B.sum(B.multiply(T(B, B.inv(x)), tangents[0]), axis=(n - 2, n - 1), keepdims=False)
    if B.dtype_of(x).kind != "c":
        return None, trace
    return B.multiply(outs[0], B.multiply(B.astype(B.imag(trace), dtype=B.dtype_of(x)), 1j)), B.real(trace)


# --- systems with structure ----------------------------------------------------------------------


def _sylvester_definition(B: Any, a: Any, b: Any, q: Any) -> Any:
    """One system of all elements, by rows: (a x 1 + 1 x b^T) vec(x) = vec(q) with Kronecker's products."""
    m, n = q.shape[-2:]
    dtype, first, second = B.dtype_of(q), len(a.shape), len(b.shape)
    ones = [B.eye(rows=k, columns=k, k=0, dtype=dtype) for k in (m, n)]
    left = B.multiply(B.expand_dims(a, axis=(first - 1, first + 1)), B.reshape(ones[1], shape=(1, n, 1, n)))
    right = B.multiply(B.reshape(ones[0], shape=(m, 1, m, 1)), B.expand_dims(T(B, b), axis=(second - 2, second)))
    matrix = B.add(left, right)
    matrix = B.reshape(matrix, shape=(*matrix.shape[:-4], m * n, m * n))
    out = B.solve(matrix, B.reshape(q, shape=(*q.shape[:-2], m * n, 1)))
    return B.reshape(out, shape=(*out.shape[:-2], m, n))


def _sylvester(B: Any, g: Any, wanted: tuple[int, ...], a: Any, b: Any, out: Any) -> tuple[Any, ...]:
    """q gets the y of a^T y + y b^T = g, a gets -y x^T and b -x^T y."""
    y = B.solve_sylvester(T(B, a), T(B, b), g)
    turned = T(B, out)
    answers = {
        0: lambda: B.negative(B.matmul(y, turned)),
        1: lambda: B.negative(B.matmul(turned, y)),
        2: lambda: y,
    }
    return tuple([answers[i]() for i in wanted])


def _sylvester_forward(B: Any, tangents: Any, a: Any, b: Any, out: Any) -> Any:
    ta, tb, right = tangents
    for moved in (None if ta is None else B.matmul(ta, out), None if tb is None else B.matmul(out, tb)):
        if moved is not None:
            right = B.negative(moved) if right is None else B.subtract(right, moved)
    return B.solve_sylvester(a, b, right)


def _moved(B: Any, x: Any, by: int, axis: int) -> Any:
    """The elements so many places further along one of the last two axes, and zeros where there are none."""
    n, place = x.shape[axis], len(x.shape) + axis
    by = max(-n, min(n, by))
    kept = slice(by, None) if by > 0 else slice(0, n + by)
    x = part(B, x, rows=kept) if axis == -2 else part(B, x, columns=kept)
    widths = tuple([(max(-by, 0), max(by, 0)) if i == place else (0, 0) for i in range(len(x.shape))])
    return B.pad(x, widths=widths, value=0)


def _diagonals(B: Any, ab: Any) -> list[Any]:
    return [part(B, ab, rows=slice(i, i + 1)) for i in range(ab.shape[-2])]


def _banded_definition(B: Any, ab: Any, b: Any, *, lower: int, upper: int) -> Any:
    """The system with the whole matrix."""
    n, dtype = ab.shape[-1], B.dtype_of(ab)
    terms = [
        B.multiply(row, B.eye(rows=n, columns=n, k=upper - i, dtype=dtype)) for i, row in enumerate(_diagonals(B, ab))
    ]
    return B.solve(functools.reduce(B.add, terms), b)


def _banded(B: Any, g: Any, wanted: tuple[int, ...], ab: Any, out: Any, lower: int, upper: int) -> tuple[Any, ...]:
    """As that of `solve`, with the transpose's diagonals, and of -y x^T the diagonals alone."""
    rows = [_moved(B, row, upper - i, -1) for i, row in enumerate(_diagonals(B, ab))]
    turned = functools.reduce(lambda x, y: join(B, x, y, -2), rows[::-1])
    y = B.solve_banded(turned, g, lower=upper, upper=lower)

    def of_diagonals() -> Any:
        last = len(out.shape) - 1
        found = [
            B.expand_dims(
                B.sum(B.multiply(_moved(B, y, i - upper, -2), out), axis=(last,), keepdims=False), axis=(last - 1,)
            )
            for i in range(ab.shape[-2])
        ]
        return B.negative(functools.reduce(lambda x, y: join(B, x, y, -2), found))

    return tuple([of_diagonals() if i == 0 else y for i in wanted])


def _banded_forward(B: Any, tangents: Any, ab: Any, out: Any, lower: int, upper: int) -> Any:
    turned, right = tangents
    if turned is not None:
        for i, row in enumerate(_diagonals(B, turned)):
            moved = _moved(B, B.multiply(T(B, row), out), upper - i, -2)
            right = B.negative(moved) if right is None else B.subtract(right, moved)
    return B.solve_banded(ab, right, lower=lower, upper=upper)


# --- functions of matrices: N. Higham, Functions of Matrices (2008), theorem 3.6, and R. Mathias (1996) ----------
#
# The function of [[A, E], [0, A]] has the derivative along E in its corner, whatever A's eigenvalues are.


def _along(name: str, B: Any, a: Any, e: Any, least: Any) -> Any:
    """The derivative of a function of A along E. It is linear in E, which is made small first, as `least` says.

    So the block matrix needs no more halvings or roots than A does.
    """
    n, axes = a.shape[-1], (len(a.shape) - 2, len(a.shape) - 1)
    size = B.sum(B.abs(B.detach(e)), axis=axes, keepdims=True)
    size = B.where(B.logical_and(B.isfinite(size), B.greater(size, 0.0)), size, 1.0)
    size = cast(B, B.divide(size, least), e)
    e = B.divide(e, size)
    block = join(B, join(B, a, e, -1), join(B, B.multiply(e, 0.0), a, -1), -2)
    corner = part(B, B[name](block), rows=slice(0, n), columns=slice(n, None))
    return B.multiply(corner, size)


def _of_matrices(name: str, least: Callable[[Any, Any], Any]) -> Custom:
    """The record of a primary function of matrices, of whose transpose it is the transpose."""
    return Custom(
        x=lambda B, g, x: _along(name, B, T(B, x), g, least(B, x)),
        pushforward=lambda B, tangents, x: _along(name, B, x, tangents[0], least(B, x)),
        taylor=functools.partial(_taylor, name),
    )


def _tiny(B: Any, a: Any) -> Any:
    """So little beside A that the steps which iterations take are those of A alone."""
    size = B.sum(B.abs(B.detach(a)), axis=(len(a.shape) - 2, len(a.shape) - 1), keepdims=True)
    return B.where(B.logical_and(B.isfinite(size), B.greater(size, 0.0)), B.multiply(size, 2.0**-20), 1.0)


def _taylor(name: str, B: Any, operands: Any, out: Any) -> Any:
    """The corner of the function of [[A, A', A''/2, ...], [0, A, A', ...], ...], times a factorial."""
    (terms,) = operands
    n, order = terms[0].shape[-1], len(out)
    none = B.multiply(terms[0], 0.0)
    row, factorial = terms[0], 1
    for k, term in enumerate(terms[1:], 1):
        factorial *= k
        row = join(B, row, none if term is None else B.divide(term, float(factorial)), -1)
    block, zeros = row, none
    for k in range(1, order + 1):
        shifted = join(B, zeros, part(B, row, columns=slice(0, n * (order + 1 - k))), -1)
        block, zeros = join(B, block, shifted, -2), join(B, zeros, none, -1)
    corner = part(B, B[name](block), rows=slice(0, n), columns=slice(n * order, None))
    return B.multiply(corner, float(factorial))


# --- least squares: G. Golub and V. Pereyra, The differentiation of pseudo-inverses (1973), equation 4.12 --------


def _pinv_definition(B: Any, x: Any, rtol: Any) -> Any:
    u, s, vh = B.svd(x, full_matrices=False)
    return B.matmul(columns(B, H(B, vh), _reciprocals(B, s, rtol)), H(B, u))


def _reciprocals(B: Any, s: Any, rtol: Any) -> Any:
    """1 / s, and 0 for those that count as zeros."""
    if not s.shape[-1]:
        return s
    if hasattr(rtol, "shape") and rtol.shape:
        rtol = B.squeeze(rtol, axis=(len(rtol.shape) - 1,))
    none = B.less_equal(s, B.multiply(B.max(s, axis=(len(s.shape) - 1,), keepdims=True), rtol))
    return B.where(none, 0.0, B.divide(1.0, B.where(none, 1.0, s)))


def _pinv(B: Any, g: Any, x: Any, out: Any) -> Any:
    turned, adjoint = T(B, out), H(B, g)
    total = B.negative(product(B, turned, g, turned))
    left = product(B, adjoint, C(B, out), turned)
    total = B.add(total, B.subtract(left, product(B, C(B, x), C(B, out), left)))
    right = product(B, turned, C(B, out), adjoint)
    return B.add(total, B.subtract(right, product(B, right, C(B, out), C(B, x))))


def _pinv_forward(B: Any, tangents: Any, x: Any, out: Any) -> Any:
    t = tangents[0]
    if t is None:
        return None
    total, adjoint = B.negative(product(B, out, t, out)), H(B, t)
    left = product(B, out, H(B, out), adjoint)
    total = B.add(total, B.subtract(left, product(B, left, x, out)))
    right = product(B, adjoint, H(B, out), out)
    return B.add(total, B.subtract(right, product(B, out, x, right)))


def _lstsq_definition(B: Any, a: Any, b: Any, rtol: Any) -> tuple[Any, Any]:
    u, s, vh = B.svd(a, full_matrices=False)
    inner = B.matmul(H(B, u), b)
    inverse = _reciprocals(B, s, rtol)
    scaled = B.multiply(cast(B, B.expand_dims(inverse, axis=(len(inverse.shape),)), inner), inner)
    x = B.matmul(H(B, vh), scaled)
    return x, B.broadcast_to(s, shape=(*x.shape[:-2], s.shape[-1]))


def _lstsq(B: Any, g: Any, wanted: Any, a: Any, b: Any, rtol: Any, outs: Any) -> tuple[Any, ...]:
    gx, gs = g
    found: dict[int, Any] = dict.fromkeys(wanted)
    if gx is not None:
        x, inverse = outs[0], B.pinv(a, rtol)
        turned = T(B, inverse)
        right = B.matmul(turned, gx)
        found[1] = right
        if 0 in wanted:
            rest = B.subtract(gx, B.matmul(T(B, a), right))
            residual = B.subtract(b, B.matmul(a, x))
            total = B.negative(B.matmul(right, T(B, x)))
            total = B.add(total, B.matmul(C(B, residual), T(B, B.matmul(inverse, C(B, right)))))
            found[0] = B.add(total, B.matmul(B.matmul(turned, C(B, x)), H(B, rest)))
    if gs is not None and 0 in wanted:
        factors = B.svd(a, full_matrices=False)
        (more,) = svd_pullback(B, (None, gs, None), (0,), factors, False)
        found[0] = more if found[0] is None else B.add(found[0], more)
    return tuple([found[i] for i in wanted])


def _lstsq_forward(B: Any, tangents: Any, a: Any, b: Any, rtol: Any, outs: Any) -> tuple[Any, Any]:
    (ta, tb, _), (x, s) = tangents, outs
    if ta is None and tb is None:
        return None, None
    inverse = B.pinv(a, rtol)
    if ta is None:
        return B.matmul(inverse, tb), None
    moved = B.matmul(ta, x)
    right = B.negative(moved) if tb is None else B.subtract(tb, moved)
    turned = H(B, ta)
    residual = B.subtract(b, B.matmul(a, x))
    outside = product(B, turned, H(B, inverse), x)
    total = B.add(B.matmul(inverse, right), product(B, inverse, H(B, inverse), B.matmul(turned, residual)))
    total = B.add(total, B.subtract(outside, B.matmul(inverse, B.matmul(a, outside))))
    u, _, vh = B.svd(a, full_matrices=False)
    singular = B.sum(B.multiply(C(B, u), B.matmul(ta, H(B, vh))), axis=(len(u.shape) - 2,), keepdims=False)
    singular = B.real(singular) if B.dtype_of(a).kind == "c" else singular
    singular = B.where(B.equal(s, 0.0), 0.0, B.broadcast_to(singular, shape=tuple(s.shape)))
    return total, singular


RECORDS: dict[str, Record] = {
    "solve": Custom(
        pullback=_solve,
        pushforward=_solve_forward,
        sparsity=solved,
        taylor=lambda B, terms, out: quotient(B, B.matmul, lambda b, a: B.solve(a, b), terms[1], terms[0], out),
    ),
    "inv": Custom(x=_inv, pushforward=_inv_forward),
    "solve_sylvester": Composed(_sylvester_definition, pullback=_sylvester, pushforward=_sylvester_forward),
    "solve_banded": Composed(_banded_definition, pullback=_banded, pushforward=_banded_forward, sparsity=solved),
    "det": Custom(x=_det, pushforward=_det_forward),
    "cofactor": Composed(
        _cofactor_definition,
        x=lambda B, g, x: B.cofactor_pullback(g, x),
        pushforward=lambda B, tangents, x: B.cofactor_pullback(tangents[0], x),
    ),
    "cofactor_pullback": Composed(_cofactor_pullback_definition),
    "slogdet": Composed(_slogdet_definition, pullback=_slogdet, pushforward=_slogdet_forward),
    "expm": _of_matrices("expm", lambda B, a: 1.0),
    "sqrtm": _of_matrices("sqrtm", _tiny),
    "logm": _of_matrices("logm", _tiny),
    "pinv": Composed(_pinv_definition, x=_pinv, pushforward=_pinv_forward),
    "lstsq": Composed(_lstsq_definition, pullback=_lstsq, pushforward=_lstsq_forward),
    "cholesky": Custom(x=_cholesky, pushforward=_cholesky_forward),
}
