"""Reading, writing and sorting: `x[key]`, `x[key] = v`, take, sort, topk.

A key is normalised to one form for all backends: a tuple of ints, ranges for slices, None, and
`ARRAY` where an integer array goes; the arrays follow as operands. Boolean masks become the integer
arrays of their true places: their values are read, so the shape of the result depends on them.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Never

import numpy as np

from adjoint import dtypes, errors
from adjoint.backend import Array, Backend, Decorator
from adjoint.functions.arguments import (
    AXES,
    as_axis,
    as_device,
    as_integer,
    as_shape,
    as_size,
    as_tensor,
    as_tensors,
    check_shape,
    computed,
    explained,
    is_integer,
    keyword_error,
    own_values,
)
from adjoint.functions.creation import ShapeLike, asarray, made
from adjoint.functions.elementwise import where
from adjoint.functions.shape import broadcast_to, concat, moveaxis, reshape, stack
from adjoint.operands import (
    cast,
    common_backend,
    deferred_check,
    fail,
    held,
    lift_to,
    of_later,
    operand,
    outer_error,
    refuse_leaf,
    run,
)
from adjoint.primitives import ARRAY, Key, Shape, broadcast_shapes, index_shape
from adjoint.primitives.sizes import LATER, places_along, stands
from adjoint.tensor import Operand, Tensor, allocate, is_unique, make_unique, raw_array, refuse_ended, unique_lock, wrap
from adjoint.variables import B

_WHOLE = slice(None)
_NONE = range(0)
_PLAIN = (int, slice, tuple)
_SEQUENCES = (list, tuple, range)  # of places


def _places(entry: slice, size: int) -> range:
    """The places that a slice picks along an axis."""
    try:
        return places_along(entry, size) or _NONE  # which may start before the front
    except errors.TrackedError:  # of a bound that has no value
        raise
    except (TypeError, ValueError):
        if isinstance(entry.step, (int, np.integer)) and entry.step == 0:
            raise errors.OutOfRangeError("index: a slice's step must not be zero") from None
        raise errors.OutOfRangeError(
            f"index: slice bounds are integers or None, received {errors.shown(entry)}"
        ) from None


def _integer(entry: int, size: int, axis: int, shape: Shape) -> int:
    if not -size <= entry < size:
        raise errors.OutOfRangeError(
            f"index {errors.shown(entry)} is out of range for axis {axis} of size {size}, in a tensor of shape {shape}"
        )
    return entry + size if entry < 0 else entry


def as_key(x: Tensor[Any], key: Any) -> tuple[Key, list[Tensor[Any]]]:
    """The normal form of what stands between the brackets."""
    shape = x.shape
    if key.__class__ is int and shape:
        return (_integer(key, shape[0], 0, shape),), []
    if key.__class__ is slice and shape:
        return (_places(key, shape[0]),), []
    entries = list(key) if isinstance(key, tuple) else [key]
    expanded: list[Any] = []
    for entry in entries:
        expanded.extend(_entry(entry, x))
    dots = expanded.count(Ellipsis)
    used = len(expanded) - expanded.count(None) - dots
    if dots > 1:
        raise errors.OutOfRangeError("index: only one ... is allowed")
    if used > len(shape):
        raise errors.OutOfRangeError(f"index: {used} indices for a tensor of shape {shape}")
    if dots:
        at = expanded.index(Ellipsis)
        expanded[at : at + 1] = [_WHOLE] * (len(shape) - used)
    normal: list[Any] = []
    arrays: list[Tensor[Any]] = []
    axis = 0
    for entry in expanded:
        if entry is None:
            normal.append(None)
            continue
        if isinstance(entry, slice):
            normal.append(_places(entry, shape[axis]))
        elif isinstance(entry, int):
            normal.append(_integer(entry, shape[axis], axis, shape))
        else:
            indices, check = entry
            if check not in (None, 0, shape[axis]):  # a mask that is empty along an axis picks nothing
                raise errors.OutOfRangeError(
                    f"index: a boolean mask of size {check} does not fit axis {axis} of a tensor of shape {shape}"
                )
            normal.append(ARRAY)
            arrays.append(as_places(indices, shape[axis], axis, shape) if check is None else indices)
        axis += 1
    try:
        broadcast_shapes(*[a.shape for a in arrays])
    except errors.ShapeError as error:
        raise errors.OutOfRangeError(f"index: {error}") from None
    return tuple(normal), arrays


def _entry(entry: Any, x: Tensor[Any]) -> list[Any]:
    """One entry of a key; arrays as pairs (integer tensor, the size a mask was made for or None)."""
    if entry is None or entry is Ellipsis or isinstance(entry, slice):
        return [entry]
    if entry.__class__ in LATER and isinstance(entry, int):
        entry = of_later(entry, x._device)
    if isinstance(entry, (int, np.integer)) and not isinstance(entry, bool):
        return [entry if stands(entry) else int(entry)]
    array = isinstance(entry, (Tensor, np.ndarray, np.generic, list, tuple, range, bool)) and not isinstance(
        entry, float
    )
    if not array and x._device.from_native(entry) is None:
        if not _has_values(entry):
            raise errors.OutOfRangeError(
                "index: expected integers, slices, None, ..., integer or boolean tensors; received "
                f"{errors.shown(entry)}"
            )
        array = True
    if isinstance(entry, _SEQUENCES) and not len(entry):
        entry = np.zeros(0, dtype=np.int64)
    if array and not isinstance(entry, Tensor):
        entry = dtypes.values_of(entry, None, "index")
        if entry.dtype.kind == "b" and entry.ndim:  # whose values are no secret of a leaf
            return [(operand(line, x, "index"), n) for line, n in zip(np.nonzero(entry), entry.shape, strict=True)]
    indices = _beside(operand(entry, x, "index"), x)
    if indices.dtype.kind == "b":
        if not indices.ndim:
            raise errors.OutOfRangeError("index: a 0-d boolean is an index alone, not among others; use ad.where")
        places = run("nonzero", (indices,))
        return [(run("index", (places,), key=(i,)), indices.shape[i]) for i in range(indices.ndim)]
    if indices.dtype.kind not in "iu":
        raise errors.OutOfRangeError(f"index: tensors used as indices are integer or boolean, received {indices.dtype}")
    return [(cast(indices, dtypes.int64), None)]


def _has_values(places: Any) -> bool:
    """Whether it is a Series, or an array of another library: several places for NumPy."""
    return hasattr(places, "__array__") and not isinstance(places, np.generic)


def _truth(key: Any) -> bool | None:
    """The value of a key that is a single boolean; None for other keys."""
    if isinstance(key, (bool, np.bool_)):
        return bool(key)
    single = isinstance(key, (Tensor, np.ndarray)) and not key.ndim and key.dtype.kind == "b"
    return bool(key) if single else None


def _mask(x: Tensor[Any], key: Any, value: Any) -> Tensor[Any] | None:
    """A tensor of booleans as a condition for the elements of x: how many are true does not matter then.

    None for other keys, and for a value that has an element for each place.
    """
    if getattr(key, "dtype", None) != dtypes.bool or isinstance(value, (list, tuple)):
        return None
    if not isinstance(key, Tensor) and x._device.from_native(key) is None:
        return None
    mask = _beside(operand(key, x, "index"), x)
    rest = x.ndim - mask.ndim
    if mask.shape != x.shape[: mask.ndim] or getattr(value, "ndim", 0) > rest:
        return None
    return run("expand_dims", (mask,), axis=tuple(range(mask.ndim, x.ndim))) if rest else mask


def _beside(indices: Tensor[Any], x: Tensor[Any]) -> Tensor[Any]:
    """Indices have no derivatives: those of an outer level come down to where x is, unless they differ there."""
    level, array = indices._device, indices._array
    if level is x._device or not any(below is x._device for below in level.chain()):
        common_backend(x, indices)
        return indices
    while level is not x._device and isinstance(level, Decorator) and not level.is_active(array):
        level, array = level.inner, level.unwrap(array)
    return wrap(array, level)


def as_places(indices: Tensor[Any], size: int, axis: int, shape: Shape) -> Tensor[Any]:
    """Indices that an axis has, or an error that names the first wrong one."""

    def wrong(low: int, high: int) -> Exception:
        return errors.OutOfRangeError(
            f"index {low if low < -size else high} is out of range for axis {axis} of size {size}, in a tensor of "
            f"shape {shape}"
        )

    return deferred_check(
        indices,
        lambda places: (places.min() >= -size) & (places.max() < size),
        lambda places: wrong(int(places.min()), int(places.max())),
    )


def __getitem__(x: Tensor[B], key: Any, /) -> Tensor[B]:
    """The elements at a key: integers, slices, None, ..., integer or boolean tensors, as in NumPy.

    A single boolean gives a new axis in front, of size one if it is true and zero if not. Raises OutOfRangeError for
    what is no index, or outside the tensor.
    """
    if key.__class__ not in _PLAIN and (truth := _truth(key)) is not None:
        return __getitem__(x, None)[:1] if truth else __getitem__(x, None)[:0]
    normal, arrays = as_key(x, key)
    if arrays:
        return run("index", (x, *arrays), key=normal)  # type: ignore[no-any-return]
    device = x._device
    if x.__class__ is not Tensor and is_unique(x):
        with unique_lock:  # the result may be a view; copying the part keeps the ownership of the whole
            array = device.copied(device.index(raw_array(x), key=normal))
    else:
        try:
            array = device.index(x._array, key=normal)
        except Exception as error:
            fail(error, device, "index", (x._array,), {"key": normal})
    out: Tensor[B] = allocate(Tensor)
    out._array = array
    out._device = device
    out._dtype = x._dtype
    return out


def along(x: Tensor[B], places: Iterable[int]) -> Iterator[Tensor[B]]:
    """The slices of x at these places of its first axis, which has them: x[i] without a look at the key."""
    device, dtype = x._device, x._dtype
    for i in places:
        out: Tensor[B] = allocate(Tensor)
        out._array = device.index(x._array, key=(i,))
        out._device = device
        out._dtype = dtype
        yield out


def __setitem__(x: Tensor[Any], key: Any, value: Any, /) -> None:
    """Give the object a new value with other elements at a key, differentiably.

    `value` broadcasts to the indexed shape and is cast to the tensor's dtype. All names for the
    object see the new value; what graphs saved stays as it was. Raises GraphError for a leaf tensor,
    DeviceError for a value of an outer backend, DtypeError for complex values of a real tensor and floats of one of
    integers or booleans, and the errors of indexing; then nothing changed.
    """
    refuse_leaf(x, "assignment to elements")
    if key.__class__ not in _PLAIN and (truth := _truth(key)) is not None:
        if not truth:
            return
        key = ...
    mask = _mask(x, key, value)
    if mask is not None:
        key, value = ..., where(mask, held(value, x, "assignment"), x)
    normal, arrays = as_key(x, key)
    device = x._device
    if isinstance(value, Tensor) and common_backend(x, value) is not device:
        refuse_ended(value, "assignment")
        raise outer_error(x, value, "assignment")
    value = held(value, x, "assignment")
    target = index_shape(x.shape, *[a.shape for a in arrays], key=normal)
    operands: list[Array] = [lift_to(value, device), *[lift_to(a, device) for a in arrays]]
    trimmed = _without_leading_ones(operands[0], target, device)
    operands[0] = trimmed
    # a failing leaf must not have written half: shapes are checked above
    if is_unique(x):
        with unique_lock:
            if is_unique(x):
                make_unique(x, device.index_set_into(raw_array(x), *operands, key=normal))
                return
    try:
        array = device.index_set(raw_array(x), *operands, key=normal)
    except Exception as error:
        fail(error, device, "index_set", (raw_array(x), *operands), {"key": normal})
    make_unique(x, array)


def _without_leading_ones(value: Array, target: Shape, device: Backend) -> Array:
    """NumPy lets a value have extra leading axes of size one; a value must fit the places."""
    shape = tuple(value.shape)
    while len(shape) > len(target) and shape[0] == 1:
        shape = shape[1:]
    padded = (1,) * (len(target) - len(shape)) + shape
    if len(shape) > len(target) or any(n not in (1, m) for n, m in zip(padded, target, strict=True)):
        raise errors.ShapeError(
            f"assignment: a value of shape {tuple(value.shape)} does not broadcast to the indexed shape {target}"
        )
    return value if shape == tuple(value.shape) else device.reshape(value, shape=shape)


@explained
def take(x: Operand[B], indices: Any, /, axis: int | None = None, **unknown: Never) -> Tensor[B]:
    """Slices at integer places along an axis; negative places count from the end.

    The shape of the indices stands where that axis was: x (a, b, c) and indices (n,) give (a, n, c) for axis 1. The
    axis may be left out for one axis. Raises OutOfRangeError for places outside.

    >>> import adjoint as ad
    >>> ad.take(ad.tensor([1.0, 2.0, 3.0]), ad.tensor([2, 0])).tolist()
    [3.0, 1.0]
    """
    if unknown:
        raise keyword_error(take, unknown)
    x = as_tensor(x, "take", indices)
    if axis is None:
        if x.ndim != 1:
            raise errors.AxisError(f"take: a tensor of {x.ndim} axes needs axis=")
        axis = 0
    indices = operand(indices, x, "take")
    if indices.dtype.kind not in "iu":
        raise errors.OutOfRangeError(f"take: indices are integers, received {indices.dtype}")
    return x[(*[_WHOLE] * as_axis(axis, x.ndim, "take"), indices)]


@explained
def take_along_axis(x: Operand[B], indices: Any, /, axis: int = -1, **unknown: Never) -> Tensor[B]:
    """Elements picked along an axis by an integer tensor that broadcasts with x elsewhere.

    Raises ShapeError where other axes do not broadcast, OutOfRangeError for places outside.
    """
    if unknown:
        raise keyword_error(take_along_axis, unknown)
    x = as_tensor(x, "take_along_axis", indices)
    place = as_axis(axis, x.ndim, "take_along_axis")
    indices = operand(indices, x, "take_along_axis")
    if indices.dtype.kind not in "iu":
        raise errors.OutOfRangeError(f"take_along_axis: indices are integers, received {indices.dtype}")
    if indices.ndim == x.ndim:
        indices = as_places(cast(indices, dtypes.int64), x.shape[place], place, x.shape)
    return run("take_along_axis", (x, indices), axis=place)  # type: ignore[no-any-return]


def nonzero(x: Operand[B], /) -> tuple[Tensor[B], ...]:
    """The places of elements that are not zero, an int64 tensor per axis.

    The shape depends on the values. Raises ShapeError for a 0-d tensor.
    """
    x = as_tensor(x, "nonzero")
    if not x.ndim:
        raise errors.ShapeError("nonzero: a 0-d tensor has no places")
    places = run("nonzero", (x,))
    return tuple([run("index", (places,), key=(i,)) for i in range(x.ndim)])


def argwhere(x: Operand[B], /) -> Tensor[B]:
    """The places of elements that are not zero, one in each row; int64. The shape depends on the values.

    >>> import adjoint as ad
    >>> ad.argwhere(ad.tensor([[0.0, 2.0], [1.0, 0.0]])).tolist()
    [[0, 1], [1, 0]]
    """
    x = as_tensor(x, "argwhere")
    return run("nonzero", (x,)).mT if x.ndim else run("nonzero", (x[None],)).mT[:, :0]  # type: ignore[no-any-return]


def flatnonzero(x: Operand[B], /) -> Tensor[B]:
    """The places of elements that are not zero in the flattened tensor; int64. The shape depends on the values."""
    x = as_tensor(x, "flatnonzero")
    return nonzero(run("reshape", (x,), shape=(x.size,)))[0]


def _triangle(rows: Any, columns: Any, k: Any, device: Any, name: str) -> tuple[Tensor[Any], Tensor[Any]]:
    n, m = as_shape((rows, rows if columns is None else columns), name)
    diagonal = max(-n, min(as_integer(k, name, "k"), m + 1))  # others are further out, whatever their number
    if not any(map(stands, (n, m, diagonal))):
        row, column = computed(name, getattr(np, name), n, diagonal, m)
        return asarray(row, device=device), asarray(column, device=device)
    place, upper = as_device(device), name == "triu_indices"
    k = diagonal - 1 if upper else diagonal
    low = max(0, min(-k, n))  # rows without elements up to the k-th diagonal
    high = max(low, min(m - k, n))  # the first row all of which is
    total = (high - low) * (low + high - 1) // 2 + (high - low) * (k + 1) + (n - high) * m
    ends = made(place, "arange", start=k + 1, stop=n + k + 1, step=1, dtype=dtypes.int64)
    until = ends = run("minimum", (run("maximum", (ends, 0)), m))  # of each row
    start: Any = 0
    if upper:
        total, start, ends = n * m - total, until, m - until
    after = run("cumulative_sum", (ends,), axis=0)
    places = made(place, "arange", start=0, stop=total, step=1, dtype=dtypes.int64)
    row = run("searchsorted", (after, places), side="right")
    first = start - (after - ends)  # less how many elements there are in rows before
    return row, places + run("index", (first, row), key=(ARRAY,))


def tril_indices(rows: int, k: int = 0, columns: int | None = None, *, device: Any = None) -> Any:
    """The rows and the columns of the elements at and below the k-th diagonal of a matrix: two vectors of int64."""
    return _triangle(rows, columns, k, device, "tril_indices")


def triu_indices(rows: int, k: int = 0, columns: int | None = None, *, device: Any = None) -> Any:
    """The rows and the columns of the elements at and above the k-th diagonal of a matrix: two vectors of int64."""
    return _triangle(rows, columns, k, device, "triu_indices")


def diag_indices(n: int, /, ndim: int = 2, *, device: Any = None) -> Any:
    """The places on the diagonal of a cube of `ndim` axes of size n: for each axis a vector of int64."""
    count, axes = as_size(n, "diag_indices", "n"), as_integer(ndim, "diag_indices", "ndim", 0)
    if axes > AXES:
        raise errors.ArgumentError(f"diag_indices: a cube has at most {AXES} axes; ndim is {errors.shown(axes)}")
    if stands(count):
        return (_counted(count, device),) * axes
    return (asarray(computed("diag_indices", np.arange, count), device=device),) * axes


def _counted(n: int, device: Any) -> Tensor[Any]:
    return made(as_device(device), "arange", start=0, stop=n, step=1, dtype=dtypes.int64)


def unravel_index(places: Any, shape: ShapeLike, /) -> Any:
    """The place in each axis of elements given by their place in the flattened tensor of a shape.

    Raises DtypeError for other than integers, OutOfRangeError for places outside.

    >>> import adjoint as ad
    >>> [i.tolist() for i in ad.unravel_index(ad.tensor([5, 0]), (2, 3))]
    [[1, 0], [2, 0]]
    """
    sizes = as_shape(shape, "unravel_index")
    rest = _grid_places(places, math.prod(sizes), "unravel_index")
    found = []
    for n in reversed(sizes):
        found.append(rest % n)
        rest = rest // n
    return tuple(reversed(found))


def ravel_multi_index(places: Sequence[Any], shape: ShapeLike, /) -> Tensor[Any]:
    """The place in the flattened tensor of a shape of elements given by their place in each axis.

    Raises ArgumentError for another number of axes, DtypeError for other than integers, OutOfRangeError for places
    outside.

    >>> import adjoint as ad
    >>> ad.ravel_multi_index((ad.tensor([1, 0]), ad.tensor([2, 0])), (2, 3)).tolist()
    [5, 0]
    """
    sizes = as_shape(shape, "ravel_multi_index")
    if not isinstance(places, (list, tuple)) or len(places) != len(sizes) or not sizes:
        raise errors.ArgumentError(
            f"ravel_multi_index: expected places for each of {len(sizes)} axes, received {errors.shown(places)}"
        )
    out: Any = 0
    for line, n in zip(places, sizes, strict=True):
        out = out * n + _grid_places(line, n, "ravel_multi_index")
    return out  # type: ignore[no-any-return]


def _grid_places(value: Any, size: int, name: str) -> Tensor[Any]:
    x = as_tensor(value, name)
    if x.dtype.kind not in "iu":
        raise errors.DtypeError(f"{name}: places are integers, received {x.dtype}")
    x = deferred_check(
        x,
        lambda values: (values.min() >= 0) & (values.max() < size),
        lambda values: errors.OutOfRangeError(
            f"{name}: expected places from 0 to {size - 1}, received some from {values.min()} to {values.max()}"
        ),
    )
    return cast(x, dtypes.int64)


def indices(shape: ShapeLike, /, dtype: Any = None, *, device: Any = None) -> Tensor[Any]:
    """The place of each element of a shape: along a first axis those in each axis; int64 unless a dtype is given."""
    wanted = dtypes.default_int if dtype is None else dtypes.as_dtype(dtype)
    found = as_shape(shape, "indices")
    check_shape((len(found), *found), "indices")
    if any(map(stands, found)):
        lines = [
            reshape(_counted(n, device), tuple([n if k == i else 1 for k in range(len(found))]))
            for i, n in enumerate(found)
        ]
        return cast(stack([broadcast_to(line, found) for line in lines]), wanted)
    return asarray(computed("indices", np.indices, found), dtype=wanted, device=device)


def delete(x: Operand[B], places: Any, /, axis: int | None = None) -> Tensor[B]:
    """x without the elements at places along an axis, or of the flat tensor: integers, booleans or a slice.

    The result has the shape of x but for that axis; without an axis it is a vector. The places are values, the same for
    all examples of a batch. Raises OutOfRangeError for places outside.
    """
    x = as_tensor(x, "delete")
    if axis is None:
        x, axis = reshape(x, -1), 0
    place = as_axis(axis, x.ndim, "delete")
    n = x.shape[place]
    few = _few(places, n, n)
    if few is not None:  # what is between them, joined
        inside = sorted(few)
        cuts = [-1, *[p for i, p in enumerate(inside) if not i or p != inside[i - 1]], n]
        return concat([_part(x, place, cut + 1, stop) for cut, stop in zip(cuts, cuts[1:], strict=False)], axis=place)
    if isinstance(places, slice) and places.step in (None, 1):
        left = _places(places, n)
        start, stop = (left.start, left.stop) if left else (0, 0)
        return concat([_part(x, place, 0, start), _part(x, place, stop, n)], axis=place)
    return take(x, _changed(np.delete, n, places, "delete"), axis=place)


def insert(x: Operand[B], places: Any, values: Any, /, axis: int | None = None) -> Tensor[B]:
    """x with values put in before places along an axis, or of the flat tensor; gradients flow to both.

    The result has the shape of x but for that axis; without an axis it is a vector. One place takes all the values,
    several take one each, or all the same. The places are values, the same for all examples of a batch. Raises
    OutOfRangeError for places outside, ShapeError for values that do not fit.

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
    count = len(_places(places, x.shape[place])) if isinstance(places, slice) else np.size(places)
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
    """Places with lists and tensors of them made arrays; raises ArgumentTypeError for what are no places."""
    if isinstance(places, Tensor):
        return own_values(places, name)
    if is_integer(places) or isinstance(places, (slice, np.ndarray)):
        return places
    if not isinstance(places, _SEQUENCES) and not _has_values(places):
        raise errors.ArgumentTypeError(f"{name}: places are integers or a slice, received {errors.shown(places)}")
    try:
        found = dtypes.array_of(places, name)
    except errors.ShapeError:
        raise errors.ArgumentTypeError(f"{name}: places are integers, received {errors.shown(places)}") from None
    return found if found.size else found.astype(np.int64)


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
    whole = [p if stands(p) else int(p) for p in places]
    return [p + n if p < 0 else p for p in whole]


_FEW = 16  # a slice for each of them is still the faster way


def _part(x: Tensor[Any], axis: int, start: int, stop: int) -> Tensor[Any]:
    return run("index", (x,), key=(*[slice(None)] * axis, slice(start, stop, 1)))  # type: ignore[no-any-return]


def _changed(change: Any, n: int, places: Any, name: str, *values: Any) -> Any:
    """The numbers from 0 to n after a change at places."""
    places = _listed(places, name)
    if isinstance(places, np.ndarray) and places.dtype.kind not in "biu":
        raise errors.ArgumentTypeError(f"{name}: places are integers, received {errors.shown(places)}")
    try:
        return change(np.arange(n), places, *values)
    except (IndexError, ValueError, TypeError) as error:
        raise errors.OutOfRangeError(f"{name}: {errors.said(error)}") from None
