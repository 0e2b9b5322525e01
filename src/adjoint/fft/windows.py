"""Windows of signals. Of each there is one that is symmetric, and one that is periodic."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from adjoint import dtypes, errors
from adjoint.fft.frequencies import sampled
from adjoint.functions.arguments import as_flag, as_number, as_positive, as_size, computed, real
from adjoint.functions.elementwise import abs as size_of
from adjoint.functions.elementwise import exp, square
from adjoint.operands import cast, run
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

    The result is a vector (n,), of the default dtype unless a real one is given. Periodic windows are for transforms
    (`fftbins` in SciPy), the others are symmetric (`sym`). Raises ShapeError for a negative n, DtypeError
    for a dtype that is not real floating.

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


def cosine(n: int, /, *, periodic: bool = True, dtype: Any = None, device: Any = None) -> Tensor[Any]:
    """The window sin(pi (k + 1/2) / (n + 1)), with n in the place of n + 1 if not periodic; else as `hann`."""
    return _window("cosine", n, periodic, dtype, device, lambda count: np.sin(np.pi * (np.arange(count) + 0.5) / count))


def nuttall(n: int, /, *, periodic: bool = True, dtype: Any = None, device: Any = None) -> Tensor[Any]:
    """A window of four cosines, with side lobes of less than -98 dB; else as `hann`.

    A. Nuttall, Some windows with very good sidelobe behavior (1981), figure 12.
    """

    weights = (0.3635819, 0.4891775, 0.1365995, 0.0106411)
    return _window("nuttall", n, periodic, dtype, device, lambda count: cosines(count, weights))


def cosines(count: int, weights: Sequence[float]) -> np.ndarray[Any, Any]:
    """The symmetric window that is the sum of (-1)^i weights[i] cos(2 pi i k / (count - 1)); 1 for one element."""
    turns = 2 * np.pi * np.arange(count) / max(count - 1, 1)
    lobes = [(-1) ** i * weight * np.cos(i * turns) for i, weight in enumerate(weights)]
    return np.sum(lobes, 0) if count != 1 else np.ones(1)


def decaying(count: int, center: float, tau: float) -> np.ndarray[Any, Any]:
    """The window exp(-|k - center| / tau)."""
    return np.exp(np.abs(np.arange(count) - center) * (-1 / tau))  # type: ignore[no-any-return]


def gaussian(n: int, /, std: Any = 1.0, *, periodic: bool = True, dtype: Any = None, device: Any = None) -> Tensor[Any]:
    """The window exp(-((k - n / 2) / std)^2 / 2), with n - 1 in the place of n if not periodic.

    `std` is a number, or a 0-d tensor to which gradients flow. Raises ArgumentError for one that is not positive; else
    as `hann`.

    >>> import adjoint as ad
    >>> ad.fft.gaussian(3, 0.5, periodic=False).round(2).tolist()
    [0.14000000059604645, 1.0, 0.14000000059604645]
    """

    def shape(count: int) -> np.ndarray[Any, Any]:
        return np.arange(count) - (count - 1) / 2

    if not isinstance(std, Tensor):
        width = as_positive(std, "gaussian", "std")
        return _window("gaussian", n, periodic, dtype, device, lambda count: np.exp(-0.5 * (shape(count) / width) ** 2))
    width, places = _tuned("gaussian", std, n, periodic, dtype, device, shape)
    return exp(square(places / width) * -0.5)


def kaiser(n: int, /, beta: Any = 12.0, *, periodic: bool = True, dtype: Any = None, device: Any = None) -> Tensor[Any]:
    """The window I0(beta sqrt(1 - (2 k / n - 1)^2)) / I0(beta), with the Bessel function I0; else as `hann`.

    `beta` is a number, or a 0-d tensor to which gradients flow.

    >>> import adjoint as ad
    >>> ad.fft.kaiser(3, 0.0).tolist()
    [1.0, 1.0, 1.0]
    """

    def shape(count: int) -> np.ndarray[Any, Any]:
        line = np.linspace(-1, 1, count) if count > 1 else np.zeros(count)
        return np.sqrt(1 - line**2)

    if not isinstance(beta, Tensor):
        steepness = float(as_number(beta, "kaiser", "beta"))
        return _window("kaiser", n, periodic, dtype, device, lambda count: np.kaiser(count, steepness))
    steep, heights = _tuned("kaiser", beta, n, periodic, dtype, device, shape)
    how: dict[str, Any] = {"order": 0, "scaled": True, "reduced": False}  # by exp(-|x|), which does not overflow
    inside, whole = run("bessel_i", (steep * heights,), **how), run("bessel_i", (steep,), **how)
    return inside / whole * exp(size_of(steep) * (heights - 1))  # type: ignore[no-any-return]


def _tuned(
    name: str,
    parameter: Tensor[Any],
    n: Any,
    periodic: Any,
    dtype: Any,
    device: Any,
    shape: Callable[[int], np.ndarray[Any, Any]],
) -> tuple[Tensor[Any], Tensor[Any]]:
    """A parameter that is a tensor, and the numbers that a window has of each place, beside it in its dtype."""
    x = real(parameter, name)
    if x.ndim:
        raise errors.ShapeError(f"{name}: a parameter is one number, received shape {x.shape}")
    x = x if dtype is None else cast(x, dtypes.as_real(dtype, name))
    if device is not None:
        raise errors.ArgumentError(f"{name}: the window is where its parameter is; leave device= out")
    return x, _window(name, n, periodic, x.dtype, x.device, shape)
