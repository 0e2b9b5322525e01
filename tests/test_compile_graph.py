"""Graphs of compiled functions: passes, the verifier, the text, and rules that no eager call has looked at."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import adjoint as ad
from adjoint import errors
from adjoint.compiler.graph import Equation, Graph, Value, evaluate, verify
from adjoint.compiler.passes import PASSES, common_subexpressions, dead_code, exact_algebra
from adjoint.compiler.replay import Replay

X = np.array([0.5, 1.5])
NUMPY = ad.NumPy()


F8 = np.dtype("f8")


def graph_of(f: Any, *xs: Any) -> Graph:
    return ad.compile(f).lower(*xs).recorded  # type: ignore[no-any-return]


def names(graph: Graph) -> list[str]:
    return [e.name for e in graph.equations]


SPECIAL = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 1.5, 5e-324])


@pytest.mark.parametrize(
    ("f", "left"),
    [
        (lambda x: x * 1, 0),
        (lambda x: 1.0 * x, 0),
        (lambda x: x / 1, 0),
        (lambda x: x - 0, 0),
        (lambda x: x + (-0.0), 0),
        (lambda x: ad.negative(ad.negative(x)), 0),
        (lambda x: x.reshape((7,)), 0),
        (lambda x: x[:], 0),
        (lambda x: x[0:7:1], 0),
        (lambda x: x[...], 0),
        (lambda x: x[::-1], 1),
        (lambda x: x[:6], 1),
        (lambda x: x + 0, 1),
        (lambda x: x - (-0.0), 1),
        (lambda x: x * 0, 1),
        (lambda x: x * ad.ones((2, 1)), 1),
        (lambda x: (x * (1 + 0j)).real, 3),
    ],
)
def test_algebra_is_exact(f: Any, left: int) -> None:
    graph = graph_of(f, SPECIAL)
    small = dead_code(exact_algebra(graph))
    verify(small)
    assert len(small.equations) == left
    with np.errstate(all="ignore"):
        for x, y in zip(evaluate(graph, [SPECIAL], NUMPY), evaluate(small, [SPECIAL], NUMPY), strict=True):
            np.testing.assert_array_equal(x, y)
            np.testing.assert_array_equal(np.signbit(x), np.signbit(y))


def test_common_subexpressions_are_computed_once_but_not_across_a_checkpoint() -> None:
    f = lambda x: (ad.sin(x) * ad.sin(x) + ad.sin(x) * ad.sin(x)).sum()
    graph = dead_code(common_subexpressions(graph_of(f, X)))
    assert sorted(names(graph)) == ["add", "multiply", "sin", "sum"]
    zeros = lambda x: (ad.copysign(x, 0.0), ad.copysign(x, -0.0))
    assert len(common_subexpressions(graph_of(zeros, X)).equations) == 2
    slope = ad.grad(ad.checkpoint(lambda x: ad.exp(ad.sin(x)).sum()))
    assert names(ad.compile(lambda x: (ad.exp(ad.sin(x)), slope(x))).lower(X).graph).count("exp") == 2


def test_dead_code_goes_also_from_loops() -> None:
    def f(x: Any) -> Any:
        (a, _), (ys, _) = ad.scan(lambda c, y: ((c[0] * y, ad.exp(c[1])), (c[0], c[1])), (1.0, 2.0), x)
        ad.sin(x)
        return a, ys

    graph = ad.compile(f).lower(X).graph
    (loop,) = [e for e in graph.equations if e.graphs]
    assert "exp" not in names(loop.graphs[0])
    assert loop.parameters["count"] == 1
    assert "sin" not in names(graph)


def test_loops_keep_what_their_gradients_read() -> None:
    def written(x: Any, w: Any) -> Any:
        def step(c: Any, i: Any) -> Any:
            y = ad.sin(c[i - 1]) * c[2] + (w @ c[:4])[0]
            c = c.copy()
            c[i] = y
            return c, ()

        return (ad.scan(step, x, ad.arange(1, 50))[0] ** 2).sum()

    f = ad.grad(written, (0, 1))
    rng = np.random.default_rng(0)
    x, w = rng.normal(size=60), rng.normal(size=(4, 4))
    compiled = ad.compile(f)
    for found, expected in zip(compiled(x, w), f(x, w), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-12)
    graph = compiled.lower(x, w).graph
    verify(graph)
    loops = [e for e in graph.equations if e.name == "scan"]
    assert len(loops) == 2
    assert max(x.shape for x in loops[0].results if isinstance(x, Value) and x.shape[0] == 49) == (49, 4)
    held = ad.compile(ad.grad(lambda x: ad.scan(lambda c, r: (ad.sin(c) * r, ()), x, x)[0].sum())).lower(x).graph
    assert any(x.shape == (60, 60) for e in held.equations for x in e.results if isinstance(x, Value))  # all is read


def test_the_verifier_finds_what_is_wrong() -> None:
    x, y, z = (Value((2,), F8) for _ in range(3))
    sine = Equation("sin", [x], {}, [y])
    verify(Graph([x], [sine], [y]))
    for graph in (
        Graph([], [sine], [y]),
        Graph([x], [sine, sine], [y]),
        Graph([x], [sine], [z]),
        Graph([x, x], [sine], [y]),
        Graph([x], [Equation("sin", [x], {}, [Value((3,), F8)])], []),
        Graph([x], [Equation("sin", [x], {}, [Value((2,), np.dtype("f4"))])], []),
    ):
        with pytest.raises(errors.GraphError):
            verify(graph)


def test_passes_keep_graphs_valid_and_replay_is_the_evaluator() -> None:
    f = lambda x: ad.hessian(lambda x: ad.scan(lambda c, y: (ad.sin(c * y), c), 1.0, x)[1].sum())(x)
    graph = graph_of(f, X)
    expected = evaluate(graph, [X], NUMPY)
    for change in PASSES:
        graph = change(graph)
        verify(graph)
        for x, y in zip(Replay(graph, NUMPY)([X]), expected, strict=True):
            np.testing.assert_array_equal(x, y)


def test_the_graph_of_a_loop_as_text() -> None:
    f = ad.compile(lambda x: ad.scan(lambda c, y: (c + y, None), 0.0, x)[0])
    assert str(f.lower(X)).splitlines() == [
        "inputs a: float64[2]",
        "b: float64[] = scan(0.0, a; count=1, rows=1, length=2, reverse=False)",
        "    inputs c: float64[], d: float64[]",
        "    e: float64[] = add(c, d)",
        "    outputs e",
        "outputs b",
    ]


# --- what is looked at the first time ------------------------------------------------------------

LINE = np.array([2.0, -0.5, 1.5])
COMPILED: dict[str, Any] = {
    "grad in": lambda f: ad.compile(ad.grad(f)),
    "grad around": lambda f: ad.grad(ad.compile(f)),
    "vmap in": lambda f: lambda x: ad.compile(ad.vmap(ad.grad(f)))(x[None])[0],
    "hessian in": lambda f: lambda x: ad.compile(ad.hessian(f))(x).sum(axis=0),
}


@pytest.mark.parametrize("way", COMPILED)
def test_rules_that_no_eager_call_has_looked_at(way: str) -> None:
    """A transposed rule is looked at once, whether it is linear: in a program when it runs, each time."""

    def pushed(slope: Any) -> Any:
        f = ad.custom_jvp(lambda x: x**3)
        f.defjvp(lambda primals, tangents: (f(*primals), slope(primals[0], tangents[0])))
        return lambda x: f(x).sum()

    good, bad = lambda x, t: 3 * x**2 * t, lambda x, t: 3 * x**2 * t * t
    wanted = 6 * LINE if way == "hessian in" else 3 * LINE**2
    run, wrong = COMPILED[way](pushed(good)), COMPILED[way](pushed(bad))
    for _ in range(2):
        np.testing.assert_allclose(run(LINE), wanted, rtol=1e-13)
        with pytest.raises(errors.AdjointError, match="not linear in tangents"):
            wrong(LINE)


@pytest.mark.parametrize("way", COMPILED)
def test_transposes_in_programs(way: str) -> None:
    transposed = lambda f: lambda x: (ad.linear_transpose(lambda y: f(x, y), x)(x)[0] * x).sum()
    wanted = 6 * LINE if way == "hessian in" else 3 * LINE**2
    np.testing.assert_allclose(COMPILED[way](transposed(lambda x, y: x * y))(LINE), wanted, rtol=1e-13)
    for f, match in [(lambda x, y: x * y + x, "not zero where"), (lambda x, y: x * y * y, "not its own derivative")]:
        with pytest.raises(errors.AdjointError, match=match):
            COMPILED[way](transposed(f))(LINE)
