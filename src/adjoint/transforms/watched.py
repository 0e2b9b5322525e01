"""Objects whose attributes are read otherwise for a while, in one thread.

The objects themselves are left as they are, since other threads may read them, and who reads may change them. Their
class is another one in the meantime, a subclass that asks what the reader's block says.
"""

from __future__ import annotations

import abc
import contextlib
import contextvars
import types
from collections.abc import Iterator, Sequence
from typing import Any, Protocol

from adjoint import locks
from adjoint import tree as trees
from adjoint.backend import Backend
from adjoint.scopes import Block, Variable, innermost
from adjoint.tensor import Tensor


class Reads(Protocol):
    """What a block says of attributes."""

    def read(self, name: str, value: Any) -> Any:
        """What is read in the place of an attribute's value."""
        ...


_reads: Variable[Reads] = contextvars.ContextVar("adjoint_reads", default=None)

_OURS = __name__.partition(".")[0] + "."
_PYTHONS = ("builtins", "typing")  # whose classes keep no account of subclasses
_HEAP, _IMMUTABLE = 1 << 9, 1 << 8  # flags of types: made by a class statement; whose objects keep their class


def can_be_watched(x: Any) -> bool:
    """Whether reads of the object's attributes can be answered: of modules, and of classes written in Python."""
    cls = type(x)
    if cls is types.ModuleType:
        return True
    flags = cls.__flags__
    return (
        type(cls) in (type, abc.ABCMeta)
        and bool(flags & _HEAP)
        and not flags & _IMMUTABLE
        and not cls.__module__.startswith(_OURS)
        and not isinstance(x, (Tensor, Backend, trees.Branch))
        and (trees.opened(x) is None or hasattr(cls, "__dataclass_fields__"))
        and not any(["__init_subclass__" in vars(each) for each in cls.__mro__ if each.__module__ not in _PYTHONS])
    )


def _watched(cls: Any) -> type:
    def __getattribute__(self: Any, name: str) -> Any:
        if name == "__class__":
            return cls
        value = cls.__getattribute__(self, name)
        block = innermost(_reads)
        return value if block is None or name.startswith("__") else block.value.read(name, value)

    held = {"__slots__": (), "__module__": cls.__module__, "__getattribute__": __getattribute__, "_adjoint_of": cls}
    made: type = type(cls)(cls.__name__, (cls,), held)
    return made


_lock = locks.lock()
_counts: dict[int, int] = {}  # how many blocks watch each object, by its id


@contextlib.contextmanager
def watched(objects: Sequence[Any], reads: Reads) -> Iterator[None]:
    """In this block of this thread, attributes of the objects are what `reads` says."""
    entered: list[Any] = []
    try:
        for x in objects:
            with _lock:
                if id(x) not in _counts:
                    object.__setattr__(x, "__class__", _watched(type(x)))
                _counts[id(x)] = _counts.get(id(x), 0) + 1
                entered.append(x)
        with Block(_reads, reads):
            yield
    finally:
        for x in entered:
            with _lock:
                _counts[id(x)] -= 1
                if not _counts[id(x)]:
                    del _counts[id(x)]
                    object.__setattr__(x, "__class__", type(x)._adjoint_of)
