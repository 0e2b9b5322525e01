"""The batches of a source as a function of epoch and number: what a loader reads, in whatever process."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np

from adjoint.data.collate import collate
from adjoint.data.numbers import generator, shuffled
from adjoint.data.sources import Source

Change: TypeAlias = "Callable[[Any, np.random.Generator], Any]"  # in quotes, because NumPy loads `random` when asked


class Batches:
    """What `read(epoch, number)` gives depends on the arguments alone, and the settings."""

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
        self._epoch: int | None = None
        self._order: np.ndarray[Any, Any] | None = None

    def read(self, epoch: int, number: int, records: Sequence[Any] | None = None) -> Any:
        """A batch; of a source that is iterated the records are given."""
        start = number * self.batch_size
        if records is None:
            indices = self._indices(epoch, start)
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
            batch = self.batch_transform(batch, generator(self.seed, "batch", epoch, number))
        return batch

    def _changed(self, record: Any, epoch: int, number: int) -> Any:
        assert self.transform is not None
        try:
            return self.transform(record, generator(self.seed, "record", epoch, number))
        except Exception as error:
            error.add_note(f"DataLoader: while transform changed record {number} of the source")
            raise

    def _indices(self, epoch: int, start: int) -> np.ndarray[Any, Any]:
        assert self.source is not None
        total = len(self.source)
        if not self.shuffle:
            return np.arange(start, min(start + self.batch_size, total))
        if self._order is None or self._epoch != epoch:
            order = shuffled(total, self.seed, epoch)
            blocks = self.source.blocks()
            if blocks is not None:  # the blocks in a random order, and the records of each
                place = shuffled(int(blocks.max()) + 1, self.seed, epoch)
                order = order[np.argsort(place[blocks[order]], kind="stable")]
            self._epoch, self._order = epoch, order
        return self._order[start : start + self.batch_size]

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "_epoch": None, "_order": None}
