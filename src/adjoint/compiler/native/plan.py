"""What of a graph can be one loop.

Equations are taken in order. Each joins the first kernel that stands after what it reads and runs over the same axes,
or begins a new one; what has no machine code is a step of its own, run by Python. A kernel runs over all axes of its
domain: the last ones are columns, over which vectors run, and those before them are rows. A value of a kernel is
`full`, of the domain's shape; or it belongs to a `row`, as the sum over the columns does, and full values that follow
from it are computed in the next pass over the same row; or it is `late`, known when the kernel has run, as sums over
rows are.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from adjoint.compiler.graph import Equation, Graph, Value
from adjoint.compiler.native.elements import computable, constant, supported
from adjoint.compiler.native.views import Layout, contiguous, is_view, merged, view

REDUCTIONS = frozenset({"sum", "max", "min"})
_AS_ONE_ROW = 1 << 13  # elements: an array that is reduced wholly is one row up to here
_EQUATIONS = 400  # of one kernel
_LOOK_BACK = 24  # kernels that are tried


def squashed(shape: Sequence[int]) -> tuple[int, ...]:
    return tuple([n for n in shape if n != 1])


class Kernel:
    """Equations that one nest of loops computes."""

    def __init__(self, domain: tuple[int, ...]) -> None:
        self.domain = domain
        self.split: int | None = None  # how many axes are rows, where that is decided
        self.least = 0  # ... and how many are at least
        self.equations: list[Equation] = []
        self.kind: dict[Value, str] = {}  # full, row or late, of what it computes
        self.axes: dict[Value, tuple[int | None, ...]] = {}  # of each axis of a value the one of the domain
        self.read: dict[Value, tuple[Layout, tuple[int, ...], bool]] = {}  # from outside: layout, strides, full
        self.reduced: dict[Value, tuple[int, ...]] = {}  # over which axes
        self.stored: dict[Value, None] = {}


class Host:
    """An equation that Python runs."""

    def __init__(self, equation: Equation) -> None:
        self.equation = equation


class Plan:
    """A graph as kernels and steps of Python's, in order."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.steps: list[Kernel | Host] = []
        self.place: dict[Any, int] = {x: -1 for x in graph.inputs}  # the step that gives a value, of views' roots
        self.source: dict[Value, tuple[Equation, Value]] = {}  # of a view
        self.root: dict[Any, Value] = {}
        self.layout: dict[Any, Layout] = {}
        for e in graph.equations:
            self._take(e)
        self._store()

    def _take(self, e: Equation) -> None:
        if is_view(e) and self._take_view(e):
            return
        if all(computable(x.dtype) and math.prod(x.shape) for x in (*e.results, *e.operands) if x.__class__ is Value):  # type: ignore[union-attr]
            if e.name in REDUCTIONS:
                if _sums(e) and self._take_native(e):
                    return
            elif supported(e) and self._take_native(e):
                return
        self.place.update(dict.fromkeys(e.results, len(self.steps)))
        self.steps.append(Host(e))

    def _take_view(self, e: Equation) -> bool:
        x, out = e.operands[0], e.results[0]
        if x.const is not None or not math.prod(out.shape) or not math.prod(x.shape):  # type: ignore[union-attr]
            return False
        found = view(e, self._layout(x))
        if found is None:
            return False
        root = self.root.get(x, x)
        self.layout[out], self.root[out], self.source[out] = found, root, (e, x)  # type: ignore[index]
        return True

    def _layout(self, x: Value) -> Layout:
        return self.layout.get(x) or contiguous(x.shape)

    def _step(self, x: Any) -> int:
        return self.place.get(self.root.get(x, x), -1)

    # --- kernels ---

    def _take_native(self, e: Equation) -> bool:
        values = [x for x in e.operands if x.__class__ is Value and constant(x) is None]
        first = max([self._step(x) for x in values], default=-1)
        for i in range(max(first, 0, len(self.steps) - _LOOK_BACK), len(self.steps)):
            kernel = self.steps[i]
            if isinstance(kernel, Kernel) and len(kernel.equations) < _EQUATIONS and self._joins(kernel, i, e):
                self.place[e.results[0]] = i
                return True
        shape = e.operands[0].shape if e.name in REDUCTIONS else e.results[0].shape  # type: ignore[union-attr]
        kernel = Kernel(squashed(shape))
        if not self._joins(kernel, len(self.steps), e):
            return False
        self.place[e.results[0]] = len(self.steps)
        self.steps.append(kernel)
        return True

    def _axes(self, kernel: Kernel, x: Value) -> tuple[int | None, ...] | None:
        """On which axes of a kernel's domain the axes of a value lie that it computes; None of others."""
        found = kernel.axes.get(x)
        if found is not None or x not in self.source:
            return found
        e, of = self.source[x]
        old = self._axes(kernel, of)
        if old is None or kernel.kind[self.root[x]] == "late":
            return None
        if e.name == "broadcast_to":
            old = (*[None] * (len(x.shape) - len(of.shape)), *old)
            if any(a is None and n != 1 for a, n in zip(old, x.shape, strict=True)):
                return None
            return old
        if e.name in ("permute_dims", "index") or squashed(of.shape) != squashed(x.shape):
            return None
        axes = iter([a for a in old if a is not None])
        return tuple([None if n == 1 else next(axes) for n in x.shape])

    def _joins(self, kernel: Kernel, place: int, e: Equation) -> bool:
        """Have a kernel compute an equation, if it can."""
        out: Any = e.results[0]
        operands = [x for x in e.operands if x.__class__ is Value and constant(x) is None]
        inside: dict[Value, tuple[int | None, ...]] = {}
        for x in operands:
            if self._step(x) == place:
                axes = self._axes(kernel, x)
                if axes is None or kernel.kind[self.root.get(x, x)] == "late":
                    return False
                inside[x] = axes
        target = e.operands[0].shape if e.name in REDUCTIONS else out.shape
        placed = self._placed(kernel, target, inside)
        if placed is None:
            return False
        is_full = sum(a is not None for a in placed) == len(kernel.domain)
        if not is_full and (e.name in REDUCTIONS or not _is_row(kernel, placed) or not inside):
            return False
        read = {}
        for x in operands:
            if x not in inside:
                read[x] = (self._layout(x), self._strides(kernel, x, placed), is_full)
        trial = kernel.split, kernel.least
        if e.name in REDUCTIONS and not self._reduces(kernel, e, placed):
            return False
        reads = [strides for _, strides, full in (*kernel.read.values(), *read.values()) if full]
        if kernel.split is not None and not all(_is_one(kernel, strides, kernel.split) for strides in reads):
            kernel.split, kernel.least = trial
            kernel.reduced.pop(out, None)
            return False
        if any(x in kernel.read and kernel.read[x][1:] != how[1:] for x, how in read.items()):
            kernel.split, kernel.least = trial
            kernel.reduced.pop(out, None)
            return False
        kernel.read.update(read)
        kernel.equations.append(e)
        if e.name in REDUCTIONS:
            axis = {i % len(target) for i in e.parameters["axis"]}
            left = [None if i in axis else a for i, a in enumerate(placed) if e.parameters["keepdims"] or i not in axis]
            kernel.axes[out] = tuple(left)
            kernel.kind[out] = "row" if kernel.reduced[out] == tuple(range(kernel.split or 0, len(kernel.domain))) and (
                kernel.split is not None
            ) else "late"  # fmt: skip
        else:
            kernel.axes[out], kernel.kind[out] = placed, "full" if is_full else "row"
        return True

    def _placed(
        self, kernel: Kernel, shape: Sequence[int], inside: dict[Value, tuple[int | None, ...]]
    ) -> tuple[int | None, ...] | None:
        """The domain's axes of a value of this shape, computed from values that the kernel computes, and others."""
        found: list[int | None] = [None] * len(shape)
        if squashed(shape) == kernel.domain:
            axes = iter(range(len(kernel.domain)))
            found = [None if n == 1 else next(axes) for n in shape]
        for x, placed in inside.items():
            for i, (n, a) in enumerate(zip(x.shape[::-1], placed[::-1], strict=True)):
                if n != 1:
                    k = len(shape) - 1 - i
                    if found[k] is None:
                        found[k] = a
                    if found[k] != a:
                        return None
        if any(a is None and n != 1 for a, n in zip(found, shape, strict=True)):
            return None
        axes_found = [a for a in found if a is not None]
        return tuple(found) if axes_found == sorted(set(axes_found)) else None

    def _strides(self, kernel: Kernel, x: Value, placed: tuple[int | None, ...]) -> tuple[int, ...]:
        """How an operand from outside lies along the domain's axes."""
        layout = self._layout(x)
        strides = [0] * len(kernel.domain)
        for n, s, a in zip(layout.shape[::-1], layout.strides[::-1], placed[::-1], strict=False):
            if n != 1 and a is not None:
                strides[a] = s
        return tuple(strides)

    def _reduces(self, kernel: Kernel, e: Equation, placed: tuple[int | None, ...]) -> bool:
        """Decide which axes are rows, so that these can be reduced; False if that cannot be."""
        count = len(kernel.domain)
        axis = {i % len(placed) for i in e.parameters["axis"]}
        over = tuple([a for i, a in enumerate(placed) if i in axis and a is not None])
        if not over:
            return False
        last = over == tuple(range(count - len(over), count))
        whole = len(over) == count
        if whole and kernel.split != 0 and (kernel.split is not None or kernel.least or math.prod(kernel.domain) > _AS_ONE_ROW):
            pass  # late, whatever the rows are
        elif last:
            split = count - len(over)
            if kernel.split not in (None, split) or kernel.least > split:
                return False
            kernel.split = split
        elif count - 1 not in over:
            if kernel.split is not None and kernel.split <= max(over):
                return False
            kernel.least = max(kernel.least, max(over) + 1)
        else:
            return False
        kernel.reduced[e.results[0]] = over  # type: ignore[index]
        return True

    # --- what is written to memory ---

    def _store(self) -> None:
        """Note what of a kernel others read: later kernels, Python, who called."""

        def needed(x: Any) -> None:
            x = self.root.get(x, x)
            step = self.place.get(x, -1)
            if step >= 0 and isinstance(kernel := self.steps[step], Kernel):
                kernel.stored[x] = None

        for step in self.steps:
            if isinstance(step, Host):
                for x in step.equation.reads():
                    needed(x)
            else:
                for x in step.read:
                    needed(x)
        for x in self.graph.outputs:
            needed(x)


def _sums(e: Equation) -> bool:
    x = e.operands[0]
    if x.__class__ is not Value or constant(x) is not None or e.results[0].dtype != x.dtype or x.dtype.kind == "b":  # type: ignore[union-attr]
        return False
    return bool(squashed([x.shape[i] for i in e.parameters["axis"]]))


def _is_row(kernel: Kernel, placed: Sequence[int | None]) -> bool:
    return kernel.split is not None and all(a is None or a < kernel.split for a in placed)


def _is_one(kernel: Kernel, strides: Sequence[int], split: int) -> bool:
    """Whether the columns lie as one axis."""
    return len(merged(list(kernel.domain[split:]), list(strides[split:]))) <= 1


def split_of(kernel: Kernel) -> int:
    """How many axes are rows: as few as columns that lie as one axis in all that is read allow."""
    if kernel.split is not None:
        return kernel.split
    reads = [strides for _, strides, full in kernel.read.values() if full]
    last = max(len(kernel.domain) - 1, 0)
    return next((k for k in range(kernel.least, last) if all(_is_one(kernel, s, k) for s in reads)), max(last, kernel.least if kernel.domain else 0))


