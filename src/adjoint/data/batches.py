"""The batches of a source as a function of epoch and number: what a loader reads, in whatever process."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np

from adjoint.data.collate import collate
from adjoint.data.numbers import generator, shuffled
from adjoint.data.sources import Source
from adjoint.functions.arguments import called

Change: TypeAlias = "Callable[[Any, np.random.Generator], Any]"  # in quotes, because NumPy loads `random` when asked


class Batches:
    """What `read(epoch, number)` gives depends on the arguments alone, and the settings."""

    batch_size: int
    batch_transform: Change | None
    seed: int
    shuffle: bool
    source: Source | None
    transform: Change | None

    def __init__(
        self,
        source: Source | None,
        batch_size: int,
        shuffle: bool,
        seed: int,
        transform: Change | None,
        batch_transform: Change | None,
    ) -> None:
        self.source, self.batch_size, self.shuffle, self.seed = source, batch_size, shuffle, seed
        self.transform, self.batch_transform = transform, batch_transform
        self._order: tuple[int, np.ndarray[Any, Any]] | None = None  # of an epoch; one object, for threads

    def read(
        self, epoch: int, number: int, records: Sequence[Any] | None = None, rows: slice = slice(None)
    ) -> Any:  # fmt: skip
        """A batch, or some of its rows; of a source that is iterated the records are given."""
        start = number * self.batch_size
        if records is None:
            indices = self._indices(epoch, start)[rows]
            numbers = indices.tolist()
            assert self.source is not None
            if self.transform is None:
                batch = self.source.take(indices)
            else:
                batch = collate([self._changed(self.source[n], epoch, n) for n in numbers], numbers)
        else:
            numbers = range(start, start + len(records))
            if self.transform is not None:
                records = [self._changed(record, epoch, n) for record, n in zip(records, numbers, strict=True)]
            batch = collate(records, numbers)
        if self.batch_transform is not None:
            rng = generator(self.seed, "batch", epoch, number)
            batch = called(
                "DataLoader: batch_transform", "batch_transform(batch, rng)", self.batch_transform, batch, rng
            )
        return batch

    def _changed(self, record: Any, epoch: int, number: int) -> Any:
        assert self.transform is not None
        rng = generator(self.seed, "record", epoch, number)
        try:
            return called("DataLoader: transform", "transform(record, rng)", self.transform, record, rng)
        except Exception as error:
            error.add_note(f"DataLoader: while transform changed record {number} of the source")
            raise

    def _indices(self, epoch: int, start: int) -> np.ndarray[Any, Any]:
        assert self.source is not None
        total = len(self.source)
        if not self.shuffle:
            return np.arange(start, min(start + self.batch_size, total))
        known = self._order
        if known is None or known[0] != epoch:
            order = shuffled(total, self.seed, epoch)
            blocks = self.source.blocks()
            if blocks is not None:  # the blocks in a random order, and the records of each
                place = shuffled(int(blocks.max()) + 1, self.seed, epoch)
                order = order[np.argsort(place[blocks[order]], kind="stable")]
            self._order = known = epoch, order
        return known[1][start : start + self.batch_size]

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "_order": None}


@dataclasses.dataclass(frozen=True)
class Unread:
    """Rows of a batch, which whoever wants them reads, in whatever process."""

    batches: Batches
    epoch: int
    number: int
    start: int
    stop: int

    @classmethod
    def whole(cls, batches: Batches, epoch: int, number: int) -> Unread:
        """All rows of a batch of a source that has a length."""
        assert batches.source is not None
        size = min(batches.batch_size, len(batches.source) - number * batches.batch_size)
        return cls(batches, epoch, number, 0, size)

    def part(self, start: int, stop: int) -> Unread:
        """Some of these rows."""
        return dataclasses.replace(self, start=self.start + start, stop=self.start + stop)

    def read(self) -> Any:
        """The rows."""
        return self.batches.read(self.epoch, self.number, rows=slice(self.start, self.stop))
