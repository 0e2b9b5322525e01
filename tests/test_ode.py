"""Differential equations: solutions with known values, and their derivatives under every nesting of transforms."""

from __future__ import annotations

import functools
import importlib
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.integrate
import scipy.linalg
from conftest import peer
from numpy.testing import assert_allclose
from test_custom import NESTINGS, flat

import adjoint as ad
from adjoint.errors import (
    ArgumentError,
    ArgumentTypeError,
    ConvergenceError,
    DtypeError,
    ShapeError,
    TrackedError,
)
from adjoint.solvers import dormand_prince, radau

TIGHT = {"rtol": 1e-11, "atol": 1e-11}
WAYS: dict[str, Any] = {
    "direct": {"gradient": "direct"},
    "adjoint": {"gradient": "adjoint"},
    "Radau": {"method": "Radau"},
}


def grown(x: Any, w: Any) -> Any:
    """The solution at time 1 of dy/dt = w y from x, and of dz/dt = sum(w y) from 0."""
    return {"y": x * ad.exp(w), "z": (x * ad.expm1(w)).sum()}


def by_equation(x: Any, w: Any, way: str) -> Any:
    def f(state: Any, t: Any, w: Any) -> Any:
        slope = w * state["y"]
        return {"y": slope, "z": slope.sum()}

    start = {"y": x, "z": np.zeros(())}
    ys = ad.odeint(f, start, np.array([0.0, 1.0]), w, rtol=1e-9, atol=1e-9, **WAYS[way])
    return {key: y[1] for key, y in ys.items()}


@pytest.mark.parametrize("nesting", NESTINGS)
@pytest.mark.parametrize("way", WAYS)
def test_derivatives_are_those_of_the_solution(way: str, nesting: str) -> None:
    run = NESTINGS[nesting]
    solved = run(lambda x, w: by_equation(x, w, way))
    for mine, wanted in zip(flat(solved), flat(run(grown)), strict=True):
        assert_allclose(mine, wanted, rtol=1e-6, atol=1e-6)
        assert np.shape(mine) == np.shape(wanted)


# --- solutions that are known ---


def test_the_coefficients() -> None:
    stiff: Any = scipy.integrate.Radau
    constants = importlib.import_module(stiff.__module__)
    assert_allclose(radau.NODES, constants.C, rtol=1e-15)
    assert_allclose(radau.ERROR, constants.E, rtol=1e-13)
    assert_allclose([radau.REAL, radau.COMPLEX], [constants.MU_REAL, constants.MU_COMPLEX.conjugate()], rtol=1e-13)
    assert_allclose(radau.DENSE.T, constants.P, rtol=1e-13)
    known = scipy.integrate.RK45
    assert_allclose(dormand_prince.STAGES[:5, :5], known.A[1:], rtol=1e-15)
    assert_allclose(dormand_prince.STAGES[5], known.B, rtol=1e-15)
    assert_allclose(dormand_prince.NODES, known.C[1:], rtol=1e-15)
    assert_allclose(np.abs(dormand_prince.ERROR), np.abs(known.E), rtol=1e-15)
    assert_allclose(dormand_prince.DENSE, known.P, rtol=1e-15)


MATRIX = np.array([[0.0, 1.0, 0.2], [-1.0, -0.1, 0.3], [0.1, -0.2, -0.3]])
START = np.array([1.0, 0.5, -0.4])
TIMES = np.array([0.5, 1.0, 1.3, 2.5])


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("times", [TIMES, TIMES[::-1], -TIMES], ids=["forward", "backward", "negative"])
def test_linear_equations(times: Any, way: str) -> None:
    f = lambda y0, a: ad.odeint(lambda y, t, a: a @ y, y0, times, a, **WAYS[way], **TIGHT)
    spans = times - times[0]
    assert_allclose(f(START, MATRIX), [scipy.linalg.expm(MATRIX * s) @ START for s in spans], rtol=1e-9)
    direction = np.array([[0.3, -1.0, 0.5], [0.1, 0.7, -0.2], [1.0, 0.0, 0.4]])
    moved = [scipy.linalg.expm_frechet(MATRIX * s, direction * s, compute_expm=False) @ START for s in spans]
    assert_allclose(ad.jvp(lambda a: f(START, a), (MATRIX,), (direction,))[1], moved, rtol=1e-8, atol=1e-9)
    by_start, by_matrix = ad.jacobian(f, (0, 1), "reverse")(START, MATRIX)
    assert_allclose(by_start, [scipy.linalg.expm(MATRIX * s) for s in spans], rtol=1e-8, atol=1e-9)
    assert_allclose(np.einsum("miab,ab->mi", by_matrix, direction), moved, rtol=1e-8, atol=1e-9)


@pytest.mark.parametrize("tol", [1e-4, 1e-6, 1e-8, 1e-10])
def test_the_oscillator_at_any_tolerance(tol: float) -> None:
    t = np.linspace(0, 10, 101)
    f = lambda y, t: {"x": y["v"], "v": -y["x"]}
    ys = ad.odeint(f, {"x": 1.0, "v": 0.0}, t, rtol=tol, atol=tol)
    assert ys["x"].shape == ys["v"].shape == (101,)
    assert 0 < np.abs(ys["x"] - np.cos(t)).max() < 20 * tol
    assert_allclose(ys["v"], -np.sin(t), rtol=0, atol=20 * tol)


def test_between_steps() -> None:
    """Few steps, many times: the states come from the interpolant."""
    calls = []
    t = np.linspace(0, 1, 1001)
    ys = ad.odeint(lambda y, t: calls.append(1) or -2 * y, 1.0, t, rtol=1e-6, atol=1e-6)  # type: ignore[func-returns-value]
    assert len(calls) < 100
    assert_allclose(ys, np.exp(-2 * t), rtol=0, atol=2e-6)


def test_time_counts() -> None:
    t = np.array([0.0, 1.0, 3.0])
    assert_allclose(ad.odeint(lambda y, t: ad.cos(t), 0.0, t, **TIGHT), np.sin(t), atol=1e-10)
    assert_allclose(ad.odeint(lambda y, t: t * y, 1.0, t, **TIGHT), np.exp(t**2 / 2), rtol=1e-9)


def test_the_longest_step() -> None:
    """A short pulse after a long silence is seen only by steps that are short enough."""
    pulse = lambda y, t: ad.exp(-(((t - 5.1) / 0.05) ** 2))
    t = np.array([0.0, 10.0])
    assert ad.odeint(pulse, 0.0, t)[1] < 1e-3
    assert_allclose(ad.odeint(pulse, 0.0, t, hmax=0.1)[1], 0.05 * math.sqrt(math.pi), rtol=1e-7)


def test_times_that_are_equal() -> None:
    f = lambda y, t: -y
    assert_allclose(ad.odeint(f, 2.0, np.array([1.0])), [2.0])
    assert_allclose(ad.odeint(f, 2.0, np.array([1.0, 1.0, 1.0])), [2.0, 2.0, 2.0])
    t = np.array([0.0, 0.0, 1.0, 1.0, 1.0, 2.0])
    for way in WAYS:
        solve = functools.partial(ad.odeint, f, **WAYS[way])
        assert_allclose(solve(2.0, t), 2 * np.exp(-t), rtol=1e-7)
        assert_allclose(ad.jacobian(solve)(2.0, t), np.exp(-t), rtol=1e-7)
        by_time = np.diag(-2 * np.exp(-t))
        by_time[:, 0] += 2 * np.exp(-t)
        assert_allclose(ad.jacobian(solve, 1)(2.0, t), by_time, rtol=1e-6, atol=1e-7)


def test_complex_states() -> None:
    t = np.array([0.0, 1.0, 2.0])
    f = lambda y0, w: ad.odeint(lambda y, t, w: 1j * w * y, y0, t, w, **TIGHT)
    y0, w = np.array([1.0 + 0.5j, -1.0j]), np.array([0.7, 1.0 - 0.2j])
    assert_allclose(f(y0, w), y0 * np.exp(1j * w * t[:, None]), rtol=1e-9)
    turned = lambda y, t, w: 1j * w * ad.conj(y)
    for way in WAYS:
        solve = functools.partial(ad.odeint, turned, **WAYS[way], rtol=1e-10, atol=1e-10)
        ad.testing.check_grads(lambda y0, w, solve=solve: solve(y0, t[:2], w), (y0, w), order=1)


def test_dtypes() -> None:
    f = lambda y, t: -y * t
    y = ad.odeint(f, np.ones(2, np.float32), np.arange(3), rtol=1e-5, atol=1e-5)
    assert y.dtype == np.float32
    assert_allclose(y[:, 0], np.exp(-(np.arange(3.0) ** 2) / 2), atol=1e-4)
    mixed = ad.odeint(
        lambda y, t: {"a": y["b"].real, "b": 1j * y["b"]}, {"a": np.float32(0), "b": 1 + 0j}, [0.0, 1.0], **TIGHT
    )
    assert (mixed["a"].dtype, mixed["b"].dtype) == (np.float32, np.complex128)
    assert_allclose(mixed["a"][1], math.sin(1), rtol=1e-6)


@pytest.mark.parametrize("leaf", ["reference", "strict"])
def test_on_other_backends(leaf: str) -> None:
    device: Any = ad.Reference() if leaf == "reference" else ad.ArrayAPI(pytest.importorskip("array_api_strict"))
    rate = ad.tensor(np.array([0.5, 1.0]), device=ad.Autodiff(device)).require_grad()
    for way in WAYS:
        y0, t = ad.ones(2, dtype=ad.float64, device=device), np.array([0.0, 2.0])
        ys = ad.odeint(lambda y, t, rate: -rate * y, y0, t, rate, rtol=1e-7, atol=1e-7, **WAYS[way])
        assert ys.device is rate.device
        assert_allclose(ys[1].sum().backward()[rate].numpy(), -2 * np.exp([-1.0, -2.0]), rtol=1e-6)


def test_under_checkpointing(device: ad.Autodiff[ad.NumPy]) -> None:
    rate = ad.tensor(np.array(0.5), device=device).require_grad()
    for way in WAYS:
        ys = ad.odeint(lambda y, t: -rate * y, 1.0, np.array([0.0, 2.0]), **WAYS[way])
        assert_allclose(ys[1].backward()[rate].numpy(), -2 * math.exp(-1), rtol=1e-6)


# --- derivatives ---


def pendulum(y: Any, t: Any, p: Any) -> Any:
    return ad.stack([y[1], -p[0] * ad.sin(y[0]) - p[1] * y[1] + 0.3 * ad.cos(t)])


@pytest.mark.parametrize("way", WAYS)
def test_numerically(way: str) -> None:
    f = lambda y0, t, p: ad.odeint(pendulum, y0, t, p, **WAYS[way], rtol=1e-9, atol=1e-9)
    args = np.array([1.0, 0.2]), np.array([0.0, 0.1, 0.3]), np.array([1.5, 0.1])
    ad.testing.check_grads(f, args, order=2)


def test_direct_is_the_derivative_of_what_was_computed() -> None:
    """Steps soon have the length hmax, whatever comes; the solution is wrong, but its derivative is that of it."""
    f = lambda y0, p: ad.odeint(pendulum, y0, [0.0, 1.0, 2.5, 4.0], p, atol=1e6, hmax=0.8)
    y0, p = np.array([1.0, 0.2]), np.array([1.5, 0.1])
    exact = ad.odeint(pendulum, y0, [0.0, 1.0, 2.5, 4.0], p, **TIGHT)
    assert np.abs(f(y0, p) - exact).max() > 1e-4
    ad.testing.check_grads(f, (y0, p), order=2)


def lorenz(y: Any, t: Any, p: Any) -> Any:
    return ad.stack([p[0] * (y[1] - y[0]), y[0] * (p[1] - y[2]) - y[1], y[0] * y[1] - p[2] * y[2]])


def test_lorenz() -> None:
    """Errors grow a hundredfold on the way; three ways to the gradient agree all the same."""
    t, p, y0 = np.linspace(0, 1, 6), np.array([10.0, 28.0, 8 / 3]), np.array([1.0, 1.0, 1.0])

    def loss(y0: Any, p: Any, way: str = "direct") -> Any:
        return (ad.odeint(lorenz, y0, t, p, rtol=1e-10, atol=1e-10, **WAYS[way])[:, 0] ** 2).sum()

    direct, adjoint = (ad.grad(loss, (0, 1))(y0, p, way) for way in ("direct", "adjoint"))
    for mine, other in zip(direct, adjoint, strict=True):
        assert_allclose(mine, other, rtol=1e-7)
    h = 1e-4
    for i, unit in enumerate(np.eye(3)):
        assert_allclose(direct[1][i], (loss(y0, p + h * unit) - loss(y0, p - h * unit)) / (2 * h), rtol=1e-6)


def test_as_another_library() -> None:
    """Trees, times with derivatives, and several arguments."""
    jax = peer("jax")
    integrate = importlib.import_module("jax.experimental.ode").odeint
    start, t = {"x": np.array([1.0, 0.5]), "v": np.array([0.0, -0.3])}, np.array([0.1, 0.5, 2.0])
    args = {"k": np.array([2.0, 3.0])}, np.array(0.1)

    def f(y: Any, t: Any, springs: Any, friction: Any) -> Any:
        return {"x": y["v"], "v": -springs["k"] * y["x"] - friction * y["v"] + t}

    def loss(solve: Any, *args: Any) -> Any:
        ys = solve(f, *args)
        return (ys["x"] ** 2).sum() + (ys["v"][1:] * ys["x"][:-1]).sum()

    with jax.enable_x64(True):
        solve = functools.partial(integrate, **TIGHT)
        wanted = jax.value_and_grad(functools.partial(loss, solve), (0, 1, 2, 3))(start, t, *args)
    for way in WAYS:
        solve = functools.partial(ad.odeint, **WAYS[way], **TIGHT)
        found = ad.value_and_grad(functools.partial(loss, solve), (0, 1, 2, 3))(start, t, *args)
        for mine, other in zip(jax.tree.leaves(found), jax.tree.leaves(wanted), strict=True):
            assert_allclose(mine, other, rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("way", WAYS)
def test_series_and_sparsity(way: str) -> None:
    t = np.array([0.0, 0.5])
    f = lambda a: ad.odeint(lambda y, t, a: -a * y, np.ones(2), t, a, **WAYS[way])[1]
    a, direction = np.array([1.0, 2.0]), np.array([1.0, -2.0])
    _, (first, second) = ad.jet(f, (a,), ([direction, np.zeros(2)],))
    assert_allclose(first, -0.5 * direction * np.exp(-0.5 * a), rtol=1e-6)
    assert_allclose(second, 0.25 * direction**2 * np.exp(-0.5 * a), rtol=1e-6)
    jacobian = ad.sparse_jacobian(f)(a)
    assert jacobian.nnz == (4 if way == "Radau" else 2)  # an inverse has no zeros to speak of
    assert_allclose(jacobian.toarray(), np.diag(-0.5 * np.exp(-0.5 * a)), rtol=1e-6)
    hessian = ad.sparse_hessian(lambda a: f(a).sum())(a)
    assert_allclose(hessian.toarray(), np.diag(0.25 * np.exp(-0.5 * a)), rtol=1e-6)


def nodes_of(x: Any) -> int:
    """How many nodes of a graph lead to a tensor."""
    seen, pending = set(), [x.grad_fn]
    while pending:
        node = pending.pop()
        if node is not None and id(node) not in seen:
            seen.add(id(node))
            pending += node.parents
    return len(seen)


def test_what_is_kept() -> None:
    rate = ad.tensor(np.array(0.5)).require_grad()
    counts = {}
    for way in ("direct", "adjoint"):
        for hmax in (0.1, 0.05):
            t = np.array([0.0, 1.0])
            ys = ad.odeint(lambda y, t, rate: -rate * y, 1.0, t, rate, hmax=hmax, **WAYS[way])
            counts[way, hmax] = nodes_of(ys)
    assert len(set(counts.values())) == 1  # steps are recorded by the backward pass
    assert counts["direct", 0.1] < 5


@pytest.mark.parametrize("way", WAYS)
def test_examples_take_common_steps(way: str) -> None:
    rates, starts = np.array([0.1, 1.0, 10.0]), np.array([[1.0], [2.0], [3.0]])
    t = np.array([0.0, 0.5, 1.0])
    count = []

    def f(y: Any, t: Any, rate: Any) -> Any:
        count.append(1)
        return -rate * y

    solve = lambda y0, rate: ad.odeint(f, y0, t, rate, **WAYS[way])
    solve(starts[2], rates[2])
    hardest = len(count)
    count.clear()
    together = ad.vmap(solve)(starts, rates)
    assert hardest <= len(count) <= hardest + 12
    assert_allclose(together, starts[:, None] * np.exp(-rates[:, None] * t)[:, :, None], rtol=1e-6, atol=1e-8)
    gradients = ad.vmap(ad.grad(lambda rate, y0: solve(y0, rate)[-1].sum()))(rates, starts)
    assert_allclose(gradients, -starts[:, 0] * np.exp(-rates), rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("way", WAYS)
def test_closures_and_integers(way: str) -> None:
    def end(rates: Any, i: Any, j: Any) -> Any:
        f = lambda y, t, j: -(rates[i] + rates[j]) * y
        return ad.odeint(f, 1.0, np.array([0.0, 1.0]), j, **WAYS[way])[1]

    rates = np.array([0.1, 0.2, 0.3])
    assert_allclose(end(rates, np.array(0), np.array(2)), math.exp(-0.4), rtol=1e-7)
    slope = -math.exp(-0.4)
    assert_allclose(ad.grad(end)(rates, np.array(0), np.array(2)), [slope, 0, slope], rtol=1e-6)
    places = np.array([0, 1]), np.array([2, 1])
    found = ad.vmap(ad.grad(end), (None, 0, 0))(rates, *places)
    assert_allclose(found, [[slope, 0, slope], [0, 2 * slope, 0]], rtol=1e-6)


class Model:
    def __init__(self, w: Any) -> None:
        self.w = w

    def __call__(self, y: Any, t: Any) -> Any:
        return -self.w * y


def test_no_derivative_is_lost() -> None:
    t = np.array([0.0, 1.0])
    direct = ad.grad(lambda w: ad.odeint(Model(w), 1.0, t)[1])(0.5)
    assert_allclose(direct, -math.exp(-0.5), rtol=1e-6)
    with pytest.raises(TrackedError, match="odeint: the function uses a tensor on .*make it an argument"):
        ad.grad(lambda w: ad.odeint(Model(w), 1.0, t, gradient="adjoint")[1])(0.5)
    w = ad.tensor(np.array(0.5)).require_grad()
    assert_allclose(ad.odeint(Model(w), 1.0, t)[1].backward()[w].numpy(), direct)
    with pytest.raises(TrackedError):
        ad.odeint(Model(w), 1.0, t, gradient="adjoint")


# --- what goes wrong ---


def test_too_many_steps() -> None:
    with pytest.raises(ConvergenceError, match=r"odeint: 50 steps lead to t = .* and not to 1000; .*mxstep") as caught:
        ad.odeint(lambda y, t: -1000 * (y - ad.cos(t)), 0.0, np.array([0.0, 1000.0]), mxstep=50)
    assert caught.value.iterations == 50
    t = np.linspace(0, 40, 41)  # the limit is for each time anew
    assert ad.odeint(lambda y, t: ad.cos(t), 0.0, t, mxstep=20).shape == (41,)
    with pytest.raises(ConvergenceError):
        ad.odeint(lambda y, t: ad.cos(t), 0.0, t[[0, -1]], mxstep=20)


def test_a_singularity() -> None:
    with pytest.raises(ConvergenceError, match=r"the step at t = 1 became too short|lead to t = 1 "):
        ad.odeint(lambda y, t: y * y, 1.0, np.array([0.0, 2.0]))


def test_derivatives_that_are_not_finite() -> None:
    with pytest.raises(ConvergenceError, match="not finite at the start, t = 0"):
        ad.odeint(lambda y, t: 1 / y, 0.0, np.array([0.0, 1.0]))
    with pytest.raises(ConvergenceError, match=r"the step at t = 0.5.* became too short: the derivative is not finite"):
        ad.odeint(lambda y, t: ad.sqrt(0.5 - t) * 0 + 1, 0.0, np.array([0.0, 1.0]))


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("start", [1.0, [1.0], [[1.0]], (1.0, 1.0)])
def test_functions_may_assign_to_what_they_are_given(start: Any, way: str) -> None:
    def decay(y: Any, t: Any, rate: Any) -> Any:
        rate *= -1
        y = list(y) if isinstance(y, tuple) else [y]
        for part in y:
            part *= rate
        return tuple(y) if len(y) > 1 else y[0]

    start = tuple(map(np.array, start)) if isinstance(start, tuple) else np.array(start)
    found = ad.odeint(decay, start, [0.0, 2.0], np.array(0.5), **WAYS[way])
    for part in found if isinstance(start, tuple) else [found]:
        np.testing.assert_allclose(part[-1], np.exp(-1.0), rtol=1e-7)


def test_a_batch_of_nothing() -> None:
    assert ad.vmap(lambda y: ad.odeint(lambda y, t: -y, y, [0.0, 1.0]))(np.zeros((0, 3))).shape == (0, 2, 3)


@pytest.mark.parametrize(
    ("error", "call"),
    [
        (ShapeError, lambda: ad.odeint(lambda y, t: y, 1.0, 1.0)),
        (ShapeError, lambda: ad.odeint(lambda y, t: y, 1.0, np.zeros((2, 1)))),
        (ShapeError, lambda: ad.odeint(lambda y, t: y, 1.0, [])),
        (ArgumentError, lambda: ad.odeint(lambda y, t: y, 1.0, [0.0, 2.0, 1.0])),
        (ArgumentError, lambda: ad.odeint(lambda y, t: y, 1.0, [0.0, math.nan])),
        (DtypeError, lambda: ad.odeint(lambda y, t: y, 1.0, [0.0, 1.0j])),
        (DtypeError, lambda: ad.odeint(lambda y, t: y, 1.0, ["0", "1"])),
        (ShapeError, lambda: ad.odeint(lambda y, t: y, 1.0, [[0.0], [1.0, 2.0]])),
        (ArgumentError, lambda: ad.vmap(lambda t: ad.odeint(lambda y, t: y, 1.0, t))(np.ones((3, 2)))),
        (DtypeError, lambda: ad.odeint(lambda y, t: y, 1, [0.0, 1.0])),
        (ArgumentError, lambda: ad.odeint(lambda y, t: y, None, [0.0, 1.0])),
        (ArgumentTypeError, lambda: ad.odeint(lambda y, t: y, "y", [0.0, 1.0])),
        (ArgumentTypeError, lambda: ad.odeint(None, 1.0, [0.0, 1.0])),
        (ArgumentError, lambda: ad.odeint(lambda y, t: (y,), 1.0, [0.0, 1.0])),
        (ShapeError, lambda: ad.odeint(lambda y, t: y[:1], np.ones(2), [0.0, 1.0])),
        (DtypeError, lambda: ad.odeint(lambda y, t: 1j * y, np.ones(2), [0.0, 1.0])),
        (ArgumentError, lambda: ad.odeint(lambda y, t: y, 1.0, [0.0, 1.0], rtol=-1.0)),
        (ArgumentError, lambda: ad.odeint(lambda y, t: y, 1.0, [0.0, 1.0], rtol=0.0, atol=0.0)),
        (ArgumentError, lambda: ad.odeint(lambda y, t: y, 1.0, [0.0, 1.0], hmax=0)),
        (ArgumentTypeError, lambda: ad.odeint(lambda y, t: y, 1.0, [0.0, 1.0], mxstep="many")),
        (ArgumentError, lambda: ad.odeint(lambda y, t: y, 1.0, [0.0, 1.0], gradient="exact")),
        (ArgumentError, lambda: ad.odeint(lambda y, t: y, 1.0, [0.0, 1.0], method="euler")),
        (ArgumentError, lambda: ad.odeint(lambda y, t: y, 1.0, [0.0, 1.0], method="Radau", gradient="adjoint")),
    ],
)
def test_bad_arguments(error: type[Exception], call: Callable[[], Any]) -> None:
    with pytest.raises(error):
        call()


def test_errors_say_where() -> None:
    with pytest.raises(ShapeError, match=r"odeint: the function's result\['v'\] has shape \(2,\), the state \(\)"):
        ad.odeint(lambda y, t: {"x": y["x"], "v": ad.ones(2)}, {"x": 1.0, "v": 0.0}, [0.0, 1.0])
    with pytest.raises(ArgumentError, match="neither increases nor decreases"):
        ad.odeint(lambda y, t: y, 1.0, [0.0, 2.0, 1.0])
