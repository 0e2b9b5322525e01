"""The leaf backend over CuPy's arrays, on one of CUDA's or ROCm's devices."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from adjoint import errors
from adjoint.backend import Array, Implementation
from adjoint.backends import matrices, needed
from adjoint.backends.array_api import ArrayAPI
from adjoint.primitives import DType, Primitive, broadcast_shapes


class CuPy(ArrayAPI):
    """CuPy on the GPU of an index.

    CuPy's arrays come in without a copy. Needs `pip install 'adjoint[cupy]'` and a GPU. Raises DeviceError where
    CuPy is not installed, or there is no such GPU.
    """

    place = "index"

    def __init__(self, index: int = 0) -> None:
        cupy = needed("cupy", "cupy")
        if isinstance(index, bool) or not isinstance(index, int) or index < 0:
            raise errors.DeviceError(f"CuPy: a GPU is named by its index from 0, received {errors.shown(index)}")
        try:
            found = cupy.cuda.runtime.getDeviceCount()
        except cupy.cuda.runtime.CUDARuntimeError as error:
            raise errors.DeviceError(f"CuPy: there is no GPU that it can use: {error}") from error
        if index >= found:
            raise errors.DeviceError(f"CuPy: there is no GPU {index}; it finds {found}, counted from 0")
        super().__init__(cupy, cupy.cuda.Device(index))
        self.cupy = cupy
        self.number = index  # `index` is a primitive

    def configuration(self) -> tuple[Any, ...]:
        return (self.number,)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), self.configuration()

    @classmethod
    def of(cls, value: Any) -> CuPy | None:
        cupy = sys.modules.get("cupy")
        return cls(value.device.id) if cupy is not None and isinstance(value, cupy.ndarray) else None

    def from_native(self, value: Any) -> Array | None:
        return self.xp.asarray(value) if isinstance(value, self.cupy.ndarray) else None

    def copied(self, array: Array) -> Array:
        with self.device:
            return array.copy()

    def to_numpy(self, array: Array) -> np.ndarray[Any, Any]:
        return self.cupy.asnumpy(array)  # type: ignore[no-any-return]

    def implement(self, primitive: Primitive) -> Implementation:
        run, place = super().implement(primitive), self.device

        def on_device(*operands: Any, **parameters: Any) -> Any:
            with place:  # results are made on the GPU that is the current one of the thread
                return run(*operands, **parameters)

        return on_device


def _strict(run: Callable[..., Array]) -> Callable[..., Array]:
    """A function of matrices with NumPy's error for singular ones, of which CuPy tells only those who ask for it."""

    def strict(B: CuPy, *operands: Array, **how: Any) -> Array:
        with importlib.import_module("cupyx").errstate(linalg="raise"):
            return run(B.xp, *operands, **how)

    return strict


def _alike(run: Callable[..., Array]) -> Callable[..., Array]:
    """The same for two stacks of matrices, which CuPy wants to be equal."""

    def alike(xp: Any, a: Array, b: Array, **how: Any) -> Array:
        stack = broadcast_shapes(a.shape[:-2], b.shape[:-2])
        return run(xp, *[xp.broadcast_to(x, (*stack, *x.shape[-2:])) for x in (a, b)], **how)

    return _strict(alike)


def _remainder(B: CuPy, x: Array, y: Array) -> Array:
    """CuPy's is x - floor(x / y) * y, which rounding makes larger than y, and infinities nan."""
    xp = B.cupy
    if not _floats(x, y):
        return xp.remainder(x, y)
    out = xp.fmod(x, y)
    return xp.where(out == 0.0, xp.copysign(xp.zeros_like(out), y), xp.where((out < 0.0) != (y < 0.0), out + y, out))


def _floor_divide(B: CuPy, x: Array, y: Array) -> Array:
    """CuPy's is floor(x / y), where NumPy's is the quotient that belongs to the remainder: 9 for 1.0 // 0.1."""
    xp = B.cupy
    if not _floats(x, y):
        return xp.floor_divide(x, y)
    quotient = xp.divide(x, y)
    whole = xp.rint((x - _remainder(B, x, y)) / y)
    return xp.where(xp.isfinite(whole), xp.copysign(whole, quotient), quotient)


def _floats(x: Array, y: Array) -> bool:
    return (x if hasattr(x, "dtype") else y).dtype.kind == "f"  # type: ignore[no-any-return]


def _by_name(name: str) -> Callable[..., Array]:
    """A function of CuPy's beyond the standard."""
    return lambda B, *operands: getattr(B.cupy, name)(*operands)


def _linspace(B: CuPy, *, start: complex, stop: complex, num: int, endpoint: bool, dtype: DType) -> Array:
    """CuPy's knows real numbers alone."""

    def line(a: float, b: float) -> Array:
        return B.xp.linspace(a, b, num, endpoint=endpoint, dtype=np.float64 if dtype.kind == "c" else dtype)

    if dtype.kind != "c":
        return line(start, stop)  # type: ignore[arg-type]
    return B.xp.astype(line(start.real, stop.real) + 1j * line(start.imag, stop.imag), dtype)


CuPy.deviations = {
    "remainder": _remainder,
    "floor_divide": _floor_divide,
    **{name: _by_name(name) for name in ("cbrt", "gcd", "lcm")},
    "linspace": _linspace,
    "inv": _strict(lambda xp, x: xp.linalg.inv(x)),
    "cholesky": _strict(lambda xp, x: xp.linalg.cholesky(x)),
    "solve": _alike(lambda xp, a, b: xp.linalg.solve(a, b)),
    "solve_triangular": _alike(matrices.solve_triangular),
    "sqrtm": _strict(matrices.sqrtm),
    "logm": _strict(matrices.logm),
}
