"""Sizes that machine code takes as arguments, so that it serves for whatever size an axis has.

Whoever writes a loop writes sizes as it writes numbers. A size of several values is written as a name, `%z0`. What
Python calls computes all of them once, and each function reads its own. Who asks which of two is larger gets the answer
for the sizes at hand, and the code serves for all others of which answers are the same. Who asks for the number itself
has it that there is no such code.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from adjoint.compiler.graph import Equation, Graph, Value
from adjoint.compiler.native.text import number
from adjoint.compiler.sizes import Size, Symbols, has_sizes, is_size

SIZES: Any = object()  # in the place of an array: the sizes that all others follow from
_TYPES = {bool: np.dtype(np.int64), int: np.dtype(np.int64), float: np.dtype(np.float64)}
_NAME = re.compile(r"%z(\d+)\b")
# the rest of one size or product: of products of rests this is not known
_REST = re.compile(r"\(\((?:\w+|\([^()%]*\)) % (\d+)\)\) (?:==|<) (\d+)")
_WHOLE: dict[type, str] = {ast.Add: "add", ast.Sub: "sub", ast.Mult: "mul"}
_CHOSEN = {"min": "slt", "max": "sgt"}
_FUNCTIONS = ("sqrt", "floor", "ceil")
# what lines that compute sizes may call
DECLARED = {
    **{f"llvm.{name}.f64": f"declare double @llvm.{name}.f64(double)" for name in _FUNCTIONS},
    "llvm.pow.f64": "declare double @llvm.pow.f64(double, double)",
}
_FLOATING: dict[type, str] = {ast.Add: "fadd", ast.Sub: "fsub", ast.Mult: "fmul", ast.Div: "fdiv"}


class FixedError(Exception):
    """The number that a size has was asked for."""


class Written(Symbols):
    """Sizes while machine code is written for them: the names that stand for them."""

    def __init__(self, sizes: Mapping[str, int]) -> None:
        super().__init__()
        self.values.update(sizes)
        self.names: dict[str, int] = {}
        self._types: dict[str, str] = {}

    def of(self, graph: Graph) -> Graph:
        """The graph with these sizes."""
        return graph.at({name: Size(n, {(name,): 1}, name, self) for name, n in self.values.items()})  # type: ignore[misc]

    def answer(self, text: str, holds: bool) -> bool:
        rest = _REST.fullmatch(text)
        if rest is None or int(rest[2]) < int(rest[1]):  # else it holds for all sizes, or for none
            self.guards[text] = holds
        return holds

    def pin(self, size: Size) -> None:
        raise FixedError(size.text)

    def hashed(self, size: Size) -> int:
        return hash(size.text)

    def shown(self, size: Size) -> str:
        return f"%z{self.names.setdefault(size.text, len(self.names))}"

    def computed(self, text: str, given: Sequence[str], place: str) -> list[str]:
        """Lines that compute the names in a text, of the sizes that Python gives, and store them at a place."""
        made: list[str] = []
        for k, size in self._named(text):
            _Definition(self, made, given).define(f"%z{k}", size)
            made.append(f"  %z{k}_at = getelementptr i64, ptr {place}, i64 {k}")
            made.append(f"  store {self._type(size)} %z{k}, ptr %z{k}_at, align 8")
        return made

    def read(self, text: str, place: str) -> list[str]:
        """Lines that read the names in a text at a place."""
        made = []
        for k, size in self._named(text):
            made.append(f"  %z{k}_at = getelementptr i64, ptr {place}, i64 {k}")
            made.append(f"  %z{k} = load {self._type(size)}, ptr %z{k}_at, align 8")
        return made

    def _named(self, text: str) -> list[tuple[int, str]]:
        found = {int(k) for k in _NAME.findall(text)}
        return [(k, size) for size, k in self.names.items() if k in found]

    def _type(self, size: str) -> str:
        if size not in self._types:
            unused = ["0"] * len(self.values)
            self._types[size] = _Definition(self, [], unused).define("", size)
        return self._types[size]


class _Definition:
    """The lines that compute an expression."""

    def __init__(self, written: Written, lines: list[str], given: Sequence[str]) -> None:
        self.given = dict(zip(written.values, given, strict=True))
        self.lines = lines

    def define(self, name: str, text: str) -> str:
        """Give the value a name; its type."""
        found, is_float = self.of(ast.parse(text, mode="eval").body)
        zero = "fadd double {}, -0.0" if is_float else "add i64 {}, 0"
        self.lines.append(f"  {name} = {zero.format(found)}")
        return "double" if is_float else "i64"

    def _do(self, right: str) -> str:
        name = f"%y{len(self.lines)}"
        self.lines.append(f"  {name} = {right}")
        return name

    def of(self, x: ast.expr) -> tuple[str, bool]:
        """The name of a value, and whether it is a float."""
        if isinstance(x, ast.Constant) and type(x.value) in _TYPES:
            return number(x.value, _TYPES[type(x.value)]), type(x.value) is float
        if isinstance(x, ast.Name) and x.id in self.given:
            return self.given[x.id], False
        if isinstance(x, ast.UnaryOp) and isinstance(x.op, ast.USub):
            y, is_float = self.of(x.operand)
            return self._do(f"fneg double {y}" if is_float else f"sub i64 0, {y}"), is_float
        if isinstance(x, ast.BinOp):
            return self._two(x.op, self.of(x.left), self.of(x.right))
        if isinstance(x, ast.Call) and (how := _CHOSEN.get(ast.unparse(x.func))) is not None:
            (a, _), (b, _) = map(self.of, x.args)  # integers, of `smaller` and `larger`
            return self._do(f"select i1 {self._do(f'icmp {how} i64 {a}, {b}')}, i64 {a}, i64 {b}"), False
        if isinstance(x, ast.Call) and (name := ast.unparse(x.func)) in _FUNCTIONS:
            found = self._do(f"call double @llvm.{name}.f64(double {self._floating(*self.of(x.args[0]))})")
            return (found, True) if name == "sqrt" else (self._do(f"fptosi double {found} to i64"), False)
        raise FixedError(ast.unparse(x))

    def _floating(self, x: str, is_float: bool) -> str:
        return x if is_float else self._do(f"sitofp i64 {x} to double")

    def _two(self, op: ast.operator, x: tuple[str, bool], y: tuple[str, bool]) -> tuple[str, bool]:
        if isinstance(op, ast.Div) or x[1] or y[1]:
            a, b = self._floating(*x), self._floating(*y)
            if isinstance(op, ast.Pow):
                return self._do(f"call double @llvm.pow.f64(double {a}, double {b})"), True
            if type(op) not in _FLOATING:
                raise FixedError
            return self._do(f"{_FLOATING[type(op)]} double {a}, {b}"), True
        (a, _), (b, _) = x, y
        if type(op) in _WHOLE:
            return self._do(f"{_WHOLE[type(op)]} i64 {a}, {b}"), False
        if type(op) not in (ast.FloorDiv, ast.Mod):
            raise FixedError
        quotient = self._do(f"sdiv i64 {a}, {b}")
        whole = self._do(f"mul i64 {quotient}, {b}")
        rest = self._do(f"icmp ne i64 {whole}, {a}")
        below = self._do(f"icmp slt i64 {self._do(f'xor i64 {a}, {b}')}, 0")
        less = self._do(f"zext i1 {self._do(f'and i1 {rest}, {below}')} to i64")
        floor = self._do(f"sub i64 {quotient}, {less}")
        if isinstance(op, ast.FloorDiv):
            return floor, False
        return self._do(f"sub i64 {a}, {self._do(f'mul i64 {floor}, {b}')}"), False


def with_sizes(lines: Sequence[str], written: Written | None, pointer: Callable[[], str]) -> list[str]:
    """The lines of a function, after those that read the sizes in them; `pointer` gives where the sizes are."""
    text = "\n".join(lines)
    if written is None or _NAME.search(text) is None:
        return list(lines)
    return [*written.read(text, pointer()), *lines]


def coarse(n: Any) -> Any:
    """A size with factors that are powers of eight, at most as large: of them there are few to compare."""
    if not is_size(n) or n.terms is None or len(n.terms) != 1:
        return n
    ((term, factor),) = n.terms.items()
    return n if factor < 1 else n // factor * 8 ** ((factor.bit_length() - 1) // 3)


def sizes_of(graph: Graph) -> Written | None:
    """Whose sizes a graph has, if any."""
    values = [*graph.inputs, *[x for e in graph.equations for x in e.results]]
    sizes: list[Any] = [n for x in values if isinstance(x, Value) for n in x.shape]
    return next((n.owner for n in sizes if type(n) is Size and isinstance(n.owner, Written)), None)


def sizes_in(e: Equation) -> bool:
    """Whether an array of an equation, or of a graph in it, has sizes that stand for several."""
    shapes = [x.shape for x in (*e.operands, *e.results) if isinstance(x, Value)]
    return has_sizes(shapes) or any(map(sizes_of, e.graphs))
