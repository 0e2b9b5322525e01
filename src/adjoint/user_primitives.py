"""Functions that run primitives of users, and how long these live.

Backends, rules and graphs find a primitive by its name, so the table of primitives refers to it, and backends keep
what they answered for it. It is to go with the function that `ad.primitive` gave all the same. So that function's end
takes it out of the table. Graphs that were made by it refer to the primitive itself, and keep it for their rules.
"""

from __future__ import annotations

import collections
import weakref
from collections.abc import Callable, Iterable, Iterator
from types import CodeType
from typing import Any

from adjoint import errors
from adjoint.backend import forget, is_making
from adjoint.functions.arguments import as_tensors
from adjoint.operands import available_dtype, cast, run
from adjoint.primitives import TABLE, Primitive

_gone: collections.deque[Primitive] = collections.deque()  # whose functions ended, and which the table still has
# The last declarations that nobody has called: rules of others may ask for one by its name alone.
_uncalled: dict[str, UserPrimitive] = {}
_MOST_UNCALLED = 100


class UserPrimitive:
    """A function of tensors that runs a primitive: what `ad.primitive` gives."""

    def __init__(self, primitive: Primitive, document: str | None) -> None:
        self.primitive = primitive
        self.__name__ = self.__qualname__ = primitive.name
        self.__doc__ = document

    def __call__(self, *operands: Any, **parameters: Any) -> Any:
        name, wanted = self.primitive.name, self.primitive.operands
        if TABLE.get(name) is not self.primitive:
            raise errors.ArgumentError(
                f"{name}: this function is of an earlier declaration of the name; call what the last ad.primitive gave"
            )
        if _uncalled:
            _uncalled.pop(name, None)
        enough = len(operands) >= len(wanted) - 1 if self.primitive.variadic else len(operands) == len(wanted)
        if not enough or not operands:
            raise errors.ArgumentTypeError(f"{name}: expected the operands {wanted}, received {len(operands)}")
        if set(parameters) != set(self.primitive.parameters):
            raise errors.ArgumentTypeError(
                f"{name}: expected the parameters {self.primitive.parameters}, received "
                f"{errors.shown(tuple(parameters))}"
            )
        tensors = as_tensors(list(operands), name)
        dtype = available_dtype(self.primitive.promoted(tensors[0].dtype), tensors)
        return run(name, [cast(x, dtype) for x in tensors], **parameters)

    def __repr__(self) -> str:
        return f"<function of the primitive {self.primitive.name}>"

    def __reduce__(self) -> tuple[Any, ...]:
        return _function_named, (self.primitive.name,)  # copies are one function: its end is that of the primitive

    def __del__(self) -> None:
        if _gone is None:  # the interpreter ends, and has taken this module apart
            return
        _gone.append(self.primitive)
        if not is_making():
            _let_go()


BUILT_IN = frozenset(TABLE)  # primitives of this package
DECLARED: weakref.WeakValueDictionary[str, UserPrimitive] = weakref.WeakValueDictionary()  # may be declared anew


def declare(primitive: Primitive, rules: Iterable[Any], document: str | None) -> UserPrimitive:
    """The function that runs a primitive, which the table has from now on. `rules` may ask for others by name."""
    _let_go()
    name = primitive.name
    function = UserPrimitive(primitive, document)
    asked = {x.removesuffix("_into") for x in _named(rules) if x.isidentifier()} - {name}
    primitive.helpers = {x: DECLARED.get(x) for x in asked if x not in TABLE or x in DECLARED}
    for other in list(DECLARED.values()):
        if name in other.primitive.helpers:
            other.primitive.helpers[name] = function
    TABLE[name], DECLARED[name], _uncalled[name] = primitive, function, function
    TABLE.leaving.pop(name, None)
    forget(name)
    if len(_uncalled) > _MOST_UNCALLED:
        _uncalled.pop(next(iter(_uncalled), ""), None)
    return function


def withdraw(name: str) -> None:
    """Take a declaration back: its function refuses calls from now on."""
    function = DECLARED.pop(name)
    _uncalled.pop(name, None)
    _gone.append(function.primitive)
    _let_go()


def _let_go() -> None:
    """Take primitives out of the table, and out of what backends keep, whose functions have ended."""
    while _gone:
        primitive = _gone.popleft()
        name = primitive.name
        if TABLE.get(name) is primitive:  # it was not declared anew
            TABLE.leaving[name] = TABLE.pop(name)
            forget(name)


def _function_named(name: str) -> UserPrimitive:
    function = DECLARED.get(name)
    if function is None:
        raise errors.ArgumentError(f"{name}: no primitive of this name is declared here; call ad.primitive first")
    return function


def _named(rules: Iterable[Callable[..., Any] | None]) -> Iterator[str]:
    """The names and strings in the code of functions: as attributes and keys of backends they are primitives."""
    parts = [getattr(rule, "__code__", None) for rule in rules]
    while parts:
        part = parts.pop()
        if isinstance(part, CodeType):
            yield from part.co_names
            parts += part.co_consts
        elif isinstance(part, str):
            yield part
