"""What a picture of a graph shows: a box for each recorded primitive, leaf, and place where a path is cut."""

from __future__ import annotations

import contextlib
import dataclasses
import heapq
import itertools
from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from adjoint import errors
from adjoint.backend import Array, Backend
from adjoint.compiler.graph import Equation, Graph, Key, Value
from adjoint.decorators.autodiff import Autodiff
from adjoint.graph.locations import SourceLocation
from adjoint.graph.nodes import LeafNode, Node, Result, Var, freed
from adjoint.lines import Line
from adjoint.primitives import Shape
from adjoint.tensor import Tensor

_FEW = 12  # numbers of an array that are written out
Element = Node | SourceLocation


@dataclasses.dataclass(eq=False)
class Box:
    """One box: what it is, what it keeps for backward, and which boxes it was made of.

    `kind` is "leaf", "node", "cut" (a result that is a constant although it was computed from leaves), "input",
    or "backward" (an equation of a compiled backward pass). `size` is the root mean square of its gradient.
    """

    number: int
    kind: str
    name: str
    shape: Shape
    parents: list[int]
    dtype: str = ""
    label: str = ""  # of a leaf, or of what is a function's argument
    keeps: list[str] = dataclasses.field(default_factory=list)
    bytes: int = 0
    line: Line | None = None
    value: str | None = None
    gradient: str | None = None
    size: float | None = None


class Inside(NamedTuple):
    """Boxes in a row that are the inside of a loop or a choice: from the first to the one before the last."""

    first: int
    last: int
    name: str


@dataclasses.dataclass
class Boxes:
    """All boxes, each behind those it was made of; the bytes that are kept, each array once; and what is to be said.

    `inside` has loops and choices in order, each before those in it.
    """

    boxes: list[Box]
    kept: int = 0
    notes: list[str] = dataclasses.field(default_factory=list)
    inside: list[Inside] = dataclasses.field(default_factory=list)


# --- of what a tensor was computed from ----------------------------------------------------------


def of_tensor(root: Tensor[Any], names: Mapping[Any, str]) -> Boxes:
    """The graph that leads to a tensor of an Autodiff level, with the gradients that flow through it.

    `names` are those of leaves, by their keys.
    """
    start: Element | None = root._array.node or getattr(root._array, "location", None)
    if start is None:
        raise errors.GraphError(
            f"draw: the tensor of shape {root.shape} depends on no leaf; call require_grad() on what it is computed "
            "from, or compute it under ad.testing.source_locations() to see where its path is cut"
        )
    return of_node(start, root.device, names, root._array)


def of_node(
    start: Element, level: Autodiff[Any], names: Mapping[Any, str] = MappingProxyType({}), root: Var | None = None
) -> Boxes:
    """The graph that leads to a node, or to where a path is cut; with gradients if its array is known."""
    order, parents = _in_order(_maker(start))
    found = Boxes([])
    results = _results(order)
    gradients: dict[Any, Array] = {}
    if isinstance(start, Node) and root is not None:
        wanted = {node for node in order if isinstance(node, Node) and node not in results}
        wanted |= {start, *[result for several in results.values() for result in several]}
        try:
            answers = level.backward(root, retain_graph=True, wrt=wanted)
            gradients = dict(answers.values())
        except errors.AdjointError as error:
            found.notes.append(f"There are no gradients: {errors.said(str(error))}")
    elif root is not None:
        found.notes.append("The result is a constant: no gradient flows through it.")
    values = _values(order)
    seen: set[tuple[int, int]] = set()
    numbers = {element: k for k, element in enumerate(order)}
    for element, k in numbers.items():
        above = list(dict.fromkeys(numbers[parent] for parent in parents[element]))
        if isinstance(element, SourceLocation):
            box = Box(k, "cut", element.name, (), above, line=element)
            if (kept := getattr(element, "value", None)) is not None:
                box.shape = tuple(kept.shape)
                _tell(box, "value", kept, level.inner)
        else:
            box = _of_node(k, element, above, level, seen)
            if isinstance(element, LeafNode):
                box.label = names.get(element.key, "")
            inner = _inner(element, level)
            if element in values:
                _tell(box, "value", values[element], inner)
            shown = next((one for one in results.get(element, [element]) if one in gradients), None)
            if shown is not None:
                box.size = _tell(box, "gradient", gradients[shown], inner)
        found.boxes.append(box)
    found.kept = sum(size for _, size in seen)
    return found


def _inner(node: Node, level: Autodiff[Any]) -> Backend:
    """The backend of a node's value."""
    if isinstance(node, LeafNode):
        return (node.level or level).inner  # type: ignore[no-any-return]
    return node.vjp.inner


def _maker(element: Element) -> Element:
    """Several results of a primitive are one box, that of the primitive."""
    return element.first if isinstance(element, Result) and element.first is not None else element


def _results(order: list[Element]) -> dict[Node, list[Node]]:
    """Of primitives with several results, those that others read."""
    found: dict[Node, list[Node]] = {}
    read = [parent for element in order if isinstance(element, Node) for parent in element.edges()]
    for parent in dict.fromkeys(read):
        if isinstance(parent, Result) and parent.first is not None:
            found.setdefault(parent.first, []).append(parent)
    return found


def _sources(element: Element) -> Iterator[Element]:
    """What an element was computed from, tracked or cut."""
    tracked: list[Element] = []
    if isinstance(element, Node):
        if element.parents is None:
            raise freed(element)
        tracked = list(element.edges())
        yield from tracked
    location = element if isinstance(element, SourceLocation) else getattr(element, "location", None)
    if isinstance(location, SourceLocation):  # of results of nodes made elsewhere lines alone are known
        yield from [source for source in location.parents if source not in tracked]


def _in_order(start: Element) -> tuple[list[Element], dict[Element, list[Element]]]:
    """All that leads to an element, and what each was made of; in the order of the program, but leaves and what is cut
    stand before the first that reads them.
    """
    parents: dict[Element, list[Element]] = {}
    readers: dict[Element, int] = {start: 0}
    pending = [start]
    while pending:
        element = pending.pop()
        parents[element] = list(dict.fromkeys(map(_maker, _sources(element))))
        for parent in parents[element]:
            if parent not in readers:
                readers[parent] = 0
                pending.append(parent)
            readers[parent] += 1
    order: list[Element] = []
    count = itertools.count()
    ready: list[tuple[float, int, Element]] = [(0.0, next(count), start)]
    while ready:
        now, _, element = heapq.heappop(ready)
        order.append(element)
        for parent in parents[element]:
            readers[parent] -= 1
            if not readers[parent]:
                inner = isinstance(parent, Node) and not isinstance(parent, LeafNode)
                heapq.heappush(ready, (-float(parent.number) if inner else now, next(count), parent))  # type: ignore[union-attr]
    return order[::-1], parents


def _of_node(number: int, node: Node, above: list[int], level: Autodiff[Any], seen: set[tuple[int, int]]) -> Box:
    shape = node.shape[0] if isinstance(node.shape, list) else node.shape
    box = Box(number, "node", node.name, tuple(shape), above, line=getattr(node, "location", None))
    if isinstance(node, LeafNode):
        box.kind, box.dtype = "leaf", _inner(node, level).dtype_of(node.value).name
        return box
    box.keeps = [need for need in dict.fromkeys(node.vjp.needs) if not need.endswith(("_shape", "_dtype"))]
    own = set(_arrays(node.saved, node.vjp.below)) - seen  # what several keep counts where it is kept first
    box.bytes = sum(size for _, size in own)
    seen |= own
    return box


def _arrays(saved: Any, backend: Backend) -> Iterator[tuple[int, int]]:
    """The identity and the bytes of each array that is saved."""
    if isinstance(saved, (tuple, list)):
        for part in saved:
            yield from _arrays(part, backend)
    elif hasattr(saved, "shape") and not isinstance(saved, np.dtype):
        array = backend.leaf_array(saved)
        yield id(array), int(np.prod(array.shape, dtype=np.int64)) * backend.dtype_of(saved).itemsize


def _values(order: list[Element]) -> dict[Node, Array]:
    """The values that are known: of leaves, what was kept with lines, and what rules keep."""
    found: dict[Node, Array] = {}
    for node in order:
        if not isinstance(node, Node):
            continue
        if isinstance(node, LeafNode):
            found[node] = node.value
        elif (kept := getattr(getattr(node, "location", None), "value", None)) is not None:
            found[node] = kept
        elif isinstance(node.saved, tuple):
            operands, parents = node.vjp.primitive.operands, node.edges()
            for need, value in zip(node.vjp.needs, node.saved, strict=False):
                if not hasattr(value, "shape"):
                    continue
                if need == "out":
                    found[node] = value
                elif need in operands and operands.index(need) in node.vjp.tracked:
                    found.setdefault(parents[node.vjp.tracked.index(operands.index(need))], value)
    return found


def _tell(box: Box, what: str, array: Array, backend: Backend) -> float | None:
    """Write an array's numbers, or what they are like, into a box; the root mean square, None without values."""
    try:
        values = np.asarray(backend.concrete_values(array))
        box.dtype = box.dtype or backend.dtype_of(array).name
    except errors.AdjointError:  # there are none yet, or one for each example
        return None
    setattr(box, what, text_of(values))
    if not values.size or values.dtype.kind not in "fc":
        return None
    with np.errstate(all="ignore"):
        return float(np.sqrt(np.mean(np.square(np.abs(values, dtype=np.float64)))))


def text_of(values: np.ndarray[Any, Any]) -> str:
    """The numbers of a small array; of a large one the least, the mean, and the greatest."""
    if values.size <= _FEW:
        return _listed(values.tolist())
    if values.dtype.kind not in "fiu":
        return f"{values.size:,} numbers"
    with np.errstate(all="ignore"):
        low, mean, high = float(values.min()), float(values.mean(dtype=np.float64)), float(values.max())
    return f"{values.size:,} numbers from {low:.4g} to {high:.4g}, mean {mean:.4g}"


def _listed(value: Any) -> str:
    if isinstance(value, list):
        return f"[{', '.join(map(_listed, value))}]"
    return f"{value:.5g}" if isinstance(value, (float, complex)) else str(value)


# --- of a compiled function ------------------------------------------------------------------------


def of_graph(graph: Graph) -> Boxes:
    """The equations of a compiled function's graph; of a loop or a choice those of its graphs, and then its own."""
    found = Boxes([])
    makers: dict[Any, int] = {}

    def add(kind: str, name: str, value: Any, above: list[int], line: Any = None, label: str = "") -> None:
        shape, dtype = (value.shape, value.dtype.name) if isinstance(value, Value) else ((), "")
        line = line if isinstance(line, Line) else None
        found.boxes.append(Box(len(found.boxes), kind, name, tuple(shape), above, dtype, label, line=line))

    def equations(graph: Graph) -> None:
        for equation in graph.equations:
            with inside(_title(equation)):
                for k, inner in enumerate(equation.graphs):
                    with inside(_part(equation.name, k)):
                        given = equation.operands[1:] if equation.name == "branch" else equation.operands
                        makers.update((x, makers[y]) for x, y in zip(inner.inputs, given, strict=False) if y in makers)
                        equations(inner)
                read = [*equation.reads(), *[x for inner in equation.graphs for x in inner.outputs]]
                above = list(dict.fromkeys(makers[x] for x in read if x in makers))
                first = equation.results[0] if equation.results else None
                name = "random key" if isinstance(first, Key) else equation.name
                makers.update(dict.fromkeys(equation.results, len(found.boxes)))
                add("backward" if equation.backward else "node", name, first, above, equation.line)

    @contextlib.contextmanager
    def inside(name: str) -> Iterator[None]:
        """Boxes of this block are the inside of something, if it has a name."""
        first, place = len(found.boxes), len(found.inside)
        yield
        if name and len(found.boxes) > first:
            found.inside.insert(place, Inside(first, len(found.boxes), name))

    for k, value in enumerate(graph.inputs):
        makers[value] = len(found.boxes)
        add("input", "input", value, [], label=f"input {k}")
    equations(graph)
    return found


def _part(name: str, k: int) -> str:
    """What a graph of a loop or a choice is called; "" for the only one."""
    return {"while": ("goes on", "step")[k > 0], "branch": f"branch {k}"}.get(name, "")


def _title(equation: Equation) -> str:
    """What the inside of a loop or a choice is called."""
    if equation.name == "scan":
        count = equation.parameters["length"]
        return f"loop of {count} step{'' if count == 1 else 's'}"
    return {"while": "loop", "branch": f"choice of {len(equation.graphs)}"}.get(equation.name, "")
