"""Fixed points, differentiated by the implicit function theorem."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from adjoint.autograd.boxes import boxed, has_tensors, unboxed
from adjoint.solvers import implicit

Function = Callable[..., Any]


def fixed_point(f: Function, a: Any, x0: Any, distance: Function, tol: float) -> Any:
    """The x with f(a)(x) = x, by iteration from x0 until `distance(x, previous)` is at most tol.

    By a it is differentiated as `ad.implicit.fixed_point` is, in every mode and to any order; by x0 not.

    >>> from adjoint.autograd import grad
    >>> import numpy as np
    >>> root = lambda a: fixed_point(lambda a: lambda x: 0.5 * (x + a / x), a, 1.0, lambda x, y: np.abs(x - y), 1e-12)
    >>> grad(root)(2.0).round(6)
    np.float64(0.353553)
    """

    def iterate(step: Function, start: Any) -> Any:
        x, previous = step(start), start
        while distance(x, previous) > tol:
            x, previous = step(x), x
        return x

    given = unboxed(a)
    if not has_tensors(given):
        return iterate(f(a), x0)
    step = lambda x, a: unboxed(f(boxed(a))(boxed(x)))
    return boxed(implicit.fixed_point(step, unboxed(x0), given, solver=iterate))


__all__ = ["fixed_point"]
