"""Functions that are machine code though a loop's step seldom has them: they give what NumPy gives."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from test_native import native as native
from test_native import same, steps

import adjoint as ad

pytest.importorskip("llvmlite")


def flat(f: Callable[..., Any]) -> Callable[..., list[Any]]:
    return lambda *xs: ad.tree.flatten(f(*xs))[0]


def equal(f: Callable[..., Any], *xs: Any) -> None:
    """All of it is machine code, with results that are NumPy's to the last bit."""
    tensors = [ad.asarray(x) for x in xs]
    with np.errstate(all="ignore"):
        expected = flat(f)(*tensors)
    same(ad.compile(flat(f))(*tensors), expected)
    assert not steps(f, *tensors)


# --- places in arrays that are parts of the program ---


@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "uint8", "bool"])
def test_elements_of_constants(dtype: str) -> None:
    table = np.arange(24).reshape(6, 4).astype(dtype)
    i, x = np.array([[0, 5, -1], [3, 3, -6]]), np.linspace(-1.0, 1.0, 4)
    constant = lambda x: ad.asarray(np.array(x))  # made in the function, so part of what is recorded
    for given in (table, np.asfortranarray(table), table[::2], table[:, ::-1], np.broadcast_to(table[:1], (6, 4))):
        rows = np.clip(i, -len(given), len(given) - 1)
        equal(lambda i, given=given: constant(given)[i], rows)
        equal(lambda i, given=given: constant(given)[:, i], np.clip(i, -4, 3))
        equal(lambda i, given=given: constant(given)[i, i], np.clip(rows, -3, 2))
        equal(lambda i, given=given: ad.take_along_axis(constant(given), i, axis=0), rows[:, :1] + np.zeros(4, int))
    looked = lambda i, x: ad.scan(lambda c, k: (c + constant(table)[k] * x, c), x, i)
    equal(looked, i[0], x)
    equal(lambda i: ad.full((6, 4), 1, dtype=dtype)[i], i)
    with pytest.raises(ad.errors.OutOfRangeError, match="7"):
        ad.compile(looked)(ad.asarray(np.array([1, 7])), ad.asarray(x))
