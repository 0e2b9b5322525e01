"""Random programs of 20 to 60 lines: compiled, they give what they give as they are, with their gradients.

Each line makes of tensors that are there another one. Nothing in them is so close to a jump that rounding decides.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

import adjoint as ad
from adjoint.random_keys import Replay, replayed

Step = Callable[[Any, Any, random.Random], Any]
MOST = 150  # elements


@ad.custom_vjp
def scaled_sine(x: Any) -> Any:
    return ad.sin(x) * 2


scaled_sine.defvjp(lambda x: (ad.sin(x) * 2, x), lambda x, g: (g * ad.cos(x) * 2,))
outside = ad.external(np.tanh, vjp=lambda g, x: g * (1 - np.tanh(x) ** 2), like=lambda x: x)


def total(x: Any) -> Any:
    """A number of the size of 1, without a jump."""
    return ad.tanh(ad.sum(x)) if x.size else ad.sum(x)


def assigned(x: Any, y: Any, r: random.Random) -> Any:
    z, value = ad.asarray(x * 1, device=(x * total(y)).device), total(y)
    way = r.randrange(5) if x.ndim and x.shape[0] else 5
    if way == 0:
        z[r.randrange(-x.shape[0], x.shape[0])] = value
    elif way == 1:
        z[:: r.choice([1, -1, 2])] *= 2.0
    elif way == 2:
        z[[0, -1, 0]] += value
    elif way == 3:
        z[..., :1] = value
    elif way == 4:
        view = z.reshape((-1,))
        z = z + (view[-1] if x.size else value)
    else:
        z += value
    return z


def choice(x: Any, y: Any, r: random.Random) -> Any:
    number = ad.switch(
        (2 + 2 * total(y)).astype(ad.int64) % 3 if r.random() < 0.3 else ad.tensor(r.randrange(3)),
        [lambda x: x / 2, ad.sin, lambda x: x * total(x)],
        x,
    )
    return ad.cond(total(y) > -2, lambda: ad.cos(number), lambda: number)


def loop(x: Any, y: Any, r: random.Random) -> Any:
    s = total(y)
    way = r.randrange(5)
    if way == 0:
        return ad.fori_loop(0, 3, lambda i, c: ad.sin(c) + i * s / 3, x)
    if way == 1:
        return ad.scan(lambda c, row: (ad.tanh(c + row), c * 2), s, x.reshape((-1,)), reverse=r.random() < 0.5)[1]
    if way == 2:
        return ad.while_loop(lambda c: c[1] < 3, lambda c: (c[0] / 2 + s, c[1] + 1), (x, 0), max_steps=4)[0]
    if way == 3:
        return ad.map(lambda row: ad.sin(row) * s, x) if x.ndim and x.shape[0] else x
    step = lambda c, row: (ad.cond(row < 9, lambda: ad.fori_loop(0, 2, lambda i, d: d / 2 + row, c), lambda: -c), row)
    return ad.scan(step, s, x.reshape((-1,)))[0]


def derivative(x: Any, y: Any, r: random.Random) -> Any:
    s, few = total(y), x.reshape((-1,))[:3]
    f = lambda x: ad.sin(x) * s + x * x / 8
    ways: list[Callable[[], Any]] = [
        lambda: ad.grad(lambda x: f(x).sum())(x),
        lambda: ad.jvp(f, (x,), (ad.cos(x),))[1],
        lambda: ad.vjp(f, x)[1](ad.cos(x))[0],
        lambda: ad.hessian(lambda v: f(v).sum() * v.sum())(few),
        lambda: ad.jacobian(lambda v: f(v) * v.sum(), mode=r.choice(["forward", "reverse"]))(few),
        lambda: ad.vmap(ad.grad(lambda row: f(row).sum()))(x) if x.ndim else f(x),
        lambda: ad.grad(lambda x: ad.checkpoint(lambda x: ad.sin(f(x)))(x).sum())(x),
        lambda: ad.grad(lambda x: (scaled_sine(x) * s).sum())(x),
        lambda: ad.grad(lambda x: loop(x, y, random.Random(3)).sum())(x),
        lambda: ad.grad(lambda x: assigned(x, y, random.Random(5)).sum() * s)(x),
        lambda: ad.grad(lambda x: ((ad.sin(x) * s).sum().backward(wrt=x)[x] * s).sum())(x),
    ]
    return r.choice(ways)()


def matrix(x: Any) -> Any:
    square = ad.tanh(x.reshape((x.shape[0], -1))[:3, :3]) if x.ndim and x.size else ad.ones((2, 2), dtype=x.dtype)
    return square @ square.mT / 2 + 2 * ad.eye(square.shape[0], dtype=x.dtype)


STEPS: list[Step] = [
    lambda x, y, r: r.choice([ad.sin, ad.tanh, ad.cos, ad.atan, ad.special.erf, ad.nn.gelu, ad.nn.softplus])(x),
    lambda x, y, r: r.choice([ad.exp, ad.expm1])(ad.sin(x)),
    lambda x, y, r: ad.log(2 + ad.sin(x)) + ad.sqrt(1 + x * x) - ad.special.gammaln(2 + ad.sin(x)),
    lambda x, y, r: r.choice([ad.add, ad.subtract, ad.multiply, ad.hypot, ad.logaddexp])(ad.sin(x), total(y)),
    lambda x, y, r: ad.tanh(x) * r.choice([2, -0.5, True, np.float64(0.3), np.int32(2)]) - r.choice([0, 1.5]),
    lambda x, y, r: ad.where(np.arange(x.size).reshape(x.shape) % 2 == 0, x, total(y)),
    lambda x, y, r: (x > 100).astype(ad.int64) * 3 + x,
    lambda x, y, r: ad.abs(ad.exp(1j * x) * (total(y) + 2j)),
    lambda x, y, r: r.choice([ad.sum, ad.mean])(ad.sin(x), axis=r.choice([None, -1]) if x.ndim else None),
    lambda x, y, r: ad.var(x, axis=0, keepdims=True) if x.ndim and x.size else x,
    lambda x, y, r: ad.cumulative_sum(ad.sin(x), axis=0) / 4 if x.ndim else x,
    lambda x, y, r: r.choice([lambda: x.reshape((-1,)), lambda: x[..., None], lambda: ad.permute_dims(x, _back(x))])(),
    lambda x, y, r: r.choice([x[::-1], x[:2], x[-1:], x[..., ::2], x[1:]]) if x.ndim else x,
    lambda x, y, r: x[r.choice([[0, -1], [0, 0, 0]])] if x.ndim and x.shape[0] else x,
    lambda x, y, r: ad.concat([x, -x[:1]], axis=0) if x.ndim and x.size < MOST / 2 else x,
    lambda x, y, r: ad.pad(x, (1, 0)) if x.ndim and x.size < MOST / 4 else x,
    lambda x, y, r: ad.broadcast_to(x, (2, *x.shape)) if x.size < MOST / 2 and x.ndim < 3 else x,
    lambda x, y, r: ad.nn.softmax(x, axis=-1) if x.ndim and x.size else x,
    lambda x, y, r: ad.linalg.solve(matrix(x), matrix(y)[0, 0] * ad.ones(matrix(x).shape[0], dtype=x.dtype)),
    lambda x, y, r: r.choice([ad.linalg.inv, ad.linalg.cholesky, ad.linalg.det])(matrix(x)),
    lambda x, y, r: ad.tanh(x @ x.mT) if x.ndim == 2 else ad.vecdot(ad.tanh(x), x) if x.ndim and x.size else x,
    lambda x, y, r: ad.fft.irfft(ad.fft.rfft(x), n=x.shape[-1]) if x.ndim and x.size else x,
    lambda x, y, r: x + ad.random.normal(x.shape, dtype=x.dtype) / 2,
    lambda x, y, r: ad.nn.dropout(x, 0.5),
    lambda x, y, r: ad.apply_where(x < 100, (x,), ad.sin, lambda x: x),
    lambda x, y, r: scaled_sine(x) + outside(x),
    *[assigned, choice, loop, derivative] * 3,
]


def _back(x: Any) -> tuple[int, ...]:
    return tuple(range(x.ndim))[::-1]


def program(seed: int, length: int) -> Callable[..., list[Any]]:
    def run(number: float, *xs: Any) -> list[Any]:
        r, known = random.Random(seed), [ad.asarray(x).astype(ad.float64) for x in xs]
        for _ in range(length):
            x, y = r.choice(known[-5:]), r.choice(known)
            inner = random.Random(r.random())
            made = r.choice(STEPS)(x, y, inner) * (1 if r.random() < 0.8 else number)
            known.append(made.astype(ad.float64) if made.size <= MOST else total(made))
        return known[-1:-16:-3]

    return run


def inputs(r: random.Random) -> list[Any]:
    rng, shape = np.random.default_rng(r.randrange(1000)), r.choice([(), (1,), (5,), (3, 4), (2, 3, 2), (0, 3), (17,)])
    kinds = ["float64", "float64", r.choice(["float32", "int64", "bool", "float16"])]
    return [np.asarray(rng.normal(size=shape) * 2).astype(kind) for kind in kinds]


def laid(x: Any) -> Any:
    """The same values, but not one after the other in memory, and in the other order of bytes."""
    room = np.zeros((*x.shape, 2), x.dtype.newbyteorder())
    room[..., 1] = x
    return room[..., 1]


def alike(found: Sequence[Any], expected: Sequence[Any]) -> None:
    for one, other in zip(found, expected, strict=True):
        x, y = np.asarray(one), other.numpy()
        assert x.dtype == y.dtype
        size = np.max(np.abs(y), initial=1.0)
        np.testing.assert_allclose(x, y, rtol=1e-8, atol=1e-8 * size)


def run(seed: int) -> None:
    r = random.Random(seed)
    f, xs, number = program(seed, r.randint(20, 60)), inputs(r), round(r.uniform(-1, 1), 2)
    keys = Replay()
    keys.keys = [(0, i) for i in range(1000)]

    def same_numbers(f: Any, *args: Any) -> Any:
        with replayed(keys):
            return f(*args)

    tensors = [ad.asarray(x) for x in xs]
    before = [x.copy() for x in xs]
    expected = same_numbers(f, number, *tensors)
    if not all(math.isfinite(total(x).item()) and np.max(np.abs(x.numpy()), initial=0) < 1e4 for x in expected):
        return
    compiled = ad.compile(lambda *xs: f(*xs))
    for args in (xs, xs, [laid(x) for x in xs], tensors):
        alike(same_numbers(compiled, number, *args), expected)
    alike(same_numbers(compiled, 0.5, *xs), same_numbers(f, 0.5, *tensors))  # a number that changes
    for x, y in zip(xs, before, strict=True):
        np.testing.assert_array_equal(x, y)
    donated = ad.compile(lambda *xs: f(*xs), donate=(1, 2))
    alike(same_numbers(donated, number, *[ad.asarray(x.copy()) for x in xs]), expected)
    alike(same_numbers(ad.compile(lambda *xs: f(*xs), dynamic=True), number, *xs), expected)

    def loss(f: Any) -> Any:
        return ad.grad(lambda x, *rest: sum([ad.sum(ad.sin(y)) for y in f(number, x, *rest)]))

    slope = same_numbers(loss(f), *tensors)
    for g in (ad.compile(loss(f)), loss(compiled)):
        alike([same_numbers(g, *tensors)], [slope])


@pytest.mark.parametrize("seed", [0, 1, 2, *[pytest.param(i, marks=pytest.mark.slow) for i in range(3, 60)]])
@pytest.mark.parametrize("way", ["1", "replay"])
def test_random_programs(seed: int, way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if way == "1":
        pytest.importorskip("llvmlite")
    monkeypatch.setenv("ADJOINT_COMPILE", way)
    with np.errstate(all="ignore"):
        run(seed)
