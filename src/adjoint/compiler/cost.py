"""What a compiled function costs, equation by equation: operations, bytes and measured time."""

from __future__ import annotations

import functools
import math
import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from adjoint.backend import Backend
from adjoint.compiler.graph import Equation, Value, evaluate
from adjoint.compiler.programs import Program
from adjoint.decorators.observed import flops
from adjoint.primitives import TABLE

REPEATED = 5  # runs of an equation or of the whole, of which the fastest counts
_EFFECTS = ("key", "seed", "call")


class Step(NamedTuple):
    """An equation as text; `operations` of floating-point numbers, `bytes` of what it reads and makes, and seconds.

    `expected` are the seconds that memory, or arithmetic if that is more, would take at this machine's speed: of an
    equation that takes much longer, most is Python's way to it, or functions such as `exp` that count as one operation.
    """

    equation: str
    operations: int
    bytes: int
    seconds: float
    expected: float


class Cost:
    """`steps`, one for each equation of the graph, and `seconds`, those of the whole function without its levels.

    `str()` of it is a table. Operations are estimates, as those of `Profiled`; those of a loop count all its steps, but
    for `while_loop`, whose number is not known, and a choice counts its largest branch.
    """

    seconds: float
    steps: list[Step]

    def __init__(self, steps: Sequence[Step], seconds: float) -> None:
        self.steps, self.seconds = list(steps), seconds

    def __str__(self) -> str:
        whole = Step(
            "sum",
            sum(step.operations for step in self.steps),
            sum(step.bytes for step in self.steps),
            sum(step.seconds for step in self.steps),
            sum(step.expected for step in self.steps),
        )
        table: list[tuple[str, ...]] = [("equation", "operations", "kB", "µs", "expected")]
        table += [_row(*step) for step in [*self.steps, whole]]
        table.append(("as one function", "", "", f"{self.seconds * 1e6:.1f}", ""))
        widths = [max(map(len, column)) for column in zip(*table, strict=True)]
        return "\n".join(
            "  ".join([name.ljust(widths[0]), *map(str.rjust, others, widths[1:])]).rstrip() for name, *others in table
        )

    __repr__ = __str__


def _row(equation: str, operations: float, size: float, seconds: float, expected: float) -> tuple[str, ...]:
    shown = equation if len(equation) <= 72 else equation[:69] + "..."
    return shown, f"{operations:,}", f"{size / 1e3:,.1f}", f"{seconds * 1e6:.1f}", f"{expected * 1e6:.1f}"


def cost_of(program: Program, arrays: Sequence[Any]) -> Cost:
    """Runs the equations one by one on these arrays, and then the whole."""
    graph = program.graph
    if program.symbols is not None:
        graph = graph.at(program.symbols.bind([x.shape for x in arrays]))
    spent: list[float] = []

    def timed(e: Equation, run: Callable[[], Any]) -> Any:
        found, out = _fastest(run, 1 if e.name in _EFFECTS or e.has_effect else REPEATED)
        spent.append(found)
        return out

    try:
        with program.base.leaf.quiet():
            evaluate(graph, arrays, program.base, timed)
    except Exception:
        program.replay(arrays)  # which raises what the function raises
        raise
    whole, _ = _fastest(lambda: program.replay(arrays), 1 if program.draws else REPEATED)
    lines = [line for line in str(graph).split("\n")[1:-1] if not line.startswith(" ")]
    steps = [
        Step(
            line, operations := operations_of(e), size := _bytes(e), seconds, _expected(operations, size, program.base)
        )
        for line, e, seconds in zip(lines, graph.equations, spent, strict=True)
    ]
    return Cost(steps, whole)


def _fastest(run: Callable[[], Any], times: int) -> tuple[float, Any]:
    best, out = math.inf, None
    for _ in range(times):
        start = time.perf_counter()
        out = run()
        best = min(best, time.perf_counter() - start)
    return best, out


def _expected(operations: int, size: int, base: Backend) -> float:
    per_operation, per_byte = _speed(base)
    return max(operations * per_operation, size * per_byte)


@functools.cache
def _speed(base: Backend) -> tuple[float, float]:
    """Seconds of a backend for an operation of a matrix product, and for a byte that is read or written."""
    n, million = 256, 1_000_000
    square, vector = [
        base["full"](shape=shape, value=1.0, dtype=np.dtype(np.float64)) for shape in ((n, n), (million,))
    ]
    product, _ = _fastest(lambda: base.concrete_values(base["matmul"](square, square)), REPEATED)
    sum_of_two, _ = _fastest(lambda: base.concrete_values(base["add"](vector, vector)), REPEATED)
    return product / (2 * n**3), sum_of_two / (2 * 8 * million)


def operations_of(e: Equation) -> int:
    """An estimate of the floating-point operations of an equation, with those of its graphs."""
    if e.name in TABLE:
        shapes = [x.shape for x in e.operands if isinstance(x, Value)]
        result = e.results[0]
        assert isinstance(result, Value)
        return flops(TABLE[e.name], shapes, result.shape, e.parameters)
    inner = [sum(map(operations_of, g.equations)) for g in e.graphs]
    if e.name == "scan":
        return int(e.parameters["length"]) * inner[0]
    return max(inner, default=0) if e.name == "branch" else 0


def _bytes(e: Equation) -> int:
    arrays = [x for x in (*e.operands, *e.results) if isinstance(x, Value)]
    return sum([math.prod(x.shape) * x.dtype.itemsize for x in arrays])
