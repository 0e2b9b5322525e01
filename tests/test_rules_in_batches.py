"""Functions with rules, of which examples of a batch share a part: every nesting is that of the plain composition."""

from __future__ import annotations

import functools
import itertools
import math
import random
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from cases.rules import CASES, ROWS, F, pulled, pushed, scanned, stepped
from each import Each

import adjoint as ad

# --- transforms: each makes a function of a and b to another -------------------------------------


def many(x: Any) -> Any:
    x = ad.asarray(x)
    return ad.stack([x, 0.7 * x, 1.2 * x])


def total(outs: Sequence[Any]) -> Any:
    """A number, in which every entry of the results has a weight of its own."""
    return sum((x * np.cos(np.arange(float(np.prod(x.shape))) + k).reshape(x.shape)).sum() for k, x in enumerate(outs))


def flat(tree: Any) -> tuple[Any, ...]:
    return tuple(ad.tree.leaves(tree))


def batch(in_axes: Any, out_axes: Any = 0) -> Callable[[F], F]:
    def transform(f: F) -> F:
        def first_and_rest(a: Any, b: Any) -> Any:
            first, *rest = f(a, b)
            return first, rest

        run = ad.vmap(first_and_rest, in_axes, out_axes)
        return lambda a, b: flat(
            run(*[x if axis is None else many(x) for x, axis in zip((a, b), in_axes, strict=True)])
        )

    return transform


def of_cotangents(f: F) -> F:
    """The pullback for many cotangents: that of the first of several results is the same in all."""

    def run(a: Any, b: Any) -> Any:
        outs, pullback = ad.vjp(lambda a, b: tuple(f(a, b)), a, b)
        given = [ad.cos(ad.zeros(x.shape, dtype=ad.float64) + k) for k, x in enumerate(outs)]
        axes = (None if outs[1:] else 0, *[0] * (len(outs) - 1))
        return ad.vmap(pullback, (axes,))(
            tuple(x if axis is None else many(x) for x, axis in zip(given, axes, strict=True))
        )

    return run


def of_tangents(f: F) -> F:
    """The pushforward for many tangents: that of a is the same in all."""

    def run(a: Any, b: Any) -> Any:
        s, t = along(a, b)
        return flat(ad.vmap(ad.linearize(f, a, b)[1], (None, 0))(s, many(t)))

    return run


def recorded(f: F) -> F:
    def run(a: Any, b: Any) -> Any:
        a, b = ad.tensor(a).require_grad(), ad.tensor(b).require_grad()
        first = (total(f(a, b)) + 0 * (a * b).sum()).backward(create_graph=True)
        second = total([first[a], first[b]]).backward()
        return first[a], first[b], second[a], second[b]

    return run


def along(*xs: Any) -> tuple[Any, ...]:
    """Tangents, the same for all examples."""
    return tuple(np.full(x.shape, value) for x, value in zip(xs, (0.6, -0.8), strict=False))


TRANSFORMS: dict[str, Callable[[F], F]] = {
    "vmap a": batch((0, None)),
    "vmap b": batch((None, 0)),
    "vmap a b": batch((0, 0)),
    "vmap b, a result for all": batch((None, 0), (None, 0)),
    "grad a": lambda f: lambda a, b: flat(ad.grad(lambda a: total(f(a, b)))(a)),
    "grad a b": lambda f: lambda a, b: flat(ad.grad(lambda a, b: total(f(a, b)), (0, 1))(a, b)),
    "jvp a": lambda f: lambda a, b: flat(ad.jvp(lambda a: f(a, b), (a,), along(a))),
    "jvp a b": lambda f: lambda a, b: flat(ad.jvp(f, (a, b), along(a, b))),
    "linearize": lambda f: lambda a, b: flat(ad.linearize(f, a, b)[1](*along(a, b))),
    "linearize, of many": of_tangents,
    "vjp, of many": of_cotangents,
    "jet": lambda f: lambda a, b: flat(ad.jet(f, (a, b), [[x, x] for x in along(a, b)])),
    "jacobian forward": lambda f: lambda a, b: flat(ad.jacobian(f, (0, 1), "forward")(a, b)),
    "jacobian reverse": lambda f: lambda a, b: flat(ad.jacobian(f, (0, 1), "reverse")(a, b)),
    "hessian": lambda f: lambda a, b: flat(ad.hessian(lambda a, b: total(f(a, b)), (0, 1))(a, b)),
    "hvp": lambda f: lambda a, b: flat(ad.hvp(lambda a, b: total(f(a, b)), (a, b), along(a, b))),
    "checkpoint": lambda f: ad.checkpoint(f),
}
OUTERMOST: dict[str, Callable[[F], F]] = {**TRANSFORMS, "recorded": recorded}
NONE = "vmap b, a result for all"


def numbers(f: F, nesting: Sequence[str], shape: tuple[int, ...]) -> list[Any]:
    """What the transforms make of the function, the last the innermost."""
    first, *others = nesting
    for name in reversed(others):
        f = TRANSFORMS[name](f)
    outs = OUTERMOST[first](f)(*[x + np.arange(math.prod(shape)).reshape(shape) / 50 for x in (0.4, 0.5)])
    return [x.numpy() if isinstance(x, ad.Tensor) else np.asarray(x) for x in outs]


@functools.cache
def wanted(f: F, nesting: tuple[str, ...], shape: tuple[int, ...]) -> list[Any] | None:
    """Those of the plain composition; None where a result is asked to be the same for all, and is not."""
    try:
        return numbers(f, nesting, shape)
    except ad.errors.ArgumentError:
        assert NONE in nesting
        return None


REVERSE = {
    "grad a",
    "grad a b",
    "linearize",
    "linearize, of many",
    "vjp, of many",
    "jacobian reverse",
    "hessian",
    "hvp",
}
JOINT = {"custom_vjp around a scan", "custom_jvp around a scan"}  # whose rules mix what is shared with what is not


def may_differ(name: str, nesting: Sequence[str]) -> bool:
    """Whether a result may count as one of each example, because a rule computes it together with such.

    Backward rules do: the cotangent of a is the sum of those that all results have to give.
    """
    return NONE in nesting and (name in JOINT or not REVERSE.isdisjoint(nesting[nesting.index(NONE) + 1 :]))


def agree(name: str, nesting: tuple[str, ...], each: Each, shape: tuple[int, ...] = ()) -> None:
    ruled, composed = CASES[name]
    expected = wanted(composed, nesting, shape)
    if expected is None:
        return
    with each(name, shape, "under", " of ".join(nesting)):
        try:
            found = numbers(ruled, nesting, shape)
        except ad.errors.ForwardOnlyError:
            if name == "while_loop":
                return
            raise
        except ad.errors.ArgumentError:
            if may_differ(name, nesting):
                return
            raise
        for x, y in zip(found, expected, strict=True):
            assert x.shape == y.shape
            np.testing.assert_allclose(x, y, rtol=1e-7, atol=1e-8)


BATCHES = [name for name in TRANSFORMS if name.startswith("vmap")]
ROUND = ["grad a b", "hessian", "recorded"]
INSIDE = ["jvp a b", "jacobian forward", "checkpoint", "vmap b"]
SLOW = {"custom_vjp around a scan", "custom_jvp around a scan", "root", "root found at once", "fixed_point",
        "minimize, found at once", "odeint", "odeint, adjoint"}  # fmt: skip
VECTORS = [name for name in CASES if name.startswith(("custom", "scan", "fori")) and name not in SLOW]


@pytest.mark.parametrize("name", CASES)
def test_a_batch_in_any_transform(name: str) -> None:
    with Each() as each:
        for first in OUTERMOST:
            agree(name, (first,), each)
        if name in SLOW:
            for first in ("grad a b", "jvp a b"):
                agree(name, (first, "vmap b"), each)
            return
        for nesting in itertools.product(OUTERMOST, BATCHES):
            agree(name, nesting, each)
        for nesting in itertools.product(ROUND, ["vmap b"], INSIDE):
            agree(name, nesting, each)
        if name in VECTORS:
            for nesting in itertools.product(ROUND, ["vmap b", NONE]):
                agree(name, nesting, each, (2,))


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_two_transforms(name: str) -> None:
    with Each() as each:
        for shape in [(), (2,)] if name in VECTORS else [()]:
            every = list(itertools.product(OUTERMOST, TRANSFORMS))
            for nesting in random.Random(1).sample(every, 50) if name.startswith("odeint") else every:
                agree(name, nesting, each, shape)


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in CASES if not name.startswith("odeint")])
def test_three_transforms(name: str) -> None:
    chosen = random.Random(1)
    every = list(itertools.product(OUTERMOST, TRANSFORMS, TRANSFORMS))
    with Each() as each:
        for nesting in chosen.sample(every, 50 if name in SLOW or name.startswith("scan") else 300):
            agree(name, nesting, each)


# --- what is shared is counted once --------------------------------------------------------------

ONES = np.ones(3)


def test_a_shared_result_is_counted_once() -> None:
    for f in (pulled, pushed):
        shared = lambda a, f=f: ad.vmap(lambda b: f(a, b)[0])(ONES).sum()
        np.testing.assert_allclose(ad.grad(shared)(0.5), 3 * np.cos(0.5), rtol=1e-15)
        kept = lambda a, f=f: ad.vmap(lambda b: f(a, b)[0], out_axes=None)(ONES)
        np.testing.assert_allclose(ad.grad(kept)(0.5), np.cos(0.5), rtol=1e-15)


@pytest.mark.parametrize("size", [0, 1, 3])
@pytest.mark.parametrize("name", VECTORS)
def test_examples_may_be_none(name: str, size: int) -> None:
    """A result that there is without examples has its derivative then, too."""
    f, composed = CASES[name]

    def run(f: F) -> Any:
        alone = lambda a, b: ad.vmap(lambda b: f(a, b)[0], out_axes=None)(b)
        both = lambda a, b: ad.vmap(lambda b: sum(f(a, b)))(b).sum() + alone(a, b) ** 2
        nested = lambda a, b: ad.vmap(lambda c: ad.vmap(lambda b: f(a, b)[0] * c)(b))(ONES).sum() + alone(a, b)
        b = np.linspace(0.5, 1.0, size)
        return [
            *ad.grad(alone, (0, 1))(0.4, b),
            *ad.grad(both, (0, 1))(0.4, b),
            *ad.grad(nested, (0, 1))(0.4, b),
            ad.hessian(both)(0.4, b),
        ]

    for found, expected in zip(run(f), run(composed), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-13, atol=1e-14)


@pytest.mark.parametrize("options", [{"checkpointing": "balanced"}, {"strong_zero": True}], ids=str)
@pytest.mark.parametrize("name", ["custom_vjp", "custom_jvp", "scan, each step again", "checkpoint"])
def test_under_options_of_the_level(name: str, options: Any) -> None:
    nestings = [("grad a b", "vmap b"), ("hessian", "vmap b"), ("grad a", NONE), ("hvp", "vmap a b"), ("vmap b", "hvp")]
    expected = [wanted(CASES[name][1], nesting, ()) for nesting in nestings]
    with ad.use_device(ad.Autodiff(ad.NumPy(), **options)):
        for nesting, outs in zip(nestings, expected, strict=True):
            assert outs is not None
            for found, wants in zip(numbers(CASES[name][0], nesting, ()), outs, strict=True):
                np.testing.assert_allclose(found, wants, rtol=1e-12)


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.complex64])
def test_parts_keep_the_dtype(dtype: Any) -> None:
    shared = lambda a: ad.vmap(lambda b: pulled(a, b)[0], out_axes=None)(np.ones(3, dtype)).real
    found = ad.grad(shared)(dtype(0.5))
    assert found.dtype == dtype
    np.testing.assert_allclose(found, np.cos(0.5), rtol=4 * np.finfo(dtype).eps)


def test_a_rule_that_is_not_the_derivative_is_handed_equal_parts() -> None:
    """As a loop over the examples would hand them out where all have the same cotangent."""
    through = ad.custom_vjp(lambda x: ad.ones(()))
    through.defvjp(lambda x: (ad.ones(()), None), lambda _, g: (g,))
    np.testing.assert_array_equal(ad.grad(lambda x: ad.vmap(through)(x).sum())(np.zeros(4, np.float32)), np.ones(4))

    punished = ad.custom_vjp(lambda x, loss: x)  # the loss is added, and not to be seen in the result
    punished.defvjp(lambda x, loss: (x, None), lambda _, g: (g, 1.0))
    rows = np.array([0.1, 0.2, 0.3])
    for axes, args in [((0, None), (rows, 2.0)), ((None, 0), (2.0, rows))]:
        run = lambda x, loss, axes=axes: ad.vmap(punished, axes)(x, loss).sum()
        loop = lambda x, loss: sum(punished(*pair) for pair in zip(ad.ones(3) * x, ad.ones(3) * loss, strict=True))
        for found, expected in zip(ad.grad(run, (0, 1))(*args), ad.grad(loop, (0, 1))(*args), strict=True):
            np.testing.assert_allclose(found, expected, rtol=1e-15)


def test_rules_around_the_forward_jacobian_of_a_scan_are_linear() -> None:
    """Its tangents are a batch, of which all share the values."""

    def jacobian(f: F) -> Callable[[Any], Any]:
        return ad.jacobian(lambda x: sum(f(x, 2 * x)).sum(), mode="forward")

    expected = jacobian(stepped())
    at = np.array([0.4, 0.7])
    for rule in (
        lambda f, p, t: ad.jvp(f, p, t),
        lambda f, p, t: (f(*p), ad.jacobian(f, mode="forward")(*p) @ t[0]),
    ):
        f = ad.custom_jvp(jacobian(scanned(1)))
        f.defjvp(lambda p, t, rule=rule: rule(jacobian(scanned(1)), p, t))
        for transform in (
            lambda f: ad.grad(lambda x: (f(x) ** 2).sum()),
            lambda f: ad.hessian(lambda x: (f(x) ** 2).sum()),
            lambda f: ad.jacobian(f, mode="reverse"),
        ):
            np.testing.assert_allclose(transform(f)(at), transform(expected)(at), rtol=1e-12, atol=1e-14)


def test_levels_below_have_the_rule_too() -> None:
    """Also for the value that reverse mode computes on them."""
    f = ad.custom_jvp(ad.sin)
    f.defjvp(lambda primals, tangents: (f(primals[0]), 10 * tangents[0] * ad.cos(primals[0])))
    for below in (
        lambda f: ad.jvp(f, (0.3,), (1.0,))[1],
        lambda f: tuple(ad.grad(lambda x, i=i: f(x)[i])(0.3) for i in range(2)),
        lambda f: ad.jacobian(f, mode="forward")(0.3),
    ):
        np.testing.assert_allclose(below(ad.value_and_grad(f)), [10 * np.cos(0.3), -10 * np.sin(0.3)], rtol=1e-14)


@pytest.mark.parametrize("every", [1, 2])
def test_examples_draw_their_own_numbers_again(every: int) -> None:
    def drawn(every: int | None) -> Callable[[Any], Any]:
        def one(a: Any, b: Any) -> Any:
            step = lambda c, x: ((ad.sin(c[0]) * a, c[1] * b + ad.random.normal(dtype=ad.float64) * a * x), c[1])
            (r, y), ys = ad.scan(step, (a, b), ROWS, checkpoint_every=every)
            return r * y + ys.sum()

        def f(a: Any) -> Any:
            ad.random.seed(3)
            return total([ad.vmap(lambda b: one(a, b), randomness="split")(many(np.float64(0.5)))])

        return f

    for transform in (ad.value_and_grad, ad.hessian, lambda f: ad.grad(ad.grad(f))):
        np.testing.assert_allclose(transform(drawn(every))(0.4), transform(drawn(None))(0.4), rtol=1e-12)


# --- values that examples share by chance --------------------------------------------------------


@pytest.mark.parametrize("gradient", ["direct", "adjoint"])
def test_the_end_of_no_time(gradient: str) -> None:
    """The states are the start of all, their derivatives by the time are not."""
    rates = np.array([0.4, 0.3, 0.5])

    def f(t: Any) -> Any:
        times = ad.stack([0 * t, t])
        run = lambda b: ad.odeint(lambda y, s, b: b * y, 1.0, times, b, gradient=gradient)[1]
        return total([ad.vmap(run)(rates)])

    np.testing.assert_allclose(ad.grad(f)(0.0), total([rates]), rtol=1e-12)
    np.testing.assert_allclose(ad.hessian(f)(0.0), total([rates**2]), rtol=1e-12)


@pytest.mark.parametrize("name", CASES)
def test_values_are_the_same_for_all_directions(name: str) -> None:
    """A Jacobian in forward mode is a batch of tangents, which do not make one of the values."""
    at = (np.float64(0.4), np.float64(0.5))
    found = ad.jacobian(lambda a, b: (CASES[name][0](a, b),) * 2, (0, 1), "forward", has_aux=True)(*at)[1]
    for x, y in zip(found, CASES[name][1](*at), strict=True):
        assert np.shape(x) == ()
        np.testing.assert_allclose(x, y, rtol=1e-9)


def test_a_system_that_is_solved_at_once() -> None:
    """Zero solves it for all examples: with many unknowns, where products with the matrix do."""
    zeros, rates = np.zeros(501), np.array([0.5, 1.0, 2.0])
    solve = lambda b, c: ad.implicit.root(lambda x, c: b * x - c, zeros, c)
    for f in (
        lambda c: total([ad.vmap(lambda b: solve(b, c).sum())(rates)]),
        lambda v: total([ad.vmap(lambda b: ad.vjp(lambda c: solve(b, c), zeros)[1](v)[0].sum())(rates)]),
    ):
        np.testing.assert_allclose(ad.grad(f)(zeros), np.full(501, total([1 / rates])), rtol=1e-12)


def test_another_solver_of_no_examples() -> None:
    solve = lambda c: ad.implicit.root(lambda x, c: 2 * x - c, np.ones(2), c, solver=lambda g, x0: x0 - g(x0) / 2)
    assert ad.vmap(solve)(np.zeros((0, 2))).shape == (0, 2)
    slope = ad.grad(lambda a: ad.vmap(lambda c: solve(c * a).sum())(np.zeros((0, 2))).sum())(1.0)
    assert slope == 0


@pytest.mark.parametrize("mode", ["full", "same", "valid"])
@pytest.mark.parametrize("value", [np.nan, np.inf])
@pytest.mark.filterwarnings("ignore")
def test_what_is_not_finite_in_a_convolution_stays_where_it_has_terms(value: float, mode: str) -> None:
    """Of batches, too, which are computed on borders of zeros: these times it would be nan."""
    rng = np.random.default_rng(1)
    for n, m in ((5, 3), (300, 50), (40, 40)):
        for place in (0, 1):
            a, v = rng.random((3, n)), rng.random((3, m))
            (a, v)[place][1, 1] = value
            convolved = lambda a, v: (ad.convolve(a, v, mode),)
            slopes = ad.grad(lambda a, v: ad.convolve(a, v, mode).sum(), (0, 1))
            for g in (convolved, slopes):
                wanted = [np.stack(parts) for parts in zip(*map(g, a, v), strict=True)]
                for found in (ad.vmap(g)(a, v), ad.compile(ad.vmap(g))(a, v)):
                    for x, y in zip(found, wanted, strict=True):
                        np.testing.assert_allclose(x, y, rtol=1e-12)
