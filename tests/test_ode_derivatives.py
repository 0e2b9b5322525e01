"""Derivatives of `ad.odeint` where the steps of the solution are too long for them."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import scipy.integrate
from numpy.testing import assert_allclose

import adjoint as ad
from adjoint.errors import BackwardError, ConvergenceError

METHODS = ("RK45", "Radau")


@pytest.mark.parametrize("method", METHODS)
def test_at_rest(method: str) -> None:
    """The solution is zero, at which steps see no error; its derivative by the start is exp(sin(2 t))."""

    def f(y0: Any) -> Any:
        slope = lambda y, t: 2 * y * ad.cos(2 * t)
        return ad.odeint(slope, y0, np.array([0.0, 2.0]), rtol=1e-6, atol=1e-6, method=method)[1]

    wanted = math.exp(math.sin(4.0))
    assert_allclose(ad.grad(f)(0.0), wanted, rtol=1e-3)
    assert_allclose(ad.jvp(f, (0.0,), (1.0,))[1], wanted, rtol=1e-3)
    assert_allclose(ad.vmap(ad.grad(f))(np.zeros(2)), [wanted] * 2, rtol=1e-3)
    assert_allclose(ad.grad(lambda ys: ad.vmap(f)(ys).sum())(np.zeros(2)), [wanted] * 2, rtol=1e-3)


def test_second_derivatives_at_rest() -> None:
    """y' = y + y^2 from c has the solution c e / (1 + c - c e), which bends at 0 by 2 e (e - 1)."""
    f = lambda c: ad.odeint(lambda y, t: y + y * y, c, np.array([0.0, 1.0]), rtol=1e-6, atol=1e-6)[1]
    assert_allclose(ad.hessian(f)(0.0), 2 * math.e * (math.e - 1), rtol=1e-3)
    assert_allclose(ad.jvp(ad.grad(f), (0.0,), (1.0,))[1], 2 * math.e * (math.e - 1), rtol=1e-3)


def relaxation(y: Any, t: Any, mu: Any) -> Any:
    return ad.stack([y[1], mu * ((1 - y[0] ** 2) * y[1] - y[0])])


def relaxation_of_scipy(mu: float, end: float) -> Any:
    """The derivatives of y[0] at the end by the start and by mu, from the equation of the tangents."""

    def f(t: float, z: Any) -> Any:
        y, s = z[:2], z[2:].reshape(2, 3)
        jacobian = np.array([[0.0, 1.0], [mu * (-2 * y[0] * y[1] - 1), mu * (1 - y[0] ** 2)]])
        by_mu = np.array([[0, 0, 0], [0, 0, (1 - y[0] ** 2) * y[1] - y[0]]])
        return np.concatenate([[y[1], by_mu[1, 2] * mu], (jacobian @ s + by_mu).ravel()])

    start = np.concatenate([[2.0, 0.0], np.eye(2, 3).ravel()])
    return scipy.integrate.solve_ivp(f, (0.0, end), start, method="DOP853", rtol=1e-12, atol=1e-14).y[2:5, -1]


@pytest.mark.parametrize("method", METHODS)
def test_jumps(method: str) -> None:
    """On the explicit method's steps the derivatives are wrong by a third."""
    solve = lambda y0, mu: ad.odeint(relaxation, y0, np.array([0.0, 4.0]), mu, rtol=1e-4, atol=1e-4, method=method)
    by_start, by_mu = ad.grad(lambda y0, mu: solve(y0, mu)[1, 0], (0, 1))(np.array([2.0, 0.0]), 25.0)
    assert_allclose([*by_start, by_mu], relaxation_of_scipy(25.0, 4.0), rtol=1e-2)


@pytest.mark.slow
def test_jumps_of_a_very_stiff_equation() -> None:
    """mu = 1e6 up to the first jump and beyond; SciPy's Radau has these of the equation of the tangents at 1e-11."""
    solve = lambda y0: ad.odeint(relaxation, y0, np.array([0.0, 1.0]), 1e6, rtol=1e-6, atol=1e-6, method="Radau")
    assert_allclose(
        ad.grad(lambda y0: solve(y0)[1, 0])(np.array([2.0, 0.0])), [-1.1303145e00, -3.7677154e-07], rtol=1e-3
    )


def kinked(p: float) -> float:
    """Where y'' = -y - p abs(y) from (1, 0) is at t = 10: pieces of two oscillations."""
    a, b = math.sqrt(1 + p), math.sqrt(1 - p)
    left = 10 - math.pi / 2 / a - math.pi / b - math.pi / a
    return -a / b * math.sin(b * left)


def test_kinks() -> None:
    f = lambda y, t, p: ad.stack([y[1], -y[0] - p * ad.abs(y[0])])
    solve = lambda p: ad.odeint(f, np.array([1.0, 0.0]), np.array([0.0, 10.0]), p, rtol=1e-5, atol=1e-5)[1, 0]
    assert_allclose(solve(0.5), kinked(0.5), rtol=1e-3)
    assert_allclose(ad.grad(solve)(0.5), (kinked(0.5001) - kinked(0.4999)) / 2e-4, rtol=2e-2)


@pytest.mark.parametrize("method", METHODS)
def test_values_are_the_same_with_derivatives(method: str) -> None:
    solve = lambda mu: ad.odeint(relaxation, np.array([2.0, 0.0]), np.array([0.0, 1.0]), mu, method=method, rtol=1e-4)
    assert_allclose(ad.value_and_grad(lambda mu: solve(mu)[1, 0])(25.0)[0], solve(25.0)[1, 0], rtol=0, atol=0)
    assert_allclose(ad.jvp(solve, (25.0,), (1.0,))[0], solve(25.0), rtol=0, atol=0)


def test_it_says_that_there_is_none() -> None:
    f = lambda y0: ad.odeint(lambda y, t: 5 * y * ad.cos(t), y0, np.array([0.0, 10.0]), mxstep=30)[1]
    assert f(0.0) == 0
    with pytest.raises(ConvergenceError, match="the derivative of the solution was not found"):
        ad.jvp(f, (0.0,), (1.0,))
    with pytest.raises(BackwardError) as caught:
        ad.grad(f)(0.0)
    assert isinstance(caught.value.__cause__, ConvergenceError)


def test_the_adjoint_equation_has_to_come_back() -> None:
    def f(rate: Any, count: int) -> Any:
        slope = lambda y, t, rate: -rate * (y - ad.cos(t))
        return ad.odeint(slope, 0.3, np.linspace(0.0, 2.0, count), rate, gradient="adjoint")[-1]

    with pytest.raises(BackwardError) as caught:
        ad.grad(f)(50.0, 2)
    assert "leaves the solution" in str(caught.value.__cause__)
    exact = lambda r: r * (r * math.cos(2) + math.sin(2)) / (r * r + 1)
    assert_allclose(ad.grad(f)(50.0, 41), (exact(50.01) - exact(49.99)) / 0.02, rtol=1e-3)
