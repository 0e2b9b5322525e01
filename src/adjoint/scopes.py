"""Values that hold inside of a `with` block and end with it, wherever a signal comes.

The error of a signal, such as Ctrl-C's, is raised where a Python function begins or when a call returns: also where
`__exit__` begins, which then sets nothing back. So a block counts only while its `with` statement runs. That statement
alone refers to the method object it will call at the end, and the block looks whether there still is one.
"""

from __future__ import annotations

import contextvars
import weakref
from collections.abc import Callable
from types import TracebackType
from typing import Any, Generic, TypeAlias, TypeVar

T = TypeVar("T")


def nobody() -> None:
    """The holder of a block that does not count."""


class Block(Generic[T]):
    """`with Block(variable, value):` gives a context variable a value inside of the block; to be used once."""

    __slots__ = ("holder", "outer", "value", "variable")

    holder: Callable[[], Any]  # a weak reference: the block counts as long as it gives something
    outer: Block[T] | None

    def __init__(self, variable: Variable[T], value: T) -> None:
        self.variable = variable
        self.value = value

    @property
    def __exit__(self) -> Callable[[type[BaseException] | None, BaseException | None, TracebackType | None], None]:
        # `with` asks for this first, and keeps it until the end
        outer = self.variable.get()
        while outer is not None and outer.holder() is None:
            outer = outer.outer
        self.outer, self.holder = outer, nobody
        self.variable.set(self)
        leave = self._leave  # after this no error may come: tracebacks keep what functions have
        self.holder = weakref.ref(leave)
        return leave

    def __enter__(self) -> T:
        return self.value

    def _leave(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.variable.get() is self:  # not so in a generator that was left when others had entered blocks
            self.variable.set(self.outer)


Variable: TypeAlias = contextvars.ContextVar[Block[T] | None]


def innermost(variable: Variable[T]) -> Block[T] | None:
    """The innermost block that this context runs in."""
    block = variable.get()
    while block is not None and block.holder() is None:
        block = block.outer
    return block
