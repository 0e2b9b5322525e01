"""Transforms in transforms: derivatives are not confused, and nothing is left behind.

Neither in what comes after, nor in memory. `test_nesting_threads.py` has threads and tasks.
"""

from __future__ import annotations

import contextlib
import contextvars
import copy
import gc
import pickle
import types
import weakref
from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from each import Each

import adjoint as ad
from adjoint import devices, errors
from adjoint.backend import Backend
from adjoint.decorators.batched import Batch
from adjoint.decorators.tangent import Dual
from adjoint.graph.nodes import Node, Var

X = np.array([0.3, -0.7, 1.1])


# Derivatives of scalar functions at a point, in every way there is.
DERIVATIVES: dict[str, Callable[[Any, Any], Any]] = {
    "grad": lambda f, x: ad.grad(f)(x),
    "jvp": lambda f, x: ad.jvp(f, (x,), (1.0,))[1],
    "vjp": lambda f, x: ad.vjp(f, x)[1](1.0)[0],
    "linearize": lambda f, x: ad.linearize(f, x)[1](1.0),
    "jacobian forward": lambda f, x: ad.jacobian(f, mode="forward")(x),
    "jacobian reverse": lambda f, x: ad.jacobian(f, mode="reverse")(x),
    "checkpoint": lambda f, x: ad.grad(ad.checkpoint(f))(x),
    "batch": lambda f, x: ad.vmap(ad.grad(f), None, axis_size=2)(x)[1],
    "of a batch": lambda f, x: ad.grad(lambda x: ad.vmap(lambda _: f(x))(np.zeros(2)).sum() / 2)(x),
}
pairs = pytest.mark.parametrize(("outer", "inner"), [(o, i) for o in DERIVATIVES for i in DERIVATIVES])


def close(x: Any, y: Any) -> None:
    np.testing.assert_allclose(x.numpy() if isinstance(x, ad.Tensor) else x, y, rtol=1e-12, atol=1e-14)


# --- perturbations are not confused --------------------------------------------------------------


@pairs
def test_two_derivatives(outer: str, inner: str) -> None:
    d, e = DERIVATIVES[outer], DERIVATIVES[inner]
    close(d(lambda x: x * e(lambda y: x + y, 1.0), 2.0), 1)  # 2 if the two were confused
    close(d(lambda x: x * e(lambda y: x * y, 3.0), 2.0), 4)
    close(d(lambda x: e(lambda y: x * y * y, x), 2.0), 8)
    close(d(lambda x: x * e(lambda y: x * x, x), 2.0), 0)  # the inner function ignores its argument
    close(d(lambda x: e(lambda y: y**3, 2.0), 5.0), 0)  # the outer one does
    close(d(lambda x: e(lambda y: ad.exp(x * y), 1.0) * e(lambda y: y * x, 7.0), 0.5), np.exp(0.5) * 1.25)
    close(d(lambda x: e(lambda y: x * ad.stop_gradient(x) * y**2, 3.0), 2.0), 12)


@pairs
def test_three_derivatives(outer: str, inner: str) -> None:
    d, e = DERIVATIVES[outer], DERIVATIVES[inner]
    for f in (DERIVATIVES["grad"], DERIVATIVES["jvp"]):
        close(f(lambda x: d(lambda y: e(lambda z: x * y * z * ad.sin(x), 4.0) * x * y, 3.0), 2.0), _third(2.0))
        close(f(lambda x: d(lambda y: e(lambda z: ad.exp(x * y * z), x), x * x), 0.5), _thrice(0.5))


def _third(x: float) -> float:
    """d/dx of d/dy (x y sin x) x y = 2 x^2 y sin x at y = 3."""
    return float(6 * (2 * x * np.sin(x) + x * x * np.cos(x)))


def _thrice(x: float) -> float:
    """d/dx of (x + x^5) exp(x^4), which is d/dy d/dz exp(x y z) = (x + x^2 y z) exp(x y z) at z = x and y = x^2."""
    return float((1 + 5 * x**4 + (x + x**5) * 4 * x**3) * np.exp(x**4))


def test_closures_at_several_depths() -> None:
    def f(a: Any) -> Any:
        def g(b: Any) -> Any:
            def h(c: Any) -> Any:
                return a**2 * b**3 * c**4

            return ad.grad(h)(a) + ad.jvp(h, (b,), (1.0,))[1]

        return ad.grad(g)(a)

    # h' = 4 a^2 b^3 c^3; g = 4 a^5 b^3 + 4 a^2 b^6; g' at b = a: 12 a^7 + 24 a^7
    close(ad.grad(f)(1.5), 36 * 7 * 1.5**6)
    close(ad.vmap(ad.grad(f))(np.array([1.5, -1.0])), [36 * 7 * 1.5**6, 36 * 7])


def test_a_batch_sees_what_is_differentiated_around_it() -> None:
    rows = np.array([[1.0, 2.0], [3.0, 4.0]])
    close(ad.grad(lambda w: ad.vmap(lambda r: (r * w).sum())(rows).sum())(np.ones(2)), rows.sum(axis=0))
    close(ad.vmap(lambda r: ad.grad(lambda w: (r * w).sum())(np.ones(2)))(rows), rows)
    close(ad.vmap(lambda r: ad.vmap(lambda s: (r * s).sum())(rows))(rows), rows @ rows.T)
    found = ad.grad(lambda w: ad.vmap(lambda r: ad.grad(lambda v: (r * v * w * v).sum())(w))(rows).sum())(np.ones(2))
    close(found, 4 * rows.sum(axis=0))


# --- tracked tensors from outside ----------------------------------------------------------------


@pytest.mark.parametrize("arguments", ["numpy arrays", "tensors of a leaf", "tensors"])
@pytest.mark.parametrize("device", ["autodiff<numpy>", "autodiff<reference>", "autodiff<torch:cpu>"])
def test_closures_over_tracked_tensors_get_their_derivatives(device: str, arguments: str) -> None:
    """Also where the arguments say nothing of the level of what is closed over, or of its library."""
    if "torch" in device:
        pytest.importorskip("torch")
    place = ad.device(device)
    w = ad.tensor(3.0, dtype=ad.float64, device=place).require_grad()
    x: Any = np.array([2.0, 1.0])
    one: Any = np.ones(2)
    if arguments != "numpy arrays":
        x, one = (ad.asarray(v, device=place if arguments == "tensors" else place.leaf) for v in (x, one))

    def f(x: Any) -> Any:
        return w * w * x * x

    def total(x: Any) -> Any:
        return f(x).sum()

    for out, value, slope in (  # the sum of what comes out, and its derivative by w
        (ad.grad(total)(x), 2 * 9 * 3, 2 * 6 * 3),
        (ad.value_and_grad(total)(x)[0], 9 * 5, 6 * 5),
        (ad.jvp(f, (x,), (one,))[1], 2 * 9 * 3, 2 * 6 * 3),
        (ad.vjp(f, x)[1](one)[0], 2 * 9 * 3, 2 * 6 * 3),
        (ad.linearize(f, x)[1](one), 2 * 9 * 3, 2 * 6 * 3),
        (ad.jacobian(f, mode="reverse")(x), 2 * 9 * 3, 2 * 6 * 3),
        (ad.jacobian(f, mode="forward")(x), 2 * 9 * 3, 2 * 6 * 3),
        (ad.hessian(total)(x), 2 * 9 * 2, 2 * 6 * 2),
        (ad.hvp(total, (x,), (one,)), 2 * 9 * 2, 2 * 6 * 2),
        (ad.vmap(f)(x), 9 * 5, 6 * 5),
        (ad.linear_transpose(lambda y: w * y, one)(x)[0], 3 * 3, 3),
        (ad.vmap(ad.grad(f))(x), 2 * 9 * 3, 2 * 6 * 3),
    ):
        assert out.device is w.device
        close(out.sum().item(), value)
        close(out.sum().backward(retain_graph=True)[w].item(), slope)


INSIDE: dict[str, Callable[[Any, Any], Any]] = {  # which look for what their functions close over
    "root": lambda w, b: ad.implicit.root(lambda y: y**3 + y - w * b, X[::2]),
    "fixed_point": lambda w, b: ad.implicit.fixed_point(lambda y: 0.3 * ad.cos(y) + 0.1 * w * b, X[::2]),
    "minimize": lambda w, b: ad.implicit.minimize(lambda y: ((y - w * b) ** 2).sum() + (y**4).sum(), X[::2]),
    "odeint": lambda w, b: ad.odeint(lambda y, t: -y * w * b, X[::2], np.array([0.0, 0.3]))[1],
    "adjoint": lambda w, b: ad.odeint(lambda y, t: -y * w * b, X[::2], np.array([0.0, 0.3]), gradient="adjoint")[1],
    "odeint_event": lambda w, b: ad.odeint_event(lambda y, t: w * b, X[::2], (0.0, 9.0), event=lambda y, t: y[0] - 1)[
        1
    ],
    "compile": lambda w, b: ad.compile(lambda y: w * w * y * b * b)(X[::2]),
}


@pytest.mark.parametrize("name", INSIDE)
def test_what_solvers_and_compiled_functions_inside_close_over_is_tracked(name: str) -> None:
    """They took it for an argument of theirs that is on another device."""
    with Each() as each:
        for label, transform in {
            "vmap": lambda f: ad.vmap(f)(np.array([0.4, 0.7])),
            "grad": lambda f: ad.grad(lambda b: f(b).sum())(0.7),
            "jvp": lambda f: ad.jvp(f, (0.7,), (1.0,))[1],
        }.items():
            with each(label):
                w = ad.tensor([0.4, 0.6], dtype=ad.float64).require_grad()
                found = transform(lambda b, w=w: INSIDE[name](w, b)).sum().backward()[w]
                expected = ad.grad(lambda w, t=transform: t(lambda b: INSIDE[name](w, b)).sum())(w.detach())
                np.testing.assert_allclose(found.numpy(), expected.numpy(), rtol=1e-6, atol=1e-9)


def test_arguments_tangents_and_cotangents_may_be_tracked() -> None:
    w = ad.tensor(3.0, dtype=ad.float64).require_grad()
    close(ad.grad(lambda x: x**3)(w).backward()[w].item(), 18)
    close(ad.jvp(lambda x: x**2, (2.0,), (w,))[1].backward()[w].item(), 4)
    close(ad.vjp(lambda x: x**2, ad.tensor(2.0))[1](w)[0].backward()[w].item(), 4)
    close(ad.linearize(lambda x: x**2, ad.tensor(2.0))[1](w).backward()[w].item(), 4)


def test_what_is_not_tracked_may_be_of_another_library() -> None:
    w = ad.tensor([1.0, 2.0], dtype=ad.float64, device="reference")
    slope = ad.grad(lambda x: (w * x * x).sum())(np.ones(2))
    assert slope.device is w.device
    close(slope, [2.0, 4.0])
    close(ad.vmap(lambda x: w)(np.ones(3)), [[1.0, 2.0]] * 3)
    with pytest.raises(errors.DeviceError, match="different libraries"):
        ad.grad(lambda x: (w * x * x).sum())(ad.ones(2, dtype=ad.float64))


def test_levels_that_are_closed_over_are_found_one_after_the_other() -> None:
    w = ad.tensor(3.0, dtype=ad.float64).require_grad()
    v = ad.from_inner(ad.tensor(5.0, dtype=ad.float64)).require_grad()
    slope = ad.grad(lambda x: x * w * v)(2.0)
    assert slope.device is v.device
    by_v = slope.backward()[v]
    close(by_v.item(), 3.0)
    close(by_v.backward()[w], 1.0)


def test_a_function_runs_again_where_it_met_a_tracked_tensor() -> None:
    w = ad.tensor(3.0, dtype=ad.float64).require_grad()
    met: list[bool] = []

    def f(x: Any) -> Any:
        met.append(x.device.inner is w.device)
        return x * w + ad.vmap(ad.grad(lambda y: y * y * w))(np.ones(2)).sum()

    close(ad.grad(f)(2.0).backward()[w], 1.0)
    assert met == [False, True]  # the transforms inside do not run again by themselves
    with pytest.raises(errors.DeviceError, match="the transform was not built on"):
        ad.grad(lambda x: x * ad.ones((), device="autodiff[strong_zero]<numpy>").require_grad())(w)
    met.clear()
    close(ad.grad(f)(w.detach()).backward()[w], 1.0)
    assert met == [True]


def test_searches_that_leave_the_graph_name_what_is_closed_over() -> None:
    pytest.importorskip("scipy")
    w = ad.tensor([1.0, 2.0], dtype=ad.float64).require_grad()
    for method in ("BFGS", "Nelder-Mead", "Newton-CG", "trust-exact"):
        with pytest.raises(errors.TrackedError, match=r"a leaf of shape \(2,\) .*w\.detach\(\)"):
            ad.scipy.minimize(lambda x: ((x - w) ** 2).sum(), np.ones(2), method=method)
    for search in (ad.scipy.least_squares, ad.scipy.root):
        with pytest.raises(errors.TrackedError, match=r"a leaf of shape \(2,\) .*w\.detach\(\)"):
            search(lambda x: x - w, np.ones(2))


HELD = types.SimpleNamespace(scale=ad.tensor([1.0, 4.0], dtype=ad.float64).require_grad())  # nobody looks in there


def test_solvers_do_not_lose_the_derivatives_of_attributes() -> None:
    for call in (
        lambda: ad.implicit.root(lambda x: x * x - HELD.scale, np.ones(2)),
        lambda: ad.implicit.minimize(lambda x: ((x - HELD.scale) ** 2).sum(), np.ones(2)),
        lambda: ad.implicit.fixed_point(lambda x: ad.cos(x) * HELD.scale * 0.1, np.ones(2)),
        lambda: ad.odeint(lambda y, t: -y * HELD.scale, np.ones(2), np.linspace(0, 1, 3), gradient="adjoint"),
    ):
        with pytest.raises(errors.TrackedError, match="make it an argument"):
            call()


def test_backward_inside_of_a_transform() -> None:
    def f(x: Any) -> Any:
        y = ad.from_inner(x).require_grad()  # a level above the transform's
        return (y * y * x).backward()[y]

    close(ad.grad(f)(2.0), 8)  # of 2 x^2, where x is seen through y and beside it
    close(ad.jvp(f, (2.0,), (1.0,)), (8, 8))
    close(ad.vmap(f)(X), 2 * X * X)
    close(ad.grad(lambda x: (x * x).backward()[x])(2.0), 2)  # recorded on the transform's own level
    assert ad.grad(lambda x: (x * x).backward(create_graph=False)[x])(2.0) == 0  # said to be constants
    with pytest.raises(errors.FreedGraphError, match="retain_graph"):
        ad.grad(lambda x: ((y := x * x).backward(create_graph=False), y)[1])(2.0)
    close(ad.grad(lambda x: ((y := x * x).backward(create_graph=False, retain_graph=True), y)[1])(2.0), 4)
    close(ad.grad(lambda x: ((y := x * x).backward(), y)[1])(2.0), 4)  # recorded, so retained


def test_creation_and_random_functions_run_on_the_level() -> None:
    outside = ad.default_device()

    def f(x: Any) -> Any:
        level = x.device
        assert level is not outside
        assert ad.default_device() is level
        for made in (ad.zeros(3), ad.arange(3), ad.tensor([1.0]), ad.asarray(X), ad.random.uniform(2)):
            assert made.device is level
        with ad.use_device("numpy"):
            assert ad.zeros(3).device is ad.NumPy()
        return ad.vmap(lambda y: y + ad.zeros(3).sum(), randomness="shared")(x).sum()

    for transform in (
        lambda f: ad.grad(f)(X),
        lambda f: ad.jvp(f, (X,), (X,)),
        lambda f: ad.vmap(f, randomness="split")(X[None]),
        lambda f: ad.jacobian(f)(X),
        lambda f: ad.hessian(f)(X),
        lambda f: ad.linearize(f, X),
    ):
        transform(f)
        assert ad.default_device() is outside


# --- what transforms leave over ------------------------------------------------------------------

WAYS: dict[str, Callable[[Any], Any]] = {
    "grad": lambda f: ad.grad(f)(X),
    "vjp": lambda f: ad.vjp(f, X),
    "jvp": lambda f: ad.jvp(f, (X,), (X,)),
    "linearize": lambda f: ad.linearize(f, X),
    "transpose": lambda f: ad.linear_transpose(f, X),
    "rows": lambda f: ad.jacobian(f, mode="reverse")(X),
    "columns": lambda f: ad.jacobian(f, mode="forward")(X),
    "hessian": lambda f: ad.hessian(f)(X),
    "hvp": lambda f: ad.hvp(f, (X,), (X,)),
    "vmap": lambda f: ad.vmap(f)(X[None]),
    "vmap grad": lambda f: ad.vmap(ad.grad(f))(X[None]),
}
ONES = np.ones(3)
USES: dict[str, Callable[[Any], Any]] = {
    "function": lambda x: ad.sin(x),
    "method": lambda x: x.sum(),
    "operator": lambda x: x * x,
    "number": lambda x: 2 * x,
    "array": lambda x: x + ONES,
    "other tensor": lambda x: ad.ones(3, dtype=ad.float64) - x,
    "other dtype": lambda x: ad.ones(3) - x,
    "several": lambda x: ad.concat([ad.ones(3, dtype=ad.float64), x]),
    "choice": lambda x: ad.where(ONES > 0, x, 0.0),
    "index": lambda x: x[0],
    "loop": lambda x: list(x),
    "comparison": lambda x: x == 1,
    "copy": lambda x: copy.deepcopy(x) + 1,
    "detached": lambda x: x.detach(),
    "stopped": lambda x: ad.stop_gradient(x),
    "made a leaf": lambda x: x.require_grad(),
    "made no leaf": lambda x: x.set_require_grad(False),
    "asarray": lambda x: ad.asarray(x),
    "asarray elsewhere": lambda x: ad.asarray(x, device=ad.Autodiff(x.device)),
    "moved": lambda x: x.to_device("numpy"),
    "cast": lambda x: x.astype(ad.float32),
    "level above": lambda x: ad.from_inner(x).require_grad() * 2,
    "created there": lambda x: ad.zeros(3, device=x.device),
    "created like it": lambda x: ad.zeros_like(x),
    "assigned from": lambda x: ad.zeros(3, dtype=ad.float64).__setitem__(0, x[0]),
    "assigned as a whole": lambda x: ad.zeros(3, dtype=ad.float64).__setitem__(slice(None), x),
    "assigned to": lambda x: x.__setitem__(0, 1.0),
    "in place": lambda x: x.__iadd__(1.0),
    "grad": lambda x: ad.grad(lambda y: y.sum())(x),
    "closure": lambda x: ad.grad(lambda y: (x * y).sum())(ONES),
    "closure of vmap": lambda x: ad.vmap(lambda y: x * y)(ONES),
    "result": lambda x: ad.jvp(lambda y: x, (ONES,), (ONES,)),
    "aux": lambda x: ad.grad(lambda y: (y.sum(), x), has_aux=True)(ONES),
    "result of vjp": lambda x: ad.vjp(lambda y: x, ONES),
    "result of vmap": lambda x: ad.vmap(lambda y: x)(ONES),
    "result of jacobian": lambda x: ad.jacobian(lambda y: x)(ONES),
    "tangent": lambda x: ad.jvp(lambda y: y, (ONES,), (x,)),
    "cotangent": lambda x: ad.vjp(lambda y: y, ONES)[1](x),
    "linear": lambda x: ad.linearize(lambda y: y, ONES)[1](x),
    "checkpoint": lambda x: ad.checkpoint(lambda y: y * y)(x),
    "custom": lambda x: _custom(x),
}


@ad.custom_jvp
def _custom(x: Any) -> Any:
    return x * 2


_custom.defjvp(lambda p, t: (p[0] * 2, t[0] * 2))


def left_over(way: str) -> Any:
    kept: Any = None

    def f(x: Any) -> Any:
        nonlocal kept
        kept = x * 1.5 if way == "transpose" else x * 1.5 + X
        return (x * 1.0).sum()

    WAYS[way](f)
    return kept


@pytest.mark.parametrize("use", USES)
@pytest.mark.parametrize("way", WAYS)
def test_tensors_that_are_left_over_are_reported(way: str, use: str) -> None:
    x = left_over(way)
    with pytest.raises(errors.EndedError, match="after the transform had returned"):
        USES[use](x)
    with pytest.raises(errors.EndedError):  # and again: nothing has come to life
        ad.sin(x)
    assert ad.default_device() is ad.Autodiff(ad.NumPy())


def test_gradients_of_what_is_left_over_are_reported() -> None:
    with pytest.raises(errors.EndedError):
        left_over("grad").sum()
    with pytest.raises(errors.EndedError):
        left_over("grad").backward(ONES)


def test_what_decorates_a_level_ends_with_it() -> None:
    kept: Any = None

    def f(x: Any) -> Any:
        nonlocal kept
        kept = ad.from_inner(x).require_grad() * 2
        return x.sum()

    ad.grad(f)(X)
    with pytest.raises(errors.EndedError):
        kept * 2


@pytest.mark.parametrize("way", WAYS)
def test_pullbacks_of_transforms_that_ended_are_reported(way: str) -> None:
    kept: list[Any] = []

    def f(x: Any) -> Any:
        kept.append(ad.vjp(lambda y: (x * 1.0) * y, X)[1])
        kept.append(ad.linearize(lambda y: (x * 1.0) * y, X)[1])
        kept.append(ad.linear_transpose(lambda y: (x * 1.0) * y, X))
        return (x * 1.0).sum()

    WAYS[way](f)
    for made in kept:
        with pytest.raises(errors.EndedError):
            made(X)
        with pytest.raises(errors.EndedError):
            ad.vmap(made)(np.eye(3))
    pullback = ad.vjp(lambda y: y * y, X)[1]  # one that has nothing to do with them
    close(pullback(X)[0], 2 * X * X)


def test_values_that_are_left_over_can_be_looked_at() -> None:
    x = left_over("grad")
    close(x.numpy(), 1.5 * X + X)
    assert "Tensor(" in repr(x)
    close(x.inner() * 2, 5 * X)


@pytest.mark.parametrize("way", [way for way in WAYS if "vmap" in way] + ["grad", "jvp"])
def test_tensors_that_a_transform_follows_cannot_be_stored(way: str) -> None:
    def f(x: Any) -> Any:
        with pytest.raises(errors.TrackedError, match="pickle"):
            pickle.dumps(x)
        return (copy.deepcopy(x) * copy.copy(x)).sum()

    found = WAYS[way](f)
    wanted = {"vmap": X @ X, "jvp": (X @ X, 2 * X @ X), "grad": 2 * X, "vmap grad": 2 * X[None]}
    for mine, theirs in zip(np.atleast_1d(found), np.atleast_1d(wanted[way]), strict=True):
        close(mine, theirs)


COPIES: dict[str, Callable[[Any], Any]] = {
    **{way: of for way, of in WAYS.items() if way != "transpose"},  # whose function is linear
    "compiled grad": lambda f: ad.compile(ad.grad(f))(X),  # values that come later are not lost silently, either
    "grad of compiled": lambda f: ad.grad(ad.compile(f))(X),
}


@pytest.mark.parametrize("way", COPIES)
def test_a_constant_copy_of_what_a_transform_follows_is_refused(way: str) -> None:
    with pytest.raises(errors.TrackedError, match=r"^tensor: a copy of the values.*x\.copy\(\) keep its derivative"):
        COPIES[way](lambda x: (ad.tensor(x) * x).sum())
    COPIES[way](lambda x: (x.copy() * x).sum())


# --- exceptions ----------------------------------------------------------------------------------


class OnPurpose(Exception):
    pass


@pytest.mark.parametrize("way", WAYS)
def test_exceptions_leave_no_state(way: str) -> None:
    levels = []

    def fails(x: Any) -> Any:
        levels.append(x.device)
        with ad.use_device("reference"):
            raise OnPurpose

    def inside(x: Any) -> Any:
        levels.append(x.device)
        with pytest.raises(OnPurpose):
            WAYS[way](fails)
        assert devices.current_level() is x.device
        assert ad.default_device() is x.device
        return (x * 1.0).sum()

    before = contextvars.copy_context()
    for f in (fails, inside):
        try:
            WAYS[way](f)
        except OnPurpose:
            assert f is fails
    assert devices.current_level() is None
    assert ad.default_device() is ad.Autodiff(ad.NumPy())
    assert dict(contextvars.copy_context()) == dict(before)
    for level in levels:
        assert level.ended
        with pytest.raises(errors.EndedError):
            ad.zeros(2, device=level)
        with pytest.raises(errors.EndedError, match="after the transform had returned"):
            ad.use_device(level)
    assert ad.default_device() is ad.Autodiff(ad.NumPy())


# --- memory --------------------------------------------------------------------------------------

CALLS: dict[str, Callable[[], Any]] = {
    "grad": lambda: ad.grad(lambda x: (x * x).sum())(X),
    "grad of tensors": lambda: ad.grad(lambda d: (d["x"] * d["x"]).sum(), has_aux=False)({"x": ad.ones(3)}),
    "vjp": lambda: ad.vjp(lambda x: x * x, X)[1](X),
    "jvp": lambda: ad.jvp(lambda x: x * x, (X,), (X,)),
    "linearize": lambda: ad.linearize(lambda x: x * x, X)[1](X),
    "transpose": lambda: ad.linear_transpose(lambda x: x * 2, X)(X),
    "rows": lambda: ad.jacobian(lambda x: x * x, mode="reverse")(X),
    "columns": lambda: ad.jacobian(lambda x: x * x, mode="forward")(X),
    "hessian": lambda: ad.hessian(lambda x: (x**3).sum())(X),
    "hvp": lambda: ad.hvp(lambda x: (x**3).sum(), (X,), (X,)),
    "vmap": lambda: ad.vmap(lambda x: x * x)(X),
    "vmap grad": lambda: ad.vmap(ad.grad(lambda x: (x * x).sum()))(X[None]),
    "random": lambda: ad.vmap(lambda x: x * ad.random.uniform(2), randomness="split")(X),
    "level above": lambda: ad.grad(lambda x: (ad.from_inner(x).require_grad() ** 2).sum().inner())(X),
    "nested": lambda: ad.grad(lambda x: ad.grad(lambda y: (x * y * y).sum())(x).sum())(X),
    "batch of pullbacks": lambda: ad.vmap(ad.vjp(lambda x: x * x, X)[1])(np.eye(3)),
    "exception": lambda: _fails(),
    "checkpoint": lambda: ad.grad(ad.checkpoint(lambda x: (x * x).sum()))(X),
}


def _fails() -> None:
    with contextlib.suppress(errors.OutOfRangeError):
        ad.grad(lambda x: x[7])(X)


def _alive() -> list[int]:
    """How many levels, nodes and arrays of levels there are."""
    found = Counter(map(type, gc.get_objects()))
    kinds = (Backend, Node, Var, Batch, Dual, ad.Tensor)
    return [sum(found[cls] for cls in found if issubclass(cls, kind)) for kind in kinds]


@pytest.mark.parametrize("name", CALLS)
def test_calls_leave_nothing_to_the_garbage_collector(name: str, no_collector: None) -> None:
    call = CALLS[name]
    for _ in range(3):
        call()
    gc.collect()
    before = _alive()
    for _ in range(20):
        call()
    assert _alive() == before


def test_a_thousand_calls_do_not_grow_the_tables() -> None:
    def size(backend: Backend) -> int:
        return 1 + sum(map(size, {id(b): b for b in backend.decorated.values()}.values()))

    for call in CALLS.values():
        call()
    before = size(ad.NumPy()), len(vars(ad.NumPy()))
    for _ in range(1000 // len(CALLS)):
        for call in CALLS.values():
            call()
    assert (size(ad.NumPy()), len(vars(ad.NumPy()))) == before


def test_the_graph_of_a_pullback_goes_with_it(no_collector: None) -> None:
    before, kept = _alive(), []

    def f(x: Any) -> Any:
        y = x * x
        kept.append(weakref.ref(y._array.node))
        return y

    _, pullback = ad.vjp(f, X)
    pullback(X)
    assert kept[0]() is not None
    del pullback
    assert kept[0]() is None
    _, along = ad.linearize(f, X)
    assert kept[1]() is None  # used up: what remains is the graph of the pullback
    del along
    assert _alive() == before


# --- what a transform meets inside of another one ---

TANGENTS: dict[str, Any] = {
    "of the level": lambda x: x * 2,
    "its own": lambda x: x,
    "a constant": lambda x: ad.full(x.shape, 2.0, dtype=x.dtype),
    "of another type": lambda x: ad.full(x.shape, 2.0, dtype=ad.float32),
    "NumPy's": lambda x: np.full(x.shape, 2.0),
    "a number of NumPy": lambda x: np.float64(2.0) if not x.shape else np.full(x.shape, 2.0),
}
OUTER: dict[str, Any] = {
    "grad": lambda f: ad.grad(lambda x: f(x).sum()),
    "jvp": lambda f: lambda x: ad.jvp(f, (x,), (np.ones_like(x),))[1],
    "vmap of grad": lambda f: ad.vmap(ad.grad(lambda x: f(x).sum())),
    "hessian": lambda f: ad.hessian(lambda x: f(x).sum()),
    "nothing": lambda f: f,
}


@pytest.mark.parametrize("x", [np.array(0.7), np.array([0.7, -0.3])], ids=["number", "array"])
@pytest.mark.parametrize("outer", OUTER)
@pytest.mark.parametrize("tangent", TANGENTS)
def test_a_push_inside_is_its_formula(tangent: str, outer: str, x: Any) -> None:
    if outer == "vmap of grad" and not x.shape:
        x = x[None]
    along = TANGENTS[tangent]
    pushed = lambda x: ad.jvp(lambda y: ad.sin(y) * y, (x,), (along(x),))[1]
    formula = lambda x: (ad.cos(x) * x + ad.sin(x)) * along(x)
    pulled = lambda x: ad.grad(lambda y: (ad.sin(y) * y * ad.asarray(along(x))).sum())(x)
    by_parts = lambda x: ad.value_and_grad(lambda y, z: (ad.sin(y) * z).sum(), argnums=(0, 1))(x, x)[1]
    both = lambda x: ad.cos(x) * x + 3 * ad.sin(x)
    expected = OUTER[outer](formula)(x)
    np.testing.assert_allclose(OUTER[outer](pushed)(x), expected, rtol=1e-13)
    if tangent != "of the level" and tangent != "its own":
        np.testing.assert_allclose(OUTER[outer](pulled)(x), expected, rtol=1e-13)
    found = OUTER[outer](lambda x: by_parts(x)[0] + 3 * by_parts(x)[1])(x)
    np.testing.assert_allclose(found, OUTER[outer](both)(x), rtol=1e-13)


WRONG_INSIDE: dict[str, Any] = {
    "no function": lambda x: ad.jvp(3, (x,), (x,)),
    "too few tangents": lambda x: ad.jvp(lambda x: x, (x,), ()),
    "shape of a tangent": lambda x: ad.jvp(lambda x: x, (x,), (ad.ones(3),)),
    "number as tangent of an array": lambda x: ad.jvp(lambda x: x, (x,), (np.float64(1),)),
    "tuple": lambda x: ad.jvp(lambda x: x, x, x),
    "gradient of no function": lambda x: ad.grad(3)(x),
    "gradient of an array": lambda x: ad.grad(lambda x: x)(x),
    "gradient of an integer": lambda x: ad.grad(lambda x: x.sum())(ad.astype(x, ad.int64)),
    "argument that is not there": lambda x: ad.grad(lambda x: x.sum(), argnums=1)(x),
    "too many arguments": lambda x: ad.grad(lambda: x.sum())(x),
}


@pytest.mark.parametrize("wrong", WRONG_INSIDE)
def test_a_transform_inside_refuses_what_it_refuses_outside(wrong: str) -> None:
    call = WRONG_INSIDE[wrong]

    def told(x: Any) -> tuple[type, str]:
        try:
            call(x)
        except Exception as error:
            return type(error), str(error)
        return type(None), "nothing"

    found: list[Any] = []
    outside = told(ad.tensor([0.5, 1.5], dtype=ad.float64))
    ad.grad(lambda x: (found.append(told(x)), x.sum())[1])(np.array([0.5, 1.5]))
    ad.jvp(lambda x: (found.append(told(x)), x)[1], (np.array([0.5, 1.5]),), (np.ones(2),))
    assert issubclass(outside[0], Exception)
    assert [kind for kind, _ in found] == [outside[0]] * 2
    assert {message[:30] for _, message in found} == {outside[1][:30]}  # what follows may name the level
