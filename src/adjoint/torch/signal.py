"""`torch.signal.windows`: adjoint's windows under PyTorch's arguments."""

from __future__ import annotations

from typing import Any

from adjoint.fft.windows import cosines, decaying
from adjoint.torch.arguments import guarded, spelled_as
from adjoint.torch.creation import finished
from adjoint.torch.dtypes import default_float, numpy_dtype, strided
from adjoint.torch.dtypes import dtype as DType
from adjoint.torch.missing import missing as _missing
from adjoint.torch.missing import room as _room
from adjoint.torch.signals import values_of

__path__: list[str] = []


def _window(name: str, values: Any, **defaults: Any) -> Any:
    """A window whose values are a function of its length, of whether it is periodic, and of settings."""

    def window(M: Any, *, sym: Any, dtype: Any, layout: Any, device: Any, requires_grad: Any, **given: Any) -> Any:
        if M < 0:  # what is no number is refused at each step as in PyTorch, whose windows are written in Python
            raise ValueError(f"{name} requires non-negative window length, got M={M}")
        if layout not in (None, strided):
            raise ValueError(f"{name} is implemented for strided tensors only, got: {layout}")
        if dtype is not None and not isinstance(dtype, DType):
            raise ValueError(f"{name} expects float32 or float64 dtypes, got: {dtype}")
        kind = numpy_dtype(dtype) or default_float()
        if kind.name not in ("float32", "float64"):
            raise ValueError(f"{name} expects float32 or float64 dtypes, got: {dtype}")
        if M >= 1 and name in _CHECKS:
            _CHECKS[name](sym, given)
        made = values(int(M), not sym, given) if M > 1 else [1.0] * M
        return finished(made, kind, requires_grad, device)

    words = "".join([f"{key}, " if value is ... else f"{key}={value!r}, " for key, value in defaults.items()])
    options = "sym: object=True, dtype: object=None, layout: object=None, device: object=None, "
    spelled = spelled_as(name, f"M: object, *, {words}{options}requires_grad: object=False", window)
    spelled.__doc__ = f"The window `{name}`; without `sym` it is one period of a longer one."
    return guarded(spelled)


def _ours(name: str) -> Any:
    return lambda M, periodic, settings: values_of(name, M, periodic, settings)


def _check_gaussian(sym: Any, settings: dict[str, Any]) -> None:
    if settings["std"] <= 0:
        raise ValueError(f"Standard deviation must be positive, got: {settings['std']} instead.")


def _check_kaiser(sym: Any, settings: dict[str, Any]) -> None:
    if settings["beta"] < 0:
        raise ValueError(f"beta must be non-negative, got: {settings['beta']} instead.")


def _general_hamming(M: int, periodic: bool, settings: dict[str, Any]) -> Any:
    return cosines(M + periodic, (settings["alpha"], 1 - settings["alpha"]))[:M]


def _general_cosine(M: int, periodic: bool, settings: dict[str, Any]) -> Any:
    weights = settings["a"]
    if not isinstance(weights, (list, tuple)):
        raise TypeError("Coefficients must be a list/tuple")
    if not weights:
        raise ValueError("Coefficients cannot be empty")
    return cosines(M + periodic, weights)[:M]


def _check_exponential(sym: Any, settings: dict[str, Any]) -> None:
    if settings["tau"] <= 0:
        raise ValueError(f"Tau must be positive, got: {settings['tau']} instead.")
    if sym and settings["center"] is not None:
        raise ValueError("Center must be None for symmetric windows")


_CHECKS: dict[str, Any] = {"exponential": _check_exponential, "gaussian": _check_gaussian, "kaiser": _check_kaiser}


def _exponential(M: int, periodic: bool, settings: dict[str, Any]) -> Any:
    center, tau = settings["center"], settings["tau"]
    center = (M if periodic else M - 1) / 2 if center is None else center
    return decaying(M, center, tau)


_WINDOWS: dict[str, Any] = {
    **{name: _window(name, _ours(name)) for name in ("bartlett", "blackman", "cosine", "hann", "nuttall")},
    "exponential": _window("exponential", _exponential, center=None, tau=1.0),
    "gaussian": _window("gaussian", _ours("gaussian"), std=1.0),
    "general_cosine": _window("general_cosine", _general_cosine, a=...),
    "general_hamming": _window("general_hamming", _general_hamming, alpha=0.54),
    "hamming": _window("hamming", lambda M, periodic, _: _general_hamming(M, periodic, {"alpha": 0.54})),
    "kaiser": _window("kaiser", _ours("kaiser"), beta=12.0),
}
windows: Any = _room(f"{__name__}.windows", _WINDOWS, package=True)
windows.windows = _room(f"{__name__}.windows.windows", _WINDOWS)


def __getattr__(name: str) -> Any:
    raise _missing(name, __name__)
