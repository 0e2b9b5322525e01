"""`torch.nn.utils`: gradients that are clipped, parameters as one vector, packed sequences, parametrisations."""

from __future__ import annotations

from typing import Any

from adjoint.torch.missing import missing as _missing
from adjoint.torch.nn.utils import rnn as rnn
from adjoint.torch.operators import FUNCTIONS
from adjoint.torch.state import no_grad
from adjoint.torch.tensor import Tensor


def _gradients(parameters: Any) -> list[Any]:
    found = [parameters] if isinstance(parameters, Tensor) else list(parameters)
    return [x.grad for x in found if x.grad is not None]


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


def clip_grads_with_norm_(parameters: Any, max_norm: float, total_norm: Any, foreach: Any = None) -> None:
    """Scale gradients by max_norm over their norm where that is less than 1."""
    factor = FUNCTIONS["clamp"](float(max_norm) / (total_norm + 1e-6), max=1.0)
    for g in _gradients(parameters):
        g.mul_(factor.to(dtype=g.dtype))


def clip_grad_norm_(
    parameters: Any, max_norm: float, norm_type: float = 2.0, error_if_nonfinite: bool = False, foreach: Any = None
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


def clip_grad_value_(parameters: Any, clip_value: float, foreach: Any = None) -> None:
    """Bring each number of the gradients between minus and plus a value."""
    with no_grad():
        for g in _gradients(parameters):
            g.clamp_(-float(clip_value), float(clip_value))


def parameters_to_vector(parameters: Any) -> Any:
    """Parameters one after the other, as one vector."""
    return FUNCTIONS["cat"]([x.reshape(-1) for x in parameters])


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


def __getattr__(name: str) -> Any:
    import importlib

    if name in ("parametrize", "parametrizations"):
        return importlib.import_module(f"{__name__}.{name}")
    if name in ("weight_norm", "spectral_norm", "remove_weight_norm", "remove_spectral_norm"):
        found = importlib.import_module(f"{__name__}.parametrizations")
        return getattr(found, name if name.startswith("remove") else f"old_{name}")
    raise _missing(name, "adjoint.torch.nn.utils")
