"""Convolutions."""

from __future__ import annotations

from typing import Any

import numpy as np

from adjoint import errors
from adjoint.functions.arguments import as_choice, as_tensors
from adjoint.functions.shape import flip
from adjoint.operands import run
from adjoint.tensor import Operand, Tensor
from adjoint.variables import B


def _vectors(name: str, a: Any, v: Any, mode: Any) -> list[Tensor[Any]]:
    a, v = as_tensors([a, v], name)
    if a.ndim != 1 or v.ndim != 1 or not a.size or not v.size:
        raise errors.ShapeError(f"{name}: expected two vectors of at least one element, received {a.shape}, {v.shape}")
    as_choice(mode, name, "mode", ("full", "same", "valid"))
    return [run("astype", (x,), dtype=np.dtype(np.int64)) if x.dtype.kind == "b" else x for x in (a, v)]


def convolve(a: Operand[B], v: Any, /, mode: str = "full") -> Tensor[B]:
    """The sums of a[k - j] v[j] over j, for all k where they have terms.

    "full" gives all n + m - 1 of them, "same" as many as the longer vector has, from the middle, and "valid" those
    where the shorter one lies within the longer. It is computed as it is defined, without a Fourier transform. Raises
    ShapeError for other than two vectors of at least one element, ArgumentError for another mode.

    >>> import adjoint as ad
    >>> ad.convolve(ad.tensor([1, 2, 3]), ad.tensor([1, 1])).tolist()
    [1, 3, 5, 3]
    """
    a, v = _vectors("convolve", a, v, mode)
    return _convolved(a, v, mode)  # type: ignore[no-any-return]


def _convolved(a: Tensor[Any], v: Tensor[Any], mode: str) -> Any:
    if a.size < v.size:
        a, v = v, a
    out = run("convolve", (a, v), full=mode != "valid")
    if mode == "same":
        start = (v.size - 1) // 2
        out = out[start : start + a.size]
    return out


def correlate(a: Operand[B], v: Any, /, mode: str = "valid") -> Tensor[B]:
    """The sums of a[k + j] conj(v[j]) over j; modes and errors are those of `convolve`.

    >>> import adjoint as ad
    >>> ad.correlate(ad.tensor([1, 2, 3]), ad.tensor([0, 1])).tolist()
    [2, 3]
    """
    a, v = _vectors("correlate", a, v, mode)
    v = run("conj", (v,)) if v.dtype.kind == "c" else v
    if a.size >= v.size:
        return _convolved(a, flip(v), mode)  # type: ignore[no-any-return]
    return flip(_convolved(v, flip(a), mode))  # so that "same" has its middle where NumPy has it
