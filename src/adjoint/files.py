"""Files of arrays by name, in the format of safetensors: whole, or not there."""

from __future__ import annotations

import errno
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from adjoint import errors
from adjoint.dtypes import as_dtype

Record = dict[str, np.ndarray[Any, Any]]


_PAIRS = "complex128"  # names of arrays that the format has no dtype for: real and imaginary parts along a last axis


def write(path: Any, record: Mapping[str, np.ndarray[Any, Any]], about: Mapping[str, str]) -> None:
    """A file of safetensors. It is there as a whole or not at all: a file of that name stays until this one is safe."""
    import json  # here, so that `import adjoint` need not wait for it

    path = as_path(path, "save")
    pairs = [name for name, x in record.items() if x.dtype == np.complex128]
    split = {name: np.stack([record[name].real, record[name].imag], -1) for name in pairs}
    arrays = {name: np.asarray(split.get(name, x), order="C") for name, x in record.items()}
    for name, x in arrays.items():
        as_dtype(x.dtype, f"save: {name}")
    replace(path, _library("save").numpy.save(arrays, {**about, **({_PAIRS: json.dumps(pairs)} if pairs else {})}))


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
    try:
        sync_folder(target.parent)
    except OSError as error:
        raise errors.FileError(
            f"{target}: {error.strerror or error}; it is written, but its name may not outlast a loss of power"
        ) from error


def sync_folder(path: Path) -> None:
    """Wait until the names in a folder are on the disk."""
    if os.name != "posix":  # elsewhere a folder is no file
        return
    folder = os.open(path, os.O_RDONLY)
    try:
        os.fsync(folder)
    except OSError as error:
        if error.errno != errno.EINVAL:  # from file systems that have nothing to wait for
            raise
    finally:
        os.close(folder)


def read(path: Any) -> Record:
    """The arrays of a file of safetensors, by name. Raises FileError for a file that is none, or not whole."""
    return read_all(path)[0]


def read_all(path: Any) -> tuple[Record, dict[str, str]]:
    """The arrays of a file of safetensors, and what it says about them. Raises FileError as `read`."""
    import json

    path, library = as_path(path, "load"), _library("load")
    try:
        content = path.read_bytes()
    except OSError as error:
        raise errors.FileError(f"{path}: {error.strerror or error}") from error
    try:
        record = {name: _array(**entry) for name, entry in library.deserialize(content)}
        size = int.from_bytes(content[:8], "little")
        about = json.loads(content[8 : 8 + size]).get("__metadata__", {})
        for name in json.loads(about.pop(_PAIRS, "[]")):
            record[name] = record[name].view(np.complex128)[..., 0]
    except errors.AdjointError:
        raise
    except Exception as error:  # of the library's own kinds
        raise errors.FileError(f"{path}: this is no whole file of safetensors: {error}") from error
    return record, about


def _array(dtype: str, shape: list[int], data: bytes) -> np.ndarray[Any, Any]:
    """An entry of a file. Raises MissingLibraryError for bfloat16 without ml_dtypes."""
    if dtype in ("BF16", "BOOL"):
        found = as_dtype({"BF16": "bfloat16", "BOOL": "bool"}[dtype])
    else:  # a letter and bits, as F32
        found = as_dtype(f"{dtype[0].lower()}{int(dtype[1:]) // 8}")
    return np.frombuffer(data, found).reshape(shape)


def as_path(path: Any, function: str, what: str = "path is a file") -> Path:
    """A path that a caller gave. Raises ArgumentTypeError, ArgumentError for a name that no file can have."""
    try:
        found = Path(path)
    except TypeError:
        raise errors.ArgumentTypeError(f"{function}: {what}, received {errors.shown(path)}") from None
    if "\0" in str(found):
        raise errors.ArgumentError(
            f"{function}: {what}, whose name has no null character, received {errors.shown(path)}"
        )
    return found


def _library(what: str) -> Any:
    try:
        import safetensors.numpy
    except ImportError as error:
        raise errors.MissingLibraryError(f"{what}: needs safetensors; pip install 'adjoint[train]'") from error
    return safetensors
