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

    `parents` are the nodes of its tracked operands; `None` marks a graph that `backward` used up.
    `saved` is what the plan keeps. A node refers to no tensor, so graphs have no cycles.
    """

    __slots__ = ("__weakref__", "number", "origin", "parents", "plan", "saved", "shape", "walk")

    result: int | None = None  # which of several results this stands for; its only parent made them all
    number: int
    walk: int  # the last walk that came here while it claimed its nodes
    plan: Plan
    saved: Any
    parents: tuple[Node, ...] | None
    shape: Any
    origin: Origin

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


class Result(Node):
    """One of several results of a primitive: its cotangent fills a slot of its only parent's."""

    __slots__ = ("result",)


class Leaf(Node):
    """What `require_grad()` makes: it ends the walk, and `Gradients` answers for it."""

    __slots__ = ("_key", "home", "value")

    _key: Key
    home: Any  # its Autodiff level, which may be over another leaf backend than the root's; None for the root's own
    value: Array

    @property
    def key(self) -> Key:
        return self._key

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


def leaf_of(value: Array, home: Any = None, key: Key | None = None) -> Var:
    """A leaf with this value on a level, under a new key or a given one."""
    node = Leaf()
    node.number = next(numbers)
    node.parents = ()
    node.walk = 0
    node.shape = value.shape
    node.value = value
    node.home = home
    node._key = key or (_process, node.number)
    if key is not None:
        remember(node)
    return var_of(value, node)


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


def claim(roots: list[Node], *, keep: bool) -> tuple[list[Node], list[tuple[Node, ...]]]:
    """All nodes that lead to the roots, by number, each with its parents; claimed unless kept.

    Two walks that both use up a shared part exclude each other here: the second finds it claimed.
    """
    with _graphs:
        walk = next(numbers)
        nodes, pending = [], roots
        for root in roots:
            root.walk = walk
        while pending:
            node = pending.pop()
            nodes.append(node)
            parents = node.parents
            if parents is None:
                raise errors.FreedGraphError(
                    f"backward: the graph through {node.name!r} was used up by an earlier backward, which frees it; "
                    "call that one with retain_graph=True, or compute the root again"
                )
            for parent in parents:
                if parent.walk != walk:
                    parent.walk = walk
                    pending.append(parent)
        nodes.sort(key=_by_number)
        edges: list[tuple[Node, ...]] = [node.parents for node in nodes]  # type: ignore[misc]
        if not keep:
            for node in nodes:
                if node.parents:
                    node.parents = None
        return nodes, edges


def leading_to(wanted: set[Node], nodes: list[Node], edges: list[tuple[Node, ...]]) -> set[Node]:
    """The wanted nodes and all that have one of them among their ancestors."""
    needed = set(wanted)
    for node, parents in zip(nodes, edges, strict=True):
        if not needed.isdisjoint(parents):
            needed.add(node)
    return needed
