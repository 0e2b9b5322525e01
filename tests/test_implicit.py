"""Roots, fixed points and minima: their values, and their derivatives under every nesting of transforms."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.optimize
from numpy.testing import assert_allclose
from test_custom import NESTINGS, flat, plain

import adjoint as ad
from adjoint.errors import (
    ArgumentError,
    ArgumentTypeError,
    BackwardError,
    ConvergenceError,
    DtypeError,
    ShapeError,
    SingularError,
    TrackedError,
)
from adjoint.solvers.krylov import cg, gmres

START = {"y": np.zeros(3), "z": 0.0}


# --- one function, `plain` of the tests of custom functions, as the answer of three inner problems ---


def by_root(x: Any, w: Any, linear_solver: Any) -> Any:
    def f(u: Any, x: Any, w: Any) -> Any:
        wanted = plain(x, w)
        return {"y": ad.sinh(u["y"]) - ad.sinh(wanted["y"]), "z": u["z"] ** 3 + u["z"] - wanted["z"] ** 3 - wanted["z"]}

    return ad.implicit.root(f, START, x, w, linear_solver=linear_solver)


def by_fixed_point(x: Any, w: Any, linear_solver: Any) -> Any:
    def f(u: Any) -> Any:  # closes over x and w
        wanted = plain(x, w)
        return {key: wanted[key] + 0.3 * ad.sin(u[key] - wanted[key]) for key in u}

    return ad.implicit.fixed_point(f, START, linear_solver=linear_solver)


def by_minimum(x: Any, w: Any, linear_solver: Any) -> Any:
    def f(u: Any, x: Any) -> Any:  # closes over w
        wanted = plain(x, w)
        return ad.cosh(u["y"] - wanted["y"]).sum() + (u["z"] - wanted["z"]) ** 2 + (u["z"] - wanted["z"]) ** 4

    return ad.implicit.minimize(f, START, x, linear_solver=linear_solver)


def by_columns(matvec: Any, b: Any) -> Any:
    """A linear solver of the user's, on NumPy's arrays."""
    assert isinstance(b, np.ndarray)
    return np.linalg.solve(np.stack([matvec(unit) for unit in np.eye(b.size)], axis=1), b)


@pytest.mark.parametrize("nesting", NESTINGS)
@pytest.mark.parametrize("linear_solver", [None, "sparse", "gmres", by_columns])
@pytest.mark.parametrize("problem", [by_root, by_fixed_point, by_minimum])
def test_derivatives_are_those_of_the_solution(problem: Any, linear_solver: Any, nesting: str) -> None:
    run = NESTINGS[nesting]
    solved = run(functools.partial(problem, linear_solver=linear_solver))
    for mine, wanted in zip(flat(solved), flat(run(plain)), strict=True):
        assert_allclose(mine, wanted, rtol=1e-8, atol=1e-9)
        assert np.shape(mine) == np.shape(wanted)


# --- problems with known answers ---


def test_square_roots() -> None:
    def f(a: Any) -> Any:
        return ad.implicit.root(lambda x, a: x * x - a, np.ones(3), a)

    a = np.array([2.0, 3.0, 1e6])
    assert_allclose(f(a), np.sqrt(a), rtol=1e-15)
    assert_allclose(ad.jacobian(f)(a), np.diag(0.5 / np.sqrt(a)), rtol=1e-13)


def test_the_fixed_point_of_cos() -> None:
    value, slope = ad.value_and_grad(lambda a: ad.implicit.fixed_point(lambda x, a: ad.cos(a * x), 1.0, a))(1.0)
    x = 0.7390851332151607
    assert_allclose(value, x, rtol=1e-11)
    assert_allclose(slope, -x * math.sin(x) / (1 + math.sin(x)), rtol=1e-10)


RNG = np.random.default_rng(0)
X, Y = RNG.standard_normal((20, 4)), RNG.standard_normal(20)


def ridge(x: Any, y: Any, penalty: Any) -> Any:
    return ad.implicit.minimize(lambda w: ((x @ w - y) ** 2).sum() + penalty * (w**2).sum(), np.zeros(4))


def test_ridge_regression() -> None:
    gram = X.T @ X + 0.7 * np.eye(4)
    best = np.linalg.solve(gram, X.T @ Y)
    assert_allclose(ridge(ad.asarray(X), Y, 0.7).numpy(), best, rtol=1e-11)
    by_y, by_penalty = ad.jacobian(ridge, (1, 2))(X, Y, 0.7)
    assert_allclose(by_penalty, -np.linalg.solve(gram, best), rtol=1e-10)
    assert_allclose(by_y, np.linalg.solve(gram, X.T), rtol=1e-10)
    curvature = ad.jacobian(ad.jacobian(ridge, 2, "reverse"), 2, "forward")(X, Y, 0.7)
    assert_allclose(curvature, 2 * np.linalg.solve(gram, np.linalg.solve(gram, best)), rtol=1e-10)


def test_a_valley_with_a_bend() -> None:
    """Rosenbrock's function, with the minimum (a, a^2), from where Newton's direction goes up."""

    def f(a: Any) -> Any:
        return ad.implicit.minimize(
            lambda x, a: (a - x[0]) ** 2 + 100 * (x[1] - x[0] ** 2) ** 2, np.array([-1.2, 1.0]), a
        )

    assert_allclose(f(1.5), [1.5, 2.25], rtol=1e-8)
    assert_allclose(ad.jacobian(f)(1.5), [1.0, 3.0], rtol=1e-7)


def test_from_between_two_minima() -> None:
    """The curvature at the start is negative."""
    f = lambda a: ad.implicit.minimize(lambda x, a: x**4 / 4 - a * x**2 / 2, 0.1, a)
    assert_allclose(f(4.0), 2.0, rtol=1e-12)
    assert_allclose(ad.grad(f)(4.0), 0.25, rtol=1e-11)


MATRICES: dict[str, np.ndarray[Any, Any]] = {
    "any": RNG.standard_normal((30, 30)),
    "skew": (lambda m: m - m.T)(RNG.standard_normal((30, 30))),
    "shift": np.roll(np.eye(30), 1, axis=0),  # the residual does not fall before the last step
    "indefinite": np.diag(np.arange(-14.5, 15.5)),
    "one and a bit": np.eye(30) + np.outer(*RNG.standard_normal((2, 30))),
}


@pytest.mark.parametrize("name", MATRICES)
def test_gmres(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    matrix, b = MATRICES[name], RNG.standard_normal((2, 30))
    b[1] = matrix @ np.eye(30)[3]
    a = ad.asarray(matrix, device="numpy")
    for row in b:
        x, found = gmres(lambda v: a @ v, ad.asarray(row, device="numpy"), 1e-11, 31)
        assert bool(found)
        assert_allclose(x.numpy(), np.linalg.solve(matrix, row), rtol=1e-8, atol=1e-8)
    together = ad.vmap(lambda b: gmres(lambda v: a @ v, b, 1e-11, 31)[0])(b)
    assert_allclose(together, np.linalg.solve(matrix, b.T).T, rtol=1e-8, atol=1e-8)
    monkeypatch.setattr("adjoint.solvers.krylov._MEMORY", 0)
    if name == "one and a bit":  # three directions are all that this one needs
        x, found = gmres(lambda v: a @ v, ad.asarray(b[0], device="numpy"), 1e-11, 4)
        assert bool(found)


def test_gmres_says_that_there_is_no_solution() -> None:
    a = ad.asarray(np.diag([1.0, 2.0, 0.0]), device="numpy")
    x, found = gmres(lambda v: a @ v, ad.asarray(np.array([1.0, 1.0, 0.0]), device="numpy"), 1e-11, 30)
    assert bool(found)
    assert_allclose(x.numpy(), [1.0, 0.5, 0.0], atol=1e-14)
    _, found = gmres(lambda v: a @ v, ad.asarray(np.ones(3), device="numpy"), 1e-11, 30)
    assert not bool(found)


def test_conjugate_gradients() -> None:
    matrix = MATRICES["any"] @ MATRICES["any"].T + np.eye(30)
    b = np.stack([RNG.standard_normal(30), np.zeros(30)])
    a = ad.asarray(matrix, device="numpy")
    x, found = ad.vmap(lambda b: cg(lambda v: a @ v, b, 1e-12, 200))(b)
    assert found.all()
    assert_allclose(x, np.linalg.solve(matrix, b.T).T, rtol=1e-9, atol=1e-12)
    x, found = cg(lambda v: -v, ad.asarray(b[0], device="numpy"), 1e-12, 200)
    assert not bool(found)
    assert_allclose(x.numpy(), b[0])  # a direction of descent all the same


# --- derivatives, in general ---


@pytest.mark.parametrize("modes", [("reverse", "forward"), ("batched",)])
def test_numerically(modes: Any) -> None:
    w = 0.3 * RNG.standard_normal((2, 2))
    b = RNG.standard_normal(2)
    check = functools.partial(ad.testing.check_grads, order=2, modes=modes)
    check(lambda w, b: ad.implicit.fixed_point(lambda x, w, b: ad.tanh(w @ x + b), np.zeros(2), w, b), (w, b))
    check(lambda w, b: ad.implicit.root(lambda x: x + x**3 + w @ x - b, np.zeros(2)), (w, b))
    check(
        lambda w, b: ad.implicit.minimize(lambda x: ad.cosh(w @ x - b).sum() + (x**2).sum(), np.zeros(2)),
        (w, b),
    )


def test_third_order() -> None:
    f = lambda a: ad.implicit.root(lambda x, a: x * x - a, 1.0, a)
    assert_allclose(ad.grad(ad.grad(ad.grad(f)))(2.0), 3 / 8 * 2**-2.5, rtol=1e-12)


def test_series_and_sparsity() -> None:
    f = lambda a: ad.implicit.root(lambda x, a: x * x - a, np.ones(2), a)
    a, direction, zero = np.array([4.0, 9.0]), np.array([1.0, -2.0]), np.zeros(2)
    _, (first, second) = ad.jet(f, (a,), ([direction, zero],))
    assert_allclose(first, direction / (2 * np.sqrt(a)), rtol=1e-12)
    assert_allclose(second, -(direction**2) / (4 * a**1.5), rtol=1e-12)
    assert_allclose(ad.sparse_jacobian(f)(a).toarray(), np.diag(0.5 / np.sqrt(a)), rtol=1e-12)
    mixing = lambda b: ad.implicit.fixed_point(lambda x, b: ad.tanh(0.3 * x.sum() + b), np.zeros(2), b)
    assert_allclose(ad.sparse_jacobian(mixing)(a).toarray(), ad.jacobian(mixing)(a), rtol=1e-10)
    loss = lambda b: (mixing(b) ** 2).sum()
    assert_allclose(ad.sparse_hessian(loss)(a).toarray(), ad.hessian(loss)(a), rtol=1e-10, atol=1e-15)


def test_complex_unknowns() -> None:
    f = lambda a: ad.implicit.root(lambda z, a: z * z - a, np.array(1 + 0.5j), a)
    a = 2.0 + 3.0j
    assert_allclose(f(a), np.sqrt(a), rtol=1e-14)
    assert_allclose(ad.grad(f, holomorphic=True)(a), 0.5 / np.sqrt(a), rtol=1e-13)
    mixed = lambda a: ad.implicit.root(lambda z, a: {"u": z["u"] + 0.3 * ad.conj(z["u"]) * z["v"] - a, "v": z["v"] - 1},
                                       {"u": np.zeros(2, complex), "v": np.zeros(2)}, a)["u"]  # fmt: skip
    b = np.array([1 + 2j, -0.5j])
    assert_allclose(mixed(b), (b - 0.3 * b.conj()) / (1 - 0.09), rtol=1e-12)
    ad.testing.check_grads(mixed, (b,), order=2)


def test_the_start_has_no_derivative() -> None:
    f = lambda x0, a: ad.implicit.root(lambda x, a: x * x - a, x0, a)
    assert ad.grad(f)(1.0, 2.0) == 0
    assert ad.jvp(f, (1.0, 2.0), (1.0, 0.0))[1] == 0
    assert_allclose(ad.vmap(f, (0, None))(np.array([1.0, -1.0]), 2.0), [math.sqrt(2), -math.sqrt(2)])


def test_float32_stays() -> None:
    f = lambda a: ad.implicit.root(lambda x, a: x * x - a, np.float32(1), a)
    a = np.float32(2)
    assert f(a).dtype == ad.grad(f)(a).dtype == np.float32
    assert_allclose(f(a), math.sqrt(2), rtol=1e-5)
    assert_allclose(ad.grad(f)(a), 0.5 / math.sqrt(2), rtol=1e-5)
    assert f(2.0).dtype == np.float32  # the unknown keeps its dtype


def test_a_batch_goes_on_until_all_are_found() -> None:
    seen: list[Any] = []

    def f(a: Any) -> Any:
        def equation(x: Any) -> Any:
            if x.device is a.device:
                seen.append(x.device.concrete_values(x._array))
            return x**5 - a

        return ad.implicit.root(equation, 1.0)

    a = np.array([1.0, 1e-4, 1e9])
    assert_allclose(ad.vmap(f)(a), a**0.2, rtol=1e-12)
    searched = [x for x in seen if x.shape == (3,)]
    assert len(searched) > 10
    assert all(x[0] == 1.0 for x in searched)  # found where it started, it stays
    assert_allclose(ad.vmap(ad.grad(f))(a), 0.2 * a**-0.8, rtol=1e-9)


def test_integers_are_arguments_too() -> None:
    """Labels, closed over and given, which have no derivatives but belong to the examples of a batch."""
    x = np.array([[1.0, 2.0, 4.0], [3.0, 1.0, 0.5]])

    def best(x: Any, i: Any, j: Any) -> Any:
        return ad.implicit.minimize(lambda w, i: (w - x[i]) ** 2 + (w - x[j]) ** 2, 0.0, i)

    i, j = np.array([0, 1]), np.array([2, 1])
    assert_allclose(ad.vmap(best)(x, i, j), [2.5, 1.0])
    gradient = ad.vmap(ad.grad(best))(x, i, j)
    assert_allclose(gradient, [[0.5, 0.0, 0.5], [0.0, 1.0, 0.0]], atol=1e-15)


@pytest.mark.parametrize("leaf", ["reference", "strict"])
def test_on_other_backends(leaf: str) -> None:
    device: Any = ad.Reference() if leaf == "reference" else ad.ArrayAPI(pytest.importorskip("array_api_strict"))
    a = ad.tensor(np.array([2.0, 3.0]), device=ad.Autodiff(device)).require_grad()
    x = ad.implicit.root(lambda x, a: x * x - a, ad.ones(2, dtype=ad.float64, device=device), a)
    assert_allclose(x.inner().numpy(), np.sqrt([2, 3]), rtol=1e-12)
    assert_allclose(x.sum().backward()[a].numpy(), 0.5 / np.sqrt([2, 3]), rtol=1e-12)
    best = ad.implicit.minimize(lambda x, a: ((x - a) ** 2).sum() + (x**4).sum(), ad.zeros_like(a), a)
    assert_allclose(best.sum().backward()[a].numpy(), 2 / (2 + 12 * best.inner().numpy() ** 2), rtol=1e-10)


def test_under_checkpointing(device: ad.Autodiff[ad.NumPy]) -> None:
    a = ad.tensor(np.array([2.0, 3.0]), device=device).require_grad()
    x = ad.exp(ad.implicit.root(lambda x, a: x * x - a, np.ones(2), a))
    assert_allclose(x.sum().backward()[a].numpy(), np.exp(np.sqrt([2, 3])) * 0.5 / np.sqrt([2, 3]), rtol=1e-12)
    f = ad.checkpoint(lambda a: ad.sin(ad.implicit.root(lambda x, a: x * x - a, 1.0, a)))
    assert_allclose(ad.grad(f)(2.0), math.cos(math.sqrt(2)) * 0.5 / math.sqrt(2), rtol=1e-12)


def test_inside_one_another() -> None:
    """A root whose equation has a minimum in it: x = argmin_w (w - a x)^2 + (w - 1)^2 = (a x + 1) / 2."""

    def f(a: Any) -> Any:
        inner = lambda x: ad.implicit.minimize(lambda w, x: (w - a * x) ** 2 + (w - 1) ** 2, 0.0, x)
        return ad.implicit.root(lambda x: inner(x) - x, 0.0)

    a = 0.5
    assert_allclose(f(a), 1 / (2 - a), rtol=1e-12)
    assert_allclose(ad.grad(f)(a), 1 / (2 - a) ** 2, rtol=1e-11)
    assert_allclose(ad.grad(ad.grad(f))(a), 2 / (2 - a) ** 3, rtol=1e-10)


CONSTANT = ad.tensor(np.array([2.0, 3.0]))


def test_constants_may_be_globals() -> None:
    f = lambda a: ad.implicit.root(lambda x: x * CONSTANT - a + 0 * ad.ones(2, dtype=ad.float64), np.zeros(2)).sum()
    assert_allclose(ad.grad(f)(np.array([1.0, 1.0])), [1 / 2, 1 / 3], rtol=1e-14)


# --- other solvers ---


def test_solvers_may_be_any_python() -> None:
    def solver(g: Any, x0: Any) -> Any:
        assert isinstance(x0, np.ndarray)
        assert isinstance(g(x0), np.ndarray)
        return scipy.optimize.root(g, x0, tol=1e-14).x

    f = lambda a: ad.implicit.root(lambda x, a: x**3 + x - a, np.zeros(2), a, solver=solver)
    a = np.array([[2.0, 10.0], [30.0, 0.0]])
    assert_allclose(f(a[0]), [1.0, 2.0])
    assert_allclose(ad.vmap(f)(a), [[1.0, 2.0], [3.0, 0.0]], atol=1e-12)
    assert_allclose(ad.jacobian(f)(a[0]), np.diag([1 / 4, 1 / 13]), rtol=1e-8)
    assert_allclose(ad.jacobian(ad.vmap(f))(a)[1, :, 1], np.diag([1 / 28, 1.0]), rtol=1e-8)
    ad.testing.check_grads(f, (a[0],), order=2)


@pytest.mark.parametrize("device", ["autodiff<numpy>", "numpy", "reference"])
def test_solvers_are_given_numpys_arrays_on_any_device(device: str) -> None:
    solver = lambda g, x0: scipy.optimize.root(g, x0, tol=1e-14).x
    f = lambda a: ad.implicit.root(lambda x, a: x**3 + x - a, np.zeros(2), a, solver=solver)
    a = ad.tensor([2.0, 10.0], dtype=ad.float64, device=device)
    assert_allclose(f(a), [1.0, 2.0], rtol=1e-12)
    assert_allclose(ad.jacobian(f)(a), np.diag([1 / 4, 1 / 13]), rtol=1e-8)


def test_solvers_may_take_gradients() -> None:
    solver = lambda g, x0: scipy.optimize.minimize(g, x0, jac=ad.grad(g), method="BFGS", options={"gtol": 1e-10}).x
    f = lambda a: ad.implicit.minimize(lambda x, a: ((x - a) ** 2).sum() + (x**4).sum(), np.zeros(2), a, solver=solver)
    a = np.array([0.0, 3.0])
    assert_allclose(f(a), [0.0, 1.0], atol=1e-9)
    assert_allclose(ad.jacobian(f)(a), np.diag([1.0, 1 / 7]), rtol=1e-8)


def test_a_solver_gives_x_alone() -> None:
    with pytest.raises(ArgumentTypeError, match="the solver's result is OptimizeResult, expected a tensor; give its x"):
        ad.implicit.root(lambda x: x * x - 1, np.full(2, 2.0), solver=scipy.optimize.root)


def test_the_solver_of_a_fixed_point_gets_the_function() -> None:
    solver = lambda g, x0: scipy.optimize.fixed_point(lambda x: float(g(np.asarray(x))), 0.5, xtol=1e-13)
    assert_allclose(ad.implicit.fixed_point(lambda x: ad.cos(x), 1.0, solver=solver), 0.7390851332151607, rtol=1e-12)


# --- what goes wrong ---


def test_no_root() -> None:
    with pytest.raises(ConvergenceError, match=r"root: not solved after \d+ iterations.*maxiter") as caught:
        ad.implicit.root(lambda x: x * x + 1, 3.0)
    assert isinstance(caught.value, RuntimeError)
    assert 0 < caught.value.iterations <= 50
    assert caught.value.residual >= 1
    with pytest.raises(ConvergenceError, match="after 3 iterations") as caught:
        ad.implicit.root(lambda x: x**2 - 1e10, 1.0, maxiter=3)
    assert caught.value.iterations == 3
    with pytest.raises(ConvergenceError, match="for 2 of 3 examples"):
        ad.vmap(lambda a: ad.implicit.root(lambda x: x * x - a, 0.7))(np.array([-1.0, 1.0, -2.0]))
    with pytest.raises(ConvergenceError, match="Jacobian is singular after 0 steps"):
        ad.implicit.root(lambda x: x * x - 1, 0.0)
    with pytest.raises(ConvergenceError, match="is nan"):
        ad.implicit.root(lambda x: ad.sqrt(x), -1.0)


def test_no_fixed_point() -> None:
    with pytest.raises(ConvergenceError, match="fixed_point: not solved after 20 iterations: the largest change is"):
        ad.implicit.fixed_point(lambda x: 2 * x + 1, 1.0, maxiter=20)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_a_minimum_in_a_valley_is_as_exact_as_tol(dtype: str) -> None:
    """A short step that conjugate gradients solved for to two digits is not the last one."""
    found = ad.implicit.minimize(
        lambda x: (1 - x[0]) ** 2 + 100 * (x[1] - x[0] ** 2) ** 2, np.array([-1.2, 1.0], dtype)
    )
    np.testing.assert_allclose(found, [1, 1], rtol=10 * np.finfo(dtype).eps ** 0.75)


def test_no_minimum() -> None:
    with pytest.raises(ConvergenceError, match="minimize: not solved after 30 iterations"):
        ad.implicit.minimize(lambda x: ad.exp(-x), 1.0, maxiter=30, tol=1e-15)


def test_no_derivative() -> None:
    f = lambda a: ad.implicit.root(lambda x, a: x**3 - a, 0.0, a)
    assert f(0.0) == 0
    with pytest.raises(SingularError, match="root: the Jacobian at the solution is singular"):
        ad.jvp(f, (0.0,), (1.0,))
    with pytest.raises(BackwardError, match="root: the Jacobian at the solution is singular") as caught:
        ad.grad(f)(0.0)
    assert isinstance(caught.value.__cause__, SingularError)


class Model:
    def __init__(self, w: Any) -> None:
        self.w = w

    def __call__(self, x: Any) -> Any:
        return x * self.w - 1


@pytest.mark.parametrize("solve", [ad.implicit.root, ad.implicit.fixed_point])
def test_no_derivative_is_lost(solve: Callable[..., Any]) -> None:
    with pytest.raises(TrackedError, match="neither an argument nor a variable of its closure"):
        ad.grad(lambda w: solve(Model(w), 1.0))(2.0)
    with pytest.raises(TrackedError):
        ad.vmap(lambda w: solve(Model(w), 1.0))(np.array([2.0, 3.0]))
    w = ad.tensor(0.5).require_grad()
    with pytest.raises(TrackedError):
        solve(Model(w), 1.0)
    model = Model(0.5)
    assert solve(model, 1.0).shape == ()


@pytest.mark.parametrize(
    ("error", "call"),
    [
        (ArgumentTypeError, lambda: ad.implicit.root(3, 1.0)),
        (ArgumentTypeError, lambda: ad.implicit.root(lambda x: x, "start")),
        (DtypeError, lambda: ad.implicit.root(lambda x: x, 1)),
        (DtypeError, lambda: ad.implicit.root(lambda x: x, {"a": np.arange(3)})),
        (ArgumentError, lambda: ad.implicit.root(lambda x: x, np.zeros(0))),
        (ArgumentError, lambda: ad.implicit.root(lambda x: x, ())),
        (ArgumentError, lambda: ad.implicit.root(lambda x: x, 1.0, tol=0.0)),
        (ArgumentError, lambda: ad.implicit.root(lambda x: x, 1.0, maxiter=0)),
        (ArgumentTypeError, lambda: ad.implicit.root(lambda x: x, 1.0, solver="newton")),
        (ArgumentError, lambda: ad.implicit.root(lambda x: (x, x), 1.0)),
        (ArgumentTypeError, lambda: ad.implicit.root(lambda x: "x", 1.0)),
        (ShapeError, lambda: ad.implicit.root(lambda x: {"a": x["a"][:1]}, {"a": np.zeros(2)})),
        (DtypeError, lambda: ad.implicit.root(lambda x: x + 1j, 1.0)),
        (ShapeError, lambda: ad.implicit.minimize(lambda x: x, np.zeros(2))),
        (ShapeError, lambda: ad.implicit.minimize(lambda x: {"loss": x.sum()}, np.zeros(2))),
        (DtypeError, lambda: ad.implicit.minimize(lambda x: x + 1j, 1.0)),
        (ShapeError, lambda: ad.implicit.root(lambda x: x, np.zeros(2), solver=lambda g, x0: np.zeros(3))),
        (ConvergenceError, lambda: ad.implicit.root(lambda x: x, 1.0, solver=lambda g, x0: math.nan)),
        (
            ArgumentTypeError,
            lambda: ad.implicit.root(lambda x: x, np.ones(2), solver=lambda g, x0: np.array(["a", "b"])),
        ),
        (ArgumentTypeError, lambda: ad.implicit.root(lambda x: np.array(["a", "b"]), np.ones(2))),
        (ArgumentTypeError, lambda: ad.implicit.root(lambda x: x, np.array(["a"]))),
    ],
)
def test_bad_arguments(error: type[Exception], call: Callable[[], Any]) -> None:
    with pytest.raises(error):
        call()


def test_errors_say_where() -> None:
    with pytest.raises(ShapeError, match=r"root: the function's result\['a'\] has shape \(1,\), the state \(2,\)"):
        ad.implicit.root(lambda x: {"a": x["a"][:1]}, {"a": np.zeros(2)})
    with pytest.raises(DtypeError, match=r"x0\['a'\] is int64"):
        ad.implicit.root(lambda x: x, {"a": np.arange(3)})


def test_functions_may_assign_to_what_they_are_given() -> None:
    def f(x: Any, a: Any) -> Any:
        a *= 2
        x -= a
        return x

    for start in (1.0, np.array([1.0]), np.array([[1.0]])):
        assert ad.implicit.root(f, start, np.array(3.0)) == 6.0


def test_numbers_of_numpy_are_options() -> None:
    found = ad.implicit.root(lambda x: x * x - 2, 1.0, tol=np.float32(1e-9), maxiter=np.int64(20))
    assert abs(found - np.sqrt(2)) < 1e-9


@pytest.mark.parametrize("solve", [ad.implicit.root, ad.implicit.fixed_point, ad.implicit.minimize])
def test_callbacks_see_how_far_the_search_is(solve: Callable[..., Any]) -> None:
    f = {
        "root": lambda x, a: x * x - a,
        "fixed_point": lambda x, a: ad.cos(x) + 0 * a,
        "minimize": lambda x, a: (x - a) ** 4,
    }
    seen: list[tuple[int, float]] = []
    of = lambda a, **how: solve(f[solve.__name__], a + 2, a, **how)
    found = of(2.0, callback=lambda *at: seen.append(at))
    assert found == of(2.0)
    assert [count for count, _ in seen] == list(range(1, len(seen) + 1))
    assert all(type(size) is float for _, size in seen)
    assert seen[-1][1] < 1e-3 * seen[0][1]
    seen.clear()
    slopes = ad.vmap(ad.grad(lambda a: of(a, callback=lambda *at: seen.append(at))))(np.array([1.0, 2.0]))
    np.testing.assert_allclose(slopes, ad.vmap(ad.grad(of))(np.array([1.0, 2.0])))
    assert seen
    with pytest.raises(ad.errors.ArgumentTypeError, match="callback"):
        of(2.0, callback=3)
    with pytest.raises(ZeroDivisionError):
        of(2.0, callback=lambda *at: 1 / 0)
