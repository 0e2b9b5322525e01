"""What the CuPy leaf does about CuPy's own ways, on a stand-in for CuPy made of NumPy: no GPU is needed."""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from cupy_stand_in import Device, installed, placed

import adjoint as ad
from adjoint import errors
from adjoint.backends.cupy import CuPy
from adjoint.primitives import TABLE

pytest.importorskip("array_api_extra")


@pytest.fixture(autouse=True)
def cupy(monkeypatch: pytest.MonkeyPatch) -> Any:
    return installed(monkeypatch)


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
    own.full = lambda shape, value, *, dtype, device: placed(np.full(shape, value), dtype, device) + 1  # type: ignore[attr-defined]
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


def test_slices_of_tensors() -> None:
    x = ad.tensor(np.arange(6.0), device="cupy:1")
    assert x[1::2].tolist() == [1.0, 3.0, 5.0]
    assert x[-1].item() == 5.0


def test_complex_lines() -> None:
    found = run(CuPy(), "linspace", start=1j, stop=2.0, num=5, endpoint=True, dtype=ad.complex64)
    assert found.dtype == np.complex64
    np.testing.assert_allclose(found, np.linspace(1j, 2.0, 5), rtol=1e-6)
    real = run(CuPy(), "linspace", start=1, stop=2, num=5, endpoint=False, dtype=ad.float32)
    np.testing.assert_array_equal(real, np.linspace(1, 2, 5, endpoint=False, dtype=np.float32))
