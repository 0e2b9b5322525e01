"""Kernels one after the other, and loops of them, in one piece of memory."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from adjoint.compiler.graph import Value
from adjoint.compiler.native.loops import Nest
from adjoint.compiler.native.plan import Host, Kernel, Loop, Plan, Product
from adjoint.compiler.native.products import Multiplied
from adjoint.compiler.native.text import Builder

_BYTE = np.dtype(np.uint8)


class Block:
    """Steps of a plan as functions, in order: what they read, what they write, and places of what only they see."""

    def __init__(self, plan: Plan, steps: Sequence[Kernel | Product | Loop | Host], name: str, wanted: set[Any]) -> None:
        self.nests: list[Nest | Repeated] = []
        for i, step in enumerate(steps):
            inner = f"{name}_{i}"
            if isinstance(step, Kernel):
                self.nests.append(Nest(plan, step, inner))
            elif isinstance(step, Product):
                self.nests.append(Multiplied(plan, step, inner))
            elif isinstance(step, Loop):
                self.nests.append(Repeated(plan, step, inner))
        written = list(dict.fromkeys(x for n in self.nests for x in n.written))
        self.outputs = [x for x in written if x in wanted]
        self.inputs = list(
            dict.fromkeys(x for n in self.nests for x in n.buffers if isinstance(x, Value) and x not in written)
        )
        self.places, self.memory = _arena(self.nests, [x for x in written if x not in wanted])
        self.texts = [text for n in self.nests for text in n.texts]
        self.called = {key: text for n in self.nests for key, text in n.called.items()}

    def calls(self, b: Builder, pointers: dict[int, str], memory: str) -> None:
        """Call all functions; `pointers` are those of inputs and outputs."""
        found = dict(pointers)
        for key, place in self.places.items():
            found[key] = b(f"getelementptr i8, ptr {memory}, i64 {place}")
        for n in self.nests:
            b.do(f"call void @{n.name}({', '.join(f'ptr {found[id(x)]}' for x in n.buffers)})")


class Repeated:
    """A scan: the step's functions in a loop, with carried arrays in two places by turns."""

    def __init__(self, plan: Plan, step: Loop, name: str) -> None:
        self.name, e, graph = name, step.equation, step.step.graph
        self.block = Block(step.step, step.step.steps, name + "s", set(graph.outputs))
        self.written: list[Any] = list(e.results)
        n, m, length = (e.parameters[key] for key in ("count", "rows", "length"))
        operands = [plan.root.get(x, x) for x in step.operands]
        fixed = [x for x in self.block.inputs if x.const is not None]
        turns = [(x.shape, x.dtype) for x in graph.outputs[:n]]
        scratch: list[Any] = [(math.prod(shape), dtype) for shape, dtype in turns for _ in (0, 1)]
        memory: Any = (self.block.memory, _BYTE)
        self.buffers: list[Any] = []
        b = Builder()
        self._pointers: dict[int, str] = {}
        current = [self._pointer(x) for x in operands]
        results = [self._pointer(x) for x in e.results]
        places = [self._pointer(x) for x in scratch]
        constants = {id(x): self._pointer(x) for x in fixed}
        arena = self._pointer(memory) if self.block.memory else ""
        carried = [
            ("ptr", p)
            for k in range(n)
            for p in (current[k], places[2 * k], places[2 * k + 1])
        ]
        loop = b.begin(length, 1, carried)
        names = [x for _, _, x in loop.carried]
        index = b(f"sub i64 {length - 1}, {loop.index}") if e.parameters["reverse"] else loop.index
        given = dict(constants)
        for k, x in enumerate(graph.inputs):
            if k < n:
                given[id(x)] = names[3 * k]
            elif k < n + m:
                given[id(x)] = _row(b, current[k], index, x)
            else:
                given[id(x)] = current[k]
        for k, x in enumerate(graph.outputs):
            given[id(x)] = names[3 * k + 1] if k < n else _row(b, results[k], index, x)
        self.block.calls(b, given, arena)
        following = [x for k in range(n) for x in (names[3 * k + 1], names[3 * k + 2], names[3 * k + 1])]
        b.end(loop, following)
        for k, (shape, dtype) in enumerate(turns):
            size = math.prod(shape) * dtype.itemsize
            b.do(f"call void @llvm.memcpy.p0.p0.i64(ptr {results[k]}, ptr {following[3 * k]}, i64 {size}, i1 false)")
        arguments = ", ".join(f"ptr %b{i}" for i in range(len(self.buffers)))
        lines = "\n".join(b.lines)
        text = f"define internal void @{name}({arguments}) #0 {{\nentry:\n{lines}\n  ret void\n}}"
        self.texts = [*self.block.texts, text]
        copy = "llvm.memcpy.p0.p0.i64"
        self.called = {**self.block.called, copy: f"declare void @{copy}(ptr, ptr, i64, i1)"}

    def _pointer(self, buffer: Any) -> str:
        for i, x in enumerate(self.buffers):
            if x is buffer:
                return f"%b{i}"
        self.buffers.append(buffer)
        return f"%b{len(self.buffers) - 1}"


def _row(b: Builder, pointer: str, index: str, x: Any) -> str:
    """The part of a stack that belongs to a step."""
    start = b(f"mul nsw i64 {index}, {math.prod(x.shape) * x.dtype.itemsize}")
    return b(f"getelementptr i8, ptr {pointer}, i64 {start}")


def _arena(nests: Sequence[Nest | Repeated], temporary: Sequence[Value]) -> tuple[dict[int, int], int]:
    """Places in one piece of memory, shared by what is not needed at the same time, and the size of all."""
    wanted = {id(x) for x in temporary}
    first: dict[int, int] = {}
    last: dict[int, int] = {}
    sizes: dict[int, int] = {}
    for i, nest in enumerate(nests):
        for x in nest.buffers:
            if isinstance(x, Value):
                if id(x) not in wanted:
                    continue
                count, dtype = math.prod(x.shape), x.dtype
            else:
                count, dtype = x
            first.setdefault(id(x), i)
            last[id(x)] = i
            sizes[id(x)] = -(-count * dtype.itemsize // 64) * 64
    places: dict[int, int] = {}
    whole = 0
    for key in sorted(sizes, key=lambda k: (first[k], -sizes[k])):
        taken = sorted(
            (places[k], places[k] + sizes[k]) for k in places if first[k] <= last[key] and first[key] <= last[k]
        )
        at = 0
        for begin, end in taken:
            if at + sizes[key] <= begin:
                break
            at = max(at, end)
        places[key] = at
        whole = max(whole, at + sizes[key])
    return places, whole
