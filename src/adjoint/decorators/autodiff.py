"""Reverse mode: a backend that records how to pull cotangents back.

`Autodiff(B)` answers for a primitive with a *lifted* one: it runs the primitive on `B` and, where an
operand is tracked, makes a node that keeps what the rule needs and points to the operands' nodes.
`backward` goes through the nodes from the last to the first and lets each pull its cotangent back to its
parents. This is reverse accumulation with a tape of nodes, S. Linnainmaa (1970), B. Speelpenning
(1980); see Griewank and Walther, Evaluating Derivatives (2008), chapters 3 and 6.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Sequence
from typing import Any

from adjoint import errors
from adjoint.backend import Array, Backend, Decorator, Implementation, in_backward, interned_backends, over_leaf
from adjoint.dtypes import INEXACT, float64
from adjoint.graph import codegen
from adjoint.graph.codegen import make_vjp
from adjoint.graph.locations import SourceLocation, location_of, sources_of, with_location
from adjoint.graph.nodes import (
    Key,
    LeafNode,
    Node,
    Result,
    Var,
    freed,
    leading_to,
    living_leaf,
    new_leaf,
    node_of,
    remember,
    result_of,
    toposort,
    var_of,
)
from adjoint.graph.remat import BALANCED, Budget, Policy, Remat, RematCache, count_uses, depth
from adjoint.graph.vjp import VJP, BackwardOn, Sparing, with_strong_zero
from adjoint.primitives import CREATION, ELEMENTWISE, RANDOM, DType, Primitive, function_named
from adjoint.rules import Composed, NotDifferentiable, Record, names_of, record_of
from adjoint.rules.shape import unbroadcast
from adjoint.variables import J

_tracing = False


def record_locations(on: bool) -> bool:
    """Record the user's source line with every primitive, or stop it; returns what was before."""
    global _tracing
    before, _tracing = _tracing, on
    for backend in interned_backends():  # decorators above an Autodiff keep what it answered
        backend.forget()
    return before


class Autodiff(Decorator[J]):
    """Gradients over another backend.

    Parameters
    ----------
    inner
        The backend that runs the primitives, forward and backward.
    checkpointing
        `None` keeps what the rules need. `"balanced"` does not keep what cheap, memory-bound primitives
        made (elementwise and structural ones), but makes it again in `backward`.
    strong_zero
        No nan comes from the branch that `ad.where` did not take: a gradient of zero stays zero where the derivative
        is infinite or undefined. Of nested levels each needs it: at the second order the inner one multiplies too.

    Raises
    ------
    DeviceError
        `inner` is no backend.
    ArgumentError
        An unknown value of `checkpointing` or `strong_zero`.

    Examples
    --------
    >>> import adjoint as ad
    >>> device = ad.Autodiff(ad.NumPy())
    >>> device.name, device is ad.Autodiff(ad.NumPy())
    ('autodiff<numpy>', True)
    """

    differentiates = True

    def __init__(self, inner: J, checkpointing: str | Policy | None = None, strong_zero: bool = False) -> None:
        super().__init__(inner)
        named = checkpointing is None or (isinstance(checkpointing, str) and checkpointing == "balanced")
        if not named and not isinstance(checkpointing, Policy):
            raise errors.ArgumentError(
                f"Autodiff: checkpointing is None or 'balanced', received {errors.shown(checkpointing)}"
            )
        if not isinstance(strong_zero, bool):
            raise errors.ArgumentError(f"Autodiff: strong_zero is True or False, received {errors.shown(strong_zero)}")
        self.checkpointing = checkpointing
        self.interned: bool = not isinstance(checkpointing, Budget)  # which has a state
        self.many: bool = isinstance(checkpointing, Policy) and bool(checkpointing.names)
        self._policy = checkpointing if isinstance(checkpointing, Policy) else BALANCED if checkpointing else None
        self.strong_zero = strong_zero

    def configuration(self) -> tuple[Any, ...]:
        return (self.inner, self.checkpointing, self.strong_zero)

    def wrap(self, value: Array) -> Var:
        return var_of(value, None)

    def unwrap(self, array: Var) -> Array:
        return array.value

    def dtype_of(self, array: Var) -> DType:
        return self.inner.dtype_of(array.value)

    def detach(self, array: Var) -> Var:
        constant = super().detach(array)
        if self.records_locations():
            constant.location = location_of("detach", sources_of([array]), array)
        return constant  # type: ignore[no-any-return]

    def constant(self, array: Var) -> Var:
        """The same value as a constant of this level alone."""
        constant = self.wrap(array.value)
        if self.records_locations():
            constant.location = location_of("set_require_grad", sources_of([array]), array)
        return constant

    def map_arrays(self, array: Var, f: Callable[[Array], Array]) -> Var:
        # without how to make it again, which may lead back to memory that is left
        return var_of(f(array.value), array.node)

    def is_active(self, array: Var) -> bool:
        return array.node is not None

    def transfer(self, array: Var, source: Backend) -> Var:
        """An array of this level over another leaf backend; its cotangent moves back there."""
        assert isinstance(source, Autodiff)
        here, there = self.inner, source.inner
        out = var_of(here.transfer(array.value, there), None)
        if array.node is not None:
            pull = lambda B, g, _: (B.transfer(g, over_leaf(B, here.leaf)),)
            vjp = VJP(function_named("to_device"), (), (0,), pull, self, source=source)
            out.node = node = node_of(vjp, (), (array.node,), out.shape)
            if self.records_locations():
                node.location = location_of("to_device", sources_of([array]), out)
        return out

    def dump(self, array: Var) -> Any:
        node = array.node
        if isinstance(node, LeafNode):
            remember(node)
        return self.inner.dump(array.value), None if node is None else node.key

    def load(self, state: Any, *, keys: dict[Any, Any] | None) -> Var:
        value, key = state
        known = living_leaf(key) if keys is None and key is not None else None
        if known is not None:
            return self.tensor_of(known)
        value = self.inner.load(value, keys=keys)
        if key is None:
            return self.wrap(value)
        if keys is None:
            return new_leaf(value, self, key)
        leaf = new_leaf(value, self, keys.get(key))  # copies of one leaf are one leaf
        assert leaf.node is not None
        keys.setdefault(key, leaf.node.key)
        return leaf

    def tensor_of(self, leaf: LeafNode) -> Var:
        """The array of a leaf node."""
        return var_of(leaf.value, leaf)

    def records_locations(self) -> bool:
        """Whether source lines are being recorded."""
        return _tracing or self.wants_locations

    # --- lifting ---

    def recorded(self, term: Any, g: str, primitive: Primitive) -> Implementation | None:
        plain = self.checkpointing is None and not self.strong_zero and not self.records_locations()
        if not plain or self.inner.numbers(primitive) is None:
            return None

        def vjp_of(pull: Any, spreads: Any, needs: Sequence[str], tracked: tuple[int, ...]) -> VJP:
            vjp = VJP(function_named(term.source, " ".join(needs)), needs, tracked, pull, self)
            vjp.spreads = spreads
            return vjp

        return codegen.recorded(term, g, self, self.inner, vjp_of)

    def implement(self, primitive: Primitive) -> Implementation:
        run = self.inner[primitive]
        if primitive.kind in (CREATION, RANDOM) and not primitive.operands:
            lifted = self._lift_source(run)
        else:
            lifted = self._lift(primitive, run, record_of(primitive))
        return with_location(primitive.name, lifted) if self.records_locations() else lifted

    def implement_into(self, primitive: Primitive) -> Implementation:
        record = record_of(primitive)
        if not record.reuses(primitive):
            return self[primitive]
        run = getattr(self.inner, primitive.name + "_into")
        sources = self._written(primitive, record)
        if sources:
            lifted = self._lift_written(primitive, run, record, sources)
        else:
            lifted = self._lift_any(primitive, run, record, again=False)
        return with_location(primitive.name, lifted) if self.records_locations() else lifted

    def _lift(self, primitive: Primitive, run: Implementation, record: Record) -> Implementation:
        if isinstance(record, NotDifferentiable):
            if primitive.kind is ELEMENTWISE and not primitive.variadic and primitive.results == 1:
                return codegen.constant(primitive, run, self.inner, Var, "node")
            return _lift_constant(run)
        if isinstance(record, Composed) and not record.fused:
            return self._lift_composed(primitive, run, record)
        sources = self._written(primitive, record)
        if sources:
            return self._lift_written(primitive, run, record, sources)
        return self._lift_any(primitive, run, record, again=True)

    def _written(self, primitive: Primitive, record: Record) -> list[int]:
        """The differentiable operands of a primitive whose lift is written out; none where `_lift_any` serves."""
        sources = [i for i, name in enumerate(primitive.operands) if name in record.differentiable(primitive)]
        simple = record.pullback is None and len(sources) <= 2 and "dtype" not in primitive.parameters
        return sources if simple and self.checkpointing is None else []

    def _lift_written(
        self, primitive: Primitive, run: Implementation, record: Record, sources: Sequence[int]
    ) -> Implementation:
        """The hot path: a lift for one or two differentiable operands, written out for the primitive."""
        choices = [(i,) for i in sources] + [tuple(sources)] * (len(sources) == 2)
        return codegen.lifted(primitive, run, {c: self._make_vjp(primitive, record, c) for c in choices}, self.inner)

    def _make_vjp(self, primitive: Primitive, record: Record, tracked: tuple[int, ...]) -> VJP:
        has_remats = self._policy is not None
        if record.pullback is not None:
            joint = record.pullback
            pull: Callable[[Any, Any, Any], Any] = lambda B, g, s: joint(B, g, tracked, *s)
            return VJP(primitive, names_of(joint, 3), tracked, pull, self, has_remats=has_remats)
        rules = [record.rules[primitive.operands[i]] for i in tracked]
        needs = [names_of(rule, 2) for rule in rules]
        if self.strong_zero and primitive.kind is ELEMENTWISE and not record.strong_zero:
            rules = [with_strong_zero(rule) for rule in rules]
        add = record.accumulate
        accumulate = None if add is None else lambda B, sink, g, s: add(B, sink, g, *s)
        pull, spreads, shared = make_vjp(rules, needs, primitive, self.inner)
        names = [name for names in needs for name in names]
        vjp = VJP(primitive, names, tracked, pull, self, accumulate=accumulate, has_remats=has_remats)
        if shared is not None:
            vjp.of_one = VJP(primitive, names, tracked, shared[0], self, has_remats=has_remats)
        if not has_remats and add is None and primitive.results == 1:
            vjp.spreads = spreads
            if vjp.of_one is not None and shared is not None:
                vjp.of_one.spreads = shared[1]
        return vjp

    def _lift_source(self, run: Implementation) -> Implementation:
        """Creation and random numbers: constants, which a policy may have made again, from the same key."""
        policy = self._policy
        if policy is None or policy is BALANCED:
            return lambda **parameters: var_of(run(**parameters), None)

        def lifted(**parameters: Any) -> Var:
            var = var_of(run(**parameters), None)
            var.remat = Remat(run, (), parameters)
            return var

        return lifted

    def _lift_composed(self, primitive: Primitive, run: Implementation, record: Composed) -> Implementation:
        definition, several = record.definition, primitive.results > 1

        def lifted(*operands: Any, **parameters: Any) -> Any:
            if any(o.__class__ is Var and o.node is not None for o in operands):
                return definition(self, *operands, **parameters)
            out = run(*[o.value if o.__class__ is Var else o for o in operands], **parameters)
            return tuple([var_of(value, None) for value in out]) if several else var_of(out, None)

        return lifted

    def _lift_any(self, primitive: Primitive, run: Implementation, record: Record, *, again: bool) -> Implementation:
        """The lift that handles everything: any arity, several results, what is made again."""
        sources = record.differentiable(primitive)
        eligible = [i for i, name in enumerate(primitive.operands) if name in sources and not name.startswith("*")]
        tail = len(primitive.operands) - 1 if primitive.variadic and primitive.operands[-1] in sources else sys.maxsize
        vjps: dict[tuple[int, ...], tuple[VJP, Callable[..., Any]]] = {}
        policy, inner = self._policy, self.inner

        def lifted(*operands: Any, **parameters: Any) -> Any:
            values: list[Any] = []
            places: list[int] = []  # of the tracked operands
            parents: list[Node] = []
            for i, o in enumerate(operands):
                if o.__class__ is not Var:
                    values.append(o)
                    continue
                values.append(o.value)
                if o.node is not None and (i >= tail or i in eligible):
                    places.append(i)
                    parents.append(o.node)
            out = run(*values, **parameters)
            tracked = tuple(places)
            if "dtype" in parameters and parameters["dtype"].kind not in INEXACT:
                tracked = ()
            slots: Sequence[Any] = values
            remat: Remat | None = None
            if policy is not None:
                slots = [getattr(o, "remat", v) for o, v in zip(operands, values, strict=True)]
                if again and primitive.results == 1 and not policy.keeps(primitive, out, inner):
                    remat = Remat(run, slots, parameters) if depth(slots) <= policy.longest else None
            if not tracked:
                if primitive.results > 1:
                    return tuple([var_of(value, None) for value in out])
                var = var_of(out, None)
            else:
                if tracked not in vjps:
                    made = self._make_vjp(primitive, record, tracked)
                    vjps[tracked] = made, codegen.saved_getter(made.saved, self.inner)
                vjp, keep = vjps[tracked]
                if vjp.of_one is not None and operands[tracked[0]] is operands[tracked[1]]:
                    vjp = vjp.of_one
                saved = keep(values, tuple(slots), out if remat is None else remat, parameters)
                if policy is not None:
                    count_uses(saved)
                if primitive.results > 1:
                    return self.results(node_of(vjp, saved, parents, [value.shape for value in out]), out)
                var = var_of(out, node_of(vjp, saved, parents, out.shape))
            if remat is not None:
                var.remat = remat
            return var

        return lifted

    def results(self, maker: Node, values: Sequence[Array]) -> tuple[Var, ...]:
        """The results of a primitive that has several."""
        return tuple([self._result(maker, i, value) for i, value in enumerate(values)])

    def _result(self, maker: Node, i: int, value: Array) -> Var:
        """One of several results: a node whose cotangent fills a slot of the maker's."""
        constant = var_of(value, None)
        return result_of(maker, i, value) if self.dtype_of(constant).kind in INEXACT else constant

    def record(
        self,
        name: str,
        pull: Callable[[Any, Sequence[Array | None], Sequence[Array], Sequence[Array]], Sequence[Array | None]],
        operands: Sequence[Var],
        values: Sequence[Array],
    ) -> list[Var]:
        """The results of a function that is no primitive, as one node.

        `pull(B, cotangents, operands, results)` takes the cotangents of the results, None for absent ones, and gives
        those of all operands, on the backend B: the inner one, or one above it, of which all these are arrays.
        """
        parents = [operand.node for operand in operands if operand.node is not None]
        tracked = tuple([i for i, operand in enumerate(operands) if operand.node is not None])
        pulled: Callable[[Any, Any, Any], Any] = lambda B, g, s: _chosen(s[0](B, g, s[1], s[2]), tracked)
        vjp = VJP(function_named(name), (), tracked, pulled, self)
        vjp.roles = [None, (0,), "outs"]
        saved = pull, tuple([operand.value for operand in operands]), tuple(values)
        node = node_of(vjp, saved, parents, [value.shape for value in values])
        if self.records_locations():
            node.location = SourceLocation(name, sources_of(operands))
        return [self._result(node, i, value) for i, value in enumerate(values)]

    def apply_custom(self, rules: Any, xs: list[Any]) -> list[Any]:
        """One node for the function, whose pullback is its backward rule."""
        active = [self.is_active(x._array) for x in xs]
        if not any(active):
            return rules.handed_on(xs, self)  # type: ignore[no-any-return]
        if not rules.differentiates:
            return rules.plain(xs)  # type: ignore[no-any-return]
        values, pull = rules.pullback(rules.below(xs, self), self, active)
        return [rules.tensor(var, self) for var in self.record(rules.name, pull, [x._array for x in xs], values)]

    # --- going back ---

    def backward(
        self,
        root: Var,
        cotangent: Array | None = None,
        *,
        retain_graph: bool = False,
        wrt: Collection[Node] | None = None,
        on: Backend | None = None,
    ) -> dict[Key, tuple[Node, Array]]:
        """The gradients of `root`, pulled back from `cotangent` (ones), by the key of their node.

        Answers for every leaf that is reached, or for the nodes in `wrt`. The cotangent has the root's shape and dtype.
        Frees the graph unless `retain_graph`.

        Cotangents are arrays of `on`, the inner backend if None, and rules run there. On this level itself they are
        recorded, so that gradients have derivatives in turn; on `Batched(inner)` there are as many as its examples.
        """
        return self.pull([(root, cotangent)], retain_graph=retain_graph, wrt=wrt, on=on)

    def pull(
        self,
        roots: list[tuple[Var, Array]],
        *,
        retain_graph: bool = False,
        wrt: Collection[Node] | None = None,
        on: Backend | None = None,
    ) -> dict[Key, tuple[Node, Array]]:
        """`backward` from several roots at once, each tracked and with its cotangent. Empties the list."""
        before = in_backward.get()
        try:
            in_backward.set(True)
            return self._backward_pass(
                roots, retain_graph, wrt, None if on is None or on is self.inner else BackwardOn(self, on)
            )
        finally:
            in_backward.set(before)

    def _backend_of(self, node: Node) -> Backend:
        """The backend of a node's cotangent."""
        if isinstance(node, LeafNode):
            return self.inner if node.level is None else node.level.inner
        return node.vjp.inner

    def _backward_pass(
        self,
        roots: list[tuple[Var, Array]],
        retain_graph: bool,
        wrt: Collection[Node] | None,
        above: BackwardOn | None,
    ) -> dict[Key, tuple[Node, Array]]:
        below: Any = self.inner if above is None else above.on
        cotangents = _root_cotangents(roots, below, self)
        nodes = toposort(list(cotangents), keep=retain_graph)
        needed = None if wrt is None else leading_to(set(wrt), nodes)
        answers: dict[Key, tuple[Node, Array]] = {}
        owned: set[Node] = set()  # whose cotangent is a buffer that this pass allocated
        cache: RematCache | None = None
        add, add_into = below.add, below.add_into
        number = self._leaf.number_type  # whose sums are Python's
        take, held, next_node = cotangents.pop, cotangents.get, nodes.pop
        backend_of = self._backend_of if above is None else above.backend_of
        node = nodes[-1]
        first: Any = None
        second: Any = None
        plain = needed is None and above is None
        quiet = self._leaf.quiet()
        quiet.__enter__()
        try:
            while nodes:
                node = next_node()
                kind: type[Node] = node.__class__
                if plain and kind is not LeafNode:
                    vjp = node.vjp
                    if vjp.spreads is not None:
                        spread = vjp.spread
                        if spread is None:
                            spread = vjp.spread = vjp.spreads()
                        first, second = node.first, node.second  # for what an error says
                        spread(node, cotangents, owned, retain_graph)
                        continue
                g = take(node, None)
                first, second = node.first, node.second
                parents = _together(first, second)
                saved = node.saved  # read after the parents: a pass that uses up the graph takes it away before them
                if not retain_graph:
                    node.saved = node.first = node.second = None
                if g is None or needed is not None or kind is not Node:
                    if g is not None and (kind is LeafNode if wrt is None else node in wrt):
                        _add_gradient(answers, node, g, backend_of(node))
                    if g is None or kind is LeafNode or (needed is not None and node not in needed):
                        continue
                    if kind is Result and first is not None:
                        slots = cotangents.setdefault(first, [None] * len(first.shape))
                        known = slots[node.result]  # of another node for the same result: a recorded pass made it
                        if known is not None:
                            g = backend_of(node).add(known, g)
                        slots[node.result] = g
                        continue
                if saved is None:
                    raise freed(node, "another thread's backward meanwhile")
                vjp = node.vjp
                place = vjp.below if above is None else above.source(vjp)
                if place is not below:  # a graph may span devices
                    below = place
                    add, add_into = below.add, below.add_into
                kept = saved
                if vjp.has_remats:
                    cache = cache or RematCache()
                    cache.clear(node.number)
                    saved = cache.materialize(saved)
                if above is not None:
                    saved = above.revived(node, parents, kept, saved)
                if vjp.accumulate is not None:
                    parent = parents[0]
                    sink = take(parent, None)
                    on = below if sink is None or parent in owned else Sparing(below, sink)
                    if sink is None:
                        sink = below.full(shape=tuple(parent.shape), value=0, dtype=below.dtype_of(g))
                    cotangents[parent] = vjp.accumulate(on, sink, g, saved)
                    owned.add(parent)
                    continue
                pulled = vjp.pull(below, g, saved)
                g = saved = kept = None
                i = 0
                for parent in parents:  # faster than zip
                    c = pulled[i]
                    i += 1
                    if c is None:
                        continue
                    known = held(parent)
                    if c.__class__ is number and not parent.shape:
                        cotangents[parent] = c if known is None else known + c
                        continue
                    if c.shape != parent.shape:
                        c = unbroadcast(below, c, tuple(parent.shape))
                    if known is None:
                        cotangents[parent] = c
                    elif parent in owned:
                        cotangents[parent] = add_into(known, c)
                    else:
                        cotangents[parent] = add(known, c)
                        owned.add(parent)
        except errors.GraphError:
            raise
        except Exception as error:
            raise errors.BackwardError(_what_failed(node, _together(first, second), error)) from error
        finally:
            quiet.__exit__(None, None, None)
            for node in [] if retain_graph else nodes[::-1]:  # after an error
                node.saved = node.first = node.second = None
        return answers


def _together(first: Any, second: Any) -> tuple[Any, ...]:
    """The nodes that a node has in the places of its parents."""
    if second is None:
        return () if first is None else (first,)
    return (first, *second) if second.__class__ is tuple else (first, second)


def _chosen(cotangents: Sequence[Any], places: Sequence[int]) -> tuple[Any, ...]:
    return tuple([cotangents[i] for i in places])


def _lift_constant(run: Implementation) -> Implementation:
    def lifted(*operands: Any, **parameters: Any) -> Var:
        return var_of(run(*[o.value if o.__class__ is Var else o for o in operands], **parameters), None)

    return lifted


def _root_cotangents(roots: list[tuple[Var, Array]], inner: Backend, level: Autodiff[Any]) -> dict[Node, Any]:
    """The cotangents of the roots, conjugated, ones for None, by node. Empties the list: nothing else holds them."""
    cotangents: dict[Node, Any] = {}
    number = level._leaf.number_type
    while roots:
        root, g = roots.pop()
        if root.node is None:
            raise errors.GraphError("backward: the root is a constant; ad.why(x, root) tells where the path is cut")
        if g is None and inner is level.inner and root.value.__class__ is number:
            g = type(root.value)(1)
        elif g is None:
            dtype, shape = level.inner.dtype_of(root.value), tuple(root.value.shape)
            if inner.differentiates and number is not None and dtype is float64 and not shape:
                g = inner.from_numpy(number(1), copy=False)
            else:
                g = inner.full(shape=shape, value=1, dtype=dtype)
        elif inner.dtype_of(g).kind == "c":
            g = inner.conj(g)
        known = cotangents.get(root.node)
        cotangents[root.node] = g if known is None else inner.add(known, g)
    return cotangents


def _add_gradient(answers: dict[Key, tuple[Node, Array]], node: Node, g: Array, inner: Backend) -> None:
    """Record a gradient: the cotangent, conjugated; leaves of one key add up."""
    if inner.dtype_of(g).kind == "c":
        g = inner.conj(g)
    known = answers.get(node.key)
    answers[node.key] = (node, g if known is None else inner.add(known[1], g))


def _what_failed(node: Node, parents: tuple[Node, ...], error: Exception) -> str:
    operands = [tuple(p.shape) for p in parents]
    location = getattr(node, "location", None)
    place = f"\n  made at {location}" if location else "; ad.testing.source_locations() shows the line that made it"
    shapes = f" of tracked operands {operands}" if operands else ""
    return f"backward through {node.name!r}{shapes} with result {node.shape}: {type(error).__name__}: {error}{place}"
