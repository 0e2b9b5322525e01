"""Linear algebra on NumPy."""

from __future__ import annotations

import numpy as np

from adjoint.backend import Array, Implementation


def _cofactor(x: Array) -> Array:
    """det(A) A^-T through the singular values, whose products skip one: A may be singular."""
    n = x.shape[-1]
    u, s, vh = np.linalg.svd(x)
    others = np.where(np.eye(n, dtype=bool), s.dtype.type(1), s[..., None, :])
    skipping = np.multiply.reduce(others, axis=-1)
    orientation = np.linalg.det(u) * np.linalg.det(vh)
    # A = U S V^H, so cof(A) = cof(U) cof(S) cof(V^H) with cof(Q) = det(Q) Q^-T = det(Q) conj(Q)
    return orientation[..., None, None] * np.matmul(np.conj(u) * skipping[..., None, :], np.conj(vh))


IMPLEMENTATIONS: dict[str, Implementation] = {
    "inv": np.linalg.inv,
    "det": np.linalg.det,
    "cholesky": np.linalg.cholesky,
    "solve": np.linalg.solve,
    "cofactor": _cofactor,
}
