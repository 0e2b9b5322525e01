"""Graphs of which an earlier process has made machine code: then nothing is planned, written or compiled again.

A file has the graph that Python runs, with calls of machine code in it, and the code. Its name follows from all that
these depend on: the graph with its constants, the inputs that may be written over, this package's source, the
processor, and the versions. Functions in a graph count by their place alone, as nothing that is written depends on
what they do. Graphs with primitives of the user's are left out, since these may be declared in another way.
"""

from __future__ import annotations

import functools
import hashlib
import io
import os
import pickle
import sys
from collections.abc import Sequence
from typing import Any

import numpy as np

from adjoint.compiler.graph import Equation, Graph, Key, Value
from adjoint.compiler.native import stored
from adjoint.compiler.native.calls import Call
from adjoint.compiler.native.machine import processor
from adjoint.lines import IMPORTED, PACKAGE, Line
from adjoint.primitives import TABLE
from adjoint.user_primitives import BUILT_IN

Division = tuple[Graph, Sequence[Call]]  # a graph with calls of machine code in it, and these

# Folders of what is read when machine code is written, beside the files beside them.
_SOURCE = ("backends", "compiler", "decorators", "functions", "graph", "primitives", "rules")
_TICK = 50_000_000  # nanoseconds by which clocks of files may be late
_CONSTANTS = 1 << 22  # bytes of constants: more take longer to look at than code to make


class Entry:
    """The file of a graph; `key` is None where there can be none."""

    key: str | None = None

    def __init__(self, graph: Graph, donated: Sequence[int]) -> None:
        self._objects: list[Any] = []  # of the graph, in order
        self._places: dict[int, int] = {}
        self._opaque: set[int] = set()
        if stored.folder() is None or (source := _source_at_first()) is None or not self._walk(graph):
            return
        if sum([x.nbytes for x in self._objects if isinstance(x, np.ndarray)]) > _CONSTANTS:
            return
        content = io.BytesIO()
        try:
            _Namer(content, {i: self._places[i] for i in self._opaque}).dump((graph, list(donated)))
        except Exception:  # whatever a pickle refuses has no name
            return
        versions = source, processor(), np.__version__, sys.version
        self.key = hashlib.sha256(repr(versions).encode() + content.getvalue()).hexdigest()

    def _walk(self, graph: Graph) -> bool:
        """Note values, and what has no value that could be compared; whether all primitives are this package's."""
        for x in (*graph.inputs, *graph.outputs):
            self._note(x)
        for e in graph.equations:
            own = e.name in TABLE
            if own and e.name not in BUILT_IN:
                return False
            for x in (*e.operands, *e.results, *e.parameters.values()):
                self._note(x)
            for x in (e.line, *([] if own else e.parameters.values())):
                if isinstance(x, Line) or callable(x):
                    self._note(x, True)
            if not all(map(self._walk, e.graphs)):
                return False
        return True

    def _note(self, x: Any, opaque: bool = False) -> None:
        if opaque:
            self._opaque.add(id(x))
        elif x.__class__ is Value and isinstance(x.const, np.ndarray):
            self._note(x.const, False)
        elif x.__class__ not in (Value, Key, np.ndarray):
            return
        if id(x) not in self._places:
            self._places[id(x)] = len(self._objects)
            self._objects.append(x)

    def load(self) -> tuple[list[Division], bytes] | None:
        """What an earlier process has stored, with this graph's own values in the places of those of that process."""
        content = stored.load(self.key) if self.key is not None else None
        return None if content is None else self._read(content)

    def store(self, divisions: Sequence[Division], code: bytes) -> None:
        """Keep this for later processes; what they could not read is not kept."""
        if self.key is None or _source() != _source_at_first():
            return
        file = io.BytesIO()
        try:
            _Writer(file, self._places).dump((self.key, list(divisions), code))
        except Exception:
            return
        if self._read(file.getvalue()) is not None:
            stored.store(self.key, file.getvalue())

    def _read(self, content: bytes) -> tuple[list[Division], bytes] | None:
        try:
            key, divisions, code = _Reader(io.BytesIO(content), self._objects).load()
        except Exception:  # it is not ours
            return None
        return (divisions, code) if key == self.key else None


class _Namer(pickle.Pickler):
    """Writes what a graph is, and of some objects their places."""

    def __init__(self, file: io.BytesIO, places: dict[int, int]) -> None:
        super().__init__(file, protocol=5)
        self._places = places

    def reducer_override(self, x: Any) -> Any:
        kind = x.__class__
        if kind is Value:
            return Value, (x.shape, x.dtype, x.const)
        if kind is Equation:
            return Equation, (x.name, x.operands, x.parameters, x.results, x.graphs, x.backward, x.line)
        if kind is Graph:
            return Graph, (x.inputs, x.equations, x.outputs)
        place = self._places.get(id(x))
        return NotImplemented if place is None else (_Namer, (place,))


class _Writer(pickle.Pickler):
    """Writes objects of a graph as their places."""

    def __init__(self, file: io.BytesIO, places: dict[int, int]) -> None:
        super().__init__(file, protocol=5)
        self._places = places

    def persistent_id(self, x: Any) -> Any:
        return self._places.get(id(x))

    def reducer_override(self, x: Any) -> Any:
        if isinstance(x, np.dtype) and x is np.dtype(x.str):
            return np.dtype, (x.str,)  # the same object: machine code compares arrays' by identity
        return (Call, (), x.plain()) if isinstance(x, Call) else NotImplemented


_NUMPY = frozenset({"_frombuffer", "_reconstruct", "dtype", "ndarray", "scalar"})
_OURS = {
    ("adjoint.compiler.graph", "Equation"),
    ("adjoint.compiler.graph", "Graph"),
    ("adjoint.compiler.graph", "Key"),
    ("adjoint.compiler.graph", "Value"),
    ("adjoint.compiler.native.calls", "Call"),
    ("builtins", "complex"),
    ("builtins", "range"),
    ("builtins", "slice"),
}


class _Reader(pickle.Unpickler):
    """Reads what `_Writer` writes, and makes nothing but parts of graphs, numbers and arrays."""

    def __init__(self, file: io.BytesIO, objects: Sequence[Any]) -> None:
        super().__init__(file)
        self._objects = objects

    def persistent_load(self, place: Any) -> Any:
        return self._objects[place]

    def find_class(self, module: str, name: str) -> Any:
        if (module, name) in _OURS or (module.partition(".")[0] == "numpy" and name in _NUMPY):
            return super().find_class(module, name)
        raise pickle.UnpicklingError(f"{module}.{name}")


def _source() -> str | None:
    """What stands for this package's source; None if files have changed since it was imported."""
    files: list[tuple[str, int, int]] = []
    try:
        last = max([_looked(PACKAGE, False, files), *[_looked(PACKAGE + name, True, files) for name in _SOURCE]])
    except OSError:
        return None
    return None if last + _TICK > IMPORTED * 1e9 else hashlib.sha256(repr(sorted(files)).encode()).hexdigest()


@functools.cache
def _source_at_first() -> str | None:
    """The same when it was first asked for, as to look takes a millisecond."""
    return _source()


def _looked(folder: str, inner: bool, files: list[tuple[str, int, int]]) -> int:
    """Append the name, size and time of each file; gives the last time that one of them changed."""
    last = 0
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.name.endswith(".py"):
                found = entry.stat()
                files.append((entry.path[len(PACKAGE) :], found.st_size, found.st_mtime_ns))
                last = max(last, found.st_mtime_ns, found.st_ctime_ns)
            elif inner and entry.is_dir() and entry.name != "__pycache__":
                last = max(last, _looked(entry.path, True, files))
    return last
