"""The calls of `cases` as functions of the operands that are differentiated."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
from cases import Case

import adjoint as ad
from adjoint.operands import run
from adjoint.primitives import CREATION, RANDOM, TABLE
from adjoint.rules import RECORDS, NotDifferentiable


def hermitian(x: Any) -> Any:
    return (x + adjoint(x)) / 2


def adjoint(x: Any) -> Any:
    return x.mT.conj() if x.dtype.kind == "c" else x.mT


HERMITIAN = {"cholesky", "eigh", "eigvalsh"}  # only the Hermitian part of the operand counts


def _dyads(x: Any, y: Any) -> Any:
    """The product of each column of x with that of y, which no phase of theirs changes."""
    return x[..., :, None, :] * y[..., None, :, :]


def _eigh(w: Any, v: Any) -> Any:
    return w, _dyads(v, v.conj())


def _order(w: Any) -> Any:
    """Eigenvalues have none; this one has no jumps for those of cases."""
    return ad.argsort(w.real + 0.37 * w.imag, axis=-1)


def _eigvals(w: Any) -> Any:
    return ad.take_along_axis(w, _order(w), axis=-1)


def _eig(w: Any, v: Any) -> Any:
    dyads = _dyads(v, v.conj())
    return _eigvals(w), ad.take_along_axis(dyads, _order(w)[..., None, None, :], axis=-1)


def _svd(u: Any, s: Any, vh: Any) -> Any:
    k = s.shape[-1]
    more_u, more_vh = u[..., :, k:], vh[..., k:, :]
    return s, _dyads(u[..., :, :k], vh[..., :k, :].mT), more_u @ adjoint(more_u), adjoint(more_vh) @ more_vh


def _qr(q: Any, r: Any) -> Any:
    k = min(q.shape[-2], r.shape[-1])
    more = q[..., :, k:]
    return q[..., :, :k], r, more @ adjoint(more)


# What of a primitive's results does not depend on a choice that is free; floating ones first.
DETERMINED: dict[str, Callable[..., Any]] = {
    "eigh": _eigh,
    "eigvals": _eigvals,
    "eig": _eig,
    "svd": _svd,
    "qr": _qr,
    "lu": lambda order, lower, upper: (lower, upper, order),
    "slogdet": lambda sign, size: (size, sign),
}


def determined(name: str, out: Any) -> Any:
    """Results as tensors, without what is free in them."""
    if name not in DETERMINED:
        return out
    return DETERMINED[name](*(out if isinstance(out, tuple) else (out,)))


RECORDED = sorted(name for name, primitive in TABLE.items() if primitive.kind not in (CREATION, RANDOM))
DIFFERENTIABLE = [name for name in RECORDED if not isinstance(RECORDS.get(name), NotDifferentiable)]


def arrays_of(case: Case) -> list[Any]:
    """The operands, with NumPy's scalars as the 0-d arrays that they stand for."""
    return [np.asarray(x) if isinstance(x, np.generic) else x for x in case.operands]


def halved(operands: Iterable[Any]) -> list[Any]:
    """Operands, those of float64 and complex128 in half the precision."""
    smaller = {"d": np.float32, "D": np.complex64}
    return [x.astype(smaller.get(x.dtype.char, x.dtype)) if isinstance(x, np.ndarray) else x for x in operands]


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
            filled[i] = hermitian(tensor) if name in HERMITIAN else tensor
        device = tensors[0].device
        out = run(
            name, [ad.asarray(x, device=device) if isinstance(x, np.ndarray) else x for x in filled], **case.parameters
        )
        return determined(name, out)

    return f


def subsets(operands: list[Any]) -> list[tuple[int, ...]]:
    """All choices of floating operands to track."""
    floats = [i for i, x in enumerate(operands) if is_float(x)]
    return [chosen for n in range(1, len(floats) + 1) for chosen in itertools.combinations(floats, n)]
