"""The backward pass as PyTorch's users know it: over adjoint's nodes and rules, with `.grad`, hooks and its errors.

It differs from `Autodiff.backward` in bookkeeping alone: the graph stays, and only what was saved is freed; leaves
gather gradients; hooks may replace what passes; a value that was overwritten after it was saved is an error.
"""

from __future__ import annotations

import math
import threading
import warnings
from typing import Any, NamedTuple

import numpy as np

from adjoint.backend import in_backward, over_leaf
from adjoint.decorators.batched import Batch, Batched
from adjoint.graph.nodes import Joint, Node, Var, leading_to, toposort, var_of
from adjoint.graph.vjp import VJP, BackwardOn, Sparing
from adjoint.locks import lock
from adjoint.primitives import TABLE
from adjoint.rules.shape import unbroadcast
from adjoint.torch import anomaly, devices, dtypes, graph, state
from adjoint.torch.devices import where_of
from adjoint.torch.dtypes import Size
from adjoint.torch.graph import FREED, Called, Marks, marks_of
from adjoint.torch.lifted import gradients, in_transform, primal_of
from adjoint.torch.memory import store
from adjoint.torch.saving import Packed
from adjoint.torch.state import grad_mode, modes
from adjoint.torch.tensor import (
    INNER,
    LEVEL,
    Accumulate,
    Tensor,
    beside,
    copied,
    is_lifted,
    leaf_of,
    level_of,
    next_number,
    of,
    rare_of,
    values,
    where_is,
)
from adjoint.user_primitives import DECLARED

_frees: dict[VJP, bool] = {}  # whether a node of this kind has saved values, and not only shapes


def _saves_values(vjp: VJP) -> bool:
    if vjp.primitive.name not in TABLE:  # a function of the user's, of which all operands are kept, and made anew
        return True
    names = [name.lstrip("*") for name in vjp.primitive.operands]
    found = any([need in (*names, "out", "outs") for need in vjp.needs])
    if vjp.primitive.name not in DECLARED:  # one of a user's goes with its last reference
        _frees[vjp] = found
    return found


class _Passes(threading.local):
    def __init__(self) -> None:
        self.running: list[Pass] = []


_passes = _Passes()


def running() -> Any:
    """The backward pass that runs in this thread, the innermost, or None."""
    return _passes.running[-1] if _passes.running else None


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
        if tuple(x.shape) != tuple(like.shape):
            raise RuntimeError(
                f"hook '{name}' has changed the size of value (was {list(like.shape)}, got {list(x.shape)})"
            )
        below = self.of_array(like)
        if x._dtype is not below.dtype_of(like):
            raise RuntimeError(
                f"hook '{name}' has changed the type of value (was "
                f"torch.{dtypes.of_numpy(below.dtype_of(like)).class_name}Tensor got "
                f"torch.{x.dtype.class_name}Tensor)"
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
        parents, marks = graph.operands_of(node), marks_of(node)
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
        needed = None if wanted is None else leading_to(wanted, nodes)
        if graph.leaves_are_watched[0]:
            nodes = graph.with_leaves_early(nodes)
        answers: dict[Node, Any] = {}
        owned: set[Node] = set()
        self._roots, self._wanted, self.partial = list(cotangents), wanted, wanted is not None
        before, depth, hooks = in_backward.get(), len(_passes.running), state.saved_hooks.mark()
        try:
            in_backward.set(True)
            _passes.running.append(self)
            with INNER.quiet(), grad_mode(self.create):
                self._walk(nodes, cotangents, wanted, needed, answers, owned, accumulating)
                while self.callbacks:
                    self.callbacks.pop(0)()
        except Exception:
            if state.anomaly[0] and self.at is not None:
                anomaly.report(self.at)
            raise
        finally:
            del _passes.running[depth:]
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
            if form is tuple and stale and not graph.writes_allowed[0]:
                graph.check_saved(node, saved)
            if saved and not keep and (form is tuple or form is Packed):
                if frees(vjp) if frees(vjp) is not None else _saves_values(vjp):
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
                    c = unbroadcast(below, c, tuple(parent.shape))
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
        return c if c.shape == parent.shape else unbroadcast(self.of_array(c), c, tuple(parent.shape))

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


# --- the arguments ------------------------------------------------------------------------------------


class GradientEdge(NamedTuple):
    """A node, and which of its results is meant."""

    node: Any
    output_nr: int = 0
    ownership_token: Any = None


def _several(x: Any) -> tuple[Any, ...]:
    if isinstance(x, (dict, int, float, str)):
        raise TypeError(f"expected Tensors or GradientEdges, but got {type(x).__name__}")
    return (x,) if x is None or isinstance(x, (Tensor, GradientEdge)) else tuple(x)


def _roots(outputs: Any, grads: Any, walk: Pass) -> tuple[dict[Node, Any], int]:
    """The cotangents to start with, and how many there are of each in a batch."""
    given = (None,) * len(outputs) if grads is None else _several(grads)
    if len(given) != len(outputs):
        raise RuntimeError(f"got {len(outputs)} tensors and {len(given)} gradients")
    roots: dict[Node, Any] = {}
    size = 0
    if walk.batched:
        _check_batch(given)
    for i, (out, g) in enumerate(zip(outputs, given, strict=True)):
        array = _array_of(out)
        if array.node is None:
            raise RuntimeError(f"element {i} of tensors does not require grad and does not have a grad_fn")
        leaf = leaf_of(array.value)
        dtype = leaf.dtype_of(array.value)
        start = _implicit(array, dtype) if g is None else _explicit(array, dtype, out, g, i, walk)
        if walk.batched:
            size = start.shape[0]
            start = Batch(start, True)
        if dtype.kind == "c":
            start = walk.of_array(start).conj(start)
        elif walk.create and g is None:
            start = var_of(start, None)
        known = roots.get(array.node)
        roots[array.node] = start if known is None else walk.of_array(start).add(known, start)
    return roots, size


def _check_batch(given: Any) -> None:
    """Raise the errors of `vmap` for gradients that are no batch, or batches of several sizes."""
    sizes = set()
    for g in given:
        if isinstance(g, Tensor):
            if not g.ndim or not g.shape[0]:
                raise IndexError("is_grads_batched=True: each grad_output needs a first axis of at least one gradient")
            sizes.add(g.shape[0])
    if len(sizes) > 1:
        raise ValueError(f"is_grads_batched=True: expected batches of one size, got sizes {sorted(sizes)}")


def _array_of(out: Any) -> Any:
    if isinstance(out, GradientEdge):
        node = out.node._node
        level = node.level if isinstance(node, Accumulate) else node.vjp.level
        return var_of(level.leaf.full(shape=tuple(node.shape), value=0, dtype=np.dtype("float32")), node)
    if not isinstance(out, Tensor):
        raise TypeError(f"expected Tensor, but got {type(out).__name__}")
    return primal_of(out) if is_lifted(out) else out._array


def _implicit(array: Var, dtype: Any) -> Any:
    if math.prod(array.shape) != 1:
        raise RuntimeError("grad can be implicitly created only for scalar outputs")
    if dtype.kind != "f":
        raise RuntimeError(
            f"grad can be implicitly created only for real scalar outputs but got {dtypes.of_numpy(dtype)}"
        )
    if array.value.__class__ is np.ndarray:
        return np.ones(array.shape, dtype)
    return leaf_of(array.value).full(shape=tuple(array.shape), value=1, dtype=dtype)


def _shape_of_output(out: Any) -> Any:
    return Size(out.node._node.shape) if isinstance(out, GradientEdge) else out.shape


def _explicit(array: Var, dtype: Any, out: Any, g: Any, i: int, walk: Pass) -> Any:
    if not isinstance(g, Tensor):
        raise TypeError(f"gradients can be either Tensors or None, but got {type(g).__name__}")
    shape = tuple(g.shape)[1:] if walk.batched else tuple(g.shape)
    if shape != tuple(array.shape):
        if not walk.batched:
            raise RuntimeError(
                f"Mismatch in shape: grad_output[{i}] has a shape of {g.shape} and output[{i}] has a shape of "
                f"{_shape_of_output(out)}."
            )
        raise RuntimeError(
            "If `is_grads_batched=True`, we interpret the first dimension of each grad_output as the batch dimension. "
            "The sizes of the remaining dimensions are expected to match the shape of corresponding output, but a "
            f"mismatch was detected: grad_output[{i}] has a shape of {Size(shape)} and output[{i}] has a shape of "
            f"{_shape_of_output(out)}. If you only want some tensors in `grad_output` to be considered batched, "
            "consider using vmap."
        )
    if (g._dtype.kind == "c") != (dtype.kind == "c"):
        raise RuntimeError(
            "For complex Tensors, both grad_output and output are required to have the same dtype. Mismatch in dtype: "
            f"grad_output[{i}] has a dtype of {g.dtype} and output[{i}] has a dtype of {dtypes.of_numpy(dtype)}."
        )
    where = where_of(array.value)
    if where_is(g) is not where:
        raise devices.different(where, where_is(g))
    start = g._array if walk.create else g._array.value
    return start if g._dtype is dtype else (level_of(g) if walk.create else leaf_of(start)).astype(start, dtype=dtype)


def _node_of(x: Any) -> Any:
    node = x.node._node if isinstance(x, GradientEdge) else _array_of(x).node
    if node is None:
        raise RuntimeError("One of the differentiated Tensors does not require grad")
    return node


def _run(
    outputs: Any, grads: Any, keep: bool, create: bool, wanted: Any, accumulating: bool, batched: bool = False
) -> Any:
    walk = Pass(keep, create, batched)
    roots, size = _roots(outputs, grads, walk)
    return walk, walk.run(roots, wanted, accumulating), size


def backward(
    tensors: Any,
    grad_tensors: Any = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    grad_variables: Any = None,
    inputs: Any = None,
) -> None:
    """Add the gradients of tensors to `.grad` of the leaves that they were computed from, or of `inputs`.

    >>> import adjoint.torch as torch
    >>> x = torch.tensor([1.0, 2.0], requires_grad=True)
    >>> torch.autograd.backward([(x * x).sum(), x.sum()])
    >>> x.grad
    tensor([3., 5.])
    """
    outputs = _several(tensors)
    if modes.transforms:
        raise RuntimeError(
            "backward() called inside a functorch transform. This is not supported, please use torch.func.grad or "
            "torch.func.vjp instead or call backward() outside of functorch transforms."
        )
    if inputs is not None:
        inputs = tuple(inputs.values()) if isinstance(inputs, dict) else _several(inputs)
        if not inputs:
            raise RuntimeError("`inputs` argument to `backward()` cannot be empty.")
    if create_graph:
        warnings.warn(
            "Using backward() with create_graph=True will create a reference cycle between the parameter and its "
            "gradient which can cause a memory leak. We recommend using autograd.grad when creating the graph to avoid "
            "this. If you have to use this function, make sure to reset the .grad fields of your parameters to None "
            "after use to break the cycle and avoid the leak.",
            UserWarning,
            stacklevel=3,
        )
    keep = create_graph if retain_graph is None else bool(retain_graph)
    grads = grad_tensors if grad_variables is None else grad_variables
    if inputs is None:
        _run(outputs, grads, keep, create_graph, None, True)
        return
    nodes = {_node_of(x) for x in inputs}
    for x in inputs:
        if isinstance(x, Tensor):
            x.retain_grad()  # which is nothing of leaves
    _run(outputs, grads, keep, create_graph, nodes, True)


def called(node: Any, grads: tuple[Any, ...]) -> Any:
    """The gradients of a node's operands for those of its results, which no hook sees; a leaf takes its own."""
    several = bool(node.shape) and not isinstance(node.shape[0], int)
    count = len(node.shape) if several else 1
    if len(grads) != count:
        raise TypeError(f"expected {count} arguments, got {len(grads)} instead: one for each result")
    for g in grads:
        if g is not None and not isinstance(g, Tensor):
            raise TypeError(f"expected Tensor or None, but got {type(g).__name__}")
    for g, shape in zip(grads, node.shape if several else (node.shape,), strict=True):
        if g is not None and shape is not None and tuple(g.shape) != tuple(shape):
            raise RuntimeError(f"expected a gradient of shape {list(shape)}, received {list(g.shape)}")
    if all([g is None for g in grads]):
        nothing = graph.with_constants(node, [None for _ in graph.operands_of(node)], None)
        return nothing[0] if len(nothing) == 1 else tuple(nothing)
    walk = Pass(True, modes.enabled)
    if node.__class__ is Accumulate:
        walk.leaf(node, None, walk.given(grads[0]))
        return ()
    found = walk.alone(node, [None if g is None else walk.given(g) for g in grads] if several else walk.given(grads[0]))
    shown = [None if c is None else walk.shown(c) for c in found]
    shown = graph.with_constants(node, shown, None)
    return shown[0] if len(shown) == 1 else tuple(shown)


def grad(
    outputs: Any,
    inputs: Any,
    grad_outputs: Any = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    only_inputs: bool = True,
    allow_unused: bool | None = None,
    is_grads_batched: bool = False,
    materialize_grads: bool = False,
) -> Any:
    """The gradients of outputs with respect to inputs, without adding to `.grad`: a tuple, or of a dict a dict.

    >>> import adjoint.torch as torch
    >>> x = torch.tensor(3.0, requires_grad=True)
    >>> (slope,) = torch.autograd.grad(x**3, x, create_graph=True)
    >>> torch.autograd.grad(slope, x)
    (tensor(18.),)
    """
    if materialize_grads and allow_unused is False:
        raise ValueError(
            "Expected allow_unused to be True or not passed when materialize_grads=True, but got: allow_unused=False."
        )
    if not only_inputs:
        warnings.warn(
            "only_inputs argument is deprecated and is ignored now (defaults to True).", FutureWarning, stacklevel=2
        )
    if isinstance(inputs, dict):
        each = grad(
            outputs, tuple(inputs.values()), grad_outputs, retain_graph, create_graph, only_inputs, allow_unused,
            is_grads_batched, materialize_grads,
        )  # fmt: skip
        return dict(zip(inputs, each, strict=True))
    outs, ins = _several(outputs), _several(inputs)
    if not ins:
        raise RuntimeError("`inputs` argument to `grad()` cannot be empty.")
    keep = create_graph if retain_graph is None else bool(retain_graph)
    if not is_grads_batched and any([in_transform(x) for x in outs if isinstance(x, Tensor)]):
        given = [None] * len(outs) if grad_outputs is None else _several(grad_outputs)
        return tuple(
            [
                _unused(x, i, create_graph, allow_unused, materialize_grads) if g is None else g
                for i, (x, g) in enumerate(zip(ins, gradients(outs, ins, given, create_graph), strict=True))
            ]
        )
    nodes = [_node_of(x) for x in ins]
    walk, answers, size = _run(outs, grad_outputs, keep, create_graph, set(nodes), False, is_grads_batched)
    found: list[Any] = []
    for i, (x, node) in enumerate(zip(ins, nodes, strict=True)):
        g = answers.get(node)
        if g is None:
            found.append(_unused(x, i, create_graph, allow_unused, materialize_grads))
        elif is_grads_batched:
            found.append(_of_batch(walk, g, size))
        else:
            found.append(walk.shown(g))
    return tuple(found)


def _unused(x: Any, i: int, create: bool, allowed: bool | None, materialize: bool) -> Any:
    """The gradient by what the outputs do not depend on."""
    if not (allowed or materialize):
        raise RuntimeError(
            f"The differentiated Tensor at index {i} appears to not have been used in the graph. Set "
            "allow_unused=True if this is the desired behavior."
        )
    if materialize and isinstance(x, GradientEdge):
        raise RuntimeError("materialize_grads cannot be used when the given input is a GradientEdge")
    zeros = beside(x, np.zeros(x.shape, x._dtype)) if materialize else None
    return zeros.requires_grad_() if zeros is not None and create and not in_transform(x) else zeros


def _of_batch(walk: Pass, g: Any, size: int) -> Tensor:
    """All gradients of a batch along a first axis; the same one for all is repeated."""
    below = walk.of_array(g)
    B = below.inner
    if below.dtype_of(g).kind == "c":
        g = below.conj(g)
    value = g.value
    if not g.batched:
        value = B.broadcast_to(B.expand_dims(value, axis=(0,)), shape=(size, *value.shape))
    return of(value if walk.create else var_of(value, None))
