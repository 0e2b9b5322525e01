"""Nodes: what is recorded of a program, and the order in which a backward pass takes it.

A `Var` is an array with the node that made it; nodes point to the nodes of their operands and never to
a `Var` or a tensor, so that graphs have no cycles.
"""

from __future__ import annotations

import itertools
import operator
import os
import weakref
from collections.abc import Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any

from adjoint import errors
from adjoint.backend import Array
from adjoint.locks import lock

if TYPE_CHECKING:
    from adjoint.graph.locations import SourceLocation
    from adjoint.graph.remat import Remat
    from adjoint.graph.vjp import VJP

Key = tuple[int, int]  # names a leaf for good: the process that made it, and its number there

numbers: itertools.count[int] = itertools.count(1)  # one order of all nodes
_process = int.from_bytes(os.urandom(7), "little")
_leaves: weakref.WeakValueDictionary[Key, LeafNode] = weakref.WeakValueDictionary()
_graphs = lock()  # held while a pass takes its nodes, never while rules run


def _new_process() -> None:
    global _process
    _process = int.from_bytes(os.urandom(7), "little")


if hasattr(os, "register_at_fork"):  # Windows does not fork
    os.register_at_fork(after_in_child=_new_process)


class Node:
    """One recorded primitive, or one leaf.

    `first` and `second` are the nodes of its tracked operands; a node of more is a `Joint`. `saved` is what its vjp
    keeps. A node refers to no tensor, so graphs have no cycles, and it has its parents in slots and not in a tuple, so
    that it is one object to Python's garbage collector, which looks at all objects of a long graph again and again.
    """

    __slots__ = ("__weakref__", "first", "location", "marks", "number", "saved", "second", "shape", "visit", "vjp")

    result: int | None = None  # which of several results this stands for; its only parent made them all
    number: int
    visit: int  # the last pass that came here while it took its nodes; negative if that frees them
    vjp: VJP
    saved: Any
    first: Node | None
    second: Node | None
    shape: Any
    location: SourceLocation
    marks: Any  # only what a face hangs on it: the name that its users know, hooks

    @property
    def parents(self) -> tuple[Node, ...] | None:
        """The nodes of the tracked operands; None in a graph that `backward` used up."""
        return None if self.used_up else self.edges()

    @property
    def used_up(self) -> bool:
        """Whether a pass has taken it, which frees it."""
        return self.visit < 0 and self.__class__ is not LeafNode

    def edges(self) -> tuple[Node, ...]:
        """The nodes of the tracked operands; a pass that uses the graph up takes them away as it goes."""
        first, second = self.first, self.second
        return () if first is None else (first,) if second is None else (first, second)

    @property
    def key(self) -> Key:
        """What `Gradients` knows this node by."""
        return _process, self.number

    @property
    def name(self) -> str:
        """The primitive's name."""
        return self.vjp.primitive.name

    def __repr__(self) -> str:
        return f"<{self.name} #{self.number}, shape {tuple(self.shape)}>"

    def _repr_html_(self) -> str | None:
        """For notebooks: the graph that leads to it, as `ad.draw` shows it, if what draws is installed."""
        return import_module("adjoint.pictures.drawing").of_graph_of(self)  # type: ignore[no-any-return]


class Joint(Node):
    """A node of more than two tracked operands: `second` are the nodes of all but the first."""

    __slots__ = ()

    second: tuple[Node, ...] | None  # type: ignore[assignment]

    def edges(self) -> tuple[Node, ...]:
        return () if self.first is None or self.second is None else (self.first, *self.second)


class Result(Node):
    """One of several results of a primitive: its cotangent fills a slot of its only parent's."""

    __slots__ = ("result",)


class LeafNode(Node):
    """What `require_grad()` makes: it ends the pass, and `Gradients` answers for it."""

    __slots__ = ("key", "level", "origin", "value")  # pyright: ignore[reportIncompatibleMethodOverride]

    key: Key
    level: Any  # its Autodiff level, which may be over another leaf backend than the root's; None for the root's own
    value: Array
    origin: Key  # only of what `with_value` made: the first of the leaves that it was made of

    @property
    def name(self) -> str:
        return "leaf"


class Var:
    """An array of an Autodiff backend: an inner array, and the node that made it, if tracked."""

    __slots__ = ("__weakref__", "location", "node", "remat", "value")

    value: Array
    node: Node | None
    location: SourceLocation  # only while locations are recorded: what a constant came from
    remat: Remat  # only under checkpointing: how to make the value again

    shape = property(operator.attrgetter("value.shape"))  # in C, where a call of Python's costs three times as much


def var_of(value: Array, node: Node | None) -> Var:
    """An array with the node that made it, or a constant."""
    var = Var()
    var.value = value
    var.node = node
    return var


def node_of(vjp: VJP, saved: Any, parents: Sequence[Node], shape: Any) -> Node:
    """A node of any number of parents."""
    first, *others = parents
    node: Any = Joint() if len(others) > 1 else Node()
    node.number = next(numbers)
    node.vjp = vjp
    node.saved = saved
    node.first = first
    node.second = None if not others else others[0] if len(others) == 1 else tuple(others)
    node.visit = 0
    node.shape = shape
    return node  # type: ignore[no-any-return]


def result_of(maker: Node, i: int, value: Array) -> Var:
    """The i-th of several results of a node."""
    node = Result()
    node.number = next(numbers)
    node.vjp = maker.vjp
    node.saved = node.second = None
    node.first = maker
    node.visit = 0
    node.shape = value.shape
    node.result = i
    return var_of(value, node)


def new_leaf(value: Array, level: Any = None, key: Key | None = None) -> Var:
    """A leaf with this value on a level, under a new key or a given one."""
    node = LeafNode()
    node.number = next(numbers)
    node.saved = node.first = node.second = None
    node.visit = 0
    node.shape = value.shape
    node.value = value
    node.level = level
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


def remember(leaf: LeafNode) -> None:
    """Keep the key of a leaf that leaves this process, or came: gradients may come back for it."""
    _leaves[leaf.key] = leaf


def living_leaf(key: Key) -> LeafNode | None:
    """The leaf of this key, if it is alive in this process."""
    return _leaves.get(key)


# --- the order of a backward pass -----------------------------------------------------------------

_by_number = operator.attrgetter("number")


def freed(node: Node, by: str = "an earlier backward") -> errors.FreedGraphError:
    """The error for a pass through what another one frees, or has freed."""
    return errors.FreedGraphError(
        f"backward: the graph through {node.name!r} was used up by {by}, which frees it; "
        "call that one with retain_graph=True, or compute the root again. After a step w = w - rate * g write "
        "(w - rate * g).detach().require_grad(), a new leaf"
    )


def toposort(roots: list[Node], *, keep: bool) -> list[Node]:
    """All nodes that lead to the roots, by number; taken unless kept.

    Two passes that both use up a shared part exclude each other here: the second finds it taken.
    """
    with _graphs:
        visit = next(numbers) if keep else -next(numbers)
        nodes: list[Node] = []
        for node in roots:
            if node.visit < 0 and node.used_up:
                _unmark(nodes)
                raise freed(node)
            node.visit = visit
            nodes.append(node)
        found = nodes.append
        for node in nodes:  # which grows meanwhile
            parent = node.first
            if parent is None:
                continue
            if parent.visit is not visit:  # an integer of this pass alone
                if parent.visit < 0 and parent.used_up:
                    _unmark(nodes)
                    raise freed(parent)
                parent.visit = visit
                found(parent)
            second: Any = node.second
            if second is None:
                continue
            if second.__class__ is not tuple:  # faces have nodes of their own
                if second.visit is visit:
                    continue
                second = (second,)
            for parent in second:
                if parent.visit is not visit:
                    if parent.visit < 0 and parent.used_up:
                        _unmark(nodes)
                        raise freed(parent)
                    parent.visit = visit
                    found(parent)
        nodes.sort(key=_by_number)
        return nodes


def _unmark(nodes: list[Node]) -> None:
    """Take none of these: the pass cannot be."""
    for node in nodes:
        node.visit = 0


def leading_to(wanted: set[Node], nodes: list[Node]) -> set[Node]:
    """The wanted nodes and all that have one of them among their ancestors."""
    needed = set(wanted)
    for node in nodes:
        parents = node.edges()
        if not parents and not isinstance(node, LeafNode):
            raise freed(node, "another thread's backward meanwhile")
        if not needed.isdisjoint(parents):
            needed.add(node)
    return needed


# --- what a result was computed from ----------------------------------------------------------------


def leaves_behind(start: Node | None) -> list[LeafNode]:
    """The leaves that a node was computed from, as far as its graph is there."""
    return [node for node in ancestors(start) if isinstance(node, LeafNode)]


def ancestors(start: Node | None) -> list[Node]:
    """The node and all that it was computed from, as far as the graph is there."""
    found, pending, seen = [], [start] if start is not None else [], {start}
    while pending:
        node = pending.pop()
        found.append(node)
        for parent in node.parents or ():
            if parent not in seen:
                seen.add(parent)
                pending.append(parent)
    return found
