"""Linear algebra of the standard's extension, and of NumPy where that has none."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from adjoint.backend import Array
from adjoint.backends import matrices
from adjoint.backends.numpy import linalg as numpy_linalg

if TYPE_CHECKING:
    from adjoint.backends.array_api import ArrayAPI


def _linalg(name: str) -> Callable[..., Array]:
    def run(xp: Any, *operands: Array) -> Array:
        return getattr(xp.linalg, name)(*operands)

    return run


def _eig(name: str) -> Callable[..., Array]:
    """Eigenvalues of any matrix, which the standard does not have: NumPy finds them, in main memory."""

    def run(B: ArrayAPI, x: Array) -> Any:
        out = numpy_linalg.IMPLEMENTATIONS[name](B.to_numpy(x))
        if isinstance(out, tuple):
            return tuple([B.from_numpy(part, copy=False) for part in out])
        return B.from_numpy(out, copy=False)

    return run


# called with the namespace
IMPLEMENTATIONS: dict[str, Callable[..., Any]] = {
    "inv": _linalg("inv"),
    "det": _linalg("det"),
    "cholesky": _linalg("cholesky"),
    "solve": _linalg("solve"),
    "slogdet": _linalg("slogdet"),
    "eigh": _linalg("eigh"),
    "eigvalsh": _linalg("eigvalsh"),
    "svd": lambda xp, x, *, full_matrices: xp.linalg.svd(x, full_matrices=full_matrices),
    "svdvals": _linalg("svdvals"),
    "qr": lambda xp, x, *, complete: xp.linalg.qr(x, mode="complete" if complete else "reduced"),
    **{name: getattr(matrices, name) for name in matrices.NAMES},
}

# called with the backend, for its dtypes
TYPED: dict[str, Callable[..., Any]] = {
    "eig": _eig("eig"),
    "eigvals": _eig("eigvals"),
}
