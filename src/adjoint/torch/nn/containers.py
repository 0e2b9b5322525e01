"""Modules that hold others, and parameters, in a row or by name."""

from __future__ import annotations

import itertools
import operator
from collections.abc import Mapping
from typing import Any

from adjoint.torch.nn.module import Module, kind_of
from adjoint.torch.nn.parameter import Parameter
from adjoint.torch.tensor import Tensor


def _place(given: Any, size: int) -> int:
    i: int = operator.index(given)
    if not -size <= i < size:
        raise IndexError(f"index {i} is out of range")
    return i % size


class Sequential(Module):
    """Modules, each of which gets what the one before gives.

    >>> import adjoint.torch as torch
    >>> torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.ReLU())
    Sequential(
      (0): Linear(in_features=2, out_features=3, bias=True)
      (1): ReLU()
    )
    """

    def __init__(self, *args: Any) -> None:
        super().__init__()
        named = args[0].items() if len(args) == 1 and isinstance(args[0], dict) else enumerate(args)
        for name, module in named:
            self.add_module(str(name), module)

    def forward(self, input: Any) -> Any:
        for module in self._modules.values():
            input = module(input)
        return input

    def __len__(self) -> int:
        return len(self._modules)

    def __iter__(self) -> Any:
        return iter(self._modules.values())

    def __getitem__(self, i: Any) -> Any:
        if isinstance(i, slice):
            return type(self)(dict(list(self._modules.items())[i]))
        return list(self._modules.values())[_place(i, len(self))]

    def __setitem__(self, i: Any, module: Any) -> None:
        setattr(self, list(self._modules)[_place(i, len(self))], module)

    def __delitem__(self, i: Any) -> None:
        names = list(self._modules)
        for name in names[i] if isinstance(i, slice) else [names[_place(i, len(self))]]:
            delattr(self, name)
        _renumber(self)

    def __add__(self, other: Any) -> Any:
        if not isinstance(other, Sequential):
            raise ValueError(f"add operator supports only objects of Sequential class, but {type(other)} is given.")
        return Sequential(*self, *other)

    def __iadd__(self, other: Any) -> Any:
        return self.extend((self + other)[len(self) :])

    def __mul__(self, count: Any) -> Any:
        return Sequential(*[part for _ in range(_times(count)) for part in self])

    __rmul__ = __mul__

    def __imul__(self, count: Any) -> Any:
        return self.extend(list(self) * (_times(count) - 1))

    def append(self, module: Any) -> Any:
        self.add_module(str(len(self)), module)
        return self

    def extend(self, modules: Any) -> Any:
        for module in modules:
            self.append(module)
        return self

    def insert(self, index: int, module: Any) -> Any:
        _insert(self, index, module)
        return self

    def pop(self, key: Any) -> Any:
        found = self[key]
        del self[key]
        return found


def _times(count: Any) -> int:
    if not isinstance(count, int):
        raise TypeError(f"unsupported operand type(s) for *: {Sequential} and {type(count)}")
    if count <= 0:
        raise ValueError(f"Non-positive multiplication factor {count} for {Sequential}")
    return count


def _renumber(holder: Any) -> None:
    found = list(holder._modules.values())
    holder._modules.clear()
    holder._modules.update({str(i): module for i, module in enumerate(found)})


def _insert(holder: Any, index: int, module: Any) -> None:
    if not isinstance(module, Module):
        raise AssertionError(f"module should be of type: {Module}")
    if not -len(holder) <= index <= len(holder):
        raise IndexError(f"Index out of range: {index}")
    found = list(holder._modules.values())
    found.insert(index, module)
    holder._modules.clear()
    holder._modules.update({str(i): each for i, each in enumerate(found)})


class ModuleList(Module):
    """Modules in a list."""

    def __init__(self, modules: Any = None) -> None:
        super().__init__()
        if modules is not None:
            self.extend(modules)

    def __len__(self) -> int:
        return len(self._modules)

    def __iter__(self) -> Any:
        return iter(self._modules.values())

    def __getitem__(self, i: Any) -> Any:
        if isinstance(i, slice):
            return type(self)(list(self._modules.values())[i])
        return self._modules[str(_place(i, len(self)))]

    def __setitem__(self, i: Any, module: Any) -> None:
        setattr(self, str(_place(i, len(self))), module)

    def __delitem__(self, i: Any) -> None:
        for k in range(len(self))[i] if isinstance(i, slice) else [_place(i, len(self))]:
            delattr(self, str(k))
        _renumber(self)

    def __iadd__(self, modules: Any) -> Any:
        return self.extend(modules)

    def __add__(self, other: Any) -> Any:
        return ModuleList([*self, *other])

    def __contains__(self, module: Any) -> bool:
        return any([module is known for known in self])

    def append(self, module: Any) -> Any:
        self.add_module(str(len(self)), module)
        return self

    def extend(self, modules: Any) -> Any:
        if not hasattr(modules, "__iter__"):
            raise TypeError(f"ModuleList.extend should be called with an iterable, but got {type(modules).__name__}")
        for module in modules:
            self.append(module)
        return self

    def insert(self, index: int, module: Any) -> None:
        _insert(self, index, module)

    def pop(self, key: Any) -> Any:
        found = self[key]
        del self[key]
        return found

    def __repr__(self) -> str:
        """Equal neighbours are shown once, as `(0-2): 3 x ...`."""
        groups = [[*group] for _, group in itertools.groupby(enumerate(map(repr, self)), key=lambda entry: entry[1])]
        if not groups:
            return f"{self._get_name()}()"
        lines = []
        for group in groups:
            (first, text), (last, _) = group[0], group[-1]
            shown = f"({first}): {text}" if first == last else f"({first}-{last}): {len(group)} x {text}"
            lines.append("\n  ".join(shown.split("\n")))
        return f"{self._get_name()}(\n  " + "\n  ".join(lines) + "\n)"


class ModuleDict(Module):
    """Modules by name."""

    def __init__(self, modules: Any = None) -> None:
        super().__init__()
        if modules is not None:
            self.update(modules)

    def __len__(self) -> int:
        return len(self._modules)

    def __iter__(self) -> Any:
        return iter(self._modules)

    def __contains__(self, key: str) -> bool:
        return key in self._modules

    def __getitem__(self, key: str) -> Any:
        return self._modules[key]

    def __setitem__(self, key: str, module: Any) -> None:
        self.add_module(key, module)

    def __delitem__(self, key: str) -> None:
        del self._modules[key]

    def clear(self) -> None:
        self._modules.clear()

    def pop(self, key: str) -> Any:
        return self._modules.pop(key)

    def keys(self) -> Any:
        return self._modules.keys()

    def values(self) -> Any:
        return self._modules.values()

    def items(self) -> Any:
        return self._modules.items()

    def update(self, modules: Any) -> None:
        for key, module in _pairs(modules, "ModuleDict"):
            self[key] = module


def _pairs(given: Any, name: str) -> list[Any]:
    """What a mapping, or a row of pairs, has."""
    if not hasattr(given, "__iter__"):
        raise TypeError(
            f"{name}.update should be called with an iterable of key/value pairs, but got {type(given).__name__}"
        )
    if isinstance(given, (Mapping, ModuleDict, ParameterDict)):
        return list(given.items())
    pairs = list(given)
    for i, pair in enumerate(pairs):
        if len(pair) != 2:
            raise ValueError(f"{name} update sequence element #{i} has length {len(pair)}; 2 is required")
    return pairs


def _kept(value: Any) -> Any:
    return Parameter(value) if isinstance(value, Tensor) and not isinstance(value, Parameter) else value


def _shown(name: str, value: Any, in_list: bool = False) -> str:
    if isinstance(value, Tensor):
        kind = "Parameter" if isinstance(value, Parameter) else "Tensor"
        size = "x".join(map(str, value.shape))
        return f"({name}): {kind} containing: [{value.dtype if in_list else value.type()} of size {size}]"
    return f"({name}): Object of type: {type(value).__name__}"


class ParameterList(Module):
    """Parameters, and anything else, in a list; tensors become parameters."""

    def __init__(self, values: Any = None) -> None:
        super().__init__()
        self._size = 0
        if values is not None:
            self.extend(values)

    def __len__(self) -> int:
        return self._size

    def __iter__(self) -> Any:
        return iter([self[i] for i in range(len(self))])

    def __getitem__(self, i: Any) -> Any:
        if isinstance(i, slice):
            return type(self)([self[k] for k in range(len(self))[i]])
        return getattr(self, str(_place(i, len(self))))

    def __setitem__(self, i: Any, value: Any) -> None:
        setattr(self, str(_place(i, len(self))), _kept(value))

    def __iadd__(self, values: Any) -> Any:
        return self.extend(values)

    def append(self, value: Any) -> Any:
        self._size += 1
        self[self._size - 1] = value
        return self

    def extend(self, values: Any) -> Any:
        if not hasattr(values, "__iter__") or isinstance(values, Tensor):
            raise TypeError(f"ParameterList.extend should be called with an iterable, but got {type(values).__name__}")
        for value in values:
            self.append(value)
        return self

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        raise RuntimeError("ParameterList should not be called.")

    def extra_repr(self) -> str:
        return "\n".join(["  " + _shown(str(i), value, True) for i, value in enumerate(self)])


class ParameterDict(Module):
    """Parameters, and anything else, by name; tensors become parameters."""

    def __init__(self, parameters: Any = None) -> None:
        super().__init__()
        self._keys: dict[str, None] = {}
        if parameters is not None:
            self.update(parameters)

    def __len__(self) -> int:
        return len(self._keys)

    def __iter__(self) -> Any:
        return iter(self._keys)

    def __contains__(self, key: str) -> bool:
        return key in self._keys

    def __getitem__(self, key: str) -> Any:
        return getattr(self, key)

    def __setitem__(self, key: str, value: Any) -> None:
        if not isinstance(key, str):
            raise TypeError(
                f"Index given to ParameterDict cannot be used as a key as it is not a string ({kind_of(key)})"
            )
        self._keys[key] = None
        setattr(self, key, _kept(value))

    def __delitem__(self, key: str) -> None:
        del self._keys[key]
        delattr(self, key)

    def keys(self) -> Any:
        return self._keys.keys()

    def values(self) -> Any:
        return [self[key] for key in self._keys]

    def items(self) -> Any:
        return [(key, self[key]) for key in self._keys]

    def get(self, key: str, default: Any = None) -> Any:
        return getattr(self, key) if key in self._keys else default

    def setdefault(self, key: str, default: Any = None) -> Any:
        """The value of a key, which gets this one where it has none."""
        if key not in self:
            self[key] = default
        return self[key]

    def pop(self, key: str) -> Any:
        found = self[key]
        del self[key]
        return found

    def popitem(self) -> tuple[str, Any]:
        """The last key and its value, taken away."""
        key = next(reversed(self._keys))
        return key, self.pop(key)

    def copy(self) -> Any:
        """Another one with the same parameters."""
        return ParameterDict(dict(self.items()))

    def fromkeys(self, keys: Any, default: Any = None) -> Any:
        """A new one with one value for all keys."""
        return ParameterDict(dict.fromkeys(keys, default))

    def __reversed__(self) -> Any:
        return reversed(self._keys)

    def __or__(self, other: Any) -> Any:
        out = self.copy()
        out.update(other)
        return out

    def __ror__(self, other: Any) -> Any:
        out = other.copy()
        out.update(self)
        return out

    def __ior__(self, other: Any) -> Any:
        self.update(other)
        return self

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        raise RuntimeError("ParameterDict should not be called.")

    def clear(self) -> None:
        for key in list(self._keys):
            del self[key]

    def update(self, parameters: Any) -> None:
        for key, value in _pairs(parameters, "ParameterDict"):
            self[key] = value

    def extra_repr(self) -> str:
        return "\n".join(["  " + _shown(key, value) for key, value in self.items()])
