"""One backward pass as PyTorch's users know it: over adjoint's nodes and rules, with `.grad`, hooks and its errors.

It differs from `Autodiff.backward` in bookkeeping alone: the graph stays, and only what was saved is freed; leaves
gather gradients; hooks may replace what passes; a value that was overwritten after it was saved is an error.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from adjoint.backend import in_backward, over_leaf
from adjoint.decorators.batched import Batch, Batched
from adjoint.graph.nodes import Joint, Node, Var, leading_to, toposort, var_of
from adjoint.graph.vjp import VJP, BackwardOn, Sparing
from adjoint.locks import lock
from adjoint.primitives import TABLE
from adjoint.rules.shape import unbroadcast
from adjoint.torch import anomaly, dtypes, graph, state
from adjoint.torch.devices import where_of
from adjoint.torch.graph import FREED, Accumulate, Called, Marks, Unchecked, marks_of
from adjoint.torch.saving import Packed
from adjoint.torch.state import grad_mode, modes
from adjoint.torch.tensor import (
    INNER,
    LEVEL,
    Tensor,
    copied,
    leaf_of,
    level_of,
    next_number,
    of,
    rare_of,
    values,
)
from adjoint.torch.writes import store
from adjoint.user_primitives import DECLARED

# whether a node of this kind has saved values, and not only shapes; or the place of arrays, of which there may be none
_frees: dict[VJP, bool | int] = {}


def _saves_values(vjp: VJP) -> bool | int:
    primitive = vjp.primitive
    if primitive.name not in TABLE:  # a function of the user's, of which all operands are kept, and made anew
        return True
    found: bool | int = False
    if graph.saves_values(primitive.name):
        names = [name.lstrip("*") for name in primitive.operands]
        values = [need for need in vjp.needs if need in (*names, "out", "outs")]
        found = bool(values)
        if primitive.variadic and values == names[-1:]:
            found = vjp.needs.index(values[0])
    if primitive.name not in DECLARED:  # one of a user's goes with its last reference
        _frees[vjp] = found
    return found


class Pass:
    """One backward pass: on `create_graph` what the rules do is recorded."""

    create: bool
    keep: bool
    partial: bool

    def __init__(self, keep: bool, create: bool, batched: bool = False) -> None:
        self.keep, self.create = keep, create
        self.below: Any = LEVEL if create else INNER
        if batched:
            self.below = Batched(self.below)
        self.batched = batched
        self.quiet = batched  # whether hooks see nothing of it
        self.above: BackwardOn | None = BackwardOn(LEVEL, self.below) if create or batched else None
        self.elsewhere: dict[Any, Any] = {}  # the same two, of levels of other devices
        self.at: Any = None  # the node that is pulled back
        self.partial = False  # whether only some leaves are asked for
        self.callbacks: list[Any] = []  # to be called at the end
        self._roots: list[Node] = []
        self._wanted: set[Node] | None = None
        self._reached: set[Node] | None = None

    def on(self, level: Any) -> tuple[Any, BackwardOn | None]:
        """Where rules of a level run, which may be another device's."""
        if level is LEVEL:
            return self.below, self.above
        found = self.elsewhere.get(level)
        if found is None:
            below = over_leaf(self.below, level.leaf)
            found = self.elsewhere[level] = below, None if self.above is None else BackwardOn(level, below)
        return found

    def of_array(self, g: Any) -> Any:
        """The backend of a cotangent."""
        if g.__class__ is np.ndarray:
            return self.below
        value = g
        while value.__class__ is Var or value.__class__ is Batch:
            value = value.value
        where = where_of(value)
        return self.below if where is None else self.on(where.level)[0]

    def reaches(self, node: Any) -> bool:
        """Whether the pass comes to a node."""
        if self._reached is None:
            nodes = toposort(self._roots, keep=True)
            self._reached = set(nodes)
            if self._wanted is not None:
                self._reached &= leading_to(self._wanted, nodes)
        return node in self._reached

    # --- between the graph and hooks ---

    def shown(self, g: Any) -> Tensor:
        """A cotangent as a tensor; of complex numbers PyTorch's is the conjugate of ours."""
        dtype = g.dtype if g.__class__ is np.ndarray else self.of_array(g).dtype_of(g)
        if dtype.kind == "c":
            g = self.of_array(g).conj(g)
        return of(g if self.create else var_of(g, None))

    def taken(self, x: Any, like: Any, hook: Any) -> Any:
        """What a hook gave, as a cotangent."""
        if not isinstance(x, Tensor):
            raise TypeError(f"expected Variable, but hook returned '{type(x).__name__}'")
        name = getattr(hook, "__name__", "<unknown>")
        below = self.of_array(like)
        if x._dtype is not below.dtype_of(like):
            raise RuntimeError(
                f"hook '{name}' has changed the type of value (was "
                f"torch.{dtypes.of_numpy(below.dtype_of(like)).class_name}Tensor got "
                f"torch.{x.dtype.class_name}Tensor)"
            )
        if tuple(x.shape) != tuple(like.shape):
            raise RuntimeError(
                f"hook '{name}' has changed the size of value (was {list(like.shape)}, got {list(x.shape)})"
            )
        return self.given(x)

    def tensor_hooks(self, marks: Marks, g: Any) -> Any:
        for hook in list(marks.hooks.values()):
            with grad_mode(self.create):
                answer = hook(self.shown(g))
            if answer is not None:
                g = self.taken(answer, g, hook)
        if marks.retained is not None and (x := marks.retained()) is not None:
            accumulate(x, self.shown(g), self.create, retained=True)
        return g

    def node_hooks(self, hooks: dict[int, Any], g: Any, given: tuple[Any, ...] | None = None) -> Any:
        """Hooks of a node: of `(grads,)` before it is pulled back, of `(pulled, grads)` afterwards."""
        several = g.__class__ in (list, tuple)
        for hook in list(hooks.values()):
            shown = tuple([None if c is None else self.shown(c) for c in (g if several else (g,))])
            with grad_mode(self.create):
                answer = hook(shown) if given is None else hook(shown, given)
            if answer is not None:
                found = (answer,) if isinstance(answer, Tensor) else answer
                if not isinstance(found, tuple):
                    raise TypeError(f"expected tuple, but hook returned '{type(answer).__name__}'")
                old = g if several else (g,)
                if len(found) != len(old):
                    raise RuntimeError(
                        f"hook '{getattr(hook, '__name__', '<unknown>')}' has returned an incorrect number of values "
                        f"(got {len(found)}, but expected {len(old)})"
                    )
                if any([c is None and a is not None for a, c in zip(found, old, strict=True)]):
                    raise RuntimeError("can't replace a None gradient with a non-None value")
                new = [None if a is None else self.taken(a, c, hook) for a, c in zip(found, old, strict=True)]
                g = type(g)(new) if several else new[0]
        return g

    def given(self, x: Any) -> Any:
        """A tensor as a cotangent."""
        g = x._array if self.create else values(x)
        return self.of_array(g).conj(g) if x._dtype.kind == "c" else g

    # --- the walk ---

    def alone(self, node: Any, g: Any) -> list[Any]:
        """The cotangents of a function's operands, from those of its results, which no hook sees."""
        parents, marks, self.at = graph.operands_of(node), marks_of(node), node
        with INNER.quiet(), grad_mode(self.create):
            if marks.start is not None:  # of several primitives
                self.quiet = True
                answers: dict[Node, Any] = {}
                wanted = set(parents)
                nodes = toposort([node], keep=True)
                self._walk(nodes, {node: g}, wanted, leading_to(wanted, nodes), answers, set(), False)
                return [answers.get(parent) for parent in parents]
            saved = node.saved
            if saved is None:
                raise RuntimeError(FREED)
            if not graph.writes_allowed[0]:
                if marks.overwritten:
                    raise graph.result_error(node)
                if saved.__class__ is tuple:
                    graph.check_saved(node, saved)
            if saved.__class__ is Packed:
                saved = saved.unpacked()
            below, above = self.on(node.vjp.source)
            if above is not None:
                saved = above.revived(node, parents, saved, saved)
            pulled = node.vjp.pull(below, g, saved)
            return [None if c is None else self._fitted(c, p) for c, p in zip(pulled, parents, strict=False)]

    def run(self, cotangents: dict[Node, Any], wanted: set[Node] | None, accumulating: bool) -> dict[Node, Any]:
        """Pull cotangents back: to the wanted nodes, whose cotangents are the answer, or to all leaves."""
        nodes = toposort(list(cotangents), keep=True)
        if graph.some_outgrown[0]:
            graph.refuse_outgrown(nodes, wanted)
        needed = None if wanted is None else leading_to(wanted, nodes)
        if graph.leaves_are_watched[0]:
            nodes = graph.with_leaves_early(nodes)
        answers: dict[Node, Any] = {}
        owned: set[Node] = set()
        self._roots, self._wanted, self.partial = list(cotangents), wanted, wanted is not None
        before, around, hooks = in_backward.get(), modes.passes, state.saved_hooks.mark()
        try:
            in_backward.set(True)
            modes.passes = (*around, self)
            with INNER.quiet(), grad_mode(self.create):
                self._walk(nodes, cotangents, wanted, needed, answers, owned, accumulating)
                while self.callbacks:
                    self.callbacks.pop(0)()
        except Exception:
            if state.anomaly[0] and self.at is not None:
                anomaly.report(self.at)
            raise
        finally:
            modes.passes = around
            in_backward.set(before)
            state.saved_hooks.back_to(hooks)  # a hook that unpacks may have entered a block
            for callback in self.callbacks:  # an error came: what they would have freed is freed
                callback()
        return answers

    def _walk(
        self,
        nodes: list[Node],
        cotangents: dict[Node, Any],
        wanted: set[Node] | None,
        needed: set[Node] | None,
        answers: dict[Node, Any],
        owned: set[Node],
        accumulating: bool,
    ) -> None:
        level = LEVEL
        below, above, keep = self.below, self.above, self.keep
        add, add_into = below.add, below.add_into
        take, held, next_node = cotangents.pop, cotangents.get, nodes.pop
        frees = _frees.get
        stale = graph.any_overwritten()
        checks_nan = state.anomaly == (True, True) and not self.batched
        while nodes:
            node = self.at = next_node()
            g = take(node, None)
            if g is None or (needed is not None and node not in needed):
                continue
            kind = node.__class__
            marks: Any = None
            if kind is not Node:
                if kind is not Joint:
                    marks = getattr(node, "marks", None)
                    if marks.__class__ is not Marks:
                        marks = None
                    else:
                        if marks.overwritten and not self.batched and not graph.writes_allowed[0]:
                            raise graph.result_error(node)
                        if marks.cast is not None and marks.cast != "any":
                            g = self.of_array(g).astype(g, dtype=marks.cast)
                        if (marks.hooks or marks.retained is not None) and not self.quiet and g.__class__ is not list:
                            g = self.tensor_hooks(marks, g)
                if wanted is not None and node in wanted:
                    answers[node] = g
                    if not accumulating and needed.isdisjoint(node.edges()):  # type: ignore[union-attr]
                        continue
                if marks is not None and marks.pre and not self.quiet:
                    g = self.node_hooks(marks.pre, g)
                if kind is Accumulate:
                    self.leaf(node, marks, g)
                    continue
                if kind is graph.Outgrown:  # of a leaf that nobody has any more
                    continue
                if node.result is not None:
                    first: Any = node.first
                    slots = cotangents.setdefault(first, [None] * len(first.shape))
                    known = slots[node.result]
                    slots[node.result] = g if known is None else self.of_array(g).add(known, g)
                    continue
            elif wanted is not None and node in wanted:
                answers[node] = g
                if not accumulating and needed.isdisjoint(node.edges()):  # type: ignore[union-attr]
                    continue
            saved = node.saved
            vjp = node.vjp
            if vjp.source is not level:  # of another device than the last one
                level = vjp.source
                below, above = self.on(level)
                add, add_into = below.add, below.add_into
            if saved is None:
                raise RuntimeError(FREED)
            form = saved.__class__
            if stale and (form is tuple or form is Unchecked) and not graph.writes_allowed[0]:
                graph.check_saved(node, saved)
            if saved and not keep and (form is tuple or form is Packed or form is Unchecked):
                freed = frees(vjp)
                if freed is None:
                    freed = _saves_values(vjp)
                if form is Unchecked or freed is True or (freed is not False and saved[freed]):
                    node.saved = None
            parents = (
                node.edges()
                if kind is not Node
                else (node.first,)
                if node.second is None
                else (node.first, node.second)
            )
            if form is Packed:
                saved = saved.unpacked()
            if above is not None and kind is not Called:
                saved = above.revived(node, parents, saved, saved)  # type: ignore[arg-type]
            if vjp.accumulate is not None and marks is None:
                parent: Any = parents[0]
                sink = take(parent, None)
                on = below if sink is None or parent in owned else Sparing(below, sink)
                if sink is None:
                    sink = below.full(shape=tuple(parent.shape), value=0, dtype=below.dtype_of(g))
                cotangents[parent] = vjp.accumulate(on, sink, g, saved)
                owned.add(parent)
                continue
            pulled = vjp.pull(below, g, saved) if kind is not Called else self._called(node, g)
            if above is not None and not self.batched and kind is not Called:
                pulled = graph.with_history(node, pulled, parents, below)
            if checks_nan:
                anomaly.check_nan(node, pulled)
            if marks is not None and marks.post and not self.quiet:
                given = tuple([None if c is None else self.shown(c) for c in (g if g.__class__ is list else (g,))])
                fitted = [None if c is None else self._fitted(c, p) for c, p in zip(pulled, parents, strict=False)]
                whole = tuple(graph.with_constants(node, fitted, None))
                found = self.node_hooks(marks.post, whole, given)
                pulled = found[-1:] if len(whole) > len(fitted) and whole[-1] is fitted[0] else found[: len(fitted)]
            i = 0
            for parent in parents:
                c = pulled[i]
                i += 1
                if c is None:
                    continue
                if kind is Called:  # of which arguments may be on several devices
                    below = self.of_array(c)
                    add, add_into = below.add, below.add_into
                if c.shape != parent.shape:
                    c = self._fitted(c, parent)
                known = held(parent)
                if known is None:
                    cotangents[parent] = c
                elif parent in owned:
                    cotangents[parent] = add_into(known, c)
                else:
                    cotangents[parent] = add(known, c)
                    owned.add(parent)

    def _called(self, node: Any, g: Any) -> Any:
        """What a user's Function pulls back."""
        found = node.vjp.pulled(self, node, g)
        if not self.keep:
            node.saved.maybe_clear_saved_tensors()
        return found

    def _fitted(self, c: Any, parent: Any) -> Any:
        if c.shape == parent.shape:
            return c
        shape, given = tuple(parent.shape), tuple(c.shape)
        pairs = zip(shape[::-1], given[::-1], strict=False)  # sizes of Dask's may be nan, which are not known
        if len(given) < len(shape) or any([n not in (1, m) and n == n and m == m for n, m in pairs]):
            raise RuntimeError(
                f"Function {graph.shown_name(self.at)} returned an invalid gradient - got {list(given)} but expected "
                f"shape compatible with {list(shape)}: the tensor was given another shape through .data or set_()"
            )
        return unbroadcast(self.of_array(c), c, shape)

    def leaf(self, node: Any, marks: Any, g: Any) -> None:
        x = node.tensor and node.tensor()
        if x is None:
            return
        shown = self.shown(_in_order(g))
        accumulate(x, shown, self.create)
        post_hooks(x)
        if marks is not None and marks.post:
            for hook in list(marks.post.values()):
                hook((), (shown,))


def _in_order(g: Any) -> Any:
    """A cotangent with its elements in memory one after the other, as `.grad.view(-1)` needs them."""
    value = g.value if g.__class__ is Var else g
    if value.__class__ is not np.ndarray or value.flags.c_contiguous:
        return g
    value = np.ascontiguousarray(value)
    return var_of(value, g.node) if g.__class__ is Var else value


def post_hooks(x: Tensor) -> None:
    """The hooks that run when a leaf has its gradient."""
    if x._rare is not None and x._rare.post:
        for hook in list(x._rare.post.values()):
            if hook(x) is not None:
                raise RuntimeError("Tensor post accumulate grad hooks should return None.")


_adding = lock()


def accumulate(x: Tensor, g: Tensor, create: bool, *, retained: bool = False) -> None:
    """Add to `.grad`: into the tensor that is there, or if the gradient is recorded as another one."""
    if not create and not retained:
        with _adding:  # another thread may add to the same leaf
            rare = rare_of(x)
            if (old := rare.grad) is None:
                rare.grad = g
            else:
                with grad_mode(False):
                    store(old, var_of(leaf_of(values(old)).add(values(old), values(g)), None), next_number())
        return
    rare = rare_of(x)
    old = rare.grad
    if old is None:
        if create and g._array.node is not None and not retained:
            array = level_of(g).reshape(g._array, shape=tuple(g.shape))
            array.node.marks = "CopyBackwards"
            g = of(var_of(copied(array.value), array.node))
        rare.grad = g
    else:
        with grad_mode(create):
            rare.grad = old + g
