"""Checks for derivatives, a report of what they found, and where a graph came from.

`check_grads` compares analytic with numerical derivatives along random directions, after the test
utilities of HIPS autograd: a wrong rule cannot hide, because each direction mixes all entries.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from functools import partial
from types import TracebackType
from typing import Any, NamedTuple

import numpy as np

from adjoint import dtypes, errors
from adjoint import tree as trees
from adjoint.backend import Backend
from adjoint.decorators import autodiff
from adjoint.decorators.autodiff import Autodiff
from adjoint.decorators.batched import Batch, Batched
from adjoint.decorators.tangent import Dual, Tangent
from adjoint.devices import creating_on, current_level
from adjoint.devices import device as find_device
from adjoint.functions.arguments import as_flag, as_integer, as_positive, check_callable
from adjoint.functions.creation import asarray, from_inner
from adjoint.functions.gradients import backward, require_grad
from adjoint.markup import captioned, table, text
from adjoint.operands import lift_to
from adjoint.renamed import refusing
from adjoint.tensor import Tensor, wrap

__all__ = ["GradsReport", "check_grads", "grads_report", "source_locations"]
globals()["__getattr__"] = refusing(__name__)  # unseen by type checkers, which refuse other names themselves


def __dir__() -> list[str]:
    return __all__


Values = list[np.ndarray[Any, Any]]
_MODES = ("reverse", "forward", "batched")
_HIGHEST = 8  # order: each is checked in two ways of the one before


class source_locations:
    """Record the user's source line with every primitive: a call turns it on, `with` for a while.

    Errors in backward and `ad.why` then name lines. It slows every primitive down.

    >>> import adjoint as ad
    >>> with ad.testing.source_locations():
    ...     x = ad.tensor([1.0]).require_grad()
    ...     y = x.detach() * 2
    >>> ad.why(x, y).split(",")[0]
    "cut at 'detach'"
    """

    def __init__(self, on: bool = True) -> None:
        self._before = _trace(as_flag(on, "source_locations", "on"))

    def __enter__(self) -> source_locations:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        _trace(self._before)


def _trace(on: bool) -> bool:
    """Turn it on or off, also for the transforms that are running; returns what was before."""
    before, level = autodiff.record_locations(on), current_level()
    for running in () if level is None else level.chain():
        running.forget()
    return before


def check_grads(
    f: Callable[..., Any],
    args: Any,
    *,
    order: int = 2,
    modes: Sequence[str] = ("reverse", "forward"),
    rtol: float = 1e-5,
    atol: float = 1e-6,
    seed: int = 0,
    device: Backend | str | None = None,
) -> None:
    """Check the derivatives of `f` at `args` against central differences, up to an order.

    Parameters
    ----------
    f
        A function of tensors that returns a tensor, or a pytree of them.
    args
        A tuple or list of the arguments: arrays, tensors or pytrees of them, or a single one. Derivatives are
        taken with respect to all that are float64 or complex128, and other things are passed as they are.
    order
        1 checks first derivatives; 2 those of a random directional derivative as well, and so on.
    modes
        "reverse" pulls back, "forward" pushes forward; with both, second derivatives are taken in all four ways.
        "batched" compares values and gradients of two examples at once with those of each: functions that decide by
        the values of tensors cannot be batched.
    rtol, atol
        How far analytic and numerical derivatives along a random direction may differ: `atol` is relative to
        the largest entry involved.
    seed
        Of the random directions.
    device
        The level to differentiate with, or its name, `Autodiff(NumPy())` if None; higher orders stack more of
        it. Of another backend, the `Autodiff` over it.

    Raises
    ------
    CheckError
        They differ: the message has the order, the mode, both values, and the entry that is worst. Or f returns
        no tensors.
    DtypeError
        No float64 or complex128 values to differentiate.

    Examples
    --------
    >>> import adjoint as ad
    >>> import numpy as np
    >>> ad.testing.check_grads(ad.sin, (np.array([0.5, 1.0]),))
    """
    checked = _Checked("check_grads", f, args, order, modes, (rtol, atol), seed, device)
    checked.run(partial(_compare, tolerances=checked.tolerances))


Function = Callable[[Sequence[Tensor[Any]]], list[Tensor[Any]]]


class Derivative(NamedTuple):
    """A derivative along a direction, and what it is compared with."""

    path: tuple[str, ...]  # the modes that it was taken in, the first one first
    function: Callable[[Values], float]
    point: Values
    direction: Values
    value: float
    scale: float  # the largest entry involved
    entries: Values | None  # of a gradient

    def difference(self, h: float) -> float:
        return _difference(self.function, self.point, self.direction, h)

    @property
    def way(self) -> str:
        return f"order {len(self.path)}, {self.path[-1]}"


Compare = Callable[[Derivative], None]


class _Checked:
    """A function, the point where it is checked, and how."""

    def __init__(
        self,
        name: str,
        f: Callable[..., Any],
        args: Any,
        order: int,
        modes: Sequence[str],
        tolerances: tuple[float, float],
        seed: int,
        device: Backend | str | None,
    ) -> None:
        from adjoint.backends.numpy import NumPy

        check_callable(name, f)
        for which, tolerance in zip(("rtol", "atol"), tolerances, strict=True):
            as_positive(tolerance, name, which, zero=True)
        if not 1 <= as_integer(order, name, "order") <= _HIGHEST:
            raise errors.ArgumentError(f"{name}: the order is from 1 to {_HIGHEST}, received {order}")
        if (
            not isinstance(modes, (tuple, list))
            or not modes
            or not all([isinstance(m, str) and m in _MODES for m in modes])
        ):
            raise errors.ArgumentError(f"{name}: modes are among {_MODES}, received {errors.shown(modes)}")
        place = NumPy() if device is None else find_device(device)
        self.name, self.f, self.order, self.modes, self.tolerances = name, f, order, modes, tolerances
        self.level = place if isinstance(place, Autodiff) else Autodiff(place)
        tuple_of_args: Any = tuple(args) if isinstance(args, (tuple, list)) else (args,)
        self.leaves, self.tree = trees.flatten(tuple_of_args)
        self.at = [i for i, leaf in enumerate(self.leaves) if _differentiable(leaf)]
        if not self.at:
            raise errors.DtypeError(f"{name}: expected float64 or complex128 arrays among the arguments")
        self.point: Values = [np.array(_numpy(self.leaves[i])) for i in self.at]
        self.rng = np.random.default_rng(as_integer(seed, name, "seed", 0))

    def of(self, tensors: Sequence[Tensor[Any]]) -> list[Tensor[Any]]:
        """The results that have derivatives."""
        filled = list(self.leaves)
        for i, tensor in zip(self.at, tensors, strict=True):
            filled[i] = tensor
        with creating_on(tensors[0].device):  # constants that f makes are of the level it is run on
            out = self.f(*trees.unflatten(self.tree, filled))
        if not (flat := trees.flatten(out)[0]):
            raise errors.CheckError(f"{self.name}: f returns tensors; received {errors.shown(out)}")
        for result in flat:
            if not isinstance(result, Tensor):
                raise errors.CheckError(f"{self.name}: f returns tensors; received {type(result).__name__}")
        return [x for x in flat if x.dtype.kind in dtypes.INEXACT]

    def run(self, compare: Compare) -> None:
        """Hand each derivative along a direction to `compare`; raise CheckError for what cannot be compared."""
        derivatives = tuple(mode for mode in self.modes if mode != "batched")
        if derivatives:
            _check(self.of, self.point, self.order, self.level, derivatives, self.rng, compare, ())
        if "batched" in self.modes:
            _check_batched(self.of, self.point, self.level, self.rng)


def _differentiable(leaf: Any) -> bool:
    return isinstance(leaf, (Tensor, np.ndarray, np.generic, float, complex)) and np.asarray(_numpy(leaf)).dtype in (
        np.float64,
        np.complex128,
    )


def _numpy(leaf: Any) -> Any:
    if isinstance(leaf, Tensor):
        return leaf.numpy()
    dtypes.refuse_masked(leaf, "check_grads")
    return leaf


def _check(
    f: Function,
    point: Values,
    order: int,
    level: Autodiff[Any],
    modes: tuple[str, ...],
    rng: np.random.Generator,
    compare: Compare,
    path: tuple[str, ...],
) -> None:
    """Check a random projection of f along a random direction, then the derivatives that f has as functions."""
    base, depth = level.inner, len(path) + 1
    inputs = [asarray(x, device=base) for x in point]
    weights = [_random(rng, x.numpy()) for x in f(inputs)]
    direction = [_random(rng, x) for x in point]

    def scalar(values: Values) -> float:
        outs = f([asarray(v, device=base) for v in values])
        return float(sum(_real_dot(w, o.numpy()) for w, o in zip(weights, outs, strict=True)))

    higher: list[tuple[Function, str]] = []
    if "reverse" in modes:
        gradient = _pulled(f, weights, level, depth)
        found = gradient(inputs)
        for g, x in zip(found, point, strict=True):
            if g.shape != x.shape or g.dtype != x.dtype:
                raise errors.CheckError(
                    f"order {depth}: the gradient is {g.dtype} of shape {g.shape}, the argument {x.dtype} of {x.shape}"
                )
        entries = [g.numpy() for g in found]
        analytic = float(sum(_real_dot(g, d) for g, d in zip(entries, direction, strict=True)))
        scale = max([float(np.max(np.abs(g * d), initial=0.0)) for g, d in zip(entries, direction, strict=True)])
        compare(Derivative((*path, "reverse"), scalar, point, direction, analytic, scale, entries))
        higher.append((gradient, "reverse"))
    if "forward" in modes:
        pushed = _pushed(f, direction)
        moved = [x.numpy() for x in pushed(inputs)]
        for t, w in zip(moved, weights, strict=True):
            if t.shape != w.shape or t.dtype != w.dtype:
                raise errors.CheckError(
                    f"order {depth}: the tangent is {t.dtype} of shape {t.shape}, the result {w.dtype} of {w.shape}"
                )
        analytic = float(sum(_real_dot(w, t) for w, t in zip(weights, moved, strict=True)))
        scale = max([0.0, *[float(np.max(np.abs(t * w), initial=0.0)) for t, w in zip(moved, weights, strict=True)]])
        compare(Derivative((*path, "forward"), scalar, point, direction, analytic, scale, None))
        higher.append((pushed, "forward"))
    if order > 1:
        for derivative, mode in higher:
            _check(derivative, point, order - 1, level, modes, rng, compare, (*path, mode))


def _pulled(f: Function, weights: Values, level: Autodiff[Any], depth: int) -> Function:
    """The gradient of a projection of f, on levels over the backend of its arguments."""

    def gradient(tensors: Sequence[Tensor[Any]]) -> list[Tensor[Any]]:
        leaves = [require_grad(from_inner(x, level.over(x.device))) for x in tensors]
        outs = f(leaves)
        total: list[Tensor[Any] | None] = [None] * len(leaves)
        for out, weight in zip(outs, weights, strict=True):
            if not (
                isinstance(out.device, Autodiff) and out.device is leaves[0].device and out._array.node is not None
            ):
                continue  # a result that depends on no input: its derivative is zero
            try:
                grads = backward(out, asarray(weight, device=out.device.inner), retain_graph=True)
            except errors.BackwardError as error:
                raise errors.CheckError(f"order {depth}: {error}") from error
            for i, x in enumerate(leaves):
                g = grads.get(x)
                if g is not None:
                    known = total[i]
                    total[i] = g if known is None else known + g
        zero = [_zeros_like(x) for x in tensors]
        return [z if g is None else g for g, z in zip(total, zero, strict=True)]

    return gradient


def _pushed(f: Function, direction: Values) -> Function:
    """The derivative of f along a direction, on a level over the backend of its arguments."""

    def derivative(tensors: Sequence[Tensor[Any]]) -> list[Tensor[Any]]:
        base = tensors[0].device
        level: Tangent[Any] = Tangent.fresh(base)
        moved = [
            wrap(Dual(x._array, lift_to(asarray(d, device=base), base)), level)
            for x, d in zip(tensors, direction, strict=True)
        ]
        results = []
        for out in f(moved):
            array = lift_to(out, level)
            results.append(_zeros_like(wrap(array.value, base)) if array.tangent is None else wrap(array.tangent, base))
        return results

    return derivative


def _check_batched(f: Function, point: Values, level: Autodiff[Any], rng: np.random.Generator) -> None:
    """Compare two examples together with each alone: values, and gradients of a projection."""
    base = level.inner
    examples = [point, [x * (1 + 1e-3 * rng.uniform(-1, 1, x.shape)) for x in point]]
    weights = [_random(rng, x.numpy()) for x in f([asarray(x, device=base) for x in point])]
    batch: Batched[Any] = Batched.fresh(base, None, "shared")  # as examples alone draw
    together = [
        wrap(Batch(asarray(np.stack(pair), device=base)._array, True), batch)
        for pair in zip(*[[x.astype(y.dtype) for x, y in zip(e, point, strict=True)] for e in examples], strict=True)
    ]
    for what, g in (("values", f), ("gradients", _pulled(f, weights, level, 1))):
        found = [lift_to(x, batch) for x in g(together)]
        for n, example in enumerate(examples):
            alone = g([asarray(x, device=base) for x in example])
            for k, (out, expected) in enumerate(zip(found, alone, strict=True)):
                values = base.to_numpy(out.value)
                mine, wanted = values[n] if out.batched else values, expected.numpy()
                if mine.shape != wanted.shape or mine.dtype != wanted.dtype:
                    raise errors.CheckError(
                        f"batched {what} {k}: {mine.dtype} of shape {mine.shape} for each example, alone "
                        f"{wanted.dtype} of {wanted.shape}"
                    )
                if not np.allclose(mine, wanted, rtol=1e-9, atol=1e-11, equal_nan=True):
                    worst = np.unravel_index(np.argmax(np.abs(mine - wanted)), mine.shape)
                    raise errors.CheckError(
                        f"batched {what} {k} of example {n} at {tuple(map(int, worst))}: {mine[worst]}, alone "
                        f"{wanted[worst]}"
                    )


def _zeros_like(x: Tensor[Any]) -> Tensor[Any]:
    return wrap(x.device.full(shape=x.shape, value=0, dtype=x.dtype), x.device)


def _random(rng: np.random.Generator, like: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    values = rng.standard_normal(like.shape)
    if like.dtype.kind == "c":
        return np.asarray(values + 1j * rng.standard_normal(like.shape))
    return np.asarray(values, dtype=like.dtype)


def _real_dot(x: np.ndarray[Any, Any], y: np.ndarray[Any, Any]) -> float:
    """The real inner product of C^n: for a real loss, the gradient's with a step is its change."""
    return float(np.sum(np.real(np.conj(x) * y)))


_STEPS = (1e-3, 1e-4, 1e-5, 1e-6)


def _allowed(derivative: Derivative, numeric: float, tolerances: tuple[float, float]) -> float:
    rtol, atol = tolerances
    return rtol * abs(numeric) + atol * max(1.0, derivative.scale)


def _verdict(derivative: Derivative, tolerances: tuple[float, float]) -> tuple[bool, float]:
    """Whether differences give the derivative, and what they give."""

    def close(value: float, numeric: float) -> bool:
        return abs(value - numeric) <= _allowed(derivative, numeric, tolerances)

    estimates: list[float] = []
    for h in _STEPS:
        estimates.append(derivative.difference(h))
        if len(estimates) > 1 and close(derivative.value, estimates[-2]) and close(estimates[-1], estimates[-2]):
            return True, estimates[-2]  # two steps say so: further ones cost more than they tell
    numeric = _best(estimates)
    return close(derivative.value, numeric), numeric


def _compare(derivative: Derivative, tolerances: tuple[float, float]) -> None:
    """Compare a derivative along a direction of all arguments together with differences."""
    agrees, numeric = _verdict(derivative, tolerances)
    if not agrees:
        raise errors.CheckError(
            f"{derivative.way}: along a random direction the derivative is {derivative.value:.10g}, "
            f"differences give {numeric:.10g}" + _worst(derivative)
        )


def _difference(scalar: Callable[[Values], float], point: Values, direction: Values, h: float) -> float:
    """A central difference of fourth order."""

    def at(h: float) -> float:
        return scalar([x + h * d for x, d in zip(point, direction, strict=True)])

    return (8 * (at(h) - at(-h)) - (at(2 * h) - at(-2 * h))) / (12 * h)


def _best(estimates: list[float]) -> float:
    """Of differences at several steps, the first of the two that agree best."""
    gaps = [abs(a - b) for a, b in itertools.pairwise(estimates)]
    return estimates[int(np.argmin(gaps)) if not np.isnan(gaps).all() else 0]


def _worst(derivative: Derivative) -> str:
    """Where a gradient and differences differ most, entry by entry."""
    if derivative.entries is None:
        return ""
    scalar, point, worst = derivative.function, derivative.point, (-1.0, "")
    for n, (x, g) in enumerate(zip(point, derivative.entries, strict=True)):
        for place in np.ndindex(x.shape):
            for unit in (1.0, 1j) if x.dtype.kind == "c" else (1.0,):
                direction = [np.zeros_like(y) for y in point]
                direction[n][place] = unit
                numeric = _best([_difference(scalar, point, direction, h) for h in _STEPS])
                analytic = _real_dot(np.asarray(g[place]), np.asarray(unit))
                gap = abs(analytic - numeric) if np.isfinite(analytic - numeric) else np.inf
                if gap > worst[0]:
                    part = ", imaginary part" if unit == 1j else ""
                    values = f"gradient {analytic:.10g}, differences {numeric:.10g}"
                    worst = (gap, f"\n  worst: argument {n} at {place}{part}: {values}")
    return worst[1]


# --- a report --------------------------------------------------------------------------------------

_SEEN_STEPS = tuple([10.0 ** (-k / 2) for k in range(2, 15)])  # from 0.1 to 1e-7


class Comparison(NamedTuple):
    """A row of a report: a derivative along a random direction, and what differences give."""

    path: tuple[str, ...]
    derivative: float
    differences: float
    allowed: float
    agrees: bool
    errors: tuple[tuple[float, float], ...]  # steps of differences, and how far off these are
    worst: str

    @property
    def cells(self) -> tuple[str, ...]:
        error = abs(self.derivative - self.differences)
        return (
            *(str(len(self.path)), " of ".join(reversed(self.path))),
            *(f"{self.derivative:.10g}", f"{self.differences:.10g}", f"{error:.1e}", f"{self.allowed:.1e}"),
            "yes" if self.agrees else "NO",
        )


class GradsReport:
    """What `grads_report` found: `print` and notebooks show it as a table, `ad.draw(report)` makes a page of it.

    `ok` is true where `check_grads` would raise nothing. `comparisons` has a row for each derivative that was compared,
    `problems` the texts of what could not be, such as gradients of a wrong shape.
    """

    arguments: str
    name: str

    HEAD = ("order", "way", "derivative", "differences", "error", "allowed", "agrees")

    def __init__(self, name: str, arguments: str) -> None:
        self.name, self.arguments = name, arguments
        self.comparisons: list[Comparison] = []
        self.problems: list[str] = []

    @property
    def ok(self) -> bool:
        return not self.problems and all([row.agrees for row in self.comparisons])

    @property
    def title(self) -> str:
        return f"Derivatives of {self.name}: {'as differences give them' if self.ok else 'WRONG'}"

    @property
    def notes(self) -> list[str]:
        """What is to be said besides the numbers: problems, and the worst entries of gradients that are wrong."""
        return self.problems + [
            f"order {len(row.path)}, {row.path[-1]}: {row.worst}" for row in self.comparisons if row.worst
        ]

    def __repr__(self) -> str:
        rows = [self.HEAD, *[row.cells for row in self.comparisons]]
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        lines = ["  ".join([cell.ljust(w) for cell, w in zip(row, widths, strict=True)]).rstrip() for row in rows]
        return "\n".join([self.title, f"at {self.arguments}", *lines, *self.notes])

    def _repr_html_(self) -> str:
        body = table(self.HEAD, [row.cells for row in self.comparisons])
        return captioned(f"{self.title}; at {self.arguments}", body + "".join(map(text, self.notes)))

    def _add(self, derivative: Derivative, tolerances: tuple[float, float]) -> None:
        agrees, numeric = _verdict(derivative, tolerances)
        seen = [(h, abs(derivative.difference(h) - derivative.value)) for h in _SEEN_STEPS]
        worst = "" if agrees else _worst(derivative).strip()
        allowed = _allowed(derivative, numeric, tolerances)
        self.comparisons.append(
            Comparison(derivative.path, derivative.value, numeric, allowed, agrees, tuple(seen), worst)
        )


def grads_report(
    f: Callable[..., Any],
    args: Any,
    *,
    order: int = 2,
    modes: Sequence[str] = ("reverse", "forward"),
    rtol: float = 1e-5,
    atol: float = 1e-6,
    seed: int = 0,
    device: Backend | str | None = None,
) -> GradsReport:
    """Check derivatives as `check_grads` does, and report all that was compared, instead of raising at the first error.

    The parameters are those of `check_grads`. For each order and mode the report has the derivative along a random
    direction, what differences give, how far these are apart and may be, and the worst entry of a wrong gradient. What
    "batched" finds is among its problems.
    `ad.draw(report)` is a page with these, and a picture of the error by the step of the differences: a right
    derivative falls with the fourth power of the step, down to rounding; a wrong one stays where it is.

    Raises
    ------
    DtypeError, ArgumentError
        As `check_grads`: no values to differentiate; parameters out of range.

    Examples
    --------
    >>> import adjoint as ad
    >>> import numpy as np
    >>> report = ad.testing.grads_report(ad.sin, (np.array([0.5, 1.0]),), order=1)
    >>> report.ok, len(report.comparisons)
    (True, 2)
    >>> print(str(report).splitlines()[0])
    Derivatives of sin: as differences give them
    >>> ad.draw(report)
    <drawing of 2 comparisons; save('graph.html') writes it>
    """
    checked = _Checked("grads_report", f, args, order, modes, (rtol, atol), seed, device)
    arguments = ", ".join([f"{x.dtype} of shape {x.shape}" for x in checked.point])
    report = GradsReport(getattr(f, "__name__", type(f).__name__), arguments)
    try:
        with np.errstate(all="ignore"):  # of infinities and nans the report tells
            checked.run(partial(report._add, tolerances=checked.tolerances))
    except errors.CheckError as error:
        report.problems.append(str(error))
    return report
