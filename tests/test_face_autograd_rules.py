"""`adjoint.autograd`: primitives of users, and the rules that they are given."""

from __future__ import annotations

from typing import Any

import numpy as onp
import pytest
from numpy.testing import assert_allclose
from test_face_autograd import MATRIX, V, X

import adjoint as ad
import adjoint.autograd.numpy as np
from adjoint import autograd, errors
from adjoint.autograd import extend, test_util
from adjoint.autograd.boxes import getval, isbox


def cubes() -> Any:
    """x**3 * y computed by NumPy, which no box may reach."""

    @extend.primitive
    def cube(x: Any, y: Any = 1.0) -> Any:
        assert not isbox(x)
        return onp.asarray(x) ** 3 * y

    return cube


def test_a_primitive_has_the_derivatives_that_it_is_given() -> None:
    cube = cubes()
    extend.defvjp(cube, lambda ans, x, y=1.0: lambda g: g * 3 * x**2 * y, lambda ans, x, y: lambda g: np.sum(g * x**3))
    extend.defjvp(cube, lambda t, ans, x, y=1.0: t * 3 * x**2 * y, "same")
    test_util.check_grads(lambda x: cube(np.sin(x)), modes=["rev"], order=3)(X)
    test_util.check_grads(cube, (0, 1), modes=["rev"])(X, 2.0)
    extend.defjvp(cube, lambda t, ans, x, y=1.0: t * 3 * x**2 * y, lambda t, ans, x, y: x**3 * t)
    test_util.check_grads(cube, (0, 1))(X, 2.0)
    assert_allclose(autograd.jacobian(cube)(X), onp.diag(3 * X**2))
    assert_allclose(autograd.hessian(lambda x: np.sum(cube(x)))(X), onp.diag(6 * X))
    assert_allclose(autograd.jacobian(lambda x: cube(x * X))(2.0), 12 * X**3)
    assert_allclose(cube(X), X**3)


def test_rules_of_numpy_alone_serve_for_first_derivatives() -> None:
    cube = cubes()
    extend.defvjp(cube, lambda ans, x: lambda g: onp.multiply(onp.asarray(g), 3 * getval(x) ** 2))
    assert_allclose(autograd.grad(lambda x: np.sum(cube(x)))(X), 3 * X**2)
    assert_allclose(autograd.jacobian(cube)(X), onp.diag(3 * X**2))  # one row after the other


def test_rules_are_in_hips_autograds_complex_convention() -> None:
    cube = cubes()
    extend.defvjp(cube, lambda ans, z: lambda g: g * 3 * z**2)
    z = X + 1j * V
    plain = lambda z: np.real(np.sum(z**3))
    assert_allclose(autograd.grad(lambda z: np.real(np.sum(cube(z))))(z), autograd.grad(plain)(z))
    test_util.check_grads(cube, modes=["rev"])(z)


def test_of_a_complex_cotangent_the_real_part_counts_for_a_real_argument() -> None:
    turned = extend.primitive(lambda x: x * (1 + 2j))
    extend.defvjp(turned, lambda ans, x: lambda g: g * (1 + 2j))
    f = lambda turned: lambda x: np.sum(np.abs(turned(np.exp(x)) + x) ** 2)
    assert_allclose(autograd.grad(f(turned))(X), autograd.grad(f(lambda x: x * (1 + 2j)))(X))


def test_rules_of_containers_and_of_several_arguments_together() -> None:
    @extend.primitive
    def both(pair: Any, y: Any) -> Any:
        return pair[0] * pair[1], y * 2.0

    extend.defvjp_argnums(
        both,
        lambda argnums, ans, args, kwargs: (
            lambda g: [[(g[0] * args[0][1], g[0] * args[0][0]), g[1] * 2.0][i] for i in argnums]
        ),
    )

    def f(x: Any, y: Any) -> Any:
        a, b = both((x, x * y), y)
        return np.sum(a) + np.sum(b)

    assert_allclose(autograd.grad(f)(X, 3.0), 6 * X)
    assert_allclose(autograd.grad(f, 1)(X, 3.0), onp.sum(X**2) + 2)


@pytest.mark.parametrize("gives", [np.array, list, tuple])
def test_a_rule_may_give_any_sequence_for_a_list(gives: Any) -> None:
    @extend.primitive
    def total(parameters: Any) -> Any:
        return sum([v**2 for v in parameters[0]])

    extend.defvjp(total, lambda ans, parameters: lambda g: (gives([2 * g * v for v in parameters[0]]),))

    def f(x: Any, y: Any) -> Any:
        return total(([x, y, x * y],))

    assert_allclose(autograd.grad(f, (0, 1))(2.0, 3.0), (4 + 2 * 6 * 3, 6 + 2 * 6 * 2))
    assert_allclose(autograd.grad(autograd.grad(f))(2.0, 3.0), 2 + 2 * 9)
    assert_allclose(autograd.grad(lambda x: np.sum(f(x, x)))(X), 4 * X + 4 * X**3)  # rows of an array

    extend.defvjp(total, lambda ans, parameters: lambda g: (gives([g, g]),))
    with pytest.raises(errors.BackwardError, match="VJP of argument 0 gives a structure"):
        autograd.grad(f)(2.0, 3.0)


def test_old_ways_to_give_rules_warn_and_work() -> None:
    @autograd.primitive
    def product(x: Any, y: Any) -> Any:
        return x * y

    with pytest.warns(UserWarning, match="deprecated"):
        product.defgrad(lambda ans, x, y: lambda g: y * g)
    with pytest.warns(UserWarning, match="deprecated"):
        product.defvjp(lambda g, ans, vs, gvs, x, y: x * g + vs.zeros(), argnum=1)
    assert autograd.grad(product, (0, 1))(2.0, 3.0) == (3.0, 2.0)
    with pytest.warns(UserWarning, match="deprecated"):
        product.defvjp_is_zero([1])
    assert autograd.grad(product, (0, 1))(2.0, 3.0) == (3.0, 0.0)


def test_a_rule_may_replace_that_of_a_function_of_numpys() -> None:
    inverse_hyperbolic = extend.primitive(onp.arcsinh)
    with pytest.raises(NotImplementedError, match="VJP of arcsinh wrt argnums"):
        autograd.grad(inverse_hyperbolic)(1.0)
    extend.defvjp(inverse_hyperbolic, lambda ans, x: lambda g: g * 100.0)
    assert autograd.grad(inverse_hyperbolic)(1.0) == 100.0
    assert_allclose(autograd.grad(np.arcsinh)(1.0), 2**-0.5)


def test_what_is_not_traced_has_no_derivative() -> None:
    whole = extend.notrace_primitive(onp.round)
    assert autograd.grad(lambda x: x * whole(x))(2.6) == 3.0
    half = extend.primitive(lambda x: x / 2)
    extend.register_notrace(None, half)
    assert autograd.grad(lambda x: x * half(x))(3.0) == 1.5


def test_rules_are_given_to_primitives() -> None:
    tripled = extend.primitive(lambda x: x * 3.0)
    extend.defvjp(tripled, lambda ans, x: lambda g: g * 3.0)
    assert tripled in autograd.core.primitive_vjps
    assert tripled not in autograd.core.primitive_jvps
    again = extend.primitive(tripled)  # which has no rules of its own
    with pytest.raises(NotImplementedError, match="VJP of <lambda> wrt argnums"):
        autograd.grad(again)(1.0)
    with pytest.raises(errors.ArgumentTypeError, match="takes no rules: give them to f = primitive"):
        extend.defvjp(onp.sin, lambda ans, x: lambda g: g)
    assert onp.sin not in autograd.core.primitive_vjps


def test_linear_functions_have_a_pushforward() -> None:
    double = extend.primitive(lambda x: x * 2.0)
    extend.def_linear(double)
    assert autograd.deriv(double)(3.0) == 2.0


@pytest.mark.parametrize(
    ("rule", "error"),
    [
        (None, errors.UnsupportedPrimitiveError),  # none at all
        (lambda ans, x: lambda g: onp.ones(5), errors.ShapeError),
        (lambda ans, x: lambda g: g * 1j, errors.DtypeError),
        (lambda ans, x: lambda g: (g, g), errors.ArgumentError),
    ],
)
def test_rules_that_do_not_fit_raise(rule: Any, error: type[Exception]) -> None:
    cube = cubes()
    if rule is not None:
        extend.defvjp(cube, rule)
    with pytest.raises((error, errors.BackwardError)) as caught:
        autograd.grad(lambda x: np.sum(cube(x)))(X)
    assert isinstance(caught.value, error) or isinstance(caught.value.__cause__, error)
    with pytest.raises(errors.ArgumentTypeError):
        extend.defvjp(cube, 3.0)
    with pytest.raises(errors.ArgumentTypeError):
        extend.defjvp(cube, "other")
    with pytest.raises(NotImplementedError, match="JVP of cube"):
        autograd.deriv(cube)(X)


def test_a_primitive_inside_of_vmap_runs_for_each_example() -> None:
    cube = cubes()
    extend.defvjp(cube, lambda ans, x: lambda g: g * 3 * x**2)
    found = ad.vmap(lambda x: autograd.grad(lambda y: np.sum(cube(y)))(x).sum()._tensor)(onp.outer(X, V))
    assert_allclose(found, onp.sum(3 * onp.outer(X, V) ** 2, axis=1))


def test_checks_find_wrong_derivatives() -> None:
    cube = cubes()
    extend.defvjp(cube, lambda ans, x: lambda g: g * 2 * x**2)
    extend.defjvp(cube, lambda t, ans, x: t * 2 * x**2)
    with pytest.raises(AssertionError, match="VJP"):
        test_util.check_grads(cube, modes=["rev"])(X)
    with pytest.raises(AssertionError, match="Value mismatch"):
        test_util.check_grads(cube, modes=["fwd"])(X)
    with pytest.raises(AssertionError, match="VSpace mismatch"):
        test_util.check_equivalent(X, X[:2])
    with pytest.raises(errors.ArgumentError):
        test_util.check_grads(np.sin, modes=["both"])(X)
    test_util.combo_check(np.sum, [0])([X, MATRIX], axis=[None, 0])
