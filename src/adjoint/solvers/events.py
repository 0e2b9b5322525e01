"""Where the solution of a differential equation meets a condition, and when."""

from __future__ import annotations

import copy
import functools
import math
from collections.abc import Generator
from typing import Any

import numpy as np

from adjoint import errors
from adjoint import tree as trees
from adjoint.backend import Decorator
from adjoint.decorators.batched import Batched
from adjoint.dtypes import FLOATING, finfo
from adjoint.functions.arguments import as_number, check_callable
from adjoint.functions.elementwise import where
from adjoint.operands import cast, concrete_values
from adjoint.solvers.dormand_prince import DormandPrince, stepped
from adjoint.solvers.linear import on_values
from adjoint.solvers.ode import Equation, check_values
from adjoint.solvers.radau import Radau
from adjoint.solvers.steps import Method, Step, Vector, constant, too_many, values_of
from adjoint.solvers.theorem import Known, Systems
from adjoint.solvers.vectors import Parameters, applied
from adjoint.tensor import Tensor, wrap
from adjoint.transforms.arguments import Function, array_of
from adjoint.transforms.carries import with_examples_of
from adjoint.transforms.hosted import hosted, waits
from adjoint.transforms.levels import Tensors
from adjoint.transforms.libraries import of_any_library

Values = np.ndarray[Any, Any]
Steps = Generator[Step | None, float | None, None]


@of_any_library
def odeint_event(
    func: Function,
    y0: Any,
    t: Any,
    *args: Any,
    event: Function,
    direction: float = 0,
    rtol: float = 1.4e-8,
    atol: float = 1.4e-8,
    mxstep: int = 10_000,
    hmax: float = math.inf,
    method: str = "RK45",
) -> tuple[Any, Any]:
    """The first time when `event(y, t, *args)` is zero along the solution of dy/dt = func(y, t, *args), and y there.

    Parameters
    ----------
    func, y0, args, rtol, atol, mxstep, hmax, method
        As in `odeint`.
    t
        The times (begin, end): y0 is the state at the first, and the event is looked for up to the second. In `vmap`
        examples may have times of their own.
    event
        A function of the state, the time and `args`, whose result is a real number. The event is where its sign
        changes: that it is zero at the beginning is none.
    direction
        1 for a change from negative to positive, -1 for the other one, 0 for both, as in
        `scipy.integrate.solve_ivp`.

    Returns
    -------
    t_event, y_event
        The time, of shape (), and the state, as y0.

    Notes
    -----
    Steps are made shorter until one ends at the event, so it is as exact as the solution. Two changes of sign within
    one step are not seen; `hmax` bounds the step. The rate at which the event passes zero divides derivatives, which
    are infinite where it is zero too. Derivatives by `y0`, `t[0]`, `args` and the tensors that func and
    event close over, in every mode and of every order, are those of the steps, and by the implicit function theorem
    those of the time. In `vmap` each example has an event of its own, and stays there while others go on. What
    happened up to the event is `odeint` at times up to `t_event`, by which it is differentiable.

    Raises
    ------
    ConvergenceError
        There is no event up to the end, for all of the examples in `vmap`; otherwise as in `odeint`.
    ShapeError, DtypeError, ArgumentError
        `event` gives no real number, `t` is no pair; otherwise as in `odeint`.
    TrackedError
        func or event uses a tensor whose derivative would be lost: one that is neither an argument nor in its closure.

    Examples
    --------
    A ball falls from a height h in a time of sqrt(2 h / g), whose derivative by h is 1 / sqrt(2 g h).

    >>> import adjoint as ad
    >>> import numpy as np
    >>> falling = lambda y, t: (y[1], -9.81)
    >>> fall = lambda h: ad.odeint_event(falling, (h, 0.0), (0.0, 10.0), event=lambda y, t: y[0])
    >>> t, (height, speed) = fall(20.0)
    >>> t.round(6), speed.round(6), ad.grad(lambda h: fall(h)[0])(20.0).round(6)
    (np.float64(2.019275), np.float64(-19.809089), np.float64(0.050482))
    """
    name = "odeint_event"
    check_callable(name, func, "func")
    check_callable(name, event, "event")
    sign = np.sign(as_number(direction, name, "direction"))
    if not _differs(t):
        return _first_event(name, func, y0, t, args, event, sign, (rtol, atol, mxstep, hmax, method), "t = {:.6g}")
    begin, length = t[0], t[1] - t[0]

    def scaled(y: Any, s: Any, begin: Any, length: Any, *args: Any) -> Any:
        return trees.map(lambda slope: slope * length, func(y, begin + s * length, *args))

    def watched(y: Any, s: Any, begin: Any, length: Any, *args: Any) -> Any:
        return event(y, begin + s * length, *args)

    if hmax != math.inf:
        hmax = hmax / float(np.max(np.abs(concrete_values(length, f"{name}: hmax"))))
    s, y = _first_event(
        name,
        scaled,
        y0,
        (0.0, 1.0),
        (begin, length, *args),
        watched,
        sign,
        (rtol, atol, mxstep, hmax, method),
        "its end",
    )
    return begin + s * length, y


def _differs(t: Any) -> bool:
    """Whether examples of a batch have times of their own."""
    if not isinstance(t, Tensor) or t.shape != (2,):
        return False
    array, level = t._array, t.device
    while isinstance(level, Decorator):
        if isinstance(level, Batched) and level.is_active(array):
            return True
        array, level = level.unwrap(array), level.inner
    return False


def _first_event(
    name: str, func: Function, y0: Any, t: Any, args: Any, event: Function, sign: Any, options: Any, end: str
) -> tuple[Any, Any]:
    """The time and the state, where all examples share the times."""
    equation = Equation(name, func, y0, t, args, *options)
    if equation.times.shape != (2,):
        raise errors.ShapeError(
            f"{name}: t is a pair of times, the begin and the end; it has shape {equation.times.shape}"
        )
    watched = Parameters(name, event, args, y0, t)
    run = _Event(equation, watched, sign, end)
    xs = [equation.state.vector, equation.times, *run.theta, *run.watch]
    if waits(xs):
        time, y = hosted(name, run.later, xs, [((), xs[0].dtype), (xs[0].shape, xs[0].dtype)])
    else:
        time, y = run.found(*xs[:2])
    watched.settle()
    answer: tuple[Any, Any] = equation.parameters.answer((time, equation.state.answer(y)))
    return answer


class _Event:
    """The search for the event, and its derivative."""

    def __init__(self, equation: Equation, watched: Parameters, sign: Any, end: str) -> None:
        self.equation, self.watched, self.sign, self.end = equation, watched, sign, end
        self.name, self.control, self.state = equation.name, equation.control, equation.state
        self.theta, self.watch = equation.parameters.tensors, watched.tensors
        eps = float(finfo(self.state.dtype).eps)
        self.close = 4 * eps
        self.systems = Systems(self.name, None, eps ** (2 / 3))

    def event(self, y: Vector, s: Vector, watch: Tensors) -> Tensor[Any]:
        with self.state.precise():
            out = self.watched.call(watch, self.state.unravel(y), s)
        shape = getattr(out, "shape", None if not isinstance(out, (int, float)) else ())
        if shape != ():
            what = type(out).__name__ if shape is None else f"a result of shape {shape}"
            raise errors.ShapeError(f"{self.name}: the event gives {what}, expected a number")
        if not isinstance(out, Tensor):
            out = wrap(array_of(out, y.device), y.device)
        if out.dtype.kind not in FLOATING:
            raise errors.DtypeError(f"{self.name}: the event gives {out.dtype}, expected a real floating number")
        return cast(out, y.dtype)

    def signs(self, y: Vector, now: float) -> Tensor[Any]:
        """The event's value without derivatives, of all examples of a batch."""
        y = y.detach()
        return with_examples_of(self.event(y, constant(now, y), [x.detach() for x in self.watch]), y[0])

    def crossed(self, before: Values, after: Values) -> Values:
        up, down = (before < 0) & (after >= 0), (before > 0) & (after <= 0)
        return up if self.sign > 0 else down if self.sign < 0 else up | down

    def later(self, xs: Tensors) -> Tensors:
        """What is found from [y0, t, *theta, *watch]."""
        y, t, *rest = xs
        check_values(self.name, t)
        run = copy.copy(self)
        run.theta, run.watch = rest[: len(self.theta)], rest[len(self.theta) :]
        return [*run.found(y, t)]

    def found(self, y: Vector, t: Vector) -> tuple[Tensor[Any], Vector]:
        slope = self.equation.slope
        start, end = values_of(t).astype(np.float64).tolist()
        plain = y.detach()
        leaving = slope(plain, constant(start, y), [x.detach() for x in self.theta])
        _refuse_hidden(self.name, leaving)
        with y.device.leaf.quiet():
            if t.device.tracked(t._array):
                y, _ = stepped(self._slope, y, self._slope(y, t[0]), t[0], t[0].detach() - t[0])
            first = self.signs(y, start)
            _refuse_hidden(self.name, first)
            y = with_examples_of(with_examples_of(y, first), leaving[0])  # of all that may move them apart
            y, time = self._searched(y, start, end)

            def equation(z: Vector, xs: Tensors) -> Vector:
                y, time, *rest = xs
                theta, watch = rest[: len(self.theta)], rest[len(self.theta) :]
                f = functools.partial(self._slope, theta=theta)
                moved, _ = stepped(f, y, f(y, time), time, z[0] - time)
                return self.event(moved, z[0], watch).reshape((1,))

            known = [time.reshape((1,)), y, time, *self.theta, *self.watch]
            exact = applied(Known(self.systems, equation), known)[0]
            y, _ = stepped(self._slope, y, self._slope(y, time), time, exact - time)
            return exact, y

    def _slope(self, y: Vector, s: Vector, theta: Tensors | None = None) -> Vector:
        return self.equation.slope(y, s, self.theta if theta is None else theta)

    def _method(self, y: Vector, times: Values, going: Tensor[Any]) -> Method:
        """Steps of the examples that go on; the others stay."""

        def slope(y: Vector, s: Vector, theta: Tensors) -> Vector:
            going, *theta = theta
            return where(going, self.equation.slope(y, s, theta), 0.0)

        theta = [going, *self.theta]
        if self.control.method == "Radau":
            return Radau(slope, theta, y, times, self.control)
        return DormandPrince(lambda y, s: slope(y, s, theta), y, times, self.control)

    def _searched(self, y: Vector, now: float, end: float) -> tuple[Vector, Tensor[Any]]:
        """The states of all examples at a step's end that is their event, and the times, without derivatives."""
        done, at = None, None
        found_y = y
        while True:
            like = self.signs(y, now)
            before = values_of(like)
            done = np.zeros(before.shape, dtype=bool) if done is None else done
            at = np.full(before.shape, now) if at is None else at
            going = _with_values(like, ~done)
            method = self._method(y, np.array([now, end]), going)
            step, hit = self._first(method, before, done, end)
            mask = _with_values(like, hit)
            found_y = where(mask, step.after, found_y)
            done, at = done | hit, np.where(hit, step.now, at)
            if done.all():
                return found_y, _with_values(like, at.astype(y.dtype))
            y, now = step.after, step.now

    def _first(self, method: Method, before: Values, done: Values, end: float) -> tuple[Step, Values]:
        """The step that ends at the first event of those that go on, and of which examples it is."""
        steps = method.steps()
        count, now = 0, math.nan
        for step in steps:
            while step is not None:
                now = step.now
                after = values_of(self.signs(step.after, now))
                hit = ~done & self.crossed(before, after)
                if hit.any():
                    exact = self._located(steps, step, before, after, done)
                    if exact is not None:
                        return exact
                    step = next(steps)  # a shorter one that was not good enough
                    continue
                before = after
                break
            count += 1
            if count > self.control.mxstep:
                raise too_many(count - 1, now, end, self.control)
        missing = f" for {np.sum(~done)} of {done.size} examples" if done.ndim else ""
        raise errors.ConvergenceError(f"{self.name}: there is no event{missing} up to {self.end.format(end)}")

    def _located(
        self, steps: Steps, step: Step, before: Values, after: Values, done: Values
    ) -> tuple[Step, Values] | None:
        """The step that is as long as it takes to the first event.

        The false position with M. Dowell's and P. Jarratt's halves (1971), on lengths of the step.
        """
        start, low, high = step.before, 0.0, step.h
        ends = [before, after]  # values at both, which are halved where the other end moves twice
        last = 0
        for _ in range(100):
            hit = ~done & self.crossed(before, after)
            close = self.close * max(abs(start + high), abs(high))
            if abs(high - low) <= close or not np.any(after[hit]):
                break
            parts = ends[0][hit] / (ends[0][hit] - ends[1][hit])
            trial = low + float(np.min(parts)) * (high - low)
            inner = math.copysign(close / 2, high)
            trial = min(max(trial, low + inner, key=abs), high - inner, key=abs)
            shorter = steps.send(trial)
            if shorter is None:
                return None
            now = values_of(self.signs(shorter.after, shorter.now))
            if (~done & self.crossed(before, now)).any():
                step, high, after = shorter, trial, now
                ends = [ends[0] / 2 if last > 0 else ends[0], now]
                last = 1
            else:
                low = trial
                ends = [now, ends[1] / 2 if last < 0 else ends[1]]
                last = -1
        return step, ~done & self.crossed(before, after)


def _with_values(like: Tensor[Any], values: Values) -> Tensor[Any]:
    """These values, those of all examples, in the place of a tensor's."""
    return on_values(like, lambda _: values)


def _refuse_hidden(name: str, x: Tensor[Any]) -> None:
    """Raises TrackedError for what is tracked although nothing that is known is."""
    array, level = x._array, x.device
    while isinstance(level, Decorator):
        if level.differentiates and level.is_active(array) and not isinstance(level, Batched):
            raise errors.TrackedError(
                f"{name}: a function uses a tensor on {x.device} that is neither an argument nor a variable of its "
                "closure, so that its derivative would be lost; make it an argument"
            )
        array, level = level.unwrap(array), level.inner
