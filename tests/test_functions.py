"""Values of public functions: creation, dtypes of reductions, defaults and edge cases, against NumPy."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import adjoint as ad
from adjoint import errors


def same(x: Any, y: Any, *, exact: bool = True) -> None:
    expected = np.asarray(y)
    assert isinstance(x, ad.Tensor)
    assert (x.shape, x.dtype) == (expected.shape, expected.dtype)
    if exact:
        np.testing.assert_array_equal(x.numpy(), expected)
    else:
        np.testing.assert_allclose(x.numpy(), expected, rtol=1e-6)


# --- creation ---


def test_filled_tensors() -> None:
    same(ad.zeros((2, 3)), np.zeros((2, 3), "f4"))
    same(ad.ones(2, dtype=ad.int8), np.ones(2, "i1"))
    same(ad.empty((0, 2)), np.zeros((0, 2), "f4"))
    same(ad.full((2,), 1.5), np.full(2, 1.5, "f4"))
    same(ad.full((), 3), np.array(3))
    same(ad.full(2, True), np.array([True, True]))
    same(ad.full(2, 1j), np.full(2, 1j, "c8"))
    same(ad.full(2, ad.tensor(2.5)), np.full(2, 2.5, "f4"))
    same(ad.full(2, np.float64(2.5)), np.full(2, 2.5))
    same(ad.full_like(ad.tensor([1, 2]), 7), np.array([7, 7]))


def test_full_of_a_tracked_number_is_differentiable(device: Any) -> None:
    for make in (lambda v: ad.full((2, 3), v), lambda v: ad.full_like(ad.zeros((2, 3)), v)):
        for value in (2.0, [2.0]):
            x = ad.tensor(value).require_grad()
            out = make(x)
            same(out.detach(), np.full((2, 3), 2, "f4"))
            same((out * ad.arange(6).reshape((2, 3))).sum().backward()[x], np.full(x.shape, 15, "f4"))
    wide = ad.full(2, x, dtype=ad.float64)
    assert wide.dtype is ad.float64
    same(wide.sum().backward()[x], np.array([2], "f4"))
    same(ad.vmap(lambda v: ad.full(2, v))(ad.tensor([1.0, 2.0])), np.array([[1, 1], [2, 2]], "f4"))
    below = ad.tensor(3.0, device=device.inner)
    assert ad.full(2, below).device is device.inner
    assert ad.full_like(ad.zeros(2), below).device is device
    upper = device.over(device)
    lifted = ad.full(2, x, device=upper)
    assert lifted.device is upper
    same(lifted.inner().sum().backward()[x], np.array([2], "f4"))


def test_like_numbers_and_arrays() -> None:
    same(ad.zeros_like(3), np.array(0))
    same(ad.ones_like([1.5, 2.5]), np.ones(2, "f4"))
    same(ad.empty_like(np.ones((2, 1))), np.zeros((2, 1)))
    same(ad.full_like(np.float64(3), 2), np.array(2.0))


def test_ranges() -> None:
    same(ad.arange(5), np.arange(5))
    same(ad.arange(2, 10, 3), np.arange(2, 10, 3))
    same(ad.arange(5, 0, -2), np.arange(5, 0, -2))
    same(ad.arange(3.0), np.arange(3, dtype="f4"))
    same(ad.arange(0, 1, 0.25), np.arange(0, 1, 0.25).astype("f4"))
    same(ad.arange(3, 0), np.arange(0))
    same(ad.arange(3, dtype=ad.float64), np.arange(3.0))
    same(ad.linspace(0, 1, 5), np.linspace(0, 1, 5, dtype="f4"))
    same(ad.linspace(1, 0, 4, endpoint=False, dtype=ad.float64), np.linspace(1, 0, 4, endpoint=False))
    same(ad.linspace(2, 3, 1), np.array([2], "f4"))
    same(ad.linspace(1, 1 + 2j, 5), np.linspace(1, 1 + 2j, 5, dtype="c8"))
    same(
        ad.linspace(np.complex128(1j), 0, 4, endpoint=False, dtype=ad.complex128), np.linspace(1j, 0, 4, endpoint=False)
    )


def test_eye_and_meshgrid() -> None:
    same(ad.eye(2, 3, k=1), np.eye(2, 3, 1, dtype="f4"))
    same(ad.eye(3, k=-1, dtype=ad.int64), np.eye(3, k=-1, dtype="i8"))
    x, y, z = (np.arange(float(n)) for n in (2, 3, 4))
    for indexing in ("xy", "ij"):
        for ours, theirs in zip(
            ad.meshgrid(*map(ad.tensor, (x, y, z)), indexing=indexing),
            np.meshgrid(x, y, z, indexing=indexing),
            strict=True,
        ):
            same(ours, theirs)
    assert ad.meshgrid() == ()


def test_created_tensors_are_constants(device: Any) -> None:
    for x in (ad.zeros(2), ad.eye(2), ad.arange(3), ad.linspace(0, 1, 2), ad.ones_like(ad.ones(2).require_grad())):
        assert not x.is_tracked()
        assert x.device is device


# --- reductions ---


@pytest.mark.parametrize("name", ["sum", "prod", "max", "min", "any", "all", "mean", "var", "std"])
@pytest.mark.parametrize("axis", [None, 0, -1, (0, 2), ()])
@pytest.mark.parametrize("keepdims", [False, True])
def test_reductions(name: str, axis: Any, keepdims: bool) -> None:
    x = np.random.default_rng(0).uniform(0.5, 2, (2, 3, 4))
    expected = getattr(np, name)(x, axis=axis, keepdims=keepdims)
    found = getattr(ad, name)(ad.tensor(x), axis=axis, keepdims=keepdims)
    np.testing.assert_allclose(found.numpy(), expected, rtol=1e-12, atol=1e-15)
    method = getattr(ad.tensor(x), name)(axis=axis, keepdims=keepdims)
    np.testing.assert_array_equal(method.numpy(), found.numpy())


@pytest.mark.parametrize("dtype", ["?", "i1", "i4", "u1", "u8", "f2", "f4", "c8"])
@pytest.mark.parametrize("name", ["sum", "prod", "cumulative_sum", "cumulative_prod"])
def test_totals_of_small_integers_are_wide(name: str, dtype: str) -> None:
    x = np.array([1, 1, 0, 1], dtype)
    expected = getattr(np, {"cumulative_sum": "cumsum", "cumulative_prod": "cumprod"}.get(name, name))(x)
    same(getattr(ad, name)(ad.tensor(x)), expected)
    assert getattr(ad, name)(ad.tensor(x), dtype=ad.float64).dtype is ad.float64


@pytest.mark.parametrize("dtype", ["i1", "u1", "i2", "u4", "i8"])
@pytest.mark.parametrize("decimals", [-1, -2, -3, -4])
def test_integers_of_few_bits_are_rounded_exactly(dtype: str, decimals: int) -> None:
    info = np.iinfo(dtype)
    x = np.unique(np.array([0, 4, 5, 15, 49, 50, 51, 99, 120, 127, 150, -50, -99, -128]).clip(info.min, info.max))
    expected = [int(10**-decimals * round(int(v) / 10**-decimals)) for v in x]
    held = [info.min <= v <= info.max for v in expected]
    found = ad.round(ad.tensor(x.astype(dtype)), decimals)
    assert found.dtype == dtype
    same(found[np.array(held)], np.array(expected)[held].astype(dtype))


def test_decimals_that_the_dtype_has_not() -> None:
    x = ad.tensor([7.0, 0.5, 0.00012, np.inf, -np.inf], dtype=ad.float16)
    same(ad.round(x, 4), np.array([7.0, 0.5, 0.0001, np.inf, -np.inf], "f2"))
    y = ad.tensor(np.array([1e300, 0.126, np.nan, 1j]))
    np.testing.assert_array_equal(ad.round(y, 2).numpy(), [1e300, 0.13, np.nan, 1j])
    assert ad.grad(lambda x: ad.round(x, 300) * 2.0)(1.5) == 0.0


def test_layer_norm_takes_arrays_and_lists() -> None:
    x, weight = np.array([[1.0, 2.0, 4.0]]), np.array([1.0, 2.0, 3.0])
    expected = ad.nn.layer_norm(ad.tensor(x), 3) * ad.tensor(weight) + 1
    found = ad.nn.layer_norm(ad.tensor(x), 3, weight, [1, 1, 1])
    np.testing.assert_array_max_ulp(found.numpy(), expected.numpy(), 4)  # which is fused may round once less


HALF: dict[str, tuple[Any, Any]] = {
    "mean": (ad.mean, [60000.0] * 40 + [-60000.0] * 3),
    "mean along an axis": (lambda x: ad.mean(x, axis=1), [[60000.0, 50000.0], [-40000.0, -60000.0]]),
    "var": (ad.var, [300.0, -100.0, 0.5]),
    "std": (lambda x: ad.std(x, correction=1), [1000.0, -2000.0, 30.0]),
    "norm": (ad.linalg.norm, [3000.0, 4000.0]),
    "vector_norm": (lambda x: ad.linalg.vector_norm(x, ord=3), [300.0, 400.0, -50.0]),
    "matrix_norm": (ad.linalg.matrix_norm, [[3000.0], [-4000.0]]),
    "layer_norm": (lambda x: ad.nn.layer_norm(x, 4), [20000.0, 30000.0, 40000.0, -60000.0]),
    "logsumexp": (ad.special.logsumexp, [1.0] * 70000),
    "log_softmax": (lambda x: ad.special.log_softmax(x)[0], [1.0] * 70000),
    "cross_entropy": (lambda x: ad.nn.cross_entropy(x, ad.tensor(3)), [1.0] * 70000),
}


@pytest.mark.parametrize("name", HALF)
def test_sums_of_half_precision_do_not_overflow(name: str, device: Any) -> None:
    """What fits is found, to the last digit or so, and gradients keep the dtype."""
    f, values = HALF[name]
    results = []
    for dtype in (ad.float16, ad.float64):
        x = ad.tensor(values, dtype=dtype).require_grad()
        out = f(x)
        cotangent = np.cos(np.arange(out.size)).reshape(out.shape).astype(dtype)
        gradient = out.backward(ad.tensor(cotangent, device=device.inner))[x]
        assert out.dtype is gradient.dtype is dtype
        results.append((out.numpy(), gradient.numpy()))
    for ours, exact in zip(*results, strict=True):
        assert np.isfinite(ours).all()
        np.testing.assert_allclose(ours, exact, rtol=2e-3, atol=1e-7)


def test_statistics_of_nothing_are_nan() -> None:
    x = ad.zeros((0, 2))
    for f in (ad.mean, ad.var, ad.std):
        assert f(x).shape == ()
        assert math.isnan(f(x).item())
        assert np.isnan(f(x, axis=0).numpy()).all()
        assert f(x, axis=1).shape == (0,)
    assert math.isnan(ad.var(ad.ones(1), correction=1).item())
    assert math.isnan(ad.std(ad.ones(1), correction=2).item())
    same(ad.sum(x), np.float32(0))
    same(ad.prod(x, axis=0), np.ones(2, "f4"))


def test_integers_have_real_statistics() -> None:
    x = ad.tensor([1, 2, 4])
    same(ad.mean(x), np.float32(7 / 3), exact=False)
    assert ad.std(x).dtype is ad.float32
    assert ad.var(ad.tensor([True, False])).dtype is ad.float32


def test_scans_of_scalars_and_with_an_initial_value() -> None:
    same(ad.cumulative_sum(ad.tensor(3.0)), np.array([3], "f4"))
    same(ad.cumulative_prod(ad.tensor(3)), np.array([3]))
    same(ad.cumulative_sum(ad.tensor([1, 2]), include_initial=True), np.array([0, 1, 3]))
    same(ad.cumulative_prod(ad.tensor([[2.0], [3.0]]), axis=0, include_initial=True), np.array([[1], [2], [6]], "f4"))


# --- promotion by functions ---


def test_integers_become_real_where_values_are() -> None:
    for f in (
        ad.sqrt,
        ad.exp,
        ad.sin,
        ad.log1p,
        ad.special.erf,
        ad.nn.relu,
        ad.nn.gelu,
        ad.special.softmax,
        ad.linalg.norm,
    ):
        assert f(ad.tensor([1, 2])).dtype is ad.float32
    assert ad.linalg.inv(ad.tensor([[2, 0], [0, 4]])).tolist() == [[0.5, 0.0], [0.0, 0.25]]
    assert ad.divide(ad.tensor([1, 2]), 2).tolist() == [0.5, 1.0]
    assert ad.reciprocal(ad.tensor([2, 4])).tolist() == [0.5, 0.25]
    assert ad.clip(ad.tensor([1, 5]), 0.5, 2.5).tolist() == [1.0, 2.5]
    for g in (ad.abs, ad.sign, ad.floor, ad.ceil, ad.round, ad.trunc, ad.square, ad.negative):
        assert g(ad.tensor([1, -2])).dtype is ad.int64


def test_functions_take_numbers_and_lists() -> None:
    same(ad.sin(0.0), np.float32(0))
    same(ad.add(1, 2), np.array(3))
    same(ad.maximum([1.0, 3.0], 2.0), np.array([2, 3], "f4"))
    same(ad.add(2.0, [1.0, 2.0]), np.array([3, 4], "f4"))
    same(ad.sum([[1, 2], [3, 4]]), np.array(10))
    same(ad.where(ad.tensor([True, False]), 1, 2.5), np.array([1, 2.5], "f4"))
    same(ad.where(ad.tensor([True, False]), 1, 0), np.array([1, 0]))
    same(ad.clip(ad.tensor([3.0]), None, None), np.array([3], "f4"))


def test_real_and_imag_of_real_numbers() -> None:
    x = ad.tensor([1.0])
    same(ad.real(x), np.array([1], "f4"))
    same(ad.positive(x), np.array([1], "f4"))
    same(ad.conj(x), np.array([1], "f4"))
    for kind in ("?", "i2", "f2", "f4", "f8"):
        values = np.array([[1, 0]], kind)
        y = ad.asarray(values)
        for found in (ad.imag(y), y.imag, np.imag(y), ad.asarray(ad.vmap(ad.imag)(values))):
            same(found, np.imag(values))
    leaf = ad.tensor([2.0, 3.0]).require_grad()
    assert not leaf.imag.is_tracked()
    same((leaf * leaf.imag).sum().backward()[leaf], np.zeros(2, "f4"))


# --- indexing ---


def test_take_and_empty_indices() -> None:
    x = ad.tensor([1.0, 2.0, 3.0])
    same(ad.take(x, 1), np.float32(2))
    same(ad.take(x, [-1, 0]), np.array([3, 1], "f4"))
    same(x[[]], np.zeros(0, "f4"))
    same(x[ad.tensor([0], dtype=ad.uint8)], np.array([1], "f4"))
    same(ad.take_along_axis(x, np.array([2, 2], dtype=np.int8)), np.array([3, 3], "f4"))
    rows, columns = ad.nonzero(ad.tensor([[0, 1], [1, 0]]))
    assert (rows.tolist(), columns.tolist()) == ([0, 1], [1, 0])
    with pytest.raises(errors.OutOfRangeError, match=r"0-d boolean"):
        x[0, True]
    with pytest.raises(errors.AxisError, match=r"take.*axis="):
        ad.take(ad.ones((2, 2)), [0])


def test_sorting() -> None:
    x = np.array([[3.0, 1.0, 2.0], [0.0, 5.0, 4.0]])
    for axis in (0, 1, -1):
        same(ad.sort(ad.tensor(x), axis=axis), np.sort(x, axis=axis))
        same(ad.sort(ad.tensor(x), axis=axis, descending=True), -np.sort(-x, axis=axis))
        same(ad.argsort(ad.tensor(x), axis=axis), np.argsort(x, axis=axis))
        same(ad.argsort(ad.tensor(x), axis=axis, descending=True), np.argsort(-x, axis=axis))
    ties = ad.tensor([1, 0, 1, 0])
    assert ad.argsort(ties).tolist() == [1, 3, 0, 2]
    assert ad.argsort(ties, descending=True).tolist() == [0, 2, 1, 3]


def test_norms() -> None:
    x = np.random.default_rng(0).standard_normal((2, 3, 4))
    for order in (2, 1, 3, 0.5, 0, -1, math.inf, -math.inf):
        found = ad.linalg.vector_norm(ad.tensor(x), axis=(0, 2), ord=order, keepdims=True).numpy()
        np.testing.assert_allclose(found, np.linalg.vector_norm(x, axis=(0, 2), ord=order, keepdims=True), rtol=1e-12)
    for kind in ("fro", 1, -1, math.inf, -math.inf):
        found = ad.linalg.matrix_norm(ad.tensor(x), ord=kind).numpy()
        np.testing.assert_allclose(found, np.linalg.matrix_norm(x, ord=kind))
        for axes in ((2, 0), (0, 2), (-1, 1)):  # rows, then columns
            found = ad.linalg.norm(ad.tensor(x), kind, axis=axes, keepdims=True).numpy()
            np.testing.assert_allclose(found, np.linalg.norm(x, kind, axis=axes, keepdims=True))
    zeros = ad.tensor([0.0, 4.0])
    for order in (0.5, -1, 0):
        with np.errstate(divide="ignore"):
            expected = np.linalg.norm([0.0, 4.0], order)
        assert ad.linalg.vector_norm(zeros, ord=order).item() == expected


# --- large arrays take other paths in a leaf ---


@pytest.mark.parametrize("name", ["erf", "expit"])
def test_special_functions_do_not_depend_on_size_and_layout(name: str) -> None:
    f = getattr(ad.special, name)
    x = np.random.default_rng(0).standard_normal((300, 250))
    pieces = np.stack([f(ad.tensor(row)).numpy() for row in x])
    for values in (x, np.asfortranarray(x), x.T, x[::-1], np.repeat(x, 2, axis=1)[:, ::2]):
        expected = pieces if values.shape == x.shape else pieces.T
        expected = pieces[::-1] if values.strides[0] < 0 else expected
        np.testing.assert_array_equal(f(ad.tensor(values)).numpy(), expected)
    line = np.repeat(x.reshape(-1), 2)[::2]
    np.testing.assert_array_equal(f(ad.asarray(line)).numpy(), pieces.reshape(-1))


@pytest.mark.parametrize(
    "f", [ad.nn.gelu, ad.nn.silu, ad.nn.softplus, ad.nn.relu, ad.tanh, ad.special.erf, ad.nn.sigmoid]
)
def test_gradients_do_not_depend_on_size_and_layout(f: Any, device: Any) -> None:
    values = np.random.default_rng(0).standard_normal((300, 250))
    cotangent = np.cos(np.arange(values.size)).reshape(values.shape)
    x = ad.tensor(values).require_grad()
    whole = f(x).backward(cotangent)[x].numpy()
    turned = ad.asarray(values.T).require_grad()
    np.testing.assert_array_equal(f(turned).backward(cotangent.T)[turned].numpy(), whole.T)
    for i in (0, 150, 299):
        row = ad.tensor(values[i]).require_grad()
        np.testing.assert_array_equal(f(row).backward(cotangent[i])[row].numpy(), whole[i])
    spread = ad.asarray(values).require_grad()
    same_cotangent = f(spread).backward(np.broadcast_to(np.float64(2.0), values.shape))[spread].numpy()
    np.testing.assert_allclose(same_cotangent, 2 * f(x).backward()[x].numpy(), rtol=1e-15)


@pytest.mark.parametrize("method", ["linear", "hazen", "weibull", "median_unbiased", "lower", "midpoint", "nearest"])
def test_quantiles_have_a_gradient_in_q(method: str) -> None:
    x = np.array([1.0, 5.0, 2.0, 7.0])
    at, step = 0.43, 1e-6
    slope = (np.quantile(x, at + step, method=method) - np.quantile(x, at - step, method=method)) / (2 * step)
    for f, scale in ((ad.quantile, 1), (ad.percentile, 100), (ad.nanquantile, 1), (ad.nanpercentile, 100)):
        rows = np.append(x, np.nan) if "nan" in f.__name__ else x
        found = ad.grad(lambda q: f(ad.tensor(rows), q, method=method))(at * scale)  # noqa: B023
        np.testing.assert_allclose(found, slope / scale, rtol=1e-8, atol=1e-9)


def test_quantiles_of_lists_with_tracked_numbers() -> None:
    x = np.array([1.0, 5.0, 2.0, 7.0])
    for f, scale in ((ad.quantile, 1), (ad.percentile, 100), (ad.nanquantile, 1), (ad.nanpercentile, 100)):

        def of_list(q: Any, f: Any = f, scale: float = scale) -> Any:
            return f(x, [0.5 * scale, q])

        ad.testing.check_grads(of_list, (np.array(0.45 * scale),), order=2)
        np.testing.assert_allclose(of_list(ad.tensor(0.45 * scale)).numpy(), np.quantile(x, [0.5, 0.45]), rtol=1e-6)
        with pytest.raises(errors.ArgumentError, match="q is from 0"):
            f(x, [[0.5, ad.tensor(0.2)]])


def test_quantiles_in_q_and_x_together() -> None:
    x = np.array([1.0, 5.3, 2.0, 7.0])
    assert ad.grad(lambda q: ad.quantile(ad.tensor([1.0, 5.0, 2.0, 7.0]), q))(0.4) == 9
    ad.testing.check_grads(ad.quantile, (x, np.array([0.1, 0.45])), order=2)
    np.testing.assert_allclose(
        ad.vmap(lambda q: ad.quantile(ad.tensor(x), q))(np.array([0.1, 0.4])), np.quantile(x, [0.1, 0.4])
    )
    at_an_element = ad.grad(lambda q: ad.quantile(ad.tensor([1.0, 2.0, 4.0]), q))(0.5)
    assert at_an_element == 4  # of the interval above it, whose slope is 2 / 0.5
    np.testing.assert_array_equal(ad.quantile(ad.tensor([1.0, np.inf, 2.0]), [0.0, 0.5]).numpy(), [1, 2])
    with pytest.raises(ad.errors.ArgumentError, match="q is from 0 to 1"):
        ad.quantile(ad.tensor(x), ad.tensor(1.5).require_grad())


def test_bounds_and_densities_of_histograms_have_gradients() -> None:
    x = np.array([1.0, 5.3, 2.0, 7.0])
    ad.testing.check_grads(lambda x: ad.histogram(x, 3)[1], (x,), order=2)
    ad.testing.check_grads(lambda x: ad.histogram(x, 3, density=True)[0], (x,), order=2)
    bounds = np.array([0.0, 1.5, 4.0, 8.0])
    ad.testing.check_grads(lambda b: ad.histogram(ad.tensor(x), b, density=True)[0], (bounds,), order=2)
    ad.testing.check_grads(
        lambda x, w: ad.histogram(x, 3, weights=w, density=True)[0], (x, np.array([1.0, 2.0, 0.5, 3.0])), order=2
    )
    assert not ad.histogram(ad.tensor(x).require_grad(), 3)[0].is_tracked()


def test_ends_of_histograms_have_gradients() -> None:
    """Given as tensors, to ours and to NumPy's, also beside numbers and in a batch."""
    x, ends = np.array([1.0, 5.3, 2.0, 7.0]), np.array([0.5, 6.0])
    for low, high in ((ends[0], ends[1]), (0.5, ends[1])):
        ad.testing.check_grads(lambda a, b: ad.histogram(ad.tensor(x), 3, (a, b))[1], (low, high), order=2)
        ad.testing.check_grads(lambda a, b: ad.histogram(x, 3, (a, b), density=True)[0], (low, high), order=2)
        ad.testing.check_grads(lambda a, b: ad.histogram(x, 3, (a, 6.0), weights=x * b)[0], (low, high))
    np.testing.assert_allclose(
        ad.jacobian(lambda r: np.histogram(ad.asarray(x), 2, r)[1])(ends), [[1, 0], [0.5, 0.5], [0, 1]]
    )
    batch = ad.vmap(lambda a: ad.histogram(x, 3, (a, 8.0)))(np.array([0.5, 1.5]))
    for i, low in enumerate((0.5, 1.5)):
        for mine, theirs in zip(batch, np.histogram(x, 3, (low, 8.0)), strict=True):
            np.testing.assert_allclose(mine[i], theirs)
    with pytest.raises(ad.errors.ArgumentError, match="the lower one first"):
        ad.histogram(x, 3, (ad.tensor(3.0), ad.tensor(1.0)))


def test_bounds_of_histograms_keep_their_digits() -> None:
    """Beside narrower values: these count as what they are in the wider type, as to NumPy."""
    x, bounds = np.array([0.1, 0.5, 0.9], np.float32), np.array([0.0, 0.1, 0.9])
    for given in (bounds, ad.tensor(bounds)):
        counts, edges = ad.histogram(ad.tensor(x), given)
        assert edges.dtype == ad.float64
        assert edges.tolist() == bounds.tolist()
        assert counts.tolist() == np.histogram(x, bounds)[0].tolist()
    assert ad.histogram(ad.tensor([1, 2]), bounds)[1].tolist() == bounds.tolist()
    assert ad.histogram(ad.tensor(x), 2, (0.0, ad.tensor(0.9, dtype=ad.float64)))[1].tolist() == [0.0, 0.45, 0.9]


def test_bounds_of_histograms_alone_and_numbers_of_intervals() -> None:
    x = np.array([1.0, 5.3, 2.0, 7.0, 2.5, 2.25, 2.75, 3.0])
    for rule in (3, "auto", "doane", "fd", "rice", "scott", "sqrt", "stone", "sturges", x[[0, 2, 3]]):
        for ends in (None, (2.0, 6.0)):
            np.testing.assert_allclose(
                np.histogram_bin_edges(ad.tensor(x), rule, ends).numpy(), np.histogram_bin_edges(x, rule, ends)
            )
            np.testing.assert_array_equal(ad.histogram(x, rule, ends)[0].numpy(), np.histogram(x, rule, ends)[0])
    np.testing.assert_allclose(
        ad.grad(lambda x: np.histogram_bin_edges(x, "sqrt")[1])(x), [2 / 3, 0, 0, 1 / 3, 0, 0, 0, 0]
    )
