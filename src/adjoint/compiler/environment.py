"""What a function reads beside its arguments: closures, and names of its module.

Tensors in closures are arguments of the compiled function. Of all else a guard is kept: when it has changed, the
function is recorded again. Attributes of objects are not looked at.
"""

from __future__ import annotations

import contextvars
import dis
import functools
import operator
import types
from typing import Any

from adjoint import errors
from adjoint.concrete import callbacks
from adjoint.devices import current_level, default_device
from adjoint.dtypes import chosen_dtype, default_dtype
from adjoint.lines import PACKAGE
from adjoint.scopes import Variable, innermost
from adjoint.tensor import Tensor, raw_array
from adjoint.transforms.arguments import Function

disabled: Variable[bool] = contextvars.ContextVar("adjoint_compile_disabled", default=None)


def settings() -> tuple[Any, ...]:
    """What the context and the process say."""
    return current_level(), default_device(), default_dtype(), chosen_dtype(), innermost(disabled) is not None


_PLAIN = (bool, int, float, complex, str, bytes, type(None))

_MANY = 1000  # entries: of larger containers what is in them is not looked at


class Same:
    """An object, equal to itself alone."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value: Any = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Same) and other.value is self.value

    def __hash__(self) -> int:
        return id(self.value)


def plain(x: Any) -> Any:
    """Equal for equal values of one type: 0.0 and -0.0 differ, and so do 1 and True."""
    return (x.__class__, repr(x)) if x.__class__ in (float, complex) else (x.__class__, x)


@functools.lru_cache(1024)
def _names(code: types.CodeType, count: int) -> tuple[str, ...]:
    """The names of their module that a function and those defined in it read or assign to.

    Callbacks are left out, of which `count` are known.
    """
    own = [x.argval for x in dis.get_instructions(code) if "GLOBAL" in x.opname or x.opname in _OF_CLASSES]
    inner = [name for x in _inner(code) for name in _names(x, count)]
    return tuple(dict.fromkeys([*own, *inner]))


@functools.lru_cache(1024)
def _read(code: types.CodeType, count: int) -> frozenset[str]:
    """The variables of closures that they read or assign to."""
    own = {x.argval for x in dis.get_instructions(code) if "DEREF" in x.opname}
    return frozenset(own.union(*[_read(x, count) for x in _inner(code)]))


def _inner(code: types.CodeType) -> list[types.CodeType]:
    """The functions that are defined in one, but for callbacks."""
    return [x for x in code.co_consts if isinstance(x, types.CodeType) and x not in callbacks]


_OF_CLASSES = ("LOAD_NAME", "STORE_NAME", "DELETE_NAME")  # in the body of a class, which may mean the module's


class Environment:
    """What a function reads beside its arguments: `tensors` in its closure, each once, and a `guard` of all else."""

    def __init__(self, f: Function) -> None:
        self.tensors: list[Tensor[Any]] = []
        self.guard: tuple[Any, ...] = ()
        self._cells: list[tuple[types.CellType, Any]] = []
        self._globals: list[tuple[dict[str, Any], str, Any]] = []
        self._read: set[tuple[int, str]] = set()  # ... which are these
        self._functions: list[tuple[types.FunctionType, types.CodeType, Any, Any]] = []
        self._containers: list[tuple[Any, tuple[Any, ...]]] = []
        self._arrays: list[tuple[Tensor[Any], Any]] = []
        if f.__class__ is types.FunctionType and not (
            f.__closure__ or f.__defaults__ or f.__kwdefaults__ or _names(f.__code__, callbacks.count)
        ):
            return
        guard: list[Any] = []
        try:
            self._gather(f, guard, set(), own=True)
        except RecursionError:
            raise errors.ArgumentError("compile: what f closes over contains itself, or is nested too deep") from None
        self.guard = tuple(guard)

    def is_unchanged(self) -> bool:
        """Whether everything is the same object still."""
        try:
            for cell, value in self._cells:
                if cell.cell_contents is not value:
                    return False
        except ValueError:  # one that has no value, or none any more
            if any([_content(cell) is not value for cell, value in self._cells]):
                return False
        for known, name, value in self._globals:
            if known.get(name, _Empty) is not value:
                return False
        for f, code, defaults, named in self._functions:
            if f.__code__ is not code or f.__defaults__ is not defaults or f.__kwdefaults__ is not named:
                return False
        for container, before in self._containers:
            now = _parts(container)
            if len(now) != len(before) or not all(map(operator.is_, now, before)):
                return False
        return all([raw_array(tensor) is array for tensor, array in self._arrays])

    def _gather(self, x: Any, guard: list[Any], seen: set[int], *, own: bool) -> None:
        """`own` says that a tensor can be given to the function: not so those of its module."""
        if isinstance(x, Tensor):
            if own:
                place = next((i for i, y in enumerate(self.tensors) if y is x), len(self.tensors))
                guard.append(place)
                if place == len(self.tensors):
                    self.tensors.append(x)
            else:
                guard.append((Same(x), Same(raw_array(x))))
                self._arrays.append((x, raw_array(x)))
            return
        if isinstance(x, _PLAIN):
            guard.append(plain(x))
            return
        if id(x) in seen:
            return
        seen.add(id(x))
        if isinstance(x, types.FunctionType):
            self._gather_function(x, guard, seen, own=own)
        elif isinstance(x, (dict, list, tuple)) and len(x) > _MANY:
            guard.append(Same(x))
        elif isinstance(x, (dict, list, tuple, functools.partial)):
            parts = _parts(x)
            if isinstance(x, (dict, list)):  # the others stay as they are
                self._containers.append((x, parts))
            if isinstance(x, dict):
                parts = parts[len(parts) // 2 :]
                guard.append((dict, tuple(map(plain, x))))
            else:
                guard.append((type(x), len(parts)))
            for part in parts:
                self._gather(part, guard, seen, own=own)
        else:
            guard.append(Same(x))

    def _gather_function(self, f: types.FunctionType, guard: list[Any], seen: set[int], *, own: bool) -> None:
        guard.append(Same(f.__code__))
        if f.__code__ in callbacks:
            return
        read = _read(f.__code__, callbacks.count)
        for name, cell in zip(f.__code__.co_freevars, f.__closure__ or (), strict=True):
            value = _content(cell)
            self._cells.append((cell, value))
            if isinstance(value, (dict, list)) and name not in read:  # callbacks fill it
                guard.append(Same(value))
            else:
                self._gather(value, guard, seen, own=own)
        if f.__code__.co_filename.startswith(PACKAGE):  # ours do not change, but may hold what is the user's
            for value in (f.__defaults__, *(f.__kwdefaults__ or {}).values()):
                self._gather(value, guard, seen, own=False)
            return
        self._functions.append((f, f.__code__, f.__defaults__, f.__kwdefaults__))
        for defaults in (f.__defaults__, f.__kwdefaults__):
            self._gather(defaults, guard, seen, own=False)
        known = f.__globals__
        for name in _names(f.__code__, callbacks.count):
            value = known.get(name, _Empty)
            if (id(known), name) not in self._read:
                self._read.add((id(known), name))
                self._globals.append((known, name, value))
            if value is _Empty or value.__class__ is types.ModuleType:
                continue
            same_module = isinstance(value, types.FunctionType) and value.__globals__ is known
            if same_module or not callable(value) or isinstance(value, functools.partial):
                self._gather(value, guard, seen, own=False)
            else:
                guard.append(Same(value))


def _parts(x: Any) -> tuple[Any, ...]:
    """What a container holds: of a dictionary the keys, then the values."""
    if isinstance(x, dict):
        return (*x, *x.values())
    return (x.func, x.args, x.keywords) if isinstance(x, functools.partial) else tuple(x)


class _Empty:
    """Of a cell that has no value yet."""


def _content(cell: Any) -> Any:
    try:
        return cell.cell_contents
    except ValueError:
        return _Empty
