"""Linear algebra that LAPACK's wrappers lack, over any array namespace: in blocks, with loops over those alone.

Triangular systems and LU: G. Golub and C. Van Loan, Matrix Computations (2013), sections 3.1 and 3.2. The exponential:
A. Al-Mohy and N. Higham, A new scaling and squaring algorithm for the matrix exponential (2009), and N. Higham, The
scaling and squaring method for the matrix exponential revisited (2005). The square root and the logarithm: S. Cheng,
N. Higham, C. Kenney and A. Laub, Approximating the logarithm of a matrix to specified accuracy (2001).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

NAMES = "solve_triangular lu expm sqrtm logm cofactor cofactor_pullback".split()  # of primitives
BLOCK = 64  # rows: below this, LAPACK's solver for any matrix is as fast as one for triangles would be


def conj(xp: Any, x: Any) -> Any:
    return xp.conj(x) if xp.isdtype(x.dtype, "complex floating") else x


def _epsilon(xp: Any, x: Any) -> float:
    return float(xp.finfo(x.dtype).eps)


def _flip(xp: Any, x: Any, *axes: int) -> Any:
    return xp.flip(x, axis=axes)


# --- triangles -----------------------------------------------------------------------------------


def solve_triangular(xp: Any, a: Any, b: Any, *, upper: bool, unit: bool) -> Any:
    """Substitution by blocks of rows, from the last; those of a lower triangle in reverse order.

    An upper triangle has nothing to eliminate, so that the solver for any matrix comes down to substitution in it.
    """
    if not upper:  # reversed rows and columns make it an upper one
        reverse = solve_triangular(xp, _flip(xp, a, -2, -1), _flip(xp, b, -2), upper=True, unit=unit)
        return _flip(xp, reverse, -2)
    n = a.shape[-1]
    ones = xp.eye(n, dtype=xp.bool)
    if unit:
        a = xp.where(ones, xp.ones((), dtype=a.dtype), a)
    blocks: list[Any] = []
    for stop in range(n, 0, -BLOCK):
        start = max(0, stop - BLOCK)
        right = b[..., start:stop, :]
        if blocks:
            right = right - xp.matmul(a[..., start:stop, stop:], xp.concat(blocks, axis=-2))
        blocks.insert(0, xp.linalg.solve(xp.triu(a[..., start:stop, start:stop]), right))
    if not blocks:
        return b + xp.zeros((*a.shape[:-2], 1, 1), dtype=a.dtype)  # nothing, of the stacks' common shape
    return blocks[0] if len(blocks) == 1 else xp.concat(blocks, axis=-2)


def lu(xp: Any, x: Any) -> tuple[Any, Any, Any]:
    """Gauss with partial pivoting: the order of rows, and both factors of x in that order.

    Columns are eliminated within a block, and then all to the right of it at once.
    """
    *stack, m, n = x.shape
    a = xp.asarray(x, copy=True)
    order = xp.broadcast_to(xp.arange(m, dtype=xp.int64), (*stack, m))
    for start in range(0, min(m, n), 32):
        stop = min(start + 32, m, n)
        panel, swaps = _panel(xp, a[..., start:, start:stop])
        moved = xp.expand_dims(swaps, axis=-1)
        order = xp.concat([order[..., :start], xp.take_along_axis(order[..., start:], swaps, axis=-1)], axis=-1)
        if start:
            a[..., start:, :start] = xp.take_along_axis(a[..., start:, :start], moved, axis=-2)
        a[..., start:, start:stop] = panel
        if stop < n:
            rest = xp.take_along_axis(a[..., start:, stop:], moved, axis=-2)
            width = stop - start
            top = solve_triangular(xp, panel[..., :width, :], rest[..., :width, :], upper=False, unit=True)
            a[..., start:stop, stop:] = top
            a[..., stop:, stop:] = rest[..., width:, :] - xp.matmul(panel[..., width:, :], top)
    k = min(m, n)
    lower = xp.where(xp.eye(m, k, dtype=xp.bool), xp.ones((), dtype=x.dtype), xp.tril(a[..., :, :k], k=-1))
    return order, lower, xp.triu(a[..., :k, :])


def _panel(xp: Any, a: Any) -> tuple[Any, Any]:
    """A few columns, eliminated one by one, and the order in which that puts the rows."""
    m, n = a.shape[-2:]
    a = xp.asarray(a, copy=True)
    places = xp.arange(m, dtype=xp.int64)
    order = xp.broadcast_to(places, a.shape[:-1])
    for j in range(min(m, n)):
        best = xp.argmax(_size(xp, a[..., j:, j]), axis=-1, keepdims=True) + j
        swap = xp.where(places == j, best, xp.where(places == best, xp.asarray(j, dtype=xp.int64), places))
        order = xp.take_along_axis(order, swap, axis=-1)
        a = xp.take_along_axis(a, xp.expand_dims(swap, axis=-1), axis=-2)
        pivot = a[..., j : j + 1, j]
        none = pivot == 0  # a column of zeros is eliminated already
        below = a[..., j + 1 :, j] / xp.where(none, xp.ones((), dtype=a.dtype), pivot)
        a[..., j + 1 :, j] = below
        if j + 1 < n:
            a[..., j + 1 :, j + 1 :] -= xp.expand_dims(below, axis=-1) * a[..., j : j + 1, j + 1 :]
    return a, order


def _size(xp: Any, x: Any) -> Any:
    """By which pivots are chosen: of complex numbers both parts' together, as LAPACK does."""
    return xp.abs(xp.real(x)) + xp.abs(xp.imag(x)) if xp.isdtype(x.dtype, "complex floating") else xp.abs(x)


# --- the exponential -----------------------------------------------------------------------------

# up to which 1-norm the rational approximation of a degree is right to all digits: Higham (2005), tables 2.3 and 2.4
_DOUBLE = {3: 1.495585217958292e-2, 5: 2.539398330063230e-1, 7: 9.504178996162932e-1, 9: 2.097847961257068}
_SINGLE = {3: 4.258730016922831e-1, 5: 1.880152677804762}
LAST = {"double": (13, 4.25), "single": (7, 3.925724783138660)}  # and of the last degree, beyond which one halves


def expm(xp: Any, x: Any) -> Any:
    n = x.shape[-1]
    if not math.prod(x.shape):
        return xp.asarray(x, copy=True)
    single = _epsilon(xp, x) > 1e-10
    norms = norm(xp, x)
    top = float(xp.max(xp.where(xp.isfinite(norms), norms, xp.zeros((), dtype=norms.dtype))))
    identity = xp.eye(n, dtype=x.dtype)
    for degree, bound in (_SINGLE if single else _DOUBLE).items():
        if top <= bound:
            return approximated(xp, x, identity, degree)
    degree, bound = LAST["single" if single else "double"]
    times = halvings(xp, x, norms, degree, bound)
    scale = xp.pow(xp.asarray(2.0, dtype=norms.dtype), -times)[..., None, None]
    out = approximated(xp, x * xp.astype(scale, x.dtype), identity, degree)
    for i in range(int(xp.max(times))):
        out = xp.where((times > i)[..., None, None], xp.matmul(out, out), out)
    return out


def norm(xp: Any, x: Any) -> Any:
    """The 1-norm of each matrix."""
    return xp.max(xp.sum(xp.abs(x), axis=-2), axis=-1)


def halvings(xp: Any, x: Any, norms: Any, degree: int, bound: float) -> Any:
    """How often each matrix is halved: as the norms of its powers need, which may be far less than its own does."""
    square = xp.matmul(x, x)
    fourth = xp.matmul(square, square)
    sixth = xp.matmul(fourth, square)
    powers = {6: sixth, 8: xp.matmul(fourth, fourth), 10: xp.matmul(fourth, sixth)}
    roots = {k: xp.pow(norm(xp, power), xp.asarray(1 / k, dtype=norms.dtype)) for k, power in powers.items()}
    eta = xp.minimum(xp.maximum(roots[6], roots[8]), xp.maximum(roots[8], roots[10]))
    first = _log2_up(xp, eta / bound, norms)
    # the approximation's own rounding, which powers of |x| bound: Al-Mohy and Higham (2009), equation 5.1
    scale = xp.pow(xp.asarray(2.0, dtype=norms.dtype), -first)
    size = xp.matrix_transpose(xp.abs(x)) * scale[..., None, None]
    line, log = xp.ones((*norms.shape, x.shape[-1], 1), dtype=norms.dtype), xp.zeros_like(norms)
    for _ in range(2 * degree + 1):  # with the length taken out: the power overflows long before the bound is used
        line = xp.matmul(size, line)
        length = xp.max(line, axis=-2, keepdims=True)
        line = line / xp.where(length > 0, length, xp.ones_like(length))
        log = log + xp.log2(length[..., 0, 0])
    coefficient = math.comb(2 * degree, degree) * math.factorial(2 * degree + 1)
    excess = log - xp.log2(norms * scale) - math.log2(coefficient) - math.log2(_epsilon(xp, x) / 2)
    more = xp.ceil(excess / (2 * degree))
    more = xp.where(xp.isfinite(more) & (more > 0), more, xp.zeros_like(more))
    return first + more


def _log2_up(xp: Any, x: Any, like: Any) -> Any:
    """The logarithm to the base 2, rounded up; from 0, and 0 for what is not finite."""
    known = xp.isfinite(x) & (x > 1)
    return xp.where(known, xp.ceil(xp.log2(xp.where(known, x, xp.ones_like(x)))), xp.zeros_like(like))


def approximated(xp: Any, x: Any, identity: Any, degree: int) -> Any:
    """The diagonal Pade approximant, its even and its odd powers apart."""
    total = math.factorial(2 * degree) // math.factorial(degree)
    b = [
        float(total * math.comb(degree, j) * math.factorial(2 * degree - j) // math.factorial(2 * degree))
        for j in range(degree + 1)
    ]
    square = xp.matmul(x, x)
    if degree < 13:
        powers = [identity, square]
        while len(powers) < degree // 2 + 1:
            powers.append(xp.matmul(powers[-1], square))
        even = sum(p * b[2 * i] for i, p in enumerate(powers))
        odd = xp.matmul(x, sum(p * b[2 * i + 1] for i, p in enumerate(powers)))
    else:
        fourth = xp.matmul(square, square)
        sixth = xp.matmul(fourth, square)
        high = xp.matmul(sixth, sixth * b[13] + fourth * b[11] + square * b[9])
        odd = xp.matmul(x, high + sixth * b[7] + fourth * b[5] + square * b[3] + identity * b[1])
        high = xp.matmul(sixth, sixth * b[12] + fourth * b[10] + square * b[8])
        even = high + sixth * b[6] + fourth * b[4] + square * b[2] + identity * b[0]
    return xp.linalg.solve(even - odd, even + odd)


# --- the square root and the logarithm -----------------------------------------------------------

_NEAR = 1e-3  # from here three steps, each of which squares what is left, come to all digits
_MOST = 60  # steps; a condition of 1e16 takes ten
_SMALL = 0.25  # 1-norm up to which eight nodes are right to all digits: Higham (2008), table 11.1


def loop(goes: Callable[[Any], Any], step: Callable[[Any], Any], state: Any) -> Any:
    """A loop of Python's, over values that are known."""
    while bool(goes(state)):
        state = step(state)
    return state


def sqrtm(xp: Any, x: Any, loop: Callable[..., Any] = loop) -> Any:
    """Denman and Beavers's iteration in its product form, scaled by norms; where it does not converge, nan.

    Raises LinAlgError for those in a loop of Python's, which has values to look at.
    """
    if not math.prod(x.shape):
        return xp.asarray(x, copy=True)
    identity = xp.eye(x.shape[-1], dtype=x.dtype)

    def distance(rest: Any) -> Any:
        return norm(xp, rest - identity)

    def step(state: Any) -> Any:
        i, left, root, rest = state
        inverse = xp.linalg.inv(rest)
        scale = xp.sqrt(xp.sqrt(norm(xp, inverse))) / xp.sqrt(xp.sqrt(norm(xp, rest)))
        scale = xp.where(distance(rest) > 0.01, scale, xp.ones_like(scale))[..., None, None]
        scale = xp.astype(scale, x.dtype)
        inverse = inverse / scale / scale
        root = (root + xp.matmul(root, inverse)) * scale / 2
        rest = identity / 2 + (rest * scale * scale + inverse) / 4
        far = xp.isfinite(distance(rest)) & (distance(rest) > _NEAR)
        return i + 1, xp.where(xp.any(far), more, left - 1), root, rest

    start, more = xp.asarray(0), xp.asarray(3)
    _, _, root, rest = loop(lambda state: (state[1] > 0) & (state[0] < _MOST), step, (start, more, x, x))
    return _checked(xp, x, root, ~(distance(rest) <= _NEAR), loop)


def logm(xp: Any, x: Any, loop: Callable[..., Any] = loop) -> Any:
    """As many square roots as bring it near the identity, whose logarithm is an integral: by Gauss's nodes.

    log(1 + E) is that of E (1 + t E)^-1 over t from 0 to 1. Errors as `sqrtm`.
    """
    if not math.prod(x.shape):
        return xp.asarray(x, copy=True)
    identity = xp.eye(x.shape[-1], dtype=x.dtype)

    def far(state: Any) -> Any:
        i, times, root = state
        return (norm(xp, root - identity) > _SMALL) & (i < _MOST)

    def halved(state: Any) -> Any:
        i, times, root = state
        again = far(state)
        taken = xp.where(again[..., None, None], sqrtm(xp, root, loop), root)
        return i + 1, times + xp.astype(again, times.dtype), taken

    norms = norm(xp, x)
    _, times, root = loop(lambda state: xp.any(far(state)), halved, (xp.asarray(0), xp.zeros_like(norms), x))
    rest = root - identity
    failed = ~(norm(xp, rest) <= _SMALL)
    places, parts = np.polynomial.legendre.leggauss(8)  # between -1 and 1
    nodes, weights = (
        xp.reshape(xp.asarray(values.tolist(), dtype=norms.dtype), (8, *(1,) * len(x.shape)))
        for values in ((places + 1) / 2, parts / 2)
    )
    systems = identity + rest * xp.astype(nodes, x.dtype)
    terms = xp.linalg.solve(systems, xp.broadcast_to(rest, systems.shape)) * xp.astype(weights, x.dtype)
    out = xp.sum(terms, axis=0)
    scale = xp.pow(xp.asarray(2.0, dtype=norms.dtype), times)[..., None, None]
    return _checked(xp, x, out * xp.astype(scale, x.dtype), failed, loop)


def _checked(xp: Any, x: Any, out: Any, failed: Any, how: Callable[..., Any]) -> Any:
    """The result, and nan for matrices of which it is none; LinAlgError for finite ones, if there are values."""
    if how is loop and bool(xp.any(failed & xp.all(xp.isfinite(x), axis=(-2, -1)))):
        raise np.linalg.LinAlgError("an eigenvalue is zero or negative")
    return xp.where(failed[..., None, None], xp.full_like(out, math.nan), out)


# --- cofactors -----------------------------------------------------------------------------------


def cofactor(xp: Any, x: Any) -> Any:
    """det(A) A^-T through the singular values, whose products skip one: A may be singular.

    A = U S V^H, so cof(A) = cof(U) cof(S) cof(V^H) with cof(Q) = det(Q) Q^-T = det(Q) conj(Q).
    """
    u, s, vh = xp.linalg.svd(x)
    skipping = xp.expand_dims(_before(xp, s) * xp.flip(_before(xp, xp.flip(s, axis=-1)), axis=-1), axis=-2)
    inner = conj(xp, u) * xp.astype(skipping, u.dtype)
    return _orientation(xp, u, vh) * xp.matmul(inner, conj(xp, vh))


def cofactor_pullback(xp: Any, g: Any, x: Any) -> Any:
    """The derivative of the cofactors along g: in the basis of singular vectors, of a diagonal matrix.

    With F = U^H g V and p_ij the product of all singular values but s_i and s_j, which is 0 for i = j, it has
    sum_k p_ik F_kk on the diagonal and -p_ij F_ji elsewhere: the minors' parts that are linear in F.
    """
    u, s, vh = xp.linalg.svd(x)
    n = s.shape[-1]
    inner = xp.matmul(xp.matmul(conj(xp, xp.matrix_transpose(u)), g), conj(xp, xp.matrix_transpose(vh)))
    later = xp.triu(xp.ones((n, n), dtype=xp.bool), k=1)
    between = _before(xp, xp.where(later, xp.expand_dims(s, axis=-2), xp.ones((), dtype=s.dtype)))
    before, after = _before(xp, s), xp.flip(_before(xp, xp.flip(s, axis=-1)), axis=-1)
    skipping = xp.where(
        later, xp.expand_dims(before, axis=-1) * between * xp.expand_dims(after, axis=-2), xp.zeros((), dtype=s.dtype)
    )
    skipping = xp.astype(skipping + xp.matrix_transpose(skipping), u.dtype)
    ones = xp.eye(n, dtype=xp.bool)
    zero = xp.zeros((), dtype=u.dtype)
    along = xp.sum(xp.where(ones, inner, zero), axis=-1, keepdims=True)
    along = xp.matmul(skipping, along)
    moved = xp.where(ones, along, -skipping * xp.matrix_transpose(inner))
    return _orientation(xp, u, vh) * xp.matmul(xp.matmul(conj(xp, u), moved), conj(xp, vh))


def _before(xp: Any, x: Any) -> Any:
    """The products of all earlier elements along the last axis."""
    ones = xp.ones((*x.shape[:-1], 1), dtype=x.dtype)
    return xp.concat([ones, xp.cumulative_prod(x, axis=-1)], axis=-1)[..., : x.shape[-1]]


def _orientation(xp: Any, u: Any, vh: Any) -> Any:
    return (xp.linalg.det(u) * xp.linalg.det(vh))[..., None, None]
