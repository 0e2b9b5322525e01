"""Where a kernel's arrays lie: the addresses of lines, and how vectors come from memory and go there."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from adjoint.compiler.graph import Value
from adjoint.compiler.native.kernels import Kernel
from adjoint.compiler.native.plan import Plan
from adjoint.compiler.native.reductions import State
from adjoint.compiler.native.text import Builder, Vector, memory_type
from adjoint.compiler.native.views import contiguous
from adjoint.compiler.sizes import is_size
from adjoint.primitives import DType

Indices = list[tuple[str, int]]  # of runs of row axes: the counter, and how many axes


class Row:
    """What is known of a row while its passes are written."""

    def __init__(self, turn: int, indices: Indices) -> None:
        self.turn, self.indices = turn, indices
        self.addresses: dict[Any, str] = {}  # where values begin
        self.values: dict[Value, str] = {}  # those of the row
        self.once: dict[Value, str] = {}  # what is the same in all columns
        self.state: State = {}  # of reductions of its columns


class Memory:
    """The arguments of a kernel's function, and lines of arrays in the current row."""

    addresses: dict[Any, str]
    b: Builder
    buffers: list[Any]
    kernel: Kernel
    lanes: int
    plan: Plan
    row: Vector
    split: int
    wide: Vector
    gathers = False  # whether elements that lie apart are loaded by one instruction

    def _root(self, x: Value) -> Value:
        return self.plan.root.get(x, x)  # type: ignore[no-any-return]

    def _enter(self, row: Row) -> None:
        """What is written from here on belongs to this row."""
        self._turn, self._indices = row.turn, row.indices
        self.addresses, self.rows, self._once = row.addresses, row.values, row.once

    def _pointer(self, buffer: Any) -> str:
        for i, x in enumerate(self.buffers):
            if x is buffer:
                return f"%b{i}"
        self.buffers.append(buffer)
        return f"%b{len(self.buffers) - 1}"

    def _access(self, x: Value) -> tuple[Any, int, tuple[int, ...], DType]:
        """Where elements of a value lie: the array, the first one's place, and strides along the domain."""
        if x in self.kernel.read:
            layout, strides, _ = self.kernel.read[x]
            return self._root(x), layout.offset, strides, x.dtype
        buffer, layout = self.kernel.target.get(x, (x, contiguous(x.shape)))
        return buffer, layout.offset, self.kernel.strides(layout, self.kernel.axes[x]), x.dtype

    def _accesses(self) -> Iterable[tuple[Any, int, tuple[int, ...], DType]]:
        for x in (*self.kernel.read, *self.kernel.stored):
            yield self._access(x)

    def _row_axes(self) -> list[tuple[int, int]]:
        """Runs of row axes that one index counts: the size, and how many axes."""
        sizes = self.kernel.domain[: self.split]
        all_strides = [strides for _, _, strides, _ in self._accesses()]
        runs: list[tuple[int, int]] = []
        for i, n in enumerate(sizes):
            if runs and all(s[i - 1] == n * s[i] for s in all_strides):
                runs[-1] = (runs[-1][0] * n, runs[-1][1] + 1)
            else:
                runs.append((n, 1))
        return runs

    def _address(self, x: Value) -> str:
        """The pointer to the first element of a value in this row."""
        found = self.addresses.get(x)
        if found is None:
            buffer, offset, strides, dtype = self._access(x)
            total = str(offset)
            axis = 0
            for index, count in self._indices:
                axis += count
                if stride := strides[axis - 1]:
                    part = self.b(f"mul nsw i64 {index}, {stride}")
                    total = self.b(f"add nsw i64 {total}, {part}")
            found = self.b(f"getelementptr {memory_type(dtype)}, ptr {self._pointer(buffer)}, i64 {total}")
            self.addresses[x] = found
        return found

    def _column_stride(self, x: Value) -> int:
        strides = self._access(x)[2][self.split :]
        return strides[-1] if strides else 0

    # --- memory ---

    def _load(self, v: Vector, pointer: str, dtype: DType, index: str, stride: int, live: int) -> str:
        """Elements from this index on, of which so many are there."""
        t = memory_type(dtype)
        if stride == 1 or (v.lanes == 1 and stride == 0):
            place = self.b(f"getelementptr {t}, ptr {pointer}, i64 {index if stride else 0}")
            if live == v.lanes:
                found = self.b(f"load {v.type(t)}, ptr {place}, align {dtype.itemsize}")
            else:
                found = self._masked(v, "load", place, dtype, live)
        else:
            first = self._apart(t, pointer, index, stride)
            if is_size(live) or (self.gathers and live == v.lanes and dtype.itemsize >= 4):
                found = self._at_once(v, "gather", first, dtype, stride, live)
            else:
                found = "poison" if live == v.lanes else "zeroinitializer"
                for lane in range(live):
                    place = self.b(f"getelementptr {t}, ptr {first}, i64 {lane * stride}") if lane else first
                    x = self.b(f"load {t}, ptr {place}, align {dtype.itemsize}")
                    found = self.b(f"insertelement {v.type(t)} {found}, {t} {x}, i64 {lane}")
        return v.two("icmp ne", "i8", found, "zeroinitializer") if dtype.kind == "b" else found

    def _save(self, v: Vector, x: str, pointer: str, dtype: DType, index: str, live: int, stride: int = 1) -> None:
        t = memory_type(dtype)
        if dtype.kind == "b":
            x = v.cast("zext", x, "i1", "i8")
        # of a masked store of one integer LLVM 22 may store the eight bytes that it was made of
        is_one = not is_size(live) and live == 1 < v.lanes
        if stride not in (0, 1) or (is_one and dtype.kind in "biu"):
            first = self._apart(t, pointer, index, stride or 1)
            if is_size(live):
                self._at_once(v, "scatter", first, dtype, stride, live, x)
                return
            for lane in range(live):
                one = self.b(f"extractelement {v.type(t)} {x}, i64 {lane}")
                place = self.b(f"getelementptr {t}, ptr {first}, i64 {lane * stride}") if lane else first
                self.b.do(f"store {t} {one}, ptr {place}, align {dtype.itemsize}")
            return
        place = self.b(f"getelementptr {t}, ptr {pointer}, i64 {index}")
        if live == v.lanes:
            self.b.do(f"store {v.type(t)} {x}, ptr {place}, align {dtype.itemsize}")
        else:
            self._masked(v, "store", place, dtype, live, x)

    def _at_once(self, v: Vector, what: str, first: str, dtype: DType, stride: int, live: int, x: str = "") -> str:
        """Elements that lie so far apart, as one instruction reads or writes them."""
        steps = f"<{', '.join(f'i64 {lane if is_size(stride) else lane * stride}' for lane in range(v.lanes))}>"
        if is_size(stride):
            steps = v.two("mul nsw", "i64", steps, v.spread(f"{stride}", "i64"))
        places = self.b(f"getelementptr {memory_type(dtype)}, ptr {first}, {v.type('i64')} {steps}")
        return self._masked(v, what, places, dtype, live, x)

    def _apart(self, t: str, pointer: str, index: str, stride: int) -> str:
        """The pointer to the first of elements that lie so far apart: the others are at fixed places behind it."""
        at = index if stride == 1 else self.b(f"mul nsw i64 {index}, {stride}")
        return self.b(f"getelementptr {t}, ptr {pointer}, i64 {at}")

    def _masked(self, v: Vector, what: str, place: str, dtype: DType, live: int, x: str = "", mask: str = "") -> str:
        """What one instruction does with the lanes that are there; `gather` and `scatter` have a place for each."""
        t = memory_type(dtype)
        kind, whole = {"float": "f32", "double": "f64"}.get(t, t), v.type(t)
        pointer, suffix = (v.type("ptr"), f"v{v.lanes}p0") if what in ("gather", "scatter") else ("ptr", "p0")
        name, mask = f"llvm.masked.{what}.v{v.lanes}{kind}.{suffix}", mask or self._mask(live)
        if what in ("load", "gather"):
            self.b.called[name] = f"declare {whole} @{name}({pointer}, i32, {v.type('i1')}, {whole})"
            given = f"{pointer} {place}, i32 {dtype.itemsize}, {mask}, {whole} zeroinitializer"
            return self.b(f"call {whole} @{name}({given})")
        self.b.called[name] = f"declare void @{name}({whole}, {pointer}, i32, {v.type('i1')})"
        self.b.do(f"call void @{name}({whole} {x}, {pointer} {place}, i32 {dtype.itemsize}, {mask})")
        return ""

    def _mask(self, live: int) -> str:
        if is_size(live):
            return self._lanes_before(self.b(f"trunc i64 {live} to i32"))
        bits = ", ".join("i1 1" if lane < live else "i1 0" for lane in range(self.lanes))
        return f"{self.wide.type('i1')} <{bits}>"

    def _lanes_before(self, count: str) -> str:
        """A mask of so many lanes, which may be none, or more than there are."""
        lanes = ", ".join(f"i32 {lane}" for lane in range(self.lanes))
        return (
            f"{self.wide.type('i1')} {self.wide.two('icmp slt', 'i32', f'<{lanes}>', self.wide.spread(count, 'i32'))}"
        )
