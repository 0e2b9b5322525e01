"""Linear algebra on NumPy, which calls LAPACK."""

from __future__ import annotations

import functools

import numpy as np

from adjoint.backend import Array, Implementation
from adjoint.backends import matrices


def _complex(x: Array) -> Array:
    """NumPy's eigenvalues of a real matrix are real if all are."""
    return x if x.dtype.kind == "c" else x.astype(f"c{2 * x.dtype.itemsize}")


def _eig(x: Array) -> tuple[Array, Array]:
    values, vectors = np.linalg.eig(x)
    return _complex(values), _complex(vectors)


_shared = {name: getattr(matrices, name) for name in "solve_triangular lu expm cofactor cofactor_pullback".split()}

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
