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
from typing import Any, ClassVar, Generic, TypeAlias, TypeVar

from adjoint import errors
from adjoint.lines import Line

T = TypeVar("T")


def nobody() -> None:
    """The holder of a block that does not count."""


class Block(Generic[T]):
    """`with Block(variable, value):` gives a context variable a value inside of the block; to be used once."""

    value: T
    variable: Variable[T]

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


# What is current in a block, None where the one around it says: the level of a transform; the backend that tensors are
# made on; the floating dtype that they are made in.
Here: TypeAlias = tuple[Any, Any, Any]
here: Variable[Here] = contextvars.ContextVar("adjoint_here", default=None)


def _anybody() -> bool:
    """The holder of a block that goes on in contexts that were copied inside of it."""
    return True


class Scope(Generic[T]):
    """A user's object for a `with` block, in which a context variable has a value; it can be entered again."""

    _variable: ClassVar[Variable[Any]]

    def __init__(self, given: T, value: Any) -> None:
        self._given, self._value = given, value

    def __enter__(self) -> T:
        block = Block(self._variable, self._value)
        block.outer, block.holder = innermost(self._variable), weakref.ref(self)
        try:
            self._variable.set(block)
            return self._given
        except BaseException:  # a signal's: nothing was entered
            block.holder = nobody
            raise

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        block = top = self._variable.get()
        while block is not None and block.holder() is not self:
            block = block.outer
        if block is None:  # entered in another context, or in none
            return
        if block is not top:  # in a generator that was left when others had entered blocks
            block.holder = nobody
            return
        self._variable.set(block.outer)
        block.holder = _anybody  # contexts that were copied in the block keep it


class Using(Scope[T]):
    """One whose call without `with` changes nothing: when its result is dropped, an error says so.

    Python prints it and goes on, because it can be known no earlier.
    """

    _setter: ClassVar[str]  # sets the same for the process ...
    _what: ClassVar[str]  # ... which is this
    _error: ClassVar[type[errors.AdjointError]]
    _line: Line | None = None  # where it was made, until it is entered

    def __init__(self, given: T, name: str, value: Any) -> None:
        super().__init__(given, value)
        self._name = name
        self._line = Line()

    def __enter__(self) -> T:
        self._line = None
        return super().__enter__()

    def __del__(self) -> None:
        if self._line is not None:
            raise self._error(
                f"{self} changed nothing, because no `with` entered it; ad.{self._setter}({self._name!r}) "
                f"sets the {self._what} of the process. It was made at {self._line}"
            )

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._name!r})"
