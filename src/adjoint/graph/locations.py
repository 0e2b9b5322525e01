"""Source locations: which line of the user's made a node. Recorded only while that is asked for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from adjoint.backend import Implementation
from adjoint.graph.nodes import Node, Var
from adjoint.lines import Line


class SourceLocation(Line):
    """Where a result was made, by which primitive, and from which tracked operands or constants."""

    __slots__ = ("name", "parents")

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


def with_location(name: str, lifted: Implementation) -> Implementation:
    def run(*operands: Any, **parameters: Any) -> Any:
        out = lifted(*operands, **parameters)
        sources = sources_of(operands)
        if sources:
            location = SourceLocation(name, sources)
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
