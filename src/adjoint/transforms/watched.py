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

    def read(self, x: Any, name: str, value: Any) -> Any:
        """What is read in the place of the value of an object's attribute."""
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
        return value if block is None or name.startswith("__") else block.value.read(self, name, value)

    def __new__(kind: type, *args: Any, **options: Any) -> Any:  # of type(self)(...): like any other object
        return cls(*args, **options)

    def __reduce_ex__(self: Any, protocol: Any) -> Any:  # for copies
        made = cls.__reduce_ex__(self, protocol)
        if isinstance(made, str):
            return made
        return (made[0], tuple([cls if x is type(self) else x for x in made[1]]), *made[2:])

    held = {f.__name__: f for f in (__getattribute__, __new__, __reduce_ex__)}
    made: type = type(cls)(
        cls.__name__,
        (cls,),
        {"__slots__": (), "__module__": cls.__module__, "__qualname__": cls.__qualname__, "_adjoint_of": cls, **held},
    )
    return made


_lock = locks.lock()
_watches: dict[int, tuple[Any, set[int]]] = {}  # of each object by its id: it, and the ids of those that watch it


class _Watch:
    """The objects of one block. What an interrupt leaves undone is done when the block's frame goes: no step does harm
    when it is done twice."""

    def __init__(self) -> None:
        self.objects: list[Any] = []

    def begin(self, x: Any) -> None:
        self.objects.append(x)
        with _lock:
            _watches.setdefault(id(x), (x, set()))[1].add(id(self))
            if "_adjoint_of" not in vars(type(x)):
                object.__setattr__(x, "__class__", _watched(type(x)))

    def end(self) -> None:
        while self.objects:
            x = self.objects[-1]
            with _lock:
                _, others = _watches.get(id(x), (x, set()))
                others.discard(id(self))
                if not others:
                    if "_adjoint_of" in vars(type(x)):
                        object.__setattr__(x, "__class__", type(x)._adjoint_of)
                    _watches.pop(id(x), None)
            self.objects.pop()

    __del__ = end


@contextlib.contextmanager
def watched(objects: Sequence[Any], reads: Reads) -> Iterator[None]:
    """In this block of this thread, attributes of the objects are what `reads` says."""
    watch = _Watch()
    try:
        for x in objects:
            watch.begin(x)
        with Block(_reads, reads):
            yield
    finally:
        watch.end()
