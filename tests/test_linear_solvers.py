"""Linear systems of `ad.implicit`: every way to solve them gives the same derivatives, at its own cost."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.linalg
import scipy.optimize
import scipy.sparse.linalg
from numpy.testing import assert_allclose

import adjoint as ad
from adjoint.errors import (
    ArgumentError,
    ArgumentTypeError,
    ConvergenceError,
    MissingLibraryError,
    ShapeError,
    SingularError,
)
from adjoint.operands import concrete_values
from adjoint.solvers import linear


def diffusion(u: Any, rate: Any) -> Any:
    """-u'' + rate u^3 = 10 on a grid, u = 0 at both ends."""
    left, right = ad.concat([ad.zeros(1), u[:-1]]), ad.concat([u[1:], ad.zeros(1)])
    return (u.size + 1.0) ** 2 * (2 * u - left - right) + rate * u**3 - 10.0


def by_hand(n: int, rate: float) -> tuple[Any, Any, Any]:
    """The solution, and its first and second derivative by the rate, with banded matrices written out."""

    def bands(diagonal: Any) -> Any:
        out = np.full((3, n), -((n + 1.0) ** 2))
        out[1] = 2 * (n + 1.0) ** 2 + diagonal
        return out

    u = np.zeros(n)
    for _ in range(20):
        r = (bands(0 * u)[1] * u) + rate * u**3 - 10.0
        r[1:] -= (n + 1.0) ** 2 * u[:-1]
        r[:-1] -= (n + 1.0) ** 2 * u[1:]
        u = u - scipy.linalg.solve_banded((1, 1), bands(3 * rate * u**2), r)
    matrix = bands(3 * rate * u**2)
    first = scipy.linalg.solve_banded((1, 1), matrix, -(u**3))
    second = scipy.linalg.solve_banded((1, 1), matrix, -(6 * u**2 * first + 6 * rate * u * first**2))
    return u, first, second


def test_diffusion_of_many_unknowns(monkeypatch: pytest.MonkeyPatch) -> None:
    """No dense matrix is made, and none of the thousand products that a Krylov method needs."""
    monkeypatch.setattr(linear, "jacobian", None)
    monkeypatch.setattr(linear, "gmres", None)
    u, first, second = by_hand(2000, 5.0)
    f = lambda rate: ad.implicit.root(diffusion, np.zeros(2000), rate)
    loss = lambda rate: (f(rate) ** 2).sum()
    assert_allclose(f(5.0), u, rtol=1e-9)
    assert_allclose(ad.jvp(f, (5.0,), (1.0,))[1], first, rtol=1e-7)
    assert_allclose(ad.grad(loss)(5.0), 2 * u @ first, rtol=1e-8)
    assert_allclose(ad.grad(ad.grad(loss))(5.0), 2 * first @ first + 2 * u @ second, rtol=1e-7)
    rates = np.array([1.0, 5.0, 9.0])
    slopes = [2 * by_hand(2000, rate)[0] @ by_hand(2000, rate)[1] for rate in rates]
    assert_allclose(ad.vmap(ad.grad(loss))(rates), slopes, rtol=1e-8)


def by_scipy(matvec: Any, b: Any) -> Any:
    matrix = scipy.sparse.linalg.LinearOperator((b.size, b.size), matvec=matvec, dtype=b.dtype)
    return scipy.sparse.linalg.gmres(matrix, b, rtol=1e-12, restart=100)[0]


@pytest.mark.parametrize("linear_solver", ["dense", "sparse", "cg", "gmres", by_scipy])
@pytest.mark.parametrize("kind", ["root", "minimize"])
def test_all_ways_agree(kind: str, linear_solver: Any) -> None:
    heat = np.linspace(0.0, 1.0, 30) ** 2

    def f(heat: Any, linear_solver: Any = linear_solver) -> Any:
        if kind == "root":
            equation = lambda u, heat: diffusion(u, 0.1) / 900 - heat
            return ad.implicit.root(equation, np.zeros(30), heat, linear_solver=linear_solver)
        energy = lambda u, heat: ((u[1:] - u[:-1]) ** 2).sum() / 2 + (u**4 / 4 - heat * u).sum() + (u**2).sum()
        return ad.implicit.minimize(energy, np.zeros(30), heat, linear_solver=linear_solver)

    loss = lambda heat, solver: (f(heat, solver) ** 3).sum()
    for transform in (lambda g: g, ad.grad, ad.hessian):
        assert_allclose(
            transform(loss)(heat, linear_solver), transform(loss)(heat, "dense"), rtol=1e-6, atol=1e-8, err_msg=kind
        )
    assert_allclose(ad.jvp(f, (heat,), (heat,))[1], ad.jvp(lambda h: f(h, "dense"), (heat,), (heat,))[1], rtol=1e-7)


def test_the_transposed_system() -> None:
    """A Jacobian that is not symmetric, and a function of the user that gets its products."""
    rng = np.random.default_rng(1)
    a = np.triu(rng.standard_normal((7, 7))) + 4 * np.eye(7)
    for linear_solver in ("dense", "sparse", "gmres", by_scipy):
        f = lambda b, s=linear_solver: ad.implicit.root(lambda x, b: a @ x - b, np.zeros(7), b, linear_solver=s)
        for mode in ("reverse", "forward"):
            assert_allclose(ad.jacobian(f, mode=mode)(np.ones(7)), np.linalg.inv(a), rtol=1e-9, atol=1e-11)


def test_trees_and_complex_unknowns() -> None:
    for linear_solver in ("dense", "sparse", "gmres", by_scipy):
        f = lambda a, s=linear_solver: ad.implicit.root(
            lambda z, a: {"u": z["u"] ** 2 - a * z["v"], "v": z["v"] - 1}, {"u": np.array(1 + 0.5j), "v": 2.0}, a,
            linear_solver=s,
        )["u"]  # fmt: skip
        a = 2.0 + 3.0j
        assert_allclose(f(a), np.sqrt(a), rtol=1e-10)
        assert_allclose(ad.grad(f, holomorphic=True)(a), 0.5 / np.sqrt(a), rtol=1e-10)


# --- what is chosen ---


class UsedError(Exception):
    pass


def chosen(monkeypatch: pytest.MonkeyPatch, f: Callable[[], Any]) -> str:
    """The first way that a call takes."""
    for name in ("_by_matrix", "_by_products"):
        monkeypatch.setattr(linear, name, _raising(name))
    monkeypatch.setattr(linear.LinearSolver, "_by_sparse_matrix", _raising("_by_sparse_matrix"))
    with pytest.raises(UsedError) as caught:
        f()
    monkeypatch.undo()
    return str(caught.value)


def _raising(name: str) -> Callable[..., Any]:
    def run(*args: Any, **kwargs: Any) -> Any:
        raise UsedError(name)

    return run


def test_what_size_and_pattern_suggest(monkeypatch: pytest.MonkeyPatch) -> None:
    dense = lambda x: x + 0.1 * ad.tanh(x.sum() / x.size) - 1.0
    arrow = lambda x: ad.concat([x[:1] + x.sum() - 1, x[1:] + x[:1] - 1])
    root = ad.implicit.root
    assert chosen(monkeypatch, lambda: root(lambda x: diffusion(x, 1.0), np.zeros(100))) == "_by_matrix"
    assert chosen(monkeypatch, lambda: root(lambda x: diffusion(x, 1.0), np.zeros(101))) == "_by_sparse_matrix"
    assert chosen(monkeypatch, lambda: root(dense, np.zeros(500))) == "_by_matrix"
    assert chosen(monkeypatch, lambda: root(dense, np.zeros(501))) == "_by_products"
    assert chosen(monkeypatch, lambda: root(lambda x: x + x.sum() ** 3 - 1, np.zeros(501))) == "_by_products"
    assert chosen(monkeypatch, lambda: root(arrow, np.zeros(501))) == "_by_products"
    batch = ad.vmap(lambda a: root(lambda x: a * dense(x), np.zeros(400)))
    assert chosen(monkeypatch, lambda: batch(np.ones(60))) == "_by_matrix"
    assert chosen(monkeypatch, lambda: batch(np.ones(70))) == "_by_products"
    batch = ad.vmap(lambda a: root(lambda x: a * diffusion(x, 1.0), np.zeros(90)))
    assert chosen(monkeypatch, lambda: batch(np.ones(2000))) == "_by_sparse_matrix"
    energy = lambda x: ((x[1:] - x[:-1]) ** 2).sum() + ((x - 1) ** 4).sum()
    assert chosen(monkeypatch, lambda: ad.implicit.minimize(energy, np.zeros(101))) == "_by_sparse_matrix"
    monkeypatch.setitem(sys.modules, "scipy", None)
    assert chosen(monkeypatch, lambda: root(lambda x: diffusion(x, 1.0), np.zeros(501))) == "_by_products"


def test_dense_patterns_are_not_written_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(linear, "pattern_of", None)
    n = 20_000
    a = ad.implicit.root(lambda x: x + 0.5 * ad.sin(x.sum() / n) ** 2 - 1, np.zeros(n))
    assert_allclose(a + 0.5 * np.sin(a.mean()) ** 2, 1.0, rtol=1e-12)


def test_the_matrix_where_products_do_not_converge(monkeypatch: pytest.MonkeyPatch) -> None:
    """As where SciPy is not installed."""
    monkeypatch.setitem(sys.modules, "scipy", None)
    monkeypatch.setattr(linear, "_TRIED", 20)
    u, first, _ = by_hand(600, 5.0)
    value, slope = ad.jvp(lambda rate: ad.implicit.root(diffusion, np.zeros(600), rate), (5.0,), (1.0,))
    assert_allclose(value, u, rtol=1e-9)
    assert_allclose(slope, first, rtol=1e-7)


def test_patterns_are_looked_for_at_every_point() -> None:
    """The function decides by values, so that its Jacobian has other places at the root than at the start."""

    def f(x: Any, a: Any) -> Any:
        far = bool(np.all(concrete_values(x, "the test") > 5))
        return x - a * (ad.flip(x) if far else ad.roll(x, 1)) - 1.0

    solve = lambda a: ad.implicit.root(f, np.full(6, 10.0) + np.arange(6), a, linear_solver="sparse")
    assert_allclose(solve(0.5), np.full(6, 2.0), rtol=1e-12)
    assert_allclose(ad.jvp(solve, (0.5,), (1.0,))[1], np.full(6, 4.0), rtol=1e-12)


def test_a_saddle_is_left() -> None:
    """Newton's steps go up there; those of conjugate gradients are taken."""
    f = lambda a, s: ad.implicit.minimize(
        lambda x, a: (x**4 / 4 - a * x**2 / 2).sum() + ((x[1:] - x[:-1]) ** 2).sum(),
        np.full(3, 0.1),
        a,
        linear_solver=s,
    )
    for linear_solver in ("dense", "sparse", "cg", by_scipy):
        assert_allclose(f(4.0, linear_solver), [2.0, 2.0, 2.0], rtol=1e-10)
        assert_allclose(ad.jacobian(f)(4.0, linear_solver), np.full(3, 0.25), rtol=1e-9)


# --- what goes wrong ---


@pytest.mark.parametrize("linear_solver", ["dense", "sparse"])
def test_no_derivative(linear_solver: str) -> None:
    f = lambda a: ad.implicit.root(lambda x, a: x**3 - a, np.zeros(2), a, linear_solver=linear_solver).sum()
    with pytest.raises(SingularError, match="the Jacobian at the solution is singular"):
        ad.jvp(f, (np.zeros(2),), (np.ones(2),))
    with pytest.raises(ConvergenceError, match="the Jacobian is singular after 0 steps"):
        ad.implicit.root(lambda x: x * x - 1, np.zeros(2), linear_solver=linear_solver)


def test_no_derivative_by_products() -> None:
    f = lambda a: ad.implicit.root(lambda x, a: x**3 - a, np.zeros(2), a, linear_solver="gmres").sum()
    with pytest.raises(ConvergenceError, match="was not solved in 20 iterations.*wants another linear_solver"):
        ad.jvp(f, (np.zeros(2),), (np.ones(2),))


def test_a_solver_that_broke_down() -> None:
    """It gives what it has, and says so in a flag that the user leaves out."""
    f = lambda a: ad.implicit.root(lambda x, a: x - a, np.zeros(2), a, linear_solver=lambda matvec, b: 0.9 * b)
    with pytest.raises(ConvergenceError, match="the linear system of the derivative was not solved"):
        ad.jvp(f, (np.ones(2),), (np.ones(2),))
    for gives in (lambda matvec, b: 0 * b, lambda matvec, b: 1e-9 * b):  # short steps, but none of Newton's
        with pytest.raises(ConvergenceError, match="root: not solved"):
            ad.implicit.root(lambda x: x * x - 2, np.ones(3), linear_solver=gives)
        with pytest.raises(ConvergenceError, match="minimize: not solved"):
            ad.implicit.minimize(lambda x: (x**4 - x).sum(), np.ones(3), linear_solver=gives, maxiter=2)


def solved_by(linear_solver: Any) -> Any:
    return ad.implicit.root(lambda x: 2 * x - 1, np.zeros(2), linear_solver=linear_solver)


@pytest.mark.parametrize(
    ("error", "says", "linear_solver"),
    [
        (ArgumentError, "'dense', 'sparse', 'cg', 'gmres' or None, received 'lu'", "lu"),
        (ArgumentError, "'dense', 'sparse', 'cg', 'gmres' or None, received 3", 3),
        (ShapeError, r"an array of shape \(3,\) for 2 unknowns", lambda matvec, b: np.zeros(3)),
        (ArgumentTypeError, "give its x alone", lambda matvec, b: (b, "info")),
        (ArgumentTypeError, "gives NoneType, expected a vector", lambda matvec, b: None),
        (ShapeError, r"a vector of shape \(3,\), there are 2 unknowns", lambda matvec, b: matvec(np.zeros(3))),
        (ConvergenceError, "not solved", lambda matvec, b: b * np.nan),
    ],
)
def test_bad_linear_solvers(error: type[Exception], says: str, linear_solver: Any) -> None:
    with pytest.raises(error, match=says):
        solved_by(linear_solver)


def test_sparse_needs_scipy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "scipy", None)
    with pytest.raises(MissingLibraryError, match=r"pip install 'adjoint\[sparse\]'"):
        solved_by("sparse")
