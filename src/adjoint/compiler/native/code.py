"""The machine code of a program: what an earlier process made of its graph, or what is written and compiled now."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence

from adjoint.compiler.graph import Graph
from adjoint.compiler.native.calls import Call
from adjoint.compiler.native.linked import machine
from adjoint.compiler.native.machine import emitted, stored_or_emitted
from adjoint.compiler.native.remembered import Division, Entry


class Code:
    """Calls of machine code, for a graph that may write over some inputs; `apart` has one for each kernel."""

    calls: list[Call]

    def __init__(
        self, graph: Graph, donated: Sequence[int], apart: bool, remembered: bool = True, any_size: bool = False
    ) -> None:
        self._donated = {graph.inputs[i] for i in donated}
        self._apart, self._any_size = apart, any_size
        self._numbers = itertools.count()
        self._entry = Entry(graph, donated) if remembered and not apart else None
        found = self._entry.load() if self._entry is not None else None
        self._divisions: list[Division] = []  # of the graph and those of its loops, in order
        self._left: Iterator[Division] | None = iter(found[0]) if found is not None else None
        self._made: bytes | None = found[1] if found is not None else None
        self.calls = []

    def divided(self, graph: Graph) -> Graph:
        """A graph, the program's or that of a loop of it, with calls of machine code in it."""
        if self._left is not None:
            division = next(self._left)
        else:
            from adjoint.compiler.native.steps import with_regions  # these are long, and need not be read again

            prefix = "any" if self._any_size else "n"  # symbols of sizes are called n0, n1
            number = lambda: f"{prefix}{next(self._numbers)}"
            # what is donated may be written over by the time of a check
            division = with_regions(graph, number, self._donated, not self._donated, self._apart)
            self._divisions.append(division)
        made, calls = division
        self.calls += calls
        return made

    def close(self) -> None:
        """All graphs are there: that there is no machine code in them is kept at once."""
        if self._entry is not None and self._divisions and not self.calls:
            self._entry.store(self._divisions, b"")

    def text(self) -> str:
        """What LLVM compiles."""
        from adjoint.compiler.native.entry import module

        return module(self.calls)  # type: ignore[arg-type]  # they are what was written here

    def link(self) -> dict[str, Callable[..., bool]]:
        """The functions by their names, ready to run."""
        made, shares = self._made, any(call.shares for call in self.calls)
        if made is not None and self._entry is not None and self._entry.key is not None:
            linked = machine(self._entry.key, lambda: made, shares)
        else:
            text = self.text()
            linked = machine(text, lambda: self._emitted(text), shares)
        return {call.name: linked.function(call.name) for call in self.calls}

    def _emitted(self, text: str) -> bytes:
        if self._entry is None or self._entry.key is None:
            return stored_or_emitted(text)
        code = emitted(text)
        self._entry.store(self._divisions, code)
        return code
