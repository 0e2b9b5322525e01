"""Devices: "cpu" is NumPy, and others are leaves of adjoint's. A tensor that is not on "cpu" knows where it is.

Code that is hot knows "cpu" alone: what is elsewhere has nothing in the slot that it reads (`tensor.Tensor`), and goes
the longer way, which asks here.
"""

from __future__ import annotations

import contextlib
import copy
import ctypes
import functools
import sys
from typing import Any

import numpy as np

from adjoint import devices, errors
from adjoint.backend import LeafBackend
from adjoint.backends.numpy import NumPy
from adjoint.decorators.autodiff import Autodiff
from adjoint.torch.state import Mode

_LIBRARIES = ("array_api_strict", "cupy", "dask", "jax", "torch")  # names that are also types of devices
_ABSENT = ("mps", "xpu", "meta", "hpu", "mtia", "xla")  # PyTorch's, which are not here


class device:
    """Where tensors are: "cpu" in NumPy's arrays, "cuda" on a GPU, "jax" and its like in arrays of that library.

    "cuda" is CuPy's, or PyTorch's where CuPy is not there. Other names are those of `ad.device` for what computes. A
    `with` block makes new tensors there. Raises RuntimeError for a name that means none; whether a library is there is
    known when the first tensor is made.

    >>> import adjoint.torch as torch
    >>> torch.device("cuda:0")
    device(type='cuda', index=0)
    >>> with torch.device("reference"):
    ...     torch.ones(2)
    tensor([1., 1.], device='reference')
    """

    __slots__ = ("__weakref__", "index", "type")

    __module__ = "adjoint.torch"
    type: str
    index: int | None

    def __reduce__(self) -> tuple[Any, ...]:
        return device, (str(self),)

    def __init__(self, type: Any, index: int | None = None) -> None:
        if isinstance(type, device):
            type, index = type.type, type.index
        if isinstance(type, int) and not isinstance(type, bool):
            type, index = "cuda", type
        if not isinstance(type, str):
            raise TypeError(f"device(): argument 'type' must be str, not {errors.shown(type)}")
        if index is not None and (not isinstance(index, int) or isinstance(index, bool)):
            raise TypeError(f"device(): argument 'index' must be int, not {errors.shown(index)}")
        if index is not None and index < 0:
            raise RuntimeError(f"Device index must be non-negative, got {index}")
        name, _, number = type.rpartition(":")
        if name and number.isdecimal():
            if index is not None:
                raise RuntimeError(f"type (string) must not include an index because index was passed: {type}")
            type, index = name, int(number)
        self.type, self.index = _known(type), index

    def __repr__(self) -> str:
        return f"device(type={self.type!r}" + (")" if self.index is None else f", index={self.index})")

    def __str__(self) -> str:
        return self.type if self.index is None else f"{self.type}:{self.index}"

    def __eq__(self, other: Any) -> bool:
        return isinstance(other, device) and (other.type, other.index) == (self.type, self.index)

    def __hash__(self) -> int:
        return hash((self.type, self.index))

    def __enter__(self) -> device:
        default.enter(self, self)
        return self

    def __exit__(self, *_: object) -> None:
        default.leave(self)


@functools.cache
def _known(name: str) -> str:
    """The type of a device; raises RuntimeError for what is none."""
    if name in ("cpu", "cuda", *_LIBRARIES):
        return name
    if name in _ABSENT:
        raise RuntimeError(
            f"adjoint.torch: there is no device {name!r}: tensors are on 'cpu', 'cuda', or a library's, as 'jax'"
        )
    try:
        found = devices.device(name)
    except errors.DeviceError:
        found = None
    if not isinstance(found, LeafBackend) or found is NumPy():
        raise RuntimeError(
            f"Expected one of cpu, cuda, {', '.join(_LIBRARIES)} device type at start of device string: "
            f"{errors.said(name)}; further ones are what ad.device knows, without decorators"
        )
    return name


CPU = device("cpu")
default: Mode[device] = Mode(CPU)  # where new tensors are made


class Where:
    """A device that is not "cpu": its leaf, and the level over that, which records."""

    def __init__(self, shown: device, leaf: Any) -> None:
        self.device: device = shown
        self.leaf: Any = leaf
        self.level: Any = Autodiff(leaf)
        _KINDS.setdefault(type(self.array(np.zeros(1, np.float32))), []).append(self)

    def array(self, values: Any) -> Any:
        """Values of NumPy's as an array of the leaf."""
        return self.leaf.from_numpy(np.asarray(values), copy=True)

    def constant(self, values: Any) -> Any:
        """The same for what nobody writes to, without a copy where none is needed."""
        return self.leaf.from_numpy(np.asarray(values), copy=False)

    def copied(self, array: Any) -> Any:
        """Another array with the same values, so that what is written to one is not known of the other."""
        made = self.leaf.copied(array)
        return copy.copy(array) if made is array else made


_KINDS: dict[type, list[Where]] = {}  # by the class of their arrays
in_use: dict[device, Where] = {}  # none in most programs


def where_of(value: Any) -> Where | None:
    """Where an array is; None for NumPy's."""
    if isinstance(value, (np.ndarray, np.generic)):
        return None
    known = _KINDS.get(value.__class__)
    if known is None:
        leaf = devices.leaf_of(value)
        if leaf is None:
            raise TypeError(f"adjoint.torch: {errors.shown(value)} is an array of no device")
        word = leaf.name.partition("[")[0].partition(":")[0]
        known = [where(device(word))]
        _KINDS[value.__class__] = known
    if len(known) == 1:
        return known[0]
    leaf = type(known[0].leaf).of(value)
    return next((one for one in known if one.leaf is leaf), known[0])


def dtype_of(value: Any) -> Any:
    """The dtype of an array of any device, as NumPy's object."""
    where = None if value.__class__ is np.ndarray else where_of(value)
    return value.dtype if where is None else where.leaf.dtype_of(value)


def numpy_of(value: Any) -> Any:
    """An array of any device as NumPy's, for a look."""
    where = where_of(value)
    return value if where is None else where.leaf.to_numpy(value)


def where_of_leaf(leaf: Any) -> Any:
    """The device of a leaf that is in use; None for NumPy's."""
    return next((known for known in in_use.values() if known.leaf is leaf), None)


def where(given: Any) -> Any:
    """The place of a device that is not "cpu", None for "cpu". Raises RuntimeError where it is not there."""
    found = given if isinstance(given, device) else device(given)
    if found.type == "cpu":
        return None
    known = in_use.get(found)
    if known is None:
        shown = device("cuda", found.index or 0) if found.type == "cuda" else found
        known = in_use.get(shown)
        if known is None:
            known = in_use[shown] = Where(shown, _leaf(shown))
        in_use[found] = known
    return known


def _leaf(wanted: device) -> Any:
    if wanted.type == "cuda":
        return _on_gpu(wanted.index or 0)
    name = "array_api[array_api_strict]" if wanted.type == "array_api_strict" else str(wanted)
    try:
        return devices.device(name)
    except errors.AdjointError as error:
        raise RuntimeError(f"device {str(wanted)!r}: {error}") from error


def _on_gpu(index: int) -> Any:
    """CuPy's leaf of a GPU, or PyTorch's."""
    reasons = []
    for name in (f"cupy:{index}", f"torch:cuda:{index}"):
        try:
            return devices.device(name)
        except errors.AdjointError as error:
            reasons.append(str(error))
    raise RuntimeError(f"No CUDA GPUs are available to device 'cuda:{index}': {'; '.join(reasons)}")


def on_gpu(given: Any) -> device:
    """The device that `cuda()` means: a number, a device, or the first one."""
    return device("cuda", 0) if given is None else device(given)


@functools.cache
def gpus() -> int:
    """How many GPUs there are that "cuda" can use. Without a driver no library is imported to find out."""
    count = ctypes.c_int(0)
    try:
        driver = ctypes.CDLL("nvcuda.dll" if sys.platform == "win32" else "libcuda.so.1")
        if driver.cuInit(0) or driver.cuDeviceGetCount(ctypes.byref(count)):
            return 0
    except (OSError, AttributeError):
        return 0
    if count.value:
        with contextlib.suppress(RuntimeError):
            where("cuda:0")
            return count.value
    return 0


def chosen(given: Any) -> Any:
    """Where a new tensor is made: on the device that was given, else the default one; None for "cpu"."""
    if given is None:
        given = default.now()
        if given is CPU:
            return None
    return where(given)


def set_default_device(device: Any) -> None:
    """Make new tensors of this thread on another device, where no `device=` says otherwise; None is "cpu" again.

    >>> import adjoint.torch as torch
    >>> torch.set_default_device("reference")
    >>> torch.zeros(2).device
    device(type='reference')
    >>> torch.set_default_device(None)
    """
    found = CPU if device is None else globals()["device"](device)
    if found != CPU:
        where(found)
    default.change(CPU if found == CPU else found)


def get_default_device() -> device:
    """Where new tensors are made."""
    there = where(default.now())
    found: device = CPU if there is None else there.device
    return found


def different(first: Any, second: Any) -> RuntimeError:
    """The error for operands on two devices."""
    names = " and ".join([str(CPU if one is None else one.device) for one in (first, second)])
    return RuntimeError(
        f"Expected all tensors to be on the same device, but found at least two devices, {names}! Move one with "
        "x.to(device)"
    )
