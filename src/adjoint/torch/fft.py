"""`torch.fft`: adjoint's Fourier transforms under PyTorch's names."""

from __future__ import annotations

from typing import Any, NoReturn

import adjoint as ad
from adjoint.torch.arguments import Sizes, guarded, with_out
from adjoint.torch.calls import call
from adjoint.torch.creation import check_placing, finished
from adjoint.torch.dtypes import default_float, numpy_dtype
from adjoint.torch.missing import missing as _missing
from adjoint.torch.reductions import axes_of
from adjoint.torch.tensor import Tensor, axis_of

_REAL_IN = frozenset({"rfft", "rfft2", "rfftn", "ihfft", "ihfft2", "ihfftn"})


def _ready(input: Tensor, name: str) -> Any:
    """Integers in the default floating type; a real transform has no complex input."""
    if input._dtype.kind == "c" and name in _REAL_IN:
        raise RuntimeError(f"{name} expects a real input tensor, but got {input.dtype.class_name}")
    return input if input._dtype.kind in "fc" else input.to(dtype=default_float())


def _along_one(name: str) -> Any:
    def transform(input: Tensor, n: int | None = None, dim: int = -1, norm: str | None = None) -> Any:
        x = _ready(input, name)
        if not x.ndim:
            raise IndexError(f"Dimension specified as {dim} but tensor has no dimensions")
        axis = axis_of(dim, x.ndim)
        if n is not None and n < 1:
            raise RuntimeError(f"Invalid number of data points ({n}) specified")
        return call(f"fft.{name}", _node(name, x), x, n=n, axis=axis, norm="backward" if norm is None else norm)

    transform.__name__ = transform.__qualname__ = name
    return with_out(transform)


def _along_several(name: str, usual: Any) -> Any:
    def transform(input: Tensor, s: Sizes = None, dim: Any = usual, norm: str | None = None) -> Any:
        x = _ready(input, name)
        if s is not None and not isinstance(s, (tuple, list)):
            s = (int(s),)
        if s is not None and dim is not None and not isinstance(dim, int) and len(s) != len(dim):
            raise RuntimeError("When given, dim and shape arguments must have the same length")
        if dim is None:
            dim = range(x.ndim) if s is None else range(x.ndim - len(s), x.ndim)
        if not x.ndim and not isinstance(dim, int) and len(dim):
            raise IndexError(f"Dimension specified as {dim[0]} but tensor has no dimensions")
        axes = axes_of(dim if isinstance(dim, int) else tuple(dim), x.ndim)
        sizes = None if s is None else tuple([x.shape[a] if n == -1 else n for n, a in zip(s, axes, strict=True)])
        function = name[:-1] + "n" if name.endswith("2") else name
        return call(f"fft.{function}", _node(name, x), x, s=sizes, axes=axes, norm="backward" if norm is None else norm)

    transform.__name__ = transform.__qualname__ = name
    return with_out(transform)


_NODES = {  # the last steps
    **dict.fromkeys(("fft", "ifft", "fft2", "ifft2", "fftn", "ifftn"), "FftC2C"),
    **dict.fromkeys(("rfft", "rfft2", "rfftn"), "FftR2C"),
    "ihfft": "Conj",
    **dict.fromkeys(("ihfft2", "ihfftn"), "FftC2C"),
    **dict.fromkeys(("irfft", "irfft2", "irfftn", "hfft", "hfft2", "hfftn"), "FftC2R"),
}
_OF_REAL = {"fft": "FftR2C", "ifft": "Conj"}


def _node(name: str, x: Tensor) -> str:
    """The name of the last node."""
    return _NODES[name] if x._dtype.kind == "c" else _OF_REAL.get(name, _NODES[name])


fft: Any = _along_one("fft")
ifft: Any = _along_one("ifft")
rfft: Any = _along_one("rfft")
irfft: Any = _along_one("irfft")
hfft: Any = _along_one("hfft")
ihfft: Any = _along_one("ihfft")
fft2: Any = _along_several("fft2", (-2, -1))
ifft2: Any = _along_several("ifft2", (-2, -1))
rfft2: Any = _along_several("rfft2", (-2, -1))
irfft2: Any = _along_several("irfft2", (-2, -1))
hfft2: Any = _along_several("hfft2", (-2, -1))
ihfft2: Any = _along_several("ihfft2", (-2, -1))
fftn: Any = _along_several("fftn", None)
ifftn: Any = _along_several("ifftn", None)
rfftn: Any = _along_several("rfftn", None)
irfftn: Any = _along_several("irfftn", None)
hfftn: Any = _along_several("hfftn", None)
ihfftn: Any = _along_several("ihfftn", None)


@guarded
def fftshift(input: Tensor, dim: Any = None) -> Any:
    """The zero frequency in the middle.

    >>> import adjoint.torch as torch
    >>> torch.fft.fftshift(torch.fft.fftfreq(4))
    tensor([-0.5000, -0.2500,  0.0000,  0.2500])
    """
    return call(lambda x: ad.fft.fftshift(x, axes=axes_of(dim, input.ndim)), "Roll", input)


@guarded
def ifftshift(input: Tensor, dim: Any = None) -> Any:
    """What `fftshift` moved, back in its place."""
    return call(lambda x: ad.fft.ifftshift(x, axes=axes_of(dim, input.ndim)), "Roll", input)


@with_out
def fftfreq(
    n: int, d: float = 1.0, *, dtype: Any = None, layout: Any = None, device: Any = None, pin_memory: bool = False,
    requires_grad: bool = False,
) -> Any:  # fmt: skip
    """The frequencies of `fft` of n points that are d apart."""
    check_placing("fftfreq", layout, pin_memory)
    return finished(ad.fft.fftfreq(n, d).numpy(), numpy_dtype(dtype) or default_float(), requires_grad, device)


@with_out
def rfftfreq(
    n: int, d: float = 1.0, *, dtype: Any = None, layout: Any = None, device: Any = None, pin_memory: bool = False,
    requires_grad: bool = False,
) -> Any:  # fmt: skip
    """The frequencies of `rfft` of n points that are d apart."""
    check_placing("rfftfreq", layout, pin_memory)
    return finished(ad.fft.rfftfreq(n, d).numpy(), numpy_dtype(dtype) or default_float(), requires_grad, device)


def __getattr__(name: str) -> NoReturn:
    raise _missing(name, "adjoint.torch.fft")
