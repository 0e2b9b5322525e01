"""Products of matrices by cuBLAS, called directly: CuPy refuses to have its own calls recorded in a CUDA graph."""

from __future__ import annotations

import ctypes
import functools
import importlib
import math
from typing import Any

from adjoint.compiler.cuda.plan import matrix
from adjoint.compiler.native.kernels import Product

_GEMM = {4: ("cublasSgemmStridedBatched", ctypes.c_float), 8: ("cublasDgemmStridedBatched", ctypes.c_double)}
_LONG, _INT, _POINTER = ctypes.c_longlong, ctypes.c_int, ctypes.c_void_p


@functools.cache
def library() -> Any:
    """The functions of the cuBLAS that CuPy itself calls; None where they are not found."""
    try:
        file: Any = importlib.import_module("cupy_backends.cuda.libs.cublas").__file__
        found = ctypes.CDLL(file)  # whose symbols include those of what it needs
        found.cublasSetStream_v2.argtypes = [_POINTER, _POINTER]
        for name, number in _GEMM.values():
            scalar, operand = ctypes.POINTER(number), [_POINTER, _INT, _LONG]
            getattr(found, name).argtypes = [
                _POINTER, _INT, _INT, _INT, _INT, _INT, scalar, *operand, *operand, scalar, *operand, _INT,
            ]  # fmt: skip
    except (ImportError, OSError, AttributeError, TypeError):
        return None
    return found


class Multiply:
    """One product, which reads and writes arrays that lie as the plan says."""

    def __init__(self, product: Product, roots: list[Any]) -> None:
        self.buffers = [*roots, product.out]
        self.text = ""
        self.out = product.out
        self._stack = product.out.shape[:-2]
        self._layouts = product.x, product.y

    def over(self) -> list[Any]:
        """What it may write over: nothing."""
        return []

    def by_cublas(self, cupy: Any, arrays: list[Any]) -> None:
        """Have the current stream compute it, without any memory beside."""
        (*_, rows), columns, inner = self.out.shape[:-1], self.out.shape[-1], self._layouts[0].shape[-1]
        size, cublas = self.out.dtype.itemsize, library()
        x, y = (matrix(layout, self._stack) for layout in self._layouts)
        assert x is not None
        assert y is not None
        name, number = _GEMM[size]
        one, zero = number(1.0), number(0.0)
        handle = cupy.cuda.device.get_cublas_handle()
        failed = cublas.cublasSetStream_v2(handle, cupy.cuda.get_current_stream().ptr)
        # cuBLAS reads matrices column by column: as the transposed product, of operands in the other order
        failed = failed or getattr(cublas, name)(
            handle, int(y[2]), int(x[2]), columns, rows, inner, one,
            arrays[1].data.ptr + y[0] * size, y[1], y[3],
            arrays[0].data.ptr + x[0] * size, x[1], x[3],
            zero, arrays[2].data.ptr, columns, rows * columns, math.prod(self._stack),
        )  # fmt: skip
        if failed:
            raise RuntimeError(f"cuBLAS: {name} gives status {failed}")

    def by_cupy(self, cupy: Any, arrays: list[Any]) -> None:
        """The same by CuPy's function."""
        xs = []
        for array, layout in zip(arrays, self._layouts, strict=False):
            size = array.dtype.itemsize
            strides = tuple([s * size for s in layout.strides])
            whole = cupy.ndarray(layout.shape, array.dtype, memptr=array.data + layout.offset * size, strides=strides)
            xs.append(whole)
        cupy.matmul(*xs, out=arrays[2])
