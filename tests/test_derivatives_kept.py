"""Copies and conversions keep a derivative, or raise: each spelling, in each way in which a tensor is tracked."""

from __future__ import annotations

import array
import copy
import math
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from each import Each

import adjoint as ad
from adjoint import errors

pd: Any = pytest.importorskip("pandas")
V = np.array([1.25, 2.5])


def put(into: Any, index: Any, value: Any) -> Any:
    into[index] = value
    return into


# what comes of w, of shape (2,), and by how much its sum grows with that of w
KEPT: dict[str, tuple[Callable[[Any], Any], float]] = {
    "asarray": (lambda w: ad.asarray(w), 1),
    "asarray copy": (lambda w: ad.asarray(w, copy=True), 1),
    "asarray dtype": (lambda w: ad.asarray(w, dtype=ad.float32), 1),
    "asarray list": (lambda w: ad.asarray([w, w]), 2),
    "asarray numbers": (lambda w: ad.asarray((w[0], 1.0, w[1])), 1),
    "full": (lambda w: ad.full(3, w.sum()), 3),
    "full_like": (lambda w: ad.full_like(np.ones(3), w.sum()), 3),
    "astype": (lambda w: w.astype(ad.float32).astype(ad.complex128).real, 1),
    "copy": (lambda w: w.copy(), 1),
    "copy.copy": (lambda w: copy.copy(w), 1),
    "np.copy": (lambda w: np.copy(w), 1),
    "np.linspace": (lambda w: np.linspace(w, w, 3), 3),
    "np.full_like": (lambda w: np.full_like(w, 3.0) * w, 3),
    "np.select": (lambda w: np.select([V > 0], [w], 0.0), 1),
    "list": (lambda w: ad.stack(list(w)), 1),
    "sum": (lambda w: sum(w), 1),
    "math.prod": (lambda w: math.prod([w.sum(), 2.0]), 2),
    "ndarray beside": (lambda w: np.ones(2) * w, 1),
    "Series beside": (lambda w: pd.Series([1.0, 1.0]) * w + w * pd.Series([1.0, 1.0]), 2),
    "Series.map": (lambda w: sum(pd.Series([1.0, 2.0]).map(lambda n: n * w.sum())), 3),
    "Series.fillna": (lambda w: sum(pd.Series([1.0, math.nan]).fillna(w.sum())), 1),
    "Series of objects": (lambda w: pd.Series(list(w), dtype=object).sum(), 1),
}

RAISES: dict[str, Callable[[Any], Any]] = {
    "tensor": lambda w: ad.tensor(w),
    "tensor dtype": lambda w: ad.tensor(w, dtype=ad.float32),
    "tensor device": lambda w: ad.tensor(w, device="numpy"),
    "tensor list": lambda w: ad.tensor([w, w]),
    "asarray device": lambda w: ad.asarray(w, device="numpy"),
    "full of several": lambda w: ad.full((3, 2), w),
    "linspace": lambda w: ad.linspace(w[0], w[1], 3),
    "logspace": lambda w: ad.logspace(w[0], w[1], 3),
    "arange": lambda w: ad.arange(w[0], w[1], 0.5),
    "from_dlpack": lambda w: ad.from_dlpack(w),
    "np.array": lambda w: np.array(w),
    "np.array list": lambda w: np.array([w[0], 1.0]),
    "np.array objects": lambda w: np.array([w, w], dtype=object),
    "np.asarray": lambda w: np.asarray(w),
    "np.full": lambda w: np.full(2, w[0]),
    "np.full_like": lambda w: np.full_like(np.ones(2), w[0]),
    "np.float64": lambda w: np.float64(w[0]),
    "np.arange": lambda w: np.arange(w[0], w[1], 0.5),
    "np.fromiter": lambda w: np.fromiter(w, dtype=float),
    "np.from_dlpack": lambda w: np.from_dlpack(w),
    "np.ma": lambda w: np.ma.array(w),
    "np.put": lambda w: np.put(np.zeros(2), 0, w[0]),
    "n[i]": lambda w: put(np.zeros(2), 0, w[0]),
    "n[:]": lambda w: put(np.zeros(2), slice(None), w),
    "n.fill": lambda w: np.zeros(2).fill(w[0]),
    "array": lambda w: array.array("d", w),
    "float": lambda w: float(w[0]),
    "complex": lambda w: complex(w[0], w[1]),
    "math": lambda w: math.hypot(w[0], w[1]),
    "Series": lambda w: pd.Series(w),
    "DataFrame": lambda w: pd.DataFrame({"a": w}),
    "Series set": lambda w: put(pd.Series([1.0, 2.0]), 0, w[0]),
    "Series.where": lambda w: pd.Series([1.0, 2.0]).where([True, False], w),
    "DataFrame set": lambda w: put(pd.DataFrame({"a": [1.0, 2.0]}), "b", w),
    "pickle": lambda w: pickle.dumps(w * 1.0),
}  # fmt: skip


def by_leaf(f: Callable[[Any], Any]) -> Any:
    w = ad.tensor(V).require_grad()
    return f(w).backward()[w]


def by_jacobian(f: Callable[[Any], Any]) -> Any:
    """The diagonal of the derivative of each example's result by the examples, over 1 + 2."""
    rows = ad.jacobian(ad.vmap(f))(np.stack([V, V]))
    return rows[0, 0] + rows[0, 1]


def by_hessian(f: Callable[[Any], Any]) -> Any:
    """d/dw of f**2 / 2, twice, is f' f', whose first row is f' itself times its first entry."""
    rows = ad.hessian(lambda w: f(w) ** 2 / 2)(V)
    return rows[0] / np.sqrt(rows[0, 0])


# the gradient of a scalar function of w, in each way
WAYS: dict[str, Callable[[Callable[[Any], Any]], Any]] = {
    "require_grad": by_leaf,
    "grad": lambda f: ad.grad(f)(V),
    "jvp": lambda f: np.array([ad.jvp(f, (V,), (row,))[1] for row in np.eye(2)]),
    "vmap": by_jacobian,
    "hessian": by_hessian,
    "compile": lambda f: ad.compile(ad.grad(f))(V),
}


@pytest.mark.parametrize("way", WAYS)
def test_what_is_copied_keeps_its_derivative(way: str) -> None:
    with Each() as each:
        for name, (f, factor) in KEPT.items():
            with each(name):
                found = WAYS[way](lambda w, f=f: f(w).sum())
                np.testing.assert_allclose(found, [factor, factor], rtol=1e-6)


@pytest.mark.parametrize("way", WAYS)
def test_what_cannot_keep_it_raises(way: str) -> None:
    with Each() as each:
        for name, f in RAISES.items():
            with each(name):
                with pytest.raises((errors.AdjointError, ValueError)) as caught:
                    WAYS[way](lambda w, f=f: (f(w), w.sum())[1])
                chain = (caught.value, caught.value.__cause__)
                assert any(isinstance(e, errors.AdjointError) for e in chain), repr(caught.value)


def test_a_leaf_that_is_copied_or_sent_is_a_leaf() -> None:
    w = ad.tensor(V).require_grad()
    sent, other = pickle.loads(pickle.dumps(w)), copy.deepcopy(w)
    np.testing.assert_allclose((sent * sent).sum().backward()[w].numpy(), 2 * V)
    np.testing.assert_allclose((other * other).sum().backward()[other].numpy(), 2 * V)
