"""Source locations: which line of the user's made a node. Recorded only while that is asked for."""

from __future__ import annotations

import linecache
import os
import sys
from collections.abc import Sequence
from typing import Any

from adjoint.backend import Implementation
from adjoint.graph.nodes import Node, Var

_PACKAGE = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "")
WRITTEN = _PACKAGE + "<written>"  # the file of functions made from source: their frames are the package's too


class Line:
    """The innermost line on the stack that is not of this package: the user's."""

    __slots__ = ("file", "line")

    def __init__(self) -> None:
        frame = sys._getframe(1)
        while frame.f_back is not None and frame.f_code.co_filename.startswith(_PACKAGE):
            frame = frame.f_back
        self.file, self.line = frame.f_code.co_filename, frame.f_lineno

    def __str__(self) -> str:
        text = linecache.getline(self.file, self.line).strip()
        return f"{self.file}:{self.line}" + (f": {text}" if text else "")


class SourceLocation(Line):
    """Where a result was made, by which primitive, and from which tracked operands or constants."""

    __slots__ = ("name", "parents")

    def __init__(self, name: str, parents: list[Node | SourceLocation]) -> None:
        super().__init__()
        self.name = name
        self.parents = parents


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
