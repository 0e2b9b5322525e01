"""`torch.nn.utils`: gradients that are clipped, parameters as one vector, packed sequences, parametrisations."""

from __future__ import annotations

import importlib
import inspect
import sys
import warnings
from typing import Any

from adjoint.torch.arguments import guarded as _guarded
from adjoint.torch.missing import missing as _missing
from adjoint.torch.missing import room as _room
from adjoint.torch.nn.utils import rnn as rnn
from adjoint.torch.operators import FUNCTIONS
from adjoint.torch.refusals import WrongKindError as _WrongKindError
from adjoint.torch.state import no_grad
from adjoint.torch.tensor import Tensor


def _gradients(parameters: Any) -> list[Any]:
    found = [parameters] if isinstance(parameters, Tensor) else list(parameters)
    return [x.grad for x in found if x.grad is not None]


@_guarded
def get_total_norm(tensors: Any, norm_type: float = 2.0, error_if_nonfinite: bool = False, foreach: Any = None) -> Any:
    """The norm of the norms of tensors."""
    found = [tensors] if isinstance(tensors, Tensor) else list(tensors)
    p = float(norm_type)
    if not found:
        return FUNCTIONS["tensor"](0.0)
    from adjoint.torch import linalg

    total = linalg.vector_norm(FUNCTIONS["stack"]([linalg.vector_norm(x, p) for x in found]), p)
    if error_if_nonfinite and not FUNCTIONS["isfinite"](total).item():
        raise RuntimeError(
            f"The total norm of order {p} for gradients from `parameters` is non-finite, so it cannot be clipped. To "
            "disable this error and scale the gradients by the non-finite norm anyway, set `error_if_nonfinite=False`"
        )
    return total


@_guarded
def clip_grads_with_norm_(parameters: Any, max_norm: Any, total_norm: Any, foreach: Any = None) -> None:
    """Scale gradients by max_norm over their norm where that is less than 1."""
    factor = FUNCTIONS["clamp"](float(max_norm) / (total_norm + 1e-6), max=1.0)
    for g in _gradients(parameters):
        g.mul_(factor.to(dtype=g.dtype))


@_guarded
def clip_grad_norm_(
    parameters: Any, max_norm: Any, norm_type: float = 2.0, error_if_nonfinite: bool = False, foreach: Any = None
) -> Any:
    """Scale the gradients of parameters so that their norm is at most `max_norm`; the norm that they had.

    >>> import adjoint.torch as torch
    >>> w = torch.tensor([3.0, 4.0], requires_grad=True)
    >>> (w * w).sum().backward()
    >>> torch.nn.utils.clip_grad_norm_(w, 1.0), w.grad
    (tensor(10.), tensor([0.6000, 0.8000]))
    """
    with no_grad():
        given = [parameters] if isinstance(parameters, Tensor) else list(parameters)
        total = get_total_norm(_gradients(given), norm_type, error_if_nonfinite)
        clip_grads_with_norm_(given, max_norm, total)
    return total


@_guarded
def clip_grad_value_(parameters: Any, clip_value: float, foreach: Any = None) -> None:
    """Bring each number of the gradients between minus and plus a value."""
    with no_grad():
        for g in _gradients(parameters):
            g.clamp_(-float(clip_value), float(clip_value))


@_guarded
def parameters_to_vector(parameters: Any) -> Any:
    """Parameters one after the other, as one vector."""
    return FUNCTIONS["cat"]([x.reshape(-1) for x in parameters])


@_guarded
def vector_to_parameters(vec: Any, parameters: Any) -> None:
    """Give parameters the values in a vector."""
    if not isinstance(vec, Tensor):
        raise TypeError(f"expected torch.Tensor, but got: {type(vec).__name__}")
    start = 0
    with no_grad():
        for x in parameters:
            size = x.numel()
            x.copy_(vec[start : start + size].reshape(tuple(x.shape)))  # type: ignore[index]
            start += size


@_guarded
def clip_grad_norm(
    parameters: Any, max_norm: Any, norm_type: float = 2.0, error_if_nonfinite: bool = False, foreach: Any = None
) -> Any:
    """The older name of `clip_grad_norm_`."""
    warnings.warn(
        "`torch.nn.utils.clip_grad_norm` is now deprecated in favor of `torch.nn.utils.clip_grad_norm_`.",
        FutureWarning,
        stacklevel=2,
    )
    return clip_grad_norm_(parameters, max_norm, norm_type, error_if_nonfinite, foreach)


def skip_init(module_cls: Any, *args: Any, **kwargs: Any) -> Any:
    """A module whose parameters nobody has set: here they have the values that they begin with."""
    from adjoint.torch.nn.module import Module

    if not issubclass(module_cls, Module):
        raise RuntimeError(f"Expected a Module; got {module_cls}")
    if "device" not in inspect.signature(module_cls).parameters:
        raise RuntimeError("Module must support a 'device' arg to skip initialization")
    return module_cls(*args, **kwargs)


def convert_conv2d_weight_memory_format(module: Any, memory_format: Any) -> Any:
    """The module itself: the order of axes in memory is that of the axes."""
    if not hasattr(module, "children"):
        raise _WrongKindError(f"argument 'module' (position 1) must be Module, not {type(module).__name__}")
    return module


convert_conv3d_weight_memory_format = convert_conv2d_weight_memory_format
_FROM = {  # modules that are imported when a name of theirs is first asked for
    "parametrizations": "remove_weight_norm remove_spectral_norm".split(),
    "fusion": "fuse_conv_bn_eval fuse_conv_bn_weights fuse_linear_bn_eval fuse_linear_bn_weights".split(),
    "parametrize": [], "prune": [], "stateless": [],
}  # fmt: skip


def __getattr__(name: str) -> Any:
    if name in _FROM:
        return importlib.import_module(f"{__name__}.{name}")
    if name in ("weight_norm", "spectral_norm"):
        return getattr(importlib.import_module(f"{__name__}.parametrizations"), f"old_{name}")
    for module, names in _FROM.items():
        if name in names:
            return getattr(importlib.import_module(f"{__name__}.{module}"), name)
    raise _missing(name, "adjoint.torch.nn.utils")


for _room_name, _names in {
    "clip_grad": "clip_grad_norm clip_grad_norm_ clip_grad_value_ clip_grads_with_norm_ get_total_norm",
    "convert_parameters": "parameters_to_vector vector_to_parameters",
    "init": "skip_init",
    "memory_format": "convert_conv2d_weight_memory_format convert_conv3d_weight_memory_format",
    "weight_norm": "weight_norm remove_weight_norm",
    "spectral_norm": "spectral_norm remove_spectral_norm",
}.items():
    _made = _room(f"{__name__}.{_room_name}", _names.split(), sys.modules[__name__])
    if _room_name not in _names.split():  # where a function has the name, it keeps it
        globals()[_room_name] = _made
