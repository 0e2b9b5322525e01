"""When training ends early: no more progress, or Ctrl-C."""

from __future__ import annotations

import contextlib
import threading
import weakref
from collections.abc import Callable, Mapping
from typing import Any, Self

from adjoint import errors
from adjoint.functions.arguments import as_choice, as_integer, as_positive
from adjoint.train.checkpoints import is_better
from adjoint.train.run import Callback, Run


class EarlyStopping(Callback):
    """Stops when a column of the history was not better for `patience` epochs, by more than `least`.

    Raises ArgumentError for another mode than "min" or "max", a patience below 1, a column that there is not.

    >>> import adjoint as ad
    >>> pairs = [(ad.ones((4, 2)), ad.ones((4, 1)))]
    >>> stopping = ad.train.EarlyStopping("loss", patience=2, least=0.1)
    >>> learner = ad.train.Learner(
    ...     ad.nn.Linear(2, 1), ad.nn.mse_loss, ad.optim.SGD(lr=0.1), callbacks=[stopping]
    ... )
    >>> model, history = learner.fit(pairs, epochs=1000)
    >>> len(history) < 100, learner.run.reason
    (True, 'stopped: loss was not better for 2 epochs')
    """

    waited: int

    def __init__(self, column: str = "valid_loss", patience: int = 5, mode: str = "min", least: float = 0.0) -> None:
        if not isinstance(column, str):
            raise errors.ArgumentTypeError(
                f"EarlyStopping: column is one of the history, as 'valid_loss', received {errors.shown(column)}"
            )
        self.column = column
        self.patience: int = as_integer(patience, "EarlyStopping", "patience", 1)
        self.mode: Any = as_choice(mode, "EarlyStopping", "mode", ["min", "max"])
        self.least: Any = as_positive(least, "EarlyStopping", "least", zero=True)
        self.best: float | None = None
        self.waited = 0

    def start(self, run: Run) -> None:
        self._stop_if_done(run)

    def epoch(self, run: Run) -> None:
        row = run.history.rows[-1]
        value = row.get(self.column)
        if value is None:
            raise errors.ArgumentError(
                f"EarlyStopping: the last epoch has no {self.column}; there are {errors.shown(', '.join(row))}, and "
                "with valid= of fit those of a validation"
            )
        limit = None if self.best is None else self.best + (-self.least if self.mode == "min" else self.least)
        if is_better(value, limit, self.mode):
            self.best, self.waited = value, 0
        else:
            self.waited += 1
        self._stop_if_done(run)

    def _stop_if_done(self, run: Run) -> None:
        if self.waited >= self.patience:
            run.stop(f"{self.column} was not better for {self.patience} epochs")

    def record(self) -> dict[str, Any]:
        return {"best": self.best, "waited": self.waited}

    def load_record(self, record: Mapping[str, Any]) -> None:
        self.best, self.waited = record["best"], record["waited"]


class Interrupts:
    """In this block the first Ctrl-C only asks to stop, and the next one interrupts. Of the main thread alone.

    What the program itself does at Ctrl-C, as asyncio or a server, it does when the block ends; at the second it is
    told of both.

    >>> import signal
    >>> with Interrupts() as interrupts:
    ...     signal.raise_signal(signal.SIGINT)
    ...     interrupts.asked
    True
    """

    _handler: Any = None

    def __init__(self) -> None:
        self.asked = self._waits = False  # whether Ctrl-C was pressed, and whether nobody was told of it
        self._before: Any = None

    def __del__(self) -> None:  # an error may have come before the block began, or before its end was through
        self._restore()

    @property
    def is_shared(self) -> bool:
        """Whether the program has a handler of its own, which is told when the block ends."""
        import signal

        return self._before not in (None, signal.default_int_handler)

    def __enter__(self) -> Self:
        import signal

        if threading.current_thread() is threading.main_thread():
            before = signal.getsignal(signal.SIGINT)
            if callable(before):  # else it is ignored, as by a process in the background, or ends the process
                self._before, self._handler = before, _asking(weakref.ref(self), before)
                signal.signal(signal.SIGINT, self._handler)
        return self

    def __exit__(self, *_: object) -> None:
        self._restore()
        if self.is_shared:
            self._tell()

    def _restore(self) -> None:
        import signal

        if self._handler is not None and signal.getsignal(signal.SIGINT) is self._handler:
            with contextlib.suppress(ValueError):  # dropped in another thread, where no handler can be set
                signal.signal(signal.SIGINT, self._before)

    def _ask(self, number: int, frame: Any) -> None:
        if not self.asked:
            self.asked = self._waits = True
            return
        self._tell()  # who counts them is to come to two
        self._before(number, frame)

    def _tell(self) -> None:
        import signal

        waits, self._waits = self._waits, False
        if waits:
            self._before(signal.SIGINT, None)


def _asking(block: weakref.ref[Interrupts], before: Callable[[int, Any], Any]) -> Callable[[int, Any], None]:
    """A handler that does not keep the block alive. A later block may have set it again when its own was dropped."""

    def handler(number: int, frame: Any) -> None:
        if (asked := block()) is not None:
            asked._ask(number, frame)
        else:
            before(number, frame)

    return handler
