"""What a function reads beside its arguments: closures, and names of its module.

Tensors in closures are arguments of the compiled function. Of all else a guard is kept: when it has changed, the
function is recorded again. Attributes of objects are not looked at.
"""

from __future__ import annotations

import functools
import types
from typing import Any

from adjoint import errors
from adjoint.lines import PACKAGE
from adjoint.tensor import Tensor, raw_array
from adjoint.transforms.arguments import Function

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


def environment(f: Function) -> tuple[list[Tensor[Any]], tuple[Any, ...]]:
    """The tensors in the closure of a function, each once, and the guard of what else it reads."""
    if f.__class__ is types.FunctionType and not f.__closure__ and not _names(f.__code__):
        return _NOTHING
    tensors: dict[int, Tensor[Any]] = {}
    guard: list[Any] = []
    try:
        _gather(f, tensors, guard, set())
    except RecursionError:
        raise errors.ArgumentError("compile: what f closes over contains itself, or is nested too deep") from None
    return list(tensors.values()), tuple(guard)


_NOTHING: tuple[list[Tensor[Any]], tuple[Any, ...]] = ([], ())


@functools.lru_cache(1024)
def _names(code: types.CodeType) -> tuple[str, ...]:
    """What a function and those defined in it read of their module, as far as names tell."""
    inner = [name for x in code.co_consts if isinstance(x, types.CodeType) for name in _names(x)]
    return tuple(dict.fromkeys([*code.co_names, *inner]))


def _gather(x: Any, tensors: dict[int, Tensor[Any]], guard: list[Any], seen: set[int], *, own: bool = True) -> None:
    """`own` says that a tensor can be given to the function: not so those of its module."""
    if isinstance(x, Tensor):
        if own:
            guard.append(len(tensors) if id(x) not in tensors else [*tensors].index(id(x)))
            tensors[id(x)] = x
        else:
            guard.append((Same(x), Same(raw_array(x))))
        return
    if isinstance(x, _PLAIN):
        guard.append(plain(x))
        return
    if id(x) in seen:
        return
    seen.add(id(x))
    if isinstance(x, types.FunctionType):
        guard.append(Same(x.__code__))
        for cell in x.__closure__ or ():
            _gather(_content(cell), tensors, guard, seen, own=own)
        for value in (*(x.__defaults__ or ()), *(x.__kwdefaults__ or {}).values()):
            _gather(value, tensors, guard, seen, own=False)
        known = x.__globals__
        for name in _names(x.__code__) if not x.__code__.co_filename.startswith(PACKAGE) else ():  # ours do not change
            if name in known and (value := known[name]).__class__ is not types.ModuleType:
                same_module = isinstance(value, types.FunctionType) and value.__globals__ is known
                if same_module or not callable(value):
                    _gather(value, tensors, guard, seen, own=False)
                else:
                    guard.append(Same(value))
    elif isinstance(x, functools.partial):
        for part in (x.func, x.args, x.keywords):
            _gather(part, tensors, guard, seen, own=own)
    elif isinstance(x, (dict, list, tuple)) and len(x) > _MANY:
        guard.append(Same(x))
    elif isinstance(x, dict):
        guard.append((dict, tuple(map(plain, x))))
        for value in x.values():
            _gather(value, tensors, guard, seen, own=own)
    elif isinstance(x, (list, tuple)):
        guard.append((type(x), len(x)))
        for value in x:
            _gather(value, tensors, guard, seen, own=own)
    else:
        guard.append(Same(x))


class _Empty:
    """Of a cell that has no value yet."""


def _content(cell: Any) -> Any:
    try:
        return cell.cell_contents
    except ValueError:
        return _Empty
