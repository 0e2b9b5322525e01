"""`ad.debug`: values are shown and handed out under every transform, and change nothing."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import adjoint as ad
from adjoint import errors

X = np.array([0.5, 1.5, 2.5])


def seen_by(run: Any) -> list[Any]:
    """What a callback within sees: run(f) runs a transform of f."""
    seen: list[Any] = []

    def f(x: Any) -> Any:
        y = x * x
        ad.debug.callback(lambda y: seen.append(y.tolist()), y)
        return y.sum()

    run(f)
    return seen


WAYS: dict[str, tuple[Any, list[Any]]] = {
    "plain": (lambda f: f(ad.tensor(2.0)), [4.0]),
    "of a leaf": (lambda f: f(ad.tensor(2.0).require_grad()).backward(), [4.0]),
    "grad": (lambda f: ad.grad(f)(2.0), [4.0]),
    "grad of an array": (lambda f: ad.grad(f)(X), [(X * X).tolist()]),
    "jvp": (lambda f: ad.jvp(f, (2.0,), (1.0,)), [4.0]),
    "grad of grad": (lambda f: ad.grad(ad.grad(f))(2.0), [4.0]),
    "hessian": (lambda f: ad.hessian(f)(X), [(X * X).tolist()]),
    "linearize": (lambda f: ad.linearize(f, 2.0), [4.0]),
    "jet": (lambda f: ad.jet(f, (2.0,), ((1.0, 0.0),)), [4.0]),
    "vmap": (lambda f: ad.vmap(f)(X), (X * X).tolist()),
    "vmap of what all share": (lambda f: ad.vmap(lambda x: f(ad.tensor(2.0)) * x)(X), [4.0]),
    "vmap of grad": (lambda f: ad.vmap(ad.grad(f))(X), (X * X).tolist()),
    "grad of vmap": (lambda f: ad.grad(lambda x: ad.vmap(f)(x).sum())(X), (X * X).tolist()),
    "vmap of vmap": (lambda f: ad.vmap(ad.vmap(f))(np.outer([1, 2], X)), np.outer([1, 4], X * X).ravel().tolist()),
    "scan": (lambda f: ad.scan(lambda c, x: (c + f(x), x), 0.0, X), (X * X).tolist()),
    "vmap of scan": (
        lambda f: ad.vmap(lambda s: ad.scan(lambda c, x: (c + f(s * x), x), 0.0, X))(np.array([1.0, 2.0])),
        np.outer(X * X, [1, 4]).ravel().tolist(),
    ),
    "scan, recomputed": (
        lambda f: ad.grad(lambda a: ad.scan(lambda c, x: (c + f(a * x), x), 0.0, X, checkpoint_every=2)[0])(1.0),
        (X * X).tolist(),
    ),
    "a pullback in a transform": (lambda f: ad.grad(lambda g: ad.vjp(f, 2.0)[1](g)[0])(1.0), [4.0]),
    "sparse": (lambda f: ad.sparse_hessian(f)(X), [(X * X).tolist()]),
    "solution": (lambda f: ad.odeint(lambda y, t: -f(y) * 0, 1.0, np.array([0.0, 0.0])), [1.0]),
    "checkpoint": (lambda f: ad.grad(ad.checkpoint(f))(2.0), [4.0]),
    "cond": (lambda f: ad.cond(True, f, lambda x: x.sum(), ad.tensor(2.0)), [4.0]),
}


LOOPS: dict[str, Any] = {
    "scan": lambda f, z: ad.scan(lambda c, x: (c + f(x * z), None), z * 0, X)[0],
    "scan in scan": lambda f, z: ad.scan(lambda c, x: (c + LOOPS["scan"](f, x * z), None), z * 0, X)[0],
    "map": lambda f, z: ad.map(lambda x: f(x * z), X).sum(),
    "fori_loop": lambda f, z: ad.fori_loop(0, 3, lambda i, c: c + f(z * (i + 1)), z * 1),
    "while_loop": lambda f, z: ad.while_loop(lambda c: c[0] < 2, lambda c: (c[0] + 1, f(z * c[1])), (0, z * 1))[1],
    "bounded": lambda f, z: ad.while_loop(lambda c: c < 3, lambda c: c + 1 + 0 * f(z * c), z * 0, max_steps=5),
    "numbers": lambda f, z: ad.fori_loop(0, 3, lambda i, c: (c[0] * 1.5, c[1] + f(z * c[0])), (0.5, 0))[1],
    "cond in scan": lambda f, z: ad.scan(
        lambda c, x: (ad.cond(x > 1, lambda c: c + f(x * z), lambda c: c, c), None), z * 0, X
    )[0],
    "cond": lambda f, z: ad.cond(z > 0, lambda z: f(z) * 1, lambda z: z * 1, z),
}
OF_LOOPS: dict[str, Any] = {
    "compiled": lambda f: ad.compile(f)(np.float64(2)),
    "grad": lambda f: ad.compile(ad.grad(f))(2.0),
    "grad outside": lambda f: ad.grad(ad.compile(f))(2.0),
    "grad of grad": lambda f: ad.compile(ad.grad(ad.grad(f)))(2.0),
    "grad of grad outside": lambda f: ad.grad(ad.grad(ad.compile(f)))(2.0),
    "hessian outside": lambda f: ad.hessian(ad.compile(f))(2.0),
    "jvp": lambda f: ad.compile(lambda z: ad.jvp(f, (z,), (1.0,)))(2.0),
    "jvp of grad": lambda f: ad.compile(lambda z: ad.jvp(ad.grad(f), (z,), (1.0,)))(2.0),
    "hessian": lambda f: ad.compile(ad.hessian(f))(2.0),
    "vmap": lambda f: ad.compile(ad.vmap(f))(np.array([2.0, 2.0])),
    "vmap outside": lambda f: ad.vmap(ad.compile(f))(np.array([2.0, 2.0])),
    "vmap of grad": lambda f: ad.compile(ad.vmap(ad.grad(f)))(np.array([2.0, 2.0])),
    "grad of vmap": lambda f: ad.compile(ad.grad(lambda z: ad.vmap(f)(z).sum()))(np.array([2.0, 2.0])),
    "vmap of hessian": lambda f: ad.compile(ad.vmap(ad.hessian(f)))(np.array([2.0, 2.0])),
    "grad of jvp outside": lambda f: ad.grad(lambda z: ad.jvp(ad.compile(f), (z,), (1.0,))[1])(2.0),
    "vmap of hessian outside": lambda f: ad.vmap(ad.hessian(ad.compile(f)))(np.array([2.0, 2.0])),
}
FORWARD = {"compiled", "jvp", "vmap", "vmap outside"}  # what a loop of unknown length can


@pytest.mark.parametrize(
    ("loop", "way"), [(loop, way) for loop in LOOPS for way in OF_LOOPS if loop != "while_loop" or way in FORWARD]
)
def test_compiled_loops_call_once_for_each_step_and_example(loop: str, way: str) -> None:
    """Not for a step that runs again for its derivative, nor for one that is run for its shapes."""
    wanted = seen_by(lambda f: LOOPS[loop](f, ad.tensor(2.0, dtype=float)))
    found = seen_by(lambda f: OF_LOOPS[way](lambda z: LOOPS[loop](f, z)))
    assert sorted(found) == sorted(wanted * (2 if "vmap" in way else 1))


Y = np.array([0.5, 1.5, 2.5, 4.0], np.float32)
CHOICES: dict[str, Any] = {  # examples of Y go different ways
    "cond": lambda f, x: ad.cond(x > 1, f, lambda x: x * 1, x),
    "both": lambda f, x: ad.cond(x > 1, f, lambda x: f(-x), x),
    "switch": lambda f, x: ad.switch(ad.floor(x).astype(int) % 3, [f, lambda x: f(x + 9), lambda x: x * 1], x),
    "cond in cond": lambda f, x: ad.cond(x > 1, lambda x: ad.cond(x > 2, f, lambda x: f(-x), x), lambda x: f(9 * x), x),
    "vmap in cond": lambda f, x: ad.cond(x > 1, lambda x: ad.vmap(lambda y: f(x * y))(Y).sum(), lambda x: x * 1, x),
    "scan in cond": lambda f, x: ad.cond(
        x > 1, lambda x: ad.scan(lambda c, y: (c + f(x * y), None), x * 0, Y)[0], lambda x: x * 1, x
    ),
    "cond in scan": lambda f, x: ad.scan(
        lambda c, y: (ad.cond(c > y, f, lambda c: f(-c), c) / 9, None), x, Y, checkpoint_every=2
    )[0],
    "while_loop": lambda f, x: ad.while_loop(lambda c: c < 3, lambda c: c + 1 + 0 * f(c), x, max_steps=9),
}
OF_CHOICES: dict[str, Any] = {
    "vmap": lambda f: ad.vmap(f)(Y),
    "vmap of vmap": lambda f: ad.vmap(ad.vmap(f))(Y.reshape(2, 2)),
    "vmap of grad": lambda f: ad.vmap(ad.grad(f))(Y),
    "grad of vmap": lambda f: ad.grad(lambda x: ad.vmap(f)(x).sum())(Y),
    "vmap of hessian": lambda f: ad.vmap(ad.hessian(f))(Y),
    "vmap of checkpoint": lambda f: ad.vmap(ad.grad(ad.checkpoint(f)))(Y),
    "compiled": lambda f: ad.compile(ad.vmap(f))(Y),
    "compiled, vmap of vmap": lambda f: ad.compile(ad.vmap(ad.vmap(f)))(Y.reshape(2, 2)),
    "compiled, vmap of grad": lambda f: ad.compile(ad.vmap(ad.grad(f)))(Y),
    "compiled, grad of vmap": lambda f: ad.compile(ad.grad(lambda x: ad.vmap(f)(x).sum()))(Y),
    "compiled, vmap of hessian": lambda f: ad.compile(ad.vmap(ad.hessian(f)))(Y),
    "vmap outside": lambda f: ad.vmap(ad.compile(f))(Y),
    "vmap of vmap outside": lambda f: ad.vmap(ad.vmap(ad.compile(f)))(Y.reshape(2, 2)),
    "vmap of vmap of grad outside": lambda f: ad.vmap(ad.vmap(ad.grad(ad.compile(f))))(Y.reshape(2, 2)),
    "vmap of hessian outside": lambda f: ad.vmap(ad.hessian(ad.compile(f)))(Y),
}


@pytest.mark.parametrize(
    "way", [pytest.param(way, marks=pytest.mark.slow) if "hessian" in way else way for way in OF_CHOICES]
)
@pytest.mark.parametrize("choice", CHOICES)
def test_callbacks_are_called_for_the_examples_that_come_there(choice: str, way: str) -> None:
    """Functions that some examples choose are computed for all, and what the others see is nobody's value."""
    wanted = seen_by(lambda f: [CHOICES[choice](f, ad.tensor(y)) for y in Y])
    found = seen_by(lambda f: OF_CHOICES[way](lambda x: CHOICES[choice](f, x)))
    np.testing.assert_allclose(sorted(found), sorted(wanted), rtol=1e-6)


def test_a_text_in_a_choice_is_shown_once(capsys: pytest.CaptureFixture[str]) -> None:
    def f(x: Any) -> Any:
        return ad.cond(x > 9, lambda x: (ad.debug.print("large"), x)[1], lambda x: (ad.debug.print("small"), x)[1], x)

    for run in (ad.vmap(f), ad.compile(ad.vmap(f))):
        run(Y)
        assert capsys.readouterr().out == "small\n"
        run(Y * 4)
        assert sorted(capsys.readouterr().out.split()) == ["large", "small"]


@pytest.mark.parametrize("compiled", [False, True], ids=["eager", "compiled"])
@pytest.mark.parametrize("way", WAYS)
def test_a_callback_sees_each_example_once(way: str, compiled: bool) -> None:
    run, wanted = WAYS[way]
    for _ in range(2):  # a compiled function first learns of which results there are cotangents
        found = seen_by(lambda f: run(ad.compile(f) if compiled else f))
        np.testing.assert_allclose(np.array(found), np.array(wanted), rtol=1e-6)


@pytest.mark.parametrize("draws", [False, True])
@pytest.mark.parametrize("result", range(3))
def test_calls_of_a_compiled_function_with_several_results_are_made_once(result: int, draws: bool) -> None:
    seen: list[float] = []

    @ad.compile
    def f(x: Any) -> Any:
        noise = ad.random.normal((2,), dtype=float) if draws else 0.0
        y = ad.sin(x) * x + noise
        ad.debug.callback(lambda v: seen.append(float(v)), y.sum())
        return y * y, y, x * 2

    x = np.array([0.5, 1.5])
    for transform in (ad.grad, ad.hessian, ad.grad, lambda f: ad.grad(lambda x: ad.grad(f)(x).sum())):
        seen.clear()
        transform(lambda x: f(x)[result].sum())(x)
        assert len(seen) == 1


def test_what_a_rule_calls_is_called_where_the_rule_runs() -> None:
    seen: list[str] = []

    @ad.custom_vjp
    def square(x: Any) -> Any:
        ad.debug.callback(lambda _: seen.append("function"), x)
        return x * x

    def rule(x: Any, g: Any) -> Any:
        ad.debug.callback(lambda _: seen.append("rule"), g)
        return (2 * x * g,)

    square.defvjp(lambda x: (square(x), x), rule)

    for f in (lambda x: square(x) * 1.0, ad.compile(lambda x: square(x) * 1.0)):
        seen.clear()
        assert ad.grad(ad.grad(f))(3.0) == 2.0
        assert sorted(seen) == ["function", "rule"]


@pytest.mark.parametrize("way", WAYS)
def test_a_callback_changes_no_derivative(way: str) -> None:
    def watched(x: Any) -> Any:
        ad.debug.callback(lambda *_: None, x, x * 2)
        return ad.sin(x).sum()

    def arrays(f: Any) -> list[Any]:
        out = WAYS[way][0](f)
        return [x for x in ad.tree.leaves(out) if isinstance(x, (ad.Tensor, np.ndarray, np.generic))]

    for x, y in zip(arrays(watched), arrays(lambda x: ad.sin(x).sum()), strict=True):
        np.testing.assert_array_equal(np.asarray(ad.stop_gradient(x)), np.asarray(ad.stop_gradient(y)))


def test_arguments_of_a_callback_keep_their_structure() -> None:
    seen: list[Any] = []

    def note(tree: Any, *, step: int, name: Any) -> None:
        seen.append((tree, step, name))

    w = ad.tensor([1.0, 2.0]).require_grad()
    ad.debug.callback(note, {"w": w, "n": 3}, step=7, name=None)
    ((tree, step, name),) = seen
    assert isinstance(tree["w"], np.ndarray)
    assert tree["w"].tolist() == [1, 2]
    assert tree["n"] == 3
    assert (step, name) == (7, None)
    tree["w"][0] = 5.0  # its own
    assert w.tolist() == [1, 2]


def test_examples_of_several_levels_are_paired() -> None:
    seen: list[Any] = []
    note = lambda *xs: seen.append(tuple(float(x) for x in xs))
    inner = lambda x: ad.vmap(lambda y: (ad.debug.callback(note, y, x, x * y, 1.0), y)[1])(np.array([1.0, 2.0]))
    ad.vmap(inner)(np.array([10.0, 20.0]))
    assert seen == [(1, 10, 10, 1), (2, 10, 20, 1), (1, 20, 20, 1), (2, 20, 40, 1)]


PRINTED: dict[str, tuple[Any, str]] = {
    "a format": (lambda x: ad.debug.print("x {:.1f} at {step:03d}", x, step=4), "x 2.5 at 004\n"),
    "no format": (lambda x: ad.debug.print("x is", x), "x is 2.5\n"),
    "no text": (lambda x: ad.debug.print(x, 3), "2.5 3\n"),
    "text alone": (lambda x: ad.debug.print("here, 100 %"), "here, 100 %\n"),
    "braces": (lambda x: ad.debug.print("{{}} {}", x), "{} 2.5\n"),
    "float32": (lambda x: ad.debug.print(x, "and {}", ad.tensor(0.1)), "2.5 and {} 0.1\n"),
    "float32 in a format": (lambda x: ad.debug.print("{} of {}", ad.tensor(0.1), x), "0.1 of 2.5\n"),
    "an array": (lambda x: ad.debug.print("{:.2f}", ad.stack([x, x])), "[2.50, 2.50]\n"),
}


@pytest.mark.parametrize("what", PRINTED)
def test_printing(what: str, capsys: pytest.CaptureFixture[str]) -> None:
    show, wanted = PRINTED[what]
    ad.grad(lambda x: (show(x), x)[1])(2.5)
    assert capsys.readouterr().out == wanted
    ad.vmap(lambda x: (show(x), x)[1])(np.array([2.5, 2.5]))
    assert capsys.readouterr().out == wanted * (1 if what == "text alone" else 2)


def test_wrong_input() -> None:
    with pytest.raises(errors.ArgumentTypeError, match="debug.callback: expected a function"):
        ad.debug.callback(3, ad.tensor(1.0))  # type: ignore[arg-type]
    with pytest.raises(errors.ArgumentTypeError, match="nothing in the format names step"):
        ad.debug.print("loss", step=3)
    with pytest.raises(IndexError):
        ad.debug.print("{} {}", 1)
    with pytest.raises(ZeroDivisionError):
        ad.debug.callback(lambda x: 1 / 0, ad.tensor(1.0))


@pytest.mark.parametrize("choice", CHOICES)
def test_choices_under_jit_of_jax(choice: str) -> None:
    jax = pytest.importorskip("jax")
    wanted = seen_by(lambda f: [CHOICES[choice](f, ad.tensor(y)) for y in Y])

    def run(f: Any) -> None:
        jax.block_until_ready(jax.jit(ad.vmap(lambda x: CHOICES[choice](f, x)))(Y))
        jax.effects_barrier()

    np.testing.assert_allclose(sorted(seen_by(run)), sorted(wanted), rtol=1e-6)


def test_under_jit_of_jax(capsys: pytest.CaptureFixture[str]) -> None:
    jax = pytest.importorskip("jax")

    @jax.jit
    def f(v: Any) -> Any:
        ad.debug.print("all {:.1f}", ad.asarray(v, device="jax"))
        return ad.vmap(ad.grad(lambda x: (ad.debug.print("one {:.1f}", x), x * x)[1]))(v)

    jax.block_until_ready(f(jax.numpy.asarray([1.0, 2.0])))
    jax.effects_barrier()
    assert capsys.readouterr().out == "all [1.0, 2.0]\none 1.0\none 2.0\n"


LOGGED: list[float] = []


class Recorded:
    """How often a function was run to be recorded."""

    times = 0


@pytest.mark.parametrize("where", ["closure", "module"])
def test_what_callbacks_fill_is_not_what_a_compiled_function_reads(where: str) -> None:
    """So it is not recorded again, call by call, as the list of its losses grows."""
    losses: list[float] = []
    LOGGED.clear()
    recorded = Recorded()

    def of_closure(x: Any) -> Any:
        recorded.times += 1
        ad.debug.callback(lambda v: losses.append(float(v)), x * x)
        return x**3

    def of_module(x: Any) -> Any:
        recorded.times += 1
        ad.debug.callback(lambda v: LOGGED.append(float(v)), x * x)
        return x**3

    f = ad.compile(of_closure if where == "closure" else of_module)
    filled = losses if where == "closure" else LOGGED
    for k in range(5):
        assert f(np.float64(k)) == k**3
    assert filled == [0.0, 1.0, 4.0, 9.0, 16.0]
    assert recorded.times <= 2  # before the first time, nobody knows what is a callback
    for transform in (ad.hessian, lambda f: ad.grad(ad.grad(f)), lambda f: ad.jvp(ad.grad(f), (2.0,), (1.0,))[1]):
        found = transform(f)
        assert (found(2.0) if callable(found) else found) == 12.0
    assert set(filled[5:]) == {4.0}


def test_what_a_compiled_function_reads_itself_is_looked_at() -> None:
    rates = [2.0]

    def f(x: Any) -> Any:
        ad.debug.callback(lambda v: rates.append(float(v)), x)
        return x * rates[0]

    compiled = ad.compile(f)
    assert compiled(3.0) == 6.0
    rates[0] = 5.0
    assert compiled(3.0) == 15.0
    assert rates == [5.0, 3.0, 3.0]
