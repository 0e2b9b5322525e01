"""Functions with rules of their own, and the same functions composed without.

Each is a function of a and b in two ways. Its first result is of a alone: where a batch has one a for all and many b,
examples share it.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

import adjoint as ad
from adjoint.primitives import TABLE

F = Callable[[Any, Any], Any]


def plain(a: Any, b: Any) -> Any:
    return ad.sin(a), ad.exp(a) * b * b


def twice(a: Any, b: Any) -> Any:
    return plain(*plain(a, b))


@ad.custom_vjp
def pulled(a: Any, b: Any) -> Any:
    return plain(a, b)


@ad.custom_jvp
def pushed(a: Any, b: Any) -> Any:
    return plain(a, b)


@ad.custom_vjp
def pulled_by_pulled(a: Any, b: Any) -> Any:
    return plain(a, b)


def _backward(saved: Any, g: Any) -> Any:
    a, b = saved
    return g[0] * ad.cos(a) + g[1] * ad.exp(a) * b * b, g[1] * 2 * ad.exp(a) * b


def _forward(primals: Any, tangents: Any) -> Any:
    (a, b), (s, t) = primals, tangents
    return plain(a, b), (ad.cos(a) * s, ad.exp(a) * (s * b * b + 2 * t * b))


@ad.custom_vjp
def _slopes(a: Any, b: Any) -> Any:
    return ad.cos(a), ad.exp(a) * b


_slopes.defvjp(
    lambda a, b: (_slopes(a, b), (a, b)),
    lambda saved, g: (-g[0] * ad.sin(saved[0]) + g[1] * ad.exp(saved[0]) * saved[1], g[1] * ad.exp(saved[0])),
)


def _backward_by_rule(saved: Any, g: Any) -> Any:
    a, b, (cosine, slope) = saved
    return g[0] * cosine + g[1] * slope * b, g[1] * 2 * slope


pulled.defvjp(lambda a, b: (pulled(a, b), (a, b)), _backward)
pushed.defjvp(_forward)
pulled_by_pulled.defvjp(lambda a, b: (pulled_by_pulled(a, b), (a, b, _slopes(a, b))), _backward_by_rule)


@ad.custom_batching
def batched(a: Any, b: Any) -> Any:
    return plain(a, b)


def _batch(size: int, flags: Any, a: Any, b: Any) -> Any:
    return plain(a, b), (flags[0], True)


batched.def_batching(_batch)


def _step(a: Any, b: Any) -> Callable[[Any, Any], Any]:
    """One part of the carry is of a alone, and so is one of the results; the other is of the examples."""
    return lambda carry, x: ((ad.sin(carry[0]) + a * x, carry[1] * carry[0] + b), (carry[0] * x, carry[1]))


ROWS = np.array([0.5, -0.3, 0.8])


def scanned(every: int | None, *, reverse: bool = False) -> F:
    def f(a: Any, b: Any) -> Any:
        (r, y), (rs, ys) = ad.scan(_step(a, b), (a * 1.0, b * 1.0), ROWS, reverse=reverse, checkpoint_every=every)
        return r + rs.sum(axis=0), y + ys.sum(axis=0)

    return f


def stepped(*, reverse: bool = False) -> F:
    def f(a: Any, b: Any) -> Any:
        carry, sums = (a, b), (0.0, 0.0)
        for x in ROWS[::-1] if reverse else ROWS:
            carry, (r, y) = _step(a, b)(carry, float(x))
            sums = sums[0] + r, sums[1] + y
        return carry[0] + sums[0], carry[1] + sums[1]

    return f


def scanned_rows(a: Any, b: Any) -> Any:
    """The slices differ between examples, and the carry's first part does not depend on them."""
    (r, y), _ = ad.scan(lambda c, x: ((c[0] * c[0], c[1] * c[0] + x), ()), (a, b), ad.stack([b, b * b]),
                        checkpoint_every=1)  # fmt: skip
    return r, y


def stepped_rows(a: Any, b: Any) -> Any:
    return a**4, (b * a + b) * a * a + b * b


def rule_around_a_scan(custom: Any) -> F:
    """A rule that differentiates a checkpointed scan itself, forward."""
    scan = scanned(1)
    jacobian = ad.jacobian(scan, (0, 1), "forward")

    def pulls(saved: Any, g: Any) -> Any:
        (ra, rb), (ya, yb) = jacobian(*saved)
        return g[0] * ra + g[1] * ya, g[0] * rb + g[1] * yb

    def pushes(primals: Any, tangents: Any) -> Any:
        rows = jacobian(*primals)
        r, y = (sum(s * t for s, t in zip(row, tangents, strict=True)) for row in rows)
        return scan(*primals), (r, y)

    f = custom(scan)
    if custom is ad.custom_vjp:
        f.defvjp(lambda a, b: (scan(a, b), (a, b)), pulls)
    else:
        f.defjvp(pushes)
    return f  # type: ignore[no-any-return]


def rooted(a: Any, b: Any) -> Any:
    x = ad.implicit.root(lambda x, a: x**3 - a, 1.2, a * a)
    return x, ad.implicit.root(lambda y: y * x - b, 0.5)


def root(a: Any, b: Any) -> Any:
    x = (a * a) ** (1 / 3)
    return x, b / x


def rooted_at_once(a: Any, b: Any) -> Any:
    """The start, which all examples share, is the root of each."""
    zero = b - ad.stop_gradient(b)
    return ad.sin(a), ad.implicit.root(lambda x, z: ad.sin(x) - z * (1 + a * a), 0.0, zero * b)


def root_at_once(a: Any, b: Any) -> Any:
    return ad.sin(a), ad.asin((b - ad.stop_gradient(b)) * b * (1 + a * a))


def iterated(a: Any, b: Any) -> Any:
    return ad.sin(a), ad.implicit.fixed_point(lambda x: x / 4 + ad.exp(a) * b, 0.0)


def fixed(a: Any, b: Any) -> Any:
    return ad.sin(a), ad.exp(a) * b * 4 / 3


def minimized_at_once(a: Any, b: Any) -> Any:
    zero = b - ad.stop_gradient(b)
    return ad.sin(a), ad.implicit.minimize(lambda x: ad.exp(a) * (x - zero * b) ** 2, 0.0)


def minimum_at_once(a: Any, b: Any) -> Any:
    return ad.sin(a), (b - ad.stop_gradient(b)) * b


def integrated(gradient: str) -> F:
    """One equation for each result: the first does not know of b."""
    options = {"gradient": gradient, "rtol": 1e-10, "atol": 1e-10}

    def f(a: Any, b: Any) -> Any:
        r = ad.odeint(lambda r, t, a: a - r, 0.5, np.array([0.0, 0.3]), a, **options)
        return r[1], ad.odeint(lambda y, t, b: b * y, a, np.array([0.0, 0.3]), b, **options)[1]

    return f


def flow(a: Any, b: Any) -> Any:
    return a + (0.5 - a) * np.exp(-0.3), a * ad.exp(0.3 * b)


def branched(on_b: bool) -> F:
    def f(a: Any, b: Any) -> Any:
        x = b if on_b else a
        return ad.sin(a), ad.cond(x > 0.38, lambda a, b: b * a, lambda a, b: b * b * a, a, b)

    return f


def chosen(on_b: bool) -> F:
    def f(a: Any, b: Any) -> Any:
        go = (b if on_b else a) > 0.38
        return ad.sin(a), ad.where(go, b * a, b * b * a)

    return f


def switched(a: Any, b: Any) -> Any:
    return ad.sin(a), ad.switch(ad.astype(b > 0.38, ad.int64), [lambda a, b: b * b * a, lambda a, b: b * a], a, b)


def applied(a: Any, b: Any) -> Any:
    return ad.sin(a), ad.apply_where(ad.asarray(b) > 0.38, (a, b), lambda a, b: b * a, lambda a, b: b * b * a)


def looped(a: Any, b: Any) -> Any:
    return ad.fori_loop(0, 2, lambda i, c: (ad.sin(c[0]) * a, c[1] * c[0] + b), (a, b))


def loop(a: Any, b: Any) -> Any:
    r = ad.sin(a) * a
    return ad.sin(r) * a, (b * a + b) * r + b


def while_looped(a: Any, b: Any) -> Any:
    r, y, _ = ad.while_loop(
        lambda c: c[2] < 2, lambda c: (ad.sin(c[0]) * a, c[1] * c[0] + b, c[2] + 1), (a * 1.0, b * 1.0, 0)
    )
    return r, y


_declared: list[Any] = []


def _primitives() -> list[Any]:
    """Declared when a test asks, and again in the next, as they are gone from the table of primitives after each."""
    if "batches_scaled" in TABLE:
        return _declared
    scaled = ad.primitive("batches_scaled", lambda x, y: np.exp(x) * y * y, derivative={
        "x": lambda B, g, out: B.multiply(g, out),
        "y": lambda B, g, x, y: B.multiply(g, B.multiply(2.0, B.multiply(B.exp(x), y))),
    })  # fmt: skip
    product = ad.primitive(
        "batches_product", lambda x, y: np.asarray(x @ y), kind="contraction", operands="x y", shape=lambda x, y: (),
        derivative={"x": lambda B, g, y: B.multiply(g, y), "y": lambda B, g, x: B.multiply(g, x)},
        pushforward=lambda B, tangents, x, y: functools.reduce(B.add, [
            B.batches_product(s, t) for s, t in ((tangents[0], y), (x, tangents[1])) if s is not None and t is not None
        ]),
    )  # fmt: skip
    _declared[:] = [scaled, product]
    return _declared


def users(a: Any, b: Any) -> Any:
    scaled, product = _primitives()
    return ad.sin(a), scaled(a, b) + product(ad.stack([a, b * 0 + 1]), ad.stack([ad.sin(a), b]))


def of_primitives(a: Any, b: Any) -> Any:
    return ad.sin(a), plain(a, b)[1] + a * ad.sin(a) + b


def transferred(a: Any, b: Any) -> Any:
    there = [x.to_device(ad.ArrayAPI(np)) for x in (ad.asarray(a), ad.asarray(b))]
    r, y = pulled(*there)
    return r.to_device("numpy"), y.to_device("numpy")


CASES: dict[str, tuple[F, F]] = {
    "custom_vjp": (pulled, plain),
    "custom_jvp": (pushed, plain),
    "custom_vjp by another": (pulled_by_pulled, plain),
    "custom_batching": (batched, plain),
    "custom_vjp in a checkpoint": (ad.checkpoint(pulled), plain),
    "custom_vjp after a checkpoint": (lambda a, b: pulled(*ad.checkpoint(plain)(a, b)), twice),
    "custom_vjp twice": (lambda a, b: pulled(*pulled(a, b)), twice),
    "custom_jvp after custom_vjp": (lambda a, b: pushed(*pulled(a, b)), twice),
    "checkpoint": (ad.checkpoint(plain), plain),
    "scan": (scanned(None), stepped()),
    "scan, each step again": (scanned(1), stepped()),
    "scan in chunks, in reverse": (scanned(2, reverse=True), stepped(reverse=True)),
    "scan of different slices": (scanned_rows, stepped_rows),
    "custom_vjp around a scan": (rule_around_a_scan(ad.custom_vjp), stepped()),
    "custom_jvp around a scan": (rule_around_a_scan(ad.custom_jvp), stepped()),
    "root": (rooted, root),
    "root found at once": (rooted_at_once, root_at_once),
    "fixed_point": (iterated, fixed),
    "minimize, found at once": (minimized_at_once, minimum_at_once),
    "odeint": (integrated("direct"), flow),
    "odeint, adjoint": (integrated("adjoint"), flow),
    "cond": (branched(False), chosen(False)),
    "cond of examples": (branched(True), chosen(True)),
    "switch": (switched, chosen(True)),
    "apply_where": (applied, chosen(True)),
    "fori_loop": (looped, loop),
    "while_loop": (while_looped, loop),
    "primitives of users": (users, of_primitives),
    "another device": (transferred, plain),
}  # fmt: skip
