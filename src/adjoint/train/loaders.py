"""Any iterable of batches, with a position that is kept in checkpoints."""

from __future__ import annotations

import inspect
import itertools
from collections.abc import Iterator
from typing import Any

from adjoint import errors
from adjoint.backend import Backend
from adjoint.data.loader import DataLoader
from adjoint.functions.arguments import called
from adjoint.train.parts import on_device


class Loader:
    """The batches of an iterable, or of a function that gives one for an epoch, from a position on.

    A loader with `record()` and `load_record(record)` keeps its position itself. Of another one the batches before
    the position are drawn and dropped. With `unread`, batches of a `DataLoader` are read where they are needed.
    """

    def __init__(self, source: Any, name: str, unread: bool = False) -> None:
        if not hasattr(source, "__iter__") and not callable(source):
            raise errors.ArgumentTypeError(
                f"{name}: batches come from an iterable, or a function that gives one; received {errors.shown(source)}"
            )
        self.source: Any = source
        self.name = name
        self.unread: bool = unread and isinstance(source, DataLoader)
        self.keeps_position: bool = hasattr(source, "record") and hasattr(source, "load_record")

    def __len__(self) -> int:
        """How many batches an epoch has. Raises TypeError where that is not known."""
        return len(self.source)

    def record(self) -> Any:
        """Its position, of a loader that keeps it; None of another."""
        return self.source.record() if self.keeps_position else None

    def load_record(self, record: Any) -> None:
        """Go to a position."""
        if self.keeps_position and record is not None:
            self.source.load_record(record)

    def batches(self, epoch: int, done: int, place: Backend) -> Iterator[tuple[Any, bool, Any]]:
        """The batches of an epoch after the first `done`: each with whether it is the last, and the position after it.

        Raises ArgumentError where there is none.
        """
        if self.unread:
            batches = self.source.unread()
        else:
            batches = iter(self.source if hasattr(self.source, "__iter__") else _called(self.source, epoch, self.name))
        if not self.keeps_position:
            batches = itertools.islice(batches, done, None)
        end = object()
        batch, position = next(batches, end), self.record()
        if batch is end and not done:
            hint = "; an iterator gives its batches once, so pass the function that makes it" if epoch else ""
            raise errors.ArgumentError(f"{self.name}: there is no batch in epoch {epoch + 1}{hint}")
        while batch is not end:
            held = on_device(batch, place, copy=True)  # before the next is drawn, maybe into the same arrays
            batch, after = next(batches, end), self.record()
            yield held, batch is end, after if batch is end else position
            position = after


def batches_of(data: Any) -> Any:
    """Batches, also of what is one: a tuple (input, target) or (input, target, weight) of arrays."""
    pair = isinstance(data, tuple) and len(data) in (2, 3) and all([hasattr(part, "shape") for part in data])
    return [data] if pair else data


def one_batch(data: Any) -> Any:
    """The same, and an array is one batch too."""
    return [data] if hasattr(data, "shape") else batches_of(data)


def _called(f: Any, epoch: int, name: str) -> Any:
    """What a function gives, which may take the number of the epoch, from 0."""
    try:
        parameters = list(inspect.signature(f).parameters.values())
    except ValueError:  # a class of C that does not say
        parameters = []
    takes_one = any(
        p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD, p.VAR_POSITIONAL) and p.default is p.empty
        for p in parameters
    )
    found = called(f"{name}: batches", "f() or f(epoch)", f, *[epoch] * takes_one)
    if not hasattr(found, "__iter__"):
        raise errors.ArgumentTypeError(
            f"{name}: a function of batches gives an iterable, and this one gave {errors.shown(found)}"
        )
    return found
