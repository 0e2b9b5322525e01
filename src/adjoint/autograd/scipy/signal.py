"""HIPS autograd's `convolve`, along any axes, with sums over others."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np

from adjoint import errors
from adjoint.autograd.boxes import boxed, has_tensors, unboxed
from adjoint.functions.arguments import as_choice
from adjoint.numpy_functions import as_operands


def convolve(A: Any, B: Any, axes: Any = None, dot_axes: Sequence[Sequence[int]] = ((), ()), mode: str = "full") -> Any:
    """The convolution of A and B along pairs of axes, all of them if none are named, summed over `dot_axes`.

    The result has the other axes of A, then those of B, then those that were convolved. Modes are `scipy.signal`'s.
    Raises ShapeError where for "valid" neither lies within the other, ArgumentError for another mode.
    """
    as_choice(mode, "convolve", "mode", ("full", "valid", "same"))
    given = unboxed((A, B))
    followed = has_tensors(given)
    a, b = as_operands(given) if followed else [np.asarray(x) for x in given]
    out = _convolved(a, b, axes, dot_axes, mode)
    return boxed(out) if followed else out


def _convolved(a: Any, b: Any, axes: Any, dot_axes: Any, mode: str) -> Any:
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
        a = np.pad(a, borders)
    windows = a
    if sizes:
        windows = np.lib.stride_tricks.sliding_window_view(a, tuple(m for _, m in sizes), tuple(along_a))
    moved = [of_b[j] for j in along_b]
    places = [of_a[i] for i in along_a]
    turned = np.flip(b, tuple(along_b))
    return np.einsum(f"{''.join(of_a + moved)},{''.join(of_b)}->{''.join(out + places)}", windows, turned)


__all__ = ["convolve"]
