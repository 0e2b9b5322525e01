"""Reverse mode: a backend that records how to pull cotangents back.

`Autodiff(B)` answers for a primitive with a *lifted* one: it runs the primitive on `B` and, where an
operand is tracked, makes a node that keeps what the rule needs and points to the operands' nodes.
`backward` walks the nodes from the last to the first and lets each pull its cotangent back to its
parents. This is reverse accumulation with a tape of nodes, S. Linnainmaa (1970), B. Speelpenning
(1980); see Griewank and Walther, Evaluating Derivatives (2008), chapters 3 and 6.
"""

from __future__ import annotations

import heapq
import itertools
import linecache
import operator
import os
import sys
import threading
import weakref
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from adjoint import errors
from adjoint.backend import Array, Backend, Decorator, Implementation
from adjoint.primitives import CREATION, ELEMENTWISE, RANDOM, STRUCTURAL, Primitive, Shape
from adjoint.rules import RECORDS, Composed, Custom, Linear, NotDifferentiable, Record, names_of
from adjoint.rules.records import Rule
from adjoint.rules.structural import unbroadcast

Key = tuple[int, int]  # names a leaf for good: the process that made it, and its number there

_number = itertools.count(1)
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

    __slots__ = ("_key", "value")

    _key: Key
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
    recipe: Recipe  # only under balanced checkpointing: how to make the value again

    @property
    def shape(self) -> Shape:
        return self.value.shape  # type: ignore[no-any-return]


def _var(value: Array, node: Node | None) -> Var:
    var = Var()
    var.value = value
    var.node = node
    return var


# --- plans: what a node keeps, and how it pulls back ---------------------------------------------


class Plan:
    """How one primitive pulls back to one choice of tracked operands.

    `pull(g, saved)` gives the cotangents of the tracked operands, in order; `accumulate(sink, g, saved)`,
    where there is one, adds the only cotangent into a buffer. `saved` is the source of the expression
    that picks what the rules need: `v` are the operands, `kept` the operands or recipes for them,
    `out` the result, `p` the parameters.
    """

    __slots__ = ("accumulate", "primitive", "pull", "saved")

    def __init__(
        self, primitive: Primitive, saved: str, pull: Callable[[Any, Any], Any], accumulate: Callable[..., Any] | None
    ) -> None:
        self.primitive = primitive
        self.saved = saved
        self.pull = pull
        self.accumulate = accumulate


def _picked(primitive: Primitive, needs: Sequence[str]) -> str:
    """The source of a tuple of what rules name."""
    places = {name: f"[{i}]" for i, name in enumerate(primitive.operands)}
    many = ""
    if primitive.variadic:
        many = primitive.operands[-1].lstrip("*")
        places[many] = f"[{len(primitive.operands) - 1}:]"

    def source(need: str) -> str:
        operand, _, what = need.rpartition("_")
        if need in places:
            return "kept" + places[need]
        if need in ("out", "outs"):
            return "out"
        if need in primitive.parameters:
            return f"p[{need!r}]"
        if operand in places and what == "shape":
            return f"tuple([shape(a) for a in v{places[operand]}])" if operand == many else f"shape(v{places[operand]})"
        if operand in places and what == "dtype":
            return f"dtype(v{places[operand]})"
        raise TypeError(f"the rule of {primitive.name} asks for {need!r}, which is no operand, result or parameter")

    return "(" + "".join(source(need) + ", " for need in needs) + ")"


def _puller(rules: Sequence[Rule], counts: Sequence[int], inner: Backend) -> Callable[[Any, Any], Any]:
    """A function that calls each rule with its part of what was saved.

    Written out as a lambda expression: `lambda g, s: (r0(B, g, s[0]), r1(B, g, s[1], s[2]), )`.
    """
    calls, start = [], 0
    for i, count in enumerate(counts):
        calls.append(f"r{i}(B, g{''.join(f', s[{k}]' for k in range(start, start + count))}), ")
        start += count
    scope = {"B": inner, **{f"r{i}": rule for i, rule in enumerate(rules)}}
    return eval(f"lambda g, s: ({''.join(calls)})", scope)  # type: ignore[no-any-return]


def _shape(value: Any) -> Shape:
    return tuple(value.shape) if hasattr(value, "shape") else ()


def _absorbing(rule: Rule) -> Rule:
    """The rule with its partial derivative multiplied so that a zero cotangent stays zero."""

    def pull(B: Any, g: Array, *saved: Any) -> Array:
        slope = rule(B, B.full(shape=tuple(g.shape), value=1, dtype=B.dtype_of(g)), *saved)
        if B.dtype_of(slope) != B.dtype_of(g):
            g = B.astype(g, dtype=B.dtype_of(slope))
        return B.absorbing_multiply(g, slope)

    return pull


# --- balanced checkpointing ----------------------------------------------------------------------

_LONGEST = 16  # cheap primitives in a row before a value is kept after all: bounds what a walk holds


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
        self.number = next(_number)
        self.used = self.shared = False
        self.depth = 1
        for operand in operands:
            if operand.__class__ is Recipe:
                self.depth = max(self.depth, operand.depth + 1)
                operand.shared, operand.used = operand.used, True


def _will_be_served(slot: Any) -> None:
    """A node saved this slot: a walk will want the values of its recipes."""
    if slot.__class__ is tuple:
        for part in slot:
            _will_be_served(part)
    elif slot.__class__ is Recipe:
        slot.shared = slot.used = True


class _Kitchen:
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


# --- origins: which line of the user's made a node -----------------------------------------------

_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


class Origin:
    """Where a result was made, by which primitive, and from which tracked operands or constants."""

    __slots__ = ("file", "line", "name", "parents")

    def __init__(self, name: str, parents: list[Node | Origin]) -> None:
        frame = sys._getframe(2)
        while frame.f_back is not None and frame.f_code.co_filename.startswith(_PACKAGE):
            frame = frame.f_back
        self.file, self.line = frame.f_code.co_filename, frame.f_lineno
        self.name = name
        self.parents = parents

    def __str__(self) -> str:
        text = linecache.getline(self.file, self.line).strip()
        return f"{self.file}:{self.line}" + (f": {text}" if text else "")


def _sources(operands: Sequence[Any]) -> list[Node | Origin]:
    found: list[Node | Origin] = []
    for operand in operands:
        if operand.__class__ is Var:
            source = operand.node or getattr(operand, "origin", None)
            if source is not None:
                found.append(source)
    return found


def _traced(name: str, lifted: Implementation) -> Implementation:
    def run(*operands: Any, **parameters: Any) -> Any:
        out = lifted(*operands, **parameters)
        sources = _sources(operands)
        if sources:
            origin = Origin(name, sources)
            for var in out if isinstance(out, tuple) else (out,):
                if var.node is None:
                    var.origin = origin
                elif not hasattr(var.node, "origin"):
                    var.node.origin = origin
        return out

    return run


# --- the decorator -------------------------------------------------------------------------------

J = TypeVar("J", bound=Backend, covariant=True)

_levels: weakref.WeakSet[Autodiff[Any]] = weakref.WeakSet()
_tracing = False


def trace_origins(on: bool) -> bool:
    """Record the user's source line with every primitive, or stop it; returns what was before."""
    global _tracing
    before, _tracing = _tracing, on
    for level in list(_levels):
        level.forget()
    return before


class Autodiff(Decorator[J]):
    """Gradients over another backend.

    Parameters
    ----------
    inner
        The backend that runs the primitives, forward and backward.
    checkpointing
        `None` keeps what the rules need. `"balanced"` keeps recipes for what cheap, memory-bound
        primitives made (elementwise and structural ones) and makes it again in `backward`.
    strong_zero
        A zero cotangent times an infinite or undefined derivative is zero.

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

    def __init__(self, inner: J, checkpointing: str | None = None, strong_zero: bool = False) -> None:
        super().__init__(inner)
        if checkpointing not in (None, "balanced"):
            raise errors.ArgumentError(f"Autodiff: checkpointing is None or 'balanced', received {checkpointing!r}")
        if not isinstance(strong_zero, bool):
            raise errors.ArgumentError(f"Autodiff: strong_zero is True or False, received {strong_zero!r}")
        self.checkpointing = checkpointing
        self.strong_zero = strong_zero
        options = [f"checkpointing={checkpointing}"] * (checkpointing is not None) + ["strong_zero"] * strong_zero
        if options:
            self.name = f"autodiff[{','.join(options)}]<{inner.name}>"
        _levels.add(self)

    def configuration(self) -> tuple[Any, ...]:
        return (self.inner, self.checkpointing, self.strong_zero)

    def wrap(self, value: Array) -> Var:
        return _var(value, None)

    def unwrap(self, array: Var) -> Array:
        return array.value

    def detach(self, array: Var) -> Var:
        constant = super().detach(array)
        if _tracing:
            constant.origin = Origin("detach", _sources([array]))
        return constant  # type: ignore[no-any-return]

    def constant(self, array: Var) -> Var:
        """The same value as a constant of this level alone."""
        constant = self.wrap(array.value)
        if _tracing:
            constant.origin = Origin("set_require_grad", _sources([array]))
        return constant

    def copied(self, array: Var) -> Var:
        # without the recipe, which may lead back to the memory that is left
        return _var(self.inner.copied(array.value), array.node)

    def tracked(self, array: Var) -> bool:
        return array.node is not None or self.inner.tracked(array.value)

    def dump(self, array: Var) -> Any:
        node = array.node
        if isinstance(node, Leaf):
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
            return self.leaf_of(value, key)
        leaf = self.leaf_of(value, keys.get(key))  # copies of one leaf are one leaf
        assert leaf.node is not None
        keys.setdefault(key, leaf.node.key)
        return leaf

    def leaf_of(self, value: Array, key: Key | None = None) -> Var:
        """A leaf with this value, under a new key or a given one."""
        node = Leaf()
        node.number = next(_number)
        node.parents = ()
        node.walk = 0
        node.shape = value.shape
        node.value = value
        node._key = key or (_process, node.number)
        if key is not None:
            remember(node)
        return _var(value, node)

    def tensor_of(self, leaf: Leaf) -> Var:
        """The array of a leaf node."""
        return _var(leaf.value, leaf)

    @staticmethod
    def traces_origins() -> bool:
        """Whether source lines are being recorded."""
        return _tracing

    # --- lifting ---

    def implement(self, primitive: Primitive) -> Implementation:
        lifted = self._lift(primitive, self.inner[primitive], RECORDS.get(primitive.name))
        return _traced(primitive.name, lifted) if _tracing else lifted

    def implement_into(self, primitive: Primitive) -> Implementation:
        # sound because the rules of these keep neither the first operand nor the result
        if primitive.name not in ("add", "index_add", "index_set"):
            return self[primitive]
        run = getattr(self.inner, primitive.name + "_into")
        lifted = self._lift_any(primitive, run, RECORDS[primitive.name], again=False)
        return _traced(primitive.name, lifted) if _tracing else lifted

    def _lift(self, primitive: Primitive, run: Implementation, record: Record | None) -> Implementation:
        if primitive.kind in (CREATION, RANDOM):
            return lambda **parameters: _var(run(**parameters), None)
        if record is None:
            raise errors.UnsupportedPrimitive(
                f"{primitive.name} has no derivative record; give it one in adjoint.rules"
            )
        if isinstance(record, NotDifferentiable):
            return _lift_constant(run)
        if isinstance(record, Composed) and not record.fused:
            return self._lift_composed(run, record)
        sources = [i for i, name in enumerate(primitive.operands) if name in record.differentiable(primitive)]
        simple = record.pullback is None and len(sources) <= 2 and "dtype" not in primitive.parameters
        if simple and self.checkpointing is None:
            return self._lift_written(primitive, run, record, sources)
        return self._lift_any(primitive, run, record, again=primitive.kind in (ELEMENTWISE, STRUCTURAL))

    def _lift_written(
        self, primitive: Primitive, run: Implementation, record: Record, sources: Sequence[int]
    ) -> Implementation:
        """The hot path: a lift for one or two differentiable operands, written out for the primitive.

        As with named tuples, a function is made from source, so that recording costs no loop, no option
        and no call beyond the primitive itself. `_lift_any` is the same thing in general form.
        """
        fixed = [i for i, name in enumerate(primitive.operands) if not name.startswith("*")]
        rest = ", *rest" if primitive.variadic else ""
        given = "".join(f"v{i}, " for i in fixed)
        lines = [f"def lifted({given}/{rest}{', **p' if primitive.parameters else ''}):".replace(", /, *", ", *")]
        for i in fixed:
            lines += [f"    if v{i}.__class__ is Var:"]
            lines += [f"        n{i} = v{i}.node"] if i in sources else []
            lines += [f"        v{i} = v{i}.value"]
            lines += ["    else:", f"        n{i} = None"] if i in sources else []
        if rest:
            lines += ["    if rest:", "        rest = [r.value if r.__class__ is Var else r for r in rest]"]
        lines += [f"    out = run({given}{rest[2:]}{', ' if rest else ''}{'**p' if primitive.parameters else ''})"]
        lines += ["    var = Var()", "    var.value = out"]
        plans: dict[str, Plan] = {}
        choices = [(i,) for i in sources] + ([tuple(sources)] if len(sources) == 2 else [])
        for choice in choices:
            name = "plan" + "".join(map(str, choice))
            plans[name] = self._plan(primitive, record, choice)

        def branch(choice: tuple[int, ...], indent: str) -> list[str]:
            name = "plan" + "".join(map(str, choice))
            parents = "".join(f"n{i}, " for i in choice)
            saved = plans[name].saved
            if "v[" in saved or "kept[" in saved:
                for i in fixed:
                    saved = saved.replace(f"kept[{i}]", f"v{i}").replace(f"v[{i}]", f"v{i}")
                saved = saved.replace(f"kept[{len(fixed)}:]", "tuple(rest)").replace(f"v[{len(fixed)}:]", "rest")
            return [f"{indent}plan = {name}", f"{indent}parents = ({parents})", f"{indent}saved = {saved}"]

        constant = ["var.node = None", "return var"]
        first = sources[0]
        if len(sources) == 1:
            lines += [f"    if n{first} is None:", *[f"        {line}" for line in constant]]
            lines += branch((first,), "    ")
        else:
            second = sources[1]
            lines += [f"    if n{first} is None:", f"        if n{second} is None:"]
            lines += [f"            {line}" for line in constant]
            lines += branch((second,), "        ")
            lines += [f"    elif n{second} is None:", *branch((first,), "        ")]
            lines += ["    else:", *branch((first, second), "        ")]
        lines += [
            "    var.node = node = Node()",
            "    node.number = next(number)",
            "    node.plan = plan",
            "    node.saved = saved",
            "    node.parents = parents",
            "    node.walk = 0",
            "    node.shape = out.shape",
            "    return var",
        ]
        scope: dict[str, Any] = {"Var": Var, "Node": Node, "number": _number, "run": run, **plans}
        scope |= {"shape": _shape, "dtype": self.inner.dtype_of}
        exec("\n".join(lines), scope)
        return scope["lifted"]  # type: ignore[no-any-return]

    def _plan(self, primitive: Primitive, record: Record, tracked: tuple[int, ...]) -> Plan:
        inner = self.inner
        if record.pullback is not None:
            joint = record.pullback
            picked = _picked(primitive, names_of(joint, 3))
            return Plan(primitive, picked, lambda g, s: joint(inner, g, tracked, *s), None)
        rules = [record.rules[primitive.operands[i]] for i in tracked]
        needs = [names_of(rule, 2) for rule in rules]
        constant_slope = type(record) in (Linear, Custom) or primitive.name == "absorbing_multiply"
        if self.strong_zero and primitive.kind is ELEMENTWISE and not constant_slope:
            rules = [_absorbing(rule) for rule in rules]
        add = record.accumulate
        accumulate = None if add is None else lambda sink, g, s: add(inner, sink, g, *s)
        pull = _puller(rules, [len(names) for names in needs], inner)
        return Plan(primitive, _picked(primitive, [name for names in needs for name in names]), pull, accumulate)

    def _lift_composed(self, run: Implementation, record: Composed) -> Implementation:
        definition = record.definition

        def lifted(*operands: Any, **parameters: Any) -> Any:
            if any(o.__class__ is Var and o.node is not None for o in operands):
                return definition(self, *operands, **parameters)
            return _var(run(*[o.value if o.__class__ is Var else o for o in operands], **parameters), None)

        return lifted

    def _lift_any(self, primitive: Primitive, run: Implementation, record: Record, *, again: bool) -> Implementation:
        """The lift that handles everything: any arity, several results, recipes for what is cheap."""
        sources = record.differentiable(primitive)
        eligible = [i for i, name in enumerate(primitive.operands) if name in sources and not name.startswith("*")]
        tail = len(primitive.operands) - 1 if primitive.variadic and primitive.operands[-1] in sources else None
        plans: dict[tuple[int, ...], tuple[Plan, Callable[..., Any]]] = {}
        scope = {"shape": _shape, "dtype": self.inner.dtype_of}
        balanced = self.checkpointing == "balanced"

        def lifted(*operands: Any, **parameters: Any) -> Any:
            values = [o.value if o.__class__ is Var else o for o in operands]
            out = run(*values, **parameters)
            places = eligible if tail is None else [*eligible, *range(tail, len(operands))]
            tracked = tuple([i for i in places if operands[i].__class__ is Var and operands[i].node is not None])
            if "dtype" in parameters and parameters["dtype"].kind not in "fc":
                tracked = ()
            slots: Sequence[Any] = values
            recipe: Recipe | None = None
            if balanced:
                slots = [getattr(o, "recipe", v) for o, v in zip(operands, values, strict=True)]
                if again:
                    recipe = Recipe(run, slots, parameters)
                    if recipe.depth > _LONGEST:
                        recipe = None
            if not tracked:
                if primitive.results > 1:
                    return tuple([_var(value, None) for value in out])
                var = _var(out, None)
            else:
                if tracked not in plans:
                    made = self._plan(primitive, record, tracked)
                    plans[tracked] = made, eval(f"lambda v, kept, out, p: {made.saved}", scope)
                plan, keep = plans[tracked]
                node = Node()
                node.number = next(_number)
                node.plan = plan
                node.saved = keep(values, tuple(slots), out if recipe is None else recipe, parameters)
                if balanced:
                    _will_be_served(node.saved)
                node.parents = tuple([operands[i].node for i in tracked])
                node.walk = 0
                if primitive.results > 1:
                    node.shape = [value.shape for value in out]
                    return tuple([self._result(node, i, value) for i, value in enumerate(out)])
                node.shape = out.shape
                var = _var(out, node)
            if recipe is not None:
                var.recipe = recipe
            return var

        return lifted

    def _result(self, maker: Node, i: int, value: Array) -> Var:
        """One of several results: a node whose cotangent fills a slot of the maker's."""
        if self.dtype_of(_var(value, None)).kind not in "fc":
            return _var(value, None)
        node = Result()
        node.number = next(_number)
        node.plan = maker.plan
        node.saved = None
        node.parents = (maker,)
        node.walk = 0
        node.shape = value.shape
        node.result = i
        return _var(value, node)

    # --- walking back ---

    def backward(
        self,
        root: Var,
        cotangent: Array | None = None,
        *,
        retain_graph: bool = False,
        wrt: Sequence[Node] | None = None,
    ) -> dict[Key, tuple[Node, Array]]:
        """The gradients of `root`, pulled back from `cotangent` (ones), by the key of their node.

        Answers for every leaf that is reached, or for the nodes in `wrt`. The cotangent is an inner
        array of the root's shape and dtype. Frees the graph unless `retain_graph`.
        """
        inner = self.inner
        if root.node is None:
            raise errors.GraphError("backward: the root is a constant; ad.why(x, root) tells where the path is cut")
        nodes, edges = _claim(root.node, keep=retain_graph)
        needed = None if wrt is None else _leading_to(set(wrt), nodes, edges)
        dtype = inner.dtype_of(root.value)
        if cotangent is None:
            cotangent = inner.full(shape=tuple(root.shape), value=1, dtype=dtype)
        elif dtype.kind == "c":
            cotangent = inner.conj(cotangent)
        answers: dict[Key, tuple[Node, Array]] = {}
        cotangents: dict[Node, Any] = {root.node: cotangent}
        cotangent = None
        owned: set[Node] = set()  # whose cotangent is a buffer that this walk allocated
        kitchen = _Kitchen() if self.checkpointing else None
        add, add_into = inner.add, inner.add_into
        take, held, next_node, next_edges = cotangents.pop, cotangents.get, nodes.pop, edges.pop
        node: Node = root.node
        parents: tuple[Node, ...] = ()
        quiet = self.leaf.quiet()
        quiet.__enter__()
        try:
            while nodes:
                node, parents = next_node(), next_edges()
                g = take(node, None)
                if g is None or needed is not None or node.__class__ is not Node:
                    if g is not None and (not parents if wrt is None else node in wrt):
                        _answer(answers, node, g, inner)
                    if g is None or not parents or (needed is not None and node not in needed):
                        if parents and not retain_graph:
                            node.saved = None
                        continue
                    if node.result is not None:
                        cotangents.setdefault(parents[0], [None] * len(parents[0].shape))[node.result] = g
                        continue
                saved = node.saved
                if not retain_graph:
                    node.saved = None
                elif saved is None:
                    raise errors.FreedGraphError(f"backward: another thread's walk used up {node.name!r} meanwhile")
                if kitchen is not None:
                    kitchen.clear(node.number)
                    saved = kitchen.serve(saved)
                plan = node.plan
                if plan.accumulate is not None:
                    (parent,) = parents
                    sink = take(parent, None)
                    if sink is None:
                        sink = inner.full(shape=tuple(parent.shape), value=0, dtype=inner.dtype_of(g))
                    elif parent not in owned:
                        sink = add(sink, 0)
                    cotangents[parent] = plan.accumulate(sink, g, saved)
                    owned.add(parent)
                    continue
                pulled = plan.pull(g, saved)
                g = saved = None
                i = 0
                for parent in parents:  # faster than zip
                    c = pulled[i]
                    i += 1
                    if c is None:
                        continue
                    if c.shape != parent.shape:
                        c = unbroadcast(inner, c, tuple(parent.shape))
                    known = held(parent)
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
            raise errors.BackwardError(_what_failed(node, parents, error)) from error
        finally:
            quiet.__exit__(None, None, None)
        return answers


def _lift_constant(run: Implementation) -> Implementation:
    def lifted(*operands: Any, **parameters: Any) -> Var:
        return _var(run(*[o.value if o.__class__ is Var else o for o in operands], **parameters), None)

    return lifted


_by_number = operator.attrgetter("number")


def _claim(root: Node, *, keep: bool) -> tuple[list[Node], list[tuple[Node, ...]]]:
    """All nodes that lead to the root, by number, each with its parents; claimed unless kept.

    Two walks that both use up a shared part exclude each other here: the second finds it claimed.
    """
    with _graphs:
        walk = next(_number)
        nodes, pending = [], [root]
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


def _leading_to(wanted: set[Node], nodes: list[Node], edges: list[tuple[Node, ...]]) -> set[Node]:
    """The wanted nodes and all that have one of them among their ancestors."""
    needed = set(wanted)
    for node, parents in zip(nodes, edges, strict=True):
        if not needed.isdisjoint(parents):
            needed.add(node)
    return needed


def _answer(answers: dict[Key, tuple[Node, Array]], node: Node, g: Array, inner: Backend) -> None:
    """Record a gradient: the cotangent, conjugated; leaves of one key add up."""
    if inner.dtype_of(g).kind == "c":
        g = inner.conj(g)
    known = answers.get(node.key)
    answers[node.key] = (node, g if known is None else inner.add(known[1], g))


def _what_failed(node: Node, parents: tuple[Node, ...], error: Exception) -> str:
    operands = [tuple(p.shape) for p in parents]
    origin = getattr(node, "origin", None)
    place = f"\n  made at {origin}" if origin else "; ad.testing.trace_origins() shows the line that made it"
    shapes = f" of tracked operands {operands}" if operands else ""
    return f"backward through {node.name!r}{shapes} with result {node.shape}: {type(error).__name__}: {error}{place}"


def remember(leaf: Leaf) -> None:
    """Keep the key of a leaf that leaves this process, or came: gradients may come back for it."""
    _leaves[leaf.key] = leaf


def living_leaf(key: Key) -> Leaf | None:
    """The leaf of this key, if it is alive in this process."""
    return _leaves.get(key)
