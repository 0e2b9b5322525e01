"""`DataLoader`: batches of the records of a dataset; and how records become a batch."""

from __future__ import annotations

import collections
import contextlib
import copy
import itertools
import multiprocessing
import multiprocessing.context
import threading
import traceback
from collections.abc import Iterator, Mapping, MutableMapping, MutableSequence, Sequence
from typing import Any, NamedTuple

import numpy as np

from adjoint.torch import creation, generators
from adjoint.torch.operators import FUNCTIONS
from adjoint.torch.tensor import Tensor
from adjoint.torch.utils.data.datasets import IterableDataset
from adjoint.torch.utils.data.samplers import BatchSampler, RandomSampler, SequentialSampler


def default_convert(data: Any) -> Any:
    """The arrays in a record as tensors; all else stays."""
    if isinstance(data, np.ndarray) and data.dtype.kind in "biufc":
        return creation.from_numpy(data)
    if isinstance(data, np.generic) and data.dtype.kind in "biufc":
        return creation.tensor(data)
    return _rebuilt(data, default_convert)


def _rebuilt(data: Any, f: Any) -> Any:
    if isinstance(data, Mapping):
        return _mapping_like(data, lambda: {key: f(value) for key, value in data.items()})
    if isinstance(data, tuple) and hasattr(data, "_fields"):
        return type(data)(*[f(value) for value in data])
    if isinstance(data, tuple):
        return [f(value) for value in data]
    if isinstance(data, Sequence) and not isinstance(data, (str, bytes)):
        return _sequence_like(data, lambda: [f(value) for value in data])
    return data


def _mapping_like(first: Any, parts: Any) -> Any:
    """Parts in a mapping of the class of another one, or in a dictionary."""
    if type(first) is dict:
        return parts()
    with contextlib.suppress(TypeError):
        if not isinstance(first, MutableMapping):
            return type(first)(parts())
        clone = copy.copy(first)
        clone.update(parts())
        return clone
    return parts()


def _sequence_like(first: Any, parts: Any) -> Any:
    """Parts in a sequence of the class of another one, or in a list."""
    if type(first) is list:
        return parts()
    with contextlib.suppress(TypeError):
        if not isinstance(first, MutableSequence):
            return type(first)(parts())
        clone = copy.copy(first)
        for i, part in enumerate(parts()):
            clone[i] = part
        return clone
    return parts()


def default_collate(batch: Any) -> Any:
    """Records as one batch: tensors and numbers are stacked, lists, tuples and dictionaries go by parts.

    >>> import adjoint.torch as torch
    >>> torch.utils.data.default_collate([(1, 2.0), (3, 4.0)])
    [tensor([1, 3]), tensor([2., 4.], dtype=torch.float64)]
    """
    first = batch[0]
    if isinstance(first, Tensor):
        return FUNCTIONS["stack"](list(batch), 0)
    if isinstance(first, (np.ndarray, np.generic)) and not isinstance(first, (str, bytes)):
        if first.dtype.kind not in "biufc":
            raise _no_batch(first.dtype)
        arrays = [np.asarray(each) for each in batch]
        for i, array in enumerate(arrays):
            if array.shape != first.shape:
                raise RuntimeError(
                    f"stack expects each tensor to be equal size, but got {list(first.shape)} at entry 0 and "
                    f"{list(array.shape)} at entry {i}"
                )
        return creation.tensor(np.stack(arrays))
    if isinstance(first, float):
        return creation.tensor(list(batch), dtype=_float64())
    if isinstance(first, int):
        return creation.tensor(list(batch))
    if isinstance(first, (str, bytes)):
        return batch
    if isinstance(first, Mapping):
        return _mapping_like(first, lambda: {key: default_collate([each[key] for each in batch]) for key in first})
    if isinstance(first, Sequence):
        if any([len(each) != len(first) for each in batch]):
            raise RuntimeError("each element in list of batch should be of equal size")
        columns: Any = lambda: [default_collate(column) for column in zip(*batch, strict=True)]
        if isinstance(first, tuple):
            return type(first)(*columns()) if hasattr(first, "_fields") else columns()
        return _sequence_like(first, columns)
    raise _no_batch(type(first))


class _Lines(str):
    """The words of a KeyError, which shows its argument as it is written in Python."""

    __slots__ = ()
    __repr__ = str.__str__


@contextlib.contextmanager
def _told(worker: int) -> Iterator[None]:
    """Errors of a worker say so, and where they were raised, as PyTorch's; of a type that takes no text they are
    a RuntimeError."""
    try:
        yield
    except Exception as error:
        said = f"Caught {type(error).__name__} in DataLoader worker process {worker}.\nOriginal "
        said += traceback.format_exc()
        if isinstance(error, StopIteration):
            raise RuntimeError(said) from None
        try:
            made = type(error)(_Lines(said) if isinstance(error, KeyError) else said)
        except Exception:
            made = RuntimeError(said)
        raise made from None


def _no_batch(found: Any) -> TypeError:
    return TypeError(
        f"default_collate: batch must contain tensors, numpy arrays, numbers, dicts or lists; found {found}"
    )


def _float64() -> Any:
    from adjoint.torch.dtypes import DTYPES

    return DTYPES["float64"]


class WorkerInfo(NamedTuple):
    """What a worker is told of itself."""

    id: int
    num_workers: int
    seed: int
    dataset: Any


_worker = threading.local()
_FIXED = frozenset({"batch_sampler", "batch_size", "dataset", "drop_last", "persistent_workers", "sampler"})


def _check_context(context: Any, num_workers: int) -> None:
    """Raise for what is no way to start processes. None are started: workers are threads."""
    if context is None:
        return
    if num_workers == 0:
        raise ValueError(
            "multiprocessing_context can only be used with multi-process loading (num_workers > 0), but got "
            f"num_workers={num_workers}"
        )
    if isinstance(context, str):
        known = multiprocessing.get_all_start_methods()
        if context not in known:
            raise ValueError(
                f"multiprocessing_context option should specify a valid start method in {known}, but got "
                f"multiprocessing_context={context!r}"
            )
    elif not isinstance(context, multiprocessing.context.BaseContext):
        raise TypeError(
            "multiprocessing_context option should be a valid context object or a string specifying the start method, "
            f"but got multiprocessing_context={context}"
        )


def get_worker_info() -> Any:
    """Which worker this is, None in the program's own thread."""
    return getattr(_worker, "info", None)


_END = object()


@contextlib.contextmanager
def _as_worker(info: WorkerInfo) -> Iterator[None]:
    """A block that runs as a worker does."""
    outer, _worker.info = get_worker_info(), info
    try:
        yield
    finally:
        _worker.info = outer


class _Batches:
    """The batches of a loader, once through."""

    def __init__(self, loader: DataLoader, batches: Iterator[Any]) -> None:
        self._loader, self._batches = loader, batches

    def __iter__(self) -> _Batches:
        return self

    def __next__(self) -> Any:
        return next(self._batches)

    def __len__(self) -> int:
        return len(self._loader)


class DataLoader:
    """The batches of a dataset, once through in each loop.

    With `num_workers` threads of this process read ahead; records come in the same order. An iterable dataset is
    read by the loop itself, as so many copies of it in turn.

    >>> import adjoint.torch as torch
    >>> list(torch.utils.data.DataLoader(range(5), batch_size=2))
    [tensor([0, 1]), tensor([2, 3]), tensor([4])]
    """

    _ready: bool = False  # its settings stay as they are
    batch_sampler: Any
    batch_size: Any
    dataset: Any
    drop_last: bool
    generator: Any
    in_order: bool
    num_workers: int
    pin_memory: bool
    sampler: Any
    timeout: float
    worker_init_fn: Any

    def __init__(
        self, dataset: Any, batch_size: Any = 1, shuffle: Any = None, sampler: Any = None, batch_sampler: Any = None,
        num_workers: int = 0, collate_fn: Any = None, pin_memory: bool = False, drop_last: bool = False,
        timeout: float = 0, worker_init_fn: Any = None, multiprocessing_context: Any = None, generator: Any = None, *,
        prefetch_factor: Any = None, persistent_workers: bool = False, pin_memory_device: str = "",
        in_order: bool = True,
    ) -> None:  # fmt: skip
        if num_workers < 0:
            raise ValueError("num_workers option should be non-negative; use num_workers=0 to disable multiprocessing.")
        if timeout < 0:
            raise ValueError("timeout option should be non-negative")
        if prefetch_factor is not None and prefetch_factor < 0:
            raise ValueError("prefetch_factor option should be non-negative")
        _check_context(multiprocessing_context, num_workers)
        if num_workers == 0 and prefetch_factor is not None:
            raise ValueError(
                "prefetch_factor option could only be specified in multiprocessing.let num_workers > 0 to enable "
                "multiprocessing, otherwise set prefetch_factor to None."
            )
        if num_workers == 0 and persistent_workers:
            raise ValueError("persistent_workers option needs num_workers > 0")
        iterable = isinstance(dataset, IterableDataset)
        if iterable:
            for name, value in (("shuffle", shuffle or None), ("sampler", sampler), ("batch_sampler", batch_sampler)):
                if value is not None:
                    raise ValueError(
                        f"DataLoader with IterableDataset: expected unspecified {name} option, but got {name}={value}"
                    )
        if sampler is not None and shuffle:
            raise ValueError("sampler option is mutually exclusive with shuffle")
        if batch_sampler is not None:
            if batch_size != 1 or shuffle or sampler is not None or drop_last:
                raise ValueError(
                    "batch_sampler option is mutually exclusive with batch_size, shuffle, sampler, and drop_last"
                )
            batch_size, drop_last = None, False
        elif batch_size is None and drop_last:
            raise ValueError("batch_size=None option disables auto-batching and is mutually exclusive with drop_last")
        if sampler is None:
            if iterable:
                sampler = itertools.repeat(None)
            else:
                sampler = RandomSampler(dataset, generator=generator) if shuffle else SequentialSampler(dataset)
        if batch_size is not None and batch_sampler is None:
            batch_sampler = BatchSampler(sampler, batch_size, drop_last)
        batched = batch_sampler is not None
        self.dataset, self.batch_size, self.drop_last = dataset, batch_size, drop_last
        self.sampler, self.batch_sampler, self.generator = sampler, batch_sampler, generator
        self.collate_fn = collate_fn or (default_collate if batched else default_convert)
        self.num_workers, self.in_order = num_workers, in_order
        self.prefetch_factor = 2 if num_workers and prefetch_factor is None else prefetch_factor
        self.pin_memory, self.timeout, self.worker_init_fn = pin_memory, timeout, worker_init_fn
        self.persistent_workers, self.multiprocessing_context = persistent_workers, multiprocessing_context
        self._iterable: bool = iterable
        self._ready = True

    def __setattr__(self, name: str, value: Any) -> None:
        if self._ready and name in _FIXED:
            raise ValueError(f"{name} attribute should not be set after {type(self).__name__} is initialized")
        super().__setattr__(name, value)

    def __iter__(self) -> Any:
        return _Batches(self, self._all())

    def _all(self) -> Iterator[Any]:
        if self._iterable:
            return self._of_streams() if self.num_workers else self._of_stream(self.dataset)
        numbers = iter(self.sampler if self.batch_sampler is None else self.batch_sampler)
        return self._read_ahead(numbers) if self.num_workers else map(self._batch, numbers)

    def _batch(self, numbers: Any) -> Any:
        if self.batch_sampler is None:
            return self.collate_fn(self.dataset[numbers])
        if hasattr(self.dataset, "__getitems__"):
            return self.collate_fn(self.dataset.__getitems__(numbers))
        return self.collate_fn([self.dataset[i] for i in numbers])

    def _read(self, numbers: Any) -> Any:
        """A batch that a worker reads."""
        with _told(_worker.info.id):
            return self._batch(numbers)

    def _of_stream(self, dataset: Any) -> Iterator[Any]:
        records = iter(dataset)
        if self.batch_sampler is None:
            yield from map(self.collate_fn, records)
            return
        while batch := list(itertools.islice(records, self.batch_size)):
            if len(batch) == self.batch_size or not self.drop_last:
                yield self.collate_fn(batch)

    def _of_streams(self) -> Iterator[Any]:
        """The batches of workers in turn, each with a dataset of its own; `get_worker_info` says whose turn it is."""
        seed = self._seed()
        infos = [WorkerInfo(i, self.num_workers, seed + i, copy.copy(self.dataset)) for i in range(self.num_workers)]
        for info in infos:
            with _as_worker(info):
                if self.worker_init_fn is not None:
                    self.worker_init_fn(info.id)
        ahead = collections.deque([(info, self._of_stream(info.dataset)) for info in infos])
        while ahead:
            info, batches = ahead.popleft()
            with _as_worker(info), _told(info.id):
                batch = next(batches, _END)
            if batch is not _END:
                ahead.append((info, batches))
                yield batch

    def _seed(self) -> int:
        return int(generators.source(self.generator).integers(0, 1 << 62))

    def _read_ahead(self, numbers: Any) -> Any:
        """The batches, read by threads some ahead of the loop."""
        import concurrent.futures

        ids = itertools.count()
        seed = self._seed()

        def begin() -> None:
            worker = next(ids)
            _worker.info = WorkerInfo(worker, self.num_workers, seed + worker, self.dataset)
            if self.worker_init_fn is not None:
                self.worker_init_fn(worker)

        with concurrent.futures.ThreadPoolExecutor(self.num_workers, initializer=begin) as pool:
            ahead: Any = collections.deque()
            try:
                for each in itertools.islice(numbers, max(1, self.prefetch_factor or 0) * self.num_workers):
                    ahead.append(pool.submit(self._read, each))
                while ahead:
                    found = ahead.popleft().result()
                    for each in itertools.islice(numbers, 1):
                        ahead.append(pool.submit(self._read, each))
                    yield found
            finally:
                for waiting in ahead:
                    waiting.cancel()

    def __len__(self) -> int:
        if self._iterable:
            total: int = len(self.dataset)
            if self.batch_size is None:
                return total
            size: int = self.batch_size
            whole, rest = divmod(total, size)
            return whole + bool(rest and not self.drop_last)
        given: Any = self.sampler if self.batch_sampler is None else self.batch_sampler
        return len(given)
