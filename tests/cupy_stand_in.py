"""A stand-in for CuPy made of NumPy.

It has CuPy's documented ways where they differ from NumPy's: new arrays are on the thread's current device, linear
algebra says nothing of singular matrices unless it is asked to, and takes no stacks that differ.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest


class Device:
    """A GPU; `with` makes it the current one."""

    current = 0

    def __init__(self, index: Any = None) -> None:
        self.id = Device.current if index is None else getattr(index, "id", index)
        self._before: list[int] = []

    def __enter__(self) -> None:
        self._before.append(Device.current)
        Device.current = self.id

    def __exit__(self, *error: Any) -> None:
        Device.current = self._before.pop()

    __hash__ = None  # type: ignore[assignment]  # as CuPy's


class Pointer:
    """Where an array is in memory, with a distance in bytes."""

    def __init__(self, array: Any, offset: int = 0) -> None:
        self.array, self.offset = array, offset

    @property
    def ptr(self) -> int:
        return int(self.array.ctypes.data) + self.offset

    def __add__(self, offset: int) -> Pointer:
        return Pointer(self.array, self.offset + offset)


class Placed(np.ndarray):  # type: ignore[type-arg]
    """An array that knows the device that was current when it was made."""

    device: Any = None  # over NumPy's attribute, which nobody can set

    def __new__(cls, shape: Any, dtype: Any = float, memptr: Any = None, strides: Any = None) -> Any:
        if memptr is None:
            return super().__new__(cls, shape, dtype)
        source: Any = memptr.array.reshape(-1).view(np.uint8)
        return super().__new__(cls, shape, dtype, buffer=source, offset=memptr.offset, strides=strides)

    @property
    def data(self) -> Any:
        return Pointer(self)

    def __array_finalize__(self, source: Any) -> None:
        self.device = Device()


def _made(function: Any) -> Any:
    return lambda *args, device=None, **how: np.asarray(function(*args, **how)).view(Placed)


def _linalg(function: Any, *, raises: list[bool]) -> Any:
    def run(*operands: Any) -> Any:
        if len(operands) == 2 and operands[0].shape[:-1] != operands[1].shape[:-1]:
            raise ValueError("a must have (..., M, M) shape and b must have (..., M, K)")
        try:
            return _made(function)(*operands)
        except np.linalg.LinAlgError:
            if raises[-1]:
                raise
            return np.full_like(operands[-1], 7.0)

    return run


def _real(a: Any, b: Any, num: int, *, dtype: Any, **how: Any) -> Any:
    assert np.isrealobj(a)
    assert np.isrealobj(b)
    assert np.dtype(dtype).kind != "c"
    return np.linspace(a, b, num, dtype=dtype, **how)


def installed(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The module, in the place of CuPy until the test ends."""
    raises = [False]

    @contextlib.contextmanager
    def errstate(*, linalg: str) -> Iterator[None]:
        raises.append(linalg == "raise")
        try:
            yield
        finally:
            raises.pop()

    class Standard(ModuleType):
        """Also the namespace that follows the standard."""

        def __getattr__(self, name: str) -> Any:
            found = getattr(np, name)
            return _made(found) if callable(found) and not isinstance(found, type) and name != "isdtype" else found

    standard = Standard("cupy")
    standard.asarray = lambda x, *, dtype=None, device=None, copy=None: placed(x, dtype, device)  # type: ignore[attr-defined]
    standard.ndarray = Placed  # type: ignore[attr-defined]
    standard.asnumpy = lambda x: np.array(x)  # type: ignore[attr-defined]
    standard.linspace = _made(_real)  # type: ignore[attr-defined]
    standard.floor_divide = _made(lambda x, y: np.floor(x / y) if x.dtype.kind == "f" else np.floor_divide(x, y))  # type: ignore[attr-defined]
    standard.remainder = _made(lambda x, y: x - np.floor(x / y) * y)  # type: ignore[attr-defined]
    standard.linalg = SimpleNamespace(  # type: ignore[attr-defined]
        **{name: _linalg(getattr(np.linalg, name), raises=raises) for name in ("inv", "solve", "cholesky", "det")}
    )
    runtime = SimpleNamespace(getDeviceCount=lambda: 2, CUDARuntimeError=RuntimeError)
    standard.cuda = SimpleNamespace(Device=Device, runtime=runtime)  # type: ignore[attr-defined]
    for name, module in {
        "cupy": standard,
        "cupyx": SimpleNamespace(errstate=errstate),
        "array_api_compat.cupy": standard,
    }.items():
        monkeypatch.setitem(sys.modules, name, module)
    monkeypatch.setattr("adjoint.backend._Interned._leaves", {})  # no backend over the stand-in outlives the test
    return standard


def placed(x: Any, dtype: Any, device: Any) -> Any:
    with device or Device():
        return np.array(x, dtype=dtype).view(Placed)
