"""Linear algebra on NumPy, which calls LAPACK, and on SciPy, where it is installed and knows a faster way."""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable
from typing import Any

import numpy as np

from adjoint.backend import Array, Implementation
from adjoint.backends import matrices


def _complex(x: Array) -> Array:
    """NumPy's eigenvalues of a real matrix are real if all are."""
    return x if x.dtype.kind == "c" else x.astype(f"c{2 * x.dtype.itemsize}")


def _eig(x: Array) -> tuple[Array, Array]:
    values, vectors = np.linalg.eig(x)
    return _complex(values), _complex(vectors)


def by_scipy(name: str, otherwise: Implementation) -> Implementation:
    """By SciPy, one matrix after the other, where it is installed and that pays."""
    run, pays = BY_SCIPY[name]

    def either(*operands: Array, **parameters: Any) -> Array:
        linalg = _scipy() if pays(*operands) else None
        if linalg is None:
            return otherwise(*operands, **parameters)
        stack = np.broadcast_shapes(*[x.shape[:-2] for x in operands])
        operands = tuple([np.broadcast_to(x, (*stack, *x.shape[-2:])) for x in operands])
        out = np.empty((*stack, *operands[-1].shape[-2:]), operands[-1].dtype)
        for place in np.ndindex(stack):
            given = [x[place] for x in operands]
            finite = all([np.isfinite(x).all() for x in given])  # LAPACK may look for others without end
            out[place] = run(linalg, *given, **parameters) if finite else np.nan
        return out

    return either


@functools.cache
def _scipy() -> Any:
    try:
        return importlib.import_module("scipy.linalg")
    except ImportError:
        return None


def _sylvester(linalg: Any, a: Array, b: Array, q: Array) -> Array:
    """R. Bartels and G. Stewart, Solution of the matrix equation AX + XB = C (1972)."""
    (r, u), (s, v) = (linalg.schur(x, check_finite=False) for x in (a, b))
    (solve,) = linalg.get_lapack_funcs(("trsyl",), (r, s))
    out, scale, info = solve(r, s, u.conj().T @ q @ v)
    if info:
        raise np.linalg.LinAlgError("a and -b have an eigenvalue in common")
    return u @ (out / scale) @ v.conj().T


def _banded(linalg: Any, ab: Array, b: Array, *, lower: int, upper: int) -> Array:
    return linalg.solve_banded((lower, upper), ab, b, check_finite=False)


# SciPy's way, and for which operands it is faster than the definition
BY_SCIPY: dict[str, tuple[Callable[..., Array], Callable[..., bool]]] = {
    "solve_sylvester": (_sylvester, lambda a, b, q: a.shape[-1] * b.shape[-1] > 64),
    "solve_banded": (_banded, lambda ab, b: ab.shape[-1] > 8),
}

_shared = {name: getattr(matrices, name) for name in matrices.NAMES}

IMPLEMENTATIONS: dict[str, Implementation] = {
    "inv": np.linalg.inv,
    "det": np.linalg.det,
    "slogdet": np.linalg.slogdet,
    "cholesky": np.linalg.cholesky,
    "solve": np.linalg.solve,
    "eigh": np.linalg.eigh,
    "eigvalsh": np.linalg.eigvalsh,
    "eig": _eig,
    "eigvals": lambda x: _complex(np.linalg.eigvals(x)),
    "svd": lambda x, *, full_matrices: np.linalg.svd(x, full_matrices=full_matrices),
    "svdvals": lambda x: np.linalg.svd(x, compute_uv=False),
    "qr": lambda x, *, complete: np.linalg.qr(x, mode="complete" if complete else "reduced"),
    **{name: functools.partial(run, np) for name, run in _shared.items()},
}
