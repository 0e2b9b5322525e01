"""A kernel of a plan as functions of CUDA's C.

One function computes all that is stored: a thread for each element; or, where rows are reduced, a group of threads for
each row, which goes over its columns once for each reduction that others wait for. Values are computed again in each
pass: memory is what takes the time. Reductions over rows, or over all, are functions of their own after that. Where
there is much to reduce, many groups of threads each reduce a part, and one more function joins the parts. No order of
additions depends on which thread comes first, so results are the same in each run.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from adjoint.compiler.cuda.elements import c_type, expression, literal
from adjoint.compiler.cuda.preamble import start, state_type
from adjoint.compiler.graph import Equation, Value
from adjoint.compiler.native.elements import constant, operand_dtypes
from adjoint.compiler.native.kernels import REDUCTIONS, Kernel, split_of
from adjoint.compiler.native.plan import Plan
from adjoint.compiler.native.views import contiguous

THREADS = 256  # of a block
_BLOCKS = 1 << 16  # of a launch, at most: threads take several elements then
_ENOUGH = 512  # groups of threads that keep a GPU busy
_EACH = 16  # elements that a thread should have to reduce before another group is worth it
_SHORT = 1 << 30  # indices and places that 32 bits hold, also when a step is added

Group = Sequence[tuple[str, int]]  # names of coordinates, each with the axis of the domain that it counts


class Launch:
    """A function, how many threads run it, and the arrays that it is given: values, or (elements, dtype) of its own."""

    def __init__(
        self,
        name: str,
        grid: tuple[int, ...],
        block: tuple[int, ...],
        buffers: Sequence[Any],
        writes: set[int],
        text: str,
    ) -> None:
        self.name, self.grid, self.block, self.buffers, self.text = name, grid, block, list(buffers), text
        self.writes = writes

    def over(self) -> list[Any]:
        """What it may write over: nothing, as threads read and write in any order."""
        return []


class Source:
    """The functions of one kernel, as launches in order."""

    def __init__(self, plan: Plan, kernel: Kernel, name: str) -> None:
        self.plan, self.kernel, self.name = plan, kernel, name
        self.makers: dict[Any, Equation] = {e.results[0]: e for e in kernel.equations}
        self.stored: list[Value] = [x for x in kernel.stored if kernel.kind[x] != "late"]
        groups: dict[tuple[int, ...], list[Equation]] = {}
        for e in kernel.equations:
            out: Any = e.results[0]
            if e.name in REDUCTIONS and kernel.kind[out] == "late" and out in kernel.stored:
                groups.setdefault(kernel.reduced[out], []).append(e)
        for equations in groups.values():  # rows that they read are brought to memory
            _, rows = self.needed([e.operands[0] for e in equations])
            self.stored += [x for x in rows if x not in self.stored]
        self.launches: list[Launch] = []
        if self.stored:
            by_row = any(kernel.kind[x] == "row" for x in kernel.kind)
            self.launches.append((_of_rows if by_row else _of_elements)(self))
        for k, (over, equations) in enumerate(groups.items()):
            self.launches += _reduced(self, f"{name}_r{k}", over, equations)

    # --- what is computed of what ---

    def root(self, x: Value) -> Value:
        return self.plan.root.get(x, x)  # type: ignore[no-any-return]

    def inside(self, e: Equation) -> list[Value]:
        """What an equation reads of the kernel's own values."""
        found = [self.root(x) for x in e.operands if x.__class__ is Value and x not in self.kernel.read]
        return [x for x in found if x in self.kernel.kind]

    def needed(self, values: Sequence[Value]) -> tuple[list[Equation], list[Value]]:
        """The equations of full values that these follow from, in order, and the values of rows that they read."""
        wanted = {self.root(x) for x in values if x not in self.kernel.read}
        found: list[Equation] = []
        rows: dict[Value, None] = {}
        for e in reversed(self.kernel.equations):
            out: Any = e.results[0]
            if out in wanted and self.kernel.kind[out] == "full":
                found.append(e)
                wanted.update(self.inside(e))
        for x in wanted:
            if self.kernel.kind.get(x) == "row":
                rows[x] = None
        order = list(self.kernel.kind)
        return found[::-1], sorted(rows, key=order.index)

    def access(self, x: Value) -> tuple[Any, int, tuple[int, ...]]:
        """Where elements of a value lie: the array, the first one's place, and strides along the domain."""
        kernel = self.kernel
        if x in kernel.read:
            layout, strides, _ = kernel.read[x]
            return self.root(x), layout.offset, strides
        buffer, layout = kernel.target.get(x, (x, contiguous(x.shape)))
        return buffer, layout.offset, kernel.strides(layout, kernel.axes[x])


class _Function:
    """The lines of one function, and the arrays that it reads and writes."""

    def __init__(self, source: Source, name: str) -> None:
        self.source, self.name, self.kernel = source, name, source.kernel
        self.lines: list[str] = []
        self.buffers: list[Any] = []
        self.types: list[str] = []
        self.writes: set[int] = set()
        self.names: dict[Any, str] = {}  # of values of rows
        self.states: dict[Equation, str] = {}  # names of what reductions carry along
        self.save: Callable[[int, str], str]  # the line that stores the result of one of several reductions
        self._count = 0
        self.indent = "  "
        largest = [math.prod(self.kernel.domain)]
        for x in (*self.kernel.read, *self.kernel.stored):
            _, offset, strides = source.access(x)
            reach = sum([abs(s) * (n - 1) for s, n in zip(strides, self.kernel.domain, strict=True)])
            largest.append(abs(offset) + reach)
        self.index = "int" if max(largest) < _SHORT else "long long"

    def do(self, line: str) -> None:
        self.lines.append(self.indent + line)

    def opens(self, line: str) -> None:
        self.do(line + " {")
        self.indent += "  "

    def closes(self) -> None:
        self.indent = self.indent[2:]
        self.do("}")

    def name_of(self, letter: str = "v") -> str:
        self._count += 1
        return f"{letter}{self._count}"

    def array(self, buffer: Any, dtype: Any, writes: bool = False) -> str:
        i = next((i for i, x in enumerate(self.buffers) if x is buffer), len(self.buffers))
        if i == len(self.buffers):
            self.buffers.append(buffer)
            self.types.append(c_type(dtype))
        if writes:
            self.writes.add(i)
        return f"a{i}"

    def coordinates(self, index: str, axes: Sequence[int], values: Sequence[Value]) -> Group:
        """An index taken apart: one coordinate for each run of axes along which all these values lie as along one."""
        strides = [self.source.access(x)[2] for x in values]
        runs: list[tuple[int, int]] = []  # how many, and the last axis
        for axis in axes:
            n = self.kernel.domain[axis]
            if runs and runs[-1][1] == axis - 1 and all(s[axis - 1] == n * s[axis] for s in strides):
                runs[-1] = (runs[-1][0] * n, axis)
            else:
                runs.append((n, axis))
        found, rest = [], index
        for k, (n, axis) in enumerate(reversed(runs)):
            if k == len(runs) - 1:
                found.append((rest, axis))
                break
            name, left = self.name_of("i"), self.name_of("i")
            self.do(f"const {self.index} {name} = {rest} % {n}, {left} = {rest} / {n};")
            found.append((name, axis))
            rest = left
        return found[::-1]

    def place(self, x: Value, group: Group, writes: bool = False) -> str:
        """An element of a value, where these coordinates say."""
        buffer, offset, strides = self.source.access(x)
        terms = [name if strides[axis] == 1 else f"{name} * {strides[axis]}" for name, axis in group if strides[axis]]
        at = " + ".join([*([str(offset)] if offset or not terms else []), *terms])
        return f"{self.array(buffer, x.dtype, writes)}[{at}]"

    def computed(self, equations: Sequence[Equation], group: Group) -> dict[Any, str]:
        """Names of what these equations compute; loads are made once."""
        known: dict[Any, str] = {}
        for e in equations:
            known[e.results[0]] = self.equation(e, known, group)
        return known

    def equation(self, e: Equation, known: dict[Any, str], group: Group) -> str:
        out: Any = e.results[0]
        wanted: Any = operand_dtypes(e)
        operands = []
        for x, dtype in zip(e.operands, wanted, strict=True):
            fixed = constant(x)
            operands.append(literal(fixed, dtype) if fixed is not None else self.operand(x, known, group))
        name = self.name_of()
        self.do(f"const {c_type(out.dtype)} {name} = {expression(e, operands)};")
        return name

    def operand(self, x: Value, known: dict[Any, str], group: Group) -> str:
        if x in self.kernel.read:
            if x not in known:
                known[x] = self.name_of()
                self.do(f"const {c_type(x.dtype)} {known[x]} = {self.place(x, group)};")
            return known[x]
        x = self.source.root(x)
        return known[x] if x in known else self.names[x]

    def launch(self, grid: tuple[int, ...], block: tuple[int, ...]) -> Launch:
        parameters = ", ".join(
            f"Array<{'' if i in self.writes else 'const '}{t}> a{i}" for i, t in enumerate(self.types)
        )
        head = f'extern "C" __global__ void __launch_bounds__({math.prod(block)}) {self.name}({parameters}) {{'
        return Launch(self.name, grid, block, self.buffers, self.writes, "\n".join([head, *self.lines, "}"]))


def _read(source: Source, equations: Sequence[Equation]) -> list[Value]:
    return [x for e in equations for x in e.operands if x.__class__ is Value and x in source.kernel.read]


def _of_elements(source: Source) -> Launch:
    f, kernel = _Function(source, source.name), source.kernel
    count = math.prod(kernel.domain)
    equations, _ = source.needed(source.stored)
    blocks = min(-(-count // THREADS), _BLOCKS)
    step = f"({f.index})(gridDim.x * blockDim.x)"
    f.opens(f"for ({f.index} i = blockIdx.x * blockDim.x + threadIdx.x; i < {count}; i += {step})")
    group = f.coordinates("i", range(len(kernel.domain)), [*_read(source, equations), *source.stored])
    known = f.computed(equations, group)
    for x in source.stored:
        f.do(f"{f.place(x, group, writes=True)} = {known[x]};")
    f.closes()
    return f.launch((blocks,), (THREADS,))


# --- rows ------------------------------------------------------------------------------------------


def levels(source: Source) -> dict[Any, int]:
    """After how many passes over a row each value is known."""
    found: dict[Any, int] = {}
    for e in source.kernel.equations:
        out: Any = e.results[0]
        before = max([found[x] for x in source.inside(e)], default=0)
        found[out] = before + (e.name in REDUCTIONS and source.kernel.kind[out] == "row")
    return found


def _power_of_two(n: int) -> int:
    """The next one, which is not smaller."""
    return 1 << max(n - 1, 0).bit_length()


def _of_rows(source: Source) -> Launch:
    f, kernel = _Function(source, source.name), source.kernel
    split, level = split_of(kernel), levels(source)
    rows, columns = math.prod(kernel.domain[:split]), math.prod(kernel.domain[split:])
    lanes = min(THREADS, _power_of_two(columns))
    together = THREADS // lanes
    blocks = min(-(-rows // together), _BLOCKS)
    reductions = [e for e in kernel.equations if e.name in REDUCTIONS and kernel.kind[e.results[0]] == "row"]  # type: ignore[index]
    shared = {}
    for k, kind in enumerate(dict.fromkeys(state_type(e.name, e.operands[0].dtype) for e in reductions)):
        shared[kind] = f"shared{k}"
        f.do(f"__shared__ {kind} shared{k}[{THREADS}];")
    f.do(f"const int lane = threadIdx.x, place = threadIdx.y * {lanes} + lane;")
    step = f"({f.index})gridDim.x * {together}"
    f.opens(f"for ({f.index} first = ({f.index})blockIdx.x * {together}; first < {rows}; first += {step})")
    f.do(f"const bool live = first + (int)threadIdx.y < {rows};")
    if rows > 1:
        f.do(f"const {f.index} row = live ? first + (int)threadIdx.y : {rows - 1};  // the others repeat the last")
    values = [*_read(source, kernel.equations), *source.stored]
    of_row = f.coordinates("row", range(split), values)
    loaded: dict[Any, str] = {}  # what rows read
    last = max(level.values())
    for now in range(last + 1):
        for e in kernel.equations:
            out: Any = e.results[0]
            if kernel.kind[out] == "row" and level[out] == now:
                if e.name not in REDUCTIONS:
                    f.names[out] = f.equation(e, loaded, of_row)
                if out in source.stored:
                    f.do(f"if (live && lane == 0) {f.place(out, of_row, writes=True)} = {f.names[out]};")
        due = [e for e in reductions if level[e.results[0]] == now + 1]
        stored = [x for x in source.stored if kernel.kind[x] == "full" and level[x] == now]
        if due or stored:
            _pass(source, f, due, stored, of_row, values, (lanes, columns, split))
        for e in due:
            kind = state_type(e.name, e.operands[0].dtype)
            f.names[e.results[0]] = name = f.name_of("r")
            joined = f"adjoint_joined<{lanes}>({f.states[e]}, {shared[kind]}, place, lane, 1)"
            f.do(f"const {c_type(e.operands[0].dtype)} {name} = {joined}.value();")
    f.closes()
    return f.launch((blocks,), (lanes, together))


def _pass(
    source: Source,
    f: _Function,
    due: Sequence[Equation],
    stored: Sequence[Value],
    of_row: Group,
    values: Sequence[Value],
    sizes: tuple[int, int, int],
) -> None:
    """The columns of a row once: what it reduces, and what is stored of it."""
    lanes, columns, split = sizes
    f.states = {}
    for e in due:
        dtype = e.operands[0].dtype
        f.states[e] = f.name_of("s")
        f.do(f"{state_type(e.name, dtype)} {f.states[e]} = {start(e.name, dtype)};")
    f.opens(f"for ({f.index} column = lane; column < {columns}; column += {lanes})")
    group = [*of_row, *f.coordinates("column", range(split, len(source.kernel.domain)), values)]
    equations, _ = source.needed([*[e.operands[0] for e in due], *stored])
    known = f.computed(equations, group)
    for e in due:
        f.do(f"{f.states[e]}.add({f.operand(e.operands[0], known, group)});")
    for x in stored:
        f.do(f"if (live) {f.place(x, group, writes=True)} = {known[x]};")
    f.closes()


# --- reductions over rows, and over all --------------------------------------------------------------


def _reduced(source: Source, name: str, over: tuple[int, ...], equations: Sequence[Equation]) -> list[Launch]:
    """Each result by threads of one group, in parts where there is much to reduce and few results."""
    kernel = source.kernel
    kept = [axis for axis in range(len(kernel.domain)) if axis not in over]
    count = math.prod([kernel.domain[axis] for axis in kept])
    size = math.prod([kernel.domain[axis] for axis in over])
    results, slices = _group(count)
    parts = max(1, min(-(-size // (slices * _EACH)), -(-_ENOUGH // -(-count // results))))
    f = _Function(source, name)
    outs: list[Any] = [e.results[0] for e in equations]
    with_result = " + result" if count > 1 else ""
    partial = [(count * parts, x.dtype) for x in outs] if parts > 1 else []
    needed, _ = source.needed([e.operands[0] for e in equations])
    values = [*_read(source, [*needed, *equations]), *outs]
    _, rows = source.needed([e.operands[0] for e in equations])

    def body(f: _Function) -> Callable[[], list[str]]:
        of_result = f.coordinates("result", kept, [*values, *rows])

        def elements() -> list[str]:
            group = [*of_result, *f.coordinates("element", over, [*values, *rows])]
            for x in rows:
                f.names[x] = f.name_of()
                f.do(f"const {c_type(x.dtype)} {f.names[x]} = {f.place(x, group)};")
            known = f.computed(needed, group)
            return [f.operand(e.operands[0], known, group) for e in equations]

        f.save = lambda k, found: (
            f"{f.array(partial[k], outs[k].dtype, True)}[blockIdx.y * {count}{with_result}] = {found};"
            if partial
            else f"{f.place(outs[k], of_result, writes=True)} = {found};"
        )
        return elements

    made = [_sweep(f, equations, count, size, parts, body)]
    if partial:
        last = _Function(source, f"{name}_joined")

        def joins(f: _Function) -> Callable[[], list[str]]:
            of_result = f.coordinates("result", kept, outs)
            f.save = lambda k, found: f"{f.place(outs[k], of_result, writes=True)} = {found};"
            return lambda: [
                f"{f.array(buffer, x.dtype)}[element * {count}{with_result}]"
                for buffer, x in zip(partial, outs, strict=True)
            ]

        made.append(_sweep(last, equations, count, parts, 1, joins))
    return made


def _group(count: int) -> tuple[int, int]:
    """How many results a block has, and how many threads for each."""
    results = min(32, _power_of_two(count))
    return results, THREADS // results


def _sweep(
    f: _Function,
    equations: Sequence[Equation],
    count: int,
    size: int,
    parts: int,
    body: Callable[[_Function], Callable[[], list[str]]],
) -> Launch:
    """A function in which each group of threads reduces so many elements for each of its results."""
    results, slices = _group(count)
    kinds = [state_type(e.name, e.operands[0].dtype) for e in equations]
    shared = {kind: f"shared{k}" for k, kind in enumerate(dict.fromkeys(kinds))}
    for kind, name in shared.items():
        f.do(f"__shared__ {kind} {name}[{THREADS}];")
    f.do(f"const int slice = threadIdx.y, place = slice * {results} + threadIdx.x;")
    blocks = min(-(-count // results), _BLOCKS)
    f.opens(
        f"for ({f.index} first = ({f.index})blockIdx.x * {results}; first < {count}; "
        f"first += ({f.index})gridDim.x * {results})"
    )
    f.do(f"const bool live = first + (int)threadIdx.x < {count};")
    if count > 1:
        f.do(f"const {f.index} result = live ? first + (int)threadIdx.x : {count - 1};")
    elements = body(f)
    states = []
    for e, kind in zip(equations, kinds, strict=True):
        states.append(f.name_of("s"))
        f.do(f"{kind} {states[-1]} = {start(e.name, e.operands[0].dtype)};")
    begin = f"({f.index})blockIdx.y * {slices} + slice"
    f.opens(f"for ({f.index} element = {begin}; element < {size}; element += {parts * slices})")
    for state, found in zip(states, elements(), strict=True):
        f.do(f"{state}.add({found});")
    f.closes()
    for k, (state, kind) in enumerate(zip(states, kinds, strict=True)):
        found = f.name_of("r")
        joined = f"adjoint_joined<{slices}>({state}, {shared[kind]}, place, slice, {results})"
        f.do(f"const {c_type(equations[k].operands[0].dtype)} {found} = {joined}.value();")
        f.do(f"if (live && slice == 0) {f.save(k, found)}")
    f.closes()
    return f.launch((blocks, parts), (results, slices))
