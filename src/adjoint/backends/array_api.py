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
import math
from collections.abc import Callable, Mapping
from types import ModuleType
from typing import Any

import numpy as np

from adjoint import dtypes, errors
from adjoint.backend import Array, Backend, Implementation, LeafBackend
from adjoint.backends import composed, convolution, matrices, special
from adjoint.backends.numpy import linalg as numpy_linalg
from adjoint.backends.numpy import random
from adjoint.primitives import ARRAY, DType, Key, Primitive, Shape, adjacent, broadcast_shapes, index_shape, slices

_DTYPES = (
    dtypes.bool, dtypes.int8, dtypes.int16, dtypes.int32, dtypes.int64, dtypes.uint8, dtypes.uint16, dtypes.uint32,
    dtypes.uint64, dtypes.float16, dtypes.float32, dtypes.float64, dtypes.complex64, dtypes.complex128,
)  # fmt: skip


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

    def __init__(self, xp: ModuleType, device: Any = None) -> None:
        super().__init__()
        if not isinstance(xp, ModuleType):
            raise errors.DeviceError(f"ArrayAPI: expected a module such as array_api_strict, received {xp!r}")
        if type(self) is ArrayAPI and xp.__name__ in _OWN:
            raise errors.DeviceError(f"ArrayAPI: {xp.__name__} has a backend of its own, {_OWN[xp.__name__]}")
        needed("array_api_extra", "array-api")
        self.module, self.device = xp, device
        namespace = _standard(xp)
        try:
            namespace.empty((0,), device=device)
        except (ValueError, TypeError, RuntimeError, AssertionError) as error:
            raise errors.DeviceError(f"{xp.__name__} has no device {errors.shown(device)}: {error}") from error
        self.xp: Any = namespace if device is None else _Placed(namespace, device)
        # the standard leaves open whether `xp.float32` is the very dtype that arrays show
        self._theirs = {ours: getattr(namespace, ours.name) for ours in _DTYPES if hasattr(namespace, ours.name)}
        self._ours = {self.xp.empty((0,), dtype=theirs).dtype: ours for ours, theirs in self._theirs.items()}

    def configuration(self) -> tuple[Any, ...]:
        return (self.module, self.device)

    @property
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
        if name in _COMPOSED:
            run = functools.partial(_COMPOSED[name], self.xp)
        elif name in _TYPED:
            run = functools.partial(_TYPED[name], self)
        elif name in _STANDARD:
            run = getattr(self.xp, name)
        else:
            return composed(self, primitive)
        return self._also_bools(primitive, run) if name in _ORDERING else run

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
            raise errors.DtypeError(
                f"{self.name}: an array of {array.dtype}, which is no data type here; convert it first, as to float32"
            ) from None

    def dtype(self, dtype: DType) -> Any:
        """The library's object for a dtype; DtypeError where it has none."""
        try:
            return self._theirs[dtype]
        except KeyError:
            raise errors.DtypeError(f"{self.name} has no dtype {dtype}") from None

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


def needed(module: str, extra: str) -> Any:
    """A module of an optional library. Raises DeviceError that says what to install."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise errors.DeviceError(f"{error}; install it, as with pip install 'adjoint[{extra}]'") from error


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


def _written(x: Array, key: Any, value: Array) -> Array:
    """An array that nobody else holds with a value at a key, also where a library's arrays never change."""
    return needed("array_api_extra", "array-api").at(x, key).set(value)


# --- elementwise ---------------------------------------------------------------------------------


def _kind(xp: Any, x: Array, kind: str) -> bool:
    return xp.isdtype(x.dtype, kind)  # type: ignore[no-any-return]


def _arrays(xp: Any, *operands: Array) -> list[Array]:
    """Operands as arrays; Python scalars take the dtype of the first array."""
    python = (bool, int, float, complex)  # not what only inherits from these, such as NumPy's numbers, which are arrays
    dtype = next(x.dtype for x in operands if x.__class__ not in python)
    return [xp.asarray(x, dtype=dtype) if x.__class__ in python else x for x in operands]


def _truth(xp: Any, x: Array) -> Array:
    if isinstance(x, (int, float, complex)):
        return bool(x)
    return x if x.dtype == xp.bool else x != 0


def _logical(name: str) -> Callable[..., Array]:
    """A logical function, which the standard has for bools alone."""

    def run(xp: Any, *operands: Array) -> Array:
        return getattr(xp, name)(*[_truth(xp, x) for x in operands])

    return run


def _real(xp: Any, x: Array) -> Array:
    return xp.real(x) if _kind(xp, x, "complex floating") else x


def _imag(xp: Any, x: Array) -> Array:
    return xp.imag(x) if _kind(xp, x, "complex floating") else xp.zeros_like(x)


def _conj(xp: Any, x: Array) -> Array:
    return xp.conj(x) if _kind(xp, x, "complex floating") else x


def _where(xp: Any, condition: Array, x: Array, y: Array) -> Array:
    return xp.where(condition, *_arrays(xp, x, y))


def _clip(xp: Any, x: Array, low: Array, high: Array) -> Array:
    x, low, high = _arrays(xp, x, low, high)
    return xp.minimum(xp.maximum(x, low), high)


def _absorbing_multiply(xp: Any, x: Array, y: Array) -> Array:
    x, y = _arrays(xp, x, y)
    zero = xp.zeros((), dtype=x.dtype)
    return xp.where(y == 0, zero, x) * xp.where(x == 0, zero, y)


def floor_divide(xp: Any, x: Array, y: Array) -> Array:
    """Many libraries follow Python beside infinities (inf // 2 is nan), the standard follows the quotient."""
    x, y = _arrays(xp, x, y)
    out = xp.floor_divide(x, y)
    if not _kind(xp, out, "real floating"):
        return out
    return xp.where(xp.logical_or(xp.isinf(x), xp.isinf(y)), xp.divide(x, y), out)


def _expit(xp: Any, x: Array) -> Array:
    if _kind(xp, x, "complex floating"):
        return 1.0 / (1.0 + xp.exp(-x))
    t = xp.exp(-xp.abs(x))  # never overflows
    return xp.where(x >= 0.0, xp.ones_like(t), t) / (1.0 + t)


def astype(B: ArrayAPI, x: Array, *, dtype: DType) -> Array:
    if dtype.kind == "b":
        return _truth(B.xp, x)
    return B.xp.astype(x if dtype.kind == "c" else _real(B.xp, x), B.dtype(dtype))


def _binary_exponent(xp: Any, x: Array) -> Array:
    """The logarithm says it up to one; numbers that are too small for that are made larger first."""
    size = xp.abs(x)
    none = (size == 0.0) | ~xp.isfinite(size)
    size = xp.where(none, xp.ones_like(size), size)
    small = size < 2.0**-100
    size = xp.where(small, size, xp.zeros_like(size)) * 2.0**64 * 2.0**64 + xp.where(small, xp.zeros_like(size), size)
    power = xp.floor(xp.log2(size)) + 1.0
    mantissa = size * 0.5 ** (power // 2.0) * 0.5 ** (power - power // 2.0)
    power = power + xp.astype(mantissa >= 1.0, x.dtype) - xp.astype(mantissa < 0.5, x.dtype)
    power = xp.where(small, power - 128.0, power)
    return xp.astype(xp.where(none, xp.zeros_like(power), power), xp.int32)


# --- reductions ----------------------------------------------------------------------------------


def _sum(xp: Any, x: Array, *, axis: tuple[int, ...], keepdims: bool) -> Array:
    return xp.sum(x, axis=axis, keepdims=keepdims, dtype=x.dtype)


def _prod(xp: Any, x: Array, *, axis: tuple[int, ...], keepdims: bool) -> Array:
    return xp.prod(x, axis=axis, keepdims=keepdims, dtype=x.dtype)


def _place_of(name: str) -> Callable[..., Array]:
    def run(xp: Any, x: Array, *, axis: int | None, keepdims: bool) -> Array:
        return xp.astype(getattr(xp, name)(x, axis=axis, keepdims=keepdims), xp.int64, copy=False)

    return run


def logsumexp(xp: Any, x: Array, *, axis: tuple[int, ...], keepdims: bool) -> Array:
    if any(x.shape[i] == 0 for i in axis):
        shape = [1 if i in axis else n for i, n in enumerate(x.shape) if keepdims or i not in axis]
        return xp.full(tuple(shape), -math.inf, dtype=x.dtype)
    top = xp.max(x, axis=axis, keepdims=True)
    top = _where(xp, xp.isfinite(top), top, 0.0)
    out = xp.log(xp.sum(xp.exp(x - top), axis=axis, keepdims=True)) + top
    return out if keepdims else xp.squeeze(out, axis=axis)


def labels_error(xp: Any, labels: Array, classes: int) -> errors.OutOfRangeError:
    return errors.OutOfRangeError(
        f"cross entropy: targets from {int(xp.min(labels))} to {int(xp.max(labels))}, but the logits have "
        f"{classes} classes; targets are class numbers from 0"
    )


def _softmax_cross_entropy(xp: Any, x: Array, labels: Array) -> Array:
    classes = x.shape[-1]
    if math.prod(labels.shape) and bool(xp.any((labels < 0) | (labels >= classes))):
        raise labels_error(xp, labels, classes)
    if classes:  # beside a large logit its logsumexp rounds the logarithm of a sum away
        x = x - xp.max(x, axis=-1, keepdims=True)
    picked = xp.take_along_axis(x, xp.expand_dims(labels, axis=-1), axis=-1)
    return logsumexp(xp, x, axis=(x.ndim - 1,), keepdims=False) - xp.squeeze(picked, axis=-1)


# --- structure and indexing ----------------------------------------------------------------------


def _expand_dims(xp: Any, x: Array, *, axis: tuple[int, ...]) -> Array:
    for i in sorted(axis):
        x = xp.expand_dims(x, axis=i)
    return x


def _pad(xp: Any, x: Array, *, widths: tuple[tuple[int, int], ...], value: Any) -> Array:
    shape = tuple([n + before + after for n, (before, after) in zip(x.shape, widths, strict=True)])
    inside = tuple([slice(before, before + n) for n, (before, _) in zip(x.shape, widths, strict=True)])
    return _written(xp.full(shape, value, dtype=x.dtype), inside, x)


def _basic(shape: Shape, key: Key) -> tuple[Any, ...]:
    """A key without arrays in the form that the standard promises: all axes named, bounds in range."""
    sizes = iter(shape)
    out: list[Any] = []
    for entry in slices(key):
        if entry is None:
            out.append(None)
            continue
        size = next(sizes)
        if isinstance(entry, slice):
            places = range(*entry.indices(size))
            if not places:
                entry = slice(0, 0, 1)
            else:
                stop = places[-1] + (1 if places.step > 0 else -1)
                entry = slice(places[0], None if stop < 0 else stop, places.step)
        out.append(entry)
    return (*out, *[slice(None)] * len(list(sizes)))


def _flat_places(xp: Any, shape: Shape, arrays: tuple[Array, ...], key: Key) -> tuple[Array, Shape]:
    """Where the elements of `x[key]` stand in the flattened `x`, flat, and the shape of `x[key]`.

    The standard has no keys that mix integer arrays with slices; sums of strides say the same.
    """
    target = index_shape(shape, *[a.shape for a in arrays], key=key)
    common = broadcast_shapes(*[a.shape for a in arrays])
    block = next(i for i, entry in enumerate(key) if entry is ARRAY or isinstance(entry, int)) if adjacent(key) else 0
    pending, rest = (iter(arrays), [i for i in range(len(target)) if not block <= i < block + len(common)])
    axes = iter(rest)  # the result's axes that slices and None make
    total = xp.zeros(target, dtype=xp.int64)
    axis = 0
    for entry in [*slices(key), *[slice(None)] * (len(shape) - sum(entry is not None for entry in key))]:
        if entry is None:
            next(axes)
            continue
        size, stride = shape[axis], math.prod(shape[axis + 1 :])
        axis += 1
        if entry is ARRAY:
            places = xp.astype(next(pending), xp.int64)
            places = xp.where(places < 0, places + size, places)
            after = len(target) - block - len(common)
            places = xp.reshape(places, (*places.shape, *(1,) * after))
        elif isinstance(entry, slice):
            chosen, at = range(*entry.indices(size)), next(axes)
            places = xp.arange(chosen.start, chosen.start + len(chosen) * chosen.step, chosen.step, dtype=xp.int64)
            places = xp.reshape(places, (len(chosen), *(1,) * (len(target) - at - 1)))
        else:
            places = xp.asarray(entry % size, dtype=xp.int64)
        total = total + places * stride
    return xp.reshape(total, (-1,)), target


def index(xp: Any, x: Array, *arrays: Array, key: Key) -> Array:
    if not arrays:
        return x[_basic(x.shape, key)]
    places, shape = _flat_places(xp, x.shape, arrays, key)
    return xp.reshape(xp.take(xp.reshape(x, (-1,)), places, axis=0), shape)


def _assigned(xp: Any, x: Array, value: Array, key: Key, *, add: bool) -> Array:
    """A copy of `x` with a value written or added at a key without arrays."""
    out = xp.asarray(x, copy=True)
    if not isinstance(value, (int, float, complex)):
        value = xp.broadcast_to(value, index_shape(x.shape, key=key))
        value = value[(*[0 if entry is None else slice(None) for entry in key if not isinstance(entry, int)], ...)]
    places = tuple(entry for entry in _basic(x.shape, key) if entry is not None)
    if add:
        value = (out[places] | value) if out.dtype == xp.bool else out[places] + value
    return _written(out, places, value)


def index_set(xp: Any, x: Array, value: Array, *arrays: Array, key: Key) -> Array:
    if not arrays:
        return _assigned(xp, x, value, key, add=False)
    flat, values, order, first, last = _writers(xp, x, value, arrays, key)
    if not order.shape[0]:
        return x
    latest = xp.take(order, xp.where(last > first, last - 1, 0), axis=0)
    return xp.reshape(xp.where(last > first, xp.take(values, latest, axis=0), flat), x.shape)


def index_add(xp: Any, x: Array, value: Array, *arrays: Array, key: Key) -> Array:
    if not arrays:
        return _assigned(xp, x, value, key, add=True)
    return _joined(xp, xp.logical_or if x.dtype == xp.bool else xp.add, x, value, arrays, key)


def _joining(name: str) -> Callable[..., Array]:
    """Elements at a key joined with a value by a function of two numbers."""

    def run(xp: Any, x: Array, value: Array, *arrays: Array, key: Key) -> Array:
        join = getattr(xp, name)
        if arrays:
            return _joined(xp, join, x, value, arrays, key)
        part = index(xp, x, key=key)
        return _assigned(xp, x, join(*_arrays(xp, part, value)), key, add=False)

    return run


def _joined(xp: Any, join: Any, x: Array, value: Array, arrays: tuple[Array, ...], key: Key) -> Array:
    flat, values, order, first, last = _writers(xp, x, value, arrays, key)
    if not order.shape[0]:
        return x
    for rank in range(int(xp.max(last - first))):  # once more for each time that one place is named
        hit = first + rank < last
        joined = xp.take(values, xp.take(order, xp.where(hit, first + rank, 0), axis=0), axis=0)
        flat = xp.where(hit, join(flat, joined), flat)
    return xp.reshape(flat, x.shape)


def _writers(xp: Any, x: Array, value: Array, arrays: tuple[Array, ...], key: Key) -> tuple[Array, ...]:
    """What a scatter needs, which the standard lacks: the writers sorted by place, and each place's run of them.

    Flat `x`, flat values, the writers' numbers by place and then in order, and where the run of each
    place begins and ends in that.
    """
    places, shape = _flat_places(xp, x.shape, arrays, key)
    x, value = _arrays(xp, x, value)
    values = xp.reshape(xp.broadcast_to(value, shape), (-1,))
    order = xp.argsort(places, stable=True)
    ordered = xp.take(places, order, axis=0)
    everywhere = xp.arange(math.prod(x.shape), dtype=xp.int64)
    first, last = (xp.searchsorted(ordered, everywhere, side=side) for side in ("left", "right"))
    return xp.reshape(x, (-1,)), values, order, first, last


def _argsort(xp: Any, x: Array, *, axis: int, descending: bool) -> Array:
    return xp.astype(xp.argsort(x, axis=axis, descending=descending, stable=True), xp.int64, copy=False)


def _topk(xp: Any, x: Array, *, k: int, axis: int, largest: bool) -> tuple[Array, Array]:
    order = _argsort(xp, x, axis=axis, descending=largest)
    places = order[(*[slice(None)] * axis, slice(0, k), ...)]
    return xp.take_along_axis(x, places, axis=axis), places


def _searchsorted(xp: Any, x: Array, values: Array, *, side: str) -> Array:
    if x.ndim == 1:
        return xp.astype(xp.searchsorted(x, values, side=side), xp.int64, copy=False)
    found = needed("array_api_extra", "array-api").searchsorted(x, values, side=side)
    return xp.astype(found, xp.int64, copy=False)


def _nonzero(xp: Any, x: Array) -> Array:
    return xp.astype(xp.stack(xp.nonzero(x)), xp.int64, copy=False)


def _convolve(xp: Any, a: Array, v: Array, *, full: bool) -> Array:
    """A sum over the places of the second operand."""
    n, m = a.shape[-1], v.shape[-1]
    if full:
        around = [[(0, 0)] * (max(a.ndim, v.ndim) - 1) + [(j, m - 1 - j)] for j in range(m)]
        return sum(_pad(xp, a * v[..., j : j + 1], widths=tuple(around[j]), value=0) for j in range(m))
    return sum(a[..., m - 1 - j : n - j] * v[..., j : j + 1] for j in range(m))


# --- linear algebra ------------------------------------------------------------------------------


def _linalg(name: str) -> Callable[..., Array]:
    def run(xp: Any, *operands: Array) -> Array:
        return getattr(xp.linalg, name)(*operands)

    return run


def _eig(name: str) -> Callable[..., Array]:
    """Eigenvalues of any matrix, which the standard does not have: NumPy finds them, in main memory."""

    def run(B: ArrayAPI, x: Array) -> Any:
        out = numpy_linalg.IMPLEMENTATIONS[name](B.to_numpy(x))
        if isinstance(out, tuple):
            return tuple([B.from_numpy(part, copy=False) for part in out])
        return B.from_numpy(out, copy=False)

    return run


# --- Fourier transforms --------------------------------------------------------------------------


def fft(xp: Any, x: Array, *, axis: tuple[int, ...], inverse: bool, norm: str) -> Array:
    return (xp.fft.ifftn if inverse else xp.fft.fftn)(x, axes=axis, norm=norm) if axis else x


def rfft(xp: Any, x: Array, *, axis: int, inverse: bool, norm: str) -> Array:
    return (xp.fft.ihfft if inverse else xp.fft.rfft)(x, axis=axis, norm=norm)


def hfft(xp: Any, x: Array, *, axis: int, size: int, inverse: bool, norm: str) -> Array:
    return (xp.fft.irfft if inverse else xp.fft.hfft)(x, n=size, axis=axis, norm=norm)


# --- creation and random numbers -----------------------------------------------------------------


def _full(B: ArrayAPI, *, shape: Shape, value: Any, dtype: DType) -> Array:
    return B.xp.full(shape, value, dtype=B.dtype(dtype))


def _arange(B: ArrayAPI, *, start: float, stop: float, step: float, dtype: DType) -> Array:
    return B.xp.arange(start, stop, step, dtype=B.dtype(dtype))


def _linspace(B: ArrayAPI, *, start: complex, stop: complex, num: int, endpoint: bool, dtype: DType) -> Array:
    return B.xp.linspace(start, stop, num, endpoint=endpoint, dtype=B.dtype(dtype))


def _eye(B: ArrayAPI, *, rows: int, columns: int, k: int, dtype: DType) -> Array:
    return B.xp.eye(rows, columns, k=k, dtype=B.dtype(dtype))


def _random(function: Callable[..., Any]) -> Callable[..., Array]:
    """The numbers that the NumPy leaf draws, so that a key means the same everywhere."""

    def run(B: ArrayAPI, *operands: Array, **parameters: Any) -> Array:
        return B.from_numpy(function(*map(B.to_numpy, operands), **parameters), copy=False)

    return run


# the standard's own functions, whose parameters are the primitives'
_STANDARD = frozenset(
    "negative sign floor ceil trunc round square sqrt exp expm1 log log1p log2 log10 sin cos tan asin acos atan sinh "
    "cosh tanh asinh acosh atanh abs isnan isinf isfinite add subtract multiply divide remainder pow "
    "maximum minimum atan2 hypot logaddexp copysign nextafter signbit "
    "bitwise_and bitwise_or bitwise_xor bitwise_left_shift bitwise_right_shift "
    "bitwise_invert equal not_equal less less_equal greater greater_equal max min any all squeeze broadcast_to "
    "permute_dims reshape flip tril triu take_along_axis sort matmul".split()
)

# called with the namespace
_COMPOSED: dict[str, Callable[..., Any]] = {
    "logical_not": _logical("logical_not"),
    "logical_and": _logical("logical_and"),
    "logical_or": _logical("logical_or"),
    "logical_xor": _logical("logical_xor"),
    "real": _real,
    "imag": _imag,
    "conj": _conj,
    "where": _where,
    "clip": _clip,
    "floor_divide": floor_divide,
    "absorbing_multiply": _absorbing_multiply,
    "expit": _expit,
    "binary_exponent": _binary_exponent,
    "erf": special.erf,
    **special.KERNELS,
    "relu": lambda xp, x: xp.maximum(x, 0),
    "softplus": lambda xp, x: xp.logaddexp(x, 0.0),
    "relu_pullback": lambda xp, g, out: xp.where(out <= 0, xp.zeros_like(out), g),
    "sum": _sum,
    "prod": _prod,
    "argmax": _place_of("argmax"),
    "argmin": _place_of("argmin"),
    "cumulative_sum": lambda xp, x, *, axis: xp.cumulative_sum(x, axis=axis, dtype=x.dtype),
    "cumulative_prod": lambda xp, x, *, axis: xp.cumulative_prod(x, axis=axis, dtype=x.dtype),
    "logsumexp": logsumexp,
    "softmax_cross_entropy": _softmax_cross_entropy,
    "expand_dims": _expand_dims,
    "concat": lambda xp, *xs, axis: xp.concat(xs, axis=axis),
    "pad": _pad,
    "index": index,
    "index_set": index_set,
    "index_add": index_add,
    "index_multiply": _joining("multiply"),
    "index_max": _joining("maximum"),
    "index_min": _joining("minimum"),
    "argsort": _argsort,
    "topk": _topk,
    "nonzero": _nonzero,
    "convolve": _convolve,
    "searchsorted": _searchsorted,
    "conv": convolution.conv,
    "conv_input": convolution.conv_input,
    "conv_weight": convolution.conv_weight,
    "inv": _linalg("inv"),
    "det": _linalg("det"),
    "cholesky": _linalg("cholesky"),
    "solve": _linalg("solve"),
    "slogdet": _linalg("slogdet"),
    "eigh": _linalg("eigh"),
    "eigvalsh": _linalg("eigvalsh"),
    "svd": lambda xp, x, *, full_matrices: xp.linalg.svd(x, full_matrices=full_matrices),
    "svdvals": _linalg("svdvals"),
    "qr": lambda xp, x, *, complete: xp.linalg.qr(x, mode="complete" if complete else "reduced"),
    **{name: getattr(matrices, name) for name in "solve_triangular lu expm cofactor cofactor_pullback".split()},
    "fft": fft,
    "rfft": rfft,
    "hfft": hfft,
}

# called with the backend, for its dtypes
_TYPED: dict[str, Callable[..., Any]] = {
    "eig": _eig("eig"),
    "eigvals": _eig("eigvals"),
    "astype": astype,
    "full": _full,
    "arange": _arange,
    "linspace": _linspace,
    "eye": _eye,
    **{name: _random(run) for name, run in random.IMPLEMENTATIONS.items()},
}

# called with bools by NumPy's rules, not by the standard's
_ORDERING = frozenset(
    "less less_equal greater greater_equal maximum minimum max min argmax argmin sort argsort topk searchsorted "
    "isnan isinf isfinite".split()
)
