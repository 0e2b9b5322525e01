"""Backends that look on: `Checked` stops where a result goes wrong, `Profiled` counts and times.

Both hand every primitive to the inner backend as it is, and their arrays are the inner backend's own.
"""

from __future__ import annotations

import collections
import contextlib
import itertools
import math
import os
import threading
import time
import weakref
from collections.abc import Callable, Sequence
from typing import Any, ClassVar, NamedTuple, TypeVar

import numpy as np

from adjoint import errors
from adjoint.backend import Array, Decorator, Implementation, LeafBackend, in_backward
from adjoint.dtypes import INEXACT
from adjoint.lines import Frame, Line, stack
from adjoint.locks import lock
from adjoint.primitives import ELEMENTWISE, LINALG, REDUCTION, Primitive, Shape, Spec, result_spec
from adjoint.rules import RECORDS
from adjoint.variables import J

T = TypeVar("T")


class _Observed(Decorator[J]):
    """What observers share: they wrap nothing."""

    observes = True

    def wrap(self, value: Array) -> Array:
        return value

    def unwrap(self, array: Array) -> Array:
        return array

    def _specs(self, operands: Sequence[Any]) -> list[Any]:
        """What is known of arrays; Python scalars are themselves."""
        return [Spec(tuple(x.shape), self.inner.dtype_of(x)) if hasattr(x, "shape") else x for x in operands]


def _phase() -> str:
    return "backward" if in_backward.get() else "forward"


# --- checking ------------------------------------------------------------------------------------


_STAY_FINITE = "keep operands where it is finite, with ad.where or ad.clip, or pass finite=False"
_ZERO_TIMES_INFINITY = (
    "a cotangent is 0 there, as of a branch that was not taken, and a slope infinite: ad.apply_where gives each branch "
    "only the elements that take it; with Autodiff(Checked(..., finite=False), strong_zero=True) zero times infinity "
    "is zero, and infinite slopes pass"
)


class Checked(_Observed[J]):
    """Checks the result of every primitive of another backend, and names the first that goes wrong.

    Under `Autodiff(Checked(backend))` it sees values and cotangents. What fails in backward is the cause of a
    BackwardError, which names the primitive that is differentiated and the line of its call.

    Parameters
    ----------
    inner
        The backend that runs the primitives.
    shapes, dtypes
        Results have the shape and the dtype that the table of primitives promises.
    finite
        A primitive is to blame for a nan in its result if no operand has one, and likewise for an infinity.
        Parameters count as operands: the infinities of `ad.full(3, ad.inf)` are meant.

    Raises
    ------
    DeviceError, ArgumentError
        `inner` is no backend; an option is neither True nor False.
    CheckError, NonFiniteError
        From primitives: a result of a wrong shape or dtype; a new nan or infinity.

    Examples
    --------
    >>> import adjoint as ad
    >>> ad.log(ad.tensor([1.0, 0.0], device=ad.Checked(ad.NumPy())))  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    adjoint.errors.NonFiniteError: forward: log(float32 (2,)) gave -inf at (1,), and no operand has inf; ...
    """

    dtypes: bool
    finite: bool
    shapes: bool

    def __init__(self, inner: J, shapes: bool = True, dtypes: bool = True, finite: bool = True) -> None:
        super().__init__(inner)
        options = {"shapes": shapes, "dtypes": dtypes, "finite": finite}
        for name, value in options.items():
            if not isinstance(value, bool):
                raise errors.ArgumentError(f"Checked: {name} is True or False, received {errors.shown(value)}")
        self.shapes, self.dtypes, self.finite = shapes, dtypes, finite
        self.wants_locations = True
        del vars(self)["as_scalar"]  # numbers come as they are, and messages show them

    def configuration(self) -> tuple[Any, ...]:
        return (self.inner, self.shapes, self.dtypes, self.finite)

    def implement(self, primitive: Primitive) -> Implementation:
        # there is no `implement_into`: once its operand is overwritten, nobody can say who is to blame
        run, count = self.inner[primitive], primitive.results
        promises = (self.shapes or self.dtypes) and not primitive.dynamic
        quiet = self.leaf.quiet if self.finite else contextlib.nullcontext

        def checked(*operands: Any, **parameters: Any) -> Any:
            specs = self._specs(operands)
            promised = result_spec(primitive, specs, parameters) if promises else None
            with quiet():
                out = run(*operands, **parameters)
            results = out if isinstance(out, tuple) else (out,)
            if len(results) != count:
                what = f"gave {len(results)} results on {self.inner}, where the primitive promises {count}"
                raise errors.CheckError(_message(primitive, specs, parameters, what))
            for i, result in enumerate(results):
                if fault := self._mismatch(result, promised[i] if promised and count > 1 else promised):
                    raise errors.CheckError(_message(primitive, specs, parameters, fault))
                if self.finite and (fault := self._nonfinite(result, [*operands, *parameters.values()])):
                    raise errors.NonFiniteError(_message(primitive, specs, parameters, fault))
            return out

        return checked

    def _mismatch(self, result: Any, promised: Spec | None) -> str | None:
        """How a result is not what was promised."""
        if not hasattr(result, "shape"):
            return f"gave {result!r} on {self.inner}, which is no array"
        (found,) = self._specs([result])
        if promised and self.shapes and found.shape != tuple(promised.shape):
            return f"gave shape {found.shape} on {self.inner}, where the primitive promises {tuple(promised.shape)}"
        if promised and self.dtypes and found.dtype != promised.dtype:
            return f"gave {found.dtype} on {self.inner}, where the primitive promises {promised.dtype}"
        return None

    def _nonfinite(self, result: Array, inputs: Sequence[Any]) -> str | None:
        """What is said of the first nan or infinity of a result, if no input has one."""
        inner = self.inner
        if inner.dtype_of(result).kind not in INEXACT:
            return None
        finite = inner.isfinite(result)
        if inner.concrete_values(inner.all(finite, axis=tuple(range(len(finite.shape))), keepdims=False)).all():
            return None
        for sort in ("nan", "inf"):
            places = self._places(sort, result)
            if len(places) and not any(len(self._places(sort, x)) for x in inputs):
                at = tuple(places[0].tolist())
                value = f"gave {inner.concrete_values(result)[at]} at {at}, and no operand has {sort}"
                zero = in_backward.get() and any([self._is_zero(x, places[0]) for x in inputs])
                return f"{value}; {_ZERO_TIMES_INFINITY if zero and sort == 'nan' else _STAY_FINITE}"
        return None

    def _is_zero(self, x: Any, place: Any) -> bool:
        """Whether an operand is zero at a place of the result."""
        if isinstance(x, (int, float, complex)):
            return x == 0
        values = self.inner.concrete_values(x)
        return values.ndim == len(place) and bool(values[tuple(place)] == 0)

    def _places(self, sort: str, x: Any) -> Any:
        """The indices of what is nan, or infinite."""
        if isinstance(x, (float, complex, np.inexact)):
            return np.argwhere(getattr(np, f"is{sort}")(x))
        if isinstance(x, np.dtype) or not hasattr(x, "shape") or self.inner.dtype_of(x).kind not in INEXACT:
            return ()
        return np.argwhere(self.inner.concrete_values(getattr(self.inner, f"is{sort}")(x)))


def _message(primitive: Primitive, specs: Sequence[Any], parameters: dict[str, Any], fault: str) -> str:
    """What is wrong, with the phase, the call and the user's line."""
    given = [f"{x.dtype} {x.shape}" if isinstance(x, Spec) else repr(x) for x in specs]
    given += [f"{name}={value!r}" for name, value in parameters.items()]
    return f"{_phase()}: {primitive.name}({', '.join(given)}) {fault}\n  called from {Line()}"


# --- profiling -----------------------------------------------------------------------------------

EVENTS = 50_000  # so many calls are kept for a trace: the last ones
_numbers = itertools.count(1)
_counts: weakref.WeakValueDictionary[int, _Count] = weakref.WeakValueDictionary()


def flops(primitive: Primitive, operands: Sequence[Shape], result: Shape, parameters: dict[str, Any]) -> int:
    """An estimate of a call's floating-point operations, from shapes and parameters: what the record says, or the kind.

    Elementwise: one per element of the result. Reductions: one per element of the largest operand. Products and
    convolutions: a multiplication and an addition per term, also of the products in attention. Fourier transforms:
    5 n log2(n) for n complex numbers, half of it for real ones. Linear algebra: n^3 per n x n matrix. All else: none.

    >>> from adjoint.primitives import TABLE
    >>> flops(TABLE["matmul"], [(2, 3), (3, 5)], (2, 5), {})
    60
    """
    record = primitive.record or RECORDS.get(primitive.name)
    if record is not None and record.operations is not None:
        return round(record.operations(operands, result, parameters))
    if primitive.kind is ELEMENTWISE:
        return math.prod(result)
    if primitive.kind is REDUCTION:
        return max(map(math.prod, operands))
    if primitive.kind is LINALG:
        return math.prod(operands[0]) * math.prod(operands[0][-1:])
    return 0


class _Count:
    """What was counted under a number: calls, nanoseconds, bytes and operations by primitive and phase."""

    def __init__(self) -> None:
        self.lock = lock()
        self.totals: dict[tuple[str, str], tuple[int, int, int, int]] = {}
        self.events: collections.deque[Call] = collections.deque(maxlen=EVENTS)

    def add(self, call: Call) -> None:
        key = call.primitive, call.phase
        with self.lock:
            calls, time, size, work = self.totals.get(key, (0, 0, 0, 0))
            self.totals[key] = (calls + 1, time + call.time, size + call.bytes, work + call.flops)
            self.events.append(call)


class Row(NamedTuple):
    """All calls of one primitive in one phase: how many, and their total time, bytes and operations."""

    primitive: str
    phase: str
    calls: int
    seconds: float
    bytes: int
    flops: int


class Call(NamedTuple):
    """One call: its start and time in nanoseconds, what went in and came out, and the lines of the user's stack."""

    primitive: str
    phase: str
    start: int
    time: int
    thread: int
    specs: tuple[Spec, ...]
    bytes: int
    flops: int
    stack: tuple[Frame, ...]


class Profile:
    """What a Profiled backend counted: `rows`, those with the most time first. `str()` of it is a table."""

    def __init__(self, rows: Sequence[Row]) -> None:
        self.rows: list[Row] = sorted(rows, key=lambda row: -row.seconds)

    def __str__(self) -> str:
        sums = [sum(column) for column in list(zip(*self.rows, strict=True))[2:]] or [0, 0, 0, 0]
        width = max([len(row.primitive) for row in self.rows], default=9) + 2
        lines = [f"{'primitive':<{width}}{'phase':<8}{'calls':>8}{'ms':>12}{'µs per call':>13}{'MB':>11}{'GFLOP/s':>9}"]
        for name, phase, calls, seconds, size, work in [*self.rows, Row("total", "", *sums)]:
            each, rate = seconds / max(calls, 1), f"{work / seconds / 1e9:.2f}" if work and seconds else ""
            times = f"{calls:>8}{seconds * 1e3:>12.3f}{each * 1e6:>13.1f}"
            lines.append(f"{name:<{width}}{phase:<8}{times}{size / 1e6:>11.3f}{rate:>9}".rstrip())
        return "\n".join(lines)

    __repr__ = __str__


class Profiled(_Observed[J]):
    """Counts the primitives of another backend: calls, time, bytes and floating-point operations.

    What runs inside a backward pass is counted as "backward", all else as "forward". Time is that until the call
    returns, which is short on libraries that compute later. Bytes are those of all arrays that go in and come out.
    Operations are estimates, from the primitive's record or kind.

    Parameters
    ----------
    inner
        The backend that runs the primitives.
    number
        Equal numbers count together, whatever they decorate. None is a new number.
    stacks
        Remember with each call which lines of the user's it comes from, for the flame graph that `ad.draw` makes. Then
        a call takes a few microseconds more.

    Raises
    ------
    DeviceError, ArgumentError
        `inner` is no backend; `number` is no natural number; `stacks` is neither True nor False.

    Examples
    --------
    >>> import adjoint as ad
    >>> p = ad.Profiled(ad.NumPy())
    >>> x = ad.ones((2, 3), device=ad.Autodiff(p)).require_grad()
    >>> grads = (x @ x.mT).sum().backward()
    >>> sorted((row.phase, row.calls, row.flops) for row in p.profile().rows if row.primitive == "matmul")
    [('backward', 2, 48), ('forward', 1, 24)]
    """

    many = True
    implied: ClassVar[dict[str, Any]] = {"number": 0}  # a name means the same backend each time

    def __init__(self, inner: J, number: int | None = None, stacks: bool = False) -> None:
        super().__init__(inner)
        if not isinstance(stacks, bool):
            raise errors.ArgumentError(f"Profiled: stacks is True or False, received {errors.shown(stacks)}")
        self.stacks = stacks
        self.number: int = next(_numbers) if number is None else number
        if self.number.__class__ is not int or self.number < 0:
            raise errors.ArgumentError(f"Profiled: number is a natural number or None, received {errors.shown(number)}")
        if not isinstance(inner, LeafBackend):
            del vars(self)["as_scalar"]  # a leaf's form of a number is no array of other backends
        self._count = _counts.setdefault(self.number, _Count())

    def configuration(self) -> tuple[Any, ...]:
        return (self.inner, self.number, self.stacks)

    def implement(self, primitive: Primitive) -> Implementation:
        return self._counted(primitive, self.inner[primitive])

    def implement_into(self, primitive: Primitive) -> Implementation:
        return self._counted(primitive, getattr(self.inner, primitive.name + "_into"))

    def _counted(self, primitive: Primitive, run: Implementation) -> Implementation:
        clock, thread, add = time.perf_counter_ns, threading.get_native_id, self._count.add
        frames = stack if self.stacks else tuple

        def counted(*operands: Any, **parameters: Any) -> Any:
            start = clock()
            out = run(*operands, **parameters)
            spent = clock() - start
            arrays = self._specs([x for x in operands if hasattr(x, "shape")])
            results = self._specs(out if primitive.results > 1 else (out,))
            size = sum([math.prod(x.shape) * x.dtype.itemsize for x in (*arrays, *results)])
            work = flops(primitive, [x.shape for x in arrays], results[0].shape, parameters)
            add(Call(primitive.name, _phase(), start, spent, thread(), (*arrays, *results), size, work, frames()))
            return out

        return counted

    def counted_kernel(self, name: str, run: Callable[..., T], arrays: Sequence[Spec], work: int) -> Callable[..., T]:
        """Machine code, which is counted under a name: the arrays that it reads and writes, and its operations."""
        clock, thread, add = time.perf_counter_ns, threading.get_native_id, self._count.add
        frames = stack if self.stacks else tuple
        specs, size = tuple(arrays), sum([math.prod(x.shape) * x.dtype.itemsize for x in arrays])

        def counted(*given: Any) -> T:
            start = clock()
            out = run(*given)
            add(Call(name, _phase(), start, clock() - start, thread(), specs, size, work, frames()))
            return out

        return counted

    def reset(self) -> None:
        """Count from nothing."""
        with self._count.lock:
            self._count.totals.clear()
            self._count.events.clear()

    def profile(self) -> Profile:
        """What was counted since the start or the last `reset`, by primitive and phase."""
        with self._count.lock:
            totals = list(self._count.totals.items())
        return Profile([Row(*key, calls, ns / 1e9, size, work) for key, (calls, ns, size, work) in totals])

    def calls(self) -> list[Call]:
        """The last calls, at most 50 000, as they came."""
        with self._count.lock:
            return list(self._count.events)

    def trace(self, path: str | os.PathLike[str]) -> None:
        """Write the last calls, at most 50 000, as Chrome trace events, which https://ui.perfetto.dev shows.

        Raises FileError where the file cannot be written, ArgumentTypeError for what is no path.
        """
        import json  # here, so that `import adjoint` need not wait for it

        with self._count.lock:
            events, calls = list(self._count.events), sum([calls for calls, *_ in self._count.totals.values()])
        written: list[dict[str, Any]] = []
        for name, phase, start, spent, thread, specs, size, work, _ in events:
            shapes, dtypes = [x.shape for x in specs], [x.dtype.name for x in specs]
            when = {"ph": "X", "ts": start / 1e3, "dur": spent / 1e3, "pid": os.getpid(), "tid": thread}
            args = {"shapes": shapes, "dtypes": dtypes, "bytes": size, "flops": work}
            written.append({"name": name, "cat": phase, **when, "args": args})
        try:
            with open(os.fspath(path), "w", encoding="utf-8") as file:
                json.dump({"traceEvents": written, "otherData": {"left out": calls - len(events)}}, file)
        except TypeError:
            raise errors.ArgumentTypeError(
                f"trace: expected the path of a file, received {errors.shown(path)}"
            ) from None
        except (OSError, ValueError) as error:
            raise errors.FileError(f"trace: {error}; name a file in a folder that may be written to") from error
