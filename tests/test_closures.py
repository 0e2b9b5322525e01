"""What a function closes over is what it was when it was given, also where derivatives or a program run it again."""

from __future__ import annotations

import functools
import gc
import types
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from each import Each

import adjoint as ad
from adjoint import errors

X = np.array([0.3, 0.8])
TIMES = np.array([0.0, 0.3])
Now = Callable[[], tuple[Any, float]]  # the variables x and k


def bend(c: Any, now: Now) -> Any:
    x, k = now()
    return ad.sin(c) * k + 0.1 * x


# a step from x with functions that ask for variables, which the caller rebinds after it
SOLVED: dict[str, Callable[[Now], Any]] = {
    "root": lambda now: ad.implicit.root(lambda y: y**3 + y - now()[0] * now()[1], X),
    "fixed_point": lambda now: ad.implicit.fixed_point(lambda y: 0.5 * ad.cos(y) + 0.1 * now()[0] * now()[1], X),
    "minimize": lambda now: ad.implicit.minimize(lambda y: (y**2 * (now()[1] + y**2) - now()[0] * y).sum(), X),
    "adjoint equation": lambda now: ad.odeint(lambda y, t: bend(y, now), now()[0], TIMES, gradient="adjoint")[1],
    "Radau": lambda now: ad.odeint(lambda y, t: bend(y, now), now()[0], TIMES, method="Radau")[1],
    "odeint_event": lambda now: ad.odeint_event(
        lambda y, t: now()[0] * now()[1] + 1, X, (0.0, 9.0), event=lambda y, t: y.sum() - 2 - now()[0].sum()
    )[1],
}
LOOPS: dict[str, Callable[[Now], Any]] = {
    "fori_loop": lambda now: ad.fori_loop(0, 2, lambda i, c: bend(c, now), now()[0]),
    "scan": lambda now: ad.scan(lambda c, _: (bend(c, now), c), now()[0], None, 2)[0],
    "scan in chunks": lambda now: ad.scan(lambda c, _: (bend(c, now), c), now()[0], None, 2, checkpoint_every=1)[0],
    "while_loop": lambda now: ad.while_loop(lambda c: c.sum() < 4, lambda c: bend(c, now) + 1, now()[0], max_steps=9),
    "map": lambda now: ad.map(lambda c: bend(c, now).sum(), now()[0]),
    "cond": lambda now: ad.cond(now()[0].sum() > -9, lambda c: bend(c, now), lambda c: c, now()[0]),
    "apply_where": lambda now: ad.apply_where(now()[0] > -9, (now()[0],), lambda c: ad.sin(c) * now()[1], lambda c: c),
    "checkpoint": lambda now: ad.checkpoint(lambda c: bend(c, now))(now()[0]),
    "closure_convert": lambda now: (lambda f, closed: f(X, *closed))(*ad.closure_convert(lambda c: bend(c, now), X)),
}


def steps(run: Callable[[Now], Any], *, again: bool) -> Callable[[Any], Any]:
    """Three steps: each with variables of its own, or with those of all."""

    def one(x: Any, k: float) -> Any:
        return run(lambda: (x, k))

    def apart(x: Any) -> Any:
        for k in (1.0, 2.0, 0.5):
            x = one(x, k)
        return x.sum()

    def rebound(x: Any) -> Any:
        for k in (1.0, 2.0, 0.5):
            x = run(lambda: (x, k))  # noqa: B023  (that is the case)
        return x.sum()

    return rebound if again else apart


def slow_but(*names: str) -> list[Any]:
    return [name if name in names else pytest.param(name, marks=pytest.mark.slow) for name in (*SOLVED, *LOOPS)]


# --- names of the module, as scripts and notebooks have them ---

HELD: Any = None


def of_another_function() -> Any:
    return HELD


class Layer(ad.nn.Module):
    weight: ad.Tensor


HOLDERS: dict[str, tuple[Callable[[Any], Any], Now]] = {  # what the module has under a name, and who reads it
    "a tensor": (lambda x: x, lambda: (HELD, 1.5)),
    "a list": (lambda x: [1, x], lambda: (HELD[1], 1.5)),
    "a dictionary": (lambda x: {"x": (x, 1.5)}, lambda: HELD["x"]),
    "a module of layers": (lambda x: Layer(weight=x), lambda: (HELD.weight, 1.5)),
    "modules in a list": (lambda x: [Layer(weight=x)], lambda: (HELD[0].weight, 1.5)),
    "a function": (lambda x: lambda: x, lambda: (HELD(), 1.5)),
    "a default": (lambda x: lambda y=x: y, lambda: (HELD(), 1.5)),
    "a keyword's default": (lambda x: lambda *, y=x: y, lambda: (HELD(), 1.5)),
    "what is bound": (lambda x: functools.partial(lambda a, b: b, 1, b=x), lambda: (HELD(), 1.5)),
    "a function that reads it": (lambda x: x, lambda: (of_another_function(), 1.5)),
}


@pytest.mark.parametrize("holder", HOLDERS)
@pytest.mark.parametrize("name", slow_but("fixed_point", "scan in chunks"))
def test_what_the_module_holds_is_closed_over(name: str, holder: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Solvers refused it, and ad.compile did."""
    run, (held, now) = {**SOLVED, **LOOPS}[name], HOLDERS[holder]
    slope = ad.grad(lambda x: (run(lambda: (x, 1.5)) * x).sum())
    expected, second = slope(X), ad.grad(lambda x: slope(x).sum())(X)
    w = ad.tensor(X).require_grad()
    with monkeypatch.context() as patch:
        patch.setitem(globals(), "HELD", held(w))
        y = (run(now) * w).sum()
    with monkeypatch.context() as patch:
        patch.setitem(globals(), "HELD", held(ad.tensor(X + 9)))  # which is not what y was computed from
        first = y.backward(create_graph=True)[w]
        np.testing.assert_allclose(first.numpy(), expected, rtol=1e-6)
        np.testing.assert_allclose(first.sum().backward()[w].numpy(), second, rtol=1e-5, atol=1e-9)


MODULE = """
def f(y):
    class Scale:  # whose code looks names up in another way
        by = scale
    return y**3 + y - HELD * Scale.by

def g(y):
    return y**3 + y - HELD * eval("scale")
"""


@pytest.mark.parametrize("name", ["f", "g"])
def test_what_functions_of_a_module_do_not_read_goes_with_the_module(name: str) -> None:
    """A graph kept all names of the module, as they were."""
    w = ad.tensor(X).require_grad()
    known: dict[str, Any] = {"HELD": w, "scale": 1.5, "large": np.ones(3), "__name__": "mine"}
    exec(compile(MODULE, "mine.py", "exec"), known)
    y = ad.implicit.root(known[name], X)
    large = weakref.ref(known["large"])
    known["scale"], known["HELD"], known["large"] = 7.0, None, None
    gc.collect()
    assert (large() is None) == (name == "f")  # what eval reads nobody knows
    expected = ad.grad(lambda x: ad.implicit.root(lambda y: y**3 + y - x * 1.5, X).sum())(X)
    np.testing.assert_allclose(y.sum().backward()[w].numpy(), expected, rtol=1e-6)


@pytest.mark.parametrize("holder", HOLDERS)
def test_compiled_functions_are_given_what_the_module_holds(holder: str, monkeypatch: pytest.MonkeyPatch) -> None:
    held, now = HOLDERS[holder]
    recordings = types.SimpleNamespace(count=0)

    @ad.compile
    def f(y: Any) -> Any:
        recordings.count += 1
        return bend(y, now).sum()

    def plain(x: Any) -> Any:
        return bend(ad.asarray(X), lambda: (x, 1.5)).sum()

    once = 0
    for shift in (0.0, 0.2, -0.3):
        w = ad.tensor(X + shift).require_grad()
        monkeypatch.setitem(globals(), "HELD", held(w))
        y = f(X)
        assert y.item() == pytest.approx(plain(X + shift).item(), rel=1e-12)
        np.testing.assert_allclose(y.backward()[w].numpy(), ad.grad(plain)(X + shift), rtol=1e-12)
        once = once or recordings.count
    assert recordings.count == once


@pytest.mark.parametrize("name", slow_but("fixed_point", "scan in chunks"))
def test_variables_that_are_rebound_later(name: str) -> None:
    """Of `x = root(lambda y: y - x, x0)` in a loop, gradients were 0, or those of the last x."""
    run = {**SOLVED, **LOOPS}[name]
    f, plain = steps(run, again=True), steps(run, again=False)
    expected = ad.grad(plain)(X)
    assert np.abs(expected).min() > 1e-4
    with Each() as each:
        with each("grad"):
            np.testing.assert_allclose(ad.grad(f)(X), expected, rtol=1e-6)
        with each("backward"):
            w = ad.tensor(X).require_grad()
            np.testing.assert_allclose(f(w).backward()[w].numpy(), expected, rtol=1e-6)
        with each("forward"):
            np.testing.assert_allclose(ad.jacobian(f, mode="forward")(X), expected, rtol=1e-6)


@pytest.mark.parametrize("name", slow_but("scan")[len(SOLVED) : -1])
def test_variables_that_are_rebound_later_in_compiled_functions(name: str) -> None:
    f, plain = steps(LOOPS[name], again=True), steps(LOOPS[name], again=False)
    expected = ad.grad(plain)(X)
    with Each() as each:
        with each("inside"):
            np.testing.assert_allclose(ad.compile(ad.grad(f))(X), expected, rtol=1e-10)
        with each("around"):
            np.testing.assert_allclose(ad.grad(ad.compile(f))(X), expected, rtol=1e-10)


@pytest.mark.slow
@pytest.mark.parametrize("name", [*SOLVED, "scan in chunks"])
def test_second_derivatives_and_batches_of_variables_that_are_rebound(name: str) -> None:
    run = {**SOLVED, **LOOPS}[name]
    f, plain = steps(run, again=True), steps(run, again=False)
    with Each() as each:
        with each("hvp"):
            found, expected = (ad.grad(lambda x, g=g: (ad.grad(g)(x) * X).sum())(X) for g in (f, plain))
            np.testing.assert_allclose(found, expected, rtol=1e-5)
        with each("vmap"):
            found, expected = (ad.vmap(ad.grad(g))(np.stack([X, X + 0.1])) for g in (f, plain))
            np.testing.assert_allclose(found, expected, rtol=1e-6)


def test_lists_that_grow_later() -> None:
    """The step ran again with a list in which there was more by then, and met a tensor that its rule did not know."""

    def f(x: Any) -> Any:
        known = [x]
        step = lambda i, c: c * 0.5 + sum(known)
        for _ in range(2):
            known.append(ad.fori_loop(0, 3, step, x))
        return (known[-1] * X).sum()

    expected = ad.grad(f)(X)
    np.testing.assert_allclose(ad.compile(ad.grad(f))(X), expected, rtol=1e-12)
    np.testing.assert_allclose(ad.grad(ad.compile(f))(X), expected, rtol=1e-12)


class NoCopy(list[Any]):
    def __copy__(self) -> NoCopy:
        raise RuntimeError("there is one")


class ReadOnly(dict[int, Any]):
    def __setitem__(self, key: int, value: Any) -> None:
        raise TypeError("read only")


@pytest.mark.parametrize("make", [lambda w: NoCopy([w]), lambda w: ReadOnly({0: w})], ids=["list", "dict"])
def test_containers_that_are_not_copied_are_named(make: Callable[[Any], Any]) -> None:
    w = ad.tensor(X).require_grad()
    kept = make(w)
    with pytest.raises(
        errors.ArgumentTypeError, match=r"closes over a (NoCopy|ReadOnly), .*; let it close over a plain"
    ):
        ad.implicit.root(lambda y: y**3 + y - kept[0], X)
    plain = dict(kept) if isinstance(kept, dict) else list(kept)
    assert ad.implicit.root(lambda y: y**3 + y - plain[0], X).sum().backward()[w].shape == (2,)


def test_steps_that_change_what_they_close_over() -> None:
    """They are recorded one by one: a compiled loop has no place for a list that grows."""

    def listed(x: Any) -> Any:
        known = [x]

        def step(c: Any, _: Any) -> Any:
            known.append(c * 2)
            return known[-1] + known[-2], c

        return ad.scan(step, x, None, 3)[0].sum()

    def counted(x: Any) -> Any:
        n, seen = 1.0, []

        def step(i: Any, c: Any) -> Any:
            nonlocal n
            n += 1
            seen.append(c)
            return c * n

        return (ad.fori_loop(0, 3, step, x) + sum(seen)).sum()

    for f in (listed, counted):
        np.testing.assert_allclose(ad.compile(f)(X), f(ad.tensor(X)).numpy(), rtol=1e-12)
        for g in (ad.compile(ad.grad(f)), ad.grad(ad.compile(f))):
            np.testing.assert_allclose(g(X), ad.grad(f)(X), rtol=1e-12)


def test_what_only_a_loop_or_a_choice_of_the_program_could_change() -> None:
    known = [0.0]

    def body(c: Any) -> Any:
        known[0] += 1
        return c * 2 + known[0]

    for f in (
        lambda x: ad.while_loop(lambda c: c.sum() < 9, body, x),
        lambda x: ad.cond(x.sum() > 0, body, lambda c: c, x),
        lambda x: ad.switch(x.sum().astype(ad.int32), [body, body], x),
    ):
        with pytest.raises(errors.TrackedError, match=rf"body at {__file__}:\d+ changes 'known', which is outside"):
            ad.compile(f)(X)

    def chunks(x: Any) -> Any:
        known = [x]

        def step(c: Any, _: Any) -> Any:
            known.append(c)
            return sum(known), c

        return ad.scan(step, x, None, 4, checkpoint_every=2)[0].sum()

    with pytest.raises(
        errors.TrackedError, match="step at .* changes 'known', .* with checkpoint_every steps run again"
    ):
        ad.grad(chunks)(X)


def test_tensors_of_steps_that_stay_behind() -> None:
    class Log:
        kept: Any

    def f(x: Any) -> Any:
        def step(i: Any, c: Any) -> Any:
            Log.kept = c * 2
            return c + 1

        return ad.fori_loop(0, 3, step, x)

    for g in (
        lambda x: f(x) + Log.kept,
        lambda x: (f(x), Log.kept)[1],
        lambda x: ad.fori_loop(0, 2, lambda i, c: c + Log.kept, f(x)),
    ):
        with pytest.raises(errors.EndedError, match="of a step or a branch that ad.compile recorded"):
            ad.compile(g)(X)


def test_what_functions_log() -> None:
    """Values that a function hands out when it runs first come into the list of the caller."""
    calls: list[int] = []

    def logged(y: Any) -> Any:
        calls.append(1)
        return y * 0.5 + 1

    ad.grad(lambda x: ad.implicit.fixed_point(lambda y: logged(y) * x, X).sum())(1.0)
    assert calls
    calls.clear()
    ad.grad(lambda x: ad.scan(lambda c, _: (logged(c) * x, c), X, None, 4, checkpoint_every=2)[0].sum())(1.0)
    assert len(calls) == 4


def test_closure_convert_takes_the_tensors_of_bound_methods() -> None:
    """The derivative by them was missing, silently."""
    layer = ad.nn.Linear(2, 3)

    class Local:
        def run(self, x: Any, w: Any = layer.weight) -> Any:
            return x @ w.T

    for f, count in ((layer.__call__, 2), (Local().run, 1), (functools.partial(Local().run), 1)):
        converted, closed = ad.closure_convert(lambda x, f=f: f(x).sum(), ad.ones(2))
        assert len(closed) == count
        found = ad.grad(converted, 1)(ad.ones(2), *closed)
        np.testing.assert_array_equal(found.numpy(), np.ones((3, 2)))
