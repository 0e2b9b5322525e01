"""`apply_where`: each function sees only the elements that it is meant for, in values and derivatives of any order."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import adjoint as ad
from adjoint import errors

X = np.array([0.0, 4.0, -1.0, 0.25])


def root(x: Any) -> Any:
    return ad.apply_where(x > 0, x, ad.sqrt, fill_value=0.0)


def two(x: Any) -> Any:
    return ad.apply_where(x <= 0, x, lambda x: 1 / (x - 0.5), lambda x: ad.log(x) * ad.sqrt(x))


def slopes(x: Any, order: int) -> Any:
    """The derivatives of `two`, by hand."""
    with np.errstate(all="ignore"):
        below = [1 / (x - 0.5), -1 / (x - 0.5) ** 2, 2 / (x - 0.5) ** 3][order]
        log, size = np.log(x), np.sqrt(x)
        above = [log * size, (log / 2 + 1) / size, -log / (4 * size**3)][order]
    return np.where(x <= 0, below, above)


WAYS: dict[str, Any] = {
    "value": (lambda f: f(ad.tensor(X)), 0),
    "grad": (lambda f: ad.grad(lambda x: f(x).sum())(X), 1),
    "backward": (lambda f: (lambda w: f(w).sum().backward()[w])(ad.tensor(X).require_grad()), 1),
    "jvp": (lambda f: ad.jvp(f, (X,), (np.ones(4),))[1], 1),
    "vmap of grad": (lambda f: ad.vmap(ad.grad(f))(X), 1),
    "vmap of rows": (lambda f: ad.vmap(ad.grad(lambda x: f(x).sum()))(X.reshape(2, 2)).reshape(4), 1),
    "grad of grad": (lambda f: ad.grad(lambda x: ad.grad(lambda x: f(x).sum())(x).sum())(X), 2),
    "hessian": (lambda f: np.diagonal(ad.hessian(lambda x: f(x).sum())(X)), 2),
    "hvp": (lambda f: ad.hvp(lambda x: f(x).sum(), (X,), (np.ones(4),)), 2),
    "vmap of grad of grad": (lambda f: ad.vmap(ad.grad(ad.grad(f)))(X), 2),
}


@pytest.mark.parametrize("way", WAYS)
def test_no_nan_comes_from_the_other_branch(way: str) -> None:
    run, order = WAYS[way]
    with ad.use_device(ad.Autodiff(ad.Checked(ad.NumPy()))):  # which would find any nan or infinity on the way
        np.testing.assert_allclose(np.asarray(run(two)), slopes(X, order), rtol=1e-12)


@pytest.mark.parametrize("way", WAYS)
def test_a_number_elsewhere(way: str) -> None:
    run, order = WAYS[way]
    with np.errstate(all="ignore"):
        wanted = np.where(X > 0, [np.sqrt(X), 0.5 / np.sqrt(X), -0.25 / np.sqrt(X) ** 3][order], 0)
    with ad.use_device(ad.Autodiff(ad.Checked(ad.NumPy()))):
        np.testing.assert_allclose(np.asarray(run(root)), wanted, rtol=1e-12)


def test_all_none_and_no_elements() -> None:
    calls: list[str] = []
    note = lambda name, f: lambda x: (calls.append(name), f(x))[1]
    f = lambda x: ad.apply_where(x > 0, x, note("f1", ad.sqrt), note("f2", ad.exp))
    assert f(ad.tensor([4.0, 1.0])).tolist() == [2, 1]
    assert f(ad.tensor([0.0])).tolist() == [1]
    assert calls == ["f1", "f2"]
    assert f(ad.zeros(0)).shape == (0,)
    assert root(ad.tensor([-1.0, -2.0])).tolist() == [0, 0]


@pytest.mark.parametrize("shape", [(0,), (2, 0), (0, 3)])
def test_no_elements_of_a_compiled_function(shape: Any) -> None:
    x = ad.zeros(shape)
    assert ad.compile(root)(x).shape == shape
    for slope in (ad.grad(ad.compile(lambda x: root(x).sum())), ad.compile(ad.grad(lambda x: root(x).sum()))):
        assert slope(x).shape == shape


def test_several_arguments_broadcast() -> None:
    x, y = ad.tensor([[1.0], [0.0]]), ad.tensor([1.0, 2.0, 0.0])
    found = ad.apply_where(y != 0, (x, y), lambda x, y: x / y, fill_value=ad.tensor(7.0))
    assert found.tolist() == [[1, 0.5, 7], [0, 0, 7]]
    slope = ad.grad(lambda y: ad.apply_where(y != 0, (x, y), lambda x, y: x / y, fill_value=7.0).sum())(y)
    assert slope.tolist() == [-1, -0.25, 0]


BAD: dict[str, tuple[Any, type[Exception], str]] = {
    "f1": (lambda: ad.apply_where(X > 0, X, 3, fill_value=0.0), errors.ArgumentTypeError, "f1 is a function"),
    "f2": (lambda: ad.apply_where(X > 0, X, ad.sqrt, 3), errors.ArgumentTypeError, "f2 is a function"),
    "neither": (lambda: ad.apply_where(X > 0, X, ad.sqrt), errors.ArgumentTypeError, "either f2 or fill_value"),
    "both": (
        lambda: ad.apply_where(X > 0, X, ad.sqrt, ad.exp, fill_value=0.0), errors.ArgumentTypeError, "either f2 or"),
    "no booleans": (lambda: ad.apply_where(X, X, ad.sqrt, ad.exp), errors.DtypeError, "x > 0"),
    "not elementwise": (
        lambda: ad.apply_where(X > 0, X, lambda x: ad.stack([x, x]), ad.exp), errors.ShapeError, "not elementwise"),
    "shapes": (lambda: ad.apply_where(X > 0, X[:2], ad.sqrt, ad.exp), errors.ShapeError, "(4,)"),
}  # fmt: skip


@pytest.mark.parametrize("what", BAD)
def test_wrong_input(what: str) -> None:
    run, error, words = BAD[what]
    with pytest.raises(error) as caught:
        run()
    assert words in str(caught.value)


def test_under_jit_of_jax() -> None:
    jax = pytest.importorskip("jax")
    found = jax.jit(ad.grad(lambda x: two(x).sum()))(X.astype(np.float32))
    np.testing.assert_allclose(found, slopes(X, 1), rtol=1e-5)


def closing_over(w: Any, x: Any) -> Any:
    """Each function has w in its closure, and an infinite slope at the elements of the other one."""
    return ad.apply_where(x > 0, x, lambda x: ad.log(x) * w, lambda x: x * w / (1.0 - x)).sum()


ROWS = np.array([[0.0, 0.0], [4.0, 1.0], [0.0, 4.0], [1.0, 1.0]])
RECORDED: dict[str, Callable[[Any], Any]] = {
    "grad": lambda f: [ad.compile(ad.grad(f))(2.0, x) for x in ROWS],
    "around": lambda f: [ad.grad(ad.compile(f))(2.0, x) for x in ROWS],
    "hessian": lambda f: [ad.compile(lambda w, x: ad.hessian(lambda w: f(w * w, x))(w))(2.0, x) / 2 for x in ROWS],
    "vmap": lambda f: ad.compile(ad.vmap(ad.grad(f), in_axes=(None, 0)))(2.0, ROWS),
    "vmap of both": lambda f: ad.compile(ad.vmap(ad.grad(f)))(np.full(4, 2.0), ROWS),
    "scan": lambda f: [
        ad.compile(ad.grad(lambda w, x: ad.scan(lambda c, a: (c + f(w, a), c), w * 0.0, x)[0]))(2.0, x) for x in ROWS
    ],
}


@pytest.mark.parametrize("way", RECORDED)
def test_a_function_that_no_element_is_meant_for_sends_no_nan_to_its_closure(way: str) -> None:
    """Where values are not there yet, both functions run."""
    with np.errstate(all="ignore"):
        wanted = np.where(ROWS > 0, np.log(ROWS), ROWS / (1 - ROWS)).sum(1)
    np.testing.assert_allclose([ad.grad(closing_over)(2.0, x) for x in ROWS], wanted)
    np.testing.assert_allclose(RECORDED[way](closing_over), wanted)


def test_a_nan_of_the_other_branch_is_explained() -> None:
    x = ad.tensor([0.0, 4.0], device=ad.Autodiff(ad.Checked(ad.NumPy()))).require_grad()
    with pytest.raises(errors.BackwardError, match=r"ad.apply_where .* strong_zero=True"):
        ad.where(x > 0, ad.sqrt(x), 0.0).sum().backward()
    with pytest.raises(errors.BackwardError, match=r"ad.where or ad.clip"):
        ad.sqrt(x).sum().backward()
