"""Machine code gives what NumPy gives: random programs, special values, and arrays that lie in memory in any way."""

from __future__ import annotations

import ctypes
import functools
import itertools
import math
import mmap
import os
import re
import time
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import native_code
import numpy as np
import pytest
from functions import FUNCTIONS, Draw
from hypothesis import given, settings
from hypothesis import strategies as st
from test_compiled import ASKS, compared
from test_recording import TRANSFORMS, X, derivatives

import adjoint as ad
from adjoint.compiler import passes, replay
from adjoint.compiler.native import gemm, lowering, machine, plan, stored, text
from adjoint.compiler.native import steps as native_steps
from adjoint.compiler.native.views import Layout

pytest.importorskip("llvmlite")


@pytest.fixture(autouse=True)
def native(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ADJOINT_COMPILE", raising=False)


def source(f: Any, *xs: Any) -> str:
    return str(ad.compile(f).lower(*xs).source)


def steps(f: Any, *xs: Any) -> list[str]:
    """The lines of the program that compute: calls of machine code, and of NumPy."""
    lines = source(f, *xs).splitlines()[1:-1]
    return [
        line for line in lines if not any(part in line for part in (" n0(", " n1(", "empty(", " del ", ".reshape("))
    ]


# --- random programs -----------------------------------------------------------------------------

ONE: dict[str, Callable[[Any], Any]] = {
    **{name: getattr(ad, name) for name in "negative square abs sign floor ceil trunc sqrt conj".split()},
    **{name: getattr(ad, name) for name in "isnan isinf isfinite signbit logical_not round".split()},
    "relu": ad.nn.relu,
    "number": lambda x: x * 3 - 0.5,
    "half": lambda x: 0.5 - x,
    "clip": lambda x: ad.clip(x, -1.0, 1.0),
    "hardtanh": ad.nn.hardtanh,
}
TWO: dict[str, Callable[[Any, Any], Any]] = {
    **{name: getattr(ad, name) for name in "add subtract multiply divide maximum minimum copysign".split()},
    **{name: getattr(ad, name) for name in "less less_equal greater greater_equal equal not_equal".split()},
    **{name: getattr(ad, name) for name in "logical_and logical_or logical_xor".split()},
    "where": lambda x, y: ad.where(x > y, x, y * 2),
}
SHAPES: dict[str, Callable[[Any], Any]] = {
    "transposed": lambda x: ad.permute_dims(x, tuple(range(x.ndim))[::-1]),
    "flat": lambda x: x.reshape(-1),
    "column": lambda x: x[..., None],
    "row": lambda x: x[None] if x.ndim < 3 else x,
    "head": lambda x: x[:2] if x.ndim else x,
    "backwards": lambda x: x[..., ::-1] if x.ndim else x,
    "first": lambda x: x[0] if x.ndim and len(x) else x,
    "twice": lambda x: ad.broadcast_to(x, (2, *x.shape)) if x.ndim < 3 else x,
    "joined": lambda x: ad.concat([x, -x], axis=0) if x.ndim and x.dtype.kind == "f" else x,
    "sided": lambda x: ad.concat([x, x], axis=-1) if x.ndim and math.prod(x.shape) < 100 else x,
    "assigned": lambda x: assigned(x),
    "added": lambda x: added(x),
    "flipped": lambda x: ad.flip(x),  # no machine code
}


def assigned(x: Any) -> Any:
    y = x.copy()
    if x.ndim:
        y[..., :1] = y[..., -1:]
    return y


def added(x: Any) -> Any:
    y = x.copy()
    if x.ndim and x.dtype.kind == "f":
        y[::2] += 3.0
    return y


WHOLE = "negative abs sign floor isnan isfinite signbit logical_not relu clip".split()  # of small integers exact
REDUCED: dict[str, Callable[..., Any]] = {
    **{name: getattr(ad, name) for name in "sum max min".split()},
    "any": lambda x, **how: ad.any(x > 0, **how),
    "all": lambda x, **how: ad.all(x < 1, **how),
    "prod": lambda x, **how: ad.prod(ad.clip(x, -1.0, 1.0), **how),
}


def program(rng: np.random.Generator, length: int, reductions: bool) -> Callable[..., Any]:
    """A function of arrays: so many steps that are drawn, each of what is there by then."""
    draws = rng.integers(0, 1 << 30, (length, 5)).tolist()
    one = {name: f for name, f in ONE.items() if name in WHOLE} if reductions else ONE
    two = {name: f for name, f in TWO.items() if name not in ("divide", "multiply")} if reductions else TWO

    def run(*xs: Any) -> list[Any]:
        known = list(xs)
        for kind, which, i, j, axes in draws:
            x, y = known[-1 - i % min(len(known), 6)], known[-1 - j % len(known)]
            if x.dtype.kind == "b" and kind % 7:  # few functions take booleans
                x = ad.astype(x, xs[0].dtype)
            if kind % 10 < 4 and x.dtype.kind == "f":
                made = list(one.values())[which % len(one)](x)
            elif kind % 10 < 7 and x.dtype.kind == "f":
                y = ad.astype(y, x.dtype) if fits(x.shape, y.shape) else x
                made = list(two.values())[which % len(two)](x, y)
            elif kind % 10 < 9 or not reductions or not x.ndim or 0 in x.shape:
                made = list(SHAPES.values())[which % len(SHAPES)](x)
            else:
                axis = tuple(k for k in range(x.ndim) if axes >> k & 1) or None
                x = x if x.dtype.kind == "f" else ad.astype(x, xs[0].dtype)
                made = list(REDUCED.values())[which % len(REDUCED)](x, axis=axis, keepdims=bool(axes >> 8 & 1))
            known.append(made)
        return known[-1 : -1 - length : -3]

    return run


def fits(*shapes: Any) -> bool:
    try:
        np.broadcast_shapes(*shapes)
    except ValueError:
        return False
    return True


SIZES = [(), (1,), (3,), (7,), (17,), (1, 4), (4, 1), (5, 3), (2, 3, 4), (3, 1, 5), (2, 40), (33, 2), (0, 3), (1, 1)]
EDGES = [0.0, -0.0, 1.0, -1.0, math.inf, -math.inf, math.nan, 1e-40, 3e38, 0.5, 2.5, -2.5]


def arguments(rng: np.random.Generator, dtype: str, edges: bool) -> list[np.ndarray[Any, Any]]:
    """Arrays of shapes that broadcast with the first one's, or not."""
    first = SIZES[rng.integers(len(SIZES))]
    made = []
    for shape in (first, first[-1:], SIZES[rng.integers(len(SIZES))], ()):
        x = rng.normal(size=shape) * 2
        if edges:
            x = np.where(rng.random(shape) < 0.3, rng.choice(EDGES, shape), x)
        with np.errstate(all="ignore"):
            made.append(x.astype(dtype))
    return made


def same(found: Any, expected: Any) -> None:
    """To the last bit, and zeros of the same sign; nans are nans."""
    for x, y in zip(found, expected, strict=True):
        x, y = x.numpy(), y.numpy()
        assert x.shape == y.shape
        assert x.dtype == y.dtype
        np.testing.assert_array_equal(x, y)
        if x.dtype.kind == "f":
            there = ~np.isnan(x)
            np.testing.assert_array_equal(np.signbit(x[there]), np.signbit(y[there]))


def random_program(seed: int, reductions: bool) -> None:
    """Of small integers sums are exact in any order."""
    rng = np.random.default_rng(seed)
    dtype, edges = ("float32", "float64")[seed % 2], seed % 4 < 2 and not reductions
    f = program(rng, int(rng.integers(20, 60)), reductions)
    xs = [ad.asarray(np.round(x) if reductions else x) for x in arguments(rng, dtype, edges)]
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        expected = f(*xs)
    donated = range(4) if seed % 3 == 1 else ()
    same(ad.compile(f, donate=tuple(donated))(*xs), expected)


def random_loop(seed: int) -> None:
    """A scan whose step is a random program."""
    rng = np.random.default_rng(seed)
    dtype, reverse = ("float32", "float64")[seed % 2], bool(rng.integers(2))
    f = program(rng, int(rng.integers(4, 16)), reductions=True)
    x, y, z, _ = (ad.asarray(np.round(x)) for x in arguments(rng, dtype, False))
    rows = ad.asarray(np.round(rng.normal(size=(4, *y.shape)) * 2).astype(dtype))

    def step(carry: Any, row: Any) -> Any:
        h, k = carry
        made = f(h, row, z)
        left = [m for m in made if m.shape == h.shape and m.dtype == h.dtype]
        return (ad.clip(left[-1] + k if left else h + k, -9.0, 9.0), h if seed % 3 else k), (made[0], h)

    whole = lambda x, rows, z: ad.scan(step, (x, x), rows, reverse=reverse)
    flat = lambda *xs: ad.tree.flatten(whole(*xs))[0]
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        expected = flat(x, rows, z)
    same(ad.compile(flat)(x, rows, z), expected)


@pytest.mark.parametrize("seed", [0, 1, 2, *[pytest.param(i, marks=pytest.mark.slow) for i in range(3, 60)]])
def test_random_loops(seed: int) -> None:
    random_loop(seed)


@pytest.mark.parametrize("seed", [0, 1, 2, *[pytest.param(i, marks=pytest.mark.slow) for i in range(3, 60)]])
@pytest.mark.parametrize("reductions", [False, True])
def test_random_programs(seed: int, reductions: bool) -> None:
    random_program(seed, reductions)


# --- elementwise functions -----------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_special_values_are_numpys(dtype: str) -> None:
    x, y = (np.array(part).astype(dtype).ravel() for part in np.meshgrid(EDGES, EDGES))

    def f(x: Any, y: Any) -> list[Any]:
        return [g(x) for g in ONE.values()] + [g(x, y) for g in TWO.values()]

    with np.errstate(all="ignore"):
        expected = f(ad.asarray(x), ad.asarray(y))
    same(ad.compile(f)(ad.asarray(x), ad.asarray(y)), expected)
    assert not steps(f, x, y)


def test_integers_and_booleans() -> None:
    i = np.array([-(2**31), -7, 0, 5, 2**31 - 1], np.int32)
    u, b = i.astype(np.uint8), i > 0

    def f(i: Any, u: Any, b: Any) -> list[Any]:
        found = [i + i, i * 3, i - 5, -i, ad.abs(i), ad.maximum(i, 3), i < 2, i == 5, i & 6, ~i, ad.square(i)]
        found += [u + u, u > 200, ~u, u * 2, ad.astype(u, ad.int64), ad.astype(i, ad.uint8), ad.astype(i, ad.float32)]
        found += [b & (i > 2), ~b, b ^ b, ad.astype(b, ad.float64), ad.where(b, i, 1), ad.logical_not(i)]
        return [*found, i // 2, i % 3, i << 1, i.sum(), i.max(), u.min()]

    xs = [ad.asarray(x) for x in (i, u, b)]
    same(ad.compile(f)(*xs), f(*xs))


ELEMENTARY = "exp expm1 log log1p log2 log10 sin cos tan tanh sinh cosh asin acos atan expit erf cbrt".split()


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_elementary_functions_are_within_four_units(dtype: str) -> None:
    """Of longdouble's, or of float64's for float32."""
    x = np.concatenate([np.random.default_rng(0).normal(size=4000) * 3, EDGES]).astype(dtype)
    functions = [getattr(ad, name, None) or getattr(ad.special, name) for name in ELEMENTARY]
    with np.errstate(all="ignore"):
        expected = [f(ad.asarray(x.astype(np.float64))).numpy() for f in functions]
    for name, found, exact in zip(
        ELEMENTARY, ad.compile(lambda x: [f(x) for f in functions])(x), expected, strict=True
    ):
        unit = np.spacing(np.abs(exact.astype(dtype)))
        with np.errstate(all="ignore"):
            far = ~(np.abs(found - exact) <= 4 * unit) & ~(found == exact.astype(dtype)) & ~np.isnan(exact)
        assert not far.any(), (name, x[far][:4], found[far][:4], exact[far][:4])
        np.testing.assert_array_equal(np.isnan(found), np.isnan(exact), err_msg=name)


# --- sums ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_sums_are_no_less_exact_than_numpys(dtype: str) -> None:
    rng = np.random.default_rng(1)
    for shape in ((5, 1000), (3, 100003), (400, 7), (50, 32), (50, 64), (50, 127), (50, 128), (50, 300)):
        x = (rng.normal(size=shape) * 10.0 ** rng.integers(-3, 4, shape)).astype(dtype)
        for axis in (0, 1, (0, 1)):
            found = ad.compile(lambda x, axis=axis: (x * 1.0).sum(axis=axis))(x)
            lines = np.moveaxis(x, 0, 1) if axis == 0 else x if axis == 1 else x.reshape(1, -1)
            exact = np.array([math.fsum(line) for line in lines]).reshape(found.shape)
            size = np.abs(x.astype(np.float64)).sum(axis=axis).max()
            bound = 2 * np.abs(x.sum(axis=axis) - exact).max() + np.finfo(dtype).eps * size
            assert np.abs(found - exact).max() <= bound


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_sums_of_products_are_no_less_exact_than_numpys(dtype: str) -> None:
    """Many sums each, since an error of one may be 0 by chance: root mean squares are compared."""
    rng = np.random.default_rng(4)
    for n in (24, 64, 100, 512, 1000, 1024, 1500, 5000):
        x, y = (rng.random((64, n)).astype(dtype) for _ in range(2))
        for axis in (0, 1):
            exact = (x.astype(np.longdouble) * y).sum(axis=axis)
            expected, found = (x * y).sum(axis=axis), ad.compile(lambda x, y, axis=axis: (x * y).sum(axis=axis))(x, y)
            errors = [np.sqrt(np.mean((((z - exact) / exact) ** 2).astype(float))) for z in (expected, found)]
            assert errors[1] <= 1.5 * errors[0]


def test_rows_that_take_turns() -> None:
    """Two at a time where their number is even, with sums over rows, values that are kept, and rows of any length."""
    rng = np.random.default_rng(5)

    def f(x: Any, w: Any, b: Any) -> Any:
        y = ad.nn.layer_norm(x, x.shape[-1], w, b)
        return (y**2).sum() + (ad.nn.softmax(y) * y).max(axis=-1).sum() + ad.exp(y - y.max()).sum()

    for rows in ((1,), (2,), (3,), (8,), (128,), (3, 2), (2, 3), (5, 4)):
        for n in (1, 2, 5, 64, 100, 1500):
            x, w, b = rng.normal(size=(*rows, n)), rng.normal(size=n), rng.normal(size=n)
            close(ad.value_and_grad(f, argnums=(0, 1, 2)), x, w, b, rtol=1e-11)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_the_largest_size(dtype: str) -> None:
    """Which is found by comparing bits; also of nan, infinities and -0."""
    rng = np.random.default_rng(6)
    f = lambda x: [abs(x).max(axis=-1), abs(x).max(axis=0), abs(x).max(), abs(x).argmax(axis=-1)]
    for special in (0.0, -0.0, 1e-45, math.inf, -math.inf, math.nan, -math.nan):
        for shape in ((6, 9), (4, 200), (64, 3)):
            x = rng.normal(size=shape).astype(dtype)
            x[1, 2] = special
            x[2] = -0.0
            for y, z in zip(ad.compile(f)(x), f(x), strict=True):
                np.testing.assert_array_equal(y, z)
                assert not np.signbit(np.nan_to_num(y)).any()


def test_sums_of_infinities_and_nans() -> None:
    for values in (
        [math.inf, 1.0],
        [math.inf, -math.inf],
        [math.nan, 1.0],
        [3e38, 3e38],
        [-0.0, -0.0],
        [-math.inf, 2.0],
    ):
        for size in (2, 40, 64, 1000):
            x = np.array((values * size)[:size], np.float32)
            with np.errstate(all="ignore"):
                expected = [x.sum(), x.max(), x.min()]
            found = ad.compile(lambda x: [x.sum(), x.max(), x.min()])(x)
            np.testing.assert_array_equal(found, expected)
            assert np.signbit(found[0]) == np.signbit(expected[0]) or math.isnan(expected[0])


# --- rows, products, loops -----------------------------------------------------------------------


def close(f: Any, *xs: Any, rtol: float) -> None:
    """Machine code gives what f gives."""
    tensors = [ad.asarray(x) for x in xs]
    for x, y in zip(ad.tree.flatten(ad.compile(f)(*tensors))[0], ad.tree.flatten(f(*tensors))[0], strict=True):
        found, expected = x.numpy(), y.numpy()
        size = np.abs(expected).max(initial=0.0)
        np.testing.assert_allclose(found, expected, rtol=rtol, atol=rtol * size)


def test_normalisations_and_losses_are_one_call() -> None:
    rng = np.random.default_rng(2)
    x, w, b = rng.normal(size=(6, 37)), rng.normal(size=37), rng.normal(size=37)
    labels = rng.integers(0, 37, 6)
    norm = lambda x, w, b: (ad.nn.layer_norm(x, 37, w, b) ** 2).sum()
    soft = lambda x: (
        (ad.nn.softmax(x) ** 2).sum() + (ad.nn.log_softmax(x) ** 3).sum() + ad.nn.softmax(x, axis=0)[0].sum()
    )
    for f, *xs in (
        (lambda x, w, b: ad.nn.layer_norm(x, 37, w, b), x, w, b),
        (ad.grad(norm, argnums=(0, 1, 2)), x, w, b),
        (ad.value_and_grad(soft), x),
    ):
        close(f, *xs, rtol=1e-11)
        assert not steps(f, *xs)
    loss = ad.value_and_grad(lambda x: ad.nn.cross_entropy(x, ad.asarray(labels)))
    close(loss, x, rtol=1e-12)
    large = np.where(rng.random((6, 37)) < 0.5, 1e30, -1e30).astype(np.float32)  # squares overflow
    large[0], large[1, 1:] = 2.0**100, 0.0  # all the same; one alone
    for scale in (1.0, 2.0**20, 2.0**-50, 2.0**-100, np.inf):
        with np.errstate(all="ignore"):
            xs = large * np.float32(scale)
            close(lambda x: ad.nn.layer_norm(x, 37), xs, rtol=1e-5)
            close(lambda x: ad.nn.layer_norm(x, 37), xs.astype(np.float64) ** 5, rtol=1e-12)
    ce = ad.compile(lambda x, labels: ad.nn.cross_entropy(x, labels))
    with pytest.raises(ad.errors.OutOfRangeError, match="targets from 0 to 37"):
        ce(x, np.array([0, 37, 1, 2, 3, 4]))


def test_what_forward_and_backward_share_is_computed_once() -> None:
    x = np.random.default_rng(6).normal(size=(40, 50))
    norm = ad.value_and_grad(lambda x: (ad.nn.layer_norm(x, 50) ** 3).sum())
    graph = lowering.lowered(passes.optimized(ad.compile(norm).lower(x).recorded))
    assert [e.name for e in graph.equations].count("max") == 1  # of each row
    w = x[0]
    scaled = ad.value_and_grad(lambda x, w: (ad.nn.layer_norm(x, 50, w, w) ** 3).sum())
    graph = lowering.lowered(passes.optimized(ad.compile(scaled).lower(x, w).recorded))
    assert [e.name for e in graph.equations].count("sqrt") == 1  # of the variance, which constants have a part in
    close(scaled, x, w, rtol=1e-11)
    assert [e.name for e in graph.equations].count("sum") == 5  # none of the gradient of w, which nobody reads
    again = ad.value_and_grad(lambda x: ad.checkpoint(lambda x: ad.exp(ad.sin(x)))(x).sum())
    graph = lowering.lowered(passes.optimized(ad.compile(again).lower(x).recorded))
    assert [e.name for e in graph.equations].count("sin") == 2  # which is large
    close(norm, x, rtol=1e-11)
    attention = lambda x: (ad.nn.scaled_dot_product_attention(x, x, x) ** 2).sum()
    for f, count in ((attention, 1), (ad.checkpoint(attention), 2)):
        graph = lowering.lowered(passes.optimized(ad.compile(ad.value_and_grad(f)).lower(x).recorded))
        assert [e.name for e in graph.equations].count("exp") == count


@pytest.mark.parametrize("dtype", ["float32", pytest.param("float64", marks=pytest.mark.slow)])
def test_attention_is_products_and_rows(dtype: str) -> None:
    rng = np.random.default_rng(7)
    q, v, bias = (rng.normal(size=s).astype(dtype) for s in ((2, 3, 20, 8), (2, 3, 20, 5), (20, 20)))
    none = np.where(np.arange(20)[:, None] == 4, -np.inf, bias).astype(dtype)  # one query sees no key
    for more, causal in (((), False), ((), True), ((bias,), False), ((none,), False)):

        def loss(q: Any, k: Any, v: Any, *bias: Any, causal: bool = causal) -> Any:
            made = ad.nn.scaled_dot_product_attention(q, k, v, *bias, is_causal=causal)
            return (made * made).sum()

        step = ad.value_and_grad(loss, argnums=(0, 1, 2))
        close(step, q, q * 2, v, *more, rtol=1e-10 if dtype == "float64" else 1e-3)
        assert not steps(step, q, q * 2, v, *more)


@pytest.mark.parametrize("dtype", ["float32", pytest.param("float64", marks=pytest.mark.slow)])
def test_functions_of_images_read_arrays_as_they_lie(dtype: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Convolutions lay the batch out last; nothing is copied, which `again` would do."""
    copied: list[Any] = []
    again = native_steps.again
    monkeypatch.setattr(native_steps, "again", lambda *how: copied.append(how) or again(*how))
    rng = np.random.default_rng(9)
    x, w, b, v = (rng.normal(size=s).astype(dtype) for s in ((4, 2, 9, 9), (6, 2, 3, 3), (6,), (4, 3, 2, 2)))

    def net(w: Any, b: Any, v: Any, x: Any, stride: int, padding: int) -> Any:
        y = ad.nn.relu(ad.nn.conv2d(x, w, b, stride=stride))
        y = ad.nn.max_pool2d(y * 2.0 + y, 2) if stride == 1 else y * 2.0
        y = ad.tanh(ad.nn.conv2d(y, v, groups=6 // v.shape[1], padding=padding))
        return (y * y).sum() + y.mean(axis=(0, 2, 3))[0]

    for weights in (v, np.concatenate([v, v], axis=1)):
        for stride, padding in ((1, 0), (2, 0), (2, 1)):
            f = lambda w, b, v, x, stride=stride, padding=padding: net(w, b, v, x, stride, padding)
            rtol = 1e-10 if dtype == "float64" else 1e-3
            close(ad.value_and_grad(f, argnums=(0, 1, 2, 3)), w, b, weights, x, rtol=rtol)
            assert not copied


def is_as_exact(ours: Any, eager: Any, exact: Any, added: Any) -> bool:
    """Sums of products, no further from the exact ones than twice eager's, or than one rounding.

    ``added`` are the sums of absolute values, to which rounding errors are in proportion (Higham 2002, section 3.1):
    where numbers of both signs leave a small sum, eager's own error may be 0 by luck.
    """
    return bool(abs(ours - exact).max() <= 2 * max(abs(eager - exact).max(), np.finfo(ours.dtype).eps * added.max()))


@pytest.mark.slow
@pytest.mark.parametrize("axes", [1, 2, 3])
def test_convolutions_are_products_of_lines(axes: int) -> None:
    """With both gradients, as exact as NumPy's, for all that says where kernels are."""
    rng = np.random.default_rng(axes)
    conv = getattr(ad.nn, f"conv{axes}d")
    for case in range(6):
        dtype = ("float32", "float64")[case % 2]
        groups = (1, 2, 4)[case % 3]
        n, c, out = (int(rng.integers(2, 20)), groups * int(rng.integers(1, 4)), groups * int(rng.integers(1, 6)))
        kernel, sizes = rng.integers(1, 4, axes), rng.integers(6, 10, axes)
        stride, dilation = (1 + case // 4, 1, 2)[case % 3], 1 + case % 2
        how = {"stride": stride, "padding": tuple(rng.integers(0, 3, axes).tolist()), "dilation": dilation}
        x = rng.normal(size=(n, c, *sizes)).astype(dtype)
        w = rng.normal(size=(out, c // groups, *kernel)).astype(dtype)
        f = lambda x, w, how=how, groups=groups: conv(x * 2, w, groups=groups, **how)
        g = rng.normal(size=f(ad.asarray(x), ad.asarray(w)).shape).astype(dtype)
        step = lambda x, w, g, f=f: (f(x, w), ad.grad(lambda x, w: (f(x, w) * g).sum(), argnums=(0, 1))(x, w))
        values = lambda made: [np.asarray(z) for z in (made[0], *made[1])]
        exact = values(step(*[ad.asarray(z.astype(np.float64)) for z in (x, w, g)]))
        added = values(step(*[ad.asarray(abs(z).astype(np.float64)) for z in (x, w, g)]))
        eager, ours = values(step(*map(ad.asarray, (x, w, g)))), values(ad.compile(step)(x, w, g))
        for a, b, z, total in zip(ours, eager, exact, added, strict=True):
            assert a.shape == b.shape
            assert a.dtype == b.dtype == np.dtype(dtype)
            assert is_as_exact(a, b, z, total), (how, x.shape, w.shape)
        if stride == 1 and all(p <= dilation * (k - 1) for p, k in zip(how["padding"], kernel, strict=True)):
            sums = lambda x, w, g, step=step: [(z * z).sum() for z in ad.tree.leaves(step(x, w, g))]
            assert not steps(sums, x, w, g)


@pytest.mark.slow
def test_threads_share_convolutions_and_stacks_of_products() -> None:
    rng = np.random.default_rng(3)
    x, w, q = (rng.normal(size=s).astype("float32") for s in ((32, 4, 12, 12), (8, 2, 3, 3), (9, 40, 24)))

    def loss(x: Any, w: Any, q: Any) -> Any:
        return ad.square(ad.nn.conv2d(x, w, padding=1, groups=2)).sum() + ad.tanh(q @ q.mT @ q).sum()

    step, threads, found = ad.compile(ad.value_and_grad(loss, (0, 1, 2))), ad.get_num_threads(), []
    try:
        for n in (1, 2, 3, 7):
            ad.set_num_threads(n)
            found.append([np.asarray(z) for z in ad.tree.leaves(step(x, w, q))])
    finally:
        ad.set_num_threads(threads)
    kernels = step.lower(x, w, q).kernels
    assert any("convolution in" in line for line in kernels)
    assert any("parts: (9, 40, 24) @" in line for line in kernels)
    for other in found[1:]:
        for a, b in zip(found[0], other, strict=True):
            np.testing.assert_array_equal(a, b)


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_windows_of_images_are_loops(dtype: str) -> None:
    """After a convolution, to the last bit: with nans, infinities, zeros of both signs, and several largest ones."""
    rng = np.random.default_rng(5)
    x = rng.choice([0.0, 1.0, 2.0, np.nan, np.inf], (16, 3, 7, 6), p=[0.4, 0.25, 0.25, 0.05, 0.05]).astype(dtype)
    ones, signs = np.ones((3, 1, 1, 1), dtype), rng.choice([-1.0, 1.0], (7, 6)).astype(dtype)
    for pool, kernel, how in (
        ("max", 2, {}),
        ("max", (3, 2), {"stride": (3, 3)}),
        ("max", 1, {"stride": 2}),
        ("max", 2, {"stride": 3, "dilation": 2}),
        ("avg", 2, {}),
        ("avg", (2, 3), {"stride": (2, 4)}),
        ("max", 3, {"stride": 1}),
        ("avg", (2, 3), {"stride": (1, 2)}),
    ):
        run = functools.partial(getattr(ad.nn, f"{pool}_pool2d"), kernel_size=kernel, **how)

        def step(x: Any, ones: Any, signs: Any, run: Any = run) -> Any:
            f = lambda images: ad.square(run(images)).sum()
            images = ad.nn.conv2d(x, ones, groups=3) * signs
            return run(images) * 1.5, ad.grad(f)(images) * 1.5

        given = [ad.asarray(z) for z in (x, ones, signs)]
        with np.errstate(all="ignore"):
            same(ad.compile(step)(*given), step(*given))
        if how.get("stride") not in (1, (1, 2)):
            sums = lambda *xs, step=step: [z.sum(axis=0) for z in step(*xs)]
            assert not [line for line in steps(sums, *given) if "transpose" not in line], (pool, kernel, how)


def lorenz(u: Any, p: Any) -> Any:
    def step(u: Any, _: Any) -> Any:
        x, y, z = u[0], u[1], u[2]
        return u + 0.01 * ad.stack([p[0] * (y - x), x * (p[1] - z) - y, x * y - p[2] * z]), x

    u, xs = ad.scan(step, u, None, length=50)
    return (u * u).sum() + xs.max()


def recurrent(w: Any, v: Any, b: Any, xs: Any) -> Any:
    def step(h: Any, x: Any) -> Any:
        h = ad.tanh(w @ h + v @ x + b)
        return h, h

    return (ad.scan(step, b * 0.0, xs)[1] ** 2).sum()


def test_loops_are_machine_code_forward_and_backward() -> None:
    rng = np.random.default_rng(3)
    weights = [rng.normal(size=s) * 0.3 for s in ((9, 9), (9, 3), (9,), (20, 3))]
    u, p = np.ones(3), np.array([10.0, 28.0, 8 / 3])
    growing = lambda x: ad.fori_loop(0, 7, lambda i, c: c * 1.5 + i, x)
    for f, *xs in (
        (lorenz, u, p),
        (ad.grad(lorenz, argnums=(0, 1)), u, p),
        (ad.grad(recurrent, argnums=(0, 1, 2)), *weights),
        (ad.vmap(ad.grad(lorenz), in_axes=(0, None)), np.stack([u, 2 * u]), p),
        (growing, u),
        (ad.grad(lambda x: growing(x).sum()), u),
    ):
        close(f, *xs, rtol=1e-10)
        assert not steps(f, *xs), f


def test_products_of_small_matrices() -> None:
    rng = np.random.default_rng(4)
    for m, k, n in ((1, 1, 1), (3, 4, 5), (7, 33, 2), (2, 5, 40), (20, 1, 9), (1, 50, 1)):
        x, y = rng.normal(size=(m, k)), rng.normal(size=(k, n))
        for f in (
            lambda x, y: x @ y,
            lambda x, y: ad.permute_dims(ad.permute_dims(y, (1, 0)) @ ad.permute_dims(x, (1, 0)), (1, 0)),
            lambda x, y: x[:, ::-1] @ y,
        ):
            for dtype, rtol in (("float64", 1e-12), ("float32", 1e-4)):
                close(f, x.astype(dtype), y.astype(dtype), rtol=rtol)


LAYOUTS: list[Callable[[Any, Any], Any]] = [  # of matrices that are made in the program
    lambda lib, x: x,
    lambda lib, x: lib.swapaxes(lib.swapaxes(x, -1, -2) * 2, -1, -2),
    lambda lib, x: (x * 2)[..., ::-1, :],
    lambda lib, x: lib.concat([x, x * 2], axis=-1)[..., x.shape[-1] :],
    lambda lib, x: lib.concat([x, x * 2], axis=-2)[..., ::2, :],
    lambda lib, x: lib.swapaxes(lib.swapaxes(x * 2, 0, -1)[::-1], 0, -1),
]


@pytest.mark.parametrize("dtype", ["float32", pytest.param("float64", marks=pytest.mark.slow)])
@pytest.mark.parametrize("has_blas", [True, pytest.param(False, marks=pytest.mark.slow)])
def test_products_in_any_layout(dtype: str, has_blas: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Larger ones than are loops: of matrices, vectors and stacks, in one function."""
    if not has_blas:
        monkeypatch.setattr(plan, "integer_bits", lambda: 0)
        monkeypatch.setattr(plan, "pays", lambda x, y: False)
    rng = np.random.default_rng(8)
    sizes = [(40, 30, 20), (1, 90, 70), (90, 70, 1), (70, 1, 80), (1, 6000, 1), (33, 17, 19)]
    counts: list[Any] = [((), ()), ((3,), ()), ((), (3,)), ((3,), (3,)), ((2, 1), (3,)), ((2, 3), (2, 3)), ((1,), ())]
    pairs = [
        (rng.normal(size=(*left, m, k)), rng.normal(size=(*right, k, n))) for m, k, n in sizes for left, right in counts
    ]
    xs = [x.astype(dtype) for pair in pairs for x in pair]
    ways = rng.integers(len(LAYOUTS), size=len(xs)).tolist()

    def products(lib: Any, *xs: Any) -> list[Any]:
        laid = [LAYOUTS[way](lib, x) for way, x in zip(ways, xs, strict=True)]
        return [x @ y for x, y in zip(laid[::2], laid[1::2], strict=True)]

    ours = functools.partial(products, ad)
    expected = [x.numpy() for x in ours(*map(ad.asarray, xs))]
    exact, added = (products(np, *[of(x.astype(np.longdouble)) for x in xs]) for of in (np.positive, np.abs))
    for x, y, z, total in zip(ad.compile(ours)(*xs), expected, exact, added, strict=True):
        assert x.shape == y.shape
        assert is_as_exact(x, y, z, total), x.shape
    assert bool(steps(ours, *xs)) != (has_blas and machine.integer_bits() > 0)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_products_larger_than_the_caches(dtype: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of blocks, each with all panels for some rows, where BLAS has shorter vectors; caches are small here."""
    for name, value in {"_ROOM": 1 << 13, "_BLOCK": 1 << 14, "_MOST": 0, "blas_is_narrow": lambda: True}.items():
        monkeypatch.setattr(gemm, name, value)
    rng = np.random.default_rng(5)
    for m, k, n in ((150, 300, 170), (70, 600, 200), (260, 31, 37)):
        x, y = rng.normal(size=(m, k)).astype(dtype), rng.normal(size=(k, n)).astype(dtype)
        exact, added = (of(x.astype(np.longdouble)) @ of(y.astype(np.longdouble)) for of in (np.positive, np.abs))
        for f, *xs in (
            (lambda x, y: x @ y, x, y),
            (lambda x, y: x.T @ y, x.T.copy(), y),
            (lambda x, y: x @ y.T, x, y.T.copy()),
            (lambda x, y: x.T @ y.T, x.T.copy(), y.T.copy()),
        ):
            (line,) = ad.compile(f).lower(*xs).kernels
            assert "parts" in line
            assert "BLAS" not in line
            assert is_as_exact(ad.compile(f)(*xs), x @ y, exact, added)


WAYS: list[Callable[[Any], Any]] = [  # how the rows and columns of a matrix may lie in memory
    lambda x: np.pad(x, ((0, 2), (0, 3)))[:-2, :-3],
    lambda x: np.pad(x, ((0, 2), (0, 3))).T.copy().T[:-2, :-3],
    lambda x: np.repeat(np.repeat(x, 2, 0), 3, 1)[::2, ::3],
    lambda x: x[::-1, ::-1].copy()[::-1, ::-1],
]


@pytest.mark.slow
@pytest.mark.parametrize("width", [16, 32, 64])
def test_products_by_tiles(width: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """For processors of each kind, whatever this one is: all sizes, read as they lie, and nothing else is written."""
    if width > machine.vector_bytes():
        pytest.skip("this processor has no such vectors")
    monkeypatch.setattr(gemm, "vector_bytes", lambda: width)
    monkeypatch.setattr(gemm, "_APART", 64)
    monkeypatch.setattr(gemm, "registers", lambda: 32 if width == 64 else 16)
    monkeypatch.setattr(gemm, "adds_products", lambda: width > 16)
    rng, calls, given, b = np.random.default_rng(width), [], [], text.Builder()
    for m, k, n in ((1, 1, 2), (2, 3, 40), (5, 70, 17), (24, 300, 33), (37, 2, 5), (1, 130, 100), (120, 130, 70)):
        for dtype, of_x, of_y in itertools.product(("float32", "float64"), WAYS, WAYS):
            if rng.random() < (0.8 if m * n > 500 else 0.4):
                continue
            x, y = (way(rng.normal(size=shape).astype(dtype)) for way, shape in ((of_x, (m, k)), (of_y, (k, n))))
            name = gemm.product(
                b, x.dtype, *[Layout(z.shape, 0, tuple((np.array(z.strides) // z.itemsize).tolist())) for z in (x, y)]
            )
            calls.append(f"define void @run{len(given)}(ptr %x, ptr %y, ptr %o) {{")
            calls.append(f"call void @{name}(ptr %x, ptr %y, ptr %o)\nret void\n}}")
            given.append((x, y))
    made = native_code.built("\n".join([*b.called.values(), *calls, "attributes #0 = { nounwind }"]))
    for i, (x, y) in enumerate(given):
        run = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 3)(made.get_function_address(f"run{i}"))
        out = np.full(x.shape[0] * y.shape[1] + 2, 7.0, x.dtype)
        run(x.ctypes.data, y.ctypes.data, out[1:].ctypes.data)
        exact, added = (of(x.astype(np.longdouble)) @ of(y.astype(np.longdouble)) for of in (np.positive, np.abs))
        assert is_as_exact(out[1:-1].reshape(exact.shape), x @ y, exact, added), (x.strides, y.strides)
        assert out[0] == out[-1] == 7.0


def test_products_of_special_values() -> None:
    """One summed element is a product, and the sign of a zero is that of a sum."""
    edges = np.array(EDGES)
    x, y = np.outer(edges, np.ones(70))[..., :1], np.resize(edges, (1, 700))
    wide = np.resize(edges, (60, 80))
    with np.errstate(all="ignore"):
        for a, b in ((x, y), (wide[:, :1], y), (np.eye(80), wide.T), (wide, np.eye(80)[:, 5:])):
            same([ad.compile(ad.matmul)(ad.asarray(a), ad.asarray(b))], [ad.asarray(a) @ ad.asarray(b)])


def test_long_chains() -> None:
    def chain(x: Any) -> Any:
        for i in range(1500):
            x = x.reshape((3, 1) if i % 2 else (3,)) if i < 1400 else x * 1.5 - 1.0
        return x

    x = np.linspace(0.9, 1.1, 3)
    same([ad.compile(chain)(ad.asarray(x))], [chain(ad.asarray(x))])


@pytest.mark.slow
def test_a_chain_and_its_gradient_need_no_memory_between() -> None:
    def chain(x: Any) -> Any:
        for _ in range(500):
            x = ad.sin(x) * x + 0.1
        return x.sum()

    slope, x = ad.compile(ad.grad(chain)), np.linspace(0.0, 1.0, 100)
    assert slope.lower(x).memory == 0
    np.testing.assert_allclose(slope(x), ad.grad(chain)(x), rtol=1e-9)


def test_many_elementary_functions_are_called() -> None:
    """Few are part of the loop; of many LLVM would take minutes."""

    def powers(count: int) -> str:
        def f(x: Any) -> Any:
            for _ in range(count):
                x = ad.sin(x) * x + 0.1
            return x

        return ad.compile(ad.grad(lambda x: f(x).sum())).lower(np.linspace(0.0, 1.0, 100)).llvm

    assert text.INLINE in powers(2)
    assert text.INLINE not in powers(200)


# --- memory --------------------------------------------------------------------------------------


def laid_out(x: np.ndarray[Any, Any]) -> Iterator[np.ndarray[Any, Any]]:
    """The same values, in memory in all kinds of ways."""
    yield x
    yield np.asfortranarray(x)
    yield np.repeat(x, 2, axis=-1)[..., ::2]
    yield np.ascontiguousarray(x[::-1])[::-1]
    yield x.astype(x.dtype.newbyteorder())
    frozen = x.copy()
    frozen.flags.writeable = False
    yield frozen
    odd = np.empty(x.nbytes + 1, np.uint8)[1:].view(x.dtype).reshape(x.shape)  # not aligned
    odd[...] = x
    yield odd
    yield x.view(type("Subclass", (np.ndarray,), {}))
    yield np.lib.stride_tricks.as_strided(x, x.shape, (0, *x.strides[1:]))


def test_arrays_lie_in_memory_in_any_way() -> None:
    x = np.random.default_rng(5).normal(size=(4, 6))
    f = ad.compile(lambda x, y: [x * y + 1.0, (x - y).sum(axis=1), x.max(axis=0)])
    for a in laid_out(x):
        for b in laid_out(x + 1.0):
            kept = np.array(a), np.array(b)
            expected = a * b + 1.0, (a - b).sum(axis=1), a.max(axis=0)
            for found, wanted in zip(f(a, b), expected, strict=True):
                assert type(found) is np.ndarray
                np.testing.assert_allclose(found, wanted, rtol=1e-14)
            np.testing.assert_array_equal(a, kept[0])
            np.testing.assert_array_equal(b, kept[1])
    whole = np.arange(10.0)
    np.testing.assert_array_equal(ad.compile(lambda x, y: x - y)(whole[:-1], whole[1:]), -np.ones(9))  # overlapping
    assert type(ad.compile(lambda x: x * 2.0)(np.float64(1.5))) is np.float64
    assert ad.compile(lambda x: x * 2.0)(np.zeros((0, 3))).shape == (0, 3)


def test_results_are_written_over_what_was_donated() -> None:
    def step(w: Any, m: Any, g: Any, rate: Any) -> Any:
        m = 0.9 * m + g
        return w - rate * m, m, (m * w).sum(axis=1), w[::-1].max()

    rng = np.random.default_rng(10)
    given = [rng.normal(size=(300, 7)) for _ in range(3)]
    expected = [x.numpy() for x in step(*map(ad.asarray, given), 0.1)]
    f = ad.compile(step, donate=(0, 1))
    kept = ad.compile(lambda w, m, g: (w - m, w.sum(axis=0) + m[0]), donate=(0, 1))
    for laid in (np.copy, np.asfortranarray, lambda x: x.astype(">f8")):
        xs = [laid(x) for x in given]
        for x, y in zip(f(*xs, 0.1), expected, strict=True):
            np.testing.assert_allclose(x, y, rtol=1e-13)
        np.testing.assert_array_equal(xs[2], given[2])
    w, m, g = (x.copy() for x in given)
    found = f(w, m, g, 0.1)
    assert [np.shares_memory(x, m) for x in found[:2]].count(True) == 1
    np.testing.assert_array_equal(w, given[0])  # which is read later
    wanted = w - g, w.sum(axis=0) + g[0]
    for x, y in zip(kept(w, g, g.copy()), wanted, strict=True):
        np.testing.assert_allclose(x, y, rtol=1e-13)


def test_temporary_arrays_lie_in_the_place_of_others() -> None:
    """Products cannot be written over what they read; what is computed elementwise can."""

    def chain(x: Any, w: Any) -> Any:
        for _ in range(6):
            x = ad.tanh(x @ w) * 0.5
        return x

    x, w = np.random.default_rng(11).normal(size=(2, 64, 64))
    run = ad.compile(chain)
    np.testing.assert_allclose(run(x, w), chain(ad.asarray(x), ad.asarray(w)).numpy(), atol=1e-12)
    assert run.lower(x, w).memory == 2 * x.nbytes


def test_gradients_lie_in_the_place_of_what_follows_from_them() -> None:
    def step(w: Any, v: Any, x: Any) -> Any:
        loss, grads = ad.value_and_grad(lambda p: (ad.tanh(x @ p[0]) @ p[1]).sum())((w, v))
        return loss, w - 0.1 * grads[0], v - 0.1 * grads[1]

    rng = np.random.default_rng(12)
    given = [rng.normal(size=s) for s in ((200, 60), (60, 50), (30, 200))]
    expected = [x.numpy() for x in step(*map(ad.asarray, given))]
    plain, donated = ad.compile(step), ad.compile(step, donate=(0, 1))
    assert plain.lower(*given).memory < given[0].nbytes
    w, v = given[0].copy(), given[1].copy()
    for found in (plain(*given), donated(w, v, given[2])):
        for x, y in zip(found, expected, strict=True):
            np.testing.assert_allclose(x, y, rtol=1e-9)
    assert np.shares_memory(found[1], w)
    assert np.shares_memory(found[2], v)


def test_nothing_is_read_beyond_the_end_of_an_array() -> None:
    """Behind the array there is a page that nobody may touch."""
    page = mmap.PAGESIZE
    memory = mmap.mmap(-1, 2 * page)
    start = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    protect = ctypes.CDLL(None).mprotect
    protect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
    assert protect(start + page, page, 0) == 0
    f = lambda x: [ad.exp(x) * 2.0, x.sum(), x.reshape(-1)[::-1] + 1.0, (x * x).max(axis=0)]
    for dtype in (np.float32, np.float64, np.int8, np.bool_):
        for shape in ((1,), (3,), (17,), (3, 5), (2, 33)):
            size = math.prod(shape) * np.dtype(dtype).itemsize
            x = np.ndarray(shape, dtype, memory, page - size)
            x[...] = 1
            g = f if np.dtype(dtype).kind == "f" else ad.compile(lambda x: [ad.astype(x, ad.float32) + 1.0, ~x])
            for found, expected in zip(g(x), g(x.copy()), strict=True):
                np.testing.assert_array_equal(found, expected)


SIGNS = {
    "signs": lambda a, b: [ad.signbit(a) != ad.signbit(b), b == 0, ad.sign(a)],
    "power of a copied sign": ad.grad(lambda a, b: (abs(ad.copysign(a, b)) + 0.2).var(axis=-1).sum()),
    "integers": lambda a, b: [ad.astype(3 * a, ad.int8), ad.astype(b, ad.int16), (a < 0) & (b > a)],
    "other floats": lambda a, b: [ad.astype(a * b, ad.float32), ad.astype(a - b, ad.float64), ad.astype(a, ad.int32)],
    "sums": lambda a, b: [(a * b).sum(axis=-1), (a < b).any(axis=0), ad.exp(a) * b],
}


@pytest.mark.parametrize("name", SIGNS)
def test_nothing_is_written_beyond_the_end_of_an_array(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """Around each new array there are bytes that nobody may change."""
    made, empty = [], np.empty

    def among_others(shape: Any, dtype: Any) -> Any:
        size = math.prod(shape) * np.dtype(dtype).itemsize
        memory = np.full(size + 256, 0xA5, np.uint8)
        made.append((memory, size))
        return memory[128 : 128 + size].view(dtype).reshape(shape) if size else empty(shape, dtype)

    for shape in ((9,), (5, 9), (3, 17), (2, 5, 33), (7, 3), (4, 1)):
        for dtype in (np.float32, np.float64):
            a, b = [np.random.default_rng(k).normal(size=shape).astype(dtype) for k in (1, 2)]
            f = ad.compile(SIGNS[name])
            expected = f(a, b)
            with monkeypatch.context() as context:
                context.setattr(replay.np, "empty", among_others)
                found = ad.compile(SIGNS[name])(a, b)
            for x, y in zip(*[y if isinstance(y, list) else [y] for y in (found, expected)], strict=True):
                np.testing.assert_array_equal(x, y)
    assert made
    for memory, size in made:
        assert (memory[:128] == 0xA5).all()
        assert (memory[128 + size :] == 0xA5).all()


@pytest.mark.parametrize("name", ["signs", "integers", "other floats", "sums"])
def test_one_integer_is_stored_without_a_mask(name: str) -> None:
    """LLVM may store eight bytes for a masked one, and so write beyond the end of the array."""
    for shape in ((9,), (5, 9), (3, 17), (2, 5, 33)):
        a, b = [np.random.default_rng(k).normal(size=shape) for k in (1, 2)]
        text = ad.compile(SIGNS[name]).lower(a, b).llvm
        assert "store" in text
        assert not re.findall(r"masked\.store\.v\d+i.*<i1 1(?:, i1 0)+>", text)


def test_several_threads() -> None:
    f = ad.compile(lambda x: [(ad.sin(x) * x).sum(axis=1), ad.cumulative_sum(x, axis=1)])
    xs = [np.full((30, 3000), float(i)) for i in range(8)]
    expected = [f(x) for x in xs]
    with ThreadPoolExecutor(8) as pool:
        for found, wanted in zip(pool.map(f, xs * 4), expected * 4, strict=True):
            for x, y in zip(found, wanted, strict=True):
                np.testing.assert_array_equal(x, y)


# --- making it -----------------------------------------------------------------------------------


def test_an_argument_that_is_resized_meanwhile_is_an_error() -> None:
    x = np.ones(1000)

    def cut(total: Any) -> Any:
        x.resize(10, refcheck=False)
        return total

    step = ad.external(cut, like=lambda total: total)
    f = ad.compile(lambda y: y * step(ad.sin(y).sum()))
    with pytest.raises(ad.errors.ShapeError, match="nobody may resize its arguments meanwhile"):
        f(x)
    np.testing.assert_allclose(f(np.ones(1000)), np.full(1000, 1000 * math.sin(1)))


def test_code_is_made_once_for_a_text() -> None:
    made = set(machine._machines)
    for _ in range(2):
        ad.compile(lambda x: x * 2.0 - 7.25)(np.ones(11))
    assert len(set(machine._machines) - made) == 1


def test_it_can_be_read() -> None:
    f, x = ad.compile(lambda x: ad.sort(x * x) * 3.0 + 8.25), np.ones(130)  # a line that NumPy sorts
    before = f.lower(x)  # the same, whether it has run or not
    f(x)
    assert f.lower(x).llvm == before.llvm == next(reversed(machine._machines))
    assert all(f"{name}:" in before.assembly for name in ("n0", "n1"))
    assert ad.compile(ad.sort).lower(x).llvm == ad.compile(ad.sort).lower(x).assembly == ""
    g = ad.compile(lambda x: x * 2.0, dynamic=True)
    assert g.lower(x).llvm == ""  # of a graph for all sizes


def test_code_is_kept_for_later_processes(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    where = tmp_path / "cache"
    monkeypatch.setenv("ADJOINT_CACHE", str(where))
    f, x = lambda x: ad.exp(x) * 2.0 - 3.5, np.linspace(0.0, 1.0, 9)
    expected = f(ad.asarray(x)).numpy()
    made: list[str] = []
    emit = type(machine._new_target()).emit_object
    monkeypatch.setattr(
        type(machine._new_target()), "emit_object", lambda self, module: made.append("") or emit(self, module)
    )

    def run() -> int:
        """As another process does; how often machine code was made."""
        machine._machines.clear()
        made.clear()
        np.testing.assert_allclose(ad.compile(f)(x), expected, rtol=1e-15)
        return len(made)

    assert [run(), run()] == [1, 0]
    (file,) = where.iterdir()
    whole = file.read_bytes()
    for damaged in (b"", whole[:-5], whole[:200] + b"?" + whole[201:], b"something else"):
        file.write_bytes(damaged)
        assert [run(), run()] == [1, 0]
        assert file.read_bytes() == whole
    assert [p.name for p in where.iterdir()] == [file.name]
    monkeypatch.setenv("ADJOINT_CACHE", "0")
    assert run() == 1
    monkeypatch.setenv("ADJOINT_CACHE", str(file))  # no folder: nothing is kept
    assert run() == 1


def test_the_older_half_of_many_files_goes(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("ADJOINT_CACHE", str(tmp_path))
    monkeypatch.setattr(stored, "_KEPT", 4)
    for i in range(6):
        stored.store(f"key{i}", b"%d" % i)
        os.utime(tmp_path / f"key{i}", (i, i))
    assert [stored.load(f"key{i}") for i in range(6)] == [None, None, b"2", b"3", b"4", b"5"]


def test_what_a_killed_process_has_left_goes(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("ADJOINT_CACHE", "~/cache")  # as a shell leaves it inside of quotes
    stored.store("key", b"1")
    folder = tmp_path / "cache"
    for name, age in ((".old", 2), (".new", 0)):
        (folder / name).write_bytes(b"")
        os.utime(folder / name, (time.time() - age * 86_400,) * 2)
    stored.store("key", b"2")
    assert sorted(p.name for p in folder.iterdir()) == [".new", "key"]
    assert stored.load("key") == b"2"


def test_without_llvmlite_it_is_replayed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "llvm", lambda: None)
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    machine._say_once.cache_clear()
    f = ad.compile(lambda x: x * 2.0 + 1.0)
    with pytest.warns(RuntimeWarning, match=r'pip install "adjoint\[compile\]"'):
        assert f(1.0 * np.ones(2)).tolist() == [3.0, 3.0]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert ad.compile(lambda x: x + 1.0)(np.ones(1)) == 2.0
    assert "empty(" not in f.lower(np.ones(2)).source


def test_it_can_be_replayed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ADJOINT_COMPILE", "replay")
    lowered = ad.compile(lambda x: x * 2.0 + 1.0).lower(np.ones(2))
    assert "empty(" not in lowered.source
    assert lowered.llvm == lowered.assembly == ""


@pytest.mark.slow  # 25 seconds
@pytest.mark.parametrize("name", FUNCTIONS)
@settings(max_examples=1)
@given(data=st.data())
def test_functions_and_their_derivatives(name: str, data: Any) -> None:
    f, *args = FUNCTIONS[name](Draw(data))
    compared(derivatives(f), args, asks=name in ASKS, rtol=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("name", TRANSFORMS)
def test_transforms(name: str) -> None:
    compared(TRANSFORMS[name], [X], rtol=1e-9)
