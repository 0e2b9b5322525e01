"""Ordinary differential equations, differentiated through their steps or by the adjoint equation.

The method is the Runge-Kutta pair of orders 5 and 4 of J. Dormand and P. Prince, A family of embedded Runge-Kutta
formulae (1980). Steps are chosen as in E. Hairer, S. Norsett, G. Wanner, Solving Ordinary Differential Equations I
(1993), section II.4, whose table II.5.2 has the coefficients.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from adjoint import dtypes, errors
from adjoint.functions.arguments import as_choice, as_positive
from adjoint.functions.contraction import vecdot
from adjoint.functions.shape import concat, stack
from adjoint.operands import cast, common_backend, concrete_values, lift_to, run
from adjoint.solvers.vectors import Parameters, State, applied, floats_of, lifted_result, of_dependence, with_floats
from adjoint.tensor import Tensor, wrap
from adjoint.transforms.arguments import Function, array_of
from adjoint.transforms.carries import differs_more, with_examples_of
from adjoint.transforms.forward import jvp
from adjoint.transforms.levels import CustomRules, Tensors
from adjoint.transforms.libraries import of_any_library
from adjoint.transforms.reverse import vjp

Vector = Tensor[Any]
Slope = Callable[[Vector, Vector], Vector]  # of the state and the time

_NODES = (1 / 5, 3 / 10, 4 / 5, 8 / 9, 1.0)  # when stages 2 to 6 are; 1 is at the start of the step, 7 at its end
# What each slope adds to the states of the stages after it; those of the last stage are the weights of the step.
_STAGES = np.array(
    [
        [1 / 5, 0, 0, 0, 0, 0],
        [3 / 40, 9 / 40, 0, 0, 0, 0],
        [44 / 45, -56 / 15, 32 / 9, 0, 0, 0],
        [19372 / 6561, -25360 / 2187, 64448 / 6561, -212 / 729, 0, 0],
        [9017 / 3168, -355 / 33, 46732 / 5247, 49 / 176, -5103 / 18656, 0],
        [35 / 384, 0, 500 / 1113, 125 / 192, -2187 / 6784, 11 / 84],
    ]
)
_ERROR = (71 / 57600, 0, -71 / 16695, 71 / 1920, -17253 / 339200, 22 / 525, -1 / 40)
# The interpolant of order 4 of L. Shampine, Some practical Runge-Kutta formulas (1986): powers 1 to 4 per slope.
_DENSE = np.array(
    [
        [1, -8048581381 / 2820520608, 8663915743 / 2820520608, -12715105075 / 11282082432],
        [0, 0, 0, 0],
        [0, 131558114200 / 32700410799, -68118460800 / 10900136933, 87487479700 / 32700410799],
        [0, -1754552775 / 470086768, 14199869525 / 1410260304, -10690763975 / 1880347072],
        [0, 127303824393 / 49829197408, -318862633887 / 49829197408, 701980252875 / 199316789632],
        [0, -282668133 / 205662961, 2019193451 / 616988883, -1453857185 / 822651844],
        [0, 40617522 / 29380423, -110615467 / 29380423, 69997945 / 29380423],
    ]
)


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
        "direct" differentiates the steps: exactly the derivative of what was computed, in memory that grows with the
        number of steps. "adjoint" solves the adjoint equation (L. Pontryagin 1962; R. Chen et al., Neural ordinary
        differential equations, 2018) backwards in time, and in forward mode the equation of the tangents: up to the
        tolerance the derivative of the solution, in memory that does not grow with the steps.

    Returns
    -------
    pytree
        As y0, with an axis of m times in front: tensors, or NumPy arrays where all that was given were such.

    Notes
    -----
    Derivatives by `y0`, `t`, `args` and the tensors that func closes over are there in every mode and of every order.
    Lengths of steps count as constants. In `vmap` all examples take the same steps, those of the one that needs the
    shortest, and share `t`.

    Raises
    ------
    ConvergenceError
        More steps than `mxstep`, a step that became too short, or a derivative that is not finite. Of the adjoint
        equation, which a backward pass solves, it is the cause of a BackwardError.
    ShapeError, ArgumentError, DtypeError
        `t` has other than one axis, is empty, or neither increases nor decreases; func gives another structure, shape
        or kind than the state's; y0 is not floating.
    TrackedError
        With "adjoint", func uses a tensor whose derivative would be lost: one that is neither an argument nor in
        func's closure.

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
    control = Control(
        float(as_positive(rtol, "odeint", "rtol", zero=True)),
        float(as_positive(atol, "odeint", "atol", zero=True)),
        float(as_positive(mxstep, "odeint", "mxstep")),
        float(as_positive(hmax, "odeint", "hmax")),
    )
    if not control.rtol and not control.atol:
        raise errors.ArgumentError("odeint: rtol and atol are both zero, which no step can reach")
    numbers = not isinstance(t, (Tensor, np.ndarray))
    t = t if isinstance(t, Tensor) else dtypes.values_of(t, dtypes.float64, "odeint: t")
    parameters = Parameters("odeint", func, args, y0, t)
    base = parameters.base
    t = t.astype(base.leaf.widest(t.dtype)) if numbers else t
    state = State("odeint", "y0", y0, base)
    times = wrap(array_of(t, base), base)
    _check_times(times)
    times = cast(times, state.dtype)

    def slope(y: Vector, s: Vector, theta: Tensors) -> Vector:
        with state.precise():
            return state.ravel(parameters.call(theta, state.unravel(y), s))

    if gradient == "adjoint":
        ys = applied(_Continuous(slope, control), [state.vector, times, *parameters.tensors])
    else:

        def f(y: Vector, s: Vector) -> Vector:
            with state.precise():
                return state.ravel(func(state.unravel(y), s, *parameters.arguments()))

        ys = _integrated(f, state.vector, times, control)
    return parameters.answer(state.unravel(ys))


@dataclasses.dataclass(frozen=True)
class Control:
    """How steps are chosen. The error is that of the part, of these sizes, where it is largest; None is one part."""

    rtol: float
    atol: float
    mxstep: float
    hmax: float
    parts: tuple[int, ...] | None = None


def _values(x: Vector) -> np.ndarray[Any, Any]:
    """The values of a vector; of a batch, those of all examples."""
    return concrete_values(x, "odeint")


def _check_times(t: Vector) -> None:
    if t.ndim != 1 or not t.size:
        raise errors.ShapeError(f"odeint: t has shape {t.shape}, expected times along one axis")
    if t.dtype.kind == "c":
        raise errors.DtypeError(f"odeint: t is {t.dtype}, expected real times")
    values = _values(t)
    if values.ndim != 1:
        raise errors.ArgumentError(
            "odeint: in vmap all examples share the times t; for other durations scale time: solve "
            "dy/ds = T * func(y, s * T) over the same s"
        )
    steps = np.diff(values.astype(np.float64))
    if not np.isfinite(values).all() or not ((steps >= 0).all() or (steps <= 0).all()):
        raise errors.ArgumentError(f"odeint: t neither increases nor decreases: {values.tolist()[:10]}")


# --- the method ----------------------------------------------------------------------------------


def _integrated(f: Slope, y: Vector, t: Vector, control: Control) -> Vector:
    """The states at all times, of shape (m, n), in ordinary operations on tensors: any level may record them.

    The steps lie at constant times. Where the times in t are tracked, the ends are joined to them by steps of length
    zero: those of a method of order 5 have the right derivatives by their ends, up to the fifth.
    """
    times = _values(t).astype(np.float64)
    moves = t.device.tracked(t._array)
    with y.device.leaf.quiet():  # a step that is too long may leave the domain of f
        if moves:
            y, _ = _step(f, y, f(y, t[0]), t[0], t[0].detach() - t[0])
        ys = _steps(f, y, times, control)
        if not moves:
            return ys
        fixed = t.detach()
        rows = [_step(f, ys[i], f(ys[i], fixed[i]), fixed[i], t[i] - fixed[i])[0] for i in range(len(times))]
        return stack(rows)


def _steps(slope: Slope, y: Vector, times: np.ndarray[Any, Any], control: Control) -> Vector:
    """The states at times that are constants."""

    def f(y: Vector, s: Vector) -> Vector:  # values are compared example by example
        return with_examples_of(slope(y, s), y)

    begin, end = float(times[0]), float(times[-1])
    k = f(y, _constant(begin, y))
    device = common_backend(y, k)
    y, k = (wrap(lift_to(x, device), device) for x in (y, k))
    y = with_examples_of(y, k)
    if not np.isfinite(_values(k)).all():
        raise errors.ConvergenceError(f"odeint: the derivative is not finite at the start, t = {begin:.6g}")
    rows, i = [y.reshape((1, -1))], 1
    h = _first_step(f, y, k, begin, end, control)
    now, count, most = begin, 0, 10.0
    while i < len(times):
        if times[i] == now:  # the same time again
            rows.append(rows[-1][-1:])
            i += 1
            continue
        count += 1
        if count > control.mxstep:
            raise errors.ConvergenceError(
                f"odeint: {count - 1} steps lead to t = {now:.6g} and not to {times[i]:.6g}; a stiff equation takes "
                "short steps; allow more with mxstep, or ask for less with rtol and atol",
                iterations=count - 1,
            )
        if abs(h) >= 0.999 * abs(end - now):
            h = end - now
        if now + h == now:
            raise errors.ConvergenceError(
                f"odeint: the step at t = {now:.6g} became too short: the derivative is not finite, or the solution "
                "has a singularity there",
                iterations=count,
            )
        after, slopes = _step(f, y, k, now, h)
        slopes.append(f(after, _constant(now + h, y)))
        error = _error([_values(x) for x in slopes], h, _values(y), _values(after), control)
        longer = 0.9 * error**-0.2 if 0 < error < math.inf else math.inf if error == 0 else 0.0
        if not error <= 1:  # or it is nan
            h, most = h * max(0.2, longer), 1.0
            continue
        now, before = end if h == end - now else now + h, now
        last = i
        while last < len(times) and (times[last] - now) * h <= 0:
            last += 1
        if last == i + 1 and times[i] == now:
            rows.append(after.reshape((1, -1)))
        elif last > i:
            rows.append(_interpolated(y, slopes, h, (times[i:last] - before) / h))
        if last > i:
            i, count = last, 0
        y, k = after, slopes[-1]
        h, most = math.copysign(min(abs(h) * min(most, max(0.2, longer)), control.hmax), h), 10.0
    return concat(rows)


def _step(f: Slope, y: Vector, k: Vector, now: Any, h: Any) -> tuple[Vector, Tensors]:
    """The state after a step, and its six slopes; k is the first of them. Time and step may be tensors.

    All stages grow together, by one product and one sum per slope.
    """
    moves = isinstance(h, Tensor)
    weights = _STAGES if moves else np.asarray(h * _STAGES, dtype=y.dtype)
    stages, slopes = y, [k]
    for j in range(6):
        weight = _constant(weights[:, j : j + 1], y)
        part = (h * weight if moves else weight) * slopes[j]
        stages = stages + part
        if j < 5:
            ahead = now + _NODES[j] * h
            slopes.append(f(stages[j], ahead if moves else _constant(ahead, y)))
    return stages[5], slopes


def _constant(value: Any, like: Vector) -> Vector:
    return wrap(like.device.from_numpy(np.asarray(value, dtype=like.dtype), copy=False), like.device)


def _interpolated(y: Vector, slopes: Tensors, h: float, passed: np.ndarray[Any, Any]) -> Vector:
    """The states at these parts of a step, as rows."""
    weights = _constant(passed[:, None] ** np.arange(1, 5) @ (h * _DENSE.T), y)
    return y + weights @ run("reshape", (run("concat", slopes, axis=0),), shape=(7, y.shape[0]))  # type: ignore[no-any-return]


def _norm(x: np.ndarray[Any, Any], control: Control) -> Any:
    """The root mean square of the part where it is largest; of a batch, per example."""
    squares = x * x
    if control.parts is None:
        return np.sqrt(squares.mean(axis=-1))
    starts = np.cumsum((0, *control.parts[:-1]))
    return np.sqrt((np.add.reduceat(squares, starts, axis=-1) / control.parts).max(axis=-1))


def _error(slopes: list[Any], h: float, y: Any, after: Any, control: Control) -> float:
    """The estimated error of a step as a multiple of what is allowed; of a batch, of the worst example."""
    error = sum([weight * k for weight, k in zip(_ERROR, slopes, strict=True) if weight])
    allowed = control.atol + control.rtol * np.maximum(np.abs(y), np.abs(after))
    return float(np.max(_norm(h * error / allowed, control), initial=0.0))


def _first_step(f: Slope, y: Vector, k: Vector, begin: float, end: float, control: Control) -> float:
    """The first step; Hairer, Norsett, Wanner (1993), page 169."""
    y, k = y.detach(), k.detach()
    sign = math.copysign(1.0, end - begin)
    longest = min(abs(end - begin), control.hmax)
    if not longest:
        return 0.0
    allowed = control.atol + control.rtol * np.abs(_values(y))
    size, speed = _norm(_values(y) / allowed, control), _norm(_values(k) / allowed, control)
    small = (size < 1e-5) | (speed < 1e-5)
    guess = float(np.min(np.where(small, 1e-6, 0.01 * size / np.where(small, 1.0, speed)), initial=longest))
    other = f(y + sign * guess * k, _constant(begin + sign * guess, y))
    change = _norm((_values(other) - _values(k)) / allowed, control) / guess
    if not np.isfinite(change).all():
        return sign * guess
    fastest = float(np.max(np.maximum(speed, change), initial=0.0))
    step = max(1e-6, guess * 1e-3) if fastest <= 1e-15 else (0.01 / fastest) ** 0.2
    return sign * min(100 * guess, step, longest)


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

        return [_integrated(f, y, t, self.control)]

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
            cotangent = z[n : 2 * n] + g[i - 1]
            total = [z[2 * n :]] if weights else []
        times.append(-vecdot(self.f(y0, t[0], theta), cotangent - g[0]))
        return [cotangent, stack(times[::-1]), *with_floats(theta, weights.unravel(total[0]) if weights else floats)]

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
