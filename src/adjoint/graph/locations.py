"""Source locations: which line of the user's made a node. Recorded only while that is asked for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from adjoint.backend import Implementation
from adjoint.graph.nodes import Node, Var
from adjoint.lines import Line

_keeping = False


def keep_values(on: bool) -> bool:
    """Keep results with their locations, for pictures, or stop it; returns what was before."""
    global _keeping
    before, _keeping = _keeping, on
    return before


class SourceLocation(Line):
    """Where a result was made, by which primitive, and from which tracked operands or constants."""

    __slots__ = ("name", "parents", "value")

    value: Any  # the result, only while values are kept

    def __init__(self, name: str, parents: list[Node | SourceLocation]) -> None:
        super().__init__()
        self.name: str = name
        self.parents: list[Node | SourceLocation] = parents


def sources_of(operands: Sequence[Any]) -> list[Node | SourceLocation]:
    found: list[Node | SourceLocation] = []
    for operand in operands:
        if operand.__class__ is Var:
            source = operand.node or getattr(operand, "location", None)
            if source is not None:
                found.append(source)
    return found


def location_of(name: str, sources: list[Node | SourceLocation], out: Var | None) -> SourceLocation:
    """The location of a result, which may be kept with it."""
    location = SourceLocation(name, sources)
    if _keeping and out is not None:
        location.value = out.value
    return location


def with_location(name: str, lifted: Implementation) -> Implementation:
    def run(*operands: Any, **parameters: Any) -> Any:
        out = lifted(*operands, **parameters)
        sources = sources_of(operands)
        if sources:
            location = location_of(name, sources, None if isinstance(out, tuple) else out)
            for var in out if isinstance(out, tuple) else (out,):
                node = var.node
                if node is None:
                    var.location = location
                elif not hasattr(node, "location"):
                    node.location = location
                    if node.result is not None:  # of several results: what is pulled back is their maker
                        node.first.location = location
        return out

    return run
