"""Integers of Python's that are traced, so that other values need no other recording."""

from __future__ import annotations

from collections.abc import Sequence

from adjoint.compiler.graph import Graph, Name, Value


def follow_from(graph: Graph, numbers: Sequence[Name]) -> set[Name] | None:
    """What follows from these integers alone; None where a tensor is less exact than Python's numbers would be.

    An integer tensor divided by another is a float of the default dtype, where Python's are 64 bits wide. That counts
    if it meets wider ones. Integers of Python's do not widen narrow ones that they meet.
    """
    found: set[Name] = set(numbers)
    widened: set[Name] = set()
    for e in graph.equations:
        reads = e.reads()
        touched = [x for x in reads if x in found]
        if touched and (e.graphs or e.name == "host"):
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
        elif touched and not widened.isdisjoint(reads):
            return None
        if (
            touched
            and len(touched) == len(reads)
            and not any(isinstance(x, Value) and x.const is not None and x.shape for x in e.operands)
        ):
            found.update(e.results)
    return found
