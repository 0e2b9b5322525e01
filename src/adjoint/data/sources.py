"""Where records come from: trees of arrays, sequences, windows of series, and parts of all these."""

from __future__ import annotations

import mmap
from collections.abc import Sequence
from typing import Any

import numpy as np

from adjoint import errors, tree
from adjoint.data.collate import collate, is_leaf
from adjoint.data.columns import chosen
from adjoint.data.numbers import shuffled
from adjoint.dtypes import is_table, refuse_masked
from adjoint.functions.arguments import as_integer, is_integer, is_number, items
from adjoint.tensor import Tensor

Array = np.ndarray[Any, Any]


class Source:
    """Records that are read many at a time: a subclass has `__len__`, and `take`, which gives a batch by numbers.

    Anything with `__len__` and `__getitem__` is a source as well; its records are read one by one.

    >>> import adjoint as ad
    >>> class Squares(ad.data.Source):
    ...     def __len__(self):
    ...         return 100
    ...     def take(self, indices):
    ...         return indices, indices**2
    >>> next(iter(ad.data.DataLoader(Squares(), 3)))
    (array([0, 1, 2]), array([0, 1, 4]))
    """

    def __len__(self) -> int:
        """The number of records."""
        raise NotImplementedError

    def take(self, indices: Array) -> Any:
        """The batch of the records of these numbers, an array of integers."""
        raise NotImplementedError

    def __getitem__(self, index: int | slice) -> Any:
        """One record, or the batch of a slice."""
        if isinstance(index, slice):
            return self.take(np.arange(len(self))[index])
        return tree.map(lambda x: x[0], self.take(np.asarray([index])))

    def blocks(self) -> Array | None:
        """The number of the block that each record is in, where records are best read block by block; or None."""
        return None


class Arrays(Source):
    """A tree of arrays, whose first axes are the records."""

    def __init__(self, arrays: Any, name: str) -> None:
        try:
            self._set(_read(arrays, name))
        except RecursionError:
            raise errors.ArgumentError(f"{name}: the tree of arrays contains itself, or is nested too deep") from None
        sizes = {len(x) for x in self._leaves}
        if len(sizes) != 1:
            shapes = ", ".join([str(x.shape) for x in self._leaves]) or "none"
            raise errors.ShapeError(
                f"{name}: the first axes of arrays are the records, as many in each; the shapes are {shapes}"
            )

    def _set(self, arrays: Any) -> None:
        self._leaves, structure = tree.flatten(arrays)
        self._build = tree.builder(structure)

    def __len__(self) -> int:
        return len(self._leaves[0])

    def take(self, indices: Array) -> Any:
        return self._build([np.asarray(x[indices]) for x in self._leaves])

    def __getitem__(self, index: int | slice) -> Any:
        return self._build([x[index] if x.ndim == 1 else np.array(x[index]) for x in self._leaves])  # to be changed

    def __getstate__(self) -> Any:  # arrays in files go to other processes as the names of the files
        return self._build([_Mapped(x) if _is_mapped(x) else x for x in self._leaves])

    def __setstate__(self, arrays: Any) -> None:
        self._set(tree.map(lambda x: x.open() if isinstance(x, _Mapped) else x, arrays))


def _read(arrays: Any, name: str, path: str = "") -> Any:
    """A tree of NumPy arrays: tensors, tables and lists are made these, and tables dictionaries of their columns."""
    if _is_arrow(arrays):
        return chosen(arrays, None, name)
    if is_table(arrays) and hasattr(arrays, "columns"):
        return {str(column): np.asarray(arrays[column].to_numpy()) for column in arrays.columns}
    opened = None if is_leaf(arrays) else tree.opened(arrays)
    if opened is not None:
        parts, names, build = opened
        return build([_read(part, name, f"{path}[{key!r}]") for part, key in zip(parts, names, strict=True)])
    refuse_masked(arrays, name)
    try:
        array = np.asanyarray(arrays)
    except ValueError:
        array = np.asarray(None)
    if array.ndim == 0:
        raise errors.ArgumentTypeError(
            f"{name}: expected a tree of arrays, received {errors.shown(arrays)}{f' at {path}' if path else ''}; a "
            "sequence of records is a list"
        )
    return array


def _is_arrow(x: Any) -> bool:
    """Whether it is a table of pyarrow; a `datasets.Dataset` is none."""
    return hasattr(x, "column_names") and hasattr(x, "combine_chunks")


def _is_mapped(x: Array) -> bool:
    return isinstance(x, np.memmap) and x.mode in ("r", "r+") and x.filename is not None


class _Mapped:
    """A memory-mapped array, or a part of one, by the name of its file."""

    def __init__(self, x: Any) -> None:
        x.flush()
        start = np.frombuffer(x._mmap, np.uint8).ctypes.data  # in memory, and in the file:
        offset = x.offset - x.offset % mmap.ALLOCATIONGRANULARITY
        self._file, self._shape, self._dtype, self._strides = x.filename, x.shape, x.dtype, x.strides
        self._offset = offset + x.ctypes.data - start

    def open(self) -> Array:
        whole: Any = np.memmap(self._file, np.uint8, "r")
        return np.ndarray(self._shape, self._dtype, whole, self._offset, self._strides)


class Records(Source):
    """A sequence of records, read one by one, or as `__getitems__` gives lists of them."""

    def __init__(self, records: Any) -> None:
        self._records = records

    def __len__(self) -> int:
        return len(self._records)

    def __getitem__(self, index: int | slice) -> Any:
        if isinstance(index, slice):
            return super().__getitem__(index)
        try:
            return self._records[index]
        except Exception as error:
            error.add_note(f"DataLoader: while it read record {index} of the source")
            raise

    def take(self, indices: Array) -> Any:
        numbers = indices.tolist()
        many = getattr(self._records, "__getitems__", None)  # of PyTorch's protocol, which `datasets` has too
        return collate(many(numbers) if many else [self[number] for number in numbers], numbers)


class _Windows(Source):
    """Windows of a series."""

    def __init__(self, series: Arrays, length: int, stride: int, horizon: int) -> None:
        self._series, self._length, self._stride, self._horizon = series, length, stride, horizon
        self._steps = np.arange(length + horizon)

    def __len__(self) -> int:
        return (len(self._series) - len(self._steps)) // self._stride + 1

    def take(self, indices: Array) -> Any:
        before, after = np.split(indices[:, None] * self._stride + self._steps, [self._length], axis=1)
        return (self._series.take(before), self._series.take(after)) if self._horizon else self._series.take(before)


def windows(series: Any, length: int, stride: int = 1, horizon: int = 0) -> Source:
    """The windows of a series as records, which are made when they are read.

    Parameters
    ----------
    series
        An array of shape (times, ...), or a tree of such arrays.
    length, stride
        How many times a window has, and from one window's start to the next's.
    horizon
        With a positive number a record is a pair: a window of shape (length, ...), and the (horizon, ...) that follow.

    Raises
    ------
    ArgumentError, ArgumentTypeError, ShapeError
        Sizes that are no positive integers; a series that is shorter than one window.

    Examples
    --------
    >>> import adjoint as ad, numpy as np
    >>> pairs = ad.data.windows(np.arange(10), 3, horizon=1)
    >>> len(pairs), pairs[0]
    (7, (array([0, 1, 2]), array([3])))

    `split(pairs, (0.8, 0.2), seed=None)` keeps the order of time; windows beside the cut share times.
    """
    arrays = Arrays(series, "windows")
    sizes = [as_integer(length, "windows", "length", 1), as_integer(stride, "windows", "stride", 1)]
    after = as_integer(horizon, "windows", "horizon", 0)
    if len(arrays) < sizes[0] + after:
        raise errors.ShapeError(f"windows: the series has {len(arrays)} times, and a window needs {sizes[0] + after}")
    return _Windows(arrays, sizes[0], sizes[1], after)


class _Part(Source):
    """Some records of a source."""

    def __init__(self, source: Source, indices: Array) -> None:
        self._source, self._indices = source, indices

    def __len__(self) -> int:
        return len(self._indices)

    def __getitem__(self, index: int | slice) -> Any:
        return super().__getitem__(index) if isinstance(index, slice) else self._source[int(self._indices[index])]

    def take(self, indices: Array) -> Any:
        return self._source.take(self._indices[indices])

    def blocks(self) -> Array | None:
        blocks = self._source.blocks()
        return None if blocks is None else blocks[self._indices]


def split(source: Any, parts: Sequence[float], seed: int | None = 0) -> tuple[Source, ...]:
    """Parts of a source that have no record in common and together have all.

    Parameters
    ----------
    source
        What a `DataLoader` takes, if it has a length.
    parts
        Shares that sum to one, as (0.8, 0.2), or numbers of records that sum to all.
    seed
        Which records go where. With None the first records are the first part, as for series.

    Raises
    ------
    ArgumentError, ArgumentTypeError
        Parts that do not sum to the whole, or of which one has no record; a source without a length.

    Examples
    --------
    >>> import adjoint as ad, numpy as np
    >>> train, valid = ad.data.split(np.arange(10), (0.8, 0.2))
    >>> len(train), len(valid), valid[:].shape
    (8, 2, (2,))
    """
    records = as_source(source, "split")
    if records is None:
        raise errors.ArgumentTypeError(
            f"split: a source has a length, and {type(source).__name__} has none; a list has one"
        )
    shares = items(parts) or ()
    total = len(records)
    whole = shares and all([is_integer(share) for share in shares])
    if not shares or not all([is_number(share) and share > 0 for share in shares]):
        raise errors.ArgumentTypeError(f"split: parts are positive numbers, received {errors.shown(parts)}")
    if not np.isclose(sum(shares), total if whole else 1.0, rtol=1e-6):
        raise errors.ArgumentError(
            f"split: parts are shares that sum to 1, or integers that sum to the {total} records; received "
            f"{errors.shown(parts)}"
        )
    cuts = np.rint(np.cumsum(shares) / sum(shares) * total).astype(np.int64)
    order = np.arange(total) if seed is None else shuffled(total, as_seed(seed, "split"), 0, "split")
    found = [np.sort(part) for part in np.split(order, cuts[:-1])]
    if not all([len(part) for part in found]):
        raise errors.ArgumentError(f"split: a part of {errors.shown(parts)} has none of the {total} records")
    return tuple([_Part(records, part) for part in found])


def as_seed(seed: Any, name: str) -> int:
    """A seed: an integer from 0 to 2**64 - 1. Raises ArgumentError, ArgumentTypeError."""
    value = as_integer(seed, name, "seed", 0)
    if value >= 2**64:
        raise errors.ArgumentError(f"{name}: seed is below 2**64, received {errors.shown(seed)}")
    return value


def as_source(source: Any, name: str) -> Source | None:
    """The source that an argument means; None for one that can only be iterated.

    Tuples and dictionaries of arrays, arrays and tables are arrays; a list is a sequence of records.
    """
    if isinstance(source, Source):
        return source
    if isinstance(source, (Tensor, np.ndarray, tuple, dict)) or is_table(source) or _is_arrow(source):
        return Arrays(source, name)
    if isinstance(source, (str, bytes, type)):
        raise errors.ArgumentTypeError(
            f"{name}: a source has records, received {errors.shown(source)}; ad.data.read_csv and its like read files"
        )
    if hasattr(source, "__getitem__") and hasattr(source, "__len__"):
        return Records(source)
    if hasattr(source, "__iter__"):
        return None
    raise errors.ArgumentTypeError(
        f"{name}: a source is a tree of arrays, has __len__ and __getitem__, or can be iterated; received "
        f"{errors.shown(source)}"
    )
