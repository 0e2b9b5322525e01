"""Machine code gives what NumPy gives: random programs, special values, elementwise functions and sums."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import adjoint as ad

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
    "clip from zero": lambda x: ad.clip(x, 0, 1),  # of zeros of either sign one is chosen
    "clip to zero": lambda x: ad.clip(x, None, -0.0),
    "relu6": ad.nn.relu6,
    "clip by tensors": lambda x: ad.clip(x, ad.zeros((), dtype=x.dtype), ad.ones((), dtype=x.dtype)),
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


def close(f: Any, *xs: Any, rtol: float) -> None:
    """Machine code gives what f gives."""
    tensors = [ad.asarray(x) for x in xs]
    for x, y in zip(ad.tree.flatten(ad.compile(f)(*tensors))[0], ad.tree.flatten(f(*tensors))[0], strict=True):
        found, expected = x.numpy(), y.numpy()
        size = np.abs(expected).max(initial=0.0)
        np.testing.assert_allclose(found, expected, rtol=rtol, atol=rtol * size)


def is_as_exact(ours: Any, eager: Any, exact: Any, added: Any) -> bool:
    """Sums of products, no further from the exact ones than twice eager's, or than one rounding.

    ``added`` are the sums of absolute values, to which rounding errors are in proportion (Higham 2002, section 3.1):
    where numbers of both signs leave a small sum, eager's own error may be 0 by luck.
    """
    return bool(abs(ours - exact).max() <= 2 * max(abs(eager - exact).max(), np.finfo(ours.dtype).eps * added.max()))


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
