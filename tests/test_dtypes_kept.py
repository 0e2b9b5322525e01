"""Values that have a dtype keep it, whatever the default; functions of NumPy as exact as the dtype they give."""

from __future__ import annotations

import array
import ctypes
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from each import Each

import adjoint as ad


class Frame:
    """As a DataFrame, or a Series: no array, but there is one of it."""

    def __init__(self, values: Any) -> None:
        self.values = np.asarray(values)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        return self.values if dtype is None else self.values.astype(dtype)


@pytest.mark.parametrize("default", [ad.float32, ad.float64], ids=str)
def test_values_with_a_dtype_keep_it(default: Any) -> None:
    numbers = [0.1, 2.0]
    double, single = (np.array(numbers, dtype=kind) for kind in (np.float64, np.float32))
    cases = [
        (double, ad.float64),
        (Frame(double), ad.float64),
        (Frame(single), ad.float32),
        (Frame([1, 2]), ad.int64),
        (memoryview(double), ad.float64),
        (memoryview(single), ad.float32),
        (array.array("d", numbers), ad.float64),
        (array.array("f", numbers), ad.float32),
        (array.array("h", [1, 2]), ad.int16),
        ((ctypes.c_double * 2)(*numbers), ad.float64),
        (list(double), ad.float64),
        (list(single), ad.float32),
        ([list(single), list(double)], ad.float64),
        ([[0.1, 0.2], list(single)], ad.float32),
        ([0.1, np.float64(0.2)], ad.float64),
        ([np.float64(0.1), 2], ad.float64),
        ([np.float32(0.1), 1j], ad.complex64),
        ([np.float64(0.1), 1j], ad.complex128),
        ([np.complex64(1j), 0.1], ad.complex64),
        ([memoryview(double), array.array("d", numbers)], ad.float64),
        ((single, double), ad.float64),
        ([np.int8(1), 0.1], default),
        ([np.int8(1), np.int8(2)], ad.int8),
        (numbers, default),
        ([1, 0.5], default),
        ([True, 0.5], default),
        ([], default),
    ]
    with Each() as each, ad.use_dtype(default):
        for i, (values, dtype) in enumerate(cases):
            for make in (ad.tensor, ad.asarray):
                with each((i, make.__name__)):
                    out = make(values)
                    assert out.dtype is dtype
                    assert out.tolist() == np.asarray(values).astype(dtype).tolist()
            with each((i, "operand")):
                if not isinstance(values, (memoryview, array.array, ctypes.Array)):
                    assert ad.result_type(ad.asarray(values) + ad.zeros((), dtype=ad.int8)) is dtype


# Functions of a tensor and of a list that meets it, by which one is rounded if the other is.
BESIDE: dict[str, Callable[..., Any]] = {
    "+": lambda x, v: x + v,
    "reflected": lambda x, v: v - x,
    "in place": lambda x, v: (x * 1).__iadd__(v),
    "==": lambda x, v: ad.asarray(np.array(v), dtype=x.dtype) == v,
    "add": ad.add,
    "pow": lambda x, v: ad.pow(v, x),
    "where": lambda x, v: ad.where(ad.tensor([True, False, True]), v, x),
    "where of arrays": lambda x, v: ad.where(np.array([True, False, True]), x.numpy(), v),
    "lerp": lambda x, v: ad.lerp(x, v, v),
    "select": lambda x, v: ad.select([ad.tensor([True, False, True])], [v], x),
    "piecewise": lambda x, v: ad.piecewise(x, [np.array([True, False, True])], [v, v[0]]),
    "insert": lambda x, v: ad.insert(x, [0, 1, 2], v),
    "append": ad.append,
    "concat": lambda x, v: ad.concat([v, x]),
    "concat of arrays": lambda x, v: ad.concat([v, x.numpy()]),
    "stack": lambda x, v: ad.stack([x, v]),
    "put_along_axis": lambda x, v: ad.put_along_axis(x, np.array([0, 2, 1]), v, axis=0),
    "scatter": lambda x, v: ad.scatter(x, [0, 2, 1], v, mode="add"),
    "masked_scatter": lambda x, v: ad.masked_scatter(x, [True, False, True], v),
    "interp": lambda x, v: ad.interp(x, v, v),
    "matmul": lambda x, v: v @ x,
    "vecdot": ad.vecdot,
    "tensordot": lambda x, v: ad.tensordot(x, v, 1),
    "einsum": lambda x, v: ad.einsum("i,j", x, v),
    "cross": ad.linalg.cross,
    "solve": lambda x, v: ad.linalg.solve(3.0 * ad.eye(3, dtype=x.dtype), v),
    "polyval": lambda x, v: ad.polyval(v, x),
    "convolve": ad.convolve,
    "trapezoid": ad.trapezoid,
    "gradient": ad.gradient,
    "diff": lambda x, v: ad.diff(x, prepend=v),
    "average": lambda x, v: ad.average(x, weights=v),
    "isin": lambda x, v: ad.isin(ad.asarray(np.array(v), dtype=x.dtype), v),
    "digitize": lambda x, v: ad.digitize(ad.asarray(np.array(v), dtype=x.dtype), v),
    "histogram": lambda x, v: ad.histogram(x, v)[1],
    "quantile": ad.quantile,
    "xlogy": lambda x, v: ad.special.xlogy(v, x),
    "logsumexp": lambda x, v: ad.special.logsumexp(x, b=v),
    "beta": lambda x, v: ad.stats.beta.logpdf(x, v, 0.3),
    "normal": lambda x, v: ad.stats.multivariate_normal.logpdf(x, v, np.eye(3).tolist()),
    "mse_loss": ad.nn.mse_loss,
    "layer_norm": lambda x, v: ad.nn.layer_norm(x, 3, weight=v, bias=v),
    "linear": lambda x, v: ad.nn.linear(x, [v]),
}


def test_pythons_floats_are_as_precise_as_what_they_meet() -> None:
    """A list of them beside float64 has float64's digits, as one number has; beside float32 all is float32."""
    numbers = [0.1, 0.2, 0.3]
    with Each() as each:
        for name, function in BESIDE.items():
            for dtype in (ad.float64, ad.float32, ad.complex128):
                if dtype is ad.complex128 and name not in ("+", "add", "where", "concat", "matmul", "solve", "einsum"):
                    continue
                x = ad.tensor([0.3, 0.7, 0.9], dtype=dtype)
                with each((name, dtype)):
                    found = function(x, numbers)
                    kept = np.array(numbers, np.float32 if dtype is ad.float32 else np.float64)
                    expected = function(x, kept)
                    assert found.dtype is expected.dtype
                    assert found.tolist() == expected.tolist()


@pytest.mark.filterwarnings("error")
def test_halves_in_a_list_are_read_without_a_warning() -> None:
    for values in ([np.float16(1.5)], [np.float16(np.inf)], [[np.float16(1)], [2]]):
        assert ad.asarray(values).dtype is ad.float16


def test_pandas() -> None:
    pandas = pytest.importorskip("pandas")
    for dtype in (ad.float32, ad.float64, ad.int64):
        frame = pandas.DataFrame({"a": np.ones(2, dtype), "b": np.ones(2, dtype)})
        assert ad.tensor(frame).dtype is ad.tensor(frame["a"]).dtype is dtype
        assert ad.asarray(frame).shape == (2, 2)


# --- NumPy's functions ---


def test_linspace_between_tensors_is_as_exact_as_its_dtype() -> None:
    for start, stop in ((ad.tensor(0), ad.tensor(1)), (ad.tensor(0), 0.7), (0.1, ad.tensor(1)), (0.1, ad.tensor(0.5))):
        ends = [v.item() if isinstance(v, ad.Tensor) else v for v in (start, stop)]
        for dtype in (np.float64, float, "float64"):
            found = np.linspace(start, stop, 4, dtype=dtype)
            assert found.dtype is ad.float64  # type: ignore[comparison-overlap]
            np.testing.assert_allclose(found.numpy(), np.linspace(*ends, 4), rtol=1e-15)  # type: ignore[attr-defined]
    assert np.linspace(ad.tensor(0), ad.tensor(9), 4, dtype=int).tolist() == [0, 3, 6, 9]
    assert np.linspace(ad.tensor(0), ad.tensor(1), 4).dtype is ad.float32  # type: ignore[comparison-overlap]
    thousand = np.logspace(ad.tensor(0), ad.tensor(1), 4, dtype=np.float64)
    np.testing.assert_allclose(thousand.numpy(), np.logspace(0, 1, 4), rtol=1e-15)  # type: ignore[attr-defined]
    x = ad.tensor(1.0).require_grad()
    gradient = np.linspace(x, 2.0, 3, dtype=float).sum().backward()[x]  # type: ignore[attr-defined]
    assert gradient.dtype is ad.float32
    assert gradient.item() == 1.5


def test_float_power_is_numpys() -> None:
    kinds = (np.int32, np.float16, np.float32, np.float64, np.complex64)
    with Each() as each:
        for kind in kinds:
            base = np.array([1, 2, 3]).astype(kind)
            for other in (2, 0.1, 1j, *[np.array([1, 2, 0], k) for k in kinds]):
                with each((kind, other)):
                    theirs = np.float_power(base, other)
                    given = ad.asarray(other) if isinstance(other, np.ndarray) else other
                    ours = np.float_power(ad.tensor(base), given)
                    assert ours.dtype == theirs.dtype
                    np.testing.assert_allclose(ours.numpy(), theirs, rtol=1e-14)
        with each("on the left"):
            assert np.float_power(0.1, ad.ones(1)).tolist() == [0.1]


def test_sums_of_weights_are_numpys() -> None:
    x = np.array([0, 2, 2])
    with Each() as each:
        for weights in (np.array([1, 2, 3]), np.array([0.1, 0.2, 0.3]), np.array([0.1, 0.2, 0.3], np.float32)):
            with each(weights.dtype):
                ours, theirs = ad.bincount(ad.tensor(x), ad.tensor(weights)), np.bincount(x, weights)
                assert ours.dtype == theirs.dtype
                assert ours.tolist() == theirs.tolist()
                assert np.bincount(ad.tensor(x), weights).tolist() == theirs.tolist()
        with each("a list"):
            assert ad.bincount(ad.tensor(x), [0.1, 0.2, 0.3]).tolist() == np.bincount(x, [0.1, 0.2, 0.3]).tolist()
    weights = ad.ones(3).require_grad()
    gradient = (ad.bincount(ad.tensor(x), weights) * ad.arange(3)).sum().backward()[weights]
    assert gradient.dtype is ad.float32
    assert gradient.tolist() == [0.0, 2.0, 2.0]
    assert ad.bincount(ad.tensor(x)).dtype is ad.int64
