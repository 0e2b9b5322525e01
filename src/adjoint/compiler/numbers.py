"""Python's numbers that are traced, so that other values need no other recording.

Each becomes a symbol, since it takes the dtype of each tensor that it meets.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from adjoint.compiler.graph import Equation, Graph, Name, Value
from adjoint.compiler.sizes import Size, Symbols, is_size
from adjoint.lines import Line
from adjoint.primitives import DType
from adjoint.primitives.sizes import LATER, Places


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


class Integer(int):
    """The class of integers that are symbols."""


LATER.update((Float, Integer))
_SYMBOL = re.compile(r"\bf(\d+)\b")


def can_vary(x: Any) -> bool:
    """Whether a number can be traced."""
    return x.__class__ is float or (x.__class__ is int and -(2**63) <= x < 2**63)


class OtherNumberError(Exception):
    """The function has to run for these numbers alone: a symbol of them is no number that an array has, say."""


class Numbers(Symbols):
    """Python's numbers of one recording: each an input of the graph, of which tensors are made where it meets one.

    Arithmetic among them is Python's, and runs with each call.
    """

    graph: Graph
    inputs: list[Value]

    kinds = {float: Float, int: Integer}

    def __init__(self, graph: Graph) -> None:
        super().__init__()
        self.graph, self.inputs = graph, list[Value]()
        self.asked: dict[int, Line] = {}  # those whose values were asked for, and where
        self.compared: dict[int, Line] = {}
        self._made: dict[tuple[str, DType], Value] = {}
        self._computed = _Computed(self)
        self._equation: Equation | None = None

    def add(self, x: float, value: Value) -> Size:
        """The symbol of an input of the graph, which is x in this call."""
        known = next((k for k, found in enumerate(self.inputs) if found is value), None)
        name = f"f{len(self.inputs) if known is None else known}"
        if known is None:
            self.values[name] = x
            self.inputs.append(value)
        return Size(x, None, name, self)

    def array(self, x: Size, dtype: DType) -> Value:
        """What has been computed of numbers by Python, as an array without axes."""
        given = self.inputs[[*self.values].index(x.text)] if x.text in self.values else None
        if given is not None and given.dtype is dtype:
            return given
        found = self._made.get((x.text, dtype))
        if found is None:
            found = self._made[x.text, dtype] = Value((), dtype)
            if given is not None and dtype.kind in "fc":
                equation = Equation("astype", [given], {"dtype": dtype}, [found])
                self.graph.equations.append(equation)
            else:
                self._computed.add(x.text, type(x.value), dtype)
                if self._equation is None:  # one for all, since a call of Python takes longer than what it computes
                    self._equation = Equation("host", self.inputs, {"function": self._computed}, [])
                    self.graph.equations.insert(0, self._equation)  # nothing has run where a number does not fit
                self._equation.results.append(found)
        return found

    def may_be_nan(self, text: str) -> bool:
        return True

    def answer(self, text: str, holds: bool) -> bool:
        """What a comparison gives, and all other numbers for which the graph is right."""
        self.guards[text] = holds
        self._note(text, self.compared)
        return holds

    def pin(self, size: Size) -> None:
        self.count += 1
        self._note(size.text, self.asked)

    def _note(self, text: str, found: dict[int, Line]) -> None:
        for k in map(int, _SYMBOL.findall(text)):
            found.setdefault(k, Line())

    def hold(self, values: Sequence[Any]) -> bool:
        """Whether the graph is right for these numbers: comparisons give what they gave."""
        if self._holds is None:
            self._holds = self.function(self.conditions)
        try:
            return bool(self._holds(*values))
        except (ArithmeticError, TypeError):  # who records it is told what is wrong
            return False


class _Computed:
    """Arithmetic with Python's numbers, as a function of arrays."""

    of_numbers = True

    def __init__(self, numbers: Numbers) -> None:
        self.numbers = numbers
        self.texts, self.types = list[str](), list[tuple[type, DType]]()
        self.run: Callable[..., Any] | None = None

    def add(self, text: str, kind: type, dtype: DType) -> None:
        self.texts.append(text)
        self.types.append((kind, dtype))

    def __call__(self, *arrays: Any) -> list[Any]:
        if self.run is None:
            self.run = self.numbers.function(f"({', '.join(self.texts)},)")
        made = []
        try:
            numbers = self.run(*[x.item() for x in arrays])
        except ArithmeticError:  # which the function itself raises at its own line
            raise OtherNumberError from None
        for found, (kind, dtype) in zip(numbers, self.types, strict=True):
            if found.__class__ is not kind:  # a negative power of an integer, a root of a negative number
                raise OtherNumberError
            try:
                made.append(np.array(found, dtype))
            except OverflowError:  # too many digits
                raise OtherNumberError from None
        return made


def is_number(x: Any) -> bool:
    """Whether it is the symbol of one of Python's numbers."""
    return is_size(x) and isinstance(x.owner, Numbers)


def as_arrays(operands: Sequence[Any], numbers: Numbers, elementwise: bool) -> tuple[Any, ...]:
    """Operands, with arrays in the place of numbers that are symbols, in the dtype that Python's numbers take there."""
    found = {x.dtype for x in operands if x.__class__ is Value and x.dtype.kind in "fciu"}
    inexact = {x for x in found if x.kind in "fc"}
    dtypes = inexact or found

    def of(x: Any) -> Any:
        if not is_number(x):
            return x
        whole = issubclass(x.__class__, int)
        if len(dtypes) != 1 or (whole and not elementwise) or not (whole or inexact):
            return x.known()
        return numbers.array(x, next(iter(dtypes)))

    return tuple([of(x) for x in operands])


def known(x: Any) -> Any:
    """A parameter, with the values of numbers."""
    if is_number(x):
        return x.known()
    if type(x) in (tuple, list):
        return type(x)([known(y) for y in x])
    if type(x) is dict:
        return {name: known(y) for name, y in x.items()}
    if type(x) is Places and any([is_number(n) for n in (x.start, x.stop, x.size)]):
        places = Places(known(x.start), known(x.stop), x.step, known(x.size))
        return places if is_size(places.start) or is_size(places.stop) else places.known()
    return slice(known(x.start), known(x.stop), known(x.step)) if type(x) is slice else x
