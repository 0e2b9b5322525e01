"""Windows of signals. Of each there is one that is symmetric, and one that is periodic."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from adjoint.fft.frequencies import sampled
from adjoint.functions.arguments import as_flag, as_number, as_size, computed
from adjoint.tensor import Tensor


def _window(
    name: str, n: Any, periodic: Any, dtype: Any, device: Any, shape: Callable[[int], np.ndarray[Any, Any]]
) -> Tensor[Any]:
    """A window as NumPy has it: symmetric, or one longer without its last element."""
    count = as_size(n, name, "n")
    periodic = as_flag(periodic, name, "periodic")
    longer = int(periodic and count > 1)
    values = computed(name, shape, count + longer)[:count]
    return sampled(values, dtype, device, name)


def hann(n: int, /, *, periodic: bool = True, dtype: Any = None, device: Any = None) -> Tensor[Any]:
    """The window 0.5 - 0.5 cos(2 pi k / n) of n elements, for k from 0; with n - 1 in the place of n if not periodic.

    Periodic windows are for transforms (`fftbins` in SciPy), the others are symmetric (`sym`). They are of the
    default dtype unless a real one is given. Raises ShapeError for a negative n, DtypeError for a dtype that is not
    real floating.

    >>> import adjoint as ad
    >>> ad.fft.hann(4).tolist()
    [0.0, 0.5, 1.0, 0.5]
    """
    return _window("hann", n, periodic, dtype, device, np.hanning)


def hamming(n: int, /, *, periodic: bool = True, dtype: Any = None, device: Any = None) -> Tensor[Any]:
    """The window 0.54 - 0.46 cos(2 pi k / n), else as `hann`."""
    return _window("hamming", n, periodic, dtype, device, np.hamming)


def blackman(n: int, /, *, periodic: bool = True, dtype: Any = None, device: Any = None) -> Tensor[Any]:
    """The window 0.42 - 0.5 cos(2 pi k / n) + 0.08 cos(4 pi k / n), else as `hann`."""
    return _window("blackman", n, periodic, dtype, device, np.blackman)


def bartlett(n: int, /, *, periodic: bool = True, dtype: Any = None, device: Any = None) -> Tensor[Any]:
    """The triangle 1 - |2 k / n - 1|, else as `hann`."""
    return _window("bartlett", n, periodic, dtype, device, np.bartlett)


def kaiser(
    n: int, /, beta: float = 12.0, *, periodic: bool = True, dtype: Any = None, device: Any = None
) -> Tensor[Any]:
    """The window I0(beta sqrt(1 - (2 k / n - 1)^2)) / I0(beta), with the Bessel function I0; else as `hann`.

    >>> import adjoint as ad
    >>> ad.fft.kaiser(3, 0.0).tolist()
    [1.0, 1.0, 1.0]
    """
    steepness = float(as_number(beta, "kaiser", "beta"))
    return _window("kaiser", n, periodic, dtype, device, lambda count: np.kaiser(count, steepness))
