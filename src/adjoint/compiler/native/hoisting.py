"""Sums that a loop carries along, and whose parts can wait: added all at once behind the loop.

The gradient of `x[i]` in a step is such a sum. Taken as it is recorded, each step adds an array as large as x, most of
it zeros. The gradient of `w` in `h @ w` is one, too: behind the loop, one product has the rows of all steps.
Elements at one place are added in another order than step by step.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from adjoint.compiler.graph import Equation, Graph, Value
from adjoint.compiler.passes import dead_code
from adjoint.primitives.indexing import ARRAY, Key, index_shape

_FEW = 64  # elements: a smaller sum stays in the loop
_TIMES = 8  # so many times fewer than the sum has are added in a step
_ROOM = 1 << 24  # elements of all steps that are kept until then


class _Sum(NamedTuple):
    """What steps add to the array that they carry at a place."""

    place: int
    added: list[Equation]  # by `index_add`, the first one to zeros, or one product, and how it is turned
    dead: list[Equation]  # what the step need not do any more


def hoisted(graph: Graph) -> Graph:
    """The graph with such sums behind its loops."""
    if not any(e.graphs for e in graph.equations):
        return graph
    equations: list[Equation] = []
    for e in graph.equations:
        if e.graphs:
            e = e.on(e.operands, [hoisted(g) for g in e.graphs])
        sums = _sums(e) if e.name == "scan" else []
        equations += _behind(e, sums) if sums else [e]
    return Graph(graph.inputs, equations, graph.outputs)


def _sums(e: Equation) -> list[_Sum]:
    body, length = e.graphs[0], e.parameters["length"]
    if length.__class__ is not int or not length:
        return []
    makers = {x: step for step in body.equations for x in step.results}
    often: dict[Any, int] = {}
    for x in [x for step in body.equations for x in step.reads()] + [x for x in body.outputs if x.const is None]:
        often[x] = often.get(x, 0) + 1
    defined = {*body.inputs, *makers}
    stacked = {*body.inputs[e.parameters["count"] :][: e.parameters["rows"]], *body.outputs[e.parameters["count"] :]}
    found = []
    for k in range(e.parameters["count"]):
        carried, out = body.inputs[k], body.outputs[k]
        last = makers.get(out)
        if last is None or last.name != "add" or carried not in last.operands or last.operands[0] is last.operands[1]:
            continue
        (more,) = [x for x in last.operands if x is not carried]
        size = math.prod(out.shape)
        alone = often[carried] == often[out] == 1 and more.__class__ is Value and more.spec() == out.spec()
        if not alone or size <= _FEW:
            continue

        def chain(x: Any, name: str) -> tuple[list[Equation], Any]:
            """What such equations alone make of a value, and that value."""
            steps: list[Equation] = []
            while x in makers and makers[x].name == name and often[x] == 1:
                steps.insert(0, makers[x])
                x = makers[x].operands[0]
            return steps, x

        added, x = chain(more, "index_add")
        if added and _is_zero(x) and all(_can_wait(a, size, length, defined) for a in added):
            found.append(_Sum(k, added, [last, *added]))
        turns, x = chain(more, "permute_dims")
        products, _ = chain(x, "matmul")
        if products and _rows_can_wait(products[-1], size, length, defined, stacked, makers):
            found.append(_Sum(k, [products[-1], *turns], [last, products[-1], *turns]))
    return found


def _turned(x: Any, makers: dict[Any, Equation]) -> tuple[Any, bool]:
    """A matrix, or that of which it is the transpose."""
    maker = makers.get(x)
    if maker is not None and maker.name == "permute_dims" and maker.parameters["axes"] == (1, 0):
        return maker.operands[0], True
    return x, False


def _rows_can_wait(
    e: Equation, size: int, length: int, defined: set[Any], stacked: set[Any], makers: dict[Any, Equation]
) -> bool:
    """Whether the products of all steps are one, of stacks that are there or smaller than what they are added to."""
    if any(x.__class__ is not Value or len(x.shape) != 2 or x not in defined for x in e.operands):
        return False
    new = {x for x, _ in [_turned(x, makers) for x in e.operands]} - stacked
    count = sum(math.prod(x.shape) for x in new)
    return new <= defined and count <= size and count * length <= _ROOM


def _is_zero(x: Any) -> bool:
    """Whether it is a constant of zeros, none of them -0."""
    if x.__class__ is not Value or not isinstance(x.const, np.ndarray) or x.const.dtype.kind not in "iuf":
        return False
    return not x.const.any() and not (x.const.dtype.kind == "f" and np.signbit(x.const).any())


def _can_wait(e: Equation, size: int, length: int, defined: set[Any]) -> bool:
    """Whether what all steps add is a stack that one `index_add` takes."""
    (_, value, *arrays), key = e.operands, e.parameters["key"]
    if _axis(key) is None or any(x not in defined for x in (value, *arrays)):
        return False
    if len({len(x.shape) for x in arrays}) != 1 or value.dtype != e.results[0].dtype:  # type: ignore[union-attr]
        return False
    shape = index_shape(e.results[0].shape, *[x.shape for x in arrays], key=key)  # type: ignore[union-attr]
    count = math.prod(shape)
    return bool(value.shape == shape and 0 < count * _TIMES <= size and count * length <= _ROOM)


def _axis(key: Key) -> int | None:
    """Where the axes of arrays in a key stand in what it picks, which is where that of their stacks will."""
    places = [i for i, entry in enumerate(key) if entry is ARRAY]
    if not places or not places[0]:
        return 0 if places else None
    adjacent = len(places) == places[-1] - places[0] + 1 and not any(isinstance(entry, int) for entry in key)
    return places[0] if adjacent else None


def _behind(e: Equation, sums: list[_Sum]) -> list[Equation]:
    """The loop without the sums, which gives what is added, and the additions."""
    body, length = e.graphs[0], e.parameters["length"]
    n, m = e.parameters["count"], e.parameters["rows"]
    gone = {s.place for s in sums}
    dead = {id(x) for s in sums for x in s.dead}
    kept = [k for k in range(len(body.inputs)) if k not in gone]
    inner = Graph(
        [body.inputs[k] for k in kept],
        [step for step in body.equations if id(step) not in dead],
        [x for k, x in enumerate(body.outputs) if k not in gone],
    )
    results = [x for k, x in enumerate(e.results) if k not in gone]
    makers = {x: step for step in body.equations for x in step.results}
    stacks: dict[Any, Any] = {body.inputs[n + i]: e.operands[n + i] for i in range(m)}  # by what a step has of them
    stacks.update((x, stack) for x, stack in zip(body.outputs[n:], e.results[n:], strict=True) if x.const is None)

    def stack(x: Value) -> Any:
        if x not in stacks:
            stacks[x] = Value((length, *x.shape), x.dtype)
            inner.outputs.append(x)
            results.append(stacks[x])
        return stacks[x]

    after: list[Equation] = []
    for s in sums:
        total: Any = e.operands[s.place]
        if not _is_zero(total):
            total, before = Value(total.shape, total.dtype), total  # a sum with 0 is never -0
            zero = np.zeros((), total.dtype)
            after.append(_like(s.added[0], "add", [before, Value((), zero.dtype, zero)], {}, total))
        if s.added[0].name == "matmul":
            after += _product_behind(e, s, total, makers, stack)
            continue
        for i, a in enumerate(s.added):
            whole: Any = e.results[s.place]
            out = whole if i == len(s.added) - 1 else Value(whole.shape, whole.dtype)
            values, *arrays = [stack(x) for x in a.operands[1:]]
            if axis := _axis(a.parameters["key"]):
                axes = (*range(1, axis + 1), 0, *range(axis + 1, len(values.shape)))
                values, before = Value(tuple([values.shape[k] for k in axes]), values.dtype), values
                after.append(_like(a, "permute_dims", [before], {"axes": axes}, values))
            after.append(_like(a, a.name, [total, values, *arrays], a.parameters, out))
            total = out
    made = e.on([e.operands[k] for k in kept], [dead_code(inner)])
    made.results = results
    made.parameters = {**e.parameters, "count": n - len(gone)}
    return [made, *after]


def _product_behind(
    e: Equation, s: _Sum, total: Any, makers: dict[Any, Equation], stack: Callable[[Value], Any]
) -> list[Equation]:
    """One product, whose sums go over what those of all steps did, and what is done with it."""
    product, *turns = s.added
    made: list[Equation] = []

    def put(name: str, x: Any, out: tuple[int, ...], parameters: dict[str, Any]) -> Value:
        y = Value(out, x.dtype)
        made.append(_like(product, name, [x], parameters, y))
        return y

    def reshaped(x: Any, *shape: int) -> Value:
        return put("reshape", x, shape, {"shape": shape})

    def turned(x: Any, *axes: int) -> Value:
        return put("permute_dims", x, tuple([x.shape[k] for k in axes]), {"axes": axes})

    (x, x_turned), (y, y_turned) = [_turned(z, makers) for z in product.operands]
    (rows, summed), (_, columns) = [z.shape for z in product.operands]
    x, y = stack(x), stack(y)
    count = x.shape[0] * summed
    x = turned(reshaped(x, count, rows), 1, 0) if x_turned else reshaped(turned(x, 1, 0, 2), rows, count)
    y = reshaped(turned(y, 0, 2, 1) if y_turned else y, count, columns)
    out: Any = Value((rows, columns), x.dtype)
    made.append(_like(product, "matmul", [x, y], product.parameters, out))
    for turn in turns:
        out = turned(out, *turn.parameters["axes"])
    made.append(_like(product, "add", [total, out], {}, e.results[s.place]))
    return made


def _like(e: Equation, name: str, operands: list[Any], parameters: dict[str, Any], out: Any) -> Equation:
    return Equation(name, operands, parameters, [out], backward=e.backward, line=e.line)
