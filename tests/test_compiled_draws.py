"""Loops that draw random numbers, compiled: each call draws those that eager draws, and leaves the sequence there."""

from __future__ import annotations

from typing import Any
from unittest import mock

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from test_compiled import alike, constants

import adjoint as ad
from adjoint.compiler.graph import evaluate, verify
from adjoint.compiler.parser import parse
from adjoint.transforms import scanned


def noise() -> Any:
    return ad.random.uniform((), low=0.2, high=0.8, dtype=ad.float64)


def chosen(x: Any) -> Any:
    """A choice of which one branch draws, one number for nobody."""

    def often(x: Any) -> Any:
        noise()
        return x + 0.3 * noise()

    return ad.cond(x > 1.0, often, lambda x: x * 1.5 + 0.3, x)


# Loops of a positive number, of which steps draw.
LOOPS = {
    "while": lambda x: ad.while_loop(lambda c: c < 4.0, lambda c: c + x * noise() + 0.3, x),
    "while, predicate": lambda x: ad.while_loop(lambda c: c < 3.0 + noise(), lambda c: c * 1.3 + 0.2, x),
    "while, both": lambda x: ad.while_loop(lambda c: c < 3.0 + noise(), lambda c: c + noise(), x),
    "while, nobody reads": lambda x: ad.while_loop(lambda c: c < 3.0, lambda c: (noise(), c * 1.3 + 0.2)[1], x),
    "while, choice": lambda x: ad.while_loop(lambda c: c < 4.0, lambda c: chosen(c) + 0.1, x),
    "bounded": lambda x: ad.while_loop(lambda c: c < 4.0, lambda c: c + x * noise() + 0.3, x, max_steps=14),
    "bounded, predicate": lambda x: ad.while_loop(
        lambda c: c < 3.0 + noise(), lambda c: c * 1.3 + 0.2, x, max_steps=14
    ),
    "bounded, both": lambda x: ad.while_loop(
        lambda c: c < 3 + noise(), lambda c: c + x * noise() + 0.3, x, max_steps=14
    ),
    "fori": lambda x: ad.fori_loop(0, 3, lambda i, c: c * noise() + x * i, x),
    "fori to a value": lambda x: ad.fori_loop(
        0, ad.floor(x.detach() + 2.0).astype(ad.int64), lambda i, c: c + noise(), x
    ),
    "scan": lambda x: ad.scan(lambda c, t: (c * noise() + x, c * t), x, np.arange(4.0))[1].sum(),
    "scan, reverse": lambda x: ad.scan(lambda c, t: (c * noise() + t, c), x, np.arange(4.0), reverse=True)[0],
    "scan, chunks": lambda x: ad.scan(lambda c, t: (c * noise() * t, c), x, np.arange(4.0), checkpoint_every=2)[0],
    "scan, choice": lambda x: ad.scan(lambda c, t: (chosen(c * t), c), x, np.arange(4.0))[0],
    "scan of numbers": lambda x: ad.scan(lambda c, _: (c, noise()), 0.0, None, 3)[1].sum() * x,
    "map": lambda x: ad.map(lambda t: x * t * noise(), np.arange(3.0)).sum(),
    "while in scan": lambda x: ad.scan(
        lambda c, t: (c + ad.while_loop(lambda a: a < 2.0, lambda a: a + noise(), t) * x, c), x, np.arange(3.0)
    )[0],
    "bounded in scan": lambda x: ad.scan(
        lambda c, t: (ad.while_loop(lambda a: a < 5.0, lambda a: a + x * noise() + 0.5, c + t, max_steps=12), noise()),
        x,
        np.arange(3.0),
    )[0],
    "scan in while": lambda x: ad.while_loop(
        lambda c: c < 5.0,
        lambda c: ad.scan(lambda a, t: (a + t * noise(), a), c, np.arange(1.0, 3.0))[0] * noise() + 1,
        x,
    ),
    "scan in scan": lambda x: ad.scan(
        lambda c, t: (ad.scan(lambda a, u: (a * noise() + u * x, a), c, np.arange(2.0))[0] + noise(), t),
        x,
        np.arange(3.0),
    )[0],
    "while in while": lambda x: ad.while_loop(
        lambda c: c < 9.0, lambda c: c + ad.while_loop(lambda a: a < c + 1.0, lambda a: a + noise(), c * 0.5), x
    ),
    "loop in a choice": lambda x: ad.cond(
        x > 1.0, lambda x: ad.scan(lambda a, t: (a * noise() + t, a), x, np.arange(3.0))[0], lambda x: x * noise(), x
    ),
    "gradient in scan": lambda x: ad.scan(
        lambda c, t: (c + ad.grad(lambda a: (ad.scan(lambda b, _: (b * noise(), b), a, None, 2)[0]) ** 2)(c * 0.1), t),
        x,
        np.arange(3.0),
    )[0],
    "forward in while": lambda x: ad.while_loop(
        lambda c: c < 5.0, lambda c: c + 1.0 + ad.jvp(lambda a: a**2 * noise(), (c,), (c * 0.1,))[1], x
    ),
    "checkpoint": lambda x: (
        ad.checkpoint(lambda x: ad.scan(lambda c, t: (c * noise() + t, c), x, np.arange(3.0))[0])(x) * x
    ),
    "choice": chosen,
}
FORWARD_ONLY = {name for name in LOOPS if name.startswith(("while", "scan in while", "forward in while", "fori to"))}


def of_loop(name: str, before: bool, after: bool) -> Any:
    """The loop, between draws."""

    def f(x: Any) -> Any:
        if before:
            x = x * (1.0 + 0.1 * noise())
        y = LOOPS[name](x)
        return y * noise() + x if after else y

    return f


def batch(x: Any) -> Any:
    return ad.stack([x, x * 0.7, x + 1.0])


TRANSFORMS = {
    "none": lambda f: f,
    "jvp": lambda f: lambda x: ad.jvp(f, (x,), (x * 0.5,)),
    "vmap": lambda f: lambda x: ad.vmap(f, randomness="split")(batch(x)),
    "vmap, shared": lambda f: lambda x: ad.vmap(f, randomness="shared")(batch(x)),
    "jvp of vmap": lambda f: lambda x: ad.jvp(ad.vmap(f, randomness="split"), (batch(x),), (batch(x),)),
    "vmap of jvp": lambda f: lambda x: ad.vmap(lambda x: ad.jvp(f, (x,), (x,)), randomness="split")(batch(x)),
    "vmap of vmap": lambda f: (
        lambda x: ad.vmap(ad.vmap(f, randomness="split"), randomness="split")(ad.stack([batch(x), batch(x) * 0.9]))
    ),
    "forward": lambda f: ad.jacobian(f, mode="forward"),
    # in reverse mode
    "grad": ad.grad,
    "value_and_grad": ad.value_and_grad,
    "vmap of grad": lambda f: lambda x: ad.vmap(ad.grad(f), randomness="split")(batch(x)),
    "grad of vmap": lambda f: lambda x: ad.grad(lambda xs: ad.vmap(f, randomness="split")(xs).sum())(batch(x)),
    "hessian": ad.hessian,
    "grad of grad": lambda f: ad.grad(ad.grad(f)),
    "grad of checkpoint": lambda f: ad.grad(ad.checkpoint(f)),
}
REVERSE = [*TRANSFORMS][8:]


def drawn(f: Any, x: Any) -> Any:
    """The result, and where the sequence stands after it."""
    ad.random.seed(7)
    return f(x), ad.random.uniform(())


def same_draws(name: str, how: str, around: bool, before: bool, after: bool, few: int = 0) -> None:
    f, transform = of_loop(name, before, after), TRANSFORMS[how]
    compiled = transform(ad.compile(f)) if around else ad.compile(transform(f))
    with mock.patch.object(scanned, "FEW", few):
        for number in (0.9, 1.6, 0.9):
            x = ad.tensor(np.float64(number))
            alike(drawn(compiled, x), drawn(transform(f), x), 1e-9)


def cases(name: str) -> list[str]:
    return [how for how in TRANSFORMS if not (name in FORWARD_ONLY and how in REVERSE)]


@pytest.mark.parametrize("name", LOOPS)
@settings(max_examples=12)
@given(st.data())
def test_loops_draw_what_they_draw_without_compiling(name: str, data: Any) -> None:
    how = data.draw(st.sampled_from(cases(name)))
    same_draws(name, how, *[data.draw(st.booleans()) for _ in range(3)], data.draw(st.sampled_from([0, 16])))


@pytest.mark.parametrize("name", ["while, both", "bounded, both", "scan, choice", "scan in while", "gradient in scan"])
def test_loops_of_machine_code_draw(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("llvmlite")
    monkeypatch.delenv("ADJOINT_COMPILE")
    for how in ("none", "vmap of jvp", "vmap of grad"):
        if how in cases(name):
            same_draws(name, how, False, True, True)


@pytest.mark.parametrize("name", ["while, both", "scan, choice", "checkpoint", "while in while"])
def test_graphs_of_loops_that_draw(name: str) -> None:
    """Their text is read back, and they run equation by equation."""
    x = ad.tensor(np.float64(1.6))
    f = ad.compile(of_loop(name, True, True))
    with mock.patch.object(scanned, "FEW", 0):
        expected = drawn(f, x)
        graph = f.lower(x).graph
    read = parse(str(graph), constants(graph))
    verify(read)
    for made in (graph, read):
        run = lambda x, made=made: ad.asarray(evaluate(made, [x.numpy()], ad.NumPy())[0])
        alike(drawn(run, x), expected, 1e-12)
    assert len(f.cost(x).steps) == len(graph.equations)


def test_compile_time_does_not_grow_with_steps_that_draw() -> None:
    f = lambda x: ad.scan(lambda c, _: (c * noise(), c), x, None, 5000)
    lowered = ad.compile(f).lower(ad.tensor(np.float64(1.0)))
    assert lowered.graph.size() < 20


def test_a_predicate_that_draws_ends_an_example_once() -> None:
    """Examples of vmap went on where the predicate, drawn anew, held again."""
    f = lambda n: ad.while_loop(lambda n: ad.random.uniform() < 0.6, lambda n: n + 1, n)
    run = ad.vmap(f, randomness="split")
    ad.random.seed(1)
    goes, expected = np.ones(8, bool), np.zeros(8, int)
    while goes.any():
        goes &= ad.random.uniform((8,)).numpy() < 0.6
        expected += goes
    for g in (run, ad.compile(run)):
        ad.random.seed(1)
        np.testing.assert_array_equal(g(ad.zeros(8, dtype=ad.int64)).numpy(), expected)


@pytest.mark.parametrize("kind", ["while", "scan", "cond"])
def test_examples_draw_each_their_own_where_no_argument_differs(kind: str) -> None:
    """A loop of what is the same for all drew once for all of them."""
    loop = {
        "while": lambda x: ad.while_loop(lambda c: c < 3.0, lambda c: c + noise(), x),
        "scan": lambda x: ad.scan(lambda c, _: (c + noise(), c), x, None, 20)[0],
        "cond": lambda x: ad.cond(x > 0.0, lambda x: x + noise(), lambda x: x, x),
    }[kind]
    one = ad.tensor(np.float64(1.0))
    f = lambda x, y: ad.vmap(lambda x: x + loop(y), randomness="split")(x)
    compiled = ad.compile(f)
    x = ad.tensor(np.zeros(3))
    found = drawn(lambda x: compiled(x, one), x)
    alike(found, drawn(lambda x: f(x, one), x))
    assert len(set(found[0].numpy())) == 3
    for g in (f, ad.compile(f)):
        with pytest.raises(ad.errors.ArgumentError, match="inside vmap: say whether"):
            ad.vmap(lambda x, g=g: g(x, one))(ad.zeros((2, 3), dtype=ad.float64))


class Walk(ad.nn.Module):
    """Whoever calls it with a key gives a seed for what it draws alone."""

    loop: Any
    before: bool = True

    def __call__(self, x: Any) -> Any:
        y = self.loop(x * noise() if self.before else x)
        return self.loop(y * noise()) + ad.cond(y > 1.0, lambda y: y * noise(), lambda y: y, y) + noise()


@pytest.mark.parametrize("how", ["none", "vmap", "grad", "vmap of grad", "grad of checkpoint"])
@pytest.mark.parametrize("name", ["while, both", "bounded, both", "scan, choice", "scan in scan", "fori"])
def test_loops_draw_from_a_seed(name: str, how: str) -> None:
    transform, x = TRANSFORMS[how], ad.tensor(np.float64(1.6))
    if name in FORWARD_ONLY and how in REVERSE:
        pytest.skip("derivatives go forward")
    for before in (True, False):
        walk = Walk(LOOPS[name], before)
        f = lambda x, walk=walk: walk(x * noise(), key=3) * noise()
        within = lambda x, walk=walk: ad.scan(lambda c, _: (walk(c, key=3) * 0.1 + noise(), c), x, None, 3)[0]
        for g in (f, within):
            with mock.patch.object(scanned, "FEW", 0):
                alike(drawn(ad.compile(transform(g)), x), drawn(transform(g), x), 1e-9)
