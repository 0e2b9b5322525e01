"""Solvers in compiled functions: steps of the graph, with the derivatives that they have without."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import adjoint as ad
from adjoint import errors

T = np.array([0.0, 0.5, 2.0])
SOLVERS: dict[str, Any] = {
    "root": lambda a: ad.implicit.root(lambda x, a: x**2 - a, 1.0, a),
    "root of a closure": lambda a: ad.implicit.root(lambda x: x**3 + x - a, np.ones(2)),
    "fixed_point": lambda a: ad.implicit.fixed_point(lambda x: ad.cos(0.5 * x * a), 1.0),
    "minimize": lambda a: ad.implicit.minimize(lambda x: ((x - a) ** 2).sum() + (x**4).sum(), {"x": np.zeros(2)}["x"]),
    "solver": lambda a: ad.implicit.root(lambda x, a: x**2 - a, 1.0, a, solver=lambda g, x: _bisected(g)),
    "odeint": lambda a: ad.odeint(lambda y, t: (y[1], -a * y[0]), (1.0, a), T)[0],
    "odeint, adjoint": lambda a: ad.odeint(lambda y, t, a: -a * y, 1.0, T, a, gradient="adjoint"),
    "odeint, Radau": lambda a: ad.odeint(lambda y, t, a: -a * y, 1.0, T, a, method="Radau"),
    "times": lambda a: ad.odeint(lambda y, t: -t * y, 1.0, ad.stack([0 * a, a, 2 * a])),
    "odeint_event": lambda a: ad.odeint_event(
        lambda y, t: (y[1], -9.81), (a, 0.0), (0.0, 9.0), event=lambda y, t: y[0]
    ),
}
ROUGH = {"odeint, adjoint": 1e-5}  # solved to the tolerance, by other steps for each nesting


def _bisected(g: Any, low: float = 0.0, high: float = 4.0) -> Any:
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if g(np.float64(middle)) < 0 else (low, middle)
    return np.float64(middle)


def total(f: Any) -> Any:
    return lambda a: sum((ad.tanh(y)).sum() for y in ad.tree.leaves(f(a)))


def pair(a: Any) -> Any:
    return ad.stack([a, 1.1 * a])


WAYS: dict[str, Any] = {
    "values": lambda f, C: C(f),
    "grad": lambda f, C: C(ad.grad(total(f))),
    "grad around": lambda f, C: ad.grad(C(total(f))),
    "grad of grad": lambda f, C: C(ad.grad(ad.grad(total(f)))),
    "grad of grad around": lambda f, C: ad.grad(ad.grad(C(total(f)))),
    "jvp": lambda f, C: C(lambda a: ad.jvp(f, (a,), (2 * a,))),
    "hessian": lambda f, C: C(ad.hessian(total(f))),
    "third": lambda f, C: C(ad.grad(ad.hessian(total(f)))),
    "vmap": lambda f, C: C(lambda a: ad.vmap(f)(pair(a))),
    "vmap of grad": lambda f, C: C(lambda a: ad.vmap(ad.grad(total(f)))(pair(a))),
    "grad of vmap": lambda f, C: C(ad.grad(lambda a: ad.vmap(total(f))(pair(a)).sum())),
    "vmap of grad around": lambda f, C: lambda a: ad.vmap(ad.grad(C(total(f))))(pair(a)),
    "in a step": lambda f, C: C(lambda a: ad.fori_loop(0, 2, lambda i, c: ad.tanh(c) * total(f)(a) + 1, a)),
    "of a step": lambda f, C: C(
        ad.grad(lambda a: ad.fori_loop(0, 2, lambda i, c: c * 0.5 + total(f)(a * (1 + c * c)), a * 0))
    ),
}


def _itself(f: Any) -> Any:
    return f


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", SOLVERS)
def test_solvers_are_steps_with_derivatives_of_any_order(name: str, way: str) -> None:
    if name == "times" and "vmap" in way:
        pytest.skip("examples share the times")
    a = ad.tensor(np.float64(1.3))
    expected = ad.tree.leaves(WAYS[way](SOLVERS[name], _itself)(a))
    f = WAYS[way](SOLVERS[name], ad.compile)
    for _ in range(2):
        for x, y in zip(ad.tree.leaves(f(a)), expected, strict=True):
            assert x.dtype is y.dtype
            np.testing.assert_allclose(x.numpy(), y.numpy(), rtol=ROUGH.get(name, 1e-9), atol=1e-12)


def test_at_any_size() -> None:
    f = lambda a: ad.implicit.root(lambda x: x**3 + x * a.shape[0] - a, ad.zeros_like(a))
    compiled = ad.compile(f, dynamic=True)
    for n in (2, 3, 7, 0 + 1):
        a = ad.asarray(np.linspace(1.0, 2.0, n))
        np.testing.assert_allclose(compiled(a).numpy(), f(a).numpy(), rtol=1e-12)


def test_errors_are_those_without_a_program() -> None:
    f = ad.compile(lambda a: ad.implicit.root(lambda x: x**2 + a, 1.0))
    assert abs(f(ad.tensor(-4.0)).item() - 2) < 1e-5
    with pytest.raises(errors.ConvergenceError, match="root"):
        f(ad.tensor(4.0))
    times = ad.compile(lambda t: ad.odeint(lambda y, t: -y, 1.0, t))
    assert times(ad.asarray(T)).shape == (3,)
    with pytest.raises(errors.ArgumentError, match="neither increases nor decreases"):
        times(ad.asarray(T[[0, 2, 1]]))
    with pytest.raises(errors.ShapeError, match="times along one axis"):
        times(ad.asarray(T[:0]))


def test_a_program_with_a_solver_is_one_step_of_the_graph() -> None:
    graph = ad.compile(SOLVERS["root"]).lower(ad.tensor(2.0)).graph
    assert [e.name for e in graph.equations] == ["host", "reshape"]
