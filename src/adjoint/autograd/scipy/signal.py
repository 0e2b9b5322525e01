"""HIPS autograd's `convolve`, along any axes, with sums over others."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from adjoint.autograd.boxes import boxed, has_tensors, unboxed
from adjoint.conventions import convolve_along
from adjoint.numpy_functions import as_operands


def convolve(A: Any, B: Any, axes: Any = None, dot_axes: Sequence[Sequence[int]] = ((), ()), mode: str = "full") -> Any:
    """The convolution of A and B along pairs of axes, all of them if none are named, summed over `dot_axes`.

    The result has the other axes of A, then those of B, then those that were convolved. Modes are `scipy.signal`'s.
    Raises ShapeError where for "valid" neither lies within the other, ArgumentError for another mode.
    """
    given = unboxed((A, B))
    followed = has_tensors(given)
    a, b = as_operands(given) if followed else [np.asarray(x) for x in given]
    out = convolve_along(a, b, axes, dot_axes, mode)
    return boxed(out) if followed else out.numpy()


__all__ = ["convolve"]
