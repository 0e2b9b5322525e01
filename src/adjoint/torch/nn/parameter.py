"""`Parameter`: a tensor that a module counts as one of its own; `Buffer`: one that it keeps beside them; and both
before they have a shape."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from adjoint.torch.devices import chosen
from adjoint.torch.dtypes import default_float, numpy_dtype
from adjoint.torch.memory import detached
from adjoint.torch.missing import missing as _missing
from adjoint.torch.overriding import disabled, overrides
from adjoint.torch.refusals import WrongKindError
from adjoint.torch.tensor import Tensor, beside, constant, forget, give_array, placed, rare_of, where_is


class Parameter(Tensor):
    """A tensor that is a parameter of a module which it is assigned to. It shares the memory of `data`.

    >>> import adjoint.torch as torch
    >>> torch.nn.Parameter(torch.ones(2))
    Parameter containing:
    tensor([1., 1.], requires_grad=True)
    """

    __slots__ = ()
    __torch_function__ = disabled  # results are plain tensors

    def __new__(cls, data: Any = None, requires_grad: bool = True) -> Any:
        import adjoint.torch as torch

        if data is None:
            data = torch.empty(0)
        if not isinstance(data, Tensor):
            raise WrongKindError(f"Parameter data must be a Tensor, but got {type(data).__name__}")
        if overrides(type(data)):
            raise NotImplementedError(
                f"adjoint.torch: a Parameter of a {type(data).__name__}, which has operations of its own, is not "
                "there; make a subclass of nn.Parameter"
            )
        made = detached(data)
        made.__class__ = cls
        return made.requires_grad_(requires_grad)

    def __repr__(self) -> str:
        if type(self) is Parameter:
            return "Parameter containing:\n" + super().__repr__()
        from adjoint.torch.printing import text

        return f"Parameter containing:\nParameter({text(self, type(self).__name__)})"

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        """A parameter of the same value, without its gradient."""
        if id(self) not in memo:
            made = detached(self).clone()
            made.__class__ = type(self)
            memo[id(self)] = made.requires_grad_(self.requires_grad)
        return memo[id(self)]


def fresh(value: Any, requires_grad: bool = True) -> Any:
    """A parameter of an array that nobody else has."""
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

    _is_buffer: bool
    __slots__ = ()
    __torch_function__ = disabled

    def __new__(cls, data: Any = None, *, persistent: bool = True) -> Any:
        import adjoint.torch as torch

        if data is not None and not isinstance(data, Tensor):
            raise WrongKindError(f"Buffer takes a Tensor, not {type(data).__name__}")
        made: Any = detached(torch.empty(0) if data is None else data)
        if data is not None and data.requires_grad:
            made.requires_grad_()
        made.persistent, made._is_buffer = persistent, True
        return made


# --- without a shape ------------------------------------------------------------------------------------

_WAITING = (
    "Attempted to use an uninitialized parameter. This error happens when you are using a `LazyModule` or explicitly "
    "manipulating `torch.nn.parameter.UninitializedParameter` objects. When using LazyModules Call `forward` with a "
    "dummy batch to initialize the parameters before calling torch functions"
)


class Waiting(Tensor):
    """What a tensor without a shape has: `materialize` gives it one."""

    __slots__ = ()
    __torch_function__ = disabled
    _becomes: type = Tensor
    wanted: bool  # whether it will ask for a gradient

    def __new__(cls, requires_grad: bool = True, device: Any = None, dtype: Any = None) -> Any:
        if requires_grad.__class__ is not bool:
            raise TypeError(f"argument 'requires_grad' must be bool, not {type(requires_grad).__name__}")
        kind = numpy_dtype(dtype) or default_float()
        made: Any = placed(np.zeros(0, kind), chosen(device))
        forget(made)
        made.__class__ = cls
        made.wanted = requires_grad and issubclass(cls, Parameter)
        return made

    def __getattr__(self, name: str) -> Any:
        if name in ("_array", "_here"):
            raise ValueError(_WAITING)
        return super().__getattr__(name)

    def convert(self, fn: Callable[[Any], Any]) -> None:
        """Take the type that `fn` gives a tensor of this one: there are no values yet."""
        made = fn(beside(self, np.zeros(0, self._dtype)))
        self._dtype = made._dtype
        rare_of(self).where = where_is(made)

    @property
    def shape(self) -> Any:
        raise RuntimeError(
            "Can't access the shape of an uninitialized parameter or buffer. This error usually happens in "
            "`load_state_dict` when trying to load an uninitialized parameter into an initialized one. Call "
            "`forward` to initialize the parameters before accessing their attributes."
        )

    @property
    def ndim(self) -> Any:
        raise ValueError(_WAITING)

    is_leaf: Any = True

    @property
    def requires_grad(self) -> Any:
        return self.wanted

    def materialize(self, shape: Any, device: Any = None, dtype: Any = None) -> None:
        """Make it a tensor of a shape, with values that are not set yet."""
        wanted = self.wanted
        del self.wanted
        self.__class__ = self._becomes
        there = where_is(self) if device is None else chosen(device)
        made = placed(np.zeros(tuple(shape), numpy_dtype(dtype) or self._dtype), there)
        self._dtype = made._dtype
        give_array(self, made._array)
        self.requires_grad_(wanted)

    def detach(self) -> Any:
        return self

    def requires_grad_(self, requires_grad: bool = True) -> Any:
        raise ValueError(_WAITING)

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        made: Any = type(self)
        return memo.setdefault(id(self), made(requires_grad=self.wanted, device=self.device, dtype=self.dtype))

    def __repr__(self) -> str:
        return f"<{type(self).__name__}>"


class UninitializedParameter(Waiting, Parameter):
    """A parameter whose shape is not known yet."""

    __slots__ = ()
    _becomes = Parameter


class UninitializedBuffer(Waiting):
    """A buffer whose shape is not known yet."""

    __slots__ = ()


def is_lazy(param: Any) -> bool:
    """Whether a parameter or buffer has no shape yet."""
    return isinstance(param, (UninitializedParameter, UninitializedBuffer))


def __getattr__(name: str) -> Any:
    raise _missing(name, __name__)
