"""Hooks for saved tensors: what nodes keep goes through `pack` when it is saved, and `unpack` when it is used."""

from __future__ import annotations

from typing import Any

import numpy as np

from adjoint.graph.nodes import Var, var_of
from adjoint.torch import graph
from adjoint.torch.state import grad_mode, modes, no_saved_hooks, saved_hooks
from adjoint.torch.tensor import INNER, Tensor, leaf_node, next_number, unnoticed, values

_WRITTEN = (
    "A saved tensor pack hook is modifying its input in place. Tensors provided as input to pack hook can not be "
    "modified by in-place operations as this can lead to unexpected side-effects."
)


class Hooks:
    """A pair of hooks, and the number of nodes that are older."""

    pack: Any
    start: int
    unpack: Any

    def __init__(self, pack: Any, unpack: Any) -> None:
        self.pack, self.unpack, self.start = pack, unpack, next_number()

    def pack_nodes(self, var: Var) -> None:
        """Hand what new nodes keep to the hooks: all nodes that led to an array since the hooks were there."""
        found: list[Any] = []
        pending: list[Any] = [var.node]
        while pending:
            node = pending.pop()
            if node is None or node.number <= self.start or node.saved.__class__ is Packed:
                continue
            kept = node.saved
            if kept.__class__ is tuple or kept.__class__ is graph.Unchecked:
                node.saved = Packed(kept)
                found.append(node)
            if kept is None or isinstance(kept, tuple):
                pending += node.edges()
        for node in sorted(found, key=lambda node: node.number):
            shown = node.vjp.revived(node, node.edges(), node.saved, node.saved, lambda _, values: values)
            node.saved = Packed(
                [
                    _held(entry, array, node) if graph.is_saved(node.vjp, need) else entry
                    for need, entry, array in zip(node.vjp.needs, node.saved, shown, strict=True)
                ]
            )


class Held:
    """What a pack hook gave for an array."""

    packed: Any
    unpack: Any

    __slots__ = ("packed", "unpack")

    def __init__(self, packed: Any, unpack: Any) -> None:
        self.packed, self.unpack = packed, unpack

    def tensor(self) -> Tensor:
        found = self.unpack(self.packed)
        if not isinstance(found, Tensor):
            raise TypeError(
                "Output of saved tensor unpack_hook expected to be a Tensor but got result of type "
                f"{type(found).__name__}"
            )
        return found


class Packed(tuple[Any, ...]):
    """What a node saved, part of it held by hooks."""

    __slots__ = ()

    def unpacked(self) -> tuple[Any, ...]:
        return tuple([_array(entry) for entry in self])


def _array(entry: Any) -> Any:
    if entry.__class__ is Held:
        return values(entry.tensor())
    return tuple([_array(one) for one in entry]) if entry.__class__ is tuple else entry


def push(holder: object, hooks: Any) -> None:
    """Run hooks for what this thread saves from now on, as long as there is the holder."""
    if (why := no_saved_hooks.now()) is not None:
        raise RuntimeError(why)
    saved_hooks.enter(holder, (*modes.saved_hooks, hooks))


def pop(holder: object) -> None:
    """The last hooks run no longer."""
    saved_hooks.leave(holder)


def pack(x: Tensor, hooks: Any = None) -> Held:
    """A tensor as hooks keep it, the innermost unless others are given."""
    hooks = hooks or modes.saved_hooks[-1]
    before = x._version
    with grad_mode(False):
        packed = hooks.pack(x)
    if x._version != before:
        raise RuntimeError(_WRITTEN)
    return Held(packed, hooks.unpack)


def unpack(held: Held) -> Tensor:
    return held.tensor()


def _held(entry: Any, array: Any, node: Any, hooks: Any = None) -> Any:
    if entry.__class__ is tuple:
        return tuple([_held(*pair, node, hooks) for pair in zip(entry, array, strict=True)])
    if graph.is_array(entry) and not is_number(entry):
        if array.__class__ is not Var:
            array = var_of(entry, None)
        elif array.node is node:  # a hook that keeps what it is given makes no cycle
            array = var_of(entry, leaf_node(entry, None))
        return pack(unnoticed(array), hooks)
    return entry


class SavedTensor:
    """What a node keeps of a tensor: `y.grad_fn._raw_saved_self`."""

    def __init__(self, node: Any, place: int) -> None:
        self._node, self._place = node, place

    def register_hooks(self, *hooks: Any) -> None:
        """Keep what the first hook gives of the tensor, of which the second one makes a tensor again."""
        pair = _pair_of(hooks)
        node, place = self._node, self._place
        saved = node.saved
        if saved is None:
            raise RuntimeError(graph.FREED)
        if saved[place].__class__ is Held:
            raise RuntimeError(_HOOKED)
        array = node.vjp.revived(node, node.edges(), saved, saved, lambda _, values: values)[place]
        kept = list(saved)
        kept[place] = _held(saved[place], array, node, pair)
        node.saved = Packed(kept)


class SavedByFunction:
    """What `save_for_backward` kept of a tensor: `y.grad_fn._raw_saved_tensors[0]`."""

    def __init__(self, ctx: Any, place: int) -> None:
        self._ctx, self._place = ctx, place

    def register_hooks(self, *hooks: Any) -> None:
        """As `SavedTensor.register_hooks`."""
        pair = _pair_of(hooks)
        self._ctx._raw_saved_tensors  # noqa: B018  # which raises where nothing is left
        entry = self._ctx._saved[self._place]
        if entry is None:
            raise RuntimeError("Calling register_hooks on a saved tensor with value None is forbidden")
        if entry[1] == "packed":
            raise RuntimeError(_HOOKED)
        x = self._ctx._restored(*entry)
        shown = x if entry[2] is None else unnoticed(var_of(values(x), None))
        self._ctx._saved[self._place] = pack(shown, pair), "packed", entry[2]


_HOOKED = (
    "Calling register_hooks on a saved tensor whose hooks have already been set. Hint: only one pair of hooks is "
    "allowed at a time."
)


def _pair_of(hooks: Any) -> Hooks:
    if len(hooks) != 2 or not all([callable(hook) for hook in hooks]):
        raise TypeError("register_hooks(): incompatible function arguments; expected two functions")
    return Hooks(*hooks)


def is_number(entry: Any) -> bool:
    """Whether an array is one of Python's numbers in an operation, which PyTorch does not save."""
    if entry.shape or not isinstance(entry, (np.ndarray, np.generic)):
        return False
    return INNER.as_scalar(entry.item(), entry.dtype) is entry
