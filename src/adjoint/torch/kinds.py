"""Kinds of views, and strides: where the elements of a view are in its parent and in memory."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from adjoint.graph.nodes import Var, var_of
from adjoint.primitives import ARRAY
from adjoint.torch.devices import numpy_of
from adjoint.torch.tensor import leaf_of

MULTIPLE_PLACES = (
    "unsupported operation: more than one element of the written-to tensor refers to a single memory location. "
    "Please clone() the tensor before performing the operation."
)

# --- kinds of views -------------------------------------------------------------------------------
# Each reads its value out of the parent's, and puts another one back, on a level or below it.


class Alias:
    """All of the parent."""

    def read(self, B: Any, parent: Any) -> Any:
        # another array, for the level to record that there is a view
        return B.reshape(parent, shape=tuple(parent.shape))

    def write(self, B: Any, parent: Any, part: Any) -> Any:
        return part

    def place(self, shape: Any, strides: Any, offset: int) -> Any:
        return strides, offset


class Reshape:
    """The parent's elements in another shape; `strides` in terms of memory."""

    old: Any
    shape: Any
    strides: Any

    def __init__(self, old: Any, shape: Any, strides: Any) -> None:
        self.old, self.shape, self.strides = old, shape, strides

    def read(self, B: Any, parent: Any) -> Any:
        return B.reshape(parent, shape=self.shape)

    def write(self, B: Any, parent: Any, part: Any) -> Any:
        return B.reshape(part, shape=self.old)

    def place(self, shape: Any, strides: Any, offset: int) -> Any:
        return self.strides, offset


class Permute:
    def __init__(self, axes: tuple[int, ...]) -> None:
        self.axes = axes
        self.inverse: tuple[int, ...] = tuple(sorted(range(len(axes)), key=axes.__getitem__))

    def read(self, B: Any, parent: Any) -> Any:
        return B.permute_dims(parent, axes=self.axes)

    def write(self, B: Any, parent: Any, part: Any) -> Any:
        return B.permute_dims(part, axes=self.inverse)

    def place(self, shape: Any, strides: Any, offset: int) -> Any:
        return tuple([strides[i] for i in self.axes]), offset


class Index:
    """Integers, ranges and None, one for every axis."""

    __slots__ = ("key",)

    def __init__(self, key: tuple[Any, ...]) -> None:
        self.key: tuple[Any, ...] = key

    def read(self, B: Any, parent: Any) -> Any:
        return B.index(parent, key=self.key)

    def write(self, B: Any, parent: Any, part: Any) -> Any:
        return B.index_set(parent, part, key=self.key)

    def place(self, shape: Any, strides: Any, offset: int) -> Any:
        out, axis = [], 0
        for entry in self.key:
            if entry is None:
                out.append(shape[axis] * strides[axis] if axis < len(shape) else 1)
                continue
            if isinstance(entry, int):
                offset += entry * strides[axis]
            else:
                offset += entry.start * strides[axis] if len(entry) or entry.start < shape[axis] else 0
                out.append(strides[axis] * entry.step)
            axis += 1
        return (*out, *strides[axis:]), offset


class Expand:
    """Broadcast: several elements in one place."""

    def __init__(self, shape: Any) -> None:
        self.shape = shape

    def read(self, B: Any, parent: Any) -> Any:
        return B.broadcast_to(parent, shape=self.shape)

    write: Any = None

    def place(self, shape: Any, strides: Any, offset: int) -> Any:
        new_axes = len(self.shape) - len(shape)
        stretched = [0 if n != m else s for n, m, s in zip(shape, self.shape[new_axes:], strides, strict=True)]
        return (*[0] * new_axes, *stretched), offset


class Gather:
    """Any places of the parent, by their numbers in its order."""

    numbers: Any
    offset: int
    strides: Any

    def __init__(self, numbers: Any, strides: Any, offset: int) -> None:
        self.numbers, self.strides, self.offset = numbers, strides, offset

    def read(self, B: Any, parent: Any) -> Any:
        flat = B.reshape(parent, shape=(math.prod(parent.shape),))
        return B.index(flat, _lifted(B, self.numbers), key=(ARRAY,))

    def write(self, B: Any, parent: Any, part: Any) -> Any:
        shape = tuple(parent.shape)
        if repeats(self):
            tracked = part.__class__ is Var and part.node is not None
            if tracked or np.unique(numpy_of(part.value if part.__class__ is Var else part)).size > 1:
                raise RuntimeError(MULTIPLE_PLACES)
            return self._filled(B, parent, part, shape)
        flat = B.reshape(parent, shape=(math.prod(shape),))
        return B.reshape(B.index_set(flat, part, _lifted(B, self.numbers), key=(ARRAY,)), shape=shape)

    def _filled(self, B: Any, parent: Any, part: Any, shape: Any) -> Any:
        """One number in several elements of one place: put there once."""
        mask = np.zeros(math.prod(shape), bool)
        mask[self.numbers.ravel()] = True
        fill = numpy_of(part.value if part.__class__ is Var else part).reshape(-1)[0]
        return B.where(_lifted(B, mask.reshape(shape)), _lifted(B, fill), parent)

    def place(self, shape: Any, strides: Any, offset: int) -> Any:
        return self.strides, self.offset


class Part:
    """The real or the imaginary part."""

    def __init__(self, name: str) -> None:
        self.name = name

    def read(self, B: Any, parent: Any) -> Any:
        return B[self.name](parent)

    def write(self, B: Any, parent: Any, part: Any) -> Any:
        dtype = B.dtype_of(parent)
        rest = B.astype(B.real(parent) if self.name == "imag" else B.imag(parent), dtype=dtype)
        part = B.astype(part, dtype=dtype)
        if self.name == "imag":
            return B.add(rest, B.multiply(part, 1j))
        return B.add(part, B.multiply(rest, 1j))

    def place(self, shape: Any, strides: Any, offset: int) -> Any:
        return tuple([2 * s for s in strides]), 2 * offset + (self.name == "imag")


class Halves:
    """Complex numbers as pairs of real ones, along a last axis."""

    def read(self, B: Any, parent: Any) -> Any:
        shape = (*parent.shape, 1)
        pair = B.reshape(B.real(parent), shape=shape), B.reshape(B.imag(parent), shape=shape)
        return B.concat(*pair, axis=len(shape) - 1)

    def write(self, B: Any, parent: Any, part: Any) -> Any:
        return Whole(B.dtype_of(parent)).read(B, part)

    def place(self, shape: Any, strides: Any, offset: int) -> Any:
        return (*[2 * s for s in strides], 1), 2 * offset


class Whole:
    """Pairs of real numbers along the last axis as complex ones."""

    def __init__(self, dtype: Any) -> None:
        self.dtype = dtype

    def read(self, B: Any, parent: Any) -> Any:
        front = tuple([range(n) for n in parent.shape[:-1]])
        real, imag = (B.astype(B.index(parent, key=(*front, i)), dtype=self.dtype) for i in (0, 1))
        return B.add(real, B.multiply(imag, 1j))

    def write(self, B: Any, parent: Any, part: Any) -> Any:
        return Halves().read(B, part)

    def place(self, shape: Any, strides: Any, offset: int) -> Any:
        return tuple([s // 2 for s in strides[:-1]]), offset // 2


class Bits:
    """The same bits as numbers of another type, which have no gradient."""

    dtype: Any
    old: Any

    def __init__(self, old: Any, dtype: Any) -> None:
        self.old, self.dtype = old, dtype

    def read(self, B: Any, parent: Any) -> Any:
        value = parent.value if parent.__class__ is Var else parent
        made = np.ascontiguousarray(numpy_of(value)).reshape(value.shape).view(self.dtype)
        if not isinstance(value, np.ndarray):
            made = leaf_of(value).from_numpy(made, copy=True)
        return var_of(made, None) if parent.__class__ is Var else made

    def write(self, B: Any, parent: Any, part: Any) -> Any:
        return Bits(self.dtype, self.old).read(B, part)

    def place(self, shape: Any, strides: Any, offset: int) -> Any:
        old, new = self.old.itemsize, self.dtype.itemsize
        if old == new:
            return strides, offset
        return (*[s * old // new for s in strides[:-1]], 1), offset * old // new


def repeats(view: Any) -> bool:
    """Whether a view names places by their numbers, and one of them twice."""
    return view.__class__ is Gather and np.unique(view.numbers).size != view.numbers.size


ALIAS = Alias()


def _lifted(B: Any, values: Any) -> Any:
    """Values of NumPy's as a constant of a backend."""
    return B.lift(B.leaf.from_numpy(np.asarray(values), copy=False), B.leaf)


# --- strides ----------------------------------------------------------------------------------------


def contiguous_strides(shape: Any) -> tuple[int, ...]:
    strides, step = [], 1
    for n in reversed(shape):
        strides.append(step)
        step *= max(n, 1)
    return tuple(reversed(strides))


def dense_strides(value: Any) -> tuple[int, ...]:
    """The strides of an array, in elements, with its axes in the order in which they are in memory, without gaps."""
    shape, given = value.shape, value.strides if isinstance(value, np.ndarray) else ()
    if len(shape) < 2 or not given or value.flags.c_contiguous:
        return contiguous_strides(shape)
    order = sorted(range(len(shape)), key=lambda i: (-abs(given[i]), i))
    strides, step = [0] * len(shape), 1
    for i in reversed(order):
        strides[i] = step
        step *= max(shape[i], 1)
    return tuple(strides)


def stretched_strides(value: Any) -> tuple[int, ...]:
    """The same of an array inside of a function transform, where broadcast axes have the stride 0."""
    if not isinstance(value, np.ndarray) or all([s or n < 2 for s, n in zip(value.strides, value.shape, strict=True)]):
        return dense_strides(value)
    wide = [s == 0 and n > 1 for s, n in zip(value.strides, value.shape, strict=True)]
    rest = iter(dense_strides(value[tuple([0 if w else slice(None) for w in wide])]))
    return tuple([0 if w else next(rest) for w in wide])


def strides_contiguous(shape: Any, strides: Any) -> bool:
    if 0 in shape:
        return True
    step = 1
    for n, s in zip(reversed(shape), reversed(strides), strict=True):
        if n != 1:
            if s != step:
                return False
            step *= n
    return True


def is_dense(shape: Any, strides: Any) -> bool:
    """Whether the elements lie without gaps and each in a place of its own."""
    step = 1
    for s, n in sorted((s, n) for n, s in zip(shape, strides, strict=True) if n != 1):
        if n == 0:
            return True
        if s != step:
            return False
        step *= n
    return True


def view_strides(old: Any, strides: Any, shape: Any) -> tuple[int, ...] | None:
    """The strides of the same memory in another shape, None where there are none: axes are split, and joined where
    one continues the other."""
    if 0 in old:
        return contiguous_strides(shape) if tuple(old) != tuple(shape) else tuple(strides)
    out = [0] * len(shape)
    at = len(shape) - 1
    chunk = strides[-1] if old else 1
    count = view_count = 1
    if not old:
        return (1,) * len(shape)
    for i in reversed(range(len(old))):
        count *= old[i]
        if i == 0 or (old[i - 1] != 1 and strides[i - 1] != count * chunk):
            while at >= 0 and (view_count < count or shape[at] == 1):
                out[at] = view_count * chunk
                view_count *= shape[at]
                at -= 1
            if view_count != count:
                return None
            if i > 0:
                chunk = strides[i - 1]
                count = view_count = 1
    return tuple(out) if at == -1 else None


def positions(shape: Any, strides: Any, offset: int) -> Any:
    """Where in memory each element is."""
    where = np.full((), offset, np.int64)
    for n, s in zip(shape, strides, strict=True):
        where = where[..., None] + np.arange(n) * s
    return where
