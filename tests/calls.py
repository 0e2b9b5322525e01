"""The calls of `cases` as functions of the operands that are differentiated."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
from cases import Case

import adjoint as ad
from adjoint.primitives import CREATION, RANDOM, TABLE
from adjoint.rules import RECORDS, NotDifferentiable
from adjoint.tensor import run

RECORDED = sorted(name for name, primitive in TABLE.items() if primitive.kind not in (CREATION, RANDOM))
DIFFERENTIABLE = [name for name in RECORDED if not isinstance(RECORDS.get(name), NotDifferentiable)]


def arrays_of(case: Case) -> list[Any]:
    """The operands, with NumPy's scalars as the 0-d arrays that they stand for."""
    return [np.asarray(x) if isinstance(x, np.generic) else x for x in case.operands]


def is_float(x: Any) -> bool:
    return isinstance(x, np.ndarray) and x.dtype.kind in "fc"


def rounds(name: str, case: Case) -> bool:
    """Whether the result is rounded to 32 bits, where differences of it are too coarse."""
    return name == "astype" and case.parameters["dtype"] in (ad.float32, ad.complex64)


def is_finite(name: str, case: Case) -> bool:
    """Whether the result has differences: the logarithm of an empty sum is minus infinity."""
    return name != "logsumexp" or all(case.operands[0].shape[i] for i in case.parameters["axis"])


def call(name: str, case: Case, operands: list[Any], tracked: tuple[int, ...]) -> Callable[..., Any]:
    """The primitive as a function of the tracked operands; the others are constants."""

    def f(*tensors: Any) -> Any:
        filled = list(operands)
        for i, tensor in zip(tracked, tensors, strict=True):
            if name == "cholesky":  # only the Hermitian part counts
                adjoint = tensor.mT.conj() if tensor.dtype.kind == "c" else tensor.mT
                tensor = (tensor + adjoint) / 2
            filled[i] = tensor
        device = tensors[0].device
        return run(
            name, [ad.asarray(x, device=device) if isinstance(x, np.ndarray) else x for x in filled], **case.parameters
        )

    return f


def subsets(operands: list[Any]) -> list[tuple[int, ...]]:
    """All choices of floating operands to track."""
    floats = [i for i, x in enumerate(operands) if is_float(x)]
    return [chosen for n in range(1, len(floats) + 1) for chosen in itertools.combinations(floats, n)]
