"""Rematerialisation: a `Remat` says how a value is made again, and is kept in its place.

A policy says per result whether it is kept or made again in `backward`. That is one decision per
primitive, so a program costs time in proportion to its length. The trade of memory for work is that of Y. Volin and
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

    `longest` bounds how many results in a row are made again, and with it what a pass holds.
    """

    def __init__(
        self, name: str, keeps: Sequence[str] = (), *, names: Sequence[str] = (), longest: float = math.inf
    ) -> None:
        self.name: str = name
        self.kinds: frozenset[str] = frozenset(keeps)
        self.names: frozenset[str] = frozenset(names)
        self.longest: float = longest

    def keeps(self, primitive: Primitive, value: Array, backend: Backend) -> bool:
        """Whether this result is kept."""
        return primitive.kind in self.kinds

    def __repr__(self) -> str:
        return self.name


class Budget(Policy):
    """Keeps results until they fill a number of bytes; those that are cheap to make again never."""

    def __init__(self, size: int) -> None:
        super().__init__(f"budget={size}")
        self.left: int = size

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


class Remat:
    """How to make a value again: a primitive's implementation, its operands, its parameters.

    `uses` counts who will want the value in a pass: nodes that saved it, and others that are wanted themselves.
    `pinned` holds the value after all, in a tuple, where a name says so.
    """

    __slots__ = ("depth", "number", "operands", "parameters", "pinned", "run", "uses")

    def __init__(self, run: Implementation, operands: Sequence[Any], parameters: dict[str, Any]) -> None:
        self.run: Implementation = run
        self.operands: Sequence[Any] = operands
        self.parameters: dict[str, Any] = parameters
        self.number: int = next(numbers)
        self.uses: int = 0
        self.pinned: tuple[Array] | None = None
        self.depth: int = depth(operands)


def depth(operands: Sequence[Any]) -> int:
    """How many results in a row are made again, for a result of these operands."""
    return 1 + max([operand.depth for operand in operands if operand.__class__ is Remat], default=0)


def count_uses(slots: Sequence[Any]) -> None:
    """A node saved these slots: a pass will want the values of its `Remat`s, and once those of what they need."""
    pending = [slots]
    while pending:
        for slot in pending.pop():
            if slot.__class__ is tuple:
                pending.append(slot)
            elif slot.__class__ is Remat:
                slot.uses += 1
                if slot.uses == 1:
                    pending.append(slot.operands)


class RematCache:
    """The values that one pass made again, by the numbers of their `Remat`s; each is dropped with its last use.

    Some uses may be out of this pass's way; then a value is dropped once the pass is past its maker.
    """

    def __init__(self) -> None:
        self.made: dict[int, tuple[Array, int]] = {}  # with how many uses are still to come
        self.waiting: list[int] = []  # a heap of their numbers, negated: not the objects, which hold arrays

    def materialize(self, slot: Any) -> Any:
        """A saved slot with every `Remat` in it replaced by its value."""
        if slot.__class__ is tuple:
            return tuple([self.materialize(part) for part in slot])
        if slot.__class__ is not Remat:
            return slot
        self._make(slot)
        value = self._value(slot)
        self._used(slot)
        return value

    def _make(self, wanted: Remat) -> None:
        """Have a value ready, and before it those it needs, without recursion."""
        pending = [wanted]
        while pending:
            remat = pending[-1]
            missing = [] if self._ready(remat) else [o for o in remat.operands if not self._ready(o)]
            if missing:
                pending.extend(missing)
                continue
            pending.pop()
            if not self._ready(remat):
                value = remat.run(*[self._value(o) for o in remat.operands], **remat.parameters)
                self.made[remat.number] = value, remat.uses
                heapq.heappush(self.waiting, -remat.number)
                for operand in remat.operands:
                    self._used(operand)

    def _ready(self, slot: Any) -> bool:
        return slot.__class__ is not Remat or slot.pinned is not None or slot.number in self.made

    def _value(self, slot: Any) -> Any:
        """The value of a slot that is ready."""
        if slot.__class__ is not Remat:
            return slot
        return self.made[slot.number][0] if slot.pinned is None else slot.pinned[0]

    def _used(self, slot: Any) -> None:
        """Note that a value was used; after its last use it is not held here."""
        if slot.__class__ is Remat and slot.number in self.made:
            value, uses = self.made.pop(slot.number)
            if uses > 1:
                self.made[slot.number] = value, uses - 1

    def clear(self, number: int) -> None:
        """Drop what was made after the node of this number: only later nodes could use it."""
        while self.waiting and -self.waiting[0] > number:
            self.made.pop(-heapq.heappop(self.waiting), None)
