"""Derivatives of factorisations.

Eigenvalues: M. Giles, Collected matrix derivative results (2008), section 3.1; C. Boeddeker et al., On the computation
of complex-valued gradients (2017), section 4. Singular values: J. Townsend, Differentiating the singular value
decomposition (2016); Z. Wan and S. Zhang, Automatic differentiation for complex valued SVD (2019). QR: S. Walter and
L. Lehmann, Algorithmic differentiation of linear algebra functions (2010); M. Seeger et al., Auto-differentiating
linear algebra (2017).

Cotangents are the conjugates of gradients, and so these formulas are the conjugates of those in the papers. Vectors are
defined up to a phase (and within the space of equal values, up to a rotation): derivatives are those in which vectors
turn as little as they can, and are right for functions that do not depend on that choice. `_inverse_gaps` says what
equal is.
"""

from __future__ import annotations

from typing import Any

from adjoint.dtypes import FLOATING, finfo
from adjoint.rules.matrices import (
    C,
    H,
    T,
    cast,
    columns,
    diagonal,
    hermitian,
    join,
    part,
    product,
    real,
    rows,
    skew,
    with_diagonal,
)
from adjoint.rules.records import Composed, Custom, Record
from adjoint.rules.sparsity import solved


def _tolerance(B: Any, values: Any, size: int) -> Any:
    """Up to where values along the last axis count as equal, or as zero: what rounding makes of them."""
    last = len(values.shape) - 1
    largest = B.max(B.abs(B.detach(values)), axis=(last,), keepdims=True)
    return B.multiply(largest, 8 * size * finfo(B.dtype_of(values)).eps.item())


def _inverse(B: Any, x: Any, tolerance: Any) -> Any:
    """1 / x, and 0 where x is no larger than a tolerance, at every order."""
    none = B.less_equal(B.abs(x), tolerance)
    return B.where(none, 0.0, B.divide(1.0, B.where(none, 1.0, x)))


def _inverse_gaps(B: Any, values: Any, tolerance: Any) -> Any:
    """1 / (values_j - values_i), and 0 for equal values: on the diagonal, and for what rounding alone keeps apart."""
    last = len(values.shape)
    return _inverse(
        B,
        B.subtract(B.expand_dims(values, axis=(last - 1,)), B.expand_dims(values, axis=(last,))),
        B.expand_dims(tolerance, axis=(last,)),
    )


# --- Hermitian matrices --------------------------------------------------------------------------


def _eigh(B: Any, g: Any, wanted: Any, outs: Any) -> tuple[Any]:
    """conj(V) (diag(gw) + skew(V^T gV) / (w_j - w_i)) V^T, which is Hermitian."""
    (gw, gv), (w, v) = g, outs
    if not v.shape[-1]:
        return (v,)
    turned, adjoint = T(B, v), C(B, v)
    if gv is None:
        return (B.matmul(columns(B, adjoint, gw), turned),)
    gaps = _inverse_gaps(B, w, _tolerance(B, w, v.shape[-1]))
    inner = B.multiply(skew(B, B.matmul(turned, gv)), cast(B, gaps, v))
    return (product(B, adjoint, with_diagonal(B, inner, gw), turned),)


def _eigh_forward(B: Any, tangents: Any, outs: Any) -> tuple[Any, Any]:
    w, v = outs
    if not v.shape[-1]:
        return w, v
    inner = product(B, H(B, v), hermitian(B, tangents[0]), v)
    gaps = _inverse_gaps(B, w, _tolerance(B, w, v.shape[-1]))
    return real(B, diagonal(B, inner)), B.matmul(v, B.multiply(inner, cast(B, gaps, v)))


# --- general square matrices ---------------------------------------------------------------------


def _unit(B: Any, v: Any, t: Any) -> Any:
    """What of a change of vectors keeps their length: t - v Re(v^H t), column by column."""
    n = len(v.shape)
    along = B.real(B.sum(B.multiply(B.conj(v), t), axis=(n - 2,), keepdims=True))
    return B.subtract(t, B.multiply(v, B.astype(along, dtype=B.dtype_of(v))))


def _eig(B: Any, g: Any, wanted: Any, x_dtype: Any, outs: Any) -> tuple[Any]:
    """V^-T (diag(gw) + (V^T gV) / (w_j - w_i)) V^T; vectors have length 1."""
    (gw, gv), (w, v) = g, outs
    turned = T(B, v)
    if not v.shape[-1]:
        inner = v
    elif gv is None:
        inner = with_diagonal(B, B.multiply(v, 0.0), gw)
    else:
        gaps = _inverse_gaps(B, w, _real_tolerance(B, w))
        # of the transpose of `_unit`, of cotangents, and so with conj(v) in the place of v
        inner = B.multiply(B.matmul(turned, _unit(B, B.conj(v), gv)), gaps)
        inner = with_diagonal(B, inner, gw)
    out = B.solve(turned, B.matmul(inner, turned))
    return (B.astype(B.real(out), dtype=x_dtype) if x_dtype.kind in FLOATING else out,)


def _real_tolerance(B: Any, w: Any) -> Any:
    return _tolerance(B, w, w.shape[-1])


def _eig_forward(B: Any, tangents: Any, outs: Any) -> tuple[Any, Any]:
    w, v = outs
    if not v.shape[-1]:
        return w, v
    inner = B.solve(v, B.matmul(cast(B, tangents[0], v), v))
    gaps = _inverse_gaps(B, w, _real_tolerance(B, w))
    return diagonal(B, inner), _unit(B, v, B.matmul(v, B.multiply(inner, gaps)))


# --- singular values -----------------------------------------------------------------------------


def _reciprocals(B: Any, s: Any, size: int) -> tuple[Any, Any, Any]:
    """1 / (s_j - s_i), 1 / (s_j + s_i) and 1 / s, each 0 where it is 1 / 0.

    The turns that U and V do together are divided by the differences, those against each other by the sums. Taken
    apart so, what does not depend on the former is right for equal singular values: U V^H, or the sum of all.
    """
    last, tolerance = len(s.shape), _tolerance(B, s, size)
    sums = B.add(B.expand_dims(s, axis=(last - 1,)), B.expand_dims(s, axis=(last,)))
    return (
        _inverse_gaps(B, s, tolerance),
        _inverse(B, sums, B.expand_dims(tolerance, axis=(last,))),
        _inverse(B, s, tolerance),
    )


def _split(B: Any, u: Any, vh: Any, k: int) -> tuple[Any, Any, Any, Any]:
    """The vectors of the k singular values, and those that complete the bases, or None."""
    more_u = part(B, u, columns=slice(k, None)) if u.shape[-1] > k else None
    more_vh = part(B, vh, rows=slice(k, None)) if vh.shape[-2] > k else None
    u = u if more_u is None else part(B, u, columns=slice(0, k))
    return u, more_u, vh if more_vh is None else part(B, vh, rows=slice(0, k)), more_vh


def svd_pullback(B: Any, g: Any, wanted: Any, outs: Any, full_matrices: bool) -> tuple[Any]:
    (gu, gs, gvh), (u, s, vh) = g, outs
    m, n, k = u.shape[-2], vh.shape[-1], s.shape[-1]
    u, more_u, vh, more_vh = _split(B, u, vh, k)
    if not k:
        return (B.matmul(u, vh),)
    left, right = C(B, u), C(B, vh)
    if gs is not None:  # a singular value that is zero is as the absolute value of zero
        gs = B.where(B.equal(s, 0.0), 0.0, gs)
    if gu is None and gvh is None:
        return (B.matmul(columns(B, left, gs), right),)
    differences, sums, inverses = _reciprocals(B, s, max(m, n))
    gu, more_gu = (None, None) if gu is None else _parts(B, gu, k, -1)
    gvh, more_gvh = (None, None) if gvh is None else _parts(B, gvh, k, -2)
    x = None if gu is None else B.matmul(T(B, u), gu)
    y = None if gvh is None else C(B, B.matmul(vh, T(B, gvh)))
    turns, against = (None if z is None else skew(B, z) for z in (x, y))
    if turns is None:
        assert against is not None
        together, apart = against, B.negative(against)
    elif against is None:
        together = apart = turns
    else:
        together, apart = B.add(turns, against), B.subtract(turns, against)
    inner = B.multiply(together, cast(B, differences, u))
    inner = B.add(inner, B.multiply(apart, cast(B, sums, u)))
    if gs is not None:
        ones = B.eye(rows=k, columns=k, k=0, dtype=B.dtype_of(gs))
        inner = B.add(inner, cast(B, columns(B, ones, gs), inner))
    if x is not None and m > k:
        inner = B.subtract(inner, columns(B, x, inverses))
    if y is not None and n > k:
        inner = B.subtract(inner, rows(B, inverses, H(B, y)))
    outer = B.matmul(left, inner)
    if gu is not None and m > k:
        outer = B.add(outer, columns(B, gu, inverses))
        if more_gu is not None:
            turned = product(B, C(B, more_u), H(B, more_gu), left)
            outer = B.subtract(outer, columns(B, turned, inverses))
    total = B.matmul(outer, right)
    if gvh is not None and n > k:
        others = gvh
        if more_gvh is not None:
            others = B.subtract(others, product(B, right, H(B, more_gvh), C(B, more_vh)))
        total = B.add(total, B.matmul(left, rows(B, inverses, others)))
    return (total,)


def _parts(B: Any, g: Any, k: int, axis: int) -> tuple[Any, Any]:
    """The cotangents of the first k vectors, and of the others, or None."""
    if g.shape[axis] == k:
        return g, None
    if axis == -1:
        return part(B, g, columns=slice(0, k)), part(B, g, columns=slice(k, None))
    return part(B, g, rows=slice(0, k)), part(B, g, rows=slice(k, None))


def _svd_forward(B: Any, tangents: Any, outs: Any, full_matrices: bool) -> tuple[Any, Any, Any]:
    (t,), (u, s, vh) = tangents, outs
    m, n, k = u.shape[-2], vh.shape[-1], s.shape[-1]
    if not k:
        return B.multiply(u, 0.0), s, B.multiply(vh, 0.0)
    u, more_u, vh, more_vh = _split(B, u, vh, k)
    differences, sums, inverses = _reciprocals(B, s, max(m, n))
    right = B.matmul(t, H(B, vh))
    inner = B.matmul(H(B, u), right)
    moved = real(B, diagonal(B, inner))
    moved = B.where(B.equal(s, 0.0), 0.0, moved)
    both = B.multiply(hermitian(B, inner), cast(B, differences, u))
    apart = B.multiply(skew(B, inner), cast(B, sums, u))
    new_u = B.matmul(u, B.add(both, apart))
    new_vh = B.matmul(B.subtract(apart, both), vh)
    if m > k:
        new_u = B.add(new_u, columns(B, B.subtract(right, B.matmul(u, inner)), inverses))
    if n > k:
        left = B.matmul(H(B, u), t)
        new_vh = B.add(new_vh, rows(B, inverses, B.subtract(left, B.matmul(inner, vh))))
    if more_u is not None:
        others = B.negative(B.matmul(columns(B, u, inverses), H(B, B.matmul(H(B, more_u), right))))
        new_u = join(B, new_u, others, -1)
    if more_vh is not None:
        left = product(B, H(B, u), t, H(B, more_vh))
        others = B.negative(B.matmul(H(B, left), rows(B, inverses, vh)))
        new_vh = join(B, new_vh, others, -2)
    return new_u, moved, new_vh


# --- triangular factors --------------------------------------------------------------------------


def _real_diagonal(B: Any, x: Any) -> Any:
    """The upper triangle with the real part of its diagonal."""
    if B.dtype_of(x).kind != "c":
        return B.triu(x, k=0)
    return B.add(B.triu(x, k=1), B.astype(B.real(B.tril(B.triu(x, k=0), k=0)), dtype=B.dtype_of(x)))


def _over(B: Any, x: Any, r: Any) -> Any:
    """x r^-1 for an upper triangle r."""
    return T(B, B.solve_triangular(T(B, r), T(B, x), upper=False, unit=False))


def _qr(B: Any, g: Any, wanted: Any, outs: Any, complete: bool) -> tuple[Any]:
    """(gQ + conj(Q) S) R^-T, S the Hermitian matrix with the upper triangle of gR R^T - Q^T gQ.

    Wide matrices are square ones and R's other columns, which are Q^H times theirs. What completes Q turns against
    the rest alone.
    """
    (gq, gr), (q, r) = g, outs
    m, n = q.shape[-2], r.shape[-1]
    k = min(m, n)
    if not k:
        return (B.matmul(q, r),)
    others = more_r = more_q = more_gq = None
    if n > m:
        r, more_r = part(B, r, columns=slice(0, m)), part(B, r, columns=slice(m, None))
        if gr is not None:
            gr, more_gr = part(B, gr, columns=slice(0, m)), part(B, gr, columns=slice(m, None))
            others = B.matmul(C(B, q), more_gr)
            turned = B.matmul(C(B, B.matmul(q, more_r)), H(B, more_gr))
            gq = turned if gq is None else B.add(gq, turned)
    elif q.shape[-1] > k:
        q, more_q = part(B, q, columns=slice(0, k)), part(B, q, columns=slice(k, None))
        r = part(B, r, rows=slice(0, k))
        gr = None if gr is None else part(B, gr, rows=slice(0, k))
        gq, more_gq = (None, None) if gq is None else _parts(B, gq, k, -1)
    w = None if gr is None else B.matmul(gr, T(B, r))
    if gq is not None:
        turned = B.matmul(T(B, q), gq)
        w = B.negative(turned) if w is None else B.subtract(w, turned)
    strict = B.triu(w, k=1)
    inner = B.add(_real_diagonal(B, w), H(B, strict))
    total = B.matmul(C(B, q), inner)
    if gq is not None:
        total = B.add(gq, total)
    if more_gq is not None:
        total = B.subtract(total, product(B, C(B, more_q), H(B, more_gq), C(B, q)))
    total = T(B, B.solve_triangular(r, T(B, total), upper=True, unit=False))
    if n > m:
        more = B.multiply(more_r, 0.0) if others is None else others
        total = join(B, total, more, -1)
    return (total,)


def _qr_forward(B: Any, tangents: Any, outs: Any, complete: bool) -> tuple[Any, Any]:
    """dR = S R and dQ = dA R^-1 - Q S, with S upper triangular and Q^H dQ skew."""
    (t,), (q, r) = tangents, outs
    m, n = q.shape[-2], r.shape[-1]
    k = min(m, n)
    if not k:
        return B.multiply(q, 0.0), r
    more_q = more_r = more_t = None
    if n > m:
        r, more_r = part(B, r, columns=slice(0, m)), part(B, r, columns=slice(m, None))
        t, more_t = part(B, t, columns=slice(0, m)), part(B, t, columns=slice(m, None))
    elif q.shape[-1] > k:
        q, more_q = part(B, q, columns=slice(0, k)), part(B, q, columns=slice(k, None))
        r, more_r = part(B, r, rows=slice(0, k)), part(B, r, rows=slice(k, None))
    z = _over(B, t, r)
    inner = B.matmul(H(B, q), z)
    s = B.add(_real_diagonal(B, inner), H(B, B.tril(inner, k=-1)))
    new_q, new_r = B.subtract(z, B.matmul(q, s)), B.matmul(s, r)
    if n > m:
        turned = B.matmul(B.subtract(inner, s), more_r)
        new_r = join(B, new_r, B.subtract(B.matmul(H(B, q), more_t), turned), -1)
    elif more_q is not None:
        against = H(B, B.matmul(H(B, more_q), z))
        new_q = join(B, new_q, B.negative(B.matmul(q, against)), -1)
        new_r = join(B, new_r, B.multiply(more_r, 0.0), -2)
    return new_q, new_r


def _lu(B: Any, g: Any, wanted: Any, outs: Any) -> tuple[Any]:
    """Of a square matrix P A = L U: L^-T (tril(L^T gL) + triu(gU U^T)) U^-T, the first without its diagonal.

    What a wide matrix has beside the square one, or a tall one below it, follows by solving with the triangles.
    """
    (_, gl, gu), (order, lower, upper) = g, outs
    m, n, k = lower.shape[-2], upper.shape[-1], upper.shape[-2]
    if not k:
        return (B.matmul(lower, upper),)
    first, rest = slice(0, k), slice(k, None)
    square_l = lower if m == k else part(B, lower, rows=first)
    square_u = upper if n == k else part(B, upper, columns=first)
    inner = more = None
    if gl is not None:
        gl, more_gl = _parts(B, gl, k, -2)
        inner = B.tril(B.matmul(T(B, square_l), gl), k=-1)
        if more_gl is not None:
            below = part(B, lower, rows=rest)
            inner = B.subtract(inner, B.triu(B.matmul(T(B, below), more_gl), k=0))
            more = T(B, B.solve_triangular(square_u, T(B, more_gl), upper=True, unit=False))
    if gu is not None:
        gu, more_gu = _parts(B, gu, k, -1)
        found = B.triu(B.matmul(gu, T(B, square_u)), k=0)
        if more_gu is not None:
            beside = part(B, upper, columns=rest)
            found = B.subtract(found, B.tril(B.matmul(more_gu, T(B, beside)), k=-1))
            more = B.solve_triangular(T(B, square_l), more_gu, upper=True, unit=True)
        inner = found if inner is None else B.add(inner, found)
    total = B.solve_triangular(T(B, square_l), inner, upper=True, unit=True)
    total = T(B, B.solve_triangular(square_u, T(B, total), upper=True, unit=False))
    if m != n:
        if more is None:
            more = B.multiply(part(B, lower, rows=rest) if m > k else part(B, upper, columns=rest), 0.0)
        total = join(B, total, more, -2 if m > k else -1)
    back = B.argsort(order, axis=len(order.shape) - 1, descending=False)
    return (B.take_along_axis(total, B.expand_dims(back, axis=(len(order.shape),)), axis=len(order.shape) - 1),)


def _lu_forward(B: Any, tangents: Any, outs: Any) -> tuple[None, Any, Any]:
    """dL = L tril(L^-1 P dA U^-1), without the diagonal, and dU = triu(the same) U."""
    order, lower, upper = outs
    m, n, k = lower.shape[-2], upper.shape[-1], upper.shape[-2]
    if not k:
        return None, lower, upper
    axis = len(order.shape)
    t = B.take_along_axis(tangents[0], B.expand_dims(order, axis=(axis,)), axis=axis - 1)
    first, rest = slice(0, k), slice(k, None)
    square_l = lower if m == k else part(B, lower, rows=first)
    square_u = upper if n == k else part(B, upper, columns=first)
    square_t = t if m == n else part(B, t, rows=first, columns=first)
    inner = B.solve_triangular(square_l, _over(B, square_t, square_u), upper=False, unit=True)
    below, above = B.tril(inner, k=-1), B.triu(inner, k=0)
    new_l, new_u = B.matmul(square_l, below), B.matmul(above, square_u)
    if m > k:
        more = B.subtract(_over(B, part(B, t, rows=rest), square_u), B.matmul(part(B, lower, rows=rest), above))
        new_l = join(B, new_l, more, -2)
    if n > k:
        more = B.solve_triangular(square_l, part(B, t, columns=rest), upper=False, unit=True)
        new_u = join(B, new_u, B.subtract(more, B.matmul(below, part(B, upper, columns=rest))), -1)
    return None, new_l, new_u


def _triangle(B: Any, x: Any, upper: bool, unit: bool) -> Any:
    return B.triu(x, k=int(unit)) if upper else B.tril(x, k=-int(unit))


def _solve_triangular_definition(B: Any, a: Any, b: Any, *, upper: bool, unit: bool) -> Any:
    a = _triangle(B, a, upper, unit)
    if unit:
        a = B.add(a, B.eye(rows=a.shape[-1], columns=a.shape[-1], k=0, dtype=B.dtype_of(a)))
    return B.solve(a, b)


def _solve_triangular(B: Any, g: Any, wanted: Any, a: Any, out: Any, upper: bool, unit: bool) -> tuple[Any, ...]:
    """As that of `solve`, and nothing for the triangle that is not read."""
    right = B.solve_triangular(T(B, a), g, upper=not upper, unit=unit)
    answers = {0: lambda: _triangle(B, B.negative(B.matmul(right, T(B, out))), upper, unit), 1: lambda: right}
    return tuple([answers[i]() for i in wanted])


def _solve_triangular_forward(B: Any, tangents: Any, a: Any, out: Any, upper: bool, unit: bool) -> Any:
    turned, right = tangents
    if turned is not None:
        moved = B.matmul(_triangle(B, turned, upper, unit), out)
        right = B.negative(moved) if right is None else B.subtract(right, moved)
    return B.solve_triangular(a, right, upper=upper, unit=unit)


RECORDS: dict[str, Record] = {
    "eigh": Custom(pullback=_eigh, pushforward=_eigh_forward),
    "eigvalsh": Composed(lambda B, x: B.eigh(x)[0]),
    "eig": Custom(pullback=_eig, pushforward=_eig_forward),
    "eigvals": Composed(lambda B, x: B.eig(x)[0]),
    "svd": Custom(pullback=svd_pullback, pushforward=_svd_forward),
    "svdvals": Composed(lambda B, x: B.svd(x, full_matrices=False)[1]),
    "qr": Custom(pullback=_qr, pushforward=_qr_forward),
    "lu": Custom(pullback=_lu, pushforward=_lu_forward),
    "solve_triangular": Composed(
        _solve_triangular_definition,
        pullback=_solve_triangular,
        pushforward=_solve_triangular_forward,
        sparsity=solved,
    ),
}
