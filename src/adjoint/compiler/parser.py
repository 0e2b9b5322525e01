"""Graphs from the text that they are printed as."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from adjoint import errors
from adjoint.compiler.graph import SPECIAL, Equation, Graph, Key, Name, Value
from adjoint.primitives import ARRAY, TABLE

_TYPED = re.compile(r"(\w+): (?:(key)|(\w+)\[([\d, ]*)\])")
_CONSTANT = re.compile(r"<\w+\[[\d, ]*\]>")
_SCOPE: dict[str, Any] = {
    "ARRAY": ARRAY,
    "range": range,
    "slice": slice,
    "dtype": np.dtype,
    "inf": float("inf"),
    "nan": float("nan"),
    "__builtins__": {},
}


def parse(text: str, constants: Iterable[Any] = ()) -> Graph:
    """The graph of a text such as `str(graph)`: for tests, which can so write graphs down.

    `constants` are the arrays that the text has only types of, such as `<float64[2]>`, in their order. Numbers are
    Python's, and where loops begin, arrays of the dtype that is carried. Functions, as those of checks, have no text,
    and symbols for sizes are not read. Raises GraphError for a line that is none of a graph; what the graph promises
    `verify` tests.

    >>> import numpy as np
    >>> from adjoint.compiler.graph import evaluate
    >>> import adjoint as ad
    >>> graph = parse('''
    ... inputs a: float64[2]
    ... b: float64[2] = multiply(a, 2.0)
    ... c: float64[] = sum(b; axis=(0,), keepdims=False)
    ... outputs c
    ... ''')
    >>> evaluate(graph, [np.ones(2)], ad.NumPy())
    [np.float64(4.0)]
    """
    lines = [line for line in text.split("\n") if line.strip()]
    reader = _Reader(iter(constants))
    graph, rest = reader.graph(lines, "")
    if rest:
        raise errors.GraphError(f"parse: a line after the outputs: {errors.shown(rest[0])}")
    return graph


class _Reader:
    def __init__(self, constants: Iterator[Any]) -> None:
        self.constants = constants
        self.names: dict[str, Name] = {}

    def graph(self, lines: list[str], indent: str) -> tuple[Graph, list[str]]:
        """A graph of so many spaces, and the lines after it."""
        head, *lines = lines or [""]
        graph = Graph(self.defined(self.after(head, indent + "inputs")))
        while lines and not lines[0].startswith(f"{indent}outputs"):
            line, *lines = lines
            results, _, call = self.after(line, indent).rpartition(" = ") if " = " in line else ("", "", line.strip())
            name, _, rest = call.partition("(")
            if (name not in TABLE and name not in SPECIAL) or not rest.endswith(")"):
                raise errors.GraphError(f"parse: expected an equation, received {errors.shown(line)}")
            operands, parameters = self.values(rest[:-1])
            inner: list[Graph] = []
            while lines and lines[0].startswith(f"{indent}    inputs"):
                made, lines = self.graph(lines, indent + "    ")
                inner.append(made)
            if inner:  # numbers that are carried
                to = [None, *inner[0].inputs] if name == "branch" else inner[0].inputs
                operands = [_of_dtype(x, like) for x, like in zip(operands, to, strict=False)]
            defined = self.defined(results)
            for x in defined:
                if isinstance(x, Key):
                    x.late = parameters["late"]
            graph.equations.append(Equation(name, operands, parameters, defined, inner))
        last, *lines = lines or [""]
        graph.outputs = [
            x if x.__class__ is Value else Value((), np.asarray(x).dtype, np.asarray(x))
            for x in self.values(self.after(last, indent + "outputs"))[0]
        ]
        return graph, lines

    def after(self, line: str, start: str) -> str:
        if not line.startswith(start):
            raise errors.GraphError(
                f"parse: expected {start.strip() or 'an equation'!r}, received {errors.shown(line)}"
            )
        return line[len(start) :].strip()

    def defined(self, text: str) -> list[Name]:
        found: list[Name] = []
        for name, key, dtype, shape in _TYPED.findall(text):
            if name not in self.names:  # a graph in an equation may take what is known outside
                shapes = tuple(map(int, re.findall(r"\d+", shape)))
                self.names[name] = Key(late=False) if key else Value(shapes, np.dtype(dtype))
            found.append(self.names[name])
        if _TYPED.sub("", text).strip(", "):
            raise errors.GraphError(f"parse: expected names with types, received {errors.shown(text)}")
        return found

    def values(self, text: str) -> tuple[list[Any], dict[str, Any]]:
        """Operands, and parameters after a semicolon."""
        scope = dict(_SCOPE)

        def constant(_: re.Match[str]) -> str:
            array = next(self.constants, None)
            if array is None:
                raise errors.GraphError("parse: there are more constants in the text than were given")
            scope[f"_{len(scope)}"] = Value(tuple(array.shape), array.dtype, array)
            return f"_{len(scope) - 1}"

        def name(found: re.Match[str]) -> str:
            word = found.group()
            if word not in self.names:
                return word
            scope[f"_{word}"] = self.names[word]
            return f"_{word}"

        text = re.sub(r"(?<!['\w])[a-z]+\b(?!\s*[=(']|\w)", name, _CONSTANT.sub(constant, text)).replace("; ", ", ")
        try:
            call = ast.parse(f"f({text})", mode="eval").body
            assert isinstance(call, ast.Call)
            return [_read(x, scope) for x in call.args], {str(k.arg): _read(k.value, scope) for k in call.keywords}
        except (SyntaxError, NameError) as error:
            raise errors.GraphError(f"parse: {errors.shown(text)} is not read: {error}") from None


def _of_dtype(x: Any, like: Any) -> Any:
    """A number as a constant of the dtype of a value."""
    return Value((), like.dtype, np.asarray(x, like.dtype)) if isinstance(x, (int, float, complex)) and like else x


def _read(node: ast.expr, scope: dict[str, Any]) -> Any:
    return eval(compile(ast.Expression(node), "<graph>", "eval"), scope)
