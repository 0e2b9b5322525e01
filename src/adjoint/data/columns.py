"""Columns of a table of pyarrow as NumPy arrays, in the tree of their names that was asked for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from adjoint import errors

Array = np.ndarray[Any, Any]


def chosen(table: Any, columns: Any, name: str) -> Any:
    """The columns of a table of pyarrow, as a tree of names has them."""
    check(columns, table.column_names, name)
    wanted = table.column_names if columns is None else names_of(columns, name)
    for column in wanted:
        if table.column_names.count(column) > 1:
            raise errors.ArgumentError(
                f"{name}: several columns are called {errors.shown(column)}; give them names of their own, or ask for "
                "others with columns="
            )
    return picked({column: _column(table.column(column), column, name) for column in wanted}, columns)


def check(columns: Any, known: Sequence[str], name: str) -> None:
    """Raises ArgumentError for a tree of names of which one is none, ArgumentTypeError for what is no such tree."""
    for column in [] if columns is None else names_of(columns, name):
        if column not in known:
            there = ", ".join(map(repr, known))
            raise errors.ArgumentError(f"{name}: there is no column {errors.shown(column)}; there are {there}")


def picked(found: dict[str, Array], columns: Any) -> Any:
    """The columns as a tree of their names has them."""
    if columns is None:
        return found
    if isinstance(columns, str):
        return found[columns]
    if isinstance(columns, list):
        return np.stack([found[column] for column in columns], axis=-1)
    if isinstance(columns, dict):
        return {key: picked(found, part) for key, part in columns.items()}
    return tuple([picked(found, part) for part in columns])


def names_of(columns: Any, name: str) -> list[str]:
    """All names of a tree of names."""
    if isinstance(columns, str):
        return [columns]
    if isinstance(columns, (list, tuple, dict)) and columns:
        parts = list(columns.values()) if isinstance(columns, dict) else columns
        if not isinstance(columns, list) or all([isinstance(part, str) for part in parts]):
            return list(dict.fromkeys([found for part in parts for found in names_of(part, name)]))
    raise errors.ArgumentTypeError(
        f"{name}: columns are a name, a list of names, or tuples and dictionaries of these; received "
        f"{errors.shown(columns)}"
    )


def _column(column: Any, label: str, name: str) -> Array:
    """A column of pyarrow's."""
    import pyarrow as pa

    kind = column.type
    if pa.types.is_dictionary(kind):
        column, kind = column.cast(kind.value_type), kind.value_type
    if pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind):
        return _matrix(column, label, name)
    if pa.types.is_decimal(kind) or (column.null_count and pa.types.is_boolean(kind)):
        column = (column.cast(pa.int8()) if pa.types.is_boolean(kind) else column).cast(pa.float64())
    return np.array(column.to_numpy())  # which may be written to


def _matrix(column: Any, label: str, name: str) -> Array:
    """A column of lists, one row each."""
    compute = library("pyarrow.compute", name)
    lengths = compute.list_value_length(column).to_numpy()
    for row, length in enumerate(lengths):
        if length != lengths[0]:
            raise errors.ShapeError(
                f"{name}: the lists of column {label!r} differ in length: row 0 has {lengths[0]}, row {row} {length}; "
                "leave the column out, or read records one by one and pad them in transform"
            )
    inner = _column(compute.list_flatten(column), label, name)
    return inner.reshape(len(lengths), int(lengths[0]) if len(lengths) else 0, *inner.shape[1:])


def library(module: str, name: str) -> Any:
    """An optional library. Raises MissingLibraryError, which says how to install it."""
    from importlib import import_module

    try:
        return import_module(module)
    except ImportError as error:
        raise errors.MissingLibraryError(
            f"{name}: needs {module.partition('.')[0]}; pip install 'adjoint[data]'"
        ) from error
