"""Kernels one after the other, and loops of them, in one piece of memory."""

from __future__ import annotations

import math
from collections.abc import Container, Sequence
from typing import Any

import numpy as np

from adjoint.compiler.graph import Value
from adjoint.compiler.native.loops import Nest
from adjoint.compiler.native.plan import Host, Kernel, Loop, Plan, Product
from adjoint.compiler.native.products import Called, Multiplied
from adjoint.compiler.native.text import Builder

_BYTE = np.dtype(np.uint8)
_COPY = "llvm.memcpy.p0.p0.i64"
_MOVED = 256  # bytes of what is carried along: more is not copied in each step
_ON_STACK = 1 << 12  # bytes of memory of a loop


class Block:
    """Steps of a plan as functions, in order: what they read, what they write, and places of what only they see."""

    memory: int
    places: dict[int, int]

    def __init__(
        self,
        plan: Plan,
        steps: Sequence[Kernel | Product | Loop | Host],
        name: str,
        wanted: set[Any],
        donated: Container[Any] = (),
    ) -> None:
        self.nests: list[Nest | Repeated] = []
        for i, step in enumerate(steps):
            inner = f"{name}_{i}"
            if isinstance(step, Kernel):
                self.nests.append(Nest(plan, step, inner))
            elif isinstance(step, Product):
                self.nests.append((Multiplied if step.small else Called)(plan, step, inner))
            elif isinstance(step, Loop):
                self.nests.append(Repeated(plan, step, inner))
        written = list(dict.fromkeys(x for n in self.nests for x in n.written))
        self.outputs: list[Value | Any] = [x for x in written if x in wanted]
        self.inputs: list[Value] = list(
            dict.fromkeys(x for n in self.nests for x in n.buffers if isinstance(x, Value) and x not in written)
        )
        self.over: dict[Value, list[Value]] = {}  # inputs that an output may be written over
        self.hosted: dict[int, Value] = {}  # what lies in the memory of an output until that is computed
        later: set[int] = set()
        hosts: set[Value] = set()
        for n in reversed(self.nests):
            pairs = [(out, x) for out, x in n.over() if out in self.outputs and id(x) not in later]
            for out, x in pairs:
                if x in self.inputs:
                    self.over.setdefault(out, []).append(x)
            for out, x in pairs:
                mine = x in written and x not in wanted and id(x) not in self.hosted
                if mine and out not in hosts and not any(y in donated for y in self.over.get(out, ())):
                    self.hosted[id(x)] = out
                    hosts.add(out)
                    self.over.pop(out, None)
            later.update(id(x) for x in n.buffers)
        left = [x for x in written if x not in wanted and id(x) not in self.hosted]
        self.places, self.memory = _arena(self.nests, left)
        self.texts: list[str] = [text for n in self.nests for text in n.texts]
        self.called: dict[str, str] = {key: text for n in self.nests for key, text in n.called.items()}

    def calls(self, b: Builder, pointers: dict[int, str], memory: str) -> None:
        """Call all functions; `pointers` are those of inputs and outputs."""
        found = {**pointers, **{key: pointers[id(out)] for key, out in self.hosted.items()}}
        for key, place in self.places.items():
            found[key] = b(f"getelementptr i8, ptr {memory}, i64 {place}")
        for n in self.nests:
            b.do(f"call void @{n.name}({', '.join(f'ptr {found[id(x)]}' for x in n.buffers)})")


class Repeated:
    """A scan: the step's functions in a loop, with carried arrays in two places by turns."""

    name: str

    def __init__(self, plan: Plan, step: Loop, name: str) -> None:
        self.name, e, graph = name, step.equation, step.step.graph
        self.block: Block = Block(step.step, step.step.steps, name + "s", set(graph.outputs))
        self.written: list[Any] = list(e.results)
        n, m, length = (e.parameters[key] for key in ("count", "rows", "length"))
        operands = [plan.root.get(x, x) for x in step.operands]
        fixed = [x for x in self.block.inputs if x.const is not None]
        sizes = [math.prod(x.shape) * x.dtype.itemsize for x in graph.outputs[:n]]
        swaps = [size > _MOVED for size in sizes]
        self.buffers: list[Any] = []
        b = Builder()
        current = [self._pointer(x) for x in operands]
        results = [self._pointer(x) for x in e.results]
        places = [self._room(b, size) for size in sizes for _ in (0, 1)]
        constants = {id(x): self._pointer(x) for x in fixed}
        arena = self._room(b, self.block.memory) if self.block.memory else ""
        for k, size in enumerate(sizes):
            if not swaps[k]:
                self._copy(b, places[2 * k], current[k], size)
        carried = [("ptr", p) for k in range(n) if swaps[k] for p in (current[k], places[2 * k], places[2 * k + 1])]
        loop = b.begin(length, 1, carried)
        turning = iter([x for _, _, x in loop.carried])
        turns = [
            [next(turning) for _ in range(3)] if swaps[k] else places[2 * k : 2 * k + 2] for k in range(n)
        ]  # of each carried array where it is, where its next value is written, and where the one after that
        index = b(f"sub i64 {length - 1}, {loop.counter}") if e.parameters["reverse"] else loop.counter
        given = dict(constants)
        for k, x in enumerate(graph.inputs):
            if k < n:
                given[id(x)] = turns[k][0]
            elif k < n + m:
                given[id(x)] = _row(b, current[k], index, x)
            else:
                given[id(x)] = current[k]
        for k, x in enumerate(graph.outputs):
            given[id(x)] = turns[k][1] if k < n else _row(b, results[k], index, x)
        self.block.calls(b, given, arena)
        for k, size in enumerate(sizes):
            if not swaps[k]:
                self._copy(b, turns[k][0], turns[k][1], size)
        b.end(loop, [x for k in range(n) if swaps[k] for x in (turns[k][1], turns[k][2], turns[k][1])])
        for k, size in enumerate(sizes):
            self._copy(b, results[k], turns[k][1], size)
        arguments = ", ".join(f"ptr %b{i}" for i in range(len(self.buffers)))
        lines = "\n".join(b.lines)
        text = f"define internal void @{name}({arguments}) #0 {{\nentry:\n{lines}\n  ret void\n}}"
        self.texts: list[str] = [*self.block.texts, text]
        self.called: dict[str, str] = {**self.block.called, _COPY: f"declare void @{_COPY}(ptr, ptr, i64, i1)"}

    def over(self) -> list[tuple[Value, Value]]:
        return []

    def _room(self, b: Builder, size: int) -> str:
        """Memory that only this function sees: on the stack if it is small."""
        if size <= _ON_STACK:
            return b(f"alloca [{size} x i8], align 64")
        return self._pointer((size, _BYTE))

    def _copy(self, b: Builder, to: str, source: str, size: int) -> None:
        b.do(f"call void @{_COPY}(ptr {to}, ptr {source}, i64 {size}, i1 false)")

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
    over: dict[int, list[int]] = {}  # what may have the place of what
    for i, nest in enumerate(nests):
        for out, x in nest.over():
            over.setdefault(id(out), []).append(id(x))
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
            (places[k], places[k] + sizes[k], k) for k in places if first[k] <= last[key] and first[key] <= last[k]
        )
        at = 0
        for begin, end, _ in taken:
            if at + sizes[key] <= begin:
                break
            at = max(at, end)
        for k in over.get(key, ()):
            ends = k in places and sizes[k] == sizes[key] and last[k] == first[key]
            if ends and not any(other != k and b < places[k] + sizes[k] and places[k] < e for b, e, other in taken):
                at = places[k]
                break
        places[key] = at
        whole = max(whole, at + sizes[key])
    return places, whole
