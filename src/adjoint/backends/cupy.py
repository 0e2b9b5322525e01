"""The leaf backend over CuPy's arrays, on one of CUDA's or ROCm's devices."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from adjoint import errors
from adjoint.backend import Array, Implementation
from adjoint.backends.array_api import ArrayAPI, needed
from adjoint.primitives import Primitive


class CuPy(ArrayAPI):
    """CuPy on the GPU of an index.

    CuPy's arrays come in without a copy. Needs `pip install 'adjoint[cupy]'` and a GPU. Raises DeviceError where
    CuPy is not installed, or there is no such GPU.
    """

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
        self.index = index
        self.name = f"cupy:{index}"

    def configuration(self) -> tuple[Any, ...]:
        return (self.index,)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), self.configuration()

    @classmethod
    def of(cls, value: Any) -> CuPy | None:
        cupy = sys.modules.get("cupy")
        return cls(value.device.id) if cupy is not None and isinstance(value, cupy.ndarray) else None

    def adopted(self, value: Any) -> Array | None:
        return self.xp.asarray(value) if isinstance(value, self.cupy.ndarray) else None

    def copied(self, array: Array) -> Array:
        return array.copy()

    def to_numpy(self, array: Array) -> np.ndarray[Any, Any]:
        return self.cupy.asnumpy(array)  # type: ignore[no-any-return]

    def implement(self, primitive: Primitive) -> Implementation:
        run, place = super().implement(primitive), self.device

        def on_device(*operands: Any, **parameters: Any) -> Any:
            with place:
                return run(*operands, **parameters)

        return on_device if self.index else run  # the first GPU is the current one
