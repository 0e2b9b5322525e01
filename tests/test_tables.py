"""Tables beside tensors: what has labels counts as its NumPy array. And PyTorch's parameters, as their values."""

from __future__ import annotations

import operator
import sys
import types
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from conftest import peer
from numpy.testing import assert_allclose

import adjoint as ad
from adjoint import errors

V, W = np.array([1.0, 2.0, 3.0]), np.array([0.5, 0.25, 4.0])


class Series:
    """What of a Series of pandas counts here, where that is not installed: operators that give way to a higher
    priority, NumPy's protocols, and no more of an array.
    """

    __pandas_priority__ = 3000

    def __init__(self, values: Any) -> None:
        self._values = np.asarray(values)

    def to_numpy(self) -> Any:
        return self._values

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        return np.array(self._values, dtype=dtype)

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any:
        if any(hasattr(x, "__array_ufunc__") and not isinstance(x, (Series, np.ndarray)) for x in inputs):
            return NotImplemented  # as that of pandas does
        values = [x._values if isinstance(x, Series) else x for x in inputs]
        return Series(getattr(ufunc, method)(*values, **options))

    def __len__(self) -> int:
        return len(self._values)

    @property
    def dtype(self) -> Any:
        return self._values.dtype

    @property
    def shape(self) -> Any:
        return self._values.shape


def _operator(name: str) -> Callable[[Any, Any], Any]:
    function = getattr(operator, name)

    def body(self: Any, other: Any) -> Any:
        if getattr(other, "__pandas_priority__", 0) > self.__pandas_priority__:
            return NotImplemented
        return Series(function(self._values, getattr(other, "_values", other)))

    return body


OPERATORS = "add sub mul truediv pow matmul lt eq".split()
for _name in OPERATORS:
    setattr(Series, f"__{_name}__", _operator(_name))


@pytest.fixture(params=["stand-in", "pandas"])
def series(request: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """The class of pandas, and what stands in for it."""
    if request.param == "pandas":
        yield pytest.importorskip("pandas").Series
    else:
        if "pandas" not in sys.modules:
            monkeypatch.setitem(sys.modules, "pandas", types.ModuleType("pandas"))
        yield Series


@pytest.mark.parametrize("name", OPERATORS)
def test_operators(series: Any, name: str) -> None:
    function = getattr(operator, name)
    w = ad.tensor(W, dtype=ad.float64).require_grad()
    pairs = [(function(w, series(V)), function(w, V))]
    if name == "matmul" and series is not Series:  # which does not give way there
        with pytest.raises(errors.TrackedError, match=r"^pandas\.Series\.dot computes with .* there is ad\.dot;"):
            function(series(V), w)
    else:
        pairs.append((function(series(V), w), function(V, w)))
    for found, wanted in pairs:
        assert isinstance(found, ad.Tensor)
        assert_allclose(found.numpy(), wanted.numpy())
        if found.dtype is ad.float64:
            assert_allclose(found.sum().backward()[w].numpy(), wanted.sum().backward()[w].numpy())


def test_functions(series: Any) -> None:
    w = ad.tensor(W, dtype=ad.float64).require_grad()
    assert_allclose(ad.asarray(series(V)).numpy(), V)
    assert ad.tensor(series(V)).dtype is ad.float64
    for f in (ad.sin, ad.sum, ad.nn.softmax, ad.cumulative_sum):
        assert_allclose(f(series(V)).numpy(), f(ad.asarray(V)).numpy())
    for f in (ad.multiply, ad.nn.mse_loss, np.multiply, ad.maximum, lambda x, y: ad.stack([x, y])):
        assert_allclose(f(series(V), w).detach().numpy(), f(ad.asarray(V), w).detach().numpy())
        assert_allclose(f(w, series(V)).detach().numpy(), f(w, ad.asarray(V)).detach().numpy())


def test_transforms(series: Any) -> None:
    f = lambda x, y=1.0: (x * x * y).sum()
    found = ad.grad(f)(series(V))
    assert isinstance(found, np.ndarray)
    assert_allclose(found, 2 * V)
    assert_allclose(ad.grad(f)(V, series(W)), 2 * V * W)
    assert_allclose(ad.vmap(lambda x: x * x)(series(V)), V * V)
    assert_allclose(ad.jvp(f, (series(V),), (series(W),))[1], 2 * V @ W)
    assert_allclose(ad.grad(lambda p: f(p["x"]))({"x": series(V)})["x"], 2 * V)
    pytest.importorskip("scipy")
    assert_allclose(ad.scipy.minimize(lambda x: f(x - 1), series(V)).x, np.ones(3), atol=1e-6)


@pytest.mark.parametrize("device", ["autodiff<numpy>", "autodiff<reference>"])
def test_places(series: Any, device: str) -> None:
    """What picks elements: a column's truths and numbers, alone and beside others, and a range."""
    n = np.arange(6.0).reshape(3, 2)
    truths, numbers, none = V > 1.5, np.array([2, 0, 2]), np.zeros(0, int)
    for key, plain in (
        (series(truths), truths),
        (series(numbers), numbers),
        ((series(truths), 1), (truths, 1)),
        ((None, series(numbers), ...), (None, numbers, ...)),
        (range(2), range(2)),
        ((slice(None), range(1, 2)), (slice(None), range(1, 2))),
        (range(0), none),
    ):
        x = ad.tensor(n, device=device).require_grad()
        picked = x[key]
        assert_allclose(picked.detach().numpy(), n[plain])
        counts = np.zeros_like(n)
        np.add.at(counts, plain, 1.0)
        assert_allclose((picked * picked).sum().backward()[x].numpy(), 2 * n * counts)
        y, wanted = x * 1.0, n.copy()
        y[key] = 9.0
        wanted[plain] = 9.0
        assert_allclose(y.detach().numpy(), wanted)
    for places in (truths, numbers):
        assert_allclose(ad.delete(ad.asarray(n), series(places), axis=0).numpy(), np.delete(n, places, axis=0))
    assert_allclose(ad.insert(ad.asarray(n), series(numbers), 7.0, axis=0).numpy(), np.insert(n, numbers, 7.0, axis=0))
    assert_allclose(ad.delete(ad.asarray(V), range(2)).numpy(), V[2:])
    for wrong in (series(V), series(truths[:2])):
        with pytest.raises(errors.OutOfRangeError):
            ad.asarray(n)[wrong]


def test_fits(series: Any) -> None:
    """Data, starts, deviations and arguments, also what a function closes over."""
    pytest.importorskip("scipy")
    t = np.linspace(0, 4, 20)
    x, y = series(t), series(2.5 * np.exp(-1.3 * t))
    model = lambda t, a, k: a * ad.exp(-k * t)
    for found in (
        ad.scipy.curve_fit(model, x, y)[0],
        ad.scipy.curve_fit(lambda d, a, k: model(d["t"], a, k), {"t": x}, y, series(np.ones(2)))[0],
        ad.scipy.curve_fit(model, x, y, sigma=series(np.ones(20)))[0],
        ad.scipy.least_squares(lambda p, x, y: model(x, *p) - y, np.ones(2), args=(x, y)).x,
        ad.scipy.least_squares(lambda p: y - model(x, *p), np.ones(2)).x,
        ad.scipy.minimize(lambda p, x, y: ((model(x, *p) - y) ** 2).sum(), series(np.ones(2)), (x, y), tol=1e-9).x,
        ad.scipy.root(lambda p, y: p - y, np.ones(2), args=(series(np.array([2.5, 1.3])),)).x,
    ):
        assert_allclose(found, [2.5, 1.3], rtol=1e-5)


def test_parameters_of_torch_are_their_values() -> None:
    torch = peer("torch")
    p = torch.nn.Parameter(torch.tensor([1.0, 2.0]))
    for take in (ad.asarray, ad.tensor, ad.from_dlpack, lambda p: ad.asarray(p, device="torch:cpu")):
        x = take(p)
        assert x.tolist() == [1.0, 2.0]
        assert not x.is_tracked()
    for take in (ad.asarray, ad.tensor, ad.from_dlpack):
        with pytest.raises(errors.TrackedError, match=r"pass x\.detach\(\)"):
            take(p * 2)
