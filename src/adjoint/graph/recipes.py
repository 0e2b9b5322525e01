"""Checkpointing: recipes for what can be made again, kept in the place of values.

A policy says per result whether it is kept or made again in `backward`. That is one decision per
primitive, so planning is linear in the program. The trade of memory for work is that of Y. Volin and
G. Ostrovskii (1985); see Griewank and Walther, Evaluating Derivatives (2008), chapter 12.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Sequence
from typing import Any

from adjoint.backend import Array, Backend, Implementation
from adjoint.graph.nodes import numbers
from adjoint.primitives import CONTRACTION, ELEMENTWISE, LINALG, STRUCTURAL, Primitive


class Policy:
    """Which results are kept: those of the kinds of primitive in `kept`, and what goes by one of `names`.

    `longest` bounds how many results in a row are made again, and with it what a walk holds.
    """

    def __init__(
        self, name: str, keeps: Sequence[str] = (), *, names: Sequence[str] = (), longest: float = math.inf
    ) -> None:
        self.name = name
        self.kinds = frozenset(keeps)
        self.names = frozenset(names)
        self.longest = longest

    def keeps(self, primitive: Primitive, value: Array, backend: Backend) -> bool:
        """Whether this result is kept."""
        return primitive.kind in self.kinds

    def __repr__(self) -> str:
        return self.name


class Budget(Policy):
    """Keeps results until they fill a number of bytes; those that are cheap to make again never."""

    def __init__(self, size: int) -> None:
        super().__init__(f"budget={size}")
        self.left = size

    def keeps(self, primitive: Primitive, value: Array, backend: Backend) -> bool:
        size = math.prod(value.shape) * backend.dtype_of(value).itemsize
        if primitive.kind in (ELEMENTWISE, STRUCTURAL) or size > self.left:
            return False
        self.left -= size
        return True


_EXPENSIVE = ("reduction", "indexing", CONTRACTION, LINALG)
BALANCED = Policy("balanced", _EXPENSIVE, longest=16)
NOTHING = Policy("nothing")
MATMULS = Policy("matmuls", (CONTRACTION, LINALG))


class Recipe:
    """How to make a value again: a primitive's implementation, its operands, its parameters.

    `shared` says that a walk may want the value more than once: a node saved it, or two recipes use it.
    `pinned` holds the value after all, in a tuple, where a name says so.
    """

    __slots__ = ("depth", "number", "operands", "parameters", "pinned", "run", "shared", "used")

    depth: int

    def __init__(self, run: Implementation, operands: Sequence[Any], parameters: dict[str, Any]) -> None:
        self.run = run
        self.operands = operands
        self.parameters = parameters
        self.number = next(numbers)
        self.used = self.shared = False
        self.pinned: tuple[Array] | None = None
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
        return self._make(slot) if slot.__class__ is Recipe else slot

    def _make(self, wanted: Recipe) -> Array:
        """The value of a recipe, and before it of those it needs, without recursion."""
        once: dict[Recipe, Array] = {}  # wanted by one other recipe alone
        pending = [wanted]
        while True:
            recipe = pending[-1]
            if recipe.pinned is not None:
                value = recipe.pinned[0]
            elif recipe in self.made:
                value = self.made[recipe]
            else:
                missing = [o for o in recipe.operands if o.__class__ is Recipe and o not in self.made and o not in once]
                if missing:
                    pending.extend(missing)
                    continue
                value = recipe.run(*[self._ready(o, once) for o in recipe.operands], **recipe.parameters)
                if recipe.shared:
                    self.made[recipe] = value
                    heapq.heappush(self.waiting, (-recipe.number, recipe))
            pending.pop()
            if not pending:
                return value
            if recipe not in self.made:
                once[recipe] = value

    def _ready(self, operand: Any, once: dict[Recipe, Array]) -> Any:
        if operand.__class__ is not Recipe:
            return operand
        return self.made[operand] if operand in self.made else once.pop(operand)

    def clear(self, number: int) -> None:
        """Drop what was made after the node of this number: only later nodes could use it."""
        while self.waiting and -self.waiting[0][0] > number:
            del self.made[heapq.heappop(self.waiting)[1]]
