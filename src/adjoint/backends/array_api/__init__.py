"""The leaf backend over any library that follows the Python array API standard, version 2024.12.

What the standard has is called by its name; the rest is composed of it, with loops over axes and
kernel places but never over elements. https://data-apis.org/array-api/2024.12/

Libraries that nearly follow the standard are met through array_api_compat, and what the standard leaves out is taken
from array_api_extra where that has it. What a library does otherwise, or better, stands in its own table of deviations,
in the module of its name, and nowhere else.
"""

from __future__ import annotations

import functools
import importlib
import weakref
from collections.abc import Callable, Mapping
from types import ModuleType
from typing import Any

import numpy as np

from adjoint import dtypes, errors
from adjoint.backend import Array, Backend, Implementation, LeafBackend, computed_name
from adjoint.backends import composed, needed, special
from adjoint.backends.array_api import (
    convolution,
    creation,
    elementwise,
    fft,
    indexing,
    linalg,
    reduction,
    scatter,
    shape,
    sorting,
)
from adjoint.primitives import DType, Primitive

_DTYPES = (
    dtypes.bool, dtypes.int8, dtypes.int16, dtypes.int32, dtypes.int64, dtypes.uint8, dtypes.uint16, dtypes.uint32,
    dtypes.uint64, dtypes.float16, dtypes.float32, dtypes.float64, dtypes.complex64, dtypes.complex128,
)  # fmt: skip

_living: weakref.WeakValueDictionary[str, ModuleType] = weakref.WeakValueDictionary()  # those in use

# whose arrays never change, are computed later, or are wrong silently
_OWN = {"jax.numpy": "ad.JAX()", "dask.array": "ad.Dask()", "cupy": "ad.CuPy()"}


class ArrayAPI(LeafBackend):
    """A namespace of the array API standard, such as `array_api_strict`, on one of its devices.

    `xp` is a module, and `device` what its creation functions take for one, or None for the library's default.
    Needs `pip install 'adjoint[array-api]'`. Raises DeviceError for what is no module, or lacks what the standard has,
    and for a device that the library does not have.

    >>> import array_api_strict
    >>> ArrayAPI(array_api_strict)
    array_api[array_api_strict]
    """

    deviations: Mapping[str, Callable[..., Any]] = {}  # of one library, called with the backend
    bfloat16: Any = None  # the library's object for it, if it computes in that

    def __init__(self, xp: ModuleType, device: Any = None) -> None:
        super().__init__()
        if not isinstance(xp, ModuleType):
            raise errors.DeviceError(
                f"ArrayAPI: expected a module such as array_api_strict, received {errors.shown(xp)}"
            )
        if type(self) is ArrayAPI and xp.__name__ in _OWN:
            raise errors.DeviceError(f"ArrayAPI: {xp.__name__} has a backend of its own, {_OWN[xp.__name__]}")
        needed("array_api_extra", "array-api")
        self.module: ModuleType = xp
        self.device: Any = device
        self.many: bool = self.place is None  # of modules and chunks; of the devices of a library there are few
        namespace = _standard(xp)
        _living[xp.__name__] = xp
        try:
            namespace.empty((0,), device=device)
        except (ValueError, TypeError, RuntimeError, AssertionError) as error:
            raise errors.DeviceError(
                f"{xp.__name__} has no device {errors.shown(device)}: {errors.said(error)}"
            ) from error
        self.xp: Any = namespace if device is None else _Placed(namespace, device)
        # the standard leaves open whether `xp.float32` is the very dtype that arrays show
        self._theirs = {ours: getattr(namespace, ours.name) for ours in _DTYPES if hasattr(namespace, ours.name)}
        self._ours = {self.xp.empty((0,), dtype=theirs).dtype: ours for ours, theirs in self._theirs.items()}

    @staticmethod
    def living(name: str) -> ModuleType | None:
        """The module of this name, if there is a backend over it."""
        return _living.get(name)

    def configuration(self) -> tuple[Any, ...]:
        return (self.module, self.device)

    @computed_name
    def name(self) -> str:
        if self.place is not None:  # the leaf of a library
            return super().name
        return (
            f"array_api[{self.module.__name__}]"
            if self.device is None
            else f"array_api[{self.module.__name__}, {self.device}]"
        )

    def __reduce__(self) -> tuple[Any, ...]:
        return _restored, (type(self), self.module.__name__, self.device)

    def implement(self, primitive: Primitive) -> Implementation:
        name = primitive.name
        if name in self.deviations:
            return functools.partial(self.deviations[name], self)
        if name in _OVER_NAMESPACE:
            run = functools.partial(_OVER_NAMESPACE[name], self.xp)
        elif name in _TYPED:
            run = functools.partial(_TYPED[name], self)
        elif name in _STANDARD:
            run = getattr(self.xp, name)
        elif name in special.HOSTED:
            run = functools.partial(self._in_main_memory, special.HOSTED[name])
        else:
            return composed(self, primitive)
        return self._also_bools(primitive, run) if name in _ORDERING else run

    def _in_main_memory(self, function: Callable[..., Any], *operands: Array, **parameters: Any) -> Array:
        """What a function of NumPy's arrays gives."""
        values = [self.to_numpy(x) if hasattr(x, "dtype") else x for x in operands]
        return self.from_numpy(function(*values, **parameters), copy=False)

    def _also_bools(self, primitive: Primitive, run: Implementation) -> Implementation:
        """The standard orders no bools: they are compared as integers."""
        xp = self.xp

        def either(*operands: Array, **parameters: Any) -> Array:
            if not any(getattr(x, "dtype", None) == xp.bool for x in operands):
                return run(*operands, **parameters)
            out = run(*[int(x) if isinstance(x, bool) else xp.astype(x, xp.uint8) for x in operands], **parameters)
            if isinstance(out, tuple):
                return (xp.astype(out[0], xp.bool), *out[1:])
            return xp.astype(out, xp.bool) if out.dtype == xp.uint8 else out

        return either

    def dtype_of(self, array: Array) -> DType:
        try:
            return self._ours[array.dtype]
        except KeyError:
            if self.bfloat16 is not None and array.dtype == self.bfloat16:
                return self._ours.setdefault(array.dtype, dtypes.bfloat16_dtype())
            raise errors.DtypeError(
                f"{self.name}: an array of {array.dtype}, which is no data type here; convert it first, as to float32"
            ) from None

    def dtype(self, dtype: DType) -> Any:
        """The library's object for a dtype; DtypeError where it has none."""
        try:
            return self._theirs[dtype]
        except KeyError:
            if dtype.kind != "V":
                raise errors.DtypeError(f"{self.name} has no dtype {dtype}") from None
        if self.bfloat16 is None:
            raise dtypes.no_bfloat16(self.name)
        return self._theirs.setdefault(dtype, self.bfloat16)

    def computes_in(self, dtype: DType) -> bool:
        return dtype in self._theirs or (dtype.kind == "V" and self.bfloat16 is not None)

    def from_native(self, value: Any) -> Array | None:
        """An array that says itself that it is of this namespace."""
        namespace = getattr(value, "__array_namespace__", None)
        if namespace is None or namespace() is not self.module:
            return None
        return value if self.device in (None, value.device) else value.to_device(self.device)

    def copied(self, array: Array) -> Array:
        return self.xp.asarray(array, copy=True)

    def from_numpy(self, values: np.ndarray[Any, Any], *, copy: bool) -> Array:
        return self.xp.asarray(values, dtype=self.dtype(values.dtype), copy=True if copy else None)

    def transfer(self, array: Array, source: Backend) -> Array:
        """Through DLPack, without a copy where both libraries allow it; else through main memory."""
        try:
            shared = self.xp.from_dlpack(array)
        except (AttributeError, BufferError, RuntimeError, TypeError, ValueError):
            return super().transfer(array, source)
        return shared if self.device is None else self.placed(shared)

    def placed(self, array: Array) -> Array:
        """An array of the library's on the backend's device."""
        return needed("array_api_compat", "array-api").to_device(array, self.device)

    def to_numpy(self, array: Array) -> np.ndarray[Any, Any]:
        try:
            return np.from_dlpack(array)
        except (AttributeError, BufferError, RuntimeError, TypeError):
            return np.asarray(array)


def _restored(kind: type[ArrayAPI], module: str, device: Any) -> ArrayAPI:
    """The backend that was pickled, by the name of its namespace."""
    return kind(importlib.import_module(module), device)


def _standard(xp: ModuleType) -> ModuleType:
    """The namespace that follows the standard: array_api_compat's, where it knows the library."""
    try:
        return importlib.import_module(f"array_api_compat.{xp.__name__}")
    except ModuleNotFoundError:
        missing = [name for name in ("asarray", "astype", "empty", "isdtype") if not hasattr(xp, name)]
    if missing:
        raise errors.DeviceError(
            f"ArrayAPI: {xp.__name__} does not follow the array API standard: it has no {missing[0]}, and "
            "array_api_compat, which wraps some libraries that nearly do, does not know it"
        )
    return xp


class _Placed:
    """A namespace whose new arrays are made on one device."""

    def __init__(self, xp: ModuleType, device: Any) -> None:
        self._xp = xp
        for name in "asarray arange empty eye full linspace ones zeros".split():
            setattr(self, name, functools.partial(getattr(xp, name), device=device))

    def __getattr__(self, name: str) -> Any:
        found = vars(self)[name] = getattr(self._xp, name)
        return found


# the standard's own functions, whose parameters are the primitives'
_STANDARD = frozenset(
    "negative sign floor ceil trunc round square sqrt exp expm1 log log1p log2 log10 sin cos tan asin acos atan sinh "
    "cosh tanh asinh acosh atanh abs isnan isinf isfinite add subtract multiply divide remainder pow "
    "maximum minimum atan2 hypot logaddexp copysign nextafter signbit "
    "bitwise_and bitwise_or bitwise_xor bitwise_left_shift bitwise_right_shift "
    "bitwise_invert equal not_equal less less_equal greater greater_equal max min any all squeeze broadcast_to "
    "permute_dims reshape flip tril triu take_along_axis sort matmul".split()
)

_TOPICS = (elementwise, reduction, shape, indexing, scatter, sorting, convolution, linalg, fft)
_OVER_NAMESPACE: dict[str, Callable[..., Any]] = {
    name: run for topic in _TOPICS for name, run in topic.IMPLEMENTATIONS.items()
}
_TYPED = {**elementwise.TYPED, **linalg.TYPED, **creation.TYPED}  # called with the backend, for its dtypes

# called with bools by NumPy's rules, not by the standard's
_ORDERING = frozenset(
    "less less_equal greater greater_equal maximum minimum max min argmax argmin sort argsort topk searchsorted "
    "isnan isinf isfinite".split()
)
