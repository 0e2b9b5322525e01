"""Samplers: in which order, and how often, the records of a dataset are read."""

from __future__ import annotations

import itertools
import math
from typing import Any, Generic, TypeVar

import numpy as np

from adjoint.torch import creation, generators
from adjoint.torch.operators import FUNCTIONS
from adjoint.torch.tensor import Tensor, looked

T_co = TypeVar("T_co", covariant=True)


class Sampler(Generic[T_co]):
    """Numbers of records: subclasses say `__iter__`, and mostly `__len__`."""

    def __init__(self, data_source: Any = None) -> None:
        pass

    def __iter__(self) -> Any:
        raise NotImplementedError


class SequentialSampler(Sampler[int]):
    """All records in order."""

    def __init__(self, data_source: Any) -> None:
        self.data_source = data_source

    def __iter__(self) -> Any:
        return iter(range(len(self.data_source)))

    def __len__(self) -> int:
        return len(self.data_source)


def _positive(name: str, value: Any) -> None:
    if not isinstance(value, int) or isinstance(value, bool) or value <= 0:
        raise ValueError(f"{name} should be a positive integer value, but got {name}={value}")


class RandomSampler(Sampler[int]):
    """All records in a random order, or draws with replacement."""

    data_source: Any
    replacement: bool

    def __init__(
        self, data_source: Any, replacement: bool = False, num_samples: Any = None, generator: Any = None
    ) -> None:
        if not isinstance(replacement, bool):
            raise TypeError(f"replacement should be a boolean value, but got replacement={replacement}")
        self.data_source, self.replacement, self._num_samples = data_source, replacement, num_samples
        self.generator = generator
        _positive("num_samples", self.num_samples)

    @property
    def num_samples(self) -> int:
        return len(self.data_source) if self._num_samples is None else self._num_samples

    def __iter__(self) -> Any:
        total = len(self.data_source)
        if self.replacement:
            drawn = creation.randint(0, total, (self.num_samples,), generator=self.generator)
            return iter(drawn.tolist())
        rounds = itertools.count()
        orders = (creation.randperm(total, generator=self.generator).tolist() for _ in rounds)
        return itertools.islice(itertools.chain.from_iterable(orders), self.num_samples)

    def __len__(self) -> int:
        return self.num_samples


class SubsetRandomSampler(Sampler[int]):
    """Some records in a random order."""

    generator: Any
    indices: Any

    def __init__(self, indices: Any, generator: Any = None) -> None:
        self.indices, self.generator = indices, generator

    def __iter__(self) -> Any:
        for i in creation.randperm(len(self.indices), generator=self.generator).tolist():
            yield self.indices[i]

    def __len__(self) -> int:
        return len(self.indices)


class WeightedRandomSampler(Sampler[int]):
    """Draws with chances in proportion to weights."""

    generator: Any
    num_samples: int
    replacement: bool

    def __init__(self, weights: Any, num_samples: int, replacement: bool = True, generator: Any = None) -> None:
        _positive("num_samples", num_samples)
        if not isinstance(replacement, bool):
            raise ValueError(f"replacement should be a boolean value, but got replacement={replacement}")
        given = np.asarray(looked(weights) if isinstance(weights, Tensor) else weights, np.float64)
        if given.ndim != 1:
            raise ValueError(f"weights should be a 1d sequence but given weights have shape {given.shape}")
        self.weights: Any = creation.tensor(given)
        self.num_samples, self.replacement, self.generator = num_samples, replacement, generator

    def __iter__(self) -> Any:
        drawn = creation.multinomial(self.weights, self.num_samples, self.replacement, generator=self.generator)
        return iter(drawn.tolist())

    def __len__(self) -> int:
        return self.num_samples


class BatchSampler(Sampler[list[int]]):
    """The numbers of another sampler, so many at a time.

    >>> import adjoint.torch as torch
    >>> list(torch.utils.data.BatchSampler(range(5), batch_size=2, drop_last=False))
    [[0, 1], [2, 3], [4]]
    """

    batch_size: int
    drop_last: bool
    sampler: Any

    def __init__(self, sampler: Any, batch_size: int, drop_last: bool) -> None:
        _positive("batch_size", batch_size)
        if not isinstance(drop_last, bool):
            raise ValueError(f"drop_last should be a boolean value, but got drop_last={drop_last}")
        self.sampler, self.batch_size, self.drop_last = sampler, batch_size, drop_last

    def __iter__(self) -> Any:
        given = iter(self.sampler)
        while batch := list(itertools.islice(given, self.batch_size)):
            if len(batch) == self.batch_size or not self.drop_last:
                yield batch

    def __len__(self) -> int:
        count = len(self.sampler) / self.batch_size
        return math.floor(count) if self.drop_last else math.ceil(count)


class DistributedSampler(Sampler[int]):
    """A part of all records, for one of several processes that are given by number: `num_replicas` and `rank`.

    >>> from adjoint.torch.utils.data import DistributedSampler
    >>> list(DistributedSampler(range(5), num_replicas=2, rank=1, shuffle=False))
    [1, 3, 0]
    """

    def __init__(
        self, dataset: Any, num_replicas: int | None = None, rank: int | None = None, shuffle: bool = True,
        seed: int = 0, drop_last: bool = False,
    ) -> None:  # fmt: skip
        if num_replicas is None or rank is None:
            raise RuntimeError(
                "Requires distributed package to be available: adjoint.torch has none, so give num_replicas and rank"
            )
        if rank >= num_replicas or rank < 0:
            raise ValueError(f"Invalid rank {rank}, rank should be in the interval [0, {num_replicas - 1}]")
        self.dataset, self.num_replicas, self.rank, self.epoch = dataset, num_replicas, rank, 0
        self.drop_last, self.shuffle, self.seed = drop_last, shuffle, seed
        count = len(dataset)
        self.num_samples: int = count // num_replicas if drop_last else math.ceil(count / num_replicas)
        self.total_size: int = self.num_samples * num_replicas

    def __iter__(self) -> Any:
        count = len(self.dataset)
        order = list(range(count))
        if self.shuffle:
            generator = generators.Generator().manual_seed(self.seed + self.epoch)
            order = FUNCTIONS["randperm"](count, generator=generator).tolist()
        around = itertools.islice(itertools.cycle(order), self.total_size) if count else iter(())
        return itertools.islice(around, self.rank, None, self.num_replicas)

    def __len__(self) -> int:
        return self.num_samples

    def set_epoch(self, epoch: int) -> None:
        """Which pass over the data this is: each has an order of its own."""
        self.epoch = epoch
