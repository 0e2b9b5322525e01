"""`numpy.linalg` for boxes."""

from __future__ import annotations

from typing import Any

import numpy as np

from adjoint import linalg
from adjoint.autograd.numpy.numpy_wrapper import joined, wrap_namespace
from adjoint.autograd.primitives import traced
from adjoint.functions.arguments import as_choice
from adjoint.linalg.factors import by_lower

wrap_namespace({k: v for k, v in vars(np.linalg).items() if not k.startswith("_")}, globals())


def _of_triangle(a: Any, triangle: str, name: str) -> Any:
    """The Hermitian matrix of which one triangle is read, by which alone there are derivatives."""
    as_choice(triangle, name, "UPLO", ("L", "U", "l", "u"))
    a = joined(a)
    return by_lower(a if triangle in "Ll" else np.conj(a.mT), name)


def _eigh(a: Any, UPLO: str = "L") -> Any:
    return linalg.eigh(_of_triangle(a, UPLO, "np.linalg.eigh"))


def _eigvalsh(a: Any, UPLO: str = "L") -> Any:
    return linalg.eigvalsh(_of_triangle(a, UPLO, "np.linalg.eigvalsh"))


eigh = traced(np.linalg.eigh, _eigh)
eigvalsh = traced(np.linalg.eigvalsh, _eigvalsh)


def __getattr__(name: str) -> Any:
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}, which numpy.linalg does not have either")
