"""Special functions whose values are SciPy's: on NumPy's arrays in main memory, whatever library asks for them."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from adjoint import errors

Array = Any
Function = Callable[..., Array]


@functools.cache
def scipy_special() -> Any:
    try:
        import scipy.special
    except ModuleNotFoundError:
        raise errors.MissingLibraryError(
            "values of this special function are SciPy's, and SciPy is not installed: pip install 'adjoint[scipy]'"
        ) from None
    return scipy.special


def hosted(function: Function) -> Function:
    """A function of float64 or complex128 arrays, for NumPy's arrays of any floating dtype and Python's numbers."""

    @functools.wraps(function)
    def run(*operands: Any, **parameters: Any) -> Array:
        dtype = next(x.dtype for x in operands if hasattr(x, "dtype"))
        kind = np.complex128 if dtype.kind == "c" else np.float64
        arrays = np.broadcast_arrays(*[np.asarray(x, kind) for x in operands])
        with np.errstate(all="ignore"):
            out = np.asarray(function(*arrays, **parameters))
            return out.astype(dtype, copy=False)

    return run


def trapezoid(f: Function, start: Array, stop: Array, step: Array) -> Array:
    """The integral of what is nothing at both ends, and analytic around the real line: the error falls exponentially.

    L. N. Trefethen and J. A. C. Weideman, The exponentially convergent trapezoidal rule (2014).
    """
    if not np.size(start):
        return start
    count = math.ceil(float(np.max((stop - start) / step))) + 1
    step = (stop - start) / count
    total = 0.5 * (f(start) + f(stop))
    for k in range(1, count):
        total = total + f(start + k * step)
    return total * step
