"""Random programs under random nestings of transforms, some of which are compiled: the same numbers as without."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
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
