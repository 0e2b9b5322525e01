"""What makes a graph smaller without changing a bit of its results: a list of functions from graphs to graphs."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from adjoint import dtypes
from adjoint.backends.numpy.reduction import no_class
from adjoint.compiler.graph import Equation, Graph, Name, Value
from adjoint.compiler.sizes import is_size
from adjoint.primitives import TABLE


def optimized(graph: Graph) -> Graph:
    return [*after_each(graph).values()][-1]


def after_each(graph: Graph) -> dict[str, Graph]:
    """The graph after each pass."""
    found = {}
    for change in PASSES:
        found[change.__name__] = graph = change(graph)
    return found


Change = Callable[[Equation], Value | None]


def _renamed(graph: Graph, begin: Callable[[], Change]) -> Graph:
    """The graph in which a value stands in the place of each equation that a change gives one for.

    Each graph has a change of its own: what is known outside of a loop is not defined in it.
    """
    change = begin()
    known: dict[Any, Value] = {}
    read: Callable[[Any], Any] = lambda x: known.get(x, x) if x.__class__ is Value else x
    equations = []
    for e in graph.equations:
        operands = list(map(read, e.operands))
        if any(map(lambda x, y: x is not y, operands, e.operands)):
            e = e.on(operands)
        if e.graphs:
            e = e.on(e.operands, [_renamed(g, begin) for g in e.graphs])
        if e.name in TABLE and len(e.results) == 1 and (found := change(e)) is not None:
            known[e.results[0]] = found
        else:
            equations.append(e)
    outputs: list[Any] = [read(x) for x in graph.outputs]
    return Graph(graph.inputs, equations, outputs)


# --- exact algebra -------------------------------------------------------------------------------


def exact_algebra(graph: Graph) -> Graph:
    """Without steps whose result is their operand, to the last bit, also of a nan, an infinity or -0.

    So x + 0 stays where x is floating, since -0 + 0 is 0, and complex numbers stay: inf * (1 + 0j) has a nan.
    """

    def begin() -> Change:
        makers: dict[Any, Equation] = {}

        def change(e: Equation) -> Value | None:
            rule = _ALGEBRA.get(e.name)
            found = rule(e, makers) if rule is not None else None
            makers[e.results[0]] = e
            return found

        return change

    return _renamed(graph, begin)


def _same_type(e: Equation, x: Any) -> Value | None:
    """The operand, if the result has its shape and dtype."""
    out = e.results[0]
    same = x.__class__ is Value and isinstance(out, Value) and x.shape == out.shape and x.dtype == out.dtype
    return x if same else None


def _is(x: Any, number: float) -> bool:
    """Whether it is this number, or a constant whose elements all are, zeros with the same sign."""
    if x.__class__ is Value:
        if x.const is None or not isinstance(x.const, (np.ndarray, np.generic)) or x.const.dtype.kind not in "iuf":
            return False
        if not x.const.size or not (x.const == number).all():
            return False
        return bool(x.const.dtype.kind != "f" or (np.signbit(x.const) == np.signbit(number)).all())
    if x.__class__ not in (int, float):
        return False
    return bool(x == number and (x.__class__ is int or np.signbit(x) == np.signbit(number)))


def _kind(x: Any) -> str:
    return x.dtype.kind if x.__class__ is Value else ""


def _spread(x: Any, makers: Any) -> Any:
    """What is spread over the shape of a value: of shapes that stand for several tracing does not fold it."""
    maker = makers.get(x) if x.__class__ is Value else None
    return maker.operands[0] if maker is not None and maker.name == "broadcast_to" else x


def _multiplied(e: Equation, makers: Any) -> Value | None:
    x, y = e.operands
    if _kind(x) in ("i", "u", "f") and _is(_spread(y, makers), 1.0):
        return _same_type(e, x)
    return _same_type(e, y) if _kind(y) in ("i", "u", "f") and _is(_spread(x, makers), 1.0) else None


def _divided(e: Equation, makers: Any) -> Value | None:
    x, y = e.operands
    return _same_type(e, x) if _kind(x) == "f" and _is(_spread(y, makers), 1.0) else None


def _added(e: Equation, makers: Any) -> Value | None:
    x, y = e.operands
    for a, b in ((x, _spread(y, makers)), (y, _spread(x, makers))):
        if (_kind(a) in ("i", "u") and _is(b, 0.0)) or (_kind(a) == "f" and _is(b, -0.0) and b.__class__ is not int):
            return _same_type(e, a)
    return None


def _subtracted(e: Equation, makers: Any) -> Value | None:
    x, y = e.operands
    return _same_type(e, x) if _kind(x) in ("i", "u", "f") and _is(_spread(y, makers), 0.0) else None


def _negated(e: Equation, makers: Any) -> Value | None:
    before = makers.get(e.operands[0])
    return (
        before.operands[0] if before is not None and before.name == "negative" and _kind(e.operands[0]) != "u" else None
    )


def _unchanged(e: Equation, makers: Any) -> Value | None:
    return _same_type(e, e.operands[0])


def _permuted(e: Equation, makers: Any) -> Value | None:
    return (
        _same_type(e, e.operands[0]) if tuple(e.parameters["axes"]) == tuple(range(len(e.parameters["axes"]))) else None
    )


def _indexed(e: Equation, makers: Any) -> Value | None:
    """All elements: slices in steps of one that leave the shape as it is."""
    whole = all([isinstance(k, (slice, range)) and k.step in (None, 1) for k in e.parameters["key"]])
    return _same_type(e, e.operands[0]) if whole and len(e.operands) == 1 else None


_ALGEBRA: dict[str, Callable[[Equation, Any], Value | None]] = {
    "multiply": _multiplied,
    "divide": _divided,
    "add": _added,
    "subtract": _subtracted,
    "negative": _negated,
    "astype": _unchanged,
    "reshape": _unchanged,
    "broadcast_to": _unchanged,
    "index": _indexed,
    "permute_dims": _permuted,
}

# --- common subexpressions -----------------------------------------------------------------------


def common_subexpressions(graph: Graph) -> Graph:
    """Without equations that compute what another one has computed.

    What a backward pass computes again, as `checkpoint` asks it to, is not taken from before the pass, or it would have
    to be kept.
    """

    def begin() -> Change:
        seen: dict[Any, Any] = {}

        def change(e: Equation) -> Value | None:
            how = (e.name, e.backward, *map(identity, e.operands), identity(e.parameters))
            try:
                found = seen.setdefault(how, e.results[0])
            except TypeError:  # a parameter that has no hash
                return None
            return None if found is e.results[0] else found

        return change

    return _renamed(graph, begin)


def identity(x: Any) -> Any:
    """Equal for what gives equal results: 0.0 and -0.0 differ, and so do 1, 1.0 and True."""
    if isinstance(x, (float, complex)):
        return type(x), repr(x)
    if isinstance(x, (tuple, list)):
        return type(x), *map(identity, x)
    if isinstance(x, dict):
        return tuple([(name, identity(value)) for name, value in x.items()])
    if isinstance(x, slice):
        return slice, *map(identity, (x.start, x.stop, x.step))
    return type(x), x


# --- dead code -----------------------------------------------------------------------------------


def dead_code(graph: Graph) -> Graph:
    """Without what no output follows from. Checks, calls and the drawing of keys stay."""
    live: set[Name] = {*graph.outputs}
    kept = []
    for e in reversed(graph.equations):
        if e.has_effect or not live.isdisjoint(e.results):
            if e.name in _TRIMMED:
                e = _TRIMMED[e.name](e, live)
            left = [e]
        else:
            left = _labels_checked(e) if e.name in _LABELLED else []
        for e in reversed(left):
            kept.append(e)
            live.update(e.reads())
    return Graph(graph.inputs, kept[::-1], graph.outputs)


_LABELLED = ("softmax_cross_entropy", "labelled_cross_entropy")


def _labels_checked(e: Equation) -> list[Equation]:
    """What is left of losses that nobody reads: that labels are classes, of which their gradient takes no notice."""
    x, labels = e.operands
    if 0 in labels.shape:
        return []
    made: list[Equation] = []

    def add(name: str, *operands: Any, shape: Any = labels.shape, **parameters: Any) -> Value:
        out = Value(shape, dtypes.bool)
        made.append(Equation(name, operands, parameters, [out], backward=e.backward, line=e.line))
        return out

    classes = x.shape[-1]
    right = add("logical_and", add("greater_equal", labels, 0), add("less", labels, classes))
    if "ignore" in e.parameters:
        right = add("logical_or", right, add("equal", labels, e.parameters["ignore"]))
    holds = add("all", right, axis=tuple(range(len(labels.shape))), keepdims=False, shape=())
    made.append(Equation("check", [holds, labels], {"error": lambda values: no_class(values, classes)}, []))
    return made


def _read(graph: Graph) -> set[Name]:
    return {*graph.outputs, *[x for e in graph.equations for x in e.reads()]}


def _trimmed_branch(e: Equation, live: set[Name]) -> Equation:
    places = [i for i, x in enumerate(e.results) if x in live]
    graphs = [dead_code(Graph(g.inputs, g.equations, [g.outputs[i] for i in places])) for g in e.graphs]
    reads = [_read(g) for g in graphs]
    used = [i for i in range(len(e.operands) - 1) if any(g.inputs[i] in r for g, r in zip(graphs, reads, strict=True))]
    graphs = [Graph([g.inputs[i] for i in used], g.equations, g.outputs) for g in graphs]
    made = e.on([e.operands[0], *[e.operands[i + 1] for i in used]], graphs)
    made.results = [e.results[i] for i in places]
    return made


def _trimmed_loop(e: Equation, live: set[Name]) -> Equation:
    return e.on(e.operands, [dead_code(g) for g in e.graphs])


def _trimmed_scan(e: Equation, live: set[Name]) -> Equation:
    """Of what is carried along, that stays from which a result follows, in whatever step."""
    graph, n, m = e.graphs[0], e.parameters["count"], e.parameters["rows"]
    places = {i for i, x in enumerate(e.results) if x in live}
    while True:
        made = dead_code(Graph(graph.inputs, graph.equations, [graph.outputs[i] for i in sorted(places)]))
        reads = _read(made)
        more = {i for i in range(n) if graph.inputs[i] in reads} - places
        if not more:
            break
        places |= more
    kept = sorted(places)
    carried = [i for i in kept if i < n]
    along = [i for i in range(n, n + m) if graph.inputs[i] in reads]
    rest = [i for i in range(n + m, len(graph.inputs)) if graph.inputs[i] in reads]
    taken = [*carried, *along, *rest]
    made.inputs = [graph.inputs[i] for i in taken]
    trimmed = e.on([e.operands[i] for i in taken], [made])
    trimmed.results = [e.results[i] for i in kept]
    trimmed.parameters = {**e.parameters, "count": len(carried), "rows": len(along)}
    return trimmed


_TRIMMED: dict[str, Callable[[Equation, set[Name]], Equation]] = {
    "branch": _trimmed_branch,
    "while": _trimmed_loop,
    "scan": _trimmed_scan,
}

# --- what loops keep -----------------------------------------------------------------------------


def parts_kept(graph: Graph) -> Graph:
    """With loops that keep for a later one what it reads of an array in each step, not the array.

    So of an array that a loop carries along and writes to, its gradient needs the elements that steps read.
    """
    found = _parts_kept(graph)
    return graph if found is graph else dead_code(common_subexpressions(found))


def _parts_kept(graph: Graph) -> Graph:
    equations = [e.on(e.operands, [_parts_kept(g) for g in e.graphs]) if e.graphs else e for e in graph.equations]
    changed = any(a.graphs != b.graphs for a, b in zip(equations, graph.equations, strict=True))
    makers = {x: i for i, e in enumerate(equations) if e.name == "scan" for x in e.results[e.parameters["count"] :]}
    for i, e in enumerate(equations):
        n = e.parameters["count"] if e.name == "scan" else 0
        for x in e.operands[n : n + e.parameters["rows"]] if n or e.name == "scan" else ():
            if x in makers and (found := _reading_parts(equations[makers[x]], equations[i], x)) is not None:
                k = makers[x]
                equations[k], equations[i] = found
                makers.update(dict.fromkeys(equations[k].results[equations[k].parameters["count"] :], k))
                changed = True
    return Graph(graph.inputs, equations, graph.outputs) if changed else graph


def _reading_parts(first: Equation, later: Equation, stack: Any) -> tuple[Equation, Equation] | None:
    """Two loops, the first of which keeps what the later one reads of rows of a stack; None if that is not less."""
    if first.parameters["length"] != later.parameters["length"] or sum(x is stack for x in later.operands) != 1:
        return None
    body, goal = later.graphs[0], first.graphs[0]
    known = _counterparts(first, later)
    row = body.inputs[later.operands.index(stack)]
    readers = [e for e in body.equations if row in e.reads()]
    needed: set[Name] = {x for e in readers for x in e.results}
    for e in reversed(body.equations):
        if not needed.isdisjoint(e.results):
            needed.update(x for x in e.reads() if x not in known)
    made: list[Equation] = []
    for e in body.equations:
        if not needed.isdisjoint(e.results):
            if e.name not in TABLE or any(x not in known for x in e.reads()):
                return None
            results: list[Any] = [Value(x.shape, x.dtype) for x in e.results if isinstance(x, Value)]
            copy = Equation(
                e.name,
                [known.get(x, x) if x.__class__ is Value else x for x in e.operands],
                e.parameters,
                results,
                line=e.line,
            )
            copy.backward = first.backward
            made.append(copy)
            known.update(zip(e.results, results, strict=True))
    kept = [x for e in readers for x in e.results if isinstance(x, Value)]
    if row in body.outputs or not kept or 2 * sum(map(_bytes, kept)) > _bytes(row):
        return None
    length, n = first.parameters["length"], later.parameters["count"] + later.parameters["rows"]
    stacks = [Value((length, *x.shape), x.dtype) for x in kept]
    keeping = first.on(
        first.operands, [Graph(goal.inputs, [*goal.equations, *made], [*goal.outputs, *[known[x] for x in kept]])]
    )
    keeping.results = [*first.results, *stacks]
    left = [e for e in body.equations if e not in readers]
    reading = later.on(
        [*later.operands[:n], *stacks, *later.operands[n:]],
        [Graph([*body.inputs[:n], *kept, *body.inputs[n:]], left, body.outputs)],
    )
    reading.parameters = {**later.parameters, "rows": later.parameters["rows"] + len(kept)}
    return keeping, reading


def _counterparts(first: Equation, later: Equation) -> dict[Any, Any]:
    """What a step of the first loop has of what the same step of a later one is given."""
    n, m = first.parameters["count"], first.parameters["count"] + first.parameters["rows"]
    goal, body = first.graphs[0], later.graphs[0]
    rows = dict(zip(map(_array, first.operands[n:m]), goal.inputs[n:m], strict=True))
    rows.update(zip(first.results[n:], goal.outputs[n:], strict=True))
    rest = dict(zip(first.operands[m:], goal.inputs[m:], strict=True))
    n, m = later.parameters["count"], later.parameters["count"] + later.parameters["rows"]
    found = {
        x: rows[_array(y)] for x, y in zip(body.inputs[n:m], later.operands[n:m], strict=True) if _array(y) in rows
    }
    found.update((x, rest[y]) for x, y in zip(body.inputs[m:], later.operands[m:], strict=True) if y in rest)
    return found


def _array(x: Any) -> Any:
    """What two values have in common that are one array."""
    return id(x.const) if x.__class__ is Value and x.const is not None else x


def _bytes(x: Any) -> int:
    size: int = math.prod([n.value if is_size(n) else n for n in x.shape]) * x.dtype.itemsize
    return size


PASSES: Sequence[Callable[[Graph], Graph]] = (exact_algebra, common_subexpressions, dead_code, parts_kept)
