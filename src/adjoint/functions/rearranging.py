"""More functions that move elements, under NumPy's names: stacks and splits, turns, diagonals, windows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar

import numpy as np

from adjoint import errors
from adjoint.backend import Backend
from adjoint.functions.arguments import as_axes, as_axis, as_integer, as_tensor, as_tensors, integers, is_integer
from adjoint.functions.creation import made
from adjoint.functions.indexing import take
from adjoint.functions.manipulation import broadcast_to, concat, flip, moveaxis, permute_dims, reshape
from adjoint.operands import operand, run
from adjoint.primitives import ARRAY
from adjoint.tensor import Axis, Tensor, same

B = TypeVar("B", bound=Backend)


def swapaxes(x: Tensor[B], axis1: int, axis2: int, /) -> Tensor[B]:
    """Two axes in each other's place. Raises AxisError for an axis that is not there."""
    x = as_tensor(x, "swapaxes")
    first, second = (as_axis(i, x.ndim, "swapaxes") for i in (axis1, axis2))
    order = list(range(x.ndim))
    order[first], order[second] = second, first
    return permute_dims(x, order)


def ravel(x: Tensor[B], /) -> Tensor[B]:
    """All elements along one axis, in row-major order."""
    return reshape(x, -1)


def _at_least(name: str, arrays: tuple[Any, ...], ndim: int) -> Any:
    if not arrays:
        raise errors.ArgumentError(f"{name}: expected at least one tensor")
    out = []
    for value in arrays:
        x = as_tensor(value, name)
        missing = ndim - x.ndim
        if missing > 0:  # NumPy's places: a vector is the row of a matrix, and the middle axis of three
            after = 1 if ndim == 3 and x.ndim in (1, 2) else 0
            x = run("reshape", (x,), shape=((1,) * (missing - after) + x.shape + (1,) * after))
        out.append(same(x) if x is value else x)
    return out[0] if len(out) == 1 else tuple(out)


def atleast_1d(*arrays: Tensor[B]) -> Any:
    """The tensors with at least one axis; one for one, else a tuple. Raises ArgumentError for none."""
    return _at_least("atleast_1d", arrays, 1)


def atleast_2d(*arrays: Tensor[B]) -> Any:
    """The tensors with at least two axes, new ones in front; one for one, else a tuple."""
    return _at_least("atleast_2d", arrays, 2)


def atleast_3d(*arrays: Tensor[B]) -> Any:
    """The tensors with at least three axes: (n,) becomes (1, n, 1) and (n, m) becomes (n, m, 1)."""
    return _at_least("atleast_3d", arrays, 3)


def _several(arrays: Any, name: str) -> list[Tensor[Any]]:
    if not isinstance(arrays, (list, tuple, Tensor, np.ndarray)) or not getattr(arrays, "ndim", 1) or not len(arrays):
        raise errors.ArgumentError(f"{name}: expected a list or tuple of at least one tensor")
    return as_tensors(list(arrays), name)


def hstack(arrays: Sequence[Tensor[B]], /) -> Tensor[B]:
    """Tensors joined along their second axis, or along the first if they have one.

    Raises ShapeError where other axes differ, ArgumentError for no tensors; so do the other stacks.

    >>> import adjoint as ad
    >>> ad.hstack([ad.tensor([1, 2]), ad.tensor([3])]).tolist()
    [1, 2, 3]
    """
    tensors = [atleast_1d(x) for x in _several(arrays, "hstack")]
    return concat(tensors, axis=0 if tensors[0].ndim == 1 else 1)


def vstack(arrays: Sequence[Tensor[B]], /) -> Tensor[B]:
    """Tensors joined along their first axis; vectors are rows."""
    return concat([atleast_2d(x) for x in _several(arrays, "vstack")], axis=0)


def dstack(arrays: Sequence[Tensor[B]], /) -> Tensor[B]:
    """Tensors joined along their third axis, after `atleast_3d`."""
    return concat([atleast_3d(x) for x in _several(arrays, "dstack")], axis=2)


def column_stack(arrays: Sequence[Tensor[B]], /) -> Tensor[B]:
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


def _depth(part: Any) -> int:
    if not isinstance(part, list):
        return 0
    depths = {_depth(inner) for inner in part}
    if len(depths) != 1:
        raise errors.ArgumentError("block: expected nested lists of one depth, none of them empty")
    return 1 + depths.pop()


def _leaves(part: Any) -> list[Any]:
    return [leaf for inner in part for leaf in _leaves(inner)] if isinstance(part, list) else [part]


# --- parts ---


def array_split(x: Tensor[B], sections: int | Sequence[int], /, *, axis: int = 0) -> list[Tensor[B]]:
    """Consecutive parts along an axis: so many, of which the first are longer by one where they must; or cut at places.

    Raises ArgumentError for less than one part.

    >>> import adjoint as ad
    >>> [part.tolist() for part in ad.array_split(ad.arange(5), 2)]
    [[0, 1, 2], [3, 4]]
    """
    x = as_tensor(x, "array_split")
    place = as_axis(axis, x.ndim, "array_split")
    n = x.shape[place]
    if isinstance(sections, (int, np.integer)):
        count = as_integer(sections, "array_split", "the number of parts", 1)
        cuts = [i * (n // count) + min(i, n % count) for i in range(count + 1)]
    else:
        cuts = [0, *integers(sections, "array_split", "the places of cuts"), n]
    before = (slice(None),) * place
    return [x[(*before, slice(start, stop))] for start, stop in zip(cuts, cuts[1:], strict=False)]


def split(x: Tensor[B], sections: int | Sequence[int], /, *, axis: int = 0) -> list[Tensor[B]]:
    """Equal parts along an axis, so many; or parts cut at places. Raises ShapeError where parts cannot be equal."""
    x = as_tensor(x, "split")
    if isinstance(sections, (int, np.integer)) and sections > 0:
        n = x.shape[as_axis(axis, x.ndim, "split")]
        if n % sections:
            raise errors.ShapeError(
                f"split: {n} elements along axis {axis} are not {sections} equal parts; array_split makes unequal ones"
            )
    return array_split(x, sections, axis=axis)


def delete(x: Tensor[B], places: Any, /, *, axis: int | None = None) -> Tensor[B]:
    """Without the elements at places along an axis, or of the flat tensor: integers, booleans or a slice.

    The places are values, the same for all examples of a batch. Raises OutOfRangeError for places outside.
    """
    x = as_tensor(x, "delete")
    if axis is None:
        x, axis = reshape(x, -1), 0
    place = as_axis(axis, x.ndim, "delete")
    few = _few(places, x.shape[place], x.shape[place])
    if few is not None:  # what is between them, joined
        cuts = [-1, *sorted(set(few)), x.shape[place]]
        return concat([_part(x, place, cut + 1, stop) for cut, stop in zip(cuts, cuts[1:], strict=False)], axis=place)
    return take(x, _changed(np.delete, x.shape[place], places, "delete"), axis=place)


def insert(x: Tensor[B], places: Any, values: Any, /, *, axis: int | None = None) -> Tensor[B]:
    """With values before places along an axis, or of the flat tensor; both are differentiable.

    One place takes all the values, several take one each, or all the same. The places are values, the same for all
    examples of a batch. Raises OutOfRangeError for places outside, ShapeError for values that do not fit.

    >>> import adjoint as ad
    >>> ad.insert(ad.tensor([1.0, 2.0]), 1, 9.0).tolist()
    [1.0, 9.0, 2.0]
    """
    x, values = as_tensors([x, values], "insert")
    if axis is None:
        x, axis = reshape(x, -1), 0
    place = as_axis(axis, x.ndim, "insert")
    places = _listed(places, "insert")
    if isinstance(places, np.ndarray) and places.dtype == np.bool_:
        places = np.flatnonzero(places)
    if values.ndim < x.ndim:
        values = reshape(values, (1,) * (x.ndim - values.ndim) + values.shape)
        if isinstance(places, (int, np.integer)):
            values = moveaxis(values, 0, place) if x.ndim == values.ndim and values.ndim > 1 else values
    count = np.size(np.arange(x.shape[place])[places]) if isinstance(places, slice) else np.size(places)
    count = values.shape[place] if count == 1 else count
    values = broadcast_to(values, tuple(count if i == place else n for i, n in enumerate(x.shape)))
    n = x.shape[place]
    few = _few(places, n, n + 1)
    if few is not None and len(few) in (1, count):  # what is between them and values, joined
        order = sorted(range(len(few)), key=few.__getitem__)
        parts, start = [], 0
        for i in order:
            added = _part(values, place, i, i + 1) if len(few) > 1 else values
            parts += [_part(x, place, start, few[i]), added]
            start = few[i]
        return concat([*parts, _part(x, place, start, n)], axis=place)
    order = _changed(np.insert, n, places, "insert", np.arange(n, n + count))
    return take(concat([x, values], axis=place), order, axis=place)


def _listed(places: Any, name: str) -> Any:
    """Places with lists and tensors of them made arrays."""
    if isinstance(places, Tensor):
        return places.numpy()
    if not isinstance(places, (list, tuple)):
        return places
    try:
        return np.asarray(places, dtype=None if len(places) else np.int64)
    except ValueError:
        raise errors.ArgumentTypeError(f"{name}: places are integers, received {errors.shown(places)}") from None


def _few(places: Any, n: int, size: int) -> list[int] | None:
    """One or some places below a size, counted from the front; None for many, or for what must be looked at."""
    if is_integer(places):
        places = [places]
    if isinstance(places, np.ndarray) and places.ndim == 1 and places.size <= _FEW:
        places = places.tolist()
    if not isinstance(places, (list, tuple)) or not 0 < len(places) <= _FEW:
        return None
    if not all(is_integer(p) and -n <= p < size for p in places):
        return None
    return [int(p) + n if p < 0 else int(p) for p in places]


_FEW = 16  # a slice for each of them is still the faster way


def _part(x: Tensor[Any], axis: int, start: int, stop: int) -> Tensor[Any]:
    return run("index", (x,), key=(*[slice(None)] * axis, slice(start, stop, 1)))  # type: ignore[no-any-return]


def _changed(change: Any, n: int, places: Any, name: str, *values: Any) -> Any:
    """The numbers from 0 to n after a change at places."""
    places = _listed(places, name)
    if not isinstance(places, (int, np.integer, slice, list, tuple, np.ndarray)) or isinstance(places, bool):
        raise errors.ArgumentTypeError(f"{name}: places are integers or a slice, received {errors.shown(places)}")
    try:
        if isinstance(places, (list, tuple)):
            places = np.asarray(places) if len(places) else np.zeros(0, dtype=np.int64)
        return change(np.arange(n), places, *values)
    except (IndexError, ValueError, TypeError) as error:
        raise errors.OutOfRangeError(f"{name}: {error}") from None


def append(x: Tensor[B], values: Any, /, *, axis: int | None = None) -> Tensor[B]:
    """With values behind along an axis, or both flat and joined. Errors as `concat`."""
    return concat([x, values], axis=axis)


# --- turns ---


def fliplr(x: Tensor[B], /) -> Tensor[B]:
    """The second axis in reverse order. Raises AxisError for fewer than two axes."""
    return flip(x, axis=1)


def flipud(x: Tensor[B], /) -> Tensor[B]:
    """The first axis in reverse order. Raises AxisError for a 0-d tensor."""
    return flip(x, axis=0)


def rot90(x: Tensor[B], /, k: int = 1, *, axes: Sequence[int] = (0, 1)) -> Tensor[B]:
    """Turned by 90 degrees k times, from the first of two axes towards the second.

    Raises AxisError unless there are two different axes.
    """
    x, turns = as_tensor(x, "rot90"), as_integer(k, "rot90", "k") % 4
    plane = [as_axis(i, x.ndim, "rot90") for i in integers(axes, "rot90", "axes")]
    if len(set(plane)) != 2 or len(plane) != 2:
        raise errors.AxisError(f"rot90: expected two different axes, received {errors.shown(axes)}")
    first, second = plane
    if turns == 0:
        return same(x)
    if turns == 2:
        return flip(x, axis=plane)
    if turns == 1:
        return swapaxes(flip(x, axis=second), first, second)
    return flip(swapaxes(x, first, second), axis=second)


# --- diagonals ---


def diagonal(x: Tensor[B], /, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Tensor[B]:
    """The elements whose place along `axis2` is that along `axis1` plus an offset, along a new last axis.

    Raises AxisError unless the axes are two of the tensor's.
    """
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


def diag(x: Tensor[B], /, *, k: int = 0) -> Tensor[B]:
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
    n = x.size + abs(place)
    zeros = made(x.device, "full", shape=(n * n,), value=0, dtype=x.dtype)
    start = max(0, -place) * n + max(0, place)
    every = slice(start, start + (x.size - 1) * (n + 1) + 1, n + 1) if x.size else slice(0, 0, 1)
    return reshape(run("index_add", (zeros, x), key=(every,)), (n, n))


def diagflat(x: Tensor[B], /, *, k: int = 0) -> Tensor[B]:
    """The matrix that has all elements, in order, on its k-th diagonal."""
    return diag(ravel(x), k=k)


# --- windows ---


def sliding_window_view(x: Tensor[B], window_shape: int | Sequence[int], /, *, axis: Axis = None) -> Tensor[B]:
    """All windows of a shape, along given axes or all: their places stay where the axes were, they come last.

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
        raise errors.ShapeError(f"sliding_window_view: windows have at least one element; received sizes {sizes}")
    ndim = x.ndim
    for place, size in zip(axes, sizes, strict=True):
        x = run("windows", (x,), axis=as_axis(place, ndim, "sliding_window_view"), size=size)
    return x
