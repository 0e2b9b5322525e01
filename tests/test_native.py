"""Machine code gives what NumPy gives: random programs, special values, and arrays that lie in memory in any way."""

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
    return [line for line in source(f, *xs).splitlines()[1:-1] if "(n" not in line and " del " not in line]


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
REDUCED: dict[str, Callable[..., Any]] = {"sum": ad.sum, "max": ad.max, "min": ad.min}


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
                made = list(REDUCED.values())[which % 3](x, axis=axis, keepdims=bool(axes >> 8 & 1))
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
    same(ad.compile(f)(*xs), expected)


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


@pytest.mark.parametrize("seed", range(8))
def test_random_loops(seed: int) -> None:
    random_loop(seed)


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("reductions", [False, True])
def test_random_programs(seed: int, reductions: bool) -> None:
    random_program(seed, reductions)
