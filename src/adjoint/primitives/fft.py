"""Discrete Fourier transforms: sums over an axis with the powers of a root of unity.

Of size n, the sum of x_j exp(-2 pi i j k / n) over j; with `inverse` the exponent has the other sign. As in NumPy,
`norm` says which direction is divided by n: the inverse one ("backward"), the other ("forward"), or each by the root.
"""

from __future__ import annotations

from adjoint import errors
from adjoint.primitives.linalg import complex_dtype
from adjoint.primitives.table import REDUCTION, DType, Shape, declare, real_dtype, same_dtype


def _same(shape: Shape, *, axis: tuple[int, ...], inverse: bool, norm: str) -> Shape:
    for i in axis:
        if not shape[i]:
            raise errors.ShapeError(f"fft: axis {i} of shape {shape} has no elements; n= pads it with zeros")
    return shape


def _half(shape: Shape, *, axis: int, inverse: bool, norm: str) -> Shape:
    _same(shape, axis=(axis,), inverse=inverse, norm=norm)
    return (*shape[:axis], shape[axis] // 2 + 1, *shape[axis + 1 :])


def _whole(shape: Shape, *, axis: int, size: int, inverse: bool, norm: str) -> Shape:
    if size < 1 or shape[axis] != size // 2 + 1:
        raise errors.ShapeError(
            f"hfft: {size} real numbers have {size // 2 + 1} coefficients; axis {axis} of shape {shape} has not"
        )
    return (*shape[:axis], size, *shape[axis + 1 :])


def _complex(dtype: DType, **_: object) -> DType:
    return complex_dtype(dtype)


def _real(dtype: DType, **_: object) -> DType:
    return real_dtype(dtype)


declare("fft", REDUCTION, "x", "axis inverse norm", shape=_same, dtype=same_dtype)
# of real numbers; what is left out are the conjugates of what is given
declare("rfft", REDUCTION, "x", "axis inverse norm", shape=_half, dtype=_complex)
# back from that to `size` real numbers: it reads the real part of the first coefficient, and of the middle one
declare("hfft", REDUCTION, "x", "axis size inverse norm", shape=_whole, dtype=_real)
