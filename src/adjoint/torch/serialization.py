"""`torch.save` and `torch.load`: PyTorch's zip files, of which no pickle is executed.

A file has a pickle of the structure, in which tensors refer to storages, and the bytes of each storage. What is written
PyTorch reads. Reading knows tensors, storages and plain containers; a file that names anything else is refused.
"""

from __future__ import annotations

import _compat_pickle
import collections
import functools
import io
import os
import pickle
import pickletools
import re
import struct
import sys
import zipfile
from pathlib import Path
from typing import Any

import numpy as np

from adjoint import errors, files
from adjoint.torch import devices, dtypes, return_types
from adjoint.torch.devices import numpy_of
from adjoint.torch.kinds import dense_strides, positions, strides_contiguous
from adjoint.torch.memory import detached, place_of, strided
from adjoint.torch.overriding import DisableTorchFunctionSubclass
from adjoint.torch.tensor import Tensor, looked, placed, values, where_is

_ALIGNMENT = 64  # of the bytes of a storage in the file, as PyTorch has it
_HEADER = 30  # bytes before the name of an entry of a zip file


class UnpicklingError(errors.FileError, pickle.UnpicklingError):
    """The file has something else in it than tensors and plain containers."""


class DamagedFileError(UnpicklingError, RuntimeError):
    """The file is no zip file, or not a whole one."""


class EmptyFileError(UnpicklingError, EOFError):
    """There is nothing in the file."""


class Storage:
    """The bytes that tensors share, while they are written or read."""

    dtype: Any
    flat: Any
    key: str
    where: Any

    def __init__(self, dtype: Any, flat: Any, key: str = "", where: Any = None) -> None:
        self.dtype, self.flat, self.key, self.where = dtype, flat, key, where
        self.base: Any = None  # the tensor that has it all, once there is one


def rebuild_tensor(
    storage: Any, offset: Any, size: Any, stride: Any, requires_grad: Any, hooks: Any = None, bits: Any = None
) -> Any:
    """The tensor of a part of a storage; what shares one in the file shares memory.

    PyTorch keeps conjugates and negative parts as the numbers that they are of, with `bits` that say so.
    """
    out: Any = _part(storage, offset, size, stride)
    for name, function in {"conj": Tensor.conj, "neg": Tensor.neg}.items():  # type: ignore[attr-defined]
        if isinstance(bits, dict) and bits.get(name):
            out = function(out)
    return out.requires_grad_() if requires_grad else out


def _part(storage: Any, offset: Any, size: Any, stride: Any) -> Tensor:
    size, stride = tuple(size), tuple(stride)
    flat = storage.flat
    last = offset + sum([(n - 1) * step for n, step in zip(size, stride, strict=True)])
    if min((0, offset, *size, *stride)) < 0 or (0 not in size and last >= flat.size):
        raise UnpicklingError(
            f"torch.load: a tensor of shape {size} reaches beyond its storage of {flat.size} elements; the file is "
            "damaged"
        )
    if (
        storage.base is None
        and not offset
        and strides_contiguous(size, stride)
        and flat.size == np.prod(size, dtype=int)
    ):
        out = storage.base = placed(flat.reshape(size), storage.where)
    else:
        if storage.base is None:
            storage.base = placed(flat, storage.where)
        out = detached(strided(storage.base, size, stride, offset, "AsStrided"))
    return out


def rebuild_parameter(data: Any, requires_grad: Any, hooks: Any = None, state: Any = None) -> Any:
    """A parameter of a module, with attributes."""
    from adjoint.torch.nn import Parameter

    return _with_state(Parameter(data, requires_grad), state)


def rebuild_with_state(data: Any, requires_grad: Any, hooks: Any, state: Any) -> Any:
    """A parameter with attributes."""
    return rebuild_parameter(data, requires_grad, hooks, state)


def rebuild_of_class(function: Any, kind: Any, args: Any, state: Any) -> Any:
    """A tensor of a class, with attributes."""
    made = function(*args)
    kind = kind.make if isinstance(kind, _Made) else kind
    if not isinstance(made, Tensor) or not isinstance(kind, type):
        raise UnpicklingError("torch.load: a tensor of a class that is none; the file is damaged")
    with DisableTorchFunctionSubclass():
        return _with_state(made if type(made) is kind else made.as_subclass(kind), state)


def _with_state(made: Any, state: Any) -> Any:
    if isinstance(state, dict):
        vars(made).update(state)
    elif state is not None:
        raise UnpicklingError("torch.load: attributes of a tensor that are no dictionary, which is not read")
    return made


def storage_class(dtype: Any) -> Any:
    return _STORAGES[f"{dtype.class_name}Storage"]


_STORAGES: dict[str, Any] = {}
for _dtype in dtypes.DTYPES.values():
    _name = f"{_dtype.class_name}Storage"
    _STORAGES[_name] = type(_name, (), {"dtype": _dtype, "__module__": __name__})
globals().update(_STORAGES)

# how what is here is called in files: (module, name) of ours and of PyTorch's
_THEIRS = {
    (__name__, "rebuild_tensor"): ("torch._utils", "_rebuild_tensor_v2"),
    (__name__, "rebuild_parameter"): ("torch._utils", "_rebuild_parameter"),
    (__name__, "rebuild_with_state"): ("torch._utils", "_rebuild_parameter_with_state"),
    (__name__, "rebuild_of_class"): ("torch._tensor", "_rebuild_from_type_v2"),
    ("adjoint.torch.tensor", "Tensor"): ("torch", "Tensor"),
    ("adjoint.torch.nn.parameter", "Parameter"): ("torch.nn.parameter", "Parameter"),
    **{(__name__, name): ("torch", name) for name in _STORAGES},
    **{("adjoint.torch.return_types", name): ("torch.return_types", name) for name in return_types.TABLE},
    **{("adjoint.torch", name): ("torch", name) for name in (*dtypes.DTYPES, "Size", "device")},
}


def _named(name: str, *values: Any) -> Any:
    """A named tuple of a function's results."""
    return getattr(return_types, name)(*values)


def _encode(text: str, encoding: str) -> bytes:
    """How pickles of that protocol have bytes."""
    if encoding != "latin1":
        raise UnpicklingError(f"torch.load: bytes in the encoding {encoding!r}; the file is damaged")
    return text.encode("latin1")


def _bytes(*args: Any) -> bytearray:
    """A bytearray of what the file has. A number would ask for as many bytes."""
    if any([isinstance(given, int) for given in args]):
        raise UnpicklingError("torch.load: a bytearray of a number; the file is damaged")
    return bytearray(*args)


class _Made:
    """Something that files name, which they can call and not change."""

    __slots__ = ("dtype", "make")
    dtype: Any
    make: Any

    def __init__(self, make: Any, dtype: Any = None) -> None:
        object.__setattr__(self, "make", make)
        object.__setattr__(self, "dtype", dtype)

    def __setattr__(self, name: str, value: Any) -> None:
        raise UnpicklingError("torch.load: the file changes what it names; it is not one of PyTorch's")

    def __call__(self, *args: Any) -> Any:
        return self.make(*args)


_CALLED: dict[tuple[str, str], Any] = {
    ("torch._utils", "_rebuild_tensor_v2"): rebuild_tensor,
    ("torch._utils", "_rebuild_tensor"): lambda storage, offset, size, stride: rebuild_tensor(
        storage, offset, size, stride, False
    ),
    ("torch._utils", "_rebuild_parameter"): rebuild_parameter,
    ("torch._utils", "_rebuild_parameter_with_state"): rebuild_with_state,
    ("torch._tensor", "_rebuild_from_type_v2"): rebuild_of_class,
    ("torch", "Size"): dtypes.Size,
    ("torch", "device"): devices.device,
    **{("torch.return_types", name): functools.partial(_named, name) for name in return_types.TABLE},
    ("collections", "OrderedDict"): collections.OrderedDict,
    ("collections", "defaultdict"): collections.defaultdict,
    ("collections", "Counter"): collections.Counter,
    ("_codecs", "encode"): _encode,
    **{
        (module, kind.__name__): kind
        for module in ("builtins", "__builtin__")
        for kind in (set, frozenset, complex, slice, range)
    },
    ("builtins", "bytearray"): _bytes,
    ("__builtin__", "bytearray"): _bytes,
}
_KNOWN: dict[tuple[str, str], Any] = {
    **{name: _Made(make) for name, make in _CALLED.items()},
    **{("torch", name): _Made(None, kind.dtype) for name, kind in _STORAGES.items()},
    **{("torch", name): kind for name, kind in dtypes.DTYPES.items()},
    ("torch", "Tensor"): _Made(Tensor),
    ("torch", "BFloat16Storage"): _Made(None, dtypes.bfloat16),
    ("torch", "bfloat16"): dtypes.bfloat16,
}


# --- what users allow ---------------------------------------------------------------------------------------

_safe: list[Any] = []


def _path_of(entry: Any) -> str:
    return str(entry[1]) if isinstance(entry, tuple) else f"{entry.__module__}.{entry.__qualname__}"


def add_safe_globals(safe_globals: list[Any]) -> None:
    """Let `load` make objects of these classes, or call these functions, from now on.

    In the place of a class may be a pair, of the class and what it is called in files.
    """
    for entry in safe_globals:
        if isinstance(entry, tuple) and (len(entry) != 2 or not isinstance(entry[1], str)):
            raise ValueError(f"Expected tuple of length 2 of a class and its full path, but got one of {len(entry)}")
        if not isinstance(entry, tuple) and not hasattr(entry, "__qualname__"):
            raise TypeError(f"add_safe_globals() takes classes and functions, not {type(entry).__name__}")
        if entry not in _safe:
            _safe.append(entry)


def get_safe_globals() -> list[Any]:
    """The classes and functions that `load` knows because users allow them."""
    return list(_safe)


def clear_safe_globals() -> None:
    """Allow none any more."""
    _safe.clear()


class safe_globals:
    """A block in which `load` makes objects of these classes.

    >>> import collections, io
    >>> import adjoint.torch as torch
    >>> Point = collections.namedtuple("Point", "x y")
    >>> Point.__module__, file = "__main__", io.BytesIO()
    >>> with torch.serialization.safe_globals([Point]):
    ...     torch.serialization.get_safe_globals() == [Point]
    True
    """

    def __init__(self, safe_globals: list[Any]) -> None:
        self._given = safe_globals

    def __enter__(self) -> None:
        self._before = list(_safe)
        add_safe_globals(self._given)

    def __exit__(self, *_: object) -> None:
        _safe[:] = self._before


# --- writing ----------------------------------------------------------------------------------------------


class _Pickler(pickle.Pickler):
    """A pickler whose tensors refer to storages, which it gathers."""

    def __init__(self, file: Any) -> None:
        super().__init__(file, protocol=2)
        self.storages: dict[int, tuple[Storage, Any]] = {}  # by the memory or the tensor that has it, which it keeps

    def persistent_id(self, obj: Any) -> Any:
        if isinstance(obj, Storage):
            location = "cpu" if obj.where is None else str(obj.where.device)
            return "storage", storage_class(obj.dtype), obj.key, location, obj.flat.size
        return None

    def reducer_override(self, obj: Any) -> Any:
        if not isinstance(obj, Tensor):
            return NotImplemented
        state = vars(obj) or None
        if type(obj) is getattr(sys.modules.get("adjoint.torch.nn"), "Parameter", None):
            arguments: Any = (obj.detach(), obj.requires_grad, collections.OrderedDict())
            return (rebuild_parameter, arguments) if state is None else (rebuild_with_state, (*arguments, state))
        with DisableTorchFunctionSubclass():
            function, arguments = self._reduced(obj)
        if type(obj) is Tensor and state is None:
            return function, arguments
        return rebuild_of_class, (function, type(obj), arguments, state or {})

    def _reduced(self, obj: Tensor) -> Any:
        """What makes a plain tensor again."""
        part: Any = obj
        if (
            obj._rare is not None
            and obj._rare.memory is not None
            and numpy_of(obj._rare.memory.value).dtype != obj._dtype
        ):
            part = obj.detach().clone()  # of another type: it has a storage of its own
        strides, offset = place_of(part)
        arguments = (self._storage(part), offset, tuple(part.shape), tuple(strides), obj.requires_grad)
        return rebuild_tensor, (*arguments, collections.OrderedDict())

    def _storage(self, x: Tensor) -> Storage:
        memory = x._rare.memory if x._rare is not None else None
        owner: Any = x if memory is None else memory
        known = self.storages.get(id(owner))
        if known is None:
            value = np.asarray(looked(x) if memory is None else numpy_of(memory.value))
            strides = dense_strides(values(x)) if memory is None else memory.strides
            flat = np.empty(value.size, value.dtype)
            flat[positions(value.shape, strides, 0).reshape(-1)] = value.reshape(-1)
            known = self.storages[id(owner)] = (
                Storage(dtypes.of_numpy(value.dtype), flat, str(len(self.storages)), where_is(x)),
                owner,
            )
        return known[0]


def _spelled(pickled: bytes) -> bytes:
    """The pickle with PyTorch's names in the place of ours."""
    out, done = [], 0
    for opcode, argument, at in pickletools.genops(pickled):
        if opcode.name == "GLOBAL":
            module, name = str(argument).split(" ")
            known = _THEIRS.get((module, name))
            if known is not None and at is not None:
                out += [pickled[done:at], "c{}\n{}\n".format(*known).encode()]
                done = at + len(f"c{module}\n{name}\n".encode())
    return b"".join([*out, pickled[done:]])


def save(
    obj: Any, f: Any, pickle_module: Any = None, pickle_protocol: int = 2, _use_new_zipfile_serialization: bool = True
) -> None:
    """Write tensors and what holds them to a file, by its name or open for writing, as PyTorch does.

    >>> import io
    >>> import adjoint.torch as torch
    >>> file = io.BytesIO()
    >>> torch.save({"w": torch.arange(3)}, file)
    >>> torch.load(io.BytesIO(file.getvalue()))
    {'w': tensor([0, 1, 2])}
    """
    by_name = isinstance(f, (str, os.PathLike))
    if by_name and not Path(f).parent.is_dir():
        raise RuntimeError(f"Parent directory {Path(f).parent} does not exist.")
    if not by_name and not hasattr(f, "write"):
        raise AttributeError("expected 'f' to be string, path, or a file-like object with a 'write' attribute")
    buffer = io.BytesIO()
    pickler = _Pickler(buffer)
    pickler.dump(obj)
    folder = Path(f).stem if by_name else "archive"
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_STORED) as file:
        entries: list[tuple[str, Any]] = [("data.pkl", _spelled(buffer.getvalue())), ("byteorder", b"little")]
        entries += [
            (f"data/{storage.key}", storage.flat.astype(storage.flat.dtype.newbyteorder("<")).tobytes())
            for storage, _ in pickler.storages.values()
        ]
        entries.append(("version", b"3\n"))
        for name, content in entries:
            info = zipfile.ZipInfo(f"{folder}/{name}", (1980, 1, 1, 0, 0, 0))
            gap = -(archive.tell() + _HEADER + len(info.filename.encode()) + 4) % _ALIGNMENT
            info.extra = b"FB" + struct.pack("<H", gap) + b"Z" * gap
            file.writestr(info, content)
    if by_name:
        files.replace(f, archive.getvalue())
    else:
        f.write(archive.getvalue())


# --- reading ----------------------------------------------------------------------------------------------


class _Kind:
    """The type of one of NumPy's numbers in a file."""

    order: Any

    def __init__(self, kind: Any, *_: object) -> None:
        self.kind, self.order = kind, "="

    def __setstate__(self, state: Any) -> None:
        self.order = state[1]


def _number(kind: Any, raw: Any) -> Any:
    """One of NumPy's numbers from its bytes."""
    if not isinstance(kind, _Kind) or not re.fullmatch("[biufc][1-9]{1,2}", str(kind.kind)):
        raise UnpicklingError("torch.load: a number of NumPy's of another type than numbers have")
    data = raw if isinstance(raw, bytes) else str(raw).encode("latin1")
    return np.frombuffer(data, np.dtype(kind.kind).newbyteorder(kind.order), 1).astype(kind.kind)[0]


_OF_NUMPY: dict[tuple[str, str], Any] = {
    ("numpy", "dtype"): _Made(_Kind),
    **{(f"numpy.{core}.multiarray", "scalar"): _Made(_number) for core in ("core", "_core")},
}


class _Unpickler(pickle.Unpickler):
    """An unpickler that knows tensors, storages and plain containers, and calls nothing else.

    With `numbers` it also knows single numbers of NumPy's.
    """

    def __init__(self, archive: _Archive | _Bytes, file: Any, moved: Any, numbers: bool = False) -> None:
        super().__init__(file, fix_imports=True, encoding="utf-8")
        self.archive, self.moved, self.numbers = archive, moved, numbers
        self.storages: dict[str, Storage] = {}
        self.refused: Any = None  # what `map_location` raised, or a device that is not there

    def find_class(self, module: str, name: str) -> Any:
        known = _KNOWN.get((module, name))
        if known is None and self.numbers:
            known = _OF_NUMPY.get((module, name))
        if known is not None:
            return known
        own = _compat_pickle.NAME_MAPPING.get((module, name), (_compat_pickle.IMPORT_MAPPING.get(module, module), name))
        allowed = {_path_of(entry): entry for entry in _safe}
        if ".".join(own) in allowed:
            found = allowed[".".join(own)]
            return found[0] if isinstance(found, tuple) else found
        raise UnpicklingError(
            f"torch.load: Weights only load failed. Unsupported global: GLOBAL {module}.{name} was not an allowed "
            "global by default: it could run any code, and only tensors, storages and plain containers are read. Save "
            "the state_dict() of a model, not the model; if you trust what it names, use "
            f"torch.serialization.add_safe_globals([{name}]), or torch.serialization.safe_globals([{name}]) as a block"
        )

    def persistent_load(self, pid: Any) -> Any:
        kind, storage, key, location, size, *part = pid
        if any([entry is not None for entry in part]):
            raise UnpicklingError("torch.load: a storage that is a part of another, which is not read")
        if kind != "storage" or getattr(storage, "dtype", None) is None:
            raise UnpicklingError(f"torch.load: the file refers to {errors.shown(kind)}, which is no storage")
        known = self.storages.get(key)
        if known is None:
            known = Storage(storage.dtype, self.archive.array(key, storage.dtype, size), key)
            try:
                self._place(known, str(location))
            except Exception as error:
                self.refused = error
                raise
            self.storages[key] = known
        return known

    def _place(self, storage: Storage, location: str) -> None:
        """Say where the tensors of a storage will be: where they were, or where `map_location` says."""
        moved = self.moved
        if callable(moved):
            if moved(storage, location) is not None:  # the storage as it is, in main memory
                return
        elif isinstance(moved, dict):
            location = moved.get(location, location)
        elif moved is not None:
            location = moved
        try:
            storage.where = devices.where(location)
        except RuntimeError as error:
            raise RuntimeError(
                f"Attempting to deserialize object on the device {str(location)!r}, which is not there. Use torch.load "
                f"with map_location=torch.device('cpu') to map your storages to the CPU. {error}"
            ) from error


class _Archive:
    """A zip file with all in one folder."""

    def __init__(self, file: Any) -> None:
        head = file.read(4)
        if not head:
            raise EmptyFileError("torch.load: the file is empty")
        file.seek(-len(head), os.SEEK_CUR)
        start = file.tell()
        try:
            self.zip = zipfile.ZipFile(file)
        except Exception as error:  # which damaged files make `zipfile` raise of many types
            if head == b"PK\x03\x04":
                raise DamagedFileError("torch.load: the zip file has no end; it was not written whole") from error
            raise UnpicklingError(
                "torch.load: this is no file of PyTorch's; other formats, and its tar files of 2016, are not read. "
                "Load it with PyTorch, and save it again"
            ) from None
        if start != min([entry.header_offset for entry in self.zip.infolist()], default=start):
            raise UnpicklingError(
                "torch.load: failed reading zip archive: the last one of the file begins elsewhere; write one object "
                "to a file, such as a list of several"
            )
        pickles = [name for name in self.zip.namelist() if name.endswith("/data.pkl")]
        if len(pickles) != 1:
            raise UnpicklingError("torch.load: the zip file has no data.pkl in it, so that it is not PyTorch's")
        self.folder = pickles[0].removesuffix("data.pkl")

    def read(self, name: str) -> bytes:
        try:
            return self.zip.read(self.folder + name)
        except Exception as error:
            raise UnpicklingError(f"torch.load: {name} cannot be read: {error}; the file is damaged") from error

    def array(self, key: str, dtype: Any, size: int) -> Any:
        content = self.read(f"data/{key}")
        order: Any = "<"
        if self.folder + "byteorder" in self.zip.namelist() and self.read("byteorder") == b"big":
            order = ">"
        kind = np.dtype("uint16") if dtype is dtypes.bfloat16 else dtype.of_numpy
        if len(content) != size * kind.itemsize:
            raise UnpicklingError(
                f"torch.load: storage {key} has {len(content)} bytes, {size} of {dtype} take {size * kind.itemsize}; "
                "the file is damaged"
            )
        return _numbers(np.frombuffer(content, kind.newbyteorder(order)).astype(kind), dtype)


def _numbers(found: Any, dtype: Any) -> Any:
    """The elements of a storage; those of bfloat16, which come as integers, as float32, which has all its values."""
    return (found.astype(np.uint32) << 16).view(np.float32) if dtype is dtypes.bfloat16 else found


_MAGIC = b"\x80\x02\x8a\nl\xfc\x9cF\xf9 j\xa8P\x19."  # how files of PyTorch before 1.6 begin


class _Bytes:
    """The arrays of storages in a file that is no zip file: zeros until it is known where they are."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.known: dict[str, Any] = {}

    def array(self, key: str, dtype: Any, size: int) -> Any:
        if key not in self.known:
            kind = np.dtype("uint16") if dtype is dtypes.bfloat16 else dtype.of_numpy
            if not 0 <= size * kind.itemsize <= self.limit:
                raise UnpicklingError(f"torch.load: storage {key} of {size} elements is not in the file; it is damaged")
            self.known[key] = np.zeros(size, kind)
        return _numbers(self.known[key], dtype)


def _load_legacy(content: bytes, moved: Any, numbers: bool = False) -> Any:
    """Read a file of PyTorch before 1.6: pickles one after the other, then the elements of storages."""
    file = io.BytesIO(content)
    file.seek(len(_MAGIC))
    arrays = _Bytes(len(content))

    def following(moved: Any = "cpu") -> Any:
        return unpickled(_Unpickler(arrays, file, moved, numbers), content[file.tell() :])

    version, system = following(), following()
    if version != 1001 or not isinstance(system, dict) or not system.get("little_endian", True):
        raise UnpicklingError("torch.load: a file of a version, or of an order of bytes, which is not read")
    start = file.tell()
    following()  # for its storages, which come behind it
    for key in following():
        if key not in arrays.known:
            raise UnpicklingError(f"torch.load: storage {str(key)[:40]} belongs to no tensor; the file is damaged")
        flat = arrays.known[key]
        size, data = int.from_bytes(file.read(8), "little"), file.read(flat.nbytes)
        if size != flat.size or len(data) != flat.nbytes:
            raise DamagedFileError(f"torch.load: the elements of storage {key} are not all there; the file is damaged")
        flat[:] = np.frombuffer(data, flat.dtype.newbyteorder("<"))
    file.seek(start)
    return following(moved)


def _check_pickle(content: bytes) -> None:
    """Raise ValueError for what makes an unpickler ask for more memory than the pickle has bytes."""
    for opcode, argument, _ in pickletools.genops(content):
        if opcode.name == "LONG_BINPUT" and argument is not None and argument > len(content):
            raise ValueError(f"place {argument} of {len(content)}")


def load(
    f: Any, map_location: Any = None, pickle_module: Any = None, *, weights_only: bool | None = None,
    mmap: bool | None = None, **pickle_load_args: Any,
) -> Any:  # fmt: skip
    """Read what `torch.save` wrote, here or by PyTorch: tensors in plain containers, and nothing that runs code.

    Tensors are on the devices that they were saved from, or where `map_location` says: a device, a dictionary of
    devices, or a function of a storage and its device, which gives the storage to leave it in main memory, or None.
    `weights_only=False` reads single numbers of NumPy's, too, and nothing else that the default refuses. What is
    bfloat16 in the file is float32 here, which has all its values.

    Raises UnpicklingError, a `pickle.UnpicklingError`, for a file that names anything else, or is damaged.
    """
    if weights_only and pickle_module is not None:
        raise RuntimeError(
            "Can not safely load weights when explicit pickle_module is specified: weights_only reads without one"
        )
    if unknown := pickle_load_args.keys() - {"encoding", "errors", "fix_imports", "buffers"}:
        raise TypeError(f"load() got an unexpected keyword argument '{min(unknown)}'")
    if mmap and not isinstance(f, (str, os.PathLike)):
        raise ValueError("f must be a file path in order to use the mmap argument")
    if isinstance(f, (str, os.PathLike)):
        with Path(f).open("rb") as file:
            return load(io.BytesIO(file.read()), map_location, weights_only=weights_only)
    numbers = weights_only is False
    head = f.read(len(_MAGIC))
    f.seek(-len(head), os.SEEK_CUR)
    if head == _MAGIC:
        return _load_legacy(f.read(), map_location, numbers)
    archive = _Archive(f)
    content = archive.read("data.pkl")
    return unpickled(_Unpickler(archive, io.BytesIO(content), map_location, numbers), content)


def unpickled(unpickler: _Unpickler, content: bytes) -> Any:
    """What a pickle makes. Raises UnpicklingError where that is damaged, or has what is no value here."""
    try:
        _check_pickle(content)
        found = unpickler.load()
    except Exception as error:
        if isinstance(error, errors.AdjointError) or error is unpickler.refused:
            raise
        raise UnpicklingError(f"torch.load: the file's pickle is damaged: {error}") from error
    _check_values(found)
    return found


def _check_values(found: Any) -> None:
    """Raise UnpicklingError for a class or a storage that is a value of the file."""
    ahead, seen = [found], set()
    while ahead:
        value = ahead.pop()
        if isinstance(value, (_Made, Storage, _Kind)):
            what = "a storage; only tensors have them here" if isinstance(value, Storage) else "a class or a function"
            raise UnpicklingError(f"torch.load: Weights only load failed. One of the file's values is {what}")
        if isinstance(value, (dict, list, tuple, set, frozenset)) and id(value) not in seen:
            seen.add(id(value))
            ahead.extend([*value, *value.values()] if isinstance(value, dict) else value)
            if isinstance(value, collections.defaultdict):
                ahead.append(value.default_factory)
