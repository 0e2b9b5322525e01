"""Random programs of arrays of any dtype: compiled they give the same bits, dtypes and errors.

Their steps are those in which rounding has no choice: arithmetic, comparisons, casts, choices, places. So what comes
out is compared to the last bit, and may decide what follows.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from each import Each
from test_compile_programs import laid

import adjoint as ad
from adjoint import errors

Step = Callable[[Any, Any, Any, random.Random], Any]
MOST = 300  # elements
SIZES = [1, 2, 3, 4, 5, 7, 8, 15, 16, 17, 31, 33, 63, 65, 127, 129]
EDGES = [0.0, -0.0, 1.0, -1.0, 0.5, math.inf, -math.inf, math.nan, 1e-40, 6e4]
DTYPES = "float64 float32 float16 int64 int32 int16 int8 uint64 uint32 uint16 uint8 bool complex128 complex64".split()
POOLS = [DTYPES, ["float64", "int64", "bool"], ["float32", "int32", "uint8", "bool"], ["float64", "complex128"]]
NUMBERS: list[Any] = [0, 1, 2, 3, -1, 7, 0.5, -2.0, 1.5, 0.1, -0.0, True, np.float32(0.3), np.int64(3), np.uint8(7)]
REFUSED = errors.ShapeError, errors.DtypeError, errors.RangeError, errors.ArgumentError, errors.AxisError, IndexError


def one_of(r: random.Random, *these: Any) -> Any:
    return r.choice(these)


def whole(x: Any) -> Any:
    """Numbers from 0 to 99 of a type of integers."""
    x = ad.real(x) if x.dtype.kind == "c" else x
    return ad.astype(
        ad.clip(ad.nan_to_num(x), 0, 99) if x.dtype.kind == "f" else ad.astype(x, ad.int64) % 100, ad.int64
    )


def cast(x: Any, dtype: Any) -> Any:
    """As another dtype, of numbers that this has."""
    if np.dtype(str(dtype)).kind in "iu":
        x = whole(x)
    elif x.dtype.kind == "c" and np.dtype(str(dtype)).kind != "c":
        x = ad.real(x)
    return ad.astype(x, getattr(ad, str(dtype)))


def fitted(made: Any, x: Any) -> Any:
    """Something of the shape and dtype of x."""
    made = cast(made, x.dtype)
    flat = made.reshape((-1,))
    return made if made.shape == x.shape else ad.broadcast_to(flat[0], x.shape) if made.size else x


def assigned(x: Any, y: Any, z: Any, r: random.Random) -> Any:
    made, way, number = x.copy(), r.randrange(5) if x.ndim and x.size else 2, r.choice([0, 1, 3])
    if way == 0:
        made[0] = number
    elif way == 1:
        made[..., ::2] = number
    elif way == 2:
        made[::-1] = x
    elif way == 3:
        made[whole(z).reshape((-1,))[:9] % x.shape[0]] = number
    else:
        made[x != x[:1]] = number
    return made


def placed(x: Any, y: Any, z: Any, r: random.Random) -> Any:
    if not (x.ndim and x.size and z.size):
        return x  # there is no such place
    places, way = whole(z).reshape((-1,))[:40] % x.shape[0], r.randrange(6)
    if way == 0:
        return x[places]
    if way == 1:
        return x[[0, -1, x.shape[0] // 2]]
    if way == 2:
        return ad.take_along_axis(y if y.shape == x.shape else x, ad.argsort(x, axis=-1, stable=True), axis=-1)
    if way == 3:
        return ad.segment_max(x, ad.arange(x.shape[0]) * 5 % 3, num_segments=3)
    if way == 4:
        return ad.one_hot(places % 5, 5)
    return x[places[0]]


def ordered(x: Any, y: Any, z: Any, r: random.Random) -> Any:
    axis, descending = r.choice([0, -1]), r.random() < 0.5
    x = x + 0  # of zeros of either sign NumPy sorts any before the other
    ways: list[Callable[[], Any]] = [
        lambda: ad.sort(x, axis=axis, descending=descending),
        lambda: ad.argsort(x, axis=axis, descending=descending, stable=True),
        lambda: ad.topk(x, 1, axis=axis)[r.randrange(2)],
        lambda: r.choice([ad.cummax, ad.cummin])(x, axis=axis)[r.randrange(2)],
        lambda: ad.searchsorted(ad.sort(ad.nan_to_num(x.reshape((-1,))[:9])), ad.nan_to_num(y)),
        lambda: r.choice([ad.argmax, ad.argmin])(x, axis=axis),
        lambda: r.choice([ad.max, ad.min])(x, axis=r.choice([None, 0, -1]), keepdims=descending),
    ]
    return r.choice(ways)()


def inner(r: random.Random) -> Callable[..., Any]:
    """A function of a few steps of the arrays that it gets."""
    seed, length = r.random(), r.choice([1, 2, 4])

    def run(*xs: Any) -> Any:
        return steps(random.Random(seed), [*xs], length, SIMPLE)[-1]

    return run


def control(x: Any, y: Any, z: Any, r: random.Random) -> Any:
    f, g, way = inner(r), inner(r), r.randrange(6)
    if way == 0:
        there = (z != 0).reshape((-1,))[:1].any()
        return ad.cond(there, lambda x, y: fitted(f(x, y), x), lambda x, y: fitted(g(y, x), x), x, y)
    if way == 1:
        return ad.fori_loop(0, 3, lambda i, c: fitted(f(c, y, z), c), x)
    if way == 2:
        rows, last = y[:6], r.random() < 0.5
        carry, made = ad.scan(lambda c, row: (fitted(f(c, row), c), g(row, c)), x, rows, reverse=last)
        return carry if last else made
    if way == 3:
        step = lambda c: (fitted(f(c[0], z), x), c[1] + 1)
        return ad.while_loop(lambda c: c[1] < 3, step, (x, 0), max_steps=5)[0]
    if way == 4:
        return ad.vmap(lambda x: f(x, y), in_axes=-1)(x)
    return ad.map(lambda row: f(row, z), x[:5])


SIMPLE: list[Step] = [
    lambda x, y, z, r: r.choice([ad.add, ad.subtract, ad.maximum, ad.minimum])(x, y),
    lambda x, y, z, r: ad.multiply(x, y) if "c" not in x.dtype.kind + y.dtype.kind else x,
    lambda x, y, z, r: r.choice([ad.add, ad.subtract, ad.maximum, ad.minimum])(x, r.choice(NUMBERS)),
    lambda x, y, z, r: r.choice([ad.add, ad.multiply])(r.choice(NUMBERS), ad.real(x)),
    lambda x, y, z, r: ad.remainder(x, r.choice([2, 3, -4, 0.75])),
    lambda x, y, z, r: r.choice([ad.floor_divide, ad.remainder])(whole(x), whole(y)),
    lambda x, y, z, r: r.choice([ad.bitwise_and, ad.bitwise_or, ad.bitwise_xor])(x, y),
    lambda x, y, z, r: r.choice([ad.bitwise_left_shift, ad.bitwise_right_shift])(x, r.choice([0, 1, 7])),
    lambda x, y, z, r: r.choice([ad.less, ad.less_equal, ad.greater, ad.equal, ad.not_equal])(x, y),
    lambda x, y, z, r: r.choice([ad.less, ad.greater_equal, ad.not_equal])(x, r.choice([*NUMBERS, 300, -1000])),
    lambda x, y, z, r: r.choice([ad.logical_and, ad.logical_or, ad.logical_xor])(x, y),
    *[lambda x, y, z, r: ad.where(z != 0, x, one_of(r, y, 0, 1.5, math.nan))] * 2,
    lambda x, y, z, r: r.choice([ad.abs, ad.sign, ad.negative, ad.square])(ad.real(x)),
    lambda x, y, z, r: r.choice([ad.floor, ad.ceil, ad.trunc, ad.round, ad.nan_to_num])(x),
    lambda x, y, z, r: ad.signbit(ad.nan_to_num(x)),  # a nan's sign is any
    lambda x, y, z, r: ad.copysign(x, ad.nan_to_num(y)),
    lambda x, y, z, r: r.choice([ad.isnan, ad.isinf, ad.isfinite, ad.logical_not, ad.conj, ad.real, ad.imag])(x),
    lambda x, y, z, r: ad.clip(x, *r.choice([(-1, 1), (0, 3), (None, 0), (-2.0, None), (0.5, 1.5)])),
    lambda x, y, z, r: r.choice([ad.fmax, ad.fmin, ad.nextafter, ad.heaviside])(x, y),
    lambda x, y, z, r: ad.sqrt(ad.abs(ad.real(x))),
    *[lambda x, y, z, r: cast(x, r.choice(DTYPES))] * 3,
    *[lambda x, y, z, r: r.choice([ad.matrix_transpose, ad.flip, ad.ravel, ad.diagonal, ad.tril])(x)] * 2,
    lambda x, y, z, r: ad.permute_dims(x, tuple(range(x.ndim))[::-1]),
    *[lambda x, y, z, r: r.choice([x[1:], x[..., ::-2], x[..., :5], x[-3:], x[..., None], x[None]])] * 2,
    lambda x, y, z, r: one_of(r, ad.concat, ad.stack)([x, y], axis=r.choice([0, -1])),
    lambda x, y, z, r: ad.pad(x, (r.randrange(3), 1), r.choice(["constant", "edge", "wrap"])),
    lambda x, y, z, r: one_of(r, ad.roll, ad.repeat)(x, r.choice([1, 2, 3]), axis=-1),
    lambda x, y, z, r: r.choice([ad.any, ad.all, ad.count_nonzero])(x, axis=r.choice([None, 0, -1])),
    lambda x, y, z, r: r.choice([ad.sum, ad.prod])(whole(x), axis=r.choice([None, 0, -1])),
    lambda x, y, z, r: r.choice([ad.cumulative_sum, ad.cumulative_prod])(whole(x), axis=r.choice([0, -1])),
    lambda x, y, z, r: whole(x) @ whole(x).mT,
]
STEPS: list[Step] = [*SIMPLE, *[assigned, placed, ordered, control] * 3]


def steps(r: random.Random, known: list[Any], length: int, among: Sequence[Step]) -> list[Any]:
    """What is known, and what so many steps make of it: where one is refused, that is the same compiled."""
    for _ in range(length):
        step, (x, y, z) = r.choice(among), [r.choice(part) for part in (known[-5:], known, known)]
        chosen = random.Random(r.random())
        try:
            made = step(x, y, z, chosen)
        except REFUSED:
            continue
        known.append(made if made.size <= MOST else made.reshape((-1,))[:97])
    return known


def inputs(r: random.Random) -> list[np.ndarray[Any, Any]]:
    rng, pool = np.random.default_rng(r.randrange(1 << 20)), r.choice(POOLS)
    shape = tuple([r.choice(SIZES) for _ in range(r.choice([0, 1, 1, 2, 2, 3]))])
    while math.prod(shape) > MOST:
        shape = shape[1:]
    found = []
    for axes in (shape, shape, shape[1:], r.choice([shape, (0, *shape[1:])])):
        kind, x = np.dtype(r.choice(pool)), np.asarray(rng.normal(size=axes) * 3)
        if kind.kind == "f":
            x = np.where(rng.random(axes) < 0.2, rng.choice(EDGES, axes), x)
        found.append((np.abs(x) if kind.kind == "u" else x * (1 + 2j) if kind.kind == "c" else x).astype(kind))
    return found


def same(found: Sequence[Any], expected: Sequence[Any]) -> None:
    for one, other in zip(found, expected, strict=True):
        x, y = np.asarray(one), np.asarray(other)
        assert (x.dtype, x.shape) == (y.dtype, y.shape)
        np.testing.assert_array_equal(x, y)
        there = x == x
        if x.dtype.kind == "f":
            np.testing.assert_array_equal(np.signbit(x[there]), np.signbit(y[there]))


def run(seed: int) -> None:
    r = random.Random(seed)
    xs, length = inputs(r), r.choice([4, 10, 25])

    def f(*xs: Any) -> list[Any]:
        return steps(random.Random(seed), list(map(ad.asarray, xs)), length, STEPS)[len(xs) :]

    before, expected = [x.copy() for x in xs], [y.numpy() for y in f(*xs)]
    compiled = ad.compile(f)
    for args in (xs, xs, [laid(x) for x in xs]):
        same(compiled(*args), expected)
    for x, y in zip(xs, before, strict=True):
        assert x.tobytes() == y.tobytes()
    if seed % 3 == 0:
        same(ad.compile(f, donate=range(len(xs)))(*before), expected)
    elif seed % 3 == 1:
        same(ad.compile(f, dynamic=True)(*xs), expected)


@pytest.mark.parametrize(
    "seeds",
    [
        [*range(15), 134, 352],  # the last two: complex numbers that are transposed, and clip at a zero
        pytest.param(range(15, 300), marks=pytest.mark.slow),
    ],
    ids=["few", "many"],
)
@pytest.mark.parametrize("way", ["1", "replay"])
def test_random_programs(seeds: Sequence[int], way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if way == "1":
        pytest.importorskip("llvmlite")
    monkeypatch.setenv("ADJOINT_COMPILE", way)
    with Each() as each, np.errstate(all="ignore"):
        for seed in seeds:
            with each(seed):
                run(seed)
