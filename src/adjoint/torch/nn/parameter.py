"""`Parameter`: a tensor that a module counts as one of its own; `Buffer`: one that it keeps beside them."""

from __future__ import annotations

from typing import Any

from adjoint.torch.memory import detached
from adjoint.torch.tensor import Tensor, constant


class Parameter(Tensor):
    """A tensor that is a parameter of a module which it is assigned to. It shares the memory of `data`.

    >>> import adjoint.torch as torch
    >>> torch.nn.Parameter(torch.ones(2))
    Parameter containing:
    tensor([1., 1.], requires_grad=True)
    """

    __slots__ = ()

    def __new__(cls, data: Any = None, requires_grad: bool = True) -> Any:
        import adjoint.torch as torch

        if data is None:
            data = torch.empty(0)
        if not isinstance(data, Tensor):
            raise TypeError(f"Parameter data must be a Tensor, but got {type(data).__name__}")
        made = detached(data)
        made.__class__ = cls
        return made.requires_grad_(requires_grad)

    def __repr__(self) -> str:
        return "Parameter containing:\n" + super().__repr__()


def fresh(value: Any, requires_grad: bool = True) -> Any:
    """A parameter of a NumPy array that nobody else has."""
    made: Any = constant(value)
    made.__class__ = Parameter
    return made.requires_grad_(requires_grad)


class _IsBuffer(type):
    def __instancecheck__(cls, instance: Any) -> bool:
        return type.__instancecheck__(cls, instance) or (
            isinstance(instance, Tensor) and getattr(instance, "_is_buffer", False)
        )


class Buffer(Tensor, metaclass=_IsBuffer):
    """A tensor that becomes a buffer of a module which it is assigned to."""

    __slots__ = ()

    def __new__(cls, data: Any = None, *, persistent: bool = True) -> Any:
        import adjoint.torch as torch

        made: Any = detached(torch.empty(0) if data is None else data)
        if data is not None and data.requires_grad:
            made.requires_grad_()
        made.persistent, made._is_buffer = persistent, True
        return made
