"""`ad.external`: functions of NumPy arrays with derivatives that are given, under every transform."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import adjoint as ad
from adjoint import errors

X = np.array([0.5, 1.5, 2.5])


def times_square(x: Any, y: Any) -> Any:
    return x**2 * y


def plain(x: Any, y: Any) -> Any:
    return x**2 * y


outside = ad.external(
    times_square,
    vjp=lambda g, x, y: (g * 2 * x * y, g * x**2),
    jvp=lambda t, u, x, y: 2 * x * y * t + x**2 * u,
)
_second = ad.external(lambda g, x: g * np.cos(x), vjp=lambda c, g, x: (c * np.cos(x), -c * g * np.sin(x)))
_second_forward = ad.external(
    lambda t, x: t * np.cos(x),
    jvp=lambda dt, dx, t, x: dt * np.cos(x) - t * np.sin(x) * dx,
    vjp=lambda c, t, x: (c * np.cos(x), -c * t * np.sin(x)),
)
twice = ad.external(np.sin, vjp=_second, jvp=_second_forward)

# transforms of a function of two arguments of one shape
WAYS: dict[str, Any] = {
    "value": lambda f: f(X, 2 * X),
    "value of tensors": lambda f: f(ad.tensor(X), ad.tensor(X)),
    "grad": lambda f: ad.grad(lambda x, y: f(x, y).sum(), (0, 1))(X, 2 * X),
    "grad through both": lambda f: ad.grad(lambda x: f(ad.sin(x), x).sum())(X),
    "jvp": lambda f: ad.jvp(f, (X, 2 * X), (X + 1, X - 1)),
    "jacobian": lambda f: ad.jacobian(lambda x: f(x, x), mode="reverse")(X),
    "jacobian forward": lambda f: ad.jacobian(lambda x: f(x, x), mode="forward")(X),
    "vmap": lambda f: ad.vmap(f)(X, 2 * X),
    "vmap of one": lambda f: ad.vmap(lambda x: f(x, ad.tensor(2.0)))(X),
    "vmap of grad": lambda f: ad.vmap(ad.grad(f, (0, 1)))(X, 2 * X),
    "vmap of vmap": lambda f: ad.vmap(lambda x: ad.vmap(lambda y: f(x, y))(X))(X),
    "grad of vmap": lambda f: ad.grad(lambda a: ad.vmap(lambda y: f(a, y))(X).sum())(0.5),
    "grad of vmap of vmap": lambda f: ad.grad(lambda a: ad.vmap(lambda x: ad.vmap(lambda y: f(a, y) * x)(X))(X).sum())(
        0.5
    ),
    "jvp of vmap": lambda f: ad.jvp(lambda a: ad.vmap(lambda y: f(a, y))(X), (0.5,), (1.0,)),
    "of a leaf": lambda f: (lambda w: f(w, w * 2).sum().backward()[w])(ad.tensor(X).require_grad()),
    "recorded": lambda f: (lambda w: f(w, w * 2).sum().backward(create_graph=True)[w].detach())(
        ad.tensor(X).require_grad()
    ),
    "the cotangent is differentiated": lambda f: ad.grad(lambda w: ad.grad(lambda x: f(x, 3.0) * w**2)(2.0))(5.0),
    "the tangent is differentiated": lambda f: ad.grad(
        lambda t: ad.jvp(lambda x: f(x, ad.tensor(3.0)), (2.0,), (t**2,))[1]
    )(5.0),
    "linearize": lambda f: ad.linearize(lambda x: f(x, x), X)[1](X),
    "vjp": lambda f: ad.vjp(f, X, X)[1](X),
    "scan": lambda f: ad.grad(lambda a: ad.scan(lambda c, x: (f(c, x), c), a, X)[0])(0.5),
    "scan, recomputed": lambda f: ad.grad(lambda a: ad.scan(lambda c, x: (f(c, x), c), a, X, checkpoint_every=1)[0])(
        0.5
    ),
    "checkpoint": lambda f: ad.grad(ad.checkpoint(lambda x: f(x, x).sum()))(X),
    "first order series": lambda f: ad.jet(lambda x: f(x, x), (X,), ((X,),)),
}


def same(mine: Any, theirs: Any) -> None:
    for x, y in zip(ad.tree.leaves(mine), ad.tree.leaves(theirs), strict=True):
        np.testing.assert_allclose(np.asarray(x), np.asarray(y), rtol=1e-6)
        assert isinstance(x, ad.Tensor) == isinstance(y, ad.Tensor)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(
    "device", ["autodiff<numpy>", "autodiff[checkpointing=balanced]<numpy>", "autodiff<reference>"]
)
def test_it_is_what_it_computes(way: str, device: str) -> None:
    with ad.use_device(device):
        same(WAYS[way](outside), WAYS[way](plain))


TWICE: dict[str, Any] = {
    "grad of grad": lambda f: ad.grad(ad.grad(f))(0.5),
    "jvp of grad": lambda f: ad.jvp(ad.grad(f), (0.5,), (1.0,)),
    "hessian": lambda f: ad.hessian(lambda x: f(x).sum())(X),
    "hvp": lambda f: ad.hvp(lambda x: f(x).sum(), (X,), (X,)),
    "vmap": lambda f: ad.vmap(ad.grad(ad.grad(f)))(X),
    "recorded": lambda f: (lambda w: f(w).backward(create_graph=True)[w].backward()[w])(ad.tensor(0.5).require_grad()),
    "jvp of jvp": lambda f: ad.jvp(lambda x: ad.jvp(f, (x,), (1.0,))[1], (0.5,), (1.0,)),
}


@pytest.mark.parametrize("way", TWICE)
def test_second_derivatives_of_rules_with_rules(way: str) -> None:
    if way in ("jvp of grad", "hvp"):
        with pytest.raises(errors.TrackedError, match="give it jvp="):  # the vjp's own has none
            TWICE[way](twice)
    else:
        same(TWICE[way](twice), TWICE[way](ad.sin))


def test_rules_with_rules_in_functions_that_are_run_again() -> None:
    """These are copies, with all that they close over, and with the rules there."""
    step = lambda f: lambda c, x: (c + f(c * x), None)
    sum_of = lambda f, a: ad.scan(step(f), a, X, checkpoint_every=2)[0]
    same(ad.grad(lambda a: sum_of(twice, a))(0.5), ad.grad(lambda a: sum_of(ad.sin, a))(0.5))
    same(ad.grad(ad.grad(lambda a: sum_of(twice, a)))(0.5), ad.grad(ad.grad(lambda a: sum_of(ad.sin, a)))(0.5))
    rule = ad.external(lambda g, x: g * np.cos(x), like=lambda g, x: x)
    like = ad.external(np.sin, vjp=rule, like=lambda x: x)
    loop = lambda f, a: ad.scan(step(f), a, X)[0]
    same(ad.compile(ad.grad(lambda a: loop(like, a)))(0.5), ad.grad(lambda a: loop(ad.sin, a))(0.5))


@pytest.mark.parametrize("way", ["grad of grad", "jvp of grad", "hessian", "hvp", "vmap", "recorded", "jvp of jvp"])
def test_a_derivative_of_a_derivative_that_was_not_given_is_an_error(way: str) -> None:
    once = ad.external(np.sin, vjp=lambda g, x: g * np.cos(x), jvp=lambda t, x: t * np.cos(x))
    with pytest.raises((errors.TrackedError, errors.BackwardError)) as caught:
        TWICE[way](once)
    found = caught.value if isinstance(caught.value, errors.TrackedError) else caught.value.__cause__
    assert isinstance(found, errors.TrackedError)
    assert "a derivative of its derivative" in str(found)
    assert "ad.external(...)" in str(found)


def test_several_results() -> None:
    both = ad.external(
        lambda x: (2 * x, x**2), vjp=lambda g, h, x: g * 2 + h * 2 * x, jvp=lambda t, x: (2 * t, 2 * x * t)
    )
    mine = lambda x: (2 * x, x**2)
    for run in (
        lambda f: f(X),
        lambda f: ad.grad(lambda x: (f(x)[0] * f(x)[1]).sum())(X),
        lambda f: ad.grad(lambda x: f(x)[1].sum())(X),
        lambda f: ad.jvp(f, (X,), (X,)),
        lambda f: ad.vmap(f)(X),
        lambda f: ad.vmap(ad.grad(lambda x: f(x)[0] + f(x)[1]))(X),
    ):
        same(run(both), run(mine))


def test_integers_and_none() -> None:
    power = ad.external(lambda x, n: x**n, vjp=lambda g, x, n: (g * n * x ** (n - 1), None))
    same(ad.grad(lambda x: power(x, 3).sum())(X), 3 * X**2)
    same(ad.vmap(ad.grad(power), in_axes=(0, None))(X, 3), 3 * X**2)
    constant = ad.external(lambda x: x, vjp=lambda g, x: None)
    same(ad.grad(constant)(1.0), 0.0)


def test_functions_do_not_write_to_arguments() -> None:
    def writes(x: Any) -> Any:
        x[0] = 0.0
        return x

    with pytest.raises(ValueError, match="read-only"):
        ad.external(writes)(X)
    kept = X.copy()
    gives = ad.external(lambda x: x)
    y = gives(ad.tensor(X))
    y[0] = 9.0
    np.testing.assert_array_equal(X, kept)


BAD: dict[str, tuple[Any, type[Exception], str]] = {
    "no function": (lambda: ad.external(3), errors.ArgumentTypeError, "expected a function"),
    "a rule that is none": (lambda: ad.external(np.sin, vjp=3), errors.ArgumentTypeError, "vjp is a function"),
    "a list": (lambda: outside([1.0], 2.0), errors.ArgumentTypeError, "argument 0 is"),
    "text comes out": (lambda: ad.external(lambda x: "a")(1.0), errors.ArgumentTypeError, "expected a NumPy array"),
    "no vjp": (lambda: ad.grad(ad.external(np.sin))(1.0), errors.TrackedError, "give it vjp="),
    "no jvp": (lambda: ad.jvp(ad.external(np.sin), (1.0,), (1.0,)), errors.TrackedError, "give it jvp="),
    "an empty batch": (lambda: ad.vmap(ad.external(np.sin))(np.zeros(0)), errors.ArgumentError, "no examples"),
    "a cotangent of another shape": (
        lambda: ad.grad(ad.external(np.sum, vjp=lambda g, x: g))(X), errors.ShapeError, "argument 0 has shape ()"),
    "too many cotangents": (
        lambda: ad.grad(ad.external(np.sin, vjp=lambda g, x: (g, g)))(1.0), errors.ArgumentError, "2 cotangents"),
    "a single tangent of two results": (
        lambda: ad.jvp(ad.external(lambda x: (x, x), jvp=lambda t, x: t), (1.0,), (1.0,)),
        errors.ArgumentTypeError, "the result a tuple"),
}  # fmt: skip


@pytest.mark.parametrize("what", BAD)
def test_wrong_input(what: str) -> None:
    run, error, words = BAD[what]
    with pytest.raises((error, errors.BackwardError)) as caught:
        run()
    found = caught.value if isinstance(caught.value, error) else caught.value.__cause__
    assert isinstance(found, error)
    assert words in str(found)


def test_other_libraries() -> None:
    torch = pytest.importorskip("torch")
    found = ad.grad(lambda x: outside(x, x).sum())(torch.tensor([1.0, 2.0]))
    assert isinstance(found, torch.Tensor)
    assert found.tolist() == [3, 12]
    jax = pytest.importorskip("jax")
    with pytest.raises(errors.TrackedError, match="asks for the values"):
        jax.jit(lambda x: outside(x, x))(1.0)


def test_an_imaginary_part_is_not_lost_silently() -> None:
    turned = ad.external(lambda x: 2 * x, vjp=lambda g, x: 2j * g)
    with pytest.raises(
        ad.errors.BackwardError, match=r"argument 0 is complex128, the argument float64; take its \.real"
    ):
        ad.grad(turned)(1.0)
    assert ad.grad(lambda z: turned(z).real)(1.0 + 1.0j) == 2j
