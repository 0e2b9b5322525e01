"""Random programs under random nestings of transforms, some of which are compiled: the same numbers as without."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from conftest import peer
from hypothesis import given, settings
from hypothesis import strategies as st
from test_random_nestings import COUNT, SHAPE, Program, programs, run

import adjoint as ad

_rng = np.random.default_rng(3)
POINT = [_rng.uniform(-1.2, 1.2, SHAPE) for _ in range(COUNT)]
ALONG = tuple([_rng.uniform(-1.0, 1.0, SHAPE) for _ in range(COUNT)])
SCALES = ad.asarray(np.array([1.0, 0.5, -0.7]))
Function = Callable[..., Any]
ALL = tuple(range(COUNT))


def _weighed(xs: Any) -> Any:
    return sum([(x * d).sum() for x, d in zip(xs, ALONG, strict=True)])


def _by_backward(f: Function) -> Function:
    def slope(*xs: Any) -> Any:
        leaves = [x.require_grad() for x in xs]
        found = f(*leaves).backward(create_graph=True)
        return _weighed([found.get(x, x * 0) for x in leaves])

    return slope


# of a function of COUNT tensors to a number another one
TRANSFORMS: dict[str, Callable[[Function], Function]] = {
    "grad": lambda f: lambda *xs: _weighed(ad.grad(f, ALL)(*xs)),
    "value_and_grad": lambda f: lambda *xs: (lambda y, g: y + _weighed(g) / 2)(*ad.value_and_grad(f, ALL)(*xs)),
    "vjp": lambda f: lambda *xs: (lambda y, pull: _weighed(pull(ad.cos(y))))(*ad.vjp(f, *xs)[:2]),
    "jvp": lambda f: lambda *xs: ad.jvp(f, xs, ALONG)[1],
    "linearize": lambda f: lambda *xs: ad.linearize(f, *xs)[1](*map(ad.asarray, ALONG)),
    "vmap": lambda f: lambda *xs: ad.vmap(lambda s: f(*[x * s for x in xs]))(SCALES).sum(),
    "hessian": lambda f: lambda *xs: ad.hessian(lambda r: f(*[x + r for x in xs]))(SCALES / 9).sum(),
    "jacobian": lambda f: lambda *xs: ad.jacobian(lambda r: f(*[x * r for x in xs]) * r, mode="forward")(SCALES).sum(),
    "checkpoint": lambda f: lambda *xs: ad.checkpoint(f)(*xs),
    "scan": lambda f: lambda *xs: ad.scan(lambda c, _: (f(*[x * ad.cos(c) for x in xs]), c), xs[0].sum(), None, 2)[0],
    "cond": lambda f: (
        lambda *xs: ad.cond(xs[0][0, 0] > -9, lambda *xs: f(*xs), lambda *xs: (xs[0] * xs[1] * xs[2]).sum(), *xs)
    ),
}
ways = st.lists(st.sampled_from(list(TRANSFORMS)), min_size=1, max_size=3)


def check(program: Program, names: list[str], compiled: list[bool]) -> None:
    """Compiled below which transforms, from the innermost; around all of them if below none."""
    program = [step for step in program if step[0] != "random"]  # vmap asks whose numbers these are

    def made(compiles: bool) -> Function:
        f: Function = functools.partial(lambda *xs: run(program, xs))
        for name, here in zip(names, compiled, strict=False):
            f = TRANSFORMS[name](ad.compile(f) if compiles and here else f)
        return ad.compile(f) if compiles and not any(compiled[: len(names)]) else f

    xs = list(map(ad.asarray, POINT))
    expected, f = made(False)(*xs).numpy(), made(True)
    size = max(1.0, abs(float(expected)))
    for _ in range(2):
        np.testing.assert_allclose(f(*xs).detach().numpy(), expected, rtol=1e-9, atol=1e-9 * size)


@pytest.mark.parametrize(
    ("way", "examples"),
    [
        ("replay", 3),
        pytest.param("replay", 30, marks=pytest.mark.slow),
        pytest.param("1", 6, marks=pytest.mark.slow),
    ],
)
def test_random_nestings_of_transforms(way: str, examples: int, monkeypatch: pytest.MonkeyPatch) -> None:
    if way == "1":
        pytest.importorskip("llvmlite")
    monkeypatch.setenv("ADJOINT_COMPILE", way)

    @settings(max_examples=examples)
    @given(program=programs, names=ways, compiled=st.lists(st.booleans(), min_size=3, max_size=3))
    def run_one(program: Program, names: list[str], compiled: list[bool]) -> None:
        check(program, names, compiled)

    run_one()


# --- rules that are not their function's derivative ---


@ad.custom_vjp
def _doubled(x: Any) -> Any:
    return x * 1


_doubled.defvjp(lambda x: (x * 1, None), lambda _, g: (g * 2,))


@ad.custom_vjp
def _bent(x: Any) -> Any:
    return ad.sin(x)


def _bent_forward(x: Any) -> Any:
    y = ad.sin(x)
    return y, (x, y)


_bent.defvjp(_bent_forward, lambda saved, g: (g * 1.5 * ad.cos(saved[0]) * (1 + saved[1]),))


@ad.custom_vjp
def _itself(x: Any) -> Any:
    return x**2


_itself.defvjp(lambda x: (_itself(x), x), lambda x, g: (g * 3 * x,))  # levels further out meet the rule again


def _in_a_loop(rule: Function) -> Function:
    def f(x: Any) -> Any:
        c = x
        for i in range(3):
            c = rule(c) * x + i
        return (c**2).sum()

    return f


# of a rule the same function in several ways, which all have the same derivatives
SPELLINGS: dict[str, list[Callable[[Function], Function]]] = {
    "square": [
        lambda rule: lambda x: (rule(x) ** 2).sum(),
        lambda rule: lambda x: (ad.compile(rule)(x) ** 2).sum(),
        lambda rule: lambda x: ad.compile(lambda x: rule(x) ** 2)(x).sum(),
        lambda rule: lambda x: ad.checkpoint(lambda x: rule(x) ** 2)(x).sum(),
        lambda rule: lambda x: ad.vmap(lambda x: rule(x) ** 2)(x).sum(),
        lambda rule: lambda x: ad.cond(x.sum() > 0, lambda x: rule(x) ** 2, lambda x: x, x).sum(),
        lambda rule: lambda x: ad.scan(lambda c, row: (c, rule(row) ** 2), 0, x)[1].sum(),
    ],
    "steps": [
        _in_a_loop,
        lambda rule: lambda x: (ad.fori_loop(0, 3, lambda i, c: rule(c) * x + i, x) ** 2).sum(),
        lambda rule: (
            lambda x: (ad.scan(lambda c, i: (rule(c) * x + i, None), x, ad.arange(3), checkpoint_every=2)[0] ** 2).sum()
        ),
    ],
}


def _twice_by_backward(f: Function) -> Function:
    def run(x: Any) -> Any:
        x = ad.tensor(x).require_grad()
        slope = f(x).backward(create_graph=True)[x]
        return (slope**2).sum().backward()[x]

    return run


def _backward_inside(f: Function) -> Function:
    return lambda x: ad.grad(lambda x: (f(x).backward()[x] ** 2).sum())(ad.tensor(x))


ORDERS: dict[str, Callable[[Function], Function]] = {
    "grad": ad.grad,
    "hessian": ad.hessian,
    "grad of grad": lambda f: ad.grad(lambda x: (ad.grad(f)(x) ** 2).sum()),
    "forward over reverse": lambda f: ad.jacobian(ad.grad(f), mode="forward"),
    "reverse over reverse": lambda f: ad.jacobian(ad.grad(f), mode="reverse"),
    "reverse over forward": lambda f: ad.grad(lambda x: ad.jvp(f, (x,), (x,))[1]),
    "forward over forward": lambda f: lambda x: ad.jvp(lambda x: ad.jvp(f, (x,), (x,))[1], (x,), (x,))[1],
    "hvp": lambda f: lambda x: ad.hvp(f, (x,), (x,))[0],
    "batch of hessians": lambda f: lambda x: ad.vmap(ad.hessian(f))(np.stack([x, 2 * x])),
    "hessian of a batch": lambda f: ad.hessian(lambda x: ad.vmap(f)(ad.stack([x, 2 * x])).sum()),
    "gradient of hessian": lambda f: ad.grad(lambda x: (ad.hessian(f)(x) ** 2).sum()),
    "backward twice": _twice_by_backward,
    "backward in a transform": _backward_inside,
}


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("spelled", SPELLINGS)
@pytest.mark.parametrize("rule", [_bent, _itself])
def test_rules_that_are_no_derivatives(rule: Any, spelled: str, order: str) -> None:
    x = np.array([0.3, 0.7])
    first, *others = [spelling(rule) for spelling in SPELLINGS[spelled]]
    expected = np.asarray(ORDERS[order](first)(x))
    for i, f in enumerate([first, *others]):
        compiled = ad.compile(f)
        for found in (f, compiled):
            np.testing.assert_allclose(np.asarray(ORDERS[order](found)(x)), expected, rtol=1e-9)
        if "backward" not in order and i % 2 == 0:
            np.testing.assert_allclose(ad.compile(ORDERS[order](f))(x), expected, rtol=1e-9)


def test_levels_further_out_follow_what_the_forward_rule_computes() -> None:
    jax = peer("jax")
    theirs = jax.custom_vjp(lambda x: x * 1)
    theirs.defvjp(lambda x: (x * 1, None), lambda _, g: (g * 2,))
    expected = jax.hessian(lambda x: theirs(x) ** 2)(3.0)
    f = lambda x: _doubled(x) ** 2
    for found in (ad.hessian(f), ad.hessian(ad.compile(f)), ad.compile(ad.hessian(f)), ad.grad(ad.grad(f))):
        assert float(found(3.0)) == float(expected) == 4.0
