"""What a function reads beside its arguments: closures, and names of its module.

Tensors in closures are arguments of the compiled function. Of all else a guard is kept: when it has changed, the
function is recorded again. Attributes of objects are not looked at.
"""

from __future__ import annotations

import functools
import operator
import types
from collections.abc import Callable
from typing import Any

from adjoint import errors
from adjoint.lines import PACKAGE
from adjoint.tensor import Tensor, raw_array
from adjoint.transforms.arguments import Function

_PLAIN = (bool, int, float, complex, str, bytes, type(None))

_is = operator.is_

_MANY = 1000  # entries: of larger containers what is in them is not looked at


class Same:
    """An object, equal to itself alone."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Same) and other.value is self.value

    def __hash__(self) -> int:
        return id(self.value)


def plain(x: Any) -> Any:
    """Equal for equal values of one type: 0.0 and -0.0 differ, and so do 1 and True."""
    return (x.__class__, repr(x)) if x.__class__ in (float, complex) else (x.__class__, x)


def environment(f: Function) -> tuple[list[Tensor[Any]], tuple[Any, ...]]:
    """The tensors in the closure of a function, each once, and the guard of what else it reads."""
    if f.__class__ is types.FunctionType and not f.__closure__ and not _names(f.__code__):
        return _NOTHING
    found = _read(f)
    return list(found.tensors.values()), tuple(found.guard)


_NOTHING: tuple[list[Tensor[Any]], tuple[Any, ...]] = ([], ())


def unchanged(f: Function) -> Callable[[], bool]:
    """A function that says whether all that f reads is the very same as now, faster than it is read."""
    found = _read(f)
    cells, names, functions, containers = found.cells, found.names, found.functions, found.containers

    def holds() -> bool:
        try:
            for cell, value in cells:
                if cell.cell_contents is not value:
                    return False
        except ValueError:
            return False
        for known, there, values, absent in names:
            if not all(map(_is, map(known.get, there), values)) or not known.keys().isdisjoint(absent):
                return False
        for function, code, defaults in functions:
            if function.__code__ is not code or function.__defaults__ is not defaults:
                return False
        for container, keys, values in containers:
            inside = container.values() if keys is not None else container
            if len(inside) != len(values) or not all(map(_is, inside, values)):
                return False
            if keys is not None and not all(map(_is, container, keys)):
                return False
        return all([raw_array(x) is array for x, array in found.assigned])

    return holds


def _read(f: Function) -> _Reader:
    found = _Reader()
    try:
        found.read(f)
    except RecursionError:
        raise errors.ArgumentError("compile: what f closes over contains itself, or is nested too deep") from None
    return found


@functools.lru_cache(1024)
def _names(code: types.CodeType) -> tuple[str, ...]:
    """What a function and those defined in it read of their module, as far as names tell."""
    inner = [name for x in code.co_consts if isinstance(x, types.CodeType) for name in _names(x)]
    return tuple(dict.fromkeys([*code.co_names, *inner]))


class _Reader:
    """What is read, from a function on."""

    def __init__(self) -> None:
        self.tensors: dict[int, Tensor[Any]] = {}
        self.guard: list[Any] = []
        self._seen: set[int] = set()
        # where it was found, and what was there
        self.cells: list[tuple[types.CellType, Any]] = []
        self.names: list[tuple[dict[str, Any], list[str], list[Any], list[str]]] = []
        self.functions: list[tuple[types.FunctionType, types.CodeType, Any]] = []
        self.containers: list[tuple[Any, Any, list[Any]]] = []
        self.assigned: list[tuple[Tensor[Any], Any]] = []

    def read(self, x: Any, *, own: bool = True) -> None:
        """`own` says that a tensor can be given to the function: not so those of its module."""
        guard, tensors = self.guard, self.tensors
        if isinstance(x, Tensor):
            if own:
                guard.append(len(tensors) if id(x) not in tensors else [*tensors].index(id(x)))
                tensors[id(x)] = x
            else:
                guard.append((Same(x), Same(raw_array(x))))
                self.assigned.append((x, raw_array(x)))
            return
        if isinstance(x, _PLAIN):
            guard.append(plain(x))
            return
        if id(x) in self._seen:
            return
        self._seen.add(id(x))
        if isinstance(x, types.FunctionType):
            self._function(x, own)
        elif isinstance(x, functools.partial):
            for part in (x.func, x.args, x.keywords):
                self.read(part, own=own)
        elif isinstance(x, (dict, list, tuple)) and len(x) > _MANY:
            guard.append(Same(x))
        elif isinstance(x, dict):
            guard.append((dict, tuple(map(plain, x))))
            self._inside(x, list(x), list(x.values()), own)
        elif isinstance(x, (list, tuple)):
            guard.append((type(x), len(x)))
            self._inside(x, None, list(x), own)
        else:
            guard.append(Same(x))

    def _inside(self, x: Any, keys: Any, values: list[Any], own: bool) -> None:
        self.containers.append((x, keys, values))
        for value in values:
            self.read(value, own=own)

    def _function(self, x: types.FunctionType, own: bool) -> None:
        self.guard.append(Same(x.__code__))
        self.functions.append((x, x.__code__, x.__defaults__))
        for cell in x.__closure__ or ():
            value = _content(cell)
            self.cells.append((cell, value))
            self.read(value, own=own)
        for value in x.__defaults__ or ():
            self.read(value, own=False)
        if x.__kwdefaults__:
            self.containers.append((x.__kwdefaults__, list(x.__kwdefaults__), list(x.__kwdefaults__.values())))
            for value in x.__kwdefaults__.values():
                self.read(value, own=False)
        if x.__code__.co_filename.startswith(PACKAGE):
            return  # names of ours do not change
        known = x.__globals__
        names = _names(x.__code__)
        there = [name for name in names if name in known]
        self.names.append((known, there, [known[name] for name in there], [n for n in names if n not in known]))
        for value in self.names[-1][2]:
            if value.__class__ is not types.ModuleType:
                same_module = isinstance(value, types.FunctionType) and value.__globals__ is known
                if same_module or not callable(value):
                    self.read(value, own=False)
                else:
                    self.guard.append(Same(value))


class _Empty:
    """Of a cell that has no value yet."""


def _content(cell: Any) -> Any:
    try:
        return cell.cell_contents
    except ValueError:
        return _Empty
