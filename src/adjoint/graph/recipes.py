"""Balanced checkpointing: recipes for what is cheap to make again, kept in the place of values.

Planning is one decision per primitive, so it is linear in the program.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from typing import Any

from adjoint.backend import Array, Implementation
from adjoint.graph.nodes import numbers

LONGEST = 16  # cheap primitives in a row before a value is kept after all: bounds what a walk holds


class Recipe:
    """How to make a value again: a primitive's implementation, its operands, its parameters.

    `shared` says that a walk may want the value more than once: a node saved it, or two recipes use it.
    """

    __slots__ = ("depth", "number", "operands", "parameters", "run", "shared", "used")

    depth: int

    def __init__(self, run: Implementation, operands: Sequence[Any], parameters: dict[str, Any]) -> None:
        self.run = run
        self.operands = operands
        self.parameters = parameters
        self.number = next(numbers)
        self.used = self.shared = False
        self.depth = 1
        for operand in operands:
            if operand.__class__ is Recipe:
                self.depth = max(self.depth, operand.depth + 1)
                operand.shared, operand.used = operand.used, True


def will_be_served(slot: Any) -> None:
    """A node saved this slot: a walk will want the values of its recipes."""
    if slot.__class__ is tuple:
        for part in slot:
            will_be_served(part)
    elif slot.__class__ is Recipe:
        slot.shared = slot.used = True


class Kitchen:
    """The shared values that one walk made again; each is dropped once the walk is past its maker."""

    def __init__(self) -> None:
        self.made: dict[Recipe, Array] = {}
        self.waiting: list[tuple[int, Recipe]] = []

    def serve(self, slot: Any) -> Any:
        """A saved slot with every recipe in it replaced by its value."""
        if slot.__class__ is tuple:
            return tuple([self.serve(part) for part in slot])
        if slot.__class__ is not Recipe:
            return slot
        if slot in self.made:
            return self.made[slot]
        operands = [self.serve(operand) for operand in slot.operands]
        value = slot.run(*operands, **slot.parameters)
        if slot.shared:
            self.made[slot] = value
            heapq.heappush(self.waiting, (-slot.number, slot))
        return value

    def clear(self, number: int) -> None:
        """Drop what was made after the node of this number: only later nodes could use it."""
        while self.waiting and -self.waiting[0][0] > number:
            del self.made[heapq.heappop(self.waiting)[1]]
