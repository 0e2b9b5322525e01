"""LLVM's text: a function line by line, counted loops, numbers, and operations on one vector."""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from adjoint.compiler.sizes import is_size
from adjoint.primitives import DType

INLINE = ") #2 {"  # how the line ends with which a function begins that is to be part of its callers


def memory_type(dtype: DType) -> str:
    """The type of an element in memory."""
    if dtype.kind == "f":
        return "float" if dtype.itemsize == 4 else "double"
    return f"i{8 * dtype.itemsize}"


def element_type(dtype: DType) -> str:
    """The type of an element that is computed with: truth is one bit."""
    return "i1" if dtype.kind == "b" else memory_type(dtype)


def number(value: Any, dtype: DType) -> str:
    """A number of this dtype as text."""
    with np.errstate(all="ignore"):
        made = np.asarray(value).astype(dtype)[()]
    if dtype.kind == "f":  # both types are written as the bits of a double
        return "0x" + struct.pack(">d", float(made)).hex().upper()
    return str(int(made))


class Loop(NamedTuple):
    """A counted loop that is being written: the place of its head, its label, block before it, step, begin, end.

    `after` is the label behind one that may not run at all.
    """

    place: int
    label: str
    before: str
    step: int
    first: str
    stop: int | str
    counter: str
    carried: Sequence[tuple[str, str, str]]  # type, first value and name of what is carried along
    after: str = ""


class Builder:
    """The lines of a function; each value is assigned once."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.block: str = "entry"
        self._count = 0
        self.called: dict[str, str] = {}  # functions that it calls, and their text or declaration

    def name(self) -> str:
        self._count += 1
        return f"t{self._count}"

    def __call__(self, right: str) -> str:
        """A new value."""
        name = "%" + self.name()
        self.lines.append(f"  {name} = {right}")
        return name

    def do(self, line: str) -> None:
        self.lines.append("  " + line)

    def label(self, name: str) -> None:
        self.lines.append(f"{name}:")
        self.block = name

    def begin(
        self,
        stop: int | str,
        step: int = 1,
        carried: Sequence[tuple[str, str]] = (),
        first: str = "0",
        may_skip: bool = False,
    ) -> Loop:
        """A loop with values (type, first) that are carried along. It runs at least once, or it may not run at all."""
        label, before, after = self.name(), self.block, self.name() if may_skip else ""
        runs = f"i1 {self(f'icmp ult i64 {first}, {stop}')}, label %{label}, label %{after}" if may_skip else ""
        self.do(f"br {runs or f'label %{label}'}")
        self.label(label)
        made = [(type_, first, "%" + self.name()) for type_, first in carried]
        loop = Loop(len(self.lines), label, before, step, first, stop, "%" + self.name(), made, after)
        self.lines.append("")
        return loop

    def end(self, loop: Loop, carried: Sequence[str] = ()) -> list[str]:
        """The loop goes on with these values. Gives what they are after it."""
        following = self(f"add nuw nsw i64 {loop.counter}, {loop.step}")
        phis = [f"  {loop.counter} = phi i64 [ {loop.first}, %{loop.before} ], [ {following}, %{self.block} ]"]
        for (type_, first, name), value in zip(loop.carried, carried, strict=True):
            phis.append(f"  {name} = phi {type_} [ {first}, %{loop.before} ], [ {value}, %{self.block} ]")
        self.lines[loop.place] = "\n".join(phis)
        goes = self(f"icmp ult i64 {following}, {loop.stop}")
        last, after = self.block, loop.after or self.name()
        self.do(f"br i1 {goes}, label %{loop.label}, label %{after}")
        self.label(after)
        if not loop.after:
            return list(carried)
        return [
            self(f"phi {type_} [ {first}, %{loop.before} ], [ {value}, %{last} ]")
            for (type_, first, _), value in zip(loop.carried, carried, strict=True)
        ]

    def where(self, condition: str, body: Callable[[], None], otherwise: Callable[[], None] = lambda: None) -> None:
        """What runs where a comparison of integers holds, and what runs where it does not."""
        here, other, after = self.name(), self.name(), self.name()
        self.do(f"br i1 {self(f'icmp {condition}')}, label %{here}, label %{other}")
        for label, run in ((here, body), (other, otherwise)):
            self.label(label)
            run()
            self.do(f"br label %{after}")
        self.label(after)

    def call(self, name: str, type_: str, operands: Sequence[str], text: str = "") -> str:
        """A function of operands of one type, as the result: LLVM's own, or one whose text is given."""
        self.called.setdefault(name, text or f"declare {type_} @{name}({', '.join([type_] * len(operands))})")
        return self(f"call {type_} @{name}({', '.join(f'{type_} {x}' for x in operands)})")


class Vector:
    """Operations on vectors of so many lanes."""

    b: Builder
    lanes: int

    def __init__(self, builder: Builder, lanes: int) -> None:
        self.b, self.lanes = builder, lanes

    def type(self, element: str) -> str:
        return f"<{self.lanes} x {element}>"

    def constant(self, value: Any, dtype: DType) -> str:
        """One number in all lanes."""
        if is_size(value):
            return self.spread(self._of_size(value, dtype), element_type(dtype))
        return f"splat ({element_type(dtype)} {number(value, dtype)})"

    def _of_size(self, size: Any, dtype: DType) -> str:
        old, new = "double" if isinstance(size, float) else "i64", element_type(dtype)
        if dtype.kind == "f":
            how = "sitofp" if old == "i64" else "fptrunc"
        else:
            how = "trunc"
        return f"{size}" if old == new else self.b(f"{how} {old} {size} to {new}")

    def spread(self, scalar: str, element: str) -> str:
        """A value in all lanes."""
        first = self.b(f"insertelement {self.type(element)} poison, {element} {scalar}, i64 0")
        if self.lanes == 1:
            return first
        t = self.type(element)
        return self.b(f"shufflevector {t} {first}, {t} poison, <{self.lanes} x i32> zeroinitializer")

    def two(self, operation: str, element: str, x: str, y: str) -> str:
        return self.b(f"{operation} {self.type(element)} {x}, {y}")

    def select(self, condition: str, element: str, x: str, y: str) -> str:
        t = self.type(element)
        return self.b(f"select {self.type('i1')} {condition}, {t} {x}, {t} {y}")

    def cast(self, operation: str, x: str, old: str, new: str) -> str:
        return self.b(f"{operation} {self.type(old)} {x} to {self.type(new)}")

    def call(self, name: str, element: str, *operands: str) -> str:
        """LLVM's function of this name on vectors."""
        kind = {"float": "f32", "double": "f64"}.get(element, element)
        return self.b.call(f"llvm.{name}.v{self.lanes}{kind}", self.type(element), operands)
