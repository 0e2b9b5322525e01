"""What of a function follows from what: its pullback, and where cotangents and tangents that are absent count.

A loop of a program has one body for all steps, and some steps may have no cotangent of what others have one of. A zero
in its place is the same unless a rule multiplies it by a slope that is infinite. So a plan says from which step on
zeros will do: the steps before are computed one by one, each with what it has.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from adjoint.devices import current_level, transform_level
from adjoint.graph.nodes import LeafNode, Node, Result, ancestors, key_of, new_leaf
from adjoint.operands import lift_to
from adjoint.primitives import TABLE
from adjoint.rules import record_of
from adjoint.rules.records import Custom
from adjoint.tensor import Tensor, wrap
from adjoint.transforms.arguments import Arguments, on_level, results_of, reverse_level
from adjoint.transforms.forward import jvp
from adjoint.transforms.levels import Tensors

Places = frozenset[int]
APART = 8  # how many steps are computed one by one at most, before zeros count


class Taped:
    """One run of a function of tensors, as reverse mode records it."""

    def __init__(self, name: str, f: Callable[..., Tensors], primals: Tensors) -> None:
        call = Arguments(name, f, range(len(primals)), (*primals,), {}, keep=True)
        self.base = call.base
        self.level = reverse_level(call.base)
        with transform_level(self.level, call.dtype):
            self.leaves = list(map(new_leaf, call.arrays))
            self.roots = [on_level(x, self.level) for x in results_of(name, call.run(f, self.level, self.leaves))[0]]
        self._behind: list[set[Node]] = [set(ancestors(root.node)) for root in self.roots]
        self._places = {leaf.node: i for i, leaf in enumerate(self.leaves)}
        self._f, self._primals = f, primals
        # functions with rules, such as loops, know themselves what they give cotangents and tangents of
        self._functions = any([not _is_primitive(node) for behind in self._behind for node in behind])

    @property
    def values(self) -> Tensors:
        """The results for levels further out: rules that the function calls on what is followed are used up."""
        return [wrap(root.value, self.base) for root in self.roots]

    @property
    def follows(self) -> list[bool]:
        """Which results come of the arguments."""
        return [root.node is not None for root in self.roots]

    def pull(self, cotangents: Sequence[Tensor[Any] | None]) -> list[Tensor[Any] | None]:
        """The cotangents of the arguments; None where there are none."""
        pairs = [
            (root, lift_to(c, self.base))
            for root, c in zip(self.roots, cotangents, strict=True)
            if c is not None and root.node is not None
        ]
        found = self.level.pull(pairs, retain_graph=True) if pairs else {}
        answers = [found.get(key_of(leaf)) for leaf in self.leaves]
        return [None if g is None else wrap(g[1], self.base) for g in answers]

    def leading(self, results: Places) -> Places:
        """The arguments that get cotangents from those of these results."""
        if self._functions and results:
            found = self.pull([wrap(x.value, self.base) if r in results else None for r, x in enumerate(self.roots)])
            return frozenset([i for i, g in enumerate(found) if g is not None])
        return frozenset([i for node, i in self._places.items() if any(node in self._behind[r] for r in results)])

    def following(self, arguments: Places) -> Places:
        """The results that get tangents from those of these arguments."""
        if self._functions and arguments:
            return frozenset(pushed(self._f, self._primals, {i: self._primals[i] for i in arguments})[1])
        nodes = {node for node, i in self._places.items() if i in arguments}
        return frozenset([r for r, behind in enumerate(self._behind) if not nodes.isdisjoint(behind)])

    def takes_zeros_back(self, always: Places, sometimes: Places) -> bool:
        """Whether zeros for some of the cotangents of results count as if they were absent."""
        reached: set[Node] = set().union(*[self._behind[r] for r in always])
        alone = set().union(*[self._behind[r] for r in sometimes]) - reached
        return all(map(_keeps_zeros, alone))

    def takes_zeros_forth(self, always: Places, sometimes: Places) -> bool:
        """Whether zeros for some of the tangents of arguments count as if they were absent."""
        moved: dict[Node, tuple[bool, bool]] = {}  # by what is there always, and by what may be
        for node in sorted(set().union(*self._behind), key=lambda node: node.number):
            edges = [moved[parent] for parent in node.edges()]
            if isinstance(node, LeafNode):
                moved[node] = self._places.get(node) in always, self._places.get(node) in sometimes
                continue
            if not _keeps_zeros(node) and any([often and not sure for sure, often in edges]):
                return False
            moved[node] = any([sure for sure, _ in edges]), any([often for _, often in edges])
        return True


def _keeps_zeros(node: Node) -> bool:
    """Whether zeros give zeros there, whatever the values are."""
    if isinstance(node, LeafNode):
        return True
    if isinstance(node, Result) or not _is_primitive(node):
        return False
    record = record_of(node.vjp.primitive)
    return record.strong_zero and not isinstance(record, Custom)


def _is_primitive(node: Node) -> bool:
    return isinstance(node, LeafNode) or TABLE.get(node.name) is node.vjp.primitive


def pushed(
    f: Callable[..., Tensors], args: Tensors, tangents: dict[int, Tensor[Any]]
) -> tuple[Tensors, dict[int, Tensor[Any]]]:
    """What a function gives, and the tangents that there are of that, by their places."""
    places = [*tangents]
    moves: list[int] = []

    def run(*active: Tensor[Any]) -> Tensors:
        given = list(args)
        for i, x in zip(places, active, strict=True):
            given[i] = x
        level = current_level()
        assert level is not None
        ys = [wrap(lift_to(y, level), level) for y in f(*given)]
        moves[:] = [i for i, y in enumerate(ys) if level.is_active(y._array)]
        return ys

    ys, out = jvp(run, [args[i] for i in places], [*tangents.values()])
    return ys, {i: out[i] for i in moves}


class Plan(NamedTuple):
    """How a loop goes: so many steps `apart`, then a loop of those of the carry that are there in `some` step."""

    apart: int
    some: Places


def planned(
    first: Places,
    length: int,
    after: Callable[[Places], Places],
    takes_zeros: Callable[[Places, Places], bool],
    most: int = APART,
) -> Plan:
    """The plan of a loop that begins with what is `first` there, and has what is there `after` a step next.

    `takes_zeros(always, sometimes)` says whether zeros will do for what is there sometimes. If they do not after the
    `most` steps that may be apart, they count after all.
    """
    there, following = [first], first
    while len(there) <= length and (following := after(there[-1])) not in there:
        there.append(following)
    again = there.index(following) if following in there else len(there)  # where it repeats itself from
    for apart in range(most + 1):
        if apart > length:  # which may be a symbol
            break
        rest = there[min(apart, again) :]
        some, always = frozenset().union(*rest), rest[0].intersection(*rest)
        if apart == length or takes_zeros(always, some - always):
            return Plan(apart, some)
    return Plan(0, frozenset().union(*there))
