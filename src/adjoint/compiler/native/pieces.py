"""Slices that are assigned into zeros one after the other, as one array that is joined of them.

Gradients of slices are such: each is added to zeros of the whole, and these are added up.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from adjoint.compiler.graph import Equation, Graph, Value
from adjoint.primitives import slices

_NAMES = frozenset({"index_add", "index_set"})
_MOST = 15  # slices that are joined


def joined(graph: Graph) -> Graph:
    """The graph with such chains as `concat`, where all slices are of one axis and none overlaps another."""
    if not any(e.name in _NAMES for e in graph.equations):
        return graph
    makers = {x: e for e in graph.equations if e.name in _NAMES for x in e.results}
    often: dict[Any, int] = {}
    for x in [x for e in graph.equations for x in e.reads()] + list(graph.outputs):
        often[x] = often.get(x, 0) + 1
    made: dict[int, list[Equation]] = {}  # by the last equation of a chain
    gone: set[int] = set()
    for e in reversed(graph.equations):
        if e.name in _NAMES and id(e) not in gone:
            chain, base = [e], e.operands[0]
            while base in makers and often[base] == 1:
                chain.append(makers[base])
                base = chain[-1].operands[0]
            if len(chain) <= _MOST and _is_zero(base) and (new := _concat(chain)) is not None:
                made[id(e)] = new
                gone.update(map(id, chain[1:]))
    if not made:
        return graph
    equations = [new for e in graph.equations if id(e) not in gone for new in made.get(id(e), [e])]
    return Graph(graph.inputs, equations, graph.outputs)


def _is_zero(x: Any) -> bool:
    if x.__class__ is not Value or x.const is None or x.dtype.kind not in "fiu":
        return False
    return not np.any(x.const) and not (x.dtype.kind == "f" and np.signbit(x.const).any())


def _concat(chain: Sequence[Equation]) -> list[Equation] | None:
    out: Any = chain[0].results[0]
    found: list[tuple[list[tuple[int, int]], Equation]] = []
    along: int | None = None
    for e in chain:
        if len(e.operands) != 2 or e.operands[1].__class__ is not Value or e.operands[1].dtype != out.dtype:
            return None
        if (box := _box(e, out.shape)) is None:
            return None
        for axis, (start, stop) in enumerate(box):
            if (start, stop) != (0, out.shape[axis]) and axis != along:
                if along is not None:
                    return None
                along = axis
        found.append((box, e))
    if along is None:
        return None
    axis, place, last = along, 0, chain[0]
    parts: list[Any] = []
    equations: list[Equation] = []

    def whole(size: int) -> tuple[int, ...]:
        return (*out.shape[:axis], size, *out.shape[axis + 1 :])

    def zeros(size: int) -> list[Value]:
        zero = np.zeros((), out.dtype)
        return [Value(whole(size), out.dtype, np.broadcast_to(zero, whole(size)))] if size else []

    for (start, stop), e in sorted([(box[along], e) for box, e in found], key=lambda piece: piece[0]):
        if start < place:
            return None
        made = _piece(e, whole(stop - start))
        equations += made
        parts += [*zeros(start - place), made[-1].results[0] if made else e.operands[1]]
        place = stop
    parts += zeros(out.shape[axis] - place)
    return [*equations, Equation("concat", parts, {"axis": axis}, [out], backward=last.backward, line=last.line)]


def _box(e: Equation, shape: Sequence[int]) -> list[tuple[int, int]] | None:
    """Of each axis where the slice begins and ends; None of other keys than slices of neighbours and numbers."""
    found: list[tuple[int, int]] = []
    for entry in slices(e.parameters["key"]):
        if len(found) == len(shape) or not isinstance(entry, (int, slice)):
            return None
        n = shape[len(found)]
        if isinstance(entry, int):
            entry = slice(entry % n, entry % n + 1)
        start, stop, step = entry.indices(n)
        if step != 1 or stop <= start:
            return None
        found.append((start, stop))
    return [*found, *[(0, n) for n in shape[len(found) :]]]


def _piece(e: Equation, shape: Sequence[int]) -> list[Equation]:
    """What is assigned, in the shape of its place: added to zero where it is added, which counts for -0."""
    x: Any = e.operands[1]
    made: list[Equation] = []

    def then(name: str, to: Sequence[int], *more: Any, **parameters: Any) -> None:
        before = made[-1].results[0] if made else x
        result = Value(tuple(to), x.dtype)
        made.append(Equation(name, [before, *more], parameters, [result], backward=e.backward, line=e.line))

    if math.prod(x.shape) != math.prod(shape):
        taken = [n for n, entry in zip(shape, slices(e.parameters["key"]), strict=False) if not isinstance(entry, int)]
        to = (*taken, *shape[len(slices(e.parameters["key"])) :])
        then("broadcast_to", to, shape=to)
    if tuple((made[-1].results[0] if made else x).shape) != tuple(shape):  # type: ignore[union-attr]
        then("reshape", shape, shape=tuple(shape))
    if e.name == "index_add" and x.dtype.kind == "f":
        then("add", shape, 0.0)
    return made
