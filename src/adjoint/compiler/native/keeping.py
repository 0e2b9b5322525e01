"""What loops would make again: products of an earlier loop, where there is room, and transposes in each step.

The gradient of a scan computes each step again from what it began with. Elementwise functions take little time for
that, products most of what the loop takes. So the first loop hands on what it made with products, as one more stack.
A matrix that is the same in all steps, and whose transpose a product reads row by row, is turned once before the loop.
"""

from __future__ import annotations

import math
from typing import Any

from adjoint.compiler.graph import Equation, Graph, Value
from adjoint.compiler.native.elements import EMITTERS
from adjoint.compiler.passes import dead_code, identity


def kept(graph: Graph) -> Graph:
    """The graph whose loops take such values from earlier ones."""
    if not any(e.graphs for e in graph.equations):
        return graph
    equations: list[Equation] = []
    for e in graph.equations:
        if e.graphs:
            e = e.on(e.operands, [kept(g) for g in e.graphs])
        if e.name == "scan":
            for i, first in enumerate(equations):
                if first.name == "scan" and first.parameters["length"] == e.parameters["length"]:
                    equations[i], e = _joined(first, e)
        equations.append(e)
    return Graph(graph.inputs, [x for e in equations for x in (_turned(e) if e.name == "scan" else [e])], graph.outputs)


def _turned(e: Equation) -> list[Equation]:
    """A loop to which transposes are given, and these before it."""
    body, first = e.graphs[0], e.parameters["count"] + e.parameters["rows"]
    given = dict(zip(body.inputs[first:], e.operands[first:], strict=True))
    read = {
        step.operands[1] for step in body.equations if step.name == "matmul" and step.operands[1].__class__ is Value
    }
    before, inputs, operands, left = [], list(body.inputs), list(e.operands), []
    for step in body.equations:
        x: Any = given.get(step.operands[0]) if step.name == "permute_dims" else None
        if x.__class__ is not Value or x.const is not None or len(x.shape) != 2 or step.results[0] not in read:
            left.append(step)
            continue
        out: Any = step.results[0]
        turned = Value(out.shape, x.dtype)
        before.append(Equation("permute_dims", [x], step.parameters, [turned], backward=e.backward, line=e.line))
        inputs.append(out)
        operands.append(turned)
    if not before:
        return [e]
    return [*before, e.on(operands, [dead_code(Graph(inputs, left, body.outputs))])]


def _joined(first: Equation, e: Equation) -> tuple[Equation, Equation]:
    """Two loops, of which the later one reads what the earlier one made; the same two where there is nothing."""
    wanted = _wanted(first, e)
    stacked = sum([math.prod(x.shape) for x in _rows(first) + _rows(e)])
    if not wanted or sum([math.prod(x.shape) for x in wanted]) > stacked:
        return first, e  # memory may not grow beyond what stacks of both have already, twice
    body, length, count = first.graphs[0], first.parameters["length"], first.parameters["count"]
    outputs, results = list(body.outputs), list(first.results)
    stacks = []
    for x in wanted.values():
        if x not in outputs[count:]:
            outputs.append(x)
            results.append(Value((length, *x.shape), x.dtype))
        stacks.append(results[outputs.index(x, count)])
    earlier = first.on(first.operands, [Graph(body.inputs, body.equations, outputs)])
    earlier.results = results
    inner, n, m = e.graphs[0], e.parameters["count"], e.parameters["rows"]
    inputs = [*inner.inputs[: n + m], *wanted, *inner.inputs[n + m :]]
    left = [step for step in inner.equations if wanted.keys().isdisjoint(step.results)]
    later = e.on([*e.operands[: n + m], *stacks, *e.operands[n + m :]], [dead_code(Graph(inputs, left, inner.outputs))])
    later.parameters = {**e.parameters, "rows": m + len(stacks)}
    return earlier, later


def _rows(e: Equation) -> list[Any]:
    """What a step reads of stacks, and writes to them."""
    n, m, body = e.parameters["count"], e.parameters["rows"], e.graphs[0]
    return [*body.inputs[n : n + m], *body.outputs[n:]]


def _wanted(first: Equation, e: Equation) -> dict[Value, Value]:
    """Values of a step of the later loop that products are in, each with what it is in the earlier one."""
    known = _shared(first, e)
    made: dict[Any, list[Any]] = {}  # in the earlier loop, by what it is made of
    for step in first.graphs[0].equations:
        if not step.graphs and (key := _key(step, {})) is not None:
            made[key] = step.results
    readers: dict[Any, list[Equation | None]] = {}
    for step in e.graphs[0].equations:
        for x in step.reads():
            readers.setdefault(x, []).append(step)
        if not step.graphs and (key := _key(step, known)) in made:
            known.update(zip(step.results, made[key], strict=True))
    for x in e.graphs[0].outputs:
        readers.setdefault(x, []).append(None)
    found: dict[Value, Value] = {}
    for step in e.graphs[0].equations:
        if step.name == "matmul" and (x := step.results[0]) in known:
            while len(readers.get(x, ())) == 1 and (reader := readers[x][0]) is not None:
                out = reader.results[0]
                if reader.name not in EMITTERS or out not in known or out.shape != x.shape:  # type: ignore[union-attr]
                    break
                x = out
            found[x] = known[x]  # type: ignore[index]
    return found


def _shared(first: Equation, e: Equation) -> dict[Any, Any]:
    """What steps of the later loop are given that those of the earlier one are given, or give, at the same row."""
    n, m, body = first.parameters["count"], first.parameters["rows"], first.graphs[0]
    rows = dict(zip(first.operands[n : n + m], body.inputs[n : n + m], strict=True))
    rows.update(zip(first.results[n:], body.outputs[n:], strict=True))
    same = dict(zip(first.operands[n + m :], body.inputs[n + m :], strict=True))
    n, m, inner = e.parameters["count"], e.parameters["rows"], e.graphs[0]
    found: dict[Any, Any] = {}
    for k, (operand, x) in enumerate(zip(e.operands[n:], inner.inputs[n:], strict=True)):
        mine = (rows if k < m else same).get(operand)
        if mine is not None:
            found[x] = mine
    return found


def _key(e: Equation, known: dict[Any, Any]) -> Any:
    """Equal for what gives equal results, if `known` says what its operands are; None of what has no such key."""
    operands = [known.get(x, x) if x.__class__ is Value else identity(x) for x in e.operands]
    key = e.name, identity(e.parameters), *operands
    try:
        hash(key)
    except TypeError:  # a parameter that has no hash
        return None
    return key
