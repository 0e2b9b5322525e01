"""Nodes as PyTorch's users see them: names, edges, hooks; and what is known of overwritten values.

adjoint's nodes do the work. A face hangs `marks` on some of them: the name of a function that is several primitives,
hooks, what retains its gradient. All else follows from the primitive.
"""

from __future__ import annotations

import collections
import itertools
import weakref
from typing import Any

import numpy as np

from adjoint.graph.nodes import Joint, LeafNode, Node, Result, var_of
from adjoint.torch import dtypes
from adjoint.torch.devices import dtype_of

FREED = (
    "Trying to backward through the graph a second time (or directly access saved tensors after they have already "
    "been freed). Saved intermediate values of the graph are freed when you call .backward() or autograd.grad(). "
    "Specify retain_graph=True if you need to backward through the graph a second time or if you need to access saved "
    "tensors after calling backward."
)
OVERWRITTEN = (
    "one of the variables needed for gradient computation has been modified by an inplace operation: {what} was "
    "written to afterwards. Hint: give the operation a copy, made with clone(), or write to one."
)

# what PyTorch saves, by primitive, where adjoint keeps something else: the check is PyTorch's, and the gradient is
# right in any case
_SAVED = {
    "abs": "x", "reciprocal": "out", "relu": "out", "sqrt": "out", "exp": "out", "expm1": "out", "tan": "out",
    "tanh": "out", "expit": "out", "softmax": "out", "log_softmax": "out", "cumulative_sum": "", "sign": "",
    "square": "x", "multiply": "x y", "divide": "x y", "pow": "x y out", "atan2": "x y", "maximum": "x y",
    "minimum": "x y", "hypot": "x y out", "logaddexp": "x y", "prod": "x out", "max": "x out", "min": "x out",
    "logsumexp": "x out", "vector_norm": "x out", "cumulative_prod": "x", "where": "condition", "clip": "x",
    "index": "arrays", "index_set": "arrays", "take_along_axis": "indices", "sum": "", "broadcast_to": "",
    "standardize": "x", "normalize": "x weight", "cummax": "indices", "cummin": "indices", "erfinv": "x",
    "labelled_cross_entropy": "labels",
}  # fmt: skip
_CHECKED = {name: frozenset(needs.split()) for name, needs in _SAVED.items()}

# the same by the names of functions that are another primitive in PyTorch, or several here
_SAVED_OF: dict[str, frozenset[str]] = {
    **dict.fromkeys(
        ("AffineGridGenerator", "AsStrided", "AsStridedBackward0_copy", "AsStridedScatter", "Col2Im", "CopyBackwards",
         "Deg2Rad", "DiagonalBackward0_copy", "DiagonalScatter", "Fill", "FillBackward1", "Lerp",
         "MeanBackward0", "MeanBackward1", "Rad2Deg", "RoundBackward1", "Rsub", "SelectScatter",
         "SliceScatter", "UnfoldBackward0_copy", "UpsampleBicubic2D", "UpsampleBilinear2D", "UpsampleLinear1D",
         "UpsampleNearest1D", "UpsampleNearest2D", "UpsampleNearest3D", "UpsampleNearestExact1D",
         "UpsampleNearestExact2D", "UpsampleNearestExact3D", "UpsampleTrilinear3D", "ViewAsComplex",
         "ViewAsComplexBackward0_copy"), frozenset[str](),
    ),
    **dict.fromkeys(("Exp2", "Polar", "Reciprocal"), frozenset(("out",))),
    "NativeLayerNorm": frozenset(("x", "weight", "bias")),
    "Frexp": frozenset(("exponent",)), "Sgn": frozenset(("x",)),
}  # fmt: skip
# the same of functions whose last step has the name of something else, by what they are here
_SAVED_IN: dict[str, dict[str, frozenset[str]]] = {
    "attention": dict.fromkeys(("UnsafeView", "Mm"), frozenset(("v",))),
    "normalize": {"View": frozenset(("x",))},
}


def saves_values(primitive: str) -> bool:
    """Whether PyTorch saves anything of a function that is this primitive."""
    return _SAVED.get(primitive) != ""


class Unchecked(tuple[Any, ...]):
    """What a node of a function keeps of which it is known by name what PyTorch saves."""

    __slots__ = ()


class Kept(Unchecked):
    """The same, where PyTorch saves nothing: it is there for a second pass."""

    __slots__ = ()


# names of primitives, where they are not the primitive's own in capitals
_NAMES = {
    "multiply": "Mul", "subtract": "Sub", "divide": "Div", "negative": "Neg", "matmul": "Mm", "square": "Pow",
    "reshape": "View", "permute_dims": "Permute", "expand_dims": "Unsqueeze", "broadcast_to": "Expand",
    "index_set": "IndexPut", "astype": "ToCopy", "concat": "Cat", "expit": "Sigmoid", "cumulative_sum": "Cumsum",
    "cumulative_prod": "Cumprod", "vector_norm": "LinalgVectorNorm", "take_along_axis": "Gather", "clip": "Clamp",
    "gammaln": "Lgamma", "to_device": "ToCopy", "linear": "Addmm", "log1p": "Log1P",
}  # fmt: skip


class Marks:
    """What hangs on a node."""

    __slots__ = (
        "cast", "hooks", "in_place", "label", "metadata", "operands", "overwritten", "post", "pre", "retained", "start",
        "wrapper",
    )  # fmt: skip

    def __init__(self) -> None:
        self.label: str | None = None  # the function's name
        self.start: int | None = None  # nodes above this number are inside of the function
        self.operands: Any = None  # the nodes of its operands, None for constants, where they are known
        self.hooks: dict[int, Any] = {}  # of tensors
        self.pre: dict[int, Any] = {}
        self.post: dict[int, Any] = {}
        self.retained: Any = None  # the tensor whose gradient is kept, weakly
        self.wrapper: Any = None
        self.cast: Any = None  # the type of a leaf's gradient, where it is not the leaf's own
        self.metadata: dict[Any, Any] = {}
        self.in_place: bool = False  # its first operand was copied before it was written to
        self.overwritten: bool = False  # its result was, which PyTorch would have saved


class Accumulate(LeafNode):
    """The node of a leaf, which knows its tensor weakly: backward adds to the tensor's gradient."""

    __slots__ = ("tensor",)

    tensor: Any


class Outgrown(Accumulate):
    """What is left in older graphs of a leaf that was given another shape."""

    __slots__ = ()


class Watched(Node):
    """A node that hooks look at, or whose result was overwritten."""

    __slots__ = ()


class WatchedJoint(Joint):
    __slots__ = ()


class WatchedResult(Result):
    __slots__ = ()


class Called(Joint):
    """The call of a user's Function: what it saved is its ctx."""

    __slots__ = ()

    def edges(self) -> tuple[Node, ...]:
        first, second = self.first, self.second
        return () if first is None else (first,) if second is None else (first, *second)


_WATCHED: dict[Any, Any] = {Node: Watched, Joint: WatchedJoint, Result: WatchedResult}


def marks_of(node: Any) -> Marks:
    """The marks of a node, made if there are none."""
    known: Any = getattr(node, "marks", None)
    if known.__class__ is Marks:
        return known
    made = Marks()
    if known.__class__ is tuple:
        made.label, made.start, made.operands = known
    else:
        made.label = known
    node.marks = made
    return made


def watched_marks(node: Any) -> Marks:
    """The marks of a node that a backward pass is to look at."""
    if node.__class__ is Accumulate:
        leaves_are_watched[0] = True
    kind = _WATCHED.get(node.__class__)
    if kind is not None:
        node.__class__ = kind
    return marks_of(node)


def is_hooked(node: Any) -> bool:
    """Whether a hook is to see the gradients of a node."""
    known: Any = getattr(node, "marks", None)
    return known.__class__ is Marks and bool(known.hooks or known.pre or known.post)


def label(node: Any, name: str, start: int | None = None, operands: Any = None) -> None:
    """Give a node the name of the function that made it; of a function's other nodes all numbers are above `start`.

    `operands` are the nodes of the function's operands, None for constants; of a write through a view those of the base
    and of what was written.
    """
    if node is None or node.__class__ is Accumulate:
        return
    known: Any = getattr(node, "marks", None)
    if known.__class__ is Marks:
        known.label, known.start, known.operands = name, start, operands
    else:
        node.marks = name if start is None and operands is None else (name, start, operands)
    needs = _saved_of(name, node)
    if needs is not None:
        keep(node, start, Unchecked if needs else Kept)


def _saved_of(name: Any, node: Any) -> frozenset[str] | None:
    known = _SAVED_OF.get(name)
    return known if known is not None else _SAVED_IN[node.name].get(name) if node.name in _SAVED_IN else None


def keep(node: Any, start: int | None, kind: Any = Kept) -> None:
    """Let a function keep what its nodes saved as another kind of tuple; all but the last are above `start`."""
    pending = [node]
    while pending:
        node = pending.pop()
        if node.saved.__class__ is tuple or node.saved.__class__ is Unchecked:
            node.saved = kind(node.saved)
        if start is not None:
            pending += [parent for parent in node.edges() if parent.number > start]


def with_leaves_early(nodes: list[Any]) -> list[Any]:
    """The nodes of a pass, first things last, with each leaf right after the last node that gives it something."""
    waiting: dict[Any, int] = {}
    for node in nodes:
        for parent in node.edges():
            if parent.__class__ is Accumulate:
                waiting[parent] = waiting.get(parent, 0) + 1
    order = []
    for node in reversed(nodes):
        if node in waiting:  # it comes after the last of these
            continue
        order.append(node)
        edges = node.edges()
        if len(edges) > 1 and node.name == "linear" and node.vjp.tracked[-1] == 2:  # the bias first, as of addmm
            edges = (edges[-1], *edges[:-1])
        for parent in edges:
            if parent.__class__ is Accumulate:
                waiting[parent] -= 1
                if not waiting[parent]:
                    order.append(parent)
    order.reverse()
    return order


# --- overwritten values -----------------------------------------------------------------------------

_overwritten: dict[int, tuple[int, Any]] = {}  # by id of an array: nodes below a number saved it before
_single: collections.deque[int] = (
    collections.deque()
)  # ids of single elements among them, which have no weak references
# a leaf has had hooks: the order in which leaves get their gradients can be seen
leaves_are_watched: list[bool] = [False]
some_outgrown: list[bool] = [False]  # a leaf has been given another shape
writes_allowed: list[bool] = [False]  # in a block that says that values may be overwritten
_KEPT = 4096  # so many of these are kept alive, so that their ids stay theirs


def owner(array: Any) -> Any:
    """The array whose memory this one is part of."""
    if isinstance(array, (np.ndarray, np.generic)):
        while isinstance(array.base, np.ndarray):
            array = array.base
    return array


def overwritten(value: Any, number: int) -> None:
    """A tensor had this value and has another one: to nodes below the number it is lost, as PyTorch sees it."""
    array = owner(value)
    key = id(array)
    if not isinstance(array, np.generic):
        _overwritten[key] = number, weakref.ref(array, lambda _: _overwritten.pop(key, None))
        return
    _overwritten[key] = number, array
    _single.append(key)
    if len(_single) > _KEPT:
        _overwritten.pop(_single.popleft(), None)


def result_overwritten(node: Any) -> None:
    """The result of a node was written to, and PyTorch would have saved it."""
    if node is not None and node.__class__ is not Accumulate:
        name = node.name
        if name == "pow" and 1 not in node.vjp.tracked:  # only the derivative by the exponent needs the result
            return
        if "out" in (_checked(node) or ()) and node.result is None:
            watched_marks(node).overwritten = True


def is_overwritten(value: Any, number: int) -> bool:
    """Whether what was saved before a number was written to since."""
    found = _overwritten.get(id(owner(value)))
    return found is not None and number < found[0]


def any_overwritten() -> bool:
    return bool(_overwritten)


def _checked(node: Any) -> frozenset[str] | None:
    """What PyTorch saves of what a node computes, or None where that is what the node keeps."""
    marks: Any = getattr(node, "marks", None)
    given = marks if marks.__class__ is str or marks is None else marks[0] if marks.__class__ is tuple else marks.label
    known = _saved_of(given, node)
    if known is None and isinstance(node.saved, Unchecked):  # inside of a function
        return frozenset()
    return _CHECKED.get(node.name) if known is None else known


def is_array(saved: Any) -> bool:
    """Whether something that a node saved is an array, of any device."""
    return isinstance(saved, (np.ndarray, np.generic)) or (hasattr(saved, "shape") and hasattr(saved, "dtype"))


def check_saved(node: Any, saved: Any) -> None:
    """Raise PyTorch's error if something that the node saved was written to since."""
    vjp = node.vjp
    marks: Any = getattr(node, "marks", None)
    checked = _checked(node)
    in_place = marks.__class__ is Marks and marks.in_place
    for need, value in zip(vjp.needs, saved, strict=False):
        if (checked is not None and need not in checked) or (in_place and need == "x"):
            continue
        for one in value if value.__class__ is tuple else (value,):
            if is_array(one):
                if is_overwritten(one, node.number):
                    raise overwritten_error(node, one)


def is_saved(vjp: Any, need: str) -> bool:
    """Whether PyTorch would save this of what a node keeps."""
    checked = _CHECKED.get(vjp.primitive.name)
    if checked is not None:  # or what stands in its place, as the operand of a sigmoid does
        return need in checked or (bool(checked) and checked.isdisjoint(vjp.needs) and need == vjp.needs[0])
    return need in ("out", "outs") or need in [name.lstrip("*") for name in vjp.primitive.operands]


def overwritten_error(node: Any, value: Any) -> RuntimeError:
    kind = dtypes.of_numpy(dtype_of(value)).class_name
    what = f"[torch.{kind}Tensor {list(value.shape)}], which is what {shown_name(node)} saved,"
    return RuntimeError(OVERWRITTEN.format(what=what))


def refuse_outgrown(nodes: list[Any], wanted: Any) -> None:
    """Raise PyTorch's error for gradients of a leaf that was given another shape behind a graph's back."""
    for node in nodes:
        if node.__class__ is Outgrown:
            x = node.tensor and node.tensor()
            if x is not None and (wanted is None or x._array.node in wanted):
                what = f"a leaf of shape {list(node.shape)}, which has the shape {list(x.shape)} now,"
                raise RuntimeError(OVERWRITTEN.format(what=what))


def result_error(node: Any) -> RuntimeError:
    """The error for a node whose result was written to."""
    what = f"[tensor {list(node.shape)}], which is output 0 of {shown_name(node)},"
    return RuntimeError(OVERWRITTEN.format(what=what))


def move_retained(x: Any, old: Any, new: Any) -> None:
    """retain_grad() follows the object to its new node."""
    if x._rare is None or not x._rare.retains or old is new:
        return
    known: Any = getattr(old, "marks", None)
    if known.__class__ is Marks:
        known.retained = None
    if new is not None:
        watched_marks(new).retained = weakref.ref(x)


# --- nodes ------------------------------------------------------------------------------------------


class Handle:
    """What registering a hook gives: `remove()` takes it away."""

    _ids = itertools.count()

    def __init__(self, hooks: dict[int, Any], hook: Any) -> None:
        self.id: int = next(self._ids)
        self._hooks = hooks
        hooks[self.id] = hook

    def remove(self) -> None:
        self._hooks.pop(self.id, None)

    def __enter__(self) -> Handle:
        return self

    def __exit__(self, *_: object) -> None:
        self.remove()


def maker(node: Any) -> Any:
    """The node of the function that gave a result, which may be one of several."""
    return node.first if node.result is not None and node.first is not None else node


def name_of(node: Any, given: str | None) -> str:
    if node.__class__ is Accumulate:
        return "AccumulateGrad"
    if given is None:
        primitive: str = node.name
        known: str | None = _NAMES.get(primitive)
        whole = "Backward" in primitive  # of a Function inside of a transform
        given = known or (primitive if whole else "".join([part.capitalize() for part in primitive.split("_")]))
    return given if given == "CopySlices" or "Backward" in given else given + "Backward0"


# functions of pieces that are straight, whose gradients PyTorch reckons from what it saved all the same: they are
# recorded, and their own gradients by it are zero
_PIECEWISE = (
    "Relu", "LeakyRelu", "Prelu", "Hardtanh", "Threshold", "Softshrink", "Hardshrink", "Hardsigmoid", "RreluWithNoise",
    "MaxPool", "AdaptiveMaxPool", "FractionalMaxPool", "AvgPool", "AdaptiveAvgPool", "ReflectionPad",
    "ReplicationPad", "MultiMarginLoss", "MultilabelMarginLoss", "NllLoss", "UpsampleAdaptiveAvgPool",
)  # fmt: skip


def with_history(node: Any, pulled: Any, parents: Any, B: Any) -> Any:
    """What a node gives its operands in a pass that is recorded, where PyTorch's gradients have a history."""
    marks: Any = getattr(node, "marks", None)
    given = marks if marks.__class__ is str or marks is None else marks[0] if marks.__class__ is tuple else marks.label
    name = name_of(node, given)
    if not name.startswith(_PIECEWISE):
        return pulled
    stem = "Threshold" if name == "ReluBackward0" else name.removesuffix("Backward0").removesuffix("Backward")
    out = list(pulled)
    for i, (g, parent) in enumerate(zip(pulled, parents, strict=False)):
        if g is not None:
            nothing = B.full(shape=tuple(g.shape), value=0, dtype=B.dtype_of(g))
            always = B.full(shape=(), value=True, dtype=np.dtype(bool))
            if tuple(parent.shape) == tuple(g.shape):
                out[i] = B.where(always, g, var_of(nothing.value, parent))
                label(out[i].node, stem + "BackwardBackward0")
    return out


# the last step of functions that PyTorch makes of others
_LAST_STEPS = {
    **dict.fromkeys(
        ("MaxPool1DWithIndicesBackward0", "AvgPool1DBackward0", "AdaptiveMaxPool1DBackward0", "MaxUnpool1DBackward0",
         "AdaptiveAvgPool1DBackward0", "UpsampleAdaptiveAvgPool1DBackward0"), "SqueezeBackward1",
    ),
    **{f"UpsampleAdaptiveAvgPool{n}DBackward0": f"AdaptiveAvgPool{n}DBackward0" for n in (2, 3)},
}  # fmt: skip


def shown_name(node: Any) -> str:
    """What the class of `x.grad_fn` is called."""
    node = maker(node)
    name = name_of(node, marks_of(node).label)
    return _LAST_STEPS.get(name, name)


def full_name(node: Any) -> str:
    """The name that PyTorch gives a node."""
    known = shown_name(node)
    return f"torch::autograd::{known}" if known in ("CopySlices", "AccumulateGrad", "CopyBackwards") else known


def with_constants(node: Any, edges: list[Any], nowhere: Any) -> list[Any]:
    """What there is for each edge of a node of two operands; that of a constant leads nowhere."""
    if node.__class__ is Accumulate or marks_of(node).start is not None or len(edges) != 1:
        return edges
    if marks_of(node).label == "CopyBackwards":
        return [nowhere, *edges]
    vjp = node.vjp
    if vjp.primitive.operands != ("x", "y") or len(vjp.tracked) != 1 or vjp.primitive.name == "pow":
        return edges
    return [*edges, nowhere] if vjp.tracked[0] == 0 else [nowhere, *edges]


def operands_of(node: Any) -> list[Any]:
    """The nodes that a function's operands came from."""
    if node.__class__ is Accumulate:
        return []
    marks = marks_of(node)
    start, known = marks.start, marks.operands or ()
    if start is None:
        return list(node.edges())
    out: list[Any] = []
    seen, pending = set(), [node]
    while pending:
        node = pending.pop()
        if node.number <= start or node.__class__ is Accumulate or node in known:  # parts are first read when used
            if node not in out:
                out.append(node)
        elif node not in seen:
            seen.add(node)
            pending.extend(reversed(node.edges()))
    return out


def edges_of(node: Any) -> list[Any]:
    """The nodes that PyTorch's `next_functions` lead to; None for constants."""
    parents, known = operands_of(node), marks_of(node).operands
    if known is None:
        return with_constants(node, parents, None)
    if marks_of(node).label == "CopySlices":
        base, written = known
        rest = [] if written is None else edges_of(written)
        return [base, *(rest if base is None and rest and rest[0] is not None else rest[1:])]
    return list(known) if {*known} - {None} == {*parents} else with_constants(node, parents, None)
