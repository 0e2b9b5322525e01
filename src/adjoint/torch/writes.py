"""What a write to a tensor does to all that shares its memory; and how a tensor leaves that, or goes to another one."""

from __future__ import annotations

import math
import weakref
from typing import Any

import numpy as np

from adjoint.graph.nodes import Var, var_of
from adjoint.torch import lifted, state
from adjoint.torch.graph import (
    Accumulate,
    Outgrown,
    is_hooked,
    label,
    move_retained,
    overwritten,
    result_overwritten,
    some_outgrown,
)
from adjoint.torch.kinds import MULTIPLE_PLACES, Gather, is_dense, positions, repeats
from adjoint.torch.memory import (
    base_of,
    counter_of,
    detached,
    forget_view,
    is_view,
    node_of_base,
    node_of_view,
    numbers_in,
    place_of,
    refuse_left,
    shape_of,
    views_of,
    whole_of,
)
from adjoint.torch.refusals import OVERLAP, refusal
from adjoint.torch.state import modes
from adjoint.torch.tensor import (
    Rare,
    Tensor,
    copied,
    forget,
    leaf_node,
    leaf_of,
    level_of,
    new,
    next_number,
    rare_of,
    values,
)


def refuse_inference(x: Tensor) -> None:
    """Raise if a tensor that was made in inference mode is to be written to outside of it."""
    if x._rare is not None and x._rare.inference and not modes.inference:
        raise RuntimeError(
            "Inplace update to inference tensor outside InferenceMode is not allowed."
            "You can make a clone to get a normal tensor before doing inplace update."
        )


def check_write(
    x: Tensor, others: Any = (), *, apart: bool = False, filling: bool = False, copied: bool = False
) -> None:
    """Raise what PyTorch raises for in-place operations; `others` are the further operands.

    They may be all of x's memory, but no other part of it that meets x's, unless they are copied before; nor all of it,
    if they are to be `apart`. Several elements of x may be in one place where one number is to fill it.
    """
    rare = x._rare
    if state.special:
        lifted.check_write(x)
    if rare is not None and rare.inner is not None:
        return
    refuse_inference(x)
    if modes.enabled and (x.requires_grad or any([o.requires_grad for o in others if isinstance(o, Tensor)])):
        if rare is not None and rare.creation is not None:
            raise RuntimeError(refusal(rare, indirect=False))
        if rare is not None and rare.parent is not None:
            if x.requires_grad and not rare.tracked:  # it was not looked at since its base is tracked
                raise RuntimeError("a leaf Variable that requires grad is being used in an in-place operation.")
            if base_of(x).is_leaf and x.requires_grad:
                raise RuntimeError(
                    "a view of a leaf Variable that requires grad is being used in an in-place operation."
                )
            if x.requires_grad:  # the gradient of what is written goes to the base
                chain = views_of(x)
                if any([is_hooked(view._array.node) for view in chain]):
                    for view in chain:
                        forget_view(view)
        if x.requires_grad and x.is_leaf:
            what = "a view of a leaf Variable" if rare is not None and rare.was_view else "a leaf Variable"
            raise RuntimeError(f"{what} that requires grad is being used in an in-place operation.")
    if rare is None or rare.memory is None:
        return
    refuse_left(x)
    shape, (strides, offset) = shape_of(x), place_of(x)
    if filling:
        return
    if any([s == 0 and n > 1 for n, s in zip(shape, strides, strict=True)]):
        raise RuntimeError(MULTIPLE_PLACES)
    for other in () if copied else others:
        if (
            isinstance(other, Tensor)
            and other is not x
            and other._rare is not None
            and other._rare.memory is rare.memory
        ):
            its = place_of(other)
            same = (strides, offset, shape) == (*its, shape_of(other))
            if _meet(shape, strides, offset, shape_of(other), *its) and (apart or not same):
                raise RuntimeError(OVERLAP)


def _meet(shape: Any, strides: Any, offset: int, other: Any, its: Any, start: int) -> Any:
    """Whether two tensors, each without gaps, share memory; of others PyTorch does not ask."""
    size, its_size = math.prod(shape), math.prod(other)
    if not size or not its_size or not is_dense(shape, strides) or not is_dense(other, its):
        return False
    return offset < start + its_size and start < offset + size


def store(x: Tensor, array: Var, number: int, *, silent: bool = False) -> None:
    """Give a tensor another value, and with it all that shares its memory.

    Under `no_grad` histories stay as they are. `number` is from before the operation: nodes below it may have saved
    what is overwritten.
    """
    quiet = not modes.enabled
    rare = x._rare
    if rare is not None and rare.moved:
        leave_if_alone(x)
    written = array
    if rare is None or rare.memory is None:
        old = x._array
        if quiet:
            array = var_of(array.value, old.node)
        if not silent:
            overwritten(old.value, number)
            result_overwritten(old.node)
            rare_of(x).version += 1
        _give(x, old, array)
        return
    memory = rare.memory
    if quiet or (array.node is None and not base_of(x).requires_grad):
        base, array = _through(x, leaf_of(array.value), array.value, values)
        array = var_of(array, None)
        quiet = True
    else:
        base, array = _through(x, level_of(x), array, lambda parent: parent._array)
        if base is not x:
            label(array.node, "CopySlices", operands=(node_of_base(base), written.node))
            rare.tracked = True
        if state.special and modes.saved_hooks:
            modes.saved_hooks[-1].pack_nodes(array)
    silent = silent or base._rare.silent is not None
    old_node = node_of_base(base)
    new_node = old_node if quiet else array.node
    whole = array.value
    parts = [memory.value]
    for view in base._rare.path[:-1]:
        parts.append(view.read(leaf_of(parts[-1]), parts[-1]))
    if base._rare.path:
        whole = _back(base, parts, whole)
    if not silent:
        overwritten(memory.value, number)
        for copy in memory.copies:
            if (value := copy()) is not None:
                overwritten(value, number)
        memory.version += 1
    elif base._rare.silent is not None:
        overwritten(base._rare.silent.value, number)
        base._rare.silent.version += 1
    memory.copies = []
    if memory.buffer is not None:
        np.copyto(memory.buffer, whole)
    else:
        memory.value = whole
    seen: list[Any] = []
    living, memory.aliases = memory.aliases, []
    unnoticed: list[Any] = []  # views of tensors whose `.data` was written to: they keep their nodes, and hooks
    for reference in living:
        alias = reference()
        if alias is None:
            continue
        its = alias._rare
        if its.parent is not None:
            if silent and base_of(alias) is not base and memory.buffer is not None:  # its values are read each time
                memory.aliases.append(reference)
            elif silent and base_of(alias) is not base and (node := node_of_view(alias)) is not None:
                unnoticed.append((alias, node))
            else:
                memory.forget(alias)
            continue
        memory.aliases.append(reference)
        if not silent:
            result_overwritten(node_of_base(alias))
        if its.silent is not None and its.silent not in seen:
            its.silent.look(memory)
            seen.append(its.silent)
        if alias is base:
            if memory.buffer is not None:
                its.node = new_node
                move_retained(alias, old_node, new_node)
            else:
                known = whole if not its.path else array.value
                _give(alias, var_of(None, old_node), var_of(known if its.silent is None else whole_of(its), new_node))
        elif memory.buffer is None:
            node = alias._array.node
            _give(alias, alias._array, var_of(whole_of(its), node))
        if its.where is not None and its.path:  # the same values in another array
            memory.read(alias._array)
    for alias, node in unnoticed:
        alias._array = var_of(memory.values_again(alias), node)
        memory.add(alias)
        memory.read(alias._array)
    if x is not base:  # what was written is a value of the memory, too: its node may have saved it
        memory.read(written)


def bump_version(x: Tensor) -> None:
    """Count a write that left the values as they are: what was saved of them counts as overwritten."""
    rare = rare_of(x)
    if rare.memory is not None:
        counter = counter_of(x)
        overwritten(counter.value, next_number())
        counter.version += 1
    else:
        overwritten(values(x), next_number())
        rare.version += 1


def _give(x: Tensor, old: Var, array: Var) -> None:
    node: Any = array.node
    if node.__class__ is Accumulate:
        node.value = array.value
    x._array = array
    if old.node is not array.node:
        move_retained(x, old.node, array.node)


def _through(x: Tensor, B: Any, array: Any, read: Any) -> tuple[Tensor, Any]:
    """The base of a tensor, and its array on B, once x has another one."""
    chain, t = views_of(x), base_of(x)
    if any([view._rare.view.write is None or repeats(view._rare.view) for view in chain]):
        numbers = numbers_in(t, positions(shape_of(x), *place_of(x)))
        return t, Gather(numbers, (), 0).write(B, read(t), array)
    for view in chain:
        array = view._rare.view.write(B, read(view._rare.parent), array)
    return t, array


def _back(base: Tensor, parts: list[Any], value: Any) -> Any:
    """The whole memory, once a base that is a part of it has another value."""
    path = base._rare.path
    if any([view.write is None for view in path]):
        whole = parts[0]
        strides = base._rare.memory.strides
        number = np.empty(math.prod(whole.shape), np.int64)
        number[positions(whole.shape, strides, 0).ravel()] = np.arange(number.size)
        return Gather(number[positions(value.shape, *place_of(base))], (), 0).write(leaf_of(whole), whole, value)
    for view, part in zip(reversed(path), reversed(parts), strict=True):
        value = view.write(leaf_of(part), part, value)
    return value


# --- out of memory, and to another ---


def stand_alone(x: Tensor) -> None:
    """Make a view a tensor with a history of its own, on the same memory."""
    alias = detached(x)
    memory = x._rare.memory
    known, seen = x._rare, alias._rare
    seen.grad, seen.post, seen.was_view = known.grad, known.post, True
    x._rare = seen
    memory.aliases = [reference for reference in memory.aliases if reference() is not alias]
    if memory.buffer is None:
        x._array = alias._array
        memory.add(x)


def leave(base: Tensor, *, alone: bool = False) -> None:
    """Take a tensor out of the memory that it shared, for another value. Its views stay there, with its history.

    What nobody else has it keeps: who saved it is to notice the next write.
    """
    rare = base._rare
    if rare is None or rare.memory is None:
        return
    others = [t for t in rare.memory.living() if t is not base]
    if any([t._rare.parent is not None and base_of(t) is base for t in others]):
        others.append(_stand_in(base, others))
    array = base._array if alone else var_of(copied(values(base)), node_of_base(base))
    rare.memory.aliases = [weakref.ref(t) for t in others]
    rare.version = counter_of(base).version
    rare.memory, rare.path, rare.place, rare.node, rare.silent = None, (), None, None, None
    rare.moved = False
    rare.entangled = rare.retains or rare.inference or rare.where is not None
    base._array = array


def move(x: Tensor, other: Tensor) -> None:
    """Put a tensor on the memory of another one, as the same part of it. Its history stays, its views where they were.

    It counts its writes for itself, as what `.data` gives.
    """
    known = x._rare
    version = 0 if known is None else known.version if known.memory is None else counter_of(x).version
    if is_view(x):
        node, memory = x._array.node, x._rare.memory
        memory.aliases = [known for known in memory.aliases if known() is not x]
        parts = [t for t in memory.living() if t._rare.parent is x]
        if parts:
            memory.add(_stand_in(x, parts))
    else:
        leave(x)
        node = node_of_base(x)
    alias = detached(other, silent=True)
    old, rare = x._rare, alias._rare
    if old is not None:
        for name in ("grad", "grad_dtype", "post", "retains", "retained_at", "inference"):
            setattr(rare, name, getattr(old, name))
    rare.silent.version, rare.moved = version, True
    memory = rare.memory
    memory.aliases = [known for known in memory.aliases if known() is not alias]
    value = values(alias)
    if node.__class__ is Accumulate and node.shape != value.shape:
        node = outgrown(x, node, value)
    elif node.__class__ is Accumulate:
        node.value, node.level = value, level_of(other)
    x._dtype, x._rare = alias._dtype, rare
    if memory.buffer is None:
        x._array = var_of(value, node)
        if rare.path:
            memory.read(x._array)
    else:
        forget(x)
        rare.node = node
    memory.add(x)


def outgrown(x: Tensor, node: Any, value: Any) -> Any:
    """The new node of a leaf that gets another shape. Graphs that have the old one give it no gradient any more."""
    made: Any = leaf_node(value, x)
    if (marks := getattr(node, "marks", None)) is not None:  # its hooks go on
        made.marks = marks
    node.__class__ = Outgrown
    some_outgrown[0] = True
    return made


_STANDS_FOR = (
    "memory", "path", "place", "node", "silent", "inference", "entangled", "where", "parent", "view", "creation",
    "quiet", "tracked", "named", "seen",
)  # fmt: skip


def _stand_in(base: Tensor, others: list[Tensor]) -> Tensor:
    """A tensor with the memory and the history of another, in its place as the base of its views."""
    made: Tensor = new(Tensor)
    made._dtype, made._rare = base._dtype, Rare()
    for name in _STANDS_FOR:
        setattr(made._rare, name, getattr(base._rare, name))
    if base._rare.memory.buffer is None:
        made._array = base._array
    for x in others:
        if x._rare.parent is base:
            x._rare.parent = made
    return made


def leave_if_alone(x: Tensor) -> None:
    """Take a tensor out of memory that nothing else shares any more, so that writes are quick again."""
    memory = x._rare.memory
    memory.aliases = [known for known in memory.aliases if known() is not None]
    rare = x._rare
    if len(memory.aliases) > 1 or memory.unread or memory.buffer is not None or rare.parent is not None:
        return
    memory.copies = [known for known in memory.copies if known() is not None]
    if not memory.copies and not (rare.path if rare.moved else rare.silent is not None):
        leave(x, alone=True)
