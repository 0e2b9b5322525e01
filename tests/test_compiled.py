"""Compiled functions give what they give without: every public function and transform, module and optimizer."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from functions import FUNCTIONS, PLAIN, Draw
from hypothesis import given, settings
from hypothesis import strategies as st
from test_recording import (
    LOOKING,
    MODULES,
    NEEDS_VALUES,
    OPTIMIZERS,
    RATES,
    RNG,
    ROWS,
    SETTINGS,
    TRANSFORMS,
    X,
    derivatives,
    of_constants,
    on,
    sum_of_squares,
    trained,
)

import adjoint as ad
from adjoint import errors
from adjoint import tree as trees
from adjoint.compiler.graph import Value, evaluate, verify
from adjoint.compiler.parser import parse
from adjoint.compiler.passes import PASSES
from adjoint.compiler.replay import Replay as ReplayOf
from adjoint.random_keys import Replay, replayed

# What asks for values that a compiled function has not got, with the reason.
ASKS = NEEDS_VALUES


def alike(found: Any, expected: Any, rtol: float = 1e-10) -> None:
    """Assert that two trees of results are of the same kinds, and the same but for the order of rounding."""
    xs, structure = trees.flatten(found)
    ys, wanted = trees.flatten(expected)
    assert structure == wanted, (structure, wanted)
    for x, y in zip(xs, ys, strict=True):
        assert type(x) is type(y), (type(x), type(y), x, y)
        if isinstance(x, ad.Tensor):
            assert x.device is y.device
            x, y = x.detach().numpy(), y.detach().numpy()
        assert (np.shape(x), np.asarray(x).dtype) == (np.shape(y), np.asarray(y).dtype)
        np.testing.assert_allclose(x, y, rtol=rtol, atol=1e-12)


def compared(f: Any, args: Any, *, asks: bool = False, times: int = 2, rtol: float = 1e-10) -> None:
    """Run f as it is and compiled, on tensors of the default device."""
    keys = Replay()
    keys.keys = [(0, i) for i in range(100)]
    xs = [ad.asarray(x) if isinstance(x, (np.ndarray, np.generic)) else x for x in args]
    if not any(isinstance(x, ad.Tensor) for x in xs):
        return
    with np.errstate(all="ignore"):
        with replayed(keys):
            expected = f(*xs)
        compiled = ad.compile(lambda *xs: f(*xs))
        try:
            for _ in range(times):
                with replayed(keys):
                    found = compiled(*xs)
                alike(found, expected, rtol)
            lowered = compiled.lower(*xs)
        except errors.TrackedError:
            assert asks
            return
        verify(graph := lowered.recorded)
        for change in PASSES:
            verify(graph := change(graph))
        assert str(graph) == str(lowered.graph)
        arrays = [x.detach().numpy() for x in xs if isinstance(x, ad.Tensor)]
        with replayed(keys):
            plain = evaluate(lowered.recorded, arrays, ad.NumPy())
        with replayed(keys):
            small = evaluate(lowered.graph, arrays, ad.NumPy())
        for x, y in zip(plain, small, strict=True):
            np.testing.assert_array_equal(x, y)


@pytest.mark.slow  # 25 seconds
@pytest.mark.parametrize("name", FUNCTIONS)
@settings(max_examples=3)
@given(data=st.data())
def test_every_function_and_its_derivatives(name: str, data: Any) -> None:
    f, *args = FUNCTIONS[name](Draw(data))
    compared(f, args, asks=name in ASKS)
    compared(derivatives(f), args, asks=name in ASKS)


@pytest.mark.slow
@pytest.mark.parametrize("name", PLAIN)
def test_every_function_without_derivatives(name: str) -> None:
    rng, f = np.random.default_rng(0), getattr(ad, name)
    for shape in ((3,), (2, 3)):
        x, y = (rng.integers(0, 3, shape) for _ in range(2))
        two = name.startswith(("bitwise_", "logical_", "equal", "not_", "less", "greater"))
        two = (two and name not in ("bitwise_invert", "logical_not")) or name == "isin"
        compared(f, [x, y][: 1 + two], asks=name in ASKS)


@pytest.mark.parametrize("name", TRANSFORMS)
def test_every_transform(name: str) -> None:
    compared(TRANSFORMS[name], [X])


@pytest.mark.parametrize("name", LOOKING)
def test_control_flow(name: str) -> None:
    compared(LOOKING[name], [X])


@pytest.mark.slow
@pytest.mark.parametrize("name", MODULES)
def test_modules(name: str) -> None:
    make, *args = MODULES[name]
    model = of_constants(make())

    def slopes(*xs: Any) -> Any:
        return trees.leaves(ad.grad(lambda model: sum_of_squares(model(*xs)))(on(model, xs[0])))

    compared(slopes if trees.leaves(model) else lambda *xs: trees.leaves(model(*xs)), args)


@pytest.mark.slow
@pytest.mark.parametrize("kind", OPTIMIZERS, ids=lambda kind: kind.__name__)
def test_optimizers(kind: Any) -> None:
    settings = SETTINGS.get(kind.__name__, {"lr": 0.1})
    compared(lambda x: trained(kind(**settings), x), [ROWS])


@pytest.mark.slow
@pytest.mark.parametrize("name", RATES)
def test_rates(name: str) -> None:
    compared(lambda x: trained(ad.optim.SGD(lr=RATES[name]), x), [ROWS])


# --- loops over slices ---

ALONG, WEIGHT = RNG.normal(size=(6, 3)), RNG.normal(size=(3, 3))


def _body(w: Any) -> Any:
    return lambda c, r: (ad.tanh(w @ c + r), (c * r).sum())


LOOPS: dict[str, Any] = {
    "scan": lambda x, r, w: ad.scan(_body(w), x, r),
    "scan, reverse": lambda x, r, w: ad.scan(_body(w), x, r, reverse=True),
    "grad": lambda x, r, w: ad.grad(lambda x, r, w: sum(y.sum() for y in ad.scan(_body(w), x, r)), (0, 1, 2))(x, r, w),
    "jvp": lambda x, r, w: ad.jvp(lambda x, r, w: ad.scan(_body(w), x, r), (x, r, w), (x, r, w)),
    "hessian": lambda x, r, w: ad.hessian(lambda x: (ad.scan(_body(w), x, r)[0] ** 2).sum())(x),
    "grad of grad": lambda x, r, w: ad.grad(
        lambda x: (ad.grad(lambda w: (ad.scan(_body(w), x, r)[0] ** 2).sum())(w) ** 2).sum()
    )(x),
    "vmap": lambda x, r, w: ad.vmap(lambda x: ad.scan(_body(w), x, r))(ad.stack([x, 2 * x])),
    "vmap of rows": lambda x, r, w: ad.vmap(lambda r: ad.scan(_body(w), x, r))(ad.stack([r, 2 * r])),
    "vmap of grad": lambda x, r, w: ad.vmap(ad.grad(lambda w: ad.scan(_body(w), x, r)[1].sum()))(ad.stack([w, 2 * w])),
    "jacobian": lambda x, r, w: ad.jacobian(lambda x: ad.scan(_body(w), x, r)[1])(x),
    "fori_loop": lambda x, r, w: ad.fori_loop(0, 5, lambda i, c: c * x + i, x),
    "grad of fori_loop": lambda x, r, w: ad.grad(lambda x: ad.fori_loop(0, 5, lambda i, c: c * x + r[i], x).sum())(x),
    "fori_loop, number": lambda x, r, w: ad.fori_loop(0, 5, lambda i, c: c * x[0], 1.0),
    "fori_loop in a fori_loop": lambda x, r, w: ad.fori_loop(
        0, 5, lambda i, c: ad.fori_loop(0, 3, lambda j, d: d * x + (i + j), c) * 2, x
    ),
    "a number in a choice": lambda x, r, w: ad.fori_loop(
        0, 5, lambda i, c: ad.cond(c[0] > i - 1, lambda c: c + i, lambda c: c * x, c), x
    ),
    "fori_loop, divided": lambda x, r, w: ad.fori_loop(0, 5, lambda i, c: c * (i / 3), x),
    "fori_loop in a fori_loop, divided": lambda x, r, w: ad.fori_loop(
        0, 5, lambda i, c: ad.fori_loop(0, 3, lambda j, d: d * ((i + j) / 3), c), x
    ),
    "a number in a choice, divided": lambda x, r, w: ad.fori_loop(
        0, 5, lambda i, c: ad.cond(c[0] > 0, lambda c: c * (i / 3), lambda c: c - 1, c), x
    ),
    "fori_loop, times": lambda x, r, w: ad.fori_loop(0, 5, lambda i, c: c + ad.exp(-i * c) * (i * 1e-9), x),
    "fori_loop, a NumPy function": lambda x, r, w: ad.fori_loop(
        0, 5, lambda i, c: c + np.sin(i) + np.multiply(0.1, i) + np.cos(i / 3), x
    ),
    "fori_loop, a tensor": lambda x, r, w: ad.fori_loop(
        0, 5, lambda i, c: c + ad.asarray(i) / 3 + ad.tensor(i) / 7 + ad.asarray(i, dtype=float) / 3, x
    ),
    "grad of fori_loop, divided": lambda x, r, w: ad.grad(
        lambda x: ad.fori_loop(0, 5, lambda i, c: ad.sin(c * (i / 3)) + 1 / (i + 1), x).sum()
    )(x),
    "vmap of fori_loop, divided": lambda x, r, w: ad.vmap(
        lambda x: ad.fori_loop(0, 5, lambda i, c: ad.where(c > i / 3, c * 2.0**-i, c - i), x)
    )(x),
    "checkpoint_every": lambda x, r, w: ad.grad(lambda x: ad.scan(_body(w), x, r, checkpoint_every=2)[0].sum())(x),
    "map": lambda x, r, w: ad.map(lambda r: r * x, r),
    "counting": lambda x, r, w: ad.grad(
        lambda x: ad.scan(lambda c, r: ((c[0] + 1, c[1] * r + c[0]), c[0]), (0, x), r)[0][1].sum()
    )(x),
    "vmap of while_loop": lambda x, r, w: ad.vmap(
        lambda y: ad.while_loop(lambda y: y < 100, lambda y: 2 * abs(y) + 0.1, y)
    )(x),
    "grad of cond": lambda x, r, w: ad.grad(
        lambda x: ad.cond(x[0] > 0, lambda x: (x * w).sum(), lambda x: (x**3).sum(), x)
    )(x),
}
# examples that choose differently; the second and third where all choose the same
root = lambda x: ad.cond(x > 0, ad.sqrt, lambda x: x * 0, x)
CHOICES: dict[str, Any] = {
    "cond": lambda x: ad.vmap(root)(x),
    "grad in vmap": lambda x: ad.vmap(ad.grad(root))(x),
    "grad of vmap": lambda x: ad.grad(lambda x: ad.vmap(root)(x).sum())(x),
    "hessian": lambda x: ad.hessian(lambda x: ad.vmap(root)(x).sum())(x),
    "jvp": lambda x: ad.jvp(lambda x: ad.vmap(root)(x), (x,), (x,)),
    "vmap of vmap": lambda x: ad.vmap(lambda y: ad.vmap(root)(x * y))(x),
    "switch": lambda x: ad.vmap(lambda i, y: ad.switch(i, [ad.sin, ad.exp, lambda x: x * x], y))(x.astype(int), x),
    "trees": lambda x: ad.vmap(
        lambda y: ad.cond(y > 0, lambda a: {"a": a[0], "b": a @ x}, lambda a: {"a": a.sum(), "b": a[1]}, x * y)
    )(x),
    "in a scan": lambda x: ad.vmap(
        lambda y: ad.scan(lambda c, r: (ad.cond(c > r, ad.sin, lambda c: c * r, c), c), y, x)
    )(x),
    "grad of that": lambda x: ad.grad(
        lambda x: ad.vmap(lambda y: ad.scan(lambda c, r: (ad.cond(c > r, ad.sin, lambda c: c * r, c), c), y, x)[0])(
            x
        ).sum()
    )(x),
}


@pytest.mark.parametrize("name", CHOICES)
def test_examples_that_choose_differently(name: str) -> None:
    for x in ([4.0, 0.0, -1.0], [1.0, 2.0, 3.0], [-1.0, -2.0, -0.0]):
        compared(CHOICES[name], [np.array(x)])


def grown(x: Any, most: int = 20) -> Any:
    return ad.while_loop(lambda s: s.sum() < 100.0, lambda s: s * x + 1, x, max_steps=most)


def each_grown(x: Any) -> Any:
    return ad.vmap(lambda y: ad.while_loop(lambda s: s < 100, lambda s: s * y + 1, y, max_steps=50))(x)


BOUNDED: dict[str, Any] = {
    "values": grown,
    "grad": ad.grad(lambda x: grown(x).sum()),
    "hessian": ad.hessian(lambda x: grown(x).sum()),
    "jvp": lambda x: ad.jvp(grown, (x,), (x,)),
    "vmap": each_grown,
    "grad of vmap": ad.grad(lambda x: each_grown(x).sum()),
    "grad in vmap": lambda x: ad.vmap(
        ad.grad(lambda y: ad.while_loop(lambda s: s < 100, lambda s: s * y + 1, y, max_steps=50))
    )(x),
    "numbers": lambda x: ad.while_loop(lambda s: s < 5.0, lambda s: s + x[0], 1, max_steps=9),
    "no steps": lambda x: ad.while_loop(lambda s: s.sum() < 0, lambda s: s * 2, x, max_steps=0),
    "closure": ad.grad(lambda w: ad.while_loop(lambda s: s < 9, lambda s: s * w[0] * w[1], w[0], max_steps=9)),
}


@pytest.mark.parametrize("name", BOUNDED)
def test_loops_that_are_bounded_have_reverse_mode(name: str) -> None:
    x = np.array([1.5, 2.0])
    compared(BOUNDED[name], [x])
    if name != "no steps":
        graph = ad.compile(BOUNDED[name]).lower(ad.tensor(x)).graph
        assert any(e.name == "scan" for e in graph.equations)
        assert graph.size() < 100


def test_a_bounded_loop_that_goes_on_is_an_error() -> None:
    for f in (lambda x: grown(x, 3), ad.grad(lambda x: grown(x, 3).sum()), lambda x: each_grown(x / 2)):
        for g in (f, ad.compile(f)):
            with pytest.raises(errors.ConvergenceError, match="the predicate still holds after max_steps="):
                g(ad.tensor([1.2, 1.1]))


def shape_of(*args: Any) -> Any:
    return args[-1]


SINE = ad.external(
    np.sin,
    like=shape_of,
    vjp=ad.external(lambda g, x: g * np.cos(x), like=shape_of, vjp=lambda h, g, x: (h * np.cos(x), -h * g * np.sin(x))),
    jvp=lambda t, x: t * np.cos(x),
)
PAIR = ad.external(
    lambda x, y: (x @ y, x.sum()), like=lambda x, y: (x @ y, x.sum()), vjp=lambda g, h, x, y: (g * y + h, g * x)
)
OUTSIDE: dict[str, Any] = {
    "values": SINE,
    "grad": ad.grad(lambda x: SINE(x * x).sum()),
    "grad of grad": ad.grad(lambda x: (ad.grad(lambda x: SINE(x * x).sum())(x) ** 2).sum()),
    "jvp": lambda x: ad.jvp(SINE, (x,), (x,)),
    "vmap": lambda x: ad.vmap(lambda y: SINE(y) * 2)(x),
    "vmap of grad": lambda x: ad.vmap(ad.grad(lambda y: SINE(y) * 2))(x),
    "scan": lambda x: ad.scan(lambda c, r: (SINE(c + r), c), x, ad.stack([x, x])),
    "grad of scan": ad.grad(lambda x: ad.scan(lambda c, r: (SINE(c + r), c), x, ad.stack([x, x]))[0].sum()),
    "several": lambda x: PAIR(x, 2 * x),
    "grad of several": ad.grad(lambda x: sum(PAIR(x, 2 * x))),
}


@pytest.mark.parametrize("name", OUTSIDE)
def test_functions_of_numpy_arrays_are_steps(name: str) -> None:
    compared(OUTSIDE[name], [X])
    if name == "values":
        around(lambda x: SINE(x).sum(), [X])
        graph = ad.compile(lambda x: SINE(x) + 1).lower(X).graph
        assert [e.name for e in graph.equations] == ["host", "add"]


def test_the_rule_of_a_custom_jvp_is_looked_at_when_it_runs() -> None:
    for linear in (True, False):
        cube = ad.custom_jvp(lambda x: x**3)
        cube.defjvp(lambda xs, ts, linear=linear: (xs[0] ** 3, 3 * xs[0] ** 2 * (ts[0] if linear else ts[0] ** 2)))
        f = ad.compile(ad.grad(lambda x, cube=cube: cube(x).sum()))
        if linear:
            np.testing.assert_array_equal(f(X), 3 * X**2)
        else:
            with pytest.raises(errors.ArgumentError, match="its rule is not linear in tangents"):
                f(X)


def test_functions_of_numpy_arrays_at_any_size() -> None:
    f = ad.compile(lambda x: SINE(x) * x.shape[0], dynamic=True)
    for n in (3, 4, 5):
        np.testing.assert_array_equal(f(np.ones(n)), np.sin(np.ones(n)) * n)
    assert f._recordings == 1


def test_what_like_says_is_what_comes() -> None:
    for like, error, message in (
        (None, errors.TrackedError, "say like="),
        (lambda x: x[:1], errors.ShapeError, r"result 0 has shape \(3,\), and like= gives \(1,\)"),
        (lambda x: x.astype(ad.float32), errors.DtypeError, "result 0 is float64, and like= gives float32"),
        (lambda x: (x,), errors.ArgumentTypeError, "like= gives a tuple"),
        (lambda x: 3, errors.ArgumentTypeError, "like gives 3, expected tensors"),
        (lambda: 3, errors.ArgumentTypeError, r"called as like\(\*args\)"),
    ):
        with pytest.raises(error, match=message):
            ad.compile(ad.external(np.sin, like=like))(np.ones(3))
    two = ad.external(lambda x: (x, x), like=lambda x: (x, x, x))
    with pytest.raises(errors.ArgumentError, match="2 results, and like= gives 3"):
        ad.compile(two)(np.ones(3))
    wrong = ad.external(np.sin, like=lambda x: x, jvp=lambda t, x: 1j * t)
    with pytest.raises(errors.DtypeError, match="complex"):
        ad.compile(lambda x: ad.jvp(wrong, (x,), (x,)))(np.ones(3))


UNROLLED: dict[str, Any] = {
    "fori_loop, up to a counter": lambda x, r, w: ad.fori_loop(
        0, 4, lambda i, c: ad.fori_loop(0, i, lambda j, d: d * 0.9 + j * 0.1, c), x
    ),
    "grad of fori_loop, up to a counter": lambda x, r, w: ad.grad(
        lambda x: ad.fori_loop(
            0, 4, lambda i, c: ad.cond(c[0] > i, lambda: ad.fori_loop(0, i + 1, lambda j, d: d * x, c), lambda: c), x
        ).sum()
    )(x),
    "fori_loop, asking": lambda x, r, w: ad.fori_loop(0, 5, lambda i, c: c * 2 if i % 2 else c, x),
    "random": lambda x, r, w: ad.scan(lambda c, r: (c + ad.random.normal((3,)), r), x, r),
    "random choice": lambda x, r, w: (
        ad.cond(x[0] > 5, lambda x: x + ad.random.normal((3,)), lambda x: x, x),
        ad.random.normal((2,)),
    ),
}


@pytest.mark.parametrize("dtype", ["float32", "int32", "int8", "uint8", "int64"])
def test_numbers_of_loops_widen_nothing(dtype: str) -> None:
    """Nor do those that a loop or a choice inside of it has from outside."""
    x = np.arange(1, 5).astype(dtype)
    for f in (
        lambda x: ad.fori_loop(0, 3, lambda i, c: ad.fori_loop(0, 4, lambda j, d: d * j + i, c), x),
        lambda x: ad.fori_loop(0, 3, lambda i, c: ad.fori_loop(0, 4, lambda j, d: d * (i + j), c), x),
        lambda x: ad.fori_loop(0, 3, lambda i, c: ad.cond(c[0] > 0, lambda c: c + i, lambda c: c * i, c), x),
        lambda x: ad.fori_loop(0, 3, lambda i, c: (c * 3 + i) % 7, x.sum().astype(x.dtype)),
        lambda x: ad.fori_loop(0, 3, lambda i, c: ad.maximum(c // 2 + i**2, 2**i), x),
        lambda x: ad.fori_loop(0, 3, lambda i, c: ad.where(c > i, c - i, i), x),
    ):
        compared(f, [x])


@pytest.mark.parametrize("name", LOOPS)
def test_loops_are_loops_of_the_graph(name: str) -> None:
    args = [X, ALONG, WEIGHT]
    compared(LOOPS[name], args)
    graph = ad.compile(LOOPS[name]).lower(*map(ad.tensor, args)).graph
    assert any(e.graphs for e in graph.equations)


@pytest.mark.parametrize("name", UNROLLED)
def test_loops_that_are_unrolled(name: str) -> None:
    compared(UNROLLED[name], [X, ALONG, WEIGHT])


SHARED: dict[str, Any] = {
    "a row": lambda z: ad.scan(lambda c, y: (c, ad.cond(y > 0.15, lambda y: y * z, lambda y: y, y)), z * 0, STEPS)[1],
    "a start": lambda z: ad.scan(
        lambda c, y: (ad.cond(c > 0.15, lambda c: c * z + y, lambda c: c + y, c), c), ad.zeros((), dtype=float), STEPS
    )[0],
    "a counted loop": lambda z: ad.fori_loop(
        0, 3, lambda i, c: ad.cond(c > 1.5, lambda c: c * z, lambda c: c + 1, c), ad.ones((), dtype=float)
    ),
    "a loop": lambda z: ad.while_loop(
        lambda c: c[0] < 4,
        lambda c: (c[0] + 1, ad.cond(c[0] > 1, lambda y: y * z, lambda y: y + 1, c[1])),
        (ad.zeros((), dtype=float), ad.ones((), dtype=float)),
    )[1],
}
STEPS = np.array([0.1, 0.2, 0.3])


@pytest.mark.parametrize("by", SHARED)
def test_what_the_first_step_is_does_not_choose_for_the_others(by: str) -> None:
    """In a batch, a choice by what all examples share: the first step's is known, and its branch shares its result."""
    f, z = SHARED[by], np.array([1.0, 2.0])

    def agree(transformed: Any, x: Any) -> None:
        np.testing.assert_allclose(ad.compile(transformed)(x), transformed(x), rtol=1e-14)

    agree(ad.vmap(f), z)
    agree(ad.vmap(ad.vmap(f)), np.outer(z, z))
    agree(lambda z: ad.jvp(ad.vmap(f), (z,), (z,))[1], z)
    if by != "a loop":
        agree(ad.vmap(ad.grad(lambda z: (f(z) ** 2).sum())), z)
        agree(ad.vmap(ad.hessian(lambda z: (f(z) ** 2).sum())), z)


# --- Python's numbers that a choice gives ---------------------------------------------------------

NUMBERS: dict[str, Any] = {
    "fraction": lambda x, p: x * ad.cond(p > 0, lambda: 1.1, lambda: 2.2),
    "integer": lambda x, p: x * ad.cond(p > 0, lambda: 1, lambda: 2),
    "arithmetic": lambda x, p: x + (2 * ad.cond(p > 0, lambda: 1.5, lambda: 2.0) - 1) ** 2 / 3,
    "quotient": lambda x, p: x + ad.cond(p > 0, lambda: 1, lambda: 2) / 3,
    "function": lambda x, p: ad.maximum(x, -ad.cond(p > 0, lambda: 1.7, lambda: 2.0)),
    "where": lambda x, p: ad.where(x > 0, x, ad.cond(p > 0, lambda: 1, lambda: 2)),
    "stack": lambda x, p: ad.stack([x[0], ad.cond(p > 0, lambda: 1, lambda: 2)]),
    "nested": lambda x, p: x * ad.cond(p > 0, lambda: ad.cond(p > 2, lambda: 1.1, lambda: 1.2), lambda: 2.0),
    "switch": lambda x, p: x * ad.switch(p.astype(ad.int32), [lambda: 1.1, lambda: 2.0, lambda: 3.3]),
    "step": lambda x, p: ad.scan(lambda c, r: (c, r * ad.cond(r > p, lambda: 3, lambda: 2)), p, x)[1],
    "vmap": lambda x, p: ad.vmap(lambda q: ad.cond(q > 0, lambda: 3, lambda: 2) * x)(ad.stack([p, -p])),
    "grad": lambda x, p: ad.grad(lambda p: (p * ad.cond(p > 0, lambda: 1.1, lambda: 2.2) * x).sum())(p),
    "bools": lambda x, p: ad.cond(p > 0, lambda: True, lambda: False) & (x > 0),
    "array": lambda x, p: x + ad.asarray(ad.cond(p > 0, lambda: 1.1, lambda: 2.0)) / 3,
    "array of a dtype": lambda x, p: x + ad.asarray(ad.cond(p > 0, lambda: 1.1, lambda: 2), dtype=float),
    "tensor": lambda x, p: x + ad.tensor(ad.cond(p > 0, lambda: 1.1, lambda: 2.0)) / 3,
    "NumPy": lambda x, p: x + np.exp(ad.cond(p > 0, lambda: 1, lambda: 2)),
    "NumPy beside a number": lambda x, p: x + np.multiply(0.3, ad.cond(p > 0, lambda: 1, lambda: 2)),
    "alone": lambda x, p: x.sum() + ad.sin(ad.cond(p > 0, lambda: 1, lambda: 2)),
}


@pytest.mark.parametrize("dtype", ["float64", "float32", "float16", "int32", "int8"])
@pytest.mark.parametrize("name", NUMBERS)
def test_numbers_that_a_choice_gives_adapt_as_pythons_do(name: str, dtype: str) -> None:
    x = ad.asarray(np.arange(3).astype(dtype))
    for p in (1.0, -1.0, 2.5):
        found, expected = (f(x, ad.tensor(p)) for f in (ad.compile(NUMBERS[name]), NUMBERS[name]))
        assert found.dtype is expected.dtype
        alike(found, expected, 1e-3 if dtype == "float16" else 1e-6 if expected.dtype is ad.float32 else 1e-15)


NUMBERS_OF_LOOPS: dict[str, Any] = {
    "scan": lambda x: ad.scan(lambda c, r: (c + 1, None), 0.5, x)[0],
    "scan of an integer": lambda x: ad.scan(lambda c, r: (c + 1, r * c), 0, x)[0] * -0.25,
    "while_loop": lambda x: ad.while_loop(lambda c: c[1] < 3, lambda c: (c[0] * 2, c[1] + 1), (x, 0))[1] / 2,
    "fori_loop": lambda x: ad.fori_loop(0, 3, lambda i, c: (c[0] * 2, c[1] / 2), (x, 1.0))[1] * 3,
    "in a gradient": lambda x: ad.grad(lambda v: v.sum() * ad.scan(lambda c, r: (c + 1, None), 0.5, v)[0])(x),
    "in a step": lambda x: ad.scan(lambda c, r: (c, r * ad.scan(lambda d, _: (d / 2, None), 1, x)[0]), x[0], x)[1],
}


@pytest.mark.parametrize("dtype", ["float64", "float32", "float16", "int32"])
@pytest.mark.parametrize("name", NUMBERS_OF_LOOPS)
def test_numbers_that_a_loop_carries_come_out_as_without_compiling(name: str, dtype: str) -> None:
    x, f = ad.asarray(np.arange(3).astype(dtype)), NUMBERS_OF_LOOPS[name]
    if name == "in a gradient" and dtype == "int32":
        return
    found, expected = ad.compile(f)(x), f(x)
    assert found.dtype is expected.dtype
    alike(found, expected, 1e-3)


def test_a_number_of_examples_is_as_exact_as_pythons() -> None:
    x = np.array([1.0, -3.0])
    f = lambda x: x * ad.cond(x > 0, lambda: 1.1, lambda: 2.2)
    np.testing.assert_array_equal(ad.vmap(f)(x), [f(v) for v in x])
    assert ad.vmap(lambda x: ad.cond(x > 0, lambda: 1.1, lambda: 2.2))(ad.tensor(x)).dtype is ad.float32


def test_a_chosen_number_has_to_fit() -> None:
    f = ad.compile(lambda x, p: x * ad.cond(p > 0, lambda: 300, lambda: 2))
    x = ad.asarray(np.arange(3, dtype=np.int8))
    assert f(x, ad.tensor(-1.0)).tolist() == [0, 2, 4]
    with pytest.raises(errors.RangeError, match="300 does not fit in int8"):
        f(x, ad.tensor(1.0))


def test_branches_of_several_dtypes_meet_in_one() -> None:
    x = ad.asarray(np.arange(3.0, dtype=np.float32))
    kinds = {
        "tensors": (lambda: x, lambda: x.astype(ad.float64), ad.float64),
        "the wider one first": (lambda: x.astype(ad.float64), lambda: x, ad.float64),
        "a number": (lambda: x.sum(), lambda: 2, ad.float32),
        "a number first": (lambda: 2.5, lambda: x.sum().astype(ad.int32), ad.float32),
    }
    for one, other, dtype in kinds.values():
        f = lambda p, one=one, other=other: ad.cond(p > 0, one, other)
        for p in (1.0, -1.0):
            found = ad.compile(f)(ad.tensor(p))
            assert found.dtype is dtype
            alike(found.astype(ad.float64), ad.asarray(np.asarray(f(ad.tensor(p)), np.float64)))
    w = ad.tensor(2.0)
    f = lambda w, p: ad.cond(p > 0, lambda: w * x, lambda: w.astype(ad.float64) * 3 * x).sum()
    assert ad.compile(ad.grad(f))(w, ad.tensor(-1.0)).tolist() == ad.grad(f)(w, ad.tensor(-1.0)).tolist()
    draws = ad.compile(
        lambda p: (ad.cond(p > 0, lambda: x, lambda: ad.random.normal((3,), dtype=ad.float64)), ad.random.normal())
    )
    for _ in range(2):
        ad.random.seed(3)
        found = draws(ad.tensor(-1.0))
        ad.random.seed(3)
        assert found[0].tolist() == ad.random.normal((3,), dtype=ad.float64).tolist()
        assert found[1].item() == ad.random.normal().item()


# --- levels around ---


@pytest.mark.slow  # 20 seconds
@pytest.mark.parametrize("name", FUNCTIONS)
@settings(max_examples=3)
@given(data=st.data())
def test_every_function_compiled_under_derivatives(name: str, data: Any) -> None:
    f, *args = FUNCTIONS[name](Draw(data))
    around(f, args, asks=name in ASKS)


def around(f: Any, args: Any, *, asks: bool = False) -> None:
    xs = [ad.asarray(x) if isinstance(x, (np.ndarray, np.generic)) else x for x in args]
    if not any(isinstance(x, ad.Tensor) and x.dtype.kind in "fc" for x in xs):
        return
    keys = Replay()
    keys.keys = [(0, i) for i in range(100)]
    with np.errstate(all="ignore"):
        with replayed(keys):
            expected = derivatives(f)(*xs)
        compiled = derivatives(ad.compile(lambda *xs: f(*xs)))
        for _ in range(2):
            with replayed(keys):
                try:
                    found = compiled(*xs)
                except errors.TrackedError:
                    assert asks
                    return
            alike(found, expected)


def cube(x: Any) -> Any:
    return (x**3).sum() * x[0]


AROUND: dict[str, Any] = {
    "grad": lambda f: lambda x: ad.grad(f)(x),
    "hessian": lambda f: lambda x: ad.hessian(f)(x),
    "jacobian forward": lambda f: lambda x: ad.jacobian(f, mode="forward")(x),
    "jacobian reverse": lambda f: lambda x: ad.jacobian(f, mode="reverse")(x),
    "vmap of grad": lambda f: lambda x: ad.vmap(ad.grad(f))(ad.stack([x, 2 * x])),
    "grad of vmap": lambda f: lambda x: ad.grad(lambda x: ad.vmap(f)(ad.stack([x, 2 * x])).sum())(x),
    "hvp": lambda f: lambda x: ad.hvp(f, (x,), (x,)),
    "third order": lambda f: lambda x: ad.jacobian(ad.hessian(f))(x),
    "linearize": lambda f: lambda x: ad.linearize(f, x)[1](x),
    "jet": lambda f: lambda x: ad.jet(f, (x,), ([ad.ones_like(x), x],)),
    "checkpoint": lambda f: lambda x: ad.grad(ad.checkpoint(f))(x),
    "scan": lambda f: lambda x: ad.grad(lambda x: ad.scan(lambda c, _: (c * f(x), None), 1.0, None, length=3)[0])(x),
    "backward": lambda f: lambda x: (lambda w: f(w).backward()[w])(x.require_grad()),
    "create_graph": lambda f: (
        lambda x: (lambda w: (f(w).backward(create_graph=True)[w] ** 2).sum().backward()[w])(x.require_grad())
    ),
}


@pytest.mark.parametrize("name", AROUND)
def test_transforms_around(name: str) -> None:
    for g in (cube, lambda x: ad.scan(lambda c, y: (c * y, None), 1.0, x)[0]):
        f = ad.compile(g)
        for _ in range(2):
            alike(AROUND[name](f)(ad.tensor(X)), AROUND[name](g)(ad.tensor(X)))


OF_CONSTANTS: dict[str, Any] = {
    "choice": lambda w: ad.cond(w.sum() > 0, lambda: w[0] * 2, lambda: w[1]),
    "scan": lambda w: ad.scan(lambda c, r: (c + r, None), w[0], w)[0],
    "loop": lambda w: ad.while_loop(lambda c: c.sum() < 10, lambda c: c * 2, w)[0],
    "bounded loop": lambda w: ad.while_loop(lambda c: c.sum() < 10, lambda c: c * 2, w, max_steps=9)[0],
}


@pytest.mark.parametrize("name", OF_CONSTANTS)
def test_what_follows_from_constants_of_a_transform_is_no_less_constant(name: str) -> None:
    """So `backward` of it runs inside of forward mode, as without compiling."""

    def f(x: Any, w: Any) -> Any:
        scale = OF_CONSTANTS[name](w)
        v = w.detach().require_grad()
        return (ad.sin(v) * scale).sum().backward()[v] * x

    pushed = lambda f: lambda x, w: ad.jvp(lambda x: f(x, w), (x,), (x,))
    x, w = ad.tensor(2.0), ad.tensor([0.5, 0.25])
    expected = pushed(f)(x, w)
    alike(ad.compile(pushed(f))(x, w), expected)
    alike(pushed(ad.compile(f))(x, w), expected)


def root_of_two(x: Any, y: Any) -> Any:
    return x * 2, ad.sqrt(x) * y, y


INFINITE_SLOPES = {  # at x = 0, beside what is asked for
    "another result": lambda f, x, y: ad.grad(lambda x: f(x, y)[0].sum())(x),
    "all results in turn": lambda f, x, y: [
        ad.grad(lambda y, k=k: f(x, y)[k].sum())(y) for k in (1, 2, 1) for _ in range(4)
    ],
    "backward": lambda f, x, y: (lambda leaf: f(leaf, y)[0].sum().backward()[leaf])(x.require_grad()),
    "Hessian": lambda f, x, y: ad.hessian(lambda x: (f(x, y)[0] ** 2).sum())(x),
    "another argument": lambda f, x, y: ad.hessian(lambda y: (f(x, y)[1] ** 2).sum())(y),
    "reverse twice": lambda f, x, y: ad.grad(lambda y: ad.grad(lambda y: (f(x, y)[1] ** 2).sum())(y).sum())(y),
    "reverse over forward": lambda f, x, y: ad.grad(lambda y: ad.jvp(lambda y: f(x, y)[1] ** 2, (y,), (y,))[1].sum())(
        y
    ),
    "forward over reverse": lambda f, x, y: ad.jvp(ad.grad(lambda y: (f(x, y)[1] ** 2).sum()), (y,), (y + 1,)),
    "forward": lambda f, x, y: ad.jvp(lambda y: ad.sqrt(f(x, y)[0]) + f(x, y)[1], (y,), (y + 1,)),
    "each": lambda f, x, y: ad.vmap(ad.grad(lambda x, y: f(x, y)[0]))(x, y),
    "of all": lambda f, x, y: ad.grad(lambda x: ad.vmap(f)(x, y)[0].sum())(x),
}


@pytest.mark.parametrize("name", INFINITE_SLOPES)
def test_what_is_not_asked_for_counts_nothing(name: str) -> None:
    """Where results have no cotangents, or arguments no tangents, there are no zeros for them: 0 * inf is nan."""
    x, y = ad.asarray([0.0, 1.0]), ad.asarray([3.0, 5.0])
    use, compiled = INFINITE_SLOPES[name], ad.compile(root_of_two)
    for _ in range(4):
        found, expected = (ad.tree.leaves(use(f, x, y)) for f in (compiled, root_of_two))
        for a, b in zip(found, expected, strict=True):
            np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=1e-6)


def test_random_numbers_are_the_same_forward_and_backward() -> None:
    x = ad.ones(1000).require_grad()
    for f in (ad.compile(lambda x: ad.nn.dropout(x, 0.5)), ad.compile(ad.checkpoint(lambda x: ad.nn.dropout(x, 0.5)))):
        y = f(x)
        np.testing.assert_array_equal(y.sum().backward()[x].numpy(), y.detach().numpy())
        push = ad.jvp(f, (ad.ones(50),), (ad.ones(50),))
        np.testing.assert_array_equal(push[0].numpy(), push[1].numpy())


def constants(graph: Any) -> list[Any]:
    """The arrays that the text of a graph has only types of, in its order."""
    found: list[Any] = []
    for e in graph.equations:
        found += [x.const for x in e.operands if isinstance(x, Value) and x.const is not None and x.shape]
        for inner in e.graphs:
            found += constants(inner)
    return found + [x.const for x in graph.outputs if x.const is not None and x.shape]


@pytest.mark.parametrize(
    "name", sorted(LOOPS.keys() - {"grad of fori_loop"})
)  # which has a check: functions have no text
def test_graphs_are_read_from_their_text(name: str) -> None:
    args = [X, ALONG, WEIGHT]
    graph = ad.compile(LOOPS[name]).lower(*map(ad.tensor, args)).graph
    read = parse(str(graph), constants(graph))
    assert str(read) == str(graph)
    verify(read)
    expected = evaluate(graph, args, ad.NumPy())
    for run in (lambda: evaluate(read, args, ad.NumPy()), lambda: ReplayOf(read, ad.NumPy())(args)):
        for x, y in zip(run(), expected, strict=True):
            np.testing.assert_array_equal(x, y)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "inputs a: float64[2]",
        "a: float64[2]\noutputs a",
        "inputs a: float64[2]\nb: float64[2] = nothing(a)\noutputs b",
        "inputs a: float64[2]\nb: float64[2] = sin(c)\noutputs b",
        "inputs a: float64[2]\nb: float64[2] = sin(a\noutputs b",
        "inputs a: float64[2]\nb: float64[2] = add(a, <float64[2]>)\noutputs b",
        "inputs a float64[2]\noutputs a",
        "inputs a: float64[2]\noutputs a\noutputs a",
    ],
)
def test_what_is_no_text_of_a_graph(text: str) -> None:
    with pytest.raises(errors.GraphError, match="parse: "):
        parse(text)


IN_A_BATCH: dict[str, Any] = {
    "cond": lambda t: ad.cond(t.sum() > 0, lambda t: t * 2, lambda t: -t, t),
    "switch": lambda t: ad.switch((t.sum() > 0).astype(ad.int32), [lambda t: t * 2, lambda t: -t], t),
    "while": lambda t: ad.while_loop(lambda c: c.sum() < 3, lambda c: c + 1, t, max_steps=5),
    "loop": lambda t: ad.fori_loop(0, 3, lambda _, c: c * 2, t),
}


@pytest.mark.parametrize("name", IN_A_BATCH)
def test_choices_and_loops_in_a_batch_of_no_examples(name: str) -> None:
    f = ad.vmap(IN_A_BATCH[name])
    for x in (ad.zeros((0, 2)), ad.ones((2, 2))):
        compared(f, [x])
        compared(ad.grad(lambda x: f(x).sum()), [x])
