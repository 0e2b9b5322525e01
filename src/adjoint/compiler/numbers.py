"""Python's numbers that are traced, so that other values need no other recording.

An integer becomes a tensor. A float becomes a symbol, since it takes the dtype of each tensor that it meets.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from adjoint.compiler.graph import Equation, Graph, Key, Name, Value
from adjoint.compiler.sizes import Size, Symbols, is_size
from adjoint.lines import Line
from adjoint.primitives import DType


def follow_from(graph: Graph, numbers: Sequence[Name], floats: Floats | None = None) -> set[Name] | None:
    """What follows from these integers and floats alone; None where a tensor is less exact than Python's numbers are.

    An integer tensor divided by another is a float of the default dtype, where Python's are 64 bits wide. That counts
    if it meets wider ones. Integers of Python's do not widen narrow ones that they meet.
    """
    return _follow(graph, set(numbers), set() if floats is None else floats.arrays)


def _follow(graph: Graph, found: set[Name], beside: set[Name]) -> set[Name] | None:
    widened: set[Name] = set()
    for e in graph.equations:
        reads = e.reads()
        touched = [x for x in reads if x in found]
        if touched and (e.name == "host" or (e.graphs and not _follow_inside(e, found, beside))):
            return None
        if e.name == "astype" and isinstance(e.operands[0], Value):
            x, out = e.operands[0], e.results[0]
            assert isinstance(out, Value)
            if touched and x.dtype.kind in "fc" and out.dtype.itemsize > x.dtype.itemsize:
                return None
            if (
                not touched
                and x.dtype.kind in "iu"
                and out.dtype.kind in "iu"
                and out.dtype.itemsize > x.dtype.itemsize
            ):
                widened.add(out)
        elif touched and not e.graphs and not widened.isdisjoint(reads):
            return None
        if (
            touched
            and not e.graphs
            and len(touched) == len([x for x in reads if x not in beside])
            and not any(isinstance(x, Value) and x.const is not None and x.shape for x in e.operands)
        ):
            found.update(e.results)
    return found


def _follow_inside(e: Equation, found: set[Name], beside: set[Name]) -> bool:
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
        inside = _follow(g, known, {inner for inner, x in pairs if x in beside})
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
