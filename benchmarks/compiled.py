"""Compiled functions: ours as they are, compiled, and `jax.jit` of the same."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import adjoint as ad
from benchmarks.cases import Case, Run

BOUNDS = {"adjoint eager": 0.4}
DT = 0.01


def _chain(lib: Any) -> Callable[..., Any]:
    def links(x: Any, w: Any) -> Any:
        for _ in range(200):
            x = lib.sin(x * w + w)
            x = x * x - w
        return x.sum()

    return links


def _lorenz(lib: Any, scan: Callable[..., Any]) -> Callable[..., Any]:
    def field(z: Any, p: Any) -> Any:
        x, y, w = z[0], z[1], z[2]
        return lib.stack([p[0] * (y - x), x * (p[1] - w) - y, x * y - p[2] * w])

    def end(z: Any, p: Any) -> Any:
        def step(z: Any, _: Any) -> Any:
            k1 = field(z, p)
            k2 = field(z + DT / 2 * k1, p)
            k3 = field(z + DT / 2 * k2, p)
            k4 = field(z + DT * k3, p)
            return z + DT / 6 * (k1 + 2 * k2 + 2 * k3 + k4), None

        return (scan(step, z, None, length=100)[0] ** 2).sum()

    return end


def _made(
    ours: Callable[..., Any], theirs: Callable[[Any], Callable[..., Any]], values: Any
) -> dict[str, Callable[[], Run]]:
    def compiled() -> Run:
        f, xs = ad.compile(ours), [ad.tensor(x) for x in values]
        return lambda: f(*xs)

    def plain() -> Run:
        xs = [ad.tensor(x) for x in values]
        return lambda: ours(*xs)

    def jitted() -> Run:
        import jax

        f, xs = jax.jit(theirs(jax)), [jax.numpy.asarray(x) for x in values]
        return lambda: jax.block_until_ready(f(*xs))

    return {"adjoint": compiled, "adjoint eager": plain, "JAX jit": jitted}


_RNG = np.random.default_rng(0)
_LINKS = [(_RNG.standard_normal(100) * 0.3).astype(np.float32) for _ in range(2)]
_START = [_RNG.standard_normal(3).astype(np.float32), np.array([10.0, 28.0, 8 / 3], np.float32)]
_LAYERS = [(_RNG.standard_normal(shape) / 8).astype(np.float32) for shape in ((64, 32), (32,), (32, 10), (10,))]
_BATCH = [_RNG.standard_normal((32, 64)).astype(np.float32), np.eye(10, dtype=np.float32)[_RNG.integers(0, 10, 32)]]


def _step(lib: Any, value_and_grad: Callable[..., Any]) -> Callable[..., Any]:
    def step(w1: Any, b1: Any, w2: Any, b2: Any, x: Any, y: Any) -> Any:
        def loss(*p: Any) -> Any:
            z = lib.tanh(x @ p[0] + p[1]) @ p[2] + p[3]
            return (lib.log(lib.exp(z).sum(axis=1)) - (z * y).sum(axis=1)).mean()

        value, grads = value_and_grad(loss, (0, 1, 2, 3))(w1, b1, w2, b2)
        return value, [p - 0.01 * g for p, g in zip((w1, b1, w2, b2), grads, strict=True)]

    return step


CASES = [
    Case(
        "compiled: gradient of a chain of 800 small operations",
        _made(ad.value_and_grad(_chain(ad), (0, 1)), lambda jax: jax.value_and_grad(_chain(jax.numpy), (0, 1)), _LINKS),
        BOUNDS,
    ),
    Case(
        "compiled: MLP 64-32-10, batch 32, SGD step",
        _made(
            _step(ad, ad.value_and_grad),
            lambda jax: _step(jax.numpy, jax.value_and_grad),
            [*_LAYERS, *_BATCH],
        ),
        BOUNDS,
    ),
    Case(
        "compiled: gradient of Lorenz's equations, 100 steps of a scan",
        _made(
            ad.value_and_grad(_lorenz(ad, ad.scan), (0, 1)),
            lambda jax: jax.value_and_grad(_lorenz(jax.numpy, jax.lax.scan), (0, 1)),
            _START,
        ),
        BOUNDS,
    ),
]
