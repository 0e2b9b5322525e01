"""Short-time Fourier transforms: of frames of a signal, each under a window."""

from __future__ import annotations

from typing import Any

import numpy as np

from adjoint import errors
from adjoint.fft.transforms import complex_of, fft, floating, ifft, irfft, rfft, sized
from adjoint.functions.arguments import as_choice, as_flag, as_integer, as_size, computed
from adjoint.functions.elementwise import abs as size_of
from adjoint.operands import deferred_check, run
from adjoint.primitives import real_dtype
from adjoint.tensor import Operand, Tensor, wrap
from adjoint.variables import B


def _framing(name: str, n_fft: Any, hop_length: Any, win_length: Any) -> tuple[int, int, int]:
    n = as_size(n_fft, name, "n_fft")
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
        values = computed(name, np.ones, width, dtype=real_dtype(like.dtype))
        window = wrap(like.device.from_numpy(values, copy=True), like.device)
    window = floating(window, name, like)
    if window.shape != (width,):
        raise errors.ShapeError(f"{name}: the window has shape {window.shape}; expected ({width},), the win_length")
    before = (n - width) // 2
    return run("pad", (window,), widths=((before, n - width - before),), value=0)  # type: ignore[no-any-return]


def _frames(x: Tensor[Any], n: int, hop: int) -> Tensor[Any]:
    """(..., frames, n): each begins `hop` elements behind the one before. As many blocks as a frame overlaps."""
    count = 1 + (x.shape[-1] - n) // hop
    overlap = -(-n // hop)
    length = (count + overlap - 1) * hop
    x = sized(x, x.ndim - 1, length, "stft")
    blocks = run("reshape", (x,), shape=(*x.shape[:-1], count + overlap - 1, hop))
    parts = [blocks[..., k : k + count, :] for k in range(overlap)]
    joined = parts[0] if overlap == 1 else run("concat", parts, axis=x.ndim)
    return joined if overlap * hop == n else joined[..., :n]  # type: ignore[no-any-return]


def _overlapped(frames: Tensor[Any], hop: int) -> Tensor[Any]:
    """The transpose of `_frames`: each frame added at its place."""
    *stack, count, n = frames.shape
    overlap = -(-n // hop)
    frames = sized(frames, frames.ndim - 1, overlap * hop, "istft")
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
    x: Operand[B],
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
    x = floating(x, "stft", window)
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
    x: Operand[B],
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

    Coefficients (..., frequencies, frames) give a signal (..., length): that whose `stft` comes closest:
    D. Griffin and J. Lim, Signal estimation from modified short-time Fourier transform (1984). `length` elements are
    given, or as many as the frames hold without the border; `onesided` is True unless `return_complex`. Without that
    the result is real, and of both sides the first is read. Other arguments are those of `stft`.

    Raises ArgumentError for lengths below one, and where windows leave out elements; ShapeError for coefficients or
    a window of other sizes.

    >>> import adjoint as ad
    >>> x, window = ad.arange(16.0), ad.fft.hann(8)
    >>> y = ad.fft.istft(ad.fft.stft(x, 8, window=window), 8, window=window)
    >>> bool(ad.all(ad.abs(x - y) < 1e-5))
    True
    """
    return inverse(
        x, n_fft, hop_length=hop_length, win_length=win_length, window=window, center=center, normalized=normalized,
        onesided=onesided, length=length, return_complex=return_complex,
    )  # fmt: skip


def inverse(
    x: Any, n_fft: Any, *, hop_length: Any, win_length: Any, window: Any, center: Any, normalized: Any,
    onesided: Any, length: Any, return_complex: Any, conjugated: bool = True,
) -> Tensor[Any]:  # fmt: skip
    """`istft`; if not `conjugated`, frames times a complex window itself over its squares, not those of its lengths."""
    x = complex_of(x, "istft", window)
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
    squares, turned = weights * weights, weights
    if conjugated and weights.dtype.kind == "c":
        turned = weights.conj()
        squares = (weights * turned).real
    count = x.shape[-2]
    total = _overlapped(run("broadcast_to", (squares,), shape=(count, n)), hop)
    signal = _overlapped(frames * turned, hop)
    start = n // 2 if as_flag(center, "istft", "center") else 0
    held = signal.shape[-1] - start
    wanted = held - start if length is None else as_integer(length, "istft", "length")
    if wanted < 1:
        raise errors.ArgumentError(f"istft: {count} frames of {n} elements, {hop} apart, hold no {wanted} elements")
    signal, total = signal[..., start : start + min(wanted, held)], total[start : start + min(wanted, held)]
    if total.device.tracked(total._array):
        if not conjugated and bool((size_of(total) <= 1e-11).any()):
            raise _left_out(None)
    else:
        total = deferred_check(
            total,
            lambda values: ~(abs(values) <= 1e-11).any(),
            _left_out,
        )
    out = signal / total
    return sized(out, out.ndim - 1, wanted, "istft")


def _left_out(_: Any) -> Exception:
    return errors.ArgumentError(
        "istft: elements that the windows of all frames leave out cannot be found again; take a smaller "
        "hop_length, center=True, or a window without zeros at its ends"
    )
