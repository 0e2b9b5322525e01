"""`DataLoader`: batches of a source, in an order that a seed says, read ahead by processes."""

from __future__ import annotations

import itertools
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from adjoint import errors
from adjoint.data.batches import Batches, Change, Unread
from adjoint.data.sources import as_seed, as_source
from adjoint.functions.arguments import as_choice, as_flag, as_integer, check_callable

if TYPE_CHECKING:
    from adjoint.data.workers import Pool

AHEAD = 100  # the most batches that one worker is asked for in advance: their numbers fit into a pipe, so no one waits
Task = tuple[int, int, list[Any] | None]  # epoch, number, and the records of a source that is iterated


class DataLoader:
    """Batches of the records of a source; iterating gives those of one epoch.

    The batches are a function of the seed, the epoch and their number: the same with any number of workers, and after
    `load_record`. A batch has the structure of a record: tuples and dictionaries of NumPy arrays with one more axis in
    front.

    Parameters
    ----------
    source
        A tree of arrays (of NumPy, tensors, lists, a table of pandas or pyarrow), whose first axes are the records: the
        batches are read from these at once. Or a `Source`; or anything with `__len__` and `__getitem__`, as a list of
        records; or an iterable of records, which has neither length nor shuffling, and is iterated anew for each epoch.
    batch_size
        How many records a batch has. The last has what is left, unless `drop_last`.
    shuffle, seed
        Whether each epoch has the records in an order of its own, and the seed of orders and transforms.
    workers
        How many processes read. With 0 a batch is read when it is asked for. Those of a source with a length read
        whole batches; iterables are read here, and workers transform what was read.
    prefetch
        How many batches a worker is ahead, at most 100. Iterables are one batch ahead per worker.
    transform
        A function of a record and its own `numpy.random.Generator`, which gives another record. What it draws depends
        on seed, epoch and record only.
    batch_transform
        The same for batches: the last thing that is done.
    start
        How processes start: "fork", "spawn", "forkserver", or None for Python's default. "fork" shares the source's
        memory; the others send it to each worker (memory-mapped arrays as the names of their files) and are safe beside
        threads of JAX or CUDA.

    Raises
    ------
    ArgumentError, ArgumentTypeError, ShapeError
        An empty source, first axes of different sizes, numbers that make no sense; what cannot be sent to a worker.
    WorkerError
        A worker that ended, or whose exception could not be sent; other exceptions of workers are raised as they are,
        with the worker's traceback as their cause.

    Examples
    --------
    >>> import adjoint as ad, numpy as np
    >>> x, y = np.arange(10.0).reshape(5, 2), np.arange(5)
    >>> loader = ad.data.DataLoader((x, y), 2, shuffle=True, seed=3)
    >>> [labels.tolist() for features, labels in loader]
    [[3, 1], [4, 2], [0]]
    >>> len(loader), loader.record()["epoch"]
    (3, 1)
    """

    def __init__(
        self,
        source: Any,
        batch_size: int,
        *,
        shuffle: bool = False,
        seed: int = 0,
        workers: int = 0,
        prefetch: int = 2,
        drop_last: bool = False,
        transform: Change | None = None,
        batch_transform: Change | None = None,
        start: str | None = None,
    ) -> None:
        name = "DataLoader"
        size = as_integer(batch_size, name, "batch_size", 1)
        shuffle = as_flag(shuffle, name, "shuffle")
        self._drop_last = as_flag(drop_last, name, "drop_last")
        self._workers = as_integer(workers, name, "workers", 0)
        self._prefetch = as_integer(prefetch, name, "prefetch", 1)
        if self._prefetch > AHEAD:
            raise errors.ArgumentError(f"{name}: prefetch is at most {AHEAD}, received {errors.shown(prefetch)}")
        self._start = as_choice(start, name, "start", ("fork", "spawn", "forkserver", None))
        for what, change in (("transform", transform), ("batch_transform", batch_transform)):
            if change is not None:
                check_callable(name, change, what)
        found = as_source(source, name)
        self._records: Iterable[Any] = source if found is None else ()
        self._batches = Batches(found, size, shuffle, as_seed(seed, name), transform, batch_transform)
        self._length = None if found is None else len(found)
        if self._length is None and shuffle:
            raise errors.ArgumentError(
                f"{name}: a source that can only be iterated, as {type(source).__name__}, has no other order; give it "
                "__len__ and __getitem__, or shuffle what it reads"
            )
        if self._length == 0:
            raise errors.ArgumentError(f"{name}: the source is empty")
        if self._count() == 0:
            raise errors.ArgumentError(
                f"{name}: with drop_last there is no batch: batch_size is {size}, the source has {self._length} "
                "records; take a smaller batch_size, or leave drop_last out"
            )
        self._epoch = self._given = 0
        self._loaded = False
        self._idle: Pool | None = None

    def _count(self) -> int | None:
        """The number of batches of an epoch; None where nobody knows it."""
        if self._length is None:
            return None
        more = 0 if self._drop_last else self._batches.batch_size - 1
        return (self._length + more) // self._batches.batch_size

    def __len__(self) -> int:
        """The number of batches of an epoch. Raises ArgumentTypeError for a source that has no length."""
        count = self._count()
        if count is None:
            raise errors.ArgumentTypeError(
                "DataLoader: a source that can only be iterated has no length; one with __len__ and __getitem__ has"
            )
        return count

    def __repr__(self) -> str:
        records = "an iterable" if self._length is None else f"{self._length} records"
        place = f"epoch {self._epoch}, batch {self._given}"
        return f"DataLoader of {records} in batches of {self._batches.batch_size}, at {place}"

    def record(self) -> dict[str, Any]:
        """The position: the epoch and how many of its batches were handed out, with the settings it is valid for.

        What workers have read ahead is not in it. At the end of an epoch's last batch the epoch is not over yet: it is
        when the loop is, or with the next loop.
        """
        batches = self._batches
        return {
            "epoch": self._epoch,
            "batch": self._given,
            "batch_size": batches.batch_size,
            "seed": batches.seed,
            "shuffle": batches.shuffle,
            "drop_last": self._drop_last,
            "length": self._length,
        }

    def load_record(self, record: Mapping[str, Any]) -> None:
        """Go to a position: the next loop has the batches that would have come. An iterable is read up to there.

        Raises ArgumentError for a record of other settings, with which other batches would come.

        >>> import adjoint as ad, numpy as np
        >>> loader = ad.data.DataLoader(np.arange(6), 2, shuffle=True)
        >>> first = next(iter(loader))
        >>> other = ad.data.DataLoader(np.arange(6), 2, shuffle=True, workers=2)
        >>> other.load_record(loader.record())
        >>> [b.tolist() for b in loader] == [b.tolist() for b in other]
        True
        """
        own = self.record()
        if not isinstance(record, Mapping) or own.keys() - record.keys():
            raise errors.ArgumentTypeError(
                f"load_record: expected what record() of a DataLoader gives, received {errors.shown(record)}"
            )
        for what in own.keys() - {"epoch", "batch"}:
            if record[what] != own[what]:
                raise errors.ArgumentError(
                    f"load_record: the record is of a DataLoader with {what}={errors.shown(record[what])}, and this "
                    f"one has {own[what]}; make it with the same settings, or begin a new epoch without the record"
                )
        epoch = as_integer(record["epoch"], "load_record", "epoch", 0)
        given = as_integer(record["batch"], "load_record", "batch", 0)
        if (count := self._count()) is not None and given > count:
            raise errors.ArgumentError(f"load_record: an epoch has {count} batches, and the record is at {given}")
        self._epoch, self._given, self._loaded = epoch, given, True

    def __iter__(self) -> Iterator[Any]:
        """The batches from the position to the end of the epoch."""
        return self._begun(unread=False)

    def unread(self) -> Iterator[Any]:
        """The same, for who divides batches among machines, which read their rows themselves.

        Where `workers` read, or there is a `batch_transform`, or a source without a length, they come as they are.

        >>> import adjoint as ad, numpy as np
        >>> batch = next(ad.data.DataLoader(np.arange(10), 4).unread())
        >>> batch.part(1, 3).read()
        array([1, 2])
        """
        batches = self._batches
        return self._begun(unread=batches.source is not None and batches.batch_transform is None and not self._workers)

    def _begun(self, unread: bool) -> Iterator[Any]:
        if self._given == self._count() and not self._loaded:  # a loop that was left at the last batch
            self._epoch, self._given = self._epoch + 1, 0
        loaded, self._loaded = self._loaded, False
        return self._run(self._epoch, self._given, loaded, unread)

    def _run(self, epoch: int, first: int, loaded: bool, unread: bool) -> Iterator[Any]:
        count = self._count()
        if count is not None:
            tasks: Iterator[Task] = ((epoch, number, None) for number in range(first, count))
        else:
            tasks = self._read(epoch, first, loaded)
        pool = self._pool() if self._workers and first != count else None
        answers = _answers(pool, tasks, self._prefetch) if pool else self._here(tasks, unread)
        drained = False
        try:
            for number, batch in answers:
                self._epoch, self._given = epoch, number + 1
                drained = number + 1 == count
                yield batch
            drained = True
            self._epoch, self._given = epoch + 1, 0
        finally:
            if pool is not None:
                if drained and self._idle is None:
                    self._idle = pool
                else:
                    pool.stop()

    def _here(self, tasks: Iterator[Task], unread: bool) -> Iterator[tuple[int, Any]]:
        """The batches of tasks, read in this process, or not yet."""
        for task in tasks:
            yield task[1], Unread.whole(self._batches, *task[:2]) if unread else self._batches.read(*task)

    def _read(self, epoch: int, first: int, loaded: bool) -> Iterator[Task]:
        """The tasks of an iterable; they have the records."""
        size = self._batches.batch_size
        records = iter(self._records)
        once = records is self._records  # an iterator, which goes on where it was left
        if epoch and once and not first and not loaded:
            raise errors.ArgumentError(
                f"DataLoader: the source, a {type(records).__name__}, is used up after one epoch; pass an object whose "
                "__iter__ begins anew"
            )
        if loaded or not once:
            next(itertools.islice(records, first * size, first * size), None)
        for number in itertools.count(first):
            batch = list(itertools.islice(records, size))
            if len(batch) < size and (not batch or self._drop_last):
                return
            yield epoch, number, batch

    def _pool(self) -> Pool:
        from adjoint.data.workers import Pool

        pool, self._idle = self._idle, None
        return pool if pool is not None and pool.is_ours() else Pool(self._batches, self._workers, self._start)

    def close(self) -> None:
        """End the workers that wait for the next epoch. They end as well when nobody holds the loader any more."""
        if self._idle is not None:
            self._idle.stop()
            self._idle = None

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "_idle": None}


def _answers(pool: Pool, tasks: Iterator[Task], prefetch: int) -> Iterator[tuple[int, Any]]:
    """The batches of tasks in order, whose workers take turns; as many are asked for in advance."""
    waiting: deque[int] = deque()
    failed: Exception | None = None
    ahead = pool.size * prefetch

    def ask() -> None:
        nonlocal tasks, failed, ahead
        while len(waiting) < ahead:
            try:
                task = next(tasks, None)
            except Exception as error:  # of the source: it comes after the batches before
                failed, task = error, None
            if task is None:
                tasks = iter(())
                return
            if task[2] is not None:  # records, which may fill a pipe: a worker gets them when it waits for them
                ahead = pool.size
            pool.ask(task[1] % pool.size, task)
            waiting.append(task[1])

    ask()
    while waiting:
        number = waiting.popleft()
        batch = pool.answer(number % pool.size)
        ask()
        yield number, batch
    if failed is not None:
        raise failed
