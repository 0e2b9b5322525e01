"""Functions that give views, and those that give one where memory allows it."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from adjoint import errors
from adjoint.torch import overriding
from adjoint.torch.arguments import one_of, public, tensor_of
from adjoint.torch.creation import size_of, sizes_of
from adjoint.torch.dtypes import dtype as _dtype
from adjoint.torch.functions import clone
from adjoint.torch.graph import label
from adjoint.torch.kinds import ALIAS, Bits, Expand, Index, Permute, Reshape, contiguous_strides, view_strides
from adjoint.torch.memory import place_of, shape_of, strided, view_of
from adjoint.torch.operators import FUNCTIONS, METHODS
from adjoint.torch.tensor import Tensor, adopt, axis_of, constant, copied, in_order, is_lifted, level_of, of, values

_NO_VIEW = (
    "view size is not compatible with input tensor's size and stride (at least one dimension spans across two "
    "contiguous subspaces). Use .reshape(...) instead."
)


def _shape_for(x: Tensor, size: Any) -> tuple[int, ...]:
    """The sizes of a new shape, where one may be -1."""
    if len(size) == 1 and isinstance(size[0], (tuple, list)):
        size = size[0]
    shape = [n if n.__class__ is int else size_of(n) for n in size]
    count = x.numel()
    if shape.count(-1) > 1:
        raise RuntimeError("only one dimension can be inferred")
    if any([n < -1 for n in shape]):
        raise RuntimeError(f"invalid shape dimension {min(shape)}")
    if -1 in shape:
        known = math.prod([n for n in shape if n != -1])
        if known == 0 and count == 0:
            raise RuntimeError(
                f"cannot reshape tensor of 0 elements into shape {shape} because the unspecified dimension size -1 "
                "can be any value and is ambiguous"
            )
        if known and count % known == 0:
            shape[shape.index(-1)] = count // known
    if math.prod(shape) != count or -1 in shape:
        raise RuntimeError(f"shape '{[size_of(n) for n in size]}' is invalid for input of size {count}")
    return tuple(shape)


def _as_type(x: Tensor, dtype: Any) -> Tensor:
    """The same bits as numbers of another type: along the last axis there are more or fewer of them."""
    if is_lifted(x):
        raise NotImplementedError("adjoint.torch: view(dtype) is not there inside of function transforms")
    old, new = x._dtype, dtype.of_numpy
    what = f"to view {x.dtype.class_name} as {dtype.class_name} (different element sizes)"
    if old.itemsize != new.itemsize:
        if not x.ndim:
            raise RuntimeError(f"self.dim() cannot be 0 {what}")
        strides, offset = place_of(x)
        if strides[-1] != 1 and x.shape[-1] != 1:
            raise RuntimeError(f"self.stride(-1) must be 1 {what}, but got {strides[-1]}")
        ratio = new.itemsize // old.itemsize
        if ratio > 1 and x.shape[-1] % ratio:
            raise RuntimeError(f"self.size(-1) must be divisible by {ratio} {what}, but got {x.shape[-1]}")
        if ratio > 1 and offset % ratio:
            raise RuntimeError(f"self.storage_offset() must be divisible by {ratio} {what}, but got {offset}")
        for i, s in enumerate(strides[:-1]):
            if ratio > 1 and s % ratio:
                raise RuntimeError(f"self.stride({i}) must be divisible by {ratio} {what}, but got {s}")
    return view_of(x, Bits(old, new), "View")


@public("view")
def view(self: Tensor, *shape: Any, size: Any = None, dtype: Any = None) -> Tensor:
    """The same memory in another shape."""
    if dtype is None and len(shape) == 1 and isinstance(shape[0], _dtype):
        (dtype,) = shape
    if dtype is not None:
        if not isinstance(dtype, _dtype):
            raise TypeError(f"view(): argument 'dtype' must be torch.dtype, not {type(dtype).__name__}")
        return view_of(self, ALIAS, "Alias") if dtype is self.dtype else _as_type(self, dtype)
    new = _shape_for(self, shape if size is None else (size,))
    strides = view_strides(shape_of(self), place_of(self)[0], new)
    if strides is None:
        raise RuntimeError(_NO_VIEW)
    return view_of(self, Reshape(shape_of(self), new, strides), "View")


FUNCTIONS.pop("view")


@public("view_as")
def view_as(self: Tensor, other: Tensor) -> Tensor:
    return view(self, tuple(other.shape))


FUNCTIONS.pop("view_as")


def _reshaped(x: Tensor, shape: tuple[int, ...], name: str) -> Tensor:
    """A view where the strides have one, else a copy."""
    strides = view_strides(shape_of(x), place_of(x)[0], shape)
    if strides is not None:
        return view_of(x, Reshape(shape_of(x), shape, strides), name)
    # a copy, which nothing else shares
    out = clone(x)
    from adjoint.torch.calls import off

    if is_lifted(out):
        return view_of(out, Reshape(shape_of(x), shape, contiguous_strides(shape)), name)
    if off() or out._array.node is None:
        return constant(in_order(level_of(x).inner.reshape(values(out), shape=shape)))
    array = level_of(x).reshape(x._array, shape=shape)
    label(array.node, "UnsafeView")
    array.value = copied(in_order(array.value))
    return of(array)


@public("reshape")
def reshape(input: Tensor, *given: Any, shape: Any = None) -> Tensor:
    return _reshaped(input, _shape_for(input, given if shape is None else (shape,)), "View")


@public("reshape_as")
def reshape_as(self: Tensor, other: Tensor) -> Tensor:
    return reshape(self, tuple(other.shape))


FUNCTIONS.pop("reshape_as")


@public("flatten")
def flatten(input: Tensor, start_dim: int = 0, end_dim: int = -1) -> Tensor:
    if not input.ndim:
        return reshape(input, 1)
    start, end = axis_of(start_dim, input.ndim), axis_of(end_dim, input.ndim)
    if start > end:
        raise RuntimeError("flatten() has invalid args: start_dim cannot come after end_dim")
    if start == end:
        return input
    shape = tuple(input.shape)
    return _reshaped(input, (*shape[:start], math.prod(shape[start : end + 1]), *shape[end + 1 :]), "View")


@public("ravel")
def ravel(input: Tensor) -> Tensor:
    if not input.is_contiguous():
        return reshape(clone(input), -1)
    return input if input.ndim == 1 else reshape(input, -1)


@public("unflatten")
def unflatten(input: Tensor, dim: int, sizes: Any) -> Tensor:
    axis, shape = axis_of(dim, input.ndim), tuple(input.shape)
    sizes = [size_of(n) for n in sizes]
    if -1 in sizes:
        known = math.prod([n for n in sizes if n != -1])
        sizes[sizes.index(-1)] = shape[axis] // known if known else -1
    if math.prod(sizes) != shape[axis]:
        raise RuntimeError(
            f"unflatten: Provided sizes {sizes} don't multiply up to the size of dim {axis} ({shape[axis]}) in the "
            "input tensor"
        )
    return _reshaped(input, (*shape[:axis], *sizes, *shape[axis + 1 :]), "View")


@public("unsqueeze")
def unsqueeze(input: Tensor, dim: int) -> Tensor:
    axis = axis_of(dim, input.ndim + 1)
    return view_of(input, Index((*[range(n) for n in input.shape[:axis]], None)), "Unsqueeze")


def _without(x: Tensor, axes: set[int], name: str) -> Tensor:
    shape, strides = shape_of(x), place_of(x)[0]
    kept = [i for i, n in enumerate(shape) if not (i in axes and n == 1)]
    new = tuple([shape[i] for i in kept])
    return view_of(x, Reshape(shape, new, tuple([strides[i] for i in kept])), name)


@public("squeeze")
def squeeze(input: Tensor, dim: Any = None) -> Tensor:
    """Without axes of size 1: all of them, or those named."""
    if dim is None:
        return _without(input, set(range(input.ndim)), "SqueezeBackward0")
    dims = dim if isinstance(dim, (tuple, list)) else (dim,)
    name = "SqueezeBackward2" if isinstance(dim, (tuple, list)) else "SqueezeBackward1"
    return _without(input, {axis_of(d, input.ndim) for d in dims}, name)


def _permuted(x: Tensor, axes: Any, name: str) -> Tensor:
    return view_of(x, Permute(tuple(axes)), name)


@public("permute")
def permute(input: Tensor, *given: Any, dims: Any = None) -> Tensor:
    dims = one_of("permute", "dims", given, dims)
    axes = [axis_of(d, input.ndim) for d in dims]
    if len(axes) != input.ndim:
        raise RuntimeError(
            "permute(sparse_coo): number of dimensions in the tensor input does not match the length of the desired "
            f"ordering of dimensions i.e. input.dim() = {input.ndim} is not equal to len(dims) = {len(axes)}"
        )
    if len(set(axes)) != len(axes):
        raise RuntimeError("permute(): duplicate dims are not allowed.")
    return _permuted(input, axes, "Permute")


@public("transpose", "swapdims")
def transpose(input: Tensor, dim0: int, dim1: int) -> Tensor:
    a, b = axis_of(dim0, input.ndim), axis_of(dim1, input.ndim)
    axes = list(range(input.ndim))
    if axes:
        axes[a], axes[b] = axes[b], axes[a]
    return _permuted(input, axes, "Transpose")


@public("swapaxes")
def swapaxes(input: Tensor, axis0: int, axis1: int) -> Tensor:
    return transpose(input, axis0, axis1)


@public("t")
def t(input: Tensor) -> Tensor:
    if input.ndim > 2:
        raise RuntimeError(f"t() expects a tensor with <= 2 dimensions, but self is {input.ndim}D")
    return _permuted(input, range(input.ndim)[::-1], "T")


@public("adjoint")
def adjoint(input: Tensor) -> Any:
    return _adjoint(input, "adjoint()")


def _adjoint(x: Tensor, name: str) -> Any:
    if x.ndim == 1:
        raise RuntimeError(f"tensor.{name} is only supported on matrices or batches of matrices. Got 1-D tensor.")
    return (transpose(x, -2, -1) if x.ndim else x).conj()


@public("movedim", "moveaxis")
def movedim(input: Tensor, source: Any, destination: Any) -> Tensor:
    sources = [axis_of(d, input.ndim) for d in (source if isinstance(source, (tuple, list)) else (source,))]
    targets = [
        axis_of(d, input.ndim) for d in (destination if isinstance(destination, (tuple, list)) else (destination,))
    ]
    if len(sources) != len(targets):
        raise RuntimeError(
            f"movedim: Invalid source or destination dims: source ({list(source)} dims) should contain the same number "
            f"of dims as destination ({list(destination)} dims)"
        )
    for name, given, found in (("source", source, sources), ("destination", destination, targets)):
        if len(set(found)) != len(found):
            raise RuntimeError(f"movedim: repeated dim in `{name}` ({list(given)})")
    rest = iter([i for i in range(input.ndim) if i not in sources])
    axes = [sources[targets.index(i)] if i in targets else next(rest) for i in range(input.ndim)]
    return _permuted(input, axes, "Permute")


@public("expand")
def expand(self: Tensor, *sizes: Any, size: Any = None, implicit: bool = False) -> Tensor:
    """The tensor as if it were larger along axes of size 1, without a copy."""
    if size is None:
        size = sizes[0] if len(sizes) == 1 and isinstance(sizes[0], (tuple, list)) else sizes
    shape, old = [n if n.__class__ is int else size_of(n) for n in size], tuple(self.shape)
    new_axes = len(shape) - len(old)
    if new_axes < 0:
        raise RuntimeError(
            f"expand({self.type()}{{{list(old)}}}, size={shape}): the number of sizes provided ({len(shape)}) must be "
            f"greater or equal to the number of dimensions in the tensor ({len(old)})"
        )
    for i, n in reversed([*enumerate(old)]):
        wanted = shape[i + new_axes]
        if wanted == -1:
            shape[i + new_axes] = n
        elif n not in (1, wanted):
            raise RuntimeError(
                f"The expanded size of the tensor ({wanted}) must match the existing size ({n}) at non-singleton "
                f"dimension {i + new_axes}.  Target sizes: {shape}.  Tensor sizes: {list(old)}"
            )
    if any([n < 0 for n in shape]):
        raise RuntimeError("The expanded size of the tensor (-1) isn't allowed in a leading, non-existing dimension 0")
    return view_of(self, Expand(tuple(shape)), "Expand")


FUNCTIONS.pop("expand")


@public("broadcast_to")
def broadcast_to(input: Tensor, size: Any) -> Tensor:
    return expand(input, size)


@overriding.asking
def _expand_as(self: Any, other: Any) -> Tensor:
    return expand(self, tuple(tensor_of(other, "expand_as").shape))


_expand_as.__name__ = _expand_as.__qualname__ = "expand_as"
METHODS["expand_as"] = _expand_as


@public("broadcast_tensors", method=False)
def broadcast_tensors(*tensors: Any) -> tuple[Tensor, ...]:
    given: Any = tensors[0] if len(tensors) == 1 and isinstance(tensors[0], (tuple, list)) else tensors
    shape: tuple[int, ...] = ()
    for x in given:
        other, rank = tuple(x.shape), max(len(shape), x.ndim)
        for axis in range(-1, -1 - min(len(shape), len(other)), -1):
            if shape[axis] != other[axis] and 1 not in (shape[axis], other[axis]):
                raise RuntimeError(
                    f"The size of tensor a ({shape[axis]}) must match the size of tensor b ({other[axis]}) at "
                    f"non-singleton dimension {rank + axis}"
                )
        shape = np.broadcast_shapes(shape, other)
    return tuple([x if tuple(x.shape) == shape else expand(x, shape) for x in given])


@public("broadcast_shapes", method=False)
def broadcast_shapes(*shapes: Any) -> Any:
    from adjoint.torch.dtypes import Size

    shapes = tuple([int(shape) if isinstance(shape, bool) else shape for shape in shapes])
    for shape in shapes:
        entries = shape if isinstance(shape, (tuple, list)) else (shape,)
        if not all([isinstance(n, (int, np.integer, Tensor)) for n in entries]):
            shown = errors.shown(shape)
            raise RuntimeError(f"Input shapes should be of type ints, a tuple of ints, or a list of ints, got {shown}")
    try:
        return Size(np.broadcast_shapes(*shapes))
    except ValueError as error:
        raise RuntimeError(f"Shape mismatch: objects cannot be broadcast to a single shape: {error}") from None


# --- parts ------------------------------------------------------------------------------------------------


def _whole(x: Tensor, axis: int) -> list[Any]:
    return [range(n) for n in x.shape[:axis]]


@public("select")
def select(input: Tensor, dim: int, index: int) -> Tensor:
    axis = axis_of(dim, input.ndim)
    if not input.ndim:
        raise IndexError("select() cannot be applied to a 0-dim tensor.")
    n = input.shape[axis]
    if not -n <= index < n:
        raise IndexError(
            f"select(): index {index} out of range for tensor of size {list(input.shape)} at dimension {axis}"
        )
    return view_of(input, Index((*_whole(input, axis), int(index) % n)), "Select")


@public("narrow")
def narrow(input: Tensor, dim: int, start: Any, length: int) -> Tensor:
    if not input.ndim:
        raise RuntimeError("narrow() cannot be applied to a 0-dim tensor.")
    axis = axis_of(dim, input.ndim)
    n = input.shape[axis]
    if isinstance(start, Tensor) and (start.ndim or start._dtype.kind not in "iu"):
        raise RuntimeError("start must be an 0-dim integral Tensor.")
    start = int(start)
    if length < 0:
        raise RuntimeError("narrow(): length must be non-negative.")
    if not -n <= start <= n:
        raise IndexError(f"start out of range (expected to be in range of [{-n}, {n}], but got {start})")
    start = start + n if start < 0 else start
    if start + length > n:
        raise RuntimeError(f"start ({start}) + length ({length}) exceeds dimension size ({n}).")
    return view_of(input, Index((*_whole(input, axis), range(start, start + length))), "Slice")


def _parts(x: Tensor, axis: int, sizes: Any, name: str) -> tuple[Tensor, ...]:
    out, start = [], 0
    for i, n in enumerate(sizes):
        part = view_of(x, Index((*_whole(x, axis), range(start, start + n))), f"{name}Backward0", _several(x, name, i))
        out.append(part)
        start += n
    return tuple(out)


def _several(x: Tensor, name: str, i: int) -> Any:
    """Why such a view may not be written to: it is one of several."""
    return (name, i)


@public("split")
def split(tensor: Tensor, split_size_or_sections: Any, dim: int = 0) -> tuple[Tensor, ...]:
    if not tensor.ndim:
        raise RuntimeError("split expects at least a 1-dimensional tensor")
    axis = axis_of(dim, tensor.ndim)
    n = tensor.shape[axis]
    if isinstance(split_size_or_sections, (tuple, list)):
        sizes = [int(s) for s in split_size_or_sections]
        if sum(sizes) != n:
            raise RuntimeError(
                f"split_with_sizes expects split_sizes to sum exactly to {n} (input tensor's size at dimension "
                f"{axis}), but got split_sizes={sizes}"
            )
        return _parts(tensor, axis, sizes, "SplitWithSizes")
    size = int(split_size_or_sections)
    if size == 0 and n:
        raise RuntimeError(f"split_size can only be 0 if dimension size is 0, but got dimension size of {n}")
    if size < 0:
        raise RuntimeError(f"split expects split_size be non-negative, but got split_size={size}")
    sizes = [min(size, n - i) for i in range(0, n, size)] if n else [0]
    return _parts(tensor, axis, sizes, "Split")


def _split(self: Tensor, split_size: Any, dim: int = 0) -> tuple[Tensor, ...]:
    return split(self, split_size, dim)


METHODS["split"] = _split  # whose argument has another name


@public("chunk")
def chunk(input: Tensor, chunks: int, dim: int = 0) -> tuple[Tensor, ...]:
    if not input.ndim:
        raise RuntimeError("chunk expects at least a 1-dimensional tensor")
    if chunks <= 0:
        raise RuntimeError(f"chunk expects `chunks` to be greater than 0, got: {chunks}")
    n = input.shape[axis_of(dim, input.ndim)]
    return split(input, max(1, -(-n // chunks)), dim)


@public("tensor_split")
def tensor_split(input: Tensor, indices_or_sections: Any, dim: int = 0) -> tuple[Tensor, ...]:
    if not input.ndim:
        raise RuntimeError("tensor_split expected at least a 1-dimensional tensor, but got a tensor with 0 dims")
    n = input.shape[axis_of(dim, input.ndim)]
    given = indices_or_sections
    if isinstance(given, Tensor):
        if given.ndim > 1:
            raise RuntimeError(
                "tensor_split expected tensor_indices_or_sections to be a zero-dimensional or one-dimensional tensor, "
                f"but got a tensor with {given.ndim} dims"
            )
        if given._dtype != np.dtype("int64"):
            raise RuntimeError(
                "tensor_split expected tensor_indices_or_sections to have dtype of long, but got "
                f"{given.dtype.class_name}"
            )
        given = given.tolist()
    if isinstance(given, float):
        raise TypeError("tensor_split() received an invalid combination of arguments - got (Tensor, float)")
    if isinstance(given, (int, np.integer)) and given <= 0:
        raise RuntimeError(f"number of sections must be larger than 0, got {given}")
    parts = np.array_split(np.arange(n), given)
    starts = [0, *np.cumsum([len(p) for p in parts])[:-1].tolist()]
    return tuple([narrow(input, dim, s, len(p)) for s, p in zip(starts, parts, strict=True)])


@public("unbind")
def unbind(input: Tensor, dim: int = 0) -> tuple[Tensor, ...]:
    axis = axis_of(dim, input.ndim)
    if not input.ndim:
        raise IndexError("Dimension specified as 0 but tensor has no dimensions")
    front = _whole(input, axis)
    return tuple(
        [view_of(input, Index((*front, i)), "Unbind", _several(input, "Unbind", i)) for i in range(input.shape[axis])]
    )


# --- by strides -------------------------------------------------------------------------------------------


@public("as_strided")
def as_strided(input: Tensor, size: Any, stride: Any, storage_offset: int | None = None) -> Tensor:
    """A view by sizes, strides and offset in memory, in elements."""
    offset = place_of(input)[1] if storage_offset is None else storage_offset
    return strided(input, sizes_of((tuple(size),)), tuple(stride), offset, "AsStrided")


@public("diagonal")
def diagonal(input: Tensor, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Tensor:
    """A diagonal, as a view; of a stack of matrices one each, along a last axis."""
    a, b = axis_of(dim1, input.ndim), axis_of(dim2, input.ndim)
    if a == b:
        raise RuntimeError(f"diagonal dimensions cannot be identical {dim1}, {dim2}")
    shape, (strides, start) = shape_of(input), place_of(input)
    rows, columns = (0, offset) if offset >= 0 else (-offset, 0)
    length = max(0, min(shape[a] - rows, shape[b] - columns))
    if length:
        start += rows * strides[a] + columns * strides[b]
    rest = [i for i in range(len(shape)) if i not in (a, b)]
    new = (*[shape[i] for i in rest], length)
    return strided(input, new, (*[strides[i] for i in rest], strides[a] + strides[b]), start, "Diagonal")


@public("unfold")
def unfold(self: Tensor, dimension: int, size: int, step: int) -> Tensor:
    """All runs of so many elements along an axis, as a view, along a new last axis."""
    axis = axis_of(dimension, self.ndim)
    shape, (strides, start) = shape_of(self), place_of(self)
    if not self.ndim:  # it counts as one axis of one element
        return select(unfold(reshape(self, 1), dimension, size, step), 0, 0)
    if size > shape[axis]:
        raise RuntimeError(f"maximum size for tensor at dimension {axis} is {shape[axis]} but size is {size}")
    if step <= 0:
        raise RuntimeError(f"step is {step} but must be > 0")
    count = (shape[axis] - size) // step + 1
    new = (*shape[:axis], count, *shape[axis + 1 :], size)
    steps = (*strides[:axis], strides[axis] * step, *strides[axis + 1 :], strides[axis])
    return strided(self, new, steps, start, "Unfold")


FUNCTIONS.pop("unfold")


@public("contiguous")
def contiguous(self: Tensor, memory_format: Any = None) -> Tensor:
    if self.is_contiguous():
        return self
    out = clone(self)
    if is_lifted(out):
        return out
    out._array.value = in_order(out._array.value)
    return out


FUNCTIONS.pop("contiguous")


@adopt
class Transposes:
    @property
    def T(self: Any) -> Tensor:
        return _permuted(self, range(self.ndim)[::-1], "Permute")

    @property
    def mT(self: Any) -> Tensor:
        if self.ndim < 2:
            raise RuntimeError(
                f"tensor.mT is only supported on matrices or batches of matrices. Got {self.ndim}-D tensor."
            )
        return transpose(self, -2, -1)

    @property
    def H(self: Any) -> Any:
        if self.ndim not in (0, 2):
            raise RuntimeError(f"tensor.H is only supported on matrices (2-D tensors). Got {self.ndim}-D tensor.")
        return adjoint(self) if self.ndim else self.conj()

    @property
    def mH(self: Any) -> Any:
        return _adjoint(self, "mH")
