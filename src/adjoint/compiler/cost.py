"""What a compiled function costs, kernel by kernel and equation by equation: operations, bytes and measured time."""

from __future__ import annotations

import functools
import itertools
import math
import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from adjoint import random_keys
from adjoint.backend import Backend
from adjoint.compiler.graph import Graph, Value
from adjoint.compiler.operations import bytes_of_equation, operations_of
from adjoint.compiler.programs import Program
from adjoint.compiler.replay import Replay

REPEATED = 5  # runs of an equation or of the whole, of which the fastest counts


class Step(NamedTuple):
    """An equation or a kernel as text; its `operations` of floating-point numbers, `bytes` read and made, and seconds.

    `expected` are the seconds that memory, or arithmetic if that is more, would take at this machine's speed: of an
    equation that takes much longer, most is Python's way to it, or functions such as `exp` that count as one operation.
    """

    equation: str
    operations: int
    bytes: int
    seconds: float
    expected: float


class Cost:
    """`steps`, one for each kernel or equation, and `seconds`, those of the whole function without its levels.

    `str()` of it is a table. Operations are estimates, as those of `Profiled`; those of a loop count all its steps, but
    for `while_loop`, whose number is not known, and a choice counts its largest branch.
    """

    seconds: float
    steps: list[Step]

    def __init__(self, steps: Sequence[Step], seconds: float) -> None:
        self.steps, self.seconds = list(steps), seconds

    def __str__(self) -> str:
        whole = Step(
            "total",
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
    """Runs the whole on these arrays, and then kernels and equations one by one, each time without effects."""
    graph = _without_seeds(program.graph)
    ticks: list[float] = []
    whole = Replay(graph, program.base, program.name, program.symbols)
    if program.symbols is not None:
        graph = graph.at(program.symbols.bind([x.shape for x in arrays]))
    apart = Replay(graph, program.base, program.name, tick=lambda: ticks.append(time.perf_counter()))
    spent = [math.inf] * len(apart.equations)
    seconds = math.inf
    for run in range(REPEATED + 1):  # of which the first one makes machine code
        with random_keys.seeded(0), random_keys.without_calls():
            took, _ = _fastest(lambda: whole(arrays), 1)
            ticks[:] = [time.perf_counter()]
            apart(arrays)
        if run:
            seconds = min(seconds, took)
            spent = list(map(min, spent, [after - before for before, after in itertools.pairwise(ticks)]))
    steps = []
    for text, e, found in zip(apart.shown, apart.equations, spent, strict=True):
        operations, size = operations_of(e), bytes_of_equation(e)
        single = any(x.dtype == np.float32 for x in e.results if isinstance(x, Value))
        per_operation, per_byte = _speed(program.base, np.float32 if single else np.float64)
        steps.append(Step(text, operations, size, found, max(operations * per_operation, size * per_byte)))
    return Cost(steps, seconds)


def _without_seeds(graph: Graph) -> Graph:
    """The graph without what starts the sequence of random keys anew, for everybody."""
    left = [e for e in graph.equations if e.name != "seed"]
    equations = [e.on(e.operands, [_without_seeds(g) for g in e.graphs]) for e in left]
    return Graph(graph.inputs, equations, graph.outputs)


def _fastest(run: Callable[[], Any], times: int) -> tuple[float, Any]:
    best, out = math.inf, None
    for _ in range(times):
        start = time.perf_counter()
        out = run()
        best = min(best, time.perf_counter() - start)
    return best, out


@functools.cache
def _speed(base: Backend, dtype: type[np.floating[Any]]) -> tuple[float, float]:
    """Seconds of a backend for an operation of a matrix product, and for a byte that is read or written."""
    n, million = 256, 1_000_000
    square, vector = [base["full"](shape=shape, value=1.0, dtype=np.dtype(dtype)) for shape in ((n, n), (million,))]
    product, _ = _fastest(lambda: base.concrete_values(base["matmul"](square, square)), REPEATED)
    sum_of_two, _ = _fastest(lambda: base.concrete_values(base["add"](vector, vector)), REPEATED)
    return product / (2 * n**3), sum_of_two / (3 * np.dtype(dtype).itemsize * million)
