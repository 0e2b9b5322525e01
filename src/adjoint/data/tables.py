"""Tables from files as trees of NumPy arrays: CSV and Parquet by pyarrow, SQLite by Python's own library."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from adjoint import errors, tree
from adjoint.data.columns import Array, check, chosen, library, names_of, picked
from adjoint.data.sources import Source
from adjoint.files import as_path


def read_csv(path: Any, columns: Any = None, *, separator: str = ",") -> Any:
    """The columns of a CSV file, which has their names in its first line.

    Parameters
    ----------
    path
        The file, also a compressed one.
    columns
        A tree of names: a name is a column, a list of names a matrix of these columns, shape (rows, columns). None is a
        dictionary of all.
    separator
        What stands between values.

    Returns
    -------
    The tree with NumPy arrays: floats, integers and bools, float64 with nan where some are missing, datetime64, or
    objects for texts. All of it is in memory.

    Raises
    ------
    FileError, ArgumentError, MissingLibraryError
        A file that is none, or not of this kind; a name that no column has; pyarrow is not installed
        (`pip install 'adjoint[data]'`).

    Examples
    --------
    >>> import adjoint as ad, pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp(), "points.csv")
    >>> _ = path.write_text("x,y,label\\n0.5,1,a\\n1.5,2,b\\n")
    >>> ad.data.read_csv(path, (["x", "y"], "label"))
    (array([[0.5, 1. ],
           [1.5, 2. ]]), array(['a', 'b'], dtype=object))
    """
    csv = library("pyarrow.csv", "read_csv")
    if not isinstance(separator, str) or len(separator) != 1:
        raise errors.ArgumentError(f"read_csv: separator is one character, received {errors.shown(separator)}")
    options = csv.ParseOptions(delimiter=separator)
    return chosen(_reading("read_csv", path, lambda: csv.read_csv(path, parse_options=options)), columns, "read_csv")


def read_parquet(path: Any, columns: Any = None) -> Any:
    """The columns of a Parquet file, or of a folder of them, as `read_csv` gives them. All is in memory.

    Columns of lists of one length are matrices. `Parquet` reads files that do not fit.

    Raises FileError, ArgumentError and MissingLibraryError, as `read_csv`.
    """
    parquet = library("pyarrow.parquet", "read_parquet")
    files = _reading("read_parquet", path, lambda: parquet.ParquetDataset(path))
    check(columns, files.schema.names, "read_parquet")
    names = None if columns is None else names_of(columns, "read_parquet")
    return chosen(_reading("read_parquet", path, lambda: files.read(columns=names)), columns, "read_parquet")


class Parquet(Source):
    """The rows of a Parquet file. Each process that reads has one row group in memory at a time.

    Shuffled, an epoch has the row groups in a random order, and the rows of each: rows of two groups meet only where
    one ends. So write groups that fit into memory, of rows that are not sorted.

    `columns` is that of `read_csv`. Raises FileError, ArgumentError and MissingLibraryError.
    """

    def __init__(self, path: Any, columns: Any = None) -> None:
        self._path, self._columns = path, columns
        self._group: tuple[int, Any] | None = None
        self._opened: tuple[int, Any] | None = None  # in which process, because they share no place in a file
        file = self._file()
        check(columns, file.schema_arrow.names, "Parquet")
        sizes = [file.metadata.row_group(k).num_rows for k in range(file.num_row_groups)]
        self._starts = np.concatenate([[0], np.cumsum(np.array(sizes, np.int64))])

    def _file(self) -> Any:
        if self._opened is None or self._opened[0] != os.getpid():
            parquet = library("pyarrow.parquet", "Parquet")
            self._opened = os.getpid(), _reading("Parquet", self._path, lambda: parquet.ParquetFile(self._path))
        return self._opened[1]

    def __len__(self) -> int:
        return int(self._starts[-1])

    def blocks(self) -> Array:
        return np.repeat(np.arange(len(self._starts) - 1), np.diff(self._starts))

    def take(self, indices: Array) -> Any:
        groups = np.searchsorted(self._starts, indices, side="right") - 1
        order = list(dict.fromkeys(groups.tolist()))
        parts = [self._read(group, indices[groups == group]) for group in order]
        if len(parts) == 1:
            return parts[0]
        back = np.argsort(np.concatenate([np.flatnonzero(groups == group) for group in order]))
        return tree.map(lambda *xs: np.concatenate(xs)[back], *parts)

    def _read(self, group: int, indices: Array) -> Any:
        if self._group is None or self._group[0] != group:
            self._group = None  # so that never two are in memory
            names = None if self._columns is None else names_of(self._columns, "Parquet")
            table = _reading("Parquet", self._path, lambda: self._file().read_row_group(group, columns=names))
            self._group = group, chosen(table, self._columns, "Parquet")
        return tree.map(lambda x: x[indices - self._starts[group]], self._group[1])

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "_opened": None, "_group": None}


def read_sqlite(path: Any, query: str, columns: Any = None, *, parameters: Sequence[Any] = ()) -> Any:
    """The columns of what a query finds in an SQLite database, as `read_csv` gives them. All is in memory.

    `parameters` are the values of the question marks in the query. The database is opened for reading only.

    Raises FileError for what is no database, ArgumentError for a query that it refuses, and as `read_csv`.

    >>> import adjoint as ad, pathlib, sqlite3, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp(), "points.db")
    >>> with sqlite3.connect(path) as base:
    ...     _ = base.execute("create table points (x real, y integer)")
    ...     _ = base.executemany("insert into points values (?, ?)", [(0.5, 1), (None, 2)])
    >>> base.close()
    >>> ad.data.read_sqlite(path, "select x, y from points where y > ?", parameters=(0,))
    {'x': array([0.5, nan]), 'y': array([1, 2])}
    """
    import sqlite3

    if not isinstance(query, str):
        raise errors.ArgumentTypeError(f"read_sqlite: the query is a string, received {errors.shown(query)}")
    file = as_path(path, "read_sqlite")
    try:
        base = sqlite3.connect(f"{file.absolute().as_uri()}?mode=ro", uri=True)
    except sqlite3.Error as error:
        raise errors.FileError(f"read_sqlite: {path}: {error}") from error
    try:
        cursor = base.execute(query, tuple(parameters))
        names = [entry[0] for entry in cursor.description or ()]
        rows = cursor.fetchall()
    except sqlite3.DatabaseError as error:
        if isinstance(error, (sqlite3.OperationalError, sqlite3.ProgrammingError)):
            raise errors.ArgumentError(f"read_sqlite: {error}, says SQLite of {errors.shown(query)}") from error
        raise errors.FileError(f"read_sqlite: {path}: {error}") from error
    finally:
        base.close()
    if not names:
        raise errors.ArgumentError(f"read_sqlite: a query gives columns, and {errors.shown(query)} gives none")
    values = list(zip(*rows, strict=True)) or [()] * len(names)
    check(columns, names, "read_sqlite")
    return picked({name: _array(column) for name, column in zip(names, values, strict=True)}, columns)


def _array(values: Sequence[Any]) -> Array:
    """A column of what SQLite has: None, integers, floats, texts and bytes."""
    if all([isinstance(value, int) for value in values]):
        return np.array(values, np.int64)
    if all([value is None or isinstance(value, (int, float)) for value in values]):
        return np.array(values, np.float64)
    column = np.empty(len(values), object)
    column[:] = values
    return column


def _reading(name: str, path: Any, read: Callable[[], Any]) -> Any:
    """What pyarrow reads, with its errors as ours."""
    try:
        return read()
    except (OSError, ValueError, TypeError, AttributeError) as error:  # its own are subclasses
        raise errors.FileError(f"{name}: {path}: {errors.said(error)}") from error
