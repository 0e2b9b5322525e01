"""Functions that move elements without changing them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Never, TypeVar

import numpy as np

from adjoint import errors
from adjoint.backend import Backend
from adjoint.functions.arguments import (
    as_axes,
    as_axis,
    as_constant,
    as_integer,
    as_shape,
    as_tensor,
    as_tensors,
    integers,
)
from adjoint.operands import concrete_values, run
from adjoint.primitives import broadcast_shapes
from adjoint.tensor import Axis, Tensor, wrap

B = TypeVar("B", bound=Backend)


def _one_tuple(name: str, first: Any, rest: tuple[Any, ...]) -> None:
    """Refuses `x.reshape(2, 3)`, and says how it is written."""
    if rest:
        raise errors.ArgumentTypeError(f"{name}: expected one tuple; write x.{name}({errors.shown((first, *rest))})")


def reshape(x: Tensor[B], /, shape: int | Sequence[int], *rest: Never, copy: bool | None = None) -> Tensor[B]:
    """The same elements, in order, in another shape; one size may be -1 and is worked out.

    `copy` is the standard's, and changes nothing: whether tensors share memory cannot be seen.
    Raises ShapeError where the elements do not fill the shape.

    >>> import adjoint as ad
    >>> ad.reshape(ad.arange(6), (2, -1)).shape
    (2, 3)
    """
    _one_tuple("reshape", shape, rest)
    x = as_tensor(x, "reshape")
    sizes = list(integers(shape, "reshape", "sizes"))
    if sizes.count(-1) == 1:
        known = math.prod(n for n in sizes if n != -1)
        if not known or x.size % known:
            raise errors.ShapeError(f"reshape: {x.size} elements of shape {x.shape} do not fill shape {tuple(sizes)}")
        sizes[sizes.index(-1)] = x.size // known
    return run("reshape", (x,), shape=as_shape(sizes, "reshape"))  # type: ignore[no-any-return]


def permute_dims(x: Tensor[B], /, axes: Sequence[int], *rest: Never) -> Tensor[B]:
    """The axes in another order: axis i of the result is axis `axes[i]` of x.

    Raises AxisError unless every axis is named once.
    """
    _one_tuple("permute_dims", axes, rest)
    x = as_tensor(x, "permute_dims")
    order = tuple(as_axis(i, x.ndim, "permute_dims") for i in integers(axes, "permute_dims", "axes"))
    if sorted(order) != list(range(x.ndim)):
        raise errors.AxisError(f"permute_dims: axes {axes} do not name each of {x.ndim} axes once")
    return run("permute_dims", (x,), axes=order)  # type: ignore[no-any-return]


def matrix_transpose(x: Tensor[B], /) -> Tensor[B]:
    """The transposes of a stack of matrices."""
    return as_tensor(x, "matrix_transpose").mT


def moveaxis(x: Tensor[B], source: int | Sequence[int], destination: int | Sequence[int], /) -> Tensor[B]:
    """Axes moved to other places, the rest in their order."""
    x = as_tensor(x, "moveaxis")
    pairs = [
        [as_axis(i, x.ndim, "moveaxis") for i in integers(end, "moveaxis", "axes")] for end in (source, destination)
    ]
    if len(pairs[0]) != len(pairs[1]) or any(len(set(p)) < len(p) for p in pairs):
        raise errors.AxisError(f"moveaxis: source {source} and destination {destination} do not pair up")
    order = [i for i in range(x.ndim) if i not in pairs[0]]
    for to, start in sorted(zip(pairs[1], pairs[0], strict=True)):
        order.insert(to, start)
    return permute_dims(x, order)


def expand_dims(x: Tensor[B], /, axis: int | Sequence[int] = 0) -> Tensor[B]:
    """New axes of size one, at these places of the result."""
    x = as_tensor(x, "expand_dims")
    count = len(integers(axis, "expand_dims", "axes"))
    return run("expand_dims", (x,), axis=as_axes(axis, x.ndim + count, "expand_dims"))  # type: ignore[no-any-return]


def squeeze(x: Tensor[B], /, axis: Axis = None) -> Tensor[B]:
    """Without the given axes, or all, of size one. Raises ShapeError for an axis of another size."""
    x = as_tensor(x, "squeeze")
    ones = tuple(i for i, n in enumerate(x.shape) if n == 1)
    return run("squeeze", (x,), axis=ones if axis is None else as_axes(axis, x.ndim, "squeeze"))  # type: ignore[no-any-return]


def broadcast_to(x: Tensor[B], /, shape: int | Sequence[int], *rest: Never) -> Tensor[B]:
    """Repeated along axes of size one and new leading ones, without a copy.

    Raises ShapeError where the shape cannot be reached.
    """
    _one_tuple("broadcast_to", shape, rest)
    return run("broadcast_to", (as_tensor(x, "broadcast_to"),), shape=as_shape(shape, "broadcast_to"))  # type: ignore[no-any-return]


def broadcast_arrays(*arrays: Tensor[B]) -> list[Tensor[B]]:
    """The tensors, each broadcast to their common shape."""
    tensors = [as_tensor(x, "broadcast_arrays") for x in arrays]
    try:
        shape = broadcast_shapes(*[x.shape for x in tensors])
    except errors.ShapeError as error:
        raise errors.ShapeError(f"broadcast_arrays: {error}") from None
    return [broadcast_to(x, shape) for x in tensors]


def concat(arrays: Sequence[Tensor[B]], /, *, axis: int | None = 0) -> Tensor[B]:
    """Tensors joined along an axis, or flattened and joined for None.

    Raises ShapeError where other axes differ, ArgumentError for no tensors.
    """
    tensors = as_tensors(_some(arrays, "concat"), "concat")
    if axis is None:
        tensors, axis = [reshape(x, -1) for x in tensors], 0
    return run("concat", tensors, axis=as_axis(axis, tensors[0].ndim, "concat"))  # type: ignore[no-any-return]


def stack(arrays: Sequence[Tensor[B]], /, *, axis: int = 0) -> Tensor[B]:
    """Tensors of one shape joined along a new axis. Errors as `concat`."""
    tensors = as_tensors(_some(arrays, "stack"), "stack")
    for x in tensors:
        if x.shape != tensors[0].shape:
            raise errors.ShapeError(f"stack: shapes {tensors[0].shape} and {x.shape} differ; all must be equal")
    place = as_axis(axis, tensors[0].ndim + 1, "stack")
    return run("concat", [run("expand_dims", (x,), axis=(place,)) for x in tensors], axis=place)  # type: ignore[no-any-return]


def _some(arrays: Any, name: str) -> list[Any]:
    if not isinstance(arrays, (list, tuple, Tensor, np.ndarray)):
        raise errors.ArgumentTypeError(f"{name}: expected a list or tuple of tensors, received {type(arrays).__name__}")
    given = list(arrays) if getattr(arrays, "ndim", 1) else []
    if not given:
        raise errors.ArgumentError(f"{name}: expected at least one tensor")
    return given


def unstack(x: Tensor[B], /, *, axis: int = 0) -> tuple[Tensor[B], ...]:
    """The slices along an axis, as a tuple."""
    x = as_tensor(x, "unstack")
    place = as_axis(axis, x.ndim, "unstack")
    before, device, array = (slice(None),) * place, x._device, x._array
    return tuple([wrap(device.index(array, key=(*before, i)), device) for i in range(x.shape[place])])


def flip(x: Tensor[B], /, *, axis: Axis = None) -> Tensor[B]:
    """The elements in reverse order along axes, or all."""
    x = as_tensor(x, "flip")
    return run("flip", (x,), axis=as_axes(axis, x.ndim, "flip"))  # type: ignore[no-any-return]


def pad(x: Tensor[B], /, pad_width: Any, *, mode: str = "constant", value: complex = 0) -> Tensor[B]:
    """A border around the tensor: of a constant value, or of elements that are there.

    `pad_width` is one width for all sides, a pair (before, after) for all axes, or a pair per axis. `mode` is that of
    NumPy: "constant" takes `value`, "edge" repeats the outermost element, "reflect" goes back from it, "symmetric" goes
    back and begins with it again, "wrap" goes on at the other end; the gradient adds up what an element became.

    Raises ArgumentError for any other form or mode, or negative widths, ShapeError for a border of elements where there
    are none.

    >>> import adjoint as ad
    >>> ad.pad(ad.tensor([1.0, 2.0]), (1, 2)).tolist()
    [0.0, 1.0, 2.0, 0.0, 0.0]
    >>> ad.pad(ad.tensor([1.0, 2.0, 3.0]), 2, mode="reflect").tolist()
    [3.0, 2.0, 1.0, 2.0, 3.0, 2.0, 1.0]
    """
    x = as_tensor(x, "pad")
    if not isinstance(mode, str) or mode not in _BORDERS:
        raise errors.ArgumentError(f"pad: mode is one of {', '.join(_BORDERS)}; received {errors.shown(mode)}")
    try:
        widths = np.broadcast_to(np.asarray(pad_width), (x.ndim, 2))
    except ValueError:
        widths = np.full((x.ndim, 2), -1)
    if widths.dtype.kind not in "iu" or (widths < 0).any():
        raise errors.ArgumentError(
            f"pad: pad_width is a width, a pair, or a pair for each of {x.ndim} axes, of non-negative integers; "
            f"received {errors.shown(pad_width)}"
        )
    fill = as_constant(value, x.dtype, "pad")
    border = tuple((int(a), int(b)) for a, b in widths)
    if mode == "constant":
        return run("pad", (x,), widths=border, value=fill)  # type: ignore[no-any-return]
    for axis, (before, after) in enumerate(border):
        if before or after:
            if not x.shape[axis]:
                raise errors.ShapeError(f"pad: mode {mode!r} has no elements to take along axis {axis} of {x.shape}")
            places = np.pad(np.arange(x.shape[axis]), (before, after), mode=_BORDERS[mode])
            x = x[(*[slice(None)] * axis, places)]
    return x


_BORDERS: dict[str, Any] = {mode: mode for mode in ("constant", "edge", "reflect", "symmetric", "wrap")}


def roll(x: Tensor[B], /, shift: int | Sequence[int], *, axis: Axis = None) -> Tensor[B]:
    """Elements shifted along axes; those pushed out come in again at the other end."""
    x = as_tensor(x, "roll")
    if axis is None:
        return reshape(roll(reshape(x, -1), shift, axis=0), x.shape)
    axes, shifts = integers(axis, "roll", "axes"), integers(shift, "roll", "shifts")
    if isinstance(shift, (int, np.integer)):
        shifts *= len(axes)
    if len(shifts) != len(axes):
        raise errors.ArgumentError(f"roll: {len(shifts)} shifts for {len(axes)} axes")
    for by, i in zip(shifts, axes, strict=True):
        place = as_axis(i, x.ndim, "roll")
        n = x.shape[place]
        cut = (-by) % n if n else 0
        if cut:
            before = (slice(None),) * place
            x = run("concat", (x[(*before, slice(cut, None))], x[(*before, slice(None, cut))]), axis=place)
    return x


def tile(x: Tensor[B], repetitions: Sequence[int], /) -> Tensor[B]:
    """The tensor repeated, so many times along each axis, counted from the last."""
    x = as_tensor(x, "tile")
    times = as_shape(repetitions, "tile")
    ndim = max(x.ndim, len(times))
    times = (1,) * (ndim - len(times)) + times
    shape = (1,) * (ndim - x.ndim) + x.shape
    spread = [size for pair in zip((1,) * ndim, shape, strict=True) for size in pair]
    target = [size for pair in zip(times, shape, strict=True) for size in pair]
    wide = broadcast_to(reshape(x, spread), target)
    return reshape(wide, tuple(n * m for n, m in zip(times, shape, strict=True)))


def repeat(x: Tensor[B], repeats: Any, /, *, axis: int | None = None) -> Tensor[B]:
    """Each element repeated in place along an axis, or in the flattened tensor.

    `repeats` is one number for all, or integers for each place along the axis, whose values the result's shape follows.
    Raises ArgumentTypeError for what are no integers, ShapeError for negative ones or another number of them.

    >>> import adjoint as ad
    >>> ad.repeat(ad.tensor([1.0, 2.0]), ad.tensor([2, 1])).tolist()
    [1.0, 1.0, 2.0]
    """
    x = as_tensor(x, "repeat")
    if axis is None:
        x, axis = reshape(x, -1), 0
    place = as_axis(axis, x.ndim, "repeat")
    if not isinstance(repeats, (int, np.integer)):
        counts = _counts(repeats, x.shape[place])
        if counts.size == 1:
            return repeat(x, int(counts[0]), axis=place)
        places = np.repeat(np.arange(len(counts), dtype=np.int64), counts)
        return x[(*[slice(None)] * place, places)]
    (times,) = as_shape(repeats, "repeat")
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


def tril(x: Tensor[B], /, *, k: int = 0) -> Tensor[B]:
    """Matrices with zeros above the k-th diagonal."""
    return _triangle("tril", x, k)


def triu(x: Tensor[B], /, *, k: int = 0) -> Tensor[B]:
    """Matrices with zeros below the k-th diagonal."""
    return _triangle("triu", x, k)


def _triangle(name: str, x: Any, k: int) -> Tensor[Any]:
    x = as_tensor(x, name)
    if x.ndim < 2:
        raise errors.ShapeError(f"{name}: expected matrices, received shape {x.shape}")
    diagonal = max(-x.shape[-2], min(as_integer(k, name, "k"), x.shape[-1]))  # all others mean the same as these
    return run(name, (x,), k=diagonal)  # type: ignore[no-any-return]
