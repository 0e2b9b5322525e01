"""Ordinary differential equations, differentiated through their steps or by the adjoint equation."""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from adjoint import dtypes, errors
from adjoint.functions.arguments import as_choice, as_positive, called
from adjoint.functions.contraction import vecdot
from adjoint.functions.elementwise import abs
from adjoint.functions.shape import concat, stack
from adjoint.operands import cast, common_backend
from adjoint.solvers.compared import Compared, Grids
from adjoint.solvers.dormand_prince import DormandPrince, stepped
from adjoint.solvers.radau import Radau
from adjoint.solvers.steps import Control, Method, Slope, Vector, states_at, values_of
from adjoint.solvers.vectors import Parameters, State, applied, floats_of, lifted_result, of_dependence, with_floats
from adjoint.tensor import Tensor, wrap
from adjoint.transforms.arguments import Function, array_of
from adjoint.transforms.carries import differs_more
from adjoint.transforms.forward import jvp
from adjoint.transforms.hosted import hosted, waits
from adjoint.transforms.levels import CustomRules, Tensors
from adjoint.transforms.libraries import of_any_library
from adjoint.transforms.recomputed import HiddenTensorError, active_ones
from adjoint.transforms.reverse import vjp

_MARGIN = 10.0  # what a solution is wrong by, in units of what a step may be


@of_any_library
def odeint(
    func: Function,
    y0: Any,
    t: Any,
    *args: Any,
    rtol: float = 1.4e-8,
    atol: float = 1.4e-8,
    mxstep: int = 10_000,
    hmax: float = math.inf,
    gradient: str = "direct",
    method: str = "RK45",
) -> Any:
    """The solution of dy/dt = func(y, t, *args) from y0 at t[0], at all times in t.

    Parameters
    ----------
    func
        A function of the state, the time (a tensor of shape ()) and `args`, whose result has the structure and the
        shapes of the state.
    y0
        The state at t[0]: a pytree of real or complex floating arrays.
    t
        Times, of shape (m,), increasing or decreasing.
    args
        Pytrees of arrays.
    rtol, atol
        The error of a step, estimated entry by entry, is at most `atol + rtol * |y|` in the root mean square.
    mxstep
        How many steps there may be from one time in `t` to the next.
    hmax
        The longest step.
    gradient
        "direct" differentiates the steps, in a backward pass whose memory grows with their number. Where they are too
        long for the derivative, it takes shorter ones. "adjoint" solves the adjoint equation (L. Pontryagin 1962; R.
        Chen et al., Neural ordinary differential equations, 2018) backwards in time, and in forward mode the equation
        of the tangents: up to the tolerance the derivative of the solution, in memory that does not grow with the
        steps.
    method
        "RK45", the explicit method of orders 5 and 4 of J. Dormand and P. Prince (1980), or for stiff equations
        "Radau", the implicit method Radau IIA of order 5 (E. Hairer and G. Wanner 1996), whose steps end at the times
        in `t`. Names are those of `scipy.integrate.solve_ivp`.

    Returns
    -------
    pytree
        As y0, with an axis of m times in front: tensors, or NumPy arrays where all that was given were such.

    Notes
    -----
    Halves are solved in float32: func meets `y0`, `args` and what it closes over as such, and the result is rounded.

    Derivatives by `y0`, `t`, `args` and the tensors that func closes over are there in every mode and of every order.
    Lengths of steps count as constants, and are chosen for the solution.

    Each "direct" derivative, of any order, is computed twice: on the steps of the solution, and on steps that are twice
    as long. While the two differ by more than is allowed, it is computed on shorter steps, which a smaller tolerance
    chooses: all of them together have at most 32 times the steps of the solution, or 10,000. Of each argument a
    gradient may be wrong by `sqrt(rtol)` of its largest entry, weighted by the argument's own entries, and by what
    changes of the result of `10 * (atol + rtol * |y|)` amount to; that is an estimate, and no bound. Derivatives that
    are exact to the root alone are those where func has kinks; of smooth functions they are about as exact as the
    solution. The value is always that of the solution's steps. Not compared are the derivatives of "adjoint", those of
    `odeint_event`, Taylor series, and with "RK45" those by tensors that are neither arguments nor in the closure of
    func.

    In `vmap` all examples take the same steps, those of the one that needs the shortest, and share `t`.

    Raises
    ------
    ConvergenceError
        More steps than `mxstep`, a step that became too short, or a slope that is not finite; a derivative that no
        steps were short enough for, as of a chaotic solution; an adjoint equation that leaves the solution on its way
        back. In a backward pass it is the cause of a BackwardError.
    ShapeError, ArgumentError, DtypeError
        `t` has other than one axis, is empty, or neither increases nor decreases; func gives another structure, shape
        or kind than the state's; y0 is not floating; "Radau" with "adjoint", which explodes where it goes backwards.
    TrackedError
        With "adjoint" or "Radau", func uses a tensor whose derivative would be lost: one that is neither an argument
        nor in its closure.

    Examples
    --------
    >>> import adjoint as ad
    >>> import numpy as np
    >>> decay = lambda rate: ad.odeint(lambda y, t, rate: -rate * y, 1.0, np.array([0.0, 1.0, 2.0]), rate)
    >>> decay(0.5)
    array([1.        , 0.60653066, 0.36787944])
    >>> ad.jacobian(decay)(0.5).round(6)
    array([ 0.      , -0.606531, -0.735759])
    """
    as_choice(gradient, "odeint", "gradient", ("direct", "adjoint"))
    equation = Equation("odeint", func, y0, t, args, rtol, atol, mxstep, hmax, method)
    ys = equation.by_adjoint() if gradient == "adjoint" else equation.by_steps()
    return equation.parameters.answer(equation.state.answer(ys))


class Equation:
    """What is to be solved, on vectors."""

    func: Function
    name: str

    def __init__(
        self,
        name: str,
        func: Function,
        y0: Any,
        t: Any,
        args: Any,
        rtol: float,
        atol: float,
        mxstep: int,
        hmax: float,
        method: str,
    ) -> None:
        self.name, self.func = name, func
        self.control: Control = Control(
            float(as_positive(rtol, name, "rtol", zero=True)),
            float(as_positive(atol, name, "atol", zero=True)),
            float(as_positive(mxstep, name, "mxstep")),
            float(as_positive(hmax, name, "hmax")),
            as_choice(method, name, "method", ("RK45", "Radau")),
            name,
        )
        if not self.control.rtol and not self.control.atol:
            raise errors.ArgumentError(f"{name}: rtol and atol are both zero, which no step can reach")
        numbers = not isinstance(t, (Tensor, np.ndarray))
        t = t if isinstance(t, Tensor) else dtypes.values_of(t, dtypes.float64, f"{name}: t")
        self.parameters: Parameters = Parameters(name, func, args, y0, t)
        base = self.parameters.base
        t = t.astype(base.leaf.widest(t.dtype)) if numbers else t
        self.state: State = State(name, "y0", y0, base)
        times = wrap(array_of(t, base), base)
        _check_times(name, times)
        self.times: Tensor[Any] = cast(times, self.state.dtype)

    def slope(self, y: Vector, s: Vector, theta: Tensors) -> Vector:
        with self.state.precise():
            return self.state.ravel(self.parameters.call(theta, self.state.unravel(y), s))

    def by_adjoint(self) -> Vector:
        if self.control.method == "Radau":
            raise errors.ArgumentError(
                "odeint: the adjoint equation goes backwards in time, where the solution of a stiff equation explodes; "
                "take gradient='direct' with method='Radau'"
            )
        rules = _Continuous(self.slope, self.control)
        xs = [self.state.vector, self.times, *self.parameters.tensors]
        return self._later(lambda xs: applied(rules, xs), xs) if waits(xs) else applied(rules, xs)

    def _later(self, solve: Callable[[Tensors], Vector], xs: Tensors) -> Vector:
        """The states as a step of the program that has the values."""

        def run(xs: Tensors) -> Tensors:
            check_values(self.name, xs[1])
            return [solve(xs)]

        return hosted(self.name, run, xs, [((*xs[1].shape, *xs[0].shape), xs[0].dtype)])[0]

    def by_steps(self) -> Vector:
        state, parameters = self.state, self.parameters
        xs = [state.vector, self.times, *parameters.tensors]
        if waits(xs):  # then what func closes over is among the arguments
            return self._later(lambda xs: self._compared(xs) if _tracked(xs) else self._steps(self._at(xs), xs), xs)
        if _tracked(xs):
            try:
                return self._compared(xs)
            except HiddenTensorError:  # func uses one that is not among the arguments: the steps are recorded
                pass

        def f(y: Vector, s: Vector) -> Vector:
            with state.precise():
                return state.ravel(
                    called("odeint", "f(y, t, *args)", self.func, state.unravel(y), s, *parameters.arguments())
                )

        return self._steps(f, xs)

    def _at(self, xs: Tensors) -> Slope:
        return lambda y, s: self.slope(y, s, xs[2:])

    def _compared(self, xs: Tensors) -> Vector:
        """The states, with derivatives that are compared between grids of steps."""
        values = values_of(xs[1]).astype(np.float64)
        # steps of the explicit method pass the times that are asked for
        grids = Grids(self.control, values.tolist() if self.control.method == "Radau" else ())

        def ends(xs: Tensors, control: Control) -> list[float]:
            fixed, found = [x.detach() for x in xs], [float(values[0])]
            self._steps(self._at(fixed), fixed, control, found)
            return found

        def f(xs: Tensors) -> Tensors:
            control = grids.current(lambda control: ends(xs, control), float(dtypes.finfo(xs[0].dtype).eps))
            found = [float(values[0])]
            ys = self._steps(self._at(xs), xs, control, found)
            if control is self.control:
                grids.keep(found)
            return [ys, _MARGIN * (self.control.atol + self.control.rtol * abs(ys.detach()))]

        return Compared(self.name, f, active_ones(self.name, xs), grids).on(xs)[0]

    def _steps(self, f: Slope, xs: Tensors, control: Control | None = None, ends: list[float] | None = None) -> Vector:
        """The states that steps of y' = f(y, t) lead to, from [y0, t, *theta]."""
        y, t, *theta = xs
        method: Callable[..., Method] = functools.partial(DormandPrince, f)
        if self.control.method == "Radau":
            method = functools.partial(Radau, self.slope, theta)
        return _integrated(f, y, t, control or self.control, method, ends)


def _tracked(xs: Tensors) -> bool:
    return any(x.device.tracked(x._array) for x in xs)


def _check_times(name: str, t: Vector) -> None:
    if t.ndim != 1 or not t.size:
        raise errors.ShapeError(f"{name}: t has shape {t.shape}, expected times along one axis")
    if t.dtype.kind == "c":
        raise errors.DtypeError(f"{name}: t is {t.dtype}, expected real times")
    if not waits([t]):
        check_values(name, t)


def check_values(name: str, t: Vector) -> None:
    """Raises ArgumentError for times, which have values, that no solver can go through."""
    values = values_of(t)
    if values.ndim != 1:
        raise errors.ArgumentError(
            f"{name}: in vmap all examples share the times t; for other durations scale time: solve "
            "dy/ds = T * func(y, s * T) over the same s"
        )
    steps = np.diff(values.astype(np.float64))
    if not np.isfinite(values).all() or not ((steps >= 0).all() or (steps <= 0).all()):
        raise errors.ArgumentError(f"{name}: t neither increases nor decreases: {values.tolist()[:10]}")


# --- the steps -----------------------------------------------------------------------------------


def _integrated(
    f: Slope,
    y: Vector,
    t: Vector,
    control: Control,
    method: Callable[..., Method],
    ends: list[float] | None = None,
) -> Vector:
    """The states at all times, of shape (m, n), in operations on tensors that any level may record.

    The steps lie at constant times. Where the times in t are tracked, the ends are joined to them by steps of length
    zero: those of a method of order 5 have the right derivatives by their ends, up to the fifth.
    """
    times = values_of(t).astype(np.float64)
    moves = t.device.tracked(t._array)
    with y.device.leaf.quiet():  # a step that is too long may leave the domain of f
        if moves:
            y, _ = stepped(f, y, f(y, t[0]), t[0], t[0].detach() - t[0])
        ys = states_at(method(y, times, control), times, control, ends)
        if not moves:
            return ys
        fixed = t.detach()
        rows = [stepped(f, ys[i], f(ys[i], fixed[i]), fixed[i], t[i] - fixed[i])[0] for i in range(len(times))]
        return stack(rows)


# --- the adjoint equation ------------------------------------------------------------------------


class _Continuous(CustomRules):
    """The states at all times as a function of [y0, t, *theta], with derivatives from differential equations."""

    name = "odeint"

    def __init__(self, f: Callable[[Vector, Vector, Tensors], Vector], control: Control) -> None:
        self.f, self.control = f, control

    def plain(self, xs: Tensors) -> Tensors:
        y, t, *theta = xs
        device = common_backend(*xs)

        def f(y: Vector, s: Vector) -> Vector:
            return lifted_result(self.f(y, s, theta), device, self.name)

        return [_integrated(f, y, t, self.control, functools.partial(DormandPrince, f))]

    def forward(self, xs: Tensors) -> tuple[Tensors, Any]:
        ys = applied(self, xs)
        return [ys], (ys, xs)

    def residuals(self, xs: Tensors, ys: Tensors) -> Any:
        return ys[0], xs

    def backward(self, saved: Any, cotangents: Tensors) -> Tensors:
        """Backwards in time the state, its cotangent, and the integral that is the cotangent of theta.

        The state starts from the solution again at each time.
        """
        ys, (y0, t, *theta) = saved
        (g,) = cotangents
        n, m = y0.shape[0], t.shape[0]
        floats = floats_of(theta)
        weights = State("odeint", "args", floats, common_backend(*floats)) if any(x.size for x in floats) else None
        total = [weights.vector * 0] if weights else []

        def f(z: Vector, s: Vector, theta: Tensors) -> Vector:
            floats = floats_of(theta)
            slope, pull = vjp(lambda y, *floats: self.f(y, s, with_floats(theta, floats)), z[:n], *floats)
            found, *rest = pull(-z[n : 2 * n])
            return concat([slope, found, *([weights.ravel(rest)] if weights else [])])

        parts = (n, n, weights.size) if weights else (n, n)
        rules = _Continuous(f, dataclasses.replace(self.control, parts=parts))
        cotangent = g[m - 1]
        times = []
        for i in range(m - 1, 0, -1):
            times.append(vecdot(self.f(ys[i], t[i], theta), g[i]))
            z = concat([ys[i], cotangent, *total])
            z = applied(rules, [z, stack([t[i], t[i - 1]]), *theta])[1]
            self._check_return(z[:n], ys[i - 1], t[i], t[i - 1])
            cotangent = z[n : 2 * n] + g[i - 1]
            total = [z[2 * n :]] if weights else []
        times.append(-vecdot(self.f(y0, t[0], theta), cotangent - g[0]))
        return [cotangent, stack(times[::-1]), *with_floats(theta, weights.unravel(total[0]) if weights else floats)]

    def _check_return(self, y: Vector, known: Vector, begin: Vector, end: Vector) -> None:
        """Raises ConvergenceError where the state that goes backwards has left the solution."""
        control = self.control
        off = values_of(abs(y.detach() - known.detach()))
        size = values_of(abs(known.detach()))
        allowed = math.sqrt(max(control.rtol, float(dtypes.finfo(y.dtype).eps))) * size.max(axis=-1, keepdims=True)
        if not (off <= allowed + 100 * (control.atol + control.rtol * size)).all():
            raise errors.ConvergenceError(
                f"{self.name}: backwards from t = {float(np.max(values_of(begin))):.6g} to "
                f"{float(np.max(values_of(end))):.6g} the adjoint equation leaves the solution, as errors grow where "
                "the solution damps them; take gradient='direct', or ask for more times t"
            )

    def push(self, xs: Tensors, tangents: Tensors) -> tuple[Tensors, Tensors]:
        """The state and its tangent, of which a later start takes what the state does meanwhile."""
        if of_dependence(tangents):  # the steps tell
            active = [x + 0 * t for x, t in zip(floats_of(xs), floats_of(tangents), strict=True)]
            return [applied(self, xs)], self.plain(with_floats(xs, active))
        (y0, t, *theta), (v0, moved, *others) = xs, tangents
        n, size = y0.shape[0], len(theta)

        def f(z: Vector, s: Vector, theta: Tensors) -> Vector:
            values, directions = theta[:size], theta[size:]
            floats = floats_of(values)
            along = floats_of(directions)
            return concat(
                jvp(lambda y, *floats: self.f(y, s, with_floats(values, floats)), (z[:n], *floats), (z[n:], *along))
            )

        rules = _Continuous(f, dataclasses.replace(self.control, parts=(n, n)))
        start = v0 - self.f(y0, t[0], theta) * moved[0]
        both = applied(rules, [concat([y0, start]), t, *theta, *others])
        ys = both[:, :n]
        if differs_more(ys, xs):  # because the tangents do, of many directions
            ys = applied(self, xs)
        slopes = stack([self.f(ys[i], t[i], theta) for i in range(t.shape[0])])
        return [ys], [both[:, n:] + slopes * moved.reshape((-1, 1))]
