"""`torch.overrides`: what functions of users ask, to call `__torch_function__` of their arguments themselves."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from adjoint.torch import overriding
from adjoint.torch.missing import missing as _missing
from adjoint.torch.tensor import Tensor


def has_torch_function(relevant_args: Any) -> bool:
    """Whether one of the arguments is of a class that overrides functions.

    >>> import adjoint.torch as torch
    >>> class Own(torch.Tensor):
    ...     pass
    >>> torch.overrides.has_torch_function((torch.ones(2), Own([1.0]))), type(Own([1.0]) + 1).__name__
    (True, 'Own')
    """
    return bool(overriding.overloaded(relevant_args))


def has_torch_function_unary(tensor: Any) -> bool:
    """The same of one argument."""
    return has_torch_function((tensor,))


def has_torch_function_variadic(*args: Any) -> bool:
    """The same of arguments one by one."""
    return has_torch_function(args)


def handle_torch_function(public_api: Callable[..., Any], relevant_args: Any, *args: Any, **kwargs: Any) -> Any:
    """Call `__torch_function__` of the arguments for a function, one after the other until one has an answer.

    Raises TypeError where none has.
    """
    return overriding.dispatched(public_api, overriding.overloaded(relevant_args), args, kwargs)


def wrap_torch_function(dispatcher: Callable[..., Any]) -> Callable[[Any], Any]:
    """A decorator of functions that arguments may override; the dispatcher says which arguments."""

    def decorated(function: Any) -> Any:
        @functools.wraps(function)
        def called(*args: Any, **kwargs: Any) -> Any:
            relevant = dispatcher(*args, **kwargs)
            if has_torch_function(relevant):
                return handle_torch_function(called, relevant, *args, **kwargs)
            return function(*args, **kwargs)

        return called

    return decorated


def is_tensor_like(inp: Any) -> bool:
    """Whether it is a tensor, or of a class with `__torch_function__`."""
    return type(inp) is Tensor or hasattr(inp, overriding.DEFAULT)


def get_default_nowrap_functions() -> set[Any]:
    """The functions whose results stay what they are where subclasses say nothing."""
    return set(overriding.no_wrap())


def is_tensor_method_or_property(func: Callable[..., Any]) -> bool:
    """Whether a function is a method of tensors, or gets a property of theirs."""
    return func.__name__ == "__get__" or func in vars(Tensor).values()


def __getattr__(name: str) -> Any:
    raise _missing(name, "adjoint.torch.overrides")
