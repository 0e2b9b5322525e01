"""Closure conversion: what a function closes over as arguments."""

from __future__ import annotations

import copy as copies
import functools
import types
from collections.abc import Iterable
from typing import Any

from adjoint import errors
from adjoint.dtypes import INEXACT
from adjoint.functions.arguments import check_callable
from adjoint.tensor import Tensor
from adjoint.transforms.arguments import Function


def closure_convert(f: Function, *args: Any) -> tuple[Function, list[Tensor[Any]]]:
    """f as a function of what it closes over: derivatives with respect to those tensors can then be taken.

    Gives (converted, closed): `converted(*args, *closed)` is `f(*args)`, where `closed` are the floating tensors that
    f, the functions it calls from its closure, and the tuples, lists and dictionaries there hold. Globals are no part
    of a closure. `args` are examples of arguments; only functions with Python source are converted, and others close
    over nothing. Raises ArgumentTypeError for what is no function; `converted` raises ArgumentError for too few
    arguments.

    >>> import adjoint as ad
    >>> w = ad.tensor(3.0)
    >>> def make():
    ...     inner = w
    ...     return lambda x: x * inner
    >>> converted, closed = ad.closure_convert(make(), 2.0)
    >>> ad.grad(converted, 1)(2.0, *closed).item()
    2.0
    """
    check_callable("closure_convert", f)
    return opened(f, {key: x for key, x in closed_over(f).items() if x.dtype.kind in INEXACT})


def opened(f: Function, found: dict[int, Tensor[Any]]) -> tuple[Function, list[Tensor[Any]]]:
    """f as a function of those tensors, by id, of all that it closes over; and the tensors."""
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
    """The tensors that a function, those it calls from its closure, and the containers there hold, by id."""
    found: dict[int, Tensor[Any]] = {}
    _gather(f, found, set())
    return found


def substituted(f: Function, values: dict[int, Any]) -> Function:
    """The function with other tensors in the place of those it closes over, by id."""
    try:
        return _rebuilt(f, values, {}) if values else f
    except RecursionError:
        raise errors.ArgumentError("what the function closes over is nested too deep; pass it as an argument") from None


def _contents(x: Any) -> list[Any]:
    """What a function closes over, or a container holds; nothing for all else."""
    if isinstance(x, types.FunctionType):
        return [cell.cell_contents for cell in x.__closure__ or () if _filled(cell)]
    if isinstance(x, functools.partial):
        return [x.func, x.args, x.keywords]
    if isinstance(x, dict):
        return list(x.values())
    return list(x) if isinstance(x, list) or _is_tuple(x) else []


def _is_tuple(x: Any) -> bool:
    """A tuple that can be made from its contents."""
    return type(x) is tuple or (isinstance(x, tuple) and hasattr(x, "_make"))


def _filled(cell: Any) -> bool:
    try:
        cell.cell_contents  # noqa: B018 (an empty cell raises)
    except ValueError:
        return False
    return True


def _gather(x: Any, found: dict[int, Tensor[Any]], seen: set[int]) -> None:
    waiting = [x]  # and not recursion: lists may be nested deep
    while waiting:
        x = waiting.pop()
        if id(x) in seen:
            continue
        seen.add(id(x))
        if isinstance(x, Tensor):
            found[id(x)] = x
        else:
            waiting += reversed(_contents(x))


def _rebuilt(x: Any, values: dict[int, Any], made: dict[int, Any]) -> Any:
    """The same thing with other tensors in its closure; the thing itself where there are none."""
    if id(x) in values:
        return values[id(x)]
    if id(x) in made:
        return made[id(x)]
    if isinstance(x, types.FunctionType) and x.__closure__:
        cells = [types.CellType() for _ in x.__closure__]
        copy: Any = types.FunctionType(x.__code__, x.__globals__, x.__name__, x.__defaults__, tuple(cells))
        copy.__kwdefaults__ = x.__kwdefaults__
        made[id(x)] = copy
        for cell, old in zip(cells, x.__closure__, strict=True):
            if _filled(old):
                cell.cell_contents = _rebuilt(old.cell_contents, values, made)
    elif isinstance(x, (list, dict)):
        copy = made[id(x)] = copies.copy(x)
        for key in range(len(x)) if isinstance(x, list) else x:
            copy[key] = _rebuilt(x[key], values, made)
    elif isinstance(x, functools.partial) or _is_tuple(x):
        parts = [_rebuilt(part, values, made) for part in _contents(x)]
        if _same(parts, _contents(x)):
            return x
        if isinstance(x, functools.partial):
            return functools.partial(parts[0], *parts[1], **parts[2])
        kind: Any = type(x)
        return kind(parts) if kind is tuple else kind._make(parts)
    else:
        return x
    if _same(_contents(copy), _contents(x)):
        made[id(x)] = x
    return made[id(x)]


def _same(new: Iterable[Any], old: Iterable[Any]) -> bool:
    return all(a is b for a, b in zip(new, old, strict=True))
