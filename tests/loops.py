"""Programs with choices and loops, for ad and jax.lax, and what their derivatives are compared by."""

from __future__ import annotations

from typing import Any

import numpy as np


def close(x: Any, y: Any) -> None:
    np.testing.assert_allclose(x, y, rtol=1e-11, atol=1e-12)


def leaves(tree: Any) -> list[Any]:
    if isinstance(tree, dict):
        return [leaf for key in sorted(tree) for leaf in leaves(tree[key])]
    if isinstance(tree, (list, tuple)):
        return [leaf for part in tree for leaf in leaves(part)]
    return [] if tree is None else [tree]


def all_close(x: Any, y: Any, what: str = "") -> None:
    for mine, theirs in zip(leaves(x), leaves(y), strict=True):
        assert np.shape(mine) == np.shape(theirs), what
        np.testing.assert_allclose(np.asarray(mine), np.asarray(theirs), rtol=1e-11, atol=1e-12, err_msg=what)


# --- against jax.lax ---------------------------------------------------------------------------------
#
# Programs from vectors of length 3 to scalars, written for `L` (ad or jax.lax) and `xp` (ad or jax.numpy).


def choice(L: Any, xp: Any, x: Any) -> Any:
    return L.cond(x[0] > 0, lambda x: xp.sum(xp.sin(x) * x), lambda x: xp.sum(xp.exp(x)), x)


def choice_of_trees(L: Any, xp: Any, x: Any) -> Any:
    def this(a: Any, d: Any) -> Any:
        return {"p": a * d["b"], "q": (xp.sin(a), a[0])}

    def that(a: Any, d: Any) -> Any:
        return {"p": a + 1.0, "q": (a * a * d["b"], d["b"][1] * a[2])}

    out = L.cond(xp.sum(x) > 0.3, this, that, x, {"b": xp.cos(x)})
    return xp.sum(out["p"]) * out["q"][1] + xp.sum(out["q"][0])


def choice_of_three(L: Any, xp: Any, x: Any) -> Any:
    index = xp.where(x[0] > 0, 1, 0) + xp.where(x[1] > 0, 2, 0) - 1  # -1 and 2 are one too far
    return L.switch(index, [lambda x: xp.sum(x * x), lambda x: xp.sum(xp.sin(x))], x)


def power(L: Any, xp: Any, x: Any) -> Any:
    return L.fori_loop(2, 6, lambda i, c: c * xp.sin(x[i % 3]) + i, 1.0)


def recurrence(L: Any, xp: Any, x: Any) -> Any:
    def step(c: Any, row: Any) -> Any:
        c = {"h": xp.tanh(c["h"] * x[0] + row["a"] * x), "n": c["n"] + row["k"]}
        return c, (c["h"][0] * x[1], c["n"])

    rows = {"a": np.array([0.3, -0.5, 0.7, 1.1]), "k": np.arange(4)}
    last, (first, counts) = L.scan(step, {"h": x, "n": 0}, rows)
    return xp.sum(last["h"]) + xp.sum(first * counts)


def recurrence_in_reverse(L: Any, xp: Any, x: Any) -> Any:
    last, ys = L.scan(lambda c, v: (c * v + xp.sin(c), c - v), 0.5, x, reverse=True)
    return last + xp.sum(ys * x)


def without_xs(L: Any, xp: Any, x: Any) -> Any:
    last, ys = L.scan(lambda c, _: (xp.cos(c) + x, xp.sum(c)), x, None, length=3)
    return xp.sum(last) * xp.sum(ys)


def mapped(L: Any, xp: Any, x: Any) -> Any:
    return xp.sum(L.map(lambda v: xp.sin(v) * xp.sum(x), x))


def nested(L: Any, xp: Any, x: Any) -> Any:
    """A choice in a loop in a scan, all of which depend on the example."""

    def body(i: Any, c: Any) -> Any:
        return L.cond(c > 0.2, lambda c: c * c - x[1], lambda c: xp.exp(c) * x[2], c)

    def step(c: Any, v: Any) -> Any:
        return L.fori_loop(0, 2, body, c) * v, c

    last, ys = L.scan(step, x[0], x)
    return last + xp.sum(ys * ys)


PROGRAMS = [
    choice, choice_of_trees, choice_of_three, power, recurrence, recurrence_in_reverse, without_xs, mapped, nested
]  # fmt: skip


def newton(L: Any, xp: Any, x: Any) -> Any:
    """The square root of 1 + |x|^2: how many steps it takes depends on the example."""
    a = 1 + xp.sum(x * x)

    def far(c: Any) -> Any:
        return xp.abs(c["x"] * c["x"] - a) > 1e-9

    def closer(c: Any) -> Any:
        return {"x": 0.5 * (c["x"] + a / c["x"]), "n": c["n"] + 1}

    found = L.while_loop(far, closer, {"x": a * 1.0, "n": 0})
    return found["x"] * (1 + xp.sum(x)) + found["n"]


def doubling(L: Any, xp: Any, x: Any) -> Any:
    return xp.sum(L.while_loop(lambda c: xp.sum(c * c) < 40.0, lambda c: c * 1.5 + xp.sin(x), x))


POINTS = [np.array(p) for p in ([0.7, -0.4, 0.2], [-0.3, 0.8, 1.1], [-0.6, -0.9, 0.4], [1.2, 0.5, -0.8])]
BATCH = np.stack(POINTS)


def derivatives(T: Any, f: Any) -> Any:
    return lambda x: {
        "value": f(x),
        "grad": T.grad(f)(x),
        "jvp": T.jvp(f, (x,), (x * x + 1,)),
        "hessian": T.hessian(f)(x),
        "grad of jvp": T.grad(lambda x: T.jvp(f, (x,), (x * x,))[1])(x),
    }


def derivatives_of_batches(T: Any, f: Any) -> Any:
    def total(x: Any) -> Any:
        return T.vmap(f)(x).sum()

    return lambda x: {
        "grad": T.grad(total)(x[0]),
        "hessian": T.hessian(total)(x[0]),
        "vmap of vmap": T.vmap(T.vmap(T.grad(f)))(x),
        "vmap of grad of vmap": T.vmap(T.grad(total), in_axes=1)(x),
    }


def compare(mine: dict[str, Any], wanted: dict[str, Any]) -> None:
    for name in wanted:
        all_close(mine[name], wanted[name], name)
