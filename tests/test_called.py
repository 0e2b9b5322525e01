"""Functions of users that take other arguments than they are called with, or give what does not fit: the error says how
they are called."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import adjoint as ad
from adjoint import errors

X = np.array([1.0, 2.0, 3.0])
_number = itertools.count()


def _vjp(fwd: Any = lambda x: (x * x, x), bwd: Any = lambda x, g: (2 * x * g,)) -> Any:
    f = ad.custom_vjp(lambda x: x * x)
    f.defvjp(fwd, bwd)
    return f


def _jvp(rule: Any) -> Any:
    f = ad.custom_jvp(lambda x: x * x)
    f.defjvp(rule)
    return f


def _external(**rules: Any) -> Any:
    return ad.external(lambda x: x * x, **rules)


def _primitive(**rules: Any) -> Any:
    return ad.primitive(f"called_{next(_number)}", np.square, **rules)


# what is called, by how the message writes the call
CALLED: dict[str, Callable[[Any], Any]] = {
    "fwd(*args)": lambda f: ad.grad(lambda x: _vjp(fwd=f)(x).sum())(X),
    "bwd(residuals, cotangent)": lambda f: ad.grad(lambda x: _vjp(bwd=f)(x).sum())(X),
    "jvp(primals, tangents)": lambda f: ad.jvp(_jvp(f), (X,), (X,)),
    "vjp(g, *args)": lambda f: ad.grad(lambda x: _external(vjp=f)(x).sum())(X),
    "jvp(t, *args)": lambda f: ad.jvp(_external(jvp=f), (X,), (X,)),
    "batching(B, primitive, values, flags, parameters)": lambda f: ad.vmap(_primitive(batching=f))(X),
    "f(carry, x)": lambda f: ad.scan(f, X, X),
    "body_fun(i, carry)": lambda f: ad.fori_loop(0, 2, f, X),
    "cond_fun(carry)": lambda f: ad.while_loop(f, lambda x: x, X),
    "body_fun(carry)": lambda f: ad.while_loop(lambda x: True, f, X),
    "f(y, t, *args)": lambda f: ad.odeint(f, X, [0.0, 1.0]),
    "f(y, t, *args) of Radau": lambda f: ad.odeint(f, X, [0.0, 1.0], method="Radau"),
    "f(y, t, *args) of an event": lambda f: ad.odeint_event(lambda y, t: -y, X, (0.0, 1.0), event=f),
    "f(x, *args)": lambda f: ad.implicit.root(f, X),
    "f(x, *args) of a fixed point": lambda f: ad.implicit.fixed_point(f, X),
    "f(x, *args) of a minimum": lambda f: ad.implicit.minimize(f, X),
    "solver(g, x0)": lambda f: ad.implicit.root(lambda x: x * x - 2.0, X, solver=f),
    "linear_solver(matvec, b)": lambda f: ad.implicit.root(lambda x: x * x - 2.0, X, linear_solver=f),
    "fun(x, *args)": lambda f: ad.scipy.minimize(f, X),
    "fun(x, *args) of a root": lambda f: ad.scipy.root(f, X),
    "fun(x, *args) of a constraint": lambda f: ad.scipy.minimize(
        lambda x: (x * x).sum(), X, method="SLSQP", constraints={"type": "eq", "fun": f}
    ),
    "callback(x)": lambda f: ad.scipy.minimize(lambda x: (x * x).sum(), X, callback=f),
    "f(x, *parameters)": lambda f: ad.scipy.curve_fit(f, X, X, [1.0]),
    "distance_function(x, y)": lambda f: ad.nn.triplet_margin_with_distance_loss(X, X, X, distance_function=f),
}


@pytest.mark.parametrize("way", CALLED)
def test_other_arguments_than_a_function_is_called_with(way: str) -> None:
    for f in (lambda: 1.0, lambda a, b, c, d, e, f: 1.0, lambda *, a: 1.0):
        with pytest.raises((errors.ArgumentTypeError, errors.BackwardError)) as caught:
            CALLED[way](f)
        message = str(caught.value)
        assert f"is called as {way.partition(' of ')[0]}" in message
        assert "argument" in message


def test_a_type_error_of_the_function_itself_stays() -> None:
    def step(carry: Any, x: Any) -> Any:
        raise TypeError("mine")

    with pytest.raises(TypeError, match="^mine$") as caught:
        ad.scan(step, X, X)
    assert not isinstance(caught.value, errors.AdjointError)


WRONG = [np.ones(5), np.ones((3, 3)), np.float64(1.0)]


@pytest.mark.parametrize("value", WRONG, ids=lambda v: str(v.shape))
def test_tangents_of_an_external_function_have_the_shape_of_its_result(value: Any) -> None:
    f = _external(jvp=lambda t, x: value)
    for call in (
        lambda: ad.jvp(f, (X,), (X,)),
        lambda: ad.jacobian(f, mode="forward")(X),
        lambda: ad.jvp(ad.external(lambda x: x, jvp=ad.external(lambda t, x: value)), (X,), (X,)),
    ):
        with pytest.raises(errors.ShapeError, match=r"the tangent of .* has shape"):
            call()


def test_derivatives_of_an_external_function_have_its_dtypes() -> None:
    single = X.astype(np.float32)
    f = _external(jvp=lambda t, x: np.float64(2.0) * x * t, vjp=lambda g, x: np.float64(2.0) * x * g)
    assert ad.jvp(f, (single,), (single,))[1].dtype == np.float32
    assert ad.grad(lambda x: f(x).sum())(single).dtype == np.float32
    with pytest.raises(errors.DtypeError, match="complex"):
        ad.jvp(_external(jvp=lambda t, x: 2j * x * t), (X,), (X,))
    real = ad.external(lambda x: x * (1 + 2j), vjp=lambda g, x: (g * (1 - 2j)).real)
    np.testing.assert_allclose(ad.grad(lambda x: ad.real(real(x)).sum())(X), np.ones(3))
    whole = ad.external(lambda x: x * (1 + 2j), vjp=lambda g, x: g * (1 - 2j))
    with pytest.raises(errors.BackwardError, match=r"complex128, the argument float64; take its \.real"):
        ad.grad(lambda x: ad.real(whole(x)).sum())(X)


def test_piecewise_keeps_no_real_part_silently() -> None:
    x = ad.tensor(X)
    for call in (lambda: ad.piecewise(x, [x > 1], [lambda x: 1j * x, 0.0]), lambda: ad.piecewise(x, [x > 1], [1j])):
        with pytest.raises(errors.DtypeError, match="complex"):
            call()


@pytest.mark.parametrize("value", [None, 1.0, "a", (X, True), slice("a")], ids=repr)
def test_a_batching_rule_gives_an_array(value: Any) -> None:
    with pytest.raises(errors.ArgumentTypeError, match="batching gives .*, expected an array"):
        ad.vmap(_primitive(batching=lambda *args: value))(X)
