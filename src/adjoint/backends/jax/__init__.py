"""The leaf backend over JAX's arrays. Every primitive is traceable: what calls nothing else runs under `jax.jit`.

No value is looked at while JAX traces: checks of values run on arrays that are there, and loops whose length depends on
values are JAX's. https://docs.jax.dev/en/latest/jax.lax.html
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any

import numpy as np

from adjoint import dtypes, errors
from adjoint.backend import Array, Backend, Implementation, LeafBackend
from adjoint.backends import needed, special
from adjoint.backends.array_api import ArrayAPI
from adjoint.backends.jax import (
    convolution,
    elementwise,
    fft,
    indexing,
    linalg,
    pooling,
    random,
    reduction,
    scatter,
    shape,
    sorting,
)
from adjoint.concrete import Staged
from adjoint.primitives import ELEMENTWISE, DType, Primitive

_DTYPES = {dtype: dtype for dtype in dtypes.ALL}


class JAX(Staged, ArrayAPI):
    """JAX on one of its devices, `"cpu"`, `"gpu:1"`, or on those where its arrays are.

    Without a device arrays stay where JAX has put them, also those that are sharded over several devices. Functions of
    tensors run under `jax.jit`, `jax.vmap` and `jax.pmap`: the first leaf registers `Tensor` as a pytree of JAX.
    JAX has 64 bits only where its setting `jax_enable_x64` says so: without it integers of 64 bits become 32 wide, and
    float64 and complex128 raise DtypeError. Random numbers are those of the NumPy leaf, and constants of a compiled
    function. Needs `pip install 'adjoint[jax]'`. Raises DeviceError where JAX is not installed, or has no such device.

    >>> import adjoint as ad
    >>> ad.tensor([1.0, 2.0], device=ad.JAX())  # doctest: +SKIP
    Tensor([1., 2.], dtype=float32, device=jax)
    """

    place = "device"

    def __init__(self, device: str | None = None) -> None:
        LeafBackend.__init__(self)
        self.jax: Any = needed("jax", "jax")
        _DTYPES.setdefault(dtypes.bfloat16_dtype(), dtypes.bfloat16_dtype())  # JAX needs ml_dtypes
        self.module, self.device = self.jax.numpy, _device(self.jax, device)
        self.xp: Any = _Namespace(self.jax, self.device)
        import_module("adjoint.functions.pytrees").register(self.jax)  # by name, because functions stand above leaves

    def configuration(self) -> tuple[Any, ...]:
        return () if self.device is None else (f"{self.device.platform}:{self.device.id}",)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), self.configuration()

    @classmethod
    def of(cls, value: Any) -> JAX | None:
        jax = sys.modules.get("jax")
        return _anywhere() if jax is not None and isinstance(value, jax.Array) else None

    def traced(self, *arrays: Array) -> bool:
        """Whether JAX traces one of them: it has no values then."""
        return any([isinstance(x, self.jax.core.Tracer) for x in arrays])

    def is_concrete(self, array: Array) -> bool:
        """Not of a tracer, a shape or whatever else JAX puts in the place of an array, or parts in other processes."""
        there = isinstance(array, self.jax.Array) and not isinstance(array, self.jax.core.Tracer)
        return there and bool(array.is_fully_addressable)

    def branch(self, index: Array, branches: Sequence[Callable[..., Any]], arrays: Sequence[Array]) -> list[Array]:
        return list(self.jax.lax.switch(index, branches, *arrays))

    def loop(
        self, goes: Callable[..., Array], step: Callable[..., Sequence[Array]], arrays: Sequence[Array]
    ) -> list[Array]:
        return self.jax.lax.while_loop(lambda xs: goes(*xs), lambda xs: list(step(*xs)), list(arrays))  # type: ignore[no-any-return]

    def call(self, f: Callable[..., None], arrays: Sequence[Array]) -> None:
        self.jax.debug.callback(lambda *values: f(*map(np.asarray, values)), *arrays, ordered=True)

    def dtype(self, dtype: DType) -> Any:
        if self.jax.config.jax_enable_x64 or dtype not in (dtypes.float64, dtypes.complex128):
            return self.xp.allowed(dtype)
        raise errors.DtypeError(
            f'{self.name} has no {dtype} as it is set: switch it on with jax.config.update("jax_enable_x64", True) '
            f"before arrays are made, or use {dtypes.float32 if dtype.kind in dtypes.FLOATING else dtypes.complex64}"
        )

    def dtype_of(self, array: Array) -> DType:
        try:
            return _DTYPES[array.dtype]
        except (KeyError, TypeError):
            return dtypes.as_dtype(array.dtype)  # raises

    def from_native(self, value: Any) -> Array | None:
        if not isinstance(value, self.jax.Array):
            return None
        self.dtype_of(value)
        if self.device is None or self.traced(value) or value.devices() == {self.device}:
            return value
        return self.placed(value)

    def copied(self, array: Array) -> Array:
        return array if self.traced(array) else self.xp.array(array, copy=True)  # which may be donated

    def transfer(self, array: Array, source: Backend) -> Array:
        """Between JAX's devices by JAX, also while it traces."""
        if isinstance(source, JAX):
            return array if self.device is None else self.placed(array)
        dtype = source.dtype_of(array)  # DLPack narrows silently
        whole = self.dtype(dtype) == dtype
        return super().transfer(array, source) if whole else LeafBackend.transfer(self, array, source)

    def placed(self, array: Array) -> Array:
        return self.jax.device_put(array, self.device)

    def from_numpy(self, values: np.ndarray[Any, Any], *, copy: bool) -> Array:
        theirs = self.dtype(values.dtype)
        if theirs != values.dtype and values.size:
            least, most = dtypes.limits(dtypes.as_dtype(theirs))
            if values.min() < least or values.max() > most:
                raise errors.RangeError(
                    f"{self.name}: integers from {values.min()} to {values.max()} do not fit in {theirs}, which "
                    f'{values.dtype} is without jax.config.update("jax_enable_x64", True)'
                )
        with self.jax.ensure_compile_time_eval():  # constants have values, also while JAX traces
            return self.xp.asarray(values, dtype=theirs, copy=True if copy else None)

    def widest(self, dtype: DType) -> DType:
        return self.xp.allowed(dtype)  # type: ignore[no-any-return]

    def computes_in(self, dtype: DType) -> bool:
        return self.widest(dtype) == dtype

    def to_numpy(self, array: Array) -> np.ndarray[Any, Any]:
        if self.traced(array):
            raise errors.TrackedError(
                f"JAX traces the tensor of shape {array.shape}, which has no values to read before the compiled "
                "function runs; return it, choose with ad.where, or show it with ad.debug.print"
            )
        try:
            array.block_until_ready()  # raises what JAX has put off: NumPy's way there may end the process
        except RuntimeError as error:
            if not self.lacks_memory(error):
                raise
            raise errors.OutOfMemoryError(f"{errors.said(error)}; ask for fewer elements") from None
        return np.asarray(array)

    def lacks_memory(self, error: Exception) -> bool:
        return isinstance(error, RuntimeError) and "Out of memory allocating" in str(error)

    def implement(self, primitive: Primitive) -> Implementation:
        if primitive.name in special.KERNELS:
            return _in_double(self.jax, special.KERNELS[primitive.name], self.xp, primitive.parameters)
        run = super().implement(primitive)
        return _beside_large(run) if primitive.kind is ELEMENTWISE and len(primitive.operands) > 1 else run

    def _in_main_memory(self, function: Callable[..., Any], *operands: Array, **parameters: Any) -> Array:
        """What a function of NumPy's arrays gives; of traced operands when the compiled function runs."""
        if not self.traced(*operands):
            return super()._in_main_memory(function, *operands, **parameters)
        dtype = next(x.dtype for x in operands if hasattr(x, "dtype"))
        arrays = self.jax.numpy.broadcast_arrays(*[self.jax.numpy.asarray(x, dtype) for x in operands])
        result = self.jax.ShapeDtypeStruct(arrays[0].shape, dtype)
        return self.jax.pure_callback(
            lambda *values: function(*map(np.asarray, values), **parameters), result, *arrays, vmap_method="expand_dims"
        )


@functools.cache
def _anywhere() -> JAX:
    return JAX()


def _device(jax: Any, name: Any) -> Any:
    """One of JAX's devices by its platform and number."""
    if name is None or isinstance(name, jax.Device):
        return name
    platform, _, number = name.partition(":") if isinstance(name, str) else ("", "", "")
    try:
        if not platform:
            raise ValueError("a device is named by its platform and number")
        if not number:
            return jax.local_devices(backend=platform)[0]
        return next(place for place in jax.devices(platform) if place.id == int(number))
    except (RuntimeError, ValueError, StopIteration) as error:
        known = ", ".join([f"{d.platform}:{d.id}" for d in jax.devices()])
        raise errors.DeviceError(
            f"JAX: no device {errors.shown(name)}; there are {known}, and jax.devices(...) shows others"
        ) from error


class _Namespace:
    """`jax.numpy`, with the dtypes that JAX's setting allows at the time, and new arrays on one device, if any."""

    def __init__(self, jax: Any, device: Any) -> None:
        self._jax, self._device = jax, device
        self.traced_loop = jax.lax.while_loop  # for kernels: their loops are traced
        for name in "arange empty eye full linspace ones zeros".split():
            setattr(self, name, functools.partial(getattr(jax.numpy, name), device=device))

    def __getattr__(self, name: str) -> Any:
        found = vars(self)[name] = getattr(self._jax.numpy, name)
        return found

    def allowed(self, dtype: DType) -> DType:
        return dtypes.as_dtype(self._jax.dtypes.canonicalize_dtype(dtype))

    @property
    def int64(self) -> DType:
        return self.allowed(dtypes.int64)

    @property
    def uint64(self) -> DType:
        return self.allowed(dtypes.uint64)

    @property
    def float64(self) -> DType:
        return self.allowed(dtypes.float64)

    @property
    def complex128(self) -> DType:
        return self.allowed(dtypes.complex128)

    def asarray(self, values: Any, dtype: Any = None, copy: Any = None) -> Array:
        device = None if isinstance(values, self._jax.Array) else self._device
        return self._jax.numpy.asarray(values, dtype=dtype, copy=copy, device=device)


def _beside_large(run: Implementation) -> Implementation:
    """A function of several operands, also beside Python's integers that only uint64 holds: JAX takes none of them."""

    def either(*operands: Array, **parameters: Any) -> Array:
        try:
            return run(*operands, **parameters)
        except OverflowError:
            if not any(isinstance(x, int) for x in operands):
                raise
        return run(*[np.uint64(x) if isinstance(x, int) else x for x in operands], **parameters)

    return either


def _in_double(jax: Any, kernel: Callable[..., Array], xp: Any, parameters: tuple[str, ...]) -> Implementation:
    """A kernel of special functions, which computes in double precision also where JAX is set to have none."""
    run = jax.jit(functools.partial(kernel, xp), static_argnames=parameters)

    def in_double(*operands: Array, **how: Any) -> Array:
        dtype = next(x.dtype for x in operands if hasattr(x, "dtype"))
        with jax.enable_x64(True):
            wide = [jax.numpy.asarray(x, dtype=dtypes.float64) for x in operands]
            return jax.lax.convert_element_type(run(*wide, **how), dtype)

    return in_double


_TOPICS = (elementwise, reduction, shape, indexing, scatter, sorting, convolution, pooling, linalg, fft, random)
JAX.deviations = {name: run for topic in _TOPICS for name, run in topic.IMPLEMENTATIONS.items()}
