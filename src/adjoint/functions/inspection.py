"""What a program can ask about data types, devices and this namespace, as the array API standard names it."""

from __future__ import annotations

import functools
import sys
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np

from adjoint import dtypes, errors
from adjoint.backend import Backend
from adjoint.backends.numpy import NumPy
from adjoint.counterparts import WRITE_TO_VIEWS
from adjoint.decorators.autodiff import Autodiff
from adjoint.devices import default_device
from adjoint.devices import device as find_device
from adjoint.dtypes import DType
from adjoint.functions.arguments import as_shape
from adjoint.lines import asked_by
from adjoint.operands import is_weak
from adjoint.primitives import Shape, real_dtype
from adjoint.primitives import broadcast_shapes as shapes_together
from adjoint.tensor import Tensor

_VERSIONS = ("2021.12", "2022.12", "2023.12", "2024.12", "2025.12")
# the standard's data types, which float16 is not among
_STANDARD = {dtype.name: dtype for dtype in dtypes.ALL if dtype is not dtypes.float16}
_KINDS: dict[str, str] = {
    "bool": "b",
    "signed integer": "i",
    "unsigned integer": "u",
    "integral": "iu",
    "real floating": dtypes.FLOATING,
    "complex floating": "c",
    "numeric": "iu" + dtypes.INEXACT,
}


class FloatInfo(NamedTuple):
    """What `finfo` tells of a real data type: numbers are Python's floats."""

    bits: int
    eps: float
    max: float
    min: float
    smallest_normal: float
    dtype: DType


class IntegerInfo(NamedTuple):
    """What `iinfo` tells of an integer data type."""

    bits: int
    max: int
    min: int
    dtype: DType


def _dtype_of(value: Any) -> DType:
    return dtypes.as_dtype(value.dtype if isinstance(value, (Tensor, np.ndarray, np.generic)) else value)


def finfo(type: Any, /) -> FloatInfo:
    """The limits of a floating data type, or of a tensor's; for a complex one those of its parts.

    Raises DtypeError for other data types.

    >>> import adjoint as ad
    >>> ad.finfo(ad.float32).eps
    1.1920928955078125e-07
    """
    dtype = real_dtype(_dtype_of(type))
    if dtype.kind not in dtypes.FLOATING:
        raise errors.DtypeError(f"finfo: expected a floating data type, received {dtype}; of integers there is iinfo")
    info = dtypes.finfo(dtype)
    eps, largest, smallest, normal = [float(v) for v in (info.eps, info.max, info.min, info.smallest_normal)]
    return FloatInfo(int(info.bits), eps, largest, smallest, normal, dtypes.as_dtype(dtype))


def iinfo(type: Any, /) -> IntegerInfo:
    """The limits of an integer data type, or of a tensor's. Raises DtypeError for other data types.

    >>> import adjoint as ad
    >>> ad.iinfo(ad.int8).max
    127
    """
    dtype = _dtype_of(type)
    if dtype.kind not in "iu":
        raise errors.DtypeError(f"iinfo: expected an integer data type, received {dtype}; of floating ones use finfo")
    info = np.iinfo(dtype)
    return IntegerInfo(info.bits, int(info.max), int(info.min), dtype)


def isdtype(dtype: Any, kind: Any) -> bool:
    """Whether a data type is of a kind: another data type, a kind's name, or one of a tuple of these.

    Names are "bool", "signed integer", "unsigned integer", "integral", "real floating", "complex floating", "numeric".
    Raises ArgumentError for another name, DtypeError for what is no data type.

    >>> import adjoint as ad
    >>> ad.isdtype(ad.int8, "integral"), ad.isdtype(ad.float32, ("bool", ad.float64))
    (True, False)
    """
    found = dtypes.as_dtype(dtype)
    if isinstance(kind, tuple):
        return any(isdtype(found, each) for each in kind)
    if isinstance(kind, str):
        if kind not in _KINDS:
            raise errors.ArgumentError(f"isdtype: the kinds are {', '.join(_KINDS)}; received {errors.shown(kind)}")
        return found.kind in _KINDS[kind]
    return found is dtypes.as_dtype(kind)


def can_cast(from_: Any, to: Any, /) -> bool:
    """Whether a tensor or data type promotes to a data type without leaving its kind; real ones to complex ones too.

    Of a tensor no data type counts that its device's library does not compute in.

    >>> import adjoint as ad
    >>> ad.can_cast(ad.int8, ad.int16), ad.can_cast(ad.float64, ad.float32), ad.can_cast(ad.int8, ad.float32)
    (True, False, False)
    """
    start, end = _dtype_of(from_), dtypes.as_dtype(to)
    within = {"b": "b", "i": "iu", "u": "iu", "f": dtypes.INEXACT, "V": dtypes.INEXACT, "c": "c"}[start.kind]
    if end.kind not in within or (isinstance(from_, Tensor) and not from_.device.leaf.computes_in(end)):
        return False
    try:
        return dtypes.promote(start, end) is end
    except errors.DtypeError:  # uint64 with a signed integer
        return False


def result_type(*arrays_and_dtypes: Any) -> DType:
    """The data type in which tensors, data types and Python's numbers meet; the numbers adapt to the others.

    Raises ArgumentError for no arguments, or Python's numbers alone; DtypeError where there is no common one.

    >>> import adjoint as ad
    >>> ad.result_type(ad.int8, ad.uint8), ad.result_type(ad.tensor([1.0]), ad.complex64, 2)
    (dtype('int16'), dtype('complex64'))
    """
    scalars = [v for v in arrays_and_dtypes if is_weak(v)]
    found = [_dtype_of(v) for v in arrays_and_dtypes if not is_weak(v)]
    if not found:
        raise errors.ArgumentError("result_type: expected a tensor or a data type among the arguments")
    found.sort(key=lambda dtype: "biufVc".index(dtype.kind), reverse=True)  # then no order of the arguments matters
    out = functools.reduce(dtypes.promote, found)
    for scalar in scalars:
        out = dtypes.promote_scalar(out, scalar)
    return out


def broadcast_shapes(*shapes: int | Shape) -> Shape:
    """The shape that tensors of these shapes broadcast to. Raises ShapeError where they do not.

    >>> import adjoint as ad
    >>> ad.broadcast_shapes((3, 1), (4,))
    (3, 4)
    """
    return shapes_together(*[as_shape(shape, "broadcast_shapes") for shape in shapes])


class NamespaceInfo:
    """What `ad.__array_namespace_info__()` gives: devices, data types and capabilities of this namespace."""

    def capabilities(self) -> dict[str, Any]:
        """Boolean masks as indices and shapes that depend on values work; tensors have up to 64 axes."""
        return {"boolean indexing": True, "data-dependent shapes": True, "max dimensions": 64}

    def default_device(self) -> Backend:
        """The backend that new tensors are made on here."""
        return default_device()

    def devices(self) -> list[Backend]:
        """The default device, and NumPy's with and without gradients; there are as many as backends can be nested."""
        found = [default_device()]
        for device in (Autodiff(NumPy()), NumPy()):
            if device not in found:
                found.append(device)
        return found

    def default_dtypes(self, *, device: Any = None) -> dict[str, DType]:
        """The data types of what is made without one: the next narrower ones where the device has fewer."""
        place = _found(device)
        whole = place.leaf.widest(dtypes.default_int)
        return {
            "real floating": dtypes.default_on(place),
            "complex floating": dtypes.default_on(place, "c"),
            "integral": whole,
            "indexing": whole,
        }

    def dtypes(self, *, device: Any = None, kind: Any = None) -> dict[str, DType]:
        """The standard's data types by name that a device computes in: all, or those of a kind as `isdtype` has it."""
        place = _found(device)
        there = {name: dtype for name, dtype in _STANDARD.items() if place.leaf.computes_in(dtype)}
        return {name: dtype for name, dtype in there.items() if kind is None or isdtype(dtype, kind)}


def _found(device: Any) -> Backend:
    return default_device() if device is None else find_device(device)


def __array_namespace_info__() -> NamespaceInfo:
    """What this namespace can do, by the array API standard.

    >>> import adjoint as ad
    >>> ad.__array_namespace_info__().default_dtypes()["real floating"]
    dtype('float32')
    """
    return NamespaceInfo()


def __array_namespace__(x: Tensor[Any], /, *, api_version: str | None = None) -> ModuleType:
    """The module whose functions work on this tensor: `adjoint` itself.

    Raises ArgumentError for another version, and to a function that is known to write to views: tensors have none.

    >>> import adjoint as ad
    >>> ad.tensor(1.0).__array_namespace__() is ad
    True
    """
    if api_version is not None and (not isinstance(api_version, str) or api_version not in _VERSIONS):
        raise errors.ArgumentError(
            f"__array_namespace__: versions {', '.join(_VERSIONS)} of the array API standard are supported, received "
            f"{errors.shown(api_version)}"
        )
    if "scipy.signal" in sys.modules and (asked := asked_by()) in WRITE_TO_VIEWS:
        raise errors.ArgumentError(
            f"{asked} writes to views of its result, and tensors have none, so that what it writes would be lost; use "
            f"{WRITE_TO_VIEWS[asked]}"
        )
    return sys.modules[__name__.partition(".")[0]]
