"""Functions that move elements without changing them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Never, overload

import numpy as np

from adjoint import dtypes, errors
from adjoint.functions.arguments import (
    AXES,
    as_axes,
    as_axis,
    as_choice,
    as_integer,
    as_shape,
    as_size,
    as_tensor,
    as_tensors,
    axes_in_order,
    check_shape,
    computed,
    explained,
    integers,
    keyword_error,
)
from adjoint.functions.creation import made
from adjoint.operands import common_backend, concrete_values, fail, has_none_yet, lift_to, operand, run
from adjoint.primitives import ARRAY, broadcast_shapes
from adjoint.tensor import Axis, Number, Operand, Tensor, same, wrap
from adjoint.variables import B


def _one_tuple(name: str, first: Any, rest: tuple[Any, ...]) -> None:
    """Refuses `x.permute_dims(1, 0)`, and says how it is written."""
    if rest:
        raise errors.ArgumentTypeError(f"{name}: expected one tuple; write x.{name}({errors.shown((first, *rest))})")


def reshape(
    x: Operand[B], /, shape: int | Sequence[int], *sizes: int, order: str | None = "C", copy: bool | None = None
) -> Tensor[B]:
    """The same elements, in order, in another shape, also as `x.reshape(2, 3)`; one size may be -1 and is worked out.

    The last axis runs fastest, with `order="F"` the first. `copy` is the standard's, and changes nothing: whether
    tensors share memory cannot be seen.
    Raises ShapeError where the elements do not fill the shape.

    >>> import adjoint as ad
    >>> ad.reshape(ad.arange(6), (2, -1)).shape
    (2, 3)
    """
    x = as_tensor(x, "reshape")
    wanted = list(integers((shape, *sizes) if sizes else shape, "reshape", "sizes"))
    if as_choice(order, "reshape", "order", _ORDERS) == "F":
        return _reversed(reshape(_reversed(x), wanted[::-1]))
    if wanted.count(-1) > 1:
        raise errors.ShapeError(f"reshape: one size may be -1, received {errors.shown(tuple(wanted))}")
    if -1 in wanted:
        known = math.prod(n for n in wanted if n != -1)
        if not known or x.size % known:
            raise errors.ShapeError(f"reshape: {x.size} elements of shape {x.shape} do not fill shape {tuple(wanted)}")
        wanted[wanted.index(-1)] = x.size // known
    return run("reshape", (x,), shape=as_shape(wanted, "reshape"))  # type: ignore[no-any-return]


_ORDERS = ("C", "F", "A", None)  # tensors have no order in memory, so that A is C


def _reversed(x: Tensor[B]) -> Tensor[B]:
    return permute_dims(x, range(x.ndim)[::-1])


@explained
def permute_dims(x: Operand[B], /, axes: Sequence[int], *rest: Never, **unknown: Never) -> Tensor[B]:
    """The axes in another order: axis i of the result is axis `axes[i]` of x.

    Shape (a, b, c) becomes (c, a, b) for axes (2, 0, 1). Raises AxisError unless every axis is named once.
    """
    if unknown:
        raise keyword_error(permute_dims, unknown)
    _one_tuple("permute_dims", axes, rest)
    x = as_tensor(x, "permute_dims")
    order = axes_in_order(axes, x.ndim, "permute_dims")
    if len(order) != x.ndim:
        raise errors.AxisError(f"permute_dims: axes {axes} do not name each of {x.ndim} axes once")
    return run("permute_dims", (x,), axes=order)  # type: ignore[no-any-return]


def matrix_transpose(x: Operand[B], /) -> Tensor[B]:
    """The transposes of a stack of matrices."""
    return as_tensor(x, "matrix_transpose").mT


def moveaxis(x: Operand[B], source: int | Sequence[int], destination: int | Sequence[int], /) -> Tensor[B]:
    """Axes moved to other places, the rest in their order.

    Shape (a, b, c) becomes (b, c, a) for source 0 and destination -1.
    """
    x = as_tensor(x, "moveaxis")
    pairs = [axes_in_order(end, x.ndim, "moveaxis") for end in (source, destination)]
    if len(pairs[0]) != len(pairs[1]):
        raise errors.AxisError(f"moveaxis: source {source} and destination {destination} do not pair up")
    order = [i for i in range(x.ndim) if i not in pairs[0]]
    for to, start in sorted(zip(pairs[1], pairs[0], strict=True)):
        order.insert(to, start)
    return permute_dims(x, order)


@explained
def expand_dims(x: Operand[B], /, axis: int | Sequence[int] = 0, **unknown: Never) -> Tensor[B]:
    """New axes of size one, at these places of the result."""
    if unknown:
        raise keyword_error(expand_dims, unknown)
    x = as_tensor(x, "expand_dims")
    count = len(integers(axis, "expand_dims", "axes"))
    return run("expand_dims", (x,), axis=as_axes(axis, x.ndim + count, "expand_dims"))  # type: ignore[no-any-return]


@explained
def squeeze(x: Operand[B], /, axis: Axis = None, **unknown: Never) -> Tensor[B]:
    """x without the given axes of size one, or without all of them. Raises ShapeError for an axis of another size."""
    if unknown:
        raise keyword_error(squeeze, unknown)
    x = as_tensor(x, "squeeze")
    axes = [i for i, n in enumerate(x.shape) if n == 1] if axis is None else as_axes(axis, x.ndim, "squeeze")
    return run("squeeze", (x,), axis=tuple(axes))  # type: ignore[no-any-return]


def broadcast_to(x: Operand[B], /, shape: int | Sequence[int], *rest: Never) -> Tensor[B]:
    """The tensor repeated along axes of size one and new leading ones, without a copy.

    Raises ShapeError where the shape cannot be reached.
    """
    _one_tuple("broadcast_to", shape, rest)
    return run("broadcast_to", (as_tensor(x, "broadcast_to"),), shape=as_shape(shape, "broadcast_to"))  # type: ignore[no-any-return]


def broadcast_arrays(*arrays: Operand[B]) -> tuple[Tensor[B], ...]:
    """The tensors, each broadcast to their common shape."""
    tensors = [as_tensor(x, "broadcast_arrays", *arrays) for x in arrays]
    try:
        shape = broadcast_shapes(*[x.shape for x in tensors])
    except errors.ShapeError as error:
        raise errors.ShapeError(f"broadcast_arrays: {error}") from None
    return tuple([broadcast_to(x, shape) for x in tensors])


@overload
def concat(arrays: Sequence[Tensor[B]], /, axis: int | None = 0) -> Tensor[B]: ...
@overload
def concat(arrays: Sequence[Operand[Any]], /, axis: int | None = 0) -> Tensor[Any]: ...
@explained
def concat(arrays: Sequence[Operand[Any]], /, axis: int | None = 0, **unknown: Never) -> Tensor[Any]:
    """Tensors joined along an axis, or flattened and joined for None.

    Raises ShapeError where other axes differ, ArgumentError for no tensors.
    """
    if unknown:
        raise keyword_error(concat, unknown)
    tensors = as_tensors(_some(arrays, "concat"), "concat")
    if axis is None:
        tensors, axis = [reshape(x, -1) for x in tensors], 0
    return run("concat", tensors, axis=as_axis(axis, tensors[0].ndim, "concat"))  # type: ignore[no-any-return]


@overload
def stack(arrays: Sequence[Tensor[B]], /, axis: int = 0) -> Tensor[B]: ...
@overload
def stack(arrays: Sequence[Operand[Any]], /, axis: int = 0) -> Tensor[Any]: ...
@explained
def stack(arrays: Sequence[Operand[Any]], /, axis: int = 0, **unknown: Never) -> Tensor[Any]:
    """Tensors of one shape joined along a new axis. Errors as `concat`."""
    if unknown:
        raise keyword_error(stack, unknown)
    tensors = as_tensors(_some(arrays, "stack"), "stack")
    shape = tensors[0].shape
    for x in tensors:
        if x.shape != shape:
            raise errors.ShapeError(f"stack: shapes {shape} and {x.shape} differ; all must be equal")
    return stacked(tensors, as_axis(axis, len(shape) + 1, "stack"))


def stacked(tensors: Sequence[Tensor[B]], axis: int = 0) -> Tensor[B]:
    """Tensors that are known to be of one shape and dtype, joined along a new axis."""
    if tensors[0].ndim >= AXES:
        raise errors.ShapeError(f"stack: tensors of {AXES} axes have no room for another one")
    device = common_backend(*tensors)
    expand_dims = device.expand_dims
    return wrap(device.concat(*[expand_dims(lift_to(x, device), axis=(axis,)) for x in tensors], axis=axis), device)


def _some(arrays: Any, name: str) -> list[Any]:
    if not isinstance(arrays, (list, tuple, Tensor, np.ndarray)):
        raise errors.ArgumentTypeError(f"{name}: expected a list or tuple of tensors, received {type(arrays).__name__}")
    given = _rows(arrays, name) if getattr(arrays, "ndim", 1) else []
    if not given:
        raise errors.ArgumentError(f"{name}: expected at least one tensor")
    return given


def _rows(arrays: Any, name: str) -> list[Any]:
    """A list of tensors, or the parts of one along its first axis."""
    if not isinstance(arrays, (list, tuple)):
        refuse_many(arrays.shape[0], arrays, name)
    return list(arrays)


def refuse_many(count: int, x: Any, name: str) -> None:
    """Raises ArgumentError for more parts than anybody wants of so few elements: each of them is a tensor."""
    if count > max(x.size, 100_000):
        raise errors.ArgumentError(f"{name}: {errors.shown(count)} parts of {x.size} elements are too many")


@explained
def unstack(x: Operand[B], /, *, axis: int = 0, **unknown: Never) -> tuple[Tensor[B], ...]:
    """The slices along an axis, as a tuple."""
    if unknown:
        raise keyword_error(unstack, unknown)
    x = as_tensor(x, "unstack")
    place = as_axis(axis, x.ndim, "unstack")
    refuse_many(x.shape[place], x, "unstack")
    before, device, array = (slice(None),) * place, x._device, x._array
    return tuple([wrap(device.index(array, key=(*before, i)), device) for i in range(x.shape[place])])


@explained
def flip(x: Operand[B], /, axis: Axis = None, **unknown: Never) -> Tensor[B]:
    """The elements in reverse order along axes, or all."""
    if unknown:
        raise keyword_error(flip, unknown)
    x = as_tensor(x, "flip")
    return run("flip", (x,), axis=as_axes(axis, x.ndim, "flip"))  # type: ignore[no-any-return]


@explained
def roll(x: Operand[B], /, shift: int | Sequence[int], axis: Axis = None, **unknown: Never) -> Tensor[B]:
    """Elements shifted along axes; those pushed out come in again at the other end.

    The result has the shape of x; without an axis, x is rolled as a vector and put in its shape again.
    """
    if unknown:
        raise keyword_error(roll, unknown)
    given: Any = x if x.__class__ is Tensor else as_tensor(x, "roll")
    if isinstance(shift, Number):
        if has_none_yet(shift) and (axis is None or type(axis) is int):
            return _rolled_later(given, shift, axis)
        shift = int(shift)
    if type(shift) is int and type(axis) is int and abs(shift) < 2**62:  # what follows, of one axis
        return _rolled(given, shift, axis)
    if axis is None:
        return reshape(roll(reshape(given, -1), shift, axis=0), given.shape)
    axes, shifts = integers(axis, "roll", "axes"), integers(shift, "roll", "shifts")
    if isinstance(shift, (int, np.integer)):
        shifts *= len(axes)
    if len(shifts) != len(axes):
        raise errors.ArgumentError(f"roll: {len(shifts)} shifts for {len(axes)} axes")
    out = same(given)
    for by, i in zip(shifts, axes, strict=True):
        out = _rolled(out, by, i)
    return out


def _rolled_later(x: Tensor[Any], shift: Any, axis: int | None) -> Tensor[Any]:
    """Shifted by what a program that is recorded computes: the number of a step, say."""
    if axis is None:
        return reshape(_rolled_later(reshape(x, -1), shift, 0), x.shape)
    axis = as_axis(axis, x.ndim, "roll")
    n = x.shape[axis]
    if not n:
        return same(x)
    places = made(shift._device, "arange", start=0, stop=n, step=1, dtype=dtypes.int64)
    key = (*[slice(None)] * axis, ARRAY, *[slice(None)] * (x.ndim - axis - 1))
    return run("index", (x, (places - shift) % n), key=key)  # type: ignore[no-any-return]


def _rolled(x: Tensor[Any], shift: int, axis: int) -> Tensor[Any]:
    """Shifted along one axis."""
    sizes = x._array.shape
    if not 0 <= axis < len(sizes):
        axis = as_axis(axis, len(sizes), "roll")
    n = sizes[axis]
    if not 0 < shift < n:
        shift = shift % n if n else 0
        if not shift:
            return same(x)
    device = x._device
    try:
        out = device.roll(x._array, shift=shift, axis=axis)
    except Exception as error:
        fail(error, device, "roll", (x._array,), {"shift": shift, "axis": axis})
    return wrap(out, device, x._dtype)


def tile(x: Operand[B], repetitions: Sequence[int], /) -> Tensor[B]:
    """The tensor repeated, so many times along each axis, counted from the last.

    Shape (a, b) becomes (2 a, 3 b) for repetitions (2, 3).
    """
    x = as_tensor(x, "tile")
    times = as_shape(repetitions, "tile")
    ndim = max(x.ndim, len(times))
    times = (1,) * (ndim - len(times)) + times
    shape = (1,) * (ndim - x.ndim) + x.shape
    check_shape(tuple([n * m for n, m in zip(times, shape, strict=True)]), "tile")
    spread = [size for pair in zip((1,) * ndim, shape, strict=True) for size in pair]
    target = [size for pair in zip(times, shape, strict=True) for size in pair]
    wide = broadcast_to(reshape(x, spread), target)
    return reshape(wide, tuple(n * m for n, m in zip(times, shape, strict=True)))


@explained
def repeat(x: Operand[B], repeats: Any, /, axis: int | None = None, **unknown: Never) -> Tensor[B]:
    """Each element repeated in place along an axis, or in the flattened tensor.

    `repeats` is one number for all, or integers for each place along the axis, whose values the result's shape follows.
    Raises ArgumentTypeError for what are no integers, ShapeError for negative ones or another number of them.

    >>> import adjoint as ad
    >>> ad.repeat(ad.tensor([1.0, 2.0]), ad.tensor([2, 1])).tolist()
    [1.0, 1.0, 2.0]
    """
    if unknown:
        raise keyword_error(repeat, unknown)
    x = as_tensor(x, "repeat")
    if axis is None:
        x, axis = reshape(x, -1), 0
    place = as_axis(axis, x.ndim, "repeat")
    if not isinstance(repeats, (int, np.integer)):
        counts = _counts(repeats, x.shape[place])
        if counts.size == 1:
            return repeat(x, int(counts[0]), axis=place)
        check_shape((sum(map(int, counts)),), "repeat")
        places = computed("repeat", np.repeat, np.arange(len(counts), dtype=np.int64), counts)
        return x[(*[slice(None)] * place, places)]
    times = as_size(repeats, "repeat", "repeats")
    check_shape((*x.shape, times), "repeat")
    wide = expand_dims(x, place + 1)
    wide = broadcast_to(wide, (*x.shape[: place + 1], times, *x.shape[place + 1 :]))
    return reshape(wide, (*x.shape[:place], x.shape[place] * times, *x.shape[place + 1 :]))


def _counts(repeats: Any, size: int) -> np.ndarray[Any, Any]:
    """How often each of `size` places is repeated."""
    try:
        given = concrete_values(repeats, "repeat: a tensor of repeats")
    except ValueError:
        raise errors.ArgumentTypeError(f"repeat: repeats are integers, received {errors.shown(repeats)}") from None
    if given.dtype.kind not in "iu":
        raise errors.ArgumentTypeError(f"repeat: repeats are integers, received {errors.shown(repeats)}")
    if given.shape not in ((), (1,), (size,)) or (given < 0).any():
        raise errors.ShapeError(
            f"repeat: expected {size} numbers that are not negative, one for each place along the axis, received "
            f"{errors.shown(repeats)}"
        )
    return given.reshape(-1)


def unflatten(x: Operand[B], axis: int, sizes: int | Sequence[int], /) -> Tensor[B]:
    """An axis split into several, of these sizes; one of them may be -1 and is worked out.

    Shape (a, 6) becomes (a, 2, 3) for axis 1 and sizes (2, -1). Raises AxisError for an axis that is not there,
    ShapeError for sizes that do not fill it.

    >>> import adjoint as ad
    >>> ad.unflatten(ad.zeros((2, 6)), 1, (3, -1)).shape
    (2, 3, 2)
    """
    x, wanted = as_tensor(x, "unflatten"), list(integers(sizes, "unflatten", "sizes"))
    place = as_axis(axis, x.ndim, "unflatten")
    n, known = x.shape[place], math.prod(size for size in wanted if size != -1)
    if wanted.count(-1) == 1 and known and not n % known:
        wanted[wanted.index(-1)] = n // known
    if not wanted or min(wanted) < 0 or math.prod(wanted) != n:
        raise errors.ShapeError(f"unflatten: sizes {errors.shown(sizes)} do not fill axis {axis} of shape {x.shape}")
    return reshape(x, (*x.shape[:place], *wanted, *x.shape[place + 1 :]))


def resize(x: Operand[B], shape: int | Sequence[int], /) -> Tensor[B]:
    """The elements in order in another shape, from the first again after the last; zeros if there are none.

    Raises ShapeError for negative sizes.

    >>> import adjoint as ad
    >>> ad.resize(ad.tensor([1, 2, 3]), (2, 4)).tolist()
    [[1, 2, 3, 1], [2, 3, 1, 2]]
    """
    x, sizes = ravel(as_tensor(x, "resize")), as_shape(shape, "resize")
    count = math.prod(sizes)
    if not x.size:
        return made(x.device, "full", shape=sizes, value=0, dtype=x.dtype)
    return reshape(tile(x, (-(-count // x.size),))[:count], sizes)


def tril(x: Operand[B], /, k: int = 0) -> Tensor[B]:
    """Matrices with zeros above the k-th diagonal."""
    return _triangle("tril", x, k)


def triu(x: Operand[B], /, k: int = 0) -> Tensor[B]:
    """Matrices with zeros below the k-th diagonal."""
    return _triangle("triu", x, k)


def _triangle(name: str, x: Any, k: int) -> Tensor[Any]:
    x = as_tensor(x, name)
    if x.ndim < 2:
        raise errors.ShapeError(f"{name}: expected matrices, received shape {x.shape}")
    diagonal = max(-x.shape[-2], min(as_integer(k, name, "k"), x.shape[-1]))  # all others mean the same as these
    return run(name, (x,), k=diagonal)  # type: ignore[no-any-return]


def swapaxes(x: Operand[B], axis1: int, axis2: int, /) -> Tensor[B]:
    """Two axes in each other's place. Raises AxisError for an axis that is not there.

    Shape (a, b, c) becomes (c, b, a) for axes 0 and 2.
    """
    x = as_tensor(x, "swapaxes")
    first, second = (as_axis(i, x.ndim, "swapaxes") for i in (axis1, axis2))
    order = list(range(x.ndim))
    order[first], order[second] = second, first
    return permute_dims(x, order)


def ravel(x: Operand[B], /, order: str | None = "C") -> Tensor[B]:
    """All elements along one axis: the last axis runs fastest, with `order="F"` the first."""
    return reshape(x, -1, order="C" if as_choice(order, "ravel", "order", (*_ORDERS, "K")) == "K" else order)


def _at_least(name: str, arrays: tuple[Any, ...], ndim: int) -> Any:
    if not arrays:
        raise errors.ArgumentError(f"{name}: expected at least one tensor")
    out = []
    for value in arrays:
        x = as_tensor(value, name, *arrays)
        missing = ndim - x.ndim
        if missing > 0:  # NumPy's places: a vector is the row of a matrix, and the middle axis of three
            after = 1 if ndim == 3 and x.ndim in (1, 2) else 0
            x = run("reshape", (x,), shape=((1,) * (missing - after) + x.shape + (1,) * after))
        out.append(same(x) if x is value else x)
    return out[0] if len(out) == 1 else tuple(out)


def atleast_1d(*arrays: Operand[B]) -> Any:
    """The tensors with at least one axis; one for one, else a tuple. Raises ArgumentError for none.

    A scalar becomes (1,).
    """
    return _at_least("atleast_1d", arrays, 1)


def atleast_2d(*arrays: Operand[B]) -> Any:
    """The tensors with at least two axes, new ones in front; one for one, else a tuple.

    A scalar becomes (1, 1) and (n,) becomes (1, n).
    """
    return _at_least("atleast_2d", arrays, 2)


def atleast_3d(*arrays: Operand[B]) -> Any:
    """The tensors with at least three axes: (n,) becomes (1, n, 1) and (n, m) becomes (n, m, 1)."""
    return _at_least("atleast_3d", arrays, 3)


def _several(arrays: Any, name: str) -> list[Tensor[Any]]:
    if not isinstance(arrays, (list, tuple, Tensor, np.ndarray)) or not getattr(arrays, "ndim", 1) or not len(arrays):
        raise errors.ArgumentError(f"{name}: expected a list or tuple of at least one tensor")
    return as_tensors(_rows(arrays, name), name)


@overload
def hstack(arrays: Sequence[Tensor[B]], /) -> Tensor[B]: ...
@overload
def hstack(arrays: Sequence[Operand[Any]], /) -> Tensor[Any]: ...
def hstack(arrays: Sequence[Operand[Any]], /) -> Tensor[Any]:
    """Tensors joined along their second axis, or along the first if they have one.

    Raises ShapeError where other axes differ, ArgumentError for no tensors; so do the other stacks.

    >>> import adjoint as ad
    >>> ad.hstack([ad.tensor([1, 2]), ad.tensor([3])]).tolist()
    [1, 2, 3]
    """
    tensors = [atleast_1d(x) for x in _several(arrays, "hstack")]
    return concat(tensors, axis=0 if tensors[0].ndim == 1 else 1)


@overload
def vstack(arrays: Sequence[Tensor[B]], /) -> Tensor[B]: ...
@overload
def vstack(arrays: Sequence[Operand[Any]], /) -> Tensor[Any]: ...
def vstack(arrays: Sequence[Operand[Any]], /) -> Tensor[Any]:
    """Tensors joined along their first axis; vectors are rows."""
    return concat([atleast_2d(x) for x in _several(arrays, "vstack")], axis=0)


@overload
def dstack(arrays: Sequence[Tensor[B]], /) -> Tensor[B]: ...
@overload
def dstack(arrays: Sequence[Operand[Any]], /) -> Tensor[Any]: ...
def dstack(arrays: Sequence[Operand[Any]], /) -> Tensor[Any]:
    """Tensors joined along their third axis, after `atleast_3d`."""
    return concat([atleast_3d(x) for x in _several(arrays, "dstack")], axis=2)


@overload
def column_stack(arrays: Sequence[Tensor[B]], /) -> Tensor[B]: ...
@overload
def column_stack(arrays: Sequence[Operand[Any]], /) -> Tensor[Any]: ...
def column_stack(arrays: Sequence[Operand[Any]], /) -> Tensor[Any]:
    """Vectors as the columns of a matrix, and matrices beside them."""
    tensors = _several(arrays, "column_stack")
    return concat([reshape(x, (-1, 1)) if x.ndim < 2 else x for x in tensors], axis=1)


def block(arrays: Any, /) -> Tensor[Any]:
    """A tensor put together from nested lists of blocks: the innermost join along the last axis, and so outwards.

    Blocks of fewer axes get leading ones. Raises ArgumentError for lists of different depths or empty ones, ShapeError
    where blocks do not fit.

    >>> import adjoint as ad
    >>> ad.block([[ad.eye(1), ad.zeros((1, 2))], [ad.ones((1, 3))]]).tolist()
    [[1.0, 0.0, 0.0], [1.0, 1.0, 1.0]]
    """
    depth, blocks = _depth(arrays), _leaves(arrays)
    tensors = as_tensors(blocks, "block")
    ndim = max(depth, *[x.ndim for x in tensors])
    rest = iter([run("reshape", (x,), shape=(1,) * (ndim - x.ndim) + x.shape) for x in tensors])

    def joined(part: Any, axis: int) -> Tensor[Any]:
        return concat([joined(inner, axis + 1) for inner in part], axis=axis) if isinstance(part, list) else next(rest)

    return joined(arrays, ndim - depth)


def _depth(part: Any, outside: int = 0) -> int:
    if not isinstance(part, list):
        return 0
    depths = {_depth(inner, outside + 1) for inner in part} if outside < AXES else ()
    if len(depths) != 1:
        raise errors.ArgumentError("block: expected nested lists of one depth, up to 64, none of them empty")
    return 1 + next(iter(depths))


def _leaves(part: Any) -> list[Any]:
    return [leaf for inner in part for leaf in _leaves(inner)] if isinstance(part, list) else [part]


def append(x: Operand[B], values: Any, /, axis: int | None = None) -> Tensor[B]:
    """x with values added at the end of an axis; without an axis both are flattened and joined. Errors as `concat`."""
    return concat([x, values], axis=axis)


def fliplr(x: Operand[B], /) -> Tensor[B]:
    """The second axis in reverse order. Raises AxisError for fewer than two axes."""
    return flip(x, axis=1)


def flipud(x: Operand[B], /) -> Tensor[B]:
    """The first axis in reverse order. Raises AxisError for a 0-d tensor."""
    return flip(x, axis=0)


@explained
def rot90(x: Operand[B], /, k: int = 1, axes: Sequence[int] = (0, 1), **unknown: Never) -> Tensor[B]:
    """x turned by 90 degrees k times, from the first of two axes towards the second.

    Raises AxisError unless there are two different axes.
    """
    if unknown:
        raise keyword_error(rot90, unknown)
    x, turns = as_tensor(x, "rot90"), as_integer(k, "rot90", "k") % 4
    plane = axes_in_order(axes, x.ndim, "rot90")
    if len(plane) != 2:
        raise errors.AxisError(f"rot90: expected two different axes, received {errors.shown(axes)}")
    first, second = plane
    if turns == 0:
        return same(x)
    if turns == 2:
        return flip(x, axis=plane)
    if turns == 1:
        return swapaxes(flip(x, axis=second), first, second)
    return flip(swapaxes(x, first, second), axis=second)


@explained
def diagonal(x: Operand[B], /, offset: int = 0, axis1: int = 0, axis2: int = 1, **unknown: Never) -> Tensor[B]:
    """The elements whose place along `axis2` is that along `axis1` plus an offset, along a new last axis.

    Raises AxisError unless the axes are two of the tensor's.
    """
    if unknown:
        raise keyword_error(diagonal, unknown)
    x, k = as_tensor(x, "diagonal"), as_integer(offset, "diagonal", "offset")
    first, second = (as_axis(i, x.ndim, "diagonal") for i in (axis1, axis2))
    if x.ndim < 2 or first == second:
        raise errors.AxisError(f"diagonal: expected two different axes of shape {x.shape}, received {axis1}, {axis2}")
    rest = [i for i in range(x.ndim) if i not in (first, second)]
    count = max(0, min(x.shape[first] - max(0, -k), x.shape[second] - max(0, k)))
    if second == first + 1:  # neighbours in memory: every so many elements of both axes made one
        shape, columns = x.shape, x.shape[second]
        lines = run("reshape", (x,), shape=(*shape[:first], shape[first] * columns, *shape[second + 1 :]))
        start = max(0, -k) * columns + max(0, k) if count else 0
        stop = start + (count - 1) * (columns + 1) + 1 if count else 0
        out = run("index", (lines,), key=(*[slice(None)] * first, slice(start, stop, columns + 1)))
        return moveaxis(out, first, -1) if rest and rest[-1] > second else out
    line = operand(np.arange(count), x, "diagonal")
    picked = run("index", (permute_dims(x, [first, second, *rest]), line + max(0, -k), line + max(0, k)), key=_TWO)
    return moveaxis(picked, 0, -1)


_TWO = (ARRAY, ARRAY)


def diag(x: Operand[B], /, k: int = 0) -> Tensor[B]:
    """The k-th diagonal of a matrix, or the matrix that has a vector there and zeros elsewhere.

    Raises ShapeError for other than one or two axes.

    >>> import adjoint as ad
    >>> ad.diag(ad.tensor([1.0, 2.0])).tolist()
    [[1.0, 0.0], [0.0, 2.0]]
    """
    x, place = as_tensor(x, "diag"), as_integer(k, "diag", "k")
    if x.ndim == 2:
        return diagonal(x, place)
    if x.ndim != 1:
        raise errors.ShapeError(f"diag: expected a vector or a matrix, received shape {x.shape}")
    return _on_diagonal(x, place)


@explained
def diag_embed(x: Operand[B], /, offset: int = 0, axis1: int = -2, axis2: int = -1, **unknown: Never) -> Tensor[B]:
    """Matrices that have the lines along the last axis on a diagonal, and zeros elsewhere: the inverse of `diagonal`.

    The matrices' axes are two of the result's. Raises AxisError for others, or for a 0-d x.

    >>> import adjoint as ad
    >>> ad.diag_embed(ad.tensor([1.0, 2.0])).tolist()
    [[1.0, 0.0], [0.0, 2.0]]
    """
    if unknown:
        raise keyword_error(diag_embed, unknown)
    x, k = as_tensor(x, "diag_embed"), as_integer(offset, "diag_embed", "offset")
    if not x.ndim:
        raise errors.AxisError("diag_embed: a 0-d tensor has no lines for diagonals")
    first, second = (as_axis(i, x.ndim + 1, "diag_embed") for i in (axis1, axis2))
    if first == second:
        raise errors.AxisError(f"diag_embed: expected two different axes for matrices, received {axis1} and {axis2}")
    matrices = _on_diagonal(x, k)
    return matrices if (first, second) == (x.ndim - 1, x.ndim) else moveaxis(matrices, (-2, -1), (first, second))


def _on_diagonal(x: Tensor[Any], k: int) -> Tensor[Any]:
    """The lines along the last axis as the k-th diagonals of square matrices."""
    count, rest = x.shape[-1], x.shape[:-1]
    n = count + abs(k)
    check_shape((*rest, n, n), "diag")
    zeros = made(x.device, "full", shape=(*rest, n * n), value=0, dtype=x.dtype)
    start = max(0, -k) * n + max(0, k)
    every = slice(start, start + (count - 1) * (n + 1) + 1, n + 1) if count else slice(0, 0, 1)
    return reshape(run("index_add", (zeros, x), key=(*[slice(None)] * len(rest), every)), (*rest, n, n))


def diagflat(x: Operand[B], /, k: int = 0) -> Tensor[B]:
    """The matrix that has all elements, in order, on its k-th diagonal."""
    return diag(ravel(x), k=k)


def sliding_window_view(x: Operand[B], window_shape: int | Sequence[int], /, *, axis: Axis = None) -> Tensor[B]:
    """All windows of a shape along axes, or all: their places stay where the axes were, their elements come last.

    Where the leaf has views nothing is copied, and x[..., ::step, :] then takes every so many. The gradient adds up
    what comes back from the windows that an element is in, in a loop over the places of a window.
    Raises ShapeError for windows that do not fit.

    >>> import adjoint as ad
    >>> ad.sliding_window_view(ad.arange(4), 2).tolist()
    [[0, 1], [1, 2], [2, 3]]
    """
    x, sizes = as_tensor(x, "sliding_window_view"), integers(window_shape, "sliding_window_view", "sizes of windows")
    axes = as_axes(None, x.ndim, "") if axis is None else integers(axis, "sliding_window_view", "axes")
    if len(axes) != len(sizes):
        raise errors.ShapeError(f"sliding_window_view: {len(sizes)} sizes of windows for {len(axes)} axes")
    if any(size < 1 for size in sizes):
        raise errors.ShapeError(
            f"sliding_window_view: windows have at least one element; received sizes {errors.shown(sizes)}"
        )
    out: Tensor[Any] = x
    for place, size in zip(axes, sizes, strict=True):
        place = as_axis(place, x.ndim, "sliding_window_view")
        if size > out.shape[place]:
            raise errors.ShapeError(
                f"sliding_window_view: windows of {size} elements do not fit axis {place} of shape {x.shape}"
            )
        out = run("windows", (out,), axis=place, size=size)
    return out
