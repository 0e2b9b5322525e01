"""Nodes: what is recorded of a program, and how a walk claims it.

A `Var` is an array with the node that made it; nodes point to the nodes of their operands and never to
a `Var` or a tensor, so that graphs have no cycles.
"""

from __future__ import annotations

import itertools
import operator
import os
import threading
import weakref
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from adjoint import errors
from adjoint.backend import Array
from adjoint.primitives import Shape

if TYPE_CHECKING:
    from adjoint.graph.origins import Origin
    from adjoint.graph.plans import Plan
    from adjoint.graph.recipes import Recipe

Key = tuple[int, int]  # names a leaf for good: the process that made it, and its number there

numbers = itertools.count(1)  # one order of all nodes
_process = int.from_bytes(os.urandom(7), "little")
_leaves: weakref.WeakValueDictionary[Key, Leaf] = weakref.WeakValueDictionary()
_graphs = threading.Lock()  # held while a walk claims its nodes, never while rules run


def _new_process() -> None:
    global _process
    _process = int.from_bytes(os.urandom(7), "little")


os.register_at_fork(after_in_child=_new_process)


class Node:
    """One recorded primitive, or one leaf.

    `first` and `second` are the nodes of its tracked operands; a node of more is a `Joint`. `saved` is what the plan
    keeps. A node refers to no tensor, so graphs have no cycles, and it has its parents in slots and not in a tuple, so
    that it is one object to Python's garbage collector, which looks at all objects of a long graph again and again.
    """

    __slots__ = ("__weakref__", "first", "number", "origin", "plan", "saved", "second", "shape", "walk")

    result: int | None = None  # which of several results this stands for; its only parent made them all
    number: int
    walk: int  # the last walk that came here while it claimed its nodes; negative if that frees them
    plan: Plan
    saved: Any
    first: Node | None
    second: Node | None
    shape: Any
    origin: Origin

    @property
    def parents(self) -> tuple[Node, ...] | None:
        """The nodes of the tracked operands; None in a graph that `backward` used up."""
        return None if self.used_up else self.edges()

    @property
    def used_up(self) -> bool:
        """Whether a walk has claimed it, which frees it."""
        return self.walk < 0 and self.__class__ is not Leaf

    def edges(self) -> tuple[Node, ...]:
        """The nodes of the tracked operands; a walk that uses the graph up takes them away as it goes."""
        first, second = self.first, self.second
        return () if first is None else (first,) if second is None else (first, second)

    @property
    def key(self) -> Key:
        """What `Gradients` knows this node by."""
        return _process, self.number

    @property
    def name(self) -> str:
        """The primitive's name."""
        return self.plan.primitive.name

    def __repr__(self) -> str:
        return f"<{self.name} #{self.number}, shape {tuple(self.shape)}>"


class Joint(Node):
    """A node of more than two tracked operands: `second` are the nodes of all but the first."""

    __slots__ = ()

    second: tuple[Node, ...] | None  # type: ignore[assignment]

    def edges(self) -> tuple[Node, ...]:
        return () if self.first is None or self.second is None else (self.first, *self.second)


class Result(Node):
    """One of several results of a primitive: its cotangent fills a slot of its only parent's."""

    __slots__ = ("result",)


class Leaf(Node):
    """What `require_grad()` makes: it ends the walk, and `Gradients` answers for it."""

    __slots__ = ("home", "key", "value")  # pyright: ignore[reportIncompatibleMethodOverride]

    key: Key
    home: Any  # its Autodiff level, which may be over another leaf backend than the root's; None for the root's own
    value: Array

    @property
    def name(self) -> str:
        return "leaf"


class Var:
    """An array of an Autodiff backend: an inner array, and the node that made it, if tracked."""

    __slots__ = ("__weakref__", "node", "origin", "recipe", "value")

    value: Array
    node: Node | None
    origin: Origin  # only while origins are traced: what a constant came from
    recipe: Recipe  # only under checkpointing: how to make the value again

    @property
    def shape(self) -> Shape:
        return self.value.shape  # type: ignore[no-any-return]


def var_of(value: Array, node: Node | None) -> Var:
    """An array with the node that made it, or a constant."""
    var = Var()
    var.value = value
    var.node = node
    return var


def node_of(plan: Plan, saved: Any, parents: Sequence[Node], shape: Any) -> Node:
    """A node of any number of parents."""
    first, *others = parents
    node: Any = Joint() if len(others) > 1 else Node()
    node.number = next(numbers)
    node.plan = plan
    node.saved = saved
    node.first = first
    node.second = None if not others else others[0] if len(others) == 1 else tuple(others)
    node.walk = 0
    node.shape = shape
    return node  # type: ignore[no-any-return]


def result_of(maker: Node, i: int, value: Array) -> Var:
    """The i-th of several results of a node."""
    node = Result()
    node.number = next(numbers)
    node.plan = maker.plan
    node.saved = node.second = None
    node.first = maker
    node.walk = 0
    node.shape = value.shape
    node.result = i
    return var_of(value, node)


def leaf_of(value: Array, home: Any = None, key: Key | None = None) -> Var:
    """A leaf with this value on a level, under a new key or a given one."""
    node = Leaf()
    node.number = next(numbers)
    node.saved = node.first = node.second = None
    node.walk = 0
    node.shape = value.shape
    node.value = value
    node.home = home
    node.key = key or (_process, node.number)
    if key is not None:
        remember(node)
    var = Var()
    var.value = value
    var.node = node
    return var


def key_of(leaf: Var) -> Key:
    """The key of a leaf's array."""
    assert leaf.node is not None
    return leaf.node.key


def remember(leaf: Leaf) -> None:
    """Keep the key of a leaf that leaves this process, or came: gradients may come back for it."""
    _leaves[leaf.key] = leaf


def living_leaf(key: Key) -> Leaf | None:
    """The leaf of this key, if it is alive in this process."""
    return _leaves.get(key)


# --- walks ---------------------------------------------------------------------------------------

_by_number = operator.attrgetter("number")


def freed(node: Node, by: str = "an earlier backward") -> errors.FreedGraphError:
    """The error for a walk through what another one frees, or has freed."""
    return errors.FreedGraphError(
        f"backward: the graph through {node.name!r} was used up by {by}, which frees it; "
        "call that one with retain_graph=True, or compute the root again"
    )


def claim(roots: list[Node], *, keep: bool) -> list[Node]:
    """All nodes that lead to the roots, by number; claimed unless kept.

    Two walks that both use up a shared part exclude each other here: the second finds it claimed.
    """
    with _graphs:
        walk = next(numbers) if keep else -next(numbers)
        nodes: list[Node] = []
        pending: list[Node] = []
        for node in roots:
            if node.walk < 0 and node.used_up:
                _leave(pending)
                raise freed(node)
            node.walk = walk
            pending.append(node)
        while pending:
            node = pending.pop()
            nodes.append(node)
            first, second = node.first, node.second
            if first is None:
                continue
            for parent in (first,) if second is None else (first, second) if node.__class__ is Node else node.edges():
                if parent.walk != walk:
                    if parent.walk < 0 and parent.used_up:
                        _leave(nodes + pending)
                        raise freed(parent)
                    parent.walk = walk
                    pending.append(parent)
        nodes.sort(key=_by_number)
        return nodes


def _leave(nodes: list[Node]) -> None:
    """Claim none of these: the walk cannot be."""
    for node in nodes:
        node.walk = 0


def leading_to(wanted: set[Node], nodes: list[Node]) -> set[Node]:
    """The wanted nodes and all that have one of them among their ancestors."""
    needed = set(wanted)
    for node in nodes:
        parents = node.edges()
        if not parents and node.__class__ is not Leaf:
            raise freed(node, "another thread's walk meanwhile")
        if not needed.isdisjoint(parents):
            needed.add(node)
    return needed
