"""Fourier transforms: the array API standard's extension, and beyond it short-time transforms and windows.

What is real becomes complex as it must; integers and float16 count as float32, whose transforms are complex64. Of
every transform `norm` says which direction is divided by the number n of elements: the inverse one ("backward"), the
other one ("forward"), or each by the square root of n ("ortho").
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy as np

from adjoint import dtypes, errors
from adjoint.backend import Backend
from adjoint.devices import default_device
from adjoint.devices import device as find_device
from adjoint.functions.arguments import (
    as_axis,
    as_choice,
    as_flag,
    as_integer,
    as_number,
    as_shape,
    as_tensor,
    inexact,
    integers,
)
from adjoint.functions.shape import roll
from adjoint.operands import cast, deferred_check, run
from adjoint.primitives.linalg import complex_dtype
from adjoint.tensor import Axis, Tensor, wrap

B = TypeVar("B", bound=Backend)

__all__ = [
    "bartlett", "blackman", "fft", "fft2", "fftfreq", "fftn", "fftshift", "hamming", "hann", "hfft", "ifft", "ifft2",
    "ifftn", "ifftshift", "ihfft", "irfft", "irfft2", "irfftn", "istft", "kaiser", "rfft", "rfft2", "rfftfreq",
    "rfftn", "stft",
]  # fmt: skip

_NORMS = ("backward", "ortho", "forward")


# --- what users pass -----------------------------------------------------------------------------


def _floating(value: Any, name: str, *, real: bool = False) -> Tensor[Any]:
    x = inexact(value, name)
    if real and x.dtype.kind == "c":
        raise errors.DtypeError(f"{name}: expected real numbers, received {x.dtype}; take .real, or fft for both parts")
    return cast(x, dtypes.float32) if x.dtype is dtypes.float16 else x


def _complex(value: Any, name: str) -> Tensor[Any]:
    x = _floating(value, name)
    return cast(x, dtypes.as_dtype(complex_dtype(x.dtype)))


def _norm(norm: Any, name: str) -> str:
    if norm not in _NORMS:
        raise errors.ArgumentError(f"{name}: norm is one of {_NORMS}, received {errors.shown(norm)}")
    return norm  # type: ignore[no-any-return]


def __dir__() -> list[str]:
    return __all__


def _place(axis: Any, x: Tensor[Any], name: str) -> int:
    if not x.ndim:
        raise errors.AxisError(f"{name}: a 0-d tensor has no axis to transform along")
    return as_axis(axis, x.ndim, name)


def _places(s: Any, axes: Any, x: Tensor[Any], name: str) -> tuple[list[int], list[int | None]]:
    """The axes of a transform of several, and their sizes, None for what they are."""
    sizes = None if s is None else _sizes(s, name)
    if axes is None:
        places = list(range(x.ndim) if sizes is None else range(x.ndim - len(sizes), x.ndim))
    else:
        places = [as_axis(i, x.ndim, name) for i in integers(axes, name, "axes")]
    if not places or places[0] < 0:
        raise errors.AxisError(f"{name}: {len(places)} axes of a tensor of {x.ndim} axes to transform along")
    if len(set(places)) < len(places):
        raise errors.AxisError(f"{name}: axes {errors.shown(axes)} name an axis twice")
    if sizes is not None and len(sizes) != len(places):
        raise errors.ArgumentError(f"{name}: {len(sizes)} sizes for {len(places)} axes")
    return places, [None] * len(places) if sizes is None else sizes


def _sizes(s: Any, name: str) -> list[int | None]:
    """The sizes that are given, None for what they are: NumPy and PyTorch write -1 for that."""
    given = list(s) if isinstance(s, (tuple, list)) else list(integers(s, name, "sizes s"))
    return [None if n is None or (n == -1 and n is not True) else integers(n, name, "sizes s")[0] for n in given]


def _sized(x: Tensor[Any], axis: int, n: Any, name: str) -> Tensor[Any]:
    """Cut or filled with zeros at the end of an axis."""
    have = x.shape[axis]
    size = have if n is None else as_integer(n, name, "n")
    if size < 1:
        raise errors.ShapeError(f"{name}: a transform of {size} elements along axis {axis}; it takes one or more")
    if size < have:
        return run("index", (x,), key=(*[slice(None)] * axis, slice(0, size, 1)))  # type: ignore[no-any-return]
    if size > have:
        widths = tuple((0, size - have) if i == axis else (0, 0) for i in range(x.ndim))
        return run("pad", (x,), widths=widths, value=0)  # type: ignore[no-any-return]
    return x


# --- transforms ----------------------------------------------------------------------------------


def _along(name: str, x: Any, n: Any, axis: Any, norm: Any, inverse: bool) -> Tensor[Any]:
    x = _complex(x, name)
    place = _place(axis, x, name)
    return run("fft", (_sized(x, place, n, name),), axis=(place,), inverse=inverse, norm=_norm(norm, name))  # type: ignore[no-any-return]


def _over(name: str, x: Any, s: Any, axes: Any, norm: Any, inverse: bool) -> Tensor[Any]:
    x = _complex(x, name)
    places, sizes = _places(s, axes, x, name)
    for place, n in zip(places, sizes, strict=True):
        x = _sized(x, place, n, name)
    return run("fft", (x,), axis=tuple(sorted(places)), inverse=inverse, norm=_norm(norm, name))  # type: ignore[no-any-return]


def fft(x: Tensor[B], /, *, n: int | None = None, axis: int = -1, norm: str = "backward") -> Tensor[B]:
    """The discrete Fourier transform along an axis: out_k is the sum of x_j exp(-2 pi i j k / n).

    x is real or complex, the result complex. `n` elements are taken: x is cut, or filled with zeros at its end.
    Raises AxisError for an axis that is not there, ShapeError for no elements, ArgumentError for another norm.

    >>> import adjoint as ad
    >>> ad.fft.fft(ad.tensor([1.0, 0.0, 0.0, 0.0])).real.tolist()
    [1.0, 1.0, 1.0, 1.0]
    """
    return _along("fft", x, n, axis, norm, False)


def ifft(x: Tensor[B], /, *, n: int | None = None, axis: int = -1, norm: str = "backward") -> Tensor[B]:
    """The inverse of `fft`. Arguments and errors are the same.

    >>> import adjoint as ad
    >>> ad.fft.ifft(ad.tensor([4.0, 0.0, 0.0, 0.0])).real.tolist()
    [1.0, 1.0, 1.0, 1.0]
    """
    return _along("ifft", x, n, axis, norm, True)


def fftn(
    x: Tensor[B], /, *, s: Sequence[int] | None = None, axes: Sequence[int] | None = None, norm: str = "backward"
) -> Tensor[B]:
    """The transform along several axes, or all: the last len(s) where sizes `s` are given without axes.

    None or -1 among the sizes leaves an axis as it is.

    Raises AxisError for axes that are not there or named twice, ArgumentError for sizes that do not pair up with them.

    >>> import adjoint as ad
    >>> ad.fft.fftn(ad.ones((2, 2))).real.tolist()
    [[4.0, 0.0], [0.0, 0.0]]
    """
    return _over("fftn", x, s, axes, norm, False)


def ifftn(
    x: Tensor[B], /, *, s: Sequence[int] | None = None, axes: Sequence[int] | None = None, norm: str = "backward"
) -> Tensor[B]:
    """The inverse of `fftn`. Arguments and errors are the same."""
    return _over("ifftn", x, s, axes, norm, True)


def fft2(
    x: Tensor[B], /, *, s: Sequence[int] | None = None, axes: Sequence[int] = (-2, -1), norm: str = "backward"
) -> Tensor[B]:
    """`fftn` along two axes, the last ones."""
    return _over("fft2", x, s, axes, norm, False)


def ifft2(
    x: Tensor[B], /, *, s: Sequence[int] | None = None, axes: Sequence[int] = (-2, -1), norm: str = "backward"
) -> Tensor[B]:
    """`ifftn` along two axes, the last ones."""
    return _over("ifft2", x, s, axes, norm, True)


def rfft(x: Tensor[B], /, *, n: int | None = None, axis: int = -1, norm: str = "backward") -> Tensor[B]:
    """The first n // 2 + 1 coefficients of the `fft` of real numbers; the others are their conjugates.

    Raises DtypeError for complex x, else as `fft`.

    >>> import adjoint as ad
    >>> ad.fft.rfft(ad.tensor([1.0, 2.0, 3.0, 4.0])).tolist()
    [(10+0j), (-2+2j), (-2+0j)]
    """
    return _half("rfft", x, n, axis, norm, False)


def ihfft(x: Tensor[B], /, *, n: int | None = None, axis: int = -1, norm: str = "backward") -> Tensor[B]:
    """The inverse of `hfft`: the first n // 2 + 1 coefficients of the `ifft` of real numbers. Errors as `rfft`."""
    return _half("ihfft", x, n, axis, norm, True)


def _half(name: str, x: Any, n: Any, axis: Any, norm: Any, inverse: bool) -> Tensor[Any]:
    x = _floating(x, name, real=True)
    place = _place(axis, x, name)
    return run("rfft", (_sized(x, place, n, name),), axis=place, inverse=inverse, norm=_norm(norm, name))  # type: ignore[no-any-return]


def irfft(x: Tensor[B], /, *, n: int | None = None, axis: int = -1, norm: str = "backward") -> Tensor[B]:
    """The inverse of `rfft`: `n` real numbers, 2 (m - 1) for m coefficients if None.

    Of the first coefficient, and of the middle one of an even n, the real part counts. Errors as `fft`.

    >>> import adjoint as ad
    >>> ad.fft.irfft(ad.fft.rfft(ad.tensor([1.0, 2.0, 3.0])), n=3).tolist()
    [1.0, 2.0, 3.0]
    """
    return _whole("irfft", x, n, axis, norm, True)


def hfft(x: Tensor[B], /, *, n: int | None = None, axis: int = -1, norm: str = "backward") -> Tensor[B]:
    """The `fft` of numbers whose second half are the conjugates of the first, which are given: `n` real numbers.

    That is 2 (m - 1) for m given numbers if None. Errors as `fft`.

    >>> import adjoint as ad
    >>> ad.fft.hfft(ad.tensor([1.0, 1.0])).tolist()
    [2.0, 0.0]
    """
    return _whole("hfft", x, n, axis, norm, False)


def _whole(name: str, x: Any, n: Any, axis: Any, norm: Any, inverse: bool) -> Tensor[Any]:
    x = _complex(x, name)
    place = _place(axis, x, name)
    size = 2 * (x.shape[place] - 1) if n is None else as_integer(n, name, "n")
    if size < 1:
        raise errors.ShapeError(f"{name}: {x.shape[place]} coefficients make {size} numbers; give n= of one or more")
    x = _sized(x, place, size // 2 + 1, name)
    return run("hfft", (x,), axis=place, size=size, inverse=inverse, norm=_norm(norm, name))  # type: ignore[no-any-return]


def rfftn(
    x: Tensor[B], /, *, s: Sequence[int] | None = None, axes: Sequence[int] | None = None, norm: str = "backward"
) -> Tensor[B]:
    """`rfft` along the last of the axes, then `fftn` along the others. Errors as these.

    >>> import adjoint as ad
    >>> ad.fft.rfftn(ad.ones((2, 2))).real.tolist()
    [[4.0, 0.0], [0.0, 0.0]]
    """
    return _half_over("rfftn", x, s, axes, norm)


def rfft2(
    x: Tensor[B], /, *, s: Sequence[int] | None = None, axes: Sequence[int] = (-2, -1), norm: str = "backward"
) -> Tensor[B]:
    """`rfftn` along two axes, the last ones."""
    return _half_over("rfft2", x, s, axes, norm)


def _half_over(name: str, x: Any, s: Any, axes: Any, norm: Any) -> Tensor[Any]:
    x = _floating(x, name, real=True)
    places, sizes = _places(s, axes, x, name)
    out = _half(name, x, sizes[-1], places[-1], norm, False)
    return _over(name, out, _known(sizes, out, places), places[:-1], norm, False) if places[1:] else out


def _known(sizes: list[int | None], x: Tensor[Any], places: list[int]) -> list[int]:
    return [x.shape[i] if n is None else n for n, i in zip(sizes[:-1], places[:-1], strict=True)]


def irfftn(
    x: Tensor[B], /, *, s: Sequence[int] | None = None, axes: Sequence[int] | None = None, norm: str = "backward"
) -> Tensor[B]:
    """The inverse of `rfftn`; the last of the sizes `s` is 2 (m - 1) for m coefficients if None. Errors as `irfft`."""
    return _whole_over("irfftn", x, s, axes, norm)


def irfft2(
    x: Tensor[B], /, *, s: Sequence[int] | None = None, axes: Sequence[int] = (-2, -1), norm: str = "backward"
) -> Tensor[B]:
    """`irfftn` along two axes, the last ones."""
    return _whole_over("irfft2", x, s, axes, norm)


def _whole_over(name: str, x: Any, s: Any, axes: Any, norm: Any) -> Tensor[Any]:
    x = _complex(x, name)
    places, sizes = _places(s, axes, x, name)
    if places[1:]:
        x = _over(name, x, _known(sizes, x, places), places[:-1], norm, True)
    return _whole(name, x, sizes[-1], places[-1], norm, True)


# --- frequencies ---------------------------------------------------------------------------------


def _spacing(n: Any, d: Any, name: str) -> tuple[int, float]:
    n, d = as_integer(n, name, "n"), as_number(d, name, "d")
    if n < 1 or d == 0:
        raise errors.ArgumentError(f"{name}: n is one or more and d is not 0, received {n} and {d}")
    return n, d


def fftfreq(n: int, /, *, d: float = 1.0, dtype: Any = None, device: Any = None) -> Tensor[Any]:
    """The frequencies of the coefficients that `fft` gives of n samples `d` apart: 0, 1, ..., -2, -1 over n d.

    float32 unless a real dtype is given. Raises ArgumentError for an n below 1 or a d of 0.

    >>> import adjoint as ad
    >>> ad.fft.fftfreq(4, d=0.5).tolist()
    [0.0, 0.5, -1.0, -0.5]
    """
    n, d = _spacing(n, d, "fftfreq")
    return _made(np.fft.fftfreq(n, d), dtype, device, "fftfreq")


def rfftfreq(n: int, /, *, d: float = 1.0, dtype: Any = None, device: Any = None) -> Tensor[Any]:
    """The frequencies of the coefficients that `rfft` gives: 0, 1, ..., n // 2 over n d. Else as `fftfreq`.

    >>> import adjoint as ad
    >>> ad.fft.rfftfreq(4, d=0.5).tolist()
    [0.0, 0.5, 1.0]
    """
    n, d = _spacing(n, d, "rfftfreq")
    return _made(np.fft.rfftfreq(n, d), dtype, device, "rfftfreq")


def _made(values: Any, dtype: Any, device: Any, name: str) -> Tensor[Any]:
    wanted = dtypes.default_float if dtype is None else dtypes.as_dtype(dtype)
    if wanted.kind != "f":
        raise errors.DtypeError(f"{name}: dtype is a real floating one, received {wanted}")
    place = default_device() if device is None else find_device(device)
    return wrap(place.from_numpy(np.asarray(values).astype(wanted), copy=True), place)


def fftshift(x: Tensor[B], /, *, axes: Axis = None) -> Tensor[B]:
    """The coefficient of frequency 0 in the middle of axes, or all, instead of at the beginning.

    >>> import adjoint as ad
    >>> ad.fft.fftshift(ad.fft.fftfreq(4, d=0.25)).tolist()
    [-2.0, -1.0, 0.0, 1.0]
    """
    return _shifted("fftshift", x, axes, lambda n: n // 2)


def ifftshift(x: Tensor[B], /, *, axes: Axis = None) -> Tensor[B]:
    """The inverse of `fftshift`."""
    return _shifted("ifftshift", x, axes, lambda n: -(n // 2))


def _shifted(name: str, x: Any, axes: Any, by: Callable[[int], int]) -> Tensor[Any]:
    x = as_tensor(x, name)
    places = range(x.ndim) if axes is None else integers(axes, name, "axes")
    found = [as_axis(i, x.ndim, name) for i in places]
    return roll(x, [by(x.shape[i]) for i in found], axis=found)


# --- windows -------------------------------------------------------------------------------------


def _window(
    name: str, n: Any, periodic: Any, dtype: Any, device: Any, shape: Callable[[int], np.ndarray[Any, Any]]
) -> Tensor[Any]:
    """A window as NumPy has it: symmetric, or one longer without its last element."""
    (count,) = as_shape(n, name)
    periodic = as_flag(periodic, name, "periodic")
    values = shape(count + 1)[:-1] if periodic and count > 1 else shape(count)
    return _made(values, dtype, device, name)


def hann(n: int, /, *, periodic: bool = True, dtype: Any = None, device: Any = None) -> Tensor[Any]:
    """The window 0.5 - 0.5 cos(2 pi k / n) of n elements, for k from 0; with n - 1 in the place of n if not periodic.

    Periodic windows are for transforms (`fftbins` in SciPy), the others are symmetric (`sym`). float32 unless a real
    dtype is given. Raises ShapeError for a negative n, DtypeError for a dtype that is not real floating.

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


# --- short-time transforms -----------------------------------------------------------------------


def _framing(name: str, n_fft: Any, hop_length: Any, win_length: Any) -> tuple[int, int, int]:
    n = as_integer(n_fft, name, "n_fft")
    hop = n // 4 if hop_length is None else as_integer(hop_length, name, "hop_length")
    width = n if win_length is None else as_integer(win_length, name, "win_length")
    if n < 1 or hop < 1 or not 1 <= width <= n:
        raise errors.ArgumentError(
            f"{name}: n_fft and hop_length are one or more, win_length up to n_fft; received {n}, {hop} and {width}"
        )
    return n, hop, width


def _filled_window(name: str, window: Any, n: int, width: int, like: Tensor[Any]) -> Tensor[Any]:
    """The window of a frame: with zeros on both sides, and ones where none is given."""
    if window is None:
        values = np.ones(width, dtype=np.dtype(f"f{like.dtype.itemsize // (2 if like.dtype.kind == 'c' else 1)}"))
        window = wrap(like.device.from_numpy(values, copy=True), like.device)
    window = _floating(window, name)
    if window.shape != (width,):
        raise errors.ShapeError(f"{name}: the window has shape {window.shape}; expected ({width},), the win_length")
    before = (n - width) // 2
    return run("pad", (window,), widths=((before, n - width - before),), value=0)  # type: ignore[no-any-return]


def _frames(x: Tensor[Any], n: int, hop: int) -> Tensor[Any]:
    """(..., frames, n): each begins `hop` elements behind the one before. As many blocks as a frame overlaps."""
    count = 1 + (x.shape[-1] - n) // hop
    overlap = -(-n // hop)
    length = (count + overlap - 1) * hop
    x = _sized(x, x.ndim - 1, length, "stft")
    blocks = run("reshape", (x,), shape=(*x.shape[:-1], count + overlap - 1, hop))
    parts = [blocks[..., k : k + count, :] for k in range(overlap)]
    joined = parts[0] if overlap == 1 else run("concat", parts, axis=x.ndim)
    return joined if overlap * hop == n else joined[..., :n]  # type: ignore[no-any-return]


def _overlapped(frames: Tensor[Any], hop: int) -> Tensor[Any]:
    """The transpose of `_frames`: each frame added at its place."""
    *stack, count, n = frames.shape
    overlap = -(-n // hop)
    frames = _sized(frames, frames.ndim - 1, overlap * hop, "istft")
    blocks = run("reshape", (frames,), shape=(*stack, count, overlap, hop))
    total: Tensor[Any] | None = None
    for k in range(overlap):
        widths = (*[(0, 0)] * len(stack), (k, overlap - 1 - k), (0, 0))
        part = run("pad", (blocks[..., k, :],), widths=widths, value=0)
        total = part if total is None else total + part
    assert total is not None
    line = run("reshape", (total,), shape=(*stack, (count + overlap - 1) * hop))
    return line[..., : (count - 1) * hop + n]  # type: ignore[no-any-return]


def _bordered(x: Tensor[Any], width: int, mode: Any) -> Tensor[Any]:
    """A border on both ends of the last axis: zeros, or the elements mirrored at the first and the last."""
    if as_choice(mode, "stft", "pad_mode", ("reflect", "constant")) == "constant":
        return run("pad", (x,), widths=(*[(0, 0)] * (x.ndim - 1), (width, width)), value=0)  # type: ignore[no-any-return]
    size = x.shape[-1]
    if size <= width:
        raise errors.ShapeError(
            f"stft: {size} elements are too few to mirror {width} of them; pad_mode='constant' fills with zeros"
        )
    left, right = x[..., width:0:-1], x[..., size - 2 : size - 2 - width : -1] if width < size - 1 else x[..., -2::-1]
    return run("concat", [left, x, right], axis=x.ndim - 1) if width else x


def stft(
    x: Tensor[B],
    /,
    n_fft: int,
    *,
    hop_length: int | None = None,
    win_length: int | None = None,
    window: Tensor[Any] | None = None,
    center: bool = True,
    pad_mode: str = "reflect",
    normalized: bool = False,
    onesided: bool | None = None,
) -> Tensor[B]:
    """The Fourier transforms of windowed frames along the last axis: shape (..., frequencies, frames).

    Parameters
    ----------
    x
        Signals, (..., length); real or complex.
    n_fft, hop_length, win_length
        Elements of a frame; from one to the next (a quarter of n_fft if None); and of the window (n_fft if None).
    window
        Weights of the elements of a frame, win_length of them; ones if None. Gradients flow to it.
    center, pad_mode
        Whether frames are centred at multiples of the hop: half a frame is put before and behind the signal,
        mirrored ("reflect") or of zeros ("constant").
    normalized
        Divide by the root of n_fft.
    onesided
        n_fft // 2 + 1 frequencies instead of n_fft: for real x and window if None.

    Raises
    ------
    ArgumentError, ShapeError, DtypeError
        Lengths below one, an unknown mode; a signal shorter than a frame, a window of another length; one side of
        a complex signal.

    Examples
    --------
    >>> import adjoint as ad
    >>> ad.fft.stft(ad.ones(16), 8, window=ad.fft.hann(8)).shape
    (5, 9)
    """
    x = _floating(x, "stft")
    if not x.ndim:
        raise errors.AxisError("stft: a 0-d tensor has no axis to transform along")
    n, hop, width = _framing("stft", n_fft, hop_length, win_length)
    weights = _filled_window("stft", window, n, width, x)
    if as_flag(center, "stft", "center"):
        x = _bordered(x, n // 2, pad_mode)
    if x.shape[-1] < n:
        raise errors.ShapeError(f"stft: {x.shape[-1]} elements are fewer than the {n} of a frame")
    frames = _frames(x, n, hop) * weights
    one = frames.dtype.kind != "c" if onesided is None else as_flag(onesided, "stft", "onesided")
    norm = "ortho" if as_flag(normalized, "stft", "normalized") else "backward"
    out = rfft(frames, norm=norm) if one else fft(frames, norm=norm)
    return out.mT


def istft(
    x: Tensor[B],
    /,
    n_fft: int,
    *,
    hop_length: int | None = None,
    win_length: int | None = None,
    window: Tensor[Any] | None = None,
    center: bool = True,
    normalized: bool = False,
    onesided: bool | None = None,
    length: int | None = None,
    return_complex: bool = False,
) -> Tensor[B]:
    """The inverse of `stft`: frames windowed again, added up, and divided by the sum of the squared windows.

    That is the signal whose `stft` comes closest: D. Griffin and J. Lim, Signal estimation from modified short-time
    Fourier transform (1984). `length` elements are given, or as many as the frames hold without the border;
    `onesided` is True unless `return_complex`. Without that the result is real, and of both sides the first is read.
    Other arguments are those of `stft`.

    Raises ArgumentError for lengths below one, and where windows leave out elements; ShapeError for coefficients or
    a window of other sizes.

    >>> import adjoint as ad
    >>> x, window = ad.arange(16.0), ad.fft.hann(8)
    >>> y = ad.fft.istft(ad.fft.stft(x, 8, window=window), 8, window=window)
    >>> bool(ad.all(ad.abs(x - y) < 1e-5))
    True
    """
    x = _complex(x, "istft")
    n, hop, width = _framing("istft", n_fft, hop_length, win_length)
    complex_ = as_flag(return_complex, "istft", "return_complex")
    one = not complex_ if onesided is None else as_flag(onesided, "istft", "onesided")
    if one and complex_:
        raise errors.ArgumentError("istft: one side of the frequencies makes a real signal; leave out return_complex")
    expected = n // 2 + 1 if one else n
    if x.ndim < 2 or x.shape[-2] != expected or not x.shape[-1]:
        raise errors.ShapeError(f"istft: expected coefficients of shape (..., {expected}, frames), received {x.shape}")
    weights = _filled_window("istft", window, n, width, x)
    norm = "ortho" if as_flag(normalized, "istft", "normalized") else "backward"
    x = x.mT
    if complex_:
        frames = ifft(x, norm=norm)
    else:  # of both sides the first says all
        frames = irfft(x if one else x[..., : n // 2 + 1], n=n, norm=norm)
    squares = weights * weights if weights.dtype.kind != "c" else (weights * weights.conj()).real
    count = x.shape[-2]
    total = _overlapped(run("broadcast_to", (squares,), shape=(count, n)), hop)
    signal = _overlapped(frames * (weights.conj() if weights.dtype.kind == "c" else weights), hop)
    start = n // 2 if as_flag(center, "istft", "center") else 0
    held = signal.shape[-1] - start
    wanted = held - start if length is None else as_integer(length, "istft", "length")
    if wanted < 1:
        raise errors.ArgumentError(f"istft: {count} frames of {n} elements, {hop} apart, hold no {wanted} elements")
    signal, total = signal[..., start : start + min(wanted, held)], total[start : start + min(wanted, held)]
    if not total.device.tracked(total._array):
        total = deferred_check(
            total,
            lambda values: ~(values <= 1e-11).any(),
            lambda _: errors.ArgumentError(
                "istft: elements that the windows of all frames leave out cannot be found again; take a smaller "
                "hop_length, center=True, or a window without zeros at its ends"
            ),
        )
    out = signal / total
    return _sized(out, out.ndim - 1, wanted, "istft")
