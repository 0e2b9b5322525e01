"""Functions that are machine code though a loop's step seldom has them: they give what NumPy gives."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from test_native import native as native
from test_native import same, steps

import adjoint as ad
from adjoint.compiler.native.machine import is_x86

pytest.importorskip("llvmlite")


def flat(f: Callable[..., Any]) -> Callable[..., list[Any]]:
    return lambda *xs: ad.tree.flatten(f(*xs))[0]


def is_native(f: Callable[..., Any], *xs: Any) -> bool:
    """Whether Python only calls machine code and takes views."""
    return all(".transpose(" in line or re.fullmatch(r" v\d+ = v\d+\[c\d+\]", line) for line in steps(f, *xs))


def equal(f: Callable[..., Any], *xs: Any) -> None:
    """All of it is machine code, with results that are NumPy's to the last bit."""
    tensors = [ad.asarray(x) for x in xs]
    with np.errstate(all="ignore"):
        expected = flat(f)(*tensors)
    same(ad.compile(flat(f))(*tensors), expected)
    assert is_native(f, *tensors)


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


@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "uint8", "int64"])
def test_places_in_sorted_lines(dtype: str) -> None:
    rng = np.random.default_rng(7)
    f = lambda x, v: [ad.searchsorted(x, v), ad.searchsorted(x, v, side="right")]
    for n in (1, 2, 3, 4, 7, 8, 9, 100, 1000):
        x = np.sort((rng.integers(0, 60, n) / (2 if dtype[0] == "f" else 1)).astype(dtype))
        v = np.concatenate([x, x + 1, np.zeros(1, dtype), np.full(1, 99, dtype)])
        if dtype[0] == "f":
            v = np.concatenate([v, [np.nan, np.inf, -np.inf, -0.0]]).astype(dtype)
        equal(f, x, v)
        equal(f, x, v[: n // 2 * 2].reshape(-1, 2).T) if n > 1 else equal(f, x, v[0])
        if dtype[0] == "f":
            x[n // 2 :] = np.inf
            x[n - n // 4 :] = np.nan
            equal(f, x, v)
    lines, v = np.sort(rng.integers(0, 9, (4, 13)).astype(dtype)), rng.integers(0, 9, (4, 5)).astype(dtype)
    equal(f, lines, v)
    equal(f, lines[:, ::-1][:, ::-1], v.T.copy().T)
    same(ad.compile(lambda x: f(x, x[:0]))(ad.asarray(lines[0])), f(ad.asarray(lines[0]), ad.asarray(lines[0, :0])))


@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "uint8"])
def test_short_lines_are_sorted(dtype: str) -> None:
    """Equal elements keep their order, and nan is the largest."""
    rng = np.random.default_rng(8)

    def f(x: Any, axis: int) -> list[Any]:
        found = [ad.argsort(x, axis=axis), ad.argsort(x, axis=axis, descending=True)]
        found += [ad.sort(x, axis=axis), ad.sort(x, axis=axis, descending=True)]
        n = x.shape[axis]
        return [
            *found,
            *[y for k in {1, n // 2 or 1, n} for most in (True, False) for y in ad.topk(x, k, axis=axis, largest=most)],
        ]

    pool = np.array([3, 1, 2, 2, 7, 1, 0, 9, 4, 4], dtype)
    if dtype[0] == "f":
        pool = np.array([3.5, 1.0, -2.0, -2.0, 7.0, 1.0, np.nan, np.inf, -np.inf, np.nan, 0.0], dtype)
    for shape in ((1,), (5,), (45,), (3, 4), (2, 3, 5)):
        for axis in range(len(shape)):
            x = pool[rng.integers(0, len(pool), shape)]
            equal(lambda x, axis=axis: f(x, axis), x)
            equal(lambda x, axis=axis: f(x, axis), np.repeat(x, 2, axis=-1)[..., ::2])
    signs = np.array([0.0, -0.0, 0.0, -0.0, 1.0]) if dtype[0] == "f" else np.arange(5)
    equal(ad.argsort, signs.astype(dtype))
    large = rng.integers(0, 9, (20, 40)).astype(dtype)  # which NumPy sorts
    same(ad.compile(lambda x: f(x, 1)[:4])(ad.asarray(large)), f(ad.asarray(large), 1)[:4])


def test_medians_in_a_loop() -> None:
    rng = np.random.default_rng(9)
    x = rng.normal(size=(6, 9)).round(1)
    kept = lambda x: ad.scan(
        lambda c, r: (0.5 * c + 0.5 * ad.median(r) + ad.topk(r, 2)[0].sum(), ad.sort(r + c)), x[0, 0], x
    )
    equal(kept, x)
    equal(lambda x: [ad.median(x, axis=0), ad.quantile(x, 0.3, axis=1)], x)
    slope = ad.grad(lambda x: (kept(x)[1] * x).sum() + kept(x)[0])
    np.testing.assert_allclose(ad.compile(slope)(x), slope(x), rtol=1e-13, atol=1e-13)
    assert is_native(slope, x)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_interpolation_in_a_loop(dtype: str) -> None:
    at, values = (np.array(x, dtype) for x in ([0.0, 1.0, 2.5, 4.0], [1.0, -1.0, 2.0, 0.5]))
    x = np.linspace(-1.0, 5.0, 31).astype(dtype)
    equal(lambda x: ad.interp(x, at, values), x)
    equal(lambda x, at, values: ad.interp(x, at, values, left=9.0, right=-9.0), x, at, values)
    equal(lambda x: ad.interp(x, at, values, period=4.5), x)
    total = lambda x, at, values: (ad.interp(x, at, values) ** 2).sum()
    for found, expected in zip(
        ad.compile(ad.grad(total, argnums=(0, 1, 2)))(x, at, values),
        ad.grad(total, argnums=(0, 1, 2))(x, at, values),
        strict=True,
    ):
        np.testing.assert_allclose(found, expected, rtol=1e-4 if dtype == "float32" else 1e-12)
    driven = lambda x, at, values: ad.scan(lambda c, t: (c + 0.1 * ad.interp(c + t, at, values), c), x, x)
    equal(driven, x, at, values)


# --- windows ---


@pytest.mark.parametrize("dtype", ["float32", "float64", "int32"])
def test_windows_are_views(dtype: str) -> None:
    x = np.random.default_rng(10).integers(0, 9, (3, 12, 7)).astype(dtype)
    seen = lambda x: ad.sliding_window_view(x, 4, axis=1)
    equal(lambda x: [seen(x).max(axis=-1), seen(x * 2)[:, ::2] + 1, seen(x[:, ::-1]).min(axis=1)], x)
    equal(lambda x: [(x[:, :1, :, None] - seen(x)).sum(axis=(0, 1, 2, 3)), seen(seen(x))[:, 1:3] + 1], x)
    equal(lambda x: ad.scan(lambda c, r: (c + seen(r[None]).max(axis=-1)[0], None), 0 * x[0, :9], x)[0], x)
    if dtype != "int32":
        equal(ad.grad(lambda x: (seen(x) ** 2).max(axis=-1).sum()), x)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_convolutions_of_lines(dtype: str) -> None:
    rng, rtol = np.random.default_rng(11), 1e-4 if dtype == "float32" else 1e-12

    def near(f: Callable[..., Any], *xs: Any) -> None:
        tensors = [ad.asarray(x) for x in xs]
        with np.errstate(all="ignore"):
            expected = flat(f)(*tensors)
        for found, wanted in zip(ad.compile(flat(f))(*tensors), expected, strict=True):
            np.testing.assert_allclose(found.numpy(), wanted.numpy(), rtol=rtol, atol=rtol)

    for n, m in ((9, 1), (9, 3), (3, 3), (3, 9), (1, 1), (40, 16), (100, 30)):
        a, v = rng.normal(size=n).astype(dtype), rng.normal(size=m).astype(dtype)
        for mode in ["full", "same", "valid"] if m <= 16 else ["valid"]:
            f = lambda a, v, mode=mode: ad.convolve(a, v, mode=mode)
            for first, second in ((a, v), (np.repeat(a, 2)[::2], v[::-1])):
                near(f, first, second)
            assert is_native(f, a, v)
            slope = ad.grad(lambda a, v, f=f: (f(a, v) ** 2).sum(), argnums=(0, 1))
            near(slope, a, v)
            assert is_native(slope, a, v) or (m > 16 and mode == "valid")
    a[3], a[7], v = np.inf, np.nan, np.array([1.0, np.inf, 0.0], dtype)
    near(lambda a, v: [ad.convolve(a, v, mode=mode) for mode in ("full", "same", "valid")], a, v)
    smooth = lambda x, v: ad.scan(lambda c, _: (ad.tanh(ad.convolve(c, v, mode="same")), c), x, None, 5)
    near(smooth, a[10:30], v[:1] * np.array([0.2, 0.5, 0.3], dtype))
    assert is_native(smooth, a[10:30], v)


@pytest.mark.parametrize("mode", ["full", "same", "valid"])
def test_convolutions_of_examples_share_one_operand(mode: Any) -> None:
    a, v = np.arange(24.0).reshape(4, 6), np.array([0.2, 0.5, 0.3])
    long = np.linspace(0, 1, 20)
    for f, x in (
        (lambda x: ad.convolve(x, ad.asarray(v), mode=mode), a),
        (lambda x: ad.convolve(ad.asarray(v), x, mode=mode), a),
        (lambda x: ad.convolve(ad.asarray(long), x, mode=mode), a),
        (lambda x: ad.convolve(ad.asarray(long), x[:17], mode=mode), np.tile(long, (3, 1))),
    ):
        each = lambda x, f=f: (ad.vmap(f)(x), ad.vmap(ad.grad(lambda x: (f(x) ** 2).sum()))(x))
        for found, expected in zip(ad.compile(each)(x), each(ad.asarray(x)), strict=True):
            np.testing.assert_allclose(found, expected.numpy(), rtol=1e-12, atol=1e-12)


def test_windows_of_images_in_a_loop() -> None:
    x = np.random.default_rng(12).normal(size=(2, 3, 8, 6)).round(1)
    for pool in (ad.nn.max_pool2d, ad.nn.avg_pool2d):
        for how in ((2,), (3, 1), ((2, 3),)):
            f = lambda x, pool=pool, how=how: ad.scan(lambda c, s: (c * s, pool(c + s, *how)), x, np.arange(1.0, 4.0))
            equal(f, x)
        slope = ad.grad(
            lambda x, pool=pool: sum(
                y.sum() for y in ad.scan(lambda c, s: (c * s, pool(c + s, 2)), x, np.arange(1.0, 4.0))
            )
        )
        equal(slope, x)


# --- remainders ---


def sizes(dtype: Any, count: int, seed: int) -> np.ndarray[Any, Any]:
    """Numbers of all sizes and signs, whole ones, and what is special."""
    rng = np.random.default_rng(seed)
    info = np.finfo(dtype)
    special = [0.0, -0.0, 1.0, -1.0, 0.5, 2.0, 3.0, -3.0, np.inf, -np.inf, np.nan]
    special += [info.max, -info.max, info.tiny, info.smallest_subnormal, -info.smallest_subnormal, 7 * info.tiny / 8]
    bits = rng.integers(0, 2**info.bits - 1, count, dtype=f"uint{info.bits}", endpoint=True).view(dtype)
    parts = [special, rng.uniform(-9.0, 9.0, count), np.round(rng.uniform(-30.0, 30.0, count)), 0.1 * np.arange(count)]
    return np.concatenate([bits, *[np.array(part, dtype) for part in parts]])


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_remainders_of_floats(dtype: str) -> None:
    """Also of numbers that are 2^2000 times as large as what they are divided by."""
    x, y = (z.ravel() for z in np.meshgrid(sizes(dtype, 60, 0), sizes(dtype, 60, 1)))
    with np.errstate(all="ignore"):
        whole = (y * np.round(np.random.default_rng(2).uniform(-99.0, 99.0, y.size))).astype(dtype)
        around = [np.nextafter(whole, np.array(end, dtype)) for end in (-np.inf, np.inf)]
    for above in (x, whole, *around):
        equal(lambda x, y: [x % y, x // y, ad.fmod(x, y)], above, y)
    some = sizes(dtype, 5, 3)
    equal(lambda x: [x % 2.0, 2.0 % x, x // 0.1, 1e10 // x, ad.fmod(x, 0.3), x % -0.1, (x + 1.0) % 1], some)
    for shapes in (((3, 1), (4,)), ((), (5,)), ((), ()), ((7, 3), (7, 3)), ((1, 17), (2, 1))):
        pair = [np.resize(sizes(dtype, 9, 4 + i), shape) for i, shape in enumerate(shapes)]
        equal(lambda x, y: [x % y, x // y, ad.fmod(x, y)], *pair)
    long = sizes(dtype, 40, 5)
    equal(lambda x, y: [x % y, x // y], np.repeat(long, 2)[::2], long[::-1])
    empty = np.zeros((0, 3), dtype)
    same(ad.compile(lambda x: [x % 2.0])(ad.asarray(empty)), [ad.asarray(empty)])


@pytest.mark.parametrize("dtype", ["int8", "int32", "int64", "uint8", "uint64"])
def test_remainders_of_integers(dtype: str) -> None:
    info = np.iinfo(dtype)
    below = range(-9 if info.min < 0 else 0, 0)
    some = np.array([info.min, info.min + 1, 0, 1, 2, 3, 7, 10, info.max - 1, info.max, *below], dtype)
    x, y = (z.ravel() for z in np.meshgrid(some, some))
    equal(lambda x, y: [x % y, x // y, ad.fmod(x, y), x % 3, ad.fmod(x, 5)], x, y)


@pytest.mark.parametrize("dtype", ["int8", "int32", "int64", "uint8", "uint64"])
def test_integers_to_the_power_of_a_number(dtype: str) -> None:
    info = np.iinfo(dtype)
    x = np.array([info.min, info.min + 1, 0, 1, 2, 3, 7, 10, info.max - 1, info.max], dtype)
    equal(lambda x: [x**0, x**1, x**2, x**3, x**10, x**64], x)
    equal(lambda x: [x**5, x ** ad.asarray(np.array(3, dtype))], x[::-2])
    equal(lambda x: ad.fori_loop(0, 5, lambda i, c: c + 1.0 / (i + 1) ** 2, 0.0 * x), x.astype(np.float64))


@pytest.mark.skipif(not is_x86(), reason="what does not fit differs")
@pytest.mark.filterwarnings("ignore:invalid value")
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_floats_as_integers(dtype: str) -> None:
    """Also those that do not fit. Of uint32 and uint64 it depends on the array's memory which number comes out."""
    ends = [
        s * 2.0**k + more
        for k in (7, 8, 15, 16, 31, 32, 63, 64)
        for s in (-1.0, 1.0)
        for more in (-1.5, -0.5, 0.0, 1.0)
    ]
    x = np.concatenate([sizes(dtype, 60, 0), np.array(ends, dtype), np.linspace(-300.0, 300.0, 61, dtype=dtype)])
    for name in ("int8", "int16", "int32", "int64", "uint8", "uint16"):
        cast = lambda x, name=name: ad.astype(x, name)
        equal(cast, x)
        for other in (x[::2], x[:100].reshape(4, 25).T, x[3], x[:3]):
            equal(cast, other)
    cell = lambda x, t: ad.scan(lambda c, r: (c + t[ad.floor(r).astype(ad.int64)] * (r % 1.0), c), 0.0 * x[0], x)
    equal(cell, np.linspace(0.0, 8.9, 14).astype(dtype), np.arange(9.0).astype(dtype) ** 2)
    equal(ad.grad(lambda t, x: cell(x, t)[0]), np.arange(9.0), np.linspace(0.0, 8.9, 14))


def test_gradients_of_remainders() -> None:
    x, y = np.linspace(-5.0, 5.0, 23), np.linspace(1.0, 3.0, 23)
    total = lambda x, y: (x % y * x + ad.fmod(x, y) * y + (x + y) % 0.7).sum()
    equal(ad.grad(total, argnums=(0, 1)), x, y)
    turned = lambda x, v: ad.scan(lambda c, r: ((c + r) % (2.0 * np.pi), c), x, v)
    equal(turned, x, np.outer(np.arange(5.0), y))
    equal(ad.grad(lambda x, v: (turned(x, v)[1] ** 2).sum()), x, np.outer(np.arange(5.0), y))


# --- along an axis ---


@pytest.mark.parametrize("dtype", ["float32", "float64", "int8", "int32", "uint8", "int64"])
def test_running_extremes(dtype: str) -> None:
    rng = np.random.default_rng(0)
    if dtype.startswith("f"):
        pool = np.array([0.0, -0.0, 1.0, -1.0, 2.0, np.inf, -np.inf, np.nan, 0.5, 0.5, 3.0], dtype)
    else:
        pool = np.array([np.iinfo(dtype).min, np.iinfo(dtype).max, 0, 1, 2, 3, 4, 5], dtype)
    f = lambda x, axis: [*ad.cummax(x, axis=axis), *ad.cummin(x, axis=axis)]
    for shape in ((7,), (1,), (40,), (3, 5), (2, 3, 17), (3, 1), (2000,)):
        x = pool[rng.integers(0, len(pool), shape)] if shape != (7,) else pool[:7]
        for axis in range(len(shape)):
            equal(lambda x, axis=axis: f(x, axis), x)
    x = pool[rng.integers(0, 4, (4, 9))]
    equal(lambda x: f(x, 0), x.T)
    equal(lambda x: f(x[:, ::-2], 1), x)
    equal(lambda x: f(x, 0), pool[rng.integers(0, len(pool), (30, 20))].T)
    empty = np.zeros((0, 3), dtype)
    same(ad.compile(lambda x: f(x, 0))(ad.asarray(empty)), f(ad.asarray(empty), 0))


@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "uint8"])
def test_long_cumulative_sums_and_products(dtype: str) -> None:
    x = np.random.default_rng(1).uniform(0.0, 2.0, 5000).astype(dtype)
    with np.errstate(over="ignore"):
        equal(lambda x: [ad.cumulative_sum(x, dtype=x.dtype), ad.cumulative_prod(x, dtype=x.dtype)], x)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_logarithms_of_running_sums(dtype: str) -> None:
    rtol = 1e-5 if dtype == "float32" else 1e-13
    x = (np.random.default_rng(2).normal(size=(4, 30)) * 5).astype(dtype)
    x[1, 3], x[2, 0], x[0, 4], x[3, :2] = np.inf, -np.inf, np.nan, -np.inf
    for axis in (0, 1):
        f = lambda x, axis=axis: ad.logcumsumexp(x, axis=axis)
        with np.errstate(all="ignore"):
            expected = f(ad.asarray(x)).numpy()
        np.testing.assert_allclose(ad.compile(f)(x), expected, rtol=rtol)
        assert is_native(f, x)
    equal(ad.logcumsumexp, np.array([-0.0], dtype))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_extremes_without_nans(dtype: str) -> None:
    x = np.random.default_rng(4).normal(size=(3, 4, 5)).astype(dtype)
    x[x > 1.0], x[0], x[1, 1], x[2, 2, 3] = np.nan, np.nan, -np.inf, np.inf
    for axis in (None, 0, 1, 2, (0, 2), (1, 2), ()):
        f = lambda x, axis=axis: [ad.nanmax(x, axis=axis), ad.nanmin(x, axis=axis, keepdims=True)]
        equal(f, x)
        equal(f, x.T)
    equal(ad.grad(lambda x: (ad.nanmax(x, axis=1)[1:] * x[1:, 0]).sum()), np.nan_to_num(x))


def test_gradients_along_an_axis() -> None:
    x = np.random.default_rng(3).normal(size=(5, 6)).round(1)
    w = np.arange(30.0).reshape(5, 6)
    f = lambda x, w: ((ad.cummax(x, axis=1)[0] - ad.cummin(x, axis=0)[0]) * w).sum()
    equal(ad.grad(f), x, w)
    slope = ad.grad(lambda x, w: (ad.logcumsumexp(x, axis=1) * w).sum())
    np.testing.assert_allclose(ad.compile(slope)(x, w), slope(x, w), rtol=1e-12)
    assert is_native(slope, x, w)
    peaks = lambda x: ad.scan(lambda c, r: (ad.cummax(c + r)[0], ad.cumulative_sum(c)), 0.0 * x[0], x)
    equal(peaks, x)


# --- gamma functions ---


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_gamma_functions(dtype: str) -> None:
    rng = np.random.default_rng(6)
    rtol = 4e-6 if dtype == "float32" else 1e-13
    f = lambda x: [ad.special.gammaln(x), ad.special.digamma(x)]
    for x in (rng.uniform(0.01, 40.0, (7, 33)), rng.uniform(-9.0, 9.0, (33, 7)).T, np.array(2.5), np.zeros((0, 3))):
        x = ad.asarray(x.astype(dtype))
        for found, expected in zip(ad.compile(f)(x), f(x), strict=True):
            assert found.dtype == expected.dtype
            np.testing.assert_allclose(found.numpy(), expected.numpy(), rtol=rtol, atol=rtol)
        assert not x.size or is_native(f, x)

    def log_density(a: Any, b: Any, x: Any) -> Any:
        """Of beta distributions."""
        norm = ad.special.gammaln(a) + ad.special.gammaln(b) - ad.special.gammaln(a + b)
        return ((a - 1.0) * ad.log(x) + (b - 1.0) * ad.log1p(-x) - norm).sum()

    xs = [ad.asarray(x.astype(dtype)) for x in (*rng.uniform(0.3, 6.0, (2, 29)), rng.uniform(0.1, 0.9, 29))]
    slope = ad.grad(log_density, argnums=(0, 1, 2))
    for found, expected in zip(ad.compile(slope)(*xs), slope(*xs), strict=True):
        np.testing.assert_allclose(found.numpy(), expected.numpy(), rtol=rtol, atol=rtol)
    assert is_native(slope, *xs)
    climbed = lambda a, x: ad.fori_loop(0, 5, lambda _, a: a + 0.01 * ad.grad(log_density)(a, xs[1], x), a)
    np.testing.assert_allclose(ad.compile(climbed)(xs[0], xs[2]).numpy(), climbed(xs[0], xs[2]).numpy(), rtol=rtol)
    assert is_native(climbed, xs[0], xs[2])


# --- small matrices ---


def near(f: Callable[..., Any], *xs: Any, rtol: float) -> None:
    """All of it is machine code, with results that are NumPy's but for rounding."""
    tensors = [ad.asarray(x) for x in xs]
    for found, expected in zip(ad.compile(flat(f))(*tensors), flat(f)(*tensors), strict=True):
        assert found.dtype == expected.dtype
        scale = np.abs(expected.numpy()).max(initial=1e-3)
        np.testing.assert_allclose(found.numpy(), expected.numpy(), rtol=rtol, atol=rtol * scale)
    assert is_native(f, *tensors)


OF_MATRICES: dict[str, Callable[..., Any]] = {
    "inv": ad.linalg.inv,
    "det": ad.linalg.det,
    "slogdet": lambda a: list(ad.linalg.slogdet(a)),
    "cholesky": lambda a: ad.linalg.cholesky(a @ a.mT + ad.eye(a.shape[-1], dtype=a.dtype)),
    "solve": lambda a: ad.linalg.solve(a, a[..., :1] * 2.0 + 1.0),
    "upper": lambda a: ad.linalg.solve_triangular(a, a[..., :2] + 1.0, upper=True),
    "lower": lambda a: ad.linalg.solve_triangular(a, a[..., :1] + 1.0, upper=False),
    "unit": lambda a: ad.linalg.solve_triangular(a, a[..., :1] + 1.0, upper=False, unitriangular=True),
}


@pytest.mark.parametrize("name", OF_MATRICES)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_small_matrices(name: str, dtype: str) -> None:
    f, rtol = OF_MATRICES[name], 3e-4 if dtype == "float32" else 1e-11
    rng = np.random.default_rng(13)
    for n in (2, 3, 4):
        for stack in ((), (9,), (2, 3)):
            a = rng.normal(size=(*stack, n, n))
            a[..., 0, 0] *= 1e-9  # rows change places
            a = (a + 2.0 * np.eye(n) * (name in ("upper", "lower"))).astype(dtype)
            near(f, a, rtol=rtol)
        near(f, np.swapaxes(a, 0, 1)[:, ::-1], rtol=rtol)
    a = rng.normal(size=(5, 3, 3)).astype(dtype)
    total = lambda a: sum([(y * y).sum() for y in ad.tree.flatten(f(a))[0]])
    near(ad.grad(total), a + 3.0 * np.eye(3, dtype=dtype), rtol=20 * rtol)
    steps_of = lambda a, b: ad.scan(lambda c, r: (c + 0.1 * ad.tree.flatten(f(r + c))[0][-1].sum(), None), b, a)[0]
    near(steps_of, a + 3.0 * np.eye(3, dtype=dtype), np.zeros((), dtype), rtol=20 * rtol)


def test_matrices_without_an_inverse() -> None:
    """They raise as without compiling; their determinants are zero."""
    a = np.array([[1.0, 2.0, 3.0], [2.0, 4.0, 6.0], [1.0, 1.0, 1.0]])
    same(
        ad.compile(lambda a: [ad.linalg.det(a), *ad.linalg.slogdet(a)])(ad.asarray(a)),
        map(ad.asarray, np.array([0.0, 0.0, -np.inf])),
    )
    near(ad.grad(ad.linalg.det), a, rtol=1e-12)
    indefinite = np.array([[1.0, 2.0], [2.0, 1.0]])
    for f, x in (
        (ad.linalg.inv, a),
        (lambda a: ad.linalg.solve(a, a[:, :1]), a),
        (lambda a: ad.linalg.solve_triangular(a, a[:, :1], upper=True), a * (a != 4.0)),
        (ad.linalg.cholesky, indefinite),
        (lambda x: ad.scan(lambda c, _: (ad.linalg.inv(c), None), x, None, 2)[0], a),
    ):
        run = ad.compile(f)
        for _ in range(2):
            with pytest.raises(ad.errors.SingularError) as raised:
                f(ad.asarray(x))
            with pytest.raises(ad.errors.SingularError, match=re.escape(str(raised.value).splitlines()[0][:40])):
                run(ad.asarray(x))
        good = np.eye(len(x)) + 0.1 * x
        np.testing.assert_allclose(run(good), f(good), rtol=1e-12, atol=1e-15)  # results are of size 1


def test_a_kalman_filter() -> None:
    rng = np.random.default_rng(14)
    turn, seen = np.eye(4) + 0.1 * np.eye(4, k=2), np.eye(2, 4)

    def filtered(turn: Any, seen: Any, noise: Any, ys: Any) -> Any:
        def step(state: Any, y: Any) -> Any:
            m, p = state
            m, p = turn @ m, turn @ p @ turn.mT + 0.01 * noise
            gain = ad.linalg.solve(seen @ p @ seen.mT + 0.1 * ad.eye(2, dtype=y.dtype), seen @ p).mT
            return (m + gain @ (y - seen @ m), p - gain @ seen @ p), m

        return ad.scan(step, (0.0 * turn[:, 0], noise), ys)[1]

    xs = turn, seen, np.eye(4), rng.normal(size=(30, 2))
    near(filtered, *xs, rtol=1e-11)
    near(ad.grad(lambda *xs: (filtered(*xs) ** 2).sum(), argnums=(0, 2)), *xs, rtol=1e-10)


def test_donated_arguments_are_not_read_again() -> None:
    """Machine code checks nothing then, and what it would check NumPy computes."""
    at = np.linspace(0.0, 3.0, 7)
    f = lambda x, a: (ad.interp(x, at, at**2) + ad.sort(x), ad.linalg.solve(a, a[:, :1]))
    x, a = np.linspace(0.0, 2.9, 6), np.eye(3) + 0.1
    compiled = ad.compile(f, donate=0)
    for _ in range(2):
        same(compiled(ad.tensor(x), ad.tensor(a)), f(ad.tensor(x), ad.tensor(a)))
    with pytest.raises(ad.errors.SingularError):
        compiled(ad.tensor(x), ad.zeros((3, 3), dtype=ad.float64))


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("order", [1, 2])
def test_derivatives_of_reciprocals_multiply_where_eager_divides(dtype: str, order: int) -> None:
    """And they are the same for numbers that are no numbers, infinite, or so small that their reciprocal is."""
    info = np.finfo(dtype)
    large = [1.0, 3.0, 1e10, float(info.max), float(info.max) ** 0.5, np.inf]
    small = [0.0, float(info.smallest_subnormal), float(info.tiny), float(info.tiny) ** 0.5, 1e-10, 0.7]
    values = np.array([sign * x for x in (*small, *large) for sign in (1, -1)] + [np.nan], dtype)
    y, g = (ad.tensor(x.ravel()) for x in np.meshgrid(values, values))

    def f(y: Any, g: Any) -> Any:
        found = lambda y: 1 / y
        for _ in range(order):
            found = lambda y, f=found: ad.jvp(f, (y,), (g,))[1]
        return found(y)

    lowered = ad.compile(f).lower(y, g)
    assert (str(lowered.graph).count("divide(") > 1, " ".join(lowered.kernels).count("divide")) == (True, 1)
    with np.errstate(all="ignore"):
        wanted = f(y, g).numpy()
        found = ad.compile(f)(y, g).numpy()
    np.testing.assert_array_equal(np.isnan(found), np.isnan(wanted))
    np.testing.assert_allclose(found, wanted, rtol=4 * info.eps * order, atol=8 * float(info.smallest_subnormal))


@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_quotients_by_a_root_multiply(dtype: str) -> None:
    """Several, or of more elements than there are roots; they are the same for numbers of any size."""
    info = np.finfo(dtype)
    large = [1.0, 3.0, 1e10, float(info.max), float(info.max) ** 0.5, np.inf]
    small = [0.0, float(info.smallest_subnormal), float(info.tiny), float(info.tiny) ** 0.5, 1e-10, 0.7]
    values = np.array([sign * x for x in (*small, *large) for sign in (1, -1)] + [np.nan], dtype)
    x, y = (ad.tensor(x.ravel()) for x in np.meshgrid(values, values))
    columns, roots = ad.tensor(np.tile(values, (2 * len(values), 1)).T.copy()), ad.tensor(values[:, None])

    def several(x: Any, y: Any) -> Any:
        root = ad.sqrt(y)
        return [x / root, 1 / root, (2 * x) / root, ad.jvp(ad.sqrt, (y,), (x,))[1]]

    for f, operands in ((several, (x, y)), (lambda x, y: [x / ad.sqrt(y)], (columns, roots))):
        assert " ".join(ad.compile(f).lower(*operands).kernels).count("divide") == 1
        with np.errstate(all="ignore"):
            for found, wanted in zip(ad.compile(f)(*operands), f(*operands), strict=True):
                np.testing.assert_array_equal(np.isnan(found.numpy()), np.isnan(wanted.numpy()))
                atol = 2 * float(info.smallest_subnormal)
                np.testing.assert_allclose(found.numpy(), wanted.numpy(), rtol=2 * info.eps, atol=atol)


def test_one_quotient_by_a_root_divides() -> None:
    x = ad.tensor(np.arange(1.0, 9.0))
    equal(lambda x: [x / ad.sqrt(x), (x + 1) / ad.sqrt(x + 2)], x.numpy())
