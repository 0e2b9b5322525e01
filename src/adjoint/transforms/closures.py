"""Closure conversion: what a function closes over as arguments."""

from __future__ import annotations

import functools
import types
from collections.abc import Iterable
from typing import Any

from adjoint import errors
from adjoint.tensor import Tensor
from adjoint.transforms.calls import Function


def closure_convert(f: Function, *args: Any) -> tuple[Function, list[Tensor[Any]]]:
    """f as a function of what it closes over: derivatives with respect to those tensors can then be taken.

    Gives (converted, closed): `converted(*args, *closed)` is `f(*args)`, where `closed` are the floating tensors that
    f, the functions it calls from its closure, and the containers there hold. Globals are no part of a closure.
    `args` are examples of arguments; only functions with Python source are converted, and others close over nothing.

    >>> import adjoint as ad
    >>> w = ad.tensor(3.0)
    >>> def make():
    ...     inner = w
    ...     return lambda x: x * inner
    >>> converted, closed = ad.closure_convert(make(), 2.0)
    >>> ad.grad(converted, 1)(2.0, *closed).item()
    2.0
    """
    if not callable(f):
        raise errors.ArgumentTypeError(f"closure_convert: expected a function, received {f!r}")
    found = {key: x for key, x in closed_over(f).items() if x.dtype.kind in "fc"}
    closed = list(found.values())

    def converted(*values: Any) -> Any:
        split = len(values) - len(closed)
        if split < 0:
            raise errors.ArgumentError(
                f"closure_convert: expected the arguments and then {len(closed)} closed-over tensors, received "
                f"{len(values)}"
            )
        return substituted(f, dict(zip(found, values[split:], strict=True)))(*values[:split])

    return converted, closed


def closed_over(f: Function) -> dict[int, Tensor[Any]]:
    """The tensors that a function, the functions it calls from its closure, and the containers there hold, by id."""
    found: dict[int, Tensor[Any]] = {}
    _gather(f, found, set())
    return found


def substituted(f: Function, values: dict[int, Any]) -> Function:
    """The function with other tensors in the place of those it closes over, by id."""
    return _rebuilt(f, values, {}) if values else f


def _cells(f: Any) -> list[Any]:
    if isinstance(f, types.FunctionType):
        return [cell.cell_contents for cell in f.__closure__ or () if _filled(cell)]
    if isinstance(f, functools.partial):
        return [f.func, f.args, f.keywords]
    return []


def _filled(cell: Any) -> bool:
    try:
        cell.cell_contents  # noqa: B018 (an empty cell raises)
    except ValueError:
        return False
    return True


def _gather(x: Any, found: dict[int, Tensor[Any]], seen: set[int]) -> None:
    if id(x) in seen:
        return
    seen.add(id(x))
    if isinstance(x, Tensor):
        found[id(x)] = x
    elif isinstance(x, (types.FunctionType, functools.partial)):
        for content in _cells(x):
            _gather(content, found, seen)
    elif isinstance(x, (tuple, list)):
        for content in x:
            _gather(content, found, seen)
    elif isinstance(x, dict):
        for content in x.values():
            _gather(content, found, seen)


def _rebuilt(x: Any, values: dict[int, Any], made: dict[int, Any]) -> Any:
    """The same thing with other tensors in its closure; the thing itself where there are none."""
    if id(x) in values:
        return values[id(x)]
    if id(x) in made:
        return made[id(x)]
    if isinstance(x, types.FunctionType) and x.__closure__:
        cells = [types.CellType() for _ in x.__closure__]
        copy = types.FunctionType(x.__code__, x.__globals__, x.__name__, x.__defaults__, tuple(cells))
        copy.__kwdefaults__ = x.__kwdefaults__
        made[id(x)] = copy
        for cell, old in zip(cells, x.__closure__, strict=True):
            if _filled(old):
                cell.cell_contents = _rebuilt(old.cell_contents, values, made)
        if _same(_cells(copy), _cells(x)):
            made[id(x)] = x
        return made[id(x)]
    if isinstance(x, functools.partial):
        parts = [_rebuilt(part, values, made) for part in _cells(x)]
        return x if _same(parts, _cells(x)) else functools.partial(parts[0], *parts[1], **parts[2])
    if type(x) is tuple or type(x) is list:
        contents = [_rebuilt(content, values, made) for content in x]
        return x if _same(contents, x) else type(x)(contents)
    if type(x) is dict:
        entries = {key: _rebuilt(content, values, made) for key, content in x.items()}
        return x if _same(entries.values(), x.values()) else entries
    return x


def _same(new: Iterable[Any], old: Iterable[Any]) -> bool:
    return all(a is b for a, b in zip(new, old, strict=True))
