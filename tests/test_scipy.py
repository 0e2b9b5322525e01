"""`ad.scipy`: the searches find what SciPy's own find with derivatives written by hand, and do so on trees."""

from __future__ import annotations

import re
from typing import Any, NamedTuple

import numpy as np
import processes
import pytest
import scipy.optimize
from numpy.testing import assert_allclose, assert_array_equal

import adjoint as ad

GRADIENT = ["CG", "BFGS", "Newton-CG", "L-BFGS-B", "TNC", "SLSQP", "trust-ncg", "trust-krylov", "trust-exact"]
START = [1.3, 0.7, 0.8, 1.9]


def rosenbrock(x: Any) -> Any:
    return (100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2).sum()


def bowl(p: Any) -> Any:
    return ((p["w"] - 2) ** 2).sum() + (p["b"] - 1) ** 2


# --- minimize ---


@pytest.mark.parametrize("method", [*GRADIENT, "trust-constr"])
def test_methods_go_the_way_they_go_with_derivatives_by_hand(method: str) -> None:
    """SciPy has the Rosenbrock function's gradient, Hessian and product with it: the same steps, the same end."""
    has = {"jac": scipy.optimize.rosen_der}
    if method == "trust-exact":
        has["hess"] = scipy.optimize.rosen_hess
    if method in ("Newton-CG", "trust-ncg", "trust-krylov", "trust-constr"):
        has["hessp"] = scipy.optimize.rosen_hess_prod
    theirs = scipy.optimize.minimize(scipy.optimize.rosen, START, method=method, **has)
    ours = ad.scipy.minimize(rosenbrock, START, method=method)
    assert_allclose(ours.x, theirs.x, rtol=1e-3, atol=1e-4)
    assert_allclose(ours.x, np.ones(4), atol=2e-3)
    if method != "CG":  # whose line search makes another way of another last digit
        assert abs(ours.nfev - theirs.nfev) <= 3
    assert ours.x.dtype == np.float64


@pytest.mark.parametrize("method", ["Nelder-Mead", "Powell", "COBYQA"])
def test_methods_without_derivatives(method: str) -> None:
    found = ad.scipy.minimize(bowl, {"w": np.zeros(2), "b": 0.0}, method=method)
    assert_allclose(found.x["w"], [2, 2], atol=1e-3)
    assert_allclose(found.x["b"], 1, atol=1e-3)


def test_dogleg_where_the_hessian_is_positive() -> None:
    found = ad.scipy.minimize(lambda x: (x**2).sum() + (x**4).sum(), [1.0, -2.0], method="dogleg")
    assert_allclose(found.x, [0, 0], atol=1e-5)


def test_a_method_of_the_users_gets_gradient_and_products() -> None:
    seen = {}

    def method(fun: Any, x0: Any, args: Any, *, jac: Any, hessp: Any, **rest: Any) -> Any:
        seen.update(value=fun(x0), gradient=jac(x0), product=hessp(x0, np.array([1.0, 0.0])))
        return scipy.optimize.OptimizeResult(x=x0, fun=fun(x0), success=True)

    x0 = np.array([0.5, 0.2])
    ad.scipy.minimize(rosenbrock, x0, method=method)
    assert_allclose(seen["value"], scipy.optimize.rosen(x0))
    assert_allclose(seen["gradient"], scipy.optimize.rosen_der(x0))
    assert_allclose(seen["product"], scipy.optimize.rosen_hess(x0)[:, 0])


def test_products_are_made_anew_at_another_point() -> None:
    products = []

    def method(fun: Any, x0: Any, args: Any, *, hessp: Any, **rest: Any) -> Any:
        x = np.array(x0)
        products.append(hessp(x, np.ones(1)))
        x[0] = 3.0  # SciPy's methods write into their vector
        products.append(hessp(x, np.ones(1)))
        return scipy.optimize.OptimizeResult(x=x, fun=0.0)

    ad.scipy.minimize(lambda x: (x**3).sum(), [1.0], method=method)
    assert_allclose(np.ravel(products), [6, 18])


def test_trees_of_arrays_and_numbers() -> None:
    class Point(NamedTuple):
        a: Any
        b: Any

    found = ad.scipy.minimize(lambda p: ((p.a - 1) ** 2).sum() + (p.b["c"] + 2) ** 2, Point(np.zeros((2, 3)), {"c": 0}))
    assert isinstance(found.x, Point)
    assert isinstance(found.jac, Point)
    assert_allclose(found.x.a, np.ones((2, 3)), atol=1e-6)
    assert_allclose(found.x.b["c"], -2, atol=1e-6)


def test_complex_starts() -> None:
    assert_allclose(ad.scipy.minimize(lambda z: ad.abs(z - (1 + 2j)) ** 2, 0j).x, 1 + 2j, atol=1e-6)


def test_tensors_in_tensors_out_and_arguments() -> None:
    x0 = ad.tensor([1.0, 2.0], device=ad.NumPy())
    found = ad.scipy.minimize(lambda x, c: ((x - c) ** 2).sum(), x0, args=(ad.tensor([3.0, 4.0], device=ad.NumPy()),))
    assert isinstance(found.x, ad.Tensor)
    assert found.x.device is ad.NumPy()
    assert found.x.dtype == ad.float32
    assert_allclose(found.x.numpy(), [3, 4], rtol=1e-3)
    assert_allclose(ad.scipy.minimize(lambda x, c: ((x - c) ** 2).sum(), [0.0], args=2.0).x, [2], atol=1e-6)
    assert x0.numpy().tolist() == [1.0, 2.0]


def test_starts_are_not_written_to() -> None:
    x0 = np.array([1.0, 2.0])
    ad.scipy.minimize(rosenbrock, x0)
    assert_array_equal(x0, [1, 2])


@pytest.mark.parametrize("method", ["L-BFGS-B", "TNC", "SLSQP", "trust-constr", "Nelder-Mead", "Powell"])
def test_bounds_of_trees(method: str) -> None:
    bounds = {"w": (np.array([0.0, 0.0]), np.array([1.5, 3.0])), "b": (None, 0.5)}
    found = ad.scipy.minimize(bowl, {"w": np.ones(2), "b": 0.0}, method=method, bounds=bounds)
    assert_allclose(found.x["w"], [1.5, 2], atol=2e-3)
    assert_allclose(found.x["b"], 0.5, atol=2e-3)


@pytest.mark.parametrize(
    ("bounds", "expected"),
    [
        ([(1, None), (None, None)], 0),
        ((1.0, None), 1),
        (scipy.optimize.Bounds([1, -1], [5, 5]), 0),
        ((np.array([1, -1]), 5), 0),
    ],
)
def test_bounds_of_one_array(bounds: Any, expected: float) -> None:
    found = ad.scipy.minimize(lambda x: (x * x).sum(), [3.0, 2.0], bounds=bounds)
    assert_allclose(found.x, [1, expected], atol=1e-6)


def test_constraints_have_exact_derivatives() -> None:
    """The nearest point to (2, 2, 2, 2) on a plane and in a ball, in closed form."""
    start = {"w": np.full((2, 2), 0.5), "b": 0.0}
    plane = {"type": "eq", "fun": lambda p: p["w"].sum() - 3}
    found = ad.scipy.minimize(bowl, start, constraints=plane)
    assert_allclose(found.x["w"], np.full((2, 2), 0.75), atol=1e-6)
    ball = scipy.optimize.NonlinearConstraint(lambda p: (p["w"] ** 2).sum(), -np.inf, 3)
    for method in ("SLSQP", "trust-constr"):
        found = ad.scipy.minimize(bowl, start, method=method, constraints=[ball])
        assert_allclose(found.x["w"], np.full((2, 2), np.sqrt(0.75)), atol=1e-4)
    line = scipy.optimize.LinearConstraint([[0, 1, 1, 1, 1]], 3, 3)  # b stands before w
    found = ad.scipy.minimize(bowl, start, constraints=(line,))
    assert_allclose(found.x["w"], np.full((2, 2), 0.75), atol=1e-6)


# --- constraints, of which the solutions are known ---


def hs71(x: Any) -> Any:
    return x[0] * x[3] * (x[0] + x[1] + x[2]) + x[2]


PRODUCT = {"type": "ineq", "fun": lambda x: x[0] * x[1] * x[2] * x[3] - 25}
SPHERE = {"type": "eq", "fun": lambda x: (x**2).sum() - 40}
PAIR = [
    scipy.optimize.NonlinearConstraint(lambda x: {"product": x[0] * x[1] * x[2] * x[3]}, 25, np.inf),
    scipy.optimize.NonlinearConstraint(lambda x: (x**2).sum(), 40, 40),
]


@pytest.mark.parametrize("constraints", [[PRODUCT, SPHERE], PAIR], ids=["dictionaries", "NonlinearConstraint"])
@pytest.mark.parametrize(("method", "close"), [("SLSQP", 1e-5), ("trust-constr", 1e-4), ("COBYLA", 1e-2), (None, 1e-5)])
def test_problem_71(method: Any, close: float, constraints: Any) -> None:
    """W. Hock and K. Schittkowski, Test examples for nonlinear programming codes (1981)."""
    found = ad.scipy.minimize(
        hs71, [1.0, 5.0, 5.0, 1.0], method=method, bounds=(1.0, 5.0), constraints=constraints, options={"maxiter": 500}
    )
    assert_allclose(found.x, [1.0, 4.74299963, 3.82114998, 1.37940829], atol=close)
    assert_allclose(found.fun, 17.0140173, rtol=close)


def test_as_many_evaluations_as_with_derivatives_by_hand() -> None:
    by_hand = {
        "fun": lambda x: x[0] * x[3] * (x[0] + x[1] + x[2]) + x[2],
        "jac": lambda x: np.array(
            [x[3] * (2 * x[0] + x[1] + x[2]), x[0] * x[3], x[0] * x[3] + 1, x[0] * (x[0] + x[1] + x[2])]
        ),
    }
    product = {**PRODUCT, "jac": lambda x: np.prod(x) / x}
    sphere = {**SPHERE, "jac": lambda x: 2 * x}
    start, bounds = np.array([1.0, 5.0, 5.0, 1.0]), [(1.0, 5.0)] * 4
    theirs = scipy.optimize.minimize(x0=start, method="SLSQP", bounds=bounds, constraints=[product, sphere], **by_hand)
    ours = ad.scipy.minimize(hs71, start, method="SLSQP", bounds=bounds, constraints=[PRODUCT, SPHERE])
    assert (ours.nfev, ours.njev, ours.nit) == (theirs.nfev, theirs.njev, theirs.nit)
    assert_allclose(ours.x, theirs.x, rtol=1e-9)


@pytest.mark.parametrize("method", ["SLSQP", "trust-constr", "COBYLA", "COBYQA"])
def test_rosenbrocks_valley_in_a_disc(method: str) -> None:
    """At the rim, where the gradient points to the centre."""
    disc = scipy.optimize.NonlinearConstraint(lambda x: (x**2).sum(), -np.inf, 1)
    found = ad.scipy.minimize(rosenbrock, [0.0, 0.0], method=method, constraints=disc)
    assert_allclose(found.x, [0.78641515, 0.61769831], atol=1e-3 if method == "COBYLA" else 1e-5)
    slope = scipy.optimize.rosen_der(found.x)
    assert abs(slope[0] * found.x[1] - slope[1] * found.x[0]) < (0.1 if method == "COBYLA" else 1e-3)


def test_the_hessian_of_a_constraint_is_exact() -> None:
    f = scipy.optimize.NonlinearConstraint(lambda x: ad.stack([x[0] ** 3 * x[1], ad.sin(x[0])]), 0, 1)
    limits = ad.scipy.searches.vector_constraints
    space = ad.scipy.searches.Space("minimize", np.array([0.5, 2.0]), ())
    (constraint,) = limits(space, [f], second=True)
    x, v = np.array([0.5, 2.0]), np.array([2.0, -1.0])
    assert_allclose(constraint.jac(x), [[3 * 0.25 * 2, 0.125], [np.cos(0.5), 0]])
    assert_allclose(constraint.hess(x, v) @ np.eye(2), [[2 * 6 + np.sin(0.5), 2 * 0.75], [2 * 0.75, 0]])


def test_callbacks_get_trees() -> None:
    seen: list[Any] = []
    ad.scipy.minimize(bowl, {"w": np.zeros(2), "b": 0.0}, method="BFGS", callback=lambda x: seen.append(x["w"].shape))
    assert seen
    assert set(seen) == {(2,)}

    def stop(intermediate_result: Any) -> None:
        seen.append(intermediate_result)
        raise StopIteration

    found = ad.scipy.minimize(bowl, {"w": np.zeros(2), "b": 0.0}, method="BFGS", callback=stop)
    assert seen[-1].x["w"].shape == (2,)
    assert found.nit == 1


# --- least_squares, curve_fit, root ---

T = np.linspace(0, 4, 30)
Y = 2.5 * np.exp(-1.3 * T) + 0.5 + 0.05 * np.random.default_rng(0).standard_normal(30)


def decay(t: Any, a: Any, k: Any, c: Any) -> Any:
    return a * ad.exp(-k * t) + c


def decay_of_numpy(t: Any, a: Any, k: Any, c: Any) -> Any:
    return a * np.exp(-k * t) + c


@pytest.mark.parametrize("how", [{}, {"method": "lm"}, {"method": "dogbox"}, {"tr_solver": "lsmr"}, {"loss": "huber"}])
def test_least_squares(how: dict[str, Any]) -> None:
    theirs = scipy.optimize.least_squares(lambda p: decay_of_numpy(T, *p) - Y, np.ones(3), jac="3-point", **how)
    ours = ad.scipy.least_squares(lambda p: decay(T, *p) - Y, np.ones(3), **how)
    assert_allclose(ours.x, theirs.x, rtol=1e-5)
    tree = ad.scipy.least_squares(
        lambda p: {"all": decay(T, **p) - Y, "none": p["a"] * 0}, {"a": 1, "k": 1.0, "c": 1.0}, **how
    )
    assert_allclose([tree.x[name] for name in "akc"], theirs.x, rtol=1e-5)
    assert set(tree.grad) == {"a", "k", "c"}


def test_least_squares_within_bounds() -> None:
    for bounds in ((0, 2), ([0, 0, 0], [2, 2, 2]), scipy.optimize.Bounds(0, 2)):
        found = ad.scipy.least_squares(lambda p: decay(T, *p) - Y, np.ones(3), bounds=bounds)
        theirs = scipy.optimize.least_squares(lambda p: decay_of_numpy(T, *p) - Y, np.ones(3), bounds=(0, 2))
        assert_allclose(found.x, theirs.x, rtol=1e-5)
    lows, highs = {"a": 0, "k": 0, "c": 0}, {"a": 2, "k": np.inf, "c": np.inf}
    start = {"a": 1.0, "k": 1.0, "c": 1.0}
    found = ad.scipy.least_squares(lambda p: decay(T, **p) - Y, start, bounds=(lows, highs))
    assert_allclose(found.x["a"], 2, rtol=1e-6)


@pytest.mark.parametrize("sigma", [None, np.full(30, 0.05), np.diag(np.full(30, 0.05**2))], ids=["none", "1d", "2d"])
@pytest.mark.parametrize("absolute", [False, True])
def test_curve_fit(sigma: Any, absolute: bool) -> None:
    theirs = scipy.optimize.curve_fit(decay_of_numpy, T, Y, sigma=sigma, absolute_sigma=absolute)
    ours = ad.scipy.curve_fit(decay, T, Y, sigma=sigma, absolute_sigma=absolute)
    assert_allclose(ours[0], theirs[0], rtol=1e-6)
    assert_allclose(ours[1], theirs[1], rtol=1e-5)


def test_curve_fit_of_trees_and_grids() -> None:
    popt, pcov = ad.scipy.curve_fit(decay, T, Y, {"a": 1.0, "k": 1.0, "c": 0.0})
    assert set(popt) == {"a", "k", "c"}
    assert pcov.shape == (3, 3)

    class Model(NamedTuple):
        slopes: Any
        offset: Any

    x = {"u": np.linspace(0, 1, 12).reshape(3, 4), "v": np.linspace(-1, 1, 12).reshape(3, 4) ** 2}
    y = 2 * x["u"] - 3 * x["v"] + 0.5
    model, _ = ad.scipy.curve_fit(
        lambda x, p: p.slopes[0] * x["u"] + p.slopes[1] * x["v"] + p.offset,
        x,
        y,
        Model(np.zeros(2), 0.0),
        sigma=np.ones((3, 4)),
    )
    assert isinstance(model, Model)
    assert_allclose(model.slopes, [2, -3], atol=1e-10)
    assert_allclose(model.offset, 0.5, atol=1e-10)
    assert len(ad.scipy.curve_fit(decay, T, Y, full_output=True)) == 5
    assert ad.scipy.curve_fit(decay, T, Y, (1.0, 1.0, 0.0), bounds=((0, 0, 0), (3, 2, 0.4)))[0][2] <= 0.4


@pytest.mark.parametrize("method", ["hybr", "lm", "krylov", "df-sane"])
def test_root(method: str) -> None:
    found = ad.scipy.root(
        lambda p: {"u": p["a"] ** 2 + p["b"] - 2, "v": p["a"] - p["b"]}, {"a": 3.0, "b": 1}, (), method
    )
    assert found.success
    assert_allclose([found.x["a"], found.x["b"]], [1, 1], atol=1e-4)


# --- wrong input ---


@pytest.mark.parametrize(
    ("call", "error", "says"),
    [
        (lambda s: s.minimize(rosenbrock, START, method="foo"), ad.errors.ArgumentError, "no method 'foo'"),
        (lambda s: s.minimize(rosenbrock, START, method=3), ad.errors.ArgumentTypeError, "name or a callable"),
        (lambda s: s.minimize(lambda x: x, START), ad.errors.ShapeError, r"shape \(4,\)"),
        (lambda s: s.minimize(lambda x: x, START, method="Powell"), ad.errors.ShapeError, r"shape \(4,\)"),
        (lambda s: s.minimize(lambda x: "a", START, method="Powell"), ad.errors.ShapeError, "str 'a'"),
        (lambda s: s.minimize(lambda x: 1j * x.sum(), START), ad.errors.DtypeError, "complex"),
        (lambda s: s.minimize(lambda x: 1j * x.sum(), START, method="COBYLA"), ad.errors.DtypeError, "no order"),
        (lambda s: s.minimize(3, START), ad.errors.ArgumentTypeError, "function"),
        (lambda s: s.minimize(rosenbrock, "abc"), ad.errors.ArgumentTypeError, "x0 is str"),
        (lambda s: s.minimize(rosenbrock, []), ad.errors.ArgumentError, "no elements"),
        (lambda s: s.minimize(bowl, {"w": 1.0, "b": 1.0}, bounds={"w": (0, 1)}), ad.errors.ArgumentError, r"\['b'\]"),
        (
            lambda s: s.minimize(bowl, {"w": 1, "b": 1}, bounds={"w": (0, 1), "b": 3}),
            ad.errors.ArgumentError,
            "no pair",
        ),
        (
            lambda s: s.minimize(bowl, {"w": np.ones(3), "b": 1}, bounds={"w": (np.ones(2), 1), "b": None}),
            ad.errors.ShapeError,
            "does not fit an array",
        ),
        (
            lambda s: s.minimize(bowl, {"w": 1.0, "b": 1.0}, bounds=scipy.optimize.Bounds(0, 1)),
            ad.errors.ArgumentError,
            "for one array",
        ),
        (lambda s: s.minimize(lambda z: abs(z), 1j, bounds=(0, 1)), ad.errors.DtypeError, "no order"),
        (lambda s: s.minimize(rosenbrock, START, bounds=3), ad.errors.ArgumentError, "4 of them"),
        (lambda s: s.minimize(rosenbrock, [1.0, 2.0], bounds=[(0, 1), 3]), ad.errors.ArgumentError, "2 of them"),
        (lambda s: s.minimize(rosenbrock, START, constraints=[3]), ad.errors.ArgumentTypeError, "dictionary"),
        (lambda s: s.minimize(rosenbrock, START, callback=3), ad.errors.ArgumentTypeError, "callback"),
        (lambda s: s.minimize(rosenbrock, START, jac=True), ad.errors.ArgumentError, "leave out jac="),
        (lambda s: s.minimize(rosenbrock, START, hessp=len), ad.errors.ArgumentError, "leave out hessp="),
        (lambda s: s.minimize(rosenbrock, START, maxiter=3), ad.errors.ArgumentTypeError, "maxiter.*options"),
        (lambda s: s.minimize(rosenbrock, START, options=[1]), ad.errors.ArgumentTypeError, "options"),
        (lambda s: s.minimize(rosenbrock, START, tol="a"), ad.errors.ArgumentTypeError, "tol is a number"),
        (lambda s: s.minimize(rosenbrock, START, bounds=(2, 1)), ad.errors.ArgumentError, r"2.* and 1"),
        (lambda s: s.minimize(rosenbrock, START, bounds=[(0, -1)] * 4), ad.errors.ArgumentError, "lower bound"),
        (lambda s: s.minimize(rosenbrock, START, bounds=("a", 1)), ad.errors.ArgumentTypeError, "'a'"),
        (
            lambda s: s.minimize(rosenbrock, START, constraints={"type": "le", "fun": lambda x: x}),
            ad.errors.ArgumentError,
            "'eq' or 'ineq', received 'le'",
        ),
        (
            lambda s: s.minimize(rosenbrock, START, constraints=scipy.optimize.LinearConstraint([[1, 1]], 0, 1)),
            ad.errors.ShapeError,
            "2 columns",
        ),
        (
            lambda s: s.minimize(rosenbrock, START, method="BFGS", constraints=SPHERE),
            ad.errors.ArgumentError,
            "'BFGS' has no constraints; take SLSQP",
        ),
        (
            lambda s: s.minimize(rosenbrock, START, method="CG", bounds=(0, 1)),
            ad.errors.ArgumentError,
            "'CG' has no bounds; take L-BFGS-B",
        ),
        (
            lambda s: s.minimize(rosenbrock, START, constraints={**SPHERE, "jac": lambda x: 2 * x}),
            ad.errors.ArgumentError,
            "leave out their jac= and hess=",
        ),
        (
            lambda s: s.minimize(
                rosenbrock, START, constraints=scipy.optimize.NonlinearConstraint(lambda x: x, 0, 1, jac=np.eye)
            ),
            ad.errors.ArgumentError,
            "leave out their jac= and hess=",
        ),
        (
            lambda s: s.minimize(
                rosenbrock, START, constraints=scipy.optimize.NonlinearConstraint(lambda x: x, np.zeros(3), 1)
            ),
            ad.errors.ShapeError,
            r"limits of shape \(3,\), and its function gives 4",
        ),
        (
            lambda s: s.minimize(rosenbrock, START, constraints={"type": "eq", "fun": 3}),
            ad.errors.ArgumentTypeError,
            "function",
        ),
        (lambda s: s.root(lambda x: x, START, method="foo"), ad.errors.ArgumentError, "'hybr', 'lm'.* 'foo'"),
        (lambda s: s.root(lambda x: x, START, method=3), ad.errors.ArgumentError, "received 3"),
        (lambda s: s.least_squares(lambda x: x, START, method="foo"), ad.errors.ArgumentError, "'trf'.* 'foo'"),
        (lambda s: s.least_squares(lambda x: x, START, (0, 9), "lm"), ad.errors.ArgumentError, "'lm' has no bounds"),
        (lambda s: s.least_squares(lambda x: x, START, (5, 5)), ad.errors.ArgumentError, "below the upper"),
        (lambda s: s.least_squares(lambda x: x, START, (5, 6)), ad.errors.ArgumentError, "starts outside"),
        (lambda s: s.curve_fit(lambda x, a: a * x, T, Y, method="foo"), ad.errors.ArgumentError, "'foo'"),
        (
            lambda s: s.curve_fit(lambda x, a: a * x, T, Y, 9.0, bounds=(0, 1)),
            ad.errors.ArgumentError,
            "starts outside",
        ),
        (lambda s: s.curve_fit(lambda x, a: a * x, T, Y, sigma=[1.0]), ad.errors.ShapeError, r"sigma has shape \(1,\)"),
        (lambda s: s.curve_fit(lambda x, a: a * x, T, Y + 1j), ad.errors.DtypeError, "ydata"),
        (lambda s: s.curve_fit(lambda x, a: a * x, [], []), ad.errors.ShapeError, "no values"),
        (lambda s: s.root(lambda x: x[:1], START), ad.errors.ShapeError, "1 numbers for 4 unknowns"),
        (lambda s: s.root(lambda x: x, START, jac=True), ad.errors.ArgumentError, "leave out jac="),
        (lambda s: s.least_squares(lambda x: "a", START), ad.errors.DtypeError, "str 'a'"),
        (lambda s: s.least_squares(lambda x: {}, START), ad.errors.ArgumentError, "no results"),
        (lambda s: s.least_squares(lambda x: x, START, bounds=3), ad.errors.ArgumentError, "lowest, highest"),
        (lambda s: s.least_squares(lambda x: x, START, bounds=("a", 1)), ad.errors.ArgumentError, "'a'"),
        (lambda s: s.least_squares(lambda x: x, START, jac="2-point"), ad.errors.ArgumentError, "leave out jac="),
        (lambda s: s.curve_fit(lambda x, *p: x, T, Y), ad.errors.ArgumentError, "give p0"),
        (
            lambda s: s.curve_fit(lambda x, a: x[:2] * a, T, Y),
            ad.errors.ShapeError,
            r"2 values for data of shape \(30,\)",
        ),
    ],
)
def test_wrong_input(call: Any, error: type[Exception], says: str) -> None:
    with pytest.raises(error, match=says):
        call(ad.scipy)


def test_bounds_may_be_an_array_and_open_on_a_side() -> None:
    def away(x: Any) -> Any:
        return ((x - np.array([2.0, 3.0])) ** 2).sum()

    for bounds in (np.array([[0, 1], [0, 2.0]]), ad.asarray([[0, 1], [0, 2.0]]), [(None, 1), (0, 2)]):
        assert ad.scipy.minimize(away, [0.0, 0.0], bounds=bounds).x.tolist() == [1.0, 2.0]
    found = ad.scipy.least_squares(lambda x: x - np.array([2.0, 3.0]), [0.0, 0.0], (None, 2.5))
    np.testing.assert_allclose(found.x, [2.0, 2.5], atol=1e-6)


@pytest.mark.parametrize("method", ["TNC", "L-BFGS-B", "SLSQP", "COBYLA"])
def test_a_callback_with_a_result_serves_every_method(method: str) -> None:
    seen: list[Any] = []

    def keep(intermediate_result: Any) -> None:
        seen.append(intermediate_result.x)

    ad.scipy.minimize(bowl, {"w": 0.0, "b": 1.0}, method=method, callback=keep)
    assert seen
    assert set(seen[0]) == {"w", "b"}


def test_fits_leave_out_what_is_missing() -> None:
    y = np.where(T > 1.0, np.nan, 3.0 * np.exp(-2.0 * T))
    mine, covariance = ad.scipy.curve_fit(lambda t, a, k: a * ad.exp(-k * t), T, y, nan_policy="omit", sigma=0.5)
    theirs, expected = scipy.optimize.curve_fit(lambda t, a, k: a * np.exp(-k * t), T, y, nan_policy="omit", sigma=0.5)
    np.testing.assert_allclose(mine, theirs, rtol=1e-6)
    np.testing.assert_allclose(mine, [3.0, 2.0], rtol=1e-6)
    assert covariance.shape == expected.shape


def test_a_fit_within_bounds_starts_inside_of_them() -> None:
    found, _ = ad.scipy.curve_fit(lambda t, a, k: a * ad.exp(-k * t), T, 9.0 * np.exp(-2.0 * T), bounds=([5, 1.5], 12))
    np.testing.assert_allclose(found, [9.0, 2.0], rtol=1e-5)


def test_nothing_leaves_a_graph_silently() -> None:
    w = ad.tensor(1.0).require_grad()
    with pytest.raises(ad.errors.TrackedError, match="detach"):
        ad.scipy.minimize(lambda x: x, w)
    with pytest.raises(ad.errors.TrackedError, match="detach"):
        ad.scipy.minimize(lambda x, c: (x - c) ** 2, ad.tensor(2.0), args=(w,))
    for method in ("BFGS", "Powell"):
        with pytest.raises(ad.errors.AdjointError):
            ad.scipy.minimize(lambda x: (x.sum() - w) ** 2, ad.tensor([2.0]), method=method)


SEARCHES = {
    **{name: lambda s, name=name: getattr(scipy.optimize, name)(lambda u: u * s - 1, 0.1, 5.0)
       for name in "bisect brenth brentq ridder toms748".split()},
    "newton": lambda s: scipy.optimize.newton(lambda u: u * s - 1, 0.7),
    "newton with a slope": lambda s: scipy.optimize.newton(lambda u: u * s - 1, 0.7, fprime=lambda u: s),
    "newton at its root": lambda s: scipy.optimize.newton(lambda u: u * s - 1, 0.5, fprime=lambda u: s),
    "newton from a tensor": lambda s: scipy.optimize.newton(lambda u: u * 2 - 1, s),
    "fsolve": lambda s: scipy.optimize.fsolve(lambda u: u * s - 1, 0.7),
    "root": lambda s: scipy.optimize.root(lambda u: u * s - 1, 0.7),
    "root_scalar": lambda s: scipy.optimize.root_scalar(lambda u: u * s - 1, x0=0.7, x1=0.6),
    "fixed_point": lambda s: scipy.optimize.fixed_point(lambda u: 1 / (u + s), 0.7),
    "fixed_point of args": lambda s: scipy.optimize.fixed_point(lambda u, a: 1 / (u + a), 0.7, args=(s,)),
    **{name: lambda s, name=name: getattr(scipy.optimize, name)(lambda u: (u * s - 1) ** 2)
       for name in "bracket brent golden minimize_scalar".split()},
    "fminbound": lambda s: scipy.optimize.fminbound(lambda u: (u * s - 1) ** 2, 0, 4),
    **{name: lambda s, name=name: getattr(scipy.optimize, name)(lambda u: ((u * s - 1) ** 2).sum(), [0.7])
       for name in "fmin fmin_bfgs fmin_cg fmin_powell minimize basinhopping".split()},
    "least_squares": lambda s: scipy.optimize.least_squares(lambda u: u * s - 1, [0.7]),
    "leastsq": lambda s: scipy.optimize.leastsq(lambda u: u * s - 1, [0.7]),
    "curve_fit": lambda s: scipy.optimize.curve_fit(lambda x, a: a * x * s, [1.0, 2.0], [1.0, 2.0]),
    "differential_evolution": lambda s: scipy.optimize.differential_evolution(
        lambda u: ((u * s - 1) ** 2).sum(), [(0, 2)], maxiter=1
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", SEARCHES)
def test_searches_of_scipys_refuse_what_is_tracked_and_name_ours(name: str) -> None:
    """They choose among numbers by comparing values: what they choose would have no derivative, or that of a step."""
    s = ad.tensor(2.0, dtype=ad.float64).require_grad()
    with pytest.raises((TypeError, ValueError, RuntimeError)) as caught:
        SEARCHES[name](s)
    error: BaseException | None = caught.value
    while error is not None and not isinstance(error, ad.errors.TrackedError):
        error = error.__cause__  # SciPy wraps some
    assert re.match(rf"scipy\.optimize\.{name.split()[0]} .* for tensors there is ad\.(scipy|implicit)\.", str(error))


def test_searches_of_scipys_take_constants() -> None:
    s = ad.tensor(2.0, dtype=ad.float64)
    for name in "bisect brenth brentq ridder toms748 newton fsolve golden brent fminbound fmin".split():
        found = SEARCHES[name](s)
        assert_allclose(np.asarray(found).ravel()[0], 0.5, rtol=1e-4)


def test_what_scipys_searches_call_may_use_tensors_and_numpy() -> None:
    """SciPy's frames are on the stack there, too."""
    from adjoint.autograd import grad, hessian_vector_product

    def f(x: Any) -> Any:
        return np.tensordot(x - 1.0, x - 1.0, 1) + np.sum((x - 1.0) ** 4)

    options: dict[str, Any] = {"x0": np.zeros(2), "method": "trust-krylov"}
    for slope, along in (
        (grad(f), hessian_vector_product(f)),
        (ad.grad(f), lambda x, v: ad.grad(lambda x: np.tensordot(ad.grad(f)(x), v, 1))(x)),
    ):
        assert_allclose(scipy.optimize.minimize(f, jac=slope, hessp=along, **options).x, 1.0, rtol=1e-4)


def test_without_scipy_the_error_says_what_to_install() -> None:
    code = """
import sys
sys.modules["scipy"] = None
import adjoint as ad
try:
    ad.scipy.minimize(lambda x: x, 1.0)
except ad.errors.MissingLibraryError as error:
    print(error)
"""
    said = processes.python(code).stdout
    assert "pip install 'adjoint[scipy]'" in said
