"""Kernels of short rows, with vectors across them: what NumPy gives, whatever rows, columns, vectors and threads."""

from __future__ import annotations

import itertools
import warnings
from typing import Any

import numpy as np
import pytest
from test_native import close, is_as_exact, program, same
from test_native import native as native
from test_native_threads import runs
from test_native_threads import same as same_bits
from test_native_threads import tiny as tiny

import adjoint as ad
from adjoint.compiler.native import across, loops

pytest.importorskip("llvmlite")

SHAPES = [(33, 2), (40, 3), (19, 41, 3), (41, 17, 2), (2, 34, 5), (50, 7), (35, 2, 3), (3, 37, 4), (36, 16)]
EACH = {  # how an array may lie in memory, that has one more row and two more columns
    "whole": lambda x: np.ascontiguousarray(x[..., 1:, 1:-1]),
    "part": lambda x: x[..., 1:, 1:-1],
    "end": lambda x: x[..., :-1, 2:],
    "backwards": lambda x: x[..., :0:-1, 1:-1],
    "columns": lambda x: x[..., 1:, -2:0:-1],
    "turned": lambda x: np.swapaxes(np.swapaxes(x, -1, -2).copy(), -1, -2)[..., 1:, 1:-1],
    "other": lambda x: np.repeat(x, 2, -2)[..., 2::2, 1:-1],
}


def drawn(rng: np.random.Generator, shape: Any, dtype: str) -> list[Any]:
    """Small integers, whose sums are exact, of this shape and of those that are stretched to it."""
    made = []
    for part in (shape, shape[-1:], (*shape[:-1], 1), (*shape[:-2], 1, shape[-1]), ()):
        whole = rng.integers(-3, 4, (*part[:-2], *[n + 2 for n in part[-2:]]) if len(part) > 1 else part)
        x = whole[..., 1:-1, 1:-1] if len(part) > 1 else whole
        made.append(x.astype(dtype))
    return made


def compared(f: Any, *xs: np.ndarray[Any, Any]) -> None:
    """Arrays are read as they lie."""
    same([*map(ad.asarray, ad.compile(f)(*xs))], f(*map(ad.asarray, xs)))


def kernels(f: Any, *xs: Any) -> list[str]:
    return [line for line in ad.compile(f).lower(*xs).kernels if "across rows" in line]


@pytest.fixture(params=[16, 32, 64])
def width(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> int:
    """Bytes of a vector, whatever the processor has."""
    for module in (across, loops):
        monkeypatch.setattr(module, "vector_bytes", lambda: request.param)
    return int(request.param)


@pytest.mark.parametrize("seed", [0, 1, *[pytest.param(i, marks=pytest.mark.slow) for i in range(2, 40)]])
def test_random_programs(seed: int, width: int) -> None:
    rng = np.random.default_rng(seed)
    shape, dtype = SHAPES[seed % len(SHAPES)], ("float32", "float64")[seed // 2 % 2]
    f = program(rng, int(rng.integers(20, 50)), reductions=True)
    xs = [ad.asarray(x) for x in drawn(rng, shape, dtype)]
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        expected = f(*xs)
    same(ad.compile(f, donate=(0,) if seed % 3 == 1 else ())(*xs), expected)


def pairs(x: Any, y: Any) -> Any:
    """What depends on each pair of rows, and its sums over either or both."""
    apart = x[:, None, :] - y
    near = (apart * apart).sum(axis=-1)
    moved = apart * near[..., None]
    return [apart, near, moved.sum(axis=0), (apart * x[:, None, :]).sum(axis=1), (moved > 3).any(axis=0)]


def extremes(x: Any, y: Any) -> Any:
    apart = x[:, None, :] * y + 1  # whose zeros are of one sign
    sums = apart.sum(axis=0)
    return [apart.max(axis=0), apart.sum(axis=(0, 1)), apart.min(axis=1), sums[:, 1:], (apart == 0).all(axis=0)]


def layers(x: Any, y: Any) -> Any:
    """Of these the rows that vectors go along are behind two axes, of which one is added up."""
    apart = x[:2, None, None, :] * y[:, None] + y + 1
    return [apart, (apart * apart).sum(axis=0), apart.sum(axis=(0, 1)), apart.max(axis=1)]


@pytest.mark.parametrize("dtype", ["float32", "float64", "int32"])
@pytest.mark.parametrize("columns", [2, 3, 4])
@pytest.mark.parametrize("f", [pairs, extremes, layers])
def test_any_number_of_rows(f: Any, columns: int, dtype: str, width: int) -> None:
    """Those that fill no vector are read and written with masks, and their sums over other rows carried along."""
    rng, g = np.random.default_rng(columns), ad.compile(f, dynamic=[(0,), (0,)])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for n in (33, 35, 47, 48, 19, 5, 65, 32):
            x, y = rng.integers(-3, 4, (2, n, columns)).astype(dtype)
            same([*map(ad.asarray, g(x, y))], f(*map(ad.asarray, (x, y))))
            same([*map(ad.asarray, ad.compile(f, dynamic=False)(x, y))], f(*map(ad.asarray, (x, y))))
    found = [v.kernels for p in g._programs.values() if p.symbols is not None for v in p.replay._variants or []]
    assert any("across rows" in line for kernels in found for line in kernels)


def reductions(x: Any, y: Any) -> list[Any]:
    """Over each set of axes, and what follows from sums of columns in the same row."""
    z = x * y + 1
    axes = [a for n in range(1, x.ndim + 1) for a in itertools.combinations(range(x.ndim), n)]
    found = [z.sum(axis=a) for a in axes] + [z.max(axis=a) for a in axes] + [(z > 1).any(axis=a) for a in axes]
    found += [z.min(axis=a) - x.sum(axis=a) for a in axes] + [ad.prod(ad.clip(z, -1, 1), axis=a) for a in axes]
    total = z.sum(axis=-1, keepdims=True)
    return [
        *found,
        z - total,
        (z - total).sum(axis=0),
        (z * total).sum(axis=-1),
        z[..., 0] + total[..., 0],
        -z,
        z > total,
    ]


@pytest.mark.parametrize("how", EACH)
@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "int8", "int64"])
def test_arrays_that_lie_in_any_way(how: str, dtype: str, width: int) -> None:
    rng = np.random.default_rng(len(how))
    for n, columns in ((33, 2), (40, 3), (2 * 64 // np.dtype(dtype).itemsize, 4), (70, 5)):
        x = EACH[how](rng.integers(-3, 4, (n + 1, columns + 2)).astype(dtype))
        y = rng.integers(-3, 4, columns).astype(dtype)
        compared(reductions, x, y)


@pytest.mark.parametrize("shape", SHAPES)
def test_reductions_over_all_sets_of_axes(shape: Any, width: int) -> None:
    x, y, *_ = (ad.asarray(x) for x in drawn(np.random.default_rng(1), shape, "float64"))
    same(ad.compile(reductions)(x, y), reductions(x, y))


def unit(x: Any) -> Any:
    return x / ad.sqrt((x * x).sum(axis=-1, keepdims=True))


def energy(x: Any) -> Any:
    """Of points that repel each other."""
    apart = x[:, None, :] - x[None, :, :]
    return (1 / ad.sqrt((apart * apart).sum(axis=-1) + 0.1)).sum()


CASES: dict[str, tuple[Any, tuple[int, ...]]] = {
    "directions": (unit, (203, 3)),
    "energy": (ad.value_and_grad(energy), (37, 3)),
    "softmax": (ad.value_and_grad(lambda x: (ad.nn.softmax(x) ** 2).sum()), (101, 5)),
    "norms": (ad.grad(lambda x: (unit(x)[:, 0] * ad.linalg.vector_norm(x, axis=1)).sum()), (101, 2)),
    "standardised": (ad.grad(lambda x: (ad.nn.layer_norm(x, 6) ** 3).sum()), (90, 6)),
    "mixture": (
        ad.grad(lambda x: ad.special.logsumexp(x[:, None, :] * ad.asarray([1.0, 2.0]), axis=(1, 2)).sum()),
        (99, 2),
    ),
    "dictionary": (lambda x: {"far": unit(x).max(axis=0), "near": ad.exp(x).min(axis=1)}, (80, 4)),
}


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_functions_of_points(name: str, dtype: str, width: int) -> None:
    f, shape = CASES[name]
    x = np.random.default_rng(3).normal(size=shape).astype(dtype)
    assert kernels(f, x)
    close(f, x, rtol=1e-12 if dtype == "float64" else 2e-5)


@pytest.mark.parametrize("name", CASES)
def test_the_number_of_threads_changes_no_bit(name: str, tiny: None) -> None:
    f, shape = CASES[name]
    x = np.random.default_rng(4).normal(size=shape)
    assert any(" in " in line for line in kernels(f, x))
    same_bits(runs(f, [x]))


TINY = [
    ((9, 3, 3), (9, 3, 3)),
    ((8, 1, 4), (8, 4, 2)),
    ((2, 1, 3, 3), (5, 3, 2)),
    ((40, 2, 2), (40, 2, 1)),
    ((3,), (33, 3, 3)),
]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("shapes", TINY)
def test_products_of_many_tiny_matrices(shapes: Any, dtype: str) -> None:
    rng = np.random.default_rng(6)
    x, y = (rng.normal(size=shape).astype(dtype) for shape in shapes)
    step = lambda x, y: (x @ y, ad.grad(lambda x, y: ((x @ y) ** 2).sum(), argnums=(0, 1))(x, y))
    assert not any("@" in line for line in ad.compile(step).lower(x, y).kernels)
    found = ad.compile(ad.matmul)(x, y)
    exact, added = (of(x.astype(np.longdouble)) @ of(y.astype(np.longdouble)) for of in (np.positive, np.abs))
    assert is_as_exact(found, x @ y, exact, added)
    close(step, x, y, rtol=1e-12 if dtype == "float64" else 1e-5)
    with np.errstate(all="ignore"):
        edges = [np.resize([0.0, -0.0, 1.0, np.inf, -1.0, np.nan, 2.0], shape).astype(dtype) for shape in shapes]
        compared(lambda x, y: [x @ y], *edges)
        compared(lambda x, y: [x @ y], -np.abs(x) * 0, np.abs(y))


def test_special_values_of_short_rows() -> None:
    edges = [0.0, -0.0, 1.0, np.inf, -np.inf, np.nan, 1e308]
    x = np.array([*itertools.product(edges, repeat=3)])

    def f(x: Any) -> list[Any]:
        return [
            x.max(axis=1),
            x.min(axis=1),
            (x * 1).sum(axis=1),
            ad.prod(x, axis=1),
            (x > 0).all(axis=1),
            x + x[:, :1],
        ]

    with np.errstate(all="ignore"):
        compared(f, x)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_what_is_no_element_takes_no_part_in_a_sum(dtype: str) -> None:
    """Of a vector that is not full the other lanes are 0 / 0."""
    rng = np.random.default_rng(5)
    for n, columns in itertools.product((*range(15, 20), 25, 31, 33, 34, 41), (1, 2, 3, 4, 5, 9)):
        x, y = rng.uniform(1, 2, (2, n, columns)).astype(dtype)
        for axis in (0, 1, None):
            close(lambda x, y, axis=axis: (x / y).sum(axis=axis), x, y, rtol=1e-12 if dtype == "float64" else 2e-5)


@pytest.mark.parametrize("red", [ad.sum, ad.prod, ad.max])
def test_results_are_written_over_what_was_read(red: Any) -> None:
    """Reductions come after what else is computed of a row: what they read is there until then."""
    rng = np.random.default_rng(6)
    for shape, axis in itertools.product(SHAPES, (0, -1, None)):
        x, y = rng.normal(size=(2, *shape))
        for f in (
            lambda x, y, axis=axis: (red(x, axis=axis), ad.cos(y) * 2),
            lambda x, y, axis=axis: (red(x, axis=axis), ad.cos(x) * 2, ad.sin(y)),
            lambda x, y, axis=axis: (ad.cos(y) * red(x, axis=axis, keepdims=True), ad.cos(y) + x),
        ):
            expected = f(ad.asarray(x), ad.asarray(y))
            for found, each in zip(ad.compile(f, donate=(0,))(x.copy(), y), expected, strict=True):
                np.testing.assert_allclose(found, each.numpy(), rtol=1e-12, atol=1e-12)


def test_results_that_are_parts_of_others() -> None:
    """What is written next to them stays."""
    x = np.arange(120.0).reshape(40, 3)

    def f(x: Any, y: Any) -> list[Any]:
        y = y.copy()
        y[1:-1, 2:5] = x - x.sum(axis=1, keepdims=True)
        return [y, ad.concat([unit(x), x], axis=1), ad.stack([x.max(axis=1), x.min(axis=1)], axis=1)]

    y = np.full((42, 7), -1.0)
    assert kernels(f, x, y)
    for found, wanted in zip(ad.compile(f)(x, y), f(ad.asarray(x), ad.asarray(y)), strict=True):
        np.testing.assert_allclose(found, wanted.numpy(), rtol=2 * np.finfo(float).eps)  # of quotients by one root


def test_loops_that_would_be_long_are_not_written_out() -> None:
    """Each column across rows is text of its own: this took LLVM three seconds."""

    def f(x: Any, w: Any) -> Any:
        centred = w - w.mean(axis=0)
        top = (ad.maximum(centred, centred).mean(axis=0) - w) / ad.sqrt(1 + (w**2).sum(axis=1, keepdims=True))
        return sum([ad.tanh(y).mean() for y in (x * w, centred, top, ad.tanh(centred) * top.max(axis=1)[:, None])])

    x, w = np.random.default_rng(0).normal(size=(2, 65, 17)).astype(np.float32)
    slope = ad.grad(f, argnums=(0, 1))
    assert ad.compile(slope).lower(x, w).llvm.count("\n") < 4000
    for found, expected in zip(ad.compile(slope)(x, w), slope(x, w), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-7)
