"""Products of small matrices as loops."""

from __future__ import annotations

from typing import Any

from adjoint.compiler.graph import Value
from adjoint.compiler.native.loops import Nest
from adjoint.compiler.native.machine import vector_bytes
from adjoint.compiler.native.plan import Plan, Product
from adjoint.compiler.native.text import Builder, Vector, memory_type


class Multiplied(Nest):
    """The text of a product's function: vectors run over columns of the result, or over what is summed."""

    def __init__(self, plan: Plan, step: Product, name: str) -> None:
        self.plan, self.name = plan, name
        self.b, self.buffers = Builder(), []
        self.dtype, self.type = step.out.dtype, memory_type(step.out.dtype)
        self.written_to = step.out
        rows, self.summed, columns = step.x.shape[0], step.x.shape[1], step.y.shape[1]
        self.x, self.y = step.x, step.y
        most = vector_bytes() // self.dtype.itemsize
        along = self.summed > 1 and columns < min(most, self.summed) and self.x.strides[1] == self.y.strides[0] == 1
        self.lanes = min(most, 1 << ((self.summed if along else columns) - 1).bit_length())
        self.row, self.wide = Vector(self.b, 1), Vector(self.b, self.lanes)
        x, y, out = (self._pointer(self._root(a)) for a in (*step.operands, step.out))
        outer = self.b.begin(rows)
        x = self._at(x, self.x.offset, (outer.counter, self.x.strides[0]))
        out = self._at(out, 0, (outer.counter, columns))
        if along:
            inner = self.b.begin(columns)
            self._dot(
                x, self._at(y, self.y.offset, (inner.counter, self.y.strides[1])), self._at(out, 0, (inner.counter, 1))
            )
            self.b.end(inner)
        else:
            whole, rest = columns // self.lanes * self.lanes, columns % self.lanes
            if whole:
                inner = self.b.begin(whole, self.lanes)
                self._columns_from(x, y, out, inner.counter, self.lanes)
                self.b.end(inner)
            if rest:
                self._columns_from(x, y, out, str(whole), rest)
        self.b.end(outer)
        self._close()

    @property
    def written(self) -> list[Value]:
        return [self.written_to]

    def _at(self, pointer: str, offset: int, *steps: tuple[str, int]) -> str:
        total = str(offset)
        for index, stride in steps:
            total = self.b(f"add nsw i64 {total}, {self.b(f'mul nsw i64 {index}, {stride}')}")
        return self.b(f"getelementptr {self.type}, ptr {pointer}, i64 {total}")

    def _added(self, v: Vector, total: str, x: str, y: str) -> str:
        return v.two("fadd", self.type, total, v.two("fmul", self.type, x, y))

    def _columns_from(self, x: str, y: str, out: str, index: str, live: int) -> None:
        v = self.wide
        loop = self.b.begin(self.summed, 1, [(v.type(self.type), "zeroinitializer")])
        one = self.b(
            f"load {self.type}, ptr {self._at(x, 0, (loop.counter, self.x.strides[1]))}, align {self.dtype.itemsize}"
        )
        line = self._at(y, self.y.offset, (loop.counter, self.y.strides[0]))
        column = self._load(v, line, self.dtype, index, self.y.strides[1] if self.lanes > 1 else 0, live)
        total = self._added(v, loop.carried[0][2], v.spread(one, self.type), column)
        self.b.end(loop, [total])
        self._save(v, total, out, self.dtype, index, live)

    def _dot(self, x: str, y: str, out: str) -> None:
        v, whole, rest = self.wide, self.summed // self.lanes * self.lanes, self.summed % self.lanes
        total = "zeroinitializer"
        if whole:
            loop = self.b.begin(whole, self.lanes, [(v.type(self.type), total)])
            parts = [self._load(v, p, self.dtype, loop.counter, 1, self.lanes) for p in (x, y)]
            total = self._added(v, loop.carried[0][2], *parts)
            self.b.end(loop, [total])
        if rest:
            parts = [self._load(v, p, self.dtype, str(whole), 1, rest) for p in (x, y)]
            total = self._added(v, total, *parts)
        found: Any = self._halved(total)
        self._save(self.row, found, out, self.dtype, "0", 1)

    def _halved(self, total: str) -> str:
        lanes = self.lanes
        while lanes > 1:
            lanes //= 2
            old = f"<{2 * lanes} x {self.type}>"
            low, high = (
                self.b(
                    f"shufflevector {old} {total}, {old} poison, <{lanes} x i32> "
                    f"<{', '.join(f'i32 {start + i}' for i in range(lanes))}>"
                )
                for start in (0, lanes)
            )
            total = Vector(self.b, lanes).two("fadd", self.type, low, high)
        return total
