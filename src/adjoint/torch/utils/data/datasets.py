"""Datasets: what gives records by their number, or one after the other."""

from __future__ import annotations

import bisect
import itertools
import math
from typing import Any, Generic, TypeVar

from adjoint.torch import creation
from adjoint.torch.refusals import WrongKindError
from adjoint.torch.tensor import Tensor

T_co = TypeVar("T_co", covariant=True)


class Dataset(Generic[T_co]):
    """Records by their number: subclasses say `__getitem__`, and mostly `__len__`."""

    def __getitem__(self, index: Any) -> Any:
        raise NotImplementedError("Subclasses of Dataset should implement __getitem__.")

    def __add__(self, other: Any) -> ConcatDataset:
        return ConcatDataset([self, other])


class IterableDataset(Dataset[T_co]):
    """Records one after the other: subclasses say `__iter__`."""

    def __iter__(self) -> Any:
        raise NotImplementedError("Subclasses of IterableDataset should implement __iter__.")

    def __add__(self, other: Any) -> Any:
        return ChainDataset([self, other])


class TensorDataset(Dataset[Any]):
    """The rows of tensors.

    >>> import adjoint.torch as torch
    >>> data = torch.utils.data.TensorDataset(torch.tensor([1.0, 2.0]), torch.tensor([3, 4]))
    >>> len(data), data[1]
    (2, (tensor(2.), tensor(4)))
    """

    def __init__(self, *tensors: Any) -> None:
        for x in tensors:
            if not isinstance(x, Tensor):
                raise WrongKindError(f"TensorDataset takes Tensors, not {type(x).__name__}")
        if any([x.shape[0] != tensors[0].shape[0] for x in tensors]):
            raise AssertionError("Size mismatch between tensors")
        self.tensors = tensors

    def __getitem__(self, index: Any) -> Any:
        return tuple([x[index] for x in self.tensors])

    def __len__(self) -> int:
        return int(self.tensors[0].shape[0])


def _records(dataset: Any, indices: list[Any]) -> list[Any]:
    """The records at some numbers, at once where the dataset has a method for that."""
    several: Any = getattr(dataset, "__getitems__", None)
    found: Any = several(indices) if callable(several) else [dataset[i] for i in indices]
    return found  # type: ignore[no-any-return]


class StackDataset(Dataset[Any]):
    """Datasets beside each other, as tuples or as dictionaries."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        if bool(args) == bool(kwargs):
            raise ValueError(
                "Supported either ``tuple``- (via ``args``) or``dict``- (via ``kwargs``) like input/output, but both "
                "types are given."
                if args
                else "At least one dataset should be passed"
            )
        self.datasets: Any = args or kwargs
        parts = list(kwargs.values()) if kwargs else list(args)
        self._length = len(parts[0])
        if any([len(part) != self._length for part in parts]):
            raise ValueError("Size mismatch between datasets")

    def __getitem__(self, index: Any) -> Any:
        if isinstance(self.datasets, dict):
            return {name: part[index] for name, part in self.datasets.items()}
        return tuple([part[index] for part in self.datasets])

    def __getitems__(self, indices: list[int]) -> list[Any]:
        named = isinstance(self.datasets, dict)
        columns = [_records(part, indices) for part in (self.datasets.values() if named else self.datasets)]
        for column in columns:
            if len(column) != len(indices):
                raise ValueError(f"Nested dataset's output size mismatch. Expected {len(indices)}, got {len(column)}")
        rows = zip(*columns, strict=True)
        return [dict(zip(self.datasets, row, strict=True)) for row in rows] if named else list(rows)

    def __len__(self) -> int:
        return self._length


class ConcatDataset(Dataset[Any]):
    """Datasets one after the other."""

    def __init__(self, datasets: Any) -> None:
        self.datasets: list[Any] = list(datasets)
        if not self.datasets:
            raise AssertionError("datasets should not be an empty iterable")
        if any([isinstance(part, IterableDataset) for part in self.datasets]):
            raise AssertionError("ConcatDataset does not support IterableDataset")
        self.cumulative_sizes: list[int] = list(itertools.accumulate([len(part) for part in self.datasets]))

    def __len__(self) -> int:
        return self.cumulative_sizes[-1]

    def __getitem__(self, idx: Any) -> Any:
        if idx < 0:
            if -idx > len(self):
                raise ValueError("absolute value of index should not exceed dataset length")
            idx += len(self)
        place = bisect.bisect_right(self.cumulative_sizes, idx)
        if place == len(self.datasets):
            raise IndexError("list index out of range")
        return self.datasets[place][idx - (self.cumulative_sizes[place - 1] if place else 0)]


class ChainDataset(IterableDataset[Any]):
    """Iterable datasets one after the other."""

    def __init__(self, datasets: Any) -> None:
        self.datasets: list[Any] = list(datasets)

    def __iter__(self) -> Any:
        for part in self.datasets:
            if not isinstance(part, IterableDataset):
                raise AssertionError("ChainDataset only supports IterableDataset")
            yield from part

    def __len__(self) -> int:
        return sum([len(part) for part in self.datasets])


class Subset(Dataset[Any]):
    """The records of a dataset at some numbers."""

    dataset: Any
    indices: Any

    def __init__(self, dataset: Any, indices: Any) -> None:
        self.dataset, self.indices = dataset, indices

    def __getitem__(self, idx: Any) -> Any:
        if isinstance(idx, list):
            return self.dataset[[self.indices[i] for i in idx]]
        return self.dataset[self.indices[idx]]

    def __getitems__(self, indices: list[int]) -> list[Any]:
        return _records(self.dataset, [self.indices[i] for i in indices])

    def __len__(self) -> int:
        return len(self.indices)


def random_split(dataset: Any, lengths: Any, generator: Any = None) -> list[Subset]:
    """Subsets of these lengths, or parts of the whole, drawn at random.

    >>> import adjoint.torch as torch
    >>> [len(part) for part in torch.utils.data.random_split(range(10), [0.7, 0.3])]
    [7, 3]
    """
    total = len(dataset)
    counts: list[int] = list(lengths)
    if math.isclose(sum(lengths), 1) and sum(lengths) <= 1:
        for part in lengths:
            if part < 0 or part > 1:
                raise ValueError(f"Fraction at index {lengths.index(part)} is not between 0 and 1")
        counts = [math.floor(total * part) for part in lengths]
        for i in range(total - sum(counts)):
            counts[i % len(counts)] += 1
    if sum(counts) != total:
        raise ValueError("Sum of input lengths does not equal the length of the input dataset!")
    order = creation.randperm(total, generator=generator).tolist()
    ends = list(itertools.accumulate(counts))
    return [Subset(dataset, order[end - n : end]) for end, n in zip(ends, counts, strict=True)]
