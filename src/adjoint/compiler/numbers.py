"""Python's numbers that are traced, so that other values need no other recording.

An integer becomes a tensor. A float becomes a symbol, since it takes the dtype of each tensor that it meets.
"""

from __future__ import annotations

import contextlib
import math
import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from adjoint.compiler.graph import Equation, Graph, Key, Name, Value
from adjoint.compiler.sizes import Size, Symbols, is_size
from adjoint.lines import Line
from adjoint.primitives import DType

LIMIT = 2**31  # integers beyond are recorded as they are, so that what follows from others is known to fit

Range = tuple[float, float]  # the least and the largest value, both exact
_INT64 = (-(2**63), 2**63 - 1)


def can_vary(x: Any) -> bool:
    """Whether a number can be traced: 0 is none of those, since dividing by it is an error."""
    return x.__class__ is float or (x.__class__ is int and 0 < abs(x) < LIMIT)


def range_of(x: int) -> Range:
    """The integers that are traced as this one is: those of its sign."""
    return (1, LIMIT - 1) if x > 0 else (1 - LIMIT, -1)


def follow_from(
    graph: Graph, numbers: Mapping[Name, Range], widened: set[Value], floats: Floats | None = None
) -> set[Name] | None:
    """What follows from these integers and floats alone; None where a tensor is less exact than Python's numbers are.

    An integer tensor divided by another is a float of the default dtype, where Python's are 64 bits wide. That counts
    if it meets wider ones. Integers of Python's do not widen narrow ones that they meet (`widened` has constants that
    were), have as many digits as they need, and are not divided by 0.
    """
    found = set[Name](numbers)
    return _follow(graph, found, set() if floats is None else floats.arrays, {**numbers}, widened)


def _follow(
    graph: Graph, found: set[Name], beside: set[Name], ranges: dict[Name, Range], constants: set[Value]
) -> set[Name] | None:
    widened = {*constants}
    for e in graph.equations:
        reads = e.reads()
        touched = [x for x in reads if x in found]
        if touched and (e.name == "host" or (e.graphs and not _follow_inside(e, found, beside, ranges, widened))):
            return None
        if e.name == "astype" and isinstance(e.operands[0], Value):
            x, out = e.operands[0], e.results[0]
            assert isinstance(out, Value)
            if touched and x.dtype.kind in "fc" and out.dtype.itemsize > x.dtype.itemsize:
                return None
            if not touched and is_widened(x.dtype, out.dtype):
                widened.add(out)
        elif touched and not e.graphs and not widened.isdisjoint([x for x in e.operands if isinstance(x, Value)]):
            return None
        if (
            touched
            and not e.graphs
            and len(touched) == len([x for x in reads if x not in beside])
            and not any(isinstance(x, Value) and x.const is not None and x.shape for x in e.operands)
        ):
            if e.results and not _fits(e, ranges):
                return None
            found.update(e.results)
    return found


def is_widened(old: DType, new: DType) -> bool:
    """Whether integers become what they do where they meet an array of int64, and would not beside a Python integer."""
    if old.kind not in "iu":
        return False
    return new.itemsize > old.itemsize if new.kind in "iu" else (old.kind == "u" and old.itemsize == 8)


def _fits(e: Equation, ranges: dict[Name, Range]) -> bool:
    """Whether Python gives the same for all integers in these ranges; notes the range of the result."""
    out = e.results[0]
    if not isinstance(out, Value) or out.dtype.kind == "b":
        return True
    given = [_range(x, ranges) for x in e.operands[e.name == "where" :]]
    if e.name in ("divide", "floor_divide", "remainder"):
        by = given[1]  # ranges of floats say too little: what is 0 at some place in them is so for hardly any integer
        if by is not None and isinstance(by[0], int) and by[0] <= 0 <= by[1]:
            return False
    known = [x for x in given if x is not None]
    found = _RANGES[e.name](*known) if e.name in _RANGES and len(known) == len(given) else None
    if out.dtype.kind in "iu":
        if found is None:  # it is no operator's
            found = _INT64
        elif found[0] < _INT64[0] or found[1] > _INT64[1]:
            return False
    if found is not None and math.isfinite(found[0]) and math.isfinite(found[1]):
        ranges[out] = found
    return True


def _range(x: Any, ranges: dict[Name, Range]) -> Range | None:
    """The range of an operand, if all its values are known to be in one."""
    if isinstance(x, Value):
        if not isinstance(x.const, (np.ndarray, np.generic)) or not x.const.size or x.dtype.kind == "c":
            return ranges.get(x)
        return x.const.min().item(), x.const.max().item()
    if isinstance(x, np.generic):
        x = x.item()
    return (x, x) if isinstance(x, (int, float)) else None


def _corners(f: Callable[[Any, Any], Any]) -> Callable[[Range, Range], Range]:
    """Of functions that are largest and least at ends of ranges."""

    def found(x: Range, y: Range) -> Range:
        values = [f(a, b) for a in x for b in y]
        return min(values), max(values)

    return found


def _divided(f: Callable[[Any, Any], Any]) -> Callable[[Range, Range], Range]:
    return lambda x, y: (-math.inf, math.inf) if y[0] <= 0 <= y[1] else _corners(f)(x, y)


def _joined(*xs: Range) -> Range:
    return min([x[0] for x in xs]), max([x[1] for x in xs])


def _power(x: Range, y: Range) -> Range:
    if x[0] > 0 and isinstance(x[0], float):
        with contextlib.suppress(OverflowError):
            return _corners(operator.pow)(x, y)
    if y[0] != y[1] or not isinstance(y[0], int) or not 0 <= y[0] <= 64:
        return -math.inf, math.inf
    most = max(map(abs, x)) ** y[0]
    return -most, most


def _bits(*xs: Range) -> Range:
    """Of functions of the bits: no more of them than operands have."""
    most = 2 ** max(int(abs(a)).bit_length() for x in xs for a in x)
    return -most, most - 1


def _shifted(x: Range, y: Range) -> Range:
    return _corners(lambda a, n: a << n)(x, y) if y[0] >= 0 and y[1] < 64 else (-math.inf, math.inf)


def _symmetric(x: Range) -> Range:
    most = max(map(abs, x))
    return -most, most


_RANGES: dict[str, Callable[..., Range]] = {
    "add": lambda x, y: (x[0] + y[0], x[1] + y[1]),
    "subtract": lambda x, y: (x[0] - y[1], x[1] - y[0]),
    "multiply": _corners(operator.mul),
    "divide": _divided(operator.truediv),
    "floor_divide": _divided(operator.floordiv),
    "remainder": lambda x, y: _symmetric(y),
    "pow": _power,
    "negative": lambda x: (-x[1], -x[0]),
    "abs": _symmetric,
    "where": _joined,
    "maximum": _joined,
    "minimum": _joined,
    "bitwise_and": _bits,
    "bitwise_or": _bits,
    "bitwise_xor": _bits,
    "bitwise_invert": _bits,
    "bitwise_left_shift": _shifted,
    "bitwise_right_shift": lambda x, y: _joined(x, (0, 0)),
    "astype": lambda x: x,
    "broadcast_to": lambda x: x,
    "reshape": lambda x: x,
}


def _follow_inside(
    e: Equation, found: set[Name], beside: set[Name], ranges: dict[Name, Range], widened: set[Value]
) -> bool:
    """Whether tensors are as exact in the graphs of a loop or a choice, from which none of these numbers comes back.

    The numbers of a loop inside count as well: they meet those from outside.
    """
    given = e.operands[1:] if e.name == "branch" else e.operands
    stays = e.parameters.get("count", 0) + e.parameters.get("rows", 0)
    if any(x in found for x in given[:stays] if isinstance(x, (Value, Key))):
        return False
    for g in e.graphs:
        pairs = list(zip(g.inputs, given, strict=True))
        known = {inner for inner, x in pairs if x in found or (isinstance(x, Value) and x.const is not None)}
        same = pairs[e.parameters.get("count", 0) :]  # what is carried is not what it was at first
        inner_ranges = {inner: r for inner, x in same if (r := _range(x, ranges)) is not None}
        inner_widened = {*widened, *[y for y, x in pairs if x in widened and isinstance(y, Value)]}
        inside = _follow(g, known, {inner for inner, x in pairs if x in beside}, inner_ranges, inner_widened)
        if inside is None or not inside.isdisjoint(g.outputs):
            return False
    return True


def bounds_loops(graph: Graph, numbers: Sequence[Name]) -> bool:
    """Whether a loop inside carries what follows from these integers alone: its end, as Python's numbers are."""
    found: set[Name] = set(numbers)
    for e in graph.equations:
        reads = e.reads()
        if e.name == "while" and any(x in found for x in e.operands[: e.parameters["count"]]):
            return True
        given = e.operands[1:] if e.name == "branch" else e.operands
        for g in e.graphs:
            if bounds_loops(g, [inner for inner, x in zip(g.inputs, given, strict=True) if x in found]):
                return True
        if reads and not e.graphs and found.issuperset(reads):
            found.update(e.results)
    return False


class Float(float):
    """The class of floats that are symbols: what is kept or quick for floats is not for them."""


class Floats(Symbols):
    """The floats of one recording: each an input of the graph, of which tensors are made where it meets one."""

    graph: Graph
    inputs: list[Value]

    kinds = {float: Float}

    def __init__(self, graph: Graph) -> None:
        super().__init__()
        self.graph, self.inputs = graph, list[Value]()
        self.asked: Line | None = None  # where anything but arithmetic was done with them
        self._made: dict[tuple[str, DType], Value] = {}

    def add(self, x: float) -> tuple[Value, Size]:
        name, value = f"f{len(self.inputs)}", Value((), np.dtype(np.float64))
        self.values[name] = x
        self.inputs.append(value)
        return value, Size(x, None, name, self)

    def array(self, x: Size, dtype: DType) -> Value:
        """What has been computed of floats by Python, as an array without axes."""
        given = self.inputs[[*self.values].index(x.text)] if x.text in self.values else None
        if given is not None and given.dtype is dtype:
            return given
        found = self._made.get((x.text, dtype))
        if found is None:
            found = self._made[x.text, dtype] = Value((), dtype)
            if given is not None:
                equation = Equation("astype", [given], {"dtype": dtype}, [found])
            else:
                equation = Equation("host", self.inputs, {"function": _Computed(self.function(x.text), dtype)}, [found])
            self.graph.equations.append(equation)
        return found

    @property
    def arrays(self) -> set[Name]:
        """What was made of them."""
        return {*self.inputs, *self._made.values()}

    def answer(self, text: str, holds: bool) -> bool:
        if self.asked is None:
            self.asked = Line()
        return holds


class _Computed:
    """Arithmetic with Python's floats, as a function of arrays."""

    def __init__(self, run: Any, dtype: DType) -> None:
        self.run, self.dtype = run, dtype

    def __call__(self, *arrays: Any) -> list[Any]:
        return [np.asarray(self.run(*[x.item() for x in arrays]), self.dtype)]


def is_float(x: Any) -> bool:
    return is_size(x) and isinstance(x.owner, Floats)
