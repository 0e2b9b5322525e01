"""The graph of a function: equations in order, each a primitive of values that stand before it.

Every value is assigned once. A choice or a loop is an equation with graphs of its own, which see nothing but their
inputs and constants. What else an equation can be is listed at `Equation`.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from adjoint import errors
from adjoint.compiler.sizes import filled, has_sizes, written
from adjoint.concrete import Check, Lazy, collecting
from adjoint.operands import concrete_values
from adjoint.primitives import TABLE, DType, Shape, Spec, result_spec
from adjoint.random_keys import is_first_call
from adjoint.tensor import wrap

Array = Any
RECORDED = "<recorded>"  # what people see in the place of values


class Value:
    """One array of a graph: what is known of it, and of a constant its array."""

    const: Array
    dtype: DType
    ended: bool  # a value of a step or a branch whose graph is complete
    shape: Shape

    __slots__ = ("const", "dtype", "ended", "shape")

    def __init__(self, shape: Shape, dtype: DType, const: Array = None) -> None:
        self.shape, self.dtype, self.const, self.ended = shape, dtype, const, False

    def __repr__(self) -> str:
        return RECORDED

    def spec(self) -> Spec:
        return Spec(self.shape, self.dtype)


class Key:
    """A random key of a graph, or what steps of a loop draw keys from. A late one is drawn when it is asked for."""

    __slots__ = ("late",)

    def __init__(self, late: bool) -> None:
        self.late: bool = late


Name = Value | Key  # what equations define


class Equation:
    """`results = name(operands, parameters)`: a primitive, or one of these.

    `branch`    the graph that the first operand numbers, of the others
    `while`     the first `count` operands taken further by the second graph as long as the first one holds
    `scan`      the first `count` taken further by the graph, with the slices of the next `rows`; all other results are
                stacked. Operands after these are the same in each step
    `key`       the next random key, or of the operand, of a seed from a place on; with two operands that of a step of a
                loop: of the first, by the number of the step
    `draw`      has a late key drawn now
    `seed`      starts the sequence of random keys anew
    `check`     raises `error(values)` where the first operand is not true everywhere; the second are the values
    `call`      hands values to `function`
    `host`      what `function` gives for them, as NumPy arrays

    Operands are values, or numbers of Python's. `backward` says that it was recorded in a backward pass.
    """

    backward: bool
    graphs: list[Graph]
    line: Any
    name: str
    operands: list[Any]
    parameters: dict[str, Any]
    results: list[Name]

    __slots__ = ("backward", "graphs", "line", "name", "operands", "parameters", "results")

    def __init__(
        self,
        name: str,
        operands: Sequence[Any],
        parameters: dict[str, Any],
        results: Sequence[Name],
        graphs: Sequence[Graph] = (),
        *,
        backward: bool = False,
        line: Any = None,
    ) -> None:
        self.name, self.operands, self.parameters = name, list(operands), parameters
        self.results, self.graphs, self.backward, self.line = list(results), list(graphs), backward, line

    def reads(self) -> list[Name]:
        """The values and keys that it needs, constants left out."""
        found: list[Any] = [
            x for x in self.operands if x.__class__ is Key or (x.__class__ is Value and x.const is None)
        ]
        key: Any = self.parameters.get("key")
        return [*found, key] if key.__class__ is Key else found

    @property
    def has_effect(self) -> bool:
        """Whether it does something beside its results, or in one of its graphs."""
        return self.name in ("key", "draw", "seed", "check", "call") or any(
            e.has_effect for g in self.graphs for e in g.equations
        )

    def on(self, operands: Sequence[Any], graphs: Sequence[Graph] | None = None) -> Equation:
        """The same of other operands."""
        made = Equation(self.name, operands, self.parameters, self.results, backward=self.backward, line=self.line)
        made.graphs = self.graphs if graphs is None else list(graphs)
        return made


class Graph:
    """Equations between inputs and outputs."""

    equations: list[Equation]
    inputs: list[Name]
    outputs: list[Value]

    __slots__ = ("equations", "inputs", "outputs")

    def __init__(
        self, inputs: Sequence[Name] = (), equations: Sequence[Equation] = (), outputs: Sequence[Value] = ()
    ) -> None:
        self.inputs, self.equations, self.outputs = list(inputs), list(equations), list(outputs)

    def free(self) -> list[Name]:
        """What it reads and does not define, each once."""
        defined: set[Name] = set(self.inputs)
        found: dict[Name, None] = {}
        for equation in self.equations:
            found.update(dict.fromkeys(x for x in equation.reads() if x not in defined))
            defined.update(equation.results)
        found.update(dict.fromkeys(x for x in self.outputs if x.const is None and x not in defined))
        return list(found)

    def size(self) -> int:
        """The number of its equations, with those of its graphs."""
        return sum(1 + sum(g.size() for g in e.graphs) for e in self.equations)

    def at(self, sizes: dict[str, int], bound: Callable[[Any], Any] = lambda function: function) -> Graph:
        """The graph with numbers in the places of symbols; `bound` has functions of the recording find them."""
        return _at(self, sizes, bound, {})

    def __str__(self) -> str:
        return "\n".join(_lines(self, _Names(), ""))


def _at(graph: Graph, sizes: dict[str, int], bound: Callable[[Any], Any], made: dict[Any, Any]) -> Graph:
    def at(x: Any) -> Any:
        if x.__class__ is Value:
            if x not in made:
                made[x] = Value(filled(x.shape, sizes), x.dtype, x.const)
            return made[x]
        return filled(x, sizes)

    inputs = list(map(at, graph.inputs))
    equations = []
    for e in graph.equations:
        graphs = [_at(g, sizes, bound, made) for g in e.graphs]
        results, operands = list(map(at, e.results)), list(map(at, e.operands))
        own = e.name not in TABLE
        how = {name: bound(x) if own and callable(x) else at(x) for name, x in e.parameters.items()}
        equations.append(Equation(e.name, operands, how, results, graphs, backward=e.backward, line=e.line))
    return Graph(inputs, equations, list(map(at, graph.outputs)))


# --- as text -------------------------------------------------------------------------------------


class _Names(dict[Any, str]):
    """A name for each value: a, b, ... z, aa, ab, ..."""

    def __init__(self) -> None:
        letters = "abcdefghijklmnopqrstuvwxyz"
        self._next = ("".join(word) for n in itertools.count(1) for word in itertools.product(letters, repeat=n))

    def __missing__(self, value: Any) -> str:
        name = self[value] = next(self._next)
        return name


def _lines(graph: Graph, names: _Names, indent: str) -> Iterator[str]:
    def typed(x: Name) -> str:
        return f"{names[x]}: key" if x.__class__ is Key else f"{names[x]}: {x.dtype}[{', '.join(map(str, x.shape))}]"  # type: ignore[union-attr]

    def shown(x: Any) -> str:
        if x.__class__ is Key:
            return names[x]
        if x.__class__ is not Value:
            if has_sizes(x):
                return written(x, errors.shown)
            return f"<{x.__name__}>" if callable(x) and hasattr(x, "__name__") else errors.shown(x)
        if x.const is None:
            return names[x]
        return str(x.const.item()) if _is_number(x) else f"<{x.dtype}[{', '.join(map(str, x.shape))}]>"

    yield f"{indent}inputs {', '.join(map(typed, graph.inputs))}".rstrip()
    for e in graph.equations:
        results = f"{', '.join(map(typed, e.results))} = " if e.results else ""
        parameters = ", ".join(f"{name}={shown(value)}" for name, value in e.parameters.items())
        operands = ", ".join(map(shown, e.operands))
        yield f"{indent}{results}{e.name}({operands}{'; ' if parameters and operands else ''}{parameters})"
        for inner in e.graphs:
            yield from _lines(inner, names, indent + "    ")
    yield f"{indent}outputs {', '.join(map(shown, graph.outputs))}".rstrip()


def _is_number(x: Value) -> bool:
    return not x.shape and isinstance(x.const, (np.ndarray, np.generic))


# --- what a graph promises -----------------------------------------------------------------------


def verify(graph: Graph) -> None:
    """Raises GraphError where a value is read before it is defined, or has not the type that follows from operands."""
    defined: set[Name] = set()

    def define(values: Sequence[Name], what: str) -> None:
        for x in values:
            if x in defined:
                raise errors.GraphError(f"{what} defines a value for the second time")
            defined.add(x)

    define(graph.inputs, "the inputs of a graph")
    for equation in graph.equations:
        for x in equation.reads():
            if x not in defined:
                raise errors.GraphError(f"{equation.name} reads a value that is not defined before it")
        _verify_types(equation)
        for inner in equation.graphs:
            verify(inner)
        define(equation.results, equation.name)
    for x in graph.outputs:
        if x.const is None and x not in defined:
            raise errors.GraphError("an output of a graph is not defined in it")


def _verify_types(e: Equation) -> None:
    specs = [x.spec() if isinstance(x, Value) else x for x in e.operands]
    results: list[Any] = [x.spec() if isinstance(x, Value) else x for x in e.results]
    expected: list[Any] = results
    if e.name in TABLE:
        found = result_spec(TABLE[e.name], specs, e.parameters)
        expected = [Spec(tuple(s.shape), s.dtype) for s in (found if TABLE[e.name].results > 1 else [found])]
    elif e.name == "branch":
        given = specs[1:]
        for inner in e.graphs:
            _verify_interface(e.name, inner, given, e.operands[1:], results)
    elif e.name == "while":
        goes, step = e.graphs
        _verify_interface(e.name, goes, specs, e.operands, [Spec((), np.dtype(bool))])
        _verify_interface(e.name, step, specs, e.operands, results)
    elif e.name == "scan":
        n, m = e.parameters["count"], e.parameters["rows"]
        given = [*specs[:n], *[Spec(s.shape[1:], s.dtype) for s in specs[n : n + m]], *specs[n + m :]]
        stacked = [*results[:n], *[Spec(s.shape[1:], s.dtype) for s in results[n:]]]
        _verify_interface(e.name, e.graphs[0], given, e.operands, stacked)
    if expected != results:
        raise errors.GraphError(f"{e.name}: results are {results}, and its operands give {expected}")


def _verify_interface(
    name: str, graph: Graph, given: Sequence[Any], operands: Sequence[Any], results: Sequence[Any]
) -> None:
    taken: list[Any] = [x.spec() if isinstance(x, Value) else x for x in graph.inputs]
    wanted = [x if x.__class__ is Key else spec for x, spec in zip(operands, given, strict=True)]
    if taken != wanted or [x.spec() for x in graph.outputs] != list(results):
        raise errors.GraphError(
            f"{name}: a graph takes {taken} and gives {len(graph.outputs)} values, unlike its place"
        )


# --- one equation after the other ----------------------------------------------------------------


def evaluate(graph: Graph, arrays: Sequence[Any], leaf: Any) -> list[Array]:
    """The outputs for these inputs, on a leaf: the plainest reading of a graph, which faster ones are compared with."""
    known: dict[Any, Any] = dict(zip(graph.inputs, arrays, strict=True))

    def read(x: Any) -> Any:
        if x.__class__ is Value:
            return known[x] if x.const is None else x.const
        return known[x] if x.__class__ is Key else x

    for e in graph.equations:
        operands = list(map(read, e.operands))
        if e.name in TABLE:
            parameters = e.parameters
            if parameters.get("key").__class__ is Key:
                parameters = {**parameters, "key": known[parameters["key"]]()}
            out = leaf[e.name](*operands, **parameters)
            results = out if TABLE[e.name].results > 1 else (out,)
        else:
            functions = [lambda *xs, g=g: evaluate(g, xs, leaf) for g in e.graphs]
            results = SPECIAL[e.name](leaf, functions, operands, **e.parameters)
        known.update(zip(e.results, results, strict=True))
    return list(map(read, graph.outputs))


# --- what equations do that are no primitives ------------------------------------------------------

Functions = Sequence[Callable[..., Sequence[Array]]]


class Drawn:
    """A random key when it runs: drawn at once, or when it is first asked for.

    Steps of a loop have keys of their own, by number and place, which are known where a step runs again. Where but one
    loop reads them (`once`), those of the last step alone are kept.
    """

    __slots__ = ("_draw", "_key", "_number", "_once", "_steps")

    def __init__(self, draw: Callable[[], Any], late: bool, once: bool = False) -> None:
        self._draw, self._key = draw, None if late else draw()
        self._steps: dict[tuple[int, int], Drawn] = {}
        self._once, self._number = once, -1

    def next(self, late: bool) -> Drawn:
        return Drawn(self._draw, late)

    def of_step(self, number: int, place: int, late: bool) -> Drawn:
        if self._once and number != self._number:
            self._steps.clear()
            self._number = number
        found = self._steps.get((number, place))
        if found is None:
            found = self._steps[number, place] = Drawn(self._draw, late)
        return found

    def __call__(self) -> Any:
        if self._key is None:
            self._key = self._draw()
        return self._key


def _has_values(leaf: Any, x: Array) -> bool:
    """Whether there are values, or a lazy leaf computes them: else a program around this one has them later."""
    return leaf.is_concrete(x) or isinstance(leaf.leaf, Lazy)


def branch(leaf: Any, functions: Functions, operands: Sequence[Any]) -> Sequence[Array]:
    index, *rest = operands
    if not _has_values(leaf, index):
        return leaf.branch(index, functions, rest)  # type: ignore[no-any-return]
    return functions[int(leaf.concrete_values(index))](*rest)


def loop(leaf: Any, functions: Functions, operands: Sequence[Any], *, count: int) -> Sequence[Array]:
    goes, step = functions
    carry, rest = tuple(operands[:count]), operands[count:]
    while True:
        (go,) = goes(*carry, *rest)
        if not _has_values(leaf, go):
            return leaf.loop(lambda *xs: goes(*xs, *rest)[0], lambda *xs: step(*xs, *rest), carry)  # type: ignore[no-any-return]
        if not leaf.concrete_values(go):
            return carry
        carry = tuple(step(*carry, *rest))


def scan(
    leaf: Any, functions: Functions, operands: Sequence[Any], *, count: int, rows: int, length: int, reverse: bool
) -> Sequence[Array]:
    (step,) = functions
    carry, along, rest = tuple(operands[:count]), operands[count : count + rows], operands[count + rows :]
    collected: list[Sequence[Array]] = []
    index = leaf["index"]
    for i in range(length - 1, -1, -1) if reverse else range(length):
        out = step(*carry, *[index(x, key=(i,)) for x in along], *rest)
        carry = tuple(out[:count])
        collected.append(out[count:])
    if reverse:
        collected.reverse()
    return [*carry, *[stacked(leaf, column) for column in zip(*collected, strict=True)]]


def stacked(leaf: Any, arrays: Sequence[Array]) -> Array:
    """Arrays of one shape along a new first axis."""
    expand = leaf["expand_dims"]
    return leaf["concat"](*[expand(x, axis=(0,)) for x in arrays], axis=0)


def key(
    leaf: Any,
    functions: Functions,
    operands: Sequence[Any],
    *,
    late: bool,
    place: int = 0,
    seed: tuple[int, int] | None = None,
) -> Sequence[Drawn]:
    if seed is not None:
        counter = itertools.count(seed[1])
        return [Drawn(lambda: (seed[0], next(counter)), late)]
    if not operands:
        return [Drawn(leaf.next_key, late)]
    source, *numbers = operands
    return [source.of_step(int(leaf.to_numpy(numbers[0])), place, late) if numbers else source.next(late)]


def draw(leaf: Any, functions: Functions, operands: Sequence[Any]) -> Sequence[Array]:
    operands[0]()
    return ()


def seed(leaf: Any, functions: Functions, operands: Sequence[Any], *, n: int) -> Sequence[Array]:
    leaf.seed(n)
    return ()


def call(leaf: Any, functions: Functions, operands: Sequence[Any], *, function: Callable[..., None]) -> Sequence[Array]:
    if not is_first_call():  # the program runs again, for derivatives
        return ()
    if all([_has_values(leaf, x) for x in operands]):
        function(*[leaf.concrete_values(x) for x in operands])
    else:
        leaf.call(function, operands)
    return ()


def host(leaf: Any, functions: Functions, operands: Sequence[Any], *, function: Callable[..., Any]) -> Sequence[Array]:
    if hasattr(function, "of_numbers"):  # Python's, which come and go as new arrays
        return [leaf.from_numpy(y, copy=False) for y in function(*[leaf.to_numpy(x) for x in operands])]
    given = [np.asarray(concrete_values(wrap(x, leaf), "a function of NumPy arrays")).view() for x in operands]
    for values in given:
        values.flags.writeable = False
    return [leaf.from_numpy(y, copy=True) for y in function(*given)]


def check(
    leaf: Any, functions: Functions, operands: Sequence[Any], *, error: Callable[[Any], Exception]
) -> Sequence[Array]:
    holds, values = operands
    if _has_values(leaf, holds):
        if not np.all(leaf.concrete_values(holds)):
            raise error(leaf.concrete_values(values))
    elif (checks := collecting()) is not None:  # of the program around this one
        checks.append(Check(holds, values, error))
    return ()


SPECIAL: dict[str, Callable[..., Sequence[Any]]] = {
    "branch": branch,
    "while": loop,
    "scan": scan,
    "key": key,
    "draw": draw,
    "seed": seed,
    "call": call,
    "host": host,
    "check": check,
}
