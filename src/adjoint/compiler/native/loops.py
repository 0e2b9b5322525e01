"""A kernel as a nest of loops: over rows, and in each row over columns, vector by vector."""

from __future__ import annotations

import collections
import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from adjoint.compiler.graph import Equation, Value
from adjoint.compiler.native import reductions
from adjoint.compiler.native.elementary import CALLED
from adjoint.compiler.native.elements import EMITTERS, constant, extreme, operand_dtypes
from adjoint.compiler.native.kernels import REDUCTIONS, Kernel, split_of
from adjoint.compiler.native.machine import adds_products, vector_bytes
from adjoint.compiler.native.memory import Indices, Memory, Row
from adjoint.compiler.native.plan import Plan
from adjoint.compiler.native.reductions import State
from adjoint.compiler.native.symbolic import SIZES, with_sizes
from adjoint.compiler.native.text import Builder, Loop, Vector, element_type, memory_type, number
from adjoint.compiler.sizes import is_size
from adjoint.primitives import DType
from adjoint.primitives.sizes import as_recorded

_INLINED = 200  # lines of a step's kernel that goes into its loop, where arrays of few elements become registers
_LONG = 4  # vectors of a row, from which on
_SUMMED = 4  # vectors that a pass with sums has at once
_TWICE = 64  # equations of a kernel, up to which it takes two vectors at once where it calls functions
_TURNS = 2  # rows of which each is computed while the other one's reductions are waited for
_STALLS = 4  # vectors of a row: of shorter rows, reads of one wait for a masked write of the last one beside it
_NEAR = 1 << 20  # operations of a kernel, up to which it may have memory more, in the cache
_CHEAP = 5  # operations that are rather done again in a later pass than their result kept


FAILED: Any = object()  # in the place of an array: a byte, which is 1 where something does not hold


def _is(x: Any) -> bool:
    return x.__class__ is Value


class Nest(Memory):
    """The text of a kernel's function, what its arguments are, and memory that it needs beside."""

    called: dict[str, str]
    last: int
    name: str
    texts: list[str]
    over_rows: dict[Value, str]  # of one step along the columns: reductions over rows, and what all rows read
    common: dict[Value, str]

    def __init__(self, plan: Plan, kernel: Kernel, name: str) -> None:
        self.plan, self.kernel, self.name = plan, kernel, name
        self.b: Builder = Builder()
        self.split: int = split_of(kernel)
        self.columns: int = math.prod(kernel.domain[self.split :])
        widest = max([x.dtype.itemsize for x in kernel.kind])  # also of integers, which are rare
        most = max(1, vector_bytes() // widest)
        calls = any(e.name in CALLED for e in kernel.equations)
        sums = any(e.name == "sum" and x.dtype.kind == "f" for e in kernel.equations for x in e.operands)
        often = 1
        is_long = is_size(self.columns) or self.columns >= _LONG * most
        if len(kernel.equations) <= _TWICE and (calls or sums) and is_long:
            # an elementary function works on one vector while it waits for the other; a sum adds all with few roundings
            often = 2 if calls else _SUMMED
        exact = plan.inner and self.columns < most and not kernel.reduced  # no masks, which are memory
        if is_size(self.columns):
            self.lanes: int = most * often
        else:
            self.lanes = self.columns if exact else min(most * often, 1 << (self.columns - 1).bit_length())
        self.carried: int = min(self.lanes, most)  # lanes of a reduction that is carried along
        self.row, self.wide = Vector(self.b, 1), Vector(self.b, self.lanes)
        self.buffers: list[Any] = []  # roots, or scratch memory as (elements, dtype)
        self._enter(Row(0, []))
        self.span: tuple[str, int | str] = "0", self.columns // self.lanes * self.lanes  # of columns in whole vectors
        self.rest: int = self.columns % self.lanes
        self._levels()
        self.turns: int = self._rows_at_once()  # rows whose passes take turns: one is computed while another waits
        self._needs()
        self._write()

    # --- which pass computes what ---

    def _inside(self, e: Equation) -> list[Value]:
        """What an equation reads of the kernel's own values."""
        found = [self._root(x) for x in e.operands if x.__class__ is Value and x not in self.kernel.read]
        return [x for x in found if x in self.kernel.kind]

    def _levels(self) -> None:
        kind = self.kernel.kind
        self.level: dict[Value, int] = {}
        self._cost: dict[Value, int] = {}
        for e in self.kernel.equations:
            out: Any = e.results[0]
            before = self._inside(e)
            self.level[out] = max([self.level[x] for x in before], default=0) + (
                e.name in REDUCTIONS and kind[out] == "row"
            )
            own = 1 + _CHEAP * (e.name in CALLED)
            self._cost[out] = own + sum(self._cost[x] for x in before if kind[x] == "full")
        self.last = max([self.level[x] - (x in self.kernel.reduced and kind[x] == "row") for x in kind])
        self.last = max([self.last, *[self.level[x] for x in kind]])

    def _rows_at_once(self) -> int:
        """How many rows take turns: a reduction is waited for, and what is added to all rows is written once."""
        runs = self._row_axes()
        if not runs or bool(as_recorded(runs[-1][0]) < _TURNS) or len(self.kernel.equations) > _TWICE:
            return 1
        if "row" not in self.kernel.kind.values() or any(
            e.name in ("gather", "scatter") for e in self.kernel.equations
        ):
            return 1
        late = [self._access(e.results[0])[2] for e in self._reductions("rows")]  # type: ignore[arg-type]
        return 1 if any(s for strides in late for s in strides[: self.split]) else _TURNS

    def _operand_level(self, e: Equation) -> int:
        return max([self.level[x] for x in self._inside(e)], default=0)

    def _needs(self) -> None:
        """For each pass over a row the equations that it computes, what it takes from memory, and what it leaves."""
        kind, equations = self.kernel.kind, self.kernel.equations
        self.kept: dict[Value, Any] = {}  # full values that later passes read again: where
        self.passes: list[tuple[list[Equation], list[Value]]] = []
        for level in range(self.last, -1, -1):
            stored = [x for x in self.kernel.stored if kind[x] == "full" and self.level[x] == level]
            wanted: set[Value] = {*stored, *[x for x in self.kept if self.level[x] == level]}
            taken: list[Value] = []
            made: list[Equation] = []
            for e in reversed(equations):
                out: Any = e.results[0]
                if e.name in REDUCTIONS:
                    if self._operand_level(e) == level:
                        made.append(e)
                        wanted.update(x for x in self._inside(e) if kind[x] == "full")
                elif out in wanted and kind[out] == "full":
                    if self.level[out] < level and self._cost[out] > _CHEAP:
                        whole = out in self.kernel.stored and out not in self.kernel.target
                        self.kept[out] = out if whole else (self.turns * self.columns, out.dtype)
                        taken.append(out)
                    else:
                        made.append(e)
                        wanted.update(x for x in self._inside(e) if kind[x] == "full")
            self.passes.insert(0, (made[::-1], taken))

    def _orders(self) -> list[list[Equation]]:
        """For each pass its equations in the order in which they are computed."""
        return [equations for equations, _ in self.passes]

    @property
    def written(self) -> list[Value]:
        """The arrays that it writes to, or to parts of."""
        return list(
            dict.fromkeys(self.kernel.target[x][0] if x in self.kernel.target else x for x in self.kernel.stored)
        )

    def _stalls(self) -> bool:
        """Whether reads of a row would wait for a masked write of the last one beside it."""
        if is_size(self.columns) or is_size(self.kernel.work):
            return False
        return bool(self.rest) and 1 < self.columns / self.lanes < _STALLS and self.kernel.work < _NEAR

    def over(self) -> list[tuple[Value, Value]]:
        """Results, each with an array of its size that it may be written over: no element is read after that."""
        kernel = self.kernel
        if self.split and self._stalls():
            return []
        made: dict[tuple[int, Any], int] = {}  # where in a pass a result is made
        first: dict[tuple[Any, int], int] = {}  # where in a pass a value is read first
        last: dict[Any, tuple[int, int]] = {}  # ... and where last, of all passes
        orders = self._orders()
        for level, equations in enumerate(orders):
            products = self._products(level, equations)  # what they read is read where they are added up
            for i, e in enumerate(equations):
                made[level, e.results[0]] = i
                if e.results[0] in products:
                    continue
                product = products.get(self._root(e.operands[0])) if e.name in REDUCTIONS else None
                for x in (product or e).operands:
                    if _is(x):
                        first.setdefault((x, level), i)
                        last[x] = level, i
        gathered = {e.operands[0] for e in kernel.equations if e.name == "gather"}
        often = collections.Counter([self._root(x) for x in kernel.read])
        fit: dict[Any, list[tuple[Value, Value]]] = {}  # what may be written over, by how it lies in memory
        for x in kernel.read:
            root, *where = self._access(x)
            if x not in gathered and often[root] == 1 and root.const is None and kernel.read[x][2]:
                fit.setdefault((*where, math.prod(root.shape)), []).append((x, root))
        found = []
        for out in kernel.stored:
            if kernel.kind[out] != "full" or out in kernel.target:
                continue
            level = min(self.level[out], len(orders) - 1)
            at = made[level, out]
            for x, root in fit.get((*self._access(out)[1:], math.prod(out.shape)), ()):
                end = last.get(x, (-1, -1))  # in a pass each element is read once
                if end <= (level, at) or (end[0] == level and first[x, level] <= at):
                    found.append((out, root))
        return found

    # --- the nest ---

    def _write(self) -> None:
        b = self.b
        totals = self._reductions("total")
        for e in self._reductions("rows"):
            self._cleared(e)
        state = {id(e): reductions.started(e) for e in totals}
        runs = self._row_axes()
        if not runs:
            state = self._row_passes(state, [[]])
        else:
            loops: list[Loop] = []
            for size, _ in runs[:-1]:
                loops.append(b.begin(size, 1, reductions.carried(totals, [state[id(e)] for e in totals], self.carried)))
                state = reductions.unflat(totals, [name for _, _, name in loops[-1].carried])
            indices = [(loop.counter, count) for loop, (_, count) in zip(loops, runs, strict=False)]
            size, count = runs[-1]
            state = self._in_turns(totals, state, "0", size, size, lambda row: [*indices, (row, count)])
            for loop in reversed(loops):
                b.end(loop, reductions.flat(totals, state))
        self._save_totals(totals, state)
        self._close()

    def _in_turns(
        self,
        totals: Sequence[Equation],
        state: State,
        first: str,
        end: Any,
        size: Any,
        indices: Callable[[str], Indices],
    ) -> State:
        """Rows from one to another: several take turns, and what is left of so many comes one by one."""
        b, whole, may_skip = self.b, end, False
        steps = [(first, end, self.turns)]
        if self.turns > 1 and (is_size(size) or size % self.turns):
            count = b(f"sub i64 {end}, {first}")
            whole = b(f"add i64 {first}, {b(f'and i64 {count}, {-self.turns}')}")
            steps, may_skip = [(first, whole, self.turns), (whole, end, 1)], True
        for start, stop, step in steps:
            before = reductions.carried(totals, [state[id(e)] for e in totals], self.carried)
            loop = b.begin(stop, step, before, start, may_skip)
            rows = [b(f"add nuw nsw i64 {loop.counter}, {turn}") if turn else loop.counter for turn in range(step)]
            found = reductions.unflat(totals, [name for _, _, name in loop.carried])
            found = self._row_passes(found, [indices(row) for row in rows])
            state = reductions.unflat(totals, b.end(loop, reductions.flat(totals, found)))
        return state

    def shown(self) -> list[str]:
        """What it computes, for people to read."""
        names = [e.parameters.get("join", e.name) for e in self.kernel.equations]
        return [f"{self.name}: {' x '.join(map(str, self.kernel.domain)) or '1'}: {', '.join(names)}"]

    def _reductions(self, how: str) -> list[Equation]:
        return [e for e in self.kernel.equations if self._how(e) == how]

    def _save_totals(self, totals: Sequence[Equation], state: dict[int, list[str]]) -> None:
        for e in totals:
            out: Any = e.results[0]
            if out in self.kernel.stored:
                found = reductions.finished(self.b, e, state[id(e)], self.carried)
                self._save(self.row, found, self._pointer(out), out.dtype, "0", 1)

    def _close(self) -> None:
        b = self.b
        lines = "\n".join(with_sizes(b.lines, self.plan.sizes, lambda: self._pointer(SIZES)))
        arguments = ", ".join(f"ptr %b{i}" for i in range(len(self.buffers)))
        text = f"define internal void @{self.name}({arguments}) #0 {{\nentry:\n{lines}\n  ret void\n}}"
        inlined = self.plan.inner and len(b.lines) < _INLINED
        self.texts, self.called = [text.replace("#0", "#1") if inlined else text], b.called

    def _how(self, e: Equation) -> str:
        """What kind of reduction it is: of the columns of a `row`, of all as one `total`, or over `rows`."""
        out: Any = e.results[0]
        if e.name not in REDUCTIONS:
            return ""
        if self.kernel.kind[out] == "row":
            return "row"
        return "total" if len(self.kernel.reduced[out]) == len(self.kernel.domain) else "rows"

    def _row_passes(self, totals: State, lines: Sequence[Indices]) -> State:
        """All passes over a row, or over several that take turns; where they are these indices say."""
        rows = [Row(turn, indices) for turn, indices in enumerate(lines)]
        state = dict(totals)
        for level, (equations, taken) in enumerate(self.passes):
            for row in rows:
                self._enter(row)
                self._row_values(level)
            if not equations and not any(self.level[x] == level for x in self.kept):
                continue
            for row in rows:
                row.state = {id(e): reductions.started(e) for e in equations if self._how(e) == "row"}
            self._columns(level, equations, taken, state, rows)
            for row in rows:
                self._enter(row)
                for e in equations:
                    if self._how(e) == "row":
                        self.rows[e.results[0]] = reductions.finished(self.b, e, row.state[id(e)], self.carried)  # type: ignore[index]
        return state

    def _row_values(self, level: int) -> None:
        for e in self.kernel.equations:
            out: Any = e.results[0]
            if self.kernel.kind[out] == "row" and self.level[out] == level:
                if e.name not in REDUCTIONS:
                    self.rows[out] = self._computed(self.row, e, {}, "0", 1)
                if out in self.kernel.stored:
                    self._save(self.row, self.rows[out], self._address(out), out.dtype, "0", 1)

    def _before_columns(self, equations: list[Equation], taken: list[Value]) -> None:
        """Load once what is the same in all columns, and find where lines begin."""
        for e in equations:
            for x in e.operands:
                if x in self.kernel.read and self._column_stride(x) == 0 and x not in self._once:
                    found = self._load(self.row, self._address(x), x.dtype, "0", 0, 1)
                    self._once[x] = self._spread(found, element_type(x.dtype))
                elif x.__class__ is Value and (r := self._root(x)) in self.rows and r not in self._once:
                    self._once[r] = self._spread(self.rows[r], element_type(r.dtype))
                elif x in self.kernel.read:
                    self._address(x)
        for x in (*taken, *self.kept):
            self._place_of(x)
        for x in self.kernel.stored:
            if self.kernel.kind[x] == "full":
                self._address(x)
        for e in equations:
            if self._how(e) == "rows":
                self._address(e.results[0])  # type: ignore[arg-type]

    def _columns(
        self, level: int, equations: list[Equation], taken: list[Value], state: State, rows: Sequence[Row]
    ) -> None:
        """One pass over the columns of rows."""
        b, (first, stop) = self.b, self.span
        for row in rows:
            self._enter(row)
            self._before_columns(equations, taken)
        sums = [e for e in equations if reductions.is_rounded(e) and self._how(e) in ("row", "total")]
        shared = [e for e in equations if self._how(e) == "total" and e not in sums]
        own = [*sums, *[e for e in equations if self._how(e) == "row" and e not in sums]]
        steps = max(1, stop // self.lanes) if isinstance(stop, int) and not is_size(stop) else 0  # which is not known
        few = 0 < steps <= reductions.PLAIN
        working: list[State] = [{} for _ in rows]

        def body(index: str, live: int) -> None:
            self.over_rows = {}
            self.common = {}
            for row, mine in zip(rows, working, strict=True):
                self._enter(row)
                both = {**state, **mine}
                self._body(self.wide, level, equations, taken, both, index, live)
                mine.update({key: both[key] for key in mine})
                state.update({id(e): both[id(e)] for e in shared})
            for out, found in self.over_rows.items():
                self._save(self.wide, found, self._address(out), out.dtype, index, live)

        def part(first: str, stop: int | str, rest: int) -> None:
            """The vectors from one column to another, with plain sums, and what is behind the last whole vector."""
            for row, mine in zip(rows, working, strict=True):
                mine.update({id(e): reductions.started(e, plain=True) if e in sums else row.state[id(e)] for e in own})
            carried = [*[(state, e) for e in shared], *[(mine, e) for mine in working for e in own]]
            if not is_size(stop) and stop == self.lanes:
                body("0", self.lanes)
            elif is_size(stop) or stop:
                self._loop(stop, self.lanes, first, carried, lambda index: body(index, self.lanes))
            if is_size(rest):  # there may be none
                last = str(self.columns - rest)
                self._loop(self.columns, self.lanes, last, carried, lambda index: body(index, rest))
            elif rest:
                body(str(self.columns - rest), rest)
            for row, mine in zip(rows, working, strict=True):
                for e in own:
                    known = row.state if self._how(e) == "row" else state
                    if e in sums and (known is state or not few):
                        v, (more,) = Vector(b, self.carried), mine[id(e)]
                        known[id(e)] = reductions.reduced(v, e, known[id(e)], more, self.carried)
                    else:
                        known[id(e)] = mine[id(e)]

        if few or not sums:
            part(first, stop, self.rest)
            return
        if is_size(stop) or stop:
            length = reductions.PLAIN * self.lanes

            def long_part(index: str) -> None:
                end = b(f"add nuw nsw i64 {index}, {length}")
                if steps % reductions.PLAIN or not steps:
                    end = b.call("llvm.umin.i64", "i64", [end, str(stop)])
                part(index, end, 0)

            totals = [e for e in own if self._how(e) == "total"]
            kept = [(state, e) for e in (*shared, *totals)]
            kept += [(row.state, e) for row in rows for e in own if e not in totals]
            self._loop(stop, length, first, kept, long_part)
        if is_size(self.rest) or self.rest:
            part("0", 0, self.rest)

    def _loop(
        self,
        stop: int | str,
        step: int,
        first: str,
        carried: Sequence[tuple[State, Equation]],
        body: Callable[[str], None],
    ) -> None:
        """A loop that carries along what reductions have in these states."""
        equations = [e for _, e in carried]
        before = reductions.carried(equations, [state[id(e)] for state, e in carried], self.carried)
        loop = self.b.begin(stop, step, before, first, is_size(self.columns))

        def rename(names: Iterable[str]) -> None:
            left = iter(names)
            for state, e in carried:
                state[id(e)] = [next(left) for _ in state[id(e)]]

        rename([name for _, _, name in loop.carried])
        body(loop.counter)
        rename(self.b.end(loop, [x for state, e in carried for x in state[id(e)]]))

    def _spread(self, x: str, element: str) -> str:
        if self.lanes == 1:
            return x
        scalar = self.b(f"extractelement <1 x {element}> {x}, i64 0")
        return self.wide.spread(scalar, element)

    def _place_of(self, x: Value) -> str:
        """Where a full value is kept for later passes over this row."""
        if self.kept[x] is x:
            return self._address(x)
        place = self._pointer(self.kept[x])
        if not self._turn:
            return place
        return self.b(f"getelementptr {memory_type(x.dtype)}, ptr {place}, i64 {self._turn * self.columns}")

    def _body(
        self,
        v: Vector,
        level: int,
        equations: list[Equation],
        taken: list[Value],
        state: State,
        index: str,
        live: int,
    ) -> None:
        memo: dict[Value, str] = dict(self._once)
        products = self._products(level, equations) if live == v.lanes else {}
        for x in taken:
            memo[x] = self._load(v, self._place_of(x), x.dtype, index, 1, live)
        for e in equations:
            out: Any = e.results[0]
            if out in products:
                continue
            if e.name == "scatter":
                self._scattered(v, e, memo, index, live)
                continue
            if e.name not in REDUCTIONS:
                memo[out] = self._computed(v, e, memo, index, live)
                if self.level[out] == level and out in self.kernel.stored:
                    stride = self._column_stride(out) if out in self.kernel.target else 1
                    self._save(v, memo[out], self._address(out), out.dtype, index, live, stride)
                if self.level[out] == level and self.kept.get(out, out) is not out:
                    self._save(v, memo[out], self._place_of(out), out.dtype, index, live)
                continue
            before = ""
            if self._how(e) == "rows":
                before = self.over_rows.get(out) or self._load(v, self._address(out), out.dtype, index, 1, live)
            if (product := products.get(self._root(e.operands[0]))) is not None:
                one, other = (self._operand(v, x, memo, index, live) for x in (product.operands * 2)[:2])
                if before:
                    self.over_rows[out] = v.call("fma", element_type(out.dtype), one, other, before)
                else:
                    state[id(e)] = [reductions.with_products(v, e, state[id(e)][0], one, other, self.carried)]
                continue
            element = self._operand(v, e.operands[0], memo, index, live)
            if before:
                self.over_rows[out] = reductions.combined(v, e, before, element)
            else:
                state[id(e)] = self._reduced(v, e, state[id(e)], element, live)

    def _products(self, level: int, equations: list[Equation]) -> dict[Value, Equation]:
        """Products that this pass only adds up: a processor may multiply and add at once, with one rounding."""
        found: dict[Value, Equation] = {}
        if not adds_products():
            return found
        read = collections.Counter([self._root(x) for e in equations for x in e.operands if _is(x)])
        last = {self._root(e.operands[0]) for e in equations if reductions.is_rounded(e)}
        for e in equations:
            out: Any = e.results[0]
            mine = e.name in ("multiply", "square") and out in last and read[out] == 1 and self.level[out] == level
            if (
                mine
                and out not in self.kernel.stored
                and out not in self.kept
                and not any(constant(x) is not None for x in e.operands)
            ):
                found[out] = e
        return found

    def _operand(self, v: Vector, x: Value, memo: dict[Value, str], index: str, live: int) -> str:
        if x in self.kernel.read:
            found = memo.get(x) or (self.common.get(x) if v is self.wide else None)
            if found is None:
                stride = self._column_stride(x) if v is self.wide else 0
                found = memo[x] = self._load(v, self._address(x), x.dtype, index, stride, live)
                if v is self.wide and not any(self._access(x)[2][: self.split]):
                    self.common[x] = found  # of all rows
            return found
        x = self._root(x)
        if v is self.row:
            return self.rows[x]
        return memo[x]

    def _computed(self, v: Vector, e: Equation, memo: dict[Value, str], index: str, live: int) -> str:
        if e.name == "gather":
            return self._gathered(v, e, memo, index, live)
        if e.name == "arange":
            return self._counted(v, e, index)
        wanted: Any = operand_dtypes(e)
        operands = []
        for x, dtype in zip(e.operands, wanted, strict=True):
            fixed = constant(x)
            operands.append(v.constant(fixed, dtype) if fixed is not None else self._operand(v, x, memo, index, live))
        return EMITTERS[e.name](v, wanted[-1], operands, e)

    def _counted(self, v: Vector, e: Equation, index: str) -> str:
        """Whole numbers, of which the first one is of this column."""
        long, dtype = np.dtype(np.int64), e.results[0].dtype  # type: ignore[union-attr]
        lanes = f"<{', '.join(f'i64 {lane}' for lane in range(v.lanes))}>"
        found = v.two("add", "i64", v.spread(index, "i64"), lanes)
        found = v.two("mul", "i64", found, v.constant(e.parameters["step"], long))
        found = v.two("add", "i64", found, v.constant(e.parameters["start"], long))
        if dtype.kind == "f":
            return v.cast("sitofp", found, "i64", element_type(dtype))
        return v.cast("trunc", found, "i64", element_type(dtype)) if dtype.itemsize < 8 else found

    # --- places that arrays name ---

    def _gathered(self, v: Vector, e: Equation, memo: dict[Value, str], index: str, live: int) -> str:
        x, base = e.operands[0], self._address(e.operands[0])
        stride, far = self._column_stride(x), self._far(v, e, memo, index, live)
        if self._is_one_place(e):
            return self._load(v, self._moved(base, far, x.dtype), x.dtype, index, stride, live)
        t = memory_type(x.dtype)
        if stride:
            columns = v.two("add", "i64", v.spread(index, "i64"), f"<{', '.join(f'i64 {i}' for i in range(v.lanes))}>")
            far = v.two("add", "i64", far, v.two("mul", "i64", columns, v.spread(str(stride), "i64")))
        pointers = self.b(f"getelementptr {t}, ptr {base}, {v.type('i64')} {far}")
        found = self._masked(v, "gather", pointers, x.dtype, live)
        return v.two("icmp ne", "i8", found, "zeroinitializer") if x.dtype.kind == "b" else found

    def _scattered(self, v: Vector, e: Equation, memo: dict[Value, str], index: str, live: int) -> None:
        """One after the other, in order: a place may be named several times."""
        (value, *_), (out,) = e.operands, e.results
        assert isinstance(out, Value)
        fixed, dtype, t = constant(value), out.dtype, element_type(out.dtype)
        x = v.constant(fixed, dtype) if fixed is not None else self._operand(v, value, memo, index, live)
        far, base, stride = self._far(v, e, memo, index, live), self._address(out), self._column_stride(out)
        if self._is_one_place(e) and (stride or self.columns == 1):
            place = self._moved(base, far, dtype)
            if e.parameters["join"] != "index_set":
                x = self._joined(v, e, self._load(v, place, dtype, index, stride, live), x)
            self._save(v, x, place, dtype, index, live, stride)
            return

        def one_lane(lane: int | str) -> None:
            at = self.b(f"extractelement {v.type('i64')} {far}, i64 {lane}")
            if stride:
                column = self.b(f"add nsw i64 {index}, {lane}")
                at = self.b(f"add nsw i64 {at}, {self.b(f'mul nsw i64 {column}, {stride}')}")
            place = self.b(f"getelementptr {memory_type(dtype)}, ptr {base}, i64 {at}")
            one = self.row.spread(self.b(f"extractelement {v.type(t)} {x}, i64 {lane}"), t)
            if e.parameters["join"] != "index_set":
                one = self._joined(self.row, e, self._load(self.row, place, dtype, "0", 0, 1), one)
            self._save(self.row, one, place, dtype, "0", 1)

        def each_lane() -> None:
            loop = self.b.begin(str(live))
            one_lane(loop.counter)
            self.b.end(loop)

        if is_size(live):
            return self.b.where(f"ne i64 {live}, 0", each_lane)
        for lane in range(live):
            one_lane(lane)
        return None

    def _joined(self, v: Vector, e: Equation, x: str, y: str) -> str:
        dtype: DType = e.results[0].dtype  # type: ignore[union-attr]
        join = e.parameters["join"].removeprefix("index_")
        if join in ("max", "min"):
            return extreme(v, f"{join}imum", dtype, x, y)
        names = reductions.JOINED["sum" if join == "add" else "prod"]
        return v.two(names[dtype.kind == "f"], element_type(dtype), x, y)

    def _is_one_place(self, e: Equation) -> bool:
        """Whether the arrays name one place for all columns."""
        return all(
            constant(x) is not None
            or (x in self.kernel.read and self._column_stride(x) == 0)
            or self._root(x) in self.rows
            for x in e.operands[1:]
        )

    def _moved(self, pointer: str, far: str, dtype: DType) -> str:
        at = self.b(f"extractelement {self.wide.type('i64')} {far}, i64 0")
        return self.b(f"getelementptr {memory_type(dtype)}, ptr {pointer}, i64 {at}")

    def _far(self, v: Vector, e: Equation, memo: dict[Value, str], index: str, live: int) -> str:
        """How many elements the places are from the first ones. One out of range is noted, and taken for 0."""
        long, total = np.dtype(np.int64), "zeroinitializer"
        for x, (size, stride) in zip(e.operands[1:], e.parameters["places"], strict=True):
            fixed = constant(x)
            at = v.constant(fixed, x.dtype) if fixed is not None else self._operand(v, x, memo, index, live)
            if x.dtype.itemsize < 8:
                at = v.cast("sext" if x.dtype.kind == "i" else "zext", at, element_type(x.dtype), "i64")
            if live < v.lanes:  # lanes that are not there may hold anything
                at = v.select(self._mask(live).split(" ", 3)[3], "i64", at, "zeroinitializer")
            if x.dtype.kind == "i":
                behind = v.two("add", "i64", at, v.constant(size, long))
                at = v.select(v.two("icmp slt", "i64", at, "zeroinitializer"), "i64", behind, at)
            inside = v.two("icmp ult", "i64", at, v.constant(size, long))
            self._note(v, inside)
            at = v.select(inside, "i64", at, "zeroinitializer")
            total = v.two("add", "i64", total, v.two("mul", "i64", at, v.constant(stride, long)))
        return total

    def _note(self, v: Vector, holds: str) -> None:
        name = f"llvm.vector.reduce.and.v{v.lanes}i1"
        self.b.called[name] = f"declare i1 @{name}({v.type('i1')})"
        failed = self._pointer(FAILED)
        before = self.b(f"load i8, ptr {failed}, align 1")
        all_hold = self.b(f"call i1 @{name}({v.type('i1')} {holds})")
        fails = self.b(f"select i1 {all_hold}, i8 {before}, i8 1")
        self.b.do(f"store i8 {fails}, ptr {failed}, align 1")

    def _reduced(self, v: Vector, e: Equation, state: list[str], x: str, live: int) -> list[str]:
        """The state of a reduction with a vector of which so many lanes are there."""
        if live < v.lanes:
            dtype: DType = e.operands[0].dtype
            t = element_type(dtype)
            # LLVM 22 takes 0 / 0 for 0, and leaves out that such lanes become 0; -0.0 changes no sum either
            nothing = number(-0.0, dtype) if e.name == "sum" and dtype.kind == "f" else reductions.identity(e)
            x = v.select(self._mask(live).split(" ", 3)[3], t, x, f"splat ({t} {nothing})")
        return reductions.reduced(v, e, state, x, self.carried)

    def _cleared(self, e: Equation) -> None:
        """Begin a reduction over rows with what changes nothing."""
        out: Any = e.results[0]
        t = memory_type(out.dtype)
        loop = self.b.begin(math.prod(out.shape))
        place = self.b(f"getelementptr {t}, ptr {self._pointer(out)}, i64 {loop.counter}")
        self.b.do(f"store {t} {reductions.identity(e)}, ptr {place}, align {out.dtype.itemsize}")
        self.b.end(loop)
