"""`torch.nn.utils.parametrize`: parameters of modules as functions of others."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

from adjoint.torch.nn.containers import ModuleDict, ModuleList
from adjoint.torch.nn.parameter import Parameter
from adjoint.torch.state import no_grad
from adjoint.torch.tensor import Tensor

_cache: list[dict[tuple[int, str], Any]] = []  # of the blocks of `cached` that are open


@contextlib.contextmanager
def cached() -> Iterator[None]:
    """In this block each parametrized tensor is computed once."""
    _cache.append(_cache[-1] if _cache else {})
    try:
        yield
    finally:
        _cache.pop()


class ParametrizationList(ModuleList):
    """The functions of one tensor, one after the other, and what they are functions of: `original`, or several."""

    def __init__(self, modules: Any, original: Any, unsafe: bool = False) -> None:
        given = list(modules)
        if not given:
            raise ValueError("ParametrizationList requires one or more modules.")
        super().__init__(given)
        self.unsafe = unsafe
        found = self._inverted(original)
        several = isinstance(found, (tuple, list))
        self.is_tensor: bool = not several
        self.ntensors: int = len(found) if several else 1
        for name, value in zip(self._names(), found if several else (found,), strict=True):
            if isinstance(original, Parameter):
                self.register_parameter(name, Parameter(value.detach(), original.requires_grad))
            else:
                self.register_buffer(name, value)

    def _names(self) -> list[str]:
        return ["original"] if self.is_tensor else [f"original{i}" for i in range(self.ntensors)]

    def _inverted(self, value: Any) -> Any:
        with no_grad():
            for module in reversed(list(self)):
                if not hasattr(module, "right_inverse"):
                    return value
                try:
                    value = module.right_inverse(value)
                except NotImplementedError:  # it has none, and functions of what is there start anew
                    return value
        return value

    def right_inverse(self, value: Any) -> None:
        """Change what the tensor is a function of, so that it becomes a value."""
        with no_grad():
            for module in reversed(list(self)):
                if not hasattr(module, "right_inverse"):
                    raise RuntimeError(f"parametrization {type(module).__name__} does not implement right_inverse.")
                value = module.right_inverse(value)
            for name, part in zip(self._names(), (value,) if self.is_tensor else value, strict=True):
                getattr(self, name).copy_(part)

    def forward(self) -> Any:
        out = self[0](*[getattr(self, name) for name in self._names()])
        for i in range(1, len(self)):
            out = self[i](out)
        return out


def is_parametrized(module: Any, tensor_name: Any = None) -> bool:
    """Whether a module has parametrized tensors, or this one."""
    found = getattr(module, "parametrizations", None)
    if not isinstance(found, ModuleDict):
        return False
    return len(found) > 0 if tensor_name is None else tensor_name in found


class _Parametrized:
    """What classes of modules with parametrized tensors have."""

    _plain: Any

    def __setattr__(self, name: str, value: Any) -> None:
        found = self.__dict__.get("_modules", {}).get("parametrizations")
        if found is not None and name in found:
            found[name].right_inverse(value)
        else:
            super().__setattr__(name, value)

    def __reduce_ex__(self, protocol: Any) -> Any:
        if protocol == 4:  # of copy.deepcopy
            return _remade, (type(self)._plain,), self.__dict__
        raise RuntimeError(
            "Serialization of parametrized modules is only supported through state_dict(). See: "
            "https://pytorch.org/tutorials/beginner/saving_loading_models.html"
        )


def _remade(plain: Any) -> Any:
    made = plain.__new__(plain)
    made.__class__ = _class_of(plain)
    return made


def _class_of(plain: type) -> type:
    members = {"_plain": plain, "__module__": plain.__module__, "__getattribute__": _read}
    return type(f"Parametrized{plain.__name__}", (_Parametrized, plain), members)


def _read(self: Any, name: str) -> Any:
    if name[:2] != "__":
        modules = object.__getattribute__(self, "__dict__").get("_modules")
        found = None if modules is None else modules.get("parametrizations")
        if found is not None and name in found._modules:
            if not _cache:
                return found._modules[name]()
            key = (id(self), name)
            if key not in _cache[-1]:
                _cache[-1][key] = found._modules[name]()
            return _cache[-1][key]
    return object.__getattribute__(self, name)


def register_parametrization(module: Any, tensor_name: str, parametrization: Any, *, unsafe: bool = False) -> Any:
    """Make a parameter or buffer a function of another tensor, or its function one more.

    >>> import adjoint.torch as torch
    >>> layer = torch.nn.Linear(2, 2)
    >>> _ = torch.nn.utils.parametrize.register_parametrization(layer, "weight", torch.nn.Tanh())
    >>> bool((layer.weight.abs() < 1).all()), [name for name, _ in layer.named_parameters()]
    (True, ['bias', 'parametrizations.weight.original'])
    """
    parametrization.train(module.training)
    if is_parametrized(module, tensor_name):
        module.parametrizations[tensor_name].append(parametrization)
        return module
    if tensor_name not in module._parameters and tensor_name not in module._buffers:
        raise ValueError(
            f"Module '{module}' does not have a parameter, a buffer, or a parametrized element with name "
            f"'{tensor_name}'"
        )
    original = getattr(module, tensor_name)
    made = ParametrizationList([parametrization], original, unsafe)
    if not unsafe:
        with no_grad():
            found = made()
        if not isinstance(found, Tensor):
            raise ValueError(f"A parametrization must return a tensor. Got {type(found).__name__}.")
        if found.shape != original.shape:
            raise ValueError(
                "Registering a parametrization may not change the shape of the tensor, unless `unsafe` flag is "
                f"enabled.\nunparametrized shape: {original.shape}\nparametrized shape: {found.shape}"
            )
        if found.dtype is not original.dtype:
            raise ValueError(
                "Registering a parametrization may not change the dtype of the tensor, unless `unsafe` flag is "
                f"enabled.\nunparametrized dtype: {original.dtype}\nparametrized dtype: {found.dtype}"
            )
    delattr(module, tensor_name)
    if not is_parametrized(module):
        module.__class__ = _class_of(type(module))
        module.add_module("parametrizations", ModuleDict())
    module.parametrizations[tensor_name] = made
    return module


def remove_parametrizations(module: Any, tensor_name: str, leave_parametrized: bool = True) -> Any:
    """Make a tensor a parameter again: with the value that it has, or else that of the original."""
    if not is_parametrized(module, tensor_name):
        raise ValueError(f"Module {module} does not have a parametrization on {tensor_name}")
    found = module.parametrizations[tensor_name]
    if not leave_parametrized and not found.is_tensor:
        raise ValueError(
            "Cannot leave unparametrized (`leave_parametrized=False`) a tensor that is parametrized in terms of a "
            "sequence of tensors."
        )
    first = getattr(found, found._names()[0])
    with no_grad():
        value = (getattr(module, tensor_name) if leave_parametrized else first).detach().clone()
    del module.parametrizations[tensor_name]
    if not len(module.parametrizations):
        delattr(module, "parametrizations")
        module.__class__ = type(module)._plain
    if isinstance(first, Parameter):
        module.register_parameter(tensor_name, Parameter(value, first.requires_grad))
    else:
        module.register_buffer(tensor_name, value)
    return module


def type_before_parametrizations(module: Any) -> type:
    """The class that a module had."""
    return type(module)._plain if is_parametrized(module) else type(module)


def transfer_parametrizations_and_params(from_module: Any, to_module: Any, tensor_name: str | None = None) -> Any:
    """Give a module the parametrizations of another one, or that of one tensor, and the tensors that they start from.

    >>> import adjoint.torch as torch
    >>> from adjoint.torch.nn.utils import parametrizations, parametrize
    >>> one = parametrizations.weight_norm(torch.nn.Linear(2, 2))
    >>> other = parametrize.transfer_parametrizations_and_params(one, torch.nn.Linear(2, 2))
    >>> torch.equal(one.weight, other.weight)
    True
    """
    if not is_parametrized(from_module):
        return to_module
    given = from_module.parametrizations
    for name in list(given) if tensor_name is None else [tensor_name]:
        if not hasattr(to_module, name):
            setattr(to_module, name, Parameter(getattr(from_module, name)))
        for function in given[name]:
            register_parametrization(to_module, name, function)
        for original in given[name]._names():
            setattr(to_module.parametrizations[name], original, getattr(given[name], original))
    return to_module
