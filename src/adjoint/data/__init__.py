"""Batches of data: any iterable of batches trains, and `DataLoader` makes one of any source.

A source is a tree of arrays, a table, anything with `__len__` and `__getitem__`, or an iterable of records.
"""

from adjoint.data.images import ImageFolder
from adjoint.data.loader import DataLoader
from adjoint.data.sources import Source, split, windows
from adjoint.data.tables import Parquet, read_csv, read_parquet, read_sqlite
from adjoint.renamed import refusing

__all__ = [
    "DataLoader",
    "ImageFolder",
    "Parquet",
    "Source",
    "read_csv",
    "read_parquet",
    "read_sqlite",
    "split",
    "windows",
]
globals()["__getattr__"] = refusing(__name__)  # unseen by type checkers, which refuse other names themselves


def __dir__() -> list[str]:
    return __all__
