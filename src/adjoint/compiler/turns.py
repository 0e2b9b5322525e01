"""One thread at a time: what several want is made once."""

from __future__ import annotations

import contextvars
from types import TracebackType
from typing import Any

from adjoint import locks
from adjoint.scopes import Block, Variable

_one: Any = locks.lock()
_turn: Variable[None] = contextvars.ContextVar("adjoint_compile_turn", default=None)
_PATIENCE = 5.0  # seconds


class one_by_one(Block[None]):
    """A block of one thread at a time, so that what several want is made once.

    They do not wait for ever: a function that is recorded may itself wait for a thread that calls another one. Where an
    interrupt comes before the lock is given back, this thread's next block does that.
    """

    __slots__ = ()

    def __init__(self) -> None:
        super().__init__(_turn, None)

    def __enter__(self) -> None:
        if self.outer is None and not _one._is_owned():
            _one.acquire(timeout=_PATIENCE)

    def _leave(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.outer is None and _one._is_owned():
            _one.release()
        super()._leave(kind, error, trace)
