"""`torch.autograd.Function`: functions whose derivatives users write.

One node stands for a call. What the pullback reads is its *ctx*, which users know as `ctx` and as `y.grad_fn`. The node
holds the ctx, and the ctx what makes the node again, so there is no cycle.
"""

from __future__ import annotations

import functools
import inspect
import math
import warnings
import weakref
from typing import Any

import numpy as np

from adjoint import tree as trees
from adjoint.graph.nodes import Result, var_of
from adjoint.torch import anomaly, dtypes, graph, state
from adjoint.torch.grad_fn import GradFn, grad_fn
from adjoint.torch.graph import FREED, OVERWRITTEN, Called, Marks
from adjoint.torch.kinds import ALIAS
from adjoint.torch.memory import base_of, detached, is_view, node_of_base, view_of
from adjoint.torch.refusals import InFunction
from adjoint.torch.saving import SavedByFunction, pack, unpack
from adjoint.torch.state import grad_mode, modes
from adjoint.torch.tensor import (
    LEVEL,
    Tensor,
    copied,
    give_array,
    is_lifted,
    leaf_of,
    level_of,
    next_number,
    of,
    placed,
    rare_of,
    values,
    where_is,
)
from adjoint.torch.writes import store

_NO_BACKWARD = (
    "You must implement either the backward or vjp method for your custom autograd.Function to use it with backward "
    "mode AD."
)
_LEGACY = (
    "Legacy autograd function with non-static forward method is deprecated. Please use new-style autograd function "
    "with static forward method. (Example: https://pytorch.org/docs/stable/autograd.html#torch.autograd.Function)"
)
_SEVERAL_OF_VIEW = (
    "If your Function modifies inplace an input that is a view of another Tensor, your Function cannot return more "
    "than one Tensor. This is not supported by the current autograd engine. You should either make sure the input is "
    "not a view (using .clone() for example) or make your Function only return one Tensor (potentially splitting it "
    "into two Functions: one doing the inplace that returns a single Tensor and a second one that does the other "
    "operations)."
)
_TWICE = "trying to differentiate twice a function that was marked with @once_differentiable"


class FunctionCtx:
    """What `forward` tells `backward`."""

    clear_saved_tensors_on_access: bool = False
    materialize_grads: bool = True
    _materialize_non_diff_grads: bool = True
    needs_input_grad: tuple[bool, ...] = ()
    to_save: Any = ()
    saved_for_forward: Any = ()
    dirty_tensors: Any = ()
    non_differentiable: Any = ()

    def save_for_backward(self, *tensors: Any) -> None:
        """Keep tensors for `backward`, which finds them as `ctx.saved_tensors`."""
        self.to_save = tensors

    def save_for_forward(self, *tensors: Any) -> None:
        """Keep tensors for `jvp`."""
        self.saved_for_forward = tensors

    def mark_dirty(self, *tensors: Any) -> None:
        """Say which inputs were written to; they are to be returned."""
        self.dirty_tensors = tensors

    def mark_non_differentiable(self, *tensors: Any) -> None:
        """Say which results have no gradient."""
        self.non_differentiable = tensors

    def set_materialize_grads(self, value: bool) -> None:
        """Whether `backward` is given zeros for what got no gradient, or None."""
        self.materialize_grads = value


class BackwardCFunction(FunctionCtx, GradFn):
    """The ctx of a call, and the node of its results as users see it."""

    _forward_cls: Any
    _known: Any = None  # the node, weakly
    _parts: Any = None  # what makes it again
    _saved: Any = None  # what was saved, once the call is over
    _inputs: Any = ()  # of each argument: None, or shape, dtype, and whether it is tracked
    _outputs: Any = ()  # of each result: None, or shape, dtype and where it is
    _results: Any = ()  # the nodes of results, weakly

    def __init__(self) -> None:
        pass

    @property
    def _node(self) -> Any:
        node = self._known and self._known()
        if node is None and self._parts is not None:
            node = Called()
            for name, part in zip(_PARTS, self._parts, strict=True):
                setattr(node, name, part)
            where = next((made[2] for made in self._outputs if made is not None), None)
            node.saved, node.vjp, node.visit = self, _pull_on(LEVEL if where is None else where.level), 0
            self._known = weakref.ref(node)
        return node

    @property
    def saved_tensors(self) -> tuple[Any, ...]:
        """The tensors that `save_for_backward` kept.

        Raises RuntimeError if a backward pass freed them, or they were written to since.
        """
        if self._saved is None:
            return tuple(self.to_save)
        if self._saved == "freed":
            raise RuntimeError(FREED)
        if self._saved == "seen":
            raise RuntimeError(
                "saved_tensors can only be accessed once when clear_saved_tensors_on_access=True is set on the Function"
            )
        found = tuple([None if entry is None else self._restored(*entry) for entry in self._saved])
        if self._saved and getattr(self._forward_cls, "clear_saved_tensors_on_access", False):
            self._saved = "seen"
        return found

    @property
    def _raw_saved_tensors(self) -> tuple[Any, ...]:
        if self._saved in ("freed", "seen"):
            raise RuntimeError(FREED)
        return tuple([SavedByFunction(self, place) for place in range(len(self._saved or ()))])

    def _restored(self, kept: Any, version: Any, output: Any) -> Any:
        if version == "packed":
            value, node = unpack(kept), self._result(output)
            return value if output is None else of(var_of(values(value), node))
        if output is None:
            if not kept.is_inference() and kept._version != version and not graph.writes_allowed[0]:
                kind = kept.dtype.class_name
                what = (
                    f"[torch.{kind}Tensor {list(kept.shape)}] is at version {kept._version}; expected version "
                    f"{version} instead, because it"
                )
                raise RuntimeError(OVERWRITTEN.format(what=what))
            return kept
        if graph.is_overwritten(kept, version) and not graph.writes_allowed[0]:
            raise graph.overwritten_error(self._node, kept)
        return of(var_of(kept, self._result(output)))

    def _result(self, output: Any) -> Any:
        if output is None or self._parts is None:
            return None
        node = self._node
        if len(self._outputs) == 1:
            return node
        known = self._results[output]()
        return known if known is not None else _result_of(node, output)

    def use_saved_for_forward(self) -> None:
        """From now on `saved_tensors` are those of `save_for_forward`, if there are any."""
        if self.saved_for_forward:
            self._saved, self.to_save = None, self.saved_for_forward

    @property
    def saved_variables(self) -> tuple[Any, ...]:
        """The old name of `saved_tensors`."""
        warnings.warn("'saved_variables' is deprecated; use 'saved_tensors'", DeprecationWarning, stacklevel=2)
        return self.saved_tensors

    def maybe_clear_saved_tensors(self) -> None:
        """Free what was saved."""
        if self._saved:
            self._saved = "freed"

    def name(self) -> str:
        return type(self).__name__

    def apply(self, *grads: Any) -> Any:
        """What the user's rule gives for gradients of the results."""
        return _rule_of(self._forward_cls)(self, *grads)

    __call__ = apply

    @property
    def next_functions(self) -> tuple[tuple[Any, int], ...]:
        """The nodes of the tensors among the arguments, each with which of its results is meant."""
        parents = iter(self._node.edges())
        out: list[tuple[Any, int]] = []
        for given in self._inputs:
            if given is not None:
                parent = next(parents) if given[2] else None
                out.append((None, 0) if parent is None else (grad_fn(parent), parent.result or 0))
        return tuple(out)

    def __eq__(self, other: Any) -> bool:
        return self is other

    def __hash__(self) -> int:
        return id(self)


_PARTS = ("number", "first", "second", "shape", "marks")


class _Meta(type):
    """Gives each Function the class of its ctx, which has its name."""

    _backward_cls: Any

    def __init__(cls, name: str, bases: Any, namespace: Any) -> None:
        super().__init__(name, bases, namespace)
        cls._backward_cls = type(f"{name}Backward", (BackwardCFunction,), {"_forward_cls": cls})


FunctionMeta = _Meta


class Function(FunctionCtx, metaclass=_Meta):
    """A function with a derivative of the user's: a subclass has `forward` and `backward`, and is called by `apply`.

    `forward(ctx, *args)`, or `forward(*args)` beside `setup_context(ctx, inputs, output)`, runs unrecorded.
    `backward(ctx, *grads)` gives a gradient for each argument, None for what has none.

    >>> import adjoint.torch as torch
    >>> class Cube(torch.autograd.Function):
    ...     @staticmethod
    ...     def forward(ctx, x):
    ...         ctx.save_for_backward(x)
    ...         return x**3
    ...     @staticmethod
    ...     def backward(ctx, g):
    ...         (x,) = ctx.saved_tensors
    ...         return 3 * x**2 * g
    >>> x = torch.tensor(2.0, requires_grad=True)
    >>> torch.autograd.grad(Cube.apply(x), x)
    (tensor(12.),)
    """

    generate_vmap_rule = False

    def __init__(self, *args: Any, **options: Any) -> None:
        warnings.warn(
            f"{type(self)} should not be instantiated. Methods on autograd functions are all static, so you should "
            "invoke them on the class itself. Instantiating an autograd function will raise an error in a future "
            "version of PyTorch.",
            DeprecationWarning,
            stacklevel=2,
        )

    def __call__(self, *args: Any, **options: Any) -> Any:
        raise RuntimeError(_LEGACY)

    @staticmethod
    def forward(*args: Any, **options: Any) -> Any:
        """The value: to be written by users."""
        raise NotImplementedError("You must implement the forward function for custom autograd.Function.")

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> Any:
        """What is kept for `backward`, where `forward` has no ctx."""
        raise NotImplementedError("setup_context is not implemented.")

    @staticmethod
    def backward(ctx: Any, *grad_outputs: Any) -> Any:
        """The gradients of the arguments: to be written by users."""
        raise NotImplementedError(_NO_BACKWARD)

    vjp = backward

    @staticmethod
    def jvp(ctx: Any, *grad_inputs: Any) -> Any:
        """The tangents of the results: to be written by users of forward mode."""
        raise NotImplementedError(
            "You must implement the jvp function for custom autograd.Function to use it with forward mode AD."
        )

    @staticmethod
    def vmap(info: Any, in_dims: Any, *args: Any) -> Any:
        """The function on a batch: to be written by users of vmap."""
        raise NotImplementedError(
            "To use autograd.Function with vmap, you must either override the vmap static method or set "
            "generate_vmap_rule=True."
        )

    @classmethod
    def apply(cls, *args: Any, **options: Any) -> Any:
        """Call the function."""
        if _ForLevels.has_setup(cls):  # which is given the defaults, too
            bound = _signature(cls.forward).bind(*args, **options)
            bound.apply_defaults()
            args, options = bound.args, bound.kwargs
        parts = trees.leaves(args) if modes.transforms else args
        if any([isinstance(a, Tensor) and is_lifted(a) for a in parts]):
            from adjoint.torch.autograd.levels import applied

            return applied(_ForLevels, cls, args, options)
        return _called(cls, args, options)[0]


@functools.cache
def _signature(forward: Any) -> inspect.Signature:
    return inspect.signature(forward)


class _ForLevels:
    """What `levels.py` has to know of Functions."""

    @staticmethod
    def has_setup(function: Any) -> bool:
        return function.setup_context is not Function.setup_context

    @staticmethod
    def has_vmap(function: Any) -> bool:
        return function.vmap is not Function.vmap

    @staticmethod
    def new_ctx(function: Any) -> Any:
        return function._backward_cls()

    @staticmethod
    def rule_of(function: Any) -> Any:
        return _rule_of(function)

    @staticmethod
    def called(function: Any, args: tuple[Any, ...], options: dict[str, Any]) -> Any:
        return _called(function, args, options)


def _called(cls: Any, args: tuple[Any, ...], options: dict[str, Any]) -> tuple[Any, Any]:
    """The results of a Function, and its ctx."""
    ctx = cls._backward_cls()
    tensors = [a for a in args if isinstance(a, Tensor)]
    ctx.needs_input_grad = tuple([isinstance(a, Tensor) and a.requires_grad for a in args])
    tracking = modes.enabled and any(ctx.needs_input_grad)
    inputs: list[Any] = [a._array if isinstance(a, Tensor) and tracking else None for a in args]
    described = [(a._array.shape, a._dtype) if isinstance(a, Tensor) and tracking else None for a in args]
    start = next_number()
    with grad_mode(False):
        if _ForLevels.has_setup(cls):
            out = cls.forward(*args, **options)
            cls.setup_context(ctx, args, out)
        else:
            out = cls.forward(ctx, *args, **options)
    single = not isinstance(out, tuple)
    outputs = [out] if single else list(out)
    dirty = {id(t) for t in ctx.dirty_tensors or ()}
    if _ForLevels.has_setup(cls):
        _check_saved(ctx, tensors, outputs, dirty)
    if not dirty <= {id(o) for o in outputs}:
        raise RuntimeError(
            "Some elements marked as dirty during the forward method were not returned as output. The inputs that are "
            "modified inplace must all be outputs of the Function."
        )
    for o in outputs:
        if id(o) in dirty and not any([o is t for t in tensors]):
            if is_view(o):
                raise RuntimeError("ctx.mark_dirty() received a tensor that was not an input. Mark inputs alone.")
            warnings.warn("Only input Tensors should be given to ctx.mark_dirty().", UserWarning, stacklevel=3)
            dirty.discard(id(o))
    plain = {id(t) for t in ctx.non_differentiable or ()}
    ctx._outputs = [(tuple(o.shape), o._dtype, where_is(o)) if isinstance(o, Tensor) else None for o in outputs]
    ctx._inputs = [
        None if d is None else (*d, array.node is not None) for d, array in zip(described, inputs, strict=True)
    ]
    node = _recorded(ctx, inputs) if tracking else None
    results: list[Any] = []
    name = cls.__name__
    made_nodes: list[Any] = [node] * len(outputs)
    if node is not None and len(outputs) > 1:
        for i in reversed(range(len(outputs))):  # hooks of the first are called first
            made_nodes[i] = _result_of(node, i)
    for i, o in enumerate(outputs):
        if isinstance(o, Tensor):
            differentiable = node is not None and id(o) not in plain and o._dtype.kind in "fc"
            made = made_nodes[i] if differentiable else None
            results.append(made)
            outputs[i] = _finished(
                o, made, any([o is t for t in tensors]), id(o) in dirty, len(outputs), start, name, i
            )
        else:
            results.append(None)
    ctx._results = [_nothing if r is None else weakref.ref(r) for r in results]
    if node is not None:
        if state.anomaly[0]:
            anomaly.locate(node)
        to_save, ctx.to_save = ctx.to_save or (), ()  # a hook that raises leaves no cycle
        places = {id(o): i for i, o in enumerate(outputs) if results[i] is not None}
        ctx._saved = [_kept(i, t, node, places.get(id(t))) for i, t in enumerate(to_save)]
    ctx.dirty_tensors = ctx.non_differentiable = None
    return (outputs[0] if single else tuple(outputs)), ctx


def _check_saved(ctx: Any, tensors: list[Any], outputs: list[Any], dirty: set[int]) -> None:
    """Raise where `setup_context` saves an argument that is a result, too, as it is."""
    saved = [*(ctx.to_save or ()), *(ctx.saved_for_forward or ())]
    for o in outputs:
        if id(o) not in dirty and any([o is t for t in tensors]) and any([o is t for t in saved]):
            raise RuntimeError(
                "An input that has been returned as-is as output is being saved for backward. This is not supported if "
                "you override setup_context. You should return and save a view of the input instead, e.g. with "
                "x.view_as(x) or setup ctx inside the forward function itself."
            )


def _nothing() -> None:
    return None


def _recorded(ctx: Any, inputs: Any) -> Any:
    """The node of a call."""
    parents: list[Any] = [array.node for array in inputs if array is not None and array.node is not None]
    marks = Marks()
    marks.label, marks.wrapper = type(ctx).__name__, weakref.ref(ctx)
    shapes = [() if o is None else o[0] for o in ctx._outputs]
    shape: Any = shapes[0] if len(shapes) == 1 else shapes
    ctx._parts = (next_number(), parents[0], tuple(parents[1:]) or None, shape, marks)
    return ctx._node


def _result_of(node: Any, i: int) -> Any:
    made = Result()
    made.number, made.vjp, made.saved, made.second = next_number(), node.vjp, None, None
    made.first, made.visit, made.shape, made.result = node, 0, node.shape[i], i
    return made


def _finished(o: Any, node: Any, is_input: bool, is_dirty: bool, count: int, start: int, name: str, place: int) -> Any:
    """A result with its node."""
    if node is None:
        if is_input and not is_dirty:
            return detached(o) if o.requires_grad else view_of(o, ALIAS, "Alias")
        if modes.enabled and is_view(o):
            o._rare.creation = InFunction(name, place, count > 1)
        if o.requires_grad and not is_view(o):
            o.detach_()
        return o
    if is_dirty:
        if o.is_leaf and o.requires_grad and node_of_base(o).tensor() is o:  # no alias of a leaf inside a transform
            raise RuntimeError("a leaf Variable that requires grad has been used in an in-place operation.")
        if is_view(o):
            if count > 1:
                raise RuntimeError(_SEVERAL_OF_VIEW)
            if base_of(o).is_leaf and base_of(o).requires_grad:
                raise RuntimeError(
                    "a view of a leaf Variable that requires grad is being used in an in-place operation."
                )
        store(o, var_of(copied(values(o)), node), start)
        return o
    if is_input or is_view(o):
        out = detached(o)
        if out._rare.memory.buffer is None:
            give_array(out, var_of(values(out), node))
        else:
            out._rare.node = node
        rare_of(out).creation = InFunction(name, place, count > 1)
        return out
    return give_array(o, var_of(values(o), node))


def _kept(i: int, t: Any, node: Any, output: int | None) -> Any:
    """What `saved_tensors` gives back: a tensor and its version, or of a result its value alone."""
    if t is None:
        return None
    if not isinstance(t, Tensor):
        raise TypeError(f"save_for_backward can only save variables, but argument {i} is of type {type(t).__name__}")
    its = t._array.node
    if its is not None and (its is node or (its.result is not None and its.first is node)):
        output = its.result or 0
    if modes.saved_hooks:
        packed = pack(t if output is None else of(var_of(values(t), None)))
        return packed, "packed", output
    if output is None:
        return t, None if t.is_inference() else t._version, None
    return values(t), next_number(), output


# --- backward -----------------------------------------------------------------------------------------


class _Primitive:
    name = "function"
    operands = ()


class _Pull:
    """Stands where other nodes have the rule of a primitive."""

    primitive: Any = _Primitive
    needs: tuple[str, ...] = ()
    accumulate = None
    level: Any
    source: Any

    def __init__(self, level: Any) -> None:
        self.level = self.source = level

    def pulled(self, walk: Any, node: Any, g: Any) -> list[Any]:
        return _pulled(walk, node, g)


@functools.cache
def _pull_on(level: Any) -> Any:
    """What stands there on a level."""
    return _Pull(level)


def _pulled(walk: Any, node: Any, g: Any) -> list[Any]:
    """The cotangents of the tracked arguments of a call, from those of its results."""
    ctx = node.saved
    grads = g if g.__class__ is list else [g]
    if not walk.batched:
        return _pulled_once(ctx, [None if c is None else walk.shown(c) for c in grads], walk.create)
    inner = walk.of_array(next(c for c in grads if c is not None)).inner
    size = next(c.value.shape[0] for c in grads if c is not None and c.batched)
    rows = []
    for k in range(size):
        row = [
            None if c is None else inner.index(c.value, key=(k, *map(range, c.shape))) if c.batched else c.value
            for c in grads
        ]
        shown = [None if c is None else _shown(inner, c, walk.create) for c in row]
        rows.append(_pulled_once(ctx, shown, walk.create))
    return [None if column[0] is None else _batch(inner, column) for column in zip(*rows, strict=True)]


def _shown(B: Any, c: Any, create: bool) -> Tensor:
    c = B.conj(c) if B.dtype_of(c).kind == "c" else c
    return of(c if create else var_of(c, None))


def _batch(B: Any, column: Any) -> Any:
    from adjoint.decorators.batched import Batch

    return Batch(B.concat(*[B.expand_dims(c, axis=(0,)) for c in column], axis=0), True)


def _pulled_once(ctx: Any, grads: list[Any], create: bool) -> list[Any]:
    if ctx.materialize_grads:
        grads = [
            placed(np.zeros(made[0], made[1]), made[2])
            if c is None and made is not None and (ctx._materialize_non_diff_grads or result is not _nothing)
            else c
            for c, made, result in zip(grads, ctx._outputs, ctx._results, strict=True)
        ]
    with grad_mode(create):
        found = _rule_of(ctx._forward_cls)(ctx, *grads)
    return _checked(ctx, found, create)


def _rule_of(cls: Any) -> Any:
    own, other = cls.backward is not Function.backward, cls.vjp is not Function.vjp
    if own and other:
        raise RuntimeError(
            "Implementing both 'backward' and 'vjp' for a custom Function is not allowed. You should only implement "
            "one of them."
        )
    return cls.vjp if other else cls.backward


def _checked(ctx: Any, found: Any, create: bool) -> list[Any]:
    """The answers of a user's rule as cotangents."""
    given = list(found) if isinstance(found, (tuple, list)) else [found]
    name, count = type(ctx).__name__, len(ctx._inputs)
    if len(given) > count and all([g is None for g in given[count:]]):
        given = given[:count]
    if len(given) != count:
        raise RuntimeError(
            f"function {name} returned an incorrect number of gradients (expected {count}, got {len(given)})"
        )
    out: list[Any] = []
    parents = iter(ctx._node.edges() if graph.leaves_are_watched[0] else ())
    for i, (g, described) in enumerate(zip(given, ctx._inputs, strict=True)):
        if described is None:
            if g is not None:
                raise RuntimeError(
                    f"function {name} returned a gradient different than None at position {i + 1}, but the "
                    "corresponding forward input was not a Variable"
                )
            continue
        if g is not None and not isinstance(g, Tensor):
            raise RuntimeError(f"function {name}: expected Variable or None (got {type(g).__name__})")
        shape, dtype, tracked = described
        if tracked:
            marks: Any = getattr(next(parents, None), "marks", None)
            if marks.__class__ is graph.Marks and marks.cast == "any" and g is not None:  # a leaf that takes any type
                dtype = g._dtype
            out.append(None if g is None else _fitted(g, shape, dtype, name, len(out), create))
    return out


def _fitted(g: Any, shape: Any, dtype: Any, name: str, i: int, create: bool) -> Any:
    if tuple(g.shape) != tuple(shape):
        try:
            fits = np.broadcast_shapes(tuple(g.shape), tuple(shape)) == tuple(g.shape)
        except ValueError:
            fits = False
        if not fits:
            raise RuntimeError(
                f"Function {name} returned an invalid gradient at index {i} - got {list(g.shape)} but expected shape "
                f"compatible with {list(shape)}"
            )
        with grad_mode(create):
            g = _summed(g, shape)
    if g._dtype is not dtype:
        with grad_mode(create):
            g = (g.real if g._dtype.kind == "c" and dtype.kind != "c" else g).to(dtype=dtypes.of_numpy(dtype))
    B: Any = level_of(g) if create else leaf_of(values(g))
    c = g._array if create else values(g)
    return B.conj(c) if dtype.kind == "c" else c


def _summed(g: Any, shape: Any) -> Any:
    front = g.ndim - len(shape)
    axes = [*range(front), *[i + front for i, n in enumerate(shape) if n == 1 and g.shape[i + front] != 1]]
    g = g.sum(axes, keepdim=True) if axes else g
    return g.reshape(tuple(shape)) if math.prod(shape) == g.numel() else g


# --- decorators and kinds -----------------------------------------------------------------------------


class DelayedError(Function):
    """Raises when somebody differentiates through it."""

    @staticmethod
    def forward(ctx: Any, *tensors: Any) -> Any:
        return tuple([t.detach() for t in tensors])

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        raise RuntimeError(_TWICE)


def once_differentiable(fn: Any) -> Any:
    """For `backward`: what it computes is not recorded, and a derivative of it is an error."""

    @functools.wraps(fn)
    def wrapper(ctx: Any, *args: Any) -> Any:
        with grad_mode(False):
            outputs = fn(ctx, *args)
        if not modes.enabled or not any([isinstance(a, Tensor) and a.requires_grad for a in args]):
            return outputs
        found = outputs if isinstance(outputs, tuple) else (outputs,)
        places = [i for i, o in enumerate(found) if isinstance(o, Tensor)]
        marked = DelayedError.apply(*[found[i].detach().requires_grad_() for i in places])
        answer = list(found)
        for i, o in zip(places, marked, strict=True):
            answer[i] = o
        return tuple(answer) if isinstance(outputs, tuple) else answer[0]

    return wrapper


class InplaceFunction(Function):
    """A Function that may write to its argument, as `self.inplace` says."""

    def __init__(self, inplace: bool = False) -> None:
        super().__init__()
        self.inplace = inplace
