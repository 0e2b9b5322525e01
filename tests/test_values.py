"""Tensors are values: no object shares what an assignment to another one changes."""

from __future__ import annotations

import copy
import math
import operator
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from conftest import joined

import adjoint as ad
from adjoint import errors

SAME: dict[str, Callable[[Any], Any]] = {
    "+x": lambda x: +x,
    "positive": ad.positive,
    "real": ad.real,
    "clip": ad.clip,
    "astype": lambda x: x.astype(x.dtype),
    "asarray": lambda x: ad.asarray(x, copy=True),
    "to_device": lambda x: x.to_device(x.device),
    "copy": copy.copy,
    "deepcopy": copy.deepcopy,
    "set_require_grad": lambda x: x.set_require_grad(False),
    "detach": lambda x: x.detach(),
    "reshape": lambda x: x.reshape(x.shape),
    "roll": lambda x: ad.roll(x, 0),
    "einsum": lambda x: ad.einsum("i->i", x),
}


@pytest.mark.parametrize("backend", ["numpy", "autodiff<numpy>", "autodiff[checkpointing=balanced]<numpy>"])
@pytest.mark.parametrize("name", SAME)
def test_what_has_the_same_value_is_another_object(name: str, backend: str) -> None:
    x = ad.tensor([1.0, 2.0], device=backend)
    other = SAME[name](x)
    other[0] = 9.0
    x[1] = 7.0
    assert x.tolist() == [1.0, 7.0]
    assert other.tolist() == [9.0, 2.0]


def test_with_value_without_autodiff_is_another_object() -> None:
    x, v = ad.zeros(2, device="numpy"), ad.ones(2, device="numpy")
    w = x.with_value(v)
    w[0] = 5.0
    assert v.tolist() == [1.0, 1.0]


@pytest.mark.parametrize("inner", ["numpy", "autodiff<numpy>"])
@pytest.mark.parametrize("key", [0, slice(0, 2), slice(None), (None, slice(0, 1))])
def test_parts_read_between_assignments_keep_their_value(key: Any, inner: str, device: Any) -> None:
    """Under balanced checkpointing a part must not be made again from memory that was written to since."""
    level = device.over(ad.device(inner))
    x = ad.tensor([1.0, 2.0], device=level).require_grad()
    y = ad.zeros(3, device=level)
    y[0] = 2.0
    part = y[key]
    loss = (ad.exp(part.sum() * 0.5) * x).sum()
    y[0] = 50.0
    total = float(part.numpy().sum())
    np.testing.assert_allclose(loss.backward()[x].numpy(), np.exp(total * 0.5), rtol=1e-6)


def test_parts_of_what_was_assigned_keep_the_sign_of_zero() -> None:
    y = ad.zeros(3)
    y[0] = -0.0
    assert np.signbit(y[0].numpy())
    assert np.signbit(y[:1].numpy()).all()


@pytest.mark.parametrize("backend", ["numpy", "reference", "autodiff<numpy>"])
@pytest.mark.parametrize("start", [None, 2, -1, -3, -4, -5])
@pytest.mark.parametrize("stop", [None, 0, 1, -2, -3, -4])
@pytest.mark.parametrize("step", [-1, -2, 1, 2])
def test_slices_are_numpys(start: Any, stop: Any, step: int, backend: str) -> None:
    values, key = np.array([1.0, 2.0, 3.0]), slice(start, stop, step)
    x = ad.tensor(values, device=backend)
    assert x[key].tolist() == values[key].tolist()
    x[key] = 0.0
    values[key] = 0.0
    assert x.tolist() == values.tolist()


@pytest.mark.parametrize("value", [300, -1, 2**63, float("inf"), float("nan")])
def test_numbers_that_the_dtype_does_not_hold_are_refused(value: Any) -> None:
    x = ad.tensor([1, 2], dtype=ad.uint8)
    with pytest.raises(errors.RangeError, match="assignment"):
        x[0] = value
    assert x.tolist() == [1, 2]
    if isinstance(value, int):
        for refused in (lambda: ad.where(x > 1, x, value), lambda: ad.full_like(x, value), lambda: x + value):
            with pytest.raises(errors.RangeError):
                refused()


COMPARISONS = [operator.eq, operator.ne, operator.lt, operator.le, operator.gt, operator.ge]


@pytest.mark.parametrize("backend", ["numpy", "reference", "autodiff[checkpointing=balanced]<numpy>"])
@pytest.mark.parametrize("dtype", ["int8", "int64", "uint8", "uint64"])
@pytest.mark.parametrize("number", [300, 256, 255, -1, -129, 2**63, 2**64, -(10**30)])
def test_comparisons_with_integers_of_any_size_are_numpys(backend: str, dtype: str, number: int) -> None:
    info = np.iinfo(dtype)
    values = np.array([[info.min, 0], [1, info.max]], dtype)
    x = ad.tensor(values, device=backend)
    for compare in COMPARISONS:
        for out, expected in (
            (compare(x, number), compare(values, number)),
            (compare(number, x), compare(number, values)),
            (compare(x.sum(), number), compare(values.sum(), number)),
        ):
            assert out.dtype is ad.bool
            np.testing.assert_array_equal(out.numpy(), expected)
    logic = {ad.logical_and: operator.and_, ad.logical_or: operator.or_, ad.logical_xor: operator.xor}
    for function, pythons in logic.items():
        expected = pythons(values != 0, True).tolist()
        assert function(x, number).tolist() == function(number, x).tolist() == expected
    assert (number in x) is (number in values)


def test_comparisons_of_booleans_with_integers_of_any_size() -> None:
    x = ad.tensor([True, False])
    assert (x == 10**30).tolist() == [False, False]
    assert (x < 10**30).tolist() == (x >= -(10**30)).tolist() == [True, True]


def test_bounds_beyond_the_dtype_hold_nothing_back() -> None:
    x = ad.tensor([1, 9], dtype=ad.uint8)
    assert ad.clip(x, 0, 300).tolist() == ad.clip(x, -1, 255).tolist() == [1, 9]
    assert ad.clip(x, -5, 3).tolist() == [1, 3]
    for bounds in ((None, -math.inf), (math.inf, None), (math.inf, -math.inf)):
        assert math.isnan(ad.clip(ad.tensor(math.nan), *bounds).item())
    for low, high in ((300, None), (300, 400), (None, -3)):
        with pytest.raises(errors.RangeError, match="clip: .* does not fit in uint8"):
            ad.clip(x, low, high)


def test_integers_too_large_for_floats_are_refused() -> None:
    x = ad.tensor([1.0])
    for refused in (lambda: x + 10**400, lambda: 10**400 * x, lambda: x < 10**400, lambda: ad.less(x, 10**400)):
        with pytest.raises(errors.RangeError):
            refused()


def test_clip_refuses_complex_bounds() -> None:
    with pytest.raises(errors.DtypeError, match="order"):
        ad.clip(ad.tensor([1.0]), 0, 1j)


def test_indices_of_an_outer_level_hold_no_gradient() -> None:
    x = ad.tensor([1.0, 2.0, 3.0], device="numpy")
    picked = x[ad.tensor([2, 0])]
    assert picked.device is ad.NumPy()
    x[ad.tensor([0])] = 9.0
    assert x.tolist() == [9.0, 2.0, 3.0]
    with pytest.raises(errors.DeviceError, match="do not meet"):
        x[ad.tensor([0], device="reference")] = 1.0


def test_reading_while_another_thread_assigns_gives_values_that_stay() -> None:
    y = ad.zeros(20_000)
    done = threading.Event()
    torn: list[str] = []

    def read() -> None:
        while not done.is_set():
            value = y.detach().numpy()
            first = value.copy()
            if len(set(first.tolist())) != 1:
                torn.append("in the middle of an assignment")
            if not np.array_equal(first, value):
                torn.append("changed afterwards")

    readers = [threading.Thread(target=read) for _ in range(2)]
    for thread in readers:
        thread.start()
    for i in range(400):
        y[:] = float(i)
    done.set()
    for thread in readers:
        joined(thread)
    assert torn == []


def test_with_use_device_is_this_contexts_alone() -> None:
    before, seen, done = ad.default_device(), set(), threading.Event()

    def read() -> None:
        while not done.is_set():
            seen.add(ad.default_device())

    reader = threading.Thread(target=read)
    reader.start()
    for _ in range(3000):
        with ad.use_device("numpy"):
            pass
    done.set()
    joined(reader)
    assert seen <= {before}
    assert ad.default_device() is before


def test_gradients_scale_by_numpys_numbers() -> None:
    x = ad.tensor([1.0, 2.0]).require_grad()
    grads = (x * x).sum().backward()
    for scaled in (np.float32(2) * grads, grads * np.float64(2), grads * np.array(2.0), grads / np.float32(0.5)):
        assert scaled[x].tolist() == [4.0, 8.0]
        assert scaled[x].dtype is ad.float32
    with pytest.raises(errors.DtypeError, match="complex"):
        grads * 1j


def test_gradients_remember_what_was_popped() -> None:
    x = ad.tensor([1.0, 2.0]).require_grad()
    grads = (x * x).sum().backward()
    grads.pop(x)
    for made in (grads.map(lambda g: g), grads * 2, grads + grads):
        with pytest.raises(errors.NoGradientError, match="popped"):
            made[x]


def test_gradients_of_a_result_survive_an_assignment_to_it() -> None:
    x = ad.tensor([1.0, 2.0]).require_grad()
    h = x * 2
    grads = (h * h).sum().backward(wrt=h)
    assert grads[h].tolist() == [4.0, 8.0]
    h[0] = 1.0
    assert [grads[key].tolist() for key in grads] == [[4.0, 8.0]]


def test_deepcopy_keeps_what_is_one_leaf_one_leaf() -> None:
    low = ad.tensor([2.0]).require_grad()
    high = ad.from_inner(low).require_grad()
    low2, high2, again = copy.deepcopy((low, high, copy.copy(low)))
    slope = (high2**3).sum().backward()[high2]
    assert slope.sum().backward()[low2].tolist() == [12.0]
    assert again in (low2 * 1).backward()
    assert low not in (low2 * 1).backward()


def test_relu_passes_the_gradient_at_nan() -> None:
    x = ad.tensor([float("nan"), -1.0, 1.0]).require_grad()
    assert ad.nn.relu(x).backward()[x].tolist() == [1.0, 0.0, 1.0]


def test_an_empty_batch_is_pooled() -> None:
    assert ad.nn.max_pool2d(ad.zeros((0, 1, 4, 4)), 2).shape == (0, 1, 2, 2)


def test_why_names_what_cut_the_path() -> None:
    with ad.testing.source_locations():
        x = ad.tensor([1.0]).require_grad()
        loss = x.set_require_grad(False) * 2
    assert "set_require_grad" in ad.why(x, loss)
    with pytest.raises(errors.ArgumentTypeError):
        ad.why(x, 2)  # type: ignore[arg-type]
