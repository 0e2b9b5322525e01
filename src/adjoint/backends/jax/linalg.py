"""Linear algebra by XLA."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from adjoint.backend import Array
from adjoint.backends import matrices

if TYPE_CHECKING:
    from adjoint.backends.jax import JAX


def _regular(name: str, run: Callable[..., Array]) -> Callable[..., Array]:
    """Raises LinAlgError for singular matrices, where there are values to look at: JAX answers with nan."""

    def checked(B: JAX, *operands: Array) -> Array:
        out = run(B, *operands)
        if not B.traced(out, *operands) and not bool(B.xp.all(B.xp.isfinite(out))):
            if all([bool(B.xp.all(B.xp.isfinite(x))) for x in operands]):
                raise np.linalg.LinAlgError(f"{name}: singular matrix")
        return out

    return checked


def _cholesky(B: JAX, x: Array) -> Array:
    return B.jax.lax.linalg.cholesky(x, symmetrize_input=False)


def _eigh(B: JAX, x: Array) -> tuple[Array, Array]:
    return tuple(B.jax.numpy.linalg.eigh(x, UPLO="L", symmetrize_input=False))


def _solve_triangular(B: JAX, a: Array, b: Array, *, upper: bool, unit: bool) -> Array:
    stack = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    a, b = (B.xp.broadcast_to(x, (*stack, *x.shape[-2:])) for x in (a, b))
    return B.jax.lax.linalg.triangular_solve(a, b, left_side=True, lower=not upper, unit_diagonal=unit)


def _lu(B: JAX, x: Array) -> tuple[Array, Array, Array]:
    both, _, order = B.jax.lax.linalg.lu(x)
    m, n = x.shape[-2:]
    k = min(m, n)
    lower = B.xp.tril(both[..., :k], k=-1) + B.xp.eye(m, k, dtype=x.dtype)
    return B.xp.astype(order, B.xp.int64), lower, B.xp.triu(both[..., :k, :])


def _expm(B: JAX, x: Array) -> Array:
    """With as many squarings as the largest of the matrices needs, in a loop of JAX's."""
    if not math.prod(x.shape):
        return x
    xp, norms = B.xp, matrices.norm(B.xp, x)
    degree, bound = matrices.LAST["single" if float(xp.finfo(x.dtype).eps) > 1e-10 else "double"]
    halvings = matrices.halvings(xp, x, norms, degree, bound)
    scale = xp.pow(xp.asarray(2.0, dtype=norms.dtype), -halvings)[..., None, None]
    out = matrices.approximated(xp, x * xp.astype(scale, x.dtype), xp.eye(x.shape[-1], dtype=x.dtype), degree)
    most = xp.max(halvings)

    def squared(state: tuple[Array, Array]) -> tuple[Array, Array]:
        i, out = state
        return i + 1, xp.where((halvings > i)[..., None, None], xp.matmul(out, out), out)

    return B.jax.lax.while_loop(lambda state: state[0] < most, squared, (xp.zeros_like(most), out))[1]


def _iterated(name: str) -> Callable[..., Array]:
    """By a loop of JAX's, in one program."""

    @functools.cache
    def compiled(B: JAX) -> Callable[[Array], Array]:
        return B.jax.jit(lambda x: getattr(matrices, name)(B.xp, x, B.jax.lax.while_loop))  # type: ignore[no-any-return]

    return _regular(name, lambda B, x: compiled(B)(x))


IMPLEMENTATIONS: dict[str, Callable[..., Any]] = {
    "inv": _regular("inv", lambda B, x: B.xp.linalg.inv(x)),
    "solve": _regular("solve", lambda B, a, b: B.xp.linalg.solve(a, b)),
    "cholesky": _regular("cholesky", _cholesky),
    "eigh": _eigh,
    "eigvalsh": lambda B, x: _eigh(B, x)[0],
    "eig": lambda B, x: tuple(B.xp.linalg.eig(x)),
    "eigvals": lambda B, x: B.xp.linalg.eigvals(x),
    "solve_triangular": _solve_triangular,
    "lu": _lu,
    "expm": _expm,
    "sqrtm": _iterated("sqrtm"),
    "logm": _iterated("logm"),
}
