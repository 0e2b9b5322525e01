"""Windows and short-time Fourier transforms; random numbers of further distributions."""

from __future__ import annotations

from typing import Any

import numpy as np

import adjoint as ad
from adjoint.fft.short_time import inverse
from adjoint.fft.windows import cosines
from adjoint.torch import creation, generators
from adjoint.torch.arguments import Truth, public, same_types, spelled_as
from adjoint.torch.calls import call, without_slope
from adjoint.torch.creation import finished
from adjoint.torch.dtypes import default_float, numpy_dtype, of_numpy
from adjoint.torch.filling import drawn, expect
from adjoint.torch.tensor import Tensor, is_lifted, looked


def _window(name: str, function: str, **settings: float) -> None:
    def apply(window_length: int, periodic: bool, *given: Any) -> Tensor:
        *numbers, dtype, layout, device, pin_memory, requires_grad = given
        creation.check_placing(name, layout, pin_memory)
        kind = numpy_dtype(dtype) or default_float()
        if kind.kind == "c":
            raise NotImplementedError(f"\"arange_cpu\" not implemented for '{of_numpy(kind).class_name}'")
        if kind.kind != "f":
            raise RuntimeError(f"{name} expects floating point dtypes, got: {dtype}")
        found = dict(zip(settings, numbers, strict=True))
        made = values_of(function, window_length, periodic, found)
        return finished(made, kind, requires_grad, device)

    words = "".join([f"{key}: float = {value}, " for key, value in settings.items()])
    options = "dtype=None, layout=None, device=None, pin_memory=False, requires_grad=False"
    # by place, so that what `apply` gets is in order
    spelled = spelled_as(name, f"window_length: int, periodic: bool = True, {words}*, {options}", apply, by_place=True)
    public(name, method=False)(spelled)


def values_of(function: str, length: int, periodic: bool, settings: dict[str, float]) -> Any:
    """The values of one of adjoint's windows."""
    if length == 0:
        return np.zeros(0)
    if function == "hamming":
        return cosines(length + (periodic and length > 1), tuple(settings.values()))[:length]
    given = tuple(settings.values())
    return getattr(ad.fft, function)(length, *given, periodic=periodic, dtype=ad.float64).numpy()


for _name in ("bartlett", "blackman", "hann"):
    _window(f"{_name}_window", _name)
_window("hamming_window", "hamming", alpha=0.54, beta=0.46)
_window("kaiser_window", "kaiser", beta=12.0)


@public("stft")
def stft(
    input: Tensor, n_fft: int, hop_length: int | None = None, win_length: int | None = None,
    window: Tensor | None = None, center: Truth = True, pad_mode: str = "reflect", normalized: bool = False,
    onesided: bool | None = None, return_complex: bool | None = None,
) -> Any:  # fmt: skip
    """The Fourier transforms of overlapping windows of signals.

    >>> import adjoint.torch as torch
    >>> torch.stft(torch.ones(16), 4, window=torch.hann_window(4), return_complex=True).shape
    torch.Size([3, 17])
    """
    if return_complex is None and not input.is_complex():
        raise RuntimeError(
            "stft requires the return_complex parameter be given for real inputs, and will further require that "
            "return_complex=True in a future PyTorch release."
        )
    options: dict[str, Any] = {
        "hop_length": hop_length, "win_length": win_length, "center": center, "pad_mode": pad_mode,
        "normalized": normalized, "onesided": onesided,
    }  # fmt: skip
    made = "TransposeBackward1" if input.ndim > 1 else "SqueezeBackward4"
    found = call(lambda x, w: ad.fft.stft(x, n_fft, window=w, **options), made, input, window)
    if return_complex or return_complex is None:
        return found
    from adjoint.torch.placing import view_as_real

    return view_as_real(found)


@public("istft")
def istft(
    input: Tensor, n_fft: int, hop_length: int | None = None, win_length: int | None = None,
    window: Tensor | None = None, center: bool = True, normalized: bool = False, onesided: bool | None = None,
    length: int | None = None,
    return_complex: bool = False,
) -> Any:  # fmt: skip
    """The signal that `stft` was made of. All n_fft coefficients of a window are two-sided ones."""
    if onesided is None and input.ndim > 1:
        onesided = input.shape[-2] != n_fft
    options: dict[str, Any] = {
        "hop_length": hop_length, "win_length": win_length, "center": center, "normalized": normalized,
        "onesided": onesided, "length": length, "return_complex": return_complex,
    }  # fmt: skip
    step = hop_length or n_fft // 4
    whole = n_fft + step * (input.shape[-1] - 1) if input.ndim else 0
    made = "Div" if input.ndim > 2 else "SqueezeBackward1"
    if length is not None and length + center * (n_fft // 2) > whole:  # there are zeros behind
        made = "ConstantPadNd"
    if window is not None and window.is_complex():
        if not return_complex:
            raise RuntimeError("Complex windows are incompatible with return_complex=False")
        return call(lambda x, w: inverse(x, n_fft, window=w, conjugated=False, **options), made, input, window)
    return call(lambda x, w: ad.fft.istft(x, n_fft, window=w, **options), made, input, window)


# --- random numbers ---------------------------------------------------------------------------------------


@public("poisson", method=False)
def poisson(input: Tensor, generator: Any = None) -> Tensor:
    """Counts with these means."""
    if input._dtype.kind != "f":
        raise NotImplementedError(f"\"poisson_cpu\" not implemented for '{input.dtype.class_name}'")
    if not is_lifted(input) and not np.all((found := looked(input)) >= 0):
        raise RuntimeError(f"invalid Poisson rate, expected rate to be non-negative, but the least is {found.min()}")
    made = generators.drawn_by(lambda source, mean: source.poisson(mean), generator, input)
    return without_slope("Poisson", made, input)  # type: ignore[no-any-return]


@public("binomial", method=False)
def binomial(count: Tensor, prob: Tensor, generator: Any = None) -> Tensor:
    """How many of so many attempts succeed with these chances."""
    for what, x in (("count", count), ("prob", prob)):
        if x._dtype.kind != "f":
            raise ValueError(f"binomial only supports floating-point dtypes for {what}, got: {x.dtype.class_name}")
    same_types("binomial", count, prob)
    draw = lambda source, n, p: source.binomial(n.astype(np.int64), p)
    return without_slope("Binomial", generators.drawn_by(draw, generator, count, prob), count, prob)  # type: ignore[no-any-return]


@public("randint_like", method=False)
def randint_like(
    input: Tensor, *bounds: int, low: int | None = None, high: int | None = None, generator: Any = None,
    dtype: Any = None, layout: Any = None, device: Any = None, pin_memory: bool = False, requires_grad: bool = False,
    memory_format: Any = None,
) -> Any:  # fmt: skip
    creation.check_placing("randint_like", layout, pin_memory, memory_format)
    bounds = (*bounds, *[bound for bound in (low, high) if bound is not None])
    options = {
        "generator": generator,
        "dtype": dtype or input.dtype,
        "device": input.device if device is None else device,
    }
    made = creation.randint(*bounds, tuple(input.shape), **options)
    return made.requires_grad_(requires_grad)


def _cauchy(r: Any, size: Any, median: Any, sigma: Any) -> Any:
    expect("cauchy_", sigma > 0, f"sigma > 0.0, but found sigma={sigma}")
    return median + sigma * r.standard_cauchy(size)


def _geometric(r: Any, size: Any, p: Any) -> Any:
    expect("geometric_", 0 < p < 1, f"p to be in (0, 1), but got p={p}")
    return r.geometric(p, size)


def _log_normal(r: Any, size: Any, mean: Any, std: Any) -> Any:
    expect("log_normal_", std > 0, f"std > 0.0, but found std={std}")
    return r.lognormal(mean, std, size)


drawn("cauchy_", "median: float = 0.0, sigma: float = 1.0", _cauchy)
drawn("geometric_", "p: float", _geometric)
drawn("log_normal_", "mean: float = 1.0, std: float = 2.0", _log_normal)
