"""Files of arrays by name, in the format of safetensors: whole, or not there."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from adjoint import errors

Record = dict[str, np.ndarray[Any, Any]]


def write(path: Any, record: Mapping[str, np.ndarray[Any, Any]], about: Mapping[str, str]) -> None:
    """A file of safetensors. It is there as a whole or not at all: a file of that name stays until this one is safe."""
    content = _library("save").save({name: np.ascontiguousarray(x) for name, x in record.items()}, dict(about))
    replace(path, content)


def replace(path: Any, content: bytes) -> None:
    """Write a file beside the old one, wait until it is on the disk, then give it the name. Raises FileError."""
    target = Path(path)
    beside = target.with_name(f".{target.name}.{os.urandom(4).hex()}")
    try:
        try:
            with beside.open("xb") as file:  # with the rights that any new file has
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
            os.replace(beside, target)
        except BaseException:
            beside.unlink(missing_ok=True)
            raise
    except OSError as error:
        raise errors.FileError(f"{target}: {error.strerror or error}; what was there before is unchanged") from error
    if os.name == "posix":  # the directory says which file has the name
        folder = os.open(target.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)


def read(path: Any) -> Record:
    """The arrays of a file of safetensors, by name. Raises FileError for a file that is none, or not whole."""
    library = _library("load")
    try:
        content = Path(path).read_bytes()
    except OSError as error:
        raise errors.FileError(f"{path}: {error.strerror or error}") from error
    try:
        return dict(library.load(content))
    except Exception as error:  # of the library's own kinds
        raise errors.FileError(f"{path}: this is no whole file of safetensors: {error}") from error


def _library(what: str) -> Any:
    try:
        import safetensors.numpy
    except ImportError as error:
        raise errors.MissingLibraryError(f"{what}: needs safetensors; pip install adjoint[train]") from error
    return safetensors.numpy
