"""The frequencies of the coefficients that transforms give, and their order."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Never

import numpy as np

from adjoint import dtypes, errors
from adjoint.functions.arguments import (
    as_axis,
    as_device,
    as_number,
    as_size,
    as_tensor,
    computed,
    explained,
    integers,
    keyword_error,
)
from adjoint.functions.elementwise import where
from adjoint.functions.ranges import arange
from adjoint.functions.shape import roll
from adjoint.operands import cast
from adjoint.primitives.sizes import stands
from adjoint.tensor import Axis, Operand, Tensor, wrap
from adjoint.variables import B


def _spacing(n: Any, d: Any, name: str) -> tuple[int, float]:
    size, distance = as_size(n, name, "n"), float(as_number(d, name, "d"))
    if size < 1 or distance == 0:
        raise errors.ArgumentError(f"{name}: n is one or more and d is not 0, received {size} and {d}")
    return size, distance


def fftfreq(n: int, /, d: float = 1.0, *, dtype: Any = None, device: Any = None) -> Tensor[Any]:
    """The frequencies of the coefficients that `fft` gives of n samples `d` apart: 0, 1, ..., -2, -1 over n d.

    The result is a vector (n,), of the default dtype unless a real one is given. Raises ArgumentError for an n below 1
    or a d of 0.

    >>> import adjoint as ad
    >>> ad.fft.fftfreq(4, d=0.5).tolist()
    [0.0, 0.5, -1.0, -0.5]
    """
    n, d = _spacing(n, d, "fftfreq")
    if stands(n):
        places = arange(n, device=device)
        places = where(places < (n + 1) // 2, places, places - n)
        return _of_places(places, n * d, dtype, "fftfreq")
    return sampled(computed("fftfreq", np.fft.fftfreq, n, d), dtype, device, "fftfreq")


def rfftfreq(n: int, /, d: float = 1.0, *, dtype: Any = None, device: Any = None) -> Tensor[Any]:
    """The frequencies of the coefficients that `rfft` gives: 0, 1, ..., n // 2 over n d. Else as `fftfreq`.

    The result is a vector (n // 2 + 1,).

    >>> import adjoint as ad
    >>> ad.fft.rfftfreq(4, d=0.5).tolist()
    [0.0, 0.5, 1.0]
    """
    n, d = _spacing(n, d, "rfftfreq")
    if stands(n):
        return _of_places(arange(n // 2 + 1, device=device), n * d, dtype, "rfftfreq")
    return sampled(computed("rfftfreq", np.fft.rfftfreq, n, d), dtype, device, "rfftfreq")


def _of_places(places: Tensor[Any], length: float, dtype: Any, name: str) -> Tensor[Any]:
    """The frequencies at places, of samples that are so long together."""
    wanted = dtypes.default_on(places.device) if dtype is None else dtypes.as_real(dtype, name)
    return cast(cast(places, places.device.leaf.widest(dtypes.float64)) * (1.0 / length), wanted)


def sampled(values: Any, dtype: Any, device: Any, name: str) -> Tensor[Any]:
    """NumPy's values as a tensor of a real dtype, the default one if none is given."""
    place = as_device(device)
    wanted = dtypes.default_on(place) if dtype is None else dtypes.as_real(dtype, name)
    return wrap(place.from_numpy(np.asarray(values).astype(wanted), copy=True), place)


@explained
def fftshift(x: Operand[B], /, axes: Axis = None, **unknown: Never) -> Tensor[B]:
    """The coefficient of frequency 0 in the middle of axes, or all, instead of at the beginning.

    >>> import adjoint as ad
    >>> ad.fft.fftshift(ad.fft.fftfreq(4, d=0.25)).tolist()
    [-2.0, -1.0, 0.0, 1.0]
    """
    if unknown:
        raise keyword_error(fftshift, unknown)
    return _shifted("fftshift", x, axes, lambda n: n // 2)


@explained
def ifftshift(x: Operand[B], /, axes: Axis = None, **unknown: Never) -> Tensor[B]:
    """The inverse of `fftshift`."""
    if unknown:
        raise keyword_error(ifftshift, unknown)
    return _shifted("ifftshift", x, axes, lambda n: -(n // 2))


def _shifted(name: str, x: Any, axes: Any, by: Callable[[int], int]) -> Tensor[Any]:
    x = as_tensor(x, name)
    places = range(x.ndim) if axes is None else integers(axes, name, "axes")
    found = [as_axis(i, x.ndim, name) for i in places]
    return roll(x, [by(x.shape[i]) for i in found], axis=found)
