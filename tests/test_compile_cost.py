"""Compiled functions looked at: recorded ahead of time, and what their equations cost."""

from __future__ import annotations

import types
from typing import Any

import numpy as np
import pytest
from test_compile import counted

import adjoint as ad
from adjoint import errors
from adjoint.compiler import cost as costs
from adjoint.compiler.replay import Replay


def test_ahead_of_time_nothing_runs_and_the_first_call_records_nothing() -> None:
    shown: list[Any] = []
    place = type("Place", (), {"see": staticmethod(shown.append)})()

    def f(x: Any, w: Any, scale: float = 1.0) -> Any:
        ad.debug.callback(place.see, x.sum())
        return x @ w * scale

    g, runs = counted(f)
    assert g.compile((2, 3), w=(3, 4)) is g
    assert g.compile((10**7, 10**7), (10**7, 4)) is g  # more than fits into memory
    del runs[:]
    assert g.compile((2, 3), ad.zeros((3, 4))) is g
    assert g.compile((2, 3), ad.zeros((3, 4)), scale=2.0) is g
    assert (len(runs), shown) == (2, [])
    np.testing.assert_array_equal(g(ad.ones((2, 3)), ad.ones((3, 4)), scale=2.0).numpy(), np.full((2, 4), 6.0))
    g(ad.ones((2, 3)), ad.ones((3, 4)))
    assert (len(runs), len(shown)) == (2, 2)
    g(ad.ones((2, 3), dtype=ad.float64), ad.ones((3, 4), dtype=ad.float64))
    assert len(runs) == 3


def test_structures_and_modules_ahead_of_time() -> None:
    net = ad.nn.Linear(3, 2)
    g, runs = counted(lambda net, batch: net(batch["x"]))
    g.compile(net, {"x": ad.ones((4, 3))})
    g(net, {"x": ad.zeros((4, 3))})
    assert len(runs) == 1


def test_the_cost_of_equations() -> None:
    def f(w: Any, x: Any) -> Any:
        loss = ad.grad(lambda w: (ad.tanh(x @ w) ** 2).sum())(w)
        return loss, ad.scan(lambda c, row: (c + row * row, None), ad.zeros_like(x[0]), x)[0]

    cost = ad.compile(f).cost(np.ones((3, 2)), np.ones((10, 3)))
    by_name = {step.equation.split("= ")[1].split("(")[0]: step for step in cost.steps}
    assert by_name["tanh"].operations == 20
    assert by_name["tanh"].bytes == 2 * 20 * 8
    assert by_name["matmul"].operations == 2 * 3 * 10 * 2
    assert by_name["scan"].operations == 10 * 6
    assert all(step.seconds > 0 and step.expected > 0 for step in cost.steps)
    assert cost.seconds > 0
    lines = str(cost).split("\n")
    assert len(lines) == len(cost.steps) + 3
    assert lines[0].split() == ["equation", "operations", "kB", "µs", "expected"]
    assert lines[-2].split()[:2] == ["total", str(sum(step.operations for step in cost.steps))]


def test_the_graph_after_each_pass() -> None:
    lowered = ad.compile(lambda x: ad.where(x > 0, x * 1.0, -(x * 1.0)) + x * 1.0).lower(ad.ones(3))
    assert list(lowered.passes) == ["exact_algebra", "common_subexpressions", "dead_code", "parts_kept"]
    sizes = [lowered.recorded.size(), *[graph.size() for graph in lowered.passes.values()]]
    assert sizes[0] > sizes[1]
    assert sizes == sorted(sizes, reverse=True)
    assert str(lowered.passes["dead_code"]) == str(lowered.graph)


def test_the_cost_at_a_size() -> None:
    f = ad.compile(
        lambda x: ad.cond(x.sum() > 0, ad.sin, lambda x: x * x * x, x) + ad.random.normal(x.shape), dynamic=True
    )
    for n in (4, 6):
        cost = f.cost(ad.ones(n))
        (choice,) = [step for step in cost.steps if "branch" in step.equation]
        assert choice.operations == 2 * n
    assert f._recordings == 1


def test_what_fails_raises_what_it_raises_otherwise() -> None:
    with pytest.raises(errors.SingularError, match="cholesky: a matrix is not positive definite"):
        ad.compile(ad.linalg.cholesky).cost(-np.eye(2))
    with pytest.raises(errors.ShapeError, match="compile: sizes are not negative"):
        ad.compile(lambda x: x).compile((-1, 2))


def test_inside_of_a_transform_there_is_no_graph_of_its_own() -> None:
    f = ad.compile(lambda x: x * x)
    for look in (f.lower, f.compile, f.cost):
        with pytest.raises(errors.ArgumentError, match="called inside of a transform; call it outside"):
            ad.grad(lambda x, look=look: look(x))(1.0)


def test_kernels_are_counted_and_timed_where_there_is_machine_code(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("llvmlite")
    monkeypatch.setenv("ADJOINT_COMPILE", "1")

    def f(w: Any, x: Any) -> Any:
        slope = ad.grad(lambda w: (ad.tanh(x @ w) ** 2).mean())(w)
        lines = ad.scan(lambda c, row: (ad.sin(c) * row, c), x[0], x)
        return slope, ad.linalg.cholesky(w.mT @ w), lines

    rng = np.random.default_rng(0)
    arrays = rng.normal(size=(60, 50)), rng.normal(size=(70, 60))  # small matrices are factored by machine code
    g = ad.compile(f)
    expected, _ = ad.tree.flatten(g(*arrays))
    kernels = [line for line in g.lower(*arrays).kernels if not line.startswith(" ")]

    p = ad.Profiled(ad.NumPy())
    w, x = (ad.tensor(a, device=ad.Autodiff(p)) for a in arrays)
    g(w, x)
    p.reset()
    for _ in range(3):
        out, _ = ad.tree.flatten(g(w, x))
        for y, z in zip(out, expected, strict=True):
            np.testing.assert_array_equal(y.numpy(), z)
    rows = {row.primitive: row for row in p.profile().rows}
    assert rows["cholesky"].calls == 3
    for line in kernels:
        (row,) = [row for name, row in rows.items() if name.startswith(f"f {line}")]
        assert row.calls == 3
        assert row.bytes > 0
    shown = [step.equation for step in g.cost(*arrays).steps]
    assert all(any(text.startswith(line) for text in shown) for line in kernels)
    assert any("cholesky" in text for text in shown)
    assert len(shown) >= len(kernels) + 1
    product = next(step for step in g.cost(*arrays).steps if "(70, 60) @ (60, 50)" in step.equation)
    assert (product.operations, product.bytes) == (2 * 70 * 60 * 50, (70 * 60 + 60 * 50 + 70 * 50) * 8)


@pytest.mark.parametrize("how", ["replay", "1"])
def test_effects_are_left_out_and_nobody_draws(how: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ADJOINT_COMPILE", how)
    shown: list[Any] = []

    def f(x: Any) -> Any:
        ad.debug.callback(shown.append, x.sum())
        y = ad.cond(x.sum() > 0, lambda x: (ad.debug.callback(shown.append, x), x * 2.0)[1], lambda x: x, x)
        return y + ad.random.normal(x.shape)

    def seeds(x: Any) -> Any:
        ad.random.seed(3)
        return ad.fori_loop(0, 3, lambda i, x: (ad.random.seed(4), x + ad.random.normal())[1], x)

    ad.random.seed(1)
    expected = [ad.random.normal().item() for _ in range(3)]
    ad.random.seed(1)
    found = [ad.random.normal().item()]
    assert len(ad.compile(f).cost(np.ones(3)).steps) >= 2
    assert shown == []
    found.append(ad.random.normal().item())
    ad.compile(seeds).cost(np.ones(3))
    assert [*found, ad.random.normal().item()] == expected
    ad.compile(f)(np.ones(3))
    assert len(shown) == 2


@pytest.mark.parametrize("how", ["replay", "1"])
def test_the_run_that_makes_code_is_not_timed(how: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ADJOINT_COMPILE", how)
    ad.compile(ad.exp).cost(np.ones(3))  # this machine's speed is measured once
    now = [0.0]  # seconds of a clock that machine code, when it is made, and functions move
    monkeypatch.setattr(costs, "time", types.SimpleNamespace(perf_counter=lambda: now[0]))
    link = Replay._link

    def slow(self: Replay, code: Any) -> None:
        now[0] += 100.0
        link(self, code)

    def step(x: Any) -> Any:
        now[0] += 1.0
        return x

    monkeypatch.setattr(Replay, "_link", slow)
    host = ad.external(step, like=lambda x: x)
    for draws in (False, True):
        f = ad.compile(lambda x, draws=draws: host(ad.exp(x)) * (ad.random.normal(x.shape) if draws else 2.0))
        cost = f.cost(np.ones(3))
        assert cost.seconds == 1.0
        assert sum(s.seconds for s in cost.steps) == 1.0


def test_kernels_are_counted_beside_donated_arguments_checks_and_reverse_mode(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("llvmlite")
    monkeypatch.setenv("ADJOINT_COMPILE", "1")
    x = np.linspace(0.5, 2.0, 12).reshape(3, 4)
    slope = np.exp(x) * (np.sin(x) + np.cos(x))

    def calls(p: Any) -> dict[str, int]:
        found = {row.primitive: row.calls for row in p.profile().rows}
        p.reset()
        return found

    for level in (lambda p: p, ad.Autodiff):
        p = ad.Profiled(ad.NumPy())
        device = level(p)
        step = ad.compile(lambda x, g: x - 0.5 * ad.exp(g), donate=0)
        for _ in range(3):
            given, g = ad.tensor(x, device=device), ad.tensor(x, device=device)
            np.testing.assert_allclose(step(given, g).numpy(), x - 0.5 * np.exp(x))
            with pytest.raises(errors.EndedError):
                given.numpy()
        assert calls(p) == {"<lambda> n0_0: 3 x 4: exp, multiply, subtract": 3}

        picked = ad.compile(lambda x, i: ad.exp(x)[i] * 2.0)
        for place in (1, 7, 0):
            places = ad.tensor(np.array([0, place]), device=device)
            if place == 7:
                with pytest.raises(IndexError, match="index 7 is out of range"):
                    picked(ad.tensor(x, device=device), places)
            else:
                found = picked(ad.tensor(x, device=device), places).numpy()
                np.testing.assert_allclose(found, np.exp(x)[[0, place]] * 2.0)
        counted = calls(p)
        assert counted["<lambda> n0_0: 3 x 4: exp"] == 3  # also of the call that failed
        assert counted["exp"] == 1  # which NumPy ran again, for the error

    energy = ad.compile(lambda x: (ad.sin(x) * ad.exp(x)).sum())
    for _ in range(3):
        w = ad.tensor(x, device=device).require_grad()
        np.testing.assert_allclose(energy(w).backward()[w].numpy(), slope)
    counted = calls(p)
    assert counted["<lambda> n0_0: 3 x 4: sin, exp, multiply, sum"] == 3
    assert [count for name, count in counted.items() if name.startswith("<lambda>, backward")] == [3]
    assert "sin" not in counted
    squared = lambda f: ad.grad(lambda x: (ad.grad(f)(x) ** 2).sum())
    second = squared(energy)(ad.tensor(x, device=device))
    np.testing.assert_allclose(second.numpy(), 2.0 * slope * 2.0 * np.exp(x) * np.cos(x))
    assert any(name.startswith("<lambda>, pullback") for name in calls(p))
