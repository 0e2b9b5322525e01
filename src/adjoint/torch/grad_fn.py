"""`x.grad_fn`: a node of the graph as PyTorch's users hold it, to look at, to hook and to call."""

from __future__ import annotations

import weakref
from typing import Any

from adjoint.graph.nodes import Var
from adjoint.torch.engine import called
from adjoint.torch.graph import (
    FREED,
    Accumulate,
    Handle,
    check_saved,
    edges_of,
    full_name,
    is_array,
    maker,
    marks_of,
    shown_name,
    watched_marks,
)
from adjoint.torch.saving import SavedTensor
from adjoint.torch.tensor import Tensor, of


class GradFn:
    """A node of the graph. Classes have the names that PyTorch's have."""

    _classes: dict[str, Any] = {}
    _node: Any

    def __init__(self, node: Any) -> None:
        self._node = node

    def name(self) -> str:
        """The name that PyTorch gives the node."""
        return full_name(self._node)

    @property
    def metadata(self) -> dict[Any, Any]:
        return marks_of(self._node).metadata

    @property
    def next_functions(self) -> tuple[tuple[Any, int], ...]:
        """The nodes of the operands that gradients go to, each with which of its results is meant."""
        edges = edges_of(self._node)
        return tuple([(None, 0) if parent is None else (grad_fn(parent), parent.result or 0) for parent in edges])

    @property
    def variable(self) -> Tensor:
        """The leaf that gradients are added to."""
        if self._node.__class__ is not Accumulate:
            raise AttributeError(f"'{type(self).__name__}' object has no attribute 'variable'")
        known = self._node.tensor and self._node.tensor()
        if known is None:
            known = of(self._node.level.tensor_of(self._node))
            self._node.tensor = weakref.ref(known)
        return known  # type: ignore[no-any-return]

    def _sequence_nr(self) -> int:
        return self._node.number  # type: ignore[no-any-return]

    def register_hook(self, hook: Any) -> Handle:
        """A hook that sees what comes out and what went in, and may replace what comes out."""
        return Handle(watched_marks(self._node).post, hook)

    def register_prehook(self, hook: Any) -> Handle:
        """A hook that sees what goes in, and may replace it."""
        return Handle(watched_marks(self._node).pre, hook)

    def __call__(self, *grads: Any) -> Any:
        """The gradients of the operands for those of the results, without hooks.

        >>> import adjoint.torch as torch
        >>> x = torch.tensor([1.0, 2.0], requires_grad=True)
        >>> (x * 3).grad_fn(torch.ones(2))
        (tensor([3., 3.]), None)
        """
        return called(self._node, grads)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_saved_"):
            return saved_as(self._node, name.removeprefix("_saved_"))
        if name.startswith("_raw_saved_"):
            node, need = self._node, _SAVED_NAMES.get(name.removeprefix("_raw_saved_"), "")
            if node.__class__ is not Accumulate and need in node.vjp.needs:
                return SavedTensor(node, node.vjp.needs.index(need))
        raise AttributeError(f"'{type(self).__name__}' object has no attribute {name!r}")

    def __eq__(self, other: Any) -> bool:
        return isinstance(other, GradFn) and other._node is self._node

    def __hash__(self) -> int:
        return id(self._node)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} object at {hex(id(self._node))}>"


_SAVED_NAMES = {"self": "x", "other": "y", "result": "out", "exponent": "y"}


def saved_as(node: Any, name: str) -> Any:
    """What a node of one primitive saved, under PyTorch's name: an operand or the result, as a tensor of the graph."""
    need = _SAVED_NAMES.get(name, name)
    if node.__class__ is not Accumulate and need in node.vjp.needs:
        saved = node.saved
        if saved is None:
            raise RuntimeError(FREED)
        if hasattr(saved, "unpacked"):
            saved = saved.unpacked()
        else:
            check_saved(node, saved)
        found = node.vjp.revived(node, node.edges(), saved, saved, None)[node.vjp.needs.index(need)]
        if isinstance(found, Var):
            its: Any = found.node
            known = its.tensor() if its.__class__ is Accumulate and its.tensor is not None else None
            return known if known is not None and known._array.value is found.value else of(found)
        if not is_array(found):
            return found
    raise AttributeError(f"'{shown_name(node)}' object has no attribute '_saved_{name}'")


def grad_fn(node: Any) -> Any:
    """What `x.grad_fn` is: one object for a node as long as somebody holds it."""
    node = maker(node)
    marks = marks_of(node)
    known = marks.wrapper() if marks.wrapper is not None else None
    if known is not None:
        return known
    name = shown_name(node)
    kind = GradFn._classes.get(name)
    if kind is None:
        kind = GradFn._classes[name] = type(name, (GradFn,), {})
    made = kind(node)
    marks.wrapper = weakref.ref(made)
    return made
