"""Assignments to parts of arrays: a copy and then the part, or the part alone where nobody needs the old array.

What a loop carries along is written in place if its old values are not read after that. So `x[i] = v` in a step costs
what it writes, and not what x has. Equations are put in an order in which writes come after reads.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from adjoint.compiler.graph import Equation, Graph, Value
from adjoint.compiler.native.elements import constant
from adjoint.compiler.native.kernels import Host
from adjoint.compiler.native.views import contiguous, is_view, picked, view
from adjoint.compiler.sizes import has_sizes
from adjoint.primitives import broadcast_shapes, index_shape, slices
from adjoint.primitives.sizes import as_recorded

if TYPE_CHECKING:
    from adjoint.compiler.native.plan import Plan

_COPIED = 1 << 12  # elements of an array of which a part is assigned to
_WRITES = frozenset({"index_set", "index_add", "index_max", "index_min", "index_multiply"})

Prepare = Callable[[Graph], Graph]
Pairs = Sequence[tuple[int, int]]


# --- which arrays are written in place -----------------------------------------------------------


def in_place(graph: Graph, pairs: Pairs, prepare: Prepare) -> tuple[Graph, dict[Value, Value]]:
    """The graph with its equations in an order in which outputs may lie in the memory of inputs, as pairs of numbers
    say; and of each value that does, up to such an output, the input. A pair for which there is no such order is left
    out. `prepare` makes of the graph of a choice what machine code is made of.
    """
    memory: dict[Value, Value] = {}
    equations, after = graph.equations, [set[int]() for _ in graph.equations]
    makers = {x: i for i, e in enumerate(equations) for x in e.results}
    for place, out in pairs:
        start: Any = graph.inputs[place]
        chain = _chain(graph, start, graph.outputs[out], makers, prepare)
        if chain is None:
            continue
        more = _reads_before(graph, start, chain, after)
        order = None if more is None else _ordered(equations, makers, more)
        if more is not None and order is not None:
            after = more
            memory.update(dict.fromkeys([x for _, x in chain], start))
    order = _ordered(equations, makers, after) if memory else None
    return (graph if order is None else Graph(graph.inputs, [equations[i] for i in order], graph.outputs)), memory


def _chain(
    graph: Graph, start: Any, out: Any, makers: dict[Any, int], prepare: Prepare
) -> list[tuple[int, Any]] | None:
    """The equations, by number, that make an output of an input by writing to it, and what each gives."""
    found: list[tuple[int, Any]] = []
    while out is not start:
        if out not in makers:
            return None
        e = graph.equations[makers[out]]
        found.append((makers[out], out))
        before = _written_by(e, out, prepare)
        if before is None or before.spec() != out.spec():
            return None
        out = before
    inner = {x for _, x in found[1:]}
    return None if any(x in inner for x in graph.outputs) else found[::-1]


def _written_by(e: Equation, out: Any, prepare: Prepare) -> Any:
    """The operand that an equation could write to instead of making a new array."""
    if e.name in _WRITES or e.name == "real":
        found = e.operands[0]
        return found if found.__class__ is Value and found.const is None else None
    k = e.results.index(out)
    if e.name in ("scan", "while") and k < e.parameters["count"]:
        found = e.operands[k]
    elif e.name == "branch":
        place = _place_in_all(e, k, prepare)
        if place is None:
            return None
        found = e.operands[place + 1]
    else:
        return None
    return found if found.const is None and sum(x is found for x in e.operands) == 1 else None


def _place_in_all(e: Equation, k: int, prepare: Prepare) -> int | None:
    """The number of the input that each graph of a choice may write to, to make an output."""
    places: set[int | None] = set()
    for g in map(prepare, e.graphs):
        makers = {x: i for i, step in enumerate(g.equations) for x in step.results}
        found = [
            i for i, x in enumerate(g.inputs) if _chain(g, x, g.outputs[k], makers, prepare) is not None
        ]  # one at most
        places.add(found[0] if found and in_place(g, [(found[0], k)], prepare)[1] else None)
    return places.pop() if len(places) == 1 else None


def _reads_before(
    graph: Graph, start: Any, chain: list[tuple[int, Any]], after: list[set[int]]
) -> list[set[int]] | None:
    """For each equation those that come before it, with those that read what a chain writes to."""
    made = [set(x) for x in after]
    version = {start}
    for number, out in chain:
        e = graph.equations[number]
        if e.name == "real":
            version.add(out)
            continue
        seen = set(version)
        for i, other in enumerate(graph.equations):
            if seen.isdisjoint(x for x in other.operands if x.__class__ is Value):
                continue
            if i != number:
                made[number].add(i)
                seen.update(other.results if is_view(other) else ())
        if e.graphs and sum(x in seen for x in e.operands) > 1:  # a part of what it writes to, in each step
            return None
        version = {out}
    return made


def _ordered(equations: Sequence[Equation], makers: dict[Any, int], after: list[set[int]]) -> list[int] | None:
    """The numbers of equations in an order in which each comes after those that it has to; None if there is none."""
    waits = [{makers[x] for x in e.reads() if x in makers} | more for e, more in zip(equations, after, strict=True)]
    later: list[list[int]] = [[] for _ in equations]
    for i, before in enumerate(waits):
        for k in before:
            later[k].append(i)
    left = [len(before) for before in waits]
    ready = [i for i, n in enumerate(left) if not n]
    order: list[int] = []
    while ready:
        i = heapq.heappop(ready)
        order.append(i)
        for k in later[i]:
            left[k] -= 1
            if not left[k]:
                heapq.heappush(ready, k)
    return order if len(order) == len(equations) else None


# --- steps of a plan -----------------------------------------------------------------------------


def place(plan: Plan, out: Any) -> Value:
    """Have a value lie in the memory of an input, which it gives."""
    start = plan.memory[out]
    plan.layout[out], plan.root[out] = contiguous(out.shape), start
    return start


def pairs_of(plan: Plan, e: Equation) -> Pairs:
    """Of a choice the operands and the results that lie in their memory, as numbers."""
    starts = [plan.root.get(x, x) for x in e.operands[1:]]
    return [(starts.index(plan.memory[x]), k) for k, x in enumerate(e.results) if x in plan.memory]


def take_unchanged(plan: Plan, e: Equation) -> bool:
    """What lies in the memory of an input, with nothing written."""
    if e.results[0] not in plan.memory:
        return False
    place(plan, e.results[0])
    return True


def take_assignment(plan: Plan, e: Equation) -> bool:
    """A copy, and then the part that is assigned to."""
    if len(e.operands) > 2:
        return take_scatter(plan, e)
    given, value = e.operands[:2]
    x: Any = plan.spread.get(given, given)
    (out,), key = e.results, e.parameters["key"]
    found = Equation("index", [x], {"key": key}, [Value(index_shape(out.shape, key=key), out.dtype)])  # type: ignore[union-attr]
    if x.__class__ is not Value or not is_view(found):
        return False
    assert isinstance(out, Value)
    if as_recorded(math.prod(out.shape)) > _COPIED and x.const is None and out not in plan.memory:
        return False
    if value.__class__ is Value and (value.dtype != out.dtype or not math.prod(value.shape)):
        return False
    (old,) = found.results
    assert isinstance(old, Value)
    if not math.prod(old.shape):
        _begun(plan, x, out, [])
        return True
    layout = view(found, contiguous(out.shape))
    assert layout is not None
    if x.const is not None and not x.shape:
        old = x
    elif x.const is not None and has_sizes(key):
        return False
    elif x.const is not None:
        old = Value(old.shape, old.dtype, np.asarray(x.const)[slices(key)])
    elif e.name == "index_add" and not plan._take_view(found):
        return False
    if e.name == "index_add" and not plan._supported(Equation("add", [old, value], {}, [old])):
        return False
    if e.name == "index_set" and value.__class__ is not Value:
        return False
    whole, step, (value,) = _begun(plan, x, out, [value])
    if e.name == "index_add":
        plan._take_part(old, whole, layout, "add", [value], after=step)
    else:
        plan._take_part(value, whole, layout, after=step)
    return True


def take_scatter(plan: Plan, e: Equation) -> bool:
    """A copy, and then values at places that arrays name, one after the other."""
    (x, value, *arrays), (out,) = e.operands, e.results
    if not arrays or x.__class__ is not Value or not plan._names_places(arrays):
        return False
    assert isinstance(out, Value)
    if constant(value) is None and (value.__class__ is not Value or value.dtype != out.dtype):
        return False
    if out.dtype.kind == "b" and e.name != "index_set":
        return False
    common = broadcast_shapes(*[a.shape for a in arrays])
    layout, places, after = picked(contiguous(out.shape), e.parameters["key"], common)
    whole, step, (value, *arrays) = _begun(plan, x, out, [value, *arrays])
    if not math.prod(layout.shape):
        return True
    indices = [plan._followed(a, after) for a in arrays]
    plan._take_part(value, whole, layout, "scatter", indices, after=step, places=places, join=e.name)
    return True


def _begun(plan: Plan, x: Any, out: Value, values: Sequence[Any]) -> tuple[Value, int, list[Any]]:
    """The array whose part is written, the step after which it may be, and values that do not change meanwhile."""
    if out not in plan.memory:
        return out, plan._take_part(x, out, contiguous(out.shape)), list(values)
    start = place(plan, out)
    values = [plan._copied(y) if plan.root.get(y, y) is start else y for y in values]
    steps = [(i, step) for i, step in enumerate(plan.steps) if not isinstance(step, Host)]
    reads = [i for i, step in steps if any(plan.root.get(x, x) is start for x in step.read)]
    return start, max([plan.place[start], *reads[-1:]]), values
