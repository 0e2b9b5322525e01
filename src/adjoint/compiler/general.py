"""Programs for arguments that differ in their sizes alone."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from adjoint.compiler.programs import Halves, Program
from adjoint.compiler.sizes import is_size
from adjoint.lines import Line
from adjoint.primitives import Shape

Axes = set[tuple[int, int]]  # an array and its axis
KEPT = 64  # programs of one function


class General:
    """What was recorded for arrays of some numbers of axes: which sizes have been others, and programs for any."""

    automatic: bool
    axes: Axes

    def __init__(self, axes: Axes, *, automatic: bool) -> None:
        self.axes, self.automatic = axes, automatic
        self.pinned: dict[tuple[int, int], Line | None] = {}  # axes whose size the function asks for, and where
        self.programs: list[Any] = []  # or both halves of them
        self.last: Sequence[Shape] | None = None

    def fitting(self, shapes: Sequence[Shape], numbers: Sequence[Any]) -> Any:
        fit = (p for p in self.programs if p.symbols is not None and p.symbols.fits(shapes) and p.holds(numbers))
        return next(fit, None)

    def varying(self, shapes: Sequence[Shape]) -> Axes:
        """The axes that are to be symbols in the recording for these shapes: those that have been others."""
        if self.automatic and self.last is not None:
            for i, (now, before) in enumerate(zip(shapes, self.last, strict=True)):
                self.axes.update((i, k) for k, (n, m) in enumerate(zip(now, before, strict=True)) if n != m)
        self.last = shapes
        return self.axes - self.pinned.keys()

    def add(self, program: Program | Halves) -> None:
        """Keep a program for other sizes; what it asked for is no symbol from now on."""
        assert program.symbols is not None
        symbols = program.symbols
        for name, line in symbols.pinned.items():
            for i, shape in enumerate(symbols.pattern):
                self.pinned.update({(i, k): line for k, n in enumerate(shape) if is_size(n) and n.text == name})
        if symbols.values.keys() - symbols.pinned.keys():
            self.programs.append(program)
            del self.programs[:-KEPT]

    def refuse(self, axes: Axes) -> None:
        """A recording with symbols for these axes failed."""
        self.pinned.update(dict.fromkeys(axes))
