"""What the CuPy leaf does about CuPy's own ways, on a stand-in for CuPy made of NumPy: no GPU is needed.

The stand-in has CuPy's documented ways where they differ from NumPy's: new arrays are on the thread's current device,
linear algebra says nothing of singular matrices unless it is asked to, and takes no stacks that differ.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest

import adjoint as ad
from adjoint import errors
from adjoint.backends.cupy import CuPy
from adjoint.primitives import TABLE

pytest.importorskip("array_api_extra")


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


class Placed(np.ndarray):  # type: ignore[type-arg]
    """An array that knows the device that was current when it was made."""

    device: Any = None  # over NumPy's attribute, which nobody can set

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


@pytest.fixture(autouse=True)
def cupy(monkeypatch: pytest.MonkeyPatch) -> Any:
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
    standard.asarray = lambda x, *, dtype=None, device=None, copy=None: _placed(x, dtype, device)  # type: ignore[attr-defined]
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


def _placed(x: Any, dtype: Any, device: Any) -> Any:
    with device or Device():
        return np.array(x, dtype=dtype).view(Placed)


def run(B: Any, name: str, *operands: Any, **how: Any) -> Any:
    arrays = [B.from_numpy(np.asarray(x), copy=True) if isinstance(x, np.ndarray) else x for x in operands]
    return B[TABLE[name]](*arrays, **how)


def test_names_and_indices() -> None:
    assert ad.device("cupy") is ad.device("cupy:0") is CuPy()
    assert ad.device("cupy:1") is CuPy(1) is not CuPy()
    for wrong in (2, -1, "1", True, 1.0):
        with pytest.raises(errors.DeviceError, match="CuPy"):
            CuPy(wrong)  # type: ignore[arg-type]


def test_the_namespace_is_that_of_the_standard(monkeypatch: pytest.MonkeyPatch, cupy: Any) -> None:
    own = ModuleType("array_api_compat.cupy")
    vars(own).update(vars(cupy), __getattr__=cupy.__getattr__)
    monkeypatch.setitem(sys.modules, "array_api_compat.cupy", own)
    own.full = lambda shape, value, *, dtype, device: _placed(np.full(shape, value), dtype, device) + 1  # type: ignore[attr-defined]
    assert run(CuPy(), "full", shape=(2,), value=1.0, dtype=ad.float64).tolist() == [2.0, 2.0]


def test_cupy_by_the_standard_alone_is_refused(cupy: Any) -> None:
    with pytest.raises(errors.DeviceError, match=r"ad\.CuPy\(\)"):
        ad.ArrayAPI(cupy)


@pytest.mark.parametrize("index", [0, 1])
def test_everything_is_made_on_the_device(index: int) -> None:
    B = CuPy(index)
    with Device(1 - index):  # which somebody else made the current one
        x = B.from_numpy(np.arange(4.0), copy=True)
        assert x.device.id == index
        assert B.copied(x).device.id == index
        assert B.from_native(x).device.id == index
        assert B.add(x, x).device.id == index
        assert B.full(shape=(2,), value=1.0, dtype=ad.float64).device.id == index
        assert B.index_add(x, 1.0, key=(slice(0, 2),)).device.id == index
        assert Device.current == 1 - index
        assert CuPy.of(x) is B


@pytest.mark.parametrize(
    ("name", "operands"),
    [
        ("inv", [np.zeros((2, 2))]),
        ("cholesky", [-np.eye(2)]),
        ("solve", [np.zeros((2, 2)), np.ones((2, 1))]),
        ("solve_triangular", [np.zeros((2, 2)), np.ones((2, 1))]),
    ],
)
def test_singular_matrices_are_errors(name: str, operands: list[Any]) -> None:
    how = {"upper": True, "unit": False} if name == "solve_triangular" else {}
    with pytest.raises(np.linalg.LinAlgError):
        run(CuPy(), name, *operands, **how)


@pytest.mark.parametrize("shapes", [((2, 2), (3, 2, 1)), ((3, 2, 2), (2, 1)), ((3, 1, 2, 2), (4, 2, 5))])
@pytest.mark.parametrize("name", ["solve", "solve_triangular"])
def test_stacks_broadcast(name: str, shapes: Any) -> None:
    rng = np.random.default_rng(0)
    a, b = (rng.uniform(1.0, 2.0, shape) for shape in shapes)
    a = np.triu(a) + np.eye(2)
    how = {"upper": True, "unit": False} if name == "solve_triangular" else {}
    np.testing.assert_allclose(run(CuPy(), name, a, b, **how), np.linalg.solve(a, b))


@pytest.mark.parametrize("dtype", ["float64", "float32", "int32", "uint8"])
@pytest.mark.parametrize("name", ["remainder", "floor_divide"])
def test_division_with_remainder_is_numpys(name: str, dtype: str) -> None:
    x = np.asarray([1.0, 0.0, -0.0, 5.3, -5.3, 1e30, 7.0, -7.0, np.inf, -np.inf, np.nan])
    y = np.asarray([0.1, -0.1, 3.0, -3.0, np.inf, -np.inf, 0.0, np.nan])
    if dtype[0] != "f":
        x, y = np.arange(9), np.arange(1, 6)
    x, y = x[:, None].astype(dtype), y.astype(dtype)
    with np.errstate(all="ignore"):
        expected, found = run(ad.NumPy(), name, x, y), np.asarray(run(CuPy(), name, x, y))
        np.testing.assert_array_equal(found, expected)
        np.testing.assert_array_equal(np.signbit(found), np.signbit(expected))
        number = float(y[0]) if dtype[0] == "f" else int(y[0])
        np.testing.assert_array_equal(run(CuPy(), name, x, number), run(ad.NumPy(), name, x, number))


def test_complex_lines() -> None:
    found = run(CuPy(), "linspace", start=1j, stop=2.0, num=5, endpoint=True, dtype=ad.complex64)
    assert found.dtype == np.complex64
    np.testing.assert_allclose(found, np.linspace(1j, 2.0, 5), rtol=1e-6)
    real = run(CuPy(), "linspace", start=1, stop=2, num=5, endpoint=False, dtype=ad.float32)
    np.testing.assert_array_equal(real, np.linspace(1, 2, 5, endpoint=False, dtype=np.float32))
