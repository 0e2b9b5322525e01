"""Shared memory: views, detached tensors, NumPy's arrays, and what a write to one of them does to the others.

A `Memory` has one value, the whole of it. A *base* is a tensor with a history of its own: the tensor that was there
first, and what `detach` made. A *view* has a parent, and is read and written through it: a write to `x[0]` gives the
base of x another value, by `index_set`, which is differentiable, and everything else on the memory reads again.
"""

from __future__ import annotations

import math
import weakref
from typing import Any

import numpy as np

from adjoint.graph.nodes import Var, var_of
from adjoint.torch import lifted, state
from adjoint.torch.devices import dtype_of
from adjoint.torch.graph import Accumulate, is_hooked, label, move_retained, overwritten, result_overwritten
from adjoint.torch.kinds import (
    MULTIPLE_PLACES,
    Gather,
    dense_strides,
    is_dense,
    positions,
    repeats,
    stretched_strides,
    strides_contiguous,
)
from adjoint.torch.refusals import OVERLAP as OVERLAP
from adjoint.torch.refusals import InFunction as InFunction
from adjoint.torch.refusals import refusal
from adjoint.torch.state import modes
from adjoint.torch.tensor import (
    LEVEL,
    Rare,
    Tensor,
    constant,
    copied,
    forget,
    is_lifted,
    leaf_node,
    leaf_of,
    level_of,
    new,
    next_number,
    rare_of,
    refuse_numpy,
    values,
)


class Memory:
    """What tensors that share memory have in common."""

    __slots__ = ("aliases", "buffer", "copies", "strides", "value", "version")

    def __init__(self, value: Any, version: int) -> None:
        self.value: Any = value
        self.version: int = version
        self.strides: tuple[int, ...] = dense_strides(value)
        self.buffer: Any = None  # an array of NumPy's that users write to
        self.aliases: list[weakref.ref[Tensor]] = []  # all tensors on it that live
        self.copies: list[weakref.ref[Any]] = []  # values of views that are no views of NumPy's

    def add(self, x: Tensor) -> None:
        self.aliases.append(weakref.ref(x))
        if len(self.aliases) > 64 and len(self.aliases).bit_count() == 1:
            self.aliases = [known for known in self.aliases if known() is not None]

    def read(self, array: Var) -> None:
        """Note the value of a view, which a graph may save: it counts as overwritten when the memory is."""
        value = array.value
        if isinstance(value, np.generic):  # a single element
            value = array.value = np.asarray(value)
        if not isinstance(value, np.ndarray) or value.base is None:
            self.copies.append(weakref.ref(value))
            if len(self.copies) > 64 and len(self.copies).bit_count() == 1:
                self.copies = [known for known in self.copies if known() is not None]

    def read_again(self, x: Tensor) -> Var:
        """The array of what shares memory that was written to."""
        rare = x._rare
        _refuse_left(x)
        if rare.parent is None:  # beside an array of NumPy's, which may change at any time
            array = var_of(copied(_whole(rare)), rare.node)
            self.read(array)
            return array
        if rare.creation is not None and rare.seen != self.version:
            if modes.enabled and base_of(x).requires_grad:
                raise RuntimeError(refusal(rare, indirect=True))
            return var_of(copied(self.values_again(x)), None)
        if rare.quiet:
            value = copied(self.values_again(x))
            return var_of(value, _nowhere(x, value))
        if self.buffer is not None and node_of_base(base_of(x)) is None:
            return var_of(np.array(self.values_again(x)), None)
        array = rare.view.read(level_of(x), rare.parent._array)
        rare.tracked = array.node is not None
        if rare.seen != self.version:
            label(array.node, "AsStrided")
            rare.seen = self.version
        elif rare.named is not None and array.node is not None:
            array.node.marks = rare.named
        if rare.retains and array.node is not None and array.node is not rare.retained_at:
            move_retained(x, rare.retained_at, array.node)
            rare.retained_at = array.node
        if self.buffer is None:
            x._array = array
            self.add(x)
            self.read(array)
        return array  # type: ignore[no-any-return]

    def values_again(self, x: Tensor) -> Any:
        """The values of the same, for a look."""
        rare = x._rare
        _refuse_left(x)
        if rare.parent is None:
            return _whole(rare)
        whole = values(rare.parent)
        return rare.view.read(leaf_of(whole), whole)

    def copied_with(self, x: Tensor, memo: dict[int, Any]) -> Tensor:
        """A copy of a tensor, which shares memory with the copies, known to `memo`, of what shares memory with it."""
        known = memo.get(id(self))
        if known is None:
            known = memo[id(self)] = constant(copied(self.value))
        out = detached(known)
        path: tuple[Any, ...] = ()
        base = x
        while base._rare.parent is not None:
            path = (base._rare.view, *path)
            base = base._rare.parent
        rare = out._rare
        rare.path = base._rare.path + path
        out._dtype = x._dtype
        out._array = var_of(_whole(rare), None)
        rare.place = place_of(x)
        if rare.where is not None and rare.path:
            rare.memory.read(out._array)
        return out


class Apart:
    """What `x.data` and what is made of it have in common: the same memory, and a count of writes of their own.

    To graphs, too, it is another value, in an array of its own that shares memory with that of the others.
    """

    __slots__ = ("value", "version")

    def __init__(self, memory: Memory) -> None:
        self.version = 0
        self.value: Any = None
        self.look(memory)

    def look(self, memory: Memory) -> None:
        """See the memory's value, which is a new one."""
        known: Any = memory.value
        own = isinstance(known, (np.ndarray, np.generic)) and memory.buffer is None
        whole: Any = np.asarray(known) if own else known
        self.value = np.asarray(memoryview(whole)) if own else known


def memory_of(x: Tensor) -> Memory:
    """The memory of a tensor, from now on shared."""
    rare = rare_of(x)
    if rare.memory is None:
        rare.memory = Memory(x._array.value, rare.version)
        rare.entangled = True
        rare.memory.add(x)
    return rare.memory  # type: ignore[no-any-return]


def base_of(x: Tensor) -> Tensor:
    """The tensor whose history a view is part of."""
    while x._rare is not None and x._rare.parent is not None:
        x = x._rare.parent
    return x


def counter_of(x: Tensor) -> Any:
    """What counts the writes to a tensor that shares memory: the memory, or what `.data` gave."""
    base = base_of(x)._rare
    return base.memory if base.silent is None else base.silent


def is_view(x: Tensor) -> bool:
    return x._rare is not None and x._rare.parent is not None


def place_of(x: Tensor) -> tuple[tuple[int, ...], int]:
    """Strides and offset of a tensor in its memory, in elements."""
    rare = x._rare
    if rare is None or rare.memory is None:
        own = values(x)
        return (dense_strides(own) if rare is None or rare.inner is None else stretched_strides(own)), 0
    if rare.place is None:
        if rare.parent is not None:
            rare.place = rare.view.place(shape_of(rare.parent), *place_of(rare.parent))
        else:
            value, place = rare.memory.value, (rare.memory.strides, 0)
            for view in rare.path:
                place = view.place(value.shape, *place)
                value = view.read(leaf_of(value), value)
            rare.place = place
    return rare.place  # type: ignore[no-any-return]


def shape_of(x: Tensor) -> tuple[int, ...]:
    return values(x).shape  # type: ignore[no-any-return]


def is_contiguous(x: Tensor) -> bool:
    if x._rare is None:
        value = values(x)
        return not isinstance(value, np.ndarray) or value.flags.c_contiguous or not value.size
    return strides_contiguous(shape_of(x), place_of(x)[0])


def _numbers_in(base: Tensor, where: Any) -> Any:
    """The numbers, in a tensor's order, of elements at places in memory; -1 where it has none."""
    own = positions(shape_of(base), *place_of(base))
    size = max(int(own.max(initial=-1)), int(where.max(initial=-1))) + 1
    number = np.full(size, -1)
    number[own.ravel()] = np.arange(own.size)
    return number[where]


# --- making views -----------------------------------------------------------------------------------


def view_of(x: Tensor, view: Any, name: str, creation: Any = None) -> Tensor:
    """A view of a tensor. `creation` says of one of several results what made it."""
    parent = x._rare
    if parent is not None and parent.inner is not None:
        return lifted.view_of(x, view)
    quiet = bool(state.special) and not modes.enabled
    if quiet:
        creation = creation or ("inference" if modes.inference else "no_grad")
        whole = values(x)
        value = view.read(leaf_of(whole), whole)
        array = var_of(value, _nowhere(x, value))
    else:
        if creation is None and parent is not None and parent.creation is not None:
            creation = parent.creation
            if isinstance(creation, tuple):
                creation = (name.partition("Backward")[0], 0)
        array = view.read(LEVEL if parent is None or parent.where is None else parent.where.level, x._array)
        if (node := array.node) is not None:  # one node to users, whatever it is made of
            whole = x._array.node
            node.marks = name if node.first is whole else (name, whole.number, None)
    memory = memory_of(x) if parent is None or parent.memory is None else parent.memory
    out: Tensor = new(Tensor)
    out._rare = rare = Rare()
    out._array = array
    out._dtype = dtype_of(array.value)
    rare.memory, rare.parent, rare.view, rare.entangled = memory, x, view, True
    rare.seen, rare.tracked = memory.version, array.node is not None
    if creation is not None:
        rare.creation, rare.quiet = creation, quiet
    if parent is not None and parent.inference:
        rare.inference = True
    if memory.buffer is not None:
        forget(out)
    else:
        memory.add(out)
        memory.read(array)
    return out


def _nowhere(x: Tensor, value: Any) -> Any:
    """The node of a view that no_grad made of a tracked tensor: it asks for a gradient, and passes none on."""
    return leaf_node(value, None) if base_of(x).requires_grad else None


def detached(x: Tensor, *, silent: bool = False) -> Tensor:
    """A tensor without history that shares the memory."""
    if is_lifted(x):
        return lifted.detached(x)
    memory = memory_of(x)
    path: tuple[Any, ...] = ()
    base = x
    while base._rare.parent is not None:
        path = (base._rare.view, *path)
        base = base._rare.parent
    out: Tensor = new(Tensor)
    out._dtype = x._dtype
    out._rare = rare = Rare()
    rare.memory, rare.path, rare.entangled, rare.where = memory, base._rare.path + path, True, base._rare.where
    rare.place = place_of(x)
    rare.silent = Apart(memory) if silent else base._rare.silent
    rare.inference = x._rare.inference
    if state.special:
        rare.born = modes.transforms
    if memory.buffer is None:
        out._array = var_of(_whole(rare) if silent else values(x), None)
        if rare.path and (silent or rare.where is not None):
            memory.read(out._array)
    memory.add(out)
    return out


def strided(x: Tensor, shape: Any, strides: Any, offset: int, name: str) -> Tensor:
    """A view by sizes, strides and offset in memory, of x, or of its base where it reaches further."""
    if len(shape) != len(strides):
        raise RuntimeError("mismatch in length of strides and shape")
    if not is_lifted(x):
        memory_of(x)
    if modes.enabled and not is_lifted(x):
        x._array  # noqa: B018  # which may not be read any more
    where = positions(shape, strides, offset)
    parent, numbers = x, _numbers_in(x, where)
    if (numbers < 0).any() and not is_lifted(x):
        parent = base_of(x)
        numbers = _numbers_in(parent, where)
        if x._rare.creation is not None:
            numbers = np.full(1, -1)
    if (numbers < 0).any():
        raise RuntimeError("as_strided: adjoint.torch has no views that reach beyond the tensor's own memory")
    return view_of(parent, Gather(numbers, tuple(strides), offset), name)


def _whole(rare: Any) -> Any:
    value = rare.memory.value if rare.silent is None else rare.silent.value
    for view in rare.path:
        value = view.read(leaf_of(value), value)
    return value


# --- writing ----------------------------------------------------------------------------------------


def refuse_inference(x: Tensor) -> None:
    """Raise if a tensor that was made in inference mode is to be written to outside of it."""
    if x._rare is not None and x._rare.inference and not modes.inference:
        raise RuntimeError(
            "Inplace update to inference tensor outside InferenceMode is not allowed."
            "You can make a clone to get a normal tensor before doing inplace update."
        )


def check_write(x: Tensor, others: Any = (), *, apart: bool = False, filling: bool = False) -> None:
    """Raise what PyTorch raises for in-place operations; `others` are the further operands.

    They may be all of x's memory, but no other part of it that meets x's; nor that, if they are to be `apart`.
    Several elements of x may be in one place where one number is to fill it.
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
            if x.requires_grad and is_hooked(x._array.node):  # the gradient of what is written goes to the base
                forget_view(x)
        if x.requires_grad and x.is_leaf:
            what = "a view of a leaf Variable" if rare is not None and rare.was_view else "a leaf Variable"
            raise RuntimeError(f"{what} that requires grad is being used in an in-place operation.")
    if rare is None or rare.memory is None:
        return
    _refuse_left(x)
    shape, (strides, offset) = shape_of(x), place_of(x)
    if filling:
        return
    if any([s == 0 and n > 1 for n, s in zip(shape, strides, strict=True)]):
        raise RuntimeError(MULTIPLE_PLACES)
    for other in others:
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
            label(array.node, "CopySlices")
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
    for reference in living:
        alias = reference()
        if alias is None:
            continue
        its = alias._rare
        if its.parent is not None:
            forget_view(alias)
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
                _give(alias, var_of(None, old_node), var_of(known if its.silent is None else _whole(its), new_node))
        elif memory.buffer is None:
            node = alias._array.node
            _give(alias, alias._array, var_of(_whole(its), node))
        if its.where is not None and its.path:  # the same values in another array
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


def node_of_base(base: Tensor) -> Any:
    """The node of a tensor that is no view."""
    if base._rare is not None and base._rare.memory is not None and base._rare.memory.buffer is not None:
        return base._rare.node
    return base._array.node


def _give(x: Tensor, old: Var, array: Var) -> None:
    node: Any = array.node
    if node.__class__ is Accumulate:
        node.value = array.value
    x._array = array
    if old.node is not array.node:
        move_retained(x, old.node, array.node)


def _through(x: Tensor, B: Any, array: Any, read: Any) -> tuple[Tensor, Any]:
    """The base of a tensor, and its array on B, once x has another one."""
    t = x
    chain = []
    while t._rare.parent is not None:
        chain.append(t)
        t = t._rare.parent
    if any([view._rare.view.write is None or repeats(view._rare.view) for view in chain]):
        numbers = _numbers_in(t, positions(shape_of(x), *place_of(x)))
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


# --- NumPy's memory ---------------------------------------------------------------------------------


def share_with_numpy(x: Tensor) -> Any:
    """The tensor's values as an array that shares its memory, from now on."""
    refuse_numpy(x)
    memory = memory_of(x)
    if memory.buffer is None:
        bases = [t for reference in memory.aliases if (t := reference()) is not None]
        nodes = [(t, t._array.node) for t in bases if t._rare.parent is None]
        memory.buffer = memory.value = np.array(memory.value)
        for t, node in nodes:
            t._rare.node = node
        for t in bases:
            forget(t)
    return values(x)


def of_numpy_array(array: Any) -> Tensor:
    """A tensor that shares the memory of an array."""
    x: Tensor = new(Tensor)
    x._dtype = array.dtype
    x._rare = rare = Rare()
    rare.memory, rare.entangled, rare.born = Memory(array, 0), True, modes.transforms
    rare.memory.add(x)
    rare.memory.buffer = array
    return x


def views_again(base: Tensor) -> None:
    """The history of a base is another one: its views are to be read again."""
    memory = base._rare.memory
    for reference in list(memory.aliases):
        alias = reference()
        if alias is not None and alias._rare.parent is not None and base_of(alias) is base:
            forget_view(alias)


def forget_view(x: Tensor) -> None:
    """A view is to be read again: what hangs on its old node is of the old value."""
    if x._rare.retains and x._rare.retained_at is not None:
        move_retained(x, x._rare.retained_at, None)
        x._rare.retained_at = None
    forget(x)


def _refuse_left(x: Tensor) -> None:
    """A view whose base took another value by `x.data = y` is not read or written to any more."""
    if base_of(x)._rare.memory is not x._rare.memory:
        raise NotImplementedError("adjoint.torch: the tensor is a view of one that got other memory by x.data = y")


def is_same_part(x: Tensor, other: Tensor) -> bool:
    """Whether two tensors are the same part of one memory."""
    if x._rare is None or other._rare is None or x._rare.memory is None or other._rare.memory is not x._rare.memory:
        return False
    return (shape_of(x), place_of(x)) == (shape_of(other), place_of(other))


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
    others = [t for reference in rare.memory.aliases if (t := reference()) is not None and t is not base]
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
        parts = [t for reference in memory.aliases if (t := reference()) is not None and t._rare.parent is x]
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
    if node.__class__ is Accumulate:
        node.value, node.shape, node.level = value, value.shape, level_of(other)
    x._dtype, x._rare = alias._dtype, rare
    if memory.buffer is None:
        x._array = var_of(value, node)
        if rare.path:
            memory.read(x._array)
    else:
        forget(x)
        rare.node = node
    memory.add(x)


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
    if len(memory.aliases) > 1 or memory.buffer is not None or rare.parent is not None:
        return
    memory.copies = [known for known in memory.copies if known() is not None]
    if not memory.copies and not (rare.path if rare.moved else rare.silent is not None):
        leave(x, alone=True)
