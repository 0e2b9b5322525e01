"""A leaf whose arrays are values of a graph.

It stands in the place of another leaf while a function runs once: every primitive becomes an equation, with the shapes
and dtypes that the table of primitives says. Derivatives and batches are decorators over it, as over any leaf, so the
graph has their primitives and knows nothing of them. What follows from constants alone is computed at once.
"""

from __future__ import annotations

import contextlib
import contextvars
import itertools
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from adjoint import errors
from adjoint.backend import Array, Backend, Implementation, LeafBackend, in_backward
from adjoint.compiler.graph import Equation, Graph, Key, Name, Value
from adjoint.compiler.numbers import Numbers, as_arrays, bounds_loops, is_number
from adjoint.compiler.numbers import known as known_numbers
from adjoint.compiler.sizes import Symbols, has_sizes, is_size
from adjoint.concrete import Check, Staged, drawing_refused
from adjoint.dtypes import INEXACT
from adjoint.lines import PACKAGE, Line
from adjoint.primitives import ELEMENTWISE, RANDOM, DType, Primitive, Spec, result_spec
from adjoint.random_keys import RandomKey, keys_from, step_recorded_on
from adjoint.scopes import Block, Variable, innermost


class _Step(NamedTuple):
    """A run of a step of a loop, which draws keys: from what, in which step, and what is recorded of it."""

    source: Key
    number: Value
    graph: Graph
    loops: int  # that are open, of which this is the innermost
    places: Iterator[int]  # of keys


class Recording:
    """What is recorded of a function: the graphs that are open, from the outermost, and what the innermost are for."""

    def __init__(self) -> None:
        self.graphs: list[Graph] = [Graph()]
        self.loops = 0  # how many of them are those of loops
        self.steps: list[_Step] = []  # that may draw
        self.symbols: Symbols | None = None  # where some sizes are symbols
        self.numbers: Numbers | None = None  # ... and some of Python's numbers
        self.values: dict[Value, Any] = {}  # of inputs without axes, in the call that is recorded
        self.lines: dict[Value, Line] = {}  # where results of primitives were computed
        self.checks: _Checks = _Checks(self)

    @property
    def top(self) -> Graph:
        return self.graphs[-1]

    def close(self) -> None:
        """The innermost graph is complete: what comes later can only use its results by the equation it belongs to."""
        done = self.graphs.pop()
        for x in (*done.inputs, *[y for equation in done.equations for y in equation.results]):
            if isinstance(x, Value):
                x.ended = True

    def add(self, name: str, operands: Sequence[Any], results: Sequence[Name], graphs: Any = (), **how: Any) -> None:
        self.top.equations.append(Equation(name, operands, how, results, graphs, backward=in_backward.get()))


class _Checks(list[Check]):
    """What `collected_checks` fills: checks become equations, at the place where they are made."""

    def __init__(self, recording: Recording) -> None:
        self.recording = recording

    def append(self, check: Check) -> None:
        self.recording.add("check", [check.holds, check.values], [], error=check.error)


_recording: Variable[Recording] = contextvars.ContextVar("adjoint_recording", default=None)


def recording() -> Block[Recording]:
    """A block that records."""
    return Block(_recording, Recording())


def _recorder() -> Recording | None:
    block = innermost(_recording)
    return None if block is None else block.value


def _current(what: str) -> Recording:
    found = _recorder()
    if found is None:
        raise errors.TrackedError(
            f"{what}: ad.compile records the function that it was given, in the thread that called it; compute with "
            "its tensors there"
        )
    return found


def symbol_of(value: Value) -> Any:
    """What stands for one of Python's numbers in what is recorded now, as which an input of the graph was given."""
    place = _current("a number")
    if place.numbers is None:
        place.numbers = Numbers(place.graphs[0])
    return place.numbers.add(place.values[value], value)


def line_of(x: Any) -> Line | None:
    """Where what is recorded now was computed."""
    place = _recorder()
    return None if place is None else place.lines.get(x)


class Traced(Staged, LeafBackend):
    """Records what is to run on another backend, whose arrays are constants here."""

    scans = hosts = True
    function = "it"  # what is recorded on it, for a message

    def __init__(self, inner: Backend) -> None:
        super().__init__()
        self.inner = inner

    @classmethod
    def fresh(cls, *options: Any) -> Traced:
        """A leaf for one recording, with the implementations of the interned one, which ask what is being recorded."""
        prototype = cls(*options)
        level = object.__new__(cls)
        known = vars(level)
        known.update(vars(prototype))
        known.pop("_decorated", None)
        known["_prototype"], known["is_fresh"] = prototype, True
        return level

    @property
    def prototype(self) -> Backend:
        return vars(self).get("_prototype", self)  # type: ignore[no-any-return]

    def configuration(self) -> tuple[Any, ...]:
        return (self.inner,)

    def registry(self) -> Any:
        return self.inner.decorated

    def chain(self) -> Iterator[Backend]:
        yield self
        yield from self.inner.chain()

    def lift(self, array: Array, source: Backend) -> Array:
        return array if source is self else self.constant(self.inner.lift(array, source))

    def ended_error(self, what: str) -> errors.EndedError:
        return errors.EndedError(
            f"{what}: a tensor of {self.function}, a function that ad.compile recorded, was used after that; only what "
            "the function returns comes out, and ad.debug.callback hands values out while it runs"
        )

    # --- arrays ---

    def constant(self, array: Array) -> Value:
        return Value(tuple(array.shape), self.inner.dtype_of(array), array)

    def dtype_of(self, array: Value) -> DType:
        return array.dtype

    def from_numpy(self, values: np.ndarray[Any, Any], *, copy: bool) -> Value:
        return self.constant(self.inner.from_numpy(values, copy=True))  # a graph keeps it

    def from_native(self, value: Any) -> Value | None:
        if isinstance(value, Value):
            return value
        found = self.inner.from_native(value)
        return None if found is None else self.constant(self.inner.copied(found))

    def is_concrete(self, array: Any) -> bool:
        return array.__class__ is not Value or (array.const is not None and self.inner.is_concrete(array.const))

    def to_numpy(self, array: Value) -> np.ndarray[Any, Any]:
        return self.inner.to_numpy(self._known(array))

    def concrete_values(self, array: Value) -> np.ndarray[Any, Any]:
        return self.inner.concrete_values(self._known(array))

    def to_native(self, array: Value) -> Any:
        return self.inner.to_native(self._known(array))

    def _known(self, array: Value) -> Array:
        if array.const is None:
            if self.ended:
                raise self.ended_error(_asked())
            raise errors.TrackedError(
                f"{_asked()} of a tensor of shape {array.shape} that ad.compile records, which has none before the "
                "compiled function runs: choose with ad.where or ad.cond, loop with ad.while_loop or ad.scan, show it "
                "with ad.debug.print; a Python number among the arguments has its value"
            )
        return array.const

    def widest(self, dtype: DType) -> DType:
        return self.inner.widest(dtype)

    def computes_in(self, dtype: DType) -> bool:
        return self.inner.computes_in(dtype)

    def quiet(self) -> contextlib.AbstractContextManager[Any]:
        return self.inner.leaf.quiet()

    # --- random keys ---

    def seed(self, n: int) -> None:
        place = _current("random.seed")
        if len(place.graphs) > 1:
            raise errors.TrackedError("random.seed in a choice or a loop that is recorded; call it before")
        place.add("seed", [], [], n=n)

    def next_key(self) -> RandomKey:
        key: Any = super().next_key()
        if key.__class__ is Key and key.late:  # drawn here also where nobody reads the number: what follows draws on
            _current("a random number").add("draw", [key], [])
        return key  # type: ignore[no-any-return]

    def _draw(self) -> RandomKey:
        place = _current("a random number")
        graph = place.steps[-1].graph if place.steps else place.graphs[0]
        return self._key(place.top is not graph)  # type: ignore[no-any-return]

    def _source(self) -> RandomKey:
        return self._key(late=True)  # type: ignore[no-any-return]

    _source.is_source = True  # type: ignore[attr-defined]

    def _key(self, late: bool, operands: Sequence[Any] = (), **how: Any) -> Any:
        """A key where the innermost step begins that may draw, or the program does."""
        place = _current("a random number")
        step = place.steps[-1] if place.steps else None
        if place.loops != (0 if step is None else step.loops):
            drawing_refused()
        graph, key = place.graphs[0], Key(late)
        if step is not None:
            graph = step.graph
            if not operands and not how:
                operands, how = [step.source, step.number], {"place": next(step.places)}
        graph.equations.append(Equation("key", operands, {"late": late, **how}, [key]))
        return key

    def source_of_keys(self) -> Any:
        return self._of_runs(self._source)

    def rest_of_seed(self, seed: int, place: int) -> Any:
        """What draws the keys of a seed, from a place on."""
        return self._key(late=True, seed=(seed, place))

    def next_of(self, rest: Any) -> Any:
        return self._key(late=True, operands=[rest])

    @contextlib.contextmanager
    def drawing(self, source: Any, number: Any) -> Iterator[None]:
        if source is None:
            with keys_from(drawing_refused):
                yield
            return
        place = _current("a random number")
        place.steps.append(_Step(source, number, place.top, place.loops, itertools.count()))
        try:
            with step_recorded_on(self):
                yield
        finally:
            place.steps.pop()

    # --- primitives ---

    def implement(self, primitive: Primitive) -> Implementation:
        inner, name, several = self.inner, primitive.name, primitive.results > 1
        is_random, dynamic = primitive.kind is RANDOM, primitive.dynamic
        located = inner.wants_locations

        def record(*operands: Any, **parameters: Any) -> Any:
            known = not is_random or parameters["key"].__class__ is not Key
            place = _recorder()
            if place is not None and place.numbers is not None:
                if name == "full" and is_number(parameters["value"]) and not parameters["shape"]:
                    return place.numbers.array(parameters["value"], parameters["dtype"])
                operands = as_arrays(operands, place.numbers, primitive.kind is ELEMENTWISE)
                parameters = known_numbers(parameters)
            if known and place is not None and place.symbols is not None:
                known = not has_sizes(operands) and not has_sizes(parameters)
            specs: list[Any] = []
            for x in operands:
                if x.__class__ is Value:
                    if x.ended:
                        refuse_closed(name, operands)
                    known = known and x.const is not None
                    specs.append(Spec(x.shape, x.dtype))
                else:
                    if x.__class__ is int and not -_WIDE <= x < _WIDE and _meets_floats(operands):
                        raise OverflowError  # as libraries do, and who asked for it makes a float of the integer
                    specs.append(x)
            if known:
                out = inner[name](*[x.const if x.__class__ is Value else x for x in operands], **parameters)
                if several:
                    return tuple([Value(tuple(x.shape), inner.dtype_of(x), x) for x in out])
                return Value(tuple(out.shape), inner.dtype_of(out), out)
            if dynamic:
                raise errors.TrackedError(
                    f"{_called(name)}: how many elements there are depends on the values of a tensor of shape "
                    f"{operands[0].shape} that ad.compile records; choose with ad.where, which keeps the shape"
                )
            found = result_spec(primitive, specs, parameters)
            results = [Value(tuple(s.shape), s.dtype) for s in (found if several else [found])]
            equation = Equation(name, operands, parameters, results, backward=in_backward.get())
            place = _current(name)
            line = place.lines[results[0]] = Line()
            if located:
                equation.line = line
            place.top.equations.append(equation)
            return tuple(results) if several else results[0]

        return record

    # --- choices, loops, calls ---

    def is_length(self, n: Any) -> bool:
        return is_size(n) and type(n.owner) is Symbols

    def graph_of(self, f: Callable[..., Sequence[Value]], inputs: Sequence[Any], *, loop: bool = False) -> Graph:
        """The graph of a function of values like these. Constants are constants in it."""
        place = _current("a choice or a loop")
        refuse_closed("a choice or a loop", inputs)
        given = [x if x.const is not None and not loop else Value(x.shape, x.dtype) for x in inputs]
        made = Graph([x for x in given if x.const is None])
        place.graphs.append(made)
        place.loops += loop
        try:
            made.outputs = list(f(*given))
            refuse_closed("a choice or a loop", made.outputs)
        finally:
            place.close()
            place.loops -= loop
        return made

    def branch(self, index: Value, branches: Sequence[Callable[..., Any]], arrays: Sequence[Value]) -> list[Value]:
        graphs = [self.graph_of(f, arrays) for f in branches]
        free = _opened(graphs)
        results = [Value(x.shape, x.dtype) for x in graphs[0].outputs]
        given = [x for x in arrays if x.const is None]
        _current("a choice").add("branch", [index, *given, *free], results, graphs)
        return results

    def loop(
        self, goes: Callable[..., Value], step: Callable[..., Sequence[Value]], arrays: Sequence[Value]
    ) -> list[Value]:
        graphs = [self.graph_of(lambda *xs: [goes(*xs)], arrays, loop=True), self.graph_of(step, arrays, loop=True)]
        free = _opened(graphs)
        results = [Value(x.shape, x.dtype) for x in arrays]
        _current("a loop").add("while", [*arrays, *free], results, graphs, count=len(arrays))
        return results

    def scan(
        self,
        step: Callable[..., Sequence[Value]],
        carry: Sequence[Value],
        rows: Sequence[Value],
        length: int,
        reverse: bool,
        numbers: int,
    ) -> list[Value]:
        n, m = len(carry), len(rows)
        slices = [Value(x.shape[1:], x.dtype) for x in rows]
        graph = self.graph_of(step, [*carry, *slices], loop=True)
        if numbers and bounds_loops(graph, graph.inputs[n : n + numbers]):
            raise errors.TrackedError("a step has a loop of as many steps as its number says")
        free = _opened([graph])
        results = [Value(x.shape, x.dtype) for x in graph.outputs[:n]]
        results += [Value((length, *x.shape), x.dtype) for x in graph.outputs[n:]]
        how = {"count": n, "rows": m, "length": length, "reverse": reverse}
        _current("a loop").add("scan", [*carry, *rows, *free], results, [graph], **how)
        return results

    @contextlib.contextmanager
    def aside(self, loop: bool = True) -> Iterator[None]:
        """In this block nothing is recorded to stay: a step of a loop or a branch is run for shapes and dtypes."""
        place = _current("a loop")
        place.graphs.append(Graph())
        place.loops += loop
        try:
            yield
        finally:
            place.close()
            place.loops -= loop

    def host(self, f: Callable[..., list[Any]], arrays: Sequence[Any], specs: Sequence[tuple[Any, Any]]) -> list[Value]:
        results = [Value(tuple(shape), dtype) for shape, dtype in specs]
        values = [x if x.__class__ is Value else self.constant(x) for x in arrays]
        _current("a function of NumPy arrays").add("host", values, results, function=f)
        return results

    def call(self, f: Callable[..., None], arrays: Sequence[Any]) -> None:
        values = [x if x.__class__ is Value else self.constant(x) for x in arrays]
        _current("a call").add("call", values, [], function=f)


_WIDE = 1 << 63  # which integers of 64 bits with a sign do not hold


def _meets_floats(operands: Sequence[Any]) -> bool:
    return any([x.__class__ is Value and x.dtype.kind in INEXACT for x in operands])


def _opened(graphs: Sequence[Graph]) -> list[Name]:
    """What graphs of one equation read from outside, which becomes an input of each."""
    free = list(dict.fromkeys(x for g in graphs for x in g.free()))
    for g in graphs:
        g.inputs += free
    return free


def refuse_closed(what: str, values: Sequence[Any]) -> None:
    """Raises EndedError for a value of a graph that is complete."""
    for x in values:
        if x.__class__ is Value and x.ended:
            raise errors.EndedError(
                f"{what}: a tensor of shape {x.shape} of a step or a branch that ad.compile recorded was used after "
                "that; carry it along, or return it: ad.scan stacks what its steps give"
            )


# --- who asked for a value -----------------------------------------------------------------------

_QUESTIONS = {
    "__bool__": "the truth",
    "__index__": "the value as a size or an index",
    "__int__": "int(...)",
    "__float__": "float(...)",
    "__complex__": "complex(...)",
    "item": "item()",
    "tolist": "tolist()",
    "numpy": "numpy()",
    "native": "native()",
    "__array__": "a NumPy array",
    "__format__": "the text",
    "_places": "the value as a bound of a slice",
}


def _asked() -> str:
    """What a user's line asked for: the function of this package that it called, if that is a way to values."""
    frame: Any = sys._getframe(2)
    found = "the values"
    while frame is not None and frame.f_code.co_filename.startswith(PACKAGE):
        found = _QUESTIONS.get(frame.f_code.co_name, found)
        frame = frame.f_back
    return f"{found} were asked for" if found == "the values" else f"{found} was asked for"


def _called(name: str) -> str:
    """The function of this package that a user's line called, for a primitive."""
    public = sys.modules["adjoint"].__all__
    frame: Any = sys._getframe(2)
    found = name
    while frame is not None and frame.f_code.co_filename.startswith(PACKAGE):
        function = frame.f_code.co_name
        found = "x[mask]" if function == "__getitem__" else function if function in public else found
        frame = frame.f_back
    return found
