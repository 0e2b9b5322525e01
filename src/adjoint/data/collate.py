"""Records to batches: the structure of a record, with arrays that have one more axis in front."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from adjoint import errors, tree
from adjoint.dtypes import refuse_masked
from adjoint.tensor import Tensor

_NUMBERS = {bool, int, float, complex, np.bool_, np.int64, np.int32, np.float64, np.float32, np.uint8}
_TEXT = (str, bytes)


def collate(records: Sequence[Any], numbers: Sequence[int]) -> Any:
    """The batch of records, which have these numbers in their source.

    Tuples, dictionaries and the like are structure, all else is an array: also a list, and strings as objects.

    Raises ShapeError for records of different shapes, ArgumentTypeError for other structures, or what is no array; both
    name the record.

    >>> collate([{"x": [1.0, 2.0], "y": 0}, {"x": [3.0, 4.0], "y": 1}], [0, 1])
    {'x': array([[1., 2.],
           [3., 4.]]), 'y': array([0, 1])}
    """
    return _stacked(records, numbers, "")


def _stacked(parts: Sequence[Any], numbers: Sequence[int], path: str) -> Any:
    first = parts[0]
    opened = None if is_leaf(first) else tree.opened(first)
    if opened is None:
        return _joined(parts, numbers, path)
    _, names, build = opened
    rows = []
    for part, number in zip(parts, numbers, strict=True):
        found = tree.opened(part) if part.__class__ is first.__class__ else None
        if found is None or found[1] != names:
            raise errors.ArgumentTypeError(
                f"DataLoader: the records of a batch differ in structure: record {numbers[0]} has "
                f"{errors.shown(first)} and record {number} has {errors.shown(part)}{_at(path)}; make them alike in "
                "transform"
            )
        rows.append(found[0])
    columns = zip(*rows, strict=True)
    return build([_stacked(column, numbers, f"{path}[{name!r}]") for name, column in zip(names, columns, strict=True)])


def is_leaf(x: Any) -> bool:
    """Whether it becomes an array: no tuple, dictionary or the like."""
    return isinstance(x, (list, np.ndarray, np.generic, Tensor, bool, int, float, complex, str, bytes))


def _joined(parts: Sequence[Any], numbers: Sequence[int], path: str) -> Any:
    kinds = {part.__class__ for part in parts}
    if kinds <= _NUMBERS:
        if int in kinds:  # of a larger one NumPy makes floats, or objects
            for part, number in zip(parts, numbers, strict=True):
                if isinstance(part, int) and part.bit_length() > 63:
                    raise errors.RangeError(
                        f"DataLoader: record {number} has {errors.shown(part)}{_at(path)}, which int64 does not hold; "
                        "make it a float in transform"
                    )
        return np.asarray(parts)
    if kinds == {type(None)}:
        return None
    if kinds.issubset(_TEXT):  # NumPy's own bytes lose zeros at their end
        texts = np.empty(len(parts), object)
        texts[:] = parts
        return texts
    arrays = [_array(part, number, path) for part, number in zip(parts, numbers, strict=True)]
    for array, number in zip(arrays, numbers, strict=True):
        if array.shape != arrays[0].shape:
            raise errors.ShapeError(
                f"DataLoader: the records of a batch differ in shape: record {numbers[0]} has {arrays[0].shape} and "
                f"record {number} has {array.shape}{_at(path)}; crop or pad them in transform"
            )
    return np.stack(arrays)


def _array(x: Any, number: int, path: str) -> np.ndarray[Any, Any]:
    refuse_masked(x, f"DataLoader: record {number}")
    try:
        array = np.asarray(x)
    except errors.AdjointError:
        raise
    except (TypeError, ValueError) as error:
        raise errors.ShapeError(
            f"DataLoader: record {number} has {errors.shown(x)}{_at(path)}, which is no array ({errors.said(error)}); "
            "make it one in transform"
        ) from None
    if array.dtype == object:
        raise errors.ArgumentTypeError(
            f"DataLoader: record {number} has {errors.shown(x)}{_at(path)}, which is no array of numbers; make it one "
            "in transform"
        )
    return array


def _at(path: str) -> str:
    return f" at {path}" if path else ""
