"""Sums and other reductions, running totals, orders, joins: functions along axes under PyTorch's names."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

import adjoint as ad
from adjoint import conventions
from adjoint.torch import return_types
from adjoint.torch.arguments import Sizes, guarded, in_cpp, one_of, public, same_types, tensors_of
from adjoint.torch.calls import call, named, off, without_slope, write
from adjoint.torch.creation import tensor
from adjoint.torch.dtypes import numpy_dtype, of_numpy, result_dtype
from adjoint.torch.functions import floating_of, to
from adjoint.torch.graph import label
from adjoint.torch.lifted import is_batched
from adjoint.torch.operators import FUNCTIONS, METHODS, refuse_truths
from adjoint.torch.tensor import LEVEL, Tensor, axis_of, beside, is_elsewhere, is_lifted, looked, next_number, of


def axes_of(dim: Any, ndim: int) -> Any:
    """The axes that `dim` names, None for all."""
    if dim is None:
        return None
    dims = dim if isinstance(dim, (tuple, list)) else (dim,)
    axes = tuple([axis_of(d, ndim) for d in dims])
    if len(set(axes)) != len(axes):
        raise RuntimeError(f"dim {axes[0]} appears multiple times in the list of dims")
    return axes if ndim else ()


def _summing(x: Tensor, dtype: Any, *, floating: bool = False) -> Tensor:
    """What is added up: integers in 64 bits, or in the type asked for."""
    if dtype is not None:
        return to(x, dtype=dtype)
    if x._dtype.kind in "biu":
        if floating:
            raise RuntimeError(
                "mean(): could not infer output dtype. Input dtype must be either a floating point or complex dtype. "
                f"Got: {x.dtype.class_name}"
            )
        return to(x, dtype=np.dtype("int64"))
    return x


def _in_type_of(x: Tensor, out: Any) -> Any:
    """A sum or product of small integers in their own type, which the core has in 64 bits."""
    return to(out, dtype=x._dtype) if x._dtype.kind in "biu" and out._dtype is not x._dtype else out


_sum = LEVEL["sum"]


@public("sum", out=True)
def sum(input: Tensor, dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> Tensor:
    """The sum of all elements, or along axes.

    >>> import adjoint.torch as torch
    >>> torch.ones(2, 3).sum(dim=1)
    tensor([3., 3.])
    """
    x = _summing(input, dtype)
    axes = axes_of(dim, x.ndim)
    if axes == () and dim is not None and x.ndim:
        axes = None
    if not off() and not is_elsewhere(x):
        made = _sum(x._here, axis=tuple(range(x.ndim)) if axes is None else axes, keepdims=keepdim)
        if made.node is not None:
            label(made.node, "SumBackward0" if dim is None else "SumBackward1")
        return of(made)
    return call("sum", "Sum", x, axis=axes, keepdims=keepdim)  # type: ignore[no-any-return]


@public("mean", out=True)
def mean(input: Tensor, dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> Tensor:
    if dtype is not None and numpy_dtype(dtype).kind not in "fc":
        raise RuntimeError(
            "mean(): could not infer output dtype. Optional dtype must be either a floating point or complex dtype. "
            f"Got: {of_numpy(numpy_dtype(dtype)).class_name}"
        )
    x = _summing(input, dtype, floating=True)
    made = "MeanBackward0" if dim is None else "MeanBackward1"
    return call("mean", made, x, axis=_all_if_empty(axes_of(dim, x.ndim)), keepdims=keepdim)  # type: ignore[no-any-return]


def _all_if_empty(axes: Any) -> Any:
    return axes or None


@public("prod", out=True)
def prod(input: Tensor, dim: int | None = None, keepdim: bool = False, *, dtype: Any = None) -> Tensor:
    x = _summing(input, dtype)
    made = "ProdBackward0" if dim is None else "ProdBackward1"
    axis = None if dim is None or not x.ndim else axis_of(dim, x.ndim)
    return _in_type_of(x, call("prod", made, x, axis=axis, keepdims=keepdim))  # type: ignore[no-any-return]


def _moment(name: str, function: Any) -> None:
    def spelled(
        input: Tensor,
        dim: Sizes | bool | None = None,
        unbiased: Any = True,
        keepdim: bool = False,
        *,
        correction: Any = None,
    ) -> Any:
        if isinstance(dim, bool):
            dim, unbiased = None, dim
        by = (1 if unbiased else 0) if correction is None else correction
        if input._dtype.kind not in "fc":
            raise RuntimeError(f"{name}: only support floating point and complex dtypes")
        axes = _all_if_empty(axes_of(dim, input.ndim))
        return call(function, name.capitalize(), input, axis=axes, correction=by, keepdims=keepdim)

    public(name, out=True)(spelled)


_moment("var", "var")
_moment("std", "std")


@public("var_mean", method=False)
def var_mean(
    input: Tensor,
    dim: Sizes | bool | None = None,
    unbiased: Any = True,
    keepdim: bool = False,
    *,
    correction: Any = None,
) -> Any:
    return _with_mean("var", input, dim, unbiased, keepdim, correction)


@public("std_mean", method=False)
def std_mean(
    input: Tensor,
    dim: Sizes | bool | None = None,
    unbiased: Any = True,
    keepdim: bool = False,
    *,
    correction: Any = None,
) -> Any:
    return _with_mean("std", input, dim, unbiased, keepdim, correction)


def _with_mean(name: str, input: Tensor, dim: Any, unbiased: Any, keepdim: bool, correction: Any) -> Any:
    if isinstance(dim, bool):
        dim, unbiased = None, dim
    moment = FUNCTIONS[name](input, dim, unbiased, keepdim, correction=correction)
    return moment, mean(input, dim, keepdim)


_NOWHERE = (
    "{name}(): Expected reduction dim to be specified for input.numel() == 0. Specify the reduction dim with the 'dim' "
    "argument."
)


def _extreme(name: str, function: Any) -> None:
    def spelled(input: Tensor, dim: Any = (), keepdim: bool = False) -> Any:
        axes = _all_if_empty(axes_of(dim, input.ndim))
        if axes is None and not input.numel():
            raise RuntimeError(_NOWHERE.format(name=name))
        _refuse_empty(name, input, axes)
        return call(function, name.capitalize(), input, axis=axes, keepdims=keepdim)

    public(name, out=True)(spelled)


def refuse_no_place(name: str, x: Tensor, axis: int) -> None:
    """Raise IndexError for an axis without elements, of which none is the one asked for."""
    if x.ndim and not x.shape[axis]:
        raise IndexError(f"{name}(): Expected reduction dim {axis} to have non-zero size.")


def _refuse_empty(name: str, x: Tensor, axes: Any) -> None:
    if axes is None and not x.numel():
        raise IndexError(f"{name}(): Expected reduction dim to be specified for input.numel() == 0.")
    for i in axes or ():
        refuse_no_place(name, x, i)


_extreme("amax", "max")
_extreme("amin", "min")


@public("aminmax", out=True)
def aminmax(input: Tensor, *, dim: Any = None, keepdim: bool = False) -> Any:
    if dim is None and not input.numel():
        raise RuntimeError(
            "aminmax(): cannot compute aminmax over an empty dimension as the operation has no identity."
        )
    axes = () if dim is None else dim
    return return_types.aminmax(FUNCTIONS["amin"](input, axes, keepdim), FUNCTIONS["amax"](input, axes, keepdim))


def _label(x: Any, name: str) -> None:
    if not is_lifted(x):
        label(x._array.node, name)


def alone(x: Tensor, made: str) -> Any:
    """A number as the element that a function finds, and its place."""
    found = FUNCTIONS["clone"](x)
    _label(found, made)
    pair = getattr(return_types, made.partition("Backward")[0].lower())
    return pair(found, beside(x, np.zeros((), np.int64)))


def picked(x: Tensor, places: Any, dim: Any, keepdim: bool, made: str) -> Any:
    """The elements at places along an axis, which keep their gradient for themselves."""
    pair = getattr(return_types, made.partition("Backward")[0].lower())
    if not x.ndim:
        return alone(x, made)
    axis = axis_of(dim, x.ndim)
    index = places.unsqueeze(axis) if isinstance(places, Tensor) else beside(x, np.expand_dims(places, axis))
    found = FUNCTIONS["gather"](x, axis, index)
    _label(found, made)
    if keepdim:
        return pair(found, index)
    cut = call(lambda a: ad.squeeze(a, axis=axis), made, found)
    return pair(cut, places if isinstance(places, Tensor) else beside(x, places))


def _extreme_with_places(name: str, function: Any, places: Any) -> None:
    def spelled(input: Tensor, dim: Sizes | Tensor = None, keepdim: bool = False, *, other: Any = None) -> Any:
        if (dim is not None and other is not None) or (dim is None and keepdim):
            raise TypeError(
                f"{name}() received an invalid combination of arguments: dim, other and keepdim do not go together"
            )
        dim = dim if other is None else other
        if isinstance(dim, Tensor):
            return FUNCTIONS[name + "imum"](input, dim)
        if dim is None:
            if not input.numel():
                raise RuntimeError(_NOWHERE.format(name=name))
            out = call(function, f"{name.capitalize()}Backward1", input)
            if input.requires_grad and not is_elsewhere(input) and (value := looked(out)) != value:
                return call(conventions.shared_by_equals, f"{name.capitalize()}Backward1", input, math.nan)
            return out
        axis = axis_of(dim, input.ndim)
        if input.ndim:
            _refuse_empty(name, input, (axis,))
        found = None
        if input.ndim:
            found = FUNCTIONS[f"arg{name}"](input, axis) if is_batched(input) else places(looked(input), axis)
        return picked(input, found, dim, keepdim, f"{name.capitalize()}Backward0")

    public(name, out=True)(spelled)


_extreme_with_places("max", "max", np.argmax)
_extreme_with_places("min", "min", np.argmin)


def _place(name: str, function: Any) -> None:
    def spelled(input: Tensor, dim: int | None = None, keepdim: bool = False) -> Tensor:
        axis = None if dim is None or not input.ndim else axis_of(dim, input.ndim)
        _refuse_empty(name, input, None if axis is None else (axis,))
        if is_batched(input):
            return call(name, None, input, axis=axis, keepdims=keepdim)  # type: ignore[no-any-return]
        return beside(input, np.asarray(function(looked(input), axis, keepdims=keepdim), np.int64))

    public(name, out=True)(spelled)


_place("argmax", np.argmax)
_place("argmin", np.argmin)


def _truth(name: str, function: Any) -> None:
    def spelled(input: Tensor, dim: Any = None, keepdim: bool = False) -> Tensor:
        if is_batched(input):
            return call(name, None, input, axis=axes_of(dim, input.ndim), keepdims=keepdim)  # type: ignore[no-any-return]
        out = np.asarray(function(looked(input), axis=axes_of(dim, input.ndim), keepdims=keepdim))
        return beside(input, out.astype(np.uint8) if input._dtype == np.dtype("uint8") else out)

    public(name, out=True)(spelled)


_truth("any", np.any)
_truth("all", np.all)


@public("count_nonzero")
def count_nonzero(input: Tensor, dim: Any = None) -> Tensor:
    if is_batched(input):
        return FUNCTIONS["sum"](FUNCTIONS["ne"](input, 0), dim)  # type: ignore[no-any-return]
    return beside(input, np.asarray(np.count_nonzero(looked(input), axes_of(dim, input.ndim)), np.int64))


@public("logsumexp", out=True)
def logsumexp(input: Tensor, dim: Any, keepdim: bool = False) -> Any:
    x = floating_of(input)
    return call("special.logsumexp", "Logsumexp", x, axis=axes_of(dim, x.ndim), keepdims=keepdim)


def norm_of(x: Tensor, order: Any, axes: Any, keepdim: bool) -> Any:
    """The norm of vectors; that of order 0 counts elements, so its derivative is zero."""
    made = "LinalgVectorNorm"
    found = call(lambda a: ad.linalg.vector_norm(a, ord=order, axis=axes, keepdims=keepdim), made, x)
    return found if order else without_slope(made, found, x)


@public("dist")
def dist(input: Tensor, other: Tensor, p: float = 2) -> Any:
    refuse_truths(input, other)
    found = call(lambda a, b: ad.linalg.vector_norm(a - b, ord=p), "Dist", input, other)
    return found if p else without_slope("Dist", found, input, other)


def _nan(name: str, function: Any) -> None:
    def spelled(input: Tensor, dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> Any:
        x = _summing(input, dtype)
        return _in_type_of(x, call(function, name.capitalize(), x, axis=axes_of(dim, x.ndim), keepdims=keepdim))

    public(name, out=True)(spelled)


_nan("nansum", "nansum")
_nan("nanmean", "nanmean")

# --- along an axis ------------------------------------------------------------------------------------


def _running(name: str, function: Any) -> None:
    def spelled(input: Tensor, dim: int, *, dtype: Any = None) -> Any:
        axis = axis_of(dim, input.ndim)
        x = _summing(input, dtype)
        if not x.ndim:
            return FUNCTIONS["clone"](x)
        if x._dtype.kind == "b":
            raise NotImplementedError(f"\"{name}_out_cpu\" not implemented for 'Bool'")
        return _in_type_of(x, call(function, name.capitalize(), x, axis=axis))

    def in_place(self: Tensor, dim: int, *, dtype: Any = None) -> Any:
        if dtype is not None and (wanted := numpy_dtype(dtype)) is not self._dtype:
            raise RuntimeError(
                f"Bad in-place call: input tensor dtype {in_cpp(self._dtype)} and output tensor dtype "
                f"{in_cpp(wanted)} should match"
            )
        return write(self, FUNCTIONS[name], dim, dtype=self.dtype)

    public(name, out=True)(spelled)
    in_place.__name__ = in_place.__qualname__ = name + "_"
    METHODS[name + "_"] = guarded(in_place)


_running("cumsum", lambda x, axis: ad.cumulative_sum(x, axis=axis))
_running("cumprod", lambda x, axis: ad.cumulative_prod(x, axis=axis))


@public("logcumsumexp", out=True)
def logcumsumexp(input: Tensor, dim: int) -> Any:
    axis = axis_of(dim, input.ndim)
    return call("logcumsumexp", "Logcumsumexp", input, axis=axis) if input.ndim else input.clone()


def _softmax(name: str, function: Any, made: str) -> None:
    def spelled(input: Tensor, dim: int, dtype: Any = None) -> Any:
        x = input if dtype is None else to(input, dtype=dtype)
        if x._dtype.kind != "f" and x.numel():
            raise NotImplementedError(f"\"{name}_lastdim_kernel_impl\" not implemented for '{x.dtype.class_name}'")
        axis = axis_of(dim, x.ndim)
        if x._dtype.kind != "f":
            return FUNCTIONS["clone"](x)
        if not x.ndim:
            return call(lambda a: named(function)(ad.reshape(a, (1,)), axis=0)[0], made, x)
        return call(function, made, x, axis=axis)

    public(name, out=True)(spelled)


_softmax("softmax", "nn.softmax", "Softmax")
_softmax("log_softmax", "nn.log_softmax", "LogSoftmax")


def _order(x: Tensor, dim: int, descending: bool) -> Any:
    """The places of elements in order along an axis."""
    return call("argsort", None, x, axis=dim, descending=descending)


@public("sort", out=True)
def sort(input: Tensor, dim: int = -1, descending: bool = False, stable: bool = False) -> Any:
    made = "SortBackward1" if stable else "Sort"
    if not input.ndim:
        return alone(input, made)
    axis = axis_of(dim, input.ndim)
    index = _order(input, axis, descending)
    out = FUNCTIONS["gather"](input, axis, index)
    _label(out, made)
    return return_types.sort(out, index)


@public("argsort")
def argsort(input: Tensor, dim: int = -1, descending: bool = False, *, stable: bool | None = None) -> Any:
    return sort(input, dim, descending).indices


@public("topk", out=True)
def topk(input: Tensor, k: int, dim: int = -1, largest: bool = True, sorted: bool = True) -> Any:
    axis = axis_of(dim, input.ndim)
    if not 0 <= k <= (input.shape[axis] if input.ndim else 1):
        raise RuntimeError("selected index k out of range")
    if not input.ndim:
        return alone(input, "Topk")
    index = _order(input, axis, largest).narrow(axis, 0, k).contiguous()
    out = FUNCTIONS["gather"](input, axis, index)
    _label(out, "Topk")
    return return_types.topk(out, index)


@public("kthvalue", out=True)
def kthvalue(input: Tensor, k: int, dim: int = -1, keepdim: bool = False) -> Any:
    axis = axis_of(dim, input.ndim)
    refuse_no_place("kthvalue", input, axis)
    if not 1 <= k <= (input.shape[axis] if input.ndim else 1):
        raise RuntimeError(f"kthvalue(): selected number k out of range for dimension {axis}")
    places = _order(input, axis, False).select(axis, k - 1) if input.ndim else None
    return picked(input, places, dim, keepdim, "Kthvalue")


@public("median", out=True)
def median(input: Tensor, dim: int | None = None, keepdim: bool = False) -> Any:
    """The middle element, of an even number the lower one."""
    if dim is None:
        flat = FUNCTIONS["reshape"](input, -1)
        if is_batched(flat):
            return _shared_median(flat)
        if not flat.numel():
            return to(tensor(float("nan"), device=input.device), dtype=input._dtype)
        if input._dtype.kind != "f":
            return median(flat, 0).values
        # elements of that value share its gradient, as those that tie for a maximum do
        return call(conventions.shared_by_equals, "Median", flat, median(flat.detach(), 0).values.item())
    if not input.ndim:
        return alone(input, "MedianBackward1")
    axis = axis_of(dim, input.ndim)
    refuse_no_place("median", input, axis)
    places = call(conventions.median_places, None, input, axis)
    return picked(input, places, dim, keepdim, "MedianBackward1")


def _shared_median(flat: Tensor) -> Any:
    """The middle elements of examples: those of its value share the gradient of each."""
    middle = median(flat.detach(), 0).values
    return call(conventions.shared_by_middle, "Median", flat, middle) if flat._dtype.kind == "f" else middle


# --- joining and moving -----------------------------------------------------------------------------------


def one_type(tensors: Any) -> list[Tensor]:
    dtype = result_dtype(tensors)
    return [x if x._dtype is dtype else to(x, dtype=dtype) for x in tensors]


@public("cat", "concat", "concatenate", method=False, out=True)
def cat(tensors: Any, dim: int = 0) -> Any:
    if not len(tensors_of(tensors, "cat")):
        raise ValueError("expected a non-empty list of Tensors")
    if any([not x.ndim for x in tensors]):
        raise RuntimeError("zero-dimensional tensor (at position 0) cannot be concatenated")
    parts = one_type(tensors)
    given = [x for x in parts if not (x.ndim == 1 and x.shape[0] == 0)] or parts
    if given[0].ndim == 1:
        given = parts
    axis = axis_of(dim, given[0].ndim)
    if len(given) < len(parts):  # an empty vector goes with anything, and has a gradient
        shape = [n * (i != axis) for i, n in enumerate(given[0].shape)]
        return cat([x.reshape(shape) if x.ndim == 1 and not x.shape[0] else x for x in parts], axis)
    for x in given:
        if x.ndim != given[0].ndim:
            raise RuntimeError(f"Tensors must have same number of dimensions: got {given[0].ndim} and {x.ndim}")
        for i, (n, m) in enumerate(zip(given[0].shape, x.shape, strict=True)):
            if n != m and i != axis:
                raise RuntimeError(
                    f"Sizes of tensors must match except in dimension {axis}. Expected size {n} but got size {m} for "
                    f"tensor number {[x is g for g in given].index(True)} in the list."
                )
    return call(lambda *xs: ad.concat(xs, axis=axis), "Cat", *given)


@public("stack", method=False, out=True)
def stack(tensors: Any, dim: int = 0) -> Any:
    if not len(tensors_of(tensors, "stack")):
        raise RuntimeError("stack expects a non-empty TensorList")
    for i, x in enumerate(tensors):
        if x.shape != tensors[0].shape:
            raise RuntimeError(
                f"stack expects each tensor to be equal size, but got {list(tensors[0].shape)} at entry 0 and "
                f"{list(x.shape)} at entry {i}"
            )
    axis = axis_of(dim, tensors[0].ndim + 1)
    return call(lambda *xs: ad.stack(xs, axis=axis), "Stack", *one_type(tensors))


# how many axes there are at least, how numbers and lines lie in them, along which axis
_JOINED: dict[str, tuple[int, tuple[int, ...], int]] = {
    "hstack": (1, (-1,), 1), "vstack": (2, (1, -1), 0), "dstack": (3, (1, -1, 1), 2), "column_stack": (2, (-1, 1), 1),
}  # fmt: skip


def _joins(name: str, function: str) -> None:
    def spelled(tensors: Any) -> Any:
        if not len(tensors_of(tensors, name)):
            raise RuntimeError(f"{name} expects a non-empty TensorList")
        given = one_type(tensors)
        try:
            return call(lambda *xs: named(function)(xs), "Cat", *given)
        except RuntimeError:
            least, line, axis = _JOINED[function]
            parts = [x if x.ndim >= least else x.reshape(line) if x.ndim < 2 else x.unsqueeze(-1) for x in given]
            cat(parts, axis if parts[0].ndim > 1 else 0)  # which says what is wrong
            raise

    public(name, method=False, out=True)(spelled)


for _name, _function in {
    "hstack": "hstack", "vstack": "vstack", "dstack": "dstack", "row_stack": "vstack", "column_stack": "column_stack",
}.items():  # fmt: skip
    _joins(_name, _function)


@public("flip")
def flip(input: Tensor, *given: Any, dims: Any = None) -> Any:
    given = one_of("flip", "dims", given, dims)
    return call("flip", "Flip", input, axis=axes_of(given, input.ndim)) if given else FUNCTIONS["clone"](input)


def _flipped(name: str, axis: int) -> None:
    def spelled(input: Tensor) -> Any:
        if input.ndim <= axis:
            raise RuntimeError(f"Input must be >= {axis + 1}-d.")
        return flip(input, axis)

    public(name)(spelled)


_flipped("fliplr", 1)
_flipped("flipud", 0)


@public("roll")
def roll(input: Tensor, shifts: Sizes, dims: Sizes = None) -> Any:
    by = shifts if isinstance(shifts, (tuple, list)) else (shifts,)
    along = () if dims is None else dims if isinstance(dims, (tuple, list)) else (dims,)
    if not by:
        raise RuntimeError("`shifts` required")
    if along and not input.ndim:
        raise IndexError(f"Dimension specified as {along[0]} but tensor has no dimensions")
    if len(by) != (len(along) or 1):
        raise RuntimeError(f"shifts and dimensions must align. shifts: {len(by)}, dims:{len(along)}")
    return call(lambda x: ad.roll(x, shifts, axis=axes_of(dims, input.ndim)), "Roll", input)


@public("rot90")
def rot90(input: Tensor, k: int = 1, dims: Any = (0, 1)) -> Any:
    if len(dims) != 2:
        raise RuntimeError(f"expected total rotation dims == 2, but got dims = {len(dims)}")
    if input.ndim < 2:
        raise RuntimeError(f"expected total dims >= 2, but got total dims = {input.ndim}")
    if axis_of(dims[0], input.ndim) == axis_of(dims[1], input.ndim):
        raise RuntimeError(f"expected rotation dims to be different, but got dim0 = {dims[0]} and dim1 = {dims[1]}")
    return call(lambda x: ad.rot90(x, k, tuple(dims)), "Rot90", input)


def _repeat(self: Tensor, *given: Any, repeats: Any = None) -> Any:
    counts = one_of("repeat", "repeats", given, repeats)
    if len(counts) < self.ndim:
        raise RuntimeError("Number of dimensions of repeat dims can not be smaller than number of dimensions of tensor")
    return call(lambda x: ad.tile(x, counts), "Repeat", self)


METHODS["repeat"] = _repeat


@public("tile")
def tile(input: Tensor, *given: Any, dims: Any = None) -> Any:
    counts = one_of("tile", "dims", given, dims)
    return call(lambda x: ad.tile(x, counts), "Repeat", input)


@public("repeat_interleave")
def repeat_interleave(input: Tensor, repeats: Any, dim: int | None = None, *, output_size: int | None = None) -> Any:
    counts = repeats.tolist() if isinstance(repeats, Tensor) else repeats
    return call(lambda x: ad.repeat(x, counts, axis=dim), "IndexSelect", input)


@public("tril", in_place=True, out=True)
def tril(input: Tensor, diagonal: int = 0) -> Any:
    if input.ndim < 2:
        raise RuntimeError("tril: input tensor must have at least 2 dimensions")
    return call(lambda x: ad.tril(x, k=diagonal), "Tril", input)


@public("triu", in_place=True, out=True)
def triu(input: Tensor, diagonal: int = 0) -> Any:
    if input.ndim < 2:
        raise RuntimeError("triu: input tensor must have at least 2 dimensions")
    return call(lambda x: ad.triu(x, k=diagonal), "Triu", input)


@public("diag", out=True)
def diag(input: Tensor, diagonal: int = 0) -> Any:
    """The diagonal of a matrix, or the matrix with a vector as its diagonal."""
    if input.ndim == 2:
        start, found = next_number(), FUNCTIONS["clone"](FUNCTIONS["diagonal"](input, diagonal))
        if not is_lifted(found):
            label(found._array.node, "DiagonalBackward0_copy", start)
        return found
    if input.ndim != 1:
        raise RuntimeError("diag(): Supports 1D or 2D tensors. Got " + f"{input.ndim}D")
    return call(lambda x: ad.diag(x, k=diagonal), "DiagEmbed", input)


@public("trace")
def trace(input: Tensor) -> Any:
    if input.ndim != 2:
        raise RuntimeError("trace: expected a matrix, but got tensor with dim " + str(input.ndim))
    return call("linalg.trace", "Trace", _summing(input, None))


@public("diff", out=True)
def diff(input: Tensor, n: int = 1, dim: int = -1, prepend: Tensor | None = None, append: Tensor | None = None) -> Any:
    if not input.ndim:
        raise RuntimeError("diff expects input to be at least one-dimensional")
    if n < 0:
        raise RuntimeError(f"order must be non-negative but got {n}")
    if not n:  # PyTorch puts nothing around it then
        return FUNCTIONS["clone"](input)
    around = [x for x in (prepend, input, append) if x is not None]
    x = cat(around, dim) if len(around) > 1 else input
    axis = axis_of(dim, x.ndim)
    if x._dtype.kind == "b":
        n = min(n, x.shape[axis])
        for _ in range(n):
            x = x.narrow(axis, 1, x.shape[axis] - 1) ^ x.narrow(axis, 0, x.shape[axis] - 1)
        return x
    return call(lambda a: ad.diff(a, n=min(n, a.shape[axis]), axis=axis), "Sub", x)


@public("meshgrid", method=False)
def meshgrid(*tensors: Any, indexing: str | None = None) -> Any:
    given = list(tensors[0] if len(tensors) == 1 and isinstance(tensors[0], (tuple, list)) else tensors)
    if indexing not in (None, "ij", "xy"):
        raise RuntimeError(f'torch.meshgrid: indexing must be one of "xy" or "ij", but received: {indexing}')
    same_types("meshgrid", *given)
    if any([x.ndim > 1 for x in given]):
        raise RuntimeError("torch.meshgrid: Expected 0D or 1D tensor in the tensor list")
    swapped = indexing == "xy" and len(given) > 1
    if swapped:
        given[0], given[1] = given[1], given[0]
    shape = [x.numel() for x in given]
    out = [x.reshape([-1 if i == j else 1 for j in range(len(given))]).expand(shape) for i, x in enumerate(given)]
    if swapped:
        out[0], out[1] = out[1], out[0]
    return tuple(out)


# --- sets and counts --------------------------------------------------------------------------------------


@public("unique")
def unique(
    input: Tensor,
    sorted: bool = True,
    return_inverse: bool = False,
    return_counts: bool = False,
    dim: int | None = None,
) -> Any:
    """The distinct elements in order. Gradients go to what is found first."""
    made = "Unique2" if dim is None else "UniqueDim"
    return call(
        "unique", made, input, return_inverse=return_inverse, return_counts=return_counts, axis=dim, equal_nan=False
    )


@public("bincount")
def bincount(input: Tensor, weights: Tensor | None = None, minlength: int = 0) -> Tensor:
    if input.ndim != 1 or (not is_lifted(input) and (looked(input) < 0).any()):
        raise RuntimeError("bincount only supports 1-d non-negative integral inputs.")
    return call("bincount", "Bincount", input, weights, minlength)  # type: ignore[no-any-return]


@public("searchsorted", method=False, out=True)
def searchsorted(
    sorted_sequence: Tensor, input: Any, *, out_int32: bool = False, right: bool = False, side: str | None = None,
    sorter: Tensor | None = None,
) -> Any:  # fmt: skip
    given = input if isinstance(input, Tensor) else tensor(input)
    where = side or ("right" if right else "left")
    x = sorted_sequence if sorter is None else FUNCTIONS["gather"](sorted_sequence, -1, sorter)
    if is_batched(x) or is_batched(given):
        rows = FUNCTIONS["unsqueeze"](x, -2)
        column = FUNCTIONS["unsqueeze"](given, -1)
        found = FUNCTIONS["sum"](rows < column if where == "left" else rows <= column, -1)
        return found.int() if out_int32 else found
    kind = result_dtype([x, input])
    if kind.kind in "bc":
        raise NotImplementedError(f"\"searchsorted_out_cpu\" not implemented for '{of_numpy(kind).class_name}'")
    x, given = to(x, dtype=kind), to(given, dtype=kind)
    found = call(lambda a, v: ad.searchsorted(a, v, side=where), None, x, given)  # type: ignore[arg-type]
    return to(found, dtype=np.dtype("int32" if out_int32 else "int64"))
