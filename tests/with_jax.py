"""Functions that both libraries run, their arguments, and how what the two give is compared."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import optree
from conftest import peer

import adjoint as ad

jax = peer("jax")
jax.config.update("jax_enable_x64", True)
jnp = jax.numpy

RNG = np.random.default_rng(5)


def real(*shape: int) -> Any:
    return RNG.uniform(0.2, 1.5, shape) * RNG.choice([-1.0, 1.0], shape)


def cplx(*shape: int) -> Any:
    return real(*shape) + 1j * real(*shape)


def flat(tree: Any) -> list[Any]:
    return optree.tree_leaves(tree, namespace="adjoint")


def agree(mine: Any, theirs: Any) -> None:
    """The same leaves: values to rounding, shapes and dtypes; ours are NumPy's."""
    ours, others = flat(mine), jax.tree_util.tree_leaves(theirs)
    assert len(ours) == len(others)
    for x, y in zip(ours, others, strict=True):
        assert isinstance(x, (np.ndarray, np.generic)), type(x)
        expected = np.asarray(y)
        assert (x.shape, x.dtype) == (expected.shape, expected.dtype)
        np.testing.assert_allclose(x, expected, rtol=1e-11, atol=1e-12)


def mlp(xp: Any, p: Any, x: Any) -> Any:
    return xp.tanh(x @ p["w1"] + p["b1"]) @ p["w2"] + p["b2"]


def loss(xp: Any, p: Any, x: Any, y: Any) -> Any:
    return ((mlp(xp, p, x) - y) ** 2).mean()


def vector(xp: Any, x: Any, y: Any) -> Any:
    """Of two vectors of different lengths, with broadcasting, indexing and a reduction."""
    return xp.sin(x)[:, None] * xp.exp(y) + (x * x).sum() * y[1]


def scalar(xp: Any, x: Any, y: Any) -> Any:
    return (vector(xp, x, y) ** 3).sum()


def tree(xp: Any, d: Any) -> Any:
    a, (b, c) = d["a"], d["bc"]
    return {"out": [xp.cos(a) * c, b @ b], "one": (a.sum() * c,)}


def scalar_of_tree(xp: Any, d: Any) -> Any:
    out = tree(xp, d)
    return (out["out"][0] ** 2).sum() + out["out"][1].sum() * out["one"][0]


def shapes(xp: Any, x: Any) -> Any:
    """Moves of axes, sorts, cumulations and choices."""
    y = xp.concatenate([x, x[::-1] ** 2]) if xp is jnp else xp.concat([x, ad.flip(x) ** 2])
    sums = xp.cumsum(y) if xp is jnp else xp.cumulative_sum(y)
    return xp.where(y > 0, sums, xp.sort(y)) * xp.max(x)


PARAMETERS = {"w1": real(3, 4), "b1": real(4), "w2": real(4, 2), "b2": real(2)}
XS, YS = real(5, 3), real(5, 2)
X, Y = real(3), real(4)
TREE = {"a": real(2), "bc": (real(2, 2), np.asarray(real()))}
SHAPES = real(4)

# name: the function of the library, and its arguments
VECTORS: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "vector": (vector, (X, Y)),
    "tree": (tree, (TREE,)),
    "mlp": (mlp, (PARAMETERS, XS)),
    "shapes": (shapes, (SHAPES,)),
    "constant": (lambda xp, x: xp.ones((2, 2), dtype=xp.float64), (X,)),
    "part": (lambda xp, x, y: (y * 2, x * 0, y[0]), (X, Y)),
    "empty": (lambda xp, x: x[:0], (X,)),
    "of empty": (lambda xp, x: x.sum() + xp.ones(2, dtype=xp.float64), (real(0),)),
    "matrix": (lambda xp, x: xp.linalg.inv(x) @ x.mT, (real(2, 2) + 3 * np.eye(2),)),
}
SCALARS: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "scalar": (scalar, (X, Y)),
    "tree": (scalar_of_tree, (TREE,)),
    "loss": (loss, (PARAMETERS, XS, YS)),
    "shapes": (lambda xp, x: shapes(xp, x).sum(), (SHAPES,)),
    "constant": (lambda xp, x: xp.ones((), dtype=xp.float64), (X,)),
    "ignores one": (lambda xp, x, y: (y**3).sum(), (X, Y)),
    "0-d": (lambda xp, x: xp.exp(x) * x, (np.asarray(0.7),)),
}


def both(f: Callable[..., Any]) -> tuple[Callable[..., Any], Callable[..., Any]]:
    return lambda *args: f(ad, *args), lambda *args: f(jnp, *args)


def every(count: int) -> list[Any]:
    """Choices of arguments: one, from the end, several in any order."""
    return [0, -1, tuple(range(count)), tuple(reversed(range(count)))]


def chosen(parts: Any, argnums: Any) -> Any:
    return parts[argnums] if isinstance(argnums, int) else tuple([parts[i] for i in argnums])


def expected(transform: Callable[..., Any], f: Callable[..., Any], args: Any, *more: Any) -> Any:
    """What a transform of JAX gives, compiled as a whole: that is faster here."""
    return jax.jit(lambda *xs: transform(f, *more)(*xs))(*args)
