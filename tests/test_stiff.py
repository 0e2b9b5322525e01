"""Stiff equations: `ad.odeint(..., method="Radau")` against SciPy's, its derivatives against differences of that."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import scipy.integrate
from numpy.testing import assert_allclose

import adjoint as ad
from adjoint.errors import ConvergenceError, TrackedError
from adjoint.solvers import linear

RATES = np.array([0.04, 1e4, 3e7])
START = np.array([1.0, 0.0, 0.0])
TIMES = np.array([0.0, 0.4, 4.0, 40.0])


def robertson(y: Any, t: Any, k: Any) -> Any:
    slow, fast, between = k[0] * y[0], k[2] * y[1] ** 2, k[1] * y[1] * y[2]
    return ad.stack([between - slow, slow - between - fast, fast])


def reactions(k: Any, y0: Any = START, times: Any = TIMES) -> Any:
    return ad.odeint(robertson, y0, times, k, method="Radau", rtol=1e-8, atol=1e-12)


def reactions_of_scipy(k: Any) -> Any:
    def f(t: Any, y: Any) -> Any:
        slow, fast, between = k[0] * y[0], k[2] * y[1] ** 2, k[1] * y[1] * y[2]
        return [between - slow, slow - between - fast, fast]

    solved = scipy.integrate.solve_ivp(f, TIMES[[0, -1]], START, method="Radau", t_eval=TIMES, rtol=1e-10, atol=1e-14)
    return solved.y.T


@pytest.mark.slow
def test_robertson() -> None:
    """Rates that differ by nine powers of ten, the usual example; H. Robertson (1966)."""
    ys = reactions(RATES)
    assert_allclose(ys, reactions_of_scipy(RATES), rtol=1e-7, atol=1e-14)
    assert_allclose(ys.sum(axis=1), 1.0, rtol=1e-13)
    by_rates = ad.jacobian(reactions, mode="reverse")(RATES)
    assert_allclose(ad.jacobian(reactions, mode="forward")(RATES), by_rates, rtol=1e-9, atol=1e-16)
    for i, h in enumerate(1e-4 * RATES):
        step = h * np.eye(3)[i]
        differences = (reactions_of_scipy(RATES + step) - reactions_of_scipy(RATES - step)) / (2 * h)
        assert_allclose(by_rates[..., i] * RATES[i], differences * RATES[i], rtol=3e-5, atol=1e-9)


@pytest.mark.slow
def test_robertson_in_batches_and_of_second_order() -> None:
    loss = lambda s: (reactions(RATES * s, START, np.array([0.0, 0.03]))[1] * np.array([1.0, 1e4, 30.0])).sum()
    gradient, s = ad.grad(loss), np.array([1.0, 1.1, 0.9])
    batch = np.stack([s, 1.2 * s])
    assert_allclose(ad.vmap(gradient)(batch), [gradient(row) for row in batch], rtol=1e-6)
    hessian = ad.hessian(loss)(s)
    assert_allclose(hessian, hessian.T, rtol=1e-6, atol=1e-10)
    assert_allclose(ad.jvp(lambda s: ad.jvp(loss, (s,), (s,))[1], (s,), (s,))[1], s @ (hessian @ s + gradient(s)))
    h = 1e-3
    differences = [(gradient(s + h * unit) - gradient(s - h * unit)) / (2 * h) for unit in np.eye(3)]
    assert_allclose(hessian, differences, rtol=1e-3, atol=1e-5)


def van_der_pol(y: Any, t: Any, mu: Any) -> Any:
    return ad.stack([y[1], mu * (1 - y[0] ** 2) * y[1] - y[0]])


def oscillator_of_scipy(mu: float, t: Any, tol: float) -> Any:
    f = lambda t, y: [y[1], mu * (1 - y[0] ** 2) * y[1] - y[0]]
    return scipy.integrate.solve_ivp(f, t[[0, -1]], [2.0, 0.0], method="Radau", t_eval=t, rtol=tol, atol=tol).y.T


def test_van_der_pol() -> None:
    """mu = 1000, up to where it is about to jump."""
    t = np.array([0.0, 500.0, 800.0])
    solve = lambda mu: ad.odeint(van_der_pol, np.array([2.0, 0.0]), t, mu, method="Radau", rtol=1e-8, atol=1e-8)
    value, slope = ad.jvp(solve, (1000.0,), (1.0,))
    assert_allclose(value, oscillator_of_scipy(1000.0, t, 1e-10), rtol=1e-6, atol=1e-10)
    high, low = (oscillator_of_scipy(mu, t, 1e-12) for mu in (1000.05, 999.95))
    assert_allclose(slope, (high - low) / 0.1, rtol=1e-4, atol=1e-9)
    assert_allclose(ad.grad(lambda mu: solve(mu)[:, 0].sum())(1000.0), slope[:, 0].sum(), rtol=1e-7)


@pytest.mark.slow
def test_van_der_pol_at_tight_tolerances() -> None:
    t = np.array([0.0, 500.0, 1000.0, 2000.0])
    solve = lambda mu: ad.odeint(van_der_pol, np.array([2.0, 0.0]), t, mu, method="Radau", rtol=1e-10, atol=1e-10)
    assert_allclose(solve(1000.0), oscillator_of_scipy(1000.0, t, 1e-10), rtol=1e-7, atol=1e-10)
    high, low = (oscillator_of_scipy(mu, t, 1e-12) for mu in (1000.01, 999.99))
    assert_allclose(ad.jvp(solve, (1000.0,), (1.0,))[1][:, 0], (high - low)[:, 0] / 0.02, rtol=1e-5)


@pytest.mark.parametrize("tol", [1e-4, 1e-6, 1e-8, 1e-10])
def test_the_error_follows_the_tolerance(tol: float) -> None:
    """The solution is cos(t), which the explicit method would need a million steps for."""
    calls = []

    def f(y: Any, t: Any) -> Any:
        calls.append(1)
        return -1e6 * (y - ad.cos(t)) - ad.sin(t)

    t = np.linspace(0.0, 10.0, 101)
    ys = ad.odeint(f, 1.0, t, rtol=tol, atol=tol, method="Radau")
    assert np.abs(ys - np.cos(t)).max() < 10 * tol
    assert len(calls) < 3000


def heat(u: Any, t: Any, rate: Any) -> Any:
    """Diffusion with a reaction, on a grid."""
    around = ad.concat([ad.zeros(1), u, ad.zeros(1)])
    return (u.size + 1.0) ** 2 * (around[:-2] - 2 * u + around[2:]) + rate * u * (1 - u)


def test_grids_have_sparse_jacobians(monkeypatch: pytest.MonkeyPatch) -> None:
    n = 300
    start = np.sin(np.pi * np.arange(1, n + 1) / (n + 1))
    mean = lambda rate: ad.odeint(heat, start, [0.0, 0.3], rate, method="Radau", rtol=1e-6, atol=1e-8)[1].mean()
    monkeypatch.setattr(linear, "jacobian", None)
    value, slope = ad.value_and_grad(mean)(5.0)
    assert_allclose(ad.vmap(mean)(np.array([2.0, 5.0])), [mean(2.0), value], rtol=1e-6)
    monkeypatch.undo()
    monkeypatch.setattr(linear, "SMALL", 10_000)
    monkeypatch.setattr(linear, "DENSE", 10_000)
    assert_allclose(value, mean(5.0), rtol=1e-9)
    monkeypatch.undo()
    assert_allclose(slope, (mean(5.001) - mean(4.999)) / 0.002, rtol=1e-5)
    assert_allclose(slope, ad.jvp(mean, (5.0,), (1.0,))[1], rtol=1e-9)


def test_float32_and_backwards() -> None:
    f = lambda y, t: -y * t
    y = ad.odeint(f, np.ones(2, np.float32), np.arange(3), rtol=1e-4, atol=1e-4, method="Radau")
    assert y.dtype == np.float32
    assert_allclose(y[:, 0], np.exp(-(np.arange(3.0) ** 2) / 2), atol=3e-4)
    back = ad.odeint(f, np.exp(-2.0), [2.0, 1.0, 0.0], method="Radau")
    assert_allclose(back, np.exp([-2.0, -0.5, 0.0]), rtol=1e-6)


def test_what_it_says_of_steps() -> None:
    with pytest.raises(ConvergenceError, match=r"a stiff equation wants method='Radau'; allow more with mxstep"):
        ad.odeint(lambda y, t: -1e4 * (y - ad.cos(t)), 0.0, [0.0, 100.0], mxstep=50)
    with pytest.raises(ConvergenceError, match=r"not to 100; allow more") as caught:
        ad.odeint(lambda y, t: ad.cos(t), 0.0, [0.0, 100.0], mxstep=20, method="Radau")
    assert caught.value.iterations == 20
    with pytest.raises(ConvergenceError, match=r"the step at t = (1|0.9999)\S* became too short|lead to t = 1 "):
        ad.odeint(lambda y, t: y * y, 1.0, [0.0, 2.0], method="Radau")
    with pytest.raises(ConvergenceError, match="not finite at the start"):
        ad.odeint(lambda y, t: 1 / y, 0.0, [0.0, 1.0], method="Radau")


class Model:
    def __init__(self, w: Any) -> None:
        self.w = w

    def __call__(self, y: Any, t: Any) -> Any:
        return -self.w * y


def test_no_derivative_is_lost() -> None:
    with pytest.raises(TrackedError, match="make it an argument"):
        ad.grad(lambda w: ad.odeint(Model(w), 1.0, [0.0, 1.0], method="Radau")[1])(0.5)
    w = ad.tensor(np.array(0.5)).require_grad()
    with pytest.raises(TrackedError):
        ad.odeint(Model(w), 1.0, [0.0, 1.0], method="Radau")
    assert_allclose(ad.odeint(Model(0.5), 1.0, [0.0, 1.0], method="Radau")[1], math.exp(-0.5), rtol=1e-7)


def test_batches_of_nothing() -> None:
    assert ad.vmap(lambda y: ad.odeint(lambda y, t: -y, y, [0.0, 1.0], method="Radau"))(np.zeros((0, 3))).shape == (
        0,
        2,
        3,
    )
