"""`ad.odeint_event`: when and where a solution meets a condition, and the derivatives of both."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.integrate
from conftest import peer
from numpy.testing import assert_allclose

import adjoint as ad
from adjoint.errors import (
    ArgumentError,
    ArgumentTypeError,
    ConvergenceError,
    DtypeError,
    ShapeError,
    TrackedError,
)

G = 9.81
METHODS = ["RK45", "Radau"]


def fall(h: Any, v: Any, method: str = "RK45") -> Any:
    """The time of a fall from a height with a speed, and the speed at the end."""
    falling = lambda y, t: (y[1], -G)
    t, (height, speed) = ad.odeint_event(falling, (h, v), (0.0, 10.0), event=lambda y, t: y[0], method=method)
    return t, speed, height


def fall_in_closed_form(h: Any, v: Any) -> Any:
    speed = (v * v + 2 * G * h) ** 0.5
    return (v + speed) / G, -speed, 0.0 * h


H, V = np.array([1.0, 5.0, 5.0, 20.0]), np.array([0.0, 3.0, 3.0, -2.0])
NESTINGS: dict[str, Callable[[Any], Any]] = {
    "value": lambda f: f(np.array(5.0), np.array(3.0)),
    "jacobian forward": lambda f: ad.jacobian(f, (0, 1), "forward")(5.0, 3.0),
    "jacobian reverse": lambda f: ad.jacobian(f, (0, 1), "reverse")(5.0, 3.0),
    "hessian": lambda f: ad.hessian(lambda h, v: f(h, v)[0] * f(h, v)[1], (0, 1))(5.0, 3.0),
    "reverse over reverse": lambda f: ad.grad(lambda h: ad.grad(lambda h, v: f(h, v)[0])(h, 3.0))(5.0),
    "third order": lambda f: ad.grad(ad.grad(ad.grad(lambda h: f(h, 3.0)[0])))(5.0),
    "vmap": lambda f: ad.vmap(f)(H, V),
    "vmap shared": lambda f: ad.vmap(f, (0, None))(H, 3.0),
    "vmap grad": lambda f: ad.vmap(ad.grad(lambda h, v: f(h, v)[0] + f(h, v)[1] ** 2, (0, 1)))(H, V),
    "grad vmap": lambda f: ad.grad(lambda h, v: ad.vmap(lambda h: f(h, v)[0])(h).sum(), (0, 1))(H, 3.0),
    "jvp vmap": lambda f: ad.jvp(ad.vmap(f), (H, V), (V, H)),
    "vmap vmap": lambda f: ad.vmap(ad.vmap(f, (None, 0)), (0, None))(H, V),
    "vmap hessian": lambda f: ad.vmap(ad.hessian(lambda h, v: f(h, v)[0]))(H, V),
    "checkpoint": lambda f: ad.grad(ad.checkpoint(lambda h, v: f(h, v)[0]), (0, 1))(5.0, 3.0),
    "series": lambda f: ad.jet(lambda h: f(h, 3.0)[0], (5.0,), ([1.0, 0.0],)),
}


@pytest.mark.parametrize("nesting", NESTINGS)
@pytest.mark.parametrize("method", METHODS)
def test_a_fall(method: str, nesting: str) -> None:
    run = NESTINGS[nesting]
    found = ad.tree.leaves(run(functools.partial(fall, method=method)))
    wanted = ad.tree.leaves(run(fall_in_closed_form))
    for mine, theirs in zip(found, wanted, strict=True):
        assert np.shape(mine) == np.shape(theirs)
        assert_allclose(mine, np.asarray(theirs), rtol=1e-8, atol=1e-9)


def test_a_ball_that_bounces() -> None:
    """Each bounce keeps a part of the speed; the time and the place of the third have closed forms."""

    def third(h: Any, part: Any) -> Any:
        time, state = 0.0, (h, 0.0)
        for _ in range(3):
            time, (height, speed) = ad.odeint_event(
                lambda y, t: (y[1], -G), state, ad.stack([time, 20.0]), event=lambda y, t: y[0], direction=-1
            )
            state = height, -part * speed
        return time, state[1]

    def closed(h: Any, part: Any) -> Any:
        first = ad.sqrt(2 * h / G)
        return first * (1 + 2 * part + 2 * part**2), part**3 * ad.sqrt(2 * G * h)

    with ad.use_dtype(ad.float64):
        for mine, wanted in zip(third(3.0, 0.7), closed(3.0, 0.7), strict=True):
            assert_allclose(float(mine), float(wanted), rtol=1e-9)
        for i in range(2):
            for transform in (ad.grad, ad.hessian):
                found = transform(lambda h, p, i=i: third(h, p)[i], (0, 1))(3.0, 0.7)
                wanted = transform(lambda h, p, i=i: closed(h, p)[i], (0, 1))(3.0, 0.7)
                assert_allclose(np.ravel(found), np.ravel(wanted), rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(
    ("direction", "wanted"), [(0, math.pi / 2), (-1, math.pi / 2), (1, 1.5 * math.pi), (np.float64(2.5), 1.5 * math.pi)]
)
def test_directions(direction: Any, wanted: float, method: str) -> None:
    f = lambda y, t: {"x": y["v"], "v": -y["x"]}
    start = {"x": np.array([1.0]), "v": np.array([0.0])}
    t, y = ad.odeint_event(f, start, (0, 10), event=lambda y, t: y["x"][0], direction=direction, method=method)
    assert_allclose(t, wanted, rtol=1e-7)
    assert y["x"].shape == (1,)
    assert_allclose(y["v"], -np.sin(wanted), rtol=1e-7)


def test_a_zero_at_the_start_is_no_event() -> None:
    t, _ = ad.odeint_event(lambda y, t: ad.cos(t), 0.0, (0.0, 10.0), event=lambda y, t: y)
    assert_allclose(t, math.pi, rtol=1e-7)


def test_backwards_and_float32() -> None:
    t, y = ad.odeint_event(lambda y, t: y, 1.0, (0.0, -10.0), event=lambda y, t: y - 0.5)
    assert_allclose([t, y], [-math.log(2), 0.5], rtol=1e-7)
    t, y = ad.odeint_event(
        lambda y, t: y, np.ones(2, np.float32), (0.0, 10.0), event=lambda y, t: y[0] - 2, rtol=1e-5, atol=1e-5
    )
    assert t.dtype == y.dtype == np.float32
    assert_allclose(t, math.log(2), rtol=1e-4)


def lotka(y: Any, t: Any, p: Any) -> Any:
    return ad.stack([p[0] * y[0] - p[1] * y[0] * y[1], -p[2] * y[1] + p[3] * y[0] * y[1] * (1 + 0.1 * ad.sin(t))])


RATES = np.array([1.1, 0.4, 0.4, 0.1])


@pytest.mark.parametrize("method", ["RK45", pytest.param("Radau", marks=pytest.mark.slow)])
def test_numerically_and_as_scipy(method: str) -> None:
    """The first time that as many foxes as rabbits are there, of a start, a beginning and rates."""

    def f(y0: Any, t0: Any, p: Any) -> Any:
        times = ad.stack([t0, 30.0])
        return ad.odeint_event(
            lotka, y0, times, p, event=lambda y, t, p: y[0] - y[1] * p[1] / 0.4, rtol=1e-10, atol=1e-10, method=method
        )

    args = np.array([10.0, 5.0]), np.array(0.2), RATES
    with ad.use_dtype(ad.float64):
        time, y = f(*args)

        def scipys(t: Any, y: Any) -> Any:
            p = RATES
            return [p[0] * y[0] - p[1] * y[0] * y[1], -p[2] * y[1] + p[3] * y[0] * y[1] * (1 + 0.1 * np.sin(t))]

        event: Any = lambda t, y: y[0] - y[1]
        event.terminal = True
        solved = scipy.integrate.solve_ivp(
            scipys, (0.2, 30.0), args[0], method="DOP853", events=event, rtol=1e-11, atol=1e-11
        )
        assert_allclose(time.numpy(), solved.t_events[0][0], rtol=1e-8)
        assert_allclose(y.numpy(), solved.y_events[0][0], rtol=1e-8)
        ad.testing.check_grads(f, args, order=2 if method == "RK45" else 1, modes=("reverse", "forward"))


def test_examples_have_events_of_their_own() -> None:
    """Of time, of a parameter that the equation does not know, and long before the last one; those found stay."""
    levels = np.array([0.5, 0.9, 0.5, 1e-3])
    decay = lambda y, t: -y

    def when(level: Any) -> Any:
        return ad.odeint_event(decay, 1.0, (0.0, 100.0), event=lambda y, t: y - level)

    time, y = ad.vmap(when)(levels)
    assert_allclose(time, -np.log(levels), rtol=1e-7, atol=1e-5)  # the tolerance is a part of a small level
    assert_allclose(y, levels, rtol=1e-12)
    assert_allclose(ad.vmap(ad.grad(lambda level: when(level)[0]))(levels), -1 / levels, rtol=1e-7)
    clock = lambda a: ad.odeint_event(lambda y, t: y * y, 1.0, (0.0, 0.999), event=lambda y, t: t - a)
    times = np.array([0.9, 0.1, 0.3])  # the solution ends at 1
    assert_allclose(ad.vmap(clock)(times), [times, 1 / (1 - times)], rtol=1e-6)


@pytest.mark.parametrize("method", ["RK45", "Radau"])
def test_examples_that_the_equation_alone_tells_apart(method: str) -> None:
    """They begin at one place, and the event is the same."""
    rates = np.array([1.0, 2.0, 5.0])
    one = lambda k: ad.odeint_event(
        lambda y, t, k: -k * y, 1.0, (0.0, 10.0), k, event=lambda y, t, k: y - 0.5, method=method
    )[0]
    both = lambda k: ad.odeint_event(
        lambda y, t: (y[1], -k), (1.0, 0.0), (0.0, 10.0), event=lambda y, t: y[0], method=method
    )[0]
    for f, exact, slope, curve in (
        (one, np.log(2.0) / rates, -np.log(2.0) / rates**2, 2.0 * np.log(2.0) / rates**3),
        (both, np.sqrt(2.0 / rates), -0.5 * np.sqrt(2.0) * rates**-1.5, 0.75 * np.sqrt(2.0) * rates**-2.5),
    ):
        for made in (ad.vmap(f), ad.compile(ad.vmap(f)), lambda ks, f=f: np.stack([f(k) for k in ks])):
            assert_allclose(made(rates), exact, rtol=1e-7)
        assert_allclose(ad.vmap(ad.grad(f))(rates), slope, rtol=1e-6)
        assert_allclose(ad.grad(lambda ks, f=f: ad.vmap(f)(ks).sum())(rates), slope, rtol=1e-6)
        assert_allclose(ad.vmap(ad.hessian(f))(rates), curve, rtol=1e-5)


@pytest.mark.parametrize("method", ["RK45", "Radau"])
def test_examples_have_times_of_their_own(method: str) -> None:
    """As those of a ball have that bounces, of which each flight begins where the one before ended."""

    def flight(t: Any, v: Any, push: Any, **options: Any) -> Any:
        f = lambda y, s, push: (y[1], push * s - G)  # what it uses is an argument, and in the closure of others
        return ad.odeint_event(
            f, (0.0 * v, v), t, push, event=lambda y, s, push: y[0], direction=-1, method=method, **options
        )[0]

    begins, v = np.array([0.0, 1.0, 2.5]), np.array([3.0, 4.0, 2.0])
    push = np.float64(0.2)
    one = lambda b, v, push: flight(ad.stack([b, b + 20.0]), v, push)
    alone = [flight((b, b + 20.0), u, push) for b, u in zip(begins, v, strict=True)]
    slopes = [ad.jacobian(lambda p: flight(ad.stack([p[0], 30.0]), p[1], p[2]))(np.array([b, u, push]))
              for b, u in zip(begins, v, strict=True)]  # fmt: skip
    curves = [ad.hessian(lambda p: flight(ad.stack([p[0], 30.0]), p[1], p[2]))(np.array([b, u, push]))
              for b, u in zip(begins, v, strict=True)]  # fmt: skip
    points = np.stack([begins, v, np.full(3, push)], 1)
    of = lambda p: flight(ad.stack([p[0], p[0] + 20.0]), p[1], p[2])
    for batch in (ad.vmap(one, (0, 0, None)), ad.compile(ad.vmap(one, (0, 0, None)))):
        assert_allclose(batch(begins, v, push), alone, rtol=1e-8)
    assert_allclose(ad.vmap(ad.grad(of))(points), slopes, rtol=1e-6, atol=1e-8)
    assert_allclose(ad.vmap(ad.jacobian(of, mode="forward"))(points), slopes, rtol=1e-6, atol=1e-8)
    assert_allclose(ad.vmap(ad.hessian(of))(points), curves, rtol=1e-5, atol=1e-6)
    ends = ad.vmap(lambda b, e: flight(ad.stack([b, e]), 3.0, push, hmax=0.05))(
        begins, begins + np.array([1.0, 2.0, 9.0])
    )
    assert_allclose(ends, [flight((b, 30.0), 3.0, push) for b in begins], rtol=1e-8)
    with pytest.raises(ConvergenceError, match="no event for 2 of 3 examples up to its end"):
        ad.vmap(one, (0, 0, None))(begins, np.array([1.0, 500.0, 500.0]), push * 0)


def test_the_way_to_the_event() -> None:
    """`odeint` is differentiable by its times."""

    def highest(v: Any) -> Any:
        f = lambda y, t: (y[1], -G)
        t, _ = ad.odeint_event(f, (0.0, v), (0.0, 10.0), event=lambda y, t: y[1])
        return ad.odeint(f, (0.0, v), ad.linspace(0.0, 1.0, 5) * t)[0]

    parts = np.linspace(0.0, 1.0, 5)
    assert_allclose(ad.jacobian(highest)(3.0), 3.0 / G * (2 * parts - parts**2), rtol=1e-7, atol=1e-12)


@pytest.mark.slow
def test_a_stiff_equation() -> None:
    k = np.array([0.04, 1e4, 3e7])

    def f(y: Any, t: Any, k: Any) -> Any:
        slow, fast, back = k[0] * y[0], k[2] * y[1] ** 2, k[1] * y[1] * y[2]
        return ad.stack([back - slow, slow - back - fast, fast])

    def when(k: Any) -> Any:
        start = np.array([1.0, 0.0, 0.0])
        return ad.odeint_event(
            f, start, (0.0, 100.0), k, event=lambda y, t, k: y[2] - 0.1, method="Radau", rtol=1e-8, atol=1e-12
        )[0]

    def scipys(k: Any) -> float:
        def f(t: Any, y: Any) -> Any:
            slow, fast, back = k[0] * y[0], k[2] * y[1] ** 2, k[1] * y[1] * y[2]
            return [back - slow, slow - back - fast, fast]

        event: Any = lambda t, y: y[2] - 0.1
        event.terminal = True
        solved = scipy.integrate.solve_ivp(
            f, (0.0, 100.0), [1.0, 0.0, 0.0], method="BDF", events=event, rtol=1e-11, atol=1e-15
        )
        return float(solved.t_events[0][0])

    assert_allclose(when(k), scipys(k), rtol=1e-6)
    slope = ad.grad(when)(k) * k
    differences = [(scipys(k * (1 + h)) - scipys(k * (1 - h))) / 2e-3 for h in 1e-3 * np.eye(3)]
    assert_allclose(slope, differences, rtol=1e-4)


@pytest.mark.parametrize("leaf", ["reference", "array_api[array_api_strict]", "torch:cpu"])
def test_on_other_backends(leaf: str) -> None:
    peer("torch" if leaf == "torch:cpu" else "array_api_strict")
    device = ad.device(leaf)
    rate = ad.tensor(np.array(0.5), device=ad.Autodiff(device)).require_grad()
    for method in METHODS:
        y0 = ad.ones((), dtype=ad.float64, device=device)
        t, _ = ad.odeint_event(
            lambda y, t, rate: -rate * y, y0, (0.0, 9.0), rate, event=lambda y, t, rate: y - 0.5, method=method
        )
        assert_allclose(t.backward()[rate].numpy(), -math.log(2) / 0.25, rtol=1e-6)


# --- what goes wrong ---


def test_no_event() -> None:
    with pytest.raises(ConvergenceError, match="odeint_event: there is no event up to t = 1"):
        ad.odeint_event(lambda y, t: -y, 1.0, (0.0, 1.0), event=lambda y, t: y)
    with pytest.raises(ConvergenceError, match="there is no event for 1 of 3 examples"):
        ad.vmap(lambda a: ad.odeint_event(lambda y, t: -y, 1.0, (0.0, 1.0), event=lambda y, t: y - a))(
            np.array([0.5, 0.1, 0.9])
        )
    with pytest.raises(ConvergenceError, match="odeint_event: 5 steps lead to"):
        ad.odeint_event(lambda y, t: ad.cos(10 * t), 1.0, (0.0, 99.0), event=lambda y, t: y, mxstep=5)


class Level:
    def __init__(self, w: Any) -> None:
        self.w = w

    def __call__(self, y: Any, t: Any) -> Any:
        return y - self.w


def test_no_derivative_is_lost() -> None:
    for f, event in ((Level(0.5), None), (None, Level(0.5))):
        with pytest.raises(TrackedError, match="make it an argument"):
            ad.grad(
                lambda w, f=f, event=event: ad.odeint_event(
                    Level(w) if f else lambda y, t: -y, 1.0, (0.0, 9.0), event=Level(w) if event else lambda y, t: y - 2
                )[0]
            )(0.5)


@pytest.mark.parametrize(
    ("error", "options"),
    [
        (ArgumentTypeError, {"event": 3}),
        (ArgumentTypeError, {"direction": "up"}),
        (ShapeError, {"event": lambda y, t: ad.ones(2)}),
        (ShapeError, {"event": lambda y, t: {"y": y}}),
        (DtypeError, {"event": lambda y, t: y > 0}),
        (DtypeError, {"event": lambda y, t: y * 1j}),
        (ArgumentError, {"method": "BDF"}),
        (ArgumentError, {"rtol": -1.0}),
    ],
)
def test_bad_options(error: type[Exception], options: Any) -> None:
    with pytest.raises(error, match="odeint_event"):
        ad.odeint_event(lambda y, t: -y, 1.0, (0.0, 1.0), **{"event": lambda y, t: y - 0.5, **options})


@pytest.mark.parametrize("times", [1.0, (0.0,), (0.0, 1.0, 2.0)])
def test_times_are_a_pair(times: Any) -> None:
    with pytest.raises(ShapeError, match="odeint_event: t"):
        ad.odeint_event(lambda y, t: -y, 1.0, times, event=lambda y, t: y - 0.5)
