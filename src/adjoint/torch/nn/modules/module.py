"""`torch.nn.modules.module`: hooks of all modules."""

from __future__ import annotations

from typing import Any

from adjoint.torch.graph import Handle
from adjoint.torch.nn.module import EVERYWHERE
from adjoint.torch.nn.module import Module as Module


def register_module_forward_pre_hook(hook: Any) -> Handle:
    """Call `hook(module, args)` before `forward` of any module; what it returns takes the place of the arguments."""
    return Handle(EVERYWHERE["forward_pre"], (hook, False, False))


def register_module_forward_hook(hook: Any, *, with_kwargs: bool = False, always_call: bool = False) -> Handle:
    """Call `hook(module, args, output)` after `forward` of any module; what it returns takes the place of the output.

    >>> import adjoint.torch as torch
    >>> from adjoint.torch.nn.modules.module import register_module_forward_hook
    >>> with register_module_forward_hook(lambda module, args, output: print(type(module).__name__)):
    ...     _ = torch.nn.Sequential(torch.nn.ReLU(), torch.nn.Tanh())(torch.ones(2))
    ReLU
    Tanh
    Sequential
    """
    return Handle(EVERYWHERE["forward"], (hook, with_kwargs, always_call))


def register_module_full_backward_pre_hook(hook: Any) -> Handle:
    """Call `hook(module, grad_output)` before gradients go through any module; it may replace them."""
    return Handle(EVERYWHERE["backward_pre"], hook)


def register_module_full_backward_hook(hook: Any) -> Handle:
    """Call `hook(module, grad_input, grad_output)` when gradients by any module's inputs are there."""
    return Handle(EVERYWHERE["backward"], hook)


def register_module_parameter_registration_hook(hook: Any) -> Handle:
    """Call `hook(module, name, parameter)` when any module gets a parameter; what it returns takes its place.

    >>> import adjoint.torch as torch
    >>> from adjoint.torch.nn.modules.module import register_module_parameter_registration_hook
    >>> with register_module_parameter_registration_hook(lambda module, name, parameter: print(name)):
    ...     _ = torch.nn.Linear(2, 3)
    weight
    bias
    """
    return Handle(EVERYWHERE["parameter"], hook)


def register_module_buffer_registration_hook(hook: Any) -> Handle:
    """Call `hook(module, name, buffer)` when any module gets a buffer; what it returns takes its place."""
    return Handle(EVERYWHERE["buffer"], hook)


def register_module_module_registration_hook(hook: Any) -> Handle:
    """Call `hook(module, name, part)` when any module gets a part; what it returns takes its place."""
    return Handle(EVERYWHERE["module"], hook)
