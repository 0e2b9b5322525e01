"""Fourier transforms: the array API standard's extension, and beyond it short-time transforms and windows.

What is real becomes complex as it must; integers count as the default dtype, float16 and bfloat16 as float32. Of every
transform `norm` says which direction is divided by the number n of elements: the inverse one ("backward"), the
other one ("forward"), or each by the square root of n ("ortho").
"""

from __future__ import annotations

from adjoint.fft.frequencies import fftfreq, fftshift, ifftshift, rfftfreq
from adjoint.fft.short_time import istft, stft
from adjoint.fft.transforms import (
    fft,
    fft2,
    fftn,
    hfft,
    hfft2,
    hfftn,
    ifft,
    ifft2,
    ifftn,
    ihfft,
    ihfft2,
    ihfftn,
    irfft,
    irfft2,
    irfftn,
    rfft,
    rfft2,
    rfftn,
)
from adjoint.fft.windows import bartlett, blackman, cosine, gaussian, hamming, hann, kaiser, nuttall
from adjoint.renamed import refusing

__all__ = [
    "bartlett", "blackman", "cosine", "fft", "fft2", "fftfreq", "fftn", "fftshift", "gaussian", "hamming", "hann",
    "hfft", "hfft2", "hfftn", "ifft", "ifft2", "ifftn", "ifftshift", "ihfft", "ihfft2", "ihfftn", "irfft", "irfft2",
    "irfftn", "istft", "kaiser", "nuttall", "rfft", "rfft2", "rfftfreq", "rfftn", "stft",
]  # fmt: skip


def __dir__() -> list[str]:
    return __all__


globals()["__getattr__"] = refusing(__name__)  # unseen by type checkers, which refuse other names themselves
