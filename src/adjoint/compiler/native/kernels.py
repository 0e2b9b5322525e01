"""The steps that a graph is made of: kernels, products, loops, and what Python runs."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from adjoint.compiler.graph import Equation, Value
from adjoint.compiler.native.patches import Lines
from adjoint.compiler.native.views import Layout, merged

if TYPE_CHECKING:
    from adjoint.compiler.native.plan import Plan

MOVED = 256  # bytes of what is carried along: more is not copied in each step
REDUCTIONS = frozenset({"sum", "prod", "max", "min", "any", "all"})


def bytes_of(x: Any) -> int:
    size: int = math.prod(x.shape) * x.dtype.itemsize
    return size


def squashed(shape: Sequence[int]) -> tuple[int, ...]:
    return tuple([n for n in shape if n != 1])


class Kernel:
    """Equations that one nest of loops computes."""

    def __init__(self, domain: tuple[int, ...]) -> None:
        self.domain = domain
        self.split: int | None = None  # how many axes are rows, where that is decided
        self.least = 0  # ... and how many are at least
        self.is_alone = False  # whether no other equation may join
        self.equations: list[Equation] = []
        self.kind: dict[Value, str] = {}  # full, row or late, of what it computes
        self.axes: dict[Value, tuple[int | None, ...]] = {}  # of each axis of a value the one of the domain
        self.read: dict[Value, tuple[Layout, tuple[int, ...], bool]] = {}  # from outside: layout, strides, full
        self.reduced: dict[Value, tuple[int, ...]] = {}  # over which axes
        self.stored: dict[Value, None] = {}
        self.target: dict[Value, tuple[Value, Layout]] = {}  # of what is stored as a part of another array

    def strides(self, layout: Layout, placed: Sequence[int | None]) -> tuple[int, ...]:
        """How an array lies along the domain, of whose axes it has these."""
        found = [0] * len(self.domain)
        for n, s, a in zip(layout.shape[::-1], layout.strides[::-1], placed[::-1], strict=False):
            if n != 1 and a is not None:
                found[a] = s
        return tuple(found)

    def wide(self) -> list[tuple[int, ...]]:
        """The strides of all that is read or written column by column, but for what is stored as a whole."""
        parts = [self.strides(layout, self.axes[x]) for x, (_, layout) in self.target.items()]
        return [*[strides for _, strides, full in self.read.values() if full], *parts]

    @property
    def work(self) -> int:
        return math.prod(self.domain) * len(self.equations)


class Product:
    """A product of two matrices, or of stacks of them: as `loops`, by `tiles`, or a call of `blas` for each."""

    operands: Sequence[Value]
    roots: dict[Value, Value]
    way: str
    work: int
    x: Layout
    y: Layout

    def __init__(self, out: Value, operands: Sequence[Value], x: Layout, y: Layout, way: str) -> None:
        self.read: dict[Value, Layout] = dict(zip(operands, (x, y), strict=True))
        self.operands, self.x, self.y, self.way = operands, x, y, way
        self.out: Any = out
        self.stored: dict[Any, None] = {self.out: None}
        self.follows: list[Equation] = []  # what tiles compute with it before they are written
        self.beside: dict[Value, Layout] = {}  # what they read for that, with the axes of the product
        self.work = math.prod(self.out.shape) * x.shape[-1]

    def have_follow(
        self, equations: list[Equation], stored: Sequence[Value], beside: dict[Value, Layout], roots: dict[Value, Value]
    ) -> None:
        """Have tiles compute equations, of which this is stored; `roots` are what their operands are views of."""
        self.follows, self.beside, self.roots = equations, beside, roots
        self.stored = dict.fromkeys(stored)
        self.read = {**self.read, **beside}


class Convolution:
    """A convolution of padded images with channels first and examples last, or the gradient of its weights."""

    lines: Lines
    operands: Sequence[Value]
    rows: int
    weighs: bool

    def __init__(
        self,
        out: Value,
        operands: Sequence[Value],
        layouts: Sequence[Layout],
        lines: Lines,
        rows: int,
        apart: int,
        weighs: bool,
        start: int = 0,  # where in `out` the first line of the result is
    ) -> None:
        self.read: dict[Value, Layout] = dict(zip(operands, layouts, strict=True))
        self.operands, self.lines, self.rows, self.apart, self.weighs = operands, lines, rows, apart, weighs
        self.offsets: list[int] = [*[layout.offset for layout in layouts], start]
        self.out: Any = out
        self.stored: dict[Any, None] = {self.out: None}
        self.work: int = rows * lines.number * lines.run * math.prod([axis.size for axis in lines.axes])


class Loop:
    """A scan whose step has machine code."""

    equation: Equation
    operands: list[Value]
    step: Plan

    def __init__(self, e: Equation, operands: Sequence[Value], step: Plan) -> None:
        self.equation, self.step, self.operands = e, step, list(operands)
        self.read: dict[Value, None] = dict.fromkeys(operands)
        self.stored: dict[Any, None] = dict.fromkeys(e.results)
        self.work: int = e.parameters["length"] * work_of(step)


class Choice:
    """A choice of functions that have machine code."""

    cases: Sequence[Plan]
    equation: Equation
    operands: list[Value]

    def __init__(self, e: Equation, operands: Sequence[Value], cases: Sequence[Plan]) -> None:
        self.equation, self.cases, self.operands = e, cases, list(operands)
        self.read: dict[Value, None] = dict.fromkeys(operands)
        self.stored: dict[Any, None] = dict.fromkeys(e.results)
        self.work: int = max([work_of(case) for case in cases])


class While:
    """A loop whose condition and step have machine code."""

    equation: Equation
    goes: Plan
    operands: list[Value]
    step: Plan
    turn: int

    def __init__(self, e: Equation, operands: Sequence[Value], goes: Plan, step: Plan) -> None:
        self.equation, self.goes, self.step, self.operands = e, goes, step, list(operands)
        self.read: dict[Value, None] = dict.fromkeys(operands)
        self.stored: dict[Any, None] = dict.fromkeys(e.results)
        self.turn = max(1, work_of(goes) + work_of(step))
        self.work: int = 1 << 20  # it may be long


class Check:
    """What has to be true, else the function is run again by Python, which raises the error."""

    def __init__(self, holds: Value) -> None:
        self.holds = holds
        self.read: dict[Value, None] = {holds: None}
        self.stored: dict[Any, None] = {}
        self.work = 0


class Host:
    """An equation that Python runs."""

    def __init__(self, equation: Equation) -> None:
        self.equation = equation


Step = Kernel | Product | Convolution | Loop | Choice | While | Check | Host


def between_hosts(steps: Sequence[Step]) -> Iterator[range]:
    """The numbers of steps that follow each other without one of Python's between."""
    for is_host, numbers in itertools.groupby(range(len(steps)), lambda i: isinstance(steps[i], Host)):
        if not is_host:
            found = list(numbers)
            yield range(found[0], found[-1] + 1)


def work_of(plan: Plan) -> int:
    return sum([s.work for s in plan.steps if not isinstance(s, Host)])


def is_row(kernel: Kernel, placed: Sequence[int | None]) -> bool:
    return kernel.split is not None and all(a is None or a < kernel.split for a in placed)


def is_one(kernel: Kernel, strides: Sequence[int], split: int) -> bool:
    """Whether the columns lie as one axis."""
    return len(merged(list(kernel.domain[split:]), list(strides[split:]))) <= 1


def split_of(kernel: Kernel) -> int:
    """How many axes are rows: as few as columns that lie as one axis in all that is read allow."""
    if kernel.split is not None:
        return kernel.split
    reads = kernel.wide()
    last = max(len(kernel.domain) - 1, 0)
    return next(
        (k for k in range(kernel.least, last) if all(is_one(kernel, s, k) for s in reads)),
        max(last, kernel.least if kernel.domain else 0),
    )
