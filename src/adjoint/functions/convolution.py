"""Convolutions."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np

from adjoint import errors
from adjoint.functions.arguments import as_choice, as_tensors
from adjoint.functions.contraction import einsum
from adjoint.functions.padding import pad
from adjoint.functions.shape import flip, sliding_window_view
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


def convolve_along(a: Any, b: Any, axes: Any, dot_axes: Any, mode: Any) -> Tensor[Any]:
    """The convolution along pairs of axes (all if None), summed over pairs of others.

    The axes of the result are the other ones of a, those of b, and those that were convolved.
    """
    a, b = as_tensors([a, b], "convolve")
    as_choice(mode, "convolve", "mode", ("full", "valid", "same"))
    along_a, along_b = [[int(i) for i in each] for each in (axes or (range(a.ndim), range(a.ndim)))]
    dot_a, dot_b = [list(each) for each in dot_axes]
    letters = map(chr, itertools.count(ord("a")))
    of_a, of_b = [next(letters) for _ in range(a.ndim)], [next(letters) for _ in range(b.ndim)]
    for i, j in zip(dot_a, dot_b, strict=True):
        of_b[j] = of_a[i]
    out = [of_a[i] for i in range(a.ndim) if i not in along_a and i not in dot_a]
    out += [of_b[j] for j in range(b.ndim) if j not in along_b and j not in dot_b]
    sizes = [(a.shape[i], b.shape[j]) for i, j in zip(along_a, along_b, strict=True)]
    if mode == "valid" and any(n < m for n, m in sizes):  # the smaller one moves along the larger
        if any(n > m for n, m in sizes):
            raise errors.ShapeError(f"convolve: neither of shapes {a.shape} and {b.shape} lies within the other")
        a, b, of_a, of_b, along_a, along_b = b, a, of_b, of_a, along_b, along_a
        sizes = [(m, n) for n, m in sizes]
    if mode != "valid":
        borders = [(0, 0)] * a.ndim
        for i, (_, m) in zip(along_a, sizes, strict=True):
            after = m - 1 if mode == "full" else (m - 1) // 2
            borders[i] = (m - 1 if mode == "full" else m - 1 - after, after)
        a = pad(a, borders)
    windows = sliding_window_view(a, tuple([m for _, m in sizes]), axis=tuple(along_a)) if sizes else a
    moved = [of_b[j] for j in along_b]
    places = [of_a[i] for i in along_a]
    turned = flip(b, axis=tuple(along_b))
    return einsum(f"{''.join(of_a + moved)},{''.join(of_b)}->{''.join(out + places)}", windows, turned)
