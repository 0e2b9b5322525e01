"""What puts values into parts of tensors, makes and cuts blocks, and gives a tensor another shape in its place."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

import adjoint as ad
from adjoint.graph.nodes import var_of
from adjoint.torch import creation
from adjoint.torch.arguments import Number, guarded, public, same_types, spelled_as, tensors_of
from adjoint.torch.calls import call, off
from adjoint.torch.dtypes import complex_of, default_float, numpy_dtype
from adjoint.torch.functions import clone
from adjoint.torch.graph import label, overwritten, result_overwritten
from adjoint.torch.indexing import as_line, check_index, check_long, in_range
from adjoint.torch.kinds import Halves, Whole
from adjoint.torch.lifted import reshaped as reshaped_lifted
from adjoint.torch.memory import is_view, view_of
from adjoint.torch.operators import FUNCTIONS, METHODS
from adjoint.torch.reductions import one_type
from adjoint.torch.reshaping import reshaped
from adjoint.torch.state import grad_mode
from adjoint.torch.tensor import (
    Tensor,
    axis_of,
    beside,
    copied,
    is_lifted,
    looked,
    next_number,
    rare_of,
    unnoticed,
)
from adjoint.torch.writes import check_write, leave_if_alone, outgrown

# --- parts of a copy --------------------------------------------------------------------------------------


def _part(name: str, parameters: str, view: Any) -> None:
    """A copy of a tensor in which a view of it has other values."""

    def apply(input: Tensor, src: Tensor, *args: Any) -> Any:
        out = clone(input)
        part = view(out, *args)
        if part.shape != src.shape:
            raise RuntimeError(
                f"expected src to have a size equal to the slice of self. src size = {list(src.shape)}, slice size = "
                f"{list(part.shape)}"
            )
        part.copy_(src)
        if not is_lifted(out):
            label(out._array.node, f"{name.title().replace('_', '')}")
        return out

    public(name, out=True)(spelled_as(name, f"input: Tensor, src: Tensor, {parameters}", apply))


def _slice(x: Any, dim: int, start: Any, end: Any, step: int) -> Any:
    return x[(*[slice(None)] * axis_of(dim, x.ndim), slice(start, end, step))]


_part("select_scatter", "dim, index", lambda x, dim, index: x.select(dim, index))
_part("slice_scatter", "dim=0, start=None, end=None, step=1", _slice)
_part("diagonal_scatter", "offset=0, dim1=0, dim2=1", lambda x, *places: x.diagonal(*places))
_part("as_strided_scatter", "size, stride, storage_offset=None", lambda x, *places: x.as_strided(*places))

_MODES = {"sum": "add", "prod": "multiply", "mean": "mean", "amax": "max", "amin": "min"}


def _mode(reduce: str, name: str) -> str:
    if reduce not in _MODES:
        raise RuntimeError(f"{name}: reduce argument must be either sum, prod, mean, amax or amin, got {reduce}")
    return _MODES[reduce]


@public("scatter_reduce", in_place=True, out=True)
def scatter_reduce(
    input: Tensor, dim: int, index: Tensor, src: Tensor, reduce: str, *, include_self: bool = True
) -> Any:
    """Combine values with what is at the places that index names along an axis.

    >>> import adjoint.torch as torch
    >>> torch.zeros(2).scatter_reduce(0, torch.tensor([0, 1, 1]), torch.tensor([1.0, 2.0, 3.0]), "amax")
    tensor([1., 3.])
    """
    axis, mode = axis_of(dim, input.ndim), _mode(reduce, "scatter_reduce")
    check_index(index, "scatter")
    if input._dtype.kind == "c" and mode in ("max", "min"):
        raise NotImplementedError(
            f"\"scatter_gather_tensor_cpu_reduce_{reduce}\" not implemented for '{input.dtype.class_name}'"
        )
    if not input.ndim:  # PyTorch takes it for one with a single element
        one, places, given = map(as_line, (input, index, src))
        return scatter_reduce(one, 0, places, given, reduce, include_self=include_self).reshape(())
    in_range(index, input.shape[axis], dim=axis)
    if src._dtype is not input._dtype:
        raise RuntimeError("scatter(): Expected self.dtype to be equal to src.dtype")
    cut = tuple([slice(n) for n in index.shape])

    def place(x: Any, i: Any, s: Any) -> Any:
        key: list[Any] = list(np.ogrid[cut])
        key[axis] = i
        return ad.scatter(x, tuple(key), s[cut], mode=mode, include_self=include_self)

    if input._dtype.kind == "b":  # the sum is whether any of those that meet is true, the product whether all are
        mode = {"add": "max", "multiply": "min"}.get(mode, mode)
        place = _of_bits(place)
    return call(place, "ScatterReduce", input, index, src)


def _of_bits(place: Any) -> Any:
    """A function that places numbers, for booleans."""
    return lambda x, i, s: place(x.astype(np.uint8), i, s.astype(np.uint8)).astype(np.bool_)


@public("index_reduce", in_place=True, out=True)
def index_reduce(
    input: Tensor, dim: int, index: Tensor, source: Tensor, reduce: str, *, include_self: bool = True
) -> Any:
    """Combine slices with those at the places that index names along an axis."""
    axis, mode = axis_of(dim, input.ndim), _mode(reduce, "index_reduce")
    check_index(index, "index_reduce_")
    if not input.ndim:
        one, places, given = map(as_line, (input, index, source))
        return index_reduce(one, 0, places, given, reduce, include_self=include_self).reshape(())
    in_range(index, input.shape[axis], dim=axis, error=IndexError)
    front = (slice(None),) * axis
    return call(
        lambda x, i, s: ad.scatter(x, (*front, i), s, mode=mode, include_self=include_self),
        "IndexReduce", input, index, source,
    )  # fmt: skip


@public("put", in_place=True)
def put(input: Tensor, index: Tensor, source: Tensor, accumulate: bool = False) -> Any:
    """Values at places of the flattened tensor."""
    check_long(index, "put_")
    if input._dtype is not source._dtype:
        raise RuntimeError(
            "put_(): self and source expected to have the same dtype, but got self.dtype = "
            f"{input.dtype.class_name} and source.dtype = {source.dtype.class_name}"
        )
    in_range(index, input.numel(), -input.numel(), error=IndexError)
    bits = input._dtype.kind == "b"
    mode = "set" if not accumulate else "max" if bits else "add"

    def place(x: Any, i: Any, s: Any) -> Any:
        flat = ad.scatter(ad.reshape(x, (-1,)), ad.reshape(i, (-1,)), ad.reshape(s, (-1,)), mode=mode)
        return ad.reshape(flat, x.shape)

    return call(_of_bits(place) if bits else place, "Put", input, index, source)


def _fill_diagonal_(self: Any, fill_value: Number, wrap: bool = False) -> Any:
    """Fill the main diagonal, in a tall matrix with `wrap` again and again."""
    if self.ndim < 2:
        raise RuntimeError("dimensions must larger than 1")
    step = sum(self.stride())
    count = min(self.shape)
    if wrap and self.ndim == 2:
        count = math.ceil(self.numel() / (self.shape[1] + 1))
    self.as_strided((count,), (step,), self.storage_offset()).fill_(fill_value)
    return self


_fill_diagonal_.__name__ = _fill_diagonal_.__qualname__ = "fill_diagonal_"
METHODS["fill_diagonal_"] = guarded(_fill_diagonal_)


@public("fill", method=False)
def fill(input: Tensor, value: Any) -> Any:
    """A tensor of this shape and type with one number everywhere."""
    return clone(input).fill_(value)


# --- blocks -----------------------------------------------------------------------------------------------


def _with_axes(x: Tensor, count: int) -> Tensor:
    """The tensor with at least so many axes: an axis in front first, then one behind, then one in front."""
    if not x.ndim:
        return FUNCTIONS["reshape"](x, (1,) * count)  # type: ignore[no-any-return]
    for axis in (0, 2)[x.ndim - 1 : count - 1]:
        x = FUNCTIONS["unsqueeze"](x, axis)
    return x


def _at_least(count: int) -> None:
    def spelled(*tensors: Any) -> Any:
        given = tensors[0] if len(tensors) == 1 and isinstance(tensors[0], (tuple, list)) else tensors
        found = tuple([_with_axes(x, count) for x in given])
        return found if given is not tensors or len(given) > 1 else found[0]

    public(f"atleast_{count}d", method=False)(spelled)


for _count in (1, 2, 3):
    _at_least(_count)


@public("block_diag", method=False)
def block_diag(*tensors: Tensor) -> Any:
    """Matrices along the diagonal of one."""
    if any([x.ndim > 2 for x in tensors]):
        raise RuntimeError("torch.block_diag: Input tensors must have 2 or fewer dimensions.")
    return call(lambda *xs: ad.linalg.block_diag(*xs), "BlockDiag", *one_type(tensors))


@public("cartesian_prod", method=False)
def cartesian_prod(*tensors: Tensor) -> Any:
    """All choices of one element of each vector, as rows."""
    same_types("cartesian_prod", *tensors_of(tensors, "cartesian_prod"))
    return call(lambda *xs: ad.cartesian_prod(*xs), "Stack", *tensors)


@public("combinations", method=False)
def combinations(input: Tensor, r: int = 2, with_replacement: bool = False) -> Any:
    """All choices of r elements of a vector, as rows."""
    return call("combinations", "Stack", input, r, with_replacement)


@public("diag_embed")
def diag_embed(input: Tensor, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Any:
    """Matrices with the last axis as their diagonals."""
    axes = [axis_of(dim, input.ndim + 1) for dim in (dim1, dim2)]
    if axes[0] == axes[1]:
        raise RuntimeError(f"diagonal dimensions cannot be identical {dim1}, {dim2}")
    return call("diag_embed", "DiagEmbed", input, offset, *axes)


@public("diagflat")
def diagflat(input: Tensor, offset: int = 0) -> Any:
    """The matrix with all elements as its diagonal."""
    return call("diagflat", "DiagEmbed", input, offset)


def _cut(name: str, axis: int) -> None:
    def spelled(input: Tensor, indices_or_sections: Any) -> Any:
        least = 1 if name == "hsplit" else max(axis + 1, 2)
        if input.ndim < least:
            raise RuntimeError(
                f"torch.{name} requires a tensor with at least {least} dimension, but got a tensor "
                f"with {input.ndim} dimensions!"
            )
        dim = 0 if name == "hsplit" and input.ndim == 1 else axis
        count = indices_or_sections
        if isinstance(count, int) and (count <= 0 or input.shape[dim] % count):
            raise RuntimeError(
                f"torch.{name} attempted to split along dimension {dim}, but the size of the dimension "
                f"{input.shape[dim]} is not divisible by the split_size {indices_or_sections}!"
            )
        return FUNCTIONS["tensor_split"](input, indices_or_sections, dim)

    public(name)(spelled)


_cut("hsplit", 1)
_cut("vsplit", 0)
_cut("dsplit", 2)


@public("vander", method=False)
def vander(x: Tensor, N: int | None = None, increasing: bool = False) -> Any:
    """The powers of each element, in rows."""
    return call("vander", "Flip", x.long() if x._dtype.kind in "biu" else x, N, increasing)


# --- places -----------------------------------------------------------------------------------------------


def _triangle(name: str) -> None:
    def spelled(
        row: int, col: int, offset: int = 0, *, dtype: Any = None, layout: Any = None, device: Any = None,
        pin_memory: bool = False, requires_grad: bool = False,
    ) -> Any:  # fmt: skip
        creation.check_placing(name, layout, pin_memory)
        found = getattr(np, name)(row, offset, col)
        return creation.finished(np.stack(found), numpy_dtype(dtype) or np.dtype("int64"), requires_grad, device)

    public(name, method=False)(spelled)


_triangle("tril_indices")
_triangle("triu_indices")


@public("unravel_index", method=False)
def unravel_index(indices: Tensor, shape: Any) -> Any:
    """Numbers of elements as places in a shape."""
    if indices._dtype.kind not in "iu":
        raise TypeError(f"expected 'indices' to be integer dtype, but got {indices.dtype}")
    if not isinstance(shape, (int, Sequence)):
        raise TypeError(f"expected 'shape' to be int or sequence of ints, but got {type(shape).__name__}")
    sizes = (shape,) if isinstance(shape, int) else tuple(shape)
    if not all([isinstance(n, int) for n in sizes]):
        raise TypeError(f"expected 'shape' sequence to only contain ints, but got {sizes}")
    if any([n < 0 for n in sizes]):
        raise ValueError(f"'shape' cannot have negative values, but got {sizes}")
    return tuple([beside(indices, part) for part in np.unravel_index(looked(indices), sizes)])


@public("range", method=False, out=True)
def range_(
    start: Number, end: Number, step: Number = 1, *, dtype: Any = None, layout: Any = None, device: Any = None,
    pin_memory: bool = False, requires_grad: bool = False,
) -> Tensor:  # fmt: skip
    """Numbers from a start up to an end, which is in it. PyTorch deprecates it for `arange`."""
    creation.check_placing("range", layout, pin_memory)
    made = start + np.arange(int((end - start) / step) + 1) * step
    return creation.finished(made, numpy_dtype(dtype) or default_float(), requires_grad, device)


# --- complex numbers as pairs -----------------------------------------------------------------------------


@public("view_as_real", method=False)
def view_as_real(input: Tensor) -> Tensor:
    """Complex numbers as pairs of real ones along a last axis, as a view."""
    if input._dtype.kind != "c":
        raise RuntimeError("view_as_real is only supported for complex tensors")
    return view_of(input, Halves(), "ViewAsReal")


@public("view_as_complex", method=False)
def view_as_complex(input: Tensor) -> Tensor:
    """Pairs of real numbers along the last axis as complex ones, as a view."""
    if input._dtype.kind != "f":
        raise RuntimeError(f"view_as_complex is only supported for floating point tensors, but got {input.dtype}")
    if not input.ndim:
        raise RuntimeError("Input tensor must have one or more dimensions")
    if input.shape[-1] != 2:
        raise RuntimeError("Tensor must have a last dimension of size 2")
    if input.stride(-1) != 1:
        raise RuntimeError("Tensor must have a last dimension with stride 1")
    if any([s % 2 for s in input.stride()[:-1]]):
        raise RuntimeError("Tensor must have a stride divisible by 2 for all but last dimension")
    return view_of(input, Whole(complex_of(input._dtype)), "ViewAsComplex")


# --- another shape in its place ---------------------------------------------------------------------------


def _reshaping(*names: str) -> None:
    """The in-place form of a view: the tensor itself has another shape afterwards."""
    made = "Transpose" if names[0] == "swapaxes" else names[0].capitalize()

    def in_place(self: Any, *args: Any, **options: Any) -> Any:
        if self._rare is not None and self._rare.memory is not None:
            leave_if_alone(self)
        shares = self._rare is not None and self._rare.memory is not None
        rare: Any = self._rare
        viewed = is_lifted(self) and rare.viewed
        leaf = not is_lifted(self) and off() and self.requires_grad and self.is_leaf and not is_view(self)
        if viewed or (leaf and shares):
            raise NotImplementedError(
                f"adjoint.torch: {names[0]}_() of a tensor that a function transform made and that has views, or of a "
                f"leaf that has them, where nothing is recorded, is not there; write x = x.{names[0]}(...)"
            )
        check_write(self, filling=shares)
        if shares or is_lifted(self):
            given = lambda x: FUNCTIONS[names[0]](x, *args, **options)
            return reshaped_lifted(self, given) if is_lifted(self) else reshaped(self, given, made)
        old = self._array
        with grad_mode(True):  # what is computed keeps its history, also where nothing else is recorded
            array = FUNCTIONS[names[0]](unnoticed(old), *args, **options)._array
        array.value = copied(array.value)  # in the order in which it lies in memory
        if leaf:
            overwritten(old.value, next_number())  # graphs that saved it are of another shape
            array = var_of(array.value, outgrown(self, old.node, array.value))
        else:
            kind = 3 if not (args or options) else 5 if isinstance([*args, *options.values()][0], tuple) else 4
            label(array.node, f"SqueezeBackward{kind}" if names[0] == "squeeze" else f"{made}Backward1")
        result_overwritten(old.node)
        self._array = array
        rare_of(self).version += 1
        return self

    in_place.__wrapped__ = FUNCTIONS[names[0]]  # type: ignore[attr-defined]
    for name in names:
        METHODS[f"{name}_"] = in_place


for _names in (("transpose", "swapdims"), ("swapaxes",), ("t",), ("squeeze",), ("unsqueeze",)):
    _reshaping(*_names)


def _sum_to_size(self: Any, *given: Any, size: Any = None) -> Any:
    """The sum over what broadcasting to this shape had repeated."""
    shape = creation.sizes_of(given if size is None else (size,))
    extra = self.ndim - len(shape)
    bad = extra < 0 or any([n not in (1, m) for n, m in zip(shape, self.shape[extra:], strict=True)])
    if bad:
        raise RuntimeError(f"size {{{list(shape)}}} is not expandable to size {{{list(self.shape)}}}.")
    axes = [*range(extra), *[i + extra for i, n in enumerate(shape) if n == 1 != self.shape[i + extra]]]
    if not shape:
        return FUNCTIONS["sum"](self)
    out = FUNCTIONS["sum"](self, axes, keepdim=True) if axes else self
    return FUNCTIONS["reshape"](out, shape) if extra else out


METHODS["sum_to_size"] = _sum_to_size
