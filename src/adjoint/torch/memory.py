"""Shared memory: views, detached tensors, NumPy's arrays, and how they are read after a write (`writes.py`).

A `Memory` has one value, the whole of it. A *base* is a tensor with a history of its own: the tensor that was there
first, and what `detach` made. A *view* has a parent, and is read and written through it: a write to `x[0]` gives the
base of x another value, by `index_set`, which is differentiable, and everything else on the memory reads again.
"""

from __future__ import annotations

import weakref
from typing import Any

import numpy as np

from adjoint.graph.nodes import Var, var_of
from adjoint.torch import lifted, state
from adjoint.torch.devices import dtype_of
from adjoint.torch.graph import Accumulate, keep, label, move_retained
from adjoint.torch.kinds import (
    Bits,
    Gather,
    Halves,
    Part,
    Whole,
    dense_strides,
    positions,
    stretched_strides,
    strides_contiguous,
)
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
    known_array,
    leaf_node,
    leaf_of,
    level_of,
    new,
    rare_of,
    refuse_numpy,
    values,
)


class Memory:
    """What tensors that share memory have in common."""

    __slots__ = ("aliases", "buffer", "copies", "strides", "unread", "value", "version")

    def __init__(self, value: Any, version: int) -> None:
        self.value: Any = value
        self.version: int = version
        self.strides: tuple[int, ...] = dense_strides(value)
        self.buffer: Any = None  # an array of NumPy's that users write to
        self.aliases: list[weakref.ref[Tensor]] = []  # all tensors on it that live, but for
        self.unread: dict[int, weakref.ref[Tensor]] = {}  # views that were not read since it was written to
        self.copies: list[weakref.ref[Any]] = []  # values of views that are no views of NumPy's

    def add(self, x: Tensor) -> None:
        self.aliases.append(weakref.ref(x))
        if self.unread:
            self.unread.pop(id(x), None)
        if len(self.aliases) > 64 and len(self.aliases).bit_count() == 1:
            self.aliases = [known for known in self.aliases if known() is not None]

    def living(self) -> list[Tensor]:
        """All tensors on it."""
        found = [*self.aliases, *self.unread.values()]
        return list({id(t): t for reference in found if (t := reference()) is not None}.values())

    def forget(self, x: Tensor) -> None:
        """A view is to be read again, and until then writes need not look at it."""
        forget_view(x)
        key, unread = id(x), self.unread
        unread[key] = weakref.ref(x, lambda _: unread.pop(key, None))

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
        refuse_left(x)
        if rare.parent is None:  # beside an array of NumPy's, which may change at any time
            array = var_of(copied(whole_of(rare)), rare.node)
            self.read(array)
            return array
        if rare.creation is not None and rare.seen != self.version:
            if modes.enabled and base_of(x).requires_grad:
                raise RuntimeError(refusal(rare, indirect=True))
            return var_of(copied(self.values_again(x)), None)
        if rare.quiet:
            value = copied(self.values_again(x))
            return var_of(value, _nowhere(x, value))
        if self.buffer is not None:
            known = rare.node if rare.seen == self.version else None
            if known is not None or node_of_base(base_of(x)) is None:  # the values alone may be new
                array = var_of(copied(self.values_again(x)), known)
                self.read(array)
                return array
        array = rare.view.read(level_of(x), rare.parent._array)
        rare.tracked = array.node is not None
        if rare.view.__class__ is Gather and rare.tracked:
            keep(array.node, None)
        if rare.seen != self.version:
            label(array.node, "AsStrided")
            rare.seen = self.version
        elif rare.named is not None and array.node is not None:
            array.node.marks = rare.named
        if rare.retains and array.node is not None and array.node is not rare.retained_at:
            move_retained(x, rare.retained_at, array.node)
            rare.retained_at = array.node
        self.add(x)
        if self.buffer is not None:
            rare.node = array.node
        else:
            x._array = array
            self.read(array)
        return array  # type: ignore[no-any-return]

    def values_again(self, x: Tensor) -> Any:
        """The values of the same, for a look."""
        rare = x._rare
        refuse_left(x)
        if rare.parent is None:
            return whole_of(rare)
        whole = values(rare.parent)
        return rare.view.read(leaf_of(whole), whole)

    def copied_with(self, x: Tensor, memo: dict[int, Any]) -> Tensor:
        """A copy of a tensor, which shares memory with the copies, known to `memo`, of what shares memory with it."""
        known = memo.get(id(self))
        if known is None:
            known = memo[id(self)] = constant(copied(self.value))
        out = detached(known)
        rare = out._rare
        rare.path = base_and_path(x)[1]
        out._dtype = x._dtype
        out._array = var_of(whole_of(rare), None)
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


def base_and_path(x: Tensor) -> tuple[Tensor, tuple[Any, ...]]:
    """The same, and the views that lead from the memory's value to the tensor."""
    path: tuple[Any, ...] = ()
    while x._rare.parent is not None:
        path = (x._rare.view, *path)
        x = x._rare.parent
    return x, x._rare.path + path


def views_of(x: Tensor) -> list[Tensor]:
    """The views from a tensor to its base, which is left out."""
    chain = []
    while x._rare.parent is not None:
        chain.append(x)
        x = x._rare.parent
    return chain


def counter_of(x: Tensor) -> Any:
    """What counts the writes to a tensor that shares memory: the memory, or what `.data` gave."""
    base = base_of(x)._rare
    return base.memory if base.silent is None else base.silent


def node_of_base(base: Tensor) -> Any:
    """The node of a tensor that is no view."""
    if base._rare is not None and base._rare.memory is not None and base._rare.memory.buffer is not None:
        return base._rare.node
    return base._array.node


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


def numbers_in(base: Tensor, where: Any) -> Any:
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
            if view.__class__ is Gather:
                keep(node, None)
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
    memory.add(out)
    if memory.buffer is not None:
        rare.node = array.node
        rare.named = None if array.node is None else array.node.marks
        forget(out)
    else:
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
    base, path = base_and_path(x)
    out: Tensor = new(Tensor)
    out._dtype = x._dtype
    out._rare = rare = Rare()
    rare.memory, rare.path, rare.entangled, rare.where = memory, path, True, base._rare.where
    rare.place = place_of(x)
    rare.silent = Apart(memory) if silent else base._rare.silent
    rare.inference = x._rare.inference
    if state.special:
        rare.born = modes.transforms
    if memory.buffer is None:
        out._array = var_of(whole_of(rare) if silent else values(x), None)
        if rare.path:  # a view that was not looked at yet has nothing that the memory knows
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
    parent, numbers = x, numbers_in(x, where)
    if (numbers < 0).any() and not is_lifted(x):
        for view in views_of(x):  # up to where the elements are of another kind
            if isinstance(view._rare.view, (Bits, Halves, Part, Whole)):
                break
            parent = view._rare.parent
        numbers = numbers_in(parent, where)
        if x._rare.creation is not None:
            numbers = np.full(1, -1)
    if (numbers < 0).any():
        raise RuntimeError("as_strided: adjoint.torch has no views that reach beyond the tensor's own memory")
    return view_of(parent, Gather(numbers, tuple(strides), offset), name)


def whole_of(rare: Any) -> Any:
    """The values of a tensor that is no view, in its memory."""
    value = rare.memory.value if rare.silent is None else rare.silent.value
    for view in rare.path:
        value = view.read(leaf_of(value), value)
    return value


# --- NumPy's memory ---------------------------------------------------------------------------------


def share_with_numpy(x: Tensor) -> Any:
    """The tensor's values as an array that shares its memory, from now on."""
    refuse_numpy(x)
    memory = memory_of(x)
    if memory.buffer is None:
        bases = memory.living()
        nodes = [(t, t._array.node) for t in bases if t._rare.parent is None]
        nodes += [(t, node_of_view(t)) for t in bases if t._rare.parent is not None]
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
    for alias in memory.living():
        if alias._rare.parent is not None and base_of(alias) is base:
            forget_view(alias)


def node_of_view(x: Tensor) -> Any:
    """The node of a view that has one and is not to be read again."""
    rare = x._rare
    array = rare.away if rare.where is not None else known_array(x)
    node = None if array is None or rare.memory.buffer is not None else array.node
    return None if node.__class__ is Accumulate else node


def forget_view(x: Tensor) -> None:
    """A view is to be read again: what hangs on its old node is of the old value."""
    if x._rare.retains and x._rare.retained_at is not None:
        move_retained(x, x._rare.retained_at, None)
        x._rare.retained_at = None
    x._rare.node = None
    forget(x)


def refuse_left(x: Tensor) -> None:
    """A view whose base took another value by `x.data = y` is not read or written to any more."""
    if base_of(x)._rare.memory is not x._rare.memory:
        raise NotImplementedError("adjoint.torch: the tensor is a view of one that got other memory by x.data = y")


def is_same_part(x: Tensor, other: Tensor) -> bool:
    """Whether two tensors are the same part of one memory."""
    if x._rare is None or other._rare is None or x._rare.memory is None or other._rare.memory is not x._rare.memory:
        return False
    return (shape_of(x), place_of(x)) == (shape_of(other), place_of(other))
