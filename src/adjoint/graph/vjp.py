"""Vector-Jacobian products: what a node keeps of a primitive's call, and how it pulls back."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from adjoint.backend import Array, Backend, Decorator, over_leaf
from adjoint.graph.codegen import saved_source
from adjoint.graph.nodes import LeafNode, Node, Var, var_of
from adjoint.graph.remat import Remat
from adjoint.primitives import Primitive
from adjoint.rules.records import Rule


class VJP:
    """How one primitive pulls back to one choice of tracked operands.

    `pull(B, g, saved)` gives the cotangents of the tracked operands, in order, computed on the backend B;
    `accumulate(B, sink, g, saved)`, where there is one, adds the only cotangent into a buffer. B is `below`, the
    backend of the operands' values, or one above it: the level itself records what the rules do. `needs` names what
    the rules are handed, and `tracked` the operands that they answer for. `has_remats` says that a `Remat`
    may be among what is saved. `source` is the level of the operands, another one than that of the result where an
    array moved between devices. `of_one`, where there is one, is for two operands that are one array, as of x * x.
    `spread(node, found, owned, keep)`, which `spreads` makes, does the same on `below` for a pass: it adds to the
    cotangents found.
    """

    __slots__ = (
        "accumulate",
        "below",
        "has_remats",
        "inner",
        "level",
        "needs",
        "of_one",
        "primitive",
        "pull",
        "roles",
        "source",
        "spread",
        "spreads",
        "tracked",
    )

    def __init__(
        self,
        primitive: Primitive,
        needs: Sequence[str],
        tracked: tuple[int, ...],
        pull: Callable[[Any, Any, Any], Any],
        level: Decorator[Any],
        *,
        accumulate: Callable[..., Any] | None = None,
        has_remats: bool = False,
        source: Decorator[Any] | None = None,
    ) -> None:
        self.primitive: Primitive = primitive
        self.needs: tuple[str, ...] = tuple(needs)
        self.tracked: tuple[int, ...] = tracked
        self.pull: Callable[[Any, Any, Any], Any] = pull
        self.accumulate: Callable[..., Any] | None = accumulate
        self.has_remats: bool = has_remats
        self.level: Decorator[Any] = level
        self.source: Decorator[Any] = source or level
        self.inner: Backend = level.inner
        self.below: Backend = self.source.inner
        self.of_one: VJP | None = None
        self.spread: Callable[..., None] | None = None  # once it is needed
        self.spreads: Callable[[], Callable[..., None]] | None = None  # None where each pass does it
        self.roles: list[Any] | None = None  # of what is saved: see `revived`

    @property
    def saved(self) -> str:
        """The source of the expression that picks what the rules need, as `saved_source` writes it."""
        return saved_source(self.primitive, self.needs)

    def revived(self, node: Node, parents: Sequence[Node], kept: Any, saved: Any, results: Callable[..., Any]) -> Any:
        """What was saved as arrays of the level: operands with the nodes they came from, the result with its own.

        `kept` has a `Remat` where `saved` has the value made by it. `results(node, values)` gives several results.
        """
        roles = self.roles
        if roles is None:
            roles = self.roles = [self._role(need) for need in self.needs]
        out = []
        for role, remat, value in zip(roles, kept, saved, strict=True):
            if role is None:
                out.append(value)
            elif role.__class__ is int:
                out.append(_revived(value, parents[role] if role >= 0 else None, remat))
            elif role == "out":
                out.append(_revived(value, node, remat))
            elif role == "outs":
                out.append(results(node, value))
            else:
                nodes = [
                    parents[k] if k >= 0 else None for k in map(self._parent, range(role[0], role[0] + len(value)))
                ]
                out.append(tuple([_revived(v, n, r) for v, n, r in zip(value, nodes, remat, strict=True)]))
        return tuple(out)

    def _parent(self, i: int) -> int:
        """Which of the parents the i-th operand has; -1 where it is not tracked."""
        return self.tracked.index(i) if i in self.tracked else -1

    def _role(self, need: str) -> Any:
        """The parent of an operand, where those of `*operands` begin, "out", "outs", or None for what is no array."""
        operands = self.primitive.operands
        if need in operands:
            return self._parent(operands.index(need))
        if operands and "*" + need == operands[-1]:
            return (len(operands) - 1,)
        return need if need in ("out", "outs") else None


def _revived(value: Any, node: Node | None, remat: Any) -> Any:
    if not hasattr(value, "shape"):  # one of Python's numbers
        return value
    var = var_of(value, node)
    if remat.__class__ is Remat:
        var.remat = remat
    return var


class BackwardOn:
    """A pass that runs its rules on another backend than the one below the level: on the level itself, or above.

    Where the level is in that backend's chain, what nodes saved is *revived*: it gets the nodes that it came from, so
    that the level records what the rules do with it.
    """

    def __init__(self, level: Decorator[Any], on: Backend) -> None:
        self.level: Decorator[Any] = level
        self.on: Backend = on
        self.recorded: bool = any(below is level for below in on.chain())
        self.itself: bool = on is level
        self.places: dict[Backend, tuple[Backend, Backend]] = {}

    def _place(self, level: Decorator[Any]) -> tuple[Backend, Backend]:
        """The counterparts of `on`, and of the backend that saved values are lifted from, over the leaf of a level."""
        known = self.places.get(level)
        if known is None:
            source = self.level if self.recorded else self.level.inner
            known = self.places[level] = over_leaf(self.on, level.leaf), over_leaf(source, level.leaf)
        return known

    def _on(self, level: Decorator[Any]) -> Backend:
        """Where rules of nodes of this level run: it may be over another leaf, or view the pass's own."""
        return level if self.itself else self._place(level)[0]

    def source(self, vjp: VJP) -> Backend:
        """The backend of the cotangents of operands."""
        return self._on(vjp.source)

    def backend_of(self, node: Node) -> Backend:
        """The backend of a node's cotangent."""
        if isinstance(node, LeafNode):
            return self.on if node.level is None else self._on(node.level)
        return self._on(node.vjp.level)

    def revived(self, node: Node, parents: Sequence[Node], kept: Any, saved: Any) -> Any:
        """What a node saved, as arrays of the backend that its rules run on."""
        vjp = node.vjp
        if self.itself:
            return vjp.revived(node, parents, kept, saved, vjp.level.results)
        made = vjp.revived(node, parents, kept, saved, vjp.level.results)
        return tuple([self._lifted(part, *self._place(vjp.source)) for part in made])

    def _lifted(self, part: Any, on: Backend, source: Backend) -> Any:
        if part.__class__ is tuple:
            return tuple([self._lifted(one, on, source) for one in part])
        return on.lift(part if self.recorded else part.value, source) if part.__class__ is Var else part


class Sparing:
    """A backend that writes into a new array where it would have written into this one."""

    def __init__(self, backend: Any, spared: Array) -> None:
        self._backend, self._spared = backend, spared

    def __getattr__(self, name: str) -> Any:
        run = getattr(self._backend, name)
        if not name.endswith("_into"):
            return run
        plain = self._backend[name.removesuffix("_into")]
        return lambda x, *rest, **how: (plain if x is self._spared else run)(x, *rest, **how)


def with_strong_zero(rule: Rule) -> Rule:
    """The rule with its partial derivative multiplied so that a zero cotangent stays zero."""

    def pull(B: Any, g: Array, *saved: Any) -> Array:
        slope = rule(B, B.full(shape=tuple(g.shape), value=1, dtype=B.dtype_of(g)), *saved)
        if B.dtype_of(slope) != B.dtype_of(g):
            g = B.astype(g, dtype=B.dtype_of(slope))
        return B.absorbing_multiply(g, slope)

    return pull
