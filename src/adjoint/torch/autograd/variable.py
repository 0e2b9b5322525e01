"""`torch.autograd.Variable`: the name that tensors had before PyTorch 0.4, and what engines call back."""

from __future__ import annotations

from typing import Any

from adjoint.torch.state import running
from adjoint.torch.tensor import Tensor


class _Engine:
    def queue_callback(self, callback: Any) -> None:
        """Call something at the end of the backward pass that runs."""
        walk = running()
        if walk is None:
            raise RuntimeError("Final callbacks can only be installed during backward pass.")
        walk.callbacks.append(callback)


class _Kind(type):
    def __instancecheck__(cls, instance: Any) -> bool:
        return isinstance(instance, Tensor)


class Variable(metaclass=_Kind):
    """A tensor, as older programs make it."""

    _execution_engine = _Engine()

    def __new__(cls, data: Any, requires_grad: bool = False, volatile: bool = False) -> Any:
        out = data.detach()
        return out.requires_grad_() if requires_grad else out
